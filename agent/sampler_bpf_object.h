/* SPDX-License-Identifier: Apache-2.0 */
/* One loaded BPF object of bpf/, with its variables and records mapped (bpf/record.h). */
#ifndef EVENKEEL_AGENT_SAMPLER_BPF_OBJECT_H
#define EVENKEEL_AGENT_SAMPLER_BPF_OBJECT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/bpf_reason.h"
#include "bpf/record.h"
#include "shared/reason.h"

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
			    uint32_t record_limit, bool keep_removals, struct reason *reason);
void sampler_bpf_object_close(struct sampler_bpf_object *o);
/* Asks the CPUs that were offline so far, if any. */
void sampler_bpf_object_learn(struct sampler_bpf_object *o);
/* Maps the first `count` records (up to RECORDS_MAX); may move them. -ENOMEM with the reason. */
int sampler_bpf_object_reach(struct sampler_bpf_object *o, uint32_t count, struct reason *reason);

#endif
