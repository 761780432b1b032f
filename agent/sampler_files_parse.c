/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per file, v1 and v2; formats as in the kernel's cgroup-v1 and cgroup-v2 documents.
 * Differences:
 *
 *	swap usage	v2 memory.swap.current; v1 total_swap in memory.stat: memory.memsw less
 *			memory would be of two moments and show memory allocated in between as swap
 *	swap limit	v2 memory.swap.max; v1 memory.memsw.limit_in_bytes (memory and swap) less
 *			memory.limit_in_bytes
 *	pids, PSI	v2 only; on v1 those of the v2 cgroup with the same path
 *
 * A text in another format counts as not measured.
 */
#include "agent/sampler_files_parse.h"

#include "agent/cgroup_text.h"

enum part {
	PART_QUOTA = 1 << 0,
	PART_PERIOD = 1 << 1,
	PART_PSI_CPU = 1 << 2,
	PART_PSI_MEMORY = 1 << 3,
	PART_MEMSW_LIMIT = 1 << 4,
};

static void got(struct files_target *t, uint32_t have, bool valid)
{
	if (valid)
		t->reading->have |= have;
}

static void got_part(struct files_target *t, unsigned int part, bool valid)
{
	if (valid)
		t->parts |= part;
}

/* --- CPU -------------------------------------------------------------------------------------- */

static bool parse_throttle(const char *text, struct reading *r)
{
	return cgroup_text_key(text, "nr_periods", &r->periods) &&
	       cgroup_text_key(text, "nr_throttled", &r->throttled_periods);
}

static void parse_cpu_stat_v1(const char *text, struct files_target *t)
{
	got(t, HAVE_THROTTLE,
	    parse_throttle(text, t->reading) &&
		    cgroup_text_key(text, "throttled_time", &t->reading->throttled_ns));
}

static void parse_cpu_stat_v2(const char *text, struct files_target *t)
{
	struct reading *r = t->reading;
	uint64_t us;

	got(t, HAVE_CPU,
	    cgroup_text_key(text, "usage_usec", &us) && cgroup_text_us_to_ns(us, &r->cpu_ns));
	if (t->kind == PASS_SLOW)
		got(t, HAVE_THROTTLE,
		    parse_throttle(text, r) && cgroup_text_key(text, "throttled_usec", &us) &&
			    cgroup_text_us_to_ns(us, &r->throttled_ns));
}

static void parse_quota_us(const char *text, struct files_target *t)
{
	int64_t us;

	if (!cgroup_text_limit(text, &us))
		return;
	if (us == LIMIT_NONE || __builtin_mul_overflow(us, 1000, &t->reading->cpu_quota_ns))
		t->reading->cpu_quota_ns = LIMIT_NONE;
	t->parts |= PART_QUOTA;
}

static void parse_period_us(const char *text, struct files_target *t)
{
	int64_t us;

	got_part(t, PART_PERIOD,
		 cgroup_text_limit(text, &us) && us > 0 &&
			 !__builtin_mul_overflow(us, 1000, &t->reading->cpu_period_ns));
}

static void parse_cpu_max(const char *text, struct files_target *t)
{
	got_part(t, PART_QUOTA | PART_PERIOD,
		 cgroup_text_cpu_max(text, &t->reading->cpu_quota_ns, &t->reading->cpu_period_ns));
}

/* cpu.max.burst and cpu.cfs_burst_us, from 5.14; 0 without the file. */
static void parse_burst_us(const char *text, struct files_target *t)
{
	uint64_t us, ns;

	if (cgroup_text_number(text, &us) && cgroup_text_us_to_ns(us, &ns) && ns <= INT64_MAX)
		t->reading->cpu_burst_ns = (int64_t)ns;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* memory.min and memory.low: the greater one. */
static void parse_memory_protected(const char *text, struct files_target *t)
{
	struct reading *r = t->reading;
	uint64_t bytes;
	int64_t limit;

	if (!cgroup_text_limit(text, &limit))
		return;
	bytes = limit == LIMIT_NONE ? r->mem_bytes : (uint64_t)limit;
	if (!(r->have & USAGE_PROTECTED) || bytes > r->mem_protected_bytes)
		r->mem_protected_bytes = bytes;
	r->have |= USAGE_PROTECTED;
}

static void parse_memory_stat_v1(const char *text, struct files_target *t)
{
	got(t, HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE,
	    cgroup_text_key(text, "total_inactive_file", &t->reading->inactive_file_bytes));
	/* Absent without swap accounting. */
	got(t, HAVE_SWAP, cgroup_text_key(text, "total_swap", &t->reading->swap_bytes));
}

static void parse_memsw_limit(const char *text, struct files_target *t)
{
	got_part(t, PART_MEMSW_LIMIT, cgroup_text_limit(text, &t->memsw_limit_bytes));
}

/* --- v2 without regard to controllers --------------------------------------------------------- */

static void parse_cpu_pressure(const char *text, struct files_target *t)
{
	got_part(t, PART_PSI_CPU, cgroup_text_pressure(text, "some", &t->reading->psi_cpu_ns));
	got(t, HAVE_PSI_CPU_FULL, cgroup_text_pressure(text, "full", &t->reading->psi_cpu_full_ns));
}

static void parse_memory_pressure(const char *text, struct files_target *t)
{
	got_part(t, PART_PSI_MEMORY, cgroup_text_pressure(text, "some", &t->reading->psi_mem_ns));
	got(t, HAVE_PSI_MEMORY_FULL,
	    cgroup_text_pressure(text, "full", &t->reading->psi_mem_full_ns));
}

static void parse_pids(const char *text, struct files_target *t)
{
	uint64_t pids;

	if (!cgroup_text_number(text, &pids) || pids > UINT32_MAX)
		return;
	t->reading->pids = (uint32_t)pids;
	t->reading->have |= HAVE_PIDS;
}

/* --- the table -------------------------------------------------------------------------------- */

enum { V1 = false, V2 = true };

#define VALUE(resource, version, cadence, file, key, have, member)                                 \
	{                                                                                          \
		FILES_##resource, version, READ_##cadence, file, NULL, key, HAVE_##have,           \
			offsetof(struct reading, member)                                           \
	}
#define PARSE(resource, version, cadence, file, parse)                                             \
	{                                                                                          \
		FILES_##resource, version, READ_##cadence, file, parse, NULL, 0, 0                 \
	}

/* Every number in memory.stat of v2 covers the subtree. */
#define HAVE_INACTIVE_FILE (HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE)

const struct files_source files_sources[FILES_SOURCES] = {
	VALUE(CPU, V1, FAST, "cpuacct.usage", NULL, CPU, cpu_ns),
	PARSE(CPU, V2, FAST, "cpu.stat", parse_cpu_stat_v2),
	VALUE(MEMORY, V1, FAST, "memory.usage_in_bytes", NULL, MEMORY, mem_bytes),
	VALUE(MEMORY, V2, FAST, "memory.current", NULL, MEMORY, mem_bytes),

	PARSE(THROTTLE, V1, SLOW, "cpu.stat", parse_cpu_stat_v1),
	PARSE(MEMORY, V1, SLOW, "memory.stat", parse_memory_stat_v1),
	VALUE(MEMORY, V1, SLOW, "memory.oom_control", "oom_kill", OOM, oom_kills),
	VALUE(MEMORY, V2, SLOW, "memory.stat", "inactive_file", INACTIVE_FILE, inactive_file_bytes),
	VALUE(MEMORY, V2, SLOW, "memory.events", "oom_kill", OOM, oom_kills),
	VALUE(MEMORY, V2, SLOW, "memory.swap.current", NULL, SWAP, swap_bytes),
	PARSE(GENERAL, V2, SLOW, "cpu.pressure", parse_cpu_pressure),
	PARSE(GENERAL, V2, SLOW, "memory.pressure", parse_memory_pressure),
	PARSE(GENERAL, V2, SLOW, "pids.current", parse_pids),

	PARSE(THROTTLE, V1, LIMITS, "cpu.cfs_quota_us", parse_quota_us),
	PARSE(THROTTLE, V1, LIMITS, "cpu.cfs_period_us", parse_period_us),
	PARSE(THROTTLE, V1, LIMITS, "cpu.cfs_burst_us", parse_burst_us),
	PARSE(THROTTLE, V2, LIMITS, "cpu.max", parse_cpu_max),
	PARSE(THROTTLE, V2, LIMITS, "cpu.max.burst", parse_burst_us),
	VALUE(MEMORY, V1, LIMITS, "memory.limit_in_bytes", NULL, MEMORY_LIMIT, mem_limit_bytes),
	PARSE(MEMORY, V1, LIMITS, "memory.memsw.limit_in_bytes", parse_memsw_limit),
	VALUE(MEMORY, V2, LIMITS, "memory.max", NULL, MEMORY_LIMIT, mem_limit_bytes),
	VALUE(MEMORY, V2, LIMITS, "memory.high", NULL, MEMORY_HIGH, mem_high_bytes),
	PARSE(MEMORY, V2, LIMITS, "memory.min", parse_memory_protected),
	PARSE(MEMORY, V2, LIMITS, "memory.low", parse_memory_protected),
	VALUE(MEMORY, V2, LIMITS, "memory.swap.max", NULL, SWAP_LIMIT, swap_limit_bytes),
	VALUE(GENERAL, V2, LIMITS, "pids.max", NULL, PIDS_LIMIT, pids_limit),
};

void files_parse(const struct files_source *source, const char *text, struct files_target *t)
{
	void *to = (char *)t->reading + source->offset;

	if (source->parse)
		source->parse(text, t);
	else if (source->key)
		got(t, source->have, cgroup_text_key(text, source->key, to));
	else if (source->cadence == READ_LIMITS)
		got(t, source->have, cgroup_text_limit(text, to));
	else
		got(t, source->have, cgroup_text_number(text, to));
}

int files_hierarchy(const struct cgroupfs *fs, const struct files_source *source)
{
	int h = HIERARCHY_UNIFIED;

	if (source->resource == FILES_CPU)
		h = fs->cpu_from;
	else if (source->resource == FILES_THROTTLE)
		h = fs->throttle_from;
	else if (source->resource == FILES_MEMORY)
		h = fs->memory_from;
	if (h < 0 || fs->root_fd[h] < 0)
		return -1;
	return (h == HIERARCHY_UNIFIED) == source->v2 ? h : -1;
}

void files_begin_limits(struct files_target *t)
{
	t->reading->have &= ~FILES_LIMITS;
	t->reading->cpu_burst_ns = 0;
}

void files_finish(struct files_target *t)
{
	struct reading *r;

	got(t, HAVE_CPU_LIMIT, (t->parts & PART_QUOTA) && (t->parts & PART_PERIOD));
	got(t, HAVE_PSI, (t->parts & PART_PSI_CPU) && (t->parts & PART_PSI_MEMORY));
	/* The machine has no such state; from 5.19 on the kernel prints 0. */
	if (t->root && !t->reading->psi_cpu_full_ns)
		t->reading->have &= ~HAVE_PSI_CPU_FULL;
	r = t->reading;
	if (!(t->parts & PART_MEMSW_LIMIT) || !(r->have & HAVE_MEMORY_LIMIT))
		return;
	/* memsw is at or above memory, but both may change between the readings. */
	if (t->memsw_limit_bytes == LIMIT_NONE || r->mem_limit_bytes == LIMIT_NONE)
		r->swap_limit_bytes = LIMIT_NONE;
	else if (t->memsw_limit_bytes >= r->mem_limit_bytes)
		r->swap_limit_bytes = t->memsw_limit_bytes - r->mem_limit_bytes;
	else
		return;
	r->have |= HAVE_SWAP_LIMIT;
}
