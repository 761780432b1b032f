/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Events tell of objects of the cluster: nodes whose drain verdict changed, quotas over their
 * max or with findings, and pods that filter refused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/api/api.h"
#include "shared/error.h"

/* Bits. */
enum object_events_of { EVENTS_OF_NODES = 1, EVENTS_OF_QUOTAS = 2, EVENTS_OF_PODS = 4 };

/* "nodes,quotas,pods", or some of them; -EINVAL with the reason. */
int object_events_parse(const char *text, unsigned int *of, struct error *error);

/* Borrowed. */
struct object_event {
	const char *api_version, *kind, *namespace, *name, *uid; /* of the object; "": none */
	const char *reason; /* "NodeUnneeded" */
	const char *note; /* a sentence */
	bool warning;
	/* Two of one object and reason are so far apart; .. */
	int64_t pause_ns;
	/* .. if it is a state, which is offered while it lasts, by this instead; 0: it is none. */
	int64_t lasting_ns;
};

struct object_events {
	const struct api_context *ctx; /* borrowed */
	unsigned int of; /* bits */
	uint64_t told; /* the last decision about drains that was offered */
	int64_t checked_ns; /* of quotas; monotonic, 0: not yet */
};

/*
 * Offers what there is to tell at that monotonic time. A sink that returns false gets nothing more
 * now; decisions about drains from that one on, and states, are offered again.
 */
void object_events_offer(struct object_events *o, int64_t now_ns,
			 bool (*sink)(void *to, const struct object_event *event), void *to);
