/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of users: what several threads hold is freed by the last one that drops it. */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

/* One user more; the caller is or knows one. */
static inline void refs_hold(atomic_uint *users)
{
	unsigned int before = atomic_fetch_add_explicit(users, 1, memory_order_relaxed);

	assert(before > 0);
}

/* One user less. True: that was the last one, and the caller frees. */
static inline bool refs_drop(atomic_uint *users)
{
	unsigned int before = atomic_fetch_sub_explicit(users, 1, memory_order_acq_rel);

	assert(before > 0);
	return before == 1;
}
