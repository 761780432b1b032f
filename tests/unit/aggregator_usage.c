/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories told to the usage state: which intervals it takes, what it answers to the others, and what its pages
 * then show. Times are seconds after T0; runs are single letters.
 */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/usage.h"
#include "aggregator/state/usage_node.h"
#include "tests/usage_fixture.h"

#define SEC 1000000000LL
#define T0  (1700000010LL * SEC)
#define GIB (1LL << 30)

static struct usage_state *new_state(void)
{
	struct usage_limits limits = {.nodes_max = 3, .pods_per_node_max = 4};

	return usage_new(&limits);
}

static const uint8_t *run_of(char letter)
{
	static uint8_t run[FRAME_RUN_LEN];

	memset(run, letter, sizeof(run));
	return run;
}

/* An interval [start, end) of a machine with 4 CPUs and 8 GiB and with room for `entries`, all still to be named. */
static struct interval *new_interval(uint64_t sequence, int start, int end, size_t entries)
{
	struct interval *i = interval_new(entries);
	struct usage *u = &i->node.usage;

	i->sequence = sequence;
	i->start_ns = T0 + start * SEC;
	i->end_ns = T0 + end * SEC;
	i->node.cpu_capacity_milli = 4000;
	i->node.mem_capacity_bytes = 8 * GIB;
	u->have = USAGE_CPU | USAGE_MEMORY;
	u->seconds = (float)(end - start);
	u->cpu_milli = (struct moments32){50, (float)(end - start), 1000, 0, 1000, 1000, 1000};
	u->mem_bytes = (struct gauge){(float)GIB, (float)GIB, (float)GIB};
	for (size_t n = 0; n < entries; n++) {
		i->entries[n].ref = (uint32_t)n + 1;
		i->entries[n].limits = (struct kernel_limits){LIMIT_UNKNOWN, LIMIT_UNKNOWN};
		i->entries[n].usage = *u;
		i->entries[n].usage.cpu_milli.mean = 100 * (float)(n + 1);
	}
	return i;
}

static struct entity *name_entry(struct entry *e, enum entity_kind kind, const char *name)
{
	e->fresh = true;
	e->entity = entity_new(e->ref, kind, name);
	return e->entity;
}

/* Tells it and frees it; the service's clock stands at `now` seconds. */
static struct usage_answer tell(struct usage_state *u, const char *node, char run,
				struct interval *i, int now)
{
	struct usage_answer answer;

	usage_apply(u, node, run_of(run), i, T0 + now * SEC, &answer);
	interval_free(i);
	return answer;
}

static void tell_ok(struct usage_state *u, char run, struct interval *i)
{
	int now = (int)((i->end_ns - T0) / SEC);
	struct usage_answer answer = tell(u, "n", run, i, now);

	if (answer.verdict != USAGE_APPLIED)
		fail_msg("verdict %d at %d s: %s", answer.verdict, now, answer.reason);
}

static void order_and_runs(void **state)
{
	static const struct {
		const char *why;
		char run;
		uint64_t sequence;
		int start, end, now;
		enum usage_verdict want;
		uint64_t applied, resend_from;
	} steps[] = {
		{"a late first word is asked for the rest", 'a', 7, 30, 35, 35, USAGE_NEED_FULL, 0,
		 1},
		{"the oldest it has", 'a', 5, 20, 25, 35, USAGE_APPLIED, 5, 0},
		{"next", 'a', 6, 25, 30, 36, USAGE_APPLIED, 6, 0},
		{"again", 'a', 6, 25, 30, 36, USAGE_DUPLICATE, 6, 0},
		{"older", 'a', 1, 0, 5, 36, USAGE_DUPLICATE, 6, 0},
		{"a gap is no matter", 'a', 9, 40, 45, 45, USAGE_APPLIED, 9, 0},
		{"a new run from its start", 'b', 1, 41, 46, 47, USAGE_APPLIED, 1, 0},
		{"the dead run's last word", 'a', 10, 40, 45, 47, USAGE_REFUSED, 0, 0},
		{"a run that overlaps by 5 s", 'c', 1, 41, 51, 52, USAGE_APPLIED, 1, 0},
		{"a run that overlaps by more", 'd', 1, 45, 55, 55, USAGE_REFUSED, 0, 0},
		{"a second agent of that name", 'd', 3, 50, 55, 81, USAGE_REFUSED, 0, 0},
		{"not once the first is silent", 'd', 3, 50, 55, 82, USAGE_NEED_FULL, 0, 1},
		{"is asked once", 'd', 3, 50, 55, 82, USAGE_APPLIED, 3, 0},
		{"5 minutes ahead", 'd', 4, 350, 356, 56, USAGE_APPLIED, 4, 0},
		{"more", 'd', 5, 352, 357, 56, USAGE_REFUSED, 4, 0},
		{"15 minutes and a bucket ago", 'd', 5, 360, 365, 1295, USAGE_APPLIED, 5, 0},
		{"older", 'd', 6, 366, 370, 1301, USAGE_TOO_OLD, 5, 0},
		{"but its next counts", 'd', 7, 367, 372, 1301, USAGE_APPLIED, 7, 0},
		{"too old comes before unknown run", 'e', 9, 366, 370, 1301, USAGE_TOO_OLD, 0, 0},
	};
	struct usage_state *u = new_state();

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct interval *interval =
			new_interval(steps[i].sequence, steps[i].start, steps[i].end, 0);
		struct usage_answer a = tell(u, "n", steps[i].run, interval, steps[i].now);

		if (a.verdict != steps[i].want || a.applied != steps[i].applied ||
		    a.resend_from != steps[i].resend_from ||
		    (a.verdict == USAGE_REFUSED) != (a.reason[0] != '\0'))
			fail_msg("%s: verdict %d, applied %u, resend from %u, \"%s\"", steps[i].why,
				 a.verdict, (unsigned int)a.applied, (unsigned int)a.resend_from,
				 a.reason);
	}
	usage_free(u);
	usage_free(NULL);
}

static const struct page_pod *find_pod(const struct node_page *p, const char *name)
{
	for (size_t i = 0; i < p->pod_count; i++)
		if (strcmp(p->pods[i].name, name) == 0)
			return &p->pods[i];
	return NULL;
}

/* The one page there is. The caller drops the view. */
static const struct node_page *only_page(struct usage_state *u, struct view **v)
{
	*v = usage_view(u, T0);
	assert_int_equal((*v)->page_count, 1);
	return (*v)->pages[0];
}

static void unknown_references_ask_for_identities(void **state)
{
	struct usage_state *u = new_state();
	struct interval *i = new_interval(1, 0, 5, 2);
	struct usage_answer a;
	struct view *before, *after;

	(void)state;
	name_entry(&i->entries[0], ENTITY_UNIT, "a");
	name_entry(&i->entries[1], ENTITY_UNIT, "b");
	tell_ok(u, 'r', i);
	only_page(u, &before);

	i = new_interval(2, 5, 10, 4); /* 1 and 2 are known, 3 names itself, 4 does not */
	name_entry(&i->entries[2], ENTITY_UNIT, "c");
	a = tell(u, "n", 'r', i, 10);
	assert_int_equal(a.verdict, USAGE_NEED_FULL);
	assert_int_equal(a.resend_from, 2);
	assert_int_equal(a.applied, 1);
	assert_false(usage_dirty(u));
	assert_ptr_equal(only_page(u, &after), before->pages[0]);
	view_drop(after);

	i = new_interval(2, 5, 10, 3); /* nor was 3 remembered */
	assert_int_equal(tell(u, "n", 'r', i, 10).verdict, USAGE_NEED_FULL);

	i = new_interval(2, 5, 10, 3);
	i->full = true; /* asking again would go on for ever */
	a = tell(u, "n", 'r', i, 10);
	assert_int_equal(a.verdict, USAGE_REFUSED);
	assert_string_equal(a.reason, "entry 3 of a full interval has no identity");

	i = new_interval(1, 5, 10, 1); /* another run's references are its own */
	a = tell(u, "n", 's', i, 10);
	assert_int_equal(a.verdict, USAGE_NEED_FULL);
	assert_int_equal(a.applied, 0);
	view_drop(before);
	usage_free(u);
}

static void impossible_values_are_refused(void **state)
{
	static const struct {
		float node_cpu, node_mem, cpu, mem, weight;
		int64_t cpu_capacity, mem_capacity;
		const char *reason; /* NULL: applied */
	} cases[] = {
		{4000, 1e9f, 4000, 1e9f, 5, 4000, 8 * GIB, NULL},
		{4199, (float)(8 * GIB), 4199, (float)(8 * GIB), 5, 4000, 8 * GIB, NULL},
		{4201, 0, 0, 0, 5, 4000, 8 * GIB,
		 "the node used 4201 millicores for 5.0 s, the node has 4000"},
		{0, 9e9f, 0, 0, 5, 4000, 8 * GIB,
		 "the node used 8999999488 bytes of memory, the node has 8589934592"},
		{0, 0, 4201, 0, 5, 4000, 8 * GIB,
		 "entry 1 used 4201 millicores for 5.0 s, the node has 4000"},
		{0, 0, 0, 9e9f, 5, 4000, 8 * GIB,
		 "entry 1 used 8999999488 bytes of memory, the node has 8589934592"},
		{0, 0, 4800, 0, 0.1f, 4000, 8 * GIB, NULL}, /* one tick read late */
		{0, 0, 50000, 0, 0.1f, 4000, 8 * GIB,
		 "entry 1 used 50000 millicores for 0.1 s, the node has 4000"},
		{0, 0, 0, 0, 5, 0, 8 * GIB,
		 "the node has 0 millicores and 8589934592 bytes of memory"},
		{0, 0, 0, 0, 5, 4000, -1, "the node has 4000 millicores and -1 bytes of memory"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct usage_state *u = new_state();
		struct interval *i = new_interval(1, 0, 5, 1);
		struct usage_answer a;
		struct view *v;

		i->node.usage.cpu_milli.mean = cases[n].node_cpu;
		i->node.usage.cpu_milli.max = FLT_MAX; /* maxima are not judged */
		i->node.usage.mem_bytes.mean = cases[n].node_mem;
		i->node.cpu_capacity_milli = cases[n].cpu_capacity;
		i->node.mem_capacity_bytes = cases[n].mem_capacity;
		i->entries[0].usage.cpu_milli.mean = cases[n].cpu;
		i->entries[0].usage.cpu_milli.weight = cases[n].weight;
		i->entries[0].usage.mem_bytes.mean = cases[n].mem;
		name_entry(&i->entries[0], ENTITY_UNIT, "a");
		a = tell(u, "n", 'r', i, 5);
		assert_int_equal(a.verdict, cases[n].reason ? USAGE_REFUSED : USAGE_APPLIED);
		assert_string_equal(a.reason, cases[n].reason ? cases[n].reason : "");
		v = usage_view(u, T0);
		assert_int_equal(v->page_count, cases[n].reason ? 0 : 1);
		view_drop(v);
		usage_free(u);
	}
}

static void intervals_must_have_a_length(void **state)
{
	struct usage_state *u = new_state();
	struct interval *i = new_interval(1, 5, 5, 0);

	(void)state;
	assert_int_equal(tell(u, "n", 'r', i, 5).verdict, USAGE_REFUSED);
	i = new_interval(1, 5, 10, 0);
	i->start_ns = INT64_MIN;
	assert_int_equal(tell(u, "n", 'r', i, 5).verdict, USAGE_REFUSED);
	usage_free(u);
}

static void limits_are_kept(void **state)
{
	static const char *const names[] = {"n3", "n1", "n2"};
	struct usage_state *u = new_state();
	struct interval *i = new_interval(1, 0, 5, 7);
	struct usage_answer a;
	struct view *v;

	(void)state;
	for (size_t n = 0; n < 5; n++)
		name_entry(&i->entries[n], ENTITY_SLICE, "slice");
	name_entry(&i->entries[5], ENTITY_CONTAINER, "slice/in")->parent = 1;
	name_entry(&i->entries[6], ENTITY_CONTAINER, "slice/in2")->parent = 1;
	i->entry_count = 7;
	a = tell(u, "n1", 'r', i, 5);
	assert_int_equal(a.verdict, USAGE_REFUSED);
	assert_string_equal(a.reason, "5 pods, units and slices; the limit is 4");

	for (size_t n = 0; n < 3; n++)
		assert_int_equal(tell(u, names[n], 'r', new_interval(1, 0, 5, 0), 5).verdict,
				 USAGE_APPLIED);
	a = tell(u, "n4", 'r', new_interval(1, 0, 5, 0), 5);
	assert_int_equal(a.verdict, USAGE_REFUSED);
	assert_string_equal(a.reason, "3 nodes are known; the limit is 3");
	a = tell(u, "n4", 'r', new_interval(2, 0, 5, 0), 5); /* nor is it asked */
	assert_int_equal(a.verdict, USAGE_REFUSED);
	assert_int_equal(a.resend_from, 0);

	v = usage_view(u, T0);
	assert_int_equal(v->page_count, 3);
	assert_non_null(view_find(v, "n1"));
	assert_non_null(view_find(v, "n2"));
	assert_non_null(view_find(v, "n3"));
	view_drop(v);
	usage_free(u);
}

static void page_shows_what_was_measured(void **state)
{
	struct usage_state *u = new_state();
	struct interval *i = new_interval(1, 0, 5, 6);
	const struct node_page *p;
	const struct page_pod *pod;
	struct entity *e;
	struct view *v;

	(void)state;
	e = name_entry(&i->entries[0], ENTITY_POD, "kubepods/podx");
	snprintf(e->pod_uid, sizeof(e->pod_uid), "uid-x");
	e->qos = QOS_GUARANTEED;
	i->entries[0].limits = (struct kernel_limits){2000, LIMIT_NONE};
	name_entry(&i->entries[1], ENTITY_CONTAINER, "kubepods/podx/zz")->parent = 1;
	e = name_entry(&i->entries[2], ENTITY_CONTAINER, "kubepods/podx/aa");
	e->parent = 1;
	e->runtime = RUNTIME_DOCKER;
	snprintf(e->container_id, sizeof(e->container_id), "cafe");
	i->entries[2].usage.have |= USAGE_THROTTLE;
	i->entries[2].usage.throttled_ns = 1500000000;
	i->entries[2].usage.have &= ~(uint32_t)USAGE_MEMORY;
	name_entry(&i->entries[3], ENTITY_CONTAINER, "orphan")->parent = 77;
	name_entry(&i->entries[4], ENTITY_CONTAINER, "docker/free");
	name_entry(&i->entries[5], ENTITY_SLICE, "a.slice");
	i->node.agent_cpu_ns = 50000000;
	i->node.tier = TIER_T2;
	tell_ok(u, 'r', i);

	p = only_page(u, &v);
	assert_string_equal(p->name, "n");
	assert_memory_equal(p->run, run_of('r'), FRAME_RUN_LEN);
	assert_int_equal(p->end_ns, T0 + 5 * SEC);
	assert_int_equal(p->tier, TIER_T2);
	assert_true(p->agent_cpu_milli == 10);
	assert_int_equal(p->cpu_capacity_milli, 4000);
	assert_int_equal(p->cpu_allocatable_milli, 4000);
	assert_int_equal(p->mem_allocatable_bytes, 8 * GIB);
	assert_true(p->usage.cpu_milli.known && p->usage.cpu_milli.value == 1000);
	assert_true(p->usage.mem_bytes.value == (double)GIB);
	assert_false(p->usage.working_set_bytes.known);
	assert_true(p->usage.windows[WINDOW_5M].cpu_milli.mean == 1000);

	assert_int_equal(p->pod_count, 3);
	assert_string_equal(p->pods[0].name, "a.slice");
	assert_int_equal(p->pods[0].kind, ENTITY_SLICE);
	assert_string_equal(p->pods[1].name, "docker/free");
	assert_int_equal(p->pods[1].kind, ENTITY_CONTAINER);
	assert_int_equal(p->pods[1].container_count, 0);
	pod = find_pod(p, "kubepods/podx");
	assert_string_equal(pod->uid, "uid-x");
	assert_int_equal(pod->qos, QOS_GUARANTEED);
	assert_int_equal(pod->limits.cpu_milli, 2000);
	assert_int_equal(pod->limits.mem_bytes, LIMIT_NONE);
	assert_true(pod->usage.windows[WINDOW_15M].cpu_milli.mean == 100);
	assert_int_equal(pod->container_count, 2);
	assert_string_equal(pod->containers[0].name, "kubepods/podx/aa");
	assert_string_equal(pod->containers[0].id, "cafe");
	assert_int_equal(pod->containers[0].runtime, RUNTIME_DOCKER);
	assert_true(pod->containers[0].cpu_milli.value == 300);
	assert_false(pod->containers[0].mem_bytes.known);
	assert_true(pod->containers[0].throttle_known);
	assert_true(pod->containers[0].throttled_seconds == 1.5);
	assert_false(pod->containers[1].throttle_known);
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
	struct usage_state *u = new_state();
	struct interval *i = new_interval(1, 0, 5, 7);
	const struct node_page *p;
	struct view *v;

	(void)state;
	name_entry(&i->entries[0], ENTITY_POD, "x");
	name_entry(&i->entries[1], ENTITY_POD, "y");
	for (size_t n = 0; n < 5; n++)
		name_entry(&i->entries[n + 2], ENTITY_CONTAINER, containers[n].name)->parent =
			containers[n].parent;
	tell_ok(u, 'r', i);
	p = only_page(u, &v);
	assert_int_equal(p->pod_count, 2);
	assert_int_equal(p->pods[0].container_count, 2);
	assert_string_equal(p->pods[0].containers[0].name, "b0");
	assert_string_equal(p->pods[0].containers[1].name, "c2");
	assert_int_equal(p->pods[1].container_count, 2);
	assert_string_equal(p->pods[1].containers[0].name, "c1");
	assert_string_equal(p->pods[1].containers[1].name, "c3");
	view_drop(v);

	i = new_interval(2, 5, 10, 3); /* pod x left, its container c2 did not */
	i->entries[0].ref = 2;
	i->entries[1].ref = 3;
	i->entries[2].ref = 4;
	tell_ok(u, 'r', i);
	p = only_page(u, &v);
	assert_int_equal(p->pod_count, 1);
	assert_int_equal(p->pods[0].container_count, 1);
	assert_string_equal(p->pods[0].containers[0].name, "c1");
	view_drop(v);
	usage_free(u);
}

/* Identity and limits stay as last sent, and follow when sent anew. */
static void identities_are_remembered(void **state)
{
	struct usage_state *u = new_state();
	struct interval *i = new_interval(1, 0, 5, 1);
	struct view *v;

	(void)state;
	name_entry(&i->entries[0], ENTITY_UNIT, "a");
	i->entries[0].limits = (struct kernel_limits){500, GIB};
	tell_ok(u, 'r', i);
	tell_ok(u, 'r', new_interval(2, 5, 10, 1));
	assert_int_equal(only_page(u, &v)->pods[0].limits.cpu_milli, 500);
	view_drop(v);
	i = new_interval(3, 10, 15, 1);
	name_entry(&i->entries[0], ENTITY_UNIT, "a");
	i->entries[0].entity->qos = QOS_BEST_EFFORT;
	i->entries[0].limits = (struct kernel_limits){700, LIMIT_UNKNOWN};
	tell_ok(u, 'r', i);
	assert_int_equal(only_page(u, &v)->pods[0].limits.cpu_milli, 700);
	assert_int_equal(v->pages[0]->pods[0].limits.mem_bytes, LIMIT_UNKNOWN);
	assert_int_equal(v->pages[0]->pods[0].qos, QOS_BEST_EFFORT);
	assert_int_equal(v->pages[0]->pods[0].usage.windows[0].cpu_milli.samples, 150);
	view_drop(v);
	usage_free(u);
}

/* One interval in which only reference `ref` is, named if `name`. */
static struct interval *lone(uint64_t sequence, int start, uint32_t ref, const char *uid,
			     const char *name)
{
	struct interval *i = new_interval(sequence, start, start + 5, 1);
	struct entity *e;

	i->entries[0].ref = ref;
	if (!name)
		return i;
	e = name_entry(&i->entries[0], uid ? ENTITY_POD : ENTITY_UNIT, name);
	if (uid)
		snprintf(e->pod_uid, sizeof(e->pod_uid), "%s", uid);
	return i;
}

static uint64_t samples_of(struct usage_state *u, const char *pod)
{
	struct view *v;
	const struct page_pod *p = find_pod(only_page(u, &v), pod);
	uint64_t samples = p ? p->usage.windows[WINDOW_15M].cpu_milli.samples : 0;

	view_drop(v);
	return samples;
}

static void history_outlives_the_agent(void **state)
{
	struct usage_state *u = new_state();

	(void)state;
	tell_ok(u, 'a', lone(1, 0, 1, "uid", "old/path"));
	tell_ok(u, 'b', lone(1, 10, 9, "uid", "new/path")); /* same pod: same UID */
	assert_int_equal(samples_of(u, "new/path"), 100);
	assert_int_equal(samples_of(u, "old/path"), 0);
	assert_int_equal(tell(u, "n", 'b', lone(2, 15, 1, NULL, NULL), 20).verdict,
			 USAGE_NEED_FULL); /* reference 1 was the other run's */
	tell_ok(u, 'c', lone(1, 20, 3, NULL, "unit"));
	tell_ok(u, 'd', lone(1, 30, 4, NULL, "unit")); /* same unit: same name */
	assert_int_equal(samples_of(u, "unit"), 100);
	tell_ok(u, 'e', lone(1, 40, 4, "uid", "new/path")); /* back after an absence */
	assert_int_equal(samples_of(u, "new/path"), 150);
	usage_free(u);
}

static void what_left_is_not_shown_but_kept_a_while(void **state)
{
	struct usage_state *u = new_state();
	struct view *v;

	(void)state;
	tell_ok(u, 'r', lone(1, 0, 1, NULL, "a"));
	tell_ok(u, 'r', lone(2, 5, 2, NULL, "b"));
	assert_int_equal(only_page(u, &v)->pod_count, 1);
	assert_string_equal(v->pages[0]->pods[0].name, "b");
	view_drop(v);
	tell_ok(u, 'r', lone(3, 10, 1, NULL, NULL)); /* its reference is still known */
	assert_int_equal(samples_of(u, "a"), 100);
	tell_ok(u, 'r', lone(4, 930, 3, NULL, "c")); /* a: seen 920 s ago, b: 925 s */
	tell_ok(u, 'r', lone(5, 938, 3, NULL, NULL)); /* b: 933 s */
	assert_int_equal(tell(u, "n", 'r', lone(6, 943, 2, NULL, NULL), 948).verdict,
			 USAGE_NEED_FULL);
	tell_ok(u, 'r', lone(6, 940, 1, NULL, NULL));
	usage_free(u);
}

/* Counted on the inside: nothing stays of what has not been seen for 15 minutes and a bucket. */
static void memory_follows_churn(void **state)
{
	struct usage_node *n = usage_node_new("n");
	size_t most = 0;

	(void)state;
	for (uint32_t s = 1; s <= 600; s++) {
		char name[16];
		struct interval *i;

		snprintf(name, sizeof(name), "job-%u", s);
		i = lone(s, (int)s * 5, s, NULL, name);
		usage_node_apply(n, run_of('r'), i, s, 2048);
		interval_free(i);
		if (n->ref_count > most)
			most = n->ref_count;
		assert_int_equal(HASH_COUNT(n->pods), n->ref_count);
	}
	assert_int_equal(most, 186); /* 930 s of 5 s each */
	for (uint32_t s = 601; s <= 700; s++) {
		char name[16];
		struct interval *i;

		snprintf(name, sizeof(name), "job-%u", s);
		i = lone(s, (int)s * 5, s, NULL, name);
		usage_node_apply(n, run_of('r'), i, s, 4); /* twice as many may stay */
		interval_free(i);
		assert_in_range(HASH_COUNT(n->pods), 1, 8);
	}
	usage_node_free(n);
	usage_node_free(NULL);
}

/* A clock that went back: references and pods must go in the right order. */
static void memory_follows_a_clock_that_went_back(void **state)
{
	struct usage_node *n = usage_node_new("n");
	static const struct {
		int start;
		uint32_t ref;
		const char *name;
	} steps[] = {{290, 1, "a"}, {0, 2, "a"}, {5, 3, "b"}, {940, 4, "c"}, {1240, 5, "d"}};
	static const unsigned int kept[] = {1, 1, 2, 2, 2};

	(void)state;
	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		struct interval *i = lone(s + 1, steps[s].start, steps[s].ref, NULL, steps[s].name);

		usage_node_apply(n, run_of('r'), i, s, 2048);
		interval_free(i);
		assert_int_equal(HASH_COUNT(n->pods), kept[s]);
		for (size_t r = 0; r < n->ref_count; r++)
			assert_true(n->refs[r].pod->seen_ns >= n->refs[r].seen_ns);
	}
	usage_node_free(n);
}

/* A unit that was restarted within an interval: one pod, both lives' use. */
static void two_lives_are_one_pod(void **state)
{
	struct usage_state *u = new_state();
	struct interval *i = new_interval(1, 0, 5, 3);
	const struct node_page *p;
	struct view *v;

	(void)state;
	name_entry(&i->entries[0], ENTITY_UNIT, "a");
	name_entry(&i->entries[1], ENTITY_CONTAINER, "a/x")->parent = 1;
	name_entry(&i->entries[2], ENTITY_UNIT, "a");
	i->entries[0].usage.cpu_milli.weight = 1;
	i->entries[2].usage.cpu_milli.weight = 3;
	i->entries[2].limits.cpu_milli = 250;
	tell_ok(u, 'r', i);
	p = only_page(u, &v);
	assert_int_equal(p->pod_count, 1);
	assert_true(p->pods[0].usage.cpu_milli.value == 250); /* (100 * 1 + 300 * 3) / 4 */
	assert_true(p->pods[0].usage.windows[0].cpu_milli.mean == 250);
	assert_int_equal(p->pods[0].usage.windows[0].cpu_milli.samples, 100);
	assert_int_equal(p->pods[0].limits.cpu_milli, 250);
	assert_int_equal(p->pods[0].container_count, 1);
	view_drop(v);
	usage_free(u);
}

static void views_share_what_did_not_change(void **state)
{
	struct usage_state *u = new_state();
	struct view *first, *second, *third;

	(void)state;
	assert_false(usage_dirty(u));
	tell(u, "b", 'r', new_interval(1, 0, 5, 0), 5);
	tell(u, "a", 'r', new_interval(1, 0, 5, 0), 5);
	tell(u, "c", 'r', new_interval(5, 0, 5, 0), 5); /* asked only: not in any view */
	assert_true(usage_dirty(u));
	first = usage_view(u, T0 + 6 * SEC);
	assert_false(usage_dirty(u));
	assert_int_equal(first->page_count, 2);
	assert_string_equal(first->pages[0]->name, "a");
	assert_int_equal(first->time_ns, T0 + 6 * SEC);
	tell(u, "b", 'r', new_interval(2, 5, 10, 0), 10);
	second = usage_view(u, T0 + 10 * SEC);
	assert_int_equal(second->version, first->version + 1);
	assert_ptr_equal(second->pages[0], first->pages[0]);
	assert_ptr_not_equal(second->pages[1], first->pages[1]);
	assert_true(second->pages[1]->generation > first->pages[1]->generation);
	assert_int_equal(first->pages[1]->end_ns, T0 + 5 * SEC); /* as it was */
	view_drop(first);
	usage_free(u);
	assert_string_equal(second->pages[0]->name, "a");
	third = view_hold(second);
	view_drop(second);
	view_drop(third);
}

static void silent_nodes_are_forgotten_after_a_day(void **state)
{
	const int day = 24 * 3600;
	struct usage_state *u = new_state();
	struct view *v;

	(void)state;
	tell(u, "a", 'r', new_interval(1, 0, 5, 0), 5);
	tell(u, "b", 'r', new_interval(1, 5, 10, 0), 10);
	tell(u, "c", 'r', new_interval(9, 5, 10, 0), 10); /* only asked */
	v = usage_view(u, T0 + (day + 5) * SEC);
	assert_int_equal(v->page_count, 2);
	view_drop(v);
	v = usage_view(u, T0 + (day + 6) * SEC);
	assert_int_equal(v->page_count, 1);
	assert_string_equal(v->pages[0]->name, "b");
	view_drop(v);
	assert_int_equal(tell(u, "d", 'r', new_interval(1, day, day + 6, 0), day + 6).verdict,
			 USAGE_APPLIED); /* there is room again */
	usage_free(u);
}

/* A real node's worth, through an agent's and a service's restart: the windows are those of the whole story. */
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
			usage_apply(u[k], "n", run_of(run), i, f.end_ns, &answer);
			assert_int_equal(answer.verdict, USAGE_APPLIED);
			interval_free(i);
		}
	}
	for (int k = 0; k < 2; k++) {
		v[k] = usage_view(u[k], T0);
		assert_int_equal(v[k]->pages[0]->pod_count, 30);
	}
	for (size_t p = 0; p < 30; p++) {
		const struct page_pod *a = &v[0]->pages[0]->pods[p], *b = &v[1]->pages[0]->pods[p];

		assert_string_equal(a->name, b->name);
		assert_int_equal(a->container_count, 3);
		assert_int_equal(b->container_count, 3);
		assert_int_equal(a->usage.windows[WINDOW_15M].cpu_milli.samples, 5000);
		assert_true(a->usage.windows[WINDOW_15M].cpu_milli.mean ==
			    b->usage.windows[WINDOW_15M].cpu_milli.mean);
		assert_true(a->usage.windows[WINDOW_15M].cpu_milli.stddev ==
			    b->usage.windows[WINDOW_15M].cpu_milli.stddev);
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
		cmocka_unit_test(impossible_values_are_refused),
		cmocka_unit_test(intervals_must_have_a_length),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(page_shows_what_was_measured),
		cmocka_unit_test(containers_go_to_their_pods),
		cmocka_unit_test(identities_are_remembered),
		cmocka_unit_test(history_outlives_the_agent),
		cmocka_unit_test(what_left_is_not_shown_but_kept_a_while),
		cmocka_unit_test(memory_follows_churn),
		cmocka_unit_test(memory_follows_a_clock_that_went_back),
		cmocka_unit_test(two_lives_are_one_pod),
		cmocka_unit_test(views_share_what_did_not_change),
		cmocka_unit_test(silent_nodes_are_forgotten_after_a_day),
		cmocka_unit_test(restarts_leave_windows_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
