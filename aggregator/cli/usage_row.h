/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rows of nodes and of pods have in common: how fresh they are, and cells made of measured
 * values.
 */
#ifndef EVENKEEL_AGGREGATOR_CLI_USAGE_ROW_H
#define EVENKEEL_AGGREGATOR_CLI_USAGE_ROW_H

#include "aggregator/cli/cli.h"
#include "aggregator/cli/document.h"
#include "shared/table.h"

/* Apart is what cannot be measured, as nothing runs: it is neither fresh nor missing. */
enum row_state { ROW_FRESH, ROW_LATE, ROW_EXPIRED, ROW_NONE, ROW_APART, ROW_STATES };

/* Of the last 5 minutes, for -o csv. */
#define CSV_CONTENTION                                                                             \
	{"throttled_ratio", "contention.throttledRatio"},                                          \
		{"throttled_seconds", "contention.throttledSeconds"},                              \
		{"waiting_cpu_ratio", "contention.cpu"},                                           \
		{"waiting_memory_ratio", "contention.memory"},                                     \
		{"stalled_cpu_ratio", "contention.cpuStalledRatio"},                               \
		{"stalled_memory_ratio", "contention.memoryStalledRatio"},                         \
	{                                                                                          \
		"oom_kills", "contention.oomKills"                                                 \
	}

/* How many items were met in each state, shown or not, and which names of the call were met. */
struct usage_tally {
	const struct cli *cli;
	const char *what; /* "node", "pod" */
	size_t states[ROW_STATES];
	bool *met; /* owned; for each operand */
	const char *stale_name; /* borrowed; the first operand found that is not fresh */
	enum row_state stale_state;
	double stale_age;
};

void usage_tally_init(struct usage_tally *t, const struct cli *cli, const char *what);
void usage_tally_fini(struct usage_tally *t);
/* True when no names were given or this is one of them. */
bool usage_tally_wants(const struct usage_tally *t, const char *name);
void usage_tally_add(struct usage_tally *t, const char *name, enum row_state state, double age);
size_t usage_tally_total(const struct usage_tally *t);
/* The exit code by what was added, with the reason. */
int usage_tally_exit(const struct usage_tally *t, struct reason *reason);

/* "3s", "42s late", "6m10s expired", "never", "-" */
void usage_row_age(struct table *t, enum row_state state, double age_seconds);
void usage_row_cpu(struct table *t, double milli);
void usage_row_bytes(struct table *t, double bytes);
/* "none" for a limit that is null, else the bytes. */
void usage_row_byte_limit(struct table *t, const cJSON *item, const char *path);
/* "180us", "1.2ms", "2.5s", "0" */
void usage_row_micros(struct table *t, double us);
void usage_row_count(struct table *t, double count, enum table_paint paint);
/* "12/100", or "12" without a limit; painted when it comes near it. */
void usage_row_count_of(struct table *t, double count, double limit);
/*
 * Two cells of shares of time, each "12%/3%" for CPU and memory: waiting for neighbours, and
 * stalled.
 */
void usage_row_pressure(struct table *t, const cJSON *item);
/* "none" for a limit that is null, else the CPU. */
void usage_row_cpu_limit(struct table *t, const cJSON *item, const char *path);
/* A sum of limits by an allocatable; painted where they are over-subscribed. */
void usage_row_limit_ratio(struct table *t, double ratio);
/* Painted when it comes near the limit, if there is one (else NaN). */
void usage_row_bytes_against(struct table *t, double bytes, double limit);
/* share of a capacity; painted when it is nearly used up. */
void usage_row_percent(struct table *t, double part, double whole);
/* The share of periods that were throttled; the time where only that is known. */
void usage_row_throttled(struct table *t, const cJSON *item);
/* Kills, painted when there are any. */
void usage_row_oom(struct table *t, const cJSON *item);
/* A statistic of the CPU window, in millicores: "mean", "stddev", "p95", "max". */
double usage_row_cpu_window(const cJSON *item, const char *window, const char *statistic);
/* The larger share of time that was waited for CPU or memory; NaN where neither is known. */
double usage_row_waiting_key(const cJSON *item);
/* The greatest first: throttled share, else NaN. */
double usage_row_throttled_key(const cJSON *item);

#endif
