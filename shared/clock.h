/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks, read at the edges only: everything else takes time as an argument. */
#ifndef EVENKEEL_SHARED_CLOCK_H
#define EVENKEEL_SHARED_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000LL
#define NS_PER_MS  1000000LL

/* CLOCK_MONOTONIC: for differences. */
static inline int64_t clock_mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* CLOCK_BOOTTIME: for differences that go on while the machine sleeps. */
static inline int64_t clock_boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* CLOCK_REALTIME, Unix time: for what people and other machines read. */
static inline int64_t clock_wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* CLOCK_THREAD_CPUTIME_ID: what the calling thread has computed, whatever it waited for. */
static inline int64_t clock_thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

#endif
