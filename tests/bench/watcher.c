/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /watcher costs at 5000 nodes: the answer made, made again for each request, taken as made,
 * and compressed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/bench_report.h"
#include "tests/usage_fixture.h"
#include "tests/view_fixture.h"

enum { NODES = 5000, ROUNDS = 30 };

static struct view *new_view(void)
{
	static struct node_stats node_stats[NODES];
	static char names[NODES][32];
	static uint64_t version;
	struct view *v;
	uint32_t seed = 1;

	for (size_t i = 0; i < NODES; i++) {
		snprintf(names[i], sizeof(names[i]), "node-%05zu.example.com", i);
		node_stats[i] = view_fixture_node(names[i], VIEW_FIXTURE_NOW_NS - NS_PER_SEC, 900,
						  4000 * fixture_random(&seed),
						  900 * fixture_random(&seed));
	}
	v = view_fixture_of(node_stats, NODES);
	v->version = ++version;
	return v;
}

static int compare(const void *a, const void *b)
{
	double da = *(const double *)a, db = *(const double *)b;

	return (da > db) - (da < db);
}

/*
 * Milliseconds for each of ROUNDS requests; with a view of its own for each, or the same for all.
 */
static double time_requests(struct api_fixture *f, bool fresh, size_t *bytes)
{
	double ms[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		struct api_response rs = {.status = 200};
		int64_t start;

		if (fresh)
			view_slot_publish(f->ctx.views, new_view());
		start = clock_mono_ns();
		api_fixture_answer(f, "/watcher", &rs);
		ms[i] = (double)(clock_mono_ns() - start) / NS_PER_MS;
		if (rs.status != 200) {
			fprintf(stderr, "status %d\n", rs.status);
			exit(1);
		}
		*bytes = rs.shared ? rs.shared->len : rs.body.len;
		shared_body_drop(rs.shared);
		buf_fini(&rs.body);
	}
	qsort(ms, ROUNDS, sizeof(ms[0]), compare);
	return ms[ROUNDS / 2];
}

int main(void)
{
	struct api_fixture f;
	size_t bytes;

	bench_begin("watcher");
	api_fixture_open(&f, new_view());
	bench_row("answer of 5000 nodes, made for one request", "ms", NAN, 0,
		  time_requests(&f, false, &bytes));
	bench_row("its size", "KiB", NAN, 0, (double)bytes / 1024);
	f.ctx.watcher_cache = watcher_cache_new();
	time_requests(&f, false, &bytes);
	bench_row("taken as made for the view", "ms", NAN, 0, time_requests(&f, false, &bytes));
	f.accept_encoding = "gzip";
	bench_row("made and compressed for a new view", "ms", NAN, 0,
		  time_requests(&f, true, &bytes));
	bench_row("its size", "KiB", NAN, 0, (double)bytes / 1024);
	watcher_cache_free(f.ctx.watcher_cache);
	api_fixture_close(&f);
	bench_end();
	return 0;
}
