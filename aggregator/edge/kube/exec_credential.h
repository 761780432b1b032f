/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exec plugins: what is said to one, running it, and what it answers: an ExecCredential of
 * client.authentication.k8s.io, v1 or v1beta1.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_EXEC_CREDENTIAL_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_EXEC_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "shared/reason.h"

/* A token, or a certificate with its key, or both. Owned. */
struct exec_credential {
	char *token;
	char *certificate, *key; /* PEM */
	bool expires;
	int64_t expires_ns; /* Unix time */
};

/*
 * -EINVAL with the reason, which holds nothing of the credential: no JSON, another kind or
 * apiVersion than api_version, no credential, half of a pair, or a time that is none.
 */
int exec_credential_parse(struct exec_credential *cred, const char *api_version, const char *json,
			  size_t len, struct reason *reason);
void exec_credential_fini(
	struct exec_credential *cred); /* wipes; accepts zeroes, and leaves them */

/*
 * The value of KUBERNETES_EXEC_INFO, with the cluster if the configuration says so; ca: its
 * certificates as PEM, NULL when there are none. The "config" that a cluster's extensions may hold
 * is not passed on. The caller frees it.
 */
char *exec_credential_info(const struct kube_config *c, const char *ca);

enum { EXEC_OUTPUT_MAX = 256 << 10 };

/*
 * Runs a program to its end for what it prints, without a shell, bounded in time and bytes.
 * argv[0] is looked for in PATH unless it has a slash; envp is all it gets of an environment; it
 * reads /dev/null, and is the leader of a process group of its own. Waits for its end. 0 with *out,
 * what it printed to stdout and a NUL, which the caller gives up with kube_bytes_wipe(). -ENOENT:
 * there is no such program; -EACCES: it cannot be run; -ETIMEDOUT: it took longer than limit_ns and
 * was killed with its group; -EIO: it failed, or printed more than EXEC_OUTPUT_MAX. The reason
 * quotes its last line on stderr.
 */
int exec_run(char *const argv[], char *const envp[], int64_t limit_ns, char **out, size_t *len,
	     struct reason *reason);

#endif
