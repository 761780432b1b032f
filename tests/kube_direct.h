/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a testbed's first aggregator itself, over TLS, and not through the API server. */
#pragma once

#include "shared/buf.h"
#include "tests/kube_testbed.h"
#include "tests/tls_server.h"

#define KUBE_DIRECT_NAME "evenkeel-aggregator.evenkeel.svc" /* in the aggregator's certificate */

/* A file of the testbed's folder, for its owner alone; the caller frees the path. */
char *kube_direct_write(const struct kube_testbed *bed, const char *name, const char *text);
/*
 * The status of a GET, 0: none, with the body as text. The file ca.crt of the folder has the
 * server's authority. identity NULL: no client certificate; headers end with NULL; NULL: none.
 */
long kube_direct_ask(const struct kube_testbed *bed, const char *path,
		     const struct tls_identity *identity, const char *const *headers,
		     struct buf *answer);
