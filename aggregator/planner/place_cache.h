/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement cores that requests share. Building a core of 5000 nodes and 150k pods takes 0.2 s of
 * CPU for 3000 workloads and above 1 s for 40,000; an update takes only what changed. A core
 * belongs to one thread at a time, so a few are kept, and each is taken and given back as a whole.
 */
#pragma once

#include "aggregator/policy/place/place.h"
#include "aggregator/state/reservations.h"

enum { PLACE_CACHE_MAX = 2 };

/* Whether nodes and pods of the cluster are known; else the error says what is missing. */
bool place_cache_can_answer(const struct view *v, struct error *error);

struct place_cache;
struct place_cache *place_cache_new(void); /* with the usual options of placement */
void place_cache_free(struct place_cache *cache); /* NULL is allowed; all are given back */
/*
 * A core of the view, the caller's alone until place_cache_give(). Waits while PLACE_CACHE_MAX are
 * taken. The caller's changes need not be undone. A core is built on demand, and freed after ten
 * idle minutes. Without a cache (NULL) a core with the default options is built, and freed when it
 * is given back.
 */
struct place *place_cache_take(struct place_cache *cache, struct view *v, int64_t now_ns);
void place_cache_give(struct place_cache *cache, struct place *p);
/* Frees cores that are idle for ten minutes: each holds its view. Never waits. NULL is allowed. */
void place_cache_tidy(struct place_cache *cache, int64_t now_ns);

/*
 * Reserved amounts count as used, although no view shows their pods yet. Puts the pods of all
 * reservations with a node there, except that uid ("": all), and returns how many of them are bound
 * already. The core is of that view; the caller reverts the mark. A pod that the view lacks requests
 * what was reserved, and nothing else.
 */
size_t reserved_pods_put(struct place *p, const struct view *v,
			 const struct reservations_copy *reservations, const char *except_uid,
			 place_mark *mark);
