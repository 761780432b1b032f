/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "aggregator/model/object.h"

static int parse(const char *text, struct pod_spec *spec, char field[OBJECT_FIELD_MAX],
		 struct error *reason, cJSON **tree)
{
	*tree = cJSON_Parse(text);
	if (!*tree)
		fail_msg("the test's own JSON is broken: %s", text);
	return pod_spec_read(*tree, spec, field, reason);
}

static void test_whole_pod(void **state)
{
	static const char text[] =
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"labels\":{"
		"\"a\":\"b\"}},\"spec\":{"
		"\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"250m\","
		"\"memory\":\"1.5Gi\","
		"\"nvidia.com/gpu\":\"1\"},\"limits\":{\"memory\":\"2Gi\"}}},{\"name\":\"b\"},"
		"{\"name\":\"c\",\"resources\":{\"limits\":{\"cpu\":0.1,\"memory\":1000000}}}],"
		"\"initContainers\":[{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{"
		"\"cpu\":\"0\"}}},"
		"{\"restartPolicy\":null,\"resources\":null}],"
		"\"overhead\":{\"cpu\":\"5m\",\"memory\":null},"
		"\"resources\":{\"requests\":{\"memory\":\"8Gi\"},\"limits\":{\"cpu\":\"3\"}}}}";
	char field[OBJECT_FIELD_MAX];
	struct error reason = {""};
	struct pod_spec p;
	cJSON *tree;

	(void)state;
	assert_int_equal(parse(text, &p, field, &reason, &tree), 0);
	assert_string_equal(p.name, "p");
	assert_int_equal(p.container_count, 3);
	assert_int_equal(p.containers[0].requests.cpu_milli, 250);
	assert_int_equal(p.containers[0].requests.mem_bytes, 3LL << 29);
	assert_false(p.containers[0].limits.has_cpu);
	assert_int_equal(p.containers[0].limits.mem_bytes, 2LL << 30);
	assert_false(p.containers[1].requests.has_cpu || p.containers[1].limits.has_mem);
	/*
	 * The API server's default: a request that is absent equals the limit. 0.1 is not
	 * 0.10000000000000001.
	 */
	assert_true(p.containers[2].requests.has_cpu && p.containers[2].requests.cpu_milli == 100);
	assert_true(p.containers[2].requests.has_mem &&
		    p.containers[2].requests.mem_bytes == 1000000);
	assert_int_equal(p.init_count, 2);
	assert_true(p.init[0].sidecar && p.init[0].requests.has_cpu &&
		    p.init[0].requests.cpu_milli == 0);
	assert_false(p.init[1].sidecar);
	assert_true(p.overhead.has_cpu && p.overhead.cpu_milli == 5 && !p.overhead.has_mem);
	assert_true(p.has_pod_resources && p.pod_requests.has_mem &&
		    p.pod_limits.cpu_milli == 3000);
	/* Containers request CPU, so the pod's limit is no request. */
	assert_false(p.pod_requests.has_cpu);
	pod_spec_free_members(&p);
	cJSON_Delete(tree);
}

static void test_pod_level_limit_is_request(void **state)
{
	char field[OBJECT_FIELD_MAX];
	struct error reason = {""};
	struct pod_spec p;
	cJSON *tree;

	(void)state;
	assert_int_equal(
		parse("{\"spec\":{\"containers\":[{}],\"resources\":{\"limits\":{\"cpu\":\"3\"}}}}",
		      &p, field, &reason, &tree),
		0);
	assert_null(p.name);
	assert_int_equal(pod_spec_need(&p, RESOURCE_CPU, false, false), 3000);
	assert_false(p.pod_requests.has_mem);
	pod_spec_free_members(&p);
	cJSON_Delete(tree);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *field, *reason;
	} cases[] = {
		{"[]", "", "must be a Pod object"},
		{"{}", "spec", "is required"},
		{"{\"spec\":null}", "spec", "is required"},
		{"{\"spec\":[]}", "spec", "must be an object"},
		{"{\"kind\":\"Deployment\",\"spec\":{}}", "kind", "must be Pod"},
		{"{\"kind\":1,\"spec\":{}}", "kind", "must be a string"},
		{"{\"metadata\":{\"name\":7},\"spec\":{}}", "metadata.name", "must be a string"},
		{"{\"metadata\":\"x\",\"spec\":{}}", "metadata", "must be an object"},
		{"{\"spec\":{\"containrs\":[]}}", "spec.containers", "is required"},
		{"{\"spec\":{\"containers\":{}}}", "spec.containers", "must be a list"},
		{"{\"spec\":{\"containers\":[{},3]}}", "spec.containers[1]", "must be an object"},
		{"{\"spec\":{\"containers\":[{\"resources\":1}]}}", "spec.containers[0].resources",
		 "must be an object"},
		{"{\"spec\":{\"containers\":[{},{\"resources\":{\"requests\":{\"cpu\":\"1x\"}}}]}}",
		 "spec.containers[1].resources.requests.cpu", "\"1x\" is not a quantity"},
		{"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"memory\":\"-1\"}}}]}}",
		 "spec.containers[0].resources.limits.memory", "must not be negative"},
		{"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"memory\":true}}}]}}",
		 "spec.containers[0].resources.limits.memory", "must be a quantity"},
		{"{\"spec\":{\"initContainers\":[{\"restartPolicy\":1}]}}",
		 "spec.initContainers[0].restartPolicy", "must be a string"},
		{"{\"spec\":{\"initContainers\":[{\"resources\":{\"requests\":[]}}]}}",
		 "spec.initContainers[0].resources.requests", "must be an object"},
		{"{\"spec\":{\"overhead\":{\"cpu\":\"\"}}}", "spec.overhead.cpu",
		 "is not a quantity"},
		{"{\"spec\":{\"overhead\":\"1\"}}", "spec.overhead", "must be an object"},
		{"{\"spec\":{\"resources\":{\"requests\":{\"cpu\":1e999}}}}",
		 "spec.resources.requests.cpu", "is not a quantity"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char field[OBJECT_FIELD_MAX] = "?";
		struct error reason = {""};
		struct pod_spec p;
		cJSON *tree;

		assert_int_equal(parse(cases[i].text, &p, field, &reason, &tree), -EINVAL);
		assert_string_equal(field, cases[i].field);
		if (!strstr(reason.text, cases[i].reason))
			fail_msg("%s: %s", cases[i].text, reason.text);
		cJSON_Delete(tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_pod),
		cmocka_unit_test(test_pod_level_limit_is_request),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
