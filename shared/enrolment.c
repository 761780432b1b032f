/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anybody can seal to the aggregator's public key, so every byte of an enrolment is checked like one
 * in clear. The agent obeys an answer, so its numbers are clamped to their ranges.
 */
#include "shared/enrolment.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "shared/utf8.h"

static_assert(ENROLMENT_PUBLIC_LEN == crypto_box_PUBLICKEYBYTES, "public key");
static_assert((int)KEY_LEN == (int)crypto_box_SECRETKEYBYTES, "private key");
static_assert((int)FRAME_NONCE_LEN == (int)crypto_box_NONCEBYTES, "nonce");

enum { WAIT_MS_MAX = 60000, VARIANT = sodium_base64_VARIANT_ORIGINAL };

static_assert(sodium_base64_ENCODED_LEN(ENROLMENT_PUBLIC_LEN, VARIANT) ==
		      ENROLMENT_PUBLIC_TEXT_LEN + 1,
	      "a public key as text");

/* --- keys ------------------------------------------------------------------------------------- */

static void key_id_of(const uint8_t public_key[ENROLMENT_PUBLIC_LEN], uint8_t id[KEY_ID_LEN])
{
	struct key key;

	memcpy(key.secret, public_key, sizeof(key.secret));
	key_set_id(&key);
	memcpy(id, key.id, KEY_ID_LEN);
}

void enrolment_public_key(const struct key *key, uint8_t public_key[ENROLMENT_PUBLIC_LEN])
{
	crypto_scalarmult_base(public_key, key->secret);
}

void enrolment_keys_pair(struct enrolment_keys *keys)
{
	for (size_t i = 0; i < keys->ring.count; i++) {
		enrolment_public_key(&keys->ring.keys[i], keys->public_keys[i]);
		key_id_of(keys->public_keys[i], keys->ring.keys[i].id);
	}
}

void enrolment_public_write(const uint8_t public_key[ENROLMENT_PUBLIC_LEN],
			    char text[ENROLMENT_PUBLIC_TEXT_LEN + 1])
{
	sodium_bin2base64(text, ENROLMENT_PUBLIC_TEXT_LEN + 1, public_key, ENROLMENT_PUBLIC_LEN,
			  VARIANT);
}

int enrolment_public_read(uint8_t public_key[ENROLMENT_PUBLIC_LEN], const char *text, size_t len,
			  struct error *error)
{
	uint8_t bytes[ENROLMENT_PUBLIC_LEN];
	size_t count = 0;

	if (sodium_base642bin(bytes, sizeof(bytes), text, len, " \r\n", &count, NULL, VARIANT) ||
	    count != sizeof(bytes) || sodium_is_zero(bytes, sizeof(bytes)))
		return error_fail(error, -EINVAL,
				  "not an aggregator's public key: one line of %d characters of "
				  "base64, as the aggregator writes it beside its --enrolment-key",
				  ENROLMENT_PUBLIC_TEXT_LEN);
	memcpy(public_key, bytes, sizeof(bytes));
	return 0;
}

/* --- bodies ----------------------------------------------------------------------------------- */

#define ROW(number, of, member, ...)                                                               \
	[(number)-1] = {.name = #member, .offset = offsetof(struct of, member), __VA_ARGS__}

struct enrolment_body {
	struct span reply_key, node, run;
	uint64_t stamp_ns;
	uint32_t kind;
	struct span credential;
};

static const struct message_field enrolment_rows[] = {
	ROW(1, enrolment_body, reply_key, .kind = MESSAGE_SPAN),
	ROW(2, enrolment_body, node, .kind = MESSAGE_SPAN),
	ROW(3, enrolment_body, run, .kind = MESSAGE_SPAN),
	ROW(4, enrolment_body, stamp_ns, .kind = MESSAGE_U64),
	ROW(5, enrolment_body, kind, .kind = MESSAGE_U32),
	ROW(6, enrolment_body, credential, .kind = MESSAGE_SPAN),
};
static const struct message enrolment_message = MESSAGE(enrolment_rows);

struct answer_body {
	uint32_t status;
	struct span reason, key;
	uint32_t lifetime_s, wait_ms;
	uint64_t stamp_ns;
};

static const struct message_field answer_rows[] = {
	ROW(1, answer_body, status, .kind = MESSAGE_U32, .bounded = true, .most = ENROLMENT_STALE),
	ROW(2, answer_body, reason, .kind = MESSAGE_SPAN),
	ROW(3, answer_body, key, .kind = MESSAGE_SPAN),
	ROW(4, answer_body, lifetime_s, .kind = MESSAGE_U32),
	ROW(5, answer_body, wait_ms, .kind = MESSAGE_U32),
	ROW(6, answer_body, stamp_ns, .kind = MESSAGE_U64),
};
static const struct message answer_message = MESSAGE(answer_rows);

static struct span span_of(const void *data, size_t len)
{
	return (struct span){data, len};
}

static int read_enrolment(const struct buf *plain, const struct frame_header *h,
			  struct enrolment *e, struct error *error)
{
	struct enrolment_body b = {0};

	if (message_decode(&enrolment_message, span_of(plain->data, plain->len), &b, error))
		return -EBADMSG;
	if (b.node.len != strlen(h->node) || memcmp(b.node.data, h->node, b.node.len) != 0 ||
	    b.run.len != FRAME_RUN_LEN || memcmp(b.run.data, h->run, FRAME_RUN_LEN) != 0)
		return error_fail(error, -EBADMSG, "an enrolment under the header of another");
	if (b.reply_key.len != ENROLMENT_PUBLIC_LEN)
		return error_fail(error, -EBADMSG, "an enrolment without a key to answer to");
	if (b.stamp_ns > INT64_MAX)
		return error_fail(error, -EBADMSG, "an enrolment of an impossible time");
	if (!b.credential.len || b.credential.len > ENROLMENT_CREDENTIAL_MAX ||
	    b.kind > CREDENTIAL_SERVICE_ACCOUNT)
		return error_fail(error, -EBADMSG, "an enrolment without a credential that is one");
	*e = (struct enrolment){.stamp_ns = b.stamp_ns,
				.kind = (enum credential_kind)b.kind,
				.credential = b.credential};
	memcpy(e->reply_key, b.reply_key.data, sizeof(e->reply_key));
	memcpy(e->run, b.run.data, sizeof(e->run));
	memcpy(e->node, b.node.data, b.node.len);
	return 0;
}

static int read_answer(const struct buf *plain, struct enrolment_answer *a, struct error *error)
{
	struct answer_body b = {0};

	if (message_decode(&answer_message, span_of(plain->data, plain->len), &b, error))
		return -EBADMSG;
	if (b.status == ENROLMENT_DONE &&
	    (b.key.len != KEY_LEN || sodium_is_zero(b.key.data, KEY_LEN) || !b.lifetime_s))
		return error_fail(error, -EBADMSG, "an answer without a key");
	*a = (struct enrolment_answer){
		.status = (enum enrolment_status)b.status,
		.lifetime_s = b.lifetime_s < ENROLMENT_LIFETIME_MAX_S ? b.lifetime_s
								      : ENROLMENT_LIFETIME_MAX_S,
		.wait_ms = b.wait_ms < WAIT_MS_MAX ? b.wait_ms : WAIT_MS_MAX,
		.stamp_ns = b.stamp_ns < INT64_MAX ? b.stamp_ns : INT64_MAX,
	};
	snprintf(a->reason, sizeof(a->reason), "%.*s", (int)b.reason.len,
		 (const char *)b.reason.data);
	utf8_replace_controls(a->reason, '?'); /* it is logged */
	if (b.status == ENROLMENT_DONE) {
		memcpy(a->key.secret, b.key.data, KEY_LEN);
		key_set_id(&a->key);
	}
	return 0;
}

/* --- frames ----------------------------------------------------------------------------------- */

static void wipe(struct buf *plain)
{
	if (plain->data)
		sodium_memzero(plain->data, plain->len);
	buf_fini(plain);
}

/* 0 with the header, if the rest is the body and `more` bytes. */
static int get_header(const void *data, size_t len, enum frame_type type, size_t more,
		      struct frame_header *h, size_t *header_len, struct error *error)
{
	size_t body_len;
	int rc = frame_get_header(data, len, h, header_len, &body_len, error);

	if (rc)
		return rc;
	if (h->type != type || h->parts != 1)
		return error_fail(error, -EBADMSG, "a frame of another type");
	if (len > FRAME_LEN_MAX || len - *header_len != body_len + more)
		return error_fail(error, -EBADMSG,
				  "another length after the header than it announces");
	return 0;
}

void enrolment_seal(struct buf *out, struct frame_header *header,
		    const uint8_t public_key[ENROLMENT_PUBLIC_LEN], const struct enrolment *e)
{
	const struct enrolment_body b = {
		.reply_key = span_of(e->reply_key, sizeof(e->reply_key)),
		.node = span_of(e->node, strlen(e->node)),
		.run = span_of(e->run, sizeof(e->run)),
		.stamp_ns = e->stamp_ns,
		.kind = e->kind,
		.credential = e->credential,
	};
	struct buf plain = BUF_INIT;
	int rc;

	*header = (struct frame_header){.type = FRAME_ENROLMENT, .sequence = 1, .parts = 1};
	memcpy(header->run, e->run, sizeof(header->run));
	memcpy(header->node, e->node, sizeof(header->node));
	key_id_of(public_key, header->key_id);
	randombytes_buf(header->nonce, sizeof(header->nonce));
	message_encode(&enrolment_message, &b, &plain);
	frame_put_header(out, header, plain.len);
	rc = crypto_box_seal((uint8_t *)buf_reserve(out, plain.len + crypto_box_SEALBYTES),
			     (const uint8_t *)plain.data, plain.len, public_key);
	/* A point of small order seals to nobody: the frame stays one that does not open. */
	if (rc)
		memset(out->data + out->len, 0, plain.len + crypto_box_SEALBYTES);
	out->len += plain.len + crypto_box_SEALBYTES;
	out->data[out->len] = '\0';
	wipe(&plain);
}

int enrolment_open(const void *data, size_t len, const struct enrolment_keys *keys,
		   struct frame_header *header, const struct key **key, struct enrolment *e,
		   struct buf *plain, struct error *error)
{
	const uint8_t *sealed = data;
	const struct key *with;
	struct frame_header h;
	size_t header_len, sealed_len;
	int rc = get_header(data, len, FRAME_ENROLMENT, crypto_box_SEALBYTES, &h, &header_len,
			    error);

	if (rc)
		return rc;
	with = keyring_find(&keys->ring, h.key_id);
	if (!with)
		return error_fail(error, -ENOKEY, "an enrolment to another aggregator's key");
	sealed_len = len - header_len;
	buf_clear(plain);
	if (crypto_box_seal_open((uint8_t *)buf_reserve(plain, sealed_len), sealed + header_len,
				 sealed_len, keys->public_keys[with - keys->ring.keys],
				 with->secret))
		return error_fail(error, -EKEYREJECTED, "an enrolment that does not open");
	plain->len = sealed_len - crypto_box_SEALBYTES;
	rc = read_enrolment(plain, &h, e, error);
	if (rc) {
		wipe(plain);
		return rc;
	}
	*header = h;
	*key = with;
	return 0;
}

void enrolment_answer_seal(struct buf *out, const struct frame_header *request,
			   const uint8_t reply_key[ENROLMENT_PUBLIC_LEN], const struct key *key,
			   const struct enrolment_answer *a)
{
	bool done = a->status == ENROLMENT_DONE;
	const struct answer_body b = {
		.status = a->status,
		.reason = span_of(a->reason, strlen(a->reason)),
		.key = span_of(a->key.secret, done ? KEY_LEN : 0),
		.lifetime_s = a->lifetime_s,
		.wait_ms = a->wait_ms,
		.stamp_ns = a->stamp_ns,
	};
	struct frame_header header = *request;
	struct buf plain = BUF_INIT;
	uint8_t *box;

	header.type = FRAME_ENROLMENT_ANSWER;
	randombytes_buf(header.nonce, sizeof(header.nonce));
	message_encode(&answer_message, &b, &plain);
	frame_put_header(out, &header, plain.len);
	box = (uint8_t *)buf_reserve(out, plain.len + crypto_box_MACBYTES);
	/* The asker chose a point of small order: nobody reads the answer. */
	if (crypto_box_easy(box, (const uint8_t *)plain.data, plain.len, header.nonce, reply_key,
			    key->secret))
		memset(box, 0, plain.len + crypto_box_MACBYTES);
	out->len += plain.len + crypto_box_MACBYTES;
	out->data[out->len] = '\0';
	wipe(&plain);
}

int enrolment_answer_open(const void *data, size_t len, const struct frame_header *request,
			  const uint8_t public_key[ENROLMENT_PUBLIC_LEN],
			  const uint8_t reply_secret[KEY_LEN], struct enrolment_answer *a,
			  struct error *error)
{
	const uint8_t *box = data;
	struct buf plain = BUF_INIT;
	struct frame_header h;
	size_t header_len, box_len;
	int rc = get_header(data, len, FRAME_ENROLMENT_ANSWER, crypto_box_MACBYTES, &h, &header_len,
			    error);

	if (rc)
		return rc;
	if (memcmp(h.run, request->run, sizeof(h.run)) != 0 || strcmp(h.node, request->node) != 0)
		return error_fail(error, -EBADMSG, "an answer under the header of another");
	box_len = len - header_len;
	if (crypto_box_open_easy((uint8_t *)buf_reserve(&plain, box_len), box + header_len, box_len,
				 h.nonce, public_key, reply_secret)) {
		rc = error_fail(error, -EKEYREJECTED,
				"an answer to an enrolment that does not open: forged, damaged, or "
				"to another one");
	} else {
		plain.len = box_len - crypto_box_MACBYTES;
		rc = read_answer(&plain, a, error);
	}
	wipe(&plain);
	return rc;
}
