/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent serves no requests, so a probe cannot ask it. The kernel counts how often a thread goes
 * to wait, and the agent's loop waits after every tick, at least once a second. The probe, the same
 * program started in the agent's container, reads that count from /proc until it changes:
 *
 *	the loop runs				the count grows within a tick --> 0
 *	stuck in the kernel, stopped, spinning	the count stays --> failure
 *
 * An agent that cannot sample ends by itself. An agent whose aggregators do not answer, or do not
 * enrol it, is alive and keeps its intervals. It writes the reason to the status file, which it opens
 * before it gives up its rights, and the probe prints it. NULs pad the text to a constant length, so
 * that one write replaces the former text.
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
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/utf8.h"

#define PROC	"/proc"
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

	if (!read_of(proc, self, "comm", &name))
		return error_fail(error, -ENOENT, "%s tells nothing of processes: is it mounted?",
				  proc);
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
	return error_fail(
		error, count ? -ENOTUNIQ : -ENOENT,
		count ? "several agents run in the same control groups: which one is meant?"
		      : "no agent runs here");
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

/* --- the status file -------------------------------------------------------------------------- */

int liveness_open(const char *path, struct error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd >= 0)
		return fd;
	return error_system(error, -errno, "--status-file: cannot write %s", path);
}

void liveness_write(int fd, const struct error *status)
{
	char text[sizeof(status->text)] = "";

	snprintf(text, sizeof(text), "%s", status->text);
	/* Reasons come from aggregators, and go to terminals. */
	utf8_replace_controls(text, '?');
	if (lseek(fd, 0, SEEK_SET) || write(fd, text, sizeof(text)) < 0)
		log_warn("--status-file: cannot write: %s", strerror(errno));
}

int liveness_check(const char *path, struct error *status, struct error *error)
{
	int64_t until = clock_mono_ns() + WAIT_NS;
	const struct timespec look = {.tv_nsec = LOOK_NS};
	uint64_t before = 0, now;
	pid_t agent;
	int rc = liveness_find(PROC, getpid(), &agent, error);

	if (!rc)
		rc = liveness_count_waits(PROC, agent, &before, error);
	for (now = before; !rc && now == before; nanosleep(&look, NULL)) {
		if (clock_mono_ns() > until)
			return error_fail(
				error, -ETIMEDOUT,
				"the agent, process %d, has not come to the end of a tick for %d s",
				(int)agent, (int)(WAIT_NS / NS_PER_SEC));
		rc = liveness_count_waits(PROC, agent, &now, error);
	}
	if (!rc) {
		struct buf text = BUF_INIT;

		status->text[0] = '\0';
		if (path && !file_read(path, PROC_FILE_MAX, &text, status))
			error_set(status, "%s", text.data);
		buf_fini(&text);
	}
	return rc;
}
