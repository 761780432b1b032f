/* SPDX-License-Identifier: Apache-2.0 */
/* How benchmarks report: a table for people, a line of JSON per row for comparing commits. */
#ifndef EVENKEEL_TESTS_BENCH_REPORT_H
#define EVENKEEL_TESTS_BENCH_REPORT_H

#include <stddef.h>

/* Prints the heading and truncates build/bench/NAME.json. */
void bench_begin(const char *name);
/*
 * One row. budget: the most that is allowed, or with at_least the least; NAN: nothing is promised. The verdict is
 * "ok" or "over"; it never fails the program, since the machine decides.
 */
void bench_row(const char *what, const char *unit, double budget, int at_least, double measured);
void bench_end(void);

/* Sorts values and returns the middle one. */
double bench_median(double *values, size_t count);

#endif
