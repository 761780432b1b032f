/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: the inputs of one answer about quotas, namely a view, the reservations and the quota
 * book of both; and the inputs of a search for victims.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/api/request_body.h"
#include "aggregator/api/route.h"
#include "aggregator/policy/quota/balance.h"
#include "aggregator/policy/quota/preempt.h"
#include "aggregator/policy/quota/quota.h"
#include "shared/jsonw.h"

/*
 * --- quota books that requests share
 *
 * Building a book of a thousand quotas takes milliseconds, an update only what changed. A book
 * belongs to one thread at a time, so a few are kept, and each is taken and given back as a whole.
 */

enum { QUOTA_BOOK_CACHE_MAX = 2 };

struct quota_book_cache;
struct quota_book_cache *quota_book_cache_new(const struct quota_options *o); /* borrowed */
void quota_book_cache_free(struct quota_book_cache *s); /* NULL is allowed; all are given back */
/* Frees books that are idle for ten seconds: each holds its view. NULL is allowed. */
void quota_book_cache_tidy(struct quota_book_cache *s, int64_t now_ns);

/* --- the session */

struct quota_session {
	struct quota_options options; /* the context's, with the variant of the request; borrowed */
	struct reservations_copy *reservations; /* held; NULL: nothing is reserved */
	int64_t now_ns;
	struct view *view; /* held */
	struct quota_book_cache *cache; /* that the book is given back to; borrowed */
	struct quota_book *book; /* the session's alone */
	size_t nominated_count;
	struct quota_nominated *nominated; /* owned; borrows from the view */
};

/* Of a view and a copy of the reservations, or NULL. Holds both. */
void quota_session_of(struct quota_session *s, const struct api_context *ctx,
		      struct reservations_copy *reservations, struct view *v);
/*
 * variant: a checked name; NULL or "": the context's. False: *rs says that no Kubernetes API is known
 * (503). Never false without rs.
 */
bool quota_session_open(struct quota_session *s, const struct api_context *ctx, const char *variant,
			struct api_response *rs);
/*
 * The same with the body of a POST {"pod":POD[,"variant"], ..}, whose members are in the list. False:
 * *rs says what is wrong; nothing is to be closed.
 */
bool quota_session_read(struct quota_session *s, struct pod_body *body,
			const struct api_context *ctx, const struct api_request *rq,
			const struct api_field *members, struct api_response *rs);
void quota_session_close(struct quota_session *s);

/* Why elasticquotas are not known (or incomplete), as one sentence; "" if they are. */
void quota_session_gap(const struct quota_session *s, struct error *error);
/* "variant", and key: that sentence. */
void quota_session_write_head(const struct quota_session *s, struct jsonw *w, const char *key);
/* Whether nodes and pods are known. False: *rs says which are not (503). */
bool quota_session_knows_pods(const struct quota_session *s, struct api_response *rs);
/*
 * The admission question of the pod. What is counted of it already, by a reservation or because it
 * is `bound` (the same pod on its node, or NULL), is not counted twice. Borrows from all three.
 */
struct quota_ask quota_session_ask(const struct quota_session *s, const struct kube_pod *pod,
				   const struct kube_pod *bound);
/* The reservation that the book counts for the pod, or NULL. */
const struct reservation *quota_session_find_reserved(const struct quota_session *s,
						      const struct kube_pod *pod);
/* The pod on its node in the view, by name, and by uid if it has one; NULL: on none. */
const struct kube_pod *quota_session_find_bound(const struct quota_session *s,
						const struct kube_pod *pod);

/* --- a search for victims */

struct quota_search {
	const struct api_context *ctx; /* borrowed, as is */
	struct place_cache *cache;
	struct place *place; /* taken from the cache; what is reserved on nodes is there */
	place_mark mark; /* before that */
	size_t unseen; /* pods on nodes that the view does not show yet: nobody's victims */
	const struct preempt *index; /* kept with the view */
	struct preempt_options options;
	/* in_flight and exchanged are owned; allowed is the caller's to set */
	struct preempt_ask ask;
	struct victim_past *past; /* owned */
	uint64_t version; /* of the log, when it was read */
};

/* The search alone uses the session's book until it is closed: it changes it, and changes it back. */
void quota_search_open(struct quota_search *q, const struct api_context *ctx,
		       struct place_cache *cache, const struct quota_session *s,
		       const struct kube_pod *pod, bool never);
void quota_search_close(struct quota_search *q);
/*
 * Notes the victims as told for that preemptor; does nothing without a log or victims. 0, or the error
 * of victim_log_put(): -EAGAIN if others were told since the search began.
 */
int quota_search_log(const struct quota_search *q, const char *preemptor,
		     const struct preempt_candidate *c);

/*
 * The first pod, by priority and name, that is unschedulable although its quota is within its min,
 * and that is not told yet. The text says which pods could give way, or that the pod waits for pods
 * without a quota; it stays empty if there is neither. NULL: no such pod. The caller drops the pod.
 * Costs a search for victims.
 */
struct kube_pod *quota_reclaim_next(const struct api_context *ctx,
				    bool (*is_told)(const void *who, const struct kube_pod *pod),
				    const void *who, struct buf *text);
