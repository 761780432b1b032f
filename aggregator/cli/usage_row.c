/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fresh, late and expired are shown by words and by colour, never by colour alone. A call that
 * names things answers for those: one missing or not fresh is exit 4. Without names only a total
 * failure is, unless --strict.
 */
#include "aggregator/cli/usage_row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/units.h"

static const char *const state_words[] = {
	[ROW_FRESH] = "fresh",	[ROW_LATE] = "late",	 [ROW_EXPIRED] = "expired",
	[ROW_NONE] = "unknown", [ROW_APART] = "unknown",
};

void usage_tally_init(struct usage_tally *t, const struct cli *cli, const char *what)
{
	*t = (struct usage_tally){.cli = cli, .what = what};
	t->met = mem_zalloc(cli->operand_count, sizeof(*t->met));
}

void usage_tally_fini(struct usage_tally *t)
{
	free(t->met);
}

static size_t find_operand(const struct cli *cli, const char *name)
{
	size_t i = 0;

	while (i < cli->operand_count && strcmp(cli->operands[i], name) != 0)
		i++;
	return i;
}

bool usage_tally_wants(const struct usage_tally *t, const char *name)
{
	return t->cli->operand_count == 0 || find_operand(t->cli, name) < t->cli->operand_count;
}

void usage_tally_add(struct usage_tally *t, const char *name, enum row_state state, double age)
{
	size_t i = find_operand(t->cli, name);

	t->states[state]++;
	if (i == t->cli->operand_count)
		return;
	/* One name may stand for several pods, and may be given twice. */
	for (; i < t->cli->operand_count; i++)
		if (strcmp(t->cli->operands[i], name) == 0) {
			t->met[i] = true;
			name = t->cli->operands[i];
		}
	if (state != ROW_FRESH && state != ROW_APART && !t->stale_name) {
		t->stale_name = name;
		t->stale_state = state;
		t->stale_age = age;
	}
}

static int missing(const struct usage_tally *t, struct reason *reason)
{
	for (size_t i = 0; i < t->cli->operand_count; i++)
		if (!t->met[i]) {
			reason_set(reason, "%s \"%s\" is not known", t->what, t->cli->operands[i]);
			return CLI_STALE;
		}
	return CLI_OK;
}

static void explain_stale(const struct usage_tally *t, struct reason *reason)
{
	char age[UNITS_LEN];

	units_age(t->stale_age, age);
	if (t->stale_state == ROW_NONE)
		reason_set(reason, "of %s \"%s\" there is no usage", t->what, t->stale_name);
	else if (isnan(t->stale_age))
		reason_set(reason, "the usage of %s \"%s\" is %s", t->what, t->stale_name,
			   state_words[t->stale_state]);
	else
		reason_set(reason, "the usage of %s \"%s\" is %s: %s old", t->what, t->stale_name,
			   state_words[t->stale_state], age);
}

size_t usage_tally_total(const struct usage_tally *t)
{
	size_t total = 0;

	for (size_t i = ROW_FRESH; i < ROW_STATES; i++)
		total += t->states[i];
	return total;
}

int usage_tally_exit(const struct usage_tally *t, struct reason *reason)
{
	size_t fresh = t->states[ROW_FRESH], total = usage_tally_total(t);

	if (missing(t, reason))
		return CLI_STALE;
	if (t->stale_name) {
		explain_stale(t, reason);
		return CLI_STALE;
	}
	/* Nothing that has such labels may well be what there is. */
	if (total == 0 && t->cli->options->selector) {
		reason_set(reason, "no %s has labels %s", t->what, t->cli->options->selector);
		return CLI_OK;
	}
	if (t->cli->no_usage) {
		reason_set(reason, "%s", t->cli->no_usage);
		return CLI_STALE;
	}
	if (total == 0) {
		reason_set(reason, "no %s is known: has an evenkeel-agent been started?", t->what);
		return CLI_STALE;
	}
	total -= t->states[ROW_APART];
	if (fresh == 0 && total > 0) {
		reason_set(reason,
			   "no %s is fresh: nothing was heard of the %zu known for "
			   "30s or more",
			   t->what, total);
		return CLI_STALE;
	}
	if (fresh < total && t->cli->options->strict) {
		reason_set(reason, "%zu of %zu %ss are not fresh (--strict)", total - fresh, total,
			   t->what);
		return CLI_STALE;
	}
	return CLI_OK;
}

void usage_row_age(struct table *t, enum row_state state, double age_seconds)
{
	char age[UNITS_LEN], text[UNITS_LEN + 16];

	units_age(age_seconds, age);
	if (state == ROW_FRESH)
		table_cell(t, PAINT_PLAIN, age);
	else if (state == ROW_NONE)
		table_cell(t, PAINT_BAD, "never");
	else if (state == ROW_APART)
		table_cell(t, PAINT_DIM, "-");
	else {
		snprintf(text, sizeof(text), "%s %s", age, state_words[state]);
		table_cell(t, state == ROW_LATE ? PAINT_WARN : PAINT_BAD, text);
	}
}

static enum table_paint pressure(double share)
{
	return share >= 0.9 ? PAINT_BAD : share >= 0.75 ? PAINT_WARN : PAINT_PLAIN;
}

void usage_row_cpu(struct table *t, double milli)
{
	char text[UNITS_LEN];

	units_cpu(milli, text);
	table_cell(t, PAINT_PLAIN, text);
}

void usage_row_bytes(struct table *t, double bytes)
{
	char text[UNITS_LEN];

	units_bytes(bytes, text);
	table_cell(t, PAINT_PLAIN, text);
}

void usage_row_byte_limit(struct table *t, const cJSON *item, const char *path)
{
	if (document_is_null(item, path))
		table_cell(t, PAINT_DIM, "none");
	else
		usage_row_bytes(t, document_number(item, path));
}

void usage_row_micros(struct table *t, double us)
{
	char text[UNITS_LEN] = "0";

	if (us != 0)
		units_micros(us, text);
	table_cell(t, PAINT_PLAIN, text);
}

static void add_two_shares(struct table *t, double cpu, double memory)
{
	char left[UNITS_LEN], right[UNITS_LEN], text[2 * UNITS_LEN];

	units_percent(cpu, left);
	units_percent(memory, right);
	snprintf(text, sizeof(text), "%s/%s", left, right);
	table_cell(t, PAINT_PLAIN, isnan(cpu) && isnan(memory) ? "-" : text);
}

void usage_row_pressure(struct table *t, const cJSON *item)
{
	add_two_shares(t, document_number(item, "contention.cpu"),
		       document_number(item, "contention.memory"));
	add_two_shares(t, document_number(item, "contention.cpuStalledRatio"),
		       document_number(item, "contention.memoryStalledRatio"));
}

void usage_row_cpu_limit(struct table *t, const cJSON *item, const char *path)
{
	if (document_is_null(item, path))
		table_cell(t, PAINT_DIM, "none");
	else
		usage_row_cpu(t, document_number(item, path));
}

void usage_row_limit_ratio(struct table *t, double ratio)
{
	char text[UNITS_LEN];

	units_percent(ratio, text);
	table_cell(t, ratio > 2 ? PAINT_BAD : ratio > 1 ? PAINT_WARN : PAINT_PLAIN, text);
}

void usage_row_count(struct table *t, double count, enum table_paint paint)
{
	char text[UNITS_LEN];

	snprintf(text, sizeof(text), "%.10g", count);
	table_cell(t, paint, isnan(count) ? "-" : text);
}

void usage_row_count_of(struct table *t, double count, double limit)
{
	char text[UNITS_LEN];

	if (isnan(count) || !(limit >= 0)) {
		usage_row_count(t, count, PAINT_PLAIN);
		return;
	}
	snprintf(text, sizeof(text), "%.10g/%.10g", count, limit);
	table_cell(t, pressure(count / limit), text);
}

void usage_row_bytes_against(struct table *t, double bytes, double limit)
{
	char text[UNITS_LEN];

	units_bytes(bytes, text);
	table_cell(t, limit > 0 ? pressure(bytes / limit) : PAINT_PLAIN, text);
}

void usage_row_percent(struct table *t, double part, double whole)
{
	double share = whole > 0 ? part / whole : NAN;
	char text[UNITS_LEN];

	units_percent(share, text);
	table_cell(t, pressure(share), text);
}

void usage_row_throttled(struct table *t, const cJSON *item)
{
	double ratio = document_number(item, "contention.throttledRatio");
	double seconds = document_number(item, "contention.throttledSeconds");
	char text[UNITS_LEN];

	/*
	 * Without a limit there are no periods, so no share of them, and nothing that was
	 * throttled.
	 */
	if (isnan(ratio) && seconds != 0)
		units_seconds(seconds, text);
	else
		units_percent(isnan(ratio) ? 0 : ratio, text);
	table_cell(t,
		   ratio >= 0.25	      ? PAINT_BAD
		   : ratio > 0 || seconds > 0 ? PAINT_WARN
					      : PAINT_PLAIN,
		   text);
}

void usage_row_oom(struct table *t, const cJSON *item)
{
	double kills = document_number(item, "contention.oomKills");

	usage_row_count(t, kills, kills > 0 ? PAINT_BAD : PAINT_PLAIN);
}

double usage_row_cpu_window(const cJSON *item, const char *window, const char *statistic)
{
	char path[64];

	snprintf(path, sizeof(path), "usage.cpuMillicores.windows.%s.%s", window, statistic);
	return document_number(item, path);
}

double usage_row_waiting_key(const cJSON *item)
{
	return fmax(document_number(item, "contention.cpu"),
		    document_number(item, "contention.memory"));
}

double usage_row_throttled_key(const cJSON *item)
{
	double ratio = document_number(item, "contention.throttledRatio");
	double seconds = document_number(item, "contention.throttledSeconds");

	/* The contention object covers 5 minutes. */
	return isnan(ratio) ? seconds / 300 : ratio;
}
