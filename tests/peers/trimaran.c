/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scores of Trimaran's plugins beside POST /v1/scores in variant upstream, on a real control plane:
 *
 *     kube-scheduler -v=10 --> /watcher of the aggregator <-- frames of 12 nodes
 *           |                        |
 *           +--------> API <---------+
 *
 * The scheduler logs the score of each plugin for each pod and node. Both sides must see the same:
 *
 *   measurements  Frames end before the first pod, and every plugin has read /watcher since, which
 *                 it does every 30 s. In variant upstream /watcher does not widen deviations with
 *                 the age, as variant upstream of scores does not. /watcher rounds to 6 decimals:
 *                 so a score that is half way between two numbers may differ by one.
 *   recent pods   TargetLoadPacking adds pods that it saw bound in the last minute before the end of
 *                 the window, or later. At its start it takes all pods for recent: so the last
 *                 frames end a minute after that. It forgets pods after 5 minutes, when the pods
 *                 are long made.
 *   placed pods   A pod is made when the aggregator shows the pod before it on its node, and ours is
 *                 asked right before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_version.h"
#include "tests/peers/peers.h"
#include "tests/process.h"
#include "tests/sched_world.h"
#include "tests/stack.h"

enum { PODS = 200, RECENT_S = 60, FETCH_S = 45, UNKNOWN = -1 };

static const char *const plugins[] = {"TargetLoadPacking", "LoadVariationRiskBalancing",
				      "LowRiskOverCommitment"};
enum { PLUGINS = sizeof(plugins) / sizeof(plugins[0]) };

struct comparison {
	const char *scheduler;
	char *programs; /* folder: links to a control plane's, and the peer as kube-scheduler */
	struct sched_world *world;
	double ours[PODS][PLUGINS][SCHED_NODES];
	size_t equal[PLUGINS], near[PLUGINS], different[PLUGINS];
	double seconds;
};

/* --- the scheduler --------------------------------------------------------------------------- */

static void link_program(const struct comparison *c, const char *from, const char *name)
{
	char *target = mem_printf("%s/%s", from, name),
	     *path = mem_printf("%s/%s", c->programs, name);

	if (symlink(target, path)) {
		perror(path);
		abort();
	}
	free(target);
	free(path);
}

/* The peer stands where the control plane expects its scheduler. */
static void make_programs(struct comparison *c)
{
	static const char *const names[] = {"etcd", "kube-apiserver", "kubectl",
					    "kube-controller-manager"};
	char *from = kube_version_programs(), *path, *peer = realpath(c->scheduler, NULL);
	FILE *f;

	c->programs = folder_make();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		link_program(c, from, names[i]);
	path = mem_printf("%s/kube-scheduler", c->programs);
	f = fopen(path, "we");
	if (!f || !peer || fprintf(f, "#!/bin/sh\nexec '%s' -v=10 \"$@\"\n", peer) < 0 ||
	    fclose(f) || chmod(path, 0700)) {
		perror(peer ? path : c->scheduler);
		abort();
	}
	setenv("EVENKEEL_KUBE", c->programs, 1);
	free(peer);
	free(path);
	free(from);
}

static void start_scheduler(struct comparison *c)
{
	struct buf text = BUF_INIT;

	buf_add_str(&text, "profiles:\n"
			   "- schedulerName: default-scheduler\n"
			   "  plugins:\n"
			   "    score:\n"
			   "      disabled: [{name: \"*\"}]\n"
			   "      enabled:\n");
	for (size_t i = 0; i < PLUGINS; i++)
		buf_printf(&text, "      - {name: %s, weight: 1}\n", plugins[i]);
	buf_add_str(&text, "  pluginConfig:\n");
	for (size_t i = 0; i < PLUGINS; i++)
		buf_printf(&text,
			   "  - name: %s\n"
			   "    args: {apiVersion: %s, kind: %sArgs, watcherAddress: "
			   "\"http://127.0.0.1:%d\"}\n",
			   plugins[i], c->world->bed->plane->version->scheduler_config, plugins[i],
			   c->world->bed->aggregators[0].http_port);
	control_plane_start_scheduler(c->world->bed->plane, text.data);
	control_plane_await_scheduler(c->world->bed->plane, SCHED_NODES, SCHED_NODES);
	buf_fini(&text);
}

/* Requests that were answered; asking is one of them, seen the next time. */
struct fetches {
	const struct sched_world *world;
	double before;
	int asked;
};

static bool have_fetched(void *ctx)
{
	struct fetches *f = ctx;
	double answered = sched_metric(f->world, "evenkeel_http_requests_total{code=\"2xx\"}");

	return answered - f->before - ++f->asked >= PLUGINS;
}

/* Measurements that end a minute after the scheduler began, and are with every plugin. */
static void settle(struct comparison *c, int64_t started_ns)
{
	int64_t until_ns = started_ns + (RECENT_S + 1) * NS_PER_SEC, now_ns;
	struct fetches f = {.world = c->world};

	while ((now_ns = clock_mono_ns()) < until_ns)
		poll(NULL, 0, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
	sched_await_heard(c->world);
	f.before = sched_metric(c->world, "evenkeel_http_requests_total{code=\"2xx\"}");
	if (!await(have_fetched, &f, FETCH_S))
		fail_msg("the scheduler does not read /watcher");
}

/* --- pods ------------------------------------------------------------------------------------ */

/* With limits, with requests alone, and with neither. */
static char *resources_of(int i)
{
	int cpu = 50 + i * 37 % 450, mem = 64 + i * 101 % 900;

	switch (i % 4) {
	case 0:
		return mem_strdup("{}");
	case 1:
		return mem_printf("{\"requests\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"}}", cpu, mem);
	case 2:
		return mem_printf("{\"requests\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"},"
				  "\"limits\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"}}",
				  cpu, mem, 2 * cpu, 2 * mem);
	default:
		return mem_printf("{\"limits\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"}}", cpu, mem);
	}
}

static int plugin_index(const char *name)
{
	for (int i = 0; i < PLUGINS; i++)
		if (strcmp(plugins[i], name) == 0)
			return i;
	return UNKNOWN;
}

static void ask_ours(struct comparison *c, int i, const char *pod)
{
	char *body = mem_printf("{\"pod\":%s,\"variant\":\"upstream\",\"plugins\":[\"%s\",\"%s\","
				"\"%s\"]}",
				pod, plugins[0], plugins[1], plugins[2]);
	const cJSON *item, *score;
	cJSON *answer = NULL;

	assert_int_equal(kube_testbed_post(c->world->bed, 0, "/v1/scores", body, &answer), 200);
	cJSON_ArrayForEach (item, json_at(answer, "items")) {
		size_t node = sched_node(c->world, json_at(item, "node")->valuestring);

		cJSON_ArrayForEach (score, json_at(item, "plugins"))
			c->ours[i][plugin_index(json_at(score, "name")->valuestring)][node] =
				json_at(score, "score")->valuedouble;
	}
	cJSON_Delete(answer);
	free(body);
}

struct shown {
	struct sched_world *world;
	int pods;
};

static bool is_shown(void *ctx)
{
	const struct shown *s = ctx;
	cJSON *nodes = kube_testbed_items(s->world->bed, 0, "/v1/nodes");
	const cJSON *node;
	int pods = 0;

	cJSON_ArrayForEach (node, nodes)
		pods += json_at(node, "pods")->valueint;
	cJSON_Delete(nodes);
	return pods == SCHED_NODES + s->pods;
}

static void make_pods(struct comparison *c)
{
	int64_t start_ns = clock_mono_ns();

	for (int i = 0; i < PODS; i++) {
		struct shown shown = {c->world, i + 1};
		char *name = mem_printf("burst-%03d", i), *resources = resources_of(i);
		char *text = sched_pod_text(name, "", resources);

		ask_ours(c, i, text);
		sched_make_pod(c->world, name, "", resources);
		if (!await(is_shown, &shown, SCHED_TIMEOUT))
			fail_msg("%s is not shown on a node", name);
		free(text);
		free(resources);
		free(name);
	}
	c->seconds = (double)(clock_mono_ns() - start_ns) / NS_PER_SEC;
}

/* --- what the scheduler logged --------------------------------------------------------------- */

static void count(struct comparison *c, const char *line)
{
	char plugin[64], node[64];
	int pod, score, p;
	double apart;

	if (sscanf(line, "pod=\"default/burst-%d\" plugin=\"%63[^\"]\" node=\"%63[^\"]\" score=%d",
		   &pod, plugin, node, &score) != 4)
		return;
	p = plugin_index(plugin);
	if (p == UNKNOWN || pod < 0 || pod >= PODS)
		return;
	apart = fabs(c->ours[pod][p][sched_node(c->world, node)] - score);
	c->equal[p] += apart == 0;
	c->near[p] += apart > 0 && apart <= 1;
	c->different[p] += apart > 1;
	if (apart > 0)
		printf("burst-%03d %s %s: theirs %d, ours %g\n", pod, plugin, node, score,
		       c->ours[pod][p][sched_node(c->world, node)]);
}

static void read_log(struct comparison *c)
{
	static const char said[] = "\"Plugin scored node for pod\" ";
	char *path = mem_printf("%s/scheduler.log", c->world->bed->plane->folder), *line = NULL;
	FILE *f = fopen(path, "re");
	size_t room = 0;

	assert_non_null(f);
	while (getline(&line, &room, f) > 0) {
		const char *at = strstr(line, said);

		if (at)
			count(c, at + strlen(said));
	}
	free(line);
	fclose(f);
	free(path);
}

static void test_scores(void **state)
{
	static const char *const options[] = {"--watcher-variant", "upstream", NULL};
	struct comparison *c = *state;
	int64_t started_ns;

	for (size_t i = 0; i < SCHED_NODES; i++)
		sched_use(c->world, i, 400 + 900 * (double)i, 200 + 700 * (double)(i % 4));
	sched_restart_aggregator(c->world, options);
	start_scheduler(c);
	started_ns = clock_mono_ns();
	settle(c, started_ns);
	make_pods(c);
	control_plane_stop_scheduler(c->world->bed->plane);
	read_log(c);
}

static void print_rows(const struct comparison *c)
{
	for (size_t i = 0; i < PLUGINS; i++) {
		size_t all = c->equal[i] + c->near[i] + c->different[i];
		char *what = mem_printf("%s: scores logged, equal to ours", plugins[i]);

		peers_row(what, "", (double)all, (double)c->equal[i]);
		printf("%58s off by one %zu, different %zu, not logged %zu\n", "", c->near[i],
		       c->different[i], (size_t)PODS * SCHED_NODES - all);
		free(what);
	}
	printf("%d pods on %d nodes within %.0f s\n", PODS, SCHED_NODES, c->seconds);
}

int peers_trimaran(const char *scheduler)
{
	struct comparison *c = mem_zalloc(1, sizeof(*c));
	const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_scores, c)};
	int failed = 0;

	c->scheduler = scheduler;
	make_programs(c);
	c->world = sched_world_new();
	if (c->world) {
		failed = cmocka_run_group_tests(tests, NULL, NULL);
		print_rows(c);
		for (size_t i = 0; i < PLUGINS; i++)
			failed |= c->different[i] || !c->equal[i];
		sched_world_free(c->world, failed != 0);
	}
	folder_remove(c->programs);
	free(c);
	return failed != 0;
}
