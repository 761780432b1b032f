/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The annotation evenkeel.io/drain of a node, which holds all that a successor must know of a drain:
 *
 *   {"plan":S,"holder":S,"since":RFC3339,"phase":PHASE,"cordoned":true}
 *
 *   claimed --> tainted --> evicting --> verified --> drained
 *      |           |            |            |            |
 *      +-----------+------------+------------+------------+--> rolledBack
 *
 * A node that is drained and takes pods again, or was rolled back, may be claimed again.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/buf.h"

#define MARK_ANNOTATION "evenkeel.io/drain"
#define MARK_TAINT	"evenkeel.io/draining" /* effect NoSchedule */

enum mark_phase {
	MARK_NONE, /* no annotation */
	MARK_CLAIMED,
	MARK_TAINTED, /* tainted and cordoned */
	MARK_EVICTING,
	MARK_VERIFIED, /* empty, and the replacements are Ready */
	MARK_DRAINED,
	MARK_ROLLED_BACK,
	MARK_PHASES,
	MARK_GARBLED = MARK_PHASES, /* unreadable */
};

enum { MARK_PLAN_LEN = 24, MARK_HOLDER_LEN = 256 };

struct mark {
	enum mark_phase phase;
	char plan[MARK_PLAN_LEN], holder[MARK_HOLDER_LEN];
	int64_t since_ns; /* of the phase; Unix */
	bool cordoned; /* by evenkeel */
};

const char *mark_phase_name(enum mark_phase phase);
/* Whether a drain is under way: from claimed to verified. */
bool mark_is_active(enum mark_phase phase);
/* Whether one step of the diagram leads from one phase to the other. */
bool mark_may_follow(enum mark_phase from, enum mark_phase to);
/* An unreadable text sets the phase MARK_GARBLED only. */
void mark_read(const char *text, struct mark *m);
/* Appends the JSON object. */
void mark_write(const struct mark *m, struct buf *out);
