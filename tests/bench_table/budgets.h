/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that has a budget: in which words it is promised, how much it is, and which row of which bench measures it. */
#ifndef EVENKEEL_TESTS_BENCH_TABLE_BUDGETS_H
#define EVENKEEL_TESTS_BENCH_TABLE_BUDGETS_H

#include <stdbool.h>
#include <stddef.h>

/* A promise, or with a bench, steps or a note one way in which it is measured. */
struct budget {
	const char *what;
	const char *bench, *row; /* that measures it; NULL: no bench does */
	const char *step; /* of .ci/run whose tests show it, or "" for its whole time */
	const char *note; /* where and how, when neither is here */
	double limit;
	bool at_least;
	const char *unit;
};

/* In their order; those without limit and note begin a promise, those that follow are parts of it. */
extern const struct budget budgets[];
extern const size_t budget_count;

#endif
