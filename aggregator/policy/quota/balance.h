/* SPDX-License-Identifier: Apache-2.0 */
/* Who has how much of whose: what each quota uses beyond its min, what others use of it, and how that is called. Pure. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_QUOTA_BALANCE_H
#define EVENKEEL_AGGREGATOR_POLICY_QUOTA_BALANCE_H

#include "aggregator/policy/quota/quota.h"

/* Over all quotas of a book, of the resources that each names. */
struct quota_totals {
	struct resources min, used, pending;
	struct resources borrowed; /* used beyond min */
	struct resources unused; /* min that is not used: what there is to lend */
};

void quota_totals_of(const struct quota_book *b, struct quota_totals *t);
void quota_totals_fini(struct quota_totals *t);

struct quota_balance {
	struct resources borrowed; /* used beyond min */
	/* Of what is unused of min, the part that others have: all that is borrowed comes from all that is unused, evenly (rounded down). */
	struct resources lent;
};

void quota_balance_of(const struct quota *q, const struct quota_totals *t, struct quota_balance *b);
void quota_balance_fini(struct quota_balance *b);

/* How a quota is doing in one resource; the first that holds. */
enum quota_state {
	QUOTA_STATE_OVER_MAX, /* max was lowered, or pods grew: nothing more starts */
	QUOTA_STATE_STARVED, /* pods wait for what is guaranteed and not used */
	QUOTA_STATE_WAITING, /* pods wait for more than is guaranteed */
	QUOTA_STATE_BORROWING, /* more than min is used: it can be taken back */
	QUOTA_STATE_LENDING, /* others use what it does not */
	QUOTA_STATE_UNUSED, /* nothing of min is used */
	QUOTA_STATE_WITHIN, /* up to min, or min is not named */
	QUOTA_STATES
};

const char *quota_state_name(enum quota_state s); /* "overMax" */
/* Whether the quota says anything of the resource. */
bool quota_names(const struct quota *q, const char *resource);
enum quota_state quota_state_of(const struct quota *q, const struct quota_balance *b,
				const char *resource);
/* The same in a sentence with the numbers. */
void quota_state_tell(const struct quota *q, const struct quota_balance *b, const char *resource,
		      struct reason *why);

#endif
