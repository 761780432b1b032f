/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A field is a tag and a value. A tag is the field's number times eight plus a wire type: 0 a
 * varint (seven bits per byte, lowest first), 1 eight bytes, 2 a length and so many bytes, 5 four
 * bytes, lowest first. https://protobuf.dev/programming-guides/encoding
 */
#include "shared/message.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { WIRE_VARINT, WIRE_8_BYTES, WIRE_BYTES, WIRE_4_BYTES = 5 };

enum { VARINT_MAX = 10 }; /* bytes of 64 bits */

/* --- decoding --------------------------------------------------------------------------------- */

struct varint {
	const uint8_t *next; /* what is behind it; NULL: there is none */
	uint64_t value;
};

static struct varint get_long_varint(const uint8_t *at, const uint8_t *end)
{
	struct varint v = {NULL, 0};

	for (unsigned int i = 0; i < VARINT_MAX && at < end && !v.next; i++, at++) {
		v.value |= (uint64_t)(*at & 0x7f) << (7 * i);
		if (*at < 0x80)
			v.next = at + 1;
	}
	return v;
}

static inline struct varint get_varint(const uint8_t *at, const uint8_t *end)
{
	return at < end && *at < 0x80 ? (struct varint){at + 1, *at} : get_long_varint(at, end);
}

static int refuse(struct error *error, const struct message_field *f, double value)
{
	return error_fail(error, -EINVAL, "%s cannot be %g", f->name, value);
}

static int bad(struct error *error)
{
	return error_fail(error, -EBADMSG, "not such a body");
}

static int check_number(const struct message_field *f, uint64_t value, struct error *error)
{
	int64_t number = (int64_t)value;

	return number < f->least || number > f->most ? refuse(error, f, (double)number) : 0;
}

static int add_number(struct message_numbers *n, uint64_t value, const struct message_field *f,
		      struct error *error)
{
	if (n->count == MESSAGE_NUMBERS_MAX)
		return error_fail(error, -EINVAL, "%s: more than %d", f->name, MESSAGE_NUMBERS_MAX);
	n->value[n->count++] = (uint32_t)value;
	return 0;
}

static int take_numbers(struct message_numbers *n, struct span packed,
			const struct message_field *f, struct error *error)
{
	const uint8_t *at = packed.data, *end = at + packed.len;
	int rc = 0;

	while (at != end && !rc) {
		struct varint v = get_varint(at, end);

		if (!v.next)
			return bad(error);
		at = v.next;
		rc = add_number(n, v.value, f, error);
	}
	return rc;
}

static inline int take_number(const struct message_field *f, uint64_t value, void *member,
			      struct error *error)
{
	switch (f->kind) {
	case MESSAGE_U32:
		*(uint32_t *)member = (uint32_t)value;
		value = (uint32_t)value;
		break;
	case MESSAGE_COUNT32:
		*(uint64_t *)member = (uint32_t)value;
		break;
	case MESSAGE_U64:
		*(uint64_t *)member = value;
		break;
	case MESSAGE_S64:
		value = value >> 1 ^ (0 - (value & 1));
		*(uint64_t *)member = value;
		break;
	case MESSAGE_BOOL:
		*(bool *)member = value != 0;
		break;
	case MESSAGE_NUMBERS:
		return add_number(member, value, f, error);
	case MESSAGE_NONE:
		return 0;
	default:
		return bad(error);
	}
	return f->bounded ? check_number(f, value, error) : 0;
}

static inline int take_float(const struct message_field *f, const uint8_t *bytes, void *member,
			     struct error *error)
{
	uint32_t bits = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
			(uint32_t)bytes[3] << 24;
	float value;

	if (f->kind != MESSAGE_FLOAT)
		return f->kind ? bad(error) : 0;
	memcpy(&value, &bits, sizeof(bits));
	if (f->bounded && (!isfinite(value) || value < (float)f->least || value > (float)f->most))
		return refuse(error, f, (double)value);
	*(float *)member = value;
	return 0;
}

static int take_bytes(const struct message_field *f, struct span bytes, void *into,
		      struct error *error)
{
	void *member = (char *)into + f->offset;

	switch (f->kind) {
	case MESSAGE_INSIDE:
		return message_decode(f->inside, bytes, member, error);
	case MESSAGE_CALL:
		return f->take(into, bytes, error);
	case MESSAGE_NUMBERS:
		return take_numbers(member, bytes, f, error);
	case MESSAGE_SPAN:
		*(struct span *)member = bytes;
		return 0;
	case MESSAGE_NONE:
		return 0;
	default:
		return bad(error);
	}
}

/* NULL: none has such a tag. */
static inline const struct message_field *find_field(const struct message *m, uint64_t tag)
{
	static const struct message_field unknown = {.kind = MESSAGE_NONE};

	if (tag >> 3 >= 1 && tag >> 3 <= m->count)
		return &m->fields[(tag >> 3) - 1];
	return tag >> 3 >= 1 && tag <= UINT32_MAX ? &unknown : NULL;
}

int message_decode(const struct message *m, struct span from, void *into, struct error *error)
{
	const uint8_t *at = from.data, *end = from.len ? at + from.len : at; /* NULL is empty */
	int rc = 0;

	while (at != end && !rc) {
		struct varint tag = get_varint(at, end), v;
		const struct message_field *f = find_field(m, tag.value);

		if (!tag.next || !f)
			return bad(error);
		at = tag.next;
		switch (tag.value & 7) {
		case WIRE_VARINT:
			v = get_varint(at, end);
			if (!v.next)
				return bad(error);
			rc = take_number(f, v.value, (char *)into + f->offset, error);
			at = v.next;
			break;
		case WIRE_4_BYTES:
			if (end - at < 4)
				return bad(error);
			rc = take_float(f, at, (char *)into + f->offset, error);
			at += 4;
			break;
		case WIRE_BYTES:
			v = get_varint(at, end);
			if (!v.next || v.value > (uint64_t)(end - v.next))
				return bad(error);
			rc = take_bytes(f, (struct span){v.next, v.value}, into, error);
			at = v.next + v.value;
			break;
		case WIRE_8_BYTES:
			if (f->kind || end - at < 8)
				return bad(error);
			at += 8;
			break;
		default:
			return bad(error);
		}
	}
	return rc;
}

/* --- encoding --------------------------------------------------------------------------------- */

static size_t make_varint(uint8_t to[VARINT_MAX], uint64_t value)
{
	size_t len = 0;

	for (; value >= 0x80; value >>= 7)
		to[len++] = (uint8_t)(value | 0x80);
	to[len++] = (uint8_t)value;
	return len;
}

static void put_varint(struct buf *out, uint64_t value)
{
	uint8_t bytes[VARINT_MAX];
	size_t len = make_varint(bytes, value);

	buf_add(out, bytes, len);
}

static void put_tag(struct buf *out, unsigned int number, unsigned int type)
{
	put_varint(out, number << 3 | type);
}

static void put_float(struct buf *out, unsigned int number, float value)
{
	uint8_t bytes[4];
	uint32_t bits;

	if (value == 0)
		return;
	memcpy(&bits, &value, sizeof(bits));
	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(bits >> 8 * i);
	put_tag(out, number, WIRE_4_BYTES);
	buf_add(out, bytes, sizeof(bytes));
}

static void put_span(struct buf *out, unsigned int number, struct span bytes)
{
	if (!bytes.len)
		return;
	put_tag(out, number, WIRE_BYTES);
	put_varint(out, bytes.len);
	buf_add(out, bytes.data, bytes.len);
}

static void put_numbers(struct buf *out, unsigned int number, const struct message_numbers *n)
{
	size_t mark;

	if (!n->count)
		return;
	mark = message_open(out, number);
	for (uint32_t i = 0; i < n->count; i++)
		put_varint(out, n->value[i]);
	message_close(out, mark);
}

static uint64_t number_of(enum message_kind kind, const void *member)
{
	uint64_t wide;

	if (kind == MESSAGE_U32)
		return *(const uint32_t *)member;
	if (kind == MESSAGE_BOOL)
		return *(const bool *)member;
	wide = *(const uint64_t *)member;
	if (kind == MESSAGE_COUNT32 && wide > UINT32_MAX)
		return UINT32_MAX;
	return kind == MESSAGE_S64 ? wide << 1 ^ (0 - (wide >> 63)) : wide;
}

void message_encode(const struct message *m, const void *from, struct buf *out)
{
	message_encode_some(m, 1, (unsigned int)m->count, from, out);
}

void message_encode_some(const struct message *m, unsigned int first, unsigned int last,
			 const void *from, struct buf *out)
{
	for (unsigned int i = first - 1; i < last; i++) {
		const struct message_field *f = &m->fields[i];
		const void *member = (const char *)from + f->offset;
		uint64_t number;

		switch (f->kind) {
		case MESSAGE_NONE:
		case MESSAGE_CALL:
			break;
		case MESSAGE_FLOAT:
			put_float(out, i + 1, *(const float *)member);
			break;
		case MESSAGE_SPAN:
			put_span(out, i + 1, *(const struct span *)member);
			break;
		case MESSAGE_NUMBERS:
			put_numbers(out, i + 1, member);
			break;
		case MESSAGE_INSIDE:
			if (!f->bit || (*(const uint32_t *)from & f->bit))
				message_encode_inside(f->inside, i + 1, member, out);
			break;
		default:
			number = number_of(f->kind, member);
			if (!number)
				break;
			put_tag(out, i + 1, WIRE_VARINT);
			put_varint(out, number);
		}
	}
}

void message_encode_inside(const struct message *m, unsigned int number, const void *from,
			   struct buf *out)
{
	size_t mark = message_open(out, number);

	message_encode(m, from, out);
	message_close(out, mark);
}

size_t message_open(struct buf *out, unsigned int number)
{
	put_tag(out, number, WIRE_BYTES);
	buf_add_char(out, 0);
	return out->len;
}

void message_close(struct buf *out, size_t mark)
{
	size_t len = out->len - mark, head_len;
	uint8_t head[VARINT_MAX];

	head_len = make_varint(head, len);
	buf_reserve(out, head_len);
	memmove(out->data + mark - 1 + head_len, out->data + mark, len + 1);
	memcpy(out->data + mark - 1, head, head_len);
	out->len += head_len - 1;
}
