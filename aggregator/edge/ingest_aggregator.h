/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections between aggregators: one connects to the other's ingest port, as an agent does, and
 * both exchange sealed frames, one at a time.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/endpoint.h"
#include "shared/error.h"
#include "shared/frame.h"
#include "shared/keyring.h"
#include "shared/resolver.h"

#define AGGREGATOR_NODE "aggregator" /* the node name in its frames */

/*
 * The keys of frames between aggregators: hashes of those that only aggregators have, or of the
 * shared ones.
 */
void aggregator_derive_keys(struct keyring *derived, const struct keyring *keys);
/* -EINVAL with the reason: the URL is not tcp://HOST:PORT, or there is no key. */
int aggregator_read_url(struct endpoint *endpoint, const char *url, const struct keyring *keys,
			struct error *error);
/*
 * Looks the name up. *found has neither addresses nor a failure if `stopping` (NULL: never) is set, or
 * that monotonic time comes, before the answer.
 */
void aggregator_look_up(struct resolver *resolver, const atomic_bool *stopping, int64_t until_ns,
			struct resolver_answer *found);
/*
 * Limits connect(), the sending of a frame, and the reception of its head and of its rest, to that
 * time each. The descriptor blocks from now on.
 */
void aggregator_set_wait(int fd, int64_t wait_ns);
/*
 * Connects, and exchanges the hellos of the wire format. -errno with the reason. *fd is the
 * caller's in any case; negative: there is none.
 */
int aggregator_connect(int *fd, const struct endpoint *endpoint, const struct address *address,
		       int64_t wait_ns, struct error *why);
/*
 * Fills the header's nonce and key id. nonce: of the request that this answers, or NULL. -errno
 * with the reason; -ENOKEY: key is NULL; -EAGAIN: the time is over.
 */
int aggregator_send(int fd, struct frame_header *header, const struct key *key,
		    const uint8_t *nonce, const struct buf *body, struct error *why);
/* Replaces *body. nonce: likewise. -errno, or as frame_open(), with the reason. */
int aggregator_receive(int fd, const struct keyring *keys, const uint8_t *nonce,
		       struct frame_header *header, struct buf *body, struct error *why);
/* A system's error, or no answer in time, as the reason. rc. */
int aggregator_fail(struct error *why, int rc);
