/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mailbox between people and the actuator, in memory: requests to it, and its newest report.
 * The aggregator itself acts on nothing.
 *
 *	waiting --> taken --> done      taken: the answer to a report had it
 *	   |          |
 *	   +----------+-----> refused, by the actuator; waiting also after ACT_WAIT_NS without a word
 *
 * Two aggregators tell each other requests, reports and reports of waves (--peer). The report with the
 * later time counts, and of a request the state that is further on.
 *
 * Any thread; one mutex, held for copies. Requests are at most ACT_REQUESTS_MOST, of which the
 * finished ones make room first, and at most ACT_OPEN_MOST of them wait.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregator/planner/drain_log.h"
#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/error.h"
#include "shared/jsonw.h"

enum {
	ACT_REQUESTS_MOST = 64,
	ACT_OPEN_MOST = 16,
	ACT_ID_LEN = 24,
	ACT_TOLD_MAX = 48 << 10, /* bytes of what is told at once */
};
#define ACT_WAIT_NS (60 * NS_PER_SEC)
/* A report of an older holder is refused for so long: a new Lease begins to count anew. */
#define ACT_NEWER_NS (60 * NS_PER_SEC)

struct act_box;
/* waves: borrowed; has the reports of waves. NULL: none are kept. */
struct act_box *act_box_new(struct drain_log *waves);
void act_box_free(struct act_box *b); /* NULL is allowed */
/*
 * Takes over the body of a request that request_check() passed; user "": not known. 0 with the id, or
 * -EAGAIN: as many wait as may; then the body stays the caller's.
 */
int act_box_ask(struct act_box *b, cJSON *request, const char *user, int64_t now_ns,
		char id[ACT_ID_LEN]);
/*
 * Takes over a body that request_check() passed. Waiting requests become taken: the answer hands
 * them out. Requests that it names and the box does not know are ignored. -ESTALE: the newest
 * report, of a later holder, is younger than ACT_NEWER_NS; then the body stays the caller's.
 */
int act_box_report(struct act_box *b, cJSON *report, int64_t now_ns);
/*
 * Writes "actuator", "reportedAgoSeconds" and "requests" of the object that is open. Returns a
 * number that changes whenever anything but the age does; never 0.
 */
uint64_t act_box_write(struct act_box *b, int64_t now_ns, struct jsonw *w);

/* --- fields of Exchange in shared/body.proto; b NULL: there are none */

/* The newest of what a connection was told; all are 0 at its beginning. */
struct act_told {
	uint64_t change; /* of requests and of the report */
	uint64_t wave; /* number in the log .. */
	bool restored; /* .. after drain_log_restore() */
};

/*
 * Appends the first request, report or report of a wave behind those that were told. One of more than
 * ACT_TOLD_MAX bytes is left out. False: there is none. now_ns: Unix time.
 */
bool act_box_tell(struct act_box *b, struct act_told *at, int64_t now_ns, struct buf *body);
/* Reads the fields of a body. -EBADMSG with the reason, and nothing is changed. */
int act_box_hear(struct act_box *b, const struct buf *body, int64_t now_ns, struct error *error);
