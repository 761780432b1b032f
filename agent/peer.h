/* SPDX-License-Identifier: Apache-2.0 */
/* One aggregator that is sent to: its sender, and what a person is told of it. */
#ifndef EVENKEEL_AGENT_PEER_H
#define EVENKEEL_AGENT_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/resolver.h"
#include "agent/ring.h"
#include "agent/sender.h"
#include "shared/endpoint.h"

struct peer {
	struct sender *sender; /* owned */
	const struct endpoint *endpoint; /* borrowed: as configured */
	struct address address; /* of those its name has; "" where none was looked up */
	int64_t opened_ns; /* monotonic */
	int64_t silence_ns; /* without an ack for so long it is silent */
	struct sender_stats stats; /* as of the last step */
	bool answering, silent;
	char refusal_told[sizeof(((struct sender_stats *)0)->last_reason)];
};

/*
 * Begins to connect to the endpoint, or to the address that its name has (NULL: the endpoint names
 * one itself). silence_ns: without an ack for so long it is told to be silent.
 */
int peer_open(struct peer *p, const struct endpoint *endpoint, const struct address *address,
	      const struct sender_config *config, int64_t silence_ns, int64_t mono_ns,
	      struct reason *reason);
void peer_close(struct peer *p);
/* As sender_step(); a change that a person must know of goes to the log, once. */
int64_t peer_step(struct peer *p, const struct ring *ring, int64_t mono_ns);

#endif
