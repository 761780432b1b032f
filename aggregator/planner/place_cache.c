/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few cores under one lock, which is held for choosing one only: the caller builds, updates and
 * uses its core without the lock. The core that was used last is taken first, as it needs the
 * smallest update; the second is built when two callers work at once. A third caller waits for
 * milliseconds.
 *
 * Nothing can fail. At shutdown place_cache_free() finds all cores given back.
 */
#include "aggregator/planner/place_cache.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object.h"
#include "shared/clock.h"
#include "shared/mem.h"

#define IDLE_NS (600 * NS_PER_SEC)

struct place_cache {
	pthread_mutex_t lock;
	pthread_cond_t given;
	/* under lock */
	size_t taken; /* cores, including those that are being built */
	int64_t taken_ns; /* when one was taken last */
	size_t count;
	struct cached {
		struct place *place; /* owned */
		int64_t taken_ns; /* when the cache gave one out last, before this one came back */
	} idle[PLACE_CACHE_MAX]; /* the one that was used last stands last */
};

struct place_cache *place_cache_new(void)
{
	struct place_cache *cache = mem_zalloc(1, sizeof(*cache));

	pthread_mutex_init(&cache->lock, NULL);
	pthread_cond_init(&cache->given, NULL);
	return cache;
}

void place_cache_free(struct place_cache *cache)
{
	if (!cache)
		return;
	assert(!cache->taken);
	place_cache_tidy(cache, INT64_MAX);
	pthread_cond_destroy(&cache->given);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static struct place *build(struct view *v, int64_t now_ns)
{
	struct place_options o;

	place_options_default(&o);
	o.now_ns = now_ns;
	return place_new(v, &o);
}

struct place *place_cache_take(struct place_cache *cache, struct view *v, int64_t now_ns)
{
	struct place *p = NULL;

	if (!cache)
		return build(v, now_ns);
	place_cache_tidy(cache, now_ns);
	pthread_mutex_lock(&cache->lock);
	while (cache->taken == PLACE_CACHE_MAX)
		pthread_cond_wait(&cache->given, &cache->lock);
	cache->taken++;
	cache->taken_ns = now_ns;
	if (cache->count)
		p = cache->idle[--cache->count].place;
	pthread_mutex_unlock(&cache->lock);
	if (!p)
		return build(v, now_ns);
	place_update(p, v, now_ns);
	return p;
}

void place_cache_give(struct place_cache *cache, struct place *p)
{
	if (!cache) {
		place_free(p);
		return;
	}
	pthread_mutex_lock(&cache->lock);
	assert(cache->taken);
	cache->taken--;
	cache->idle[cache->count++] = (struct cached){p, cache->taken_ns};
	pthread_cond_signal(&cache->given);
	pthread_mutex_unlock(&cache->lock);
}

void place_cache_tidy(struct place_cache *cache, int64_t now_ns)
{
	struct place *old[PLACE_CACHE_MAX];
	size_t kept = 0, old_count = 0;

	if (!cache)
		return;
	pthread_mutex_lock(&cache->lock);
	for (size_t i = 0; i < cache->count; i++)
		if (now_ns - cache->idle[i].taken_ns <= IDLE_NS)
			cache->idle[kept++] = cache->idle[i];
		else
			old[old_count++] = cache->idle[i].place;
	cache->count = kept;
	pthread_mutex_unlock(&cache->lock);
	while (old_count)
		place_free(old[--old_count]);
}

bool place_cache_can_answer(const struct view *v, struct error *error)
{
	static const enum object_kind needed[] = {OBJECT_NODE, OBJECT_POD};

	if (!v->cluster) {
		error_set(error, "nothing is known of the cluster's nodes and pods: there is no "
				 "Kubernetes API and no snapshot to ask");
		return false;
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		const struct model_source *s = &v->cluster->sources[needed[i]];

		if (view_knows(v, needed[i]))
			continue;
		error_set(error, "the cluster's %s are not known: %s%s%.200s",
			  object_kind_resource(needed[i]), source_state_name(s->state),
			  *s->message ? ": " : "", s->message);
		return false;
	}
	return true;
}

/* --- reserved pods */

/*
 * The view has most reserved pods, as pending ones; others came after it. A record of such a pod is
 * made from the sums and the name of its reservation, by way of an object's JSON.
 */

static void add_amounts(cJSON *requests, const struct resources *r)
{
	const char *name;
	int64_t amount;

	for (size_t at = 0; resources_next(r, &at, &name, &amount);) {
		char text[32];

		if (strcmp(name, resource_name(RESOURCE_PODS)) == 0)
			continue; /* every pod is one */
		snprintf(text, sizeof(text), "%" PRId64 "%s", amount,
			 strcmp(name, resource_name(RESOURCE_CPU)) == 0 ? "m" : "");
		cJSON_AddStringToObject(requests, name, text);
	}
}

/* NULL: no pod can request these amounts. */
static struct kube_pod *make_record(const struct reservation *e)
{
	cJSON *pod = cJSON_CreateObject(), *metadata, *spec, *container;
	char field[OBJECT_FIELD_MAX] = "";
	struct object *record = NULL;
	struct error why = {""};

	metadata = cJSON_AddObjectToObject(pod, "metadata");
	cJSON_AddStringToObject(metadata, "namespace", e->namespace);
	cJSON_AddStringToObject(metadata, "name", e->name);
	cJSON_AddStringToObject(metadata, "uid", e->uid);
	spec = cJSON_AddObjectToObject(pod, "spec");
	cJSON_AddNumberToObject(spec, "priority", e->priority);
	container = cJSON_CreateObject();
	cJSON_AddStringToObject(container, "name", "reserved");
	add_amounts(cJSON_AddObjectToObject(cJSON_AddObjectToObject(container, "resources"),
					    "requests"),
		    &e->requests);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(spec, "containers"), container);
	if (object_read(OBJECT_POD, pod, &record, field, &why))
		record = NULL;
	cJSON_Delete(pod);
	return (struct kube_pod *)record;
}

static place_pod find_or_add(struct place *p, const struct reservation *e)
{
	place_pod known = place_find_pod(p, e->namespace, e->name);
	struct kube_pod *record;

	if (known != PLACE_NONE && strcmp(place_pod_record(p, known)->object.uid, e->uid) == 0)
		return known;
	record = make_record(e);
	if (!record)
		return PLACE_NONE;
	known = place_add_pod(p, record);
	object_drop(&record->object);
	return known;
}

size_t reserved_pods_put(struct place *p, const struct view *v,
			 const struct reservations_copy *reservations, const char *except_uid,
			 place_mark *mark)
{
	uint64_t generation = v->cluster ? v->cluster->generation : 0;
	size_t bound = 0;

	*mark = place_fork(p);
	for (size_t i = 0; reservations && i < reservations->count; i++) {
		const struct reservation *e = reservations->of[i];
		place_node node;
		place_pod pod;

		if (!*e->node || strcmp(e->uid, except_uid) == 0 ||
		    !reservations_counts(e, generation))
			continue;
		bound += e->state == RESERVATIONS_BOUND;
		node = place_find_node(p, e->node);
		pod = node == PLACE_NONE ? PLACE_NONE : find_or_add(p, e);
		if (pod != PLACE_NONE && place_where(p, pod) == PLACE_NONE)
			place_put(p, pod, node);
	}
	return bound;
}
