/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why beside the library: an interval of 30 pods is some four hundred small messages, a thousand
 * intervals arrive each second, and reading them through descriptors was the largest part of what an
 * aggregator does. These messages are known, so their fields are read by their tags, straight to
 * where they belong. That is a fifth of the instructions.
 *
 * It reads only what every reader must understand alike: known fields, each once, in rising order,
 * with the wire type of shared/body.proto, in bounds. That is how the library writes. All else,
 * right or wrong, is refused here and left to the library, whose answer is the one that counts; so
 * nothing here says why. The fuzz target reads what is accepted both ways and compares.
 *
 *     IntervalPart   tag 08 10 18 20 (numbers)  2a (Node)  32 (Entry) 32 32 ..
 *     Entry          08 ref   12 Usage   1a Identity
 *     Usage          08 have  15 seconds  1a Moments  22 2a Gauges  30 .. 78 counters
 *
 * A tag is the field's number times eight plus its wire type: 0 a number of seven bits per byte,
 * lowest first, 2 a length and so many bytes, 5 four bytes, lowest first.
 */
#include "shared/body_scan.h"

#include <string.h>

enum {
	VARINT_MAX = 10, /* bytes of 64 bits */
	LENGTH_MAX = 4, /* bytes of a length: more than any body has */
};

/* --- values ----------------------------------------------------------------------------------- */

static bool get_long(struct body_bytes *b, uint64_t *value)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < VARINT_MAX && b->at < b->end; i++) {
		uint64_t bits = *b->at++;

		sum |= (bits & 0x7f) << (7 * i);
		if (bits < 0x80) {
			*value = sum;
			return i < VARINT_MAX - 1 || bits <= 1;
		}
	}
	return false;
}

static bool get_number(struct body_bytes *b, uint32_t *value)
{
	uint64_t wide;

	if (!get_long(b, &wide) || wide > UINT32_MAX)
		return false;
	*value = (uint32_t)wide;
	return true;
}

static bool get_float(struct body_bytes *b, float *value)
{
	uint32_t bits;

	if (b->end - b->at < 4)
		return false;
	bits = b->at[0] | (uint32_t)b->at[1] << 8 | (uint32_t)b->at[2] << 16 |
	       (uint32_t)b->at[3] << 24;
	memcpy(value, &bits, sizeof(bits));
	b->at += 4;
	return true;
}

/* What is behind a length, off the rest. */
static bool get_bytes(struct body_bytes *b, struct body_bytes *inside)
{
	const uint8_t *begin = b->at;
	uint64_t len;

	if (!get_long(b, &len) || b->at - begin > LENGTH_MAX || len > (uint64_t)(b->end - b->at))
		return false;
	*inside = (struct body_bytes){b->at, b->at + len};
	b->at += len;
	return true;
}

/* The next tag of a message, which must be above the one before. False at its end, too. */
static bool get_tag(struct body_bytes *b, uint8_t *tag)
{
	if (b->at == b->end || *b->at <= *tag)
		return false;
	*tag = *b->at++;
	return true;
}

/* --- messages --------------------------------------------------------------------------------- */

static bool get_gauge(struct body_bytes *b, struct gauge *g)
{
	struct body_bytes in;
	uint8_t tag = 0;
	bool ok = get_bytes(b, &in);

	while (ok && get_tag(&in, &tag)) {
		switch (tag) {
		case 0x0d:
			ok = get_float(&in, &g->mean);
			break;
		case 0x15:
			ok = get_float(&in, &g->max);
			break;
		case 0x1d:
			ok = get_float(&in, &g->last);
			break;
		default:
			ok = false;
		}
	}
	return ok && in.at == in.end;
}

static bool get_moments(struct body_bytes *b, struct moments32 *m)
{
	struct body_bytes in;
	uint8_t tag = 0;
	bool ok = get_bytes(b, &in);

	while (ok && get_tag(&in, &tag)) {
		switch (tag) {
		case 0x08:
			ok = get_number(&in, &m->samples);
			break;
		case 0x15:
			ok = get_float(&in, &m->weight);
			break;
		case 0x1d:
			ok = get_float(&in, &m->mean);
			break;
		case 0x25:
			ok = get_float(&in, &m->m2);
			break;
		case 0x2d:
			ok = get_float(&in, &m->min);
			break;
		case 0x35:
			ok = get_float(&in, &m->max);
			break;
		case 0x3d:
			ok = get_float(&in, &m->last);
			break;
		default:
			ok = false;
		}
	}
	return ok && in.at == in.end;
}

static bool get_usage_field(struct body_bytes *in, uint8_t tag, struct usage *u)
{
	switch (tag) {
	case 0x08:
		return get_number(in, &u->have);
	case 0x15:
		return get_float(in, &u->seconds);
	case 0x1a:
		return get_moments(in, &u->cpu_milli);
	case 0x22:
		return get_gauge(in, &u->mem_bytes);
	case 0x2a:
		return get_gauge(in, &u->working_set_bytes);
	case 0x30:
		return get_long(in, &u->throttled_ns);
	case 0x38:
		return get_number(in, &u->throttled_periods);
	case 0x40:
		return get_number(in, &u->periods);
	case 0x48:
		return get_number(in, &u->oom_kills);
	case 0x50:
		return get_long(in, &u->contention_cpu_ns);
	case 0x58:
		return get_long(in, &u->contention_mem_ns);
	case 0x60:
		return get_long(in, &u->stall_cpu_ns);
	case 0x68:
		return get_long(in, &u->stall_mem_ns);
	case 0x70:
		return get_long(in, &u->swap_bytes);
	case 0x78:
		return get_number(in, &u->pids);
	default:
		return false;
	}
}

static bool get_usage(struct body_bytes *b, struct usage *u)
{
	struct body_bytes in;
	uint8_t tag = 0;
	bool ok = get_bytes(b, &in);

	while (ok && get_tag(&in, &tag))
		ok = get_usage_field(&in, tag, u);
	return ok && in.at == in.end;
}

bool body_scan_entry(struct body_bytes *entries, struct body_entry *out)
{
	struct body_bytes in;
	uint8_t tag = 0;
	bool ok = entries->at < entries->end && *entries->at++ == 0x32 && get_bytes(entries, &in);

	*out = (struct body_entry){0};
	while (ok && get_tag(&in, &tag)) {
		switch (tag) {
		case 0x08:
			ok = get_number(&in, &out->ref);
			break;
		case 0x12:
			ok = get_usage(&in, &out->usage);
			break;
		case 0x1a:
			out->has_identity = ok = get_bytes(&in, &out->identity);
			break;
		default:
			ok = false;
		}
	}
	return ok && in.at == in.end;
}

bool body_scan_part(const void *data, size_t len, struct body_bytes *head,
		    struct body_bytes *entries, size_t *count)
{
	struct body_bytes b = {data, (const uint8_t *)data + len}, skipped;
	uint64_t number;
	uint8_t tag = 0;
	bool ok = len > 0;

	head->at = b.at;
	while (ok && b.at < b.end && *b.at != 0x32 && get_tag(&b, &tag)) {
		if (tag == 0x2a)
			ok = get_bytes(&b, &skipped);
		else
			ok = tag <= 0x20 && tag % 8 == 0 && get_long(&b, &number);
	}
	head->end = b.at;
	*entries = b;
	for (*count = 0; ok && b.at < b.end; ++*count)
		ok = *b.at++ == 0x32 && get_bytes(&b, &skipped);
	return ok;
}
