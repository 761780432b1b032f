/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest decisions about drains, and reports of waves. The planner adds rows, and HTTP threads
 * those of the actuator; HTTP threads read them, and the saver takes those that are not in the
 * database yet.
 *
 * Any thread; one mutex, held for copies of pointers only. Rows are numbered from 1, without gaps,
 * over restarts as well.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/drain/drain.h"

enum { DRAIN_LOG_MAX = 10000 };

/* The event of the actuator's reports. Their text is a sentence, a line break, and the report in JSON. */
#define DRAIN_WAVE_REPORT "waveReport"

/* Immutable, in one block; held by whoever has it. */
struct drain_row {
	atomic_uint users;
	int64_t time_ns;
	const char *event, *reason, *node, *text; /* "" where there is none */
	bool verdict; /* struct drain_record; false of rows of a database */
};

/* A copy, with one user. */
struct drain_row *drain_row_new(const struct drain_row *of);
void drain_row_drop(struct drain_row *r); /* NULL is allowed */

/* Some rows, oldest first; the first has that number. */
struct drain_rows {
	uint64_t first;
	size_t count;
	bool restored; /* drain_log_restore() has given them numbers */
	struct drain_row **of; /* owned; each held */
};

void drain_rows_fini(struct drain_rows *r);

struct drain_log;
struct drain_log *drain_log_new(void);
void drain_log_free(struct drain_log *l); /* NULL is allowed */
/* Behind all others; beyond DRAIN_LOG_MAX the oldest go. The row is copied. */
void drain_log_put(struct drain_log *l, const struct drain_row *of);
void drain_log_add(struct drain_log *l, const struct drain_record *of, size_t count);
/*
 * Puts the rows of a database, of which the last has that number, before all others, which get new
 * numbers. A report of a wave that is among both stays once. Takes the rows over, not the array. Once.
 */
void drain_log_restore(struct drain_log *l, struct drain_row **of, size_t count, uint64_t last);
/* All behind that number (0: all). The caller ends it with drain_rows_fini(). */
void drain_log_read(struct drain_log *l, uint64_t behind, struct drain_rows *out);
