/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/reservations_watch.h"

#include "aggregator/state/reservations_internal.h"

static struct {
	const pthread_mutex_t *lock; /* fixed after start, as is the clock */
	int64_t (*clock_ns)(void);
	int64_t locked_ns, longest_ns; /* under that lock */
} watch;

/* The linker makes these names. NOLINTBEGIN(bugprone-reserved-identifier) */
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	int rc = __real_pthread_mutex_lock(lock);

	if (lock == watch.lock)
		watch.locked_ns = watch.clock_ns();
	return rc;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	if (lock == watch.lock) {
		int64_t held_ns = watch.clock_ns() - watch.locked_ns;

		watch.longest_ns = held_ns > watch.longest_ns ? held_ns : watch.longest_ns;
	}
	return __real_pthread_mutex_unlock(lock);
}
/* NOLINTEND(bugprone-reserved-identifier) */

void reservations_watch(const struct reservations *set, int64_t (*clock_ns)(void))
{
	watch.lock = set ? &set->lock : NULL;
	watch.clock_ns = clock_ns;
	watch.longest_ns = 0;
}

int64_t reservations_watch_longest_ns(void)
{
	return watch.longest_ns;
}
