/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings of the scalability protocols to TCP and, as nanomsg has it, to ipc, and the
 * request/reply protocol:
 *
 *     hello      0 'S' 'P' 0, protocol as 16 bits (48: REQ, 49: REP), 0 0; once, in both directions
 *     message    on ipc only: 1; length as 64 bits, then so many bytes: stack of ids, frame
 *     stack      0..7 ids of 32 bits below 2^31, one id above; an answer carries its request's
 *
 * Numbers are big-endian. All here is about bytes of strangers: nothing is believed, and no length
 * is added to before it was compared.
 */
#include "aggregator/edge/ingest_wire.h"

#include <errno.h>
#include <string.h>

enum { LENGTH_LEN = 8, ID_LEN = 4, IPC_MESSAGE = 1 };

const uint8_t wire_hello[WIRE_HELLO_LEN] = {0, 'S', 'P', 0, 0, 49, 0, 0};

static const uint8_t asker_hello[WIRE_HELLO_LEN] = {0, 'S', 'P', 0, 0, 48, 0, 0};

int wire_check_hello(const void *data, size_t len)
{
	if (memcmp(data, asker_hello, len < WIRE_HELLO_LEN ? len : WIRE_HELLO_LEN) != 0)
		return -EPROTO;
	return len < WIRE_HELLO_LEN ? -EAGAIN : 0;
}

size_t wire_head_len(enum endpoint_kind kind)
{
	return kind == ENDPOINT_IPC ? LENGTH_LEN + 1 : LENGTH_LEN;
}

void wire_put_head(enum endpoint_kind kind, size_t len, uint8_t *head)
{
	if (kind == ENDPOINT_IPC)
		*head++ = IPC_MESSAGE;
	for (int i = 0; i < LENGTH_LEN; i++)
		head[i] = (uint8_t)((uint64_t)len >> (8 * (LENGTH_LEN - 1 - i)));
}

int wire_get_head(enum endpoint_kind kind, const void *data, size_t len, size_t *message_len)
{
	const uint8_t *at = data;
	uint64_t value = 0;

	if (len < wire_head_len(kind))
		return -EAGAIN;
	if (kind == ENDPOINT_IPC && *at++ != IPC_MESSAGE)
		return -EPROTO;
	for (int i = 0; i < LENGTH_LEN; i++)
		value = value << 8 | at[i];
	if (value > WIRE_MESSAGE_MAX)
		return -EMSGSIZE;
	*message_len = (size_t)value;
	return 0;
}

size_t wire_stack_len(const void *message, size_t len)
{
	const uint8_t *at = message;

	for (size_t end = ID_LEN; end <= len && end <= WIRE_STACK_MAX; end += ID_LEN)
		if (at[end - ID_LEN] & 0x80)
			return end;
	return 0;
}
