/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every sum and order that the ledger keeps beside its entries, recomputed and compared; for tests.
 */
#include "tests/consistent.h"

#include <inttypes.h>

#include "aggregator/state/ledger_internal.h"

static bool is_sorted(const struct ledger *l, struct reason *why)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct ledger_entry *e = &l->sorted[i]->record->entry;

		if (i > 0 && ledger_compare(&l->sorted[i - 1]->record->entry, e) >= 0) {
			reason_set(why, "entry %zu (%s/%s) does not follow the one before", i,
				   e->namespace, e->name);
			return false;
		}
		if (ledger_find(l, e->uid) != l->sorted[i] || l->sorted[i]->gone) {
			reason_set(why, "entry %zu (%s/%s) is not found by its uid", i,
				   e->namespace, e->name);
			return false;
		}
	}
	return true;
}

static bool are_lists_right(const struct ledger *l, struct reason *why)
{
	uint64_t counts[LEDGER_STATES] = {0};

	for (const struct reservation *r = l->expiring; r; r = r->next) {
		counts[r->record->entry.state]++;
		if (r->next && r->next->record->entry.expires_ns < r->record->entry.expires_ns)
			reason_set(why, "%s expires before its turn", r->next->record->entry.name);
	}
	for (const struct reservation *r = l->bound; r; r = r->next) {
		counts[r->record->entry.state]++;
		if (r->next && r->next->record->entry.generation < r->record->entry.generation)
			reason_set(why, "%s is settled after its turn",
				   r->next->record->entry.name);
	}
	for (int s = 0; s < LEDGER_STATES; s++)
		if (counts[s] != l->counters.entries[s])
			reason_set(why, "%" PRIu64 " entries are %s, %" PRIu64 " are counted",
				   counts[s], ledger_state_name((enum ledger_state)s),
				   l->counters.entries[s]);
	return !why->text[0];
}

static bool are_counters_right(const struct ledger *l, struct reason *why)
{
	const struct ledger_counters *c = &l->counters;
	uint64_t gone = c->released + c->unschedulable + c->expired + c->settled;

	if (HASH_COUNT(l->by_uid) == l->count && c->reserved == gone + l->count)
		return true;
	reason_set(why, "%" PRIu64 " were reserved, %" PRIu64 " are gone, %zu there, %u by uid",
		   c->reserved, gone, l->count, HASH_COUNT(l->by_uid));
	return false;
}

bool ledger_is_consistent(struct ledger *l, struct reason *why)
{
	bool ok;

	reason_set(why, "%s", "");
	pthread_mutex_lock(&l->lock);
	ok = is_sorted(l, why) && are_lists_right(l, why) && are_counters_right(l, why);
	pthread_mutex_unlock(&l->lock);
	return ok;
}
