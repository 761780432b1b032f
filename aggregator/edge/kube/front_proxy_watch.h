/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows what the Kubernetes API tells of its front proxy: the ConfigMap
 * kube-system/extension-apiserver-authentication.
 */
#pragma once

#include "aggregator/api/front_proxy.h"
#include "aggregator/edge/kube/config.h"

struct front_proxy_watch;

/*
 * Starts a thread that reads the ConfigMap at once and every ten seconds, and gives `changed` each
 * new content, on that thread. config is copied. -errno with the reason.
 */
int front_proxy_watch_start(struct front_proxy_watch **w, const struct kube_config *config,
			    void (*changed)(void *ctx, struct front_proxy *p), void *ctx,
			    struct error *error);
/* Cuts a running request and ends the thread. NULL is allowed. */
void front_proxy_watch_stop(struct front_proxy_watch *w);
