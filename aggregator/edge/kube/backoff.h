/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before asking an API again that could not answer: longer each time, until it was
 * well for a while.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_BACKOFF_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_BACKOFF_H

#include <stdint.h>

struct backoff_limits {
	int64_t first_ns, most_ns;
	int64_t reset_ns; /* after so long without another wait the next is the first again */
};

/* Zeroed at first. */
struct backoff {
	int64_t base_ns; /* of the newest wait, without its jitter; 0: none yet */
	int64_t until_ns; /* its end */
};

/*
 * The next wait: base * (1 + random) with random in [0, 1), where base doubles from first_ns to
 * most_ns. So many clients of one server come back spread out.
 */
int64_t backoff_next(struct backoff *b, const struct backoff_limits *limits, double random,
		     int64_t now_ns);

#endif
