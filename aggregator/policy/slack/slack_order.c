/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of classes and nodes: classes with the fewest choices first, fullest nodes first.
 *
 *   choices = nodes whose labels and taints admit the class, or domains of a topology key of its
 *             constraints, whichever are fewer
 *
 * Shares are compared crosswise, without rounding.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

/* --- the order of classes */

struct fraction {
	int64_t part, whole;
};

/* Products of two amounts fit in 128 bits. */
static int compare_fractions(struct fraction a, struct fraction b)
{
	__int128 left = (__int128)a.part * b.whole, right = (__int128)b.part * a.whole;

	return COMPARE(left, right);
}

/* The larger of its shares of what all nodes give. */
static struct fraction share_of(const struct slack_amount *a, const struct slack_amount *all)
{
	const struct fraction cpu = {a->cpu_milli, int_max(all->cpu_milli, 1)};
	const struct fraction mem = {a->mem_bytes, all->mem_bytes};

	return all->mem_bytes > 0 && compare_fractions(mem, cpu) > 0 ? mem : cpu;
}

int slack_compare_size(const struct slack_run *r, uint32_t a, uint32_t b)
{
	const struct slack_amount *all = &r->result->allocatable;

	return compare_fractions(share_of(&r->classes[a]->pattern.shape, all),
				 share_of(&r->classes[b]->pattern.shape, all));
}

static uint32_t count_values(const struct slack_run *r, const char *key)
{
	const char **values = mem_zalloc(r->survey.count + 1, sizeof(char *));
	uint32_t count = 0, distinct = 0;

	for (size_t n = 0; n < r->survey.count; n++) {
		const char *text =
			r->survey.counts[n]
				? labels_find(&r->view->nodes[n]->model->node->labels, key)
				: NULL;

		if (text)
			values[count++] = text;
	}
	qsort(values, count, sizeof(char *), array_compare_text);
	for (uint32_t i = 0; i < count; i++)
		distinct += i == 0 || strcmp(values[i - 1], values[i]) != 0;
	free(values);
	return distinct;
}

/* Domains by topology key; thousands of classes share a few keys. */
struct topologies {
	size_t count;
	struct topology {
		const char *key; /* borrowed */
		uint32_t domains;
	} * of; /* owned */
};

static uint32_t count_domains(const struct slack_run *r, struct topologies *known, const char *key)
{
	struct topology *t = array_find_text(known->of, known->count, sizeof(*known->of), key);

	if (!t) {
		ARRAY_ADD(known->of, known->count) = (struct topology){key, count_values(r, key)};
		t = &known->of[known->count - 1];
	}
	return t->domains;
}

static uint32_t count_choices(struct slack_run *r, struct topologies *known,
			      const struct slack_entry *e)
{
	uint32_t choices = slack_node_set_of(r, e->probe)->count;

	for (size_t k = 0; k < e->pattern.key_count; k++) {
		uint32_t domains = count_domains(r, known, e->pattern.keys[k]);

		choices = domains < choices ? domains : choices;
	}
	return choices;
}

struct ordered {
	const struct slack_run *run;
	uint32_t class, choices;
};

static int compare_ordered(const void *left, const void *right)
{
	const struct ordered *a = left, *b = right;
	bool a_minds = a->run->classes[a->class]->pattern.minds_others;
	bool b_minds = b->run->classes[b->class]->pattern.minds_others;

	return COMPARE(a->choices, b->choices)
		?: COMPARE(b_minds, a_minds)
		?: slack_compare_size(a->run, b->class, a->class)
		?: COMPARE(a->class, b->class);
}

void slack_order_classes(struct slack_run *r)
{
	struct ordered *list = mem_zalloc(r->class_count + 1, sizeof(*list));
	struct topologies known = {0};

	for (uint32_t c = 0; c < r->class_count; c++) {
		list[c] = (struct ordered){.run = r, .class = c};
		if (!slack_is_out_of_time(r))
			list[c].choices = count_choices(r, &known, r->classes[c]);
	}
	free(known.of);
	qsort(list, r->class_count, sizeof(*list), compare_ordered);
	for (uint32_t i = 0; i < r->class_count; i++) {
		r->order[i] = list[i].class;
		r->classes[list[i].class]->rank = i;
	}
	free(list);
}

/* --- nodes */

/* The larger share that is requested of a node. */
static struct fraction fill_of(const struct slack_run *r, place_node n)
{
	struct slack_amount used = r->survey.nodes[n].whole;

	slack_amount_add(&used, &r->survey.nodes[n].left, -1);
	return share_of(&used, &r->survey.nodes[n].whole);
}

int slack_compare_share(const struct slack_run *r, place_node a, place_node b)
{
	return compare_fractions(fill_of(r, a), fill_of(r, b));
}
