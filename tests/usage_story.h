/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stories told to the usage state are made of. Times are seconds after T0; runs are single
 * letters.
 */
#pragma once

#include "tests/usage_view.h"

#define SEC 1000000000LL
#define T0  (1700000010LL * SEC)
#define GIB (1LL << 30)

/* Of at most 3 nodes with 4 pods. */
struct usage_state *story_state(void);
const uint8_t *story_run(char letter);
/*
 * An interval [start, end) of a machine with 4 CPUs and 8 GiB and with room for `entries`, all
 * still to be named.
 */
struct interval *story_interval(uint64_t sequence, int start, int end, size_t entries);
struct entity *story_name(struct entry *e, enum entity_kind kind, const char *name);
/* Tells it and frees it; the service's clock stands at `now` seconds. */
struct usage_answer story_tell(struct usage_state *u, const char *node, char run,
			       struct interval *i, int now);
/* By node "n" when it ends; it must be applied. */
void story_tell_ok(struct usage_state *u, char run, struct interval *i);
const struct pod_stats *story_pod(const struct node_stats *p, const char *name);
/* By its whole name. */
void story_expect_container(const struct pod_stats *pod, size_t index, const char *name);
/* The only stats there are. The caller drops the view. */
const struct node_stats *story_stats(struct usage_state *u, struct view **v);

/* So much, all the time. */
static inline void story_use_cpu(struct usage *u, float milli)
{
	u->cpu_milli.mean = u->cpu_milli.min = u->cpu_milli.max = u->cpu_milli.last = milli;
}
