/* SPDX-License-Identifier: Apache-2.0 */
/* The balance of each quota: what it borrows, what others use of its min, its state. Pure. */
#pragma once

#include "aggregator/policy/quota/quota_share.h"

/* More resources than these are left out of answers: each is computed for every quota. */
enum { QUOTA_BALANCES_MAX = 256 };

/* One resource over all quotas of a book. */
struct quota_balance_row {
	const char *resource; /* borrowed from the book */
	struct quota_share_sum sum;
	struct quota_share *of; /* owned; in the order of quota_book_at() */
};

/* All named resources. */
struct quota_balances {
	size_t count;
	struct quota_balance_row *of; /* owned */
	struct resources pending; /* over all quotas, of the resources that each names */
};

void quota_balances_of(const struct quota_book *b, struct quota_balances *out);
void quota_balances_fini(struct quota_balances *b);

/* One quota's part of its resources (struct quota_share). */
struct quota_balance {
	struct resources guaranteed; /* min as it counts */
	struct resources borrowed, lent, fair;
	/*
	 * Requests of pending pods, each judged by itself. A pod over max is in held alone.
	 *   held     what its own quota's max refuses
	 *   starved  what it lacks although all its requests are guaranteed: with it all quotas
	 *            exceed the sum of min, or no node has room for it
	 *   waiting  what brings its quota over min
	 */
	struct resources held, starved, waiting;
	struct resources told; /* the names that answers have: of min, of max, and of guaranteed */
};

void quota_balance_of(const struct quota_book *b, size_t i, const struct quota_balances *all,
		      struct quota_balance *out);
void quota_balance_fini(struct quota_balance *b);

/* The state of a quota in one resource: the first that applies. */
enum quota_state {
	QUOTA_STATE_OVER_MAX, /* max was lowered, or pods grew: nothing more starts */
	QUOTA_STATE_STARVED, /* pods wait for guaranteed resources that others use */
	QUOTA_STATE_AT_MAX, /* pods wait for other pods of the quota to end */
	QUOTA_STATE_WAITING, /* pods wait for more than is guaranteed */
	QUOTA_STATE_BORROWING, /* more than min is used: it can be taken back */
	QUOTA_STATE_LENDING, /* others use its unused min */
	QUOTA_STATE_UNUSED, /* nothing of min is used */
	QUOTA_STATE_WITHIN, /* up to min, or min is not named */
	QUOTA_STATES
};

const char *quota_state_name(enum quota_state s); /* "overMax" */
/* Whether min or max name the resource. */
bool quota_names(const struct quota *q, const char *resource);
enum quota_state quota_state_of(const struct quota *q, const struct quota_balance *b,
				const char *resource);
/* The state with the numbers. */
void quota_state_tell(const struct quota *q, const struct quota_balance *b, const char *resource,
		      struct error *error);
