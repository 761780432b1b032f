/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent for each node of the lab: the real schedule, ring and sender, which measure a machine on
 * which the pods run that it is told of. Nothing happens but in lab_agents_step().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"
#include "shared/keyring.h"
#include "shared/error.h"
#include "tests/lab_use.h"

struct lab_agents;

struct lab_machine {
	const char *name; /* borrowed */
	int64_t cpu_milli, mem_bytes; /* capacity */
};

struct lab_agents *lab_agents_new(const struct lab_machine *machines, size_t count);
void lab_agents_free(struct lab_agents *a); /* NULL is allowed */

/* What node i uses beside its pods, in intervals that end after this. */
void lab_agents_set_base(struct lab_agents *a, size_t i, const struct lab_use *use);

struct lab_pod {
	char uid[POD_UID_LEN + 1];
	struct lab_use use;
};

/*
 * The pods that run on node i, in place of those before; of those that were there, only the use
 * changes. Pods from before the first call after lab_agents_connect() have been there for ever.
 */
void lab_agents_set_pods(struct lab_agents *a, size_t i, const struct lab_pod *pods, size_t count);

/* Silent agents measure and send nothing. When they begin again, they begin anew. */
void lab_agents_set_silent(struct lab_agents *a, size_t i, bool silent);

/*
 * All agents begin a new life: they have measured for history_ns, until ago_ns ago, and report it
 * to the url. From then on they measure by themselves every interval_ns; 0: only what
 * lab_agents_measure() says.
 */
void lab_agents_connect(struct lab_agents *a, const char *url, const struct keyring *keys,
			int64_t history_ns, int64_t ago_ns, int64_t interval_ns);
/* Node i measures from where it stands to a Unix time, in intervals of 15 s at most. */
void lab_agents_measure(struct lab_agents *a, size_t i, int64_t end_ns);
/* Unix time to which node i measured. */
int64_t lab_agents_end_ns(const struct lab_agents *a, size_t i);

/*
 * Measures and sends what is due. Returns the monotonic time at which to call again at the latest.
 */
int64_t lab_agents_step(struct lab_agents *a);
/* Steps until all that was measured was answered, or so many seconds are over; whether it was. */
bool lab_agents_flush(struct lab_agents *a, double seconds);
/* Why the aggregator last refused a frame of the first agent whose frames it refused; "": it did not. */
struct error lab_agents_refusal(const struct lab_agents *a);
/* Steps for a time; say between two looks of await(). */
void lab_agents_run(struct lab_agents *a, int64_t ns);
