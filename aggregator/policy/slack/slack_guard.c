/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a move would leave where he may not stand. Affinity to pods and topology spread are asked of
 * who comes, and then never again: others who come or go later make wrong what was right. A real
 * pod stays where it is all the same, but a placeholder is a promise that such a pod could come
 * there now. So it must hold after each step that every placeholder may stand where it is, as if it
 * came last:
 *
 *   who comes, and makes way   goes only where all who mind him may stay (slack_place.c)
 *   who is given up            is, if he can be chosen, one whom nobody misses (slack_step.c)
 *   who is pushed out          takes those along that could not stay without him (slack_step.c)
 *
 * Of its own class, who comes breaks nobody: what it counted for itself when it came, it counts for
 * them as well.
 *
 * Each question is one take, check and put, of every placeholder of the classes that mind the one
 * that moved. All questions of a step together are bounded: when they are spent nobody moves any
 * more who is minded.
 */
#include <stdlib.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

#define NONE UINT32_MAX

enum { GUARD_ASKS = 2000000 };

void slack_guard_init(struct slack_run *r)
{
	uint32_t count = (uint32_t)r->class_count, at = 0;

	r->asks = GUARD_ASKS;
	r->minders_from = mem_zalloc((size_t)count + 1, sizeof(*r->minders_from));
	for (uint32_t class = 0; class < count; class ++) {
		r->minders_from[class] = at;
		for (uint32_t other = 0; other < count; other++) {
			const struct slack_entry *e = r->classes[other];

			if (!e->pattern.is_company || !e->wanted ||
			    !place_minds(r->place, e->probe, r->classes[class]->probe))
				continue;
			r->minders = array_grow(r->minders, at, sizeof(*r->minders));
			r->minders[at++] = other;
		}
	}
	r->minders_from[count] = at;
}

enum place_filter slack_guard_ask(struct slack_run *r, uint32_t holder)
{
	place_pod pod = r->holders[holder].pod;
	place_node n = place_where(r->place, pod);
	place_mark m = place_fork(r->place);
	enum place_filter f;

	place_take(r->place, pod);
	f = place_check(r->place, pod, n);
	place_revert(r->place, m);
	/* Filters behind the scheduler's are ours, and move nobody who stands. */
	return f >= PLACE_USE_CAP ? PLACE_FITS : f;
}

/* By where the simulation has them, which may be a trial. */
static bool class_is_broken(struct slack_run *r, uint32_t class)
{
	for (uint32_t h = r->classes[class]->first_holder; h != NONE;
	     h = r->holders[h].next_of_class) {
		if (place_where(r->place, r->holders[h].pod) == PLACE_NONE)
			continue;
		if (!r->asks) {
			r->out_of_tries = true;
			return true;
		}
		r->asks--;
		if (slack_guard_ask(r, h) != PLACE_FITS)
			return true;
	}
	return false;
}

bool slack_guard_breaks(struct slack_run *r, uint32_t class, bool own, uint32_t *who)
{
	for (uint32_t i = r->minders_from[class]; i < r->minders_from[class + 1]; i++) {
		uint32_t minder = r->minders[i];

		if ((minder == class && !own) || !class_is_broken(r, minder))
			continue;
		if (who)
			*who = minder;
		return true;
	}
	return false;
}
