/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of every answer about quotas: a view, the reservations, and the book of both; and what
 * a search for victims needs beside that.
 */
#ifndef EVENKEEL_AGGREGATOR_API_QUOTA_SCENE_H
#define EVENKEEL_AGGREGATOR_API_QUOTA_SCENE_H

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/api/request_body.h"
#include "aggregator/api/route.h"
#include "aggregator/policy/quota/balance.h"
#include "aggregator/policy/quota/preempt.h"
#include "aggregator/policy/quota/quota.h"
#include "shared/jsonw.h"

/*
 * --- books of quotas that requests share
 *
 * To make one of a thousand quotas takes milliseconds, to bring one up to date only what changed;
 * and one that is asked and changed belongs to one thread. So there are a few, each taken whole and
 * given back.
 */

enum { QUOTA_SHELF_MAX = 2 };

struct quota_shelf;
struct quota_shelf *quota_shelf_new(const struct quota_options *o); /* borrowed */
void quota_shelf_free(struct quota_shelf *s); /* NULL is allowed; all are given back */
/*
 * Lets go of those that nobody took for ten seconds: each holds the view it was brought up to. NULL
 * is allowed.
 */
void quota_shelf_tidy(struct quota_shelf *s, int64_t now_ns);

/* --- the scene */

struct quota_scene {
	struct quota_options options; /* the context's, with the variant of the request; borrowed */
	struct reservations_copy *reservations; /* NULL: nothing is reserved */
	bool owns_reservations;
	int64_t now_ns;
	struct view *view; /* held */
	struct quota_shelf *shelf; /* that the book is given back to; borrowed */
	struct quota_book *book; /* the scene's alone */
	size_t nominated_count;
	struct quota_nominated *nominated; /* owned; borrows from the view */
};

/*
 * Of a view and a copy of the reservations that are there already, and outlive the scene; the copy
 * may be NULL.
 */
void quota_scene_of(struct quota_scene *s, const struct api_context *ctx,
		    struct reservations_copy *reservations, struct view *v);
/*
 * variant: a name, or NULL for the context's. False: *rs says that there is no such variant (400),
 * or no Kubernetes API (503). rs NULL, and no variant: that is never false.
 */
bool quota_scene_open(struct quota_scene *s, const struct api_context *ctx, const char *variant,
		      struct api_response *rs);
/*
 * The same with the body of a POST {"pod":POD[,"variant"], ..}, whose members are all in the list.
 * False: *rs says what is wrong, and there is nothing to close and to free.
 */
bool quota_scene_read(struct quota_scene *s, struct pod_body *body, const struct api_context *ctx,
		      const struct api_request *rq, const struct api_field *members,
		      struct api_response *rs);
void quota_scene_close(struct quota_scene *s);

/*
 * What stands in the way of an answer, as one sentence: elasticquotas are not known (or only so
 * far); "" when nothing does.
 */
void quota_scene_gap(const struct quota_scene *s, struct error *error);
/* "variant", and key: that sentence. */
void quota_scene_write_head(const struct quota_scene *s, struct jsonw *w, const char *key);
/*
 * Whether nodes and pods are known, without which nobody's place can be told. False: *rs says which
 * is not (503).
 */
bool quota_scene_knows_pods(const struct quota_scene *s, struct api_response *rs);
/*
 * What the pod asks the gates, as the scene sees it: what is counted of it already, by a
 * reservation or because it is `bound` (the same pod, on its node; NULL: it is on none), is not
 * counted twice. Borrows from all three.
 */
struct quota_ask quota_scene_ask(const struct quota_scene *s, const struct kube_pod *pod,
				 const struct kube_pod *bound);
/* The place of the namespace's quota in the book, or quota_book_count(). */
size_t quota_scene_index(const struct quota_scene *s, const char *namespace);
/*
 * The pod as the view has it on a node, by its name, and by its uid where it has one; NULL: it is
 * on none.
 */
const struct kube_pod *quota_scene_find_bound(const struct quota_scene *s,
					      const struct kube_pod *pod);

/* --- a search for victims */

struct quota_search {
	const struct api_context *ctx; /* borrowed, as is */
	struct place_pool *pool;
	struct place *place; /* taken of the pool; what is reserved on nodes is there */
	place_mark mark; /* before that */
	size_t unseen; /* pods on nodes that the view does not show yet: nobody's victims */
	const struct preempt *index; /* kept with the view */
	struct preempt_options options;
	/* of pod, never, now, past and in flight; allowed is the caller's to set */
	struct preempt_ask ask;
	struct preempt_past *past; /* owned, as is what it points to in `told` */
	struct victim_past *told;
	const char *const *in_flight, *const *exchanged; /* owned, one block each */
	uint64_t version; /* of the log, when it was read */
};

/*
 * The scene's book is the search's alone until it is closed: searching changes it, and changes it
 * back.
 */
void quota_search_open(struct quota_search *q, const struct api_context *ctx,
		       struct place_pool *pool, const struct quota_scene *s,
		       const struct kube_pod *pod, bool never);
void quota_search_close(struct quota_search *q);

/*
 * The first pod, by priority and name, that the scheduler has no place for although its quota is
 * within its min, and that is not told yet. The text says who could give way, or that the pod waits
 * for pods without a quota; it stays empty where there is nothing to say. NULL: no such pod. The
 * caller drops the pod. Costs a search for victims.
 */
struct kube_pod *quota_reclaim_next(const struct api_context *ctx,
				    bool (*is_told)(const void *who, const struct kube_pod *pod),
				    const void *who, struct buf *text);

#endif
