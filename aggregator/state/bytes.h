/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers to and from little-endian bytes, in one pass that serves both directions, so that they
 * cannot differ.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared/buf.h"

/* With `out` set, values are appended to it; else they are taken from `in`. */
struct bytes {
	struct buf *out; /* borrowed, as is in */
	const uint8_t *in;
	size_t left; /* of in */
	bool bad; /* reading: it ended too early, and values were 0 since */
};

static inline void bytes_raw(struct bytes *b, void *value, size_t len)
{
	if (b->out) {
		buf_add(b->out, value, len);
		return;
	}
	if (b->bad || b->left < len) {
		b->bad = true;
		memset(value, 0, len);
		return;
	}
	memcpy(value, b->in, len);
	b->in += len;
	b->left -= len;
}

static inline uint64_t bytes_number(struct bytes *b, uint64_t value, size_t len)
{
	uint8_t raw[8];

	for (size_t i = 0; i < len; i++)
		raw[i] = (uint8_t)(value >> (8 * i));
	bytes_raw(b, raw, len);
	value = 0;
	for (size_t i = 0; i < len; i++)
		value |= (uint64_t)raw[i] << (8 * i);
	return value;
}

static inline void bytes_u8(struct bytes *b, uint8_t *value)
{
	*value = (uint8_t)bytes_number(b, *value, 1);
}

static inline void bytes_u16(struct bytes *b, uint16_t *value)
{
	*value = (uint16_t)bytes_number(b, *value, 2);
}

static inline void bytes_u32(struct bytes *b, uint32_t *value)
{
	*value = (uint32_t)bytes_number(b, *value, 4);
}

static inline void bytes_u64(struct bytes *b, uint64_t *value)
{
	*value = bytes_number(b, *value, 8);
}

static inline void bytes_i64(struct bytes *b, int64_t *value)
{
	*value = (int64_t)bytes_number(b, (uint64_t)*value, 8);
}

/* IEEE 754, bit for bit. */
static inline void bytes_f32(struct bytes *b, float *value)
{
	uint32_t bits;

	memcpy(&bits, value, sizeof(bits));
	bytes_u32(b, &bits);
	memcpy(value, &bits, sizeof(bits));
}

static inline void bytes_f64(struct bytes *b, double *value)
{
	uint64_t bits;

	memcpy(&bits, value, sizeof(bits));
	bytes_u64(b, &bits);
	memcpy(value, &bits, sizeof(bits));
}
