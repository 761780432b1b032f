/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod that was deleted is nowhere to be asked for, but the last that kubelet told of it passes by a watch: it tells the
 * ends of its containers before the object goes. kubectl watches, into a file; the file is read anew for each question.
 */
#include "tests/node_ends.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

struct node_ends {
	char *path; /* events, one object after the other */
	pid_t kubectl;
};

struct node_ends *node_ends_new(struct node_bed *b, const char *namespace)
{
	struct node_ends *e = mem_zalloc(1, sizeof(*e));
	char *program = mem_printf("%s/kubectl", b->bin);
	const char *const argv[] = {program,	   "--kubeconfig", b->plane->admin,
				    "--namespace", namespace,	   "get",
				    "pods",	   "--watch",	   "--output-watch-events",
				    "--output",	   "json",	   NULL};

	e->path = mem_printf("%s/ends-of-%s", b->folder, namespace);
	e->kubectl = process_start(e->path, (char *const *)argv);
	free(program);
	return e;
}

void node_ends_free(struct node_ends *e)
{
	if (!e)
		return;
	process_stop(e->kubectl, SIGKILL);
	free(e->path);
	free(e);
}

static char *read_all(const char *path)
{
	struct buf text = BUF_INIT;
	FILE *file = fopen(path, "r");
	char chunk[4096];
	size_t len;

	while (file && (len = fread(chunk, 1, sizeof(chunk), file)) > 0)
		buf_add(&text, chunk, len);
	if (file)
		fclose(file);
	return buf_take(&text, NULL);
}

/* A deleted pod whose name begins so: 1, and whether its end was no success in *bad. */
static size_t judge(const cJSON *event, const char *prefix, size_t *bad)
{
	const char *type = cJSON_GetStringValue(json_at(event, "type")),
		   *name = cJSON_GetStringValue(json_at(event, "object.metadata.name"));
	const cJSON *end =
		json_at(cJSON_GetArrayItem(json_at(event, "object.status.containerStatuses"), 0),
			"state.terminated");

	if (!type || !name || strcmp(type, "DELETED") != 0 ||
	    strncmp(name, prefix, strlen(prefix)) != 0)
		return 0;
	if (!end || json_at(end, "exitCode")->valueint != 0) {
		char *text = end ? cJSON_PrintUnformatted(end) : mem_strdup("not known");

		fprintf(stderr, "the end of %s: %s\n", name, text);
		free(text);
		(*bad)++;
	}
	return 1;
}

size_t node_ends_count(const struct node_ends *e, const char *prefix, size_t *bad)
{
	char *text = read_all(e->path);
	const char *at = text;
	size_t count = 0;
	cJSON *event;

	*bad = 0;
	while ((event = cJSON_ParseWithOpts(at, &at, 0))) {
		count += judge(event, prefix, bad);
		cJSON_Delete(event);
	}
	free(text);
	return count;
}
