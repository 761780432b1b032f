/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demand of 200,000 containers, each of a workload of its own: memory, also while a table holds all
 * records and each has changed since; time of a node's interval, and of a table.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "aggregator/state/workload_demand.h"
#include "aggregator/state/usage.h"
#include "shared/clock.h"
#include "shared/demand.h"
#include "tests/bench_report.h"
#include "tests/heap.h"

enum { NODES = 2000, CONTAINERS = 100, INTERVALS = 4, SAMPLES = 50, MIB = 1 << 20 };

#define START_NS (1700000000 * NS_PER_SEC)

/* Noise by half around a mean, and a tail: some twenty buckets. */
static void put_demand(struct interval *i, struct entry *e, uint32_t *random)
{
	struct histogram h = {0};

	for (int s = 0; s < SAMPLES; s++) {
		double share;

		*random = *random * 1664525 + 1013904223;
		share = (double)(*random >> 8) / 0x1p24;
		histogram_add(&h, e->ref % 97 * 10 * (share < 0.05 ? 5 * share : 0.5 + share),
			      HISTOGRAM_CPU_X0);
	}
	e->demand_at = (uint32_t)i->demand.len;
	demand_encode(&h, &i->demand);
	e->demand_len = (uint16_t)(i->demand.len - e->demand_at);
}

static struct interval *make_interval(int node, int sequence)
{
	struct interval *i = interval_new(CONTAINERS);
	uint32_t random = (uint32_t)(node * INTERVALS + sequence);

	i->sequence = (uint64_t)sequence + 1;
	i->start_ns = START_NS + sequence * 5 * NS_PER_SEC;
	i->end_ns = i->start_ns + 5 * NS_PER_SEC;
	i->node.cpu_capacity_milli = 16000;
	i->node.mem_capacity_bytes = 64LL << 30;
	for (uint32_t c = 0; c < CONTAINERS; c++) {
		struct entry *e = &i->entries[c];
		char name[64];

		e->ref = c + 1;
		e->starting = sequence == 0;
		e->limits = KERNEL_LIMITS_UNKNOWN;
		e->usage = (struct usage){.have = USAGE_MEMORY, .seconds = 5};
		snprintf(name, sizeof(name), "node-%d.slice/some-service-%u.service", node, c);
		if (sequence == 0) {
			e->fresh = true;
			e->entity = entity_new(e->ref, ENTITY_UNIT, name);
		}
		put_demand(i, e, &random);
	}
	return i;
}

/* Microseconds of a node's interval; less those without demand. */
static double tell_all(struct usage_state *u, int sequence, bool with_demand)
{
	double us = 0;

	for (int n = 0; n < NODES; n++) {
		struct interval *i = make_interval(n, sequence);
		struct usage_answer answer;
		int64_t begin_ns = clock_mono_ns();
		char name[16];

		for (size_t c = 0; c < i->entry_count && !with_demand; c++)
			i->entries[c].demand_len = 0;
		snprintf(name, sizeof(name), "node-%d", n);
		usage_apply(u, name, (const uint8_t *)"0123456789abcdef", NULL, i, i->end_ns,
			    &answer);
		us += (double)(clock_mono_ns() - begin_ns) / 1000;
		interval_free(i);
	}
	return us / NODES;
}

static double measure(bool with_demand, struct demand *d, double *us)
{
	const struct usage_limits limits = {NODES, 2 * CONTAINERS};
	struct usage_state *u = usage_new(&limits);
	size_t before = heap_bytes();
	double mib;

	usage_set_demand(u, d);
	for (int s = 0; s < INTERVALS; s++)
		*us = tell_all(u, s, with_demand);
	mib = (double)(heap_bytes() - before) / MIB;
	usage_free(u);
	return mib;
}

int main(void)
{
	struct demand *d = demand_new();
	struct demand_table *t;
	double without_us, with_us, without, with;
	size_t before;
	int64_t begin_ns;

	bench_begin("demand");
	without = measure(false, NULL, &without_us);
	with = measure(true, d, &with_us);
	bench_row("demand of 200,000 containers", "MiB", 200, 0, with - without);
	bench_row("a node's interval with 100 containers, demand alone", "us", NAN, 0,
		  with_us - without_us);
	begin_ns = clock_mono_ns();
	t = demand_table(d, START_NS);
	bench_row("first table of all", "ms", NAN, 0, (double)(clock_mono_ns() - begin_ns) / 1e6);
	demand_table_drop(t);
	begin_ns = clock_mono_ns();
	t = demand_table(d, START_NS + 61 * NS_PER_SEC);
	bench_row("next table of all", "ms", NAN, 0, (double)(clock_mono_ns() - begin_ns) / 1e6);
	before = heap_bytes();
	measure(true, d, &with_us);
	bench_row("the same, changed after a table", "MiB", 200, 0,
		  with - without + (double)(heap_bytes() - before) / MIB);
	demand_table_drop(t);
	demand_free(d);
	bench_end();
	return 0;
}
