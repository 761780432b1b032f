/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the ring's intervals to one aggregator in order, one at a time, and obeys its acks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/enroller.h"
#include "agent/ring.h"
#include "shared/frame.h"
#include "shared/keyring.h"
#include "shared/endpoint.h"
#include "shared/error.h"

struct sender_config {
	const char *node; /* borrowed, as is all here */
	const struct keyring *keys; /* shared ones; not used with an enroller */
	const struct enroller *enroller; /* NULL: frames are sealed with `keys` */
	uint8_t run[FRAME_RUN_LEN];
	uint64_t first; /* first sequence; 0 and 1: the first of the run */
	/* Timeout of an ack before the first answer; default 5 s. See sender.c. */
	int64_t reply_timeout_ns;
	int64_t (*wall_ns)(void); /* clock_wall_ns, for enrolments; NULL without an enroller */
	int64_t (*boot_ns)(void); /* clock_boot_ns; NULL: frames have no age */
};

struct sender_stats {
	uint64_t sent, sent_bytes; /* frames */
	uint64_t sent_again; /* copies among them, after a missing answer */
	uint64_t acked, refused, timeouts, bad_acks, resends_ordered, skipped;
	uint64_t enrolled, not_enrolled; /* answers to enrolments */
	uint64_t held; /* intervals that were not taken and are sent again */
	/*
	 * The last sequence whose fate is known. All up to it are in acked, refused or skipped,
	 * unless some were ordered again or merged. A greeting counts in none.
	 */
	uint64_t settled;
	uint64_t cursor; /* next sequence to send */
	int64_t last_ack_ns; /* monotonic; 0: never */
	uint32_t interval_ms; /* ordered by the last ack; 0: none */
	char last_reason[256]; /* of the last refusal, bad ack or hold */
};

struct sender;

/*
 * url: tcp://host:port or ipc:///path, which *endpoint becomes. -EINVAL: another scheme, tcp:// without
 * a key, or "*"; then *endpoint has no meaning.
 */
int sender_check(struct endpoint *endpoint, const char *url, const struct sender_config *config,
		 struct error *error);
/*
 * Checks the URL and starts threads; connects when there is an interval to send. -EINVAL for a
 * name: the host must be an address.
 */
int sender_open(struct sender **s, const char *url, const struct sender_config *config,
		struct error *error);
void sender_close(struct sender *s);
/* Asks for a new key of the node, and goes on with the present one until then. */
void sender_renew_key(struct sender *s, int64_t mono_ns);
/* Readable when an ack may be there (NN_RCVFD). */
int sender_fd(const struct sender *s);
/*
 * Takes acks, obeys them, sends and resends, without blocking. Returns the monotonic time of the
 * next call at the latest. Call it after every push, when the descriptor is readable and at that
 * time.
 */
int64_t sender_step(struct sender *s, const struct ring *ring, int64_t mono_ns);
/* True: everything in the ring is acknowledged. */
int sender_idle(const struct sender *s, const struct ring *ring);
void sender_get_stats(const struct sender *s, struct sender_stats *stats);
/*
 * The sequences at which the ring must not merge, for ring_set_cursors(): the next to send again,
 * the one after the sent but unacknowledged, and the one after those in the aggregator's database
 * (a restarted aggregator cannot count an interval half of which it has). Returns their number, 1
 * to 3.
 */
enum { SENDER_CURSORS = 3 };
size_t sender_get_cursors(const struct sender *s, uint64_t cursors[SENDER_CURSORS]);
