/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and limits for a container, by what it demanded (aggregator/state/workload_demand.h).
 *
 *	CPU request	a percentile of demand, but for starts: --policy saving 80, balanced 90, safe 99
 *	memory request	the peak and 5, 15 or 30 %; saving looks at the last two days, others at four.
 *			After an OOM kill the peak is at least 120 % of the limit at the kill: what
 *			was killed would have grown
 *	memory limit	the peak and twice those percent
 *	CPU limit	the smallest bucket border that demand exceeds in at most `throttled_below` of
 *			the samples in which the container ran; at least the request; none if samples
 *			are longer than LONGEST_SAMPLE on average. A sample is as long as a period of
 *			the quota, which throttles a period with more demand. The kernel counts the
 *			periods in which a CPU takes of the quota, and the one after: a CPU that idles
 *			keeps 1 ms of it, so with 0.5 ms in each period (5 millicores) all are counted,
 *			and with less only some of them
 *
 * A percentile is the geometric middle of its bucket: within 5 %. The CPU limit is at most 10 % above
 * the percentile that it stands for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/model/pod_spec.h"
#include "aggregator/state/workload_demand.h"
#include "shared/buf.h"

enum advice_policy { ADVICE_BALANCED, ADVICE_SAVING, ADVICE_SAFE, ADVICE_POLICIES };
/* As of how long it was measured: below an hour, below a day. */
enum advice_confidence { ADVICE_LOW, ADVICE_MEDIUM, ADVICE_HIGH };
enum advice_verdict {
	ADVICE_UNKNOWN, /* too little was measured */
	/*
	 * A request by more than a tenth; or the container was killed for memory, and its limit was
	 * not raised since; or its CPU limit throttles more than it may.
	 */
	ADVICE_TOO_SMALL,
	ADVICE_TOO_LARGE, /* by more than a tenth, and no request is too small */
	ADVICE_FITS,
	ADVICE_UNDECLARED, /* no Kubernetes API says what it requests */
};

extern const char *const advice_policies[]; /* "balanced", .., NULL */
extern const char *const advice_verdicts[], *const advice_confidences[];

#define ADVICE_THROTTLED_BELOW 0.01

struct advice_options {
	enum advice_policy policy;
	double throttled_below; /* share of periods, above 0, below 1 */
};

/* What the newest pod declares; of a unit, what the kernel enforces. */
struct advice_now {
	bool declared; /* by a pod */
	uint32_t pods;
	struct resource_list requests, limits;
};

struct advice {
	enum advice_verdict verdict, cpu, memory; /* of both, and of each resource */
	enum advice_confidence confidence;
	double hours; /* in which it was measured */
	/* of demand, in millicores; NaN: not known */
	double p50_milli, p95_milli, p99_milli;
	double start_milli; /* largest of a start, in the last four days; NaN likewise */
	double peak_bytes; /* NaN: not known */
	double throttled_share; /* of periods; NaN: there was no quota */
	uint32_t oom_kills; /* of the last four days */
	double oom_limit_bytes; /* the largest limit at those kills; NaN: not known */
	struct resource_list requests, limits; /* proposed */
	double throttled_at_limit; /* predicted share; NaN: no limit is proposed */
	/*
	 * The worst lack is highest: 3 killed, 1..2 starved (1 and the share that is missing or
	 * throttled), 1 no request is declared, 0..1 too large, -1 unknown.
	 */
	double urgency;
};

/* Appends sentences with the numbers of each proposal to why, a line each; it may be NULL. */
void advice_make(const struct demand_record *r, const struct advice_now *now,
		 const struct advice_options *options, int64_t now_ns, struct advice *a,
		 struct buf *why);
/* "1%" or "0.01"; false: it is none above 0 and below 1. */
bool advice_read_share(const char *text, double *share);
/* The share of samples in which it ran with a demand above the limit. */
double advice_share_above(const struct demand_weights *w, double limit_milli);
