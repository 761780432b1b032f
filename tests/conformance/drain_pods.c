/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of pods that are to leave: drainability_rules, rule_combination, get_pods_to_move,
 * pdb_tracker.
 */
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/conformance/drain_records.h"
#include "tests/conformance/values.h"
#include "tests/drain_fixture.h"

/* What rules are asked about. */
struct scene {
	struct drain_options options;
	struct drain_records pods, budgets;
	struct cluster *cluster;
	struct drain_context context;
};

static bool scene_init(struct scene *s, const cJSON *c, const cJSON *options, struct error *error)
{
	memset(s, 0, sizeof(*s));
	if (!drain_case_options(options, &s->options, error) ||
	    !drain_records_add_budgets(&s->budgets, values_get(c, "pdbs"), error) ||
	    !drain_records_cluster(values_get(c, "listers"), &s->cluster, error))
		return false;
	s->context = (struct drain_context){
		.options = &s->options,
		.now_ns = DRAIN_CASE_NOW_NS,
		.cluster = s->cluster,
		.pdbs = drain_pdbs_new(DRAIN_UPSTREAM, s->budgets.of, s->budgets.count),
	};
	return true;
}

static void scene_fini(struct scene *s)
{
	drain_pdbs_free(s->context.pdbs);
	drain_records_fini(&s->pods);
	drain_records_fini(&s->budgets);
	cluster_drop(s->cluster);
}

static const struct drain_rule *find_rule(const char *name)
{
	size_t count;
	const struct drain_rule *rules = drain_rules(&count);

	for (size_t i = 0; name && i < count; i++)
		if (strcmp(rules[i].name, name) == 0)
			return &rules[i];
	return NULL;
}

static bool check_rule(struct scene *s, const cJSON *c, struct error *error)
{
	const struct drain_rule *rule = find_rule(cJSON_GetStringValue(values_get(c, "rule")));
	struct drain_status status = {0};

	if (!rule) {
		values_fail(error, "no such rule");
		return false;
	}
	if (!drain_records_add_pod(&s->pods, values_get(c, "pod"), error))
		return false;
	rule->ask(&(struct drain_question){&s->context, drain_records_pods(&s->pods)[0], &status,
					   NULL});
	return drain_case_same(c, "want_outcome", drain_fixture_outcome(status.outcome), error) &&
	       drain_case_same(c, "want_reason", drain_reason_name(status.reason), error);
}

enum outcome run_drainability_rule(const cJSON *c, struct error *error)
{
	struct scene s;
	bool passed = scene_init(&s, c, c, error) && check_rule(&s, c, error);

	scene_fini(&s);
	return passed ? PASSED : FAILED;
}

/* --- rule_combination */

static bool read_outcome(const char *name, enum drain_outcome *out)
{
	for (int i = 0; name && i < DRAIN_POD_OUTCOMES; i++) {
		if (strcmp(drain_fixture_outcome((enum drain_outcome)i), name) == 0) {
			*out = (enum drain_outcome)i;
			return true;
		}
	}
	return false;
}

static bool read_reason(const char *name, enum drain_reason *out)
{
	*out = DRAIN_NONE;
	for (int i = 0; name && i < DRAIN_REASONS; i++) {
		if (strcmp(drain_reason_name((enum drain_reason)i), name) == 0) {
			*out = (enum drain_reason)i;
			return true;
		}
	}
	return !name;
}

static bool read_status(const cJSON *json, struct drain_status *out, struct error *error)
{
	const cJSON *overrides = values_get(json, "overrides");

	*out = (struct drain_status){0};
	if (!read_outcome(cJSON_GetStringValue(values_get(json, "outcome")), &out->outcome) ||
	    !read_reason(cJSON_GetStringValue(values_get(json, "reason")), &out->reason)) {
		values_fail(error, "a status cannot be read");
		return false;
	}
	for (const cJSON *item = overrides ? overrides->child : NULL; item; item = item->next) {
		enum drain_outcome o;

		if (!read_outcome(cJSON_GetStringValue(item), &o)) {
			values_fail(error, "an override cannot be read");
			return false;
		}
		out->overrides |= 1U << o;
	}
	return true;
}

enum outcome run_rule_combination(const cJSON *c, struct error *error)
{
	const cJSON *rules = values_get(c, "rules");
	struct drain_status status, want;
	struct drain_judge judge = {0};

	for (const cJSON *item = rules ? rules->child : NULL; item; item = item->next) {
		if (!read_status(item, &status, error))
			return FAILED;
		if (drain_judge_step(&judge, &status))
			break;
	}
	if (!read_status(values_get(c, "want"), &want, error))
		return FAILED;
	if (judge.verdict.outcome != want.outcome || judge.verdict.reason != want.reason ||
	    judge.verdict.overrides != want.overrides)
		return values_fail(error, "the verdict is %s",
				   drain_fixture_outcome(judge.verdict.outcome));
	return PASSED;
}

/* --- get_pods_to_move */

static void always(const struct drain_question *q)
{
	q->out->outcome = DRAIN_POD_OK;
}

static void never(const struct drain_question *q)
{
	q->out->outcome = DRAIN_POD_BLOCK;
	q->out->reason = DRAIN_UNEXPECTED;
}

static void cannot_decide(const struct drain_question *q)
{
	(void)q;
}

static bool read_extra(const cJSON *list, struct drain_rule *out, size_t room, size_t *count,
		       struct error *error)
{
	static const struct drain_rule known[] = {
		{"AlwaysDrain", 0, always},
		{"NeverDrain", 0, never},
		{"CantDecide", 0, cannot_decide},
	};

	for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
		const char *name = cJSON_GetStringValue(item);
		size_t i = 0;

		while (i < 3 && !(name && strcmp(known[i].name, name) == 0))
			i++;
		if (i == 3 || *count == room) {
			values_fail(error, "no such extra rule");
			return false;
		}
		out[(*count)++] = known[i];
	}
	return true;
}

static bool same_pods(const struct scene *s, const cJSON *c, const char *key,
		      const struct kube_pod *const *got, size_t count, struct error *error)
{
	const cJSON *want = values_get(c, key);
	size_t i = 0;

	for (const cJSON *item = want ? want->child : NULL; item; item = item->next, i++) {
		if (i >= count || got[i] != drain_records_pods(&s->pods)[item->valueint]) {
			values_fail(error, "%s: pod %d is not there", key, item->valueint);
			return false;
		}
	}
	if (i != count)
		values_fail(error, "%s: %zu pods too many", key, count - i);
	return i == count;
}

static bool same_blocking(const struct scene *s, const cJSON *want, const struct drain_pods *p,
			  struct error *error)
{
	int64_t index;

	if (!want) {
		if (p->blocking)
			values_fail(error, "blocked: %s",
				    drain_reason_name(p->blocking[0].status.reason));
		return !p->blocking;
	}
	if (!values_int(want, "index", &index, error))
		return false;
	if (!p->blocking || p->blocking[0].pod != drain_records_pods(&s->pods)[index]) {
		values_fail(error, "it is not that pod that blocks");
		return false;
	}
	return drain_case_same(want, "reason", drain_reason_name(p->blocking[0].status.reason),
			       error);
}

static bool check_move(struct scene *s, const cJSON *c, struct error *error)
{
	struct drain_rule extra[4];
	size_t extra_count = 0;
	struct drain_pods p;
	bool same;

	if (!read_extra(values_get(c, "extra_rules_first"), extra, 4, &extra_count, error) ||
	    !drain_records_add_pods(&s->pods, values_get(c, "pods"), error))
		return false;
	s->context.first = extra;
	s->context.first_count = extra_count;
	drain_pods_sort(&s->context, drain_records_pods(&s->pods), s->pods.count, &p);
	same = same_pods(s, c, "want_move", p.move, p.move_count, error) &&
	       same_pods(s, c, "want_daemonset", p.daemon, p.daemon_count, error) &&
	       same_pods(s, c, "want_on_completion", p.wait, p.wait_count, error) &&
	       same_blocking(s, values_get(c, "want_blocking"), &p, error);
	drain_pods_fini(&p);
	s->context.first = NULL;
	s->context.first_count = 0;
	return same;
}

enum outcome run_get_pods_to_move(const cJSON *c, struct error *error)
{
	struct scene s;
	bool passed = scene_init(&s, c, values_get(conformance_file(), "options"), error) &&
		      check_move(&s, c, error);

	scene_fini(&s);
	return passed ? PASSED : FAILED;
}

/* --- pdb_tracker */

static bool add_labelled(struct drain_records *r, bool first, bool second, struct error *error)
{
	cJSON *pod = cJSON_CreateObject(), *labels = cJSON_AddObjectToObject(pod, "labels");
	bool good;

	cJSON_AddStringToObject(pod, "ns", "ns");
	if (first)
		cJSON_AddStringToObject(labels, "label-1", "true");
	if (second)
		cJSON_AddStringToObject(labels, "label-2", "true");
	good = drain_records_add_pod(r, pod, error);
	cJSON_Delete(pod);
	return good;
}

static bool add_tracked(struct drain_records *r, const cJSON *c, struct error *error)
{
	int64_t label1, label2, both;

	if (!values_int(c, "pods_label1", &label1, error) ||
	    !values_int(c, "pods_label2", &label2, error) ||
	    !values_int(c, "pods_both", &both, error))
		return false;
	for (int64_t i = 0; i < label1; i++)
		if (!add_labelled(r, true, i < both, error))
			return false;
	for (int64_t i = both; i < label2; i++)
		if (!add_labelled(r, false, true, error))
			return false;
	return true;
}

static bool add_tracked_budgets(struct drain_records *r, const cJSON *allowed, struct error *error)
{
	static const char *const labels[] = {"label-1", "label-2"};
	bool good = true;
	int i = 0;

	for (const cJSON *item = allowed ? allowed->child : NULL; item && i < 2;
	     item = item->next, i++) {
		cJSON *list = cJSON_CreateArray(), *budget = cJSON_CreateObject();

		cJSON_AddItemToArray(list, budget);
		cJSON_AddStringToObject(budget, "ns", "ns");
		cJSON_AddStringToObject(cJSON_AddObjectToObject(budget, "match"), labels[i],
					"true");
		cJSON_AddNumberToObject(budget, "allowed", item->valueint);
		good = good && drain_records_add_budgets(r, list, error);
		cJSON_Delete(list);
	}
	return good;
}

static bool check_can_remove(struct drain_pdbs *p, const struct scene *s, const cJSON *c,
			     struct error *error)
{
	struct drain_pdb_verdict v;

	drain_pdbs_ask(p, drain_records_pods(&s->pods), s->pods.count, &v);
	if (cJSON_IsTrue(values_get(c, "want_can_disrupt")) == (v.reason == DRAIN_NONE) &&
	    cJSON_IsTrue(values_get(c, "want_in_parallel")) == v.in_parallel)
		return true;
	values_fail(error, "can be disrupted: %d, in parallel: %d", v.reason == DRAIN_NONE,
		    v.in_parallel);
	return false;
}

/* Whatever a case calls the amounts that are to remain. */
static bool check_remaining(struct drain_pdbs *p, const struct scene *s, const cJSON *c,
			    struct error *error)
{
	const cJSON *want = c->child;
	uint32_t which = 0;

	while (want && !(strncmp(want->string, "want", 4) == 0 && cJSON_IsArray(want)))
		want = want->next;
	if (!want) {
		values_fail(error, "nothing is expected");
		return false;
	}
	drain_pdbs_take(p, drain_records_pods(&s->pods), s->pods.count);
	for (const cJSON *item = want->child; item; item = item->next, which++) {
		if (which < s->budgets.count && drain_pdbs_remaining(p, which) == item->valueint)
			continue;
		values_fail(error, "budget %u does not leave %d", which, item->valueint);
		return false;
	}
	return true;
}

enum outcome run_pdb_tracker(const cJSON *c, struct error *error)
{
	struct scene s = {0};
	bool passed = add_tracked(&s.pods, c, error) &&
		      add_tracked_budgets(&s.budgets, values_get(c, "allowed"), error);

	s.context.pdbs = drain_pdbs_new(DRAIN_UPSTREAM, s.budgets.of, s.budgets.count);
	if (passed)
		passed = values_get(c, "want_can_disrupt")
				 ? check_can_remove(s.context.pdbs, &s, c, error)
				 : check_remaining(s.context.pdbs, &s, c, error);
	scene_fini(&s);
	return passed ? PASSED : FAILED;
}
