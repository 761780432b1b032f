/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent serves no requests and writes no file, so a probe cannot ask it. The kernel counts how
 * often a thread goes to wait, and the agent's loop waits after every tick, at least once a second.
 * The probe, the same program started in the agent's container, reads that count from /proc until
 * it changes:
 *
 *	the loop runs				the count grows within a tick --> 0
 *	stuck in the kernel, stopped, spinning	the count stays --> failure
 *
 * An agent that cannot sample ends by itself; one that cannot reach its aggregators, or that these do
 * not enrol, is alive and keeps its intervals. It tells so in the memory of its arguments, where the
 * probe can read it.
 *
 * The probed process is process 1 of the container. With the host's processes in sight (hostPID) it
 * is the process of the same name in the probe's own cgroups.
 *
 * What can fail: no agent runs; two run in the same cgroups; /proc hides other processes (hidepid).
 */
#include "agent/liveness.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"

#define PROC	"/proc"
#define NOTE	"evenkeel-agent: "
#define WAIT_NS (5 * NS_PER_SEC)
#define LOOK_NS (50 * NS_PER_MS)

enum { PROC_FILE_MAX = 64 * 1024 };

/* Reads a file of a process; false: no such process. */
static bool read_of(const char *proc, pid_t pid, const char *name, struct buf *text)
{
	char *path = mem_printf("%s/%d/%s", proc, (int)pid, name);
	struct error ignored;
	bool read;

	buf_clear(text);
	read = !file_read(path, PROC_FILE_MAX, text, &ignored);
	free(path);
	return read;
}

static bool same_of(const char *proc, pid_t pid, const char *name, const struct buf *own)
{
	struct buf text = BUF_INIT;
	bool same = read_of(proc, pid, name, &text) && text.len == own->len &&
		    !memcmp(text.data, own->data, own->len);

	buf_fini(&text);
	return same;
}

/* 0: not the name of a process. */
static pid_t pid_of(const char *name)
{
	char *end;
	long pid = strtol(name, &end, 10);

	return isdigit((unsigned char)*name) && !*end && pid <= INT_MAX ? (pid_t)pid : 0;
}

/* The number of agents beside `self` in its cgroups; *found is the last. */
static size_t find_beside(const char *proc, pid_t self, const struct buf *name, pid_t *found)
{
	struct buf groups = BUF_INIT;
	DIR *processes = opendir(proc);
	struct dirent *entry;
	size_t count = 0;

	if (!read_of(proc, self, "cgroup", &groups))
		buf_clear(&groups);
	while (processes && (entry = readdir(processes))) {
		pid_t pid = pid_of(entry->d_name);

		if (!pid || pid == self || !same_of(proc, pid, "comm", name) ||
		    !same_of(proc, pid, "cgroup", &groups))
			continue;
		*found = pid;
		count++;
	}
	if (processes)
		closedir(processes);
	buf_fini(&groups);
	return count;
}

int liveness_find(const char *proc, pid_t self, pid_t *found, struct error *error)
{
	struct buf name = BUF_INIT;
	pid_t other = 0;
	size_t count;

	if (!read_of(proc, self, "comm", &name)) {
		error_set(error, "%s tells nothing of processes: is it mounted?", proc);
		return -ENOENT;
	}
	if (self != 1 && same_of(proc, 1, "comm", &name)) {
		other = 1;
		count = 1;
	} else {
		count = find_beside(proc, self, &name, &other);
	}
	buf_fini(&name);
	if (count == 1) {
		*found = other;
		return 0;
	}
	error_set(error,
		  count ? "several agents run in the same control groups: which one is meant?"
			: "no agent runs here");
	return count ? -ENOTUNIQ : -ENOENT;
}

int liveness_count_waits(const char *proc, pid_t pid, uint64_t *waits, struct error *error)
{
	static const char label[] = "\nvoluntary_ctxt_switches:";
	struct buf text = BUF_INIT;
	const char *at = NULL;
	int rc = 0;

	if (read_of(proc, pid, "status", &text))
		at = strstr(text.data, label);
	if (!at) {
		rc = text.len ? -EINVAL : -ENOENT;
		error_set(error,
			  text.len ? "the kernel does not count the waits of process %d"
				   : "the agent, process %d, has ended",
			  (int)pid);
	} else {
		*waits = strtoull(at + sizeof(label) - 1, NULL, 10);
	}
	buf_fini(&text);
	return rc;
}

/* --- what the agent tells --------------------------------------------------------------------- */

/* The memory of the arguments, which /proc/PID/cmdline shows. */
static struct {
	char *text; /* borrowed; NULL: not open */
	char *arguments; /* owned: a copy, for the life of the process */
	size_t size;
} shown;

void liveness_open(int argc, char **argv)
{
	shown.text = argv[0];
	shown.size = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
	shown.arguments = mem_alloc(shown.size);
	memcpy(shown.arguments, shown.text, shown.size);
}

void liveness_tell(const char *note)
{
	if (!shown.text)
		return;
	memset(shown.text, 0, shown.size);
	if (note)
		snprintf(shown.text, shown.size, NOTE "%s", note);
	else
		memcpy(shown.text, shown.arguments, shown.size);
	/* Reasons come from aggregators, and go to terminals. */
	for (char *c = shown.text; note && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

static void read_note(pid_t agent, struct error *note)
{
	struct buf text = BUF_INIT;

	note->text[0] = '\0';
	if (read_of(PROC, agent, "cmdline", &text) && !strncmp(text.data, NOTE, strlen(NOTE)))
		error_set(note, "%s", text.data + strlen(NOTE));
	buf_fini(&text);
}

int liveness_check(struct error *note, struct error *error)
{
	int64_t until = clock_mono_ns() + WAIT_NS;
	const struct timespec look = {.tv_nsec = LOOK_NS};
	uint64_t before = 0, now;
	pid_t agent;
	int rc = liveness_find(PROC, getpid(), &agent, error);

	if (!rc)
		rc = liveness_count_waits(PROC, agent, &before, error);
	for (now = before; !rc && now == before; nanosleep(&look, NULL)) {
		if (clock_mono_ns() > until) {
			error_set(error,
				  "the agent, process %d, has not come to the end of a tick for "
				  "%d s",
				  (int)agent, (int)(WAIT_NS / NS_PER_SEC));
			return -ETIMEDOUT;
		}
		rc = liveness_count_waits(PROC, agent, &now, error);
	}
	if (!rc)
		read_note(agent, note);
	return rc;
}
