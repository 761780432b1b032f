/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the CEL of device selectors that is evaluated:
 *
 *   expression = term { "&&" term }
 *   term       = "device.driver" "==" text
 *              | "device.attributes[" text "]." name "==" constant
 *   constant   = text | "true" | "false" | whole number
 *   text       = "..." or '...' without backslashes
 *
 * White space may stand between the tokens; a number has at most 15 digits. Pure.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum device_match {
	DEVICE_OTHER,
	DEVICE_MATCHES,
	DEVICE_ERROR, /* the kube-scheduler gives the pod up: the device lacks an attribute */
};

struct device_term {
	char *domain; /* owned; NULL: the driver */
	char *name; /* owned; NULL: the driver */
	enum { DEVICE_TEXT, DEVICE_BOOL, DEVICE_INT } type;
	char *text; /* owned; DEVICE_TEXT */
	int64_t number; /* DEVICE_INT; DEVICE_BOOL: 0 or 1 */
};

struct device_selector {
	size_t count;
	struct device_term *of; /* owned */
	bool reads_attributes;
};

/* 0, or -EINVAL: another expression. *out is to be freed in both cases. */
int device_selector_read(const char *expression, struct device_selector *out);
void device_selector_fini(struct device_selector *s);
/* attributes: of the device; NULL: none. */
enum device_match device_selector_match(const struct device_selector *s, const char *driver,
					const cJSON *attributes);
