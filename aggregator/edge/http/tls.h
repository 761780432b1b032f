/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server certificate and the authorities of client certificates; both are replaced at run time.
 */
#pragma once

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregator/edge/http/auth.h"
#include "shared/error.h"

struct tls_files {
	const char *certificate, *key; /* PEM; borrowed, as all here */
	const char *client_ca; /* NULL: clients are asked for a certificate with front_proxy only */
	bool front_proxy; /* tls_set_proxy_ca() names its authority */
};

/* The content of the files at one time. */
struct tls_set;

struct tls;

/* -EINVAL with the reason naming the file. files is copied, its texts are borrowed. */
int tls_open(struct tls **t, const struct tls_files *files, struct error *error);
void tls_close(struct tls *t); /* after the last set is dropped; NULL is allowed */
/*
 * One thread at a time. 1: the files changed, and the new content is in force; 0: no change;
 * -EINVAL with the reason: the former content stays.
 */
int tls_reload(struct tls *t, struct error *error);
/*
 * Any thread. PEM, copied: who signs the front proxy's certificates from the next reload on.
 * -EINVAL with the reason: the former one stays.
 */
int tls_set_proxy_ca(struct tls *t, const char *pem, struct error *error);
/* Expiry of the certificate, Unix time. */
int64_t tls_ends_s(struct tls *t);

/* Any thread. The newest set; the caller drops it. */
struct tls_set *tls_hold(struct tls *t);
void tls_set_drop(struct tls_set *set); /* NULL is allowed */
/* Before the handshake; the caller holds the set while the session lives. */
void tls_set_begin(struct tls_set *set, gnutls_session_t session);

enum { TLS_FAULT_LEN = 160, TLS_NAME_LEN = 256 };

/* The verdict on a client certificate; zeroes: not checked yet. */
struct tls_client {
	uint64_t by; /* the set of the check; 0: none yet */
	int64_t ends_s; /* of a good one */
	enum auth_certificate state;
	char fault[TLS_FAULT_LEN]; /* of a bad one: "ended 3 hours ago" */
	bool proxy; /* signed by the front proxy's authority, whatever the state; and then .. */
	char name[TLS_NAME_LEN]; /* .. its common name; "": none, or a longer one */
};

/*
 * Checks the certificate if the set is newer than the last check, or the certificate has expired
 * since. One thread for each client.
 */
void tls_client_check(struct tls *t, gnutls_session_t session, int64_t now_s,
		      struct tls_client *client);
