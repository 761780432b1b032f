/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeping 5000 nodes in the database costs: on the loop thread, on the store's, on the disk;
 * and how soon their windows are back. Every node has 15 minutes of windows, and every one changed
 * since it was last saved.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/store/store.h"
#include "aggregator/state/usage_node.h"
#include "aggregator/state/view.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/process.h"
#include "tests/usage_fixture.h"
#include "tests/usage_view.h"

#define MIB (1024.0 * 1024)

enum { NODES = 5000, SECONDS = 5, INTERVALS = 15 * 60 / SECONDS, SAVES = 5, STARTS = 5 };

static double ms_since(int64_t start_ns)
{
	return (double)(clock_mono_ns() - start_ns) / NS_PER_MS;
}

static void apply_everywhere(struct usage_state *u, size_t k, int64_t end_ns)
{
	static const uint8_t run[FRAME_RUN_LEN] = {1};
	struct usage_fixture f = {
		.sequence = k, .end_ns = end_ns, .seconds = SECONDS, .seed = (uint32_t)k};
	struct interval *i = usage_fixture_new(&f);

	for (size_t n = 0; n < NODES; n++) {
		struct usage_answer answer;
		char name[32];

		snprintf(name, sizeof(name), "node-%05zu", n);
		usage_apply(u, name, run, NULL, i, end_ns, &answer);
		if (answer.verdict == USAGE_APPLIED)
			continue;
		fprintf(stderr, "verdict %d: %s\n", answer.verdict, answer.reason);
		exit(1);
	}
	interval_free(i);
}

static void wake(void *ctx)
{
	(void)ctx;
}

static struct store *start(const char *dir)
{
	struct store_config config = {
		.dir = dir,
		.nodes_max = 20000,
		.busy_ms = 1000,
		.retry_ns = NS_PER_SEC,
		.wake = wake,
	};
	struct store *store;

	if (store_start(&store, &config, NULL))
		exit(1);
	return store;
}

static struct store_event *next(struct store *store, enum store_event_kind kind)
{
	struct store_event *e = store_take(store, 60 * NS_PER_SEC);

	if (e && e->kind == kind)
		return e;
	fprintf(stderr, "event %d: %s\n", e ? (int)e->kind : -1, e ? e->error.text : "none");
	exit(1);
}

struct cost {
	double slice_ms[NODES], packed_ms, whole_ms, store_ms;
	size_t slices;
	uint64_t bytes;
};

/* As the engine does it: a slice, its answer, the next. */
static void save(struct usage_state *u, struct store *store, struct cost *c)
{
	int64_t begun_ns = clock_mono_ns();
	uint64_t id = usage_save_begin(u);
	bool last = false;

	c->slices = 0;
	c->packed_ms = 0;
	while (!last) {
		struct store_batch *b = store_batch_new(id);
		int64_t start_ns = clock_mono_ns();
		struct store_event *e;

		b->count = usage_save_next(u, b->rows, STORE_BATCH_ROWS);
		b->last = last = b->count < STORE_BATCH_ROWS;
		c->slice_ms[c->slices] = ms_since(start_ns);
		c->packed_ms += c->slice_ms[c->slices++];
		store_put(store, b);
		e = next(store, last ? STORE_SAVED : STORE_WRITTEN);
		c->store_ms = (double)e->took_ns / NS_PER_MS;
		c->bytes = e->bytes;
		store_event_free(e);
	}
	usage_save_done(u, id);
	c->whole_ms = ms_since(begun_ns);
}

static void bench_saves(struct usage_state *u, const char *dir, int64_t end_ns)
{
	static struct cost c;
	double slice[SAVES], worst[SAVES], packed[SAVES], whole[SAVES];
	struct store *store = start(dir);

	store_event_free(next(store, STORE_OPENED));
	save(u, store, &c);
	bench_row("first save of 5000 nodes", "ms", NAN, 0, c.whole_ms);
	for (size_t i = 0; i < SAVES; i++) {
		apply_everywhere(u, INTERVALS + 1 + i, end_ns + (int64_t)(i + 1) * NS_PER_SEC * 5);
		save(u, store, &c);
		slice[i] = bench_median(c.slice_ms, c.slices);
		worst[i] = c.slice_ms[c.slices - 1];
		packed[i] = c.packed_ms;
		whole[i] = c.whole_ms;
	}
	bench_row("save of 5000 nodes: loop thread, a slice of 32", "ms", 2, 0,
		  bench_median(slice, SAVES));
	bench_row("save of 5000 nodes: loop thread, the longest slice", "ms", 5, 0,
		  bench_median(worst, SAVES));
	bench_row("save of 5000 nodes: loop thread, all slices", "ms", NAN, 0,
		  bench_median(packed, SAVES));
	bench_row("save of 5000 nodes: from begin to commit", "ms", 10000, 0,
		  bench_median(whole, SAVES));
	bench_row("database and log of 5000 nodes", "MiB", NAN, 0, (double)c.bytes / MIB);
	store_stop(store);
}

static void bench_starts(const char *dir, int64_t now_ns)
{
	double read[STARTS], all[STARTS];

	for (size_t i = 0; i < STARTS; i++) {
		struct usage_limits limits = {.nodes_max = 20000, .pods_per_node_max = 2048};
		int64_t start_ns = clock_mono_ns();
		struct usage_state *u = usage_new(&limits);
		struct store *store = start(dir);
		struct store_event *e = next(store, STORE_OPENED);
		struct view *v;

		read[i] = ms_since(start_ns);
		for (size_t n = 0; n < e->node_count; n++) {
			usage_restore(u, e->nodes[n], now_ns);
			e->nodes[n] = NULL;
		}
		v = usage_view(u, now_ns);
		all[i] = ms_since(start_ns);
		if (v->node_count != NODES) {
			fprintf(stderr, "%zu nodes came back\n", v->node_count);
			exit(1);
		}
		view_drop(v);
		store_event_free(e);
		store_stop(store);
		usage_free(u);
	}
	bench_row("start with 5000 nodes: open, check and read", "ms", NAN, 0,
		  bench_median(read, STARTS));
	bench_row("start with 5000 nodes: until the first view has them", "ms", 1000, 0,
		  bench_median(all, STARTS));
}

int main(void)
{
	struct usage_limits limits = {.nodes_max = 20000, .pods_per_node_max = 2048};
	struct usage_state *u = usage_new(&limits);
	char *folder = folder_make(), *dir = mem_printf("%s/state", folder);
	int64_t begin_ns = 1700000000 * NS_PER_SEC, end_ns = begin_ns;

	bench_begin("store");
	for (size_t k = 1; k <= INTERVALS; k++) {
		end_ns = begin_ns + (int64_t)k * SECONDS * NS_PER_SEC;
		apply_everywhere(u, k, end_ns);
	}
	bench_saves(u, dir, end_ns);
	bench_starts(dir, end_ns);
	bench_end();
	usage_free(u);
	free(dir);
	folder_remove(folder);
	return 0;
}
