/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say who is let in to the HTTP API. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_ACCESS_OPTIONS_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_ACCESS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/edge/http/http.h"
#include "shared/options.h"
#include "shared/reason.h"

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
