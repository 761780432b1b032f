/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each wait is kept, to be sorted at the end: a percentile out of buckets would be off by as much
 * as an improvement is often worth. A wait is from before the request until the last byte of the
 * answer is read, and so has the client's part in it: it reads answers of megabytes half a megabyte
 * at a time, and only counts them.
 */
#include "tests/soak/asker.h"

#include <curl/curl.h>
#include <math.h>
#include <stdlib.h>

#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/fleet/cluster.h"
#include "tests/process.h"

#define READ_BYTES (512L * 1024)

struct question {
	const char *what, *path;
	char *body; /* owned; NULL: GET */
	double budget_ms;
	double *waits_ms; /* owned */
	size_t answers, room;
	uint64_t failures;
};

struct asker {
	CURL *curl;
	char *base;
	struct question questions[ASKER_QUESTIONS];
	size_t next;
};

static size_t drop(char *data, size_t size, size_t count, void *ctx)
{
	(void)data;
	(void)ctx;
	return size * count;
}

static const char scores_body[] =
	"{\"pod\":{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"500m\","
	"\"memory\":\"512Mi\"},\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}}]}},\"plugins\":["
	"\"TargetLoadPacking\",\"LoadVariationRiskBalancing\",\"LowRiskOverCommitment\",\"Peaks\","
	"\"NodeResourcesAllocatable\",\"LimitAware\"]}";

/* As kube-scheduler asks: one pod, all nodes by name. */
static char *prioritize_body(uint32_t nodes)
{
	struct buf body = BUF_INIT;

	buf_add_str(&body, "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"shop\",\"uid\":"
			   "\"soak\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
			   "\"requests\":{\"cpu\":\"500m\",\"memory\":\"512Mi\"}}}]}},"
			   "\"Nodes\":null,\"NodeNames\":[");
	for (uint32_t i = 0; i < nodes; i++) {
		char name[CLUSTER_NAME_MAX];

		cluster_node_name(i, name);
		buf_printf(&body, "%s\"%s\"", i ? "," : "", name);
	}
	buf_add_str(&body, "]}");
	return buf_take(&body, NULL);
}

struct asker *asker_new(const struct stack *s, uint32_t nodes)
{
	struct asker *a = mem_zalloc(1, sizeof(*a));

	a->questions[ASKER_SCORES] = (struct question){.what = "scores of all nodes, all plugins",
						       .path = "/v1/scores",
						       .body = mem_strdup(scores_body),
						       .budget_ms = 10};
	a->questions[ASKER_PRIORITIZE] = (struct question){.what = "extender prioritize",
							   .path = "/extender/prioritize",
							   .body = prioritize_body(nodes),
							   .budget_ms = 5};
	a->questions[ASKER_NODES] = (struct question){.what = "a page of 500 nodes",
						      .path = "/v1/nodes?limit=500",
						      .budget_ms = (double)NAN};
	a->questions[ASKER_PODS] = (struct question){.what = "a page of 500 pods",
						     .path = "/v1/pods?limit=500",
						     .budget_ms = (double)NAN};
	a->questions[ASKER_WATCHER] = (struct question){.what = "all of /watcher",
							.path = "/watcher",
							.budget_ms = (double)NAN};
	a->curl = curl_easy_init();
	a->base = mem_printf("http://127.0.0.1:%d", s->aggregators[0].http_port);
	curl_easy_setopt(a->curl, CURLOPT_WRITEFUNCTION, drop);
	curl_easy_setopt(a->curl, CURLOPT_BUFFERSIZE, READ_BYTES);
	curl_easy_setopt(a->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(a->curl, CURLOPT_TIMEOUT, 60L);
	return a;
}

void asker_free(struct asker *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < ASKER_QUESTIONS; i++) {
		free(a->questions[i].body);
		free(a->questions[i].waits_ms);
	}
	curl_easy_cleanup(a->curl);
	free(a->base);
	free(a);
}

static void keep(struct question *q, double ms)
{
	if (q->answers == q->room) {
		q->room = q->room ? 2 * q->room : 256;
		q->waits_ms = mem_realloc(q->waits_ms, q->room * sizeof(double));
	}
	q->waits_ms[q->answers++] = ms;
}

void asker_ask(struct asker *a)
{
	struct question *q = &a->questions[a->next++ % ASKER_QUESTIONS];
	char *url = mem_printf("%s%s", a->base, q->path);
	int64_t begin;
	long status = 0;
	double ms;

	curl_easy_setopt(a->curl, CURLOPT_URL, url);
	curl_easy_setopt(a->curl, CURLOPT_HTTPHEADER, http_json_headers());
	if (q->body)
		curl_easy_setopt(a->curl, CURLOPT_POSTFIELDS, q->body);
	else
		curl_easy_setopt(a->curl, CURLOPT_HTTPGET, 1L);
	begin = clock_mono_ns();
	if (!curl_easy_perform(a->curl))
		curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
	ms = (double)(clock_mono_ns() - begin) / NS_PER_MS;
	free(url);
	if (status == 200)
		keep(q, ms);
	else
		q->failures++;
}

size_t asker_fewest(const struct asker *a)
{
	size_t fewest = a->questions[0].answers;

	for (size_t i = 1; i < ASKER_QUESTIONS; i++) {
		if (a->questions[i].answers < fewest)
			fewest = a->questions[i].answers;
	}
	return fewest;
}

size_t asker_asked(const struct asker *a)
{
	return a->next;
}

double asker_quantile(const struct asker *a, enum asker_question question, double q)
{
	const struct question *of = &a->questions[question];

	return bench_quantile(of->waits_ms, of->answers, q);
}

void asker_report(const struct asker *a, const char *prefix, bool budgets)
{
	uint64_t failures = 0;

	for (size_t i = 0; i < ASKER_QUESTIONS; i++) {
		const struct question *q = &a->questions[i];

		char *label = mem_printf("%s%s", prefix, q->what);

		failures += q->failures;
		bench_waits(label, "ms", budgets ? q->budget_ms : (double)NAN, q->waits_ms,
			    q->answers);
		free(label);
	}
	bench_row_of(prefix, "questions without a good answer", "questions", 0, (double)failures);
}
