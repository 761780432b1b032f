/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handshakes of TLS that wait for their clients. The library that serves HTTP asks a session again
 * at once, without end, whose client has sent a part of what it has to. So a connection is suspended
 * while there is nothing to read, and goes on when there is. And a session keeps what a client has
 * sent of a handshake's message, up to 128 KiB, also after the handshake. So a client may send
 * HANDSHAKE_BYTES_MOST until its handshake is done, FIRST_BYTES_MOST until the line of its first
 * request, and REQUEST_BYTES_MOST from one progress of a request to the next.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_HANDSHAKE_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_HANDSHAKE_H

#include <gnutls/gnutls.h>
#include <stdbool.h>

struct MHD_Connection;

enum {
	HANDSHAKE_BYTES_MOST = 12288, /* a first word of 2 KiB, and a chain of certificates */
	RECORD_BYTES_MOST =
		5 + 16384 + 256, /* RFC 8446, 5.2: it may hold any part of a request .. */
	FIRST_BYTES_MOST = RECORD_BYTES_MOST + 4096,
	REQUEST_BYTES_MOST = RECORD_BYTES_MOST + 16384, /* .. and headers behind it */
};

/* One thread's, which runs the library for them, too. */
struct handshakes {
	int epoll; /* tells of those that can go on: data.ptr is the handshake */
	struct handshake *waiting;
};

/* Zeroed where there is no TLS. */
struct handshake {
	struct handshakes *all;
	struct handshake *prev, *next; /* waiting */
	struct MHD_Connection *connection;
	gnutls_session_t session;
	int fd;
	size_t bytes, most; /* that the client has sent, and may, since the last progress */
	bool waits, done;
};

/* The session has not read anything yet; *h stays where it is until handshake_end(). */
void handshake_begin(struct handshake *h, struct handshakes *all, struct MHD_Connection *connection,
		     gnutls_session_t session, int fd);
void handshake_end(struct handshake *h);
/* A request's line, headers or a piece of its body have come. Also where there is no TLS. */
void handshake_note_progress(struct handshake *h);
/* There is something to read, or the connection's end. */
void handshake_go_on(struct handshake *h);
void handshakes_go_on(struct handshakes *all); /* all of them: the library is about to stop */

#endif
