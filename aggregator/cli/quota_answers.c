/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What quotas say to a pod: the verdict in a sentence, then the numbers of every resource that the
 * pod asks for or the quota names, so that it can be followed by hand. For a preemption, who would
 * go and why, and the narration.
 */
#include "aggregator/cli/cmd_quota.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/columns.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/document.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/quota_table.h"
#include "shared/mem.h"

/* --- numbers ---------------------------------------------------------------------------------- */

static void add_row(const struct cli *cli, struct table *t, const cJSON *doc, const char *resource,
		    size_t place)
{
	double asked = quota_amount(document_at(doc, "requests"), resource);
	double used = quota_amount(document_at(doc, "quota.used"), resource);
	double min = quota_amount(document_at(doc, "quota.min"), resource);
	double max = quota_amount(document_at(doc, "quota.max"), resource);
	const char *decides =
		document_text_or(document_first(document_at(doc, "reasons")), "resource", "");

	table_row(t, resource);
	table_key(t, -(double)place);
	table_cell(t, strcmp(decides, resource) == 0 ? PAINT_BAD : PAINT_PLAIN, resource);
	quota_amount_cell(t, PAINT_PLAIN, resource, isfinite(asked) ? asked : 0);
	quota_amount_cell(t, PAINT_PLAIN, resource, isfinite(used) ? used : 0);
	quota_amount_cell(t, PAINT_PLAIN, resource, min);
	if (isfinite(max))
		quota_amount_cell(t, PAINT_PLAIN, resource, max);
	else
		table_cell(t, PAINT_PLAIN, "none");
	csv_text(cli, t, resource);
	csv_text(cli, t, *quota_unit(resource) ? quota_unit(resource) : "count");
	csv_number(cli, t, isfinite(asked) ? asked : 0);
	csv_number(cli, t, isfinite(used) ? used : 0);
	csv_number(cli, t, min);
	csv_number(cli, t, max);
}

static bool is_in(const cJSON *object, const char *resource)
{
	return isfinite(quota_amount(object, resource));
}

/* What the pod asks for, then what the quota names beside that. */
static void print_numbers(struct cli *cli, const cJSON *doc)
{
	static const char *const members[] = {"requests", "quota.min", "quota.max"};
	static const char *const titles[] = {"resource", "unit", "asked", "used", "min", "max"};
	struct table *t = table_new();
	size_t place = 0;

	table_column(t, "RESOURCE", FORM_LEFT);
	table_column(t, "ASKED", FORM_RIGHT);
	table_column(t, "USED", FORM_RIGHT);
	table_column(t, "MIN", FORM_RIGHT);
	table_column(t, "MAX", FORM_RIGHT);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		csv_column(cli, t, titles[i]);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const cJSON *amount = quota_first_amount(doc, members[i]);

		for (; amount; amount = amount->next) {
			const char *resource = quota_resource(amount->string);
			bool seen = false;

			for (size_t k = 0; k < i; k++)
				seen |= is_in(document_at(doc, members[k]), resource);
			if (!seen)
				add_row(cli, t, doc, resource, place++);
		}
	}
	if (place && document_at(doc, "quota")) {
		buf_add_char(&cli->out, '\n');
		commands_print_table(cli, t, "resource");
	}
	table_free(t);
}

/* --- admission -------------------------------------------------------------------------------- */

static void print_admission(struct cli *cli, const cJSON *doc)
{
	const cJSON *reason = document_first(document_at(doc, "reasons"));
	char *head = mem_printf("%s/%s %s: ", document_text_or(doc, "namespace", "-"),
				document_text_or(doc, "name", "-"),
				document_text_or(doc, "verdict", "-"));

	lines_add_wrapped(cli, 0, head, document_text_or(reason, "text", "-"), &cli->out);
	free(head);
	if (document_text(doc, "node")) {
		char *line = mem_printf("It is on node %s already, and in USED.",
					document_text(doc, "node"));

		lines_add(cli, line, &cli->out);
		free(line);
	}
	print_numbers(cli, doc);
}

static int exit_code(struct cli *cli, const cJSON *doc, bool refused)
{
	const char *gap = document_text(doc, "gap");

	if (gap)
		reason_set(&cli->reason, "%s", gap);
	if (refused)
		return CLI_REFUSED;
	return gap && cli->options->strict ? CLI_STALE : CLI_OK;
}

int quota_render_admission(struct cli *cli, const char *json, size_t len)
{
	cJSON *doc = quota_answer_parse(cli, json, len, "gate");
	int code;

	if (!doc)
		return CLI_ERROR;
	if (cli->options->output == OUTPUT_JSON)
		commands_print_json(cli, json, len);
	else
		print_admission(cli, doc);
	code = exit_code(cli, doc, strcmp(document_text_or(doc, "verdict", ""), "refused") == 0);
	cJSON_Delete(doc);
	return code;
}

/* --- a plan ----------------------------------------------------------------------------------- */

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
};

enum { VICTIM_FIELDS = sizeof(victim_fields) / sizeof(victim_fields[0]) };

static void add_victim(const struct cli *cli, struct table *t, const cJSON *v, size_t place)
{
	double priority = document_number(v, "priority");
	char *name = mem_printf("%s/%s", document_text_or(v, "namespace", "-"),
				document_text_or(v, "name", "-"));
	char *row = mem_printf("%s\n%s", document_text_or(v, "namespace", ""),
			       document_text_or(v, "name", ""));
	char text[32];

	snprintf(text, sizeof(text), "%.0f", priority);
	table_row(t, row);
	table_key(t, -(double)place);
	table_cell(t, PAINT_PLAIN, name);
	table_cell(t, PAINT_PLAIN, document_text_or(v, "node", "-"));
	table_cell(t, PAINT_PLAIN, isfinite(priority) ? text : "-");
	quota_amount_cell(t, PAINT_PLAIN, "cpu", quota_amount(document_at(v, "requests"), "cpu"));
	quota_amount_cell(t, PAINT_PLAIN, "memory",
			  quota_amount(document_at(v, "requests"), "memory"));
	table_cell(t, PAINT_PLAIN, document_text_or(v, "use", "-"));
	table_cell(t, cJSON_IsTrue(document_at(v, "violatesPdb")) ? PAINT_BAD : PAINT_PLAIN,
		   cJSON_IsTrue(document_at(v, "violatesPdb")) ? "broken" : "kept");
	table_cell(t, PAINT_PLAIN, document_text_or(v, "reason", "-"));
	csv_cells(cli, t, v, victim_fields, VICTIM_FIELDS);
	free(row);
	free(name);
}

static void print_victims(struct cli *cli, const cJSON *doc)
{
	static const struct {
		const char *title;
		enum table_form form;
	} columns[] = {{"VICTIM", FORM_NAME},	{"NODE", FORM_NAME},	 {"PRIORITY", FORM_RIGHT},
		       {"CPU-REQ", FORM_RIGHT}, {"MEM-REQ", FORM_RIGHT}, {"USE", FORM_LEFT},
		       {"PDB", FORM_LEFT},	{"WHY", FORM_LEFT}};
	static const char *const kept[] = {"kept", NULL}, *const unknown[] = {"unknown", NULL};
	const cJSON *v = document_first(document_at(doc, "victims"));
	struct table *t = table_new();
	size_t place = 0;

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		table_column(t, columns[i].title, columns[i].form);
	csv_columns(cli, t, victim_fields, VICTIM_FIELDS);
	for (; v; v = v->next)
		add_victim(cli, t, v, place++);
	if (table_holds_only(t, 5, unknown))
		table_hide(t, 5);
	if (table_holds_only(t, 6, kept))
		table_hide(t, 6);
	if (cli->options->output != OUTPUT_WIDE)
		table_hide(t, 7);
	if (place) {
		buf_add_char(&cli->out, '\n');
		commands_print_table(cli, t, "pod");
	}
	table_free(t);
}

static void print_lines(struct cli *cli, const cJSON *list, const char *title)
{
	const cJSON *line = document_first(list);

	if (line)
		buf_printf(&cli->out, "\n%s:\n", title);
	for (; line; line = line->next)
		lines_add_wrapped(cli, 2, "", cJSON_IsString(line) ? line->valuestring : "-",
				  &cli->out);
}

static void print_plan(struct cli *cli, const cJSON *doc)
{
	char *head = mem_printf("%s/%s %s: ", document_text_or(doc, "namespace", "-"),
				document_text_or(doc, "name", "-"),
				document_text_or(doc, "verdict", "-"));

	lines_add_wrapped(cli, 0, head, document_text_or(doc, "reason", "-"), &cli->out);
	free(head);
	print_victims(cli, doc);
	print_lines(cli, document_at(doc, "narration"), "How it was found");
	print_lines(cli, document_at(doc, "unblock"), "What would help");
}

int quota_render_plan(struct cli *cli, const char *json, size_t len)
{
	cJSON *doc = quota_answer_parse(cli, json, len, "victims");
	const char *verdict;
	bool refused;
	int code;

	if (!doc)
		return CLI_ERROR;
	if (cli->options->output == OUTPUT_JSON)
		commands_print_json(cli, json, len);
	else
		print_plan(cli, doc);
	verdict = document_text_or(doc, "verdict", "");
	refused = strcmp(verdict, "impossible") == 0 || strcmp(verdict, "never") == 0;
	code = exit_code(cli, doc, refused);
	cJSON_Delete(doc);
	return code;
}
