/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod that was deleted is nowhere to be asked for, and kubelet does not always tell its last
 * state before the object goes. containerd tells every end as an event. ctr writes them to a file,
 * a line each, which is read anew for each question:
 *
 *     TIME NAMESPACE /containers/create {"id":"ID","image":"localhost/evenkeel-agent:0.1.0",..}
 *     TIME NAMESPACE /tasks/exit {"container_id":"ID","id":"ID","exit_status":137,..}     0 is left out
 *
 * The ends of programs that were started in a container later, as probes are, have ids of their
 * own.
 */
#include "tests/node_ends.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { CONTAINERS_MAX = 256, ID_LEN = 64 };

struct node_ends {
	char *path; /* of the events */
	pid_t ctr;
};

/* The containers of one image, while events are read. */
struct containers {
	size_t count;
	char ids[CONTAINERS_MAX][ID_LEN + 1];
};

struct node_ends *node_ends_new(struct node_bed *b)
{
	struct node_ends *e = mem_zalloc(1, sizeof(*e));
	char *program = mem_printf("%s/../containerd/ctr", b->bin),
	     *address = mem_printf("%s/containerd.sock", b->folder);
	char *const argv[] = {program, (char *)"--address", address, (char *)"events", NULL};

	e->path = mem_printf("%s/events", b->folder);
	e->ctr = process_start(e->path, argv);
	free(program);
	free(address);
	return e;
}

void node_ends_free(struct node_ends *e)
{
	if (!e)
		return;
	process_stop(e->ctr, SIGKILL);
	free(e->path);
	free(e);
}

/* What an event of that topic says; NULL when the line is another. The caller deletes it. */
static cJSON *parse(const char *line, const char *topic)
{
	const char *at = strstr(line, topic);

	return at ? cJSON_Parse(at + strlen(topic)) : NULL;
}

static void note_container(struct containers *all, const char *line, const char *image)
{
	cJSON *event = parse(line, " /containers/create ");
	const char *id = cJSON_GetStringValue(json_at(event, "id")),
		   *of = cJSON_GetStringValue(json_at(event, "image"));

	if (id && of && strncmp(of, image, strlen(image)) == 0 && all->count < CONTAINERS_MAX)
		snprintf(all->ids[all->count++], ID_LEN + 1, "%s", id);
	cJSON_Delete(event);
}

static bool is_noted(const struct containers *all, const char *id)
{
	for (size_t i = 0; i < all->count; i++) {
		if (strcmp(all->ids[i], id) == 0)
			return true;
	}
	return false;
}

/* 1 for the end of a container that was noted. */
static size_t judge_end(const struct containers *all, const char *line, size_t *bad)
{
	cJSON *event = parse(line, " /tasks/exit ");
	const char *container = cJSON_GetStringValue(json_at(event, "container_id")),
		   *id = cJSON_GetStringValue(json_at(event, "id"));
	bool ended = container && id && strcmp(container, id) == 0 && is_noted(all, id);
	const cJSON *status = json_at(event, "exit_status");

	if (ended && cJSON_IsNumber(status) && status->valueint != 0) {
		fprintf(stderr, "a bad end: %s", line);
		(*bad)++;
	}
	cJSON_Delete(event);
	return ended;
}

size_t node_ends_count(const struct node_ends *e, const char *image, size_t *bad)
{
	struct containers *all = mem_zalloc(1, sizeof(*all));
	FILE *events = fopen(e->path, "r");
	size_t count = 0, room = 0;
	char *line = NULL;

	*bad = 0;
	while (events && getline(&line, &room, events) >= 0) {
		note_container(all, line, image);
		count += judge_end(all, line, bad);
	}
	if (events)
		fclose(events);
	free(line);
	free(all);
	return count;
}
