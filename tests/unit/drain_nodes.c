/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates one by one: utilisation, eligibility, what is remembered of failures, timers. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/drain/drain_eligibility.h"
#include "aggregator/policy/drain/drain_timers.h"
#include "tests/drain_fixture.h"

#define SEC INT64_C(1000000000)
#define GPU "'cloud.google.com/gke-accelerator':'x'"

static struct kube_node *make_node(const char *metadata, const char *spec, const char *allocatable,
				   bool ready)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{'metadata':{'name':'n'%s},'spec':{%s},'status':{'allocatable':{%s},"
		 "'conditions':[{'type':'Ready','status':'%s'}]}}",
		 metadata, spec, allocatable, ready ? "True" : "False");
	return (struct kube_node *)drain_fixture_object(OBJECT_NODE, text);
}

static const struct kube_pod *make_pod(const char *cpu, const char *phase, bool daemon)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{'metadata':{'name':'p','namespace':'shop','ownerReferences':[{'apiVersion':"
		 "'apps/v1','kind':'%s','name':'o','controller':true}]},'spec':{'containers':[{"
		 "'resources':{'requests':{'cpu':'%s'}}}]},'status':{'phase':'%s'}}",
		 daemon ? "DaemonSet" : "ReplicaSet", cpu, phase);
	return (const struct kube_pod *)drain_fixture_object(OBJECT_POD, text);
}

static void drop_pods(const struct kube_pod *const *pods, size_t count)
{
	for (size_t i = 0; i < count; i++)
		object_drop((struct object *)&pods[i]->object);
}

static int ask_share(enum drain_variant variant, const struct kube_node *node,
		     const struct kube_pod *const *pods, size_t count, bool ignore_daemons,
		     double *share, struct error *why)
{
	struct drain_utilization u = {.share = NAN};
	struct drain_options o;
	int err;

	drain_options_default(&o);
	o.variant = variant;
	o.ignore_daemon_sets = ignore_daemons;
	err = drain_utilization(&o, node, pods, count, NULL, DRAIN_GPU_DETECT, DRAIN_NOW_NS, &u,
				why);
	*share = u.share;
	return err;
}

static void check_share(double got, double want)
{
	if (fabs(got - want) > 1e-12)
		fail_msg("%.17g, and not %.17g", got, want);
}

static void test_pods_that_ended_do_not_count(void **state)
{
	struct kube_node *node = make_node("", "", "'cpu':'2','memory':'1Gi'", true);
	const struct kube_pod *pods[] = {make_pod("500m", "Running", false),
					 make_pod("1", "Succeeded", false),
					 make_pod("1", "Failed", false)};
	double share;

	(void)state;
	assert_int_equal(ask_share(DRAIN_UPSTREAM, node, pods, 3, false, &share, NULL), 0);
	check_share(share, 1.25);
	assert_int_equal(ask_share(DRAIN_CORRECTED, node, pods, 3, false, &share, NULL), 0);
	check_share(share, 0.25);
	drop_pods(pods, 3);
	object_drop(&node->object);
}

static void test_daemons_that_take_all(void **state)
{
	struct kube_node *node = make_node("", "", "'cpu':'2','memory':'1Gi'", true);
	const struct kube_pod *pods[] = {make_pod("2", "Running", true)};
	struct error why;
	double share;

	(void)state;
	assert_int_equal(ask_share(DRAIN_UPSTREAM, node, pods, 1, true, &share, &why), 0);
	assert_int_equal(ask_share(DRAIN_CORRECTED, node, pods, 1, true, &share, &why), -EINVAL);
	assert_string_equal(why.text, "DaemonSets and mirror pods request all of its allocatable "
				      "cpu (2000 of 2000)");
	drop_pods(pods, 1);
	object_drop(&node->object);
}

/* The driver of its GPUs is not there: upstream takes the node for idle. */
static void test_a_label_alone_makes_no_gpu(void **state)
{
	struct kube_node *node =
		make_node(",'labels':{" GPU "}", "", "'cpu':'2','memory':'1Gi'", true);
	const struct kube_pod *pods[] = {make_pod("1500m", "Running", false)};
	double share;

	(void)state;
	assert_int_equal(ask_share(DRAIN_UPSTREAM, node, pods, 1, false, &share, NULL), 0);
	check_share(share, 0);
	assert_int_equal(ask_share(DRAIN_CORRECTED, node, pods, 1, false, &share, NULL), 0);
	check_share(share, 0.75);
	drop_pods(pods, 1);
	object_drop(&node->object);
}

/* The fullest pool decides, the first of equal ones; one without devices is empty. */
static void test_pools_of_devices(void **state)
{
	static const struct drain_device_pool pools[] = {
		{"none", 0, 3}, {"half", 4, 2}, {"too", 8, 4}, {"little", 4, 1}};
	struct drain_devices devices = {pools, 4, false};
	struct kube_node *node = make_node("", "", "'cpu':'2','memory':'1Gi'", true);
	struct drain_utilization u;
	struct drain_options o;
	struct error why;

	(void)state;
	drain_options_default(&o);
	assert_int_equal(drain_utilization(&o, node, NULL, 0, &devices, DRAIN_GPU_NONE,
					   DRAIN_NOW_NS, &u, &why),
			 0);
	check_share(u.share, 0.5);
	assert_string_equal(u.resource, "half");
	devices = (struct drain_devices){.incomplete = true};
	assert_int_equal(drain_utilization(&o, node, NULL, 0, &devices, DRAIN_GPU_NONE,
					   DRAIN_NOW_NS, &u, &why),
			 -EINVAL);
	assert_string_equal(why.text, "a pool of its devices is not published in full");
	object_drop(&node->object);
}

/* --- eligibility */

static const struct drain_case {
	const char *metadata, *spec;
	bool ready, grouped, silent;
	enum drain_reason upstream, corrected;
	const char *says;
} cases[] = {
	{"", "", true, true, false, DRAIN_NONE, DRAIN_NONE, ""},
	{"", "", true, false, false, DRAIN_NOT_AUTOSCALED, DRAIN_NOT_AUTOSCALED,
	 "it is in no group"},
	{"", "", true, true, true, DRAIN_NONE, DRAIN_NOT_MEASURED,
	 "its agent is silent: it is not known to be idle"},
	{",'deletionTimestamp':'2026-02-02T02:39:00Z'", "", true, true, false, DRAIN_NONE,
	 DRAIN_BEING_DELETED, "the node object is being deleted"},
	{"", "'taints':[{'key':'" DRAIN_TAINT_DELETION "','value':'1769999900'}]", true, true,
	 false, DRAIN_BEING_DELETED, DRAIN_BEING_DELETED, "it has the taint " DRAIN_TAINT_DELETION},
	{"", "'taints':[{'key':'" DRAIN_TAINT_DELETION "','value':'1769999700'}]", true, true,
	 false, DRAIN_NONE, DRAIN_BEING_DELETED, "it has the taint " DRAIN_TAINT_DELETION},
	/* Left behind six minutes ago, or by somebody else: still nobody to be drained. */
	{"", "'taints':[{'key':'" DRAIN_TAINT_DELETION "','value':'1769999640'}]", true, true,
	 false, DRAIN_NONE, DRAIN_BEING_DELETED, "it has the taint " DRAIN_TAINT_DELETION},
	{"", "'taints':[{'key':'" DRAIN_TAINT_DELETION "','value':'soon'}]", true, true, false,
	 DRAIN_NONE, DRAIN_BEING_DELETED, "it has the taint " DRAIN_TAINT_DELETION},
	/* Only seconds, and no more than 64 bits of nanoseconds hold, are a time. */
	{"", "'taints':[{'key':'" DRAIN_TAINT_DELETION "','value':'99999999999999999999'}]", true,
	 true, false, DRAIN_NONE, DRAIN_BEING_DELETED, "it has the taint " DRAIN_TAINT_DELETION},
	{"", "'taints':[{'key':'" DRAIN_TAINT_DELETION "','value':'1769999900s'}]", true, true,
	 false, DRAIN_NONE, DRAIN_BEING_DELETED, "it has the taint " DRAIN_TAINT_DELETION},
	{"", "'taints':[{'key':'" DRAIN_TAINT_DELETION "','value':'-1'}]", true, true, false,
	 DRAIN_NONE, DRAIN_BEING_DELETED, "it has the taint " DRAIN_TAINT_DELETION},
	{"", "'taints':[{'key':'" DRAIN_TAINT_DELETION "','value':'9223372037'}]", true, true,
	 false, DRAIN_NONE, DRAIN_BEING_DELETED, "it has the taint " DRAIN_TAINT_DELETION},
	{"", "'taints':[{'key':'karpenter.sh/disrupted','effect':'NoSchedule'}]", true, true, false,
	 DRAIN_NONE, DRAIN_BEING_DELETED, "it has the taint karpenter.sh/disrupted"},
	{",'annotations':{'evenkeel.io/draining':'true'}", "", true, true, false, DRAIN_NONE,
	 DRAIN_BEING_DELETED, "it is annotated evenkeel.io/draining"},
	{",'annotations':{'evenkeel.io/draining':'false'}", "", true, true, false, DRAIN_NONE,
	 DRAIN_NONE, ""},
	{",'annotations':{'cluster-autoscaler.kubernetes.io/scale-down-disabled':'yes'}", "", true,
	 true, false, DRAIN_NONE, DRAIN_DISABLED_ANNOTATION,
	 "it is annotated cluster-autoscaler.kubernetes.io/scale-down-disabled=yes"},
	{",'annotations':{'cluster-autoscaler.kubernetes.io/scale-down-disabled':'false'}", "",
	 true, true, false, DRAIN_NONE, DRAIN_NONE, ""},
	{",'annotations':{'karpenter.sh/do-not-disrupt':'true'}", "", true, true, false, DRAIN_NONE,
	 DRAIN_DISABLED_ANNOTATION, "it is annotated karpenter.sh/do-not-disrupt=true"},
};

static void ask_node(enum drain_variant variant, const struct drain_case *c,
		     struct drain_eligible *out)
{
	struct kube_node *node =
		make_node(c->metadata, c->spec, "'cpu':'2','memory':'1Gi'", c->ready);
	const struct drain_candidate candidate = {.node = node,
						  .grouped = c->grouped,
						  .unmeasured = c->silent};
	struct drain_options o;

	drain_options_default(&o);
	o.variant = variant;
	drain_eligibility(&o, &candidate, NULL, DRAIN_NOW_NS, out);
	object_drop(&node->object);
}

static void test_eligibility(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct drain_eligible e;

		ask_node(DRAIN_UPSTREAM, &cases[i], &e);
		if (e.reason != cases[i].upstream)
			fail_msg("case %zu: upstream %s", i, drain_reason_name(e.reason));
		ask_node(DRAIN_CORRECTED, &cases[i], &e);
		if (e.reason != cases[i].corrected)
			fail_msg("case %zu: corrected %s", i, drain_reason_name(e.reason));
		assert_string_equal(e.error.text, cases[i].says);
	}
}

/* An administrator drains the node; a planned change alone is not yet a drain. */
static void test_lifecycle_conditions(void **state)
{
	struct kube_node *node = make_node("", "", "'cpu':'2'", true);
	struct error why = {""};

	(void)state;
	node->lifecycle = 1U << NODE_MAINTENANCE_PLANNED | 1U << NODE_DRAINED;
	assert_false(drain_is_in_deletion(DRAIN_CORRECTED, node, DRAIN_NOW_NS, &why));
	node->lifecycle = 1U << NODE_DRAIN_IN_PROGRESS;
	assert_true(drain_is_in_deletion(DRAIN_CORRECTED, node, DRAIN_NOW_NS, &why));
	assert_string_equal(why.text, "it has the condition DrainInProgress");
	assert_false(drain_is_in_deletion(DRAIN_UPSTREAM, node, DRAIN_NOW_NS, &why));
	object_drop(&node->object);
}

static void test_thresholds(void **state)
{
	static const struct {
		const char *cpu;
		bool ready;
		enum drain_reason reason;
	} nodes[] = {
		{"1", true, DRAIN_NONE}, /* equal passes */
		{"1001m", true, DRAIN_NOT_UNDERUTILIZED},
		{"1001m", false, DRAIN_NONE},
	};
	struct drain_options o;

	(void)state;
	drain_options_default(&o);
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		struct kube_node *node =
			make_node("", "", "'cpu':'2','memory':'1Gi'", nodes[i].ready);
		const struct kube_pod *pod = make_pod(nodes[i].cpu, "Running", false);
		const struct drain_candidate c = {
			.node = node, .pods = &pod, .pod_count = 1, .grouped = true};
		struct drain_eligible e;

		drain_eligibility(&o, &c, NULL, DRAIN_NOW_NS, &e);
		assert_int_equal(e.reason, nodes[i].reason);
		if (e.reason != DRAIN_NONE)
			assert_string_equal(e.error.text, "pods request 50.0% of its allocatable "
							  "cpu, more than 50.0%");
		drop_pods(&pod, 1);
		object_drop(&node->object);
	}
}

static void test_no_node(void **state)
{
	const struct drain_candidate c = {.grouped = true};
	struct drain_eligible e;
	struct drain_options o;

	(void)state;
	drain_options_default(&o);
	drain_eligibility(&o, &c, NULL, DRAIN_NOW_NS, &e);
	assert_int_equal(e.reason, DRAIN_NO_NODE_INFO);
	o.variant = DRAIN_UPSTREAM;
	drain_eligibility(&o, &c, NULL, DRAIN_NOW_NS, &e);
	assert_int_equal(e.reason, DRAIN_UNEXPECTED);
}

/* The true reason is told for as long as it is remembered. */
static void test_failures(void **state)
{
	static const struct drain_plan_node nodes[] = {{.name = "a"}, {.name = "n"}};
	static const struct drain_why why = {.code = DRAIN_NO_PLACE, .text = (char *)"412 cpu"};

	(void)state;
	for (int v = DRAIN_CORRECTED; v <= DRAIN_UPSTREAM; v++) {
		struct kube_node *node = make_node("", "", "'cpu':'2','memory':'1Gi'", true);
		const struct drain_candidate c = {.node = node, .grouped = true};
		struct drain_unremovable u = {0};
		struct drain_eligible e;
		struct drain_options o;

		drain_options_default(&o);
		o.variant = (enum drain_variant)v;
		drain_unremovable_add(&u, "n", &why, DRAIN_NOW_NS + 10);
		drain_unremovable_add(&u, "a", &why, DRAIN_NOW_NS + 9);
		assert_int_equal(u.count, 2);
		drain_unremovable_update(&u, &o, nodes, 2, DRAIN_NOW_NS + 9);
		assert_int_equal(u.count, 1);
		drain_eligibility(&o, &c, &u, DRAIN_NOW_NS, &e);
		assert_true(e.recent);
		assert_int_equal(e.reason,
				 v == DRAIN_UPSTREAM ? DRAIN_RECENTLY_UNREMOVABLE : DRAIN_NO_PLACE);
		assert_string_equal(e.error.text, v == DRAIN_UPSTREAM ? "" : "412 cpu");
		drain_unremovable_update(&u, &o, nodes, 2, DRAIN_NOW_NS + 10);
		drain_eligibility(&o, &c, &u, DRAIN_NOW_NS, &e);
		assert_true(!e.recent && e.reason == DRAIN_NONE);
		drain_unremovable_fini(&u);
		object_drop(&node->object);
	}
}

/* The clock was set back: the recheck would be hours away. */
static void test_failures_of_the_future_are_forgotten(void **state)
{
	static const struct drain_plan_node nodes[] = {{.name = "a"}, {.name = "n"}};
	static const struct drain_why why = {.code = DRAIN_NO_PLACE};
	struct drain_unremovable u = {0};
	struct drain_options o;

	(void)state;
	drain_options_default(&o);
	drain_unremovable_add(&u, "a", &why, DRAIN_NOW_NS + o.recheck_ns);
	drain_unremovable_add(&u, "n", &why, DRAIN_NOW_NS + o.recheck_ns + 1);
	drain_unremovable_update(&u, &o, nodes, 2, DRAIN_NOW_NS);
	assert_int_equal(u.count, 1);
	assert_non_null(drain_unremovable_recent(&u, "a"));
	drain_unremovable_fini(&u);
}

/* --- timers */

static void see(struct drain_timers *t, enum drain_variant variant, enum drain_seen a,
		enum drain_seen b, int64_t now_ns)
{
	const struct drain_result nodes[] = {{"b", b, true}, {"a", a, true}};

	drain_timers_update(t, variant, nodes, 2, now_ns);
}

static void test_timers_run_on(void **state)
{
	static const struct {
		enum drain_seen between;
		bool upstream, corrected;
	} times[] = {
		{DRAIN_SEEN_UNNEEDED, true, true},
		{DRAIN_NO_VERDICT, false, true},
		{DRAIN_SEEN_NEEDED, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		for (int v = DRAIN_CORRECTED; v <= DRAIN_UPSTREAM; v++) {
			bool kept = v == DRAIN_UPSTREAM ? times[i].upstream : times[i].corrected;
			struct drain_timers t = {0};

			see(&t, (enum drain_variant)v, DRAIN_SEEN_UNNEEDED, DRAIN_NO_VERDICT, SEC);
			assert_null(drain_timers_find(&t, "b"));
			see(&t, (enum drain_variant)v, times[i].between, DRAIN_SEEN_UNNEEDED,
			    2 * SEC);
			see(&t, (enum drain_variant)v, DRAIN_SEEN_UNNEEDED, DRAIN_SEEN_UNNEEDED,
			    3 * SEC);
			assert_int_equal(t.count, 2);
			assert_string_equal(t.of[0].node, "a");
			assert_true(t.of[0].since_ns == (kept ? SEC : 3 * SEC));
			assert_true(t.of[1].since_ns == 2 * SEC);
			drain_timers_fini(&t);
		}
	}
}

/* The clock was set back by an hour. */
static void test_timers_of_the_future_start_anew(void **state)
{
	struct drain_timers t = {0};

	(void)state;
	see(&t, DRAIN_CORRECTED, DRAIN_SEEN_UNNEEDED, DRAIN_SEEN_UNNEEDED, 4000 * SEC);
	see(&t, DRAIN_CORRECTED, DRAIN_SEEN_UNNEEDED, DRAIN_NO_VERDICT, 400 * SEC);
	assert_int_equal(t.count, 2);
	assert_true(t.of[0].since_ns == 400 * SEC && t.of[1].since_ns == 400 * SEC);
	drain_timers_fini(&t);
}

static void test_due(void **state)
{
	struct drain_timer t = {.node = NULL, .since_ns = 1000 * SEC};
	struct drain_options o;

	(void)state;
	drain_options_default(&o);
	assert_int_equal(drain_timer_due(&t, &o, 1600 * SEC), DRAIN_NOT_UNNEEDED_LONG_ENOUGH);
	assert_int_equal(drain_timer_due(&t, &o, 1600 * SEC + 1), DRAIN_NONE);
	assert_true(drain_timer_due_ns(&t, &o) == 1600 * SEC);
	t.kind = DRAIN_TIMER_UNREADY;
	assert_int_equal(drain_timer_due(&t, &o, 2200 * SEC), DRAIN_NOT_UNREADY_LONG_ENOUGH);
	assert_int_equal(drain_timer_due(&t, &o, 2200 * SEC + 1), DRAIN_NONE);
}

static void test_timers_survive_a_restart(void **state)
{
	char a[] = "a", b[] = "b", b2[] = "b";
	const struct drain_timer records[] = {{b, 5 * SEC, DRAIN_TIMER_UNREADY},
					      {a, 900 * SEC, DRAIN_TIMER_UNNEEDED},
					      {b2, 7 * SEC, DRAIN_TIMER_UNNEEDED},
					      {b2, 7 * SEC, DRAIN_TIMER_UNREADY},
					      {b2, 6 * SEC, DRAIN_TIMER_UNREADY}};
	struct drain_timers t = {0};

	(void)state;
	/* Too long ago, perhaps longer than nanoseconds can tell. */
	drain_timers_load(&t, records, 100 * SEC, 60 * SEC, 160 * SEC + 1);
	drain_timers_load(&t, records, INT64_MIN, 60 * SEC, 160 * SEC);
	assert_int_equal(t.count, 0);
	for (int i = 0; i < 5; i++)
		drain_timers_load(&t, &records[i], 100 * SEC, 60 * SEC, 160 * SEC);
	assert_int_equal(t.count, 2);
	/* A time that is still to come is now; the later counts, and the first of equals. */
	assert_true(t.of[0].since_ns == 160 * SEC && t.of[0].kind == DRAIN_TIMER_UNNEEDED);
	assert_true(t.of[1].since_ns == 7 * SEC && t.of[1].kind == DRAIN_TIMER_UNNEEDED);
	drain_timers_fini(&t);
}

static void test_no_limit(void **state)
{
	(void)state;
	assert_true(drain_unneeded_limit(DRAIN_CORRECTED, 5, 10, 600 * SEC, 10 * SEC) == INT64_MAX);
	assert_int_equal(drain_unneeded_limit(DRAIN_UPSTREAM, 600, 10, 600 * SEC, 10 * SEC), 610);
	assert_true(drain_unneeded_limit(DRAIN_UPSTREAM, 5, 10, 600 * SEC, 0) == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pods_that_ended_do_not_count),
		cmocka_unit_test(test_daemons_that_take_all),
		cmocka_unit_test(test_a_label_alone_makes_no_gpu),
		cmocka_unit_test(test_pools_of_devices),
		cmocka_unit_test(test_eligibility),
		cmocka_unit_test(test_lifecycle_conditions),
		cmocka_unit_test(test_thresholds),
		cmocka_unit_test(test_no_node),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_failures_of_the_future_are_forgotten),
		cmocka_unit_test(test_timers_run_on),
		cmocka_unit_test(test_timers_of_the_future_start_anew),
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_timers_survive_a_restart),
		cmocka_unit_test(test_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
