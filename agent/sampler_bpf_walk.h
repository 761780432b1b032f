/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of walking over a hierarchy, one per BPF tier. */
#ifndef EVENKEEL_AGENT_SAMPLER_BPF_WALK_H
#define EVENKEEL_AGENT_SAMPLER_BPF_WALK_H

#include "agent/cgroupfs.h"
#include "agent/sampler_bpf_object.h"
#include "agent/sampler_tier.h"

struct sampler_bpf_walks {
	struct bpf_link *link[HIERARCHIES]; /* owned; NULL: none */
	uint64_t root_id[HIERARCHIES];
};

struct sampler_bpf_method {
	struct sampler_bpf_source source;
	bool meets_all; /* also cgroups without processes */
	const char *nothing_met; /* the reason if a walk meets no cgroup */
	/* Whether it can read these hierarchies (bits 1 << h), with the reason if not. */
	bool (*suits)(unsigned int hierarchies, struct reason *reason);
	/* Prepares one hierarchy. 0 or -errno. */
	int (*attach)(struct sampler_bpf_walks *w, const struct sampler_bpf_object *o, int h,
		      int root_fd);
	/*
	 * Whether walks see all cgroups of this hierarchy; NULL: always. 0, or -errno with the
	 * reason.
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
