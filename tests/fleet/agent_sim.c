/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is the agent's own: when intervals end (agent/schedule.h), what is kept (agent/ring.h), how
 * it is told and told again (agent/sender.h), with a socket and a run of its own. What is not: a
 * publisher, which would add three descriptors and its own copy of the keys to each of thousands; a
 * sender for one address needs none.
 *
 * Latency is measured from the end of an interval to the step that sees its ack, whatever was
 * unanswered before it: an aggregator that falls behind is not excused. Left out is what was made
 * before the first ack, which may have to wait for the connection. It includes what this process
 * was busy with in between, so it is never less than what the aggregator took; what it was told to
 * lose or delay counts as well, but for that apart: what an interval waited for while its sender
 * repeated itself says how patient the sender is, and not how quick the aggregator.
 *
 * Where a second aggregator is told everything too, for comparison, only the first is measured and
 * has trouble with acks.
 */
#include "tests/fleet/agent_sim.h"

#include <sodium.h>
#include <stdlib.h>

#include "agent/ring.h"
#include "agent/schedule.h"
#include "agent/sender.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/fleet/ack_trouble.h"
#include "tests/fleet/machine_sim.h"

#define LATE_NS (100 * NS_PER_MS)

/*
 * Intervals whose ends are known at a time; what is answered after so many others has no latency.
 */
enum { TIMED = 64 };

/* When an interval was made, and how often its sender had repeated itself by then. */
struct made {
	int64_t ns; /* 0: not to be measured */
	uint64_t repeats;
};

struct agent_sim {
	const struct agent_sim_config *config; /* fixed after open, as are those down to sender */
	char name[CLUSTER_NAME_MAX];
	struct machine_sim *machine;
	struct ring *ring;
	struct sender *sender;
	struct sender *also; /* NULL: there is no other aggregator */
	struct ack_trouble *acks;
	int64_t begin_wall_ns, begin_boot_ns; /* of its life */
	int64_t skew_ns; /* its wall clock is so much ahead */

	struct schedule schedule;
	uint64_t sequence; /* of the last interval */
	struct made made[TIMED]; /* by sequence */
	uint64_t timed; /* last sequence that was answered */
	uint64_t acked; /* as of the last step */
};

int agent_sim_open(struct agent_sim **out, const struct agent_sim_config *config, uint32_t node,
		   struct error *error)
{
	struct agent_sim *a = mem_zalloc(1, sizeof(*a));
	struct sender_config sender = {
		.node = a->name,
		.keys = config->keys,
		.enroller = config->enroller,
		.wall_ns = clock_wall_ns,
		.first = 1,
		.boot_ns = clock_boot_ns,
	};
	int rc;

	a->config = config;
	cluster_node_name(node, a->name);
	randombytes_buf(sender.run, sizeof(sender.run));
	rc = sender_open(&a->sender, config->url, &sender, error);
	if (!rc && config->also_url)
		rc = sender_open(&a->also, config->also_url, &sender, error);
	if (rc) {
		sender_close(a->sender);
		free(a);
		return rc;
	}
	a->ring = ring_new(config->ring_bytes, config->ring_span_ns);
	a->machine = machine_sim_new(config->cluster, node);
	a->acks = ack_trouble_new(&config->trouble, config->cluster, node);
	a->skew_ns = trouble_skew_ns(&config->trouble, config->cluster, node);
	a->begin_wall_ns = clock_wall_ns() + a->skew_ns;
	a->begin_boot_ns = clock_boot_ns();
	schedule_start(&a->schedule, a->name, config->interval_ns, clock_mono_ns(),
		       a->begin_wall_ns);
	*out = a;
	return 0;
}

void agent_sim_close(struct agent_sim *a)
{
	if (!a)
		return;
	sender_close(a->sender);
	sender_close(a->also);
	ring_free(a->ring);
	ack_trouble_free(a->acks);
	machine_sim_free(a->machine);
	free(a);
}

/* Rings merge in the thread that pushes. */
static _Thread_local uint64_t merges;

/* The linker makes these names. NOLINTBEGIN(bugprone-reserved-identifier) */
struct interval *__real_interval_merge(const struct interval *a, const struct interval *b);
struct interval *__wrap_interval_merge(const struct interval *a, const struct interval *b);

struct interval *__wrap_interval_merge(const struct interval *a, const struct interval *b)
{
	merges++;
	return __real_interval_merge(a, b);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void push_interval(struct agent_sim *a, int64_t start_ns, int64_t end_ns,
			  int64_t end_boot_ns, struct tally *tally)
{
	struct interval *interval = machine_sim_take(a->machine, ++a->sequence, start_ns, end_ns);
	uint64_t before = merges;

	interval->end_boot_ns = end_boot_ns;
	tally->intervals++;
	tally->entries += interval->entry_count;
	ring_push(a->ring, interval);
	tally->merged += merges - before;
}

void agent_sim_remember(struct agent_sim *a, struct tally *tally)
{
	int64_t length_ns = a->config->interval_ns, ago_ns = a->config->history_ns;

	for (; ago_ns >= length_ns; ago_ns -= length_ns)
		push_interval(a, a->begin_wall_ns - ago_ns, a->begin_wall_ns - ago_ns + length_ns,
			      a->begin_boot_ns - ago_ns + length_ns, tally);
	/* The next one touches the last. */
	if (a->sequence)
		a->schedule.last_end_ns = a->begin_wall_ns - ago_ns;
}

static uint64_t repeats(const struct agent_sim *a)
{
	struct sender_stats stats;

	sender_get_stats(a->sender, &stats);
	return stats.sent_again + stats.resends_ordered;
}

static void end_interval(struct agent_sim *a, int64_t mono_ns, struct tally *tally)
{
	int64_t start, end, boot_ns = clock_boot_ns();

	tally->late_intervals += mono_ns - a->schedule.due_mono_ns > LATE_NS;
	schedule_end(&a->schedule, mono_ns, clock_wall_ns() + a->skew_ns, &start, &end);
	if (end <= start)
		return;
	push_interval(a, start, end, boot_ns, tally);
	a->made[a->sequence % TIMED] =
		(struct made){a->acked && mono_ns >= a->config->warm_ns ? clock_mono_ns() : 0,
			      repeats(a)};
}

/* Of everything before `cursor` that is answered for the first time. */
static void measure(struct agent_sim *a, uint64_t cursor, bool acked, struct tally *tally)
{
	uint32_t phase = __atomic_load_n(a->config->phase, __ATOMIC_RELAXED);
	int64_t now = acked ? clock_mono_ns() : 0;
	uint64_t repeated = acked ? repeats(a) : 0;

	for (; a->timed + 1 < cursor && a->timed < a->sequence; a->timed++) {
		uint64_t sequence = a->timed + 1;
		const struct made *made = &a->made[sequence % TIMED];

		if (acked && made->ns && a->sequence - sequence < TIMED)
			tally_add_latency(tally, phase, repeated > made->repeats, now - made->ns);
	}
}

static void obey(struct agent_sim *a, struct tally *tally)
{
	uint64_t cursors[2 * SENDER_CURSORS];
	struct sender_stats stats;
	size_t count;

	sender_get_stats(a->sender, &stats);
	count = sender_get_cursors(a->sender, cursors);
	measure(a, cursors[0], stats.acked != a->acked, tally);
	a->acked = stats.acked;
	schedule_set_interval(&a->schedule, stats.interval_ms ? stats.interval_ms * NS_PER_MS
							      : a->config->interval_ns);
	if (a->also)
		count += sender_get_cursors(a->also, cursors + count);
	ring_set_cursors(a->ring, cursors, count);
}

int64_t agent_sim_step(struct agent_sim *a, int64_t mono_ns, bool last, struct tally *tally)
{
	int64_t due;

	if (!last && schedule_due(&a->schedule, mono_ns))
		end_interval(a, mono_ns, tally);
	ack_trouble_set(a->acks, tally);
	due = sender_step(a->sender, a->ring, clock_mono_ns());
	ack_trouble_set(NULL, NULL);
	if (a->also) {
		int64_t also_due = sender_step(a->also, a->ring, clock_mono_ns());

		due = also_due < due ? also_due : due;
	}
	obey(a, tally);
	if (ack_trouble_due_ns(a->acks) < due)
		due = ack_trouble_due_ns(a->acks);
	return last || due < a->schedule.due_mono_ns ? due : a->schedule.due_mono_ns;
}

bool agent_sim_idle(const struct agent_sim *a)
{
	return sender_idle(a->sender, a->ring) && (!a->also || sender_idle(a->also, a->ring));
}

void agent_sim_tell(const struct agent_sim *a, struct tally *tally)
{
	struct sender_stats stats;

	sender_get_stats(a->sender, &stats);
	tally_add_sender(tally, &stats);
	tally->unanswered += a->sequence - stats.settled;
	if (stats.cursor > stats.settled)
		tally->in_doubt += stats.cursor - 1 - stats.settled;
	tally->new_pods += machine_sim_new_pods(a->machine);
}
