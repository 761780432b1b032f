/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers have thousands of numbers; printing a tree takes twenty times longer.
 *
 * One flag says whether the next value at this level needs a comma. Opening a level and writing a
 * key clear it, every finished value or level sets it, so no stack is needed. The caller opens and
 * closes in pairs. Numbers without JSON notation become null and invalid UTF-8 is repaired, so the
 * output always parses.
 *
 * Strings are checked for special characters in blocks of 16 bytes: an item of a list with two
 * names and three numbers takes 165 ns instead of 205.
 */
#include "shared/jsonw.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "shared/timefmt.h"
#include "shared/utf8.h"

static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */

void jsonw_init(struct jsonw *w, struct buf *out)
{
	w->out = out;
	w->comma = false;
}

static void begin_value(struct jsonw *w)
{
	if (w->comma)
		buf_add_char(w->out, ',');
	w->comma = true;
}

static void open_level(struct jsonw *w, char bracket)
{
	begin_value(w);
	buf_add_char(w->out, bracket);
	w->comma = false;
}

static void close_level(struct jsonw *w, char bracket)
{
	buf_add_char(w->out, bracket);
	w->comma = true;
}

void jsonw_object_open(struct jsonw *w)
{
	open_level(w, '{');
}

void jsonw_object_close(struct jsonw *w)
{
	close_level(w, '}');
}

void jsonw_array_open(struct jsonw *w)
{
	open_level(w, '[');
}

void jsonw_array_close(struct jsonw *w)
{
	close_level(w, ']');
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

typedef signed char block __attribute__((vector_size(16)));

/* Whether each byte of a block is plain; bytes above 0x7f are negative. */
static bool are_plain(const char *p)
{
	block bytes;
	uint64_t halves[2];

	memcpy(&bytes, p, sizeof(bytes));
	bytes = (bytes < 0x20) | (bytes == '"') | (bytes == '\\');
	memcpy(halves, &bytes, sizeof(halves));
	return !(halves[0] | halves[1]);
}

/* The same for texts of at least half a block. */
static bool all_plain(const char *text, size_t len)
{
	size_t i = 0;

	if (len < sizeof(block)) {
		enum { HALF = sizeof(block) / 2 };
		char both[sizeof(block)];

		/* The same for half a block to a block: the halves overlap. */
		memcpy(both, text, HALF);
		memcpy(both + HALF, text + len - HALF, HALF);
		return are_plain(both);
	}
	while (i + sizeof(block) <= len && are_plain(text + i))
		i += sizeof(block);
	/* The last block overlaps the one before. */
	return i + sizeof(block) > len && are_plain(text + len - sizeof(block));
}

/* The number of plain bytes at the start, nearly always all. */
static size_t plain_length(const char *text, size_t len)
{
	size_t i = 0;

	if (len >= sizeof(block) / 2 && all_plain(text, len))
		return len;
	while (i + sizeof(block) <= len && are_plain(text + i))
		i += sizeof(block);
	while (i < len && is_plain((unsigned char)text[i]))
		i++;
	return i;
}

/* Writes the special character at p; returns its length in the input. */
static size_t add_special(struct buf *out, const char *p)
{
	size_t len;

	if ((unsigned char)*p < 0x80) {
		if (*p < 0x20)
			buf_printf(out, "\\u%04x", *p);
		else
			buf_add(out, *p == '"' ? "\\\"" : "\\\\", 2);
		return 1;
	}
	len = utf8_length(p);
	if (len)
		buf_add(out, p, len);
	else
		buf_add(out, REPLACEMENT, sizeof(REPLACEMENT) - 1);
	return len ? len : 1;
}

static void add_quoted(struct buf *out, const char *text, size_t len)
{
	size_t plain = plain_length(text, len);
	const char *end = text + len;
	char *to = buf_reserve(out, len + 2);

	*to = '"';
	memcpy(to + 1, text, plain);
	out->len += plain + 1;
	for (text += plain; text < end; text += plain) {
		text += add_special(out, text);
		plain = plain_length(text, (size_t)(end - text));
		buf_add(out, text, plain);
	}
	buf_add_char(out, '"');
}

void jsonw_key(struct jsonw *w, const char *key)
{
	begin_value(w);
	add_quoted(w->out, key, strlen(key));
	buf_add_char(w->out, ':');
	w->comma = false;
}

void jsonw_string(struct jsonw *w, const char *text)
{
	if (!text) {
		jsonw_null(w);
		return;
	}
	jsonw_text(w, text, strlen(text));
}

void jsonw_text(struct jsonw *w, const char *text, size_t len)
{
	begin_value(w);
	add_quoted(w->out, text, len);
}

/* Decimal digits of value before end; returns their begin. */
static char *digits_before(char *end, uint64_t value)
{
	do {
		*--end = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return end;
}

static void add_integer(struct buf *out, bool negative, uint64_t magnitude)
{
	char text[24];
	char *end = text + sizeof(text);
	char *start = digits_before(end, magnitude);

	if (negative)
		*--start = '-';
	buf_add(out, start, (size_t)(end - start));
}

void jsonw_int(struct jsonw *w, int64_t value)
{
	begin_value(w);
	add_integer(w->out, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void jsonw_uint(struct jsonw *w, uint64_t value)
{
	begin_value(w);
	add_integer(w->out, false, value);
}

/* scaled / 10^decimals, trailing zeros cut. */
static void add_scaled(struct buf *out, bool negative, uint64_t scaled, int decimals)
{
	char text[32];
	char *end = text + sizeof(text);
	char *start = end;

	while (decimals && scaled % 10 == 0) {
		scaled /= 10;
		decimals--;
	}
	if (decimals) {
		for (; decimals; decimals--, scaled /= 10)
			*--start = (char)('0' + scaled % 10);
		*--start = '.';
	}
	start = digits_before(start, scaled);
	if (negative)
		*--start = '-';
	buf_add(out, start, (size_t)(end - start));
}

void jsonw_fixed(struct jsonw *w, double value, int decimals)
{
	static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
	double scaled;

	assert(decimals >= 0 && decimals <= 9);
	if (!isfinite(value)) {
		jsonw_null(w);
		return;
	}
	begin_value(w);
	/* Beyond 2^53 a double has no such decimals. */
	while ((scaled = round(fabs(value) * power[decimals])) >= 0x1p53 && decimals)
		decimals--;
	if (scaled < 0x1p53)
		add_scaled(w->out, value < 0 && scaled > 0, (uint64_t)scaled, decimals);
	else
		buf_printf(w->out, "%.0f", value);
}

void jsonw_exact(struct jsonw *w, double value)
{
	if (!isfinite(value)) {
		jsonw_null(w);
		return;
	}
	begin_value(w);
	buf_printf(w->out, "%.17g", value);
}

void jsonw_exact_float(struct jsonw *w, float value)
{
	if (!isfinite(value)) {
		jsonw_null(w);
		return;
	}
	begin_value(w);
	buf_printf(w->out, "%.9g", (double)value);
}

void jsonw_bool(struct jsonw *w, bool value)
{
	begin_value(w);
	buf_add_str(w->out, value ? "true" : "false");
}

void jsonw_null(struct jsonw *w)
{
	begin_value(w);
	buf_add_str(w->out, "null");
}

struct buf *jsonw_json(struct jsonw *w)
{
	begin_value(w);
	return w->out;
}

void jsonw_key_string(struct jsonw *w, const char *key, const char *text)
{
	jsonw_key(w, key);
	jsonw_string(w, text);
}

void jsonw_key_text(struct jsonw *w, const char *key, const char *text)
{
	if (text && *text)
		jsonw_key_string(w, key, text);
}

void jsonw_key_hex(struct jsonw *w, const char *key, uint64_t value)
{
	jsonw_key(w, key);
	buf_printf(jsonw_json(w), "\"%016llx\"", (unsigned long long)value);
}

void jsonw_key_uint(struct jsonw *w, const char *key, uint64_t value)
{
	jsonw_key(w, key);
	jsonw_uint(w, value);
}

void jsonw_key_int(struct jsonw *w, const char *key, int64_t value)
{
	jsonw_key(w, key);
	jsonw_int(w, value);
}

void jsonw_key_fixed(struct jsonw *w, const char *key, double value, int decimals)
{
	jsonw_key(w, key);
	jsonw_fixed(w, value, decimals);
}

void jsonw_key_known(struct jsonw *w, const char *key, double value, int decimals)
{
	if (isfinite(value))
		jsonw_key_fixed(w, key, value, decimals);
}

void jsonw_key_bool(struct jsonw *w, const char *key, bool value)
{
	jsonw_key(w, key);
	jsonw_bool(w, value);
}

void jsonw_key_true(struct jsonw *w, const char *key, bool holds)
{
	if (holds)
		jsonw_key_bool(w, key, true);
}

void jsonw_key_null(struct jsonw *w, const char *key)
{
	jsonw_key(w, key);
	jsonw_null(w);
}

void jsonw_key_time(struct jsonw *w, const char *key, int64_t unix_ns)
{
	char text[TIMEFMT_LEN];

	timefmt_rfc3339(unix_ns, text);
	jsonw_key_string(w, key, text);
}

void jsonw_key_time_exact(struct jsonw *w, const char *key, int64_t unix_ns)
{
	char text[TIMEFMT_LEN];

	timefmt_rfc3339_exact(unix_ns, text);
	jsonw_key_string(w, key, text);
}
