/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /extender/preempt: the kube-scheduler found candidates by priorities alone, and asks which of them it may take, and whom there. The answer has
 * victims by our rules (preempt.h) on each offered node where these suffice, by descending priority; an empty answer is nobody's eviction. Questions come
 * with whole pods or with uids, and with victims or (newer schedulers) without; the answer always has uids.
 *
 * The same pod asks again: while its victims are going, when an answer was lost, when the scheduler's own guard does not see them go (it looks for victims
 * of lower priority only, and a borrower need not have one). So what was answered is kept (victim_log.h):
 *
 *   asked before?   a victim of then is in deletion       nobody: who was told goes already
 *                   all of them are there yet             the same as then, on the nodes that are offered now
 *                   none is there any more                found anew
 *
 * Where nodes and pods are not known (no API, not listed yet) the scheduler's own choice is confirmed, as without an extender.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/extender_json.h"
#include "aggregator/api/quota_search.h"
#include "aggregator/model/object.h"
#include "aggregator/state/victim_log.h"
#include "shared/clock.h"
#include "shared/mem.h"

/* One question, and the answer to it while it is made. */
struct preempting {
	const struct api_context *ctx;
	struct extender_preemption question;
	struct kube_pod *pod; /* held */
	const struct extender_victims_map *offered; /* of the question */
	struct quota_scene scene;
	size_t count;
	struct extender_victims *answer; /* owned, as its lists of pods; strings are borrowed */
};

/* --- the question */

static bool read_pod(struct preempting *p, struct api_response *rs)
{
	char inner[OBJECT_FIELD_MAX] = "", field[OBJECT_FIELD_MAX + 8];
	struct reason why = {""};
	struct object *record;

	if (object_read(OBJECT_POD, p->question.pod, &record, inner, &why)) {
		snprintf(field, sizeof(field), "Pod%s%s", *inner ? "." : "", inner);
		api_fail(rs, FAIL_BAD_REQUEST, field, "%s", why.text);
		return false;
	}
	p->pod = (struct kube_pod *)record;
	return true;
}

static bool read_question(struct preempting *p, const struct api_request *rq,
			  struct api_response *rs)
{
	char field[EXTENDER_FIELD_MAX];
	struct reason why = {""};

	if (extender_preemption_parse(rq->body, rq->body_len, &p->question, field, &why)) {
		api_fail(rs, FAIL_BAD_REQUEST, *field ? field : NULL, "%s", why.text);
		return false;
	}
	if (!read_pod(p, rs)) {
		extender_preemption_fini(&p->question);
		return false;
	}
	p->offered = p->question.meta.present ? &p->question.meta : &p->question.victims;
	return true;
}

static const struct extender_victims *find_offered(const struct preempting *p, const char *node)
{
	for (size_t i = 0; i < p->offered->count; i++)
		if (strcmp(p->offered->of[i].node, node) == 0)
			return &p->offered->of[i];
	return NULL;
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

		if (!offer->count)
			continue;
		v = add_node(p, offer->node, offer->count);
		v->pdb_violations = offer->pdb_violations;
		for (size_t k = 0; k < offer->count; k++)
			v->pods[v->count++].uid = offer->pods[k].uid;
	}
}

/* --- what was told before */

enum told { TOLD_NOTHING, TOLD_GOING, TOLD_THERE };

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

static enum told look_at_told(const struct preempting *p, const struct victim_answer *told)
{
	enum told state = TOLD_NOTHING;

	for (size_t i = 0; i < told->count; i++) {
		const struct kube_pod *pod = find_victim(p->scene.view, &told->of[i]);

		if (pod && pod->deletion_ns)
			return TOLD_GOING;
		if (pod)
			state = TOLD_THERE;
	}
	return state;
}

/* Victims of a node stand together, in the order of the answer. Those that are gone meanwhile are nobody's. */
static void repeat(struct preempting *p, const struct victim_answer *told)
{
	struct extender_victims *v = NULL;

	for (size_t i = 0; i < told->count; i++) {
		const struct victim *victim = &told->of[i];
		const struct extender_victims *offer = find_offered(p, victim->node);

		if (!offer || !find_victim(p->scene.view, victim))
			continue;
		if (!v || strcmp(v->node, offer->node) != 0)
			v = add_node(p, offer->node, told->count);
		v->pods[v->count++].uid = victim->uid;
	}
}

/* --- a new search */

static struct preempt_offer *make_offers(const struct preempting *p)
{
	struct preempt_offer *offers = mem_zalloc(p->offered->count + 1, sizeof(*offers));

	for (size_t i = 0; i < p->offered->count; i++) {
		const struct extender_victims *v = &p->offered->of[i];
		const char **uids = mem_alloc((v->count + 1) * sizeof(*uids));

		for (size_t k = 0; k < v->count; k++)
			uids[k] = v->pods[k].uid;
		offers[i] = (struct preempt_offer){v->node, uids, v->count};
	}
	return offers;
}

static void free_offers(struct preempt_offer *offers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((void *)offers[i].uids);
	free(offers);
}

static void take_candidate(struct preempting *p, const struct preempt_candidate *c)
{
	struct extender_victims *v = add_node(p, find_offered(p, c->node)->node, c->victim_count);

	v->pdb_violations = c->violations;
	for (size_t i = 0; i < c->victim_count; i++)
		v->pods[v->count++].uid = c->victims[i].pod->object.uid;
}

static void remember(const struct preempting *p, const struct preempt_answer *found)
{
	struct victim *victims;
	size_t count = 0, room = 0;

	for (size_t i = 0; i < found->count; i++)
		room += found->of[i].victim_count;
	victims = mem_alloc((room + 1) * sizeof(*victims));
	for (size_t i = 0; i < found->count; i++)
		for (size_t k = 0; k < found->of[i].victim_count; k++) {
			const struct kube_pod *pod = found->of[i].victims[k].pod;

			victims[count++] = (struct victim){pod->object.uid, pod->object.namespace,
							   found->of[i].node};
		}
	victim_log_put(p->ctx->victims, p->pod->object.uid, victims, count, p->ctx->now_ns());
	free(victims);
}

/* Uids of the answer are those of the view, which the scene holds. */
static void search(struct preempting *p)
{
	struct preempt_offer *offers = make_offers(p);
	struct preempt_answer found;
	struct quota_search q;

	quota_search_open(&q, p->ctx, &p->scene, p->pod, false);
	preempt_for_extender(q.index, q.place, p->scene.book, &q.options, &q.ask, offers,
			     p->offered->count, &found);
	for (size_t i = 0; i < found.count; i++)
		take_candidate(p, &found.of[i]);
	if (p->ctx->victims)
		remember(p, &found);
	preempt_answer_fini(&found);
	quota_search_close(&q);
	free_offers(offers, p->offered->count);
}

static void count_answer(const struct preempting *p, bool repeated)
{
	struct quota_counters *c = &p->ctx->counters->quota;

	counter_add(repeated   ? &c->preempt_repeated
		    : p->count ? &c->preempt_victims
			       : &c->preempt_none,
		    1);
}

/* *told is the caller's to free after the answer was written. */
static void decide(struct preempting *p, struct victim_answer *told)
{
	struct victim_log *l = p->ctx->victims;
	const char *uid = p->pod->object.uid;
	enum told state = TOLD_NOTHING;

	if (!view_knows(p->scene.view, OBJECT_NODE) || !view_knows(p->scene.view, OBJECT_POD)) {
		confirm(p);
		return;
	}
	if (l && victim_log_find(l, uid, p->ctx->now_ns(), told))
		state = look_at_told(p, told);
	if (state == TOLD_THERE)
		repeat(p, told);
	else if (state == TOLD_NOTHING)
		search(p);
	count_answer(p, state != TOLD_NOTHING);
}

/* --- the verb */

static void answer(struct preempting *p, struct api_response *rs)
{
	struct victim_answer told = {0};
	struct ledger_copy *ledger =
		p->ctx->ledger ? ledger_take(p->ctx->ledger, p->ctx->now_ns()) : NULL;
	struct view *view = view_slot_take(p->ctx->views);

	p->answer = mem_zalloc(p->offered->count + 1, sizeof(*p->answer));
	quota_scene_of(&p->scene, p->ctx, ledger, view);
	decide(p, &told);
	rs->content_type = "application/json";
	extender_write_preemption_result(&rs->body, p->answer, p->count);
	for (size_t i = 0; i < p->count; i++)
		free(p->answer[i].pods);
	free(p->answer);
	free(told.of);
	quota_scene_close(&p->scene);
	view_drop(view);
	ledger_copy_drop(ledger);
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
