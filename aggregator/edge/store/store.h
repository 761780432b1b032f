/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of the database: owned messages in, owned events out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/planner/drain_log.h"
#include "aggregator/state/workload_demand.h"
#include "aggregator/state/shared_body.h"
#include "aggregator/state/usage.h"
#include "shared/error.h"

struct store_config {
	const char *dir; /* borrowed until store_stop(), as is ctx */
	size_t nodes_max;
	int busy_ms; /* how long to wait for the lock of another process */
	int64_t retry_ns; /* between attempts to open it */
	void (*wake)(
		void *ctx); /* called on the store's thread when there is an event; holds no lock */
	void *ctx;
};

enum {
	STORE_BATCH_ROWS = 32,
	STORE_MEMOS_MAX = 4 + DEMAND_SHARDS, /* named states (database.c) */
	STORE_MEMO_BYTES_MAX = 16 << 20
};

/* A named state (database.c). */
struct store_memo {
	const char *name; /* static */
	struct shared_body *text; /* held */
};

/* A part of a save. The first batch of a save undoes an unfinished one. */
struct store_batch {
	uint64_t save;
	bool last; /* commit the save .. */
	int64_t forget_before_ns; /* .. and delete rows last heard before */
	size_t count;
	struct usage_row rows[STORE_BATCH_ROWS]; /* owned */
	size_t memo_count;
	/* changed ones; each replaces the former one of its name */
	struct store_memo memos[STORE_MEMOS_MAX];
	int64_t saved_ns; /* Unix time, of memos */
	struct drain_rows decisions; /* owned; those since the last save */
	/*
	 * Static; not NULL: instead of all that, a copy of the database without the state of that
	 * name, while no save is under way.
	 */
	const char *copy_without;
	struct store_batch *prev, *next; /* for the store */
};

enum store_event_kind {
	STORE_OPENED,
	STORE_NOT_OPENED, /* with the reason; it is tried again */
	STORE_WRITTEN, /* a batch before the last */
	STORE_SAVED,
	STORE_FAILED, /* with the reason; nothing of the save is in the database */
	STORE_COPIED,
};

struct store_event {
	enum store_event_kind kind;
	/* STORE_OPENED */
	bool empty; /* no rows of earlier saves */
	struct error note; /* a database that was set aside, and why; or "" */
	/* first opening only: the content, sorted by name */
	size_t node_count;
	struct usage_node **nodes; /* owned; a taken one is replaced by NULL */
	size_t memo_count; /* by name */
	struct store_recalled {
		char *name, *text; /* owned; text may hold zeros */
		size_t len;
	} * memos; /* owned */
	/* the newest, oldest first; each held */
	size_t decision_count;
	struct drain_row **decisions;
	uint64_t decision_last; /* number of the last one */
	/* STORE_WRITTEN, STORE_SAVED, STORE_FAILED */
	uint64_t save;
	/* STORE_OPENED, STORE_SAVED */
	int64_t took_ns; /* since the first batch of the save, or the beginning of opening */
	uint64_t bytes; /* of the files */
	size_t aside; /* set-aside databases in the directory */
	/* STORE_COPIED: a file without a name, owned; negative: there is none, with the reason */
	int copy;
	/* STORE_NOT_OPENED, STORE_FAILED, STORE_COPIED */
	struct error error;
	struct store_event *prev, *next; /* for the store */
};

struct store;

/*
 * Begins to open the database; the first event is STORE_OPENED or STORE_NOT_OPENED. -EAGAIN: no
 * thread.
 */
int store_start(struct store **s, const struct store_config *config, struct error *error);
/* Ends the thread after the batches so far; an unfinished save is undone. NULL is allowed. */
void store_stop(struct store *s);
/* Takes over the batch. Each is answered by one event, in order. */
void store_put(struct store *s, struct store_batch *batch);
/* The next event, or NULL after the timeout (0: at once). The caller frees it. */
struct store_event *store_take(struct store *s, int64_t timeout_ns);
void store_event_free(struct store_event *e); /* NULL is allowed */
struct store_batch *store_batch_new(uint64_t save);
