/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and requests of the HTTP library as they come in: TLS, who is let in, and how long
 * they may take.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_DOOR_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_DOOR_H

#include <microhttpd.h>

#include "aggregator/edge/http/connections.h"
#include "aggregator/edge/http/auth.h"
#include "aggregator/edge/http/http.h"

enum { DOOR_IDLE_SECONDS = 45 }; /* of silence; longer than the 30 s at which schedulers poll */

struct door;

/* How many connections there may be. */
struct door_limits {
	unsigned int connections;
	unsigned int of_client;
};

/*
 * Reads certificates and tokens, and starts a thread that reads them again and cuts the slow.
 * -errno with the reason.
 */
int door_open(struct door **d, const struct http_config *config, const struct door_limits *limits,
	      struct access_counters *counters, struct reason *reason);
/* All connections are closed. NULL is allowed. */
void door_close(struct door *d);
void door_reload(struct door *d); /* any thread; soon */
bool door_has_tls(const struct door *d);

struct connections *door_connections(const struct door *d);
/*
 * A connection that has a place (connections_reserve()) is accepted: whether its client may have
 * one more; when the library tells of it, the newest certificate and a time for its first request.
 * It ends by door_end(), however far it came.
 */
bool door_admit(struct door *d, struct connection *c, const struct sockaddr *from);
void door_begin(struct door *d, struct connection *c, struct MHD_Connection *connection,
		struct handshakes *handshakes);
void door_end(struct door *d, struct connection *c);
/* The lane's thread: answers instead of the library, which is about to (framing.h). */
void door_refuse_lengths(struct door *d, const struct handshakes *lane);
/* Somebody is turned away, since there is no descriptor for him. */
void door_count_unserved(struct door *d);

/* What a connection does next, which has its time. */
enum door_step {
	DOOR_REQUEST, /* the next request's headers come, after silence or not */
	DOOR_BODY,
	DOOR_WORK, /* it is us who take time */
	DOOR_ANSWER, /* the client reads */
	DOOR_STREAM, /* the same, of more than fits into memory */
};
void door_step(struct door *d, struct MHD_Connection *connection, enum door_step step);

/* The request's headers, or a piece of its body, have come. */
void door_note_progress(struct MHD_Connection *connection);
/* The target: the text between method and version, before it is unescaped; whether text equals it. */
void door_note_target(struct door *d, struct MHD_Connection *connection, const char *target);
bool door_is_target(struct MHD_Connection *connection, const char *text);
/* May that request come in? As auth_check(); what is no clear request may not. */
enum auth_verdict door_check(struct door *d, struct MHD_Connection *connection, const char *method,
			     const char *path, const char *version, struct auth_refusal *refusal);
/* As auth_is_named(). */
bool door_is_named(struct door *d, struct MHD_Connection *connection);
/* As auth_review(). */
enum auth_verdict door_review(struct door *d, struct MHD_Connection *connection, const char *method,
			      const char *path, struct auth_refusal *refusal);
/* As auth_refuse_busy(). */
void door_refuse_busy(struct door *d, struct auth_refusal *refusal);
/* As auth_client(). */
uint64_t door_client(struct door *d, struct MHD_Connection *connection, const char *path,
		     bool admitted);

#endif
