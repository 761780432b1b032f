/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most classes ask the same of nodes, which is to say nothing: so the nodes that count and admit
 * a pod are found once for all classes whose pods ask alike, and kept while a step lasts. What no
 * placeholder changes is summed up of them, too. Neither labels, taints nor cordons change within
 * a step.
 */
#include <stdlib.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/mem.h"

static struct slack_ground *new_ground(const struct slack_run *r, const void *admission,
				       place_pod probe)
{
	struct slack_ground *g = mem_zalloc(1, sizeof(*g));

	g->admission = admission;
	g->nodes = mem_zalloc(r->survey.count + 1, sizeof(*g->nodes));
	for (place_node n = 0; n < r->survey.count; n++) {
		const struct slack_amount *free = &r->survey.free[n];
		const struct slack_amount some = {free->cpu_milli > 0 ? free->cpu_milli : 0,
						  free->mem_bytes > 0 ? free->mem_bytes : 0};

		if (!r->survey.counts[n] || !place_admits(r->place, probe, n))
			continue;
		g->nodes[g->count++] = n;
		slack_amount_add(&g->free, &some, 1);
	}
	return g;
}

static void free_ground(struct slack_ground *g)
{
	if (g)
		free(g->nodes);
	free(g);
}

const struct slack_ground *slack_ground_of(struct slack_run *r, place_pod probe)
{
	const void *admission = place_admission(r->place, probe);
	struct slack_ground *g;

	if (!admission) {
		free_ground(r->own_ground);
		r->own_ground = new_ground(r, NULL, probe);
		return r->own_ground;
	}
	HASH_FIND_PTR(r->grounds, &admission, g);
	if (!g) {
		g = new_ground(r, admission, probe);
		HASH_ADD_PTR(r->grounds, admission, g);
	}
	return g;
}

void slack_grounds_fini(struct slack_run *r)
{
	struct slack_ground *g = r->grounds, *next;

	HASH_CLEAR(hh, r->grounds);
	for (; g; g = next) {
		next = g->hh.next;
		free_ground(g);
	}
	free_ground(r->own_ground);
	r->own_ground = NULL;
}
