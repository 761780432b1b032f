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
#include <stdlib.h>
#include <string.h>

#include "aggregator/verify/verify_internal.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

enum { HOURS = 24, STEADY = HOURS }; /* of arrays by hour: the value beside the peaks */

static const double EXPIRED_S = 300, CPU_SLACK = 1, MEM_SLACK = 4096; /* for rounding */

/* A pod's, a node's own, or a sum. */
struct use {
	bool known;
	double variance; /* milli^2 */
	double cpu[HOURS + 1], mem[HOURS + 1]; /* milli, bytes; STEADY: mean and maximum */
};

struct verify_use {
	const struct verify_world *w;
	int64_t now_ns;
	struct use *pods, *nodes; /* owned; nodes: beyond their measured pods */
	const cJSON **stats; /* owned; by node: its measurements, or NULL */
	int *home; /* owned; by pod: its node in the snapshot */
};

static void add(struct use *sum, const struct use *one, double by)
{
	sum->variance += by * one->variance;
	for (int h = 0; h <= STEADY; h++) {
		sum->cpu[h] += by * one->cpu[h];
		sum->mem[h] += by * one->mem[h];
	}
}

static struct use steady(double cpu, double variance, double mem)
{
	struct use u = {.known = true, .variance = fmax(variance, 0)};

	for (int h = 0; h <= STEADY; h++) {
		u.cpu[h] = fmax(cpu, 0);
		u.mem[h] = fmax(mem, 0);
	}
	return u;
}

static double seconds_at(const cJSON *object, const char *path)
{
	int64_t ns;

	return timefmt_parse(verify_text(object, path, ""), &ns, NULL) ? NAN : (double)ns / 1e9;
}

/* The longest window that is covered by measurements, else the shortest there is. */
static const cJSON *window_of(const cJSON *stats, bool node)
{
	static const char *const names[] = {"15m", "10m", "5m"};
	static const double lengths[] = {900, 600, 300};
	const cJSON *found = NULL;

	for (int i = 0; i < 3; i++) {
		const cJSON *w = verify_get(verify_at(stats, "usage.windows"), names[i]);
		double reach =
			seconds_at(w, "cpuMillicores.end") - seconds_at(w, "cpuMillicores.start");

		if (!verify_get(w, "cpuMillicores") || !verify_get(w, "memoryBytes"))
			continue;
		found = w;
		if (!node || (reach >= lengths[i] - 10 &&
			      verify_number(w, "counts.seconds", 0) >= lengths[i] / 2))
			break;
	}
	return found;
}

static struct use use_of(const cJSON *stats, bool node)
{
	const cJSON *w = window_of(stats, node), *mem = verify_get(w, "workingSetBytes");
	double sigma = verify_number(w, "cpuMillicores.stddev", 0);

	if (!w)
		return (struct use){0};
	mem = mem ? mem : verify_get(w, "memoryBytes");
	return steady(verify_number(w, "cpuMillicores.mean", 0), sigma * sigma,
		      verify_number(mem, "max", verify_number(mem, "mean", 0)));
}

/* The oldest hour is first. */
static void read_peaks(const cJSON *stats, const char *key, double hours[HOURS])
{
	double end = seconds_at(stats, "hourlyPeaks.end");
	const cJSON *item = verify_first(verify_get(verify_get(stats, "hourlyPeaks"), key));

	for (int i = 0; item && i < HOURS && end >= 0; item = item->next, i++)
		if (cJSON_IsNumber(item))
			hours[((int64_t)(end / 3600) + i) % HOURS] = item->valuedouble;
}

static void read_pod(struct verify_use *u, const struct verify_index *pods, const cJSON *stats)
{
	int at = verify_find(pods, verify_text(stats, "uid", ""));

	if (at < 0 || u->w->where[at] < 0 || verify_has_ended(u->w->pods[at]) ||
	    !verify_equal(verify_text(stats, "node", ""),
			  verify_name(u->w->nodes[u->w->where[at]])))
		return;
	u->pods[at] = use_of(stats, false);
	read_peaks(stats, "cpuMillicores", u->pods[at].cpu);
	read_peaks(stats, "workingSetBytes", u->pods[at].mem);
}

/* A node's own part, after all pods are read. */
static void read_nodes(struct verify_use *u)
{
	for (size_t i = 0; i < u->w->node_count; i++)
		u->nodes[i] = use_of(u->stats[i], true);
	for (size_t i = 0; i < u->w->pod_count; i++)
		if (u->pods[i].known)
			add(&u->nodes[u->w->where[i]], &u->pods[i], -1);
	for (size_t i = 0; i < u->w->node_count; i++) {
		const struct use *own = &u->nodes[i];

		if (own->known)
			u->nodes[i] = steady(own->cpu[STEADY], own->variance, own->mem[STEADY]);
	}
}

struct verify_use *verify_use_new(const struct verify_world *w, const struct verify_index *nodes,
				  const struct verify_index *pods, const cJSON *snapshot,
				  int64_t now_ns)
{
	struct verify_use *u = mem_zalloc(1, sizeof(*u));
	int at;

	u->w = w;
	u->now_ns = now_ns;
	u->pods = mem_zalloc(w->pod_count + 1, sizeof(*u->pods));
	u->nodes = mem_zalloc(w->node_count + 1, sizeof(*u->nodes));
	u->stats = mem_zalloc(w->node_count + 1, sizeof(const cJSON *));
	u->home = mem_zalloc(w->pod_count + 1, sizeof(*u->home));
	memcpy(u->home, w->where, w->pod_count * sizeof(*u->home));
	VERIFY_EACH (item, verify_at(snapshot, "usage.pods"))
		read_pod(u, pods, item);
	VERIFY_EACH (item, verify_at(snapshot, "usage.nodes"))
		if ((at = verify_find(nodes, verify_text(item, "name", ""))) >= 0)
			u->stats[at] = item;
	read_nodes(u);
	return u;
}

void verify_use_free(struct verify_use *u)
{
	free(u->pods);
	free(u->nodes);
	free(u->stats);
	free(u->home);
	free(u);
}

bool verify_measured(const struct verify_use *u, const struct verify_plan *p,
		     const struct verify_question *q)
{
	const cJSON *stats = u->stats[q->node_at];
	double age = (double)u->now_ns / 1e9 - seconds_at(stats, "end");
	double waits = fmax(verify_number(stats, "usage.windows.5m.counts.pressure.cpu", 0),
			    verify_number(stats, "usage.windows.5m.counts.pressure.memory", 0));

	if (!p->capped)
		return true;
	if (!u->nodes[q->node_at].known || !(age <= EXPIRED_S))
		return verify_refuse(q, "%s is not measured, or not since %.0f s",
				     verify_name(q->node), EXPIRED_S);
	return waits <= p->contention ||
	       verify_refuse(q, "tasks of %s wait for %.3f of the time, the most is %.3f",
			     verify_name(q->node), waits, p->contention);
}

/* A pod that came from elsewhere without being measured: its requests. */
static struct use brought(const struct verify_use *u, size_t pod, size_t node)
{
	const cJSON *json = u->w->pods[pod];

	if (u->pods[pod].known || u->home[pod] == (int)node)
		return u->pods[pod];
	/* The planner may reserve less than the requests of a pod that never ran. */
	if (u->home[pod] < 0)
		return (struct use){0};
	return steady((double)verify_request(json, "cpu"), 0,
		      (double)verify_request(json, "memory"));
}

bool verify_use_cap(const struct verify_use *u, const struct verify_plan *p,
		    const struct verify_question *q)
{
	const cJSON *allocatable = verify_at(q->node, "status.allocatable");
	double cpu_most = p->cpu_share * (double)verify_amount(allocatable, "cpu");
	double mem_most = p->mem_share * (double)verify_amount(allocatable, "memory");
	struct use sum = u->nodes[q->node_at], one;
	double cpu, mem = 0;

	if (!p->capped || !sum.known)
		return true;
	for (size_t i = 0; i < u->w->pod_count; i++)
		if (u->w->where[i] == (int)q->node_at && !verify_has_ended(u->w->pods[i])) {
			one = brought(u, i, q->node_at);
			add(&sum, &one, 1);
		}
	cpu = sum.cpu[STEADY] + p->z * sqrt(fmax(sum.variance, 0));
	for (int h = 0; h <= STEADY; h++) {
		cpu = fmax(cpu, sum.cpu[h]);
		mem = fmax(mem, sum.mem[h]);
	}
	return (cpu <= cpu_most + CPU_SLACK && mem <= mem_most + MEM_SLACK) ||
	       verify_refuse(q, "%s would use %.0f of %.0f millicores and %.0f of %.0f bytes",
			     verify_name(q->node), cpu, cpu_most, mem, mem_most);
}
