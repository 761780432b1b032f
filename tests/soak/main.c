/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soak: an aggregator under a fleet for as long as one likes, with whatever goes wrong in fleets, and with people and
 * schedulers who ask it something every second. What should stay level is read at intervals and told at the end: memory,
 * descriptors, threads, the time of answers and acks. Then, if asked for, the aggregator is killed and started again, and
 * the time is taken until it has heard all agents.
 *
 * Exit: 0 measured, 1 something ended that should not have, 2 usage. A budget that is missed is told, not failed.
 */
#include <curl/curl.h>
#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/histogram.h"
#include "shared/mem.h"
#include "shared/options.h"
#include "shared/program.h"
#include "tests/bench_agent.h"
#include "tests/bench_report.h"
#include "tests/fleet/cluster.h"
#include "tests/fleet/load.h"
#include "tests/process.h"

enum { HEARD_S = 300, FLEET_ARGS_MAX = 28, READINGS_MAX = 4096 };

#define LATENCY_X0_US 1.0

struct soak_options {
	int64_t nodes, pods_per_node;
	int64_t duration_ns, reading_ns, query_ns, outage_ns;
	bool objects, restart;
	char *interval, *ring_span, *history, *pod_life, *node_life, *node_down, *skew, *ack_loss,
		*ack_delay;
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
	 .initial = "10s",
	 .min = 1e9,
	 .max = 3600e9,
	 .help = "How often memory and descriptors are read."},
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
	 .help = "At the end kill the aggregator, start it again and await all agents."},
	{.name = "outage",
	 .kind = OPTION_DURATION,
	 .offset = AT(outage_ns),
	 .value = "DURATION",
	 .max = 900e9,
	 .help = "How long the aggregator stays away in --restart; the time is taken from its "
		 "return."},
	{.name = "ring-span",
	 .kind = OPTION_STRING,
	 .offset = AT(ring_span),
	 .value = "DURATION",
	 .help = "How long each agent keeps intervals; 28 KB of memory for each of 30 pods."},
	{.name = "history",
	 .kind = OPTION_STRING,
	 .offset = AT(history),
	 .value = "DURATION",
	 .help = "What each agent has measured before it can tell anybody: an outage without "
		 "waiting."},
	{.name = "interval",
	 .kind = OPTION_STRING,
	 .offset = AT(interval),
	 .value = "DURATION",
	 .initial = "5s",
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

/* --- questions ------------------------------------------------------------------------------------------------ */

struct question {
	const char *what, *path;
	char *body; /* owned; NULL: GET */
	double budget_ms;
	struct histogram latency_us;
	double latency_max_us;
	uint64_t answers, failures;
};

enum { QUESTIONS = 5 };

struct asker {
	CURL *curl;
	char *base;
	struct question questions[QUESTIONS];
	size_t next;
};

static size_t drop(char *data, size_t size, size_t count, void *ctx)
{
	(void)data;
	(void)ctx;
	return size * count;
}

/* As kube-scheduler asks: one pod, all nodes by name. */
static char *prioritize_body(uint32_t nodes)
{
	struct buf body = BUF_INIT;

	buf_add_str(&body, "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"shop\",\"uid\":"
			   "\"soak\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
			   "\"requests\":{\"cpu\":\"500m\",\"memory\":\"512Mi\"}}}]}},"
			   "\"Nodes\":null,\"NodeNames\":[");
	for (uint32_t i = 0; i < nodes; i++) {
		char name[CLUSTER_NAME_MAX];

		cluster_node_name(i, name);
		buf_printf(&body, "%s\"%s\"", i ? "," : "", name);
	}
	buf_add_str(&body, "]}");
	return buf_take(&body, NULL);
}

static void asker_init(struct asker *a, const struct stack *s, uint32_t nodes)
{
	const struct question questions[QUESTIONS] = {
		{.what = "scores of all nodes",
		 .path = "/v1/scores",
		 .body = mem_strdup("{}"),
		 .budget_ms = 5},
		{.what = "extender prioritize",
		 .path = "/extender/prioritize",
		 .body = prioritize_body(nodes),
		 .budget_ms = 10},
		{.what = "a page of 500 nodes",
		 .path = "/v1/nodes?limit=500",
		 .budget_ms = (double)NAN},
		{.what = "a page of 500 pods",
		 .path = "/v1/pods?limit=500",
		 .budget_ms = (double)NAN},
		{.what = "all of /watcher", .path = "/watcher", .budget_ms = (double)NAN},
	};

	*a = (struct asker){.curl = curl_easy_init()};
	a->base = mem_printf("http://127.0.0.1:%d", s->aggregators[0].http_port);
	memcpy(a->questions, questions, sizeof(questions));
	curl_easy_setopt(a->curl, CURLOPT_WRITEFUNCTION, drop);
	curl_easy_setopt(a->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(a->curl, CURLOPT_TIMEOUT, 60L);
}

static void asker_fini(struct asker *a)
{
	for (size_t i = 0; i < QUESTIONS; i++)
		free(a->questions[i].body);
	curl_easy_cleanup(a->curl);
	free(a->base);
}

/* Asks the next question, on the connection that is kept. */
static void ask(struct asker *a)
{
	struct question *q = &a->questions[a->next++ % QUESTIONS];
	char *url = mem_printf("%s%s", a->base, q->path);
	int64_t begin = clock_mono_ns();
	long status = 0;
	double us;

	curl_easy_setopt(a->curl, CURLOPT_URL, url);
	if (q->body)
		curl_easy_setopt(a->curl, CURLOPT_POSTFIELDS, q->body);
	else
		curl_easy_setopt(a->curl, CURLOPT_HTTPGET, 1L);
	if (!curl_easy_perform(a->curl))
		curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
	us = (double)(clock_mono_ns() - begin) / 1e3;
	free(url);
	if (status != 200) {
		q->failures++;
		return;
	}
	q->answers++;
	q->latency_max_us = fmax(q->latency_max_us, us);
	histogram_add(&q->latency_us, us, LATENCY_X0_US);
}

static void report_questions(const struct asker *a)
{
	uint64_t failures = 0;

	for (size_t i = 0; i < QUESTIONS; i++) {
		const struct question *q = &a->questions[i];
		char row[96];

		failures += q->failures;
		if (!q->answers)
			continue;
		snprintf(row, sizeof(row), "%s, median", q->what);
		bench_row(row, "ms", (double)NAN, 0,
			  histogram_quantile(&q->latency_us, 0.5, LATENCY_X0_US, 0,
					     q->latency_max_us) /
				  1e3);
		snprintf(row, sizeof(row), "%s, 99 of 100", q->what);
		bench_row(row, "ms", q->budget_ms, 0,
			  histogram_quantile(&q->latency_us, 0.99, LATENCY_X0_US, 0,
					     q->latency_max_us) /
				  1e3);
	}
	bench_row("questions without a good answer", "questions", 0, 0, (double)failures);
}

/* --- what should stay level ----------------------------------------------------------------------------------- */

struct level {
	double seconds, resident_mib, descriptors, threads, cpu_seconds;
};

static double count_entries(pid_t pid, const char *below)
{
	char *path = mem_printf("/proc/%d/%s", (int)pid, below);
	DIR *folder = opendir(path);
	double count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	free(path);
	return count - 2; /* . and .. */
}

static struct level take_reading(pid_t pid, int64_t begin_ns)
{
	struct level r = {
		.seconds = (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC,
		.resident_mib = bench_resident_mib(pid),
		.descriptors = count_entries(pid, "fd"),
		.threads = count_entries(pid, "task"),
		.cpu_seconds = bench_cpu_seconds(pid),
	};

	printf("%8.0f s %8.1f MiB %6.0f descriptors %3.0f threads %9.1f s CPU\n", r.seconds,
	       r.resident_mib, r.descriptors, r.threads, r.cpu_seconds);
	fflush(stdout);
	return r;
}

static double mean_resident_mib(const struct level *of, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += of[i].resident_mib;
	return sum / (double)count;
}

static void report_level(const struct level *of, size_t count)
{
	size_t quarter = count / 4 ? count / 4 : 1;
	const struct level *first = &of[0], *last = &of[count - 1];
	double early = mean_resident_mib(of + count / 2, quarter);
	double late = mean_resident_mib(of + count - quarter, quarter);

	bench_row("CPU of the aggregator, of one core", "%", 25, 0,
		  100 * (last->cpu_seconds - first->cpu_seconds) /
			  (last->seconds - first->seconds));
	bench_row("resident memory, last quarter", "MiB", 1024, 0, late);
	bench_row("  against the quarter before", "x", 1.02, 0, late / early);
	bench_row("descriptors more at the end than at the start", "descriptors", (double)NAN, 0,
		  last->descriptors - first->descriptors);
	bench_row("threads more at the end than at the start", "threads", 0, 0,
		  last->threads - first->threads);
}

static size_t soak(const struct soak_options *o, pid_t aggregator, struct asker *a,
		   struct level *readings)
{
	int64_t begin = clock_mono_ns(), now = begin, query = begin, reading = begin;
	size_t count = 0;

	while (now < begin + o->duration_ns && count < READINGS_MAX) {
		int64_t next;

		if (now >= reading) {
			readings[count++] = take_reading(aggregator, begin);
			reading += o->reading_ns;
		}
		if (now >= query) {
			ask(a);
			query += o->query_ns;
		}
		next = query < reading ? query : reading;
		now = clock_mono_ns();
		if (next > now)
			poll(NULL, 0, (int)((next - now) / NS_PER_MS) + 1);
		now = clock_mono_ns();
	}
	return count;
}

/* --- the whole ------------------------------------------------------------------------------------------------ */

static void add_option(const char **argv, size_t *n, const char *name, const char *value)
{
	if (!value)
		return;
	argv[(*n)++] = name;
	argv[(*n)++] = value;
}

static pid_t start_fleet(const struct soak_options *o, const struct stack *s)
{
	char nodes[24], pods[24];
	const char *argv[FLEET_ARGS_MAX] = {"--containers", "2"};
	size_t n = 2;

	snprintf(nodes, sizeof(nodes), "%lld", (long long)o->nodes);
	snprintf(pods, sizeof(pods), "%lld", (long long)o->pods_per_node);
	add_option(argv, &n, "--nodes", nodes);
	add_option(argv, &n, "--pods-per-node", pods);
	add_option(argv, &n, "--warmup", "30s");
	add_option(argv, &n, "--interval", o->interval);
	add_option(argv, &n, "--ring-span", o->ring_span);
	add_option(argv, &n, "--history", o->history);
	add_option(argv, &n, "--pod-life", o->pod_life);
	add_option(argv, &n, "--node-life", o->node_life);
	add_option(argv, &n, "--node-down", o->node_down);
	add_option(argv, &n, "--skew", o->skew);
	add_option(argv, &n, "--ack-loss", o->ack_loss);
	add_option(argv, &n, "--ack-delay", o->ack_delay);
	return fleet_start(s, argv);
}

/* The cluster that the fleet will be, as a file the aggregator reads. */
static char *write_objects(const struct soak_options *o, const struct stack *s)
{
	const char *folder = getenv("TB");
	char *fleet = mem_printf("%s/fleet", folder ? folder : "build/tests");
	char *path = mem_printf("%s/cluster.json", s->folder);
	char *nodes = mem_printf("%lld", (long long)o->nodes);
	char *pods = mem_printf("%lld", (long long)o->pods_per_node);
	char *argv[] = {fleet, (char *)"--nodes", nodes, (char *)"--pods-per-node",
			pods,  (char *)"--dump",  path,	 NULL};

	if (process_run(argv, NULL, NULL)) {
		fprintf(stderr, "the cluster's objects cannot be written\n");
		exit(1);
	}
	free(fleet);
	free(nodes);
	free(pods);
	return path;
}

static int restart(const struct soak_options *o, struct stack *s)
{
	int64_t begin = clock_mono_ns();
	double seconds;

	stack_kill_aggregator(s, 0);
	if (o->outage_ns) {
		poll(NULL, 0, (int)(o->outage_ns / NS_PER_MS));
		begin = clock_mono_ns();
	}
	stack_start_aggregator(s, 0);
	seconds = load_await_fresh(s, (double)o->nodes, begin, HEARD_S);
	if (isnan(seconds))
		return 1;
	bench_row("from the kill of the aggregator until all agents are heard", "s", 30, 0,
		  seconds);
	return 0;
}

static int measure(const struct soak_options *o, struct stack *s)
{
	struct level *readings = mem_zalloc(READINGS_MAX, sizeof(*readings));
	int64_t begin = clock_mono_ns();
	pid_t fleet = start_fleet(o, s);
	/* Where agents die, a few are always dead. */
	double nodes = o->node_life ? 0.9 * (double)o->nodes : (double)o->nodes;
	double heard_s = load_await_fresh(s, nodes, begin, HEARD_S), applied;
	struct asker a;
	cJSON *report;
	int failed = 0;

	if (isnan(heard_s)) {
		free(readings);
		return 1;
	}
	asker_init(&a, s, (uint32_t)o->nodes);
	report_level(readings, soak(o, s->aggregators[0].pid, &a, readings));
	bench_row("until all agents are heard", "s", 30, 0, heard_s);
	report_questions(&a);
	if (o->restart)
		failed = restart(o, s);
	report = fleet_stop(s, fleet);
	applied = o->restart || o->node_life ? (double)NAN : load_applied(s);
	if (report)
		load_report(report, load_unaccounted(report, applied));
	else
		failed = 1;
	cJSON_Delete(report);
	asker_fini(&a);
	free(readings);
	return failed;
}

static int run(const void *values, struct reason *reason)
{
	const struct soak_options *o = values;
	struct stack *s = stack_new();
	char *objects = o->objects ? write_objects(o, s) : NULL;
	int failed;

	(void)reason;
	s->aggregators[0].snapshot_path = objects;
	stack_start_aggregator(s, 0);
	bench_begin("soak");
	failed = measure(o, s);
	bench_end();
	stack_free(s, failed);
	free(objects);
	return failed;
}

int main(int argc, char **argv)
{
	struct soak_options options = {0};

	return program_main(&program, &options, &options.common, run, argc, argv);
}
