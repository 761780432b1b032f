/* SPDX-License-Identifier: Apache-2.0 */
/* Exact accounting of disruption budgets, and shares of owners. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/drain/drain_owners.h"
#include "aggregator/policy/drain/drain_pdb.h"
#include "shared/mem.h"
#include "tests/drain_fixture.h"
#include "tests/model_fixture.h"

#define WEB_BUDGET(spec, status)                                                                   \
	"{'metadata':{'name':'web','namespace':'shop','generation':2},'spec':{" spec               \
	"'selector':{'matchLabels':{'app':'web'}}},'status':{" status "}}"

enum { PODS = 6 };

struct scene {
	struct object *budgets[2];
	size_t budget_count;
	struct kube_pod *pods[PODS];
	struct drain_pdbs *p;
};

static void start(struct scene *s, enum drain_variant variant, const char *first,
		  const char *second)
{
	memset(s, 0, sizeof(*s));
	s->budgets[s->budget_count++] = drain_fixture_object(OBJECT_POD_DISRUPTION_BUDGET, first);
	if (second)
		s->budgets[s->budget_count++] =
			drain_fixture_object(OBJECT_POD_DISRUPTION_BUDGET, second);
	for (size_t i = 0; i < PODS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "p%zu", i);
		s->pods[i] = drain_fixture_pod(name, NULL, "", "", "");
	}
	s->p = drain_pdbs_new(variant, s->budgets, s->budget_count);
}

static void stop(struct scene *s)
{
	drain_pdbs_free(s->p);
	for (size_t i = 0; i < s->budget_count; i++)
		object_drop(s->budgets[i]);
	for (size_t i = 0; i < PODS; i++)
		object_drop(&s->pods[i]->object);
}

static const struct kube_pod *const *pods_of(const struct scene *s)
{
	return (const struct kube_pod *const *)s->pods;
}

static enum drain_reason ask(struct scene *s, size_t from, size_t count, bool *in_parallel)
{
	struct drain_pdb_verdict v;

	drain_pdbs_ask(s->p, pods_of(s) + from, count, &v);
	if (in_parallel)
		*in_parallel = v.in_parallel;
	return v.reason;
}

static void test_pods_cost_until_they_are_given_back(void **state)
{
	static const char budget[] = WEB_BUDGET("", "'disruptionsAllowed':3");
	struct scene s;

	(void)state;
	start(&s, DRAIN_UPSTREAM, budget, NULL);
	drain_pdbs_take(s.p, pods_of(&s), 4);
	assert_int_equal(drain_pdbs_remaining(s.p, 0), -1);
	stop(&s);
	start(&s, DRAIN_CORRECTED, budget, NULL);
	drain_pdbs_take(s.p, pods_of(&s), 2);
	assert_int_equal(drain_pdbs_remaining(s.p, 0), 1);
	drain_pdbs_give(s.p, pods_of(&s) + 1, 1);
	assert_int_equal(drain_pdbs_remaining(s.p, 0), 2);
	stop(&s);
}

/* One template in two namespaces, and a selector of which one label alone is the pods'. */
static void test_budgets_of_a_namespace_and_of_all_labels(void **state)
{
	static const struct {
		const char *labels;
		enum drain_reason of_shop, of_other;
	} rows[] = {
		{"'app':'web'", DRAIN_NOT_ENOUGH_PDB, DRAIN_NONE},
		{"'app':'web','tier':'front'", DRAIN_NONE, DRAIN_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *budget = mem_printf("{'metadata':{'name':'web','namespace':'shop'},'spec':{"
					  "'selector':{'matchLabels':{%s}}},'status':{"
					  "'disruptionsAllowed':0}}",
					  rows[i].labels);
		struct scene s;

		start(&s, DRAIN_CORRECTED, budget, NULL);
		for (size_t k = 1; k <= 2; k++) {
			object_drop(&s.pods[k]->object);
			s.pods[k] = (struct kube_pod *)drain_fixture_object(
				OBJECT_POD, "{'metadata':{'name':'p','namespace':'other'},'spec':{"
					    "'containers':[]}}");
			pod_template_drop(s.pods[k]->template);
			s.pods[k]->template = pod_template_hold(s.pods[0]->template);
		}
		assert_int_equal(ask(&s, 0, 1, NULL), rows[i].of_shop);
		assert_int_equal(ask(&s, 1, 2, NULL), rows[i].of_other);
		assert_int_equal(ask(&s, 3, 1, NULL), rows[i].of_shop);
		stop(&s);
		free(budget);
	}
}

static void test_what_is_on_its_way_is_reserved(void **state)
{
	struct scene s;
	bool parallel;

	(void)state;
	start(&s, DRAIN_CORRECTED, WEB_BUDGET("", "'disruptionsAllowed':2"), NULL);
	drain_pdbs_take(s.p, pods_of(&s), 1); /* of a node in deletion */
	assert_int_equal(ask(&s, 1, 1, &parallel), DRAIN_NONE);
	assert_true(parallel);
	/* Two together have to wait for each other, and of three taken none is left. */
	assert_int_equal(ask(&s, 1, 2, &parallel), DRAIN_NONE);
	assert_false(parallel);
	drain_pdbs_take(s.p, pods_of(&s) + 1, 1);
	assert_int_equal(ask(&s, 2, 1, &parallel), DRAIN_NOT_ENOUGH_PDB);
	assert_false(parallel);
	stop(&s);
}

static void replace_pod(struct scene *s, size_t i, const char *metadata, const char *status)
{
	object_drop(&s->pods[i]->object);
	s->pods[i] = drain_fixture_pod("other", NULL, metadata, "", status);
}

static void test_free_pods(void **state)
{
	static const char *const healthy = WEB_BUDGET(
		"",
		"'disruptionsAllowed':1,'expectedPods':3,'currentHealthy':2,'desiredHealthy':1");
	static const char *const hurt = WEB_BUDGET(
		"",
		"'disruptionsAllowed':0,'expectedPods':3,'currentHealthy':1,'desiredHealthy':2");
	static const char *const always =
		WEB_BUDGET("'unhealthyPodEvictionPolicy':'AlwaysAllow',",
			   "'disruptionsAllowed':0,'expectedPods':3,'currentHealthy':1,"
			   "'desiredHealthy':2");
	static const char *const stale =
		WEB_BUDGET("", "'observedGeneration':1,'disruptionsAllowed':1,'expectedPods':3,"
			       "'currentHealthy':3,'desiredHealthy':1");
	static const char running[] = "'phase':'Running'", pending[] = "'phase':'Pending'";
	static const char leaving[] = "'deletionTimestamp':'2026-02-02T02:40:00Z'";
	static const struct {
		const char *budget, *metadata, *status;
		bool free;
	} cases[] = {
		{healthy, "", running, true},	{hurt, "", running, false},
		{always, "", running, true},	{stale, "", running, false},
		{stale, "", pending, true},	{hurt, "", pending, true},
		{hurt, leaving, running, true}, {hurt, "", "'phase':'Failed'", true},
		{healthy, "", "", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene s;
		int64_t before;

		start(&s, DRAIN_CORRECTED, cases[i].budget, NULL);
		replace_pod(&s, 0, cases[i].metadata, cases[i].status);
		before = drain_pdbs_remaining(s.p, 0);
		drain_pdbs_take(s.p, pods_of(&s), 1);
		if ((drain_pdbs_remaining(s.p, 0) == before) != cases[i].free)
			fail_msg("case %zu", i);
		stop(&s);
	}
}

static void test_contradictions_allow_the_less(void **state)
{
	static const struct {
		const char *budget;
		int64_t upstream, corrected;
	} cases[] = {
		{WEB_BUDGET("", "'disruptionsAllowed':5"), 5, 5},
		{WEB_BUDGET("", "'disruptionsAllowed':5,'expectedPods':4,'currentHealthy':3,"
				"'desiredHealthy':2"),
		 5, 1},
		{WEB_BUDGET("", "'disruptionsAllowed':5,'currentHealthy':1,'desiredHealthy':2"), 5,
		 0},
		{WEB_BUDGET("", "'disruptionsAllowed':1,'observedGeneration':1"), 1, 0},
		{WEB_BUDGET("", "'disruptionsAllowed':1,'observedGeneration':2"), 1, 1},
		{WEB_BUDGET("", ""), 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene s;

		start(&s, DRAIN_UPSTREAM, cases[i].budget, NULL);
		assert_int_equal(drain_pdbs_remaining(s.p, 0), cases[i].upstream);
		stop(&s);
		start(&s, DRAIN_CORRECTED, cases[i].budget, NULL);
		assert_int_equal(drain_pdbs_remaining(s.p, 0), cases[i].corrected);
		stop(&s);
	}
}

static void test_several_budgets(void **state)
{
	static const char one[] = WEB_BUDGET("", "'disruptionsAllowed':5");
	static const char two[] = "{'metadata':{'name':'all','namespace':'shop'},'spec':{"
				  "'selector':{}},'status':{'disruptionsAllowed':5}}";
	struct drain_pdb_verdict v;
	struct scene s;

	(void)state;
	start(&s, DRAIN_UPSTREAM, one, two);
	assert_int_equal(ask(&s, 0, 1, NULL), DRAIN_NONE);
	stop(&s);
	start(&s, DRAIN_CORRECTED, one, two);
	drain_pdbs_ask(s.p, pods_of(&s) + 3, 1, &v);
	assert_int_equal(v.reason, DRAIN_SEVERAL_PDBS);
	assert_true(v.pod == s.pods[3] && v.budget == drain_pdbs_at(s.p, 1));
	/* The API does not look at budgets of a pod that never ran. */
	replace_pod(&s, 3, "", "'phase':'Pending'");
	assert_int_equal(ask(&s, 3, 1, NULL), DRAIN_NONE);
	stop(&s);
}

/* Whatever is taken and given back, the sums are those of what is taken. */
static void test_random_takes(void **state)
{
	uint32_t seed = 7;
	bool taken[PODS] = {false};
	struct scene s;

	(void)state;
	start(&s, DRAIN_CORRECTED, WEB_BUDGET("", "'disruptionsAllowed':4"), NULL);
	for (int i = 0; i < 2000; i++) {
		size_t which;
		int64_t count = 0;

		seed = seed * 1664525 + 1013904223;
		which = (seed >> 8) % PODS;
		taken[which] = !taken[which];
		if (taken[which])
			drain_pdbs_take(s.p, pods_of(&s) + which, 1);
		else
			drain_pdbs_give(s.p, pods_of(&s) + which, 1);
		for (size_t j = 0; j < PODS; j++)
			count += taken[j];
		assert_int_equal(drain_pdbs_remaining(s.p, 0), 4 - count);
	}
	stop(&s);
}

/* --- owners */

static void check_share(int pods, int not_ready, const char *replica_set, double share,
			int wanted_moves)
{
	struct kube_pod **all = mem_zalloc((size_t)pods, sizeof(struct kube_pod *));
	struct model *m = model_new();
	struct cluster *cluster;
	struct drain_owners *o;
	int moves = 0;

	if (replica_set)
		model_put(m, drain_fixture_object(OBJECT_REPLICA_SET, replica_set));
	cluster = model_cluster(m);
	o = drain_owners_new(share, cluster);
	for (int i = 0; i < pods; i++) {
		all[i] = drain_fixture_pod("p", NULL, "", "",
					   i < not_ready ? "'phase':'Running'" : "");
		drain_owners_count(o, all[i]);
	}
	for (int i = not_ready; i < pods; i++)
		moves += drain_owners_take(o, (const struct kube_pod *const *)&all[i], 1, NULL,
					   NULL) == DRAIN_NONE;
	if (moves != wanted_moves)
		fail_msg("%d of %d pods move, and not %d", moves, pods, wanted_moves);
	/* Pods that are not ready are free. */
	for (int i = 0; i < not_ready; i++)
		assert_int_equal(drain_owners_take(o, (const struct kube_pod *const *)&all[i], 1,
						   NULL, NULL),
				 DRAIN_NONE);
	drain_owners_free(o);
	for (int i = 0; i < pods; i++)
		object_drop(&all[i]->object);
	cluster_drop(cluster);
	model_free(m);
	free(all);
}

#define WEB(replicas)                                                                              \
	"{'metadata':{'name':'web','namespace':'shop','uid':'web'},'spec':{'replicas':" replicas   \
	"}}"

static void test_shares(void **state)
{
	(void)state;
	check_share(8, 0, WEB("8"), 0.25, 2);
	check_share(1, 0, WEB("1"), 0.25, 1); /* at least one */
	check_share(3, 0, WEB("3"), 0.25, 1);
	check_share(8, 1, WEB("8"), 0.25, 1); /* one is missing already */
	check_share(8, 2, WEB("8"), 0.25, 0);
	check_share(6, 0, WEB("8"), 0.25, 0); /* two were never made */
	check_share(8, 0, NULL, 0.25, 2); /* who is not known wants what there is */
	check_share(8, 0, WEB("8"), 1, 8);
	/* Another ReplicaSet of that name says nothing. */
	check_share(8, 0,
		    "{'metadata':{'name':'web','namespace':'shop','uid':'x'},'spec':{"
		    "'replicas':100}}",
		    0.25, 2);
}

static void test_taking_is_all_or_none(void **state)
{
	struct drain_owners *o = drain_owners_new(0.25, NULL);
	struct kube_pod *pods[8];
	const struct kube_pod *refused = NULL;
	struct error error;

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		pods[i] = drain_fixture_pod("p", NULL, "", "", "");
		drain_owners_count(o, pods[i]);
	}
	assert_int_equal(drain_owners_take(o, (const struct kube_pod *const *)pods, 1, NULL, NULL),
			 DRAIN_NONE);
	assert_int_equal(drain_owners_take(o, (const struct kube_pod *const *)&pods[1], 3, &refused,
					   &error),
			 DRAIN_OWNER_SHARE);
	assert_ptr_equal(refused, pods[2]);
	assert_string_equal(error.text,
			    "ReplicaSet web wants 8 replicas, of which 2 may be away, and "
			    "3 would leave at once");
	assert_int_equal(drain_owners_take(o, (const struct kube_pod *const *)&pods[2], 2, NULL,
					   &error),
			 DRAIN_OWNER_SHARE);
	assert_string_equal(error.text,
			    "ReplicaSet web wants 8 replicas, of which 2 may be away: 0 "
			    "are not ready, and 2 would move already");
	/* The first stays taken, the second was given back. */
	assert_int_equal(drain_owners_take(o, (const struct kube_pod *const *)&pods[3], 1, NULL,
					   NULL),
			 DRAIN_NONE);
	assert_int_equal(drain_owners_take(o, (const struct kube_pod *const *)&pods[4], 1, NULL,
					   NULL),
			 DRAIN_OWNER_SHARE);
	drain_owners_give(o, (const struct kube_pod *const *)pods, 1);
	assert_int_equal(drain_owners_take(o, (const struct kube_pod *const *)&pods[4], 1, NULL,
					   NULL),
			 DRAIN_NONE);
	drain_owners_free(o);
	for (size_t i = 0; i < 8; i++)
		object_drop(&pods[i]->object);
}

static void test_replicas(void **state)
{
	static const struct {
		enum object_kind kind;
		const char *text;
		struct drain_replicas upstream, corrected;
	} cases[] = {
		{OBJECT_STATEFUL_SET,
		 "{'metadata':{'name':'s'},'spec':{'replicas':3},'status':{'replicas':3,"
		 "'currentReplicas':1}}",
		 {1, 3},
		 {3, 3}},
		{OBJECT_JOB,
		 "{'metadata':{'name':'j'},'spec':{'parallelism':2,'completions':3},"
		 "'status':{'succeeded':5}}",
		 {0, -2},
		 {0, 0}},
	};
	struct object *o = drain_fixture_object(OBJECT_DAEMON_SET, "{'metadata':{'name':'d'}}");
	struct drain_replicas got;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct object *w = drain_fixture_object(cases[i].kind, cases[i].text);

		assert_int_equal(drain_replicas_of(w, DRAIN_UPSTREAM, &got), 0);
		assert_memory_equal(&got, &cases[i].upstream, sizeof(got));
		assert_int_equal(drain_replicas_of(w, DRAIN_CORRECTED, &got), 0);
		assert_memory_equal(&got, &cases[i].corrected, sizeof(got));
		object_drop(w);
	}
	assert_int_equal(drain_replicas_of(o, DRAIN_CORRECTED, &got), -ENOTSUP);
	assert_int_equal(drain_replicas_of(NULL, DRAIN_CORRECTED, &got), -ENOENT);
	object_drop(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pods_cost_until_they_are_given_back),
		cmocka_unit_test(test_budgets_of_a_namespace_and_of_all_labels),
		cmocka_unit_test(test_what_is_on_its_way_is_reserved),
		cmocka_unit_test(test_free_pods),
		cmocka_unit_test(test_contradictions_allow_the_less),
		cmocka_unit_test(test_several_budgets),
		cmocka_unit_test(test_random_takes),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_taking_is_all_or_none),
		cmocka_unit_test(test_replicas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
