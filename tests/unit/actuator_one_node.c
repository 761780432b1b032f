/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster of one node: what the next step does with it, by its annotation, its taint and its cordon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/act.h"
#include "shared/clock.h"
#include "shared/mem.h"

#define BEGIN_NS (1000000 * NS_PER_SEC) /* the wall clock runs beside the monotonic one */

static struct act_pod the_pod = {"uid", "default", "p", "", false};
static struct verify_plan_node of_n = {.name = "n", .uid = "u", .move_count = 1};
static struct verify_move of_p = {
	.namespace = "default", .name = "p", .uid = "uid", .from = "n", .to = "n0"};
static const struct verify_plan the_plan = {
	.node_count = 1, .nodes = &of_n, .move_count = 1, .moves = &of_p};

struct alone {
	struct act_state state;
	struct act_options options;
	struct act_node node;
	struct act_plan plan;
	struct act_use use;
	bool measured; /* the use counts */
	bool paused;
	struct act_output out; /* of the last step */
};

static struct act_node node_in(enum mark_phase phase)
{
	bool drains = phase >= MARK_TAINTED && phase <= MARK_DRAINED;

	return (struct act_node){
		.name = "n",
		.uid = "u",
		.selected = true,
		.mark = {.phase = phase, .plan = "p", .since_ns = BEGIN_NS, .cordoned = drains},
		.cordoned = drains,
		.tainted = drains,
		.pods = &the_pod};
}

static void begin_alone(struct alone *w, enum mark_phase phase)
{
	*w = (struct alone){.options = {.pod_wait_ns = 60 * NS_PER_SEC,
					.in_flight_max = 1,
					.hour_max = 9,
					.holder = "h"},
			    .node = node_in(phase),
			    .plan = {.id = "q", .refusal = "why"}};
}

static void step_alone(struct alone *w, int64_t at_ns)
{
	const struct act_cluster cluster = {.node_count = 1, .nodes = &w->node};

	act_output_fini(&w->out);
	w->out = (struct act_output){.action_count = 0};
	act_step(&w->state, &w->options,
		 &(struct act_input){.cluster = &cluster,
				     .plan = &w->plan,
				     .uses = &w->use,
				     .use_count = w->measured,
				     .paused = w->paused,
				     .now_ns = BEGIN_NS + at_ns,
				     .wall_ns = BEGIN_NS + at_ns},
		 &w->out);
}

static void end_alone(struct alone *w)
{
	act_output_fini(&w->out);
	act_state_fini(&w->state);
}

/* The state of a node in a case, and of the actuator. */
enum {
	CORDONED = 1,
	TAINTED = 2,
	OURS = 4,
	UNDO = 8,
	FOREIGN = 16,
	POD = 32,
	PAUSED = 64,
	UNSELECTED = 128,
	ASKED = 256,
	BY_ITSELF = 512
};

static const struct {
	enum mark_phase phase;
	int is; /* ours: its annotation says that evenkeel cordoned it */
	enum mark_phase next; /* none: no action */
	enum act_cordon cordon;
	const char *why;
} first_cases[] = {
	{MARK_CLAIMED, 0, MARK_TAINTED, ACT_CORDON, "is cordoned and tainted"},
	{MARK_CLAIMED, PAUSED, MARK_NONE, 0, ""},
	{MARK_CLAIMED, CORDONED, MARK_ROLLED_BACK, ACT_CORDON_STAYS,
	 "it was cordoned or tainted by another"},
	{MARK_CLAIMED, TAINTED, MARK_ROLLED_BACK, ACT_CORDON_STAYS,
	 "it was cordoned or tainted by another"},
	{MARK_TAINTED, CORDONED | TAINTED | OURS, MARK_EVICTING, ACT_CORDON_STAYS,
	 "agree on 0 moves"},
	{MARK_TAINTED, CORDONED | TAINTED | OURS | PAUSED, MARK_NONE, 0, ""},
	{MARK_TAINTED, CORDONED | TAINTED | OURS | POD, MARK_NONE, 0, ""},
	{MARK_TAINTED, CORDONED | OURS, MARK_ROLLED_BACK, ACT_CORDON_ENDS,
	 "its taint or its cordon was removed"},
	{MARK_TAINTED, CORDONED, MARK_ROLLED_BACK, ACT_CORDON_STAYS,
	 "its taint or its cordon was removed"},
	{MARK_TAINTED, TAINTED | OURS, MARK_ROLLED_BACK, ACT_CORDON_STAYS,
	 "its taint or its cordon was removed"},
	{MARK_EVICTING, CORDONED | TAINTED, MARK_VERIFIED, ACT_CORDON_STAYS, "is empty"},
	{MARK_EVICTING, CORDONED | TAINTED | PAUSED, MARK_VERIFIED, ACT_CORDON_STAYS, "is empty"},
	{MARK_EVICTING, CORDONED | TAINTED | POD, MARK_NONE, 0, ""},
	{MARK_EVICTING, CORDONED | TAINTED | UNDO, MARK_ROLLED_BACK, ACT_CORDON_ENDS,
	 "a person asked for it"},
	{MARK_EVICTING, CORDONED | TAINTED | FOREIGN, MARK_ROLLED_BACK, ACT_CORDON_ENDS,
	 "it is mine"},
	{MARK_VERIFIED, CORDONED | TAINTED, MARK_DRAINED, ACT_CORDON_STAYS, "is drained"},
	{MARK_VERIFIED, CORDONED | TAINTED | PAUSED, MARK_NONE, 0, ""},
	{MARK_VERIFIED, CORDONED | TAINTED | POD, MARK_ROLLED_BACK, ACT_CORDON_ENDS,
	 "pod default/p came to it"},
	{MARK_DRAINED, CORDONED | TAINTED, MARK_NONE, 0, ""},
	{MARK_DRAINED, CORDONED, MARK_NONE, 0, ""},
	{MARK_DRAINED, CORDONED | UNDO, MARK_ROLLED_BACK, ACT_CORDON_STAYS,
	 "a person asked for it"},
	{MARK_DRAINED, TAINTED, MARK_ROLLED_BACK, ACT_CORDON_STAYS,
	 "its annotation evenkeel.io/drain is drained"},
	{MARK_ROLLED_BACK, CORDONED, MARK_NONE, 0, ""},
	{MARK_ROLLED_BACK, UNDO, MARK_NONE, 0, ""},
	{MARK_ROLLED_BACK, TAINTED, MARK_ROLLED_BACK, ACT_CORDON_STAYS,
	 "its annotation evenkeel.io/drain is rolledBack"},
	{MARK_NONE, CORDONED, MARK_NONE, 0, ""},
	{MARK_NONE, CORDONED | TAINTED, MARK_ROLLED_BACK, ACT_CORDON_ENDS,
	 "its annotation evenkeel.io/drain is none"},
};

/* The first step over a node. */
static void test_first_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(first_cases) / sizeof(first_cases[0]); i++) {
		const int is = first_cases[i].is;
		struct alone w;

		begin_alone(&w, first_cases[i].phase);
		w.node.cordoned = is & CORDONED;
		w.node.tainted = is & TAINTED;
		w.node.mark.cordoned = is & OURS;
		w.node.wants_undo = is & UNDO;
		w.node.foreign = is & FOREIGN ? "it is mine" : NULL;
		w.node.pod_count = is & POD ? 1 : 0;
		w.paused = is & PAUSED;
		step_alone(&w, 0);
		assert_int_equal(w.out.action_count, first_cases[i].next != MARK_NONE);
		if (w.out.action_count) {
			const struct act_action *a = w.out.actions;

			assert_int_equal(a->kind, ACT_PATCH_NODE);
			assert_int_equal(a->mark.phase, first_cases[i].next);
			assert_int_equal(a->cordon, first_cases[i].cordon);
			assert_int_equal(a->tainted, first_cases[i].next != MARK_ROLLED_BACK);
			assert_int_equal(a->mark.cordoned, first_cases[i].next == MARK_TAINTED ||
								   (a->tainted && is & OURS));
			assert_string_equal(a->mark.plan, "p");
			assert_string_equal(a->mark.holder, "h");
			assert_true(a->mark.since_ns == BEGIN_NS);
			assert_non_null(strstr(a->text.text, first_cases[i].why));
		}
		end_alone(&w);
	}
}

static void test_after_a_drain(void **state)
{
	static const struct {
		enum act_after after;
		enum act_kind kind;
		bool tainted;
		enum act_cordon cordon;
	} cases[] = {{ACT_KEEP, ACT_PATCH_NODE, true, ACT_CORDON_STAYS},
		     {ACT_UNCORDON, ACT_PATCH_NODE, false, ACT_CORDON_ENDS},
		     {ACT_DELETE_NODE, ACT_REMOVE_NODE, false, ACT_CORDON_STAYS}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct alone w;

		begin_alone(&w, MARK_VERIFIED);
		w.options.after = cases[i].after;
		step_alone(&w, 0);
		assert_int_equal(w.out.action_count, 1);
		assert_int_equal(w.out.actions[0].kind, cases[i].kind);
		assert_int_equal(w.out.actions[0].tainted, cases[i].tainted);
		assert_int_equal(w.out.actions[0].cordon, cases[i].cordon);
		assert_int_equal(w.out.actions[0].mark.cordoned, cases[i].after == ACT_KEEP);
		assert_string_equal(w.out.actions[0].uid, "u");
		end_alone(&w);
	}
}

/* A finalizer holds a deleted node for an hour; the node counts as drained when it is gone. */
static void test_a_deleted_node_is_awaited(void **state)
{
	struct alone w;

	(void)state;
	begin_alone(&w, MARK_VERIFIED);
	w.options.after = ACT_DELETE_NODE;
	step_alone(&w, 0);
	assert_int_equal(w.out.actions[0].kind, ACT_REMOVE_NODE);
	w.node.ending = true;
	w.node.foreign = "its object is being deleted";
	for (int at_s = 20; at_s <= 3600; at_s += 20) {
		step_alone(&w, at_s * NS_PER_SEC);
		assert_int_equal(w.out.action_count, 0);
	}
	w.node = node_in(MARK_NONE);
	w.node.name = "m";
	step_alone(&w, 3620 * NS_PER_SEC);
	assert_true(w.state.wave_ended);
	assert_int_equal(w.state.wave.drained, 1);
	assert_string_equal(w.state.wave.reason.text, "");
	end_alone(&w);
}

/* A deletion is no end of a drain that deletes no nodes or has pods left, or that a person ends. */
static void test_other_deletions_are_rolled_back(void **state)
{
	static const struct {
		enum mark_phase phase;
		enum act_after after;
		bool undo;
	} cases[] = {
		{MARK_VERIFIED, ACT_KEEP, false},	{MARK_VERIFIED, ACT_UNCORDON, false},
		{MARK_VERIFIED, ACT_DELETE_NODE, true}, {MARK_EVICTING, ACT_DELETE_NODE, false},
		{MARK_TAINTED, ACT_DELETE_NODE, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct alone w;

		begin_alone(&w, cases[i].phase);
		w.options.after = cases[i].after;
		w.node.ending = true;
		w.node.foreign = "its object is being deleted";
		w.node.wants_undo = cases[i].undo;
		step_alone(&w, 0);
		assert_int_equal(w.out.action_count, 1);
		assert_int_equal(w.out.actions[0].mark.phase, MARK_ROLLED_BACK);
		end_alone(&w);
	}
}

/* The patch to evicting fails: it is sent again, by the same proof. */
static void test_a_failed_patch_is_repeated(void **state)
{
	struct alone w;

	(void)state;
	begin_alone(&w, MARK_TAINTED);
	w.node.pod_count = 1;
	w.plan.proof = &the_plan;
	for (int at_s = 0; at_s < 6; at_s += 2) {
		step_alone(&w, at_s * NS_PER_SEC);
		assert_int_equal(w.out.action_count, 1);
		assert_int_equal(w.out.actions[0].mark.phase, MARK_EVICTING);
		assert_non_null(strstr(w.out.actions[0].text.text, "agree on 1 moves"));
		assert_false(act_wants_proof(&w.state));
		w.plan.proof = NULL;
	}
	w.node.mark.phase = MARK_EVICTING;
	step_alone(&w, 6 * NS_PER_SEC);
	assert_int_equal(w.out.action_count, 1);
	assert_int_equal(w.out.actions[0].kind, ACT_EVICT);
	end_alone(&w);
}

/* Bounds of a drain that evicts, and of its pod: nothing happens at the bound, a rollback after it. */
static void test_bounds(void **state)
{
	static const struct {
		bool proven, paused;
		double cpu_milli; /* of the destination, whose cap is known */
		int64_t bound_s;
		const char *why;
	} cases[] = {
		{false, false, 1, 120 + 60, "its other pods were not proven in time: why"},
		{true, true, 1, 540, "the pause lasts for longer than 9 minutes"},
		{true, false, NAN, 120, "real use of destinations is unknown for 2 minutes"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t bound_ns = cases[i].bound_s * NS_PER_SEC;
		struct alone w;

		begin_alone(&w, MARK_EVICTING);
		w.node.pod_count = 1;
		w.plan.proof = cases[i].proven ? &the_plan : NULL;
		w.paused = cases[i].paused;
		w.measured = true;
		w.use = (struct act_use){.node = "n0",
					 .cpu_milli = cases[i].cpu_milli,
					 .cpu_cap_milli = 2,
					 .mem_cap_bytes = NAN};
		for (int64_t at_ns = 0; at_ns <= bound_ns; at_ns += 20 * NS_PER_SEC) {
			step_alone(&w, at_ns);
			assert_int_equal(w.out.action_count, 0);
		}
		step_alone(&w, bound_ns + 1);
		assert_int_equal(w.out.action_count, 1);
		assert_int_equal(w.out.actions[0].mark.phase, MARK_ROLLED_BACK);
		assert_non_null(strstr(w.out.actions[0].text.text, cases[i].why));
		end_alone(&w);
	}
}

/* A pause, or a use that is not known, ends without a trace. */
static void test_waits_begin_anew(void **state)
{
	struct alone w;

	(void)state;
	begin_alone(&w, MARK_EVICTING);
	w.node.pod_count = 1;
	w.plan.proof = &the_plan;
	w.options.in_flight_max = 0;
	w.measured = true;
	w.use = (struct act_use){.node = "n0", .cpu_milli = NAN, .cpu_cap_milli = 2};
	for (int i = 0; i < 100; i++) {
		w.paused = i % 25; /* for 480 s */
		w.use.cpu_milli = i % 5 ? NAN : 1; /* for 80 s */
		step_alone(&w, i * 20 * NS_PER_SEC);
		assert_int_equal(w.out.action_count, 0);
	}
	assert_true(w.state.drain_count == 1);
	end_alone(&w);
}

/* A drain whose last step was long ago is proven anew. */
static void test_gaps_between_steps(void **state)
{
	(void)state;
	for (int late = 0; late <= 1; late++) {
		struct alone w;

		begin_alone(&w, MARK_EVICTING);
		w.node.pod_count = 1;
		w.plan.proof = &the_plan;
		w.paused = true;
		step_alone(&w, 0);
		assert_true(w.state.drains[0].proven);
		w.plan.proof = NULL;
		step_alone(&w, 30 * NS_PER_SEC + late);
		assert_int_equal(w.state.drains[0].proven, !late);
		assert_int_equal(act_wants_proof(&w.state), late);
		assert_int_equal(act_is_unproven(&w.state, "n"), late);
		assert_false(act_wants_offer(&w.state));
		end_alone(&w);
	}
}

/* Waits do not count a time without steps: nothing is rolled back in the first step after it. */
static void test_gaps_in_waits(void **state)
{
	struct alone w;

	(void)state;
	begin_alone(&w, MARK_TAINTED);
	w.node.pod_count = 1;
	step_alone(&w, 0);
	step_alone(&w, 600 * NS_PER_SEC);
	assert_int_equal(w.out.action_count, 0);
	end_alone(&w);

	begin_alone(&w, MARK_EVICTING);
	w.node.pod_count = 1;
	w.options.in_flight_max = 0;
	w.plan.proof = &the_plan;
	for (int64_t at_s = 0; at_s <= 600; at_s += 20)
		step_alone(&w, at_s * NS_PER_SEC);
	w.plan.proof = NULL;
	step_alone(&w, 631 * NS_PER_SEC);
	assert_int_equal(w.out.action_count, 0);
	assert_true(act_wants_proof(&w.state));
	end_alone(&w);
}

/* A destination that is hot, or not measured, in the first step after a gap was not so all the time. */
static void test_gaps_in_use(void **state)
{
	static const double cpu_milli[][2] = {{1, 3},
					      {NAN, NAN}}; /* before the gap, and after it */

	(void)state;
	for (size_t i = 0; i < sizeof(cpu_milli) / sizeof(cpu_milli[0]); i++) {
		struct alone w;

		begin_alone(&w, MARK_EVICTING);
		w.node.pod_count = 1;
		w.options.in_flight_max = 0;
		w.plan.proof = &the_plan;
		w.measured = true;
		w.use = (struct act_use){.node = "n0", .cpu_cap_milli = 2, .mem_cap_bytes = NAN};
		for (int k = 0; k <= 1; k++) {
			w.use.cpu_milli = cpu_milli[i][k];
			w.use.end_ns = BEGIN_NS + k * 600 * NS_PER_SEC;
			step_alone(&w, k * 600 * NS_PER_SEC);
			assert_int_equal(w.out.action_count, 0);
		}
		end_alone(&w);
	}
}

/* The wait for a pod in flight goes on after a gap; then the rest is proven anew. */
static void test_gaps_with_a_pod_in_flight(void **state)
{
	struct alone w;

	(void)state;
	begin_alone(&w, MARK_EVICTING);
	w.node.pod_count = 1;
	w.plan.proof = &the_plan;
	step_alone(&w, 0);
	assert_int_equal(w.out.actions[0].kind, ACT_EVICT);
	w.node.pods = &(struct act_pod){"uid", "default", "p", "", true};
	step_alone(&w, 20 * NS_PER_SEC);
	step_alone(&w, 600 * NS_PER_SEC);
	assert_int_equal(w.out.action_count, 0);
	assert_false(act_wants_proof(&w.state));
	step_alone(&w, 620 * NS_PER_SEC);
	assert_int_equal(w.out.action_count, 0);
	step_alone(&w, 641 * NS_PER_SEC);
	assert_non_null(strstr(w.out.actions[0].text.text, "does not end for longer than"));
	end_alone(&w);
}

static void test_who_waits_for_a_proof(void **state)
{
	static const struct {
		enum mark_phase phases[2];
		bool proven[2], wants;
	} cases[] = {
		{{MARK_CLAIMED, MARK_TAINTED}, {false, false}, false}, /* together */
		{{MARK_TAINTED, MARK_CLAIMED}, {false, false}, false},
		{{MARK_TAINTED, MARK_TAINTED}, {false, false}, true},
		{{MARK_TAINTED, MARK_EVICTING}, {true, true}, false},
		{{MARK_EVICTING, MARK_EVICTING}, {true, false}, true},
		{{MARK_EVICTING, MARK_VERIFIED}, {true, false}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct act_drain drains[2] = {{.node = (char *)"n0"}, {.node = (char *)"n1"}};
		const struct act_state s = {.drains = drains, .drain_count = 2};

		for (int k = 0; k < 2; k++) {
			drains[k].mark.phase = cases[i].phases[k];
			drains[k].proven = cases[i].proven[k];
		}
		assert_int_equal(act_wants_proof(&s), cases[i].wants);
	}
	assert_false(act_wants_proof(&(struct act_state){.drain_count = 0}));
}

/* --- destinations ----------------------------------------------------------------------------- */

/* Each is a step in a second: h: above the cap, c: not, -: not a destination, =: the last interval. */
static void test_hot_destinations(void **state)
{
	static const struct {
		const char *seconds;
		double cpu, cpu_cap, mem, mem_cap, contention, contention_cap; /* of an h */
		int stop; /* the second of the rollback; -1: none */
		bool blind; /* nothing is evicted */
		const char *why;
	} cases[] = {
		{"hhhhhhhhhhh", 2.1, 2, 1, 1, 0, 0, 9, false,
		 "CPU 2m above its cap of 2m for 10 s"},
		{"hhhhhhhhhhh", 2, 2, 1, 1, 0, 0, -1, false, ""},
		{"hhhhhhhhhhh", 2, 2, 3 << 20, 2 << 20, 0, 0, 9, false,
		 "memory 3 MiB above its cap of 2 MiB for 10 s"},
		{"hhhhhhhhhhh", 2, 2, 1, 1, 0.3, 0.2, 9, false,
		 "contention 0.300 above 0.200 for 10 s"},
		{"hhhhhhhhhhh", 2, 2, 1, 1, 0.2, 0.2, -1, false, ""},
		{"hhhhhhhhhhh", 9, NAN, 9, NAN, 9, NAN, -1, false, ""},
		{"hhhhhhhhhhh", NAN, NAN, NAN, NAN, NAN, NAN, -1, false, ""},
		{"hhhhhhhhhhh", NAN, 2, 1, 1, 0, 0, -1, true, ""},
		{"hhhhhhhhhhh", 1, 2, NAN, 1, 0, 0, -1, true, ""},
		{"hhhhhhhhchhhhhhhhhhh", 3, 2, 1, 1, 0, 0, 17, false, "CPU 3m"},
		{"hhhh-hhhhhhhhhhhhhhh", 3, 2, 1, 1, 0, 0, 14, false, "CPU 3m"},
		{"h==========hh", 3, 2, 1, 1, 0, 0, 11, false, "CPU 3m"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t evictions = 0;
		int stop = -1;
		struct alone w;

		begin_alone(&w, MARK_EVICTING);
		w.node.pod_count = 1;
		w.plan.proof = &the_plan;
		for (int at = 0; cases[i].seconds[at] && stop < 0; at++) {
			const char now = cases[i].seconds[at];

			w.measured = now != '-';
			if (now != '=')
				w.use.end_ns = BEGIN_NS + at * NS_PER_SEC;
			w.use.node = "n0";
			w.use.cpu_milli = now == 'c' ? 1 : cases[i].cpu;
			w.use.cpu_cap_milli = cases[i].cpu_cap;
			w.use.mem_bytes = cases[i].mem;
			w.use.mem_cap_bytes = cases[i].mem_cap;
			w.use.contention = cases[i].contention;
			w.use.contention_cap = cases[i].contention_cap;
			step_alone(&w, at * NS_PER_SEC);
			for (size_t k = 0; k < w.out.action_count; k++) {
				evictions += w.out.actions[k].kind == ACT_EVICT;
				if (w.out.actions[k].mark.phase != MARK_ROLLED_BACK)
					continue;
				stop = at;
				assert_non_null(strstr(w.out.actions[k].text.text, cases[i].why));
			}
		}
		assert_int_equal(stop, cases[i].stop);
		assert_int_equal(evictions > 0, !cases[i].blind);
		assert_int_equal(w.state.wave.destination_hot, stop >= 0);
		end_alone(&w);
	}
}

/* --- claims ----------------------------------------------------------------------------------- */

static void test_claims(void **state)
{
	static const struct {
		enum mark_phase phase;
		int is;
		const char *namespace, *from; /* of its move */
		const char *why; /* ""; it is claimed; NULL: it is not judged */
	} cases[] = {
		{MARK_NONE, BY_ITSELF, "default", "n", ""},
		{MARK_NONE, ASKED, "default", "n", ""},
		{MARK_NONE, 0, "default", "n", NULL},
		{MARK_NONE, BY_ITSELF | PAUSED, "default", "n", NULL},
		{MARK_NONE, BY_ITSELF | FOREIGN, "default", "n", "it is mine"},
		{MARK_NONE, ASKED | CORDONED, "default", "n", "it is cordoned"},
		{MARK_NONE, ASKED | UNSELECTED, "default", "n",
		 "--node-selector does not match it"},
		{MARK_GARBLED, BY_ITSELF, "default", "n",
		 "its annotation evenkeel.io/drain is unreadable"},
		{MARK_NONE, BY_ITSELF, "kube-system", "n",
		 "pod kube-system/p is of a namespace that evenkeel leaves alone"},
		{MARK_NONE, BY_ITSELF, "default", "n7", "pod default/p of its group is on n7"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int is = cases[i].is;
		struct verify_move move = of_p;
		const struct verify_plan offer = {
			.node_count = 1, .nodes = &of_n, .move_count = 1, .moves = &move};
		const char *why = cases[i].why;
		char *told = why && *why ? mem_printf("node n is left alone: %s\n", why)
					 : mem_strdup("");
		struct alone w;

		begin_alone(&w, cases[i].phase);
		move.namespace = cases[i].namespace;
		move.from = cases[i].from;
		w.options.drain = is & BY_ITSELF;
		w.node.cordoned = is & CORDONED;
		w.node.selected = !(is & UNSELECTED);
		w.node.foreign = is & FOREIGN ? "it is mine" : NULL;
		w.node.wants_drain = is & ASKED;
		w.plan.offer = &offer;
		w.paused = is & PAUSED;
		/* It is told once. */
		for (int k = 0; k < 2; k++) {
			step_alone(&w, k);
			assert_string_equal(w.out.narration.len ? w.out.narration.data : "",
					    k ? "" : told);
		}
		assert_int_equal(w.out.action_count, why && !*why);
		if (w.out.action_count) {
			assert_int_equal(w.out.actions[0].mark.phase, MARK_CLAIMED);
			assert_string_equal(w.out.actions[0].mark.plan, "q");
			assert_false(w.out.actions[0].tainted);
			assert_int_equal(w.out.actions[0].cordon, ACT_CORDON_STAYS);
		}
		assert_true(act_wants_offer(&w.state));
		free(told);
		end_alone(&w);
	}
}

/* --- the wave --------------------------------------------------------------------------------- */

/* A pod leaves, and its node is drained, deleted, or taken away. */
static void test_waves_end(void **state)
{
	static const struct {
		enum mark_phase last; /* the last that is seen; none: another node has the name */
		bool there; /* at the end, drained or rolled back */
		bool drained;
		const char *told;
	} cases[] = {
		{MARK_DRAINED, true, true, ""},
		{MARK_VERIFIED, false, true, "node n is gone\n"},
		{MARK_EVICTING, false, false, "node n is gone\n"},
		{MARK_ROLLED_BACK, true, false, ""},
		{MARK_NONE, true, false, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct act_wave *wave;
		struct alone w;

		begin_alone(&w, MARK_EVICTING);
		w.node.pod_count = 1;
		w.plan.proof = &the_plan;
		step_alone(&w, 0);
		assert_int_equal(w.out.action_count, 1);
		act_result(&w.state, w.out.actions, ACT_NOT_YET, "", BEGIN_NS);
		step_alone(&w, 3 * NS_PER_SEC);
		assert_int_equal(w.out.action_count, 1);
		act_result(&w.state, w.out.actions, ACT_DONE, "", BEGIN_NS);
		assert_false(w.state.wave_ended);
		w.node = node_in(cases[i].last);
		if (cases[i].last == MARK_NONE)
			w.node.uid = "v";
		step_alone(&w, 4 * NS_PER_SEC);
		if (!cases[i].there) {
			w.node = node_in(MARK_NONE);
			w.node.name = "m";
			step_alone(&w, 5 * NS_PER_SEC);
		}
		wave = &w.state.wave;
		assert_string_equal(w.out.narration.len ? w.out.narration.data : "", cases[i].told);
		assert_true(w.state.wave_ended);
		assert_int_equal(wave->ended_count, 1);
		assert_int_equal(wave->drained, cases[i].drained);
		assert_int_equal(wave->ended[0].drained, cases[i].drained);
		assert_int_equal(wave->ended[0].moves, 1);
		assert_int_equal(wave->ended[0].evictions, 1);
		assert_int_equal(wave->ended[0].seconds, cases[i].there ? 4 : 5);
		assert_int_equal(wave->evictions, 1);
		assert_int_equal(wave->refused, 1);
		assert_true(wave->begin_ns == BEGIN_NS);
		assert_true(wave->end_ns == BEGIN_NS + (cases[i].there ? 4 : 5) * NS_PER_SEC);
		assert_string_equal(wave->plan, "p");
		step_alone(&w, 6 * NS_PER_SEC);
		assert_false(w.state.wave_ended);
		end_alone(&w);
	}
}

/* An evicted pod of a node that is gone has no replacement: the other nodes are rolled back. */
static void test_a_wave_stops(void **state)
{
	(void)state;
	for (int evicted = 0; evicted <= 1; evicted++) {
		struct act_node nodes[] = {node_in(MARK_EVICTING), node_in(MARK_EVICTING)};
		struct act_cluster cluster = {.node_count = 2, .nodes = nodes};
		struct act_input in = {.cluster = &cluster,
				       .plan = &(struct act_plan){.proof = &the_plan,
								  .refusal = ""},
				       .now_ns = BEGIN_NS,
				       .wall_ns = BEGIN_NS};
		struct alone w;

		begin_alone(&w, MARK_EVICTING);
		w.options.in_flight_max = (size_t)evicted;
		nodes[1].name = "m";
		nodes[0].pod_count = nodes[1].pod_count = 1;
		act_step(&w.state, &w.options, &in, &w.out);
		assert_int_equal(w.out.action_count, evicted);
		act_output_fini(&w.out);
		w.out = (struct act_output){.action_count = 0};
		cluster.nodes++;
		cluster.node_count--;
		act_step(&w.state, &w.options, &in, &w.out);
		assert_int_equal(w.out.action_count, evicted);
		if (evicted)
			assert_string_equal(w.out.actions[0].text.text,
					    "node m is rolled back: pod default/p of node n has no "
					    "Ready replacement");
		assert_false(w.state.wave_ended);
		end_alone(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_steps),
		cmocka_unit_test(test_after_a_drain),
		cmocka_unit_test(test_a_deleted_node_is_awaited),
		cmocka_unit_test(test_other_deletions_are_rolled_back),
		cmocka_unit_test(test_a_failed_patch_is_repeated),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_waits_begin_anew),
		cmocka_unit_test(test_gaps_between_steps),
		cmocka_unit_test(test_gaps_in_waits),
		cmocka_unit_test(test_gaps_in_use),
		cmocka_unit_test(test_gaps_with_a_pod_in_flight),
		cmocka_unit_test(test_who_waits_for_a_proof),
		cmocka_unit_test(test_hot_destinations),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_waves_end),
		cmocka_unit_test(test_a_wave_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
