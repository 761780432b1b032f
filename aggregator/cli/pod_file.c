/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON goes to the server as it is, once it parses. YAML becomes JSON by the rules kubectl users know: plain scalars
 * are null, booleans, numbers or strings by their looks (0644 is octal, "yes" stays text, quoted is always
 * text); aliases are copies. Refused with file and line: several documents, repeated keys, merge keys, .inf and .nan,
 * and what would grow beyond JSON_MAX or nest deeper than DEPTH_MAX, which also ends aliases that contain themselves.
 */
#include "aggregator/cli/pod_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "shared/jsonw.h"
#include "shared/mem.h"

enum { FILE_MAX = 1 << 20, JSON_MAX = 4 << 20, DEPTH_MAX = 64 };

struct converter {
	yaml_document_t document;
	const char *name; /* of the file */
	struct jsonw writer;
	struct buf *out;
	struct reason *reason;
};

static int fail(const struct converter *c, const yaml_node_t *node, const char *text)
{
	reason_set(c->reason, "%s:%zu: %s", c->name, node->start_mark.line + 1, text);
	return -EINVAL;
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

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

static int write_float(struct converter *c, const yaml_node_t *node, const char *text)
{
	double value = strtod(text, NULL);

	if (!isfinite(value))
		return fail(c, node, "the number is too large");
	jsonw_exact(&c->writer, value);
	return 0;
}

/* digits without sign and prefix; what 64 bits do not hold becomes the nearest double, as JSON readers do. */
static int write_integer(struct converter *c, const yaml_node_t *node, const char *digits, int base,
			 bool negative)
{
	unsigned long long value;

	errno = 0;
	value = strtoull(digits, NULL, base);
	if (!errno && value <= INT64_MAX)
		jsonw_int(&c->writer, negative ? -(int64_t)value : (int64_t)value);
	else if (base == 10)
		return write_float(c, node, digits - negative);
	else
		return fail(c, node, "the number does not fit in 64 bits");
	return 0;
}

static int write_plain(struct converter *c, const yaml_node_t *node, const char *text)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const trues[] = {"true", "True", "TRUE", NULL};
	static const char *const falses[] = {"false", "False", "FALSE", NULL};
	static const char *const endless[] = {".inf",  ".Inf", ".INF", "+.inf", "-.inf",
					      "-.Inf", ".nan", ".NaN", ".NAN",	NULL};
	bool negative = text[0] == '-';
	const char *number = text + (negative || text[0] == '+');

	if (is_one_of(text, nulls))
		jsonw_null(&c->writer);
	else if (is_one_of(text, trues))
		jsonw_bool(&c->writer, true);
	else if (is_one_of(text, falses))
		jsonw_bool(&c->writer, false);
	else if (is_one_of(text, endless))
		return fail(c, node, "JSON has no infinite numbers");
	else if (is_decimal(number))
		return write_integer(c, node, number, 10, negative);
	else if (number[0] == '0' && number[1] == 'o' && is_integer(number + 2, "01234567"))
		return write_integer(c, node, number + 2, 8, negative);
	else if (number[0] == '0' && number[1] == 'x' &&
		 is_integer(number + 2, "0123456789abcdefABCDEF"))
		return write_integer(c, node, number + 2, 16, negative);
	else if (number[0] == '0' && is_integer(text, "01234567"))
		return write_integer(c, node, number, 8, negative);
	else if (is_float(text))
		return write_float(c, node, text);
	else
		jsonw_string(&c->writer, text);
	return 0;
}

static int write_scalar(struct converter *c, const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value, *tag = (const char *)node->tag;

	if (strlen(text) != node->data.scalar.length)
		return fail(c, node, "a zero byte in a value");
	/* The composer tags what has no tag as a string too, so !!str on plain text has no effect. */
	if (strcmp(tag, YAML_STR_TAG) != 0 || node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return write_plain(c, node, text);
	jsonw_string(&c->writer, text);
	return 0;
}

static int write_node(struct converter *c, int index, int depth);

static int write_sequence(struct converter *c, const yaml_node_t *node, int depth)
{
	const yaml_node_item_t *item;
	int rc = 0;

	jsonw_array_open(&c->writer);
	for (item = node->data.sequence.items.start; item < node->data.sequence.items.top && !rc;
	     item++)
		rc = write_node(c, *item, depth + 1);
	jsonw_array_close(&c->writer);
	return rc;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_keys(struct converter *c, const yaml_node_t *node)
{
	size_t count = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
	const char **keys = mem_zalloc(count, sizeof(*keys));
	char text[128];
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		const yaml_node_t *key =
			yaml_document_get_node(&c->document, node->data.mapping.pairs.start[i].key);

		if (!key || key->type != YAML_SCALAR_NODE)
			rc = fail(c, node, "a key that is not plain text");
		else if (strcmp((const char *)key->data.scalar.value, "<<") == 0)
			rc = fail(c, key, "merge keys (<<) are not supported");
		else
			keys[i] = (const char *)key->data.scalar.value;
	}
	if (rc == 0 && count > 1)
		qsort(keys, count, sizeof(*keys), compare_keys);
	for (size_t i = 1; i < count && rc == 0; i++)
		if (strcmp(keys[i - 1], keys[i]) == 0) {
			snprintf(text, sizeof(text),
				 "the key \"%.64s\" stands twice in this mapping", keys[i]);
			rc = fail(c, node, text);
		}
	free(keys);
	return rc;
}

static int write_mapping(struct converter *c, const yaml_node_t *node, int depth)
{
	const yaml_node_pair_t *pair;
	int rc = check_keys(c, node);

	if (rc)
		return rc;
	jsonw_object_open(&c->writer);
	for (pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top && !rc;
	     pair++) {
		const yaml_node_t *key = yaml_document_get_node(&c->document, pair->key);

		jsonw_key(&c->writer, (const char *)key->data.scalar.value);
		rc = write_node(c, pair->value, depth + 1);
	}
	jsonw_object_close(&c->writer);
	return rc;
}

static int write_node(struct converter *c, int index, int depth)
{
	const yaml_node_t *node = yaml_document_get_node(&c->document, index);

	if (!node)
		return -EINVAL;
	if (depth > DEPTH_MAX)
		return fail(c, node, "nested too deeply");
	if (c->out->len > JSON_MAX)
		return fail(c, node, "becomes larger than 4 MiB");
	if (node->type == YAML_SEQUENCE_NODE)
		return write_sequence(c, node, depth);
	if (node->type == YAML_MAPPING_NODE)
		return write_mapping(c, node, depth);
	return write_scalar(c, node);
}

static int fail_parse(const struct converter *c, const yaml_parser_t *parser)
{
	reason_set(c->reason, "%s:%zu: %s", c->name, parser->problem_mark.line + 1,
		   parser->problem ? parser->problem : "not YAML");
	return -EINVAL;
}

/* The document under the cursor, then that no other follows. */
static int convert_document(struct converter *c, yaml_parser_t *parser)
{
	const yaml_node_t *root = yaml_document_get_root_node(&c->document);
	yaml_document_t second;
	bool more;

	if (!root || root->type != YAML_MAPPING_NODE) {
		reason_set(c->reason, "%s: holds no pod", c->name);
		return -EINVAL;
	}
	if (!yaml_parser_load(parser, &second))
		return fail_parse(c, parser);
	more = yaml_document_get_root_node(&second) != NULL;
	yaml_document_delete(&second);
	if (more) {
		reason_set(c->reason, "%s: holds several documents; give one pod", c->name);
		return -EINVAL;
	}
	jsonw_init(&c->writer, c->out);
	return write_node(c, 1, 0);
}

static int convert_yaml(struct converter *c, const char *text, size_t len)
{
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		abort();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (yaml_parser_load(&parser, &c->document)) {
		rc = convert_document(c, &parser);
		yaml_document_delete(&c->document);
	} else {
		rc = fail_parse(c, &parser);
	}
	yaml_parser_delete(&parser);
	return rc;
}

static bool is_blank(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
		p++;
	return p == end;
}

int pod_file_convert(const char *name, const char *text, size_t len, struct buf *json,
		     struct reason *reason)
{
	struct converter c = {.name = name, .out = json, .reason = reason};
	size_t before = json->len, blanks = 0;
	int rc;

	while (blanks < len && text[blanks] && strchr(" \t\r\n", text[blanks]))
		blanks++;
	if (blanks < len && text[blanks] == '{') {
		const char *end = NULL;
		cJSON *doc = cJSON_ParseWithLengthOpts(text, len, &end, false);
		bool whole = doc && is_blank(end, text + len);

		cJSON_Delete(doc);
		if (whole) {
			buf_add(json, text, (size_t)(end - text));
			return 0;
		}
	}
	rc = convert_yaml(&c, text, len);
	if (rc)
		json->len = before;
	return rc;
}

int pod_file_read(const char *path, struct buf *json, struct reason *reason)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *file = standard ? stdin : fopen(path, "re");
	char *text;
	size_t len;
	int rc;

	if (!file) {
		reason_set(reason, "--pod: cannot read %s: %s", path, strerror(errno));
		return -EINVAL;
	}
	text = mem_alloc(FILE_MAX + 1);
	len = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file)) {
		reason_set(reason, "--pod: cannot read %s: %s", path, strerror(errno));
		rc = -EINVAL;
	} else if (len > FILE_MAX) {
		reason_set(reason, "--pod: %s is larger than 1 MiB", path);
		rc = -EINVAL;
	} else {
		rc = pod_file_convert(standard ? "standard input" : path, text, len, json, reason);
	}
	free(text);
	if (!standard)
		fclose(file);
	return rc;
}
