/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions and their times. A record is a change of a node's verdict or decisive reason; a new
 * node that is needed, and a node that was not examined, add none. Each record is kept twice: in
 * the bounded history of the state, for snapshots, and with the step.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

enum { TEXT_MAX = 512, WAVE_NAMES = 16 };

/* --- records */

void drain_record_fini(struct drain_record *r)
{
	free(r->node);
	free(r->text);
}

static void free_records(struct drain_record *of, size_t count)
{
	for (size_t i = 0; i < count; i++)
		drain_record_fini(&of[i]);
}

static struct drain_record copy_of(const struct drain_record *r)
{
	struct drain_record copy = *r;

	copy.node = mem_strdup(r->node);
	copy.text = mem_strndup(r->text, strnlen(r->text, TEXT_MAX));
	return copy;
}

void drain_history_add(struct drain_state *s, const struct drain_record *record)
{
	if (!s->history)
		s->history = mem_zalloc(DRAIN_HISTORY_MAX, sizeof(*s->history));
	if (s->history_count == DRAIN_HISTORY_MAX) {
		size_t dropped = DRAIN_HISTORY_MAX / 4;

		free_records(s->history, dropped);
		s->history_count -= dropped;
		memmove(s->history, s->history + dropped, s->history_count * sizeof(*s->history));
	}
	s->history[s->history_count++] = copy_of(record);
}

void drain_state_note(struct drain_state *s, const struct drain_record *record)
{
	drain_history_add(s, record);
	if (s->fresh_count == DRAIN_RECORDS_MAX)
		return;
	ARRAY_ADD(s->fresh, s->fresh_count) = copy_of(record);
}

const struct drain_record *drain_state_history(const struct drain_state *s, size_t *count)
{
	*count = s->history_count;
	return s->history;
}

/* --- the last verdicts */

void drain_history_clear(struct drain_state *s)
{
	free_records(s->history, s->history_count);
	free(s->history);
	free_records(s->fresh, s->fresh_count);
	free(s->fresh);
	for (size_t i = 0; i < s->recorded_count; i++)
		free(s->recorded[i].node);
	free(s->recorded);
	free(s->wave);
}

struct drain_recorded *drain_state_set_recorded(struct drain_state *s, const char *node,
						enum drain_event event, enum drain_reason reason)
{
	size_t at;

	s->recorded =
		array_put_name(s->recorded, &s->recorded_count, sizeof(*s->recorded), node, &at);
	s->recorded[at].event = event;
	s->recorded[at].reason = reason;
	return &s->recorded[at];
}

/* --- after a step */

const struct drain_why *drain_decisive(const struct drain_plan_node *n)
{
	if (n->reason_count > 1 && n->reasons[0].code == DRAIN_BLOCKED_BY_POD)
		return &n->reasons[1];
	return n->reason_count ? &n->reasons[0] : NULL;
}

static void write_text(const struct drain_plan_node *n, const struct drain_why *why, struct buf *b)
{
	if (n->verdict == DRAIN_SELECTED && !n->move_count)
		buf_add_str(b, "nothing on it has to move");
	else if (n->verdict == DRAIN_SELECTED)
		buf_printf(b, "%zu %s", n->move_count,
			   drain_plural(n->move_count, "pod moves", "pods move"));
	if (why && why != &n->reasons[0])
		buf_printf(b, "%s: ", n->reasons[0].text);
	buf_add_str(b, why ? why->text : "");
}

static void note_node(struct drain_run *r, const struct drain_plan_node *n)
{
	const struct drain_why *why = drain_decisive(n);
	struct drain_record record = {.time_ns = r->now_ns,
				      .event = (enum drain_event)n->verdict,
				      .reason = why ? why->code : DRAIN_NONE,
				      .node = (char *)n->name};
	struct drain_state *s = r->state;
	struct drain_recorded *last =
		array_search_name(s->recorded, s->recorded_count, sizeof(*s->recorded), n->name);
	struct buf text = BUF_INIT;

	if (n->verdict == DRAIN_UNEXAMINED) {
		if (last)
			last->seen = true;
		return;
	}
	record.verdict = !last || last->event != record.event;
	if ((last && (last->event != record.event || last->reason != record.reason)) ||
	    (!last && record.event != DRAIN_EVENT_NEEDED)) {
		write_text(n, why, &text);
		record.text = text.data;
		drain_state_note(s, &record);
		buf_fini(&text);
	}
	drain_state_set_recorded(s, n->name, record.event, record.reason)->seen = true;
}

static void forget_unseen(struct drain_state *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->recorded_count; i++) {
		struct drain_recorded *t = &s->recorded[i];

		if (!t->seen) {
			free(t->node);
			continue;
		}
		t->seen = false;
		s->recorded[kept++] = *t;
	}
	s->recorded_count = kept;
}

static void describe_wave(const struct drain_wave *w, struct buf *b)
{
	size_t told = w->node_count < WAVE_NAMES ? w->node_count : WAVE_NAMES;

	if (!w->node_count)
		return;
	buf_printf(b, "%zu %s: ", w->node_count,
		   drain_plural(w->node_count, "node goes", "nodes go"));
	for (size_t i = 0; i < told; i++)
		buf_printf(b, "%s%s", i ? ", " : "", w->nodes[i]->name);
	if (told < w->node_count)
		buf_printf(b, ", and %zu more", w->node_count - told);
	buf_printf(b, "; %zu %s to %zu %s%s", w->pods,
		   drain_plural(w->pods, "pod moves", "pods move"), w->destination_count,
		   drain_plural(w->destination_count, "node", "nodes"),
		   w->robust || !w->pods ? "" : "; not robust");
}

static void note_wave(struct drain_run *r)
{
	struct drain_state *s = r->state;
	struct buf text = BUF_INIT;

	describe_wave(&r->plan->wave, &text);
	if (strcmp(text.len ? text.data : "", s->wave ? s->wave : "") != 0)
		drain_state_note(s, &(struct drain_record){
					    .time_ns = r->now_ns,
					    .event = DRAIN_EVENT_WAVE,
					    .node = (char *)"",
					    .text = text.len ? text.data : (char *)"no node goes"});
	free(s->wave);
	s->wave = text.len ? buf_take(&text, NULL) : NULL;
	buf_fini(&text);
}

void drain_note_plan(struct drain_run *r)
{
	struct drain_state *s = r->state;

	for (size_t i = 0; i < r->plan->node_count; i++)
		note_node(r, &r->plan->nodes[i]);
	forget_unseen(s);
	note_wave(r);
	r->plan->records = s->fresh;
	r->plan->record_count = s->fresh_count;
	s->fresh = NULL;
	s->fresh_count = 0;
}
