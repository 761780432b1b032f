/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node of the usage state: the references of its agent's run, and the windows that outlive it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/workload_demand.h"
#include "aggregator/state/node_clock.h"
#include "aggregator/state/node_stats.h"
#include "aggregator/state/pod_peaks.h"
#include "aggregator/state/usage.h"
#include "aggregator/state/usage_check.h"
#include "aggregator/state/windows.h"
#include "shared/frame.h"
#include "shared/hash.h"
#include "shared/interval.h"

/*
 * How long windows and references are kept after they were last seen: nothing of them is in a
 * window then.
 */
#define USAGE_KEEP_NS ((15 * 60 + POD_BUCKET_SECONDS) * 1000000000LL)
/*
 * How long those of a pod by its UID, and of the containers in pods. A UID that is gone comes back
 * only where an agent missed it for a moment; where pods live for 20 minutes, those that left would
 * take three quarters of what those that run do.
 */
#define USAGE_KEEP_UID_NS (120 * 1000000000LL)

/*
 * Windows of a pod, unit, slice or free container, by what it is called in every run of the agent.
 */
struct usage_pod {
	struct pod_windows *windows; /* owned */
	int64_t seen_ns; /* latest end of an interval it was in */
	struct pod_hours hours;
	struct contention_cause cause; /* as the newest interval told */
	bool current; /* in the newest interval */
	bool by_uid;
	char key[]; /* pod UID, else the name */
};

/* New identity or limits of a reference in this interval, not yet in the node's names. */
struct usage_news {
	struct entity *entity; /* held; NULL: only the limits are new */
	struct kernel_limits limits;
};

/* A reference of the current run, and the cgroup it stands for. */
struct usage_ref {
	uint32_t ref;
	uint32_t parent; /* reference of a container's pod, else 0 */
	uint8_t kind, qos, runtime; /* enums of shared/interval.h */
	bool current; /* in the newest interval */
	uint32_t use; /* its place in the node's uses while it is current */
	uint32_t rank; /* by name among the node's references; the same for the same name */
	uint32_t place; /* of its pod in the stats under construction */
	const char *name, *uid, *id; /* in the node's names, as are the limits */
	const struct kernel_limits *limits;
	struct usage_news *news; /* owned; NULL: nothing */
	struct usage_pod *pod; /* borrowed; NULL: a container in a pod */
	struct demand_entry *demand; /* borrowed, to be released; NULL: not known */
	uint8_t demand_tries; /* to find it */
	int64_t seen_ns;
};

/*
 * The references on stats by their places in refs: pods in the stats' order, those of one name
 * oldest first, and behind them containers in that of their pods.
 */
struct stats_order {
	uint64_t layout; /* that it is of; 0: it is to be made */
	uint32_t pods, containers;
	uint32_t *refs; /* owned */
};

/* An interval of some run. */
struct usage_mark {
	bool known; /* else there is none, and all else is 0 */
	uint8_t run[FRAME_RUN_LEN];
	uint64_t sequence;
};

/* The newest interval in what was last packed for the database, and by which save. */
struct usage_packed {
	uint64_t save; /* 0: read from it, or never packed */
	uint64_t generation; /* of the node when it was */
	struct usage_mark mark;
};

struct usage_node {
	uint8_t run[FRAME_RUN_LEN];
	bool has_run; /* something was applied in this process; run and sequence have a meaning */
	uint64_t sequence; /* last applied one of run */
	struct usage_mark counted; /* newest in windows; if known, head and stats have a meaning */
	struct usage_packed packed;
	struct usage_mark
		durable; /* newest in the database, as far as saves before that of packed go */
	uint8_t asked_run[FRAME_RUN_LEN]; /* run that was asked for everything */
	uint8_t asked_nonce[FRAME_NONCE_LEN]; /* of the frame that was answered so */
	bool has_asked;
	uint64_t connection; /* on which run was last told; 0: it is closed */
	int64_t told_ns; /* when it was, by the service's clock .. */
	int64_t alone_ns; /* .. and for how long it stays alive without its connection */
	int64_t begun_ns; /* service time of its first interval; later ones are in totals */
	struct node_totals totals;
	struct node_clock clock;
	bool clock_flagged; /* it is far off, and somebody was told */
	int64_t heard_ns; /* service time of the last interval that was applied or asked about */

	struct node_windows *windows; /* owned */
	size_t pod_count, pod_room;
	struct usage_pod *
		*pods; /* each owned; sorted by key: a hash would cost 60 bytes for each */
	struct node_peaks *peaks; /* held; of all pods; NULL: none yet */
	int64_t forget_ns; /* end of the interval with which an entry goes; INT64_MAX: none */
	size_t ref_count;
	struct usage_ref *refs; /* owned; sorted by ref */
	struct stats_names *names; /* held; the node's own name, then all of refs */
	uint64_t layout; /* generation in which refs, their names or limits last changed */
	struct stats_order order; /* how stats of that layout list the references */
	struct usage *uses; /* owned; of the newest interval's entries; NULL once stats tell them */
	struct usage node_usage; /* of the newest interval */
	struct node_stats head; /* what stats say of the node beside usage and pods */
	struct node_quarantine quarantine;
	int64_t good_ns; /* end of the newest interval whose CPU and memory of the node could be */
	struct node_stats *stats; /* held; NULL: to be built */
	/* Held; until then the last ones, for values whose newer ones are impossible. */
	struct node_stats *old_stats;
	bool stale; /* it waits for its stats in the state's list */
	UT_hash_handle hh; /* of the state's index, by name */
	char name[];
};

struct usage_node *usage_node_new(const char *name, int64_t now_ns);
void usage_node_free(struct usage_node *n);
/* NULL where there is no such reference. */
const struct usage_ref *usage_node_find_ref(const struct usage_node *n, uint32_t ref);
/* The windows of a pod that the node's stats have; NULL: they are forgotten. */
const struct usage_pod *usage_node_find_pod(const struct usage_node *n, const struct pod_stats *p);
bool usage_node_runs(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN]);

/*
 * True when every entry says who it is or is known from earlier in this run (same_run; n may be
 * NULL otherwise); else *missing is the first reference that is neither. *pods counts the entries
 * that will have windows.
 */
bool usage_node_knows(const struct usage_node *n, bool same_run, const struct interval *interval,
		      uint32_t *missing, size_t *pods);

/*
 * Applies an interval that was checked. pods_max bounds what is kept beside the entries of the
 * interval. An interval that the node's windows have (counted) goes to the pods alone; one that an
 * agent merged of some that they have and some that they have not, too: of how many they are then
 * without is returned, else 0.
 */
uint64_t usage_node_apply(struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
			  const struct interval *interval, uint64_t generation, size_t pods_max);

/* Empties the windows of the node and of its pods. */
void usage_node_clear_windows(struct usage_node *n);

/*
 * Makes a node that was unpacked fit to be shown: with the names it needs, without pods, as heard
 * by no one yet.
 */
void usage_node_restore(struct usage_node *n, int64_t now_ns, uint64_t generation);

bool usage_mark_is(const struct usage_mark *m, const uint8_t run[FRAME_RUN_LEN]);

void usage_ref_drop_news(struct usage_ref *r);
/* Remembers what was put aside in the interval just applied, which ends at end_ns. */
void usage_node_note(struct usage_node *n, const struct quarantine *q, int64_t end_ns);

/*
 * Moves the names and limits of all references, those just told included, into new storage and
 * ranks them.
 */
void usage_node_rename(struct usage_node *n);

/* Room in which stats are put together, reused from node to node. */
struct stats_scratch {
	size_t room; /* of each array */
	struct usage_ref **pods, **containers;
	struct pod_stats *stats_pods;
	struct container_stats *stats_containers;
};

void stats_scratch_free_members(struct stats_scratch *s);
struct node_stats *usage_node_stats(struct usage_node *n, struct stats_scratch *s);
