/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over JSON text value by value, so that a list of thousands of large objects is read one by one. */
#ifndef EVENKEEL_AGGREGATOR_API_EXTENDER_SCAN_H
#define EVENKEEL_AGGREGATOR_API_EXTENDER_SCAN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Inside an object or an array. */
struct extender_scan {
	const char *at, *end;
	bool begun; /* a member was passed */
	bool broken; /* what follows is not JSON */
};

/* Where the value at `at` ends, by its brackets and quotes alone; NULL where it does not. */
const char *extender_scan_value(const char *at, const char *end);
/* Steps into the object ('{') or array ('[') that the text is. False: it is something else. */
bool extender_scan_open(struct extender_scan *s, const char *text, size_t len, char bracket);
/* The next element of an array. False: none is left, or broken. */
bool extender_scan_item(struct extender_scan *s, const char **text, size_t *len);
/* The next member of an object; its key with the quotes. */
bool extender_scan_member(struct extender_scan *s, const char **key, size_t *key_len,
			  const char **text, size_t *len);
/* The tree of a text that is all of one value, or NULL. */
cJSON *extender_scan_parse(const char *text, size_t len);

#endif
