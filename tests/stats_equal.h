/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two stats say the same, member for member and bit for bit. */
#pragma once

#include "aggregator/state/node_stats.h"

/* Fails the test with the first member that differs; generations do not count. */
void stats_equal_check(const struct node_stats *a, const struct node_stats *b);
