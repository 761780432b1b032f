/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of nodes and of pods as tables: what both have in common. How fresh rows are, the exit code
 * that follows from it, cells made of measured values, and the command that fetches the list.
 */
#pragma once

#include "aggregator/cli/cli.h"
#include "aggregator/cli/columns.h"
#include "aggregator/cli/pages.h"

/* Apart is what cannot be measured, as nothing runs: it is neither fresh nor missing. */
enum row_state { ROW_FRESH, ROW_LATE, ROW_EXPIRED, ROW_NONE, ROW_APART, ROW_STATES };

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
/* The exit code by what was added, with the reason. */
int usage_tally_exit(const struct usage_tally *t, struct error *reason);

/* --- the table */

struct usage_table {
	const struct usage_kind *kind; /* borrowed, as is the next */
	const struct cli *cli;
	struct row row; /* without an item */
	struct usage_tally tally;
	bool namespaced; /* any row has a namespace */
	bool stale; /* any is not fresh */
	bool known; /* any is known to a Kubernetes API */
};

/* What a table shows. */
struct usage_kind {
	const char *what; /* "node", "pod" */
	const struct column *columns;
	const struct csv_field *fields;
	list_item *item; /* the context is the struct usage_table */
	/* Adds the row of the list's total, which may be NULL; NULL: none. */
	void (*add_total)(struct usage_table *t, const cJSON *total);
	/* Of a column that no member of struct column leaves out. */
	bool (*is_shown)(const struct usage_table *t, const struct column *c, size_t index);
	/* The exit code where no item was there, or -1: that of the tally; NULL likewise. */
	int (*judge_none)(struct cli *cli);
};

extern const struct usage_kind nodes_kind, pods_kind;

void usage_table_init(struct usage_table *t, const struct usage_kind *kind, const struct cli *cli);
void usage_table_fini(struct usage_table *t);
/* A row of this name that is sorted by the key; age is in seconds. */
void usage_table_add(struct usage_table *t, const cJSON *item, const char *name, double key,
		     enum row_state state, double age);
/* Appends what was added, and the total, to cli->out; the exit code, with cli->reason. */
int usage_table_finish(struct usage_table *t, const cJSON *total, struct cli *cli);
/*
 * GETs path, which is then empty, as list_fetch() does and shows it as the options say; the exit
 * code, with cli->reason.
 */
int usage_table_run(const struct usage_kind *kind, struct cli *cli, struct buf *path);

/* --- what rows are made of */

#define USAGE_CPU		"usage.cpuMillicores.latest.value"
#define USAGE_MEMORY		"usage.memoryBytes.latest.value"
#define USAGE_WORKSET		"usage.workingSetBytes.latest.value"
#define USAGE_SWAP		"usage.swapBytes.latest.value"
#define USAGE_PIDS		"usage.pids.latest.value"
#define USAGE_WINDOW(statistic) "usage.cpuMillicores.windows.*." statistic

/* What rows are sorted by: the larger of two shares, or amounts where `of` is NULL. */
struct usage_key {
	const char *at, *of;
	const char *other, *other_of;
};

/* NaN where neither is known. */
double usage_key_of(const struct cli *cli, const cJSON *item, const struct usage_key *key);

/* "3s", "42s late", "6m10s expired", "never", "-" */
void usage_cell_age(const struct row *r, const struct column *c);
/* "180us", "1.2ms", "2.5s", "0" */
void usage_cell_micros(const struct row *r, const struct column *c);
/* "12/100", or "12" without a limit; painted when it comes near it. */
void usage_cell_count_of(const struct row *r, const struct column *c);
/* "12%/3%" for CPU and memory: at, and of. */
void usage_cell_two_shares(const struct row *r, const struct column *c);
/* The share of periods that were throttled; the time where only that is known. */
void usage_cell_throttled(const struct row *r, const struct column *c);
/* How a share of a limit is painted. */
enum table_paint usage_pressure(double share);

/* Of the last 5 minutes, for -o csv. */
/* clang-format off */
#define CSV_CONTENTION \
	{"throttled_ratio", "contention.throttledRatio"}, \
	{"throttled_seconds", "contention.throttledSeconds"}, \
	{"waiting_cpu_ratio", "contention.cpu"}, \
	{"waiting_memory_ratio", "contention.memory"}, \
	{"stalled_cpu_ratio", "contention.cpuStalledRatio"}, \
	{"stalled_memory_ratio", "contention.memoryStalledRatio"}, \
	{"oom_kills", "contention.oomKills"}
/* clang-format on */
