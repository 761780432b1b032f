/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of cgroups and of the node out of the counters of each tick:
 *
 *	topology  --> tracks and workloads, only after a change of the topology (account_table)
 *	removals  --> remainders of removed cgroups, before the next tick (account_removal)
 *	readings  --> one delta per cgroup (account_track), rolled up from the leaves to the root,
 *		      sampled into the workloads (account_stats); then pods with detached containers
 *	/proc     --> the node: the root's counter, or the top-level cgroups and the rest of the
 *		      machine; its CPU split and pressure (account_node)
 *	tracks    --> samples of pods that wait for CPU, and of their neighbours (account_culprit)
 *
 * CPU use is a difference of counters, divided by the time since the cgroup's last sample and
 * weighted with that time. So mean times weight is the counters' difference, however many ticks are
 * missed.
 *
 * Nothing fails here. A value that a tier does not give is absent from the interval, never 0.
 */
#include "agent/account.h"

#include <stdlib.h>
#include <string.h>

#include "agent/account_culprit.h"
#include "agent/account_removal.h"
#include "agent/account_node.h"
#include "agent/account_stats.h"
#include "agent/account_table.h"
#include "agent/account_track.h"
#include "agent/cpusets.h"
#include "shared/demand.h"
#include "shared/histogram.h"
#include "shared/mem.h"

struct account {
	struct account_table table;
	struct removals removals;
	struct account_culprit culprit;
	bool started; /* the first tick set the baselines */
	int64_t last_ns; /* monotonic time of the last tick */
	int64_t slow_ns; /* of the last slow one, or of the first */

	/* the node, since the last publish */
	struct account_node node;
	struct account_machine counters;
	struct stats node_stats;
	struct histogram cpu_hist, mem_hist;
	uint64_t ticks;
	struct machine machine; /* newest */
};

struct account *account_new(void)
{
	return mem_zalloc(1, sizeof(struct account));
}

void account_free(struct account *a)
{
	if (!a)
		return;
	removals_fini(&a->removals);
	culprit_fini(&a->culprit.culprit);
	account_table_fini(&a->table);
	free(a);
}

/* The current tick. */
struct tick {
	struct topology *topology;
	int64_t mono_ns;
	int64_t dt_ns; /* since the tick before */
	int64_t slow_dt_ns; /* since the slow tick before */
	bool slow;
	int64_t capacity_milli;
	uint64_t top_ns; /* CPU time of the top-level cgroups, removed ones too */
	bool top_known; /* any of it is known */
	double node_used_ns; /* CPU time of the machine */
};

static void read_limits(struct account_table *table, const struct tick *k)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct cgroup *c = topology_at(k->topology, i);
		struct track *tr = &table->tracks[i];

		tr->cpus_milli = cpusets_limit(c->cpus, k->capacity_milli);
		track_read_limits(tr, &c->reading,
				  tr->parent == CGROUP_NONE ? NULL : &table->tracks[tr->parent]);
	}
	cpusets_share(table, k->topology);
	for (size_t i = 0; i < table->count; i++) {
		const struct track *tr = &table->tracks[i];

		if (tr->workload)
			workload_set_limits(tr->workload, &table->tracks[tr->holder].effective);
	}
}

/*
 * The first tick: older counters start here, those of newer cgroups count from 0 at the next tick.
 */
static void set_baselines(struct account *a, const struct tick *k)
{
	for (size_t i = 0; i < a->table.count; i++)
		if (a->table.tracks[i].at_start)
			track_read(&a->table.tracks[i], &topology_at(k->topology, i)->reading,
				   k->slow);
	account_node_start(&a->node, &a->machine, k->mono_ns);
	a->counters = (struct account_machine){.last = a->machine};
	a->started = true;
	a->slow_ns = k->mono_ns;
}

static struct slow_use slow_use_of(const struct track *tr)
{
	struct slow_use use = {.have = tr->have & USAGE_ALL & ~(HAVE_CPU | HAVE_MEMORY)};

	memcpy(use.counter, tr->used + 1, sizeof(use.counter));
	if (!track_working_set(tr, &use.working_set_bytes))
		use.have &= ~(uint32_t)USAGE_WORKING_SET;
	/* Unknown throttling may explain the pressure. */
	if (!(tr->have & HAVE_THROTTLE))
		use.have &= ~(uint32_t)USAGE_CONTENTION_CPU;
	return use;
}

static void settle_demand(struct workload *w, const struct track *tr, const struct tick *k)
{
	const struct demand_throttle throttle = {
		.throttled_ns = tr->used[TRACK_THROTTLED],
		.throttled_periods = tr->used[TRACKED(throttled_periods)],
		.period_ns = tr->period_ns,
		.dt_ns = k->slow_dt_ns,
	};

	demand_settle(w->demand, &throttle, k->capacity_milli);
}

static void sample_cpu(struct workload *w, const struct track *tr, const struct tick *k)
{
	double milli = stats_add_cpu(&w->stats, (double)tr->used[TRACK_CPU],
				     k->mono_ns - tr->cpu_at_ns, k->capacity_milli);

	if (!w->demand)
		return;
	if (!w->born_ns)
		w->born_ns = tr->at_start ? k->mono_ns - DEMAND_STARTING_NS : k->mono_ns;
	demand_add(w->demand, milli);
	if (k->slow)
		settle_demand(w, tr, k);
}

static void sample_workload(struct workload *w, const struct track *tr, const struct tick *k)
{
	w->stats.seconds += (double)k->dt_ns / 1e9;
	if (tr->have & HAVE_CPU)
		sample_cpu(w, tr, k);
	if (tr->have & HAVE_MEMORY)
		stats_add_memory(&w->stats, tr->mem_bytes, k->dt_ns);
	if (k->slow) {
		struct slow_use use = slow_use_of(tr);

		stats_add_slow(&w->stats, &use, k->slow_dt_ns);
	}
}

/* After all of this tick was added to it. */
static void sample_track(struct track *tr, const struct tick *k)
{
	if (tr->adopted.have)
		track_join_adopted(tr, k->slow);
	if (tr->workload)
		sample_workload(tr->workload, tr, k);
	if (tr->have & HAVE_CPU)
		tr->cpu_at_ns = k->mono_ns;
}

static void sample_detached_pods(struct account_table *table, const struct tick *k)
{
	for (size_t i = 0; i < table->detached_count; i++) {
		const struct detached *a = &table->detached[i];
		struct track *pod = &table->tracks[a->pod];

		track_adopt(pod, &table->tracks[a->container]);
		if (i + 1 == table->detached_count || a[1].pod != a->pod)
			sample_track(pod, k);
	}
}

static void read_cgroups(struct account_table *table, struct tick *k)
{
	for (size_t i = 0; i < table->count; i++) {
		struct track *tr = &table->tracks[i];
		bool removed = tr->removed;
		uint64_t carried_ns;

		track_read(tr, &topology_at(k->topology, i)->reading, k->slow);
		if (tr->parent > 0)
			track_bound_protection(tr, &table->tracks[tr->parent]);
		/* A new cgroup in an old place needs a workload. */
		table->stale |= removed && !tr->removed;
		carried_ns = track_join_carry(tr, k->slow);
		if (i == 0 && carried_ns) {
			k->top_ns += carried_ns;
			k->top_known = true;
		}
	}
}

/* From the leaves up, without the root: its sample is the node's. */
static void sample_cgroups(struct account *a, struct tick *k)
{
	struct account_table *table = &a->table;

	read_cgroups(table, k);
	for (size_t i = table->count; i-- > 1;) {
		struct track *tr = &table->tracks[i];

		track_finish(tr);
		track_roll_up(tr, &table->tracks[tr->parent]);
		if (tr->parent == 0) {
			k->top_known = k->top_known || (tr->have & HAVE_CPU);
			k->top_ns += tr->used[TRACK_CPU];
		}
		if (tr->holder == (int)i)
			sample_track(tr, k);
	}
	sample_detached_pods(table, k);
	if (table->count)
		track_finish(&table->tracks[0]);
}

static void add_node_cpu(struct account *a, struct tick *k, double used_ns, int64_t dt_ns)
{
	double milli = stats_add_cpu(&a->node_stats, used_ns, dt_ns, a->machine.cpu_capacity_milli);

	histogram_add(&a->cpu_hist, milli, HISTOGRAM_CPU_X0);
	k->node_used_ns = used_ns;
}

static void sample_node_cpu(struct account *a, struct track *root, struct tick *k)
{
	double used_ns = (double)k->top_ns;

	if (root && track_cpu_is_whole(root)) {
		if (root->have & HAVE_CPU) {
			add_node_cpu(a, k, (double)root->used[TRACK_CPU],
				     k->mono_ns - root->cpu_at_ns);
			root->cpu_at_ns = k->mono_ns;
		}
		/* For a later tier that does not read the root the machine's rest begins anew. */
		a->node.started = false;
		return;
	}
	if (!k->top_known && !a->machine.cpu_busy_ns)
		return;
	if (a->node.started)
		used_ns = account_node_tick(&a->node, k->top_ns, &a->machine, k->mono_ns, k->dt_ns,
					    k->slow && !a->machine.stale);
	else
		account_node_start(&a->node, &a->machine, k->mono_ns);
	add_node_cpu(a, k, used_ns, k->dt_ns);
}

/*
 * The working set is that of the root cgroup if the kernel has one (v1), else the memory that is
 * not available, which also excludes reclaimable page cache.
 */
static void sample_node_memory(struct account *a, struct slow_use *use, const struct tick *k)
{
	const struct machine *m = &a->machine;
	uint64_t used = m->mem_total_bytes - m->mem_available_bytes;

	if (!m->stale && m->mem_total_bytes && m->mem_available_bytes <= m->mem_total_bytes) {
		stats_add_memory(&a->node_stats, used, k->dt_ns);
		histogram_add(&a->mem_hist, (double)used, HISTOGRAM_MEMORY_X0);
		if (!(use->have & USAGE_WORKING_SET)) {
			use->have |= USAGE_WORKING_SET;
			use->working_set_bytes = used;
		}
	}
}

static void sample_node(struct account *a, struct tick *k)
{
	struct track *root = a->table.count ? &a->table.tracks[0] : NULL;
	struct slow_use use = {0};

	a->ticks++;
	a->node_stats.seconds += (double)k->dt_ns / 1e9;
	sample_node_cpu(a, root, k);
	if (k->slow && root)
		use = slow_use_of(root);
	sample_node_memory(a, &use, k);
	if (!k->slow)
		return;
	account_machine_read(&a->counters, &a->machine, &use);
	stats_add_slow(&a->node_stats, &use, k->slow_dt_ns);
}

static void sample_culprit(struct account *a, const struct tick *k)
{
	const struct culprit_tick tick = {
		.dt_ns = k->dt_ns,
		.slow_dt_ns = k->slow_dt_ns,
		.slow = k->slow,
		.node_used_ns = k->node_used_ns,
	};

	account_culprit_tick(&a->culprit, &a->table, k->topology, &tick);
}

size_t account_watched(const struct account *a, uint64_t ids[CULPRIT_WATCHED])
{
	return account_culprit_watched(&a->culprit, ids);
}

static struct removal_time removal_time(const struct account *a, int64_t mono_ns)
{
	return (struct removal_time){
		.mono_ns = mono_ns,
		.tick_ns = a->last_ns,
		.capacity_milli = a->machine.cpu_capacity_milli,
	};
}

void account_tick(struct account *a, struct topology *t, const struct machine *m, int64_t mono_ns,
		  int slow)
{
	struct tick k = {
		.topology = t,
		.mono_ns = mono_ns,
		.dt_ns = mono_ns - a->last_ns,
		.slow_dt_ns = mono_ns - a->slow_ns,
		.slow = slow,
		.capacity_milli = m->cpu_capacity_milli,
	};
	struct removal_time time;

	/* A second tick at the same time cannot be divided by; its use counts at the next. */
	if (a->started && k.dt_ns <= 0)
		return;
	a->machine = *m;
	time = removal_time(a, mono_ns);
	account_table_sync(&a->table, t, a->started ? a->last_ns : mono_ns);
	removals_settle(&a->removals, &a->table, &time);
	if (slow)
		read_limits(&a->table, &k);
	if (a->started) {
		sample_cgroups(a, &k);
		sample_node(a, &k);
		sample_culprit(a, &k);
	} else {
		set_baselines(a, &k);
	}
	a->last_ns = mono_ns;
	if (slow)
		a->slow_ns = mono_ns;
}

void account_remove(struct account *a, const struct removal *removals, size_t count,
		    int64_t mono_ns)
{
	const struct removal_time time = removal_time(a, mono_ns);

	/* Use before the baselines is in no sample. */
	if (a->started)
		removals_take(&a->removals, &a->table, removals, count, &time);
}

/* Settling moves the bounds of the samples; samples beyond them move to the outermost buckets. */
static void clamp_histogram(struct histogram *h, const struct moments32 *m)
{
	unsigned int low = histogram_bucket((double)m->min, HISTOGRAM_CPU_X0);
	unsigned int high = histogram_bucket((double)m->max, HISTOGRAM_CPU_X0);
	struct histogram within = {0};

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		within.count[i < low ? low : i > high ? high : i] += h->count[i];
	*h = within;
}

static void fill_node(struct account *a, struct node_sample *node, const struct account_self *self)
{
	a->node_stats.unsettled_ns += a->node.unsettled_ns;
	a->node.unsettled_ns = 0;
	stats_settle(&a->node_stats, a->machine.cpu_capacity_milli);
	stats_pack(&a->node_stats, &node->usage);
	node->cpu_hist = a->cpu_hist;
	clamp_histogram(&node->cpu_hist, &node->usage.cpu_milli);
	node->mem_hist = a->mem_hist;
	node->cpu_capacity_milli = a->machine.cpu_capacity_milli;
	node->mem_capacity_bytes = (int64_t)a->machine.mem_total_bytes;
	node->mem_available_bytes =
		(int64_t)(a->machine.mem_available_bytes < a->machine.mem_total_bytes
				  ? a->machine.mem_available_bytes
				  : a->machine.mem_total_bytes);
	node->cpu_split = a->counters.split;
	a->counters.split = (struct cpu_split){0};
	node->tier = self->tier;
	node->rate_hz = (float)((double)a->ticks / a->node_stats.seconds);
	node->missed_ticks = self->missed_ticks;
	node->overflow = self->overflow + a->table.unlisted + a->removals.dropped;
	node->pass_ns = self->pass_ns;
	node->agent_cpu_ns = self->agent_cpu_ns;
	memcpy(node->boot_id, a->machine.boot_id, sizeof(node->boot_id));
}

static void fill_demand(const struct account *a, struct workload *w, struct interval *interval,
			struct entry *e)
{
	e->demand_at = (uint32_t)interval->demand.len;
	if (w->gone)
		demand_settle(w->demand, &(struct demand_throttle){0},
			      a->machine.cpu_capacity_milli);
	demand_publish(w->demand, &interval->demand);
	e->demand_len = (uint16_t)(interval->demand.len - e->demand_at);
	e->starting = a->last_ns - w->born_ns < DEMAND_STARTING_NS;
}

static void fill_entries(const struct account *a, struct interval *interval)
{
	size_t n = 0;

	for (size_t i = 0; i < a->table.workload_count; i++) {
		struct workload *w = a->table.workloads[i];
		struct entry *e = &interval->entries[n];

		/* It came and went between two ticks: no reader knows it. */
		if (w->gone && !(w->stats.seconds > 0))
			continue;
		e->ref = w->entity->ref;
		e->fresh = w->fresh;
		e->entity = entity_hold(w->entity);
		e->limits = w->limits;
		e->cause = account_culprit_of(&a->culprit, w);
		stats_settle(&w->stats, a->machine.cpu_capacity_milli);
		stats_pack(&w->stats, &e->usage);
		if (w->demand && w->born_ns)
			fill_demand(a, w, interval, e);
		n++;
	}
	interval->entry_count = n;
}

struct interval *account_publish(struct account *a, uint64_t sequence, int64_t start_ns,
				 int64_t end_ns, const struct account_self *self)
{
	struct interval *interval;

	if (!a->ticks)
		return NULL;
	interval = interval_new(a->table.workload_count);
	interval->sequence = sequence;
	interval->start_ns = start_ns;
	interval->end_ns = end_ns;
	interval->full = true;
	fill_node(a, &interval->node, self);
	fill_entries(a, interval);
	account_table_next(&a->table);
	removals_next(&a->removals);
	stats_next(&a->node_stats);
	a->cpu_hist = a->mem_hist = (struct histogram){0};
	a->ticks = 0;
	return interval;
}
