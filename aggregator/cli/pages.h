/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the API: items as the bytes they arrived in, page by page. */
#pragma once

#include <stddef.h>

#include "shared/buf.h"
#include "shared/document.h"
#include "shared/error.h"

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

/* --- lists, from their first page to their last */

struct client;

struct list;

/* item is borrowed. False leaves it out of -o json. */
typedef bool list_item(const struct list *l, const cJSON *item);

/* What was received so far, for -o json. */
struct list {
	list_item *item;
	void *context;
	cJSON *total; /* that of the first page, or NULL; owned */
	struct buf page; /* the newest page, as it came */
	struct buf items; /* all items that were kept */
	double held; /* seconds since the newest page came from the server */
	double time; /* now by the server's clock, Unix seconds or NaN */
	size_t pages, dropped;
	char *more; /* the token for the next page, or NULL; owned */
};

void list_init(struct list *l, list_item *item, void *context);
void list_fini(struct list *l);
/* Looks through one page, held in l->page. -EINVAL with the reason when that is no list. */
int list_read_page(struct list *l, struct error *error);
/*
 * GETs path ("/v1/pods?limit=500": with a query) and every page after it. 0, or the error of
 * client_get() or list_read_page() with the reason.
 */
int list_fetch(struct list *l, struct client *client, const char *path, struct error *error);
/* One list object: the only page as it came, else the last page's envelope around all items. */
void list_print_json(const struct list *l, struct buf *out);
