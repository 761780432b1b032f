/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The narration of a step, one statement a line. Neighbouring moves of the same kind are one
 * statement, and long lists are cut; the result has every move.
 */
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/mem.h"
#include "shared/units.h"

enum { NODES_TOLD = 8, LINES_TOLD = 200 };

#define MIB (1024LL * 1024)

void slack_add_issue(struct slack_result *r, const char *who, const char *format, ...)
{
	struct error text;

	MEM_FORMAT(text.text, sizeof(text.text), format);
	ARRAY_ADD(r->issues, r->issue_count) =
		(struct slack_issue){mem_strdup(who), mem_strdup(text.text)};
}

const char *slack_result_name(struct slack_result *r, const char *name)
{
	/* Names come in runs. */
	if (r->name_count && strcmp(r->names[r->name_count - 1], name) == 0)
		return r->names[r->name_count - 1];
	return ARRAY_ADD(r->names, r->name_count) = mem_strdup(name);
}

struct slack_move *slack_add_move(struct slack_run *r, enum slack_cause cause, const char *class,
				  const char *from, const char *to)
{
	struct slack_result *out = r->result;

	ARRAY_ADD(out->moves, out->move_count) =
		(struct slack_move){.class = class, .from = from, .to = to, .cause = cause};
	return &out->moves[out->move_count - 1];
}

void slack_write_amount(struct buf *out, const struct slack_amount *a)
{
	buf_printf(out, "%lldm and %lld MiB", (long long)a->cpu_milli,
		   (long long)(a->mem_bytes / MIB + (a->mem_bytes % MIB > 0)));
}

/* --- moves */

static bool same_line(const struct slack_move *a, const struct slack_move *b)
{
	return a->cause == b->cause && a->filter == b->filter &&
	       array_is_same_text(a->class, b->class) && array_is_same_text(a->by, b->by);
}

/* "n1, n2 (2), n7": the origins or the destinations. */
static void write_nodes(struct buf *out, const struct slack_move *moves, size_t count, bool to)
{
	size_t told = 0;

	for (size_t i = 0, same; i < count; i += same) {
		const char *node = to ? moves[i].to : moves[i].from;

		for (same = 1; i + same < count; same++)
			if (!array_is_same_text(node,
						to ? moves[i + same].to : moves[i + same].from))
				break;
		if (told++ == NODES_TOLD) {
			buf_printf(out, " and %zu more", count - i);
			return;
		}
		buf_printf(out, "%s%s", i ? ", " : "", node);
		if (same > 1)
			buf_printf(out, " (%zu)", same);
	}
}

static void write_moves(struct buf *out, const struct slack_move *m, size_t count)
{
	static const struct {
		const char *text, *end;
	} causes[SLACK_CAUSES] = {
		[SLACK_PUSHED_OUT] = {"is pushed out (", "): "},
		[SLACK_NODE_LEFT] = {"loses nodes", ": "},
		[SLACK_SURPLUS] = {"is given up", ": "},
		[SLACK_CLASS_LEFT] = {"is not asked for any more", ": "},
		[SLACK_DISPLACED] = {"makes way for ", ": from "},
		[SLACK_PLACED] = {"is placed", ": "},
	};
	const char *filter = m->cause == SLACK_PUSHED_OUT ? place_filter_name(m->filter) : "";

	buf_printf(out, "%s %s%s%s", m->class, causes[m->cause].text, m->by ? m->by : filter,
		   causes[m->cause].end);
	write_nodes(out, m, count, m->cause == SLACK_PLACED);
	if (m->cause == SLACK_DISPLACED) {
		buf_add_str(out, " to ");
		write_nodes(out, m, count, true);
	}
	buf_add_char(out, '\n');
}

static void tell_moves(const struct slack_result *r, struct buf *out)
{
	size_t lines = 0;

	for (size_t i = 0, same; i < r->move_count; i += same) {
		for (same = 1; i + same < r->move_count; same++)
			if (!same_line(&r->moves[i], &r->moves[i + same]))
				break;
		if (lines++ == LINES_TOLD) {
			buf_printf(out, "%zu more moves are not told\n", r->move_count - i);
			return;
		}
		write_moves(out, &r->moves[i], same);
	}
}

/* --- the rest */

static void tell_target(const struct slack_run *r, struct buf *out)
{
	const struct slack_result *res = r->result;

	buf_printf(out, "%u node%s ", res->nodes, res->nodes == 1 ? " gives" : "s give");
	slack_write_amount(out, &res->allocatable);
	buf_add_str(out, ", of which ");
	slack_write_amount(out, &res->requested);
	buf_add_str(out, " are requested; slack shall be ");
	slack_write_amount(out, &res->extra);
	if (res->by_arrivals) {
		buf_printf(out, ", what arrived while a node starts in 95 %% of %lld such times\n",
			   (long long)res->arrival_spans);
		return;
	}
	buf_printf(out, ", %g %% of what is %s", (double)r->options->rate_ppm / 10000,
		   r->options->base == SLACK_BASE_REQUESTED ? "requested" : "allocatable");
	if (r->options->from_arrivals)
		buf_printf(out,
			   ", until arrivals were watched for %lld times as long as a node needs "
			   "to start, and not %lld",
			   (long long)slack_arrivals_needed(r->options->node_start_ns),
			   (long long)res->arrival_spans);
	buf_add_char(out, '\n');
}

static void tell_class(const struct slack_run *r, const struct slack_class *c, struct buf *out)
{
	if (!c->wanted)
		return;
	buf_printf(out, "%s (", c->key);
	slack_write_amount(out, &c->shape);
	buf_printf(out, "): %u of %u placed, ", c->placed, c->wanted);
	if (c->balloons)
		buf_printf(out, "%u balloons hold room, ", c->balloons);
	buf_printf(out, "%s%lld could start by requests", c->slots_more ? "at least " : "",
		   (long long)c->slots);
	if (c->slots_by_use >= 0)
		buf_printf(out, ", %lld by real use", (long long)c->slots_by_use);
	buf_printf(out, ", %lld.%lld %% fragmented", (long long)c->fragmentation_ppm / 10000,
		   (long long)c->fragmentation_ppm / 1000 % 10);
	if (c->target < c->wanted)
		buf_printf(out, "; %u would do, in %lld s fewer are kept", c->target,
			   (long long)(c->lower_ns - r->now_ns) / 1000000000);
	if (c->fits_no_node)
		buf_add_str(out, "; no node there is could hold one");
	else if (c->unplaced)
		buf_printf(out, "; %u find%s no place: %s", c->unplaced,
			   c->unplaced == 1 ? "s" : "", c->why.text);
	buf_add_char(out, '\n');
}

static int compare_issues(const void *left, const void *right)
{
	const struct slack_issue *a = left, *b = right;

	return strcmp(a->who, b->who) ?: strcmp(a->text, b->text);
}

void slack_tell(struct slack_run *r)
{
	struct slack_result *res = r->result;
	struct buf *out = &res->narration;

	array_sort(res->issues, res->issue_count, sizeof(*res->issues), compare_issues);
	tell_target(r, out);
	tell_moves(res, out);
	for (size_t c = 0; c < res->class_count; c++)
		tell_class(r, &res->classes[c], out);
	for (size_t i = 0; i < res->demand_count; i++) {
		const struct slack_demand *d = &res->demand[i];

		buf_printf(out, "%u more node%s like %s would hold what finds no place%s%s%s\n",
			   d->count, units_plural(d->count), d->like, *d->instance_type ? " (" : "",
			   d->instance_type, *d->instance_type ? ")" : "");
	}
	if (r->out_of_tries)
		buf_printf(out, "making way was tried on %u nodes, and not on all\n",
			   r->options->displace_max);
	for (size_t i = 0; i < res->issue_count; i++)
		buf_printf(out, "%s: %s\n", res->issues[i].who, res->issues[i].text);
}
