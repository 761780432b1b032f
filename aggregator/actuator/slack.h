/* SPDX-License-Identifier: Apache-2.0 */
/* The edge of act_slack.h: reads the target and the objects, and carries out what a step decided. */
#ifndef EVENKEEL_AGGREGATOR_ACTUATOR_SLACK_H
#define EVENKEEL_AGGREGATOR_ACTUATOR_SLACK_H

#include "aggregator/actuator/act_slack.h"
#include "aggregator/actuator/edge.h"

struct slack_keeper {
	struct act_slack_rules rules;
	struct act_slack_state state;
	int64_t looked_ns; /* monotonic: the last look; 0: never */
	bool failing; /* logged: reading */
};

/* A step, if one is due. True: it wrote. Logs what it decided and what failed. */
bool slack_run(struct slack_keeper *k, struct edge *e, bool paused, int64_t now_ns);
void slack_forget(struct slack_keeper *k); /* everything but the rules */

#endif
