/* SPDX-License-Identifier: Apache-2.0 */
/* One node of the usage state: what its agent's run has told, and the windows that outlive the run. */
#ifndef EVENKEEL_AGGREGATOR_STATE_USAGE_NODE_H
#define EVENKEEL_AGGREGATOR_STATE_USAGE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/page.h"
#include "aggregator/state/usage.h"
#include "aggregator/state/windows.h"
#include "shared/frame.h"
#include "shared/interval.h"
#include "shared/mem.h"

#define uthash_malloc(size) mem_alloc(size)
#include <uthash.h>

/* How long windows and references are kept after they were last seen: nothing of them is in a window then. */
#define USAGE_KEEP_NS ((15 * 60 + POD_BUCKET_SECONDS) * 1000000000LL)

/* Windows of a pod, unit, slice or free container, by what it is called in every run of the agent. */
struct usage_pod {
	struct pod_windows *windows; /* owned */
	int64_t seen_ns; /* latest end of an interval it was in */
	bool current; /* in the newest interval */
	UT_hash_handle hh; /* by key */
	char key[]; /* pod UID, else the name */
};

/* What a reference of the current run stands for. */
struct usage_ref {
	uint32_t ref;
	uint32_t parent; /* reference of a container's pod, else 0 */
	uint8_t kind, qos, runtime; /* enums of shared/interval.h */
	bool current; /* in the newest interval */
	uint32_t rank; /* by name among the node's references; the same for the same name */
	uint32_t place; /* of its pod in the page under construction */
	const char *name, *uid, *id; /* in the node's names */
	struct entity *news; /* held; told anew in this interval and not yet in names */
	struct usage_pod *pod; /* borrowed; NULL: a container in a pod */
	struct kernel_limits limits;
	int64_t seen_ns;
	struct usage usage; /* of the interval it was last in */
};

struct usage_node {
	uint8_t run[FRAME_RUN_LEN];
	bool has_run; /* something was applied; run, sequence, head and page have a meaning */
	uint64_t sequence; /* last applied one of run */
	uint8_t asked_run[FRAME_RUN_LEN]; /* run that was asked for everything */
	bool has_asked;
	int64_t heard_ns; /* service time of the last interval that was applied or asked about */

	struct node_windows *windows; /* owned */
	struct usage_pod *pods; /* owned; hash by key */
	size_t ref_count;
	struct usage_ref *refs; /* owned; sorted by ref */
	struct page_names *names; /* held; the node's own name, then all of refs */
	struct usage node_usage; /* of the newest interval */
	struct node_page head; /* what a page says of the node beside usage and pods */
	struct node_page *page; /* held; NULL: to be built */
	char name[];
};

struct usage_node *usage_node_new(const char *name);
void usage_node_free(struct usage_node *n);
bool usage_node_runs(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN]);

/*
 * True when every entry says who it is or is known from earlier in this run (same_run; n may be NULL otherwise);
 * else *missing is the first reference that is neither. *pods counts the entries that will have windows.
 */
bool usage_node_knows(const struct usage_node *n, bool same_run, const struct interval *interval,
		      uint32_t *missing, size_t *pods);

/* Applies an interval that was checked. pods_max bounds what is kept beside the entries of the interval. */
void usage_node_apply(struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
		      const struct interval *interval, uint64_t generation, size_t pods_max);

/* Moves the names of all references, those just told included, into new storage and ranks them. */
void usage_node_rename(struct usage_node *n);

/* Room in which pages are put together, reused from page to page. */
struct page_scratch {
	size_t room; /* of each array */
	struct usage_ref **pods, **containers;
	struct page_pod *page_pods;
	struct page_container *page_containers;
};

void page_scratch_free_members(struct page_scratch *s);
struct node_page *usage_node_page(struct usage_node *n, struct page_scratch *s);

#endif
