/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses a kubeconfig names: the API server's and a proxy's. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_CONFIG_URL_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_CONFIG_URL_H

#include <stdbool.h>

#include "shared/reason.h"

/* Taken apart; strings are owned. */
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

#endif
