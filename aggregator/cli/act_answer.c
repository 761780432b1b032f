/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the actuator reports, as tables: nodes under way, what destinations were promised and what is
 * measured there, pods that reclaim makes room for, requests, and the waves that are over.
 */

#include "aggregator/cli/answer.h"
#include "aggregator/cli/columns.h"
#include "aggregator/cli/lines.h"

enum { SILENT_S = 60 };

/* --- cells */

/* The API has cores here. */
static void cell_cores(const struct row *r, const struct column *c)
{
	row_add_units(r, PAINT_PLAIN, units_cpu, 1000 * row_number(r, c->at));
}

static void cell_seconds(const struct row *r, const struct column *c)
{
	row_add_units(r, PAINT_PLAIN, units_age,
		      document_time(r->item, "report.end") - document_time(r->item, c->at));
}

/* Names of objects, or texts. */
static void cell_list(const struct row *r, const struct column *c)
{
	struct buf text = BUF_INIT;

	for (const cJSON *i = document_first(r->item, c->at); i; i = i->next)
		buf_printf(&text, "%s%s", text.len ? "; " : "",
			   cJSON_IsObject(i) ? document_text_or(i, "name", "-") : i->valuestring);
	row_add(r, PAINT_PLAIN, text.len, "%s", text.data ? text.data : "");
	buf_fini(&text);
}

/* --- tables */

static const struct column_paint states[] = {
	{"refused", PAINT_BAD},	 {"rolledBack", PAINT_BAD}, {"stopped", PAINT_BAD},
	{"waiting", PAINT_WARN}, {"evicting", PAINT_WARN},  {"tainted", PAINT_WARN},
	{"claimed", PAINT_WARN}, {NULL, PAINT_PLAIN},
};

static const struct column node_columns[] = {
	{"NODE", FORM_NAME, cell_text, .at = "name"},
	{"PHASE", FORM_LEFT, cell_text, .at = "phase", .paints = states},
	{"MOVED", FORM_RIGHT, cell_pair, .at = "moved", .of = "of"},
	{"SINCE", FORM_RIGHT, cell_ago, .at = "since"},
	{"PLAN", FORM_LEFT, cell_text, .at = "plan", .wide = true},
	{"MESSAGE", FORM_LEFT, cell_text, .at = "message"},
	{0},
};
static const struct column destination_columns[] = {
	{"DESTINATION", FORM_NAME, cell_text, .at = "node"},
	{"CPU-PROMISED", FORM_RIGHT, cell_cores, .at = "cpuPromised"},
	{"CPU-MEASURED", FORM_RIGHT, cell_cores, .at = "cpuMeasured"},
	{"CPU-CAP", FORM_RIGHT, cell_cores, .at = "cpuCap"},
	{"MEM-PROMISED", FORM_RIGHT, cell_amount, .at = "memoryPromised"},
	{"MEM-MEASURED", FORM_RIGHT, cell_amount, .at = "memoryMeasured"},
	{"CONTENTION", FORM_RIGHT, cell_share, .at = "contention"},
	{0},
};
static const struct column rescue_columns[] = {
	{"NAMESPACE", FORM_LEFT, cell_text, .at = "namespace"},
	{"POD", FORM_NAME, cell_text, .at = "name"},
	{"ROOM-ON", FORM_LEFT, cell_text, .at = "node"},
	{"EVICTED", FORM_RIGHT, cell_pair, .at = "evicted", .of = "victims"},
	{0},
};
static const struct column request_columns[] = {
	{"REQUEST", FORM_LEFT, cell_text, .at = "id"},
	{"ACTION", FORM_LEFT, cell_text, .at = "action"},
	{"STATE", FORM_LEFT, cell_text, .at = "state", .paints = states},
	{"AGE", FORM_RIGHT, cell_ago, .at = "at"},
	{"USER", FORM_LEFT, cell_text, .at = "user", .empty = columns_unknown},
	{"NODES", FORM_LEFT, cell_list, .at = "nodes"},
	{"REASONS", FORM_LEFT, cell_list, .at = "reasons", .empty = columns_unknown},
	{0},
};
static const struct column wave_columns[] = {
	{"AGE", FORM_RIGHT, cell_ago, .at = "time"},
	{"PLAN", FORM_NAME, cell_text, .at = "report.plan"},
	{"OUTCOME", FORM_LEFT, cell_text, .at = "report.outcome", .paints = states},
	{"NODES", FORM_LEFT, cell_list, .at = "report.nodes"},
	{"EVICTIONS", FORM_RIGHT, cell_count, .at = "report.evictions"},
	{"REFUSED", FORM_RIGHT, cell_faults, .at = "report.refused"},
	{"TOOK", FORM_RIGHT, cell_seconds, .at = "report.begin"},
	{"REASON", FORM_LEFT, cell_text, .at = "report.reason"},
	{"VIOLATIONS", FORM_LEFT, cell_list, .at = "report.violations", .empty = columns_unknown},
	{0},
};
/* --- /v1/act */

static void print_head(struct cli *cli, const cJSON *doc)
{
	const cJSON *acts = document_first(doc, "actuator.acts");
	struct buf line = BUF_INIT;
	char age[UNITS_LEN];

	units_age(document_number(doc, "reportedAgoSeconds"), age);
	buf_printf(&line, "%s reported %s ago", document_text_or(doc, "actuator.holder", "-"), age);
	for (const cJSON *a = acts; a; a = a->next)
		buf_printf(&line, "%s%s", a == acts ? "; it may " : ", ", a->valuestring);
	buf_add_str(&line, document_is_true(doc, "actuator.dryRun") ? "; a dry run" : "");
	buf_add_str(&line, document_is_true(doc, "actuator.paused") ? "; paused" : "");
	lines_print(cli, "%s", line.data);
	buf_fini(&line);
}

static void print_act(struct cli *cli, const cJSON *doc)
{
	if (document_text(doc, "actuator.holder"))
		print_head(cli, doc);
	columns_print_list(cli, doc, "actuator.nodes", "name", node_columns, NULL, NULL);
	columns_print_list(cli, doc, "actuator.destinations", "node", destination_columns, NULL,
			   NULL);
	columns_print_list(cli, doc, "actuator.rescues", "name", rescue_columns, NULL, NULL);
	columns_print_list(cli, doc, "requests", "id", request_columns, NULL, NULL);
}

static int judge_act(struct cli *cli, const cJSON *doc)
{
	double ago = document_number(doc, "reportedAgoSeconds");
	char age[UNITS_LEN];

	if (!document_text(doc, "actuator.holder"))
		return error_fail(&cli->reason, CLI_STALE,
				  "no actuator has reported; evenkeel-actuator does not run, or "
				  "may not report");
	if (ago <= SILENT_S)
		return CLI_OK;
	units_age(ago, age);
	return error_fail(&cli->reason, CLI_STALE, "the actuator's report is %s old", age);
}

const struct answer act_answer = {
	.about = "the actuator",
	.members = {"requests"},
	.kind = "Act",
	.print = print_act,
	.judge = judge_act,
};

/* --- /v1/drain/history */

static void print_waves(struct cli *cli, const cJSON *doc)
{
	columns_print_list(cli, doc, "items", "report.plan", wave_columns, NULL, "wave");
}

const struct answer wave_history_answer = {
	.about = "what was decided",
	.members = {"items"},
	.kind = "DrainHistory",
	.print = print_waves,
};
