/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the fleet against an aggregator of a stack, and reads its report at the end. */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "tests/stack.h"

/* The signal that begins the next phase: of those that queue, so that two in a row are two. */
#define FLEET_NEXT_PHASE SIGRTMIN

/*
 * build/tests/fleet, or below what TB says, reporting to aggregator 0; `more` options end with
 * NULL. Ends the program where it cannot start.
 */
pid_t fleet_start(const struct stack *s, const char *const *more);
/*
 * Writes the objects of the cluster that a fleet of so many nodes and pods simulates, as a List in JSON.
 * Ends the program where it cannot.
 */
void fleet_dump(const char *path, int64_t nodes, int64_t pods_per_node);
/* Acks from now on are of the next phase in its report. */
void fleet_begin_phase(pid_t fleet);
/*
 * Tells it to stop, awaits the end of it and returns its report, which the caller deletes; NULL: it
 * failed.
 */
cJSON *fleet_stop(const struct stack *s, pid_t fleet);
/* Its log, to standard error. */
void fleet_print_log(const struct stack *s);
