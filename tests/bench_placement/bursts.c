/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench_placement/bursts.h"

#include <math.h>

#include "tests/lab.h"

/* SplitMix64: the seed and the number of the draw decide. */
static double unit_of(uint64_t seed, uint64_t which)
{
	uint64_t z = seed * 0x9e3779b97f4a7c15ULL + which * 0xd1342543de82ef95ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	z ^= z >> 31;
	return (double)(z >> 11) / (double)(1ULL << 53);
}

/* --- pods ------------------------------------------------------------------------------------- */

static void make_exact(double unit, struct burst_pod *p)
{
	(void)unit;
	*p = (struct burst_pod){500, 1000, 512, 500};
}

static void make_mixed(double unit, struct burst_pod *p)
{
	static const int64_t sizes[] = {100, 200, 300, 500, 1000};
	int64_t size = sizes[(int)(unit * 5)];

	*p = (struct burst_pod){size, 2 * size, size, (double)size};
}

static void make_low(double unit, struct burst_pod *p)
{
	(void)unit;
	*p = (struct burst_pod){100, 1000, 256, 800};
}

static void make_none(double unit, struct burst_pod *p)
{
	*p = (struct burst_pod){.use_milli = 200 + 200 * unit};
}

static void make_grown(double unit, struct burst_pod *p)
{
	*p = (struct burst_pod){200, 2000, 256, 700 + 200 * unit};
}

static void make_unlimited(double unit, struct burst_pod *p)
{
	*p = (struct burst_pod){300, 0, 256, 300 + 200 * unit};
}

static void make_wide(double unit, struct burst_pod *p)
{
	(void)unit;
	*p = (struct burst_pod){250, 4000, 256, 80};
}

static void make_large(double unit, struct burst_pod *p)
{
	(void)unit;
	*p = (struct burst_pod){900, 1800, 512, 900};
}

const struct burst bursts[] = {
	{"exact", "requests = use", 100, TROUBLE_NONE, 0, make_exact},
	{"mixed", "mixed sizes", 150, TROUBLE_NONE, 0, make_mixed},
	{"low", "requests too low", 100, TROUBLE_NONE, 0, make_low},
	{"none", "no requests", 200, TROUBLE_NONE, 0, make_none},
	{"grown", "known workload grows", 100, TROUBLE_NONE, GROWN_PODS, make_grown},
	{"unlimited", "no limits", 120, TROUBLE_NONE, 0, make_unlimited},
	{"wide", "limits far above use", 160, TROUBLE_NONE, 0, make_wide},
	{"large", "160 of 900m", 160, TROUBLE_NONE, 0, make_large},
	{"hot", "a node turns hot", 100, TROUBLE_HOT, 0, make_exact},
	{"silent", "agents silent", 150, TROUBLE_SILENT, 0, make_mixed},
	{"killed", "aggregator killed", 100, TROUBLE_KILLED, 0, make_exact},
	{"restarted", "aggregator restarted", 100, TROUBLE_RESTARTED, 0, make_exact},
	{"stopped", "aggregator hangs", 100, TROUBLE_STOPPED, 0, make_exact},
};
const size_t burst_count = sizeof(bursts) / sizeof(bursts[0]);

void burst_make(const struct burst *b, uint64_t seed, struct burst_pod *pods)
{
	for (size_t i = 0; i < b->pods + b->running; i++)
		b->make(unit_of(seed, 1000 + i), &pods[i]);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/*
 * Use is 8 to 62 % of a node, little on most. Requests are nearly the same everywhere: a scheduler
 * that counts requests has filled these nodes.
 */
void burst_make_resident(uint64_t seed, size_t node, struct burst_pod *pod)
{
	double rank = fmod((double)node / NODES + unit_of(seed, 1), 1);
	double use = 0.08 + 0.54 * pow(rank, 1.6);
	double request = 0.35 + 0.02 * (unit_of(seed, 100 + node) - 0.5);

	*pod = (struct burst_pod){
		.request_milli = (int64_t)(request * LAB_NODE_CPU_MILLI),
		.limit_milli = (int64_t)(1.5 * fmax(request, use) * LAB_NODE_CPU_MILLI),
		.request_mib = 8192,
		.use_milli = use * LAB_NODE_CPU_MILLI,
	};
}
