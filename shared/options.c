/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each program has one table of options; values have four levels, each over the one before:
 *
 *	defaults of the table  <  YAML file  <  environment  <  command line
 *
 * Each level becomes a list of settings (option, text, origin), since the command line may name the
 * file; then all are applied in that order by one function. The first setting of a list at a level
 * drops the values of the level below. An empty environment variable counts as unset, unknown
 * variables are ignored (Kubernetes adds EVENKEEL_..._SERVICE_HOST and the like).
 */
#include "shared/options_internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/mem.h"

void settings_add(struct settings *s, const struct option_spec *spec, const char *text, size_t len,
		  const char *origin)
{
	ARRAY_ADD(s->items, s->count) = (struct setting){
		.spec = spec,
		.text = text ? mem_strndup(text, len) : NULL,
		.origin = origin ? mem_strdup(origin) : NULL,
	};
}

void settings_fini(struct settings *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->items[i].text);
		free(s->items[i].origin);
	}
	free(s->items);
	*s = (struct settings){0};
}

bool options_stands_alone(const struct option_spec *spec)
{
	return spec->kind == OPTION_FLAG || spec->kind == OPTION_PERIOD;
}

bool options_is_list(const struct option_spec *spec)
{
	return spec->kind == OPTION_LIST || spec->kind == OPTION_RECORDS ||
	       spec->kind == OPTION_TYPED_LIST;
}

size_t options_count(const struct option_spec *specs)
{
	size_t count = 0;

	while (specs[count].name)
		count++;
	return count;
}

const struct option_spec *options_find(const struct option_spec *specs, const char *name,
				       char letter)
{
	for (; specs->name; specs++)
		if (name ? strcmp(specs->name, name) == 0 : specs->letter == letter)
			return specs;
	return NULL;
}

const struct option_spec *options_of(const struct option_program *program, const char *name)
{
	for (const struct option_former *f = program->former; f && f->was; f++)
		if (strcmp(f->was, name) == 0)
			return options_find(program->specs, f->name, 0);
	return options_find(program->specs, name, 0);
}

bool options_only_typed(const struct option_spec *spec)
{
	return spec->kind == OPTION_TYPED_LIST ||
	       (spec->kind == OPTION_FLAG &&
		(strcmp(spec->name, "help") == 0 || strcmp(spec->name, "version") == 0));
}

char *options_env_name(const struct option_program *program, const char *option)
{
	char *name = mem_printf("%s%s", program->env_prefix, option);

	for (char *p = name; *p; p++)
		*p = *p == '-' || *p == '.' ? '_' : (char)toupper((unsigned char)*p);
	return name;
}

/* --- suggestions ------------------------------------------------------------------------------ */

/*
 * Edit distance with swaps of neighbouring letters (optimal string alignment). A name is close
 * enough when at most a third of its letters differ; a word that begins a name counts as one letter
 * away from it, since people abbreviate. Names longer than NAME_MAX_LEN are never suggested.
 */
enum { NAME_MAX_LEN = 48 };

static size_t least(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][NAME_MAX_LEN + 1];
	size_t *before = rows[0], *last = rows[1], *row = rows[2], *spare;

	for (size_t j = 0; j <= b_len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = least(last[j] + 1, row[j - 1] + 1,
				       last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1, row[j]);
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[b_len];
}

void suggestion_init(struct suggestion *s, const char *word)
{
	*s = (struct suggestion){.word = word};
}

void suggestion_offer(struct suggestion *s, const char *name)
{
	size_t word_len = strlen(s->word), name_len = strlen(name), d;

	if (word_len < 2 || word_len > NAME_MAX_LEN || name_len > NAME_MAX_LEN)
		return;
	if (strncmp(s->word, name, word_len) == 0)
		d = 1;
	else
		d = edit_distance(s->word, word_len, name, name_len);
	if (d > (name_len + 2) / 3 || (s->best && d >= s->distance))
		return;
	s->best = name;
	s->distance = d;
}

void options_suggest(const struct option_program *program, const char *word, const char *before,
		     const char *otherwise, char *out, size_t out_len)
{
	struct suggestion suggestion;

	suggestion_init(&suggestion, word);
	for (const struct option_spec *spec = program->specs; spec->name; spec++)
		suggestion_offer(&suggestion, spec->name);
	if (suggestion.best)
		snprintf(out, out_len, "; did you mean %s%s?", before, suggestion.best);
	else
		snprintf(out, out_len, "%s", otherwise);
}

/* --- command line ----------------------------------------------------------------------------- */

struct arguments {
	const struct option_program *program;
	int argc, at;
	char **argv;
	struct settings *out;
	struct option_list *operands; /* NULL: none are allowed */
	struct error *reason;
};

static int take_value(struct arguments *a, const struct option_spec *spec, const char *value)
{
	if (!value) {
		if (a->at + 1 >= a->argc)
			return error_fail(a->reason, -EINVAL, "--%s needs a value%s%s", spec->name,
					  spec->value ? ": " : "", spec->value ? spec->value : "");
		value = a->argv[++a->at];
	}
	settings_add(a->out, spec, value, strlen(value), NULL);
	return 0;
}

/* --name, --no-name, --name=value, --name value */
static int take_long(struct arguments *a, const char *text)
{
	const char *equals = strchr(text, '=');
	char *name = mem_strndup(text, equals ? (size_t)(equals - text) : strlen(text));
	const struct option_spec *spec = options_of(a->program, name);
	int rc = 0;

	if (spec && !options_stands_alone(spec)) {
		rc = take_value(a, spec, equals ? equals + 1 : NULL);
	} else if (spec) {
		const char *value = equals ? equals + 1 : "true";

		settings_add(a->out, spec, value, strlen(value), NULL);
	} else if (strncmp(name, "no-", 3) == 0 && !equals &&
		   (spec = options_of(a->program, name + 3)) && options_stands_alone(spec)) {
		settings_add(a->out, spec, "false", 5, NULL);
	} else {
		char hint[96], quoted[QUOTED_LEN];

		options_suggest(a->program, name, "--", "; --help lists the options", hint,
				sizeof(hint));
		options_quote(name, quoted);
		quoted[strlen(quoted) - 1] = '\0';
		rc = error_fail(a->reason, -EINVAL, "unknown option --%s%s", quoted + 1, hint);
	}
	free(name);
	return rc;
}

/* -x, -xvalue, -x value, and several flags in one: -wA */
static int take_letters(struct arguments *a, const char *letters)
{
	for (; *letters; letters++) {
		const struct option_spec *spec = options_find(a->program->specs, NULL, *letters);

		if (!spec)
			return error_fail(a->reason, -EINVAL,
					  "unknown option -%c; --help lists the options",
					  isgraph((unsigned char)*letters) ? *letters : '?');
		if (!options_stands_alone(spec))
			return take_value(a, spec, letters[1] ? letters + 1 : NULL);
		if (spec->kind == OPTION_PERIOD && letters[1] == '=')
			return take_value(a, spec, letters + 2);
		settings_add(a->out, spec, "true", 4, NULL);
	}
	return 0;
}

static int take_operand(struct arguments *a, const char *text)
{
	static const struct option_spec operand = {.name = "operand", .kind = OPTION_LIST};
	char quoted[QUOTED_LEN];

	if (a->operands)
		return options_set(&operand, text, a->operands, a->reason);
	options_quote(text, quoted);
	return error_fail(a->reason, -EINVAL, "unexpected argument %s; --help shows the usage",
			  quoted);
}

static int read_arguments(struct arguments *a)
{
	bool ended = false;

	for (a->at = 1; a->at < a->argc; a->at++) {
		const char *text = a->argv[a->at];
		int rc = 0;

		if (ended || text[0] != '-' || text[1] == '\0')
			rc = take_operand(a, text);
		else if (text[1] != '-')
			rc = take_letters(a, text + 1);
		else if (text[2])
			rc = take_long(a, text + 2);
		else
			ended = true;
		if (rc)
			return rc;
	}
	return 0;
}

/* --- defaults and environment ----------------------------------------------------------------- */

/* One setting, or one per item of a separated list. */
static void add_text(struct settings *out, const struct option_spec *spec, const char *text,
		     const char *origin)
{
	const char *separator = spec->kind == OPTION_RECORDS ? ";" : ",";

	if (!options_is_list(spec)) {
		settings_add(out, spec, text, strlen(text), origin);
		return;
	}
	settings_add(out, spec, NULL, 0, origin);
	while (*text) {
		size_t len = strcspn(text, separator);

		if (len)
			settings_add(out, spec, text, len, origin);
		text += len + (text[len] == *separator);
	}
}

static void read_variable(const struct option_program *program, const char *option,
			  struct settings *out)
{
	const struct option_spec *spec = options_of(program, option);
	char *name = options_env_name(program, option);
	const char *text = options_only_typed(spec) ? NULL : getenv(name);

	if (text && text[0])
		add_text(out, spec, text, name);
	free(name);
}

/* Present names count more than former ones. */
static void read_environment(const struct option_program *program, struct settings *out)
{
	if (!program->env_prefix)
		return;
	for (const struct option_former *f = program->former; f && f->was; f++)
		read_variable(program, f->was, out);
	for (const struct option_spec *spec = program->specs; spec->name; spec++)
		read_variable(program, spec->name, out);
}

/* --- putting it together ---------------------------------------------------------------------- */

/* The last value given to the option that names the file. */
static const char *config_path(const struct option_program *program, const struct settings *levels,
			       size_t count)
{
	const char *path = NULL;

	for (size_t i = 0; program->config_name && i < count; i++)
		for (size_t j = 0; j < levels[i].count; j++)
			if (strcmp(levels[i].items[j].spec->name, program->config_name) == 0)
				path = levels[i].items[j].text;
	return path && path[0] ? path : NULL;
}

static void add_origin(struct error *reason, const struct setting *s)
{
	if (reason && s->origin)
		error_set(reason, "--%s: %s (from %s)", s->spec->name, reason->text, s->origin);
	else
		error_prefix(reason, "--%s", s->spec->name);
}

static int apply(const struct option_program *program, const struct settings *level, void *values,
		 struct error *reason)
{
	bool *seen = mem_zalloc(options_count(program->specs), sizeof(*seen));
	int rc = 0;

	for (size_t i = 0; i < level->count && rc == 0; i++) {
		const struct setting *s = &level->items[i];
		size_t index = (size_t)(s->spec - program->specs);

		if (options_is_list(s->spec) && !seen[index])
			option_list_free((void *)((char *)values + s->spec->offset));
		seen[index] = true;
		if (!s->text)
			continue;
		rc = options_set(s->spec, s->text, values, reason);
		if (rc)
			add_origin(reason, s);
	}
	free(seen);
	return rc;
}

int options_parse(const struct option_program *program, void *values, int argc, char **argv,
		  struct option_list *operands, struct error *reason)
{
	enum { DEFAULTS, CONFIG, ENVIRONMENT, COMMAND_LINE, LEVELS };
	struct settings levels[LEVELS] = {{0}};
	struct option_list found = {0};
	struct arguments a = {.program = program,
			      .argc = argc,
			      .argv = argv,
			      .out = &levels[COMMAND_LINE],
			      .operands = operands ? &found : NULL,
			      .reason = reason};
	const char *path;
	int rc;

	for (const struct option_spec *spec = program->specs; spec->name; spec++)
		if (spec->initial)
			add_text(&levels[DEFAULTS], spec, spec->initial, NULL);
	rc = apply(program, &levels[DEFAULTS], values, reason);
	assert(rc == 0);
	read_environment(program, &levels[ENVIRONMENT]);
	rc = read_arguments(&a);
	path = config_path(program, levels, LEVELS);
	if (rc == 0 && path)
		rc = options_read_yaml(program, path, &levels[CONFIG], reason);
	for (size_t i = CONFIG; i < LEVELS && rc == 0; i++)
		rc = apply(program, &levels[i], values, reason);
	for (size_t i = 0; i < LEVELS; i++)
		settings_fini(&levels[i]);
	if (rc) {
		option_list_free(&found);
		options_free(program, values);
		return rc;
	}
	if (operands)
		*operands = found;
	return 0;
}

void options_free(const struct option_program *program, void *values)
{
	for (const struct option_spec *spec = program->specs; spec->name; spec++) {
		void *member = (char *)values + spec->offset;

		if (options_is_list(spec)) {
			option_list_free(member);
		} else if (spec->kind == OPTION_STRING) {
			free(*(char **)member);
			*(char **)member = NULL;
		}
	}
}
