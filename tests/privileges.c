/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/privileges.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

bool privileges_read(const char *path, struct privileges *p)
{
	struct {
		const char *name;
		uint64_t *value;
		int base;
	} lines[] = {
		{"CapInh:", &p->inheritable, 16}, {"CapPrm:", &p->permitted, 16},
		{"CapEff:", &p->effective, 16},	  {"CapBnd:", &p->bounding, 16},
		{"CapAmb:", &p->ambient, 16},	  {"NoNewPrivs:", &p->no_new_privs, 10},
		{"Seccomp:", &p->seccomp, 10},
	};
	enum { LINES = sizeof(lines) / sizeof(lines[0]) };
	FILE *file = fopen(path, "re");
	int found = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		for (int i = 0; i < LINES; i++) {
			size_t len = strlen(lines[i].name);

			if (strncmp(line, lines[i].name, len) != 0)
				continue;
			*lines[i].value = strtoull(line + len, NULL, lines[i].base);
			found++;
		}
	}
	if (file)
		fclose(file);
	return found == LINES;
}

static bool thread_confined(const char *path, uint64_t capabilities)
{
	struct privileges p;

	if (!privileges_read(path, &p)) {
		fprintf(stderr, "%s cannot be read\n", path);
		return false;
	}
	if (p.permitted == capabilities && p.effective == capabilities && !p.inheritable &&
	    !p.ambient && p.no_new_privs == 1 && p.seccomp == 2)
		return true;
	fprintf(stderr,
		"%s: permitted %" PRIx64 ", effective %" PRIx64 ", inheritable %" PRIx64
		", ambient %" PRIx64 ", no_new_privs %" PRIu64 ", seccomp %" PRIu64 "\n",
		path, p.permitted, p.effective, p.inheritable, p.ambient, p.no_new_privs,
		p.seccomp);
	return false;
}

bool privileges_confined(pid_t pid, uint64_t capabilities, int *threads)
{
	char *folder = mem_printf("/proc/%d/task", (int)pid);
	DIR *tasks = opendir(folder);
	struct dirent *task;
	bool confined = tasks != NULL;

	*threads = 0;
	while (confined && (task = readdir(tasks))) {
		char *path = mem_printf("%s/%s/status", folder, task->d_name);

		if (task->d_name[0] != '.') {
			confined = thread_confined(path, capabilities);
			++*threads;
		}
		free(path);
	}
	if (tasks)
		closedir(tasks);
	free(folder);
	return confined && *threads > 0;
}
