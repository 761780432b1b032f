/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication and authorization of requests to the HTTP API: a decision about one request by its
 * headers, apart from the library that serves it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "aggregator/api/access_review.h"
#include "aggregator/api/api.h"
#include "shared/options.h"

struct auth_options {
	const char *token_file; /* NULL: none; borrowed, as all here */
	const struct review_client *review_client; /* NULL: no reviews */
	bool certificates; /* client certificates are checked */
	bool open_watcher;
	double requests_per_second; /* of each client; 0: no limit */
	const char *listen; /* --listen, the address that clients know */
	const struct option_list *allowed_hosts; /* other names of it; NULL: none */
};

/* The client certificate of the connection. */
enum auth_certificate { AUTH_CERTIFICATE_NONE, AUTH_CERTIFICATE_GOOD, AUTH_CERTIFICATE_BAD };

struct auth_request {
	const char *method, *path;
	/* Headers; NULL: none. */
	const char *authorization, *host, *origin, *content_type;
	const struct sockaddr *from;
	const struct sockaddr *to; /* NULL: not known */
	enum auth_certificate certificate;
	const char *certificate_fault; /* of a bad one */
	const char *user; /* as the API server's front proxy names it (front_proxy.h); NULL: none */
	int64_t now_ns; /* monotonic */
};

enum auth_verdict {
	AUTH_PASS,
	AUTH_REFUSE,
	AUTH_REVIEW, /* ask auth_review() once where it may wait, or auth_refuse_busy() */
};

/* The answer to a refused client; and the name of one that is admitted. */
struct auth_refusal {
	enum access_refusal reason;
	enum api_failure failure;
	int retry_after_s; /* 0: none */
	char text[384];
	char user[ACCESS_USER_LEN]; /* with AUTH_PASS; "": not known */
};

struct auth;

/*
 * Reads the token file. -ENOENT, -EACCES, -EPERM, -EINVAL with the reason. counters are borrowed.
 */
int auth_open(struct auth **auth, const struct auth_options *options,
	      struct access_counters *counters, struct error *error);
void auth_close(struct auth *auth); /* NULL is allowed */

/*
 * Any thread; microseconds. *refusal is written with AUTH_REFUSE, which is counted, and its user
 * with AUTH_PASS.
 */
enum auth_verdict auth_check(struct auth *auth, const struct auth_request *rq,
			     struct auth_refusal *refusal);
/* Any thread; may take seconds. AUTH_PASS or AUTH_REFUSE. */
enum auth_verdict auth_review(struct auth *auth, const struct auth_request *rq,
			      struct auth_refusal *refusal);
/* Instead of auth_review(), if too many reviews wait. */
void auth_refuse_busy(struct auth *auth, struct auth_refusal *refusal);
/* Whether a Host header (NULL: none) names this server, which the client reached at `to`. */
bool auth_is_named(const struct auth *auth, const char *host, const struct sockaddr *to);
/*
 * The client as fair queues count it: the user that the front proxy names, or the token that
 * admitted the request, else the address (endpoint.h).
 */
uint64_t auth_client(const struct auth *auth, const struct auth_request *rq, bool admitted);
/*
 * Reads the token file again. 1: it changed; 0: no. On failure the former content stays in force,
 * with the reason.
 */
int auth_reload(struct auth *auth, struct error *error);

/* --- rate.c: a token bucket of requests for each client address, for a bounded number of them */

enum { RATE_SETS = 4096, RATE_WAYS = 4 };

struct rate_limit;

/* per_second > 0; the burst is twice that, at least 10. */
struct rate_limit *rate_limit_new(double per_second);
void rate_limit_free(struct rate_limit *r); /* NULL is allowed */

/*
 * Any thread. 0: the request of that client (endpoint.h) is admitted; else nanoseconds until the
 * next.
 */
int64_t rate_limit_take(struct rate_limit *r, const struct sockaddr *from, int64_t now_ns);

/* --- hosts.c: the names of this server in requests, and the pages in browsers that may send them */

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
