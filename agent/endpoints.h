/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses of a name are sent to, and when the name is looked up again. Pure. */
#ifndef EVENKEEL_AGENT_ENDPOINTS_H
#define EVENKEEL_AGENT_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/resolver.h"

enum { ENDPOINTS_MAX = 16 };

struct endpoints {
	size_t count;
	struct {
		struct address address;
		unsigned int absent; /* lookups in a row that did not have it */
	} members[ENDPOINTS_MAX];
	size_t left_out; /* addresses of the last good answer for which there is no room */
	int64_t due_ns; /* when to look up; INT64_MAX while a lookup is under way */
	int64_t retry_ns; /* the last pause while nobody answered; 0: somebody does */
};

struct endpoints_change {
	bool added; /* else it is gone */
	struct address address;
};

enum { ENDPOINTS_CHANGES_MAX = 2 * ENDPOINTS_MAX };

/* Due at once. */
void endpoints_start(struct endpoints *e, int64_t mono_ns);
/*
 * True when the name is to be looked up now, then the lookup counts as under way. answering: some
 * member acknowledges what it is sent; when none does, the lookup comes soon.
 */
bool endpoints_due(struct endpoints *e, int64_t mono_ns, bool answering);
/*
 * Takes the answer of a lookup: an address that is new joins while there is room for it (room: how
 * many more may join than leave), one that was absent from two good answers in a row leaves.
 * Returns how many changes it wrote, those that leave first.
 */
size_t endpoints_take(struct endpoints *e, const struct resolver_answer *answer, int64_t mono_ns,
		      bool answering, size_t room,
		      struct endpoints_change changes[ENDPOINTS_CHANGES_MAX]);
/* The address could not be sent to after all; the next answer may bring it again. */
void endpoints_forget(struct endpoints *e, const struct address *address);

#endif
