/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing what is missing. The class with the fewest choices goes first; each placeholder goes to the fullest node that takes it, so that empty
 * nodes stay empty and can be drained. Pods of a class are alike: where one found no place, the others are not asked.
 *
 * Before a new node is asked for, placeholders with more choices make way, one step deep: on one node, those that come later in the order are taken
 * until there is room, and each must find another place at once. Else all of it is undone.
 *
 *   choices = nodes whose labels and taints admit it, or domains of a topology key that it minds others in, whichever are fewer
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/mem.h"

#define NONE UINT32_MAX

/* --- the order of classes */

/* Without rounding: products of two amounts fit in 128 bits. */
static int compare_fractions(int64_t a, int64_t a_of, int64_t b, int64_t b_of)
{
	__int128 left = (__int128)a * b_of, right = (__int128)b * a_of;

	return (left > right) - (left < right);
}

/* The larger of its shares of what all nodes give. */
static void share_of(const struct slack_amount *a, const struct slack_amount *all, int64_t *part,
		     int64_t *whole)
{
	*part = a->cpu_milli;
	*whole = all->cpu_milli > 0 ? all->cpu_milli : 1;
	if (all->mem_bytes > 0 &&
	    compare_fractions(a->mem_bytes, all->mem_bytes, *part, *whole) > 0) {
		*part = a->mem_bytes;
		*whole = all->mem_bytes;
	}
}

int slack_compare_size(const struct slack_run *r, uint32_t a, uint32_t b)
{
	int64_t left, left_of, right, right_of;

	share_of(&r->classes[a]->pattern.shape, &r->survey.allocatable, &left, &left_of);
	share_of(&r->classes[b]->pattern.shape, &r->survey.allocatable, &right, &right_of);
	return compare_fractions(left, left_of, right, right_of);
}

struct value {
	UT_hash_handle hh;
	const char *text;
};

static uint32_t count_domains(const struct slack_run *r, const char *key)
{
	struct value *values = NULL, *v, *next;
	uint32_t count = 0;

	for (size_t n = 0; n < r->survey.count; n++) {
		const char *text =
			r->survey.counts[n]
				? labels_find(&r->view->nodes[n]->model->node->labels, key)
				: NULL;

		if (!text)
			continue;
		HASH_FIND_STR(values, text, v);
		if (v)
			continue;
		v = mem_zalloc(1, sizeof(*v));
		v->text = text;
		HASH_ADD_KEYPTR(hh, values, v->text, strlen(v->text), v);
		count++;
	}
	v = values;
	HASH_CLEAR(hh, values);
	for (; v; v = next) {
		next = v->hh.next;
		free(v);
	}
	return count;
}

static uint32_t count_choices(const struct slack_run *r, const struct slack_entry *e)
{
	uint32_t choices = 0;

	for (size_t n = 0; n < r->survey.count; n++)
		choices += r->survey.counts[n] && place_admits(r->place, e->probe, (place_node)n);
	for (size_t k = 0; k < e->pattern.key_count; k++) {
		uint32_t domains = count_domains(r, e->pattern.keys[k]);

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
	int size;

	if (a->choices != b->choices)
		return a->choices < b->choices ? -1 : 1;
	if (a_minds != b_minds)
		return a_minds ? -1 : 1;
	size = slack_compare_size(a->run, b->class, a->class);
	return size ? size : (a->class > b->class) - (a->class < b->class);
}

void slack_order_classes(struct slack_run *r)
{
	struct ordered *list = mem_zalloc(r->class_count + 1, sizeof(*list));

	for (uint32_t c = 0; c < r->class_count; c++)
		list[c] = (struct ordered){
			r, c, slack_is_out_of_time(r) ? 0 : count_choices(r, r->classes[c])};
	qsort(list, r->class_count, sizeof(*list), compare_ordered);
	for (uint32_t i = 0; i < r->class_count; i++) {
		r->order[i] = list[i].class;
		r->rank[list[i].class] = i;
	}
	free(list);
}

/* --- placeholders and nodes */

uint32_t slack_holder_new(struct slack_run *r, uint32_t class)
{
	uint32_t h = r->spare[class];

	if (h != NONE) {
		r->spare[class] = r->holders[h].next;
		return h;
	}
	if (r->holder_count == r->holder_room) {
		r->holder_room = r->holder_room ? r->holder_room * 2 : 64;
		r->holders = mem_realloc(r->holders, r->holder_room * sizeof(*r->holders));
	}
	h = (uint32_t)r->holder_count++;
	r->holders[h] = (struct slack_holder){
		.pod = place_add_pod(r->place, r->classes[class]->pattern.record),
		.class = class,
		.node = PLACE_NONE,
		.next = NONE,
	};
	return h;
}

void slack_holder_put(struct slack_run *r, uint32_t holder, place_node n)
{
	struct slack_holder *h = &r->holders[holder];

	place_put(r->place, h->pod, n);
	h->node = n;
	h->next = r->first[n];
	r->first[n] = holder;
	r->placed[h->class]++;
	slack_amount_add(&r->left[n], &r->classes[h->class]->pattern.shape, -1);
}

void slack_holder_take(struct slack_run *r, uint32_t holder)
{
	struct slack_holder *h = &r->holders[holder];
	uint32_t *at = &r->first[h->node];

	place_take(r->place, h->pod);
	while (*at != holder)
		at = &r->holders[*at].next;
	*at = h->next;
	r->placed[h->class]--;
	slack_amount_add(&r->left[h->node], &r->classes[h->class]->pattern.shape, 1);
	h->node = PLACE_NONE;
	h->next = r->spare[h->class];
	r->spare[h->class] = holder;
}

/* The larger share that is requested of a node. */
static void fill_of(const struct slack_run *r, place_node n, int64_t *part, int64_t *whole)
{
	struct slack_amount used = r->survey.whole[n];

	slack_amount_add(&used, &r->left[n], -1);
	share_of(&used, &r->survey.whole[n], part, whole);
}

int slack_compare_share(const struct slack_run *r, place_node a, place_node b)
{
	int64_t left, left_of, right, right_of;

	fill_of(r, a, &left, &left_of);
	fill_of(r, b, &right, &right_of);
	return compare_fractions(left, left_of, right, right_of);
}

/* --- making way */

enum { DISPLACED_MAX = 32 };

/* Placeholders of a node that come later in the order, the last first. */
static size_t later_on(const struct slack_run *r, place_node n, uint32_t class,
		       uint32_t later[DISPLACED_MAX])
{
	size_t count = 0;

	for (uint32_t h = r->first[n]; h != NONE; h = r->holders[h].next) {
		uint32_t rank = r->rank[r->holders[h].class];
		size_t at = count;

		if (rank <= r->rank[class])
			continue;
		while (at > 0 && r->rank[r->holders[later[at - 1]].class] < rank)
			at--;
		if (at == DISPLACED_MAX)
			continue;
		count += count < DISPLACED_MAX;
		memmove(later + at + 1, later + at, (count - at - 1) * sizeof(*later));
		later[at] = h;
	}
	return count;
}

/* What would be free on it were all that may make way gone; by CPU and memory alone. */
static bool could_hold(const struct slack_run *r, place_node n, uint32_t class)
{
	const struct slack_amount *shape = &r->classes[class]->pattern.shape;
	struct slack_amount room = r->left[n];
	bool any = false;

	for (uint32_t h = r->first[n]; h != NONE; h = r->holders[h].next) {
		uint32_t other = r->holders[h].class;

		if (r->rank[other] <= r->rank[class])
			continue;
		slack_amount_add(&room, &r->classes[other]->pattern.shape, 1);
		any = true;
	}
	return any && slack_amount_fits(shape, &room) &&
	       place_admits(r->place, r->classes[class]->probe, n);
}

struct displacing {
	uint32_t holder; /* that wants a place */
	size_t count;
	uint32_t of[DISPLACED_MAX];
	place_node to[DISPLACED_MAX];
};

/* As a trial: everything is undone, and d says what to do where it is true. */
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

		d->to[i] = place_choose(r->place, displaced, PLACE_FULLEST_FIRST, PLACE_NONE,
					r->survey.counts, NULL);
		if (d->to[i] == PLACE_NONE)
			f = PLACE_FIT;
		else
			place_put(r->place, displaced, d->to[i]);
	}
	place_revert(r->place, m);
	return f == PLACE_FITS;
}

static const char *name_of(const struct slack_run *r, place_node n)
{
	return place_node_name(r->place, n);
}

static void place_on(struct slack_run *r, uint32_t holder, place_node n)
{
	struct slack_move move = {.class = r->reports[r->holders[holder].class].key,
				  .to = name_of(r, n),
				  .cause = SLACK_PLACED};

	slack_holder_put(r, holder, n);
	slack_add_move(r, &move);
}

static void displace(struct slack_run *r, place_node n, const struct displacing *d)
{
	const char *by = r->reports[r->holders[d->holder].class].key;

	for (size_t i = 0; i < d->count; i++)
		slack_holder_take(r, d->of[i]);
	place_on(r, d->holder, n);
	for (size_t i = d->count; i-- > 0;) {
		uint32_t h = slack_holder_new(r, r->holders[d->of[i]].class);
		struct slack_move move = {.class = r->reports[r->holders[h].class].key,
					  .from = name_of(r, n),
					  .to = name_of(r, d->to[i]),
					  .cause = SLACK_DISPLACED,
					  .by = by};

		slack_holder_put(r, h, d->to[i]);
		if (d->to[i] != n)
			slack_add_move(r, &move);
	}
}

struct candidate {
	const struct slack_run *run;
	place_node node;
};

static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;
	int fuller = slack_compare_share(a->run, b->node, a->node);

	return fuller ? fuller : (a->node > b->node) - (a->node < b->node);
}

static size_t find_candidates(const struct slack_run *r, uint32_t class, struct candidate **out)
{
	size_t count = 0;

	*out = mem_zalloc(r->survey.count + 1, sizeof(**out));
	for (place_node n = 0; n < r->survey.count; n++)
		if (r->survey.counts[n] && could_hold(r, n, class))
			(*out)[count++] = (struct candidate){r, n};
	qsort(*out, count, sizeof(**out), compare_candidates);
	return count;
}

static uint32_t missing_of(const struct slack_run *r, uint32_t class)
{
	return slack_missing(r, class);
}

static void give_back(struct slack_run *r, uint32_t holder)
{
	struct slack_holder *h = &r->holders[holder];

	h->next = r->spare[h->class];
	r->spare[h->class] = holder;
}

static void make_way(struct slack_run *r, uint32_t class)
{
	struct displacing d = {.holder = slack_holder_new(r, class)};
	struct candidate *nodes;
	size_t count = find_candidates(r, class, &nodes), at = 0;

	while (at < count && r->tries) {
		r->tries--;
		if (!try_displacing(r, nodes[at].node, &d)) {
			at++;
			continue;
		}
		displace(r, nodes[at].node, &d);
		d.holder = slack_holder_new(r, class);
		if (!missing_of(r, class))
			break;
	}
	r->out_of_tries |= at < count && !r->tries && missing_of(r, class);
	give_back(r, d.holder);
	free(nodes);
}

/* --- all classes */

static void tell_refused(const struct place_counts *counts, struct reason *why)
{
	struct buf text = BUF_INIT;

	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++)
		if (counts->of[f])
			buf_printf(&text, "%s%u %s", text.len ? ", " : "", counts->of[f],
				   place_filter_name((enum place_filter)f));
	reason_set(why, "%s", text.len ? text.data : "there is no node that counts");
	buf_fini(&text);
}

static void place_class(struct slack_run *r, uint32_t class)
{
	struct slack_class *report = &r->reports[class];
	bool found = true;

	while (found && missing_of(r, class)) {
		uint32_t h = slack_holder_new(r, class);
		place_node n = place_choose(r->place, r->holders[h].pod, PLACE_FULLEST_FIRST,
					    PLACE_NONE, r->survey.counts, &report->refused);

		found = n != PLACE_NONE;
		if (found)
			place_on(r, h, n);
		else
			give_back(r, h);
	}
	if (missing_of(r, class))
		make_way(r, class);
	if (missing_of(r, class))
		tell_refused(&report->refused, &report->why);
	else
		report->refused = (struct place_counts){{0}};
}

void slack_place_missing(struct slack_run *r)
{
	for (size_t i = 0; i < r->class_count && !slack_is_out_of_time(r); i++)
		if (missing_of(r, r->order[i]))
			place_class(r, r->order[i]);
}
