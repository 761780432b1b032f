/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a view's nodes have, what is left of a min where that is too little, and how a quota is said
 * to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aggregator/policy/quota/balance.h"
#include "tests/quota_fixture.h"

#define NODE(name, more, ready)                                                                    \
	"- {apiVersion: v1, kind: Node, metadata: {name: " name more                               \
	"}, status: {allocatable: {pods: 10, cpu: 5, memory: 8Gi}, conditions: [{type: Ready, "    \
	"status: "                                                                                 \
	"\"" ready "\"}]}}\n"
#define GOING ", deletionTimestamp: \"2026-01-01T00:00:00Z\""
#define QUOTA(namespace, bounds)                                                                   \
	"- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: "              \
	"{namespace: " namespace ", name: q}, spec: {" bounds "}}\n"
#define POD(namespace, name, place, cpu)                                                           \
	"- {apiVersion: v1, kind: Pod, metadata: {namespace: " namespace ", name: " name           \
									 "}, spec: {" place        \
									 "containers: [{name: c, " \
									 "resources: {requests: "  \
									 "{cpu: " cpu "}}}]}}\n"
#define ON_A "nodeName: a, "

static void who_is_going_has_nothing(void **state)
{
	struct view *v = quota_fixture_view(NODE("a", "", "True") NODE("b", GOING, "True")
						    NODE("c", "", "False"));
	struct resources all, ready;

	(void)state;
	assert_true(quota_capacity_of(v, false, &all));
	assert_true(quota_capacity_of(v, true, &ready));
	assert_int_equal(all.of[RESOURCE_CPU], 10000);
	assert_int_equal(ready.of[RESOURCE_CPU], 5000);
	resources_fini(&all);
	resources_fini(&ready);
	view_drop(v);
}

static void told(const char *items, enum quota_variant variant, size_t at, const char *resource,
		 enum quota_state state, const char *text, const char *alarm)
{
	struct view *v = quota_fixture_view(items);
	struct quota_balances all;
	struct quota_balance b;
	struct quota_options o;
	struct quota_book *book;
	struct error error;

	quota_options_default(&o);
	o.variant = variant;
	book = quota_book_new(v, NULL, &o);
	quota_balances_of(book, &all);
	quota_balance_of(book, at, &all, &b);
	quota_state_tell(quota_book_at(book, at), &b, resource, &error);
	if (text)
		assert_string_equal(error.text, text);
	assert_string_equal(quota_state_name(quota_state_of(quota_book_at(book, at), &b, resource)),
			    quota_state_name(state));
	if (alarm)
		assert_string_equal(all.of[0].sum.alarm.text, alarm);
	quota_balance_fini(&b);
	quota_balances_fini(&all);
	quota_book_free(book);
	view_drop(v);
}

#define TWICE_PROMISED                                                                             \
	NODE("a", "", "True")                                                                      \
	QUOTA("a", "min: {cpu: 4}")                                                                \
	QUOTA("b", "min: {cpu: 4}") POD("a", "p", ON_A, "3") POD("b", "q", ON_A, "1")

static void what_counts_is_a_part_of_what_there_is(void **state)
{
	(void)state;
	told(TWICE_PROMISED, QUOTA_CORRECTED, 0, "cpu", QUOTA_STATE_BORROWING,
	     "cpu: 3.0 is used, 0.5 of it borrowed beyond the guaranteed 2.5 (a part of min 4.0): "
	     "others may take that back",
	     "cpu: quotas guarantee 8.0 together, and the cluster has 5.0: every min counts as a "
	     "part of that; lower some, or add nodes");
	told(TWICE_PROMISED, QUOTA_CORRECTED, 1, "cpu", QUOTA_STATE_LENDING,
	     "cpu: 1.0 is used of the guaranteed 2.5 (a part of min 4.0), and others have 0.5 of "
	     "the rest",
	     "cpu: quotas guarantee 8.0 together, and the cluster has 5.0: every min counts as a "
	     "part of that; lower some, or add nodes");
	told(TWICE_PROMISED, QUOTA_UPSTREAM, 0, "cpu", QUOTA_STATE_WITHIN,
	     "cpu: 3.0 is used of the guaranteed 4.0",
	     "cpu: quotas guarantee 8.0 together, and the cluster has 5.0: pods are admitted up to "
	     "the sum, and then wait for a node; lower some, or add nodes");
}

static void what_no_node_has_is_not_scaled(void **state)
{
	(void)state;
	told(NODE("a", "", "True") QUOTA("a", "min: {example.com/gpu: 4}"), QUOTA_CORRECTED, 0,
	     "example.com/gpu", QUOTA_STATE_UNUSED,
	     "example.com/gpu: nothing is used of the guaranteed 4", "");
}

static void pods_that_wait_are_pending_pods(void **state)
{
	(void)state;
	told(NODE("a", "", "True") QUOTA("a", "min: {pods: 3}") QUOTA("b", "max: {pods: 3}")
		     POD("a", "p", ON_A, "1") POD("a", "q", "", "1") POD("a", "r", "", "1")
			     POD("b", "p", ON_A, "0") POD("b", "q", ON_A, "0"),
	     QUOTA_CORRECTED, 0, "pods", QUOTA_STATE_STARVED,
	     "pods: pending pods ask for 2, and only 1 is used of the guaranteed 3: evenkeel quota "
	     "preempt says which pods could give way",
	     "");
}

/* A single pod that waits is enough. */
static void one_pending_pod_makes_a_state(void **state)
{
#define FULL                                                                                       \
	NODE("a", "", "True")                                                                      \
	QUOTA("b", "min: {pods: 1}")                                                               \
	POD("b", "p", ON_A, "0")                                                                   \
	POD("b", "q", ON_A, "0") POD("a", "p", ON_A, "1") POD("a", "q", "", "1")
	(void)state;
	told(FULL QUOTA("a", "min: {pods: 2}"), QUOTA_CORRECTED, 0, "pods", QUOTA_STATE_STARVED,
	     NULL, NULL);
	told(FULL QUOTA("a", "min: {pods: 1}"), QUOTA_CORRECTED, 0, "pods", QUOTA_STATE_WAITING,
	     NULL, NULL);
	told(FULL QUOTA("a", "max: {pods: 1}"), QUOTA_CORRECTED, 0, "pods", QUOTA_STATE_AT_MAX,
	     NULL, NULL);
}

/* cpu and memory are guaranteed; b has borrowed the CPU, and memory is there. */
#define CPU_IS_LENT                                                                                \
	NODE("a", "", "True")                                                                      \
	QUOTA("a", "min: {cpu: 4, memory: 4Gi}, max: {cpu: 4}")                                    \
	QUOTA("b", "min: {cpu: 1}")                                                                \
	POD("a", "p", ON_A, "1") POD("b", "p", ON_A, "4")

static void only_what_is_lacked_starves(void **state)
{
	(void)state;
	told(CPU_IS_LENT POD("a", "q", "", "2, memory: 1Gi"), QUOTA_CORRECTED, 0, "cpu",
	     QUOTA_STATE_STARVED,
	     "cpu: pending pods ask for 2.0, and only 1.0 is used of the guaranteed 4.0: evenkeel "
	     "quota preempt says which pods could give way",
	     "");
	told(CPU_IS_LENT POD("a", "q", "", "2, memory: 1Gi"), QUOTA_CORRECTED, 0, "memory",
	     QUOTA_STATE_UNUSED, "memory: nothing is used of the guaranteed 4Gi", "");
	/* Nothing is lacked in a cluster that has room. */
	told(NODE("a", "", "True") QUOTA("a", "min: {cpu: 4}") POD("a", "q", "", "2"),
	     QUOTA_CORRECTED, 0, "cpu", QUOTA_STATE_UNUSED,
	     "cpu: nothing is used of the guaranteed 4.0", "");
	/* Who has no quota has it all. */
	told(NODE("a", "", "True") QUOTA("a", "min: {cpu: 4}") POD("a", "q", "", "2")
		     POD("free", "p", ON_A, "5"),
	     QUOTA_CORRECTED, 0, "cpu", QUOTA_STATE_STARVED,
	     "cpu: pending pods ask for 2.0, and only 0.0 is used of the guaranteed 4.0: evenkeel "
	     "quota preempt says which pods could give way",
	     "");
}

#define TWO_NODES                                                                                  \
	NODE("n1", "", "True")                                                                     \
	NODE("n2", "", "True")                                                                     \
	POD("a", "p", "nodeName: n1, ", "4, memory: 1Gi")
#define TWO_QUOTAS                                                                                 \
	QUOTA("a", "min: {cpu: 4, memory: 8Gi}")                                                   \
	QUOTA("b", "min: {cpu: 6, memory: 8Gi}, max: {cpu: 9}")

/* All nodes together have what it asks for. */
static void pods_starve_where_no_node_has_room(void **state)
{
	(void)state;
	told(TWO_NODES TWO_QUOTAS POD("a", "q", "nodeName: n2, ", "2") POD("b", "p", "", "4"),
	     QUOTA_CORRECTED, 1, "cpu", QUOTA_STATE_STARVED,
	     "cpu: pending pods ask for 4.0, and only 0.0 is used of the guaranteed 6.0: evenkeel "
	     "quota preempt says which pods could give way",
	     "");
	told(TWO_NODES TWO_QUOTAS POD("a", "q", "nodeName: n2, ", "2") POD("b", "p", "", "3"),
	     QUOTA_CORRECTED, 1, "cpu", QUOTA_STATE_LENDING,
	     "cpu: 0.0 is used of the guaranteed 6.0, and others have 2.0 of the rest", "");
	/* n1 lacks CPU, and n2 memory. */
	told(TWO_NODES TWO_QUOTAS POD("a", "q", "nodeName: n2, ", "1, memory: 7Gi")
		     POD("b", "p", "", "2, memory: 2Gi"),
	     QUOTA_CORRECTED, 1, "memory", QUOTA_STATE_STARVED,
	     "memory: pending pods ask for 2Gi, and only 0 is used of the guaranteed 8Gi: evenkeel "
	     "quota preempt says which pods could give way",
	     "");
	/* An empty node would be too small. */
	told(TWO_NODES TWO_QUOTAS POD("b", "p", "", "5500m"), QUOTA_CORRECTED, 1, "cpu",
	     QUOTA_STATE_UNUSED, "cpu: nothing is used of the guaranteed 6.0", "");
}

#define TAKEN                                                                                      \
	QUOTA("a", "min: {cpu: 4}")                                                                \
	POD("free", "p", "nodeName: n1, ", "4") POD("a", "q", "", "2")
#define OTHER(spec, metadata, allocatable)                                                         \
	"- {apiVersion: v1, kind: Node, metadata: {name: n2" metadata "}, spec: {" spec            \
	"}, status: {allocatable: {" allocatable                                                   \
	"}, conditions: [{type: Ready, status: \"True\"}]}}\n"

/* Of the second node, which is empty: whether it has room for the pod is whether that starves. */
static void room_is_on_nodes_that_take_pods(void **state)
{
	static const struct {
		const char *items;
		enum quota_state state;
	} rows[] = {
		{NODE("n1", "", "True") NODE("n2", "", "True") TAKEN, QUOTA_STATE_UNUSED},
		{NODE("n1", "", "True") NODE("n2", "", "False") TAKEN, QUOTA_STATE_STARVED},
		{NODE("n1", "", "True") OTHER("unschedulable: true", "", "cpu: 8, pods: 9") TAKEN,
		 QUOTA_STATE_STARVED},
		{NODE("n1", "", "True") OTHER("", ", deletionTimestamp: 2026-01-01T00:00:00Z",
					      "cpu: 8, pods: 9") TAKEN,
		 QUOTA_STATE_STARVED},
		{NODE("n1", "", "True") OTHER("", "", "cpu: 1, pods: 9") TAKEN,
		 QUOTA_STATE_STARVED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		told(rows[i].items, QUOTA_CORRECTED, 0, "cpu", rows[i].state, NULL, NULL);
	/* What is lacked is the GPU, and not the CPU. */
	static const char gpus[] = OTHER("", "", "cpu: 8, pods: 9, example.com/gpu: 2")
		QUOTA("a", "min: {cpu: 4, example.com/gpu: 2}") QUOTA("b", "min: {cpu: 1}")
			POD("b", "p", "nodeName: n2, ", "1, example.com/gpu: 1")
				POD("a", "q", "", "1, example.com/gpu: 2");

	told(gpus, QUOTA_CORRECTED, 0, "example.com/gpu", QUOTA_STATE_STARVED, NULL, NULL);
	told(gpus, QUOTA_CORRECTED, 0, "cpu", QUOTA_STATE_UNUSED, NULL, NULL);
}

#define FULL_NODES                                                                                 \
	TWO_NODES TWO_QUOTAS POD("a", "q", "nodeName: n2, ", "3")                                  \
		POD("a", "r", "nodeName: n1, ", "1") POD("b", "p", "nodeName: n2, ", "2")

static void each_pending_pod_is_judged_by_itself(void **state)
{
	(void)state;
	told(FULL_NODES POD("b", "q", "", "1") POD("b", "r", "", "7") POD("b", "s", "", "8"),
	     QUOTA_CORRECTED, 1, "cpu", QUOTA_STATE_STARVED,
	     "cpu: pending pods ask for 1.0, and only 2.0 is used of the guaranteed 6.0: evenkeel "
	     "quota preempt says which pods could give way",
	     "");
	told(FULL_NODES POD("b", "r", "", "7") POD("b", "s", "", "8"), QUOTA_CORRECTED, 1, "cpu",
	     QUOTA_STATE_AT_MAX,
	     "cpu: pending pods ask for 8.0, and 2.0 is used of max 9.0: they wait until pods of "
	     "this quota end, or max is raised",
	     "");
	told(FULL_NODES POD("b", "r", "", "7"), QUOTA_CORRECTED, 1, "cpu", QUOTA_STATE_WAITING,
	     "cpu: 2.0 is used of the guaranteed 6.0, and pending pods ask for 7.0: they wait for "
	     "what others leave",
	     "");
}

static void its_own_max_is_no_starvation(void **state)
{
	(void)state;
	told(CPU_IS_LENT POD("a", "q", "", "4, memory: 1Gi"), QUOTA_CORRECTED, 0, "cpu",
	     QUOTA_STATE_AT_MAX,
	     "cpu: pending pods ask for 4.0, and 1.0 is used of max 4.0: they wait until pods of "
	     "this quota end, or max is raised",
	     "");
	told(CPU_IS_LENT POD("a", "q", "", "4, memory: 1Gi"), QUOTA_CORRECTED, 0, "memory",
	     QUOTA_STATE_UNUSED, "memory: nothing is used of the guaranteed 4Gi", "");
	told(CPU_IS_LENT POD("b", "q", "", "2") POD("b", "r", "", "2"), QUOTA_CORRECTED, 1, "cpu",
	     QUOTA_STATE_WAITING,
	     "cpu: 4.0 is used of the guaranteed 1.0, and pending pods ask for 4.0: they wait for "
	     "what others leave",
	     "");
}

static void what_is_not_named_is_borrowed(void **state)
{
	(void)state;
	told(NODE("a", "", "True") QUOTA("a", "min: {memory: 1Gi}") QUOTA("b", "min: {cpu: 4}")
		     POD("a", "p", ON_A, "3"),
	     QUOTA_CORRECTED, 0, "cpu", QUOTA_STATE_BORROWING,
	     "cpu: 3.0 is used, 3.0 of it borrowed beyond the guaranteed 0.0: others may take "
	     "that back",
	     "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_going_has_nothing),
		cmocka_unit_test(what_counts_is_a_part_of_what_there_is),
		cmocka_unit_test(what_no_node_has_is_not_scaled),
		cmocka_unit_test(pods_that_wait_are_pending_pods),
		cmocka_unit_test(one_pending_pod_makes_a_state),
		cmocka_unit_test(only_what_is_lacked_starves),
		cmocka_unit_test(pods_starve_where_no_node_has_room),
		cmocka_unit_test(room_is_on_nodes_that_take_pods),
		cmocka_unit_test(each_pending_pod_is_judged_by_itself),
		cmocka_unit_test(its_own_max_is_no_starvation),
		cmocka_unit_test(what_is_not_named_is_borrowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
