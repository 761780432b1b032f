/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs that the kernel lets each cgroup run on. */
#pragma once

#include <stdint.h>

#include "agent/account_table.h"
#include "agent/cgroupfs.h"

/*
 * Reads cpuset.cpus.effective (v1: cpuset.effective_cpus) into the topology: of every cgroup that
 * was not read yet, and of a thirtieth of the others, another one each round. For slow passes of
 * every tier.
 */
void cpusets_read(const struct cgroupfs *fs, struct topology *t, uint64_t round);

/*
 * The CPU limit by a list of CPUs: LIMIT_NONE for all CPUs of the machine, LIMIT_UNKNOWN without a
 * list (NULL or "") or in another format. Pure.
 */
int64_t cpusets_limit(const char *cpus, int64_t capacity_milli);

/*
 * After the effective limits were set: adds the exclusive CPUs. The CPUs of a container of a
 * Guaranteed pod are exclusive,
 *
 *	if its quota allows all of their time,
 *	if they are fewer than the machine's, and
 *	if no container of another pod with fewer CPUs than the machine's has one of them.
 *
 * A container with all CPUs of the machine does not count: where kubelet's static CPU manager gives
 * exclusive CPUs, it moves all other containers to the rest, and only sandboxes keep all CPUs. A
 * pod has the exclusive CPUs of its containers; without a quota these and the limits of its other
 * containers are its limit. Pure.
 */
void cpusets_share(struct account_table *table, struct topology *t);
