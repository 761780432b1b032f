/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents tell what they kept oldest first. So a node whose newest measurement is as young as that of
 * a node that was never disturbed has told everything: that is looked for, a page of nodes after
 * the other, once all are fresh. What both sides spent until then is told too, as a fleet on the
 * same machine takes the time that the aggregator would have on one of its own.
 */
#include "tests/soak/catch_up.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_agent.h"
#include "tests/bench_report.h"
#include "tests/fleet/load.h"
#include "tests/process.h"

/* Between looks: pages of thousands of nodes are work for the aggregator. */
#define LOOK_NS (2 * NS_PER_SEC)

/* Of the fleet and its processes. */
static double fleet_cpu_seconds(pid_t fleet)
{
	char *path = mem_printf("/proc/%d/task/%d/children", (int)fleet, (int)fleet);
	FILE *children = fopen(path, "re");
	double sum = process_cpu(fleet).ran_s;
	int child;

	while (children && fscanf(children, "%d", &child) == 1)
		sum += process_cpu((pid_t)child).ran_s;
	if (children)
		fclose(children);
	free(path);
	return sum;
}

/* Of a page of nodes those whose newest measurement is young enough. */
static double current_in(const cJSON *page, double limit_s)
{
	const cJSON *node;
	double count = 0;

	cJSON_ArrayForEach (node, json_at(page, "items"))
		count += load_number(node, "source.ageSeconds") <= limit_s;
	return count;
}

static double count_current(const struct stack *s, double limit_s)
{
	char *path = mem_strdup("/v1/nodes?limit=500");
	double count = 0;

	while (path) {
		cJSON *page = stack_get(s, 0, path);
		const char *rest = cJSON_GetStringValue(json_at(page, "continue"));

		free(path);
		path = rest ? mem_printf("/v1/nodes?limit=500&continue=%s", rest) : NULL;
		count += current_in(page, limit_s);
		cJSON_Delete(page);
	}
	return count;
}

struct wait {
	const struct stack *stack;
	double nodes, limit_s;
	int64_t looked_ns;
};

static bool all_are_current(void *ctx)
{
	struct wait *w = ctx;
	int64_t now_ns = clock_mono_ns();

	if (now_ns - w->looked_ns < LOOK_NS)
		return false;
	w->looked_ns = now_ns;
	return count_current(w->stack, w->limit_s) >= w->nodes;
}

static double seconds_since(int64_t begin_ns)
{
	return (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC;
}

void catch_up_begin(struct catch_up *c, struct stack *s, pid_t fleet)
{
	*c = (struct catch_up){.begin_ns = clock_mono_ns(),
			       .fleet_cpu_before_s = fleet_cpu_seconds(fleet),
			       .current_s = (double)NAN};
	stack_start_aggregator(s, 0);
}

void catch_up_await(struct catch_up *c, struct stack *s, pid_t fleet, double nodes,
		    int64_t interval_ns, double timeout_s)
{
	struct wait w = {s, nodes, 2 * (double)interval_ns / NS_PER_SEC, 0};

	c->fresh_s = load_await_fresh(s, nodes, c->begin_ns, timeout_s);
	if (!isnan(c->fresh_s) && await(all_are_current, &w, timeout_s))
		c->current_s = seconds_since(c->begin_ns);
	c->intervals = load_applied(s);
	c->aggregator_cpu_s = process_cpu(s->aggregators[0].pid).ran_s;
	c->fleet_cpu_s = fleet_cpu_seconds(fleet) - c->fleet_cpu_before_s;
}

void catch_up_report(const struct catch_up *c, const char *prefix, double budget_s)
{
	bench_row_of(prefix, "  until all that was missed is told", "s", budget_s, c->current_s);
	bench_row_of(prefix, "  intervals told meanwhile", "intervals", (double)NAN, c->intervals);
	bench_row_of(prefix, "  of them in a second", "intervals", (double)NAN,
		     c->intervals / c->current_s);
	bench_row_of(prefix, "  CPU of the aggregator for each", "us", (double)NAN,
		     c->aggregator_cpu_s * 1e6 / c->intervals);
	bench_row_of(prefix, "  CPU of the simulator for each", "us", (double)NAN,
		     c->fleet_cpu_s * 1e6 / c->intervals);
	bench_row_of(prefix, "  CPU of the aggregator, of one core", "%", (double)NAN,
		     100 * c->aggregator_cpu_s / c->current_s);
	bench_row_of(prefix, "  CPU of the simulator, of one core", "%", (double)NAN,
		     100 * c->fleet_cpu_s / c->current_s);
}
