/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement cores that requests share. To build one of 5000 nodes and 150k pods takes 0.2 s of CPU
 * where these are of 3000 workloads, and above 1 s where they are of 40,000, each of which is read
 * once; to bring one up to date takes only what changed, and a question leaves nothing behind. One
 * that is being asked and changed belongs to one thread. So there are a few, each taken whole and
 * given back.
 */
#ifndef EVENKEEL_AGGREGATOR_PLANNER_PLACE_POOL_H
#define EVENKEEL_AGGREGATOR_PLANNER_PLACE_POOL_H

#include "aggregator/policy/place/place.h"
#include "aggregator/state/reservations.h"

enum { PLACE_POOL_MAX = 2 };

/*
 * Whether nodes and pods of the cluster are known; else no core would tell the truth, and the
 * reason says what is missing.
 */
bool place_pool_can_answer(const struct view *v, struct error *error);

struct place_pool;
struct place_pool *place_pool_new(const struct place_options *o); /* now_ns does not matter */
void place_pool_free(struct place_pool *pool); /* NULL is allowed; all are given back */
/*
 * A core that is as a new one of the view, and the caller's alone until place_pool_give(). Waits
 * while PLACE_POOL_MAX are taken. What the caller changes needs not be undone. None is built before
 * the first is asked for, and one that nobody took for ten minutes is let go at the next call.
 * Without a pool (NULL) one is built with the default options, and freed when it is given back.
 */
struct place *place_pool_take(struct place_pool *pool, struct view *v, int64_t now_ns);
void place_pool_give(struct place_pool *pool, struct place *p);
/*
 * Lets go of those that nobody took for ten minutes: each holds the view it was brought up to.
 * Never waits for a core. NULL is allowed.
 */
void place_pool_tidy(struct place_pool *pool, int64_t now_ns);

/*
 * Room that is reserved on nodes is used, although no view shows the pods. Puts the pods
 * of all reservations that have a node there, but for that uid ("": all), and returns how many of
 * them are bound already: they are on their nodes, and the core's view does not have them. place is
 * of that view; the mark is the caller's to revert. A pod that the view does not know at all is one
 * that asks for what was reserved, and for nothing else.
 */
size_t reserved_pods_put(struct place *p, const struct view *v,
			 const struct reservations_copy *reservations, const char *except_uid,
			 place_mark *mark);

#endif
