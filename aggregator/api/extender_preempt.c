/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /extender/preempt: the kube-scheduler found candidates by priorities alone, and asks which
 * victims it may take. The answer has victims by our rules (preempt.h) on the one offered node where
 * they are cheapest, by descending priority; an empty answer evicts nobody. It has one node only, so
 * the answered victims are as good as evicted, and count as that for the next request
 * (victim_log.h). Requests come with whole pods or with uids, and with victims or (newer schedulers)
 * without; the answer always has uids.
 *
 * The same pod asks again while its victims are going, if an answer was lost, or if the scheduler's
 * own guard does not see them go (it looks for victims of lower priority only). So answers are kept
 * (victim_log.h):
 *
 *   a former victim is in deletion   the same answer, without the pods that are gone. So the pod keeps
 *                                    its nominated node, which an empty answer would take from it
 *   else                             a new search: on the former node if it will still do, first of
 *                                    all among the former victims; on no other node until
 *                                    VICTIM_LOG_FLIGHT_NS are over. If all of them are gone and the
 *                                    node has room now, the scheduler does not know it yet: nobody
 *                                    else goes
 *
 * An answer is kept only if no other was kept since its search began; else the search is repeated,
 * so that two requests do not take the same budget.
 *
 * A scheduler asks again when a pod went or a node changed, and its watch may be ahead of ours: an
 * empty answer then might be the last. So a vain search is repeated with each view that comes within
 * LATE_NS of its end, if waiting_pods_may_linger().
 *
 * The room of the victims is reserved for the pod. If nodes and pods are not known, the scheduler's
 * own choice is confirmed, as without an extender.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/extender_call.h"
#include "aggregator/api/extender_json.h"
#include "aggregator/api/quota_session.h"
#include "aggregator/api/waiting_pods.h"
#include "aggregator/model/object.h"
#include "aggregator/policy/expected_use.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/victim_log.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/mem.h"

enum { SEARCHES_MAX = 16 };

#define LATE_NS (200 * NS_PER_MS)

/* One question, and the answer to it while it is made. */
struct preempting {
	const struct api_context *ctx;
	struct extender_preemption question;
	struct kube_pod *pod; /* held */
	const struct extender_victims_map *offered; /* of the question */
	struct quota_session session; /* of the last look */
	bool confirmed; /* the scheduler's choice, since the cluster is not known */
	struct victim_answer told; /* before, owned; count 0: nothing */
	size_t count; /* 1 at most, but where the scheduler's choice is confirmed */
	struct extender_victims *answer; /* owned, as its lists of pods; strings are borrowed */
	int64_t retry_ns; /* when nobody was found: of the last search */
};

/* --- the question */

static bool read_question(struct preempting *p, const struct api_request *rq,
			  struct api_response *rs)
{
	char field[EXTENDER_FIELD_MAX];
	struct error error = {""};

	if (extender_preemption_parse(rq->body, rq->body_len, &p->question, field, &error))
		return api_fail(rs, FAIL_BAD_REQUEST, *field ? field : NULL, "%s", error.text);
	if (!extender_read_pod(p->question.pod, &p->pod, rs)) {
		extender_preemption_fini(&p->question);
		return false;
	}
	p->offered = p->question.meta.present ? &p->question.meta : &p->question.victims;
	return true;
}

static const struct extender_victims *find_offered(const struct preempting *p, const char *node)
{
	return array_find_text(p->offered->of, p->offered->count, sizeof(struct extender_victims),
			       node);
}

/* --- the answer */

static struct extender_victims *add_node(struct preempting *p, const char *node, size_t room)
{
	struct extender_victims *v = &p->answer[p->count++];

	*v = (struct extender_victims){
		.node = node,
		.pods = mem_zalloc(room + 1, sizeof(*v->pods)),
	};
	return v;
}

/* As it was offered; one without victims could not be answered. */
static void confirm(struct preempting *p)
{
	for (size_t i = 0; i < p->offered->count; i++) {
		const struct extender_victims *offer = &p->offered->of[i];
		struct extender_victims *v;

		if (!offer->count || find_offered(p, offer->node) != offer)
			continue;
		v = add_node(p, offer->node, offer->count);
		v->pdb_violations = offer->pdb_violations;
		for (size_t k = 0; k < offer->count; k++)
			v->pods[v->count++].uid = offer->pods[k].uid;
	}
}

/* --- what was told before */

static const struct kube_pod *find_victim(const struct view *v, const struct victim *victim)
{
	const struct view_node *n = view_find(v, victim->node);

	for (size_t i = 0; n && i < n->pod_count; i++) {
		const struct kube_pod *pod = n->pods[i].pod;

		if (pod && strcmp(pod->object.uid, victim->uid) == 0)
			return pod;
	}
	return NULL;
}

/* Whether a former victim is still there, and in deletion if that matters. */
static bool is_there(const struct preempting *p, bool deleted)
{
	for (size_t i = 0; i < p->told.count; i++) {
		const struct kube_pod *pod = find_victim(p->session.view, &p->told.of[i]);

		if (pod && (!deleted || pod->deletion_ns))
			return true;
	}
	return false;
}

/* The former answer, without pods that are gone; it is kept as long as one of them goes. */
static void repeat(struct preempting *p)
{
	struct extender_victims *v;

	assert(p->told.count);
	victim_log_renew(p->ctx->victims, p->pod->object.uid, p->ctx->now_ns());
	v = add_node(p, p->told.of[0].node, p->told.count);
	for (size_t i = 0; i < p->told.count; i++)
		if (find_victim(p->session.view, &p->told.of[i]))
			v->pods[v->count++].uid = p->told.of[i].uid;
}

/* Every victim of the answer was a victim before. */
static bool is_repeated(const struct preempting *p)
{
	for (size_t i = 0; p->count && i < p->answer[0].count; i++)
		if (!array_find_text(p->told.of, p->told.count, sizeof(*p->told.of),
				     p->answer[0].pods[i].uid))
			return false;
	return p->count > 0;
}

/* --- the search */

static void take_candidate(struct preempting *p, const struct preempt_candidate *c)
{
	const struct extender_victims *offer = find_offered(p, c->node);
	struct extender_victims *v =
		add_node(p, offer ? offer->node : p->told.of[0].node, c->victim_count);

	v->pdb_violations = c->violations;
	for (size_t i = 0; i < c->victim_count; i++)
		v->pods[v->count++].uid = c->victims[i].pod->object.uid;
}

/* The former node comes first, alone: a cheaper node is no reason to evict others as well. */
static void find(struct quota_search *q, const struct preempting *p,
		 const struct preempt_offer *offers, struct preempt_answer *out)
{
	struct preempt_offer told = {.node = p->told.count ? p->told.of[0].node : ""};
	size_t count = p->offered->count;
	bool flies = is_there(p, false) && q->ask.now_ns - p->told.told_ns < VICTIM_LOG_FLIGHT_NS;
	bool gone = p->told.count && !is_there(p, false) &&
		    q->ask.now_ns - p->told.renewed_ns < VICTIM_LOG_FLIGHT_NS;

	for (size_t i = 0; i < count; i++)
		if (strcmp(offers[i].node, told.node) == 0)
			told = offers[i];
	if (flies || gone || told.uids) {
		preempt_for_extender(q->index, q->place, p->session.book, &q->options, &q->ask,
				     &told, 1, out);
		if (out->count || flies || (gone && out->room))
			return;
		preempt_answer_fini(out);
	}
	preempt_for_extender(q->index, q->place, p->session.book, &q->options, &q->ask, offers,
			     count, out);
}

/* Uids of the answer are borrowed from the session's view. False: the search has to be repeated. */
static bool search_once(struct preempting *p, const struct preempt_offer *offers)
{
	const char **uids = mem_alloc((p->told.count + 1) * sizeof(*uids));
	struct preempt_answer found;
	struct quota_search q;
	size_t chosen;
	int rc = 0;

	for (size_t i = 0; i < p->told.count; i++)
		uids[i] = p->told.of[i].uid;
	quota_search_open(&q, p->ctx, p->ctx->scheduler_places, &p->session, p->pod, false);
	q.ask.preferred = uids;
	q.ask.preferred_count = p->told.count;
	find(&q, p, offers, &found);
	p->retry_ns = found.retry_ns;
	chosen = preempt_choose(found.of, found.count, q.options.variant);
	if (chosen < found.count)
		rc = quota_search_log(&q, p->pod->object.uid, &found.of[chosen]);
	if (chosen < found.count && rc != -EAGAIN)
		take_candidate(p, &found.of[chosen]);
	preempt_answer_fini(&found);
	quota_search_close(&q);
	free(uids);
	return rc != -EAGAIN;
}

bool extender_preempt_rehearse(const struct api_context *ctx, struct kube_pod *pod,
			       const struct extender_nodes *nodes, int64_t *retry_ns)
{
	struct preempting p = {.ctx = ctx};
	struct preempt_answer found;
	struct extender_call call;
	struct preempt_offer *offers;
	struct quota_search q;
	bool any;

	extender_call_open_again(&call, ctx, pod, nodes);
	quota_session_of(&p.session, ctx, call.reservations, call.view);
	offers = mem_zalloc(call.args.count + 1, sizeof(*offers));
	for (size_t i = 0; i < call.args.count; i++)
		offers[i].node = call.args.nodes[i].name;
	quota_search_open(&q, ctx, ctx->places, &p.session, pod, false);
	preempt_for_extender(q.index, q.place, p.session.book, &q.options, &q.ask, offers,
			     call.args.count, &found);
	any = found.count > 0;
	*retry_ns = found.retry_ns;
	preempt_answer_fini(&found);
	quota_search_close(&q);
	free(offers);
	quota_session_close(&p.session);
	extender_call_close_again(&call);
	return any;
}

/* True: its victims are going. */
static bool recall(struct preempting *p)
{
	free(p->told.of);
	p->told = (struct victim_answer){0};
	if (p->ctx->victims)
		victim_log_find(p->ctx->victims, p->pod->object.uid, p->ctx->now_ns(), &p->told);
	return is_there(p, true);
}

/*
 * After SEARCHES_MAX lost races the answer is empty, and the scheduler asks again. Another request
 * for the same pod may have won.
 */
static void search(struct preempting *p)
{
	struct preempt_offer *offers = mem_zalloc(p->offered->count + 1, sizeof(*offers));
	int tries = SEARCHES_MAX;

	for (size_t i = 0; i < p->offered->count; i++) {
		const struct extender_victims *v = &p->offered->of[i];
		const char **uids = mem_alloc((v->count + 1) * sizeof(*uids));

		for (size_t k = 0; k < v->count; k++)
			uids[k] = v->pods[k].uid;
		offers[i] = (struct preempt_offer){v->node, uids, v->count};
	}
	while (!search_once(p, offers) && --tries > 0) {
		if (recall(p)) {
			repeat(p);
			break;
		}
	}
	for (size_t i = 0; i < p->offered->count; i++)
		free((void *)offers[i].uids);
	free(offers);
}

/* A vain search is remembered, and repeated later. */
static void remember_vain(const struct preempting *p)
{
	const struct view *v = p->session.view;
	struct extender_nodes *nodes = extender_nodes_new(v);

	for (size_t i = 0; i < p->offered->count; i++) {
		size_t place = view_index(v, p->offered->of[i].node);

		if (place < v->node_count)
			nodes->chosen[place] = true;
	}
	waiting_pods_sought(p->ctx->waiting, p->pod->object.uid, nodes, p->retry_ns,
			    p->ctx->now_ns());
}

static void settle(const struct preempting *p)
{
	struct quota_counters *c;
	struct reservation entry;

	if (p->confirmed)
		return;
	if (!p->count)
		remember_vain(p);
	/*
	 * Until the API shows the nomination, and the victims are gone, other pods would take their
	 * room.
	 */
	if (p->count && p->ctx->reservations && !*p->pod->node) {
		entry = expected_use_reservation(p->session.view, p->pod, p->answer[0].node);
		if (reservations_reserve(p->ctx->reservations, &entry, p->ctx->now_ns()))
			counter_add(&p->ctx->counters->extender.unreserved, 1);
		reservations_tell(p->ctx->reservations, p->pod->object.uid);
	}
	c = &p->ctx->counters->quota;
	counter_add(is_repeated(p) ? &c->preempt_repeated
		    : p->count	   ? &c->preempt_victims
				   : &c->preempt_none,
		    1);
}

/* --- the verb */

/* False: the cluster is not known, and *rs says so. */
static bool look(struct preempting *p, struct api_response *rs)
{
	quota_session_open(&p->session, p->ctx, NULL, NULL);
	if (!extender_knows_cluster(p->session.view, rs))
		return false;
	p->confirmed = !view_knows(p->session.view, OBJECT_NODE) ||
		       !view_knows(p->session.view, OBJECT_POD);
	if (p->confirmed)
		confirm(p);
	else if (recall(p))
		repeat(p);
	else
		search(p);
	return true;
}

/* Repeats a vain search with each new view until the time is over; a search may outlast it. */
static bool look_again(struct preempting *p, struct api_response *rs)
{
	int64_t until_ns = clock_mono_ns() + LATE_NS;

	if (p->count || p->confirmed || !waiting_pods_may_linger(p->ctx->waiting, p->ctx->now_ns()))
		return true;
	while (!p->count && !p->confirmed && clock_mono_ns() < until_ns &&
	       view_slot_await(p->ctx->views, p->session.view->version, until_ns)) {
		quota_session_close(&p->session);
		if (!look(p, rs))
			return false;
	}
	return true;
}

static void answer(struct preempting *p, struct api_response *rs)
{
	p->answer = mem_zalloc(p->offered->count + 2, sizeof(*p->answer));
	/* The search must see pods that went or started a moment ago. */
	view_slot_refresh(p->ctx->views, clock_mono_ns() + EXTENDER_REFRESH_NS);
	if (look(p, rs) && look_again(p, rs)) {
		settle(p);
		rs->content_type = "application/json";
		extender_write_preemption_result(&rs->body, p->answer, p->count);
	}
	for (size_t i = 0; i < p->count; i++)
		free(p->answer[i].pods);
	free(p->answer);
	free(p->told.of);
	quota_session_close(&p->session);
}

void api_extender_preempt(const struct api_context *ctx, const struct api_request *rq,
			  struct api_response *rs)
{
	struct extender_counters *counters = &ctx->counters->extender;
	struct preempting p = {.ctx = ctx};
	int64_t began_ns = ctx->now_ns(), took_ns;

	counter_add(&counters->requests[EXTENDER_PREEMPT], 1);
	if (!read_question(&p, rq, rs)) {
		counter_add(&counters->malformed, 1);
		return;
	}
	answer(&p, rs);
	object_drop(&p.pod->object);
	extender_preemption_fini(&p.question);
	took_ns = ctx->now_ns() - began_ns;
	if (took_ns > 0)
		counter_add(&counters->took_ns[EXTENDER_PREEMPT], (uint64_t)took_ns);
}
