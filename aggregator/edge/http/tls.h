/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate this server shows, and which of its clients' it believes; both exchanged while it
 * runs.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_TLS_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_TLS_H

#include <gnutls/gnutls.h>
#include <stdint.h>

#include "shared/reason.h"

struct tls_files {
	const char *certificate, *key; /* PEM; borrowed, as all here */
	const char *client_ca; /* NULL: clients are not asked for a certificate */
};

/* One state of the files. */
struct tls_set;

struct tls;

/* -EINVAL with the reason naming the file. files is copied, its texts are borrowed. */
int tls_open(struct tls **t, const struct tls_files *files, struct reason *reason);
void tls_close(struct tls *t); /* nobody holds a set any more; NULL is allowed */
/*
 * One thread at a time. 1: the files hold something else, which is in force now; 0: nothing new;
 * -EINVAL with the reason: what was in force stays.
 */
int tls_reload(struct tls *t, struct reason *reason);
/* When the certificate ends, Unix time. */
int64_t tls_ends_s(struct tls *t);

/* Any thread. The newest set, to be dropped. */
struct tls_set *tls_hold(struct tls *t);
void tls_set_drop(struct tls_set *set); /* NULL is allowed */
/* For a handshake that has not begun; the caller holds the set as long as the session lives. */
void tls_set_begin(struct tls_set *set, gnutls_session_t session);

enum { TLS_FAULT_LEN = 160 };

/* What was found of a client's certificate; zeroes: nothing yet. */
struct tls_client {
	uint64_t by; /* the set that it was checked against; 0: none yet */
	int64_t ends_s; /* of a good one */
	enum { TLS_CLIENT_NONE, TLS_CLIENT_GOOD, TLS_CLIENT_BAD } state;
	char fault[TLS_FAULT_LEN]; /* of a bad one: "ended 3 hours ago" */
};

/*
 * Checks it where the set is not the one it was checked against, or it has ended since. One thread
 * for each client.
 */
void tls_client_check(struct tls *t, gnutls_session_t session, int64_t now_s,
		      struct tls_client *client);

#endif
