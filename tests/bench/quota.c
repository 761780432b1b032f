/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What quotas cost: 1000 of them over 150,000 pods on 5000 nodes. Medians, in CPU time of the one
 * thread it needs. What sums of namespaces add to a publication is in tests/bench/join.c, of one
 * namespace; here it is of 1000.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "aggregator/policy/quota/quota.h"
#include "aggregator/policy/quota/quota_share.h"
#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

enum { NODES = 5000, PODS = 30, QUOTAS = 1000, REPEAT = 100, ASKS = 2000, NOMINATED = 10 };

static struct model *model;
static struct join *join;

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static void namespace_name(int i, char out[32])
{
	snprintf(out, 32, "team-%04d-production", i % QUOTAS);
}

/* A node's pods are of up to 30 namespaces, which every node mixes in its own way. */
static void put_pod(int node, int pod, int64_t scheduled_ns)
{
	char namespace[32], name[64], node_name[32];

	namespace_name(node * 7 + pod * 31, namespace);
	snprintf(name, sizeof(name), "workload-7d9c5b6f4-%05d-%02d", node, pod);
	snprintf(node_name, sizeof(node_name), "node-%05d", node);
	model_put(model,
		  model_fixture_pod(&(struct model_fixture_pod){.namespace = namespace,
								.name = name,
								.node = node < 0 ? NULL : node_name,
								.cpu = pod % 2 ? "100m" : "250m",
								.memory = "128Mi",
								.scheduled_ns = scheduled_ns}));
}

static void put_quota(int i)
{
	char namespace[32];
	char *json;

	namespace_name(i, namespace);
	json = mem_printf("{\"metadata\":{\"namespace\":\"%s\",\"name\":\"eq\",\"annotations\":"
			  "{\"evenkeel.io/weight\":\"2\"}},\"spec\":{\"min\":{\"cpu\":\"26\","
			  "\"memory\":\"40Gi\",\"nvidia.com/gpu\":\"1\"},\"max\":{\"cpu\":\"60\","
			  "\"memory\":\"80Gi\",\"nvidia.com/gpu\":\"4\"}}}",
			  namespace);
	model_put(model, model_fixture_object(OBJECT_ELASTIC_QUOTA, json));
	free(json);
}

static struct view *publish(void)
{
	return join_view(join, NULL, 0, model_cluster(model), VIEW_FIXTURE_NOW_NS);
}

/* A publication after a pod was changed on each of so many nodes. */
static void bench_publication(const char *row, double budget, int nodes)
{
	double ms[REPEAT];

	for (int i = 0; i < REPEAT; i++) {
		struct cluster *c;
		int64_t start;

		for (int n = 0; n < nodes; n++)
			put_pod((i * 37 + n * (NODES / nodes)) % NODES, i % PODS,
				VIEW_FIXTURE_NOW_NS - (i + 1) * NS_PER_SEC);
		c = model_cluster(model);
		start = cpu_ns();
		view_drop(join_view(join, NULL, 0, c, VIEW_FIXTURE_NOW_NS));
		ms[i] = (double)(cpu_ns() - start) / 1e6;
	}
	bench_row(row, "ms", budget, 0, bench_median(ms, REPEAT));
}

static void bench_book(struct view *v)
{
	struct quota_options o;
	double ms[REPEAT];

	quota_options_default(&o);
	for (int i = 0; i < REPEAT; i++) {
		int64_t start = cpu_ns();

		quota_book_free(quota_book_new(v, NULL, &o));
		ms[i] = (double)(cpu_ns() - start) / 1e6;
	}
	bench_row("book of 1000 quotas out of a view", "ms", NAN, 0, bench_median(ms, REPEAT));
}

/*
 * What an answer does before it may ask: one reservation came since the last, and then another
 * view.
 */
static void bench_following(struct view *v)
{
	struct reservations *set = reservations_new();
	struct quota_options o;
	struct quota_book *b;
	struct view *now = view_hold(v);
	double us[REPEAT], ms[REPEAT];

	quota_options_default(&o);
	b = quota_book_new(v, NULL, &o);
	for (int i = 0; i < REPEAT; i++) {
		char namespace[32], uid[32];
		struct reservation e = {
			.uid = uid, .namespace = namespace, .name = uid, .node = ""};
		struct reservations_copy *copy;
		struct view *next;
		int64_t start;

		namespace_name(i * 13, namespace);
		snprintf(uid, sizeof(uid), "uid-%d", i);
		resources_set(&e.requests, RESOURCE_CPU, 500);
		reservations_reserve(set, &e, VIEW_FIXTURE_NOW_NS);
		copy = reservations_take(set, VIEW_FIXTURE_NOW_NS);
		start = cpu_ns();
		quota_book_update(b, now, copy);
		us[i] = (double)(cpu_ns() - start) / 1e3;
		put_pod(i * 37 % NODES, PODS + i, VIEW_FIXTURE_NOW_NS - (i + 1) * NS_PER_SEC);
		next = publish();
		start = cpu_ns();
		quota_book_update(b, next, copy);
		ms[i] = (double)(cpu_ns() - start) / 1e6;
		view_drop(now);
		now = next;
		reservations_copy_drop(copy);
	}
	view_drop(now);
	bench_row("the book after a reservation", "us", NAN, 0, bench_median(us, REPEAT));
	bench_row("the book after a publication", "ms", 5, 0, bench_median(ms, REPEAT));
	quota_book_free(b);
	reservations_free(set);
}

/* Half of them are refused, with a sentence. */
static void bench_admission(const struct quota_book *b, const char *row, size_t nominated)
{
	struct quota_nominated waiting[NOMINATED];
	struct resources lists[2] = {RESOURCES_NONE, RESOURCES_NONE};
	char names[NOMINATED][32], namespace[32];
	double us[ASKS];
	struct quota_verdict v;

	for (int i = 0; i < 2; i++) {
		resources_set(&lists[i], RESOURCE_CPU, i ? 40000 : 500);
		resources_set(&lists[i], RESOURCE_MEMORY, 1LL << 30);
		resources_set_named(&lists[i], "nvidia.com/gpu", 1);
	}
	for (int i = 0; i < NOMINATED; i++) {
		namespace_name(i * 97, names[i]);
		waiting[i] = (struct quota_nominated){names[i], names[i], 10, &lists[0]};
	}
	for (int i = 0; i < ASKS; i++) {
		struct quota_ask ask = {
			.uid = "uid",
			.namespace = namespace,
			.requests = &lists[i % 2],
			.nominated = waiting,
			.nominated_count = nominated,
		};
		int64_t start;

		namespace_name(i * 13, namespace);
		start = cpu_ns();
		for (int k = 0; k < 10; k++)
			quota_admit(b, &ask, &v);
		us[i] = (double)(cpu_ns() - start) / 1e4;
	}
	bench_row(row, "us", 10, 0, bench_median(us, ASKS));
	resources_fini(&lists[0]);
	resources_fini(&lists[1]);
}

static void bench_changes(struct quota_book *b)
{
	struct resources pod = RESOURCES_NONE;
	char namespace[32];
	double us[ASKS];

	resources_set(&pod, RESOURCE_CPU, 500);
	resources_set(&pod, RESOURCE_MEMORY, 1LL << 30);
	for (int i = 0; i < ASKS; i++) {
		int64_t start;

		namespace_name(i * 13, namespace);
		start = cpu_ns();
		for (int k = 0; k < 10; k++) {
			quota_book_add(b, namespace, &pod);
			quota_book_subtract(b, namespace, &pod);
		}
		us[i] = (double)(cpu_ns() - start) / 1e4;
	}
	bench_row("a pod added to a book and subtracted again", "us", NAN, 0,
		  bench_median(us, ASKS));
}

static void bench_shares(const struct quota_book *b)
{
	struct quota_share *out = mem_alloc(QUOTAS * sizeof(*out));
	struct quota_share_sum sum;
	double ms[REPEAT];

	for (int i = 0; i < REPEAT; i++) {
		int64_t start = cpu_ns();

		quota_share_read(b, "cpu", out, &sum);
		ms[i] = (double)(cpu_ns() - start) / 1e6;
	}
	bench_row("loans and fair shares of one resource", "ms", NAN, 0, bench_median(ms, REPEAT));
	free(out);
}

int main(void)
{
	struct quota_options o;
	struct quota_book *b;
	struct view *v;

	bench_begin("quota");
	model = model_new();
	join = join_new();
	model_fixture_sync(model, OBJECT_ELASTIC_QUOTA);
	for (int i = 0; i < QUOTAS; i++)
		put_quota(i);
	for (int n = 0; n < NODES; n++)
		for (int p = 0; p < PODS; p++)
			put_pod(n, p, VIEW_FIXTURE_NOW_NS - 3600 * NS_PER_SEC);
	v = publish();
	bench_publication("publish, a pod changed on one node, 1000 namespaces", 1, 1);
	bench_publication("publish, a pod changed on each of 100 nodes", NAN, 100);
	bench_book(v);
	bench_following(v);
	quota_options_default(&o);
	b = quota_book_new(v, NULL, &o);
	bench_admission(b, "admission, nobody nominated", 0);
	bench_admission(b, "admission, 10 pods nominated", NOMINATED);
	bench_changes(b);
	bench_shares(b);
	quota_book_free(b);
	view_drop(v);
	join_free(join);
	model_free(model);
	bench_end();
	return 0;
}
