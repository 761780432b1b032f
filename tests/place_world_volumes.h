/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a random world that is about volumes; for place_world.c. */
#pragma once

#include "shared/buf.h"
#include "tests/place_world.h"

/* Storage classes that many claims share, and volumes that are free. */
void place_world_add_stock(struct place_world *w);
/* A claim, mostly with a class, and with volumes for it. */
void place_world_add_claim(struct place_world *w, const char *namespace, const char *name);

/* --- place_world.c */

/* Aborts where it is no JSON: a mistake of the world's. */
cJSON *place_world_parse(const char *text);
/* Reads what the buffer holds, and frees it. */
cJSON *place_world_parse_buf(struct buf *b);
void place_world_add_other(struct place_world *w, cJSON *object); /* owned */
