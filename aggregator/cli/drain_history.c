/* SPDX-License-Identifier: Apache-2.0 */
/* What was decided about drains, the newest first: how long ago, about which node, and why. */
#include <math.h>
#include <string.h>

#include "aggregator/cli/cmd_drain.h"
#include "aggregator/cli/columns.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/document.h"
#include "shared/units.h"

enum column { AGE, TIME, EVENT, NODE, REASON, TEXT, COLUMNS };

static const struct column_spec columns[COLUMNS] = {
	[AGE] = {"AGE", .form = FORM_RIGHT},	  [TIME] = {"TIME", .wide = true},
	[EVENT] = {"EVENT", .form = FORM_LEFT},	  [NODE] = {"NODE", .form = FORM_NAME},
	[REASON] = {"REASON", .form = FORM_LEFT}, [TEXT] = {"WHY", .form = FORM_LEFT},
};

static const struct csv_field fields[] = {{"time", "time"},
					  {"event", "event"},
					  {"node", "node"},
					  {"reason", "reason"},
					  {"text", "text"}};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static const struct {
	const char *event;
	enum table_paint paint;
} paints[] = {
	{"needed", PAINT_DIM},	 {"kept", PAINT_DIM},  {"inDeletion", PAINT_WARN},
	{"evicted", PAINT_WARN}, {"gone", PAINT_WARN},
};

static enum table_paint paint_of(const char *event)
{
	for (size_t i = 0; i < sizeof(paints) / sizeof(paints[0]); i++)
		if (strcmp(paints[i].event, event) == 0)
			return paints[i].paint;
	return PAINT_PLAIN;
}

static void add_row(const struct cli *cli, struct table *t, const cJSON *doc, const cJSON *item,
		    double place)
{
	double age = document_time(doc, "time") - document_time(item, "time");
	const char *event = document_text_or(item, "event", "-");
	const char *node = document_text_or(item, "node", "-");
	char text[UNITS_LEN];

	units_age(age, text);
	table_row(t, node);
	table_cell(t, PAINT_PLAIN, isfinite(age) ? text : "-");
	table_cell(t, PAINT_PLAIN, document_text_or(item, "time", "-"));
	table_cell(t, paint_of(event), event);
	table_cell(t, PAINT_PLAIN, node);
	table_cell(t, PAINT_PLAIN, document_text_or(item, "reason", "-"));
	table_cell(t, PAINT_PLAIN, document_text_or(item, "text", "-"));
	csv_cells(cli, t, item, fields, FIELDS);
	table_key(t, -place);
}

static void print_rows(struct cli *cli, const cJSON *doc)
{
	struct table *t = columns_start(columns, COLUMNS);
	double place = 0;

	csv_columns(cli, t, fields, FIELDS);
	for (const cJSON *item = document_first(document_at(doc, "items")); item; item = item->next)
		add_row(cli, t, doc, item, place++);
	columns_hide(cli, t, columns, COLUMNS, NULL);
	commands_print_table(cli, t, "node");
	table_free(t);
}

int drain_render_history(struct cli *cli, const char *json, size_t len)
{
	cJSON *doc = cJSON_ParseWithLength(json, len);

	if (!document_at(doc, "items") ||
	    strcmp(document_text_or(doc, "kind", ""), "DrainHistory") != 0) {
		cJSON_Delete(doc);
		reason_set(&cli->reason, "the answer is not one about what was decided; is that an "
					 "evenkeel-aggregator of this version?");
		return CLI_ERROR;
	}
	if (cli->options->output == OUTPUT_JSON)
		commands_print_json(cli, json, len);
	else
		print_rows(cli, doc);
	cJSON_Delete(doc);
	return CLI_OK;
}
