/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch to the open tier; the tiers are in sampler_*.c. */
#include "agent/sampler.h"

#include <stdlib.h>

#include "agent/sampler_tier.h"
#include "shared/mem.h"

struct sampler {
	const struct sampler_ops *ops; /* borrowed */
	void *state; /* owned, through ops */
};

/* Best first, which is also their order in enum sampler_tier. */
const struct sampler_ops *const sampler_all_ops[SAMPLER_TIERS] = {
	[TIER_T0] = &sampler_css_ops,
	[TIER_T1] = &sampler_cgroup_ops,
	[TIER_T2] = &sampler_task_ops,
	[TIER_T3] = &sampler_files_ops,
};

const char *sampler_tier_name(enum sampler_tier tier)
{
	return (size_t)tier < SAMPLER_TIERS ? sampler_tiers[tier] : "unknown";
}

int sampler_open_ops(struct sampler **s, const struct sampler_ops *ops, const struct cgroupfs *fs,
		     struct error *error)
{
	void *state = NULL;
	int err = ops->open(&state, ops, fs, error);

	if (err)
		return err;
	*s = mem_zalloc(1, sizeof(**s));
	(*s)->ops = ops;
	(*s)->state = state;
	return 0;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	s->ops->close(s->state);
	free(s);
}

enum sampler_tier sampler_tier(const struct sampler *s)
{
	return s->ops->tier;
}

int sampler_pass(struct sampler *s, struct topology *t, enum pass_kind kind, uint64_t pass,
		 struct pass_result *result, struct error *error)
{
	*result = (struct pass_result){0};
	return s->ops->pass(s->state, t, kind, pass, result, error);
}

int sampler_topology_changed(struct sampler *s)
{
	return s->ops->topology_changed ? s->ops->topology_changed(s->state) : 0;
}

bool sampler_tells_changes(const struct sampler *s)
{
	return s->ops->topology_changed != NULL;
}

size_t sampler_take_removals(struct sampler *s, struct removal *out, size_t max, uint64_t *lost)
{
	return s->ops->take_removals ? s->ops->take_removals(s->state, out, max, lost) : 0;
}
