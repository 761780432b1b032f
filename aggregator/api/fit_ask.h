/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod of a request asked about in a placement core of the cache: the one way for /v1/fit and for
 * scores that are explained.
 */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/planner/place_cache.h"
#include "aggregator/model/object.h"
#include "aggregator/state/reservations.h"
#include "shared/jsonw.h"

struct fit_ask {
	struct place_cache *cache; /* borrowed; NULL: none */
	struct place *place; /* taken */
	place_mark mark; /* before what is only for this question */
	place_pod pod;
	/* Pods without a node that have one nominated and do not yield to the pod. Owned. */
	struct fit_nominated {
		place_pod pod;
		place_node node;
	} * nominated;
	size_t nominated_count;
};

/*
 * The pod is on no node: its own usage, known by its uid or else by its name, is ignored.
 * Reservations (NULL: none; taken before the view) of other pods count as used.
 */
void fit_ask_open(struct fit_ask *a, struct place_cache *cache, struct view *v,
		  const struct reservations_copy *reservations, const struct kube_pod *pod,
		  int64_t now_ns);
void fit_ask_close(struct fit_ask *a);
/*
 * The first filter that refuses, and its sentence (why may be NULL). As in the kube-scheduler, a
 * node must take the pod both beside the pods that are nominated for the node, if their priority is
 * not lower, and without them.
 */
enum place_filter fit_ask_node(const struct fit_ask *a, place_node n, struct error *error);
/* "fits": how many of all nodes; "refused": {FILTER: how many}. */
void fit_ask_write_counts(const struct fit_ask *a, struct jsonw *w);

/*
 * --- whether the pod that is scored fits, told beside its scores
 *
 * At the top of the ScoreList "fits" and "refused" as in a FitList, of all nodes of the cluster,
 * and per item "fits", and where it is false "filter" and "fitReason". Only where explain or fits
 * is asked for and Kubernetes objects are known.
 */

struct scores_fit;
/*
 * NULL: nothing is to be told, as nothing is known of nodes and pods. The pod is that of the
 * request, NULL: one that asks for nothing. A pod that scores can be told of and fitness cannot is
 * refused everywhere, by Unknown.
 */
struct scores_fit *scores_fit_open(struct place_cache *cache, struct view *v,
				   const struct reservations_copy *reservations, const cJSON *pod,
				   int64_t now_ns);
/* NULL is allowed, here and below: nothing is written. */
void scores_fit_close(struct scores_fit *f);
void scores_fit_write_counts(const struct scores_fit *f, struct jsonw *w);
void scores_fit_write_node(const struct scores_fit *f, struct jsonw *w, const char *node);
