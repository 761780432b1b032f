/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls a confined agent may make: a seccomp filter. */
#ifndef EVENKEEL_AGENT_CONFINE_FILTER_H
#define EVENKEEL_AGENT_CONFINE_FILTER_H

#include <stdbool.h>

#include "shared/reason.h"

/*
 * Installs the filter for all threads; needs no_new_privs. unix_sockets: whether such may be made.
 * 0, -ENOSYS when the kernel has no such filters, or another -errno, with the reason.
 */
int confine_filter_install(bool unix_sockets, struct reason *reason);

#endif
