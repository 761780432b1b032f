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

/* The longest window that is covered by measurements, else the shortest there is. */
static const cJSON *window_of(const cJSON *stats, bool node)
{
	static const char *const names[] = {"15m", "10m", "5m"};
	static const double lengths[] = {900, 600, 300};
	const cJSON *found = NULL;

	for (int i = 0; i < 3; i++) {
		const cJSON *w = document_at(document_at(stats, "usage.windows"), names[i]);
		double reach = document_time(w, "cpuMillicores.end") -
			       document_time(w, "cpuMillicores.start");

		if (!verify_get(w, "cpuMillicores") || !verify_get(w, "memoryBytes"))
			continue;
		found = w;
		if (!node || (reach >= lengths[i] - 10 &&
			      document_number(w, "counts.seconds") >= lengths[i] / 2))
			break;
	}
	return found;
}

static void read_windows(const cJSON *stats, bool node, struct verify_use *u)
{
	const cJSON *w = window_of(stats, node), *mem = verify_get(w, "workingSetBytes");
	double sigma = verify_number(w, "cpuMillicores.stddev", 0);

	*u = (struct verify_use){.stats = stats};
	mem = mem ? mem : verify_get(w, "memoryBytes");
	if (w)
		set_steady(u, verify_number(w, "cpuMillicores.mean", 0), sigma * sigma,
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
	double waits = fmax(verify_number(stats, "usage.windows.5m.counts.pressure.cpu", 0),
			    verify_number(stats, "usage.windows.5m.counts.pressure.memory", 0));

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
