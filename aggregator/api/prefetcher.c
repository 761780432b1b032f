/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Score rows and the index of node names are cached with a view (view_cache.h) and made by the first
 * request that needs them. A large cluster has a new view every second, so the first request of
 * nearly every scheduling cycle would make them from cold memory, which takes 4 ms for 5000 nodes
 * where all else of a request takes 3 ms. Here a thread makes them first:
 *
 *     loop thread: view published --> prefetcher_published() --> thread: score rows, names of nodes
 *     HTTP thread: request --------> prefetcher_asked()
 *
 * A request waits for the thread rather than do the work twice, so the thread has the same nice
 * value as the workers. The thread sleeps from a minute after the last request on. Several views
 * published during one run cost one more run, for the newest.
 *
 * Only the start of the thread can fail. A run that is due at shutdown is still made.
 */
#include "aggregator/api/prefetcher.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/score/score_rows.h"
#include "aggregator/state/view_cache.h"
#include "shared/clock.h"
#include "shared/hash.h"
#include "shared/mem.h"
#include "shared/thread.h"

/* --- places of nodes by their names */

struct node_index {
	struct view_cached cached; /* first */
	uint64_t set_version; /* node_set_version of the view it was made of */
	size_t count;
	struct node_entry *by_name; /* hash */
	struct node_entry {
		UT_hash_handle hh;
	} of[]; /* in the order of the view; the names are behind them */
};

static void free_index(struct view_cached *cached)
{
	struct node_index *x = (struct node_index *)cached;

	HASH_CLEAR(hh, x->by_name);
	free(x);
}

static struct view_cached *make_index(const struct view *v, const struct view_cached *before)
{
	const struct node_index *last = (const struct node_index *)before;
	struct node_index *x;
	size_t text = 0;
	char *room;

	if (last && v->node_set_version && last->set_version == v->node_set_version)
		return view_cached_hold(before);
	for (size_t i = 0; i < v->node_count; i++)
		text += strlen(v->nodes[i]->name) + 1;
	x = mem_zalloc(1, sizeof(*x) + v->node_count * sizeof(x->of[0]) + text);
	view_cached_init(&x->cached, free_index);
	x->set_version = v->node_set_version;
	x->count = v->node_count;
	room = (char *)&x->of[x->count];
	for (size_t i = 0; i < x->count; i++) {
		const char *name = mem_put_text(&room, v->nodes[i]->name);

		HASH_ADD_KEYPTR(hh, x->by_name, name, strlen(name), &x->of[i]);
	}
	return &x->cached;
}

const struct node_index *node_index_of(const struct view *v)
{
	return (const struct node_index *)view_cache_get(v, VIEW_CACHE_NAMES, make_index);
}

size_t node_index_find(const struct node_index *x, const char *name)
{
	const struct node_entry *found;

	HASH_FIND_STR(x->by_name, name, found);
	return found ? (size_t)(found - x->of) : x->count;
}

/* --- the thread */

#define INTEREST_NS (60 * NS_PER_SEC)

struct prefetcher {
	/* fixed after start */
	struct view_slot *views; /* borrowed */
	struct helper thread;

	/* any thread */
	atomic_int_least64_t asked_ns; /* Unix time; 0: never */
};

static void *run(void *arg)
{
	struct prefetcher *w = arg;

	while (helper_wait(&w->thread, INT64_MAX)) {
		struct view *v = view_slot_take(w->views);

		score_rows_of(v);
		node_index_of(v);
		view_drop(v);
	}
	return NULL;
}

int prefetcher_start(struct prefetcher **out, struct view_slot *views, struct error *error)
{
	struct prefetcher *w = *out = mem_zalloc(1, sizeof(*w));

	w->views = views;
	return helper_start(&w->thread, "scores", run, w, error);
}

void prefetcher_stop(struct prefetcher *w)
{
	if (w)
		helper_stop(&w->thread);
	free(w);
}

void prefetcher_asked(struct prefetcher *w, int64_t now_ns)
{
	if (w)
		atomic_store_explicit(&w->asked_ns, now_ns, memory_order_relaxed);
}

void prefetcher_published(struct prefetcher *w, int64_t now_ns)
{
	if (w && now_ns - atomic_load_explicit(&w->asked_ns, memory_order_relaxed) <= INTEREST_NS)
		helper_wake(&w->thread);
}
