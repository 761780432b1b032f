/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "aggregator/api/doctor.h"
#include "aggregator/planner/plan_peer.h"
#include "shared/clock.h"
#include "tests/api_fixture.h"
#include "tests/cluster_fixture.h"
#include "tests/place_fixture.h"
#include "tests/view_fixture.h"

static struct api_fixture f;

static void ask(void)
{
	assert_int_equal(api_fixture_get(&f, "/v1/status"), 200);
	assert_string_equal(f.response.content_type, "application/json");
	assert_non_null(f.json);
}

static void check(const char *path, const char *want)
{
	char *text = cJSON_PrintUnformatted(api_fixture_at(f.json, path));

	assert_non_null(text);
	assert_string_equal(text, want);
	cJSON_free(text);
}

static void test_standalone(void **state)
{
	static const char begin[] = "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Status\","
				    "\"time\":\"2026-01-31T12:00:00Z\",\"version\":"
				    "\"" EVENKEEL_VERSION "\",\"kubernetes\":{\"mode\":"
				    "\"standalone\",\"resources\":[]},";

	(void)state;
	ask();
	assert_memory_equal(f.response.body.data, begin, strlen(begin));
	check("agents", "{\"nodes\":5,\"fresh\":2,\"late\":1,\"expired\":1,\"none\":1,"
			"\"unknownToApi\":0,\"tiers\":{\"T0\":0,\"T1\":4,\"T2\":0,\"T3\":0},"
			"\"examples\":{\"late\":[\"bravo\"],\"expired\":[\"gone\"],"
			"\"none\":[\"mute\"],\"unknownToApi\":[],\"T3\":[]}}");
	check("database", "{\"state\":\"none\"}");
	check("refusedPods", "{\"waiting\":0,\"nudge\":\"off\",\"nudges\":0,\"failures\":0}");
	check("peer", "{\"state\":\"none\"}");
	check("view", "{\"version\":7,\"ageSeconds\":0,\"nodes\":5,\"pods\":4}");
	check("clock", "{\"flagged\":0,\"nodes\":[]}");
	check("quarantine", "{\"values\":0,\"nodes\":[]}");
	/* Nothing published yet has no age. */
	view_slot_publish(f.ctx.views, view_new(0, 0, NULL, 0, NULL, NULL));
	ask();
	check("view", "{\"version\":0,\"nodes\":0,\"pods\":0}");
}

static void test_peer(void **state)
{
	struct exchange_counters *c = &f.counters.exchange;

	(void)state;
	c->enabled = 1;
	c->answers[EXCHANGE_ALONE] = 2;
	ask();
	check("peer", "{\"state\":\"alone\",\"answersAcknowledged\":0,\"answersLate\":0,"
		      "\"answersAlone\":2,\"refused\":0}");
	c->together = c->answers[EXCHANGE_LATE] = 1;
	c->answers[EXCHANGE_ACKNOWLEDGED] = 50;
	c->refused = 3;
	ask();
	check("peer", "{\"state\":\"together\",\"answersAcknowledged\":50,\"answersLate\":1,"
		      "\"answersAlone\":2,\"refused\":3}");
	*c = (struct exchange_counters){0};
}

static void test_plans_of_the_other(void **state)
{
	struct exchange_counters *c = &f.counters.exchange;
	struct plan_result *r = plan_result_new();

	(void)state;
	c->enabled = 1;
	r->id = 5;
	r->every_ns = 10 * NS_PER_SEC;
	f.ctx.plans = plan_slot_new();
	f.ctx.plan_peer = plan_peer_new(f.ctx.plans, c, INT64_MAX, clock_mono_ns());
	ask();
	check("peer.plan", "\"unknown\"");
	check("peer.elder", "false");
	assert_null(api_fixture_at(f.json, "peer.planIntervalSeconds"));
	plan_slot_publish(f.ctx.plans, r);
	api_fixture_tell_plan(&f, 5, clock_mono_ns());
	ask();
	check("peer.plan", "\"same\"");
	check("peer.planSeconds", "0");
	check("peer.planIntervalSeconds", "10");
	api_fixture_tell_plan(&f, 6, clock_mono_ns());
	ask();
	check("peer.plan", "\"other\"");
	plan_peer_free(f.ctx.plan_peer);
	plan_slot_free(f.ctx.plans);
	f.ctx.plan_peer = NULL;
	f.ctx.plans = NULL;
	*c = (struct exchange_counters){0};
}

static void test_nudges(void **state)
{
	static const struct {
		uint64_t status, failed;
		const char *nudge;
	} rows[] = {
		{0, 0, "unused"},     {200, 0, "ok"},	   {403, 1, "forbidden"},
		{404, 2, "notFound"}, {500, 3, "failing"}, {0, 4, "failing"},
	};
	struct requeue_counters *c = &f.counters.requeue;

	(void)state;
	counter_set(&c->enabled, 1);
	counter_set(&c->waiting, 3);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char want[128];

		counter_set(&c->status, rows[i].status);
		counter_set(&c->failed, rows[i].failed);
		snprintf(want, sizeof(want),
			 "{\"waiting\":3,\"nudge\":\"%s\",\"nudges\":0,\"failures\":%d}",
			 rows[i].nudge, (int)rows[i].failed);
		ask();
		check("refusedPods", want);
	}
}

static const cJSON *resource(const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, api_fixture_at(f.json, "kubernetes.resources"))
		if (strcmp(cJSON_GetStringValue(api_fixture_at(item, "resource")), name) == 0)
			return item;
	fail_msg("no resource %s", name);
	return NULL;
}

static void check_resource(const char *name, const char *want)
{
	char *text = cJSON_PrintUnformatted(resource(name));

	assert_string_equal(text, want);
	cJSON_free(text);
}

static void test_resources(void **state)
{
	(void)state;
	view_slot_publish(f.ctx.views, cluster_fixture_new());
	f.ctx.kubernetes_mode = "inCluster";
	ask();
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(f.json, "kubernetes.mode")),
			    "inCluster");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "kubernetes.resources")),
			 OBJECT_KINDS);
	check_resource("nodes",
		       "{\"resource\":\"nodes\",\"apiVersion\":\"v1\",\"state\":\"synced\","
		       "\"objects\":3,\"ageSeconds\":5,\"stateSeconds\":600,"
		       "\"relists\":1,\"watchErrors\":0,\"skipped\":0}");
	/* All of them, with a node or without. */
	check_resource("pods", "{\"resource\":\"pods\",\"apiVersion\":\"v1\",\"state\":\"synced\","
			       "\"objects\":7,\"ageSeconds\":5,\"stateSeconds\":600,\"relists\":1,"
			       "\"watchErrors\":0,\"skipped\":0}");
	check_resource("replicasets",
		       "{\"resource\":\"replicasets\",\"apiVersion\":\"apps/v1\",\"state\":"
		       "\"stale\",\"objects\":1,\"ageSeconds\":41,\"stateSeconds\":40,"
		       "\"relists\":3,\"watchErrors\":2,\"skipped\":1,\"skippedLast\":"
		       "\"ReplicaSet shop/odd: spec.replicas: not a number\","
		       "\"message\":\"connection refused\"}");
	check_resource("poddisruptionbudgets",
		       "{\"resource\":\"poddisruptionbudgets\",\"apiVersion\":\"policy/v1\","
		       "\"state\":\"forbidden\",\"objects\":0,\"stateSeconds\":600,\"relists\":0,"
		       "\"watchErrors\":0,\"skipped\":0,\"message\":"
		       "\"poddisruptionbudgets.policy is forbidden\"}");
	check_resource("elasticquotas", "{\"resource\":\"elasticquotas\",\"state\":\"absent\","
					"\"objects\":0,\"stateSeconds\":600,\"relists\":0,"
					"\"watchErrors\":0,\"skipped\":0}");
}

/* ghost, which only a pod names, is no node without an agent: there is no node. */
static void test_agents_against_nodes(void **state)
{
	(void)state;
	view_slot_publish(f.ctx.views, cluster_fixture_new());
	ask();
	check("agents", "{\"nodes\":4,\"fresh\":2,\"late\":1,\"expired\":0,\"none\":1,"
			"\"unknownToApi\":1,\"tiers\":{\"T0\":0,\"T1\":3,\"T2\":0,\"T3\":0},"
			"\"examples\":{\"late\":[\"bravo\"],\"expired\":[],\"none\":[\"lima\"],"
			"\"unknownToApi\":[\"stray\"],\"T3\":[]}}");
	check("view", "{\"version\":1,\"ageSeconds\":0,\"nodes\":5,\"pods\":8}");
	view_slot_publish(f.ctx.views, cluster_fixture_with(SOURCE_LISTING, ""));
	ask();
	check("agents.unknownToApi", "0");
}

static void test_what_is_odd(void **state)
{
	struct node_stats stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS, 900, 1000, 10);

	(void)state;
	stats.tier = TIER_T3;
	stats.clock_known = true;
	stats.clock_ahead_ns = -31 * NS_PER_SEC;
	stats.quarantine.count = 3;
	snprintf(stats.quarantine.message, sizeof(stats.quarantine.message), "too much");
	view_slot_publish(f.ctx.views, view_fixture_of(&stats, 1));
	ask();
	check("agents.tiers", "{\"T0\":0,\"T1\":0,\"T2\":0,\"T3\":1}");
	check("agents.examples.T3", "[\"n\"]");
	check("clock", "{\"flagged\":1,\"nodes\":[{\"name\":\"n\",\"skewSeconds\":-31}]}");
	check("quarantine", "{\"values\":3,\"nodes\":[{\"name\":\"n\",\"values\":3,"
			    "\"lastMessage\":\"too much\"}]}");
}

static void test_service(void **state)
{
	struct store_counters *c = &f.counters.store;

	(void)state;
	counter_set(&c->enabled, 1);
	counter_add(&f.counters.frames[FRAME_RESULT_applied], 12);
	counter_add(&f.counters.frames[FRAME_RESULT_unknown_key], 5);
	counter_add(&f.counters.intervals_merged, 3);
	counter_add(&f.counters.intervals_missing, 2);
	ask();
	check("frames", "{\"applied\":12,\"refused\":0,\"malformed\":0,\"version\":0,"
			"\"oversized\":0,\"unknownKey\":5,\"forged\":0,\"rival\":0,"
			"\"foreign\":0,\"sharedKey\":0,\"enrolled\":0,\"notEnrolled\":0,"
			"\"mergedIntervals\":3,\"missingIntervals\":2}");
	check("database", "{\"state\":\"ok\",\"saves\":0,\"failures\":0,\"bytes\":0,"
			  "\"setAside\":0,\"lostIntervals\":0}");
	counter_set(&c->alarm, 1);
	counter_set(&c->failures, 2);
	counter_set(&c->saved_ns, (uint64_t)(VIEW_FIXTURE_NOW_NS - 90 * NS_PER_SEC));
	ask();
	check("database", "{\"state\":\"failing\",\"saves\":0,\"failures\":2,"
			  "\"lastSaveAgeSeconds\":90,\"bytes\":0,\"setAside\":0,"
			  "\"lostIntervals\":0}");
	assert_int_equal(api_fixture_get(&f, "/v1/status?x=1"), 400);
	assert_string_equal(http_fixture_error_field(&f), "x");
	assert_int_equal(api_fixture_send(&f, "POST", "/v1/status", ""), 405);
}

/* As many nodes as a large cluster has make no larger an answer. */
static void test_examples_are_few(void **state)
{
	enum { NODES = 100 };
	static struct node_stats node_stats[NODES];
	static char names[NODES][16];

	(void)state;
	for (int i = 0; i < NODES; i++) {
		snprintf(names[i], sizeof(names[i]), "node-%03d", i);
		node_stats[i] = (struct node_stats){.name = names[i]};
	}
	view_slot_publish(f.ctx.views, view_fixture_of(node_stats, NODES));
	ask();
	check("agents.none", "100");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "agents.examples.none")), 20);
	assert_in_range(f.response.body.len, 500, 2000);
}

/* The findings of evenkeel doctor about the same status. */
static void test_diagnosis(void **state)
{
	struct doctor d = {0};
	struct buf want = BUF_INIT;
	struct jsonw w;

	(void)state;
	ask();
	doctor_examine(&d, f.json);
	jsonw_init(&w, &want);
	jsonw_object_open(&w);
	doctor_write(&d, &w);
	jsonw_object_close(&w);
	assert_true(d.count > 3);
	assert_int_equal(api_fixture_get(&f, "/v1/doctor"), 200);
	check("kind", "\"Diagnosis\"");
	check("verdict", "\"fail\"");
	assert_non_null(strstr(f.response.body.data, strstr(want.data, "\"verdict\"")));
	doctor_fini(&d);
	buf_fini(&want);
}

/* All other kinds are synced. */
static void test_readiness(void **state)
{
	static const struct {
		enum object_kind kind;
		enum source_state source;
		int status;
		const char *told;
	} rows[] = {
		{OBJECT_POD, SOURCE_SYNCED, 200, "ok\n"},
		{OBJECT_POD, SOURCE_STALE, 200, "ok\npods: stale: cut\n"},
		{OBJECT_POD, SOURCE_SNAPSHOT, 200, "ok\n"},
		{OBJECT_POD, SOURCE_LISTING, 503,
		 "waiting for the Kubernetes API\npods: listing: cut\n"},
		{OBJECT_POD, SOURCE_FORBIDDEN, 503,
		 "waiting for the Kubernetes API\npods: forbidden: cut\n"},
		{OBJECT_NODE, SOURCE_ABSENT, 503, "waiting for the Kubernetes API\n"},
		{OBJECT_ELASTIC_QUOTA, SOURCE_ABSENT, 200, "ok\n"},
		{OBJECT_ELASTIC_QUOTA, SOURCE_FORBIDDEN, 200,
		 "ok\nelasticquotas: forbidden: cut\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct model_source source = {.state = rows[i].source, .message = "cut"};
		struct place_fixture cluster;

		place_fixture_init(&cluster);
		model_set_source(cluster.model, rows[i].kind, &source);
		view_slot_publish(f.ctx.views, place_fixture_view(&cluster, NULL, 0));
		assert_int_equal(api_fixture_get(&f, "/readyz"), rows[i].status);
		assert_string_equal(f.response.body.data, rows[i].told);
		place_fixture_fini(&cluster);
	}
}

static const int64_t ages_ns[] = {2 * NS_PER_SEC, 60 * NS_PER_SEC, 400 * NS_PER_SEC};

/* A node for each age; of the agent's newest interval if it has resent, else of a row. */
static void publish_nodes(size_t resent, size_t rows)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct node_stats stats[4];
	size_t count = resent + rows;

	for (size_t i = 0; i < count; i++) {
		int64_t end_ns = VIEW_FIXTURE_NOW_NS - ages_ns[i < resent ? 0 : i - resent];

		stats[i] = view_fixture_node(names[i], end_ns, 90, 100, 10);
		stats[i].start_ns = i < resent ? end_ns - NS_PER_SEC : 0;
	}
	view_slot_publish(f.ctx.views, view_fixture_of(stats, count));
}

static void test_readiness_after_a_start(void **state)
{
	static const struct {
		int64_t up_s;
		bool peer, together, leaving;
		size_t resent, rows;
		const char *told; /* NULL: ready */
	} cases[] = {
		{3, true, false, false, 1, 3, "waiting for the agents of 2 nodes\n"},
		{6, true, false, false, 1, 3, NULL},
		{6, true, true, false, 1, 3, "waiting for the agents of 2 nodes\n"},
		{59, true, true, false, 1, 1, "waiting for the agents of 1 nodes\n"},
		{61, true, true, false, 1, 1, NULL},
		{3, true, true, false, 4, 0, NULL},
		{3, true, true, false, 0, 0, NULL},
		{3, false, false, false, 1, 3, NULL},
		{3, true, true, true, 1, 3, "ending\n"},
		{3000, false, false, true, 4, 0, "ending\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f.ctx.started_ns = VIEW_FIXTURE_NOW_NS - cases[i].up_s * NS_PER_SEC;
		counter_set(&f.counters.exchange.enabled, cases[i].peer);
		counter_set(&f.counters.exchange.together, cases[i].together);
		counter_set(&f.counters.leaving, cases[i].leaving);
		publish_nodes(cases[i].resent, cases[i].rows);
		assert_int_equal(api_fixture_get(&f, "/readyz"), cases[i].told ? 503 : 200);
		assert_string_equal(f.response.body.data, cases[i].told ? cases[i].told : "ok\n");
		assert_int_equal(api_fixture_get(&f, "/v1/nodes"), 200);
	}
}

/* One node of a hundred may be gone for good. */
static void test_readiness_without_a_few_nodes(void **state)
{
	struct node_stats stats[200];
	char names[200][8];

	(void)state;
	f.ctx.started_ns = VIEW_FIXTURE_NOW_NS - NS_PER_SEC;
	counter_set(&f.counters.exchange.enabled, 1);
	for (int i = 0; i < 200; i++) {
		snprintf(names[i], sizeof(names[i]), "n%03d", i);
		stats[i] = view_fixture_node(names[i], VIEW_FIXTURE_NOW_NS, 90, 100, 10);
		stats[i].start_ns = VIEW_FIXTURE_NOW_NS - NS_PER_SEC;
	}
	stats[0].start_ns = stats[1].start_ns = 0;
	view_slot_publish(f.ctx.views, view_fixture_of(stats, 200));
	assert_int_equal(api_fixture_get(&f, "/readyz"), 200);
	stats[2].start_ns = 0;
	view_slot_publish(f.ctx.views, view_fixture_of(stats, 200));
	assert_int_equal(api_fixture_get(&f, "/readyz"), 503);
}

/* The certificate ends an hour from now. */
static void test_access(void **state)
{
	static const char want[] =
		"\"access\":{\"tokenFile\":true,\"tokenReview\":false,\"clientCertificates\":false,"
		"\"tls\":true,\"fromOtherMachines\":false,\"certificateEndsInSeconds\":3600,"
		"\"reloadFailures\":2,\"refused\":3}";

	(void)state;
	counter_set(&f.counters.access.ways, ACCESS_OVER_TLS | ACCESS_BY_TOKEN);
	counter_set(&f.counters.access.certificate_ends_s, VIEW_FIXTURE_NOW_NS / NS_PER_SEC + 3600);
	counter_set(&f.counters.access.reload_failures, 2);
	counter_set(&f.counters.access.refused[0], 3);
	assert_int_equal(api_fixture_get(&f, "/v1/status"), 200);
	assert_non_null(strstr(f.response.body.data, want));
}

#define TEST(name) API_FIXTURE_TEST(name, &f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_access),
		TEST(test_standalone),
		TEST(test_resources),
		TEST(test_agents_against_nodes),
		TEST(test_what_is_odd),
		TEST(test_service),
		TEST(test_examples_are_few),
		TEST(test_nudges),
		TEST(test_peer),
		TEST(test_plans_of_the_other),
		TEST(test_diagnosis),
		TEST(test_readiness),
		TEST(test_readiness_after_a_start),
		TEST(test_readiness_without_a_few_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
