/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/pods: what is measured of each workload. Where no Kubernetes API is followed a pod's name is its cgroup's path
 * and its namespace is empty; without Kubernetes the workloads are systemd's units and slices.
 */
#include <string.h>

#include "aggregator/edge/http/http.h"
#include "aggregator/edge/http/list.h"
#include "aggregator/edge/http/usage_json.h"
#include "shared/jsonw.h"

static void write_if_known(struct jsonw *w, const char *key, const char *value)
{
	if (value && *value)
		jsonw_key_string(w, key, value);
}

static void write_workload(struct jsonw *w, const struct page_pod *pod)
{
	static const char *const kinds[] = {
		[ENTITY_POD] = "Pod",
		[ENTITY_CONTAINER] = "Container",
		[ENTITY_UNIT] = "Unit",
		[ENTITY_SLICE] = "Slice",
	};

	jsonw_key(w, "workload");
	jsonw_object_open(w);
	jsonw_key_string(w, "kind", kinds[pod->kind]);
	jsonw_key_string(w, "name", pod->name);
	jsonw_object_close(w);
}

static void write_container(struct jsonw *w, const struct page_container *c)
{
	static const char *const runtimes[] = {
		[RUNTIME_UNKNOWN] = NULL,    [RUNTIME_CONTAINERD] = "containerd",
		[RUNTIME_CRIO] = "cri-o",    [RUNTIME_DOCKER] = "docker",
		[RUNTIME_PODMAN] = "podman",
	};

	jsonw_object_open(w);
	jsonw_key_string(w, "name", c->name);
	write_if_known(w, "id", c->id);
	write_if_known(w, "runtime", runtimes[c->runtime]);
	usage_json_write_limits(w, &c->limits);
	usage_json_write_container(w, c);
	if (c->throttle_known)
		jsonw_key_fixed(w, "throttledSeconds", c->throttled_seconds, 6);
	jsonw_object_close(w);
}

static void write_pod(struct jsonw *w, const struct node_page *page, const struct page_pod *pod)
{
	static const char *const classes[] = {
		[QOS_UNKNOWN] = NULL,
		[QOS_GUARANTEED] = "Guaranteed",
		[QOS_BURSTABLE] = "Burstable",
		[QOS_BEST_EFFORT] = "BestEffort",
	};

	jsonw_object_open(w);
	jsonw_key_string(w, "namespace", "");
	jsonw_key_string(w, "name", pod->name);
	write_if_known(w, "uid", pod->uid);
	jsonw_key_string(w, "node", page->name);
	write_if_known(w, "qosClass", classes[pod->qos]);
	write_workload(w, pod);
	usage_json_write_limits(w, &pod->limits);
	usage_json_write(w, &pod->usage);
	usage_json_write_contention(w, pod->usage.windows);
	jsonw_key(w, "containers");
	jsonw_array_open(w);
	for (size_t i = 0; i < pod->container_count; i++)
		write_container(w, &pod->containers[i]);
	jsonw_array_close(w);
	jsonw_object_close(w);
}

static void offer_all(struct list_pick *pick, const struct view *v)
{
	const struct list_query *q = pick->query;

	if (q->namespace)
		return; /* no pod's namespace is known */
	for (size_t i = 0; i < v->page_count; i++) {
		const struct node_page *page = v->pages[i];

		if (q->node && strcmp(page->name, q->node) != 0)
			continue;
		for (size_t k = 0; k < page->pod_count; k++)
			list_pick_offer(pick, (struct list_item){page, &page->pods[k]});
	}
}

void http_pods(const struct http_context *ctx, const struct http_request *rq,
	       struct http_response *rs)
{
	static const char *const parameters[] = {"namespace", "node",	       "limit", "sort",
						 "continue",  "labelSelector", NULL};
	int64_t now_ns = ctx->now_ns();
	struct list_query q;
	struct list_pick pick;
	struct jsonw w;
	struct view *v;

	if (!list_query_read(rq, parameters, &q, rs))
		return;
	v = view_slot_take(ctx->views);
	list_pick_init(&pick, &q);
	offer_all(&pick, v);
	list_pick_sort(&pick);
	rs->content_type = "application/json";
	rs->etag = list_etag(v, now_ns);
	jsonw_init(&w, &rs->body);
	list_write_open(&w, "PodList", now_ns);
	for (size_t i = 0; i < pick.count; i++)
		write_pod(&w, pick.items[i].page, pick.items[i].pod);
	list_write_close(&w, &pick);
	list_pick_fini(&pick);
	view_drop(v);
	list_query_fini(&q);
}
