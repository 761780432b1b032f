/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/preempt_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/view_fixture.h"

const char *const preempt_world_amounts[AMOUNTS] = {"cpu", "example.com/gpu"};
const char *const preempt_world_spaces[SPACES] = {"a", "b", "c", "d", "free"};

static uint64_t state;

static int draw(int below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int)((state >> 33) % (uint64_t)below);
}

static bool chance(int percent)
{
	return draw(100) < percent;
}

/* --- making one */

static void draw_quota(struct toy_quota *q)
{
	q->there = true;
	for (int r = 0; r < AMOUNTS; r++) {
		q->names[r] = chance(r == CPU ? 85 : 50);
		q->min[r] = draw(4) * 1000;
		q->max[r] = q->min[r] + draw(6) * 1000;
	}
	q->min_runtime = chance(15) ? 1000 : 0;
	q->window = chance(20) ? 600 : 0;
	q->evictions = 1 + draw(2);
}

static void draw_pod(struct world *w, struct toy_pod *p, int number)
{
	snprintf(p->name, sizeof(p->name), "p%d", number);
	p->space = draw(SPACES);
	p->node = draw(w->node_count);
	p->priority = chance(5) ? CRITICAL : draw(3) * 100;
	p->start = chance(15) ? -1 : draw(NOW_SECONDS);
	p->asks[CPU] = chance(92) ? (1 + draw(4)) * 500 : 0;
	p->asks[GPU] = chance(30) ? (1 + draw(2)) * 1000 : 0;
	p->db = chance(50);
	p->going = number >= 0 && chance(8);
}

/* Most that ask are owed something: others may have borrowed it. */
static void owe(struct toy_quota *q, int r)
{
	q->min[r] += 3000;
	q->max[r] += 3000;
}

void preempt_world_draw(struct world *w, uint64_t seed)
{
	state = seed * 2654435761ULL + 12345;
	*w = (struct world){.node_count = 1 + draw(NODES), .rule = draw(5), .soft = chance(40)};
	w->pod_count = 2 + draw(PODS - 1);
	for (int n = 0; n < w->node_count; n++) {
		w->room[n][CPU] = (1 + draw(4)) * 1000;
		w->room[n][GPU] = draw(4) * 1000;
		w->pods_max[n] = chance(20) ? 1 + draw(3) : 20;
	}
	for (int s = 0; s < SPACES - 1; s++)
		if (chance(90))
			draw_quota(&w->quotas[s]);
	for (int i = 0; i < w->pod_count; i++)
		draw_pod(w, &w->pods[i], i);
	draw_pod(w, &w->self, -1);
	snprintf(w->self.name, sizeof(w->self.name), "self");
	w->self.node = -1;
	if (chance(60))
		for (int r = 0; r < AMOUNTS; r++)
			owe(&w->quotas[w->self.space], r);
	w->budget_count = draw(BUDGETS + 1);
	for (int b = 0; b < w->budget_count; b++) {
		w->budget_space[b] = draw(SPACES);
		w->budget_allowed[b] = draw(3);
	}
	w->past_count = draw(4);
	for (int i = 0; i < w->past_count; i++)
		w->past[i] = (struct victim_past){.namespace = preempt_world_spaces[draw(SPACES)],
						  .at_ns = VIEW_FIXTURE_NOW_NS -
							   (int64_t)draw(1200) * 1000000000LL};
	if (!chance(60))
		return;
	for (int s = 0; s < SPACES; s++)
		w->gang_min[s] = 1 + draw(3);
	for (int i = 0; i < w->pod_count; i++)
		w->pods[i].gang = chance(90);
}

/* --- telling it to the product */

static const char *rule_of(const struct world *w)
{
	if (w->rule == 0)
		return "{'affinity':{'podAntiAffinity':{"
		       "'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'zone',"
		       "'namespaceSelector':{},'labelSelector':{'matchLabels':{'app':'db'}}}]}}}";
	if (w->rule == 1)
		return "{'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone',"
		       "'whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{"
		       "'app':'db'}}}]}";
	return "{}";
}

static cJSON *flat_of(const struct world *w, const struct toy_pod *p)
{
	char *text = mem_printf("{'pod':'%s','namespace':'%s','uid':'uid-%s','priority':%d,"
				"'labels':{'app':'%s','scheduling.x-k8s.io/pod-group':'%s'},"
				"'request':{'cpu':%d,'%s':%d}}",
				p->name, preempt_world_spaces[p->space], p->name, p->priority,
				p->db ? "db" : "web", p->gang ? "g" : "", p->asks[CPU],
				preempt_world_amounts[GPU], p->asks[GPU] / 1000);
	cJSON *flat = preempt_fixture_parse(text);

	if (p->node >= 0) {
		char node[16];

		snprintf(node, sizeof(node), "n%d", p->node);
		cJSON_AddStringToObject(flat, "node", node);
	} else {
		cJSON_AddItemToObject(flat, "spec", preempt_fixture_parse(rule_of(w)));
	}
	if (p->start >= 0)
		cJSON_AddNumberToObject(flat, "start", p->start);
	cJSON_AddBoolToObject(flat, "terminating", p->going);
	free(text);
	return flat;
}

static void put_pod(struct preempt_fixture *f, const struct world *w, const struct toy_pod *p)
{
	cJSON *flat = flat_of(w, p), *pod = preempt_fixture_pod(flat);

	preempt_fixture_put(f, OBJECT_POD, pod);
	cJSON_Delete(flat);
	cJSON_Delete(pod);
}

static void put_node(struct preempt_fixture *f, const struct world *w, int n)
{
	char *text = mem_printf("{'metadata':{'name':'n%d','labels':{'zone':'z%d'}},'status':{"
				"'allocatable':{'cpu':'%dm','%s':'%d','pods':'%d'}}}",
				n, n % 2, w->room[n][CPU], preempt_world_amounts[GPU],
				w->room[n][GPU] / 1000, w->pods_max[n]);

	place_fixture_put(&f->cluster, OBJECT_NODE, text);
	free(text);
}

static void put_budget(struct preempt_fixture *f, const struct world *w, int b)
{
	char *text = mem_printf("{'metadata':{'name':'b%d','namespace':'%s'},'spec':{'selector':{"
				"'matchLabels':{'app':'db'}}},'status':{'disruptionsAllowed':%d}}",
				b, preempt_world_spaces[w->budget_space[b]], w->budget_allowed[b]);

	place_fixture_put(&f->cluster, OBJECT_POD_DISRUPTION_BUDGET, text);
	free(text);
}

static void put_quota(struct preempt_fixture *f, const struct toy_quota *toy, int space)
{
	struct quota *q = preempt_fixture_quota(f, preempt_world_spaces[space], "{}", "{}");

	for (int r = 0; r < AMOUNTS; r++) {
		int unit = r == CPU ? 1 : 1000;

		if (!toy->names[r])
			continue;
		resources_set_named(&q->min, preempt_world_amounts[r], toy->min[r] / unit);
		resources_set_named(&q->max, preempt_world_amounts[r], toy->max[r] / unit);
	}
	q->min_runtime_ns = toy->min_runtime * 1000000000LL;
	q->evictions_max = (uint32_t)toy->evictions;
	q->evictions_ns = toy->window * 1000000000LL;
}

static void put_group(struct preempt_fixture *f, const struct world *w, int space)
{
	char *text =
		mem_printf("{'metadata':{'name':'g','namespace':'%s'},'spec':{'minMember':%d}}",
			   preempt_world_spaces[space], w->gang_min[space]);

	place_fixture_put(&f->cluster, OBJECT_COSCHEDULING_GROUP, text);
	free(text);
}

/* Without the pods of the mask. */
void preempt_world_build(struct preempt_fixture *f, const struct world *w, uint32_t without,
			 bool backwards)
{
	preempt_fixture_init(f, QUOTA_CORRECTED);
	f->options.pdb_hard = !w->soft;
	for (int i = 0; i < w->node_count; i++)
		put_node(f, w, backwards ? w->node_count - 1 - i : i);
	for (int i = 0; i < w->pod_count; i++) {
		int at = backwards ? w->pod_count - 1 - i : i;

		if (!(without & 1U << at))
			put_pod(f, w, &w->pods[at]);
	}
	for (int b = 0; b < w->budget_count; b++)
		put_budget(f, w, b);
	for (int i = 0; i < SPACES; i++) {
		int s = backwards ? SPACES - 1 - i : i;

		if (w->quotas[s].there)
			put_quota(f, &w->quotas[s], s);
		if (w->gang_min[s])
			put_group(f, w, s);
	}
	preempt_fixture_build(f, true);
}

struct kube_pod *preempt_world_record(const struct world *w)
{
	cJSON *flat = flat_of(w, &w->self);
	struct kube_pod *pod = preempt_fixture_record(flat);

	cJSON_Delete(flat);
	return pod;
}
