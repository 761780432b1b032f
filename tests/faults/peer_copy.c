/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new aggregator asks the other one for a copy of its database, through a connection that ends,
 * damages or stops what passes, onto a disk that is full, and of an aggregator whose disk is full: it
 * begins without the copy, keeps nothing of it, and the other one goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"
#include "tests/small_disk.h"
#include "tests/stack.h"

enum { NODES = 100, BEFORE = 50000 /* bytes of the other one that pass */ };

#define BYTES_SENT     "evenkeel_peer_copy_bytes_total{direction=\"sent\"}"
#define BYTES_RECEIVED "evenkeel_peer_copy_bytes_total{direction=\"received\"}"

enum fault { FAULT_NONE, FAULT_CUT, FAULT_DAMAGE, FAULT_STOP, FAULT_KILL };

/* Passes connections on, one after the other. */
struct relay {
	int listener, port, target_port;
	enum fault fault; /* after BEFORE bytes of the target */
	pid_t victim; /* of FAULT_KILL */
	pthread_t thread;
	atomic_bool met;
	int stop[2];
};

struct scene {
	struct stack *stack;
	struct relay relay;
	struct small_disk disk;
	char *peers[2], *states[2];
	const char *options[2][7];
	pid_t fleet;
};

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* False: the connection is at its end. */
static bool spoil(struct relay *r, char *data, size_t *passed, size_t len)
{
	bool due = *passed + len > BEFORE;

	*passed += len;
	if (!due || r->fault == FAULT_NONE)
		return true;
	if (r->fault == FAULT_DAMAGE)
		data[len / 2] ^= 1;
	else if (r->fault == FAULT_KILL && !atomic_load(&r->met))
		kill(r->victim, SIGKILL);
	atomic_store(&r->met, true);
	return r->fault == FAULT_DAMAGE;
}

/* Until a side ends, or the relay does. */
static void pass_on(struct relay *r, int client, int target)
{
	struct pollfd fds[3] = {{r->stop[0], POLLIN, 0}, {client, POLLIN, 0}, {target, POLLIN, 0}};
	size_t passed = 0;
	char chunk[16384];

	while (poll(fds, 3, -1) > 0 && !fds[0].revents) {
		bool from_target = fds[2].revents != 0;
		ssize_t n = read(from_target ? target : client, chunk, sizeof(chunk));

		if (n <= 0)
			return;
		if (from_target && !spoil(r, chunk, &passed, (size_t)n)) {
			if (r->fault == FAULT_STOP)
				poll(fds, 2, -1);
			return;
		}
		if (send(from_target ? client : target, chunk, (size_t)n, MSG_NOSIGNAL) != n)
			return;
	}
}

static void *run_relay(void *arg)
{
	struct relay *r = arg;
	struct pollfd fds[2] = {{r->stop[0], POLLIN, 0}, {r->listener, POLLIN, 0}};

	while (poll(fds, 2, -1) > 0 && !fds[0].revents) {
		struct sockaddr_in to = loopback(r->target_port);
		int client = accept(r->listener, NULL, NULL),
		    target = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(target, (struct sockaddr *)&to, sizeof(to)) == 0)
			pass_on(r, client, target);
		close(client);
		close(target);
	}
	return NULL;
}

static void start_relay(struct relay *r, int target_port)
{
	struct sockaddr_in at = loopback(0);
	socklen_t len = sizeof(at);

	r->target_port = target_port;
	r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(r->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(r->listener, 8), 0);
	assert_int_equal(getsockname(r->listener, (struct sockaddr *)&at, &len), 0);
	r->port = ntohs(at.sin_port);
	assert_int_equal(pipe(r->stop), 0);
	assert_int_equal(pthread_create(&r->thread, NULL, run_relay, r), 0);
}

static void stop_relay(struct relay *r)
{
	close(r->stop[1]);
	pthread_join(r->thread, NULL);
	close(r->stop[0]);
	close(r->listener);
}

/* --- the stage -------------------------------------------------------------------------------- */

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	small_disk_init(&s->disk, s->stack->folder);
	for (int i = 0; i < 2; i++) {
		s->stack->aggregators[i].http_port = free_port();
		s->stack->aggregators[i].ingest_port = free_port();
	}
	start_relay(&s->relay, s->stack->aggregators[0].ingest_port);
	for (int i = 0; i < 2; i++) {
		const char *const o[] = {"--peer", NULL, "--state-dir", NULL, NULL};

		memcpy(s->options[i], o, sizeof(o));
		s->peers[i] = mem_printf("tcp://127.0.0.1:%d",
					 i ? s->relay.port : s->stack->aggregators[1].ingest_port);
		s->states[i] = mem_printf("%s/state-%d", s->stack->folder, i);
		s->options[i][1] = s->peers[i];
		s->options[i][3] = s->states[i];
		s->stack->aggregators[i].more = s->options[i];
	}
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->fleet)
		process_stop(s->fleet, SIGKILL);
	for (int i = 0; i < 2; i++)
		if (s->stack->aggregators[i].pid)
			stack_kill_aggregator(s->stack, i);
	stop_relay(&s->relay);
	small_disk_fini(&s->disk);
	stack_free(s->stack, 0);
	for (int i = 0; i < 2; i++) {
		free(s->peers[i]);
		free(s->states[i]);
	}
	free(s);
	return 0;
}

static double metric(const struct scene *s, int i, const char *name)
{
	return stack_metric(s->stack, i, name);
}

static bool logged(const struct scene *s, int i, const char *text)
{
	char *path = mem_printf("%s/aggregator-%d.log", s->stack->folder, i), line[1024];
	FILE *file = fopen(path, "r");
	bool found = false;

	while (file && fgets(line, sizeof(line), file))
		found |= strstr(line, text) != NULL;
	if (file)
		fclose(file);
	free(path);
	return found;
}

static bool has_all_nodes(void *ctx)
{
	return metric(ctx, 0, "evenkeel_frames_total{result=\"applied\"}") > 20 * NODES;
}

static void start_first(struct scene *s)
{
	static const char *const options[] = {"--nodes",   "100",	 "--pods-per-node",
					      "5",	   "--interval", "1s",
					      "--history", "60s",	 "--ring-span",
					      "15m",	   NULL};

	stack_start_aggregator(s->stack, 0);
	s->fleet = fleet_start(s->stack, options);
	assert_true(await(has_all_nodes, s, 60));
}

static bool answers(void *ctx)
{
	return metric(ctx, 1, BYTES_RECEIVED) >= 0;
}

static double seconds_to_answer(struct scene *s)
{
	int64_t began_ns = clock_mono_ns();

	stack_launch_aggregator(s->stack, 1);
	assert_true(await(answers, s, 30));
	return (double)(clock_mono_ns() - began_ns) / NS_PER_SEC;
}

static void expect_no_copy(const struct scene *s, const char *why)
{
	char *part = mem_printf("%s/evenkeel.db.part", s->options[1][3]);

	assert_true(metric(s, 1, BYTES_RECEIVED) == 0);
	assert_true(access(part, F_OK) != 0);
	assert_true(logged(s, 1, "begins without a copy of the database of"));
	if (!logged(s, 1, why))
		fail_msg("the log lacks \"%s\"", why);
	free(part);
}

/* --- the connection --------------------------------------------------------------------------- */

static void expect_fault(struct scene *s, enum fault fault, double seconds, const char *why)
{
	double took_s;

	start_first(s);
	s->relay.fault = fault;
	s->relay.victim = s->stack->aggregators[0].pid;
	took_s = seconds_to_answer(s);
	assert_true(atomic_load(&s->relay.met));
	print_message("answers after %.1f s\n", took_s);
	assert_true(took_s < scaled_s(seconds));
	expect_no_copy(s, why);
	if (fault == FAULT_KILL)
		return;
	/* The next one gets its copy. */
	s->relay.fault = FAULT_NONE;
	stack_kill_aggregator(s->stack, 1);
	free(s->states[1]);
	s->states[1] = mem_printf("%s/other", s->stack->folder);
	s->options[1][3] = s->states[1];
	seconds_to_answer(s);
	assert_true(metric(s, 1, BYTES_RECEIVED) > BEFORE);
	assert_true(has_all_nodes(s));
}

static void a_connection_that_ends(void **state)
{
	expect_fault(*state, FAULT_CUT, 5, ": 127.0.0.1: ");
}

static void a_connection_that_damages(void **state)
{
	expect_fault(*state, FAULT_DAMAGE, 5, "the seal is not right");
}

static void a_connection_that_stops(void **state)
{
	expect_fault(*state, FAULT_STOP, 10, "no answer in time");
}

static void the_other_one_dies(void **state)
{
	struct scene *s = *state;

	expect_fault(s, FAULT_KILL, 5, ": 127.0.0.1: ");
	stack_kill_aggregator(s->stack, 0); /* reaps it */
}

/* --- disks ------------------------------------------------------------------------------------ */

static void a_full_disk_of_the_new_one(void **state)
{
	struct scene *s = *state;

	small_disk_need(&s->disk);
	s->options[1][3] = s->disk.path;
	start_first(s);
	small_disk_fill(&s->disk);
	seconds_to_answer(s);
	expect_no_copy(s, "No space left on device");
	small_disk_free_up(&s->disk);
	stack_kill_aggregator(s->stack, 1);
}

/* It has room for its database, and none for a copy beside it. */
static void a_full_disk_of_the_other_one(void **state)
{
	struct scene *s = *state;

	small_disk_need(&s->disk);
	s->options[0][3] = s->disk.path;
	start_first(s);
	small_disk_fill(&s->disk);
	seconds_to_answer(s);
	expect_no_copy(s, "it refuses: ");
	assert_true(metric(s, 0, BYTES_SENT) == 0);
	assert_true(has_all_nodes(s));
	stack_kill_aggregator(s->stack, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_connection_that_ends),	  TEST(a_connection_that_damages),
		TEST(a_connection_that_stops),	  TEST(the_other_one_dies),
		TEST(a_full_disk_of_the_new_one), TEST(a_full_disk_of_the_other_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
