/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An extender of the kube-scheduler that lets nothing happen: it notes which nodes it is offered
 * for a pod, which are those that all filters of the scheduler accepted, and refuses them.
 */
#pragma once

#include <cjson/cJSON.h>

struct kube_witness;

struct kube_witness *kube_witness_start(void);
void kube_witness_stop(struct kube_witness *w);
/*
 * The configuration of a scheduler that asks the witness about every node, and preempts nobody; the
 * caller frees it.
 */
char *kube_witness_config(const struct kube_witness *w);
/*
 * The names of the nodes that were offered last for the pod; NULL: it was not asked, which it is
 * not either where no node is left. The caller deletes it.
 */
cJSON *kube_witness_offered(struct kube_witness *w, const char *pod);
