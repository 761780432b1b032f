/* SPDX-License-Identifier: Apache-2.0 */
/* The three ways to let the kernel walk over a hierarchy: one per BPF tier. */
#ifndef EVENKEEL_AGENT_SAMPLER_BPF_WALK_H
#define EVENKEEL_AGENT_SAMPLER_BPF_WALK_H

#include "agent/cgroupfs.h"
#include "agent/sampler_bpf_object.h"
#include "agent/sampler_tier.h"

struct sampler_bpf_walks {
	struct bpf_link *link[HIERARCHIES]; /* owned; NULL where there is none of its own */
	uint64_t root_id[HIERARCHIES];
};

struct sampler_bpf_method {
	struct sampler_bpf_source source;
	bool meets_all; /* also cgroups without processes */
	const char *nothing_met; /* what it means when a walk meets not a single cgroup */
	/*
	 * Whether it can read from these hierarchies (bits 1 << h) at all, with the reason if not.
	 */
	bool (*suits)(unsigned int hierarchies, struct reason *reason);
	/* Makes ready for one hierarchy. 0 or -errno. */
	int (*attach)(struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h,
		      int root_fd);
	/*
	 * Whether walks over this hierarchy can see all they should; NULL where nothing hides. 0,
	 * or -errno with the reason.
	 */
	int (*check)(const struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h,
		     struct reason *reason);
	/* One walk; the records are in o->fast[0 .. o->state->cursor). 0 or -errno. */
	int (*walk)(const struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h);
};

extern const struct sampler_bpf_method sampler_bpf_css_method; /* T0 */
extern const struct sampler_bpf_method sampler_bpf_cgroup_method; /* T1 */
extern const struct sampler_bpf_method sampler_bpf_cgroup_plain_method; /* T1, of 6.1 */
extern const struct sampler_bpf_method sampler_bpf_task_method; /* T2 */

void sampler_bpf_walks_close(struct sampler_bpf_walks *w);

#endif
