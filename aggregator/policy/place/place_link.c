/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links classes and counters: each class knows the counters of its pods, and of carriers whose
 * anti-affinity it matches.
 *
 * Matching 40,000 classes with a selector of each would be a billion tests. So a new class finds
 * groups by its namespace and by a label that they require, and a new group (there are few) tests the
 * classes of its namespace, or all classes in one pass.
 *
 * An unknown namespace has no labels, as in the kube-scheduler: NotIn and DoesNotExist match it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/policy/place/place_internal.h"
#include "shared/buf.h"
#include "shared/mem.h"

/* --- namespaces */

struct place_namespace *place_namespace_intern(struct place *p, const char *name)
{
	struct place_namespace *in;

	HASH_INTERN(p->namespaces, in, name, name);
	return in;
}

static void forget_labels(struct place_namespace *in)
{
	labels_fini(&in->labels);
	in->has_labels = in->bad_labels = false;
}

void place_namespaces_reread(struct place *p)
{
	for (struct place_namespace *in = p->namespaces; in; in = in->hh.next)
		forget_labels(in);
}

static void namespace_fini(struct place_namespace *in)
{
	struct place_indexed *i, *next;

	HASH_RELEASE (in->indexed, i, next)
		free(i);
	forget_labels(in);
	free(in->classes.of);
	free(in->name);
	*in = (struct place_namespace){.name = NULL};
}

void place_namespace_forget(struct place *p)
{
	struct place_namespace *in = PLACE_NEWEST(p->namespaces);

	HASH_DEL(p->namespaces, in);
	namespace_fini(in);
	free(in);
}

void place_namespaces_free(struct place *p)
{
	struct place_namespace *in, *next;

	HASH_RELEASE (p->namespaces, in, next) {
		namespace_fini(in);
		free(in);
	}
	namespace_fini(&p->everywhere);
}

/* Read on demand, as few selectors need them; NULL: unreadable. */
static const struct labels *labels_of(const struct place *p, struct place_namespace *in)
{
	const struct object *o;
	cJSON *json;

	if (in->has_labels)
		return in->bad_labels ? NULL : &in->labels;
	o = place_find_object(p->view, OBJECT_NAMESPACE, "", in->name);
	json = o ? cJSON_Parse(o->text) : NULL;
	in->has_labels = true;
	in->bad_labels = labels_read(object_json_find(object_json_find(json, "metadata"), "labels"),
				     &in->labels, NULL) != 0;
	cJSON_Delete(json);
	return in->bad_labels ? NULL : &in->labels;
}

/* --- matching */

static bool selects_pods(const struct place *p, const struct place_pod_selector *w,
			 const struct place_class *c)
{
	const struct labels *labels;

	if (w->any)
		return true;
	if (!w->selector || !selector_matches(w->selector, &c->template->labels))
		return false;
	if (w->any_namespace)
		return true;
	for (uint32_t i = 0; i < w->namespaces.count; i++)
		if (strcmp(w->namespaces.of[i], c->namespace) == 0)
			return true;
	labels = w->namespace_selector ? labels_of(p, c->in) : NULL;
	return labels && selector_matches(w->namespace_selector, labels);
}

bool place_group_matches(const struct place *p, const struct place_group *g,
			 const struct place_class *c)
{
	for (uint32_t i = 0; i < g->selectors.count; i++)
		if (!selects_pods(p, &g->selectors.of[i], c))
			return false;
	return true;
}

/* --- the index */

/* The only namespace of matching pods; NULL: there may be more. */
static const char *only_namespace(const struct place_group *g)
{
	for (uint32_t i = 0; i < g->selectors.count; i++) {
		const struct place_pod_selector *w = &g->selectors.of[i];

		if (!w->any && !w->any_namespace && !w->namespace_selector &&
		    w->namespaces.count == 1)
			return w->namespaces.of[0];
	}
	return NULL;
}

void place_group_index(struct place *p, struct place_group *g)
{
	const char *only = only_namespace(g);
	struct place_indexed *i;

	g->in = only ? place_namespace_intern(p, only) : &p->everywhere;
	if (!g->index) {
		g->next_indexed = g->in->unindexed;
		g->in->unindexed = g;
		return;
	}
	HASH_FIND_STR(g->in->indexed, g->index, i);
	if (!i)
		HASH_NEW(g->in->indexed, i, label, g->index);
	g->next_indexed = i->first;
	i->first = g;
}

void place_group_unindex(struct place_group *g)
{
	struct place_indexed *i;

	if (!g->index) {
		g->in->unindexed = g->next_indexed;
		return;
	}
	HASH_FIND_STR(g->in->indexed, g->index, i);
	assert(i);
	i->first = g->next_indexed;
	if (i->first)
		return;
	HASH_DEL(g->in->indexed, i);
	free(i);
}

/* --- new classes */

static void link_counter(struct place *p, struct place_class *c, uint32_t counter)
{
	if (p->counters.of[counter].kind == PLACE_COUNT_CARRIERS)
		PLACE_LIST_ADD(&c->feared, counter);
	else
		PLACE_LIST_ADD(&c->counted, counter);
}

static void link_groups(struct place *p, struct place_class *c, const struct place_group *first)
{
	for (const struct place_group *g = first; g; g = g->next_indexed)
		if (place_group_matches(p, g, c))
			for (uint32_t i = 0; i < g->counters.count; i++)
				link_counter(p, c, g->counters.of[i]);
}

static void link_class_in(struct place *p, struct place_class *c, const struct place_namespace *in,
			  struct buf *label)
{
	const struct labels *l = &c->template->labels;

	link_groups(p, c, in->unindexed);
	for (size_t i = 0; i < l->count && in->indexed; i++) {
		struct place_indexed *found;

		buf_clear(label);
		buf_add_str(label, l->of[i].key);
		buf_add_char(label, '=');
		buf_add_str(label, l->of[i].value);
		HASH_FIND(hh, in->indexed, label->data, label->len, found);
		if (found)
			link_groups(p, c, found->first);
	}
}

/* --- new counters */

/* Links the new counters, which are the last of the group. */
static void tell_class(struct place *p, struct place_class *c, const struct place_group *g,
		       uint32_t from)
{
	uint32_t first = g->counters.count;

	if (!place_group_matches(p, g, c))
		return;
	while (first && g->counters.of[first - 1] >= from)
		first--;
	for (uint32_t i = first; i < g->counters.count; i++) {
		uint32_t counter = g->counters.of[i];

		link_counter(p, c, counter);
		if (p->hypothetical && c->id < p->known.classes)
			PLACE_LIST_ADD(&p->hypothetical_links,
				       ((struct place_hypothetical_link){c->id, counter}));
		if (p->counters.of[counter].kind != PLACE_COUNT_CARRIERS)
			place_count_class(p, c, counter);
	}
}

static void link_counters(struct place *p, uint32_t from)
{
	for (const struct place_group *g = p->groups; g; g = g->hh.next) {
		bool all = g->in == &p->everywhere;
		struct place_class *const *of = all ? p->classes.of : g->in->classes.of;
		uint32_t count = all ? p->classes.count : g->in->classes.count;

		if (!g->counters.count || g->counters.of[g->counters.count - 1] < from)
			continue; /* none of its counters is new */
		for (uint32_t i = 0; i < count && of[i]->id < p->linked_classes; i++)
			tell_class(p, of[i], g, from);
	}
}

void place_link(struct place *p)
{
	struct buf label = BUF_INIT;

	if (p->linked_classes && p->linked_counters < p->counters.count)
		link_counters(p, p->linked_counters);
	for (uint32_t c = p->linked_classes; c < p->classes.count && !place_is_out_of_time(p);
	     c++) {
		link_class_in(p, p->classes.of[c], &p->everywhere, &label);
		link_class_in(p, p->classes.of[c], p->classes.of[c]->in, &label);
	}
	p->linked_classes = p->classes.count;
	p->linked_counters = p->counters.count;
	buf_fini(&label);
}
