/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole aggregator under a fleet: how benchmarks and soaks start both, await them and tell what
 * came of it.
 */
#pragma once

#include "tests/fleet/launch.h"

/* Intervals that aggregator 0 applied. */
double load_applied(const struct stack *s);
/* Nodes that it has heard within the last 30 s. */
double load_fresh(const struct stack *s);
/*
 * Seconds from begin_ns (monotonic) until all nodes are fresh; NAN, with both logs printed: not
 * within `timeout_s`.
 */
double load_await_fresh(struct stack *s, double nodes, int64_t begin_ns, double timeout_s);

/* A number of a fleet's report by its path; NAN when it is not there. */
double load_number(const cJSON *report, const char *path);
/*
 * Rows of a fleet's report. unaccounted: intervals of which nobody knows what became of them; NAN
 * where the aggregator was restarted, and its count with it.
 */
void load_report(const cJSON *report, const char *prefix, double unaccounted);
/*
 * Acks of one phase of the fleet: its median, percentile and longest as rows; budget_ms: of the
 * percentile.
 */
void load_report_acks(const cJSON *report, int phase, const char *what, double budget_ms);
/*
 * The same, each row beginning with `prefix`, of those that came while nothing had to be sent again
 * apart from the others, which waited for that; budget_ms: of the former.
 */
void load_report_kinds(const cJSON *report, int phase, const char *prefix, double budget_ms);
/* A number of a phase's acks: p50, p90, p99, max, count; the same of firstTry and again. */
double load_acks(const cJSON *report, int phase, const char *name);
/*
 * Intervals made that were neither applied nor are told as lost; negative: more were applied than
 * can have been. What was sent and not answered, and what was merged with another, may have been
 * applied or not.
 */
double load_unaccounted(const cJSON *report, double applied);
