/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of nodes and quotas; pods that wait are in api_waiting_pods.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/extender_call.h"
#include "aggregator/api/object_events.h"
#include "aggregator/api/waiting_pods.h"
#include "aggregator/planner/drain_log.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/model_fixture.h"
#include "tests/quota_fixture.h"
#include "tests/view_fixture.h"

#define SECOND NS_PER_SEC

static struct api_fixture f;
static struct object_events events;
static struct buf told; /* "KIND NAMESPACE/NAME REASON: NOTE\n" each */
static int takes; /* so many events are taken before the sink says no */

static bool take(void *to, const struct object_event *e)
{
	assert_ptr_equal(to, &told);
	assert_true(e->api_version && e->uid);
	buf_printf(&told, "%s %s %s/%s %s: %s\n", e->warning ? "Warning" : "Normal", e->kind,
		   e->namespace, e->name, e->reason, e->note);
	return takes-- > 0;
}

static const char *offered(int64_t at_s)
{
	buf_clear(&told);
	buf_add_str(&told, "");
	object_events_offer(&events, at_s * SECOND, take, &told);
	return told.data;
}

static struct quota_options quotas;

/*
 * team-a is over its max of 4 CPUs, as namespace free is over the default; team-b and team-c have a
 * min above their max, of two resources.
 */
static int open_events(void **state)
{
	char *items = mem_printf(
		"%s%s%s%s%s%s", quota_fixture_node("n", "cpu: 16, memory: 32Gi"),
		quota_fixture_quota("team-a", "q", "cpu: 1, memory: 1Gi", "cpu: 4, memory: 16Gi"),
		quota_fixture_quota("team-b", "q", "cpu: 2, memory: 2Gi", "cpu: 1, memory: 1Gi"),
		quota_fixture_quota("team-c", "q", "cpu: 2, memory: 2Gi", "cpu: 1, memory: 1Gi"),
		quota_fixture_pod("team-a", "p", "n", 0, "cpu: 6, memory: 1Gi"),
		quota_fixture_pod("free", "p", "ghost", 0, "cpu: 6, memory: 1Gi"));
	struct view *v = quota_fixture_view(items);

	v->cluster->sources[OBJECT_ELASTIC_QUOTA].state = SOURCE_SYNCED;
	v->cluster->sources[OBJECT_POD].state = SOURCE_SYNCED;
	api_fixture_open(&f, v);
	f.ctx.decisions = drain_log_new();
	events = (struct object_events){.ctx = &f.ctx};
	takes = 100;
	quota_options_default(&quotas);
	quotas.has_default = true;
	resources_set(&quotas.default_max, RESOURCE_CPU, 1000);
	f.ctx.quota = &quotas;
	free(items);
	(void)state;
	return 0;
}

static int close_events(void **state)
{
	(void)state;
	drain_log_free(f.ctx.decisions);
	api_fixture_close(&f);
	buf_fini(&told);
	return 0;
}

static void test_lists(void **state)
{
	static const struct {
		const char *text;
		int of; /* < 0: refused */
	} cases[] = {
		{"nodes", EVENTS_OF_NODES},
		{"pods,quotas", EVENTS_OF_PODS | EVENTS_OF_QUOTAS},
		{"nodes,quotas,pods", EVENTS_OF_NODES | EVENTS_OF_QUOTAS | EVENTS_OF_PODS},
		{"", -1},
		{"node", -1},
		{"nodes,", -1},
		{",nodes", -1},
		{"nodes pods", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = {""};
		unsigned int of = 0;
		int rc = object_events_parse(cases[i].text, &of, &error);

		assert_int_equal(rc != 0, cases[i].of < 0);
		assert_int_equal(error.text[0] != '\0', cases[i].of < 0);
		if (!rc)
			assert_int_equal(of, cases[i].of);
	}
}

static void decide(const char *node, enum drain_event event, bool verdict)
{
	drain_log_add(f.ctx.decisions,
		      &(struct drain_record){.time_ns = VIEW_FIXTURE_NOW_NS,
					     .event = event,
					     .reason = DRAIN_NO_PLACE,
					     .verdict = verdict,
					     .node = (char *)node,
					     .text = (char *)"why"},
		      1);
}

static void test_nodes(void **state)
{
	(void)state;
	events.of = EVENTS_OF_NODES;
	assert_string_equal(offered(1), "");
	decide("n", DRAIN_EVENT_UNNEEDED, true);
	decide("n", DRAIN_EVENT_UNNEEDED, false); /* for another reason */
	decide("elsewhere", DRAIN_EVENT_GONE, true);
	decide("", DRAIN_EVENT_WAVE, false);
	decide("n", DRAIN_EVENT_SELECTED, true);
	assert_string_equal(offered(2), "Normal Node /n NodeUnneeded: why\n"
					"Normal Node /n NodeDrain: why\n");
	assert_string_equal(offered(3), "");
	/* What is not taken is offered again. */
	decide("n", DRAIN_EVENT_IN_DELETION, true);
	decide("n", DRAIN_EVENT_NEEDED, true);
	takes = 0;
	assert_string_equal(offered(4), "Normal Node /n NodeInDeletion: why\n");
	takes = 100;
	assert_string_equal(offered(5), "Normal Node /n NodeInDeletion: why\n"
					"Normal Node /n NodeNeeded: why\n");
	/* The API has pods of this node, and not the node. */
	decide("ghost", DRAIN_EVENT_NEEDED, true);
	assert_string_equal(offered(6), "");
}

static void test_quotas(void **state)
{
	static const char over_max[] =
		"Warning ElasticQuota team-a/q QuotaOverMax: cpu: 6.0 is used of max 4.0; no pod "
		"that asks for it starts until others have ended\n";
	/* One event for both resources, and one for each quota. Informations are no events. */
	static const char *const lint[] = {
		"Warning ElasticQuota team-b/q QuotaMinOverMax: ",
		"Warning ElasticQuota team-c/q QuotaMinOverMax: ",
	};
	static const char of_both[] =
		"cpu: min 2.0 is above max 1.0, and what is above max is never had; memory: min "
		"2Gi is above max 1Gi, and what is above max is never had\n";
	char *all = mem_printf("%s%s%s%s%s", over_max, lint[0], of_both, lint[1], of_both);

	(void)state;
	events.of = EVENTS_OF_QUOTAS;
	assert_string_equal(offered(1), all);
	assert_string_equal(offered(10), "");
	takes = 0;
	assert_string_equal(offered(11), over_max);
	free(all);
}

/* What the API does not vouch for now is not told. */
static void test_stale_sources(void **state)
{
	static const enum object_kind stale[] = {OBJECT_ELASTIC_QUOTA, OBJECT_POD};
	struct view *v = view_slot_take(f.ctx.views);

	(void)state;
	events.of = EVENTS_OF_QUOTAS;
	for (size_t i = 0; i < 2; i++) {
		v->cluster->sources[stale[i]].state = SOURCE_STALE;
		assert_string_equal(offered(1 + 10 * (int64_t)i), "");
		v->cluster->sources[stale[i]].state = SOURCE_SYNCED;
	}
	assert_string_not_equal(offered(21), "");
	view_drop(v);
	view_slot_publish(f.ctx.views, view_new(2, 0, NULL, 0, NULL, NULL));
	assert_string_equal(offered(31), "");
}

/* A refusal that is not taken is lost: the log and the condition of the pod have the reason, too. */
static void test_refused_pods(void **state)
{
	struct extender_call call = {.now_ns = SECOND, .view = view_slot_take(f.ctx.views)};

	(void)state;
	events.of = EVENTS_OF_PODS;
	assert_string_equal(offered(1), "");
	events.of = 0;
	f.ctx.waiting = waiting_pods_new(&f.counters.requeue, &f.counters.events);
	for (int i = 0; i < 2; i++) {
		call.pod = (struct kube_pod *)model_fixture_pod(
			&(struct model_fixture_pod){.name = i ? "q" : "p", .uid = i ? "q" : "p"});
		waiting_pods_refused(f.ctx.waiting, &call, EXTENDER_USE_CAP_CPU, "hot");
		object_drop(&call.pod->object);
	}
	view_drop(call.view);
	assert_string_equal(offered(1), "");
	events.of = EVENTS_OF_PODS;
	takes = 0;
	assert_string_equal(offered(1), "Warning Pod default/p RefusedByEvenkeel: hot\n");
	takes = 100;
	assert_string_equal(offered(1), "Warning Pod default/q RefusedByEvenkeel: hot\n");
	assert_string_equal(offered(1), "");
	waiting_pods_free(f.ctx.waiting);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_events, close_events)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists), TEST(test_nodes),	       TEST(test_quotas),
		TEST(test_stale_sources),     TEST(test_refused_pods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
