/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "aggregator/model/resources.h"

#define MAX   INT64_MAX
#define ENDED ((const char *)NULL)

/* Names and amounts, ended by ENDED. */
static struct resources list(const char *name, ...)
{
	struct resources r = RESOURCES_NONE;
	va_list args;

	va_start(args, name);
	for (; name; name = va_arg(args, const char *))
		resources_set_named(&r, name, va_arg(args, int64_t));
	va_end(args);
	return r;
}

static int64_t amount(const struct resources *r, const char *name)
{
	int64_t value = -77;

	assert_true(resources_find(r, name, &value));
	return value;
}

static void test_absent_is_not_zero(void **state)
{
	struct resources r = list("cpu", (int64_t)0, "x.io/gpu", (int64_t)0, ENDED);
	int64_t value = 77;

	(void)state;
	assert_true(resources_has(&r, RESOURCE_CPU));
	assert_false(resources_has(&r, RESOURCE_MEMORY));
	assert_int_equal(amount(&r, "cpu"), 0);
	assert_int_equal(amount(&r, "x.io/gpu"), 0);
	assert_false(resources_find(&r, "memory", &value));
	assert_false(resources_find(&r, "x.io/gpv", &value));
	assert_int_equal(value, 77);
	resources_fini(&r);
	assert_false(resources_has(&r, RESOURCE_CPU));
	assert_false(resources_find(&r, "x.io/gpu", &value));
}

static void test_extended_are_sorted(void **state)
{
	static const char *const order[] = {"a", "b", "c", "d", "e"};
	struct resources r = list("d", (int64_t)4, "b", (int64_t)2, "e", (int64_t)5, "a",
				  (int64_t)1, "c", (int64_t)9, "c", (int64_t)3, ENDED);

	(void)state;
	assert_int_equal(r.extended_count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_string_equal(r.extended[i].name, order[i]);
		assert_int_equal(r.extended[i].amount, i + 1);
	}
	resources_fini(&r);
}

static void test_names(void **state)
{
	static const char *const expect[] = {"cpu", "memory", "ephemeral-storage", "pods"};
	struct resources r = RESOURCES_NONE;

	(void)state;
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++) {
		assert_string_equal(resource_name((enum resource_id)id), expect[id]);
		resources_set_named(&r, expect[id], 5 + id);
		assert_int_equal(r.of[id], 5 + id);
	}
	assert_int_equal(r.extended_count, 0);
	assert_int_equal(r.has, 15);
}

static void test_walk(void **state)
{
	struct resources r = list("x.io/b", (int64_t)4, "pods", (int64_t)3, "cpu", (int64_t)1, "a",
				  (int64_t)5, ENDED);
	static const char *const expect[] = {"cpu", "pods", "a", "x.io/b"};
	static const int64_t amounts[] = {1, 3, 5, 4};
	size_t at = 0, count = 0;
	const char *name;
	int64_t value;

	(void)state;
	for (; resources_next(&r, &at, &name, &value); count++) {
		assert_true(count < 4);
		assert_string_equal(name, expect[count]);
		assert_int_equal(value, amounts[count]);
	}
	assert_int_equal(count, 4);
	assert_false(resources_next(&r, &at, &name, &value));
	resources_fini(&r);
	at = 0;
	assert_false(resources_next(&r, &at, &name, &value));
}

static void check(struct resources got, struct resources expect)
{
	assert_true(resources_equal(&got, &expect));
	assert_true(resources_equal(&expect, &got));
	resources_fini(&got);
	resources_fini(&expect);
}

static struct resources left(void)
{
	return list("cpu", (int64_t)5, "pods", (int64_t)1, "b", (int64_t)7, "d", (int64_t)-3,
		    ENDED);
}

static struct resources right(void)
{
	return list("cpu", (int64_t)2, "memory", (int64_t)-4, "a", (int64_t)1, "b", (int64_t)9, "e",
		    (int64_t)-8, ENDED);
}

static void test_combinations(void **state)
{
	struct resources r = right(), to;

	(void)state;
	to = left();
	resources_add(&to, &r);
	check(to, list("cpu", (int64_t)7, "pods", (int64_t)1, "memory", (int64_t)-4, "a",
		       (int64_t)1, "b", (int64_t)16, "d", (int64_t)-3, "e", (int64_t)-8, ENDED));
	to = left();
	resources_max(&to, &r);
	/* What only the other has is taken also when it is below 0. */
	check(to, list("cpu", (int64_t)5, "pods", (int64_t)1, "memory", (int64_t)-4, "a",
		       (int64_t)1, "b", (int64_t)9, "d", (int64_t)-3, "e", (int64_t)-8, ENDED));
	to = left();
	resources_subtract(&to, &r);
	check(to, list("cpu", (int64_t)3, "pods", (int64_t)1, "memory", (int64_t)4, "a",
		       (int64_t)-1, "b", (int64_t)-2, "d", (int64_t)-3, "e", (int64_t)8, ENDED));
	to = RESOURCES_NONE;
	resources_add(&to, &r);
	check(to, right());
	to = left();
	resources_subtract(&to, &to);
	check(to,
	      list("cpu", (int64_t)0, "pods", (int64_t)0, "b", (int64_t)0, "d", (int64_t)0, ENDED));
	resources_fini(&r);
}

static void test_saturation(void **state)
{
	struct resources big = list("cpu", MAX, "x", MAX, ENDED);
	struct resources small = list("cpu", -MAX, "x", -MAX, ENDED), to;

	(void)state;
	resources_copy(&to, &big);
	resources_add(&to, &big);
	assert_true(to.of[RESOURCE_CPU] == MAX && amount(&to, "x") == MAX);
	resources_subtract(&to, &small);
	assert_true(to.of[RESOURCE_CPU] == MAX && amount(&to, "x") == MAX);
	resources_subtract(&to, &big);
	assert_true(to.of[RESOURCE_CPU] == 0);
	resources_subtract(&to, &big);
	resources_subtract(&to, &big);
	assert_true(to.of[RESOURCE_CPU] == -MAX && amount(&to, "x") == -MAX);
	resources_add(&to, &small);
	assert_true(to.of[RESOURCE_CPU] == -MAX && amount(&to, "x") == -MAX);
	resources_set(&small, RESOURCE_CPU, -1);
	resources_add(&to, &small);
	assert_true(to.of[RESOURCE_CPU] == -MAX);
	resources_fini(&to);
	resources_fini(&small);
	resources_fini(&big);
}

static void test_equality(void **state)
{
	struct resources a = left(), b = left();

	(void)state;
	assert_true(resources_equal(&a, &b));
	resources_set(&b, RESOURCE_CPU, 6);
	assert_false(resources_equal(&a, &b));
	resources_set(&b, RESOURCE_CPU, 5);
	resources_set(&b, RESOURCE_MEMORY, 0);
	assert_false(resources_equal(&a, &b));
	resources_fini(&b);
	b = left();
	resources_set_named(&b, "d", 3);
	assert_false(resources_equal(&a, &b));
	resources_fini(&b);
	b = left();
	resources_set_named(&b, "e", 3);
	assert_false(resources_equal(&a, &b));
	resources_fini(&b);
	resources_copy(&b, &a);
	assert_true(a.extended[0].name != b.extended[0].name);
	check(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absent_is_not_zero),
		cmocka_unit_test(test_extended_are_sorted),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_combinations),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_saturation),
		cmocka_unit_test(test_equality),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
