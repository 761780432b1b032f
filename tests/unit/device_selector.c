/* SPDX-License-Identifier: Apache-2.0 */
/* Which selectors of devices are evaluated, and how odd attributes count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/place/device_selector.h"
#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/model_fixture.h"
#include "tests/place_fixture.h"

#define ATTRIBUTE "device.attributes[\"gpu.io\"]."

static const char attributes_text[] = "{\"model\":{\"string\":\"a\"},\"cores\":{\"int\":8},"
				      "\"gpu.io/fast\":{\"bool\":true},"
				      "\"vendor.io/rack\":{\"string\":\"r1\"},"
				      "\"odd\":{\"string\":7},\"strange\":{\"int\":\"7\"},"
				      "\"both\":{\"string\":\"a\",\"int\":1},"
				      "\"firmware\":{\"version\":\"1.0.0\"}}";

static void selectors_are_evaluated(void **state)
{
	static const struct {
		const char *expression;
		enum device_match want;
	} rows[] = {
		{"device.driver == \"gpu.io\"", DEVICE_MATCHES},
		{" device . driver=='gpu.io'\n", DEVICE_MATCHES},
		{"device.driver == \"net.io\"", DEVICE_OTHER},
		{ATTRIBUTE "model == \"a\"", DEVICE_MATCHES},
		{ATTRIBUTE "model == \"b\"", DEVICE_OTHER},
		{ATTRIBUTE "cores == 8", DEVICE_MATCHES},
		{ATTRIBUTE "cores == -8", DEVICE_OTHER},
		{ATTRIBUTE "fast == true", DEVICE_MATCHES},
		{ATTRIBUTE "fast==false", DEVICE_OTHER},
		{"device.attributes['vendor.io'].rack == 'r1'", DEVICE_MATCHES},
		/* Another type is another value; a version is compared with versions alone. */
		{ATTRIBUTE "model == 8", DEVICE_OTHER},
		{ATTRIBUTE "cores == \"8\"", DEVICE_OTHER},
		{ATTRIBUTE "firmware == \"1.0.0\"", DEVICE_ERROR},
		/* Absent attributes. */
		{ATTRIBUTE "rack == \"r1\"", DEVICE_ERROR},
		{"device.attributes['gpu_io'].fast == true", DEVICE_ERROR},
		{"device.attributes['vendor.iq'].rack == 'r1'", DEVICE_ERROR},
		{ATTRIBUTE "odd == \"7\"", DEVICE_OTHER},
		{ATTRIBUTE "strange == 7", DEVICE_OTHER},
		{ATTRIBUTE "both == \"a\"", DEVICE_ERROR},
		{"device.attributes[\"other.io\"].model == \"a\"", DEVICE_ERROR},
		/* Conjunctions. */
		{"device.driver == \"gpu.io\" && " ATTRIBUTE "cores == 8", DEVICE_MATCHES},
		{"device.driver == \"gpu.io\" && " ATTRIBUTE "cores == 9", DEVICE_OTHER},
		{"device.driver == \"net.io\" && " ATTRIBUTE "rack == 1", DEVICE_OTHER},
		{ATTRIBUTE "rack == 1 && device.driver == \"net.io\"", DEVICE_OTHER},
		{ATTRIBUTE "rack == 1 && device.driver == \"gpu.io\"", DEVICE_ERROR},
	};
	cJSON *attributes = cJSON_Parse(attributes_text);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct device_selector s;
		int got;

		assert_int_equal(device_selector_read(rows[i].expression, &s), 0);
		got = (int)device_selector_match(&s, "gpu.io", attributes);
		if (got != (int)rows[i].want)
			fail_msg("%s: %d and not %d", rows[i].expression, got, (int)rows[i].want);
		device_selector_fini(&s);
	}
	cJSON_Delete(attributes);
}

static void other_expressions_are_refused(void **state)
{
	static const char *const rows[] = {
		"",
		"true",
		"device.driver",
		"device.driver == gpu",
		"device.driver == 1",
		"device.driver != \"gpu.io\"",
		"devices.driver == \"gpu.io\"",
		"!(device.driver == \"gpu.io\")",
		"device.driver == \"gpu.io\" || true",
		"device.driver == \"gpu.io\" &&",
		"device.driver == \"gpu.io\" && true",
		"device.driver == \"gpu\\x2eio\"",
		"device.driver == \"\"\"gpu.io\"\"\"",
		"device.driver == r\"gpu.io\"",
		"device.driver == \"gpu.io",
		"device.driver == \"gpu.io\" // driver",
		ATTRIBUTE "cores == 8u",
		ATTRIBUTE "cores == 8.5",
		ATTRIBUTE "cores == 0x8",
		ATTRIBUTE "cores == 08",
		ATTRIBUTE "cores == 9007199254740993",
		ATTRIBUTE "cores == 9223372036854775808",
		ATTRIBUTE "cores == null",
		ATTRIBUTE "cores > 4",
		ATTRIBUTE "8 == 8",
		"device.attributes[\"gpu.io\"][\"model\"] == \"a\"",
		"device.capacity[\"gpu.io\"].memory == \"1Gi\"",
		"device.allowMultipleAllocations == false",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct device_selector s;

		if (!device_selector_read(rows[i], &s))
			fail_msg("%s is read", rows[i]);
		device_selector_fini(&s);
	}
}

/* Snapshots may hold any JSON. */
static void odd_attributes_are_errors(void **state)
{
	static const char *const attributes[] = {
		"[\"x\"]",
		"[{\"string\":\"a\"}]",
		"\"x\"",
		"1",
		"null",
		"{\"model\":[\"a\"]}",
		"{}",
		"{\"model\":[[\"string\"]]}",
		"{\"model\":\"a\"}",
		"{\"model\":{}}",
	};
	struct device_selector s;

	(void)state;
	assert_int_equal(device_selector_read(ATTRIBUTE "model == \"a\"", &s), 0);
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		cJSON *json = cJSON_Parse(attributes[i]);

		assert_non_null(json);
		if (device_selector_match(&s, "gpu.io", json) != DEVICE_ERROR)
			fail_msg("%s", attributes[i]);
		cJSON_Delete(json);
	}
	device_selector_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selectors_are_evaluated),
		cmocka_unit_test(other_expressions_are_refused),
		cmocka_unit_test(odd_attributes_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
