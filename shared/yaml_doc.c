/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libyaml builds the document. A pass over its events comes first and refuses expensive input:
 * more than EVENTS_MAX events, nesting deeper than DEPTH_MAX, more anchors than allowed
 * (libyaml looks for them one by one). An alias is the same node again, so it costs nothing, and
 * readers descend by names, so cycles do no harm. Merge keys are refused: their members would be
 * missed. JSON is YAML.
 *
 * A document holds tokens and keys: its scalars are wiped before they are freed. libyaml's buffers
 * are out of reach.
 */
#include "shared/yaml_doc.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "shared/mem.h"

enum { EVENTS_MAX = 100000, DEPTH_MAX = 64 };

__attribute__((format(printf, 3, 4))) static int refuse(struct yaml_doc *y, const yaml_mark_t *at,
							const char *format, ...)
{
	char text[384];

	MEM_FORMAT(text, sizeof(text), format);
	return error_fail(y->error, -EINVAL, "%s:%zu:%zu: %s", y->name, at->line + 1,
			  at->column + 1, text);
}

/* A syntax error of libyaml. */
static int refuse_syntax(struct yaml_doc *y, const yaml_parser_t *p)
{
	if (p->error != YAML_READER_ERROR)
		return refuse(y, &p->problem_mark, "%s", p->problem ? p->problem : "not YAML");
	return error_fail(y->error, -EINVAL, "%s: byte %zu: %s", y->name, p->problem_offset + 1,
			  p->problem);
}

/* --- bounds ----------------------------------------------------------------------------------- */

struct counts {
	size_t events, documents, depth, anchors;
};

static bool has_anchor(const yaml_event_t *e)
{
	return (e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor) ||
	       (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.anchor) ||
	       (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.anchor);
}

/* -EINVAL: this event exceeds a bound. */
static int count_event(struct yaml_doc *y, struct counts *n, const yaml_event_t *e)
{
	const yaml_mark_t *at = &e->start_mark;

	n->anchors += has_anchor(e);
	n->documents += e->type == YAML_DOCUMENT_START_EVENT;
	if (e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT)
		n->depth++;
	if (e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT)
		n->depth--;
	if (++n->events > EVENTS_MAX)
		return refuse(y, at, "more than %d values", EVENTS_MAX);
	if (n->depth > DEPTH_MAX)
		return refuse(y, at, "nested deeper than %d levels", DEPTH_MAX);
	if (n->anchors > y->anchors_max)
		return refuse(y, at, "more than %zu anchors", y->anchors_max);
	if (n->documents > 1)
		return refuse(y, at, "a second document; there may be only one");
	return 0;
}

static int check_bounds(struct yaml_doc *y, yaml_parser_t *parser)
{
	struct counts n = {0};
	bool ended = false;
	int rc = 0;

	while (rc == 0 && !ended) {
		yaml_event_t event;

		if (!yaml_parser_parse(parser, &event))
			return refuse_syntax(y, parser);
		ended = event.type == YAML_STREAM_END_EVENT;
		rc = count_event(y, &n, &event);
		yaml_event_delete(&event);
	}
	return rc;
}

/* --- document --------------------------------------------------------------------------------- */

static int build(struct yaml_doc *y, yaml_parser_t *parser)
{
	return yaml_parser_load(parser, &y->document) ? 0 : refuse_syntax(y, parser);
}

static int parse(struct yaml_doc *y, const char *text, size_t len,
		 int (*with)(struct yaml_doc *y, yaml_parser_t *parser))
{
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		mem_exhausted();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	rc = with(y, &parser);
	yaml_parser_delete(&parser);
	return rc;
}

int yaml_doc_load(struct yaml_doc *y, const char *text, size_t len)
{
	int rc = parse(y, text, len, check_bounds);

	return rc ? rc : parse(y, text, len, build);
}

void yaml_doc_fini(struct yaml_doc *y)
{
	for (yaml_node_t *n = y->document.nodes.start; n < y->document.nodes.top; n++) {
		if (n->type == YAML_SCALAR_NODE)
			sodium_memzero(n->data.scalar.value, n->data.scalar.length);
	}
	yaml_document_delete(&y->document);
}

const yaml_node_t *yaml_doc_root(struct yaml_doc *y)
{
	return yaml_document_get_root_node(&y->document);
}

void yaml_doc_fail(struct yaml_doc *y, const yaml_node_t *at, const char *format, ...)
{
	char text[384];

	if (y->failed)
		return;
	y->failed = true;
	MEM_FORMAT(text, sizeof(text), format);
	refuse(y, &at->start_mark, "%s", text);
}

/* --- members ---------------------------------------------------------------------------------- */

const char *yaml_doc_scalar(const yaml_node_t *n)
{
	return (const char *)n->data.scalar.value;
}

static bool is_text(const yaml_node_t *n, const char *text)
{
	return n->type == YAML_SCALAR_NODE && n->data.scalar.length == strlen(text) &&
	       memcmp(n->data.scalar.value, text, strlen(text)) == 0;
}

bool yaml_doc_is_null(const yaml_node_t *n)
{
	return n->type == YAML_SCALAR_NODE && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (is_text(n, "") || is_text(n, "~") || is_text(n, "null"));
}

bool yaml_doc_check(struct yaml_doc *y, const yaml_node_t *n, const char *what,
		    yaml_node_type_t type)
{
	if (n->type != type)
		yaml_doc_fail(y, n, "%s: expected %s here", what,
			      type == YAML_SCALAR_NODE	   ? "a plain value"
			      : type == YAML_SEQUENCE_NODE ? "a list"
							   : "\"name: value\" lines");
	else if (type == YAML_SCALAR_NODE && strlen(yaml_doc_scalar(n)) != n->data.scalar.length)
		yaml_doc_fail(y, n, "%s: a value with a zero byte", what);
	return !y->failed;
}

const yaml_node_t *yaml_doc_member(struct yaml_doc *y, const yaml_node_t *map, size_t i,
				   const yaml_node_t **value)
{
	const yaml_node_pair_t *pair = map->data.mapping.pairs.start + i;

	if (y->failed || pair >= map->data.mapping.pairs.top)
		return NULL;
	*value = yaml_document_get_node(&y->document, pair->value);
	return yaml_document_get_node(&y->document, pair->key);
}

const yaml_node_t *yaml_doc_find(struct yaml_doc *y, const yaml_node_t *map, const char *key,
				 yaml_node_type_t type)
{
	const yaml_node_t *found = NULL, *name, *value;

	for (size_t i = 0; map && (name = yaml_doc_member(y, map, i, &value)); i++) {
		if (is_text(name, "<<"))
			yaml_doc_fail(y, name, "merge keys (<<) are not supported");
		if (!is_text(name, key))
			continue;
		if (found)
			yaml_doc_fail(y, name, "%s is given twice", key);
		found = value;
	}
	if (y->failed || !found || yaml_doc_is_null(found) || !yaml_doc_check(y, found, key, type))
		return NULL;
	return found;
}

const char *yaml_doc_text(struct yaml_doc *y, const yaml_node_t *map, const char *key)
{
	const yaml_node_t *n = yaml_doc_find(y, map, key, YAML_SCALAR_NODE);

	return n && n->data.scalar.length ? yaml_doc_scalar(n) : NULL;
}

bool yaml_doc_flag(struct yaml_doc *y, const yaml_node_t *map, const char *key)
{
	const yaml_node_t *n = yaml_doc_find(y, map, key, YAML_SCALAR_NODE);
	bool yes = n && (is_text(n, "true") || is_text(n, "True") || is_text(n, "TRUE"));
	bool no = n && (is_text(n, "false") || is_text(n, "False") || is_text(n, "FALSE"));

	if (n && !yes && !no)
		yaml_doc_fail(y, n, "%s: expected true or false", key);
	return yes;
}

const yaml_node_t *yaml_doc_item(struct yaml_doc *y, const yaml_node_t *sequence, size_t i,
				 yaml_node_type_t type)
{
	const yaml_node_t *n;

	if (y->failed || !sequence ||
	    sequence->data.sequence.items.start + i >= sequence->data.sequence.items.top)
		return NULL;
	n = yaml_document_get_node(&y->document, sequence->data.sequence.items.start[i]);
	return type == YAML_NO_NODE || yaml_doc_check(y, n, "item", type) ? n : NULL;
}
