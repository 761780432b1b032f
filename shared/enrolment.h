/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange by which an agent gets the key of its node from an aggregator. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/error.h"
#include "shared/frame.h"
#include "shared/keyring.h"
#include "shared/message.h"

/*
 * The aggregator has an X25519 key pair, of which agents know the public key P. The id of a pair is
 * the first 8 bytes of BLAKE2b-256(P).
 *
 *   agent                                               aggregator
 *     fresh X25519 pair (r, R)
 *     header(type 3), crypto_box_seal(Enrolment, P)  -->
 *                                                       opens it with the pair that the id names
 *     <--  header(type 4), crypto_box_easy(EnrolmentAnswer, nonce, R, p)
 *     opens it with P and r
 *
 * Both frames have the header of frame.h, and after it 48 (seal) or 16 (box) bytes more than the
 * plain body's length in the header:
 *
 *   field      enrolment                             answer
 *   type       3                                     4
 *   key id     of P                                  as in the enrolment
 *   run        of the agent                          as in the enrolment
 *   sequence   1                                     1
 *   part       0 of 1                                0 of 1
 *   nonce      random, not used                      random: the nonce of the box
 *   age        0                                     0
 *   node       of the agent                          as in the enrolment
 *
 * The bodies are Enrolment and EnrolmentAnswer of body.proto. Seals do not cover the headers: node
 * and run are in the Enrolment, too, and must be equal. Only the aggregator learns R, and each
 * enrolment has a pair of its own, so an answer opens for the one enrolment that it belongs to, and
 * nobody else reads the node's key.
 *
 * Replay: an aggregator accepts an enrolment if its stamp is at most 5 minutes from its own clock
 * and above the stamp of the last accepted one of the node, unless that is more than 5 minutes
 * ahead: then the aggregator's clock was set back. The last accepted one again (the same R) gets the
 * same key again. Any other gets STALE with the least stamp that is accepted, by which an agent with
 * a wrong clock asks again. So a recorded enrolment changes nothing, and its answer is readable only
 * for the agent that made it.
 *
 * Frames under the node's key are those of frame.h. Each must be of the node that the key was made
 * for. Two keys of a node open frames, until their lifetimes end: the newest one, and the last one
 * before it under which a frame has opened. An agent seals with a new key at once, and acks of frames
 * under the former one still open. Keys that agents did not receive displace no key in use.
 */
enum {
	ENROLMENT_PUBLIC_LEN = 32,
	ENROLMENT_CREDENTIAL_MAX = 8 * 1024,
	ENROLMENT_LIFETIME_MAX_S = 365 * 24 * 3600,
	ENROLMENT_PUBLIC_TEXT_LEN = 44, /* base64 */
};
#define ENROLMENT_CLOCK_NS (300LL * 1000000000)

/* Private keys, and the public ones of their pairs, which take as long to compute as an opening. */
struct enrolment_keys {
	struct keyring ring;
	uint8_t public_keys[KEYRING_MAX][ENROLMENT_PUBLIC_LEN];
};

enum credential_kind {
	CREDENTIAL_NONE,
	CREDENTIAL_JOIN_TOKEN,
	CREDENTIAL_SERVICE_ACCOUNT,
};

struct enrolment {
	uint8_t reply_key[ENROLMENT_PUBLIC_LEN];
	char node[NODE_NAME_MAX + 1];
	uint8_t run[FRAME_RUN_LEN];
	uint64_t stamp_ns;
	enum credential_kind kind;
	struct span credential; /* borrowed */
};

enum enrolment_status { ENROLMENT_DONE, ENROLMENT_REFUSED, ENROLMENT_LATER, ENROLMENT_STALE };

struct enrolment_answer {
	enum enrolment_status status;
	char reason[256];
	struct key key; /* ENROLMENT_DONE */
	uint32_t lifetime_s; /* likewise */
	uint32_t wait_ms;
	uint64_t stamp_ns; /* ENROLMENT_STALE */
};

/* The public key of a pair's private one. */
void enrolment_public_key(const struct key *key, uint8_t public_key[ENROLMENT_PUBLIC_LEN]);
/* Computes the public keys of a ring as keyring_read() gives it, whose keys get the pairs' ids. */
void enrolment_keys_pair(struct enrolment_keys *keys);
/* base64 in one line, as the aggregator writes it and the agent reads it. -EINVAL. */
void enrolment_public_write(const uint8_t public_key[ENROLMENT_PUBLIC_LEN],
			    char text[ENROLMENT_PUBLIC_TEXT_LEN + 1]);
int enrolment_public_read(uint8_t public_key[ENROLMENT_PUBLIC_LEN], const char *text, size_t len,
			  struct error *error);

/* Appends the frame; fills *header by *e. */
void enrolment_seal(struct buf *out, struct frame_header *header,
		    const uint8_t public_key[ENROLMENT_PUBLIC_LEN], const struct enrolment *e);
/*
 * Opens an enrolment with one of the private keys. 0 with *key, *e and *plain (replaced), in which
 * the credential lies and which the caller wipes; or -EBADMSG, -EPROTO, -ENOKEY, -EKEYREJECTED as
 * frame_open(), with nothing written.
 */
int enrolment_open(const void *data, size_t len, const struct enrolment_keys *keys,
		   struct frame_header *header, const struct key **key, struct enrolment *e,
		   struct buf *plain, struct error *error);
/* Appends the answer to an opened enrolment. */
void enrolment_answer_seal(struct buf *out, const struct frame_header *request,
			   const uint8_t reply_key[ENROLMENT_PUBLIC_LEN], const struct key *key,
			   const struct enrolment_answer *a);
/* Opens the answer to that enrolment. 0 with *a, or as enrolment_open(). The caller wipes *a. */
int enrolment_answer_open(const void *data, size_t len, const struct frame_header *request,
			  const uint8_t public_key[ENROLMENT_PUBLIC_LEN],
			  const uint8_t reply_secret[KEY_LEN], struct enrolment_answer *a,
			  struct error *error);
