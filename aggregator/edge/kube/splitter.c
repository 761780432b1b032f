/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of 150,000 pods is half a gigabyte, so no document is made of it. The splitter finds the
 * bounds of each item and passes its bytes on in place; only an item across two chunks is copied.
 *
 * A list is a state machine over its outermost object. Inside a value only strings and brackets
 * count:
 *
 *	START '{' KEY string COLON ':' MEMBER value NEXT_MEMBER ',' KEY ..            '}' END
 *	                                 | "items": '['                ^
 *	                                 v                             | ']'
 *	                                ITEM value NEXT_ITEM ',' ITEM .. NEXT_ITEM
 *
 * The parser of a value judges its content. A watch is lines: the API server ends each event with a
 * newline and has none inside.
 *
 * Bounds: an object of `most` bytes or more is skipped and counted, and the next is found all the
 * same; a member of the list itself has at most MEMBER_MAX bytes. Nothing recurses.
 */
#include "aggregator/edge/kube/splitter.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

enum {
	MEMBER_MAX = 64 << 10,
	HELD_KEPT = 1 << 20, /* storage kept for the next object */
};

enum state { START, KEY, COLON, MEMBER, NEXT_MEMBER, ITEM, NEXT_ITEM, END, BROKEN };

enum member { MEMBER_KIND, MEMBER_METADATA, MEMBER_ITEMS, MEMBER_OTHER };

static const char *const member_names[] = {"kind", "metadata", "items"};

/* Structure outside of strings. */
static const bool is_structural[256] = {
	['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true};
static const bool is_space[256] = {[' '] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true};
static const bool ends_scalar[256] = {[' '] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true,
				      [','] = true, ['}'] = true,  [']'] = true};

void splitter_init(struct splitter *s, enum splitter_form form,
		   void (*on_object)(void *ctx, const char *json, size_t len), void *ctx)
{
	*s = (struct splitter){
		.form = form,
		.most = SPLITTER_OBJECT_MAX,
		.on_object = on_object,
		.ctx = ctx,
	};
}

void splitter_fini(struct splitter *s)
{
	buf_fini(&s->held);
	free(s->kind);
	free(s->resource_version);
	free(s->continue_token);
	*s = (struct splitter){.state = BROKEN};
}

/* --- where a value ends ----------------------------------------------------------------------- */

/* Whether the next byte is escaped: an odd number of backslashes precedes it. */
static bool ends_escaping(const char *from, const char *to)
{
	const char *p = to;

	while (p > from && p[-1] == '\\')
		p--;
	return (to - p) % 2 == 1;
}

/* Behind the quote that ends the string, or NULL. A run of backslashes is scanned once. */
static const char *scan_string(struct splitter_scan *s, const char *p, const char *end)
{
	const char *quote;

	p += s->escaped;
	while ((quote = memchr(p, '"', (size_t)(end - p))) != NULL) {
		if (!ends_escaping(p, quote)) {
			s->escaped = false;
			return quote + 1;
		}
		p = quote + 1;
	}
	s->escaped = ends_escaping(p, end);
	return NULL;
}

static const char *scan_scalar(const char *p, const char *end)
{
	while (p < end && !ends_scalar[(uint8_t)*p])
		p++;
	return p < end ? p : NULL;
}

/* Behind the value, or NULL: it continues in the next chunk. */
static const char *scan_value(struct splitter_scan *s, const char *p, const char *end)
{
	if (s->scalar)
		return scan_scalar(p, end);
	for (;;) {
		if (s->in_string) {
			p = scan_string(s, p, end);
			if (!p)
				return NULL;
			s->in_string = false;
			if (!s->depth)
				return p;
		}
		while (p < end && !is_structural[(uint8_t)*p])
			p++;
		if (p == end)
			return NULL;
		switch (*p++) {
		case '"':
			s->in_string = true;
			break;
		case '{':
		case '[':
			s->depth++;
			break;
		default:
			if (--s->depth == 0)
				return p;
		}
	}
}

/* --- keeping what crosses a border ------------------------------------------------------------ */

static void forget_held(struct splitter *s)
{
	if (s->held.cap > HELD_KEPT)
		buf_fini(&s->held);
	buf_clear(&s->held);
}

/* Keeps another part, within the bound. */
static void hold(struct splitter *s, const char *part, size_t len, size_t most)
{
	if (s->dropping)
		return;
	if (s->held.len + len < most) {
		buf_add(&s->held, part, len);
		return;
	}
	s->dropping = true;
	forget_held(s);
}

/* Completes an object with its last part. */
static void give_object(struct splitter *s, const char *part, size_t len)
{
	bool whole = !s->held.len && !s->dropping && len < s->most;

	if (!whole)
		hold(s, part, len, s->most);
	if (s->dropping) {
		s->too_large++;
	} else {
		s->on_object(s->ctx, whole ? part : s->held.data, whole ? len : s->held.len);
	}
	s->dropping = false;
	forget_held(s);
}

/* --- the members of the list ------------------------------------------------------------------ */

static enum member find_member(const char *key, size_t len)
{
	for (size_t i = 0; i < MEMBER_OTHER; i++)
		if (len == strlen(member_names[i]) + 2 &&
		    memcmp(key + 1, member_names[i], len - 2) == 0)
			return (enum member)i;
	return MEMBER_OTHER;
}

static void store_string(char **to, const cJSON *value)
{
	if (!cJSON_IsString(value))
		return;
	free(*to);
	*to = value->valuestring[0] ? mem_strdup(value->valuestring) : NULL;
}

static int store_member(struct splitter *s, enum member member, const char *text, size_t len)
{
	cJSON *value = cJSON_ParseWithLength(text, len);

	if (!value)
		return -EBADMSG;
	if (member == MEMBER_ITEMS)
		s->has_items |= cJSON_IsNull(value);
	else if (member == MEMBER_KIND)
		store_string(&s->kind, value);
	else if (member == MEMBER_METADATA) {
		store_string(&s->resource_version,
			     cJSON_GetObjectItemCaseSensitive(value, "resourceVersion"));
		store_string(&s->continue_token,
			     cJSON_GetObjectItemCaseSensitive(value, "continue"));
	}
	cJSON_Delete(value);
	return 0;
}

/* --- the machine ------------------------------------------------------------------------------ */

/* Completes a key or a member with its last part. */
static const char *end_member(struct splitter *s, const char *part, size_t len)
{
	if (s->held.len || len >= MEMBER_MAX) {
		hold(s, part, len, MEMBER_MAX);
		part = s->held.data;
		len = s->held.len;
	}
	if (s->dropping)
		return "a name or a member is too long";
	if (s->state == KEY) {
		s->member = (uint8_t)find_member(part, len);
		s->state = COLON;
	} else {
		if (store_member(s, s->member, part, len))
			return "a member is no JSON";
		s->state = NEXT_MEMBER;
	}
	forget_held(s);
	return NULL;
}

/* NULL, or the fault of the value. */
static const char *end_value(struct splitter *s, const char *part, size_t len)
{
	s->in_value = false;
	if (s->state == ITEM) {
		s->state = NEXT_ITEM;
		give_object(s, part, len);
		return NULL;
	}
	if (s->state == MEMBER && s->member == MEMBER_OTHER) {
		s->state = NEXT_MEMBER;
		return NULL;
	}
	return end_member(s, part, len);
}

/* Reads on in the value at p. Where to continue, or NULL with the fault. */
static const char *read_value(struct splitter *s, const char *p, const char *end,
			      const char **wrong)
{
	const char *behind = scan_value(&s->scan, p, end);

	if (behind) {
		*wrong = end_value(s, p, (size_t)(behind - p));
		return *wrong ? NULL : behind;
	}
	if (s->state == ITEM)
		hold(s, p, (size_t)(end - p), s->most);
	else if (s->state == KEY || s->member != MEMBER_OTHER)
		hold(s, p, (size_t)(end - p), MEMBER_MAX);
	return end;
}

static const char *begin_value(struct splitter *s, char c)
{
	bool nested = c == '{' || c == '[' || c == '"';

	if (!nested && c != '-' && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z'))
		return "no value";
	s->in_value = true;
	s->scan = (struct splitter_scan){.scalar = !nested};
	return NULL;
}

/* A byte between values; *used: it is consumed. NULL, or the fault. */
static const char *step_between(struct splitter *s, char c, bool *used)
{
	bool first = s->first;

	*used = true;
	s->first = false;
	switch ((enum state)s->state) {
	case START:
		s->state = KEY;
		s->first = true;
		return c == '{' ? NULL : "no object";
	case KEY:
		*used = first && c == '}';
		if (*used)
			s->state = END;
		return *used ? NULL : c == '"' ? begin_value(s, c) : "no name of a member";
	case COLON:
		s->state = MEMBER;
		return c == ':' ? NULL : "no colon";
	case NEXT_MEMBER:
		s->state = c == ',' ? KEY : END;
		return c == ',' || c == '}' ? NULL : "neither a comma nor the end of the object";
	case MEMBER:
		*used = s->member == MEMBER_ITEMS && c == '[';
		if (*used) {
			s->state = ITEM;
			s->has_items = s->first = true;
			return NULL;
		}
		if (s->member == MEMBER_ITEMS && c != 'n')
			return "items are no array";
		return begin_value(s, c);
	case ITEM:
		*used = first && c == ']';
		if (*used)
			s->state = NEXT_MEMBER;
		return *used ? NULL : begin_value(s, c);
	case NEXT_ITEM:
		s->state = c == ',' ? ITEM : NEXT_MEMBER;
		return c == ',' || c == ']' ? NULL : "neither a comma nor the end of the items";
	case END:
	case BROKEN:
		break;
	}
	return "more behind the end";
}

static int fail(struct splitter *s, uint64_t at, const char *wrong, struct error *error)
{
	s->state = BROKEN;
	s->in_value = false;
	return error_fail(error, -EBADMSG, "byte %" PRIu64 " of the list: %s", at + 1, wrong);
}

static int feed_list(struct splitter *s, const char *data, size_t len, struct error *error)
{
	const char *p = data, *end = data + len, *wrong = NULL, *next;
	bool used;

	while (p < end) {
		if (s->in_value) {
			next = read_value(s, p, end, &wrong);
		} else if (is_space[(uint8_t)*p]) {
			next = p + 1;
		} else {
			wrong = step_between(s, *p, &used);
			next = p + used;
		}
		if (wrong)
			return fail(s, s->offset + (uint64_t)(p - data), wrong, error);
		p = next;
	}
	s->offset += len;
	return 0;
}

static void feed_lines(struct splitter *s, const char *data, size_t len)
{
	const char *p = data, *end = data + len, *newline;

	while (p < end) {
		newline = memchr(p, '\n', (size_t)(end - p));
		if (!newline) {
			hold(s, p, (size_t)(end - p), s->most);
			return;
		}
		if (newline > p || s->held.len || s->dropping)
			give_object(s, p, (size_t)(newline - p));
		p = newline + 1;
	}
}

int splitter_feed(struct splitter *s, const char *data, size_t len, struct error *error)
{
	if (s->form == SPLITTER_LIST)
		return feed_list(s, data, len, error);
	feed_lines(s, data, len);
	return 0;
}

int splitter_end(struct splitter *s, struct error *error)
{
	if (s->form == SPLITTER_LINES)
		return 0;
	if (s->state != END)
		return fail(s, s->offset, "the end, too early", error);
	if (!s->has_items)
		return fail(s, s->offset, "it had no items", error);
	return 0;
}
