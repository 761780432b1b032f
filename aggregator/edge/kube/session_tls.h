/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates and keys as files that libcurl can read, whatever they came from, and none of it on
 * a disk.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_TLS_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_TLS_H

#include <stddef.h>
#include <stdint.h>

#include "shared/reason.h"

enum { SESSION_TLS_KEPT = 8, SESSION_TLS_DIGEST_LEN = 32, SESSION_TLS_PATH_LEN = 32 };

/* A text in memory under a path. */
struct session_tls_file {
	int fd; /* -1: none */
	char path[SESSION_TLS_PATH_LEN];
};

struct session_tls {
	struct session_tls_set {
		struct session_tls_file ca, pair;
	} sets[SESSION_TLS_KEPT];
	size_t newest;
	uint8_t digest[SESSION_TLS_DIGEST_LEN]; /* of the newest */
};

void session_tls_init(struct session_tls *t);
void session_tls_fini(struct session_tls *t);

/*
 * Texts are PEM and stay the caller's; NULL: none, and certificate and key come together. Nothing
 * happens when they are the newest already. -EINVAL with the reason (no certificate in it, a key
 * that is another's, ..), and the newest stays what it was.
 */
int session_tls_put(struct session_tls *t, const char *ca, const char *certificate, const char *key,
		    struct reason *reason);

/* Of the newest; NULL: none. Valid until SESSION_TLS_KEPT further ones were put. */
const char *session_tls_ca(const struct session_tls *t);
const char *session_tls_pair(const struct session_tls *t); /* certificates, then the key */

#endif
