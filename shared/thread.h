/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helper threads, and conditions whose waits end by the monotonic clock. Signals stay with the loop
 * thread: every other thread blocks all of them.
 */
#ifndef EVENKEEL_SHARED_THREAD_H
#define EVENKEEL_SHARED_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Starts a thread with all signals blocked, and with a stack of stack_bytes; 0: the default size.
 * 0 or -errno.
 */
int thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *arg), void *arg);

void thread_cond_init(pthread_cond_t *cond);
/* False: the monotonic time came. */
bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns);

#endif
