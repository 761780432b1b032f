/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tier_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler_tier.h"
#include "shared/mem.h"
#include "tests/process.h"

enum sampler_tier tier_world_tiers[SAMPLER_TIERS] = {TIER_T0, TIER_T1, TIER_T2, TIER_T3};

bool tier_world_is_hybrid(const struct tier_world *w)
{
	return w->fs.root_fd[HIERARCHY_UNIFIED] >= 0 && w->fs.cpu_from != HIERARCHY_UNIFIED;
}

void tier_world_keep_unified_only(struct tier_world *w)
{
	struct cgroupfs *fs = &w->fs;

	for (int h = 0; h < HIERARCHIES; h++) {
		if (h == HIERARCHY_UNIFIED || fs->root_fd[h] < 0)
			continue;
		close(fs->root_fd[h]);
		fs->root_fd[h] = -1;
		free(fs->mount[h]);
		fs->mount[h] = NULL;
	}
	fs->cpu_from = HIERARCHY_UNIFIED;
	if (fs->throttle_from != HIERARCHY_UNIFIED)
		fs->throttle_from = -1;
	if (fs->memory_from != HIERARCHY_UNIFIED)
		fs->memory_from = -1;
}

int tier_world_setup(void **state)
{
	struct tier_world *w = mem_zalloc(1, sizeof(*w));
	struct error error = {""};

	w->tier = *(const enum sampler_tier *)*state;
	w->fixture = cgroup_fixture_new("tiers", &error);
	*state = w;
	if (!w->fixture) {
		print_message("SKIP: %s\n", error.text);
		return 0;
	}
	cgroup_fixture_open_below(w->fixture, &w->fs);
	w->topology = topology_new();
	if (w->tier == TIER_T0 && tier_world_is_hybrid(w))
		tier_world_keep_unified_only(w);
	return 0;
}

int tier_world_teardown(void **state)
{
	struct tier_world *w = *state;

	if (w->fixture) {
		sampler_close(w->sampler);
		topology_free(w->topology);
		cgroupfs_close(&w->fs);
		cgroup_fixture_free(w->fixture);
	}
	free(w);
	return 0;
}

struct tier_world *tier_world_need(void **state)
{
	struct tier_world *w = *state;

	if (!w->fixture)
		skip();
	return w;
}

void tier_world_scan(struct tier_world *w)
{
	struct error error = {""};

	if (cgroupfs_scan(&w->fs, w->topology, &error))
		fail_msg("%s", error.text);
}

/*
 * What a machine may lack: BTF, a function of the kernel or leave to call it, a capability, cgroup
 * v2 alone.
 */
static bool is_machines_fault(int err, const struct error *error)
{
	return err == -ENOENT || err == -ENOSYS || err == -EPERM || err == -ENOTSUP ||
	       strstr(error->text, "calling kernel function");
}

void tier_world_open(struct tier_world *w)
{
	struct error error = {""};
	int err;

	tier_world_scan(w);
	err = sampler_open_ops(&w->sampler, sampler_all_ops[w->tier], &w->fs, &error);
	if (!err)
		return;
	if (w->tier == TIER_T3 || !is_machines_fault(err, &error))
		fail_msg("%s: %s", sampler_tier_name(w->tier), error.text);
	print_message("SKIP: %s\n", error.text);
	skip();
}

struct pass_result tier_world_pass(struct tier_world *w, enum pass_kind kind)
{
	struct pass_result result;
	struct error error = {""};

	if (sampler_pass(w->sampler, w->topology, kind, ++w->pass, &result, &error))
		fail_msg("%s", error.text);
	return result;
}

struct cgroup *tier_world_at(struct tier_world *w, const char *path)
{
	for (size_t i = 0; i < topology_count(w->topology); i++) {
		if (strcmp(topology_at(w->topology, i)->path, path) == 0)
			return topology_at(w->topology, i);
	}
	fail_msg("%s is not in the topology", path);
	return NULL;
}

/* --- facts ------------------------------------------------------------------------------------ */

enum origin { CPU, THROTTLE, MEMORY, GENERAL /* v2, whatever its controllers */ };

/* The number that follows `line` at the beginning of a line and, behind it, `key`. */
struct place {
	const char *file, *line, *key;
	int64_t unit; /* in ns or bytes */
};

static const struct fact {
	const char *name;
	enum origin origin;
	uint32_t have;
	size_t offset, size;
	struct place v1, v2;
} facts[FACTS] = {
#define FACT(member) offsetof(struct reading, member), sizeof(((struct reading *)NULL)->member)
	[FACT_CPU] = {"CPU",
		      CPU,
		      HAVE_CPU,
		      FACT(cpu_ns),
		      {"cpuacct.usage", "", "", 1},
		      {"cpu.stat", "usage_usec", " ", 1000}},
	[FACT_QUOTA] = {"quota",
			THROTTLE,
			HAVE_CPU_LIMIT,
			FACT(cpu_quota_ns),
			{"cpu.cfs_quota_us", "", "", 1000},
			{"cpu.max", "", "", 1000}},
	[FACT_PERIOD] = {"period",
			 THROTTLE,
			 HAVE_CPU_LIMIT,
			 FACT(cpu_period_ns),
			 {"cpu.cfs_period_us", "", "", 1000},
			 {"cpu.max", "", " ", 1000}},
	[FACT_BURST] = {"burst",
			THROTTLE,
			HAVE_CPU_LIMIT,
			FACT(cpu_burst_ns),
			{"cpu.cfs_burst_us", "", "", 1000},
			{"cpu.max.burst", "", "", 1000}},
	[FACT_PERIODS] = {"periods",
			  THROTTLE,
			  HAVE_THROTTLE,
			  FACT(periods),
			  {"cpu.stat", "nr_periods", " ", 1},
			  {"cpu.stat", "nr_periods", " ", 1}},
	[FACT_THROTTLED_PERIODS] = {"throttled periods",
				    THROTTLE,
				    HAVE_THROTTLE,
				    FACT(throttled_periods),
				    {"cpu.stat", "nr_throttled", " ", 1},
				    {"cpu.stat", "nr_throttled", " ", 1}},
	[FACT_THROTTLED] = {"throttled time",
			    THROTTLE,
			    HAVE_THROTTLE,
			    FACT(throttled_ns),
			    {"cpu.stat", "throttled_time", " ", 1},
			    {"cpu.stat", "throttled_usec", " ", 1000}},
	[FACT_MEMORY] = {"memory",
			 MEMORY,
			 HAVE_MEMORY,
			 FACT(mem_bytes),
			 {"memory.usage_in_bytes", "", "", 1},
			 {"memory.current", "", "", 1}},
	[FACT_LIMIT] = {"memory limit",
			MEMORY,
			HAVE_MEMORY_LIMIT,
			FACT(mem_limit_bytes),
			{"memory.limit_in_bytes", "", "", 1},
			{"memory.max", "", "", 1}},
	[FACT_HIGH] = {"memory.high",
		       MEMORY,
		       HAVE_MEMORY_HIGH,
		       FACT(mem_high_bytes),
		       {NULL, NULL, NULL, 0},
		       {"memory.high", "", "", 1}},
	[FACT_SWAP] = {"swap",
		       MEMORY,
		       HAVE_SWAP,
		       FACT(swap_bytes),
		       {"memory.stat", "total_swap", " ", 1},
		       {"memory.swap.current", "", "", 1}},
	/* On v1 it is the difference of two files. */
	[FACT_SWAP_LIMIT] = {"swap limit",
			     MEMORY,
			     HAVE_SWAP_LIMIT,
			     FACT(swap_limit_bytes),
			     {"memory.memsw.limit_in_bytes", "", "", 1},
			     {"memory.swap.max", "", "", 1}},
	[FACT_OOM] = {"OOM kills",
		      MEMORY,
		      HAVE_OOM,
		      FACT(oom_kills),
		      {"memory.oom_control", "oom_kill", " ", 1},
		      {"memory.events", "oom_kill", " ", 1}},
	[FACT_PIDS] = {"pids",
		       GENERAL,
		       HAVE_PIDS,
		       FACT(pids),
		       {NULL, NULL, NULL, 0},
		       {"pids.current", "", "", 1}},
	[FACT_PIDS_LIMIT] = {"pids.max",
			     GENERAL,
			     HAVE_PIDS_LIMIT,
			     FACT(pids_limit),
			     {NULL, NULL, NULL, 0},
			     {"pids.max", "", "", 1}},
	[FACT_PSI_CPU] = {"PSI cpu",
			  GENERAL,
			  HAVE_PSI,
			  FACT(psi_cpu_ns),
			  {NULL, NULL, NULL, 0},
			  {"cpu.pressure", "some", "total=", 1000}},
	[FACT_PSI_CPU_FULL] = {"PSI cpu full",
			       GENERAL,
			       HAVE_PSI_CPU_FULL,
			       FACT(psi_cpu_full_ns),
			       {NULL, NULL, NULL, 0},
			       {"cpu.pressure", "full", "total=", 1000}},
	[FACT_PSI_MEMORY] = {"PSI memory",
			     GENERAL,
			     HAVE_PSI,
			     FACT(psi_mem_ns),
			     {NULL, NULL, NULL, 0},
			     {"memory.pressure", "some", "total=", 1000}},
	[FACT_PSI_MEMORY_FULL] = {"PSI memory full",
				  GENERAL,
				  HAVE_PSI_MEMORY_FULL,
				  FACT(psi_mem_full_ns),
				  {NULL, NULL, NULL, 0},
				  {"memory.pressure", "full", "total=", 1000}},
	[FACT_INACTIVE] = {"inactive file",
			   MEMORY,
			   HAVE_WORKING_SET,
			   FACT(inactive_file_bytes),
			   {"memory.stat", "total_inactive_file", " ", 1},
			   {"memory.stat", "inactive_file", " ", 1}},
#undef FACT
};

/* Where a fact is read from: the hierarchy, or -1, and the place in its files. */
static int find_place(const struct cgroupfs *fs, const struct fact *fact, struct place *place)
{
	const int from[] = {[CPU] = fs->cpu_from,
			    [THROTTLE] = fs->throttle_from,
			    [MEMORY] = fs->memory_from,
			    [GENERAL] = HIERARCHY_UNIFIED};
	int h = from[fact->origin];

	*place = h == HIERARCHY_UNIFIED ? fact->v2 : fact->v1;
	return h >= 0 && fs->root_fd[h] >= 0 && place->file ? h : -1;
}

static const char *find_line(const char *text, const char *line)
{
	size_t length = strlen(line);

	for (const char *at = text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
		if (strncmp(at, line, length) == 0 && (!length || at[length] == ' '))
			return at + length;
	}
	return NULL;
}

static int64_t read_fact(const struct tier_world *w, const char *sub, const struct fact *fact)
{
	int64_t no_limit = LONG_MAX / sysconf(_SC_PAGESIZE) * sysconf(_SC_PAGESIZE), value;
	char text[8192];
	const char *at;
	struct place place;
	int h = find_place(&w->fs, fact, &place);

	if (h < 0 || !cgroup_fixture_read(w->fixture, h, sub, place.file, text, sizeof(text)))
		return FACT_ABSENT;
	at = find_line(text, place.line);
	at = at ? strstr(at, place.key) : NULL;
	if (!at)
		return FACT_ABSENT;
	at += strlen(place.key);
	if (strncmp(at, "max", 3) == 0 || strncmp(at, "-1", 2) == 0)
		return LIMIT_NONE;
	value = (int64_t)strtoull(at, NULL, 10);
	return value >= no_limit ? LIMIT_NONE : value * place.unit;
}

struct tier_facts tier_world_files(const struct tier_world *w, const char *sub)
{
	struct tier_facts f;

	for (int i = 0; i < FACTS; i++)
		f.of[i] = read_fact(w, sub, &facts[i]);
	if (w->fs.memory_from == HIERARCHY_MEMORY && f.of[FACT_SWAP_LIMIT] >= 0)
		f.of[FACT_SWAP_LIMIT] -= f.of[FACT_LIMIT];
	/* The one member that cannot say that it is not there. */
	if (f.of[FACT_BURST] == FACT_ABSENT && f.of[FACT_QUOTA] != FACT_ABSENT)
		f.of[FACT_BURST] = 0;
	return f;
}

static struct tier_facts facts_of(const struct tier_world *w, const struct reading *r)
{
	struct tier_facts f;

	for (int i = 0; i < FACTS; i++) {
		const struct fact *fact = &facts[i];
		struct place place;
		int64_t value = 0;

		find_place(&w->fs, fact, &place);
		memcpy(&value, (const char *)r + fact->offset, fact->size);
		if (!(r->have & fact->have))
			f.of[i] = FACT_ABSENT;
		else
			f.of[i] = value < 0 || !place.unit ? value : value - value % place.unit;
	}
	return f;
}

/* True when the first `count` facts agree; prints where not. */
static bool agree(const struct tier_facts *files, const struct tier_facts *tier, int count)
{
	bool agreed = true;

	for (int i = 0; i < count; i++) {
		if (tier->of[i] == files->of[i])
			continue;
		print_error("%s: the tier says %" PRId64 ", the file %" PRId64 "\n", facts[i].name,
			    tier->of[i], files->of[i]);
		agreed = false;
	}
	return agreed;
}

/*
 * Before 5.13 memory.stat leaves out what each CPU holds back, up to 32 pages of it, for as long as
 * nothing moves.
 */
static bool is_held_back(int64_t file, int64_t tier)
{
	int64_t most = 32 * sysconf(_SC_NPROCESSORS_CONF) * sysconf(_SC_PAGESIZE);

	return file >= 0 && tier >= 0 && file - tier <= most && tier - file <= most;
}

/*
 * Before 5.13 each CPU keeps up to 32 pages of change to itself and memory.stat never has them;
 * what the BPF tiers read is exact then, and the file is not.
 */
static int64_t slack_of_stat(void)
{
	struct utsname kernel;
	int major = 0, minor = 0;

	if (uname(&kernel) || sscanf(kernel.release, "%d.%d", &major, &minor) != 2)
		fail_msg("which kernel is this?");
	if (major > 5 || (major == 5 && minor >= 13))
		return 0;
	return 32 * sysconf(_SC_NPROCESSORS_CONF) * sysconf(_SC_PAGESIZE);
}

/* What one attempt after another finds. */
struct comparison {
	struct tier_world *w;
	const char *sub;
	struct tier_facts files, tier;
	bool still, differ;
};

static bool compare_once(void *ctx)
{
	struct comparison *c = ctx;
	struct tier_facts after;
	struct cgroup *cgroup;
	char path[256];

	snprintf(path, sizeof(path), "/%s", c->sub);
	c->files = tier_world_files(c->w, c->sub);
	tier_world_pass(c->w, PASS_SLOW);
	cgroup = tier_world_at(c->w, path);
	assert_int_equal(cgroup->seen_pass, c->w->pass);
	c->tier = facts_of(c->w, &cgroup->reading);
	after = tier_world_files(c->w, c->sub);
	c->still = memcmp(&c->files, &after, sizeof(after)) == 0;
	if (!c->still)
		return false;
	c->differ = !agree(&c->files, &c->tier, FACT_INACTIVE);
	return c->differ ||
	       llabs(c->files.of[FACT_INACTIVE] - c->tier.of[FACT_INACTIVE]) <= slack_of_stat();
}

struct tier_facts tier_world_expect_equal(struct tier_world *w, const char *sub)
{
	struct comparison c = {.w = w, .sub = sub};
	bool done = await(compare_once, &c, 20);

	if (!c.still)
		fail_msg("the files of a stopped task do not stand still");
	if (c.differ || (!done && !agree(&c.files, &c.tier, FACTS) &&
			 !is_held_back(c.files.of[FACT_INACTIVE], c.tier.of[FACT_INACTIVE])))
		fail_msg("tier %s differs from the files", sampler_tier_name(w->tier));
	return c.tier;
}

/* --- limits and children ---------------------------------------------------------------------- */

static void put(const struct tier_world *w, int h, const char *sub, const char *file,
		const char *text)
{
	if (!cgroup_fixture_write(w->fixture, h, sub, file, text))
		fail_msg("cannot write %s to %s", text, file);
}

static void put_if_there(const struct tier_world *w, int h, const char *sub, const char *file,
			 const char *text)
{
	char now[64];

	if (cgroup_fixture_read(w->fixture, h, sub, file, now, sizeof(now)))
		put(w, h, sub, file, text);
}

void tier_world_limit_cpu(struct tier_world *w, const char *sub)
{
	int h = w->fs.throttle_from;

	if (h == HIERARCHY_CPU) {
		put(w, h, sub, "cpu.cfs_quota_us", "20000");
		put_if_there(w, h, sub, "cpu.cfs_burst_us", "5000");
	} else if (h == HIERARCHY_UNIFIED) {
		put(w, h, sub, "cpu.max", "20000 100000");
		put_if_there(w, h, sub, "cpu.max.burst", "5000");
	}
}

void tier_world_limit_memory(struct tier_world *w, const char *sub, const char *bytes)
{
	int h = w->fs.memory_from;

	if (h == HIERARCHY_MEMORY)
		put(w, h, sub, "memory.limit_in_bytes", bytes);
	else if (h == HIERARCHY_UNIFIED)
		put(w, h, sub, "memory.max", bytes);
}

/* More limits than a test asks for: of swap, and where the kernel begins to push back. */
static void limit_more(struct tier_world *w, const char *sub)
{
	int h = w->fs.memory_from;

	if (h == HIERARCHY_MEMORY)
		put_if_there(w, h, sub, "memory.memsw.limit_in_bytes", "83886080");
	if (h == HIERARCHY_UNIFIED) {
		put_if_there(w, h, sub, "memory.swap.max", "16777216");
		put(w, h, sub, "memory.high", "62914560");
		put_if_there(w, h, sub, "pids.max", "32");
	}
}

struct throttling {
	const struct tier_world *w;
	const char *sub;
};

static bool was_throttled(void *ctx)
{
	const struct throttling *t = ctx;

	return read_fact(t->w, t->sub, &facts[FACT_THROTTLED_PERIODS]) >= 3;
}

void tier_world_make_stopped(struct tier_world *w, const char *sub)
{
	struct cgroup_child child = {.hold_bytes = 24 * MIB, .cache_bytes = 8 * MIB, .spin = true};
	struct throttling throttling = {w, sub};
	pid_t pid;

	cgroup_fixture_make(w->fixture, cgroup_fixture_all(w->fixture), sub);
	cgroup_fixture_prefer(w->fixture, "");
	cgroup_fixture_prefer(w->fixture, sub);
	tier_world_limit_cpu(w, sub);
	tier_world_limit_memory(w, sub, "67108864");
	limit_more(w, sub);
	pid = cgroup_fixture_spawn(w->fixture, sub, &child);
	if (w->fs.throttle_from >= 0)
		assert_true(await(was_throttled, &throttling, 20));
	cgroup_fixture_stop(pid);
}
