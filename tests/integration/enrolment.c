/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shipped agent enrols with the shipped aggregator by a join token: restarts with and without
 * the database, renewals, refusals, and a node's key that is used for another node.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/file.h"
#include "shared/mem.h"
#include "tests/enrol_client.h"
#include "tests/process.h"
#include "tests/stack.h"

#define TOKEN	     "0123456789abcdef0123"
#define WAIT_S	     90
#define FRAMES(what) "evenkeel_frames_total{result=\"" what "\"}"

struct scene {
	struct stack *stack;
	char *key, *public, *tokens, *token, *state; /* paths */
	const char *aggregator_more[11], *agent_more[16];
	const char *awaited_log;
	const char *metric; /* awaited .. */
	double value; /* .. and what it must reach */
};

static char *path_in(const struct scene *s, const char *name)
{
	return mem_printf("%s/%s", s->stack->folder, name);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	size_t n = 0;

	s->stack = stack_new();
	s->stack->agent_enrols = true;
	s->key = path_in(s, "enrolment.key");
	s->public = path_in(s, "enrolment.key.pub");
	s->tokens = path_in(s, "tokens");
	s->token = path_in(s, "token");
	s->state = path_in(s, "state");
	write_text(s->tokens, TOKEN " test-* other\n");
	write_text(s->token, TOKEN "\n");
	memcpy(s->aggregator_more,
	       (const char *[]){"--enrolment-key", s->key, "--join-token-file", s->tokens,
				"--state-dir", s->state, "--save-interval", "1s", NULL},
	       9 * sizeof(char *));
	s->stack->aggregators[0].more = s->aggregator_more;
	for (const char *const *word =
		     (const char *const[]){"--no-confine", "--tier", "T3", "--interval", "1s",
					   "--aggregator-key", s->public, "--join-token-file",
					   s->token, NULL};
	     *word; word++)
		s->agent_more[n++] = *word;
	*state = s;
	return sodium_init() < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	stack_free(s->stack, 0);
	free(s->key);
	free(s->public);
	free(s->tokens);
	free(s->token);
	free(s->state);
	free(s);
	return 0;
}

static bool is_reached(void *ctx)
{
	struct scene *s = ctx;

	return stack_metric(s->stack, 0, s->metric) >= s->value;
}

static void await_metric(struct scene *s, const char *metric, double value)
{
	s->metric = metric;
	s->value = value;
	if (await(is_reached, s, WAIT_S))
		return;
	print_error("%s is not %g\n", metric, value);
	stack_free(s->stack, 1);
	abort();
}

static double metric(const struct scene *s, const char *name)
{
	return stack_metric(s->stack, 0, name);
}

static void test_restarts(void **state)
{
	struct scene *s = *state;
	char *part = path_in(s, "enrolment.key.part");
	struct stat st;

	/* Left by a first start that was cut. */
	write_text(part, "x");
	stack_start_aggregator(s->stack, 0);
	assert_int_equal(stat(s->key, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 32);
	assert_int_equal(access(part, F_OK), -1);
	free(part);
	stack_start_agent(s->stack, 1, s->agent_more);
	await_metric(s, FRAMES("applied"), 2);
	assert_true(metric(s, FRAMES("enrolled")) >= 1);
	await_metric(s, "evenkeel_store_saves_total", metric(s, "evenkeel_store_saves_total") + 2);

	/* The database has the key. */
	stack_kill_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 0);
	await_metric(s, FRAMES("applied"), 2);
	assert_true(metric(s, FRAMES("unknown_key")) == 0);

	/* Without it the agent enrols again, and nothing is lost. */
	stack_kill_aggregator(s->stack, 0);
	s->aggregator_more[4] = NULL;
	stack_start_aggregator(s->stack, 0);
	await_metric(s, FRAMES("applied"), 2);
	assert_true(metric(s, FRAMES("enrolled")) >= 1);
	assert_true(metric(s, "evenkeel_intervals_missing_total") == 0);
}

static void test_renewal_loses_nothing(void **state)
{
	struct scene *s = *state;

	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, s->agent_more);
	await_metric(s, FRAMES("applied"), 1);
	for (int i = 2; i <= 4; i++) {
		kill(s->stack->agent, SIGHUP);
		await_metric(s, FRAMES("enrolled"), i);
	}
	await_metric(s, FRAMES("applied"), metric(s, FRAMES("applied")) + 2);
	assert_true(metric(s, FRAMES("unknown_key")) == 0);
	assert_true(metric(s, "evenkeel_intervals_missing_total") == 0);
}

/* SIGHUP has the agent ask at once; it would repeat a refused enrolment after 30 s. */
static bool has_enrolled_when_asked(void *ctx)
{
	struct scene *s = ctx;

	if (metric(s, FRAMES("enrolled")) >= 1)
		return true;
	kill(s->stack->agent, SIGHUP);
	return false;
}

/* It is refused, says why, and enrols once the aggregator knows its token. */
static void test_refusal_ends(void **state)
{
	struct scene *s = *state;
	struct buf log = BUF_INIT;
	char *path = path_in(s, "agent-0.log");

	write_text(s->tokens, TOKEN " other\n");
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, s->agent_more);
	await_metric(s, FRAMES("not_enrolled"), 1);
	assert_true(metric(s, FRAMES("applied")) == 0);
	write_text(s->tokens, TOKEN " test-node\n");
	kill(s->stack->aggregators[0].pid, SIGHUP);
	assert_true(await(has_enrolled_when_asked, s, WAIT_S));
	await_metric(s, FRAMES("applied"), 1);
	assert_int_equal(file_read(path, 1 << 20, &log, NULL), 0);
	assert_non_null(strstr(log.data, "does not enrol this node: the join token is for other"));
	assert_null(strstr(log.data, TOKEN));
	buf_fini(&log);
	free(path);
}

/* --- an attacker with the files of a node ----------------------------------------------------- */

static void test_key_of_another_node(void **state)
{
	struct scene *s = *state;
	struct sender_socket *socket;
	struct enrolment_answer a, unused;

	stack_start_aggregator(s->stack, 0);
	socket = enrol_client_dial(s->stack->aggregators[0].ingest_port);
	enrol_client_ask(socket, s->public, "strange", CREDENTIAL_JOIN_TOKEN, TOKEN, &a);
	assert_int_equal(a.status, ENROLMENT_REFUSED);
	enrol_client_ask(socket, s->public, "other", CREDENTIAL_JOIN_TOKEN, TOKEN, &a);
	assert_int_equal(a.status, ENROLMENT_DONE);
	enrol_client_send(socket, "test-node", &a.key);
	await_metric(s, FRAMES("foreign"), 1);
	enrol_client_send(socket, "other", &a.key);
	await_metric(s, FRAMES("refused"), 1); /* it opens, and is no interval */
	/* Keys under which no frame opened end no key in use. */
	for (int i = 0; i < 2; i++) {
		enrol_client_ask(socket, s->public, "other", CREDENTIAL_JOIN_TOKEN, TOKEN, &unused);
		assert_int_equal(unused.status, ENROLMENT_DONE);
	}
	enrol_client_send(socket, "other", &a.key);
	await_metric(s, FRAMES("refused"), 2);
	sender_socket_close(socket);
}

static void test_refusals_end_the_connection(void **state)
{
	struct scene *s = *state;
	struct sender_socket *socket;
	struct enrolment_answer a;

	stack_start_aggregator(s->stack, 0);
	socket = enrol_client_dial(s->stack->aggregators[0].ingest_port);
	for (int i = 0; i < 3; i++) {
		enrol_client_ask(socket, s->public, "strange", CREDENTIAL_JOIN_TOKEN, TOKEN, &a);
		assert_int_equal(a.status, ENROLMENT_REFUSED);
	}
	await_metric(s, "evenkeel_ingest_closed_total{reason=\"unopened\"}", 1);
	sender_socket_close(socket);
}

static void read_shared_key(const struct scene *s, struct key *key)
{
	FILE *file = fopen(s->stack->key_path, "re");

	assert_int_equal(fread(key->secret, 1, KEY_LEN, file), KEY_LEN);
	fclose(file);
	key_set_id(key);
}

static void test_shared_key(void **state)
{
	struct scene *s = *state;
	struct sender_socket *socket;
	struct enrolment_answer a;
	struct key shared;

	stack_start_aggregator(s->stack, 0);
	read_shared_key(s, &shared);
	socket = enrol_client_dial(s->stack->aggregators[0].ingest_port);
	enrol_client_send(socket, "test-node", &shared);
	await_metric(s, FRAMES("shared_key"), 1);
	sender_socket_close(socket);

	/* It counts for nodes that have not enrolled. */
	stack_kill_aggregator(s->stack, 0);
	s->aggregator_more[8] = "--allow-shared-key";
	s->aggregator_more[9] = "true";
	stack_start_aggregator(s->stack, 0);
	socket = enrol_client_dial(s->stack->aggregators[0].ingest_port);
	enrol_client_send(socket, "other", &shared);
	await_metric(s, FRAMES("refused"), 1);
	enrol_client_ask(socket, s->public, "other", CREDENTIAL_JOIN_TOKEN, TOKEN, &a);
	assert_int_equal(a.status, ENROLMENT_DONE);
	enrol_client_send(socket, "other", &shared);
	await_metric(s, FRAMES("shared_key"), 1);
	assert_true(metric(s, FRAMES("refused")) == 1);
	sender_socket_close(socket);
}

/* --- other versions on the other side --------------------------------------------------------- */

/* Until the agent's log has the text. */
static bool is_logged(void *ctx)
{
	struct scene *s = ctx;
	struct buf log = BUF_INIT;
	char *path = path_in(s, "agent-0.log");
	bool logged = !file_read(path, 1 << 20, &log, NULL) && strstr(log.data, s->awaited_log);

	buf_fini(&log);
	free(path);
	return logged;
}

static void await_log(struct scene *s, const char *text)
{
	s->awaited_log = text;
	if (await(is_logged, s, WAIT_S))
		return;
	print_error("the agent does not log \"%s\"\n", text);
	stack_free(s->stack, 1);
	abort();
}

static void test_agent_with_the_shared_key(void **state)
{
	static const char *const more[] = {"--no-confine", "--tier", "T3",
					   "--interval",   "1s",     NULL};
	struct scene *s = *state;

	s->stack->agent_enrols = false;
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, more);
	await_log(s, "did not take an interval: agents have to enrol here");
	assert_true(metric(s, FRAMES("applied")) == 0);
	/* It goes on once it is allowed, without a loss. */
	stack_kill_aggregator(s->stack, 0);
	s->aggregator_more[8] = "--allow-shared-key";
	s->aggregator_more[9] = "true";
	stack_start_aggregator(s->stack, 0);
	await_metric(s, FRAMES("applied"), 2);
	assert_true(metric(s, "evenkeel_intervals_missing_total") == 0);
}

static void test_aggregator_without_enrolment(void **state)
{
	struct scene *s = *state;

	stack_start_aggregator(s->stack, 0); /* makes the keys */
	stack_kill_aggregator(s->stack, 0);
	s->aggregator_more[0] = NULL;
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, s->agent_more);
	await_log(s, "does not enrol this node: no answer: does the aggregator have an "
		     "--enrolment-key");
	stack_kill_aggregator(s->stack, 0);
	s->aggregator_more[0] = "--enrolment-key";
	stack_start_aggregator(s->stack, 0);
	await_metric(s, FRAMES("applied"), 2);
	assert_true(metric(s, "evenkeel_intervals_missing_total") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_restarts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_renewal_loses_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusal_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_key_of_another_node, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals_end_the_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_agent_with_the_shared_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_aggregator_without_enrolment, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
