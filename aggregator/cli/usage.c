/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes and pods differ in their columns and rows, not in how a list is fetched and becomes a
 * table. With -o json the table stays empty: rows are only counted, since the exit code depends on
 * them.
 *
 * Fresh, late and expired are shown by words and by colour, never by colour alone. A call that
 * names things answers for those: one missing or not fresh is exit 4. Without names only a total
 * failure is, unless --strict.
 */
#include "aggregator/cli/usage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "shared/array.h"
#include "shared/mem.h"
#include "shared/units.h"

static const char *const state_words[] = {
	[ROW_FRESH] = "fresh",	[ROW_LATE] = "late",	 [ROW_EXPIRED] = "expired",
	[ROW_NONE] = "unknown", [ROW_APART] = "unknown",
};

void usage_tally_init(struct usage_tally *t, const struct cli *cli, const char *what)
{
	*t = (struct usage_tally){.cli = cli, .what = what};
	t->met = mem_zalloc(cli->operand_count, sizeof(*t->met));
}

void usage_tally_fini(struct usage_tally *t)
{
	free(t->met);
}

bool usage_tally_wants(const struct usage_tally *t, const char *name)
{
	const struct cli *cli = t->cli;

	return cli->operand_count == 0 ||
	       array_find_text(cli->operands, cli->operand_count, sizeof(*cli->operands), name);
}

void usage_tally_add(struct usage_tally *t, const char *name, enum row_state state, double age)
{
	const char *own = NULL;

	t->states[state]++;
	/* One name may stand for several pods, and may be given twice. */
	for (size_t i = 0; i < t->cli->operand_count; i++)
		if (strcmp(t->cli->operands[i], name) == 0) {
			t->met[i] = true;
			own = t->cli->operands[i];
		}
	if (own && state != ROW_FRESH && state != ROW_APART && !t->stale_name) {
		t->stale_name = own;
		t->stale_state = state;
		t->stale_age = age;
	}
}

static void explain_stale(const struct usage_tally *t, struct error *reason)
{
	char age[UNITS_LEN];

	units_age(t->stale_age, age);
	if (t->stale_state == ROW_NONE)
		error_set(reason, "of %s \"%s\" there is no usage", t->what, t->stale_name);
	else if (isnan(t->stale_age))
		error_set(reason, "the usage of %s \"%s\" is %s", t->what, t->stale_name,
			  state_words[t->stale_state]);
	else
		error_set(reason, "the usage of %s \"%s\" is %s: %s old", t->what, t->stale_name,
			  state_words[t->stale_state], age);
}

static size_t tally_total(const struct usage_tally *t)
{
	size_t total = 0;

	for (size_t i = ROW_FRESH; i < ROW_STATES; i++)
		total += t->states[i];
	return total;
}

int usage_tally_exit(const struct usage_tally *t, struct error *reason)
{
	size_t fresh = t->states[ROW_FRESH], total = tally_total(t);

	for (size_t i = 0; i < t->cli->operand_count; i++)
		if (!t->met[i])
			return error_fail(reason, CLI_STALE, "%s \"%s\" is not known", t->what,
					  t->cli->operands[i]);
	if (t->stale_name) {
		explain_stale(t, reason);
		return CLI_STALE;
	}
	/* Nothing that has such labels may well be what there is. */
	if (total == 0 && t->cli->options->selector)
		return error_fail(reason, CLI_OK, "no %s has labels %s", t->what,
				  t->cli->options->selector);
	if (t->cli->no_usage)
		return error_fail(reason, CLI_STALE, "%s", t->cli->no_usage);
	if (total == 0)
		return error_fail(reason, CLI_STALE,
				  "no %s is known: has an evenkeel-agent been started?", t->what);
	total -= t->states[ROW_APART];
	if (fresh == 0 && total > 0)
		return error_fail(
			reason, CLI_STALE,
			"no %s is fresh: nothing was heard of the %zu known for 30s or more",
			t->what, total);
	if (fresh < total && t->cli->options->strict)
		return error_fail(reason, CLI_STALE, "%zu of %zu %ss are not fresh (--strict)",
				  total - fresh, total, t->what);
	return CLI_OK;
}

/* --- the table -------------------------------------------------------------------------------- */

/* For cells of a row. */
struct measured {
	enum row_state state;
	double age; /* seconds */
};

void usage_table_init(struct usage_table *t, const struct usage_kind *kind, const struct cli *cli)
{
	*t = (struct usage_table){
		.kind = kind,
		.cli = cli,
		.row = columns_start(cli, kind->columns, kind->fields),
	};
	usage_tally_init(&t->tally, cli, kind->what);
}

void usage_table_fini(struct usage_table *t)
{
	table_free(t->row.table);
	usage_tally_fini(&t->tally);
}

void usage_table_add(struct usage_table *t, const cJSON *item, const char *name, double key,
		     enum row_state state, double age)
{
	const struct measured measured = {state, age};
	struct row row = t->row;

	row.item = item;
	row.more = &measured;
	columns_add_row(&row, name, key);
}

int usage_table_finish(struct usage_table *t, const cJSON *total, struct cli *cli)
{
	const struct column *columns = t->kind->columns;

	if (t->kind->add_total)
		t->kind->add_total(t, total);
	for (size_t i = 0; columns[i].title; i++)
		columns_show(&t->row, i,
			     !(columns[i].of_api && !t->known) &&
				     t->kind->is_shown(t, &columns[i], i));
	columns_print(cli, t->row.table, t->kind->what);
	if (tally_total(&t->tally) == 0 && cli->operand_count == 0 && t->kind->judge_none) {
		int code = t->kind->judge_none(cli);

		if (code >= 0)
			return code;
	}
	return usage_tally_exit(&t->tally, &cli->reason);
}

int usage_table_run(const struct usage_kind *kind, struct cli *cli, struct buf *path)
{
	struct usage_table table;
	struct list list;
	int rc, code;

	usage_table_init(&table, kind, cli);
	list_init(&list, kind->item, &table);
	rc = list_fetch(&list, cli->client, path->data, &cli->reason);
	code = client_exit(rc);
	if (rc == 0) {
		if (cli->options->output == OUTPUT_JSON)
			list_print_json(&list, &cli->out);
		code = usage_table_finish(&table, list.total, cli);
	}
	list_fini(&list);
	usage_table_fini(&table);
	buf_fini(path);
	return code;
}

/* --- what rows are made of -------------------------------------------------------------------- */

double usage_key_of(const struct cli *cli, const cJSON *item, const struct usage_key *key)
{
	const struct row r = {.cli = cli, .item = item};

	return fmax(key->at ? row_share(&r, key->at, key->of) : NAN,
		    key->other ? row_share(&r, key->other, key->other_of) : NAN);
}

void usage_cell_age(const struct row *r, const struct column *c)
{
	const struct measured *m = r->more;
	char age[UNITS_LEN];

	(void)c;
	units_age(m->age, age);
	if (m->state == ROW_NONE)
		table_cell(r->table, PAINT_BAD, "never");
	else if (m->state == ROW_APART)
		table_cell(r->table, PAINT_DIM, "-");
	else if (m->state == ROW_FRESH)
		table_cell(r->table, PAINT_PLAIN, age);
	else
		row_add(r, m->state == ROW_LATE ? PAINT_WARN : PAINT_BAD, true, "%s %s", age,
			state_words[m->state]);
}

enum table_paint usage_pressure(double share)
{
	return share >= 0.9 ? PAINT_BAD : share >= 0.75 ? PAINT_WARN : PAINT_PLAIN;
}

void usage_cell_micros(const struct row *r, const struct column *c)
{
	double us = row_number(r, c->at);

	if (us == 0)
		table_cell(r->table, PAINT_PLAIN, "0");
	else
		row_add_units(r, PAINT_PLAIN, units_micros, us);
}

void usage_cell_two_shares(const struct row *r, const struct column *c)
{
	double cpu = row_number(r, c->at), memory = row_number(r, c->of);
	char left[UNITS_LEN], right[UNITS_LEN];

	units_percent(cpu, left);
	units_percent(memory, right);
	row_add(r, PAINT_PLAIN, !isnan(cpu) || !isnan(memory), "%s/%s", left, right);
}

void usage_cell_count_of(const struct row *r, const struct column *c)
{
	double count = row_number(r, c->at), limit = row_number(r, c->of);

	if (isnan(count) || !(limit >= 0))
		cell_count(r, c);
	else
		row_add(r, usage_pressure(count / limit), true, "%.10g/%.10g", count, limit);
}

void usage_cell_throttled(const struct row *r, const struct column *c)
{
	double ratio = row_number(r, "contention.throttledRatio");
	double seconds = row_number(r, "contention.throttledSeconds");
	enum table_paint paint = ratio >= 0.25		    ? PAINT_BAD
				 : ratio > 0 || seconds > 0 ? PAINT_WARN
							    : PAINT_PLAIN;

	(void)c;
	/* Without a limit there are no periods, so no share of them, and nothing throttled. */
	if (isnan(ratio) && seconds != 0)
		row_add_units(r, paint, units_seconds, seconds);
	else
		row_add_units(r, paint, units_percent, isnan(ratio) ? 0 : ratio);
}
