/* SPDX-License-Identifier: Apache-2.0 */
/*
 * -o json shows the server's objects unchanged, so lists that arrive in pages, or of which only
 * some items are wanted, are put together from the bytes of the items, not printed anew: a number
 * never changes its form.
 *
 * Each page is parsed for the table and thrown away, so a large cluster costs one page's objects at
 * a time; the bytes of the items are kept for -o json. The last page's envelope is the one without
 * a "continue", hence right for the whole.
 */
#include "aggregator/cli/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/snapshot_text.h"
#include "aggregator/cli/client.h"
#include "shared/mem.h"

/* --- raw items -------------------------------------------------------------------------------- */

bool document_find_items(const char *text, size_t len, struct span *items)
{
	struct error error;
	struct snapshot_text t = {"", text, text, text + len, &error};
	char key[SNAPSHOT_KEY_MAX];
	bool first = true;

	if (snapshot_text_open(&t, '{'))
		return false;
	while (snapshot_text_member(&t, &first, key) == 1) {
		struct snapshot_text value = t;
		const char *end;

		if (snapshot_text_skip(&t))
			return false;
		if (strcmp(key, "items") != 0 || snapshot_text_open(&value, '['))
			continue;
		/* Blanks may stand behind the closing bracket. */
		for (end = t.at; end > value.at && end[-1] != ']'; end--)
			;
		if (end == value.at)
			return false;
		*items = (struct span){value.at, (size_t)(end - value.at) - 1};
		return true;
	}
	return false;
}

bool document_next_item(struct span *items, struct span *item)
{
	const char *end = items->start + items->len, *start, *stop;
	struct error error;
	struct snapshot_text t = {"", items->start, items->start, end, &error};

	if (!snapshot_text_more(&t))
		return false;
	start = t.at;
	snapshot_text_skip(&t); /* that nothing follows the last one is no error here */
	for (stop = t.at; stop > start && strchr(" \t\r\n", stop[-1]); stop--)
		;
	t.at += t.at < end;
	*item = (struct span){start, (size_t)(stop - start)};
	*items = (struct span){t.at, (size_t)(end - t.at)};
	return true;
}

/* --- lists ------------------------------------------------------------------------------------ */

void list_init(struct list *l, list_item *item, void *context)
{
	*l = (struct list){.item = item, .context = context};
}

void list_fini(struct list *l)
{
	buf_fini(&l->page);
	buf_fini(&l->items);
	cJSON_Delete(l->total);
	free(l->more);
}

int list_read_page(struct list *l, struct error *reason)
{
	cJSON *doc = cJSON_ParseWithLength(l->page.data ? l->page.data : "", l->page.len);
	const cJSON *items = document_at(doc, "items"), *item;
	struct span left, raw;
	const char *token;

	if (!cJSON_IsArray(items) || !document_find_items(l->page.data, l->page.len, &left)) {
		cJSON_Delete(doc);
		return error_fail(reason, -EINVAL,
				  "the answer is not a JSON list; is that an evenkeel-aggregator?");
	}
	l->time = document_time(doc, "time") + l->held;
	if (!l->pages++)
		l->total = cJSON_DetachItemFromObjectCaseSensitive(doc, "total");
	for (item = document_first(items, ""); item; item = item->next) {
		bool there = document_next_item(&left, &raw);

		if (!l->item(l, item)) {
			l->dropped++;
		} else if (there) {
			buf_add_str(&l->items, l->items.len ? "," : "");
			buf_add(&l->items, raw.start, raw.len);
		}
	}
	token = document_text(doc, "continue");
	free(l->more);
	l->more = token && token[0] ? mem_strdup(token) : NULL;
	cJSON_Delete(doc);
	return 0;
}

int list_fetch(struct list *l, struct client *client, const char *path, struct error *reason)
{
	struct buf next = BUF_INIT;
	int rc;

	buf_add_str(&next, path);
	do {
		rc = client_get(client, next.data, &l->page, reason);
		l->held = client_body_age(client);
		if (rc == 0) {
			rc = list_read_page(l, reason);
			if (rc)
				error_prefix(reason, "%s%s", client_server(client), next.data);
		}
		buf_clear(&next);
		if (rc == 0 && l->more) {
			buf_add_str(&next, path);
			client_add_parameter(&next, "continue", l->more);
		}
	} while (next.len);
	buf_fini(&next);
	return rc;
}

void list_print_json(const struct list *l, struct buf *out)
{
	struct span items;

	if (l->pages > 1 || l->dropped) {
		if (!document_find_items(l->page.data, l->page.len, &items))
			return;
		buf_add(out, l->page.data, (size_t)(items.start - l->page.data));
		buf_add(out, l->items.data, l->items.len);
		buf_add(out, items.start + items.len,
			l->page.len - (size_t)(items.start + items.len - l->page.data));
	} else {
		buf_add(out, l->page.data, l->page.len);
	}
	if (!out->len || out->data[out->len - 1] != '\n')
		buf_add_char(out, '\n');
}
