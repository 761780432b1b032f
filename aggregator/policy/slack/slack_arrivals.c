/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slack that covers the 95th percentile of arrivals keeps pods from waiting in nineteen of twenty spans.
 *
 * Time is divided into spans as long as a node needs to start. For each span the pods created in it are
 * counted by shape; spans without arrivals count, too.
 *
 * Every look sees all pods again. New pods are recognised by their creation times, later than the last
 * look's. API servers write whole seconds, and a pod is seen a moment after its second, so a look
 * counts pods created until SETTLED_NS ago and leaves later ones to the next. Pods that came and went
 * between two looks are not counted.
 */
#include "aggregator/policy/slack/slack.h"

#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"

#define WATCHED_NS (24 * 3600 * 1000000000LL)

#define SETTLED_NS 5000000000LL

void slack_arrivals_init(struct slack_arrivals *a, int64_t span_ns, int64_t keep_ns)
{
	*a = (struct slack_arrivals){.span_ns = span_ns, .keep_ns = keep_ns};
}

void slack_arrivals_fini(struct slack_arrivals *a)
{
	free(a->of);
	*a = (struct slack_arrivals){0};
}

static int compare(const void *left, const void *right)
{
	const struct slack_arrival *a = left, *b = right;

	return COMPARE(a->span, b->span)
		?: COMPARE(a->shape.cpu_milli, b->shape.cpu_milli)
		?: COMPARE(a->shape.mem_bytes, b->shape.mem_bytes);
}

void slack_arrivals_begin(struct slack_arrivals *a, int64_t now_ns)
{
	a->until_ns = now_ns - SETTLED_NS;
	a->merged = a->count;
	if (a->started)
		return;
	a->started = true;
	a->seen_ns = a->until_ns;
	/* The current span was not watched from its beginning. */
	a->first_span = a->seen_ns / a->span_ns + 1;
}

void slack_arrivals_add(struct slack_arrivals *a, int64_t created_ns,
			const struct slack_amount *shape)
{
	if (created_ns <= a->seen_ns || created_ns > a->until_ns)
		return;
	ARRAY_ADD(a->of, a->count) = (struct slack_arrival){created_ns / a->span_ns, *shape, 1};
}

static void merge(struct slack_arrivals *a)
{
	size_t kept = 0;

	qsort(a->of, a->count, sizeof(*a->of), compare);
	for (size_t i = 0; i < a->count; i++)
		if (kept > 0 && compare(&a->of[kept - 1], &a->of[i]) == 0)
			a->of[kept - 1].count += a->of[i].count;
		else
			a->of[kept++] = a->of[i];
	a->count = kept;
}

/* Drops spans that are too old, and whole spans while there are too many. */
static void forget(struct slack_arrivals *a, int64_t now_ns)
{
	int64_t oldest = (now_ns - a->keep_ns) / a->span_ns;
	size_t at = 0;

	if (a->count > SLACK_ARRIVALS_MAX) {
		int64_t last = a->of[a->count - SLACK_ARRIVALS_MAX - 1].span;

		oldest = last >= oldest ? last + 1 : oldest;
	}
	if (oldest <= a->first_span)
		return;
	a->first_span = oldest;
	while (at < a->count && a->of[at].span < oldest)
		at++;
	a->count -= at;
	memmove(a->of, a->of + at, a->count * sizeof(*a->of));
}

void slack_arrivals_end(struct slack_arrivals *a, int64_t now_ns)
{
	if (a->count > a->merged)
		merge(a);
	if (a->until_ns > a->seen_ns)
		a->seen_ns = a->until_ns;
	forget(a, now_ns);
}

/* Unfinished and unsettled spans are not among them. */
int64_t slack_arrivals_needed(int64_t span_ns)
{
	return (WATCHED_NS + span_ns - 1) / span_ns;
}

int64_t slack_arrivals_spans(const struct slack_arrivals *a, int64_t now_ns)
{
	int64_t spans = (now_ns - SETTLED_NS) / a->span_ns - a->first_span;

	return a->started && spans > 0 ? spans : 0;
}

/* --- percentiles */

/* Nearest rank over `spans` values, of which only the nonzero ones are given. */
static int64_t p95(int64_t *sums, size_t count, int64_t spans)
{
	int64_t rank = (spans * 95 + 99) / 100, zeros = spans - (int64_t)count;

	qsort(sums, count, sizeof(*sums), array_compare_int64);
	return rank <= zeros ? 0 : sums[rank - zeros - 1];
}

bool slack_arrivals_p95(const struct slack_arrivals *a, int64_t now_ns, struct slack_amount *out)
{
	int64_t spans = slack_arrivals_spans(a, now_ns), last = a->first_span - 1;
	int64_t *cpu = mem_zalloc(a->count + 1, sizeof(*cpu));
	int64_t *mem = mem_zalloc(a->count + 1, sizeof(*mem));
	size_t count = 0;

	for (size_t i = 0; i < a->count; i++) {
		const struct slack_arrival *one = &a->of[i];
		struct slack_amount sum = {0, 0};

		if (one->span < a->first_span || one->span >= a->first_span + spans)
			continue;
		slack_amount_add(&sum, &one->shape, one->count);
		count += one->span != last;
		last = one->span;
		cpu[count - 1] += sum.cpu_milli;
		mem[count - 1] += sum.mem_bytes;
	}
	if (spans)
		*out = (struct slack_amount){p95(cpu, count, spans), p95(mem, count, spans)};
	free(cpu);
	free(mem);
	return spans > 0;
}
