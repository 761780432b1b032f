/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cluster gains by asking evenkeel where pods go: bursts of pods whose true use only this
 * program knows, on a real control plane, placed by one scheduler after the other.
 *
 *	SEEDS=5  BURSTS=exact,low,..  CONTENDERS=stock,unbatched,echo,ours,cap,tlp,lvrb  PEER_SCHEDULER=PATH
 *	OURS_OPTIONS="--extender-blend .."    more options of the aggregator in every run
 *	PACE=50                               pods come at so many a second; without it at once
 *
 * Prints a table, and writes a line of JSON for each run and each row to build/bench/placement.json.
 */
#include <curl/curl.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/mem.h"
#include "tests/bench_placement/arena.h"

#define JSON "build/bench/placement.json"

enum { SEEDS_MAX = 100, OPTIONS_MAX = 12 };

/* The figures of one contender in one burst, a value each seed. */
struct row {
	const struct contender *contender;
	const struct burst *burst;
	double *values[6]; /* owned */
	size_t count;
};

/* Members of struct figures. */
static const struct column {
	const char *name, *title;
	size_t offset;
} columns[] = {
	{"over85", "over 85 %", offsetof(struct figures, over)},
	{"highest", "highest %", offsetof(struct figures, highest)},
	{"deviation", "deviation", offsetof(struct figures, deviation)},
	{"pending", "pending", offsetof(struct figures, pending)},
	{"needless", "needlessly", offsetof(struct figures, needless)},
	{"podsPerSecond", "pods/s", offsetof(struct figures, rate)},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static double figure(const struct figures *f, size_t column)
{
	double value;

	memcpy(&value, (const char *)f + columns[column].offset, sizeof(value));
	return value;
}

/* Whether a list of names with commas has this one; a list that is not given has all. */
static bool is_listed(const char *variable, const char *name)
{
	const char *at = getenv(variable);
	size_t len = strlen(name);

	if (!at || !*at)
		return true;
	for (; *at; at += strcspn(at, ","), at += *at == ',')
		if (strncmp(at, name, len) == 0 && strchr(",", at[len]))
			return true;
	return false;
}

static void split_options(char *text, const char **options)
{
	size_t n = 0;

	for (char *word = strtok_r(text, " ", &text); word && n < OPTIONS_MAX;
	     word = strtok_r(NULL, " ", &text))
		options[n++] = word;
	options[n] = NULL;
}

/* --- output ----------------------------------------------------------------------------------- */

static void write_run(FILE *json, const struct row *r, uint64_t seed, const struct figures *f)
{
	fprintf(json, "{\"run\":\"%s\",\"burst\":\"%s\",\"seed\":%llu", r->contender->name,
		r->burst->name, (unsigned long long)seed);
	for (size_t c = 0; c < COLUMNS; c++)
		fprintf(json, ",\"%s\":%.2f", columns[c].name, figure(f, c));
	fprintf(json, "}\n");
	fflush(json);
	printf("  %-9s %-10s seed %2llu: %2.0f over, highest %5.1f %%, %3.0f pending, "
	       "%3.0f needlessly, %4.0f pods/s\n",
	       r->contender->name, r->burst->name, (unsigned long long)seed, f->over, f->highest,
	       f->pending, f->needless, f->rate);
	fflush(stdout);
}

static void write_row(FILE *json, const struct row *r)
{
	printf("%-22s %-21s", r->burst->title, r->contender->title);
	fprintf(json, "{\"row\":\"%s\",\"burst\":\"%s\",\"seeds\":%zu", r->contender->name,
		r->burst->name, r->count);
	for (size_t c = 0; c < COLUMNS; c++) {
		struct spread s = figures_spread(r->values[c], r->count);

		printf(c == COLUMNS - 1 ? " %10.0f" : " %6.1f/%-6.1f", s.mean, s.p95);
		fprintf(json, ",\"%s\":{\"mean\":%.2f,\"p95\":%.2f,\"max\":%.2f}", columns[c].name,
			s.mean, s.p95, s.max);
	}
	printf("\n");
	fprintf(json, "}\n");
}

/* Burst by burst, so that contenders stand below each other. */
static void write_table(FILE *json, const struct row *rows, size_t count)
{
	printf("\n%-22s %-21s", "burst", "scheduler");
	for (size_t c = 0; c < COLUMNS; c++)
		printf(c == COLUMNS - 1 ? " %10s" : " %13s", columns[c].title);
	printf("\n%-44s mean/p95 over seeds\n", "");
	for (size_t b = 0; b < burst_count; b++)
		for (size_t i = 0; i < count; i++)
			if (rows[i].burst == &bursts[b])
				write_row(json, &rows[i]);
}

/* --- runs ------------------------------------------------------------------------------------- */

static struct row *row_of(struct row *rows, size_t *count, const struct contender *c,
			  const struct burst *b)
{
	for (size_t i = 0; i < *count; i++)
		if (rows[i].contender == c && rows[i].burst == b)
			return &rows[i];
	rows[*count] = (struct row){.contender = c, .burst = b};
	for (size_t i = 0; i < COLUMNS; i++)
		rows[*count].values[i] = mem_zalloc(SEEDS_MAX, sizeof(double));
	return &rows[(*count)++];
}

static void run_bursts(struct arena *a, FILE *json, struct row *rows, size_t *count)
{
	for (size_t b = 0; b < burst_count; b++) {
		struct figures f;
		struct row *r;

		if (!is_listed("BURSTS", bursts[b].name))
			continue;
		f = arena_run(a, &bursts[b]);
		r = row_of(rows, count, a->contender, &bursts[b]);
		for (size_t c = 0; c < COLUMNS; c++)
			r->values[c][r->count] = figure(&f, c);
		r->count++;
		write_run(json, r, a->seed, &f);
	}
}

static size_t run_all(struct arena *a, uint64_t seeds, FILE *json, struct row *rows)
{
	size_t count = 0;

	for (size_t i = 0; i < contender_count; i++) {
		const struct contender *c = &contenders[i];

		if (!is_listed("CONTENDERS", c->name))
			continue;
		if (!contender_is_here(c)) {
			printf("SKIP %s: PEER_SCHEDULER=PATH names no scheduler with it\n",
			       c->title);
			continue;
		}
		arena_set_contender(a, c);
		for (uint64_t seed = 1; seed <= seeds; seed++) {
			arena_set_seed(a, seed);
			run_bursts(a, json, rows, &count);
		}
	}
	return count;
}

static FILE *open_json(void)
{
	FILE *json;

	mkdir("build", 0777);
	mkdir("build/bench", 0777);
	json = fopen(JSON, "we");
	if (!json)
		perror(JSON);
	return json;
}

int main(void)
{
	const char *wanted = getenv("SEEDS"), *more = getenv("OURS_OPTIONS"),
		   *pace = getenv("PACE");
	uint64_t seeds = wanted ? strtoul(wanted, NULL, 10) : 5;
	char *words = mem_strdup(more ? more : "");
	const char *options[OPTIONS_MAX + 1];
	struct row *rows = mem_zalloc(contender_count * burst_count, sizeof(*rows));
	struct arena *arena;
	size_t count;
	FILE *json;

	if (seeds < 1 || seeds > SEEDS_MAX || sodium_init() < 0 ||
	    curl_global_init(CURL_GLOBAL_DEFAULT) || !(json = open_json()))
		return 1;
	arena = arena_new();
	if (!arena)
		return 0;
	split_options(words, options);
	arena->more_options = options;
	arena->pods_per_s = pace ? strtod(pace, NULL) : 0;
	count = run_all(arena, seeds, json, rows);
	write_table(json, rows, count);
	fclose(json);
	arena_free(arena, false);
	for (size_t i = 0; i < count; i++)
		for (size_t c = 0; c < COLUMNS; c++)
			free(rows[i].values[c]);
	free(rows);
	free(words);
	return 0;
}
