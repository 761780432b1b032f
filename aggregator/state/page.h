/* SPDX-License-Identifier: Apache-2.0 */
/* Everything about one node and its pods, immutable and shared: what readers see. */
#ifndef EVENKEEL_AGGREGATOR_STATE_PAGE_H
#define EVENKEEL_AGGREGATOR_STATE_PAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/windows.h"
#include "shared/frame.h"
#include "shared/interval.h"

/* How old the newest measurement is; decided when it is read, see page_freshness(). */
enum freshness { FRESH, LATE, EXPIRED, NEVER };

#define FRESH_NS   (30 * 1000000000LL)
#define EXPIRED_NS (300 * 1000000000LL)

struct latest {
	bool known;
	double value; /* of the newest interval: its mean for CPU, its last value for memory */
	int64_t end_ns;
};

struct page_usage {
	struct latest cpu_milli, mem_bytes, working_set_bytes;
	struct window_set windows[WINDOWS];
};

struct page_container {
	const char *name; /* cgroup path; lives as long as the page, as all strings here */
	const char *id; /* container id, "" unknown */
	enum container_runtime runtime;
	struct kernel_limits limits;
	struct latest cpu_milli, mem_bytes, working_set_bytes;
	bool throttle_known;
	double throttled_seconds; /* in the newest interval */
};

struct page_pod {
	const char *name; /* the API's, else the cgroup's path */
	const char *uid; /* "" where there is none */
	enum entity_kind kind;
	enum qos_class qos;
	struct kernel_limits limits;
	struct page_usage usage;
	size_t container_count;
	const struct page_container *containers; /* sorted by name */
};

/* The strings of a node's pages, shared by all pages between two changes of what is on the node. */
struct page_names {
	atomic_uint users;
	char text[];
};

struct node_page {
	atomic_uint users;
	struct page_names *names; /* held; NULL: the strings are in the page's own block */
	uint64_t
		generation; /* of the state when it was built: grows with every change of this node */
	const char *name;
	uint8_t run[FRAME_RUN_LEN];
	int64_t end_ns; /* of the newest interval */
	enum sampler_tier tier;
	float rate_hz;
	uint32_t missed_ticks;
	uint32_t overflow;
	uint64_t pass_ns;
	double agent_cpu_milli; /* the agent's own use */
	int64_t cpu_capacity_milli, mem_capacity_bytes;
	int64_t cpu_allocatable_milli,
		mem_allocatable_bytes; /* the capacity where the API is unknown */
	struct page_usage usage;
	size_t pod_count;
	const struct page_pod *pods; /* sorted by name */
};

/* With one user and room for size bytes. */
struct page_names *page_names_new(size_t size);
/* NULL is allowed. */
void page_names_drop(struct page_names *n);

/*
 * A copy of `from` with one user, in one block of memory: the page, its pods, their containers and every string.
 * With from->names set, that is held instead, and the strings, which must lie in it, are not copied. Pods and
 * containers must be sorted by name (strcmp); NULL strings become "" in a copy. from->users does not matter.
 */
struct node_page *page_new(const struct node_page *from);
struct node_page *page_hold(struct node_page *p);
/* Any thread; the last user frees it. NULL is allowed. */
void page_drop(struct node_page *p);
/* By the age of the newest interval: fresh below FRESH_NS, expired above EXPIRED_NS; never for NULL and end_ns 0. */
enum freshness page_freshness(const struct node_page *p, int64_t now_ns);
const char *freshness_name(enum freshness f); /* "fresh", "late", "expired", "none" */

#endif
