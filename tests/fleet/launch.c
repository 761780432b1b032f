/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fleet/launch.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/mem.h"
#include "tests/process.h"

enum { ARGS_MAX = 64 };

static char *file_in(const struct stack *s, const char *name)
{
	return mem_printf("%s/%s", s->folder, name);
}

static char *program_of_fleet(void)
{
	const char *folder = getenv("TB");

	return mem_printf("%s/fleet", folder ? folder : "build/tests");
}

void fleet_dump(const char *path, int64_t nodes, int64_t pods_per_node)
{
	char *program = program_of_fleet(), *count = mem_printf("%lld", (long long)nodes),
	     *pods = mem_printf("%lld", (long long)pods_per_node);
	char *argv[] = {program, (char *)"--nodes", count,	  (char *)"--pods-per-node",
			pods,	 (char *)"--dump",  (char *)path, NULL};

	if (process_run(argv, NULL, NULL)) {
		fprintf(stderr, "the objects of a cluster cannot be written\n");
		abort();
	}
	free(program);
	free(count);
	free(pods);
}

pid_t fleet_start(const struct stack *s, const char *const *more)
{
	char *program = program_of_fleet();
	char *url = mem_printf("tcp://127.0.0.1:%d", s->aggregators[0].ingest_port);
	char *report = file_in(s, "fleet.json"), *log = file_in(s, "fleet.log");
	char *argv[ARGS_MAX] = {program,     (char *)"--aggregator", url,   (char *)"--key-file",
				s->key_path, (char *)"--report",     report};
	size_t n = 7;
	pid_t pid;

	for (; *more; more++) {
		assert(n < ARGS_MAX - 1);
		argv[n++] = (char *)*more;
	}
	pid = process_start(log, argv);
	if (pid <= 0) {
		fprintf(stderr, "the fleet does not start\n");
		abort();
	}
	free(program);
	free(url);
	free(report);
	free(log);
	return pid;
}

static void read_file(const char *path, struct buf *text)
{
	FILE *file = fopen(path, "re");
	char chunk[4096];
	size_t got;

	while (file && (got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		buf_add(text, chunk, got);
	if (file)
		fclose(file);
}

void fleet_begin_phase(pid_t fleet)
{
	kill(fleet, FLEET_NEXT_PHASE);
}

cJSON *fleet_stop(const struct stack *s, pid_t fleet)
{
	char *path = file_in(s, "fleet.json");
	struct buf text = BUF_INIT;
	cJSON *report = NULL;

	if (process_stop(fleet, SIGTERM) == 0)
		read_file(path, &text);
	if (text.data)
		report = cJSON_Parse(text.data);
	buf_fini(&text);
	free(path);
	return report;
}

void fleet_print_log(const struct stack *s)
{
	char *path = file_in(s, "fleet.log");
	struct buf text = BUF_INIT;

	read_file(path, &text);
	if (text.data)
		fputs(text.data, stderr);
	buf_fini(&text);
	free(path);
}
