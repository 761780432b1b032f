/* SPDX-License-Identifier: Apache-2.0 */
/* The schedulers that are compared: a program, its configuration, and options of the aggregator. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum contender_kind {
	CONTENDER_STOCK, /* asks no aggregator */
	CONTENDER_UNBATCHED, /* stock, with an extender that no pod concerns: places one by one */
	CONTENDER_ECHO, /* stock, with an extender that decides nothing */
	CONTENDER_EXTENDER,
	CONTENDER_TRIMARAN, /* reads /watcher */
};

struct contender {
	const char *name; /* as CONTENDERS= has it */
	const char *title;
	enum contender_kind kind;
	const char *plugin; /* of Trimaran */
	const char *const *options; /* of the aggregator; end with NULL */
};

extern const struct contender contenders[];
extern const size_t contender_count;

/*
 * The configuration that packaging has for it, below the connection, with the aggregator's port of
 * the loopback; NULL: none. The caller frees it.
 */
char *contender_configuration(const struct contender *c, int port);
/* The program to be run: PEER_SCHEDULER. NULL: the plain one. */
const char *contender_program(const struct contender *c);
/* False: it needs PEER_SCHEDULER, which is not given. */
bool contender_is_here(const struct contender *c);
/* Whether it asks an aggregator. */
bool contender_asks(const struct contender *c);
