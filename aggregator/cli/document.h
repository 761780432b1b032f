/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the API's objects: members by path, items as the bytes they arrived in, and lists page by
 * page.
 */
#ifndef EVENKEEL_AGGREGATOR_CLI_DOCUMENT_H
#define EVENKEEL_AGGREGATOR_CLI_DOCUMENT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/error.h"

/*
 * Members are named as in "usage.cpuMillicores.windows.5m.mean". What is absent or of another type
 * is NULL or NaN.
 */
const cJSON *document_at(const cJSON *root, const char *path);
const char *document_text(const cJSON *root, const char *path);
/* The same; `other` where there is none. */
const char *document_text_or(const cJSON *root, const char *path, const char *other);
double document_number(const cJSON *root, const char *path);
/* The first item of a list, NULL when there is none; ->next is the next. Path "" is the root. */
cJSON *document_first(const cJSON *root, const char *path);
/* Whether it is this text; whether it is true. */
bool document_is(const cJSON *root, const char *path, const char *text);
bool document_is_true(const cJSON *root, const char *path);
/* The item of a list whose member is that text, NULL when there is none; text may be NULL. */
const cJSON *document_find(const cJSON *root, const char *path, const char *member,
			   const char *text);
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

/* --- lists, from their first page to their last */

struct client;

/*
 * item is borrowed; time is now by the server's clock, Unix seconds or NaN, and held how many
 * seconds ago it wrote the item. False leaves the item out of -o json.
 */
typedef bool list_item(void *context, const cJSON *item, double time, double held);

/* What was received so far, for -o json. */
struct list {
	list_item *item;
	/* Called for each page, before its items, with all of it; may be NULL. */
	void (*envelope)(void *context, const cJSON *page);
	void *context;
	struct buf page; /* the newest page, as it came */
	struct buf items; /* all items that were kept */
	double held; /* seconds since the newest page came from the server */
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

#endif
