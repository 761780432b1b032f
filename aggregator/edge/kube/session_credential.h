/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest credential of a configuration: read again as it ages, and when the server doubts it.
 * Its certificates and keys lie in files that libcurl can read, none of them on a disk.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_CREDENTIAL_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "aggregator/edge/kube/exec_credential.h"
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

/* Of a plugin's credential. Times are the caller's clock. */
struct session_exec {
	struct exec_credential credential;
	bool there;
	int64_t since_ns;
	int64_t refresh_ns, ends_ns; /* INT64_MAX: it does not end */
	int64_t retry_ns; /* after a failure; until then its reason stands */
	struct reason failure;
};

struct session_credential {
	const struct kube_config *config; /* borrowed */
	char *token; /* of the configuration or its file; owned; NULL: none */
	struct session_tls tls;
	struct session_exec exec;
	bool read; /* the files, at least once */
	int64_t read_ns;
	bool doubted; /* by the server */
	bool failing; /* to read the files again; said in the log */
};

/* Reads the files. -EACCES or -EINVAL with the reason; give up with fini in any case. */
int session_credential_init(struct session_credential *c, const struct kube_config *config,
			    struct reason *reason);
void session_credential_fini(struct session_credential *c);

/* Makes token and certificates those to use now. -EACCES with the reason when there are none. */
int session_credential_refresh(struct session_credential *c, int64_t now_ns, struct reason *reason);
/* NULL: none. Borrowed, until the next refresh. */
const char *session_credential_token(const struct session_credential *c);

#endif
