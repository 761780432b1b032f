/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/utf8.h"

#include <stdint.h>

size_t utf8_length(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;
	unsigned char low = 0x80, high = 0xBF;
	size_t len;

	if (b[0] < 0x80)
		return 1;
	if (b[0] >= 0xC2 && b[0] <= 0xDF) {
		len = 2;
	} else if (b[0] >= 0xE0 && b[0] <= 0xEF) {
		len = 3;
		low = b[0] == 0xE0 ? 0xA0 : 0x80;
		high = b[0] == 0xED ? 0x9F : 0xBF;
	} else if (b[0] >= 0xF0 && b[0] <= 0xF4) {
		len = 4;
		low = b[0] == 0xF0 ? 0x90 : 0x80;
		high = b[0] == 0xF4 ? 0x8F : 0xBF;
	} else {
		return 0;
	}
	if (b[1] < low || b[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((b[i] & 0xC0) != 0x80)
			return 0;
	return len;
}

bool utf8_is_valid(const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		/* The longest sequence and a NUL. */
		char ahead[5] = {0};
		size_t step;

		if ((unsigned char)*text < 0x80) {
			text++;
			continue;
		}
		memcpy(ahead, text, (size_t)(end - text) < 4 ? (size_t)(end - text) : 4);
		step = utf8_length(ahead);
		if (!step)
			return false;
		text += step;
	}
	return true;
}

/* --- for terminals ---------------------------------------------------------------------------- */

/* Cc, Zl, Zp and Default_Ignorable_Code_Point of Unicode 16, and U+FFF9..B; sorted. */
static const struct range {
	uint32_t first, last;
} unclean[] = {
	{0x0, 0x1F},	    {0x7F, 0x9F},	{0xAD, 0xAD},	    {0x34F, 0x34F},
	{0x61C, 0x61C},	    {0x115F, 0x1160},	{0x17B4, 0x17B5},   {0x180B, 0x180F},
	{0x200B, 0x200F},   {0x2028, 0x202E},	{0x2060, 0x206F},   {0x3164, 0x3164},
	{0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},	{0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},
	{0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

static bool is_unclean(uint32_t code)
{
	for (size_t i = 0; i < sizeof(unclean) / sizeof(unclean[0]); i++)
		if (code <= unclean[i].last)
			return code >= unclean[i].first;
	return false;
}

/* Decodes a well-formed sequence. */
static uint32_t code_of(const char *p, size_t len)
{
	static const unsigned char heads[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
	uint32_t code = (unsigned char)*p & heads[len];

	for (size_t i = 1; i < len; i++)
		code = code << 6 | ((unsigned char)p[i] & 0x3F);
	return code;
}

enum { NOT_UTF8 = 0xFFFD };

/* Whether the character at p, of *len bytes, is safe. */
static bool is_clean_at(const char *p, size_t *len, uint32_t *code)
{
	*len = utf8_length(p);
	*code = *len ? code_of(p, *len) : NOT_UTF8;
	if (*len)
		return !is_unclean(*code);
	*len = 1;
	return false;
}

bool utf8_is_clean(const char *text)
{
	uint32_t code;

	for (size_t len; *text; text += len)
		if (!is_clean_at(text, &len, &code))
			return false;
	return true;
}

void utf8_replace_controls(char *text, char by)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = by;
}

void utf8_clean(char *text)
{
	char *to = text;
	uint32_t code;

	for (size_t len; *text; text += len) {
		if (is_clean_at(text, &len, &code))
			to = (char *)memmove(to, text, len) + len;
		else
			*to++ = '?';
	}
	*to = '\0';
}

static void add_escape(struct buf *out, uint32_t code)
{
	if (code > 0xFFFF)
		buf_printf(out, "\\u%04x\\u%04x", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
	else
		buf_printf(out, "\\u%04x", code);
}

void utf8_add_json(struct buf *out, const char *json, size_t len)
{
	const char *end = json + len;
	bool quoted = false;
	uint32_t code;

	for (size_t taken; json < end; json += taken) {
		bool clean = is_clean_at(json, &taken, &code);

		if (quoted && *json == '\\' && json[1] >= ' ' && json[1] < 127)
			taken = 2;
		quoted ^= *json == '"';
		if (clean || (*json == '\n' && !quoted))
			buf_add(out, json, taken);
		else if (quoted)
			add_escape(out, code);
		else
			buf_add_char(out, ' ');
	}
}
