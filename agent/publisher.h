/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends intervals to every aggregator: the ring, one sender per endpoint, and log lines about them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/enroller.h"
#include "shared/resolver.h"
#include "shared/interval.h"
#include "shared/options.h"
#include "shared/error.h"

struct publisher_config {
	const struct option_list *aggregators; /* URLs */
	const char *node; /* name under which this machine reports */
	const char *key_path; /* NULL: no key (ipc:// only) */
	struct enroller_config enrol; /* without aggregator_key_path: key_path's keys seal */
	/* as configured; an aggregator without an ack for so long plus 15 s is silent */
	int64_t interval_ns;
	size_t ring_bytes; /* 0: RING_BYTES_DEFAULT */
	int64_t ring_span_ns; /* 0: 15 minutes */
	resolver_lookup *lookup; /* of names in URLs; NULL: the system's */
	void *lookup_ctx;
};

struct publisher;

/*
 * Reads the keys and checks the URLs; starts no thread. config and all it points to are borrowed.
 */
int publisher_open(struct publisher **p, const struct publisher_config *config,
		   struct error *error);
/* Opens the sockets, and a thread for each name to look up; threads inherit the privileges. */
int publisher_start(struct publisher *p, struct error *error);
void publisher_close(struct publisher *p);
/* Readable while publisher_step() has work. */
int publisher_fd(const struct publisher *p);
/* Takes the interval. */
void publisher_push(struct publisher *p, struct interval *interval);
/*
 * Lets every sender do what it can without blocking; returns the monotonic time of the next call at
 * the latest.
 */
int64_t publisher_step(struct publisher *p, int64_t mono_ns);
/* The shortest interval that an aggregator ordered in its last ack; 0: none. */
int64_t publisher_ordered_interval_ns(const struct publisher *p);
/* Why an aggregator gets nothing, a refused enrolment first; "": all do. Valid until a step. */
const char *publisher_trouble(const struct publisher *p);
/* True when every aggregator has acknowledged everything. */
bool publisher_idle(const struct publisher *p);
/* Reads the keys again; after a failure the old ones stay. Logs either. */
void publisher_reload_keys(struct publisher *p);
