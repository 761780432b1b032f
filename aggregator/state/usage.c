/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interval's times are first moved to our clock (node_clock.h), and only then looked at: a node
 * whose clock is hours off is measured as any other and merely flagged. Where an agent does not
 * tell how old its intervals are, its clock is believed up to 5 minutes ahead.
 *
 * Every question about an interval is decided before anything of it is applied: first whether it is
 * news (run, sequence, time), then whether its values can be, then whether all its references are
 * known. So no answer but USAGE_APPLIED leaves a trace, except that a run that was asked for
 * everything is remembered as asked.
 *
 *   does not end after it starts                  -> refused
 *   run known, sequence <= applied                -> duplicate (before its clock is looked at)
 *   the frame that was asked once more            -> need full, from 1
 *   ends over 5 min after now                     -> refused (clock)
 *   ends over 15 min + a bucket before now        -> too old
 *   new run, starts over 5 s before what we have  -> refused (not the run of the database)
 *   new run, sequence not 1, not asked yet        -> need full, from 1
 *   a machine without capacity, limits            -> refused
 *   reference without identity                    -> need full, from here
 *   else                                          -> applied
 *
 * Windows ignore an interval that is older than they reach. If they are more than 5 minutes ahead of
 * now, our clock was set back, and they begin anew with the next interval.
 *
 * Two runs of one node: agents that were given one name, or somebody who has the key and lies. The
 * run that is alive wins, and the other is held before it is looked at: it keeps what it has and
 * sends it again. A run is alive
 *
 *   on its connection, while that is open         for 30 s after its last interval
 *   without one                                   until its next interval is 2 s late
 *   that the database names, after a restart      for 7 s: agents are back by then
 *
 * An agent that is killed has its connection closed by the kernel, so the next one is held for no
 * longer than that. An interval of the same run on another connection is held too, unless it is a
 * duplicate: an agent may have two routes to the aggregator.
 *
 * Nodes are an array sorted by name, as views want it, and a hash by name, as frames do: a search
 * in the array would read a dozen nodes that are in no cache. A node silent for a day is forgotten.
 *
 * A restart. The database has the node's windows and, in the same row, the run and the sequence S
 * up to which they reach (usage_node.counted); it has nothing of pods. So a run is new to every
 * process that has not heard it, and its agent is asked from 1, not from S + 1: what is at or
 * before S goes to the pods and their identities alone, what is behind S to the node as well. Both
 * end up with each interval once, whenever the process was killed. What follows from that:
 *
 *   - The run the row names may start before the row's end, since it tells again; any other may
 *     not, as ever.
 *   - An agent that began a new run meanwhile continues the node's windows; its pods' old intervals
 *     died with its ring.
 *   - A ring merges intervals for want of room, but not across S + 1 as the acks told it
 *     (`durable`). An agent that did not hear of the last save before the kill may still send one
 *     that begins at or before S and ends behind it. It cannot be taken apart; the node does
 *     without it rather than counting half of it twice, and that is counted (lost).
 *   - The row has the correction of the node's clock, too, so intervals that the agent repeats get
 *     the times they had, with ages or without; the samples behind the correction are taken anew.
 *   - A row of an earlier save is as good as the newest: S is smaller then, and more is told again.
 */
#include "aggregator/state/usage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/usage_check.h"
#include "aggregator/state/usage_node.h"
#include "aggregator/state/usage_pack.h"
#include "aggregator/state/window_sums.h"
#include "shared/array.h"
#include "shared/mem.h"

#define SECOND_NS      INT64_C(1000000000)
#define FUTURE_NS      (300 * SECOND_NS)
#define RUN_OVERLAP_NS (5 * SECOND_NS)
#define LIVE_NS	       (30 * SECOND_NS)
#define OVERDUE_NS     (2 * SECOND_NS)
#define SPAN_MOST_NS   (15 * SECOND_NS) /* of an interval that is not merged */
#define COME_BACK_NS   (7 * SECOND_NS)
#define UNFLAG_NS      (NODE_CLOCK_FLAGGED_NS - 5 * SECOND_NS)
#define FARTHEST_NS    (INT64_MAX / 2) /* the year 2116 */
#define FORGET_NS      (24 * 3600 * SECOND_NS)

struct usage_state {
	struct usage_limits limits; /* fixed after start */
	struct demand *demand; /* likewise; borrowed; NULL: none */
	size_t count;
	struct usage_node **nodes; /* owned; sorted by name */
	struct usage_node *index; /* of the same, by name */
	uint64_t generation; /* of the newest change of any node */
	/* Owned; the last result of usage_gather_stats(), borrowed from the nodes. */
	struct node_stats **node_stats;
	bool dirty; /* some stats were built, or are to be, since they were gathered */
	/*
	 * Borrowed from nodes: those whose stats are to be built, each once, the one that waits
	 * longest first.
	 */
	struct usage_node **stale;
	size_t stale_from, stale_end, stale_room;
	uint64_t save; /* begun last */
	uint64_t saved; /* newest that is in the database */
	char save_after[NODE_NAME_MAX + 1]; /* name of the last node it looked at */
	struct stats_scratch scratch;
};

const struct usage_limits usage_default_limits = {.nodes_max = 20000, .pods_per_node_max = 8192};

struct usage_state *usage_new(const struct usage_limits *limits)
{
	struct usage_state *u = mem_zalloc(1, sizeof(*u));

	u->limits = *limits;
	return u;
}

void usage_set_demand(struct usage_state *u, struct demand *d)
{
	u->demand = d;
}

void usage_free(struct usage_state *u)
{
	if (!u)
		return;
	HASH_CLEAR(hh, u->index);
	for (size_t i = 0; i < u->count; i++)
		usage_node_free(u->nodes[i]);
	free(u->nodes);
	free(u->stale);
	free(u->node_stats);
	stats_scratch_free_members(&u->scratch);
	free(u);
}

static int compare_name(const void *name, const void *node)
{
	return strcmp(name, (*(struct usage_node *const *)node)->name);
}

/* Where the node is, or would be inserted. */
static size_t node_place(const struct usage_state *u, const char *name)
{
	return array_lower_bound(name, u->nodes, u->count, sizeof(struct usage_node *),
				 compare_name);
}

static struct usage_node *find_node(const struct usage_state *u, const char *name)
{
	struct usage_node *n;

	HASH_FIND(hh, u->index, name, strlen(name), n);
	return n;
}

static void insert_node(struct usage_state *u, struct usage_node *n)
{
	size_t at = node_place(u, n->name);

	u->nodes = array_grow(u->nodes, u->count, sizeof(struct usage_node *));
	memmove(&u->nodes[at + 1], &u->nodes[at], (u->count - at) * sizeof(struct usage_node *));
	u->count++;
	u->nodes[at] = n;
	HASH_ADD_KEYPTR(hh, u->index, n->name, strlen(n->name), n);
}

static enum usage_verdict __attribute__((format(printf, 2, 3)))
refuse(struct usage_answer *answer, const char *format, ...)
{
	MEM_FORMAT(answer->reason, sizeof(answer->reason), format);
	return USAGE_REFUSED;
}

static enum usage_verdict need_full(struct usage_answer *answer, uint64_t from)
{
	answer->resend_from = from;
	return USAGE_NEED_FULL;
}

static bool was_asked(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN])
{
	return n && n->has_asked && memcmp(n->asked_run, run, FRAME_RUN_LEN) == 0;
}

/*
 * The very frame that was asked. An agent sends it twice when its connection is replaced just then;
 * it is not the answer to the order, and taking it for one would make duplicates of everything that
 * the agent goes back to.
 */
static bool is_copy(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
		    const uint8_t nonce[FRAME_NONCE_LEN])
{
	return nonce && was_asked(n, run) && memcmp(n->asked_nonce, nonce, FRAME_NONCE_LEN) == 0;
}

/* Is it news? n is NULL for a node not heard before; the interval's times are ours. */
static enum usage_verdict judge_order(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
				      const uint8_t nonce[FRAME_NONCE_LEN],
				      const struct interval *i, int64_t now_ns,
				      struct usage_answer *answer)
{
	if (is_copy(n, run, nonce))
		return need_full(answer, 1);
	if (i->end_ns > now_ns + FUTURE_NS)
		return refuse(answer,
			      "the interval ends %" PRId64 " s from now: the node's clock is ahead",
			      (i->end_ns - now_ns) / SECOND_NS);
	if (i->end_ns < now_ns - USAGE_KEEP_NS)
		return USAGE_TOO_OLD;
	if (usage_node_runs(n, run))
		return USAGE_APPLIED;
	if (n && n->counted.known && !usage_mark_is(&n->counted, run) &&
	    i->start_ns < n->head.end_ns - RUN_OVERLAP_NS)
		return refuse(answer,
			      "a new run starts %" PRId64
			      " s before the end of what the node's last run told",
			      (n->head.end_ns - i->start_ns) / SECOND_NS);
	if (i->sequence == 1 || was_asked(n, run))
		return USAGE_APPLIED;
	return need_full(answer, 1);
}

static enum usage_verdict judge_content(const struct usage_state *u, const struct usage_node *n,
					const uint8_t run[FRAME_RUN_LEN], const struct interval *i,
					struct usage_answer *answer)
{
	uint32_t missing;
	size_t pods;

	if (usage_check(i, answer->reason, sizeof(answer->reason)) < 0)
		return USAGE_REFUSED;
	if (!usage_node_knows(n, usage_node_runs(n, run), i, &missing, &pods)) {
		if (i->full)
			return refuse(answer,
				      "entry %" PRIu32 " of a full interval has no identity",
				      missing);
		return need_full(answer, i->sequence);
	}
	if (pods > u->limits.pods_per_node_max)
		return refuse(answer, "%zu pods, units and slices; the limit is %" PRIu32, pods,
			      u->limits.pods_per_node_max);
	return USAGE_APPLIED;
}

static uint64_t durable_of(const struct usage_state *u, const struct usage_node *n,
			   const uint8_t run[FRAME_RUN_LEN])
{
	const struct usage_mark *m = n->packed.save <= u->saved ? &n->packed.mark : &n->durable;

	return usage_mark_is(m, run) ? m->sequence : 0;
}

/*
 * How many published intervals the run went past since the last one we have; without any, nobody
 * knows.
 */
static uint64_t missing_before(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
			       const struct interval *i)
{
	uint64_t through = i->sequence > i->merged ? i->sequence - i->merged : 0, have;

	if (usage_node_runs(n, run))
		have = n->sequence;
	else if (usage_mark_is(&n->counted, run))
		have = n->counted.sequence;
	else
		return 0;
	return through > have ? through - have : 0;
}

/*
 * Moves the interval, a copy of what was told, to our clock; *clock, which was the node's, then
 * knows what it teaches.
 */
static enum usage_verdict take_times(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
				     struct interval *i, int64_t now_ns, struct node_clock *clock,
				     struct usage_answer *answer)
{
	bool same_run = n && usage_node_runs(n, run);

	if (i->start_ns <= 0 || i->start_ns >= i->end_ns || i->end_ns > FARTHEST_NS)
		return refuse(answer, "the interval starts at %" PRId64 " ns and ends at %" PRId64,
			      i->start_ns, i->end_ns);
	if (same_run && i->sequence <= n->sequence)
		return USAGE_DUPLICATE;
	node_clock_hear(clock, i, same_run && i->sequence - i->merged == n->sequence, now_ns);
	i->start_ns += clock->correction_ns;
	i->end_ns += clock->correction_ns;
	return USAGE_APPLIED;
}

/* Whether the windows, which do not have the interval yet, are of a future that our clock left. */
static bool are_ahead(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
		      const struct interval *i, int64_t now_ns)
{
	bool has = usage_mark_is(&n->counted, run) && i->sequence <= n->counted.sequence;

	return !has && node_windows_newest_ns(n->windows) > now_ns + FUTURE_NS;
}

/* Says it once, and again when the clock was right in between. */
static void flag_clock(struct usage_node *n, struct usage_answer *answer)
{
	int64_t ahead_ns;

	if (!node_clock_skew(&n->clock, &ahead_ns))
		return;
	if (llabs(ahead_ns) > NODE_CLOCK_FLAGGED_NS && !n->clock_flagged) {
		answer->clock_flagged = n->clock_flagged = true;
		answer->clock_ahead_seconds = (double)ahead_ns / (double)SECOND_NS;
	} else if (llabs(ahead_ns) < UNFLAG_NS) {
		n->clock_flagged = false;
	}
}

static void note_stale(struct usage_state *u, struct usage_node *n)
{
	size_t waiting = u->stale_end - u->stale_from;

	u->dirty = true;
	if (n->stale)
		return;
	n->stale = true;
	if (u->stale_end == u->stale_room) {
		/* Either half of it is free then, or it becomes so. */
		if (2 * waiting >= u->stale_room) {
			u->stale_room = u->stale_room ? 2 * u->stale_room : 8;
			u->stale =
				mem_realloc(u->stale, u->stale_room * sizeof(struct usage_node *));
		}
		memmove(u->stale, u->stale + u->stale_from, waiting * sizeof(struct usage_node *));
		u->stale_from = 0;
		u->stale_end = waiting;
	}
	u->stale[u->stale_end++] = n;
}

size_t usage_stale(const struct usage_state *u)
{
	return u->stale_end - u->stale_from;
}

size_t usage_build_stats(struct usage_state *u, size_t most)
{
	size_t built = 0;

	for (; built < most && u->stale_from < u->stale_end; built++) {
		struct usage_node *n = u->stale[u->stale_from++];

		n->stale = false;
		n->stats = usage_node_stats(n, &u->scratch);
	}
	return built;
}

void usage_apply(struct usage_state *u, const char *node, const uint8_t run[FRAME_RUN_LEN],
		 const uint8_t nonce[FRAME_NONCE_LEN], struct interval *told, int64_t now_ns,
		 struct usage_answer *answer)
{
	struct usage_node *n = find_node(u, node);
	struct node_clock clock = n ? n->clock : (struct node_clock){0};
	struct interval interval = *told;
	bool ask;

	*answer = (struct usage_answer){0};
	answer->applied = n && usage_node_runs(n, run) ? n->sequence : 0;
	answer->durable = n ? durable_of(u, n, run) : 0;
	answer->verdict = take_times(n, run, &interval, now_ns, &clock, answer);
	if (answer->verdict == USAGE_APPLIED)
		answer->verdict = judge_order(n, run, nonce, &interval, now_ns, answer);
	ask = answer->verdict == USAGE_NEED_FULL;
	if (answer->verdict == USAGE_APPLIED)
		answer->verdict = judge_content(u, n, run, &interval, answer);
	if (answer->verdict != USAGE_APPLIED && !ask)
		return;
	if (!n && u->count >= u->limits.nodes_max) {
		answer->resend_from = 0;
		answer->verdict = refuse(answer, "%zu nodes are known; the limit is %" PRIu32,
					 u->count, u->limits.nodes_max);
		return;
	}
	if (!n) {
		n = usage_node_new(node, now_ns);
		insert_node(u, n);
	}
	n->heard_ns = now_ns;
	n->clock = clock;
	if (ask) {
		memcpy(n->asked_run, run, FRAME_RUN_LEN);
		n->has_asked = true;
		if (nonce)
			memcpy(n->asked_nonce, nonce, FRAME_NONCE_LEN);
		return;
	}
	usage_quarantine(&interval, &answer->quarantine);
	answer->missing = missing_before(n, run, &interval);
	if (are_ahead(n, run, &interval, now_ns))
		usage_node_clear_windows(n);
	answer->lost =
		usage_node_apply(n, run, &interval, ++u->generation, u->limits.pods_per_node_max);
	usage_node_note(n, &answer->quarantine, interval.end_ns);
	if (u->demand)
		demand_apply(u->demand, n, &interval);
	flag_clock(n, answer);
	answer->applied = interval.sequence;
	note_stale(u, n);
}

/* --- who may tell ----------------------------------------------------------------------------- */

static bool is_within(const struct usage_node *n, int64_t span_ns, int64_t now_ns)
{
	return now_ns >= n->told_ns && now_ns - n->told_ns < span_ns;
}

enum usage_admission usage_admit(const struct usage_state *u, const struct frame_header *header,
				 uint64_t connection, int64_t now_ns)
{
	const struct usage_node *n = find_node(u, header->node);
	bool early;

	if (!n)
		return USAGE_ADMITTED;
	early = is_within(n, n->alone_ns, now_ns);
	if (usage_node_runs(n, header->run)) {
		if (!n->connection || n->connection == connection ||
		    header->sequence <= n->sequence)
			return USAGE_ADMITTED;
	} else if (n->connection && is_within(n, LIVE_NS, now_ns)) {
		return USAGE_RIVAL;
	} else if (!n->has_run && usage_mark_is(&n->counted, header->run)) {
		return USAGE_ADMITTED;
	}
	return early ? USAGE_EARLY : USAGE_ADMITTED;
}

void usage_note_connection(struct usage_state *u, const char *node, uint64_t connection,
			   int64_t span_ns, int64_t now_ns)
{
	struct usage_node *n = find_node(u, node);

	if (!n)
		return;
	n->connection = connection;
	n->told_ns = now_ns;
	n->alone_ns = OVERDUE_NS + (span_ns < SPAN_MOST_NS ? span_ns : SPAN_MOST_NS);
}

void usage_note_closed(struct usage_state *u, const char *node, uint64_t connection)
{
	struct usage_node *n = find_node(u, node);

	if (n && n->connection == connection)
		n->connection = 0;
}

/* --- forgetting, and coming back -------------------------------------------------------------- */

int64_t usage_forget_before_ns(int64_t now_ns)
{
	return now_ns - FORGET_NS;
}

static bool is_silent(const struct usage_node *n, int64_t now_ns)
{
	return n->heard_ns < usage_forget_before_ns(now_ns);
}

static void forget_node(struct usage_state *u, struct usage_node *n)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the index has what the array has */
	HASH_DEL(u->index, n);
	usage_node_free(n);
}

static void forget_silent(struct usage_state *u, int64_t now_ns)
{
	size_t count = 0, stale = u->stale_from;

	for (size_t i = u->stale_from; i < u->stale_end; i++)
		if (!is_silent(u->stale[i], now_ns))
			u->stale[stale++] = u->stale[i];
	u->stale_end = stale;
	for (size_t i = 0; i < u->count; i++) {
		if (is_silent(u->nodes[i], now_ns))
			forget_node(u, u->nodes[i]);
		else
			u->nodes[count++] = u->nodes[i];
	}
	u->count = count;
}

struct node_stats *const *usage_gather_stats(struct usage_state *u, int64_t now_ns, size_t *count)
{
	forget_silent(u, now_ns);
	u->node_stats = mem_realloc(u->node_stats, (u->count + 1) * sizeof(struct node_stats *));
	*count = 0;
	for (size_t i = 0; i < u->count; i++) {
		struct usage_node *n = u->nodes[i];
		struct node_stats *stats = n->stats ? n->stats : n->old_stats;

		if (stats)
			u->node_stats[(*count)++] = stats;
	}
	u->dirty = usage_stale(u) > 0;
	return u->node_stats;
}

bool usage_dirty(const struct usage_state *u)
{
	return u->dirty;
}

int usage_read_buckets(const struct usage_state *u, const char *node, const struct pod_stats *pod,
		       struct window_buckets *out)
{
	const struct usage_node *n = find_node(u, node);
	const struct usage_pod *p = n && pod ? usage_node_find_pod(n, pod) : NULL;

	if (!n || (pod && !p))
		return -ENOENT;
	if (p)
		pod_windows_buckets(p->windows, out);
	else
		node_windows_buckets(n->windows, out);
	return 0;
}

/* --- the database ----------------------------------------------------------------------------- */

uint64_t usage_save_begin(struct usage_state *u)
{
	u->save_after[0] = '\0';
	return ++u->save;
}

static bool is_saved(const struct usage_state *u, const struct usage_node *n)
{
	return !n->counted.known ||
	       (n->packed.save <= u->saved && n->packed.generation == n->head.generation);
}

static void pack_row(struct usage_state *u, struct usage_node *n, struct usage_row *row)
{
	if (n->packed.save <= u->saved)
		n->durable = n->packed.mark;
	n->packed = (struct usage_packed){
		.save = u->save,
		.generation = n->head.generation,
		.mark = n->counted,
	};
	*row = (struct usage_row){.name = mem_strdup(n->name), .heard_ns = n->heard_ns};
	usage_node_pack(n, &row->packed);
}

size_t usage_save_next(struct usage_state *u, struct usage_row *rows, size_t most)
{
	size_t at = node_place(u, u->save_after), count = 0;

	if (at < u->count && strcmp(u->nodes[at]->name, u->save_after) == 0)
		at++;
	for (; at < u->count && count < most; at++) {
		struct usage_node *n = u->nodes[at];

		if (!is_saved(u, n))
			pack_row(u, n, &rows[count++]);
	}
	if (at)
		memcpy(u->save_after, u->nodes[at - 1]->name, strlen(u->nodes[at - 1]->name) + 1);
	return count;
}

void usage_row_fini(struct usage_row *row)
{
	free(row->name);
	buf_fini(&row->packed);
}

void usage_save_done(struct usage_state *u, uint64_t save)
{
	if (save > u->saved)
		u->saved = save;
}

void usage_save_reset(struct usage_state *u)
{
	for (size_t i = 0; i < u->count; i++) {
		u->nodes[i]->packed = (struct usage_packed){0};
		u->nodes[i]->durable = (struct usage_mark){0};
	}
}

static int judge_restored(const struct usage_state *u, const struct usage_node *n, int64_t now_ns)
{
	int64_t newest_ns = node_windows_newest_ns(n->windows);

	if (find_node(u, n->name))
		return -EEXIST;
	if (n->heard_ns < usage_forget_before_ns(now_ns))
		return -ESTALE;
	if (n->heard_ns > now_ns + FUTURE_NS || n->head.end_ns > now_ns + FUTURE_NS ||
	    newest_ns > now_ns + FUTURE_NS)
		return -ERANGE;
	return u->count < u->limits.nodes_max ? 0 : -ENOSPC;
}

int usage_restore(struct usage_state *u, struct usage_node *n, int64_t now_ns)
{
	int rc = judge_restored(u, n, now_ns);

	if (rc) {
		usage_node_free(n);
		return rc;
	}
	usage_node_restore(n, now_ns, ++u->generation);
	n->told_ns = now_ns;
	n->alone_ns = COME_BACK_NS;
	insert_node(u, n);
	note_stale(u, n);
	return 0;
}
