/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/account_node.h"

#define NS_PER_S 1000000000LL

/* Of two readings, each up to one tick of 10 ms behind on every CPU. */
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

/* --- the machine's counters ------------------------------------------------------------------- */

/*
 * iowait goes back a little when a waiting task wakes on another CPU (proc(5)); it counts as
 * standing still. A larger step back is a counter that began anew, as after a migration.
 */
#define SLACK_NS 10000000000ULL

static uint64_t advance(uint64_t *last, uint64_t now)
{
	uint64_t before = *last;

	if (now < before && before - now < SLACK_NS)
		return 0;
	*last = now;
	return now > before ? now - before : 0;
}

static void add_split(struct account_machine *a, const struct cpu_split *now)
{
	struct cpu_split *last = &a->last.cpu, *sum = &a->split;

	sum->user_ns += advance(&last->user_ns, now->user_ns);
	sum->system_ns += advance(&last->system_ns, now->system_ns);
	sum->iowait_ns += advance(&last->iowait_ns, now->iowait_ns);
	sum->steal_ns += advance(&last->steal_ns, now->steal_ns);
}

static void add_pressure(struct machine *last, const struct machine *m, struct slow_use *use)
{
	bool known = last->psi_known && m->psi_known;

	use->have &= ~(uint32_t)(USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY | USAGE_STALL_CPU |
				 USAGE_STALL_MEMORY);
	use->contention_cpu_ns = advance(&last->psi_cpu_ns, m->psi_cpu_ns);
	use->contention_mem_ns = advance(&last->psi_mem_ns, m->psi_mem_ns);
	use->stall_cpu_ns = advance(&last->psi_cpu_full_ns, m->psi_cpu_full_ns);
	use->stall_mem_ns = advance(&last->psi_mem_full_ns, m->psi_mem_full_ns);
	if (!known)
		return;
	use->have |= USAGE_CONTENTION_MEMORY | USAGE_STALL_MEMORY;
	if (use->have & USAGE_THROTTLE)
		use->have |= USAGE_CONTENTION_CPU;
	if (last->psi_cpu_full_known && m->psi_cpu_full_known)
		use->have |= USAGE_STALL_CPU;
}

void account_machine_read(struct account_machine *a, const struct machine *m, struct slow_use *use)
{
	add_split(a, &m->cpu);
	if (m->psi_known)
		add_pressure(&a->last, m, use);
	a->last.psi_known = m->psi_known;
	a->last.psi_cpu_full_known = m->psi_cpu_full_known;
}
