/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an interval to every aggregator: the ring, one sender for each endpoint, and what a person
 * must know of them.
 */
#ifndef EVENKEEL_AGENT_PUBLISHER_H
#define EVENKEEL_AGENT_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/resolver.h"
#include "shared/interval.h"
#include "shared/options.h"
#include "shared/reason.h"

struct publisher_config {
	const struct option_list *aggregators; /* URLs */
	const char *node; /* name under which this machine reports */
	const char *key_path; /* NULL: no key (ipc:// only) */
	/* as configured; after so long and some more without an ack an aggregator is silent */
	int64_t interval_ns;
	size_t ring_bytes; /* 0: RING_BYTES_DEFAULT */
	int64_t ring_span_ns; /* 0: 15 minutes */
	resolver_lookup *lookup; /* of the names in URLs; NULL: as the system does */
	void *lookup_ctx;
};

struct publisher;

/*
 * Reads the keys and checks the URLs; no thread is started yet. config and what it points to are
 * borrowed.
 */
int publisher_open(struct publisher **p, const struct publisher_config *config,
		   struct reason *reason);
/*
 * Opens the sockets, and a thread for each name that must be looked up; once: threads inherit the
 * privileges of now.
 */
int publisher_start(struct publisher *p, struct reason *reason);
void publisher_close(struct publisher *p);
/* A descriptor that is readable while publisher_step() has something to do. */
int publisher_fd(const struct publisher *p);
/* Takes the interval into the ring. */
void publisher_push(struct publisher *p, struct interval *interval);
/*
 * Lets every sender do what it can without blocking; returns the monotonic time at which to call
 * again at the latest.
 */
int64_t publisher_step(struct publisher *p, int64_t mono_ns);
/* The shortest publish interval that an aggregator orders in its last ack; 0: none does. */
int64_t publisher_ordered_interval_ns(const struct publisher *p);
/* True when every aggregator has acknowledged everything. */
bool publisher_idle(const struct publisher *p);
/* Reads the keys again; the old ones stay when that fails, with a line in the log either way. */
void publisher_reload_keys(struct publisher *p);

#endif
