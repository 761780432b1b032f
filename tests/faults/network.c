/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks that fail in different ways at once: every agent has a network namespace of its own and
 * two links into the test's namespace. One link fails, over the other a second aggregator hears the
 * same agent without a break.
 *
 *	agent i   10.77.i.2 ---- the link that fails ---- 10.77.i.1   aggregator 0
 *	          10.78.i.2 ---------------------------- 10.78.i.1   aggregator 1
 *
 * Within 30 s after the links are whole again both aggregators must say the same of every node:
 * nothing lost, nothing twice. In the second round aggregator 0 dies while it cannot be reached, so
 * that the agents hold connections to nobody. In the end it is the agents who die, and the
 * aggregator lets go of theirs by itself.
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
#include "tests/stack.h"

/* Of the undisturbed aggregator at 10 Hz: 12 s, two reply timeouts and more. */
#define CUT_SAMPLES 120.0
#define BACK_S	    30

enum { DISTURBED, UNDISTURBED };

/*
 * Shell commands; %d is the number of the agent. `near` the agent, or else where the aggregators
 * are.
 */
static const struct fault {
	const char *name, *tool;
	bool near;
	const char *cut, *heal;
} faults[] = {
	{"link down", "ip", false, "ip link set ek%da down", "ip link set ek%da up"},
	{"link down at the agent", "ip", true, "ip link set ek-a down",
	 "ip link set ek-a up && ip address show ek-a #%d"},
	{"dropped", "iptables", false,
	 "iptables -I INPUT -i ek%1$da -j DROP && iptables -I OUTPUT -o ek%1$da -j DROP",
	 "iptables -D INPUT -i ek%1$da -j DROP && iptables -D OUTPUT -o ek%1$da -j DROP"},
	{"acks dropped", "iptables", false, "iptables -I OUTPUT -o ek%da -j DROP",
	 "iptables -D OUTPUT -o ek%da -j DROP"},
	{"black hole to the aggregator", "ip", true, "ip route add blackhole 10.77.%d.1/32",
	 "ip route del blackhole 10.77.%d.1/32"},
	{"black hole to the agent", "ip", false, "ip route add blackhole 10.77.%d.2/32",
	 "ip route del blackhole 10.77.%d.2/32"},
	{"aggregator unreachable", "ip", true, "ip route add unreachable 10.77.%d.1/32",
	 "ip route del unreachable 10.77.%d.1/32"},
	{"agent prohibited", "ip", false, "ip route add prohibit 10.77.%d.2/32",
	 "ip route del prohibit 10.77.%d.2/32"},
};

enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

struct agent {
	const struct fault *fault; /* NULL: its tool is not there */
	char name[16];
	struct netns ns;
	pid_t pid;
	bool agreed; /* both aggregators said the same of it */
};

struct scene {
	struct stack *stack;
	struct netns own; /* not open: there are none here */
	struct agent agents[FAULTS];
	double samples_wanted;
};

static bool has_tool(const char *tool)
{
	char *command = mem_printf("command -v %s", tool);
	bool there = netns_shell(command);

	free(command);
	return there;
}

/* Runs it in the network namespace, which must work. */
static void run_in(const struct scene *s, const struct netns *ns, const char *format, int number)
{
	char command[512];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(command, sizeof(command), format, number);
#pragma GCC diagnostic pop
	netns_enter(ns);
	assert_true(netns_shell(command));
	netns_enter(&s->own);
}

static void connect_agent(const struct scene *s, struct agent *a, int i)
{
	char command[512];

	netns_open(&a->ns);
	for (const char *c = "ab"; *c; c++) {
		snprintf(command, sizeof(command),
			 "ip link add ek%d%c type veth peer name ek-%c netns %d &&"
			 "ip address add 10.%d.%d.1/24 dev ek%d%c && ip link set ek%d%c up",
			 i, *c, *c, a->ns.holder, *c == 'a' ? 77 : 78, i, i, *c, i, *c);
		assert_true(netns_shell(command));
	}
	run_in(s, &a->ns,
	       "ip address add 10.77.%1$d.2/24 dev ek-a && "
	       "ip address add 10.78.%1$d.2/24 dev ek-b && ip link set ek-a up && "
	       "ip link set ek-b up",
	       i);
}

static void start_agent(const struct scene *s, struct agent *a, int i)
{
	char *program = mem_strdup(program_path("evenkeel-agent"));
	char *log = mem_printf("%s/agent-%d.log", s->stack->folder, i);
	char *urls[2];

	for (int n = 0; n < 2; n++)
		urls[n] = mem_printf("tcp://10.%d.%d.1:%d", 77 + n, i,
				     s->stack->aggregators[n].ingest_port);
	snprintf(a->name, sizeof(a->name), "node-%d", i);
	netns_enter(&a->ns);
	{
		char *argv[] = {program,
				(char *)"--node-name",
				a->name,
				(char *)"--key-file",
				s->stack->key_path,
				(char *)"--interval",
				(char *)"3s",
				(char *)"--cpu-budget",
				(char *)"100",
				(char *)"--aggregator",
				urls[0],
				(char *)"--aggregator",
				urls[1],
				NULL};

		a->pid = process_start(log, argv);
	}
	netns_enter(&s->own);
	assert_true(a->pid > 0);
	free(urls[0]);
	free(urls[1]);
	free(program);
	free(log);
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	*state = s;
	if (sodium_init() < 0)
		return -1;
	s->stack = stack_new();
	netns_begin(&s->own);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < FAULTS; i++) {
		if (s->agents[i].pid)
			process_stop(s->agents[i].pid, SIGKILL);
		netns_close(&s->agents[i].ns);
	}
	stack_free(s->stack, 0);
	netns_close(&s->own);
	free(s);
	return 0;
}

/* --- what the aggregators say ----------------------------------------------------------------- */

static double samples_of(const cJSON *node)
{
	return cJSON_GetNumberValue(json_at(node, "usage.cpuMillicores.windows.15m.samples"));
}

/* All nodes have so many samples in the undisturbed aggregator. */
static bool has_samples(void *ctx)
{
	struct scene *s = ctx;
	cJSON *list = stack_get(s->stack, UNDISTURBED, "/v1/nodes");
	bool enough = list != NULL;

	for (int i = 0; i < FAULTS; i++) {
		if (s->agents[i].pid &&
		    !(samples_of(json_item(list, s->agents[i].name)) >= s->samples_wanted))
			enough = false;
	}
	cJSON_Delete(list);
	return enough;
}

static double most_samples(struct scene *s)
{
	cJSON *list = stack_get(s->stack, UNDISTURBED, "/v1/nodes");
	double most = 0;

	for (int i = 0; i < FAULTS; i++) {
		double samples = samples_of(json_item(list, s->agents[i].name));

		if (samples > most)
			most = samples;
	}
	cJSON_Delete(list);
	return most;
}

static void await_samples(struct scene *s, double samples, double seconds)
{
	s->samples_wanted = samples;
	assert_true(await(has_samples, s, seconds));
}

/*
 * Whether both have said the same of every node, each at a moment when both had heard the same of
 * it.
 */
static bool all_agree(void *ctx)
{
	struct scene *s = ctx;
	cJSON *a = stack_get(s->stack, DISTURBED, "/v1/nodes");
	cJSON *b = stack_get(s->stack, UNDISTURBED, "/v1/nodes");
	bool all = true;

	for (int i = 0; i < FAULTS; i++) {
		struct agent *agent = &s->agents[i];
		const cJSON *of_a = json_at(json_item(a, agent->name), "usage");
		const cJSON *of_b = json_at(json_item(b, agent->name), "usage");

		if (!agent->pid)
			continue;
		agent->agreed |= of_a && of_b && cJSON_Compare(of_a, of_b, true);
		all = all && agent->agreed;
	}
	cJSON_Delete(a);
	cJSON_Delete(b);
	return all;
}

static void expect_all_agree(struct scene *s)
{
	int64_t begin = clock_mono_ns();
	bool agree;

	for (int i = 0; i < FAULTS; i++)
		s->agents[i].agreed = false;
	agree = await(all_agree, s, BACK_S);
	print_message("all agree after %.1f s\n", (double)(clock_mono_ns() - begin) / NS_PER_SEC);
	for (int i = 0; i < FAULTS && !agree; i++) {
		if (s->agents[i].pid && !s->agents[i].agreed)
			print_error("%s: the aggregators differ\n", s->agents[i].fault->name);
	}
	assert_true(agree);
}

/* The disturbed one lacks most of what was measured since the cut. */
static void expect_all_cut_off(struct scene *s)
{
	cJSON *a = stack_get(s->stack, DISTURBED, "/v1/nodes");
	cJSON *b = stack_get(s->stack, UNDISTURBED, "/v1/nodes");

	for (int i = 0; i < FAULTS; i++) {
		const cJSON *of_a = json_item(a, s->agents[i].name);

		if (!s->agents[i].pid)
			continue;
		if (samples_of(json_item(b, s->agents[i].name)) <
		    (of_a ? samples_of(of_a) : 0) + CUT_SAMPLES / 2)
			print_error("%s: not cut off\n", s->agents[i].fault->name);
		assert_true(samples_of(json_item(b, s->agents[i].name)) >=
			    (of_a ? samples_of(of_a) : 0) + CUT_SAMPLES / 2);
	}
	cJSON_Delete(a);
	cJSON_Delete(b);
}

/* --- the test --------------------------------------------------------------------------------- */

static void for_all(const struct scene *s, bool heal)
{
	for (int i = 0; i < FAULTS; i++) {
		const struct agent *a = &s->agents[i];

		if (a->fault)
			run_in(s, a->fault->near ? &a->ns : &s->own,
			       heal ? a->fault->heal : a->fault->cut, i);
	}
}

static void one_round(struct scene *s, bool restart)
{
	double samples;

	expect_all_agree(s);
	for_all(s, false);
	samples = most_samples(s);
	if (restart) {
		await_samples(s, samples + CUT_SAMPLES / 2, 60);
		stack_kill_aggregator(s->stack, DISTURBED);
		stack_start_aggregator(s->stack, DISTURBED);
	}
	await_samples(s, samples + CUT_SAMPLES, 60);
	expect_all_cut_off(s);
	for_all(s, true);
	expect_all_agree(s);
	for (int i = 0; i < STACK_AGGREGATORS_MAX; i++)
		frame_account_expect_whole(s->stack, i);
}

/* --- half-open connections -------------------------------------------------------------------- */

/* Connections to aggregator 0 that its kernel takes for whole. */
static int connections(const struct scene *s)
{
	enum { ESTABLISHED = 1 };
	FILE *table = fopen("/proc/self/net/tcp", "re");
	unsigned int port, status;
	char line[256];
	int count = 0;

	assert_non_null(table);
	while (fgets(line, sizeof(line), table)) {
		if (sscanf(line, " %*d: %*x:%x %*x:%*x %x", &port, &status) == 2 &&
		    (int)port == s->stack->aggregators[DISTURBED].ingest_port &&
		    status == ESTABLISHED)
			count++;
	}
	fclose(table);
	return count;
}

static bool has_none(void *s)
{
	return connections(s) == 0;
}

/* No word of the agents' end comes through. */
static void die_unheard(struct scene *s)
{
	int64_t begin;

	assert_true(connections(s) > 0);
	for_all(s, false);
	begin = clock_mono_ns();
	for (int i = 0; i < FAULTS; i++) {
		if (s->agents[i].pid)
			assert_int_equal(process_stop(s->agents[i].pid, SIGKILL), 128 + SIGKILL);
		s->agents[i].pid = 0;
	}
	assert_true(connections(s) > 0);
	if (!await(has_none, s, BACK_S))
		fail_msg("%d connections to nobody", connections(s));
	print_message("connections to nobody were closed after %.1f s\n",
		      (double)(clock_mono_ns() - begin) / NS_PER_SEC);
}

static void test_network_faults(void **state)
{
	struct scene *s = *state;

	if (s->own.fd < 0) {
		print_message("SKIP: needs root and ip(8) for network namespaces\n");
		skip();
	}
	for (int i = 0; i < STACK_AGGREGATORS_MAX; i++) {
		s->stack->aggregators[i].ingest_host = "0.0.0.0";
		stack_start_aggregator(s->stack, i);
	}
	for (int i = 0; i < FAULTS; i++) {
		if (!has_tool(faults[i].tool)) {
			print_message("SKIP: %s: needs %s\n", faults[i].name, faults[i].tool);
			continue;
		}
		s->agents[i].fault = &faults[i];
		connect_agent(s, &s->agents[i], i);
		start_agent(s, &s->agents[i], i);
	}
	await_samples(s, 20, 60);
	one_round(s, false);
	one_round(s, true);
	die_unheard(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_network_faults, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
