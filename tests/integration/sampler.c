/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampling tiers against the kernel's own files, for children of which everything is known to
 * stand still: what two reads of the files around a pass agree on, the pass must say too, to the
 * last unit. Works on whatever hierarchies the machine has, v1, v2 or both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler_tier.h"
#include "tests/cgroup_fixture.h"

#define MIB (1024LL * 1024)

static struct cgroup_fixture *fixture;
static struct reason no_fixture;

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
}

/* A sampler over the fixture's own cgroups, and their topology. */
struct subject {
	struct cgroupfs fs;
	struct topology *topology;
	struct sampler *sampler;
	uint64_t pass;
};

static struct subject subject = {.fs.root_fd = {-1, -1, -1, -1}};

static int setup(void **state)
{
	(void)state;
	fixture = cgroup_fixture_new("sampler", &no_fixture);
	if (!fixture)
		return 0;
	cgroup_fixture_open_below(fixture, &subject.fs);
	subject.topology = topology_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (!fixture)
		return 0;
	sampler_close(subject.sampler);
	subject.sampler = NULL;
	topology_free(subject.topology);
	cgroupfs_close(&subject.fs);
	cgroup_fixture_free(fixture);
	fixture = NULL;
	return 0;
}

static void need_fixture(void)
{
	if (fixture)
		return;
	print_message("SKIP: %s\n", no_fixture.text);
	skip();
}

/* Forgets the v1 hierarchies, so that the v2 tree is sampled alone. */
static void keep_unified_only(struct cgroupfs *fs)
{
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

static void scan(void)
{
	struct reason why = {""};

	if (cgroupfs_scan(&subject.fs, subject.topology, &why))
		fail_msg("%s", why.text);
}

/* T1 may have no kernel to work on; T3 always works. */
static void open_tier(enum sampler_tier tier)
{
	struct reason why = {""};

	if (sampler_open(&subject.sampler, tier, &subject.fs, &why) == 0)
		return;
	if (tier != TIER_T1)
		fail_msg("%s", why.text);
	print_message("SKIP: %s\n", why.text);
	skip();
}

static struct pass_result pass(enum pass_kind kind)
{
	struct pass_result result;
	struct reason why = {""};

	if (sampler_pass(subject.sampler, subject.topology, kind, ++subject.pass, &result, &why))
		fail_msg("%s", why.text);
	return result;
}

static const struct reading *reading_of(const char *path)
{
	for (size_t i = 0; i < topology_count(subject.topology); i++) {
		struct cgroup *cgroup = topology_at(subject.topology, i);

		if (strcmp(cgroup->path, path) != 0)
			continue;
		assert_int_equal(cgroup->seen_pass, subject.pass);
		return &cgroup->reading;
	}
	fail_msg("%s is not in the topology", path);
	return NULL;
}

/* --- what the files say ---------------------------------------------------------------------- */

enum fact {
	FACT_CPU,
	FACT_MEMORY,
	FACT_LIMIT,
	FACT_QUOTA,
	FACT_PERIOD,
	FACT_PERIODS,
	FACT_THROTTLED_PERIODS,
	FACT_THROTTLED,
	FACT_OOM,
	FACT_PSI_CPU,
	FACT_PSI_MEMORY,
	FACT_INACTIVE, /* last: the kernel brings this file up to date only every 2 s */
	FACTS,
};

static const char *const fact_names[FACTS] = {
	"CPU",	     "memory",	"memory limit",	     "quota",
	"period",    "periods", "throttled periods", "throttled time",
	"OOM kills", "PSI cpu", "PSI memory",	     "inactive file",
};

/* In ns and bytes; LIMIT_NONE as in a reading, ABSENT where there is no such file. */
enum { ABSENT = -100 };
struct facts {
	int64_t value[FACTS];
};

/*
 * The number after key in a file, in units; ABSENT without the file or the key. "max" and -1 are
 * LIMIT_NONE.
 */
static int64_t number(int hierarchy, const char *sub, const char *file, const char *key,
		      int64_t unit)
{
	char text[8192];
	const char *at = text;

	if (hierarchy < 0 ||
	    !cgroup_fixture_read(fixture, hierarchy, sub, file, text, sizeof(text)))
		return ABSENT;
	if (key) {
		at = strstr(text, key);
		if (!at)
			return ABSENT;
		at += strlen(key);
	}
	if (strncmp(at, "max", 3) == 0 || strncmp(at, "-1", 2) == 0)
		return LIMIT_NONE;
	return (int64_t)strtoull(at, NULL, 10) * unit;
}

static void read_v1_facts(const struct cgroupfs *fs, const char *sub, struct facts *f)
{
	int64_t no_limit = LONG_MAX / sysconf(_SC_PAGESIZE) * sysconf(_SC_PAGESIZE);
	int memory = fs->root_fd[HIERARCHY_MEMORY] < 0 ? -1 : HIERARCHY_MEMORY;
	int cpu = fs->root_fd[HIERARCHY_CPU] < 0 ? -1 : HIERARCHY_CPU;

	if (fs->cpu_from == HIERARCHY_CPUACCT)
		f->value[FACT_CPU] = number(HIERARCHY_CPUACCT, sub, "cpuacct.usage", NULL, 1);
	if (cpu >= 0) {
		f->value[FACT_QUOTA] = number(cpu, sub, "cpu.cfs_quota_us", NULL, 1000);
		f->value[FACT_PERIOD] = number(cpu, sub, "cpu.cfs_period_us", NULL, 1000);
		f->value[FACT_PERIODS] = number(cpu, sub, "cpu.stat", "nr_periods ", 1);
		f->value[FACT_THROTTLED_PERIODS] = number(cpu, sub, "cpu.stat", "nr_throttled ", 1);
		f->value[FACT_THROTTLED] = number(cpu, sub, "cpu.stat", "throttled_time ", 1);
	}
	if (memory < 0)
		return;
	f->value[FACT_MEMORY] = number(memory, sub, "memory.usage_in_bytes", NULL, 1);
	f->value[FACT_LIMIT] = number(memory, sub, "memory.limit_in_bytes", NULL, 1);
	if (f->value[FACT_LIMIT] >= no_limit)
		f->value[FACT_LIMIT] = LIMIT_NONE;
	f->value[FACT_OOM] = number(memory, sub, "memory.oom_control", "oom_kill ", 1);
	f->value[FACT_INACTIVE] = number(memory, sub, "memory.stat", "total_inactive_file ", 1);
}

static void read_v2_facts(const struct cgroupfs *fs, const char *sub, struct facts *f)
{
	const int h = HIERARCHY_UNIFIED;

	if (fs->cpu_from == h)
		f->value[FACT_CPU] = number(h, sub, "cpu.stat", "usage_usec ", 1000);
	f->value[FACT_PSI_CPU] = number(h, sub, "cpu.pressure", "total=", 1000);
	f->value[FACT_PSI_MEMORY] = number(h, sub, "memory.pressure", "total=", 1000);
	if (fs->throttle_from == h) {
		f->value[FACT_QUOTA] = number(h, sub, "cpu.max", NULL, 1000);
		f->value[FACT_PERIOD] = number(h, sub, "cpu.max", " ", 1000);
		f->value[FACT_PERIODS] = number(h, sub, "cpu.stat", "nr_periods ", 1);
		f->value[FACT_THROTTLED_PERIODS] = number(h, sub, "cpu.stat", "nr_throttled ", 1);
		f->value[FACT_THROTTLED] = number(h, sub, "cpu.stat", "throttled_usec ", 1000);
	}
	if (fs->memory_from == h) {
		f->value[FACT_MEMORY] = number(h, sub, "memory.current", NULL, 1);
		f->value[FACT_LIMIT] = number(h, sub, "memory.max", NULL, 1);
		f->value[FACT_OOM] = number(h, sub, "memory.events", "oom_kill ", 1);
		f->value[FACT_INACTIVE] = number(h, sub, "memory.stat", "inactive_file ", 1);
	}
}

static void read_facts(const struct cgroupfs *fs, const char *sub, struct facts *f)
{
	for (int i = 0; i < FACTS; i++)
		f->value[i] = ABSENT;
	read_v1_facts(fs, sub, f);
	if (fs->root_fd[HIERARCHY_UNIFIED] >= 0)
		read_v2_facts(fs, sub, f);
}

/* --- what the tier says ---------------------------------------------------------------------- */

static void set_facts(struct facts *f, const struct reading *r, uint32_t have, enum fact fact,
		      int64_t value, int64_t unit)
{
	f->value[fact] = r->have & have ? (value < 0 ? value : value - value % unit) : ABSENT;
}

/* v2 files tell times in microseconds; the PSI ones are v2 always. */
static struct facts facts_of(const struct reading *r, const struct cgroupfs *fs)
{
	int64_t cpu_unit = fs->cpu_from == HIERARCHY_UNIFIED ? 1000 : 1;
	int64_t throttle_unit = fs->throttle_from == HIERARCHY_UNIFIED ? 1000 : 1;
	struct facts f;

	set_facts(&f, r, HAVE_CPU, FACT_CPU, (int64_t)r->cpu_ns, cpu_unit);
	set_facts(&f, r, HAVE_MEMORY, FACT_MEMORY, (int64_t)r->mem_bytes, 1);
	set_facts(&f, r, HAVE_MEMORY_LIMIT, FACT_LIMIT, r->mem_limit_bytes, 1);
	set_facts(&f, r, HAVE_CPU_LIMIT, FACT_QUOTA, r->cpu_quota_ns, 1);
	set_facts(&f, r, HAVE_CPU_LIMIT, FACT_PERIOD, r->cpu_period_ns, 1);
	set_facts(&f, r, HAVE_THROTTLE, FACT_PERIODS, (int64_t)r->periods, 1);
	set_facts(&f, r, HAVE_THROTTLE, FACT_THROTTLED_PERIODS, (int64_t)r->throttled_periods, 1);
	set_facts(&f, r, HAVE_THROTTLE, FACT_THROTTLED, (int64_t)r->throttled_ns, throttle_unit);
	set_facts(&f, r, HAVE_OOM, FACT_OOM, (int64_t)r->oom_kills, 1);
	set_facts(&f, r, HAVE_PSI, FACT_PSI_CPU, (int64_t)r->psi_cpu_ns, 1000);
	set_facts(&f, r, HAVE_PSI, FACT_PSI_MEMORY, (int64_t)r->psi_mem_ns, 1000);
	set_facts(&f, r, HAVE_WORKING_SET, FACT_INACTIVE, (int64_t)r->inactive_file_bytes, 1);
	return f;
}

static void expect_facts(const struct facts *files, const struct facts *tier, int count)
{
	for (int i = 0; i < count; i++) {
		if (tier->value[i] != files->value[i])
			fail_msg("%s: the tier says %" PRId64 ", the file %" PRId64, fact_names[i],
				 tier->value[i], files->value[i]);
	}
}

/*
 * Passes until the files stand still around one; then that pass must agree with them. Returns the
 * facts.
 */
static struct facts expect_equal_to_files(const char *sub)
{
	struct facts before, after, tier;
	char path[256];

	snprintf(path, sizeof(path), "/%s", sub);
	for (int i = 0; i < 400; i++, nap()) {
		read_facts(&subject.fs, sub, &before);
		pass(PASS_SLOW);
		tier = facts_of(reading_of(path), &subject.fs);
		read_facts(&subject.fs, sub, &after);
		if (memcmp(&before, &after, sizeof(before)) != 0)
			continue;
		expect_facts(&before, &tier, FACT_INACTIVE);
		if (before.value[FACT_INACTIVE] == tier.value[FACT_INACTIVE])
			return tier;
	}
	expect_facts(&before, &tier, FACTS);
	fail_msg("the files of a stopped task do not stand still");
	return tier;
}

/* --- children -------------------------------------------------------------------------------- */

static void limit_cpu(const char *sub, const char *quota_us)
{
	char max[64];

	if (subject.fs.throttle_from == HIERARCHY_CPU) {
		assert_true(cgroup_fixture_write(fixture, HIERARCHY_CPU, sub, "cpu.cfs_quota_us",
						 quota_us));
	} else if (subject.fs.throttle_from == HIERARCHY_UNIFIED) {
		snprintf(max, sizeof(max), "%s 100000", quota_us);
		assert_true(cgroup_fixture_write(fixture, HIERARCHY_UNIFIED, sub, "cpu.max", max));
	}
}

static void limit_memory(const char *sub, const char *bytes)
{
	if (subject.fs.memory_from == HIERARCHY_MEMORY)
		assert_true(cgroup_fixture_write(fixture, HIERARCHY_MEMORY, sub,
						 "memory.limit_in_bytes", bytes));
	else if (subject.fs.memory_from == HIERARCHY_UNIFIED)
		assert_true(
			cgroup_fixture_write(fixture, HIERARCHY_UNIFIED, sub, "memory.max", bytes));
}

/* A child with limits that ran into its quota a few times, stopped. */
static void make_stopped_child(const char *sub)
{
	struct cgroup_child child = {.hold_bytes = 24 * MIB, .cache_bytes = 8 * MIB, .spin = true};
	int h = subject.fs.throttle_from;
	pid_t pid;

	cgroup_fixture_make(fixture, cgroup_fixture_all(fixture), sub);
	limit_cpu(sub, "20000");
	limit_memory(sub, "67108864");
	pid = cgroup_fixture_spawn(fixture, sub, &child);
	for (int i = 0; i < 500 && number(h, sub, "cpu.stat", "nr_throttled ", 1) < 3; i++)
		nap();
	cgroup_fixture_stop(pid);
}

/* --- tests ----------------------------------------------------------------------------------- */

/* Pages of a file that lives in memory are on no list of file pages. */
static bool files_are_on_disk(void)
{
	struct statfs st;

	return !statfs("/var/tmp", &st) && st.f_type != TMPFS_MAGIC && st.f_type != RAMFS_MAGIC;
}

static void expect_child_equal(enum sampler_tier tier)
{
	struct facts f;

	scan();
	open_tier(tier);
	f = expect_equal_to_files("child");
	/* Against values that are absent or zero on both sides. */
	if (subject.fs.cpu_from >= 0)
		assert_true(f.value[FACT_CPU] > 0);
	if (subject.fs.memory_from >= 0) {
		assert_true(f.value[FACT_MEMORY] >= 32 * MIB);
		if (files_are_on_disk())
			assert_true(f.value[FACT_INACTIVE] > 0);
		assert_int_equal(f.value[FACT_LIMIT], 64 * MIB);
	}
	if (subject.fs.throttle_from >= 0) {
		assert_int_equal(f.value[FACT_QUOTA], 20 * 1000 * 1000);
		assert_int_equal(f.value[FACT_PERIOD], 100 * 1000 * 1000);
		assert_true(f.value[FACT_THROTTLED_PERIODS] >= 3);
		assert_true(f.value[FACT_THROTTLED] > 0);
	}
	if (subject.fs.root_fd[HIERARCHY_UNIFIED] >= 0 && f.value[FACT_PSI_CPU] != ABSENT)
		assert_true(f.value[FACT_PSI_CPU] > 0);
}

static void equal_to_files(enum sampler_tier tier)
{
	need_fixture();
	make_stopped_child("child");
	expect_child_equal(tier);
}

static void bpf_equals_files(void **state)
{
	(void)state;
	equal_to_files(TIER_T1);
}

static void files_equal_files(void **state)
{
	(void)state;
	equal_to_files(TIER_T3);
}

static void equal_on_unified(enum sampler_tier tier)
{
	need_fixture();
	if (subject.fs.root_fd[HIERARCHY_UNIFIED] < 0 || subject.fs.cpu_from == HIERARCHY_UNIFIED) {
		print_message("SKIP: no v2 tree besides v1 hierarchies here\n");
		skip();
	}
	make_stopped_child("child");
	keep_unified_only(&subject.fs);
	expect_child_equal(tier);
}

static void bpf_equals_files_on_unified(void **state)
{
	(void)state;
	equal_on_unified(TIER_T1);
}

static void files_equal_files_on_unified(void **state)
{
	(void)state;
	equal_on_unified(TIER_T3);
}

static void oom_kills_are_counted(void **state)
{
	struct cgroup_child child = {.hold_bytes = 64 * MIB};

	(void)state;
	need_fixture();
	if (subject.fs.memory_from < 0) {
		print_message("SKIP: no memory controller\n");
		skip();
	}
	cgroup_fixture_make(fixture, cgroup_fixture_all(fixture), "greedy");
	limit_memory("greedy", "16777216");
	cgroup_fixture_spawn(fixture, "greedy", &child);
	scan();
	open_tier(TIER_T1);
	assert_int_equal(expect_equal_to_files("greedy").value[FACT_OOM], 1);
}

static void no_limits_are_none(void **state)
{
	const struct reading *r;

	(void)state;
	need_fixture();
	cgroup_fixture_make(fixture, cgroup_fixture_all(fixture), "free");
	scan();
	open_tier(TIER_T1);
	pass(PASS_SLOW);
	r = reading_of("/free");
	if (r->have & HAVE_CPU_LIMIT)
		assert_int_equal(r->cpu_quota_ns, LIMIT_NONE);
	if (r->have & HAVE_MEMORY_LIMIT)
		assert_int_equal(r->mem_limit_bytes, LIMIT_NONE);
}

static void fast_pass_keeps_slow_members(void **state)
{
	struct reading slow, fast;

	(void)state;
	need_fixture();
	make_stopped_child("child");
	scan();
	open_tier(TIER_T1);
	pass(PASS_SLOW);
	slow = *reading_of("/child");
	pass(PASS_FAST);
	fast = *reading_of("/child");
	assert_int_equal(fast.have, slow.have);
	assert_true(fast.have & (HAVE_CPU | HAVE_MEMORY));
	assert_int_equal(fast.cpu_quota_ns, slow.cpu_quota_ns);
	assert_int_equal(fast.inactive_file_bytes, slow.inactive_file_bytes);
}

static void unknown_and_missing_are_told(void **state)
{
	unsigned int all;
	struct pass_result result;

	(void)state;
	need_fixture();
	all = cgroup_fixture_all(fixture);
	cgroup_fixture_make(fixture, all, "old");
	scan();
	open_tier(TIER_T1);
	result = pass(PASS_FAST);
	assert_int_equal(result.records, topology_count(subject.topology));
	assert_int_equal(result.unknown + result.missing + result.overflow, 0);
	cgroup_fixture_make(fixture, all, "new");
	result = pass(PASS_FAST);
	assert_true(result.unknown > 0);
	assert_int_equal(result.missing, 0);
	cgroup_fixture_remove(fixture, all, "new");
	cgroup_fixture_remove(fixture, all, "old");
	result = pass(PASS_FAST);
	assert_int_equal(result.unknown, 0);
	assert_true(result.missing > 0);
	scan();
	result = pass(PASS_SLOW);
	assert_int_equal(result.unknown + result.missing, 0);
}

/* Others on this machine make and remove cgroups too: quiet is waited for, change is not. */
static bool becomes_quiet(void)
{
	for (int i = 0; i < 500; i++, nap()) {
		if (!sampler_topology_changed(subject.sampler))
			return true;
	}
	return false;
}

static void changes_are_noticed(void **state)
{
	unsigned int one;

	(void)state;
	need_fixture();
	one = cgroup_fixture_all(fixture) & -cgroup_fixture_all(fixture);
	open_tier(TIER_T1);
	assert_true(becomes_quiet());
	cgroup_fixture_make(fixture, one, "child");
	assert_true(sampler_topology_changed(subject.sampler));
	assert_true(becomes_quiet());
	cgroup_fixture_remove(fixture, one, "child");
	assert_true(sampler_topology_changed(subject.sampler));
	assert_true(becomes_quiet());
}

static int open_small(void **state, const struct cgroupfs *fs, struct reason *reason)
{
	return sampler_bpf_open(state, fs, 4, reason);
}

static void overflow_is_counted(void **state)
{
	static struct sampler_ops small; /* outlives the test: teardown closes */
	struct reason why = {""};
	struct pass_result result;
	char name[16];

	(void)state;
	need_fixture();
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "child%d", i);
		cgroup_fixture_make(fixture, cgroup_fixture_all(fixture), name);
	}
	scan();
	small = sampler_bpf_ops;
	small.open = open_small;
	if (sampler_open_ops(&subject.sampler, &small, &subject.fs, &why)) {
		print_message("SKIP: %s\n", why.text);
		skip();
	}
	for (int i = 0; i < 2; i++) {
		result = pass(i ? PASS_SLOW : PASS_FAST);
		assert_int_equal(result.overflow, 9 - 4);
		assert_int_equal(result.records, 4);
		assert_int_equal(result.unknown, 0);
		assert_true(result.missing > 0);
	}
}

/* --- the choice ------------------------------------------------------------------------------ */

enum lie { LIE_NO_CPU, LIE_CPU_ZERO, LIE_MEMORY_MORE, LIE_NO_MEMORY, LIE_NOT_MET, LIE_EMPTY, LIES };

static const char *const lie_reasons[LIES] = {
	[LIE_NO_CPU] = "no CPU",
	[LIE_CPU_ZERO] = "CPU ns 0,",
	[LIE_MEMORY_MORE] = "memory bytes",
	[LIE_NO_MEMORY] = "no memory",
	[LIE_NOT_MET] = "did not meet",
	[LIE_EMPTY] = "met no cgroup",
};

static enum lie lie; /* the ops have no argument of ours */

static void tell_lie(struct cgroup *cgroup, struct pass_result *result)
{
	struct reading *r = &cgroup->reading;

	switch (lie) {
	case LIE_NO_CPU:
		r->have &= ~(uint32_t)HAVE_CPU;
		break;
	case LIE_CPU_ZERO:
		r->cpu_ns = 0;
		break;
	case LIE_MEMORY_MORE:
		r->mem_bytes += 4096;
		break;
	case LIE_NO_MEMORY:
		r->have &= ~(uint32_t)HAVE_MEMORY;
		break;
	case LIE_NOT_MET:
		cgroup->seen_pass--;
		break;
	case LIE_EMPTY:
		result->records = 0;
		break;
	case LIES:
		break;
	}
}

static int lying_pass(void *state, struct topology *t, enum pass_kind kind, uint64_t number_of_pass,
		      struct pass_result *result, struct reason *reason)
{
	int err = sampler_files_ops.pass(state, t, kind, number_of_pass, result, reason);

	for (size_t i = 0; i < topology_count(t); i++)
		tell_lie(topology_at(t, i), result);
	return err;
}

static void liars_are_rejected(void **state)
{
	struct sampler_ops liar = sampler_files_ops;
	const struct sampler_ops *const both[] = {&liar, &sampler_files_ops};

	(void)state;
	need_fixture();
	make_stopped_child("child");
	scan();
	liar.tier = TIER_T0;
	liar.pass = lying_pass;
	for (lie = 0; lie < LIES; lie++) {
		struct reason why = {""};
		struct sampler *s = NULL;

		if (subject.fs.memory_from < 0 && (lie == LIE_MEMORY_MORE || lie == LIE_NO_MEMORY))
			continue;
		assert_int_equal(sampler_choose_ops(&s, both, 1, &subject.fs, subject.topology,
						    &why),
				 -EBADMSG);
		assert_null(s);
		if (!strstr(why.text, lie_reasons[lie]) || !strstr(why.text, "tier T0"))
			fail_msg("lie %d: %s", lie, why.text);
		assert_int_equal(
			sampler_choose_ops(&s, both, 2, &subject.fs, subject.topology, &why), 0);
		assert_int_equal(sampler_tier(s), TIER_T3);
		sampler_close(s);
	}
}

/* On the whole machine, busy as it is. */
static void best_tier_is_chosen(void **state)
{
	struct reason why = {""}, whole = {""};
	const struct cgroupfs *fs;
	bool bpf;

	(void)state;
	need_fixture();
	make_stopped_child("child");
	fs = cgroup_fixture_fs(fixture);
	assert_int_equal(cgroupfs_scan(fs, subject.topology, &whole), 0);
	bpf = sampler_open(&subject.sampler, TIER_T1, fs, &why) == 0;
	sampler_close(subject.sampler);
	subject.sampler = NULL;
	if (sampler_choose(&subject.sampler, -1, fs, subject.topology, &whole))
		fail_msg("%s", whole.text);
	assert_int_equal(sampler_tier(subject.sampler), bpf ? TIER_T1 : TIER_T3);
	pass(PASS_SLOW);
	reading_of(cgroup_fixture_path(fixture, "child"));
	sampler_close(subject.sampler);
	assert_int_equal(sampler_choose(&subject.sampler, TIER_T3, fs, subject.topology, &whole),
			 0);
	assert_int_equal(sampler_tier(subject.sampler), TIER_T3);
}

static void tiers_not_built_are_refused(void **state)
{
	struct sampler *s = NULL;
	struct reason why = {""};

	(void)state;
	assert_int_equal(sampler_open(&s, TIER_T0, &subject.fs, &why), -ENOSYS);
	assert_int_equal(sampler_open(&s, TIER_T2, &subject.fs, &why), -ENOSYS);
	assert_int_equal(sampler_choose(&s, TIER_T2, &subject.fs, subject.topology, &why), -ENOSYS);
	assert_string_equal(why.text, "this agent has no tier T2");
}

/* In the child: 0 when opening T1 failed as it must. */
static int open_without_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct reason why = {""};
	struct sampler *s;
	int err;

	if (syscall(SYS_capset, &header, none))
		return 2;
	err = sampler_open(&s, TIER_T1, &subject.fs, &why);
	if (err == -EPERM && strstr(why.text, "CAP_BPF and CAP_PERFMON missing"))
		return 0;
	fprintf(stderr, "opening T1 without capabilities: %d %s\n", err, why.text);
	return 1;
}

static void missing_capability_is_named(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	need_fixture();
	open_tier(TIER_T1); /* else the kernel lacks more than the capability */
	pid = fork();
	if (pid == 0)
		_exit(open_without_capabilities());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bpf_equals_files),
		TEST(files_equal_files),
		TEST(bpf_equals_files_on_unified),
		TEST(files_equal_files_on_unified),
		TEST(oom_kills_are_counted),
		TEST(no_limits_are_none),
		TEST(fast_pass_keeps_slow_members),
		TEST(unknown_and_missing_are_told),
		TEST(changes_are_noticed),
		TEST(overflow_is_counted),
		TEST(liars_are_rejected),
		TEST(best_tier_is_chosen),
		TEST(tiers_not_built_are_refused),
		TEST(missing_capability_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
