/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the Kubernetes API is and how one proves who one is: a kubeconfig, or what a pod finds in
 * its file system.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_CONFIG_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "shared/reason.h"

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
	char *exec_install_hint; /* what to do when the command is not there */
	char **exec_args; /* NULL-terminated */
	char **exec_env; /* "NAME=VALUE", NULL-terminated */
	bool exec_provide_cluster_info;
	char *namespace;
	char *source; /* for messages: the file's path, or "in-cluster" */
};

/*
 * A kubeconfig file: current-context, or `context` unless NULL. Relative paths are relative to the
 * file. -ENOENT, -EACCES, -EINVAL with the reason naming file, line, column, and what is wrong (a
 * context that names no cluster, broken base64, two ways to authenticate); then *c is untouched.
 */
int kube_config_read(struct kube_config *c, const char *path, const char *context,
		     struct reason *reason);
/*
 * KUBERNETES_SERVICE_HOST and _PORT, and token, ca.crt and namespace below dir (the usual place
 * when NULL). -ENOENT: this is no pod; -EINVAL: it is, but something is missing, and the reason
 * says what.
 */
int kube_config_in_cluster(struct kube_config *c, const char *dir, struct reason *reason);
/* to is overwritten: nothing, or what was given up with kube_config_fini(). */
void kube_config_copy(struct kube_config *to, const struct kube_config *from);
void kube_config_fini(
	struct kube_config *c); /* wipes secrets; accepts NULL and zeroes, and leaves zeroes */

/* An address, taken apart; strings are owned. */
struct kube_url {
	bool tls;
	bool loopback; /* what is sent there stays on this machine */
	char *host; /* an IPv6 address in brackets */
	char *port;
	char *path; /* "" or "/k8s/clusters/c-1", without a trailing slash */
};

/*
 * -EINVAL with the reason, which says neither user nor password, unless http or https, and nothing
 * but host, port and path.
 */
int kube_url_parse(struct kube_url *u, const char *text, struct reason *reason);
void kube_url_fini(struct kube_url *u); /* accepts zeroes */
/*
 * A host name or address as it stands in a URL: an IPv6 address gets its brackets. NULL when it is
 * neither. The caller frees it.
 */
char *kube_url_host(const char *name);
/* -EINVAL with the reason unless http, https, socks5 or socks5h. */
int kube_url_check_proxy(const char *text, struct reason *reason);

/*
 * The text of a kubeconfig. name: of the file, for reasons and as the source; folder: what relative paths are relative to;
 * context: NULL for the current one. 0, or -EINVAL with the reason "name:line:column: text", which
 * holds no secret; *c is written only on success.
 */
int kubeconfig_parse(struct kube_config *c, const char *name, const char *folder, const char *text,
		     size_t len, const char *context, struct reason *reason);

#endif
