/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of quotas. A quota has a row for each resource it names, so that columns hold amounts
 * of one kind; "*" is the sum over all quotas, by the server. REAL is what the namespace's pods
 * really use: the 95th percentile of CPU, and the working set.
 *
 * -o csv has a record for each quota, and columns for each resource that any of them names or its
 * pods ask for, with the unit in the title (cpu_used_millicores, nvidia.com/gpu_min).
 */
#include "aggregator/cli/answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/columns.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/quota_table.h"
#include "shared/array.h"
#include "shared/mem.h"
#include "shared/units.h"

/* --- the table -------------------------------------------------------------------------------- */

static const char *resource_of(const struct row *r)
{
	return ((const struct quota_amounts *)r->more)->resource;
}

static bool is_total(const struct row *r)
{
	return ((const struct quota_amounts *)r->more)->total;
}

static void cell_quota_namespace(const struct row *r, const struct column *c)
{
	table_cell(r->table, PAINT_PLAIN,
		   document_text_or(r->item, c->at, is_total(r) ? "*" : "-"));
}

static void cell_quota(const struct row *r, const struct column *c)
{
	table_cell(r->table, PAINT_PLAIN,
		   document_text_or(r->item, c->at, is_total(r) ? "-" : "(default)"));
}

static void cell_resource(const struct row *r, const struct column *c)
{
	(void)c;
	table_cell(r->table, PAINT_PLAIN, resource_of(r));
}

static void cell_used(const struct row *r, const struct column *c)
{
	double used = quota_row_amount(r, c->at);
	double max = quota_row_amount(r, c->of);

	used = isfinite(used) ? used : 0;
	quota_amount_cell(r->table, used > max ? PAINT_BAD : PAINT_PLAIN, resource_of(r), used);
}

static void cell_pending(const struct row *r, const struct column *c)
{
	double pending = quota_row_amount(r, c->at);

	if (is_total(r))
		quota_cell_amount(r, c);
	else
		quota_amount_cell(r->table, pending > 0 ? PAINT_WARN : PAINT_PLAIN, resource_of(r),
				  isfinite(pending) ? pending : 0);
}

static void cell_real(const struct row *r, const struct column *c)
{
	(void)c;
	quota_amount_cell(r->table, PAINT_PLAIN, resource_of(r),
			  quota_real_use(r->item, resource_of(r)));
}

static void cell_pods(const struct row *r, const struct column *c)
{
	double used = row_number(r, c->at), pending = row_number(r, c->of);

	if (pending > 0)
		row_add(r, PAINT_PLAIN, isfinite(used), "%.0f+%.0f", used, pending);
	else
		row_add(r, PAINT_PLAIN, isfinite(used), "%.0f", used);
}

static void cell_weight(const struct row *r, const struct column *c)
{
	row_add(r, PAINT_PLAIN, !is_total(r), "%g", row_number(r, c->at));
}

static const struct column_paint states[] = {
	{"overMax", PAINT_BAD},	 {"atMax", PAINT_WARN}, {"starved", PAINT_BAD},
	{"waiting", PAINT_WARN}, {"unused", PAINT_DIM}, {NULL, PAINT_PLAIN},
};

/* Of the resource, not of the quota. */
static void cell_state(const struct row *r, const struct column *c)
{
	const struct quota_amounts *more = r->more;
	const struct row of_resource = {.table = r->table, .item = more->reason};

	cell_text(&of_resource, c);
}

static const char *const empty[] = {"-", "0", NULL};

/* clang-format off */
static const struct column columns[] = {
	{"NAMESPACE", FORM_NAME, cell_quota_namespace, .at = "namespace"},
	{"QUOTA", FORM_NAME, cell_quota, .at = "name", .wide = true},
	{"RESOURCE", FORM_LEFT, cell_resource, .at = NULL},
	{"USED", FORM_RIGHT, cell_used, .at = "used", .of = "max"},
	{"MIN", FORM_RIGHT, quota_cell_amount, .at = "min"},
	{"MAX", FORM_RIGHT, quota_cell_max, .at = "max"},
	{"BORROWED", FORM_RIGHT, quota_cell_amount, .at = "borrowed", .spare = 3},
	{"LENT", FORM_RIGHT, quota_cell_amount, .at = "lent", .spare = 4},
	{"SHARE", FORM_RIGHT, quota_cell_amount, .at = "share", .wide = true},
	{"PENDING", FORM_RIGHT, cell_pending, .at = "pending", .empty = empty},
	{"REAL", FORM_RIGHT, cell_real, .at = "realUse", .empty = empty, .spare = 2},
	{"IDLE", FORM_RIGHT, quota_cell_amount, .at = "idle", .empty = empty, .wide = true},
	{"PODS", FORM_RIGHT, cell_pods, .at = "pods.used", .of = "pods.pending", .spare = 1},
	{"WEIGHT", FORM_RIGHT, cell_weight, .at = "weight", .wide = true},
	{"STATE", FORM_LEFT, cell_state, .at = "code", .paints = states},
	{0},
};
/* clang-format on */

/* A row for each resource. One that names nothing is there all the same. */
static void add_quota(struct row *r, struct quota_amounts *more)
{
	const char *name = document_text_or(r->item, "namespace", "");
	const cJSON *reason = document_first(r->item, "reasons");

	do {
		*more = (struct quota_amounts){document_text_or(reason, "resource", "-"), reason,
					       false};
		columns_add_next(r, name);
		reason = reason ? reason->next : NULL;
	} while (reason);
}

/* A row for each resource of all quotas. */
static void add_total(struct row *r, struct quota_amounts *more)
{
	const cJSON *amount = quota_first_amount(r->item, "used");

	for (; amount; amount = amount->next) {
		*more = (struct quota_amounts){quota_resource(amount->string), NULL, true};
		columns_add_next(r, "*");
		table_sums_up(r->table);
	}
}

/* --- data ------------------------------------------------------------------------------------- */

static const struct csv_field fields[] = {
	{"namespace", "namespace"},
	{"quota", "name"},
	{"weight", "weight"},
	{"pods_used", "pods.used"},
	{"pods_pending", "pods.pending"},
	{"pods_assumed", "pods.assumed"},
	{"pods_measured", "pods.measured"},
	{"state", "verdict"},
	{0},
};

/* Of each resource. */
static const char *const members[] = {"used", "min",   "max",	  "borrowed",
				      "lent", "share", "pending", "idle"};

enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

/* As a quota's members call them: "cpuMillicores". */
struct keys {
	const char **of; /* owned; what they point to is the answer's */
	size_t count;
};

static struct keys find_keys(const cJSON *items)
{
	struct keys keys = {NULL, 0};

	for (size_t m = 0; m < MEMBERS; m++)
		for (const cJSON *item = items; item; item = item->next)
			for (const cJSON *a = quota_first_amount(item, members[m]); a; a = a->next)
				if (!array_find_text(keys.of, keys.count, sizeof(*keys.of),
						     a->string))
					ARRAY_ADD(keys.of, keys.count) = a->string;
	return keys;
}

static void add_columns(const struct cli *cli, struct table *t, const char *resource)
{
	const char *unit = quota_unit(resource);

	for (size_t m = 0; m <= MEMBERS; m++) {
		char *title = mem_printf("%s_%s%s%s", resource, m < MEMBERS ? members[m] : "real",
					 *unit ? "_" : "", unit);

		csv_column(cli, t, title);
		free(title);
	}
}

static void print_csv(struct cli *cli, const cJSON *items)
{
	static const struct column none[] = {{0}};
	struct keys keys = find_keys(items);
	struct row row = columns_start(cli, none, fields);

	for (size_t i = 0; i < keys.count; i++)
		add_columns(cli, row.table, quota_resource(keys.of[i]));
	for (row.item = items; row.item; row.item = row.item->next) {
		columns_add_next(&row, document_text_or(row.item, "namespace", "-"));
		for (size_t i = 0; i < keys.count; i++) {
			const char *resource = quota_resource(keys.of[i]);

			for (size_t m = 0; m < MEMBERS; m++)
				csv_number(&row, quota_amount(row.item, members[m], resource));
			csv_number(&row, quota_real_use(row.item, resource));
		}
	}
	columns_end(cli, &row, "elasticquota");
	free(keys.of);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* The rows of these items, and of their total, which may be NULL. */
static void print_table(struct cli *cli, const cJSON *items, const cJSON *total)
{
	struct quota_amounts more;
	struct row row;

	if (cli->form == OUTPUT_CSV) {
		print_csv(cli, items);
		return;
	}
	row = columns_start(cli, columns, NULL);
	row.more = &more;
	row.item = total;
	add_total(&row, &more);
	for (row.item = items; row.item; row.item = row.item->next)
		add_quota(&row, &more);
	columns_end(cli, &row, row.count ? "elasticquota" : NULL);
}

static void print_list(struct cli *cli, const cJSON *doc)
{
	const cJSON *first = document_first(doc, "items");
	bool several = first && first->next;

	print_table(cli, first, several ? document_at(doc, "total") : NULL);
	if (cli->form != OUTPUT_CSV)
		lines_wrap_list(cli, 0, document_at(doc, "total.alarms"));
}

static void print_one(struct cli *cli, const cJSON *doc)
{
	const cJSON *line;

	print_table(cli, doc, NULL);
	if (cli->form == OUTPUT_CSV)
		return;
	buf_add_char(&cli->out, '\n');
	for (line = document_first(doc, "reasons"); line; line = line->next)
		lines_wrap(cli, 0, "%s", document_text_or(line, "text", ""));
	for (line = document_first(doc, "findings"); line; line = line->next)
		lines_wrap_under(cli, 0, document_text_or(line, "text", "-"),
				 "%s %s: ", document_text_or(line, "severity", "-"),
				 document_text_or(line, "code", "-"));
}

/* --- findings --------------------------------------------------------------------------------- */

static size_t count_severity(const cJSON *findings, const char *severity)
{
	size_t count = 0;

	for (const cJSON *f = document_first(findings, ""); f; f = f->next)
		count += document_is(f, "severity", severity);
	return count;
}

static const struct column_paint severities[] = {{"error", PAINT_BAD},
						 {"warning", PAINT_WARN},
						 {NULL, PAINT_DIM}};

/* What a finding is about: "team-a/quota", or the kind where it is about no object. */
static char *subject(const cJSON *finding)
{
	const char *namespace = document_text_or(finding, "namespace", ""),
		   *name = document_text_or(finding, "name", "");

	if (!*namespace)
		return mem_strdup(document_text_or(finding, "kind", "-"));
	return mem_printf("%s%s%s", namespace, *name ? "/" : "", name);
}

static void cell_subject(const struct row *r, const struct column *c)
{
	char *about = subject(r->item);

	(void)c;
	table_cell(r->table, PAINT_PLAIN, about);
	free(about);
}

static const struct column finding_columns[] = {
	{"SEVERITY", FORM_LEFT, cell_text, .at = "severity", .paints = severities},
	{"QUOTA", FORM_NAME, cell_subject, .at = NULL},
	{"CODE", FORM_LEFT, cell_text, .at = "code"},
	{"FIELD", FORM_LEFT, cell_text, .at = "field"},
	{"FINDING", FORM_LEFT, cell_text, .at = "text"},
	{0},
};

static const struct csv_field finding_fields[] = {
	{"severity", "severity"}, {"kind", "kind"}, {"namespace", "namespace"},
	{"quota", "name"},	  {"code", "code"}, {"field", "field"},
	{"resource", "resource"}, {"text", "text"}, {0},
};

/* One for each line; sentences make narrow terminals no table. */
static void print_findings(struct cli *cli, const cJSON *doc)
{
	const cJSON *f = document_first(doc, "findings");
	size_t left = cli->options->limit > 0 ? (size_t)cli->options->limit : SIZE_MAX;

	if (f && cli->options->output == OUTPUT_WIDE) {
		columns_print_list(cli, doc, "findings", "namespace", finding_columns,
				   finding_fields, "elasticquota");
		return;
	}
	for (; f && left > 0; f = f->next, left--) {
		char *about = subject(f);

		lines_wrap_under(cli, 0, document_text_or(f, "text", "-"),
				 "%-7s  %s  %s: ", document_text_or(f, "severity", "-"), about,
				 document_text_or(f, "code", "-"));
		free(about);
	}
}

/* --- exit codes ------------------------------------------------------------------------------- */

/* Why there is nothing, which is stale; or not all, which is so with --strict. */
static int judge_gap(struct cli *cli, const cJSON *doc)
{
	const char *gap = document_text(doc, "reason");
	const cJSON *items = document_at(doc, "items");
	bool stale = cli->options->strict || (items && !document_first(items, ""));

	return gap ? error_fail(&cli->reason, stale ? CLI_STALE : CLI_OK, "%s", gap) : CLI_OK;
}

/* Whether anything ought to be changed: an info is no reason for a message. */
static int judge_list(struct cli *cli, const cJSON *doc)
{
	const cJSON *findings = document_at(doc, "findings");
	size_t errors = count_severity(findings, "error"),
	       warnings = count_severity(findings, "warning");

	if (errors + warnings)
		error_set(&cli->reason, "%zu finding%s, %zu of severity error: evenkeel quota lint",
			  errors + warnings, units_plural(errors + warnings), errors);
	return judge_gap(cli, doc);
}

static int judge_findings(struct cli *cli, const cJSON *doc)
{
	const cJSON *findings = document_at(doc, "findings");
	int code = judge_gap(cli, doc);

	if (count_severity(findings, "error"))
		return CLI_REFUSED;
	if (!document_first(findings, "") && !cli->reason.text[0] &&
	    cli->options->output != OUTPUT_JSON)
		buf_add_str(&cli->out, "nothing to find fault with\n");
	return code;
}

const struct answer quota_list_answer = {
	.about = "quotas", .members = {"items"}, .print = print_list, .judge = judge_list};
const struct answer quota_one_answer = {
	.about = "quotas", .members = {"verdict"}, .print = print_one, .judge = judge_gap};
const struct answer quota_lint_answer = {.about = "quotas",
					 .members = {"findings"},
					 .print = print_findings,
					 .judge = judge_findings};
