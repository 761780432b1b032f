/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan is carried out in a copy of the cluster, node after node and step after step: a node is
 * cordoned, the pods of a step leave, and each comes to its destination, whose filters are asked
 * before. The filters therefore hold after every prefix of the moves; limits, budgets, owners and
 * quotas are counted over the whole plan.
 */
#include "aggregator/verify/verify.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/verify/verify_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

#define USAGE_FORM "evenkeel.io/v2" /* of a Snapshot's measurements */

const char *verify_invariant_name(enum verify_invariant i)
{
	static const char *const names[] = {
#define X(constant, name) name,
		VERIFY_TABLE(X)
#undef X
	};

	return names[i];
}

struct error *verify_add(const struct verify_case *c, enum verify_invariant i,
			 const struct verify_move *move)
{
	struct verify_report *r = c->report;

	ARRAY_ADD(r->of, r->count) = (struct verify_violation){.invariant = i, .move = move};
	return &r->of[r->count - 1].text;
}

void verify_report_fini(struct verify_report *r)
{
	free(r->of);
	*r = (struct verify_report){0};
}

/* --- the cluster of a snapshot */

void *verify_own(struct verify_case *c, size_t count, size_t size)
{
	assert(c->owned_count < sizeof(c->owned) / sizeof(c->owned[0]));
	return c->owned[c->owned_count++] = mem_zalloc(count + 1, size);
}

static void close_case(struct verify_case *c)
{
	for (size_t i = 0; i < c->owned_count; i++)
		free(c->owned[i]);
}

int verify_find(const struct verify_index *x, const char *name)
{
	bool found = false;
	size_t at = name ? array_find_name(x->of, x->count, sizeof(*x->of), name, &found) : 0;

	return found ? x->of[at].at : VERIFY_NOWHERE;
}

const cJSON *verify_pod_of(const struct verify_case *c, size_t move)
{
	return c->pod_of[move] < 0 ? NULL : c->w.pods[c->pod_of[move]];
}

static struct verify_index index_by(struct verify_case *c, const cJSON **objects, size_t count,
				    const char *path)
{
	struct verify_index x = {count, verify_own(c, count, sizeof(*x.of))};

	for (size_t i = 0; i < count; i++)
		x.of[i] = (struct verify_key){verify_text(objects[i], path), (int)i};
	qsort(x.of, count, sizeof(*x.of), array_compare_text);
	return x;
}

/* How many pods there are; those behind them are gone. */
static size_t take_objects(struct verify_case *c, const cJSON *snapshot)
{
	struct verify_world *w = &c->w;
	size_t listed;

	VERIFY_EACH (object, snapshot, "list.items")
		if (document_is(object, "kind", "Node"))
			w->nodes[w->node_count++] = object;
		else if (document_is(object, "kind", "Pod"))
			w->pods[w->pod_count++] = object;
		else
			w->others[w->other_count++] = object;
	c->nodes = index_by(c, w->nodes, w->node_count, "metadata.name");
	c->pods = index_by(c, w->pods, w->pod_count, "metadata.uid");
	listed = w->pod_count;
	/* Replacements are expected of evicted pods that are gone: those have reserved room. */
	VERIFY_EACH (item, snapshot, "state.drain.evictions")
		if (verify_find(&c->pods, verify_text(item, "pod.metadata.uid")) < 0)
			w->pods[w->pod_count++] = document_at(item, "pod");
	c->pods = index_by(c, w->pods, w->pod_count, "metadata.uid");
	return listed;
}

static void open_case(struct verify_case *c, const cJSON *snapshot)
{
	const struct verify_plan *p = c->plan;
	struct verify_world *w = &c->w;
	size_t count = (size_t)cJSON_GetArraySize(document_at(snapshot, "list.items"));
	size_t pods =
		count + (size_t)cJSON_GetArraySize(document_at(snapshot, "state.drain.evictions"));
	size_t listed;
	int at;

	w->nodes = verify_own(c, count, sizeof(const cJSON *));
	w->pods = verify_own(c, pods, sizeof(const cJSON *));
	w->others = verify_own(c, count, sizeof(const cJSON *));
	w->where = verify_own(c, pods, sizeof(*w->where));
	w->removed = verify_own(c, count, sizeof(*w->removed));
	w->drained = verify_own(c, count, sizeof(*w->drained));
	c->home = verify_own(c, pods, sizeof(*c->home));
	w->facts = verify_own(c, pods, sizeof(*w->facts));
	c->move_of = verify_own(c, pods, sizeof(*c->move_of));
	c->pod_of = verify_own(c, p->move_count, sizeof(*c->pod_of));
	c->falls = verify_own(c, p->move_count, sizeof(*c->falls));
	listed = take_objects(c, snapshot);
	for (size_t i = 0; i < w->pod_count; i++) {
		const char *node = i < listed ? verify_text(w->pods[i], "spec.nodeName") : "";

		at = *node ? verify_find(&c->nodes, node) : VERIFY_NOWHERE;
		c->home[i] = w->where[i] = *node && at < 0 ? VERIFY_LOST : at;
		c->move_of[i] = VERIFY_NOWHERE;
		w->facts[i] =
			(struct verify_facts){verify_namespace(w->pods[i]),
					      document_text(document_controller(w->pods[i]), "uid"),
					      document_first(w->pods[i], ANTI_AFFINITY)};
	}
	for (size_t i = p->move_count; i-- > 0;) {
		at = c->pod_of[i] = verify_find(&c->pods, p->moves[i].uid);
		if (at >= 0)
			c->move_of[at] = (int)i;
	}
	for (size_t i = 0; i < p->node_count; i++)
		if ((at = verify_find(&c->nodes, p->nodes[i].name)) >= 0)
			w->removed[at] = true;
	verify_read_use(c, snapshot);
}

/* --- what the plan is about */

static void check_nodes(const struct verify_case *c)
{
	for (size_t i = 0; i < c->plan->node_count; i++) {
		const struct verify_plan_node *n = &c->plan->nodes[i];
		int at = verify_find(&c->nodes, n->name);

		if (at < 0)
			SAY(c, IDENTITY, NULL, "there is no node %s", n->name);
		else if (!document_is(c->w.nodes[at], "metadata.uid", n->uid))
			SAY(c, IDENTITY, NULL, "node %s has the uid %s, in the plan it is %s",
			    n->name, verify_text(c->w.nodes[at], "metadata.uid"), n->uid);
	}
}

static void check_moves(const struct verify_case *c)
{
	for (size_t i = 0; i < c->plan->move_count; i++) {
		const struct verify_move *m = &c->plan->moves[i];
		const cJSON *pod = verify_pod_of(c, i);
		int home = pod ? c->home[c->pod_of[i]] : VERIFY_NOWHERE;
		const char *is = home < 0 ? "no node" : verify_name(c->w.nodes[home]);

		if (!pod)
			SAY(c, IDENTITY, m, "pod %s/%s of the plan is gone", m->namespace, m->name);
		else if (!verify_equal(is, m->from) || !verify_equal(verify_name(pod), m->name) ||
			 !verify_equal(verify_namespace(pod), m->namespace))
			SAY(c, IDENTITY, m, "uid %s is %s on %s, in the plan it is on %s", m->uid,
			    verify_name(pod), is, m->from);
		if (pod && c->move_of[c->pod_of[i]] != (int)i)
			SAY(c, COMPLETE, m, "it moves twice");
		if (verify_is_bound_to_node(pod))
			SAY(c, COMPLETE, m, "it belongs to its node: of a DaemonSet, or static");
	}
}

static void check_complete(const struct verify_case *c)
{
	for (size_t i = 0; i < c->w.pod_count; i++)
		if (c->home[i] >= 0 && c->w.removed[c->home[i]] && c->move_of[i] < 0 &&
		    verify_must_leave(c->w.pods[i]))
			SAY(c, COMPLETE, NULL, "pod %s/%s of %s is in no move",
			    verify_namespace(c->w.pods[i]), verify_name(c->w.pods[i]),
			    verify_name(c->w.nodes[c->home[i]]));
}

/* --- what may be drained, by the default options of the planner */

#define KARPENTER_HOLD "karpenter.sh/do-not-disrupt"

static bool is_held(const cJSON *object, const char *key)
{
	const char *value = document_annotation(object, key);

	return value && !verify_equal(value, "false");
}

/* NULL: the pod may be evicted. */
static const char *why_held(const struct verify_case *c, const cJSON *pod)
{
	const char *safe = document_annotation(pod, AUTOSCALER "safe-to-evict");

	if (is_held(pod, KARPENTER_HOLD))
		return "it is annotated " KARPENTER_HOLD;
	if (safe && !verify_equal(safe, "true"))
		return "its annotation " AUTOSCALER "safe-to-evict is not true";
	if (safe)
		return NULL;
	if (!document_controller(pod))
		return "no controller makes it anew";
	if (!verify_equal(verify_namespace(pod), "kube-system") ||
	    c->now - document_time(pod, "metadata.creationTimestamp") > 3600)
		return NULL;
	VERIFY_EACH_OTHER (budget, &c->w, "PodDisruptionBudget")
		if (verify_same(budget, pod, "metadata.namespace") &&
		    verify_selects(document_at(budget, "spec.selector"), pod))
			return NULL;
	return "it is in kube-system, young, and has no budget";
}

static void check_evictable(const struct verify_case *c)
{
	static const char *const holds[] = {AUTOSCALER "scale-down-disabled", KARPENTER_HOLD};
	const char *why;

	for (size_t i = 0; i < c->w.node_count; i++)
		for (size_t k = 0; k < 2 && c->w.removed[i]; k++)
			if (is_held(c->w.nodes[i], holds[k]))
				SAY(c, EVICTABLE, NULL, "node %s is annotated %s",
				    verify_name(c->w.nodes[i]), holds[k]);
	for (size_t i = 0; i < c->plan->move_count; i++) {
		const cJSON *pod = verify_pod_of(c, i);

		if (pod && verify_must_leave(pod) && (why = why_held(c, pod)))
			SAY(c, EVICTABLE, &c->plan->moves[i], "%s", why);
	}
}

/* --- moves */

/* The pod, which is nowhere, comes to the node; m is NULL for reserved room. */
static void put_pod(struct verify_case *c, int pod, int to, const struct verify_move *m)
{
	struct error text;
	const struct verify_question q = {&c->w,	  (size_t)pod, (size_t)to, c->w.pods[pod],
					  c->w.nodes[to], c,	       !m,	   &text};

	for (int i = 0; i < VERIFY_INVARIANTS; i++) {
		if (verify_filter((enum verify_invariant)i, &q))
			continue;
		if (!m)
			error_prefix(&text, "reserved room of %s/%s on %s", verify_namespace(q.pod),
				     verify_name(q.pod), verify_name(q.node));
		error_set(verify_add(c, (enum verify_invariant)i, m), "%s", text.text);
	}
	c->w.where[pod] = to;
}

static void move_pod(struct verify_case *c, size_t move)
{
	const struct verify_move *m = &c->plan->moves[move];
	const cJSON *pod = verify_pod_of(c, move);
	int to = verify_find(&c->nodes, m->to);

	if (pod && to >= 0)
		put_pod(c, c->pod_of[move], to, m);
	else if (pod && (m->to || (document_controller(pod) && !verify_has_ended(pod))))
		SAY(c, DESTINATION, m, "there is no node %s", m->to ? m->to : "that it goes to");
}

/* A guest whose pod is nowhere comes to its node; a pod that runs since stays where it is. */
static void place_guest(struct verify_case *c, const cJSON *guest)
{
	const char *uid = verify_text(guest, "uid"), *node = verify_text(guest, "to");
	int pod = verify_find(&c->pods, uid), to = verify_find(&c->nodes, node);

	if (pod >= 0 && to < 0)
		SAY(c, DESTINATION, NULL, "reserved room of uid %s: there is no node %s", uid,
		    node);
	else if (pod >= 0 && c->w.where[pod] == VERIFY_NOWHERE)
		put_pod(c, pod, to, NULL);
}

/* Pending pods, and those of nodes in deletion, before the plan drains a node. */
static void place_reserved(struct verify_case *c)
{
	bool *removed = c->w.removed;

	VERIFY_EACH (guest, c->plan->reserved, "") {
		int pod = verify_find(&c->pods, verify_text(guest, "uid"));

		if (pod >= 0 && c->move_of[pod] < 0 && verify_runs(&c->w, (size_t)pod) &&
		    !verify_is_bound_to_node(c->w.pods[pod]) &&
		    verify_is_leaving(c->w.nodes[c->home[pod]]))
			c->w.where[pod] = VERIFY_NOWHERE;
	}
	c->w.removed = c->w.drained; /* none yet */
	VERIFY_EACH (guest, c->plan->reserved, "")
		place_guest(c, guest);
	c->w.removed = removed;
}

/* Guests of the node that follow so many of its moves. */
static void move_guests(struct verify_case *c, const struct verify_plan_node *n, size_t after)
{
	VERIFY_EACH (guest, n->guests, "")
		if ((size_t)verify_number(guest, "after", 0) == after)
			place_guest(c, guest);
}

/* The pods of a step leave when it begins, and then come to their nodes; first: of the node. */
static void walk_step(struct verify_case *c, const struct verify_plan_node *n, size_t first,
		      int64_t step, size_t *done)
{
	const struct verify_move *moves = c->plan->moves;

	for (size_t k = first; k < first + n->move_count; k++)
		if (moves[k].step == step && c->pod_of[k] >= 0)
			c->w.where[c->pod_of[k]] = VERIFY_NOWHERE;
	for (size_t k = first; k < first + n->move_count; k++)
		if (moves[k].step == step) {
			move_guests(c, n, (*done)++);
			move_pod(c, k);
		}
}

/* The node is cordoned, and its guests and pods leave. Steps beyond the count violate the order. */
static void drain_node(struct verify_case *c, const struct verify_plan_node *n, size_t first)
{
	int at = verify_find(&c->nodes, n->name), pod;
	size_t done = 0;

	if (at >= 0)
		c->w.drained[at] = true;
	VERIFY_EACH (guest, n->guests, "") {
		pod = verify_find(&c->pods, verify_text(guest, "uid"));
		if (pod >= 0 && at >= 0 && c->w.where[pod] == at && c->move_of[pod] < 0)
			c->w.where[pod] = VERIFY_NOWHERE;
	}
	for (int64_t step = 0; step <= (int64_t)n->move_count; step++)
		walk_step(c, n, first, step, &done);
	move_guests(c, n, done);
}

int verify_judge(const struct verify_plan *p, const cJSON *snapshot, struct verify_report *out,
		 struct error *error)
{
	struct verify_report report = {0};
	struct verify_case c = {.plan = p, .report = &report};
	const char *form = document_text_or(snapshot, "usage.apiVersion", USAGE_FORM);
	size_t first = 0;

	if (!document_is(snapshot, "kind", "Snapshot") ||
	    !cJSON_IsArray(document_at(snapshot, "list.items")))
		return error_fail(error, -EINVAL, "the snapshot has no list.items");
	if (strcmp(form, USAGE_FORM) != 0)
		return error_fail(error, -EINVAL,
				  "usage.apiVersion: must be " USAGE_FORM ", not \"%s\"", form);
	c.now = document_time(snapshot, "time");
	if (isnan(c.now))
		return error_fail(error, -EINVAL, "the snapshot has no time in RFC 3339");
	open_case(&c, snapshot);
	if (!c.w.node_count && !c.w.pod_count) {
		close_case(&c);
		return error_fail(error, -ENODATA,
				  "nothing is known of the cluster's nodes and pods: the snapshot "
				  "has none");
	}
	check_nodes(&c);
	check_moves(&c);
	check_complete(&c);
	check_evictable(&c);
	verify_check_limits(&c);
	place_reserved(&c);
	for (size_t i = 0; i < p->node_count; first += p->nodes[i++].move_count)
		drain_node(&c, &p->nodes[i], first);
	close_case(&c);
	*out = report;
	return 0;
}
