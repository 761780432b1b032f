/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that all questions about scores share is cached with a view (view_cache.h), and made by the
 * first who asks. Views follow each other every second where thousands of agents report, so that
 * with a scheduler that asks now and then every question would be the first: it would read node
 * stats that no cache of the processor has yet. Here a thread asks first:
 *
 *     loop thread: view published --> warmer_published() --> thread: score rows, names of nodes
 *     HTTP thread: question ------> warmer_asked()           (what is made already costs a look)
 *
 * A question that comes meanwhile waits for the thread rather than do the work twice, so the thread
 * is no nicer than who answers. Nobody asks, nothing is made: a minute behind the last question it
 * sleeps. Several views published while one is warmed cost one more turn, for the newest.
 *
 * Nothing can fail but the start of the thread. At shutdown a turn that is due is still made.
 */
#include "aggregator/api/warmer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/score/score_rows.h"
#include "aggregator/state/view_cache.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/thread.h"

/*
 * --- places of nodes by their names
 *
 * A search by halves compares a name with a dozen others, each somewhere else in memory. Here a
 * name is compared with the one that has its hash, and all names lie behind each other in the order
 * of the view, which is nearly the order of most questions.
 */

struct slot {
	uint32_t hash;
	uint32_t place; /* + 1; 0: free */
	uint32_t name; /* where it begins in names */
};

/* An open hash table, at most half full. */
struct node_index {
	struct view_cached cached; /* first */
	uint64_t set_version; /* node_set_version of the view it was made of */
	size_t count, mask;
	char *names; /* in the same block */
	struct slot slots[];
};

/* FNV-1a: names are short. */
static uint32_t hash_name(const char *name)
{
	uint32_t hash = 0x811c9dc5;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x01000193;
	return hash ^ hash >> 15;
}

static void add(struct node_index *x, size_t place, const char *name)
{
	uint32_t hash = hash_name(name);
	size_t at = hash & x->mask;

	while (x->slots[at].place)
		at = (at + 1) & x->mask;
	x->slots[at] = (struct slot){hash, (uint32_t)place + 1, (uint32_t)(name - x->names)};
}

static void free_index(struct view_cached *cached)
{
	free(cached);
}

static struct node_index *allocate(const struct view *v)
{
	size_t text = 0, size = 64;
	struct node_index *x;

	for (size_t i = 0; i < v->node_count; i++)
		text += strlen(v->nodes[i]->name) + 1;
	while (size < 2 * v->node_count)
		size *= 2;
	x = mem_zalloc(1, sizeof(*x) + size * sizeof(x->slots[0]) + text);
	view_cached_init(&x->cached, free_index);
	x->set_version = v->node_set_version;
	x->count = v->node_count;
	x->mask = size - 1;
	x->names = (char *)&x->slots[size];
	return x;
}

static struct view_cached *make_index(const struct view *v, const struct view_cached *before)
{
	const struct node_index *last = (const struct node_index *)before;
	struct node_index *x;
	char *name;

	if (last && v->node_set_version && last->set_version == v->node_set_version)
		return view_cached_hold(before);
	x = allocate(v);
	name = x->names;
	for (size_t i = 0; i < v->node_count; i++) {
		size_t size = strlen(v->nodes[i]->name) + 1;

		memcpy(name, v->nodes[i]->name, size);
		add(x, i, name);
		name += size;
	}
	return &x->cached;
}

const struct node_index *node_index_of(const struct view *v)
{
	return (const struct node_index *)view_cache_get(v, VIEW_CACHE_NAMES, make_index);
}

size_t node_index_find(const struct node_index *x, const char *name)
{
	uint32_t hash = hash_name(name);

	for (size_t at = hash & x->mask; x->slots[at].place; at = (at + 1) & x->mask)
		if (x->slots[at].hash == hash && strcmp(x->names + x->slots[at].name, name) == 0)
			return x->slots[at].place - 1;
	return x->count;
}

/* --- the thread */

#define INTEREST_NS (60 * NS_PER_SEC)

struct warmer {
	/* fixed after start */
	struct view_slot *views; /* borrowed */
	pthread_t thread;
	bool started;

	/* any thread */
	atomic_int_least64_t asked_ns; /* Unix time; 0: never */

	pthread_mutex_t lock;
	pthread_cond_t news;
	/* under lock */
	bool due, stop;
};

struct warmer *warmer_new(struct view_slot *views)
{
	struct warmer *w = mem_zalloc(1, sizeof(*w));

	w->views = views;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->news, NULL);
	return w;
}

static void warm(struct view_slot *views)
{
	struct view *v = view_slot_take(views);

	score_rows_of(v);
	node_index_of(v);
	view_drop(v);
}

/* Until there is something to do. False: it stops. */
static bool wait(struct warmer *w)
{
	bool due;

	pthread_mutex_lock(&w->lock);
	while (!w->due && !w->stop)
		pthread_cond_wait(&w->news, &w->lock);
	due = w->due;
	w->due = false;
	pthread_mutex_unlock(&w->lock);
	return due;
}

static void *run(void *arg)
{
	struct warmer *w = arg;

	while (wait(w))
		warm(w->views);
	return NULL;
}

int warmer_start(struct warmer *w, struct error *error)
{
	int rc = thread_start(&w->thread, 0, run, w);

	if (rc) {
		error_set(error, "no thread for scores: %s", strerror(-rc));
		return rc;
	}
	w->started = true;
	return 0;
}

void warmer_stop(struct warmer *w)
{
	if (!w || !w->started)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->news);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	w->started = false;
}

void warmer_free(struct warmer *w)
{
	if (!w)
		return;
	pthread_cond_destroy(&w->news);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

void warmer_asked(struct warmer *w, int64_t now_ns)
{
	if (w)
		atomic_store_explicit(&w->asked_ns, now_ns, memory_order_relaxed);
}

static bool is_asked(struct warmer *w, int64_t now_ns)
{
	int64_t asked_ns = atomic_load_explicit(&w->asked_ns, memory_order_relaxed);

	return now_ns - asked_ns <= INTEREST_NS;
}

void warmer_published(struct warmer *w, int64_t now_ns)
{
	if (!w || !is_asked(w, now_ns))
		return;
	pthread_mutex_lock(&w->lock);
	w->due = true;
	pthread_cond_signal(&w->news);
	pthread_mutex_unlock(&w->lock);
}
