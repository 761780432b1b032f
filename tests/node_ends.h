/* SPDX-License-Identifier: Apache-2.0 */
/* How the containers of an image ended, told by the one who ran them. */
#pragma once

#include <stddef.h>

#include "tests/node_bed.h"

struct node_ends;

/* Starts to watch: containers that were made before are not known. */
struct node_ends *node_ends_new(struct node_bed *b);
/* NULL is allowed. */
void node_ends_free(struct node_ends *e);

/*
 * Containers of the image ("localhost/evenkeel-agent") that ended until now; those of them that
 * ended with another status than 0 are printed, and counted in *bad.
 */
size_t node_ends_count(const struct node_ends *e, const char *image, size_t *bad);
