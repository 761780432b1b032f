/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the objects of /v1/slack in the cluster: Deployments of balloons, or CapacityBuffers where
 * the API server knows them. Pure. An object is ours if the field manager SLACK_MANAGER applied it
 * and, if it is a Deployment, if its selector has the label of balloons; other objects of the same
 * name are left alone.
 */
#ifndef EVENKEEL_AGGREGATOR_ACTUATOR_ACT_SLACK_H
#define EVENKEEL_AGGREGATOR_ACTUATOR_ACT_SLACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/actuator/act.h"
#include "shared/buf.h"
#include "shared/error.h"

#define SLACK_MANAGER "evenkeel"

/* An object of the target, as JSON. All texts are borrowed, as are those below. */
struct act_slack_wanted {
	const char *kind, *namespace, *name; /* namespace "": it is in none */
	const char *text;
	int64_t replicas; /* -1: it has none */
	bool shared; /* a Namespace or PriorityClass: never removed, and applied whoever made it */
};

/* An object of the cluster: all that are ours, and others of the names that are wanted. */
struct act_slack_existing {
	const char *kind, *namespace, *name, *uid;
	int64_t replicas;
	bool ours;
};

struct act_slack_rules {
	const struct act_options *act; /* borrowed: objects are where act_may_move() */
	bool dry_run; /* objects do not come into being: each is tried once */
};

struct act_slack_input {
	const struct act_slack_wanted *wanted;
	const struct act_slack_existing *existing;
	size_t wanted_count, existing_count;
	bool paused;
	int64_t now_ns; /* monotonic */
};

/* The newest state of an object that was applied, and the message about it. */
struct act_slack_kept {
	char *kind, *namespace, *name; /* owned */
	char *text; /* owned; as applied last; NULL: not yet */
	int64_t changed_ns; /* monotonic, of the last request; 0: none */
	struct error told; /* why it is left alone, or "" */
};

struct act_slack_state {
	struct act_slack_kept *kept; /* owned */
	size_t count;
};

void act_slack_state_fini(struct act_slack_state *s);

struct act_slack_action {
	bool removes;
	const char *kind, *namespace, *name; /* borrowed from the input */
	const char *uid; /* of an object to remove */
	const char *text; /* of an object to apply */
};

struct act_slack_output {
	struct act_slack_action *actions; /* owned; to be carried out in this order */
	size_t action_count;
	struct buf narration; /* lines */
};

void act_slack_output_fini(struct act_slack_output *out);
/* *out is zeroed by the caller. */
void act_slack_step(struct act_slack_state *s, const struct act_slack_rules *o,
		    const struct act_slack_input *in, struct act_slack_output *out);
/* The answer to an action, before the next step; what it says of the object goes to *told, or "". */
void act_slack_result(struct act_slack_state *s, const struct act_slack_action *a,
		      enum act_result result, const char *answer, struct error *told);

#endif
