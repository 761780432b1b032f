/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a text with numbers in a fixed buffer: answers have one for every node and plugin, and
 * printf's conversion of doubles would be most of the cost of scoring.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_TEXTBUF_H
#define EVENKEEL_AGGREGATOR_POLICY_TEXTBUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct textbuf {
	char *text; /* borrowed; always terminated, cut when full */
	size_t size, len;
};

static inline void textbuf_start(struct textbuf *s, char *text, size_t size)
{
	s->text = text;
	s->size = size; /* above 0 */
	s->len = 0;
	text[0] = '\0';
}

static inline void textbuf_add_bytes(struct textbuf *s, const char *text, size_t len)
{
	size_t room = s->size - 1 - s->len;

	if (len > room)
		len = room;
	memcpy(s->text + s->len, text, len);
	s->len += len;
	s->text[s->len] = '\0';
}

/*
 * Here, since the compiler knows how long most texts are: where they fit, which they do, copying
 * them takes no call.
 */
static inline void textbuf_add(struct textbuf *s, const char *text)
{
	size_t len = strlen(text);

	if (len > s->size - 1 - s->len) {
		textbuf_add_bytes(s, text, len);
		return;
	}
	memcpy(s->text + s->len, text, len);
	s->len += len;
	s->text[s->len] = '\0';
}

void textbuf_add_int(struct textbuf *s, int64_t value);
/*
 * With 0..9 decimals, rounded half away from zero; "?" for what is not finite, cut at +-1e18 units
 * of the last one.
 */
void textbuf_add_fixed(struct textbuf *s, double value, unsigned int decimals);

#endif
