/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes from the network into frame_open(). The first byte chooses how: bit 0 with keys or in
 * clear, bit 1 as an ack. With bit 2 the rest is a body, sealed first, so that what lies behind the
 * seal is reached too.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void open_one(const void *data, size_t size, const struct keyring *ring,
		     const uint8_t *nonce)
{
	struct frame_header header = {.sequence = 0};
	struct buf body = BUF_INIT;
	struct error error = {""};

	if (frame_open(data, size, ring, nonce, &header, &body, &error)) {
		assert(error.text[0] != '\0');
		assert(!body.data);
		return;
	}
	assert(header.sequence > 0 && header.part < header.parts);
	assert(header.parts <= FRAME_PARTS_MAX);
	assert(frame_node_name_valid(header.node, strlen(header.node)));
	assert(body.len < size);
	buf_fini(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t nonce[FRAME_NONCE_LEN] = {1};
	struct keyring ring = {.count = 1};
	struct frame_header header = {
		.type = FRAME_INTERVAL, .sequence = 1, .parts = 1, .node = "fuzz"};
	const uint8_t *request = NULL;
	struct buf frame = BUF_INIT;

	if (!size)
		return 0;
	memset(&ring.keys[0], 1, sizeof(ring.keys[0]));
	ring.count = data[0] & 1;
	if (data[0] & 2)
		request = nonce;
	if (data[0] & 4)
		frame_seal(&frame, &header, keyring_sealing(&ring), request, data + 1, size - 1);
	else
		buf_add(&frame, data + 1, size - 1);
	open_one(frame.data, frame.len, &ring, request);
	buf_fini(&frame);
	return 0;
}
