/* SPDX-License-Identifier: Apache-2.0 */
/* How the containers of a namespace ended, told by a watch that began before they did. */
#ifndef EVENKEEL_TESTS_NODE_ENDS_H
#define EVENKEEL_TESTS_NODE_ENDS_H

#include <stddef.h>

#include "tests/node_bed.h"

struct node_ends;

/* Starts to watch. The namespace need not be there yet. */
struct node_ends *node_ends_new(struct node_bed *b, const char *namespace);
/* NULL is allowed. */
void node_ends_free(struct node_ends *e);

/*
 * Counts the pods whose names begin so and which are gone, with the end of their one container; ends that were no success, or are not known, are printed and counted in
 * *bad.
 */
size_t node_ends_count(const struct node_ends *e, const char *prefix, size_t *bad);

#endif
