/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First the header's format is checked, which is cheap, then the seal, which only a holder of the
 * key can make. The seal covers the header, so a frame cannot be moved to another node, run,
 * sequence or part. The layout is in frame.h.
 */
#include "shared/frame.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

static const char magic[4] = {'E', 'V', 'K', 'L'};
static const uint8_t clear_id[KEY_ID_LEN];

/* Offsets, as in frame.h. */
enum {
	AT_VERSION = 4,
	AT_TYPE = 5,
	AT_NODE_LEN = 6,
	AT_KEY_ID = 8,
	AT_RUN = 16,
	AT_SEQUENCE = 32,
	AT_PART = 40,
	AT_PARTS = 42,
	AT_BODY_LEN = 44,
	AT_NONCE = 48,
	AT_AGE = 72,
};

/* The header, the name and, for an ack, the nonce of its request. */
enum { ASSOCIATED_MAX = FRAME_HEADER_LEN + NODE_NAME_MAX + FRAME_NONCE_LEN };

static_assert(FRAME_NONCE_LEN == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, "nonce");
static_assert(FRAME_TAG_LEN == crypto_aead_xchacha20poly1305_ietf_ABYTES, "tag");
static_assert(KEY_LEN == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "key");

static void put(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *at, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

int frame_node_name_valid(const char *name, size_t len)
{
	if (len < 1 || len > NODE_NAME_MAX)
		return 0;
	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '-' || c == '.' || c == '_'))
			return 0;
	}
	return 1;
}

/* --- sealing ---------------------------------------------------------------------------------- */

static size_t write_header(uint8_t *out, const struct frame_header *h, size_t body_len)
{
	size_t node_len = strlen(h->node);

	memcpy(out, magic, sizeof(magic));
	out[AT_VERSION] = FRAME_VERSION;
	out[AT_TYPE] = (uint8_t)h->type;
	put(out + AT_NODE_LEN, node_len, 2);
	memcpy(out + AT_KEY_ID, h->key_id, KEY_ID_LEN);
	memcpy(out + AT_RUN, h->run, FRAME_RUN_LEN);
	put(out + AT_SEQUENCE, h->sequence, 8);
	put(out + AT_PART, h->part, 2);
	put(out + AT_PARTS, h->parts, 2);
	put(out + AT_BODY_LEN, body_len, 4);
	memcpy(out + AT_NONCE, h->nonce, FRAME_NONCE_LEN);
	put(out + AT_AGE, h->age_ms, 4);
	memcpy(out + FRAME_HEADER_LEN, h->node, node_len);
	return FRAME_HEADER_LEN + node_len;
}

void frame_put_header(struct buf *out, const struct frame_header *header, size_t body_len)
{
	uint8_t bytes[FRAME_HEADER_LEN + NODE_NAME_MAX];
	size_t len = write_header(bytes, header, body_len);

	buf_add(out, bytes, len);
}

void frame_seal(struct buf *out, struct frame_header *header, const struct key *key,
		const uint8_t *request_nonce, const void *body, size_t body_len)
{
	uint8_t associated[ASSOCIATED_MAX];
	size_t header_len, associated_len;
	unsigned long long sealed_len;
	int rc = sodium_init();

	assert(rc >= 0);
	assert(body_len <= UINT32_MAX);
	assert(frame_node_name_valid(header->node, strlen(header->node)));
	memcpy(header->key_id, key ? key->id : clear_id, KEY_ID_LEN);
	if (!key && request_nonce)
		memcpy(header->nonce, request_nonce, FRAME_NONCE_LEN);
	else
		randombytes_buf(header->nonce, FRAME_NONCE_LEN);
	header_len = associated_len = write_header(associated, header, body_len);
	buf_add(out, associated, header_len);
	if (!key) {
		buf_add(out, body, body_len);
		return;
	}
	if (request_nonce) {
		memcpy(associated + associated_len, request_nonce, FRAME_NONCE_LEN);
		associated_len += FRAME_NONCE_LEN;
	}
	rc = crypto_aead_xchacha20poly1305_ietf_encrypt(
		(uint8_t *)buf_reserve(out, body_len + FRAME_TAG_LEN), &sealed_len, body, body_len,
		associated, associated_len, NULL, header->nonce, key->secret);
	assert(rc == 0 && sealed_len == body_len + FRAME_TAG_LEN);
	out->len += (size_t)sealed_len;
	out->data[out->len] = '\0';
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Everything but the name; -EBADMSG or -EPROTO. */
static int read_numbers(const uint8_t *in, struct frame_header *h, struct error *error)
{
	uint8_t type = in[AT_TYPE];

	if (memcmp(in, magic, sizeof(magic)) != 0)
		return error_fail(error, -EBADMSG, "not a frame: it begins otherwise");
	if (in[AT_VERSION] != FRAME_VERSION)
		return error_fail(error, -EPROTO, "frame version %u, this side speaks %d",
				  in[AT_VERSION], FRAME_VERSION);
	if (type < FRAME_INTERVAL || type > FRAME_COPY)
		return error_fail(error, -EBADMSG, "frame type %u is unknown", type);
	h->type = (enum frame_type)type;
	memcpy(h->key_id, in + AT_KEY_ID, KEY_ID_LEN);
	memcpy(h->run, in + AT_RUN, FRAME_RUN_LEN);
	memcpy(h->nonce, in + AT_NONCE, FRAME_NONCE_LEN);
	h->sequence = get(in + AT_SEQUENCE, 8);
	h->part = (uint16_t)get(in + AT_PART, 2);
	h->parts = (uint16_t)get(in + AT_PARTS, 2);
	h->age_ms = (uint32_t)get(in + AT_AGE, 4);
	if (h->sequence == 0 || h->parts < 1 || h->parts > FRAME_PARTS_MAX || h->part >= h->parts)
		return error_fail(error, -EBADMSG, "sequence %llu, part %u of %u cannot be",
				  (unsigned long long)h->sequence, h->part, h->parts);
	return 0;
}

int frame_get_header(const void *data, size_t len, struct frame_header *header, size_t *header_len,
		     size_t *body_len, struct error *error)
{
	const uint8_t *in = data;
	struct frame_header h = {0};
	size_t node_len;
	int rc;

	if (len < FRAME_HEADER_LEN)
		return error_fail(error, -EBADMSG, "%zu bytes, shorter than a header", len);
	rc = read_numbers(in, &h, error);
	if (rc)
		return rc;
	node_len = (size_t)get(in + AT_NODE_LEN, 2);
	if (node_len > len - FRAME_HEADER_LEN ||
	    !frame_node_name_valid((const char *)in + FRAME_HEADER_LEN, node_len))
		return error_fail(error, -EBADMSG, "the node name is cut off or not one");
	memcpy(h.node, in + FRAME_HEADER_LEN, node_len);
	*header = h;
	*header_len = FRAME_HEADER_LEN + node_len;
	*body_len = get(in + AT_BODY_LEN, 4);
	return 0;
}

/* NULL for a frame in clear; -ENOKEY: not accepted with this ring. */
static int choose_key(const struct keyring *ring, const struct frame_header *h,
		      const struct key **key, struct error *error)
{
	bool clear = !memcmp(h->key_id, clear_id, KEY_ID_LEN);

	*key = clear ? NULL : keyring_find(ring, h->key_id);
	if (clear && ring->count)
		return error_fail(error, -ENOKEY, "in clear, but this side requires a key");
	if (!clear && !*key)
		return error_fail(error, -ENOKEY, "sealed with a key this side does not have");
	return 0;
}

static int open_body(const uint8_t *in, size_t header_len, size_t sealed_len, const struct key *key,
		     const struct frame_header *h, const uint8_t *request_nonce, struct buf *plain)
{
	uint8_t associated[ASSOCIATED_MAX];
	size_t associated_len = header_len;
	unsigned long long plain_len;
	char *to;

	if (!key) {
		if (request_nonce && memcmp(h->nonce, request_nonce, FRAME_NONCE_LEN) != 0)
			return -EKEYREJECTED;
		buf_add(plain, in + header_len, sealed_len);
		return 0;
	}
	memcpy(associated, in, header_len);
	if (request_nonce) {
		memcpy(associated + associated_len, request_nonce, FRAME_NONCE_LEN);
		associated_len += FRAME_NONCE_LEN;
	}
	to = buf_reserve(plain, sealed_len);
	if (crypto_aead_xchacha20poly1305_ietf_decrypt((uint8_t *)to, &plain_len, NULL,
						       in + header_len, sealed_len, associated,
						       associated_len, h->nonce, key->secret))
		return -EKEYREJECTED;
	plain->len = (size_t)plain_len;
	to[plain_len] = '\0';
	return 0;
}

/* After a failure *body is unchanged but for its capacity. */
static void give_back(struct buf *plain, struct buf *body)
{
	if (body->data && !body->len) {
		*body = *plain;
		buf_clear(body);
	} else {
		buf_fini(plain);
	}
}

int frame_open(const void *data, size_t len, const struct keyring *ring,
	       const uint8_t *request_nonce, struct frame_header *header, struct buf *body,
	       struct error *error)
{
	struct frame_header h = {0};
	struct buf plain = BUF_INIT;
	const struct key *key;
	size_t header_len, sealed_len, body_len;
	int rc = frame_get_header(data, len, &h, &header_len, &body_len, error);

	if (!rc && (h.type == FRAME_ENROLMENT || h.type == FRAME_ENROLMENT_ANSWER))
		rc = error_fail(error, -EBADMSG, "frame type %u is sealed otherwise", h.type);
	if (rc)
		return rc;
	rc = choose_key(ring, &h, &key, error);
	if (rc) {
		*header = h;
		return rc;
	}
	sealed_len = len - header_len;
	if (sealed_len != body_len + (key ? FRAME_TAG_LEN : 0))
		return error_fail(error, -EBADMSG,
				  "%zu bytes after the header, another length was announced",
				  sealed_len);
	if (!body->len)
		plain = *body;
	rc = open_body(data, header_len, sealed_len, key, &h, request_nonce, &plain);
	if (rc) {
		give_back(&plain, body);
		return error_fail(error, rc,
				  "the seal is not right: forged, damaged, or of another request");
	}
	*header = h;
	if (len > FRAME_LEN_MAX) {
		give_back(&plain, body);
		return error_fail(error, -EMSGSIZE, "%zu bytes, a frame may have %d", len,
				  FRAME_LEN_MAX);
	}
	if (body->len)
		buf_fini(body);
	*body = plain;
	return 0;
}
