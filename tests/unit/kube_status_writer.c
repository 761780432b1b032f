/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the status of a quota is written, and as what; against a real API server it is tested in
 * tests/kube.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/status_writer.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/model_fixture.h"
#include "tests/quota_fixture.h"

/*
 * A quota of 2 to 4 CPUs in that group which uses what test_written() says; status: its member of
 * the object.
 */
static bool request(const char *version, const char *status, const struct resources *used,
		    struct buf *path, struct buf *body)
{
	char *json = mem_printf("{\"apiVersion\":\"%s\",\"kind\":\"ElasticQuota\",\"metadata\":{"
				"\"namespace\":\"x\",\"name\":\"q\"},\"spec\":{\"min\":{\"cpu\":2},"
				"\"max\":{\"cpu\":4,\"memory\":\"1Gi\"}}%s}",
				version, status);
	struct object *object = model_fixture_object(OBJECT_ELASTIC_QUOTA, json);
	const struct kube_quota *k = (const struct kube_quota *)object;
	const struct quota q = {
		.namespace = "x", .name = "q", .min = k->min, .max = k->max, .used = *used};
	struct quota_options options;
	struct quota_book *book;
	struct resources *told;
	bool differs;

	quota_options_default(&options);
	book = quota_fixture_book(&q, 1, &options);
	told = quota_status_new(book, NULL);
	buf_clear(path);
	buf_clear(body);
	differs = status_writer_request(object, told, path, body);
	quota_status_free(book, told);
	quota_book_free(book);
	buf_add_str(path, "");
	buf_add_str(body, "");
	object_drop(object);
	free(json);
	return differs;
}

#define HEAD                                                                                       \
	"{\"apiVersion\":\"scheduling.x-k8s.io/"                                                   \
	"v1alpha1\",\"kind\":\"ElasticQuota\",\"metadata\":{"                                      \
	"\"namespace\":\"x\",\"name\":\"q\"},\"status\":{\"used\":"

static void test_written(void **state)
{
	static const struct {
		int64_t cpu;
		const char *status;
		const char *used; /* NULL: nothing is written */
	} cases[] = {
		{1500, "", "{\"cpu\":\"1500m\",\"memory\":\"1536Mi\"}"},
		{3000, ",\"status\":{}", "{\"cpu\":\"3\",\"memory\":\"1536Mi\"}"},
		{1500, ",\"status\":{\"used\":{\"cpu\":\"1\",\"memory\":\"1536Mi\"}}",
		 "{\"cpu\":\"1500m\",\"memory\":\"1536Mi\"}"},
		/* The same in other words is the same. */
		{1500, ",\"status\":{\"used\":{\"cpu\":\"1.5\",\"memory\":\"1.5Gi\"}}", NULL},
		{1500, ",\"status\":{\"used\":{\"cpu\":\"1.5\"}}",
		 "{\"cpu\":\"1500m\",\"memory\":\"1536Mi\"}"},
		/* What is no longer used nor named goes. */
		{1500,
		 ",\"status\":{\"used\":{\"cpu\":\"1.5\",\"memory\":\"1.5Gi\",\"a.b/c\":\"1\"}}",
		 "{\"cpu\":\"1500m\",\"memory\":\"1536Mi\"}"},
		{1500, ",\"status\":{\"used\":{\"cpu\":\"many\"}}",
		 "{\"cpu\":\"1500m\",\"memory\":\"1536Mi\"}"},
	};
	struct buf path = BUF_INIT, body = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct resources used = RESOURCES_NONE;
		bool written;

		resources_set(&used, RESOURCE_CPU, cases[i].cpu);
		resources_set(&used, RESOURCE_MEMORY, 1536LL << 20);
		written = request("scheduling.x-k8s.io/v1alpha1", cases[i].status, &used, &path,
				  &body);
		assert_int_equal(written, cases[i].used != NULL);
		if (written) {
			char *wanted = mem_printf(HEAD "%s}}", cases[i].used);

			assert_string_equal(body.data, wanted);
			free(wanted);
		}
		resources_fini(&used);
	}
	buf_fini(&path);
	buf_fini(&body);
}

/* What is named and not used is 0, and the object is found in its own group. */
static void test_nothing_used(void **state)
{
	struct buf path = BUF_INIT, body = BUF_INIT;
	struct resources used = RESOURCES_NONE;

	(void)state;
	assert_true(request("scheduling.sigs.k8s.io/v1alpha1", "", &used, &path, &body));
	assert_string_equal(path.data, "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/x/"
				       "elasticquotas/q/status?fieldManager=evenkeel");
	assert_non_null(strstr(body.data, "\"used\":{\"cpu\":\"0\",\"memory\":\"0\"}"));
	buf_fini(&path);
	buf_fini(&body);
}

/* A resource that server-side apply leaves there is not written again and again. */
static void test_leftover(void **state)
{
	static const struct {
		const char *answer;
		const char *name; /* NULL: none */
	} cases[] = {
		{"{\"status\":{\"used\":{\"cpu\":\"1500m\",\"memory\":\"1536Mi\"}}}", NULL},
		{"{\"status\":{\"used\":{\"cpu\":\"1500m\",\"a.b/c\":\"1\",\"pods\":\"many\"}}}",
		 "a.b/c"},
		{"{\"status\":{\"used\":{\"pods\":\"many\"}}}", "pods"},
		{"{\"status\":{\"used\":[1]}}", NULL},
		{"{\"status\":{\"used\":null}}", NULL},
		{"{\"status\":{\"used\":{\"a.b/c\":", NULL}, /* cut */
		{"{}", NULL},
		{"", NULL},
	};
	struct resources used = RESOURCES_NONE;

	(void)state;
	resources_set(&used, RESOURCE_CPU, 1500);
	resources_set(&used, RESOURCE_MEMORY, 1536LL << 20);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[256] = "";

		assert_int_equal(status_writer_leftover(cases[i].answer, &used, name),
				 cases[i].name != NULL);
		assert_string_equal(name, cases[i].name ? cases[i].name : "");
	}
	resources_fini(&used);
}

/* What is of one quota keeps no other from being written. */
static void test_refused(void **state)
{
	static const struct {
		long status;
		int64_t rest_ns;
	} cases[] = {
		{200, 0},
		{404, 0},
		{409, 600 * NS_PER_SEC},
		{403, 60 * NS_PER_SEC},
		{422, 60 * NS_PER_SEC},
		{500, 60 * NS_PER_SEC},
		{0, -1},
		{401, -1},
		{429, -1},
		{503, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(status_writer_rest_ns(cases[i].status), cases[i].rest_ns);
}

/* A conflict is tried again when its time has come, and what is deleted meanwhile is not kept. */
static void test_backoff(void **state)
{
	struct backoff_set l = {NULL};

	(void)state;
	assert_false(backoff_set_has(&l, "x/q", 0));
	backoff_set_add(&l, "x/q", 10);
	backoff_set_add(&l, "y/q", 20);
	assert_true(backoff_set_has(&l, "x/q", 9));
	assert_false(backoff_set_has(&l, "x/q", 10));
	assert_false(backoff_set_has(&l, "z/q", 9));
	backoff_set_expire(&l, 10);
	assert_int_equal(backoff_set_count(&l), 1);
	assert_true(backoff_set_has(&l, "y/q", 19));
	backoff_set_add(&l, "y/q", 30);
	assert_true(backoff_set_has(&l, "y/q", 29));
	assert_int_equal(backoff_set_count(&l), 1);
	backoff_set_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written),	 cmocka_unit_test(test_nothing_used),
		cmocka_unit_test(test_leftover), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_backoff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
