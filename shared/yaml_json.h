/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as JSON text, by the rules people know from kubectl. */
#ifndef EVENKEEL_SHARED_YAML_JSON_H
#define EVENKEEL_SHARED_YAML_JSON_H

#include <stddef.h>

#include "shared/buf.h"
#include "shared/reason.h"

/* What a text may become: depth of nesting, and bytes of JSON (whole MiB). */
struct yaml_json_limits {
	size_t depth, bytes;
};

/*
 * Appends each document as one line of JSON; empty ones are left out. Plain scalars are null,
 * booleans, numbers or strings by their looks (0644 is octal, "yes" stays text, quoted is always
 * text); aliases are copies. 0 with *documents, or -EINVAL with the reason "NAME:LINE: ..", and
 * nothing is appended: repeated keys, keys that are no text, merge keys, .inf and .nan, aliases of
 * what they stand in, and what grows beyond a limit.
 */
int yaml_json_convert(const char *name, const char *text, size_t len,
		      const struct yaml_json_limits *limits, struct buf *out, size_t *documents,
		      struct reason *reason);

#endif
