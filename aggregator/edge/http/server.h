/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the HTTP server; http.h is its interface. */
#pragma once

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "aggregator/edge/http/conn_manager.h"
#include "aggregator/edge/http/workers.h"
#include "shared/error.h"

/* --- listen.c --------------------------------------------------------------------------------- */

enum { LISTEN_ADDRESS_LEN = 64 };

struct listener {
	int fd;
	bool loopback; /* only this machine can connect */
	char address[LISTEN_ADDRESS_LEN]; /* as bound: */
};

/*
 * "127.0.0.1:2020", "[::1]:2020", "name:2020"; ":2020" is every address of both families; port 0
 * picks one. -EINVAL for what is no address, else why it cannot be bound (-EADDRINUSE, -EACCES,
 * -EADDRNOTAVAIL, ..). The caller closes fd.
 */
int listen_open(struct listener *l, const char *address, struct error *error);

struct http_server;

/* --- event_loop.c: a thread that accepts connections and serves them -------------------------- */

struct event_loop;

/*
 * The server's listener does not block, and is shared with other loops. The loop has at most `most`
 * connections. -errno with the reason.
 */
int event_loop_start(struct event_loop **l, struct http_server *server, unsigned int most,
		     struct error *error);
/*
 * Closes its connections and completes every request that began; none is suspended any more. NULL
 * is allowed.
 */
void event_loop_stop(struct event_loop *l);

struct http_server *event_loop_server(const struct event_loop *l);
/* Any thread: resumes a suspended connection of the loop. */
void event_loop_resume(struct event_loop *l, struct MHD_Connection *connection);

/* --- answer.c: sends answers within bounds ---------------------------------------------------- */

/*
 * Counts bytes as held for a client. False: too much is held, and nothing is counted. Schedulers
 * have a share of their own.
 */
bool answer_hold(struct http_server *s, size_t len, bool scheduler);
void answer_release(struct http_server *s, size_t len);

/*
 * Takes over *rs and queues it, failures as api_fail_as_status() makes them; 503 if too much is
 * held. MHD_NO: close the connection.
 */
enum MHD_Result answer_send(struct http_server *s, struct connection *c, const char *path,
			    struct api_response *rs, bool scheduler);
/* Frees an answer that is not sent. */
void answer_drop(struct api_response *rs);

/* --- request.c: a request from its headers to the answer -------------------------------------- */

/* Callbacks of the library, whose cls is the event loop; see the types of MHD. */
enum MHD_Result request_on_progress(void *loop, struct MHD_Connection *connection, const char *path,
				    const char *method, const char *version, const char *upload,
				    size_t *upload_len, void **state);
void request_on_completed(void *loop, struct MHD_Connection *connection, void **state,
			  enum MHD_RequestTerminationCode how);
void *request_on_target(void *loop, const char *target, struct MHD_Connection *connection);
size_t request_unescape(void *cls, struct MHD_Connection *connection, char *text);

/* --- server.c --------------------------------------------------------------------------------- */

enum { HTTP_LOOPS = 2 };

struct http_server {
	/* fixed after start */
	const struct api_context *ctx; /* borrowed */
	struct listener listener;
	struct event_loop *loops[HTTP_LOOPS];
	struct workers *workers[API_WORKS]; /* NULL: an event loop does it at once */
	struct workers *review_workers; /* NULL: no reviews */
	struct conn_manager *manager;

	/* any thread; answer.c */
	atomic_size_t held_bytes;
	atomic_uint streams; /* sent now */
};
