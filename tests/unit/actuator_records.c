/* SPDX-License-Identifier: Apache-2.0 */
/* What the actuator keeps in the cluster: the mark of a node, and the Lease. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "aggregator/actuator/lease.h"
#include "aggregator/actuator/mark.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "tests/stack.h"

/* --- marks ------------------------------------------------------------------------------------ */

static void test_mark_is_read_back(void **state)
{
	(void)state;
	for (enum mark_phase phase = MARK_CLAIMED; phase < MARK_PHASES; phase++) {
		struct mark m = {phase, "plan-1", "pod_1", 1790000000 * NS_PER_SEC, phase % 2};
		struct buf text = BUF_INIT;
		struct mark again;

		mark_write(&m, &text);
		mark_read(text.data, &again);
		assert_int_equal(again.phase, phase);
		assert_string_equal(again.plan, m.plan);
		assert_string_equal(again.holder, m.holder);
		assert_true(again.since_ns == m.since_ns);
		assert_int_equal(again.cordoned, m.cordoned);
		buf_fini(&text);
	}
}

static void test_unreadable_marks(void **state)
{
	/* clang-format off */
	static const char *const cases[] = {
		"",
		"[]",
		"{\"plan\":\"\xff\",\"holder\":\"h\",\"since\":\"2026-01-01T00:00:00Z\",\"phase\":\"claimed\"}",
		"{\"plan\":\"p\"",
		"{}",
		"{\"plan\":\"0123456789012345678901234\"}",
		"{\"plan\":\"p\",\"holder\":1}",
		"{\"plan\":\"p\",\"holder\":\"h\",\"since\":\"now\"}",
		"{\"plan\":\"p\",\"holder\":\"h\",\"since\":\"2026-01-01T00:00:00Z\"}",
		"{\"plan\":\"p\",\"holder\":\"h\",\"since\":\"2026-01-01T00:00:00Z\",\"phase\":\"none\"}",
		"{\"plan\":\"p\",\"holder\":\"h\",\"since\":\"1700-01-01T00:00:00Z\",\"phase\":\"claimed\"}",
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mark m;

		mark_read(cases[i], &m);
		assert_int_equal(m.phase, MARK_GARBLED);
	}
}

static void test_moves_of_a_mark(void **state)
{
	(void)state;
	assert_true(mark_may_follow(MARK_NONE, MARK_CLAIMED));
	assert_true(mark_may_follow(MARK_ROLLED_BACK, MARK_CLAIMED));
	assert_false(mark_may_follow(MARK_EVICTING, MARK_CLAIMED));
	assert_false(mark_may_follow(MARK_CLAIMED, MARK_EVICTING));
	assert_true(mark_may_follow(MARK_VERIFIED, MARK_DRAINED));
	assert_true(mark_may_follow(MARK_DRAINED, MARK_ROLLED_BACK));
	assert_true(mark_may_follow(MARK_GARBLED, MARK_ROLLED_BACK));
	assert_false(mark_may_follow(MARK_GARBLED, MARK_CLAIMED));
}

/* --- the Lease -------------------------------------------------------------------------------- */

static void read_lease(struct lease_record *r, const char *holder, const char *renewed,
		       int64_t now_ns)
{
	cJSON *json = cJSON_CreateObject(), *spec = cJSON_AddObjectToObject(json, "spec");

	cJSON_AddStringToObject(spec, "holderIdentity", holder);
	cJSON_AddStringToObject(spec, "renewTime", renewed);
	cJSON_AddNumberToObject(spec, "leaseTransitions", 7);
	cJSON_AddStringToObject(cJSON_AddObjectToObject(json, "metadata"), "resourceVersion", "4");
	assert_true(lease_read(json, now_ns, r));
	cJSON_Delete(json);
}

/* It expires 15 s after the last change that was seen, whatever clock wrote its times. */
static void test_who_holds_it(void **state)
{
	struct lease_record r = {.holder = ""};
	int64_t now_ns = 100 * NS_PER_SEC;

	(void)state;
	read_lease(&r, "a", "2020-01-01T00:00:00.000000Z", now_ns);
	assert_int_equal(lease_decide(&r, "a", now_ns), LEASE_RENEW);
	for (int i = 0; i <= 15; i++) {
		read_lease(&r, "b", "2099-01-01T00:00:00.000000Z", now_ns + i * NS_PER_SEC);
		assert_int_equal(lease_decide(&r, "a", now_ns + i * NS_PER_SEC), LEASE_WAIT);
	}
	now_ns += 16 * NS_PER_SEC;
	read_lease(&r, "b", "2099-01-01T00:00:02.000000Z", now_ns);
	read_lease(&r, "b", "2099-01-01T00:00:02.000000Z", now_ns + 14 * NS_PER_SEC);
	assert_int_equal(lease_decide(&r, "a", now_ns + 15 * NS_PER_SEC), LEASE_WAIT);
	assert_int_equal(lease_decide(&r, "a", now_ns + 15 * NS_PER_SEC + 1), LEASE_TAKE);
	/* Another holder of the same time. */
	now_ns += 14 * NS_PER_SEC;
	read_lease(&r, "c", "2099-01-01T00:00:02.000000Z", now_ns);
	assert_int_equal(lease_decide(&r, "a", now_ns + 15 * NS_PER_SEC), LEASE_WAIT);
	assert_int_equal(lease_decide(&r, "a", now_ns + 15 * NS_PER_SEC + 1), LEASE_TAKE);
}

/* A Lease that is deleted while "b" holds it comes back without a holder, for both. */
static void test_a_lease_that_is_deleted(void **state)
{
	struct lease_record a = {.holder = ""}, b = {.holder = ""};
	int64_t now_ns = 100 * NS_PER_SEC;

	(void)state;
	read_lease(&b, "b", "2026-01-01T00:00:00.000000Z", now_ns);
	assert_int_equal(lease_decide(&b, "b", now_ns), LEASE_RENEW);
	now_ns += NS_PER_SEC;
	read_lease(&a, "", "", now_ns);
	read_lease(&b, "", "", now_ns);
	for (int i = 0; i <= 15; i++) {
		assert_int_equal(lease_decide(&a, "a", now_ns + i * NS_PER_SEC), LEASE_WAIT);
		assert_int_equal(lease_decide(&b, "b", now_ns + i * NS_PER_SEC), LEASE_WAIT);
	}
	assert_int_equal(lease_decide(&a, "a", now_ns + 16 * NS_PER_SEC), LEASE_TAKE);
}

/* An answer that is no Lease says nothing about its holder. */
static void test_answers_that_are_no_lease(void **state)
{
	static const char *const texts[] = {"", "[]", "{}", "{\"spec\":{\"holderIdentity\":\"\"}}",
					    "{\"metadata\":{\"resourceVersion\":4}}"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct lease_record r = {.holder = ""};
		cJSON *json = cJSON_Parse(texts[i]);

		read_lease(&r, "b", "x", 1);
		assert_false(lease_read(json, 9, &r));
		assert_string_equal(r.holder, "b");
		assert_int_equal(lease_decide(&r, "a", 10), LEASE_WAIT);
		cJSON_Delete(json);
	}
}

/* Members of objects that others may write: transitions, replicas, seconds. */
static void test_counts(void **state)
{
	static const struct {
		const char *text;
		int64_t count;
	} cases[] = {{"0", 0},	 {"7.9", 7},	{"99", 99}, {"100", -5},   {"-1", -5},
		     {"{}", -5}, {"\"7\"", -5}, {"", -5},   {"1e300", -5}, {"null", -5}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cJSON *json = cJSON_Parse(cases[i].text);

		assert_int_equal(document_count(json, "", 100, -5), cases[i].count);
		cJSON_Delete(json);
	}
}

static void expect_body(const struct lease_record *r, const char *holder, const char *text)
{
	struct buf body = BUF_INIT;

	lease_write(r, holder, 1790000000 * NS_PER_SEC + 123456789, &body);
	assert_string_equal(body.data, text);
	buf_fini(&body);
}

static void test_requests_of_the_lease(void **state)
{
	struct lease_record r = {.holder = ""};

	(void)state;
	read_lease(&r, "a", "x", 1);
	expect_body(&r, "a",
		    "{\"metadata\":{\"resourceVersion\":\"4\"},\"spec\":{\"holderIdentity\":\"a\","
		    "\"leaseDurationSeconds\":15,\"renewTime\":\"2026-09-21T14:13:20.123456Z\"}}");
	expect_body(&r, "b",
		    "{\"metadata\":{\"resourceVersion\":\"4\"},\"spec\":{\"holderIdentity\":\"b\","
		    "\"leaseDurationSeconds\":15,\"renewTime\":\"2026-09-21T14:13:20.123456Z\","
		    "\"acquireTime\":\"2026-09-21T14:13:20.123456Z\",\"leaseTransitions\":8}}");
}

static void expect_paused(const char *annotations, bool paused)
{
	struct lease_record r = {.holder = ""};
	cJSON *json = cJSON_CreateObject(), *meta = cJSON_AddObjectToObject(json, "metadata");

	cJSON_AddStringToObject(meta, "resourceVersion", "4");
	cJSON_AddItemToObject(meta, "annotations", cJSON_Parse(annotations));
	assert_true(lease_read(json, 1, &r));
	assert_int_equal(r.paused, paused);
	assert_int_equal(r.transitions, 0);
	cJSON_Delete(json);
}

static void test_pause(void **state)
{
	(void)state;
	expect_paused("{}", false);
	expect_paused("{\"evenkeel.io/paused\":\"\"}", true);
	expect_paused("{\"evenkeel.io/paused\":\"true\"}", true);
	expect_paused("{\"evenkeel.io/paused\":\"false\"}", false);
	expect_paused("{\"evenkeel.io/paused\":null}", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mark_is_read_back),
		cmocka_unit_test(test_unreadable_marks),
		cmocka_unit_test(test_moves_of_a_mark),
		cmocka_unit_test(test_who_holds_it),
		cmocka_unit_test(test_a_lease_that_is_deleted),
		cmocka_unit_test(test_answers_that_are_no_lease),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_requests_of_the_lease),
		cmocka_unit_test(test_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
