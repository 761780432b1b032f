/* SPDX-License-Identifier: Apache-2.0 */
/* Which enrolments get keys, which keys open frames, and what the database gives back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/state/node_keys.h"
#include "shared/clock.h"

enum { NODES = 2 };
#define NOW	 (1800000000 * NS_PER_SEC)
#define LIFETIME (NODE_KEY_LIFETIME_S * NS_PER_SEC)

static struct node_keys *keys;
static struct enrolment_answer a;
static bool is_answer_lost; /* so that no frame opens under the key */

static int setup(void **state)
{
	(void)state;
	keys = node_keys_new(NODES);
	is_answer_lost = false;
	return sodium_init() < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	node_keys_free(keys);
	return 0;
}

/* asker: a byte that stands for the reply key, and for the secret. */
static enum enrolment_status ask_of(const char *pod, const char *node, uint8_t asker,
				    int64_t stamp_ns, int64_t now_ns)
{
	struct enrolment e = {.stamp_ns = (uint64_t)stamp_ns};
	struct node_key *given;
	uint8_t secret[KEY_LEN];

	snprintf(e.node, sizeof(e.node), "%s", node);
	memset(e.reply_key, asker, sizeof(e.reply_key));
	memset(secret, asker, sizeof(secret));
	node_keys_issue(keys, &e, pod, secret, now_ns, &a);
	given = a.status == ENROLMENT_DONE ? node_keys_find(keys, a.key.id, now_ns) : NULL;
	if (given)
		given->used = !is_answer_lost;
	return a.status;
}

static enum enrolment_status ask(const char *node, uint8_t asker, int64_t stamp_ns, int64_t now_ns)
{
	return ask_of("", node, asker, stamp_ns, now_ns);
}

static const char *owner(uint8_t asker, int64_t now_ns)
{
	const struct node_key *found;
	struct key key;

	memset(key.secret, asker, sizeof(key.secret));
	key_set_id(&key);
	found = node_keys_find(keys, key.id, now_ns);
	return found ? found->node : "";
}

static void test_two_newest_keys_open(void **state)
{
	(void)state;
	for (uint8_t i = 1; i <= 3; i++)
		assert_int_equal(ask("n", i, NOW + i, NOW), ENROLMENT_DONE);
	assert_int_equal(a.lifetime_s, NODE_KEY_LIFETIME_S);
	assert_int_equal(a.key.secret[5], 3);
	assert_string_equal(owner(1, NOW), "");
	assert_string_equal(owner(2, NOW), "n");
	assert_string_equal(owner(3, NOW), "n");
	assert_string_equal(owner(3, NOW + LIFETIME - 1), "n");
	assert_string_equal(owner(3, NOW + LIFETIME), "");
}

static void test_keys_without_frames(void **state)
{
	(void)state;
	assert_int_equal(ask("n", 1, NOW + 1, NOW), ENROLMENT_DONE);
	is_answer_lost = true;
	for (uint8_t i = 2; i <= 4; i++)
		assert_int_equal(ask("n", i, NOW + i, NOW), ENROLMENT_DONE);
	assert_string_equal(owner(1, NOW), "n");
	assert_string_equal(owner(2, NOW), "");
	assert_string_equal(owner(3, NOW), "");
	assert_string_equal(owner(4, NOW), "n");
	/* Another pod ends them all. */
	assert_int_equal(ask_of("b/2", "n", 5, NOW + 5, NOW), ENROLMENT_DONE);
	assert_string_equal(owner(1, NOW), "");
	assert_string_equal(owner(4, NOW), "");
	assert_string_equal(owner(5, NOW), "n");
}

static void test_pods(void **state)
{
	struct buf text = BUF_INIT;
	struct error error;

	(void)state;
	assert_null(node_keys_pod(keys, "n", NOW));
	assert_int_equal(ask_of("a/1", "n", 1, NOW, NOW), ENROLMENT_DONE);
	assert_int_equal(ask_of("a/1", "n", 2, NOW + 1, NOW), ENROLMENT_DONE);
	assert_string_equal(owner(1, NOW), "n");
	assert_int_equal(ask_of("b/2", "n", 3, NOW + 2, NOW), ENROLMENT_DONE);
	assert_string_equal(owner(1, NOW), "");
	assert_string_equal(owner(2, NOW), "");
	assert_string_equal(owner(3, NOW), "n");
	node_keys_write(keys, NOW, &text);
	node_keys_free(keys);
	keys = node_keys_new(NODES);
	assert_int_equal(node_keys_read(keys, text.data, text.len, &error), 0);
	assert_string_equal(node_keys_pod(keys, "n", NOW), "b/2");
	assert_null(node_keys_pod(keys, "n", NOW + LIFETIME));
	buf_fini(&text);
}

static void test_copies_of_enrolments(void **state)
{
	(void)state;
	assert_int_equal(ask("n", 1, NOW, NOW), ENROLMENT_DONE);
	assert_int_equal(ask("n", 1, NOW, NOW + NS_PER_SEC), ENROLMENT_DONE);
	assert_int_equal(a.key.secret[0], 1);
	assert_int_equal(ask("n", 2, NOW + 1, NOW + 1), ENROLMENT_DONE);
	/* The first one again: it is older than the second. */
	assert_int_equal(ask("n", 1, NOW, NOW + 2), ENROLMENT_STALE);
	assert_int_equal(a.stamp_ns, NOW + 2);
	assert_string_equal(owner(1, NOW), "n");
	assert_string_equal(owner(2, NOW), "n");
	assert_int_equal(node_keys_generation(keys), 2);
}

static void test_clocks(void **state)
{
	static const struct {
		int64_t ahead_ns;
		enum enrolment_status want;
	} cases[] = {
		{ENROLMENT_CLOCK_NS, ENROLMENT_DONE},
		{ENROLMENT_CLOCK_NS + 1, ENROLMENT_STALE},
		{-ENROLMENT_CLOCK_NS, ENROLMENT_DONE},
		{-ENROLMENT_CLOCK_NS - 1, ENROLMENT_STALE},
		{-NOW, ENROLMENT_STALE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		node_keys_free(keys);
		keys = node_keys_new(NODES);
		assert_int_equal(ask("n", 1, NOW + cases[i].ahead_ns, NOW), cases[i].want);
		if (cases[i].want == ENROLMENT_STALE)
			assert_int_equal(ask("n", 1, (int64_t)a.stamp_ns, NOW), ENROLMENT_DONE);
	}
	/* The clock of the last one was ahead: the next stamp is above it. */
	assert_int_equal(ask("m", 2, NOW + ENROLMENT_CLOCK_NS, NOW), ENROLMENT_DONE);
	assert_int_equal(ask("m", 3, NOW + 5, NOW + 5), ENROLMENT_STALE);
	assert_int_equal(ask("m", 3, (int64_t)a.stamp_ns, NOW + 5), ENROLMENT_DONE);
	/* The aggregator's clock was ahead: stamps from that time do not lock the node out. */
	assert_int_equal(ask("m", 4, NOW + LIFETIME, NOW + LIFETIME), ENROLMENT_DONE);
	assert_int_equal(ask("m", 5, NOW + 9, NOW + 9), ENROLMENT_DONE);
	assert_int_equal(ask("m", 6, NOW + 9, NOW + 9), ENROLMENT_STALE);
}

static void test_full_table(void **state)
{
	(void)state;
	assert_int_equal(ask("a", 1, NOW, NOW), ENROLMENT_DONE);
	assert_int_equal(ask("b", 2, NOW, NOW), ENROLMENT_DONE);
	assert_int_equal(ask("c", 3, NOW, NOW), ENROLMENT_LATER);
	assert_true(a.reason[0] && a.wait_ms);
	/* Room for those whose keys have ended. */
	assert_int_equal(ask("c", 3, NOW + LIFETIME, NOW + LIFETIME), ENROLMENT_DONE);
	assert_string_equal(owner(3, NOW + LIFETIME), "c");
}

static void test_database(void **state)
{
	struct buf text = BUF_INIT;
	struct error error;

	(void)state;
	ask("a", 1, NOW, NOW);
	ask("a", 2, NOW + 1, NOW);
	ask("b", 3, NOW + LIFETIME, NOW + LIFETIME - 1);
	node_keys_write(keys, NOW + 2, &text);
	node_keys_free(keys);
	keys = node_keys_new(NODES);
	assert_int_equal(node_keys_read(keys, text.data, text.len, &error), 0);
	assert_string_equal(owner(1, NOW), "a");
	assert_string_equal(owner(2, NOW), "a");
	assert_string_equal(owner(3, NOW), "b");
	assert_string_equal(owner(2, NOW + LIFETIME), "");
	/* Copies stay useless. */
	assert_int_equal(ask("a", 1, NOW, NOW + 2), ENROLMENT_STALE);
	/* A key whose time has ended is not written. */
	buf_clear(&text);
	node_keys_write(keys, NOW + LIFETIME, &text);
	node_keys_free(keys);
	keys = node_keys_new(NODES);
	assert_int_equal(node_keys_read(keys, text.data, text.len, &error), 0);
	assert_string_equal(owner(2, NOW), "");
	assert_string_equal(owner(3, NOW), "b");
	for (size_t len = 1; len < text.len; len++)
		assert_int_equal(node_keys_read(keys, text.data, len, &error), -EBADMSG);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_two_newest_keys_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keys_without_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pods, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copies_of_enrolments, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_database, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
