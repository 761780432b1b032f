/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exchange of enrolment against a second implementation, made of libsodium, protobuf-c and the
 * description in shared/enrolment.h and shared/frame.h only; and frames that must not open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "shared/body.pb-c.h"
#include "shared/enrolment.h"

/* --- the second implementation ---------------------------------------------------------------- */

enum { OWN_HEADER = 76, OWN_NODE_MAX = 253 };

static void own_put(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

/* Returns the length of the header. */
static size_t own_header(uint8_t *out, uint8_t type, const uint8_t public_key[32],
			 const uint8_t run[16], const char *node, const uint8_t nonce[24],
			 size_t body_len)
{
	static const uint8_t magic[] = {'E', 'V', 'K', 'L'};
	uint8_t hash[32];

	memset(out, 0, OWN_HEADER);
	memcpy(out, magic, sizeof(magic));
	out[4] = 1;
	out[5] = type;
	own_put(out + 6, strlen(node), 2);
	crypto_generichash(hash, sizeof(hash), public_key, 32, NULL, 0);
	memcpy(out + 8, hash, 8);
	memcpy(out + 16, run, 16);
	own_put(out + 32, 1, 8);
	own_put(out + 42, 1, 2);
	own_put(out + 44, body_len, 4);
	memcpy(out + 48, nonce, 24);
	for (size_t i = 0; node[i]; i++)
		out[OWN_HEADER + i] = (uint8_t)node[i];
	return OWN_HEADER + strlen(node);
}

struct own_ask {
	uint8_t reply_public[32], reply_secret[32];
	uint8_t run[16];
	const char *node, *credential;
	uint64_t stamp_ns;
};

static size_t own_enrol(uint8_t *frame, const struct own_ask *ask, const uint8_t public_key[32])
{
	Evenkeel__Enrolment e = EVENKEEL__ENROLMENT__INIT;
	uint8_t body[9000], nonce[24];
	size_t body_len, len;

	e.reply_key.data = (uint8_t *)ask->reply_public;
	e.reply_key.len = 32;
	e.node = (char *)ask->node;
	e.run.data = (uint8_t *)ask->run;
	e.run.len = 16;
	e.stamp_ns = ask->stamp_ns;
	e.kind = EVENKEEL__CREDENTIAL_KIND__JOIN_TOKEN;
	e.credential.data = (uint8_t *)ask->credential;
	e.credential.len = strlen(ask->credential);
	body_len = evenkeel__enrolment__pack(&e, body);
	randombytes_buf(nonce, sizeof(nonce));
	len = own_header(frame, 3, public_key, ask->run, ask->node, nonce, body_len);
	assert_int_equal(crypto_box_seal(frame + len, body, body_len, public_key), 0);
	return len + body_len + 48;
}

/* NULL: it does not open. */
static Evenkeel__EnrolmentAnswer *own_open(const struct buf *frame, const struct own_ask *ask,
					   const uint8_t public_key[32])
{
	const uint8_t *at = (const uint8_t *)frame->data;
	size_t header_len = OWN_HEADER + (at[6] | (size_t)at[7] << 8);
	size_t body_len = at[44] | (size_t)at[45] << 8;
	uint8_t body[9000];

	if (at[5] != 4 || frame->len != header_len + body_len + 16 || body_len > sizeof(body) ||
	    crypto_box_open_easy(body, at + header_len, body_len + 16, at + 48, public_key,
				 ask->reply_secret))
		return NULL;
	return evenkeel__enrolment_answer__unpack(NULL, body_len, body);
}

/* --- the scene -------------------------------------------------------------------------------- */

static struct scene {
	struct enrolment_keys keys;
	uint8_t public_key[32];
	struct own_ask ask;
	uint8_t frame[10000];
	size_t len;

	struct frame_header header;
	const struct key *key;
	struct enrolment e;
	struct buf plain;
	struct error error;
} s;

static int setup(void **state)
{
	(void)state;
	if (sodium_init() < 0)
		return -1;
	s = (struct scene){.keys = {.ring = {.count = 2}},
			   .ask = {.node = "node-1", .credential = "let me join", .stamp_ns = 7}};
	for (int i = 0; i < 2; i++)
		randombytes_buf(s.keys.ring.keys[i].secret, 32);
	enrolment_keys_pair(&s.keys);
	crypto_scalarmult_base(s.public_key, s.keys.ring.keys[0].secret);
	crypto_box_keypair(s.ask.reply_public, s.ask.reply_secret);
	memset(s.ask.run, 9, sizeof(s.ask.run));
	s.len = own_enrol(s.frame, &s.ask, s.public_key);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_fini(&s.plain);
	return 0;
}

static int open_enrolment(size_t len)
{
	return enrolment_open(s.frame, len, &s.keys, &s.header, &s.key, &s.e, &s.plain, &s.error);
}

static void test_other_agent(void **state)
{
	(void)state;
	assert_int_equal(open_enrolment(s.len), 0);
	assert_ptr_equal(s.key, &s.keys.ring.keys[0]);
	assert_string_equal(s.e.node, "node-1");
	assert_string_equal(s.header.node, "node-1");
	assert_memory_equal(s.e.run, s.ask.run, 16);
	assert_memory_equal(s.e.reply_key, s.ask.reply_public, 32);
	assert_int_equal(s.e.stamp_ns, 7);
	assert_int_equal(s.e.kind, CREDENTIAL_JOIN_TOKEN);
	assert_int_equal(s.e.credential.len, strlen("let me join"));
	assert_memory_equal(s.e.credential.data, "let me join", s.e.credential.len);
}

static void test_answer_for_other_agent(void **state)
{
	struct enrolment_answer a = {
		.status = ENROLMENT_DONE, .lifetime_s = 60, .reason = "welcome", .wait_ms = 5};
	Evenkeel__EnrolmentAnswer *own;
	struct buf frame = BUF_INIT;
	struct own_ask stranger;

	(void)state;
	memset(a.key.secret, 3, sizeof(a.key.secret));
	assert_int_equal(open_enrolment(s.len), 0);
	enrolment_answer_seal(&frame, &s.header, s.e.reply_key, s.key, &a);
	own = own_open(&frame, &s.ask, s.public_key);
	assert_non_null(own);
	assert_int_equal(own->status, EVENKEEL__ENROLMENT_STATUS__ENROLLED);
	assert_string_equal(own->reason, "welcome");
	assert_int_equal(own->key.len, 32);
	assert_memory_equal(own->key.data, a.key.secret, 32);
	assert_int_equal(own->lifetime_s, 60);
	assert_int_equal(own->wait_ms, 5);
	evenkeel__enrolment_answer__free_unpacked(own, NULL);
	/* Another reader of the frame learns nothing. */
	crypto_box_keypair(stranger.reply_public, stranger.reply_secret);
	assert_null(own_open(&frame, &stranger, s.public_key));
	buf_fini(&frame);
}

/* The product's agent reads what the product's aggregator answers. */
static void test_both_ends(void **state)
{
	struct enrolment ask = {.kind = CREDENTIAL_SERVICE_ACCOUNT,
				.node = "n",
				.credential = {(const uint8_t *)"abc", 3},
				.stamp_ns = 1};
	struct enrolment_answer a = {.status = ENROLMENT_STALE, .stamp_ns = 44}, got;
	struct buf frame = BUF_INIT, answer = BUF_INIT;
	struct frame_header asked;
	uint8_t secret[32];

	(void)state;
	crypto_box_keypair(ask.reply_key, secret);
	enrolment_seal(&frame, &asked, s.public_key, &ask);
	assert_int_equal(enrolment_open(frame.data, frame.len, &s.keys, &s.header, &s.key, &s.e,
					&s.plain, &s.error),
			 0);
	enrolment_answer_seal(&answer, &s.header, s.e.reply_key, s.key, &a);
	assert_int_equal(enrolment_answer_open(answer.data, answer.len, &asked, s.public_key,
					       secret, &got, &s.error),
			 0);
	assert_int_equal(got.status, ENROLMENT_STALE);
	assert_int_equal(got.stamp_ns, 44);
	/* Nobody else answers for the aggregator. */
	buf_clear(&answer);
	enrolment_answer_seal(&answer, &s.header, s.e.reply_key, &s.keys.ring.keys[1], &a);
	assert_int_equal(enrolment_answer_open(answer.data, answer.len, &asked, s.public_key,
					       secret, &got, &s.error),
			 -EKEYREJECTED);
	buf_fini(&frame);
	buf_fini(&answer);
}

static void test_every_cut_and_change(void **state)
{
	(void)state;
	for (size_t len = 0; len < s.len; len++)
		assert_true(open_enrolment(len) != 0);
	/* The nonce, and the age, are not used. */
	for (size_t i = 0; i < s.len; i++) {
		int rc;

		if (i >= 48 && i < OWN_HEADER)
			continue;
		s.frame[i] ^= 1;
		rc = open_enrolment(s.len);
		/* Bits of the sequence that stay above 0 mean nothing. */
		assert_true(rc != 0 || (i >= 32 && i < 40));
		s.frame[i] ^= 1;
	}
	assert_int_equal(open_enrolment(s.len), 0);
}

static void test_other_keys(void **state)
{
	uint8_t strange[32];

	(void)state;
	randombytes_buf(strange, sizeof(strange));
	s.len = own_enrol(s.frame, &s.ask, strange);
	assert_int_equal(open_enrolment(s.len), -ENOKEY);
	/* Under the id of the known key. */
	s.len = own_enrol(s.frame, &s.ask, strange);
	memcpy(s.frame + 8, s.keys.ring.keys[0].id, 8);
	assert_int_equal(open_enrolment(s.len), -EKEYREJECTED);
}

static void test_bodies_that_are_none(void **state)
{
	(void)state;
	/* The header of another node, of the same length. */
	s.frame[OWN_HEADER + 5] = '2';
	assert_int_equal(open_enrolment(s.len), -EBADMSG);
	/* Its credential does not stay in memory. */
	assert_null(s.plain.data);
	s.ask.credential = "";
	s.len = own_enrol(s.frame, &s.ask, s.public_key);
	assert_int_equal(open_enrolment(s.len), -EBADMSG);
	s.ask.credential = "x";
	s.ask.stamp_ns = UINT64_MAX;
	s.len = own_enrol(s.frame, &s.ask, s.public_key);
	assert_int_equal(open_enrolment(s.len), -EBADMSG);
}

static void test_public_key_text(void **state)
{
	char text[ENROLMENT_PUBLIC_TEXT_LEN + 1];
	uint8_t read[32];

	(void)state;
	enrolment_public_write(s.public_key, text);
	assert_int_equal(enrolment_public_read(read, text, strlen(text), &s.error), 0);
	assert_memory_equal(read, s.public_key, 32);
	assert_int_equal(enrolment_public_read(read, text, strlen(text) - 4, &s.error), -EINVAL);
	assert_int_equal(enrolment_public_read(read, "", 0, &s.error), -EINVAL);
	memset(text, 'A', strlen(text) - 1);
	assert_int_equal(enrolment_public_read(read, text, strlen(text), &s.error), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_other_agent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_answer_for_other_agent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_both_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_cut_and_change, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bodies_that_are_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_public_key_text, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
