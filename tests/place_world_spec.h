/* SPDX-License-Identifier: Apache-2.0 */
/* Random specs of pods, for place_world.c. */
#pragma once

#include "shared/buf.h"
#include "tests/place_world.h"

/* One of these strings. */
#define PICK(w, ...)                                                                               \
	((const char *const[]){__VA_ARGS__}[place_world_draw(                                      \
		(w), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))])

/* The members of a pod's spec, without braces, volumes and nodeName. */
void place_world_write_spec(struct place_world *w, struct buf *b);
