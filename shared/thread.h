/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helper threads, and conditions whose waits end by the monotonic clock. Signals stay with the loop
 * thread: every other thread blocks all of them.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/error.h"

/* Starts a thread with all signals blocked; stack_bytes 0: the default size. 0 or -errno. */
int thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *arg), void *arg);

void thread_cond_init(pthread_cond_t *cond);
/* False: the monotonic time came. */
bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns);

/* --- a thread that waits for its next turn; zeroes: not started */

struct helper {
	pthread_t thread;
	bool started;
	atomic_bool stopping;
	pthread_mutex_t lock;
	pthread_cond_t news; /* with the lock */
	bool due; /* under lock */
};

/* what: "plans", for the reason. -errno with the reason: nothing to stop. */
int helper_start(struct helper *h, const char *what, void *(*run)(void *arg), void *arg,
		 struct error *error);
/* Ends the wait and the thread; nothing if it was not started. */
void helper_stop(struct helper *h);
/* The next or running helper_wait() ends at once; nothing if it is not started. */
void helper_wake(struct helper *h);
/*
 * On the thread: waits for helper_wake() until that monotonic time; INT64_MAX: without end. False:
 * it is to stop. A wake before the stop counts.
 */
bool helper_wait(struct helper *h, int64_t until_ns);

/*
 * Holds SIGTERM and SIGINT back, or lets them through: a process without handlers that is the first
 * one of a container would lose them. For a thread and those that it starts.
 */
void thread_hold_ends(bool hold);
bool thread_end_is_held(void); /* one of them was sent */
