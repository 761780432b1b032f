/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations as an aggregator tells them to another one: the body Exchange of shared/body.proto.
 * Times are told as durations from the moment of writing, since the clocks of both may differ.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/reservations.h"
#include "shared/buf.h"
#include "shared/error.h"

enum { RESERVATIONS_MESSAGE_ONE_MAX = 40 * 1024 }; /* bytes of one reservation */

/* Begins a body. */
void reservations_message_begin(struct buf *body, uint64_t session);
/* Adds what is reserved for the pod; e NULL: nothing is. False: it is bound, and is left out. */
bool reservations_message_add(struct buf *body, const char *uid, const struct reservation *e,
			      int64_t now_ns);
/*
 * Takes over a body that was written now: reservations_adopt(), reservations_disown(). 0 with the
 * number of reservations. -EBADMSG with the reason, and nothing is changed: it is no body, of
 * another session, or beyond the bounds of reservations.
 */
int reservations_message_take(struct reservations *set, const struct buf *body, uint64_t session,
			      int64_t now_ns, size_t *count, struct error *error);
