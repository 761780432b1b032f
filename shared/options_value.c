/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From text to the member of the caller's struct, by kind, for all levels alike. Numbers are plain
 * decimal: no hexadecimal, "inf" or blanks.
 */
#include "shared/options_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/mem.h"
#include "shared/utf8.h"

void options_quote(const char *text, char out[QUOTED_LEN])
{
	enum { MOST = QUOTED_LEN - 8 };

	snprintf(out, QUOTED_LEN, "\"%.*s%s\"", MOST, text, strlen(text) > MOST ? "..." : "");
	utf8_replace_controls(out, '?');
}

static void format_bound(const struct option_spec *spec, double bound, struct buf *out)
{
	char text[DURATION_LEN];

	if (spec->kind == OPTION_DURATION || spec->kind == OPTION_PERIOD) {
		duration_format((int64_t)bound, text);
		buf_add_str(out, text);
	} else {
		buf_printf(out, "%.15g", bound);
	}
}

void options_range(const struct option_spec *spec, struct buf *out)
{
	if (spec->min == 0 && spec->max == 0)
		return;
	if (isinf(spec->max)) {
		buf_add_str(out, "at least ");
		format_bound(spec, spec->min, out);
		return;
	}
	format_bound(spec, spec->min, out);
	buf_add_str(out, " to ");
	format_bound(spec, spec->max, out);
}

static int check_range(const struct option_spec *spec, double value, const char *text,
		       struct error *error)
{
	bool duration = spec->kind == OPTION_DURATION || spec->kind == OPTION_PERIOD;
	char quoted[QUOTED_LEN];
	struct buf range = BUF_INIT;

	if ((spec->min == 0 && spec->max == 0) || (value >= spec->min && value <= spec->max))
		return 0;
	options_quote(text, quoted);
	options_range(spec, &range);
	error_set(error, "%s is too %s; %s %s allowed", quoted,
		  value < spec->min ? (duration ? "short" : "small")
				    : (duration ? "long" : "large"),
		  range.data, isinf(spec->max) ? "is" : "are");
	buf_fini(&range);
	return -EINVAL;
}

int options_refuse(const char *text, const char *why, struct error *error)
{
	char quoted[QUOTED_LEN];

	options_quote(text, quoted);
	return error_fail(error, -EINVAL, "%s %s", quoted, why);
}

static int set_integer(const struct option_spec *spec, const char *text, int64_t *value,
		       struct error *error)
{
	size_t sign = text[0] == '-' || text[0] == '+';
	size_t digits = strspn(text + sign, "0123456789");
	long long parsed;

	if (digits == 0 || text[sign + digits])
		return options_refuse(text, "is not a whole number", error);
	errno = 0;
	parsed = strtoll(text, NULL, 10);
	if (errno == ERANGE)
		return options_refuse(text, "is beyond what fits in 64 bits", error);
	if (check_range(spec, (double)parsed, text, error))
		return -EINVAL;
	*value = parsed;
	return 0;
}

static int set_number(const struct option_spec *spec, const char *text, double *value,
		      struct error *error)
{
	double parsed;
	char *end;

	parsed = strtod(text, &end);
	if (end == text || *end || text[strspn(text, "0123456789+-.eE")] || !isfinite(parsed))
		return options_refuse(text, "is not a number", error);
	if (check_range(spec, parsed, text, error))
		return -EINVAL;
	*value = parsed;
	return 0;
}

static int set_duration(const struct option_spec *spec, const char *text, int64_t *value,
			struct error *error)
{
	int64_t parsed;

	if (duration_parse(text, &parsed, error) || check_range(spec, (double)parsed, text, error))
		return -EINVAL;
	*value = parsed;
	return 0;
}

static int set_period(const struct option_spec *spec, const char *text, int64_t *value,
		      struct error *error)
{
	if (strcmp(text, "false") != 0)
		return set_duration(spec, strcmp(text, "true") == 0 ? spec->choices[0] : text,
				    value, error);
	*value = 0;
	return 0;
}

static int set_choice(const struct option_spec *spec, const char *text, int *value,
		      struct error *error)
{
	struct buf known = BUF_INIT;
	char quoted[QUOTED_LEN];
	int i;

	for (i = 0; spec->choices[i]; i++)
		if (strcmp(spec->choices[i], text) == 0) {
			*value = i;
			return 0;
		}
	for (i = 0; spec->choices[i]; i++)
		buf_printf(&known, "%s%s",
			   i == 0		  ? ""
			   : spec->choices[i + 1] ? ", "
						  : " or ",
			   spec->choices[i]);
	options_quote(text, quoted);
	error_set(error, "%s is not known; it is %s", quoted, known.data);
	buf_fini(&known);
	return -EINVAL;
}

int options_set(const struct option_spec *spec, const char *text, void *values, struct error *error)
{
	void *member = (char *)values + spec->offset;
	struct option_list *list = member;

	switch (spec->kind) {
	case OPTION_FLAG:
		if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
			return options_refuse(text, "is neither true nor false", error);
		*(bool *)member = text[0] == 't';
		return 0;
	case OPTION_STRING:
		free(*(char **)member);
		*(char **)member = mem_strdup(text);
		return 0;
	case OPTION_LIST:
	case OPTION_RECORDS:
	case OPTION_TYPED_LIST:
		ARRAY_ADD(list->items, list->count) = mem_strdup(text);
		return 0;
	case OPTION_INTEGER:
		return set_integer(spec, text, member, error);
	case OPTION_NUMBER:
		return set_number(spec, text, member, error);
	case OPTION_DURATION:
		return set_duration(spec, text, member, error);
	case OPTION_PERIOD:
		return set_period(spec, text, member, error);
	case OPTION_CHOICE:
		return set_choice(spec, text, member, error);
	}
	return -EINVAL;
}

void option_list_free(struct option_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct option_list){0};
}
