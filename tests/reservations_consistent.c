/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every sum and order that is cached beside the reservations, recomputed and compared; for tests.
 */
#include "tests/consistent.h"

#include <inttypes.h>

#include "aggregator/state/reservations_internal.h"

static bool is_sorted(const struct reservations *set, struct error *why)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct reservation *e = &set->sorted[i]->record->entry;

		if (i > 0 && reservations_compare(&set->sorted[i - 1]->record->entry, e) >= 0) {
			error_set(why, "entry %zu (%s/%s) does not follow the one before", i,
				  e->namespace, e->name);
			return false;
		}
		if (reservations_find(set, e->uid) != set->sorted[i] || set->sorted[i]->gone) {
			error_set(why, "entry %zu (%s/%s) is not found by its uid", i, e->namespace,
				  e->name);
			return false;
		}
	}
	return true;
}

static bool are_lists_right(const struct reservations *set, struct error *why)
{
	uint64_t counts[RESERVATIONS_STATES] = {0};

	for (const struct tracked_reservation *r = set->expiring; r; r = r->next) {
		counts[r->record->entry.state]++;
		if (r->next && r->next->record->entry.expires_ns < r->record->entry.expires_ns)
			error_set(why, "%s expires before its turn", r->next->record->entry.name);
	}
	for (const struct tracked_reservation *r = set->bound; r; r = r->next) {
		counts[r->record->entry.state]++;
		if (r->next && r->next->record->entry.generation < r->record->entry.generation)
			error_set(why, "%s is settled after its turn", r->next->record->entry.name);
	}
	for (int s = 0; s < RESERVATIONS_STATES; s++)
		if (counts[s] != set->counters.entries[s])
			error_set(why, "%" PRIu64 " entries are %s, %" PRIu64 " are counted",
				  counts[s], reservations_state_name((enum reservations_state)s),
				  set->counters.entries[s]);
	return !why->text[0];
}

static bool are_counters_right(const struct reservations *set, struct error *why)
{
	const struct reservations_counters *c = &set->counters;
	uint64_t gone = c->released + c->unschedulable + c->expired + c->settled;

	if (HASH_COUNT(set->by_uid) == set->count && c->reserved == gone + set->count)
		return true;
	error_set(why, "%" PRIu64 " were reserved, %" PRIu64 " are gone, %zu there, %u by uid",
		  c->reserved, gone, set->count, HASH_COUNT(set->by_uid));
	return false;
}

bool reservations_is_consistent(struct reservations *set, struct error *why)
{
	bool ok;

	error_set(why, "%s", "");
	pthread_mutex_lock(&set->lock);
	ok = is_sorted(set, why) && are_lists_right(set, why) && are_counters_right(set, why);
	pthread_mutex_unlock(&set->lock);
	return ok;
}
