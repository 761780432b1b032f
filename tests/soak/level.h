/* SPDX-License-Identifier: Apache-2.0 */
/* What of a process should stay level, read now and then. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct level {
	double seconds, resident_mib, descriptors, threads, cpu_seconds;
};

/*
 * Reads it, prints it, and adds it to the bench's JSON; begin_ns: the monotonic time that seconds
 * count from.
 */
struct level level_read(pid_t pid, int64_t begin_ns);
/* Share of one core, in percent, between the first reading and the last. */
double level_cpu_percent(const struct level *of, size_t count);
/* Mean of the last quarter. */
double level_resident_mib(const struct level *of, size_t count);
/*
 * Rows of a report, each beginning with `prefix`; with budgets of CPU and memory where they hold
 * for this size.
 */
void level_report(const struct level *of, size_t count, const char *prefix, bool budgets);
