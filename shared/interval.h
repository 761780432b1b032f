/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of one node between two publish times, sent from agent to aggregator. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/histogram.h"
#include "shared/moments.h"
#include "shared/usage_fields.h"

enum usage_bit {
#define X(bit) USAGE_BIT_##bit,
	USAGE_BITS(X)
#undef X
		USAGE_BIT_COUNT
};

/* The measured members of struct usage; all others are unknown, never 0. */
enum usage_have {
#define X(bit) USAGE_##bit = 1 << USAGE_BIT_##bit,
	USAGE_BITS(X)
#undef X
		USAGE_ALL = (1 << USAGE_BIT_COUNT) - 1,
/* Windows keep everything but newest readings. */
#define X(member, bit, ...) | USAGE_##bit
	USAGE_WINDOWED = 0 USAGE_AVERAGED(X) USAGE_COUNTED(X)
#undef X
};

/* Indices of counters: counts, then newest readings. */
enum usage_counter {
#define X(member, ...) COUNTER_##member,
	USAGE_COUNTED(X)
#undef X
		COUNTERS_COUNTED,
	COUNTERS_BEFORE_NEWEST = COUNTERS_COUNTED - 1,
#define X(member, ...) COUNTER_##member,
	USAGE_NEWEST(X)
#undef X
		COUNTERS,
};

/* The counters of one struct, by name and by number. X(member, ...) names them. */
#define USAGE_COUNTER_UNION(X)                                                                     \
	union {                                                                                    \
		uint64_t counter[COUNTERS];                                                        \
		struct {                                                                           \
			USAGE_COUNTED(X)                                                           \
			USAGE_NEWEST(X)                                                            \
		};                                                                                 \
	}
#define USAGE_MEMBER(member, ...) uint64_t member;

#define X(member, bit, ...) | USAGE_##bit
enum { USAGE_NEWEST_BITS = 0 USAGE_NEWEST(X) };
#undef X

/* Values with a newest one: averages, then newest readings. */
enum usage_latest {
#define X(member, ...) LATEST_##member,
	USAGE_AVERAGED(X)
#undef X
		USAGE_AVERAGED_COUNT,
	LATEST_BEFORE_NEWEST = USAGE_AVERAGED_COUNT - 1,
#define X(member, ...) LATEST_##member,
	USAGE_NEWEST(X)
#undef X
		USAGE_LATEST_COUNT
};

struct usage_latest_row {
	const char *key; /* in JSON */
	uint32_t have; /* its bit of enum usage_have */
	int decimals; /* in JSON */
};

extern const struct usage_latest_row usage_latest[USAGE_LATEST_COUNT];

struct usage_counter_row {
	uint32_t have; /* its bit of enum usage_have */
	bool is_time; /* in nanoseconds; else it fits into 32 bits */
};

extern const struct usage_counter_row usage_counters[COUNTERS];

struct gauge {
	float mean; /* time-weighted */
	float max;
	float last;
};

struct usage {
	uint32_t have; /* enum usage_have */
	float seconds; /* covered by its samples; the weight of the gauges */
	/* mean * weight is the exact CPU time used, in millicore seconds */
	struct moments32 cpu_milli;
	struct gauge mem_bytes;
	struct gauge working_set_bytes; /* usage less inactive file pages */
	USAGE_COUNTER_UNION(USAGE_MEMBER);
};

/* No limit, and an unknown one. */
#define LIMIT_NONE    (-1)
#define LIMIT_UNKNOWN (-2)

enum kernel_limit {
#define X(member, ...) LIMIT_##member,
	KERNEL_LIMITS(X)
#undef X
		LIMITS
};

extern const char *const kernel_limit_key[LIMITS]; /* in JSON */

/* The minimum over the cgroup and its ancestors. */
struct kernel_limits {
#define X(member, ...) int64_t member;
	KERNEL_LIMITS(X)
#undef X
};

static_assert(sizeof(struct kernel_limits) == LIMITS * sizeof(int64_t), "it is an array, too");

static inline int64_t *kernel_limit_at(const struct kernel_limits *l, int i)
{
	return (int64_t *)l + i;
}

#define LIMIT_UNKNOWN_EACH(...) LIMIT_UNKNOWN,
#define KERNEL_LIMITS_UNKNOWN	((struct kernel_limits){KERNEL_LIMITS(LIMIT_UNKNOWN_EACH)})

enum entity_kind {
	ENTITY_POD,
	ENTITY_CONTAINER, /* parent is its pod, or 0 when it runs outside Kubernetes */
	ENTITY_UNIT, /* no Kubernetes: a systemd unit, or a plain cgroup without children */
	/* no Kubernetes: a systemd slice or a cgroup with children; with its descendants */
	ENTITY_SLICE,
};

enum qos_class { QOS_UNKNOWN, QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT };

enum container_runtime {
	RUNTIME_UNKNOWN,
	RUNTIME_CONTAINERD,
	RUNTIME_CRIO,
	RUNTIME_DOCKER,
	RUNTIME_PODMAN,
};

enum {
	POD_UID_LEN = 36, /* 8-4-4-4-12, or 32 hex digits of a static pod */
	CONTAINER_ID_LEN = 64, /* hex */
	ENTITY_NAME_MAX = 512, /* of a cgroup path; longer ones are refused */
	NODE_NAME_MAX = 253,
	BOOT_ID_LEN = 36,
};

/*
 * The identity of an entry. A reference is valid for a whole run of the agent, so an identity is
 * sent when it is new; two cgroups with one path have two references.
 */
struct entity {
	uint32_t ref; /* > 0, unique within the run, in order of appearance */
	uint32_t parent; /* ref of the pod of a container, else 0 */
	enum entity_kind kind;
	enum qos_class qos;
	enum container_runtime runtime;
	uint32_t users; /* holders in one process; see entity_hold() */
	char pod_uid[POD_UID_LEN + 1]; /* "" where there is none */
	char container_id[CONTAINER_ID_LEN + 1]; /* "" where there is none */
	char name[]; /* cgroup path without the leading slash */
};

/* The likely cause of a pod's contention for CPU (agent/culprit.h). */
struct contention_cause {
	uint32_t ref; /* of an entry of the same run, or CAUSE_SYSTEM; 0: nobody is named */
	float share; /* of the contention, 0..1 */
};

#define CAUSE_SYSTEM UINT32_MAX /* tasks in no pod */

struct entry {
	uint32_t ref;
	/* entity or limits are new in this interval and are sent */
	bool fresh;
	bool starting; /* its cgroup began at most two minutes before, so its demand is that of a start */
	uint16_t demand_len; /* bytes of its demand (shared/demand.h); 0: not told */
	uint32_t demand_at; /* where they begin in the interval's demand */
	struct entity *entity; /* held; NULL in a decoded entry without identity */
	/* LIMIT_UNKNOWN also in a decoded entry without limits */
	struct kernel_limits limits;
	struct contention_cause cause;
	struct usage usage;
};

enum sampler_tier { TIER_T0, TIER_T1, TIER_T2, TIER_T3 };
enum {
	TIERS = TIER_T3 + 1,
	ENTITY_KINDS = ENTITY_SLICE + 1,
	QOS_CLASSES = QOS_BEST_EFFORT + 1,
	RUNTIMES = RUNTIME_PODMAN + 1,
};

/* Their names in JSON: "Pod", "Guaranteed", "containerd", "T0"; NULL: unknown. */
extern const char *const entity_kind_name[ENTITY_KINDS], *const qos_class_name[QOS_CLASSES];
extern const char *const container_runtime_name[RUNTIMES], *const sampler_tiers[TIERS];

/* CPU time of all CPUs in an interval, from /proc/stat; with idle time the whole machine's. */
struct cpu_split {
	uint64_t user_ns; /* user and nice, guests too */
	uint64_t system_ns; /* system, irq and softirq */
	uint64_t iowait_ns;
	uint64_t steal_ns; /* taken by the hypervisor */
};

struct node_sample {
	/* whole machine; memory = MemTotal - MemAvailable; PSI of /proc/pressure */
	struct usage usage;
	struct histogram cpu_hist; /* millicores, HISTOGRAM_CPU_X0 */
	struct histogram mem_hist; /* bytes, HISTOGRAM_MEMORY_X0 */
	int64_t cpu_capacity_milli; /* online CPUs * 1000 */
	int64_t mem_capacity_bytes; /* MemTotal */
	int64_t mem_available_bytes; /* MemAvailable, newest */
	struct cpu_split cpu_split;
	enum sampler_tier tier;
	float rate_hz; /* fast passes per second */
	uint32_t missed_ticks;
	/* Cgroups beyond the records in the worst pass, or removed with use of no workload. */
	uint32_t overflow;
	uint64_t pass_ns; /* mean wall time of a fast pass */
	uint64_t agent_cpu_ns; /* of the agent, in the interval */
	char boot_id[BOOT_ID_LEN + 1];
};

struct interval {
	uint64_t sequence; /* > 0, +1 per interval within the run */
	int64_t start_ns; /* Unix time */
	int64_t end_ns;
	/* CLOCK_BOOTTIME of the node at end_ns; not sent. 0: unknown */
	int64_t end_boot_ns;
	/* of a received interval: time since end_ns when it was sent. 0: unknown */
	int64_t age_ns;
	int64_t wait_ns; /* of a received interval: the longest possible wait before it was read */
	uint32_t merged; /* the number of published intervals in it, >= 1 */
	bool full; /* every entry carries its identity and limits */
	struct node_sample node;
	size_t entry_count;
	struct entry *entries; /* owned, sorted by ref */
	size_t entry_room; /* capacity of entries */
	struct buf demand; /* owned; of the entries */
};

/* New entity with one user; copies the name. The caller checks ENTITY_NAME_MAX. */
struct entity *entity_new(uint32_t ref, enum entity_kind kind, const char *name);
struct entity *entity_hold(struct entity *e);
/* Frees it after the last user. NULL is allowed. */
void entity_drop(struct entity *e);

/* Zeroed, with room for `entries`; interval_free() takes NULL, and drops the entities. */
struct interval *interval_new(size_t entries);
void interval_free(struct interval *i);
/* As new, without entries; keeps their capacity. */
void interval_clear(struct interval *i);
/* Makes room for so many entries in all; keeps the present ones. */
void interval_reserve(struct interval *i, size_t entries);
/*
 * One interval that covers both; a ends at or before b's start and has the smaller sequence.
 * Moments and histograms merge, counters add, gauges are weighted by time. The result has b's
 * sequence, end, causes, last and newest values, a's start, a.merged + b.merged, and `fresh` if either has
 * it.
 */
struct interval *interval_merge(const struct interval *a, const struct interval *b);
/* Whether any limit is known. */
bool kernel_limits_known(const struct kernel_limits *l);
/* Of one of its entries. */
static inline const void *interval_demand(const struct interval *i, const struct entry *e)
{
	return i->demand.data + e->demand_at;
}

/* Its memory in bytes. */
size_t interval_bytes(const struct interval *i);
/* Adds b (later) to a. Members unknown on one side come from the other. */
void usage_merge(struct usage *a, const struct usage *b);
