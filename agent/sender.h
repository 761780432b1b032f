/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One REQ socket per aggregator: sends the ring's intervals in order, one at a time, and obeys the
 * acks.
 */
#ifndef EVENKEEL_AGENT_SENDER_H
#define EVENKEEL_AGENT_SENDER_H

#include <stddef.h>
#include <stdint.h>

#include "agent/ring.h"
#include "shared/frame.h"
#include "shared/keyring.h"
#include "shared/reason.h"

struct sender_config {
	const char *node; /* borrowed, as is all here */
	const struct keyring *keys;
	uint8_t run[FRAME_RUN_LEN];
	uint64_t first; /* sequence to begin with; 0 and 1: the first of the run */
	/*
	 * How long to wait for an ack while it is not known how long answers take; default 5 s. What
	 * is made of it is told in sender.c.
	 */
	int64_t reply_timeout_ns;
	int64_t full_every_ns; /* identities of everything at least so often; default 60 s */
	int64_t (*boot_ns)(
		void); /* clock_boot_ns; NULL: frames do not tell how old their interval is */
};

struct sender_stats {
	uint64_t sent, sent_bytes; /* frames */
	uint64_t sent_again; /* of those the copies, for want of an answer to the one before */
	uint64_t acked, refused, timeouts, bad_acks, resends_ordered, skipped;
	uint64_t held; /* times that an interval was not taken, and is sent again */
	/*
	 * The last sequence whose fate is known: it and all before are in acked, refused or skipped,
	 * as long as nothing was ordered again or merged. A greeting changes none of them.
	 */
	uint64_t settled;
	uint64_t cursor; /* next sequence to send */
	int64_t last_ack_ns; /* monotonic; 0: never */
	uint32_t interval_ms; /* what the last ack orders; 0: nothing */
	char last_reason[256]; /* of the last refusal, bad ack, or time it was held */
};

struct sender;

/*
 * url: tcp://host:port or ipc:///path. -EINVAL for another scheme, for tcp:// without a key, or to
 * "*".
 */
int sender_check(const char *url, const struct sender_config *config, struct reason *reason);
/*
 * Checks as above and starts threads. It connects when there is something to send. The host must be
 * an address, since names are not looked up here: -EINVAL.
 */
int sender_open(struct sender **s, const char *url, const struct sender_config *config,
		struct reason *reason);
void sender_close(struct sender *s);
/* The descriptor that becomes readable when an ack may be there (NN_RCVFD), for epoll. */
int sender_fd(const struct sender *s);
/*
 * Does all that can be done now without blocking: takes an ack, obeys it, sends the next interval
 * of the ring, repeats what timed out. Returns the monotonic time at which it wants to be called
 * again at the latest. Call it after every push, when the descriptor is readable and at that time.
 */
int64_t sender_step(struct sender *s, const struct ring *ring, int64_t mono_ns);
/* True when everything in the ring was acknowledged. */
int sender_idle(const struct sender *s, const struct ring *ring);
void sender_get_stats(const struct sender *s, struct sender_stats *stats);
/*
 * Where the ring must not merge for this sender's sake, for ring_set_cursors(): before what it
 * would have to send again, behind what was sent and not yet acknowledged, and behind what an
 * aggregator that comes back has in its database (it could not count an interval half of which it
 * has). Returns how many it wrote, 1 to 3.
 */
enum { SENDER_CURSORS = 3 };
size_t sender_get_cursors(const struct sender *s, uint64_t cursors[SENDER_CURSORS]);

#endif
