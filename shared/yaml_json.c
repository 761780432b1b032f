/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libyaml's events are written as they come, so a list of a whole cluster needs no tree: the state
 * is a frame per open mapping or sequence, the keys of open mappings, and the position in the JSON
 * of each anchored value. An alias copies that text. Depth and size include the copies.
 */
#include "shared/yaml_json.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "shared/array.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

enum { MIB = 1 << 20, NO_ANCHOR = -1, ANCHORS_MAX = 100 };

/* An open mapping or sequence. */
struct frame {
	bool mapping;
	bool wants_key; /* of a mapping: the next value is a key */
	size_t line; /* where it begins */
	size_t first_key; /* in keys */
	size_t height; /* of its content so far */
	int anchor; /* index, or NO_ANCHOR */
};

struct anchor {
	char *name;
	size_t start, end; /* in the JSON; end 0: still open */
	size_t height; /* levels of nesting within */
};

struct converter {
	const char *name;
	const struct yaml_json_limits *limits;
	struct buf *out;
	struct error *reason;
	struct jsonw writer;
	size_t line; /* of the event at hand */
	size_t documents, document_start;
	struct frame *frames;
	size_t depth;
	char **keys;
	size_t key_count;
	struct anchor anchors[ANCHORS_MAX]; /* of the document */
	size_t anchor_count;
};

__attribute__((format(printf, 3, 4))) static int fail_at(const struct converter *c, size_t line,
							 const char *format, ...)
{
	char text[256];

	MEM_FORMAT(text, sizeof(text), format);
	return error_fail(c->reason, -EINVAL, "%s:%zu: %s", c->name, line, text);
}

#define fail(c, ...) fail_at(c, (c)->line, __VA_ARGS__)

/* --- scalars ---------------------------------------------------------------------------------- */

/* [-+]? digits of base, at least one. */
static bool is_integer(const char *text, const char *digits)
{
	text += *text == '-' || *text == '+';
	return *text && text[strspn(text, digits)] == '\0';
}

/* [-+]? (digits [. digits*] | . digits) [e [-+] digits] */
static bool is_float(const char *text)
{
	size_t whole, decimals = 0;

	text += *text == '-' || *text == '+';
	whole = strspn(text, "0123456789");
	text += whole;
	if (*text == '.') {
		decimals = strspn(text + 1, "0123456789");
		text += 1 + decimals;
	}
	if (whole + decimals == 0)
		return false;
	return *text == '\0' ||
	       ((*text == 'e' || *text == 'E') && is_integer(text + 1, "0123456789"));
}

/* Digits without leading zeros. */
static bool is_decimal(const char *text)
{
	return text[strspn(text, "0123456789")] == '\0' && text[0] && (text[0] != '0' || !text[1]);
}

static int write_float(struct converter *c, const char *text)
{
	double value = strtod(text, NULL);

	if (!isfinite(value))
		return fail(c, "the number is too large");
	jsonw_exact(&c->writer, value);
	return 0;
}

/* digits without sign and prefix; beyond 64 bits the nearest double, as in JSON readers. */
static int write_integer(struct converter *c, const char *digits, int base, bool negative)
{
	unsigned long long value;

	errno = 0;
	value = strtoull(digits, NULL, base);
	if (!errno && value <= INT64_MAX)
		jsonw_int(&c->writer, negative ? -(int64_t)value : (int64_t)value);
	else if (base == 10)
		return write_float(c, digits - negative);
	else
		return fail(c, "the number does not fit in 64 bits");
	return 0;
}

static int write_plain(struct converter *c, const char *text)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const trues[] = {"true", "True", "TRUE", NULL};
	static const char *const falses[] = {"false", "False", "FALSE", NULL};
	static const char *const endless[] = {".inf",  ".Inf", ".INF", "+.inf", "-.inf",
					      "-.Inf", ".nan", ".NaN", ".NAN",	NULL};
	bool negative = text[0] == '-';
	const char *number = text + (negative || text[0] == '+');

	if (array_has_text(nulls, text))
		jsonw_null(&c->writer);
	else if (array_has_text(trues, text))
		jsonw_bool(&c->writer, true);
	else if (array_has_text(falses, text))
		jsonw_bool(&c->writer, false);
	else if (array_has_text(endless, text))
		return fail(c, "JSON has no infinite numbers");
	else if (is_decimal(number))
		return write_integer(c, number, 10, negative);
	else if (number[0] == '0' && number[1] == 'o' && is_integer(number + 2, "01234567"))
		return write_integer(c, number + 2, 8, negative);
	else if (number[0] == '0' && number[1] == 'x' &&
		 is_integer(number + 2, "0123456789abcdefABCDEF"))
		return write_integer(c, number + 2, 16, negative);
	else if (number[0] == '0' && is_integer(text, "01234567"))
		return write_integer(c, number, 8, negative);
	else if (is_float(text))
		return write_float(c, text);
	else
		jsonw_string(&c->writer, text);
	return 0;
}

/* Quoted, or tagged as text: text. */
static bool is_text(const yaml_event_t *e)
{
	const char *tag = (const char *)e->data.scalar.tag;

	if (!tag)
		return e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, "!") == 0;
}

/* --- anchors ---------------------------------------------------------------------------------- */

/* *anchor is its index; NO_ANCHOR without a name. */
static int open_anchor(struct converter *c, const yaml_char_t *name, int *anchor)
{
	*anchor = NO_ANCHOR;
	if (!name)
		return 0;
	if (c->anchor_count == ANCHORS_MAX)
		return fail(c, "more than %d anchors", ANCHORS_MAX);
	*anchor = (int)c->anchor_count++;
	c->anchors[*anchor] = (struct anchor){.name = mem_strdup((const char *)name),
					      .start = c->out->len + c->writer.comma};
	return 0;
}

static void close_anchor(struct converter *c, int anchor, size_t height)
{
	if (anchor == NO_ANCHOR)
		return;
	c->anchors[anchor].end = c->out->len;
	c->anchors[anchor].height = height;
}

/* The last one of that name. */
static const struct anchor *find_anchor(const struct converter *c, const char *name)
{
	for (size_t i = c->anchor_count; i > 0; i--)
		if (strcmp(c->anchors[i - 1].name, name) == 0)
			return &c->anchors[i - 1];
	return NULL;
}

static void forget_anchors(struct converter *c)
{
	while (c->anchor_count)
		free(c->anchors[--c->anchor_count].name);
}

/* --- nesting ---------------------------------------------------------------------------------- */

static struct frame *top(const struct converter *c)
{
	return c->depth ? &c->frames[c->depth - 1] : NULL;
}

static int too_large(const struct converter *c)
{
	return fail(c, "becomes larger than %zu MiB", c->limits->bytes / MIB);
}

/* After a value: raises the height of its container; a mapping expects its next key. */
static int ended(struct converter *c, size_t height)
{
	struct frame *f = top(c);

	if (f) {
		f->wants_key = f->mapping;
		f->height = height + 1 > f->height ? height + 1 : f->height;
	}
	return c->out->len - c->document_start > c->limits->bytes ? too_large(c) : 0;
}

static int add_key(struct converter *c, const yaml_event_t *e)
{
	const char *text = (const char *)e->data.scalar.value;

	if (strlen(text) != e->data.scalar.length)
		return fail(c, "a zero byte in a key");
	if (strcmp(text, "<<") == 0 && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return fail(c, "merge keys (<<) are not supported");
	if (e->data.scalar.anchor)
		return fail(c, "an anchor at a key is not supported");
	ARRAY_ADD(c->keys, c->key_count) = mem_strdup(text);
	jsonw_key(&c->writer, text);
	top(c)->wants_key = false;
	return 0;
}

static bool wants_key(const struct converter *c)
{
	return c->depth && top(c)->wants_key;
}

static int on_scalar(struct converter *c, const yaml_event_t *e)
{
	const char *text = (const char *)e->data.scalar.value;
	int anchor, rc;

	if (wants_key(c))
		return add_key(c, e);
	if (strlen(text) != e->data.scalar.length)
		return fail(c, "a zero byte in a value");
	rc = open_anchor(c, e->data.scalar.anchor, &anchor);
	if (rc)
		return rc;
	if (is_text(e))
		jsonw_string(&c->writer, text);
	else
		rc = write_plain(c, text);
	close_anchor(c, anchor, 0);
	return rc ? rc : ended(c, 0);
}

static int on_alias(struct converter *c, const yaml_event_t *e)
{
	const struct anchor *a = find_anchor(c, (const char *)e->data.alias.anchor);
	size_t len;

	if (!a)
		return fail(c, "an alias of what has no anchor");
	if (wants_key(c))
		return fail_at(c, top(c)->line, "a key that is not plain text");
	if (!a->end)
		return fail(c, "an alias of what it stands in");
	if (c->depth + a->height > c->limits->depth)
		return fail(c, "nested too deeply");
	len = a->end - a->start;
	if (c->out->len + len - c->document_start > c->limits->bytes)
		return too_large(c);
	if (c->writer.comma)
		buf_add_char(c->out, ',');
	buf_reserve(c->out, len);
	memcpy(c->out->data + c->out->len, c->out->data + a->start, len);
	c->out->len += len;
	c->out->data[c->out->len] = '\0';
	c->writer.comma = true;
	return ended(c, a->height);
}

static int open_frame(struct converter *c, bool mapping, const yaml_char_t *name)
{
	int anchor, rc;

	if (wants_key(c))
		return fail_at(c, top(c)->line, "a key that is not plain text");
	if (c->depth >= c->limits->depth)
		return fail(c, "nested too deeply");
	rc = open_anchor(c, name, &anchor);
	if (rc)
		return rc;
	ARRAY_ADD(c->frames, c->depth) = (struct frame){
		.mapping = mapping,
		.wants_key = mapping,
		.line = c->line,
		.first_key = c->key_count,
		.anchor = anchor,
	};
	if (mapping)
		jsonw_object_open(&c->writer);
	else
		jsonw_array_open(&c->writer);
	return 0;
}

static int check_keys(struct converter *c, const struct frame *f)
{
	size_t count = c->key_count - f->first_key;
	char **keys;

	if (count < 2)
		return 0;
	keys = c->keys + f->first_key;
	qsort(keys, count, sizeof(*keys), array_compare_text);
	for (size_t i = 1; i < count; i++)
		if (strcmp(keys[i - 1], keys[i]) == 0)
			return fail_at(c, f->line, "the key \"%.64s\" stands twice in this mapping",
				       keys[i]);
	return 0;
}

static void forget_keys(struct converter *c, size_t down_to)
{
	while (c->key_count > down_to)
		free(c->keys[--c->key_count]);
}

static int close_frame(struct converter *c)
{
	const struct frame f = *top(c);
	int rc = check_keys(c, &f);

	if (rc)
		return rc;
	forget_keys(c, f.first_key);
	if (f.mapping)
		jsonw_object_close(&c->writer);
	else
		jsonw_array_close(&c->writer);
	c->depth--;
	close_anchor(c, f.anchor, f.height + 1);
	return ended(c, f.height + 1);
}

/* --- documents -------------------------------------------------------------------------------- */

static void end_document(struct converter *c)
{
	const char *text = c->out->data + c->document_start;

	forget_anchors(c);
	if (strcmp(text, "null") == 0) {
		c->out->len = c->document_start;
		c->out->data[c->out->len] = '\0';
		return;
	}
	buf_add_char(c->out, '\n');
	c->documents++;
}

static int on_event(struct converter *c, const yaml_event_t *e)
{
	c->line = e->start_mark.line + 1;
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		c->document_start = c->out->len;
		jsonw_init(&c->writer, c->out);
		return 0;
	case YAML_DOCUMENT_END_EVENT:
		end_document(c);
		return 0;
	case YAML_SCALAR_EVENT:
		return on_scalar(c, e);
	case YAML_ALIAS_EVENT:
		return on_alias(c, e);
	case YAML_MAPPING_START_EVENT:
		return open_frame(c, true, e->data.mapping_start.anchor);
	case YAML_SEQUENCE_START_EVENT:
		return open_frame(c, false, e->data.sequence_start.anchor);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		return close_frame(c);
	default:
		return 0;
	}
}

static int convert(struct converter *c, yaml_parser_t *parser)
{
	bool more = true;
	int rc = 0;

	while (more && !rc) {
		yaml_event_t e;

		if (!yaml_parser_parse(parser, &e))
			return fail_at(c, parser->problem_mark.line + 1, "%s",
				       parser->problem ? parser->problem : "not YAML");
		more = e.type != YAML_STREAM_END_EVENT;
		rc = on_event(c, &e);
		yaml_event_delete(&e);
	}
	return rc;
}

int yaml_json_convert(const char *name, const char *text, size_t len,
		      const struct yaml_json_limits *limits, struct buf *out, size_t *documents,
		      struct error *reason)
{
	struct converter c = {.name = name, .limits = limits, .out = out, .reason = reason};
	size_t before = out->len;
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		mem_exhausted();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	rc = convert(&c, &parser);
	yaml_parser_delete(&parser);
	forget_anchors(&c);
	forget_keys(&c, 0);
	free(c.keys);
	free(c.frames);
	if (rc) {
		out->len = before;
		if (out->data)
			out->data[before] = '\0';
	} else {
		*documents = c.documents;
	}
	return rc;
}
