/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next request about one kind, so that a list and the events after it stay one consistent
 * state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/edge/kube/retry.h"
#include "aggregator/model/model.h"
#include "shared/buf.h"

/* Timeouts and waits. */
struct kube_timing {
	struct backoff_limits backoff;
	int64_t forbidden_ns; /* between retries after 403 */
	int64_t absent_ns; /* between discoveries of a missing resource */
	int64_t short_watch_ns; /* a watch that ends sooner, without events, is an error */
	int watch_least_s, watch_most_s; /* timeoutSeconds is from [least, most) */
	int64_t watch_grace_ns; /* a watch that the server does not end is cut so long after its timeout */
	int list_silence_s; /* a list without bytes for so long is cut */
	int64_t source_ns; /* between reports of counters and ages alone */
};

const struct kube_timing *kube_timing_usual(void);

/*
 *	UNKNOWN --served--> LISTING --last page--> OPENING --200--> WATCHING
 *	   ^ ^               ^  |  ^                ^  |  ^            | |
 *	   | +------404------+--+  |                |  |  +---ended----+ |
 *	   |                    |  |                |  |                 |
 *	   +---------404--------|--|----------------|--+-----------------+
 *	                        |  |                |  |                 |
 *	                        |  +---- PAUSED ----+  |                 |
 *	                        +------> (until) <-----+-----fault-------+
 */
enum reflector_state {
	REFLECTOR_UNKNOWN, /* waits for discovery */
	REFLECTOR_LISTING,
	REFLECTOR_OPENING, /* requested a watch */
	REFLECTOR_WATCHING,
	REFLECTOR_PAUSED,
	REFLECTOR_STATES
};

enum { RESOURCE_VERSION_MAX = 128 };

struct reflector {
	/* fixed after init */
	enum object_kind kind;
	const struct kube_timing *timing; /* borrowed */
	double (*random)(void); /* [0, 1) */

	enum reflector_state state;
	enum reflector_state resume; /* what a pause ends with: LISTING or OPENING */
	int64_t wake_ns; /* monotonic; end of a pause */
	char version[RESOURCE_VERSION_MAX]; /* the newest seen; "": none */
	bool version_lost; /* the server refused it: list the newest state */
	bool unpaged; /* pages expired: one list without pages */
	char *continue_token; /* owned; NULL: the first page is next */
	int watch_s; /* of the newest watch */
	bool synced; /* a list was complete */
	bool delivered; /* objects were handed over: there is something to clear */
	bool renewed; /* the credentials, without a success since */
	int refusals; /* 403 in a row */
	int rewatches; /* without success after server errors */
	int64_t opened_ns; /* monotonic; of the watch */
	uint64_t watch_events;
	struct backoff backoff;
	struct model_source source; /* the reported state */
};

enum reflector_event_type {
	REFLECTOR_SERVED, /* version: the apiVersion that has the resource */
	REFLECTOR_UNSERVED, /* the API does not have it */
	REFLECTOR_UNDISCOVERED, /* status: why that is not known */
	REFLECTOR_TIME, /* wake_ns may have passed */
	REFLECTOR_OPENED, /* the answer is 200 */
	REFLECTOR_PAGE, /* a page of the list is complete: its version, continue_token */
	REFLECTOR_CHANGE, /* an object was added, modified or deleted: its version */
	REFLECTOR_BOOKMARK, /* version */
	REFLECTOR_ENDED, /* the watch, without an error */
	REFLECTOR_FAULT, /* status: the request or the watch is over */
};

struct reflector_event {
	enum reflector_event_type type;
	const char *version; /* NULL or "": not given */
	const char *continue_token; /* NULL: no further page */
	const struct kube_status *status;
	int64_t now_ns; /* monotonic */
	int64_t wall_ns; /* Unix time */
};

enum reflector_request { REFLECTOR_NOTHING, REFLECTOR_LIST, REFLECTOR_WATCH };

/* What to do now, in this order. */
struct reflector_update {
	bool replace_begin, replace_end, clear; /* as enum kube_change_type has them */
	bool source; /* state or message changed: report it */
	bool unauthorized; /* kube_session_unauthorized() */
	enum reflector_request request; /* to send: reflector_path() */
};

void reflector_init(struct reflector *r, enum object_kind kind, const struct kube_timing *timing,
		    double (*random)(void));
void reflector_fini(struct reflector *r);
struct reflector_update reflector_step(struct reflector *r, const struct reflector_event *e);
/* Path and query of the last ordered request. */
void reflector_path(const struct reflector *r, struct buf *out);
/* Monotonic time of the next REFLECTOR_TIME, INT64_MAX: none. */
int64_t reflector_wake_ns(const struct reflector *r);
