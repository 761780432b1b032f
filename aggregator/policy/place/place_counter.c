/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of pods by group and topology domain. Putting a pod on a node changes the counters of its
 * class, and taking it changes them back; nothing is counted anew.
 *
 * Spread also needs the least count of all domains: `at` holds the number of domains by count, and a
 * change of one domain moves the least by at most one.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/place/place_internal.h"
#include "shared/buf.h"
#include "shared/mem.h"

/* --- topology keys */

uint32_t place_text_intern(struct place_text **table, const char *text, uint32_t *count)
{
	struct place_text *t;

	HASH_FIND_STR(*table, text, t);
	if (!t) {
		HASH_NEW(*table, t, text, mem_strdup(text));
		t->id = (*count)++;
	}
	return t->id;
}

void place_texts_free(struct place_text **table, uint32_t *count)
{
	struct place_text *t, *next;

	HASH_RELEASE (*table, t, next) {
		free(t->text);
		free(t);
	}
	*count = 0;
}

static void label_key(const struct place *p, struct place_key *k, place_node n)
{
	const struct kube_node *node = p->nodes[n].object;
	const char *value = node ? labels_find(&node->labels, k->name) : NULL;

	k->domain_of[n] =
		value ? place_text_intern(&k->domains, value, &k->domain_count) : PLACE_NONE;
}

uint32_t place_key_intern(struct place *p, const char *name)
{
	struct place_key k = {.name = NULL};

	for (uint32_t i = 0; i < p->keys.count; i++)
		if (strcmp(p->keys.of[i].name, name) == 0)
			return i;
	k.name = mem_strdup(name);
	k.domain_of = mem_zalloc((size_t)p->node_count + 1, sizeof(*k.domain_of));
	for (place_node n = 0; n < p->node_count; n++)
		label_key(p, &k, n);
	PLACE_LIST_ADD(&p->keys, k);
	return p->keys.count - 1;
}

static void free_key(struct place_key *k)
{
	place_texts_free(&k->domains, &k->domain_count);
	free(k->domain_of);
	free(k->name);
}

void place_key_forget(struct place *p)
{
	free_key(&p->keys.of[--p->keys.count]);
}

/* --- groups */

void place_pod_selector_fini(struct place_pod_selector *w)
{
	for (uint32_t i = 0; i < w->namespaces.count; i++)
		free(w->namespaces.of[i]);
	free(w->namespaces.of);
	selector_free(w->namespace_selector);
	selector_free(w->selector);
	*w = (struct place_pod_selector){0};
}

void place_group_free(struct place_group *g)
{
	for (uint32_t i = 0; i < g->selectors.count; i++)
		place_pod_selector_fini(&g->selectors.of[i]);
	free(g->selectors.of);
	free(g->counters.of);
	free(g->index);
	free(g->text);
	free(g);
}

struct place_group *place_group_intern(struct place *p, struct place_group *g)
{
	struct place_group *found;

	HASH_FIND_STR(p->groups, g->text, found);
	if (found) {
		place_group_free(g);
		return found;
	}
	HASH_ADD_KEYPTR(hh, p->groups, g->text, strlen(g->text), g);
	place_group_index(p, g);
	return g;
}

void place_group_forget(struct place *p)
{
	struct place_group *g = PLACE_NEWEST(p->groups);

	HASH_DEL(p->groups, g);
	place_group_unindex(g);
	place_group_free(g);
}

/* --- nodes that spread counts */

static bool is_eligible(const struct place *p, const struct place_eligible *e, place_node n)
{
	if (!p->nodes[n].object)
		return false;
	for (uint32_t i = 0; i < e->keys.count; i++)
		if (p->keys.of[e->keys.of[i]].domain_of[n] == PLACE_NONE)
			return false;
	if (e->affinity && !place_rules_select(p, e->affinity, n))
		return false;
	return !e->taints ||
	       (!p->nodes[n].hidden_taints && !place_rules_untolerated(p, e->taints, n));
}

/* Adds or removes a domain without pods. */
static void change_domains(struct place_counter *c, bool comes)
{
	if (comes) {
		c->domains++;
		c->at[0]++;
		c->min = 0;
		return;
	}
	c->domains--;
	c->at[0]--;
	while (c->domains && c->at[c->min] == 0)
		c->min++;
	if (!c->domains)
		c->min = 0;
}

static void tell_counters(struct place *p, const struct place_eligible *e, uint32_t key, bool comes)
{
	for (uint32_t i = 0; i < e->counters.count; i++) {
		struct place_counter *c = &p->counters.of[e->counters.of[i]];

		if (c->key == key)
			change_domains(c, comes);
	}
}

/* Adds or removes a node without pods. */
static void change_node(struct place *p, struct place_eligible *e, place_node n, bool comes)
{
	int by = comes ? 1 : -1;

	e->of[n] = comes;
	for (uint32_t i = 0; i < e->keys.count; i++) {
		uint32_t domain = p->keys.of[e->keys.of[i]].domain_of[n];

		/* The domain has other nodes. */
		if (place_tally_add(&e->nodes.of[i], domain, by) > comes)
			continue;
		e->domains.of[i] += (uint32_t)by;
		tell_counters(p, e, e->keys.of[i], comes);
	}
}

void place_unlabel_node(struct place *p, place_node n)
{
	for (struct place_eligible *e = p->eligibles; e; e = e->hh.next)
		if (e->of[n])
			change_node(p, e, n, false);
	for (uint32_t k = 0; k < p->keys.count; k++)
		p->keys.of[k].domain_of[n] = PLACE_NONE;
}

void place_label_node(struct place *p, place_node n)
{
	for (uint32_t k = 0; k < p->keys.count; k++)
		label_key(p, &p->keys.of[k], n);
	for (struct place_eligible *e = p->eligibles; e; e = e->hh.next)
		if (is_eligible(p, e, n))
			change_node(p, e, n, true);
}

struct place_eligible *place_eligible_intern(struct place *p, const struct place_rules *affinity,
					     const struct place_rules *taints, const uint32_t *keys,
					     uint32_t count)
{
	struct place_eligible *e;
	struct buf b = BUF_INIT;
	char *text;

	if (affinity && !affinity->selector.count && !affinity->has_affinity)
		affinity = NULL; /* it selects every node */
	buf_printf(&b, "%p %p", (const void *)affinity, (const void *)taints);
	for (uint32_t i = 0; i < count; i++)
		buf_printf(&b, " %u", keys[i]);
	text = buf_take(&b, NULL);
	HASH_FIND_STR(p->eligibles, text, e);
	if (e) {
		free(text);
		return e;
	}
	e = mem_zalloc(1, sizeof(*e));
	*e = (struct place_eligible){.text = text, .affinity = affinity, .taints = taints};
	for (uint32_t i = 0; i < count; i++) {
		PLACE_LIST_ADD(&e->keys, keys[i]);
		PLACE_LIST_ADD(&e->nodes, (struct place_tally){0});
		PLACE_LIST_ADD(&e->domains, 0);
	}
	e->of = mem_zalloc((size_t)p->node_count + 1, sizeof(*e->of));
	for (place_node n = 0; n < p->node_count; n++)
		if (is_eligible(p, e, n))
			change_node(p, e, n, true);
	HASH_ADD_KEYPTR(hh, p->eligibles, e->text, strlen(e->text), e);
	return e;
}

static void free_eligible(struct place_eligible *e)
{
	for (uint32_t k = 0; k < e->nodes.count; k++)
		free(e->nodes.of[k].of);
	free(e->nodes.of);
	free(e->counters.of);
	free(e->keys.of);
	free(e->domains.of);
	free(e->text);
	free(e->of);
	free(e);
}

void place_eligible_forget(struct place *p)
{
	struct place_eligible *e = PLACE_NEWEST(p->eligibles);

	HASH_DEL(p->eligibles, e);
	free_eligible(e);
}

/* --- counters */

/* Zero counts. */
static void counter_init(struct place_counter *c)
{
	if (c->kind != PLACE_COUNT_SPREAD)
		return;
	for (uint32_t i = 0; i < c->eligible->keys.count; i++)
		if (c->eligible->keys.of[i] == c->key)
			c->domains = c->eligible->domains.of[i];
	c->at_room = 8;
	c->at = mem_zalloc(c->at_room, sizeof(*c->at));
	c->at[0] = c->domains;
}

static void counter_fini(struct place_counter *c)
{
	free(c->count.of);
	free(c->at);
}

uint32_t place_counter_intern(struct place *p, enum place_counted kind, struct place_group *g,
			      uint32_t key, struct place_eligible *e)
{
	struct place_counter c = {.kind = kind, .key = key, .group = g, .eligible = e};

	for (uint32_t i = 0; i < g->counters.count; i++) {
		const struct place_counter *have = &p->counters.of[g->counters.of[i]];

		if (have->kind == kind && have->key == key && have->eligible == e)
			return g->counters.of[i];
	}
	counter_init(&c);
	if (e)
		PLACE_LIST_ADD(&e->counters, p->counters.count);
	PLACE_LIST_ADD(&g->counters, p->counters.count);
	PLACE_LIST_ADD(&p->counters, c);
	return p->counters.count - 1;
}

void place_counter_forget(struct place *p)
{
	struct place_counter *c = &p->counters.of[--p->counters.count];

	c->group->counters.count--;
	if (c->eligible)
		c->eligible->counters.count--;
	counter_fini(c);
	if (p->linked_counters > p->counters.count)
		p->linked_counters = p->counters.count;
}

static void step_spread(struct place_counter *c, uint32_t domain, int by)
{
	uint32_t after = place_tally_add(&c->count, domain, by), before = after - (uint32_t)by;

	if (after >= c->at_room) {
		c->at = mem_realloc(c->at, sizeof(*c->at) * c->at_room * 2);
		memset(c->at + c->at_room, 0, sizeof(*c->at) * c->at_room);
		c->at_room *= 2;
	}
	c->at[before]--;
	c->at[after]++;
	if (after < c->min || (before == c->min && c->at[before] == 0))
		c->min = after;
}

static void count_in(struct place *p, struct place_counter *c, const struct place_slot *s,
		     place_node n, int by)
{
	uint32_t domain = p->keys.of[c->key].domain_of[n];

	if (domain == PLACE_NONE)
		return;
	if (c->kind == PLACE_COUNT_SPREAD) {
		if (s->leaving || !c->eligible->of[n])
			return;
		step_spread(c, domain, by);
	} else {
		place_tally_add(&c->count, domain, by);
	}
	c->total += (uint32_t)by;
}

void place_count_pod(struct place *p, const struct place_slot *s, place_node n, int by)
{
	for (uint32_t i = 0; i < s->class->counted.count; i++)
		count_in(p, &p->counters.of[s->class->counted.of[i]], s, n, by);
}

/*
 * --- ghosts: drained nodes, which spread with nodeTaintsPolicy Honor does not count. Their pods
 * leave before the node, so that a domain without nodes has no pods.
 */

static bool sees_ghosts(const struct place_eligible *e)
{
	return !e->taints || e->taints->tolerates_cordon;
}

static void count_node(struct place *p, const struct place_eligible *e, place_node n, int by)
{
	for (const struct place_slot *s = p->first[n]; s; s = s->next)
		for (uint32_t i = 0; i < s->class->counted.count; i++)
			if (p->counters.of[s->class->counted.of[i]].eligible == e)
				count_in(p, &p->counters.of[s->class->counted.of[i]], s, n, by);
}

bool place_ghost_leave(struct place *p, place_node n)
{
	bool left = false;

	for (struct place_eligible *e = p->eligibles; e; e = e->hh.next) {
		if (sees_ghosts(e) || !e->of[n])
			continue;
		count_node(p, e, n, -1);
		change_node(p, e, n, false);
		left = true;
	}
	return left;
}

void place_ghost_return(struct place *p, place_node n)
{
	for (struct place_eligible *e = p->eligibles; e; e = e->hh.next) {
		if (sees_ghosts(e) || e->of[n] || !is_eligible(p, e, n))
			continue;
		change_node(p, e, n, true);
		count_node(p, e, n, 1);
	}
}

void place_count_class(struct place *p, const struct place_class *c, uint32_t counter)
{
	for (const struct place_slot *s = c->first; s; s = s->next_of_class)
		if (s->node != PLACE_NONE)
			count_in(p, &p->counters.of[counter], s, s->node, 1);
}

void place_counters_free(struct place *p)
{
	struct place_group *g, *next_group;
	struct place_eligible *e, *next_eligible;

	HASH_RELEASE (p->groups, g, next_group)
		place_group_free(g);
	HASH_RELEASE (p->eligibles, e, next_eligible)
		free_eligible(e);
	for (uint32_t k = 0; k < p->counters.count; k++)
		counter_fini(&p->counters.of[k]);
	for (uint32_t k = 0; k < p->keys.count; k++)
		free_key(&p->keys.of[k]);
	p->counters.count = p->keys.count = 0;
	p->linked_classes = p->linked_counters = 0;
	place_namespaces_free(p);
}
