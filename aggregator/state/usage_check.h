/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which values of an interval can be; what cannot is put aside, and the rest of the interval
 * counts.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"

/* X(name): why a value is put aside. The names are those of metrics and of JSON. */
#define QUARANTINE_REASONS(X)                                                                      \
	X(notANumber) /* not finite, or beyond any machine */                                      \
	X(negative)                                                                                \
	X(aboveCapacity) /* CPU by more than 5 %, memory above MemTotal */                         \
	X(counterReset) /* a clock or counter went on by more than the time can hold */            \
	X(inconsistent) /* members that contradict each other */                                   \
	X(aboveKernelLimit) /* more tasks than a kernel can have */

enum quarantine_reason {
#define X(name) QUARANTINE_##name,
	QUARANTINE_REASONS(X)
#undef X
		QUARANTINE_REASON_COUNT
};

extern const char *const quarantine_reason_name[QUARANTINE_REASON_COUNT];

/* Readings of CPU may be off by so much: more than this times the capacity is put aside. */
#define USAGE_CPU_TOLERANCE 1.05

enum { QUARANTINE_TEXT_LEN = 128 };

/*
 * What was put aside in one interval: values (a resource of the node or an entry is one), and the
 * last one's story.
 */
struct quarantine {
	uint32_t count[QUARANTINE_REASON_COUNT];
	uint32_t total;
	enum quarantine_reason last;
	uint32_t ref; /* of the last: 0 the node itself */
	char text[QUARANTINE_TEXT_LEN]; /* "used 4201 millicores for 5.0 s, the node has 4000" */
};

/* Where in usage.have the bit of a member lies that was measured and put aside. */
#define USAGE_ASIDE_SHIFT 16

static inline uint32_t usage_aside(const struct usage *u, uint32_t bit)
{
	return u->have & bit << USAGE_ASIDE_SHIFT;
}

/* -EINVAL and the reason for a node without capacity: nothing of it can be judged. */
int usage_check(const struct interval *interval, char *reason, size_t reason_size);

/*
 * Clears impossible values out of usage.have, of the node and of every entry, and marks it as put
 * aside; the node's histograms count with its CPU and memory only. Its split of CPU time and
 * available memory, of which either may be wrong, become 0 together, as if not told. *q is filled.
 *
 * CPU: finite, not negative, weight within the interval, mean above capacity by at most 5 % over at
 * least one second (a single short tick that was read late may show more), maximum below 1000 times
 * the capacity, deviation within the maximum. Memory and working set: finite, from 0 to MemTotal.
 * Histograms: no bucket wholly outside what min and max say (memory: max), of CPU no more samples
 * than the moments have, of memory no more than could be read.
 * Throttling and PSI: no more time than passed, twice the interval and 2 s (each CPU counts for
 * throttling); no more periods than one a millisecond, nor throttled ones than periods. OOM kills:
 * a million. Swap: a pebibyte. Tasks: what a kernel can have. CPU time of the machine: as PSI, for
 * each CPU; available memory: up to MemTotal.
 */
void usage_quarantine(struct interval *interval, struct quarantine *q);
