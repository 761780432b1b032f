/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elastic quotas: what a namespace is guaranteed (min), what it may borrow of others' unused
 * guarantees (up to max), and whether a pod may start. Pure: a book of all quotas is made from a
 * view, or from a test's numbers, and can be changed and undone by adding and subtracting pods.
 *
 * Two variants of one engine:
 *   upstream   scheduler-plugins' CapacityScheduling, quirk for quirk: where a map is there but lacks cpu,
 *              memory or ephemeral-storage, that is 0; extended resources are unbounded above and 0 below; one resource over its sum of
 *              mins refuses every pod of every quota
 *   corrected  what max does not name is unbounded, and what min does not name has a min of 0: of a resource that some quota guarantees, all others borrow
 *              what they use beyond their min, named or not. A resource that no quota guarantees has no gate of sums; of the others only pods asking for
 *              them are held up
 *
 * What the corrected variant does where upstream is at fault:
 *   max names only some              `max: {cpu: 2}` does not forbid memory
 *   an amount of 0 is compared, too  only what the pod asks for is compared: one over its max of memory by a resize may still start a pod without memory
 *   one resource over the sum of     the gate is of each resource: a GPU that no min names holds up nobody
 *   mins refuses every pod
 *   quotas with a max only refuse    what nobody guarantees cannot be borrowed, so it has no gate of sums
 *   all pods (sum of mins is 0)
 *   `pods` is accepted and inert     every pod is one of `pods`: a request without that key counts as 1
 *   pods that ran before the quota   used is summed from the pods there are at any moment, as they are now: nothing drifts, nothing is missed, and of two
 *   came, resizes, a deleted second  quotas in a namespace one stays when the other goes
 *   quota
 *   critical pods are refused        quota_options.critical_priority
 * Victims are another file's (preempt.h): per resource, never below min, and what else there is at
 * fault.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_H
#define EVENKEEL_AGGREGATOR_POLICY_QUOTA_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/resources.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/view.h"
#include "shared/error.h"

enum quota_variant { QUOTA_CORRECTED, QUOTA_UPSTREAM };

const char *quota_variant_name(enum quota_variant v); /* "corrected" */

struct quota_options {
	enum quota_variant variant;
	/*
	 * Pods of at least this priority are not held up by quotas, and may preempt without one
	 * (2000000000, system-cluster-critical). Corrected only.
	 */
	int32_t critical_priority;
	/*
	 * What namespaces without a quota get; has_default false: they are in no sum and under no
	 * gate.
	 */
	bool has_default;
	struct resources default_min, default_max;
};

void quota_options_default(struct quota_options *o);

/* One namespace's. */
struct quota {
	const char *namespace, *name; /* name "" for the default quota */
	struct resources min, max; /* as the object has them */
	bool has_min, has_max;
	/* bound pods, those that are being deleted too, and reservations that no view shows yet */
	struct resources used;
	struct resources pending; /* active pods without a node */
	uint32_t used_pods, pending_pods, assumed_pods;
	double weight; /* evenkeel.io/weight, 1: for shares of what others leave */
	int64_t min_runtime_ns; /* evenkeel.io/min-runtime, 0: younger pods are no victims */
	/*
	 * evenkeel.io/max-evictions "5/1h": at most 5 victims in an hour; 0 without evictions_ns:
	 * no bound
	 */
	uint32_t evictions_max;
	int64_t evictions_ns;
	const struct namespace_use *use; /* NULL: not measured */
};

struct quota_book;

/*
 * Quotas of the view (of two in a namespace the oldest counts, then the first by name), with what
 * the reservations add. Copy may be NULL. Both are held.
 */
struct quota_book *quota_book_new(struct view *v, struct reservations_copy *reservations,
				  const struct quota_options *o);
/*
 * Without a view, for tests and what-if: quotas are copied, in any order; of two in a namespace the
 * first counts. What `use` points to is borrowed.
 */
struct quota_book *quota_book_of(const struct quota *quotas, size_t count,
				 const struct quota_options *o);
/*
 * As quota_book_new() of that view and that copy, at the cost of what changed since; the book is as
 * it was made, and what was added since is subtracted. False: nothing is changed, and a new one has
 * to be made. Copies are held.
 */
bool quota_book_update(struct quota_book *b, struct view *v,
		       struct reservations_copy *reservations);
enum quota_variant quota_book_variant(const struct quota_book *b);
void quota_book_free(struct quota_book *b);
/*
 * What the cluster's nodes have allocatable, which quota_book_new() reads from the view. Corrected:
 * of a resource that they have less of than all min together each min counts as its part of that,
 * everywhere but in struct quota, which has what the object says. Of what is not in it every min is
 * taken as it is.
 */
void quota_book_set_capacity(struct quota_book *b, const struct resources *capacity);
/*
 * What the nodes of a view have allocatable, those in deletion left out; `ready`: those only that
 * take pods now. False: the view does not know its nodes.
 */
bool quota_capacity_of(const struct view *v, bool ready, struct resources *out);
/*
 * The namespace's pods without a node that are not counted as used: *at starts at 0. NULL: there
 * are no more, or the book has no view.
 */
const struct kube_pod *quota_next_pending(const struct quota_book *b, const char *namespace,
					  size_t *at);
/*
 * Sets what a pod with those requests lacks on all nodes of the book's view that are large enough
 * for it and take pods; if every node has a part, all that is missing on some. Selectors, taints
 * and the number of pods are not looked at. Nothing is set where a node has room for it, or none is
 * large enough.
 */
void quota_find_lacked(const struct quota_book *b, const struct resources *requests,
		       struct resources *lacked);
size_t quota_book_count(const struct quota_book *b);
const struct quota *quota_book_at(const struct quota_book *b, size_t i); /* by namespace */
/* The namespace's quota, or NULL. */
const struct quota *quota_book_find(const struct quota_book *b, const char *namespace);
/*
 * What-if: another quota comes (false: the namespace has one already), or gets other bounds and
 * keeps what is used (false: there is none).
 */
bool quota_book_insert(struct quota_book *b, const struct quota *q);
bool quota_book_set_bounds(struct quota_book *b, const struct quota *q);
/*
 * What min and max come to for that resource, min as it counts (quota_book_set_capacity()): where a
 * quota does not govern it, or upstream compares no bound of that name, 0 and INT64_MAX. False: no
 * such quota.
 */
bool quota_bounds(const struct quota_book *b, const char *namespace, const char *resource,
		  int64_t *min, int64_t *max);
/*
 * A pod starts or is gone: used and used_pods. One undoes the other exactly, whatever the amounts,
 * as sums are kept in 128 bits and only what is told is cut at INT64_MAX; names that came in stay,
 * with 0. Namespaces without a quota are passed over, or get the default one. For one thread.
 */
void quota_book_add(struct quota_book *b, const char *namespace, const struct resources *requests);
void quota_book_subtract(struct quota_book *b, const char *namespace,
			 const struct resources *requests);

/*
 * Comparisons that preemption needs, by the book's variant: strictly more than the bound, so that
 * equal is not over. `more` is one pod's requests, or several pods' with the key `pods`, and may be
 * NULL; false for a namespace without a quota. Corrected: with `more` only resources it asks for
 * are compared, without it all that the quota names.
 */
bool quota_over_min(const struct quota_book *b, const char *namespace,
		    const struct resources *more);
bool quota_over_max(const struct quota_book *b, const char *namespace,
		    const struct resources *more);
/* Whether all quotas together, and `more` for a pod of that namespace, are over the sum of mins. */
bool quota_over_sum(const struct quota_book *b, const char *namespace,
		    const struct resources *more);

/*
 * Whether the namespace's quota stays within its min with that, of all that somebody is guaranteed
 * and that it asks for; false where that is nothing.
 */
bool quota_within_min(const struct quota_book *b, const char *namespace,
		      const struct resources *more);

enum quota_gate {
	QUOTA_ADMITTED,
	QUOTA_NO_QUOTA, /* admitted: the namespace has none */
	QUOTA_CRITICAL, /* admitted: by its priority */
	QUOTA_NEVER, /* alone it asks for more than max: nothing can help */
	QUOTA_OVER_MAX,
	/* what is guaranteed to all is used up, and here not by others who could give it back */
	QUOTA_OVER_SUM,
};

const char *quota_gate_name(enum quota_gate g); /* "admitted", "overMax", "overSumMin", .. */

/*
 * A pod that has a node nominated: it counts for those of its namespace that are not more
 * important, and if its quota is within its min for others. The one that asks is passed over, by
 * its uid. Reserved pods do not belong here: they are in `used`.
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
	/*
	 * What the book counts for this very pod already, as it was asked about before (its
	 * reservation); NULL: nothing.
	 */
	const struct resources *reserved;
	/*
	 * It has a node nominated: pods were evicted for it. Corrected: within its min the sum over
	 * all does not hold it up then. Those who preempt for it need not bring that sum below the
	 * mins where it was above them before, by quotas that came to a running cluster, or a min
	 * that was lowered: they make up for what it asks for, and no more (preempt.h). Without
	 * this it would be refused when they are gone.
	 */
	bool promised;
	const struct quota_nominated *nominated; /* all there are */
	size_t nominated_count;
};

/* The deciding resource and its numbers, in its own unit (resources.h). */
struct quota_verdict {
	enum quota_gate gate;
	bool admitted;
	/* of the gate that refused, borrowed from the request or the book; NULL: none did */
	const char *resource;
	int64_t used, asked, nominated,
		bound; /* used + nominated + asked > bound: max of the quota, or the sum of mins */
	struct error error; /* one sentence with the numbers, and what would unblock it */
};

/*
 * O(resources) and a look at each nominated pod; no allocation, unless more than 28 extended
 * resources are asked for in all. Any thread, as long as nobody changes the book. In the order of
 * upstream: max first. Upstream knows no QUOTA_NEVER, and no QUOTA_CRITICAL.
 */
void quota_admit(const struct quota_book *b, const struct quota_ask *ask, struct quota_verdict *v);

#endif
