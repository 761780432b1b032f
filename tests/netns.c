/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/netns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"

#define LOOPBACK_UP "ip link set lo up"

bool netns_shell(const char *command)
{
	struct buf out = BUF_INIT, err = BUF_INIT;
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)command, NULL};
	int status = process_run(argv, &out, &err);

	if (status)
		print_message("%s: %s\n", command, err.data ? err.data : "failed");
	buf_fini(&out);
	buf_fini(&err);
	return status == 0;
}

static int open_of(pid_t pid)
{
	char *path = mem_printf("/proc/%d/ns/net", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	free(path);
	return fd;
}

bool netns_begin(struct netns *own)
{
	*own = (struct netns){.fd = -1};
	if (unshare(CLONE_NEWNET) || !netns_shell(LOOPBACK_UP))
		return false;
	own->fd = open_of(getpid());
	return own->fd >= 0;
}

void netns_open(struct netns *n)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	n->holder = fork();
	if (n->holder == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) || !netns_shell(LOOPBACK_UP) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_true(n->holder > 0 && read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	n->fd = open_of(n->holder);
	assert_true(n->fd >= 0);
}

void netns_close(struct netns *n)
{
	if (n->holder)
		process_stop(n->holder, SIGKILL);
	if (n->fd > 0)
		close(n->fd);
	*n = (struct netns){.fd = -1};
}

void netns_enter(const struct netns *n)
{
	assert_int_equal(setns(n->fd, CLONE_NEWNET), 0);
}
