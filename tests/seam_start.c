/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/seam_start.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/buf.h"
#include "shared/clock.h"
#include "tests/process.h"

/* The limit of CPU time in shared/syscalls.c may end a start: 2 s, on a busy machine many more. */
enum { LONG_S = 60, LOOK_MS = 5 };

static struct buf read_log(const struct seam_daemon *d)
{
	struct buf text = BUF_INIT;
	FILE *f = fopen(d->log, "re");
	char piece[4096];
	size_t len;

	while (f && (len = fread(piece, 1, sizeof(piece), f)) > 0)
		buf_add(&text, piece, len);
	if (f)
		fclose(f);
	return text;
}

bool seam_daemon_said(const struct seam_daemon *d, const char *text)
{
	struct buf log = read_log(d);
	bool said = log.data && strstr(log.data, text);

	buf_fini(&log);
	return said;
}

void seam_daemon_print(const struct seam_daemon *d)
{
	struct buf log = read_log(d);

	fprintf(stderr, "%s", log.data ? log.data : "nothing was said\n");
	buf_fini(&log);
}

/* True once it has ended. */
static bool has_ended(struct seam_daemon *d)
{
	int status;

	if (!d->pid)
		return true;
	if (waitpid(d->pid, &status, WNOHANG) <= 0)
		return false;
	d->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	d->pid = 0;
	return true;
}

/* What it said beyond being ready is why it ended. */
static bool gave_reason(const struct seam_daemon *d)
{
	struct buf log = read_log(d);
	bool gave = log.len && log.data[log.len - 1] == '\n' && log.len > 20;

	buf_fini(&log);
	return gave;
}

static enum seam_end end_of(const struct seam_daemon *d)
{
	if (!gave_reason(d))
		return SEAM_OTHERWISE;
	return d->status == 1		    ? SEAM_FAILED
	       : d->status == 128 + SIGABRT ? SEAM_ABORTED
					    : SEAM_OTHERWISE;
}

enum seam_end seam_daemon_look(struct seam_daemon *d)
{
	return has_ended(d) ? end_of(d) : SEAM_READY;
}

enum seam_end seam_daemon_start(struct seam_daemon *d)
{
	int64_t until = clock_mono_ns() + LONG_S * NS_PER_SEC;

	unlink(d->log);
	d->status = 0;
	seam_enter(d->seam);
	d->pid = process_start(d->log, d->argv);
	seam_enter(NULL);
	if (d->pid <= 0)
		return SEAM_OTHERWISE;
	while (clock_mono_ns() < until) {
		if (has_ended(d))
			return end_of(d);
		if (seam_daemon_said(d, d->ready))
			return SEAM_READY;
		poll(NULL, 0, LOOK_MS);
	}
	return SEAM_OTHERWISE;
}

int seam_daemon_stop(struct seam_daemon *d, int signal_number)
{
	int64_t until = clock_mono_ns() + LONG_S * NS_PER_SEC;

	if (d->pid)
		kill(d->pid, signal_number);
	while (!has_ended(d) && clock_mono_ns() < until)
		poll(NULL, 0, LOOK_MS);
	if (d->pid)
		d->status = process_stop(d->pid, SIGKILL);
	d->pid = 0;
	return d->status;
}
