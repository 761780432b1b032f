/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is and what is promised of it is summed over the API's nodes, where one is followed:
 * nobody schedules to others. What is used is summed over nodes that were heard within 5 minutes,
 * the API's or not; the capacity of those whose newest use is known stands beside it, so that a
 * share of it is one. What no node tells is left out, rather than 0: another program's answer may
 * have no newest use, or only one window. Means add up; deviations and percentiles of different
 * nodes do not, and are left out.
 */
#include "aggregator/api/nodes_total.h"

#include <math.h>

#include "aggregator/api/view_json.h"
#include "aggregator/policy/arith.h"

void nodes_total_init(struct nodes_total *t, enum limits_unlimited policy, bool api)
{
	struct nodes_use *u = &t->use;

	*t = (struct nodes_total){.policy = policy, .api = api};
	u->cpu_capacity_milli = u->mem_capacity_bytes = NAN;
	u->cpu_allocatable_milli = u->mem_allocatable_bytes = NAN;
	for (int i = 0; i < USAGE_AVERAGED_COUNT; i++) {
		u->latest[i] = NAN;
		for (int w = 0; w < WINDOWS; w++)
			u->mean[i][w] = NAN;
	}
}

void nodes_total_fini(struct nodes_total *t)
{
	resources_fini(&t->capacity);
	resources_fini(&t->allocatable);
	resources_fini(&t->sums.requests);
	resources_fini(&t->sums.limits);
}

static const struct resources *measured(int64_t cpu_milli, int64_t mem_bytes,
					struct resources *room)
{
	*room = RESOURCES_NONE;
	if (cpu_milli > 0)
		resources_set(room, RESOURCE_CPU, cpu_milli);
	if (mem_bytes > 0)
		resources_set(room, RESOURCE_MEMORY, mem_bytes);
	return room;
}

const struct resources *nodes_capacity(const struct view_node *n, struct resources *room)
{
	return n->model && n->model->node
		       ? &n->model->node->capacity
		       : measured(n->cpu_capacity_milli, n->mem_capacity_bytes, room);
}

const struct resources *nodes_allocatable(const struct view_node *n, struct resources *room)
{
	return n->model && n->model->node
		       ? &n->model->node->allocatable
		       : measured(n->cpu_allocatable_milli, n->mem_allocatable_bytes, room);
}

void nodes_write_resources(struct jsonw *w, const char *key, const struct resources *r)
{
	if (r->has || r->extended_count)
		view_json_write_resources(w, key, r, ABSENT_LEFT_OUT);
}

static void add_sums(struct view_sums *to, const struct view_sums *more)
{
	resources_add(&to->requests, &more->requests);
	resources_add(&to->limits, &more->limits);
	for (int id = 0; id < POD_LOADS; id++) {
		to->load[id].unlimited += more->load[id].unlimited;
		to->kernel[id].limits =
			add_saturating(to->kernel[id].limits, more->kernel[id].limits);
		to->kernel[id].unlimited += more->kernel[id].unlimited;
	}
	to->kernel_unknown += more->kernel_unknown;
}

static void add_amount(double *to, double amount)
{
	*to = isnan(*to) ? amount : *to + amount;
}

static void add_capacity(double *to, int64_t capacity, const struct latest *use)
{
	if (use->known && capacity > 0)
		add_amount(to, (double)capacity);
}

static void add_use(struct nodes_use *to, const struct view_node *n)
{
	const struct usage_summary *u = &n->stats->usage;

	to->nodes++;
	add_capacity(&to->cpu_capacity_milli, n->cpu_capacity_milli, &u->latest.cpu_milli);
	add_capacity(&to->mem_capacity_bytes, n->mem_capacity_bytes, &u->latest.mem_bytes);
	add_capacity(&to->cpu_allocatable_milli, n->cpu_allocatable_milli, &u->latest.cpu_milli);
	add_capacity(&to->mem_allocatable_bytes, n->mem_allocatable_bytes, &u->latest.mem_bytes);
	for (int i = 0; i < USAGE_AVERAGED_COUNT; i++) {
		if (u->latest.of[i].known)
			add_amount(&to->latest[i], (double)u->latest.of[i].value);
		for (int k = 0; k < WINDOWS; k++)
			if (u->windows[k].averaged[i].known)
				add_amount(&to->mean[i][k], u->windows[k].averaged[i].mean);
	}
}

void nodes_total_add(struct nodes_total *t, const struct view_node *n, int64_t now_ns)
{
	bool known = n->model && n->model->node;
	enum freshness state = node_stats_freshness(n->stats, now_ns);

	t->nodes++;
	t->states[state]++;
	if (known) {
		t->known++;
		t->ready += n->model->node->ready;
		t->unschedulable += n->model->node->unschedulable;
		t->pods += n->sums.pods;
		add_sums(&t->sums, &n->sums);
		limits_add(&t->shares, n, t->policy);
	}
	if (known || !t->api) {
		struct resources room;

		resources_add(&t->capacity, nodes_capacity(n, &room));
		resources_add(&t->allocatable, nodes_allocatable(n, &room));
	}
	if (state == FRESH || state == LATE)
		add_use(&t->use, n);
}

static void write_sum(struct jsonw *w, const char *key, double latest, const double mean[WINDOWS])
{
	bool known = !isnan(latest);

	for (int i = 0; i < WINDOWS; i++)
		known |= !isnan(mean[i]);
	if (!known)
		return;
	jsonw_key_object(w, key);
	if (!isnan(latest)) {
		jsonw_key_object(w, "latest");
		jsonw_key_fixed(w, "value", latest, 3);
		jsonw_object_close(w);
	}
	jsonw_key_object(w, "windows");
	for (int i = 0; i < WINDOWS; i++) {
		if (isnan(mean[i]))
			continue;
		jsonw_key_object(w, window_name[i]);
		jsonw_key_fixed(w, "mean", mean[i], 3);
		jsonw_object_close(w);
	}
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_amounts(struct jsonw *w, const char *key, double cpu, double mem)
{
	jsonw_key_object(w, key);
	jsonw_key_known(w, "cpuMillicores", cpu, 0);
	jsonw_key_known(w, "memoryBytes", mem, 0);
	jsonw_object_close(w);
}

static void write_use(struct jsonw *w, const struct nodes_use *u)
{
	jsonw_key_object(w, "measured");
	jsonw_key_int(w, "nodes", (int64_t)u->nodes);
	write_amounts(w, "capacity", u->cpu_capacity_milli, u->mem_capacity_bytes);
	write_amounts(w, "allocatable", u->cpu_allocatable_milli, u->mem_allocatable_bytes);
	jsonw_object_close(w);
	jsonw_key_object(w, "usage");
	for (int i = 0; i < USAGE_AVERAGED_COUNT; i++)
		write_sum(w, usage_latest[i].key, u->latest[i], u->mean[i]);
	jsonw_object_close(w);
}

void nodes_total_write(struct jsonw *w, const struct nodes_total *t)
{
	jsonw_key_object(w, "total");
	jsonw_key_int(w, "nodes", (int64_t)t->nodes);
	if (t->api) {
		jsonw_key_int(w, "knownToApi", (int64_t)t->known);
		jsonw_key_int(w, "ready", (int64_t)t->ready);
		jsonw_key_int(w, "unschedulable", (int64_t)t->unschedulable);
	}
	jsonw_key_object(w, "source");
	for (int state = FRESH; state <= NEVER; state++)
		jsonw_key_int(w, freshness_name((enum freshness)state), (int64_t)t->states[state]);
	jsonw_object_close(w);
	nodes_write_resources(w, "capacity", &t->capacity);
	nodes_write_resources(w, "allocatable", &t->allocatable);
	if (t->api) {
		view_json_write_resources(w, "requests", &t->sums.requests, ABSENT_ZERO);
		view_json_write_limits(w, &t->sums);
		view_json_write_ratio(w, &t->shares);
		jsonw_key_int(w, "pods", (int64_t)t->pods);
	}
	write_use(w, &t->use);
	jsonw_object_close(w);
}
