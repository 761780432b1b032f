/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members find their rows by halving, and are written in the order of the rows; members below a row
 * without a table are sorted here. Of members with the same name the first counts, as it does for
 * readers. A member of which a table leaves nothing is taken back, so that an object with nothing
 * that is kept is the same as none. So the text of a text is the text itself, as long as no row
 * keeps something because of what is not kept.
 *
 * Only bounds (object_bounds.h) can fail: the text ends there. Depth is that of the parser (a
 * thousand levels).
 */
#include "aggregator/model/object_text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_bounds.h"
#include "shared/array.h"
#include "shared/mem.h"

bool object_text_is_nothing(const cJSON *item)
{
	return cJSON_IsNull(item) || (cJSON_IsNumber(item) && !isfinite(item->valuedouble));
}

/* So many need no memory of their own. */
enum { FEW_MEMBERS = 16 };

static const struct object_text_row WHOLE = {.name = ""};

static bool write_value(struct object_text *t, const cJSON *parent, const cJSON *item,
			const struct object_text_row *row);

/* --- bounds */

__attribute__((format(printf, 3, 4))) static void stop(struct object_text *t, const cJSON *item,
						       const char *format, ...)
{

	if (t->beyond)
		return;
	t->beyond = item;
	MEM_FORMAT(t->error.text, sizeof(t->error.text), format);
}

static void bound_key(struct object_text *t, const cJSON *item)
{
	size_t len = strlen(item->string);

	if (len > OBJECT_BOUND_KEY)
		stop(t, item, "its name must not be longer than %d bytes, and has %zu",
		     OBJECT_BOUND_KEY, len);
}

static void bound_string(struct object_text *t, const cJSON *parent, const cJSON *item)
{
	size_t len = strlen(item->valuestring);
	size_t most = object_bound_of_string(parent->string, item->string, len);

	if (most)
		stop(t, item, "must not be longer than %zu bytes, and has %zu", most, len);
}

static void bound_count(struct object_text *t, const cJSON *list, size_t count)
{
	size_t most = object_bound_of_list(list->string, count);

	if (most)
		stop(t, list, "must not have more than %zu elements, and has %zu", most, count);
}

/* --- writing */

static bool is_absent(const struct object_text *t, const cJSON *item)
{
	if (object_text_is_nothing(item))
		return true;
	for (size_t i = 0; i < t->skips; i++)
		if (t->skip[i] == item)
			return true;
	return false;
}

/* The member; it is taken back when a table leaves nothing of it. */
static void write_member(struct object_text *t, const cJSON *parent, const cJSON *item,
			 const struct object_text_row *row)
{
	const struct jsonw before = t->json;
	size_t len = t->json.out->len;

	if (is_absent(t, item))
		return;
	bound_key(t, item);
	jsonw_key(&t->json, item->string);
	if (write_value(t, parent, item, row))
		return;
	t->json = before;
	t->json.out->len = len;
}

static size_t count_rows(const struct object_text_row *table)
{
	size_t count = 0;

	for (; table[count].name; count++)
		assert(count == 0 || strcmp(table[count - 1].name, table[count].name) < 0);
	assert(count <= OBJECT_TEXT_ROWS_MAX);
	return count;
}

/* The members of an object that a table keeps. */
void object_text_members(struct object_text *t, const cJSON *object,
			 const struct object_text_row *table)
{
	const cJSON *items[OBJECT_TEXT_ROWS_MAX] = {NULL};
	size_t count = count_rows(table);

	for (const cJSON *item = object->child; item; item = item->next) {
		bool found;
		size_t row = array_find_name(table, count, sizeof(*table), item->string, &found);

		if (found && !items[row])
			items[row] = item;
	}
	for (size_t row = 0; row < count; row++)
		if (items[row])
			write_member(t, object, items[row], &table[row]);
}

static void write_members(struct object_text *t, const cJSON *object,
			  bool (*pick)(const char *name))
{
	size_t count = (size_t)cJSON_GetArraySize(object), used = 0;
	struct object_member few[FEW_MEMBERS];
	struct object_member *members =
		count <= FEW_MEMBERS ? few : mem_zalloc(count, sizeof(*members));

	for (const cJSON *item = object->child; item; item = item->next)
		if (!pick || pick(item->string)) {
			members[used] = (struct object_member){item, used};
			used++;
		}
	bound_count(t, object, used);
	used = object_members_sort(members, used);
	for (size_t i = 0; i < used && !t->beyond; i++)
		write_member(t, object, members[i].item, &WHOLE);
	if (members != few)
		free(members);
}

static bool write_object(struct object_text *t, const cJSON *object,
			 const struct object_text_row *row)
{
	bool whole = !row->below && !row->member; /* is kept when it is empty, too */
	size_t start;
	bool any;

	jsonw_object_open(&t->json);
	start = t->json.out->len;
	if (row->below)
		object_text_members(t, object, row->below);
	else
		write_members(t, object, row->member);
	any = t->json.out->len > start;
	jsonw_object_close(&t->json);
	return any || whole;
}

/*
 * An element of which a table leaves nothing stays as {}: there are as many containers as there
 * were.
 */
static bool write_array(struct object_text *t, const cJSON *array,
			const struct object_text_row *row)
{
	size_t count = 0;

	jsonw_array_open(&t->json);
	for (const cJSON *item = array->child; item; item = item->next) {
		if (row->element && !row->element(item))
			continue;
		write_value(t, array, item, row);
		count++;
	}
	jsonw_array_close(&t->json);
	bound_count(t, array, count);
	return count || !row->element;
}

static void write_number(struct object_text *t, double value)
{
	char text[32];

	object_json_number(value, text);
	buf_add_str(jsonw_json(&t->json), text);
}

/* False when a table leaves nothing of it. */
static bool write_value(struct object_text *t, const cJSON *parent, const cJSON *item,
			const struct object_text_row *row)
{
	if (t->json.out->len > t->most)
		stop(t, item, "what is kept of the object must not be longer than %zu bytes",
		     t->most);
	if (t->beyond)
		return true;
	switch (item->type & 0xff) {
	case cJSON_Object:
		return write_object(t, item, row);
	case cJSON_Array:
		return write_array(t, item, row);
	case cJSON_String:
		bound_string(t, parent, item);
		jsonw_string(&t->json, item->valuestring);
		return true;
	case cJSON_Number:
		if (object_text_is_nothing(item))
			jsonw_null(&t->json);
		else
			write_number(t, item->valuedouble);
		return true;
	case cJSON_True:
	case cJSON_False:
		jsonw_bool(&t->json, cJSON_IsTrue(item));
		return true;
	default:
		jsonw_null(&t->json);
		return true;
	}
}

void object_text_init(struct object_text *t, struct buf *out, size_t most)
{
	jsonw_init(&t->json, out);
	t->skips = 0;
	t->most = most;
	t->beyond = NULL;
}

/* Whether it was below, and the error is said. */
static bool fail_below(const struct object_text *t,
		       const struct object_json *of) /* NOLINT(misc-no-recursion) */
{
	for (struct object_json here = object_json_begin(of); here.json; object_json_next(&here)) {
		if (here.json == t->beyond)
			object_json_fail(&here, NULL, "%s", t->error.text);
		if (here.json == t->beyond || fail_below(t, &here))
			return true;
	}
	return false;
}

void object_text_end(const struct object_text *t, const struct object_json *whole)
{
	if (t->beyond)
		fail_below(t, whole);
}

void object_text_object(struct object_text *t, const cJSON *object,
			const struct object_text_row *table)
{
	jsonw_object_open(&t->json);
	object_text_members(t, object, table);
	jsonw_object_close(&t->json);
}
