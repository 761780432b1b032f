/* SPDX-License-Identifier: Apache-2.0 */
/* Each value of /v1/fleet is that of the member of /v1/nodes whose path its column is called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/api_fixture.h"
#include "tests/cluster_fixture.h"
#include "tests/quota_fixture.h"
#include "tests/view_fixture.h"

/* One for what is measured, one for what an API tells. */
static struct api_fixture f;

static const cJSON *at_path(const cJSON *object, const char *path)
{
	char name[64];

	while (object && *path) {
		size_t len = strcspn(path, ".");

		assert_true(len < sizeof(name));
		memcpy(name, path, len);
		name[len] = '\0';
		object = cJSON_GetObjectItemCaseSensitive(object, name);
		path += len + (path[len] == '.');
	}
	return object;
}

/* Half of a column's last decimal, and of the last one of the member's. */
static double tolerance(const char *path, double value)
{
	static const struct {
		const char *prefix;
		double most;
	} decimals[] = {
		{"limitRatio.", 0.00006},
		{"contention.cpu", 0.00006},
		{"contention.memory", 0.00006},
		{"source.ageSeconds", 0.051},
		{"usage.cpuMillicores.windows.", 0.051},
	};

	for (size_t i = 0; i < sizeof(decimals) / sizeof(decimals[0]); i++)
		if (strncmp(path, decimals[i].prefix, strlen(decimals[i].prefix)) == 0)
			return decimals[i].most;
	return 0.5 + 1e-9 * fabs(value);
}

static void assert_same(const cJSON *value, const cJSON *member, const char *path)
{
	if (strcmp(path, "unknownToApi") == 0)
		assert_int_equal(cJSON_IsTrue(value), cJSON_IsTrue(member));
	else if (!member || cJSON_IsNull(member))
		assert_true(cJSON_IsNull(value) || !value->child);
	else if (cJSON_IsNumber(member))
		assert_true(cJSON_IsNumber(value) &&
			    fabs(value->valuedouble - member->valuedouble) <=
				    tolerance(path, member->valuedouble));
	else
		assert_true(cJSON_Compare(value, member, true));
}

/* How many values are known. */
static size_t compare_all(void)
{
	cJSON *fleet, *nodes;
	size_t known = 0;

	assert_int_equal(api_fixture_get(&f, "/v1/fleet"), 200);
	fleet = cJSON_Duplicate(f.json, true);
	assert_int_equal(api_fixture_get(&f, "/v1/nodes"), 200);
	nodes = cJSON_Duplicate(f.json, true);
	assert_true(cJSON_Compare(at_path(fleet, "total"), at_path(nodes, "total"), true));
	assert_int_equal(cJSON_GetArraySize(at_path(fleet, "rows")),
			 cJSON_GetArraySize(at_path(nodes, "items")));
	for (const cJSON *row = at_path(fleet, "rows")->child,
			 *node = at_path(nodes, "items")->child;
	     row; row = row->next, node = node->next)
		for (const cJSON *value = row->child, *path = at_path(fleet, "columns")->child;
		     value; value = value->next, path = path->next) {
			assert_same(value, at_path(node, path->valuestring), path->valuestring);
			known += !cJSON_IsNull(value);
		}
	cJSON_Delete(fleet);
	cJSON_Delete(nodes);
	return known;
}

static void test_measured(void **state)
{
	(void)state;
	assert_true(compare_all() > 30);
}

static void test_of_the_api(void **state)
{
	struct buf items = BUF_INIT;

	(void)state;
	buf_add_str(&items, quota_fixture_node("a", "cpu: 8, memory: 32Gi"));
	buf_add_str(&items, quota_fixture_node("b", "cpu: 4, memory: 8Gi"));
	buf_add_str(&items, quota_fixture_pod("shop", "p", "a", 0, "cpu: 1, memory: 1Gi"));
	api_fixture_open(&f, quota_fixture_view(items.data));
	assert_true(compare_all() > 20);
	assert_int_equal(api_fixture_get(&f, "/v1/fleet?columns=name,requests.memoryBytes"), 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(f.json, "rows.0.0")), "a");
	assert_true(api_fixture_at(f.json, "rows.0.1")->valuedouble == 1073741824);
	assert_null(api_fixture_at(f.json, "rows.0.2"));
	api_fixture_close(&f);
	buf_fini(&items);
}

/* A measured node of the API has limits of each kind, which no other column equals. */
static void test_limit_ratios(void **state)
{
	static const double wanted[] = {0.5592, 0.4419, 0.5605, 0.299};

	(void)state;
	api_fixture_open(&f, cluster_fixture_new());
	assert_true(compare_all() > 60);
	assert_int_equal(api_fixture_get(&f, "/v1/fleet?columns=limitRatio.declared.cpu,"
					     "limitRatio.declared.memory,limitRatio.kernel.cpu,"
					     "limitRatio.kernel.memory"),
			 200);
	for (int i = 0; i < 4; i++)
		assert_float_equal(
			cJSON_GetArrayItem(api_fixture_at(f.json, "rows.0"), i)->valuedouble,
			wanted[i], 1e-9);
	api_fixture_close(&f);
}

/* Messages have 64 bytes of a column. */
#define LONG "abcdefghijklmnopqrstuvwxyz.abcdefghijklmnopqrstuvwxyz.abcdefghi"

static void test_columns(void **state)
{
	static const char *const refused[] = {"x", "", "name,", ",name", "name,nam", "name name"};
	char target[64];

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		snprintf(target, sizeof(target), "/v1/fleet?columns=%s", refused[i]);
		assert_int_equal(api_fixture_get(&f, target), 400);
		assert_string_equal(http_fixture_error_field(&f), "columns");
	}
	assert_int_equal(api_fixture_get(&f, "/v1/fleet?columns=" LONG "xy,name"), 400);
	assert_non_null(strstr(f.response.body.data, "there is no column \\\"" LONG "x\\\""));
	assert_int_equal(api_fixture_get(&f, "/v1/fleet?columns=name,source.state,name"), 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(f.json, "columns.2")), "name");
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(f.json, "rows.0.0")),
			    cJSON_GetStringValue(api_fixture_at(f.json, "rows.0.2")));
	assert_true(f.response.etag != 0);
}

static void test_too_many_columns(void **state)
{
	struct buf target = BUF_INIT;

	(void)state;
	buf_add_str(&target, "/v1/fleet?columns=name");
	for (int i = 0; i < 100; i++)
		buf_add_str(&target, ",name");
	assert_int_equal(api_fixture_get(&f, target.data), 400);
	buf_fini(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_FIXTURE_TEST(test_measured, &f),	     cmocka_unit_test(test_of_the_api),
		cmocka_unit_test(test_limit_ratios),	     API_FIXTURE_TEST(test_columns, &f),
		API_FIXTURE_TEST(test_too_many_columns, &f),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
