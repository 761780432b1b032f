/* SPDX-License-Identifier: Apache-2.0 */
/* PodDisruptionBudgets of victims, the criteria of the choice, and upstream's search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/quota/lint.h"
#include "shared/mem.h"
#include "tests/preempt_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

static struct preempt_fixture f;
static struct preempt_plan plan;
static struct preempt_ask ask;
static struct kube_pod *self;

static int setup(void **unused)
{
	(void)unused;
	preempt_fixture_init(&f, QUOTA_CORRECTED);
	ask = (struct preempt_ask){.now_ns = NOW};
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	preempt_plan_fini(&plan);
	preempt_fixture_fini(&f);
	if (self)
		object_drop(&self->object);
	self = NULL;
	return 0;
}

static void upstream(void)
{
	teardown(NULL);
	preempt_fixture_init(&f, QUOTA_UPSTREAM);
}

static void node(const char *name, int cpus)
{
	char *json = mem_printf("{'metadata':{'name':'%s','labels':{'zone':'z'}},'status':{"
				"'allocatable':{'cpu':'%d','memory':'64Gi','pods':'20'}}}",
				name, cpus);

	place_fixture_put(&f.cluster, OBJECT_NODE, json);
	free(json);
}

static void put(const char *text)
{
	cJSON *flat = preempt_fixture_parse(text), *pod = preempt_fixture_pod(flat);

	preempt_fixture_put(&f, OBJECT_POD, pod);
	cJSON_Delete(flat);
	cJSON_Delete(pod);
}

/* name "NAMESPACE/POD"; start in seconds, of an hour until now; more: further members. */
static void bound(const char *name, const char *at, int priority, int milli, int start,
		  const char *more)
{
	const char *slash = strchr(name, '/');
	char *text = mem_printf("{'pod':'%s','namespace':'%.*s','uid':'uid-%s','node':'%s',"
				"'priority':%d,'start':%d,'request':{'cpu':%d}%s}",
				slash + 1, (int)(slash - name), name, slash + 1, at, priority,
				start, milli, more);

	put(text);
	free(text);
}

static struct kube_pod *pending(const char *namespace, int priority, const char *request,
				const char *more)
{
	char *text = mem_printf("{'pod':'self','namespace':'%s','uid':'uid-self','priority':%d,"
				"'request':%s%s}",
				namespace, priority, request, more);
	cJSON *flat = preempt_fixture_parse(text);
	struct kube_pod *pod = preempt_fixture_record(flat);

	cJSON_Delete(flat);
	free(text);
	return pod;
}

static void budget(const char *namespace, const char *name, int allowed)
{
	char *text = mem_printf("{'metadata':{'name':'%s','namespace':'%s'},'spec':{'selector':{"
				"'matchLabels':{'app':'db'}}},'status':{'disruptionsAllowed':%d}}",
				name, namespace, allowed);

	place_fixture_put(&f.cluster, OBJECT_POD_DISRUPTION_BUDGET, text);
	free(text);
}

static struct quota *quota(const char *namespace, const char *min, const char *max)
{
	return preempt_fixture_quota(&f, namespace, min, max);
}

/* Asks anew of what there is now. */
static const char *search(void)
{
	preempt_plan_fini(&plan);
	preempt_fixture_build(&f, true);
	ask.pod = self;
	preempt_make_plan(f.index, f.place, f.book, &f.options, &ask, &plan);
	return plan.narration.data;
}

static void asks(const char *namespace, int priority, const char *request, const char *more)
{
	self = pending(namespace, priority, request, more);
	search();
}

/* "NODE: POD POD" */
static void expect(enum preempt_verdict verdict, const char *text)
{
	struct buf b = BUF_INIT;

	buf_printf(&b, "%s", plan.chosen.node ? plan.chosen.node : "-");
	for (size_t i = 0; i < plan.chosen.victim_count; i++)
		buf_printf(&b, " %s", plan.chosen.victims[i].pod->object.name);
	if (plan.verdict != verdict)
		print_message("%s%s", plan.narration.data,
			      plan.unblock.len ? plan.unblock.data : "");
	assert_string_equal(preempt_verdict_name(plan.verdict), preempt_verdict_name(verdict));
	assert_string_equal(b.data, text);
	buf_fini(&b);
}

/* Budgets select three pods, and two have to go: the youngest are b0, then b1. */
static const struct protected
{
	enum quota_variant variant;
	bool soft;
	int allowed[2]; /* by budget; -1: no such budget */
	const char *victims; /* "!": it breaks a budget; "": impossible */
}
protections[] = {
	{QUOTA_CORRECTED, false, {3, -1}, "b0 b1 "}, /* one left */
	{QUOTA_CORRECTED, false, {2, -1}, "b0 b1 "}, /* exactly used up */
	{QUOTA_CORRECTED, false, {1, -1}, ""},
	{QUOTA_CORRECTED, true, {2, -1}, "b0 b1 "},
	{QUOTA_CORRECTED, true, {1, -1}, "b0 b1! "},
	{QUOTA_CORRECTED, true, {0, -1}, "b0! b1! "},
	{QUOTA_CORRECTED, false, {9, 9}, ""},
	{QUOTA_CORRECTED, true, {9, 9}, "b0! b1! "},
	/* Upstream counts the older first, and asks each budget alone. */
	{QUOTA_UPSTREAM, false, {2, -1}, "b1 b0 "},
	{QUOTA_UPSTREAM, false, {1, -1}, "b0! b1 "},
	{QUOTA_UPSTREAM, false, {0, -1}, "b1! b0! "},
	{QUOTA_UPSTREAM, false, {9, 2}, "b1 b0 "},
	{QUOTA_UPSTREAM, false, {1, 9}, "b0! b1 "},
};

static void tell_protected(struct buf *out)
{
	uint32_t violations = 0;

	for (size_t i = 0; i < plan.chosen.victim_count; i++) {
		const struct preempt_victim *v = &plan.chosen.victims[i];

		buf_printf(out, "%s%s ", v->pod->object.name, v->violates_pdb ? "!" : "");
		violations += v->violates_pdb;
	}
	assert_int_equal(plan.chosen.violations, violations);
}

static void budgets_are_counted_to_the_last(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(protections) / sizeof(protections[0]); i++) {
		const struct protected *p = &protections[i];
		struct buf told = BUF_INIT;

		teardown(NULL);
		preempt_fixture_init(&f, p->variant);
		f.options.pdb_hard = !p->soft;
		node("n", 3);
		quota("a", "{'cpu':2000}", "{'cpu':3000}");
		quota("b", "{'cpu':1000}", "{'cpu':3000}");
		bound("b/b0", "n", 0, 1000, 2, ",'labels':{'app':'db'}");
		bound("b/b1", "n", 0, 1000, 1, ",'labels':{'app':'db'}");
		bound("b/b2", "n", 0, 1000, 0, ",'labels':{'app':'db'}");
		for (int k = 0; k < 2 && p->allowed[k] >= 0; k++)
			budget("b", k ? "two" : "one", p->allowed[k]);
		asks("a", 0, "{'cpu':2000}", "");
		tell_protected(&told);
		if (strcmp(told.len ? told.data : "", p->victims) != 0)
			fail_msg("case %zu: \"%s\"", i, told.len ? told.data : "");
		buf_fini(&told);
	}
}

static void fewest_budgets_are_broken(void **unused)
{
	(void)unused;
	node("n1", 3);
	node("n2", 3);
	for (int i = 0; i < 3; i++)
		bound((const char *const[]){"x/p0", "x/p1", "x/p2"}[i], "n1", 0, 1000, 0,
		      ",'labels':{'app':'db'}");
	bound("y/q", "n2", 500, 3000, 0, ",'labels':{'app':'db'}");
	budget("x", "one", 1);
	budget("y", "one", 0);
	f.options.pdb_hard = false;
	asks("z", 1000, "{'cpu':3000}", "");
	/* Two of the three would exceed theirs. */
	expect(PREEMPT_VICTIMS, "n2 q");
	assert_int_equal(plan.chosen.violations, 1);
}

static void a_budget_that_is_used_up_is_not_broken(void **unused)
{
	(void)unused;
	node("n1", 1);
	node("n2", 1);
	bound("x/p", "n1", 0, 1000, 0, ",'labels':{'app':'db'}");
	bound("x/q", "n2", 500, 1000, 0, "");
	budget("x", "one", 1);
	asks("z", 1000, "{'cpu':1000}", "");
	expect(PREEMPT_VICTIMS, "n1 p");
}

/* Upstream counts the budget anew on each node. */
static void a_budget_of_two_nodes(void **unused)
{
	(void)unused;
	upstream();
	node("n1", 1);
	node("n2", 1);
	bound("x/p", "n1", 500, 1000, 0, ",'labels':{'app':'db'}");
	bound("x/q", "n2", 0, 1000, 0, ",'labels':{'app':'db'}");
	budget("x", "one", 1);
	asks("z", 1000, "{'cpu':1000}", "");
	expect(PREEMPT_VICTIMS, "n2 q");
}

/* Upstream passes over budgets of all pods, and over pods without labels. */
static void upstream_wants_labels(void **unused)
{
	static const char *const labels[] = {"", ",'labels':{'app':'db'}"};

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		upstream();
		node("n", 1);
		bound("x/p", "n", 0, 1000, 0, labels[i]);
		place_fixture_put(&f.cluster, OBJECT_POD_DISRUPTION_BUDGET,
				  "{'metadata':{'name':'all','namespace':'x'},'spec':{'selector':{}"
				  "},'status':{'disruptionsAllowed':0}}");
		asks("z", 1000, "{'cpu':1000}", "");
		expect(PREEMPT_VICTIMS, "n p");
		assert_int_equal(plan.chosen.violations, 0);
	}
}

/* It may always go while the budget has as many healthy pods as it desires. */
static void a_pod_that_is_not_ready_costs_nothing(void **unused)
{
	(void)unused;
	for (int healthy = 1; healthy <= 2; healthy++) {
		char *text = mem_printf("{'metadata':{'name':'b','namespace':'a'},'spec':{"
					"'selector':{'matchLabels':{'app':'db'}}},'status':{"
					"'disruptionsAllowed':0,'currentHealthy':%d,"
					"'desiredHealthy':2,'expectedPods':3}}",
					healthy);

		node("n", 1);
		quota("a", "{}", "{}");
		quota("b", "{'cpu':1000}", "{}");
		place_fixture_put(
			&f.cluster, OBJECT_POD,
			"{'metadata':{'name':'p','namespace':'a','uid':'uid-p','labels':{'app':"
			"'db'}},'spec':{'nodeName':'n','priority':0,'containers':[{'name':'c',"
			"'resources':{'requests':{'cpu':'1'}}}]},'status':{'phase':'Running',"
			"'conditions':[{'type':'Ready','status':'False'}]}}");
		place_fixture_put(&f.cluster, OBJECT_POD_DISRUPTION_BUDGET, text);
		asks("b", 0, "{'cpu':1000}", "");
		if (healthy < 2)
			expect(PREEMPT_IMPOSSIBLE, "-");
		else
			expect(PREEMPT_VICTIMS, "n p");
		free(text);
		teardown(unused);
		setup(unused);
	}
}

static void upstream_takes_the_last_of_equals(void **unused)
{
	(void)unused;
	upstream();
	node("n", 2);
	bound("x/p", "n", 0, 1000, 0, "");
	bound("x/q", "n", 0, 1000, 0, "");
	asks("z", 1000, "{'cpu':1000}", "");
	expect(PREEMPT_VICTIMS, "n q");
}

/* Only the quotas refuse: each victim is judged without those before it. */
static void upstream_counts_victims_of_quotas(void **unused)
{
	(void)unused;
	upstream();
	node("n", 8);
	quota("a", "{'cpu':1000}", "{'cpu':4000}");
	quota("b", "{'cpu':1000}", "{'cpu':4000}");
	bound("b/small", "n", 0, 500, 1, "");
	bound("b/large", "n", 0, 2000, 0, "");
	bound("c/other", "n", 0, 1000, 0, ""); /* without a quota */
	bound("a/own", "n", 0, 100, 0, "");
	asks("a", 1000, "{'cpu':900}", "");
	expect(PREEMPT_VICTIMS, "n large");
	upstream();
	node("n", 8);
	quota("a", "{'cpu':2000}", "{'cpu':4000}");
	quota("b", "{'cpu':0}", "{'cpu':4000}");
	bound("b/p", "n", 0, 1000, 1, "");
	bound("b/q", "n", 0, 1000, 0, "");
	asks("a", 0, "{'cpu':2000}", "");
	expect(PREEMPT_VICTIMS, "n q p");
	assert_non_null(strstr(plan.chosen.victims[1].why, "cpu from 1.0 to 0.0 (min 0.0)"));
}

/* On its nominated node, a pod in deletion of a lower priority. */
static void upstream_waits_for_its_victims(void **unused)
{
	static const struct {
		int priority;
		const char *nominated;
		enum preempt_verdict verdict;
	} cases[] = {
		{999, "n", PREEMPT_WAIT},
		{1000, "n", PREEMPT_VICTIMS},
		{999, "other", PREEMPT_VICTIMS},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *more = mem_printf(",'nominated_node':'%s'", cases[i].nominated);

		upstream();
		node("n", 2);
		bound("x/p", "n", cases[i].priority, 1000, 0, ",'terminating':true");
		bound("x/q", "n", 0, 1000, 0, "");
		asks("z", 1000, "{'cpu':1000}", more);
		free(more);
		if (plan.verdict != cases[i].verdict)
			fail_msg("case %zu: %s", i, preempt_verdict_name(plan.verdict));
	}
}

static void of_equal_victims_the_smaller_goes(void **unused)
{
	(void)unused;
	node("n1", 3);
	node("n2", 2);
	bound("x/p", "n1", 0, 3000, 0, "");
	bound("x/q", "n2", 0, 2000, 0, "");
	asks("x", 1000, "{'cpu':1000}", "");
	expect(PREEMPT_VICTIMS, "n2 q");
}

/* Two candidates, each criterion against the next one. */
static const struct choice {
	struct {
		struct preempt_candidate is;
		int64_t victims[2][3]; /* priority (0: none), start (0: not yet), use */
	} of[2];
	size_t chosen, upstream;
} choices[] = {
	{{{{.error = true}, {{1}}}, {{0}, {{9}}}}, 1, 1},
	{{{{.violations = 1}, {{9}}}, {{.loss = 1}, {{9}}}}, 1, 1},
	{{{{.loss = 1}, {{9}}}, {{.beyond = 1}, {{9}}}}, 1, 0},
	{{{{.beyond = 1}, {{5}}}, {{0}, {{9}}}}, 1, 0},
	{{{{0}, {{9}}}, {{0}, {{5, 0, PREEMPT_BUSY}}}}, 1, 1},
	{{{{0}, {{9, 0, PREEMPT_BUSY}}}, {{0}, {{9}, {5, 0, PREEMPT_UNKNOWN}}}}, 1, 0},
	{{{{0}, {{9, 60}, {5}}}, {{0}, {{9, 50}, {4}}}}, 1, 1},
	{{{{0}, {{-9, 60}, {-9, 60}}}, {{0}, {{-9, 50}}}}, 1, 1}, /* more pods cost more */
	{{{{0}, {{9, 60}, {INT32_MIN}}}, {{0}, {{9, 50}}}}, 1, 1},
	{{{{0}, {{9, 50}}}, {{0}, {{9, 60}}}}, 1, 1}, /* the later start is cheaper */
	{{{{0}, {{9, 60}}}, {{0}, {{9, 50}}}}, 0, 0},
	{{{{0}, {{9, 60}}}, {{0}, {{9, 60}}}}, 0, 0}, /* the first */
	{{{{0}, {{9, 60}}}, {{0}, {{9, 0}}}}, 1, 1}, /* it starts last */
	/* The earliest of the victims with the top priority, in any order. */
	{{{{0}, {{9, 50}, {9, 70}}}, {{0}, {{9, 60}, {9, 60}}}}, 1, 1},
	{{{{0}, {{9, 70}, {9, 50}}}, {{0}, {{9, 60}, {9, 60}}}}, 1, 1},
	{{{{0}, {{9, 60}, {9, 60}}}, {{0}, {{9, 70}, {9, 50}}}}, 0, 0},
	{{{{0}, {{9, 50}, {5, 90}}}, {{0}, {{9, 60}, {5, 10}}}}, 1, 1},
	{{{{0}, {{5, 90}, {9, 50}}}, {{0}, {{5, 10}, {9, 60}}}}, 1, 1},
};

static void the_first_criterion_that_differs_decides(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		const struct choice *row = &choices[i];
		struct preempt_victim victims[2][2] = {0};
		struct preempt_candidate of[2];

		for (int c = 0; c < 2; c++) {
			of[c] = row->of[c].is;
			of[c].victims = victims[c];
			for (int k = 0; k < 2; k++) {
				const int64_t *v = row->of[c].victims[k];

				victims[c][k].priority = (int32_t)v[0];
				victims[c][k].started_ns = v[1];
				victims[c][k].use = (enum preempt_use)v[2];
				of[c].victim_count += v[0] != 0;
			}
		}
		if (preempt_choose(of, 2, QUOTA_CORRECTED) != row->chosen ||
		    preempt_choose(of, 2, QUOTA_UPSTREAM) != row->upstream)
			fail_msg("case %zu", i);
	}
}

/* Node n has room once p is gone, whom the scheduler has no rule to spare but its budget. */
static void upstream_answers_the_extender(void **unused)
{
	static const struct {
		const char *at;
		int priority; /* of the asker */
		const char *more, *want;
	} rows[] = {
		{"n", 1000, "", "p"},
		{"n", 0, "", "no victims"},
		{"m", 1000, "", "no victims"},
		{"gone", 1000, "", "no victims"},
		{"n", 1000, ",'preemption_policy':'Never'", "no victims"},
		{"n", 1000, ",'preemption_policy':'PreemptLowerPriority'", "p"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct preempt_offer offer = {rows[i].at, NULL, 0};
		struct preempt_answer answer;

		upstream();
		node("m", 1);
		node("n", 1);
		bound("x/p", "n", 500, 1000, 0, "");
		place_fixture_put(
			&f.cluster, OBJECT_POD,
			"{'metadata':{'name':'done','namespace':'x','uid':'done'},'spec':{"
			"'nodeName':'n','containers':[]},'status':{'phase':'Succeeded'}}");
		asks("z", rows[i].priority, "{'cpu':1000}", rows[i].more);
		preempt_for_extender(f.index, f.place, f.book, &f.options, &ask, &offer, 1,
				     &answer);
		if (strcmp(rows[i].want, "p") == 0) {
			assert_int_equal(answer.count, 1);
			assert_int_equal(answer.of[0].victim_count, 1);
			assert_string_equal(answer.of[0].victims[0].pod->object.name, "p");
		} else if (answer.count || !strstr(answer.narration.data, rows[i].want)) {
			fail_msg("row %zu: %s", i, answer.narration.data);
		}
		preempt_answer_fini(&answer);
	}
}

/* A pod that the API server lists as disrupted costs nothing more, in either variant. */
static void disrupted_pods_are_paid_for(void **unused)
{
	static const struct {
		enum quota_variant variant;
		const char *disrupted, *victims;
	} rows[] = {
		{QUOTA_CORRECTED, "", ""},
		{QUOTA_CORRECTED, ",'disruptedPods':{'p':'2026-01-31T11:59:59Z'}", "p "},
		{QUOTA_CORRECTED, ",'disruptedPods':{'q':'2026-01-31T11:59:59Z'}", ""},
		{QUOTA_CORRECTED, ",'disruptedPods':null", ""},
		{QUOTA_UPSTREAM, "", "p! "},
		{QUOTA_UPSTREAM, ",'disruptedPods':{'p':'2026-01-31T11:59:59Z'}", "p "},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *json = mem_printf("{'metadata':{'name':'b','namespace':'x'},'spec':{"
					"'selector':{'matchLabels':{'app':'db'}}},'status':{"
					"'disruptionsAllowed':0%s}}",
					rows[i].disrupted);
		struct buf told = BUF_INIT;

		teardown(NULL);
		preempt_fixture_init(&f, rows[i].variant);
		node("n", 1);
		bound("x/p", "n", 0, 1000, 0, ",'labels':{'app':'db'}");
		place_fixture_put(&f.cluster, OBJECT_POD_DISRUPTION_BUDGET, json);
		asks("z", 1000, "{'cpu':1000}", "");
		tell_protected(&told);
		if (strcmp(told.len ? told.data : "", rows[i].victims) != 0)
			fail_msg("row %zu: \"%s\"", i, told.len ? told.data : "");
		buf_fini(&told);
		free(json);
	}
}

/* Nodes are measured, and no API names their pods and amounts: no node is one for a pod. */
static void without_an_api_there_is_no_answer(void **unused)
{
	struct preempt_plan none;
	struct quota_options o;
	struct place_options po;
	struct error why = {""};
	struct view *v = view_fixture_new();
	const struct preempt *index = preempt_of(v);
	struct quota_book *book;
	struct quota_findings found;
	struct place *p;

	(void)unused;
	node("n", 1);
	asks("z", 1000, "{'cpu':1000}", "");
	place_options_default(&po);
	po.now_ns = NOW;
	p = place_new(v, &po);
	assert_int_equal(place_explain(p, place_add_pod(p, self), 0, &why), PLACE_GONE);
	quota_options_default(&o);
	book = quota_book_new(v, NULL, &o);
	preempt_make_plan(index, p, book, &f.options, &ask, &none);
	assert_int_equal(none.verdict, PREEMPT_IMPOSSIBLE);
	assert_int_equal(none.chosen.victim_count, 0);
	quota_lint(v, book, &o, &found);
	assert_int_equal(found.count, 0);
	quota_findings_fini(&found);
	preempt_plan_fini(&none);
	quota_book_free(book);
	place_free(p);
	view_drop(v);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(budgets_are_counted_to_the_last),
		STORY(fewest_budgets_are_broken),
		STORY(a_budget_that_is_used_up_is_not_broken),
		STORY(a_budget_of_two_nodes),
		STORY(upstream_wants_labels),
		STORY(a_pod_that_is_not_ready_costs_nothing),
		STORY(upstream_takes_the_last_of_equals),
		STORY(upstream_counts_victims_of_quotas),
		STORY(upstream_waits_for_its_victims),
		STORY(of_equal_victims_the_smaller_goes),
		STORY(the_first_criterion_that_differs_decides),
		STORY(upstream_answers_the_extender),
		STORY(disrupted_pods_are_paid_for),
		STORY(without_an_api_there_is_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
