/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups, budgets and the cluster's minimum are records: "name=workers,min=3,atomic". Some values
 * have commas themselves (a schedule, a list of reasons), so a part without "=" that is no key
 * belongs to the value before it. A part with "=" must begin with a key that is known: a typing
 * error is told and not made part of a name.
 */
#include "aggregator/planner/drain_settings.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/clock.h"
#include "shared/duration.h"
#include "shared/mem.h"
#include "shared/quantity.h"

const char *const drain_setting_variants[] = {"corrected", "upstream", NULL};
const char *const drain_setting_orders[] = {"default", "fullest", "emptiest", "cyclic", NULL};

static const struct option_spec specs[] = {DRAIN_SETTINGS_OPTIONS(0), {0}};

static const struct option_program program = {
	.name = "drain",
	.specs = specs,
	.env_prefix = "EVENKEEL_",
};

/* --- records */

enum { KEYS_MAX = 4 };

struct record {
	const char *option; /* for reasons */
	const char *text; /* as it was given */
	const char *const *keys; /* that are known; a NULL ends them */
	char *values[KEYS_MAX]; /* by key; NULL: it is not there. In the copy that was cut. */
};

static int fail(const struct record *r, struct error *error, const char *what, const char *part)
{
	return error_fail(error, -EINVAL, "%s \"%.200s\": %s \"%.60s\"", r->option, r->text, what,
			  part);
}

static int fail_key(const struct record *r, struct error *error, const char *part)
{
	struct buf known = BUF_INIT;

	for (int i = 0; r->keys[i]; i++)
		buf_printf(&known, "%s%s", i ? ", " : "", r->keys[i]);
	error_set(error, "%s \"%.200s\": \"%.60s\" is none of %s", r->option, r->text, part,
		  known.data);
	buf_fini(&known);
	return -EINVAL;
}

static int find_key(const struct record *r, const char *part, size_t len)
{
	for (int i = 0; r->keys[i]; i++)
		if (strlen(r->keys[i]) == len && memcmp(r->keys[i], part, len) == 0)
			return i;
	return -1;
}

/* Where the comma after a value is: before the next key. NULL: there is none. */
static char *find_end(const struct record *r, char *value)
{
	for (char *comma = strchr(value, ','); comma; comma = strchr(comma + 1, ',')) {
		size_t len = strcspn(comma + 1, ",=");

		if (comma[1 + len] == '=' || find_key(r, comma + 1, len) >= 0)
			return comma;
	}
	return NULL;
}

/* Cuts `at`, a copy of the text, into values. */
static int cut(struct record *r, char *at, struct error *error)
{
	while (at) {
		size_t len = strcspn(at, ",=");
		int key = find_key(r, at, len);
		char *end;

		if (key < 0) {
			at[len] = '\0';
			return fail_key(r, error, at);
		}
		if (r->values[key])
			return fail(r, error, "given twice is", r->keys[key]);
		r->values[key] = at[len] == '=' ? at + len + 1 : at + len;
		end = find_end(r, at + len);
		if (end)
			*end++ = '\0';
		else if (at[len] == ',')
			return fail_key(r, error, at + len + 1);
		at = end;
	}
	return 0;
}

/* The setup outlives the options. */
static void *own(struct drain_setup *s, void *block)
{
	ARRAY_ADD(s->owned, s->owned_count) = block;
	return block;
}

static int read_record(struct drain_setup *s, struct record *r, struct error *error)
{
	return cut(r, own(s, mem_strdup(r->text)), error);
}

/* Without that value *out stays as it is. */
static int read_count(const struct record *r, int key, int64_t *out, struct error *error)
{
	const char *text = r->values[key] ? r->values[key] : "";
	size_t digits = strspn(text, "0123456789");
	long value = digits && digits < 10 && !text[digits] ? strtol(text, NULL, 10) : -1;

	if (!r->values[key])
		return 0;
	if (value < 0)
		return error_fail(error, -EINVAL,
				  "%s \"%.200s\": %s \"%.60s\" is not a number from 0 to 999999999",
				  r->option, r->text, r->keys[key], text);
	*out = value;
	return 0;
}

/* --- drain.groups */

static int read_group(struct drain_setup *s, const char *text, struct drain_group_rule *out,
		      struct error *error)
{
	enum { NAME, MIN, MAX, ATOMIC };
	static const char *const keys[] = {"name", "min", "max", "atomic", NULL};
	struct record r = {.option = "--drain-group", .text = text, .keys = keys};

	*out = (struct drain_group_rule){.max = -1};
	if (read_record(s, &r, error))
		return -EINVAL;
	if (!r.values[NAME])
		return fail(&r, error, "there must be a", "name");
	out->name = r.values[NAME];
	if (read_count(&r, MIN, &out->min, error) || read_count(&r, MAX, &out->max, error))
		return -EINVAL;
	if (!r.values[ATOMIC] || strcmp(r.values[ATOMIC], "false") == 0)
		return 0;
	out->atomic = true;
	if (r.values[ATOMIC][0] && strcmp(r.values[ATOMIC], "true") != 0)
		return fail(&r, error, "atomic is true or false, not", r.values[ATOMIC]);
	return 0;
}

static int read_groups(struct drain_setup *s, const struct option_list *list, struct error *error)
{
	struct drain_group_rule *groups = own(s, mem_zalloc(list->count + 1, sizeof(*groups)));
	int rc;

	for (size_t i = 0; i < list->count; i++)
		if (read_group(s, list->items[i], &groups[i], error))
			return -EINVAL;
	rc = drain_groups_check(groups, list->count, error);
	if (rc)
		error_prefix(error, "--drain-group");
	s->config.groups = groups;
	s->config.group_count = list->count;
	return rc;
}

/* --- drain.clusterMin */

static int read_floor(struct drain_setup *s, const char *text, struct error *error)
{
	enum { NODES, CPU, MEMORY };
	static const char *const keys[] = {"nodes", "cpu", "memory", NULL};
	struct record r = {.option = "--drain-cluster-min", .text = text, .keys = keys};
	struct drain_floor *min = &s->config.cluster_min;
	int rc = 0;

	if (!text || !*text)
		return 0;
	if (read_record(s, &r, error) || read_count(&r, NODES, &min->nodes, error))
		return -EINVAL;
	if (r.values[CPU])
		rc = quantity_parse_milli(r.values[CPU], &min->cpu_milli, error);
	if (!rc && r.values[MEMORY])
		rc = quantity_parse_units(r.values[MEMORY], &min->mem_bytes, error);
	if (!rc &&
	    ((r.values[CPU] && min->cpu_milli < 0) || (r.values[MEMORY] && min->mem_bytes < 0)))
		rc = error_fail(error, -EINVAL, "what must remain cannot be negative");
	if (rc)
		error_prefix(error, "%s \"%.200s\"", r.option, text);
	return rc;
}

/* --- budgets */

/* "Empty,Underutilized" becomes a list, whose texts stay where they are. */
static int read_reasons(struct drain_setup *s, const struct record *r, char *text,
			struct drain_window *out, struct error *error)
{
	static const char *const known[] = {"Empty", "Underutilized", "Drifted", NULL};
	const char **list = own(s, mem_zalloc(strlen(text) + 1, sizeof(*list)));
	char *word;

	while ((word = strsep(&text, ","))) {
		if (!array_has_text(known, word))
			return fail(r, error, "reasons are Empty, Underutilized and Drifted, not",
				    word);
		list[out->reason_count++] = word;
	}
	out->reasons = list;
	return 0;
}

static int read_budget(struct drain_setup *s, const char *text, struct drain_window *out,
		       struct error *error)
{
	enum { NODES, SCHEDULE, DURATION, REASONS };
	static const char *const keys[] = {"nodes", "schedule", "duration", "reasons", NULL};
	struct record r = {.option = "--drain-budget", .text = text, .keys = keys};
	int64_t duration_ns = 0;
	int32_t allowed;
	int rc;

	*out = (struct drain_window){.duration_sec = -1};
	if (read_record(s, &r, error))
		return -EINVAL;
	if (!r.values[NODES])
		return fail(&r, error, "there must be a number of", "nodes");
	out->nodes = r.values[NODES];
	out->schedule = r.values[SCHEDULE];
	if (r.values[REASONS] && read_reasons(s, &r, r.values[REASONS], out, error))
		return -EINVAL;
	rc = r.values[DURATION] ? duration_parse(r.values[DURATION], &duration_ns, error) : 0;
	if (!rc && r.values[DURATION])
		out->duration_sec = duration_ns / NS_PER_SEC;
	/* Also in variant upstream: what nobody can have meant is refused where it is written. */
	if (!rc)
		rc = drain_window_allows(out, DRAIN_CORRECTED, 1, 0, &allowed, error);
	if (rc)
		error_prefix(error, "%s \"%.200s\"", r.option, text);
	return rc;
}

static int read_budgets(struct drain_setup *s, const struct option_list *list, struct error *error)
{
	struct drain_window *windows = own(s, mem_zalloc(list->count + 1, sizeof(*windows)));

	for (size_t i = 0; i < list->count; i++)
		if (read_budget(s, list->items[i], &windows[i], error))
			return -EINVAL;
	s->config.windows = windows;
	s->config.window_count = list->count;
	return 0;
}

/* --- all of them */

static void read_labels(struct drain_setup *s, const struct option_list *list)
{
	const char **labels = own(s, mem_zalloc(list->count + 1, sizeof(*labels)));

	for (size_t i = 0; i < list->count; i++)
		labels[i] = own(s, mem_strdup(list->items[i]));
	s->config.group_labels = labels;
	s->config.group_label_count = list->count;
}

static void set_rules(struct drain_options *o, const struct drain_settings *from)
{
	const struct drain_options usual = *o, *given = &from->rules;
	int64_t most = given->max_parallelism ? given->max_parallelism : from->max_empty;

	*o = *given;
	o->variant = usual.variant;
	o->simulation_min_nodes = usual.simulation_min_nodes;
	o->simulation_ns = given->simulation_ns ? given->simulation_ns : usual.simulation_ns;
	o->max_parallelism = most ? most : usual.max_parallelism;
	o->max_drain_parallelism = given->max_drain_parallelism ? given->max_drain_parallelism
								: usual.max_drain_parallelism;
}

int drain_setup_init(struct drain_setup *out, const struct drain_settings *from,
		     struct error *error)
{
	static const enum place_order orders[] = {PLACE_FULLEST_FIRST, PLACE_FULLEST_FIRST,
						  PLACE_EMPTIEST_FIRST, PLACE_CYCLIC};
	struct drain_setup s = {0};

	if (from->variant == 1)
		drain_config_upstream(&s.config);
	else
		drain_config_default(&s.config);
	place_options_default(&s.places);
	set_rules(&s.config.rules, from);
	s.places.cap = from->cap;
	s.candidate_ttl_ns = from->candidate_ttl_ns;
	s.timed = from->rules.simulation_ns > 0;
	s.config.not_robust = from->not_robust;
	if (from->order)
		s.config.order = orders[from->order];
	read_labels(&s, &from->group_labels);
	if (read_groups(&s, &from->groups, error) || read_floor(&s, from->cluster_min, error) ||
	    read_budgets(&s, &from->budgets, error)) {
		drain_setup_fini(&s);
		return -EINVAL;
	}
	*out = s;
	return 0;
}

void drain_setup_default(struct drain_setup *s)
{
	*s = (struct drain_setup){0};
	drain_config_default(&s->config);
	place_options_default(&s->places);
	s->candidate_ttl_ns = 600 * NS_PER_SEC;
}

void drain_setup_fini(struct drain_setup *s)
{
	for (size_t i = 0; i < s->owned_count; i++)
		free(s->owned[i]);
	free(s->owned);
	*s = (struct drain_setup){0};
}

/* --- what was given by a flag */

static bool are_lists_equal(const struct option_list *a, const struct option_list *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return true;
}

static bool is_equal(const struct option_spec *spec, const void *a, const void *b)
{
	const char *const *one = a, *const *other = b;

	switch (spec->kind) {
	case OPTION_STRING:
		return strcmp(*one ? *one : "", *other ? *other : "") == 0;
	case OPTION_LIST:
	case OPTION_RECORDS:
	case OPTION_TYPED_LIST:
		return are_lists_equal(a, b);
	case OPTION_FLAG:
		return memcmp(a, b, sizeof(bool)) == 0;
	case OPTION_CHOICE:
		return memcmp(a, b, sizeof(int)) == 0;
	case OPTION_INTEGER:
	case OPTION_DURATION:
	case OPTION_PERIOD:
	case OPTION_NUMBER:
		break;
	}
	return memcmp(a, b, sizeof(int64_t)) == 0;
}

const char *drain_settings_differ(const struct drain_settings *a, const struct drain_settings *b)
{
	for (const struct option_spec *spec = specs; spec->name; spec++)
		if (!is_equal(spec, (const char *)a + spec->offset, (const char *)b + spec->offset))
			return spec->name;
	return NULL;
}

int drain_settings_from_environment(struct drain_settings *s, struct error *error)
{
	char name[] = "drain", *argv[] = {name, NULL};

	*s = (struct drain_settings){0};
	return options_parse(&program, s, 1, argv, NULL, error);
}

void drain_settings_fini(struct drain_settings *s)
{
	options_free(&program, s);
}
