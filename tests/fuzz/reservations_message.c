/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another aggregator tells of its reservations: refused with a reason, and nothing changes; or
 * taken over within the bounds. A reservation that is told again reads as the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "aggregator/state/reservations_message.h"
#include "tests/consistent.h"

#define NOW_NS (1700000000 * 1000000000LL)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct reservations *set)
{
	struct error why;

	if (!reservations_is_consistent(set, &why))
		abort();
}

static void tell_again(struct reservations *set)
{
	struct reservations *again = reservations_new();
	struct reservations_copy *all = reservations_take(set, NOW_NS);
	struct buf body = BUF_INIT;
	struct error why;
	size_t count;

	reservations_message_begin(&body, 1);
	for (size_t i = 0; i < all->count; i++)
		reservations_message_add(&body, all->of[i]->uid, all->of[i], NOW_NS);
	assert(!reservations_message_take(again, &body, 1, NOW_NS, &count, &why));
	assert(count == all->count);
	for (size_t i = 0; i < all->count; i++) {
		const struct reservation *e = reservations_hold(again, all->of[i]->uid);

		assert(e && resources_equal(&e->requests, &all->of[i]->requests));
		assert(e->expires_ns == all->of[i]->expires_ns && e->state == all->of[i]->state);
		reservation_drop(e);
	}
	buf_fini(&body);
	reservations_copy_drop(all);
	reservations_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reservations *set = reservations_new();
	const struct buf body = {(char *)data, size, 0};
	struct error why = {""};
	size_t count;

	if (reservations_message_take(set, &body, 0, NOW_NS, &count, &why))
		assert(why.text[0] && !count);
	check(set);
	tell_again(set);
	reservations_free(set);
	return 0;
}
