/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model is a hash of entries per kind, and a hash of places: names of nodes, each with its node
 * object and its pods. Every change goes to both at once and is noted, as an entry of its kind or
 * as a place, so that the next cluster (model_cluster.c) costs by what changed and not by what
 * there is:
 *
 *     model_put ----> kinds[kind].entries ----> kinds[kind].changes ---+
 *               \                                                      +--> model_cluster
 *                +--> places[spec.nodeName] --> changes ---------------+
 *
 * Puts are level-triggered: an object that is put again unchanged keeps its record. After a watch
 * broke, a complete list therefore costs readers only what they missed.
 *
 * A list is put between model_replace_begin() and _end(): each put marks its entry with the list's
 * epoch, and the end removes unmarked entries. A second begin starts over.
 *
 * Nothing here can fail. Removed entries that are still in a table stay until the next cluster, or
 * until there are CHANGES_MAX of them.
 */
#include "aggregator/model/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * An entry's key is the address of its object pointer, so that the object may be exchanged for one
 * of the same name.
 */
static int compare_keys(const void *a, const void *b)
{
	return object_compare(*(struct object *const *)a, *(struct object *const *)b);
}

#define HASH_KEYCMP(a, b, size) compare_keys(a, b)
#include "aggregator/model/model_state.h"
#include "shared/array.h"

enum { CHANGES_MAX = 65536 };

const char *source_state_name(enum source_state s)
{
	static const char *const names[SOURCE_STATES] = {
		[SOURCE_NONE] = "none",		  [SOURCE_LISTING] = "listing",
		[SOURCE_SYNCED] = "synced",	  [SOURCE_STALE] = "stale",
		[SOURCE_FORBIDDEN] = "forbidden", [SOURCE_ABSENT] = "absent",
		[SOURCE_SNAPSHOT] = "snapshot",
	};

	return names[s];
}

struct model *model_new(void)
{
	struct model *m = mem_zalloc(1, sizeof(*m));

	for (enum object_kind k = 0; k < OBJECT_KINDS; k++)
		m->kinds[k].table = object_table_new(0, 0);
	return m;
}

void model_watch_pods(struct model *m, const struct model_pod_watch *watch)
{
	m->watch = watch;
}

/* --- entries ---------------------------------------------------------------------------------- */

static unsigned int hash_key(const struct object *o)
{
	unsigned int namespace, name;

	HASH_JEN(o->namespace, strlen(o->namespace), namespace);
	HASH_JEN(o->name, strlen(o->name), name);
	return namespace * 31 + name;
}

static struct model_entry *find_any(const struct model_kind *k, const struct object *key)
{
	struct model_entry *e;

	HASH_FIND_BYHASHVALUE(hh, k->entries, &key, 1, hash_key(key), e);
	return e;
}

static struct model_entry *add_entry(struct model_kind *k, struct object *o)
{
	struct model_entry *e = mem_zalloc(1, sizeof(*e));

	e->object = o;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, k->entries, &e->object, 1, hash_key(o), e);
	return e;
}

void model_entry_forget(struct model_kind *k, struct model_entry *e)
{
	/* It is in the hash, which so is not empty. */
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	HASH_DEL(k->entries, e);
	object_drop(e->object);
	free(e);
}

bool model_entry_is_listed(const struct model_entry *e)
{
	return !e->gone && (e->object->kind != OBJECT_POD || !e->place);
}

/* Notes an entry that is in the table, or belongs there, for model_kind_settle(). */
static void note_change(struct model *m, struct model_kind *k, struct model_entry *e)
{
	if (e->changed || (!e->in_table && !model_entry_is_listed(e)))
		return;
	e->changed = true;
	ARRAY_ADD(k->changes, k->change_count) = e;
	if (k->change_count == CHANGES_MAX)
		model_kind_settle(m, e->object->kind);
}

/* --- changes ---------------------------------------------------------------------------------- */

/* Both have their templates from the model; the sums of a resize follow from its text. */
static bool is_same_pod(const struct kube_pod *a, const struct kube_pod *b)
{
	return a->template == b->template && strcmp(a->node, b->node) == 0 &&
	       strcmp(a->nominated_node, b->nominated_node) == 0 && strcmp(a->qos, b->qos) == 0 &&
	       array_is_same_text(a->resized_text, b->resized_text) &&
	       strcmp(a->containers, b->containers) == 0 && a->created_ns == b->created_ns &&
	       a->deletion_ns == b->deletion_ns && a->started_ns == b->started_ns &&
	       a->scheduled_ns == b->scheduled_ns && a->unschedulable_ns == b->unschedulable_ns &&
	       a->disruption_ns == b->disruption_ns && a->restarts == b->restarts &&
	       a->phase == b->phase && a->resize == b->resize && a->ready == b->ready;
}

#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(struct kube_pod) == sizeof(struct object) + 112,
	       "a new member must be compared above, or its changes are not seen");
#endif

static bool is_same(const struct object *a, const struct object *b)
{
	if (strcmp(a->uid, b->uid) != 0)
		return false;
	if (a->kind == OBJECT_POD)
		return is_same_pod((const struct kube_pod *)a, (const struct kube_pod *)b);
	return strcmp(a->text, b->text) == 0;
}

static void leave(struct model *m, struct model_entry *e)
{
	m->pod_count -= e->object->kind == OBJECT_POD;
	model_place_leave(m, e);
	model_template_give(m, e->template);
	e->template = NULL;
}

static void tell_put(const struct model *m, const struct object *was, const struct object *o)
{
	if (m->watch && o->kind == OBJECT_POD)
		m->watch->put(m->watch->ctx, (const struct kube_pod *)was,
			      (const struct kube_pod *)o, m->generation);
}

static void tell_gone(const struct model *m, const struct object *o)
{
	if (m->watch && o->kind == OBJECT_POD)
		m->watch->gone(m->watch->ctx, (const struct kube_pod *)o);
}

void model_put(struct model *m, struct object *o)
{
	struct model_kind *k = &m->kinds[o->kind];
	struct model_entry *e = find_any(k, o);
	struct object *was = NULL, *replaced = NULL;
	struct model_template *t = NULL;

	if (o->kind == OBJECT_POD)
		t = model_template_take(m, (struct kube_pod *)o);
	if (e && !e->gone && is_same(e->object, o)) {
		e->epoch = k->epoch;
		model_template_give(m, t);
		object_drop(o);
		return;
	}
	m->generation++;
	if (!e) {
		e = add_entry(k, o);
	} else {
		replaced = e->object;
		if (!e->gone && strcmp(replaced->uid, o->uid) != 0)
			tell_gone(m, replaced);
		else if (!e->gone)
			was = replaced;
		if (!e->gone)
			leave(m, e);
		e->object = o;
		e->gone = false;
	}
	e->epoch = k->epoch;
	e->template = t;
	m->pod_count += o->kind == OBJECT_POD;
	model_place_enter(m, e);
	tell_put(m, was, o);
	if (replaced)
		object_drop(replaced);
	note_change(m, k, e);
}

static void remove_entry(struct model *m, struct model_kind *k, struct model_entry *e)
{
	m->generation++;
	tell_gone(m, e->object);
	leave(m, e);
	e->gone = true;
	if (e->in_table || e->changed)
		note_change(m, k, e);
	else
		model_entry_forget(k, e);
}

static struct model_entry *find(const struct model *m, enum object_kind kind, const char *namespace,
				const char *name)
{
	const struct object key = {.kind = kind, .namespace = namespace, .name = name};
	struct model_entry *e = find_any(&m->kinds[kind], &key);

	return e && !e->gone ? e : NULL;
}

int model_remove(struct model *m, enum object_kind kind, const char *namespace, const char *name)
{
	struct model_entry *e = find(m, kind, namespace, name);

	if (!e)
		return -ENOENT;
	remove_entry(m, &m->kinds[kind], e);
	return 0;
}

void model_replace_begin(struct model *m, enum object_kind kind)
{
	m->kinds[kind].epoch++;
	m->kinds[kind].replacing = true;
}

/* A removal may settle the kind, which frees entries that are gone. */
void model_replace_end(struct model *m, enum object_kind kind)
{
	struct model_kind *k = &m->kinds[kind];
	size_t count = 0, room = HASH_COUNT(k->entries);
	struct model_entry **old = mem_alloc((room + 1) * sizeof(struct model_entry *));

	assert(k->replacing);
	k->replacing = false;
	for (struct model_entry *e = k->entries; e; e = e->hh.next)
		if (!e->gone && e->epoch != k->epoch)
			old[count++] = e;
	for (size_t i = 0; i < count; i++)
		remove_entry(m, k, old[i]);
	free(old);
}

void model_clear(struct model *m, enum object_kind kind)
{
	model_replace_begin(m, kind);
	model_replace_end(m, kind);
}

void model_set_source(struct model *m, enum object_kind kind, const struct model_source *source)
{
	struct model_source *own = &m->sources[kind];

	if (own->state == source->state && own->changed_ns == source->changed_ns &&
	    own->event_ns == source->event_ns && own->relists == source->relists &&
	    own->watch_errors == source->watch_errors && own->skipped == source->skipped &&
	    strcmp(own->api_version, source->api_version) == 0 &&
	    strcmp(own->message, source->message) == 0 &&
	    strcmp(own->skipped_last, source->skipped_last) == 0 &&
	    unreadables_equal(&own->unreadable, &source->unreadable))
		return;
	*own = *source;
	m->generation++;
}

enum source_state model_source_state(const struct model *m, enum object_kind kind)
{
	return m->sources[kind].state;
}

const struct object *model_find(const struct model *m, enum object_kind kind, const char *namespace,
				const char *name)
{
	const struct model_entry *e = find(m, kind, namespace, name);

	return e ? e->object : NULL;
}

uint64_t model_generation(const struct model *m)
{
	return m->generation;
}

static void free_kind(struct model *m, struct model_kind *k)
{
	struct model_entry *e, *next;

	HASH_ITER(hh, k->entries, e, next)
	{
		if (!e->gone)
			leave(m, e);
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list is kept by uthash */
		model_entry_forget(k, e);
	}
	free(k->changes);
	object_table_drop(k->table);
}

void model_free(struct model *m)
{
	struct model_place *p, *next;

	if (!m)
		return;
	for (enum object_kind k = 0; k < OBJECT_KINDS; k++)
		free_kind(m, &m->kinds[k]);
	HASH_ITER(hh, m->places, p, next)
	{
		model_place_forget(m, p);
	}
	assert(!m->templates);
	free(m->changes);
	cluster_drop(m->cluster);
	free(m);
}
