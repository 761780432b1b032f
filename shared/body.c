/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acks. The two directions of an interval are in body_encode.c and body_decode.c. An agent obeys
 * what an ack says, so its numbers are held within what cannot do harm: the interval to 1..15 s,
 * the pause to one minute.
 */
#include "shared/body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/body.pb-c.h"

enum { INTERVAL_MS_MIN = 1000, INTERVAL_MS_MAX = 15000, WAIT_MS_MAX = 60000 };

void body_encode_ack(const struct ack *ack, struct buf *out)
{
	Evenkeel__Ack m = EVENKEEL__ACK__INIT;
	size_t len;

	m.status = (Evenkeel__AckStatus)ack->status;
	m.reason = (char *)ack->reason;
	m.applied = ack->applied;
	m.durable = ack->durable;
	m.server_time_ns = ack->server_time_ns;
	m.interval_ms = ack->interval_ms;
	m.wait_ms = ack->wait_ms;
	m.resend_from = ack->resend_from;
	len = evenkeel__ack__get_packed_size(&m);
	buf_reserve(out, len);
	out->len += evenkeel__ack__pack(&m, (uint8_t *)out->data + out->len);
	out->data[out->len] = '\0';
}

/* The text will be logged: cut, and without control characters. */
static void take_reason(char *to, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i];
	to[len] = '\0';
}

static uint32_t clamp(uint32_t value, uint32_t low, uint32_t high)
{
	return value < low ? low : value > high ? high : value;
}

int body_decode_ack(const void *data, size_t len, struct ack *ack, struct reason *reason)
{
	Evenkeel__Ack *m = evenkeel__ack__unpack(NULL, len, data);

	if (!m || (unsigned int)m->status > EVENKEEL__ACK_STATUS__REFUSED) {
		reason_set(reason, m ? "an ack of unknown status %d" : "not an ack",
			   m ? (int)m->status : 0);
		if (m)
			evenkeel__ack__free_unpacked(m, NULL);
		return -EBADMSG;
	}
	*ack = (struct ack){
		.status = (enum ack_status)m->status,
		.applied = m->applied,
		.durable = m->durable,
		.server_time_ns = m->server_time_ns,
		.wait_ms = clamp(m->wait_ms, 0, WAIT_MS_MAX),
		.resend_from = m->resend_from,
	};
	if (m->interval_ms)
		ack->interval_ms = clamp(m->interval_ms, INTERVAL_MS_MIN, INTERVAL_MS_MAX);
	take_reason(ack->reason, sizeof(ack->reason), m->reason);
	evenkeel__ack__free_unpacked(m, NULL);
	return 0;
}
