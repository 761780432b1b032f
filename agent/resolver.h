/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses behind a host name, looked up on a thread of its own: the loop never waits for a
 * name server.
 */
#ifndef EVENKEEL_AGENT_RESOLVER_H
#define EVENKEEL_AGENT_RESOLVER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "shared/reason.h"

enum { RESOLVER_ADDRESSES_MAX = 64 };

struct address {
	char text[INET6_ADDRSTRLEN]; /* as inet_ntop() writes it: no brackets, no scope */
};

struct resolver_answer {
	bool failed; /* then why, and no addresses */
	struct reason why;
	size_t count;
	size_t left_out; /* addresses beyond RESOLVER_ADDRESSES_MAX */
	struct address addresses[RESOLVER_ADDRESSES_MAX];
};

/*
 * Fills the answer (zeroed before): each address once, sorted by text. It runs on the helper thread
 * and may block; ctx must live until it returns, which may be after resolver_close().
 */
typedef void resolver_lookup(void *ctx, const char *host, struct resolver_answer *answer);
/*
 * By getaddrinfo(): all IPv4 and IPv6 addresses of the families this machine has, but for
 * link-local ones. No ctx.
 */
resolver_lookup resolver_lookup_system;

struct resolver;

/*
 * Starts the thread, which blocks all signals. lookup NULL: resolver_lookup_system. host is copied.
 */
int resolver_open(struct resolver **r, const char *host, resolver_lookup *lookup, void *ctx,
		  struct reason *reason);
/*
 * Ends the thread; one that is stuck in a lookup is left to itself after 200 ms, with the memory it
 * needs.
 */
void resolver_close(struct resolver *r);
/* Readable while there is an answer to take. */
int resolver_fd(const struct resolver *r);
/* Begins a lookup, unless one is under way. */
void resolver_ask(struct resolver *r);
/* The answer to the last question, once: false while there is none. */
bool resolver_take(struct resolver *r, struct resolver_answer *answer);

#endif
