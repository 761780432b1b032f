/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/quota_story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/place_cache.h"
#include "aggregator/api/quota_session.h"
#include "aggregator/api/waiting_pods.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/victim_log.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/model_fixture.h"
#include "tests/preempt_fixture.h"

enum { BURST = 8 };

static const char *const resource[STORY_RESOURCES] = {"cpu", "memory", "nvidia.com/gpu"};
static const char *const space[STORY_SPACES] = {"a", "b", "c", "d", "e", "f"};

static int64_t clock_ns; /* of the story that is open */

int quota_story_draw(struct quota_story *s, int below)
{
	s->state = s->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int)((s->state >> 33) % (uint64_t)below);
}

/* --- plain numbers */

int quota_story_used(const struct quota_story *s, int in, int r, bool going)
{
	int sum = 0;

	for (int i = 0; i < s->pod_count; i++)
		if (s->pods[i].space == in &&
		    (going ? quota_toy_holds(&s->pods[i]) : s->pods[i].phase == TOY_BOUND))
			sum += s->pods[i].asks[r];
	return sum;
}

int quota_story_sum_used(const struct quota_story *s, int r)
{
	int sum = 0;

	for (int i = 0; i < s->space_count; i++)
		sum += quota_story_used(s, i, r, false);
	return sum;
}

int quota_story_sum_min(const struct quota_story *s, int r)
{
	int sum = 0;

	for (int i = 0; i < s->space_count; i++)
		sum += s->min[i][r];
	return sum;
}

int quota_story_healthy(const struct quota_story *s, int in)
{
	int count = 0;

	for (int i = 0; i < s->pod_count; i++)
		count += s->pods[i].space == in && s->pods[i].phase == TOY_BOUND;
	return count;
}

int quota_story_free_on(const struct quota_story *s, int node, int r)
{
	int left = s->room[node][r];

	for (int i = 0; i < s->pod_count; i++)
		if (s->pods[i].node == node && s->pods[i].phase == TOY_BOUND)
			left -= s->pods[i].asks[r];
	return left;
}

/* --- telling it to the product */

static char *amounts_of(const struct quota_story *s, const int *of, const char *form,
			const char *cpu)
{
	struct buf b = BUF_INIT;

	buf_add_char(&b, '{');
	for (int r = 0; r < STORY_RESOURCES && r < s->resource_count; r++) {
		buf_printf(&b, "%s'%s':", r ? "," : "", resource[r]);
		buf_printf(&b, "%s%d%s", form, of[r], r ? form : cpu);
	}
	buf_add_char(&b, '}');
	return buf_take(&b, NULL);
}

cJSON *quota_story_pod_of(const struct quota_story *s, const struct quota_toy *p)
{
	char *request = amounts_of(s, p->asks, "", "000"), *node, *text, owner[16];
	cJSON *flat, *pod, *ref = cJSON_CreateObject();

	node = p->node >= 0	   ? mem_printf(",'node':'n%d'", p->node)
	       : p->nominated >= 0 ? mem_printf(",'nominated_node':'n%d'", p->nominated)
				   : mem_strdup("");
	text = mem_printf("{'pod':'%s','namespace':'%s','uid':'%s','priority':%d,'start':%d,"
			  "'request':%s%s%s}",
			  p->name, space[p->space], p->name, p->priority, p->start, request, node,
			  p->phase == TOY_GOING ? ",'terminating':true" : "");
	flat = preempt_fixture_parse(text);
	pod = preempt_fixture_pod(flat);
	snprintf(owner, sizeof(owner), "o%d", p->burst);
	cJSON_AddStringToObject(ref, "kind", "ReplicaSet");
	cJSON_AddStringToObject(ref, "name", owner);
	cJSON_AddStringToObject(ref, "uid", owner);
	cJSON_AddTrueToObject(ref, "controller");
	cJSON_AddItemToArray(cJSON_AddArrayToObject(cJSON_GetObjectItem(pod, "metadata"),
						    "ownerReferences"),
			     ref);
	cJSON_Delete(flat);
	free(request);
	free(node);
	free(text);
	return pod;
}

struct object *quota_story_record_of(const struct quota_story *s, const struct quota_toy *p)
{
	cJSON *pod = quota_story_pod_of(s, p);
	char *text = cJSON_PrintUnformatted(pod);
	struct object *o = model_fixture_object(OBJECT_POD, text);

	free(text);
	cJSON_Delete(pod);
	return o;
}

/* Single quotes. */
static void put(struct quota_story *s, enum object_kind kind, char *text)
{
	cJSON *json = preempt_fixture_parse(text);
	char *printed = cJSON_PrintUnformatted(json);

	model_put(s->model, model_fixture_object(kind, printed));
	cJSON_Delete(json);
	free(printed);
	free(text);
}

static void put_node(struct quota_story *s, int n)
{
	char *amounts = amounts_of(s, s->room[n], "'", "'");

	amounts[strlen(amounts) - 1] = '\0';
	put(s, OBJECT_NODE,
	    mem_printf("{'metadata':{'name':'n%d'},'status':{'allocatable':%s,'pods':'99'}}}", n,
		       amounts));
	free(amounts);
}

static void put_quota(struct quota_story *s, int in)
{
	char *min = amounts_of(s, s->min[in], "'", "'"), *max = amounts_of(s, s->max[in], "'", "'");
	char *window = s->evictions_max[in] ? mem_printf(",'evenkeel.io/max-evictions':'%d/%ds'",
							 s->evictions_max[in], STORY_WINDOW)
					    : mem_strdup("");

	put(s, OBJECT_ELASTIC_QUOTA,
	    mem_printf("{'metadata':{'name':'q','namespace':'%s','annotations':{"
		       "'evenkeel.io/weight':'%d','evenkeel.io/min-runtime':'%ds'%s}},"
		       "'spec':{'min':%s,'max':%s}}",
		       space[in], s->weight[in], s->min_runtime[in], window, min, max));
	free(min);
	free(max);
	free(window);
}

/* The status is that of the step's beginning. */
static void put_budget(struct quota_story *s, int in)
{
	int left = quota_story_healthy(s, in) - s->wanted[in];

	if (s->wanted[in] < 0)
		return;
	put(s, OBJECT_POD_DISRUPTION_BUDGET,
	    mem_printf("{'metadata':{'name':'all','namespace':'%s'},'spec':{'selector':{}},"
		       "'status':{'disruptionsAllowed':%d,'currentHealthy':%d,"
		       "'desiredHealthy':%d}}",
		       space[in], left > 0 ? left : 0, quota_story_healthy(s, in), s->wanted[in]));
}

static void put_toy(struct quota_story *s, struct quota_toy *p)
{
	if (p->phase == TOY_GONE)
		model_remove(s->model, OBJECT_POD, space[p->space], p->name);
	else
		model_put(s->model, quota_story_record_of(s, p));
	p->changed = false;
}

void quota_story_publish(struct quota_story *s)
{
	for (int i = 0; i < s->space_count; i++) {
		put_quota(s, i);
		put_budget(s, i);
	}
	for (int i = 0; i < s->pod_count; i++)
		if (s->pods[i].changed)
			put_toy(s, &s->pods[i]);
	view_slot_publish(s->api.ctx.views,
			  join_view(s->join, NULL, 0, model_cluster(s->model), clock_ns));
	reservations_settle(s->api.ctx.reservations, model_generation(s->model), clock_ns);
}

/* --- the aggregator */

static int64_t now_ns(void)
{
	return clock_ns;
}

/* As the informer does: what is promised ends, or moves to where the pod went. */
static void on_pod(void *ctx, const struct kube_pod *was, const struct kube_pod *pod,
		   uint64_t generation)
{
	struct reservations *set = ((struct quota_story *)ctx)->api.ctx.reservations;

	(void)was;
	if (!*pod->node)
		return;
	reservations_bind(set, pod->object.uid, pod->node, generation);
	reservations_remember(set, pod->object.uid);
}

static void on_pod_gone(void *ctx, const struct kube_pod *pod)
{
	struct reservations *set = ((struct quota_story *)ctx)->api.ctx.reservations;

	reservations_release(set, pod->object.uid);
	reservations_forget(set, pod->object.uid);
}

static void start_aggregator(struct quota_story *s)
{
	s->api.ctx.reservations = reservations_new();
	s->api.ctx.victims = victim_log_new();
	s->api.ctx.waiting = waiting_pods_new(&s->api.counters.requeue, NULL);
	counter_set(&s->api.counters.requeue.enabled, 1);
	counter_set(&s->api.counters.requeue.sent, 0);
	for (int i = 0; i < s->pod_count; i++)
		s->pods[i].changed |= s->pods[i].phase != TOY_GONE;
}

static void stop_aggregator(struct quota_story *s)
{
	waiting_pods_free(s->api.ctx.waiting);
	victim_log_free(s->api.ctx.victims);
	reservations_free(s->api.ctx.reservations);
}

/* --- the story */

static void draw_story(struct quota_story *s)
{
	s->space_count = 3 + quota_story_draw(s, 4);
	s->resource_count = 1 + quota_story_draw(s, STORY_RESOURCES);
	s->node_count = 2 + quota_story_draw(s, STORY_NODES - 1);
	for (int n = 0; n < s->node_count; n++)
		for (int r = 0; r < s->resource_count; r++)
			s->room[n][r] = 8 + quota_story_draw(s, 5);
	for (int i = 0; i < s->space_count; i++) {
		for (int r = 0; r < s->resource_count; r++) {
			s->min[i][r] = quota_story_draw(s, 8 * s->node_count / s->space_count + 1);
			s->max[i][r] = s->min[i][r] + quota_story_draw(s, 8 * s->node_count);
		}
		s->weight[i] = 1 + quota_story_draw(s, 3);
		s->wanted[i] = quota_story_draw(s, 3) ? -1 : quota_story_draw(s, 3);
		s->evictions_max[i] = quota_story_draw(s, 4) ? 0 : 1 + quota_story_draw(s, 3);
		s->min_runtime[i] = quota_story_draw(s, 3) ? 0 : 3 + quota_story_draw(s, 20);
	}
}

void quota_story_open(struct quota_story *s, uint64_t seed)
{

	*s = (struct quota_story){.state = seed,
				  .watch = {.put = on_pod, .gone = on_pod_gone, .ctx = s}};
	clock_ns = PREEMPT_FIXTURE_EPOCH_NS;
	draw_story(s);
	api_fixture_open(&s->api, NULL);
	s->api.ctx.now_ns = now_ns;
	s->api.ctx.places = s->api.ctx.scheduler_places = place_cache_new();
	quota_options_default(&s->options);
	s->api.ctx.books = quota_book_cache_new(&s->options);
	s->model = model_new();
	s->join = join_new();
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(s->model, (enum object_kind)kind);
	model_watch_pods(s->model, &s->watch);
	start_aggregator(s);
	for (int n = 0; n < s->node_count; n++)
		put_node(s, n);
}

void quota_story_close(struct quota_story *s)
{
	stop_aggregator(s);
	model_watch_pods(s->model, NULL);
	join_free(s->join);
	model_free(s->model);
	quota_book_cache_free(s->api.ctx.books);
	place_cache_free(s->api.ctx.places);
	api_fixture_close(&s->api);
}

static void burst(struct quota_story *s)
{
	int in = quota_story_draw(s, s->space_count), priority = quota_story_draw(s, 3) * 10,
	    asks[STORY_RESOURCES] = {0};

	for (int r = 0; r < s->resource_count; r++)
		asks[r] = quota_story_draw(s, 3) + (r == 0);
	for (int i = 1 + quota_story_draw(s, BURST); i > 0 && s->pod_count < STORY_PODS; i--) {
		struct quota_toy *p = &s->pods[s->pod_count];

		*p = (struct quota_toy){.space = in,
					.priority = priority,
					.node = -1,
					.nominated = -1,
					.burst = s->bursts,
					.changed = true,
					.awake = true};
		memcpy(p->asks, asks, sizeof(asks));
		snprintf(p->name, sizeof(p->name), "p%d", s->pod_count++);
	}
	s->bursts++;
}

void quota_story_wake(struct quota_story *s, bool refused_only)
{
	for (int i = 0; i < s->pod_count; i++)
		s->pods[i].awake |=
			s->pods[i].phase == TOY_PENDING && (s->pods[i].refused || !refused_only);
}

static void end_pod(struct quota_story *s, struct quota_toy *p)
{
	if (p->node >= 0 || p->nominated >= 0)
		quota_story_wake(s, false);
	p->phase = TOY_GONE;
	p->changed = true;
}

void quota_story_leave(struct quota_story *s, struct quota_toy *p)
{
	p->phase = TOY_GOING;
	p->gone_at = s->now + 1 + quota_story_draw(s, 4);
	p->changed = true;
}

static void delete_some(struct quota_story *s)
{
	for (int i = 0; i < s->pod_count; i++) {
		struct quota_toy *p = &s->pods[i];

		if (quota_story_draw(s, 8) || p->phase == TOY_GONE || p->phase == TOY_GOING)
			continue;
		if (p->phase == TOY_BOUND)
			quota_story_leave(s, p);
		else
			end_pod(s, p);
	}
}

/* All min together stay below what the nodes have. */
static void raise_quota(struct quota_story *s)
{
	int in = quota_story_draw(s, s->space_count), r = quota_story_draw(s, s->resource_count);
	int more = 1 + quota_story_draw(s, 4), room = 0;

	for (int n = 0; n < s->node_count; n++)
		room += s->room[n][r];
	s->max[in][r] += more;
	if (quota_story_draw(s, 2) && quota_story_sum_min(s, r) + more <= room)
		s->min[in][r] += more;
}

void quota_story_pass_second(struct quota_story *s, bool events)
{
	s->now++;
	clock_ns += NS_PER_SEC;
	for (int i = 0; i < s->pod_count; i++)
		if (s->pods[i].phase == TOY_GOING && s->pods[i].gone_at <= s->now)
			end_pod(s, &s->pods[i]);
	if (events && !quota_story_draw(s, 3))
		burst(s);
	if (events && !quota_story_draw(s, 5))
		delete_some(s);
	if (events && !quota_story_draw(s, 10))
		raise_quota(s);
	if (events && !quota_story_draw(s, 15)) {
		stop_aggregator(s);
		start_aggregator(s);
		s->evicted_count = 0;
		s->restarts++;
	}
}
