/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elastic quotas: the guarantee of a namespace (min), the room it may borrow from unused guarantees of
 * others (up to max), and whether a pod may start. Pure: a book of all quotas is made from a view, or
 * from a test's numbers. Adding and subtracting pods changes it and restores it.
 *
 * Two variants of one engine:
 *   upstream   scheduler-plugins' CapacityScheduling, quirk for quirk: a map that lacks cpu, memory or
 *              ephemeral-storage means 0 of it; extended resources are unbounded above and 0 below; one
 *              resource over its sum of mins refuses every pod of every quota
 *   corrected  a resource that max does not name is unbounded, a resource that min does not name has a
 *              min of 0: all other quotas borrow their usage of a guaranteed resource beyond their min.
 *              Without a guarantee of a resource its sum has no bound. A bound holds up only pods that
 *              request the resource
 *
 * quota_admission.c: whether a pod may start; quota_book.c: sums; quota_share.c: borrowed and lent;
 * quota_view.c: the book of a view.
 *
 * Faults of upstream that the corrected variant does not have: packaging/docs/quotas.md; those of its
 * search for victims: preempt.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/resources.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/view.h"
#include "shared/error.h"

enum quota_variant { QUOTA_CORRECTED, QUOTA_UPSTREAM };

const char *quota_variant_name(enum quota_variant v); /* "corrected" */

/* Of system-cluster-critical, the lowest of critical pods. */
#define QUOTA_CRITICAL_PRIORITY 2000000000

struct quota_options {
	enum quota_variant variant;
	/*
	 * Pods of at least this priority are not held up by quotas, and may preempt without one
	 * (QUOTA_CRITICAL_PRIORITY). Corrected only.
	 */
	int32_t critical_priority;
	/* For namespaces without a quota; has_default false: they are in no sum, without bound. */
	bool has_default;
	struct resources default_min, default_max;
};

void quota_options_default(struct quota_options *o);

/* A namespace's quota. */
struct quota {
	const char *namespace, *name; /* name "" for the default quota */
	struct resources min, max; /* as the object has them */
	bool has_min, has_max;
	/* by bound pods, also those in deletion, and by reservations that no view shows yet */
	struct resources used;
	struct resources pending; /* active pods without a node */
	uint32_t used_pods, pending_pods, assumed_pods;
	double weight; /* evenkeel.io/weight, 1: for shares of what others leave */
	int64_t min_runtime_ns; /* evenkeel.io/min-runtime, 0: younger pods are no victims */
	/* evenkeel.io/max-evictions "5/1h": at most 5 victims in 1 h; evictions_ns 0: no bound */
	uint32_t evictions_max;
	int64_t evictions_ns;
	const struct namespace_use *use; /* NULL: not measured */
};

struct quota_book;

/*
 * The quotas of the view (of two in a namespace the oldest counts, then the first by name), with
 * reservations, which may be NULL. Holds both.
 */
struct quota_book *quota_book_new(struct view *v, struct reservations_copy *reservations,
				  const struct quota_options *o);
/*
 * Updates the book to what quota_book_new() would return, at the cost of what changed. Pods added
 * since must be subtracted before. False: the book is unchanged, make a new one. Holds both.
 */
bool quota_book_update(struct quota_book *b, struct view *v,
		       struct reservations_copy *reservations);
void quota_book_free(struct quota_book *b);
/*
 * Sets the allocatable resources of the cluster, which quota_book_new() reads from the view.
 * Corrected: if all mins of a resource exceed the capacity, each min counts as its proportional
 * part of it, except in struct quota. Mins of a resource that is not in the capacity count in
 * full.
 */
void quota_book_set_capacity(struct quota_book *b, const struct resources *capacity);
/*
 * The sum of allocatable over the nodes of a view, without nodes in deletion; `ready`: only of
 * ready and uncordoned nodes. False: the view does not know its nodes.
 */
bool quota_capacity_of(const struct view *v, bool ready, struct resources *out);
/*
 * Iterates over the namespace's pods without a node that do not count as used: *at starts at 0.
 * NULL: no more pods, or the book has no view.
 */
const struct kube_pod *quota_next_pending(const struct quota_book *b, const char *namespace,
					  size_t *at);
/*
 * Sets the resources that a pod with those requests lacks on every node that takes pods and is large
 * enough for it; if there is none, the resources that it lacks on some. Ignores selectors, taints
 * and the number of pods. Sets nothing if a node has room or no node is large enough.
 */
void quota_find_lacked(const struct quota_book *b, const struct resources *requests,
		       struct resources *lacked);
size_t quota_book_count(const struct quota_book *b);
const struct quota *quota_book_at(const struct quota_book *b, size_t i); /* by namespace */
size_t quota_book_index(const struct quota_book *b, const char *namespace); /* count: none */
/* The namespace's quota, or NULL. */
const struct quota *quota_book_find(const struct quota_book *b, const char *namespace);
/*
 * The effective min (quota_book_set_capacity()) and max of the resource: 0 and INT64_MAX if the
 * quota does not govern it, or upstream does not compare it. The namespace has a quota.
 */
void quota_bounds(const struct quota_book *b, const char *namespace, const char *resource,
		  int64_t *min, int64_t *max);
/*
 * Counts a pod in used and used_pods. Subtracting undoes adding exactly, whatever the amounts,
 * since sums are kept in 128 bits and cut at INT64_MAX only in answers; new names stay, with 0.
 * Namespaces without a quota are ignored, or get the default quota. For one thread.
 */
void quota_book_add(struct quota_book *b, const char *namespace, const struct resources *requests);
void quota_book_subtract(struct quota_book *b, const char *namespace,
			 const struct resources *requests);

enum quota_bound { QUOTA_MAX, QUOTA_MIN, QUOTA_SUM_OF_MIN };

/*
 * Whether the namespace's quota, or for QUOTA_SUM_OF_MIN all quotas together, are over the bound
 * with `more`, by the book's variant. Equal is not over. `more` is one pod's requests, or several
 * pods' with the key `pods`, and may be NULL. False for a namespace without a quota. Corrected: with
 * `more` only resources it asks for are compared, without it all that the quota names.
 */
bool quota_is_over(const struct quota_book *b, enum quota_bound bound, const char *namespace,
		   const struct resources *more);

/*
 * Whether the namespace's quota stays within its min with `more`, of all guaranteed resources that
 * it requests; false if it requests none.
 */
bool quota_within_min(const struct quota_book *b, const char *namespace,
		      const struct resources *more);

enum quota_admission {
	QUOTA_ADMITTED,
	QUOTA_NO_QUOTA, /* admitted: the namespace has none */
	QUOTA_CRITICAL, /* admitted: by its priority */
	QUOTA_NEVER, /* it requests more than max by itself: nothing can help */
	QUOTA_OVER_MAX,
	/* all guarantees together are used up */
	QUOTA_OVER_SUM,
};

/* "admitted", "overMax", "overSumMin", .. */
const char *quota_admission_name(enum quota_admission g);

/*
 * A pod with a nominated node: it counts for pods of its namespace with at most its priority, and,
 * if its quota is within its min, for other quotas. The asking pod is skipped by its uid. Reserved
 * pods do not belong here: they are in `used`.
 */
struct quota_nominated {
	const char *uid, *namespace;
	int32_t priority;
	const struct resources *requests;
};

struct quota_ask {
	const char *uid, *namespace;
	int32_t priority;
	const struct resources *requests;
	/* Amounts that the book already counts for this pod, by its reservation; NULL: none. */
	const struct resources *reserved;
	/*
	 * The pod has a nominated node: pods were evicted for it. Corrected: within its min the
	 * sum over all quotas does not hold it up then. If usage already exceeded the sum of all
	 * min, preemption freed only what the pod requests (preempt.h); without this flag the pod
	 * would be refused afterwards.
	 */
	bool promised;
	const struct quota_nominated *nominated; /* all of the cluster */
	size_t nominated_count;
};

/* The deciding resource and its numbers, in its own unit (resources.h). */
struct quota_verdict {
	enum quota_admission reason;
	bool admitted;
	/* the refusing resource, borrowed from the request or the book; NULL: admitted */
	const char *resource;
	int64_t used, asked, nominated,
		bound; /* used + nominated + asked > bound: max of the quota, or the sum of mins */
	struct error error; /* the reason with the numbers, and what would unblock the pod */
};

/*
 * O(resources + nominated pods). Allocates only if the pods request more than 28 extended
 * resources together. Any thread, as long as no thread changes the book. Max comes first, as
 * upstream. Upstream has no QUOTA_NEVER and no QUOTA_CRITICAL.
 */
void quota_admit(const struct quota_book *b, const struct quota_ask *ask, struct quota_verdict *v);

/* --- status.used of the objects */

/*
 * The usage of every quota, in the order of quota_book_at(), by the book's variant:
 *   upstream   pods in phase Running only; containers and init containers, without overhead,
 *              sidecars and the pod's own resources
 *   corrected  what the book counts: pods that are bound to a node and neither Succeeded nor
 *              Failed, with all they request (kube_pod_requests())
 * Has every name in min or max, with 0 if nothing of it is used, and other names that pods request.
 * The book must be made of the view, without reservations. Freed with quota_status_free().
 */
struct resources *quota_status_new(const struct quota_book *b, const struct view *v);
void quota_status_free(const struct quota_book *b, struct resources *status);

/* --- amounts */

/* The pod's request of that resource. Each pod is one of `pods`, where the key is missing. */
int64_t quota_amount_of_pod(const struct resources *requests, const char *name);

struct quota_text {
	char text[32];
};

/*
 * The exact amount: CPU in cores ("4.0", "0.25"), bytes in the largest unit that divides them
 * ("1536Mi"), others as they are.
 */
struct quota_text quota_amount_text(const char *resource, int64_t amount);
