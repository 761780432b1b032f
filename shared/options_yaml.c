/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file is one YAML document: a mapping from option names to scalars, or sequences
 * of scalars for lists. Records may be mappings of scalars and sequences, and become their
 * command-line text. Quoting does not matter; the option's kind decides. Refused, with file and
 * line: unknown and repeated keys, a key without value, deeper nesting, aliases, a second document,
 * files above FILE_MAX. Reading event by event bounds memory by the size of the input.
 */
#include "shared/options_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "shared/mem.h"

enum { FILE_MAX = 1 << 20 };

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* valid while `held` */
	bool held;
	const struct option_program *program;
	const char *name; /* of the file, for reasons */
	struct settings *out;
	struct error *reason;
};

static int fail_at(struct reader *r, size_t line, const char *text)
{
	error_set(r->reason, "%s:%zu: %s", r->name, line + 1, text);
	return -EINVAL;
}

static int fail(struct reader *r, const char *text)
{
	return fail_at(r, r->event.start_mark.line, text);
}

static int next(struct reader *r)
{
	if (r->held)
		yaml_event_delete(&r->event);
	r->held = yaml_parser_parse(&r->parser, &r->event);
	if (r->held)
		return 0;
	return fail_at(r, r->parser.problem_mark.line,
		       r->parser.problem ? r->parser.problem : "not YAML");
}

static const char *scalar(const struct reader *r)
{
	return (const char *)r->event.data.scalar.value;
}

/* A plain empty scalar, ~ or null. */
static bool is_null(const struct reader *r)
{
	const char *text = scalar(r);

	return r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!text[0] || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

/* Whether the current event can be a value of an option, or a part of it. */
static int check_scalar(struct reader *r, const struct option_spec *spec)
{
	char text[512];

	if (r->event.type != YAML_SCALAR_EVENT) {
		snprintf(text, sizeof(text), "%s: expected a plain value here", spec->name);
		return fail(r, text);
	}
	if (is_null(r) || strlen(scalar(r)) != r->event.data.scalar.length) {
		snprintf(text, sizeof(text), "%s has %s", spec->name,
			 is_null(r) ? "no value" : "a value with a zero byte");
		return fail(r, text);
	}
	return 0;
}

/* line: of the text. */
static void add_setting(struct reader *r, const struct option_spec *spec, size_t line,
			const char *text, size_t len)
{
	char *origin = mem_printf("%s:%zu", r->name, line + 1);

	settings_add(r->out, spec, text, len, origin);
	free(origin);
}

/* Adds the current scalar as a value of spec. */
static int take_scalar(struct reader *r, const struct option_spec *spec)
{
	int rc = check_scalar(r, spec);

	if (rc == 0)
		add_setting(r, spec, r->event.start_mark.line, scalar(r),
			    r->event.data.scalar.length);
	return rc;
}

/* --- records: {key: value, other: [a, b]} is "key=value,other=a,b" */

static int add_part(struct reader *r, const struct option_spec *spec, const char *before,
		    struct buf *record)
{
	int rc = check_scalar(r, spec);

	if (rc == 0)
		buf_printf(record, "%s%s", before, scalar(r));
	return rc;
}

/* A value, which may be a sequence. */
static int add_value(struct reader *r, const struct option_spec *spec, struct buf *record)
{
	const char *before = "=";
	int rc;

	if (r->event.type != YAML_SEQUENCE_START_EVENT)
		return add_part(r, spec, before, record);
	for (;;) {
		rc = next(r);
		if (rc || r->event.type == YAML_SEQUENCE_END_EVENT)
			return rc;
		rc = add_part(r, spec, before, record);
		if (rc)
			return rc;
		before = ",";
	}
}

static int add_members(struct reader *r, const struct option_spec *spec, struct buf *record)
{
	int rc;

	for (;;) {
		rc = next(r);
		if (rc || r->event.type == YAML_MAPPING_END_EVENT)
			return rc;
		rc = add_part(r, spec, record->len ? "," : "", record);
		if (rc == 0)
			rc = next(r);
		if (rc == 0)
			rc = add_value(r, spec, record);
		if (rc)
			return rc;
	}
}

static int take_item(struct reader *r, const struct option_spec *spec)
{
	size_t line = r->event.start_mark.line;
	struct buf record = BUF_INIT;
	int rc;

	if (spec->kind != OPTION_RECORDS || r->event.type != YAML_MAPPING_START_EVENT)
		return take_scalar(r, spec);
	rc = add_members(r, spec, &record);
	if (rc == 0)
		add_setting(r, spec, line, record.len ? record.data : "", record.len);
	buf_fini(&record);
	return rc;
}

static int take_sequence(struct reader *r, const struct option_spec *spec)
{
	char text[128];
	int rc;

	if (r->event.type != YAML_SEQUENCE_START_EVENT) {
		snprintf(text, sizeof(text),
			 "%s is a list: write [a, b], or one \"- value\" a line", spec->name);
		return fail(r, text);
	}
	settings_add(r->out, spec, NULL, 0, NULL);
	for (;;) {
		rc = next(r);
		if (rc || r->event.type == YAML_SEQUENCE_END_EVENT)
			return rc;
		rc = take_item(r, spec);
		if (rc)
			return rc;
	}
}

static int take_key(struct reader *r, bool *seen, const struct option_spec **spec)
{
	char hint[96], text[256], quoted[QUOTED_LEN];

	if (r->event.type != YAML_SCALAR_EVENT)
		return fail(r, "expected the name of an option");
	options_quote(scalar(r), quoted);
	*spec = options_of(r->program, scalar(r));
	if (!*spec) {
		options_suggest(r->program, scalar(r), "", "", hint, sizeof(hint));
		snprintf(text, sizeof(text), "unknown option %s%s", quoted, hint);
		return fail(r, text);
	}
	if (options_only_typed(*spec) || strcmp((*spec)->name, r->program->config_name) == 0) {
		snprintf(text, sizeof(text), "%s cannot be set in a file", (*spec)->name);
		return fail(r, text);
	}
	if (seen[*spec - r->program->specs]) {
		snprintf(text, sizeof(text), "%s is set twice", (*spec)->name);
		return fail(r, text);
	}
	seen[*spec - r->program->specs] = true;
	return 0;
}

static int take_mapping(struct reader *r, bool *seen)
{
	const struct option_spec *spec;
	int rc;

	for (;;) {
		rc = next(r);
		if (rc || r->event.type == YAML_MAPPING_END_EVENT)
			return rc;
		rc = take_key(r, seen, &spec);
		if (rc == 0)
			rc = next(r);
		if (rc == 0)
			rc = options_is_list(spec) ? take_sequence(r, spec) : take_scalar(r, spec);
		if (rc)
			return rc;
	}
}

/*
 * stream start, document start, the mapping, document end, stream end; an empty file sets nothing.
 */
static int take_stream(struct reader *r, bool *seen)
{
	int rc = next(r);

	if (rc == 0)
		rc = next(r);
	if (rc || r->event.type == YAML_STREAM_END_EVENT)
		return rc;
	rc = next(r);
	if (rc)
		return rc;
	if (r->event.type == YAML_MAPPING_START_EVENT)
		rc = take_mapping(r, seen);
	else if (r->event.type != YAML_SCALAR_EVENT || !is_null(r))
		return fail(r, "expected \"name: value\" lines");
	if (rc == 0)
		rc = next(r);
	if (rc == 0)
		rc = next(r);
	if (rc == 0 && r->event.type != YAML_STREAM_END_EVENT)
		return fail(r, "a second document; there may be only one");
	return rc;
}

int options_parse_yaml(const struct option_program *program, const char *name, const char *text,
		       size_t len, struct settings *out, struct error *reason)
{
	struct reader r = {.program = program, .name = name, .out = out, .reason = reason};
	size_t specs = 0;
	bool *seen;
	int rc;

	while (program->specs[specs].name)
		specs++;
	seen = mem_zalloc(specs, sizeof(*seen));
	if (!yaml_parser_initialize(&r.parser))
		mem_exhausted();
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	rc = take_stream(&r, seen);
	if (r.held)
		yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	free(seen);
	return rc;
}

/* O_NONBLOCK: a pipe put there must not hang the start. */
static FILE *open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fdopen(fd, "r");
	errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	close(fd);
	return NULL;
}

int options_read_yaml(const struct option_program *program, const char *path, struct settings *out,
		      struct error *reason)
{
	FILE *file = open_regular(path);
	char *text;
	size_t len;
	int rc;

	if (!file) {
		error_set(reason, "--%s: cannot read %s: %s", program->config_name, path,
			  errno == EINVAL ? "it is not a regular file" : strerror(errno));
		return -EINVAL;
	}
	text = mem_alloc(FILE_MAX + 1);
	len = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file)) {
		error_set(reason, "--%s: cannot read %s: %s", program->config_name, path,
			  strerror(errno));
		rc = -EINVAL;
	} else if (len > FILE_MAX) {
		error_set(reason, "--%s: %s is larger than 1 MiB", program->config_name, path);
		rc = -EINVAL;
	} else {
		rc = options_parse_yaml(program, path, text, len, out, reason);
	}
	free(text);
	fclose(file);
	return rc;
}
