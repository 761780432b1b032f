/* SPDX-License-Identifier: Apache-2.0 */
/* What a kubeconfig's text says about one context. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBECONFIG_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_KUBECONFIG_H

#include <stddef.h>

#include "aggregator/edge/kube/config.h"
#include "shared/reason.h"

/*
 * name: of the file, for reasons and as the source; folder: what relative paths are relative to;
 * context: NULL for the current one. 0, or -EINVAL with the reason "name:line:column: text", which
 * holds no secret; *c is written only on success.
 */
int kubeconfig_parse(struct kube_config *c, const char *name, const char *folder, const char *text,
		     size_t len, const char *context, struct reason *reason);

#endif
