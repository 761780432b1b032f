/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries are bad at beginning without descriptors: nanomsg 1.1.5 goes on without the thread that
 * would hear anybody, so that a daemon is up and deaf for ever, and libuv aborts without a word. So
 * as many as a daemon needs for itself are opened and closed again first. Later each of them
 * manages.
 */
#include "shared/descriptors.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MOST = 64 };

int descriptors_expect(int count, struct reason *reason)
{
	int fds[MOST], opened = 0, rc = 0;

	assert(count <= MOST);
	while (opened < count && !rc) {
		fds[opened] = eventfd(0, EFD_CLOEXEC);
		if (fds[opened] < 0)
			rc = -errno;
		else
			opened++;
	}
	if (rc)
		reason_set(reason,
			   "%d files more must be open, and only %d can be: %s; raise the limit "
			   "(LimitNOFILE=, ulimit -n)",
			   count, opened, strerror(-rc));
	while (opened)
		close(fds[--opened]);
	return rc;
}
