/* SPDX-License-Identifier: Apache-2.0 */
/*
 * -o json shows the server's objects unchanged, so lists that arrive in pages, or of which only
 * some items are wanted, are put together from the bytes of the items, not printed anew: a number
 * never changes its form. The scanner below knows just enough of JSON for that: strings, escapes
 * and nesting.
 *
 * Each page is parsed for the table and thrown away, so a large cluster costs one page's objects at
 * a time; the bytes of the items are kept for -o json. The last page's envelope is the one without
 * a "continue", hence right for the whole.
 */
#include "aggregator/cli/pages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

/* --- raw items -------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

/* p is after the opening quote; the result is after the closing one, or end. */
static const char *skip_string(const char *p, const char *end)
{
	for (; p < end && *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p < end ? p + 1 : end;
}

/* Past one value: up to the comma or bracket that follows it at its own level. */
static const char *skip_value(const char *p, const char *end)
{
	size_t depth = 0;

	while (p < end) {
		if (*p == '"') {
			p = skip_string(p + 1, end);
			continue;
		}
		if (depth == 0 && (*p == ',' || *p == ']' || *p == '}'))
			break;
		if (*p == '[' || *p == '{')
			depth++;
		if (*p == ']' || *p == '}')
			depth--;
		p++;
	}
	return p;
}

bool document_find_items(const char *text, size_t len, struct span *items)
{
	static const char name[] = "items\"";
	const char *end = text + len, *p = skip_blanks(text, end);

	if (p == end || *p != '{')
		return false;
	for (p++;; p++) {
		const char *key = skip_blanks(p, end), *value;
		bool found;

		if (key == end || *key != '"')
			return false;
		value = skip_string(key + 1, end);
		found = (size_t)(value - key - 1) == strlen(name) &&
			memcmp(key + 1, name, strlen(name)) == 0;
		value = skip_blanks(value, end);
		if (value == end || *value != ':')
			return false;
		value = skip_blanks(value + 1, end);
		p = skip_value(value, end);
		if (found && value < end && *value == '[') {
			/* Blanks may stand between the closing bracket and p. */
			while (p > value + 1 && p[-1] != ']')
				p--;
			if (p == value + 1)
				return false;
			*items = (struct span){value + 1, (size_t)(p - value - 2)};
			return true;
		}
		if (p == end || *p != ',')
			return false;
	}
}

bool document_next_item(struct span *items, struct span *item)
{
	const char *end = items->start + items->len;
	const char *start = skip_blanks(items->start, end), *stop = skip_value(start, end);
	const char *next = stop < end ? stop + 1 : end;

	if (start == end)
		return false;
	while (stop > start && strchr(" \t\r\n", stop[-1]))
		stop--;
	*item = (struct span){start, (size_t)(stop - start)};
	*items = (struct span){next, (size_t)(end - next)};
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
	free(l->more);
}

static void keep_item(struct list *l, struct span raw)
{
	if (l->items.len)
		buf_add_char(&l->items, ',');
	buf_add(&l->items, raw.start, raw.len);
}

static void set_more(struct list *l, const cJSON *doc)
{
	const char *token = document_text(doc, "continue");

	free(l->more);
	l->more = token && token[0] ? mem_strdup(token) : NULL;
}

int list_read_page(struct list *l, struct error *reason)
{
	cJSON *doc = cJSON_ParseWithLength(l->page.data ? l->page.data : "", l->page.len);
	const cJSON *items = document_at(doc, "items"), *item;
	double time = document_time(doc, "time") + l->held;
	struct span left, raw;

	if (!cJSON_IsArray(items) || !document_find_items(l->page.data, l->page.len, &left)) {
		cJSON_Delete(doc);
		error_set(reason, "the answer is not a JSON list; is that an evenkeel-aggregator?");
		return -EINVAL;
	}
	if (l->envelope)
		l->envelope(l->context, doc);
	for (item = document_first(items, ""); item; item = item->next) {
		bool there = document_next_item(&left, &raw);

		if (!l->item(l->context, item, time, l->held))
			l->dropped++;
		else if (there)
			keep_item(l, raw);
	}
	l->pages++;
	set_more(l, doc);
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
