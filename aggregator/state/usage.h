/* SPDX-License-Identifier: Apache-2.0 */
/* The usage state: every node's windows, fed by one call, published as views. Owned by the loop thread. */
#ifndef EVENKEEL_AGGREGATOR_STATE_USAGE_H
#define EVENKEEL_AGGREGATOR_STATE_USAGE_H

#include <stdint.h>

#include "aggregator/state/view.h"
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
	uint64_t resend_from; /* with USAGE_NEED_FULL */
	char reason[192];
};

struct usage_limits {
	uint32_t nodes_max; /* default 20000 */
	uint32_t pods_per_node_max; /* default 8192 entries that are pods, units or slices */
};

struct usage_state;

struct usage_state *usage_new(const struct usage_limits *limits);
void usage_free(struct usage_state *u);

/*
 * One interval of one run of one node's agent. Order and duplicates are told by (run, sequence); a run not yet
 * heard is asked once for everything its agent still has (resend_from 1) and then taken as it comes; a run that
 * starts more than 5 s before the node's last applied end is refused, and so is one told from its middle while the
 * node's run was heard within 30 s (two agents of one name), and an interval that ends more than 5 minutes after
 * now. Values that cannot be (usage_check.h) refuse the interval with the number. Takes
 * nothing over. interval->sequence must be > 0, its entries sorted by ref.
 */
void usage_apply(struct usage_state *u, const char *node, const uint8_t run[FRAME_RUN_LEN],
		 const struct interval *interval, int64_t now_ns, struct usage_answer *answer);

/*
 * A view of everything applied so far, rebuilding only the pages of nodes that changed since the last call. A page
 * shows the pods of the node's newest interval, its windows as of that interval's end. Nodes silent for a day are
 * forgotten.
 */
struct view *usage_view(struct usage_state *u, int64_t now_ns);
/* True when something was applied since the last usage_view(). */
bool usage_dirty(const struct usage_state *u);

#endif
