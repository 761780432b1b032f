/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real kube-scheduler that asks the real aggregator, by the configuration users are given, of
 * which only the extender's address is filled in. Twelve nodes of one size with one resident pod
 * each, so that by what is requested they are the same. What the residents use is not, and comes in
 * frames as agents send them.
 *
 *     scheduler --> aggregator <-- frames of 15 minutes and on
 *         |             |
 *         +--> API <----+
 *
 * Pods are of the namespace default, and stay where they are bound until they are deleted: there is
 * no kubelet. What is awaited and does not come fails the test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/kube_testbed.h"
#include "tests/kube_usage.h"

/*
 * SCHED_KINDS divides the nodes: of nodes i and i + SCHED_KINDS the residents' limits differ, of
 * those between not.
 */
enum { SCHED_NODES = 12, SCHED_KINDS = 3, SCHED_TIMEOUT = 90 };

struct sched_world {
	struct kube_testbed *bed;
	char names[SCHED_NODES][16], *uids[SCHED_NODES];
	struct kube_load loads[SCHED_NODES];
	struct kube_usage usage;
};

/*
 * Nodes and residents; no scheduler, no aggregator. NULL: there is no control plane here, and the
 * test is skipped.
 */
struct sched_world *sched_world_new(void);
void sched_world_free(struct sched_world *w, bool failed);
size_t sched_node(const struct sched_world *w, const char *name);

/* What the resident of node i uses; told with the next restart of the aggregator. */
void sched_use(struct sched_world *w, size_t i, double cpu_milli, double sigma_milli);
/*
 * Starts the aggregator anew, on its old port, with options that end with NULL; it is told of the
 * last 15 minutes.
 */
void sched_restart_aggregator(struct sched_world *w, const char *const *options);
/* Tells it of the time since. */
void sched_await_heard(struct sched_world *w);
/*
 * Starts the scheduler anew, asking that port. Awaits that it knows the nodes, the residents and so
 * many pods more.
 */
void sched_start(struct sched_world *w, int port, bool ignorable, size_t pods);

/* As JSON; `more` is of the spec, with a comma behind it. The caller frees it. */
char *sched_pod_text(const char *name, const char *more, const char *resources);
void sched_make_pod(struct sched_world *w, const char *name, const char *more,
		    const char *resources);
void sched_make_pods(struct sched_world *w, const char *prefix, size_t count,
		     const char *resources);
void sched_remove_pods(struct sched_world *w); /* all but the residents */

/* Resources, 1 % and 2 % of a node's. */
extern const char sched_small_pod[], sched_large_pod[];

struct sched_placed {
	int on[SCHED_NODES];
};

/* Awaits that so many pods whose names begin so have a node. */
struct sched_placed sched_await_placed(struct sched_world *w, const char *prefix, size_t want);
void sched_print(const char *what, const int of[SCHED_NODES]);

double sched_metric(const struct sched_world *w, const char *name); /* -1: it is not there */
/* Pods that /v1/nodes has as assumed, on that node or, NULL, on all. */
double sched_assumed_on(const struct sched_world *w, const char *node);
bool sched_has_no_reservations(const struct sched_world *w);
void sched_await_no_reservations(struct sched_world *w);
