/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exec plugins (client.authentication.k8s.io, v1 or v1beta1): their input, their process, and their
 * answer, an ExecCredential.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "shared/error.h"

/* A token, or a certificate with its key, or both. Owned. */
struct exec_credential {
	char *token;
	char *certificate, *key; /* PEM */
	bool expires;
	int64_t expires_ns; /* Unix time */
};

/*
 * -EINVAL with the reason, without secrets: no JSON, another kind or apiVersion than api_version,
 * no credential, half of a pair, or a bad time.
 */
int exec_credential_parse(struct exec_credential *cred, const char *api_version, const char *json,
			  size_t len, struct error *error);
void exec_credential_fini(struct exec_credential *cred); /* wipes; accepts zeroes, leaves zeroes */

/*
 * The value of KUBERNETES_EXEC_INFO, with the cluster if configured; ca: its certificates as PEM,
 * or NULL. The "config" of a cluster's extensions is not passed on. The caller frees it.
 */
char *exec_credential_info(const struct kube_config *c, const char *ca);

enum { EXEC_OUTPUT_MAX = 256 << 10 };

/*
 * Runs a program without a shell, within bounds of time and output, and waits for its end. argv[0]
 * is looked for in PATH unless it has a slash; envp is its whole environment; stdin is /dev/null;
 * it leads its own process group. 0 with *out, its stdout and a NUL, freed by kube_bytes_wipe().
 * -ENOENT: no such program; -EACCES: not executable; -ETIMEDOUT: longer than limit_ns, killed with
 * its group; -EIO: failed, or printed more than EXEC_OUTPUT_MAX. The reason quotes its last line
 * on stderr.
 */
int exec_run(char *const argv[], char *const envp[], int64_t limit_ns, char **out, size_t *len,
	     struct error *error);
