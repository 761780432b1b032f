/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two aggregators that know each other (--peer) in network namespaces of their own. The link between
 * both fails, and so does the link between one of them and half of the agents:
 *
 *	agents 0, 1   10.77.0.2 ---- the link that fails ---- 10.77.0.1   aggregator 0   10.77.3.1
 *	agents 2, 3   10.77.1.2 ---------------------------- 10.77.1.1                      |
 *	all agents    10.77.2.2 --------------------.                               the link that fails
 *	                                            |                                       |
 *	                                        10.77.2.1   aggregator 1                 10.77.3.2
 *
 * Both go on to answer, and each reports what it lacks. When the links are whole again, both hold the
 * reservations of both and have the same windows, without help. PARTITION_S=45: the cut lasts so
 * many seconds, and nodes count as late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/frame_account.h"
#include "tests/netns.h"
#include "tests/process.h"
#include "tests/scheduler.h"
#include "tests/stack.h"

enum { AGENTS = 4, CUT_OFF = AGENTS / 2, PODS = 6, CUT_S = 5, LATE_S = 30, BACK_S = 30 };

#define CHARGED	  "evenkeel_ledger_entries{state=\"charged\"}"
#define CONNECTED "evenkeel_peer_connected"

struct scene {
	struct stack *stack;
	struct netns own, of[2]; /* of the agents and this program; of the aggregators */
	char *objects, *peers[2];
	const char *options[2][3];
	pid_t agents[AGENTS];
	struct scheduler scheduler;
	double charged; /* reservations that are expected */
	double cut_s;
	bool agreed[AGENTS]; /* both aggregators once said the same of the node */
};

/* --- requests --------------------------------------------------------------------------------- */

static cJSON *get(const struct scene *s, int i, const char *path)
{
	cJSON *json;

	netns_enter(&s->of[i]);
	json = stack_get(s->stack, i, path);
	netns_enter(&s->own);
	return json;
}

static double metric(const struct scene *s, int i, const char *name)
{
	double value;

	netns_enter(&s->of[i]);
	value = stack_metric(s->stack, i, name);
	netns_enter(&s->own);
	return value;
}

/* A scheduler beside aggregator i asks it about a pod. */
static void place(struct scene *s, int i, int number)
{
	netns_enter(&s->of[i]);
	scheduler_place(&s->scheduler, i, i, &(struct scheduler_pod){"shop", number, 1});
	netns_enter(&s->own);
}

/* Seconds since aggregator i heard the node. */
static double age(const struct scene *s, int i, int node)
{
	char *name = mem_printf("evenkeel_node_sample_age_seconds{node=\"node-%d\"}", node);
	double seconds = metric(s, i, name);

	free(name);
	return seconds;
}

/* --- the scene -------------------------------------------------------------------------------- */

static void write_objects(const struct scene *s)
{
	FILE *file = fopen(s->objects, "w");

	assert_non_null(file);
	for (int i = 0; i < AGENTS; i++)
		fprintf(file,
			"---\napiVersion: v1\nkind: Node\nmetadata: {name: node-%d}\nstatus: "
			"{allocatable: {cpu: 64, memory: 64Gi, pods: 110}}\n",
			i);
	fclose(file);
}

/* A link of this program's namespace to that of aggregator i. */
static void make_link(const struct scene *s, int number, int i)
{
	char *near = mem_printf("ip link add ek%d type veth peer name ek%d netns %d && "
				"ip address add 10.77.%d.2/24 dev ek%d && ip link set ek%d up",
				number, number, s->of[i].holder, number, number, number),
	     *far = mem_printf("ip address add 10.77.%d.1/24 dev ek%d && ip link set ek%d up",
			       number, number, number);

	assert_true(netns_shell(near));
	netns_enter(&s->of[i]);
	assert_true(netns_shell(far));
	netns_enter(&s->own);
	free(near);
	free(far);
}

static void make_links(const struct scene *s)
{
	make_link(s, 0, 0);
	make_link(s, 1, 0);
	make_link(s, 2, 1);
	/* Between both: this end, too, goes to an aggregator. */
	make_link(s, 3, 0);
	{
		char *move = mem_printf("ip link set ek3 netns %d", s->of[1].holder);

		assert_true(netns_shell(move));
		free(move);
	}
	netns_enter(&s->of[1]);
	assert_true(netns_shell("ip address add 10.77.3.2/24 dev ek3 && ip link set ek3 up"));
	netns_enter(&s->own);
}

static void set_links(const struct scene *s, const char *to)
{
	char *agents = mem_printf("ip link set ek0 %s", to),
	     *peers = mem_printf("ip link set ek3 %s", to);

	assert_true(netns_shell(agents));
	netns_enter(&s->of[1]);
	assert_true(netns_shell(peers));
	netns_enter(&s->own);
	free(agents);
	free(peers);
}

static void start_aggregators(struct scene *s)
{
	for (int i = 0; i < 2; i++) {
		struct stack_aggregator *a = &s->stack->aggregators[i];

		a->http_port = free_port();
		a->ingest_port = free_port();
		a->ingest_host = "0.0.0.0";
		a->snapshot_path = s->objects;
		a->more = s->options[i];
	}
	for (int i = 0; i < 2; i++) {
		s->peers[i] = mem_printf("tcp://10.77.3.%d:%d", 2 - i,
					 s->stack->aggregators[1 - i].ingest_port);
		s->options[i][0] = "--peer";
		s->options[i][1] = s->peers[i];
		netns_enter(&s->of[i]);
		stack_start_aggregator(s->stack, i);
		netns_enter(&s->own);
	}
	netns_enter(&s->of[0]);
	scheduler_read_nodes(&s->scheduler, s->stack);
	netns_enter(&s->own);
	assert_int_equal(s->scheduler.count, AGENTS);
}

static void start_agent(struct scene *s, int i)
{
	char *program = mem_strdup(program_path("evenkeel-agent"));
	char *log = mem_printf("%s/agent-%d.log", s->stack->folder, i);
	char *name = mem_printf("node-%d", i);
	char *urls[] = {mem_printf("tcp://10.77.%d.1:%d", i / CUT_OFF,
				   s->stack->aggregators[0].ingest_port),
			mem_printf("tcp://10.77.2.1:%d", s->stack->aggregators[1].ingest_port)};
	char *argv[] = {program,
			(char *)"--node-name",
			name,
			(char *)"--key-file",
			s->stack->key_path,
			(char *)"--interval",
			(char *)"1s",
			(char *)"--aggregator",
			urls[0],
			(char *)"--aggregator",
			urls[1],
			NULL};

	s->agents[i] = process_start(log, argv);
	assert_true(s->agents[i] > 0);
	free(program);
	free(log);
	free(name);
	free(urls[0]);
	free(urls[1]);
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	const char *seconds = getenv("PARTITION_S");

	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	s->objects = mem_printf("%s/objects.yaml", s->stack->folder);
	s->cut_s = seconds ? strtod(seconds, NULL) : CUT_S;
	write_objects(s);
	netns_begin(&s->own);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < AGENTS; i++)
		if (s->agents[i])
			process_stop(s->agents[i], SIGKILL);
	stack_free(s->stack, 0);
	for (int i = 0; i < 2; i++) {
		netns_close(&s->of[i]);
		free(s->peers[i]);
	}
	netns_close(&s->own);
	scheduler_fini(&s->scheduler);
	free(s->objects);
	free(s);
	return 0;
}

/* --- conditions ------------------------------------------------------------------------------- */

static bool are_together(void *ctx)
{
	return metric(ctx, 0, CONNECTED) == 1 && metric(ctx, 1, CONNECTED) == 1;
}

static bool are_alone(void *ctx)
{
	return metric(ctx, 0, CONNECTED) == 0 && metric(ctx, 1, CONNECTED) == 0;
}

static bool hold_all(void *ctx)
{
	const struct scene *s = ctx;

	return metric(s, 0, CHARGED) == s->charged && metric(s, 1, CHARGED) == s->charged;
}

/* Within the last 3 s, by aggregator i. */
static bool hears(const struct scene *s, int i, int from)
{
	for (int node = from; node < AGENTS; node++) {
		double seconds = age(s, i, node);

		if (seconds < 0 || seconds > 3)
			return false;
	}
	return true;
}

static bool hear_all(void *ctx)
{
	return hears(ctx, 0, 0) && hears(ctx, 1, 0);
}

static bool lacks_half(void *ctx)
{
	const struct scene *s = ctx;

	for (int node = 0; node < CUT_OFF; node++)
		if (age(s, 0, node) < s->cut_s)
			return false;
	return hears(s, 0, CUT_OFF) && hears(s, 1, 0);
}

/* Both were asked at moments when both had heard the same of the node. */
static bool all_agree(void *ctx)
{
	struct scene *s = ctx;
	cJSON *lists[] = {get(s, 0, "/v1/nodes"), get(s, 1, "/v1/nodes")};
	bool all = true;

	for (int node = 0; node < AGENTS; node++) {
		char *name = mem_printf("node-%d", node);
		const cJSON *of[] = {json_at(json_item(lists[0], name), "usage"),
				     json_at(json_item(lists[1], name), "usage")};

		s->agreed[node] |= of[0] && of[1] && cJSON_Compare(of[0], of[1], true);
		all &= s->agreed[node];
		free(name);
	}
	cJSON_Delete(lists[0]);
	cJSON_Delete(lists[1]);
	return all;
}

/* --- the test --------------------------------------------------------------------------------- */

static void expect_to_answer_all(const struct scene *s, int i)
{
	static const char *const paths[] = {"/v1/nodes", "/v1/pods", "/v1/status", "/v1/fleet",
					    "/watcher"};

	for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
		cJSON *answer = get(s, i, paths[p]);

		if (!answer)
			fail_msg("aggregator %d does not answer %s", i, paths[p]);
		cJSON_Delete(answer);
	}
}

static void expect_to_say(const struct scene *s, int i, const char *words)
{
	cJSON *doctor = get(s, i, "/v1/doctor");
	char *text = cJSON_PrintUnformatted(doctor);

	if (!text || !strstr(text, words))
		fail_msg("aggregator %d does not say \"%s\": %s", i, words, text ? text : "");
	cJSON_free(text);
	cJSON_Delete(doctor);
}

static void expect_late(const struct scene *s, int i, int count)
{
	cJSON *status = get(s, i, "/v1/status");

	assert_int_equal(cJSON_GetNumberValue(json_at(status, "agents.late")), count);
	assert_int_equal(cJSON_GetNumberValue(json_at(status, "agents.fresh")), AGENTS - count);
	cJSON_Delete(status);
}

static void expect_to_be_cut(const struct scene *s)
{
	for (int i = 0; i < 2; i++) {
		cJSON *status = get(s, i, "/v1/status");

		assert_string_equal(cJSON_GetStringValue(json_at(status, "peer.state")), "alone");
		cJSON_Delete(status);
		expect_to_answer_all(s, i);
		expect_to_say(s, i, "the other aggregator is not connected");
	}
	expect_late(s, 0, s->cut_s > LATE_S ? CUT_OFF : 0);
	expect_late(s, 1, 0);
	if (s->cut_s > LATE_S)
		expect_to_say(s, 0, "not heard for more than 30s");
}

static void print_since(const char *what, int64_t begin_ns)
{
	print_message("%s after %.1f s\n", what, (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC);
}

static void test_a_partition_heals(void **state)
{
	struct scene *s = *state;
	int64_t began_ns;

	if (s->own.fd < 0) {
		print_message("SKIP: needs root and ip(8) for network namespaces\n");
		skip();
	}
	for (int i = 0; i < 2; i++)
		netns_open(&s->of[i]);
	make_links(s);
	start_aggregators(s);
	for (int i = 0; i < AGENTS; i++)
		start_agent(s, i);
	assert_true(await(are_together, s, BACK_S));
	assert_true(await(hear_all, s, BACK_S));
	place(s, 0, 0);
	place(s, 1, 1);
	s->charged = 2;
	assert_true(await(hold_all, s, BACK_S));

	set_links(s, "down");
	began_ns = clock_mono_ns();
	assert_true(await(are_alone, s, BACK_S));
	print_since("the aggregators are alone", began_ns);
	assert_true(await(lacks_half, s, s->cut_s + BACK_S));
	expect_to_be_cut(s);
	/* Reservations of before the cut may have expired. */
	for (int pod = 0; pod < PODS; pod++)
		place(s, pod % 2, pod);
	assert_true(metric(s, 0, CHARGED) < PODS && metric(s, 1, CHARGED) < PODS);

	set_links(s, "up");
	began_ns = clock_mono_ns();
	assert_true(await(are_together, s, BACK_S));
	print_since("the aggregators are together", began_ns);
	s->charged = PODS;
	assert_true(await(hold_all, s, BACK_S));
	print_since("both hold all reservations", began_ns);
	assert_true(await(all_agree, s, BACK_S));
	print_since("both have the same windows", began_ns);
	for (int i = 0; i < 2; i++) {
		netns_enter(&s->of[i]);
		frame_account_expect_whole(s->stack, i);
		netns_enter(&s->own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_partition_heals, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
