/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured use of one node, its pods and their containers: an immutable snapshot that any
 * thread may hold.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/pod_peaks.h"
#include "aggregator/state/pod_usage.h"
#include "aggregator/state/windows.h"
#include "shared/frame.h"
#include "shared/interval.h"

/*
 * The age of the newest measurement, decided when it is read (node_stats_freshness()). Its worth
 * then: score/score_input.c for scores, place/place_use.c for destinations, drain/drain_order.c for
 * candidates.
 */
enum freshness { FRESH, LATE, EXPIRED, NEVER };

#define FRESH_NS   (30 * 1000000000LL)
#define EXPIRED_NS (300 * 1000000000LL)

/* CPUs and memory of the whole machine in the newest interval; known false: the agent sent none. */
struct machine_stats {
	bool known;
	double user_milli, system_milli, iowait_milli, steal_milli;
	int64_t mem_available_bytes;
};

/*
 * Sums over all intervals that ended since this process first heard the node. The process before
 * counted the older ones that an agent sends again.
 */
struct node_totals {
	uint64_t missed_ticks;
	struct cpu_split cpu;
	uint64_t pressure_ns[PRESSURES];
	uint32_t pressure_have; /* bits of enum usage_have: what was ever measured */
};

/*
 * Values of the node's agent that were put aside (usage_check.h), since this process first heard
 * it.
 */
struct node_quarantine {
	uint64_t count; /* 0: none, and all else has no meaning */
	int64_t last_ns; /* end of the last interval with such a value */
	uint8_t reason; /* enum quarantine_reason, of the last */
	char message[192]; /* the pod or container of the value, and the error */
};

/* The kernel's limits on the pods of a node together; summed once, since every score needs them. */
struct kernel_bound {
	int64_t limits; /* sum of those there are: millicores, bytes */
	uint32_t unlimited; /* containers without one */
	uint32_t unknown; /* containers whose limit could not be read */
};

struct kernel_bounds {
	struct kernel_bound cpu, mem;
};

/*
 * Of one pod: exclusive CPUs, and memory that the kernel does not reclaim for others, which is the
 * protected part of what is in use. Of a node: what its pods hold and do not use. 0: none.
 */
struct held {
	int64_t cpu_milli, mem_bytes;
};

struct container_stats {
	/* The cgroup's path; lives as long as the stats, as all strings and limits here. */
	const char *name;
	const char *id; /* container id, "" unknown */
	const struct kernel_limits *limits;
	struct latest_usage latest;
	float throttled_seconds; /* in the newest interval, as is pressure */
	float pressure[PRESSURES]; /* share of the time, 0..1 */
	uint16_t pressure_have; /* bits of enum usage_have: which of pressure were measured */
	uint8_t runtime; /* enum container_runtime */
	bool throttle_known;
};

/* The likely cause of a pod's contention for CPU (agent/culprit.h). */
struct pod_cause {
	float share; /* of the contention, 0..1; 0: nobody is named */
	uint32_t pod; /* its place among the node's pods, or CAUSE_SYSTEM */
};

struct pod_stats {
	const char *name; /* the API's, else the cgroup's path */
	const char *uid; /* "" where there is none */
	const struct kernel_limits *limits;
	const struct container_stats *containers; /* sorted by name */
	const struct pod_peaks *peaks; /* in the stats'; NULL: no complete bucket yet */
	uint32_t container_count;
	uint8_t kind, qos; /* enum entity_kind, enum qos_class */
	struct pod_cause cause;
	struct pod_usage usage; /* see node_stats_pod_usage() */
};

/*
 * The strings and limits of node stats, shared by all stats of a node until something starts or
 * ends there. The writer keeps within its room.
 */
struct stats_names {
	atomic_uint users;
	size_t limit_count;
	char *text; /* behind the limits */
	struct kernel_limits limits[];
};

struct node_stats {
	atomic_uint users;
	struct stats_names *names; /* held; NULL: the strings are in the stats' own block */
	/* of the state when it was built: grows with every change of this node */
	uint64_t generation;
	/*
	 * Two stats of a node with the same layout have the same pods and containers in the same
	 * order, with the same strings and limits, all of which lie in the same names. 0: unknown.
	 */
	uint64_t layout;
	const char *name;
	uint8_t run[FRAME_RUN_LEN];
	int64_t end_ns; /* of the newest interval */
	int64_t start_ns; /* likewise; 0: unknown, of a node that was restored or is foreign */
	enum sampler_tier tier;
	float rate_hz;
	uint32_t missed_ticks;
	uint32_t overflow;
	uint64_t pass_ns;
	double agent_cpu_milli; /* the agent's own use */
	/*
	 * Made of a load watcher's answer, not by an agent: run to quarantine are unknown.
	 */
	bool foreign;
	bool clock_known;
	int64_t clock_ahead_ns; /* the node's clock against ours, less the time frames need */
	struct machine_stats machine;
	struct node_totals totals;
	struct node_quarantine quarantine;
	/*
	 * How much older than end_ns the node's newest CPU and memory use is, since newer values
	 * were put aside.
	 */
	int64_t aside_ns;
	int64_t cpu_capacity_milli, mem_capacity_bytes;
	int64_t cpu_allocatable_milli,
		mem_allocatable_bytes; /* the capacity where the API is unknown */
	struct usage_summary usage;
	struct window_recent recent;
	struct kernel_bounds bounds; /* over the pods */
	int64_t exclusive_cpu_milli; /* of the pods together */
	struct held idle;
	/*
	 * Exclusive CPUs and protected memory that the pods did not use within 5 minutes, so that
	 * recent use (struct window_recent) has no part of them.
	 */
	struct held unseen;
	struct node_peaks *peaks; /* held; NULL: none */
	size_t pod_count;
	const struct pod_stats *pods; /* sorted by name */
};

/* With one user and room for that many limits and bytes of text. */
struct stats_names *stats_names_new(size_t limits, size_t text_size);
/* NULL is allowed. */
void stats_names_drop(struct stats_names *n);

/*
 * A copy of `from` with one user, in one block of memory: the stats, their pods, their containers,
 * every string and all limits. With from->names set, that is held instead, and strings and limits,
 * which must lie in it, are not copied. Pods and containers must be sorted by name (strcmp); NULL
 * strings become "" in a copy, and NULL limits unknown ones. Peaks are held. from->users does not
 * matter. Its bounds, exclusive CPUs and what is held idle or unseen are summed.
 */
struct node_stats *node_stats_new(const struct node_stats *from);
/* The same with the bounds of `from`. */
struct node_stats *node_stats_new_bounded(const struct node_stats *from);
struct held pod_stats_held(const struct pod_stats *p);
/*
 * The CPU limit from which on the node bounds a pod: its allocatable, for other pods less the
 * exclusive CPUs.
 */
int64_t node_stats_shared_cpu(const struct kernel_limits *pod, int64_t allocatable_milli,
			      int64_t exclusive_milli);
/*
 * Of pods and of containers that run outside of pods; units and slices are the machine's own. A pod
 * counts as its containers do together, and where it is bounded itself, as no more than that. A
 * limit of `whole` or more (what the node can give away; CPU: node_stats_shared_cpu()) is none: the
 * kubelet bounds all pods together so, and the kernel shows that to each.
 */
void kernel_bounds_sum(const struct pod_stats *pods, size_t count, int64_t whole_cpu_milli,
		       int64_t exclusive_milli, int64_t whole_mem_bytes,
		       struct kernel_bounds *bounds);
struct node_stats *node_stats_hold(struct node_stats *p);
/* Any thread; the last user frees it. NULL is allowed. */
void node_stats_drop(struct node_stats *p);
/* All that the stats say of the use of one of its pods. */
void node_stats_pod_usage(const struct node_stats *p, const struct pod_stats *pod,
			  struct usage_summary *out);
/*
 * The age of the node's newest known use, at least 0. It follows from end_ns and aside_ns alone.
 */
int64_t node_stats_age_ns(const struct node_stats *p, int64_t now_ns);
int64_t stats_age_ns(int64_t end_ns, int64_t aside_ns, int64_t now_ns);
/* By that age: fresh below FRESH_NS, expired above EXPIRED_NS; never for NULL and end_ns 0. */
enum freshness node_stats_freshness(const struct node_stats *p, int64_t now_ns);
const char *freshness_name(enum freshness f); /* "fresh", "late", "expired", "none" */
