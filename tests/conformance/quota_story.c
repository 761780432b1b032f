/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that are submitted one after the other to a cluster with quotas: admission, then a node,
 * else victims, whose going makes the next world. Nothing is kept but the list of pods: each world
 * is built anew.
 */
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/conformance/quota_world.h"
#include "tests/view_fixture.h"

enum { ROUNDS_MAX = 8 };

enum result { BOUND, PREEMPTED, REJECTED };

static const char *const result_name[] = {
	[BOUND] = "bound", [PREEMPTED] = "preempted", [REJECTED] = "rejected"};

/* Pods as the case writes them; who has a node is bound. */
struct story {
	const cJSON *c;
	enum quota_variant variant;
	cJSON *pods, *pending; /* owned */
};

/* What became of a pod. */
struct told {
	enum result result;
	const char *reason; /* of admission; "" it admitted */
	char *node; /* owned; NULL */
	cJSON *victims; /* owned */
};

static void told_fini(struct told *t)
{
	cJSON_Delete(t->victims);
	free(t->node);
}

static void story_init(struct story *s, const cJSON *c, enum quota_variant variant)
{
	const cJSON *pods = values_get(c, "pods");

	*s = (struct story){.c = c, .variant = variant};
	s->pods = pods ? cJSON_Duplicate(pods, true) : cJSON_CreateArray();
	s->pending = cJSON_CreateArray();
}

static void story_fini(struct story *s)
{
	cJSON_Delete(s->pods);
	cJSON_Delete(s->pending);
}

static int find(const cJSON *list, const char *pod)
{
	int at = 0;

	for (const cJSON *p = list->child; p; p = p->next, at++)
		if (strcmp(quota_world_text(p, "pod"), pod) == 0)
			return at;
	return -1;
}

/* --- one attempt */

static const char *reason_of(const struct quota_verdict *v)
{
	if (v->admitted)
		return "";
	return v->reason == QUOTA_OVER_SUM ? "over_sum_min" : "over_max";
}

static void admit(const struct preempt_fixture *f, const struct kube_pod *pod,
		  struct quota_verdict *v)
{
	struct quota_ask ask = {.uid = pod->object.uid,
				.namespace = pod->object.namespace,
				.priority = pod->template->priority,
				.requests = kube_pod_requests(pod)};

	quota_admit(f->book, &ask, v);
}

static void bind(struct story *s, const cJSON *pod, const char *node)
{
	cJSON *bound = cJSON_Duplicate(pod, true);

	cJSON_DeleteItemFromObject(bound, "node");
	cJSON_AddStringToObject(bound, "node", node);
	cJSON_AddItemToArray(s->pods, bound);
}

/* The first node with the most room, or the one it was promised. */
static bool place(struct story *s, struct preempt_fixture *f, const cJSON *pod,
		  const struct kube_pod *record, const char *hint)
{
	place_node at = hint ? place_find_node(f->place, hint) : PLACE_NONE;
	place_node n = place_choose(f->place, place_add_pod(f->place, record), PLACE_EMPTIEST_FIRST,
				    at, NULL, NULL);

	if (n == PLACE_NONE)
		return false;
	bind(s, pod, place_node_name(f->place, n));
	return true;
}

static void evict(struct story *s, struct preempt_fixture *f, const struct kube_pod *record,
		  struct told *t)
{
	struct preempt_ask ask = {.pod = record, .now_ns = VIEW_FIXTURE_NOW_NS};
	struct preempt_plan plan;

	preempt_make_plan(f->index, f->place, f->book, &f->options, &ask, &plan);
	t->victims = quota_world_victims(&plan.chosen);
	if (plan.verdict == PREEMPT_VICTIMS)
		t->node = mem_strdup(plan.chosen.node);
	for (const cJSON *v = t->victims->child; v; v = v->next)
		cJSON_DeleteItemFromArray(s->pods, find(s->pods, v->valuestring));
	preempt_plan_fini(&plan);
}

static bool try(struct story *s, const cJSON *pod, const char *hint, struct told *t)
{
	struct kube_pod *record = preempt_fixture_record(pod);
	struct preempt_fixture f;
	struct quota_verdict v;
	bool placed;

	quota_world_init(&f, s->c, s->pods, s->variant, true);
	admit(&f, record, &v);
	placed = v.admitted && place(s, &f, pod, record, hint);
	if (!hint) {
		t->reason = reason_of(&v);
		if (!placed)
			evict(s, &f, record, t);
	}
	preempt_fixture_fini(&f);
	object_drop(&record->object);
	return placed;
}

/* Victims are gone at once, and the pod is tried again. */
static void submit(struct story *s, const cJSON *pod, struct told *t)
{
	*t = (struct told){.result = BOUND, .reason = ""};
	if (try(s, pod, NULL, t))
		return;
	t->result = REJECTED;
	if (t->node && try(s, pod, t->node, t))
		t->result = PREEMPTED;
}

/* --- steps */

static bool same_used(struct story *s, const cJSON *expect, struct error *error)
{
	const cJSON *used = values_get(expect, "used");
	struct preempt_fixture f;
	bool same = true;

	if (!used)
		return true;
	quota_world_init(&f, s->c, s->pods, s->variant, true);
	for (const cJSON *q = used->child; same && q; q = q->next) {
		const struct quota *quota = quota_book_find(f.book, q->string);

		for (const cJSON *item = q->child; same && item; item = item->next) {
			int64_t got = 0;

			if (quota)
				resources_find(&quota->used, item->string, &got);
			same = got == (int64_t)item->valuedouble;
			if (!same)
				values_fail(error, "quota %s uses %lld %s", q->string,
					    (long long)got, item->string);
		}
	}
	preempt_fixture_fini(&f);
	return same;
}

static bool same_told(struct story *s, const cJSON *expect, const struct told *t,
		      struct error *error)
{
	static const char *const keys[] = {"result", "reason",		"victims",
					   "used",   "nominated_nodes", NULL};
	const cJSON *nodes = values_get(expect, "nominated_nodes");
	bool listed = !nodes;

	if (!values_only(expect, keys, error))
		return false;
	if (strcmp(quota_world_text(expect, "result"), result_name[t->result]) != 0) {
		values_fail(error, "%s (%s)", result_name[t->result], t->reason);
		return false;
	}
	if (values_get(expect, "reason") &&
	    strcmp(quota_world_text(expect, "reason"), t->reason) != 0) {
		values_fail(error, "the reason is \"%s\"", t->reason);
		return false;
	}
	if (values_get(expect, "victims") &&
	    !quota_world_same(values_get(expect, "victims"), t->victims, "victims", error))
		return false;
	for (const cJSON *n = nodes ? nodes->child : NULL; n; n = n->next)
		listed |= t->node && strcmp(n->valuestring, t->node) == 0;
	if (!listed)
		values_fail(error, "the pod goes to %s", t->node ? t->node : "none");
	return listed && same_used(s, expect, error);
}

/* What this variant is to do at the step; NULL: nothing is said. */
static const cJSON *expected_of(const struct story *s, const cJSON *step)
{
	return values_get(step, s->variant == QUOTA_UPSTREAM ? "expect" : "want_better");
}

static bool run_step(struct story *s, const cJSON *step, struct error *error)
{
	static const char *const keys[] = {"submit",   "retry",	   "expect", "want_better",
					   "withdraw", "kep_text", "note",   NULL};
	const cJSON *retry = values_get(step, "retry"), *expect = expected_of(s, step);
	int at = retry ? find(s->pending, retry->valuestring) : -1;
	cJSON *pod = at >= 0 ? cJSON_DetachItemFromArray(s->pending, at)
			     : cJSON_Duplicate(values_get(step, "submit"), true);
	struct told t;
	bool same;

	if (!values_only(step, keys, error) || !pod) {
		cJSON_Delete(pod);
		return pod && false;
	}
	submit(s, pod, &t);
	same = !expect || same_told(s, expect, &t, error);
	if (!same)
		error_prefix(error, "%s", quota_world_text(pod, "pod"));
	if (t.result == REJECTED && !cJSON_IsTrue(values_get(step, "withdraw")))
		cJSON_AddItemToArray(s->pending, pod);
	else
		cJSON_Delete(pod);
	told_fini(&t);
	return same;
}

static bool run_steps(const cJSON *c, enum quota_variant variant, struct error *error)
{
	const cJSON *steps = values_get(c, "steps");
	struct story s;
	bool same = true;

	story_init(&s, c, variant);
	for (const cJSON *step = steps ? steps->child : NULL; same && step; step = step->next)
		same = run_step(&s, step, error);
	story_fini(&s);
	if (!same)
		error_prefix(error, "%s", quota_variant_name(variant));
	return same;
}

static bool has_better(const cJSON *c)
{
	const cJSON *steps = values_get(c, "steps");

	for (const cJSON *step = steps ? steps->child : NULL; step; step = step->next)
		if (cJSON_IsObject(values_get(step, "want_better")))
			return true;
	return false;
}

enum outcome run_kep_story(const cJSON *c, struct error *error)
{
	if (!values_get(c, "steps"))
		return values_fail(error, "there are no steps");
	if (!run_steps(c, QUOTA_UPSTREAM, error))
		return FAILED;
	return !has_better(c) || run_steps(c, QUOTA_CORRECTED, error) ? PASSED : FAILED;
}

/* --- who runs at the end */

/* Who is pending is tried again as long as that changes anything. */
static void submit_all(struct story *s, const cJSON *submitted)
{
	cJSON *waiting = cJSON_Duplicate(submitted, true);
	bool changed = true;

	for (int round = 0; changed && round < ROUNDS_MAX; round++) {
		cJSON *still = cJSON_CreateArray();

		changed = false;
		while (waiting && waiting->child) {
			cJSON *pod = cJSON_DetachItemFromArray(waiting, 0);
			struct told t;

			submit(s, pod, &t);
			changed |= t.result != REJECTED;
			if (t.result == REJECTED)
				cJSON_AddItemToArray(still, pod);
			else
				cJSON_Delete(pod);
			told_fini(&t);
		}
		cJSON_Delete(waiting);
		waiting = still;
	}
	cJSON_Delete(waiting);
}

static bool all_are(const struct story *s, const cJSON *list, bool running, struct error *error)
{
	for (const cJSON *p = list ? list->child : NULL; p; p = p->next) {
		if ((find(s->pods, p->valuestring) >= 0) == running)
			continue;
		values_fail(error, "%s %s", p->valuestring, running ? "does not run" : "runs");
		return false;
	}
	return true;
}

enum outcome run_simulation(const cJSON *c, struct error *error)
{
	struct story s;
	bool same;

	story_init(&s, c, QUOTA_UPSTREAM);
	submit_all(&s, values_get(c, "submit"));
	same = all_are(&s, values_get(c, "expect_scheduled"), true, error) &&
	       all_are(&s, values_get(c, "expect_not_scheduled"), false, error);
	story_fini(&s);
	return same ? PASSED : FAILED;
}
