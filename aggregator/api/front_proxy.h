/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front proxy of the Kubernetes API server, as the ConfigMap
 * kube-system/extension-apiserver-authentication describes it: who signs its certificates, and the
 * headers in which it names users.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shared/error.h"

enum front_proxy_list {
	FRONT_PROXY_NAMES, /* common names of its certificate; none: any */
	FRONT_PROXY_USERS, /* header names, as the next two */
	FRONT_PROXY_UIDS,
	FRONT_PROXY_GROUPS,
	FRONT_PROXY_EXTRAS, /* beginnings of header names */
	FRONT_PROXY_LISTS,
};

/* Immutable; owned with its texts. */
struct front_proxy {
	char *client_ca; /* PEM */
	char **lists[FRONT_PROXY_LISTS]; /* each ended by NULL */
};

/*
 * From the ConfigMap as JSON. -ENOENT: the API server has no front proxy; -EINVAL: not understood;
 * with the reason.
 */
int front_proxy_read(struct front_proxy **p, const char *json, size_t len, struct error *error);
void front_proxy_free(struct front_proxy *p); /* NULL is allowed */

/* Whether a certificate with that common name ("": none) is the proxy's. */
bool front_proxy_allows(const struct front_proxy *p, const char *name);

struct front_proxy_header {
	const char *name, *value;
};

/*
 * The user that the headers name, as JSON of a UserInfo: equal headers give equal texts. NULL: none.
 * The caller frees it.
 */
char *front_proxy_user(const struct front_proxy *p, const struct front_proxy_header *headers,
		       size_t count);
