/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP edge: libmicrohttpd serves the routes of the API. The options of its access control.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_HTTP_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_HTTP_H

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

#define ACCESS_OPTION(base, member, option, form, argument, ...)                                   \
	{                                                                                          \
		.name = option, .kind = form,                                                      \
		.offset = (base) + offsetof(struct access_options, member), .value = argument,     \
		.help = __VA_ARGS__                                                                \
	}

/* The rows of the option table for a struct access_options that lies at offset `base`. */
#define ACCESS_OPTIONS(base)                                                                       \
	ACCESS_OPTION(base, certificate, "tls-cert", OPTION_STRING, "FILE",                        \
		      "Serve HTTPS with this certificate (PEM, with its intermediates); a "        \
		      "changed file is read again."),                                              \
		ACCESS_OPTION(base, key, "tls-key", OPTION_STRING, "FILE",                         \
			      "The certificate's private key (PEM)."),                             \
		ACCESS_OPTION(base, client_ca, "tls-client-ca", OPTION_STRING, "FILE",             \
			      "Admit clients with a certificate of one of these authorities."),    \
		ACCESS_OPTION(                                                                     \
			base, token_file, "token-file", OPTION_STRING, "FILE",                     \
			"Admit these bearer tokens: lines of TOKEN, TOKEN,NAME or, to ask the "    \
			"actuator, TOKEN,NAME,act, in a file that others cannot read."),           \
		ACCESS_OPTION(                                                                     \
			base, token_review, "token-review", OPTION_FLAG, NULL,                     \
			"Admit tokens that the Kubernetes API knows, if RBAC allows the path "     \
			"(nonResourceURLs)."),                                                     \
		ACCESS_OPTION(                                                                     \
			base, audience, "token-audience", OPTION_STRING, "NAME",                   \
			"The audience of tokens for --token-review; default: the API server."),    \
		ACCESS_OPTION(                                                                     \
			base, front_proxy, "front-proxy", OPTION_FLAG, NULL,                       \
			"Serve the Kubernetes API server as its extension (APIService): users "    \
			"come from its X-Remote headers, if RBAC allows them the resource. Needs " \
			"--tls-cert and --token-review."),                                         \
		ACCESS_OPTION(                                                                     \
			base, open_watcher, "open-watcher", OPTION_FLAG, NULL,                     \
			"Serve /watcher without credentials: load-watcher's clients send none."),  \
		ACCESS_OPTION(base, plain_tokens, "allow-plain-tokens", OPTION_FLAG, NULL,         \
			      "Accept tokens without TLS from other machines: something else "     \
			      "encrypts."),                                                        \
		ACCESS_OPTION(base, insecure_open, "insecure-open", OPTION_FLAG, NULL,             \
			      "Let every client of other machines read everything and make "       \
			      "reservations, if no credentials are configured."),                  \
		ACCESS_OPTION(                                                                     \
			base, allowed_hosts, "allowed-host", OPTION_LIST, "NAME",                  \
			"Another name of this server in Host headers, if no credentials are "      \
			"configured; names of the loopback and of --listen are always allowed. "   \
			"Repeatable."),                                                            \
		ACCESS_OPTION(base, rate, "rate-limit", OPTION_NUMBER, "N",                        \
			      "Requests a second from one address; the burst is twice "            \
			      "that, at least 10. 0: no limit.",                                   \
			      .initial = "0", .max = 1e6)

/* -EINVAL with the reason: options contradict each other, or one of a pair is missing. */
int access_options_check(const struct access_options *o, struct error *error);
/* Into *config, which borrows the texts; the caller sets the review client. */
void access_options_apply(const struct access_options *o, struct http_config *config);

#endif
