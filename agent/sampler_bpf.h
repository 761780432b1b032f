/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the BPF tiers: a loaded object, and the methods of walking, one per tier. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/bpf_reason.h"
#include "agent/cgroupfs.h"
#include "bpf/record.h"
#include "shared/error.h"

struct bpf_object;
struct bpf_link;
struct bpf_program;

struct sampler_bpf_source {
	const void *(*elf)(size_t *size);
	const struct bpf_reason_need *needs; /* required kernel functions */
};

struct sampler_bpf_object {
	/* fixed after open */
	const struct sampler_bpf_source *source; /* borrowed, static */
	struct bpf_object *object;
	struct bpf_program *walk; /* owned by the object, as the next one */
	struct bpf_program *learn;
	struct bpf_link *made, *removed;
	struct walk_state *state; /* mapped, as those below */
	const struct removal_record *removals; /* REMOVALS_MAX; NULL: not recorded */

	__u32 *offline_cpus; /* owned: CPUs that were offline, without addresses so far */
	uint32_t offline_count;

	/* mapped as far as a walk came */
	const struct fast_record *fast;
	const struct slow_record *slow;
	uint32_t mapped; /* of each; a power of two */
};

/*
 * Loads the programs, learns the per-CPU addresses and watches cgroups come and go. At most
 * record_limit records per walk; keep_removals: record the counters of removed v2 cgroups. 0, or
 * -errno with the reason; close it after a failure, too.
 */
int sampler_bpf_object_open(struct sampler_bpf_object *o, const struct sampler_bpf_source *source,
			    uint32_t record_limit, bool keep_removals, struct error *error);
void sampler_bpf_object_close(struct sampler_bpf_object *o);
/* Asks the CPUs that were offline so far. Returns the first failure other than being offline. */
int sampler_bpf_object_learn(struct sampler_bpf_object *o);
/* Maps the first `count` records (up to RECORDS_MAX); may move them. -ENOMEM with the reason. */
int sampler_bpf_object_reach(struct sampler_bpf_object *o, uint32_t count, struct error *error);

/* --- walks ------------------------------------------------------------------------------------ */

struct sampler_bpf_walks {
	struct bpf_link *link[HIERARCHIES]; /* owned; NULL: none */
	uint64_t root_id[HIERARCHIES];
};

struct sampler_bpf_method {
	struct sampler_bpf_source source;
	bool meets_all; /* also cgroups without processes */
	const char *nothing_met; /* the reason if a walk meets no cgroup */
	/* Whether it can read these hierarchies (bits 1 << h), with the reason; NULL: any. */
	bool (*suits)(unsigned int hierarchies, struct error *error);
	/* Prepares one hierarchy. 0 or -errno. */
	int (*attach)(struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h,
		      int root_fd);
	/*
	 * Whether walks see all cgroups of this hierarchy; NULL: always. 0, or -errno with the
	 * reason.
	 */
	int (*check)(const struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h,
		     struct error *error);
	/* One walk; the records are in o->fast[0 .. o->state->cursor). 0 or -errno. */
	int (*walk)(const struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h);
};

extern const struct sampler_bpf_method sampler_bpf_css_method; /* T0 */
extern const struct sampler_bpf_method sampler_bpf_cgroup_method; /* T1 */
extern const struct sampler_bpf_method sampler_bpf_cgroup_plain_method; /* T1, of 6.1 */
extern const struct sampler_bpf_method sampler_bpf_task_method; /* T2 */
