/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel-agent: options, then the agent until a signal. Exit status: 0 ok, 1 error, 2 usage. */
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/liveness.h"
#include "agent/once.h"
#include "shared/frame.h"
#include "shared/interval.h"
#include "shared/log.h"
#include "shared/options.h"
#include "shared/program.h"

struct agent_options {
	struct option_list aggregators;
	char *node_name, *key_file, *cgroup_root;
	char *aggregator_key, *join_token_file, *kubernetes_token_file, *status_file;
	int64_t interval_ns, rate_hz;
	double cpu_budget_percent;
	int tier, output;
	bool once, healthy, confine;
	struct program_common common;
};

static const char *const output_choices[] = {[ONCE_TABLE] = "table", [ONCE_JSON] = "json", NULL};
static const char *const tier_choices[] = {"auto", "T0", "T1", "T2", "T3", NULL};
static const int tier_values[] = {-1, TIER_T0, TIER_T1, TIER_T2, TIER_T3};

#define AT(member) offsetof(struct agent_options, member)
static const struct option_spec specs[] = {
	LIST_OPTION("aggregator", AT(aggregators), "URL", "tcp://127.0.0.1:2021",
		    "Address of an aggregator: tcp://HOST:PORT or ipc:///PATH."),
	TEXT_OPTION(
		"node-name", AT(node_name), "NAME", NULL,
		"Name of this node, as the Kubernetes API spells it; without it the host name."),
	TEXT_OPTION(
		"key-file", AT(key_file), "FILE", NULL,
		"Key that seals frames: a file of 32 random bytes, or a directory of such files."),
	TEXT_OPTION("aggregator-key", AT(aggregator_key), "FILE", NULL,
		    "Public key of the aggregators, to enrol with them: each gives this node a key "
		    "of its own, which seals frames instead of --key-file."),
	TEXT_OPTION(
		"join-token-file", AT(join_token_file), "FILE", NULL,
		"Join token by which this node enrols, as in the aggregator's --join-token-file."),
	TEXT_OPTION("kubernetes-token-file", AT(kubernetes_token_file), "FILE", NULL,
		    "Projected ServiceAccount token by which this node enrols, of the audience "
		    "evenkeel-ingest."),
	{.name = "confine",
	 .kind = OPTION_FLAG,
	 .offset = AT(confine),
	 .initial = "true",
	 .help = "Keep the capabilities and system calls that the agent was started with; for "
		 "debugging."},
	TEXT_OPTION("cgroup-root", AT(cgroup_root), "DIR", "/sys/fs/cgroup",
		    "Mount point of the host's cgroup hierarchies."),
	RANGE_OPTION(OPTION_DURATION, "interval", AT(interval_ns), "DURATION", "5s", 1e9, 15e9,
		     "Length of a published interval, and of the sample of --once."),
	RANGE_OPTION(OPTION_INTEGER, "rate", AT(rate_hz), "HZ", "10", 1, 20,
		     "Samples of CPU and memory per second."),
	RANGE_OPTION(OPTION_NUMBER, "cpu-budget", AT(cpu_budget_percent), "PERCENT", "2", 0.1, 100,
		     "CPU the agent may use, in percent of one core; above it the rate is halved, "
		     "to 1 Hz at least."),
	CHOICE_OPTION("tier", AT(tier), "TIER", "auto", tier_choices,
		      "How to sample: T0, T1, T2 (eBPF, by cgroups v2, cgroups, processes), T3 "
		      "(cgroup files, 1 Hz), or the best that works."),
	FLAG_OPTION("once", 0, AT(once),
		    "Sample this machine for one interval, print it and exit; needs neither "
		    "aggregator nor key."),
	{.name = "output",
	 .letter = 'o',
	 .kind = OPTION_CHOICE,
	 .offset = AT(output),
	 .value = "FORMAT",
	 .initial = "table",
	 .choices = output_choices,
	 .help = "Output of --once."},
	FLAG_OPTION("healthy", 0, AT(healthy),
		    "Tell by the exit status whether the agent of this container or control group "
		    "still samples; for probes. Prints the text of --status-file."),
	TEXT_OPTION("status-file", AT(status_file), "FILE", NULL,
		    "File for the reason why an aggregator gets no reports; empty without one."),
	PROGRAM_COMMON_OPTIONS(AT(common)),
};

static const struct option_note manual[] = {
	{"DESCRIPTION", NULL,
	 "The agent samples the CPU and memory use, the limits and the throttling of every cgroup "
	 "of this machine with eBPF, ten times a second, and sends statistics to one or more "
	 "aggregators, every five seconds. Statistics without an acknowledgement are kept for 15 "
	 "minutes and sent again. It writes no file."},
	{NULL, NULL,
	 "It needs CAP_BPF and CAP_PERFMON for its start, and gives up every capability after it. "
	 "Without them it reads cgroup files once a second (T3) and logs that."},
	{"FILES", "/etc/evenkeel/agent.yaml", "The configuration that the service reads."},
	{NULL, "/etc/evenkeel/keys/",
	 "Keys of the service. Each opens frames; the lexically last one seals. The package makes "
	 "00-local, so a key of the cluster with a name like 10-cluster replaces it."},
	{"SIGNALS", "SIGHUP",
	 "Read the keys again; with --aggregator-key, enrol again for a new key."},
	{NULL, "SIGTERM, SIGINT", "End."},
	{"EXIT STATUS", "0", "Ended by a signal."},
	{NULL, "1", "A fault at the start or later."},
	{NULL, "2", "Wrong options."},
	{"EXAMPLES", NULL, "Use of this machine now, without aggregator and key:"},
	{NULL, NULL, "\tevenkeel-agent --once"},
	{"SEE ALSO", NULL, "evenkeel-aggregator(8), evenkeel(1), cgroups(7), bpf(2)"},
	{0},
};

static const struct option_program program = {
	.name = "evenkeel-agent",
	.summary = "Samples the use, limits and throttling of every cgroup on this node.",
	.usage = "[OPTION..]",
	.specs = specs,
	.env_prefix = "EVENKEEL_",
	.config_name = "config",
	.manual = manual,
};

/* The node's name: --node-name, else the host's. */
static int node_name(const struct agent_options *o, char name[NODE_NAME_MAX + 1],
		     struct error *error)
{
	char host[HOST_NAME_MAX + 1] = "";
	const char *wanted = o->node_name ? o->node_name : host;
	size_t len;

	if (!o->node_name)
		gethostname(host, sizeof(host));
	len = strlen(wanted);
	if (frame_node_name_valid(wanted, len)) {
		memcpy(name, wanted, len + 1);
		return 0;
	}
	return error_fail(error, -1,
			  "--node-name: \"%.100s\" is not a node name; use letters, digits, '-', "
			  "'.', '_', at most %d",
			  wanted, NODE_NAME_MAX);
}

static int read_enrolment(const struct agent_options *o, struct enroller_config *enrol,
			  struct error *error)
{
	const char *wrong = NULL;

	if (!o->aggregator_key && (o->join_token_file || o->kubernetes_token_file))
		wrong = "--aggregator-key: needed to enrol; the aggregator writes it beside its "
			"--enrolment-key";
	else if (o->aggregator_key && !o->join_token_file == !o->kubernetes_token_file)
		wrong = "--aggregator-key: give --join-token-file or --kubernetes-token-file with "
			"it, to enrol by";
	else if (o->aggregator_key && o->key_file)
		wrong = "--aggregator-key: frames are sealed with the key that it leads to, so do "
			"not give --key-file";
	if (wrong)
		return error_fail(error, -1, "%s", wrong);
	*enrol = (struct enroller_config){
		.aggregator_key_path = o->aggregator_key,
		.credential_path =
			o->join_token_file ? o->join_token_file : o->kubernetes_token_file,
		.kind = o->join_token_file ? CREDENTIAL_JOIN_TOKEN : CREDENTIAL_SERVICE_ACCOUNT,
	};
	return 0;
}

/* An unset shell variable gives an empty value; say which option. */
static int check_not_empty(const struct agent_options *o, struct error *error)
{
	const char *empty = NULL;

	if (o->key_file && !*o->key_file)
		empty = "--key-file: \"\" is no path; it takes a file of 32 random bytes, or a "
			"directory of such files";
	if (!*o->cgroup_root)
		empty = "--cgroup-root: \"\" is no path; it is where the host's cgroup hierarchies "
			"are mounted, as /sys/fs/cgroup";
	for (size_t i = 0; i < o->aggregators.count; i++) {
		if (!*o->aggregators.items[i])
			empty = "--aggregator: \"\" is no address; it takes tcp://HOST:PORT or "
				"ipc:///PATH";
	}
	if (empty)
		error_set(error, "%s", empty);
	return empty ? -1 : 0;
}

static int sample_once(const struct agent_options *o, const struct agent_config *agent,
		       struct error *error)
{
	struct once_config config = {
		.node = agent->publisher.node,
		.interval_ns = agent->publisher.interval_ns,
		.output = (enum once_output)o->output,
		.sampling = agent->sampling,
	};

	if (!o->common.verbose)
		log_start(program.name, LOG_LEVEL_WARN);
	return once_run(&config, error) ? 1 : 0;
}

static int run(const void *values, struct error *error)
{
	const struct agent_options *o = values;
	char name[NODE_NAME_MAX + 1];
	struct agent_config config = {
		.publisher =
			{
				.aggregators = &o->aggregators,
				.node = name,
				.key_path = o->key_file,
				.interval_ns = o->interval_ns,
			},
		.status_path = o->status_file,
		.confine = o->confine,
		.sampling =
			{
				.cgroup_root = o->cgroup_root,
				.rate_hz = (int)o->rate_hz,
				.tier = tier_values[o->tier],
				.cpu_budget_percent = o->cpu_budget_percent,
			},
	};
	struct agent *agent;
	struct error status;
	int rc;

	if (o->healthy) {
		rc = liveness_check(o->status_file, &status, error);
		if (!rc && status.text[0])
			puts(status.text);
		return rc ? 1 : 0;
	}
	if (check_not_empty(o, error) || node_name(o, name, error))
		return 2;
	if (o->once)
		return sample_once(o, &config, error);
	if (read_enrolment(o, &config.publisher.enrol, error))
		return 2;
	rc = agent_open(&agent, &config, error);
	if (rc)
		return 1;
	/*
	 * The ring's intervals come and go for days; in separate mappings they do not fragment the
	 * heap.
	 */
	mallopt(M_MMAP_THRESHOLD, 64 * 1024);
	rc = agent_run(agent, error);
	agent_close(agent);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct agent_options options = {0};

	return program_main(&program, &options, &options.common, run, argc, argv);
}
