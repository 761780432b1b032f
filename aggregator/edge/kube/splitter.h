/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the objects in the bytes of a list or a watch, wherever its chunks begin and end, with one
 * object in memory at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/error.h"

enum { SPLITTER_OBJECT_MAX = 8 << 20 }; /* larger objects, or as large, are refused */

enum splitter_form {
	/* one document {"apiVersion", "kind", "metadata", "items": [..]} in any order */
	SPLITTER_LIST,
	SPLITTER_LINES, /* documents, each ended by a newline */
};

/* Progress in the current value. */
struct splitter_scan {
	uint32_t depth; /* open brackets */
	bool in_string, escaped, scalar;
};

struct splitter {
	/* fixed after init */
	enum splitter_form form;
	size_t most; /* bytes of an object; SPLITTER_OBJECT_MAX, less in tests */
	void (*on_object)(void *ctx, const char *json, size_t len);
	void *ctx;

	/* progress */
	uint8_t state;
	uint8_t member; /* of the list: the current one */
	bool first; /* at the beginning of the object or the array */
	bool in_value, dropping;
	struct splitter_scan scan;
	struct buf held; /* the beginning of a value that continues in the next chunk */
	uint64_t offset; /* bytes before this chunk */

	/* results */
	uint64_t too_large; /* objects refused for their size */
	bool has_items; /* a member "items" was found */
	char *kind; /* of the list; NULL: not given */
	char *resource_version, *continue_token; /* of its metadata; NULL: not given */
};

/*
 * on_object gets the bytes of each object, valid during the call and not terminated. They may be
 * no JSON.
 */
void splitter_init(struct splitter *s, enum splitter_form form,
		   void (*on_object)(void *ctx, const char *json, size_t len), void *ctx);
void splitter_fini(struct splitter *s); /* also of zeroed storage */
/* The next bytes. -EBADMSG: no list; the reason has the place, and the splitter takes no more. */
int splitter_feed(struct splitter *s, const char *data, size_t len, struct error *error);
/* The end. -EBADMSG: a list ended too early, or has no items. An unfinished line is dropped. */
int splitter_end(struct splitter *s, struct error *error);
