/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every question about an interval is decided before anything of it is applied: first whether it is news (run,
 * sequence, time), then whether its values can be, then whether all its references are known. So no answer but
 * USAGE_APPLIED leaves a trace, except that a run that was asked for everything is remembered as asked.
 *
 *   does not end after it starts                  -> refused
 *   run known, sequence <= applied                -> duplicate
 *   ends over 5 min after now                     -> refused (clock)
 *   ends over 15 min + a bucket before now        -> too old
 *   new run, not from its beginning, not asked,   -> refused: a second agent of that name; taking both
 *   while the old one was heard within 30 s          in turn would ask each for everything again and again
 *   new run, starts over 5 s before what we have  -> refused
 *   new run, sequence not 1, not asked yet        -> need full, from 1
 *   impossible values, limits                     -> refused
 *   reference without identity                    -> need full, from here
 *   else                                          -> applied
 *
 * Nodes are an array sorted by name, as views want it. A node silent for a day is forgotten.
 */
#include "aggregator/state/usage.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/usage_check.h"
#include "aggregator/state/usage_node.h"
#include "shared/mem.h"

#define SECOND_NS      INT64_C(1000000000)
#define FUTURE_NS      (300 * SECOND_NS)
#define RUN_OVERLAP_NS (5 * SECOND_NS)
#define LIVE_NS	       (30 * SECOND_NS)
#define SILENT_NS      (24 * 3600 * SECOND_NS)

struct usage_state {
	struct usage_limits limits; /* fixed after start */
	size_t count, room;
	struct usage_node **nodes; /* owned; sorted by name */
	uint64_t generation; /* of the newest change of any node */
	uint64_t version; /* of the newest view */
	bool dirty;
	struct page_scratch scratch;
};

struct usage_state *usage_new(const struct usage_limits *limits)
{
	struct usage_state *u = mem_zalloc(1, sizeof(*u));

	u->limits = *limits;
	return u;
}

void usage_free(struct usage_state *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->count; i++)
		usage_node_free(u->nodes[i]);
	free(u->nodes);
	page_scratch_free_members(&u->scratch);
	free(u);
}

/* Where the node is, or would be inserted. */
static size_t node_place(const struct usage_state *u, const char *name)
{
	size_t low = 0, high = u->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(u->nodes[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct usage_node *find_node(const struct usage_state *u, const char *name)
{
	size_t at = node_place(u, name);

	return at < u->count && strcmp(u->nodes[at]->name, name) == 0 ? u->nodes[at] : NULL;
}

static struct usage_node *add_node(struct usage_state *u, const char *name)
{
	size_t at = node_place(u, name);

	if (u->count == u->room) {
		u->room = u->room ? 2 * u->room : 64;
		u->nodes = mem_realloc(u->nodes, u->room * sizeof(struct usage_node *));
	}
	memmove(&u->nodes[at + 1], &u->nodes[at], (u->count - at) * sizeof(struct usage_node *));
	u->count++;
	u->nodes[at] = usage_node_new(name);
	return u->nodes[at];
}

static enum usage_verdict __attribute__((format(printf, 2, 3)))
refuse(struct usage_answer *answer, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(answer->reason, sizeof(answer->reason), format, args);
	va_end(args);
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

/* An agent that was restarted tells its run from the beginning; one in the middle of a run never stopped. */
static bool is_rival(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
		     const struct interval *i, int64_t now_ns)
{
	return n && n->has_run && i->sequence > i->merged && !was_asked(n, run) &&
	       now_ns - n->heard_ns < LIVE_NS;
}

/* Is it news? n is NULL for a node not heard before. */
static enum usage_verdict judge_order(const struct usage_node *n, const uint8_t run[FRAME_RUN_LEN],
				      const struct interval *i, int64_t now_ns,
				      struct usage_answer *answer)
{
	if (i->start_ns <= 0 || i->start_ns >= i->end_ns)
		return refuse(answer, "the interval starts at %" PRId64 " ns and ends at %" PRId64,
			      i->start_ns, i->end_ns);
	if (usage_node_runs(n, run) && i->sequence <= n->sequence)
		return USAGE_DUPLICATE;
	if (i->end_ns > now_ns + FUTURE_NS)
		return refuse(answer,
			      "the interval ends %" PRId64 " s from now: the node's clock is ahead",
			      (i->end_ns - now_ns) / SECOND_NS);
	if (i->end_ns < now_ns - USAGE_KEEP_NS)
		return USAGE_TOO_OLD;
	if (usage_node_runs(n, run))
		return USAGE_APPLIED;
	if (is_rival(n, run, i, now_ns))
		return refuse(answer, "another agent reports as this node: give each a --node-name "
				      "of its own");
	if (n && n->has_run && i->start_ns < n->head.end_ns - RUN_OVERLAP_NS)
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

void usage_apply(struct usage_state *u, const char *node, const uint8_t run[FRAME_RUN_LEN],
		 const struct interval *interval, int64_t now_ns, struct usage_answer *answer)
{
	struct usage_node *n = find_node(u, node);
	bool ask;

	*answer = (struct usage_answer){0};
	answer->applied = usage_node_runs(n, run) ? n->sequence : 0;
	answer->verdict = judge_order(n, run, interval, now_ns, answer);
	ask = answer->verdict == USAGE_NEED_FULL;
	if (answer->verdict == USAGE_APPLIED)
		answer->verdict = judge_content(u, n, run, interval, answer);
	if (answer->verdict != USAGE_APPLIED && !ask)
		return;
	if (!n && u->count >= u->limits.nodes_max) {
		answer->resend_from = 0;
		answer->verdict = refuse(answer, "%zu nodes are known; the limit is %" PRIu32,
					 u->count, u->limits.nodes_max);
		return;
	}
	if (!n)
		n = add_node(u, node);
	n->heard_ns = now_ns;
	if (ask) {
		memcpy(n->asked_run, run, FRAME_RUN_LEN);
		n->has_asked = true;
		return;
	}
	usage_node_apply(n, run, interval, ++u->generation, u->limits.pods_per_node_max);
	answer->applied = interval->sequence;
	u->dirty = true;
}

static void forget_silent(struct usage_state *u, int64_t now_ns)
{
	size_t count = 0;

	for (size_t i = 0; i < u->count; i++) {
		if (now_ns - u->nodes[i]->heard_ns > SILENT_NS)
			usage_node_free(u->nodes[i]);
		else
			u->nodes[count++] = u->nodes[i];
	}
	u->count = count;
}

struct view *usage_view(struct usage_state *u, int64_t now_ns)
{
	struct node_page **pages;
	size_t count = 0;

	forget_silent(u, now_ns);
	pages = mem_alloc(u->count * sizeof(struct node_page *));
	for (size_t i = 0; i < u->count; i++) {
		struct usage_node *n = u->nodes[i];

		if (!n->has_run)
			continue;
		if (!n->page)
			n->page = usage_node_page(n, &u->scratch);
		pages[count++] = page_hold(n->page);
	}
	u->dirty = false;
	return view_new(++u->version, now_ns, pages, count);
}

bool usage_dirty(const struct usage_state *u)
{
	return u->dirty;
}
