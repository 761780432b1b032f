/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/account_machine.h"

/*
 * iowait goes back now and then, when a task that waited is woken on another CPU (proc(5) says so):
 * then it stands still until it is where it was. More than this is a counter that began anew, as
 * after a migration of the machine.
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

void account_machine_start(struct account_machine *a, const struct machine *m)
{
	*a = (struct account_machine){.last = *m};
}

void account_machine_read(struct account_machine *a, const struct machine *m, struct slow_use *use)
{
	add_split(a, &m->cpu);
	if (m->psi_known)
		add_pressure(&a->last, m, use);
	a->last.psi_known = m->psi_known;
	a->last.psi_cpu_full_known = m->psi_cpu_full_known;
}

struct cpu_split account_machine_take_split(struct account_machine *a)
{
	struct cpu_split split = a->split;

	a->split = (struct cpu_split){0};
	return split;
}
