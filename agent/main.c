/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel-agent: options, then the agent until it is told to stop. Exit: 0 ok, 1 error, 2 usage. */
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "shared/frame.h"
#include "shared/interval.h"
#include "shared/options.h"
#include "shared/program.h"

struct agent_options {
	struct option_list aggregators;
	char *node_name, *key_file, *cgroup_root;
	int64_t interval_ns, rate_hz;
	int tier;
	struct program_common common;
};

static const char *const tier_choices[] = {"auto", "T1", "T3", NULL};
static const int tier_values[] = {-1, TIER_T1, TIER_T3};

#define AT(member) offsetof(struct agent_options, member)
static const struct option_spec specs[] = {
	{.name = "aggregator",
	 .kind = OPTION_LIST,
	 .offset = AT(aggregators),
	 .value = "URL",
	 .initial = "tcp://127.0.0.1:2021",
	 .help = "Where to send intervals: tcp://HOST:PORT or ipc:///PATH; repeat it for several."},
	{.name = "node-name",
	 .kind = OPTION_STRING,
	 .offset = AT(node_name),
	 .value = "NAME",
	 .help = "Name of this node, as the Kubernetes API spells it; without it the host name."},
	{.name = "key-file",
	 .kind = OPTION_STRING,
	 .offset = AT(key_file),
	 .value = "FILE",
	 .help = "Key that seals frames: a file of 32 random bytes, or a directory of such files."},
	{.name = "cgroup-root",
	 .kind = OPTION_STRING,
	 .offset = AT(cgroup_root),
	 .value = "DIR",
	 .initial = "/sys/fs/cgroup",
	 .help = "Where the host's cgroup hierarchies are mounted."},
	{.name = "interval",
	 .kind = OPTION_DURATION,
	 .offset = AT(interval_ns),
	 .value = "DURATION",
	 .initial = "5s",
	 .min = 1e9,
	 .max = 15e9,
	 .help = "Length of a published interval."},
	{.name = "rate",
	 .kind = OPTION_INTEGER,
	 .offset = AT(rate_hz),
	 .value = "HZ",
	 .initial = "10",
	 .min = 1,
	 .max = 20,
	 .help = "Samples of CPU and memory per second."},
	{.name = "tier",
	 .kind = OPTION_CHOICE,
	 .offset = AT(tier),
	 .value = "TIER",
	 .initial = "auto",
	 .choices = tier_choices,
	 .help = "How to sample: T1 (eBPF), T3 (cgroup files, 1 Hz), or the best that works."},
	PROGRAM_COMMON_OPTIONS(AT(common)),
};

static const struct option_program program = {
	.name = "evenkeel-agent",
	.summary = "Samples the use, limits and throttling of every cgroup on this node.",
	.usage = "[OPTION..]",
	.specs = specs,
	.env_prefix = "EVENKEEL_",
	.config_name = "config",
};

/* The name the node reports under: as given, else the host's. */
static int node_name(const struct agent_options *o, char name[NODE_NAME_MAX + 1],
		     struct reason *why)
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
	reason_set(why,
		   "--node-name: \"%.100s\" is not a node name; use letters, digits, '-', '.', "
		   "'_', at most %d",
		   wanted, NODE_NAME_MAX);
	return -1;
}

static int run(const void *values, struct reason *why)
{
	const struct agent_options *o = values;
	char name[NODE_NAME_MAX + 1];
	struct agent_config config = {
		.aggregators = o->aggregators,
		.node = name,
		.key_path = o->key_file,
		.cgroup_root = o->cgroup_root,
		.interval_ns = o->interval_ns,
		.rate_hz = (int)o->rate_hz,
		.tier = tier_values[o->tier],
	};
	struct agent *agent;
	int rc;

	if (node_name(o, name, why))
		return 2;
	rc = agent_open(&agent, &config, why);
	if (rc)
		return 1;
	rc = agent_run(agent, why);
	agent_close(agent);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct agent_options options = {0};

	return program_main(&program, &options, &options.common, run, argc, argv);
}
