/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	knobs (CPUs, memory nodes) --> load --> map state and records --> learn addresses --> attach
 *
 * Before 5.19 a program cannot learn the per-CPU addresses of all CPUs at once and runs on each of
 * them. CPUs that are offline then are asked again later; their earlier use counts when they
 * answer.
 *
 * The kernel makes every page of a mapped array resident at once. The records are mapped as far as
 * a walk came: RECORDS_FIRST, then twice as many each time.
 *
 * What can fail: each step, explained by bpf_reason.c. More than RECORD_CPUS_MAX CPUs or
 * RECORD_NODES_MAX memory nodes are refused, as their use would be missing. After opening no
 * capability is needed.
 */
#include "agent/sampler_bpf.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shared/mem.h"

/* --- what the machine has -------------------------------------------------------------------- */

/*
 * Reads a list like "0-3,8-11"; up to max numbers go to ids. Returns their count, with the greatest
 * in *last; 0: no such file, or malformed.
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

static int set_machine(struct walk_knobs *knobs, struct error *error)
{
	/* Kernels without NUMA have no list, and node 0. */
	uint32_t last_cpu = 0, last_node = 0;
	uint32_t cpus = read_id_list("/sys/devices/system/cpu/possible", knobs->cpu_id,
				     RECORD_CPUS_MAX, &last_cpu);

	read_id_list("/sys/devices/system/node/possible", NULL, 0, &last_node);
	if (!cpus)
		return error_fail(error, -ENOENT,
				  "cannot learn the CPUs from /sys/devices/system/cpu/possible");
	if (cpus > RECORD_CPUS_MAX || last_node >= RECORD_NODES_MAX)
		return error_fail(error, -E2BIG,
				  "made for %d CPUs and %d memory nodes, but there are %u and %u",
				  RECORD_CPUS_MAX, RECORD_NODES_MAX, cpus, last_node + 1);
	knobs->cpu_count = cpus;
	knobs->node_count = last_node + 1;
	return 0;
}

/* --- loading --------------------------------------------------------------------------------- */

static int explain(const struct sampler_bpf_object *o, const char *what, int err,
		   struct error *error)
{
	return bpf_reason_explain(what, err, o->source->needs, error);
}

/* Fixed once the object is loaded. */
static const struct walk_knobs *knobs_of(const struct sampler_bpf_object *o)
{
	size_t size = 0;
	struct bpf_map *map = bpf_object__find_map_by_name(o->object, ".rodata");
	const void *knobs = bpf_map__initial_value(map, &size);

	assert(knobs && size == sizeof(struct walk_knobs));
	return knobs;
}

static int load(struct sampler_bpf_object *o, uint32_t record_limit, bool keep_removals,
		struct error *error)
{
	struct bpf_object_open_opts opts;
	const void *elf;
	size_t size;
	int err;
	struct walk_knobs *knobs;

	/* libbpf requires zero padding, here and in the options below. */
	memset(&opts, 0, sizeof(opts));
	opts.sz = sizeof(opts);
	opts.object_name = "evenkeel";
	/*
	 * Without a path libbpf before 1.3 also reads the modules' types, which takes
	 * CAP_SYS_ADMIN.
	 */
	opts.btf_custom_path = BPF_REASON_BTF;
	elf = o->source->elf(&size);
	o->object = bpf_object__open_mem(elf, size, &opts);
	if (!o->object)
		return explain(o, "cannot open the BPF object", -errno, error);
	knobs = mem_zalloc(1, sizeof(*knobs));
	err = set_machine(knobs, error);
	knobs->record_limit = record_limit;
	knobs->keep_removals = keep_removals;
	if (!err)
		err = bpf_map__set_initial_value(bpf_object__find_map_by_name(o->object, ".rodata"),
						 knobs, sizeof(*knobs));
	free(knobs);
	if (err)
		return err;
	err = bpf_object__load(o->object);
	if (err)
		return explain(o, "cannot load the BPF programs", err, error);
	o->walk = bpf_object__find_program_by_name(o->object, "walk");
	o->learn = bpf_object__find_program_by_name(o->object, "learn_offsets");
	assert(o->walk && o->learn);
	return 0;
}

enum { RECORDS_FIRST = 1024 };

/* NULL with the reason. */
static void *map_array(const struct sampler_bpf_object *o, const char *name, size_t size, int prot,
		       struct error *error)
{
	struct bpf_map *map = bpf_object__find_map_by_name(o->object, name);
	void *m;

	assert(map && size <= (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map));
	m = mmap(NULL, size, prot, MAP_SHARED, bpf_map__fd(map), 0);
	if (m != MAP_FAILED)
		return m;
	return error_fail(error, NULL, "cannot map the BPF records: %s", strerror(errno));
}

static void unmap(const void *m, size_t size)
{
	if (m)
		munmap((void *)m, size);
}

static void unmap_records(struct sampler_bpf_object *o)
{
	unmap(o->slow, o->mapped * sizeof(*o->slow));
	unmap(o->fast, o->mapped * sizeof(*o->fast));
}

int sampler_bpf_object_reach(struct sampler_bpf_object *o, uint32_t count, struct error *error)
{
	uint32_t size = o->mapped ? o->mapped : RECORDS_FIRST;
	void *fast, *slow;

	assert(count <= RECORDS_MAX);
	while (size < count)
		size *= 2;
	if (size == o->mapped)
		return 0;
	fast = map_array(o, "fast_records", size * sizeof(*o->fast), PROT_READ, error);
	slow = map_array(o, "slow_records", size * sizeof(*o->slow), PROT_READ, error);
	if (!fast || !slow) {
		unmap(slow, size * sizeof(*o->slow));
		unmap(fast, size * sizeof(*o->fast));
		return -ENOMEM;
	}
	unmap_records(o);
	o->fast = fast;
	o->slow = slow;
	o->mapped = size;
	return 0;
}

static int map_all(struct sampler_bpf_object *o, bool keep_removals, struct error *error)
{
	o->state = map_array(o, ".bss", sizeof(*o->state), PROT_READ | PROT_WRITE, error);
	if (!o->state)
		return -ENOMEM;
	if (keep_removals)
		o->removals = map_array(o, "removals", REMOVALS_MAX * sizeof(*o->removals),
					PROT_READ, error);
	if (keep_removals && !o->removals)
		return -ENOMEM;
	return sampler_bpf_object_reach(o, RECORDS_FIRST, error);
}

/* --- per-CPU addresses ----------------------------------------------------------------------- */

static int run_learn(const struct sampler_bpf_object *o, __u32 flags, __u32 cpu)
{
	struct bpf_test_run_opts run;

	memset(&run, 0, sizeof(run));
	run.sz = sizeof(run);
	run.flags = flags;
	run.cpu = cpu;
	return bpf_prog_test_run_opts(bpf_program__fd(o->learn), &run);
}

/* Learns the address on one CPU. 0, -ENXIO: offline, or another -errno. */
static int ask_cpu(struct sampler_bpf_object *o, __u32 cpu)
{
	__u32 learned = o->state->cpus_learned;
	int err = run_learn(o, BPF_F_TEST_RUN_ON_CPU, cpu);

	if (!err && o->state->cpus_learned != learned + 1)
		err = -EIO;
	return err;
}

int sampler_bpf_object_learn(struct sampler_bpf_object *o)
{
	uint32_t left = 0;
	int failed = 0;

	for (uint32_t i = 0; i < o->offline_count; i++) {
		int err = ask_cpu(o, o->offline_cpus[i]);

		if (err)
			o->offline_cpus[left++] = o->offline_cpus[i];
		if (err && err != -ENXIO && !failed)
			failed = err;
	}
	o->offline_count = left;
	return failed;
}

static int learn_offsets(struct sampler_bpf_object *o, struct error *error)
{
	const struct walk_knobs *knobs = knobs_of(o);
	int err = run_learn(o, 0, 0);

	if (err)
		return explain(o, "cannot run a BPF program", err, error);
	if (o->state->cpus_learned == knobs->cpu_count)
		return 0;
	o->state->cpus_learned = 0;
	o->offline_cpus = mem_zalloc(knobs->cpu_count, sizeof(*o->offline_cpus));
	memcpy(o->offline_cpus, knobs->cpu_id, knobs->cpu_count * sizeof(*o->offline_cpus));
	o->offline_count = knobs->cpu_count;
	err = sampler_bpf_object_learn(o);
	if (!err && !o->state->cpus_learned)
		err = -ENXIO;
	if (!err)
		return 0;
	return error_system(error, err, "learned the per-CPU addresses of %u of %u CPUs",
			    o->state->cpus_learned, knobs->cpu_count);
}

/* --- opening and closing --------------------------------------------------------------------- */

static struct bpf_link *attach_watch(const struct sampler_bpf_object *o, const char *name)
{
	return bpf_program__attach(bpf_object__find_program_by_name(o->object, name));
}

static int watch_cgroups(struct sampler_bpf_object *o, struct error *error)
{
	o->made = attach_watch(o, "count_made");
	if (o->made)
		o->removed = attach_watch(o, "record_removed");
	if (o->removed)
		return 0;
	return explain(o, "cannot attach to the cgroup tracepoints", -errno, error);
}

int sampler_bpf_object_open(struct sampler_bpf_object *o, const struct sampler_bpf_source *source,
			    uint32_t record_limit, bool keep_removals, struct error *error)
{
	int err;

	memset(o, 0, sizeof(*o));
	o->source = source;
	bpf_reason_begin();
	err = load(o, record_limit, keep_removals, error);
	/* Reading the kernel's types took some 10 MiB. */
	malloc_trim(0);
	if (!err)
		err = map_all(o, keep_removals, error);
	if (!err)
		err = learn_offsets(o, error);
	if (!err)
		err = watch_cgroups(o, error);
	return err;
}

void sampler_bpf_object_close(struct sampler_bpf_object *o)
{
	bpf_link__destroy(o->removed);
	bpf_link__destroy(o->made);
	unmap(o->removals, REMOVALS_MAX * sizeof(*o->removals));
	unmap_records(o);
	unmap(o->state, sizeof(*o->state));
	bpf_object__close(o->object);
	free(o->offline_cpus);
}
