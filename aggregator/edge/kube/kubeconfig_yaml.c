/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libyaml builds the document. A pass over its events comes first and refuses expensive input:
 * more than EVENTS_MAX events, nesting deeper than DEPTH_MAX, more than ANCHORS_MAX anchors
 * (libyaml looks for them one by one). An alias is the same node again, so it costs nothing, and
 * readers descend by names, so cycles do no harm. Merge keys are refused: their members would be
 * missed. JSON is YAML.
 *
 * A document holds tokens and keys: its scalars are wiped before they are freed. libyaml's buffers
 * are out of reach.
 */
#include "aggregator/edge/kube/kubeconfig_yaml.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shared/mem.h"

enum { EVENTS_MAX = 100000, DEPTH_MAX = 64, ANCHORS_MAX = 100 };

static int refuse(const char *name, const yaml_mark_t *at, const char *text, struct error *reason)
{
	error_set(reason, "%s:%zu:%zu: %s", name, at->line + 1, at->column + 1, text);
	return -EINVAL;
}

/* A syntax error of libyaml. */
static int refuse_syntax(const char *name, const yaml_parser_t *p, struct error *reason)
{
	if (p->error != YAML_READER_ERROR)
		return refuse(name, &p->problem_mark, p->problem ? p->problem : "not YAML", reason);
	error_set(reason, "%s: byte %zu: %s", name, p->problem_offset + 1, p->problem);
	return -EINVAL;
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

/* The bound that this event exceeds, or NULL. */
static const char *count_event(struct counts *n, const yaml_event_t *e)
{
	n->anchors += has_anchor(e);
	n->documents += e->type == YAML_DOCUMENT_START_EVENT;
	if (e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT)
		n->depth++;
	if (e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT)
		n->depth--;
	if (++n->events > EVENTS_MAX)
		return "more values than any kubeconfig has";
	if (n->depth > DEPTH_MAX)
		return "nested deeper than any kubeconfig is";
	if (n->anchors > ANCHORS_MAX)
		return "more anchors than any kubeconfig has";
	if (n->documents > 1)
		return "a second document; there may be only one";
	return NULL;
}

static int check_bounds(const char *name, const char *text, size_t len, struct error *reason)
{
	struct counts n = {0};
	yaml_parser_t parser;
	yaml_event_t event;
	const char *wrong = NULL;
	bool ended = false;
	int rc = 0;

	if (!yaml_parser_initialize(&parser))
		mem_exhausted();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	while (rc == 0 && !ended) {
		if (!yaml_parser_parse(&parser, &event)) {
			rc = refuse_syntax(name, &parser, reason);
			break;
		}
		ended = event.type == YAML_STREAM_END_EVENT;
		wrong = count_event(&n, &event);
		if (wrong)
			rc = refuse(name, &event.start_mark, wrong, reason);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return rc;
}

/* --- document --------------------------------------------------------------------------------- */

int kubeconfig_yaml_load(struct kubeconfig_yaml *y, const char *name, const char *text, size_t len,
			 struct error *reason)
{
	yaml_parser_t parser;
	yaml_node_t *root;
	int rc = check_bounds(name, text, len, reason);

	if (rc)
		return rc;
	*y = (struct kubeconfig_yaml){.name = name, .error = reason};
	if (!yaml_parser_initialize(&parser))
		mem_exhausted();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (!yaml_parser_load(&parser, &y->document))
		rc = refuse_syntax(name, &parser, reason);
	yaml_parser_delete(&parser);
	if (rc)
		return rc;
	root = kubeconfig_yaml_root(y);
	if (root && root->type == YAML_MAPPING_NODE)
		return 0;
	error_set(reason, "%s: %s", name, root ? "not a kubeconfig: no mapping" : "is empty");
	kubeconfig_yaml_fini(y);
	return -EINVAL;
}

void kubeconfig_yaml_fini(struct kubeconfig_yaml *y)
{
	for (yaml_node_t *n = y->document.nodes.start; n < y->document.nodes.top; n++) {
		if (n->type == YAML_SCALAR_NODE)
			sodium_memzero(n->data.scalar.value, n->data.scalar.length);
	}
	yaml_document_delete(&y->document);
}

yaml_node_t *kubeconfig_yaml_root(struct kubeconfig_yaml *y)
{
	return yaml_document_get_root_node(&y->document);
}

void kubeconfig_yaml_fail(struct kubeconfig_yaml *y, const yaml_node_t *at, const char *format, ...)
{
	char text[384];
	va_list args;

	if (y->failed)
		return;
	y->failed = true;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	refuse(y->name, &at->start_mark, text, y->error);
}

/* --- members ---------------------------------------------------------------------------------- */

static const char *scalar(const yaml_node_t *n)
{
	return (const char *)n->data.scalar.value;
}

static bool is_text(const yaml_node_t *n, const char *text)
{
	return n->type == YAML_SCALAR_NODE && n->data.scalar.length == strlen(text) &&
	       memcmp(n->data.scalar.value, text, strlen(text)) == 0;
}

/* A plain empty scalar, ~ or null. */
static bool is_null(const yaml_node_t *n)
{
	return n->type == YAML_SCALAR_NODE && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (is_text(n, "") || is_text(n, "~") || is_text(n, "null"));
}

static bool check_type(struct kubeconfig_yaml *y, const yaml_node_t *n, const char *what,
		       yaml_node_type_t type)
{
	if (n->type != type)
		kubeconfig_yaml_fail(y, n, "%s: expected %s here", what,
				     type == YAML_SCALAR_NODE	  ? "a plain value"
				     : type == YAML_SEQUENCE_NODE ? "a list"
								  : "\"name: value\" lines");
	else if (type == YAML_SCALAR_NODE && strlen(scalar(n)) != n->data.scalar.length)
		kubeconfig_yaml_fail(y, n, "%s: a value with a zero byte", what);
	return !y->failed;
}

yaml_node_t *kubeconfig_yaml_find(struct kubeconfig_yaml *y, const yaml_node_t *map,
				  const char *key, yaml_node_type_t type)
{
	yaml_node_t *found = NULL;

	if (y->failed || !map)
		return NULL;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
	     p++) {
		const yaml_node_t *name = yaml_document_get_node(&y->document, p->key);

		if (is_text(name, "<<"))
			kubeconfig_yaml_fail(y, name, "merge keys (<<) are not supported");
		if (!is_text(name, key))
			continue;
		if (found)
			kubeconfig_yaml_fail(y, name, "%s is given twice", key);
		found = yaml_document_get_node(&y->document, p->value);
	}
	if (y->failed || !found || is_null(found) || !check_type(y, found, key, type))
		return NULL;
	return found;
}

const char *kubeconfig_yaml_text(struct kubeconfig_yaml *y, const yaml_node_t *map, const char *key)
{
	const yaml_node_t *n = kubeconfig_yaml_find(y, map, key, YAML_SCALAR_NODE);

	return n && n->data.scalar.length ? scalar(n) : NULL;
}

bool kubeconfig_yaml_flag(struct kubeconfig_yaml *y, const yaml_node_t *map, const char *key)
{
	const yaml_node_t *n = kubeconfig_yaml_find(y, map, key, YAML_SCALAR_NODE);
	bool yes = n && (is_text(n, "true") || is_text(n, "True") || is_text(n, "TRUE"));
	bool no = n && (is_text(n, "false") || is_text(n, "False") || is_text(n, "FALSE"));

	if (n && !yes && !no)
		kubeconfig_yaml_fail(y, n, "%s: expected true or false", key);
	return yes;
}

yaml_node_t *kubeconfig_yaml_item(struct kubeconfig_yaml *y, const yaml_node_t *sequence, size_t i,
				  yaml_node_type_t type)
{
	const yaml_node_item_t *start, *top;
	yaml_node_t *n;

	if (y->failed || !sequence)
		return NULL;
	start = sequence->data.sequence.items.start;
	top = sequence->data.sequence.items.top;
	if (i >= (size_t)(top - start))
		return NULL;
	n = yaml_document_get_node(&y->document, start[i]);
	return check_type(y, n, "item", type) ? n : NULL;
}
