/* SPDX-License-Identifier: Apache-2.0 */
/*
 * People and schedulers who ask an aggregator under load one question after the other, and how long
 * each had to wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/stack.h"

enum asker_question {
	ASKER_SCORES,
	ASKER_PRIORITIZE,
	ASKER_NODES,
	ASKER_PODS,
	ASKER_WATCHER,
	ASKER_QUESTIONS
};

struct asker;

/* Asks aggregator 0 about the `nodes` of a fleet's cluster. */
struct asker *asker_new(const struct stack *s, uint32_t nodes);
void asker_free(struct asker *a); /* NULL is allowed */
/*
 * Asks the next question, on a connection that is kept; waits for the answer and reads it to its
 * end.
 */
void asker_ask(struct asker *a);
/* The fewest good answers that any question got. */
size_t asker_fewest(const struct asker *a);
/* How many questions were asked. */
size_t asker_asked(const struct asker *a);
/* How long answers took at a share q of them, in milliseconds; NAN without any. */
double asker_quantile(const struct asker *a, enum asker_question question, double q);
/* Rows of a report, each beginning with `prefix`; with budgets where they hold for this size. */
void asker_report(const struct asker *a, const char *prefix, bool budgets);
