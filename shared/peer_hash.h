/* SPDX-License-Identifier: Apache-2.0 */
/* Which client an address stands for, where something is counted for each. */
#ifndef EVENKEEL_SHARED_PEER_HASH_H
#define EVENKEEL_SHARED_PEER_HASH_H

#include <sodium.h>
#include <stdint.h>
#include <sys/socket.h>

enum { PEER_KEY_LEN = crypto_shorthash_KEYBYTES };

/*
 * SipHash-2-4 of the address under a key of the caller's, never 0. Of IPv6 the first 64 bits are a
 * client: who has one address there has all of these. An IPv4 address is the same client when it
 * comes mapped into IPv6.
 */
uint64_t peer_hash(const uint8_t key[PEER_KEY_LEN], const struct sockaddr *from);

#endif
