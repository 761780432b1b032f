/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads for requests that take long, so that those of schedulers never wait for them. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_WORKERS_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_WORKERS_H

#include <stdbool.h>

#include "shared/reason.h"

/* Something to be done; a member of what it is about. */
struct work {
	struct work *next;
	void (*run)(struct work *w, bool stopping); /* stopping: refuse it, there is no time */
};

struct workers;
/* -errno with the reason. At most so many works wait. */
int workers_start(struct workers **ws, unsigned int threads, unsigned int waiting_most,
		  struct reason *reason);
/*
 * Runs it later on some thread, in the order given; false: too many wait, and it is still the
 * caller's.
 */
bool workers_give(struct workers *ws, struct work *w);
/*
 * What has begun is completed, what waits is run as stopping; nothing is taken any more. NULL is
 * allowed.
 */
void workers_stop(struct workers *ws);
void workers_free(struct workers *ws); /* stopped; NULL is allowed */

#endif
