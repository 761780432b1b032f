/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soak: an aggregator under a fleet for as long as one likes, with whatever goes wrong in fleets,
 * and with people and schedulers who ask it something every second. What should stay level is read
 * at intervals and told at the end: memory, descriptors, threads, the time of answers and acks.
 * Then, if asked for, the aggregator is killed and started again, and the time is taken until it
 * has heard all agents, and until they have told it what it missed. --sizes does this with clusters
 * of several sizes and tells how what each costs grows. All of it lies as JSON in --json, which
 * bench_table compares with that of another run where it is build/bench/soak.json.
 *
 * Exit: 0 measured, 1 something ended that should not have, 2 usage. A budget that is missed is
 * told, not failed.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "shared/options.h"
#include "shared/program.h"
#include "shared/table.h"
#include "tests/bench_report.h"
#include "tests/fleet/cluster.h"
#include "tests/soak/soak.h"

enum { SIZES_MAX = 16, BUDGET_NODES = 5000 };

struct soak_options {
	int64_t nodes, pods_per_node;
	int64_t duration_ns, reading_ns, query_ns, outage_ns, interval_ns, ring_span_ns, history_ns;
	bool objects, restart;
	char *json;
	char *sizes, *pod_life, *node_life, *node_down, *skew, *ack_loss, *ack_delay;
	struct program_common common;
};

#define AT(member) offsetof(struct soak_options, member)
static const struct option_spec specs[] = {
	{.name = "nodes",
	 .kind = OPTION_INTEGER,
	 .offset = AT(nodes),
	 .value = "N",
	 .initial = "5000",
	 .min = 1,
	 .max = CLUSTER_NODES_MAX,
	 .help = "Nodes of the cluster, each with an agent."},
	{.name = "sizes",
	 .kind = OPTION_STRING,
	 .offset = AT(sizes),
	 .value = "N,N..",
	 .help = "Instead of --nodes: clusters of these sizes, one after the other, each for "
		 "--duration, and a table of how what they cost grows."},
	{.name = "pods-per-node",
	 .kind = OPTION_INTEGER,
	 .offset = AT(pods_per_node),
	 .value = "N",
	 .initial = "30",
	 .min = 1,
	 .max = CLUSTER_PODS_PER_NODE_MAX,
	 .help = "Pods per node on average, of two containers each."},
	{.name = "duration",
	 .kind = OPTION_DURATION,
	 .offset = AT(duration_ns),
	 .value = "DURATION",
	 .initial = "10m",
	 .min = 10e9,
	 .max = 7 * 86400e9,
	 .help = "How long to measure, once all agents are heard."},
	{.name = "reading",
	 .kind = OPTION_DURATION,
	 .offset = AT(reading_ns),
	 .value = "DURATION",
	 .min = 1e9,
	 .max = 3600e9,
	 .help = "How often memory and descriptors are read; without it about sixty times in all."},
	{.name = "query",
	 .kind = OPTION_DURATION,
	 .offset = AT(query_ns),
	 .value = "DURATION",
	 .initial = "1s",
	 .min = 1e7,
	 .max = 3600e9,
	 .help = "How often one of the questions is asked, in turn."},
	{.name = "objects",
	 .kind = OPTION_FLAG,
	 .offset = AT(objects),
	 .help = "Let the aggregator know the cluster's objects, too."},
	{.name = "restart",
	 .kind = OPTION_FLAG,
	 .offset = AT(restart),
	 .help = "At the end kill the aggregator, start it again and await all agents and what "
		 "they kept."},
	{.name = "outage",
	 .kind = OPTION_DURATION,
	 .offset = AT(outage_ns),
	 .value = "DURATION",
	 .max = 900e9,
	 .help = "How long the aggregator stays away in --restart; the time is taken from its "
		 "return."},
	{.name = "ring-span",
	 .kind = OPTION_DURATION,
	 .offset = AT(ring_span_ns),
	 .value = "DURATION",
	 .initial = "60s",
	 .min = 1e9,
	 .max = 900e9,
	 .help = "How long each agent keeps intervals; one of 30 pods takes 28 KB of memory."},
	{.name = "history",
	 .kind = OPTION_DURATION,
	 .offset = AT(history_ns),
	 .value = "DURATION",
	 .max = 900e9,
	 .help = "What each agent has measured before it can tell anybody: an outage without "
		 "waiting."},
	{.name = "interval",
	 .kind = OPTION_DURATION,
	 .offset = AT(interval_ns),
	 .value = "DURATION",
	 .initial = "5s",
	 .min = 1e9,
	 .max = 15e9,
	 .help = "Length of a published interval; this and all below are of the fleet."},
	{.name = "pod-life",
	 .kind = OPTION_STRING,
	 .offset = AT(pod_life),
	 .value = "DURATION",
	 .help = "Another pod takes the place of each after so long."},
	{.name = "node-life",
	 .kind = OPTION_STRING,
	 .offset = AT(node_life),
	 .value = "DURATION",
	 .help = "Each agent dies after so long and is started again."},
	{.name = "node-down",
	 .kind = OPTION_STRING,
	 .offset = AT(node_down),
	 .value = "DURATION",
	 .help = "How long of that it stays dead."},
	{.name = "skew",
	 .kind = OPTION_STRING,
	 .offset = AT(skew),
	 .value = "DURATION",
	 .help = "Clocks of nodes are off by up to so much."},
	{.name = "ack-loss",
	 .kind = OPTION_STRING,
	 .offset = AT(ack_loss),
	 .value = "SHARE",
	 .help = "Share of the acks that never arrive."},
	{.name = "ack-delay",
	 .kind = OPTION_STRING,
	 .offset = AT(ack_delay),
	 .value = "DURATION",
	 .help = "Acks arrive late by up to so much."},
	{.name = "json",
	 .kind = OPTION_STRING,
	 .offset = AT(json),
	 .value = "FILE",
	 .initial = "build/bench/soak.json",
	 .help = "Where all rows and readings go, a line of JSON each."},
	PROGRAM_COMMON_OPTIONS(AT(common)),
};

static const struct option_program program = {
	.name = "soak",
	.summary =
		"Keeps an aggregator under the load of a fleet and tells what does not stay level.",
	.usage = "[OPTION..]",
	.specs = specs,
	.config_name = "config",
};

/* --- growth ----------------------------------------------------------------------------------- */

static const struct {
	const char *title;
	size_t offset;
} growth[] = {
	{"CPU%", offsetof(struct soak_result, cpu_percent)},
	{"MIB", offsetof(struct soak_result, resident_mib)},
	{"ACK50", offsetof(struct soak_result, ack_ms[0])},
	{"ACK99", offsetof(struct soak_result, ack_ms[1])},
	{"SCORES50", offsetof(struct soak_result, scores_ms[0])},
	{"SCORES99", offsetof(struct soak_result, scores_ms[1])},
	{"PRIO50", offsetof(struct soak_result, prioritize_ms[0])},
	{"PRIO99", offsetof(struct soak_result, prioritize_ms[1])},
	{"NODES50", offsetof(struct soak_result, nodes_ms[0])},
	{"NODES99", offsetof(struct soak_result, nodes_ms[1])},
	{"PLAN", offsetof(struct soak_result, plan_s)},
	{"HEARD", offsetof(struct soak_result, heard_s)},
	{"RESTART", offsetof(struct soak_result, restart_s)},
};

enum { GROWTH = sizeof(growth) / sizeof(growth[0]) };

static double value_of(const struct soak_result *r, size_t column)
{
	double value;

	memcpy(&value, (const char *)r + growth[column].offset, sizeof(value));
	return value;
}

static void cell(struct table *t, const char *before, int decimals, double value)
{
	char text[32] = "-";

	if (!isnan(value))
		snprintf(text, sizeof(text), "%s%.*f", before, decimals, value);
	table_cell(t, PAINT_PLAIN, text);
}

static void add_size(struct table *t, int64_t nodes, const struct soak_result *r)
{
	char name[24];

	snprintf(name, sizeof(name), "%lld", (long long)nodes);
	table_row(t, name);
	table_cell(t, PAINT_PLAIN, name);
	for (size_t i = 0; i < GROWTH; i++)
		cell(t, "", value_of(r, i) < 100 ? 2 : 0, value_of(r, i));
}

/* What a node costs in the larger cluster, in what it does in the smaller one. */
static void add_ratios(struct table *t, const int64_t nodes[2], const struct soak_result r[2])
{
	table_row(t, "");
	table_cell(t, PAINT_DIM, "a node");
	for (size_t i = 0; i < GROWTH; i++)
		cell(t, "x", 2,
		     value_of(&r[1], i) / value_of(&r[0], i) * (double)nodes[0] / (double)nodes[1]);
}

static void print_growth(const int64_t *sizes, const struct soak_result *results, size_t count)
{
	const struct table_style style = {.headers = true};
	struct table *t = table_new();
	struct buf out = BUF_INIT;

	table_column(t, "NODES", FORM_RIGHT);
	for (size_t i = 0; i < GROWTH; i++)
		table_column(t, growth[i].title, FORM_RIGHT);
	for (size_t i = 0; i < count; i++) {
		if (i)
			add_ratios(t, &sizes[i - 1], &results[i - 1]);
		add_size(t, sizes[i], &results[i]);
	}
	table_print(t, &style, &out);
	printf("\n%s\nTimes of acks and answers in ms: median and 99 of 100. Below each size, what "
	       "a node costs against the size before.\n",
	       out.data);
	buf_fini(&out);
	table_free(t);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* How many there are, or -EINVAL. */
static int parse_sizes(const char *text, int64_t sizes[SIZES_MAX], struct error *error)
{
	int count = 0;
	char *end;

	for (const char *at = text;; at = end + 1) {
		sizes[count] = strtoll(at, &end, 10);
		if (end == at || (*end && *end != ',') || sizes[count] < 1 ||
		    sizes[count] > CLUSTER_NODES_MAX) {
			error_set(error, "--sizes %s: numbers of 1 to %d with commas between them",
				  text, CLUSTER_NODES_MAX);
			return -EINVAL;
		}
		count++;
		if (!*end)
			return count;
		if (count == SIZES_MAX) {
			error_set(error, "--sizes: at most %d", SIZES_MAX);
			return -EINVAL;
		}
	}
}

static struct soak_config config_of(const struct soak_options *o)
{
	return (struct soak_config){
		.pods_per_node = o->pods_per_node,
		.duration_ns = o->duration_ns,
		.reading_ns = o->reading_ns,
		.query_ns = o->query_ns,
		.objects = o->objects,
		.restart = o->restart,
		.outage_ns = o->outage_ns,
		.ring_span_ns = o->ring_span_ns,
		.history_ns = o->history_ns,
		.interval_ns = o->interval_ns,
		.pod_life = o->pod_life,
		.node_life = o->node_life,
		.node_down = o->node_down,
		.skew = o->skew,
		.ack_loss = o->ack_loss,
		.ack_delay = o->ack_delay,
	};
}

static int run(const void *values, struct error *error)
{
	const struct soak_options *o = values;
	struct soak_config c = config_of(o);
	struct soak_result results[SIZES_MAX];
	int64_t sizes[SIZES_MAX] = {o->nodes};
	int count = o->sizes ? parse_sizes(o->sizes, sizes, error) : 1, done = 0, failed = 0;

	if (count < 0)
		return 2;
	if (bench_begin_at("soak", o->json, error))
		return 1;
	for (; done < count && !failed; done += !failed) {
		char *prefix = count > 1 ? mem_printf("%lld nodes: ", (long long)sizes[done])
					 : mem_strdup("");

		c.nodes = sizes[done];
		c.prefix = prefix;
		c.budgets = c.nodes == BUDGET_NODES && c.pods_per_node == 30;
		failed = soak_run(&c, &results[done]);
		free(prefix);
	}
	bench_end();
	if (count > 1 && done)
		print_growth(sizes, results, (size_t)done);
	return failed;
}

int main(int argc, char **argv)
{
	struct soak_options options = {0};

	return program_main(&program, &options, &options.common, run, argc, argv);
}
