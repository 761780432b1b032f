/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/demand.h"

#include "shared/arith.h"

enum { VARINT_MOST = 5 }; /* bytes of 32 bits */

static void put_number(struct buf *out, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_add_char(out, (char)(value | 0x80));
	buf_add_char(out, (char)value);
}

void demand_encode(const struct histogram *h, struct buf *out)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!h->count[i])
			continue;
		put_number(out, i - last);
		put_number(out, h->count[i]);
		last = i;
	}
}

struct demand_reader demand_read(const void *bytes, size_t len)
{
	const uint8_t *at = len ? bytes : NULL;

	return (struct demand_reader){.at = at, .end = len ? at + len : NULL};
}

static bool get_number(const uint8_t **at, const uint8_t *end, uint32_t *value)
{
	uint64_t number = 0;

	for (int i = 0; i < VARINT_MOST && *at < end; i++) {
		uint8_t byte = *(*at)++;

		number |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			*value = (uint32_t)number;
			return number <= UINT32_MAX;
		}
	}
	return false;
}

bool demand_next(struct demand_reader *r)
{
	const uint8_t *at = r->at;
	uint32_t step, count;

	if (at == r->end || !get_number(&at, r->end, &step) || !get_number(&at, r->end, &count) ||
	    !count || (r->begun && !step) || step >= HISTOGRAM_BUCKETS - r->index)
		return false;
	r->at = at;
	r->index += step;
	r->count = count;
	r->begun = true;
	return true;
}

bool demand_is_valid(const void *bytes, size_t len)
{
	struct demand_reader r = demand_read(bytes, len);

	while (demand_next(&r))
		;
	return r.at == r.end;
}

void demand_decode(const void *bytes, size_t len, struct histogram *into)
{
	struct demand_reader r = demand_read(bytes, len);

	while (demand_next(&r))
		into->count[r.index] = add_saturating_u32(into->count[r.index], r.count);
}
