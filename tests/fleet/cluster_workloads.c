/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people run, and how it behaves. Sizes are such that at 30 pods per node half of what nodes
 * have is requested; with more or fewer pods each asks for less or more.
 *
 * request         of six sizes, small ones more often limit               twice the request; one in
 * six has it equal (Guaranteed), one in three has none for CPU use              see
 * workload_make_pattern(): what is asked for and what is used have little to do with each other
 */
#include <stdio.h>
#include <string.h>

#include "shared/clock.h"
#include "tests/fleet/cluster.h"

#define MIB    (1024.0 * 1024.0)
#define GIB    (1024.0 * MIB)
#define DAY_NS (86400 * NS_PER_SEC)

enum { HASH_SHAPE = 201, HASH_SIZE, HASH_MEMORY, HASH_REPLICAS, HASH_KIND, HASH_LIMIT, HASH_FLAGS };
enum { HASH_USE = 301, HASH_PERIOD, HASH_DUTY, HASH_PHASE, HASH_GROWTH, HASH_GROW_PHASE };

/* --- shape ------------------------------------------------------------------------------------ */

struct role {
	const char *name;
	enum workload_kind kind;
	bool volume;
};

/*
 * Which workload of its namespace it is decides its name: the roles of an application, application
 * by application.
 */
static void take_name(const struct cluster *c, size_t index, bool batch, struct workload *w)
{
	static const char *const apps[] = {"cart",  "catalog", "orders",  "ledger",
					   "query", "thumbs",  "profile", "gateway"};
	static const struct role roles[] = {{"api", WORKLOAD_DEPLOYMENT, false},
					    {"worker", WORKLOAD_DEPLOYMENT, false},
					    {"cache", WORKLOAD_STATEFUL_SET, false},
					    {"web", WORKLOAD_DEPLOYMENT, false},
					    {"db", WORKLOAD_STATEFUL_SET, true}};
	static const char *const jobs[] = {"report", "reindex", "encode", "train", "export"};
	enum { APPS = sizeof(apps) / sizeof(apps[0]), ROLES = sizeof(roles) / sizeof(roles[0]) };
	uint32_t theirs = c->namespaces - 1;
	size_t nth = index / theirs;
	const struct role *role = &roles[nth % ROLES];
	/* Another application for each round of the roles: no two of a namespace have one name. */
	const char *app = apps[(nth / ROLES + index % theirs) % APPS];

	w->namespace = 1 + (uint32_t)(index % theirs);
	w->kind = batch ? WORKLOAD_JOB : role->kind;
	w->volume = !batch && role->volume;
	snprintf(w->name, sizeof(w->name), "%s-%s", app, batch ? jobs[nth % 5] : role->name);
	if (nth >= (size_t)ROLES * APPS || batch)
		snprintf(w->name, sizeof(w->name), "%s-%s-%zu", app,
			 batch ? jobs[nth % 5] : role->name, nth);
	if (w->kind == WORKLOAD_DEPLOYMENT && !c->config.movable &&
	    cluster_unit(c, HASH_KIND, index) < 0.03)
		w->kind = WORKLOAD_BARE;
}

static uint32_t replicas_of(const struct cluster *c, size_t index, const struct workload *w)
{
	static const uint32_t counts[] = {1, 1, 2, 2, 3, 3, 3, 5, 5, 8, 12, 20};
	uint32_t count = counts[cluster_hash(c, HASH_REPLICAS, index) % 12];
	uint32_t most = c->config.nodes / 2 + 1;

	if (w->kind == WORKLOAD_BARE)
		return 1;
	if (w->kind == WORKLOAD_STATEFUL_SET && count > 5)
		count = 5;
	return count < most ? count : most;
}

static enum pattern_kind pattern_of(const struct cluster *c, size_t index)
{
	double at = cluster_unit(c, HASH_USE, index);

	if (at < 0.33)
		return PATTERN_STEADY;
	if (at < 0.45)
		return PATTERN_DIURNAL;
	if (at < 0.70)
		return PATTERN_BURSTY;
	if (at < 0.78)
		return PATTERN_HOT;
	if (at < 0.84)
		return PATTERN_LEAKING;
	return at < 0.86 ? PATTERN_DYING : PATTERN_IDLE;
}

static void take_size(const struct cluster *c, size_t index, struct workload *w)
{
	static const int64_t sizes[] = {50,  50,  50,  100, 100, 100, 100,  250,
					250, 250, 250, 500, 500, 500, 1000, 2000};
	double per_pod = 30.0 / c->config.pods_per_node;
	double scale = per_pod > 1.5 ? 1.5 : per_pod;
	uint64_t limit = cluster_hash(c, HASH_LIMIT, index) % 6;
	int64_t memory = 1 + (int64_t)(cluster_hash(c, HASH_MEMORY, index) % 3);

	w->cpu_milli = (int64_t)((double)sizes[cluster_hash(c, HASH_SIZE, index) % 16] * scale);
	if (w->cpu_milli < 10)
		w->cpu_milli = 10;
	w->mem_bytes = w->cpu_milli * memory * (int64_t)MIB;
	w->cpu_limit_milli = w->cpu_milli * (limit ? 2 : 1);
	w->mem_limit_bytes = w->mem_bytes * (limit ? 2 : 1);
	/* Who is hot or leaks must have what it runs into. */
	if (limit >= 4 && w->pattern != PATTERN_HOT)
		w->cpu_limit_milli = 0;
	if (w->pattern == PATTERN_IDLE && limit % 3 == 1)
		w->cpu_milli = w->mem_bytes = w->cpu_limit_milli = w->mem_limit_bytes = 0;
}

void workload_make(const struct cluster *c, size_t index, bool batch, struct workload *w)
{
	uint64_t flags = cluster_hash(c, HASH_FLAGS, index);

	*w = (struct workload){
		.containers = c->config.containers,
		.priority = batch ? PRIORITY_BATCH : PRIORITY_STANDARD,
		.pattern = pattern_of(c, index),
		.batch = batch,
	};
	take_name(c, index, batch, w);
	w->replicas = replicas_of(c, index, w);
	take_size(c, index, w);
	if (!batch && flags % 8 == 0)
		w->priority = PRIORITY_HIGH;
	if (batch || w->replicas < 2)
		return;
	w->apart = w->volume || flags >> 8 & 1;
	w->spread = !w->apart && !c->config.movable && flags >> 9 & 1;
	w->budget = w->volume || flags >> 10 & 1;
	w->scratch = !w->volume && !c->config.movable && (flags >> 11) % 16 == 0;
}

void workload_make_daemon(uint32_t which, struct workload *w)
{
	static const struct workload daemons[DAEMONS] = {
		{.name = "evenkeel-agent", .cpu_milli = 20, .mem_limit_bytes = 64},
		{.name = "node-exporter", .cpu_milli = 100, .mem_limit_bytes = 128},
		{.name = "kube-proxy", .cpu_milli = 50, .mem_limit_bytes = 0},
		{.name = "log-shipper", .cpu_milli = 100, .mem_limit_bytes = 256},
	};

	*w = daemons[which];
	w->kind = WORKLOAD_DAEMON_SET;
	w->mem_bytes = 64 * (int64_t)MIB;
	w->mem_limit_bytes *= (int64_t)MIB;
	w->containers = 1;
	w->priority = PRIORITY_NODE_CRITICAL;
	w->pattern = PATTERN_STEADY;
}

/* Asks for more than any node has left, so that there is something to wait for. */
void workload_make_pending(const struct cluster *c, struct workload *w)
{
	*w = (struct workload){
		.name = "backfill",
		.kind = WORKLOAD_JOB,
		.namespace = 1,
		.replicas = 1 + c->config.nodes / 100,
		.containers = c->config.containers,
		.cpu_milli = 30000,
		.mem_bytes = (int64_t)(40 * GIB),
		.priority = PRIORITY_STANDARD,
		.pattern = PATTERN_STEADY,
	};
}

/* --- use -------------------------------------------------------------------------------------- */

struct behaviour {
	double low, high; /* of the request; above the limit where there is one: throttled */
	double period_s, period_spread_s;
	double on, on_spread; /* share of the period */
};

static const struct behaviour behaviours[PATTERNS] = {
	[PATTERN_STEADY] = {0.40, 0.55, 4, 6, 0.5, 0.1},
	[PATTERN_BURSTY] = {0.10, 1.50, 10, 50, 0.1, 0.3},
	[PATTERN_HOT] = {1.20, 3.00, 20, 40, 0.6, 0.3},
	[PATTERN_LEAKING] = {0.30, 0.50, 4, 6, 0.5, 0.1},
	[PATTERN_IDLE] = {0.00, 0.02, 30, 60, 0.05, 0.05},
	/* High stays below every limit; its period is a day. */
	[PATTERN_DIURNAL] = {0.10, 0.75, 0, 0, 0, 0},
	[PATTERN_DYING] = {0.00, 0.60, 60, 240, 0.5, 0.3},
};

/* Above this many of a BestEffort pod's own: it asks for nothing, so it uses as little. */
#define UNASKED_MILLI 40.0
#define UNASKED_BYTES (48 * MIB)

static int64_t spread_ns(double seconds, double spread, double unit)
{
	return (int64_t)((seconds + spread * unit) * 1000) * NS_PER_MS;
}

static void make_cpu(const struct cluster *c, const struct workload *w, size_t pod,
		     struct pattern *p)
{
	const struct behaviour *b = &behaviours[w->pattern];
	/* One replica does not get what the next gets. */
	double asked = (w->cpu_milli ? (double)w->cpu_milli : UNASKED_MILLI) *
		       (0.7 + 0.6 * cluster_unit(c, HASH_USE, ~(uint64_t)pod));

	p->low_milli = b->low * asked;
	p->high_milli = b->high * asked;
	p->limit_milli = (double)w->cpu_limit_milli;
	p->period_ns =
		spread_ns(b->period_s, b->period_spread_s, cluster_unit(c, HASH_PERIOD, pod));
	p->on_ns = (int64_t)((b->on + b->on_spread * cluster_unit(c, HASH_DUTY, pod)) *
			     (double)p->period_ns);
	if (w->pattern == PATTERN_DIURNAL) {
		/*
		 * Whoever is awake when others are: the night is the same for all, give or take an
		 * hour or two.
		 */
		p->smooth = true;
		p->period_ns = c->config.day_ns ? c->config.day_ns : DAY_NS;
		p->phase_ns = (int64_t)(cluster_unit(c, HASH_PHASE, w->first_pod) * 0.1 *
					(double)p->period_ns);
		return;
	}
	p->dies = w->pattern == PATTERN_DYING;
	p->phase_ns = (int64_t)(cluster_unit(c, HASH_PHASE, pod) * (double)p->period_ns);
}

static void make_memory(const struct cluster *c, const struct workload *w, size_t pod,
			struct pattern *p)
{
	double asked = w->mem_bytes ? (double)w->mem_bytes : UNASKED_BYTES;

	p->mem_bytes = asked * (0.4 + 0.4 * cluster_unit(c, HASH_GROWTH, pod));
	p->leaks = w->pattern == PATTERN_LEAKING && w->mem_limit_bytes;
	/* A leak goes up to the limit; page cache stays below the request. */
	p->grow_bytes = p->leaks ? (double)w->mem_limit_bytes - p->mem_bytes : asked - p->mem_bytes;
	p->grow_ns = spread_ns(120, 360, cluster_unit(c, HASH_GROWTH, ~(uint64_t)pod));
	p->grow_phase_ns = (int64_t)(cluster_unit(c, HASH_GROW_PHASE, pod) * (double)p->grow_ns);
}

void workload_make_pattern(const struct cluster *c, const struct workload *w, size_t pod,
			   struct pattern *p)
{
	*p = (struct pattern){0};
	make_cpu(c, w, pod, p);
	make_memory(c, w, pod, p);
}

/* --- what follows from it --------------------------------------------------------------------- */

enum qos_class cluster_qos(const struct workload *w)
{
	if (!w->cpu_milli && !w->mem_bytes && !w->cpu_limit_milli && !w->mem_limit_bytes)
		return QOS_BEST_EFFORT;
	if (w->cpu_limit_milli == w->cpu_milli && w->mem_limit_bytes == w->mem_bytes)
		return QOS_GUARANTEED;
	return QOS_BURSTABLE;
}

double cluster_container_share(const struct workload *w, uint32_t k)
{
	if (w->containers == 1)
		return 1;
	return k ? 0.4 / (w->containers - 1) : 0.6;
}

int64_t cluster_container_part(const struct workload *w, uint32_t k, int64_t amount)
{
	int64_t others = w->containers - 1;
	int64_t each = others ? amount * 2 / 5 / others : 0;

	return k ? each : amount - others * each;
}
