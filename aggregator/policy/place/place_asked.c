/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod that is only asked about brings a class, and that its terms, their groups and counters, topology keys, claims and resources: whatever
 * somebody cares to name. A core lives as long as the view does, and answers thousands of questions; so what a question brought goes before the
 * next one.
 *
 * Everything is interned in the order it comes, and nothing of the view comes after the first pod that was added. So all that is newer than the
 * view is a tail of each list and hash, known by how long these were, and goes from the newest to the oldest, users before what they use. The classes of
 * the view keep the counters they were told of last at the ends of their lists; asked_links says which.
 */
#include <assert.h>

#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

void place_asked_begin(struct place *p)
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
	p->asking = true;
}

static void unlink_counter(struct place *p, const struct place_asked_link *l)
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

void place_asked_forget(struct place *p)
{
	const struct place_known *k = &p->known;

	assert(p->asking);
	while (p->asked_links.count)
		unlink_counter(p, &p->asked_links.of[--p->asked_links.count]);
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
	p->asking = false;
}
