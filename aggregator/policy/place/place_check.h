/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a filter refused by, for those that tell it. Each as place_check() asks it; PLACE_NONE or
 * NULL: it does not refuse.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_PLACE_PLACE_CHECK_H
#define EVENKEEL_AGGREGATOR_POLICY_PLACE_PLACE_CHECK_H

#include "aggregator/policy/place/place_internal.h"

/* Counters. */
uint32_t place_check_anti_affinity(const struct place *p, const struct place_class *c,
				   place_node n);
uint32_t place_check_affinity(const struct place *p, const struct place_class *c, place_node n);
const struct place_spread *place_check_spread(const struct place *p, const struct place_class *c,
					      place_node n);
/* The count of the domain that skew is measured from. */
uint32_t place_spread_least(const struct place_counter *k, const struct place_spread *s);
/* The pod that has the port. */
const struct place_slot *place_check_ports(const struct place *p, const struct place_class *c,
					   place_node n, const struct place_port **port);

#endif
