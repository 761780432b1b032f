/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pace.h"

#include "shared/clock.h"

#define SLOW_NS NS_PER_SEC
/* As long as the kernel takes to bring PSI up to date. */
#define WHOLE_NS (2 * NS_PER_SEC)
/* Intervals of whole seconds end so much early at most. */
#define EARLY_NS (100 * NS_PER_MS)

void pace_start(struct pace *p)
{
	*p = (struct pace){0};
}

void pace_set_interval(struct pace *p, int64_t interval_ns)
{
	/* Whole passes are slow ones, so half an interval is as many of those as it has room for. */
	int64_t half = (interval_ns + EARLY_NS) / 2 / SLOW_NS * SLOW_NS;

	p->whole_ns = half < WHOLE_NS ? half : WHOLE_NS;
}

enum pass_kind pace_choose(const struct pace *p, int64_t mono_ns, int64_t period_ns, bool scanned)
{
	/* Timer expirations and both periods are multiples of each other. */
	int64_t by_ns = mono_ns + period_ns / 2;

	if (by_ns < p->slow_due_ns)
		return PASS_FAST;
	return scanned || by_ns >= p->whole_due_ns ? PASS_SLOW : PASS_BRIEF;
}

void pace_note(struct pace *p, enum pass_kind kind, int64_t mono_ns)
{
	if (kind == PASS_SLOW)
		p->whole_due_ns = mono_ns + p->whole_ns;
	if (kind != PASS_FAST)
		p->slow_due_ns = mono_ns + SLOW_NS;
}
