/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan is carried out in a copy of the cluster, node after node: a node is cordoned, its pods
 * leave, and each comes to its destination, which is asked before. What holds for each move holds
 * so for every prefix of the plan.
 */
#include "aggregator/verify/verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/verify/verify_internal.h"
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

/* Owned arrays behind a world, and indexes by name and uid. */
struct copy {
	struct verify_world w;
	const cJSON **nodes, **pods, **others;
	int *where, *pod_of;
	bool *removed, *drained;
	struct verify_use *use;
	int64_t now_ns;
};

static int find_node(const struct copy *s, const char *name)
{
	int low = 0, high = (int)s->w.node_count;

	while (low < high) {
		int middle = low + (high - low) / 2,
		    order = strcmp(verify_name(s->nodes[middle]), name);

		if (order == 0)
			return middle;
		low = order < 0 ? middle + 1 : low;
		high = order < 0 ? high : middle;
	}
	return VERIFY_NOWHERE;
}

static int find_pod(const struct copy *s, const char *uid)
{
	for (size_t i = 0; i < s->w.pod_count; i++)
		if (verify_equal(verify_text(s->pods[i], "metadata.uid", ""), uid))
			return (int)i;
	return VERIFY_NOWHERE;
}

static int compare_nodes(const void *a, const void *b)
{
	return strcmp(verify_name(*(const cJSON *const *)a), verify_name(*(const cJSON *const *)b));
}

static void take_object(struct copy *s, const cJSON *object)
{
	if (verify_is_kind(object, "Node"))
		s->nodes[s->w.node_count++] = object;
	else if (verify_is_kind(object, "Pod"))
		s->pods[s->w.pod_count++] = object;
	else
		s->others[s->w.other_count++] = object;
}

static void open_copy(struct copy *s, const struct verify_plan *p, const cJSON *snapshot)
{
	const cJSON *items = verify_at(snapshot, "list.items");
	const cJSON *evicted = verify_at(snapshot, "state.drain.evictions"), *item;
	size_t count = (size_t)cJSON_GetArraySize(items),
	       more = (size_t)cJSON_GetArraySize(evicted);

	s->nodes = mem_zalloc(count + 1, sizeof(const cJSON *));
	s->pods = mem_zalloc(count + more + 1, sizeof(const cJSON *));
	s->others = mem_zalloc(count + 1, sizeof(const cJSON *));
	for (item = verify_first(items); item; item = item->next)
		take_object(s, item);
	/* Replacements are expected of evicted pods: those are reserved, and nowhere. */
	for (item = verify_first(evicted); item; item = item->next)
		if (find_pod(s, verify_text(item, "pod.metadata.uid", "")) < 0)
			s->pods[s->w.pod_count++] = verify_get(item, "pod");
	qsort(s->nodes, s->w.node_count, sizeof(const cJSON *), compare_nodes);
	s->where = mem_zalloc(s->w.pod_count + 1, sizeof(*s->where));
	s->removed = mem_zalloc(s->w.node_count + 1, sizeof(*s->removed));
	s->drained = mem_zalloc(s->w.node_count + 1, sizeof(*s->drained));
	s->pod_of = mem_zalloc(p->move_count + 1, sizeof(*s->pod_of));
	for (size_t i = 0; i < s->w.pod_count; i++) {
		const char *node = verify_text(s->pods[i], "spec.nodeName", "");

		s->where[i] = *node ? find_node(s, node) : VERIFY_NOWHERE;
		if (*node && s->where[i] < 0)
			s->where[i] = VERIFY_LOST;
	}
	for (size_t i = 0; i < p->move_count; i++)
		s->pod_of[i] = find_pod(s, p->moves[i].uid);
	for (size_t i = 0; i < p->node_count; i++)
		if (find_node(s, p->nodes[i].name) >= 0)
			s->removed[find_node(s, p->nodes[i].name)] = true;
	s->w.nodes = s->nodes;
	s->w.pods = s->pods;
	s->w.others = s->others;
	s->w.where = s->where;
	s->w.removed = s->removed;
	s->w.drained = s->drained;
	s->use = verify_use_new(&s->w, snapshot, s->now_ns);
}

static void close_copy(struct copy *s)
{
	verify_use_free(s->use);
	free(s->nodes);
	free(s->pods);
	free(s->others);
	free(s->where);
	free(s->pod_of);
	free(s->removed);
	free(s->drained);
}

/* --- what the plan is about */

static void check_nodes(const struct verify_case *c, const struct copy *s)
{
	for (size_t i = 0; i < c->plan->node_count; i++) {
		const struct verify_plan_node *n = &c->plan->nodes[i];
		int at = find_node(s, n->name);
		const char *uid = at < 0 ? "none" : verify_text(s->nodes[at], "metadata.uid", "");

		if (at < 0 || !verify_equal(uid, n->uid))
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

		if (pod < 0 || !verify_equal(is, m->from) ||
		    !verify_equal(verify_name(s->pods[pod]), m->name) ||
		    !verify_equal(verify_namespace(s->pods[pod]), m->namespace))
			verify_say(c, VERIFY_IDENTITY, m,
				   "uid %s is %s on %s, in the plan it is on %s", m->uid,
				   pod < 0 ? "no pod" : verify_name(s->pods[pod]), is, m->from);
		for (size_t k = 0; k < i; k++)
			if (verify_equal(c->plan->moves[k].uid, m->uid))
				verify_say(c, VERIFY_COMPLETE, m, "it moves twice");
	}
}

/* Pods of the node itself stay: of DaemonSets, static ones. Ending pods leave by themselves. */
static bool must_leave(const cJSON *pod)
{
	const cJSON *annotations = verify_at(pod, "metadata.annotations");
	const char *owner = verify_text(verify_controller(pod), "kind", "");

	return !verify_has_ended(pod) && !verify_at(pod, "metadata.deletionTimestamp") &&
	       !verify_equal(owner, "DaemonSet") && !verify_equal(owner, "Node") &&
	       !verify_get(annotations, "kubernetes.io/config.mirror") &&
	       !verify_equal(cJSON_GetStringValue(
				     verify_get(annotations,
						"cluster-autoscaler.kubernetes.io/daemonset-pod")),
			     "true");
}

static void check_complete(const struct verify_case *c, const struct copy *s)
{
	for (size_t i = 0; i < s->w.pod_count; i++) {
		size_t k = 0;

		if (s->where[i] < 0 || !s->removed[s->where[i]] || !must_leave(s->pods[i]))
			continue;
		while (k < c->plan->move_count && s->pod_of[k] != (int)i)
			k++;
		if (k == c->plan->move_count)
			verify_say(c, VERIFY_COMPLETE, NULL, "pod %s/%s of %s is in no move",
				   verify_namespace(s->pods[i]), verify_name(s->pods[i]),
				   verify_name(s->nodes[s->where[i]]));
	}
}

/* --- moves */

static const struct {
	enum verify_invariant invariant;
	bool (*allows)(const struct verify_question *q);
} filters[] = {
	{VERIFY_DESTINATION, verify_destination}, {VERIFY_ROOM, verify_room},
	{VERIFY_TAINTS, verify_taints},		  {VERIFY_NODE_AFFINITY, verify_node_affinity},
	{VERIFY_CORDON, verify_cordon},		  {VERIFY_ANTI_AFFINITY, verify_anti_affinity},
	{VERIFY_AFFINITY, verify_affinity},	  {VERIFY_SPREAD, verify_spread},
	{VERIFY_HOST_PORTS, verify_host_ports},	  {VERIFY_VOLUMES, verify_volumes},
	{VERIFY_JUDGED, verify_judged},
};

static void move_pod(const struct verify_case *c, struct copy *s, size_t move)
{
	const struct verify_move *m = &c->plan->moves[move];
	int pod = s->pod_of[move], to = m->to ? find_node(s, m->to) : VERIFY_NOWHERE;
	struct error text;
	struct verify_question q = {.w = &s->w, .error = &text};

	if (pod < 0)
		return;
	if (to < 0) {
		if (m->to || (verify_controller(s->pods[pod]) && !verify_has_ended(s->pods[pod])))
			verify_say(c, VERIFY_DESTINATION, m, "there is no node %s",
				   m->to ? m->to : "that it goes to");
		return;
	}
	q.pod_at = (size_t)pod;
	q.node_at = (size_t)to;
	q.pod = s->pods[pod];
	q.node = s->nodes[to];
	if (verify_at(q.node, "status.conditions") && !verify_is_ready(q.node))
		verify_say(c, VERIFY_DESTINATION, m, "%s is not ready", m->to);
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (!filters[i].allows(&q))
			verify_say(c, filters[i].invariant, m, "%s", text.text);
	s->where[pod] = to;
	if (!verify_measured(s->use, c->plan, &q))
		verify_say(c, VERIFY_MEASURED, m, "%s", text.text);
	if (!verify_use_cap(s->use, c->plan, &q))
		verify_say(c, VERIFY_USE_CAP, m, "%s", text.text);
}

/* A pod that has come to a node since stays there, unless that goes. */
static void place_reserved(const struct verify_plan *p, struct copy *s)
{
	for (size_t i = 0; i < p->reserved_count; i++) {
		int pod = find_pod(s, p->reserved[i].uid), to = find_node(s, p->reserved[i].to);

		if (pod >= 0 && to >= 0 &&
		    (s->where[pod] < 0 || verify_is_leaving(s->nodes[s->where[pod]])))
			s->where[pod] = to;
	}
}

/* Guests of the node that follow so many of its moves come to theirs. */
static void move_guests(const struct verify_plan_node *n, size_t after, struct copy *s)
{
	for (size_t i = 0; i < n->guest_count; i++) {
		int pod = find_pod(s, n->guests[i].uid), to = find_node(s, n->guests[i].to);

		if (n->guests[i].after == after && pod >= 0 && to >= 0 &&
		    s->where[pod] == VERIFY_NOWHERE)
			s->where[pod] = to;
	}
}

/* The node is cordoned, and its pods and guests leave; first: its first move. */
static void empty_node(const struct verify_plan_node *n, size_t first, struct copy *s)
{
	int at = find_node(s, n->name), pod;

	if (at >= 0)
		s->drained[at] = true;
	for (size_t i = 0; i < n->move_count; i++)
		if (s->pod_of[first + i] >= 0)
			s->where[s->pod_of[first + i]] = VERIFY_NOWHERE;
	for (size_t i = 0; i < n->guest_count; i++) {
		pod = find_pod(s, n->guests[i].uid);
		if (pod >= 0 && s->where[pod] == at)
			s->where[pod] = VERIFY_NOWHERE;
	}
}

static void walk(const struct verify_case *c, struct copy *s)
{
	const struct verify_plan *p = c->plan;
	size_t move = 0;

	place_reserved(p, s);
	for (size_t i = 0; i < p->node_count; i++) {
		const struct verify_plan_node *n = &p->nodes[i];

		empty_node(n, move, s);
		for (size_t k = 0; k < n->move_count; k++) {
			move_guests(n, k, s);
			move_pod(c, s, move++);
		}
		move_guests(n, n->move_count, s);
	}
}

int verify_judge(const struct verify_plan *p, const cJSON *snapshot, struct verify_report *out,
		 struct error *error)
{
	struct verify_report report = {0};
	struct copy s = {0};
	struct verify_case c = {p, &s.w, NULL, &report};

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
	c.pod_of = s.pod_of;
	check_nodes(&c, &s);
	check_moves(&c, &s);
	check_complete(&c, &s);
	verify_check_limits(&c);
	walk(&c, &s);
	close_copy(&s);
	*out = report;
	return 0;
}
