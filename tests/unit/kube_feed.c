/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of objects that cannot be read, in lists and in watches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "aggregator/model/model.h"
#include "tests/feed_world.h"

#define QUOTA(name, cpu, version)                                                                  \
	"{\"apiVersion\":\"scheduling.x-k8s.io/v1alpha1\",\"kind\":\"ElasticQuota\","              \
	"\"metadata\":{\"namespace\":\"x\",\"name\":\"" name "\",\"resourceVersion\":\"" version   \
	"\"},\"spec\":{\"min\":{\"cpu\":\"" cpu "\"}}}"
#define EVENT(type, name, cpu, version)                                                            \
	"{\"type\":\"" type "\",\"object\":" QUOTA(name, cpu, version) "}\n"
#define LIST(items)                                                                                \
	"{\"kind\":\"ElasticQuotaList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":"       \
	"[" items "]}"

static void expect_of(enum object_kind kind, const char *list, const char *events, const char *want)
{
	struct buf story = BUF_INIT;
	const char *at;

	feed_world_tell(kind, list, strlen(list), events, strlen(events), 1000, &story);
	buf_add_str(&story, "");
	at = strstr(story.data, want);
	if (!at)
		fail_msg("%s\nshould have\n%s", story.data, want);
	buf_fini(&story);
}

static void expect(const char *list, const char *events, const char *want)
{
	expect_of(OBJECT_ELASTIC_QUOTA, list, events, want);
}

/* Whoever plans with the node must know that it is not empty. */
static void test_unreadable_pods_have_a_node(void **state)
{
	(void)state;
	expect_of(OBJECT_POD,
		  "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
		  "\"1\"},"
		  "\"items\":[{\"metadata\":{\"namespace\":\"x\",\"name\":\"p\"},\"spec\":{"
		  "\"nodeName\":"
		  "\"n1\",\"containers\":7}}]}",
		  "", "unreadable x/p on n1: spec.containers: ");
}

/* Named until they are repaired or deleted; the newest reason counts. */
static void test_unreadable_are_named(void **state)
{
	static const char list[] =
		LIST(QUOTA("a", "-1", "1") "," QUOTA("b", "-1", "1") "," QUOTA("c", "-1", "1"));

	(void)state;
	expect(list, "",
	       "unreadable x/a: spec.min.cpu: must not be negative\n"
	       "unreadable x/b: spec.min.cpu: must not be negative\n"
	       "unreadable x/c: spec.min.cpu: must not be negative\nskipped 3,");
	expect(list,
	       EVENT("MODIFIED", "a", "2", "2") EVENT("DELETED", "b", "-1", "3")
		       EVENT("MODIFIED", "c", "?", "4"),
	       "\nunreadable x/c: spec.min.cpu: \"?\" is not a quantity: a number like 250m, 1.5Gi "
	       "or "
	       "12e6 is expected\nskipped 4,");
}

/* What was known of it does not count any more. */
static void test_edited_to_unreadable_is_removed(void **state)
{
	(void)state;
	expect(LIST(QUOTA("a", "1", "1")), EVENT("MODIFIED", "a", "-1", "2"), "remove x/a\n");
	expect(LIST(QUOTA("a", "1", "1")),
	       EVENT("MODIFIED", "a", "-1", "2") EVENT("MODIFIED", "a", "3", "3"),
	       "remove x/a\nput x/a\n");
}

static void test_bounded(void **state)
{
	struct unreadables u = {0};
	char name[8];

	(void)state;
	for (int i = 0; i < UNREADABLE_MAX; i++) {
		snprintf(name, sizeof(name), "q%d", i);
		unreadables_put(&u, "x", name, "", "bad");
	}
	assert_false(u.more);
	unreadables_put(&u, "x", "q3", "", "worse\n");
	assert_false(u.more);
	assert_string_equal(u.of[3].why, "worse ");
	unreadables_put(&u, "y", "q3", "", "bad");
	assert_true(u.more);
	assert_int_equal(u.count, UNREADABLE_MAX);
	unreadables_remove(&u, "y", "q3");
	unreadables_remove(&u, "x", "q3");
	assert_int_equal(u.count, UNREADABLE_MAX - 1);
	assert_string_equal(u.of[3].name, "q4");
}

/* That another one is unreadable is news to the model. */
static void test_model_sees_another(void **state)
{
	/* Each differs from the one before in one text. */
	static const struct unreadable others[] = {
		{"x", "q", "", "bad"},	{"y", "q", "", "bad"},	  {"y", "r", "", "bad"},
		{"y", "r", "n", "bad"}, {"y", "r", "n", "worse"},
	};
	struct model *m = model_new();
	struct model_source source = {.state = SOURCE_SYNCED};

	(void)state;
	model_set_source(m, OBJECT_ELASTIC_QUOTA, &source);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const struct unreadable *o = &others[i];
		uint64_t before = model_generation(m);

		model_set_source(m, OBJECT_ELASTIC_QUOTA, &source);
		assert_int_equal(model_generation(m), before);
		source.unreadable = (struct unreadables){0};
		unreadables_put(&source.unreadable, o->namespace, o->name, o->node, o->why);
		model_set_source(m, OBJECT_ELASTIC_QUOTA, &source);
		assert_true(model_generation(m) > before);
	}
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unreadable_pods_have_a_node),
		cmocka_unit_test(test_unreadable_are_named),
		cmocka_unit_test(test_edited_to_unreadable_is_removed),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_model_sees_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
