/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thousands of small seeded clusters, each asked for victims; what is answered is held against
 * rules that are written down here once more, in plain numbers:
 *
 *   - a set only has pods that may go, all together: no quota below its min (of what is contested,
 *     where borrowers pay), no budget broken, no window and no min runtime ignored
 *   - without them, in a cluster built anew, it fits on the node that was named, and the quotas
 *     allow it: admission, once it has that node nominated, and
 *     the sums written down here; without all but one of them it starts on no node at all
 *   - where none is found, none of all the sets that may go would do; where several nodes pay
 *     although no node has room, none of one node would
 *
 * Quotas, once more: of a resource that somebody is guaranteed every quota counts, and a min that
 * is not named is 0. The pod is owed what it asks for if its own quota has that left of its min, in
 * all that somebody is guaranteed, and there is such a thing. All that quotas use is to stay within
 * the sum of their mins; for one that is owed within what it was, where that is more, so that it
 * pays for nobody's old debts.
 *   - budgets that may be broken are broken only where nothing else helps
 *   - simulation and book are what they were, and objects told in another order lead to the same
 *     words
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/preempt_world.h"
#include "tests/sanitized.h"
#include "tests/view_fixture.h"

enum {
	WORLDS = RANDOM_CASES(4000),
	FEW = WORLDS / 400,
	BRUTE = 8, /* pods that may go, at most, where all sets are tried */
};

/* --- the rules, once more */

static int used_of(const struct world *w, int space, int r, uint32_t without)
{
	int used = 0;

	for (int i = 0; i < w->pod_count; i++)
		if (w->pods[i].space == space && !(without & 1U << i))
			used += w->pods[i].asks[r];
	return used;
}

/* In deletion; without those of its own namespace, which count for its quota until they are gone. */
static uint32_t others_going_of(const struct world *w)
{
	uint32_t set = 0;

	for (int i = 0; i < w->pod_count; i++)
		if (w->pods[i].going && w->pods[i].space != w->self.space)
			set |= 1U << i;
	return set;
}

static uint32_t going_of(const struct world *w)
{
	uint32_t going = 0;

	for (int i = 0; i < w->pod_count; i++)
		going |= w->pods[i].going ? 1U << i : 0;
	return going;
}

static int min_of(const struct world *w, int space, int r)
{
	const struct toy_quota *q = &w->quotas[space];

	return q->there && q->names[r] ? q->min[r] : 0;
}

static bool somebody_is_guaranteed(const struct world *w, int r)
{
	for (int s = 0; s < SPACES; s++)
		if (min_of(w, s, r) > 0)
			return true;
	return false;
}

/* The pod asks for it, and somebody is promised some. */
static bool is_at_stake(const struct world *w, int r)
{
	const struct toy_quota *mine = &w->quotas[w->self.space];

	return w->self.asks[r] > 0 && mine->there && somebody_is_guaranteed(w, r);
}

/* Without those that are taken for gone. */
static bool is_owed(const struct world *w, uint32_t gone)
{
	int at_stake = 0, left_of_min = 0;

	for (int r = 0; r < AMOUNTS; r++) {
		int used = used_of(w, w->self.space, r, gone);

		if (!is_at_stake(w, r))
			continue;
		at_stake++;
		left_of_min += min_of(w, w->self.space, r) - used >= w->self.asks[r];
	}
	return at_stake > 0 && left_of_min == at_stake;
}

/* Over all quotas. */
static int sum_used(const struct world *w, int r, uint32_t without)
{
	int sum = 0;

	for (int s = 0; s < SPACES; s++)
		if (w->quotas[s].there)
			sum += used_of(w, s, r, without);
	return sum;
}

static int sum_min(const struct world *w, int r)
{
	int sum = 0;

	for (int s = 0; s < SPACES; s++)
		sum += min_of(w, s, r);
	return sum;
}

static int free_on(const struct world *w, int n, int r)
{
	int left = w->room[n][r];

	for (int i = 0; i < w->pod_count; i++)
		if (w->pods[i].node == n && !w->pods[i].going)
			left -= w->pods[i].asks[r];
	return left;
}

/* The pod lacks it, on the node or under the sum of min; where it lacks nothing, all of it. */
static bool is_contested(const struct world *w, int n, int r)
{
	bool lacks[AMOUNTS], any = false;

	for (int k = 0; k < AMOUNTS; k++) {
		lacks[k] = is_at_stake(w, k) &&
			   (free_on(w, n, k) < w->self.asks[k] ||
			    sum_used(w, k, others_going_of(w)) + w->self.asks[k] > sum_min(w, k));
		any |= lacks[k];
	}
	return any ? lacks[r] : is_at_stake(w, r);
}

/* It has some of what is contested there, and its quota has its min of all of that without it. */
static bool pays(const struct world *w, const struct toy_pod *p, int n)
{
	bool any = false;

	for (int r = 0; r < AMOUNTS; r++) {
		if (!p->asks[r] || !is_contested(w, n, r))
			continue;
		any = true;
		if (used_of(w, p->space, r, going_of(w)) - p->asks[r] < min_of(w, p->space, r))
			return false;
	}
	return any;
}

/* Borrowers pay, whatever their priority. */
static bool others_pay(const struct world *w)
{
	return w->self.priority < CRITICAL && w->quotas[w->self.space].there &&
	       is_owed(w, others_going_of(w));
}

/* Without those, who were all there but the ones that are taken for gone. */
static bool quotas_allow(const struct world *w, uint32_t without, uint32_t gone)
{
	const struct toy_quota *mine = &w->quotas[w->self.space];

	if (!mine->there || w->self.priority >= CRITICAL)
		return true;
	for (int r = 0; r < AMOUNTS; r++) {
		int most = sum_min(w, r), before = sum_used(w, r, gone);

		if (!w->self.asks[r])
			continue;
		if (mine->names[r] &&
		    used_of(w, w->self.space, r, without) + w->self.asks[r] > mine->max[r])
			return false;
		if (is_owed(w, gone) && before > most)
			most = before;
		if (is_at_stake(w, r) && sum_used(w, r, without) + w->self.asks[r] > most)
			return false;
	}
	return true;
}

/* By what it is alone, but budgets, so that the pod starts on that node. */
static bool may_go(const struct world *w, const struct toy_pod *p, int n)
{
	bool lower = p->priority < w->self.priority, own = p->space == w->self.space;
	bool quota = w->quotas[p->space].there, mine = w->quotas[w->self.space].there;
	int age = p->start < 0 ? 0 : NOW_SECONDS - p->start;

	if (p->going || (quota && age < w->quotas[p->space].min_runtime))
		return false;
	if (w->self.priority >= CRITICAL)
		return lower;
	if (!mine)
		return !quota && lower;
	if (!is_owed(w, others_going_of(w)))
		return own && lower;
	return !own && quota && p->priority < CRITICAL && pays(w, p, n);
}

static bool keeps_budgets(const struct world *w, uint32_t set)
{
	int selecting[SPACES] = {0}, gone[SPACES] = {0};

	for (int b = 0; b < w->budget_count; b++)
		selecting[w->budget_space[b]]++;
	for (int i = 0; i < w->pod_count; i++)
		if (set & 1U << i && w->pods[i].db)
			gone[w->pods[i].space]++;
	for (int b = 0; b < w->budget_count; b++) {
		int s = w->budget_space[b];

		if (gone[s] && (gone[s] > w->budget_allowed[b] || selecting[s] > 1))
			return false;
	}
	return true;
}

static int evicted_before(const struct world *w, int space)
{
	int count = 0;

	for (int i = 0; i < w->past_count; i++)
		count += strcmp(w->past[i].namespace, preempt_world_spaces[space]) == 0 &&
			 VIEW_FIXTURE_NOW_NS - w->past[i].at_ns <
				 w->quotas[space].window * 1000000000LL;
	return count;
}

static bool keeps_quotas(const struct world *w, uint32_t set, int n)
{
	for (int s = 0; s < SPACES; s++) {
		const struct toy_quota *q = &w->quotas[s];
		int going = 0;

		for (int i = 0; i < w->pod_count; i++)
			going += set & 1U << i && w->pods[i].space == s;
		if (!q->there || !going)
			continue;
		if (q->window && going + evicted_before(w, s) > q->evictions)
			return false;
		for (int r = 0; s != w->self.space && r < AMOUNTS; r++) {
			int used = used_of(w, s, r, going_of(w) | set);

			if (others_pay(w) && !is_contested(w, n, r))
				continue;
			if (q->names[r] && used < q->min[r] &&
			    used != used_of(w, s, r, going_of(w)))
				return false;
		}
	}
	return true;
}

/* Pods of a group that are there, and those of them in the set. */
static uint32_t gang_of(const struct world *w, int space)
{
	uint32_t gang = 0;

	for (int i = 0; w->gang_min[space] && i < w->pod_count; i++)
		if (w->pods[i].gang && w->pods[i].space == space && !w->pods[i].going)
			gang |= 1U << i;
	return gang;
}

/* No group falls in part. */
static bool is_closed(const struct world *w, uint32_t set)
{
	for (int s = 0; s < SPACES; s++) {
		int there = __builtin_popcount(gang_of(w, s));
		int go = __builtin_popcount(gang_of(w, s) & set);

		if (there >= w->gang_min[s] && there - go < w->gang_min[s] && go < there)
			return false;
	}
	return true;
}

static bool may_all_go(const struct world *w, uint32_t set, bool soft, int n)
{
	if (!is_closed(w, set))
		return false;
	for (int i = 0; i < w->pod_count; i++)
		if (set & 1U << i && !may_go(w, &w->pods[i], n))
			return false;
	return keeps_quotas(w, set, n) && (soft || keeps_budgets(w, set));
}

/* As a scheduler asks that has nominated a node for it, or not. */
static bool is_admitted(const struct quota_book *b, const struct kube_pod *pod, bool nominated)
{
	struct quota_ask ask = {.uid = pod->object.uid,
				.namespace = pod->object.namespace,
				.priority = pod->template->priority,
				.requests = kube_pod_requests(pod),
				.promised = nominated};
	struct quota_verdict v;

	quota_admit(b, &ask, &v);
	return v.admitted;
}

/*
 * In a cluster that never had those pods; as if it were asked about now for the first time, or with
 * a node nominated.
 */
static bool starts(const struct world *w, uint32_t without, const char *node, bool nominated)
{
	struct kube_pod *pod = preempt_world_record(w);
	struct preempt_fixture f;
	place_pod self;
	bool can;

	preempt_world_build(&f, w, without, false);
	self = place_add_pod(f.place, pod);
	can = place_check(f.place, self, place_find_node(f.place, node)) == PLACE_FITS &&
	      is_admitted(f.book, pod, nominated);
	preempt_fixture_fini(&f);
	object_drop(&pod->object);
	return can;
}

/* If it were for the nodes alone: on any; `set`: where those may go for it. */
static bool has_room_for(const struct world *w, uint32_t without, uint32_t set)
{
	struct kube_pod *pod = preempt_world_record(w);
	struct preempt_fixture f;
	bool fits = false;
	place_pod self;

	preempt_world_build(&f, w, without, false);
	self = place_add_pod(f.place, pod);
	for (int n = 0; n < w->node_count; n++)
		fits |= may_all_go(w, set, true, n) &&
			place_check(f.place, self, (place_node)n) == PLACE_FITS;
	preempt_fixture_fini(&f);
	object_drop(&pod->object);
	return fits;
}

static bool has_room(const struct world *w, uint32_t without)
{
	return has_room_for(w, without, 0);
}

/* Whether there is room without the set and those that are going, and the sums above allow it. */
static bool fits_anywhere(const struct world *w, uint32_t set, uint32_t going)
{
	return quotas_allow(w, set | going, going) && has_room_for(w, set | going, set);
}

/* As victims of a set that leave room on a node beside those that are going. */
static bool suffices(const struct world *w, uint32_t set)
{
	uint32_t gone = others_going_of(w);

	return quotas_allow(w, set | gone, gone) && has_room_for(w, set | going_of(w), set);
}

/* --- all sets */

struct brute {
	const struct world *w;
	struct preempt_fixture *f;
	struct kube_pod *pod;
	place_pod self, handle[PODS];
	uint32_t out; /* taken now */
};

static void toggle(struct brute *b, int i, bool out)
{
	const struct kube_pod *pod = place_pod_record(b->f->place, b->handle[i]);

	if (out) {
		place_take(b->f->place, b->handle[i]);
		quota_book_subtract(b->f->book, pod->object.namespace, kube_pod_requests(pod));
	} else {
		place_put(b->f->place, b->handle[i], (place_node)b->w->pods[i].node);
		quota_book_add(b->f->book, pod->object.namespace, kube_pod_requests(pod));
	}
	b->out ^= 1U << i;
}

static void leave_out(struct brute *b, uint32_t set)
{
	for (int i = 0; i < b->w->pod_count; i++)
		if ((b->out ^ set) & 1U << i)
			toggle(b, i, set & 1U << i);
}

/* On any node for which those may go; local: on the node of all of them. */
static bool starts_somewhere(struct brute *b, uint32_t set, bool soft, bool local)
{
	leave_out(b, set | going_of(b->w));
	if (!quotas_allow(b->w, set | others_going_of(b->w), others_going_of(b->w)))
		return false;
	for (int n = 0; n < b->w->node_count; n++) {
		bool here = true;

		for (int i = 0; local && i < b->w->pod_count; i++)
			here &= !(set & 1U << i) || b->w->pods[i].node == n;
		if (here && may_all_go(b->w, set, soft, n) &&
		    place_check(b->f->place, b->self, (place_node)n) == PLACE_FITS)
			return true;
	}
	return false;
}

static uint32_t all_that_may_go(const struct world *w, int *count)
{
	uint32_t set = 0;

	*count = 0;
	for (int i = 0; i < w->pod_count; i++) {
		bool may = false;

		for (int n = 0; n < w->node_count; n++)
			may |= may_go(w, &w->pods[i], n);
		set |= may ? 1U << i : 0;
		*count += may;
	}
	return set;
}

/* Whether any set that may go would do; true also where there are too many to try. */
static bool some_set_does(const struct world *w, bool soft, bool local, bool if_many)
{
	int count;
	uint32_t all = all_that_may_go(w, &count), set = all;
	struct preempt_fixture f;
	struct brute b = {.w = w, .f = &f};
	bool found = false;

	if (count > BRUTE)
		return if_many;
	preempt_world_build(&f, w, 0, false);
	b.pod = preempt_world_record(w);
	b.self = place_add_pod(f.place, b.pod);
	for (int i = 0; i < w->pod_count; i++)
		b.handle[i] = place_find_pod(f.place, preempt_world_spaces[w->pods[i].space],
					     w->pods[i].name);
	for (;; set = (set - 1) & all) {
		found = starts_somewhere(&b, set, soft, local);
		if (found || !set)
			break;
	}
	preempt_fixture_fini(&f);
	object_drop(&b.pod->object);
	return found;
}

/* --- one world */

static uint32_t mask_of(const struct world *w, const struct preempt_candidate *c)
{
	uint32_t set = 0;

	for (size_t k = 0; k < c->victim_count; k++)
		for (int i = 0; i < w->pod_count; i++)
			if (strcmp(w->pods[i].name, c->victims[k].pod->object.name) == 0)
				set |= 1U << i;
	return set;
}

/* Told when a check fails; SEED=N runs that one alone. */
static uint64_t at_seed;
static unsigned int verdicts[PREEMPT_VERDICTS], several, broken, long_sets, elsewhere, forgiven,
	fallen;

/* With the pod, and without those, more is used than all mins. */
static bool in_debt(const struct world *w, uint32_t without)
{
	for (int r = 0; r < AMOUNTS; r++)
		if (is_at_stake(w, r) && sum_used(w, r, without) + w->self.asks[r] > sum_min(w, r))
			return true;
	return false;
}

static void check_victims(const struct world *w, const struct preempt_plan *plan)
{
	uint32_t set = mask_of(w, &plan->chosen), going = going_of(w);
	int at = plan->chosen.node[strlen(plan->chosen.node) - 1] - '0';
	bool breaks = plan->chosen.violations > 0;

	assert_true(plan->chosen.victim_count > 0);
	assert_true(may_all_go(w, set, w->soft, at));
	assert_int_equal(breaks, !keeps_budgets(w, set));
	assert_true(starts(w, set | going, plan->chosen.node, true));
	assert_true(quotas_allow(w, set | others_going_of(w), others_going_of(w)));
	for (int i = 0; i < w->pod_count; i++)
		if (set & 1U << i && is_closed(w, set & ~(1U << i)))
			assert_false(suffices(w, set & ~(1U << i)));
	for (int s = 0; s < SPACES; s++) {
		uint32_t gang = gang_of(w, s);

		if (gang && (set & gang) == gang) {
			assert_false(suffices(w, set & ~gang));
			fallen += __builtin_popcount(gang) > 1;
		}
	}
	if (breaks)
		assert_false(some_set_does(w, false, false, false));
	elsewhere += plan->several && has_room(w, going_of(w));
	forgiven += is_owed(w, others_going_of(w)) && in_debt(w, set | going);
	if (plan->several && !has_room(w, going_of(w)))
		assert_false(some_set_does(w, breaks, true, false));
}

static void check_plan(const struct world *w, const struct preempt_plan *plan)
{
	switch (plan->verdict) {
	case PREEMPT_NOT_NEEDED:
		assert_true(starts(w, 0, plan->chosen.node, false));
		return;
	case PREEMPT_WAIT:
		assert_true(starts(w, going_of(w), plan->chosen.node, false));
		assert_false(fits_anywhere(w, 0, 0));
		return;
	case PREEMPT_VICTIMS:
		assert_false(fits_anywhere(w, 0, going_of(w)));
		check_victims(w, plan);
		return;
	default:
		assert_int_equal(plan->verdict, PREEMPT_IMPOSSIBLE);
		assert_true(plan->exhausted);
		assert_false(some_set_does(w, w->soft, false, false));
		assert_true(plan->unblock.len > 0);
	}
}

static void ask(const struct world *w, struct preempt_fixture *f, bool backwards,
		struct preempt_plan *plan)
{
	struct kube_pod *pod = preempt_world_record(w);
	struct preempt_ask question = {.pod = pod,
				       .now_ns = VIEW_FIXTURE_NOW_NS,
				       .past = w->past,
				       .past_count = (size_t)w->past_count};

	preempt_world_build(f, w, 0, backwards);
	preempt_make_plan(f->index, f->place, f->book, &f->options, &question, plan);
	object_drop(&pod->object);
}

static void check_undone(const struct world *w, struct preempt_fixture *f)
{
	struct error error = {""};

	if (!place_is_consistent(f->place, &error))
		fail_msg("%s", error.text);
	for (int i = 0; i < w->pod_count; i++)
		assert_int_equal(place_where(f->place,
					     place_find_pod(f->place,
							    preempt_world_spaces[w->pods[i].space],
							    w->pods[i].name)),
				 w->pods[i].node);
	for (int s = 0; s < SPACES; s++) {
		const struct quota *q = quota_book_find(f->book, preempt_world_spaces[s]);

		for (int r = 0; q && r < AMOUNTS; r++) {
			int64_t used = 0;

			resources_find(&q->used, preempt_world_amounts[r], &used);
			assert_int_equal(used * (r == CPU ? 1 : 1000), used_of(w, s, r, 0));
		}
	}
}

static void run_world(uint64_t seed)
{
	struct preempt_plan plan, again;
	struct preempt_fixture f;
	struct world w;

	preempt_world_draw(&w, seed);
	ask(&w, &f, false, &plan);
	if (getenv("SEED"))
		print_message("\n%s%s", plan.narration.data,
			      plan.unblock.len ? plan.unblock.data : "");
	check_undone(&w, &f);
	check_plan(&w, &plan);
	verdicts[plan.verdict]++;
	several += plan.several;
	broken += plan.chosen.violations > 0;
	long_sets += plan.chosen.victim_count > 2;
	if (seed % 4 == 0) {
		struct preempt_fixture other;

		ask(&w, &other, true, &again);
		assert_string_equal(plan.narration.data, again.narration.data);
		assert_string_equal(plan.chosen.node ? plan.chosen.node : "",
				    again.chosen.node ? again.chosen.node : "");
		preempt_plan_fini(&again);
		preempt_fixture_fini(&other);
	}
	preempt_plan_fini(&plan);
	preempt_fixture_fini(&f);
}

static void every_answer_keeps_the_rules(void **unused)
{
	const char *only = getenv("SEED");

	(void)unused;
	for (uint64_t seed = only ? strtoull(only, NULL, 10) : 1;
	     seed <= (only ? strtoull(only, NULL, 10) : WORLDS); seed++) {
		at_seed = seed;
		run_world(seed);
	}
	print_message("not needed %u, wait %u, victims %u (several nodes %u, with room as it is "
		      "%u, over two %u, budgets broken %u, debts forgiven %u, groups fallen %u), "
		      "impossible %u\n",
		      verdicts[PREEMPT_NOT_NEEDED], verdicts[PREEMPT_WAIT],
		      verdicts[PREEMPT_VICTIMS], several, elsewhere, long_sets, broken, forgiven,
		      fallen, verdicts[PREEMPT_IMPOSSIBLE]);
	if (only)
		return;
	/* The worlds are worth the while. */
	assert_true(verdicts[PREEMPT_VICTIMS] > WORLDS / 20 && several > FEW && broken > FEW / 2);
	assert_true(elsewhere > FEW && forgiven > FEW && fallen > FEW);
	assert_true(verdicts[PREEMPT_WAIT] > FEW && verdicts[PREEMPT_IMPOSSIBLE] > WORLDS / 10);
}

static int tell_seed(void **unused)
{
	(void)unused;
	print_message("last seed %llu\n", (unsigned long long)at_seed);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_answer_keeps_the_rules, tell_seed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
