/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench_report.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/buf.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

/* Of fewer the 99th percentile is just the longest. */
enum { PERCENTILE_OF = 100 };

static FILE *json;

static void print_heading(const char *name)
{
	printf("\n%-58s %10s %12s %-10s %s\n", name, "BUDGET", "MEASURED", "UNIT", "VERDICT");
}

int bench_begin_at(const char *name, const char *path, struct error *reason)
{
	/* Where most of them go. */
	mkdir("build", 0777);
	mkdir("build/bench", 0777);
	json = fopen(path, "we");
	if (!json) {
		int error = errno;

		error_set(reason, "%s: %s", path, strerror(error));
		return -error;
	}
	print_heading(name);
	return 0;
}

void bench_begin(const char *name)
{
	char *path = mem_printf("build/bench/%s.json", name);
	struct error why;

	if (bench_begin_at(name, path, &why)) {
		fprintf(stderr, "%s\n", why.text);
		print_heading(name);
	}
	free(path);
}

/* One line, written out at once: a bench that is stopped half-way keeps what it measured. */
static void write_row(const char *what, const char *unit, double budget, int at_least,
		      double measured, size_t samples, const char *verdict)
{
	struct buf line = BUF_INIT;
	struct jsonw w;

	jsonw_init(&w, &line);
	jsonw_object_open(&w);
	jsonw_key_string(&w, "what", what);
	jsonw_key_string(&w, "unit", unit);
	if (!isnan(budget)) {
		jsonw_key(&w, at_least ? "atLeast" : "atMost");
		jsonw_exact(&w, budget);
	}
	jsonw_key(&w, "measured");
	jsonw_exact_float(&w, (float)measured);
	if (samples)
		jsonw_key_int(&w, "samples", (int64_t)samples);
	jsonw_key_string(&w, "verdict", verdict);
	jsonw_object_close(&w);
	buf_printf(&line, "\n");
	fwrite(line.data, 1, line.len, json);
	fflush(json);
	buf_fini(&line);
}

static void add_row(const char *what, const char *unit, double budget, int at_least,
		    double measured, size_t samples)
{
	const char *verdict = "-";
	char limit[32] = "-";

	if (!isnan(budget)) {
		snprintf(limit, sizeof(limit), "%s%.6g", at_least ? ">= " : "<= ", budget);
		if (at_least)
			verdict = measured >= budget ? "ok" : "under";
		else
			verdict = measured <= budget ? "ok" : "over";
	}
	printf("%-58s %10s %12.4g %-10s %s\n", what, limit, measured, unit, verdict);
	fflush(stdout);
	if (json)
		write_row(what, unit, budget, at_least, measured, samples, verdict);
}

void bench_row(const char *what, const char *unit, double budget, int at_least, double measured)
{
	add_row(what, unit, budget, at_least, measured, 0);
}

void bench_row_of(const char *prefix, const char *what, const char *unit, double budget,
		  double measured)
{
	char *label = mem_printf("%s%s", prefix, what);

	bench_row(label, unit, budget, 0, measured);
	free(label);
}

void bench_reading(const char *const *names, const double *values, size_t count)
{
	struct buf line = BUF_INIT;
	struct jsonw w;

	if (!json)
		return;
	jsonw_init(&w, &line);
	jsonw_object_open(&w);
	jsonw_key(&w, "reading");
	jsonw_object_open(&w);
	for (size_t i = 0; i < count; i++) {
		jsonw_key(&w, names[i]);
		jsonw_exact_float(&w, (float)values[i]);
	}
	jsonw_object_close(&w);
	jsonw_object_close(&w);
	buf_add_char(&line, '\n');
	fwrite(line.data, 1, line.len, json);
	fflush(json);
	buf_fini(&line);
}

void bench_end(void)
{
	if (json)
		fclose(json);
	json = NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

double bench_quantile(double *values, size_t count, double q)
{
	size_t rank = (size_t)ceil(q * (double)count);

	if (!count)
		return (double)NAN;
	qsort(values, count, sizeof(*values), compare);
	return values[rank ? rank - 1 : 0];
}

void bench_waits(const char *what, const char *unit, double budget, double *times, size_t count)
{
	bool enough = count >= PERCENTILE_OF;
	char *row;

	if (!count)
		return;
	row = mem_printf("%s, median", what);
	add_row(row, unit, (double)NAN, 0, bench_quantile(times, count, 0.5), count);
	free(row);
	if (enough) {
		row = mem_printf("%s, 99 of 100", what);
		add_row(row, unit, budget, 0, bench_quantile(times, count, 0.99), count);
		free(row);
	}
	row = mem_printf("%s, longest", what);
	add_row(row, unit, enough ? (double)NAN : budget, 0, times[count - 1], count);
	free(row);
}
