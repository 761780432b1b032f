/* SPDX-License-Identifier: Apache-2.0 */
/*
 * getaddrinfo() blocks while name servers are silent (5 s per attempt and server) and cannot be
 * cancelled, so each name has a thread.
 *
 *	loop                        thread
 *	ask: wanted = true   -->    waits for wanted, looks up without the lock
 *	take: answer         <--    answer, then the eventfd
 *
 * Both share one struct with two holders, and the last one frees it. Closing waits for an idle
 * thread and detaches one that hangs in a lookup; that thread ends by itself.
 *
 * What can fail: starting the thread. A failed lookup is an answer.
 */
#include "shared/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/thread.h"

#define JOIN_TIMEOUT_NS (200 * NS_PER_MS)

/* Name service modules parse on the stack; glibc itself asks for no more than this. */
enum { STACK_BYTES = 512 * 1024 };

struct resolver {
	/* fixed after open */
	char *host;
	resolver_lookup *lookup;
	void *ctx; /* borrowed */
	int event; /* descriptor */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;

	/* under lock */
	int holders;
	bool wanted, busy, stop;
	struct resolver_answer *answer; /* owned; NULL: none */
};

/* --- the system's lookup ---------------------------------------------------------------------- */

static bool usable(const struct sockaddr *address, struct address *out)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;

	if (address->sa_family == AF_INET)
		return inet_ntop(AF_INET, &v4->sin_addr, out->text, sizeof(out->text));
	/* A link-local address needs an interface, which a URL cannot have. */
	return address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) &&
	       inet_ntop(AF_INET6, &v6->sin6_addr, out->text, sizeof(out->text));
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct address *)a)->text, ((const struct address *)b)->text);
}

static void fail(struct resolver_answer *a, const char *host, const char *why)
{
	a->failed = true;
	error_set(&a->why, "%s: %s", host, why);
}

static void look_up(void *ctx, const char *host, struct resolver_answer *answer)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *found = NULL;
	struct address address;
	int rc = getaddrinfo(host, NULL, &hints, &found);
	size_t kept = 0;

	(void)ctx;
	if (rc) {
		fail(answer, host, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
		return;
	}
	for (const struct addrinfo *i = found; i; i = i->ai_next) {
		if (!usable(i->ai_addr, &address))
			continue;
		if (answer->count == RESOLVER_ADDRESSES_MAX)
			answer->left_out++;
		else
			answer->addresses[answer->count++] = address;
	}
	freeaddrinfo(found);
	qsort(answer->addresses, answer->count, sizeof(answer->addresses[0]), compare);
	for (size_t i = 0; i < answer->count; i++) {
		if (!kept || compare(&answer->addresses[i], &answer->addresses[kept - 1]) != 0)
			answer->addresses[kept++] = answer->addresses[i];
	}
	answer->count = kept;
	if (!answer->count)
		fail(answer, host, "no address that can be used");
}

/* --- the thread ------------------------------------------------------------------------------- */

static void release(struct resolver *r)
{
	bool last;

	pthread_mutex_lock(&r->lock);
	last = --r->holders == 0;
	pthread_mutex_unlock(&r->lock);
	if (!last)
		return;
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	close(r->event);
	free(r->answer);
	free(r->host);
	free(r);
}

static void *serve(void *arg)
{
	struct resolver *r = arg;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		struct resolver_answer *answer;

		if (!r->wanted) {
			pthread_cond_wait(&r->changed, &r->lock);
			continue;
		}
		r->wanted = false;
		r->busy = true;
		pthread_mutex_unlock(&r->lock);
		answer = mem_zalloc(1, sizeof(*answer));
		r->lookup(r->ctx, r->host, answer);
		pthread_mutex_lock(&r->lock);
		free(r->answer);
		r->answer = answer;
		r->busy = false;
		eventfd_write(r->event, 1);
	}
	pthread_mutex_unlock(&r->lock);
	release(r);
	return NULL;
}

/* --- the loop's side -------------------------------------------------------------------------- */

int resolver_open(struct resolver **out, const char *host, resolver_lookup *lookup, void *ctx,
		  struct error *error)
{
	struct resolver *r;
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), rc;

	if (event < 0)
		return error_system(error, -errno, "cannot watch for the addresses of %s", host);
	r = mem_zalloc(1, sizeof(*r));
	r->host = mem_strdup(host);
	r->lookup = lookup ? lookup : look_up;
	r->ctx = ctx;
	r->event = event;
	r->holders = 2;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	rc = thread_start(&r->thread, STACK_BYTES, serve, r);
	if (rc) {
		r->holders = 1;
		release(r);
		return error_system(error, rc, "cannot start a thread for the addresses of %s",
				    host);
	}
	*out = r;
	return 0;
}

void resolver_close(struct resolver *r)
{
	int64_t until = clock_mono_ns() + JOIN_TIMEOUT_NS;
	struct timespec deadline = {.tv_sec = until / NS_PER_SEC, .tv_nsec = until % NS_PER_SEC};

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (pthread_clockjoin_np(r->thread, NULL, CLOCK_MONOTONIC, &deadline))
		pthread_detach(r->thread);
	release(r);
}

int resolver_fd(const struct resolver *r)
{
	return r->event;
}

void resolver_ask(struct resolver *r)
{
	pthread_mutex_lock(&r->lock);
	if (!r->busy)
		r->wanted = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

bool resolver_take(struct resolver *r, struct resolver_answer *answer)
{
	struct resolver_answer *given;
	eventfd_t count;

	pthread_mutex_lock(&r->lock);
	given = r->answer;
	r->answer = NULL;
	eventfd_read(r->event, &count);
	pthread_mutex_unlock(&r->lock);
	if (given)
		*answer = *given;
	free(given);
	return given != NULL;
}
