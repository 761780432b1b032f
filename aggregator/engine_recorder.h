/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a record (aggregator/state/record.h) of what the aggregator is told and of when it publishes
 * views, on a thread of its own. Whatever is wrong with the files is logged and counted: the service
 * goes on, and the record begins anew.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/ingest.h"
#include "aggregator/planner/plan.h"
#include "aggregator/state/counters.h"
#include "aggregator/state/record.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/view.h"
#include "shared/error.h"

struct recorder_config {
	const char *dir; /* borrowed, as is all here, for the recorder's life */
	int64_t keep_ns; /* older segments are deleted .. */
	uint64_t bytes_most; /* .. and the oldest beyond this, which a step may exceed */
	struct plan_slot *plans;
	struct reservations *reservations;
	struct record_counters *counters;
};

struct recorder;

/* Makes the directory if it is missing. -errno with the reason. */
int recorder_open(struct recorder **r, const struct recorder_config *config, struct error *error);
/* Writes what is left, and ends the thread. NULL is allowed, as in all below: nothing is recorded. */
void recorder_close(struct recorder *r);

/* Loop thread. An interval, and what usage_apply() said of it. */
void recorder_interval(struct recorder *r, const struct ingest_interval *i,
		       enum usage_verdict verdict);
/* usage_build_stats() built so many; usage_gather_stats() was called; the view of these is published. */
void recorder_built(struct recorder *r, size_t count);
void recorder_gathered(struct recorder *r);
void recorder_published(struct recorder *r, struct view *v, int64_t now_ns);
/* Any thread. There is a new plan in the slot. */
void recorder_planned(struct recorder *r, int64_t now_ns);
