/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/stack.h"

#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/process.h"

enum { ARGS_MAX = 24, READY_S = 120 /* a snapshot of 20,000 nodes takes over 20 */ };

static void fatal(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

struct stack *stack_new(void)
{
	struct stack *s = mem_zalloc(1, sizeof(*s));
	unsigned char key[KEY_LEN];
	int fd;

	s->folder = folder_make();
	s->key_path = mem_printf("%s/key", s->folder);
	randombytes_buf(key, sizeof(key));
	fd = open(s->key_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, key, sizeof(key)) != sizeof(key))
		fatal("cannot write the key");
	close(fd);
	return s;
}

static char *log_path(const struct stack *s, const char *name, int i)
{
	return mem_printf("%s/%s-%d.log", s->folder, name, i);
}

static void print_log(const struct stack *s, const char *name, int i)
{
	char *path = log_path(s, name, i), line[512];
	FILE *log = fopen(path, "r");

	while (log && fgets(line, sizeof(line), log))
		fprintf(stderr, "    %s %d: %s", name, i, line);
	if (log)
		fclose(log);
	free(path);
}

void stack_print_logs(const struct stack *s)
{
	for (int i = 0; i < STACK_AGGREGATORS_MAX; i++)
		print_log(s, "aggregator", i);
	print_log(s, "agent", 0);
}

void stack_free(struct stack *s, int failed)
{
	if (s->agent)
		process_stop(s->agent, SIGKILL);
	for (int i = 0; i < STACK_AGGREGATORS_MAX; i++)
		if (s->aggregators[i].pid)
			process_stop(s->aggregators[i].pid, SIGKILL);
	if (failed)
		stack_print_logs(s);
	free(s->key_path);
	folder_remove(s->folder);
	free(s);
}

static bool is_ready(void *url)
{
	struct buf body = BUF_INIT;
	long status = http_get(url, &body);

	buf_fini(&body);
	return status == 200;
}

static char *url_of(const struct stack_aggregator *a, const char *path)
{
	return mem_printf("%s://127.0.0.1:%d%s", a->tls ? "https" : "http", a->http_port, path);
}

void stack_launch_aggregator(struct stack *s, int i)
{
	struct stack_aggregator *a = &s->aggregators[i];
	char *program = mem_strdup(program_path("evenkeel-aggregator")), *log, *listen, *ingest,
	     *key_path;

	if (!a->http_port)
		a->http_port = free_port();
	if (!a->ingest_port)
		a->ingest_port = free_port();
	log = log_path(s, "aggregator", i);
	listen = mem_printf("127.0.0.1:%d", a->http_port);
	ingest = mem_printf("tcp://%s:%d", a->ingest_host ? a->ingest_host : "127.0.0.1",
			    a->ingest_port);
	key_path = mem_strdup(a->key_path ? a->key_path : s->key_path);
	{
		char *argv[ARGS_MAX] = {program, (char *)"--listen",   listen,	(char *)"--ingest",
					ingest,	 (char *)"--key-file", key_path};
		size_t n = 7;

		if (a->snapshot_path) {
			argv[n++] = (char *)"--snapshot";
			argv[n++] = (char *)a->snapshot_path;
		}
		for (const char *const *more = a->more; more && *more && n < ARGS_MAX - 1; more++)
			argv[n++] = (char *)*more;
		a->pid = process_start(log, argv);
	}
	free(program);
	free(log);
	free(listen);
	free(ingest);
	free(key_path);
}

void stack_start_aggregator(struct stack *s, int i)
{
	char *url;

	stack_launch_aggregator(s, i);
	url = url_of(&s->aggregators[i], "/readyz");
	if (s->aggregators[i].pid <= 0 || !await(is_ready, url, READY_S)) {
		print_log(s, "aggregator", i);
		fatal("the aggregator does not become ready");
	}
	free(url);
}

void stack_kill_aggregator(struct stack *s, int i)
{
	process_stop(s->aggregators[i].pid, SIGKILL);
	s->aggregators[i].pid = 0;
}

void stack_start_agent(struct stack *s, int aggregators, const char *const *more)
{
	char *argv[ARGS_MAX] = {NULL}, *urls[STACK_AGGREGATORS_MAX] = {NULL};
	char *program = mem_strdup(program_path("evenkeel-agent")), *log = log_path(s, "agent", 0);
	size_t n = 0;

	argv[n++] = program;
	argv[n++] = (char *)"--node-name";
	argv[n++] = (char *)"test-node";
	if (!s->agent_enrols) {
		argv[n++] = (char *)"--key-file";
		argv[n++] = s->key_path;
	}
	for (int i = 0; i < aggregators; i++) {
		urls[i] = mem_printf("tcp://127.0.0.1:%d", s->aggregators[i].ingest_port);
		argv[n++] = (char *)"--aggregator";
		argv[n++] = urls[i];
	}
	for (; more && *more && n < ARGS_MAX - 1; more++)
		argv[n++] = (char *)*more;
	s->agent = process_start(log, argv);
	if (s->agent <= 0)
		fatal("the agent does not start");
	for (int i = 0; i < aggregators; i++)
		free(urls[i]);
	free(program);
	free(log);
}

int stack_stop_agent(struct stack *s, int signal_number)
{
	int status = process_stop(s->agent, signal_number);

	s->agent = 0;
	return status;
}

cJSON *stack_get(const struct stack *s, int i, const char *path)
{
	char *url = url_of(&s->aggregators[i], path);
	cJSON *json = http_get_json(url);

	free(url);
	return json;
}

double stack_metric(const struct stack *s, int i, const char *sample)
{
	char *url = url_of(&s->aggregators[i], "/metrics");
	struct buf body = BUF_INIT;
	size_t len = strlen(sample);
	double value = -1;

	if (http_get(url, &body) == 200 && body.data) {
		for (const char *line = body.data; line; line = strchr(line, '\n')) {
			line += *line == '\n';
			if (!strncmp(line, sample, len) && line[len] == ' ')
				value = strtod(line + len, NULL);
		}
	}
	free(url);
	buf_fini(&body);
	return value;
}

const cJSON *json_at(const cJSON *json, const char *path)
{
	char *copy = mem_strdup(path), *part = copy, *next;

	for (; json && part; part = next) {
		next = strchr(part, '.');
		if (next)
			*next++ = '\0';
		json = cJSON_GetObjectItemCaseSensitive(json, part);
	}
	free(copy);
	return json;
}

const cJSON *json_item(const cJSON *list, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, json_at(list, "items")) {
		const char *is = cJSON_GetStringValue(json_at(item, "name"));

		if (is && !strcmp(is, name))
			return item;
	}
	return NULL;
}
