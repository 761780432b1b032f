/* SPDX-License-Identifier: Apache-2.0 */
/* Writes Events about nodes, quotas and refused pods (object_events.h). Off by default. */
#pragma once

#include "aggregator/api/api.h"
#include "aggregator/api/object_events.h"
#include "aggregator/edge/kube/config.h"
#include "shared/buf.h"
#include "shared/error.h"
#include "shared/hash.h"

struct event_writer;

/*
 * Starts the thread. of: bits of enum object_events_of. config is copied, the context borrowed until
 * the stop. 0, or -errno with the reason; *w is to be stopped in any case.
 */
int event_writer_start(struct event_writer **w, const struct kube_config *config, unsigned int of,
		       const struct api_context *ctx, struct error *error);
/* Cuts a running request. NULL is allowed. */
void event_writer_stop(struct event_writer *w);

/* --- event_body.c ----------------------------------------------------------------------------- */

/*
 * Append path and body of a request; the caller adds the field manager to the path. The first writes
 * a new event of that name and component at that Unix time; the second writes that the event
 * happened again, `count` times with the first.
 */
void event_writer_create(const struct object_event *event, const char *component, const char *name,
			 int64_t now_ns, struct buf *path, struct buf *body);
void event_writer_repeat(const struct object_event *event, const char *name, unsigned int count,
			 int64_t now_ns, struct buf *path, struct buf *body);

/*
 * --- event_limits.c: which events are written, as new ones or as repetitions of earlier ones: one
 * for an object and reason in a while, and so many of all. Pure.
 */

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
