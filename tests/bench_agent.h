/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real agent under measurement: started on cgroups of a bench's own, and what it and any other
 * program costs.
 */
#pragma once

#include <sys/types.h>

#include "tests/cgroup_fixture.h"
#include "tests/stack.h"

/* Cgroups "c0" .. in every hierarchy. NULL and the reason where they cannot be made. */
struct cgroup_fixture *bench_cgroups(const char *name, int count, struct error *error);

/*
 * Starts the stack's agent, without a limit to its CPU, reporting to the first `aggregators` of the
 * stack; returns the milliseconds until it says that it took its first sample. Ends the program
 * where it does not start.
 */
double bench_agent_start(struct stack *s, int aggregators, const char *cgroup_root,
			 const char *rate, const char *interval);

/* CPU time of a process as a share of one core, in percent, over the next `ms`. */
double bench_cpu_percent(pid_t pid, int ms);
double bench_resident_mib(pid_t pid);
