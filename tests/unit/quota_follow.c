/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A book that is brought up to the next view and the next copy of the reservations is the book that would
 * be made of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/quota/quota.h"
#include "aggregator/state/join.h"
#include "shared/mem.h"
#include "tests/model_fixture.h"
#include "tests/usage_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

enum { SPACES = 9, STEPS = 400 };

static uint32_t seed = 3;
static size_t scaled; /* of all min that were looked at */
static struct model *model;
static struct join *join;
static struct reservations *reservations;

static int any(int below)
{
	return (int)(fixture_random(&seed) * below);
}

static void put_quota(int space)
{
	char *json = mem_printf("{\"metadata\":{\"namespace\":\"team-%d\",\"name\":\"q\"},\"spec\":"
				"{\"min\":{\"cpu\":\"%d\",\"pods\":\"3\"},\"max\":{\"cpu\":\"9\","
				"\"nvidia.com/gpu\":\"2\"}}}",
				space, 1 + any(4));

	model_put(model, model_fixture_object(OBJECT_ELASTIC_QUOTA, json));
	free(json);
}

/* With what its quota governs, and what it does not; bound, pending or ended. */
static void put_pod(void)
{
	int space = any(SPACES), pod = any(6);
	char *node = any(3) ? mem_printf("\"nodeName\":\"n%d\",", any(3)) : mem_strdup("");
	char *json = mem_printf(
		"{\"metadata\":{\"namespace\":\"team-%d\",\"name\":\"pod-%d\",\"uid\":\"uid-%d-%"
		"d\"},"
		"\"spec\":{%s\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{"
		"\"cpu\":\"%dm\"%s}}}]},\"status\":{\"phase\":\"%s\"}}",
		space, pod, space, pod, node, 100 * any(20),
		any(4) ? "" : ",\"nvidia.com/gpu\":\"1\"", any(5) ? "Running" : "Succeeded");

	model_put(model, model_fixture_object(OBJECT_POD, json));
	free(json);
	free(node);
}

static void reserve(void)
{
	char namespace[16], name[16], uid[32];
	int space = any(SPACES + 1), pod = any(6);
	struct reservation e = {.namespace = namespace, .name = name, .uid = uid, .node = ""};

	snprintf(namespace, sizeof(namespace), "team-%d", space);
	snprintf(name, sizeof(name), "pod-%d", pod);
	snprintf(uid, sizeof(uid), "uid-%d-%d", space, pod);
	resources_set(&e.requests, RESOURCE_CPU, 1 + any(3000));
	if (!any(3))
		resources_set_named(&e.requests, "nvidia.com/gpu", 1);
	switch (any(4)) {
	case 0:
		reservations_release(reservations, uid);
		break;
	case 1:
		reservations_bind(reservations, uid, "n1",
				  model_generation(model) + (uint64_t)any(3));
		break;
	default:
		reservations_reserve(reservations, &e, NOW);
	}
	resources_fini(&e.requests);
}

/* Now less than all min come to, now more. */
static void change_nodes(void)
{
	char name[16], *json;

	snprintf(name, sizeof(name), "n%d", any(3));
	json = mem_printf("{\"metadata\":{\"name\":\"%s\"},\"status\":{\"allocatable\":{"
			  "\"cpu\":\"%d\",\"pods\":\"%d\"}}}",
			  name, 1 + any(14), 5 + any(10));
	if (any(4))
		model_put(model, model_fixture_object(OBJECT_NODE, json));
	else
		model_remove(model, OBJECT_NODE, "", name);
	free(json);
}

static void change_any(void)
{
	if (!any(10))
		change_nodes();
	for (int i = any(4); i > 0; i--)
		put_pod();
	for (int i = any(4); i > 0; i--)
		reserve();
	if (!any(20))
		put_quota(any(SPACES));
	if (!any(40))
		model_remove(model, OBJECT_ELASTIC_QUOTA, "team-1", "q");
}

static void assert_amounts(const struct resources *a, const struct resources *b)
{
	if (!resources_equal(a, b))
		fail_msg("cpu %ld and %ld, or others", (long)a->of[RESOURCE_CPU],
			 (long)b->of[RESOURCE_CPU]);
}

static void assert_quota(const struct quota *a, const struct quota *b)
{
	assert_string_equal(a->namespace, b->namespace);
	assert_string_equal(a->name, b->name);
	assert_amounts(&a->min, &b->min);
	assert_amounts(&a->max, &b->max);
	assert_amounts(&a->used, &b->used);
	assert_amounts(&a->pending, &b->pending);
	assert_int_equal(a->used_pods, b->used_pods);
	assert_int_equal(a->pending_pods, b->pending_pods);
	assert_int_equal(a->assumed_pods, b->assumed_pods);
	assert_ptr_equal(a->use, b->use);
}

static void assert_guaranteed(const struct quota_book *a, const struct quota_book *b,
			      const char *namespace)
{
	static const char *const names[] = {"cpu", "pods", "nvidia.com/gpu"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int64_t x[2], y[2], named = 0;

		quota_bounds(a, namespace, names[i], &x[0], &x[1]);
		quota_bounds(b, namespace, names[i], &y[0], &y[1]);
		assert_memory_equal(x, y, sizeof(x));
		resources_find(&quota_book_find(a, namespace)->min, names[i], &named);
		scaled += x[0] < named;
	}
}

static void assert_verdicts(const struct quota_book *a, const struct quota_book *b)
{
	for (int i = 0; i < 4 * SPACES; i++) {
		struct resources requests = RESOURCES_NONE;
		char namespace[16];
		struct quota_ask ask = {.uid = "asks",
					.namespace = namespace,
					.requests = &requests};
		struct quota_verdict x, y;

		snprintf(namespace, sizeof(namespace), "team-%d", i % SPACES);
		resources_set(&requests, RESOURCE_CPU, any(5000));
		if (!any(3))
			resources_set_named(&requests, "nvidia.com/gpu", 1);
		quota_admit(a, &ask, &x);
		quota_admit(b, &ask, &y);
		assert_int_equal(x.reason, y.reason);
		assert_string_equal(x.error.text, y.error.text);
		resources_fini(&requests);
	}
}

static void assert_books(const struct quota_book *a, const struct quota_book *b)
{
	assert_int_equal(quota_book_count(a), quota_book_count(b));
	for (size_t i = 0; i < quota_book_count(a); i++) {
		assert_quota(quota_book_at(a, i), quota_book_at(b, i));
		assert_guaranteed(a, b, quota_book_at(a, i)->namespace);
	}
	assert_verdicts(a, b);
}

static void step(struct quota_book **kept, const struct quota_options *o, size_t *updated)
{
	struct reservations_copy *copy;
	struct quota_book *made;
	struct view *v;

	change_any();
	copy = any(10) ? reservations_take(reservations, NOW) : NULL;
	v = join_view(join, NULL, 0, model_cluster(model), NOW);
	made = quota_book_new(v, copy, o);
	if (*kept && quota_book_update(*kept, v, copy)) {
		++*updated;
	} else {
		quota_book_free(*kept);
		*kept = quota_book_new(v, copy, o);
	}
	assert_books(*kept, made);
	quota_book_free(made);
	reservations_copy_drop(copy);
	view_drop(v);
}

static void follow(enum quota_variant variant)
{
	struct quota_book *kept = NULL;
	struct quota_options o;
	size_t updated = 0;

	quota_options_default(&o);
	o.variant = variant;
	model = model_new();
	join = join_new();
	reservations = reservations_new();
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(model, (enum object_kind)kind);
	for (int i = 0; i < SPACES - 1; i++)
		put_quota(i);
	for (int i = 0; i < STEPS; i++)
		step(&kept, &o, &updated);
	assert_true(updated > STEPS / 2);
	quota_book_free(kept);
	reservations_free(reservations);
	join_free(join);
	model_free(model);
}

static void an_updated_book_is_a_new_one(void **state)
{
	(void)state;
	follow(QUOTA_CORRECTED);
	assert_true(scaled > STEPS);
	follow(QUOTA_UPSTREAM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_updated_book_is_a_new_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
