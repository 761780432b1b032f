/* SPDX-License-Identifier: Apache-2.0 */
/* Room that a plan's victims leave, and the extender's filter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/state/reservations.h"
#include "tests/api_fixture.h"
#include "tests/quota_fixture.h"
#include "tests/view_fixture.h"

static struct api_fixture f;
static struct extender_options options;

/* Two nodes of 4 CPUs and 110 pods; a pod of 1 CPU is on alpha. */
static int setup(void **state)
{
	struct buf items = BUF_INIT;

	(void)state;
	buf_add_str(&items, quota_fixture_node("alpha", "cpu: 4"));
	buf_add_str(&items, quota_fixture_node("bravo", "cpu: 4"));
	buf_add_str(&items, quota_fixture_pod("shop", "web", "alpha", 0, "cpu: 1"));
	api_fixture_open(&f, quota_fixture_view(items.data));
	buf_fini(&items);
	api_fixture_extender(&options);
	f.ctx.reservations = reservations_new();
	f.ctx.extender = &options;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	reservations_free(f.ctx.reservations);
	api_fixture_close(&f);
	return 0;
}

static void claim(const char *uid, const char *node, int64_t cpu_milli)
{
	struct reservations_copy *seen = reservations_take(f.ctx.reservations, VIEW_FIXTURE_NOW_NS);
	struct reservation e = {.uid = uid, .namespace = "shop", .name = uid, .node = node};

	resources_set(&e.requests, RESOURCE_CPU, cpu_milli);
	assert_int_equal(reservations_claim(f.ctx.reservations, &e, seen, VIEW_FIXTURE_NOW_NS), 0);
	reservations_copy_drop(seen);
}

#define POD(uid, more, cpu)                                                                        \
	"{\"metadata\":{\"name\":\"" uid "\",\"namespace\":\"shop\",\"uid\":\"" uid "\"" more      \
	"\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"" cpu "\"}}}]}}"
#define PLAIN(uid, cpu) POD(uid, "},\"spec\":{", cpu)
#define CRITICAL	POD("c", "},\"spec\":{\"priority\":2000000000,", "1")
#define DAEMON                                                                                     \
	POD("d",                                                                                   \
	    ",\"ownerReferences\":[{\"kind\":\"DaemonSet\",\"name\":\"cni\",\"uid\":\"x\","        \
	    "\"controller\":true}]},\"spec\":{",                                                   \
	    "1")

/* The nodes that pass, of both. */
static const char *pass(const char *pod)
{
	static char text[64];
	char body[1024];
	int len = 0;
	const cJSON *name;

	snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[\"alpha\",\"bravo\"]}", pod);
	assert_int_equal(api_fixture_send(&f, "POST", "/extender/filter", body), 200);
	text[0] = '\0';
	cJSON_ArrayForEach (name, api_fixture_at(f.json, "NodeNames")) {
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s", len ? " " : "",
				name->valuestring);
	}
	return text;
}

/* Of alpha's 4 CPUs 1 is used and 2 are claimed: one pod of 1 CPU fits beside. */
static void claimed_room_is_for_its_pod(void **state)
{
	(void)state;
	claim("owner", "alpha", 2000);
	assert_string_equal(pass(PLAIN("large", "2")), "bravo");
	assert_string_equal(cJSON_GetStringValue(
				    api_fixture_at(f.json, "FailedAndUnresolvableNodes.alpha")),
			    "room claimed for another pod");
	assert_string_equal(pass(PLAIN("one", "1")), "alpha bravo");
	assert_int_equal(
		reservations_charge(f.ctx.reservations, "one", "alpha", VIEW_FIXTURE_NOW_NS), 0);
	assert_string_equal(pass(PLAIN("two", "1")), "bravo");
	assert_string_equal(pass(PLAIN("owner", "2")), "alpha bravo");
	reservations_bind(f.ctx.reservations, "owner", "bravo", UINT64_MAX);
	assert_string_equal(pass(PLAIN("two", "1")), "alpha bravo");
}

/* 109 of 110 pods are there, and the claim's is the last. */
static void the_number_of_pods_counts(void **state)
{
	char uid[16];
	struct reservation e = {.uid = uid, .namespace = "shop", .name = uid, .node = "alpha"};

	(void)state;
	for (int i = 0; i < 108; i++) {
		snprintf(uid, sizeof(uid), "p%d", i);
		assert_int_equal(reservations_reserve(f.ctx.reservations, &e, VIEW_FIXTURE_NOW_NS),
				 0);
	}
	claim("owner", "alpha", 0);
	assert_string_equal(pass(PLAIN("more", "1m")), "bravo");
	assert_string_equal(pass(PLAIN("owner", "1m")), "alpha bravo");
}

static void pods_with_nowhere_else_to_go_pass(void **state)
{
	(void)state;
	claim("owner", "alpha", 3000);
	assert_string_equal(pass(PLAIN("p", "1")), "bravo");
	assert_string_equal(pass(CRITICAL), "alpha bravo");
	assert_string_equal(pass(DAEMON), "alpha bravo");
}

/* What the filter refuses keeps its claim, and what it lets pass. */
static void a_scheduler_does_not_end_a_claim(void **state)
{
	struct reservations_copy *copy;

	(void)state;
	claim("owner", "alpha", 3000);
	claim("other", "bravo", 4000);
	assert_string_equal(pass(PLAIN("owner", "3")), "alpha");
	claim("first", "alpha", 3000);
	assert_string_equal(pass(PLAIN("owner", "3")), "");
	copy = reservations_take(f.ctx.reservations, VIEW_FIXTURE_NOW_NS);
	assert_int_equal(copy->count, 3);
	for (size_t i = 0; i < copy->count; i++)
		assert_true(reservation_is_claim(copy->of[i], VIEW_FIXTURE_NOW_NS));
	reservations_copy_drop(copy);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(claimed_room_is_for_its_pod),
		T(the_number_of_pods_counts),
		T(pods_with_nowhere_else_to_go_pass),
		T(a_scheduler_does_not_end_a_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
