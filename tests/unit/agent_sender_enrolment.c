/* SPDX-License-Identifier: Apache-2.0 */
/* The sender with an enroller: when it enrols, and what lost and late answers do. */
#include <sodium.h>
#include <sys/stat.h>

#include "agent/enroller.h"
#include "tests/process.h"
#include "tests/sender_scene.h"

static struct enrolment_keys aggregator = {.ring = {.count = 1}};
static struct enroller *enroller;
static char *folder, *key_path, *token_path; /* owned */
static uint8_t key_number;

static int64_t fake_wall_ns(void)
{
	return fake_ns;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
	assert_int_equal(chmod(path, 0600), 0);
}

/* The aggregator's key pair, and the file of the public key. */
static void make_key(uint8_t number)
{
	uint8_t public_key[ENROLMENT_PUBLIC_LEN];
	char text[ENROLMENT_PUBLIC_TEXT_LEN + 1];

	memset(aggregator.ring.keys[0].secret, number, KEY_LEN);
	enrolment_keys_pair(&aggregator);
	enrolment_public_key(&aggregator.ring.keys[0], public_key);
	enrolment_public_write(public_key, text);
	write_file(key_path, text);
}

static void open_enroller(void)
{
	struct enroller_config config = {.kind = CREDENTIAL_JOIN_TOKEN};

	folder = folder_make();
	config.aggregator_key_path = key_path = mem_printf("%s/key", folder);
	config.credential_path = token_path = mem_printf("%s/token", folder);
	make_key(9);
	write_file(token_path, "0123456789abcdef");
	assert_int_equal(enroller_open(&enroller, &config, NULL), 0);
}

static int setup_enrolling(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct sender_config config = {.node = "node-1", .boot_ns = fake_boot_ns};

	open_enroller();
	config.enroller = enroller;
	config.wall_ns = fake_wall_ns;
	config.keys = &s->keys;
	memset(config.run, 7, sizeof(config.run));
	s->node = config.node;
	s->now_ns = START_NS;
	fake_ns = 1800000000 * NS_PER_SEC;
	*state = s;
	return sender_open(&s->sender, "tcp://127.0.0.1:1", &config, NULL);
}

static int teardown_enrolling(void **state)
{
	enroller_close(enroller);
	folder_remove(folder);
	free(key_path);
	free(token_path);
	return teardown(state);
}

/* Answers an enrolment, if DONE with a new key. */
static void answer_enrolment(struct scene *s, const struct buf *enrolment, uint32_t id,
			     enum enrolment_status status)
{
	struct enrolment_answer a = {
		.status = status, .lifetime_s = 3600, .stamp_ns = 5, .wait_ms = 30000};
	struct buf plain = BUF_INIT, frame = BUF_INIT;
	const struct key *key;
	struct frame_header header;
	struct enrolment e;

	assert_int_equal(enrolment_open(enrolment->data, enrolment->len, &aggregator, &header, &key,
					&e, &plain, NULL),
			 0);
	assert_string_equal(e.node, "node-1");
	memset(a.key.secret, ++key_number, KEY_LEN);
	key_set_id(&a.key);
	enrolment_answer_seal(&frame, &header, e.reply_key, key, &a);
	deliver(id, frame.data, frame.len);
	if (status == ENROLMENT_DONE) {
		s->keys.count = 1;
		s->keys.keys[0] = a.key;
	}
	buf_fini(&frame);
	buf_fini(&plain);
}

static void answer_last(struct scene *s, enum enrolment_status status)
{
	answer_enrolment(s, &sock->frame, sock->id, status);
}

/* The first interval is applied under a new key. */
static void begin_enrolled(struct scene *s)
{
	push(&s->ring, 1, 1);
	assert_int_equal(step(s, 0), 1);
	answer_last(s, ENROLMENT_DONE);
	expect_sent(s, 0, 1, true);
	answer_applied(s);
	assert_int_equal(step(s, 0), 0);
}

/* The aggregator drops a key under which no frame opened for a newer one. */
static void test_renewal_waits_for_a_frame(void **state)
{
	struct scene *s = *state;

	push(&s->ring, 1, 1);
	assert_int_equal(step(s, 0), 1);
	answer_last(s, ENROLMENT_DONE);
	sock->ready = false;
	assert_int_equal(step(s, 0), 0);
	sender_renew_key(s->sender, s->now_ns);
	sock->ready = true;
	expect_sent(s, 0, 1, true);
	answer_applied(s);
	push(&s->ring, 2, 2);
	/* The renewal, and the interval under the present key. */
	assert_int_equal(step(s, 0), 2);
	open_frame(s);
	assert_int_equal(s->stats.enrolled, 1);
}

/* The files may have changed after the enrolment under way was made. */
static void test_renewal_during_an_enrolment(void **state)
{
	struct scene *s = *state;

	push(&s->ring, 1, 1);
	assert_int_equal(step(s, 0), 1);
	sender_renew_key(s->sender, s->now_ns);
	answer_last(s, ENROLMENT_DONE);
	expect_sent(s, 0, 1, true);
	answer_applied(s);
	push(&s->ring, 2, 2);
	/* The renewal, and the interval under the present key. */
	assert_int_equal(step(s, 0), 2);
	open_frame(s);
}

/* A connection that answered nothing is replaced, one that answered a frame is kept. */
static void test_lost_enrolments(void **state)
{
	struct scene *s = *state;

	push(&s->ring, 1, 1);
	assert_int_equal(step(s, 0), 1);
	assert_int_equal(step(s, 7000), 1);
	assert_int_equal(sock->reconnects, 1);
	answer_last(s, ENROLMENT_DONE);
	expect_sent(s, 0, 1, true);
	answer_applied(s);
	assert_int_equal(step(s, 0), 0);
	sender_renew_key(s->sender, s->now_ns);
	push(&s->ring, 2, 2);
	assert_int_equal(step(s, 0), 2);
	answer_applied(s);
	assert_int_equal(step(s, 0), 0);
	push(&s->ring, 3, 3);
	assert_int_equal(step(s, 7000), 2);
	assert_int_equal(s->stats.not_enrolled, 2);
	assert_int_equal(sock->reconnects, 1);
}

/* An answer to an enrolment between two copies of a frame is no ack of either. */
static void test_late_answer(void **state)
{
	struct scene *s = *state;
	struct buf enrolment = BUF_INIT;
	uint32_t id;

	begin_enrolled(s);
	push(&s->ring, 2, 2);
	expect_sent(s, 0, 2, false);
	sender_renew_key(s->sender, s->now_ns);
	assert_int_equal(step(s, 0), 1);
	id = sock->id;
	buf_add(&enrolment, sock->frame.data, sock->frame.len);
	/* The second copy, and later an enrolment in place of the lost one. */
	assert_int_equal(step(s, 1300), 1);
	assert_int_equal(step(s, 5700), 1);
	answer_enrolment(s, &enrolment, id, ENROLMENT_DONE);
	assert_int_equal(step(s, 0), 0);
	assert_int_equal(s->stats.bad_acks, 0);
	assert_int_equal(s->stats.enrolled, 1);
	buf_fini(&enrolment);
}

static void test_refused_times(void **state)
{
	struct scene *s = *state;

	push(&s->ring, 1, 1);
	assert_int_equal(step(s, 0), 1);
	answer_last(s, ENROLMENT_STALE);
	assert_int_equal(step(s, 0), 1); /* by the aggregator's clock */
	assert_string_equal(s->stats.last_reason, "");
	for (unsigned int i = 1; i <= 3; i++) {
		answer_last(s, ENROLMENT_STALE);
		assert_int_equal(step(s, 0), 0);
		assert_int_equal(s->stats.not_enrolled, i);
		assert_non_null(strstr(s->stats.last_reason, "another agent"));
		assert_int_equal(step(s, 1000), 1);
	}
	answer_last(s, ENROLMENT_DONE);
	expect_sent(s, 0, 1, true);
}

/* The pause doubles up to four minutes until the node has a key. LATER has its own pause. */
static void test_repeated_refusals(void **state)
{
	static const int pauses_s[] = {30, 60, 120, 240, 240};
	struct scene *s = *state;

	push(&s->ring, 1, 1);
	assert_int_equal(step(s, 0), 1);
	for (size_t i = 0; i < sizeof(pauses_s) / sizeof(pauses_s[0]); i++) {
		answer_last(s, ENROLMENT_REFUSED);
		assert_int_equal(step(s, 0), 0);
		assert_int_equal(step(s, pauses_s[i] * 1000 - 1), 0);
		assert_int_equal(step(s, 1), 1);
	}
	answer_last(s, ENROLMENT_LATER);
	assert_int_equal(step(s, 0), 0);
	assert_int_equal(step(s, 29999), 0);
	assert_int_equal(step(s, 1), 1);
	answer_last(s, ENROLMENT_DONE);
	expect_sent(s, 0, 1, true);
	answer_applied(s);
	assert_int_equal(step(s, 0), 0);
	/* The first refusal after a key. */
	sender_renew_key(s->sender, s->now_ns);
	push(&s->ring, 2, 2);
	assert_int_equal(step(s, 0), 2);
	answer_applied(s);
	assert_int_equal(step(s, 0), 0);
}

/* The file of the public key is read for each enrolment, and an enrolment that is due needs no restart. */
static void test_changed_public_key(void **state)
{
	struct scene *s = *state;

	push(&s->ring, 1, 1);
	assert_int_equal(step(s, 0), 1);
	answer_last(s, ENROLMENT_REFUSED);
	assert_int_equal(step(s, 0), 0);
	make_key(10);
	assert_int_equal(step(s, 30000), 1);
	answer_last(s, ENROLMENT_DONE); /* it opens with the new key alone */
	expect_sent(s, 0, 1, true);
	answer_applied(s);
	assert_int_equal(step(s, 0), 0);
	assert_int_equal(s->stats.enrolled, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_renewal_waits_for_a_frame, setup_enrolling,
						teardown_enrolling),
		cmocka_unit_test_setup_teardown(test_renewal_during_an_enrolment, setup_enrolling,
						teardown_enrolling),
		cmocka_unit_test_setup_teardown(test_lost_enrolments, setup_enrolling,
						teardown_enrolling),
		cmocka_unit_test_setup_teardown(test_late_answer, setup_enrolling,
						teardown_enrolling),
		cmocka_unit_test_setup_teardown(test_refused_times, setup_enrolling,
						teardown_enrolling),
		cmocka_unit_test_setup_teardown(test_repeated_refusals, setup_enrolling,
						teardown_enrolling),
		cmocka_unit_test_setup_teardown(test_changed_public_key, setup_enrolling,
						teardown_enrolling),
	};

	return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
