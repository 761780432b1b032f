/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan is carried out in a copy of the cluster, node after node and step after step: a node is
 * cordoned, the pods of a step leave, and each comes to its destination, whose filters are asked
 * before. The filters therefore hold after every prefix of the moves; limits, budgets, owners and
 * quotas are counted over the whole plan.
 */
#include "aggregator/verify/verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/verify/verify_internal.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

const char *verify_invariant_name(enum verify_invariant i)
{
	static const char *const names[] = {
#define X(constant, name) name,
		VERIFY_TABLE(X)
#undef X
	};

	return names[i];
}

void verify_say(const struct verify_case *c, enum verify_invariant i,
		const struct verify_move *move, const char *format, ...)
{
	struct verify_report *r = c->report;
	struct verify_violation *v;
	va_list arguments;

	r->of = mem_realloc(r->of, (r->count + 1) * sizeof(*r->of));
	v = &r->of[r->count++];
	v->invariant = i;
	v->move = move;
	va_start(arguments, format);
	vsnprintf(v->text.text, sizeof(v->text.text), format, arguments);
	va_end(arguments);
}

void verify_report_fini(struct verify_report *r)
{
	free(r->of);
	*r = (struct verify_report){0};
}

/* --- the cluster of a snapshot */

/* Owned arrays behind a world. */
struct copy {
	struct verify_world w;
	const cJSON **nodes, **pods, **others;
	struct verify_index by_name, by_uid; /* of nodes and of pods */
	int *where, *pod_of, *move_of;
	bool *removed, *drained, *falls;
	struct verify_use *use;
	int64_t now_ns;
};

int verify_find(const struct verify_index *x, const char *name)
{
	bool found;
	size_t at = array_find_name(x->of, x->count, sizeof(*x->of), name, &found);

	return found ? x->of[at].at : VERIFY_NOWHERE;
}

static struct verify_index index_by(const cJSON *const *objects, size_t count, const char *path)
{
	struct verify_index x = {count, mem_zalloc(count + 1, sizeof(*x.of))};

	for (size_t i = 0; i < count; i++)
		x.of[i] = (struct verify_key){verify_text(objects[i], path, ""), (int)i};
	qsort(x.of, count, sizeof(*x.of), array_compare_text);
	return x;
}

static int find_node(const struct copy *s, const char *name)
{
	return name ? verify_find(&s->by_name, name) : VERIFY_NOWHERE;
}

static void take_objects(struct copy *s, const cJSON *items)
{
	VERIFY_EACH (object, items)
		if (verify_is_kind(object, "Node"))
			s->nodes[s->w.node_count++] = object;
		else if (verify_is_kind(object, "Pod"))
			s->pods[s->w.pod_count++] = object;
		else
			s->others[s->w.other_count++] = object;
	s->by_name = index_by(s->nodes, s->w.node_count, "metadata.name");
	s->by_uid = index_by(s->pods, s->w.pod_count, "metadata.uid");
}

/* Replacements are expected of evicted pods that are gone: those have reserved room. */
static void take_evicted(struct copy *s, const cJSON *evicted)
{
	size_t listed = s->w.pod_count;

	VERIFY_EACH (item, evicted)
		if (verify_find(&s->by_uid, verify_text(item, "pod.metadata.uid", "")) < 0)
			s->pods[s->w.pod_count++] = verify_get(item, "pod");
	if (s->w.pod_count == listed)
		return;
	free(s->by_uid.of);
	s->by_uid = index_by(s->pods, s->w.pod_count, "metadata.uid");
}

static void place_pods(struct copy *s)
{
	for (size_t i = 0; i < s->w.pod_count; i++) {
		const char *node = verify_text(s->pods[i], "spec.nodeName", "");

		s->where[i] = *node ? find_node(s, node) : VERIFY_NOWHERE;
		if (*node && s->where[i] < 0)
			s->where[i] = VERIFY_LOST;
		s->move_of[i] = VERIFY_NOWHERE;
	}
}

static void open_copy(struct copy *s, const struct verify_plan *p, const cJSON *snapshot)
{
	const cJSON *items = verify_at(snapshot, "list.items");
	const cJSON *evicted = verify_at(snapshot, "state.drain.evictions");
	size_t count = (size_t)cJSON_GetArraySize(items) + 1, pods = count;
	int at;

	pods += (size_t)cJSON_GetArraySize(evicted);
	s->nodes = mem_zalloc(count, sizeof(const cJSON *));
	s->pods = mem_zalloc(pods, sizeof(const cJSON *));
	s->others = mem_zalloc(count, sizeof(const cJSON *));
	take_objects(s, items);
	take_evicted(s, evicted);
	s->where = mem_zalloc(pods, sizeof(*s->where));
	s->move_of = mem_zalloc(pods, sizeof(*s->move_of));
	s->removed = mem_zalloc(count, sizeof(*s->removed));
	s->drained = mem_zalloc(count, sizeof(*s->drained));
	s->pod_of = mem_zalloc(p->move_count + 1, sizeof(*s->pod_of));
	s->falls = mem_zalloc(p->move_count + 1, sizeof(*s->falls));
	place_pods(s);
	for (size_t i = p->move_count; i-- > 0;) {
		at = s->pod_of[i] = verify_find(&s->by_uid, p->moves[i].uid);
		if (at >= 0)
			s->move_of[at] = (int)i;
	}
	for (size_t i = 0; i < p->node_count; i++)
		if ((at = find_node(s, p->nodes[i].name)) >= 0)
			s->removed[at] = true;
	s->w.nodes = s->nodes;
	s->w.pods = s->pods;
	s->w.others = s->others;
	s->w.where = s->where;
	s->w.removed = s->removed;
	s->w.drained = s->drained;
	s->use = verify_use_new(&s->w, &s->by_name, &s->by_uid, snapshot, s->now_ns);
}

static void close_copy(struct copy *s)
{
	verify_use_free(s->use);
	free(s->nodes);
	free(s->pods);
	free(s->others);
	free(s->by_name.of);
	free(s->by_uid.of);
	free(s->where);
	free(s->pod_of);
	free(s->move_of);
	free(s->removed);
	free(s->drained);
	free(s->falls);
}

/* --- what the plan is about */

static void check_nodes(const struct verify_case *c, const struct copy *s)
{
	for (size_t i = 0; i < c->plan->node_count; i++) {
		const struct verify_plan_node *n = &c->plan->nodes[i];
		int at = find_node(s, n->name);
		const char *uid = at < 0 ? "" : verify_text(s->nodes[at], "metadata.uid", "");

		if (at < 0)
			verify_say(c, VERIFY_IDENTITY, NULL, "there is no node %s", n->name);
		else if (!verify_equal(uid, n->uid))
			verify_say(c, VERIFY_IDENTITY, NULL,
				   "node %s has the uid %s, in the plan it is %s", n->name, uid,
				   n->uid);
	}
}

static void check_moves(const struct verify_case *c, const struct copy *s)
{
	for (size_t i = 0; i < c->plan->move_count; i++) {
		const struct verify_move *m = &c->plan->moves[i];
		int pod = s->pod_of[i], home = pod < 0 ? VERIFY_NOWHERE : s->where[pod];
		const char *is = home < 0 ? "no node" : verify_name(s->nodes[home]);

		if (pod < 0)
			verify_say(c, VERIFY_IDENTITY, m, "pod %s/%s of the plan is gone",
				   m->namespace, m->name);
		else if (!verify_equal(is, m->from) ||
			 !verify_equal(verify_name(s->pods[pod]), m->name) ||
			 !verify_equal(verify_namespace(s->pods[pod]), m->namespace))
			verify_say(c, VERIFY_IDENTITY, m,
				   "uid %s is %s on %s, in the plan it is on %s", m->uid,
				   verify_name(s->pods[pod]), is, m->from);
		if (pod >= 0 && s->move_of[pod] != (int)i)
			verify_say(c, VERIFY_COMPLETE, m, "it moves twice");
		if (pod >= 0 && verify_is_bound_to_node(s->pods[pod]))
			verify_say(c, VERIFY_COMPLETE, m,
				   "it belongs to its node: of a DaemonSet, or static");
	}
}

static void check_complete(const struct verify_case *c, const struct copy *s)
{
	for (size_t i = 0; i < s->w.pod_count; i++)
		if (s->where[i] >= 0 && s->removed[s->where[i]] && s->move_of[i] < 0 &&
		    verify_must_leave(s->pods[i]))
			verify_say(c, VERIFY_COMPLETE, NULL, "pod %s/%s of %s is in no move",
				   verify_namespace(s->pods[i]), verify_name(s->pods[i]),
				   verify_name(s->nodes[s->where[i]]));
}

/* --- what may be drained, by the default options of the planner */

#define KARPENTER_HOLD "karpenter.sh/do-not-disrupt"

static bool is_held(const cJSON *object, const char *key)
{
	const char *value = verify_annotation(object, key);

	return value && !verify_equal(value, "false");
}

/* A pod of kube-system may leave with a budget, or at the age of an hour. */
static bool is_system_pod(const struct copy *s, const cJSON *pod)
{
	int64_t created_ns;

	if (!verify_equal(verify_namespace(pod), "kube-system"))
		return false;
	for (size_t i = 0; i < s->w.other_count; i++)
		if (verify_is_kind(s->others[i], "PodDisruptionBudget") &&
		    verify_equal(verify_namespace(s->others[i]), "kube-system") &&
		    verify_selects(verify_at(s->others[i], "spec.selector"), pod))
			return false;
	return timefmt_parse(verify_text(pod, "metadata.creationTimestamp", ""), &created_ns,
			     NULL) ||
	       (double)s->now_ns - (double)created_ns <= 3600e9;
}

/* NULL: the pod may be evicted. */
static const char *why_held(const struct copy *s, const cJSON *pod)
{
	const char *safe = verify_annotation(pod, AUTOSCALER "safe-to-evict");

	if (is_held(pod, KARPENTER_HOLD))
		return "it is annotated " KARPENTER_HOLD;
	if (safe && !verify_equal(safe, "true"))
		return "its annotation " AUTOSCALER "safe-to-evict is not true";
	if (safe)
		return NULL;
	if (!verify_controller(pod))
		return "no controller makes it anew";
	return is_system_pod(s, pod) ? "it is in kube-system, young, and has no budget" : NULL;
}

static void check_evictable(const struct verify_case *c, const struct copy *s)
{
	static const char *const holds[] = {AUTOSCALER "scale-down-disabled", KARPENTER_HOLD};
	const char *why;

	for (size_t i = 0; i < s->w.node_count; i++)
		for (size_t k = 0; k < 2 && s->removed[i]; k++)
			if (is_held(s->nodes[i], holds[k]))
				verify_say(c, VERIFY_EVICTABLE, NULL, "node %s is annotated %s",
					   verify_name(s->nodes[i]), holds[k]);
	for (size_t i = 0; i < c->plan->move_count; i++)
		if (s->pod_of[i] >= 0 && verify_must_leave(s->pods[s->pod_of[i]]) &&
		    (why = why_held(s, s->pods[s->pod_of[i]])))
			verify_say(c, VERIFY_EVICTABLE, &c->plan->moves[i], "%s", why);
}

/* --- moves */

/* A violation of a move, or of a pod with reserved room. */
static void refuse_pod(const struct verify_case *c, const struct verify_question *q,
		       enum verify_invariant i, const struct verify_move *m)
{
	if (m)
		verify_say(c, i, m, "%s", q->error->text);
	else
		verify_say(c, i, NULL, "reserved room of %s/%s on %s: %s", verify_namespace(q->pod),
			   verify_name(q->pod), verify_name(q->node), q->error->text);
}

/* The pod, which is nowhere, comes to the node; m is NULL for reserved room. */
static void put_pod(const struct verify_case *c, struct copy *s, int pod, int to,
		    const struct verify_move *m)
{
	struct error text;
	const struct verify_question q = {.w = &s->w,
					  .pod_at = (size_t)pod,
					  .node_at = (size_t)to,
					  .pod = s->pods[pod],
					  .node = s->nodes[to],
					  .pending = !m,
					  .error = &text};

	if (!verify_has_condition(q.node, "Ready")) {
		error_set(&text, "%s is not ready", verify_name(q.node));
		refuse_pod(c, &q, VERIFY_DESTINATION, m);
	}
	for (int i = 0; i < VERIFY_INVARIANTS; i++)
		if (!verify_filter((enum verify_invariant)i, &q))
			refuse_pod(c, &q, (enum verify_invariant)i, m);
	s->where[pod] = to;
	if (!verify_measured(s->use, c->plan, &q))
		refuse_pod(c, &q, VERIFY_MEASURED, m);
	if (!verify_use_cap(s->use, c->plan, &q))
		refuse_pod(c, &q, VERIFY_USE_CAP, m);
}

static void move_pod(const struct verify_case *c, struct copy *s, size_t move)
{
	const struct verify_move *m = &c->plan->moves[move];
	int pod = s->pod_of[move], to = find_node(s, m->to);

	if (pod >= 0 && to >= 0)
		put_pod(c, s, pod, to, m);
	else if (pod >= 0 &&
		 (m->to || (verify_controller(s->pods[pod]) && !verify_has_ended(s->pods[pod]))))
		verify_say(c, VERIFY_DESTINATION, m, "there is no node %s",
			   m->to ? m->to : "that it goes to");
}

/* A guest whose pod is nowhere comes to its node; a pod that runs since stays where it is. */
static void place_guest(const struct verify_case *c, struct copy *s, const struct verify_guest *g)
{
	int pod = verify_find(&s->by_uid, g->uid), to = find_node(s, g->to);

	if (pod >= 0 && to < 0)
		verify_say(c, VERIFY_DESTINATION, NULL,
			   "reserved room of uid %s: there is no node %s", g->uid, g->to);
	else if (pod >= 0 && s->where[pod] == VERIFY_NOWHERE)
		put_pod(c, s, pod, to, NULL);
}

/* Pending pods, and those of nodes in deletion, before the plan drains a node. */
static void place_reserved(const struct verify_case *c, struct copy *s)
{
	const struct verify_plan *p = c->plan;

	for (size_t i = 0; i < p->reserved_count; i++) {
		int pod = verify_find(&s->by_uid, p->reserved[i].uid);

		if (pod >= 0 && s->where[pod] >= 0 && s->move_of[pod] < 0 &&
		    verify_must_leave(s->pods[pod]) && verify_is_leaving(s->nodes[s->where[pod]]))
			s->where[pod] = VERIFY_NOWHERE;
	}
	s->w.removed = s->drained;
	for (size_t i = 0; i < p->reserved_count; i++)
		place_guest(c, s, &p->reserved[i]);
	s->w.removed = s->removed;
}

/* Guests of the node that follow so many of its moves. */
static void move_guests(const struct verify_case *c, struct copy *s,
			const struct verify_plan_node *n, size_t after)
{
	for (size_t i = 0; i < n->guest_count; i++)
		if (n->guests[i].after == after)
			place_guest(c, s, &n->guests[i]);
}

/* The pods of a step leave when it begins, and then come to their nodes; first: of the node. */
static void walk_step(const struct verify_case *c, struct copy *s, const struct verify_plan_node *n,
		      size_t first, int64_t step, size_t *done)
{
	const struct verify_move *moves = c->plan->moves;

	for (size_t k = 0; k < n->move_count; k++)
		if (moves[first + k].step == step && s->pod_of[first + k] >= 0)
			s->where[s->pod_of[first + k]] = VERIFY_NOWHERE;
	for (size_t k = 0; k < n->move_count; k++) {
		if (moves[first + k].step != step)
			continue;
		move_guests(c, s, n, (*done)++);
		move_pod(c, s, first + k);
	}
}

/* The node is cordoned, and its guests and pods leave. Steps beyond the count violate the order. */
static void drain_node(const struct verify_case *c, struct copy *s,
		       const struct verify_plan_node *n, size_t first)
{
	int at = find_node(s, n->name), pod;
	int64_t last = 0;
	size_t done = 0;

	if (at >= 0)
		s->drained[at] = true;
	for (size_t i = 0; i < n->guest_count; i++) {
		pod = verify_find(&s->by_uid, n->guests[i].uid);
		if (pod >= 0 && at >= 0 && s->where[pod] == at && s->move_of[pod] < 0)
			s->where[pod] = VERIFY_NOWHERE;
	}
	for (size_t k = 0; k < n->move_count; k++)
		if (c->plan->moves[first + k].step <= (int64_t)n->move_count)
			last = int_max(last, c->plan->moves[first + k].step);
	for (int64_t step = 0; step <= last; step++)
		walk_step(c, s, n, first, step, &done);
	move_guests(c, s, n, done);
}

static void walk(const struct verify_case *c, struct copy *s)
{
	size_t first = 0;

	place_reserved(c, s);
	for (size_t i = 0; i < c->plan->node_count; i++) {
		drain_node(c, s, &c->plan->nodes[i], first);
		first += c->plan->nodes[i].move_count;
	}
}

int verify_judge(const struct verify_plan *p, const cJSON *snapshot, struct verify_report *out,
		 struct error *error)
{
	struct verify_report report = {0};
	struct copy s = {0};
	struct verify_case c = {.plan = p, .world = &s.w, .report = &report};

	if (!verify_is_kind(snapshot, "Snapshot") ||
	    !cJSON_IsArray(verify_at(snapshot, "list.items"))) {
		error_set(error, "the snapshot has no list.items");
		return -EINVAL;
	}
	if (timefmt_parse(verify_text(snapshot, "time", ""), &s.now_ns, error)) {
		error_prefix(error, "time of the snapshot");
		return -EINVAL;
	}
	open_copy(&s, p, snapshot);
	if (!s.w.node_count && !s.w.pod_count) {
		close_copy(&s);
		error_set(error, "nothing is known of the cluster's nodes and pods: the snapshot "
				 "has none");
		return -ENODATA;
	}
	c.pod_of = s.pod_of;
	c.move_of = s.move_of;
	c.falls = s.falls;
	check_nodes(&c, &s);
	check_moves(&c, &s);
	check_complete(&c, &s);
	check_evictable(&c, &s);
	verify_check_limits(&c);
	walk(&c, &s);
	close_copy(&s);
	*out = report;
	return 0;
}
