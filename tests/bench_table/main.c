/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_table: what the benchmarks wrote into build/bench, as one table of everything that has a budget, and as one
 * JSON document of all rows with the commit and the machine they were measured on. The document of an earlier run,
 * given with --against, adds what each row was then. Exit: 0 ok, 1 error, 2 usage; a budget that is missed is told,
 * not failed, since the machine has its part in it.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shared/buf.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "shared/options.h"
#include "shared/program.h"
#include "shared/table.h"

enum { FILE_MAX_BYTES = 4 << 20 };

struct bench_table_options {
	char *against, *output, *commit;
	struct option_list benches;
	struct program_common common;
};

#define AT(member) offsetof(struct bench_table_options, member)
static const struct option_spec specs[] = {
	{.name = "bench",
	 .kind = OPTION_LIST,
	 .offset = AT(benches),
	 .value = "NAME",
	 .help = "A benchmark whose build/bench/NAME.json is to be shown."},
	{.name = "against",
	 .kind = OPTION_STRING,
	 .offset = AT(against),
	 .value = "FILE",
	 .help = "What --output wrote of an earlier commit, to compare with."},
	{.name = "output",
	 .kind = OPTION_STRING,
	 .offset = AT(output),
	 .value = "FILE",
	 .initial = "build/bench/table.json",
	 .help = "Where all rows go as JSON."},
	{.name = "commit",
	 .kind = OPTION_STRING,
	 .offset = AT(commit),
	 .value = "TEXT",
	 .initial = "unknown",
	 .help = "What was measured."},
	PROGRAM_COMMON_OPTIONS(AT(common)),
};

static const struct option_program program = {
	.name = "bench_table",
	.summary = "Shows what the benchmarks measured against their budgets.",
	.usage = "[OPTION..]",
	.specs = specs,
};

/* The rows of one benchmark, a JSON object a line, are added to all rows with its name. */
static int read_rows(const char *bench, cJSON *rows, struct reason *reason)
{
	char *path = mem_printf("build/bench/%s.json", bench), *line, *rest;
	struct buf text = BUF_INIT;
	int ret = file_read(path, FILE_MAX_BYTES, &text, reason);

	rest = text.data;
	while (ret == 0 && rest && (line = strsep(&rest, "\n"))) {
		cJSON *row = *line ? cJSON_Parse(line) : NULL;

		if (!*line)
			continue;
		if (!row) {
			reason_set(reason, "%s: this line is no JSON: %s", path, line);
			ret = -EINVAL;
			break;
		}
		cJSON_AddStringToObject(row, "bench", bench);
		cJSON_AddItemToArray(rows, row);
	}
	buf_fini(&text);
	free(path);
	return ret;
}

static double number(const cJSON *row, const char *name)
{
	const cJSON *value = cJSON_GetObjectItem(row, name);

	return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static const char *text_of(const cJSON *row, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(row, name));

	return text ? text : "";
}

/* The same row of another run, or NULL. */
static const cJSON *find(const cJSON *document, const cJSON *row)
{
	const cJSON *other;

	cJSON_ArrayForEach(other, cJSON_GetObjectItem(document, "rows"))
	{
		if (!strcmp(text_of(other, "bench"), text_of(row, "bench")) &&
		    !strcmp(text_of(other, "what"), text_of(row, "what")))
			return other;
	}
	return NULL;
}

static void cell_number(struct table *t, enum table_paint paint, const char *before, double value)
{
	char *text = isnan(value) ? mem_printf("-")
				  : mem_printf("%s%.*g", before, *before ? 6 : 4, value);

	table_cell(t, paint, text);
	free(text);
}

static void add_row(struct table *t, const cJSON *row, const cJSON *earlier)
{
	double most = number(row, "atMost"), least = number(row, "atLeast");
	double budget = isnan(most) ? least : most, measured = number(row, "measured");
	const char *verdict = text_of(row, "verdict");
	enum table_paint paint = strcmp(verdict, "ok") ? PAINT_BAD : PAINT_PLAIN;

	table_row(t, text_of(row, "what"));
	table_cell(t, PAINT_DIM, text_of(row, "bench"));
	table_cell(t, PAINT_PLAIN, text_of(row, "what"));
	cell_number(t, PAINT_PLAIN, isnan(most) ? ">= " : "<= ", budget);
	cell_number(t, PAINT_PLAIN, "", measured);
	table_cell(t, PAINT_PLAIN, text_of(row, "unit"));
	cell_number(t, PAINT_PLAIN, "", budget > 0 ? measured / budget : NAN);
	table_cell(t, paint, verdict);
	cell_number(t, PAINT_DIM, "", earlier ? number(earlier, "measured") : NAN);
}

static void print_table(const cJSON *rows, const cJSON *earlier)
{
	static const char *const titles[] = {"BENCH", "WHAT",  "BUDGET",  "MEASURED",
					     "UNIT",  "RATIO", "VERDICT", "BEFORE"};
	const struct table_style style = {.headers = true, .color = isatty(STDOUT_FILENO) == 1};
	struct table *t = table_new();
	struct buf out = BUF_INIT;
	size_t budgets = 0, missed = 0;
	const cJSON *row;

	for (size_t i = 0; i < sizeof(titles) / sizeof(*titles); i++)
		table_column(t, titles[i],
			     i == 2 || i == 3 || i == 5 || i == 7 ? FORM_RIGHT : FORM_LEFT);
	cJSON_ArrayForEach(row, rows)
	{
		if (isnan(number(row, "atMost")) && isnan(number(row, "atLeast")))
			continue;
		budgets++;
		missed += strcmp(text_of(row, "verdict"), "ok") != 0;
		add_row(t, row, find(earlier, row));
	}
	if (!earlier)
		table_hide(t, 7);
	table_print(t, &style, &out);
	printf("\n%s%zu budgets, %zu missed\n", out.data ? out.data : "", budgets, missed);
	buf_fini(&out);
	table_free(t);
}

static void describe_machine(cJSON *document)
{
	cJSON *machine = cJSON_AddObjectToObject(document, "machine");
	struct utsname name;

	if (uname(&name) == 0) {
		cJSON_AddStringToObject(machine, "kernel", name.release);
		cJSON_AddStringToObject(machine, "architecture", name.machine);
	}
	cJSON_AddNumberToObject(machine, "processors", (double)sysconf(_SC_NPROCESSORS_ONLN));
}

static int write_document(const cJSON *document, const char *path, struct reason *reason)
{
	char *text = cJSON_Print(document);
	FILE *file = fopen(path, "w");
	bool written = file && fprintf(file, "%s\n", text) > 0;

	if (file && fclose(file))
		written = false;
	if (!written)
		reason_set(reason, "%s cannot be written: %s", path, strerror(errno));
	free(text);
	return written ? 0 : -EIO;
}

static int run(const void *values, struct reason *reason)
{
	const struct bench_table_options *o = values;
	cJSON *document = cJSON_CreateObject(), *rows, *earlier = NULL;
	struct buf text = BUF_INIT;
	int ret = 0;

	cJSON_AddStringToObject(document, "commit", o->commit);
	describe_machine(document);
	rows = cJSON_AddArrayToObject(document, "rows");
	for (size_t i = 0; i < o->benches.count && ret == 0; i++)
		ret = read_rows(o->benches.items[i], rows, reason);
	if (ret == 0 && o->against) {
		ret = file_read(o->against, FILE_MAX_BYTES, &text, reason);
		earlier = ret == 0 ? cJSON_Parse(text.data) : NULL;
		if (ret == 0 && !earlier) {
			reason_set(reason, "%s is no JSON", o->against);
			ret = -EINVAL;
		}
	}
	if (ret == 0)
		print_table(rows, earlier);
	if (ret == 0)
		ret = write_document(document, o->output, reason);
	buf_fini(&text);
	cJSON_Delete(earlier);
	cJSON_Delete(document);
	return ret == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct bench_table_options options = {0};

	return program_main(&program, &options, &options.common, run, argc, argv);
}
