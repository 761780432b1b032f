/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the cluster model: what the Kubernetes edge tells is done to it on the loop, or files gave
 * it once; and lets the Kubernetes edge review tokens for the HTTP edge.
 */
#ifndef EVENKEEL_AGGREGATOR_ENGINE_FOLLOWER_H
#define EVENKEEL_AGGREGATOR_ENGINE_FOLLOWER_H

#include <stdbool.h>
#include <uv.h>

#include "aggregator/api/access_review.h"
#include "aggregator/model/model.h"
#include "shared/options.h"
#include "shared/reason.h"

struct ledger;

struct follower_config {
	/* files to take it from instead of an API; may be empty */
	const struct option_list *snapshots;
	const char *kubeconfig; /* NULL: in-cluster, or standalone where this is no pod */
	const char *context; /* of the kubeconfig; NULL: its current one */
	bool standalone; /* no API, whatever there is */
	uv_loop_t *loop;
	void (*changed)(void *ctx); /* loop thread: the model is another one */
	/* Loop thread: it has all that had arrived when follower_catch_up() had that ticket. */
	void (*caught_up)(void *ctx, uint64_t ticket);
	void *ctx;
	struct ledger *ledger; /* borrowed; told of what becomes of pods */
	/*
	 * Pods that wait are reviewed, with this claim changed for them; NULL: none. The context is
	 * borrowed.
	 */
	const char *nudge_claim;
	const struct api_context *api;
	/* What quotas use is written into their status; NULL: it is not. Of what is borrowed so: */
	struct quota_counters *status_counters;
	struct view_slot *views;
	const struct quota_options *quota;
};

struct api_context;
struct quota_counters;
struct quota_options;
struct view_slot;
struct follower;

/* Starts to follow an API. Where there is none, *f is NULL. The loop is borrowed. */
int follower_open(struct follower **f, const struct follower_config *config, struct reason *reason);
/* Ends the edge's thread. What it told and nobody took is forgotten. NULL is allowed, as below. */
void follower_stop(struct follower *f);
/* After follower_stop(), once the loop closed its handles. */
void follower_free(struct follower *f);

/*
 * Any thread, between open and stop: what has arrived by now is to be in the model, and caught_up
 * is told. False: nothing ever arrives.
 */
bool follower_catch_up(struct follower *f, uint64_t ticket);
/* Where the model is from: "inCluster", "kubeconfig", "snapshot"; NULL: there is none. */
const char *follower_mode(const struct follower *f);
/* The same for people: "the Kubernetes API at https://10.96.0.1:443 (in-cluster)". */
const char *follower_from(const struct follower *f);
/* Whether its credentials come from a program that runs now and then. */
bool follower_runs_programs(const struct follower *f);
/* The model changed since the last follower_cluster(). */
bool follower_dirty(const struct follower *f);
/* What is known now, to be dropped; NULL without an API. */
struct cluster *follower_cluster(struct follower *f);

/* --- reviews of tokens */

struct token_reviews {
	struct review_client access; /* for the HTTP edge */
	struct token_review_client *tokens; /* owned */
};

/*
 * kubeconfig NULL: the cluster this is a pod of. audience NULL: the API server. -EINVAL with the
 * reason.
 */
int token_reviews_open(struct token_reviews *r, const char *kubeconfig, const char *context,
		       const char *audience, struct reason *reason);
/* Cuts what is being asked. Of zeroes nothing, as below. */
void token_reviews_stop(struct token_reviews *r);
void token_reviews_close(struct token_reviews *r);

#endif
