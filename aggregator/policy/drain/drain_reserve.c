/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for pods that will need a node anyway, reserved before a candidate is simulated. In this
 * order, and within each group by priority:
 *
 *   pods of nodes in deletion that were not evicted yet
 *   evicted pods, as far as their owner lacks replicas: min(evicted, wanted - present); one each
 *   for pods without an owner. A replacement from a leaving node that has been unschedulable for
 *   ten seconds stops all candidates, and its eviction is remembered as long. Balloons, and pods
 *   that preemption took from nodes that stay, stop nothing
 *   pending pods, nominated ones to their node first
 *   placeholders of extra capacity, on their present node if possible
 *
 * Pods of DaemonSets and mirror pods need no room. The corrected variant counts the replicas among
 * the pods of the view that are not ending; upstream believes the owner's status.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_internal.h"
#include "aggregator/policy/slack/slack.h"
#include "shared/array.h"
#include "shared/duration.h"
#include "shared/mem.h"

static const int64_t UNSCHEDULABLE_NS = 10 * DRAIN_SECOND_NS;

struct items {
	struct drain_item *of; /* owned */
	size_t count;
};

static void add_item(struct items *l, place_pod pod, place_node hint)
{
	ARRAY_ADD(l->of, l->count) = (struct drain_item){pod, hint, PLACE_NONE, 0};
}

enum drain_extra drain_extra_of(const struct drain_run *r, place_pod pod)
{
	return pod < r->extra_count ? r->extra[pod].kind : DRAIN_EXTRA_NONE;
}

static void mark_extra(struct drain_run *r, place_pod pod, enum drain_extra what, uint32_t number)
{
	while (r->extra_count <= pod) {
		r->extra = array_grow(r->extra, r->extra_count, sizeof(*r->extra));
		memset(&r->extra[r->extra_count++], 0, sizeof(*r->extra));
	}
	r->extra[pod].kind = what;
	r->extra[pod].placeholder = number;
}

/* Adds a pod that the view does not have; the plan holds it. */
static place_pod add_extra(struct drain_run *r, const struct kube_pod *pod, enum drain_extra what,
			   uint32_t number)
{
	place_pod handle = place_add_pod(r->place, pod);
	struct drain_plan *p = r->plan;

	mark_extra(r, handle, what, number);
	ARRAY_ADD(p->held, p->held_count) =
		(struct kube_pod *)object_hold((struct object *)&pod->object);
	return handle;
}

static void record_move(struct drain_run *r, const struct drain_item *item)
{
	struct drain_reserved *to = &r->plan->reserved;

	if (item->to == PLACE_NONE || drain_extra_of(r, item->pod) == DRAIN_EXTRA_PLACEHOLDER)
		return;
	ARRAY_ADD(to->moves, to->move_count) = (struct drain_move){
		.pod = place_pod_record(r->place, item->pod),
		.to = place_node_name(r->place, item->to),
	};
}

static size_t schedule(struct drain_run *r, struct items *l)
{
	const struct drain_schedule s = {.place = r->place, .order = r->config->order};
	size_t placed = drain_schedule_pods(&s, l->of, l->count, NULL, NULL);

	r->plan->reserved.placed += placed;
	for (size_t i = 0; i < l->count; i++)
		record_move(r, &l->of[i]);
	free(l->of);
	return placed;
}

/* Of a DaemonSet, or a static pod of the kubelet. */
static bool is_bound_to_node(const struct kube_pod *pod)
{
	const char *source =
		labels_find(&pod->template->annotations, "kubernetes.io/config.source");

	return (source && strcmp(source, "api") != 0) || drain_is_daemon_pod(pod) ||
	       pod->template->mirror || strcmp(pod->template->owner.kind, "Node") == 0;
}

/* --- pods of nodes in deletion */

static int compare_items(const void *left, const void *right, void *place)
{
	const struct drain_item *a = left, *b = right;
	const struct kube_pod *x = place_pod_record(place, a->pod);
	const struct kube_pod *y = place_pod_record(place, b->pod);

	return object_compare(&x->object, &y->object);
}

static void sort_items(const struct drain_run *r, struct items *l)
{
	if (l->count)
		qsort_r(l->of, l->count, sizeof(*l->of), compare_items, r->place);
}

/* Takes pods that are to be evicted; pods that end already count as evicted (corrected). */
static void collect_from_node(struct drain_run *r, place_node n, struct items *to_evict,
			      struct items *ending)
{
	struct drain_case *c = &r->cases[n];
	place_pod next;

	drain_pdbs_take(r->pdbs, c->pods, r->corrected ? c->pod_count : 0);
	place_remove_node(r->place, n);
	for (place_pod pod = place_first_on(r->place, n); pod != PLACE_NONE; pod = next) {
		const struct kube_pod *record = place_pod_record(r->place, pod);
		const char *to;

		next = place_next_on(r->place, pod);
		if (!kube_pod_is_active(record) || is_bound_to_node(record) ||
		    drain_is_long_terminating(record, r->now_ns))
			continue;
		if (r->corrected && record->deletion_ns) {
			add_item(ending, pod, PLACE_NONE);
			continue;
		}
		to = drain_state_hint(r->state, record->object.uid);
		place_take(r->place, pod);
		add_item(to_evict, pod, to ? place_find_node(r->place, to) : PLACE_NONE);
	}
}

static size_t place_deletions(struct drain_run *r, struct items *ending)
{
	struct items l = {0};

	for (place_node n = 0; n < r->count; n++)
		if (r->cases[n].in_deletion)
			collect_from_node(r, n, &l, ending);
	sort_items(r, &l);
	sort_items(r, ending);
	r->plan->reserved.of_deletions = l.count;
	return l.count - schedule(r, &l);
}

/* --- evictions */

struct owner {
	UT_hash_handle hh;
	const char *uid; /* key */
	int64_t there; /* pods that are not ending */
	int64_t missing; /* replicas without room; INT64_MAX: not known */
	bool waits; /* a replacement is unschedulable */
	const struct kube_pod *pod; /* one of its pods */
	const struct kube_pod *drained; /* one that a drain evicted; NULL: none */
};

/* INT64_MAX: not known. */
static int64_t missing_of(const struct drain_run *r, const struct owner *o)
{
	const struct owner_ref *ref = &o->pod->template->owner;
	const struct cluster *cluster = r->in->view->cluster;
	const struct object *workload;
	struct drain_replicas replicas;
	enum object_kind kind;

	if (object_kind_find(o->pod->template->owner_api, ref->kind, &kind))
		return INT64_MAX;
	workload = cluster_find(cluster, kind, o->pod->object.namespace, ref->name);
	if (r->corrected && workload && strcmp(workload->uid, ref->uid) != 0)
		workload = NULL;
	if (!workload)
		return r->corrected && view_knows(r->in->view, kind) ? 0 : INT64_MAX;
	if (drain_replicas_of(workload, r->config->rules.variant, &replicas))
		return INT64_MAX;
	return replicas.target - (r->corrected ? o->there : replicas.current);
}

static const char *owner_key(const struct kube_pod *pod)
{
	return *pod->template->owner.uid ? pod->template->owner.uid : pod->template->owner.name;
}

static struct owner *find_owner(struct owner *owners, const struct kube_pod *pod)
{
	const char *key = owner_key(pod);
	struct owner *o;

	HASH_FIND_STR(owners, key, o);
	return o;
}

static void meet_owner(struct owner **owners, const struct kube_pod *pod, bool leaving)
{
	struct owner *o = find_owner(*owners, pod);

	if (!*owner_key(pod))
		return;
	if (!o) {
		HASH_NEW(*owners, o, uid, owner_key(pod));
		o->pod = pod;
	}
	if (leaving && !o->drained && !slack_is_balloon(pod))
		o->drained = pod;
}

/* Counts the pod and returns its owner; NULL: no owner that lost a pod. */
static const struct owner *count_there(struct owner *owners, const struct kube_pod *pod)
{
	struct owner *o =
		kube_pod_is_active(pod) && !pod->deletion_ns ? find_owner(owners, pod) : NULL;

	if (o)
		o->there++;
	return o;
}

/* Whether the pod is no older than the eviction. */
static bool replaces(const struct kube_pod *pod, const struct kube_pod *evicted)
{
	int64_t left_ns = evicted->disruption_ns ? evicted->disruption_ns : evicted->created_ns;

	return pod->created_ns >= left_ns;
}

static void count_owners(const struct drain_run *r, struct owner *owners)
{
	const struct object_table *pending = view_table(r->in->view, OBJECT_POD);
	struct owner *o;

	for (place_node n = 0; n < r->count && r->corrected; n++)
		for (size_t i = 0; i < r->cases[n].pod_count; i++) {
			const struct kube_pod *pod = r->cases[n].pods[i];
			const struct owner *owner = count_there(owners, pod);

			/* The timer of a node in use restarts. Balloons use nothing. */
			if (owner && replaces(pod, owner->pod) && !slack_is_balloon(pod) &&
			    pod->created_ns > r->cases[n].arrival_ns)
				r->cases[n].arrival_ns = pod->created_ns;
		}
	for (size_t i = 0; i < pending->count; i++)
		count_there(owners, (const struct kube_pod *)pending->of[i]);
	for (o = owners; o; o = o->hh.next)
		o->missing = missing_of(r, o);
}

/* Whether the owner lacks one more replica; counts it. */
static bool needs_room(struct owner *owners, const struct kube_pod *pod)
{
	struct owner *o = find_owner(owners, pod);

	if (!o || o->missing == INT64_MAX)
		return true;
	return o->missing-- > 0;
}

/* --- replacements that the scheduler has no node for */

static int64_t unschedulable_ns(const struct drain_run *r, const struct kube_pod *pod)
{
	return pod->unschedulable_ns && !pod->deletion_ns && kube_pod_is_active(pod)
		       ? elapsed_ns(r->now_ns, pod->unschedulable_ns)
		       : 0;
}

static void count_waiting(struct drain_run *r, struct owner *owners)
{
	const struct object_table *pending = view_table(r->in->view, OBJECT_POD);
	struct drain_reserved *reserved = &r->plan->reserved;

	for (size_t i = 0; i < pending->count; i++) {
		const struct kube_pod *pod = (const struct kube_pod *)pending->of[i];
		int64_t since_ns = unschedulable_ns(r, pod);
		struct owner *o = since_ns >= UNSCHEDULABLE_NS ? find_owner(owners, pod) : NULL;

		if (!o || !o->drained || !replaces(pod, o->drained))
			continue;
		o->waits = true;
		if (reserved->waiting++)
			continue;
		error_set(&reserved->error,
			  "pod %s/%s, which replaces an evicted one, has been unschedulable for "
			  "%" PRId64 " s",
			  pod->object.namespace, pod->object.name, since_ns / DRAIN_SECOND_NS);
	}
}

/* Renews evictions of owners whose replacement waits. */
static void keep_evictions(const struct drain_run *r, struct owner *owners)
{
	for (size_t i = 0; i < r->state->eviction_count; i++) {
		struct drain_eviction *e = &r->state->evictions[i];
		const struct owner *o = find_owner(owners, e->pod);

		if (o && o->waits)
			e->when_ns = r->now_ns;
	}
}

static size_t place_evictions(struct drain_run *r, const struct items *ending)
{
	const struct drain_state *s = r->state;
	struct items l = {0};
	struct owner *owners = NULL, *o, *next;

	for (size_t i = 0; i < s->eviction_count; i++)
		meet_owner(&owners, s->evictions[i].pod, s->evictions[i].leaving);
	for (size_t i = 0; i < ending->count; i++)
		meet_owner(&owners, place_pod_record(r->place, ending->of[i].pod), true);
	if (owners)
		count_owners(r, owners);
	if (owners && r->corrected) {
		count_waiting(r, owners);
		keep_evictions(r, owners);
	}
	for (size_t i = 0; i < ending->count; i++) {
		if (!needs_room(owners, place_pod_record(r->place, ending->of[i].pod)))
			continue;
		place_take(r->place, ending->of[i].pod);
		add_item(&l, ending->of[i].pod, PLACE_NONE);
	}
	for (size_t i = 0; i < s->eviction_count; i++) {
		const struct kube_pod *pod = s->evictions[i].pod;

		if (!is_bound_to_node(pod) && needs_room(owners, pod))
			add_item(&l, add_extra(r, pod, DRAIN_EXTRA_EVICTED, 0), PLACE_NONE);
	}
	HASH_RELEASE (owners, o, next)
		free(o);
	r->plan->reserved.of_evictions = l.count;
	return l.count - schedule(r, &l);
}

/* --- pending pods, and placeholders */

static void place_pending(struct drain_run *r)
{
	const struct object_table *pending = view_table(r->in->view, OBJECT_POD);
	struct items l = {0};

	for (size_t i = 0; i < pending->count; i++) {
		const struct kube_pod *pod = (const struct kube_pod *)pending->of[i];
		place_pod handle =
			place_find_pod(r->place, pod->object.namespace, pod->object.name);

		if (handle == PLACE_NONE || pod->deletion_ns ||
		    place_where(r->place, handle) != PLACE_NONE)
			continue;
		add_item(&l, handle,
			 *pod->nominated_node ? place_find_node(r->place, pod->nominated_node)
					      : PLACE_NONE);
	}
	r->plan->reserved.pending = l.count;
	schedule(r, &l);
}

static void place_placeholders(struct drain_run *r)
{
	struct items l = {0};

	r->slack = mem_zalloc(r->in->slack_count + 1, sizeof(*r->slack));
	for (size_t i = 0; i < r->in->slack_count; i++) {
		const struct drain_placeholder *slack = &r->in->slack[i];

		r->slack[i] = add_extra(r, slack->pod, DRAIN_EXTRA_PLACEHOLDER, (uint32_t)i);
		add_item(&l, r->slack[i], place_find_node(r->place, slack->node));
	}
	r->plan->reserved.placeholders = l.count;
	schedule(r, &l);
}

bool drain_slack_holds(struct drain_run *r, size_t count, struct error *why)
{
	const struct drain_input *in = r->in;
	place_node *gone;
	bool holds;

	if (!r->corrected || !in->slack_holds)
		return true;
	gone = mem_zalloc(count, sizeof(*gone));
	for (size_t i = 0; i < count; i++)
		gone[i] = r->picks[i].node;
	holds = in->slack_holds(in->slack_result, r->place, r->slack, gone, count, why);
	free(gone);
	return holds;
}

bool drain_reserve(struct drain_run *r)
{
	struct drain_reserved *reserved = &r->plan->reserved;
	struct items ending = {0};

	reserved->unplaced = place_deletions(r, &ending);
	reserved->unplaced += place_evictions(r, &ending);
	free(ending.of);
	place_pending(r);
	place_placeholders(r);
	if (reserved->unplaced)
		error_set(&reserved->error, "%zu %s of nodes in deletion, or evicted, %s nowhere",
			  reserved->unplaced, drain_plural(reserved->unplaced, "pod", "pods"),
			  drain_plural(reserved->unplaced, "fits", "fit"));
	return reserved->unplaced + reserved->waiting == 0;
}
