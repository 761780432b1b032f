/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random stories of quotas: three to six namespaces share up to three resources of some nodes; pods
 * come in bursts and are deleted, budgets and windows of evictions bound what may go, and the
 * aggregator restarts and forgets what it told. The policy is the product's: the book, the search
 * for victims and the log of what was told. Scheduler, kubelet and the controller of budgets are
 * small models here: in a step of one second every pending pod is asked about once, on the view of
 * the step's beginning, so that budgets' status and deletions are behind, as they are in a burst.
 *
 * After every decision, in plain numbers:
 *   - no quota uses more than its max, pods in deletion counted
 *   - who pays for a pod within its min is left with its min of every resource that the pod lacked
 *     and the victims had
 *   - no budget has less healthy pods than it wants, by what was evicted
 *   - no more than evenkeel.io/max-evictions are evicted, as long as nobody forgets
 * At the end nothing happens any more: no pod is pending that could start, alone or with victims.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/victim_log.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/preempt_fixture.h"

enum {
	STORIES = 200,
	STEPS = 40, /* with events */
	SETTLE = 45, /* without */
	NODES = 4,
	SPACES = 6,
	RESOURCES = 3,
	PODS = 120,
	BURST = 8,
	WINDOW = 20,
};

static const char *const resource[RESOURCES] = {"cpu", "memory", "nvidia.com/gpu"};
static const char *const space[SPACES] = {"a", "b", "c", "d", "e", "f"};

enum phase { PENDING, BOUND, GOING, GONE };

struct toy {
	enum phase phase;
	int space, priority, node, nominated, start, gone_at; /* node -1: none */
	int asks[RESOURCES];
	char name[16];
};

struct story {
	int now, space_count, resource_count, node_count, pod_count;
	int room[NODES][RESOURCES];
	int min[SPACES][RESOURCES], max[SPACES][RESOURCES], weight[SPACES];
	int wanted[SPACES]; /* healthy pods of its budget; -1: none */
	int evictions_max[SPACES]; /* in WINDOW seconds; 0: no bound */
	int evicted_at[PODS], evicted_space[PODS], evicted_count;
	struct toy pods[PODS];
	struct victim_log *log;
};

static struct story s;
static uint64_t state, at_seed;
static unsigned int started, evicted, restarts;

static int draw(int below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int)((state >> 33) % (uint64_t)below);
}

/* --- plain numbers */

static bool holds(const struct toy *p)
{
	return p->phase == BOUND || p->phase == GOING;
}

static int used(int in, int r, bool going)
{
	int sum = 0;

	for (int i = 0; i < s.pod_count; i++)
		if (s.pods[i].space == in && (going ? holds(&s.pods[i]) : s.pods[i].phase == BOUND))
			sum += s.pods[i].asks[r];
	return sum;
}

static int sum_used(int r)
{
	int sum = 0;

	for (int i = 0; i < s.space_count; i++)
		sum += used(i, r, false);
	return sum;
}

static int sum_min(int r)
{
	int sum = 0;

	for (int i = 0; i < s.space_count; i++)
		sum += s.min[i][r];
	return sum;
}

static int healthy(int in)
{
	int count = 0;

	for (int i = 0; i < s.pod_count; i++)
		count += s.pods[i].space == in && s.pods[i].phase == BOUND;
	return count;
}

static int free_on(int node, int r)
{
	int left = s.room[node][r];

	for (int i = 0; i < s.pod_count; i++)
		if (s.pods[i].node == node && s.pods[i].phase == BOUND)
			left -= s.pods[i].asks[r];
	return left;
}

static void check_max(void)
{
	for (int i = 0; i < s.space_count; i++)
		for (int r = 0; r < s.resource_count; r++)
			assert_true(used(i, r, true) <= s.max[i][r]);
}

/* --- the world */

static void draw_story(uint64_t seed)
{
	s = (struct story){.log = victim_log_new()};
	state = seed;
	s.space_count = 3 + draw(4);
	s.resource_count = 1 + draw(RESOURCES);
	s.node_count = 2 + draw(NODES - 1);
	for (int n = 0; n < s.node_count; n++)
		for (int r = 0; r < s.resource_count; r++)
			s.room[n][r] = 8 + draw(5);
	for (int i = 0; i < s.space_count; i++) {
		for (int r = 0; r < s.resource_count; r++) {
			s.min[i][r] = draw(8 * s.node_count / s.space_count + 1);
			s.max[i][r] = s.min[i][r] + draw(8 * s.node_count);
		}
		s.weight[i] = 1 + draw(3);
		s.wanted[i] = draw(3) ? -1 : draw(3);
		s.evictions_max[i] = draw(4) ? 0 : 1 + draw(3);
	}
}

static void burst(void)
{
	int in = draw(s.space_count), priority = draw(3) * 10, asks[RESOURCES] = {0};

	for (int r = 0; r < s.resource_count; r++)
		asks[r] = draw(3) + (r == 0);
	for (int i = 1 + draw(BURST); i > 0 && s.pod_count < PODS; i--) {
		struct toy *p = &s.pods[s.pod_count];

		*p = (struct toy){.space = in, .priority = priority, .node = -1, .nominated = -1};
		memcpy(p->asks, asks, sizeof(asks));
		snprintf(p->name, sizeof(p->name), "p%d", s.pod_count++);
	}
}

static void delete_some(void)
{
	for (int i = 0; i < s.pod_count; i++) {
		struct toy *p = &s.pods[i];

		if (draw(8) || p->phase == GONE || p->phase == GOING)
			continue;
		p->phase = p->phase == BOUND ? GOING : GONE;
		p->gone_at = s.now + 1 + draw(4);
	}
}

static void pass_second(bool events)
{
	s.now++;
	for (int i = 0; i < s.pod_count; i++)
		if (s.pods[i].phase == GOING && s.pods[i].gone_at <= s.now)
			s.pods[i].phase = GONE;
	if (events && !draw(3))
		burst();
	if (events && !draw(5))
		delete_some();
	if (events && !draw(15)) {
		victim_log_free(s.log);
		s.log = victim_log_new();
		s.evicted_count = 0;
		restarts++;
	}
}

/* --- telling it to the product */

static char *amounts_of(const int *of, const char *form, const char *cpu)
{
	struct buf b = BUF_INIT;

	buf_add_char(&b, '{');
	for (int r = 0; r < RESOURCES && r < s.resource_count; r++) {
		buf_printf(&b, "%s'%s':", r ? "," : "", resource[r]);
		buf_printf(&b, "%s%d%s", form, of[r], r ? form : cpu);
	}
	buf_add_char(&b, '}');
	return buf_take(&b, NULL);
}

static cJSON *flat_of(const struct toy *p)
{
	char *request = amounts_of(p->asks, "", "000"), *node, *text;
	cJSON *flat;

	node = p->node >= 0	   ? mem_printf(",'node':'n%d'", p->node)
	       : p->nominated >= 0 ? mem_printf(",'nominated_node':'n%d'", p->nominated)
				   : mem_strdup("");
	text = mem_printf("{'pod':'%s','namespace':'%s','uid':'%s','priority':%d,'start':%d,"
			  "'request':%s%s%s}",
			  p->name, space[p->space], p->name, p->priority, p->start, request, node,
			  p->phase == GOING ? ",'terminating':true" : "");
	flat = preempt_fixture_parse(text);
	free(request);
	free(node);
	free(text);
	return flat;
}

static void put_node(struct preempt_fixture *f, int n)
{
	char *amounts = amounts_of(s.room[n], "'", "'"), *text;

	amounts[strlen(amounts) - 1] = '\0';
	text = mem_printf("{'metadata':{'name':'n%d'},'status':{'allocatable':%s,'pods':'99'}}}", n,
			  amounts);
	place_fixture_put(&f->cluster, OBJECT_NODE, text);
	free(amounts);
	free(text);
}

static void put_quota(struct preempt_fixture *f, int in)
{
	char *min = amounts_of(s.min[in], "", "000"), *max = amounts_of(s.max[in], "", "000");
	struct quota *q = preempt_fixture_quota(f, space[in], min, max);

	q->weight = s.weight[in];
	q->evictions_max = (uint32_t)s.evictions_max[in];
	q->evictions_ns = s.evictions_max[in] ? WINDOW * NS_PER_SEC : 0;
	free(min);
	free(max);
}

/* The status is that of the step's beginning. */
static void put_budget(struct preempt_fixture *f, int in)
{
	int left = healthy(in) - s.wanted[in];
	char *text;

	if (s.wanted[in] < 0)
		return;
	text = mem_printf("{'metadata':{'name':'all','namespace':'%s'},'spec':{'selector':{}},"
			  "'status':{'disruptionsAllowed':%d,'currentHealthy':%d,"
			  "'desiredHealthy':%d}}",
			  space[in], left > 0 ? left : 0, healthy(in), s.wanted[in]);
	place_fixture_put(&f->cluster, OBJECT_POD_DISRUPTION_BUDGET, text);
	free(text);
}

static void build(struct preempt_fixture *f)
{
	preempt_fixture_init(f, QUOTA_CORRECTED);
	for (int n = 0; n < s.node_count; n++)
		put_node(f, n);
	for (int i = 0; i < s.space_count; i++) {
		put_quota(f, i);
		put_budget(f, i);
	}
	for (int i = 0; i < s.pod_count; i++) {
		cJSON *flat, *pod;

		if (s.pods[i].phase == GONE)
			continue;
		flat = flat_of(&s.pods[i]);
		pod = preempt_fixture_pod(flat);
		preempt_fixture_put(f, OBJECT_POD, pod);
		cJSON_Delete(flat);
		cJSON_Delete(pod);
	}
	preempt_fixture_build(f, true);
}

/* --- one decision */

static int64_t now_ns(void)
{
	return PREEMPT_FIXTURE_EPOCH_NS + s.now * NS_PER_SEC;
}

static struct toy *toy_of(const char *name)
{
	return &s.pods[strtol(name + 1, NULL, 10)];
}

/*
 * Of what the pod lacked where it goes, other quotas keep their min; and they pay only if its own is
 * within its min.
 */
static void check_min(const struct toy *p, const struct preempt_candidate *c, const bool *lacked)
{
	for (size_t v = 0; v < c->victim_count; v++) {
		int in = toy_of(c->victims[v].pod->object.name)->space;

		for (int r = 0; in != p->space && r < s.resource_count; r++) {
			if (p->asks[r] && sum_min(r))
				assert_true(used(p->space, r, false) + p->asks[r] <=
					    s.min[p->space][r]);
			if (lacked[r] && toy_of(c->victims[v].pod->object.name)->asks[r])
				assert_true(used(in, r, false) >= s.min[in][r]);
		}
	}
}

/* Of pods in deletion all is free: the product may know of more that is lacked. */
static void find_lacked(const struct toy *p, int node, bool *lacked)
{
	for (int r = 0; r < s.resource_count; r++)
		lacked[r] =
			p->asks[r] && sum_min(r) &&
			(free_on(node, r) < p->asks[r] || sum_used(r) + p->asks[r] > sum_min(r));
}

static void check_windows(void)
{
	for (int i = 0; i < s.space_count; i++) {
		int count = 0;

		for (int k = 0; k < s.evicted_count; k++)
			count += s.evicted_space[k] == i && s.now - s.evicted_at[k] < WINDOW;
		assert_true(!s.evictions_max[i] || count <= s.evictions_max[i]);
	}
}

static void evict(struct toy *p, const struct preempt_candidate *c, uint64_t version)
{
	struct victim victims[PODS];
	bool lacked[RESOURCES];
	int node = c->node[1] - '0';

	find_lacked(p, node, lacked);
	for (size_t v = 0; v < c->victim_count; v++) {
		const struct object *o = &c->victims[v].pod->object;
		struct toy *victim = toy_of(o->name);

		victims[v] = (struct victim){o->uid, o->namespace, c->node};
		assert_int_equal(victim->phase, BOUND);
		victim->phase = GOING;
		victim->gone_at = s.now + 1 + draw(4);
		s.evicted_space[s.evicted_count] = victim->space;
		s.evicted_at[s.evicted_count++] = s.now;
		evicted++;
	}
	assert_int_equal(
		victim_log_put(s.log, p->name, victims, c->victim_count, version, now_ns()), 0);
	p->nominated = node;
	check_min(p, c, lacked);
	for (size_t v = 0; v < c->victim_count; v++) {
		int in = toy_of(c->victims[v].pod->object.name)->space;

		assert_true(s.wanted[in] < 0 || healthy(in) >= s.wanted[in]);
	}
	check_windows();
}

/* As the ledger does: what is promised is used, on its node, until a view shows it. */
static void reserve(struct preempt_fixture *f, const struct kube_pod *pod, const char *node)
{
	place_pod handle = place_find_pod(f->place, pod->object.namespace, pod->object.name);

	place_put(f->place, handle, place_find_node(f->place, node));
	quota_book_add(f->book, pod->object.namespace, kube_pod_requests(pod));
}

/* Victims of before that are still there: the scheduler waits for them. */
static bool awaits_victims(const struct victim_answer *told)
{
	for (size_t i = 0; i < told->count; i++)
		if (toy_of(told->of[i].uid)->phase == GOING)
			return true;
	return false;
}

static void decide(struct preempt_fixture *f, struct toy *p)
{
	cJSON *flat = flat_of(p);
	struct kube_pod *pod = preempt_fixture_record(flat);
	uint64_t version = victim_log_version(s.log);
	struct victim_answer told = {0};
	struct victim_past *times;
	const char *const *flying, *const *exchanged;
	const char *preferred[PODS];
	struct preempt_past past[PODS];
	struct preempt_ask ask = {.pod = pod, .now_ns = now_ns(), .past = past};
	struct preempt_plan plan;

	victim_log_find(s.log, p->name, now_ns(), &told);
	ask.in_flight_count =
		victim_log_told(s.log, p->name, now_ns() - VICTIM_LOG_FLIGHT_NS, &flying);
	ask.exchanged_count =
		victim_log_told(s.log, p->name, now_ns() - VICTIM_LOG_TTL_NS, &exchanged);
	ask.past_count = victim_log_past(s.log, now_ns() - WINDOW * NS_PER_SEC, &times);
	for (size_t i = 0; i < ask.past_count; i++)
		past[i] = (struct preempt_past){times[i].namespace, times[i].at_ns};
	for (size_t i = 0; i < told.count; i++)
		preferred[i] = told.of[i].uid;
	ask.preferred = preferred;
	ask.preferred_count = told.count;
	ask.in_flight = flying;
	ask.exchanged = exchanged;
	preempt_make_plan(f->index, f->place, f->book, &f->options, &ask, &plan);
	if (plan.verdict == PREEMPT_NOT_NEEDED) {
		p->phase = BOUND;
		p->node = plan.chosen.node[1] - '0';
		p->start = s.now;
		started++;
		reserve(f,
			place_pod_record(f->place,
					 place_find_pod(f->place, space[p->space], p->name)),
			plan.chosen.node);
	} else if (plan.verdict == PREEMPT_VICTIMS && !awaits_victims(&told)) {
		evict(p, &plan.chosen, version);
		reserve(f,
			place_pod_record(f->place,
					 place_find_pod(f->place, space[p->space], p->name)),
			plan.chosen.node);
	}
	check_max();
	preempt_plan_fini(&plan);
	free(told.of);
	free(times);
	free((void *)flying);
	free((void *)exchanged);
	object_drop(&pod->object);
	cJSON_Delete(flat);
}

/* Who has a node nominated comes first, then by priority and age. */
static int by_turn(const void *left, const void *right)
{
	const struct toy *a = *(struct toy *const *)left, *b = *(struct toy *const *)right;

	if ((a->nominated >= 0) != (b->nominated >= 0))
		return a->nominated >= 0 ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	return (a > b) - (a < b);
}

static void schedule(void)
{
	struct toy *turns[PODS];
	struct preempt_fixture f;
	int count = 0;

	for (int i = 0; i < s.pod_count; i++)
		if (s.pods[i].phase == PENDING)
			turns[count++] = &s.pods[i];
	if (!count)
		return;
	qsort(turns, (size_t)count, sizeof(struct toy *), by_turn);
	build(&f);
	for (int i = 0; i < count; i++)
		decide(&f, turns[i]);
	preempt_fixture_fini(&f);
}

/* --- stories */

static void tell_story(uint64_t seed)
{
	unsigned int before;

	draw_story(seed);
	for (int i = 0; i < STEPS; i++) {
		pass_second(true);
		schedule();
	}
	for (int i = 0; i < SETTLE; i++) {
		before = started + evicted;
		pass_second(false);
		schedule();
	}
	assert_int_equal(before, started + evicted);
	victim_log_free(s.log);
}

static void stories_keep_the_rules(void **unused)
{
	const char *only = getenv("SEED");

	(void)unused;
	for (uint64_t seed = only ? strtoull(only, NULL, 10) : 1;
	     seed <= (only ? strtoull(only, NULL, 10) : STORIES); seed++) {
		at_seed = seed;
		tell_story(seed);
	}
	print_message("%u pods started, %u evicted, %u restarts\n", started, evicted, restarts);
	assert_true(only || (started > 1000 && evicted > 100 && restarts > 20));
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
		cmocka_unit_test_teardown(stories_keep_the_rules, tell_seed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
