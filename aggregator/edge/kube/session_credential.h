/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest credential of a configuration: read again as it ages, and after a 401. Certificates
 * and keys lie in memory files for libcurl, none on a disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "aggregator/edge/kube/exec_credential.h"
#include "shared/error.h"

enum { SESSION_TLS_KEPT = 8, SESSION_TLS_DIGEST_LEN = 32, SESSION_TLS_PATH_LEN = 32 };

/* A memory file with a path. */
struct session_tls_file {
	int fd; /* -1: none */
	char path[SESSION_TLS_PATH_LEN]; /* valid until SESSION_TLS_KEPT further sets */
};

struct session_tls {
	struct session_tls_set {
		struct session_tls_file ca, pair; /* pair: certificates, then the key */
	} sets[SESSION_TLS_KEPT];
	size_t newest;
	uint8_t digest[SESSION_TLS_DIGEST_LEN]; /* of the newest */
};

void session_tls_init(struct session_tls *t);
void session_tls_fini(struct session_tls *t);

/*
 * PEM texts, borrowed; NULL: none; certificate and key come together. Without a change it does
 * nothing. -EINVAL with the reason (no certificate, a key of another certificate, ..); the newest
 * set stays.
 */
int session_tls_put(struct session_tls *t, const char *ca, const char *certificate, const char *key,
		    struct error *error);

/* A plugin's credential. Times are of the caller's clock. */
struct session_exec {
	struct exec_credential credential;
	bool there;
	int64_t since_ns;
	int64_t refresh_ns, ends_ns; /* INT64_MAX: no expiry */
	int64_t retry_ns; /* after a failure; until then its reason holds */
	struct error failure;
};

struct session_credential {
	const struct kube_config *config; /* borrowed */
	char *token; /* of the configuration or its file; owned; NULL: none */
	struct session_tls tls;
	struct session_exec exec;
	bool read; /* the files, at least once */
	int64_t read_ns;
	bool rejected; /* by a 401 */
	bool failing; /* to read the files again; logged */
};

/* Reads the files. -EACCES or -EINVAL with the reason; fini is needed in any case. */
int session_credential_init(struct session_credential *c, const struct kube_config *config,
			    struct error *error);
void session_credential_fini(struct session_credential *c);

/* Refreshes token and certificates. -EACCES with the reason: none. */
int session_credential_refresh(struct session_credential *c, int64_t now_ns, struct error *error);
