/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What quotas say to a pod: the verdict in a sentence, then the numbers of every resource that the
 * pod asks for or the quota names, so that it can be followed by hand. For a preemption, who would
 * go and why, and the narration.
 */
#include "aggregator/cli/answer.h"

#include <math.h>
#include <stdlib.h>

#include "aggregator/cli/columns.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/quota_table.h"
#include "shared/mem.h"

/* --- numbers ---------------------------------------------------------------------------------- */

static void cell_resource(const struct row *r, const struct column *c)
{
	const struct quota_amounts *more = r->more;
	bool named = document_is(document_first(r->item, c->at), "resource", more->resource);

	table_cell(r->table, named ? PAINT_BAD : PAINT_PLAIN, more->resource);
}

/* What is not told is none. */
static void cell_asked(const struct row *r, const struct column *c)
{
	if (isfinite(quota_row_amount(r, c->at)))
		quota_cell_amount(r, c);
	else
		table_cell(r->table, PAINT_PLAIN, "0");
}

static const struct column number_columns[] = {
	{"RESOURCE", FORM_LEFT, cell_resource, .at = "reasons"},
	{"ASKED", FORM_RIGHT, cell_asked, .at = "requests"},
	{"USED", FORM_RIGHT, cell_asked, .at = "quota.used"},
	{"MIN", FORM_RIGHT, quota_cell_amount, .at = "quota.min"},
	{"MAX", FORM_RIGHT, quota_cell_max, .at = "quota.max"},
	{0},
};

static void add_row(struct row *r, const char *resource)
{
	double asked = quota_row_amount(r, "requests"), used = quota_row_amount(r, "quota.used");
	const char *unit = quota_unit(resource);

	columns_add_next(r, resource);
	csv_text(r, resource);
	csv_text(r, *unit ? unit : "count");
	csv_number(r, isfinite(asked) ? asked : 0);
	csv_number(r, isfinite(used) ? used : 0);
	csv_number(r, quota_row_amount(r, "quota.min"));
	csv_number(r, quota_row_amount(r, "quota.max"));
}

/* What the pod asks for, then what the quota names beside that. */
static void print_numbers(struct cli *cli, const cJSON *doc)
{
	static const char *const members[] = {"requests", "quota.min", "quota.max"};
	static const char *const titles[] = {"resource", "unit", "asked", "used", "min", "max"};
	struct row row = columns_start(cli, number_columns, NULL);
	struct quota_amounts more = {0};

	row.item = doc;
	row.more = &more;
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		csv_column(cli, row.table, titles[i]);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const cJSON *amount = quota_first_amount(doc, members[i]);

		for (; amount; amount = amount->next) {
			bool seen = false;

			more.resource = quota_resource(amount->string);
			for (size_t k = 0; k < i; k++)
				seen |= isfinite(quota_row_amount(&row, members[k]));
			if (!seen)
				add_row(&row, more.resource);
		}
	}
	if (row.count && document_at(doc, "quota")) {
		buf_add_char(&cli->out, '\n');
		columns_print(cli, row.table, "resource");
	}
	table_free(row.table);
}

/* --- admission -------------------------------------------------------------------------------- */

static void print_verdict(struct cli *cli, const cJSON *doc, const char *reason)
{
	lines_wrap_under(cli, 0, reason, "%s/%s %s: ", document_text_or(doc, "namespace", "-"),
			 document_text_or(doc, "name", "-"), document_text_or(doc, "verdict", "-"));
}

static void print_admission(struct cli *cli, const cJSON *doc)
{
	const cJSON *reason = document_first(doc, "reasons");
	const char *node = document_text(doc, "node");

	print_verdict(cli, doc, document_text_or(reason, "text", "-"));
	if (node)
		lines_print(cli, "It is on node %s already, and in USED.", node);
	print_numbers(cli, doc);
	lines_print_warnings(cli, doc);
}

static int judge(struct cli *cli, const cJSON *doc)
{
	const char *gap = document_text(doc, "gap");

	if (gap)
		error_set(&cli->reason, "%s", gap);
	if (document_is(doc, "verdict", "refused") || document_is(doc, "verdict", "impossible") ||
	    document_is(doc, "verdict", "never"))
		return CLI_REFUSED;
	return gap && cli->options->strict ? CLI_STALE : CLI_OK;
}

const struct answer quota_admit_answer = {
	.about = "quotas", .members = {"gate"}, .print = print_admission, .judge = judge};

/* --- a plan ----------------------------------------------------------------------------------- */

static void cell_name(const struct row *r, const struct column *c)
{
	row_add(r, PAINT_PLAIN, true, "%s/%s", document_text_or(r->item, "namespace", "-"),
		document_text_or(r->item, c->at, "-"));
}

static void cell_pdb(const struct row *r, const struct column *c)
{
	bool broken = document_is_true(r->item, c->at);

	table_cell(r->table, broken ? PAINT_BAD : PAINT_PLAIN, broken ? "broken" : "kept");
}

static const char *const kept[] = {"kept", NULL}, *const unknown_use[] = {"unknown", NULL};

static const struct column victim_columns[] = {
	{"VICTIM", FORM_NAME, cell_name, .at = "name"},
	{"NODE", FORM_NAME, cell_text, .at = "node"},
	{"PRIORITY", FORM_RIGHT, cell_count, .at = "priority"},
	{"CPU-REQ", FORM_RIGHT, quota_cell_request, .at = "requests.cpuMillicores"},
	{"MEM-REQ", FORM_RIGHT, quota_cell_request, .at = "requests.memoryBytes"},
	{"USE", FORM_LEFT, cell_text, .at = "use", .empty = unknown_use},
	{"PDB", FORM_LEFT, cell_pdb, .at = "violatesPdb", .empty = kept},
	{"WHY", FORM_LEFT, cell_text, .at = "reason", .wide = true},
	{0},
};

static const struct csv_field victim_fields[] = {
	{"namespace", "namespace"},
	{"name", "name"},
	{"node", "node"},
	{"priority", "priority"},
	{"cpu_request_millicores", "requests.cpuMillicores"},
	{"memory_request_bytes", "requests.memoryBytes"},
	{"use", "use"},
	{"violates_pdb", "violatesPdb"},
	{"reason", "reason"},
	{0},
};

static void print_victims(struct cli *cli, const cJSON *doc)
{
	struct row row = columns_start(cli, victim_columns, victim_fields);

	for (row.item = document_first(doc, "victims"); row.item; row.item = row.item->next) {
		char *name = mem_printf("%s\n%s", document_text_or(row.item, "namespace", ""),
					document_text_or(row.item, "name", ""));

		columns_add_next(&row, name);
		free(name);
	}
	if (row.count)
		buf_add_char(&cli->out, '\n');
	columns_end(cli, &row, row.count ? "pod" : NULL);
}

static void print_lines(struct cli *cli, const cJSON *list, const char *title)
{
	if (document_first(list, ""))
		buf_printf(&cli->out, "\n%s:\n", title);
	lines_wrap_list(cli, 2, list);
}

static void print_plan(struct cli *cli, const cJSON *doc)
{
	print_verdict(cli, doc, document_text_or(doc, "reason", "-"));
	print_victims(cli, doc);
	print_lines(cli, document_at(doc, "narration"), "How it was found");
	print_lines(cli, document_at(doc, "unblock"), "What would help");
	lines_print_warnings(cli, doc);
}

const struct answer quota_preempt_answer = {
	.about = "quotas", .members = {"victims"}, .print = print_plan, .judge = judge};
