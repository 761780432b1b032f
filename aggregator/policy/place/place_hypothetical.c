/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hypothetical pods: pods that place_add_pod() adds and that the view does not have. Each may bring a
 * class, terms, counters, topology keys, claims and resources, and one core answers thousands of
 * requests with such pods, so place_undo_all() takes out all that the last request brought.
 *
 * Every list and hash keeps the order of insertion, and nothing of the view is interned after the
 * first hypothetical pod. So their objects are a tail of each list and hash, behind the lengths in
 * struct place_known, and are freed from the newest to the oldest, users before what they use.
 * Classes of the view have the counters of hypothetical pods at the ends of their lists;
 * hypothetical_links names them.
 */
#include <assert.h>

#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

void place_hypothetical_begin(struct place *p)
{
	p->known = (struct place_known){
		.classes = p->classes.count,
		.counters = p->counters.count,
		.keys = p->keys.count,
		.claims = p->claim_of.count,
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

static void forget_dims(struct place *p)
{
	while (p->dims > p->known.dims)
		free(p->dim_names[--p->dims - RESOURCE_STANDARD]);
}

void place_hypothetical_forget(struct place *p)
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
	forget_dims(p);
	p->selects_namespaces = k->selects_namespaces;
	p->hypothetical = false;
}
