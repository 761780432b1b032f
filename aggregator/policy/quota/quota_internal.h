/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of quotas share: amounts by resource name, and how a book keeps them. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_INTERNAL_H
#define EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_INTERNAL_H

#include "aggregator/policy/quota/quota.h"
#include "shared/mem.h"

#define uthash_malloc(size) mem_alloc(size)
#include <uthash.h>

/* Sums of any number of amounts: 64 bits of headroom. */
typedef __int128 quota_amount;

/* One resource of a quota, or of the sums over all. */
struct quota_row {
	const char *name; /* owned, but those of the standard resources */
	bool in_min, in_max, in_used; /* the key is there */
	quota_amount named; /* min as the object says it; 0 where the key is not */
	quota_amount min; /* and as it counts: less, where the cluster has less than all of them */
	quota_amount max; /* 0 where the key is not */
	quota_amount used;
};

/* The standard resources by their ids, then the others by name. */
struct quota_rows {
	size_t count;
	struct quota_row *of; /* owned */
};

void quota_rows_init(struct quota_rows *r);
void quota_rows_fini(struct quota_rows *r);
/* The row, or NULL. */
const struct quota_row *quota_rows_find(const struct quota_rows *r, const char *name);
/* The row, made where there was none; valid until the next is made. */
struct quota_row *quota_rows_put(struct quota_rows *r, const char *name);
int64_t quota_clamp(quota_amount a);

struct quota_entry {
	struct quota quota; /* what it points to is owned, but `use` */
	struct quota_rows rows;
	UT_hash_handle hh; /* by namespace */
};

struct quota_book {
	struct quota_options options; /* its resources are owned */
	size_t count, room;
	struct quota_entry **sorted; /* owned with its entries; by namespace */
	struct quota_entry *hash;
	struct quota_rows sum; /* over all quotas, in the sense of the variant; max is not used */
	/* What a namespace nobody has heard of gets; NULL: nothing. In no sum. */
	struct quota_entry *fallback;
	bool scaled; /* some min counts for less than it says */
	struct resources capacity; /* owned; empty: not known */
	struct view *view; /* held; NULL: none */
	struct reservations_copy *reservations; /* held; NULL: none */
	size_t counted_count;
	/* owned; of the copy: those that are in `used`, in its order */
	const struct reservation **counted;
};

/* --- quota_scale.c */

/* One that gets a part of something. */
struct quota_slice {
	int64_t weight, give;
	quota_amount rest; /* of total * weight / all weights */
	size_t at; /* whose it is */
};

/*
 * total in proportion to the weights, of which some are above 0: whole units by the largest
 * remainder, of equal ones the first. The slices come out in another order.
 */
void quota_apportion(int64_t total, struct quota_slice *slices, size_t count);
/* After bounds or the capacity have changed. */
void quota_book_scale(struct quota_book *b);

/* --- quota_view.c */

struct quota_counted {
	size_t count;
	const struct reservation **of; /* owned; NULL where there is no copy */
};

/* Those of the copy that a view of that generation does not show. */
struct quota_counted quota_view_counted(const struct reservations_copy *c, uint64_t generation);
/* The pod of a reservation, if the view has it, without a node; else NULL. */
const struct kube_pod *quota_view_pending(const struct view *v, const struct reservation *r);
/* What the nodes of the book's view have. */
void quota_view_read_capacity(struct quota_book *b);
/*
 * The namespace's entry again from the book's view and what is counted of the reservations; it has
 * a quota. To be scaled when all are renewed.
 */
void quota_view_renew(struct quota_book *b, const char *namespace);

/* --- quota_book.c */

struct quota_book *quota_book_alloc(const struct quota_options *o);
/* Copies it into the book; the namespace must not have one. */
/* Neither this nor taking it out scales anything. */
struct quota_entry *quota_book_put(struct quota_book *b, const struct quota *q);
/* False: there is none. */
bool quota_book_drop(struct quota_book *b, const char *namespace);
/* The namespace's entry, the fallback, or NULL. */
const struct quota_entry *quota_book_entry(const struct quota_book *b, const char *namespace);
/* Corrected: the quota says something about the resource. */
static inline bool quota_names_row(const struct quota_row *row)
{
	return row && (row->in_min || row->in_max);
}

/* Some quota guarantees some of it. */
static inline bool quota_is_guaranteed(const struct quota_row *sum)
{
	return sum && sum->min > 0;
}

/* What is compared of one resource. */
struct quota_claim {
	const char *name;
	quota_amount asked; /* by the pod itself */
	quota_amount own; /* and by those nominated that count for its quota */
	quota_amount total; /* and by those that count for the sum over all */
	quota_amount floor; /* the sum over all may be as much, though the mins come to less */
};

enum { QUOTA_CLAIMS_INLINE = 32 };

/* The standard resources by their ids, then the others in the order they came. */
struct quota_claims {
	bool all; /* nothing is asked: what is used is compared alone */
	size_t count, room;
	struct quota_claim *of; /* `inlined`, or owned where that was too small */
	struct quota_claim inlined[QUOTA_CLAIMS_INLINE];
};

enum quota_part { QUOTA_ASKED, QUOTA_OWN, QUOTA_TOTAL }; /* each counts for those before it, too */

/* more NULL: nothing is asked. Upstream does not count pods. */
void quota_claims_init(struct quota_claims *c, enum quota_variant v, const struct resources *more);
void quota_claims_fini(struct quota_claims *c);
/* What another pod claims; sign -1 takes it away. */
void quota_claims_add(struct quota_claims *c, enum quota_variant v, enum quota_part part, int sign,
		      const struct resources *r);

/*
 * Corrected: all that it asks for of what anybody is guaranteed stays within its quota's min; and
 * there is such a thing.
 */
bool quota_is_owed(const struct quota_book *b, const struct quota_entry *e,
		   const struct quota_claims *c);
/* What the asking pod claims, with the nominated pods that count before it. */
void quota_claims_read(const struct quota_book *b, const struct quota_entry *e,
		       const struct quota_ask *ask, struct quota_claims *c);

/* The first resource that is over. */
struct quota_excess {
	const char *name;
	quota_amount used, asked, claimed, bound; /* used + claimed > bound */
};

bool quota_excess_of_max(enum quota_variant v, const struct quota_entry *e,
			 const struct quota_claims *c, struct quota_excess *out);
bool quota_excess_of_min(const struct quota_book *b, const struct quota_entry *e,
			 const struct quota_claims *c, struct quota_excess *out);
bool quota_excess_of_sum(const struct quota_book *b, const struct quota_claims *c,
			 struct quota_excess *out);

#endif
