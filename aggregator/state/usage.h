/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usage state: every node's windows, fed by one call, given out as stats. Owned by the loop
 * thread.
 */
#pragma once

#include <stdint.h>

#include "aggregator/state/node_stats.h"
#include "aggregator/state/usage_check.h"
#include "shared/buf.h"
#include "shared/frame.h"
#include "shared/interval.h"

enum usage_verdict {
	USAGE_APPLIED,
	USAGE_DUPLICATE, /* this run's sequence is not newer; nothing changed */
	USAGE_TOO_OLD, /* ended more than 15 minutes and 30 s before now; nothing changed */
	USAGE_NEED_FULL, /* resend_from says from where, with all identities; nothing changed */
	USAGE_REFUSED, /* see reason; nothing changed */
};

struct usage_answer {
	enum usage_verdict verdict;
	uint64_t applied; /* last applied sequence of this run */
	uint64_t durable; /* last sequence of this run in the database, 0: none */
	uint64_t resend_from; /* with USAGE_NEED_FULL */
	/*
	 * With USAGE_APPLIED: published intervals that the node's windows must do without, see
	 * usage.c.
	 */
	uint64_t lost;
	/*
	 * With USAGE_APPLIED: published intervals between it and the last one heard of its run that
	 * did not come.
	 */
	uint64_t missing;
	/* with USAGE_APPLIED: for the first time the node's clock is over 30 s off .. */
	bool clock_flagged;
	double clock_ahead_seconds; /* .. by this much */
	struct quarantine quarantine; /* with USAGE_APPLIED: what of it was put aside */
	char reason[192];
};

struct usage_limits {
	uint32_t nodes_max;
	uint32_t pods_per_node_max; /* entries that are pods, units or slices */
};

/* Of an aggregator. */
extern const struct usage_limits usage_default_limits;

struct demand;
struct usage_state;

struct usage_state *usage_new(const struct usage_limits *limits);
/* Where the demand in intervals goes; borrowed until usage_free(). Without it, nowhere. */
void usage_set_demand(struct usage_state *u, struct demand *d);
void usage_free(struct usage_state *u);

/*
 * One interval of one run of one node's agent, which usage_admit() admits. Order and duplicates are
 * told by (run, sequence); a run not yet heard in this process is asked once for everything its
 * agent still has (resend_from 1) and then taken as it comes; a run that starts more than 5 s
 * before the node's last applied end is refused, and so is an interval that ends more than 5
 * minutes after now. Times are corrected by what is known of the node's clock (node_clock.h).
 * Values that cannot be are put aside (usage_check.h), also in `told`, and the rest counts. nonce
 * is that of the frame: one that was asked for everything and comes a second time is asked again;
 * NULL: it is none. Takes nothing over. told->sequence must be > 0, its entries sorted by ref.
 */
void usage_apply(struct usage_state *u, const char *node, const uint8_t run[FRAME_RUN_LEN],
		 const uint8_t nonce[FRAME_NONCE_LEN], struct interval *told, int64_t now_ns,
		 struct usage_answer *answer);

enum usage_admission {
	USAGE_ADMITTED,
	USAGE_EARLY, /* the node's run may come back: its next interval is not due */
	USAGE_RIVAL, /* the node's run is alive */
};

/*
 * Whether an interval of the run may be applied now, by the connection on which it comes. The run
 * that is alive wins, see usage.c. Nothing changes.
 */
enum usage_admission usage_admit(const struct usage_state *u, const struct frame_header *header,
				 uint64_t connection, int64_t now_ns);
/* The node's interval that was just applied came on this connection, and covers so much time. */
void usage_note_connection(struct usage_state *u, const char *node, uint64_t connection,
			   int64_t span_ns, int64_t now_ns);
/* The connection is closed. */
void usage_note_closed(struct usage_state *u, const char *node, uint64_t connection);

/*
 * Stats show the pods of the node's newest interval, its windows as of that interval's end. Stats
 * are rebuilt in steps, so that the loop answers in between: of the nodes that changed, the next
 * `most` get their stats, those first that changed longest ago; returns how many did.
 */
size_t usage_build_stats(struct usage_state *u, size_t most);
/* How many nodes wait for their stats. */
size_t usage_stale(const struct usage_state *u);
/*
 * The stats of all nodes heard so far, sorted by name: of a node that waits the last ones, if it
 * has any. Nodes silent for a day are forgotten. The stats are borrowed until the next call of either
 * of these two, unless the caller holds them; intervals may be applied meanwhile.
 */
struct node_stats *const *usage_gather_stats(struct usage_state *u, int64_t now_ns, size_t *count);
/* True when something was applied or restored that is not in the stats given last. */
bool usage_dirty(const struct usage_state *u);

struct window_buckets;

/*
 * Reads the buckets of a node's windows, or of those of a pod that its stats have (NULL: the
 * node's). -ENOENT: they are not known.
 */
int usage_read_buckets(const struct usage_state *u, const char *node, const struct pod_stats *pod,
		       struct window_buckets *out);

/*
 * What a database does for it. A save is a number: begin it, take rows until there are no more, and
 * tell when they all are in the database; a save that is never told of did not happen. Nodes that
 * did not change since they were last saved have no row.
 */
struct usage_node;

struct usage_row {
	char *name; /* owned */
	int64_t heard_ns;
	struct buf packed; /* owned; without its seal, see usage_pack.h */
};

uint64_t usage_save_begin(struct usage_state *u);
/* At most `most` rows of the save that was begun last; 0: that was all. */
size_t usage_save_next(struct usage_state *u, struct usage_row *rows, size_t most);
void usage_save_done(struct usage_state *u, uint64_t save);
/* The database is another one, or empty: nothing of what was saved is in it. */
void usage_save_reset(struct usage_state *u);
void usage_row_fini(struct usage_row *row);
/* Nodes last heard before are forgotten, here and in the database. */
int64_t usage_forget_before_ns(int64_t now_ns);

/*
 * A node out of the database, taken over and, unless 0, freed. -EEXIST: it was heard meanwhile;
 * -ESTALE: a day ago for the last time; -ERANGE: in a future by more than intervals may be;
 * -ENOSPC: beyond nodes_max.
 */
int usage_restore(struct usage_state *u, struct usage_node *n, int64_t now_ns);
