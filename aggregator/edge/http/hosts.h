/* SPDX-License-Identifier: Apache-2.0 */
/* The names by which requests may call this server, and pages in browsers that may send them. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_HOSTS_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "shared/options.h"

enum { HOST_NAME_MAX_LEN = 253 };

/* Of a Host header, or of the address that --listen names: "name:port", "[::1]:port", "name". */
struct host_name {
	char text[HOST_NAME_MAX_LEN + 1]; /* lower case, without brackets and a last dot */
};

/* False: it is none. */
bool host_parse(const char *text, size_t len, struct host_name *name);
/*
 * The names of loopback addresses, `listen` (a --listen), `more`, and the address `local` that the
 * client connected to.
 */
bool host_is_ours(const struct host_name *name, const char *listen, const struct option_list *more,
		  const struct sockaddr *local);
/* An address, which no page can make its own name of. */
bool host_is_address(const struct host_name *name);
/* An Origin header names the same server as the Host header of its request: no other page sent it. */
bool origin_is_own(const char *origin, const char *host);
/* A Content-Type header is JSON's, with parameters or without. NULL is allowed. */
bool media_is_json(const char *type);

#endif
