/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP edge: libmicrohttpd serves the routes of the API. The options of its access control.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/api/api.h"
#include "aggregator/edge/http/auth.h"
#include "aggregator/edge/http/tls.h"
#include "shared/options.h"
#include "shared/error.h"

/* Timeouts of the parts of a request; 0: the default. */
struct http_timeouts {
	int64_t headers_ns; /* with the TLS handshake */
	int64_t body_ns;
	int64_t answer_ns; /* to read it */
	int64_t stream_ns; /* to read a stream */
};

struct http_config {
	/* "127.0.0.1:2020", "[::1]:2020", ":2020", port 0 picks one. */
	const char *listen;
	const struct api_context *ctx;
	struct tls_files tls; /* no certificate: plain HTTP */
	struct auth_options auth;
	bool plain_tokens; /* tokens in clear between machines are allowed */
	bool insecure_open; /* clients of other machines need no credentials */
	struct http_timeouts timeouts;
};

struct front_proxy;
struct http_server;
/*
 * -EADDRINUSE, -EINVAL, .. with the reason. config is copied; its pointers are borrowed. -EINVAL
 * also if tokens would travel in clear between machines, or other machines need no credentials,
 * and that is not allowed.
 */
int http_start_with(struct http_server **s, const struct http_config *config, struct error *error);
void http_stop(struct http_server *s);
/* Reads certificates and tokens again, soon; it also does so every ten seconds. */
void http_reload(struct http_server *s);
/* Any thread; takes over *p: the front proxy whose users requests may be of. */
void http_set_front_proxy(struct http_server *s, struct front_proxy *p);
/* The address it really listens on, "127.0.0.1:2020". */
const char *http_address(const struct http_server *s);

/* Filled by the option table. */
struct access_options {
	char *certificate, *key, *client_ca, *token_file, *audience;
	bool token_review, front_proxy, open_watcher, plain_tokens, insecure_open;
	struct option_list allowed_hosts;
	double rate;
};

#define ACCESS_AT(base, member) ((base) + offsetof(struct access_options, member))
/* The rows of the option table for a struct access_options that lies at offset `base`. */
/* clang-format off */
#define ACCESS_OPTIONS(base)                                                                       \
	TEXT_OPTION("tls-cert", ACCESS_AT(base, certificate), "FILE", NULL,                        \
		    "Serve HTTPS with this certificate (PEM, with its intermediates); a changed "  \
		    "file is read again."),                                                        \
	TEXT_OPTION("tls-key", ACCESS_AT(base, key), "FILE", NULL,                                 \
		    "The certificate's private key (PEM)."),                                       \
	TEXT_OPTION("tls-client-ca", ACCESS_AT(base, client_ca), "FILE", NULL,                     \
		    "Admit clients with a certificate of one of these authorities."),              \
	TEXT_OPTION("token-file", ACCESS_AT(base, token_file), "FILE", NULL,                       \
		    "Admit these bearer tokens: lines of TOKEN, TOKEN,NAME or, to ask the "        \
		    "actuator, TOKEN,NAME,act, in a file that others cannot read."),               \
	FLAG_OPTION("token-review", 0, ACCESS_AT(base, token_review),                              \
		    "Admit tokens that the Kubernetes API knows, if RBAC allows the path "         \
		    "(nonResourceURLs)."),                                                         \
	TEXT_OPTION("token-audience", ACCESS_AT(base, audience), "NAME", NULL,                     \
		    "The audience of tokens for --token-review; default: the API server."),        \
	FLAG_OPTION("front-proxy", 0, ACCESS_AT(base, front_proxy),                                \
		    "Serve the Kubernetes API server as its extension (APIService): users come "   \
		    "from its X-Remote headers, if RBAC allows them the resource. Needs "          \
		    "--tls-cert and --token-review."),                                             \
	FLAG_OPTION("open-watcher", 0, ACCESS_AT(base, open_watcher),                              \
		    "Serve /watcher without credentials: load-watcher's clients send none."),      \
	FLAG_OPTION("allow-plain-tokens", 0, ACCESS_AT(base, plain_tokens),                        \
		    "Accept tokens without TLS from other machines: something else encrypts."),    \
	FLAG_OPTION("insecure-open", 0, ACCESS_AT(base, insecure_open),                            \
		    "Let every client of other machines read everything and make reservations, "   \
		    "if no credentials are configured."),                                          \
	LIST_OPTION("allowed-host", ACCESS_AT(base, allowed_hosts), "NAME", NULL,                  \
		    "Another name of this server in Host headers, if no credentials are "          \
		    "configured; names of the loopback and of --listen are always allowed."),      \
	RANGE_OPTION(OPTION_NUMBER, "rate-limit", ACCESS_AT(base, rate), "N", "0", 0, 1e6,         \
		     "Requests a second from one address; the burst is twice that, at least 10. "  \
		     "0: no limit.")
/* clang-format on */

/* -EINVAL with the reason: options contradict each other, or one of a pair is missing. */
int access_options_check(const struct access_options *o, struct error *error);
/* Into *config, which borrows the texts; the caller sets the review client. */
void access_options_apply(const struct access_options *o, struct http_config *config);
