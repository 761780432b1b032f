/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ledger has charged to nodes, in a placement core: room that is promised is no room,
 * although no view shows who has it.
 */
#ifndef EVENKEEL_AGGREGATOR_API_RESERVED_PODS_H
#define EVENKEEL_AGGREGATOR_API_RESERVED_PODS_H

#include "aggregator/policy/place/place.h"
#include "aggregator/state/ledger.h"

/*
 * Puts the pods of all reservations that have a node there, but for that uid ("": all), and returns
 * how many of them are bound already: they are on their nodes, and the core's view does not have
 * them. place is of that view; the mark is the caller's to revert. A pod that the view does not
 * know at all is one that asks for what was reserved, and for nothing else.
 */
size_t reserved_pods_put(struct place *p, const struct view *v, const struct ledger_copy *ledger,
			 const char *except_uid, place_mark *mark);

#endif
