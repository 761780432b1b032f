/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and requests of the HTTP library as they come in: TLS, who is let in, and how long
 * they may take.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_CONN_MANAGER_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_CONN_MANAGER_H

#include <microhttpd.h>

#include "aggregator/edge/http/connections.h"
#include "aggregator/edge/http/auth.h"
#include "aggregator/edge/http/http.h"

enum { CONN_IDLE_SECONDS = 45 }; /* of silence; longer than the 30 s at which schedulers poll */

struct conn_manager;

/* How many connections there may be. */
struct conn_limits {
	unsigned int connections;
	unsigned int of_client;
};

/*
 * Reads certificates and tokens, and starts a thread that reads them again and cuts the slow.
 * -errno with the reason.
 */
int conn_manager_start(struct conn_manager **m, const struct http_config *config,
		       const struct conn_limits *limits, struct access_counters *counters,
		       struct reason *reason);
/* All connections are closed. NULL is allowed. */
void conn_manager_stop(struct conn_manager *m);
void conn_manager_reload(struct conn_manager *m); /* any thread; soon */
bool conn_manager_has_tls(const struct conn_manager *m);

struct connections *conn_manager_connections(const struct conn_manager *m);
/*
 * A connection that has a place (connections_reserve()) is accepted: whether its client may have
 * one more; when the library tells of it, the newest certificate and a time for its first request.
 * It ends by conn_manager_end(), however far it came.
 */
bool conn_manager_admit(struct conn_manager *m, struct connection *c, const struct sockaddr *from);
void conn_manager_begin(struct conn_manager *m, struct connection *c,
			struct MHD_Connection *connection, struct handshakes *handshakes);
void conn_manager_end(struct conn_manager *m, struct connection *c);
/* The loop's thread: answers instead of the library, which is about to (framing.h). */
void conn_manager_refuse_lengths(struct conn_manager *m, const struct handshakes *loop);
/* Somebody is turned away, since there is no descriptor for him. */
void conn_manager_count_unserved(struct conn_manager *m);

/* What a connection does next, which has its time. */
enum conn_step {
	CONN_REQUEST, /* the next request's headers come, after silence or not */
	CONN_BODY,
	CONN_WORK, /* it is us who take time */
	CONN_ANSWER, /* the client reads */
	CONN_STREAM, /* the same, of more than fits into memory */
};
void conn_manager_step(struct conn_manager *m, struct MHD_Connection *connection,
		       enum conn_step step);

/* The request's headers, or a piece of its body, have come. */
void conn_manager_note_progress(struct MHD_Connection *connection);
/* The target: the text between method and version, before it is unescaped; whether text equals it. */
void conn_manager_note_target(struct conn_manager *m, struct MHD_Connection *connection,
			      const char *target);
bool conn_manager_is_target(struct MHD_Connection *connection, const char *text);
/* May that request come in? As auth_check(); what is no clear request may not. */
enum auth_verdict conn_manager_check(struct conn_manager *m, struct MHD_Connection *connection,
				     const char *method, const char *path, const char *version,
				     struct auth_refusal *refusal);
/* As auth_is_named(). */
bool conn_manager_is_named(struct conn_manager *m, struct MHD_Connection *connection);
/* As auth_review(). */
enum auth_verdict conn_manager_review(struct conn_manager *m, struct MHD_Connection *connection,
				      const char *method, const char *path,
				      struct auth_refusal *refusal);
/* As auth_refuse_busy(). */
void conn_manager_refuse_busy(struct conn_manager *m, struct auth_refusal *refusal);
/* As auth_client(). */
uint64_t conn_manager_client(struct conn_manager *m, struct MHD_Connection *connection,
			     const char *path, bool admitted);

#endif
