/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open connections, and those of TLS without a request yet: each kind has a bound for each client,
 * handshakes also for all. Each connection has a time for its next step.
 *
 * The library calls a session again and again while its client has sent part of a handshake. So
 * the connection is suspended until there is something to read. A session also keeps up to 128 KiB
 * of an unfinished handshake message. So a client may send HANDSHAKE_BYTES_MOST until its
 * handshake is done, FIRST_BYTES_MOST until the line of its first request, and REQUEST_BYTES_MOST
 * between two steps of a request.
 */
#pragma once

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "aggregator/edge/http/tls.h"

/* --- framing.c: whether the headers of a request leave no doubt about its end and its sender -- */

/* The text between method and version, as received. */
struct framing_target {
	const char *text; /* in the library's buffer */
	size_t len; /* then */
	bool crowded; /* too many parameters, which were cut off */
	bool odd; /* it holds a blank or a control character */
};

/*
 * The target before the library parses its parameters. Parameters that do not fit into the
 * library's buffer are cut off; framing_fault() reports that.
 */
struct framing_target framing_note(const char *text);

/*
 * NULL, or the fault as a sentence: the request gets 400 and its connection is closed. method and
 * version are the library's; target NULL: not known.
 */
const char *framing_fault(struct MHD_Connection *connection, const char *method,
			  const char *version, const struct framing_target *target);

/*
 * Whether its length is no number. The library (up to version 0.9.75) answers such a request
 * itself, before any callback, and twice.
 */
bool framing_is_length_bad(struct MHD_Connection *connection);

/* --- connections.c ---------------------------------------------------------------------------- */

enum {
	HANDSHAKE_BYTES_MOST = 12288, /* a ClientHello of 2 KiB, and a chain of certificates */
	RECORD_BYTES_MOST =
		5 + 16384 + 256, /* RFC 8446, 5.2: it may hold any part of a request .. */
	FIRST_BYTES_MOST = RECORD_BYTES_MOST + 4096,
	REQUEST_BYTES_MOST = RECORD_BYTES_MOST + 16384, /* .. and headers behind it */
};

/* The handshakes of an event loop. */
struct handshakes {
	int epoll; /* reports those that can continue: data.ptr is the handshake */
	struct handshake *waiting;
};

/* Zeroes without TLS. */
struct handshake {
	struct handshakes *all;
	struct handshake *prev, *next; /* waiting */
	struct MHD_Connection *connection;
	gnutls_session_t session;
	int fd;
	size_t bytes, most; /* sent since the last progress, and the limit */
	bool waits, done;
};

/* Before the session reads anything. *h stays in place until handshake_end(). */
void handshake_begin(struct handshake *h, struct handshakes *all, struct MHD_Connection *connection,
		     gnutls_session_t session, int fd);
void handshake_end(struct handshake *h);
/* A request's line, headers or a piece of its body arrived. Also without TLS. */
void handshake_note_progress(struct handshake *h);
/* There is something to read, or the connection ended. */
void handshake_go_on(struct handshake *h);

struct connection {
	/* under the list's lock */
	struct connection *prev, *next;
	struct connections_client *owner; /* borrowed */
	struct connection *newer, *older; /* of those that shake hands */
	bool shakes;

	/* the loop's */
	struct MHD_Connection *library;
	const struct handshakes *loop;
	bool refused; /* by conn_manager_refuse_lengths() */

	int fd;
	struct sockaddr_in6 local; /* of either family; all zeroes: not asked for yet */
	struct framing_target target; /* of the newest request */
	atomic_int_least64_t due_ns; /* monotonic; INT64_MAX: none */
	struct tls_set *tls; /* held; NULL: plain */
	struct handshake handshake; /* the loop's */
	struct tls_client client;
	char *user; /* owned; of the newest request, as the front proxy names it; NULL: none */
};

struct connections;

/* Handshakes are done in milliseconds, but a proxy may begin many at once. */
enum { HANDSHAKES_MOST = 1024, HANDSHAKES_OF_CLIENT = 256 };

struct connections *connections_new(unsigned int of_client_most);
void connections_free(struct connections *cs); /* empty; NULL is allowed */

/*
 * Any thread, as all below. NULL: the client (as peer_hash() tells clients apart) has as many
 * connections as it may. fd stays open until connections_end().
 */
struct connection *connections_begin(struct connections *cs, const struct sockaddr *from, int fd,
				     int64_t due_ns);
void connections_end(struct connections *cs, struct connection *c);
/* A connection of the loop with a bad length (framing.c) that is not refused yet, or NULL. */
struct connection *connections_find_bad(struct connections *cs, const struct handshakes *loop);
/*
 * Its handshake begins, or is over with its first request. True: there are too many, of its client
 * or of all, and the oldest was shut down.
 */
bool connections_shake(struct connections *cs, struct connection *c);
void connections_shaken(struct connections *cs, struct connection *c);
void connection_expect(struct connection *c, int64_t due_ns);
/* Shuts down overdue connections and returns their number. The library ends them when it reads. */
size_t connections_cut(struct connections *cs, int64_t now_ns);
size_t connections_count(struct connections *cs);
