/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers for the values in cgroup files, v1 and v2. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CPUS_MAX = 8192 }; /* the greatest NR_CPUS of any architecture */

/* All return false, and write nothing, if the text has another format or a number does not fit. */

/* Decimal digits at *text up to one of the characters of `ends` or the end; moves past them. */
bool cgroup_text_digits(const char **text, const char *ends, uint64_t *value);
/* "4096\n" */
bool cgroup_text_number(const char *text, uint64_t *value);
/* "1048576\n"; LIMIT_NONE for "max", "-1" and what v1 shows for no limit, a number near 2^63. */
bool cgroup_text_limit(const char *text, int64_t *limit);
/* The text after "word " at the start of a line, or NULL. */
const char *cgroup_text_line(const char *text, const char *word);
/* The value in the line "key value\n" of a flat keyed file. */
bool cgroup_text_key(const char *text, const char *key, uint64_t *value);
/* v2 cpu.max: "20000 100000\n" or "max 100000\n", in microseconds. */
bool cgroup_text_cpu_max(const char *text, int64_t *quota_ns, int64_t *period_ns);
/*
 * PSI: the total of the line "some avg10=.. avg60=.. avg300=.. total=N\n", or that of "full", in
 * microseconds.
 */
bool cgroup_text_pressure(const char *text, const char *line, uint64_t *total_ns);
/*
 * Takes the next range of a list of CPUs such as "0-3,8\n" and moves past it. False at the end, and
 * in another format, where *text stays before the end.
 */
bool cgroup_text_cpus(const char **text, unsigned int *first, unsigned int *last);
/* A count of microseconds as nanoseconds. */
bool cgroup_text_us_to_ns(uint64_t us, uint64_t *ns);
