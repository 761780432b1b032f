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

int helper_start(struct helper *h, const char *what, void *(*run)(void *arg), void *arg,
		 struct error *error)
{
	int rc;

	pthread_mutex_init(&h->lock, NULL);
	thread_cond_init(&h->news);
	h->started = true;
	rc = thread_start(&h->thread, 0, run, arg);
	if (!rc)
		return 0;
	h->started = false;
	pthread_cond_destroy(&h->news);
	pthread_mutex_destroy(&h->lock);
	return error_system(error, rc, "no thread for %s", what);
}

void helper_stop(struct helper *h)
{
	if (!h->started)
		return;
	pthread_mutex_lock(&h->lock);
	atomic_store(&h->stopping, true);
	pthread_cond_signal(&h->news);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	h->started = false;
	pthread_cond_destroy(&h->news);
	pthread_mutex_destroy(&h->lock);
}

void helper_wake(struct helper *h)
{
	if (!h->started)
		return;
	pthread_mutex_lock(&h->lock);
	h->due = true;
	pthread_cond_signal(&h->news);
	pthread_mutex_unlock(&h->lock);
}

bool helper_wait(struct helper *h, int64_t until_ns)
{
	bool due;

	pthread_mutex_lock(&h->lock);
	while (!h->due && !atomic_load(&h->stopping) &&
	       thread_cond_wait(&h->news, &h->lock, until_ns))
		continue;
	due = h->due;
	h->due = false;
	pthread_mutex_unlock(&h->lock);
	return due || !atomic_load(&h->stopping);
}

void thread_hold_ends(bool hold)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &ends, NULL);
}

bool thread_end_is_held(void)
{
	sigset_t held;

	sigpending(&held);
	return sigismember(&held, SIGTERM) || sigismember(&held, SIGINT);
}
