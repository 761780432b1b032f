/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that has a budget: in which words it is promised, how much it is, and which row of
 * which bench measures it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A promise, or with a bench or a step one way in which it is measured. */
struct budget {
	const char *what;
	const char *bench, *row; /* that measures it; NULL: no bench does */
	/*
	 * Of .ci/run, "" for all of it: the budget is of its minutes, or without a unit its tests
	 * show what is promised.
	 */
	const char *step;
	const char *note; /* who shows it, where no bench does */
	double limit;
	bool at_least;
	const char *unit;
};

/*
 * In their order; those without bench and step begin a promise, those that follow are parts of it.
 */
extern const struct budget budgets[];
extern const size_t budget_count;
