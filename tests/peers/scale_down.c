/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two benchmarks of cluster-autoscaler (pkg/core/bench), and the same clusters planned by
 * `evenkeel drain` from a dump of them:
 *
 *   BenchmarkRunOnceScaleDown    one loop over 2000 nodes with 40 pods of 1 % each; it fails unless
 *                                1200 nodes go
 *   BenchmarkScaledownEfficiency loops of one node each, until nothing goes: 2 nodes of 1000m, 3 of
 *                                4000m, 1 of 9000m, each with a pod of 1000m
 *
 * Theirs is timed inside the process, on objects in memory; ours from start to end of the process,
 * with reading the dump. Both memories are the peak of the process; theirs holds its fake API, too.
 * Waves of ours are applied to the cluster and planned anew until nothing goes.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cjson/cJSON.h>

#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/peers/peers.h"
#include "tests/process.h"
#include "tests/stack.h"

/* --- programs -------------------------------------------------------------------------------- */

struct run {
	int status; /* of the process; -1: it did not end by itself */
	double seconds, peak_mib;
	char *text; /* owned: all that it printed */
};

static char *read_all(const char *path)
{
	struct buf text = BUF_INIT;
	FILE *f = fopen(path, "re");
	char piece[65536];
	size_t got;

	while (f && (got = fread(piece, 1, sizeof(piece), f)) > 0)
		buf_add(&text, piece, got);
	if (f)
		fclose(f);
	return buf_take(&text, NULL);
}

static struct run run_program(const char *folder, char *const argv[])
{
	char *log = mem_printf("%s/output", folder);
	int64_t start_ns = clock_mono_ns();
	struct run run = {.status = -1};
	struct rusage usage = {0};
	pid_t pid, ended;
	int status = 0;

	remove(log);
	pid = process_start(log, argv);
	do
		ended = wait4(pid, &status, 0, &usage);
	while (ended < 0 && errno == EINTR);
	if (ended == pid && WIFEXITED(status))
		run.status = WEXITSTATUS(status);
	run.seconds = (double)(clock_mono_ns() - start_ns) / NS_PER_SEC;
	run.peak_mib = (double)usage.ru_maxrss / 1024;
	run.text = read_all(log);
	free(log);
	return run;
}

/* --- theirs ---------------------------------------------------------------------------------- */

static bool has_benchmark(const char *folder, const char *program, const char *name)
{
	char *pattern = mem_printf("^%s$", name);
	char *argv[] = {(char *)program, (char *)"-test.list", pattern, NULL};
	struct run run = run_program(folder, argv);
	bool has = run.status == 0 && strstr(run.text, name);

	free(run.text);
	free(pattern);
	return has;
}

/* The first of the programs that has it; NULL: none. The caller frees it. */
static char *find_benchmark(const char *folder, const char *programs, const char *name)
{
	char *words = mem_strdup(programs), *rest = words, *found = NULL, *word;

	while (!found && (word = strsep(&rest, " ")))
		if (*word && has_benchmark(folder, word, name))
			found = mem_strdup(word);
	free(words);
	return found;
}

/* "NAME-2  1  19900000000 ns/op  3.000 loops": the number before a unit; NAN: it is not there. */
static double measured(const char *text, const char *name, const char *unit)
{
	const char *line = text ? strstr(text, name) : NULL;
	size_t len = line ? strcspn(line, "\n") : 0;
	char *words = mem_strndup(line ? line : "", len), *rest = words, *word, *last = NULL;
	double value = NAN;

	while ((word = strsep(&rest, " \t"))) {
		if (last && strcmp(word, unit) == 0)
			value = strtod(last, NULL);
		if (*word)
			last = word;
	}
	free(words);
	return value;
}

static struct run run_benchmark(const char *folder, const char *program, const char *name)
{
	char *pattern = mem_printf("^%s$", name);
	char *argv[] = {(char *)program,
			(char *)"-test.run",
			(char *)"^$",
			(char *)"-test.bench",
			pattern,
			(char *)"-test.benchmem",
			(char *)"-test.benchtime=1x",
			NULL};
	struct run run = run_program(folder, argv);

	free(pattern);
	return run;
}

/* --- ours ------------------------------------------------------------------------------------ */

/* Exit status of a plan from a dump without usage. */
enum { NO_NODE = -1, NO_USAGE = 4 };

struct bench_node {
	int cpu_milli, mem_bytes;
	bool gone;
};

struct bench_pod {
	int cpu_milli, mem_bytes, node;
};

/* Nodes and pods are named by their numbers. */
struct bench_cluster {
	struct bench_node *nodes;
	struct bench_pod *pods;
	int node_count, pod_count;
};

static void write_node(FILE *f, const struct bench_cluster *c, int i)
{
	const struct bench_node *n = &c->nodes[i];

	fprintf(f,
		"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-%d\"},"
		"\"status\":{\"capacity\":{\"cpu\":\"%dm\",\"memory\":\"%d\",\"pods\":\"100\"},"
		"\"allocatable\":{\"cpu\":\"%dm\",\"memory\":\"%d\",\"pods\":\"100\"},"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}},\n",
		i, n->cpu_milli, n->mem_bytes, n->cpu_milli, n->mem_bytes);
}

static void write_pod(FILE *f, const struct bench_cluster *c, int i)
{
	static const char owner[] = "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
				    "\"ReplicaSet\",\"name\":\"rs\",\"uid\":\"rs\","
				    "\"controller\":true}]";
	const struct bench_pod *p = &c->pods[i];

	fprintf(f,
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"pod-%d\","
		"\"namespace\":\"default\",\"uid\":\"pod-%d\",%s},\"spec\":{\"nodeName\":"
		"\"node-%d\",\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{"
		"\"cpu\":\"%dm\",\"memory\":\"%d\"}}}]},\"status\":{\"phase\":\"Running\","
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}},\n",
		i, i, owner, p->node, p->cpu_milli, p->mem_bytes);
}

/* What kubectl get -o json would print of the nodes that are still there. */
static void write_dump(const struct bench_cluster *c, const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f) {
		perror(path);
		abort();
	}
	fprintf(f, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n");
	for (int i = 0; i < c->node_count; i++)
		if (!c->nodes[i].gone)
			write_node(f, c, i);
	for (int i = 0; i < c->pod_count; i++)
		write_pod(f, c, i);
	fprintf(f,
		"{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"metadata\":{\"name\":\"rs\","
		"\"namespace\":\"default\",\"uid\":\"rs\"},\"spec\":{\"replicas\":%d},"
		"\"status\":{\"replicas\":%d}}]}\n",
		c->pod_count, c->pod_count);
	if (fclose(f)) {
		perror(path);
		abort();
	}
}

/* Percent of the CPU of the nodes that are there. */
static double requested(const struct bench_cluster *c)
{
	double sum = 0, of = 0;

	for (int i = 0; i < c->pod_count; i++)
		sum += c->pods[i].cpu_milli;
	for (int i = 0; i < c->node_count; i++)
		of += c->nodes[i].gone ? 0 : c->nodes[i].cpu_milli;
	return 100 * sum / of;
}

/* "node-12" by the prefix "node-": 12; NO_NODE: it is none of so many. */
static int number_of(const cJSON *object, const char *key, const char *prefix, int below)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
	size_t len = strlen(prefix);
	long i;
	char *end;

	if (!name || strncmp(name, prefix, len) != 0)
		return NO_NODE;
	i = strtol(name + len, &end, 10);
	return end > name + len && !*end && i >= 0 && i < below ? (int)i : NO_NODE;
}

struct outcome {
	int waves, nodes, evictions;
	double first_seconds, peak_mib, before, after;
	bool failed;
};

/* Moves the pods and takes the nodes away; a plan that names what is not there fails. */
static void apply_node(struct bench_cluster *c, const cJSON *node, struct outcome *o)
{
	int from = number_of(node, "name", "node-", c->node_count);
	const cJSON *move;

	if (from == NO_NODE || c->nodes[from].gone) {
		o->failed = true;
		return;
	}
	c->nodes[from].gone = true;
	o->nodes++;
	cJSON_ArrayForEach (move, json_at(node, "moves")) {
		int pod = number_of(move, "name", "pod-", c->pod_count);
		int to = number_of(move, "to", "node-", c->node_count);

		if (pod == NO_NODE || to == NO_NODE || c->pods[pod].node != from) {
			o->failed = true;
			return;
		}
		c->pods[pod].node = to;
		o->evictions++;
	}
}

/* No pod is lost, and no node holds more than it has. */
static bool is_sound(const struct bench_cluster *c)
{
	int *cpu = mem_zalloc((size_t)c->node_count, sizeof(*cpu));
	int *mem = mem_zalloc((size_t)c->node_count, sizeof(*mem));
	bool sound = true;

	for (int i = 0; i < c->pod_count; i++) {
		const struct bench_pod *p = &c->pods[i];

		sound = sound && !c->nodes[p->node].gone;
		cpu[p->node] += p->cpu_milli;
		mem[p->node] += p->mem_bytes;
	}
	for (int i = 0; i < c->node_count; i++)
		sound = sound && cpu[i] <= c->nodes[i].cpu_milli && mem[i] <= c->nodes[i].mem_bytes;
	free(cpu);
	free(mem);
	return sound;
}

/* One plan, applied; how many nodes it takes away. */
static int take_wave(struct bench_cluster *c, const char *folder, const char *threshold,
		     struct outcome *o)
{
	char *dump = mem_printf("%s/dump.json", folder);
	const char *argv[] = {program_path("evenkeel"),
			      "drain",
			      "--snapshot",
			      dump,
			      "--assume-unneeded-for",
			      "15m",
			      "--max-scale-down-parallelism",
			      "2000",
			      "--max-drain-parallelism",
			      "2000",
			      "--scale-down-simulation-timeout",
			      "60s",
			      "--scale-down-utilization-threshold",
			      threshold,
			      "--drain-owner-share",
			      "1",
			      "--extra-capacity-min-rate",
			      "0",
			      "-o",
			      "json",
			      NULL};
	int before = o->nodes;
	struct run run;
	const char *json;
	const cJSON *node;
	cJSON *plan;

	write_dump(c, dump);
	run = run_program(folder, (char *const *)argv);
	json = strchr(run.text, '{'); /* after what it warns of */
	plan = json ? cJSON_Parse(json) : NULL;
	if ((run.status && run.status != NO_USAGE) || !plan) {
		printf("evenkeel drain: exit status %d: %.200s\n", run.status, run.text);
		o->failed = true;
	}
	cJSON_ArrayForEach (node, json_at(plan, "wave.nodes"))
		apply_node(c, node, o);
	o->failed = o->failed || !is_sound(c);
	if (!o->first_seconds)
		o->first_seconds = run.seconds;
	o->peak_mib = fmax(o->peak_mib, run.peak_mib);
	cJSON_Delete(plan);
	free(run.text);
	free(dump);
	return o->nodes - before;
}

static struct outcome drain_all(struct bench_cluster *c, const char *folder, const char *threshold)
{
	struct outcome o = {.before = requested(c)};

	while (take_wave(c, folder, threshold, &o) && !o.failed)
		o.waves++;
	o.after = requested(c);
	if (o.failed)
		printf("evenkeel drain: no plan, or one that cannot be carried out\n");
	return o;
}

/* --- side by side ---------------------------------------------------------------------------- */

static struct bench_cluster cluster_new(int nodes, int pods)
{
	return (struct bench_cluster){mem_zalloc((size_t)nodes, sizeof(struct bench_node)),
				      mem_zalloc((size_t)pods, sizeof(struct bench_pod)), nodes,
				      pods};
}

static void cluster_fini(struct bench_cluster *c)
{
	free(c->nodes);
	free(c->pods);
}

static bool has_failed(const struct run *run, const char *name)
{
	if (run->status)
		printf("%s: exit status %d: %.2000s\n", name, run->status, run->text);
	return run->status != 0;
}

static int compare_run_once(const char *folder, const char *program)
{
	enum { NODES = 2000, PODS = 40, GO = 1200, SIZE = 10000 };
	static const char name[] = "BenchmarkRunOnceScaleDown";
	struct bench_cluster c = cluster_new(NODES, NODES * PODS);
	struct run theirs = run_benchmark(folder, program, name);
	struct outcome ours;
	bool failed = has_failed(&theirs, name);

	for (int i = 0; i < c.node_count; i++)
		c.nodes[i] = (struct bench_node){SIZE, SIZE, false};
	for (int i = 0; i < c.pod_count; i++)
		c.pods[i] = (struct bench_pod){SIZE / 100, SIZE / 100, i % NODES};
	ours = drain_all(&c, folder, "0.5");
	peers_row("RunOnceScaleDown: time of a loop, ours of the process", "s",
		  measured(theirs.text, name, "ns/op") / NS_PER_SEC, ours.first_seconds);
	peers_row("RunOnceScaleDown: time of the process", "s", theirs.seconds, ours.first_seconds);
	peers_row("RunOnceScaleDown: allocated in a loop", "MiB",
		  measured(theirs.text, name, "B/op") / (1 << 20), NAN);
	peers_row("RunOnceScaleDown: peak memory of the process", "MiB", theirs.peak_mib,
		  ours.peak_mib);
	peers_row("RunOnceScaleDown: nodes that go", "", failed ? NAN : GO, ours.nodes);
	peers_row("RunOnceScaleDown: evictions", "", NAN, ours.evictions);
	peers_row("RunOnceScaleDown: CPU requested before", "%", NAN, ours.before);
	peers_row("RunOnceScaleDown: CPU requested after", "%", NAN, ours.after);
	free(theirs.text);
	cluster_fini(&c);
	return failed || ours.failed;
}

static int compare_efficiency(const char *folder, const char *program)
{
	static const int cpu_milli[] = {1000, 1000, 4000, 4000, 4000, 9000};
	enum { NODES = sizeof(cpu_milli) / sizeof(cpu_milli[0]) };
	static const char name[] = "BenchmarkScaledownEfficiency";
	struct bench_cluster c = cluster_new(NODES, NODES);
	struct run theirs = run_benchmark(folder, program, name);
	double loops = measured(theirs.text, name, "loops");
	struct outcome ours;
	bool failed = has_failed(&theirs, name);

	for (int i = 0; i < NODES; i++) {
		c.nodes[i] = (struct bench_node){cpu_milli[i], 1000, false};
		c.pods[i] = (struct bench_pod){1000, 100, i};
	}
	ours = drain_all(&c, folder, "0.75");
	peers_row("ScaledownEfficiency: loops, waves", "", loops, ours.waves);
	peers_row("ScaledownEfficiency: nodes that go", "", loops, ours.nodes);
	peers_row("ScaledownEfficiency: evictions", "", NAN, ours.evictions);
	peers_row("ScaledownEfficiency: CPU requested before", "%",
		  measured(theirs.text, name, "cpu_utilization_%_init"), ours.before);
	peers_row("ScaledownEfficiency: CPU requested after", "%",
		  measured(theirs.text, name, "cpu_utilization_%_final"), ours.after);
	free(theirs.text);
	cluster_fini(&c);
	return failed || ours.failed;
}

int peers_scale_down(const char *programs)
{
	static const struct {
		const char *name;
		int (*compare)(const char *folder, const char *program);
	} benchmarks[] = {
		{"BenchmarkRunOnceScaleDown", compare_run_once},
		{"BenchmarkScaledownEfficiency", compare_efficiency},
	};
	char *folder = folder_make();
	int failed = 0;

	for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++) {
		char *program = find_benchmark(folder, programs, benchmarks[i].name);

		if (program)
			failed |= benchmarks[i].compare(folder, program);
		else
			peers_skip(benchmarks[i].name, "no program of PEER_CA has it");
		free(program);
	}
	folder_remove(folder);
	return failed;
}
