/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real use, from the measurements of a snapshot, and its cap:
 *
 *   CPU       mean of all + z * root of the sum of variances, within a share of the allocatable
 *   memory    the largest working sets of all, likewise
 *   by hour   the peaks of pods in each hour of the day (where a pod has none, the above), likewise
 *
 * A node's own part is what it uses beyond its measured pods, at least 0. A pod that is not measured
 * uses at least its requests where it comes, and is in its node's own part where it was: the least
 * that it may use. The planner takes more, so a cap that is exceeded here is exceeded.
 */
#include <math.h>

#include "aggregator/verify/verify_internal.h"

enum { HOURS = 24, STEADY = HOURS }; /* of arrays by hour: the value beside the peaks */

static const double EXPIRED_S = 300, CPU_SLACK = 1, MEM_SLACK = 4096; /* for rounding */

/* A pod's, a node's own, or a sum. */
struct verify_use {
	bool known;
	const cJSON *stats; /* what it was read from, or NULL */
	double variance; /* milli^2 */
	double cpu[HOURS + 1], mem[HOURS + 1]; /* milli, bytes; STEADY: mean and maximum */
};

static void add(struct verify_use *sum, const struct verify_use *one, double by)
{
	sum->variance += by * one->variance;
	for (int h = 0; h <= STEADY; h++) {
		sum->cpu[h] += by * one->cpu[h];
		sum->mem[h] += by * one->mem[h];
	}
}

/* The same in every hour. */
static void set_steady(struct verify_use *u, double cpu, double variance, double mem)
{
	u->known = true;
	u->variance = fmax(variance, 0);
	for (int h = 0; h <= STEADY; h++) {
		u->cpu[h] = fmax(cpu, 0);
		u->mem[h] = fmax(mem, 0);
	}
}

static const struct {
	const char *name, *measured; /* the latter: for how many seconds */
	double seconds;
} lengths[] = {{"15m", "contention.windows.15m.seconds", 900},
	       {"10m", "contention.windows.10m.seconds", 600},
	       {"5m", "contention.seconds", 300}};

enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static const cJSON *window_of(const cJSON *stats, const char *resource, int length)
{
	const cJSON *measured = document_at(document_at(stats, "usage"), resource);

	return object_json_find(document_at(measured, "windows"), lengths[length].name);
}

/* The longest window that is covered by measurements, else the shortest; LENGTHS: there is none. */
static int longest_of(const cJSON *stats, bool node)
{
	int found = LENGTHS;

	for (int i = 0; i < LENGTHS; i++) {
		const cJSON *w = window_of(stats, "cpuMillicores", i);

		if (!w || !window_of(stats, "memoryBytes", i))
			continue;
		found = i;
		if (!node ||
		    (document_time(w, "end") - document_time(w, "start") >=
			     lengths[i].seconds - 10 &&
		     document_number(stats, lengths[i].measured) >= lengths[i].seconds / 2))
			break;
	}
	return found;
}

static void read_windows(const cJSON *stats, bool node, struct verify_use *u)
{
	int length = longest_of(stats, node);
	const cJSON *cpu, *mem;
	double sigma;

	*u = (struct verify_use){.stats = stats};
	if (length == LENGTHS)
		return;
	cpu = window_of(stats, "cpuMillicores", length);
	mem = window_of(stats, "workingSetBytes", length);
	mem = mem ? mem : window_of(stats, "memoryBytes", length);
	sigma = verify_number(cpu, "stddev", 0);
	set_steady(u, verify_number(cpu, "mean", 0), sigma * sigma,
		   verify_number(mem, "max", verify_number(mem, "mean", 0)));
}

/* The oldest hour is first. */
static void read_peaks(const cJSON *stats, const char *path, double hours[HOURS])
{
	double end = document_time(stats, "hourlyPeaks.end");
	const cJSON *item = end >= 0 ? document_first(stats, path) : NULL;

	for (int i = 0; item && i < HOURS; item = item->next, i++)
		if (cJSON_IsNumber(item))
			hours[((int64_t)(end / 3600) + i) % HOURS] = item->valuedouble;
}

static void read_pod(struct verify_case *c, const cJSON *stats)
{
	int at = verify_find(&c->pods, verify_text(stats, "uid"));

	if (at < 0 || !verify_runs(&c->w, (size_t)at) ||
	    !document_is(stats, "node", verify_name(c->w.nodes[c->home[at]])))
		return;
	read_windows(stats, false, &c->pod_use[at]);
	read_peaks(stats, "hourlyPeaks.cpuMillicores", c->pod_use[at].cpu);
	read_peaks(stats, "hourlyPeaks.workingSetBytes", c->pod_use[at].mem);
}

void verify_read_use(struct verify_case *c, const cJSON *snapshot)
{
	struct verify_use *own = c->own_use = verify_own(c, c->w.node_count, sizeof(*own));
	int at;

	c->pod_use = verify_own(c, c->w.pod_count, sizeof(*c->pod_use));
	VERIFY_EACH (item, snapshot, "usage.pods")
		read_pod(c, item);
	VERIFY_EACH (item, snapshot, "usage.nodes")
		if ((at = verify_find(&c->nodes, verify_text(item, "name"))) >= 0)
			read_windows(item, true, &own[at]);
	for (size_t i = 0; i < c->w.pod_count; i++)
		if (c->pod_use[i].known)
			add(&own[c->home[i]], &c->pod_use[i], -1);
	for (size_t i = 0; i < c->w.node_count; i++)
		if (own[i].known)
			set_steady(&own[i], own[i].cpu[STEADY], own[i].variance,
				   own[i].mem[STEADY]);
}

bool verify_measured(const struct verify_question *q)
{
	const struct verify_case *c = q->c;
	const cJSON *stats = c ? c->own_use[q->node_at].stats : NULL;
	double waits = fmax(verify_number(stats, "contention.cpu", 0),
			    verify_number(stats, "contention.memory", 0));

	if (!c || !c->plan->capped)
		return true;
	if (!c->own_use[q->node_at].known || !(c->now - document_time(stats, "end") <= EXPIRED_S))
		return REFUSE(q, "the node is not measured, or not since %.0f s", EXPIRED_S);
	return waits <= c->plan->contention ||
	       REFUSE(q, "tasks of the node wait for %.3f of the time, the most is %.3f", waits,
		      c->plan->contention);
}

/* A pod that came from elsewhere without being measured uses its requests. */
static struct verify_use brought(const struct verify_case *c, size_t pod, size_t node)
{
	struct verify_use u = c->pod_use[pod];

	/* The planner may reserve less than the requests of a pod that never ran. */
	if (!u.known && c->home[pod] != (int)node && c->home[pod] >= 0)
		set_steady(&u, (double)verify_request(c->w.pods[pod], "cpu"), 0,
			   (double)verify_request(c->w.pods[pod], "memory"));
	return u;
}

bool verify_use_cap(const struct verify_question *q)
{
	const struct verify_case *c = q->c;
	const cJSON *allocatable = document_at(q->node, "status.allocatable");
	struct verify_use sum, one;
	double cpu, mem = 0, cpu_most, mem_most;

	if (!c || !c->plan->capped || !c->own_use[q->node_at].known)
		return true;
	sum = c->own_use[q->node_at];
	for (size_t i = 0; i < c->w.pod_count; i++)
		if (i == q->pod_at || (c->w.where[i] == (int)q->node_at && verify_runs(&c->w, i))) {
			one = brought(c, i, q->node_at);
			add(&sum, &one, 1);
		}
	cpu = sum.cpu[STEADY] + c->plan->z * sqrt(fmax(sum.variance, 0));
	for (int h = 0; h <= STEADY; h++) {
		cpu = fmax(cpu, sum.cpu[h]);
		mem = fmax(mem, sum.mem[h]);
	}
	cpu_most = c->plan->cpu_share * (double)verify_amount(allocatable, "cpu");
	mem_most = c->plan->mem_share * (double)verify_amount(allocatable, "memory");
	return (cpu <= cpu_most + CPU_SLACK && mem <= mem_most + MEM_SLACK) ||
	       REFUSE(q, "the node would use %.0f of %.0f millicores and %.0f of %.0f bytes", cpu,
		      cpu_most, mem, mem_most);
}
