/* SPDX-License-Identifier: Apache-2.0 */
/* What a test may ask of this machine. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "agent/cgroupfs.h"

static inline bool is_kernel_told(const char *word)
{
	char text[4096] = "";
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 && strstr(text, word);
}

/*
 * One of tests/vm/boot's, with which a test may do as it likes: its kernel's command line says so.
 */
static inline bool in_virtual_machine(void)
{
	return is_kernel_told("evenkeel.vm");
}

/* One of those whose time follows from the instructions executed (tests/vm/boot -i). */
static inline bool is_time_counted(void)
{
	return is_kernel_told("evenkeel.counted");
}

/* Whether the v2 tree has the controllers, as on the machines these tests are written for. */
static inline bool has_controllers(const struct cgroupfs *fs)
{
	return fs->throttle_from == HIERARCHY_UNIFIED && fs->memory_from == HIERARCHY_UNIFIED;
}
