/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations are sorted by pod, nodes are asked about by place: each reservation finds its node
 * once, then they are sorted by that and neighbours are added up. So the cost is that of the
 * reservations, however many nodes there are.
 */
#include "aggregator/api/assumed.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "shared/mem.h"

/* By node; of one node in the order of the copy, so that the same one is always named. */
struct charge {
	size_t node, at;
};

static int compare_charges(const void *a, const void *b)
{
	const struct charge *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static size_t find_charges(const struct view *v, const struct ledger_copy *copy,
			   const char *except_uid, struct charge *charges)
{
	uint64_t generation = v->cluster ? v->cluster->generation : 0;
	size_t count = 0;

	for (size_t i = 0; i < copy->count; i++) {
		const struct ledger_entry *e = copy->of[i];
		size_t node;

		if (!*e->node || strcmp(e->uid, except_uid) == 0 || !ledger_counts(e, generation))
			continue;
		node = view_index(v, e->node);
		if (node < v->node_count)
			charges[count++] = (struct charge){node, i};
	}
	return count;
}

static void add(struct score_assumed *sums, const struct ledger_entry *e)
{
	if (!sums->pods++) {
		sums->namespace = e->namespace;
		sums->name = e->name;
	}
	sums->request_cpu_milli =
		add_saturating(sums->request_cpu_milli, e->requests.of[RESOURCE_CPU]);
	sums->request_mem_bytes =
		add_saturating(sums->request_mem_bytes, e->requests.of[RESOURCE_MEMORY]);
	sums->cpu_milli = add_saturating(sums->cpu_milli, e->expected_cpu_milli);
	sums->cpu_high_milli = add_saturating(sums->cpu_high_milli, e->expected_high_cpu_milli);
	sums->mem_bytes = add_saturating(sums->mem_bytes, e->expected_mem_bytes);
}

void assumed_read(struct assumed *a, const struct view *v, const struct ledger_copy *copy,
		  const char *except_uid)
{
	struct charge *charges;
	size_t count;

	*a = (struct assumed){0, NULL};
	if (!copy || !copy->count)
		return;
	charges = mem_alloc(copy->count * sizeof(*charges));
	count = find_charges(v, copy, except_uid, charges);
	if (count > 1)
		qsort(charges, count, sizeof(*charges), compare_charges);
	a->of = mem_zalloc(count + 1, sizeof(*a->of));
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || charges[i].node != charges[i - 1].node)
			a->of[a->count++].node = charges[i].node;
		add(&a->of[a->count - 1].sums, copy->of[charges[i].at]);
	}
	free(charges);
}

static void add_other(struct pod_load *load, const struct ledger_entry *e, const char *name)
{
	int64_t request = 0;

	resources_find(&e->requests, name, &request);
	load->limits = add_saturating(load->limits, request);
	load->limits_running = add_saturating(load->limits_running, request);
}

void assumed_add_others(const struct view *v, const struct ledger_copy *copy,
			const char *except_uid, const struct score_args *args,
			struct score_other *others)
{
	size_t each = args->limit_other_count, count;
	struct charge *charges;

	if (!copy || !copy->count)
		return;
	charges = mem_alloc(copy->count * sizeof(*charges));
	count = find_charges(v, copy, except_uid, charges);
	for (size_t i = 0; i < count; i++)
		for (size_t r = 0; r < each; r++)
			add_other(&others[charges[i].node * each + r].load, copy->of[charges[i].at],
				  args->limit_others[r].name);
	free(charges);
}

void assumed_fini(struct assumed *a)
{
	free(a->of);
	*a = (struct assumed){0, NULL};
}

static int compare_node(const void *key, const void *item)
{
	size_t node = *(const size_t *)key, other = ((const struct assumed_node *)item)->node;

	return node < other ? -1 : node > other;
}

const struct score_assumed *assumed_find(const struct assumed *a, size_t node)
{
	const struct assumed_node *found =
		a->count ? bsearch(&node, a->of, a->count, sizeof(*a->of), compare_node) : NULL;

	return found ? &found->sums : NULL;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x9e3779b97f4a7c15ULL ^ (hash >> 29);
}

uint64_t assumed_hash(const struct assumed *a)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < a->count; i++) {
		const struct score_assumed *s = &a->of[i].sums;

		hash = mix(mix(hash, a->of[i].node + 1), s->pods);
		hash = mix(mix(hash, (uint64_t)s->request_cpu_milli),
			   (uint64_t)s->request_mem_bytes);
		hash = mix(hash, (uint64_t)s->cpu_milli);
	}
	return hash;
}
