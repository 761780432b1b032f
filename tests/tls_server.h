/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTPS server on the loopback that tells what it was asked and by whom, and the certificates
 * for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* PEM; owned. */
struct tls_identity {
	char *certificate, *key;
};

struct tls_wish {
	const char *name; /* the common name */
	const char *dns, *address; /* subject alternative names; NULL: none */
	const struct tls_identity *issuer; /* NULL: an authority, signed by itself */
	bool ended; /* its time is over */
};

void tls_identity_make(struct tls_identity *id, const struct tls_wish *wish);
void tls_identity_fini(struct tls_identity *id);

/* The last request. Owned strings, "" for what it had not. */
struct tls_request {
	char *method, *path, *host, *authorization, *accept, *body;
	char *sni; /* the name the client asked for */
	char *client; /* the common name of its verified certificate */
	unsigned requests, connections; /* so far */
};

struct tls_server;

/*
 * id NULL: plain HTTP. client_ca: PEM of who signs clients; NULL: clients are not asked for a
 * certificate.
 */
struct tls_server *tls_server_start(const struct tls_identity *id, const char *client_ca);
void tls_server_stop(struct tls_server *s);
int tls_server_port(const struct tls_server *s);
/*
 * From now on 401 without this token, or without this client; NULL: it does not matter. Otherwise
 * 200.
 */
void tls_server_demand(struct tls_server *s, const char *token, const char *client);
/* The answer to requests whose "METHOD PATH" has this text. */
struct tls_answer {
	const char *path;
	unsigned int status;
	const char *body;
};

/* From now on, before all other rules; borrowed. */
void tls_server_script(struct tls_server *s, const struct tls_answer *answers, size_t count);
/*
 * From now on 200 with the text that `reply` makes of each request's body, and which is freed; on the
 * server's thread.
 */
void tls_server_reply(struct tls_server *s, char *(*reply)(const char *body));
void tls_server_seen(struct tls_server *s, struct tls_request *r);
void tls_request_fini(struct tls_request *r);
