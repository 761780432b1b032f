/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the objects in what a list or a watch sends, wherever its chunks begin and end, one object
 * in memory at a time.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_SPLITTER_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/reason.h"

enum { SPLITTER_OBJECT_MAX = 8 << 20 }; /* an object of as many bytes or more is refused */

enum splitter_form {
	/* one document {"apiVersion", "kind", "metadata", "items": [..]} in any order */
	SPLITTER_LIST,
	SPLITTER_LINES, /* documents, each ended by a newline */
};

/* Progress over the value that is being read. */
struct splitter_scan {
	uint32_t depth; /* open brackets */
	bool in_string, escaped, scalar;
};

struct splitter {
	/* fixed after init */
	enum splitter_form form;
	size_t most; /* bytes of an object, SPLITTER_OBJECT_MAX unless a test wants less */
	void (*on_object)(void *ctx, const char *json, size_t len);
	void *ctx;

	/* progress */
	uint8_t state;
	uint8_t member; /* of the list: whose value is being read */
	bool first; /* nothing was before, in the object or the array */
	bool in_value, dropping;
	struct splitter_scan scan;
	struct buf held; /* the begin of a value that goes on in the next chunk */
	uint64_t offset; /* bytes before this chunk */

	/* results */
	uint64_t objects;
	uint64_t too_large; /* objects that were refused for their size */
	bool has_items; /* there was a member "items" */
	char *api_version, *kind; /* of the list; NULL: not given */
	char *resource_version, *continue_token; /* of its metadata; NULL: not given */
};

/*
 * on_object gets each object's bytes, which are valid during the call and not terminated. They may
 * be no JSON.
 */
void splitter_init(struct splitter *s, enum splitter_form form,
		   void (*on_object)(void *ctx, const char *json, size_t len), void *ctx);
void splitter_fini(struct splitter *s); /* also of zeroed storage */
/*
 * The next bytes. -EBADMSG: this is no list; the reason says where, and the splitter takes nothing
 * more.
 */
int splitter_feed(struct splitter *s, const char *data, size_t len, struct reason *reason);
/*
 * No more will come. -EBADMSG: a list ended too early, or has no items. A line without its end is
 * forgotten.
 */
int splitter_end(struct splitter *s, struct reason *reason);

#endif
