/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first tier, of T0 to T3 (sampler_tier.h), whose values agree with the kernel's files is chosen.
 *
 * A tier that opens may be wrong: an unresolved address reads as 0, a walk ends early, a private
 * namespace hides cgroups. Each candidate makes slow passes, and the values of a few cgroups are
 * compared:
 *
 *	read files --> pass --> read files	lesser file value <= pass value <= greater file
 *						value
 *
 * Memory may rise and fall between two reads, so a cgroup has ATTEMPTS passes to agree in one of
 * them. The compared cgroups are leaves (own use = use of the subtree) with some use (0 = 0 proves
 * little), first those with processes, which every tier visits. Missing files (no controller, cgroup
 * removed) are not compared, nor are cgroups without processes for a tier that goes by processes.
 */
#include "agent/sampler.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/cgroup_text.h"
#include "agent/sampler_tier.h"
#include "shared/buf.h"
#include "shared/log.h"

enum { SAMPLES = 8, LEAVES_EXAMINED = 512, ATTEMPTS = 10 };

/* Pass numbers apart from the agent's, which count from 1; each tier has its own. */
#define SELF_TEST_PASS (1ULL << 63)

/* --- what is compared ------------------------------------------------------------------------- */

enum version { V1, V2 };

/* A number in a file of a cgroup. */
struct place {
	const char *file;
	const char *key; /* of a "key value" line; NULL: the file is the number, or a limit */
	int64_t unit; /* of the number, in ns or bytes */
};

struct fact {
	const char *what;
	uint32_t have; /* enum reading_have */
	size_t offset; /* in struct reading, of 64 bits */
	struct place place[2]; /* by version */
};

#define FACT(what, have, member, ...)                                                              \
	{                                                                                          \
		what, HAVE_##have, offsetof(struct reading, member),                               \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
/* clang-format off */
static const struct fact facts[] = {
	FACT("CPU ns", CPU, cpu_ns, {"cpuacct.usage", NULL, 1}, {"cpu.stat", "usage_usec", 1000}),
	FACT("memory bytes", MEMORY, mem_bytes, {"memory.usage_in_bytes", NULL, 1}, {"memory.current", NULL, 1}),
	FACT("memory limit", MEMORY_LIMIT, mem_limit_bytes, {"memory.limit_in_bytes", NULL, 1}, {"memory.max", NULL, 1}),
	FACT("CPU quota ns", CPU_LIMIT, cpu_quota_ns, {"cpu.cfs_quota_us", NULL, 1000}, {"cpu.max", NULL, 1000}),
	FACT("CPU periods", THROTTLE, periods, {"cpu.stat", "nr_periods", 1}, {"cpu.stat", "nr_periods", 1}),
	FACT("throttled ns", THROTTLE, throttled_ns, {"cpu.stat", "throttled_time", 1}, {"cpu.stat", "throttled_usec", 1000}),
};
/* clang-format on */

enum { FACTS = sizeof(facts) / sizeof(facts[0]), FACT_CPU = 0, FACT_MEMORY = 1 };

/* The hierarchy of a fact, or -1. */
static int hierarchy_of(const struct cgroupfs *fs, const struct fact *fact)
{
	if (fact->have == HAVE_CPU)
		return fs->cpu_from;
	return fact->have == HAVE_MEMORY || fact->have == HAVE_MEMORY_LIMIT ? fs->memory_from
									    : fs->throttle_from;
}

static const struct place *place_of(const struct cgroupfs *fs, const struct fact *fact)
{
	return &fact->place[hierarchy_of(fs, fact) == HIERARCHY_UNIFIED ? V2 : V1];
}

/* --- the files -------------------------------------------------------------------------------- */

static bool parse(const char *text, const char *key, int64_t *value)
{
	char limit[32];
	uint64_t number;

	if (key) {
		if (!cgroup_text_key(text, key, &number))
			return false;
		*value = (int64_t)number;
		return true;
	}
	/* The first word: cpu.max has the period behind it. */
	snprintf(limit, sizeof(limit), "%.*s\n", (int)strcspn(text, " \n"), text);
	return cgroup_text_limit(limit, value);
}

static bool read_fact(const struct cgroupfs *fs, const struct fact *fact, const char *path,
		      int64_t *value)
{
	const struct place *place = place_of(fs, fact);
	int hierarchy = hierarchy_of(fs, fact);
	char text[1024];

	if (hierarchy < 0 ||
	    cgroupfs_read(fs, hierarchy, path, place->file, text, sizeof(text)) <= 0 ||
	    !parse(text, place->key, value))
		return false;
	if (*value != LIMIT_NONE)
		*value *= place->unit;
	return true;
}

static bool has_processes(const struct cgroupfs *fs, int hierarchy, const char *path)
{
	char text[16];

	return hierarchy >= 0 &&
	       cgroupfs_read(fs, hierarchy, path, "cgroup.procs", text, sizeof(text)) > 0;
}

/* --- the samples ------------------------------------------------------------------------------ */

/* The values of the files around a pass. */
struct bounds {
	bool known;
	int64_t before, after;
};

struct sample {
	size_t index; /* in the topology */
	bool populated[HIERARCHIES]; /* has processes, before and after the pass */
	struct bounds bounds[FACTS];
	bool agreed;
};

struct self_test {
	const struct cgroupfs *fs;
	struct topology *topology;
	bool by_processes; /* the tier meets only cgroups with processes below them */
	struct sample samples[SAMPLES];
	size_t count;
};

static bool uses_something(const struct self_test *test, const char *path)
{
	int64_t cpu = 0, memory = 0;

	read_fact(test->fs, &facts[FACT_CPU], path, &cpu);
	read_fact(test->fs, &facts[FACT_MEMORY], path, &memory);
	return cpu > 0 || memory > 0;
}

static bool is_populated(const struct self_test *test, const char *path)
{
	for (int i = 0; i < FACTS; i++) {
		if (has_processes(test->fs, hierarchy_of(test->fs, &facts[i]), path))
			return true;
	}
	return false;
}

static void add_sample(struct self_test *test, size_t index)
{
	if (test->count < SAMPLES)
		test->samples[test->count++] = (struct sample){.index = index};
}

/* Leaves with some use, first those with processes; without any, the first leaf. */
static void pick_samples(struct self_test *test)
{
	struct topology *t = test->topology;
	size_t idle[SAMPLES], idle_count = 0, leaves = 0, first = 0;

	for (size_t i = 0; i < topology_count(t) && test->count < SAMPLES; i++) {
		const struct cgroup *cgroup = topology_at(t, i);

		if (cgroup->children)
			continue;
		if (++leaves == 1)
			first = i;
		if (leaves > LEAVES_EXAMINED)
			break;
		if (!uses_something(test, cgroup->path))
			continue;
		if (is_populated(test, cgroup->path))
			add_sample(test, i);
		else if (idle_count < SAMPLES)
			idle[idle_count++] = i;
	}
	for (size_t i = 0; i < idle_count; i++)
		add_sample(test, idle[i]);
	if (!test->count && leaves)
		add_sample(test, first);
}

static void read_before(const struct self_test *test, struct sample *sample)
{
	const char *path = topology_at(test->topology, sample->index)->path;

	for (int h = 0; h < HIERARCHIES; h++)
		sample->populated[h] = has_processes(test->fs, h, path);
	for (int i = 0; i < FACTS; i++) {
		struct bounds *bounds = &sample->bounds[i];

		bounds->known = read_fact(test->fs, &facts[i], path, &bounds->before);
	}
}

/* Whether the directory is that of the topology: the path may have been removed and made again. */
static bool is_same(const struct cgroupfs *fs, int hierarchy, const struct cgroup *cgroup)
{
	char name[ENTITY_NAME_MAX + 2];
	struct stat st;

	snprintf(name, sizeof(name), ".%s", cgroup->path);
	return fstatat(fs->root_fd[hierarchy], name, &st, 0) == 0 &&
	       st.st_ino == cgroup->id[hierarchy];
}

static void read_after(const struct self_test *test, struct sample *sample)
{
	const struct cgroup *cgroup = topology_at(test->topology, sample->index);
	const char *path = cgroup->path;

	for (int h = 0; h < HIERARCHIES; h++)
		sample->populated[h] &= has_processes(test->fs, h, path);
	for (int i = 0; i < FACTS; i++) {
		struct bounds *bounds = &sample->bounds[i];

		bounds->known = bounds->known &&
				read_fact(test->fs, &facts[i], path, &bounds->after) &&
				is_same(test->fs, hierarchy_of(test->fs, &facts[i]), cgroup);
	}
}

/* --- the comparison --------------------------------------------------------------------------- */

/* The value of a fact in a reading, rounded to the file's unit. */
static int64_t value_of(const struct self_test *test, const struct fact *fact,
			const struct reading *r)
{
	int64_t value, unit = place_of(test->fs, fact)->unit;

	memcpy(&value, (const char *)r + fact->offset, sizeof(value));
	return value == LIMIT_NONE ? value : value - value % unit;
}

/* Whether the tier must have met it. */
static bool is_due(const struct self_test *test, const struct sample *sample, int i)
{
	if (!sample->bounds[i].known)
		return false;
	return !test->by_processes || sample->populated[hierarchy_of(test->fs, &facts[i])];
}

/* The reason is set if they disagree. */
static bool agrees(const struct self_test *test, const struct sample *sample, int i,
		   const struct reading *r, struct error *error)
{
	const struct bounds *b = &sample->bounds[i];
	int64_t low = b->before < b->after ? b->before : b->after;
	int64_t high = b->before < b->after ? b->after : b->before;
	int64_t value = value_of(test, &facts[i], r);
	bool have = r->have & facts[i].have;

	if (!b->known || (have && value >= low && value <= high))
		return true;
	if (!have && !is_due(test, sample, i))
		return true;
	if (have)
		error_set(error,
			  "%s %" PRId64 ", but the kernel's file says %" PRId64 " to %" PRId64,
			  facts[i].what, value, low, high);
	else
		error_set(error, "no %s, but the kernel's file says %" PRId64, facts[i].what, low);
	return false;
}

static bool all_agree(const struct self_test *test, const struct sample *sample,
		      const struct reading *r, struct error *error)
{
	for (int i = 0; i < FACTS; i++) {
		if (!agrees(test, sample, i, r, error))
			return false;
	}
	return true;
}

static bool sample_agrees(const struct self_test *test, const struct sample *sample, uint64_t pass,
			  struct error *error)
{
	const struct cgroup *cgroup = topology_at(test->topology, sample->index);
	bool due = false, agreed = false;

	for (int i = 0; i < FACTS; i++)
		due |= is_due(test, sample, i);
	/* The root's files have values of the whole machine from other sources. */
	if (strcmp(cgroup->path, "/") == 0 || !due)
		return true;
	if (cgroup->seen_pass == pass)
		agreed = all_agree(test, sample, &cgroup->reading, error);
	else
		error_set(error, "the pass did not meet it%s",
			  test->by_processes ? ", nor the processes in it, as in a private pid "
					       "namespace"
					     : "");
	if (!agreed)
		error_prefix(error, "self-test: %s", cgroup->path);
	return agreed;
}

/*
 * One pass, compared for cgroups that have not agreed yet: 0: all have; -EBADMSG; or the error of
 * the pass.
 */
static int attempt(struct self_test *test, struct sampler *sampler, uint64_t pass,
		   struct error *error)
{
	struct pass_result result;
	int err;

	for (size_t i = 0; i < test->count; i++)
		read_before(test, &test->samples[i]);
	err = sampler_pass(sampler, test->topology, PASS_SLOW, pass, &result, error);
	if (err)
		return err;
	if (!result.records)
		return error_fail(error, -EBADMSG, "self-test: a pass met no cgroup");
	for (size_t i = 0; i < test->count; i++) {
		struct sample *sample = &test->samples[i];

		if (sample->agreed)
			continue;
		read_after(test, sample);
		sample->agreed = sample_agrees(test, sample, pass, error);
		if (!sample->agreed)
			err = -EBADMSG;
	}
	return err;
}

static int self_test(struct sampler *sampler, const struct sampler_ops *ops,
		     const struct cgroupfs *fs, struct topology *t, struct error *error)
{
	struct self_test test = {.fs = fs, .topology = t, .by_processes = ops->by_processes};
	uint64_t first = SELF_TEST_PASS + ATTEMPTS * (uint64_t)ops->tier;
	int err = -EBADMSG;

	pick_samples(&test);
	for (uint64_t i = 0; i < ATTEMPTS && err == -EBADMSG; i++)
		err = attempt(&test, sampler, first + i, error);
	return err;
}

/* --- the choice ------------------------------------------------------------------------------- */

static int open_tested(struct sampler **s, const struct sampler_ops *ops, const struct cgroupfs *fs,
		       struct topology *t, struct error *error)
{
	struct sampler *candidate;
	int err = sampler_open_ops(&candidate, ops, fs, error);

	if (err)
		return err;
	err = self_test(candidate, ops, fs, t, error);
	if (err)
		sampler_close(candidate);
	else
		*s = candidate;
	return err;
}

/* "; T0 cannot be used: ..; T1, T2 cannot be used: ..", equal reasons together. */
static void add_refusals(struct buf *line, const struct sampler_ops *const *ops,
			 const struct error *why, size_t refused)
{
	const char *before = "; ";

	for (size_t i = 0; i < refused; i++) {
		bool alike = i + 1 < refused && !strcmp(why[i].text, why[i + 1].text);

		buf_printf(line, "%s%s", before, sampler_tier_name(ops[i]->tier));
		if (!alike)
			buf_printf(line, " cannot be used: %s", why[i].text);
		before = alike ? ", " : "; ";
	}
}

/* One line; a warning only if no tier with BPF works. None if the only tier fails: that is returned. */
static void log_choice(const struct sampler_ops *const *ops, const struct error *why,
		       size_t refused, bool found)
{
	bool fallen = refused > 0 && (!found || ops[refused]->tier == TIER_T3);
	struct buf line = BUF_INIT;

	if (found)
		buf_printf(&line, "sampling by tier %s", sampler_tier_name(ops[refused]->tier));
	else
		buf_add_str(&line, "no sampling tier works");
	add_refusals(&line, ops, why, refused);
	if (found || fallen)
		(fallen ? log_warn : log_info)("%s", line.data);
	buf_fini(&line);
}

int sampler_choose_ops(struct sampler **s, const struct sampler_ops *const *ops, size_t count,
		       const struct cgroupfs *fs, struct topology *t, struct error *error)
{
	struct error why[SAMPLER_TIERS];
	int err = -ENOSYS;
	size_t i;

	assert(count <= SAMPLER_TIERS);
	for (i = 0; i < count; i++) {
		why[i].text[0] = '\0';
		err = open_tested(s, ops[i], fs, t, &why[i]);
		if (!err)
			break;
		error_set(error, "sampling tier %s: %s", sampler_tier_name(ops[i]->tier),
			  why[i].text);
	}
	/* Without a tier the reason is that of the last one. */
	if (count)
		log_choice(ops, why, err ? count - 1 : i, !err);
	return err;
}

int sampler_choose(struct sampler **s, int only, const struct cgroupfs *fs, struct topology *t,
		   struct error *error)
{
	if (only < 0)
		return sampler_choose_ops(s, sampler_all_ops, SAMPLER_TIERS, fs, t, error);
	assert(only < SAMPLER_TIERS);
	return sampler_choose_ops(s, &sampler_all_ops[only], 1, fs, t, error);
}

int sampler_choose_below(struct sampler **s, enum sampler_tier failed, const struct cgroupfs *fs,
			 struct topology *t, struct error *error)
{
	size_t first = (size_t)failed + 1;

	assert(first < SAMPLER_TIERS);
	return sampler_choose_ops(s, &sampler_all_ops[first], SAMPLER_TIERS - first, fs, t, error);
}
