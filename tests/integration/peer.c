/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two real aggregators that exchange reservations (--peer), and a scheduler that asks now one, now
 * the other: placements are those of a single aggregator. One of both is stopped, killed and
 * replaced.
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
#include <sys/wait.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"
#include "tests/scheduler.h"
#include "tests/stack.h"

enum { NODES = 12, QUOTA_CPUS = 10, PODS = 10 };

#define CHARGED	  "evenkeel_ledger_entries{state=\"charged\"}"
#define CONNECTED "evenkeel_peer_connected"
#define ANSWERS	  "evenkeel_peer_answers_total{result="
#define WAITED	  "evenkeel_peer_wait_seconds_total"

struct scene {
	struct stack *stack;
	char *objects, *quota, *peers[2];
	const char *options[2][5]; /* the first two: --peer and its URL */
	pid_t fleet; /* 0: no agents */
	struct scheduler scheduler;
};

/* --- the cluster ------------------------------------------------------------------------------ */

/* A simulated cluster, and a quota for the pods of a namespace. */
static void write_objects(const struct scene *s)
{
	FILE *file = fopen(s->quota, "w");

	fleet_dump(s->objects, NODES, 5);
	assert_non_null(file);
	fprintf(file,
		"apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {name: q, "
		"namespace: held}\nspec: {min: {cpu: %d}, max: {cpu: %d}}\n",
		QUOTA_CPUS, QUOTA_CPUS);
	fclose(file);
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	s->objects = mem_printf("%s/objects.json", s->stack->folder);
	s->quota = mem_printf("%s/quota.yaml", s->stack->folder);
	write_objects(s);
	for (int i = 0; i < 2; i++) {
		s->stack->aggregators[i].http_port = free_port();
		s->stack->aggregators[i].ingest_port = free_port();
		s->stack->aggregators[i].snapshot_path = s->objects;
	}
	for (int i = 0; i < 2; i++) {
		const char **o = s->options[i];

		s->peers[i] =
			mem_printf("tcp://127.0.0.1:%d", s->stack->aggregators[1 - i].ingest_port);
		o[0] = "--peer";
		o[1] = s->peers[i];
		o[2] = "--snapshot";
		o[3] = s->quota;
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
	free(s->objects);
	free(s->quota);
	for (int i = 0; i < 2; i++)
		free(s->peers[i]);
	scheduler_fini(&s->scheduler);
	free(s);
	return 0;
}

static double metric(const struct scene *s, int i, const char *name)
{
	return stack_metric(s->stack, i, name);
}

static bool are_together(void *ctx)
{
	return metric(ctx, 0, CONNECTED) == 1 && metric(ctx, 1, CONNECTED) == 1;
}

static void start_both(struct scene *s)
{
	stack_start_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 1);
	assert_true(await(are_together, s, 20));
	scheduler_read_nodes(&s->scheduler, s->stack);
	assert_int_equal(s->scheduler.count, NODES);
}

/* Both without reservations. */
static void start_again(struct scene *s, bool peers)
{
	for (int i = 0; i < 2; i++) {
		stack_kill_aggregator(s->stack, i);
		s->stack->aggregators[i].more = s->options[i] + (peers ? 0 : 2);
	}
	for (int i = 0; i < 2; i++)
		stack_start_aggregator(s->stack, i);
	assert_true(!peers || await(are_together, s, 20));
}

/* --- a scheduler ------------------------------------------------------------------------------ */

static int place(const struct scene *s, int filter, int prioritize, int number)
{
	return scheduler_place(&s->scheduler, filter, prioritize,
			       &(struct scheduler_pod){"burst", number, 4});
}

/*
 * Pods that a burst puts where the pod before them was put, though that node is fuller than others
 * by then. Questions go to both in turn, or all to the first.
 */
static int place_burst(const struct scene *s, bool alternate)
{
	int last = -1, stacked = 0;

	for (int pod = 0; pod < PODS; pod++) {
		int filter = alternate ? pod / 2 % 2 : 0, prioritize = alternate ? pod % 2 : 0;
		int node = place(s, filter, prioritize, pod);

		stacked += node == last;
		last = node;
	}
	return stacked;
}

struct wait {
	struct scene *scene;
	int at, charged;
};

static bool has_all(void *ctx)
{
	const struct wait *w = ctx;

	return metric(w->scene, w->at, CHARGED) == w->charged;
}

/* Also of what was told after an answer that went out alone. */
static void await_charged(struct scene *s, int at, int charged)
{
	struct wait w = {s, at, charged};

	assert_true(await(has_all, &w, 20));
}

/* --- together --------------------------------------------------------------------------------- */

static double answers(const struct scene *s, const char *result)
{
	char *name = mem_printf("%s\"%s\"}", ANSWERS, result);
	double count = metric(s, 0, name) + metric(s, 1, name);

	free(name);
	return count;
}

/* Answers that a busy machine had go out alone: so many pods may stack. */
static int unsure(const struct scene *s)
{
	return (int)(answers(s, "late") + answers(s, "alone"));
}

/* Without an await. Where a busy machine has an answer go out alone, the pod is placed again. */
static void the_other_knows_before_the_answer(void **state)
{
	struct scene *s = *state;
	int tries = 0;

	start_both(s);
	for (int pod = 0; pod < PODS;) {
		double before = answers(s, "acknowledged");

		assert_true(++tries < 10 * PODS && await(are_together, s, 20));
		place(s, pod % 2, pod % 2, pod);
		if (answers(s, "acknowledged") < before + 2)
			continue;
		assert_true(metric(s, 1 - pod % 2, CHARGED) == pod + 1);
		pod++;
	}
	print_message("an answer waits for %.3f ms, in the mean\n",
		      500 * (metric(s, 0, WAITED) + metric(s, 1, WAITED)) / tries);
}

/* Pods of the quota's namespace that pass. */
static int fill_quota(const struct scene *s, bool alternate)
{
	int passed = 0;

	for (int pod = 0; pod < 2 * QUOTA_CPUS + 2; pod++)
		passed += scheduler_passes(&s->scheduler, alternate ? pod % 2 : 0,
					   &(struct scheduler_pod){"held", pod, 1});
	return passed;
}

static void both_hold_one_quota(void **state)
{
	struct scene *s = *state;
	int both, one, strangers, alone;

	start_both(s);
	both = fill_quota(s, true);
	/* Again, as long as a busy machine has too many answers go out alone. */
	for (; unsure(s) > QUOTA_CPUS / 2; both = fill_quota(s, true))
		start_again(s, true);
	alone = unsure(s);
	start_again(s, false);
	one = fill_quota(s, false);
	start_again(s, false);
	strangers = fill_quota(s, true);
	print_message("a quota has room for %d pods; both let in %d, two strangers %d\n", one, both,
		      strangers);
	assert_in_range(one, 1, QUOTA_CPUS);
	assert_in_range(both, one, one + alone);
	assert_true(strangers > one + alone);
}

/* Both hear all agents, and rank nodes by their use. */
static bool are_measured(void *ctx)
{
	const struct scene *s = ctx;
	const struct scheduler_pod nobody = {"burst", -1, 4};
	int best[2];

	for (int i = 0; i < 2; i++)
		scheduler_rank(&s->scheduler, i, &nobody, &best[i]);
	return best[0] == 10 && best[1] == 10;
}

static void start_fleet(struct scene *s)
{
	char *also = mem_printf("tcp://127.0.0.1:%d", s->stack->aggregators[1].ingest_port);
	const char *const options[] = {"--nodes",     "12",  "--pods-per-node", "5",
				       "--interval",  "1s",  "--history",	"15m",
				       "--ring-span", "15m", "--also",		also,
				       NULL};

	s->fleet = fleet_start(s->stack, options);
	free(also);
}

static void a_burst_stacks_no_more_than_by_one(void **state)
{
	struct scene *s = *state;
	int both, one, alone;

	start_both(s);
	start_fleet(s);
	assert_true(await(are_measured, s, 60));
	both = place_burst(s, true);
	alone = unsure(s);
	await_charged(s, 0, PODS);
	await_charged(s, 1, PODS);
	start_again(s, false);
	assert_true(await(are_measured, s, 60));
	one = place_burst(s, false);
	print_message("of %d pods %d are stacked by both, %d by one\n", PODS, both, one);
	assert_true(both <= one + alone);
}

/* They would be in the frame of the reservation. An agent has the shared key, too. */
static void a_shared_key_exchanges_no_requests_to_the_actuator(void **state)
{
	struct scene *s = *state;
	char *url = mem_printf("http://127.0.0.1:%d/v1/act/requests",
			       s->stack->aggregators[0].http_port);
	struct buf answer = BUF_INIT;
	cJSON *act;

	start_both(s);
	assert_int_equal(http_post(url, "{\"action\":\"pause\"}", &answer), 202);
	place(s, 0, 0, 0);
	await_charged(s, 1, 1);
	act = stack_get(s->stack, 1, "/v1/act");
	assert_int_equal(cJSON_GetArraySize(json_at(act, "requests")), 0);
	cJSON_Delete(act);
	buf_fini(&answer);
	free(url);
}

/* --- alone ------------------------------------------------------------------------------------ */

/* The number of lines of the first one's log with this text. */
static int logged(const struct scene *s, const char *text)
{
	char *path = mem_printf("%s/aggregator-0.log", s->stack->folder), line[512];
	FILE *file = fopen(path, "r");
	int found = 0;

	while (file && fgets(line, sizeof(line), file))
		found += strstr(line, text) != NULL;
	if (file)
		fclose(file);
	free(path);
	return found;
}

static bool is_alone(void *ctx)
{
	return metric(ctx, 0, CONNECTED) == 0 &&
	       logged(ctx, "schedulers are answered without the other aggregator");
}

static const char *peer_state(const struct scene *s, cJSON **status)
{
	*status = stack_get(s->stack, 0, "/v1/status");
	return cJSON_GetStringValue(json_at(*status, "peer.state"));
}

static void stop_second(const struct scene *s)
{
	pid_t pid = s->stack->aggregators[1].pid;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
}

static void a_silent_one_costs_an_answer_5_ms_once(void **state)
{
	struct scene *s = *state;
	double late, busy_s;
	cJSON *status, *doctor;
	char *text;

	start_both(s);
	stop_second(s);
	busy_s = process_cpu(s->stack->aggregators[0].pid).waited_s;
	for (int pod = 0; pod < 4; pod++)
		place(s, 0, 0, pod);
	busy_s = process_cpu(s->stack->aggregators[0].pid).waited_s - busy_s;
	late = metric(s, 0, ANSWERS "\"late\"}");
	/* On a busy machine the silence of a second may be over before the first question. */
	assert_true(late == 1 || (late == 0 && is_alone(s)));
	assert_true(metric(s, 0, ANSWERS "\"alone\"}") == 8 - late);
	print_message("8 answers waited for %.3f ms together\n", 1000 * metric(s, 0, WAITED));
	assert_true(metric(s, 0, WAITED) < scaled_s(0.02) + busy_s);
	assert_true(await(is_alone, s, 10));
	assert_string_equal(peer_state(s, &status), "alone");
	doctor = stack_get(s->stack, 0, "/v1/doctor");
	text = cJSON_PrintUnformatted(doctor);
	assert_non_null(strstr(text, "the other aggregator is not connected"));
	for (int pod = 4; pod < 8; pod++)
		place(s, 0, 0, pod);
	assert_true(metric(s, 0, ANSWERS "\"late\"}") == late);
	kill(s->stack->aggregators[1].pid, SIGCONT);
	assert_true(await(are_together, s, 20));
	await_charged(s, 1, 8);
	cJSON_Delete(status);
	cJSON_Delete(doctor);
	cJSON_free(text);
}

/* Its reads fail with EINTR: signal(7), of descriptors with a time limit. */
static void a_stop_of_a_moment_keeps_the_connection(void **state)
{
	static const char together[] = "reservations are exchanged with";
	struct scene *s = *state;
	int64_t stopped_ns;
	int times;

	start_both(s);
	times = logged(s, together);
	stopped_ns = clock_mono_ns();
	stop_second(s);
	kill(s->stack->aggregators[1].pid, SIGCONT);
	stopped_ns = clock_mono_ns() - stopped_ns;
	place(s, 0, 0, 0);
	await_charged(s, 1, 1);
	/* On a busy machine the moment may be longer than an aggregator waits for the other. */
	if (stopped_ns < NS_PER_SEC / 2)
		assert_int_equal(logged(s, together), times);
}

static void a_new_one_gets_all_reservations(void **state)
{
	struct scene *s = *state;

	start_both(s);
	place(s, 1, 1, 0);
	await_charged(s, 0, 1);
	stack_kill_aggregator(s->stack, 1);
	for (int pod = 1; pod < 6; pod++)
		place(s, 0, 0, pod);
	stack_start_aggregator(s->stack, 1);
	assert_true(await(are_together, s, 20));
	await_charged(s, 1, 6);
	place(s, 1, 1, 6);
	await_charged(s, 0, 7);
}

static bool has_met_a_stranger(void *ctx)
{
	return metric(ctx, 1, "evenkeel_frames_total{result=\"unknown_key\"}") >= 1;
}

/* Without a shared key the keys of enrolment do; another installation has others. */
static void the_keys_are_those_of_enrolment(void **state)
{
	struct scene *s = *state;
	char *keys[] = {mem_printf("%s/enrolment", s->stack->folder),
			mem_printf("%s/other", s->stack->folder)};
	const char *options[2][7] = {{NULL}};

	for (int i = 0; i < 2; i++) {
		const char *const o[] = {"--peer", s->peers[i],		 "--enrolment-key",
					 keys[0],  "--allow-shared-key", "true"};

		memcpy(options[i], o, sizeof(o));
		s->stack->aggregators[i].more = options[i];
	}
	start_both(s);
	stack_kill_aggregator(s->stack, 1);
	options[1][3] = keys[1];
	stack_start_aggregator(s->stack, 1);
	assert_true(await(has_met_a_stranger, s, 20));
	assert_true(metric(s, 0, CONNECTED) == 0 && metric(s, 1, CONNECTED) == 0);
	free(keys[0]);
	free(keys[1]);
}

static bool has_found_itself(void *ctx)
{
	return logged(ctx, "has only the address of this aggregator");
}

static void one_does_not_exchange_with_itself(void **state)
{
	struct scene *s = *state;

	s->options[0][1] = s->peers[1];
	stack_start_aggregator(s->stack, 0);
	scheduler_read_nodes(&s->scheduler, s->stack);
	assert_int_equal(s->scheduler.count, NODES);
	assert_true(await(has_found_itself, s, 10));
	place(s, 0, 0, 0);
	assert_true(metric(s, 0, CONNECTED) == 0);
	assert_true(metric(s, 0, ANSWERS "\"alone\"}") == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(the_other_knows_before_the_answer),
		TEST(both_hold_one_quota),
		TEST(a_burst_stacks_no_more_than_by_one),
		TEST(a_shared_key_exchanges_no_requests_to_the_actuator),
		TEST(a_silent_one_costs_an_answer_5_ms_once),
		TEST(a_stop_of_a_moment_keeps_the_connection),
		TEST(a_new_one_gets_all_reservations),
		TEST(the_keys_are_those_of_enrolment),
		TEST(one_does_not_exchange_with_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
