/* SPDX-License-Identifier: Apache-2.0 */
/* What is no question of a kube-scheduler: refused with the place of what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/state/reservations.h"
#include "tests/api_fixture.h"
#include "tests/view_fixture.h"

static struct api_fixture f;
static struct extender_options options;

#define POD(uid)                                                                                   \
	"{\"metadata\":{\"name\":\"" uid "\",\"namespace\":\"shop\",\"uid\":\"" uid "\"},"         \
	"\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\","    \
	"\"memory\":\"1Gi\"},\"limits\":{\"cpu\":\"2\",\"memory\":\"2Gi\"}}}]}}"
#define ASK(uid, names) "{\"Pod\":" POD(uid) ",\"Nodes\":null,\"NodeNames\":" names "}"

static int setup(void **state)
{
	(void)state;
	api_fixture_open(&f, view_fixture_new());
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

static void bad_questions_are_refused_with_the_place(void **state)
{
	static const struct {
		const char *body, *field;
	} cases[] = {
		{"", ""},
		{"[]", ""},
		{"{", ""},
		{"{}x", ""},
		{"{\"Pod\":" POD("p") "", ""},
		{"{\"Pod\":" POD("p") ",}", ""},
		{"{\"Pod\" " POD("p") "}", ""},
		{"{}", "Pod"},
		{"{\"Pod\":null,\"NodeNames\":[]}", "Pod"},
		{"{\"Pod\":[],\"NodeNames\":[]}", "Pod"},
		{"{\"Pod\":{\"a\" 1},\"NodeNames\":[]}", "Pod"},
		{"{\"Pod\":{]},\"NodeNames\":[]}", "Pod"},
		{"{\"Pod\":{},\"NodeNames\":[]}", "Pod.metadata.name"},
		{"{\"Pod\":{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":"
		 "\"c\","
		 "\"resources\":{\"requests\":{\"cpu\":\"x\"}}}]}}}",
		 "Pod.spec.containers[0].resources.requests.cpu"},
		{ASK("p", "{}"), "NodeNames"},
		{ASK("p", "[\"a\",1]"), "NodeNames[1]"},
		{ASK("p", "[\"a\",]"), "NodeNames[1]"},
		{ASK("p", "[\"a\" \"b\"]"), "NodeNames"},
		{ASK("p", "[\"a"), "NodeNames[0]"},
		{"{\"Pod\":" POD("p") ",\"Nodes\":[]}", "Nodes"},
		{"{\"Pod\":" POD("p") ",\"Nodes\":{\"items\":{}}}", "Nodes.items"},
		{"{\"Pod\":" POD("p") ",\"Nodes\":{\"items\":[{}]}}",
		 "Nodes.items[0].metadata.name"},
		{"{\"Pod\":" POD(
			 "p") ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"a\"}},[}]}}",
		 "Nodes.items[1]"},
		{"{\"Pod\":" POD("p") ",\"x\":tru}", "x"},
	};

	struct reservations_copy *reserved;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_send(&f, "POST",
						  i % 2 ? "/extender/filter"
							: "/extender/prioritize",
						  cases[i].body),
				 400);
		assert_string_equal(api_fixture_error(&f), "badRequest");
		if (strcmp(http_fixture_error_field(&f), cases[i].field) != 0)
			fail_msg("%s: %s", cases[i].body, f.response.body.data);
	}
	assert_int_equal(counter_get(&f.counters.extender.malformed),
			 sizeof(cases) / sizeof(cases[0]));
	reserved = reservations_take(f.ctx.reservations, VIEW_FIXTURE_NOW_NS);
	assert_int_equal(reserved->count, 0);
	reservations_copy_drop(reserved);
	assert_int_equal(api_fixture_get(&f, "/extender/filter"), 405);
}

#define VICTIMS(map, of) "{\"Pod\":" POD("p") ",\"" map "\":{\"alpha\":" of "}}"

static void bad_victims_are_refused_with_the_place(void **state)
{
	static const struct {
		const char *body, *field;
	} cases[] = {
		{VICTIMS("NodeNameToMetaVictims", "1"), "NodeNameToMetaVictims.alpha"},
		{VICTIMS("NodeNameToMetaVictims", "{\"Pods\":{}}"),
		 "NodeNameToMetaVictims.alpha.Pods"},
		{VICTIMS("NodeNameToMetaVictims", "{\"Pods\":[{\"UID\":null},1]}"),
		 "NodeNameToMetaVictims.alpha.Pods[1]"},
		{VICTIMS("NodeNameToMetaVictims", "{\"pods\":[{\"uid\":1}]}"),
		 "NodeNameToMetaVictims.alpha.Pods[0].UID"},
		{VICTIMS("NodeNameToMetaVictims", "{\"Pods\":null,\"NumPDBViolations\":-1}"),
		 "NodeNameToMetaVictims.alpha.NumPDBViolations"},
		{VICTIMS("NodeNameToMetaVictims", "{\"NumPDBViolations\":2e9}"),
		 "NodeNameToMetaVictims.alpha.NumPDBViolations"},
		{VICTIMS("NodeNameToMetaVictims", "{\"NumPDBViolations\":\"1\"}"),
		 "NodeNameToMetaVictims.alpha.NumPDBViolations"},
		{VICTIMS("NodeNameToVictims", "{\"Pods\":[{\"metadata\":{\"uid\":1}}]}"),
		 "NodeNameToVictims.alpha.Pods[0].metadata.uid"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (api_fixture_send(&f, "POST", "/extender/preempt", cases[i].body) != 400 ||
		    strcmp(http_fixture_error_field(&f), cases[i].field) != 0)
			fail_msg("%s: %s", cases[i].body, f.response.body.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bad_questions_are_refused_with_the_place, setup,
						teardown),
		cmocka_unit_test_setup_teardown(bad_victims_are_refused_with_the_place, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
