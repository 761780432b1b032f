/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of the rights of a thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Capabilities as masks of 1 << CAP_... */
struct privileges {
	uint64_t inheritable, permitted, effective, bounding, ambient;
	uint64_t no_new_privs, seccomp; /* 1; 2: a filter */
};

#define CAPABILITY(c) (1ULL << (c))

/* Reads a file like /proc/PID/status; false when it cannot. */
bool privileges_read(const char *path, struct privileges *p);
/*
 * Whether every thread of the process has just these capabilities (and none inheritable or
 * ambient), no_new_privs and a filter; prints the first that differs. *threads: how many there are.
 */
bool privileges_confined(pid_t pid, uint64_t capabilities, int *threads);
