/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch to the tier that was opened; the tiers themselves are in sampler_*.c. */
#include "agent/sampler.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/sampler_tier.h"
#include "shared/mem.h"

struct sampler {
	const struct sampler_ops *ops; /* borrowed */
	void *state; /* owned, through ops */
};

const char *sampler_tier_name(enum sampler_tier tier)
{
	static const char *const names[] = {
		[TIER_T0] = "T0",
		[TIER_T1] = "T1",
		[TIER_T2] = "T2",
		[TIER_T3] = "T3",
	};

	return (size_t)tier < sizeof(names) / sizeof(names[0]) ? names[tier] : "unknown";
}

int sampler_open_ops(struct sampler **s, const struct sampler_ops *ops, const struct cgroupfs *fs,
		     struct reason *reason)
{
	void *state = NULL;
	int err = ops->open(&state, fs, reason);

	if (err)
		return err;
	*s = mem_zalloc(1, sizeof(**s));
	(*s)->ops = ops;
	(*s)->state = state;
	return 0;
}

int sampler_open(struct sampler **s, enum sampler_tier tier, const struct cgroupfs *fs,
		 struct reason *reason)
{
	switch (tier) {
	case TIER_T1:
		return sampler_open_ops(s, &sampler_bpf_ops, fs, reason);
	case TIER_T3:
		return sampler_open_ops(s, &sampler_files_ops, fs, reason);
	case TIER_T0:
	case TIER_T2:
		break;
	}
	reason_set(reason, "this agent has no tier %s", sampler_tier_name(tier));
	return -ENOSYS;
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
		 struct pass_result *result, struct reason *reason)
{
	*result = (struct pass_result){0};
	return s->ops->pass(s->state, t, kind, pass, result, reason);
}

int sampler_topology_changed(struct sampler *s)
{
	return s->ops->topology_changed ? s->ops->topology_changed(s->state) : 0;
}
