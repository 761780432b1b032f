/* SPDX-License-Identifier: Apache-2.0 */
/* Loses and delays the acks of one simulated agent, between its socket and its sender. */
#pragma once

#include "tests/fleet/tally.h"
#include "tests/fleet/trouble.h"

struct ack_trouble;

/* All borrowed. */
struct ack_trouble *ack_trouble_new(const struct trouble *t, const struct cluster *c,
				    uint32_t node);
void ack_trouble_free(struct ack_trouble *a); /* NULL is allowed */
/* Until the next call, what senders receive is this agent's, and is counted there; NULL ends it. */
void ack_trouble_set(struct ack_trouble *a, struct tally *tally);
/* Monotonic time at which a delayed ack is due; INT64_MAX: there is none. */
int64_t ack_trouble_due_ns(const struct ack_trouble *a);
