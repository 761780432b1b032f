/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/pods: what is measured of each workload. Where no Kubernetes API is followed a pod's name is its cgroup's path
 * and its namespace is empty; without Kubernetes the workloads are systemd's units and slices. What each used at its
 * peak in each hour of the day is told with peaks=true: it doubles the answer.
 */
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/usage_json.h"
#include "shared/clock.h"
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

static void write_container(struct jsonw *w, const struct page_container *c, int64_t end_ns)
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
	usage_json_write_limits(w, c->limits);
	usage_json_write_latest(w, &c->latest, end_ns);
	usage_json_write_pressure(w, c);
	if (c->throttle_known)
		jsonw_key_fixed(w, "throttledSeconds", (double)c->throttled_seconds, 6);
	jsonw_object_close(w);
}

static void write_hours(struct jsonw *w, const char *key, const float hours[PEAK_HOURS],
			int64_t newest, int decimals)
{
	jsonw_key(w, key);
	jsonw_array_open(w);
	for (int i = 1; i <= PEAK_HOURS; i++)
		jsonw_fixed(w, (double)hours[(newest + i) % PEAK_HOURS], decimals);
	jsonw_array_close(w);
}

/* Oldest hour first; the newest ends at "end" and may still be running. null: not measured. */
static void write_peaks(struct jsonw *w, const struct pod_peaks *p)
{
	if (!p)
		return;
	jsonw_key(w, "hourlyPeaks");
	jsonw_object_open(w);
	usage_json_write_time(w, "end", (p->newest + 1) * PEAK_HOUR_SECONDS * NS_PER_SEC);
	write_hours(w, "cpuMillicores", p->cpu_milli, p->newest, 3);
	write_hours(w, "workingSetBytes", p->working_set_bytes, p->newest, 0);
	jsonw_object_close(w);
}

static void write_pod(struct jsonw *w, const struct node_page *page, const struct page_pod *pod,
		      bool peaks)
{
	static const char *const classes[] = {
		[QOS_UNKNOWN] = NULL,
		[QOS_GUARANTEED] = "Guaranteed",
		[QOS_BURSTABLE] = "Burstable",
		[QOS_BEST_EFFORT] = "BestEffort",
	};
	struct page_usage usage;

	page_pod_usage(page, pod, &usage);
	jsonw_object_open(w);
	jsonw_key_string(w, "namespace", "");
	jsonw_key_string(w, "name", pod->name);
	write_if_known(w, "uid", pod->uid);
	jsonw_key_string(w, "node", page->name);
	write_if_known(w, "qosClass", classes[pod->qos]);
	write_workload(w, pod);
	usage_json_write_limits(w, pod->limits);
	usage_json_write(w, &usage, page->end_ns);
	usage_json_write_contention(w, usage.windows);
	if (peaks)
		write_peaks(w, pod->peaks);
	jsonw_key(w, "containers");
	jsonw_array_open(w);
	for (size_t i = 0; i < pod->container_count; i++)
		write_container(w, &pod->containers[i], page->end_ns);
	jsonw_array_close(w);
	jsonw_object_close(w);
}

static void offer_all(struct list_pick *pick, const struct view *v)
{
	const struct list_query *q = pick->query;

	if (q->namespace)
		return; /* no pod's namespace is known */
	for (size_t i = 0; i < v->node_count; i++) {
		const struct node_page *page = v->nodes[i]->page;

		if (q->node && strcmp(page->name, q->node) != 0)
			continue;
		for (size_t k = 0; k < page->pod_count; k++)
			list_pick_offer(pick, (struct list_item){page, &page->pods[k]});
	}
}

/* peaks=true, or false as without; anything else is refused. */
static bool read_peaks(const struct api_request *rq, bool *peaks, struct api_response *rs)
{
	const char *text = rq->query(rq, "peaks");

	*peaks = text && strcmp(text, "true") == 0;
	if (!text || !*text || *peaks || strcmp(text, "false") == 0)
		return true;
	api_fail(rs, FAIL_BAD_REQUEST, "peaks", "peaks \"%s\" is none of true, false", text);
	return false;
}

void api_pods(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	static const char *const parameters[] = {"namespace", "node",	       "limit", "sort",
						 "continue",  "labelSelector", "peaks", NULL};
	int64_t now_ns = ctx->now_ns();
	struct list_query q;
	struct list_pick pick;
	struct jsonw w;
	struct view *v;
	bool peaks;

	if (!read_peaks(rq, &peaks, rs) || !list_query_read(rq, parameters, &q, rs))
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
		write_pod(&w, pick.items[i].page, pick.items[i].pod, peaks);
	list_write_close(&w, &pick);
	list_pick_fini(&pick);
	view_drop(v);
	list_query_fini(&q);
}
