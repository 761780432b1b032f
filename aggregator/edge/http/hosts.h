/* SPDX-License-Identifier: Apache-2.0 */
/* The names of this server in requests, and the pages in browsers that may send them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "shared/options.h"

enum { HOST_NAME_MAX_LEN = 253 };

/* Of a Host header, or of the address that --listen names: "name:port", "[::1]:port", "name". */
struct host_name {
	char text[HOST_NAME_MAX_LEN + 1]; /* lower case, without brackets and a last dot */
};

/* False: no host name. */
bool host_parse(const char *text, size_t len, struct host_name *name);
/*
 * The names of loopback addresses, `listen` (a --listen), `more`, and the address `local` that the
 * client connected to.
 */
bool host_is_ours(const struct host_name *name, const char *listen, const struct option_list *more,
		  const struct sockaddr *local);
/* Of either family. */
bool host_is_loopback(const struct sockaddr *at);
/* An IP address; no page owns one as a name. */
bool host_is_address(const struct host_name *name);
/* Whether Origin and Host of a request name the same server. */
bool origin_is_own(const char *origin, const char *host);
/* Whether a Content-Type is JSON, with parameters or without. NULL is allowed. */
bool media_is_json(const char *type);
