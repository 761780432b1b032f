/* SPDX-License-Identifier: Apache-2.0 */
/* What people do through a real API server, by kubeconfigs with their tokens. */
#pragma once

#include "shared/buf.h"
#include "tests/kube_testbed.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The command evenkeel; what it prints, on either output, replaces *out. The exit status. */
int kube_person_run(const char *kubeconfig, const char *const *words, struct buf *out);
/* The same; another status, or an output without the text, fails the test. */
void kube_person_runs(const char *kubeconfig, const char *const *words, int code, const char *says);
/*
 * Who may ask the actuator, and who may speak for it: the viewer may look, the ClusterRole
 * evenkeel-operator asks, and a role for reports reports. The aggregator is up, and knows no
 * actuator.
 */
void kube_person_try_acts(struct kube_testbed *bed, const char *viewer);
