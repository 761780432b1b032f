/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses behind a name that intervals are sent to, and when to look it up again. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/resolver.h"

enum { ENDPOINTS_MAX = 16 };

struct endpoints {
	size_t count;
	struct {
		struct address address;
		unsigned int absent; /* successful lookups in a row without it */
	} members[ENDPOINTS_MAX];
	size_t left_out; /* addresses of the last answer beyond the room */
	int64_t due_ns; /* of the next lookup; INT64_MAX during a lookup */
	int64_t retry_ns; /* the last pause without an answering address; 0: one answers */
};

struct endpoints_change {
	bool added; /* else it is gone */
	struct address address;
};

enum { ENDPOINTS_CHANGES_MAX = 2 * ENDPOINTS_MAX };

/* Due at once. */
void endpoints_start(struct endpoints *e, int64_t mono_ns);
/*
 * True when a lookup is due, which then counts as running. answering: some address acknowledges
 * intervals; without one the next lookup comes soon.
 */
bool endpoints_due(struct endpoints *e, int64_t mono_ns, bool answering);
/*
 * Takes the answer of a lookup: adds new addresses (at most `room` more than leave), and drops
 * those missing from two answers in a row. Returns the number of changes, removals first.
 */
size_t endpoints_take(struct endpoints *e, const struct resolver_answer *answer, int64_t mono_ns,
		      bool answering, size_t room,
		      struct endpoints_change changes[ENDPOINTS_CHANGES_MAX]);
/* Drops an address that could not be opened; the next answer may add it again. */
void endpoints_forget(struct endpoints *e, const struct address *address);
