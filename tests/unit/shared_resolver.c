/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that looks names up, with lookups that the test holds in its hands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shared/resolver.h"
#include "shared/clock.h"

enum { TIMEOUT_MS = 20000 };

struct script {
	sem_t begun, may_end;
	unsigned int calls;
	bool hold; /* wait for may_end */
	bool signals_blocked;
};

static void lookup(void *ctx, const char *host, struct resolver_answer *answer)
{
	struct script *s = ctx;
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	s->signals_blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGHUP);
	sem_post(&s->begun);
	if (s->hold)
		sem_wait(&s->may_end);
	s->calls++;
	answer->count = 1;
	snprintf(answer->addresses[0].text, sizeof(answer->addresses[0].text), "10.0.0.%u",
		 s->calls);
	answer->failed = strcmp(host, "bad") == 0;
}

static void script_init(struct script *s, bool hold)
{
	*s = (struct script){.hold = hold};
	sem_init(&s->begun, 0, 0);
	sem_init(&s->may_end, 0, 0);
}

static struct resolver *open_script(struct script *s)
{
	struct resolver *r;
	struct error why;

	assert_int_equal(resolver_open(&r, "name", lookup, s, &why), 0);
	return r;
}

static bool readable(const struct resolver *r, int wait_ms)
{
	struct pollfd p = {.fd = resolver_fd(r), .events = POLLIN};

	return poll(&p, 1, wait_ms) == 1;
}

static void test_question_and_answer(void **state)
{
	struct resolver_answer answer;
	struct script s;
	struct resolver *r;

	(void)state;
	script_init(&s, true);
	r = open_script(&s);
	assert_false(readable(r, 0));
	assert_false(resolver_take(r, &answer));
	resolver_ask(r);
	sem_wait(&s.begun);
	/* Under way: asking again changes nothing. */
	resolver_ask(r);
	assert_false(resolver_take(r, &answer));
	sem_post(&s.may_end);
	assert_true(readable(r, TIMEOUT_MS));
	assert_true(resolver_take(r, &answer));
	assert_string_equal(answer.addresses[0].text, "10.0.0.1");
	assert_true(s.signals_blocked);
	/* Once. */
	assert_false(readable(r, 0));
	assert_false(resolver_take(r, &answer));
	sem_post(&s.may_end);
	resolver_ask(r);
	assert_true(readable(r, TIMEOUT_MS));
	/* An answer nobody took is replaced by the next. */
	sem_post(&s.may_end);
	sem_wait(&s.begun);
	resolver_ask(r);
	sem_wait(&s.begun);
	resolver_close(r);
	assert_int_equal(s.calls, 3);
}

static void test_closed_before_it_was_asked(void **state)
{
	struct script s;
	int64_t begin = clock_mono_ns();

	(void)state;
	script_init(&s, false);
	for (int i = 0; i < 50; i++)
		resolver_close(open_script(&s));
	resolver_close(NULL);
	assert_int_equal(s.calls, 0);
	/* None of them was waited for in vain. */
	assert_true(clock_mono_ns() - begin < 5 * NS_PER_SEC);
}

static int open_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += dup2(fd, fd) == fd;
	return count;
}

/*
 * A name server that never answers: closing does not wait for it, and nothing is left when it does
 * answer.
 */
static void test_closed_in_a_lookup(void **state)
{
	static struct script s;
	struct resolver *r;
	int64_t begin;
	int fds = open_fds();

	(void)state;
	script_init(&s, true);
	r = open_script(&s);
	resolver_ask(r);
	sem_wait(&s.begun);
	begin = clock_mono_ns();
	resolver_close(r);
	assert_true(clock_mono_ns() - begin < 5 * NS_PER_SEC);
	assert_int_equal(s.calls, 0);
	assert_int_equal(open_fds(), fds + 1);
	sem_post(&s.may_end);
	/* The thread closes its descriptor last of all. */
	for (int i = 0; i < TIMEOUT_MS / 10 && open_fds() > fds; i++)
		poll(NULL, 0, 10);
	assert_int_equal(open_fds(), fds);
	assert_int_equal(s.calls, 1);
}

/* The system's own: what needs no name server is known on every machine. */
static void test_the_systems_lookup(void **state)
{
	static const struct {
		const char *host, *address; /* NULL: fails */
	} cases[] = {
		{"localhost", "127.0.0.1"},
		{"127.1", "127.0.0.1"},
		{"a..b", NULL}, /* no name server is asked for an empty label */
		{"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct resolver_answer answer;
		struct resolver *r;
		bool found = false;

		assert_int_equal(resolver_open(&r, cases[i].host, NULL, NULL, NULL), 0);
		resolver_ask(r);
		assert_true(readable(r, TIMEOUT_MS));
		assert_true(resolver_take(r, &answer));
		assert_int_equal(answer.failed, !cases[i].address);
		for (size_t n = 0; n < answer.count; n++) {
			if (n)
				assert_true(strcmp(answer.addresses[n - 1].text,
						   answer.addresses[n].text) < 0);
			found |= cases[i].address &&
				 !strcmp(answer.addresses[n].text, cases[i].address);
		}
		assert_int_equal(found, cases[i].address != NULL);
		if (answer.failed)
			assert_non_null(strstr(answer.why.text, cases[i].host));
		resolver_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question_and_answer),
		cmocka_unit_test(test_closed_before_it_was_asked),
		cmocka_unit_test(test_closed_in_a_lookup),
		cmocka_unit_test(test_the_systems_lookup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
