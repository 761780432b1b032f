/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of this machine that a test has for itself: what it starts, mounts and configures there
 * ends with it.
 */
#pragma once

#include "shared/error.h"

/*
 * Runs `inside` in namespaces of its own for processes, mounts and the network, and returns what it
 * returned; 128 + the signal that ended it. Whatever way it ends, when this returns no process of
 * it is left, nor a mount, an interface or a cgroup "/kubepods". In there: the loopback is up and
 * alone, /run, /var/log and what kubelet and CNI keep in /var/lib are empty file systems in memory
 * (TMPDIR is in /run), and those settings of the kernel which a kubelet would change are copies
 * that nobody heeds.
 *
 * -EPERM where that is not allowed, -EBUSY when this machine runs pods already; then nothing was
 * done. `why` says more.
 */
int node_box_run(int (*inside)(void), struct error *error);
