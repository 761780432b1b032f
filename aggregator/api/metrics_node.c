/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of each node, as one table: a row is a series of every node, and rows of one family stand
 * together. At most 62 series for a node, none for a pod.
 *
 * An expired node keeps its age, its quarantined values and its clock skew, and loses its
 * measurements, so that a graph ends instead of going flat. A value that was never measured has no
 * series. Counters of a node begin at 0 when this process first hears of the node. Nodes without an
 * agent have the series of the Kubernetes API.
 */
#include <math.h>

#include "aggregator/api/limits.h"
#include "aggregator/api/metrics.h"
#include "shared/clock.h"

#define MILLI 1e-3

/* The nodes that have a row: fresh and late ones, all that ever reported, those of the API. */
enum shown { MEASURED, HEARD, KNOWN };

static double positive(int64_t amount)
{
	return amount > 0 ? (double)amount : NAN;
}

static double latest(const struct latest *l)
{
	return l->known ? (double)l->value : NAN;
}

static double pressure_seconds(const struct node_totals *t, enum pressure p)
{
	return t->pressure_have & pressure_bit(p) ? (double)t->pressure_ns[p] / NS_PER_SEC : NAN;
}

static double share_of_5m(const struct node_stats *p, enum pressure of)
{
	const struct window_counts *c = &p->usage.windows[WINDOW_5M].counts;

	return c->seconds > 0 ? c->pressure[of] : NAN;
}

static double limit_ratio(const struct view_node *n, bool kernel, enum resource_id id)
{
	struct limits_shares shares = {0};

	limits_add(&shares, n, UNLIMITED_IGNORE);
	return limits_ratio(kernel ? &shares.kernel : &shares.declared, id);
}

/*
 * X(id, enum shown, family, labels behind the node, help of the family or NULL in its further rows,
 * value): of the node n with the snapshot p; NaN: no sample.
 */
#define CPU_MODE(X, mode, help)                                                                    \
	X(mode, MEASURED, "evenkeel_node_cpu_seconds_total", ",mode=\"" #mode "\"", help,          \
	  p->machine.known ? (double)p->totals.cpu.mode##_ns / NS_PER_SEC : NAN)
#define PRESSURE(X, id, family, pressure, value, help)                                             \
	X(id##_cpu, MEASURED, family, ",resource=\"cpu\"", help, value(pressure##_CPU))            \
	X(id##_mem, MEASURED, family, ",resource=\"memory\"", NULL, value(pressure##_MEMORY))
#define SECONDS(of) pressure_seconds(&p->totals, of)
#define SHARE(of)   share_of_5m(p, of)
#define STAT(X, member, window, text, family, stat, is_known, unit, help)                          \
	X(member##_##window##_##stat, MEASURED, family, ",window=\"" text "\",stat=\"" #stat "\"", \
	  help,                                                                                    \
	  p->usage.windows[window].member.is_known ? p->usage.windows[window].member.stat *(unit)  \
						   : NAN)
#define WINDOW(X, member, window, text, family, unit, help)                                        \
	STAT(X, member, window, text, family, mean, known, unit, help)                             \
	STAT(X, member, window, text, family, stddev, known, unit, NULL)                           \
	STAT(X, member, window, text, family, p95, percentiles, unit, NULL)                        \
	STAT(X, member, window, text, family, max, known, unit, NULL)
#define TIER(X, tier_, help)                                                                       \
	X(tier_, MEASURED, "evenkeel_node_sampler_info", ",tier=\"" #tier_ "\"", help,             \
	  p->tier == TIER_##tier_ ? 1 : NAN)
#define NEWEST(member, bit, key, number, type, most, why, unit, help)                              \
	X(member, MEASURED, "evenkeel_node_" #member, "", help, latest(&p->usage.latest.member))
/* clang-format off: a row stays a row */
#define NODE_ROWS(X)                                                                               \
	X(age, HEARD, "evenkeel_node_sample_age_seconds", "", "Age of the newest measurement.",    \
	  (double)node_stats_age_ns(p, now_ns) / NS_PER_SEC)                                       \
	X(cpu_capacity, MEASURED, "evenkeel_node_cpu_capacity_cores", "", "CPUs that are online.", \
	  positive(p->cpu_capacity_milli) * MILLI)                                                 \
	X(mem_capacity, MEASURED, "evenkeel_node_memory_capacity_bytes", "",                       \
	  "Memory of the machine.", positive(p->mem_capacity_bytes))                               \
	X(cpu_latest, MEASURED, "evenkeel_node_cpu_latest_cores", "",                              \
	  "CPU use in the newest interval.", latest(&p->usage.latest.cpu_milli) * MILLI)           \
	X(mem_latest, MEASURED, "evenkeel_node_memory_latest_bytes", "",                           \
	  "Memory in use (total less available), newest.", latest(&p->usage.latest.mem_bytes))     \
	X(mem_available, MEASURED, "evenkeel_node_memory_available_bytes", "",                     \
	  "Memory that can be had without swapping (MemAvailable), newest.",                       \
	  p->machine.known ? (double)p->machine.mem_available_bytes : NAN)                         \
	X(working_set, MEASURED, "evenkeel_node_working_set_bytes", "",                            \
	  "Memory in use less inactive file pages, newest.",                                       \
	  latest(&p->usage.latest.working_set_bytes))                                              \
	USAGE_NEWEST(NEWEST)                                                                       \
	X(workloads, MEASURED, "evenkeel_node_workloads", "",                                      \
	  "Pods, or units and slices without Kubernetes, that are measured.",                      \
	  (double)p->pod_count)                                                                    \
	X(agent_cpu, MEASURED, "evenkeel_node_agent_cpu_cores", "",                                \
	  "CPU the agent itself used in the newest interval.", p->agent_cpu_milli *MILLI)          \
	X(rate, MEASURED, "evenkeel_node_sampler_rate_hertz", "", "Sampling passes per second.",   \
	  p->rate_hz)                                                                              \
	X(pass, MEASURED, "evenkeel_node_sampler_pass_seconds", "",                                \
	  "Mean duration of a sampling pass.", (double)p->pass_ns / NS_PER_SEC)                    \
	X(missed, MEASURED, "evenkeel_node_sampler_missed_ticks_total", "",                        \
	  "Sampling passes that were due and missed.", (double)p->totals.missed_ticks)             \
	X(overflow, MEASURED, "evenkeel_node_sampler_overflow_cgroups", "",                        \
	  "Control groups beyond the sampler's room.", p->overflow)                                \
	X(skew, HEARD, "evenkeel_node_clock_skew_seconds", "",                                     \
	  "How far the node's clock is ahead of this service's; its times are corrected.",         \
	  p->clock_known ? (double)p->clock_ahead_ns / NS_PER_SEC : NAN)                           \
	X(quarantined, HEARD, "evenkeel_node_quarantined_values_total", "",                        \
	  "Values of the node and its workloads that could not be and were left out.",             \
	  (double)p->quarantine.count)                                                             \
	CPU_MODE(X, user, "Time of all CPUs together by mode; idle time is the rest.")             \
	CPU_MODE(X, system, NULL)                                                                  \
	CPU_MODE(X, iowait, NULL)                                                                  \
	CPU_MODE(X, steal, NULL)                                                                   \
	PRESSURE(X, contention_s, "evenkeel_node_contention_seconds_total", CONTENTION, SECONDS,   \
		 "Time in which some work waited for others (PSI some less throttled time).")      \
	PRESSURE(X, stall_s, "evenkeel_node_stalled_seconds_total", STALL, SECONDS,                \
		 "Time in which no work could go on (PSI full).")                                  \
	PRESSURE(X, contention, "evenkeel_node_contention_ratio", CONTENTION, SHARE,               \
		 "Share of the last 5 minutes in which some work waited for others.")              \
	PRESSURE(X, stall, "evenkeel_node_stalled_ratio", STALL, SHARE,                            \
		 "Share of the last 5 minutes in which no work could go on.")                      \
	WINDOW(X, cpu_milli, WINDOW_5M, "5m", "evenkeel_node_cpu_usage_cores", MILLI,              \
	       "CPU use over a sliding window, from every sample in it.")                          \
	WINDOW(X, cpu_milli, WINDOW_15M, "15m", "evenkeel_node_cpu_usage_cores", MILLI, NULL)      \
	WINDOW(X, mem_bytes, WINDOW_5M, "5m", "evenkeel_node_memory_usage_bytes", 1,               \
	       "Memory in use over a sliding window.")                                             \
	WINDOW(X, mem_bytes, WINDOW_15M, "15m", "evenkeel_node_memory_usage_bytes", 1, NULL)       \
	TIER(X, T0, "By which means the node is sampled.")                                         \
	TIER(X, T1, NULL)                                                                          \
	TIER(X, T2, NULL)                                                                          \
	TIER(X, T3, NULL)                                                                          \
	X(allocatable_cpu, KNOWN, "evenkeel_node_cpu_allocatable_cores", "",                       \
	  "What pods may request in all.", positive(n->cpu_allocatable_milli) * MILLI)             \
	X(allocatable_mem, KNOWN, "evenkeel_node_memory_allocatable_bytes", "",                    \
	  "What pods may request in all.", positive(n->mem_allocatable_bytes))                     \
	X(requests_cpu, KNOWN, "evenkeel_node_cpu_requests_cores", "",                             \
	  "Requests of the pods that are neither done nor failed.",                                \
	  (double)n->sums.requests.of[RESOURCE_CPU] * MILLI)                                       \
	X(requests_mem, KNOWN, "evenkeel_node_memory_requests_bytes", "",                          \
	  "Requests of the pods that are neither done nor failed.",                                \
	  (double)n->sums.requests.of[RESOURCE_MEMORY])                                            \
	X(limits_cpu, KNOWN, "evenkeel_node_cpu_limits_cores", "",                                 \
	  "Limits that those pods declare.", (double)n->sums.limits.of[RESOURCE_CPU] * MILLI)      \
	X(limits_mem, KNOWN, "evenkeel_node_memory_limits_bytes", "",                              \
	  "Limits that those pods declare.", (double)n->sums.limits.of[RESOURCE_MEMORY])           \
	X(kernel_cpu, KNOWN, "evenkeel_node_cpu_kernel_limits_cores", "",                          \
	  "Limits that the kernel enforces on those pods.",                                        \
	  p->end_ns ? (double)n->sums.kernel[RESOURCE_CPU].limits *MILLI : NAN)                    \
	X(kernel_mem, KNOWN, "evenkeel_node_memory_kernel_limits_bytes", "",                       \
	  "Limits that the kernel enforces on those pods.",                                        \
	  p->end_ns ? (double)n->sums.kernel[RESOURCE_MEMORY].limits : NAN)                        \
	X(exclusive, MEASURED, "evenkeel_node_cpu_exclusive_cores", "",                            \
	  "CPUs that one pod each has alone.", positive(p->exclusive_cpu_milli) * MILLI)           \
	X(idle_cpu, MEASURED, "evenkeel_node_cpu_held_idle_cores", "",                             \
	  "Exclusive CPUs that are idle: no room for other pods.",                                 \
	  positive(p->idle.cpu_milli) * MILLI)                                                     \
	X(idle_mem, MEASURED, "evenkeel_node_memory_held_idle_bytes", "",                          \
	  "Protected memory beyond the working set: no room for other pods.",                      \
	  positive(p->idle.mem_bytes))                                                             \
	X(declared_cpu, KNOWN, "evenkeel_node_limit_ratio", ",resource=\"cpu\",by=\"declared\"",   \
	  "Sum of limits by allocatable; what has no limit counts as nothing.",                    \
	  limit_ratio(n, false, RESOURCE_CPU))                                                     \
	X(declared_mem, KNOWN, "evenkeel_node_limit_ratio",                                        \
	  ",resource=\"memory\",by=\"declared\"", NULL, limit_ratio(n, false, RESOURCE_MEMORY))    \
	X(enforced_cpu, KNOWN, "evenkeel_node_limit_ratio", ",resource=\"cpu\",by=\"kernel\"",     \
	  NULL, limit_ratio(n, true, RESOURCE_CPU))                                                \
	X(enforced_mem, KNOWN, "evenkeel_node_limit_ratio", ",resource=\"memory\",by=\"kernel\"",  \
	  NULL, limit_ratio(n, true, RESOURCE_MEMORY))                                             \
	X(unlimited_cpu, KNOWN, "evenkeel_node_unlimited_containers", ",resource=\"cpu\"",         \
	  "Containers without a limit.", n->sums.load[RESOURCE_CPU].unlimited)                     \
	X(unlimited_mem, KNOWN, "evenkeel_node_unlimited_containers", ",resource=\"memory\"",      \
	  NULL, n->sums.load[RESOURCE_MEMORY].unlimited)                                           \
	X(pods, KNOWN, "evenkeel_node_pods", "", "Pods that are neither done nor failed.",         \
	  n->sums.pods)
/* clang-format on */

#define X(id, ...) ROW_##id,
enum row { NODE_ROWS(X) ROWS };
#undef X

static const struct {
	enum shown shown;
	const char *family, *labels, *help;
} rows[ROWS] = {
#define X(id, shown, family, labels, help, value) {shown, family, labels, help},
	NODE_ROWS(X)
#undef X
};

static double value_of(enum row row, const struct view_node *n, int64_t now_ns)
{
	const struct node_stats *p = n->stats;

	switch (row) {
#define X(id, shown, family, labels, help, value)                                                  \
	case ROW_##id:                                                                             \
		return value;
		NODE_ROWS(X)
#undef X
	case ROWS:
		break;
	}
	return NAN;
}

static bool is_shown(enum shown shown, const struct view_node *n, int64_t now_ns)
{
	enum freshness state = node_stats_freshness(n->stats, now_ns);

	if (shown == KNOWN)
		return n->model && n->model->node;
	return shown == HEARD ? state != NEVER : state == FRESH || state == LATE;
}

void metrics_write_nodes(struct buf *out, const struct view *v, int64_t now_ns)
{
	for (size_t first = 0, end; first < ROWS; first = end) {
		for (end = first + 1; end < ROWS && !rows[end].help;)
			end++;
		if (rows[first].shown == KNOWN && !v->cluster)
			continue;
		metrics_write_family(out, rows[first].family, rows[first].help);
		for (size_t i = 0; i < v->node_count; i++) {
			const struct view_node *n = v->nodes[i];
			size_t row = is_shown(rows[first].shown, n, now_ns) ? first : end;

			for (; row < end; row++)
				metrics_write_row(out, rows[row].family, "node", n->name,
						  rows[row].labels,
						  value_of((enum row)row, n, now_ns));
		}
	}
}
