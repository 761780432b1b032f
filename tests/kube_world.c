/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workloads are in tests/kube/workloads.yaml, as a user would write them, but for those whose
 * API depends on the version of the cluster. Nodes come in four shapes, of which each has its way
 * of writing amounts, and differ in zone; some are not ready, cordoned or tainted. What a kubelet
 * would report of pods is written to their status.
 */
#include "tests/kube_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

/* --- nodes ----------------------------------------------------------------------------------- */

#define SHAPE(capacity, allocatable) "\"capacity\":{" capacity "},\"allocatable\":{" allocatable "}"

static const char *const shapes[] = {
	SHAPE("\"cpu\":\"4\",\"memory\":\"16Gi\",\"pods\":\"110\",\"ephemeral-storage\":\"100Gi\"",
	      "\"cpu\":\"3920m\",\"memory\":\"14Gi\",\"pods\":\"110\",\"ephemeral-storage\":"
	      "\"90Gi\""),
	SHAPE("\"cpu\":\"8\",\"memory\":\"32617216Ki\",\"pods\":\"110\",\"ephemeral-storage\":"
	      "\"100Gi\"",
	      "\"cpu\":\"7.91\",\"memory\":\"31592000Ki\",\"pods\":\"100\",\"ephemeral-storage\":"
	      "\"1e11\""),
	SHAPE("\"cpu\":\"2\",\"memory\":\"8G\",\"pods\":\"40\"",
	      "\"cpu\":\"1930m\",\"memory\":\"7500M\",\"pods\":\"40\""),
	SHAPE("\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\",\"example.com/gpu\":\"2\"",
	      "\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\",\"example.com/gpu\":\"2\""),
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

void kube_world_make_node(struct control_plane *c, size_t i)
{
	const char *ready = i % 25 == 3 ? "False" : i % 25 == 4 ? "Unknown" : "True";
	const char *spec = i % 20 == 7	 ? "\"unschedulable\":true"
			   : i % 20 == 9 ? "\"taints\":[{\"key\":\"dedicated\",\"value\":\"x\","
					   "\"effect\":\"NoSchedule\"}]"
					 : "";
	char *body = mem_printf("{\"metadata\":{\"name\":\"node-%03zu\",\"labels\":{"
				"\"kubernetes.io/hostname\":\"node-%03zu\",\"zone\":\"%c\"}},"
				"\"spec\":{%s},\"status\":{%s,\"conditions\":["
				"{\"type\":\"MemoryPressure\",\"status\":\"False\"},"
				"{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
				i, i, "abc"[i % 3], spec, shapes[i % SHAPES], ready);

	control_plane_must(c, "POST", "/api/v1/nodes", body);
	free(body);
}

/* --- pods ------------------------------------------------------------------------------------ */

static void set_phase(struct control_plane *c, const char *namespace, const char *name,
		      const char *phase)
{
	char *path = mem_printf("/api/v1/namespaces/%s/pods/%s/status", namespace, name);
	char *body = mem_printf(
		"{\"status\":{\"phase\":\"%s\",\"conditions\":[{\"type\":\"PodScheduled\","
		"\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"True\"}]}}",
		phase);

	control_plane_must(c, "PATCH", path, body);
	free(path);
	free(body);
}

void kube_world_run_pods(struct control_plane *c)
{
	cJSON *list = control_plane_kubectl_get(c, "pods");
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		const char *name = text_at(pod, "metadata.name");

		if (*text_at(pod, "spec.nodeName") &&
		    strcmp(text_at(pod, "status.phase"), "Pending") == 0)
			set_phase(c, text_at(pod, "metadata.namespace"), name,
				  strcmp(name, "done") == 0 ? "Succeeded" : "Running");
	}
	cJSON_Delete(list);
}

static cJSON *must_get(struct control_plane *c, const char *path)
{
	struct buf answer = BUF_INIT;
	cJSON *json = NULL;

	if (control_plane_send(c, "GET", path, NULL, &answer) == 200)
		json = cJSON_Parse(answer.data);
	if (!json)
		fail_msg("GET %s: %s", path, answer.data ? answer.data : "no answer");
	buf_fini(&answer);
	return json;
}

void kube_world_end_pod(struct control_plane *c, const char *namespace, const char *selector)
{
	char *path = mem_printf("/api/v1/namespaces/%s/pods?labelSelector=%s"
				"&fieldSelector=status.phase=Running&limit=1",
				namespace, selector);
	cJSON *list = must_get(c, path);
	const cJSON *items = json_at(list, "items");

	assert_non_null(items->child);
	set_phase(c, namespace, text_at(items->child, "metadata.name"), "Succeeded");
	cJSON_Delete(list);
	free(path);
}

void kube_world_empty_node(struct control_plane *c, size_t i)
{
	static const char *const namespaces[] = {"shop", "batch", "kube-system"};

	for (size_t n = 0; n < sizeof(namespaces) / sizeof(namespaces[0]); n++) {
		char *path = mem_printf("/api/v1/namespaces/%s/pods?fieldSelector=spec.nodeName"
					"=node-%03zu",
					namespaces[n], i);

		control_plane_must(c, "DELETE", path, NULL);
		free(path);
	}
}

#define BATCH_CONTAINER                                                                            \
	"{\"name\":\"night\",\"image\":\"none\",\"resources\":{"                                   \
	"\"requests\":{\"cpu\":\"100m\"},\"limits\":{\"memory\":\"200Mi\"}}}"
#define BATCH_JOB                                                                                  \
	"{\"parallelism\":5,\"template\":{\"metadata\":{\"labels\":{\"app\":\"night\"}},"          \
	"\"spec\":{\"terminationGracePeriodSeconds\":0,\"restartPolicy\":\"Never\","               \
	"\"containers\":[" BATCH_CONTAINER "]}}}"

/* A cron job, and the job that its controller would make of it at three o'clock. */
static void make_cron_job(struct control_plane *c)
{
	const char *version = c->version->cron_jobs;
	char *path = mem_printf("/apis/%s/namespaces/batch/cronjobs", version),
	     *made = mem_printf("%s/night", path), *body;
	cJSON *cron;

	control_plane_must(c, "POST", path,
			   "{\"metadata\":{\"name\":\"night\"},\"spec\":{\"suspend\":true,"
			   "\"schedule\":\"0 3 * * *\",\"jobTemplate\":{\"spec\":" BATCH_JOB "}}}");
	cron = must_get(c, made);
	body = mem_printf("{\"metadata\":{\"name\":\"night-1\",\"ownerReferences\":[{"
			  "\"apiVersion\":\"%s\",\"kind\":\"CronJob\",\"name\":\"night\","
			  "\"uid\":\"%s\",\"controller\":true}]},\"spec\":" BATCH_JOB "}",
			  version, text_at(cron, "metadata.uid"));
	control_plane_must(c, "POST", "/apis/batch/v1/namespaces/batch/jobs", body);
	cJSON_Delete(cron);
	free(path);
	free(made);
	free(body);
}

/* The controllers keep its status by the pods of web. */
static void make_budget(struct control_plane *c)
{
	char *path =
		mem_printf("/apis/%s/namespaces/shop/poddisruptionbudgets", c->version->budgets);

	control_plane_must(c, "POST", path,
			   "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"minAvailable\":50,"
			   "\"selector\":{\"matchLabels\":{\"app\":\"web\"}}}}");
	free(path);
}

void kube_world_make(struct control_plane *c)
{
	for (size_t i = 0; i < WORLD_NODES; i++)
		kube_world_make_node(c, i);
	control_plane_create(c, "tests/kube/workloads.yaml");
	make_cron_job(c);
	make_budget(c);
}

/* --- quotas ---------------------------------------------------------------------------------- */

#define QUOTAS "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/%s/elasticquotas"

struct quota {
	struct control_plane *plane;
	char *path, *body;
};

/* Refused until the new resource is served. */
static bool is_made(void *ctx)
{
	struct quota *q = ctx;

	return control_plane_send(q->plane, "POST", q->path, q->body, NULL) == 201;
}

void kube_world_make_quotas(struct control_plane *c)
{
	static const char *const namespaces[] = {"shop", "batch"};

	control_plane_create(c, "tests/kube/elasticquota.yaml");
	for (size_t i = 0; i < 2; i++) {
		struct quota q = {
			c, mem_printf(QUOTAS, namespaces[i]),
			mem_printf("{\"apiVersion\":\"scheduling.x-k8s.io/v1alpha1\","
				   "\"kind\":\"ElasticQuota\",\"metadata\":{\"name\":\"quota\"},"
				   "\"spec\":{\"min\":{\"cpu\":%zu,\"memory\":\"10Gi\"},"
				   "\"max\":{\"cpu\":\"40\",\"memory\":\"80Gi\"}}}",
				   10 * (i + 1))};

		if (!await(is_made, &q, 60))
			fail_msg("no quota can be made in %s", namespaces[i]);
		free(q.path);
		free(q.body);
	}
}
