/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement core against the checker, in some thousand random clusters: whatever was put,
 * taken, removed, undone or updated, both say the same of every pod and node. A failure names the
 * seed of its cluster; given as the first argument, only that is run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/place/place.h"
#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/place_scan.h"
#include "tests/place_world.h"
#include "tests/sanitized.h"

enum { SEEDS = RANDOM_CASES(1000), STEPS = 24, MARKS_MAX = 4 };

static uint64_t only_seed; /* 0: all */

struct scene {
	uint64_t seed;
	struct place_world w;
	struct verify_world c;
	struct model *m;
	struct place *p;
};

static struct place_options options(const struct place_world *w, bool cap)
{
	struct place_options o;

	place_options_default(&o);
	o.cap.on = cap; /* without measurements it is off whatever is asked for */
	o.now_ns = w->now_ns;
	return o;
}

static struct place *new_place(const struct place_world *w, struct model *m, bool cap)
{
	const struct place_options o = options(w, cap);
	struct view *v = place_world_view(w, m);
	struct place *p = place_new(v, &o);

	view_drop(v);
	return p;
}

static void open_scene(struct scene *s, uint64_t seed)
{
	s->seed = seed;
	place_world_init(&s->w, seed);
	s->c = place_world_checker(&s->w);
	s->m = place_world_model(&s->w, seed);
	s->p = new_place(&s->w, s->m, seed % 2);
}

static void close_scene(struct scene *s)
{
	place_free(s->p);
	model_free(s->m);
	place_world_fini(&s->w);
}

static void for_all(void (*test)(struct scene *s), uint64_t seeds)
{
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct scene s;

		if (only_seed && seed != only_seed)
			continue;
		open_scene(&s, seed);
		test(&s);
		close_scene(&s);
	}
}

/* PLACE_NONE: it has ended. */
static place_pod find_pod(const struct scene *s, const struct place *p, size_t pod)
{
	return place_find_pod(p, place_world_namespace(s->w.pods[pod]),
			      place_world_name(s->w.pods[pod]));
}

static place_node find_node(const struct scene *s, const struct place *p, size_t node)
{
	return place_find_node(p, place_world_name(s->w.nodes[node]));
}

static bool is_free(const struct scene *s, size_t pod)
{
	place_pod handle = find_pod(s, s->p, pod);

	return handle != PLACE_NONE && place_where(s->p, handle) == PLACE_NONE;
}

/* --- verdicts */

static void print_others(const struct scene *s)
{
	for (size_t i = 0; i < s->w.other_count; i++) {
		char *text = cJSON_PrintUnformatted(s->w.others[i]);

		fprintf(stderr, "%s\n", text);
		cJSON_free(text);
	}
}

static void fail_pair(const struct scene *s, size_t pod, size_t node, const char *what,
		      enum place_filter got, const struct place_verdict *v)
{
	char *pod_text = cJSON_PrintUnformatted(s->w.pods[pod]);
	char *node_text = cJSON_PrintUnformatted(s->w.nodes[node]);
	struct error why = {""};

	print_others(s);
	place_explain(s->p, find_pod(s, s->p, pod), find_node(s, s->p, node), &why);
	fail_msg("seed %llu, %s: %s/%s on %s is %s (%s), should be %s (%s)\n%s\n%s",
		 (unsigned long long)s->seed, what, place_world_namespace(s->w.pods[pod]),
		 place_world_name(s->w.pods[pod]), place_world_name(s->w.nodes[node]),
		 place_filter_name(got), why.text, place_filter_name(v->filter), v->error.text,
		 pod_text, node_text);
}

static void check_pair(const struct scene *s, size_t pod, size_t node, place_pod handle,
		       const char *what)
{
	const struct place_verdict v = place_checker_ask(&s->c, pod, node);
	enum place_filter got = place_check(s->p, handle, find_node(s, s->p, node));

	if (!place_verdict_allows(&v, got))
		fail_pair(s, pod, node, what, got, &v);
}

/* The sentence is there when it must be, and is about the same filter. */
static void check_sentence(const struct scene *s, size_t pod, size_t node)
{
	place_pod handle = find_pod(s, s->p, pod);
	place_node at = find_node(s, s->p, node);
	struct error why = {""};
	enum place_filter got = place_explain(s->p, handle, at, &why);

	if (got != place_check(s->p, handle, at) || (got != PLACE_FITS && !*why.text))
		fail_msg("seed %llu: %s is explained as %s: \"%s\"", (unsigned long long)s->seed,
			 place_filter_name(place_check(s->p, handle, at)), place_filter_name(got),
			 why.text);
}

static void check_all(struct scene *s, const char *what)
{
	s->c = place_world_checker(&s->w);
	for (size_t pod = 0; pod < s->w.pod_count; pod++)
		for (size_t node = 0; is_free(s, pod) && node < s->w.node_count; node++)
			check_pair(s, pod, node, find_pod(s, s->p, pod), what);
}

static void check_consistent(const struct scene *s, const char *what)
{
	struct error why = {""};

	if (!place_is_consistent(s->p, &why))
		fail_msg("seed %llu, %s: %s", (unsigned long long)s->seed, what, why.text);
}

static void test_verdicts(struct scene *s)
{
	check_consistent(s, "new");
	check_all(s, "new");
	for (size_t pod = 0; pod < s->w.pod_count; pod++) {
		if (is_free(s, pod))
			for (size_t node = 0; node < s->w.node_count; node++)
				check_sentence(s, pod, node);
		/* Of what the API never told, only the record is known. */
		if (is_free(s, pod)) {
			struct kube_pod *record = place_world_record(&s->w, pod);
			place_pod added = place_add_pod(s->p, record);

			object_drop(&record->object);
			for (size_t node = 0; node < s->w.node_count; node++)
				check_pair(s, pod, node, added, "added");
		}
	}
}

static void every_verdict_is_that_of_the_scheduler(void **state)
{
	(void)state;
	for_all(test_verdicts, 2 * SEEDS);
}

/* --- changes */

/* What a mark goes back to. */
struct saved {
	place_mark mark;
	int where[PLACE_WORLD_PODS];
	bool removed[PLACE_WORLD_NODES];
	size_t bound;
};

static void save(struct scene *s, struct saved *to)
{
	to->mark = place_fork(s->p);
	to->bound = s->w.bound_count;
	memcpy(to->where, s->w.where, sizeof(to->where));
	memcpy(to->removed, s->w.removed, sizeof(to->removed));
}

static void revert(struct scene *s, const struct saved *to)
{
	place_revert(s->p, to->mark);
	place_world_unbind(&s->w, to->bound);
	memcpy(s->w.where, to->where, sizeof(to->where));
	memcpy(s->w.removed, to->removed, sizeof(to->removed));
	check_consistent(s, "reverted");
	check_all(s, "reverted");
}

static void put(struct scene *s, size_t pod, size_t node)
{
	place_put(s->p, find_pod(s, s->p, pod), find_node(s, s->p, node));
	place_world_bind(&s->w, pod, node);
	s->w.where[pod] = (int)node;
}

/* Takes the pod where it is somewhere, else puts it anywhere. */
static void move(struct scene *s)
{
	size_t pod = place_world_draw(&s->w, s->w.pod_count);
	place_pod handle = find_pod(s, s->p, pod);

	if (handle == PLACE_NONE)
		return;
	if (is_free(s, pod)) {
		put(s, pod, place_world_draw(&s->w, s->w.node_count));
	} else {
		place_take(s->p, handle);
		s->w.where[pod] = VERIFY_NOWHERE;
	}
	if (place_where(s->p, handle) !=
	    (is_free(s, pod) ? PLACE_NONE : find_node(s, s->p, (size_t)s->w.where[pod])))
		fail_msg("seed %llu: a pod is not where it was put", (unsigned long long)s->seed);
}

static void change_node(struct scene *s)
{
	size_t node = place_world_draw(&s->w, s->w.node_count);

	if (!s->w.removed[node]) {
		place_remove_node(s->p, find_node(s, s->p, node));
		s->w.removed[node] = true;
	}
}

static void test_changes(struct scene *s)
{
	struct saved saved[MARKS_MAX] = {0};
	size_t marks = 0;

	for (int step = 0; step < STEPS; step++) {
		size_t what = place_world_draw(&s->w, 10);

		if (what < 5) {
			move(s);
		} else if (what == 5) {
			change_node(s);
		} else if (what < 8 && marks < MARKS_MAX) {
			save(s, &saved[marks++]);
		} else if (what == 8 && marks > 0) {
			revert(s, &saved[--marks]);
		} else if (marks > 0) {
			marks--; /* the changes after it stay */
		}
		if (step % 6 == 5) {
			check_consistent(s, "changed");
			check_all(s, "changed");
		}
	}
	while (marks > 0)
		revert(s, &saved[--marks]);
}

static void changes_and_their_undoing_are_exact(void **state)
{
	(void)state;
	for_all(test_changes, SEEDS);
}

/* --- choices */

static int64_t allocatable(const struct scene *s, const char *node, const char *resource)
{
	const struct kube_node *n =
		(const struct kube_node *)model_find(s->m, OBJECT_NODE, "", node);
	int64_t amount = 0;

	resources_find(&n->allocatable, resource, &amount);
	return amount;
}

/* How full a node is: the larger share of CPU and memory that is requested. */
static double fullness(const struct scene *s, size_t node)
{
	const char *name = place_world_name(s->w.nodes[node]);
	double cpu = 0, mem = 0;

	for (size_t i = 0; i < s->w.pod_count; i++) {
		place_pod handle = find_pod(s, s->p, i);
		int64_t amount = 0;

		if (s->w.where[i] != (int)node || handle == PLACE_NONE)
			continue;
		if (resources_find(kube_pod_requests(place_pod_record(s->p, handle)), "cpu",
				   &amount))
			cpu += (double)amount;
		amount = 0;
		if (resources_find(kube_pod_requests(place_pod_record(s->p, handle)), "memory",
				   &amount))
			mem += (double)amount;
	}
	cpu /= (double)allocatable(s, name, "cpu");
	mem /= (double)allocatable(s, name, "memory");
	return cpu > mem ? cpu : mem;
}

/* What the checker says of every node that is allowed. */
struct survey {
	enum place_filter of[PLACE_WORLD_NODES];
	struct place_counts counts;
	enum place_certainty certainty;
	bool any; /* fits */
};

static void survey(const struct scene *s, size_t pod, const bool *allowed, struct survey *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t node = 0; node < s->w.node_count; node++) {
		const struct place_verdict v = place_checker_ask(&s->c, pod, node);

		out->certainty = v.certainty;
		out->of[node] = v.filter;
		if (!allowed[find_node(s, s->p, node)])
			continue;
		out->counts.of[out->of[node]]++;
		out->any |= out->of[node] == PLACE_FITS;
	}
}

/* No node that fits comes before the chosen one. */
static void check_order(const struct scene *s, const struct survey *sv, const bool *allowed,
			enum place_order order, size_t chosen)
{
	double best = fullness(s, chosen);

	for (size_t node = 0; order != PLACE_CYCLIC && node < s->w.node_count; node++) {
		double other = fullness(s, node);

		if (sv->of[node] != PLACE_FITS || !allowed[find_node(s, s->p, node)])
			continue;
		if (order == PLACE_FULLEST_FIRST ? other > best + 1e-6 : other < best - 1e-6)
			fail_msg("seed %llu: %s (%.4f) was chosen before %s (%.4f), order %d",
				 (unsigned long long)s->seed, place_world_name(s->w.nodes[chosen]),
				 best, place_world_name(s->w.nodes[node]), other, order);
	}
}

static size_t index_of(const struct scene *s, place_node n)
{
	size_t i = 0;

	while (find_node(s, s->p, i) != n)
		i++;
	return i;
}

static void check_refusal(const struct scene *s, const struct survey *sv,
			  const struct place_counts *counts)
{
	if (sv->any && sv->certainty == PLACE_CERTAIN)
		fail_msg("seed %llu: nothing was chosen where something fits",
			 (unsigned long long)s->seed);
	for (int f = 0; sv->certainty == PLACE_CERTAIN && f < PLACE_FILTERS; f++)
		if (counts->of[f] != sv->counts.of[f])
			fail_msg("seed %llu: %s refused on %u nodes, not on %u",
				 (unsigned long long)s->seed,
				 place_filter_name((enum place_filter)f), sv->counts.of[f],
				 counts->of[f]);
}

static place_node choose(struct scene *s, size_t pod, enum place_order order)
{
	size_t hinted = place_world_draw(&s->w, s->w.node_count);
	bool hints = place_world_chance(&s->w, 25), allowed[PLACE_WORLD_NODES + 1] = {false};
	place_node hint = hints ? find_node(s, s->p, hinted) : PLACE_NONE, got;
	struct place_counts counts = {.nearest = PLACE_NONE};
	struct survey sv;

	for (size_t i = 0; i < s->w.node_count; i++)
		allowed[i] = place_world_chance(&s->w, 80) || i == hint;
	s->c = place_world_checker(&s->w);
	survey(s, pod, allowed, &sv);
	got = place_choose(s->p, find_pod(s, s->p, pod), order, hint, allowed, &counts);
	if (got == PLACE_NONE) {
		check_refusal(s, &sv, &counts);
		return got;
	}
	if (!allowed[got] || sv.of[index_of(s, got)] != PLACE_FITS)
		fail_msg("seed %llu: %s was chosen, and refuses: %s", (unsigned long long)s->seed,
			 place_node_name(s->p, got), place_filter_name(sv.of[index_of(s, got)]));
	if (hints && sv.of[hinted] == PLACE_FITS && sv.certainty == PLACE_CERTAIN)
		assert_int_equal(got, hint);
	else if (sv.certainty == PLACE_CERTAIN)
		check_order(s, &sv, allowed, order, index_of(s, got));
	return got;
}

static void test_choices(struct scene *s)
{
	bool marked[PLACE_WORLD_PODS] = {false};
	enum place_order order = (enum place_order)(s->seed % 3);
	struct error why = {""};

	for (size_t pod = 0; pod < s->w.pod_count; pod++) {
		place_node got;

		if (!is_free(s, pod))
			continue;
		got = choose(s, pod, order);
		if (got == PLACE_NONE)
			continue;
		put(s, pod, index_of(s, got));
		marked[pod] = true;
	}
	s->c = place_world_checker(&s->w);
	if (!place_checker_is_legal(&s->c, marked, &why))
		fail_msg("seed %llu: %s", (unsigned long long)s->seed, why.text);
}

static void a_choice_is_legal_and_missed_only_where_nothing_fits(void **state)
{
	(void)state;
	for_all(test_choices, 2 * SEEDS);
}

/* --- two that must be alike */

static bool are_equal(const struct place_counts *a, const struct place_counts *b)
{
	return !memcmp(a->of, b->of, sizeof(a->of)) && a->nearest == b->nearest &&
	       a->excess == b->excess;
}

typedef place_node chooser(struct place *p, place_pod pod, enum place_order order, place_node hint,
			   const bool *allowed, struct place_counts *counts);

/* The same verdicts and choices, pod by pod, each placed where both say. */
static void check_alike(const struct scene *s, struct place *other, chooser *theirs_by,
			const char *what)
{
	for (size_t pod = 0; pod < s->w.pod_count; pod++) {
		place_pod a = find_pod(s, s->p, pod), b = find_pod(s, other, pod);
		enum place_order order = (enum place_order)((s->seed + pod) % 3);
		struct place_counts ours, theirs;
		place_node x, y;

		if (a == PLACE_NONE || b == PLACE_NONE)
			assert_int_equal(a, b);
		if (a == PLACE_NONE || place_where(s->p, a) != PLACE_NONE)
			continue;
		for (size_t node = 0; node < s->w.node_count; node++)
			if (place_check(s->p, a, find_node(s, s->p, node)) !=
			    place_check(other, b, find_node(s, other, node)))
				fail_msg("seed %llu, %s: two verdicts about %s on %s",
					 (unsigned long long)s->seed, what,
					 place_world_name(s->w.pods[pod]),
					 place_world_name(s->w.nodes[node]));
		x = place_choose(s->p, a, order, PLACE_NONE, NULL, &ours);
		y = theirs_by(other, b, order, PLACE_NONE, NULL, &theirs);
		if (x != y || !are_equal(&ours, &theirs))
			fail_msg("seed %llu, %s: %s goes to %u and %u", (unsigned long long)s->seed,
				 what, place_world_name(s->w.pods[pod]), x, y);
		if (x == PLACE_NONE)
			continue;
		place_put(s->p, a, x);
		place_put(other, b, y);
	}
}

static void test_search(struct scene *s)
{
	struct place *linear = new_place(&s->w, s->m, s->seed % 2);

	check_alike(s, linear, place_scan, "linear search");
	place_free(linear);
}

static void the_tree_finds_what_linear_search_finds(void **state)
{
	(void)state;
	for_all(test_search, SEEDS);
}

static void test_shuffled(struct scene *s)
{
	struct model *m = place_world_model(&s->w, ~s->seed);
	struct place *other = new_place(&s->w, m, s->seed % 2);

	check_alike(s, other, place_choose, "another order");
	place_free(other);
	model_free(m);
}

static void the_order_of_input_does_not_matter(void **state)
{
	(void)state;
	for_all(test_shuffled, SEEDS);
}

/* Leaves traces that an update must undo. */
static void disturb(struct scene *s)
{
	for (size_t i = 0; i < 3; i++) {
		size_t pod = place_world_draw(&s->w, s->w.pod_count);
		place_pod handle = find_pod(s, s->p, pod);

		if (handle == PLACE_NONE)
			continue;
		if (place_where(s->p, handle) == PLACE_NONE)
			place_put(s->p, handle,
				  find_node(s, s->p, place_world_draw(&s->w, s->w.node_count)));
		else
			place_take(s->p, handle);
	}
	if (place_world_chance(&s->w, 30))
		place_remove_node(s->p,
				  find_node(s, s->p, place_world_draw(&s->w, s->w.node_count)));
	if (place_world_chance(&s->w, 30))
		place_drain_node(s->p,
				 find_node(s, s->p, place_world_draw(&s->w, s->w.node_count)));
}

static void test_update(struct scene *s)
{
	for (int round = 0; round < 6; round++) {
		struct place *fresh;
		struct view *v;

		if (place_world_chance(&s->w, 60))
			disturb(s);
		for (size_t i = place_world_draw(&s->w, 4); i > 0; i--)
			place_world_change(&s->w, s->m);
		v = place_world_view(&s->w, s->m);
		place_update(s->p, v, s->w.now_ns);
		view_drop(v);
		check_consistent(s, "updated");
		check_all(s, "updated");
		fresh = new_place(&s->w, s->m, s->seed % 2);
		check_alike(s, fresh, place_choose, "a new one");
		place_free(fresh);
	}
}

static void an_update_equals_a_new_one(void **state)
{
	(void)state;
	for_all(test_update, SEEDS);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verdict_is_that_of_the_scheduler),
		cmocka_unit_test(changes_and_their_undoing_are_exact),
		cmocka_unit_test(a_choice_is_legal_and_missed_only_where_nothing_fits),
		cmocka_unit_test(the_tree_finds_what_linear_search_finds),
		cmocka_unit_test(the_order_of_input_does_not_matter),
		cmocka_unit_test(an_update_equals_a_new_one),
	};

	only_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
