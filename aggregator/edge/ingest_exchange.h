/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exchange with another aggregator (--peer): tells it what answers to schedulers reserve before
 * these go out, plans, and requests to the actuator; and takes over what it tells.
 */
#pragma once

#include <stdbool.h>

#include "aggregator/api/act_box.h"
#include "aggregator/planner/plan_peer.h"
#include "aggregator/state/counters.h"
#include "aggregator/state/reservations.h"
#include "shared/body.h"
#include "shared/error.h"
#include "shared/frame.h"
#include "shared/keyring.h"

/* An answer waits so long for the other aggregator, which counts as gone after the longer time. */
#define EXCHANGE_WAIT_NS   (5 * 1000000LL)
#define EXCHANGE_SILENT_NS (1000 * 1000000LL)

struct exchange;

/*
 * Starts threads. url: tcp://HOST:PORT, the --ingest of the other aggregator; HOST may be a name
 * that has the addresses of both. keys: those that only aggregators have, or the shared ones. -EINVAL,
 * or -errno with the reason. acts NULL: it tells nothing of requests to the actuator. The
 * reservations tell it from now on; they, the plans, the acts and the counters are borrowed.
 */
int exchange_open(struct exchange **x, const char *url, const struct keyring *keys,
		  struct reservations *reservations, struct plan_peer *plans, struct act_box *acts,
		  struct exchange_counters *counters, struct error *error);
/* When nobody answers schedulers any more. NULL is allowed, as below. */
void exchange_close(struct exchange *x);

/* --- loop thread */

/* The keys were read again. */
void exchange_set_keys(struct exchange *x, const struct keyring *keys);
/* The keys of its frames, which are derived from those; borrowed until they are set again. */
const struct keyring *exchange_keys(const struct exchange *x);
/* Fills the answer to the first frame of a connection. False: the frame is this aggregator's own. */
bool exchange_greet(struct exchange *x, const struct frame_header *header, struct ack *ack);
/* Takes over the descriptor of the connection that was greeted last. */
void exchange_connected(struct exchange *x, int fd);
