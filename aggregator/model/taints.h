/* SPDX-License-Identifier: Apache-2.0 */
/* The taints of a node, as its spec has them. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct taint {
	const char *key, *value, *effect; /* "" where there is none */
};

/* In the order of the node. */
struct taints {
	size_t count;
	struct taint *of; /* owned with its strings, in one block */
	bool unreadable; /* no list, or an element of it has no key */
};

/*
 * From a JSON list. Anything else has no taints, and elements without a key are left out.
 */
void taints_read(const cJSON *json, struct taints *out);
void taints_fini(struct taints *t);
/* The first with that key, or NULL. */
const struct taint *taints_find(const struct taints *t, const char *key);
