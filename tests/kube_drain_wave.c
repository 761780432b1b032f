/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     cordon all --> evict all, in order --> look --> settled?
 *                        ^                    |
 *                        +--------------------+   those of budgets that make them wait, one after the other
 *
 * Evictions go through the API server, which asks the budgets; one that it refuses is not tried
 * again. Where the plan says that pods of a budget go one after the other, the next is asked for
 * when the budget's status allows it again. Every look also asks all budgets whether they have what
 * they desire.
 */
#include "tests/kube_drain_wave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

/* Controllers and the scheduler, on a machine that may be busy with other tests. */
#define SECONDS 180

#define text_at	  kube_drain_text
#define number_at kube_drain_number

static const cJSON *find(const cJSON *list, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, json_at(list, "items")) {
		if (strcmp(text_at(item, "metadata.name"), name) == 0)
			return item;
	}
	return NULL;
}

/* --- the wave's pods ------------------------------------------------------------------------- */

bool kube_drain_wave_has_node(const struct kube_drain_wave *w, const char *node)
{
	const cJSON *n;

	cJSON_ArrayForEach (n, json_at(w->plan, "nodes")) {
		if (strcmp(text_at(n, "name"), node) == 0)
			return true;
	}
	return false;
}

/* The budget of the pod whose pods wait for each other, or "". */
static const char *slow_budget_of(const struct kube_drain_wave *w, const cJSON *budgets,
				  const cJSON *pod)
{
	const cJSON *cost;

	cJSON_ArrayForEach (cost, json_at(w->plan, "disruptions")) {
		const char *name = text_at(cost, "name");

		if (cJSON_IsTrue(json_at(cost, "oneAfterTheOther")) &&
		    kube_drain_budget_selects(find(budgets, name), pod))
			return name;
	}
	return "";
}

static void add_leaver(struct kube_drain_wave *w, const cJSON *budgets, const char *node,
		       const cJSON *move)
{
	const cJSON *pod = find(w->before->pods, text_at(move, "name"));

	if (cJSON_IsTrue(json_at(move, "placeholder")))
		return;
	if (!pod || strcmp(text_at(pod, "spec.nodeName"), node) != 0)
		fail_msg("pod %s is not on %s", text_at(move, "name"), node);
	w->leavers[w->moved++] = (struct kube_drain_leaver){
		.name = text_at(pod, "metadata.name"),
		.uid = text_at(pod, "metadata.uid"),
		.node = text_at(pod, "spec.nodeName"),
		.budget = slow_budget_of(w, budgets, pod),
	};
}

/* Daemons stay, and nobody else. */
static size_t count_on_nodes(const struct kube_drain_wave *w)
{
	size_t count = 0;
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(w->before->pods, "items")) {
		count += *kube_drain_pod_app(pod) &&
			 kube_drain_wave_has_node(w, text_at(pod, "spec.nodeName"));
	}
	return count;
}

static bool waits_for_other_node(const struct kube_drain_wave *w, size_t i)
{
	const struct kube_drain_leaver *l = &w->leavers[i];

	for (size_t j = 0; *l->budget && j < i; j++)
		if (strcmp(w->leavers[j].budget, l->budget) == 0 &&
		    strcmp(w->leavers[j].node, l->node) != 0)
			return true;
	return false;
}

void kube_drain_wave_init(struct kube_drain_wave *w, struct kube_drain_world *world,
			  const cJSON *plan, const struct kube_drain_look *before)
{
	cJSON *budgets = kube_drain_world_budgets(world);
	const cJSON *node, *move;

	*w = (struct kube_drain_wave){.world = world, .plan = plan, .before = before};
	w->leavers = mem_zalloc((size_t)number_at(plan, "pods") + 1, sizeof(*w->leavers));
	cJSON_ArrayForEach (node, json_at(plan, "nodes")) {
		cJSON_ArrayForEach (move, json_at(node, "moves")) {
			add_leaver(w, budgets, text_at(node, "name"), move);
		}
	}
	assert_int_equal(w->moved, count_on_nodes(w));
	for (size_t i = 0; i < w->moved; i++)
		w->overdrawn += waits_for_other_node(w, i);
	cJSON_Delete(budgets);
}

void kube_drain_wave_fini(struct kube_drain_wave *w)
{
	kube_drain_look_fini(&w->now);
	free(w->leavers);
	*w = (struct kube_drain_wave){0};
}

size_t kube_drain_wave_displaced(const struct kube_drain_wave *w)
{
	size_t displaced = 0;
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(w->before->pods, "items")) {
		const char *uid = text_at(pod, "metadata.uid");
		const cJSON *same = find(w->now.pods, text_at(pod, "metadata.name"));
		size_t i = 0;

		while (i < w->moved && strcmp(w->leavers[i].uid, uid) != 0)
			i++;
		displaced +=
			i == w->moved && (!same || strcmp(text_at(same, "metadata.uid"), uid) != 0);
	}
	return displaced;
}

/* --- carrying it out ------------------------------------------------------------------------- */

static void cordon(struct kube_drain_wave *w)
{
	const cJSON *node;

	cJSON_ArrayForEach (node, json_at(w->plan, "nodes")) {
		char *path = mem_printf("/api/v1/nodes/%s", text_at(node, "name"));

		control_plane_must(w->world->bed->plane, "PATCH", path,
				   "{\"spec\":{\"unschedulable\":true}}");
		free(path);
	}
}

/*
 * Where others write a budget's status all the time, the API server gives up: that is no answer,
 * and it is asked again.
 */
static void evict(struct kube_drain_wave *w, struct kube_drain_leaver *l)
{
	const char *namespace = w->world->namespace;
	char *path = mem_printf("/api/v1/namespaces/%s/pods/%s/eviction", namespace, l->name);
	char *body = mem_printf("{\"apiVersion\":\"%s\",\"kind\":\"Eviction\","
				"\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"}}",
				w->world->bed->plane->version->budgets, l->name, namespace);
	struct buf answer = BUF_INIT;
	long status = control_plane_send(w->world->bed->plane, "POST", path, body, &answer);

	l->evicted = status == 201;
	l->refused = status == 429;
	w->evicted += l->evicted;
	w->refused += l->refused;
	if (l->refused)
		print_message("          pod %s is refused: %s\n", l->name, answer.data);
	else if (!l->evicted && status != 504)
		fail_msg("eviction of %s: %ld: %s", l->name, status,
			 answer.data ? answer.data : "");
	buf_fini(&answer);
	free(path);
	free(body);
}

static bool may_ask(const struct kube_drain_wave *w, const struct kube_drain_leaver *l)
{
	cJSON *budgets;
	bool allowed;

	if (!*l->budget)
		return true;
	budgets = kube_drain_world_budgets(w->world);
	allowed = number_at(find(budgets, l->budget), "status.disruptionsAllowed") > 0;
	cJSON_Delete(budgets);
	return allowed;
}

static void evict_all(struct kube_drain_wave *w)
{
	for (size_t i = 0; i < w->moved; i++) {
		struct kube_drain_leaver *l = &w->leavers[i];

		if (!l->evicted && !l->refused && may_ask(w, l))
			evict(w, l);
	}
}

/*
 * Who was not evicted yet waits for a budget, and that in vain where it counts all pods there are
 * and others have no place.
 */
static bool is_over(void *ctx)
{
	struct kube_drain_wave *w = ctx;
	cJSON *budgets;
	bool over;

	evict_all(w);
	kube_drain_look_fini(&w->now);
	if (!kube_drain_world_look(w->world, &w->now))
		return false;
	budgets = kube_drain_world_budgets(w->world);
	w->violated += kube_drain_world_violations(budgets);
	over = kube_drain_world_is_settled(w->world, &w->now) &&
	       (w->evicted + w->refused == w->moved ||
		(w->now.unbound && kube_drain_world_budgets_are_true(budgets, &w->now)));
	cJSON_Delete(budgets);
	return over;
}

void kube_drain_wave_carry_out(struct kube_drain_wave *w)
{
	cordon(w);
	if (!control_plane_await(w->world->bed->plane, is_over, w, SECONDS))
		fail_msg("seed %llu: %zu of %zu pods are evicted, %zu have no node, %zu are "
			 "leaving",
			 (unsigned long long)w->world->seed, w->evicted, w->moved, w->now.unbound,
			 w->now.leaving);
}
