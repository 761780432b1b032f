/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that plans: slack, and drains behind it, of the newest view again and again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregator/planner/plan.h"
#include "aggregator/state/counters.h"

struct planner_config {
	struct view_slot *views; /* borrowed, as is all here, for the planner's life */
	struct plan_slot *plans; /* where plans go */
	struct plan_peer *peer; /* NULL: there is no other aggregator */
	struct planner_counters *counters;
	int64_t every_ns; /* between plans, at least: planning takes at most 1/40 of a CPU */
	const struct slack_options *slack;
	const struct plan_drain *drain; /* its state is taken over; NULL: no drains are planned */
};

struct planner;
struct recorder;

struct planner *planner_new(const struct planner_config *config);
/*
 * Something that was saved under that name, before planner_start(). What cannot be read is told and
 * left out, and so is what comes later: then plans were made without it.
 */
void planner_remember(struct planner *p, const char *name, const char *text, size_t len);
/* recorder: told of each plan; NULL: none. -EAGAIN with the reason: no thread. */
int planner_start(struct planner *p, struct recorder *recorder, struct error *error);
/*
 * Whether the first plan waits, up to a minute after nodes and pods are known: for kinds that are not
 * listed yet, and for agents whose newest measurement expired. The view has a cluster; wall_ns: Unix
 * time.
 */
bool planner_awaits_more(const struct view *v, int64_t known_for_ns, int64_t wall_ns);
/* Ends the thread; what it published stays in the slot. NULL is allowed, as below. */
void planner_stop(struct planner *p);
void planner_free(struct planner *p);
