/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_table: what the benchmarks wrote into build/bench, as one table of all budgets (budgets.c),
 * after one of what else benchmarks have set themselves, and as one JSON document of all rows with
 * the commit and the machine they were measured on. What tests show instead of benchmarks, and how
 * long they take, comes from what .ci/run wrote, where it ran. The document of an earlier run,
 * given with --against, adds what each row was then. A benchmark that has not run leaves its
 * budgets open. Exit: 0 ok, 1 error, 2 usage; a budget that is missed is told, not failed, since
 * the machine has its part in it.
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
#include "tests/bench_table/budgets.h"

enum { FILE_MAX_BYTES = 4 << 20 };

struct bench_table_options {
	char *against, *output, *commit, *ci;
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
	{.name = "ci",
	 .kind = OPTION_STRING,
	 .offset = AT(ci),
	 .value = "FILE",
	 .initial = "build/ci.json",
	 .help = "What .ci/run wrote of its steps; it need not be there."},
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
static int read_rows(const char *bench, cJSON *rows, struct error *error)
{
	char *path = mem_printf("build/bench/%s.json", bench), *line, *rest;
	struct buf text = BUF_INIT;
	int ret = access(path, F_OK) ? 0 : file_read(path, FILE_MAX_BYTES, &text, error);

	rest = text.data;
	while (ret == 0 && rest && (line = strsep(&rest, "\n"))) {
		cJSON *row = *line ? cJSON_Parse(line) : NULL;

		if (!*line)
			continue;
		if (!row) {
			error_set(error, "%s: this line is no JSON: %s", path, line);
			ret = -EINVAL;
			break;
		}
		/* Readings are the bench's own. */
		if (!cJSON_GetObjectItem(row, "what")) {
			cJSON_Delete(row);
			continue;
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

static const cJSON *find(const cJSON *document, const char *bench, const char *what)
{
	const cJSON *row;

	cJSON_ArrayForEach (row, cJSON_GetObjectItem(document, "rows")) {
		if (!strcmp(text_of(row, "bench"), bench) && !strcmp(text_of(row, "what"), what))
			return row;
	}
	return NULL;
}

static void cell_number(struct table *t, enum table_paint paint, const char *before, double value)
{
	char *text = isnan(value)	   ? mem_printf("-")
		     : fabs(value) >= 1000 ? mem_printf("%s%.0f", before, value)
					   : mem_printf("%s%.4g", before, value);

	table_cell(t, paint, text);
	free(text);
}

static void add_cells(struct table *t, double limit, bool at_least, double measured,
		      const char *unit, const char *verdict, double before)
{
	enum table_paint paint = strcmp(verdict, "ok") ? PAINT_BAD : PAINT_PLAIN;

	cell_number(t, PAINT_PLAIN, at_least ? ">= " : "<= ", limit);
	cell_number(t, PAINT_PLAIN, "", measured);
	table_cell(t, PAINT_PLAIN, unit);
	cell_number(t, PAINT_PLAIN, "", limit > 0 ? measured / limit : NAN);
	table_cell(t, paint, verdict);
	cell_number(t, PAINT_DIM, "", before);
}

static struct table *begin_table(void)
{
	static const char *const titles[] = {"BENCH", "WHAT",  "BUDGET",  "MEASURED",
					     "UNIT",  "RATIO", "VERDICT", "BEFORE"};
	struct table *t = table_new();

	for (size_t i = 0; i < sizeof(titles) / sizeof(*titles); i++)
		table_column(t, titles[i],
			     i == 2 || i == 3 || i == 5 || i == 7 ? FORM_RIGHT : FORM_LEFT);
	return t;
}

/* Prints and frees it. */
static void end_table(struct table *t, const char *title, bool compared, const size_t counts[3])
{
	const struct table_style style = {.headers = true, .color = isatty(STDOUT_FILENO) == 1};
	struct buf out = BUF_INIT;

	if (!compared)
		table_hide(t, 7);
	table_print(t, &style, &out);
	printf("\n%s\n\n%s%zu met, %zu missed, %zu not measured\n", title, out.data ? out.data : "",
	       counts[0], counts[1], counts[2]);
	buf_fini(&out);
	table_free(t);
}

static bool is_promised(const cJSON *row)
{
	for (size_t i = 0; i < budget_count; i++) {
		if (budgets[i].bench && !strcmp(budgets[i].bench, text_of(row, "bench")) &&
		    !strcmp(budgets[i].row, text_of(row, "what")))
			return true;
	}
	return false;
}

/* What benchmarks themselves expect beyond the budgets. */
static void print_expected(const cJSON *document, const cJSON *earlier)
{
	struct table *t = begin_table();
	size_t counts[3] = {0};
	const cJSON *row;

	cJSON_ArrayForEach (row, cJSON_GetObjectItem(document, "rows")) {
		double most = number(row, "atMost"), least = number(row, "atLeast");
		const char *bench = text_of(row, "bench"), *what = text_of(row, "what");

		if ((isnan(most) && isnan(least)) || is_promised(row))
			continue;
		counts[strcmp(text_of(row, "verdict"), "ok") != 0]++;
		table_row(t, what);
		table_cell(t, PAINT_DIM, bench);
		table_cell(t, PAINT_PLAIN, what);
		add_cells(t, isnan(most) ? least : most, isnan(most), number(row, "measured"),
			  text_of(row, "unit"), text_of(row, "verdict"),
			  number(find(earlier, bench, what), "measured"));
	}
	end_table(t, "What the benchmarks expect beside the budgets", earlier != NULL, counts);
}

/* --- the budgets ------------------------------------------------------------------------------ */

/* A step of .ci/run, "" for all of it; NULL where it did not run. */
static const cJSON *find_step(const cJSON *document, const char *name)
{
	const cJSON *ci = cJSON_GetObjectItem(document, "ci"), *step;

	if (!*name)
		return ci;
	cJSON_ArrayForEach (step, cJSON_GetObjectItem(ci, "steps")) {
		if (!strcmp(text_of(step, "step"), name))
			return step;
	}
	return NULL;
}

static double measured_of(const struct budget *b, const cJSON *document)
{
	if (b->bench)
		return number(find(document, b->bench, b->row), "measured");
	return b->step && b->unit ? number(find_step(document, b->step), "seconds") / 60 : NAN;
}

static const char *verdict_of(const struct budget *b, const cJSON *document, double measured)
{
	const cJSON *step = b->step ? find_step(document, b->step) : NULL;

	if (step && number(step, "status") != 0)
		return "failed";
	if (b->step && !b->unit)
		return step ? "ok" : "by test";
	if (isnan(measured))
		return "open";
	if (b->at_least)
		return measured >= b->limit ? "ok" : "under";
	return measured <= b->limit ? "ok" : "over";
}

static void add_budget(struct table *t, const struct budget *b, const cJSON *document,
		       const cJSON *earlier, size_t counts[3])
{
	bool promise = !b->bench && !b->step;
	double measured = measured_of(b, document);
	const char *verdict = promise ? "" : verdict_of(b, document, measured);
	char *what = mem_printf("%s%s", promise ? "" : "  ", b->what);

	table_row(t, b->what);
	table_cell(t, PAINT_DIM, promise ? "" : b->bench ? b->bench : b->note);
	table_cell(t, PAINT_PLAIN, what);
	free(what);
	if (promise) {
		for (int i = 0; i < 6; i++)
			table_cell(t, PAINT_PLAIN, "");
		return;
	}
	if (!strcmp(verdict, "ok"))
		counts[0]++;
	else
		counts[strcmp(verdict, "open") != 0 && strcmp(verdict, "by test") != 0 ? 1 : 2]++;
	add_cells(t, b->unit ? b->limit : NAN, b->at_least, measured, b->unit ? b->unit : "",
		  verdict, earlier ? measured_of(b, earlier) : NAN);
}

static void print_budgets(const cJSON *document, const cJSON *earlier)
{
	struct table *t = begin_table();
	size_t counts[3] = {0};

	for (size_t i = 0; i < budget_count; i++)
		add_budget(t, &budgets[i], document, earlier, counts);
	end_table(t, "Budgets", earlier != NULL, counts);
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

static int write_document(const cJSON *document, const char *path, struct error *error)
{
	char *text = cJSON_Print(document);
	FILE *file = fopen(path, "w");
	bool written = file && fprintf(file, "%s\n", text) > 0;

	if (file && fclose(file))
		written = false;
	if (!written)
		error_set(error, "%s cannot be written: %s", path, strerror(errno));
	free(text);
	return written ? 0 : -EIO;
}

/* A document that bench_table or .ci/run wrote; NULL with the reason when it cannot be read. */
static cJSON *read_document(const char *path, struct error *error)
{
	struct buf text = BUF_INIT;
	cJSON *document = NULL;

	if (file_read(path, FILE_MAX_BYTES, &text, error) == 0) {
		document = cJSON_Parse(text.data ? text.data : "");
		if (!document)
			error_set(error, "%s is no JSON", path);
	}
	buf_fini(&text);
	return document;
}

static int fill(cJSON *document, const struct bench_table_options *o, struct error *error)
{
	cJSON *rows, *ci;
	int ret = 0;

	cJSON_AddStringToObject(document, "commit", o->commit);
	describe_machine(document);
	rows = cJSON_AddArrayToObject(document, "rows");
	for (size_t i = 0; i < o->benches.count && ret == 0; i++)
		ret = read_rows(o->benches.items[i], rows, error);
	if (ret || access(o->ci, F_OK))
		return ret;
	ci = read_document(o->ci, error);
	if (!ci)
		return -EINVAL;
	cJSON_AddItemToObject(document, "ci", ci);
	return 0;
}

static int run(const void *values, struct error *error)
{
	const struct bench_table_options *o = values;
	cJSON *document = cJSON_CreateObject(), *earlier = NULL;
	int ret = fill(document, o, error);

	if (ret == 0 && o->against) {
		earlier = read_document(o->against, error);
		ret = earlier ? 0 : -EINVAL;
	}
	if (ret == 0) {
		print_expected(document, earlier);
		print_budgets(document, earlier);
		ret = write_document(document, o->output, error);
	}
	cJSON_Delete(earlier);
	cJSON_Delete(document);
	return ret == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct bench_table_options options = {0};

	return program_main(&program, &options, &options.common, run, argc, argv);
}
