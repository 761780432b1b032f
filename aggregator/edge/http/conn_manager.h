/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection manager: TLS and timeouts of each connection, and authorization of the requests
 * that libmicrohttpd reads from it.
 */
#pragma once

#include <microhttpd.h>

#include "aggregator/api/front_proxy.h"
#include "aggregator/edge/http/auth.h"
#include "aggregator/edge/http/connections.h"
#include "aggregator/edge/http/http.h"

enum { CONN_IDLE_SECONDS = 45 }; /* of silence; longer than the 30 s at which schedulers poll */

struct conn_manager;

/*
 * Reads certificates and tokens, and starts a thread that reads them again and cuts slow clients.
 * A client may have of_client_most connections. -errno with the reason.
 */
int conn_manager_start(struct conn_manager **m, const struct http_config *config,
		       unsigned int of_client_most, struct access_counters *counters,
		       struct error *error);
/* All connections are closed. NULL is allowed. */
void conn_manager_stop(struct conn_manager *m);
void conn_manager_reload(struct conn_manager *m); /* any thread; soon */
/* Any thread; takes over *p, which holds from the next request on, and its authority soon. */
void conn_manager_set_front_proxy(struct conn_manager *m, struct front_proxy *p);
bool conn_manager_has_tls(const struct conn_manager *m);

/*
 * The library begins a connection, before its first byte: takes the newest certificate and expects
 * a first request. NULL: its client has too many; the connection is shut down and counted.
 */
struct connection *conn_manager_begin(struct conn_manager *m, struct MHD_Connection *connection,
				      struct handshakes *handshakes);
/* NULL: conn_manager_begin() did not take it. */
struct connection *conn_manager_find(struct MHD_Connection *connection);
void conn_manager_end(struct conn_manager *m, struct connection *c);
/* The loop's thread: answers 400 before the library does, which would answer twice (framing.c). */
void conn_manager_refuse_lengths(struct conn_manager *m, const struct handshakes *loop);

/* The next step of a connection; each has a timeout. */
enum conn_step {
	CONN_REQUEST, /* the next request's headers come, after silence or not */
	CONN_BODY,
	CONN_WORK, /* of the server: no timeout */
	CONN_ANSWER, /* the client reads */
	CONN_STREAM, /* the client reads an answer that does not fit into memory */
};
void conn_manager_step(struct conn_manager *m, struct connection *c, enum conn_step step);

/* The target of a request has come: the text between method and version, before unescaping. */
void conn_manager_note_target(struct conn_manager *m, struct connection *c, const char *target);

/* auth_check() of a request; a request that is not clear (framing.c) is refused first. */
enum auth_verdict conn_manager_check(struct conn_manager *m, struct connection *c,
				     const char *method, const char *path, const char *version,
				     struct auth_refusal *refusal);
/* auth_review() of a request; busy: auth_refuse_busy(). */
enum auth_verdict conn_manager_review(struct conn_manager *m, struct connection *c,
				      const char *method, const char *path, bool busy,
				      struct auth_refusal *refusal);
/* auth_is_named() and auth_client() of a request. */
bool conn_manager_is_named(struct conn_manager *m, struct connection *c);
uint64_t conn_manager_client(struct conn_manager *m, struct connection *c, const char *path,
			     bool admitted);
