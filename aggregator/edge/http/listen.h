/* SPDX-License-Identifier: Apache-2.0 */
/* From "HOST:PORT" to a listening socket. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_LISTEN_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_LISTEN_H

#include <stdbool.h>

#include "shared/reason.h"

enum { LISTEN_ADDRESS_LEN = 64 };

struct listener {
	int fd;
	bool loopback; /* only this machine can connect */
	char address[LISTEN_ADDRESS_LEN]; /* what it is bound to: "127.0.0.1:2020", "[::]:2020" */
};

/*
 * "127.0.0.1:2020", "[::1]:2020", "name:2020"; ":2020" is every address of both families; port 0
 * picks one. -EINVAL for what is no address, else why it cannot be bound (-EADDRINUSE, -EACCES,
 * -EADDRNOTAVAIL, ..). The caller closes fd.
 */
int listen_open(struct listener *l, const char *address, struct reason *reason);

#endif
