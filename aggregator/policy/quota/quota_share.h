/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowing between quotas, and the fair share of each in unused guarantees. Pure. */
#pragma once

#include "aggregator/policy/quota/quota.h"

/* A claimant of a part. */
struct quota_claimant {
	double weight; /* 0.001 to 1000000, in thousandths; 0 or less: gets nothing */
	int64_t need; /* the most it takes; at least 0 */
	int64_t share; /* out: what it gets */
};

/*
 * Shares `total` by weight, up to the need of each: the rest is shared among the others until all
 * is given or all needs are met. Whole units by the largest remainder, then the first. Returns the rest.
 */
int64_t quota_share_out(int64_t total, struct quota_claimant *claimants, size_t count);

/* One quota's part in a resource. In its own unit. */
struct quota_share {
	/* effective min: scaled down if the cluster has less than all mins together */
	int64_t min;
	int64_t used, wanted; /* by bound pods; with pending pods, at most max */
	int64_t borrowed; /* used over min */
	int64_t lent; /* the part of its unused min that others borrow */
	/*
	 * Its share if all quotas use as much as they want: up to min what it wants, and its part
	 * by evenkeel.io/weight of what others leave of their min. More is what others wait for.
	 */
	int64_t fair;
};

struct quota_share_sum {
	int64_t min; /* in the objects */
	int64_t guaranteed; /* min, or the capacity */
	int64_t used, borrowed, lent;
	int64_t unused; /* unused min, lent or not */
	/* if the quotas guarantee more than the cluster has, the numbers; else "" */
	struct error alarm;
};

/*
 * Of one resource, for every quota of the book: out has quota_book_count() elements, in the order
 * of quota_book_at(). Quotas that do not govern it have zeros.
 */
void quota_share_read(const struct quota_book *b, const char *resource, struct quota_share *out,
		      struct quota_share_sum *sum);
