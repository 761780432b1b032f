/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects are made as the stories write them: CPU in millicores, all else in what it is counted in.
 * There is no kubelet, so the test says what runs, and that who had a grace is gone.
 */
#include "tests/kube_quota_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/kube_direct.h"
#include "tests/process.h"
#include "tests/stack.h"

/* For what is to come within a second, on a machine that may be busy with other tests. */
#define SECONDS 60

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

static double number_at(const cJSON *json, const char *path)
{
	const cJSON *number = json_at(json, path);

	return cJSON_IsNumber(number) ? number->valuedouble : 0;
}

cJSON *kube_quota_world_get(struct kube_testbed *bed, const char *path)
{
	struct buf answer = BUF_INIT;
	cJSON *json = NULL;

	if (control_plane_send(bed->plane, "GET", path, NULL, &answer) == 200)
		json = cJSON_Parse(answer.data);
	buf_fini(&answer);
	return json;
}

void kube_quota_world_start_scheduler(struct kube_testbed *bed, const char *profiles)
{
	char *tls = bed->behind
			    ? mem_printf("  enableHTTPS: true\n"
					 "  tlsConfig:\n"
					 "    serverName: %s\n"
					 "    caFile: %s/ca.crt\n"
					 "    certFile: %s/client.crt\n"
					 "    keyFile: %s/client.key\n",
					 KUBE_DIRECT_NAME, bed->folder, bed->folder, bed->folder)
			    : mem_strdup("");
	char *config =
		mem_printf("%sextenders:\n"
			   "- urlPrefix: \"http%s://127.0.0.1:%d/extender\"\n"
			   "  filterVerb: filter\n"
			   "  preemptVerb: preempt\n"
			   "  nodeCacheCapable: true\n"
			   "  httpTimeout: 10s\n"
			   "%s",
			   profiles, bed->behind ? "s" : "", bed->aggregators[0].http_port, tls);

	control_plane_start_scheduler(bed->plane, config);
	free(config);
	free(tls);
}

/* --- making the cluster of a story ----------------------------------------------------------- */

cJSON *kube_quota_world_parse(const char *text)
{
	char *copy = mem_strdup(text);
	cJSON *json;

	for (char *at = copy; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	json = cJSON_Parse(copy);
	free(copy);
	assert_non_null(json);
	return json;
}

/* CPU of the stories is in millicores, all else in what it is counted in. */
static void write_amounts(struct buf *b, const cJSON *amounts)
{
	const cJSON *a;

	buf_add_char(b, '{');
	cJSON_ArrayForEach (a, amounts) {
		buf_printf(b, "%s\"%s\":\"%.0f%s\"", a != amounts->child ? "," : "", a->string,
			   a->valuedouble, strcmp(a->string, "cpu") == 0 ? "m" : "");
	}
	buf_add_char(b, '}');
}

struct posting {
	struct kube_testbed *bed;
	const char *path, *body;
};

/* An API server may need a moment to know the PriorityClass that it was given just before. */
static bool is_posted(void *ctx)
{
	struct posting *p = ctx;
	struct buf answer = BUF_INIT;
	long status = control_plane_send(p->bed->plane, "POST", p->path, p->body, &answer);

	if (status != 201 && !(status == 403 && strstr(answer.data, "no PriorityClass")))
		fail_msg("POST %s: %ld: %s", p->path, status, answer.data);
	buf_fini(&answer);
	return status == 201;
}

static void post(struct kube_testbed *bed, const char *path, struct buf *body)
{
	struct posting p = {bed, path, body->data};

	if (!await(is_posted, &p, SECONDS))
		fail_msg("POST %s: its PriorityClass is not known", path);
	buf_fini(body);
}

static void make_node(struct kube_testbed *bed, const cJSON *node)
{
	struct buf b = BUF_INIT;

	buf_printf(&b, "{\"metadata\":{\"name\":\"%s\"},\"status\":{\"allocatable\":",
		   text_at(node, "name"));
	write_amounts(&b, json_at(node, "allocatable"));
	buf_add_str(&b, ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
	post(bed, "/api/v1/nodes", &b);
}

/* It may be there from another story; what can be wrong with that, the next request tells. */
static void make_namespace(struct kube_testbed *bed, const char *name)
{
	char *body = mem_printf("{\"metadata\":{\"name\":\"%s\"}}", name);

	control_plane_send(bed->plane, "POST", "/api/v1/namespaces", body, NULL);
	free(body);
}

#define QUOTA_GROUP "/apis/scheduling.x-k8s.io/v1alpha1"

static void make_quota(struct kube_testbed *bed, const cJSON *quota)
{
	char *path =
		mem_printf(QUOTA_GROUP "/namespaces/%s/elasticquotas", text_at(quota, "namespace"));
	struct buf b = BUF_INIT;

	make_namespace(bed, text_at(quota, "namespace"));
	buf_add_str(&b, "{\"apiVersion\":\"scheduling.x-k8s.io/v1alpha1\",\"kind\":"
			"\"ElasticQuota\",\"metadata\":{\"name\":\"quota\"},\"spec\":{\"min\":");
	write_amounts(&b, json_at(quota, "min"));
	buf_add_str(&b, ",\"max\":");
	write_amounts(&b, json_at(quota, "max"));
	buf_add_str(&b, "}}");
	post(bed, path, &b);
	free(path);
}

static void write_priority(struct kube_testbed *bed, struct buf *b, const cJSON *pod)
{
	double priority = number_at(pod, "priority");
	char *body;

	if (priority == 0)
		return;
	body = mem_printf("{\"metadata\":{\"name\":\"p%.0f\"},\"value\":%.0f}", priority, priority);
	control_plane_send(bed->plane, "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body,
			   NULL);
	free(body);
	buf_printf(b, "\"priorityClassName\":\"p%.0f\",", priority);
}

char *kube_quota_world_pod_path(const cJSON *pod, const char *below)
{
	return mem_printf("/api/v1/namespaces/%s/pods/%s%s", text_at(pod, "namespace"),
			  text_at(pod, "pod"), below);
}

/* What a kubelet would say; the times of starts are those of the story, in seconds. */
void kube_quota_world_run_pod(struct kube_testbed *bed, const cJSON *pod)
{
	char *path = kube_quota_world_pod_path(pod, "/status");
	char *body = mem_printf("{\"status\":{\"phase\":\"Running\",\"startTime\":"
				"\"2026-01-01T00:00:%02.0fZ\",\"conditions\":[{\"type\":\"Ready\","
				"\"status\":\"True\"},{\"type\":\"PodScheduled\",\"status\":"
				"\"True\"}]}}",
				number_at(pod, "start"));

	control_plane_must(bed->plane, "PATCH", path, body);
	free(path);
	free(body);
}

void kube_quota_world_make_pod(struct kube_testbed *bed, const cJSON *pod)
{
	char *path = mem_printf("/api/v1/namespaces/%s/pods", text_at(pod, "namespace"));
	const char *node = text_at(pod, "node");
	struct buf b = BUF_INIT;

	make_namespace(bed, text_at(pod, "namespace"));
	buf_printf(&b, "{\"metadata\":{\"name\":\"%s\"},\"spec\":{", text_at(pod, "pod"));
	if (*node)
		buf_printf(&b, "\"nodeName\":\"%s\",", node);
	write_priority(bed, &b, pod);
	buf_printf(&b,
		   "\"terminationGracePeriodSeconds\":%.0f,\"containers\":[{\"name\":\"c\","
		   "\"image\":\"none\",\"resources\":{\"requests\":",
		   number_at(pod, "grace"));
	write_amounts(&b, json_at(pod, "request"));
	buf_add_str(&b, ",\"limits\":");
	write_amounts(&b, json_at(pod, "request"));
	buf_add_str(&b, "}}]}}");
	post(bed, path, &b);
	free(path);
	if (*node)
		kube_quota_world_run_pod(bed, pod);
}

/* Frees the path. */
void kube_quota_world_delete(struct kube_testbed *bed, char *path)
{
	control_plane_must(bed->plane, "DELETE", path, NULL);
	free(path);
}

/* --- what becomes of a pod ------------------------------------------------------------------- */

static bool look(struct kube_quota_pod *p)
{
	char *path = mem_printf("/api/v1/namespaces/%s/pods/%s", p->namespace, p->name);

	cJSON_Delete(p->seen);
	p->seen = kube_quota_world_get(p->bed, path);
	free(path);
	return p->seen != NULL;
}

bool kube_quota_pod_is_bound(void *pod)
{
	struct kube_quota_pod *p = pod;

	return look(p) && json_at(p->seen, "spec.nodeName");
}

const char *kube_quota_pod_refusal(const struct kube_quota_pod *p)
{
	const cJSON *condition;

	cJSON_ArrayForEach (condition, json_at(p->seen, "status.conditions")) {
		if (strcmp(text_at(condition, "type"), "PodScheduled") == 0)
			return cJSON_GetStringValue(json_at(condition, "message"));
	}
	return NULL;
}

bool kube_quota_pod_is_refused(void *pod)
{
	return look(pod) && kube_quota_pod_refusal(pod);
}

/* --- what the cluster is like ---------------------------------------------------------------- */

/* All pods of the API; only the stories make any. */
cJSON *kube_quota_world_pods(struct kube_testbed *bed)
{
	cJSON *list = kube_quota_world_get(bed, "/api/v1/pods");

	if (!list)
		fail_msg("the API does not list pods");
	return list;
}

static size_t count(const cJSON *list)
{
	return (size_t)cJSON_GetArraySize(json_at(list, "items"));
}

static size_t count_bound(const cJSON *list)
{
	const cJSON *pod;
	size_t bound = 0;

	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		bound += *text_at(pod, "spec.nodeName") != '\0';
	}
	return bound;
}

/*
 * The aggregator's view shows the nodes and pods of the API, and tells the quotas: it is published
 * once a second.
 */
static bool is_seen(void *ctx)
{
	struct kube_testbed *bed = ctx;
	cJSON *list = kube_quota_world_pods(bed),
	      *nodes = kube_quota_world_get(bed, "/api/v1/nodes"),
	      *quotas = kube_quota_world_get(bed, QUOTA_GROUP "/elasticquotas");
	cJSON *seen_pods = kube_testbed_get(bed, 0, "/v1/pods"),
	      *seen_nodes = kube_testbed_get(bed, 0, "/v1/nodes"),
	      *seen_quotas = kube_testbed_get(bed, 0, "/v1/quotas");
	bool seen = count(seen_pods) == count_bound(list) && count(seen_nodes) == count(nodes) &&
		    count(seen_quotas) == count(quotas);

	cJSON_Delete(list);
	cJSON_Delete(nodes);
	cJSON_Delete(quotas);
	cJSON_Delete(seen_pods);
	cJSON_Delete(seen_nodes);
	cJSON_Delete(seen_quotas);
	return seen;
}

void kube_quota_world_expect_seen(struct kube_testbed *bed)
{
	if (!control_plane_await(bed->plane, is_seen, bed, SECONDS))
		fail_msg("the aggregator does not see the cluster as it is");
}

static void expect_known(struct kube_testbed *bed)
{
	cJSON *list = kube_quota_world_pods(bed),
	      *nodes = kube_quota_world_get(bed, "/api/v1/nodes");

	kube_quota_world_expect_seen(bed);
	control_plane_await_scheduler(bed->plane, count(nodes), count_bound(list));
	cJSON_Delete(list);
	cJSON_Delete(nodes);
}

struct expected_quotas {
	const struct kube_testbed *bed;
	const cJSON *used;
	struct buf told; /* at the last look */
};

static double used_of(const cJSON *quota, const char *resource)
{
	cJSON *used = cJSON_GetObjectItemCaseSensitive(quota, "used");
	const char *name = strcmp(resource, "cpu") == 0	     ? "cpuMillicores"
			   : strcmp(resource, "memory") == 0 ? "memoryBytes"
							     : resource;

	return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(used, name));
}

/* The namespaces that the story speaks of use what it says. */
static bool quotas_are_used(void *ctx)
{
	struct expected_quotas *e = ctx;
	const cJSON *namespace, *amount;
	bool same = true;

	buf_clear(&e->told);
	cJSON_ArrayForEach (namespace, e->used) {
		char *path = mem_printf("/v1/quotas/%s", namespace->string);
		cJSON *quota = kube_testbed_get(e->bed, 0, path);

		cJSON_ArrayForEach (amount, namespace) {
			double used = used_of(quota, amount->string);

			buf_printf(&e->told, "%s%s uses %g of %s", e->told.len ? ", " : "",
				   namespace->string, used, amount->string);
			same &= used == amount->valuedouble;
		}
		cJSON_Delete(quota);
		free(path);
	}
	return same;
}

void kube_quota_world_expect_used(struct kube_testbed *bed, const cJSON *used)
{
	struct expected_quotas e = {.bed = bed, .used = used};

	if (!used)
		return;
	if (!control_plane_await(bed->plane, quotas_are_used, &e, SECONDS))
		fail_msg("quotas are not used as they should be: %s", e.told.data);
	print_message("            %s\n", e.told.data);
	buf_fini(&e.told);
}

void kube_quota_world_begin(struct kube_testbed *bed, const cJSON *story)
{
	const cJSON *item;

	print_message("          %s\n", text_at(story, "id"));
	cJSON_ArrayForEach (item, json_at(story, "nodes")) {
		make_node(bed, item);
	}
	cJSON_ArrayForEach (item, json_at(story, "quotas")) {
		make_quota(bed, item);
	}
	cJSON_ArrayForEach (item, json_at(story, "pods")) {
		kube_quota_world_make_pod(bed, item);
	}
	expect_known(bed);
}

/*
 * Every object of a list, below the path of its kind in its namespace if it has one. Some may be
 * gone by now: pods wait, and take the place of others.
 */
static void delete_all(struct kube_testbed *bed, const char *list_path, const char *group,
		       const char *kind)
{
	cJSON *list = kube_quota_world_get(bed, list_path);
	const cJSON *item;

	cJSON_ArrayForEach (item, json_at(list, "items")) {
		const char *namespace = text_at(item, "metadata.namespace");

		char *path = mem_printf("%s%s%s/%s/%s?gracePeriodSeconds=0", group,
					*namespace ? "/namespaces/" : "", namespace, kind,
					text_at(item, "metadata.name"));

		control_plane_send(bed->plane, "DELETE", path, NULL, NULL);
		free(path);
	}
	cJSON_Delete(list);
}

/* However a story ended, the next one begins with nothing. */
void kube_quota_world_clear(struct kube_testbed *bed)
{
	delete_all(bed, "/api/v1/pods", "/api/v1", "pods");
	delete_all(bed, QUOTA_GROUP "/elasticquotas", QUOTA_GROUP, "elasticquotas");
	delete_all(bed, "/api/v1/nodes", "/api/v1", "nodes");
	expect_known(bed);
}
