/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster to try things on, for a person: tests/lab.h with workloads, kube-scheduler asking
 * evenkeel, and agents that follow the pods, until Ctrl-C or for DURATION.
 *
 * The terminal sends Ctrl-C to everything that runs in its foreground. So the work is done by a
 * child in a process group of its own, whose programs are not interrupted before it is their turn;
 * this program hands the signal on.
 */
#include <curl/curl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/duration.h"
#include "shared/mem.h"
#include "tests/lab.h"
#include "tests/process.h"
#include "tests/stack.h"

#define INTERVAL_NS (5 * NS_PER_SEC)
#define LOOK_NS	    (NS_PER_SEC / 2)
#define PLACED_S    120

enum { NODES_DEFAULT = 20, ANSWER_LINES = 7, FOLLOW_SHARE = 10 };

/* Pods of each workload of workloads.yaml for ten nodes. */
static const struct {
	const char *name;
	size_t per_ten_nodes;
} workloads[] = {{"web", 20}, {"search", 10}, {"thumbnails", 10}, {"tools", 15}};
enum { WORKLOADS = sizeof(workloads) / sizeof(workloads[0]) };

static volatile sig_atomic_t stopped;
static volatile pid_t worker;

static void stop(int signal_number)
{
	(void)signal_number;
	stopped = 1;
	if (worker > 0)
		kill(worker, SIGTERM);
}

/* --- workloads -------------------------------------------------------------------------------- */

static size_t scale_workloads(struct lab *l)
{
	size_t pods = 0;

	control_plane_create(l->bed->plane, "tests/lab/workloads.yaml");
	for (size_t i = 0; i < WORKLOADS; i++) {
		size_t replicas = (workloads[i].per_ten_nodes * l->nodes + 9) / 10;
		char *path = mem_printf("/apis/apps/v1/namespaces/shop/deployments/%s",
					workloads[i].name);
		char *body = mem_printf("{\"spec\":{\"replicas\":%zu}}", replicas);

		control_plane_must(l->bed->plane, "PATCH", path, body);
		free(body);
		free(path);
		pods += replicas;
	}
	return pods;
}

struct placed {
	struct lab *lab;
	size_t pods;
};

static bool are_placed(void *ctx)
{
	const struct placed *p = ctx;

	return stopped || (lab_follow(p->lab) && p->lab->pods >= p->pods);
}

static void start_scheduler(struct lab *l)
{
	char *address = mem_printf("127.0.0.1:%d", l->bed->aggregators[0].http_port);
	struct lab_replacement r = {LAB_EXTENDER_ADDRESS, address};
	char *text = lab_scheduler_configuration(LAB_EXTENDER_FILE, &r, 1);

	control_plane_start_scheduler(l->bed->plane, text);
	free(text);
	free(address);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* A command as a person would type it, and how its answer begins. */
static void show(const char *command)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
	struct buf out = BUF_INIT;
	char *line, *rest;
	int lines = 0;

	if (stopped)
		return;
	printf("\n$ %s\n", command);
	process_run(argv, &out, &out);
	for (rest = out.data; (line = strsep(&rest, "\n")) && rest;)
		if (++lines <= ANSWER_LINES)
			printf("%s\n", line);
	if (lines > ANSWER_LINES)
		printf(".. %d lines more\n", lines - ANSWER_LINES);
	fflush(stdout);
	buf_fini(&out);
}

static void introduce(const struct lab *l)
{
	const struct control_plane *c = l->bed->plane;
	int port = l->bed->aggregators[0].http_port;
	char *commands[] = {
		mem_printf("%s/kubectl --kubeconfig %s get nodes", c->bin, c->admin),
		mem_printf("%s/kubectl --kubeconfig %s -n shop get deployments", c->bin, c->admin),
		mem_printf("%s --server http://127.0.0.1:%d nodes", program_path("evenkeel"), port),
		mem_printf("%s --server http://127.0.0.1:%d pods -A --sort-by cpu",
			   program_path("evenkeel"), port),
		mem_printf("%s --server http://127.0.0.1:%d scores --pod tests/kube/pod.yaml",
			   program_path("evenkeel"), port),
	};

	printf("%zu nodes, %zu pods. The first commands, and what they answer:\n", l->nodes,
	       l->pods);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		show(commands[i]);
		free(commands[i]);
	}
	printf("\nkubeconfig: %s\naggregator: http://127.0.0.1:%d\nlogs:       %s and %s\n",
	       c->admin, port, c->folder, l->bed->folder);
	printf("A pod's annotations say what it really uses: tests/lab_use.h\n");
}

/* --- the lab ---------------------------------------------------------------------------------- */

/* Looking at all pods takes a tenth of the time at most, however many they are. */
static void follow(struct lab *l, int64_t until_ns)
{
	int64_t look_ns = 0;

	while (!stopped && clock_mono_ns() < until_ns) {
		int64_t now_ns = clock_mono_ns(), took_ns;

		if (now_ns >= look_ns) {
			lab_follow(l);
			took_ns = clock_mono_ns() - now_ns;
			look_ns =
				now_ns + (took_ns * FOLLOW_SHARE > LOOK_NS ? took_ns * FOLLOW_SHARE
									   : LOOK_NS);
		}
		lab_agents_run(l->agents, LOOK_NS / 5);
	}
}

static bool start_all(struct lab *l)
{
	static const char *const no_options[] = {NULL};
	struct placed placed = {.lab = l};

	kube_testbed_start_aggregator_with(l->bed, 0, l->bed->plane->admin, no_options);
	start_scheduler(l);
	placed.pods = scale_workloads(l);
	if (!await(are_placed, &placed, PLACED_S)) {
		fprintf(stderr, "make lab: %zu of %zu pods are placed\n", l->pods, placed.pods);
		return false;
	}
	if (stopped)
		return true;
	lab_connect(l, LAB_HISTORY_NS, 0, INTERVAL_NS);
	return lab_await_heard(l, l->pods);
}

static int run(size_t nodes, int64_t duration_ns)
{
	struct lab *l;
	bool good;

	fprintf(stderr, "Starting a control plane and %zu nodes ..\n", nodes);
	l = lab_new(nodes, true);
	if (!l)
		return 1;
	good = stopped || start_all(l);
	if (good && !stopped) {
		introduce(l);
		if (duration_ns == INT64_MAX)
			printf("Stop: Ctrl-C\n");
		fflush(stdout);
		follow(l, duration_ns == INT64_MAX ? INT64_MAX : clock_mono_ns() + duration_ns);
	}
	lab_free(l, !good);
	return good ? 0 : 1;
}

/* In a process group of its own. */
static int work(size_t nodes, int64_t duration_ns)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return run(nodes, duration_ns);
}

static int await_worker(void)
{
	int status = 0;

	while (waitpid(worker, &status, 0) < 0)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void)
{
	const char *wanted = getenv("NODES"), *time = getenv("DURATION");
	unsigned long nodes = wanted ? strtoul(wanted, NULL, 10) : NODES_DEFAULT;
	struct sigaction action = {.sa_handler = stop};
	int64_t duration_ns = INT64_MAX;
	struct error error;
	pid_t child;

	if (nodes < 1 || nodes > LAB_NODES_MAX) {
		fprintf(stderr, "make lab: NODES is 1 to %d\n", LAB_NODES_MAX);
		return 2;
	}
	if (time && *time && duration_parse(time, &duration_ns, &error)) {
		fprintf(stderr, "make lab: DURATION=%s: %s\n", time, error.text);
		return 2;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	child = fork();
	if (child < 0) {
		perror("make lab");
		return 1;
	}
	if (child == 0)
		return work(nodes, duration_ns);
	worker = child;
	if (stopped)
		kill(child, SIGTERM);
	return await_worker();
}
