/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that reclaim room of quotas, and claims of that room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/reservations.h"
#include "aggregator/state/victim_log.h"
#include "tests/api_fixture.h"
#include "tests/quota_fixture.h"
#include "tests/view_fixture.h"

#define number(path) api_fixture_number(&f, path)
#define text(path)   api_fixture_text(&f, path)

static struct api_fixture f;

static int close_fixture(void **state)
{
	(void)state;
	reservations_free(f.ctx.reservations);
	api_fixture_close(&f);
	return 0;
}

/*
 * team-a uses 10 CPUs and is guaranteed 4; team-b waits for 2 twice, within its 8, and for 8, which
 * are more than that.
 */
static struct view *make_borrowed(void)
{
	struct buf items = BUF_INIT;
	struct view *v;

	buf_add_str(&items, quota_fixture_node("a", "cpu: 6"));
	buf_add_str(&items, quota_fixture_node("b", "cpu: 6"));
	buf_add_str(&items, quota_fixture_quota("team-a", "q", "cpu: 4", "cpu: 12"));
	buf_add_str(&items, quota_fixture_quota("team-b", "q", "cpu: 8", "cpu: 12"));
	for (int i = 0; i < 5; i++) {
		char name[8];

		snprintf(name, sizeof(name), "p%d", i);
		buf_add_str(&items,
			    quota_fixture_pod("team-a", name, i < 3 ? "a" : "b", i, "cpu: 2"));
	}
	buf_add_str(&items, quota_fixture_pod("team-b", "p", "b", 0, "cpu: 2"));
	buf_add_str(&items, quota_fixture_pod("team-b", "big", "", 9, "cpu: 8"));
	buf_add_str(&items, quota_fixture_pod("team-b", "first", "", 5, "cpu: 4"));
	/* Two are not pending any more: in deletion, and failed. */
	buf_add_str(&items, "- {apiVersion: v1, kind: Pod, metadata: {namespace: team-b, name: "
			    "late, uid: uid-team-b-late}, spec: {containers: [{name: c, resources: "
			    "{requests: {cpu: 2}}}]}, status: {conditions: [{type: PodScheduled, "
			    "status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z'}]}}\n"
			    "- {apiVersion: v1, kind: Pod, metadata: {namespace: team-b, name: "
			    "leaving, uid: uid-team-b-leaving, deletionTimestamp: "
			    "'2026-01-01T00:00:00Z'}, spec: {containers: [{name: c, resources: "
			    "{requests: {cpu: 2}}}]}}\n"
			    "- {apiVersion: v1, kind: Pod, metadata: {namespace: team-b, name: "
			    "failed, uid: uid-team-b-failed}, spec: {containers: [{name: c, "
			    "resources: {requests: {cpu: 2}}}]}, "
			    "status: {phase: Failed}}\n");
	v = quota_fixture_view(items.data);
	buf_fini(&items);
	return v;
}

static int open_fixture(void **state)
{
	(void)state;
	api_fixture_open(&f, make_borrowed());
	f.ctx.reservations = reservations_new();
	return 0;
}

static void expect_reclaim(void)
{
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/reclaim"), 200);
	assert_string_equal(text("kind"), "QuotaReclaimList");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 2);
	assert_string_equal(text("items.0.name"), "first");
	assert_string_equal(text("items.0.text"),
			    "quota team-b is within its min: 2 pods of team-a "
			    "could give way; see evenkeel quota preempt");
	assert_string_equal(text("items.0.victims.0.name"), "p0");
	assert_string_equal(text("items.0.victims.1.name"), "p1");
	assert_string_equal(text("items.0.node"), "a");
	assert_string_equal(text("items.1.name"), "late");
	assert_null(api_fixture_at(f.json, "items.0.unschedulable"));
	assert_string_equal(text("items.1.unschedulable"), "2026-01-01T00:00:00Z");
	assert_string_equal(text("items.1.victims.0.name"), "p2");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items.1.victims")), 1);
	assert_string_not_equal(text("items.0.plan"), text("items.1.plan"));
	assert_true(number("viewVersion") >= 1);
	assert_true(number("considered") == 2);
	assert_true(number("leftOut") == 0);
}

/* The items hold together, and nothing is changed by asking. */
static void test_reclaim(void **state)
{
	(void)state;
	expect_reclaim();
	expect_reclaim();
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/team-a"), 200);
	assert_true(number("used.cpuMillicores") == 10000);
}

static void test_reclaim_parameters(void **state)
{
	struct api_fixture bare;

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/reclaim?variant=kep"), 400);
	assert_string_equal(http_fixture_error_field(&f), "variant");
	api_fixture_open(&bare, quota_fixture_view(quota_fixture_quota("a", "q", "cpu: 1", NULL)));
	assert_int_equal(api_fixture_get(&bare, "/v1/quotas/reclaim"), 503);
	bare.ctx.reservations = f.ctx.reservations;
	assert_int_equal(api_fixture_send(&bare, "POST", "/v1/quotas/reclaim/reservations",
					  "{\"plan\":\"x\",\"namespace\":\"a\",\"name\":\"p\","
					  "\"uid\":\"u\"}"),
			 503);
	view_slot_publish(bare.ctx.views, view_new(2, 0, NULL, 0, NULL, NULL));
	assert_int_equal(api_fixture_get(&bare, "/v1/quotas/reclaim"), 503);
	assert_int_equal(api_fixture_send(&bare, "POST", "/v1/quotas/reclaim/reservations",
					  "{\"plan\":\"x\",\"namespace\":\"a\",\"name\":\"p\","
					  "\"uid\":\"u\"}"),
			 503);
	api_fixture_close(&bare);
}

/* Each of them fits. */
static void publish_pending(int count)
{
	struct buf items = BUF_INIT;
	char name[16];

	buf_add_str(&items, quota_fixture_node("a", "cpu: 9"));
	buf_add_str(&items, quota_fixture_quota("team-b", "q", "cpu: 8", "cpu: 9"));
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "p%03d", i);
		buf_add_str(&items, quota_fixture_pod("team-b", name, "", i % 2, "cpu: 2"));
	}
	view_slot_publish(f.ctx.views, quota_fixture_view(items.data));
	buf_fini(&items);
}

/* More pods within min than searches are made. */
static void test_reclaim_is_bounded(void **state)
{
	(void)state;
	publish_pending(260);
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/reclaim"), 200);
	assert_true(number("considered") == 260);
	assert_true(number("leftOut") >= 4);
}

/* --- claims of reclaimed room */

#define CLAIM(plan, name, uid)                                                                     \
	"{\"plan\":\"" plan "\",\"namespace\":\"team-b\",\"name\":\"" name "\",\"uid\":\"" uid "\"}"

static int claim(const char *body)
{
	return api_fixture_send(&f, "POST", "/v1/quotas/reclaim/reservations", body);
}

/* As the list has it. */
static int claim_item(int i)
{
	char path[32], body[512];
	const cJSON *item;

	assert_int_equal(api_fixture_get(&f, "/v1/quotas/reclaim"), 200);
	snprintf(path, sizeof(path), "items.%d", i);
	item = api_fixture_at(f.json, path);
	assert_non_null(item);
	snprintf(body, sizeof(body),
		 "{\"plan\":\"%s\",\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\"}",
		 cJSON_GetStringValue(api_fixture_at(item, "plan")),
		 cJSON_GetStringValue(api_fixture_at(item, "namespace")),
		 cJSON_GetStringValue(api_fixture_at(item, "name")),
		 cJSON_GetStringValue(api_fixture_at(item, "uid")));
	return claim(body);
}

static size_t count_past(void)
{
	struct victim_past *past;
	size_t count = victim_log_past(f.ctx.victims, 0, &past);

	free(past);
	return count;
}

/* One after the other, and the rest of the list holds with what is claimed. */
static void test_plans_are_claimed(void **state)
{
	(void)state;
	f.ctx.victims = victim_log_new();
	assert_int_equal(claim_item(0), 200);
	assert_string_equal(text("kind"), "QuotaReservation");
	assert_string_equal(text("name"), "first");
	assert_string_equal(text("node"), "a");
	assert_int_equal(count_past(), 2);
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/reclaim"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 1);
	assert_string_equal(text("items.0.name"), "late");
	assert_string_equal(text("items.0.victims.0.name"), "p2");
	assert_true(number("items.0.victims.0.graceSeconds") == 30);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "claims")), 1);
	assert_string_equal(text("claims.0.uid"), "uid-team-b-first");
	assert_string_equal(text("claims.0.node"), "a");
	assert_int_equal(claim_item(0), 200);
	assert_int_equal(count_past(), 3);
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/reclaim"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 0);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "claims")), 2);
	/* A renewal takes no plan, and evicts nobody. */
	assert_int_equal(claim(CLAIM("0", "late", "uid-team-b-late")), 200);
	assert_int_equal(count_past(), 3);
	victim_log_free(f.ctx.victims);
}

static void expect_refused(const char *body, int status, const char *field, const char *message)
{
	assert_int_equal(claim(body), status);
	assert_string_equal(http_fixture_error_field(&f), field);
	if (!strstr(text("error.message"), message))
		fail_msg("%s is not \"%s\"", text("error.message"), message);
}

/* What the API does not show in deletion yet is on its way: no more victims, also after a restart. */
static void test_a_claim_is_made_again_after_a_restart(void **state)
{
	(void)state;
	f.ctx.victims = victim_log_new();
	assert_int_equal(claim_item(0), 200);
	reservations_free(f.ctx.reservations);
	f.ctx.reservations = reservations_new();
	expect_refused(CLAIM("0", "first", "uid-team-b-first"), 409, "plan",
		       "the pod needs no victims now");
	assert_int_equal(claim(CLAIM("taken-over", "first", "uid-team-b-first")), 200);
	assert_string_equal(text("node"), "a");
	assert_int_equal(count_past(), 2);
	victim_log_free(f.ctx.victims);
}

static void fill_reservations(void)
{
	char uid[16];
	struct reservation e = {.namespace = "x", .name = uid, .uid = uid, .node = ""};

	for (int i = 0; i < RESERVATIONS_PODS_MAX; i++) {
		snprintf(uid, sizeof(uid), "%d", i);
		assert_int_equal(reservations_reserve(f.ctx.reservations, &e, VIEW_FIXTURE_NOW_NS),
				 0);
	}
}

static void test_wrong_claims_are_refused(void **state)
{
	(void)state;
	expect_refused("[]", 400, "", "must be a JSON object");
	expect_refused("{\"plan\":\"x\",\"more\":1}", 400, "more", "is not a member");
	expect_refused("{\"plan\":1}", 400, "plan", "must be a text");
	expect_refused("{\"plan\":\"x\",\"plan\":\"x\"}", 400, "plan", "is there twice");
	expect_refused("{\"plan\":\"x\"}", 400, "namespace", "is missing");
	expect_refused("{\"plan\":\"x\",\"namespace\":\"a\",\"name\":\"b\"}", 400, "uid",
		       "is missing");
	expect_refused(CLAIM("x", "first", "other"), 409, "uid",
		       "pod team-b/first with uid other is not pending");
	expect_refused(CLAIM("x", "p", "uid-team-b-p"), 409, "uid", "is not pending");
	expect_refused(CLAIM("x", "leaving", "uid-team-b-leaving"), 409, "uid", "is not pending");
	expect_refused(CLAIM("x", "big", "uid-team-b-big"), 409, "namespace",
		       "quota team-b is not within its min");
	expect_refused(CLAIM("x", "first", "uid-team-b-first"), 409, "plan",
		       "the plan for the pod is another one by now");
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/reclaim"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "claims")), 0);

	publish_pending(1);
	expect_refused(CLAIM("x", "p000", "uid-team-b-p000"), 409, "plan",
		       "the pod needs no victims now");
	fill_reservations();
	expect_refused(CLAIM("taken-over", "p000", "uid-team-b-p000"), 503, "",
		       "there are too many reservations");
	reservations_free(f.ctx.reservations);
	f.ctx.reservations = NULL;
	expect_refused(CLAIM("taken-over", "p000", "uid-team-b-p000"), 503, "",
		       "nothing is reserved without a server");
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/reclaim"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "claims")), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_reclaim),
		TEST(test_reclaim_parameters),
		TEST(test_reclaim_is_bounded),
		TEST(test_plans_are_claimed),
		TEST(test_a_claim_is_made_again_after_a_restart),
		TEST(test_wrong_claims_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
