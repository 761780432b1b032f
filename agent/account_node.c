/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/account_node.h"

#define NS_PER_S 1000000000LL

/* Two readings, each up to one tick of 10 ms behind on every CPU. */
#define STAT_ROUNDING_NS 2e7

void account_node_start(struct account_node *n, const struct machine *m, int64_t mono_ns)
{
	*n = (struct account_node){
		.started = true,
		.busy_ns = m->cpu_busy_ns,
		.busy_at_ns = mono_ns,
	};
}

static void measure(struct account_node *n, const struct machine *m, int64_t mono_ns)
{
	double cpus = (double)m->cpu_capacity_milli / 1000, rounding = STAT_ROUNDING_NS * cpus;
	double span = (double)(mono_ns - n->busy_at_ns), rest;
	double busy = m->cpu_busy_ns > n->busy_ns ? (double)(m->cpu_busy_ns - n->busy_ns) : 0;

	if (busy > span * cpus + rounding)
		busy = span * cpus;
	rest = busy - (double)n->cgroups_ns + n->shortfall_ns;
	n->shortfall_ns = 0;
	if (rest < 0) {
		n->shortfall_ns = rest > -rounding ? rest : -rounding;
		rest = 0;
	}
	n->unsettled_ns += rest - n->assumed_ns;
	n->rate = rest / span;
	n->assumed_ns = 0;
	n->cgroups_ns = 0;
	n->busy_ns = m->cpu_busy_ns;
	n->busy_at_ns = mono_ns;
}

double account_node_tick(struct account_node *n, uint64_t cgroups_ns, const struct machine *m,
			 int64_t mono_ns, int64_t dt_ns, bool slow)
{
	double assumed = n->rate * (double)dt_ns;

	n->cgroups_ns += cgroups_ns;
	n->assumed_ns += assumed;
	if (slow || (m->cpu_busy_ns != n->busy_ns && mono_ns - n->busy_at_ns >= NS_PER_S))
		measure(n, m, mono_ns);
	return (double)cgroups_ns + assumed;
}

double account_node_take_unsettled(struct account_node *n)
{
	double unsettled = n->unsettled_ns;

	n->unsettled_ns = 0;
	return unsettled;
}
