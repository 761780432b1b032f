/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that filter refused on every node and that wait since then: when one would pass, the
 * scheduler is to be made to ask again, and people are told why it waits. They are also told of
 * every pending pod to which others could give way.
 */
#pragma once

#include <stdbool.h>

#include "aggregator/api/extender_call.h"
#include "aggregator/state/counters.h"

/* Of more pods those are forgotten that were reviewed the longest ago: a nudge is for all. */
enum { WAITING_PODS_MAX = 4096, WAITING_DETAIL_MAX = 512 };

struct waiting_pods;
/* events NULL: waiting_pods_take_event() will not be called. Both are borrowed. */
struct waiting_pods *waiting_pods_new(struct requeue_counters *counters,
				      struct event_counters *events);
void waiting_pods_free(struct waiting_pods *w); /* NULL is allowed, as in all below */

/* --- by threads that answer schedulers */

/* filter refused the pod of the call, which may be reserved; most nodes for that reason. */
void waiting_pods_refused(struct waiting_pods *w, const struct extender_call *c,
			  enum extender_refusal why, const char *detail);
/* filter let it pass. */
void waiting_pods_passed(struct waiting_pods *w, const char *uid);
/*
 * preempt found no victims for it on these nodes, which it takes over. retry_ns: the next end of a
 * minimum runtime or a window of evictions, 0: none holds victims back.
 */
void waiting_pods_sought(struct waiting_pods *w, const char *uid, struct extender_nodes *nodes,
			 int64_t retry_ns, int64_t now_ns);

/*
 * Whether an answer to preempt may wait for news of the API now: the scheduler schedules nothing
 * meanwhile, so on average once in four seconds, and at most ten times at once.
 */
bool waiting_pods_may_linger(struct waiting_pods *w, int64_t now_ns);

/* --- by who makes the scheduler ask again, about once a second */

/*
 * Forgets the pods that are bound or gone, and decides again about some of the others, in turn, for
 * at most a few hundredths of a second. True: one would pass, or find victims now. About the same
 * pod it is true again some seconds later, and then ever more seldom, until it is refused anew. The
 * first review with a complete cluster is true as well: pods refused before the start are unknown.
 */
bool waiting_pods_review(struct waiting_pods *w, const struct api_context *ctx);

/* The nudge that the last review asked for failed: its pod is due at once. */
void waiting_pods_not_sent(struct waiting_pods *w);

/* An Event about a pod. */
struct waiting_event {
	struct kube_pod *pod; /* held */
	char message[WAITING_DETAIL_MAX];
};

/*
 * The oldest that was not taken; the caller drops the pod. At most one for each pod and reason in
 * five minutes.
 */
bool waiting_pods_take_event(struct waiting_pods *w, struct waiting_event *event);
