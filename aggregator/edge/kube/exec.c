/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix_spawn() is safe in a process of many threads: between fork and exec nothing of ours runs.
 * The child starts with the default signals and no descriptor but its three. Its end is looked for
 * every SLICE_MS while its pipes are awaited: neither says the other, since a grandchild may hold
 * the pipes when the child is gone, and the child may close them and stay. Where the child is gone,
 * what the pipes hold counts, and nobody waits for more.
 */
#include "aggregator/edge/kube/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregator/edge/kube/config_file.h"
#include "shared/clock.h"
#include "shared/mem.h"

enum { SLICE_MS = 20, STDERR_MAX = 4096, SHOWN_LEN = 200 };

/* One of its outputs. */
struct stream {
	int fd; /* -1: at its end */
	/* owned; room + 2 bytes that are never moved: nothing of a secret stays behind */
	char *data;
	size_t len, room;
	bool newest; /* what is too much pushes out the oldest; otherwise it is an error */
	bool overflown;
};

struct child {
	pid_t pid;
	struct stream out, err;
	bool ended;
	int status;
};

/* --- start ------------------------------------------------------------------------------------ */

/* 0 or errno. */
static int spawn(pid_t *pid, char *const argv[], char *const envp[], int out, int err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	if (rc == 0)
		rc = posix_spawnp(pid, argv[0], &actions, &attributes, argv, envp);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static int refuse_start(int error, struct reason *reason)
{
	reason_set(reason, "cannot be run: %s", strerror(error));
	return error == ENOENT ? -ENOENT : -EACCES;
}

static int start(struct child *c, char *const argv[], char *const envp[], struct reason *reason)
{
	int out[2], err[2], rc;

	if (pipe2(out, O_CLOEXEC))
		return refuse_start(errno, reason);
	if (pipe2(err, O_CLOEXEC)) {
		rc = errno;
		close(out[0]);
		close(out[1]);
		return refuse_start(rc, reason);
	}
	rc = spawn(&c->pid, argv, envp, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	if (rc) {
		close(out[0]);
		close(err[0]);
		return refuse_start(rc, reason);
	}
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	c->out = (struct stream){.fd = out[0],
				 .data = mem_alloc(EXEC_OUTPUT_MAX + 2),
				 .room = EXEC_OUTPUT_MAX};
	c->err = (struct stream){.fd = err[0],
				 .data = mem_alloc(STDERR_MAX + 2),
				 .room = STDERR_MAX,
				 .newest = true};
	return 0;
}

/* --- outputs ---------------------------------------------------------------------------------- */

static void stream_close(struct stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static void stream_make_room(struct stream *s)
{
	size_t kept = s->room / 2;

	if (s->len <= s->room)
		return;
	if (!s->newest) {
		s->overflown = true;
		return;
	}
	memmove(s->data, s->data + s->len - kept, kept);
	s->len = kept;
}

/* All there is now. */
static void stream_read(struct stream *s)
{
	while (s->fd >= 0 && !s->overflown) {
		ssize_t got = read(s->fd, s->data + s->len, s->room + 1 - s->len);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			stream_close(s);
			return;
		}
		s->len += (size_t)got;
		stream_make_room(s);
	}
}

static void stream_fini(struct stream *s)
{
	stream_close(s);
	kube_bytes_wipe(s->data, s->len);
}

/* --- end -------------------------------------------------------------------------------------- */

static void reap(struct child *c, int flags)
{
	while (!c->ended) {
		pid_t got = waitpid(c->pid, &c->status, flags);

		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			return;
		/* Reaped by somebody else: all we know is that it is gone. */
		if (got < 0)
			c->status = -1;
		c->ended = true;
	}
}

/* Until the child ended, or the time is over, or it printed too much. */
static void await_end(struct child *c, int64_t limit_ns)
{
	int64_t until_ns = clock_mono_ns() + limit_ns;

	while (!c->ended && !c->out.overflown && clock_mono_ns() < until_ns) {
		struct pollfd fds[2] = {{.fd = c->out.fd, .events = POLLIN},
					{.fd = c->err.fd, .events = POLLIN}};

		poll(fds, 2, SLICE_MS);
		/* First its end, then its pipes: what it wrote before is read then. */
		reap(c, WNOHANG);
		stream_read(&c->out);
		stream_read(&c->err);
	}
}

/* The last line that it wrote to stderr, fit to be shown; "" when there is none. */
static const char *last_words(struct stream *err, char out[SHOWN_LEN])
{
	const char *end;

	while (err->len && (unsigned char)err->data[err->len - 1] <= ' ')
		err->len--;
	err->data[err->len] = '\0';
	end = memrchr(err->data, '\n', err->len);
	return kube_text_line(end ? end + 1 : err->data, out, SHOWN_LEN);
}

/* How it went, without what it said. */
static int judge_end(const struct child *c, int64_t limit_ns, struct reason *reason)
{
	if (c->out.overflown) {
		reason_set(reason, "printed more than %d KiB and was killed",
			   EXEC_OUTPUT_MAX / 1024);
		return -EIO;
	}
	if (!c->ended) {
		reason_set(reason, "did not end within %.3gs and was killed",
			   (double)limit_ns / NS_PER_SEC);
		return -ETIMEDOUT;
	}
	if (WIFSIGNALED(c->status))
		reason_set(reason, "was ended by signal %d", WTERMSIG(c->status));
	else if (WEXITSTATUS(c->status))
		reason_set(reason, "failed with exit status %d", WEXITSTATUS(c->status));
	else
		return 0;
	return -EIO;
}

static int judge(struct child *c, int64_t limit_ns, struct reason *reason)
{
	struct reason how;
	char words[SHOWN_LEN];
	int rc = judge_end(c, limit_ns, &how);

	last_words(&c->err, words);
	if (rc)
		reason_set(reason, "%s%s%s", how.text, words[0] ? ": " : "", words);
	return rc;
}

int exec_run(char *const argv[], char *const envp[], int64_t limit_ns, char **out, size_t *len,
	     struct reason *reason)
{
	struct child c = {0};
	int rc = start(&c, argv, envp, reason);

	if (rc)
		return rc;
	await_end(&c, limit_ns);
	rc = judge(&c, limit_ns, reason);
	if (!c.ended) {
		kill(-c.pid, SIGKILL);
		reap(&c, 0);
	}
	if (rc == 0) {
		c.out.data[c.out.len] = '\0';
		*out = c.out.data;
		*len = c.out.len;
		c.out.data = NULL;
	}
	stream_fini(&c.out);
	stream_fini(&c.err);
	return rc;
}
