/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view owns its array and one hold of each node, so publishing copies pointers and a reader keeps
 * what it took for as long as it likes. The slot's mutex covers a pointer copy and a count; the
 * last drop, which may free thousands of nodes, always happens outside it.
 */
#include "aggregator/state/view.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/view_cache.h"
#include "shared/array.h"
#include "shared/mem.h"
#include "shared/refs.h"
#include "shared/thread.h"

#define NS_PER_SEC 1000000000LL

struct view_slot {
	/* fixed before there are readers */
	void (*wanted)(void *ctx, uint64_t ticket); /* NULL: nobody publishes on request */
	void *ctx;

	pthread_mutex_t lock;
	pthread_cond_t answer; /* and another view */
	/* under lock */
	struct view *view; /* held */
	uint64_t asked, answered; /* the newest tickets */
};

struct view *view_new(uint64_t version, int64_t time_ns, struct view_node **nodes, size_t count,
		      struct cluster *cluster, struct owner_table *owners)
{
	struct view *v = mem_alloc(sizeof(*v));

	for (size_t i = 1; i < count; i++)
		assert(strcmp(nodes[i - 1]->name, nodes[i]->name) < 0);
	atomic_init(&v->users, 1);
	v->version = version;
	v->time_ns = time_ns;
	v->node_count = count;
	v->nodes = nodes;
	v->cluster = cluster;
	v->owners = owners;
	v->namespaces = NULL;
	v->demand = NULL;
	v->node_set_version = 0;
	v->cache = view_cache_new();
	return v;
}

struct view *view_without_pods(const struct view *v)
{
	struct view_node **nodes = mem_alloc((v->node_count + 1) * sizeof(struct view_node *));
	struct view *out;

	for (size_t i = 0; i < v->node_count; i++)
		nodes[i] = view_node_without_pods(v->nodes[i]);
	out = view_new(v->version, v->time_ns, nodes, v->node_count,
		       v->cluster ? cluster_hold(v->cluster) : NULL, NULL);
	out->node_set_version = v->node_set_version;
	return out;
}

struct view *view_hold(struct view *v)
{
	refs_hold(&v->users);
	return v;
}

void view_drop(struct view *v)
{
	if (!v || !refs_drop(&v->users))
		return;
	for (size_t i = 0; i < v->node_count; i++)
		view_node_drop(v->nodes[i]);
	free(v->nodes);
	cluster_drop(v->cluster);
	owner_table_drop(v->owners);
	namespace_table_drop(v->namespaces);
	demand_table_drop(v->demand);
	view_cache_free(v->cache);
	free(v);
}

static int compare_node(const void *key, const void *node)
{
	return strcmp(key, (*(struct view_node *const *)node)->name);
}

size_t view_index(const struct view *v, const char *node)
{
	struct view_node **found;

	if (!v->node_count)
		return 0;
	found = bsearch(node, v->nodes, v->node_count, sizeof(struct view_node *), compare_node);
	return found ? (size_t)(found - v->nodes) : v->node_count;
}

const struct view_node *view_find(const struct view *v, const char *node)
{
	size_t at = view_index(v, node);

	return at < v->node_count ? v->nodes[at] : NULL;
}

bool view_knows(const struct view *v, enum object_kind kind)
{
	enum source_state state = v->cluster ? v->cluster->sources[kind].state : SOURCE_NONE;

	return state == SOURCE_SYNCED || state == SOURCE_STALE || state == SOURCE_SNAPSHOT;
}

static int compare_owner(const void *uid, const void *owner)
{
	return strcmp(uid, ((const struct owner_use *)owner)->uid);
}

const struct workload_use *view_workload(const struct view *v, const char *key)
{
	return v->owners && *key ? workload_table_find(v->owners->workloads, key) : NULL;
}

const struct owner_use *view_owner(const struct view *v, const char *uid)
{
	const struct owner_table *t = v->owners;

	return t ? bsearch(uid, t->of, t->count, sizeof(t->of[0]), compare_owner) : NULL;
}

const struct namespace_sums *view_namespace(const struct view *v, const char *name)
{
	const struct namespace_table *t = v->namespaces;

	return t ? array_search_name(t->of, t->count, sizeof(t->of[0]), name) : NULL;
}

struct view_slot *view_slot_new(void)
{
	struct view_slot *s = mem_zalloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	thread_cond_init(&s->answer);
	s->view = view_new(0, 0, NULL, 0, NULL, NULL);
	return s;
}

void view_slot_free(struct view_slot *s)
{
	if (!s)
		return;
	view_drop(s->view);
	pthread_cond_destroy(&s->answer);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void view_slot_publish(struct view_slot *s, struct view *v)
{
	struct view *old;

	pthread_mutex_lock(&s->lock);
	old = s->view;
	s->view = v;
	pthread_cond_broadcast(&s->answer);
	pthread_mutex_unlock(&s->lock);
	view_drop(old);
}

struct view *view_slot_take(struct view_slot *s)
{
	struct view *v;

	pthread_mutex_lock(&s->lock);
	v = view_hold(s->view);
	pthread_mutex_unlock(&s->lock);
	return v;
}

void view_slot_on_refresh(struct view_slot *s, void (*wanted)(void *ctx, uint64_t ticket),
			  void *ctx)
{
	s->wanted = wanted;
	s->ctx = ctx;
}

bool view_slot_refresh(struct view_slot *s, int64_t until_ns)
{
	uint64_t ticket;
	bool answered;

	if (!s->wanted)
		return false;
	pthread_mutex_lock(&s->lock);
	ticket = ++s->asked;
	pthread_mutex_unlock(&s->lock);
	s->wanted(s->ctx, ticket);
	pthread_mutex_lock(&s->lock);
	while (s->answered < ticket && thread_cond_wait(&s->answer, &s->lock, until_ns))
		;
	answered = s->answered >= ticket;
	pthread_mutex_unlock(&s->lock);
	return answered;
}

bool view_slot_await(struct view_slot *s, uint64_t version, int64_t until_ns)
{
	bool newer;

	if (!s->wanted)
		return false;
	pthread_mutex_lock(&s->lock);
	while (s->view->version == version && thread_cond_wait(&s->answer, &s->lock, until_ns))
		;
	newer = s->view->version != version;
	pthread_mutex_unlock(&s->lock);
	return newer;
}

void view_slot_answer(struct view_slot *s, uint64_t ticket)
{
	pthread_mutex_lock(&s->lock);
	if (ticket > s->answered) {
		s->answered = ticket;
		pthread_cond_broadcast(&s->answer);
	}
	pthread_mutex_unlock(&s->lock);
}
