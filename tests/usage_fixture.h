/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals as an agent on a Kubernetes node would publish them, for tests and benchmarks. */
#pragma once

#include "shared/interval.h"

struct usage_fixture {
	uint64_t sequence;
	int64_t end_ns;
	unsigned int seconds;
	size_t pods;
	size_t containers; /* per pod */
	bool identities; /* every entry carries its identity */
	uint32_t seed; /* of the values */
};

/*
 * Refs: pod p (from 0) is p * (containers + 1) + 1, its containers follow. The node has 16 CPUs and
 * 64 GiB, 10 samples a second, and about 12 distinct CPU values. full is `identities`. Free with
 * interval_free().
 */
struct interval *usage_fixture_new(const struct usage_fixture *f);

/* A repeatable random number in [0, 1). */
double fixture_random(uint32_t *seed);
