/* SPDX-License-Identifier: Apache-2.0 */
/* What place_choose() must find, by asking each node in turn. */
#ifndef EVENKEEL_TESTS_PLACE_SCAN_H
#define EVENKEEL_TESTS_PLACE_SCAN_H

#include "aggregator/policy/place/place.h"

/* As place_choose(). */
place_node place_scan(struct place *p, place_pod pod, enum place_order order, place_node hint,
		      const bool *allowed, struct place_counts *counts);

#endif
