/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers by topology domain. Few domains are an array; of many (every node is one of
 * kubernetes.io/hostname) only those with pods are kept, in an open hash of eight bytes each, since
 * thousands of workloads count over thousands of nodes. Pure.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_PLACE_PLACE_TALLY_H
#define EVENKEEL_AGGREGATOR_POLICY_PLACE_PLACE_TALLY_H

#include <stdint.h>

struct place_tally_entry {
	uint32_t domain; /* UINT32_MAX: free */
	uint32_t count;
};

struct place_tally {
	uint32_t *dense; /* owned; NULL: sparse */
	struct place_tally_entry *of; /* owned; NULL until there is anything */
	uint32_t room,
		/*
		 * room: 0 or a power of two; taken: entries that are not free, counts of 0 among
		 * them
		 */
		taken;
};

/* domains: how many there are; more may come. */
void place_tally_init(struct place_tally *t, uint32_t domains);
void place_tally_fini(struct place_tally *t);
uint32_t place_tally_get(const struct place_tally *t, uint32_t domain);
/* What it is then. */
uint32_t place_tally_add(struct place_tally *t, uint32_t domain, int by);

#endif
