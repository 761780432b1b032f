/* SPDX-License-Identifier: Apache-2.0 */
/* The edge of act_reclaim.h: reads plans and pods, and carries out what a step decided. */
#ifndef EVENKEEL_AGGREGATOR_ACTUATOR_RECLAIM_H
#define EVENKEEL_AGGREGATOR_ACTUATOR_RECLAIM_H

#include "aggregator/actuator/act_reclaim.h"
#include "aggregator/actuator/edge.h"

struct reclaim {
	struct reclaim_options options;
	struct reclaim_state state;
	int64_t listed_ns; /* monotonic: when plans were read last; 0: never */
	bool failing; /* logged: reading */
};

/* A step. True: it wrote. Logs what it decided and what failed. */
bool reclaim_run(struct reclaim *r, struct edge *e, bool paused, int64_t now_ns);
/* Forgets everything but the options; a successor takes over the claims. */
void reclaim_forget(struct reclaim *r);

/*
 * The plans (key "items") that may be carried out, or the claims (key "claims"). Their texts are
 * borrowed from the list; the caller frees the array by reclaim_free_plans().
 */
struct reclaim_plan *reclaim_read_plans(const cJSON *list, const char *key, size_t *count);
void reclaim_free_plans(struct reclaim_plan *plans, size_t count);

#endif
