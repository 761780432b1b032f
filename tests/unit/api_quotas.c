/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota.h"
#include "aggregator/state/reservations.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/join_fixture.h"
#include "tests/place_fixture.h"
#include "tests/quota_fixture.h"
#include "tests/view_fixture.h"

#define number(path) api_fixture_number(&f, path)
#define text(path)   api_fixture_text(&f, path)

static struct api_fixture f;

/*
 * 16 CPUs of two nodes, 12 of them guaranteed. team-a has borrowed 2 of the 6 that team-b leaves;
 * free is in no quota.
 */
static struct view *make_view(void)
{
	struct buf items = BUF_INIT;
	struct view *v;

	buf_add_str(&items, quota_fixture_node("a", "cpu: 8, memory: 32Gi"));
	buf_add_str(&items, quota_fixture_node("b", "cpu: 8, memory: 32Gi"));
	buf_add_str(&items, quota_fixture_quota("team-a", "q", "cpu: 4, memory: 1Gi",
						"cpu: 8, memory: 32Gi"));
	buf_add_str(&items, quota_fixture_quota("team-b", "q", "cpu: 8", "cpu: 10"));
	for (int i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof(name), "p%d", i);
		buf_add_str(&items, quota_fixture_pod("team-a", name, i < 2 ? "a" : "b", i,
						      "cpu: 2, memory: 1Gi"));
	}
	buf_add_str(&items, quota_fixture_pod("team-b", "p", "b", 0, "cpu: 2"));
	buf_add_str(&items, quota_fixture_pod("team-b", "waits", "", 0, "cpu: 7"));
	buf_add_str(&items, quota_fixture_pod("free", "p", "b", 0, "cpu: 1"));
	buf_add_str(&items, "- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: "
			    "{name: high}, value: 1000, preemptionPolicy: Never}\n"
			    "- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: "
			    "{name: usual}, value: 7, globalDefault: true}\n"
			    "- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: "
			    "{name: above}, value: 9, globalDefault: true}\n"
			    "- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: "
			    "{name: z}, value: 8, globalDefault: true}\n");
	v = quota_fixture_view(items.data);
	buf_fini(&items);
	return v;
}

static int open_fixture(void **state)
{
	(void)state;
	api_fixture_open(&f, make_view());
	f.ctx.reservations = reservations_new();
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	reservations_free(f.ctx.reservations);
	api_fixture_close(&f);
	return 0;
}

/* --- the list */

static void test_list(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/quotas"), 200);
	assert_string_equal(text("kind"), "QuotaList");
	assert_string_equal(text("variant"), "corrected");
	assert_null(api_fixture_at(f.json, "reason"));
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 2);
	assert_string_equal(text("items.0.namespace"), "team-a");
	assert_string_equal(text("items.0.name"), "q");
	assert_true(number("items.0.min.cpuMillicores") == 4000);
	assert_true(number("items.0.max.memoryBytes") == 32 * 1073741824.0);
	assert_true(number("items.0.used.cpuMillicores") == 6000);
	assert_true(number("items.0.borrowed.cpuMillicores") == 2000);
	assert_true(number("items.0.lent.cpuMillicores") == 0);
	assert_true(number("items.0.share.cpuMillicores") == 4000);
	assert_true(number("items.0.pods.used") == 3);
	assert_string_equal(text("items.0.verdict"), "borrowing");
	assert_null(api_fixture_at(f.json, "items.0.realUse"));
	assert_true(number("items.1.lent.cpuMillicores") == 2000);
	assert_true(number("items.1.pending.cpuMillicores") == 7000);
	assert_true(number("items.1.pods.pending") == 1);
	/* To clients of Kubernetes a quota has the name of its namespace. */
	assert_null(api_fixture_at(f.json, "items.0.metadata"));
	assert_int_equal(api_fixture_get(&f, "/apis/evenkeel.io/v1/quotas?limit=500"), 200);
	assert_string_equal(text("items.0.metadata.name"), "team-a");
	assert_string_equal(text("items.0.metadata.namespace"), "");
	assert_string_equal(text("items.0.namespace"), "team-a");
	f.accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
	assert_int_equal(api_fixture_get(&f, "/apis/evenkeel.io/v1/quotas"), 200);
	assert_string_equal(text("rows.1.cells.0"), "team-b");
	assert_string_equal(text("rows.1.cells.1"), "waiting");
	assert_string_equal(text("rows.1.object.metadata.name"), "team-b");
	assert_string_equal(text("rows.1.object.metadata.namespace"), "");
	f.accept = NULL;
	assert_int_equal(api_fixture_get(&f, "/v1/quotas"), 200);
	assert_string_equal(text("items.1.verdict"), "waiting");
	assert_string_equal(text("items.1.reasons.0.text"),
			    "cpu: 2.0 is used of the guaranteed 8.0, and pending pods ask for 7.0: "
			    "they wait for what others leave");
	assert_true(number("items.1.reasons.0.numbers.used") == 2000);
	assert_true(number("items.1.reasons.0.numbers.min") == 8000);
	assert_true(number("items.1.reasons.0.numbers.guaranteed") == 8000);
	assert_true(number("items.1.reasons.0.numbers.max") == 10000);
	assert_true(number("items.1.reasons.0.numbers.pending") == 7000);
	assert_null(api_fixture_at(f.json, "items.1.max.memoryBytes"));
	assert_true(number("total.min.cpuMillicores") == 12000);
	assert_true(number("total.used.cpuMillicores") == 8000);
	assert_true(number("total.borrowed.cpuMillicores") == 2000);
	assert_true(number("total.pending.cpuMillicores") == 7000);
}

static void test_one(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/team-b"), 200);
	assert_string_equal(text("kind"), "Quota");
	assert_string_equal(text("namespace"), "team-b");
	assert_string_equal(text("verdict"), "waiting");
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/free"), 404);
	assert_string_equal(text("error.message"), "namespace \"free\" has no quota");
	assert_int_equal(api_fixture_get(&f, "/v1/quotas?namespace=team-b"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 1);
	assert_int_equal(api_fixture_get(&f, "/v1/quotas?namespace=free"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 0);
}

/* A pod that was promised a node is used, and not pending as well. */
static void test_promised_pods_count_once(void **state)
{
	struct reservation e = {
		.namespace = "team-b", .name = "waits", .uid = "uid-team-b-waits", .node = "a"};

	(void)state;
	resources_set(&e.requests, RESOURCE_CPU, 7000);
	assert_int_equal(reservations_reserve(f.ctx.reservations, &e, VIEW_FIXTURE_NOW_NS), 0);
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/team-b"), 200);
	assert_true(number("used.cpuMillicores") == 9000);
	assert_true(number("pending.cpuMillicores") == 0);
	assert_true(number("pods.used") == 2);
	assert_true(number("pods.assumed") == 1);
	assert_true(number("pods.pending") == 0);
	reservations_release(f.ctx.reservations, "uid-team-b-waits");
}

static void test_parameters(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/quotas?variant=upstream"), 200);
	assert_string_equal(text("variant"), "upstream");
	assert_int_equal(api_fixture_get(&f, "/v1/quotas?variant="), 200);
	assert_string_equal(text("variant"), "corrected");
	assert_int_equal(api_fixture_get(&f, "/v1/quotas?variant=kep"), 400);
	assert_string_equal(http_fixture_error_field(&f), "variant");
	assert_int_equal(api_fixture_get(&f, "/v1/quotas?nodes=a"), 400);
	assert_string_equal(http_fixture_error_field(&f), "nodes");
	assert_int_equal(api_fixture_send(&f, "POST", "/v1/quotas", "{}"), 405);
}

/* A dump without any, and no cluster at all: a list all the same, which says why it is empty. */
#define BARE_POD "{\"spec\":{\"containers\":[{\"name\":\"c\"}]}}"

static void test_no_quotas(void **state)
{
	struct api_fixture bare;

	(void)state;
	api_fixture_open(&bare, quota_fixture_view(quota_fixture_node("a", "cpu: 8")));
	assert_int_equal(api_fixture_get(&bare, "/v1/quotas"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(bare.json, "items")), 0);
	assert_string_equal(
		cJSON_GetStringValue(api_fixture_at(bare.json, "reason")),
		"the cluster's elasticquotas are not known: none: no ElasticQuota is in "
		"the files");
	assert_int_equal(api_fixture_get(&bare, "/v1/quotas/x"), 404);
	api_fixture_close(&bare);
	api_fixture_open(&bare, NULL);
	assert_int_equal(api_fixture_get(&bare, "/v1/quotas"), 503);
	assert_non_null(strstr(bare.response.body.data, "there is no Kubernetes API"));
	assert_int_equal(
		api_fixture_send(&bare, "POST", "/v1/quotas/admit", "{\"pod\":" BARE_POD "}"), 503);
	assert_int_equal(api_fixture_send(&bare, "POST", "/v1/quotas/preempt",
					  "{\"pod\":" BARE_POD "}"),
			 503);
	assert_int_equal(api_fixture_get(&bare, "/metrics"), 200);
	api_fixture_close(&bare);
}

/* One pod that requests 100m and 128 MiB: what it uses, and what it leaves idle. */
static void test_real_use(void **state)
{
	static const struct {
		double cpu_milli, mem_bytes, idle_milli, idle_bytes;
	} rows[] = {{60, 32 << 20, 40, 96 << 20}, {150, 256 << 20, 0, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pod_stats pod = join_fixture_pod("web", "uid-web", VIEW_FIXTURE_NOW_NS, 900,
							rows[i].cpu_milli, rows[i].mem_bytes);
		struct node_stats from =
			view_fixture_node("a", VIEW_FIXTURE_NOW_NS, 3600, 500, 100);
		struct node_stats *stats;
		struct place_fixture cluster;

		from.pods = &pod;
		from.pod_count = 1;
		stats = node_stats_new(&from);
		place_fixture_init(&cluster);
		place_fixture_node(&cluster, "a", "", "");
		place_fixture_put(&cluster, OBJECT_ELASTIC_QUOTA,
				  "{'metadata':{'namespace':'default','name':'q'},'spec':{'min':{"
				  "'cpu':'2'},'max':{'cpu':'4'}}}");
		place_fixture_pod(&cluster, "web", "a", "",
				  "'priority':0,'containers':[{'name':'c','resources':{'requests':{"
				  "'cpu':'100m','memory':'128Mi'}}}]");
		view_slot_publish(f.ctx.views, place_fixture_view(&cluster, &stats, 1));
		assert_int_equal(api_fixture_get(&f, "/v1/quotas/default"), 200);
		assert_true(number("realUse.cpuMillicores.mean") == rows[i].cpu_milli);
		assert_true(number("realUse.workingSetBytes") == rows[i].mem_bytes);
		assert_true(number("idle.cpuMillicores") == rows[i].idle_milli);
		assert_true(number("idle.memoryBytes") == rows[i].idle_bytes);
		node_stats_drop(stats);
		place_fixture_fini(&cluster);
	}
}

/*
 * What nobody has said anything about is as it is without default quotas; the others are told
 * beside those with a name.
 */
static void test_default_quota(void **state)
{
	struct quota_options o;

	(void)state;
	quota_options_default(&o);
	o.has_default = true;
	resources_set(&o.default_max, RESOURCE_CPU, 3000);
	f.ctx.quota = &o;
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/free"), 200);
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "default")));
	assert_null(api_fixture_at(f.json, "name"));
	assert_true(number("max.cpuMillicores") == 3000);
	assert_true(number("used.cpuMillicores") == 1000);
}

/* --- admission */

#define POD(namespace, more, cpu)                                                                  \
	"{\"metadata\":{\"namespace\":\"" namespace "\",\"name\":\"new\"},\"spec\":{" more         \
						    "\"containers\":[{\"name\":\"c\","             \
						    "\"resources\":{\"requests\":{\"cpu\":\"" cpu  \
						    "\"}}}]}}"

static void admit(const char *pod)
{
	char *body = mem_printf("{\"pod\":%s}", pod);

	if (api_fixture_send(&f, "POST", "/v1/quotas/admit", body) != 200)
		fail_msg("%s: %s", body, f.response.body.data);
	free(body);
}

static void test_admit(void **state)
{
	static const struct {
		const char *pod, *verdict, *gate, *text;
	} cases[] = {
		{POD("team-a", "", "2"), "admitted", "admitted",
		 "within max of quota team-a/q and the sum of all min"},
		{POD("team-a", "", "2001m"), "refused", "overMax",
		 "cpu: 6.0 used + 2.001 asked is over max 8.0 of quota team-a/q: wait for 0.001 to "
		 "be "
		 "freed, or raise max"},
		{POD("team-a", "", "9"), "refused", "never",
		 "cpu: 9.0 asked is alone over max 8.0 of quota team-a/q: waiting does not help; "
		 "ask "
		 "for less, or raise max"},
		{POD("team-b", "", "5"), "refused", "overSumMin",
		 "cpu: 8.0 used by all quotas + 5.0 asked is over 12.0, the sum of their min: wait "
		 "for "
		 "1.0 to be freed, by itself or by preempting those who borrow, as quota team-b/q "
		 "is "
		 "within its min"},
		{POD("free", "", "500"), "admitted", "noQuota", "namespace free has no quota"},
		{POD("team-a", "\"priorityClassName\":\"system-node-critical\",", "50"), "admitted",
		 "critical", "priority 2000001000 is critical: not held up by quota team-a/q"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		admit(cases[i].pod);
		assert_string_equal(text("verdict"), cases[i].verdict);
		assert_string_equal(text("gate"), cases[i].gate);
		assert_string_equal(text("reasons.0.text"), cases[i].text);
	}
	admit(cases[3].pod);
	assert_true(number("reasons.0.numbers.used") == 8000);
	assert_true(number("reasons.0.numbers.asked") == 5000);
	assert_true(number("reasons.0.numbers.bound") == 12000);
	assert_true(number("quota.used.cpuMillicores") == 2000);
	assert_true(number("priority") == 7); /* of three defaults the lowest */
	admit(POD("team-b", "\"priorityClassName\":\"\",", "5"));
	assert_true(number("priority") == 0);
}

/*
 * What is promised to others is used; what is promised to the pod itself is not counted twice, nor
 * is one that runs.
 */
static void test_admit_counts_reservations(void **state)
{
	struct reservation promised = {
		.uid = "uid-x", .namespace = "team-a", .name = "x", .node = ""};

	(void)state;
	resources_set(&promised.requests, RESOURCE_CPU, 1000);
	assert_int_equal(reservations_reserve(f.ctx.reservations, &promised, VIEW_FIXTURE_NOW_NS),
			 0);
	admit(POD("team-a", "", "2"));
	assert_string_equal(text("gate"), "overMax");
	assert_true(number("reasons.0.numbers.used") == 7000);
	assert_true(number("quota.pods.assumed") == 1);
	admit("{\"metadata\":{\"namespace\":\"team-a\",\"name\":\"x\",\"uid\":\"uid-x\"},\"spec\":{"
	      "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]}}");
	assert_string_equal(text("gate"), "admitted");
	reservations_release(f.ctx.reservations, "uid-x");
	admit("{\"metadata\":{\"namespace\":\"team-a\",\"name\":\"p0\"},\"spec\":{\"containers\":[{"
	      "\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"4\"}}}]}}");
	assert_string_equal(text("gate"), "admitted");
	assert_string_equal(text("node"), "a");
	/* Another pod of that name, to be made when that one is gone. */
	admit("{\"metadata\":{\"namespace\":\"team-a\",\"name\":\"p0\",\"uid\":\"other\"},\"spec\":"
	      "{"
	      "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"4\"}}}]}}");
	assert_string_equal(text("gate"), "overMax");
	assert_string_equal(text("node"), "");
}

static void test_bad_bodies(void **state)
{
	static const char *const paths[] = {"/v1/quotas/admit", "/v1/quotas/preempt"};
	static const struct {
		const char *body, *field;
	} cases[] = {
		{"", ""},
		{"[]", ""},
		{"{}{}", ""},
		{"{}", "pod"},
		{"{\"pod\":null}", "pod"},
		{"{\"pod\":3}", "pod"},
		{"{\"pod\":{},\"pods\":1}", "pods"},
		{"{\"pod\":{\"spec\":3}}", "pod.spec"},
		{"{\"pod\":{\"metadata\":[]}}", "pod.metadata"},
		{"{\"pod\":{\"kind\":\"Node\"}}", "pod.kind"},
		{"{\"pod\":{\"spec\":{\"priorityClassName\":\"none\"}}}",
		 "pod.spec.priorityClassName"},
		{"{\"pod\":{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"x\"}}"
		 "}]}}}",
		 "pod.spec.containers[0].resources.requests.cpu"},
		{"{\"pod\":{\"spec\":{\"containers\":[]}},\"variant\":\"kep\"}", "variant"},
		{"{\"pod\":{\"spec\":{\"containers\":[]}},\"variant\":3}", "variant"},
		{"{\"pod\":{\"spec\":{\"containers\":[]}},\"namespace\":\"\"}", "namespace"},
		{"{\"pod\":{\"metadata\":{\"namespace\":\"x\"}},\"namespace\":\"y\"}", "namespace"},
	};

	(void)state;
	for (size_t p = 0; p < 2; p++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			if (api_fixture_send(&f, "POST", paths[p], cases[i].body) != 400)
				fail_msg("%s %s: %s", paths[p], cases[i].body,
					 f.response.body.data);
			assert_string_equal(http_fixture_error_field(&f), cases[i].field);
			assert_true(*text("error.message"));
		}
}

/* --- preemption */

static int preempt(const char *pod, const char *more)
{
	char *body = mem_printf("{\"pod\":%s%s}", pod, more);
	int status = api_fixture_send(&f, "POST", "/v1/quotas/preempt", body);

	free(body);
	return status;
}

/*
 * team-b is owed 6 CPUs, so one that borrows goes: the one that matters least, and no more of them
 * than it takes.
 */
static void test_preempt(void **state)
{
	(void)state;
	assert_int_equal(preempt(POD("team-b", "", "5"), ""), 200);
	assert_string_equal(text("kind"), "QuotaPreemption");
	assert_string_equal(text("verdict"), "victims");
	assert_string_equal(text("gate"), "overSumMin");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "victims")), 1);
	assert_string_equal(text("victims.0.namespace"), "team-a");
	assert_true(*text("victims.0.reason"));
	assert_true(number("victims.0.requests.cpuMillicores") == 2000);
	assert_true(*text("node"));
	assert_true(cJSON_GetArraySize(api_fixture_at(f.json, "narration")) > 0);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "nodes")), 2);
}

static void test_preempt_verdicts(void **state)
{
	(void)state;
	assert_int_equal(preempt(POD("team-a", "", "1"), ""), 200);
	assert_string_equal(text("verdict"), "notNeeded");
	/* Over its own max, and nobody of its own is less important than 0. */
	assert_int_equal(preempt(POD("team-a", "\"priority\":0,", "3"), ""), 200);
	assert_string_equal(text("verdict"), "impossible");
	assert_int_equal(preempt(POD("team-b", "\"priorityClassName\":\"high\",", "5"), ""), 200);
	assert_string_equal(text("verdict"), "never");
	assert_int_equal(preempt(POD("team-b", "\"preemptionPolicy\":\"PreemptLowerPriority\",",
				     "5"),
				 ",\"namespace\":\"team-b\""),
			 200);
	assert_string_equal(text("verdict"), "victims");
	assert_int_equal(
		preempt("{\"metadata\":{\"name\":\"new\"},\"spec\":{\"containers\":[{\"name\":"
			"\"c\",\"resources\":{\"requests\":{\"cpu\":\"5\"}}}]}}",
			",\"namespace\":\"team-b\""),
		200);
	assert_string_equal(text("verdict"), "victims");
	assert_int_equal(preempt(POD("team-b", "\"preemptionPolicy\":\"Never\",", "5"), ""), 200);
	assert_string_equal(text("verdict"), "never");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "victims")), 0);
}

/*
 * Room that is promised is no room, whether a view shows the pod that has it or not; and nobody is
 * a victim whom no view shows.
 */
static void test_preempt_counts_what_is_charged(void **state)
{
	struct reservation promised = {
		.uid = "uid-x", .namespace = "free", .name = "x", .node = "b"};

	(void)state;
	resources_set(&promised.requests, RESOURCE_CPU, 3000);
	assert_int_equal(preempt(POD("free", "", "4"), ""), 200);
	assert_string_equal(text("verdict"), "notNeeded"); /* on a */
	assert_int_equal(preempt(POD("free", "", "3"), ",\"nominatedNode\":\"b\""), 200);
	assert_string_equal(text("verdict"), "notNeeded");
	assert_int_equal(reservations_reserve(f.ctx.reservations, &promised, VIEW_FIXTURE_NOW_NS),
			 0);
	assert_int_equal(preempt(POD("free", "", "3"), ",\"nominatedNode\":\"b\""), 200);
	assert_string_equal(text("verdict"), "impossible");
	assert_null(api_fixture_at(f.json, "unseenPods"));
	/* That pod itself finds its own room. */
	assert_int_equal(preempt("{\"metadata\":{\"namespace\":\"free\",\"name\":\"x\",\"uid\":"
				 "\"uid-x\"},\"spec\":{\"containers\":[{\"name\":\"c\","
				 "\"resources\":{\"requests\":{\"cpu\":\"3\"}}}]}}",
				 ",\"nominatedNode\":\"b\""),
			 200);
	assert_string_equal(text("verdict"), "notNeeded");
	reservations_bind(f.ctx.reservations, "uid-x", "a", UINT64_MAX);
	assert_int_equal(preempt(POD("free", "", "3"), ",\"nominatedNode\":\"b\""), 200);
	assert_string_equal(text("verdict"), "notNeeded");
	assert_int_equal(preempt(POD("free", "", "4"), ",\"nominatedNode\":\"a\""), 200);
	assert_string_equal(text("verdict"), "impossible");
	assert_true(number("unseenPods") == 1);
	resources_fini(&promised.requests);
}

static void test_preempt_parameters(void **state)
{
	(void)state;
	assert_int_equal(preempt(POD("team-b", "", "5"), ",\"nominatedNode\":\"b\""), 200);
	assert_string_equal(text("node"), "b");
	assert_int_equal(preempt(POD("team-b", "", "5"), ",\"nominatedNode\":\"c\""), 404);
	assert_string_equal(http_fixture_error_field(&f), "nominatedNode");
	assert_int_equal(preempt(POD("team-b", "", "5"), ",\"pdb\":\"none\""), 400);
	assert_string_equal(http_fixture_error_field(&f), "pdb");
	assert_int_equal(preempt(POD("team-b", "", "5"), ",\"pdb\":\"soft\""), 200);
	assert_int_equal(
		preempt("{\"metadata\":{\"namespace\":\"team-a\",\"name\":\"p0\"},\"spec\":{"
			"\"containers\":[]}}",
			""),
		400);
	assert_string_equal(http_fixture_error_field(&f), "pod");
}

/* Annotations of a quota keep its pods for a time. */
static void test_protected_victims(void **state)
{
#define YOUNG(name)                                                                                \
	"- {apiVersion: v1, kind: Pod, metadata: {namespace: team-a, name: " name ", uid: " name   \
	"}, spec: {nodeName: a, containers: [{name: c, resources: {requests: {cpu: 3}}}]}, "       \
	"status: {phase: Running, startTime: '2026-01-31T11:59:30Z'}}\n"
	static const char lines[] =
		"- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: "
		"{namespace: team-a, name: q, annotations: {evenkeel.io/min-runtime: 100s, "
		"evenkeel.io/max-evictions: 3/200s}}, spec: {min: {cpu: 1}, max: {cpu: "
		"8}}}\n" YOUNG("one") YOUNG("two");
	char *items = mem_printf("%s%s%s", quota_fixture_node("a", "cpu: 8, memory: 32Gi"),
				 quota_fixture_quota("team-b", "q", "cpu: 7", "cpu: 8"), lines);

	(void)state;
	view_slot_publish(f.ctx.views, quota_fixture_view(items));
	free(items);
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/team-a"), 200);
	assert_true(number("minRuntimeSeconds") == 100);
	assert_true(number("maxEvictions.count") == 3);
	assert_true(number("maxEvictions.seconds") == 200);
	assert_int_equal(preempt(POD("team-b", "", "5"), ""), 200);
	assert_string_equal(text("verdict"), "impossible");
	assert_true(number("retryAfterSeconds") == 70);
	assert_string_equal(text("reason"), "no pods that may go would let it start");
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "exhausted")));
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/team-b"), 200);
	assert_null(api_fixture_at(f.json, "minRuntimeSeconds"));
	assert_null(api_fixture_at(f.json, "maxEvictions"));
}

static void test_preempt_needs_pods(void **state)
{
	struct api_fixture bare;

	(void)state;
	api_fixture_open(&bare, NULL);
	assert_int_equal(api_fixture_send(&bare, "POST", "/v1/quotas/preempt",
					  "{\"pod\":{\"spec\":{\"containers\":[]}}}"),
			 503);
	api_fixture_close(&bare);
	api_fixture_open(&bare, quota_fixture_view(quota_fixture_node("a", "cpu: 8")));
	assert_int_equal(api_fixture_send(&bare, "POST", "/v1/quotas/preempt",
					  "{\"pod\":{\"spec\":{\"containers\":[]}}}"),
			 503);
	assert_non_null(strstr(bare.response.body.data, "pods are not known"));
	api_fixture_close(&bare);
}

/* --- metrics */

static bool has_line(const char *line)
{
	char *framed = mem_printf("\n%s\n", line);
	bool found = strstr(f.response.body.data, framed) != NULL;

	free(framed);
	return found;
}

static void test_metrics(void **state)
{
	static const char *const lines[] = {
		"evenkeel_quotas 2",
		"evenkeel_quotas_left_out 0",
		"evenkeel_quota_min{namespace=\"team-a\",resource=\"cpu\"} 4",
		"evenkeel_quota_min{namespace=\"team-a\",resource=\"memory\"} 1073741824",
		"evenkeel_quota_max{namespace=\"team-b\",resource=\"cpu\"} 10",
		"evenkeel_quota_used{namespace=\"team-a\",resource=\"cpu\"} 6",
		"evenkeel_quota_pending{namespace=\"team-b\",resource=\"cpu\"} 7",
		"evenkeel_quota_borrowed{namespace=\"team-a\",resource=\"cpu\"} 2",
		"evenkeel_quota_lent{namespace=\"team-b\",resource=\"cpu\"} 2",
		"evenkeel_quota_gate_total{gate=\"overMax\"} 0",
		"evenkeel_quota_preempt_total{result=\"victims\"} 0",
	};

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!has_line(lines[i]))
			fail_msg("%s is not in the metrics", lines[i]);
	assert_null(strstr(f.response.body.data, "{namespace=\"free\""));
	assert_null(strstr(f.response.body.data, "namespace=\"team-b\",resource=\"memory\""));
}

/* Pending pods within the min, whose CPU others have. */
static void test_starved_metric(void **state)
{
	struct buf items = BUF_INIT;

	(void)state;
	buf_add_str(&items, quota_fixture_node("a", "cpu: 8, memory: 32Gi"));
	buf_add_str(&items, quota_fixture_quota("lender", "q", "cpu: 4", NULL));
	buf_add_str(&items, quota_fixture_quota("taker", "q", "cpu: 4", NULL));
	buf_add_str(&items, quota_fixture_pod("taker", "p", "a", 0, "cpu: 7"));
	buf_add_str(&items, quota_fixture_pod("lender", "waits", "", 0, "cpu: 3"));
	view_slot_publish(f.ctx.views, quota_fixture_view(items.data));
	buf_fini(&items);
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	assert_true(has_line("evenkeel_quota_starved{namespace=\"lender\",resource=\"cpu\"} 3"));
	assert_true(has_line("evenkeel_quota_starved{namespace=\"taker\",resource=\"cpu\"} 0"));
}

/* As many series as are worth it, whatever quotas name. */
static void test_metrics_are_bounded(void **state)
{
	struct buf items = BUF_INIT;
	size_t lines = 0;

	(void)state;
	for (int i = 0; i < 1100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%04d", i);
		buf_add_str(&items,
			    quota_fixture_quota(
				    name, "q",
				    "cpu: 1, a.b/1: 1, a.b/2: 1, a.b/3: 1, a.b/4: 1, a.b/5: 1, "
				    "a.b/6: 1, a.b/7: 1, a.b/8: 1, a.b/9: 1",
				    NULL));
	}
	view_slot_publish(f.ctx.views, quota_fixture_view(items.data));
	buf_fini(&items);
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	for (const char *p = f.response.body.data; (p = strchr(p, '\n')); p++)
		lines += strncmp(p + 1, "evenkeel_quota_min{", 19) == 0;
	assert_int_equal(lines, 1000 * 9);
	assert_true(has_line("evenkeel_quotas 1100"));
	assert_true(has_line("evenkeel_quotas_left_out 101"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_list),
		TEST(test_one),
		TEST(test_promised_pods_count_once),
		TEST(test_parameters),
		TEST(test_no_quotas),
		TEST(test_real_use),
		TEST(test_default_quota),
		TEST(test_admit),
		TEST(test_admit_counts_reservations),
		TEST(test_bad_bodies),
		TEST(test_preempt),
		TEST(test_preempt_verdicts),
		TEST(test_preempt_counts_what_is_charged),
		TEST(test_preempt_parameters),
		TEST(test_protected_victims),
		TEST(test_preempt_needs_pods),
		TEST(test_metrics),
		TEST(test_starved_metric),
		TEST(test_metrics_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
