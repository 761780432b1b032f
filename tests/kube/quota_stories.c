/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories of quotas on a real control plane: a kube-scheduler that preempts as it is shipped, with
 * the aggregator as its extender. Quotas, nodes and pods are of cpu, memory and nvidia.com/gpu, in
 * units of 4 CPUs, 16Gi and a GPU.
 *
 * After each story the API's own watch is read from its beginning. At every event no quota has more
 * bound than its max, pods in deletion counted, and no eviction leaves a quota below its min. Who
 * was evicted is what the scheduler's condition DisruptionTarget says; the story says how many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/quantity.h"
#include "tests/kube_quota_world.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

#define GROUP	"/apis/scheduling.x-k8s.io/v1alpha1"
#define SECONDS 60
/* 5 s, as the look for kinds comes every 4 s, and some for a busy machine. */
#define NOTICED_S 7.0

enum { NODES = 3, QUOTAS = 3, SETS = 6, RESOURCES = 3, PODS_MAX = 64 };

static const char *const resource[RESOURCES] = {"cpu", "memory", "nvidia.com/gpu"};
static const int64_t unit[RESOURCES] = {4000, 16LL << 30, 1};

/* Pods NAME1 to NAMEcount; those without a node are the scheduler's. */
struct set {
	const char *namespace, *name, *node;
	int count, units, priority, grace;
};

struct world {
	const char *id;
	int nodes[NODES]; /* "n1" and on, in units; 0: none */
	struct {
		const char *namespace;
		int min, max;
	} quotas[QUOTAS];
	struct set sets[SETS];
};

static struct kube_testbed *bed;
static struct {
	struct world world;
	char revision[32]; /* of the API, before the story */
	int started; /* pods that run */
} story;

/* --- the cluster of a story ------------------------------------------------------------------- */

static cJSON *amounts(int units)
{
	cJSON *json = cJSON_CreateObject();

	for (int r = 0; r < RESOURCES; r++)
		cJSON_AddNumberToObject(json, resource[r], (double)(units * unit[r]));
	return json;
}

static cJSON *node_json(int i)
{
	cJSON *json = cJSON_CreateObject(), *of = amounts(story.world.nodes[i]);

	cJSON_AddStringToObject(json, "name", (const char *[]){"n1", "n2", "n3"}[i]);
	cJSON_AddNumberToObject(of, "pods", 110);
	cJSON_AddItemToObject(json, "allocatable", of);
	return json;
}

static cJSON *quota_json(int i)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "namespace", story.world.quotas[i].namespace);
	cJSON_AddItemToObject(json, "min", amounts(story.world.quotas[i].min));
	cJSON_AddItemToObject(json, "max", amounts(story.world.quotas[i].max));
	return json;
}

static cJSON *pod_json(const struct set *s, int i)
{
	char *name = mem_printf("%s%d", s->name, i + 1);
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "pod", name);
	cJSON_AddStringToObject(json, "namespace", s->namespace);
	if (s->node)
		cJSON_AddStringToObject(json, "node", s->node);
	cJSON_AddNumberToObject(json, "priority", s->priority);
	cJSON_AddNumberToObject(json, "grace", s->grace);
	cJSON_AddNumberToObject(json, "start", story.started++);
	cJSON_AddItemToObject(json, "request", amounts(s->units ? s->units : 1));
	free(name);
	return json;
}

static void begin(const struct world *w)
{
	cJSON *json = cJSON_CreateObject(), *list = kube_quota_world_pods(bed);
	cJSON *nodes = cJSON_AddArrayToObject(json, "nodes");
	cJSON *quotas = cJSON_AddArrayToObject(json, "quotas");
	cJSON *pods = cJSON_AddArrayToObject(json, "pods");

	story.world = *w;
	story.started = 0;
	snprintf(story.revision, sizeof(story.revision), "%s",
		 json_at(list, "metadata.resourceVersion")->valuestring);
	cJSON_AddStringToObject(json, "id", w->id);
	for (int i = 0; i < NODES && w->nodes[i]; i++)
		cJSON_AddItemToArray(nodes, node_json(i));
	for (int i = 0; i < QUOTAS && w->quotas[i].namespace; i++)
		cJSON_AddItemToArray(quotas, quota_json(i));
	for (int i = 0; i < SETS && w->sets[i].count; i++)
		for (int k = 0; k < w->sets[i].count; k++)
			cJSON_AddItemToArray(pods, pod_json(&w->sets[i], k));
	kube_quota_world_begin(bed, json);
	cJSON_Delete(json);
	cJSON_Delete(list);
}

static int clear(void **state)
{
	(void)state;
	kube_quota_world_clear(bed);
	return 0;
}

static void delete_pod(const char *namespace, const char *name, bool at_once)
{
	kube_quota_world_delete(bed, mem_printf("/api/v1/namespaces/%s/pods/%s%s", namespace, name,
						at_once ? "?gracePeriodSeconds=0" : ""));
}

/* --- what the watch told ---------------------------------------------------------------------- */

enum phase { PENDING, BOUND, GOING, GONE };

struct seen {
	char uid[40], name[32], nominated[8]; /* the node; "" */
	int quota; /* QUOTAS: none */
	enum phase phase;
	bool evicted;
	int64_t asks[RESOURCES];
};

struct history {
	size_t count;
	struct seen pods[PODS_MAX];
	int evicted[QUOTAS + 1]; /* pods, by quota */
};

static int64_t used(const struct history *h, int quota, int r, enum phase last)
{
	int64_t sum = 0;

	for (size_t i = 0; i < h->count; i++)
		if (h->pods[i].quota == quota && h->pods[i].phase >= BOUND &&
		    h->pods[i].phase <= last)
			sum += h->pods[i].asks[r];
	return sum;
}

static int quota_of(const char *namespace)
{
	int i = 0;

	while (i < QUOTAS && (!story.world.quotas[i].namespace ||
			      strcmp(story.world.quotas[i].namespace, namespace) != 0))
		i++;
	return i;
}

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

static struct seen *seen_of(struct history *h, const cJSON *pod)
{
	const cJSON *asks =
		json_at(json_at(pod, "spec.containers")->child, "resources")->child->next;
	const char *uid = json_at(pod, "metadata.uid")->valuestring;
	struct error why;
	struct seen *s;

	for (size_t i = 0; i < h->count; i++)
		if (strcmp(h->pods[i].uid, uid) == 0)
			return &h->pods[i];
	assert_true(h->count < PODS_MAX);
	s = &h->pods[h->count++];
	snprintf(s->uid, sizeof(s->uid), "%s", uid);
	snprintf(s->name, sizeof(s->name), "%s", json_at(pod, "metadata.name")->valuestring);
	s->quota = quota_of(json_at(pod, "metadata.namespace")->valuestring);
	assert_string_equal(asks->string, "requests");
	for (int r = 0; r < RESOURCES; r++) {
		const char *text =
			cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(asks, resource[r]));

		assert_int_equal(r ? quantity_parse_units(text, &s->asks[r], &why)
				   : quantity_parse_milli(text, &s->asks[r], &why),
				 0);
	}
	return s;
}

static bool is_evicted(const cJSON *pod)
{
	const cJSON *condition;

	cJSON_ArrayForEach (condition, json_at(pod, "status.conditions")) {
		if (strcmp(json_at(condition, "type")->valuestring, "DisruptionTarget") == 0)
			return true;
	}
	return false;
}

static void check_bounds(const struct history *h, const struct seen *s, bool evicted)
{
	for (int r = 0; s->quota < QUOTAS && r < RESOURCES; r++) {
		assert_true(used(h, s->quota, r, GOING) <=
			    story.world.quotas[s->quota].max * unit[r]);
		assert_true(!evicted || used(h, s->quota, r, BOUND) >=
						story.world.quotas[s->quota].min * unit[r]);
	}
}

/* A preemptor keeps its node, until it is bound there. */
static void check_nominated(struct seen *s, const char *nominated, const char *bound)
{
	if (*s->nominated && s->phase <= BOUND)
		assert_string_equal(*bound ? bound : nominated, s->nominated);
	snprintf(s->nominated, sizeof(s->nominated), "%s", nominated);
}

static void take_event(struct history *h, const cJSON *event)
{
	const cJSON *pod = json_at(event, "object");
	const char *type = json_at(event, "type")->valuestring;
	bool evicted;
	struct seen *s;

	if (strcmp(type, "ERROR") == 0 || strcmp(type, "BOOKMARK") == 0)
		fail_msg("the watch says %s", type);
	s = seen_of(h, pod);
	evicted =
		s->phase == BOUND && is_evicted(pod) && json_at(pod, "metadata.deletionTimestamp");
	s->phase = strcmp(type, "DELETED") == 0			? GONE
		   : !json_at(pod, "spec.nodeName")		? PENDING
		   : json_at(pod, "metadata.deletionTimestamp") ? GOING
								: BOUND;
	check_nominated(s, text_at(pod, "status.nominatedNodeName"), text_at(pod, "spec.nodeName"));
	s->evicted |= evicted;
	h->evicted[s->quota] += evicted;
	check_bounds(h, s, evicted);
}

/* The watch ends by itself after a second. */
static void read_history(struct history *h)
{
	char *path = mem_printf("/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion=%s",
				story.revision);
	struct buf answer = BUF_INIT;
	char *next, *line;

	*h = (struct history){0};
	assert_int_equal(control_plane_send(bed->plane, "GET", path, NULL, &answer), 200);
	next = answer.data;
	while ((line = strsep(&next, "\n")) && *line) {
		cJSON *event = cJSON_Parse(line);

		assert_non_null(event);
		take_event(h, event);
		cJSON_Delete(event);
	}
	buf_fini(&answer);
	free(path);
}

struct evictions {
	int expected[QUOTAS + 1];
	struct history seen;
};

/* A scheduler deletes victims beside what it says of their preemptor, and a watch may end too early. */
static bool are_evicted(void *ctx)
{
	struct evictions *e = ctx;

	read_history(&e->seen);
	return memcmp(e->seen.evicted, e->expected, sizeof(e->expected)) == 0;
}

/* So many of each quota, and of pods without one. */
static void expect_evicted(int first, int second, int third, int others)
{
	struct evictions e = {.expected = {first, second, third, others}};

	await(are_evicted, &e, SECONDS);
	for (size_t i = 0; i < e.seen.count; i++)
		if (e.seen.pods[i].evicted)
			print_message("          evicted: %s\n", e.seen.pods[i].name);
	for (int i = 0; i <= QUOTAS; i++)
		assert_int_equal(e.seen.evicted[i], e.expected[i]);
}

/* --- pods ------------------------------------------------------------------------------------- */

struct burst {
	const struct set *set;
	int bound, refused; /* at the last look */
	char why[256]; /* what was said of the last of them that was refused */
	int want_bound, want_refused;
};

static bool is_decided(void *ctx)
{
	struct burst *b = ctx;

	b->bound = b->refused = 0;
	for (int i = 0; i < b->set->count; i++) {
		char *name = mem_printf("%s%d", b->set->name, i + 1);
		struct kube_quota_pod p = {.bed = bed,
					   .namespace = b->set->namespace,
					   .name = name};

		if (kube_quota_pod_is_bound(&p)) {
			b->bound++;
		} else if (kube_quota_pod_refusal(&p)) {
			b->refused++;
			snprintf(b->why, sizeof(b->why), "%s", kube_quota_pod_refusal(&p));
		}
		cJSON_Delete(p.seen);
		free(name);
	}
	return b->bound == b->want_bound && b->refused == b->want_refused;
}

static void await_burst(const struct set *s, int bound, int refused)
{
	struct burst b = {.set = s, .want_bound = bound, .want_refused = refused};

	if (!await(is_decided, &b, SECONDS))
		fail_msg("of %d pods %s of %s %d are bound, and %d refused: %s", s->count, s->name,
			 s->namespace, b.bound, b.refused, b.why);
}

static void create(const struct set *s)
{
	for (int i = 0; i < s->count; i++) {
		cJSON *json = pod_json(s, i);

		kube_quota_world_make_pod(bed, json);
		cJSON_Delete(json);
	}
}

/* Until so many are bound and the scheduler has said of the others that it has no place. */
static void submit(const struct set *s, int bound)
{
	int64_t began_ns = clock_mono_ns();

	create(s);
	await_burst(s, bound, s->count - bound);
	print_message("          %d of %d pods %s of %d units, priority %d, are bound: %.2f s\n",
		      bound, s->count, s->name, s->units ? s->units : 1, s->priority,
		      (double)(clock_mono_ns() - began_ns) / NS_PER_SEC);
}

struct expected_text {
	const char *path; /* of the aggregator, or of the API with /api */
	const char *text; /* in one of the items */
	char *seen; /* owned; at the last look */
};

static bool says(void *ctx)
{
	struct expected_text *e = ctx;
	cJSON *json = strncmp(e->path, "/api", 4) == 0 ? kube_quota_world_get(bed, e->path)
						       : kube_testbed_get(bed, 0, e->path);

	cJSON_free(e->seen);
	e->seen = cJSON_PrintUnformatted(json);
	cJSON_Delete(json);
	return e->seen && strstr(e->seen, e->text);
}

static void expect_says(const char *path, const char *text)
{
	struct expected_text e = {path, text, NULL};

	if (!await(says, &e, SECONDS))
		fail_msg("%s does not say %s: %s", path, text, e.seen);
	print_message("          %s says: %s\n", path, text);
	cJSON_free(e.seen);
}

static void expect_used(const char *namespace, int units)
{
	cJSON *json = cJSON_CreateObject(), *of = amounts(units);

	cJSON_AddItemToObject(json, namespace, of);
	kube_quota_world_expect_used(bed, json);
	cJSON_Delete(json);
}

/* --- stories of the bed ----------------------------------------------------------------------- */

static void start_aggregator(const char *more)
{
	const char *const options[] = {"--nudge-claim", "evenkeel/evenkeel-nudge", "--events=pods",
				       more, NULL};

	kube_testbed_start_aggregator_with(bed, 0, bed->plane->admin, options);
}

static bool is_served(void *ctx)
{
	(void)ctx;
	return control_plane_send(bed->plane, "GET", GROUP "/elasticquotas", NULL, NULL) == 200;
}

/* Quotas do not fail open for longer: the kind comes after the aggregator's start. */
static void test_kind_that_appears_is_noticed(void **state)
{
	double seconds, waited_s;
	int64_t began_ns;

	(void)state;
	control_plane_create(bed->plane, "packaging/kubernetes/core/namespace.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/core/nudge.yaml");
	start_aggregator(NULL);
	cJSON_Delete(kube_testbed_expect_state(bed, 0, "elasticquotas", "absent"));
	kube_quota_world_start_scheduler(bed, "");
	control_plane_create(bed->plane, "packaging/kubernetes/crd/elasticquota.yaml");
	assert_true(await(is_served, NULL, SECONDS));
	began_ns = clock_mono_ns();
	waited_s = kube_testbed_waited_s(bed);
	cJSON_Delete(kube_testbed_expect_state(bed, 0, "elasticquotas", "synced"));
	seconds = (double)(clock_mono_ns() - began_ns) / NS_PER_SEC;
	waited_s = kube_testbed_waited_s(bed) - waited_s;
	print_message("          noticed %.2f s after it was served\n", seconds);
	assert_true(seconds <= scaled_s(NOTICED_S) + waited_s);
	begin(&(struct world){.id = "the kind is new",
			      .nodes = {4},
			      .quotas = {{"a", 1, 1}},
			      .sets = {{"a", "a", "n1", .count = 1}}});
	submit(&(struct set){"a", "late", .count = 1}, 0);
	expect_evicted(0, 0, 0, 0);
}

/* --- KEP 9 ------------------------------------------------------------------------------------ */

static void test_kep_story_1(void **state)
{
	(void)state;
	begin(&(struct world){.id = "KEP 9, story 1",
			      .nodes = {10},
			      .quotas = {{"a", 4, 6}, {"b", 6, 8}},
			      .sets = {{"a", "a-first", "n1", .count = 1, .units = 2},
				       {"b", "b-first", "n1", 1, 3, .priority = 10}}});
	print_message("          a reaches its min\n");
	submit(&(struct set){"a", "a-second", .count = 1, .units = 2}, 1);
	print_message("          a wants 3 more, and may have 2\n");
	submit(&(struct set){"a", "a-big", .count = 1, .units = 3}, 0);
	expect_says("/v1/quotas/a", "\"verdict\":\"atMax\"");
	delete_pod("a", "a-big1", true);
	submit(&(struct set){"a", "a-third", .count = 1, .units = 2}, 1);
	print_message("          b wants its min\n");
	submit(&(struct set){"b", "b-second", .count = 1, .units = 3, .priority = 10}, 1);
	print_message("          b wants more\n");
	submit(&(struct set){"b", "b-third", .count = 1, .priority = 10}, 0);
	submit(&(struct set){"b", "b-fourth", .count = 1, .units = 2, .priority = 10}, 0);
	expect_used("a", 4);
	expect_used("b", 6);
	expect_evicted(1, 0, 0, 0);
}

static void test_kep_story_2(void **state)
{
	(void)state;
	begin(&(struct world){.id = "KEP 9, story 2",
			      .nodes = {10},
			      .quotas = {{"a", 3, 4}, {"b", 4, 6}, {"c", 3, 4}},
			      .sets = {{"a", "a-first", "n1", .count = 1, .units = 2},
				       {"b", "b-first", "n1", 1, 2, .priority = 10},
				       {"c", "c-first", "n1", .count = 1, .units = 3}}});
	print_message("          a reaches its max, b has 3\n");
	submit(&(struct set){"a", "a-second", .count = 2}, 2);
	submit(&(struct set){"b", "b-second", .count = 1, .priority = 10}, 1);
	submit(&(struct set){"a", "a-third", .count = 1}, 0);
	expect_says("/v1/quotas/a", "\"verdict\":\"atMax\"");
	delete_pod("a", "a-third1", true);
	print_message("          b wants its min, which a borrows\n");
	submit(&(struct set){"b", "b-third", .count = 1, .priority = 10}, 1);
	expect_evicted(1, 0, 0, 0);
	print_message("          a has 2, b has 5\n");
	control_plane_must(bed->plane, "DELETE",
			   "/api/v1/namespaces/a/pods?gracePeriodSeconds=0"
			   "&fieldSelector=metadata.name!=a-first1",
			   NULL);
	submit(&(struct set){"b", "b-fourth", .count = 1, .priority = 5}, 1);
	print_message("          b wants more than its min: its own give way\n");
	submit(&(struct set){"b", "b-fifth", .count = 1, .priority = 20}, 1);
	expect_used("a", 2);
	expect_used("b", 5);
	expect_used("c", 3);
	expect_evicted(1, 1, 0, 0);
}

/* --- what the extender cannot do -------------------------------------------------------------- */

/* The list of victims is carried out by hand. */
static void tell_reclaim(const struct world *w, const struct set *b, const char *text)
{
	const cJSON *victim;
	cJSON *list;

	begin(w);
	submit(b, 0);
	expect_says("/api/v1/namespaces/b/events", text);
	expect_says("/v1/quotas/reclaim", "\"namespace\":\"b\",\"name\":\"b1\"");
	expect_says("/v1/quotas/b", "\"verdict\":\"starved\"");
	expect_evicted(0, 0, 0, 0);
	list = kube_testbed_get(bed, 0, "/v1/quotas/reclaim");
	cJSON_ArrayForEach (victim, json_at(json_at(list, "items")->child, "victims"))
		delete_pod("a", json_at(victim, "name")->valuestring, true);
	cJSON_Delete(list);
	await_burst(b, 1, 0);
	expect_evicted(0, 0, 0, 0);
}

static void test_what_nobody_reclaims_is_told(void **state)
{
	(void)state;
	tell_reclaim(&(struct world){.id = "borrowers of the same priority",
				     .nodes = {10},
				     .quotas = {{"a", 6, 10}, {"b", 4, 10}},
				     .sets = {{"a", "a", "n1", .count = 10}}},
		     &(struct set){"b", "b", .count = 1, .units = 4},
		     "quota b is within its min: 4 pods of a could give way; see evenkeel quota "
		     "preempt");
	kube_quota_world_clear(bed);
	tell_reclaim(&(struct world){.id = "room on the node, and none under the sum of min",
				     .nodes = {12},
				     .quotas = {{"a", 6, 10}, {"b", 4, 10}},
				     .sets = {{"a", "a", "n1", .count = 8}}},
		     &(struct set){"b", "b", .count = 1, .units = 4, .priority = 10},
		     "quota b is within its min: 2 pods of a could give way; see evenkeel quota "
		     "preempt");
}

/* --- who pays --------------------------------------------------------------------------------- */

/*
 * What a has in deletion is of its min until it is gone: b pays only for what a is owed beyond.
 * Room on the node that is cordoned helps nobody.
 */
static void test_pods_in_deletion_count(void **state)
{
	static const struct set more = {"a", "more", .count = 1, .priority = 10};

	(void)state;
	begin(&(struct world){.id = "pods in deletion are used",
			      .nodes = {8, 4},
			      .quotas = {{"a", 4, 10}, {"b", 2, 10}, {"c", 6, 6}},
			      .sets = {{"a", "a", "n2", .count = 4, .grace = 600},
				       {"b", "b", "n1", .count = 8}}});
	control_plane_must(bed->plane, "PATCH", "/api/v1/nodes/n2",
			   "{\"spec\":{\"unschedulable\":true}}");
	expect_says("/v1/nodes/n2", "\"unschedulable\":true");
	for (int i = 0; i < 4; i++)
		delete_pod("a", (const char *[]){"a1", "a2", "a3", "a4"}[i], false);
	submit(&more, 0);
	expect_used("a", 4);
	expect_evicted(0, 0, 0, 0);
	delete_pod("a", "a1", true);
	await_burst(&more, 1, 0);
	expect_evicted(0, 1, 0, 0);
}

/* Nobody writes the budget's status anew: it is behind, as it is in every burst. */
static void test_budget_in_a_burst(void **state)
{
	static const char budgets[] = "/apis/policy/v1/namespaces/a/poddisruptionbudgets";

	(void)state;
	begin(&(struct world){.id = "eight at once where a budget allows four",
			      .nodes = {10},
			      .quotas = {{"a", 2, 10}, {"b", 8, 10}},
			      .sets = {{"a", "a", "n1", .count = 10}}});
	control_plane_must(bed->plane, "POST", budgets,
			   "{\"metadata\":{\"name\":\"all\"},\"spec\":{\"minAvailable\":6,"
			   "\"selector\":{}}}");
	control_plane_must(bed->plane, "PATCH",
			   "/apis/policy/v1/namespaces/a/poddisruptionbudgets/all/status",
			   "{\"status\":{\"disruptionsAllowed\":4,\"currentHealthy\":10,"
			   "\"desiredHealthy\":6,\"expectedPods\":10,\"observedGeneration\":1}}");
	submit(&(struct set){"b", "b", .count = 8, .priority = 10}, 4);
	submit(&(struct set){"b", "late", .count = 1, .priority = 10}, 0);
	expect_evicted(4, 0, 0, 0);
	control_plane_must(bed->plane, "DELETE", budgets, NULL);
}

static bool is_repeated(void *ctx)
{
	char *url = mem_printf("http://127.0.0.1:%d/metrics", bed->aggregators[0].http_port);
	struct buf metrics = BUF_INIT;
	bool repeated;

	(void)ctx;
	http_get(url, &metrics);
	repeated = control_plane_sample(&metrics,
					"evenkeel_quota_preempt_total{result=\"repeated\"}") > 0;
	buf_fini(&metrics);
	free(url);
	return repeated;
}

/*
 * Victims of a higher priority than the preemptor's: the scheduler found others, and asks again
 * while they go. The test lets them go one by one.
 */
static void test_one_set_for_each(void **state)
{
	static const struct set b = {"b", "b", .count = 2, .units = 2, .priority = 10};
	struct history h;

	(void)state;
	begin(&(struct world){.id = "two preemptors at once",
			      .nodes = {4, 4, 4},
			      .quotas = {{"a", 0, 12}, {"b", 6, 8}, {"c", 6, 6}},
			      .sets = {{"a", "a", "n1", 2, .priority = 20, .grace = 600},
				       {"a", "aa", "n2", 2, .priority = 20, .grace = 600},
				       {"a", "aaa", "n3", 2, .priority = 20, .grace = 600},
				       {"c", "c", "n1", .count = 2},
				       {"c", "cc", "n2", .count = 2},
				       {"c", "ccc", "n3", .count = 2}}});
	submit(&b, 0);
	expect_evicted(4, 0, 0, 0);
	expect_says("/v1/quotas/b", "\"pods\":{\"used\":2,\"assumed\":2,\"pending\":0}");
	assert_false(is_repeated(NULL));
	read_history(&h);
	for (size_t i = 0; i < h.count; i++) {
		if (!h.pods[i].evicted)
			continue;
		delete_pod("a", h.pods[i].name, true);
		assert_true(await(is_repeated, NULL, SECONDS));
	}
	await_burst(&b, 2, 0);
	expect_used("b", 4);
	expect_evicted(4, 0, 0, 0);
}

static void test_weight_decides(void **state)
{
	(void)state;
	begin(&(struct world){.id = "a weighs three times what c does",
			      .nodes = {8},
			      .quotas = {{"a", 1, 8}, {"b", 6, 8}, {"c", 1, 8}},
			      .sets = {{"a", "a", "n1", .count = 4},
				       {"c", "c", "n1", .count = 4, .priority = 5}}});
	control_plane_must(bed->plane, "PATCH", GROUP "/namespaces/a/elasticquotas/quota",
			   "{\"metadata\":{\"annotations\":{\"evenkeel.io/weight\":\"3\"}}}");
	expect_says("/v1/quotas/a", "\"weight\":3");
	submit(&(struct set){"b", "b", .count = 1, .priority = 10}, 1);
	submit(&(struct set){"b", "bb", .count = 1, .priority = 10}, 1);
	expect_evicted(0, 0, 2, 0);
}

/* Preemption crosses the line to pods without a quota with the option only. */
static void test_cover_all(void **state)
{
	static const struct set b = {"b", "b", .count = 1, .priority = 10};

	(void)state;
	begin(&(struct world){.id = "a namespace without a quota",
			      .nodes = {4},
			      .quotas = {{"b", 4, 4}},
			      .sets = {{"free", "free", "n1", .count = 4}}});
	submit(&b, 0);
	expect_says("/v1/quotas", "min 4 of b cannot be met: pods without a quota hold 4 of 4");
	expect_says("/api/v1/namespaces/b/events",
		    "preemption does not take the 4 pods without a quota");
	expect_evicted(0, 0, 0, 0);
	assert_int_equal(kube_testbed_stop_aggregator(bed, 0), 0);
	start_aggregator("--quota-cover-all");
	submit(&(struct set){"b", "bb", .count = 1, .priority = 10}, 1);
	await_burst(&b, 1, 0);
	expect_evicted(0, 0, 0, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_kind_that_appears_is_noticed, clear),
		cmocka_unit_test_teardown(test_kep_story_1, clear),
		cmocka_unit_test_teardown(test_kep_story_2, clear),
		cmocka_unit_test_teardown(test_what_nobody_reclaims_is_told, clear),
		cmocka_unit_test_teardown(test_pods_in_deletion_count, clear),
		cmocka_unit_test_teardown(test_budget_in_a_burst, clear),
		cmocka_unit_test_teardown(test_one_set_for_each, clear),
		cmocka_unit_test_teardown(test_weight_decides, clear),
		cmocka_unit_test(test_cover_all),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	if (bed->plane->version->minor < 37) {
		printf("SKIP: this kube-scheduler never asks its extender for victims\n");
		kube_testbed_free(bed, false);
		return 0;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	return failed != 0;
}
