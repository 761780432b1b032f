/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the usage state, and what plans remember, in a database: reads it at start, saves what
 * changed again and again, tells what is wrong.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "aggregator/planner/drain_log.h"
#include "aggregator/planner/plan.h"
#include "aggregator/state/counters.h"
#include "aggregator/state/node_keys.h"
#include "aggregator/state/usage.h"
#include "shared/error.h"
#include "shared/keyring.h"

#define SAVER_WORKLOADS "workloads"
#define SAVER_NODE_KEYS "nodeKeys"
#define SAVER_DEMAND	"demand" /* and the number of a shard */

struct copier;
struct publisher;

struct saver_config {
	const char *dir; /* borrowed, as is all here, for the saver's life */
	bool copies; /* another aggregator may have some */
	int64_t every_ns;
	size_t nodes_max;
	uv_loop_t *loop;
	struct usage_state *usage;
	struct counters *counters;
	struct plan_slot *plans; /* what they remember is saved, too */
	struct view_slot *
		views; /* and what these remember of workloads, as SAVER_WORKLOADS, and of demand */
	struct drain_log *decisions; /* saved, too, and restored */
	const struct node_keys *node_keys; /* saved, too, as SAVER_NODE_KEYS */
	struct publisher *publisher; /* publishes nodes that come back while the loop runs */
	/*
	 * What was remembered under a name is back; loop thread, also before saver_open()
	 * returns.
	 */
	void (*recalled)(void *ctx, const char *name, const char *text, size_t len);
	void *ctx;
};

struct saver;

/*
 * Before saver_open(): if the directory (NULL: none) has no database yet, it gets a copy of that of
 * the aggregator at peer (ingest_copy.h). The log has what became of it. -ECANCELED with the reason:
 * SIGTERM or SIGINT came; else 0.
 */
int saver_take_copy(const char *dir, const char *peer, const struct keyring *keys,
		    struct exchange_counters *counters, struct error *error);
/*
 * Starts the store and waits, for some seconds at most, for what is in the database: the state has
 * it before anything can be heard. Whatever is wrong with the database is logged and shown, not
 * returned.
 */
int saver_open(struct saver **s, const struct saver_config *config, struct error *error);
/* Gives copies of the database to another aggregator; until saver_finish(). NULL: nobody does. */
struct copier *saver_copier(const struct saver *s);
/* Once the loop stands still: saves what changed and ends the store. NULL is allowed, as below. */
void saver_finish(struct saver *s);
/* After saver_finish(), once the loop closed its handles. */
void saver_free(struct saver *s);
