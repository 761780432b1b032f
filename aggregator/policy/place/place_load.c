/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a view into arrays: nodes, their pods, then pending pods. place_follow.c updates them. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/pod_sums.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

void place_options_default(struct place_options *o)
{
	*o = (struct place_options){.cap = {.on = true,
					    .cpu_share = 0.85,
					    .mem_share = 0.90,
					    .z = 2.33,
					    .contention = 0.1}};
}

/* --- nodes */

/* Makes room for all resources in each row. */
static void fit_dims(struct place *p)
{
	uint32_t before = p->dim_room;
	int64_t *available;
	place_sum *used;

	if (p->dims <= before)
		return;
	p->dim_room = p->dims < 8 ? 8 : p->dims * 2;
	available = mem_zalloc((size_t)p->node_count * p->dim_room + 1, sizeof(*available));
	used = mem_zalloc((size_t)p->node_count * p->dim_room + 1, sizeof(*used));
	for (size_t n = 0; before && n < p->node_count; n++) {
		memcpy(available + n * p->dim_room, p->available + n * before,
		       before * sizeof(*available));
		memcpy(used + n * p->dim_room, p->used + n * before, before * sizeof(*used));
	}
	free(p->available);
	free(p->used);
	p->available = available;
	p->used = used;
}

static void offer(struct place *p, place_node n)
{
	const struct kube_node *node = p->nodes[n].object;
	const struct resources *has = node ? &node->allocatable : &RESOURCES_NONE;
	int64_t *row;

	for (uint32_t i = 0; i < has->extended_count; i++)
		place_dim(p, has->extended[i].name);
	fit_dims(p);
	row = p->available + (size_t)n * p->dim_room;
	memset(row, 0, p->dim_room * sizeof(*row));
	memcpy(row, has->of, sizeof(has->of));
	for (uint32_t i = 0; i < has->extended_count; i++)
		row[place_dim(p, has->extended[i].name)] = has->extended[i].amount;
}

void place_load_node(struct place *p, place_node n)
{
	const struct kube_node *node = p->nodes[n].object;

	offer(p, n);
	p->gone[n] = !node || p->nodes[n].leaving || place_ending(p, node);
	p->nodes[n].cordoned = node && node->unschedulable;
	place_use_of_node(p, n);
	place_trees_touch(p, n);
}

bool place_cap_of(const struct place_options *o, const struct view *v)
{
	for (size_t n = 0; o->cap.on && n < v->node_count; n++) {
		const struct window_set *set =
			window_longest(v->nodes[n]->stats->usage.windows, NULL);

		if (set && set->cpu_milli.known)
			return true;
	}
	return false;
}

static void free_nodes(struct place *p)
{
	free(p->nodes);
	free(p->gone);
	free(p->available);
	free(p->used);
	free(p->first);
	free(p->use);
	p->available = NULL;
	p->used = NULL;
	p->dim_room = 0;
	place_trees_free(p);
}

static void load_nodes(struct place *p)
{
	size_t count = p->view->node_count;

	p->node_count = (uint32_t)count;
	p->nodes = mem_zalloc(count + 1, sizeof(*p->nodes));
	p->gone = mem_zalloc(count + 1, sizeof(*p->gone));
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): it is a list of pointers */
	p->first = mem_zalloc(count + 1, sizeof(*p->first));
	p->use = mem_zalloc(count + 1, sizeof(*p->use));
	fit_dims(p);
	for (place_node n = 0; n < p->node_count; n++) {
		place_node_info_read(p->view->nodes[n], &p->nodes[n]);
		place_load_node(p, n);
	}
}

/* --- pods */

static struct place_slot *new_slot(struct place *p, char *key)
{
	struct place_slot *s = mem_zalloc(1, sizeof(*s));

	s->key = key;
	s->node = s->home = s->claim = PLACE_NONE;
	s->home_holding = s->holding = PLACE_NONE;
	if (p->free_pods.count) {
		s->id = p->free_pods.of[--p->free_pods.count];
		p->pods.of[s->id] = s;
	} else {
		s->id = p->pods.count;
		PLACE_LIST_ADD(&p->pods, s);
	}
	if (key)
		HASH_ADD_KEYPTR(hh, p->by_name, s->key, strlen(s->key), s);
	return s;
}

static void forget_resized(struct place_slot *s)
{
	if (s->resized)
		free(s->resized->of);
	free(s->resized);
	s->resized = NULL;
}

static void slot_free(struct place_slot *s)
{
	if (!s->key)
		object_drop((struct object *)&s->record->object);
	forget_resized(s);
	free(s->key);
	free(s);
}

void place_slot_free(struct place *p, struct place_slot *s)
{
	if (s->key)
		HASH_DEL(p->by_name, s);
	place_class_join(s, NULL);
	p->pods.of[s->id] = NULL;
	PLACE_LIST_ADD(&p->free_pods, s->id);
	slot_free(s);
}

/* Reads the record; the pod is on no node. */
static void read_slot(struct place *p, struct place_slot *s, const struct kube_pod *pod,
		      const struct view_pod *vp)
{
	bool daemon = strcmp(pod->template->owner.kind, "DaemonSet") == 0;

	s->record = pod;
	place_class_join(s, place_class_of(p, pod));
	s->leaving = pod->deletion_ns != 0;
	s->bound_to = daemon && *pod->node ? pod->node : NULL;
	forget_resized(s);
	if (pod->resized) {
		s->resized = mem_zalloc(1, sizeof(*s->resized));
		place_shape_read(p, &pod->resized->requests, s->resized);
	}
	place_use_of_pod(p, s->home, vp, pod, &s->use);
}

static place_pod meet(struct place *p, const struct kube_pod *pod, const struct view_pod *vp,
		      place_node home)
{
	char *key = mem_printf("%s/%s", pod->object.namespace, pod->object.name);
	struct place_slot *s;

	HASH_FIND_STR(p->by_name, key, s);
	if (s) {
		free(key);
	} else {
		s = new_slot(p, key);
		PLACE_LIST_ADD(&p->loose, s->id);
	}
	s->seen = true;
	s->home = home;
	read_slot(p, s, pod, vp);
	return s->id;
}

void place_meet_node(struct place *p, place_node n)
{
	const struct view_node *v = p->nodes[n].view;

	for (size_t i = 0; i < v->pod_count; i++)
		if (v->pods[i].pod && kube_pod_is_active(v->pods[i].pod))
			meet(p, v->pods[i].pod, &v->pods[i], n);
}

void place_meet_pending(struct place *p)
{
	const struct object_table *t = view_table(p->view, OBJECT_POD);

	p->waiting.count = 0;
	for (size_t i = 0; t && i < t->count && !place_is_out_of_time(p); i++) {
		const struct kube_pod *pod = (const struct kube_pod *)t->of[i];

		if (kube_pod_is_active(pod))
			PLACE_LIST_ADD(&p->waiting, meet(p, pod, NULL, PLACE_NONE));
	}
}

void place_settle(struct place *p)
{
	place_classify_nodes(p, false);
	fit_dims(p);
	place_link(p);
	for (uint32_t i = 0; i < p->loose.count && !place_is_out_of_time(p); i++) {
		struct place_slot *s = p->pods.of[p->loose.of[i]];

		if (!s)
			continue;
		if (!s->seen)
			place_slot_free(p, s);
		else if (s->node == PLACE_NONE && s->home != PLACE_NONE)
			place_do_put(p, s, s->home);
	}
	p->loose.count = 0;
	place_devices_settle(p);
	place_hypothetical_begin(p);
}

/* --- everything */

static void free_classes(struct place *p)
{
	struct place_rules *r, *next_rules;

	HASH_CLEAR(hh, p->by_template);
	for (uint32_t i = 0; i < p->classes.count; i++)
		place_class_free(p->classes.of[i]);
	p->classes.count = 0;
	place_counters_free(p);
	HASH_RELEASE (p->rules, r, next_rules)
		place_rules_free(r);
	place_claims_free(p);
	place_devices_free(p);
	for (uint32_t i = 0; i < p->label_keys.count; i++)
		free(p->label_keys.of[i]);
	p->label_keys.count = p->keys_classified = 0;
	place_texts_free(&p->node_classes, &p->node_class_count);
	for (uint32_t d = RESOURCE_STANDARD; d < p->dims; d++)
		free(p->dim_names[d - RESOURCE_STANDARD]);
	p->dims = RESOURCE_STANDARD;
	p->selects_namespaces = p->hypothetical = false;
	p->hypothetical_links.count = 0;
}

/* Keeps the handles of named pods, which may be in the next view. */
static void loosen(struct place *p)
{
	p->loose.count = p->added.count = p->waiting.count = 0;
	for (uint32_t i = 0; i < p->pods.count; i++) {
		struct place_slot *s = p->pods.of[i];

		if (!s)
			continue;
		s->class = NULL; /* it is freed */
		if (!s->key) {
			place_slot_free(p, s);
			continue;
		}
		s->seen = false;
		s->node = s->home = PLACE_NONE;
		PLACE_LIST_ADD(&p->loose, i);
	}
}

static void load_all(struct place *p)
{
	p->cap = place_cap_of(&p->options, p->view);
	p->log.count = 0;
	p->last_chosen = PLACE_NONE;
	loosen(p);
	load_nodes(p);
	place_devices_follow(p);
	for (place_node n = 0; n < p->node_count && !place_is_out_of_time(p); n++)
		place_meet_node(p, n);
	place_meet_pending(p);
	place_classify_nodes(p, true);
	place_settle(p);
	p->classes_loaded = p->classes.count;
}

bool place_is_out_of_time(struct place *p)
{
	if (p->reading && !p->ended && p->options.out_of_time)
		p->ended = p->options.out_of_time(p->options.ctx);
	return p->ended;
}

void place_set_limit(struct place *p, bool (*out_of_time)(void *ctx), void *ctx)
{
	p->options.out_of_time = out_of_time;
	p->options.ctx = ctx;
}

void place_load_anew(struct place *p)
{
	free_classes(p);
	free_nodes(p);
	load_all(p);
}

struct place *place_new(struct view *v, const struct place_options *o)
{
	struct place *p = mem_zalloc(1, sizeof(*p));

	p->options = *o;
	p->view = view_hold(v);
	p->dims = RESOURCE_STANDARD;
	p->reading = true;
	load_all(p);
	p->reading = false;
	if (!p->ended)
		return p;
	place_free(p);
	return NULL;
}

void place_free(struct place *p)
{
	if (!p)
		return;
	HASH_CLEAR(hh, p->by_name);
	for (uint32_t i = 0; i < p->pods.count; i++) {
		struct place_slot *s = p->pods.of[i];

		if (s)
			slot_free(s);
	}
	free_classes(p);
	free_nodes(p);
	free(p->dim_names);
	free(p->pods.of);
	free(p->free_pods.of);
	free(p->loose.of);
	free(p->added.of);
	free(p->waiting.of);
	free(p->classes.of);
	free(p->keys.of);
	free(p->counters.of);
	free(p->label_keys.of);
	free(p->hypothetical_links.of);
	free(p->claim_of.of);
	free(p->log.of);
	view_drop(p->view);
	free(p);
}

/* --- names and handles */

bool place_cap_applies(const struct place *p)
{
	return p->cap;
}

size_t place_node_count(const struct place *p)
{
	return p->node_count;
}

place_node place_find_node(const struct place *p, const char *name)
{
	size_t n = view_index(p->view, name);

	return n < p->node_count ? (place_node)n : PLACE_NONE;
}

const char *place_node_name(const struct place *p, place_node n)
{
	return p->nodes[n].view->name;
}

place_pod place_find_pod(const struct place *p, const char *namespace, const char *name)
{
	char *key = mem_printf("%s/%s", namespace, name);
	struct place_slot *s;

	HASH_FIND_STR(p->by_name, key, s);
	free(key);
	return s ? s->id : PLACE_NONE;
}

place_pod place_add_pod(struct place *p, const struct kube_pod *pod)
{
	struct place_slot *s = new_slot(p, NULL);

	object_hold((struct object *)&pod->object);
	PLACE_LIST_ADD(&p->added, s->id);
	s->seen = true;
	read_slot(p, s, pod, NULL);
	place_classify_nodes(p, false);
	fit_dims(p);
	place_link(p);
	return s->id;
}

place_node place_where(const struct place *p, place_pod pod)
{
	return place_slot(p, pod)->node;
}

const struct kube_pod *place_pod_record(const struct place *p, place_pod pod)
{
	return place_slot(p, pod)->record;
}

place_pod place_first_on(const struct place *p, place_node n)
{
	return p->first[n] ? p->first[n]->id : PLACE_NONE;
}

place_pod place_next_on(const struct place *p, place_pod pod)
{
	const struct place_slot *next = place_slot(p, pod)->next;

	return next ? next->id : PLACE_NONE;
}
