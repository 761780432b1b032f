/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that came, by the time a new node needs to start: so that slack can be a promise ("of twenty
 * such times, nineteen brought no more than this, and nobody waited") and not a percentage. Pure;
 * bounded.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_ARRIVALS_H
#define EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/slack/slack_target.h"

enum { SLACK_ARRIVALS_MAX = 65536 };

/* So many pods of one shape were created within one span of time. */
struct slack_arrival {
	int64_t span; /* creation time / length of a span */
	struct slack_amount shape;
	uint32_t count;
};

struct slack_arrivals {
	int64_t span_ns; /* how long a node needs to start */
	int64_t keep_ns;
	int64_t first_span; /* since when is counted; meaningless until `started` */
	int64_t seen_ns; /* what was created until then is counted */
	bool started;
	int64_t until_ns; /* of the look that is under way */
	size_t merged; /* what there was before it */
	size_t count;
	struct slack_arrival *of; /* owned; by span, then shape */
};

void slack_arrivals_init(struct slack_arrivals *a, int64_t span_ns, int64_t keep_ns);
void slack_arrivals_fini(struct slack_arrivals *a);
/*
 * One look at a cluster: begin, tell of every pod there is, end. Pods that are older than the first
 * look are not counted; nor, where more than SLACK_ARRIVALS_MAX would have to be kept, are those of
 * the oldest spans.
 */
void slack_arrivals_begin(struct slack_arrivals *a, int64_t now_ns);
void slack_arrivals_add(struct slack_arrivals *a, int64_t created_ns,
			const struct slack_amount *shape);
void slack_arrivals_end(struct slack_arrivals *a, int64_t now_ns);
/*
 * How many spans of that length must have been watched before what is told of them is to be
 * believed: those of a day.
 */
int64_t slack_arrivals_needed(int64_t span_ns);
/* Complete spans that were watched. */
int64_t slack_arrivals_spans(const struct slack_arrivals *a, int64_t now_ns);
/*
 * The 95th percentile (nearest rank) over those spans of what arrived in one, each resource by
 * itself; spans without arrivals count. False, and nothing is written: no span is complete yet.
 */
bool slack_arrivals_p95(const struct slack_arrivals *a, int64_t now_ns, struct slack_amount *out);

#endif
