/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tier T1: one walk per cgroup hierarchy by a BPF cgroup iterator, results read from mapped memory.
 *
 *     pass --> for each hierarchy that holds something wanted:
 *                set blocks, cursor = 0
 *                bpf_iter_create + read: the kernel walks, bpf/cgroup.bpf.c writes records
 *                records[0..cursor) --> topology_find(id, where it was last time) --> reading
 *
 * What is read where:
 *
 *     fast and slow   CPU time from cpu_from, memory usage from memory_from
 *     slow only       limits, inactive file pages, OOM kills from memory_from; quota and throttling
 *                     from throttle_from; pids and PSI from the v2 hierarchy, which on a v1 machine
 *                     may have the same paths
 *
 * The iterators stay attached to the roots of the hierarchies, which nobody can remove. After
 * opening no capability is needed any more; bpf_iter_create and read are all the system calls a
 * walk makes.
 *
 * What can fail: opening, with the cause put into words by bpf_reason.c; a walk that cannot be made
 * or that meets not a single cgroup, which gives up the tier. CPUs beyond RECORD_CPUS_MAX and
 * memory nodes beyond RECORD_NODES_MAX are refused at opening, since their use would be missing
 * without a trace.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/types.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/bpf_reason.h"
#include "agent/sampler_tier.h"
#include "bpf/cgroup.skel.h"
#include "bpf/record.h"
#include "shared/mem.h"

struct sampler_bpf {
	/* fixed after open */
	struct cgroup_bpf *skel;
	struct bpf_link *walk[HIERARCHIES]; /* NULL where nothing is read */
	struct bpf_link *made, *removed;
	const struct fast_record *fast; /* mapped, RECORDS_MAX of each */
	const struct slow_record *slow;
	uint32_t blocks[HIERARCHIES]; /* enum record_block of a slow pass */
	uint64_t page_bytes;

	int *hint[HIERARCHIES]; /* position in the walk -> index in the topology */
	uint64_t generation; /* of cgroups made and removed, as last told */
};

/* --- what the machine has -------------------------------------------------------------------- */

/*
 * Reads a list like "0-3,8-11" as the kernel writes them. Up to max numbers go to ids. Returns how
 * many there are, *last being the greatest; 0 when there is no such file or it cannot be
 * understood.
 */
static uint32_t read_id_list(const char *path, __u32 *ids, uint32_t max, uint32_t *last)
{
	FILE *f = fopen(path, "re");
	unsigned int from, to;
	uint32_t count = 0;

	if (!f)
		return 0;
	while (fscanf(f, "%u", &from) == 1) {
		to = from;
		if (fscanf(f, "-%u", &to) == 1 && to < from)
			break;
		for (unsigned int id = from; id <= to && count < UINT16_MAX; id++, count++) {
			if (count < max)
				ids[count] = id;
		}
		*last = to;
		if (fgetc(f) != ',')
			break;
	}
	fclose(f);
	return count;
}

static int set_knobs(struct cgroup_bpf *skel, uint32_t record_limit, __u32 *cpu_ids,
		     struct reason *reason)
{
	/* Kernels without NUMA have no list of nodes, and one node, 0. */
	uint32_t last_cpu = 0, last_node = 0;
	uint32_t cpus = read_id_list("/sys/devices/system/cpu/possible", cpu_ids, RECORD_CPUS_MAX,
				     &last_cpu);

	read_id_list("/sys/devices/system/node/possible", NULL, 0, &last_node);
	if (!cpus) {
		reason_set(reason, "cannot learn the CPUs from /sys/devices/system/cpu/possible");
		return -ENOENT;
	}
	if (cpus > RECORD_CPUS_MAX || last_node >= RECORD_NODES_MAX) {
		reason_set(reason, "made for %d CPUs and %d memory nodes, but there are %u and %u",
			   RECORD_CPUS_MAX, RECORD_NODES_MAX, cpus, last_node + 1);
		return -E2BIG;
	}
	skel->rodata->record_limit = record_limit;
	skel->rodata->cpu_count = cpus;
	skel->rodata->node_count = last_node + 1;
	return 0;
}

/* --- opening --------------------------------------------------------------------------------- */

static int load(struct sampler_bpf *b, uint32_t record_limit, struct reason *reason)
{
	struct bpf_object_open_opts opts;
	struct bpf_test_run_opts run;
	__u32 *cpu_ids = mem_zalloc(RECORD_CPUS_MAX, sizeof(*cpu_ids));
	int err = 0;

	/* libbpf demands that the padding is zero too, here and in the other options below. */
	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	/* Before 1.3 it asks for the modules' types unless told where to look: CAP_SYS_ADMIN. */
	opts.btf_custom_path = BPF_REASON_BTF;
	memset(&run, 0, sizeof(run));
	run.sz = sizeof(run);
	b->skel = cgroup_bpf__open_opts(&opts);
	if (!b->skel)
		err = bpf_reason_explain("cannot open the BPF object", -errno, reason);
	if (!err)
		err = set_knobs(b->skel, record_limit, cpu_ids, reason);
	if (err)
		goto out;
	err = cgroup_bpf__load(b->skel);
	if (err) {
		err = bpf_reason_explain("cannot load the BPF programs", err, reason);
		goto out;
	}
	memcpy(b->skel->bss->cpu_id, cpu_ids, sizeof(b->skel->bss->cpu_id));
	err = bpf_prog_test_run_opts(bpf_program__fd(b->skel->progs.learn_offsets), &run);
	if (err) {
		err = bpf_reason_explain("cannot run a BPF program", err, reason);
	} else if (b->skel->bss->cpus_learned != b->skel->rodata->cpu_count) {
		reason_set(reason, "learned the per-CPU addresses of %u of %u CPUs",
			   b->skel->bss->cpus_learned, b->skel->rodata->cpu_count);
		err = -ENXIO;
	}
out:
	free(cpu_ids);
	return err;
}

static int map_records(struct bpf_map *map, size_t size, const void **records,
		       struct reason *reason)
{
	void *m = mmap(NULL, RECORDS_MAX * size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
	int err;

	if (m == MAP_FAILED) {
		err = -errno;
		reason_set(reason, "cannot map the BPF records: %s", strerror(-err));
		return err;
	}
	*records = m;
	return 0;
}

static void choose_blocks(struct sampler_bpf *b, const struct cgroupfs *fs)
{
	if (fs->cpu_from >= 0)
		b->blocks[fs->cpu_from] |=
			fs->cpu_from == HIERARCHY_UNIFIED ? BLOCK_CPU_LOCAL : BLOCK_CPUACCT;
	if (fs->memory_from >= 0)
		b->blocks[fs->memory_from] |= BLOCK_MEMORY | BLOCK_MEMORY_MORE;
	if (fs->throttle_from >= 0)
		b->blocks[fs->throttle_from] |= BLOCK_BANDWIDTH;
	if (fs->root_fd[HIERARCHY_UNIFIED] >= 0)
		b->blocks[HIERARCHY_UNIFIED] |= BLOCK_PIDS | BLOCK_PSI;
}

static int attach_walk(struct sampler_bpf *b, int h, int root_fd, struct reason *reason)
{
	struct bpf_iter_attach_opts opts;
	union bpf_iter_link_info info;

	memset(&info, 0, sizeof(info));
	info.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
	info.cgroup.cgroup_fd = (__u32)root_fd;
	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	opts.link_info = &info;
	opts.link_info_len = sizeof(info);
	b->walk[h] = bpf_program__attach_iter(b->skel->progs.sample_cgroup, &opts);
	if (!b->walk[h])
		return bpf_reason_explain("cannot attach to a cgroup hierarchy", -errno, reason);
	b->hint[h] = mem_zalloc(RECORDS_MAX, sizeof(*b->hint[h]));
	return 0;
}

static int attach(struct sampler_bpf *b, const struct cgroupfs *fs, struct reason *reason)
{
	int err;

	choose_blocks(b, fs);
	for (int h = 0; h < HIERARCHIES; h++) {
		err = b->blocks[h] ? attach_walk(b, h, fs->root_fd[h], reason) : 0;
		if (err)
			return err;
	}
	b->made = bpf_program__attach_raw_tracepoint(b->skel->progs.count_made, "cgroup_mkdir");
	if (b->made)
		b->removed = bpf_program__attach_raw_tracepoint(b->skel->progs.count_removed,
								"cgroup_rmdir");
	if (!b->removed)
		return bpf_reason_explain("cannot attach to the cgroup tracepoints", -errno,
					  reason);
	return 0;
}

static void close_bpf(void *state)
{
	struct sampler_bpf *b = state;

	if (!b)
		return;
	for (int h = 0; h < HIERARCHIES; h++) {
		bpf_link__destroy(b->walk[h]);
		free(b->hint[h]);
	}
	bpf_link__destroy(b->made);
	bpf_link__destroy(b->removed);
	if (b->fast)
		munmap((void *)b->fast, RECORDS_MAX * sizeof(*b->fast));
	if (b->slow)
		munmap((void *)b->slow, RECORDS_MAX * sizeof(*b->slow));
	cgroup_bpf__destroy(b->skel);
	free(b);
}

int sampler_bpf_open(void **state, const struct cgroupfs *fs, uint32_t record_limit,
		     struct reason *reason)
{
	struct sampler_bpf *b = mem_zalloc(1, sizeof(*b));
	int err;

	b->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	bpf_reason_begin();
	err = load(b, record_limit, reason);
	/* Reading the kernel's types took some 10 MiB, for good unless given back. */
	malloc_trim(0);
	if (!err)
		err = map_records(b->skel->maps.fast_records, sizeof(*b->fast),
				  (const void **)&b->fast, reason);
	if (!err)
		err = map_records(b->skel->maps.slow_records, sizeof(*b->slow),
				  (const void **)&b->slow, reason);
	if (!err)
		err = attach(b, fs, reason);
	if (err) {
		close_bpf(b);
		return err;
	}
	*state = b;
	return 0;
}

static int open_bpf(void **state, const struct cgroupfs *fs, struct reason *reason)
{
	return sampler_bpf_open(state, fs, RECORDS_MAX, reason);
}

/* --- passes ---------------------------------------------------------------------------------- */

static void take_fast(struct reading *r, const struct fast_record *fast, uint64_t page_bytes)
{
	if (fast->have & RECORD_CPU) {
		r->cpu_ns = fast->cpu_ns;
		r->have |= HAVE_CPU;
	}
	if (fast->have & RECORD_CPU_LOCAL)
		r->have |= HAVE_CPU_LOCAL;
	if (fast->have & RECORD_MEMORY) {
		r->mem_bytes = fast->memory_pages * page_bytes;
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
	r->have |= HAVE_THROTTLE | HAVE_CPU_LIMIT;
}

static void take_slow(struct reading *r, const struct fast_record *fast,
		      const struct slow_record *slow, uint64_t page_bytes)
{
	/* PAGE_COUNTER_MAX, the kernel's "no limit". */
	uint64_t no_limit = LONG_MAX / page_bytes;

	if (fast->have & RECORD_BANDWIDTH)
		take_bandwidth(r, fast, slow);
	if (fast->have & RECORD_MEMORY_LIMIT) {
		r->mem_limit_bytes = slow->limit_pages >= no_limit
					     ? LIMIT_NONE
					     : (int64_t)(slow->limit_pages * page_bytes);
		r->have |= HAVE_MEMORY_LIMIT;
	}
	if (fast->have & RECORD_INACTIVE_FILE) {
		r->inactive_file_bytes = slow->inactive_file_pages * page_bytes;
		r->have |= HAVE_WORKING_SET;
	}
	if (fast->have & RECORD_OOM) {
		r->oom_kills = slow->oom_kills;
		r->have |= HAVE_OOM;
	}
	if (fast->have & RECORD_PIDS)
		r->pids = (uint32_t)slow->pids;
	if (fast->have & RECORD_PSI) {
		r->psi_cpu_ns = slow->psi_cpu_ns;
		r->psi_mem_ns = slow->psi_memory_ns;
		r->have |= HAVE_PSI;
	}
}

/* Lets the kernel walk one hierarchy; the number of records, or -errno. */
static int walk(struct sampler_bpf *b, int h, uint32_t blocks, struct reason *reason)
{
	char nothing[16];
	int fd, err = 0;
	ssize_t n;

	b->skel->bss->blocks = blocks;
	b->skel->bss->cursor = 0;
	b->skel->bss->overflow = 0;
	fd = bpf_iter_create(bpf_link__fd(b->walk[h]));
	if (fd < 0) {
		reason_set(reason, "cannot begin a walk over the cgroups: %s", strerror(-fd));
		return fd;
	}
	do {
		n = read(fd, nothing, sizeof(nothing));
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		err = -errno;
	else if (b->skel->bss->cursor == 0 && b->skel->bss->overflow == 0)
		err = -ENODATA;
	close(fd);
	if (err) {
		reason_set(reason, "a walk over the cgroups failed: %s", strerror(-err));
		return err;
	}
	return (int)b->skel->bss->cursor;
}

/* Moves the records of one walk into the readings; returns how many the topology knows. */
static uint32_t take_records(struct sampler_bpf *b, int h, int count, struct topology *t,
			     enum pass_kind kind, uint64_t pass, struct pass_result *result)
{
	uint32_t known = 0;

	for (int i = 0; i < count; i++) {
		const struct fast_record *fast = &b->fast[i];
		int index = topology_find(t, (enum hierarchy)h, fast->id, b->hint[h][i]);
		struct cgroup *cgroup;

		if (index == CGROUP_NONE)
			continue;
		b->hint[h][i] = index;
		cgroup = topology_at(t, (size_t)index);
		if (sampler_meet(cgroup, kind, pass))
			result->records++;
		take_fast(&cgroup->reading, fast, b->page_bytes);
		if (kind == PASS_SLOW)
			take_slow(&cgroup->reading, fast, &b->slow[i], b->page_bytes);
		known++;
	}
	result->unknown += (uint32_t)count - known;
	return known;
}

/* Directories of the walked hierarchies that the topology holds. */
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
		    struct pass_result *result, struct reason *reason)
{
	struct sampler_bpf *b = state;
	uint32_t mask = kind == PASS_SLOW ? UINT32_MAX : ~(uint32_t)BLOCKS_SLOW;
	uint32_t walked = 0, met = 0, expected;

	for (int h = 0; h < HIERARCHIES; h++) {
		uint32_t blocks = b->blocks[h] & mask;
		int count;

		if (!blocks)
			continue;
		count = walk(b, h, blocks, reason);
		if (count < 0)
			return count;
		walked |= 1U << h;
		met += take_records(b, h, count, t, kind, pass, result);
		if (b->skel->bss->overflow > result->overflow)
			result->overflow = b->skel->bss->overflow;
	}
	expected = count_expected(t, walked);
	result->missing = expected > met ? expected - met : 0;
	return 0;
}

static int topology_changed_bpf(void *state)
{
	struct sampler_bpf *b = state;
	uint64_t generation = __atomic_load_n(&b->skel->bss->generation, __ATOMIC_RELAXED);
	int changed = generation != b->generation;

	b->generation = generation;
	return changed;
}

const struct sampler_ops sampler_bpf_ops = {
	.tier = TIER_T1,
	.open = open_bpf,
	.close = close_bpf,
	.pass = pass_bpf,
	.topology_changed = topology_changed_bpf,
};
