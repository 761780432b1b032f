/* SPDX-License-Identifier: Apache-2.0 */
/* Victims on a still world: eligibility, what each node would cost, the node that is chosen. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "shared/mem.h"
#include "tests/conformance/quota_world.h"
#include "tests/view_fixture.h"

/* --- the question */

struct question {
	struct preempt_fixture world;
	struct kube_pod *pod; /* held */
	struct preempt_ask ask;
};

static void question_init(struct question *q, const cJSON *c, enum quota_variant variant)
{
	quota_world_init(&q->world, c, NULL, variant, false);
	q->pod = preempt_fixture_record(values_get(c, "preemptor"));
	q->ask = (struct preempt_ask){.pod = q->pod, .now_ns = VIEW_FIXTURE_NOW_NS};
}

static void question_fini(struct question *q)
{
	preempt_fixture_fini(&q->world);
	object_drop(&q->pod->object);
}

static void plan(struct question *q, struct preempt_plan *out)
{
	struct preempt_fixture *f = &q->world;

	preempt_make_plan(f->index, f->place, f->book, &f->options, &q->ask, out);
}

/* Upstream's, or what the corrected variant answers a scheduler that offers every node. */
static void dry_run(struct question *q, struct preempt_answer *out)
{
	struct preempt_fixture *f = &q->world;
	size_t count = f->view->node_count;
	struct preempt_offer *offers;
	struct preempt_run run;

	if (f->options.variant == QUOTA_UPSTREAM) {
		preempt_run_init(&run, f->index, f->place, f->book, &f->options, &q->ask);
		preempt_upstream_candidates(&run, out);
		preempt_run_fini(&run);
		return;
	}
	offers = mem_zalloc(count + 1, sizeof(*offers));
	for (size_t n = 0; n < count; n++)
		offers[n].node = f->view->nodes[n]->name;
	preempt_for_extender(f->index, f->place, f->book, &f->options, &q->ask, offers, count, out);
	free(offers);
}

static bool is_eligible(struct question *q, bool unresolvable)
{
	struct preempt_fixture *f = &q->world;
	struct preempt_run run;
	bool eligible;

	preempt_run_init(&run, f->index, f->place, f->book, &f->options, &q->ask);
	eligible = preempt_upstream_is_eligible(&run, unresolvable);
	preempt_run_fini(&run);
	return eligible;
}

/* --- candidates */

static const struct preempt_candidate *find(const struct preempt_answer *c, const char *node)
{
	for (size_t i = 0; i < c->count; i++)
		if (!c->of[i].error && strcmp(c->of[i].node, node) == 0)
			return &c->of[i];
	return NULL;
}

static bool same_candidate(const cJSON *expected, const struct preempt_candidate *got,
			   struct error *why)
{
	cJSON *victims = quota_world_victims(got);
	bool same = !values_get(expected, "victims") ||
		    quota_world_same(values_get(expected, "victims"), victims, "victims", why);

	cJSON_Delete(victims);
	return same && values_same_int(expected, "num_pdb_violations", got->violations, why);
}

static bool same_candidates(const cJSON *expect, const struct preempt_answer *got,
			    struct error *why)
{
	const cJSON *list = values_get(expect, "candidates");
	int errors = 0;

	for (size_t i = 0; i < got->count; i++)
		errors += got->of[i].error;
	if (cJSON_IsTrue(values_get(expect, "error")) != (errors > 0)) {
		values_fail(why, "%d nodes were lost to an error", errors);
		return false;
	}
	if ((int)got->count - errors != cJSON_GetArraySize(list)) {
		values_fail(why, "%d candidates, and not %d", (int)got->count - errors,
			    cJSON_GetArraySize(list));
		return false;
	}
	for (const cJSON *one = list ? list->child : NULL; one; one = one->next) {
		const struct preempt_candidate *c = find(got, quota_world_text(one, "node"));

		if (!c) {
			values_fail(why, "%s is no candidate", quota_world_text(one, "node"));
			return false;
		}
		if (!same_candidate(one, c, why))
			return false;
	}
	return true;
}

static bool is_listed(const cJSON *list, const char *text)
{
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
		if (strcmp(cJSON_GetStringValue(item), text) == 0)
			return true;
	return false;
}

/*
 * {cross_node_victims, nominated_nodes}, {victims, num_pdb_violations}: of the plan. {candidates}:
 * of the dry run.
 */
static bool same_better(struct question *q, const cJSON *better, struct error *why)
{
	static const char *const keys[] = {"cross_node_victims", "nominated_nodes",    "victims",
					   "candidates",	 "num_pdb_violations", NULL};
	const cJSON *several = values_get(better, "cross_node_victims");
	const cJSON *nodes = values_get(better, "nominated_nodes");
	struct preempt_answer all = {0};
	struct preempt_plan got = {0};
	cJSON *victims = NULL;
	bool same = values_only(better, keys, why);

	if (same && values_get(better, "candidates")) {
		dry_run(q, &all);
		same = same_candidates(better, &all, why);
		preempt_answer_fini(&all);
		return same;
	}
	plan(q, &got);
	victims = quota_world_victims(&got.chosen);
	if (same && several)
		same = quota_world_same(several, victims, "victims", why);
	if (same && nodes && (!got.chosen.node || !is_listed(nodes, got.chosen.node))) {
		values_fail(why, "the pod goes to %s", got.chosen.node ? got.chosen.node : "none");
		same = false;
	}
	same = same && same_candidate(better, &got.chosen, why);
	cJSON_Delete(victims);
	preempt_plan_fini(&got);
	return same;
}

/* --- operations */

static bool run_dry(struct question *q, const cJSON *expect, struct error *why)
{
	static const char *const keys[] = {"candidates", "error", NULL};
	struct preempt_answer got;
	bool same;

	dry_run(q, &got);
	same = values_only(expect, keys, why) && same_candidates(expect, &got, why);
	preempt_answer_fini(&got);
	return same;
}

static bool run_post_filter(struct question *q, const cJSON *expect, struct error *why)
{
	static const char *const keys[] = {"status", "nominated_node", NULL};
	struct preempt_plan got;
	const char *status, *node;
	bool same = values_only(expect, keys, why);

	if (!same)
		return false;
	plan(q, &got);
	status = got.verdict == PREEMPT_VICTIMS ? "Success" : "Unschedulable";
	node = got.verdict == PREEMPT_VICTIMS ? got.chosen.node : "";
	if (strcmp(status, quota_world_text(expect, "status")) != 0 ||
	    strcmp(node, quota_world_text(expect, "nominated_node")) != 0) {
		values_fail(why, "%s on \"%s\"", status, node);
		same = false;
	}
	preempt_plan_fini(&got);
	return same;
}

static bool run_eligible(struct question *q, const cJSON *c, struct error *why)
{
	const char *status = quota_world_text(c, "nominated_node_status");
	bool expected = cJSON_IsTrue(values_get(values_get(c, "expect"), "eligible"));
	bool got = is_eligible(q, strcmp(status, "UnschedulableAndUnresolvable") == 0);

	if (got != expected)
		values_fail(why, "%seligible", got ? "" : "not ");
	return got == expected;
}

static bool run_op(struct question *q, const cJSON *c, struct error *why)
{
	const char *op = quota_world_text(c, "op");
	const cJSON *expect = values_get(c, "expect");

	if (strcmp(op, "dry_run") == 0)
		return run_dry(q, expect, why);
	if (strcmp(op, "post_filter") == 0)
		return run_post_filter(q, expect, why);
	if (strcmp(op, "eligible") == 0)
		return run_eligible(q, c, why);
	values_fail(why, "unknown op \"%s\"", op);
	return false;
}

enum outcome run_preemption(const cJSON *c, struct error *why)
{
	const cJSON *better = values_get(c, "want_better");
	struct question q;
	bool passed;

	question_init(&q, c, QUOTA_UPSTREAM);
	passed = run_op(&q, c, why);
	question_fini(&q);
	if (!passed) {
		error_prefix(why, "upstream");
		return FAILED;
	}
	if (!cJSON_IsObject(better))
		return PASSED;
	question_init(&q, c, QUOTA_CORRECTED);
	passed = same_better(&q, better, why);
	question_fini(&q);
	if (!passed)
		error_prefix(why, "corrected");
	return passed ? PASSED : FAILED;
}

/* --- several nodes, for what a rule about neighbours counts */

static cJSON *term_of(const cJSON *constraint)
{
	cJSON *term = cJSON_CreateObject(), *expression = cJSON_CreateObject();

	cJSON_AddStringToObject(term, "topologyKey", quota_world_text(constraint, "key"));
	cJSON_AddItemToArray(cJSON_AddArrayToObject(cJSON_AddObjectToObject(term, "labelSelector"),
						    "matchExpressions"),
			     expression);
	cJSON_AddStringToObject(expression, "key", quota_world_text(constraint, "selector_exists"));
	cJSON_AddStringToObject(expression, "operator", "Exists");
	return term;
}

static void add_constraint(cJSON *pod, const cJSON *constraint)
{
	cJSON *spec = cJSON_AddObjectToObject(pod, "spec"), *term = term_of(constraint), *at;
	const cJSON *skew = values_get(constraint, "max_skew");

	if (strcmp(quota_world_text(constraint, "type"), "topology_spread") == 0) {
		at = cJSON_AddArrayToObject(spec, "topologySpreadConstraints");
		cJSON_AddNumberToObject(term, "maxSkew", skew ? skew->valuedouble : 1);
		cJSON_AddStringToObject(term, "whenUnsatisfiable", "DoNotSchedule");
	} else {
		at = cJSON_AddObjectToObject(cJSON_AddObjectToObject(spec, "affinity"),
					     "podAntiAffinity");
		at = cJSON_AddArrayToObject(at, "requiredDuringSchedulingIgnoredDuringExecution");
	}
	cJSON_AddItemToArray(at, term);
}

/* Of the candidates upstream lists, the one that is chosen here; no quota is in play. */
static bool same_listed(const cJSON *expect, const struct preempt_plan *got, struct error *why)
{
	for (const cJSON *one = expect ? expect->child : NULL; one; one = one->next)
		if (got->chosen.node &&
		    strcmp(quota_world_text(one, "node"), got->chosen.node) == 0)
			return same_candidate(one, &got->chosen, why);
	values_fail(why, "the pod goes to %s", got->chosen.node ? got->chosen.node : "none");
	return false;
}

enum outcome run_cross_node(const cJSON *c, struct error *why)
{
	cJSON *copy = cJSON_Duplicate(c, true);
	struct preempt_plan got;
	struct question q;
	bool same;

	add_constraint(cJSON_GetObjectItem(copy, "preemptor"), values_get(c, "constraint"));
	question_init(&q, copy, QUOTA_CORRECTED);
	plan(&q, &got);
	same = same_listed(values_get(c, "expect"), &got, why);
	preempt_plan_fini(&got);
	question_fini(&q);
	cJSON_Delete(copy);
	return same ? PASSED : FAILED;
}

/* --- the choice among nodes */

static void read_candidate(const cJSON *c, struct preempt_candidate *out)
{
	const cJSON *list = values_get(c, "victims"), *count = values_get(c, "num_pdb_violations");

	*out = (struct preempt_candidate){.node = quota_world_text(c, "node"),
					  .violations = count ? (uint32_t)count->valuedouble : 0,
					  .victim_count = (size_t)cJSON_GetArraySize(list)};
	out->victims = mem_zalloc(out->victim_count + 1, sizeof(*out->victims));
	for (size_t i = 0; i < out->victim_count; i++) {
		const cJSON *v = cJSON_GetArrayItem(list, (int)i);
		const cJSON *start = values_get(v, "start");

		out->victims[i].priority = (int32_t)cJSON_GetNumberValue(values_get(v, "priority"));
		out->victims[i].started_ns =
			start ? PREEMPT_FIXTURE_EPOCH_NS + (int64_t)(start->valuedouble * 1e9) : 0;
	}
}

enum outcome run_node_choice(const cJSON *c, struct error *why)
{
	static const char *const keys[] = {"id",     "source", "rule", "candidates",
					   "expect", "note",   "name", NULL};
	const cJSON *list = values_get(c, "candidates");
	size_t count = (size_t)cJSON_GetArraySize(list), chosen;
	struct preempt_candidate *of = mem_zalloc(count + 1, sizeof(*of));
	const char *got;
	enum outcome outcome = PASSED;

	for (size_t i = 0; i < count; i++)
		read_candidate(cJSON_GetArrayItem(list, (int)i), &of[i]);
	chosen = preempt_choose(of, count, QUOTA_UPSTREAM);
	got = chosen < count ? of[chosen].node : "";
	if (!values_only(c, keys, why))
		outcome = FAILED;
	else if (strcmp(got, quota_world_text(c, "expect")) != 0)
		outcome = values_fail(why, "%s", got);
	for (size_t i = 0; i < count; i++)
		free(of[i].victims);
	free(of);
	return outcome;
}
