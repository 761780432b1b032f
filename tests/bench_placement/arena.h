/* SPDX-License-Identifier: Apache-2.0 */
/* Where contenders place bursts: the lab with its residents, and one run after the other on it. */
#pragma once

#include "tests/bench_placement/bursts.h"
#include "tests/bench_placement/contenders.h"
#include "tests/bench_placement/figures.h"
#include "tests/lab.h"

struct arena {
	struct lab *lab;
	int echo_port;
	const struct contender *contender;
	const char *const *more_options; /* of the aggregator of ours; end with NULL */
	double pods_per_s; /* at which the pods of a burst come; 0: all at once */
	uint64_t seed;
	size_t run; /* in the names of its pods: none comes twice */
	struct burst_pod residents[NODES];
};

/* NULL: there is no control plane here, which was said. */
struct arena *arena_new(void);
void arena_free(struct arena *a, bool failed);

/* Starts the contender's scheduler. */
void arena_set_contender(struct arena *a, const struct contender *c);
/* New residents, of another seed. */
void arena_set_seed(struct arena *a, uint64_t seed);
/* Everything that the burst brought is gone afterwards. */
struct figures arena_run(struct arena *a, const struct burst *b);
