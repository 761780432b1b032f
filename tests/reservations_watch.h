/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the lock of reservations is taken and given back. Programs that use it are linked with
 * --wrap=pthread_mutex_lock and --wrap=pthread_mutex_unlock (RESERVATIONS_WATCHED in the Makefile).
 */
#pragma once

#include "aggregator/state/reservations.h"

/*
 * From now on the clock is read whenever that lock was taken, and when it is about to be
 * given back. One set of reservations at a time, before other threads know it. NULL: of none.
 */
void reservations_watch(const struct reservations *set, int64_t (*clock_ns)(void));
/* The longest time between the two since then; while no other thread uses them. */
int64_t reservations_watch_longest_ns(void);
