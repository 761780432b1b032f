/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/demand.h"

#include "shared/arith.h"
#include "shared/message.h"

enum { VARINT_MOST = 5 }; /* bytes of 32 bits */

void demand_encode(const struct histogram *h, struct buf *out)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!h->count[i])
			continue;
		message_put_varint(out, i - last);
		message_put_varint(out, h->count[i]);
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
	struct varint v = message_get_varint(*at, end);

	if (!v.next || v.next - *at > VARINT_MOST || v.value > UINT32_MAX)
		return false;
	*at = v.next;
	*value = (uint32_t)v.value;
	return true;
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
