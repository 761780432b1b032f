/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of the actuator in a simulated cluster under virtual time, with random faults at
 * every call. The cluster evicts as the Eviction API does, makes replacements and binds them; people
 * and other programs interfere. An actuator may end between any two actions: its successor has the
 * annotations alone.
 *
 * At any time:  no pod is evicted twice; none of kube-system is evicted
 *               a foreign cordon stays, and its node is not marked
 *               without faults no eviction is refused, and one pod of an owner is away
 * Ten minutes after the last fault:  each tainted or cordoned node is empty and marked drained
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/act.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/place_world.h"
#include "tests/sanitized.h"

enum {
	NODES = 8,
	OWNERS = 6,
	PODS = 64,
	STEPS = 500,
	CALM = 300,
	RUNS = RANDOM_CASES(400),
	TEXT = 24
};

#define STEP_NS	 (2 * NS_PER_SEC)
#define BEGIN_NS (1000000 * NS_PER_SEC) /* the wall clock runs beside the monotonic one */

/* --- the cluster ------------------------------------------------------------------------------ */

struct sim_node {
	char name[TEXT], uid[TEXT];
	bool there, cordoned, tainted, foreign_cordon;
	struct mark mark;
	int version;
	bool hot, unmeasured;
};

struct sim_pod {
	char name[TEXT], uid[TEXT];
	bool there, ending, evicted;
	int owner, node; /* node -1: none yet */
	int64_t due_ns; /* it ends, is bound, or becomes ready */
	bool ready;
};

struct sim {
	struct place_world dice; /* only its random numbers */
	uint64_t seed;
	bool faults, calm;
	struct sim_node nodes[NODES];
	struct sim_pod pods[PODS];
	int replicas[OWNERS], min[OWNERS];
	int64_t now_ns;
	int made;
	size_t evictions, refused, kills;
	bool paused, paused_now; /* now: as this step was told */
	bool stuck; /* new pods of owner 1 are never Ready */
	struct act_state state;
	struct act_options options;
};

static bool chance(struct sim *s, unsigned int percent)
{
	return place_world_chance(&s->dice, percent);
}

/* A fault of a call, or of another's hand. */
static bool strikes(struct sim *s, unsigned int percent)
{
	return s->faults && !s->calm && chance(s, percent);
}

static size_t draw(struct sim *s, size_t n)
{
	return place_world_draw(&s->dice, n);
}

static int count_ready(const struct sim *s, int owner)
{
	int count = 0;

	for (int i = 0; i < PODS; i++)
		count += s->pods[i].there && s->pods[i].owner == owner && s->pods[i].ready &&
			 !s->pods[i].ending;
	return count;
}

static int count_there(const struct sim *s, int owner)
{
	int count = 0;

	for (int i = 0; i < PODS; i++)
		count += s->pods[i].there && s->pods[i].owner == owner && !s->pods[i].ending;
	return count;
}

static void make_pod(struct sim *s, int owner, int node)
{
	int i;

	for (i = 0; s->pods[i].there; i++)
		assert_true(i + 1 < PODS);
	s->pods[i] = (struct sim_pod){.there = true, .owner = owner, .node = node};
	/* Owner 0 names its pods as a StatefulSet does. */
	snprintf(s->pods[i].name, TEXT, "p%d-%d", owner, owner ? s->made : 0);
	snprintf(s->pods[i].uid, TEXT, "uid%d", s->made++);
	s->pods[i].ready = node >= 0;
	s->pods[i].due_ns = s->now_ns + (int64_t)draw(s, 6) * NS_PER_SEC;
}

static int pick_node(struct sim *s)
{
	for (int tries = 0; tries < 40; tries++) {
		int n = (int)draw(s, NODES);

		if (s->nodes[n].there && !s->nodes[n].cordoned && !s->nodes[n].tainted)
			return n;
	}
	return -1;
}

static void begin(struct sim *s, uint64_t seed, bool faults)
{
	*s = (struct sim){.seed = seed, .faults = faults, .now_ns = BEGIN_NS};
	s->dice.random = (seed + 1) * 0x9E3779B97F4A7C15ULL;
	s->options = (struct act_options){.drain = true,
					  .after = (enum act_after)(seed % 3),
					  .pod_wait_ns = 60 * NS_PER_SEC,
					  .in_flight_max = 3,
					  .hour_max = ACT_RATE_MOST,
					  .holder = "holder"};
	for (int i = 0; i < NODES; i++) {
		struct sim_node *n = &s->nodes[i];

		snprintf(n->name, TEXT, "n%d", i);
		snprintf(n->uid, TEXT, "nuid%d", i);
		n->there = true;
	}
	s->nodes[NODES - 1].cordoned = s->nodes[NODES - 1].foreign_cordon = true;
	for (int o = 0; o < OWNERS; o++) {
		s->replicas[o] = o ? 1 + (int)draw(s, 5) : 1;
		s->min[o] = s->replicas[o] - 1;
		for (int k = 0; k < s->replicas[o]; k++)
			make_pod(s, o, (int)draw(s, NODES - 1));
	}
}

/* Pods end, are made anew, bound and ready. */
static void advance_pods(struct sim *s)
{
	for (int i = 0; i < PODS; i++) {
		struct sim_pod *p = &s->pods[i];

		if (!p->there || p->due_ns > s->now_ns)
			continue;
		if (p->ending)
			p->there = false;
		else if (p->node < 0)
			p->node = pick_node(s);
		else
			p->ready |= !s->stuck || p->owner != 1;
		p->due_ns = s->now_ns + (int64_t)draw(s, 4) * NS_PER_SEC;
	}
	for (int o = 0; o < OWNERS; o++)
		while (count_there(s, o) < s->replicas[o])
			make_pod(s, o, -1);
}

static void delete_pod(struct sim *s, struct sim_pod *p)
{
	p->ending = true;
	p->ready = false;
	p->due_ns = s->now_ns + (int64_t)draw(s, 8) * NS_PER_SEC;
}

/* --- others ----------------------------------------------------------------------------------- */

static void interfere(struct sim *s)
{
	struct sim_node *n = &s->nodes[draw(s, NODES - 1)];
	struct sim_pod *p = &s->pods[draw(s, PODS)];

	n->version++;
	switch (draw(s, 9)) {
	case 0:
		if (p->there && !p->ending)
			delete_pod(s, p);
		break;
	case 1: /* a node is deleted, and another one has its name */
		for (int i = 0; i < PODS; i++)
			if (s->pods[i].there && s->pods[i].node == n - s->nodes)
				s->pods[i].there = false;
		n->cordoned = n->tainted = false;
		n->mark = (struct mark){0};
		snprintf(n->uid, TEXT, "nuid%d", s->made++);
		break;
	case 2:
		s->min[draw(s, OWNERS)] = 9;
		break;
	case 3:
		n->hot = !n->hot;
		break;
	case 4:
		if (n->mark.phase)
			n->mark = (struct mark){.phase = MARK_GARBLED};
		break;
	case 5:
		n->mark = (struct mark){0};
		break;
	case 6:
		n->tainted = false;
		break;
	case 7:
		if (n->tainted)
			n->cordoned = false;
		break;
	default:
		s->paused = !s->paused;
		break;
	}
}

/* What others did is over. */
static void calm_down(struct sim *s)
{
	s->calm = true;
	s->paused = false;
	for (int i = 0; i < NODES; i++)
		s->nodes[i].hot = false;
	for (int o = 0; o < OWNERS; o++)
		s->min[o] = s->replicas[o] - 1;
}

/* --- what an actuator reads ------------------------------------------------------------------- */

struct reading {
	struct act_node nodes[NODES];
	struct act_pod pods[NODES][PODS];
	struct act_owner owners[OWNERS];
	int versions[NODES];
	struct act_cluster cluster;
	struct verify_plan plan;
	struct verify_plan_node plan_nodes[NODES];
	struct verify_move moves[PODS];
	struct act_plan given;
	struct act_use uses[NODES];
	char owner_uids[OWNERS][TEXT];
};

static const char *namespace_of(int owner)
{
	return owner == OWNERS - 1 ? "kube-system" : "default";
}

static void read_pods(const struct sim *s, struct reading *r, int node, struct act_node *to)
{
	to->pods = r->pods[node];
	for (int i = 0; i < PODS; i++) {
		const struct sim_pod *p = &s->pods[i];

		if (p->there && p->node == node)
			r->pods[node][to->pod_count++] =
				(struct act_pod){p->uid, namespace_of(p->owner), p->name,
						 r->owner_uids[p->owner], p->ending};
	}
}

static void read_cluster(const struct sim *s, struct reading *r)
{
	memset(r, 0, sizeof(*r));
	for (int o = 0; o < OWNERS; o++) {
		snprintf(r->owner_uids[o], TEXT, "owner%d", o);
		r->owners[o] = (struct act_owner){r->owner_uids[o], (size_t)count_ready(s, o)};
	}
	for (int i = 0; i < NODES; i++) {
		const struct sim_node *n = &s->nodes[i];
		struct act_node *to = &r->nodes[r->cluster.node_count];

		r->versions[i] = n->version;
		if (!n->there)
			continue;
		r->cluster.node_count++;
		*to = (struct act_node){.name = n->name,
					.uid = n->uid,
					.mark = n->mark,
					.selected = true,
					.cordoned = n->cordoned,
					.tainted = n->tainted};
		read_pods(s, r, i, to);
	}
	r->cluster.nodes = r->nodes;
	r->cluster.owners = r->owners;
	r->cluster.owner_count = OWNERS;
}

/* A node whose pods the budgets allow to leave one after the other. */
static bool may_go(const struct sim *s, int node)
{
	for (int i = 0; i < PODS; i++) {
		const struct sim_pod *p = &s->pods[i];

		if (p->there && !p->ending && p->node == node &&
		    count_ready(s, p->owner) <= s->min[p->owner])
			return false;
	}
	return true;
}

static void plan_node(const struct sim *s, struct reading *r, int node)
{
	struct verify_plan *p = &r->plan;
	struct verify_plan_node *n = &r->plan_nodes[p->node_count];

	*n = (struct verify_plan_node){.name = s->nodes[node].name, .uid = s->nodes[node].uid};
	for (int i = 0; i < PODS; i++)
		if (s->pods[i].there && !s->pods[i].ending && s->pods[i].node == node) {
			r->moves[p->move_count++] =
				(struct verify_move){.node = p->node_count,
						     .namespace = namespace_of(s->pods[i].owner),
						     .name = s->pods[i].name,
						     .uid = s->pods[i].uid,
						     .from = s->nodes[node].name,
						     .to = "n0"};
			n->move_count++;
		}
	p->node_count++;
}

static void read_plan(struct sim *s, struct reading *r)
{
	bool proves = act_wants_proof(&s->state);

	r->plan.nodes = r->plan_nodes;
	r->plan.moves = r->moves;
	r->given.refusal = "";
	snprintf(r->given.id, sizeof(r->given.id), "plan");
	if (strikes(s, 20) || (!proves && !act_wants_offer(&s->state)))
		return;
	for (int i = 0; i < NODES; i++) {
		const struct sim_node *n = &s->nodes[i];

		if (n->there && may_go(s, i) &&
		    (proves ? act_is_unproven(&s->state, n->name)
			    : r->plan.node_count < 3 && i && !strikes(s, 30)))
			plan_node(s, r, i);
	}
	if (proves && r->plan.node_count)
		r->given.proof = &r->plan;
	if (!proves)
		r->given.offer = &r->plan;
	r->given.any_order = chance(s, 50);
}

/* --- what it does ----------------------------------------------------------------------------- */

static struct sim_node *node_of(struct sim *s, const char *name)
{
	for (int i = 0; i < NODES; i++)
		if (strcmp(s->nodes[i].name, name) == 0)
			return &s->nodes[i];
	return NULL;
}

static enum act_result evict(struct sim *s, const struct eviction *m)
{
	struct sim_pod *p = NULL;

	for (int i = 0; i < PODS; i++)
		if (s->pods[i].there && strcmp(s->pods[i].name, m->name) == 0 &&
		    strcmp(s->pods[i].uid, m->uid) == 0)
			p = &s->pods[i];
	if (!p)
		return ACT_GONE;
	assert_string_not_equal(m->namespace, "kube-system");
	assert_false(s->paused_now);
	if (p->evicted)
		fail_msg("seed %llu: %s is evicted twice", (unsigned long long)s->seed, p->uid);
	if (!s->faults && count_there(s, p->owner) != count_ready(s, p->owner))
		fail_msg("seed %llu: two pods of owner %d are away", (unsigned long long)s->seed,
			 p->owner);
	if (p->ready && count_ready(s, p->owner) <= s->min[p->owner]) {
		s->refused++;
		return ACT_NOT_YET;
	}
	p->evicted = true;
	s->evictions++;
	if (!p->ending) /* or another has deleted it since the reading */
		delete_pod(s, p);
	return ACT_DONE;
}

static enum act_result patch(struct sim *s, const struct reading *r, const struct act_action *a)
{
	struct sim_node *n = node_of(s, a->node);

	if (strcmp(n->uid, a->uid) != 0 || n->version != r->versions[n - s->nodes])
		return ACT_GONE;
	if (n->foreign_cordon)
		fail_msg("seed %llu: the node of another is written", (unsigned long long)s->seed);
	n->mark = a->mark;
	n->tainted = a->tainted;
	if (a->cordon != ACT_CORDON_STAYS)
		n->cordoned = a->cordon == ACT_CORDON;
	n->version++;
	return ACT_DONE;
}

static enum act_result carry_out(struct sim *s, const struct reading *r, const struct act_action *a)
{
	enum act_result result;

	if (strikes(s, 5))
		return ACT_UNKNOWN; /* it did not arrive */
	if (strikes(s, 3))
		return a->kind == ACT_EVICT ? ACT_NOT_YET : ACT_GONE;
	if (a->kind == ACT_EVICT) {
		result = evict(s, a->pod);
	} else if (a->kind == ACT_PATCH_NODE) {
		result = patch(s, r, a);
	} else {
		node_of(s, a->node)->there = false;
		result = ACT_DONE;
	}
	return strikes(s, 5) ? ACT_UNKNOWN : result; /* the answer is lost */
}

static void restart(struct sim *s)
{
	act_state_fini(&s->state);
	s->kills++;
}

static void step(struct sim *s)
{
	static struct reading r;
	struct act_output out = {0};
	size_t uses = 0;

	s->paused_now = s->paused;
	read_cluster(s, &r);
	read_plan(s, &r);
	for (int i = 0; i < NODES; i++)
		r.uses[uses++] = (struct act_use){.node = s->nodes[i].name,
						  .cpu_milli = s->nodes[i].unmeasured ? NAN
							       : s->nodes[i].hot      ? 2000
										      : 100,
						  .cpu_cap_milli = 1000,
						  .mem_bytes = NAN,
						  .mem_cap_bytes = NAN,
						  .end_ns = s->now_ns};
	if (strikes(s, 3))
		interfere(s); /* after the reading */
	act_step(&s->state, &s->options,
		 &(struct act_input){.cluster = &r.cluster,
				     .plan = &r.given,
				     .uses = r.uses,
				     .use_count = uses,
				     .paused = s->paused_now,
				     .now_ns = s->now_ns,
				     .wall_ns = s->now_ns},
		 &out);
	for (size_t i = 0; i < out.action_count; i++) {
		const struct act_action *a = &out.actions[i];
		enum act_result result;

		if (strikes(s, 5)) {
			restart(s);
			break;
		}
		result = carry_out(s, &r, a);
		act_result(&s->state, a, result, "", s->now_ns);
	}
	act_output_fini(&out);
}

static void check_end(const struct sim *s)
{
	for (int i = 0; i < NODES; i++) {
		const struct sim_node *n = &s->nodes[i];
		int pods = 0;

		for (int k = 0; k < PODS; k++)
			pods += s->pods[k].there && s->pods[k].node == i;
		/* Without a taint and an annotation the cordon is of the hand that changed them. */
		if (!n->there || (!n->tainted && !n->cordoned) ||
		    (!n->tainted && !n->foreign_cordon &&
		     (n->mark.phase == MARK_NONE || n->mark.phase == MARK_GARBLED)))
			continue;
		if (n->foreign_cordon ? n->tainted || n->mark.phase != MARK_NONE
				      : n->mark.phase != MARK_DRAINED || pods)
			fail_msg("seed %llu: %s is %s, tainted %d, cordoned %d, with %d pods",
				 (unsigned long long)s->seed, n->name,
				 mark_phase_name(n->mark.phase), n->tainted, n->cordoned, pods);
	}
}

static void run(uint64_t seed, bool faults, struct sim *s)
{
	begin(s, seed, faults);
	for (int i = 0; i < STEPS; i++) {
		if (i == STEPS - CALM) {
			calm_down(s);
			s->options.drain = false; /* no new wave: what is left must end */
		}
		s->now_ns += STEP_NS;
		if (strikes(s, 1))
			s->now_ns += 300 * NS_PER_SEC; /* the API is away */
		if (strikes(s, 2))
			interfere(s);
		advance_pods(s);
		step(s);
	}
	check_end(s);
	act_state_fini(&s->state);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_without_faults(void **state)
{
	static struct sim s;
	size_t evictions = 0, drained = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		run(seed, false, &s);
		assert_int_equal(s.refused, 0);
		evictions += s.evictions;
		for (int i = 0; i < NODES; i++)
			drained += !s.nodes[i].there || s.nodes[i].mark.phase == MARK_DRAINED;
	}
	print_message("    %zu pods evicted, %zu nodes drained in %d clusters\n", evictions,
		      drained, RUNS);
	assert_true(evictions > RUNS && drained > RUNS);
}

static void test_with_faults(void **state)
{
	static struct sim s;
	size_t evictions = 0, kills = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 5 * RUNS; seed++) {
		run(seed, true, &s);
		evictions += s.evictions;
		kills += s.kills;
	}
	print_message("    %zu pods evicted, %zu ends of an actuator in %d clusters\n", evictions,
		      kills, 5 * RUNS);
	assert_true(evictions > RUNS && kills > RUNS);
}

static void pass(struct sim *s, int steps)
{
	for (int i = 0; i < steps; i++) {
		s->now_ns += STEP_NS;
		advance_pods(s);
		step(s);
	}
}

/* n0 is every destination. */
static void test_unknown_use(void **state)
{
	static struct sim s;
	size_t evictions;

	(void)state;
	begin(&s, 1, false);
	while (!s.evictions)
		pass(&s, 1);
	s.nodes[0].unmeasured = true;
	s.options.drain = false;
	evictions = s.evictions;
	pass(&s, 63);
	assert_int_equal(s.evictions, evictions);
	assert_true(s.state.wave.drained < s.state.wave.ended_count);
	assert_non_null(strstr(s.state.wave.reason.text, "real use of destinations is unknown"));
	check_end(&s);
	act_state_fini(&s.state);
}

static void test_hot_destination(void **state)
{
	static struct sim s;
	size_t evictions;

	(void)state;
	begin(&s, 1, false);
	while (!s.evictions)
		pass(&s, 1);
	s.nodes[0].hot = true;
	s.options.drain = false;
	pass(&s, 5); /* the fifth rolls back: the first counts from the end of the one before */
	evictions = s.evictions;
	pass(&s, 3);
	assert_int_equal(s.evictions, evictions);
	assert_true(s.state.wave.destination_hot);
	assert_true(s.state.wave.drained < s.state.wave.ended_count);
	assert_non_null(strstr(s.state.wave.reason.text,
			       "destination n0: CPU 2000m above its cap of 1000m for 10 s"));
	check_end(&s);
	act_state_fini(&s.state);
}

/* Without a budget: only the actuator holds back the pods of the other nodes. */
static void test_replacement_never_ready(void **state)
{
	static struct sim s;
	size_t stopped = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		begin(&s, seed, false);
		s.stuck = true;
		s.min[1] = -1;
		while (count_ready(&s, 1) == s.replicas[1] && s.now_ns < BEGIN_NS + 900 * STEP_NS)
			pass(&s, 1);
		s.options.drain = false;
		pass(&s, 100); /* evict() fails the second of owner 1 */
		stopped += s.state.wave.ended_count > s.state.wave.drained + 1;
		check_end(&s);
		act_state_fini(&s.state);
	}
	assert_true(stopped > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_faults),		cmocka_unit_test(test_with_faults),
		cmocka_unit_test(test_hot_destination),		cmocka_unit_test(test_unknown_use),
		cmocka_unit_test(test_replacement_never_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
