/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of sessions turn. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_INTERNAL_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_INTERNAL_H

#include <stdint.h>

#include "aggregator/edge/kube/session.h"

/* The time an exec plugin may take, in place of 30 s. */
void kube_session_limit_exec(struct kube_session *s, int64_t limit_ns);

#endif
