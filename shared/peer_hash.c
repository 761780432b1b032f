/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/peer_hash.h"

#include <netinet/in.h>
#include <string.h>

enum { ADDRESS_LEN = 8 };

uint64_t peer_hash(const uint8_t key[PEER_KEY_LEN], const struct sockaddr *from)
{
	/* The family first: 32.1.13.184 is not who has 2001:db8::/64. */
	uint8_t text[1 + ADDRESS_LEN] = {4}, hash[crypto_shorthash_BYTES];
	uint64_t client;

	if (from->sa_family == AF_INET) {
		memcpy(text + 1, &((const struct sockaddr_in *)from)->sin_addr, 4);
	} else if (from->sa_family == AF_INET6) {
		const struct in6_addr *six = &((const struct sockaddr_in6 *)from)->sin6_addr;

		if (IN6_IS_ADDR_V4MAPPED(six)) {
			memcpy(text + 1, six->s6_addr + 12, 4);
		} else {
			text[0] = 6;
			memcpy(text + 1, six->s6_addr, ADDRESS_LEN);
		}
	}
	crypto_shorthash(hash, text, sizeof(text), key);
	memcpy(&client, hash, sizeof(client));
	return client ? client : 1;
}
