/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random stories of quotas: three to six namespaces share up to three resources of some nodes; pods
 * come in bursts and are deleted, quotas are raised, budgets, minimum runtimes and windows of
 * evictions bound what may go, and the aggregator restarts and forgets what it told. The verbs of
 * the extender and the review of waiting pods are the product's. Scheduler, kubelet and the
 * controller of budgets are small models here: in a step of one second all decide on the view of the
 * step's beginning, so that budgets' status and deletions are behind, as they are in a burst.
 *
 * The scheduler asks about a pod that found no place again
 *   - when a pod on a node, or one that is nominated, is gone
 *   - when a pod is bound, or waiting_pods_review() says so, if filter refused the pod
 * and at no other event: a real one also wakes what filter refused when anything else happens. It
 * offers nodes for preemption where pods of lower priority hold the room.
 *
 * After every decision, in plain numbers:
 *   - no quota uses more than its max, pods in deletion counted
 *   - who pays for a pod within its min is left with its min of every resource that the pod lacked
 *     and the victims had, with what is promised to pods that wait for victims
 *   - no budget has less healthy pods than it wants, by what was evicted
 *   - no more than evenkeel.io/max-evictions are evicted, as long as nobody forgets
 *   - no victim is younger than evenkeel.io/min-runtime
 * Every second: no pod that filter refused would start, or find victims, for 10 s without being
 * asked about. At the end nothing happens any more.
 *
 * Every third second, as long as there are events, the first plan of /v1/quotas/reclaim is carried
 * out: its room is claimed, and its victims are deleted. No other pod is bound to the room of a claim,
 * and its pod starts before the claim ends, unless the aggregator restarts and forgets it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/api/extender_call.h"
#include "aggregator/api/waiting_pods.h"
#include "aggregator/state/reservations.h"
#include "shared/log.h"
#include "tests/quota_story.h"
#include "tests/sanitized.h"

enum {
	STORIES = RANDOM_CASES(200),
	STEPS = 40, /* with events */
	SETTLE = 50, /* without, of which nothing happens in the last */
	CALM = 5,
	SOON = 10, /* seconds */
};

static struct quota_story s;
static uint64_t at_seed;
static unsigned int started, evicted, reclaimed, claimed, served, restarts, nudges;

/* --- one decision */

static struct quota_toy *toy_of(const char *name)
{
	return &s.pods[strtol(name + 1, NULL, 10)];
}

static void check_max(void)
{
	for (int i = 0; i < s.space_count; i++)
		for (int r = 0; r < s.resource_count; r++)
			assert_true(quota_story_used(&s, i, r, true) <= s.max[i][r]);
}

/* To pods that wait for their victims. */
static int promised(int in, int r)
{
	int sum = 0;

	for (int i = 0; i < s.pod_count; i++)
		if (s.pods[i].space == in && s.pods[i].phase == TOY_PENDING &&
		    s.pods[i].nominated >= 0)
			sum += s.pods[i].asks[r];
	return sum;
}

/*
 * Of what the pod lacked where it goes, other quotas keep their min; and they pay only if its own is
 * within its min.
 */
static void check_min(const struct quota_toy *p, struct quota_toy *const *victims, int count,
		      const bool *lacked)
{
	for (int v = 0; v < count; v++) {
		int in = victims[v]->space;

		for (int r = 0; in != p->space && r < s.resource_count; r++) {
			if (p->asks[r] && quota_story_sum_min(&s, r))
				assert_true(quota_story_used(&s, p->space, r, false) + p->asks[r] <=
					    s.min[p->space][r]);
			if (lacked[r] && victims[v]->asks[r])
				assert_true(quota_story_used(&s, in, r, false) + promised(in, r) >=
					    s.min[in][r]);
		}
	}
}

/* Of pods in deletion all is free: the product may know of more that is lacked. */
static void find_lacked(const struct quota_toy *p, int node, bool *lacked)
{
	for (int r = 0; r < s.resource_count; r++)
		lacked[r] = p->asks[r] && quota_story_sum_min(&s, r) &&
			    (quota_story_free_on(&s, node, r) < p->asks[r] ||
			     quota_story_sum_used(&s, r) + p->asks[r] > quota_story_sum_min(&s, r));
}

static void check_windows(void)
{
	for (int i = 0; i < s.space_count; i++) {
		int count = 0;

		for (int k = 0; k < s.evicted_count; k++)
			count += s.evicted_space[k] == i && s.now - s.evicted_at[k] < STORY_WINDOW;
		assert_true(!s.evictions_max[i] || count <= s.evictions_max[i]);
	}
}

static void evict(struct quota_toy *p, int node, struct quota_toy *const *victims, int count)
{
	bool lacked[STORY_RESOURCES];

	find_lacked(p, node, lacked);
	for (int v = 0; v < count; v++) {
		assert_int_equal(victims[v]->phase, TOY_BOUND);
		assert_true(s.now - victims[v]->start >= s.min_runtime[victims[v]->space]);
		quota_story_leave(&s, victims[v]);
		evicted++;
	}
	check_min(p, victims, count, lacked);
	for (int v = 0; v < count; v++)
		assert_true(s.wanted[victims[v]->space] < 0 ||
			    quota_story_healthy(&s, victims[v]->space) >=
				    s.wanted[victims[v]->space]);
}

static int read_victims(const cJSON *pods, const char *key, struct quota_toy **victims)
{
	const cJSON *pod;
	int count = 0;

	cJSON_ArrayForEach (pod, pods) {
		struct quota_toy *p = toy_of(api_fixture_at(pod, key)->valuestring);

		if (p->phase != TOY_GOING)
			victims[count++] = p;
	}
	return count;
}

static void post_claim(cJSON *body)
{
	char *text = cJSON_PrintUnformatted(body);

	if (api_fixture_send(&s.api, "POST", "/v1/quotas/reclaim/reservations", text) != 200)
		fail_msg("%s: %s", text, s.api.response.body.data);
	cJSON_Delete(body);
	free(text);
}

static void count_evictions(struct quota_toy *const *victims, int count)
{
	for (int v = 0; v < count; v++) {
		s.evicted_space[s.evicted_count] = victims[v]->space;
		s.evicted_at[s.evicted_count++] = s.now;
	}
	check_windows();
}

/* Of pods that wait for the victims of a plan. */
static struct {
	int node; /* -1: none */
	int until; /* seconds */
} claims[STORY_PODS];

static void forget_claims(void)
{
	for (int i = 0; i < STORY_PODS; i++)
		claims[i].node = -1;
}

static bool has_claim(int i, int node)
{
	return s.pods[i].phase == TOY_PENDING && claims[i].node == node;
}

/* Pods in deletion hold nothing; what is left is for those with a claim. */
static void check_claims(int node)
{
	for (int r = 0; r < s.resource_count; r++) {
		int left = quota_story_free_on(&s, node, r);

		for (int i = 0; i < s.pod_count; i++)
			if (has_claim(i, node)) {
				assert_true(s.now < claims[i].until); /* it starts in time */
				left -= s.pods[i].asks[r];
			}
		assert_true(left >= 0);
	}
}

/* No scheduler asks for these victims. */
static void reclaim(void)
{
	static const char *const members[] = {"plan", "namespace", "name", "uid"};
	struct quota_toy *victims[STORY_PODS], *p;
	const cJSON *item;
	cJSON *list, *body;
	int count, node;

	assert_int_equal(api_fixture_get(&s.api, "/v1/quotas/reclaim"), 200);
	item = api_fixture_at(s.api.json, "items.0");
	if (!item)
		return;
	list = cJSON_Duplicate(item, true);
	body = cJSON_CreateObject();
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		cJSON_AddStringToObject(body, members[i],
					cJSON_GetStringValue(
						cJSON_GetObjectItem(list, members[i])));
	count = read_victims(api_fixture_at(list, "victims"), "name", victims);
	p = toy_of(api_fixture_at(list, "name")->valuestring);
	node = api_fixture_at(list, "node")->valuestring[1] - '0';
	post_claim(body);
	claims[p - s.pods].node = node;
	claims[p - s.pods].until = s.now + (int)(RESERVATIONS_CLAIM_NS / 1000000000LL);
	evict(p, node, victims, count);
	count_evictions(victims, count);
	check_claims(node);
	reclaimed += (unsigned int)count;
	claimed++;
	cJSON_Delete(list);
	quota_story_publish(&s);
}

/* --- the scheduler */

/* Nominated pods hold their room against lower priorities. */
static bool fits(const struct quota_toy *p, int node, const bool *away)
{
	for (int r = 0; r < s.resource_count; r++) {
		int left = s.room[node][r];

		for (int i = 0; i < s.pod_count; i++) {
			const struct quota_toy *q = &s.pods[i];

			if ((quota_toy_holds(q) && q->node == node && !(away && away[i])) ||
			    (q != p && q->phase == TOY_PENDING && q->nominated == node &&
			     q->priority >= p->priority))
				left -= q->asks[r];
		}
		if (left < p->asks[r])
			return false;
	}
	return true;
}

/* All of lower priority, but those that may stay, the highest priority first. */
static int offer(const struct quota_toy *p, int node, bool *away)
{
	int count = 0;

	for (int i = 0; i < s.pod_count; i++)
		away[i] = quota_toy_holds(&s.pods[i]) && s.pods[i].node == node &&
			  s.pods[i].priority < p->priority;
	if (!fits(p, node, away))
		return 0;
	for (int priority = 20; priority >= 0; priority -= 10)
		for (int i = 0; i < s.pod_count; i++) {
			if (!away[i] || s.pods[i].priority != priority)
				continue;
			away[i] = false;
			if (fits(p, node, away))
				continue;
			away[i] = true;
			count++;
		}
	return count;
}

/* It waits for its victims. */
static bool awaits(const struct quota_toy *p)
{
	for (int i = 0; i < s.pod_count; i++)
		if (s.pods[i].phase == TOY_GOING && s.pods[i].node == p->nominated &&
		    s.pods[i].priority < p->priority)
			return true;
	return false;
}

static const cJSON *ask(const char *verb, const struct quota_toy *p, cJSON *more, const char *key)
{
	cJSON *question = cJSON_CreateObject();
	char *text;

	cJSON_AddItemToObject(question, "Pod", quota_story_pod_of(&s, p));
	cJSON_AddItemToObject(question, key, more);
	text = cJSON_PrintUnformatted(question);
	assert_int_equal(api_fixture_send(&s.api, "POST", verb, text), 200);
	cJSON_Delete(question);
	free(text);
	return cJSON_GetObjectItem(s.api.json, key);
}

static cJSON *nodes_of(const bool *chosen)
{
	cJSON *names = cJSON_CreateArray();
	char name[16];

	for (int n = 0; n < s.node_count; n++) {
		snprintf(name, sizeof(name), "n%d", n);
		if (chosen[n])
			cJSON_AddItemToArray(names, cJSON_CreateString(name));
	}
	return names;
}

static cJSON *offers_of(const struct quota_toy *p, bool *chosen)
{
	cJSON *offers = cJSON_CreateObject();
	bool away[STORY_PODS] = {false};
	char name[16];

	for (int n = 0; n < s.node_count; n++) {
		cJSON *pods;

		chosen[n] = offer(p, n, away) > 0;
		if (!chosen[n])
			continue;
		snprintf(name, sizeof(name), "n%d", n);
		pods = cJSON_AddArrayToObject(cJSON_AddObjectToObject(offers, name), "Pods");
		for (int i = 0; i < s.pod_count; i++) {
			cJSON *pod;

			if (!away[i])
				continue;
			pod = cJSON_CreateObject();
			cJSON_AddStringToObject(pod, "UID", s.pods[i].name);
			cJSON_AddItemToArray(pods, pod);
		}
	}
	return offers;
}

static void bind_pod(struct quota_toy *p, const char *node)
{
	reservations_charge(s.api.ctx.reservations, p->name, node, s.api.ctx.now_ns());
	p->phase = TOY_BOUND;
	p->node = node[1] - '0';
	p->start = s.now;
	p->changed = true;
	started++;
	quota_story_wake(&s, true);
	check_max();
	check_claims(p->node);
	served += claims[p - s.pods].node >= 0;
}

static void nominate(struct quota_toy *p, int node)
{
	p->changed |= p->nominated != node;
	p->nominated = node;
}

/* Those of the answer that are told again are going already. */
static void preempt(struct quota_toy *p)
{
	bool chosen[STORY_NODES];
	cJSON *offers = offers_of(p, chosen);
	struct quota_toy *victims[STORY_PODS];
	const cJSON *answer;
	int count, node;

	answer = ask("/extender/preempt", p, offers, "NodeNameToMetaVictims");
	if (!answer || !answer->child) {
		reservations_unschedulable(s.api.ctx.reservations, p->name);
		nominate(p, -1);
		return;
	}
	node = answer->child->string[1] - '0';
	count = read_victims(api_fixture_at(answer->child, "Pods"), "UID", victims);
	evict(p, node, victims, count);
	count_evictions(victims, count);
	nominate(p, node);
}

static void schedule_one(struct quota_toy *p)
{
	bool chosen[STORY_NODES], any = false;
	const cJSON *passed;

	p->awake = false;
	p->refused = false;
	p->could_since = 0;
	for (int n = 0; n < s.node_count; n++)
		any |= chosen[n] = fits(p, n, NULL);
	if (any) {
		passed = ask("/extender/filter", p, nodes_of(chosen), "NodeNames");
		if (cJSON_GetArraySize(passed)) {
			bind_pod(p, cJSON_GetArrayItem(passed,
						       quota_story_draw(&s,
									cJSON_GetArraySize(passed)))
					    ->valuestring);
			return;
		}
		p->refused = true;
	}
	if (p->nominated < 0 || !awaits(p))
		preempt(p);
}

/* Who has a node nominated comes first, then by priority and age. */
static int by_turn(const void *left, const void *right)
{
	const struct quota_toy *a = *(struct quota_toy *const *)left,
			       *b = *(struct quota_toy *const *)right;

	if ((a->nominated >= 0) != (b->nominated >= 0))
		return a->nominated >= 0 ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	return (a > b) - (a < b);
}

static void schedule(void)
{
	struct quota_toy *turns[STORY_PODS];
	int count = 0;

	for (int i = 0; i < s.pod_count; i++)
		if (s.pods[i].phase == TOY_PENDING && s.pods[i].awake)
			turns[count++] = &s.pods[i];
	if (!count)
		return;
	qsort(turns, (size_t)count, sizeof(struct quota_toy *), by_turn);
	for (int i = 0; i < count; i++)
		schedule_one(turns[i]);
}

/* --- refusals end */

static struct extender_nodes *marked(const bool *chosen)
{
	struct view *v = view_slot_take(s.api.ctx.views);
	struct extender_nodes *nodes = extender_nodes_new(v);

	for (int n = 0; n < s.node_count; n++)
		nodes->chosen[n] = chosen[n]; /* sorted by name */
	view_drop(v);
	return nodes;
}

/* What the scheduler would be told if it asked. */
static bool could_start(const struct quota_toy *p)
{
	struct object *pod = quota_story_record_of(&s, p);
	bool fitting[STORY_NODES], offered[STORY_NODES], could;
	struct extender_nodes *room, *victims;
	int64_t retry_ns;

	for (int n = 0; n < s.node_count; n++)
		fitting[n] = fits(p, n, NULL);
	cJSON_Delete(offers_of(p, offered));
	room = marked(fitting);
	victims = marked(offered);
	could = extender_filter_rehearse(&s.api.ctx, (struct kube_pod *)pod, room) ||
		((p->nominated < 0 || !awaits(p)) &&
		 extender_preempt_rehearse(&s.api.ctx, (struct kube_pod *)pod, victims, &retry_ns));
	free(room);
	free(victims);
	object_drop(pod);
	return could;
}

/* Of pods of a burst, the answer for one is that for all. */
static void check_refusals(void)
{
	bool could[STORY_PODS] = {false}, known[STORY_PODS] = {false};

	for (int i = 0; i < s.pod_count; i++) {
		struct quota_toy *p = &s.pods[i];

		if (p->phase != TOY_PENDING || p->awake || !p->refused)
			continue;
		if (p->nominated >= 0 || !known[p->burst])
			could[p->burst] = could_start(p);
		known[p->burst] = p->nominated < 0;
		if (!could[p->burst])
			p->could_since = 0;
		else if (!p->could_since)
			p->could_since = s.now;
		if (p->could_since && s.now - p->could_since >= SOON)
			fail_msg("%s could start since second %d, and it is %d", p->name,
				 p->could_since, s.now);
	}
}

/* --- stories */

static void pass_step(bool events)
{
	unsigned int before = s.restarts;

	quota_story_pass_second(&s, events);
	if (s.restarts > before)
		forget_claims();
	quota_story_publish(&s);
	check_refusals();
	if (waiting_pods_review(s.api.ctx.waiting, &s.api.ctx)) {
		counter_add(&s.api.counters.requeue.sent, 1);
		quota_story_wake(&s, true);
		nudges++;
	}
	if (events && s.now % 3 == 0)
		reclaim();
	schedule();
}

static void tell_story(uint64_t seed)
{
	unsigned int before = 0;

	quota_story_open(&s, seed);
	forget_claims();
	for (int i = 0; i < STEPS; i++)
		pass_step(true);
	for (int i = 0; i < SETTLE; i++) {
		if (i == SETTLE - CALM)
			before = started + evicted;
		pass_step(false);
	}
	assert_int_equal(before, started + evicted);
	restarts += s.restarts;
	quota_story_close(&s);
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
	print_message("%u pods started, %u evicted (%u reclaimed by %u claims, for %u pods that "
		      "started), %u restarts, %u nudges\n",
		      started, evicted, reclaimed, claimed, served, restarts, nudges);
	assert_true(only || (started > 5 * STORIES && evicted - reclaimed > STORIES / 2 &&
			     reclaimed > STORIES / 2 && served > claimed / 2 &&
			     restarts > STORIES / 10 && nudges > STORIES / 2));
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

	log_start("quota_stories", LOG_LEVEL_WARN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
