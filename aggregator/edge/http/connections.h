/* SPDX-License-Identifier: Apache-2.0 */
/* The connections that are open, each with a time by which its next step must have come. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_CONNECTIONS_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_CONNECTIONS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/http/tls.h"

struct connection {
	struct connection *next, **link; /* under the list's lock */
	int fd;
	atomic_int_least64_t due_ns; /* monotonic; INT64_MAX: none */
	struct tls_set *tls; /* held; NULL: plain */
	struct tls_client client;
};

struct connections;

struct connections *connections_new(void);
void connections_free(struct connections *cs); /* empty; NULL is allowed */

/* Any thread, as all below. fd stays open until connections_end(). */
struct connection *connections_begin(struct connections *cs, int fd, int64_t due_ns);
void connections_end(struct connections *cs, struct connection *c);
void connection_expect(struct connection *c, int64_t due_ns);
/* Shuts down what is overdue; how many. Their ends are told by the library that reads them. */
size_t connections_cut(struct connections *cs, int64_t now_ns);
size_t connections_count(struct connections *cs);

#endif
