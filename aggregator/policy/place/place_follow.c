/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The update from one view to the next, at the cost of the changes. An equal pointer is an equal
 * node. Other nodes:
 *
 *   - with new measurements alone keep their pods, and sum up their use again;
 *   - with a changed object or changed pods drop all pods and read the present ones;
 *   - with changed labels or taints also change their domains and equivalence class, without pods;
 *   - new ones start empty, removed ones drop their pods; the arrays by node are moved.
 *
 * After place_rest() all nodes sum up their use again. Dropped pods that are not read again are
 * freed. The result equals a new core but for the numbers of pods, domains and node classes, which
 * only grow. All is rebuilt when they are twice what is needed, when the cap of real use goes on or
 * off, or when labels of a used namespace change and some selector reads them.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

/* --- comparison */

static bool same_labels(const struct labels *a, const struct labels *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->of[i].key, b->of[i].key) != 0 ||
		    strcmp(a->of[i].value, b->of[i].value) != 0)
			return false;
	return true;
}

static bool same_taints(const struct taints *a, const struct taints *b)
{
	if (a->count != b->count || a->unreadable != b->unreadable)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->of[i].key, b->of[i].key) != 0 ||
		    strcmp(a->of[i].value, b->of[i].value) != 0 ||
		    strcmp(a->of[i].effect, b->of[i].effect) != 0)
			return false;
	return true;
}

/* The inputs of node classes and domains are equal. */
static bool same_place(const struct place_node_info *a, const struct place_node_info *b)
{
	return a->view &&
	       (a->object == b->object ||
		(a->object && b->object && same_labels(&a->object->labels, &b->object->labels) &&
		 same_taints(&a->object->taints, &b->object->taints) &&
		 a->object->features == b->object->features));
}

/* Namespaces of all classes, if some selector reads their labels. */
static bool same_namespaces(const struct place *p, const struct view *v)
{
	if (!p->selects_namespaces)
		return true;
	if (view_knows(p->view, OBJECT_NAMESPACE) != view_knows(v, OBJECT_NAMESPACE))
		return false;
	if (view_table(p->view, OBJECT_NAMESPACE) == view_table(v, OBJECT_NAMESPACE))
		return true;
	for (uint32_t i = 0; i < p->classes.count; i++)
		if (place_find_object(p->view, OBJECT_NAMESPACE, "", p->classes.of[i]->namespace) !=
		    place_find_object(v, OBJECT_NAMESPACE, "", p->classes.of[i]->namespace))
			return false;
	return true;
}

static bool is_too_many(uint32_t count, uint32_t needed)
{
	return count > 2 * needed + 1000;
}

/* Whether an incremental update is possible. */
static bool can_follow(const struct place *p, const struct view *v)
{
	if (p->cap != place_cap_of(&p->options, v) ||
	    is_too_many(p->classes.count, p->classes_loaded) ||
	    is_too_many(p->node_class_count, p->node_count))
		return false;
	for (uint32_t k = 0; k < p->keys.count; k++)
		if (is_too_many(p->keys.of[k].domain_count, p->node_count))
			return false;
	return same_namespaces(p, v);
}

/* --- hypothetical pods */

/*
 * Hypothetical pods: pods that place_add_pod() adds and that the view does not have. Each may bring a
 * class, terms, counters, topology keys, claims and resources, and one core answers thousands of
 * requests with such pods, so undo_all() takes out all that the last request brought.
 *
 * Every list and hash keeps the order of insertion, and nothing of the view is interned after the
 * first hypothetical pod. So their objects are a tail of each list and hash, behind the lengths in
 * struct place_known, and are freed from the newest to the oldest, users before what they use.
 * Classes of the view have the counters of hypothetical pods at the ends of their lists;
 * hypothetical_links names them.
 */

void place_hypothetical_begin(struct place *p)
{
	p->known = (struct place_known){
		.classes = p->classes.count,
		.counters = p->counters.count,
		.keys = p->keys.count,
		.claims = p->claim_of.count,
		.device_claims = p->dra.claim.count,
		.dims = p->dims,
		.groups = HASH_COUNT(p->groups),
		.rules = HASH_COUNT(p->rules),
		.eligibles = HASH_COUNT(p->eligibles),
		.namespaces = HASH_COUNT(p->namespaces),
		.selects_namespaces = p->selects_namespaces,
	};
	p->hypothetical = true;
}

static void unlink_counter(struct place *p, const struct place_hypothetical_link *l)
{
	struct place_class *c = p->classes.of[l->class];
	bool carriers = p->counters.of[l->counter].kind == PLACE_COUNT_CARRIERS;
	uint32_t *count = carriers ? &c->feared.count : &c->counted.count;

	--*count;
	assert((carriers ? c->feared.of : c->counted.of)[*count] == l->counter);
}

/* Frees what hypothetical pods brought; the pods themselves are gone. */
static void forget_hypothetical(struct place *p)
{
	const struct place_known *k = &p->known;

	assert(p->hypothetical);
	while (p->hypothetical_links.count)
		unlink_counter(p, &p->hypothetical_links.of[--p->hypothetical_links.count]);
	while (p->classes.count > k->classes)
		place_class_forget(p);
	while (p->counters.count > k->counters)
		place_counter_forget(p);
	while (HASH_COUNT(p->groups) > k->groups)
		place_group_forget(p);
	while (HASH_COUNT(p->eligibles) > k->eligibles)
		place_eligible_forget(p);
	while (HASH_COUNT(p->rules) > k->rules)
		place_rules_forget(p);
	while (HASH_COUNT(p->namespaces) > k->namespaces)
		place_namespace_forget(p);
	while (p->keys.count > k->keys)
		place_key_forget(p);
	while (p->claim_of.count > k->claims)
		place_claim_forget(p);
	while (p->dra.claim.count > k->device_claims)
		place_device_claim_forget(p, p->dra.claim.of[p->dra.claim.count - 1]);
	while (p->dims > k->dims)
		free(p->dim_names[--p->dims - RESOURCE_STANDARD]);
	p->selects_namespaces = k->selects_namespaces;
	p->hypothetical = false;
}

/* --- back to the last view */

static void undo_all(struct place *p)
{
	place_revert(p, 0);
	for (uint32_t i = 0; i < p->added.count; i++)
		place_slot_free(p, place_slot(p, p->added.of[i]));
	p->added.count = 0;
	forget_hypothetical(p);
	p->last_chosen = PLACE_NONE;
}

/* --- nodes that come and go */

static void leave_node(struct place *p, place_node n)
{
	struct place_slot *s;

	while ((s = p->first[n]) != NULL) {
		place_do_take(p, s);
		s->seen = false;
		s->home = PLACE_NONE;
		PLACE_LIST_ADD(&p->loose, s->id);
	}
}

static bool same_nodes(const struct place *p, const struct view *v)
{
	if (v->node_count != p->node_count)
		return false;
	for (place_node n = 0; n < p->node_count; n++)
		if (p->nodes[n].view != v->nodes[n] &&
		    strcmp(p->nodes[n].view->name, v->nodes[n]->name) != 0)
			return false;
	return true;
}

/* New numbers by old ones; PLACE_NONE: removed. */
static place_node *map_nodes(struct place *p, const struct view *v)
{
	place_node *to = mem_alloc(((size_t)p->node_count + 1) * sizeof(*to));

	for (place_node n = 0; n < p->node_count; n++) {
		size_t at = view_index(v, p->nodes[n].view->name);

		to[n] = at < v->node_count ? (place_node)at : PLACE_NONE;
		if (to[n] != PLACE_NONE)
			continue;
		leave_node(p, n);
		place_unlabel_node(p, n);
	}
	return to;
}

struct move {
	const place_node *to;
	uint32_t before, now;
};

/* Moves the elements to the new numbers; elements of new nodes are filled with the byte. */
static void *moved(void *array, size_t size, int byte, const struct move *m)
{
	char *next = mem_alloc(((size_t)m->now + 1) * size);

	memset(next, byte, ((size_t)m->now + 1) * size);
	for (uint32_t n = 0; n < m->before; n++)
		if (m->to[n] != PLACE_NONE)
			memcpy(next + m->to[n] * size, (char *)array + n * size, size);
	free(array);
	return next;
}

static void move_arrays(struct place *p, const struct move *m)
{
	p->nodes = moved(p->nodes, sizeof(*p->nodes), 0, m);
	p->gone = moved(p->gone, sizeof(*p->gone), 0, m);
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): it is a list of pointers */
	p->first = moved(p->first, sizeof(*p->first), 0, m);
	p->use = moved(p->use, sizeof(*p->use), 0, m);
	p->available = moved(p->available, p->dim_room * sizeof(*p->available), 0, m);
	p->used = moved(p->used, p->dim_room * sizeof(*p->used), 0, m);
	for (uint32_t k = 0; k < p->keys.count; k++)
		p->keys.of[k].domain_of = moved(p->keys.of[k].domain_of, sizeof(uint32_t), 0xff, m);
	for (struct place_eligible *e = p->eligibles; e; e = e->hh.next)
		e->of = moved(e->of, sizeof(*e->of), 0, m);
}

static void move_nodes(struct place *p, const struct view *v)
{
	place_node *to = map_nodes(p, v);
	const struct move m = {to, p->node_count, (uint32_t)v->node_count};

	move_arrays(p, &m);
	p->node_count = m.now;
	for (place_node n = 0; n < p->node_count; n++)
		for (struct place_slot *s = p->first[n]; s; s = s->next)
			s->node = s->home = n;
	place_trees_free(p);
	p->dra.nodes = NULL; /* devices have nodes by number */
	free(to);
}

/* --- nodes that changed */

/* The same pods with new measurements. */
static void measure_again(struct place *p, place_node n)
{
	const struct view_node *v = p->nodes[n].view;
	size_t hint = v->pod_count ? v->pod_count - 1 : 0;

	place_use_of_node(p, n);
	place_trees_touch(p, n);
	for (struct place_slot *s = p->first[n]; s; s = s->next) {
		const struct view_pod *vp = NULL;

		for (size_t i = 0; !vp && i < v->pod_count; i++) {
			size_t k = (hint + i) % v->pod_count;

			if (v->pods[k].pod == s->record) {
				vp = &v->pods[k];
				hint = k + v->pod_count - 1;
			}
		}
		place_use_of_pod(p, n, vp, s->record, &s->use);
		if (p->cap)
			place_use_add(&p->use[n], &s->use, 1);
	}
}

/* The node has no pods. */
static void change_node(struct place *p, place_node n, const struct view_node *v)
{
	struct place_node_info next;
	bool same;

	place_node_info_read(v, &next);
	same = same_place(&p->nodes[n], &next);
	if (!same)
		place_unlabel_node(p, n);
	next.node_class = p->nodes[n].node_class;
	p->nodes[n] = next;
	if (same)
		return;
	place_label_node(p, n);
	place_classify_node(p, n);
}

/* The change of a node between two views. */
enum fate { SAME, MEASURED, CHANGED };

/* Drops the pods of all changed nodes before any is read again, since a pod may have moved. */
static void leave_changed(struct place *p, uint8_t *fate)
{
	for (place_node n = 0; n < p->node_count; n++) {
		const struct view_node *before = p->nodes[n].view, *now = p->view->nodes[n];

		if (before == now && !p->resting) {
			fate[n] = SAME;
		} else if (before && now->model && before->model == now->model) {
			fate[n] = MEASURED;
			p->nodes[n].view = now;
		} else {
			fate[n] = CHANGED;
			leave_node(p, n);
			change_node(p, n, now);
		}
	}
}

static void meet_changed(struct place *p, const uint8_t *fate)
{
	for (place_node n = 0; n < p->node_count && !place_is_out_of_time(p); n++) {
		switch ((enum fate)fate[n]) {
		case SAME:
			place_use_age(p, n);
			break;
		case MEASURED:
			measure_again(p, n);
			break;
		case CHANGED:
			place_load_node(p, n);
			place_meet_node(p, n);
			break;
		}
	}
}

/* --- pods */

/* Updates unmeasured pods, which count as the mean of their owner. */
static void follow_owners(struct place *p)
{
	for (uint32_t i = 0; i < p->pods.count; i++) {
		struct place_slot *s = p->pods.of[i];

		if (!s || s->use.measured)
			continue;
		if (s->node != PLACE_NONE)
			place_use_add(&p->use[s->node], &s->use, -1);
		place_use_of_pod(p, s->home, NULL, s->record, &s->use);
		if (s->node != PLACE_NONE) {
			place_use_add(&p->use[s->node], &s->use, 1);
			place_trees_touch(p, s->node);
		}
	}
}

static void follow(struct place *p, const struct view *before)
{
	bool pending = view_table(before, OBJECT_POD) != view_table(p->view, OBJECT_POD);
	uint8_t *fate;

	if (view_table(before, OBJECT_NAMESPACE) != view_table(p->view, OBJECT_NAMESPACE))
		place_namespaces_reread(p);
	if (!same_nodes(p, p->view))
		move_nodes(p, p->view);
	for (uint32_t i = 0; pending && i < p->waiting.count; i++) {
		place_slot(p, p->waiting.of[i])->seen = false;
		PLACE_LIST_ADD(&p->loose, p->waiting.of[i]);
	}
	fate = mem_zalloc((size_t)p->node_count + 1, sizeof(*fate));
	leave_changed(p, fate);
	place_claims_follow(p, before);
	place_devices_follow(p);
	meet_changed(p, fate);
	if (pending)
		place_meet_pending(p);
	place_settle(p);
	if (p->cap && before->owners != p->view->owners)
		follow_owners(p);
	free(fate);
}

bool place_update(struct place *p, struct view *v, int64_t now_ns)
{
	struct view *before = p->view;

	p->options.now_ns = now_ns;
	p->reading = true;
	if (can_follow(p, v)) {
		undo_all(p);
		p->view = view_hold(v);
		follow(p, before);
	} else {
		p->view = view_hold(v);
		place_load_anew(p);
	}
	view_drop(before);
	p->reading = p->resting = false;
	return !p->ended;
}

void place_rest(struct place *p, struct view *rest)
{
	struct view *before = p->view;

	assert(rest->node_count == p->node_count);
	undo_all(p);
	place_hypothetical_begin(p);
	for (uint32_t i = 0; i < p->pods.count; i++)
		if (p->pods.of[i])
			p->pods.of[i]->use.peaks = NULL;
	for (place_node n = 0; n < p->node_count; n++)
		p->nodes[n].view = rest->nodes[n];
	p->view = view_hold(rest);
	p->resting = true;
	view_drop(before);
}
