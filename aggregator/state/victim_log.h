/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which victims a scheduler was told of, for which pod. It asks again for the same pod as long as
 * that is pending, sees the victims go only some time after we do, and may never have got the first
 * answer; so what was answered is kept.
 *
 * What is told is sure: one node's victims, so that the scheduler has no choice. They count as
 * evicted from then on, though some may never be: who was told of twice is counted once, and nobody
 * is taken beyond evenkeel.io/max-evictions because an answer was late. It is in memory only: after
 * a restart past evictions are forgotten, and every window begins anew.
 *
 * Any thread; one mutex, held for copies only. Everything has a bound: the oldest preemptors go
 * first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VICTIM_LOG_PREEMPTORS_MAX = 4096,
	VICTIM_LOG_VICTIMS_MAX = 4096, /* of one preemptor */
	VICTIM_LOG_PAST_MAX = 65536,
};

/*
 * After that a preemptor is as if it had never asked. A kube-scheduler tries a pod again after 300
 * to 330 s at the latest, and what it is told again is renewed then.
 */
#define VICTIM_LOG_TTL_NS (600 * 1000000000LL)
/* So long a victim that was told counts as going, although nobody sees it go yet. */
#define VICTIM_LOG_FLIGHT_NS (10 * 1000000000LL)

struct victim {
	const char *uid, *namespace, *node;
};

/* Copies, in one block each that the caller frees with free(). */
struct victim_answer {
	int64_t told_ns, renewed_ns; /* renewed_ns: the last victim_log_renew(), else told_ns */
	size_t count;
	struct victim *of; /* in the order they were told */
};

struct victim_past {
	int64_t at_ns;
	const char *namespace;
};

struct victim_log;
struct victim_log *victim_log_new(void);
void victim_log_free(struct victim_log *l); /* NULL is allowed */

/*
 * Grows whenever victims are told. To be read before what is told is looked up, and given to
 * victim_log_put().
 */
uint64_t victim_log_version(struct victim_log *l);
/*
 * These are told for the pod with that uid, in place of what was before, and are taken for evicted.
 * -EAGAIN: others were told since the version, and might have been the same; nothing is kept, and
 * must not be told. -EINVAL: there are too many, or no uid, and nothing is kept.
 */
int victim_log_put(struct victim_log *l, const char *preemptor, const struct victim *of,
		   size_t count, uint64_t version, int64_t now_ns);
/* False: nothing was, or too long ago. */
bool victim_log_find(struct victim_log *l, const char *preemptor, int64_t now_ns,
		     struct victim_answer *out);
/* Keeps what was told, if anything was, for VICTIM_LOG_TTL_NS from now: a victim is in deletion. */
void victim_log_renew(struct victim_log *l, const char *preemptor, int64_t now_ns);
/*
 * Victims told since then (VICTIM_LOG_FLIGHT_NS ago: in flight; 0: all that are kept), for other
 * preemptors than that one (NULL: any). Uids, in one block to free.
 */
size_t victim_log_told(struct victim_log *l, const char *besides, int64_t since_ns, int64_t now_ns,
		       const char *const **out);
/* All evictions known since then, oldest first, in one block to free. */
size_t victim_log_past(struct victim_log *l, int64_t since_ns, struct victim_past **out);
