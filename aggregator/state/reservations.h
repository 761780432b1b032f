/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations for pods that no view shows on a node yet. Between an extender's answer and the watch event
 * that tells where the pod went, other pods are asked about; without this they would all be sent to
 * the same node, and past the same quota.
 *
 *     filter            prioritize        the API's event        a view that has it is published
 *    ---------> ASKED ------------> CHARGED ------------> BOUND ------------------------------> gone
 *   quota only       the node it ranks first     the node it got
 *
 * A pod that is deleted, found unschedulable, or not bound within the TTL is gone at once.
 *
 * A claim is a reservation for a pod whose victims are being evicted: it is charged to the node of
 * the room. A scheduler that gives the pod up, or charges it elsewhere and then gives it up, does not
 * end it: the reservation goes back to that node. It ends when the pod is bound or gone, or
 * RESERVATIONS_CLAIM_NS after it was claimed last.
 *
 * Any thread may change reservations. Their mutex is held for work on one pod and copies of pointers,
 * never across I/O or a policy's call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/resources.h"
#include "shared/error.h"

#define RESERVATIONS_TTL_NS   (30 * 1000000000LL)
#define RESERVATIONS_CLAIM_NS (45 * 1000000000LL)

/*
 * Bounds of what outsiders can make it hold: pods, bytes of each text, resources beside the
 * standard ones. So many pods are 300 new ones a second for as long as each may stay; each question
 * that follows a change copies a pointer for each.
 */
enum { RESERVATIONS_PODS_MAX = 10000, RESERVATIONS_TEXT_MAX = 253, RESERVATIONS_EXTENDED_MAX = 64 };

enum reservations_state {
	RESERVATIONS_ASKED,
	RESERVATIONS_CHARGED,
	RESERVATIONS_BOUND,
	RESERVATIONS_STATES
};

/* "asked", "charged", "bound" */
const char *reservations_state_name(enum reservations_state state);

/* A reservation. Immutable where readers see it. */
struct reservation {
	const char *uid, *namespace, *name;
	const char *node; /* "" until it is charged to one */
	struct resources requests; /* as the kube-scheduler sums them */
	/* Expected use of the pod (expected_use.h in policy). */
	int64_t expected_cpu_milli, expected_high_cpu_milli, expected_mem_bytes;
	int32_t priority;
	enum reservations_state state;
	int64_t made_ns, expires_ns; /* Unix time; one that is bound does not expire */
	int64_t changed_ns; /* Unix time of the last answer about the pod */
	const char *claim; /* the node of the claimed room; "": it is no claim */
	int64_t claim_ns; /* Unix time of its end */
	/*
	 * Of the first cluster (model.h) that has the pod on its node; 0: none, when this was
	 * written. Ask reservations_counts().
	 */
	uint64_t generation;
};

struct reservations;
struct reservations *reservations_new(void);
void reservations_free(struct reservations *set);

/* --- by threads that answer schedulers */

/*
 * Reserves for the pod, in place of what was reserved for its uid before (one that is bound stays
 * as it is). Strings and requests are copied; `node` may be "", else it is charged to that at once.
 * -EALREADY for a pod that is remembered to have a node: the view has it, or will. Of the entry,
 * state, times, generation and claim are not read. -EINVAL without a uid, since nobody could release it,
 * and for what is above the bounds. -ENOSPC above RESERVATIONS_PODS_MAX.
 */
int reservations_reserve(struct reservations *set, const struct reservation *entry, int64_t now_ns);
struct reservations_copy;
/*
 * As reservations_reserve(), for a decision that was made by that copy. -EAGAIN: more was reserved for
 * other pods since then; take another copy, and decide again.
 */
int reservations_reserve_seen(struct reservations *set, const struct reservation *entry,
			      const struct reservations_copy *seen, int64_t now_ns);
/*
 * Claims the room of the entry's node for its pod, or lets a claim live as long anew. Errors as
 * reservations_reserve_seen() (seen NULL: no -EAGAIN); -EALREADY also for a pod that is bound.
 */
int reservations_claim(struct reservations *set, const struct reservation *entry,
		       const struct reservations_copy *seen, int64_t now_ns);
/*
 * Charges what is reserved to that node, and lets it live as long anew. -ENOENT: nothing is, or the
 * pod is bound.
 */
int reservations_charge(struct reservations *set, const char *uid, const char *node,
			int64_t now_ns);

/* --- by the loop thread, at events of the API */

/*
 * All pods that have a node are remembered by their uids, until they are gone. A question about one
 * of them comes late (a scheduler that did not learn of its own success): to reserve for it would
 * count it twice until the TTL. True: the pod was not remembered before.
 */
bool reservations_remember(struct reservations *set, const char *uid);
void reservations_forget(struct reservations *set, const char *uid);
/* Any thread. */
bool reservations_remembers(struct reservations *set, const char *uid);
/*
 * The pod is on that node in clusters from this generation on. What was not reserved is not
 * charged.
 */
void reservations_bind(struct reservations *set, const char *uid, const char *node,
		       uint64_t generation);
void reservations_release(struct reservations *set, const char *uid); /* deleted, or ended */
/*
 * The scheduler was seen to give the pod up, or is told that no node may have it. No times are
 * compared: a round takes milliseconds, the API tells whole seconds, and they are of another
 * machine's clock. Any thread.
 */
void reservations_unschedulable(struct reservations *set, const char *uid);
/*
 * A view of this cluster is published (0: standalone): what it shows is not reserved any more. Expired
 * reservations are removed, too.
 */
void reservations_settle(struct reservations *set, uint64_t generation, int64_t now_ns);

/* --- with another aggregator that answers the same schedulers */

/*
 * The reservation of the pod, also if it is bound; NULL: none. Held: the caller gives it back
 * by reservation_drop(), which takes NULL.
 */
const struct reservation *reservations_hold(struct reservations *set, const char *uid);
void reservation_drop(const struct reservation *e);
/*
 * Takes over what the other one reserved, in place of what was reserved here, unless that is newer
 * by more than RESERVATIONS_ORDER_NS (changed_ns), or the pod is bound or has a node. Of the entry,
 * state, made_ns and generation are not read. -EINVAL and -ENOSPC as reservations_reserve().
 */
#define RESERVATIONS_ORDER_NS 1000000000LL
int reservations_adopt(struct reservations *set, const struct reservation *entry, int64_t now_ns);
/* The other one reserves nothing for the pod as of that time. Keeps what reservations_adopt() keeps. */
void reservations_disown(struct reservations *set, const char *uid, int64_t changed_ns);

/*
 * The way to the other one: tells it what is reserved for a pod by now, and waits for its
 * acknowledgement within a bound. Not on the loop's thread.
 */
struct reservations_peer {
	void (*tell)(struct reservations_peer *p, const char *uid);
};
/* Before other threads know the reservations; borrowed. */
void reservations_set_peer(struct reservations *set, struct reservations_peer *peer);
/* Between a change that a scheduler caused and its answer. set NULL, or no peer: nothing. */
void reservations_tell(struct reservations *set, const char *uid);

/* --- by readers, any thread */

/*
 * What is reserved now, without what has expired: immutable, held by whoever took it, the same for
 * all until something changes. Take it BEFORE the view it is added to: then nothing falls between
 * the two, and reservations_counts() keeps from counting twice what both have, also what was bound after
 * the copy was taken. NULL of NULL.
 */
struct reservations_copy {
	size_t count;
	const struct reservation *const *of; /* sorted by namespace, then name, then uid */
	uint64_t version; /* grows with each reservation that asks for something new */
};

struct reservations_copy *reservations_take(struct reservations *set, int64_t now_ns);
struct reservations_copy *reservations_copy_hold(struct reservations_copy *c);
void reservations_copy_drop(struct reservations_copy *c); /* NULL is allowed */
/*
 * The first of that name whose uid is `uid` ("": any) and that counts for that generation, or NULL.
 */
const struct reservation *reservations_copy_find(const struct reservations_copy *c,
						 const char *namespace, const char *name,
						 const char *uid, uint64_t generation);
/* By namespace, name and uid: the order of a copy. */
int reservations_compare(const struct reservation *a, const struct reservation *b);
/* Whether the entry is to be added to a view of the cluster of that generation (0: standalone). */
bool reservations_counts(const struct reservation *e, uint64_t generation);
/* Whether it is a claim that has not ended. */
static inline bool reservation_is_claim(const struct reservation *e, int64_t now_ns)
{
	return *e->claim && e->claim_ns > now_ns && e->state != RESERVATIONS_BOUND;
}

/*
 * How many reservations were made, and how they went; since start. Every one that was made is
 * there, or went by one of four ways.
 */
struct reservations_counters {
	uint64_t reserved, released, unschedulable, expired;
	uint64_t settled; /* gone since a view shows the pod */
	uint64_t charged, bound;
	uint64_t moved; /* bound to another node than they were charged to */
	uint64_t refused; /* not made: there were too many */
	uint64_t claimed; /* claims, each time one was made or renewed */
	uint64_t entries[RESERVATIONS_STATES]; /* that are there now */
};

void reservations_read_counters(struct reservations *set, struct reservations_counters *out);
