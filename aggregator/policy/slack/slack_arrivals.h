/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrivals of pods during the start time of a node: slack that covers the 95th percentile keeps pods
 * from waiting in nineteen of twenty such spans. Pure; bounded.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_ARRIVALS_H
#define EVENKEEL_AGGREGATOR_POLICY_SLACK_SLACK_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/slack/slack_target.h"

enum { SLACK_ARRIVALS_MAX = 65536 };

/* Pods of one shape that were created within one span of time. */
struct slack_arrival {
	int64_t span; /* creation time / length of a span */
	struct slack_amount shape;
	uint32_t count;
};

struct slack_arrivals {
	int64_t span_ns; /* how long a node needs to start */
	int64_t keep_ns;
	int64_t first_span; /* the first counted span; undefined until `started` */
	int64_t seen_ns; /* pods created until then are counted */
	bool started;
	int64_t until_ns; /* the same after the present look */
	size_t merged; /* count before it */
	size_t count;
	struct slack_arrival *of; /* owned; by span, then shape */
};

void slack_arrivals_init(struct slack_arrivals *a, int64_t span_ns, int64_t keep_ns);
void slack_arrivals_fini(struct slack_arrivals *a);
/*
 * One look at a cluster: begin, add every pod, end. Pods older than the first look are not
 * counted, nor the oldest spans beyond SLACK_ARRIVALS_MAX elements.
 */
void slack_arrivals_begin(struct slack_arrivals *a, int64_t now_ns);
void slack_arrivals_add(struct slack_arrivals *a, int64_t created_ns,
			const struct slack_amount *shape);
void slack_arrivals_end(struct slack_arrivals *a, int64_t now_ns);
/* Watched spans of that length that the percentile needs: those of a day. */
int64_t slack_arrivals_needed(int64_t span_ns);
/* Complete spans that were watched. */
int64_t slack_arrivals_spans(const struct slack_arrivals *a, int64_t now_ns);
/*
 * The 95th percentile (nearest rank) over those spans of what arrived in one, each resource by
 * itself; spans without arrivals count. False, and nothing is written: no span is complete yet.
 */
bool slack_arrivals_p95(const struct slack_arrivals *a, int64_t now_ns, struct slack_amount *out);

#endif
