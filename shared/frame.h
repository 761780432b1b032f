/* SPDX-License-Identifier: Apache-2.0 */
/* The sealed envelope of all messages between agent and aggregator. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/interval.h"
#include "shared/keyring.h"
#include "shared/error.h"

/*
 * Layout, integers little-endian:
 *
 *   offset size
 *     0     4   magic "EVKL"
 *     4     1   version, 1
 *     5     1   type: 1 interval part, 2 ack, 3 enrolment, 4 its answer (shared/enrolment.h),
 *           5 exchange of two aggregators (reservations, plans, requests), answered by an ack,
 *           6 a copy of a database (aggregator/edge/ingest_copy.c)
 *     6     2   node name length n, 1..253
 *     8     8   key id; all zero: body in clear (ipc:// only)
 *    16    16   run: random per agent start
 *    32     8   sequence, > 0
 *    40     2   part, from 0
 *    42     2   parts, 1..16
 *    44     4   length of the plain body
 *    48    24   nonce, random per frame
 *    72     4   age: milliseconds from the end of the interval to the sealing, rounded up; 0:
 *           unknown
 *    76     n   node name (DNS subdomain characters)
 *  76 + n   ..  body: XChaCha20-Poly1305 (IETF) ciphertext and 16-byte tag, or the plain body
 *
 * Associated data is everything before the body. An ack repeats run, sequence, part and parts of
 * its request and adds the request's nonce to its associated data (in clear: its own nonce is the
 * request's), so an old ack cannot answer a new request.
 */
enum {
	FRAME_VERSION = 1,
	FRAME_HEADER_LEN = 76,
	FRAME_NONCE_LEN = 24,
	FRAME_TAG_LEN = 16,
	FRAME_RUN_LEN = 16,
	FRAME_PARTS_MAX = 16,
	FRAME_PART_BODY_MAX = 192 * 1024, /* limit for agents */
	FRAME_LEN_MAX = 256 * 1024, /* longer frames are refused by an ack with a reason */
};

enum frame_type {
	FRAME_INTERVAL = 1,
	FRAME_ACK = 2,
	FRAME_ENROLMENT = 3,
	FRAME_ENROLMENT_ANSWER = 4,
	FRAME_EXCHANGE = 5,
	FRAME_COPY = 6,
};

struct frame_header {
	enum frame_type type;
	uint8_t run[FRAME_RUN_LEN];
	uint64_t sequence;
	uint16_t part;
	uint16_t parts;
	uint32_t age_ms; /* 0: unknown */
	uint8_t nonce[FRAME_NONCE_LEN]; /* filled by frame_seal */
	uint8_t key_id[KEY_ID_LEN]; /* filled by frame_seal */
	char node[NODE_NAME_MAX + 1];
};

/*
 * Appends the sealed frame to out and fills header->nonce and key_id. key NULL: in clear.
 * request_nonce: for an ack the request's, else NULL.
 */
void frame_seal(struct buf *out, struct frame_header *header, const struct key *key,
		const uint8_t *request_nonce, const void *body, size_t body_len);

/*
 * Checks and opens a frame. 0 and *header, *body (replaced; the room of an empty one is used); or
 *   -EBADMSG  not a frame of ours, truncated, or a field out of range
 *   -EPROTO   another version
 *   -EMSGSIZE longer than FRAME_LEN_MAX, though it verifies
 *   -ENOKEY   sealed with a key we do not have, or in clear where keys are required (ring not
 *             empty)
 *   -EKEYREJECTED  does not verify: forged, damaged, or an ack to another request
 * On -EMSGSIZE *header is filled, so that its sender can be told; on -ENOKEY too, but unverified.
 * Otherwise nothing is written.
 */
int frame_open(const void *data, size_t len, const struct keyring *ring,
	       const uint8_t *request_nonce, struct frame_header *header, struct buf *body,
	       struct error *error);

/* Appends the header with the nonce and key id that it holds; the body follows. */
void frame_put_header(struct buf *out, const struct frame_header *header, size_t body_len);
/*
 * Reads the header of a frame of any type, unverified. 0 with the lengths of the header and of the
 * plain body; -EBADMSG or -EPROTO as frame_open().
 */
int frame_get_header(const void *data, size_t len, struct frame_header *header, size_t *header_len,
		     size_t *body_len, struct error *error);

/* A node name: 1..253 letters, digits, '-', '.', '_'. */
int frame_node_name_valid(const char *name, size_t len);
