/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes views of what was measured and what the Kubernetes API tells, piece by piece between other
 * work of the loop.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "aggregator/engine_informer.h"
#include "aggregator/engine_recorder.h"
#include "aggregator/state/counters.h"
#include "aggregator/state/join.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/usage.h"
#include "aggregator/state/view.h"

/* All of it borrowed for the publisher's life. */
struct publisher_config {
	uv_loop_t *loop;
	struct usage_state *usage;
	struct join *join;
	struct view_slot *views;
	struct reservations *reservations; /* each publication settles it */
	struct informer *const *informer; /* where objects come from; *informer NULL: standalone */
	struct counters *counters;
	struct recorder *recorder; /* NULL: nothing is recorded */
	void (*published)(void *ctx, int64_t now_ns); /* each time */
	void *ctx;
};

struct publisher;

/*
 * Its handles are in the loop then, for the caller to close before publisher_free(), whatever is
 * returned: libuv's error.
 */
int publisher_open(struct publisher **p, const struct publisher_config *config);
/* NULL is allowed. */
void publisher_free(struct publisher *p);
/* All that is known, and before it returns. */
void publisher_publish(struct publisher *p);
/*
 * Frames were applied: they are seen within a second or so. `idle`: none waits, so as many node
 * stats are built.
 */
void publisher_note_frames(struct publisher *p, size_t frames, bool idle);
/*
 * Any thread. A reader waits for all that is known (view_slot_refresh()): it is published at once,
 * as far as that leaves the loop two thirds of its time, and answered.
 */
void publisher_want(struct publisher *p, uint64_t ticket);
/* The model changed: sooner. */
void publisher_note_events(struct publisher *p);
