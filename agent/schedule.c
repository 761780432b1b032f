/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/schedule.h"

#include <sodium.h>
#include <string.h>

/* Differences of less than this between the two clocks are drift, not somebody setting the time. */
#define DRIFT_NS 500000000LL

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

	/* Where the clocks agree, intervals touch exactly. */
	if (s->last_end_ns && drift > -DRIFT_NS && drift < DRIFT_NS && s->last_end_ns < wall_ns)
		start = s->last_end_ns;
	*start_ns = start;
	*end_ns = wall_ns;
	s->last_end_ns = wall_ns;
	s->begin_mono_ns = mono_ns;
	s->due_mono_ns = next_due(s, mono_ns, wall_ns);
	/*
	 * A due time just ahead would make a sliver of an interval: early ticks wait for the next
	 * one.
	 */
	if (s->due_mono_ns - mono_ns < s->interval_ns / 4)
		s->due_mono_ns += s->interval_ns;
}
