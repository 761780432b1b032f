/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placeholders whose constraints a move would violate. The scheduler checks affinity to pods and
 * topology spread only when a pod comes; later changes can violate them. A real pod stays all the same,
 * but a placeholder promises that such a pod could come there now. So after each step every
 * placeholder must fit on its node as if it came last:
 *
 *   placed, displaced    goes only to nodes where the constraints of other placeholders hold
 *                        (slack_place.c)
 *   given up             preferably a placeholder that no constraint needs (slack_verify.c)
 *   pushed out           takes those along whose constraints it satisfied (slack_verify.c)
 *
 * A placeholder never violates constraints of its own class by coming: the check of its own constraints
 * covers theirs.
 *
 * Each check is one take, check and put, of every placeholder of the classes that mind the moved one.
 * The checks of a step are bounded: when they are spent, minded placeholders stay.
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
	/* evenkeel's own filters never move a placed placeholder. */
	return f >= PLACE_USE_CAP ? PLACE_FITS : f;
}

/* Uses the places in the simulation, which may be a trial. */
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
