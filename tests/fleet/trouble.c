/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	epoch        phase                         lives of a node: up, and at their ends down
 *	  |----------up------|down|------up------|down|--
 *	  `- life 0 began before the epoch by the phase, so that not all nodes die at once
 */
#include "tests/fleet/trouble.h"

enum { HASH_LIFE = 601, HASH_SKEW, HASH_LOSS, HASH_DELAY };

/* One number for the nth event of a node. */
static uint64_t event(uint32_t node, uint64_t n)
{
	return (uint64_t)node << 40 ^ n;
}

bool trouble_is_down(const struct trouble *t, const struct cluster *c, uint32_t node, int64_t at_ns,
		     uint32_t *life, int64_t *until_ns)
{
	int64_t phase, since, rest;
	bool down;

	*life = 0;
	*until_ns = INT64_MAX;
	if (!t->node_life_ns)
		return false;
	phase = (int64_t)(cluster_unit(c, HASH_LIFE, node) *
			  (double)(t->node_life_ns - t->node_down_ns));
	since = at_ns - t->epoch_ns + phase;
	since = since < 0 ? 0 : since;
	rest = since % t->node_life_ns;
	down = rest >= t->node_life_ns - t->node_down_ns;
	*life = (uint32_t)(since / t->node_life_ns);
	*until_ns = at_ns + t->node_life_ns - rest - (down ? 0 : t->node_down_ns);
	return down;
}

int64_t trouble_skew_ns(const struct trouble *t, const struct cluster *c, uint32_t node)
{
	return (int64_t)((2 * cluster_unit(c, HASH_SKEW, node) - 1) * (double)t->skew_ns);
}

bool trouble_loses_ack(const struct trouble *t, const struct cluster *c, uint32_t node, uint64_t n)
{
	return cluster_unit(c, HASH_LOSS, event(node, n)) < t->ack_loss;
}

int64_t trouble_ack_delay_ns(const struct trouble *t, const struct cluster *c, uint32_t node,
			     uint64_t n)
{
	return (int64_t)(cluster_unit(c, HASH_DELAY, event(node, n)) * (double)t->ack_delay_ns);
}
