/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that is kept up step by step, worked out anew from where the pods are, and compared:
 * for tests.
 */
#include "tests/consistent.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"

static bool check_amounts(const struct place *p, struct error *error)
{
	place_sum *used = mem_zalloc((size_t)p->node_count * p->dim_room + 1, sizeof(*used));
	bool same = true;

	for (uint32_t i = 0; i < p->pods.count; i++) {
		const struct place_slot *s = p->pods.of[i];
		const struct place_shape *shape;

		if (!s || s->node == PLACE_NONE)
			continue;
		shape = place_slot_shape(s);
		used[(size_t)s->node * p->dim_room + RESOURCE_PODS]++;
		for (uint32_t k = 0; k < shape->count; k++)
			used[(size_t)s->node * p->dim_room + shape->of[k].dim] +=
				shape->of[k].amount;
	}
	for (size_t i = 0; same && i < (size_t)p->node_count * p->dim_room; i++) {
		same = used[i] == p->used[i];
		if (!same)
			error_set(error, "node %s: amount %zu is %" PRId64 " and not %" PRId64,
				  place_node_name(p, (place_node)(i / p->dim_room)),
				  i % p->dim_room, (int64_t)p->used[i], (int64_t)used[i]);
	}
	free(used);
	return same;
}

static bool check_lists(const struct place *p, struct error *error)
{
	for (place_node n = 0; n < p->node_count; n++) {
		int64_t length = 0;

		for (const struct place_slot *s = p->first[n]; s; s = s->next) {
			length++;
			if (s->node != n) {
				error_set(error, "a pod in the list of node %s is not there",
					  place_node_name(p, n));
				return false;
			}
		}
		if (length != p->used[(size_t)n * p->dim_room + RESOURCE_PODS]) {
			error_set(error, "the list of node %s has %" PRId64 " pods",
				  place_node_name(p, n), length);
			return false;
		}
	}
	return true;
}

/*
 * How often a pod of the class counts, not by what was linked but by what it says: an anti-affinity
 * term that is there twice counts twice.
 */
static uint32_t weight_in(const struct place *p, const struct place_counter *c,
			  const struct place_class *class)
{
	uint32_t weight = 0;

	if (c->kind != PLACE_COUNT_CARRIERS)
		return place_group_matches(p, c->group, class);
	for (uint32_t i = 0; i < class->carried.count; i++)
		weight += &p->counters.of[class->carried.of[i]] == c;
	return weight;
}

static void recount(const struct place *p, const struct place_counter *c, uint32_t *count)
{
	uint32_t *weights = mem_zalloc((size_t)p->classes.count + 1, sizeof(*weights));
	const uint32_t *domain_of = p->keys.of[c->key].domain_of;

	for (uint32_t i = 0; i < p->classes.count; i++)
		weights[i] = weight_in(p, c, p->classes.of[i]);
	for (uint32_t i = 0; i < p->pods.count; i++) {
		const struct place_slot *s = p->pods.of[i];

		if (!s || s->node == PLACE_NONE || domain_of[s->node] == PLACE_NONE)
			continue;
		if (c->kind == PLACE_COUNT_SPREAD && (s->leaving || !c->eligible->of[s->node]))
			continue;
		count[domain_of[s->node]] += weights[s->class->id];
	}
	free(weights);
}

/* In which domains there are eligible nodes. */
static bool *find_domains(const struct place *p, const struct place_counter *c)
{
	const struct place_key *k = &p->keys.of[c->key];
	bool *there = mem_zalloc((size_t)k->domain_count + 1, sizeof(*there));

	for (place_node n = 0; n < p->node_count; n++)
		if (c->eligible->of[n])
			there[k->domain_of[n]] = true;
	return there;
}

static bool check_least(const struct place *p, const struct place_counter *c, struct error *error)
{
	const struct place_key *k = &p->keys.of[c->key];
	uint32_t domains = 0, least = 0;
	bool *there;

	if (c->kind != PLACE_COUNT_SPREAD)
		return true;
	there = find_domains(p, c);
	for (uint32_t d = 0; d < k->domain_count; d++) {
		uint32_t count = place_tally_get(&c->count, d);

		if (there[d] && (domains++ == 0 || count < least))
			least = count;
	}
	free(there);
	if (domains == c->domains && (least == c->min || !domains))
		return true;
	error_set(error, "spread over %s: the least of %u domains is %u, and not %u of %u", k->name,
		  domains, least, c->min, c->domains);
	return false;
}

static bool check_counter(const struct place *p, const struct place_counter *c, struct error *error)
{
	const struct place_key *k = &p->keys.of[c->key];
	uint32_t *count = mem_zalloc((size_t)k->domain_count + 1, sizeof(*count));
	uint32_t total = 0;
	bool same = true;

	recount(p, c, count);
	for (uint32_t d = 0; d < k->domain_count; d++) {
		total += count[d];
		if (same && count[d] != place_tally_get(&c->count, d)) {
			same = false;
			error_set(error, "a counter of %s: %u pods counted, %u there (%.200s)",
				  k->name, place_tally_get(&c->count, d), count[d], c->group->text);
		}
	}
	if (same && total != c->total) {
		same = false;
		error_set(error, "a counter of %s: %u in all, %u there", k->name, c->total, total);
	}
	free(count);
	return same && check_least(p, c, error);
}

static bool check_use(const struct place *p, struct error *error)
{
	for (place_node n = 0; p->cap && n < p->node_count; n++) {
		struct place_node_use sum = p->use[n], base;

		for (const struct place_slot *s = p->first[n]; s; s = s->next)
			place_use_add(&sum, &s->use, -1);
		place_use_base(p, n, &base);
		if (memcmp(&sum, &base, sizeof(sum)) != 0) {
			error_set(error, "node %s: the use of its pods does not add up",
				  place_node_name(p, n));
			return false;
		}
	}
	return true;
}

static bool check_claims(const struct place *p, struct error *error)
{
	for (const struct place_claim *claim = p->claims; claim; claim = claim->hh.next) {
		uint32_t users = 0;

		for (uint32_t i = 0; i < p->pods.count; i++) {
			const struct place_slot *s = p->pods.of[i];

			for (uint32_t k = 0;
			     s && s->node != PLACE_NONE && k < s->class->claims.count; k++)
				users += s->class->claims.of[k] == claim;
		}
		if (users != claim->users) {
			error_set(error, "claim %s: %u users counted, %u there", claim->key,
				  claim->users, users);
			return false;
		}
		if (claim->given && claim->given->given_to != claim) {
			error_set(error, "claim %s has a volume that is another's", claim->key);
			return false;
		}
	}
	return true;
}

/* What is given away is somebody's. */
static bool check_stocks(const struct place *p, struct error *error)
{
	for (const struct place_stock *s = p->stocks; s; s = s->hh.next) {
		for (uint32_t i = 0; i < s->volumes.count; i++) {
			const struct place_volume *v = s->volumes.of[i];

			if (v->given_to && v->given_to->given != v) {
				error_set(error, "volume %s is given to nobody", v->name);
				return false;
			}
		}
	}
	return true;
}

bool place_is_consistent(const struct place *p, struct error *error)
{
	if (!check_amounts(p, error) || !check_lists(p, error) || !check_use(p, error) ||
	    !check_claims(p, error) || !check_stocks(p, error))
		return false;
	for (uint32_t i = 0; i < p->counters.count; i++)
		if (!check_counter(p, &p->counters.of[i], error))
			return false;
	return true;
}
