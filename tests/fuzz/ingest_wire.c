/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a peer sends, read as the aggregator does: a hello, then messages until one is not whole or
 * wrong. The first byte says whether on TCP or ipc. Nothing beyond what was sent may be looked at.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/ingest_socket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum endpoint_kind kind = size && data[0] & 1 ? ENDPOINT_IPC : ENDPOINT_TCP;
	size_t head = wire_head_len(kind), at = 1, len = 0;

	if (!size || wire_check_hello(data + at, size - at))
		return 0;
	assert(size - at >= WIRE_HELLO_LEN);
	at += WIRE_HELLO_LEN;
	while (!wire_get_head(kind, data + at, size - at, &len) && len <= size - at - head) {
		size_t stack = wire_stack_len(data + at + head, len);

		assert(len <= WIRE_MESSAGE_MAX);
		assert(stack <= len && stack <= WIRE_STACK_MAX && stack % 4 == 0);
		at += head + len;
	}
	assert(at <= size);
	return 0;
}
