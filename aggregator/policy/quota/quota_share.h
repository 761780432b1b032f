/* SPDX-License-Identifier: Apache-2.0 */
/* Who borrows of whom, and how much of what is left unused each could have. Pure. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_SHARE_H
#define EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_SHARE_H

#include "aggregator/policy/quota/quota.h"

/* One that wants of what there is. */
struct quota_claimant {
	double weight; /* 0.001 to 1000000, in thousandths; 0 or less: gets nothing */
	int64_t need; /* the most it takes; at least 0 */
	int64_t share; /* out: what it gets */
};

/*
 * Shares `total` by weight, and nobody gets more than it needs: what one does not need is shared
 * among the others, until all is given or nobody needs more. Whole units by the largest remainder,
 * of equal ones the first: the sum is exact. Returns what is left.
 */
int64_t quota_share_out(int64_t total, struct quota_claimant *claimants, size_t count);

/* One quota's part in a resource. In its own unit. */
struct quota_share {
	/*
	 * guaranteed in fact: the quota's min, scaled down where the cluster has less than all mins
	 * together
	 */
	int64_t min;
	int64_t used, wanted; /* by bound pods; and by pending ones, too, but at most max */
	int64_t borrowed; /* used over min */
	int64_t lent; /* of its unused min, what others borrow */
	/*
	 * What it could use if all took as much as they want: up to min what it wants, and of what
	 * others leave of their min its share by evenkeel.io/weight. A quota that uses more than
	 * this has what others are waiting for.
	 */
	int64_t fair;
};

struct quota_share_sum {
	int64_t min; /* as the quotas say */
	int64_t guaranteed; /* in fact: min, or the capacity */
	int64_t used, borrowed, lent;
	int64_t unused; /* of min, by those who do not use theirs, lent or not */
	/* where the quotas promise more than there is, a sentence with the numbers; else "" */
	struct error alarm;
};

/*
 * Of one resource, for every quota of the book: out has quota_book_count() places, in the order of
 * quota_book_at(). Quotas that do not govern it have zeros.
 */
void quota_share_read(const struct quota_book *b, const char *resource, struct quota_share *out,
		      struct quota_share_sum *sum);

#endif
