/* SPDX-License-Identifier: Apache-2.0 */
/* What place_choose() must find, by asking each node in turn. */
#pragma once

#include "aggregator/policy/place/place.h"

/* As place_choose(). */
place_node place_scan(struct place *p, place_pod pod, enum place_order order, place_node hint,
		      const bool *allowed, struct place_counts *counts);
