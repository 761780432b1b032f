/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that nodes got by enrolment (shared/enrolment.h): at most two of each node. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/enrolment.h"
#include "shared/error.h"
#include "shared/keyring.h"

enum { NODE_KEY_LIFETIME_S = 2 * 24 * 3600 };

struct node_key {
	struct key key;
	const char *node; /* borrowed from the table */
	int64_t expires_ns; /* Unix time */
	bool used; /* by its user: a frame of the node has opened under it */
};

struct node_keys;

struct node_keys *node_keys_new(size_t nodes_max);
void node_keys_free(struct node_keys *k); /* NULL is allowed; wipes all secrets */

/* The key with that id, if its time has not ended; NULL: none. Borrowed until the next issue. */
struct node_key *node_keys_find(const struct node_keys *k, const uint8_t id[KEY_ID_LEN],
				int64_t now_ns);
/*
 * Answers an enrolment whose credential was accepted: *a is ENROLMENT_DONE with a key, whose bytes
 * are those of `secret` unless the enrolment is a copy of the last one; ENROLMENT_STALE; or
 * ENROLMENT_LATER: the table is full. pod: "NAME/UID" of the agent's; "": not of a pod.
 */
void node_keys_issue(struct node_keys *k, const struct enrolment *e, const char *pod,
		     const uint8_t secret[KEY_LEN], int64_t now_ns, struct enrolment_answer *a);
/* The pod whose enrolment the node's newest key is of, as above; NULL: the node has no key now. */
const char *node_keys_pod(const struct node_keys *k, const char *node, int64_t now_ns);

/* Rises with each new key. */
uint64_t node_keys_generation(const struct node_keys *k);
/* Appends all keys whose time has not ended, for the database. */
void node_keys_write(const struct node_keys *k, int64_t now_ns, struct buf *out);
/* Adds what node_keys_write() wrote. -EBADMSG with the reason; nodes before the fault stay. */
int node_keys_read(struct node_keys *k, const void *data, size_t len, struct error *error);
