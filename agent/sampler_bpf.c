/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiers T0, T1 and T2: the kernel walks over the cgroups by one of three methods
 * (sampler_bpf_walk.c), and the records are read from mapped memory.
 *
 *	pass --> for each hierarchy with a wanted value:
 *			set blocks, cursor = 0
 *			the kernel walks, bpf/read.h writes records
 *			records[0..cursor) --> topology_find(id, index of the last pass) --> reading
 *
 *	fast and slow	CPU time from cpu_from, memory usage from memory_from
 *	slow only	limits, swap, inactive file pages, OOM kills from memory_from; quota and
 *			throttling from throttle_from; pids and PSI from the v2 hierarchy, which may
 *			have the same paths on a v1 machine (pids are absent there: the agent reads
 *			no v1 pids hierarchy)
 *
 * A brief pass leaves out the hierarchies with slow values only, two of four on a v1 machine: quota
 * and throttling, and PSI. Throttled time is subtracted from PSI, so both are left out or none.
 *
 * The kernel writes removed cgroups into a ring. A record whose check does not match its number
 * (removal_check()) is not written yet or overwritten: it is read again later, and counts as lost
 * once REMOVALS_MAX newer ones have come.
 *
 * What can fail: opening; a walk fails or meets no cgroup, which ends the tier. T2 does not meet
 * cgroups without a process below them: they keep their last reading, and a pass cannot miss one.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler_bpf.h"
#include "agent/sampler_tier.h"
#include "shared/mem.h"

struct sampler_bpf {
	/* fixed after open */
	const struct sampler_bpf_method *method;
	struct sampler_bpf_object object;
	struct sampler_bpf_walks walks;
	uint32_t blocks[HIERARCHIES]; /* enum record_block of a slow pass */
	unsigned int left_out; /* hierarchies that a brief pass leaves out, as bits 1 << h */
	uint32_t kept; /* enum reading_have: the values of these */
	uint64_t page_bytes;

	/* Position in the walk -> index in the topology; owned, as long as the longest walk. */
	int *hint[HIERARCHIES];
	uint32_t hints[HIERARCHIES]; /* how many */
	uint64_t generation; /* of cgroups made and removed, at the last call */
	uint64_t taken; /* removals */
};

/* --- opening --------------------------------------------------------------------------------- */

/* Returns the hierarchies to read, as bits 1 << h. */
static unsigned int choose_blocks(struct sampler_bpf *b, const struct cgroupfs *fs)
{
	unsigned int hierarchies = 0;

	if (fs->cpu_from >= 0)
		b->blocks[fs->cpu_from] |=
			fs->cpu_from == HIERARCHY_UNIFIED ? BLOCK_CPU_LOCAL : BLOCK_CPUACCT;
	if (fs->memory_from >= 0) {
		b->blocks[fs->memory_from] |= BLOCK_MEMORY | BLOCK_MEMORY_MORE;
		b->blocks[fs->memory_from] |=
			fs->memory_from == HIERARCHY_UNIFIED ? BLOCK_MEMORY_V2 : BLOCK_MEMORY_V1;
	}
	if (fs->throttle_from >= 0)
		b->blocks[fs->throttle_from] |= BLOCK_BANDWIDTH;
	if (fs->root_fd[HIERARCHY_UNIFIED] >= 0)
		b->blocks[HIERARCHY_UNIFIED] |= BLOCK_PIDS | BLOCK_PSI;
	for (int h = 0; h < HIERARCHIES; h++)
		hierarchies |= b->blocks[h] ? 1U << h : 0;
	return hierarchies;
}

static bool is_slow_only(const struct sampler_bpf *b, int h)
{
	return b->blocks[h] && !(b->blocks[h] & ~(uint32_t)BLOCKS_SLOW);
}

/* Memory and CPU time are fast values, so only these two hierarchies may have slow ones alone. */
static void choose_left_out(struct sampler_bpf *b, const struct cgroupfs *fs)
{
	const uint32_t throttle = HAVE_THROTTLE | HAVE_CPU_LIMIT;
	unsigned int slow_only = 1U << HIERARCHY_UNIFIED;

	if (!is_slow_only(b, HIERARCHY_UNIFIED))
		return;
	if (fs->throttle_from >= 0 && !is_slow_only(b, fs->throttle_from))
		return;
	b->kept = HAVE_PIDS | HAVE_PIDS_LIMIT | HAVE_PSI | HAVE_PSI_CPU_FULL | HAVE_PSI_MEMORY_FULL;
	if (fs->throttle_from >= 0) {
		slow_only |= 1U << fs->throttle_from;
		b->kept |= throttle;
	}
	b->left_out = slow_only;
}

static int attach(struct sampler_bpf *b, const struct cgroupfs *fs, struct error *error)
{
	for (int h = 0; h < HIERARCHIES; h++) {
		int err;

		if (!b->blocks[h])
			continue;
		err = b->method->attach(&b->walks, &b->object, h, fs->root_fd[h]);
		if (err)
			return bpf_reason_explain("cannot attach to a cgroup hierarchy", err,
						  b->method->source.needs, error);
		if (b->method->check)
			err = b->method->check(&b->walks, &b->object, h, error);
		if (err)
			return err;
	}
	return 0;
}

static void close_bpf(void *state)
{
	struct sampler_bpf *b = state;

	if (!b)
		return;
	for (int h = 0; h < HIERARCHIES; h++) {
		bpf_link__destroy(b->walks.link[h]);
		free(b->hint[h]);
	}
	sampler_bpf_object_close(&b->object);
	free(b);
}

static int open_method(void **state, const struct sampler_bpf_method *method,
		       const struct cgroupfs *fs, uint32_t record_limit, struct error *error)
{
	struct sampler_bpf *b = mem_zalloc(1, sizeof(*b));
	unsigned int hierarchies = choose_blocks(b, fs);
	int err;

	b->method = method;
	b->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	choose_left_out(b, fs);
	err = !method->suits || method->suits(hierarchies, error) ? 0 : -ENOTSUP;
	if (!err)
		err = sampler_bpf_object_open(&b->object, &method->source, record_limit,
					      fs->cpu_from == HIERARCHY_UNIFIED, error);
	if (!err)
		err = attach(b, fs, error);
	if (err) {
		close_bpf(b);
		return err;
	}
	*state = b;
	return 0;
}

/* --- from records to readings ---------------------------------------------------------------- */

static void take_fast(const struct sampler_bpf *b, struct reading *r,
		      const struct fast_record *fast)
{
	if (fast->have & RECORD_CPU) {
		r->cpu_ns = fast->cpu_ns;
		r->have |= HAVE_CPU;
	}
	if (fast->have & RECORD_CPU_LOCAL)
		r->have |= HAVE_CPU_LOCAL;
	if (fast->have & RECORD_MEMORY) {
		r->mem_bytes = fast->memory_pages * b->page_bytes;
		r->have |= HAVE_MEMORY;
	}
}

static void take_bandwidth(struct reading *r, const struct fast_record *fast,
			   const struct slow_record *slow)
{
	r->throttled_ns = fast->throttled_ns;
	r->periods = slow->periods;
	r->throttled_periods = slow->throttled_periods;
	r->cpu_quota_ns =
		slow->quota_ns == RECORD_QUOTA_NONE ? LIMIT_NONE : (int64_t)slow->quota_ns;
	r->cpu_period_ns = (int64_t)slow->period_ns;
	r->cpu_burst_ns = (int64_t)slow->burst_ns;
	r->have |= HAVE_THROTTLE | HAVE_CPU_LIMIT;
}

enum unit { NUMBER, PAGES, LIMIT_PAGES };

#define VALUE(from, to, member_from, member_to, unit)                                              \
	{                                                                                          \
		RECORD_##from, HAVE_##to, offsetof(struct slow_record, member_from),               \
			offsetof(struct reading, member_to), unit                                  \
	}

/* 64 bits in both structs. */
static const struct {
	uint32_t from, to; /* enum record_have, enum reading_have */
	size_t record, reading; /* offsets */
	enum unit unit; /* in the record; bytes in the reading */
} slow_values[] = {
	VALUE(MEMORY_LIMIT, MEMORY_LIMIT, limit_pages, mem_limit_bytes, LIMIT_PAGES),
	VALUE(MEMORY_HIGH, MEMORY_HIGH, high_pages, mem_high_bytes, LIMIT_PAGES),
	VALUE(MEMORY_HIGH, PROTECTED, protected_pages, mem_protected_bytes, LIMIT_PAGES),
	VALUE(SWAP, SWAP, swap_pages, swap_bytes, PAGES),
	VALUE(SWAP, SWAP_LIMIT, swap_limit_pages, swap_limit_bytes, LIMIT_PAGES),
	VALUE(INACTIVE_FILE, WORKING_SET, inactive_file_pages, inactive_file_bytes, PAGES),
	VALUE(OOM, OOM, oom_kills, oom_kills, NUMBER),
	VALUE(PSI, PSI, psi_cpu_ns, psi_cpu_ns, NUMBER),
	VALUE(PSI, PSI, psi_memory_ns, psi_mem_ns, NUMBER),
	VALUE(PSI_CPU_FULL, PSI_CPU_FULL, psi_cpu_full_ns, psi_cpu_full_ns, NUMBER),
	VALUE(PSI_MEMORY_FULL, PSI_MEMORY_FULL, psi_memory_full_ns, psi_mem_full_ns, NUMBER),
};

static void take_slow(const struct sampler_bpf *b, struct reading *r,
		      const struct fast_record *fast, const struct slow_record *slow)
{
	/* The greatest pid of a 64-bit kernel; its pids.max shows "max" above that. */
	const uint32_t most_pids = 4 * 1024 * 1024;

	if (fast->have & RECORD_BANDWIDTH)
		take_bandwidth(r, fast, slow);
	for (size_t i = 0; i < sizeof(slow_values) / sizeof(slow_values[0]); i++) {
		uint64_t value;

		if (!(fast->have & slow_values[i].from))
			continue;
		memcpy(&value, (const char *)slow + slow_values[i].record, sizeof(value));
		if (slow_values[i].unit == LIMIT_PAGES && value >= RECORD_PAGES_NONE)
			value = (uint64_t)LIMIT_NONE;
		else if (slow_values[i].unit != NUMBER)
			value *= b->page_bytes;
		memcpy((char *)r + slow_values[i].reading, &value, sizeof(value));
		r->have |= slow_values[i].to;
	}
	if ((r->have & HAVE_PROTECTED) && r->mem_protected_bytes == (uint64_t)LIMIT_NONE)
		r->mem_protected_bytes = r->mem_bytes;
	if (fast->have & RECORD_PIDS) {
		r->pids = slow->pids;
		r->pids_limit =
			slow->pids_limit > most_pids ? LIMIT_NONE : (int64_t)slow->pids_limit;
		r->have |= HAVE_PIDS | HAVE_PIDS_LIMIT;
	}
}

/* --- passes ---------------------------------------------------------------------------------- */

/* Maps the records of a walk and grows their hints. */
static int make_room(struct sampler_bpf *b, int h, uint32_t count, struct error *error)
{
	int err = sampler_bpf_object_reach(&b->object, count, error);

	if (err || b->hints[h] >= count)
		return err;
	b->hint[h] = mem_realloc(b->hint[h], b->object.mapped * sizeof(*b->hint[h]));
	memset(b->hint[h] + b->hints[h], 0, (b->object.mapped - b->hints[h]) * sizeof(*b->hint[h]));
	b->hints[h] = b->object.mapped;
	return 0;
}

/* Walks one hierarchy; returns the number of records, or -errno. */
static int walk(struct sampler_bpf *b, int h, uint32_t blocks, struct error *error)
{
	struct walk_state *state = b->object.state;
	int err;

	state->generation_before = __atomic_load_n(&state->generation, __ATOMIC_ACQUIRE);
	state->blocks = blocks;
	state->cursor = 0;
	state->overflow = 0;
	err = b->method->walk(&b->walks, &b->object, h);
	if (err)
		return error_system(error, err, "a walk over the cgroups failed");
	if (state->cursor == 0 && state->overflow == 0)
		return error_fail(error, -ENODATA, "a walk met no cgroup: %s",
				  b->method->nothing_met);
	err = make_room(b, h, state->cursor, error);
	return err ? err : (int)state->cursor;
}

/* Moves the records of one walk into the readings; returns how many the topology knows. */
static uint32_t take_records(struct sampler_bpf *b, int h, int count, struct topology *t,
			     enum pass_kind kind, uint64_t pass, struct pass_result *result)
{
	uint32_t renewed = sampler_renewed(kind) & ~(kind == PASS_BRIEF ? b->kept : 0), known = 0;

	for (int i = 0; i < count; i++) {
		const struct fast_record *fast = &b->object.fast[i];
		int index = topology_find(t, (enum hierarchy)h, fast->id, b->hint[h][i]);
		struct cgroup *cgroup;

		if (index == CGROUP_NONE)
			continue;
		b->hint[h][i] = index;
		cgroup = topology_at(t, (size_t)index);
		if (sampler_meet(cgroup, renewed, pass))
			result->records++;
		take_fast(b, &cgroup->reading, fast);
		if (kind != PASS_FAST)
			take_slow(b, &cgroup->reading, fast, &b->object.slow[i]);
		known++;
	}
	result->unknown += (uint32_t)count - known;
	return known;
}

/* The number of cgroups of the walked hierarchies in the topology. */
static uint32_t count_expected(struct topology *t, uint32_t walked)
{
	uint32_t expected = 0;

	for (size_t i = 0; i < topology_count(t); i++) {
		const struct cgroup *cgroup = topology_at(t, i);

		for (int h = 0; h < HIERARCHIES; h++)
			expected += walked >> h & 1 && cgroup->id[h];
	}
	return expected;
}

static int pass_bpf(void *state, struct topology *t, enum pass_kind kind, uint64_t pass,
		    struct pass_result *result, struct error *error)
{
	struct sampler_bpf *b = state;
	uint32_t mask = kind == PASS_FAST ? ~(uint32_t)BLOCKS_SLOW : UINT32_MAX;
	unsigned int left_out = kind == PASS_BRIEF ? b->left_out : 0;
	uint32_t walked = 0, met = 0, expected;

	if (kind != PASS_FAST)
		(void)sampler_bpf_object_learn(&b->object); /* CPUs that fail are asked again */
	for (int h = 0; h < HIERARCHIES; h++) {
		uint32_t blocks = b->blocks[h] & mask;
		int count;

		if (!blocks || left_out >> h & 1)
			continue;
		count = walk(b, h, blocks, error);
		if (count < 0)
			return count;
		walked |= 1U << h;
		met += take_records(b, h, count, t, kind, pass, result);
		if (b->object.state->overflow > result->overflow)
			result->overflow = b->object.state->overflow;
	}
	expected = b->method->meets_all ? count_expected(t, walked) : met;
	result->missing = expected > met ? expected - met : 0;
	return 0;
}

static int topology_changed_bpf(void *state)
{
	struct sampler_bpf *b = state;
	uint64_t generation = __atomic_load_n(&b->object.state->generation, __ATOMIC_RELAXED);
	int changed = generation != b->generation;

	b->generation = generation;
	return changed;
}

/* --- removals ------------------------------------------------------------------------------ */

/* False: not all of it is visible yet, or it is overwritten. */
static bool copy_removal(const struct removal_record *from, uint64_t number, struct removal *to)
{
	struct removal_record r = *from;

	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* the compiler does not read `from` again */
	if (r.check != removal_check(&r, number))
		return false;
	*to = (struct removal){
		.id = r.id,
		.parent_id = r.parent_id,
		.have = (r.have & RECORD_CPU ? HAVE_CPU : 0) |
			(r.have & RECORD_BANDWIDTH ? HAVE_THROTTLE : 0),
		.cpu_ns = r.cpu_ns,
		.throttled_ns = r.throttled_ns,
		.periods = r.periods,
		.throttled_periods = r.throttled_periods,
	};
	return true;
}

/* Ends at a record that is not whole: the next call takes it, or counts it as lost. */
static size_t take_removals_bpf(void *state, struct removal *out, size_t max, uint64_t *lost)
{
	struct sampler_bpf *b = state;
	uint64_t written = __atomic_load_n(&b->object.state->removals, __ATOMIC_ACQUIRE);
	size_t count = 0;

	if (written - b->taken > REMOVALS_MAX) {
		*lost += written - b->taken - REMOVALS_MAX;
		b->taken = written - REMOVALS_MAX;
	}
	for (; b->taken < written && count < max; count++) {
		const struct removal_record *from = &b->object.removals[b->taken % REMOVALS_MAX];

		if (!copy_removal(from, b->taken + 1, &out[count]))
			break;
		b->taken++;
	}
	return count;
}

/* --- the tiers ------------------------------------------------------------------------------- */

static int open_bpf(void **state, const struct sampler_ops *ops, const struct cgroupfs *fs,
		    struct error *error)
{
	int err = open_method(state, ops->methods[0], fs, ops->record_limit, error);

	return err && ops->methods[1]
		       ? open_method(state, ops->methods[1], fs, ops->record_limit, error)
		       : err;
}

#define BPF_TIER(tier_, by_processes_, ...)                                                        \
	{                                                                                          \
		.tier = (tier_), .by_processes = (by_processes_), .methods = {__VA_ARGS__},        \
		.record_limit = RECORDS_MAX, .open = open_bpf, .close = close_bpf,                 \
		.pass = pass_bpf, .topology_changed = topology_changed_bpf,                        \
		.take_removals = take_removals_bpf,                                                \
	}

const struct sampler_ops sampler_css_ops = BPF_TIER(TIER_T0, false, &sampler_bpf_css_method);
const struct sampler_ops sampler_cgroup_ops =
	BPF_TIER(TIER_T1, false, &sampler_bpf_cgroup_method, &sampler_bpf_cgroup_plain_method);
const struct sampler_ops sampler_task_ops = BPF_TIER(TIER_T2, true, &sampler_bpf_task_method);
