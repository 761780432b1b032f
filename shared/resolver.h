/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a host name, looked up on a thread: the loop never waits for a name server. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "shared/error.h"

enum { RESOLVER_ADDRESSES_MAX = 64 };

struct address {
	char text[INET6_ADDRSTRLEN]; /* in the format of inet_ntop(), without a scope */
};

struct resolver_answer {
	bool failed; /* with the reason, without addresses */
	struct error why;
	size_t count;
	size_t left_out; /* addresses beyond RESOLVER_ADDRESSES_MAX */
	struct address addresses[RESOLVER_ADDRESSES_MAX];
};

/*
 * Fills the zeroed answer: each address once, sorted by text. Runs on the helper thread and may
 * block; ctx must live until it returns, possibly after resolver_close().
 */
typedef void resolver_lookup(void *ctx, const char *host, struct resolver_answer *answer);

struct resolver;

/* Starts the thread. lookup NULL: getaddrinfo(), addresses of this machine's families without
 * link-local ones. host is copied. */
int resolver_open(struct resolver **r, const char *host, resolver_lookup *lookup, void *ctx,
		  struct error *error);
/* Ends the thread; after 200 ms in a lookup it is detached, with the memory it needs. */
void resolver_close(struct resolver *r);
/* Readable while there is an answer. */
int resolver_fd(const struct resolver *r);
/* Begins a lookup, unless one runs. */
void resolver_ask(struct resolver *r);
/* Takes the answer of the last lookup; false: none. */
bool resolver_take(struct resolver *r, struct resolver_answer *answer);
