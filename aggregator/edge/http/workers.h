/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads for one kind of work, shared fairly among clients (round-robin). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/error.h"

/* A unit of work, embedded in its owner. */
struct work {
	struct work *next;
	uint64_t client; /* works of equal values take turns with those of others */
	uint64_t round; /* set by the queue */
	void (*run)(struct work *w, bool refused);
};

struct workers_options {
	unsigned int threads, waiting_most;
	int nice; /* of the threads */
};

struct workers;

/* -errno with the reason. */
int workers_start(struct workers **ws, const struct workers_options *o, struct error *error);
/*
 * Runs it later on a thread: works of one client in order, of several clients round-robin. If
 * waiting_most works wait, the last one of the client with most is run at once as refused.
 */
void workers_give(struct workers *ws, struct work *w);
/* Completes what has begun; runs as refused what waits and what comes later. NULL is allowed. */
void workers_stop(struct workers *ws);
void workers_free(struct workers *ws); /* stopped; NULL is allowed */
