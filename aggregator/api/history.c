/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/nodes/NAME/history and /v1/pods/NAMESPACE/NAME/history[?node=NAME]: the last 15 minutes in
 * the buckets that windows are sums of, oldest first, the newest one still growing.
 *
 *   {"apiVersion","kind":"NodeHistory"|"PodHistory","time",["namespace"],["name"],"node",
 *    "bucketSeconds":15 of nodes, 30 of pods,"items":[{"start","end","seconds"[,"cpuMillicores":STATS]
 *    [,"memoryBytes":STATS][,"workingSetBytes":STATS][,"contention":{as in /v1/nodes}]},..]}
 *   STATS {"samples","mean","stddev","min","max"}; memory of pods: {"mean","max"}
 *
 * start and end are those of the intervals in the bucket, seconds the time that they cover; a bucket
 * without measurements is left out. A pod's contention is kept for the newest 11 buckets. A workload
 * without namespace has "-" for it; if several nodes have one of that name, the first by name
 * answers unless `node` names another. Only the loop has the buckets, so a request waits for it. The
 * ETag is a hash of the answer.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/list.h"
#include "aggregator/state/stats_json_parts.h"
#include "aggregator/state/window_sums.h"
#include "shared/hash.h"
#include "shared/mem.h"
#include "shared/usage_json.h"

/* The node or pod of a request. */
struct subject {
	const char *kind, *namespace, *name; /* the last two: NULL for a node */
	const char *node;
	const struct pod_stats *pod; /* NULL: the node */
};

static void write_stats(struct jsonw *w, const struct usage_latest_row *row,
			const struct window_stats *s, bool mean_and_max)
{
	if (!s->known)
		return;
	jsonw_key_object(w, row->key);
	if (!mean_and_max)
		jsonw_key_uint(w, "samples", s->samples);
	jsonw_key_fixed(w, "mean", s->mean, row->decimals);
	if (!mean_and_max) {
		jsonw_key_fixed(w, "stddev", s->stddev, row->decimals);
		jsonw_key_fixed(w, "min", s->min, row->decimals);
	}
	jsonw_key_fixed(w, "max", s->max, row->decimals);
	jsonw_object_close(w);
}

static void write_bucket(struct jsonw *w, const struct window_bucket *b, bool of_pod)
{
	struct window_sums sums = {0};
	struct window_set set;
	struct json_io io;

	json_io_write(&io, w, true);
	window_sums_add(&sums, b);
	window_sums_read(&sums, &set);
	jsonw_object_open(w);
	jsonw_key_time(w, "start", b->start_ns);
	jsonw_key_time(w, "end", b->end_ns);
	jsonw_key_fixed(w, "seconds", b->seconds, SECONDS_DECIMALS);
	for (int i = 0; i < USAGE_AVERAGED_COUNT; i++)
		write_stats(w, &usage_latest[i], &set.averaged[i], of_pod && i > 0);
	if (b->have & (PRESSURE_BITS | USAGE_THROTTLE | USAGE_OOM))
		stats_json_do_contention(&io, &set, NULL);
	jsonw_object_close(w);
}

static void write_history(const struct subject *s, const struct window_buckets *buckets,
			  int64_t now_ns, struct api_response *rs)
{
	struct jsonw w;
	size_t from;

	list_answer_open(rs, &w, s->kind, now_ns);
	from = rs->body.len;
	if (s->pod && *s->namespace)
		jsonw_key_string(&w, "namespace", s->namespace);
	if (s->pod)
		jsonw_key_string(&w, "name", s->name);
	jsonw_key_string(&w, "node", s->node);
	jsonw_key_int(&w, "bucketSeconds", buckets->seconds);
	jsonw_key_array(&w, "items");
	for (size_t i = 0; i < buckets->count; i++)
		write_bucket(&w, &buckets->of[i], s->pod != NULL);
	jsonw_array_close(&w);
	list_answer_close(&w);
	rs->etag = hash_bytes(HASH_BEGIN, rs->body.data + from, rs->body.len - from);
}

static void answer(const struct api_context *ctx, const struct subject *s, struct api_response *rs)
{
	struct window_buckets *buckets = mem_alloc(sizeof(*buckets));
	int rc = ctx->buckets->read(ctx->buckets, s->node, s->pod, buckets);

	if (!rc)
		write_history(s, buckets, ctx->now_ns(), rs);
	else if (rc == -ENOENT && s->pod)
		api_fail(rs, FAIL_NOT_FOUND, NULL,
			 "nothing is measured of pod \"%s\" on node \"%s\"", s->name, s->node);
	else if (rc == -ENOENT)
		api_fail(rs, FAIL_NOT_FOUND, NULL, "nothing is measured of node \"%s\"", s->node);
	else
		api_fail(rs, FAIL_BUSY, NULL, "the aggregator is too busy to read the history now");
	free(buckets);
}

/* The part of the path before the last word; a copy, for the caller to free. */
static char *read_name(const char *at)
{
	char *name = mem_strdup(at);

	*strrchr(name, '/') = '\0';
	return name;
}

static bool has_buckets(const struct api_context *ctx, struct api_response *rs)
{
	return ctx->buckets ||
	       api_fail(rs, FAIL_NO_DATA, NULL, "a snapshot has windows, but not their history");
}

void api_node_history(const struct api_context *ctx, const struct api_request *rq,
		      struct api_response *rs)
{
	char *name = read_name(rq->path + strlen("/v1/nodes/"));

	if (has_buckets(ctx, rs))
		answer(ctx, &(struct subject){.kind = "NodeHistory", .node = name}, rs);
	free(name);
}

/* The measured pod, on the first node that has it. False: there is none. */
static bool find_pod(const struct view *v, const char *node, struct subject *s)
{
	for (size_t i = 0; i < v->node_count; i++) {
		const struct view_node *n = v->nodes[i];
		const struct view_pod *p = !node || strcmp(n->name, node) == 0
						   ? view_node_find_pod(n, s->namespace, s->name)
						   : NULL;

		if (!p || !p->use)
			continue;
		s->node = n->name;
		s->pod = p->use;
		return true;
	}
	return false;
}

void api_pod_history(const struct api_context *ctx, const struct api_request *rq,
		     struct api_response *rs)
{
	char *namespace = read_name(rq->path + strlen("/v1/pods/")), *name, *plain = NULL;
	struct subject s = {.kind = "PodHistory", .namespace = namespace};
	struct view *v = view_slot_take(ctx->views);

	name = strchr(namespace, '/');
	*name++ = '\0';
	if (strcmp(namespace, "-") == 0)
		s.namespace = "";
	/* The escapes of a path with an escaped slash are left: see request_unescape(). */
	if (strcasestr(name, "%2f"))
		name = plain = curl_easy_unescape(NULL, name, 0, NULL);
	s.name = name;
	if (!has_buckets(ctx, rs))
		;
	else if (find_pod(v, rq->query(rq, "node"), &s))
		answer(ctx, &s, rs);
	else
		api_fail(rs, FAIL_NOT_FOUND, NULL, "no pod \"%s\" of namespace \"%s\" is measured",
			 name, namespace);
	view_drop(v);
	curl_free(plain);
	free(namespace);
}
