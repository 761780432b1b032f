/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the objects of /v1/slack in the cluster: Deployments of balloons, or CapacityBuffers where
 * the API server knows them. act_slack.c has the decisions and is pure; slack.c reads the target and
 * the objects, and carries the decisions out.
 *
 * An object is ours if the field manager SLACK_MANAGER applied it and, if it is a Deployment, if its
 * selector has the label of balloons; other objects of the same name are left alone.
 */
#pragma once

#include "aggregator/actuator/edge.h"

#define SLACK_MANAGER "evenkeel"

/* An object of the target, or of the cluster. All texts are borrowed. */
struct slack_object {
	const char *title; /* "Deployment shop/web": its identity */
	const char *path; /* in the API */
	const char *namespace; /* "": it is in none */
	const char *uid; /* of the cluster's; NULL: an object of the target */
	const char *text; /* of the target's: JSON */
	int64_t replicas; /* -1: it has none */
	bool shared; /* a Namespace or PriorityClass: never removed, and applied whoever made it */
	bool ours; /* of the cluster's */
};

struct slack_objects {
	struct slack_object *of;
	size_t count;
};

struct slack_rules {
	const struct act_options *act; /* borrowed: objects are where act_may_move() */
	bool dry_run; /* objects do not come into being: each is tried once */
};

struct slack_input {
	struct slack_objects wanted;
	struct slack_objects existing; /* all that are ours, and others of the wanted names */
	bool paused;
	int64_t now_ns; /* monotonic */
};

/* The newest state of an object that was applied, and the message about it. */
struct slack_kept {
	char *title; /* owned */
	char *text; /* owned; as applied last; NULL: not yet */
	int64_t changed_ns; /* monotonic, of the last request; 0: none */
	struct error told; /* why it is left alone, or "" */
};

struct slack_state {
	struct slack_kept *kept; /* owned; by title */
	size_t count;
};

struct slack_output {
	const struct slack_object **actions; /* owned; the target's are applied, others removed */
	size_t action_count;
	struct buf narration; /* lines */
};

/* --- act_slack.c ------------------------------------------------------------------------------ */

void act_slack_state_fini(struct slack_state *s);
/* *out is zeroed by the caller. */
void act_slack_step(struct slack_state *s, const struct slack_rules *o,
		    const struct slack_input *in, struct slack_output *out);
/* The answer to an action, before the next step; what it says of the object goes to *told, or "". */
void act_slack_result(struct slack_state *s, const struct slack_object *of, enum act_result result,
		      const char *answer, struct error *told);

/* --- slack.c ---------------------------------------------------------------------------------- */

struct slack_keeper {
	struct slack_rules rules;
	struct slack_state state;
	int64_t looked_ns; /* monotonic: the last look; 0: never */
	bool failing; /* logged: reading */
};

/* A step, if one is due. True: it wrote. Logs what it decided and what failed. */
bool slack_run(struct slack_keeper *k, struct edge *e, bool paused, int64_t now_ns);
void slack_forget(struct slack_keeper *k); /* everything but the rules */
