/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two aggregators that hear one agent under load: whatever befalls the first, its windows are to
 * equal the second's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/stack.h"

enum { DISTURBED, UNDISTURBED };

struct undisturbed {
	struct stack *stack;
	pid_t load;
};

/*
 * Nothing of the stack runs yet, but the load does: bursts, so that windows have a deviation to
 * compare. 0, or -1.
 */
int undisturbed_open(struct undisturbed *u);
void undisturbed_close(struct undisturbed *u);
/* CPU samples of the node in an answer of /v1/nodes over 5 minutes; not a number: it has none. */
double undisturbed_samples_of(const cJSON *list);
/* Until the undisturbed one has so many, for so many seconds at most. */
bool undisturbed_await_samples(const struct undisturbed *u, double samples, double seconds);
/*
 * Asks both for path once they stand at the same interval, within so many seconds, and compares all
 * that was measured: to the last digit, for every item of the list. Says what differs.
 */
bool undisturbed_equal(const struct undisturbed *u, const char *path, double seconds);
/*
 * Until both have published what they know by now. An aggregator that hears nothing does so every
 * 10 s.
 */
bool undisturbed_await_views(const struct undisturbed *u, double seconds);
/*
 * The same for whole lists, page by page ("nodes", "pods"), at once: of two that are told no more.
 * How many items they have is written in any case.
 */
bool undisturbed_equal_lists(const struct undisturbed *u, const char *kind, size_t *items);
