/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/thread.h"

#include <errno.h>
#include <signal.h>

#include "shared/clock.h"

int thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *arg), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_attr_init(&attr);
	if (stack_bytes)
		pthread_attr_setstacksize(&attr, stack_bytes);
	/* A new thread inherits the mask of its creator. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -error;
}

void thread_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns)
{
	const struct timespec until = {until_ns / NS_PER_SEC, until_ns % NS_PER_SEC};

	return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}
