/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the real agent costs a machine with 500 cgroups: its CPU as a share of one core at 10 and at 1 Hz, on all
 * hierarchies and on the unified tree alone, its memory, and its time from start to the first sample. It reports to nobody:
 * every interval goes into the ring.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/cgroup_fixture.h"
#include "tests/process.h"

enum { CGROUPS = 500, SETTLE_MS = 2000, ROUNDS = 3, ROUND_MS = 4000, START_TIMEOUT_MS = 20000 };

struct run {
	const char *what;
	const char *root; /* --cgroup-root */
	const char *rate;
	double budget; /* percent of one core */
};

/* CPU time of all its threads, from the scheduler. */
static double process_cpu_seconds(pid_t pid)
{
	char *folder = mem_printf("/proc/%d/task", (int)pid);
	DIR *tasks = opendir(folder);
	struct dirent *task;
	double sum = 0;

	while (tasks && (task = readdir(tasks))) {
		char *path = mem_printf("%s/%s/schedstat", folder, task->d_name);
		FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
		unsigned long long ran;

		if (file && fscanf(file, "%llu", &ran) == 1)
			sum += (double)ran / 1e9;
		if (file)
			fclose(file);
		free(path);
	}
	if (tasks)
		closedir(tasks);
	free(folder);
	return sum;
}

static double resident_mib(pid_t pid)
{
	char *path = mem_printf("/proc/%d/status", (int)pid), line[256];
	FILE *file = fopen(path, "r");
	double kib = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "VmRSS:", 6))
			kib = strtod(line + 6, NULL);
	}
	if (file)
		fclose(file);
	free(path);
	return kib / 1024;
}

static bool log_has_tier(void *log)
{
	char text[4096];
	int fd = open(log, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (got < 0)
		return false;
	text[got] = '\0';
	return strstr(text, ": tier ") != NULL;
}

/* Milliseconds until the agent says that it took its first sample, or -1. */
static double await_first_sample(const char *log)
{
	int64_t begin = clock_mono_ns();

	while (!log_has_tier((void *)log)) {
		if (clock_mono_ns() - begin > START_TIMEOUT_MS * NS_PER_MS)
			return -1;
		poll(NULL, 0, 1);
	}
	return (double)(clock_mono_ns() - begin) / NS_PER_MS;
}

static void measure(const struct run *r, const char *folder)
{
	char *program = mem_strdup(program_path("evenkeel-agent"));
	char *log = mem_printf("%s/%s.log", folder, r->rate),
	     *url = mem_printf("ipc://%s/none", folder);
	char *argv[] = {program,
			(char *)"--cgroup-root",
			(char *)r->root,
			(char *)"--rate",
			(char *)r->rate,
			(char *)"--aggregator",
			url,
			NULL};
	double shares[ROUNDS], start_ms, mib;
	char *label;
	pid_t pid;

	unlink(log);
	pid = process_start(log, argv);
	start_ms = await_first_sample(log);
	if (start_ms < 0) {
		fprintf(stderr, "the agent did not start; see %s\n", log);
		process_stop(pid, SIGKILL);
		exit(1);
	}
	mib = resident_mib(pid);
	poll(NULL, 0, SETTLE_MS);
	for (int i = 0; i < ROUNDS; i++) {
		double cpu = process_cpu_seconds(pid);
		int64_t begin = clock_mono_ns();

		poll(NULL, 0, ROUND_MS);
		cpu = process_cpu_seconds(pid) - cpu;
		shares[i] = 100 * cpu / ((double)(clock_mono_ns() - begin) / NS_PER_SEC);
	}
	process_stop(pid, SIGTERM);
	label = mem_printf("agent CPU, %d cgroups, %s, %s Hz", CGROUPS, r->what, r->rate);
	bench_row(label, "% of core", r->budget, 0, bench_median(shares, ROUNDS));
	free(label);
	label = mem_printf("agent resident memory at first sample, %s", r->what);
	bench_row(label, "MiB", 8, 0, mib);
	free(label);
	label = mem_printf("agent start to first sample, %s", r->what);
	bench_row(label, "ms", 250, 0, start_ms);
	free(label);
	free(program);
	free(log);
	free(url);
}

int main(void)
{
	static const struct run runs[] = {
		{"v1 hierarchies and v2 tree", "/sys/fs/cgroup", "10", 2},
		{"v1 hierarchies and v2 tree", "/sys/fs/cgroup", "1", 0.2},
		{"v2 tree alone", "/sys/fs/cgroup/unified", "10", 1},
		{"v2 tree alone", "/sys/fs/cgroup/unified", "1", 0.1},
	};
	struct reason why = {""};
	struct cgroup_fixture *f = cgroup_fixture_new("cost", &why);
	char *folder, sub[16];

	if (!f) {
		printf("SKIP: agent_cost: %s\n", why.text);
		return 0;
	}
	folder = folder_make();
	for (int i = 0; i < CGROUPS; i++) {
		snprintf(sub, sizeof(sub), "c%d", i);
		cgroup_fixture_make(f, cgroup_fixture_all(f), sub);
	}
	bench_begin("agent_cost");
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		if (access(runs[i].root, X_OK) == 0)
			measure(&runs[i], folder);
	}
	bench_end();
	folder_remove(folder);
	cgroup_fixture_free(f);
	return 0;
}
