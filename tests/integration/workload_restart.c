/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a workload's pods were measured to use outlives them, the aggregator and its agents: a pod
 * of a workload that no longer runs is expected to use the same after a restart, and after a kill.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/file.h"
#include "shared/mem.h"
#include "tests/fleet/cluster.h"
#include "tests/fleet/dump.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"

enum { TIMEOUT_S = 60, OBJECTS_MAX = 1 << 20 };

static const struct cluster_config config = {
	.nodes = 1, .pods_per_node = 6, .containers = 1, .seed = 11};

struct scene {
	struct stack *stack;
	char *objects, *objects_without_pods; /* paths */
	char *question; /* scores for a pod of a ReplicaSet */
	cJSON *expected; /* of the newest answer */
};

static void write_file(const char *path, const cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	free(text);
}

static bool is_of_replica_set(const cJSON *pod)
{
	const cJSON *owner = cJSON_GetArrayItem(json_at(pod, "metadata.ownerReferences"), 0);
	const char *kind = cJSON_GetStringValue(json_at(owner, "kind"));

	return kind && strcmp(kind, "ReplicaSet") == 0;
}

/* The same ReplicaSet, made anew. */
static char *question_about(cJSON *pod)
{
	cJSON *body = cJSON_CreateObject(), *owner;
	char *text;

	owner = cJSON_GetArrayItem(json_at(pod, "metadata.ownerReferences"), 0);
	cJSON_ReplaceItemInObject(owner, "uid", cJSON_CreateString("of-tomorrow"));
	cJSON_DeleteItemFromObject(cJSON_GetObjectItem(pod, "spec"), "nodeName");
	cJSON_AddItemToObject(body, "pod", pod);
	text = cJSON_PrintUnformatted(body);
	cJSON_Delete(body);
	return text;
}

static void split_objects(struct scene *s)
{
	struct buf text = BUF_INIT;
	struct error error;
	cJSON *list, *items, *item, *next;

	assert_int_equal(file_read(s->objects, OBJECTS_MAX, &text, &error), 0);
	list = cJSON_ParseWithLength(text.data, text.len);
	items = cJSON_GetObjectItem(list, "items");
	for (item = items->child; item; item = next) {
		const char *kind = cJSON_GetStringValue(json_at(item, "kind"));

		next = item->next;
		if (strcmp(kind, "Pod") != 0)
			continue;
		cJSON_DetachItemViaPointer(items, item);
		if (!s->question && is_of_replica_set(item))
			s->question = question_about(item);
		else
			cJSON_Delete(item);
	}
	write_file(s->objects_without_pods, list);
	cJSON_Delete(list);
	buf_fini(&text);
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct cluster *cluster = cluster_new(&config);
	struct error error;
	char *dir;

	s->stack = stack_new();
	s->objects = mem_printf("%s/objects.json", s->stack->folder);
	s->objects_without_pods = mem_printf("%s/no-pods.json", s->stack->folder);
	dir = mem_printf("%s/state", s->stack->folder);
	setenv("EVENKEEL_STATE_DIR", dir, 1);
	free(dir);
	assert_int_equal(dump_write(cluster, s->objects, &error), 0);
	cluster_free(cluster);
	split_objects(s);
	assert_non_null(s->question);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	unsetenv("EVENKEEL_STATE_DIR");
	cJSON_Delete(s->expected);
	free(s->question);
	free(s->objects);
	free(s->objects_without_pods);
	stack_free(s->stack, 0);
	free(s);
	return 0;
}

static const char *ask(struct scene *s)
{
	char *url = mem_printf("http://127.0.0.1:%d/v1/scores", s->stack->aggregators[0].http_port);
	struct buf body = BUF_INIT;
	const char *source = NULL;

	cJSON_Delete(s->expected);
	s->expected = NULL;
	if (http_post(url, s->question, &body) == 200) {
		cJSON *answer = cJSON_ParseWithLength(body.data, body.len);

		s->expected = cJSON_DetachItemFromObject(answer, "expected");
		source = cJSON_GetStringValue(json_at(s->expected, "source"));
		cJSON_Delete(answer);
	}
	buf_fini(&body);
	free(url);
	return source ? source : "";
}

static bool is_known(void *ctx)
{
	return strcmp(ask(ctx), "workload") == 0;
}

static double cpu_milli(const struct scene *s)
{
	return cJSON_GetNumberValue(json_at(s->expected, "cpuMillicores"));
}

static void test_expected_use_survives(void **state)
{
	static const char *const options[] = {"--nodes",    "1",  "--pods-per-node", "6",
					      "--seed",	    "11", "--containers",    "1",
					      "--interval", "1s", "--history",	     "5m",
					      NULL};
	struct scene *s = *state;
	struct stack_aggregator *a = &s->stack->aggregators[0];
	double before;
	pid_t fleet;

	a->snapshot_path = s->objects;
	stack_start_aggregator(s->stack, 0);
	assert_string_equal(ask(s), "requests");
	fleet = fleet_start(s->stack, options);
	assert_true(await(is_known, s, TIMEOUT_S));
	before = cpu_milli(s);
	cJSON_Delete(fleet_stop(s->stack, fleet));
	assert_int_equal(process_stop(a->pid, SIGTERM), 0);
	a->snapshot_path = s->objects_without_pods;
	for (int round = 0; round < 2; round++) {
		stack_start_aggregator(s->stack, 0);
		assert_string_equal(ask(s), "workload");
		/* The agent may have told more since it was noted, of the same five minutes. */
		assert_true(fabs(cpu_milli(s) - before) <= before / 10);
		stack_kill_aggregator(s->stack, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expected_use_survives),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
