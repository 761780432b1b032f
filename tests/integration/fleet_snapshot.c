/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregator that has its cluster from a file and its measurements from agents: what the two say
 * of a pod meets in one answer, and a file that cannot be read stops the start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/fleet/cluster.h"
#include "tests/fleet/dump.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"

enum { NODES = 20, PODS_PER_NODE = 10, TIMEOUT_S = 60 };

static const struct cluster_config config = {
	.nodes = NODES, .pods_per_node = PODS_PER_NODE, .containers = 1, .seed = 11};

struct scene {
	struct stack *stack;
	struct cluster *cluster;
	char *dump_path;
	cJSON *nodes, *pods;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct error error;

	s->stack = stack_new();
	s->cluster = cluster_new(&config);
	s->dump_path = mem_printf("%s/dump.json", s->stack->folder);
	*state = s;
	return dump_write(s->cluster, s->dump_path, &error);
}

static int teardown(void **state)
{
	struct scene *s = *state;

	cJSON_Delete(s->nodes);
	cJSON_Delete(s->pods);
	free(s->dump_path);
	cluster_free(s->cluster);
	stack_free(s->stack, 0);
	free(s);
	return 0;
}

static bool all_are_measured(void *ctx)
{
	struct scene *s = ctx;
	const cJSON *node;
	int measured = 0;

	cJSON_Delete(s->nodes);
	s->nodes = stack_get(s->stack, 0, "/v1/nodes");
	cJSON_ArrayForEach (node, json_at(s->nodes, "items"))
		measured += json_at(node, "usage.cpuMillicores") != NULL;
	return measured == NODES;
}

static const cJSON *find_pod(const struct scene *s, size_t pod)
{
	char uid[POD_UID_LEN + 1];
	const cJSON *item;

	cluster_pod_uid(s->cluster, pod, 0, uid);
	cJSON_ArrayForEach (item, json_at(s->pods, "items")) {
		const char *is = cJSON_GetStringValue(json_at(item, "uid"));

		if (is && !strcmp(is, uid))
			return item;
	}
	return NULL;
}

static void check_pod(const struct scene *s, size_t pod)
{
	const struct cluster_pod *p = &s->cluster->pods[pod];
	const struct workload *w = cluster_workload(s->cluster, p);
	const cJSON *told = find_pod(s, pod);
	char text[CLUSTER_NAME_MAX];

	assert_non_null(told);
	cluster_pod_name(s->cluster, pod, text);
	assert_string_equal(cJSON_GetStringValue(json_at(told, "name")), text);
	cluster_namespace_name(w->namespace, text);
	assert_string_equal(cJSON_GetStringValue(json_at(told, "namespace")), text);
	if (w->cpu_milli)
		assert_true(cJSON_GetNumberValue(json_at(told, "requests.cpuMillicores")) ==
			    (double)w->cpu_milli);
	assert_int_equal(json_at(told, "usage.cpuMillicores") != NULL, p->node >= 0);
}

static void test_file_and_agents_meet(void **state)
{
	struct scene *s = *state;
	const char *options[] = {"--nodes",	 "20", "--pods-per-node", "10", "--seed", "11",
				 "--containers", "1",  "--interval",	  "1s", NULL};
	pid_t fleet;

	s->stack->aggregators[0].snapshot_path = s->dump_path;
	stack_start_aggregator(s->stack, 0);
	fleet = fleet_start(s->stack, options);
	assert_true(await(all_are_measured, s, TIMEOUT_S));
	cJSON_Delete(fleet_stop(s->stack, fleet));
	s->pods = stack_get(s->stack, 0, "/v1/pods?limit=5000");
	for (size_t i = 0; i < s->cluster->pod_count; i++)
		check_pod(s, i);
}

/* Runs an aggregator that must not start; what it says. */
static void check_refused(const char *path, const char *more, int status, const char *says)
{
	char *program = mem_strdup(program_path("evenkeel-aggregator"));
	char *argv[] = {program,
			(char *)"--listen",
			(char *)"127.0.0.1:0",
			(char *)"--ingest",
			(char *)"ipc:///nowhere/at/all",
			(char *)"--snapshot",
			(char *)path,
			(char *)more,
			NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;

	assert_int_equal(process_run(argv, &out, &err), status);
	assert_non_null(err.data);
	if (!strstr(err.data, says))
		fail_msg("\"%s\" does not say \"%s\"", err.data, says);
	buf_fini(&out);
	buf_fini(&err);
	free(program);
}

static void test_what_cannot_be_read_stops_the_start(void **state)
{
	const struct scene *s = *state;
	char *ipc = mem_printf("--ingest=ipc://%s/ingest", s->stack->folder);

	check_refused("/nowhere/at/all.json", ipc, 1, "/nowhere/at/all.json");
	/* The key is none. */
	check_refused(s->stack->key_path, ipc, 1, s->stack->key_path);
	check_refused(s->dump_path, "--standalone", 2, "--snapshot");
	free(ipc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_and_agents_meet),
		cmocka_unit_test(test_what_cannot_be_read_stops_the_start),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
