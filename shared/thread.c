/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/thread.h"

#include <signal.h>

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
