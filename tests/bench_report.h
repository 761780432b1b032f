/* SPDX-License-Identifier: Apache-2.0 */
/* How benchmarks report: a table for people, a line of JSON per row for comparing commits. */
#pragma once

#include <stddef.h>

#include "shared/error.h"

/* Prints the heading and truncates build/bench/NAME.json. */
void bench_begin(const char *name);
/* The same with the JSON in `path`: 0, or -errno with the reason where that cannot be written. */
int bench_begin_at(const char *name, const char *path, struct error *error);
/*
 * One row. budget: the most that is allowed, or with at_least the least; NAN: nothing is promised.
 * The verdict is "ok" or "over"; it never fails the program, since the machine decides.
 */
void bench_row(const char *what, const char *unit, double budget, int at_least, double measured);
/*
 * A row of one of several things that are measured alike: the label is `prefix` and `what`, joined;
 * budget: at most.
 */
void bench_row_of(const char *prefix, const char *what, const char *unit, double budget,
		  double measured);
void bench_end(void);

/*
 * Rows of how long something took, each time: the median, the 99th percentile where there were at
 * least 100 times, and the longest; JSON has their number. The budget holds for the percentile, and
 * where there is none for the longest. Sorts the times.
 */
void bench_waits(const char *what, const char *unit, double budget, double *times, size_t count);
/*
 * A line of JSON that is no row: what was read at one moment of a bench. Names and as many values.
 */
void bench_reading(const char *const *names, const double *values, size_t count);

/* The value that a share q of them is at most; NAN of none. Sorts values. */
double bench_quantile(double *values, size_t count, double q);

/* Sorts values and returns the middle one. */
double bench_median(double *values, size_t count);
