/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few slots under one lock. The lock is held for choosing a slot only: a core is built, brought
 * up to date and asked by the one who took it. The core that was taken last is taken first, so that
 * it has the least to catch up with, and the second is only built when two ask at once. Whoever
 * comes third waits; answers take milliseconds.
 *
 * Nothing can fail. At shutdown nobody asks any more, and place_pool_free() finds all cores given
 * back.
 */
#include "aggregator/planner/place_pool.h"

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

struct slot {
	struct place *place; /* owned; NULL: none, or it is being built */
	bool taken;
	int64_t taken_ns; /* when it was taken last */
};

struct place_pool {
	struct place_options options; /* fixed after start */
	pthread_mutex_t lock;
	pthread_cond_t given;
	/* under lock */
	struct slot slots[PLACE_POOL_MAX];
};

struct place_pool *place_pool_new(const struct place_options *o)
{
	struct place_pool *pool = mem_zalloc(1, sizeof(*pool));

	pool->options = *o;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->given, NULL);
	return pool;
}

void place_pool_free(struct place_pool *pool)
{
	if (!pool)
		return;
	for (size_t i = 0; i < PLACE_POOL_MAX; i++) {
		assert(!pool->slots[i].taken);
		place_free(pool->slots[i].place);
	}
	pthread_cond_destroy(&pool->given);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Under lock. The one that was taken last, of those that are free; NULL: none is. */
static struct slot *find_free(struct place_pool *pool)
{
	struct slot *best = NULL;

	for (size_t i = 0; i < PLACE_POOL_MAX; i++) {
		struct slot *s = &pool->slots[i];

		if (!s->taken && (!best || (s->place && !best->place) ||
				  (s->place && s->taken_ns > best->taken_ns)))
			best = s;
	}
	return best;
}

static struct place *build(const struct place_options *options, struct view *v, int64_t now_ns)
{
	struct place_options o = *options;

	o.now_ns = now_ns;
	return place_new(v, &o);
}

static struct place *build_default(struct view *v, int64_t now_ns)
{
	struct place_options o;

	place_options_default(&o);
	return build(&o, v, now_ns);
}

struct place *place_pool_take(struct place_pool *pool, struct view *v, int64_t now_ns)
{
	struct place *p;
	struct slot *s;

	if (!pool)
		return build_default(v, now_ns);
	place_pool_tidy(pool, now_ns);
	pthread_mutex_lock(&pool->lock);
	for (s = find_free(pool); !s; s = find_free(pool))
		pthread_cond_wait(&pool->given, &pool->lock);
	s->taken = true;
	s->taken_ns = now_ns;
	p = s->place;
	pthread_mutex_unlock(&pool->lock);
	if (p) {
		place_update(p, v, now_ns);
		return p;
	}
	p = build(&pool->options, v, now_ns);
	pthread_mutex_lock(&pool->lock);
	s->place = p;
	pthread_mutex_unlock(&pool->lock);
	return p;
}

void place_pool_give(struct place_pool *pool, struct place *p)
{
	size_t i = 0;

	if (!pool) {
		place_free(p);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	while (i < PLACE_POOL_MAX && !(pool->slots[i].taken && pool->slots[i].place == p))
		i++;
	assert(i < PLACE_POOL_MAX);
	pool->slots[i].taken = false;
	pthread_cond_signal(&pool->given);
	pthread_mutex_unlock(&pool->lock);
}

void place_pool_tidy(struct place_pool *pool, int64_t now_ns)
{
	struct place *idle[PLACE_POOL_MAX] = {NULL};

	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	for (size_t i = 0; i < PLACE_POOL_MAX; i++) {
		struct slot *s = &pool->slots[i];

		if (s->taken || now_ns - s->taken_ns <= IDLE_NS)
			continue;
		idle[i] = s->place;
		s->place = NULL;
	}
	pthread_mutex_unlock(&pool->lock);
	for (size_t i = 0; i < PLACE_POOL_MAX; i++)
		place_free(idle[i]);
}

bool place_pool_can_answer(const struct view *v, struct error *error)
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
 * The view knows most of them, as pending; others came after it. Of those the reservations have
 * sums and a name, from which a record is made by the one way there is to make one: of an object's
 * JSON.
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

/* NULL: what was reserved is nothing that a pod could ask for. */
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
