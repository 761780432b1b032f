/* SPDX-License-Identifier: Apache-2.0 */
/* What a sampling tier implements, and the parts of the dispatch for tiers and tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler.h"

struct sampler_bpf_method;

struct sampler_ops {
	enum sampler_tier tier;
	bool by_processes; /* meets only cgroups with processes below them */
	/* Of tiers with BPF: the one to try first, and the one after it, or NULL. */
	const struct sampler_bpf_method *methods[2];
	uint32_t record_limit; /* cgroups per hierarchy, <= CGROUPS_MAX */
	/* As sampler_open_ops(); *state is the tier's own. */
	int (*open)(void **state, const struct sampler_ops *ops, const struct cgroupfs *fs,
		    struct error *error);
	/* Accepts NULL. */
	void (*close)(void *state);
	/* As sampler_pass(); *result is zeroed by the caller. */
	int (*pass)(void *state, struct topology *t, enum pass_kind kind, uint64_t pass,
		    struct pass_result *result, struct error *error);
	/* As sampler_topology_changed(); NULL: it cannot tell. */
	int (*topology_changed)(void *state);
	/* As sampler_take_removals(); NULL: its counters include descendants. */
	size_t (*take_removals)(void *state, struct removal *out, size_t max, uint64_t *lost);
};

extern const struct sampler_ops sampler_css_ops; /* T0: agent/sampler_bpf.c, as T1 and T2 */
extern const struct sampler_ops sampler_cgroup_ops; /* T1 */
extern const struct sampler_ops sampler_task_ops; /* T2 */
extern const struct sampler_ops sampler_files_ops; /* T3: agent/sampler_files.c */

enum { SAMPLER_TIERS = TIERS };
extern const struct sampler_ops *const sampler_all_ops[SAMPLER_TIERS]; /* by enum sampler_tier */

/* The bits of reading.have that a pass of this kind renews. */
static inline uint32_t sampler_renewed(enum pass_kind kind)
{
	return kind == PASS_FAST ? HAVE_CPU | HAVE_CPU_LOCAL | HAVE_MEMORY : UINT32_MAX;
}

/*
 * Every tier calls it when a pass meets a cgroup, in each hierarchy. The first time in a pass it
 * marks the cgroup as seen, clears what the pass renews (enum reading_have) and returns true.
 */
static inline bool sampler_meet(struct cgroup *cgroup, uint32_t renewed, uint64_t pass)
{
	if (cgroup->seen_pass == pass)
		return false;
	cgroup->seen_pass = pass;
	cgroup->reading.have &= ~renewed;
	return true;
}

/*
 * Opens a tier. -ENOSYS, -EPERM, -ENOENT .. with the reason if it cannot work here. fs is borrowed.
 */
int sampler_open_ops(struct sampler **s, const struct sampler_ops *ops, const struct cgroupfs *fs,
		     struct error *error);
/* sampler_choose() among these, best first. */
int sampler_choose_ops(struct sampler **s, const struct sampler_ops *const *ops, size_t count,
		       const struct cgroupfs *fs, struct topology *t, struct error *error);
