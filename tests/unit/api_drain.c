/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/drain over a small cluster: what is told of each node and of the wave, what is refused,
 * and what is remembered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/drain_log.h"
#include "aggregator/planner/drain_settings.h"
#include "aggregator/planner/plan.h"
#include "aggregator/planner/plan_peer.h"
#include "aggregator/api/snapshot.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/drain_scene.h"

#define MINUTE_NS 60000000000LL

#define number(path) api_fixture_number(&f, path)
#define text(path)   api_fixture_text(&f, path)

static struct api_fixture f;
static struct drain_setup setup;
static struct slack_options slack;
static int64_t moment_ns;

static int64_t now_ns(void)
{
	return moment_ns;
}

static struct view *read_scene(const char *more, const char *usage)
{
	char *dump = mem_printf("%s%s", drain_scene_dump, more);
	struct snapshot *s = snapshot_new();
	struct error error = {""};
	struct view *v = NULL;
	int64_t ns;

	assert_int_equal(snapshot_add(s, "dump", dump, strlen(dump), &error), 0);
	if (usage)
		assert_int_equal(snapshot_add_usage(s, "usage", usage, strlen(usage), &error), 0);
	free(dump);
	assert_int_equal(snapshot_view(s, &v, &ns, &error), 0);
	assert_true(ns == drain_scene_now_ns);
	snapshot_free(s);
	/* As an API server below 1.21 serves it. */
	snprintf(v->cluster->sources[OBJECT_POD_DISRUPTION_BUDGET].api_version, 64,
		 "policy/v1beta1");
	return v;
}

static struct view *read_view(bool measured)
{
	return read_scene("", measured ? drain_scene_usage : NULL);
}

/* No slack, and what is found unneeded has been so for a quarter of an hour. */
static int open_fixture(void **state)
{
	(void)state;
	api_fixture_open(&f, read_view(true));
	moment_ns = drain_scene_now_ns;
	drain_setup_default(&setup);
	setup.config.assume_unneeded_ns = 15 * MINUTE_NS;
	slack_options_default(&slack);
	slack.rate_ppm = 0;
	f.ctx.now_ns = now_ns;
	f.ctx.drain = &setup;
	f.ctx.slack = &slack;
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	plan_slot_free(f.ctx.plans);
	api_fixture_close(&f);
	drain_setup_fini(&setup);
	return 0;
}

/* --- the plan */

static void test_envelope(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_string_equal(text("kind"), "DrainPlan");
	assert_string_equal(text("time"), "2026-01-01T12:00:00Z");
	assert_string_equal(text("planned"), "2026-01-01T12:00:00Z");
	assert_string_equal(text("variant"), "corrected");
	assert_string_equal(text("useCap"), "on");
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "complete")));
	assert_null(api_fixture_at(f.json, "stale"));
	assert_null(api_fixture_at(f.json, "narration"));
	assert_true(number("verdicts.drain") == 2);
	assert_true(number("verdicts.unneeded") == 1);
	assert_true(number("verdicts.needed") == 4);
	assert_true(number("verdicts.inDeletion") == 1);
	assert_true(number("throttled.nodes.used") == 3);
	assert_true(number("throttled.nodes.limit") == 10);
	assert_true(cJSON_IsFalse(api_fixture_at(f.json, "throttled.state")));
	assert_true(number("owed.unplaced") == 0);
	assert_string_equal(api_fixture_names(&f),
			    "alpha bravo charlie delta echo foxtrot golf hotel");
}

static void test_nodes(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_string_equal(text("items.0.verdict"), "needed");
	assert_string_equal(text("items.0.reasons.0.code"), "NotUnderutilized");
	assert_true(number("items.0.utilization.requested") == 0.55);
	assert_true(number("items.0.utilization.used") == 0.1);
	assert_true(number("items.0.allocatable.cpuMillicores") == 4000);
	assert_true(number("items.0.requests.memoryBytes") == 4294967296.0);
	assert_true(number("items.0.usage.cpuMillicores") == 400);
	assert_null(api_fixture_at(f.json, "items.0.since"));
	assert_string_equal(text("items.1.verdict"), "drain");
	assert_string_equal(text("items.1.since"), "2026-01-01T11:45:00Z");
	assert_string_equal(text("items.1.due"), "2026-01-01T11:55:00Z");
	assert_null(api_fixture_at(f.json, "items.1.reasons.0"));
	assert_null(api_fixture_at(f.json, "items.1.moves"));
	assert_string_equal(text("items.2.reasons.0.code"), "BlockedByPod");
	assert_string_equal(text("items.2.reasons.1.code"), "LocalStorageRequested");
	assert_string_equal(text("items.2.reasons.1.pod.name"), "scratch-0");
	assert_string_equal(text("items.2.reasons.1.unblock"),
			    drain_reason_unblock(DRAIN_LOCAL_STORAGE));
	assert_true(number("items.3.daemonPods") == 1);
	assert_string_equal(text("items.4.verdict"), "inDeletion");
	assert_string_equal(text("items.5.reasons.0.code"), "NotEnoughPdb");
	assert_true(number("items.6.reasons.0.refused.NodeAffinity") == 3);
	assert_string_equal(text("items.7.reasons.0.code"), "ScaleDownDisabledAnnotation");
	/* A Table has the first reason. */
	f.accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
	assert_int_equal(api_fixture_get(&f, "/apis/evenkeel.io/v1/drains"), 200);
	assert_string_equal(text("rows.0.cells.0"), "alpha");
	assert_string_equal(text("rows.0.cells.1"), "needed");
	assert_string_equal(text("rows.0.cells.2"),
			    "pods request 55.0% of its allocatable cpu, more than 50.0%");
	assert_string_equal(text("rows.1.cells.2"), "");
	f.accept = NULL;
}

static void test_wave(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/drain?node=alpha"), 200);
	assert_true(number("wave.emptyNodes") == 1);
	assert_true(number("wave.drainedNodes") == 1);
	assert_true(number("wave.pods") == 1);
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "wave.robust")));
	assert_string_equal(text("wave.nodes.0.name"), "delta");
	assert_string_equal(text("wave.nodes.1.name"), "bravo");
	assert_string_equal(text("wave.nodes.1.moves.0.name"), "web-1");
	assert_string_equal(text("wave.nodes.1.moves.0.to"), "alpha");
	assert_true(*text("wave.nodes.1.moves.0.uid"));
	assert_string_equal(text("wave.evictions"), "policy/v1beta1");
	assert_true(number("wave.nodes.1.moves.0.cpuMillicores") == 500);
	assert_string_equal(text("wave.destinations.0.node"), "alpha");
	assert_true(number("wave.destinations.0.cpuMillicores.limit") == 3400);
	/* What it requests, and the deviation that is its share of its node's. */
	assert_true(number("wave.destinations.0.cpuMillicores.after") >
		    number("wave.destinations.0.cpuMillicores.before") + 500);
	assert_string_equal(text("podUse"), "shared out of their nodes");
	assert_string_equal(text("wave.disruptions.0.kind"), "PodDisruptionBudget");
	assert_true(number("wave.disruptions.0.allowed") == 1);
	assert_true(number("wave.disruptions.0.pods") == 1);
	assert_string_equal(text("wave.disruptions.1.kind"), "ReplicaSet");
	assert_true(number("wave.disruptions.1.allowed") == 1);
	assert_true(number("wave.disruptions.1.left") == 0);
}

static void test_no_wave(void **state)
{
	(void)state;
	setup.config.assume_unneeded_ns = 0;
	assert_int_equal(api_fixture_get(&f, "/v1/drain?node=bravo"), 200);
	assert_true(cJSON_IsNull(api_fixture_at(f.json, "wave")));
	assert_string_equal(text("items.0.verdict"), "unneeded");
	assert_string_equal(text("items.0.since"), "2026-01-01T12:00:00Z");
	assert_string_equal(text("items.0.due"), "2026-01-01T12:10:00Z");
	assert_string_equal(text("items.0.reasons.0.code"), "NotUnneededLongEnough");
}

static void test_explain(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/drain?node=golf,foxtrot&explain=true"), 200);
	assert_string_equal(api_fixture_names(&f), "foxtrot golf");
	assert_string_equal(text("items.0.moves.0.name"), "web-2");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items.1.moves")), 0);
	assert_true(cJSON_GetArraySize(api_fixture_at(f.json, "narration")) > 5);
	assert_int_equal(api_fixture_get(&f, "/v1/drain?explain=false"), 200);
	assert_null(api_fixture_at(f.json, "narration"));
}

/* Those of them that were named, or of all. */
static void test_labels(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/drain?labelSelector=kubernetes.io/hostname"
					     "+in+(bravo,golf)"),
			 200);
	assert_string_equal(api_fixture_names(&f), "bravo golf");
	assert_true(number("wave.drainedNodes") == 1);
	assert_int_equal(api_fixture_get(&f, "/v1/drain?node=golf,hotel&labelSelector="
					     "pool=main,kubernetes.io/hostname!=golf"),
			 200);
	assert_string_equal(api_fixture_names(&f), "hotel");
	assert_int_equal(api_fixture_get(&f, "/v1/drain?labelSelector=pool=spare"), 200);
	assert_string_equal(api_fixture_names(&f), "");
}

/* Placeholders move with their nodes, and are told from pods. */
static void test_placeholders(void **state)
{
	(void)state;
	slack.rate_ppm = 100000;
	assert_int_equal(api_fixture_get(&f, "/v1/drain?explain=true"), 200);
	assert_true(number("owed.placeholders") > 0);
}

#define GUEST(space, name, more)                                                                   \
	"- {apiVersion: v1, kind: Pod, metadata: {namespace: " space ", name: " name               \
	", uid: uid-" name more                                                                    \
	"}, spec: {nodeName: india, containers: [{name: c, resources: {requests: {cpu: "           \
	"100m}}}]}, status: {phase: Running}}\n"

#define SAFE ", annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: 'true'}"
#define OWNED(version, kind, name)                                                                 \
	", ownerReferences: [{apiVersion: " version ", kind: " kind ", name: " name                \
	", uid: uid-" name ", controller: true}]"
#define WIDGET(name) OWNED("example.com/v1", "Widget", name)

/* Pods of india: of other controllers, of none, of evenkeel itself, and one as placeholders are. */
static void test_other_pods(void **state)
{
	static const char dump[] =
		"- {apiVersion: v1, kind: Node, metadata: {name: india, uid: uid-india}, spec: "
		"{taints: "
		"[{key: evenkeel.io/drain-candidate, effect: PreferNoSchedule}]}, status: "
		"{capacity: "
		"{cpu: 4, memory: 16Gi, pods: 110}, allocatable: {cpu: 4, memory: 16Gi, pods: "
		"110}, "
		"conditions: [{type: Ready, status: 'True'}]}}\n"
		"- {apiVersion: v1, kind: ReplicationController, metadata: {namespace: tool, name: "
		"old, "
		"uid: uid-old}, spec: {replicas: 2}}\n" GUEST(
			"tool", "lone", ", creationTimestamp: '2026-01-01T11:55:00Z'" SAFE)
			GUEST("tool", "rc",
			      ", creationTimestamp: '2026-01-01T11:50:00Z'" OWNED(
				      "v1", "ReplicationController", "old")) GUEST("tool", "widget",
										   SAFE WIDGET("w"))
				GUEST("evenkeel", "own", SAFE WIDGET("evenkeel-aggregator"))
					GUEST("evenkeel", "unit", SAFE WIDGET("evenkeel-slack"));

	(void)state;
	view_slot_publish(f.ctx.views, read_scene(dump, NULL));
	assert_int_equal(api_fixture_get(&f, "/v1/drain?explain=true&node=india"), 200);
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "items.0.softTainted")));
	assert_string_equal(text("wave.nodes.2.uid"), "uid-india");
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "wave.nodes.2.unmanaged")));
	assert_null(api_fixture_at(f.json, "wave.nodes.1.unmanaged"));
	assert_string_equal(text("items.0.moves.0.workload.name"), "evenkeel-aggregator");
	assert_string_equal(text("items.0.moves.0.uid"), "uid-own");
	assert_null(api_fixture_at(f.json, "items.0.moves.0.placeholder"));
	assert_null(api_fixture_at(f.json, "items.0.moves.0.from"));
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "items.0.moves.1.placeholder")));
	assert_null(api_fixture_at(f.json, "items.0.moves.1.workload"));
	assert_null(api_fixture_at(f.json, "items.0.moves.1.uid"));
	assert_string_equal(text("items.0.moves.2.name"), "lone");
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "items.0.moves.2.deleted")));
	assert_null(api_fixture_at(f.json, "items.0.moves.2.workload"));
	assert_null(api_fixture_at(f.json, "items.0.moves.2.to"));
	assert_true(number("items.0.moves.2.ageSeconds") == 300);
	assert_string_equal(text("items.0.moves.3.workload.kind"), "ReplicationController");
	assert_true(number("items.0.moves.3.workload.replicas") == 2);
	assert_null(api_fixture_at(f.json, "items.0.moves.3.ageSeconds"));
	assert_string_equal(text("items.0.moves.4.workload.kind"), "Widget");
	assert_null(api_fixture_at(f.json, "items.0.moves.4.workload.replicas"));
}

/* --- refusals */

static void test_refusals(void **state)
{
	static const struct {
		const char *target;
		int status;
		const char *field, *message;
	} cases[] = {
		{"/v1/drain?nodes=a", 400, "nodes", "unknown parameter \"nodes\""},
		{"/v1/drain?explain=yes", 400, "explain", "\"yes\" is neither true nor false"},
		{"/v1/drain?node=", 400, "node", "must name a node"},
		{"/v1/drain?node=alpha,zulu", 404, "node", "there is no node \"zulu\""},
		{"/v1/drain?node=alpha,", 404, "node", "there is no node \"\""},
		{"/v1/drain?labelSelector=a===b", 400, "labelSelector",
		 "selector \"a===b\": \",\" is expected, and not \"=\" at character 4"},
		{"/v1/drain/alpha", 404, "", "there is nothing at /v1/drain/alpha"},
		{"/v1/drain/history?explain=true", 400, "explain", "unknown parameter \"explain\""},
		{"/v1/drain/history?limit=0", 400, "limit",
		 "limit \"0\" is not a whole number from 1 to 10000"},
		{"/v1/drain/history?limit=-1", 400, "limit",
		 "limit \"-1\" is not a whole number from 1 to 10000"},
		{"/v1/drain/history?limit=1x", 400, "limit",
		 "limit \"1x\" is not a whole number from 1 to 10000"},
		{"/v1/drain/history?limit=x", 400, "limit",
		 "limit \"x\" is not a whole number from 1 to 10000"},
		{"/v1/drain/history?limit=10001", 400, "limit",
		 "limit \"10001\" is not a whole number from 1 to 10000"},
		{"/v1/drain/history?limit=99999999999999999999999", 400, "limit",
		 "limit \"99999999999999999999999\" is not a whole number from 1 to 10000"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_get(&f, cases[i].target), cases[i].status);
		assert_string_equal(text("error.message"), cases[i].message);
		assert_string_equal(text("error.field"), cases[i].field);
	}
	assert_int_equal(api_fixture_send(&f, "POST", "/v1/drain", "{}"), 405);
}

static void test_nothing_is_known(void **state)
{
	(void)state;
	view_slot_publish(f.ctx.views, view_new(2, 0, NULL, 0, NULL, NULL));
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 503);
	assert_string_equal(text("error.code"), "noData");
}

static void test_no_usage(void **state)
{
	(void)state;
	view_slot_publish(f.ctx.views, read_view(false));
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_string_equal(text("useCap"), "off: no usage data");
	assert_null(api_fixture_at(f.json, "items.0.usage"));
	assert_null(api_fixture_at(f.json, "wave.destinations.0.cpuMillicores"));
	view_slot_publish(f.ctx.views, read_view(true));
	setup.places.cap.on = false;
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_string_equal(text("useCap"), "off: it is switched off");
	setup.config.rules.variant = DRAIN_UPSTREAM;
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_string_equal(text("variant"), "upstream");
}

/* Over files, too, a simulation ends when the time that was given is over. */
static void test_time_bound(void **state)
{
	struct snapshot *s = snapshot_new();
	struct drain_settings settings;
	struct buf dump = BUF_INIT;
	struct error error = {""};
	struct view *v;
	int64_t ns;

	(void)state;
	buf_add_str(&dump, "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: apps/v1, kind: "
			   "ReplicaSet, metadata: {namespace: d, name: web, uid: web}, spec: "
			   "{replicas: 3000}}\n");
	for (int i = 0; i < 3000; i++)
		buf_printf(&dump,
			   "- {apiVersion: v1, kind: Node, metadata: {name: n%04d}, status: {"
			   "allocatable: {cpu: 4, memory: 8Gi, pods: 110}, conditions: [{type: "
			   "Ready, status: \"True\"}]}}\n"
			   "- {apiVersion: v1, kind: Pod, metadata: {namespace: d, name: p%04d, "
			   "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, "
			   "uid: web, controller: true}]}, spec: {nodeName: n%04d, nodeSelector: "
			   "{disk: of-%04d}, containers: [{name: c}]}}\n",
			   i, i, i, i);
	assert_int_equal(snapshot_add(s, "dump", dump.data, dump.len, &error), 0);
	assert_int_equal(snapshot_view(s, &v, &ns, &error), 0);
	view_slot_publish(f.ctx.views, v);
	api_fixture_get(&f, "/v1/drain");
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "complete")));
	drain_setup_fini(&setup);
	assert_int_equal(drain_settings_from_environment(&settings, &error), 0);
	settings.rules.simulation_ns = 1000000;
	assert_int_equal(drain_setup_init(&setup, &settings, &error), 0);
	api_fixture_get(&f, "/v1/drain");
	assert_true(cJSON_IsFalse(api_fixture_at(f.json, "complete")));
	assert_true(number("verdicts.notExamined") > 0);
	assert_true(number("verdicts.notExamined") <= 2990); /* ten at least */
	drain_settings_fini(&settings);
	snapshot_free(s);
	buf_fini(&dump);
}

/* --- a planner */

static struct plan_core *core_new(struct drain_counters *counters)
{
	struct plan_drain drain;

	drain_runner_open(&drain, &setup, false, counters, f.ctx.decisions);
	return plan_core_new(&slack, &drain);
}

static struct plan_result *step(struct plan_core *c, struct view *v, int64_t ns)
{
	const struct plan_input in = {.view = v, .now_ns = ns};
	struct error error = {""};
	struct plan_result *r;

	assert_int_equal(plan_core_step(c, &in, &r, &error), 0);
	return r;
}

static const struct drain_plan_node *node_of(const struct plan_result *r, const char *name)
{
	const struct drain_plan_node *n = drain_plan_find(r->drain, name);

	assert_non_null(n);
	return n;
}

/* The plan of the slot is told, however late; and when it is old, that. */
static void test_slot(void **state)
{
	struct view *v = read_view(true);
	struct plan_core *c = core_new(NULL);
	struct plan_result *r = step(c, v, drain_scene_now_ns);
	uint64_t etag;

	(void)state;
	r->every_ns = MINUTE_NS;
	f.ctx.plans = plan_slot_new();
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 503);
	plan_slot_publish(f.ctx.plans, r);
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_null(api_fixture_at(f.json, "stale"));
	etag = f.response.etag;
	moment_ns += MINUTE_NS;
	assert_int_equal(api_fixture_get(&f, "/v1/drain?explain=true"), 200);
	assert_true(etag && f.response.etag == etag);
	moment_ns += 9 * MINUTE_NS;
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_string_equal(text("stale"), "the plan is 600 s old");
	assert_true(f.response.etag != etag);
	assert_string_equal(text("planned"), "2026-01-01T12:00:00Z");
	plan_core_free(c);
	view_drop(v);
}

/* Each plan has its own. */
static void test_plans_have_tags(void **state)
{
	struct view *v = read_view(true);
	struct plan_core *c = core_new(NULL);
	uint64_t etag;

	(void)state;
	f.ctx.plans = plan_slot_new();
	plan_slot_publish(f.ctx.plans, step(c, v, drain_scene_now_ns));
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	etag = f.response.etag;
	plan_slot_publish(f.ctx.plans, step(c, v, drain_scene_now_ns));
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_true(f.response.etag && f.response.etag != etag);
	plan_core_free(c);
	view_drop(v);
}

/* --- what was decided */

/* The newest first: the wave, then what was said of each node, by name. */
static void test_history(void **state)
{
	struct view *v = read_view(true);
	struct plan_core *c;
	uint64_t etag;

	(void)state;
	f.ctx.decisions = drain_log_new();
	c = core_new(NULL);
	assert_int_equal(api_fixture_get(&f, "/v1/drain/history"), 200);
	assert_string_equal(text("kind"), "DrainHistory");
	assert_null(api_fixture_at(f.json, "items.0"));
	etag = f.response.etag;
	plan_result_drop(step(c, v, drain_scene_now_ns));
	assert_int_equal(api_fixture_get(&f, "/v1/drain/history"), 200);
	assert_true(f.response.etag && f.response.etag != etag);
	assert_string_equal(text("items.0.event"), "wave");
	assert_string_equal(text("items.0.time"), "2026-01-01T12:00:00Z");
	assert_null(api_fixture_at(f.json, "items.0.node"));
	assert_string_equal(text("items.0.text"),
			    "2 nodes go: delta, bravo; 1 pod moves to 1 node");
	assert_string_equal(text("items.1.node"), "foxtrot");
	assert_string_equal(text("items.1.event"), "unneeded");
	assert_string_equal(text("items.1.reason"), "NotEnoughPdb");
	assert_string_equal(text("items.2.node"), "echo");
	assert_string_equal(text("items.3.node"), "delta");
	assert_string_equal(text("items.3.text"), "nothing on it has to move");
	assert_string_equal(text("items.4.node"), "bravo");
	assert_string_equal(text("items.4.event"), "drain");
	assert_null(api_fixture_at(f.json, "items.4.reason"));
	assert_null(api_fixture_at(f.json, "items.5"));

	/* What is decided as before is not told again. */
	plan_result_drop(step(c, v, drain_scene_now_ns + MINUTE_NS));
	assert_int_equal(api_fixture_get(&f, "/v1/drain/history"), 200);
	assert_string_equal(text("items.0.event"), "wave");
	assert_null(api_fixture_at(f.json, "items.5"));

	assert_int_equal(api_fixture_get(&f, "/v1/drain/history?limit=&node="), 200);
	assert_string_equal(text("items.4.node"), "bravo");
	assert_int_equal(api_fixture_get(&f, "/v1/drain/history?limit=2"), 200);
	assert_null(api_fixture_at(f.json, "items.2"));
	assert_int_equal(api_fixture_get(&f, "/v1/drain/history?node=echo,bra,bravo"), 200);
	assert_string_equal(text("items.0.node"), "echo");
	assert_string_equal(text("items.1.node"), "bravo");
	assert_null(api_fixture_at(f.json, "items.2"));
	assert_int_equal(api_fixture_get(&f, "/v1/drain/history?node=zulu"), 200);
	assert_null(api_fixture_at(f.json, "items.0"));
	plan_core_free(c);
	view_drop(v);
	drain_log_free(f.ctx.decisions);
}

/* The id tells waves apart, and whether the other aggregator has the same. */
static void test_plan_of_another_aggregator(void **state)
{
	struct view *v = read_view(true);
	struct plan_core *c = core_new(NULL);
	struct plan_result *r = step(c, v, drain_scene_now_ns);
	struct exchange_counters counters = {0};
	uint64_t id = r->id, etag;
	int64_t start_ns = clock_mono_ns() - MINUTE_NS;
	char text_of[17], run[17];

	(void)state;
	f.ctx.plans = plan_slot_new();
	plan_slot_publish(f.ctx.plans, r);
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	snprintf(text_of, sizeof(text_of), "%016llx", (unsigned long long)id);
	assert_string_equal(text("id"), text_of);
	snprintf(run, sizeof(run), "%016llx", (unsigned long long)plan_slot_run(f.ctx.plans));
	assert_string_equal(text("aggregatorRun"), run);
	assert_null(api_fixture_at(f.json, "peer"));
	f.ctx.plan_peer = plan_peer_new(f.ctx.plans, &counters, 1, start_ns);
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_string_equal(text("peer.plan"), "unknown");
	assert_in_range(number("peer.seconds"), 60, 70);
	assert_null(api_fixture_at(f.json, "peer.id"));
	etag = f.response.etag;
	api_fixture_tell_plan(&f, id, clock_mono_ns());
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_string_equal(text("peer.plan"), "same");
	assert_true(number("peer.seconds") == 0);
	assert_string_equal(text("peer.id"), text_of);
	assert_true(f.response.etag != etag);
	api_fixture_tell_plan(&f, 0xabc, clock_mono_ns());
	assert_int_equal(api_fixture_get(&f, "/v1/drain"), 200);
	assert_string_equal(text("peer.plan"), "other");
	assert_string_equal(text("peer.id"), "0000000000000abc");
	plan_peer_free(f.ctx.plan_peer);
	f.ctx.plan_peer = NULL;
	plan_core_free(c);
	/* Without a wave it is another one. */
	setup.config.assume_unneeded_ns = 0;
	c = core_new(NULL);
	r = step(c, v, drain_scene_now_ns);
	assert_true(r->id && r->id != id);
	plan_result_drop(r);
	plan_core_free(c);
	view_drop(v);
}

/* Without a log: what a snapshot remembers. */
static void test_remembered_history(void **state)
{
	char text_of[] = "{\"timers\":3}";
	struct plan_memory memory = {.of[PLAN_DRAIN] = text_of};

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/drain/history?limit=10000"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 0);
	f.ctx.memory = &memory;
	assert_int_equal(api_fixture_get(&f, "/v1/drain/history"), 400);
	assert_memory_equal(text("error.message"), "state.drain: ", 13);
	f.ctx.memory = NULL;
}

/* What a step left goes on in another process, as long as nobody was away for too long. */
static void test_memory(void **state)
{
	static const struct {
		int64_t away_ns, since_ns;
	} cases[] = {{5 * MINUTE_NS, 0}, {9 * MINUTE_NS, 0}, {11 * MINUTE_NS, 11 * MINUTE_NS}};
	struct view *v = read_view(false);
	struct plan_core *c;
	struct plan_result *first, *next;
	struct error error = {""};

	(void)state;
	setup.config.assume_unneeded_ns = 0;
	c = core_new(NULL);
	first = step(c, v, drain_scene_now_ns);
	plan_core_free(c);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct shared_body *memory = first->memory[PLAN_DRAIN];

		const struct plan_text text = {memory->data, memory->len,
					       drain_scene_now_ns + cases[i].away_ns, false};

		c = core_new(NULL);
		assert_int_equal(plan_core_remember(c, PLAN_DRAIN, &text, &error), 0);
		next = step(c, v, text.now_ns);
		assert_true(node_of(next, "bravo")->since_ns ==
			    drain_scene_now_ns + cases[i].since_ns);
		plan_result_drop(next);
		plan_core_free(c);
	}
	c = core_new(NULL);
	assert_int_not_equal(plan_core_remember(c, PLAN_DRAIN,
						&(struct plan_text){"{\"timers\":3}", 12, 1, false},
						&error),
			     0);
	assert_true(error.text[0]);
	plan_core_free(c);
	plan_result_drop(first);
	view_drop(v);
}

/* The dump without a node's line. */
static struct view *view_without(const char *node)
{
	char *start = mem_printf("- {apiVersion: v1, kind: Node, metadata: {name: %s,", node);
	char *copy = mem_strdup(drain_scene_dump), *line = strstr(copy, start), *end;
	struct snapshot *s = snapshot_new();
	struct error error;
	struct view *v;
	int64_t ns;

	assert_non_null(line);
	end = strchr(line, '\n');
	memmove(line, end + 1, strlen(end + 1) + 1);
	assert_int_equal(snapshot_add(s, "dump", copy, strlen(copy), &error), 0);
	assert_int_equal(snapshot_view(s, &v, &ns, &error), 0);
	snapshot_free(s);
	free(start);
	free(copy);
	return v;
}

static void test_counters(void **state)
{
	static const char *const goes[] = {"delta", "hotel"};
	struct drain_counters counters = {0};
	struct plan_core *c = core_new(&counters);
	struct view *v = read_view(false);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct view *less = view_without(goes[i]);

		plan_result_drop(step(c, v, moment_ns += MINUTE_NS));
		plan_result_drop(step(c, less, moment_ns += MINUTE_NS));
		/* The other was not on its way, and so is nothing that a drain did. */
		assert_int_equal(counter_get(&counters.scaled_down_empty), 1);
		assert_int_equal(counter_get(&counters.scaled_down_underutilized), 0);
		view_drop(less);
	}
	assert_int_equal(counter_get(&counters.steps), 4);
	plan_core_free(c);
	view_drop(v);
}

static void test_metrics(void **state)
{
	static const char *const samples[] = {
		"\nevenkeel_drain_nodes{verdict=\"drain\"} 2\n",
		"\nevenkeel_drain_unneeded_nodes 3\n",
		"\nevenkeel_drain_unremovable_nodes{reason=\"NotEnoughPdb\"} 1\n",
		"\nevenkeel_drain_unremovable_nodes{reason=\"NotRobust\"} 0\n",
		"\nevenkeel_drain_wave_nodes{kind=\"empty\"} 1\n",
		"\nevenkeel_drain_wave_nodes{kind=\"drain\"} 1\n",
		"\nevenkeel_drain_wave_robust 1\n",
		"\nevenkeel_drain_throttled 0\n",
		"\nevenkeel_drain_in_progress{kind=\"all\"} 3\n",
		"\nevenkeel_drain_parallelism{kind=\"drain\"} 10\n",
		"\nevenkeel_drain_owed_pods{kind=\"pending\"} 0\n",
		"\nevenkeel_drain_scaled_down_nodes_total{reason=\"underutilized\"} 0\n",
		"\n# TYPE evenkeel_drain_function_duration_seconds summary\n",
		"\nevenkeel_drain_function_duration_seconds_sum{function=\"plan\"} 2.5\n",
		"\nevenkeel_drain_function_duration_seconds_count{function=\"plan\"} 1\n",
	};
	struct plan_core *c = core_new(&f.counters.drain);
	struct view *v = read_view(true);

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	assert_null(strstr(f.response.body.data, "evenkeel_drain_"));
	f.ctx.plans = plan_slot_new();
	plan_slot_publish(f.ctx.plans, step(c, v, drain_scene_now_ns));
	counter_set(&f.counters.drain.took_ns, 2500000000);
	assert_int_equal(api_fixture_get(&f, "/v1/names"), 200);
	assert_string_equal(text("slackClasses.0"), "unit");
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		if (!strstr(f.response.body.data, samples[i]))
			fail_msg("%s is not in:\n%s", samples[i], f.response.body.data);
	plan_core_free(c);
	view_drop(v);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_envelope),
		TEST(test_time_bound),
		TEST(test_nodes),
		TEST(test_wave),
		TEST(test_no_wave),
		TEST(test_explain),
		TEST(test_labels),
		TEST(test_placeholders),
		TEST(test_other_pods),
		TEST(test_refusals),
		TEST(test_nothing_is_known),
		TEST(test_no_usage),
		TEST(test_slot),
		TEST(test_plans_have_tags),
		TEST(test_history),
		TEST(test_remembered_history),
		TEST(test_plan_of_another_aggregator),
		TEST(test_memory),
		TEST(test_counters),
		TEST(test_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
