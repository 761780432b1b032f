/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster of 5000 nodes with 150,000 pods, for benches of what schedulers ask. */
#pragma once

#include "aggregator/state/view.h"

enum { BENCH_NODES = 5000, BENCH_PODS = 30, BENCH_CONTAINERS = 3 };

/*
 * As of VIEW_FIXTURE_NOW_NS: nodes "node-00000" and on, of different load, each with its pods of
 * three containers, and one more pod that was just placed, whose cgroup is not there yet. The
 * caller drops it.
 */
struct view *bench_cluster_new(void);
