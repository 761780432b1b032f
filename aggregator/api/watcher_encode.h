/* SPDX-License-Identifier: Apache-2.0 */
/* load-watcher's JSON document, byte for byte, from plain values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"

/* One entry of "metrics". Strings are borrowed, as everywhere here. */
struct watcher_metric {
	const char *name;
	const char *type; /* "CPU", "Memory": capitals matter to the clients */
	const char *operator; /* "AVG", "STD" */
	const char *rollup;
	double value; /* percent of capacity */
};

struct watcher_node {
	const char *name;
	const struct watcher_metric *metrics;
	size_t metric_count;
	const char *data_center; /* NULL: "" */
	/* Members of ours, after the known ones; every known client skips what it does not know. */
	bool extra;
	const char *state; /* "fresh" or "late" */
	const char *window; /* which window the values cover */
	double window_seconds; /* and how much time that really is */
	double age_seconds; /* of the newest sample */
	uint64_t samples;
};

struct watcher_answer {
	int64_t timestamp; /* Unix seconds, as start and end */
	const char *duration;
	int64_t start, end;
	const char *source;
	const struct watcher_node *nodes; /* written in this order */
	size_t node_count;
};

/*
 * Appends the compact document without a newline:
 *   {"timestamp":I,"window":{"duration":S,"start":I,"end":I},"source":S,"data":{"NodeMetricsMap":{NODE:{
 *   "metrics":[{"name":S,"type":S,"operator":S,"rollup":S,"value":F},..],"tags":{},"metadata":{"dataCenter":S}
 *   [,"state":S,"window":S,"windowSeconds":F,"ageSeconds":F,"samples":I]},..}}}
 * Values are fixed notation with at most 6 decimals, below 1e-4 they are 0; a metric that is not a
 * number is left out: the clients' decoder loses the whole document over one NaN, and misreads long
 * fractions and exponents.
 */
void watcher_encode(const struct watcher_answer *a, struct buf *out);
