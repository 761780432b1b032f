/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories of an aggregator that was killed after a save. Each ends with a comparison of every number
 * of every window to undisturbed states: one for the node's windows, one for the pods'.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "aggregator/state/usage_node.h"
#include "aggregator/state/usage_pack.h"
#include "tests/usage_fixture.h"
#include "tests/usage_view.h"

#define SEC 1000000000LL
#define T0  (1700000010LL * SEC)

enum { INTERVAL_S = 5, PODS = 3 };

static struct usage_state *new_state(void)
{
	struct usage_limits limits = {.nodes_max = 4, .pods_per_node_max = 16};

	return usage_new(&limits);
}

static const uint8_t *run_of(char letter)
{
	static uint8_t run[FRAME_RUN_LEN];

	memset(run, letter, sizeof(run));
	return run;
}

static int64_t end_of(uint64_t k)
{
	return T0 + (int64_t)k * INTERVAL_S * SEC;
}

/* What the agent measured in the k-th interval since T0, whatever its run counts it as. */
static struct interval *make(uint64_t k, uint64_t sequence)
{
	struct usage_fixture f = {
		.sequence = sequence,
		.end_ns = end_of(k),
		.seconds = INTERVAL_S,
		.pods = PODS,
		.containers = 1,
		.identities = true,
		.seed = (uint32_t)k * 77,
	};

	return usage_fixture_new(&f);
}

static struct usage_answer tell(struct usage_state *u, char run, struct interval *i, int64_t now_ns)
{
	struct usage_answer answer;

	usage_apply(u, "n", run_of(run), NULL, i, now_ns, &answer);
	return answer;
}

/* Intervals first..last of a run that began after `before`; returns how many it went past. */
static uint64_t tell_run(struct usage_state *u, char run, uint64_t before, uint64_t first,
			 uint64_t last)
{
	uint64_t missing = 0;

	for (uint64_t s = first; s <= last; s++) {
		struct interval *i = make(before + s, s);
		struct usage_answer a = tell(u, run, i, end_of(before + s));

		if (a.verdict == USAGE_NEED_FULL && s == first) {
			assert_int_equal(a.resend_from, 1);
			a = tell(u, run, i, end_of(before + s));
		}
		assert_true(a.verdict == USAGE_APPLIED && a.applied == s);
		missing += a.missing;
		interval_free(i);
	}
	return missing;
}

/* The same run from a node whose clock is ahead; aged: its agent says how old intervals are. */
static void tell_skewed(struct usage_state *u, int64_t ahead_ns, uint64_t first, uint64_t last,
			bool aged)
{
	for (uint64_t s = first; s <= last; s++) {
		struct interval *i = make(s, s);
		struct usage_answer a;

		i->start_ns += ahead_ns;
		i->end_ns += ahead_ns;
		i->age_ns = aged ? SEC / 10 : 0;
		a = tell(u, 'r', i, end_of(s) + SEC / 10);
		if (a.verdict != USAGE_APPLIED)
			fail_msg("%u: verdict %d, %s", (unsigned int)s, a.verdict, a.reason);
		interval_free(i);
	}
}

/* The rows of a save, sealed. */
struct rows {
	size_t count;
	struct usage_row rows[8];
};

static struct rows save(struct usage_state *u)
{
	struct rows r = {0};
	uint64_t id = usage_save_begin(u);
	size_t n;

	/* In slices of two, as a store would ask. */
	while ((n = usage_save_next(u, &r.rows[r.count], 2)) > 0)
		r.count += n;
	for (size_t i = 0; i < r.count; i++)
		usage_pack_seal(r.rows[i].name, &r.rows[i].packed);
	usage_save_done(u, id);
	return r;
}

static void free_rows(struct rows *r)
{
	for (size_t i = 0; i < r->count; i++)
		usage_row_fini(&r->rows[i]);
	r->count = 0;
}

static int restore(struct usage_state *u, const struct usage_row *row, int64_t now_ns)
{
	struct usage_node *n = NULL;
	struct error error = {""};

	if (usage_node_unpack(row->name, row->packed.data, row->packed.len, &n, &error))
		fail_msg("%s", error.text);
	return usage_restore(u, n, now_ns);
}

/* A new process that has the rows. */
static struct usage_state *restart(struct rows *r, int64_t now_ns)
{
	struct usage_state *u = new_state();

	for (size_t i = 0; i < r->count; i++)
		assert_int_equal(restore(u, &r->rows[i], now_ns), 0);
	free_rows(r);
	return u;
}

static void kill_it(struct usage_state **u)
{
	usage_free(*u);
	*u = NULL;
}

/* --- comparing -------------------------------------------------------------------------------- */

static bool same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool same_stats(const struct window_stats *a, const struct window_stats *b)
{
	return a->known == b->known && a->percentiles == b->percentiles &&
	       a->start_ns == b->start_ns && a->end_ns == b->end_ns && a->samples == b->samples &&
	       a->mean == b->mean && a->stddev == b->stddev && a->min == b->min &&
	       a->max == b->max && a->p50 == b->p50 && a->p95 == b->p95 && a->p99 == b->p99;
}

static bool same_counts(const struct window_counts *a, const struct window_counts *b)
{
	bool equal = same(a->seconds, b->seconds) &&
		     same(a->throttled_seconds, b->throttled_seconds) &&
		     same(a->throttled_ratio, b->throttled_ratio) && a->oom_kills == b->oom_kills &&
		     a->throttle_known == b->throttle_known && a->oom_known == b->oom_known;

	for (int p = 0; p < PRESSURES; p++)
		equal = equal && same(a->pressure[p], b->pressure[p]);
	return equal;
}

static void expect_same_usage(const struct usage_summary *got, const struct usage_summary *want,
			      const char *whose)
{
	for (int w = 0; w < WINDOWS; w++) {
		const struct window_set *a = &got->windows[w], *b = &want->windows[w];

		if (!same_stats(&a->cpu_milli, &b->cpu_milli) ||
		    !same_stats(&a->mem_bytes, &b->mem_bytes) ||
		    !same_stats(&a->working_set_bytes, &b->working_set_bytes) ||
		    !same_counts(&a->counts, &b->counts))
			fail_msg("%s, %s: %u samples, mean %.17g; want %u, %.17g", whose,
				 window_name[w], (unsigned int)a->cpu_milli.samples,
				 a->cpu_milli.mean, (unsigned int)b->cpu_milli.samples,
				 b->cpu_milli.mean);
	}
	assert_true(got->latest.cpu_milli.value == want->latest.cpu_milli.value);
	assert_true(got->latest.mem_bytes.value == want->latest.mem_bytes.value);
	assert_true(got->latest.pids.value == want->latest.pids.value);
}

static void expect_same_node(const struct node_stats *got, const struct node_stats *want)
{
	expect_same_usage(&got->usage, &want->usage, "the node");
	assert_int_equal(got->end_ns, want->end_ns);
	assert_memory_equal(got->run, want->run, FRAME_RUN_LEN);
	assert_true(got->agent_cpu_milli == want->agent_cpu_milli);
	assert_int_equal(got->machine.mem_available_bytes, want->machine.mem_available_bytes);
	assert_int_equal(got->mem_allocatable_bytes, want->mem_allocatable_bytes);
}

static void expect_same_pods(const struct node_stats *got, const struct node_stats *want)
{
	assert_int_equal(got->pod_count, want->pod_count);
	for (size_t i = 0; i < want->pod_count; i++) {
		const struct pod_stats *a = &got->pods[i], *b = &want->pods[i];
		struct usage_summary of_a, of_b;

		assert_string_equal(a->name, b->name);
		assert_int_equal(a->container_count, b->container_count);
		node_stats_pod_usage(got, a, &of_a);
		node_stats_pod_usage(want, b, &of_b);
		expect_same_usage(&of_a, &of_b, a->name);
	}
}

/* What `got` shows is the node of one state and the pods of the other; each may be NULL. */
static void expect(struct usage_state *got, struct usage_state *node, struct usage_state *pods)
{
	int64_t now_ns = T0 + 3600 * SEC;
	struct view *v = usage_view(got, now_ns);
	struct view *of_node = node ? usage_view(node, now_ns) : NULL;
	struct view *of_pods = pods ? usage_view(pods, now_ns) : NULL;

	assert_int_equal(v->node_count, 1);
	if (node)
		expect_same_node(v->nodes[0]->stats, of_node->nodes[0]->stats);
	if (pods)
		expect_same_pods(v->nodes[0]->stats, of_pods->nodes[0]->stats);
	view_drop(v);
	if (node)
		view_drop(of_node);
	if (pods)
		view_drop(of_pods);
}

/* --- stories ---------------------------------------------------------------------------------- */

/* Killed after `heard` intervals of which `saved` were saved; then the agent tells from `from` to `last`. */
static void one_run(void **state)
{
	static const struct {
		const char *what;
		uint64_t saved, heard, from, last, missing;
	} cases[] = {
		{"just after a save", 40, 40, 1, 60, 0},
		{"just before the next", 40, 51, 1, 60, 0},
		{"and nothing new since", 40, 40, 1, 40, 0},
		{"and the agent is behind", 40, 51, 1, 45, 0},
		{"after the first interval", 1, 1, 1, 3, 0},
		{"windows are full and roll", 200, 211, 1, 260, 0},
		{"the ring reaches back a little", 40, 50, 30, 60, 0},
		{"the ring begins just behind the save", 40, 50, 41, 60, 0},
		{"the ring lost some behind it", 40, 60, 55, 70, 14},
		{"down for longer than any window", 40, 40, 300, 330, 259},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t saved = cases[i].saved, last = cases[i].last, from = cases[i].from;
		struct usage_state *u = new_state(), *node = new_state(), *pods = new_state();
		struct rows r;

		tell_run(u, 'r', 0, 1, saved);
		r = save(u);
		tell_run(u, 'r', 0, saved + 1, cases[i].heard);
		kill_it(&u);
		u = restart(&r, end_of(last));
		assert_int_equal(tell_run(u, 'r', 0, from, last), cases[i].missing);

		tell_run(node, 'r', 0, 1, saved);
		tell_run(node, 'r', 0, from > saved ? from : saved + 1, last);
		tell_run(pods, 'r', 0, from, last);
		print_message("%s\n", cases[i].what);
		expect(u, node, pods);
		usage_free(u);
		usage_free(node);
		usage_free(pods);
	}
}

/* Before anything is told, the stats are those of the save: their windows, their age, no pods. */
static void windows_are_back_at_once(void **state)
{
	struct usage_state *u = new_state(), *node = new_state();
	struct rows r;
	struct view *v;

	(void)state;
	tell_run(u, 'r', 0, 1, 100);
	r = save(u);
	kill_it(&u);
	u = restart(&r, end_of(108));
	assert_true(usage_dirty(u));
	tell_run(node, 'r', 0, 1, 100);
	expect(u, node, NULL);
	v = usage_view(u, end_of(108));
	assert_int_equal(v->nodes[0]->stats->pod_count, 0);
	assert_string_equal(v->nodes[0]->stats->name, "n");
	assert_int_equal(node_stats_freshness(v->nodes[0]->stats, end_of(101)), FRESH);
	assert_int_equal(node_stats_freshness(v->nodes[0]->stats, end_of(108)), LATE);
	assert_int_equal(node_stats_freshness(v->nodes[0]->stats, end_of(161)), EXPIRED);
	view_drop(v);
	usage_free(u);
	usage_free(node);
}

/* Killed again in the middle of telling again: the node's windows still reach to the first save. */
static void killed_while_catching_up(void **state)
{
	static const uint64_t reached[] = {1, 20, 39, 40, 41, 45};

	(void)state;
	for (size_t i = 0; i < sizeof(reached) / sizeof(reached[0]); i++) {
		struct usage_state *u = new_state(), *calm = new_state();
		struct rows r;

		tell_run(u, 'r', 0, 1, 40);
		r = save(u);
		kill_it(&u);
		u = restart(&r, end_of(50));
		tell_run(u, 'r', 0, 1, reached[i]);
		r = save(u);
		assert_int_equal(r.count, 1);
		kill_it(&u);
		u = restart(&r, end_of(50));
		tell_run(u, 'r', 0, 1, 60);
		tell_run(calm, 'r', 0, 1, 60);
		expect(u, calm, calm);
		usage_free(u);
		usage_free(calm);
	}
}

/* The agent began anew, too: the node's windows go on, with the gap that there was; its pods know what the new run
 * told. */
static void agent_restarted_as_well(void **state)
{
	struct usage_state *u = new_state(), *node = new_state(), *pods = new_state();
	struct rows r;

	(void)state;
	tell_run(u, 'r', 0, 1, 40);
	r = save(u);
	tell_run(u, 'r', 0, 41, 41);
	kill_it(&u);
	u = restart(&r, end_of(42));
	/* It is not taken for a second agent, though the node was heard a moment ago. */
	tell_run(u, 's', 41, 2, 10);
	tell_run(pods, 's', 41, 2, 10);
	tell_run(node, 'r', 0, 1, 40);
	tell_run(node, 's', 42, 1, 9); /* the same, from a beginning */
	expect(u, node, pods);
	usage_free(u);
	usage_free(node);
	usage_free(pods);
}

/* The end of what was saved is a border for every other run, by 5 s. */
static void last_end_survives(void **state)
{
	static const struct {
		int64_t start_after_s;
		enum usage_verdict want;
	} cases[] = {{-6, USAGE_REFUSED}, {-5, USAGE_APPLIED}, {0, USAGE_APPLIED}};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct usage_state *u = new_state();
		struct interval *i = make(41, 1);
		struct rows r;

		tell_run(u, 'r', 0, 1, 40);
		r = save(u);
		kill_it(&u);
		u = restart(&r, end_of(41));
		i->start_ns = end_of(40) + cases[c].start_after_s * SEC;
		assert_int_equal(tell(u, 's', i, end_of(41)).verdict, cases[c].want);
		interval_free(i);
		usage_free(u);
	}
}

/* first..last as a ring merges them. */
static struct interval *make_merged(uint64_t first, uint64_t last)
{
	struct interval *all = make(first, first);

	for (uint64_t s = first + 1; s <= last; s++) {
		struct interval *next = make(s, s), *both = interval_merge(all, next);

		interval_free(all);
		interval_free(next);
		all = both;
	}
	return all;
}

static void tell_merged(struct usage_state *u, uint64_t first, uint64_t last, uint64_t lost)
{
	struct interval *i = make_merged(first, last);
	struct usage_answer a = tell(u, 'r', i, end_of(last));

	if (a.verdict == USAGE_NEED_FULL)
		a = tell(u, 'r', i, end_of(last));
	assert_int_equal(a.verdict, USAGE_APPLIED);
	assert_int_equal(a.lost, lost);
	interval_free(i);
}

/* Merged intervals on this side of the save, on the other, and across it, which the node must do without. */
static void merged_intervals(void **state)
{
	static const struct {
		uint64_t first, last; /* merged */
		uint64_t lost;
	} cases[] = {{1, 40, 0}, {31, 40, 0}, {41, 44, 0}, {31, 44, 4}, {40, 41, 1}};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		uint64_t first = cases[c].first, last = cases[c].last;
		struct usage_state *u = new_state(), *node = new_state(), *pods = new_state();
		struct rows r;

		tell_run(u, 'r', 0, 1, 40);
		r = save(u);
		kill_it(&u);
		u = restart(&r, end_of(50));
		if (first > 1)
			tell_run(u, 'r', 0, 1, first - 1);
		tell_merged(u, first, last, cases[c].lost);
		tell_run(u, 'r', 0, last + 1, 60);

		tell_run(node, 'r', 0, 1, 40);
		if (first > 40)
			tell_merged(node, first, last, 0);
		tell_run(node, 'r', 0, last + 1, 60);
		if (first > 1)
			tell_run(pods, 'r', 0, 1, first - 1);
		tell_merged(pods, first, last, 0);
		tell_run(pods, 'r', 0, last + 1, 60);
		expect(u, node, pods);
		usage_free(u);
		usage_free(node);
		usage_free(pods);
	}
}

/* The frame that was asked comes twice, since its connection was replaced; then the agent obeys. */
static void a_copy_is_not_the_answer(void **state)
{
	static const uint8_t nonce[FRAME_NONCE_LEN] = {1}, other[FRAME_NONCE_LEN] = {2};
	struct usage_state *u = new_state(), *calm = new_state();
	struct interval *i = make(50, 50);
	struct usage_answer a;
	struct rows r;

	(void)state;
	tell_run(u, 'r', 0, 1, 40);
	r = save(u);
	kill_it(&u);
	u = restart(&r, end_of(50));
	for (int copy = 0; copy < 3; copy++) {
		usage_apply(u, "n", run_of('r'), nonce, i, end_of(50), &a);
		assert_int_equal(a.verdict, USAGE_NEED_FULL);
		assert_int_equal(a.resend_from, 1);
	}
	tell_run(u, 'r', 0, 1, 10);
	/* Nor is it later, in between. */
	usage_apply(u, "n", run_of('r'), nonce, i, end_of(50), &a);
	assert_int_equal(a.verdict, USAGE_NEED_FULL);
	tell_run(u, 'r', 0, 11, 49);
	/* Sealed anew it is another frame. */
	usage_apply(u, "n", run_of('r'), other, i, end_of(50), &a);
	assert_int_equal(a.verdict, USAGE_APPLIED);
	tell_run(calm, 'r', 0, 1, 50);
	expect(u, calm, calm);
	interval_free(i);
	usage_free(u);
	usage_free(calm);
}

static uint64_t durable(struct usage_state *u, char run, uint64_t s)
{
	struct interval *i = make(s, s);
	struct usage_answer a = tell(u, run, i, end_of(s));

	interval_free(i);
	return a.durable;
}

/* What the acks say is durable: of the newest save that is in the database, and of the agent's own run. */
static void durable_is_what_was_saved(void **state)
{
	struct usage_state *u = new_state();
	struct usage_row rows[4];
	struct rows r;
	uint64_t id;

	(void)state;
	assert_int_equal(durable(u, 'r', 1), 0);
	tell_run(u, 'r', 0, 2, 40);
	assert_int_equal(durable(u, 'r', 41), 0);
	r = save(u);
	free_rows(&r);
	assert_int_equal(durable(u, 'r', 42), 41);
	assert_int_equal(durable(u, 's', 43), 0);
	/* One that is under way, one that failed. */
	usage_save_begin(u);
	assert_int_equal(usage_save_next(u, rows, 4), 1);
	usage_row_fini(&rows[0]);
	assert_int_equal(durable(u, 'r', 43), 41);
	id = usage_save_begin(u);
	assert_int_equal(usage_save_next(u, rows, 4), 1);
	usage_row_fini(&rows[0]);
	assert_int_equal(durable(u, 'r', 44), 41);
	usage_save_done(u, id);
	assert_int_equal(durable(u, 'r', 45), 43);
	r = save(u);
	kill_it(&u);
	u = restart(&r, end_of(50));
	/* Already in the ack that orders to tell again, and all the while. */
	assert_int_equal(durable(u, 'r', 45), 45);
	assert_int_equal(durable(u, 'r', 1), 45);
	r = save(u);
	assert_int_equal(r.count, 1);
	free_rows(&r);
	assert_int_equal(durable(u, 'r', 2), 45);
	usage_save_reset(u);
	assert_int_equal(durable(u, 'r', 46), 0);
	usage_free(u);
}

static size_t rows_of_save(struct usage_state *u)
{
	struct rows r = save(u);
	size_t count = r.count;

	free_rows(&r);
	return count;
}

static void tell_node(struct usage_state *u, const char *name, uint64_t s)
{
	struct interval *i = make(s, s);
	struct usage_answer a;

	usage_apply(u, name, run_of('r'), NULL, i, end_of(s), &a);
	assert_int_equal(a.verdict, USAGE_APPLIED);
	interval_free(i);
}

static void only_what_changed_is_saved(void **state)
{
	static const char *const names[] = {"c", "a", "b"};
	struct usage_state *u = new_state();
	struct interval *i = make(5, 5);
	struct usage_row rows[4];
	struct usage_answer a;
	struct rows r;

	(void)state;
	assert_int_equal(rows_of_save(u), 0);
	for (size_t n = 0; n < 3; n++)
		tell_node(u, names[n], 1);
	/* One that was but asked has nothing to save. */
	usage_apply(u, "d", run_of('r'), NULL, i, end_of(5), &a);
	assert_int_equal(a.verdict, USAGE_NEED_FULL);
	interval_free(i);
	assert_int_equal(rows_of_save(u), 3);
	assert_int_equal(rows_of_save(u), 0);
	tell_node(u, "b", 2);
	/* What came to nothing is due again. */
	usage_save_begin(u);
	assert_int_equal(usage_save_next(u, rows, 4), 1);
	assert_string_equal(rows[0].name, "b");
	usage_row_fini(&rows[0]);
	tell_node(u, "a", 2);
	r = save(u);
	assert_int_equal(r.count, 2);
	assert_string_equal(r.rows[0].name, "a");
	assert_string_equal(r.rows[1].name, "b");
	usage_free(u);
	/* What was read is not written back. */
	u = restart(&r, end_of(3));
	assert_int_equal(rows_of_save(u), 0);
	usage_save_reset(u);
	assert_int_equal(rows_of_save(u), 2);
	usage_free(u);
}

/* A node that changes, comes or is forgotten while a save goes over them disturbs no other. */
static void changes_during_a_save(void **state)
{
	struct usage_state *u = new_state();
	struct usage_row rows[4];
	uint64_t id;

	(void)state;
	tell_node(u, "b", 1);
	tell_node(u, "d", 1);
	id = usage_save_begin(u);
	assert_int_equal(usage_save_next(u, rows, 1), 1);
	assert_string_equal(rows[0].name, "b");
	usage_row_fini(&rows[0]);
	tell_node(u, "a", 1); /* behind */
	tell_node(u, "c", 1); /* ahead */
	tell_node(u, "b", 2); /* again */
	assert_int_equal(usage_save_next(u, rows, 4), 2);
	assert_string_equal(rows[0].name, "c");
	assert_string_equal(rows[1].name, "d");
	usage_row_fini(&rows[0]);
	usage_row_fini(&rows[1]);
	assert_int_equal(usage_save_next(u, rows, 4), 0);
	usage_save_done(u, id);
	assert_int_equal(rows_of_save(u), 2);
	usage_free(u);
}

static void what_is_not_restored(void **state)
{
	static const struct {
		int64_t now_s; /* after the node was heard last */
		int want;
	} cases[] = {
		{0, 0},	   {24 * 3600, 0},  {24 * 3600 + 1, -ESTALE},
		{-300, 0}, {-301, -ERANGE}, {-365 * 24 * 3600, -ERANGE},
	};
	struct usage_state *u = new_state(), *other;
	struct rows r;

	(void)state;
	tell_run(u, 'r', 0, 1, 3);
	r = save(u);
	assert_int_equal(restore(u, &r.rows[0], end_of(3)), -EEXIST);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		other = new_state();
		assert_int_equal(restore(other, &r.rows[0], end_of(3) + cases[i].now_s * SEC),
				 cases[i].want);
		usage_free(other);
	}
	other = new_state();
	for (size_t n = 0; n < 4; n++)
		tell_node(other, (const char *[]){"w", "x", "y", "z"}[n], 1);
	assert_int_equal(restore(other, &r.rows[0], end_of(3)), -ENOSPC);
	free_rows(&r);
	usage_free(other);
	usage_free(u);
}

/* The node's clock was an hour ahead for a while: its windows would take nothing in before that hour is over. */
static void windows_of_the_future_are_not_restored(void **state)
{
	struct usage_state *u = new_state();
	struct usage_node *n = usage_node_new("n", end_of(2));
	struct interval *ahead = make(720, 1), *now = make(2, 2);

	(void)state;
	usage_node_apply(n, run_of('r'), ahead, 1, 2048);
	usage_node_apply(n, run_of('r'), now, 2, 2048);
	n->heard_ns = end_of(2);
	assert_int_equal(usage_restore(u, n, end_of(2)), -ERANGE);
	interval_free(ahead);
	interval_free(now);
	usage_free(u);
}

/* Counters begin anew with a process: none would be worse than one that went back a little. */
static void totals_begin_anew(void **state)
{
	struct usage_state *u = new_state();
	struct rows r;
	struct view *v;

	(void)state;
	tell_run(u, 'r', 0, 1, 40);
	r = save(u);
	kill_it(&u);
	u = restart(&r, end_of(45));
	tell_run(u, 'r', 0, 1, 45);
	v = usage_view(u, end_of(45));
	assert_int_equal(v->nodes[0]->stats->totals.cpu.user_ns, 0);
	view_drop(v);
	tell_run(u, 'r', 0, 46, 47);
	v = usage_view(u, end_of(47));
	assert_int_equal(v->nodes[0]->stats->totals.cpu.user_ns, 2 * 25000000000ULL);
	view_drop(v);
	usage_free(u);
}

/*
 * A node whose clock is an hour ahead, asked by the next process. Intervals that are sent again land
 * where they were, with a stated age or without, and the samples that follow do not move them.
 */
static void corrected_clocks_stay_corrected(void **state)
{
	(void)state;
	for (int aged = 0; aged < 2; aged++) {
		struct usage_state *u = new_state(), *calm = new_state();
		struct rows r;

		tell_skewed(u, 3600 * SEC, 1, 40, true);
		r = save(u);
		kill_it(&u);
		u = restart(&r, end_of(45));
		tell_skewed(u, 3600 * SEC, 1, 45, aged);
		tell_skewed(u, 3600 * SEC, 46, 50, true);
		tell_run(calm, 'r', 0, 1, 50);
		expect(u, calm, calm);
		usage_free(u);
		usage_free(calm);
	}
}

/* How old the last good use of the node is, is known after a restart; the value itself is not. */
static void what_was_put_aside_is_so_after_a_restart(void **state)
{
	struct usage_state *u = new_state();
	struct interval *i = make(42, 42);
	const struct node_stats *p;
	struct rows r;
	struct view *v;

	(void)state;
	tell_run(u, 'r', 0, 1, 41);
	i->node.usage.cpu_milli.mean = NAN;
	assert_int_equal(tell(u, 'r', i, end_of(42)).quarantine.total, 1);
	interval_free(i);
	r = save(u);
	kill_it(&u);
	u = restart(&r, end_of(43));
	v = usage_view(u, end_of(43));
	p = v->nodes[0]->stats;
	assert_int_equal(p->aside_ns, INTERVAL_S * SEC);
	assert_false(p->usage.latest.cpu_milli.known);
	assert_true(p->usage.latest.mem_bytes.known);
	view_drop(v);
	tell_run(u, 'r', 0, 1, 41); /* which the windows have: as old as before */
	v = usage_view(u, end_of(43));
	assert_int_equal(v->nodes[0]->stats->aside_ns, INTERVAL_S * SEC);
	assert_int_equal(v->nodes[0]->stats->pod_count, PODS);
	view_drop(v);
	i = make(42, 42);
	i->node.usage.cpu_milli.mean = NAN;
	assert_int_equal(tell(u, 'r', i, end_of(43)).verdict, USAGE_APPLIED);
	interval_free(i);
	tell_run(u, 'r', 0, 43, 43);
	v = usage_view(u, end_of(43));
	assert_int_equal(v->nodes[0]->stats->aside_ns, 0);
	assert_true(v->nodes[0]->stats->usage.latest.cpu_milli.known);
	assert_int_equal(v->nodes[0]->stats->quarantine.count, 1); /* by this process */
	assert_int_equal(v->nodes[0]->stats->quarantine.last_ns, end_of(42));
	view_drop(v);
	usage_free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_run),
		cmocka_unit_test(windows_are_back_at_once),
		cmocka_unit_test(killed_while_catching_up),
		cmocka_unit_test(agent_restarted_as_well),
		cmocka_unit_test(last_end_survives),
		cmocka_unit_test(merged_intervals),
		cmocka_unit_test(a_copy_is_not_the_answer),
		cmocka_unit_test(durable_is_what_was_saved),
		cmocka_unit_test(only_what_changed_is_saved),
		cmocka_unit_test(changes_during_a_save),
		cmocka_unit_test(what_is_not_restored),
		cmocka_unit_test(windows_of_the_future_are_not_restored),
		cmocka_unit_test(totals_begin_anew),
		cmocka_unit_test(corrected_clocks_stay_corrected),
		cmocka_unit_test(what_was_put_aside_is_so_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
