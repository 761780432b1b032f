/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of quotas and of what is wrong with them. A quota has a row for each resource it
 * names, so that columns hold amounts of one kind; "*" is the sum over all quotas, by the server.
 * REAL is what the namespace's pods really use: the 95th percentile of CPU, and the working set.
 */
#include "aggregator/cli/cmd_quota.h"
#include "aggregator/cli/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/commands.h"
#include "aggregator/cli/document.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/quota_table.h"
#include "shared/mem.h"

enum column {
	NAMESPACE,
	QUOTA,
	RESOURCE,
	USED,
	MIN,
	MAX,
	BORROWED,
	LENT,
	SHARE,
	PENDING,
	REAL,
	IDLE,
	PODS,
	WEIGHT,
	STATE,
	COLUMNS
};

static const struct column_spec columns[COLUMNS] = {
	[NAMESPACE] = {"NAMESPACE", FORM_NAME, false, false, 0},
	[QUOTA] = {"QUOTA", FORM_NAME, true, false, 0},
	[RESOURCE] = {"RESOURCE", FORM_LEFT, false, false, 0},
	[USED] = {"USED", FORM_RIGHT, false, false, 0},
	[MIN] = {"MIN", FORM_RIGHT, false, false, 0},
	[MAX] = {"MAX", FORM_RIGHT, false, false, 0},
	[BORROWED] = {"BORROWED", FORM_RIGHT, false, false, 3},
	[LENT] = {"LENT", FORM_RIGHT, false, false, 4},
	[SHARE] = {"SHARE", FORM_RIGHT, true, false, 0},
	[PENDING] = {"PENDING", FORM_RIGHT, false, true, 0},
	[REAL] = {"REAL", FORM_RIGHT, false, true, 2},
	[IDLE] = {"IDLE", FORM_RIGHT, true, true, 0},
	[PODS] = {"PODS", FORM_RIGHT, false, false, 1},
	[WEIGHT] = {"WEIGHT", FORM_RIGHT, true, false, 0},
	[STATE] = {"STATE", FORM_LEFT, false, false, 0},
};

static const char *const empty[] = {"-", "0", NULL};

static enum table_paint paint_of(const char *state)
{
	static const struct {
		const char *state;
		enum table_paint paint;
	} paints[] = {{"overMax", PAINT_BAD},
		      {"atMax", PAINT_WARN},
		      {"starved", PAINT_BAD},
		      {"waiting", PAINT_WARN},
		      {"unused", PAINT_DIM}};

	for (size_t i = 0; i < sizeof(paints) / sizeof(paints[0]); i++)
		if (strcmp(paints[i].state, state) == 0)
			return paints[i].paint;
	return PAINT_PLAIN;
}

static void add_pods(struct table *t, const cJSON *item)
{
	double used = document_number(item, "pods.used"),
	       pending = document_number(item, "pods.pending");
	char text[UNITS_LEN];

	if (pending > 0)
		snprintf(text, sizeof(text), "%.0f+%.0f", used, pending);
	else
		snprintf(text, sizeof(text), "%.0f", used);
	table_cell(t, PAINT_PLAIN, isfinite(used) ? text : "-");
}

static double amount_at(const cJSON *item, const char *member, const char *resource)
{
	return quota_amount(document_at(item, member), resource);
}

static void add_amounts(struct table *t, const cJSON *item, const char *resource)
{
	double used = amount_at(item, "used", resource),
	       pending = amount_at(item, "pending", resource);
	double min = amount_at(item, "min", resource), max = amount_at(item, "max", resource);

	used = isfinite(used) ? used : 0;
	quota_amount_cell(t, used > max ? PAINT_BAD : PAINT_PLAIN, resource, used);
	quota_amount_cell(t, PAINT_PLAIN, resource, min);
	if (isfinite(max))
		quota_amount_cell(t, PAINT_PLAIN, resource, max);
	else
		table_cell(t, PAINT_PLAIN, "none");
	quota_amount_cell(t, PAINT_PLAIN, resource, amount_at(item, "borrowed", resource));
	quota_amount_cell(t, PAINT_PLAIN, resource, amount_at(item, "lent", resource));
	quota_amount_cell(t, PAINT_PLAIN, resource, amount_at(item, "share", resource));
	quota_amount_cell(t, pending > 0 ? PAINT_WARN : PAINT_PLAIN, resource,
			  isfinite(pending) ? pending : 0);
	quota_amount_cell(t, PAINT_PLAIN, resource, quota_real_use(item, resource));
	quota_amount_cell(t, PAINT_PLAIN, resource, amount_at(item, "idle", resource));
}

static void add_row(struct table *t, const cJSON *item, const cJSON *reason, size_t place)
{
	const char *namespace = document_text(item, "namespace"),
		   *name = document_text(item, "name");
	const char *resource = document_text(reason, "resource"),
		   *state = document_text(reason, "code");
	char weight[UNITS_LEN];

	snprintf(weight, sizeof(weight), "%g", document_number(item, "weight"));
	resource = resource ? resource : "-";
	state = state ? state : "-";
	table_row(t, namespace ? namespace : "");
	table_key(t, -(double)place);
	table_cell(t, PAINT_PLAIN, namespace ? namespace : "-");
	table_cell(t, PAINT_PLAIN, name ? name : "(default)");
	table_cell(t, PAINT_PLAIN, resource);
	add_amounts(t, item, resource);
	add_pods(t, item);
	table_cell(t, PAINT_PLAIN, weight);
	table_cell(t, paint_of(state), state);
}

/* One that names nothing is there all the same. */
static void add_quota(struct table *t, const cJSON *item, size_t *place)
{
	const cJSON *reason = document_first(document_at(item, "reasons"));

	if (!reason)
		add_row(t, item, NULL, (*place)++);
	for (; reason; reason = reason->next)
		add_row(t, item, reason, (*place)++);
}

static void add_total(struct table *t, const cJSON *doc, const char *resource, size_t place)
{
	static const char *const members[COLUMNS] = {[USED] = "total.used",
						     [MIN] = "total.min",
						     [BORROWED] = "total.borrowed",
						     [LENT] = "total.lent",
						     [PENDING] = "total.pending"};

	table_row(t, "*");
	table_sums_up(t);
	table_key(t, -(double)place);
	for (size_t i = 0; i < COLUMNS; i++) {
		if (members[i])
			quota_amount_cell(t, PAINT_PLAIN, resource,
					  quota_amount(document_at(doc, members[i]), resource));
		else
			table_cell(t, PAINT_PLAIN,
				   i == NAMESPACE  ? "*"
				   : i == RESOURCE ? resource
						   : "-");
	}
}

/* --- findings */

static enum table_paint severity_paint(const char *severity)
{
	return strcmp(severity, "error") == 0	  ? PAINT_BAD
	       : strcmp(severity, "warning") == 0 ? PAINT_WARN
						  : PAINT_DIM;
}

static size_t count_severity(const cJSON *findings, const char *severity)
{
	size_t count = 0;

	for (const cJSON *f = document_first(findings); f; f = f->next)
		count += strcmp(document_text_or(f, "severity", ""), severity) == 0;
	return count;
}

/* Whether anything ought to be changed: an info is no reason for a message. */
static void mention_findings(struct cli *cli, const cJSON *findings)
{
	size_t errors = count_severity(findings, "error"),
	       warnings = count_severity(findings, "warning");

	if (errors + warnings)
		reason_set(&cli->reason,
			   "%zu finding%s, %zu of severity error: evenkeel quota lint",
			   errors + warnings, errors + warnings == 1 ? "" : "s", errors);
}

/* What a finding is about: "team-a/quota", or the kind where it is about no object. */
static char *subject(const cJSON *finding)
{
	const char *namespace = document_text_or(finding, "namespace", ""),
		   *name = document_text_or(finding, "name", "");

	if (!*namespace)
		return mem_strdup(document_text_or(finding, "kind", "-"));
	return mem_printf("%s%s%s", namespace, *name ? "/" : "", name);
}

static void print_finding(struct cli *cli, const cJSON *finding)
{
	char *about = subject(finding);
	char *head = mem_printf("%-7s  %s  %s: ", document_text_or(finding, "severity", "-"), about,
				document_text_or(finding, "code", "-"));

	lines_add_wrapped(cli, 0, head, document_text_or(finding, "text", "-"), &cli->out);
	free(head);
	free(about);
}

/* One for each line; sentences make narrow terminals no table. */
static void print_finding_table(struct cli *cli, const cJSON *findings)
{
	static const char *const titles[] = {"SEVERITY", "QUOTA", "CODE", "FIELD", "FINDING"};
	static const struct csv_field fields[] = {
		{"severity", "severity"}, {"kind", "kind"}, {"namespace", "namespace"},
		{"quota", "name"},	  {"code", "code"}, {"field", "field"},
		{"resource", "resource"}, {"text", "text"},
	};
	enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
	struct table *t = table_new();
	size_t place = 0;

	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_column(t, titles[i], i == 1 ? FORM_NAME : FORM_LEFT);
	csv_columns(cli, t, fields, FIELDS);
	for (const cJSON *f = document_first(findings); f; f = f->next) {
		const char *severity = document_text_or(f, "severity", "-");
		char *about = subject(f);

		table_row(t, document_text_or(f, "namespace", ""));
		table_key(t, -(double)place++);
		table_cell(t, severity_paint(severity), severity);
		table_cell(t, PAINT_PLAIN, about);
		table_cell(t, PAINT_PLAIN, document_text_or(f, "code", "-"));
		table_cell(t, PAINT_PLAIN, document_text_or(f, "field", "-"));
		table_cell(t, PAINT_PLAIN, document_text_or(f, "text", "-"));
		csv_cells(cli, t, f, fields, FIELDS);
		free(about);
	}
	if (place)
		commands_print_table(cli, t, "elasticquota");
	table_free(t);
}

static void print_findings(struct cli *cli, const cJSON *findings)
{
	size_t left = cli->options->limit > 0 ? (size_t)cli->options->limit : SIZE_MAX;

	if (cli->options->output == OUTPUT_WIDE) {
		print_finding_table(cli, findings);
		return;
	}
	for (const cJSON *f = document_first(findings); f && left > 0; f = f->next, left--)
		print_finding(cli, f);
}

/* --- answers */

/* Why there is nothing, which is stale; or not all, which is so with --strict. */
static int check_gap(struct cli *cli, const cJSON *doc)
{
	const char *gap = document_text(doc, "reason");
	const cJSON *items = document_at(doc, "items");

	if (!gap)
		return CLI_OK;
	reason_set(&cli->reason, "%s", gap);
	return cli->options->strict || (items && !document_first(items)) ? CLI_STALE : CLI_OK;
}

static void print_list(struct cli *cli, const cJSON *doc)
{
	const cJSON *item = document_first(document_at(doc, "items")), *amount;
	struct table *t;
	bool several = item && item->next;
	size_t place = 0;

	if (cli->form == OUTPUT_CSV) {
		quota_print_csv(cli, item);
		return;
	}
	t = columns_start(columns, COLUMNS);
	for (amount = quota_first_amount(doc, "total.used"); several && amount;
	     amount = amount->next)
		add_total(t, doc, quota_resource(amount->string), place++);
	for (; item; item = item->next)
		add_quota(t, item, &place);
	columns_hide(cli, t, columns, COLUMNS, empty);
	if (place)
		commands_print_table(cli, t, "elasticquota");
	table_free(t);
	for (item = document_first(document_at(doc, "total.alarms")); item; item = item->next)
		lines_add_wrapped(cli, 0, "", cJSON_GetStringValue(item), &cli->out);
}

int quota_render_list(struct cli *cli, const char *json, size_t len)
{
	cJSON *doc = quota_answer_parse(cli, json, len, "items");
	int code;

	if (!doc)
		return CLI_ERROR;
	if (cli->options->output == OUTPUT_JSON)
		commands_print_json(cli, json, len);
	else
		print_list(cli, doc);
	mention_findings(cli, document_at(doc, "findings"));
	code = check_gap(cli, doc);
	cJSON_Delete(doc);
	return code;
}

static void print_one(struct cli *cli, const cJSON *doc)
{
	const cJSON *line;
	struct table *t;
	size_t place = 0;

	if (cli->form == OUTPUT_CSV) {
		quota_print_csv(cli, doc);
		return;
	}
	t = columns_start(columns, COLUMNS);
	add_quota(t, doc, &place);
	columns_hide(cli, t, columns, COLUMNS, empty);
	commands_print_table(cli, t, "elasticquota");
	table_free(t);
	buf_add_char(&cli->out, '\n');
	for (line = document_first(document_at(doc, "reasons")); line; line = line->next)
		lines_add_wrapped(cli, 0, "", document_text_or(line, "text", ""), &cli->out);
	for (line = document_first(document_at(doc, "findings")); line; line = line->next) {
		char *head = mem_printf("%s %s: ", document_text_or(line, "severity", "-"),
					document_text_or(line, "code", "-"));

		lines_add_wrapped(cli, 0, head, document_text_or(line, "text", "-"), &cli->out);
		free(head);
	}
}

int quota_render_one(struct cli *cli, const char *json, size_t len)
{
	cJSON *doc = quota_answer_parse(cli, json, len, "verdict");
	int code;

	if (!doc)
		return CLI_ERROR;
	if (cli->options->output == OUTPUT_JSON)
		commands_print_json(cli, json, len);
	else
		print_one(cli, doc);
	code = check_gap(cli, doc);
	cJSON_Delete(doc);
	return code;
}

int quota_render_lint(struct cli *cli, const char *json, size_t len)
{
	cJSON *doc = quota_answer_parse(cli, json, len, "findings");
	const cJSON *findings = document_at(doc, "findings");
	int code;

	if (!doc)
		return CLI_ERROR;
	if (cli->options->output == OUTPUT_JSON)
		commands_print_json(cli, json, len);
	else
		print_findings(cli, findings);
	code = check_gap(cli, doc);
	if (count_severity(findings, "error"))
		code = CLI_REFUSED;
	else if (!document_first(findings) && !cli->reason.text[0] &&
		 cli->options->output != OUTPUT_JSON)
		buf_add_str(&cli->out, "nothing to find fault with\n");
	cJSON_Delete(doc);
	return code;
}
