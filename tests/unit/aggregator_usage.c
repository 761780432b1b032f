/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories told to the usage state: which intervals it takes, what it answers to the others, and
 * what its stats then show. Times are seconds after T0; runs are single letters.
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

#include "aggregator/state/usage_node.h"
#include "tests/usage_fixture.h"
#include "tests/usage_story.h"
#include "tests/usage_view.h"
#include "tests/view_fixture.h"

static void order_and_runs(void **state)
{
	static const struct {
		const char *why;
		char run;
		uint64_t sequence;
		int start, end, now;
		enum usage_verdict want;
		uint64_t applied, resend_from, missing;
	} steps[] = {
		{"a late first word is asked for the rest", 'a', 7, 30, 35, 35, USAGE_NEED_FULL, 0,
		 1, 0},
		{"the oldest it has", 'a', 5, 20, 25, 35, USAGE_APPLIED, 5, 0, 0},
		{"next", 'a', 6, 25, 30, 36, USAGE_APPLIED, 6, 0, 0},
		{"again", 'a', 6, 25, 30, 36, USAGE_DUPLICATE, 6, 0, 0},
		{"older", 'a', 1, 0, 5, 36, USAGE_DUPLICATE, 6, 0, 0},
		{"a gap is counted, and no matter", 'a', 9, 40, 45, 45, USAGE_APPLIED, 9, 0, 2},
		{"a new run from its start", 'b', 1, 41, 46, 47, USAGE_APPLIED, 1, 0, 0},
		{"the dead run's last word", 'a', 10, 40, 45, 47, USAGE_REFUSED, 0, 0, 0},
		{"a run that overlaps by 5 s", 'c', 1, 41, 51, 52, USAGE_APPLIED, 1, 0, 0},
		{"a run that overlaps by more", 'd', 1, 45, 55, 55, USAGE_REFUSED, 0, 0, 0},
		{"one that does not, from its middle", 'd', 3, 50, 55, 82, USAGE_NEED_FULL, 0, 1,
		 0},
		{"is asked once", 'd', 3, 50, 55, 82, USAGE_APPLIED, 3, 0, 0},
		{"5 minutes ahead", 'd', 4, 350, 356, 56, USAGE_APPLIED, 4, 0, 0},
		{"more", 'd', 5, 352, 357, 56, USAGE_REFUSED, 4, 0, 0},
		{"15 minutes and a bucket ago", 'd', 5, 360, 365, 1295, USAGE_APPLIED, 5, 0, 0},
		{"older", 'd', 6, 366, 370, 1301, USAGE_TOO_OLD, 5, 0, 0},
		{"but its next counts, and that it was", 'd', 7, 367, 372, 1301, USAGE_APPLIED, 7,
		 0, 1},
		{"too old comes before unknown run", 'e', 9, 366, 370, 1301, USAGE_TOO_OLD, 0, 0,
		 0},
	};
	struct usage_state *u = story_state();

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct interval *interval =
			story_interval(steps[i].sequence, steps[i].start, steps[i].end, 0);
		struct usage_answer a = story_tell(u, "n", steps[i].run, interval, steps[i].now);

		if (a.verdict != steps[i].want || a.applied != steps[i].applied ||
		    a.resend_from != steps[i].resend_from || a.missing != steps[i].missing ||
		    (a.verdict == USAGE_REFUSED) != (a.reason[0] != '\0'))
			fail_msg("%s: verdict %d, applied %u, resend from %u, missing %u, \"%s\"",
				 steps[i].why, a.verdict, (unsigned int)a.applied,
				 (unsigned int)a.resend_from, (unsigned int)a.missing, a.reason);
	}
	usage_free(u);
	usage_free(NULL);
}

static void unknown_references_ask_for_identities(void **state)
{
	struct usage_state *u = story_state();
	struct interval *i = story_interval(1, 0, 5, 2);
	struct usage_answer a;
	struct view *before, *after;

	(void)state;
	story_name(&i->entries[0], ENTITY_UNIT, "a");
	story_name(&i->entries[1], ENTITY_UNIT, "b");
	story_tell_ok(u, 'r', i);
	story_stats(u, &before);

	i = story_interval(2, 5, 10, 4); /* 1 and 2 are known, 3 names itself, 4 does not */
	story_name(&i->entries[2], ENTITY_UNIT, "c");
	a = story_tell(u, "n", 'r', i, 10);
	assert_int_equal(a.verdict, USAGE_NEED_FULL);
	assert_int_equal(a.resend_from, 2);
	assert_int_equal(a.applied, 1);
	assert_false(usage_dirty(u));
	assert_ptr_equal(story_stats(u, &after), before->nodes[0]->stats);
	view_drop(after);

	i = story_interval(2, 5, 10, 3); /* nor was 3 remembered */
	assert_int_equal(story_tell(u, "n", 'r', i, 10).verdict, USAGE_NEED_FULL);

	i = story_interval(2, 5, 10, 3);
	i->full = true; /* asking again would go on for ever */
	a = story_tell(u, "n", 'r', i, 10);
	assert_int_equal(a.verdict, USAGE_REFUSED);
	assert_string_equal(a.reason, "entry 3 of a full interval has no identity");

	i = story_interval(1, 5, 10, 1); /* another run's references are its own */
	a = story_tell(u, "n", 's', i, 10);
	assert_int_equal(a.verdict, USAGE_NEED_FULL);
	assert_int_equal(a.applied, 0);
	view_drop(before);
	usage_free(u);
}

/* What an aggregator hears again after its own start was counted by the one before it. */
static void totals_begin_when_the_node_is_heard(void **state)
{
	static const struct {
		uint64_t sequence;
		int end, now;
		uint64_t missed;
	} steps[] = {{1, 5, 60, 0}, {2, 60, 60, 0}, {3, 65, 66, 2}, {4, 70, 70, 4}, {4, 70, 70, 4}};
	struct usage_state *u = story_state();

	(void)state;
	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		struct interval *i =
			story_interval(steps[s].sequence, steps[s].end - 5, steps[s].end, 0);
		const struct node_stats *p;
		struct view *v;

		i->node.missed_ticks = 2;
		i->node.cpu_split = (struct cpu_split){4, 3, 2, 1};
		i->node.usage.have |= USAGE_STALL_MEMORY;
		i->node.usage.stall_mem_ns = 10;
		i->node.usage.stall_cpu_ns = 10; /* not measured */
		story_tell(u, "n", 'r', i, steps[s].now);
		p = story_stats(u, &v);
		assert_int_equal(p->missed_ticks, 2);
		assert_int_equal(p->totals.missed_ticks, steps[s].missed);
		assert_int_equal(p->totals.cpu.user_ns, 2 * steps[s].missed);
		assert_int_equal(p->totals.cpu.system_ns, 3 * steps[s].missed / 2);
		assert_int_equal(p->totals.cpu.iowait_ns, steps[s].missed);
		assert_int_equal(p->totals.cpu.steal_ns, steps[s].missed / 2);
		assert_int_equal(p->totals.pressure_ns[STALL_MEMORY], 5 * steps[s].missed);
		assert_int_equal(p->totals.pressure_ns[STALL_CPU], 0);
		assert_int_equal(p->totals.pressure_have, steps[s].missed ? USAGE_STALL_MEMORY : 0);
		assert_false(p->machine.known); /* no MemAvailable */
		view_drop(v);
	}
	usage_free(u);
}

static void intervals_must_have_a_length(void **state)
{
	struct usage_state *u = story_state();
	struct interval *i = story_interval(1, 5, 5, 0);

	(void)state;
	assert_int_equal(story_tell(u, "n", 'r', i, 5).verdict, USAGE_REFUSED);
	i = story_interval(1, 5, 10, 0);
	i->start_ns = INT64_MIN;
	assert_int_equal(story_tell(u, "n", 'r', i, 5).verdict, USAGE_REFUSED);
	usage_free(u);
}

static void limits_are_kept(void **state)
{
	static const char *const names[] = {"n3", "n1", "n2"};
	struct usage_state *u = story_state();
	struct interval *i = story_interval(1, 0, 5, 7);
	struct usage_answer a;
	struct view *v;

	(void)state;
	for (size_t n = 0; n < 5; n++)
		story_name(&i->entries[n], ENTITY_SLICE, "slice");
	story_name(&i->entries[5], ENTITY_CONTAINER, "slice/in")->parent = 1;
	story_name(&i->entries[6], ENTITY_CONTAINER, "slice/in2")->parent = 1;
	i->entry_count = 7;
	a = story_tell(u, "n1", 'r', i, 5);
	assert_int_equal(a.verdict, USAGE_REFUSED);
	assert_string_equal(a.reason, "5 pods, units and slices; the limit is 4");

	for (size_t n = 0; n < 3; n++)
		assert_int_equal(
			story_tell(u, names[n], 'r', story_interval(1, 0, 5, 0), 5).verdict,
			USAGE_APPLIED);
	a = story_tell(u, "n4", 'r', story_interval(1, 0, 5, 0), 5);
	assert_int_equal(a.verdict, USAGE_REFUSED);
	assert_string_equal(a.reason, "3 nodes are known; the limit is 3");
	a = story_tell(u, "n4", 'r', story_interval(2, 0, 5, 0), 5); /* nor is it asked */
	assert_int_equal(a.verdict, USAGE_REFUSED);
	assert_int_equal(a.resend_from, 0);

	v = usage_view(u, T0);
	assert_int_equal(v->node_count, 3);
	assert_non_null(view_fixture_stats(v, "n1"));
	assert_non_null(view_fixture_stats(v, "n2"));
	assert_non_null(view_fixture_stats(v, "n3"));
	view_drop(v);
	usage_free(u);
}

static void measure_all(struct interval *i)
{
	struct entity *e = story_name(&i->entries[0], ENTITY_POD, "kubepods/podx");

	snprintf(e->pod_uid, sizeof(e->pod_uid), "uid-x");
	e->qos = QOS_GUARANTEED;
	i->entries[0].limits = (struct kernel_limits){2000, LIMIT_NONE, GIB, 0, 100, 5000000, 0};
	i->entries[0].usage.have |= USAGE_SWAP | USAGE_PIDS | USAGE_STALL_CPU;
	i->entries[0].usage.swap_bytes = 5ULL << 32;
	i->entries[0].usage.pids = 17;
	i->entries[0].usage.stall_cpu_ns = 1250000000;
	story_name(&i->entries[1], ENTITY_CONTAINER, "kubepods/podx/zz")->parent = 1;
	e = story_name(&i->entries[2], ENTITY_CONTAINER, "kubepods/podx/aa");
	e->parent = 1;
	e->runtime = RUNTIME_DOCKER;
	snprintf(e->container_id, sizeof(e->container_id), "cafe");
	i->entries[2].usage.have |=
		USAGE_THROTTLE | USAGE_PIDS | USAGE_CONTENTION_MEMORY | USAGE_STALL_MEMORY;
	i->entries[2].usage.throttled_ns = 1500000000;
	i->entries[2].usage.pids = 3;
	i->entries[2].usage.contention_mem_ns = 2500000000;
	i->entries[2].usage.stall_mem_ns = 5500000000; /* of 5 s: read a moment late */
	i->entries[2].usage.stall_cpu_ns = 1; /* not measured */
	i->entries[2].usage.have &= ~(uint32_t)USAGE_MEMORY;
	story_name(&i->entries[3], ENTITY_CONTAINER, "orphan")->parent = 77;
	story_name(&i->entries[4], ENTITY_CONTAINER, "docker/free");
	story_name(&i->entries[5], ENTITY_SLICE, "a.slice");
	i->node.agent_cpu_ns = 50000000;
	i->node.tier = TIER_T2;
	i->node.mem_available_bytes = 7 * GIB;
	i->node.cpu_split = (struct cpu_split){4000000000, 1000000000, 500000000, 250000000};
}

static void expect_measured_node(const struct node_stats *p)
{
	assert_string_equal(p->name, "n");
	assert_memory_equal(p->run, story_run('r'), FRAME_RUN_LEN);
	assert_int_equal(p->end_ns, T0 + 5 * SEC);
	assert_int_equal(p->tier, TIER_T2);
	assert_true(p->agent_cpu_milli == 10);
	assert_int_equal(p->cpu_capacity_milli, 4000);
	assert_int_equal(p->cpu_allocatable_milli, 4000);
	assert_int_equal(p->mem_allocatable_bytes, 8 * GIB);
	assert_true(p->usage.latest.cpu_milli.known && p->usage.latest.cpu_milli.value == 1000);
	assert_true(p->usage.latest.mem_bytes.value == (double)GIB);
	assert_false(p->usage.latest.working_set_bytes.known);
	assert_false(p->usage.latest.swap_bytes.known || p->usage.latest.pids.known);
	assert_true(p->usage.windows[WINDOW_5M].cpu_milli.mean == 1000);
	assert_true(p->machine.known);
	assert_true(p->machine.user_milli == 800 && p->machine.system_milli == 200);
	assert_true(p->machine.iowait_milli == 100 && p->machine.steal_milli == 50);
	assert_int_equal(p->machine.mem_available_bytes, 7 * GIB);
}

static void expect_measured_pod(const struct pod_stats *pod)
{
	assert_string_equal(pod->uid, "uid-x");
	assert_int_equal(pod->qos, QOS_GUARANTEED);
	assert_int_equal(pod->limits->cpu_milli, 2000);
	assert_int_equal(pod->limits->mem_bytes, LIMIT_NONE);
	assert_int_equal(pod->limits->mem_high_bytes, GIB);
	assert_int_equal(pod->limits->swap_bytes, 0);
	assert_int_equal(pod->limits->pids, 100);
	assert_int_equal(pod->limits->cpu_burst_ns, 5000000);
	assert_true(pod->usage.latest.swap_bytes.value == (double)(5ULL << 32));
	assert_true(pod->usage.latest.pids.known && pod->usage.latest.pids.value == 17);
	assert_true(fabsf(pod->usage.counts.pressure[STALL_CPU] - 0.25F) < 1e-4F);
	assert_true(pod->usage.cpu_milli[WINDOW_15M].mean == 100);
	assert_int_equal(pod->container_count, 2);
	story_expect_container(pod, 0, "kubepods/podx/aa");
}

static void expect_measured_containers(const struct container_stats c[2])
{
	assert_string_equal(c[0].id, "cafe");
	assert_int_equal(c[0].runtime, RUNTIME_DOCKER);
	assert_true(c[0].latest.cpu_milli.value == 300);
	assert_false(c[0].latest.mem_bytes.known);
	assert_true(c[0].throttle_known);
	assert_true(c[0].throttled_seconds == 1.5);
	assert_true(c[0].latest.pids.value == 3);
	assert_false(c[0].latest.swap_bytes.known);
	assert_int_equal(c[0].pressure_have, USAGE_CONTENTION_MEMORY | USAGE_STALL_MEMORY);
	assert_true(c[0].pressure[CONTENTION_MEMORY] == 0.5F);
	assert_true(c[0].pressure[STALL_MEMORY] == 1);
	assert_false(c[1].throttle_known);
	assert_int_equal(c[1].pressure_have, 0);
}

static void stats_shows_what_was_measured(void **state)
{
	struct usage_state *u = story_state();
	struct interval *i = story_interval(1, 0, 5, 6);
	const struct node_stats *p;
	const struct pod_stats *pod;
	struct view *v;

	(void)state;
	measure_all(i);
	story_tell_ok(u, 'r', i);

	p = story_stats(u, &v);
	expect_measured_node(p);
	assert_int_equal(p->pod_count, 3);
	assert_string_equal(p->pods[0].name, "a.slice");
	assert_int_equal(p->pods[0].kind, ENTITY_SLICE);
	assert_string_equal(p->pods[1].name, "docker/free");
	assert_int_equal(p->pods[1].kind, ENTITY_CONTAINER);
	assert_int_equal(p->pods[1].container_count, 0);
	pod = story_pod(p, "kubepods/podx");
	expect_measured_pod(pod);
	expect_measured_containers(pod->containers);
	view_drop(v);
	usage_free(u);
}

/* By reference, whatever the names; what has no pod in the interval is not shown. */
static void containers_go_to_their_pods(void **state)
{
	static const struct {
		const char *name;
		uint32_t parent;
	} containers[] = {{"c1", 2}, {"c2", 1}, {"c3", 2}, {"of a container", 3}, {"b0", 1}};
	struct usage_state *u = story_state();
	struct interval *i = story_interval(1, 0, 5, 7);
	const struct node_stats *p;
	struct view *v;

	(void)state;
	story_name(&i->entries[0], ENTITY_POD, "x");
	story_name(&i->entries[1], ENTITY_POD, "y");
	for (size_t n = 0; n < 5; n++)
		story_name(&i->entries[n + 2], ENTITY_CONTAINER, containers[n].name)->parent =
			containers[n].parent;
	story_tell_ok(u, 'r', i);
	p = story_stats(u, &v);
	assert_int_equal(p->pod_count, 2);
	assert_int_equal(p->pods[0].container_count, 2);
	story_expect_container(&p->pods[0], 0, "b0");
	story_expect_container(&p->pods[0], 1, "c2");
	assert_int_equal(p->pods[1].container_count, 2);
	story_expect_container(&p->pods[1], 0, "c1");
	story_expect_container(&p->pods[1], 1, "c3");
	view_drop(v);

	i = story_interval(2, 5, 10, 3); /* pod x left, its container c2 did not */
	i->entries[0].ref = 2;
	i->entries[1].ref = 3;
	i->entries[2].ref = 4;
	story_tell_ok(u, 'r', i);
	p = story_stats(u, &v);
	assert_int_equal(p->pod_count, 1);
	assert_int_equal(p->pods[0].container_count, 1);
	story_expect_container(&p->pods[0], 0, "c1");
	view_drop(v);
	usage_free(u);
}

/* Identity and limits stay as last sent, and follow when sent anew. */
static void identities_are_remembered(void **state)
{
	struct usage_state *u = story_state();
	struct interval *i = story_interval(1, 0, 5, 1);
	struct view *v;

	(void)state;
	story_name(&i->entries[0], ENTITY_UNIT, "a");
	i->entries[0].limits = (struct kernel_limits){.cpu_milli = 500, .mem_bytes = GIB};
	story_tell_ok(u, 'r', i);
	story_tell_ok(u, 'r', story_interval(2, 5, 10, 1));
	assert_int_equal(story_stats(u, &v)->pods[0].limits->cpu_milli, 500);
	view_drop(v);
	i = story_interval(3, 10, 15, 1);
	story_name(&i->entries[0], ENTITY_UNIT, "a");
	i->entries[0].entity->qos = QOS_BEST_EFFORT;
	i->entries[0].limits = (struct kernel_limits){.cpu_milli = 700, .mem_bytes = LIMIT_UNKNOWN};
	story_tell_ok(u, 'r', i);
	assert_int_equal(story_stats(u, &v)->pods[0].limits->cpu_milli, 700);
	assert_int_equal(v->nodes[0]->stats->pods[0].limits->mem_bytes, LIMIT_UNKNOWN);
	assert_int_equal(v->nodes[0]->stats->pods[0].qos, QOS_BEST_EFFORT);
	assert_int_equal(v->nodes[0]->stats->pods[0].usage.cpu_milli[0].samples, 150);
	view_drop(v);
	usage_free(u);
}

/*
 * Neighbours with the same limits share them; new ones of an entity known as it is are news, too.
 */
static void limits_are_shared_and_followed(void **state)
{
	struct usage_state *u = story_state();
	const struct node_stats *p;
	struct view *v;

	(void)state;
	for (uint64_t s = 1; s <= 3; s++) {
		struct interval *i = story_interval(s, (int)s * 5 - 5, (int)s * 5, 4);

		for (size_t n = 0; n < 4; n++) {
			char name[2] = {(char)('a' + n), 0};

			story_name(&i->entries[n], ENTITY_UNIT, name);
			i->entries[n].limits = (struct kernel_limits){.pids = n == 1 && s > 1};
		}
		story_tell_ok(u, 'r', i);
		p = story_stats(u, &v);
		assert_int_equal(p->names->limit_count, s == 1 ? 1 : 2);
		assert_ptr_equal(p->pods[0].limits, p->pods[3].limits);
		for (size_t n = 0; n < 4; n++)
			assert_int_equal(p->pods[n].limits->pids, n == 1 && s > 1);
		view_drop(v);
	}
	usage_free(u);
}

/* One interval in which only reference `ref` is, named if `name`. */
static struct interval *lone(uint64_t sequence, int start, uint32_t ref, const char *uid,
			     const char *name)
{
	struct interval *i = story_interval(sequence, start, start + 5, 1);
	struct entity *e;

	i->entries[0].ref = ref;
	if (!name)
		return i;
	e = story_name(&i->entries[0], uid ? ENTITY_POD : ENTITY_UNIT, name);
	if (uid)
		snprintf(e->pod_uid, sizeof(e->pod_uid), "%s", uid);
	return i;
}

static uint64_t samples_of(struct usage_state *u, const char *pod)
{
	struct view *v;
	const struct pod_stats *p = story_pod(story_stats(u, &v), pod);
	uint64_t samples = p ? p->usage.cpu_milli[WINDOW_15M].samples : 0;

	view_drop(v);
	return samples;
}

static void history_outlives_the_agent(void **state)
{
	struct usage_state *u = story_state();

	(void)state;
	story_tell_ok(u, 'a', lone(1, 0, 1, "uid", "old/path"));
	story_tell_ok(u, 'b', lone(1, 10, 9, "uid", "new/path")); /* same pod: same UID */
	assert_int_equal(samples_of(u, "new/path"), 100);
	assert_int_equal(samples_of(u, "old/path"), 0);
	assert_int_equal(story_tell(u, "n", 'b', lone(2, 15, 1, NULL, NULL), 20).verdict,
			 USAGE_NEED_FULL); /* reference 1 was the other run's */
	story_tell_ok(u, 'c', lone(1, 20, 3, NULL, "unit"));
	story_tell_ok(u, 'd', lone(1, 30, 4, NULL, "unit")); /* same unit: same name */
	assert_int_equal(samples_of(u, "unit"), 100);
	story_tell_ok(u, 'e', lone(1, 40, 4, "uid", "new/path")); /* back after an absence */
	assert_int_equal(samples_of(u, "new/path"), 150);
	usage_free(u);
}

static void what_left_is_not_shown_but_kept_a_while(void **state)
{
	struct usage_state *u = story_state();
	struct view *v;

	(void)state;
	story_tell_ok(u, 'r', lone(1, 0, 1, NULL, "a"));
	story_tell_ok(u, 'r', lone(2, 5, 2, NULL, "b"));
	assert_int_equal(story_stats(u, &v)->pod_count, 1);
	assert_string_equal(v->nodes[0]->stats->pods[0].name, "b");
	view_drop(v);
	story_tell_ok(u, 'r', lone(3, 10, 1, NULL, NULL)); /* its reference is still known */
	assert_int_equal(samples_of(u, "a"), 100);
	story_tell_ok(u, 'r', lone(4, 930, 3, NULL, "c")); /* a: seen 920 s ago, b: 925 s */
	story_tell_ok(u, 'r', lone(5, 938, 3, NULL, NULL)); /* b: 933 s */
	assert_int_equal(story_tell(u, "n", 'r', lone(6, 943, 2, NULL, NULL), 948).verdict,
			 USAGE_NEED_FULL);
	story_tell_ok(u, 'r', lone(6, 940, 1, NULL, NULL));
	usage_free(u);
}

/* A pod of the API for two minutes, with its containers; a unit of the same age is still there. */
static void pods_that_left_are_kept_for_a_moment(void **state)
{
	static const struct {
		int start;
		size_t refs;
		unsigned int pods;
	} steps[] = {{110, 4, 3}, {115, 4, 3}, {120, 2, 2}};
	struct usage_node *n = usage_node_new("n", T0);
	struct interval *i = story_interval(1, 0, 5, 3);
	struct entity *pod = story_name(&i->entries[0], ENTITY_POD, "a");

	(void)state;
	snprintf(pod->pod_uid, sizeof(pod->pod_uid), "uid");
	story_name(&i->entries[1], ENTITY_CONTAINER, "a/x")->parent = 1;
	story_name(&i->entries[2], ENTITY_UNIT, "b");
	usage_node_apply(n, story_run('r'), i, 1, 2048);
	interval_free(i);
	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		i = lone(s + 2, steps[s].start, 9, NULL, "c");
		usage_node_apply(n, story_run('r'), i, s + 2, 2048);
		interval_free(i);
		assert_int_equal(n->ref_count, steps[s].refs);
		assert_int_equal(n->pod_count, steps[s].pods);
	}
	usage_node_free(n);
}

/* Intervals applied while stats are lent are in the next stats; the lent ones do not change. */
static void stats_are_built_in_steps(void **state)
{
	struct usage_state *u = story_state();
	struct node_stats *const *node_stats;
	size_t count;

	(void)state;
	story_tell_ok(u, 'r', lone(1, 0, 1, NULL, "a"));
	assert_true(usage_dirty(u));
	assert_int_equal(usage_stale(u), 1);
	usage_gather_stats(u, T0, &count);
	assert_int_equal(count, 0); /* it has none yet */
	assert_true(usage_dirty(u));
	assert_int_equal(usage_build_stats(u, 8), 1);
	assert_int_equal(usage_build_stats(u, 8), 0);
	node_stats = usage_gather_stats(u, T0, &count);
	assert_int_equal(count, 1);
	assert_false(usage_dirty(u));
	story_tell_ok(u, 'r', lone(2, 5, 1, NULL, NULL));
	story_tell_ok(u, 'r', lone(3, 10, 1, NULL, NULL));
	assert_int_equal(usage_stale(u), 1); /* once, however often it changed */
	assert_int_equal(node_stats[0]->pods[0].usage.cpu_milli[0].samples, 50);
	node_stats = usage_gather_stats(u, T0, &count);
	assert_int_equal(count, 1);
	assert_int_equal(node_stats[0]->pods[0].usage.cpu_milli[0].samples, 50);
	assert_true(usage_dirty(u));
	node_stats = usage_view_stats(u, T0, &count);
	assert_int_equal(node_stats[0]->pods[0].usage.cpu_milli[0].samples, 150);
	assert_false(usage_dirty(u));
	usage_free(u);
}

/* A node that is forgotten before its stats are built is built no more; the others still are. */
static void silent_nodes_are_not_built(void **state)
{
	const int day = 24 * 3600;
	struct usage_state *u = story_state();
	struct node_stats *const *node_stats;
	size_t count;

	(void)state;
	story_tell(u, "a", 'r', story_interval(1, 0, 5, 0), 5);
	story_tell(u, "b", 'r', story_interval(1, day, day + 5, 0), day + 5);
	assert_int_equal(usage_stale(u), 2);
	usage_gather_stats(u, T0 + (day + 6) * SEC, &count);
	assert_int_equal(usage_stale(u), 1);
	assert_int_equal(usage_build_stats(u, 8), 1);
	node_stats = usage_gather_stats(u, T0 + (day + 6) * SEC, &count);
	assert_int_equal(count, 1);
	assert_string_equal(node_stats[0]->name, "b");
	/* A node that comes back is a new one. */
	story_tell(u, "a", 'r', story_interval(1, day + 5, day + 10, 0), day + 10);
	usage_view_stats(u, T0 + (day + 10) * SEC, &count);
	assert_int_equal(count, 2);
	usage_free(u);
}

/* Counted on the inside: nothing stays of what has not been seen for 15 minutes and a bucket. */
static void memory_follows_churn(void **state)
{
	struct usage_node *n = usage_node_new("n", T0);
	size_t most = 0;

	(void)state;
	for (uint32_t s = 1; s <= 600; s++) {
		char name[16];
		struct interval *i;

		snprintf(name, sizeof(name), "job-%u", s);
		i = lone(s, (int)s * 5, s, NULL, name);
		usage_node_apply(n, story_run('r'), i, s, 2048);
		interval_free(i);
		if (n->ref_count > most)
			most = n->ref_count;
		assert_int_equal(n->pod_count, n->ref_count);
	}
	assert_int_equal(most, 186); /* 930 s of 5 s each */
	for (uint32_t s = 601; s <= 700; s++) {
		char name[16];
		struct interval *i;

		snprintf(name, sizeof(name), "job-%u", s);
		i = lone(s, (int)s * 5, s, NULL, name);
		usage_node_apply(n, story_run('r'), i, s, 4); /* twice as many may stay */
		interval_free(i);
		assert_in_range(n->pod_count, 1, 8);
	}
	usage_node_free(n);
	usage_node_free(NULL);
}

/* A clock that went back: references and pods must go in the right order. */
static void memory_follows_a_clock_that_went_back(void **state)
{
	struct usage_node *n = usage_node_new("n", T0);
	static const struct {
		int start;
		uint32_t ref;
		const char *name;
	} steps[] = {{290, 1, "a"}, {0, 2, "a"}, {5, 3, "b"}, {940, 4, "c"}, {1240, 5, "d"}};
	static const unsigned int kept[] = {1, 1, 2, 2, 2};

	(void)state;
	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		struct interval *i = lone(s + 1, steps[s].start, steps[s].ref, NULL, steps[s].name);

		usage_node_apply(n, story_run('r'), i, s, 2048);
		interval_free(i);
		assert_int_equal(n->pod_count, kept[s]);
		for (size_t r = 0; r < n->ref_count; r++)
			assert_true(n->refs[r].pod->seen_ns >= n->refs[r].seen_ns);
	}
	usage_node_free(n);
}

/* A unit that was restarted within an interval: one pod, both lives' use. */
static void two_lives_are_one_pod(void **state)
{
	struct usage_state *u = story_state();
	struct interval *i = story_interval(1, 0, 5, 3);
	const struct node_stats *p;
	struct view *v;

	(void)state;
	story_name(&i->entries[0], ENTITY_UNIT, "a");
	story_name(&i->entries[1], ENTITY_CONTAINER, "a/x")->parent = 1;
	story_name(&i->entries[2], ENTITY_UNIT, "a");
	i->entries[0].usage.cpu_milli.weight = 1;
	i->entries[2].usage.cpu_milli.weight = 3;
	i->entries[2].limits.cpu_milli = 250;
	story_tell_ok(u, 'r', i);
	p = story_stats(u, &v);
	assert_int_equal(p->pod_count, 1);
	assert_true(p->pods[0].usage.latest.cpu_milli.value == 250); /* (100 * 1 + 300 * 3) / 4 */
	assert_true(p->pods[0].usage.cpu_milli[0].mean == 250);
	assert_int_equal(p->pods[0].usage.cpu_milli[0].samples, 100);
	assert_int_equal(p->pods[0].limits->cpu_milli, 250);
	assert_int_equal(p->pods[0].container_count, 1);
	view_drop(v);
	usage_free(u);
}

static void views_share_what_did_not_change(void **state)
{
	struct usage_state *u = story_state();
	struct view *first, *second, *third;

	(void)state;
	assert_false(usage_dirty(u));
	story_tell(u, "b", 'r', story_interval(1, 0, 5, 0), 5);
	story_tell(u, "a", 'r', story_interval(1, 0, 5, 0), 5);
	story_tell(u, "c", 'r', story_interval(5, 0, 5, 0), 5); /* asked only: not in any view */
	assert_true(usage_dirty(u));
	first = usage_view(u, T0 + 6 * SEC);
	assert_false(usage_dirty(u));
	assert_int_equal(first->node_count, 2);
	assert_string_equal(first->nodes[0]->stats->name, "a");
	assert_int_equal(first->time_ns, T0 + 6 * SEC);
	story_tell(u, "b", 'r', story_interval(2, 5, 10, 0), 10);
	second = usage_view(u, T0 + 10 * SEC);
	assert_ptr_equal(second->nodes[0]->stats, first->nodes[0]->stats);
	assert_ptr_not_equal(second->nodes[1]->stats, first->nodes[1]->stats);
	assert_true(second->nodes[1]->stats->generation > first->nodes[1]->stats->generation);
	assert_int_equal(first->nodes[1]->stats->end_ns, T0 + 5 * SEC); /* as it was */
	view_drop(first);
	usage_free(u);
	assert_string_equal(second->nodes[0]->stats->name, "a");
	third = view_hold(second);
	view_drop(second);
	view_drop(third);
}

static void silent_nodes_are_forgotten_after_a_day(void **state)
{
	const int day = 24 * 3600;
	struct usage_state *u = story_state();
	struct view *v;

	(void)state;
	story_tell(u, "a", 'r', story_interval(1, 0, 5, 0), 5);
	story_tell(u, "b", 'r', story_interval(1, 5, 10, 0), 10);
	story_tell(u, "c", 'r', story_interval(9, 5, 10, 0), 10); /* only asked */
	v = usage_view(u, T0 + (day + 5) * SEC);
	assert_int_equal(v->node_count, 2);
	view_drop(v);
	v = usage_view(u, T0 + (day + 6) * SEC);
	assert_int_equal(v->node_count, 1);
	assert_string_equal(v->nodes[0]->stats->name, "b");
	view_drop(v);
	assert_int_equal(
		story_tell(u, "d", 'r', story_interval(1, day, day + 6, 0), day + 6).verdict,
		USAGE_APPLIED); /* there is room again */
	usage_free(u);
}

/*
 * A real node's worth, through an agent's and a service's restart: the windows are those of the
 * whole story.
 */
static void restarts_leave_windows_whole(void **state)
{
	struct usage_limits limits = {.nodes_max = 10, .pods_per_node_max = 100};
	struct usage_state *u[2] = {usage_new(&limits), usage_new(&limits)};
	struct view *v[2];

	(void)state;
	for (uint64_t s = 1; s <= 100; s++) {
		struct usage_fixture f = {
			.sequence = s,
			.end_ns = T0 + (int64_t)s * 5 * SEC,
			.seconds = 5,
			.pods = 30,
			.containers = 3,
			.seed = (uint32_t)s,
		};

		for (int k = 0; k < 2; k++) {
			char run = k && s > 50 ? 'b' : 'a';
			struct usage_answer answer;
			struct interval *i;

			f.sequence = k && s > 50 ? s - 50 : s;
			f.identities = f.sequence % 12 == 1;
			i = usage_fixture_new(&f);
			usage_apply(u[k], "n", story_run(run), NULL, i, f.end_ns, &answer);
			assert_int_equal(answer.verdict, USAGE_APPLIED);
			interval_free(i);
		}
	}
	for (int k = 0; k < 2; k++) {
		v[k] = usage_view(u[k], T0);
		assert_int_equal(v[k]->nodes[0]->stats->pod_count, 30);
	}
	for (size_t p = 0; p < 30; p++) {
		const struct pod_stats *a = &v[0]->nodes[0]->stats->pods[p],
				       *b = &v[1]->nodes[0]->stats->pods[p];

		assert_string_equal(a->name, b->name);
		assert_int_equal(a->container_count, 3);
		assert_int_equal(b->container_count, 3);
		assert_int_equal(a->usage.cpu_milli[WINDOW_15M].samples, 5000);
		assert_true(a->usage.cpu_milli[WINDOW_15M].mean ==
			    b->usage.cpu_milli[WINDOW_15M].mean);
		assert_true(a->usage.cpu_milli[WINDOW_15M].stddev ==
			    b->usage.cpu_milli[WINDOW_15M].stddev);
	}
	for (int k = 0; k < 2; k++) {
		view_drop(v[k]);
		usage_free(u[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_and_runs),
		cmocka_unit_test(unknown_references_ask_for_identities),
		cmocka_unit_test(totals_begin_when_the_node_is_heard),
		cmocka_unit_test(intervals_must_have_a_length),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(stats_shows_what_was_measured),
		cmocka_unit_test(containers_go_to_their_pods),
		cmocka_unit_test(identities_are_remembered),
		cmocka_unit_test(limits_are_shared_and_followed),
		cmocka_unit_test(history_outlives_the_agent),
		cmocka_unit_test(what_left_is_not_shown_but_kept_a_while),
		cmocka_unit_test(memory_follows_churn),
		cmocka_unit_test(memory_follows_a_clock_that_went_back),
		cmocka_unit_test(pods_that_left_are_kept_for_a_moment),
		cmocka_unit_test(stats_are_built_in_steps),
		cmocka_unit_test(silent_nodes_are_not_built),
		cmocka_unit_test(two_lives_are_one_pod),
		cmocka_unit_test(views_share_what_did_not_change),
		cmocka_unit_test(silent_nodes_are_forgotten_after_a_day),
		cmocka_unit_test(restarts_leave_windows_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
