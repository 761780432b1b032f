/* SPDX-License-Identifier: Apache-2.0 */
/* Labels, and the selectors that match them, as objects and as -l on the command line write them. Pure. */
#ifndef EVENKEEL_AGGREGATOR_MODEL_LABELS_H
#define EVENKEEL_AGGREGATOR_MODEL_LABELS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "shared/reason.h"

struct label {
	const char *key, *value;
};

/* Sorted by key (strcmp). */
struct labels {
	size_t count;
	struct label *of; /* owned with its strings, in one block */
};

/* From a JSON object of strings; NULL or null is no labels. 0, or -EINVAL naming the key that is no string. */
int labels_read(const cJSON *json, struct labels *out, struct reason *reason);
void labels_fini(struct labels *l);
/* NULL when there is no such key. */
const char *labels_find(const struct labels *l, const char *key);

struct selector;
/* {matchLabels, matchExpressions}; {} matches everything. -EINVAL for an unknown operator or missing values. */
int selector_read(const cJSON *json, struct selector **out, struct reason *reason);
/* kubectl's -l: "a=b,c!=d,e in (f,g),h notin (i),j,!k". "" matches everything. -EINVAL with the reason quoting the text. */
int selector_parse(const char *text, struct selector **out, struct reason *reason);
void selector_free(struct selector *s);
bool selector_matches(const struct selector *s, const struct labels *l);

#endif
