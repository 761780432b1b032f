/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/frame.h"
#include "shared/mem.h"

static const char body_text[] = "thirty-two bytes of plain body..";

enum { BODY_LEN = sizeof(body_text) - 1 };

struct scene {
	struct keyring ring; /* two keys */
	struct keyring empty;
	struct frame_header sealed;
	struct buf frame;
	struct frame_header header; /* what opening gave */
	struct buf body;
	struct error why;
};

static void make_key(struct key *key, uint8_t fill)
{
	memset(key->id, fill, sizeof(key->id));
	memset(key->secret, fill ^ 0xff, sizeof(key->secret));
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	make_key(&s->ring.keys[0], 1);
	make_key(&s->ring.keys[1], 2);
	s->ring.count = 2;
	s->sealed = (struct frame_header){.type = FRAME_INTERVAL,
					  .sequence = 0x0102030405060708,
					  .part = 3,
					  .parts = 7,
					  .age_ms = 0x01020304};
	memset(s->sealed.run, 0xab, sizeof(s->sealed.run));
	memcpy(s->sealed.node, "node-1.example", 15);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	buf_fini(&s->frame);
	buf_fini(&s->body);
	free(s);
	return 0;
}

static void seal(struct scene *s, const struct key *key, const uint8_t *request_nonce)
{
	buf_clear(&s->frame);
	frame_seal(&s->frame, &s->sealed, key, request_nonce, body_text, BODY_LEN);
}

static int open_with(struct scene *s, const struct keyring *ring, const uint8_t *request_nonce)
{
	memset(&s->header, 0x55, sizeof(s->header));
	return frame_open(s->frame.data, s->frame.len, ring, request_nonce, &s->header, &s->body,
			  &s->why);
}

static void expect_opened(const struct scene *s)
{
	assert_int_equal(s->header.type, s->sealed.type);
	assert_int_equal(s->header.sequence, s->sealed.sequence);
	assert_int_equal(s->header.part, s->sealed.part);
	assert_int_equal(s->header.parts, s->sealed.parts);
	assert_int_equal(s->header.age_ms, s->sealed.age_ms);
	assert_memory_equal(s->header.run, s->sealed.run, FRAME_RUN_LEN);
	assert_memory_equal(s->header.nonce, s->sealed.nonce, FRAME_NONCE_LEN);
	assert_memory_equal(s->header.key_id, s->sealed.key_id, KEY_ID_LEN);
	assert_string_equal(s->header.node, s->sealed.node);
	assert_int_equal(s->body.len, BODY_LEN);
	assert_memory_equal(s->body.data, body_text, BODY_LEN);
}

/* The documented layout, byte by byte. */
static void test_layout(void **state)
{
	static const uint8_t fixed[] = {'E', 'V', 'K', 'L', 1, 1, 14, 0, 2, 2, 2, 2, 2, 2, 2, 2};
	static const uint8_t numbers[] = {8, 7, 6, 5, 4, 3, 2, 1, 3, 0, 7, 0, BODY_LEN, 0, 0, 0};
	static const uint8_t age[] = {4, 3, 2, 1};
	struct scene *s = *state;

	seal(s, &s->ring.keys[1], NULL);
	assert_int_equal(s->frame.len, 76 + 14 + BODY_LEN + 16);
	assert_memory_equal(s->frame.data, fixed, sizeof(fixed));
	assert_memory_equal(s->frame.data + 16, s->sealed.run, 16);
	assert_memory_equal(s->frame.data + 32, numbers, sizeof(numbers));
	assert_memory_equal(s->frame.data + 48, s->sealed.nonce, 24);
	assert_memory_equal(s->frame.data + 72, age, sizeof(age));
	assert_memory_equal(s->frame.data + 76, "node-1.example", 14);
}

static void test_round_trip(void **state)
{
	struct scene *s = *state;

	buf_add_str(&s->body, "what was there before");
	for (int key = 0; key < 2; key++) {
		seal(s, &s->ring.keys[key], NULL);
		assert_int_equal(open_with(s, &s->ring, NULL), 0);
		expect_opened(s);
	}
	seal(s, NULL, NULL);
	assert_int_equal(open_with(s, &s->empty, NULL), 0);
	expect_opened(s);
	/* A body may be empty, and appending keeps what the buffer holds. */
	buf_clear(&s->frame);
	buf_add_str(&s->frame, "x");
	frame_seal(&s->frame, &s->sealed, &s->ring.keys[0], NULL, NULL, 0);
	assert_int_equal(frame_open(s->frame.data + 1, s->frame.len - 1, &s->ring, NULL, &s->header,
				    &s->body, NULL),
			 0);
	assert_int_equal(s->body.len, 0);
}

/* No bit of a sealed frame can be changed and no byte be missing or added. */
static void test_damage(void **state)
{
	struct scene *s = *state;

	seal(s, &s->ring.keys[0], NULL);
	buf_add_str(&s->body, "untouched");
	for (size_t bit = 0; bit < s->frame.len * 8; bit++) {
		s->frame.data[bit / 8] ^= (char)(1 << bit % 8);
		assert_true(open_with(s, &s->ring, NULL) < 0);
		assert_string_equal(s->body.data, "untouched");
		s->frame.data[bit / 8] ^= (char)(1 << bit % 8);
	}
	for (size_t len = 0; len < s->frame.len; len++) {
		/* Of exactly that size, so that reading beyond it would be seen. */
		char *cut = mem_alloc(len);

		memcpy(cut, s->frame.data, len);
		assert_int_equal(frame_open(cut, len, &s->ring, NULL, &s->header, &s->body,
					    &s->why),
				 -EBADMSG);
		free(cut);
	}
	buf_add_char(&s->frame, 'x');
	assert_int_equal(open_with(s, &s->ring, NULL), -EBADMSG);
}

static void test_errors(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
		int rc;
	} cases[] = {
		{0, 'X', -EBADMSG}, /* magic */
		{4, 2, -EPROTO}, /* version */
		{5, 0, -EBADMSG}, /* type */
		{5, 3, -EBADMSG},	{6, 0, -EBADMSG}, /* node name length */
		{6, 254, -EBADMSG},	{7, 1, -EBADMSG},
		{76, '/', -EBADMSG}, /* node name */
		{76, 0, -EBADMSG},	{8, 9, -ENOKEY}, /* key id */
		{32, 9, -EKEYREJECTED}, /* sequence */
		{40, 7, -EBADMSG}, /* part of 7 */
		{41, 1, -EBADMSG},	{42, 0, -EBADMSG}, /* parts */
		{42, 17, -EBADMSG},	{42, 6, -EKEYREJECTED},
		{44, 1, -EBADMSG}, /* body length */
		{47, 0xff, -EBADMSG},	{77, 'a', -EKEYREJECTED},
		{72, 5, -EKEYREJECTED}, /* age */
	};
	struct scene *s = *state;

	seal(s, &s->ring.keys[0], NULL);
	assert_int_equal(open_with(s, &s->ring, NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char was = s->frame.data[cases[i].at];

		s->frame.data[cases[i].at] = (char)cases[i].value;
		assert_int_equal(open_with(s, &s->ring, NULL), cases[i].rc);
		assert_true(s->why.text[0] != '\0');
		s->frame.data[cases[i].at] = was;
	}
	memset(s->frame.data + 32, 0, 8);
	assert_int_equal(open_with(s, &s->ring, NULL), -EBADMSG);
}

/* A refusal must be able to name who is refused. */
static void test_header_of_refused(void **state)
{
	struct scene *s = *state;
	char *huge;

	seal(s, &s->ring.keys[0], NULL);
	assert_int_equal(open_with(s, &s->empty, NULL), -ENOKEY);
	assert_string_equal(s->header.node, "node-1.example");
	seal(s, NULL, NULL);
	assert_int_equal(open_with(s, &s->ring, NULL), -ENOKEY);
	assert_int_equal(s->header.sequence, s->sealed.sequence);

	/* Too long is told only to one who holds the key. */
	huge = mem_zalloc(1, FRAME_LEN_MAX);
	buf_clear(&s->frame);
	frame_seal(&s->frame, &s->sealed, &s->ring.keys[0], NULL, huge, FRAME_LEN_MAX);
	assert_int_equal(open_with(s, &s->ring, NULL), -EMSGSIZE);
	assert_string_equal(s->header.node, "node-1.example");
	s->frame.data[s->frame.len - 1] ^= 1;
	assert_int_equal(open_with(s, &s->ring, NULL), -EKEYREJECTED);
	free(huge);
}

/* An ack belongs to one request, sealed or in clear. */
static void test_ack_is_bound(void **state)
{
	struct scene *s = *state;
	uint8_t nonce[FRAME_NONCE_LEN] = {1, 2, 3}, other[FRAME_NONCE_LEN] = {1, 2, 4};

	s->sealed.type = FRAME_ACK;
	for (int clear = 0; clear < 2; clear++) {
		const struct keyring *ring = clear ? &s->empty : &s->ring;

		seal(s, keyring_sealing(ring), nonce);
		assert_int_equal(open_with(s, ring, nonce), 0);
		expect_opened(s);
		assert_int_equal(open_with(s, ring, other), -EKEYREJECTED);
	}
	seal(s, &s->ring.keys[0], nonce);
	assert_int_equal(open_with(s, &s->ring, NULL), -EKEYREJECTED);
}

static void test_nonces_differ(void **state)
{
	struct scene *s = *state;
	uint8_t first[FRAME_NONCE_LEN];

	seal(s, &s->ring.keys[0], NULL);
	memcpy(first, s->sealed.nonce, sizeof(first));
	seal(s, &s->ring.keys[0], NULL);
	assert_memory_not_equal(first, s->sealed.nonce, sizeof(first));
}

static void test_node_names(void **state)
{
	static const struct {
		const char *name;
		int valid;
	} cases[] = {
		{"a", 1},
		{"node-1.example.org", 1},
		{"ip_10_0_0_1", 1},
		{"NODE9", 1},
		{"", 0},
		{"a b", 0},
		{"a/b", 0},
		{"caf\xc3\xa9", 0},
		{"a\nb", 0},
		{"a:b", 0},
		{"a@b", 0},
		{"[a]", 0},
		{"{a\"", 0},
		{"-", 1},
	};
	char name[NODE_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(frame_node_name_valid(cases[i].name, strlen(cases[i].name)),
				 cases[i].valid);
	memset(name, 'n', sizeof(name));
	assert_true(frame_node_name_valid(name, NODE_NAME_MAX));
	assert_false(frame_node_name_valid(name, NODE_NAME_MAX + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_layout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_header_of_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ack_is_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonces_differ, setup, teardown),
		cmocka_unit_test(test_node_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
