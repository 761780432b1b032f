/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of the transport, checked because nanomsg aborts the process on some invalid ones; and
 * the client behind an address.
 */
#pragma once

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "shared/error.h"

enum { ENDPOINT_URL_MAX = 128, ENDPOINT_PATH_MAX = 108 };

enum endpoint_kind { ENDPOINT_TCP, ENDPOINT_IPC };

struct endpoint {
	enum endpoint_kind kind;
	char url[ENDPOINT_URL_MAX + 1]; /* as given */
	char host[ENDPOINT_URL_MAX + 1]; /* tcp: an address without brackets, a name, or "*" */
	uint16_t port; /* tcp */
	char path[ENDPOINT_PATH_MAX]; /* ipc: absolute */
};

/* tcp://host:port or ipc:///path. 0, or -EINVAL with the reason; *e is written only on success. */
int endpoint_parse(struct endpoint *e, const char *url, struct error *error);
/* Whether the host of a tcp endpoint is an IPv4 or IPv6 address, not a name. */
bool endpoint_is_address(const struct endpoint *e);
/*
 * The value for NN_IPV4ONLY: true for an IPv4 address (without it nanomsg 1.1.5 aborts at its
 * second attempt to connect), false for an IPv6 address; for names and "*" true only on a kernel
 * without IPv6.
 */
bool endpoint_ipv4_only(const struct endpoint *e);

/* --- clients ---------------------------------------------------------------------------------- */

enum { PEER_KEY_LEN = crypto_shorthash_KEYBYTES };

/*
 * The client behind an address, for counters per client: SipHash-2-4 of the address under the
 * caller's key, never 0. Addresses with the same first 64 bits of IPv6 are one client. An IPv4
 * address mapped into IPv6 is the same client as the IPv4 address.
 */
uint64_t peer_hash(const uint8_t key[PEER_KEY_LEN], const struct sockaddr *from);

/*
 * Without a descriptor for a client that waits: gives up a spare one to accept and close the client,
 * and opens it again. False: no client waits, or that fails, too. *spare negative: none yet.
 */
bool endpoint_refuse_one(int listener, int *spare);
