/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/small_disk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/mem.h"

void small_disk_init(struct small_disk *d, const char *folder)
{
	*d = (struct small_disk){0};
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		d->why = strerror(errno);
		return;
	}
	d->path = mem_printf("%s/disk", folder);
	d->filler = mem_printf("%s/filler", d->path);
	if (mkdir(d->path, 0700) || mount("tmpfs", d->path, "tmpfs", 0, "size=4m"))
		d->why = strerror(errno);
}

void small_disk_fini(struct small_disk *d)
{
	if (d->path)
		umount2(d->path, MNT_DETACH);
	free(d->path);
	free(d->filler);
	*d = (struct small_disk){0};
}

void small_disk_need(const struct small_disk *d)
{
	if (!d->why)
		return;
	print_message("SKIP: no mount namespace: %s\n", d->why);
	skip();
}

void small_disk_fill(const struct small_disk *d)
{
	int fd = open(d->filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char block[4096] = {0};

	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		continue;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

void small_disk_free_up(const struct small_disk *d)
{
	assert_int_equal(unlink(d->filler), 0);
}

static void remount(const struct small_disk *d, unsigned long flags)
{
	if (mount(NULL, d->path, NULL, MS_REMOUNT | MS_BIND | flags, NULL))
		fail_msg("remount: %s", strerror(errno));
}

void small_disk_make_read_only(const struct small_disk *d)
{
	remount(d, MS_RDONLY);
}

void small_disk_make_writable(const struct small_disk *d)
{
	remount(d, 0);
}
