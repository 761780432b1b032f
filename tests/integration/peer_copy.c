/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregator without a database gets a copy of the other one's: node windows are there before any
 * agent reports to it. Without the other one, or where that one refuses, it begins without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aggregator/edge/ingest_aggregator.h"
#include "shared/body.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { NODES = 20 };

#define BYTES_SENT     "evenkeel_peer_copy_bytes_total{direction=\"sent\"}"
#define BYTES_RECEIVED "evenkeel_peer_copy_bytes_total{direction=\"received\"}"
#define TOKEN	       "join-token-of-the-fleet-0123456789"

struct scene {
	struct stack *stack;
	char *objects, *peers[2], *states[2], *enrolment;
	const char *options[2][9];
	pid_t fleet;
};

static void write_objects(const struct scene *s)
{
	const char *folder = getenv("TB");
	char *program = mem_printf("%s/fleet", folder ? folder : "build/tests");
	char *argv[] = {program,     (char *)"--nodes", (char *)"20", (char *)"--pods-per-node",
			(char *)"5", (char *)"--dump",	s->objects,   NULL};
	struct buf out = BUF_INIT;

	assert_int_equal(process_run(argv, &out, NULL), 0);
	buf_fini(&out);
	free(program);
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	s->objects = mem_printf("%s/objects.json", s->stack->folder);
	write_objects(s);
	s->enrolment = mem_printf("%s/enrolment", s->stack->folder);
	for (int i = 0; i < 2; i++) {
		s->stack->aggregators[i].http_port = free_port();
		s->stack->aggregators[i].ingest_port = free_port();
		s->stack->aggregators[i].snapshot_path = s->objects;
	}
	for (int i = 0; i < 2; i++) {
		const char **o = s->options[i];

		s->peers[i] =
			mem_printf("tcp://127.0.0.1:%d", s->stack->aggregators[1 - i].ingest_port);
		s->states[i] = mem_printf("%s/state-%d", s->stack->folder, i);
		o[0] = "--peer";
		o[1] = s->peers[i];
		o[2] = "--state-dir";
		o[3] = s->states[i];
		s->stack->aggregators[i].more = o;
	}
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->fleet)
		process_stop(s->fleet, SIGKILL);
	stack_free(s->stack, 0);
	for (int i = 0; i < 2; i++) {
		free(s->peers[i]);
		free(s->states[i]);
	}
	free(s->objects);
	free(s->enrolment);
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

static bool exists(const struct scene *s, int i, const char *name)
{
	char *path = mem_printf("%s/%s", s->states[i], name);
	bool is = access(path, F_OK) == 0;

	free(path);
	return is;
}

/* The agents report to the first one alone. */
static void start_fleet(struct scene *s)
{
	static const char *const options[] = {"--nodes",   "20",	 "--pods-per-node",
					      "5",	   "--interval", "1s",
					      "--history", "360s",	 "--ring-span",
					      "15m",	   NULL};

	s->fleet = fleet_start(s->stack, options);
}

/* Of all nodes, in the windows of 5 minutes. */
static double count_samples(const struct scene *s, int i, int *nodes)
{
	cJSON *list = stack_get(s->stack, i, "/v1/nodes");
	const cJSON *item;
	double sum = 0;

	*nodes = 0;
	cJSON_ArrayForEach (item, json_at(list, "items")) {
		const cJSON *samples = json_at(item, "usage.cpuMillicores.windows.5m.samples");

		sum += samples ? samples->valuedouble : 0;
		*nodes += samples != NULL;
	}
	cJSON_Delete(list);
	return sum;
}

static bool has_samples(void *ctx)
{
	int nodes;

	count_samples(ctx, 0, &nodes);
	return nodes == NODES;
}

static void start_first(struct scene *s)
{
	stack_start_aggregator(s->stack, 0);
	start_fleet(s);
	assert_true(await(has_samples, s, 60));
}

/* --- the copy --------------------------------------------------------------------------------- */

struct texts {
	struct buf all;
};

static int take_name(void *ctx, int columns, char **values, char **names)
{
	(void)columns;
	(void)names;
	buf_printf(&((struct texts *)ctx)->all, "%s ", values[0]);
	return 0;
}

/* The names of the states in the database of one that has ended. */
static char *read_states(const struct scene *s, int i)
{
	char *path = mem_printf("%s/evenkeel.db", s->states[i]);
	struct texts t = {BUF_INIT};
	sqlite3 *db;
	size_t len;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "SELECT name FROM plan_state ORDER BY name", take_name,
				      &t, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	free(path);
	return buf_take(&t.all, &len);
}

static bool is_copied(void *ctx)
{
	return metric(ctx, 1, BYTES_RECEIVED) > 0;
}

/* It is not ready: no agent reports to it. */
static void start_second(struct scene *s)
{
	stack_launch_aggregator(s->stack, 1);
	assert_true(await(is_copied, s, 20));
}

static bool has_windows_again(void *ctx)
{
	int nodes;

	count_samples(ctx, 1, &nodes);
	return nodes == NODES;
}

/* Views may be older than what was heard or restored. */
static bool has_the_same_samples(void *ctx)
{
	int of_first, nodes;

	return count_samples(ctx, 0, &of_first) == count_samples(ctx, 1, &nodes) && nodes == NODES;
}

static void a_new_one_has_what_the_other_has(void **state)
{
	struct scene *s = *state;
	double bytes;

	start_first(s);
	/* A window's samples become more and fewer while intervals come. */
	cJSON_Delete(fleet_stop(s->stack, s->fleet));
	s->fleet = 0;
	start_second(s);
	assert_true(await(has_the_same_samples, s, 20));
	assert_true(logged(s, 1, "has a copy of the database of"));
	bytes = metric(s, 1, BYTES_RECEIVED);
	print_message("%.0f bytes in %.3f s\n", bytes,
		      metric(s, 1, "evenkeel_peer_copy_seconds_total{direction=\"received\"}"));
	assert_true(bytes > 0 && metric(s, 0, BYTES_SENT) == bytes);
	assert_false(exists(s, 0, "evenkeel.db.copy") || exists(s, 1, "evenkeel.db.part"));
	/* One that has a database keeps it. */
	stack_kill_aggregator(s->stack, 1);
	stack_launch_aggregator(s->stack, 1);
	assert_true(await(has_windows_again, s, 20));
	assert_true(metric(s, 1, BYTES_RECEIVED) == 0 && metric(s, 0, BYTES_SENT) == bytes);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	chmod(path, 0600);
	fputs(text, file);
	fclose(file);
}

/* Keys of nodes stay; their time has not ended when their aggregator starts again. */
static void keys_of_nodes_are_not_copied(void **state)
{
	struct scene *s = *state;
	char *tokens = mem_printf("%s/tokens", s->stack->folder),
	     *public = mem_printf("%s.pub", s->enrolment), *own, *copied, *at;
	char *token = mem_printf("%s/token", s->stack->folder);
	const char *more[2][9] = {{NULL}};

	write_file(tokens, TOKEN " *\n");
	write_file(token, TOKEN);
	for (int i = 0; i < 2; i++) {
		const char *const o[] = {"--peer",
					 s->peers[i],
					 "--state-dir",
					 s->states[i],
					 "--enrolment-key",
					 s->enrolment,
					 "--join-token-file",
					 tokens,
					 NULL};

		memcpy(more[i], o, sizeof(o));
		s->stack->aggregators[i].more = more[i];
	}
	stack_start_aggregator(s->stack, 0);
	{
		const char *const options[] = {
			"--nodes",   "20",   "--pods-per-node",	 "5",	 "--interval",	      "1s",
			"--history", "360s", "--aggregator-key", public, "--join-token-file", token,
			NULL};

		s->fleet = fleet_start(s->stack, options);
	}
	assert_true(await(has_samples, s, 60));
	start_second(s);
	stack_kill_aggregator(s->stack, 0);
	stack_kill_aggregator(s->stack, 1);
	own = read_states(s, 0);
	copied = read_states(s, 1);
	at = strstr(own, "nodeKeys ");
	assert_non_null(at);
	memmove(at, at + strlen("nodeKeys "), strlen(at + strlen("nodeKeys ")) + 1);
	assert_string_equal(copied, own);
	assert_non_null(strstr(copied, "demand0 "));
	free(own);
	free(copied);
	free(tokens);
	free(token);
	free(public);
}

/* --- without it ------------------------------------------------------------------------------- */

static double seconds_to_start(const struct scene *s, int i)
{
	int64_t began_ns = clock_mono_ns();

	stack_start_aggregator(s->stack, i);
	return (double)(clock_mono_ns() - began_ns) / NS_PER_SEC;
}

static void nobody_there_costs_nothing(void **state)
{
	struct scene *s = *state;
	double took_s = seconds_to_start(s, 1);

	assert_true(took_s < scaled_s(4));
	assert_true(logged(s, 1, "begins without a copy of the database of"));
	assert_true(metric(s, 1, BYTES_RECEIVED) == 0);
	assert_true(exists(s, 1, "evenkeel.db"));
}

/* A port that accepts and does not answer. */
static void a_silent_one_costs_two_seconds(void **state)
{
	struct scene *s = *state;
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)s->stack->aggregators[0].ingest_port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	double took_s;

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	took_s = seconds_to_start(s, 1);
	print_message("ready after %.1f s\n", took_s);
	assert_true(took_s > 1.5 && took_s < scaled_s(6));
	assert_true(logged(s, 1, "no answer in time"));
	close(fd);
}

static void one_without_a_database_refuses(void **state)
{
	struct scene *s = *state;

	s->options[0][2] = NULL;
	stack_start_aggregator(s->stack, 0);
	assert_true(seconds_to_start(s, 1) < scaled_s(4));
	assert_true(logged(s, 1, "it refuses: it has no --state-dir"));
}

/* Both are there, without waiting for each other. */
static bool are_together(void *ctx)
{
	return metric(ctx, 0, "evenkeel_peer_connected") == 1 &&
	       metric(ctx, 1, "evenkeel_peer_connected") == 1;
}

static void two_new_ones_do_not_wait_for_each_other(void **state)
{
	struct scene *s = *state;
	int64_t began_ns = clock_mono_ns();

	for (int i = 0; i < 2; i++)
		stack_launch_aggregator(s->stack, i);
	assert_true(await(are_together, s, 20));
	assert_true(clock_mono_ns() - began_ns < (int64_t)(scaled_s(4) * NS_PER_SEC));
}

/* --- who may ask ------------------------------------------------------------------------------ */

/* This program as another aggregator, or as an agent. */
struct caller {
	int fd;
	struct keyring keys;
	uint64_t sequence;
	struct frame_header says; /* of the last answer */
	struct buf body;
	struct ack ack; /* if it was one */
};

static void call(const struct scene *s, struct caller *c, bool as_agent)
{
	struct address address = {"127.0.0.1"};
	struct secret file = {0};
	struct keyring shared = {.count = 1};
	struct endpoint endpoint;
	struct error error;

	*c = (struct caller){.sequence = 1};
	assert_int_equal(secret_read(&file, s->stack->key_path, KEY_LEN, true, &error), 0);
	memcpy(shared.keys[0].secret, file.text, KEY_LEN);
	key_set_id(&shared.keys[0]);
	secret_free(&file);
	if (as_agent)
		c->keys = shared;
	else
		aggregator_derive_keys(&c->keys, &shared);
	assert_int_equal(endpoint_parse(&endpoint, s->peers[1], &error), 0);
	assert_int_equal(aggregator_connect(&c->fd, &endpoint, &address, 3 * NS_PER_SEC, &error),
			 0);
}

static int say(struct caller *c, enum frame_type type)
{
	struct frame_header asks = {
		.type = type, .sequence = c->sequence, .parts = 1, .node = AGGREGATOR_NODE};
	const struct buf nothing = BUF_INIT;
	struct error error;
	int rc = aggregator_send(c->fd, &asks, &c->keys.keys[0], NULL, &nothing, &error);

	if (!rc)
		rc = aggregator_receive(c->fd, &c->keys, asks.nonce, &c->says, &c->body, &error);
	if (!rc && c->says.type == FRAME_ACK)
		assert_int_equal(body_decode_ack(c->body.data, c->body.len, &c->ack, &error), 0);
	return rc;
}

static void hang_up(struct caller *c)
{
	close(c->fd);
	buf_fini(&c->body);
}

struct count {
	const struct scene *scene;
	const char *name;
	double value;
};

static bool is_counted(void *ctx)
{
	const struct count *c = ctx;

	return metric(c->scene, 0, c->name) == c->value;
}

/* Of the first one, which counts after it has answered or hung up. */
static void await_count(const struct scene *s, const char *name, double value)
{
	struct count c = {s, name, value};

	assert_true(await(is_counted, &c, 20));
}

static void a_key_of_agents_opens_nothing(void **state)
{
	struct scene *s = *state;
	struct caller agent;

	stack_start_aggregator(s->stack, 0);
	call(s, &agent, true);
	assert_true(say(&agent, FRAME_COPY) != 0);
	await_count(s, "evenkeel_frames_total{result=\"unknown_key\"}", 1);
	assert_true(metric(s, 0, "evenkeel_frames_total{result=\"exchange\"}") == 0);
	hang_up(&agent);
}

static void only_the_next_sequence_is_answered(void **state)
{
	static const int64_t steps[] = {0, 2, -1};
	struct scene *s = *state;

	stack_start_aggregator(s->stack, 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct caller c;

		call(s, &c, false);
		/* The one before it may still hold the place. */
		while (say(&c, FRAME_COPY) == 0 && c.ack.status == ACK_REFUSED) {
			hang_up(&c);
			call(s, &c, false);
		}
		c.sequence = c.ack.applied + (uint64_t)steps[i];
		assert_true(say(&c, FRAME_COPY) != 0);
		hang_up(&c);
	}
	assert_true(metric(s, 0, BYTES_SENT) == 0);
}

static void a_second_asker_is_refused(void **state)
{
	struct scene *s = *state;
	struct caller first, second;

	stack_start_aggregator(s->stack, 0);
	call(s, &first, false);
	assert_int_equal(say(&first, FRAME_COPY), 0);
	assert_int_equal(first.ack.status, ACK_APPLIED);
	call(s, &second, false);
	assert_int_equal(say(&second, FRAME_COPY), 0);
	assert_int_equal(second.ack.status, ACK_REFUSED);
	assert_string_equal(second.ack.reason, "another copy is under way");
	first.sequence = first.ack.applied;
	first.ack.status = ACK_PART_STORED;
	while (first.ack.status == ACK_PART_STORED) {
		first.sequence++;
		assert_int_equal(say(&first, FRAME_COPY), 0);
	}
	assert_int_equal(first.ack.status, ACK_APPLIED);
	assert_true(first.ack.applied > 0);
	await_count(s, BYTES_SENT, (double)first.ack.applied);
	hang_up(&first);
	hang_up(&second);
}

/* As a newer release might send: it is not answered, and the exchange goes on. */
static void an_unknown_frame_ends_no_exchange(void **state)
{
	struct scene *s = *state;
	struct caller c;

	stack_start_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 1);
	assert_true(await(are_together, s, 20));
	call(s, &c, false);
	assert_true(say(&c, (enum frame_type)(FRAME_COPY + 1)) != 0);
	await_count(s, "evenkeel_frames_total{result=\"malformed\"}", 1);
	assert_true(are_together(s));
	assert_false(logged(s, 0, "without the other aggregator, ") &&
		     logged(s, 1, "without the other aggregator, "));
	hang_up(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_new_one_has_what_the_other_has),
		TEST(keys_of_nodes_are_not_copied),
		TEST(nobody_there_costs_nothing),
		TEST(a_silent_one_costs_two_seconds),
		TEST(one_without_a_database_refuses),
		TEST(two_new_ones_do_not_wait_for_each_other),
		TEST(a_key_of_agents_opens_nothing),
		TEST(only_the_next_sequence_is_answered),
		TEST(a_second_asker_is_refused),
		TEST(an_unknown_frame_ends_no_exchange),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
