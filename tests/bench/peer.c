/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent beside what people run today on the same cgroups: netdata, whose cgroups plugin reads
 * the files of every cgroup once a second, its finest period. One after the other each watches 500
 * cgroups, at its own finest period, on the v1 hierarchies and on the unified tree; everything else
 * that netdata could do is switched off. One cgroup holds a load of 200 ms in every second: a
 * period of 1 s cannot know that it varies. Truth is the kernel's file, read every 100 ms.
 *
 * It runs from where packaging/peer unpacked it, on a loopback port, with all its files in a folder
 * of the bench. The node_exporter of the same Debian counts cgroups but tells nothing of any, so
 * there is nothing to compare.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/moments.h"
#include "tests/bench_agent.h"
#include "tests/bench_report.h"
#include "tests/process.h"

enum { CGROUPS = 500, MEASURE_MS = 10000, SETTLE_MS = 2000, PEER_TIMEOUT_S = 60, LOAD_MILLI = 200 };

static const char *const peer_programs[] = {"/usr/sbin/netdata",
					    "build/bench/peer/usr/sbin/netdata"};

/* What one of the two was measured to do. */
struct side {
	double percent; /* of a core */
	double mib;
	double period_ms; /* between the points it really has */
	double sigma_milli; /* of the load's CPU; NaN where it has none */
	double true_sigma_milli; /* the same from the kernel's file, every 100 ms */
};

struct mode {
	const char *what;
	const char *root; /* the agent's --cgroup-root */
	const char *unified; /* netdata's "use unified cgroups" */
	const char *counted; /* the last part of the name of a chart that each cgroup has */
};

/* --- the load --------------------------------------------------------------------------------- */

static void spin_and_sleep(void)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		int64_t until = clock_mono_ns() + LOAD_MILLI * NS_PER_MS;

		while (clock_mono_ns() < until)
			;
		next.tv_sec++;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

static pid_t start_load(struct cgroup_fixture *f, const char *sub)
{
	pid_t pid = fork();
	char text[16];

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		spin_and_sleep();
	}
	snprintf(text, sizeof(text), "%d", (int)pid);
	for (int h = 0; h < HIERARCHIES; h++)
		if (cgroup_fixture_all(f) & 1U << h)
			cgroup_fixture_write(f, h, sub, "cgroup.procs", text);
	return pid;
}

static double load_cpu_milliseconds(const struct cgroup_fixture *f)
{
	int from = cgroup_fixture_fs(f)->cpu_from;
	bool v1 = from == HIERARCHY_CPUACCT;
	unsigned long long used = 0;
	char text[1024];

	if (!cgroup_fixture_read(f, from, "load", v1 ? "cpuacct.usage" : "cpu.stat", text,
				 sizeof(text)) ||
	    sscanf(text, v1 ? "%llu" : "usage_usec %llu", &used) != 1) {
		fprintf(stderr, "cannot read the CPU time of the load\n");
		exit(1);
	}
	return (double)used / (v1 ? 1e6 : 1e3);
}

/* Fills percent and true_sigma_milli. */
static void measure_cpu(struct side *side, pid_t pid, const struct cgroup_fixture *f)
{
	double cpu = process_cpu(pid).ran_s, load = load_cpu_milliseconds(f);
	int64_t begin = clock_mono_ns(), last = begin;
	struct moments milli = {0};

	while (last < begin + MEASURE_MS * NS_PER_MS) {
		double load_now;
		int64_t now;

		poll(NULL, 0, 100 - (int)((last - begin) / NS_PER_MS % 100));
		load_now = load_cpu_milliseconds(f);
		now = clock_mono_ns();
		moments_add(&milli, 1e9 * (load_now - load) / (double)(now - last),
			    (double)(now - last) / NS_PER_SEC);
		load = load_now;
		last = now;
	}
	side->percent =
		100 * (process_cpu(pid).ran_s - cpu) / ((double)(last - begin) / NS_PER_SEC);
	side->true_sigma_milli = moments_stddev(&milli);
}

/* --- netdata ---------------------------------------------------------------------------------- */

struct peer {
	char *folder; /* owned */
	const char *program; /* borrowed */
	int port;
	pid_t pid;
};

static const char configuration[] =
	"[global]\n"
	"	run as user = root\n"
	"[db]\n"
	"	mode = ram\n"
	"	update every = 1\n"
	"	retention = 600\n"
	/* Charts of cgroups that do nothing, as it has them of those that do. */
	"	enable zero metrics = yes\n"
	"[directories]\n"
	"	config = %1$s/etc\n"
	"	stock config = %1$s/etc\n"
	"	log = %1$s/log\n"
	"	cache = %1$s/cache\n"
	"	lib = %1$s/lib\n"
	"	home = %1$s\n"
	"	web = %1$s/web\n"
	"	plugins = %1$s/plugins\n"
	"	registry = %1$s/lib\n"
	"[web]\n"
	"	bind to = 127.0.0.1:%2$d\n"
	"[ml]\n"
	"	enabled = no\n"
	"[health]\n"
	"	enabled = no\n"
	"[registry]\n"
	"	enabled = no\n"
	"[plugins]\n"
	"	cgroups = yes\n"
	"	proc = no\n"
	"	diskspace = no\n"
	"	timex = no\n"
	"	tc = no\n"
	"	idlejitter = no\n"
	"	statsd = no\n"
	"	slabinfo = no\n"
	"	profile = no\n"
	"	netdata monitoring = no\n"
	"	netdata monitoring extended = no\n"
	"	enable running new plugins = no\n"
	"[plugin:cgroups]\n"
	"	use unified cgroups = %3$s\n"
	"	enable memory = yes\n"
	"	enable cpuacct stat (total CPU) = yes\n"
	"	enable systemd services = no\n"
	"	enable by default cgroups matching = *\n"
	"	enable by default cgroups names matching = *\n"
	"	search for cgroups in subpaths matching = *\n"
	"	run script to rename cgroups matching = !*\n"
	"	max cgroups to allow = 2000\n";

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file)) {
		perror(path);
		exit(1);
	}
}

static void make_folders(const struct peer *p)
{
	static const char *const folders[] = {"etc", "log",	"cache",      "lib",
					      "web", "plugins", "lib/cloud.d"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char *path = mem_printf("%s/%s", p->folder, folders[i]);

		mkdir(path, 0700);
		free(path);
	}
}

static void write_configuration(const struct peer *p, const struct mode *m)
{
	static const char *const quiet[][2] = {
		{"lib/cloud.d/cloud.conf", "[global]\n\tenabled = no\n"},
		{"etc/.opt-out-from-anonymous-statistics", ""},
	};
	char *path = mem_printf("%s/netdata.conf", p->folder), *text;

	make_folders(p);
	text = mem_printf(configuration, p->folder, p->port, m->unified);
	write_file(path, text);
	free(text);
	free(path);
	for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++) {
		path = mem_printf("%s/%s", p->folder, quiet[i][0]);
		write_file(path, quiet[i][1]);
		free(path);
	}
}

static cJSON *ask_peer(const struct peer *p, const char *path)
{
	char *url = mem_printf("http://127.0.0.1:%d/api/v1/%s", p->port, path);
	cJSON *json = http_get_json(url);

	free(url);
	return json;
}

/* "cgroup_PATH" with the slashes of the path replaced, as it names charts. Free it. */
static char *chart_prefix(const struct cgroup_fixture *f, const char *sub)
{
	char *name = mem_printf("cgroup_%s", cgroup_fixture_path(f, sub) + 1);

	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '_';
	return name;
}

static int count_charts(const struct peer *p, const struct cgroup_fixture *f, const char *last)
{
	cJSON *json = ask_peer(p, "charts");
	char *prefix = chart_prefix(f, "c");
	const cJSON *chart;
	int count = 0;

	cJSON_ArrayForEach (chart, json_at(json, "charts")) {
		const char *dot = strrchr(chart->string, '.');

		count += !strncmp(chart->string, prefix, strlen(prefix)) && dot &&
			 !strcmp(dot + 1, last);
	}
	free(prefix);
	cJSON_Delete(json);
	return count;
}

static void start_peer(struct peer *p, const struct cgroup_fixture *f, const struct mode *m)
{
	char *config = mem_printf("%s/netdata.conf", p->folder), *log;
	int64_t until = clock_mono_ns() + PEER_TIMEOUT_S * NS_PER_SEC;

	log = mem_printf("%s/output", p->folder);
	p->port = free_port();
	write_configuration(p, m);
	{
		char *argv[] = {(char *)p->program, (char *)"-D", (char *)"-c", config, NULL};

		p->pid = process_start(log, argv);
	}
	while (count_charts(p, f, m->counted) < CGROUPS) {
		if (clock_mono_ns() > until) {
			fprintf(stderr, "netdata does not show %d cgroups\n", CGROUPS);
			process_stop(p->pid, SIGTERM);
			exit(1);
		}
		poll(NULL, 0, 500);
	}
	free(config);
	free(log);
}

/* Milliseconds between the points of a chart in the last seconds; what is null it does not have. */
static double peer_period_ms(const struct peer *p, const struct cgroup_fixture *f, const char *last)
{
	char *prefix = chart_prefix(f, "c7");
	char *path = mem_printf("data?chart=%s.%s&after=-%d&format=json", prefix, last,
				MEASURE_MS / 1000);
	cJSON *json = ask_peer(p, path);
	double first = NAN, newest = NAN;
	const cJSON *row;
	int points = 0;

	cJSON_ArrayForEach (row, json_at(json, "data")) {
		double at = cJSON_GetNumberValue(cJSON_GetArrayItem(row, 0));

		if (!cJSON_IsNumber(cJSON_GetArrayItem(row, 1)))
			continue;
		first = fmin(first, at);
		newest = fmax(newest, at);
		points++;
	}
	cJSON_Delete(json);
	free(path);
	free(prefix);
	return points > 1 ? 1000 * (newest - first) / (points - 1) : NAN;
}

/* Its own arithmetic over the points it has: percent of a core. */
static double peer_sigma_milli(const struct peer *p, const struct cgroup_fixture *f)
{
	char *prefix = chart_prefix(f, "load");
	char *path = mem_printf("data?chart=%s.cpu&dimensions=user&after=-%d&points=1&group=stddev"
				"&format=json",
				prefix, MEASURE_MS / 1000);
	cJSON *json = ask_peer(p, path);
	const cJSON *row = cJSON_GetArrayItem(json_at(json, "data"), 0);
	const cJSON *value = cJSON_GetArrayItem(row, 1);
	double milli = cJSON_IsNumber(value) ? 10 * value->valuedouble : NAN;

	cJSON_Delete(json);
	free(path);
	free(prefix);
	return milli;
}

static void print_charts(const struct peer *p, const struct cgroup_fixture *f)
{
	char *prefix = chart_prefix(f, "load");
	cJSON *json = ask_peer(p, "charts");
	const cJSON *chart;

	printf("netdata tells of a cgroup:");
	cJSON_ArrayForEach (chart, json_at(json, "charts")) {
		size_t len = strlen(prefix);

		if (!strncmp(chart->string, prefix, len) && chart->string[len] == '.')
			printf(" %s", chart->string + len + 1);
	}
	printf("\n");
	cJSON_Delete(json);
	free(prefix);
}

static struct side measure_peer(const char *program, const struct cgroup_fixture *f,
				const struct mode *m)
{
	struct peer p = {.program = program, .folder = folder_make()};
	struct side side;

	start_peer(&p, f, m);
	measure_cpu(&side, p.pid, f);
	side.mib = bench_resident_mib(p.pid);
	side.period_ms = peer_period_ms(&p, f, m->counted);
	side.sigma_milli = peer_sigma_milli(&p, f);
	print_charts(&p, f);
	process_stop(p.pid, SIGTERM);
	folder_remove(p.folder);
	return side;
}

/* --- the agent -------------------------------------------------------------------------------- */

/*
 * The names of all members that have a value, joined by dots; of the windows, which are alike, only
 * one.
 */
static void print_members(const cJSON *json, const char *prefix)
{
	const cJSON *member;

	cJSON_ArrayForEach (member, json) {
		char *name = mem_printf("%s%s%s", prefix, *prefix ? "." : "", member->string);

		if (cJSON_IsObject(member))
			print_members(member, name);
		else if (cJSON_IsNumber(member) && !strstr(name, ".10m.") && !strstr(name, ".15m."))
			printf(" %s", name);
		free(name);
	}
}

static double number(const cJSON *json, const char *path)
{
	const cJSON *value = json_at(json, path);

	return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static void print_agent_members(const cJSON *load)
{
	static const char *const parts[] = {"usage", "kernelLimits", "contention"};

	printf("evenkeel tells of a cgroup:");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		print_members(json_at(load, parts[i]), parts[i]);
	printf("\n");
}

static struct side measure_agent(const struct cgroup_fixture *f, const struct mode *m)
{
	struct stack *s = stack_new();
	cJSON *pods, *node;
	const cJSON *load;
	struct side side;

	stack_start_aggregator(s, 0);
	bench_agent_start(s, 1, m->root, "10", "5s");
	poll(NULL, 0, SETTLE_MS);
	measure_cpu(&side, s->agent, f);
	side.mib = bench_resident_mib(s->agent);
	node = stack_get(s, 0, "/v1/nodes/test-node");
	side.period_ms = 1000 / number(node, "source.rateHz");
	pods = stack_get(s, 0, "/v1/pods?limit=5000");
	load = json_item(pods, cgroup_fixture_path(f, "load") + 1);
	side.sigma_milli = number(load, "usage.cpuMillicores.windows.5m.stddev");
	print_agent_members(load);
	cJSON_Delete(node);
	cJSON_Delete(pods);
	stack_free(s, 0);
	return side;
}

/* --- side by side ----------------------------------------------------------------------------- */

static void row(const char *what, const struct mode *m, const char *unit, double measured)
{
	char *label = mem_printf("%s, %s", what, m->what);

	bench_row(label, unit, NAN, 0, measured);
	free(label);
}

/* CPU time for one sample of one cgroup. */
static double sample_us(const struct side *s)
{
	return s->percent / 100 * s->period_ms * 1000 / CGROUPS;
}

static void compare(const char *program, const struct cgroup_fixture *f, const struct mode *m)
{
	struct side peer = measure_peer(program, f, m), agent = measure_agent(f, m);

	row("netdata's finest period", m, "ms", peer.period_ms);
	row("evenkeel's finest period", m, "ms", agent.period_ms);
	row("netdata CPU at its finest", m, "% of core", peer.percent);
	row("evenkeel CPU at its finest", m, "% of core", agent.percent);
	row("netdata / evenkeel CPU", m, "x", peer.percent / agent.percent);
	row("netdata / evenkeel CPU for one sample", m, "x", sample_us(&peer) / sample_us(&agent));
	row("netdata resident memory", m, "MiB", peer.mib);
	row("evenkeel resident memory", m, "MiB", agent.mib);
	row("netdata's sigma of the load", m, "of truth", peer.sigma_milli / peer.true_sigma_milli);
	row("evenkeel's sigma of the load", m, "of truth",
	    agent.sigma_milli / agent.true_sigma_milli);
}

static const char *find_peer(void)
{
	for (size_t i = 0; i < sizeof(peer_programs) / sizeof(peer_programs[0]); i++)
		if (access(peer_programs[i], X_OK) == 0)
			return peer_programs[i];
	return NULL;
}

int main(void)
{
	static const struct mode modes[] = {
		{"v1", "/sys/fs/cgroup", "no", "mem_usage"},
		{"v2 tree", "/sys/fs/cgroup/unified", "yes", "throttled_duration"},
	};
	struct error error = {"netdata is not installed; make bench fetches it"};
	const char *program = find_peer();
	struct cgroup_fixture *f = program ? bench_cgroups("peer", CGROUPS, &error) : NULL;
	pid_t load;

	if (!f || sodium_init() < 0) {
		printf("SKIP: peer: %s\n", error.text);
		return 0;
	}
	cgroup_fixture_make(f, cgroup_fixture_all(f), "load");
	load = start_load(f, "load");
	bench_begin("peer");
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (access(modes[i].root, X_OK) == 0)
			compare(program, f, &modes[i]);
	bench_end();
	process_stop(load, SIGKILL);
	cgroup_fixture_free(f);
	return 0;
}
