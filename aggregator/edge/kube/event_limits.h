/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events are written, as new ones or as repetitions of earlier ones: one for an object and
 * reason in a while, and so many of all. Pure.
 */
#pragma once

#include <stdint.h>

#include "aggregator/api/object_events.h"
#include "shared/hash.h"

enum {
	EVENT_LIMITS_BURST = 25,
	EVENT_LIMITS_EVERY_S = 1, /* after a burst one event */
	EVENT_LIMITS_MAX = 16384, /* objects and reasons that are remembered for an hour */
	EVENT_NAME_LEN = 32,
};

/* An object and a reason. */
struct event_entry {
	/* of event_limits_admit() */
	char *key; /* owned */
	int64_t offered_ns; /* 0: never */
	uint64_t note; /* hash of the last one */
	UT_hash_handle hh;

	/* of both */
	int64_t written_ns; /* 0: not yet, or it failed and is to be tried again */
	char name[EVENT_NAME_LEN]; /* of the event with that note; "": there is none to repeat */

	/* of the writer */
	unsigned int count; /* of that event and its repetitions */
};

/* Empty when zeroed. Times are monotonic. */
struct event_limits {
	struct event_entry *entries; /* owned, a hash by object and reason */
	int64_t spent_ns; /* the time until which the events of the burst are spent */
};

void event_limits_fini(struct event_limits *l);
/* Forgets what was neither written nor offered for an hour. */
void event_limits_expire(struct event_limits *l, int64_t now_ns);

enum event_verdict {
	EVENT_PASSES,
	EVENT_WAITS, /* a state that was told, or is told later */
	EVENT_LEFT_OUT, /* there are too many */
};

/* With EVENT_PASSES the entry, which l keeps until it forgets it. */
enum event_verdict event_limits_admit(struct event_limits *l, const struct object_event *event,
				      int64_t now_ns, struct event_entry **entry);
