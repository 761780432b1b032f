/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be told of a quota: its status.used, and what that hides: pending, borrowed, lent, and what is really used. Pure. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_STATUS_H
#define EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_STATUS_H

#include "aggregator/policy/quota/quota.h"

/*
 * status.used of a quota, out of the namespace's pods one by one:
 *   upstream   pods in phase Running only; containers and init containers, without overhead, sidecars and the pod's own resources
 *   corrected  pods that are bound to a node and neither Succeeded nor Failed, with all they request (kube_pod_requests())
 * Every name in min or max is told, with 0 where nothing of it is used; others too, as far as pods ask for them. Out is begun with
 * quota_status_begin() and ended with resources_fini().
 */
void quota_status_begin(const struct quota *q, struct resources *out);
void quota_status_add(enum quota_variant v, const struct kube_pod *pod, struct resources *out);

/* One resource of a quota. Amounts in its own unit. */
struct quota_status {
	const char *resource; /* borrowed from the book */
	bool in_min, in_max;
	int64_t min, max; /* as quota_bounds() tells */
	int64_t used; /* by bound pods, and what is reserved */
	int64_t pending;
	int64_t borrowed; /* what is used over min */
	int64_t lent; /* of the unused min, what others borrow: in proportion, where they do not borrow all of it; whole units, cut */
	/* Measured, of CPU (millicores) and memory (working set in bytes) only; NaN: not known. */
	double real_mean, real_p50, real_p95;
	double idle; /* of what is used, what was not in fact: used - real_mean; at least 0 */
};

/* What is borrowed and left unused of each resource by all quotas together, for as long as the book does not change. */
struct quota_loans;
struct quota_loans *quota_loans_new(const struct quota_book *b);
void quota_loans_free(struct quota_loans *l);

/*
 * All resources that the quota or its pods name, in the order of resources_next(). Returns how many there are, and fills at most `room`. i as in
 * quota_book_at(). quota_share.h has fair shares, and mins scaled down to a capacity.
 */
size_t quota_status_read(const struct quota_book *b, const struct quota_loans *loans, size_t i,
			 struct quota_status *out, size_t room);

#endif
