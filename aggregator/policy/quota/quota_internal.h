/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of quotas: amounts by resource name, and the entries of a book.
 *
 *   quota_view.c        a book from a view, its updates, status.used
 *   quota_book.c        rows, entries, effective mins, pods that come and go
 *   quota_admission.c   claims, comparisons with bounds, the verdict on a pod
 *   quota_share.c       borrowed, lent and fair amounts
 *   balance.c           the same as answers have them; lint.c the findings
 */
#pragma once

#include "aggregator/policy/quota/quota.h"
#include "shared/arith.h"
#include "shared/hash.h"

/* Sums of any number of amounts: 64 bits of headroom. */
typedef __int128 quota_amount;

/* One resource of a quota, or of the sums over all. */
struct quota_row {
	const char *name; /* owned, but those of the standard resources */
	bool in_min, in_max, in_used; /* the key is there */
	quota_amount named; /* min in the object; 0 without the key */
	quota_amount min; /* effective min: less if the cluster has less than all mins together */
	quota_amount max; /* 0 where the key is not */
	quota_amount used;
};

/* The standard resources by their ids, then the others by name. */
struct quota_rows {
	size_t count;
	struct quota_row *of; /* owned */
};

/* The row, or NULL. */
const struct quota_row *quota_rows_find(const struct quota_rows *r, const char *name);
/* The row, made where there was none; valid until the next is made. */
struct quota_row *quota_rows_put(struct quota_rows *r, const char *name);

struct quota_entry {
	struct quota quota; /* what it points to is owned, but `use` */
	struct quota_rows rows;
	bool stale; /* to be made anew (quota_book_update()) */
	UT_hash_handle hh; /* by namespace */
};

struct quota_book {
	struct quota_options options; /* its resources are owned */
	size_t count;
	struct quota_entry **sorted; /* owned with its entries; by namespace */
	struct quota_entry *hash;
	struct quota_rows sum; /* over all quotas, in the sense of the variant; max is not used */
	/* The quota of an unknown namespace; NULL: none. In no sum. */
	struct quota_entry *fallback;
	bool scaled; /* some effective min is less than in the object */
	struct resources capacity; /* owned; empty: not known */
	struct view *view; /* held; NULL: none */
	struct reservations_copy *reservations; /* held; NULL: none */
	/* reservations of the copy that are in `used`, in its order */
	struct quota_counted {
		size_t count;
		const struct reservation **of; /* owned */
	} counted;
};

/* --- quota_view.c */

bool quota_is_older(const struct kube_quota *a, const struct kube_quota *b);
/*
 * The quota that counts, the oldest and then the first by name, of those from *at on that share a
 * namespace; *at moves behind them.
 */
const struct kube_quota *quota_view_next(const struct object_table *t, size_t *at);
/* The index of the first object of the namespace, or where it belongs. */
size_t quota_view_find(const struct object_table *t, const char *namespace);

/* --- quota_book.c */

/* Recomputes effective mins after bounds or the capacity have changed. */
void quota_book_scale(struct quota_book *b);
struct quota_book *quota_book_alloc(const struct quota_options *o);
/* Copies a quota into the book; the namespace must have none. This and dropping do not scale. */
struct quota_entry *quota_book_put(struct quota_book *b, const struct quota *q);
/* False: there is none. */
bool quota_book_drop(struct quota_book *b, const char *namespace);
/* The namespace's entry, the fallback, or NULL. */
const struct quota_entry *quota_book_entry(const struct quota_book *b, const char *namespace);
static inline bool quota_names_row(const struct quota_row *row)
{
	return row && (row->in_min || row->in_max);
}

/* Whether some quota guarantees the resource; `sum` is the row of all quotas. */
static inline bool quota_is_guaranteed(const struct quota_row *sum)
{
	return sum && sum->min > 0;
}

/* --- quota_admission.c */

/* The claims of one resource. */
struct quota_claim {
	const char *name;
	quota_amount asked; /* by the pod itself */
	quota_amount own; /* with nominated pods that count for its quota */
	quota_amount total; /* with nominated pods that count for the sum over all */
	quota_amount floor; /* the bound of the sum over all if the mins are less */
};

enum { QUOTA_CLAIMS_INLINE = 32 };

/* The standard resources by their ids, then the others in the order they came. */
struct quota_claims {
	bool all; /* no pod: usage alone is compared */
	size_t count, room;
	struct quota_claim *of; /* `inlined`, or owned where that was too small */
	struct quota_claim inlined[QUOTA_CLAIMS_INLINE];
};

void quota_claims_fini(struct quota_claims *c);

/* Corrected: it requests guaranteed resources, and is within the min of its quota of each. */
bool quota_claims_within_min(const struct quota_book *b, const struct quota_entry *e,
			     const struct quota_claims *c);
/* Reads the claims of the asking pod, with nominated pods that count before it. */
void quota_claims_read(const struct quota_book *b, const struct quota_entry *e,
		       const struct quota_ask *ask, struct quota_claims *c);

/* The first resource that is over. */
struct quota_excess {
	const char *name;
	quota_amount used, asked, claimed, bound; /* used + claimed > bound */
};

/* e is not read for QUOTA_SUM_OF_MIN. */
bool quota_find_excess(const struct quota_book *b, const struct quota_entry *e,
		       enum quota_bound bound, const struct quota_claims *c,
		       struct quota_excess *out);

/* --- quota_share.c */

/* One part of a total. */
struct quota_slice {
	int64_t weight, give;
	quota_amount rest; /* of total * weight / all weights */
	size_t at; /* index of its owner */
};

/*
 * Divides total in proportion to the weights, of which some are above 0: whole units by the
 * largest remainder, of equal ones the first. Reorders the slices.
 */
void quota_apportion(int64_t total, struct quota_slice *slices, size_t count);
