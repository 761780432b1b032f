/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a kind that cannot be read, and why: they are not in the model. Bounded: beyond that
 * only `more` is known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { UNREADABLE_MAX = 8 };

/* Texts are cut when they are longer. */
struct unreadable {
	char namespace[64], name[256];
	char node[256]; /* of a pod: the one it is bound to; "" none, or it is not known */
	char why[192]; /* "spec.min.cpu: must not be negative" */
};

/* Empty when all is zero. */
struct unreadables {
	uint32_t count;
	bool more; /* some did not find a place, and may be there still */
	struct unreadable of[UNREADABLE_MAX]; /* in the order they came */
};

/* In place of what was known of that name. */
void unreadables_put(struct unreadables *u, const char *namespace, const char *name,
		     const char *node, const char *why);
/* It can be read, or is gone. */
void unreadables_remove(struct unreadables *u, const char *namespace, const char *name);
bool unreadables_equal(const struct unreadables *a, const struct unreadables *b);
