/* SPDX-License-Identifier: Apache-2.0 */
/* Clients take turns, whatever each of them has waiting, and a full queue has room for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <semaphore.h>
#include <string.h>

#include "aggregator/edge/http/workers.h"
#include "shared/buf.h"

enum { MOST = 4, JOBS = 16 };

/* One thread, which the first job holds until all others wait. */
struct scene {
	struct workers *workers;
	sem_t begun, may_go_on, ended;
	struct buf done, refused; /* names, in order */
	size_t count;
	struct job {
		struct work work;
		struct scene *scene;
		char name;
	} jobs[JOBS];
};

static void run(struct work *w, bool refused)
{
	struct job *j = (struct job *)w;

	if (refused) {
		buf_add_char(&j->scene->refused, j->name);
		return;
	}
	buf_add_char(&j->scene->done, j->name);
	if (j->name == '.') {
		sem_post(&j->scene->begun);
		sem_wait(&j->scene->may_go_on);
	}
	sem_post(&j->scene->ended);
}

static void give(struct scene *s, uint64_t client, char name)
{
	struct job *j = &s->jobs[s->count++];

	*j = (struct job){{.client = client, .run = run}, s, name};
	workers_give(s->workers, &j->work);
}

static int setup(void **state)
{
	static struct scene s;
	const struct workers_options o = {.threads = 1, .waiting_most = MOST};

	memset(&s, 0, sizeof(s));
	buf_add_str(&s.done, "");
	buf_add_str(&s.refused, "");
	sem_init(&s.begun, 0, 0);
	sem_init(&s.may_go_on, 0, 0);
	sem_init(&s.ended, 0, 0);
	*state = &s;
	if (workers_start(&s.workers, &o, NULL))
		return -1;
	give(&s, 1, '.');
	sem_wait(&s.begun);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	workers_free(s->workers);
	buf_fini(&s->done);
	buf_fini(&s->refused);
	return 0;
}

/* All that was not refused was done, in this order. */
static void expect_done(struct scene *s, const char *order)
{
	sem_post(&s->may_go_on);
	for (size_t i = 0; order[i]; i++)
		sem_wait(&s->ended);
	workers_stop(s->workers);
	assert_string_equal(s->done.data, order);
}

static void test_clients_take_turns(void **state)
{
	struct scene *s = *state;

	give(s, 1, 'a');
	give(s, 1, 'b');
	give(s, 1, 'c');
	give(s, 2, 'x');
	assert_string_equal(s->refused.data, "");
	expect_done(s, ".axbc");
}

/* The last of who has most waiting gives way; who has as much as the others has to wait. */
static void test_full_queues_have_room_for_others(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < MOST; i++)
		give(s, 1, "abcd"[i]);
	give(s, 2, 'x');
	assert_string_equal(s->refused.data, "d");
	give(s, 1, 'e');
	assert_string_equal(s->refused.data, "de");
	give(s, 3, 'y');
	assert_string_equal(s->refused.data, "dec");
	give(s, 2, 'z');
	assert_string_equal(s->refused.data, "decz");
	expect_done(s, ".axyb");
}

static void test_stop_refuses_what_waits(void **state)
{
	struct scene *s = *state;

	sem_post(&s->may_go_on);
	workers_stop(s->workers);
	give(s, 1, 'b');
	assert_string_equal(s->done.data, ".");
	assert_string_equal(s->refused.data, "b");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_clients_take_turns),
		TEST(test_full_queues_have_room_for_others),
		TEST(test_stop_refuses_what_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
