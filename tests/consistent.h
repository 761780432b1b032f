/* SPDX-License-Identifier: Apache-2.0 */
/* What parts of the product keep up step by step, worked out anew and compared. */
#pragma once

#include <stdbool.h>

#include "aggregator/policy/place/place.h"
#include "aggregator/state/reservations.h"
#include "shared/error.h"

/* Every counter of the placement core. False: the reason says which differs. */
bool place_is_consistent(const struct place *p, struct error *error);
/* Every sum and order that is cached beside the reservations. */
bool reservations_is_consistent(struct reservations *set, struct error *error);
