/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP edge: libmicrohttpd's threads answer by the routes of the API. And the options that say
 * who is let in.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_HTTP_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/api/api.h"
#include "aggregator/edge/http/gate.h"
#include "aggregator/edge/http/tls.h"
#include "shared/options.h"
#include "shared/reason.h"

/* How long a client may take for each part of a request; 0: the usual time. */
struct http_patience {
	int64_t headers_ns; /* with the TLS handshake */
	int64_t body_ns;
	int64_t answer_ns; /* to read it */
	int64_t stream_ns; /* to read one that is made while it is read */
};

struct http_config {
	/* "127.0.0.1:2020", "[::1]:2020", ":2020", port 0 picks one. */
	const char *listen;
	const struct api_context *ctx;
	struct tls_files tls; /* no certificate: plain HTTP */
	struct gate_options gate;
	bool plain_tokens; /* tokens may travel in clear between machines */
	bool insecure_open; /* other machines may ask, whoever they are */
	struct http_patience patience;
};

struct http_server;
/*
 * -EADDRINUSE, -EINVAL.. with the reason. config is copied; what it points to is borrowed. -EINVAL
 * also where tokens would travel in clear between machines, or other machines ask without any, and
 * that is not allowed.
 */
int http_start_with(struct http_server **s, const struct http_config *config,
		    struct reason *reason);
/* The same for everybody, without TLS. */
int http_start(struct http_server **s, const char *listen, const struct api_context *ctx,
	       struct reason *reason);
void http_stop(struct http_server *s);
/* Soon reads certificates and tokens again; it does so by itself every ten seconds. */
void http_reload(struct http_server *s);
/* The address it really listens on, "127.0.0.1:2020". */
const char *http_address(const struct http_server *s);

/* As the table of options fills it. */
struct access_options {
	char *certificate, *key, *client_ca, *token_file, *audience;
	bool token_review, open_watcher, plain_tokens, insecure_open;
	struct option_list allowed_hosts;
	double rate;
};

/* The rows of the option table for a struct access_options that lies at offset `base`. */
#define ACCESS_OPTIONS(base)                                                                       \
	{.name = "tls-cert",                                                                       \
	 .kind = OPTION_STRING,                                                                    \
	 .offset = (base) + offsetof(struct access_options, certificate),                          \
	 .value = "FILE",                                                                          \
	 .help = "Serve HTTPS with this certificate (PEM, with its intermediates); it is read "    \
		 "again when it changes."},                                                        \
		{.name = "tls-key",                                                                \
		 .kind = OPTION_STRING,                                                            \
		 .offset = (base) + offsetof(struct access_options, key),                          \
		 .value = "FILE",                                                                  \
		 .help = "The certificate's private key (PEM)."},                                  \
		{.name = "tls-client-ca",                                                          \
		 .kind = OPTION_STRING,                                                            \
		 .offset = (base) + offsetof(struct access_options, client_ca),                    \
		 .value = "FILE",                                                                  \
		 .help = "Let in clients whose certificate one of these authorities signed."},     \
		{.name = "token-file",                                                             \
		 .kind = OPTION_STRING,                                                            \
		 .offset = (base) + offsetof(struct access_options, token_file),                   \
		 .value = "FILE",                                                                  \
		 .help = "Let in who sends one of these bearer tokens: lines of TOKEN or "         \
			 "TOKEN,NAME, which others cannot read."},                                 \
		{.name = "token-review",                                                           \
		 .kind = OPTION_FLAG,                                                              \
		 .offset = (base) + offsetof(struct access_options, token_review),                 \
		 .help = "Let in who sends a token that the Kubernetes API knows, where RBAC "     \
			 "allows the path (nonResourceURLs)."},                                    \
		{.name = "token-audience",                                                         \
		 .kind = OPTION_STRING,                                                            \
		 .offset = (base) + offsetof(struct access_options, audience),                     \
		 .value = "NAME",                                                                  \
		 .help = "Whom tokens for --token-review must be meant for; without it, the API "  \
			 "server."},                                                               \
		{.name = "open-watcher",                                                           \
		 .kind = OPTION_FLAG,                                                              \
		 .offset = (base) + offsetof(struct access_options, open_watcher),                 \
		 .help = "Let everybody ask /watcher: load-watcher's clients send no "             \
			 "credentials."},                                                          \
		{.name = "allow-plain-tokens",                                                     \
		 .kind = OPTION_FLAG,                                                              \
		 .offset = (base) + offsetof(struct access_options, plain_tokens),                 \
		 .help = "Take tokens without TLS from other machines, too: something else "       \
			 "encrypts."},                                                             \
		{.name = "insecure-open",                                                          \
		 .kind = OPTION_FLAG,                                                              \
		 .offset = (base) + offsetof(struct access_options, insecure_open),                \
		 .help = "Let everybody who can connect from other machines read everything and "  \
			 "make reservations, where nothing says who is let in."},                  \
		{.name = "allowed-host",                                                           \
		 .kind = OPTION_LIST,                                                              \
		 .offset = (base) + offsetof(struct access_options, allowed_hosts),                \
		 .value = "NAME",                                                                  \
		 .help = "Another name that clients know this server by, where nothing says who "  \
			 "is let in; the loopback's and that of --listen always are. "             \
			 "Repeatable."},                                                           \
	{                                                                                          \
		.name = "rate-limit", .kind = OPTION_NUMBER,                                       \
		.offset = (base) + offsetof(struct access_options, rate), .value = "N",            \
		.initial = "0", .max = 1e6,                                                        \
		.help = "Requests a second that are taken from one address, twice as many and 10 " \
			"at least at once; 0: any number."                                         \
	}

/* What contradicts each other, or misses its other half, with the reason: -EINVAL. */
int access_options_check(const struct access_options *o, struct reason *reason);
/* Into *config, which borrows the texts; who reviews tokens is the caller's to say. */
void access_options_apply(const struct access_options *o, struct http_config *config);

#endif
