/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the API's objects: members by path, items as the bytes they arrived in. */
#ifndef EVENKEEL_AGGREGATOR_CLI_DOCUMENT_H
#define EVENKEEL_AGGREGATOR_CLI_DOCUMENT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Members are named as in "usage.cpuMillicores.windows.5m.mean". What is absent or of another type
 * is NULL or NaN.
 */
const cJSON *document_at(const cJSON *root, const char *path);
const char *document_text(const cJSON *root, const char *path);
/* The same; `other` where there is none. */
const char *document_text_or(const cJSON *root, const char *path, const char *other);
double document_number(const cJSON *root, const char *path);
/* The first item of a list, NULL when there is none; ->next is the next. */
cJSON *document_first(const cJSON *list);
/* There, and null: the API's way to say "no limit" or "not measured". */
bool document_is_null(const cJSON *root, const char *path);
/* RFC 3339 in UTC as Unix seconds, NaN when absent or not a time. */
double document_time(const cJSON *root, const char *path);

/* A part of a text. */
struct span {
	const char *start;
	size_t len;
};

/*
 * Finds what stands between the brackets of the member "items" of the object that text is. False
 * when there is none. Safe on any bytes, but made for text that parsed as JSON.
 */
bool document_find_items(const char *text, size_t len, struct span *items);
/* Takes the first item off *items; false when none is left. */
bool document_next_item(struct span *items, struct span *item);

#endif
