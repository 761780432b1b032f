/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookups follow each other in 30 s. While a lookup fails, or none of the addresses answers, in 1,
 * 2, 4, .. 30 s: the service may just have moved. A failed lookup changes nothing else: those who
 * were there may still be.
 */
#include "agent/roster.h"

#include <string.h>

#define NS_PER_S  1000000000LL
#define PERIOD_NS (30 * NS_PER_S)
#define RETRY_NS  NS_PER_S

/*
 * So many good answers in a row without it, and an address is gone: one may come from a server that
 * lags.
 */
enum { ABSENT_MAX = 2 };

void roster_start(struct roster *r, int64_t mono_ns)
{
	*r = (struct roster){.due_ns = mono_ns};
}

static int64_t at_most_period(int64_t ns)
{
	return ns < PERIOD_NS ? ns : PERIOD_NS;
}

bool roster_due(struct roster *r, int64_t mono_ns, bool answering)
{
	if (r->due_ns == INT64_MAX)
		return false;
	/* They have just stopped to answer. */
	if (!answering && !r->retry_ns && r->due_ns > mono_ns + RETRY_NS) {
		r->retry_ns = RETRY_NS;
		r->due_ns = mono_ns + RETRY_NS;
	}
	if (mono_ns < r->due_ns)
		return false;
	r->due_ns = INT64_MAX;
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

static size_t find(const struct roster *r, const struct address *address)
{
	size_t i = 0;

	while (i < r->count && strcmp(r->members[i].address.text, address->text) != 0)
		i++;
	return i;
}

static void remove_at(struct roster *r, size_t at)
{
	r->count--;
	memmove(&r->members[at], &r->members[at + 1], (r->count - at) * sizeof(r->members[0]));
}

static size_t remove_absent(struct roster *r, const struct resolver_answer *answer,
			    struct roster_change *changes)
{
	size_t removed = 0, i = 0;

	while (i < r->count) {
		if (has(answer, &r->members[i].address))
			r->members[i].absent = 0;
		else
			r->members[i].absent++;
		if (r->members[i].absent < ABSENT_MAX) {
			i++;
			continue;
		}
		changes[removed++] = (struct roster_change){.address = r->members[i].address};
		remove_at(r, i);
	}
	return removed;
}

static size_t add_new(struct roster *r, const struct resolver_answer *answer, size_t room,
		      struct roster_change *changes)
{
	size_t added = 0;

	r->left_out = answer->left_out;
	for (size_t i = 0; i < answer->count; i++) {
		if (find(r, &answer->addresses[i]) < r->count)
			continue;
		if (added >= room || r->count == ROSTER_MAX) {
			r->left_out++;
			continue;
		}
		r->members[r->count].address = answer->addresses[i];
		r->members[r->count++].absent = 0;
		changes[added++] = (struct roster_change){true, answer->addresses[i]};
	}
	return added;
}

size_t roster_take(struct roster *r, const struct resolver_answer *answer, int64_t mono_ns,
		   bool answering, size_t room, struct roster_change changes[ROSTER_CHANGES_MAX])
{
	size_t removed = 0, added = 0;

	if (!answer->failed) {
		removed = remove_absent(r, answer, changes);
		added = add_new(r, answer, room + removed, changes + removed);
	}
	if (!answer->failed && (answering || added))
		r->retry_ns = 0;
	else
		r->retry_ns = r->retry_ns ? at_most_period(2 * r->retry_ns) : RETRY_NS;
	r->due_ns = mono_ns + (r->retry_ns ? r->retry_ns : PERIOD_NS);
	return removed + added;
}

void roster_forget(struct roster *r, const struct address *address)
{
	size_t at = find(r, address);

	if (at < r->count)
		remove_at(r, at);
}
