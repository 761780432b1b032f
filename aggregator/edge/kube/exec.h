/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program to its end for what it prints, without a shell, bounded in time and bytes. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_EXEC_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_EXEC_H

#include <stddef.h>
#include <stdint.h>

#include "shared/reason.h"

enum { EXEC_OUTPUT_MAX = 256 << 10 };

/*
 * argv[0] is looked for in PATH unless it has a slash; envp is all it gets of an environment; it
 * reads /dev/null, and is the leader of a process group of its own. Waits for its end. 0 with *out,
 * what it printed to stdout and a NUL, which the caller gives up with kube_bytes_wipe(). -ENOENT:
 * there is no such program; -EACCES: it cannot be run; -ETIMEDOUT: it took longer than limit_ns and
 * was killed with its group; -EIO: it failed, or printed more than EXEC_OUTPUT_MAX. The reason
 * quotes its last line on stderr.
 */
int exec_run(char *const argv[], char *const envp[], int64_t limit_ns, char **out, size_t *len,
	     struct reason *reason);

#endif
