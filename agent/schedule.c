/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/schedule.h"

#include <sodium.h>
#include <string.h>

#define NS_PER_S 1000000000LL

/* A smaller difference between the clocks is drift; a larger one is a step of the wall clock. */
#define DRIFT_NS (NS_PER_S / 2)

static int64_t next_due(const struct schedule *s, int64_t mono_ns, int64_t wall_ns)
{
	int64_t phase = (int64_t)(s->node_hash % (uint64_t)s->interval_ns);
	int64_t since = (wall_ns - phase) % s->interval_ns;

	if (since < 0)
		since += s->interval_ns;
	return mono_ns + s->interval_ns - since;
}

uint64_t schedule_node_hash(const char *node)
{
	static const unsigned char key[crypto_shorthash_KEYBYTES];
	unsigned char bytes[crypto_shorthash_BYTES];
	uint64_t hash;

	crypto_shorthash(bytes, (const unsigned char *)node, strlen(node), key);
	memcpy(&hash, bytes, sizeof(hash));
	return hash;
}

void schedule_start(struct schedule *s, const char *node, int64_t interval_ns, int64_t mono_ns,
		    int64_t wall_ns)
{
	*s = (struct schedule){.interval_ns = interval_ns, .begin_mono_ns = mono_ns};
	s->node_hash = schedule_node_hash(node);
	s->due_mono_ns = next_due(s, mono_ns, wall_ns);
}

void schedule_set_interval(struct schedule *s, int64_t interval_ns)
{
	s->interval_ns = interval_ns;
}

bool schedule_due(const struct schedule *s, int64_t mono_ns)
{
	return mono_ns >= s->due_mono_ns;
}

void schedule_end(struct schedule *s, int64_t mono_ns, int64_t wall_ns, int64_t *start_ns,
		  int64_t *end_ns)
{
	int64_t start = wall_ns - (mono_ns - s->begin_mono_ns);
	int64_t drift = start - s->last_end_ns;

	/* If the clocks agree, intervals touch exactly. */
	if (s->last_end_ns && drift > -DRIFT_NS && drift < DRIFT_NS && s->last_end_ns < wall_ns)
		start = s->last_end_ns;
	*start_ns = start;
	*end_ns = wall_ns;
	s->last_end_ns = wall_ns;
	s->begin_mono_ns = mono_ns;
	s->due_mono_ns = next_due(s, mono_ns, wall_ns);
	/* After an early tick the due time is just ahead: skip that sliver of an interval. */
	if (s->due_mono_ns - mono_ns < s->interval_ns / 4)
		s->due_mono_ns += s->interval_ns;
}

/* --- passes ----------------------------------------------------------------------------------- */

#define SLOW_NS NS_PER_S
/* The kernel updates PSI that often. */
#define FULL_NS (2 * NS_PER_S)
/* Intervals of whole seconds end at most so much early. */
#define EARLY_NS (NS_PER_S / 10)

void pass_schedule_set_interval(struct pass_schedule *p, int64_t interval_ns)
{
	/* In whole slow passes, so that two full ones fit into an interval. */
	int64_t half = (interval_ns + EARLY_NS) / 2 / SLOW_NS * SLOW_NS;

	p->full_every_ns = half < FULL_NS ? half : FULL_NS;
}

enum pass_kind pass_schedule_choose(const struct pass_schedule *p, int64_t mono_ns,
				    int64_t period_ns, bool scanned)
{
	/* Timer expirations and both periods are multiples of each other. */
	int64_t by_ns = mono_ns + period_ns / 2;

	if (by_ns < p->slow_due_ns)
		return PASS_FAST;
	return scanned || by_ns >= p->full_due_ns ? PASS_SLOW : PASS_BRIEF;
}

void pass_schedule_note(struct pass_schedule *p, enum pass_kind kind, int64_t mono_ns)
{
	if (kind == PASS_SLOW)
		p->full_due_ns = mono_ns + p->full_every_ns;
	if (kind != PASS_FAST)
		p->slow_due_ns = mono_ns + SLOW_NS;
}
