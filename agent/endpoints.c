/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name is looked up every 30 s; after a failed lookup, or while no address answers, after 1, 2,
 * 4, .. 30 s. A failed lookup changes no address.
 */
#include "agent/endpoints.h"

#include <string.h>

#include "shared/arith.h"

#define NS_PER_S  1000000000LL
#define PERIOD_NS (30 * NS_PER_S)
#define RETRY_NS  NS_PER_S

/* An address leaves after so many answers without it: one name server may lag. */
enum { ABSENT_MAX = 2 };

void endpoints_start(struct endpoints *e, int64_t mono_ns)
{
	*e = (struct endpoints){.due_ns = mono_ns};
}

bool endpoints_due(struct endpoints *e, int64_t mono_ns, bool answering)
{
	if (e->due_ns == INT64_MAX)
		return false;
	/* The last address has just stopped to answer. */
	if (!answering && !e->retry_ns && e->due_ns > mono_ns + RETRY_NS) {
		e->retry_ns = RETRY_NS;
		e->due_ns = mono_ns + RETRY_NS;
	}
	if (mono_ns < e->due_ns)
		return false;
	e->due_ns = INT64_MAX;
	return true;
}

static bool has(const struct resolver_answer *answer, const struct address *address)
{
	for (size_t i = 0; i < answer->count; i++) {
		if (!strcmp(answer->addresses[i].text, address->text))
			return true;
	}
	return false;
}

static size_t find(const struct endpoints *e, const struct address *address)
{
	size_t i = 0;

	while (i < e->count && strcmp(e->members[i].address.text, address->text) != 0)
		i++;
	return i;
}

static void remove_at(struct endpoints *e, size_t at)
{
	e->count--;
	memmove(&e->members[at], &e->members[at + 1], (e->count - at) * sizeof(e->members[0]));
}

static size_t remove_absent(struct endpoints *e, const struct resolver_answer *answer,
			    struct endpoints_change *changes)
{
	size_t removed = 0, i = 0;

	while (i < e->count) {
		if (has(answer, &e->members[i].address))
			e->members[i].absent = 0;
		else
			e->members[i].absent++;
		if (e->members[i].absent < ABSENT_MAX) {
			i++;
			continue;
		}
		changes[removed++] = (struct endpoints_change){.address = e->members[i].address};
		remove_at(e, i);
	}
	return removed;
}

static size_t add_new(struct endpoints *e, const struct resolver_answer *answer, size_t room,
		      struct endpoints_change *changes)
{
	size_t added = 0;

	e->left_out = answer->left_out;
	for (size_t i = 0; i < answer->count; i++) {
		if (find(e, &answer->addresses[i]) < e->count)
			continue;
		if (added >= room || e->count == ENDPOINTS_MAX) {
			e->left_out++;
			continue;
		}
		e->members[e->count].address = answer->addresses[i];
		e->members[e->count++].absent = 0;
		changes[added++] = (struct endpoints_change){true, answer->addresses[i]};
	}
	return added;
}

size_t endpoints_take(struct endpoints *e, const struct resolver_answer *answer, int64_t mono_ns,
		      bool answering, size_t room,
		      struct endpoints_change changes[ENDPOINTS_CHANGES_MAX])
{
	size_t removed = 0, added = 0;

	if (!answer->failed) {
		removed = remove_absent(e, answer, changes);
		added = add_new(e, answer, room + removed, changes + removed);
	}
	if (!answer->failed && (answering || added))
		e->retry_ns = 0;
	else
		e->retry_ns = e->retry_ns ? int_min(2 * e->retry_ns, PERIOD_NS) : RETRY_NS;
	e->due_ns = mono_ns + (e->retry_ns ? e->retry_ns : PERIOD_NS);
	return removed + added;
}

void endpoints_forget(struct endpoints *e, const struct address *address)
{
	size_t at = find(e, address);

	if (at < e->count)
		remove_at(e, at);
}
