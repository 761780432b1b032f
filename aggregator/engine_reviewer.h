/* SPDX-License-Identifier: Apache-2.0 */
/* The Kubernetes edge as who reviews tokens for the HTTP edge. */
#ifndef EVENKEEL_AGGREGATOR_ENGINE_REVIEWER_H
#define EVENKEEL_AGGREGATOR_ENGINE_REVIEWER_H

#include "aggregator/api/access_review.h"
#include "shared/reason.h"

struct reviewer {
	struct access_reviewer access; /* for the HTTP edge */
	struct token_reviewer *tokens; /* owned */
};

/*
 * kubeconfig NULL: the cluster this is a pod of. audience NULL: the API server. -EINVAL with the
 * reason.
 */
int reviewer_open(struct reviewer *r, const char *kubeconfig, const char *context,
		  const char *audience, struct reason *reason);
/* Cuts what is being asked. Of zeroes nothing, as below. */
void reviewer_stop(struct reviewer *r);
void reviewer_close(struct reviewer *r);

#endif
