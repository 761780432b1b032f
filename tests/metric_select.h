/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries of a load-watcher answer the Trimaran plugins take for a node. Pure. */
#pragma once

#include "aggregator/policy/score/score.h"

struct metric_entry {
	const char *type, *op; /* borrowed; op: "AVG", "STD", "Latest", "" */
	double percent;
};

/* TargetLoadPacking: the last of the type whose operator is "AVG" or "Latest". No deviation. */
struct score_metric metric_select_last(const struct metric_entry *entries, size_t count,
				       const char *type);
/* Peaks: the first of them. */
struct score_metric metric_select_first(const struct metric_entry *entries, size_t count,
					const char *type);
/*
 * The risk plugins: "AVG" wins over "Latest" and "" wherever it stands, the last of equals wins;
 * "STD" beside it. Known as soon as there is any entry of the type, be it only the deviation (the
 * mean is then 0).
 */
struct score_metric metric_select_mean_stddev(const struct metric_entry *entries, size_t count,
					      const char *type);
