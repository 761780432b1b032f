/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks. Pure code takes time as an argument. */
#pragma once

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000LL
#define NS_PER_MS  1000000LL

static inline int64_t clock_read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* For differences. */
static inline int64_t clock_mono_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* For differences that include suspend. */
static inline int64_t clock_boot_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

/* Unix time: for people and other machines. */
static inline int64_t clock_wall_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

/* CPU time of the calling thread. */
static inline int64_t clock_thread_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* CPU time of the process. */
static inline int64_t clock_process_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}
