/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sched_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/process.h"
#include "tests/stack.h"

#define CONFIGURATION "packaging/kubernetes/scheduler/kube-scheduler-v1beta1.yaml"
#define ADDRESS	      "evenkeel-aggregator.example:2020"
#define PODS	      "/api/v1/namespaces/default/pods"

enum { NODES = SCHED_NODES, TIMEOUT = SCHED_TIMEOUT };

const char sched_small_pod[] = "{\"requests\":{\"cpu\":\"160m\",\"memory\":\"640Mi\"},"
			       "\"limits\":{\"cpu\":\"320m\",\"memory\":\"1280Mi\"}}";
const char sched_large_pod[] = "{\"requests\":{\"cpu\":\"320m\",\"memory\":\"1280Mi\"},"
			       "\"limits\":{\"cpu\":\"640m\",\"memory\":\"2560Mi\"}}";

void sched_use(struct sched_world *w, size_t i, double cpu_milli, double sigma_milli)
{
	w->loads[i].cpu_milli = cpu_milli;
	w->loads[i].sigma_milli = sigma_milli;
	w->loads[i].mem_bytes = 8.0 * (1 << 30);
}

/* --- the scheduler --------------------------------------------------------------------------- */

/* Replaces what must be there once. */
static char *replace(const char *text, const char *what, const char *by)
{
	const char *at = strstr(text, what);

	if (!at || strstr(at + 1, what))
		fail_msg("%s has not one \"%s\"", CONFIGURATION, what);
	return mem_printf("%.*s%s%s", (int)(at - text), text, by, at + strlen(what));
}

static char *read_configuration(void)
{
	FILE *f = fopen(CONFIGURATION, "r");
	char text[8192];
	size_t len;

	assert_non_null(f);
	len = fread(text, 1, sizeof(text) - 1, f);
	assert_true(len > 0 && len < sizeof(text) - 1);
	text[len] = '\0';
	fclose(f);
	return mem_strdup(text);
}

void sched_start(struct sched_world *w, int port, bool ignorable, size_t pods)
{
	static const char kind[] = "kind: KubeSchedulerConfiguration\n";
	char *text = read_configuration(), *with_address, *whole;
	char *address = mem_printf("127.0.0.1:%d", port);
	const char *rest;

	with_address = replace(text, ADDRESS, address);
	whole = replace(with_address, "ignorable: true",
			ignorable ? "ignorable: true" : "ignorable: false");
	rest = strstr(whole, kind); /* which the scheduler's connection follows */
	assert_non_null(rest);
	control_plane_start_scheduler(w->bed->plane, rest + strlen(kind));
	control_plane_await_scheduler(w->bed->plane, NODES, NODES + pods);
	free(whole);
	free(with_address);
	free(address);
	free(text);
}

/* --- pods ------------------------------------------------------------------------------------ */

char *sched_pod_text(const char *name, const char *more, const char *resources)
{
	return mem_printf("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
			  "\"namespace\":\"default\"},\"spec\":{%s\"containers\":[{\"name\":\"c\","
			  "\"image\":\"none\",\"resources\":%s}]}}",
			  name, more, resources);
}

void sched_make_pod(struct sched_world *w, const char *name, const char *more,
		    const char *resources)
{
	char *body = sched_pod_text(name, more, resources);

	control_plane_must(w->bed->plane, "POST", PODS, body);
	free(body);
}

void sched_make_pods(struct sched_world *w, const char *prefix, size_t count, const char *resources)
{
	for (size_t i = 0; i < count; i++) {
		char *name = mem_printf("%s-%zu", prefix, i);

		sched_make_pod(w, name, "", resources);
		free(name);
	}
}

/* A look at where pods are. */
struct look {
	struct sched_world *world;
	const char *prefix;
	size_t want, seen, all;
	struct sched_placed placed;
};

static void count_pod(struct look *l, const cJSON *pod)
{
	const char *name = cJSON_GetStringValue(json_at(pod, "metadata.name"));
	const char *node = cJSON_GetStringValue(json_at(pod, "spec.nodeName"));

	if (strncmp(name, l->prefix, strlen(l->prefix)) != 0)
		return;
	l->all++;
	if (node) {
		l->placed.on[sched_node(l->world, node)]++;
		l->seen++;
	}
}

static bool are_placed(void *ctx)
{
	struct look *l = ctx;
	struct buf answer = BUF_INIT;
	cJSON *list;
	const cJSON *pod;

	l->seen = l->all = 0;
	memset(&l->placed, 0, sizeof(l->placed));
	if (control_plane_send(l->world->bed->plane, "GET", PODS, NULL, &answer) != 200)
		fail_msg("no list of pods");
	list = cJSON_Parse(answer.data);
	cJSON_ArrayForEach (pod, json_at(list, "items"))
		count_pod(l, pod);
	cJSON_Delete(list);
	buf_fini(&answer);
	return l->seen == l->want;
}

static bool are_gone(void *ctx)
{
	struct look *l = ctx;

	are_placed(l);
	return l->all == 0;
}

struct sched_placed sched_await_placed(struct sched_world *w, const char *prefix, size_t want)
{
	struct look l = {.world = w, .prefix = prefix, .want = want};

	if (!await(are_placed, &l, TIMEOUT))
		fail_msg("%zu of %zu pods %s.. are placed", l.seen, want, prefix);
	return l.placed;
}

void sched_remove_pods(struct sched_world *w)
{
	struct look l = {.world = w, .prefix = ""};

	control_plane_must(w->bed->plane, "DELETE", PODS "?gracePeriodSeconds=0", NULL);
	if (!await(are_gone, &l, TIMEOUT))
		fail_msg("%zu pods are not deleted", l.all);
	control_plane_await_scheduler(w->bed->plane, NODES, NODES);
}

void sched_print(const char *what, const int of[SCHED_NODES])
{
	struct buf text = BUF_INIT;

	for (size_t i = 0; i < NODES; i++)
		buf_printf(&text, " %2d", of[i]);
	print_message("          %-10s%s\n", what, text.data);
	buf_fini(&text);
}

size_t sched_node(const struct sched_world *w, const char *name)
{
	size_t i = 0;

	while (i < NODES && strcmp(w->names[i], name) != 0)
		i++;
	assert_true(i < NODES);
	return i;
}

/* --- the aggregator -------------------------------------------------------------------------- */

/*
 * The newest view has what was measured last, over the longest window, and the pods that the API
 * has: so it cannot be older than the call.
 */
static bool is_heard(void *ctx)
{
	struct look l = {.world = ctx, .prefix = ""};
	cJSON *nodes = kube_testbed_items(l.world->bed, 0, "/v1/nodes");
	char end[TIMEFMT_LEN];
	const cJSON *node;
	size_t heard = 0, pods = 0;

	timefmt_rfc3339(l.world->usage.end_ns, end);
	cJSON_ArrayForEach (node, nodes) {
		const cJSON *told = json_at(node, "usage.cpuMillicores.latest.end");

		heard += told && strcmp(told->valuestring, end) == 0 &&
			 json_at(node, "usage.cpuMillicores.windows.15m");
		pods += (size_t)json_at(node, "pods")->valueint;
	}
	cJSON_Delete(nodes);
	are_placed(&l);
	return heard == NODES && pods == NODES + l.seen;
}

/*
 * Everything that was measured until now, by an aggregator that has just started, or has heard the
 * rest.
 */
void sched_await_heard(struct sched_world *w)
{
	char *url = mem_printf("tcp://127.0.0.1:%d", w->bed->aggregators[0].ingest_port);

	kube_usage_send_loads(&w->usage, w->loads, NODES, url, w->bed->key_path);
	free(url);
	if (!await(is_heard, w, TIMEOUT))
		fail_msg("what was measured is not shown");
}

void sched_restart_aggregator(struct sched_world *w, const char *const *options)
{
	if (w->bed->aggregators[0].pid)
		kube_testbed_stop_aggregator(w->bed, 0);
	kube_testbed_start_aggregator_with(w->bed, 0, w->bed->plane->admin, options);
	memset(&w->usage, 0, sizeof(w->usage));
	sched_await_heard(w);
}

/* --- reservations ----------------------------------------------------------------------------- */

double sched_metric(const struct sched_world *w, const char *name)
{
	char *url = mem_printf("http://127.0.0.1:%d/metrics", w->bed->aggregators[0].http_port);
	char *line = mem_printf("\n%s ", name);
	struct buf body = BUF_INIT;
	double value = -1;

	if (http_get(url, &body) == 200) {
		const char *at = strstr(body.data, line);

		value = at ? strtod(at + strlen(line), NULL) : -1;
	}
	buf_fini(&body);
	free(line);
	free(url);
	return value;
}

double sched_assumed_on(const struct sched_world *w, const char *name)
{
	cJSON *nodes = kube_testbed_items(w->bed, 0, "/v1/nodes");
	double pods = 0;
	const cJSON *node;

	assert_non_null(nodes);
	cJSON_ArrayForEach (node, nodes) {
		const cJSON *assumed = json_at(node, "assumed.pods");

		if (assumed && (!name || strcmp(json_at(node, "name")->valuestring, name) == 0))
			pods += assumed->valuedouble;
	}
	cJSON_Delete(nodes);
	return pods;
}

bool sched_has_no_reservations(const struct sched_world *w)
{
	return sched_metric(w, "evenkeel_ledger_entries{state=\"asked\"}") == 0 &&
	       sched_metric(w, "evenkeel_ledger_entries{state=\"charged\"}") == 0 &&
	       sched_metric(w, "evenkeel_ledger_entries{state=\"bound\"}") == 0 &&
	       sched_assumed_on(w, NULL) == 0;
}

static bool has_no_reservations(void *ctx)
{
	return sched_has_no_reservations(ctx);
}

/* Well before reservations expire. */
void sched_await_no_reservations(struct sched_world *w)
{
	if (!await(has_no_reservations, w, 20))
		fail_msg("reservations remain of pods that the views show");
}

/* --- the cluster ----------------------------------------------------------------------------- */

static void make_node(struct sched_world *w, size_t i)
{
	char *body = mem_printf(
		"{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/hostname\":\"%s\"}},"
		"\"status\":{\"capacity\":{\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\"},"
		"\"allocatable\":{\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\"},"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
		w->loads[i].node, w->loads[i].node);

	control_plane_must(w->bed->plane, "POST", "/api/v1/nodes", body);
	free(body);
}

/*
 * Of equal requests. Their limits differ, as those of any cluster do, and alike for every kind of
 * use: where all are the same, LimitAware stretches the least difference over its whole scale.
 */
static char *make_resident(struct sched_world *w, size_t i)
{
	size_t limit = 12 + 4 * (i / SCHED_KINDS);
	char *body = mem_printf(
		"{\"metadata\":{\"name\":\"resident-%zu\"},\"spec\":{\"nodeName\":\"%s\","
		"\"containers\":[{\"name\":\"c\",\"image\":\"none\",\"resources\":{"
		"\"requests\":{\"cpu\":\"2\",\"memory\":\"8Gi\"},"
		"\"limits\":{\"cpu\":\"%zu\",\"memory\":\"%zuGi\"}}}]}}",
		i, w->loads[i].node, limit, limit);
	struct buf answer = BUF_INIT;
	cJSON *pod;
	char *uid;

	if (control_plane_send(w->bed->plane, "POST", "/api/v1/namespaces/residents/pods", body,
			       &answer) != 201)
		fail_msg("%s", answer.data);
	pod = cJSON_Parse(answer.data);
	uid = mem_strdup(json_at(pod, "metadata.uid")->valuestring);
	cJSON_Delete(pod);
	buf_fini(&answer);
	free(body);
	return uid;
}

struct sched_world *sched_world_new(void)
{
	struct kube_testbed *bed = kube_testbed_new_bare();
	struct sched_world *w;

	if (!bed)
		return NULL;
	w = mem_zalloc(1, sizeof(*w));
	w->bed = bed;
	control_plane_must(w->bed->plane, "POST", "/api/v1/namespaces",
			   "{\"metadata\":{\"name\":\"residents\"}}");
	for (size_t i = 0; i < NODES; i++) {
		snprintf(w->names[i], sizeof(w->names[i]), "node-%02zu", i);
		w->loads[i].node = w->names[i];
		make_node(w, i);
		w->loads[i].pod_uid = w->uids[i] = make_resident(w, i);
	}
	return w;
}

void sched_world_free(struct sched_world *w, bool failed)
{
	kube_testbed_free(w->bed, failed);
	for (size_t i = 0; i < NODES; i++)
		free(w->uids[i]);
	free(w);
}
