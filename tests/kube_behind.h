/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A testbed's first aggregator behind its API server (APIService, aggregation layer). There is no
 * cluster network: the Service leads to this machine by its external name.
 */
#pragma once

#include "tests/kube_direct.h"

struct kube_behind {
	struct kube_testbed *bed; /* borrowed */
	struct tls_identity authority, server; /* of the aggregator's certificate */
};

/* Ports, certificates, the namespace evenkeel, roles, Service and APIServices. */
void kube_behind_install(struct kube_behind *b, struct kube_testbed *bed);
void kube_behind_fini(struct kube_behind *b);
/* Starts the aggregator and awaits that it is ready; more: options, which end with NULL. */
void kube_behind_start(struct kube_behind *b, const char *kubeconfig, const char *const *more);
/* Awaits that the API server reaches it as this APIService ("v1.evenkeel.io"); else the test fails. */
void kube_behind_await(struct kube_behind *b, const char *service);
