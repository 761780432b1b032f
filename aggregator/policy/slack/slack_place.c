/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places the missing placeholders. Classes with the fewest choices go first, each placeholder to the
 * fullest node that takes it, so that empty nodes stay empty for drains. Pods of a class are alike:
 * where one found no node, the others are not tried.
 *
 * Before a new node is needed, placeholders with more choices are displaced, one step deep: on one
 * node, later ones in the order are taken until there is room, and each must find another node at once.
 * Otherwise all of it is undone.
 *
 * A placeholder goes only where the constraints of placed ones hold (slack_verify.c).
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

#define NONE UINT32_MAX

/* --- placeholders and nodes */

uint32_t slack_holder_new(struct slack_run *r, uint32_t class)
{
	struct slack_entry *e = r->classes[class];
	uint32_t h = e->spare;

	if (h != NONE) {
		e->spare = r->holders[h].next;
		return h;
	}
	r->holders = array_grow(r->holders, r->holder_count, sizeof(*r->holders));
	h = (uint32_t)r->holder_count++;
	r->holders[h] = (struct slack_holder){
		.pod = place_add_pod(r->place, e->pattern.record),
		.class = class,
		.node = PLACE_NONE,
		.next = NONE,
		.next_of_class = e->first_holder,
	};
	e->first_holder = h;
	return h;
}

void slack_holder_put(struct slack_run *r, uint32_t holder, place_node n)
{
	struct slack_holder *h = &r->holders[holder];
	struct slack_node *node = &r->survey.nodes[n];

	place_put(r->place, h->pod, n);
	h->node = n;
	h->next = node->first_holder;
	node->first_holder = holder;
	r->classes[h->class]->placed++;
	slack_amount_add(&node->left, &r->classes[h->class]->pattern.shape, -1);
}

static void give_back(struct slack_run *r, uint32_t holder)
{
	struct slack_entry *e = r->classes[r->holders[holder].class];

	r->holders[holder].next = e->spare;
	e->spare = holder;
}

void slack_holder_take(struct slack_run *r, uint32_t holder)
{
	struct slack_holder *h = &r->holders[holder];
	struct slack_node *node = &r->survey.nodes[h->node];
	uint32_t *at = &node->first_holder;

	place_take(r->place, h->pod);
	while (*at != holder)
		at = &r->holders[*at].next;
	*at = h->next;
	r->classes[h->class]->placed--;
	slack_amount_add(&node->left, &r->classes[h->class]->pattern.shape, 1);
	h->node = PLACE_NONE;
	give_back(r, holder);
}

/* --- displacing */

enum { DISPLACED_MAX = 32 };

/* Placeholders of a node that come later in the order, the last first. */
static size_t later_on(const struct slack_run *r, place_node n, uint32_t class,
		       uint32_t later[DISPLACED_MAX])
{
	size_t count = 0;

	for (uint32_t h = r->survey.nodes[n].first_holder; h != NONE; h = r->holders[h].next) {
		uint32_t rank = r->classes[r->holders[h].class]->rank;
		size_t at = count;

		if (rank <= r->classes[class]->rank)
			continue;
		while (at > 0 && r->classes[r->holders[later[at - 1]].class]->rank < rank)
			at--;
		if (at == DISPLACED_MAX)
			continue;
		count += count < DISPLACED_MAX;
		memmove(later + at + 1, later + at, (count - at - 1) * sizeof(*later));
		later[at] = h;
	}
	return count;
}

/* Whether it would fit by CPU and memory without the placeholders that may be displaced. */
static bool could_hold(const struct slack_run *r, place_node n, uint32_t class)
{
	const struct slack_amount *shape = &r->classes[class]->pattern.shape;
	struct slack_amount room = r->survey.nodes[n].left;
	bool any = false;

	for (uint32_t h = r->survey.nodes[n].first_holder; h != NONE; h = r->holders[h].next) {
		uint32_t other = r->holders[h].class;

		if (r->classes[other]->rank <= r->classes[class]->rank)
			continue;
		slack_amount_add(&room, &r->classes[other]->pattern.shape, 1);
		any = true;
	}
	return any && slack_amount_fits(shape, &room) &&
	       place_admits(r->place, r->classes[class]->probe, n);
}

struct displacing {
	uint32_t holder; /* to be placed */
	size_t count;
	uint32_t of[DISPLACED_MAX];
	place_node to[DISPLACED_MAX];
};

/* Whether taking or moving them violates constraints. Holders of a class are neighbours. */
static bool makes_trouble(struct slack_run *r, uint32_t class, const struct displacing *d)
{
	bool trouble = slack_verify_breaks(r, class, false, NULL);

	for (size_t i = 0; i < d->count && !trouble; i++) {
		uint32_t displaced = r->holders[d->of[i]].class;

		if (i == 0 || displaced != r->holders[d->of[i - 1]].class)
			trouble = slack_verify_breaks(r, displaced, true, NULL);
	}
	return trouble;
}

/* A trial that is undone; d has the moves if it is true. */
static bool try_displacing(struct slack_run *r, place_node n, struct displacing *d)
{
	uint32_t class = r->holders[d->holder].class, later[DISPLACED_MAX];
	place_pod pod = r->holders[d->holder].pod;
	size_t count = later_on(r, n, class, later);
	place_mark m = place_fork(r->place);
	enum place_filter f = PLACE_FIT;

	d->count = 0;
	while (f != PLACE_FITS && d->count < count) {
		d->of[d->count] = later[d->count];
		place_take(r->place, r->holders[later[d->count++]].pod);
		f = place_check(r->place, pod, n);
	}
	if (f == PLACE_FITS)
		place_put(r->place, pod, n);
	for (size_t i = 0; f == PLACE_FITS && i < d->count; i++) {
		place_pod displaced = r->holders[d->of[i]].pod;

		/* A placeholder that is not in the way stays on the node. */
		d->to[i] = place_choose(r->place, displaced, PLACE_FULLEST_FIRST, n,
					r->survey.counts, NULL);
		if (d->to[i] == PLACE_NONE)
			f = PLACE_FIT;
		else
			place_put(r->place, displaced, d->to[i]);
	}
	if (f == PLACE_FITS && makes_trouble(r, class, d))
		f = PLACE_SPREAD;
	place_revert(r->place, m);
	return f == PLACE_FITS;
}

static void place_on(struct slack_run *r, uint32_t holder, place_node n)
{
	slack_holder_put(r, holder, n);
	slack_add_move(r, SLACK_PLACED, r->reports[r->holders[holder].class].key, NULL,
		       place_node_name(r->place, n));
}

static void displace(struct slack_run *r, place_node n, const struct displacing *d)
{
	for (size_t i = 0; i < d->count; i++)
		slack_holder_take(r, d->of[i]);
	place_on(r, d->holder, n);
	for (size_t i = d->count; i-- > 0;) {
		uint32_t class = r->holders[d->of[i]].class;

		slack_holder_put(r, slack_holder_new(r, class), d->to[i]);
		if (d->to[i] != n)
			slack_add_move(r, SLACK_DISPLACED, r->reports[class].key,
				       place_node_name(r->place, n),
				       place_node_name(r->place, d->to[i]))
				->by = r->reports[r->holders[d->holder].class].key;
	}
}

static int compare_candidates(const void *left, const void *right, void *run)
{
	const place_node *a = left, *b = right;

	return slack_compare_share(run, *b, *a) ?: COMPARE(*a, *b);
}

static size_t find_candidates(struct slack_run *r, uint32_t class, place_node **out)
{
	size_t count = 0;

	*out = mem_zalloc(r->survey.count + 1, sizeof(**out));
	for (place_node n = 0; n < r->survey.count; n++)
		if (r->survey.counts[n] && could_hold(r, n, class))
			(*out)[count++] = n;
	qsort_r(*out, count, sizeof(**out), compare_candidates, r);
	return count;
}

static void make_way(struct slack_run *r, uint32_t class)
{
	struct displacing d = {.holder = slack_holder_new(r, class)};
	place_node *nodes;
	size_t count = find_candidates(r, class, &nodes), at = 0;

	while (at < count && r->tries && !slack_is_out_of_time(r)) {
		r->tries--;
		if (!try_displacing(r, nodes[at], &d)) {
			at++;
			continue;
		}
		displace(r, nodes[at], &d);
		d.holder = slack_holder_new(r, class);
		if (!slack_missing(r, class))
			break;
	}
	r->out_of_tries |= at < count && !r->tries && slack_missing(r, class);
	give_back(r, d.holder);
	free(nodes);
}

/* --- all classes */

static void tell_refused(const struct place_counts *counts, uint32_t troubled, struct error *why)
{
	struct buf text = BUF_INIT;

	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++)
		if (counts->of[f])
			buf_printf(&text, "%s%u %s", text.len ? ", " : "", counts->of[f],
				   place_filter_name((enum place_filter)f));
	if (troubled)
		buf_printf(&text, "%s%u where constraints of other placeholders would be violated",
			   text.len ? ", " : "", troubled);
	error_set(why, "%s", text.len ? text.data : "there is no node that counts");
	buf_fini(&text);
}

/* Nodes where a class may be tried. */
struct choices {
	const bool *allowed; /* by node */
	bool *fewer; /* owned; the same without those that make trouble; NULL: none does */
	uint32_t troubled;
};

/* A violated constraint is violated in the whole domain: equal labels, or none on both nodes. */
static bool is_alike(const struct slack_run *r, uint32_t minder, place_node a, place_node b)
{
	const struct slack_pattern *p = &r->classes[minder]->pattern;

	for (size_t k = 0; k < p->key_count; k++) {
		const char *x = labels_find(&r->view->nodes[a]->model->node->labels, p->keys[k]);
		const char *y = labels_find(&r->view->nodes[b]->model->node->labels, p->keys[k]);

		if (!array_is_same_text(x, y))
			return false;
	}
	return true;
}

static void choose_without(const struct slack_run *r, struct choices *c, place_node n,
			   uint32_t minder)
{
	if (!c->fewer) {
		c->fewer = mem_zalloc(r->survey.count, sizeof(*c->fewer));
		memcpy(c->fewer, r->survey.counts, r->survey.count * sizeof(*c->fewer));
		c->allowed = c->fewer;
	}
	for (place_node other = 0; other < r->survey.count; other++) {
		if (!c->fewer[other] || (other != n && !is_alike(r, minder, n, other)))
			continue;
		c->fewer[other] = false;
		c->troubled++;
	}
}

/* False: no node takes it. */
static bool place_one(struct slack_run *r, uint32_t class, struct choices *c)
{
	uint32_t h = slack_holder_new(r, class), minder;
	struct slack_class *report = &r->reports[class];
	place_node n;

	while ((n = place_choose(r->place, r->holders[h].pod, PLACE_FULLEST_FIRST, PLACE_NONE,
				 c->allowed, &report->refused)) != PLACE_NONE) {
		place_mark m = place_fork(r->place);
		bool trouble;

		place_put(r->place, r->holders[h].pod, n);
		trouble = slack_verify_breaks(r, class, false, &minder);
		place_revert(r->place, m);
		if (!trouble) {
			place_on(r, h, n);
			return true;
		}
		choose_without(r, c, n, minder);
	}
	give_back(r, h);
	return false;
}

static void place_class(struct slack_run *r, uint32_t class)
{
	struct slack_class *report = &r->reports[class];
	struct choices c = {.allowed = r->survey.counts};

	while (slack_missing(r, class) && !slack_is_out_of_time(r) && place_one(r, class, &c))
		continue;
	if (slack_missing(r, class))
		make_way(r, class);
	if (slack_missing(r, class))
		tell_refused(&report->refused, c.troubled, &report->why);
	else
		report->refused = (struct place_counts){.nearest = PLACE_NONE};
	free(c.fewer);
}

/* True: some were placed, and others are missing. */
static bool place_all(struct slack_run *r)
{
	size_t moves = r->result->move_count;
	bool missing = false;

	for (size_t i = 0; i < r->class_count && !slack_is_out_of_time(r); i++) {
		if (!slack_missing(r, r->order[i]))
			continue;
		place_class(r, r->order[i]);
		missing |= slack_missing(r, r->order[i]) > 0;
	}
	return missing && r->result->move_count > moves;
}

/* Repeats as long as it helps: a placed one may satisfy the affinity of others. */
void slack_place_missing(struct slack_run *r)
{
	while (place_all(r) && !slack_is_out_of_time(r))
		continue;
}
