/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one view to the next, at the cost of what changed. What a view says of a node is one
 * immutable record, so an equal pointer is an equal node. Of the others
 *
 *   - one of which only measurements are new keeps its pods, and sums up their use anew;
 *   - one whose object or pods changed leaves all of its pods and meets those it has now;
 *   - one with other labels or taints also leaves its domains and its signature, while it has no
 *     pods, and finds new ones;
 *   - one that comes is met as one that was empty, and one that goes is left; the arrays by node
 *     are moved together.
 *
 * A core that rested (place_rest()) knows nothing of use any more, and so measures all nodes anew.
 *
 * Pods that were left and not met are gone. All of this ends where a new one would have begun, but
 * for the numbers of pods, domains and signatures, which nobody sees; those numbers only grow, and
 * when they are twice what is needed all is built anew, with the same handles of pods. So it is
 * when real use begins or ceases to be asked for, and when a namespace with pods has other labels
 * and some selector asks for labels of namespaces.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

/* --- what is the same */

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

static bool same_taints(const struct place_node_info *a, const struct place_node_info *b)
{
	if (a->taints.count != b->taints.count || a->hidden_taints != b->hidden_taints)
		return false;
	for (uint32_t i = 0; i < a->taints.count; i++)
		if (strcmp(a->taints.of[i].key, b->taints.of[i].key) != 0 ||
		    strcmp(a->taints.of[i].value, b->taints.of[i].value) != 0 ||
		    strcmp(a->taints.of[i].effect, b->taints.of[i].effect) != 0)
			return false;
	return true;
}

/* Nothing changed that signatures or domains are made of. */
static bool same_place(const struct place_node_info *a, const struct place_node_info *b)
{
	return a->view &&
	       (a->object == b->object ||
		(a->object && b->object && same_labels(&a->object->labels, &b->object->labels) &&
		 same_taints(a, b) && a->object->features == b->object->features));
}

static const struct object_table *table_of(const struct view *v, enum object_kind kind)
{
	return v->cluster ? v->cluster->tables[kind] : NULL;
}

static const struct object *namespace_of(const struct view *v, const char *name)
{
	return v->cluster ? cluster_find(v->cluster, OBJECT_NAMESPACE, "", name) : NULL;
}

/* Of all that have pods; selectors are matched with classes as these come. */
static bool same_namespaces(const struct place *p, const struct view *v)
{
	if (!p->selects_namespaces)
		return true;
	if (view_knows(p->view, OBJECT_NAMESPACE) != view_knows(v, OBJECT_NAMESPACE))
		return false;
	if (table_of(p->view, OBJECT_NAMESPACE) == table_of(v, OBJECT_NAMESPACE))
		return true;
	for (uint32_t i = 0; i < p->classes.count; i++)
		if (namespace_of(p->view, p->classes.of[i]->namespace) !=
		    namespace_of(v, p->classes.of[i]->namespace))
			return false;
	return true;
}

static bool is_too_many(uint32_t count, uint32_t needed)
{
	return count > 2 * needed + 1000;
}

/* Whether what changed can be taken over piece by piece. */
static bool can_follow(const struct place *p, const struct view *v)
{
	if (p->moved_ghosts || p->cap != place_cap_of(&p->options, v) ||
	    is_too_many(p->classes.count, p->classes_loaded) ||
	    is_too_many(p->signature_count, p->node_count))
		return false;
	for (uint32_t k = 0; k < p->keys.count; k++)
		if (is_too_many(p->keys.of[k].domain_count, p->node_count))
			return false;
	return same_namespaces(p, v);
}

/* --- back to the view that was */

static void go_home(struct place *p, struct place_slot *s)
{
	s->moved = false;
	if (s->node == s->home)
		return;
	if (s->node != PLACE_NONE)
		place_do_take(p, s);
	if (s->home != PLACE_NONE)
		place_do_put(p, s, s->home);
}

static void undo_all(struct place *p)
{
	place_revert(p, 0);
	for (uint32_t i = 0; i < p->moved.count; i++)
		go_home(p, place_slot(p, p->moved.of[i]));
	for (uint32_t i = 0; p->moved_claims && i < p->claim_of.count; i++)
		place_volumes_undo(p, i);
	for (place_node n = 0; p->moved_nodes && n < p->node_count; n++) {
		p->gone[n] = place_starts_gone(p, n);
		place_trees_touch(p, n);
	}
	p->moved.count = 0;
	p->moved_nodes = p->moved_claims = false;
	for (uint32_t i = 0; i < p->added.count; i++)
		place_slot_free(p, place_slot(p, p->added.of[i]));
	p->added.count = 0;
	place_asked_forget(p);
	p->last_chosen = PLACE_NONE;
}

/* --- nodes that come and go */

static void leave_node(struct place *p, place_node n)
{
	while (p->first[n] != PLACE_NONE) {
		struct place_slot *s = place_slot(p, p->first[n]);

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

/* By old number the new one; PLACE_NONE: it goes, and is left. Both are in the order of names. */
static place_node *map_nodes(struct place *p, const struct view *v)
{
	place_node *to = mem_alloc(((size_t)p->node_count + 1) * sizeof(*to));
	size_t at = 0;

	for (place_node n = 0; n < p->node_count; n++) {
		const char *name = p->nodes[n].view->name;

		while (at < v->node_count && strcmp(v->nodes[at]->name, name) < 0)
			at++;
		to[n] = at < v->node_count && strcmp(v->nodes[at]->name, name) == 0 ? (place_node)at
										    : PLACE_NONE;
		if (to[n] != PLACE_NONE)
			continue;
		leave_node(p, n);
		place_unlabel_node(p, n);
		place_node_info_fini(&p->nodes[n]);
	}
	return to;
}

struct move {
	const place_node *to;
	uint32_t before, now;
};

/*
 * The array with its elements where their nodes are now; those of new nodes are all of that byte.
 */
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
	p->cordoned = moved(p->cordoned, sizeof(*p->cordoned), 0, m);
	p->signature = moved(p->signature, sizeof(*p->signature), 0, m);
	p->first = moved(p->first, sizeof(*p->first), 0xff, m);
	p->silent = moved(p->silent, sizeof(*p->silent), 0, m);
	p->contention = moved(p->contention, sizeof(*p->contention), 0, m);
	p->use = moved(p->use, sizeof(*p->use), 0, m);
	p->rest = moved(p->rest, sizeof(*p->rest), 0, m);
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
	for (place_node n = 0; n < p->node_count; n++) {
		for (place_pod at = p->first[n]; at != PLACE_NONE; at = place_slot(p, at)->next) {
			place_slot(p, at)->node = n;
			place_slot(p, at)->home = n;
		}
	}
	place_trees_free(p);
	free(to);
}

/* --- nodes that changed */

/* Pods are the same, and so is all but what they use. */
static void measure_again(struct place *p, place_node n)
{
	const struct view_node *v = p->nodes[n].view;
	size_t hint = v->pod_count ? v->pod_count - 1 : 0;

	place_use_of_node(p, n);
	place_trees_touch(p, n);
	for (place_pod at = p->first[n]; at != PLACE_NONE; at = place_slot(p, at)->next) {
		struct place_slot *s = place_slot(p, at);
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
	place_node_info_fini(&p->nodes[n]);
	p->nodes[n] = next;
	if (same)
		return;
	place_label_node(p, n);
	place_sign_node(p, n);
}

/* What became of a node between two views. */
enum fate { SAME, MEASURED, CHANGED };

static enum fate fate_of(const struct place *p, const struct place_node_info *before,
			 const struct view_node *now)
{
	if (before->view == now && !p->resting)
		return SAME;
	return before->view && now->model && before->view->model == now->model ? MEASURED : CHANGED;
}

/*
 * All that are to be met again are left before any is met: a pod may have gone from one to the
 * other.
 */
static void leave_changed(struct place *p, uint8_t *fate)
{
	for (place_node n = 0; n < p->node_count; n++) {
		const struct view_node *now = p->view->nodes[n];

		fate[n] = (uint8_t)fate_of(p, &p->nodes[n], now);
		if (fate[n] == MEASURED)
			p->nodes[n].view = now;
		if (fate[n] != CHANGED)
			continue;
		leave_node(p, n);
		change_node(p, n, now);
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

/* Of those that are on no node it is not known yet whether they stay. */
static void leave_pending(struct place *p)
{
	for (uint32_t i = 0; i < p->waiting.count; i++) {
		place_slot(p, p->waiting.of[i])->seen = false;
		PLACE_LIST_ADD(&p->loose, p->waiting.of[i]);
	}
}

/* Pods that are not measured count as their owners' others, of which there may be news. */
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
	bool pending = table_of(before, OBJECT_POD) != table_of(p->view, OBJECT_POD);
	uint8_t *fate;

	if (table_of(before, OBJECT_NAMESPACE) != table_of(p->view, OBJECT_NAMESPACE))
		place_namespaces_reread(p);
	if (!same_nodes(p, p->view))
		move_nodes(p, p->view);
	if (pending)
		leave_pending(p);
	fate = mem_zalloc((size_t)p->node_count + 1, sizeof(*fate));
	leave_changed(p, fate);
	place_claims_follow(p, before);
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
	place_asked_begin(p);
	for (uint32_t i = 0; i < p->pods.count; i++)
		if (p->pods.of[i])
			p->pods.of[i]->use.peaks = NULL;
	for (place_node n = 0; n < p->node_count; n++)
		p->nodes[n].view = rest->nodes[n];
	p->view = view_hold(rest);
	p->resting = true;
	view_drop(before);
}
