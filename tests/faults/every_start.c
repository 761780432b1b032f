/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both daemons begin while the first call of a kind fails, or the second, and so on until none is
 * left: sockets, descriptors, threads, and every allocation. Each time they become ready, or end at
 * once with a status and a message that says why; and none leaves anything behind that the next one
 * stumbles over.
 *
 * Descriptors do not run out once, so there it is the limit that rises until it is enough.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/seam_start.h"
#include "tests/stack.h"

enum { ALL = 16, ALLOCATIONS = 80 };

static struct {
	struct stack *stack;
	struct seam *seam;
	char *log, *state, *listen, *ingest, *nobody;
	char *aggregator, *agent;
} s;

static int setup(void **state)
{
	(void)state;
	if (sodium_init() < 0)
		return -1;
	s.stack = stack_new();
	s.seam = seam_open(s.stack->folder, "daemon");
	s.log = mem_printf("%s/daemon.log", s.stack->folder);
	s.state = mem_printf("%s/state", s.stack->folder);
	s.listen = mem_printf("127.0.0.1:%d", free_port());
	s.ingest = mem_printf("tcp://127.0.0.1:%d", free_port());
	s.nobody = mem_printf("tcp://127.0.0.1:%d", free_port());
	s.aggregator = mem_strdup(program_path("evenkeel-aggregator"));
	s.agent = mem_strdup(program_path("evenkeel-agent"));
	return 0;
}

static int teardown(void **state)
{
	char *const owned[] = {s.log, s.state, s.listen, s.ingest, s.nobody, s.aggregator, s.agent};

	(void)state;
	seam_close(s.seam);
	stack_free(s.stack, 0);
	for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
		free(owned[i]);
	return 0;
}

/* One call of a kind, with what it may fail. */
struct trouble {
	enum seam_call call;
	int error;
};

static const struct trouble sockets[] = {
	{SEAM_SOCKET, EMFILE},	   {SEAM_SOCKET, ENOBUFS},	{SEAM_BIND, EADDRINUSE},
	{SEAM_LISTEN, EADDRINUSE}, {SEAM_CONNECT, ENETUNREACH}, {SEAM_THREAD, EAGAIN},
	{SEAM_NN_OPEN, EMFILE},	   {SEAM_POLL, EINTR},
};

static const struct trouble memory = {SEAM_ALLOCATE, ENOMEM};

/*
 * What libraries take to be there, so that the process ends without a word: in the agent two
 * allocations of an endpoint by nanomsg, in the aggregator the arena of a new thread by jemalloc.
 */
enum { UNCHECKED_BY_NANOMSG = 2, UNCHECKED_BY_JEMALLOC = 8 };

/* The kinds of end that were seen. */
struct ends {
	int ready, failed, aborted, wordless;
};

/* Whether a library may have ended it so once more. */
static bool is_wordless(const struct seam_daemon *d, const struct trouble *t, struct ends *ends)
{
	int most = d->argv[0] == s.agent ? UNCHECKED_BY_NANOMSG : UNCHECKED_BY_JEMALLOC;

	return t->call == SEAM_ALLOCATE && !d->pid && ends->wordless++ < most &&
	       (d->status == 128 + SIGSEGV ||
		(d->argv[0] == s.agent && d->status == 128 + SIGABRT));
}

static void expect_good_end(struct seam_daemon *d, const struct trouble *t, int64_t after,
			    int64_t times, struct ends *ends)
{
	enum seam_end end = seam_daemon_start(d);

	seam_heal(s.seam);
	if (end == SEAM_READY && seam_daemon_stop(d, SIGTERM))
		end = SEAM_OTHERWISE;
	ends->ready += end == SEAM_READY;
	ends->failed += end == SEAM_FAILED;
	ends->aborted += end == SEAM_ABORTED;
	if (end != SEAM_OTHERWISE || is_wordless(d, t, ends))
		return;
	seam_daemon_stop(d, SIGKILL);
	seam_daemon_print(d);
	fail_msg("%s %lld fails %s (%s): status %d", seam_call_name(t->call), (long long)after + 1,
		 times == 1 ? "once" : "and all after it", strerror(t->error), d->status);
}

/* Fails call after call, so many as most of them, evenly chosen among those that a start makes. */
static struct ends walk(struct seam_daemon *d, const struct trouble *t, int64_t times, int64_t most)
{
	struct ends ends = {0};
	int64_t calls, step;

	seam_heal(s.seam);
	assert_int_equal(seam_daemon_start(d), SEAM_READY);
	calls = seam_calls(s.seam, t->call);
	assert_int_equal(seam_daemon_stop(d, SIGTERM), 0);
	step = calls > most ? calls / most : 1;
	for (int64_t after = 0; after < calls; after += step) {
		seam_set(s.seam, t->call, t->error, after, times);
		expect_good_end(d, t, after, times, &ends);
	}
	print_message("%s, %s, %s: of %lld calls %d tried, %d times ready, %d failed, %d aborted, "
		      "%d without a word\n",
		      strrchr(d->argv[0], '/') + 1, seam_call_name(t->call),
		      times == 1 ? "once" : "for ever", (long long)calls,
		      ends.ready + ends.failed + ends.aborted + ends.wordless, ends.ready,
		      ends.failed, ends.aborted, ends.wordless);
	/* Nothing of all that is in the way of the next one. */
	assert_int_equal(seam_daemon_start(d), SEAM_READY);
	assert_int_equal(seam_daemon_stop(d, SIGTERM), 0);
	return ends;
}

enum { FILES_LEAST = 6, FILES_MOST = 100, ARGS_MAX = 16 };

/* With room for so few files that it cannot begin, then one more, until it can. */
static void walk_descriptors(struct seam_daemon *d)
{
	const struct trouble limit = {SEAM_DESCRIPTOR, EMFILE};
	char command[64], *argv[ARGS_MAX] = {(char *)"sh", (char *)"-c", command};
	struct seam_daemon limited = *d;
	struct ends ends = {0};

	for (int i = 0; d->argv[i]; i++)
		argv[i + 3] = d->argv[i];
	limited.argv = argv;
	for (int files = FILES_LEAST; files <= FILES_MOST && ends.ready < 3; files++) {
		snprintf(command, sizeof(command), "ulimit -n %d && exec \"$0\" \"$@\"", files);
		expect_good_end(&limited, &limit, files, 1, &ends);
	}
	print_message("%s: fails with %d limits of open files\n", strrchr(d->argv[0], '/') + 1,
		      ends.failed);
	assert_int_equal(ends.aborted, 0);
	assert_int_equal(ends.ready, 3);
}

static void walk_sockets(struct seam_daemon *d)
{
	walk_descriptors(d);
	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++) {
		/* An agent binds no address, so none is in use. */
		if (sockets[i].call == SEAM_BIND && d->argv[0] == s.agent)
			continue;
		/* nanomsg aborts without its one thread, and says so. */
		assert_true(walk(d, &sockets[i], 1, ALL).aborted <=
			    (sockets[i].call == SEAM_THREAD));
	}
}

static void walk_memory(struct seam_daemon *d)
{
#ifdef SEAM_WITHOUT_MEMORY
	print_message("SKIP: the sanitizer's allocations do not fail\n");
	skip();
#endif
	walk(d, &memory, 1, ALLOCATIONS);
	walk(d, &memory, SEAM_FOR_EVER, ALL);
}

static void with_aggregator(void (*walk_all)(struct seam_daemon *d))
{
	char *argv[] = {s.aggregator,
			(char *)"--standalone",
			(char *)"--listen",
			s.listen,
			(char *)"--ingest",
			s.ingest,
			(char *)"--key-file",
			s.stack->key_path,
			(char *)"--state-dir",
			s.state,
			NULL};
	struct seam_daemon d = {
		.seam = s.seam, .log = s.log, .argv = argv, .ready = "listening on"};

	walk_all(&d);
}

static void with_agent(void (*walk_all)(struct seam_daemon *d))
{
	char *argv[] = {s.agent,  (char *)"--node-name", (char *)"n",	    (char *)"--aggregator",
			s.nobody, (char *)"--key-file",	 s.stack->key_path, NULL};
	struct seam_daemon d = {
		.seam = s.seam, .log = s.log, .argv = argv, .ready = "an interval every"};

	walk_all(&d);
}

static void test_aggregator_without_a_socket(void **state)
{
	(void)state;
	with_aggregator(walk_sockets);
}

static void test_aggregator_without_memory(void **state)
{
	(void)state;
	with_aggregator(walk_memory);
}

static void test_agent_without_a_socket(void **state)
{
	(void)state;
	with_agent(walk_sockets);
}

static void test_agent_without_memory(void **state)
{
	(void)state;
	with_agent(walk_memory);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_aggregator_without_a_socket),
		TEST(test_aggregator_without_memory),
		TEST(test_agent_without_a_socket),
		TEST(test_agent_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
