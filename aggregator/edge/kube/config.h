/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of the Kubernetes API and the credentials for it, from a kubeconfig or from the
 * files of a pod.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/error.h"

/* Strings are owned; NULL: not given. Inline data of a kubeconfig is decoded. */
struct kube_config {
	char *server; /* "https://10.96.0.1:443" without a trailing slash */
	char *ca_file, *ca_data; /* PEM; neither: the system's */
	char *tls_server_name;
	bool insecure_skip_tls_verify;
	char *proxy_url;
	char *token, *token_file;
	char *client_certificate_file, *client_certificate_data; /* PEM */
	char *client_key_file, *client_key_data; /* PEM */
	char *exec_command; /* ExecCredential plugin; NULL: none */
	char *exec_api_version; /* client.authentication.k8s.io/v1 or v1beta1 */
	char *exec_install_hint; /* remedy if the command is missing */
	char **exec_args; /* NULL-terminated */
	char **exec_env; /* "NAME=VALUE", NULL-terminated */
	bool exec_provide_cluster_info;
	int64_t exec_limit_ns; /* of a run of the plugin; 0: 30 s */
	char *namespace;
	char *source; /* for messages: the file's path, or "in-cluster" */
};

/*
 * Reads a kubeconfig file: current-context, or `context` unless NULL. Relative paths are relative
 * to the file. -ENOENT, -EACCES, -ENODATA (no current-context, or an empty file), -EINVAL with the
 * reason, which names file, line, column and fault; then *c is untouched.
 */
int kube_config_read(struct kube_config *c, const char *path, const char *context,
		     struct error *error);
/*
 * The same from files divided by colons, as KUBECONFIG names them. Missing and empty ones are
 * skipped; -ENOENT if all are missing.
 */
int kube_config_read_list(struct kube_config *c, const char *paths, const char *context,
			  struct error *error);
/* All is borrowed. */
struct kubeconfig_file {
	const char *name; /* for reasons, and as the source */
	const char *folder; /* the base of relative paths */
	const char *text;
	size_t len;
};

enum { KUBECONFIG_FILES_MAX = 16 };

/*
 * Parses 1 to KUBECONFIG_FILES_MAX files, of which the first with a name or a current context
 * decides. context: NULL for the current one. 0; -ENODATA: there is none; -EINVAL with the reason
 * "name:line:column: text", without secrets. *c is written only on success.
 */
int kubeconfig_parse(struct kube_config *c, const struct kubeconfig_file *files, size_t count,
		     const char *context, struct error *error);
/*
 * Reads KUBERNETES_SERVICE_HOST and _PORT, and token, ca.crt and namespace in dir (NULL: the
 * default). -ENOENT: no pod; -EINVAL: something is missing, and the reason names it.
 */
int kube_config_in_cluster(struct kube_config *c, const char *dir, struct error *error);
/*
 * Of kubeconfig, or if that is NULL of the cluster this is a pod of. -ENOENT: this is no pod; -EINVAL;
 * both with the reason.
 */
int kube_config_find(struct kube_config *c, const char *kubeconfig, const char *context,
		     struct error *error);
/* Overwrites *to without freeing it. */
void kube_config_copy(struct kube_config *to, const struct kube_config *from);
void kube_config_fini(
	struct kube_config *c); /* wipes secrets; accepts NULL and zeroes, leaves zeroes */

/* The parts of an address; strings are owned. */
struct kube_url {
	bool tls;
	bool loopback; /* the host is this machine */
	char *host; /* an IPv6 address in brackets */
	char *port;
	char *path; /* "" or "/k8s/clusters/c-1", without a trailing slash */
};

/*
 * -EINVAL with the reason, which has no password: not http or https, or more than host, port and
 * path.
 */
int kube_url_parse(struct kube_url *u, const char *text, struct error *error);
void kube_url_fini(struct kube_url *u); /* accepts zeroes */
/*
 * A host name or address as in a URL: an IPv6 address gets its brackets. NULL: neither. The caller
 * frees it.
 */
char *kube_url_host(const char *name);
/* -EINVAL with the reason unless http, https, socks5 or socks5h. */
int kube_url_check_proxy(const char *text, struct error *error);

/* --- texts of credentials: tokens, and texts that are wiped before they are freed */

/* Of a kubeconfig, and of a file of certificates. */
enum { KUBE_FILE_MAX = 1 << 20 };

/* text as one line, cut with ".." if out is full; returns out. NULL: "". */
const char *kube_text_line(const char *text, char *out, size_t size);

/* Wipe and free; NULL is allowed. */
void kube_text_wipe(char *text);
void kube_bytes_wipe(char *bytes, size_t len);

enum { TOKEN_MAX = 16 << 10 };

/*
 * The word in text, without blanks and line ends around it; the caller frees *token with
 * kube_text_wipe(). -EINVAL with the reason: no word, longer than TOKEN_MAX, or a byte that could
 * end or split a header.
 */
int token_take(const char *text, size_t len, char **token, struct error *error);
/* The same from a file. Errors of secret_read(); the reason names the path. */
int token_read(const char *path, char **token, struct error *error);
