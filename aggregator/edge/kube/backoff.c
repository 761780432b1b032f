/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The health that resets it begins when a wait is over: a wait of a minute is no minute of health.
 */
#include "aggregator/edge/kube/backoff.h"

int64_t backoff_next(struct backoff *b, const struct backoff_limits *limits, double random,
		     int64_t now_ns)
{
	int64_t wait_ns;

	if (!b->base_ns || now_ns - b->until_ns >= limits->reset_ns)
		b->base_ns = limits->first_ns;
	else if (b->base_ns < limits->most_ns / 2)
		b->base_ns *= 2;
	else
		b->base_ns = limits->most_ns;
	wait_ns = b->base_ns + (int64_t)(random * (double)b->base_ns);
	b->until_ns = now_ns + wait_ns;
	return wait_ns;
}
