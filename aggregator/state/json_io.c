/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking members out makes reading as strict as it is cheap: members in the order they were written
 * in are always the first of what is left, and what nobody took is found without a mark. cJSON
 * holds numbers as doubles, so whole numbers beyond 2^53 travel as strings of digits, as in the
 * JSON form of protocol buffers.
 */
#include "aggregator/state/json_io.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/timefmt.h"

void json_io_read(struct json_io *io, cJSON *item, struct error *reason)
{
	*io = (struct json_io){.at = item, .taken = cJSON_CreateArray(), .error = reason};
	cJSON_AddItemToArray(io->taken, item);
	if (!cJSON_IsObject(item)) {
		error_set(reason, "must be an object");
		io->bad = true;
	}
}

void json_io_write(struct json_io *io, struct jsonw *out, bool answer)
{
	*io = (struct json_io){.out = out, .answer = answer};
}

void json_io_end(struct json_io *io)
{
	cJSON_Delete(io->taken);
	io->taken = NULL;
}

/* Appends to the path; what does not fit is cut. */
__attribute__((format(printf, 2, 3))) static void add_path(struct json_io *io, const char *format,
							   ...)
{
	char *end = io->path + io->path_len;

	MEM_FORMAT(end, sizeof(io->path) - io->path_len, format);
	io->path_len += strlen(end);
}

static void add_member(struct json_io *io, const char *key)
{
	add_path(io, "%s%.64s", io->path_len ? "." : "", key);
}

void json_io_fail(struct json_io *io, const char *key, const char *format, ...)
{
	char text[256];

	if (io->bad)
		return;
	MEM_FORMAT(text, sizeof(text), format);
	add_member(io, key);
	error_set(io->error, "%s", text);
	io->bad = true;
}

void json_io_note_aside(struct json_io *io, const char *why)
{
	if (!io->aside[0])
		snprintf(io->aside, sizeof(io->aside), "%.180s: %s", io->path, why);
}

static cJSON *find(const struct json_io *io, const char *key)
{
	return io->bad ? NULL : cJSON_GetObjectItemCaseSensitive(io->at, key);
}

/*
 * Out of the object, so that it is known to be read. NULL: not there, which is an error where it is
 * required.
 */
static cJSON *take(struct json_io *io, const char *key, bool required)
{
	cJSON *item = find(io, key);

	if (!item) {
		if (required)
			json_io_fail(io, key, "is missing");
		return NULL;
	}
	cJSON_DetachItemViaPointer(io->at, item);
	cJSON_AddItemToArray(io->taken, item);
	return item;
}

void json_io_finish(struct json_io *io)
{
	if (!io->out && !io->bad && io->at->child)
		json_io_fail(io, io->at->child->string, "is unknown here, or stands twice");
}

bool json_io_has(const struct json_io *io, const char *key, bool present)
{
	return io->out ? present : find(io, key) != NULL;
}

/* --- nesting ---------------------------------------------------------------------------------- */

bool json_io_enter(struct json_io *io, const char *key, bool present, struct json_io_level *level)
{
	cJSON *item;

	if (io->out) {
		if (present) {
			jsonw_key_object(io->out, key);
		}
		return present;
	}
	item = take(io, key, false);
	if (!item)
		return false;
	if (!cJSON_IsObject(item)) {
		json_io_fail(io, key, "must be an object");
		return false;
	}
	*level = (struct json_io_level){io->at, io->path_len};
	io->at = item;
	add_member(io, key);
	return true;
}

bool json_io_into(struct json_io *io, const char *key, struct json_io_level *level)
{
	if (!io->out && !find(io, key))
		json_io_fail(io, key, "is missing");
	return json_io_enter(io, key, true, level);
}

static void restore(struct json_io *io, const struct json_io_level *level)
{
	if (io->bad)
		return;
	io->at = level->at;
	io->path_len = level->path_len;
	io->path[io->path_len] = '\0';
}

void json_io_leave(struct json_io *io, const struct json_io_level *level)
{
	if (io->out) {
		jsonw_object_close(io->out);
		return;
	}
	json_io_finish(io);
	restore(io, level);
}

bool json_io_list(struct json_io *io, const char *key, size_t *count, size_t most,
		  struct json_io_level *level)
{
	cJSON *item;

	if (io->out) {
		if (*count) {
			jsonw_key_array(io->out, key);
		}
		return *count > 0;
	}
	*count = 0;
	item = take(io, key, false);
	if (!item)
		return false;
	if (!cJSON_IsArray(item)) {
		json_io_fail(io, key, "must be a list");
		return false;
	}
	if ((size_t)cJSON_GetArraySize(item) > most) {
		json_io_fail(io, key, "has more than %zu items", most);
		return false;
	}
	*count = (size_t)cJSON_GetArraySize(item);
	*level = (struct json_io_level){io->at, io->path_len};
	io->at = item;
	add_member(io, key);
	return true;
}

void json_io_item(struct json_io *io, size_t index, struct json_io_level *level)
{
	cJSON *item;

	if (io->out) {
		jsonw_object_open(io->out);
		return;
	}
	*level = (struct json_io_level){io->at, io->path_len};
	if (io->bad)
		return;
	item = cJSON_DetachItemViaPointer(io->at, io->at->child);
	cJSON_AddItemToArray(io->taken, item);
	add_path(io, "[%zu]", index);
	io->at = item;
	if (!cJSON_IsObject(item)) {
		error_set(io->error, "must be an object");
		io->bad = true;
	}
}

void json_io_list_leave(struct json_io *io, const struct json_io_level *level)
{
	if (io->out)
		jsonw_array_close(io->out);
	else
		restore(io, level);
}

/* --- numbers ---------------------------------------------------------------------------------- */

bool json_io_known(struct json_io *io, const char *key, bool known)
{
	if (!io->out)
		known = !cJSON_IsNull(find(io, key));
	if (!known && io->out)
		jsonw_key_null(io->out, key);
	else if (!known)
		take(io, key, true);
	return known;
}

static void write_number(struct json_io *io, double value, bool single, int decimals)
{
	if (io->answer)
		jsonw_fixed(io->out, value, decimals);
	else if (single)
		jsonw_exact_float(io->out, (float)value);
	else
		jsonw_exact(io->out, value);
}

static void read_number(struct json_io *io, const char *key, const cJSON *item, double *value)
{
	if (!item)
		return;
	if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
		json_io_fail(io, key, "must be a number");
	else
		*value = item->valuedouble;
}

void json_io_double(struct json_io *io, const char *key, double *value, int decimals)
{
	if (!io->out) {
		read_number(io, key, take(io, key, true), value);
		return;
	}
	jsonw_key(io->out, key);
	write_number(io, *value, io->single, decimals);
}

void json_io_double_or_nan(struct json_io *io, const char *key, double *value, int decimals)
{
	if (json_io_known(io, key, !isnan(*value)))
		json_io_double(io, key, value, decimals);
	else
		*value = NAN;
}

/* A value beyond the range of float is an error. */
static void read_float(struct json_io *io, const char *key, const cJSON *item, float *value)
{
	double wide = (double)*value;

	read_number(io, key, item, &wide);
	if (isfinite(wide) && !isfinite((float)wide))
		json_io_fail(io, key, "is too large");
	else
		*value = (float)wide;
}

void json_io_float(struct json_io *io, const char *key, float *value, int decimals)
{
	if (!io->out) {
		read_float(io, key, take(io, key, true), value);
		return;
	}
	jsonw_key(io->out, key);
	write_number(io, (double)*value, true, decimals);
}

void json_io_floats(struct json_io *io, const char *key, float *values, size_t count, int decimals)
{
	const cJSON *list;

	if (io->out) {
		jsonw_key_array(io->out, key);
		for (size_t i = 0; i < count; i++)
			write_number(io, (double)values[i], true, decimals);
		jsonw_array_close(io->out);
		return;
	}
	list = take(io, key, true);
	if (!list)
		return;
	if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != count) {
		json_io_fail(io, key, "must be a list of %zu numbers", count);
		return;
	}
	for (const cJSON *item = list->child; item; item = item->next, values++)
		if (cJSON_IsNull(item))
			*values = NAN;
		else
			read_float(io, key, item, values);
}

void json_io_scaled(struct json_io *io, const char *key, int64_t *ns, int64_t least_ns,
		    double unit_ns, int decimals)
{
	double value = (double)*ns / unit_ns;

	json_io_double(io, key, &value, decimals);
	if (io->out || io->bad)
		return;
	if (value * unit_ns >= (double)least_ns && value * unit_ns < 0x1p63)
		*ns = llround(value * unit_ns);
	else
		json_io_fail(io, key, "is out of range");
}

/* Digits, with a sign in front or without; nothing else. */
static bool read_digits(const char *text, bool *negative, uint64_t *magnitude)
{
	char *end;

	*negative = *text == '-';
	text += *negative;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*magnitude = strtoull(text, &end, 10);
	return !errno && !*end;
}

/* A whole number as a number up to 2^53, or as a string. */
static bool read_whole(struct json_io *io, const char *key, bool *negative, uint64_t *magnitude)
{
	const cJSON *item = take(io, key, true);

	if (!item)
		return false;
	if (cJSON_IsString(item) && read_digits(item->valuestring, negative, magnitude))
		return true;
	if (cJSON_IsNumber(item) && fabs(item->valuedouble) <= (double)JSON_IO_WHOLE_MAX &&
	    item->valuedouble == trunc(item->valuedouble)) {
		*negative = item->valuedouble < 0;
		*magnitude = (uint64_t)fabs(item->valuedouble);
		return true;
	}
	if (cJSON_IsNumber(item) && fabs(item->valuedouble) > (double)JSON_IO_WHOLE_MAX)
		json_io_fail(io, key, "must be a string of digits: it is beyond 2^53");
	else
		json_io_fail(io, key, "must be a whole number");
	return false;
}

static void write_whole(struct json_io *io, const char *key, bool negative, uint64_t magnitude)
{
	char text[32];

	jsonw_key(io->out, key);
	if (magnitude > (uint64_t)JSON_IO_WHOLE_MAX) {
		snprintf(text, sizeof(text), "%s%llu", negative ? "-" : "",
			 (unsigned long long)magnitude);
		jsonw_string(io->out, text);
	} else {
		jsonw_int(io->out, negative ? -(int64_t)magnitude : (int64_t)magnitude);
	}
}

void json_io_i64(struct json_io *io, const char *key, int64_t *value, int64_t least, int64_t most)
{
	uint64_t magnitude;
	bool negative;
	int64_t got;

	if (io->out) {
		magnitude = *value < 0 ? 0 - (uint64_t)*value : (uint64_t)*value;
		write_whole(io, key, *value < 0, magnitude);
		return;
	}
	if (!read_whole(io, key, &negative, &magnitude))
		return;
	got = magnitude > INT64_MAX ? INT64_MAX : (int64_t)magnitude;
	got = negative ? -got : got;
	if (magnitude > INT64_MAX || got < least || got > most)
		json_io_fail(io, key, "must be from %lld to %lld", (long long)least,
			     (long long)most);
	else
		*value = got;
}

void json_io_i64_or_null(struct json_io *io, const char *key, int64_t *value, int64_t none)
{
	if (json_io_known(io, key, *value != none))
		json_io_i64(io, key, value, 0, INT64_MAX);
	else
		*value = none;
}

void json_io_u64(struct json_io *io, const char *key, uint64_t *value, uint64_t most)
{
	uint64_t magnitude;
	bool negative;

	if (io->out)
		write_whole(io, key, false, *value);
	else if (!read_whole(io, key, &negative, &magnitude))
		return;
	else if ((negative && magnitude) || magnitude > most)
		json_io_fail(io, key, "must be from 0 to %llu", (unsigned long long)most);
	else
		*value = magnitude;
}

void json_io_u32(struct json_io *io, const char *key, uint32_t *value, uint32_t most)
{
	uint64_t wide = *value;

	json_io_u64(io, key, &wide, most);
	*value = (uint32_t)wide;
}

/* --- text ------------------------------------------------------------------------------------- */

void json_io_text(struct json_io *io, const char *key, const char **value, size_t most)
{
	const cJSON *item;

	if (io->out) {
		jsonw_key_string(io->out, key, *value);
		return;
	}
	item = take(io, key, true);
	if (!item)
		return;
	if (!cJSON_IsString(item) || !item->valuestring[0])
		json_io_fail(io, key, "must be a text");
	else if (strlen(item->valuestring) > most)
		json_io_fail(io, key, "is longer than %zu bytes", most);
	else
		*value = item->valuestring;
}

void json_io_time(struct json_io *io, const char *key, int64_t *unix_ns)
{
	const char *got = NULL;
	int64_t ns;

	if (io->out && io->answer)
		jsonw_key_time(io->out, key, *unix_ns);
	else if (io->out)
		jsonw_key_time_exact(io->out, key, *unix_ns);
	else
		json_io_text(io, key, &got, TIMEFMT_LEN);
	if (!got)
		return;
	if (timefmt_parse(got, &ns, NULL) || ns < 0)
		json_io_fail(io, key, "\"%s\" is not a time such as 2026-01-31T12:00:00Z", got);
	else
		*unix_ns = ns;
}

void json_io_choice(struct json_io *io, const char *key, int *value, const char *const *names,
		    size_t count)
{
	const char *got = NULL;

	if (io->out) {
		jsonw_key_string(io->out, key, names[*value]);
		return;
	}
	json_io_text(io, key, &got, JSON_IO_FIELD_MAX);
	if (!got)
		return;
	for (size_t i = 0; i < count; i++)
		if (names[i] && strcmp(names[i], got) == 0) {
			*value = (int)i;
			return;
		}
	json_io_fail(io, key, "\"%.64s\" is none of those there are", got);
}

void json_io_hex(struct json_io *io, const char *key, uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	char text[JSON_IO_FIELD_MAX];
	const char *got = NULL;

	if (io->out) {
		for (size_t i = 0; i < len; i++) {
			text[2 * i] = digits[bytes[i] >> 4];
			text[2 * i + 1] = digits[bytes[i] & 15];
		}
		text[2 * len] = '\0';
		jsonw_key_string(io->out, key, text);
		return;
	}
	json_io_text(io, key, &got, JSON_IO_FIELD_MAX);
	if (!got)
		return;
	if (strlen(got) != 2 * len || strspn(got, digits) != 2 * len) {
		json_io_fail(io, key, "must be %zu hexadecimal digits", 2 * len);
		return;
	}
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)((strchr(digits, got[2 * i]) - digits) << 4 |
				     (strchr(digits, got[2 * i + 1]) - digits));
}
