/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that do no work without pods of the node (gangs.h) are evicted with them, and placed in the
 * same simulation, perhaps on their own node. If one of them must stay the node stays, too.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_internal.h"

static bool leaves_already(const void *run, const struct kube_pod *pod)
{
	const struct drain_run *r = run;
	place_node n = place_find_node(r->place, pod->node);

	return n != PLACE_NONE && r->cases[n].in_deletion;
}

void drain_gangs_open(struct drain_run *r)
{
	r->gangs = gangs_new(r->in->view, leaves_already, r);
}

static void tell_falls(const struct drain_run *r, struct drain_case *c)
{
	const struct gang *last = NULL;

	buf_clear(&c->falls);
	for (size_t i = c->leave_own; i < c->leave_count; i++) {
		const struct gang *g = gangs_fallen(r->gangs, c->leave[i]);

		if (g == last)
			continue;
		buf_add_str(&c->falls, last ? "; " : "");
		gang_tell(g, g->left, &c->falls);
		last = g;
	}
	if (last)
		buf_printf(&c->falls, ": %zu %s of other nodes must leave, too",
			   c->leave_count - c->leave_own,
			   drain_plural(c->leave_count - c->leave_own, "pod", "pods"));
}

void drain_gangs_explain(struct drain_case *c)
{
	if (c->falls.len)
		drain_add_reason(c, DRAIN_GROUP_FALLS, "%s", c->falls.data);
}

static void explain_block(struct drain_case *c, const struct kube_pod *pod,
			  const struct drain_pods *judged)
{
	const struct drain_blocking *b = judged->blocking_count ? &judged->blocking[0] : NULL;

	drain_add_reason(c, DRAIN_BLOCKED_BY_POD, "pod %s/%s of node %s must stay",
			 pod->object.namespace, pod->object.name, pod->node)
		->pod = pod;
	if (b)
		drain_explain_stay(c, pod, b->status.reason, b->why);
	drain_gangs_explain(c);
}

bool drain_gangs_close(struct drain_run *r, struct drain_case *c)
{
	bool all_move = true;

	free(c->leave);
	c->leave_count = gangs_close(r->gangs, c->sorted.move, c->sorted.move_count, &c->leave);
	for (c->leave_own = 0; c->leave_own < c->leave_count; c->leave_own++)
		if (strcmp(c->leave[c->leave_own]->node, c->view->name) != 0)
			break;
	tell_falls(r, c);
	for (size_t i = c->leave_own; i < c->leave_count && all_move; i++) {
		struct drain_pods judged;

		drain_pods_sort(&r->rules, &c->leave[i], 1, &judged);
		all_move = judged.move_count == 1;
		if (!all_move)
			explain_block(c, c->leave[i], &judged);
		drain_pods_fini(&judged);
	}
	return all_move;
}

void drain_gangs_release(struct drain_run *r, struct drain_case *c)
{
	gangs_release(r->gangs, c->leave, c->leave_count);
}
