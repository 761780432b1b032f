/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common parts of lists: parameters of the query, the first N items in order, and the
 * continuation of the next request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/api/api.h"
#include "shared/jsonw.h"

enum { LIST_LIMIT_DEFAULT = 500, LIST_LIMIT_MOST = 5000 };

/*
 * By name: by namespace, name and node, ascending. By use: the newest value, greatest first,
 * unknown last; then by name.
 */
enum list_sort { LIST_BY_NAME, LIST_BY_CPU, LIST_BY_MEMORY };

struct list_query {
	const char *node; /* NULL: any; borrowed from the request */
	const char *namespace; /* NULL: any; borrowed */
	struct selector *selector; /* NULL: any labels; owned */
	size_t limit;
	enum list_sort sort;
	/*
	 * Where the last answer ended; NULL: from the start. Owned, all in the block of the first.
	 */
	char *after_namespace;
	const char *after_name, *after_node;
};

/* False: *rs says why (400); one reason is a query for labels where no API is followed. */
bool list_query_read(const struct api_request *rq, const struct view *v, struct list_query *q,
		     struct api_response *rs);
void list_query_fini(struct list_query *q);
/* *selector is the caller's, and stays as it is where none is given; false: *rs says why (400). */
bool list_selector_read(const struct api_request *rq, struct selector **selector,
			struct api_response *rs);

/* Of the Node object; empty where the API knows none. */
const struct labels *list_node_labels(const struct view_node *n);

/* A node, or a pod of it. Borrowed from a view. */
struct list_item {
	const struct view_node *node; /* NULL: a pod that has none yet */
	struct view_pod pod; /* neither pod nor use: the node itself */
};

/* Keeps the first q->limit of the items offered, in time O(log limit) each on average. */
struct list_pick {
	const struct list_query *query;
	struct list_item *items; /* room for twice the limit */
	size_t count;
	bool more; /* items were cut off, and the first q->limit are sorted */
};

void list_pick_init(struct list_pick *p, const struct list_query *q);
void list_pick_fini(struct list_pick *p);
void list_pick_offer(struct list_pick *p, struct list_item item);
/*
 * True when neither the item nor any that comes after it by name can change what is picked: the
 * rest of what is sorted by name need not be offered.
 */
bool list_pick_is_past(const struct list_pick *p, const struct list_item *item);
/* Puts items into order. Offer nothing after it. */
void list_pick_sort(struct list_pick *p);

/* Begins the answer: {"apiVersion","kind","time", and ends it. */
void list_answer_open(struct api_response *rs, struct jsonw *w, const char *kind, int64_t now_ns);
void list_answer_close(struct jsonw *w);
/* "continue" behind an item; of a list without nodes, node is what else names it. */
void list_write_continue(struct jsonw *w, const char *namespace, const char *name,
			 const char *node);
/* Ends an answer whose "items" were picked: "continue", where more follow. */
void list_write_close(struct jsonw *w, const struct list_pick *p);
/* key:[LINE,..]; the text may be NULL. */
void list_write_lines(struct jsonw *w, const char *key, const char *text);
/* "podUse", where it is not what was measured of the pods (place_use_is_shared()). */
void list_write_pod_use(struct jsonw *w, bool shared);

/* Equal for two answers to one URL that differ in nothing but ages. */
uint64_t list_etag(const struct view *v, int64_t now_ns);
