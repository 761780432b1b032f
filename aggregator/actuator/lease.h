/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Lease of the actuator (coordination.k8s.io): its holder acts, alone.
 *
 *   renewed every 2 s, expires 15 s after its last change, by the clock of the observer
 *   its holder begins no request later than 6 s after the renewal that succeeded, and a request
 *   ends within 4 s, or 8 s if a 401 repeats it: none is under way when another actuator takes over
 *
 * A Lease without a holder is new, or was deleted while an actuator held it: it is taken after the same
 * 15 s, so that the former holder writes no more.
 *
 * The annotation evenkeel.io/paused of the Lease (any value but "false") pauses the actuator.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "shared/buf.h"
#include "shared/error.h"

#define LEASE_PAUSED "evenkeel.io/paused"

/* --- what the Lease says ---------------------------------------------------------------------- */

struct lease_record {
	char holder[256], renewed[64], version[64]; /* texts of the object; "": absent */
	int64_t transitions;
	bool paused;
	int64_t changed_ns; /* monotonic: when its holder or renewal was first seen */
};

/*
 * json: the object. Keeps changed_ns while holder and renewal stay the same. False: it is no Lease,
 * and *r stays as it is.
 */
bool lease_read(const cJSON *json, int64_t now_ns, struct lease_record *r);

enum lease_move { LEASE_WAIT, LEASE_RENEW, LEASE_TAKE };

enum lease_move lease_decide(const struct lease_record *r, const char *holder, int64_t now_ns);
/* The body of a renewal, or a takeover, which counts one more transition. wall_ns: Unix. */
void lease_write(const struct lease_record *r, const char *holder, int64_t wall_ns,
		 struct buf *body);

/* --- the thread ------------------------------------------------------------------------------- */

struct lease;

struct lease_options {
	const char *namespace, *name, *holder; /* borrowed until the stop */
	const struct kube_config *config; /* copied */
};

struct lease_state {
	bool held, paused;
	int64_t transitions;
	int64_t until_ns; /* monotonic: requests may begin before */
};

/* 0, or -errno with the reason. */
int lease_start(struct lease **l, const struct lease_options *o, struct error *error);
/* The lease expires by itself. NULL is allowed. */
void lease_stop(struct lease *l);
/* The lease is not renewed when this was not called for 5 minutes. */
void lease_get(struct lease *l, struct lease_state *out);
