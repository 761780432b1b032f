/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet: thousands of simulated agents with real sockets, seals and frames against a real
 * aggregator. It is as many processes as descriptors and time for so many take; this one only waits
 * for them and adds up what they tell in memory they share. SIGRTMIN begins the next phase: acks
 * are told apart by phases. Exit: 0 ok, 1 error, 2 usage.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/endpoint.h"
#include "shared/keyring.h"
#include "shared/log.h"
#include "shared/options.h"
#include "shared/program.h"
#include "tests/fleet/dump.h"
#include "tests/fleet/launch.h"
#include "tests/fleet/worker.h"
#include "tests/keys.h"

enum { WORKERS_MAX = CLUSTER_NODES_MAX / WORKER_AGENTS_FEW };

struct fleet_options {
	int64_t nodes, pods_per_node, containers, seed, ring_kib;
	int64_t interval_ns, duration_ns, warmup_ns, last_acks_ns, ring_span_ns, history_ns;
	int64_t day_ns, pod_life_ns, node_life_ns, node_down_ns, skew_ns, ack_delay_ns;
	double ack_loss;
	bool movable;
	char *aggregator, *also, *key_file, *aggregator_key, *join_token_file, *dump, *report;
	struct program_common common;
};

#define AT(member) offsetof(struct fleet_options, member)
static const struct option_spec specs[] = {
	{.name = "nodes",
	 .kind = OPTION_INTEGER,
	 .offset = AT(nodes),
	 .value = "N",
	 .initial = "100",
	 .min = 1,
	 .max = CLUSTER_NODES_MAX,
	 .help = "Nodes of the cluster, each with an agent."},
	{.name = "pods-per-node",
	 .kind = OPTION_INTEGER,
	 .offset = AT(pods_per_node),
	 .value = "N",
	 .initial = "30",
	 .min = 1,
	 .max = CLUSTER_PODS_PER_NODE_MAX,
	 .help = "Pods per node on average; large nodes have more than small ones."},
	{.name = "containers",
	 .kind = OPTION_INTEGER,
	 .offset = AT(containers),
	 .value = "N",
	 .initial = "2",
	 .min = 1,
	 .max = CLUSTER_CONTAINERS_MAX,
	 .help = "Containers per pod."},
	{.name = "seed",
	 .kind = OPTION_INTEGER,
	 .offset = AT(seed),
	 .value = "N",
	 .initial = "1",
	 .min = 0,
	 .max = 1e15,
	 .help = "Another number, another cluster; the same number and sizes, the same cluster."},
	{.name = "interval",
	 .kind = OPTION_DURATION,
	 .offset = AT(interval_ns),
	 .value = "DURATION",
	 .initial = "5s",
	 .min = 1e9,
	 .max = 15e9,
	 .help = "Length of a published interval."},
	{.name = "ring-span",
	 .kind = OPTION_DURATION,
	 .offset = AT(ring_span_ns),
	 .value = "DURATION",
	 .initial = "60s",
	 .min = 1e9,
	 .max = 900e9,
	 .help = "How long each agent keeps intervals; the real one does for 15m."},
	{.name = "ring-kib",
	 .kind = OPTION_INTEGER,
	 .offset = AT(ring_kib),
	 .value = "KIB",
	 .initial = "7168",
	 .min = 16,
	 .max = 65536,
	 .help = "Memory in which each agent keeps them."},
	{.name = "duration",
	 .kind = OPTION_DURATION,
	 .offset = AT(duration_ns),
	 .value = "DURATION",
	 .help = "Stop after so long; without it, at SIGINT or SIGTERM."},
	{.name = "warmup",
	 .kind = OPTION_DURATION,
	 .offset = AT(warmup_ns),
	 .value = "DURATION",
	 .help = "Leave acks of the first so long out of the latencies."},
	{.name = "last-acks",
	 .kind = OPTION_DURATION,
	 .offset = AT(last_acks_ns),
	 .value = "DURATION",
	 .initial = "10s",
	 .max = 600e9,
	 .help = "How long to wait at the end for acks that are missing."},
	{.name = "history",
	 .kind = OPTION_DURATION,
	 .offset = AT(history_ns),
	 .value = "DURATION",
	 .max = 900e9,
	 .help = "What each agent has measured before it can tell anybody, as after an outage of "
		 "the aggregator."},
	{.name = "day",
	 .kind = OPTION_DURATION,
	 .offset = AT(day_ns),
	 .value = "DURATION",
	 .initial = "24h",
	 .min = 10e9,
	 .max = 86400e9,
	 .help = "In which what follows the time of day rises and falls once."},
	{.name = "pod-life",
	 .kind = OPTION_DURATION,
	 .offset = AT(pod_life_ns),
	 .value = "DURATION",
	 .min = 1e9,
	 .max = 30 * 86400e9,
	 .help = "Another pod takes the place of each after so long; without it they stay."},
	FLAG_OPTION(
		"movable", 0, AT(movable),
		"Pods can leave their nodes: they have controllers, budgets and quotas with room, "
		"no emptyDir and no spread."),
	{.name = "node-life",
	 .kind = OPTION_DURATION,
	 .offset = AT(node_life_ns),
	 .value = "DURATION",
	 .min = 2e9,
	 .max = 30 * 86400e9,
	 .help = "Each agent dies after so long and is started again; without it they stay."},
	{.name = "node-down",
	 .kind = OPTION_DURATION,
	 .offset = AT(node_down_ns),
	 .value = "DURATION",
	 .initial = "1s",
	 .max = 86400e9,
	 .help = "How long of --node-life it stays dead."},
	{.name = "skew",
	 .kind = OPTION_DURATION,
	 .offset = AT(skew_ns),
	 .value = "DURATION",
	 .max = 3600e9,
	 .help = "Clocks of nodes are off by up to so much, either way."},
	{.name = "ack-loss",
	 .kind = OPTION_NUMBER,
	 .offset = AT(ack_loss),
	 .value = "SHARE",
	 .min = 0,
	 .max = 1,
	 .help = "Share of the acks that never arrive."},
	{.name = "ack-delay",
	 .kind = OPTION_DURATION,
	 .offset = AT(ack_delay_ns),
	 .value = "DURATION",
	 .max = 60e9,
	 .help = "Acks arrive late by up to so much."},
	{.name = "aggregator",
	 .kind = OPTION_STRING,
	 .offset = AT(aggregator),
	 .value = "URL",
	 .help = "Where to send intervals: tcp://ADDRESS:PORT or ipc:///PATH. Without it nothing "
		 "runs."},
	{.name = "also",
	 .kind = OPTION_STRING,
	 .offset = AT(also),
	 .value = "URL",
	 .help = "Another aggregator that is told everything, too, and has no trouble with acks; "
		 "the report is about the first."},
	{.name = "key-file",
	 .kind = OPTION_STRING,
	 .offset = AT(key_file),
	 .value = "FILE",
	 .help = "Key that seals frames: a file of 32 random bytes, or a directory of such files."},
	{.name = "aggregator-key",
	 .kind = OPTION_STRING,
	 .offset = AT(aggregator_key),
	 .value = "FILE",
	 .help = "Public key of the aggregators; the agents enrol by --join-token-file."},
	{.name = "join-token-file",
	 .kind = OPTION_STRING,
	 .offset = AT(join_token_file),
	 .value = "FILE",
	 .help = "Join token of all nodes."},
	{.name = "dump",
	 .kind = OPTION_STRING,
	 .offset = AT(dump),
	 .value = "FILE",
	 .help = "Write the cluster as a Kubernetes List in JSON before anything else."},
	{.name = "report",
	 .kind = OPTION_STRING,
	 .offset = AT(report),
	 .value = "FILE",
	 .help = "Write what was sent and answered as JSON at the end; \"-\" is standard output."},
	PROGRAM_COMMON_OPTIONS(AT(common)),
};

static const struct option_program program = {
	.name = "fleet",
	.summary = "Simulates the agents of a whole cluster.",
	.usage = "[OPTION..]",
	.specs = specs,
	.env_prefix = NULL,
	.config_name = "config",
};

struct shared {
	uint32_t phase;
	struct tally tallies[WORKERS_MAX]; /* one for each */
};

struct fleet {
	const struct fleet_options *options; /* borrowed */
	struct cluster *cluster;
	struct keyring keys;
	struct enroller *enroller; /* NULL: keys seal */
	struct agent_sim_config agents;
	struct shared *shared; /* with the workers */
	pid_t workers[WORKERS_MAX]; /* 0: ended */
	uint32_t worker_count;
};

static int fail(struct error *why, const char *what)
{
	int error = errno;

	error_set(why, "%s: %s", what, strerror(error));
	return -error;
}

/* --- workers ---------------------------------------------------------------------------------- */

static void __attribute__((noreturn))
be_worker(const struct fleet *f, uint32_t index, uint32_t first, uint32_t count, int64_t stop_ns)
{
	struct error why;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!worker_run(&f->agents, first, count, stop_ns, f->options->last_acks_ns,
			&f->shared->tallies[index], &why))
		_exit(0);
	log_error("agents %u to %u: %s", first, first + count - 1, why.text);
	_exit(1);
}

/* Nodes are dealt out evenly. */
static int start_workers(struct fleet *f, int64_t stop_ns, struct error *why)
{
	uint32_t nodes = f->cluster->config.nodes, first = 0;
	uint32_t workers = (nodes + WORKER_AGENTS_MAX - 1) / WORKER_AGENTS_MAX;
	uint32_t cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);

	/* When all begin at once, one core is not enough for very many. */
	if (workers < cores && workers < nodes / WORKER_AGENTS_FEW)
		workers = cores < nodes / WORKER_AGENTS_FEW ? cores : nodes / WORKER_AGENTS_FEW;

	for (uint32_t i = 0; i < workers; i++) {
		uint32_t count = nodes / workers + (i < nodes % workers);
		pid_t pid = fork();

		if (pid < 0)
			return fail(why, "cannot start a process");
		if (pid == 0)
			be_worker(f, i, first, count, stop_ns);
		f->workers[f->worker_count++] = pid;
		first += count;
	}
	return 0;
}

static void signal_workers(const struct fleet *f, int signal_number)
{
	for (uint32_t i = 0; i < f->worker_count; i++) {
		if (f->workers[i])
			kill(f->workers[i], signal_number);
	}
}

/* Of a worker that ended: 0, or 1 when it should not have. */
static int note_end(struct fleet *f, pid_t pid, int status)
{
	for (uint32_t i = 0; i < f->worker_count; i++) {
		if (f->workers[i] == pid)
			f->workers[i] = 0;
	}
	if (WIFSIGNALED(status))
		log_error("a process was ended by signal %d", WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

/*
 * Until all have ended; a signal to stop is passed on, and when one fails the others are stopped.
 * The signals are blocked and taken here, one by one, so that none comes between a look and a wait.
 */
static int await_workers(struct fleet *f, const sigset_t *signals)
{
	int failed = 0, status, taken;
	pid_t pid;

	for (;;) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (note_end(f, pid, status) && !failed++)
				signal_workers(f, SIGTERM);
		}
		if (pid < 0)
			return failed ? -ECHILD : 0;
		taken = sigwaitinfo(signals, NULL);
		if (taken == SIGINT || taken == SIGTERM)
			signal_workers(f, SIGTERM);
		if (taken == FLEET_NEXT_PHASE)
			__atomic_fetch_add(&f->shared->phase, 1, __ATOMIC_RELAXED);
	}
}

/* --- before and after ------------------------------------------------------------------------- */

static int check_address(const char *option, const char *url, struct error *why)
{
	struct endpoint endpoint;
	int rc = endpoint_parse(&endpoint, url, why);

	if (!rc && endpoint.kind == ENDPOINT_TCP && !endpoint_is_address(&endpoint)) {
		error_set(why, "%s: %s names no address; names are not looked up here", option,
			  url);
		rc = -EINVAL;
	}
	return rc;
}

static int check_target(struct fleet *f, struct error *why)
{
	const struct fleet_options *o = f->options;
	const struct enroller_config enrol = {o->aggregator_key, o->join_token_file,
					      CREDENTIAL_JOIN_TOKEN};
	int rc = check_address("--aggregator", o->aggregator, why);

	if (!rc && o->also)
		rc = check_address("--also", o->also, why);
	if (!rc && o->key_file)
		rc = keys_load(&f->keys, o->key_file, why);
	if (!rc && o->aggregator_key && o->join_token_file)
		rc = enroller_open(&f->enroller, &enrol, why);
	f->agents.enroller = f->enroller;
	return rc;
}

static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int write_report(const struct fleet *f, double seconds, struct error *why)
{
	const char *path = f->options->report;
	bool standard = !strcmp(path, "-");
	FILE *file = standard ? stdout : fopen(path, "we");
	struct buf text = BUF_INIT;
	struct tally sum = {0};
	int rc = 0;

	if (!file)
		return fail(why, path);
	for (uint32_t i = 0; i < f->worker_count; i++)
		tally_merge(&sum, &f->shared->tallies[i]);
	tally_write(&sum, seconds, &text);
	if (fwrite(text.data, 1, text.len, file) != text.len || fflush(file))
		rc = fail(why, path);
	if (!standard)
		fclose(file);
	buf_fini(&text);
	return rc;
}

static int run_agents(struct fleet *f, struct error *why)
{
	const struct fleet_options *o = f->options;
	int64_t begin = clock_mono_ns();
	sigset_t signals;
	int rc = check_target(f, why);

	if (rc)
		return rc;
	f->shared = mmap(NULL, sizeof(*f->shared), PROT_READ | PROT_WRITE,
			 /* cppcheck-suppress invalidFunctionArg */
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->shared == MAP_FAILED)
		return fail(why, "no memory to share");
	f->agents.phase = &f->shared->phase;
	sigemptyset(&signals);
	sigaddset(&signals, FLEET_NEXT_PHASE);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	raise_descriptors();
	rc = start_workers(f, o->duration_ns ? begin + o->duration_ns : 0, why);
	if (rc) {
		signal_workers(f, SIGTERM);
		await_workers(f, &signals);
		return rc;
	}
	log_info("%lld agents in %u processes", (long long)o->nodes, f->worker_count);
	rc = await_workers(f, &signals);
	if (rc)
		error_set(why, "not all agents ran to the end");
	if (!rc && o->report)
		rc = write_report(f, (double)(clock_mono_ns() - begin) / 1e9, why);
	return rc;
}

static int run(const void *values, struct error *why)
{
	const struct fleet_options *o = values;
	struct cluster_config config = {
		.nodes = (uint32_t)o->nodes,
		.pods_per_node = (uint32_t)o->pods_per_node,
		.containers = (uint32_t)o->containers,
		.seed = (uint64_t)o->seed,
		.day_ns = o->day_ns,
		.pod_life_ns = o->pod_life_ns,
		.movable = o->movable,
		.epoch_ns = clock_wall_ns(),
	};
	struct fleet f = {.options = o};
	int rc = 0;

	if (!o->aggregator && !o->dump) {
		error_set(why, "nothing to do: give --aggregator, --dump or both");
		return 2;
	}
	if (o->node_life_ns && o->node_down_ns >= o->node_life_ns) {
		error_set(why, "--node-down must be less than --node-life");
		return 2;
	}
	f.cluster = cluster_new(&config);
	f.agents = (struct agent_sim_config){
		.cluster = f.cluster,
		.keys = &f.keys,
		.url = o->aggregator,
		.also_url = o->also,
		.history_ns = o->history_ns,
		.interval_ns = o->interval_ns,
		.ring_span_ns = o->ring_span_ns,
		.ring_bytes = (size_t)o->ring_kib * 1024,
		.warm_ns = clock_mono_ns() + o->warmup_ns,
		.trouble = {.epoch_ns = config.epoch_ns,
			    .node_life_ns = o->node_life_ns,
			    .node_down_ns = o->node_down_ns,
			    .skew_ns = o->skew_ns,
			    .ack_loss = o->ack_loss,
			    .ack_delay_ns = o->ack_delay_ns},
	};
	if (o->dump)
		rc = dump_write(f.cluster, o->dump, why);
	if (!rc && o->aggregator)
		rc = run_agents(&f, why);
	keyring_wipe(&f.keys);
	enroller_close(f.enroller);
	cluster_free(f.cluster);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct fleet_options options = {0};

	return program_main(&program, &options, &options.common, run, argc, argv);
}
