/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels, and the selectors that match them, as objects and as -l on the command line write them.
 * Pure.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "shared/error.h"

struct label {
	const char *key, *value;
};

/* Sorted by key (strcmp). */
struct labels {
	size_t count;
	struct label *of; /* owned with its strings, in one block */
};

/*
 * From a JSON object of strings; NULL or null is no labels, and a member that is null is absent. 0,
 * or -EINVAL naming the key that is no string.
 */
int labels_read(const cJSON *json, struct labels *out, struct error *error);
/* Only the keys that `wanted` wants; the others need not even be strings. */
int labels_read_some(const cJSON *json, bool (*wanted)(const char *key), struct labels *out,
		     struct error *error);
void labels_fini(struct labels *l);
/* NULL when there is no such key. */
const char *labels_find(const struct labels *l, const char *key);

/*
 * A value of a label other than "", and a key behind its prefix: at most 63 letters, digits, "-",
 * "_", ".", the first and the last a letter or a digit.
 */
bool label_is_name(const char *text, size_t len);

struct selector;
/*
 * {matchLabels, matchExpressions} with In, NotIn, Exists, DoesNotExist; {} matches everything.
 * -EINVAL for another operator, for values where there must be none, none where there must be some,
 * and a member nobody knows: a selector read in part would match what it should not. NotIn and
 * DoesNotExist match where there is no such label.
 */
int selector_read(const cJSON *json, struct selector **out, struct error *error);
/*
 * kubectl's -l: "a=b,c==d,e!=f,g in (h,i),j notin (k),l,!m", with white space anywhere between
 * words. "" matches everything, "a=" and "a in (,b)" know the empty value. -EINVAL with the reason
 * quoting the text and the place.
 */
int selector_parse(const char *text, struct selector **out, struct error *error);
void selector_free(struct selector *s);
/* It requires nothing. */
bool selector_is_empty(const struct selector *s);
bool selector_matches(const struct selector *s, const struct labels *l);
/* A label that everything has which it matches, borrowed from it. False: none is known. */
bool selector_find_required(const struct selector *s, struct label *out);
