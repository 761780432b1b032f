/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The made-up fleet for benches that also include the aggregator's model: `struct cluster` is one
 * thing there and another in tests/fleet/cluster.h, which this header therefore does not show.
 */
#pragma once

#include <stdint.h>

#include "shared/interval.h"
#include "shared/error.h"

enum { BENCH_FLEET_NAME_MAX = 64 };

struct bench_fleet;

struct bench_fleet *bench_fleet_new(uint32_t nodes, uint32_t pods_per_node, int64_t epoch_ns);
void bench_fleet_free(struct bench_fleet *f); /* NULL is allowed */
/* The cluster's objects, as a v1 List. 0, or -errno with the reason. */
int bench_fleet_dump(const struct bench_fleet *f, const char *path, struct error *error);
void bench_fleet_name(uint32_t node, char name[BENCH_FLEET_NAME_MAX]);
/* What that node's agent would tell; the caller's. Each begins where the one before ended. */
struct interval *bench_fleet_take(struct bench_fleet *f, uint32_t node, uint64_t sequence,
				  int64_t start_ns, int64_t end_ns);
