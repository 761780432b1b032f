/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as JSON text, by the rules of kubectl. */
#pragma once

#include <stddef.h>

#include "shared/buf.h"
#include "shared/error.h"

/* Limits of the result: depth of nesting, bytes of JSON (whole MiB). */
struct yaml_json_limits {
	size_t depth, bytes;
};

/*
 * Appends each document as one line of JSON, without empty ones. Plain scalars are null, booleans,
 * numbers or strings by their form (0644 is octal, "yes" is text, quoted is text); aliases are
 * copies. 0 with *documents, or -EINVAL with the reason "NAME:LINE: .." and nothing appended:
 * repeated keys, keys that are not text, merge keys, .inf and .nan, recursive aliases, more than
 * 100 anchors in a document, results beyond a limit.
 */
int yaml_json_convert(const char *name, const char *text, size_t len,
		      const struct yaml_json_limits *limits, struct buf *out, size_t *documents,
		      struct error *error);
