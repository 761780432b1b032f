/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk through a large JSON text, member by member and item by item, with one item's tree at a
 * time.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "shared/error.h"

enum { SNAPSHOT_KEY_MAX = 64 };

/* A place in a text; copied to come back to it. All is borrowed. */
struct snapshot_text {
	const char *name; /* of the file, for reasons */
	const char *start, *at, *end;
	struct error *error;
};

/* Skips blanks, and "---" where documents are told apart so; false: nothing else is left. */
bool snapshot_text_more(struct snapshot_text *t);
/* Past an opening bracket. -EINVAL with the reason, as everywhere here: it says "FILE:LINE: ..". */
int snapshot_text_open(struct snapshot_text *t, char bracket);
/*
 * After snapshot_text_open() with *first true: 1 at the value of the next member, with its key
 * (longer ones are cut), or at the next item; 0 behind the closing bracket. Whatever it stands at
 * must be passed before the next call.
 */
int snapshot_text_member(struct snapshot_text *t, bool *first, char key[SNAPSHOT_KEY_MAX]);
int snapshot_text_item(struct snapshot_text *t, bool *first);
/* Past the value; what is in it is not looked at. */
int snapshot_text_skip(struct snapshot_text *t);
/* Past the value, with its tree, which is the caller's. */
int snapshot_text_parse(struct snapshot_text *t, cJSON **json);
/* A reason about where it stands. */
int snapshot_text_fail(const struct snapshot_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
