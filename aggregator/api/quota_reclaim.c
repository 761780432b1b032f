/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/quotas/reclaim: plans for pending pods that get room back when others give it. A
 * kube-scheduler asks its extender for victims only where it found some of lower priority by itself,
 * so a pod that only a quota refuses, or whose only victims have its own priority, waits until the
 * actuator or a person carries out its plan. The request itself changes nothing.
 *
 *   {"apiVersion","kind":"QuotaReclaimList","time","viewVersion","evictions","variant"[,"gap"],
 *    "items":[{"plan","namespace","name","uid","priority","requests":{..}[,"unschedulable":since][,"nominatedNode"],"node","text","victims":[as POST /v1/quotas/preempt has them]}],
 *    "claims":[{"namespace","name","uid","node","until"}],"considered","leftOut"}
 *
 * Items are pods whose quota stays within its min with them, by descending priority, then by name.
 * All items hold together: the search for an item counts the victims of earlier items as gone, and
 * their pods as placed. After a search without victims, pods of the same owner with the same
 * requests are skipped. At most PODS_MAX searches are made; leftOut counts the pods without one.
 *
 * POST /v1/quotas/reclaim/reservations {"plan","namespace","name","uid"}: claims the room of the
 * plan's node for the pod (reservations.h) before the victims are evicted. The plan is searched for
 * anew, and must come out as it was listed; its victims then count as evicted (victim_log.h). Pods
 * with a claim are not in the list. The same request renews a claim. After a restart of the
 * aggregator, which forgets claims, the plan "taken-over" makes one without victims if the room is
 * free or becoming so; any other plan is refused then, since none of its victims has to go.
 *
 *   {"apiVersion","kind":"QuotaReservation","time","plan","namespace","name","uid","node","until"}
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/plan_ask.h"
#include "aggregator/api/extender_call.h"
#include "aggregator/api/list.h"
#include "aggregator/api/quota_json.h"
#include "aggregator/api/quota_session.h"
#include "aggregator/api/request_body.h"
#include "aggregator/api/view_json.h"
#include "aggregator/policy/expected_use.h"
#include "aggregator/state/victim_log.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

#define SEARCH_NS (2 * NS_PER_SEC)

enum { PODS_MAX = 256, CLAIMS_MAX = 4 };

struct item {
	const struct kube_pod *pod; /* of the view */
	struct preempt_plan plan;
};

struct reclaim {
	struct quota_session *session;
	struct quota_search search;
	size_t pod_count;
	const struct kube_pod **pods; /* owned; pending and within min, in order */
	size_t item_count, searches, left_out;
	struct item *items; /* owned */
	size_t vain_count;
	const struct kube_pod *vain[PODS_MAX]; /* found no victims */
	uint32_t isolated; /* pods without a quota, at the last of them */
	/* Owned: what was told before, and the victims of the items. */
	const char **terminating;
	size_t terminating_count, past_count;
	struct victim_past *past;
};

/* --- who waits */

/* NULL: it has none. */
static const struct reservation *find_claim(const struct quota_session *s,
					    const struct kube_pod *pod)
{
	const struct reservation *e = quota_session_find_reserved(s, pod);

	return e && reservation_is_claim(e, s->now_ns) ? e : NULL;
}

static bool waits(const struct quota_session *s, const struct kube_pod *pod)
{
	return !pod->deletion_ns && kube_pod_is_active(pod) && !find_claim(s, pod) &&
	       quota_within_min(s->book, pod->object.namespace, kube_pod_requests(pod));
}

static int by_priority(const void *left, const void *right)
{
	const struct kube_pod *a = *(const struct kube_pod *const *)left;
	const struct kube_pod *b = *(const struct kube_pod *const *)right;

	return COMPARE(b->template->priority, a->template->priority)
		       ?: object_compare(&a->object, &b->object);
}

static void find_waiting(struct reclaim *r)
{
	const struct object_table *t = r->session->view->cluster->tables[OBJECT_POD];

	r->pods = mem_alloc((t->count + 1) * sizeof(struct kube_pod *));
	for (size_t i = 0; i < t->count; i++)
		if (waits(r->session, (const struct kube_pod *)t->of[i]))
			r->pods[r->pod_count++] = (const struct kube_pod *)t->of[i];
	array_sort(r->pods, r->pod_count, sizeof(struct kube_pod *), by_priority);
}

static bool is_vain(const struct reclaim *r, const struct kube_pod *pod)
{
	for (size_t i = 0; i < r->vain_count; i++)
		if (kube_pods_are_alike(r->vain[i], pod))
			return true;
	return false;
}

/* --- the searches */

/* Victims are of other quotas only: reclaiming never evicts pods of the pod's own namespace. */
static bool reclaims(const struct item *item)
{
	const struct preempt_candidate *c = &item->plan.chosen;

	for (size_t i = 0; i < c->victim_count; i++)
		if (strcmp(c->victims[i].quota, item->pod->object.namespace) == 0)
			return false;
	return item->plan.verdict == PREEMPT_VICTIMS;
}

/* The victims are gone, and the pod is there. */
static void carry_out(struct reclaim *r, const struct item *item)
{
	struct place *place = r->search.place;
	const struct preempt_candidate *c = &item->plan.chosen;
	place_pod pod = place_find_pod(place, item->pod->object.namespace, item->pod->object.name);

	for (size_t i = 0; i < c->victim_count; i++) {
		const struct object *o = &c->victims[i].pod->object;

		place_take(place, place_find_pod(place, o->namespace, o->name));
		quota_book_subtract(r->session->book, o->namespace,
				    kube_pod_requests(c->victims[i].pod));
		ARRAY_ADD(r->terminating, r->terminating_count) = o->uid;
		ARRAY_ADD(r->past, r->past_count) =
			(struct victim_past){r->search.ask.now_ns, o->namespace};
	}
	if (pod != PLACE_NONE && place_where(place, pod) == PLACE_NONE)
		place_put(place, pod, place_find_node(place, c->node));
	quota_book_add(r->session->book, item->pod->object.namespace, kube_pod_requests(item->pod));
}

/* The place is put back by its own log. */
static void undo(struct reclaim *r, const struct item *item)
{
	const struct preempt_candidate *c = &item->plan.chosen;

	quota_book_subtract(r->session->book, item->pod->object.namespace,
			    kube_pod_requests(item->pod));
	for (size_t i = 0; i < c->victim_count; i++)
		quota_book_add(r->session->book, c->victims[i].pod->object.namespace,
			       kube_pod_requests(c->victims[i].pod));
}

static void make_plan(struct reclaim *r, const struct kube_pod *pod, struct item *item)
{
	struct preempt_ask ask = r->search.ask;

	ask.pod = pod;
	ask.reserved = quota_session_ask(r->session, pod, NULL).reserved;
	ask.in_flight = r->terminating;
	ask.in_flight_count = r->terminating_count;
	ask.past = r->past;
	ask.past_count = r->past_count;
	item->pod = pod;
	preempt_make_plan(r->search.index, r->search.place, r->session->book, &r->search.options,
			  &ask, &item->plan);
}

static void search_for(struct reclaim *r, const struct kube_pod *pod)
{
	struct item *item = &r->items[r->item_count];

	make_plan(r, pod, item);
	r->searches++;
	if (reclaims(item)) {
		carry_out(r, item);
		r->item_count++;
		return;
	}
	if (item->plan.verdict == PREEMPT_IMPOSSIBLE)
		r->vain[r->vain_count++] = pod;
	r->isolated = item->plan.refused[PREEMPT_ISOLATED];
	preempt_plan_fini(&item->plan);
}

static void open_search(struct reclaim *r, const struct api_context *ctx,
			const struct kube_pod *pod)
{
	struct quota_search *q = &r->search;

	quota_search_open(q, ctx, ctx->places, r->session, pod, false);
	for (size_t i = 0; i < q->ask.in_flight_count; i++)
		ARRAY_ADD(r->terminating, r->terminating_count) = q->ask.in_flight[i];
	for (size_t i = 0; i < q->ask.past_count; i++)
		ARRAY_ADD(r->past, r->past_count) = q->ask.past[i];
}

static void close_search(struct reclaim *r)
{
	for (size_t i = r->item_count; i-- > 0;)
		undo(r, &r->items[i]);
	quota_search_close(&r->search);
}

static void search_all(struct reclaim *r, const struct api_context *ctx)
{
	int64_t end_ns = clock_mono_ns() + SEARCH_NS;

	if (!r->pod_count)
		return;
	open_search(r, ctx, r->pods[0]);
	r->items = mem_zalloc(PODS_MAX, sizeof(*r->items));
	for (size_t i = 0; i < r->pod_count; i++) {
		if (is_vain(r, r->pods[i]))
			continue;
		if (r->searches == PODS_MAX || clock_mono_ns() >= end_ns)
			r->left_out++;
		else
			search_for(r, r->pods[i]);
	}
	close_search(r);
}

static void reclaim_fini(struct reclaim *r)
{
	for (size_t i = 0; i < r->item_count; i++)
		preempt_plan_fini(&r->items[i].plan);
	free(r->items);
	free((void *)r->pods);
	free((void *)r->terminating);
	free(r->past);
}

/* --- the answer */

static void write_item(struct jsonw *w, const struct item *item)
{
	const struct kube_pod *pod = item->pod;
	struct buf text = BUF_INIT;
	char plan[QUOTA_PLAN_LEN];

	preempt_tell_reclaim(&item->plan, pod->object.namespace, &text);
	quota_json_plan_id(pod, &item->plan.chosen, plan);
	jsonw_object_open(w);
	jsonw_key_string(w, "plan", plan);
	jsonw_key_string(w, "namespace", pod->object.namespace);
	jsonw_key_string(w, "name", pod->object.name);
	jsonw_key_string(w, "uid", pod->object.uid);
	jsonw_key_int(w, "priority", pod->template->priority);
	view_json_write_resources(w, "requests", kube_pod_requests(pod), ABSENT_LEFT_OUT);
	if (pod->unschedulable_ns)
		jsonw_key_time(w, "unschedulable", pod->unschedulable_ns);
	jsonw_key_text(w, "nominatedNode", pod->nominated_node);
	jsonw_key_string(w, "node", item->plan.chosen.node);
	jsonw_key_string(w, "text", text.data);
	quota_json_write_victims(w, &item->plan.chosen);
	jsonw_object_close(w);
	buf_fini(&text);
}

static void write_claim(struct jsonw *w, const struct reservation *e, const char *node,
			int64_t until_ns)
{
	jsonw_key_string(w, "namespace", e->namespace);
	jsonw_key_string(w, "name", e->name);
	jsonw_key_string(w, "uid", e->uid);
	jsonw_key_string(w, "node", node);
	jsonw_key_time(w, "until", until_ns);
}

static void write_claims(const struct quota_session *s, struct jsonw *w)
{
	jsonw_key_array(w, "claims");
	for (size_t i = 0; s->reservations && i < s->reservations->count; i++) {
		const struct reservation *e = s->reservations->of[i];

		if (!reservation_is_claim(e, s->now_ns) ||
		    !reservations_counts(e, s->view->cluster->generation))
			continue;
		jsonw_object_open(w);
		write_claim(w, e, e->claim, e->claim_ns);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

static void write_list(const struct reclaim *r, int64_t now_ns, struct api_response *rs)
{
	struct jsonw w;

	list_answer_open(rs, &w, "QuotaReclaimList", now_ns);
	jsonw_key_int(&w, "viewVersion", (int64_t)r->session->view->version);
	jsonw_key_string(&w, "evictions", drain_json_eviction_api(r->session->view));
	quota_session_write_head(r->session, &w, "gap");
	jsonw_key_array(&w, "items");
	for (size_t i = 0; i < r->item_count; i++)
		write_item(&w, &r->items[i]);
	jsonw_array_close(&w);
	write_claims(r->session, &w);
	jsonw_key_int(&w, "considered", (int64_t)r->pod_count);
	jsonw_key_int(&w, "leftOut", (int64_t)r->left_out);
	list_answer_close(&w);
}

static void tell(struct reclaim *r, const struct kube_pod *pod, struct buf *out)
{
	const char *namespace = pod->object.namespace;

	r->items = mem_zalloc(1, sizeof(*r->items));
	search_for(r, pod);
	if (r->item_count)
		preempt_tell_reclaim(&r->items[0].plan, namespace, out);
	else if (r->vain_count && r->isolated)
		buf_printf(out,
			   "quota %s is within its min, and no pod that may go would help: "
			   "preemption does not take the %u pods without a quota (evenkeel quota "
			   "lint, --quota-cover-all)",
			   namespace, r->isolated);
}

struct kube_pod *quota_reclaim_next(const struct api_context *ctx,
				    bool (*is_told)(const void *who, const struct kube_pod *pod),
				    const void *who, struct buf *text)
{
	struct kube_pod *found = NULL;
	struct quota_session session;
	struct reclaim r = {.session = &session};

	quota_session_open(&session, ctx, NULL, NULL);
	if (quota_book_count(session.book) && view_knows(session.view, OBJECT_NODE) &&
	    view_knows(session.view, OBJECT_POD))
		find_waiting(&r);
	for (size_t i = 0; i < r.pod_count && !found; i++)
		if (r.pods[i]->unschedulable_ns && !is_told(who, r.pods[i]))
			found = (struct kube_pod *)r.pods[i];
	if (found) {
		object_hold(&found->object);
		open_search(&r, ctx, found);
		tell(&r, found, text);
		close_search(&r);
	}
	reclaim_fini(&r);
	quota_session_close(&session);
	return found;
}

void api_quotas_reclaim(const struct api_context *ctx, const struct api_request *rq,
			struct api_response *rs)
{
	struct quota_session session;
	struct reclaim r = {.session = &session};

	if (!quota_session_open(&session, ctx, rq->query(rq, "variant"), rs))
		return;
	if (quota_session_knows_pods(&session, rs)) {
		find_waiting(&r);
		search_all(&r, ctx);
		write_list(&r, ctx->now_ns(), rs);
		reclaim_fini(&r);
	}
	quota_session_close(&session);
}

/* --- claims */

struct claim_request {
	cJSON *tree; /* owned */
	const char *plan, *namespace, *name, *uid; /* of the tree */
};

static bool read_claim(struct claim_request *q, const struct api_request *rq,
		       struct api_response *rs)
{
	q->tree = request_parse(rq, api_reserve_members, rs);
	if (!q->tree || !request_check(q->tree, api_reserve_members, rs))
		return false;
	q->plan = request_member(q->tree, "plan")->valuestring;
	q->namespace = request_member(q->tree, "namespace")->valuestring;
	q->name = request_member(q->tree, "name")->valuestring;
	q->uid = request_member(q->tree, "uid")->valuestring;
	return true;
}

static const struct kube_pod *find_pending(const struct quota_session *s,
					   const struct claim_request *q, struct api_response *rs)
{
	const struct kube_pod *pod = (const void *)cluster_find_listed(s->view->cluster, OBJECT_POD,
								       q->namespace, q->name);

	if (pod && strcmp(pod->object.uid, q->uid) == 0 && !pod->deletion_ns)
		return pod;
	api_fail(rs, FAIL_CONFLICT, "uid", "pod %.60s/%.200s with uid %.60s is not pending",
		 q->namespace, q->name, q->uid);
	return NULL;
}

/* Victims of the plan count as evicted. False: others were evicted since the search began. */
static bool log_victims(const struct reclaim *r, const struct item *item)
{
	/* Not the uid itself: that has the answers to a scheduler, on one node. */
	char *preemptor = mem_printf("reclaim/%s", item->pod->object.uid);
	int rc = quota_search_log(&r->search, preemptor, &item->plan.chosen);

	free(preemptor);
	return !rc;
}

/* -EAGAIN: more was reserved since it was seen. Other errors are in *rs. */
static int make_claim(const struct quota_session *s, const struct api_context *ctx,
		      const struct kube_pod *pod, const char *node,
		      const struct reservations_copy *seen, struct api_response *rs)
{
	const struct reservation entry = expected_use_reservation(s->view, pod, node);
	int rc = reservations_claim(ctx->reservations, &entry, seen, s->now_ns);

	if (rc == -EALREADY)
		api_fail(rs, FAIL_CONFLICT, "uid", "the pod has a node already");
	else if (rc && rc != -EAGAIN)
		api_fail(rs, FAIL_BUSY, NULL, "there are too many reservations");
	return rc;
}

static void write_claimed(const struct claim_request *q, const char *node, int64_t now_ns,
			  struct api_response *rs)
{
	const struct reservation e = {.namespace = q->namespace, .name = q->name, .uid = q->uid};
	struct jsonw w;

	list_answer_open(rs, &w, "QuotaReservation", now_ns);
	jsonw_key_string(&w, "plan", q->plan);
	write_claim(&w, &e, node, now_ns + RESERVATIONS_CLAIM_NS);
	list_answer_close(&w);
}

static bool is_as_listed(const struct item *item, const char *plan, struct api_response *rs)
{
	char id[QUOTA_PLAN_LEN];

	if (item->plan.verdict == PREEMPT_NOT_NEEDED || item->plan.verdict == PREEMPT_WAIT)
		return strcmp(plan, "taken-over") == 0 ||
		       api_fail(rs, FAIL_CONFLICT, "plan", "the pod needs no victims now");
	if (!reclaims(item))
		return api_fail(rs, FAIL_CONFLICT, "plan",
				"no pods of other quotas would make room for the pod now");
	quota_json_plan_id(item->pod, &item->plan.chosen, id);
	return strcmp(id, plan) == 0 ||
	       api_fail(rs, FAIL_CONFLICT, "plan", "the plan for the pod is another one by now, %s",
			id);
}

/* Claims the node of the plan, as it is searched for now. -EAGAIN as make_claim(). */
static int claim_plan(struct quota_session *s, const struct api_context *ctx,
		      const struct kube_pod *pod, const struct claim_request *q,
		      struct api_response *rs)
{
	struct reclaim r = {.session = s};
	struct item item;
	int rc = -EINVAL;

	open_search(&r, ctx, pod);
	make_plan(&r, pod, &item);
	if (is_as_listed(&item, q->plan, rs))
		rc = make_claim(s, ctx, item.pod, item.plan.chosen.node, s->reservations, rs);
	if (!rc && !log_victims(&r, &item)) {
		reservations_release(ctx->reservations, q->uid);
		rc = -EAGAIN;
	}
	if (!rc)
		write_claimed(q, item.plan.chosen.node, s->now_ns, rs);
	preempt_plan_fini(&item.plan);
	close_search(&r);
	reclaim_fini(&r);
	return rc;
}

static int claim(const struct api_context *ctx, struct quota_session *s,
		 const struct claim_request *q, struct api_response *rs)
{
	const struct kube_pod *pod = find_pending(s, q, rs);
	const struct reservation *before = pod ? find_claim(s, pod) : NULL;
	int rc = -EINVAL;

	if (before) {
		rc = make_claim(s, ctx, pod, before->claim, NULL, rs);
		if (!rc)
			write_claimed(q, before->claim, s->now_ns, rs);
	} else if (pod && !waits(s, pod)) {
		api_fail(rs, FAIL_CONFLICT, "namespace",
			 "quota %.60s is not within its min with the pod", q->namespace);
	} else if (pod) {
		rc = claim_plan(s, ctx, pod, q, rs);
	}
	return rc;
}

/* Of one look at the cluster. */
static int try_claim(const struct api_context *ctx, const struct claim_request *q,
		     struct api_response *rs)
{
	struct quota_session session;
	int rc = -EINVAL;

	view_slot_refresh(ctx->views, clock_mono_ns() + EXTENDER_REFRESH_NS);
	if (!quota_session_open(&session, ctx, NULL, rs))
		return rc;
	if (quota_session_knows_pods(&session, rs))
		rc = claim(ctx, &session, q, rs);
	quota_session_close(&session);
	return rc;
}

void api_quotas_reserve(const struct api_context *ctx, const struct api_request *rq,
			struct api_response *rs)
{
	struct claim_request q = {0};
	bool whole = read_claim(&q, rq, rs);
	int tries = CLAIMS_MAX, rc;

	if (whole && !ctx->reservations) {
		api_fail(rs, FAIL_NO_DATA, NULL, "nothing is reserved without a server");
	} else if (whole) {
		do
			rc = try_claim(ctx, &q, rs);
		while (rc == -EAGAIN && --tries > 0);
		if (!rc)
			reservations_tell(ctx->reservations, q.uid);
		if (rc == -EAGAIN)
			api_fail(rs, FAIL_BUSY, NULL,
				 "other pods are placed too fast to claim room: ask again");
	}
	cJSON_Delete(q.tree);
}
