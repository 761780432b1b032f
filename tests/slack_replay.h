/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does every placeholder that moves have a cause? Moves are done over again, one after the other,
 * on the JSON of a world and of the placeholders, and at each one the checker (place_checker.h),
 * which shares no code with the placement core, is asked whether it was needed then.
 */
#pragma once

#include "aggregator/policy/slack/slack.h"
#include "tests/place_world.h"

struct slack_replay; /* where placeholders stood after the last step */

struct slack_replay *slack_replay_new(void);
void slack_replay_free(struct slack_replay *s);
/*
 * One more step's. The test fails where a move has no cause, or moves do not come to what is
 * placed, or what is placed may not be where it is:
 *
 *   PushedOut   it is refused where it stands, by that filter
 *   NodeLeft    the node is gone, not ready, cordoned or in deletion
 *   ClassLeft   nobody wants that class
 *   Surplus     more stand than are wanted
 *   Placed      fewer stand than are wanted, and it is not refused
 *   Displaced   the one that came had no place anywhere, and has one now
 */
void slack_replay_step(struct slack_replay *s, const struct place_world *w,
		       const struct slack_result *r);
