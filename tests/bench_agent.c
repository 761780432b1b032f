/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/process.h"

enum { START_TIMEOUT_MS = 20000 };

struct cgroup_fixture *bench_cgroups(const char *name, int count, struct error *error)
{
	struct cgroup_fixture *f = cgroup_fixture_new(name, error);
	char sub[16];

	for (int i = 0; f && i < count; i++) {
		snprintf(sub, sizeof(sub), "c%d", i);
		cgroup_fixture_make(f, cgroup_fixture_all(f), sub);
	}
	return f;
}

static bool log_has_tier(const char *log)
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

double bench_agent_start(struct stack *s, int aggregators, const char *cgroup_root,
			 const char *rate, const char *interval)
{
	char *log = mem_printf("%s/agent-0.log", s->folder),
	     *nobody = mem_printf("ipc://%s/nobody", s->folder);
	const char *options[] = {"--cgroup-root",
				 cgroup_root,
				 "--rate",
				 rate,
				 "--interval",
				 interval,
				 "--cpu-budget",
				 "100",
				 aggregators ? NULL : "--aggregator",
				 nobody,
				 NULL};
	int64_t begin;

	unlink(log);
	begin = clock_mono_ns();
	stack_start_agent(s, aggregators, options);
	while (!log_has_tier(log)) {
		if (clock_mono_ns() - begin > START_TIMEOUT_MS * NS_PER_MS) {
			fprintf(stderr, "the agent did not start\n");
			stack_free(s, 1);
			exit(1);
		}
		poll(NULL, 0, 1);
	}
	begin = clock_mono_ns() - begin;
	free(log);
	free(nobody);
	return (double)begin / NS_PER_MS;
}

double bench_cpu_percent(pid_t pid, int ms)
{
	double cpu = process_cpu(pid).ran_s;
	int64_t begin = clock_mono_ns();

	poll(NULL, 0, ms);
	cpu = process_cpu(pid).ran_s - cpu;
	return 100 * cpu / ((double)(clock_mono_ns() - begin) / NS_PER_SEC);
}

double bench_resident_mib(pid_t pid)
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
