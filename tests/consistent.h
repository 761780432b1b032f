/* SPDX-License-Identifier: Apache-2.0 */
/* What parts of the product keep up step by step, worked out anew and compared. */
#ifndef EVENKEEL_TESTS_CONSISTENT_H
#define EVENKEEL_TESTS_CONSISTENT_H

#include <stdbool.h>

#include "aggregator/policy/place/place.h"
#include "aggregator/state/ledger.h"
#include "shared/reason.h"

/* Every counter of the placement core. False: the reason says which differs. */
bool place_is_consistent(const struct place *p, struct reason *why);
/* Every sum and order that is kept beside the ledger's entries. */
bool ledger_is_consistent(struct ledger *l, struct reason *why);

#endif
