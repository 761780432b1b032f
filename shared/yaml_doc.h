/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded YAML document, read by member names; keeps the first fault with its place. Of documents
 * that people write: text that may be long, and becomes JSON, is for yaml_json.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#include "shared/error.h"

/*
 * After a failure every function below finds nothing: a reader takes one member after the other
 * and checks `failed` at the end.
 */
struct yaml_doc {
	/* set before loading */
	size_t anchors_max;
	const char *name; /* of the file; borrowed */
	struct error *error; /* of the first failure; borrowed */

	yaml_document_t document;
	bool failed;
};

/* Loads one document within the bounds of the .c file. -EINVAL with the reason: nothing to free. */
int yaml_doc_load(struct yaml_doc *y, const char *text, size_t len);
void yaml_doc_fini(struct yaml_doc *y); /* wipes every scalar */

const yaml_node_t *yaml_doc_root(struct yaml_doc *y); /* NULL: the document is empty */
/* The member of a mapping; NULL: absent or null, or a failure: given twice, or of another type. */
const yaml_node_t *yaml_doc_find(struct yaml_doc *y, const yaml_node_t *map, const char *key,
				 yaml_node_type_t type);
/* The text of a scalar member, borrowed from the document; NULL also if empty. */
const char *yaml_doc_text(struct yaml_doc *y, const yaml_node_t *map, const char *key);
bool yaml_doc_flag(struct yaml_doc *y, const yaml_node_t *map, const char *key);
/* A key of a mapping and its value; NULL behind its end. */
const yaml_node_t *yaml_doc_member(struct yaml_doc *y, const yaml_node_t *map, size_t i,
				   const yaml_node_t **value);
/* An item of a sequence, of that type or, with YAML_NO_NODE, any; NULL behind its end. */
const yaml_node_t *yaml_doc_item(struct yaml_doc *y, const yaml_node_t *sequence, size_t i,
				 yaml_node_type_t type);

const char *yaml_doc_scalar(const yaml_node_t *n); /* the text of a scalar */
bool yaml_doc_is_null(const yaml_node_t *n); /* a plain empty scalar, ~ or null */
/* Fails if the node has another type, or is a scalar with a zero byte; what: it is. */
bool yaml_doc_check(struct yaml_doc *y, const yaml_node_t *n, const char *what,
		    yaml_node_type_t type);
/* Keeps "file:line:column: text" unless there was a failure before. */
void yaml_doc_fail(struct yaml_doc *y, const yaml_node_t *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
