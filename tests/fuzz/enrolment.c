/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes from the network into both ends of enrolment. The first byte chooses: 0 a frame for the
 * aggregator, 1 a body that is sealed to it first, 2 a frame for the agent, 3 a body that is boxed
 * for it first, 4 keys of nodes from a database.
 */
#include <assert.h>
#include <sodium.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/node_keys.h"
#include "shared/enrolment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct frame_header header_of(enum frame_type type)
{
	return (struct frame_header){.type = type, .sequence = 1, .parts = 1, .node = "fuzz"};
}

static void open_enrolment(const struct buf *frame, const struct enrolment_keys *keys)
{
	struct frame_header header;
	const struct key *key;
	struct enrolment e;
	struct buf plain = BUF_INIT;
	struct error error = {""};

	if (enrolment_open(frame->data, frame->len, keys, &header, &key, &e, &plain, &error)) {
		assert(error.text[0]);
	} else {
		assert(frame_node_name_valid(e.node, strlen(e.node)));
		assert(!strcmp(e.node, header.node) && !memcmp(e.run, header.run, sizeof(e.run)));
		assert(e.credential.len && e.credential.len <= ENROLMENT_CREDENTIAL_MAX);
		assert((const char *)e.credential.data >= plain.data &&
		       (const char *)e.credential.data + e.credential.len <=
			       plain.data + plain.len);
	}
	buf_fini(&plain);
}

static void open_answer(const struct buf *frame, const uint8_t public_key[32],
			const uint8_t secret[32])
{
	struct frame_header asked = header_of(FRAME_ENROLMENT);
	struct enrolment_answer a;
	struct error error = {""};

	if (enrolment_answer_open(frame->data, frame->len, &asked, public_key, secret, &a,
				  &error)) {
		assert(error.text[0]);
		return;
	}
	assert(a.status != ENROLMENT_DONE || a.lifetime_s);
	assert(a.lifetime_s <= ENROLMENT_LIFETIME_MAX_S && a.wait_ms <= 60000);
	assert(a.stamp_ns <= INT64_MAX);
	for (const char *c = a.reason; *c; c++)
		assert((unsigned char)*c >= ' ' && *c != 0x7f);
}

static void read_database(const uint8_t *data, size_t size)
{
	struct node_keys *keys = node_keys_new(3), *again = node_keys_new(3);
	struct buf once = BUF_INIT, twice = BUF_INIT;
	struct error error = {""};

	if (node_keys_read(keys, data, size, &error))
		assert(error.text[0]);
	node_keys_write(keys, 0, &once);
	assert(!node_keys_read(again, once.data, once.len, &error));
	node_keys_write(again, 0, &twice);
	assert(once.len == twice.len && (!once.len || !memcmp(once.data, twice.data, once.len)));
	node_keys_free(keys);
	node_keys_free(again);
	buf_fini(&once);
	buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct enrolment_keys keys = {.ring = {.count = 1}};
	const uint8_t *public_key = keys.public_keys[0];
	const struct key *key = keys.ring.keys;
	struct frame_header header;
	struct buf frame = BUF_INIT;
	char *room;

	if (!size || size > ENROLMENT_CREDENTIAL_MAX || sodium_init() < 0)
		return 0;
	memset(keys.ring.keys[0].secret, 1, KEY_LEN);
	enrolment_keys_pair(&keys);
	if (data[0] == 1 || data[0] == 3) {
		header = header_of(data[0] == 1 ? FRAME_ENROLMENT : FRAME_ENROLMENT_ANSWER);
		memcpy(header.key_id, key->id, KEY_ID_LEN);
		frame_put_header(&frame, &header, size - 1);
		room = buf_reserve(&frame, size + crypto_box_SEALBYTES);
		if (data[0] == 1) {
			crypto_box_seal((uint8_t *)room, data + 1, size - 1, public_key);
			frame.len += size - 1 + crypto_box_SEALBYTES;
		} else {
			if (crypto_box_easy((uint8_t *)room, data + 1, size - 1, header.nonce,
					    public_key, key->secret))
				abort();
			frame.len += size - 1 + crypto_box_MACBYTES;
		}
	} else {
		buf_add(&frame, data + 1, size - 1);
	}
	if (data[0] <= 1)
		open_enrolment(&frame, &keys);
	else if (data[0] <= 3)
		open_answer(&frame, public_key, key->secret);
	else
		read_database(data + 1, size - 1);
	buf_fini(&frame);
	return 0;
}
