/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a search for victims costs: 1000 quotas, 5000 full nodes, 150,000 pods, half of the quotas
 * over their min. Three questions: victims on one node (every node is a candidate), victims
 * elsewhere for a node that has room (the quotas alone refuse), and one that nobody can help.
 * Against upstream's way in the same run: it copies every quota with the set of its pods' uids for
 * each node it looks at. A set is copied as Go copies one, by inserting each key into a new table;
 * it is measured on some nodes and told for all, which would take a minute.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aggregator/policy/quota/preempt.h"
#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/model_fixture.h"
#include "tests/quota_fixture.h"

enum { NODES = 5000, PODS = 30, QUOTAS = 1000, COPIED_NODES = 100, REPEAT = 5 };

#define NOW 1769860800000000000LL

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static void put_node(struct model *m, const char *name, int cpus)
{
	char *json = mem_printf("{\"metadata\":{\"name\":\"%s\",\"labels\":{\"pool\":\"%s\"}},"
				"\"status\":{\"allocatable\":{\"cpu\":\"%d\",\"memory\":\"64Gi\","
				"\"pods\":\"110\"}}}",
				name, strcmp(name, "spare") == 0 ? "spare" : "full", cpus);

	model_put(m, model_fixture_object(OBJECT_NODE, json));
	free(json);
}

/* Namespaces are mixed on every node. */
static void put_pod(struct model *m, int i)
{
	int space = (i + i / NODES * 37) % QUOTAS;
	char *json = mem_printf("{\"metadata\":{\"namespace\":\"team-%04d\",\"name\":\"pod-%06d\","
				"\"uid\":\"uid-%06d\"},\"spec\":{\"nodeName\":\"node-%05d\","
				"\"priority\":%d,\"containers\":[{\"name\":\"c\",\"resources\":{"
				"\"requests\":{\"cpu\":\"500m\",\"memory\":\"1Gi\"}}}]},"
				"\"status\":{\"phase\":\"Running\",\"startTime\":"
				"\"2026-01-31T%02d:%02d:00Z\"}}",
				space, i, i, i % NODES, i % 3 * 100, i / 60 % 12, i % 60);

	model_put(m, model_fixture_object(OBJECT_POD, json));
	free(json);
}

static struct view *cluster(void)
{
	struct model *m = model_new();
	struct join *j = join_new();
	struct view *v;

	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	for (int i = 0; i < NODES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "node-%05d", i);
		put_node(m, name, 16);
	}
	put_node(m, "spare", 64);
	for (int i = 0; i < NODES * PODS; i++)
		put_pod(m, i);
	v = join_view(j, NULL, 0, model_cluster(m), NOW);
	join_free(j);
	model_free(m);
	return v;
}

/* Each uses 75 CPUs: odd ones are guaranteed 60 of them, even ones 90. */
static struct quota_book *quotas(struct view *v, enum quota_variant variant)
{
	struct quota *of = mem_zalloc(QUOTAS, sizeof(*of));
	struct quota_options o;
	struct quota_book *b;

	quota_options_default(&o);
	o.variant = variant;
	for (int i = 0; i < QUOTAS; i++) {
		of[i] = (struct quota){.namespace = mem_printf("team-%04d", i),
				       .name = "q",
				       .has_min = true,
				       .weight = 1};
		resources_set(&of[i].min, RESOURCE_CPU, i % 2 ? 60000 : 90000);
		resources_set(&of[i].min, RESOURCE_MEMORY, (i % 2 ? 100LL : 200LL) << 30);
	}
	b = quota_fixture_book(of, QUOTAS, &o);
	for (int i = 0; i < QUOTAS; i++)
		free((char *)of[i].namespace);
	free(of);
	for (size_t n = 0; n < v->node_count; n++)
		for (size_t i = 0; i < v->nodes[n]->pod_count; i++)
			quota_book_add(b, v->nodes[n]->pods[i].pod->object.namespace,
				       kube_pod_requests(v->nodes[n]->pods[i].pod));
	return b;
}

static struct kube_pod *pending(const char *pool, const char *cpu)
{
	char *json =
		mem_printf("{\"metadata\":{\"namespace\":\"team-0000\",\"name\":\"asks\","
			   "\"uid\":\"uid-asks\"},\"spec\":{\"nodeSelector\":{\"pool\":\"%s\"},"
			   "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{"
			   "\"cpu\":\"%s\"}}}]}}",
			   pool, cpu);
	struct object *o = model_fixture_object(OBJECT_POD, json);

	free(json);
	return (struct kube_pod *)o;
}

struct bench {
	struct view *view;
	struct place *place;
	const struct preempt *index;
	struct preempt_options options;
};

static double ask(struct bench *b, struct quota_book *book, const char *pool, const char *cpu,
		  enum preempt_verdict expected, size_t *victims)
{
	struct kube_pod *pod = pending(pool, cpu);
	struct preempt_ask question = {.pod = pod, .now_ns = NOW};
	double best = INFINITY;

	for (int i = 0; i < REPEAT; i++) {
		int64_t start = cpu_ns();
		struct preempt_plan plan;

		preempt_make_plan(b->index, b->place, book, &b->options, &question, &plan);
		best = fmin(best, (double)(cpu_ns() - start) / 1e6);
		if (plan.verdict != expected) {
			fprintf(stderr, "%s%s", plan.narration.data,
				plan.unblock.len ? plan.unblock.data : "");
			abort();
		}
		*victims = plan.chosen.victim_count;
		preempt_plan_fini(&plan);
	}
	object_drop(&pod->object);
	return best;
}

enum { SET = 256, PER_QUOTA = NODES * PODS / QUOTAS }; /* a table is at most seven eighths full */

/* A quota as upstream copies it: three lists of amounts, and the set of its pods. */
struct copy {
	struct resources min, max, used;
	const char **pods;
};

static uint32_t hash(const char *text)
{
	uint32_t h = 2166136261U;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619U;
	return h;
}

static void insert(const char **set, const char *uid)
{
	uint32_t at = hash(uid) % SET;

	while (set[at] && strcmp(set[at], uid) != 0)
		at = (at + 1) % SET;
	set[at] = uid;
}

static double copy_quotas(const struct quota_book *book, const char (*uids)[16])
{
	struct copy *of = mem_zalloc(QUOTAS, sizeof(*of));
	int64_t start = cpu_ns();
	double ns;

	for (int i = 0; i < QUOTAS; i++) {
		const struct quota *q = quota_book_at(book, (size_t)i);

		resources_copy(&of[i].min, &q->min);
		resources_copy(&of[i].max, &q->max);
		resources_copy(&of[i].used, &q->used);
		of[i].pods = mem_zalloc(SET, sizeof(*of[i].pods));
		for (int k = 0; k < PER_QUOTA; k++)
			insert(of[i].pods, uids[i * PER_QUOTA + k]);
	}
	ns = (double)(cpu_ns() - start);
	for (int i = 0; i < QUOTAS; i++) {
		resources_fini(&of[i].min);
		resources_fini(&of[i].max);
		resources_fini(&of[i].used);
		free(of[i].pods);
	}
	free(of);
	return ns;
}

/* Upstream's search by our code, and the copies it would make. */
static double upstream_ms(struct bench *b, const char *cpu)
{
	struct quota_book *book = quotas(b->view, QUOTA_UPSTREAM);
	char(*uids)[16] = mem_zalloc(NODES * PODS, sizeof(*uids));
	double search, copies = 0;
	size_t victims;

	for (int i = 0; i < NODES * PODS; i++)
		snprintf(uids[i], sizeof(uids[i]), "uid-%06d", i);
	b->options.variant = QUOTA_UPSTREAM;
	search = ask(b, book, "full", cpu, PREEMPT_VICTIMS, &victims);
	b->options.variant = QUOTA_CORRECTED;
	for (int i = 0; i < COPIED_NODES; i++)
		copies += copy_quotas(book, uids);
	bench_row("upstream's search without its copies, one node", "ms", NAN, 0, search);
	free(uids);
	quota_book_free(book);
	return search + copies / COPIED_NODES * NODES / 1e6;
}

int main(void)
{
	struct bench b = {.view = cluster()};
	struct place_options o;
	struct quota_book *book = quotas(b.view, QUOTA_CORRECTED);
	double one, several, upstream;
	size_t victims;
	int64_t start;

	bench_begin("preempt");
	place_options_default(&o);
	o.now_ns = NOW;
	b.place = place_new(b.view, &o);
	preempt_options_default(&b.options);
	start = cpu_ns();
	b.index = preempt_of(b.view);
	bench_row("index 150,000 pods of 1000 quotas", "ms", NAN, 0,
		  (double)(cpu_ns() - start) / 1e6);
	one = ask(&b, book, "full", "3", PREEMPT_VICTIMS, &victims);
	bench_row("victims on one of 5000 nodes", "ms", 500, 0, one);
	bench_row("  victims", "pods", NAN, 0, (double)victims);
	several = ask(&b, book, "spare", "15", PREEMPT_VICTIMS, &victims);
	bench_row("victims elsewhere, for a node with room", "ms", 500, 0, several);
	bench_row("  victims", "pods", NAN, 0, (double)victims);
	bench_row("nobody can help", "ms", 1000, 0,
		  ask(&b, book, "none", "3", PREEMPT_IMPOSSIBLE, &victims));
	upstream = upstream_ms(&b, "3");
	bench_row("upstream's way, one node", "ms", NAN, 0, upstream);
	bench_row("upstream's way against ours, one node", "x", 10, 1, upstream / one);
	bench_row("upstream's way for one node against ours for several", "x", 10, 1,
		  upstream / several);
	quota_book_free(book);
	place_free(b.place);
	view_drop(b.view);
	bench_end();
	return 0;
}
