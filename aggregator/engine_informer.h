/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the cluster model: what the Kubernetes edge tells is done to it on the loop, or files gave
 * it once; and lets the Kubernetes edge review tokens for the HTTP edge.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "aggregator/api/access_review.h"
#include "aggregator/model/model.h"
#include "shared/options.h"
#include "shared/error.h"

struct front_proxy;
struct publisher;
struct reservations;

struct informer_config {
	/* files to take it from instead of an API; may be empty */
	const struct option_list *snapshots;
	const char *kubeconfig; /* NULL: in-cluster, or standalone where this is no pod */
	const char *context; /* of the kubeconfig; NULL: its current one */
	bool standalone; /* no API, whatever there is */
	uv_loop_t *loop;
	/*
	 * Borrowed; told on the loop thread of changes of the model, and of the tickets of
	 * informer_catch_up() that it serves.
	 */
	struct publisher *publisher;
	struct reservations *reservations; /* borrowed; told of what becomes of pods */
	/*
	 * Pods that wait are reviewed, with this claim changed for them; NULL: none. The context is
	 * borrowed.
	 */
	const char *nudge_claim;
	unsigned int events; /* bits of enum object_events_of; 0: none are written */
	const struct api_context *api;
	/* The use of quotas is written into their status; NULL: it is not. Borrowed, with: */
	struct quota_counters *status_counters;
	struct view_slot *views;
	const struct quota_options *quota;
};

struct api_context;
struct quota_counters;
struct quota_options;
struct view_slot;
struct informer;

/* Starts to follow an API. Where there is none, *f is NULL. The loop is borrowed. */
int informer_open(struct informer **f, const struct informer_config *config, struct error *error);
/* Ends the edge's thread. What it told and nobody took is forgotten. NULL is allowed, as below. */
void informer_stop(struct informer *f);
/* After informer_stop(), once the loop closed its handles. */
void informer_free(struct informer *f);

/*
 * Any thread, between open and stop: what has arrived by now is to be in the model, and the
 * publisher is told. False: nothing ever arrives.
 */
bool informer_catch_up(struct informer *f, uint64_t ticket);
/* Where the model is from: "inCluster", "kubeconfig", "snapshot"; NULL: there is none. */
const char *informer_mode(const struct informer *f);
/* The same for people: "the Kubernetes API at https://10.96.0.1:443 (in-cluster)". */
const char *informer_from(const struct informer *f);
/* Whether its credentials come from a program that runs now and then. */
bool informer_runs_programs(const struct informer *f);
/* The model changed since the last informer_cluster(). */
bool informer_dirty(const struct informer *f);
/* The cluster as known now, to be dropped; NULL without an API. */
struct cluster *informer_cluster(struct informer *f);

/* The pod with that uid, borrowed until the loop goes on; NULL: it is not known. */
const struct kube_pod *informer_pod(const struct informer *f, const char *namespace,
				    const char *name, const char *uid);
/* Whether the list of pods was complete once. */
bool informer_lists_pods(const struct informer *f);

/* --- reviews of tokens, and the front proxy */

struct token_reviews {
	struct review_client access; /* for the HTTP edge */
	struct token_review_client *tokens; /* owned */
	struct front_proxy_watch *proxy; /* owned; NULL: not followed */
};

/*
 * kubeconfig NULL: the cluster this is a pod of. audience NULL: the API server. -EINVAL with the
 * reason.
 */
int token_reviews_open(struct token_reviews *r, const char *kubeconfig, const char *context,
		       const char *audience, struct error *error);
/*
 * Gives `changed` what the API tells of its front proxy, at once and as it changes, on a thread of
 * its own until token_reviews_stop(). -EINVAL with the reason.
 */
int token_reviews_follow_proxy(struct token_reviews *r, const char *kubeconfig, const char *context,
			       void (*changed)(void *ctx, struct front_proxy *p), void *ctx,
			       struct error *error);
/* Cuts what is being asked. Of zeroes nothing, as below. */
void token_reviews_stop(struct token_reviews *r);
void token_reviews_close(struct token_reviews *r);
