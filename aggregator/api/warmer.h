/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works out what schedulers will ask of a view as soon as it is published, while they ask, so that
 * no question waits for it.
 */
#ifndef EVENKEEL_AGGREGATOR_API_WARMER_H
#define EVENKEEL_AGGREGATOR_API_WARMER_H

#include <stdint.h>

#include "aggregator/state/view.h"
#include "shared/reason.h"

struct warmer;

/* Without its thread yet, and then nothing is warmed. The views are borrowed. */
struct warmer *warmer_new(struct view_slot *views);
/* -EAGAIN with the reason: no thread. */
int warmer_start(struct warmer *w, struct reason *reason);
/* Ends the thread behind what is due. NULL is allowed, as in all below. */
void warmer_stop(struct warmer *w);
void warmer_free(struct warmer *w); /* stopped */
/* Any thread: nodes were scored. */
void warmer_asked(struct warmer *w, int64_t now_ns);
/*
 * There is a newer view. Warms it, on the thread, if nodes were scored within the last minute.
 * Never waits for that.
 */
void warmer_published(struct warmer *w, int64_t now_ns);

#endif
