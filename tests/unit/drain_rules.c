/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the corrected rules differ from upstream's, and what they say. Upstream's own cases are in
 * the conformance run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/drain/drain_rules.h"
#include "tests/drain_fixture.h"
#include "tests/model_fixture.h"

#define SAFE   "cluster-autoscaler.kubernetes.io/safe-to-evict"
#define CUSTOM "{'apiVersion':'x.io/v1','kind':'Thing','name':'t','uid':'t','controller':true}"

static const struct drain_case {
	const char *name;
	const char *metadata, *spec, *owner;
	enum drain_outcome upstream, corrected;
	enum drain_reason upstream_reason, corrected_reason;
	const char *says; /* the corrected variant */
} cases[] = {
	{"plain", "", "", NULL, DRAIN_POD_UNDEFINED, DRAIN_POD_UNDEFINED, DRAIN_NONE, DRAIN_NONE,
	 ""},
	{"naked", "", "", "", DRAIN_POD_BLOCK, DRAIN_POD_BLOCK, DRAIN_NOT_REPLICATED,
	 DRAIN_NOT_REPLICATED, "no controller would make it anew"},
	{"custom owner", "", "", CUSTOM, DRAIN_POD_BLOCK, DRAIN_POD_BLOCK, DRAIN_NOT_REPLICATED,
	 DRAIN_NOT_REPLICATED, "its controller, Thing t, is of a kind that need not make it anew"},
	{"misspelt annotation", "'annotations':{'" SAFE "':'False'}", "", NULL, DRAIN_POD_UNDEFINED,
	 DRAIN_POD_BLOCK, DRAIN_NONE, DRAIN_NOT_SAFE_TO_EVICT,
	 "its annotation " SAFE "=False has no known meaning"},
	{"empty annotation", "'annotations':{'" SAFE "':''}", "", NULL, DRAIN_POD_UNDEFINED,
	 DRAIN_POD_BLOCK, DRAIN_NONE, DRAIN_NOT_SAFE_TO_EVICT,
	 "its annotation " SAFE "= has no known meaning"},
	{"at its end", "'annotations':{'" SAFE "':'on-completion'}", "", NULL, DRAIN_POD_WAIT,
	 DRAIN_POD_WAIT, DRAIN_NONE, DRAIN_NONE, ""},
	{"karpenter", "'annotations':{'karpenter.sh/do-not-disrupt':'true'}", "", NULL,
	 DRAIN_POD_UNDEFINED, DRAIN_POD_BLOCK, DRAIN_NONE, DRAIN_NOT_SAFE_TO_EVICT,
	 "it is annotated karpenter.sh/do-not-disrupt=true"},
	{"karpenter for a while", "'annotations':{'karpenter.sh/do-not-disrupt':'5m'}", "", NULL,
	 DRAIN_POD_UNDEFINED, DRAIN_POD_BLOCK, DRAIN_NONE, DRAIN_NOT_SAFE_TO_EVICT,
	 "it is annotated karpenter.sh/do-not-disrupt=5m"},
	{"karpenter, not", "'annotations':{'karpenter.sh/do-not-disrupt':'false'}", "", NULL,
	 DRAIN_POD_UNDEFINED, DRAIN_POD_UNDEFINED, DRAIN_NONE, DRAIN_NONE, ""},
	{"contradiction", "'annotations':{'karpenter.sh/do-not-disrupt':'true','" SAFE "':'true'}",
	 "", NULL, DRAIN_POD_OK, DRAIN_POD_BLOCK, DRAIN_NONE, DRAIN_NOT_SAFE_TO_EVICT,
	 "it is annotated karpenter.sh/do-not-disrupt=true"},
	{"safe", "'annotations':{'" SAFE "':'true'}", "", "", DRAIN_POD_OK, DRAIN_POD_OK,
	 DRAIN_NONE, DRAIN_NONE, ""},
	{"volumes in memory", "", "'volumes':[{'name':'v','emptyDir':{'medium':'Memory'}}]", NULL,
	 DRAIN_POD_UNDEFINED, DRAIN_POD_UNDEFINED, DRAIN_NONE, DRAIN_NONE, ""},
	{"volume of the host", "", "'volumes':[{'name':'v','hostPath':{'path':'/'}}]", NULL,
	 DRAIN_POD_BLOCK, DRAIN_POD_BLOCK, DRAIN_LOCAL_STORAGE, DRAIN_LOCAL_STORAGE,
	 "its volume v (hostPath) is lost with the node"},
	{"huge pages", "", "'volumes':[{'name':'v','emptyDir':{'medium':'HugePages'}}]", NULL,
	 DRAIN_POD_BLOCK, DRAIN_POD_BLOCK, DRAIN_LOCAL_STORAGE, DRAIN_LOCAL_STORAGE,
	 "its volume v (emptyDir) is lost with the node"},
	{"a list with an empty name", "'annotations':{'" SAFE "-local-volumes':',v,'}",
	 "'volumes':[{'name':'v','emptyDir':{}}]", NULL, DRAIN_POD_UNDEFINED, DRAIN_POD_UNDEFINED,
	 DRAIN_NONE, DRAIN_NONE, ""},
	{"the beginning of a listed name", "'annotations':{'" SAFE "-local-volumes':'v-1,v-2'}",
	 "'volumes':[{'name':'v','emptyDir':{}}]", NULL, DRAIN_POD_BLOCK, DRAIN_POD_BLOCK,
	 DRAIN_LOCAL_STORAGE, DRAIN_LOCAL_STORAGE, "its volume v (emptyDir) is lost with the node"},
	{"volumes nobody can read", "", "'volumes':'x'", NULL, DRAIN_POD_BLOCK, DRAIN_POD_BLOCK,
	 DRAIN_LOCAL_STORAGE, DRAIN_LOCAL_STORAGE, "its volume  (unknown) is lost with the node"},
};

static void judge(enum drain_variant variant, const struct kube_pod *pod, struct drain_status *out,
		  struct error *why)
{
	struct drain_options o;
	const struct drain_context c = {.options = &o, .now_ns = DRAIN_NOW_NS};

	drain_options_default(&o);
	o.variant = variant;
	drain_pod_judge(&c, pod, out, why);
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct drain_case *c = &cases[i];
		struct kube_pod *pod = drain_fixture_pod("p", c->owner, c->metadata, c->spec, "");
		struct drain_status up, good;
		struct error why;

		judge(DRAIN_UPSTREAM, pod, &up, NULL);
		judge(DRAIN_CORRECTED, pod, &good, &why);
		if (up.outcome != c->upstream || up.reason != c->upstream_reason)
			fail_msg("%s: upstream %s %s", c->name, drain_fixture_outcome(up.outcome),
				 drain_reason_name(up.reason));
		if (good.outcome != c->corrected || good.reason != c->corrected_reason)
			fail_msg("%s: corrected %s %s", c->name,
				 drain_fixture_outcome(good.outcome),
				 drain_reason_name(good.reason));
		assert_string_equal(why.text, c->says);
		object_drop(&pod->object);
	}
}

static struct kube_pod *system_pod(const char *metadata, const char *spec, const char *created)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{'metadata':{'name':'dns','namespace':'kube-system','creationTimestamp':'%s',"
		 "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'dns',"
		 "'controller':true}]%s},'spec':{'containers':[]%s}}",
		 created, metadata, spec);
	return (struct kube_pod *)drain_fixture_object(OBJECT_POD, text);
}

/*
 * After an hour upstream lets a pod of kube-system go without a look at what says that it must
 * stay.
 */
static void test_old_system_pods_are_asked_further(void **state)
{
	static const char old[] = "2026-02-02T00:00:00Z", young[] = "2026-02-02T01:40:00Z",
			  ancient[] = "1700-01-01T00:00:00Z"; /* longer ago than 63 bits */
	static const struct {
		const char *metadata, *spec, *created;
		enum drain_outcome upstream, corrected;
		enum drain_reason reason;
	} pods[] = {
		{"", "", old, DRAIN_POD_OK, DRAIN_POD_UNDEFINED, DRAIN_NONE},
		{"", "", ancient, DRAIN_POD_OK, DRAIN_POD_UNDEFINED, DRAIN_NONE},
		{"", "", young, DRAIN_POD_BLOCK, DRAIN_POD_BLOCK, DRAIN_KUBE_SYSTEM_POD},
		{",'annotations':{'" SAFE "':'false'}", "", old, DRAIN_POD_OK, DRAIN_POD_BLOCK,
		 DRAIN_NOT_SAFE_TO_EVICT},
		{"", ",'volumes':[{'name':'v','emptyDir':{}}]", old, DRAIN_POD_OK, DRAIN_POD_BLOCK,
		 DRAIN_LOCAL_STORAGE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
		struct kube_pod *pod = system_pod(pods[i].metadata, pods[i].spec, pods[i].created);
		struct drain_status up, good;

		judge(DRAIN_UPSTREAM, pod, &up, NULL);
		judge(DRAIN_CORRECTED, pod, &good, NULL);
		assert_int_equal(up.outcome, pods[i].upstream);
		assert_int_equal(good.outcome, pods[i].corrected);
		assert_int_equal(good.reason, pods[i].reason);
		object_drop(&pod->object);
	}
}

/* Whatever time somebody wrote into it, a pod whose end is overdue is. */
static void test_overdue(void **state)
{
	static const struct {
		const char *metadata;
		bool overdue;
	} pods[] = {
		{"'deletionTimestamp':'1700-01-01T00:00:00Z'", true},
		{"'deletionTimestamp':'2026-02-02T02:38:00Z'", true},
		{"'deletionTimestamp':'2026-02-02T02:39:30Z'", false},
		{"'deletionTimestamp':'2261-01-01T00:00:00Z'", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
		struct kube_pod *pod = drain_fixture_pod("p", NULL, pods[i].metadata, "", "");

		assert_int_equal(drain_is_long_terminating(pod, DRAIN_NOW_NS), pods[i].overdue);
		object_drop(&pod->object);
	}
}

/* A cluster with that ReplicaSet only. */
static struct cluster *cluster_with(const char *replica_set, bool synced)
{
	struct model *m = model_new();
	struct cluster *c;

	model_put(m, drain_fixture_object(OBJECT_REPLICA_SET, replica_set));
	if (synced)
		model_fixture_sync(m, OBJECT_REPLICA_SET);
	c = model_cluster(m);
	model_free(m);
	return c;
}

static enum drain_reason ask_owner(const char *replica_set, bool synced, enum drain_variant variant,
				   struct error *why)
{
	struct kube_pod *pod = drain_fixture_pod("p", NULL, "", "", "");
	struct cluster *cluster = cluster_with(replica_set, synced);
	struct drain_context c = {.now_ns = DRAIN_NOW_NS, .cluster = cluster};
	struct drain_status status;
	struct drain_options o;

	drain_options_default(&o);
	o.variant = variant;
	o.min_replicas = 2;
	c.options = &o;
	drain_pod_judge(&c, pod, &status, why);
	cluster_drop(cluster);
	object_drop(&pod->object);
	return status.reason;
}

static void test_owners(void **state)
{
	static const char same[] = "{'metadata':{'name':'web','namespace':'shop','uid':'web'},"
				   "'spec':{'replicas':2}}";
	static const char other[] = "{'metadata':{'name':'web','namespace':'shop','uid':'new'},"
				    "'spec':{'replicas':2}}";
	static const char elsewhere[] = "{'metadata':{'name':'web','namespace':'x','uid':'web'}}";
	static const char small[] = "{'metadata':{'name':'web','namespace':'shop','uid':'web'},"
				    "'spec':{'replicas':1}}";
	struct error why;

	(void)state;
	assert_int_equal(ask_owner(same, true, DRAIN_CORRECTED, &why), DRAIN_NONE);
	assert_int_equal(ask_owner(other, true, DRAIN_UPSTREAM, &why), DRAIN_NONE);
	assert_int_equal(ask_owner(other, true, DRAIN_CORRECTED, &why), DRAIN_CONTROLLER_NOT_FOUND);
	assert_string_equal(why.text,
			    "its owner, ReplicaSet web, is not there: another has its name");
	assert_int_equal(ask_owner(elsewhere, true, DRAIN_CORRECTED, &why),
			 DRAIN_CONTROLLER_NOT_FOUND);
	assert_string_equal(why.text, "its owner, ReplicaSet web, is not there");
	/* Nobody may list ReplicaSets: it is not asked. */
	assert_int_equal(ask_owner(elsewhere, false, DRAIN_CORRECTED, &why), DRAIN_NONE);
	assert_int_equal(ask_owner(small, true, DRAIN_CORRECTED, &why), DRAIN_MIN_REPLICAS);
	assert_string_equal(why.text,
			    "its ReplicaSet web wants 1 replica, fewer than the 2 it must have");
}

/* What is known of budgets, and a pod of namespace shop that none of them selects. */
static enum drain_reason ask_source(const struct model_source *source, const char *metadata,
				    enum drain_variant variant, struct error *why)
{
	struct kube_pod *pod = drain_fixture_pod("p", NULL, metadata, "", "");
	struct model *m = model_new();
	struct drain_context c = {.now_ns = DRAIN_NOW_NS};
	struct drain_status status;
	struct cluster *cluster;
	struct drain_options o;

	model_set_source(m, OBJECT_POD_DISRUPTION_BUDGET, source);
	c.cluster = cluster = model_cluster(m);
	drain_options_default(&o);
	o.variant = variant;
	c.options = &o;
	drain_pod_judge(&c, pod, &status, why);
	cluster_drop(cluster);
	model_free(m);
	object_drop(&pod->object);
	return status.reason;
}

static enum drain_reason ask_budgets(enum source_state state, enum drain_variant variant,
				     struct error *why)
{
	const struct model_source source = {.state = state, .message = "no right to list them"};

	return ask_source(&source, "", variant, why);
}

/* Nobody may call a pod free whose budgets were never read. An API without budgets has none. */
static void test_budgets_must_be_known(void **state)
{
	struct error why;

	(void)state;
	assert_int_equal(ask_budgets(SOURCE_FORBIDDEN, DRAIN_CORRECTED, &why), DRAIN_PDBS_UNKNOWN);
	assert_string_equal(why.text,
			    "PodDisruptionBudgets are not known: forbidden: no right to list them");
	assert_int_equal(ask_budgets(SOURCE_LISTING, DRAIN_CORRECTED, &why), DRAIN_PDBS_UNKNOWN);
	assert_int_equal(ask_budgets(SOURCE_FORBIDDEN, DRAIN_UPSTREAM, &why), DRAIN_NONE);
	assert_int_equal(ask_budgets(SOURCE_SYNCED, DRAIN_CORRECTED, &why), DRAIN_NONE);
	assert_int_equal(ask_budgets(SOURCE_STALE, DRAIN_CORRECTED, &why), DRAIN_NONE);
	assert_int_equal(ask_budgets(SOURCE_ABSENT, DRAIN_CORRECTED, &why), DRAIN_NONE);
	assert_int_equal(ask_budgets(SOURCE_NONE, DRAIN_CORRECTED, &why), DRAIN_NONE);
}

/* That an owner calls a pod safe to evict says nothing of its budget. */
static void test_safe_pods_have_budgets(void **state)
{
	static const char safe[] = "'annotations':{'" SAFE "':'true'}";
	struct model_source source = {.state = SOURCE_FORBIDDEN};
	struct error why;

	(void)state;
	assert_int_equal(ask_source(&source, safe, DRAIN_CORRECTED, &why), DRAIN_PDBS_UNKNOWN);
	assert_int_equal(ask_source(&source, safe, DRAIN_UPSTREAM, &why), DRAIN_NONE);
	source.state = SOURCE_SYNCED;
	assert_int_equal(ask_source(&source, safe, DRAIN_CORRECTED, &why), DRAIN_NONE);
}

/* Such a budget may select any pod of its namespace, and one of unknown name any pod at all. */
static void test_unreadable_budgets_hold_their_namespace(void **state)
{
	struct model_source source = {.state = SOURCE_SYNCED};
	struct error why;

	(void)state;
	unreadables_put(&source.unreadable, "mail", "web", "", "spec.selector: must be an object");
	assert_int_equal(ask_source(&source, "", DRAIN_CORRECTED, &why), DRAIN_NONE);
	unreadables_put(&source.unreadable, "shop", "web", "", "spec.selector: must be an object");
	assert_int_equal(ask_source(&source, "", DRAIN_CORRECTED, &why), DRAIN_PDBS_UNKNOWN);
	assert_string_equal(why.text, "PodDisruptionBudget web cannot be read: spec.selector: must "
				      "be an object");
	assert_int_equal(ask_source(&source, "", DRAIN_UPSTREAM, &why), DRAIN_NONE);
	unreadables_remove(&source.unreadable, "shop", "web");
	source.unreadable.more = true;
	assert_int_equal(ask_source(&source, "", DRAIN_CORRECTED, &why), DRAIN_PDBS_UNKNOWN);
	assert_string_equal(why.text, "more PodDisruptionBudgets than are told cannot be read");
}

static void test_all_blockers_are_counted(void **state)
{
	struct kube_pod *a = drain_fixture_pod("a", "", "", "", "");
	struct kube_pod *b = drain_fixture_pod("b", NULL, "", "", "");
	struct kube_pod *c = drain_fixture_pod("c", CUSTOM, "", "", "");
	const struct kube_pod *pods[] = {a, b, c};
	struct drain_options o;
	const struct drain_context context = {.options = &o, .now_ns = DRAIN_NOW_NS};
	struct drain_pods p;

	(void)state;
	drain_options_default(&o);
	drain_pods_sort(&context, pods, 3, &p);
	assert_ptr_equal(p.blocking[0].pod, a);
	assert_int_equal(p.blocking_count, 2);
	assert_true(p.move_count == 1 && p.move[0] == b);
	assert_string_equal(p.blocking[0].why, "no controller would make it anew");
	drain_pods_fini(&p);
	o.variant = DRAIN_UPSTREAM;
	drain_pods_sort(&context, pods, 3, &p);
	assert_true(p.blocking_count == 1 && p.move_count == 0);
	drain_pods_fini(&p);
	object_drop(&a->object);
	object_drop(&b->object);
	object_drop(&c->object);
}

static void test_reasons_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < DRAIN_REASONS; i++) {
		assert_true(*drain_reason_name((enum drain_reason)i));
		assert_non_null(drain_reason_unblock((enum drain_reason)i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(drain_reason_name((enum drain_reason)i),
						drain_reason_name((enum drain_reason)j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_old_system_pods_are_asked_further),
		cmocka_unit_test(test_overdue),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_budgets_must_be_known),
		cmocka_unit_test(test_safe_pods_have_budgets),
		cmocka_unit_test(test_unreadable_budgets_hold_their_namespace),
		cmocka_unit_test(test_all_blockers_are_counted),
		cmocka_unit_test(test_reasons_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
