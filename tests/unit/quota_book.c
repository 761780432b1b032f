/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counts of a book: by hand, by random pods against a recount, and out of a view with reservations.
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
#include "aggregator/policy/quota/quota_annotations.h"
#include "aggregator/state/join.h"
#include "shared/mem.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/near.h"
#include "tests/quota_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

/* --- by hand ---------------------------------------------------------------------------------- */

static struct resources list(int64_t cpu, int64_t memory, int64_t gpu)
{
	struct resources r = RESOURCES_NONE;

	if (cpu >= 0)
		resources_set(&r, RESOURCE_CPU, cpu);
	if (memory >= 0)
		resources_set(&r, RESOURCE_MEMORY, memory);
	if (gpu >= 0)
		resources_set_named(&r, "nvidia.com/gpu", gpu);
	return r;
}

/* Two quotas: a of CPU and GPUs, b of CPU and memory. */
static struct quota_book *two(enum quota_variant variant)
{
	struct quota q[2] = {
		{.namespace = "b", .name = "eq", .has_min = true, .has_max = true, .weight = 1},
		{.namespace = "a", .name = "eq", .has_min = true, .has_max = true, .weight = 1},
	};
	struct quota_options o;
	struct quota_book *b;

	q[0].min = list(1000, 100, -1);
	q[0].max = list(4000, 400, -1);
	q[1].min = list(2000, -1, 1);
	q[1].max = list(4000, -1, 2);
	quota_options_default(&o);
	o.variant = variant;
	b = quota_fixture_book(q, 2, &o);
	for (int i = 0; i < 2; i++) {
		resources_fini(&q[i].min);
		resources_fini(&q[i].max);
	}
	return b;
}

static void quotas_are_found_and_sorted(void **state)
{
	struct quota_book *b = two(QUOTA_CORRECTED);

	(void)state;
	assert_int_equal(quota_book_count(b), 2);
	assert_string_equal(quota_book_at(b, 0)->namespace, "a");
	assert_string_equal(quota_book_at(b, 1)->namespace, "b");
	assert_ptr_equal(quota_book_find(b, "a"), quota_book_at(b, 0));
	assert_null(quota_book_find(b, "c"));
	assert_false(quota_is_over(b, QUOTA_MIN, "c", NULL));
	quota_book_free(b);
}

/* More than 64 bits in between, and an amount that nobody names before. */
static void subtracting_undoes_adding(void **state)
{
	(void)state;
	for (int variant = QUOTA_CORRECTED; variant <= QUOTA_UPSTREAM; variant++) {
		struct quota_book *b = two((enum quota_variant)variant);
		struct resources huge = list(INT64_MAX, INT64_MAX, INT64_MAX), some = list(7, 8, 9);

		quota_book_add(b, "a", &some);
		for (int i = 0; i < 5; i++)
			quota_book_add(b, "a", &huge);
		assert_int_equal(quota_book_find(b, "a")->used.of[RESOURCE_CPU], INT64_MAX);
		assert_int_equal(quota_book_find(b, "a")->used_pods, 6);
		for (int i = 0; i < 5; i++)
			quota_book_subtract(b, "a", &huge);
		assert_true(resources_equal(&quota_book_find(b, "a")->used, &some));
		assert_int_equal(quota_book_find(b, "a")->used_pods, 1);
		quota_book_subtract(b, "a", &some);
		quota_book_subtract(b, "a", &some);
		quota_book_add(b, "a", &some);
		assert_int_equal(quota_book_find(b, "a")->used.of[RESOURCE_CPU], 0);
		assert_false(quota_is_over(b, QUOTA_MIN, "a", NULL));
		assert_false(quota_is_over(b, QUOTA_SUM_OF_MIN, "a", NULL));
		resources_fini(&huge);
		resources_fini(&some);
		quota_book_free(b);
	}
}

static void comparisons_are_strict_and_masked(void **state)
{
	static const struct {
		const char *namespace;
		int64_t used[3], more[3]; /* CPU, memory, GPU; all of more below 0: NULL */
		/* corrected, upstream */
		bool min[2], max[2], sum[2];
	} rows[] = {
		/* Equal is not over. */
		{"a", {2000, -1, 1}, {-1, -1, -1}, {false, false}, {false, false}, {false, false}},
		{"a", {2001, -1, 0}, {-1, -1, -1}, {true, true}, {false, false}, {false, false}},
		{"a", {0, -1, 2}, {-1, -1, -1}, {true, true}, {false, false}, {true, true}},
		{"a", {0, -1, 3}, {-1, -1, -1}, {true, true}, {true, false}, {true, true}},
		/* a does not name memory, which b is guaranteed: a borrows it. Upstream bounds it
		   at 0. */
		{"a", {0, 50, 0}, {-1, -1, -1}, {true, true}, {false, true}, {false, false}},
		{"a", {0, 0, 0}, {10, 50, -1}, {true, true}, {false, true}, {false, false}},
		/* Over in GPUs, but that is not asked for. */
		{"a", {0, 0, 2}, {2000, -1, -1}, {false, false}, {false, false}, {false, true}},
		{"a", {0, 0, 2}, {1, -1, 1}, {true, true}, {true, true}, {true, true}},
		{"a", {1000, 0, 0}, {2001, -1, -1}, {true, true}, {false, false}, {true, true}},
		{"a", {1000, 0, 0}, {2000, -1, -1}, {true, true}, {false, false}, {false, false}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int variant = QUOTA_CORRECTED; variant <= QUOTA_UPSTREAM; variant++) {
			struct quota_book *b = two((enum quota_variant)variant);
			struct resources used =
				list(rows[i].used[0], rows[i].used[1], rows[i].used[2]);
			struct resources more =
				list(rows[i].more[0], rows[i].more[1], rows[i].more[2]);
			const struct resources *m = rows[i].more[0] < 0 ? NULL : &more;

			quota_book_add(b, rows[i].namespace, &used);
			if (quota_is_over(b, QUOTA_MIN, rows[i].namespace, m) !=
				    rows[i].min[variant] ||
			    quota_is_over(b, QUOTA_MAX, rows[i].namespace, m) !=
				    rows[i].max[variant] ||
			    quota_is_over(b, QUOTA_SUM_OF_MIN, rows[i].namespace, m) !=
				    rows[i].sum[variant])
				fail_msg("row %zu, variant %d: min %d max %d sum %d", i, variant,
					 quota_is_over(b, QUOTA_MIN, rows[i].namespace, m),
					 quota_is_over(b, QUOTA_MAX, rows[i].namespace, m),
					 quota_is_over(b, QUOTA_SUM_OF_MIN, rows[i].namespace, m));
			resources_fini(&used);
			resources_fini(&more);
			quota_book_free(b);
		}
}

static void bounds_change_and_what_is_used_stays(void **state)
{
	struct quota_book *b = two(QUOTA_CORRECTED);
	struct quota wider = {.namespace = "a", .name = "eq", .has_min = true, .has_max = true};
	struct resources used = list(3500, 70, -1), one = list(600, -1, -1);
	int64_t min, max;

	(void)state;
	quota_book_add(b, "a", &used);
	assert_true(quota_is_over(b, QUOTA_MAX, "a", &one));
	quota_bounds(b, "a", "memory", &min, &max);
	assert_int_equal(max, INT64_MAX);
	quota_bounds(b, "a", "example.com/none", &min, &max);
	assert_int_equal(min, 0);
	wider.min = list(3000, -1, -1);
	wider.max = list(5000, 60, -1);
	resources_set(&wider.min, RESOURCE_PODS, 1);
	resources_set(&wider.max, RESOURCE_PODS, 1);
	assert_true(quota_fixture_set_bounds(b, &wider));
	assert_int_equal(quota_book_find(b, "a")->used.of[RESOURCE_CPU], 3500);
	assert_int_equal(quota_book_find(b, "a")->used.of[RESOURCE_PODS], 1);
	assert_true(quota_is_over(b, QUOTA_MAX, "a", &one)); /* of pods */
	quota_bounds(b, "a", "memory", &min, &max);
	assert_int_equal(max, 60);
	quota_bounds(b, "a", "pods", &min, &max);
	assert_int_equal(min, 1);
	assert_true(quota_is_over(b, QUOTA_MAX, "a", NULL));
	assert_false(quota_is_over(b, QUOTA_SUM_OF_MIN, "a", NULL)); /* 3.5 of 3 + 1 */
	assert_true(quota_fixture_remove(b, "b"));
	assert_true(quota_is_over(b, QUOTA_SUM_OF_MIN, "a", NULL));
	assert_false(quota_fixture_remove(b, "b"));
	assert_false(quota_fixture_insert(b, &wider));
	assert_int_equal(quota_book_count(b), 1);
	quota_book_free(b);
}

static int64_t min_of(const struct quota_book *b, const char *namespace)
{
	int64_t min = -1, max;

	quota_bounds(b, namespace, "cpu", &min, &max);
	return min;
}

/* 2 and 1 CPUs are named, and there are 2. */
static void parts_follow_the_quotas(void **state)
{
	struct quota_book *b = two(QUOTA_CORRECTED);
	struct resources there = list(2000, -1, -1);
	struct quota more = {.namespace = "c", .name = "eq", .has_min = true};
	int64_t named = quota_book_find(b, "a")->min.of[RESOURCE_CPU] +
			quota_book_find(b, "b")->min.of[RESOURCE_CPU];

	(void)state;
	resources_set(&there, RESOURCE_CPU, named / 2);
	quota_book_set_capacity(b, &there);
	assert_int_equal(min_of(b, "a") + min_of(b, "b"), named / 2);
	more.min = list(named, -1, -1);
	assert_true(quota_fixture_insert(b, &more));
	assert_int_equal(min_of(b, "c"), named / 4);
	assert_int_equal(min_of(b, "a") + min_of(b, "b"), named / 4);
	more.min = list(0, -1, -1);
	assert_true(quota_fixture_set_bounds(b, &more));
	assert_int_equal(min_of(b, "c"), 0);
	assert_int_equal(min_of(b, "a") + min_of(b, "b"), named / 2);
	assert_true(quota_fixture_remove(b, "b"));
	assert_int_equal(min_of(b, "a"), quota_book_find(b, "a")->min.of[RESOURCE_CPU] < named / 2
						 ? quota_book_find(b, "a")->min.of[RESOURCE_CPU]
						 : named / 2);
	resources_fini(&there);
	quota_book_free(b);
}

/* --- random pods against a recount ------------------------------------------------------------ */

enum { PODS = 60, ROUNDS = 4000 };

static uint64_t seed = 3;

static unsigned int pick(unsigned int below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned int)(seed >> 33) % below;
}

static void random_pods_never_drift(void **state)
{
	struct quota_book *b = two(QUOTA_CORRECTED);
	struct resources pods[PODS];
	bool in[PODS] = {false};

	(void)state;
	for (int i = 0; i < PODS; i++)
		pods[i] =
			list((int64_t)pick(3000) - 1, (int64_t)pick(30) - 1, (int64_t)pick(3) - 1);
	for (int round = 0; round < ROUNDS; round++) {
		unsigned int i = pick(PODS);
		int64_t cpu[2] = {0, 0};
		uint32_t count[2] = {0, 0};
		int64_t gpu = 0; /* b's, who is guaranteed none */

		(in[i] ? quota_book_subtract : quota_book_add)(b, i % 2 ? "a" : "b", &pods[i]);
		in[i] = !in[i];
		for (int k = 0; k < PODS; k++) {
			cpu[k % 2] += in[k] ? pods[k].of[RESOURCE_CPU] : 0;
			count[k % 2] += in[k];
		}
		assert_int_equal(quota_book_find(b, "a")->used.of[RESOURCE_CPU], cpu[1]);
		assert_int_equal(quota_book_find(b, "b")->used.of[RESOURCE_CPU], cpu[0]);
		resources_find(&quota_book_find(b, "b")->used, "nvidia.com/gpu", &gpu);
		assert_int_equal(quota_book_find(b, "a")->used_pods, count[1]);
		assert_int_equal(quota_is_over(b, QUOTA_MIN, "b", NULL),
				 cpu[0] > 1000 || gpu > 0 ||
					 quota_book_find(b, "b")->used.of[RESOURCE_MEMORY] > 100);
	}
	for (int i = 0; i < PODS; i++)
		resources_fini(&pods[i]);
	quota_book_free(b);
}

/* --- out of a view ---------------------------------------------------------------------------- */

static struct model *model;
static struct join *join;

static int setup(void **state)
{
	(void)state;
	model = model_new();
	join = join_new();
	model_fixture_sync(model, OBJECT_ELASTIC_QUOTA);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	join_free(join);
	model_free(model);
	return 0;
}

static void put_quota(const char *namespace, const char *name, const char *created,
		      const char *annotations, const char *spec)
{
	char *json = mem_printf("{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\","
				"\"creationTimestamp\":\"%s\",\"annotations\":{%s}},\"spec\":{%s}}",
				namespace, name, created, annotations, spec);

	model_put(model, model_fixture_object(OBJECT_ELASTIC_QUOTA, json));
	free(json);
}

static void put_pod(const char *namespace, const char *name, const char *node)
{
	model_put(model, model_fixture_pod(&(struct model_fixture_pod){.namespace = namespace,
								       .name = name,
								       .uid = name,
								       .node = node,
								       .cpu = "500m",
								       .memory = "1Gi"}));
}

/* Half a CPU, a sidecar of 100m, and a sandbox of 50m. */
static void put_sandboxed(const char *namespace, const char *name, const char *phase)
{
	char *json = mem_printf(
		"{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\"},\"spec\":{"
		"\"nodeName\":\"n1\",\"overhead\":{\"cpu\":\"50m\"},\"initContainers\":[{\"name\":"
		"\"s\","
		"\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":\"100m\"}}}],"
		"\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"500m\"}}}]}"
		","
		"\"status\":{\"phase\":\"%s\"}}",
		namespace, name, name, phase);

	model_put(model, model_fixture_object(OBJECT_POD, json));
	free(json);
}

static struct view *view_of(struct node_stats *stats)
{
	return join_view(join, &stats, stats ? 1 : 0, model_cluster(model), NOW);
}

static void the_oldest_quota_of_a_namespace_counts(void **state)
{
	struct quota_options o;
	struct quota_book *b;
	struct view *v;

	(void)state;
	put_quota("a", "first-by-name", "2026-01-02T00:00:00Z", "", "\"max\":{\"cpu\":\"1\"}");
	put_quota("a", "oldest", "2026-01-01T00:00:00Z", "", "\"max\":{\"cpu\":\"2\"}");
	put_quota("b", "x", "2026-01-01T00:00:00Z", "", "");
	put_quota("b", "w", "2026-01-01T00:00:00Z", "", "");
	put_pod("a", "p", "n1");
	put_pod("a", "q", NULL);
	v = view_of(NULL);
	quota_options_default(&o);
	b = quota_book_new(v, NULL, &o);
	view_drop(v); /* the book holds it */
	assert_int_equal(quota_book_count(b), 2);
	assert_string_equal(quota_book_find(b, "a")->name, "oldest");
	assert_string_equal(quota_book_find(b, "b")->name, "w");
	assert_int_equal(quota_book_find(b, "a")->used.of[RESOURCE_CPU], 500);
	assert_int_equal(quota_book_find(b, "a")->pending.of[RESOURCE_CPU], 500);
	assert_int_equal(quota_book_find(b, "a")->used_pods, 1);
	assert_int_equal(quota_book_find(b, "a")->pending_pods, 1);
	assert_null(quota_book_find(b, "a")->use);
	assert_int_equal(quota_book_find(b, "b")->used_pods, 0);
	quota_book_free(b);
}

static void reserved_requests_are_used(void **state)
{
	struct reservations *set = reservations_new();
	struct reservation e = {.uid = "u1", .namespace = "a", .name = "promised", .node = ""};
	struct reservations_copy *copy;
	struct quota_options o;
	struct quota_book *b;
	struct view *v;

	(void)state;
	put_quota("a", "eq", "2026-01-02T00:00:00Z", "", "\"max\":{\"cpu\":\"1\"}");
	put_pod("a", "p", "n1");
	e.requests = list(300, -1, -1);
	assert_int_equal(reservations_reserve(set, &e, NOW), 0);
	e.uid = "u2";
	e.namespace = "no-quota";
	assert_int_equal(reservations_reserve(set, &e, NOW), 0);
	copy = reservations_take(set, NOW);
	v = view_of(NULL);
	quota_options_default(&o);
	b = quota_book_new(v, copy, &o);
	assert_int_equal(quota_book_find(b, "a")->used.of[RESOURCE_CPU], 800);
	assert_int_equal(quota_book_find(b, "a")->used_pods, 2);
	assert_int_equal(quota_book_find(b, "a")->assumed_pods, 1);
	quota_book_free(b);
	reservations_copy_drop(copy);
	reservations_free(set);
	view_drop(v);
}

static void the_default_is_for_namespaces_without_a_quota(void **state)
{
	struct quota_options o;
	struct quota_book *b;
	struct view *v;

	(void)state;
	put_quota("a", "eq", "2026-01-02T00:00:00Z", "", "\"max\":{\"cpu\":\"1\"}");
	put_pod("a", "p", "n1");
	put_pod("b", "p2", "n1");
	model_put(model, model_fixture_object(OBJECT_NAMESPACE, "{\"metadata\":{\"name\":\"c\"}}"));
	v = view_of(NULL);
	quota_options_default(&o);
	o.has_default = true;
	resources_set(&o.default_max, RESOURCE_CPU, 400);
	b = quota_book_new(v, NULL, &o);
	assert_int_equal(quota_book_count(b), 3);
	assert_string_equal(quota_book_find(b, "a")->name, "eq");
	assert_string_equal(quota_book_find(b, "b")->name, "");
	assert_int_equal(quota_book_find(b, "b")->used.of[RESOURCE_CPU], 500);
	assert_true(quota_is_over(b, QUOTA_MAX, "b", NULL));
	assert_false(quota_is_over(b, QUOTA_MAX, "c", NULL));
	quota_book_free(b);
	view_drop(v);
}

/* --- status ----------------------------------------------------------------------------------- */

/*
 * A pod that runs asks for half a CPU beside its sidecar and its sandbox; nobody has started the
 * other.
 */
static void status_tells_what_the_variant_counts(void **state)
{
	(void)state;
	put_quota("a", "eq", "2026-01-02T00:00:00Z", "",
		  "\"min\":{\"cpu\":\"2\"},\"max\":{\"cpu\":\"3\",\"memory\":\"1Gi\"}");
	put_quota("b", "eq", "2026-01-02T00:00:00Z", "", "\"min\":{\"nvidia.com/gpu\":\"1\"}");
	put_sandboxed("a", "runs", "Running");
	put_sandboxed("a", "waits", "Pending");
	for (int variant = QUOTA_CORRECTED; variant <= QUOTA_UPSTREAM; variant++) {
		struct view *v = view_of(NULL);
		struct resources *told;
		struct quota_options o;
		struct quota_book *b;
		int64_t gpus = -1;

		quota_options_default(&o);
		o.variant = (enum quota_variant)variant;
		b = quota_book_new(v, NULL, &o);
		told = quota_status_new(b, v);
		assert_int_equal(told[0].of[RESOURCE_CPU],
				 variant == QUOTA_CORRECTED ? 2 * (500 + 100 + 50) : 500);
		assert_true(resources_has(&told[0], RESOURCE_MEMORY));
		assert_true(resources_find(&told[1], "nvidia.com/gpu", &gpus));
		assert_int_equal(gpus, 0);
		quota_status_free(b, told);
		quota_book_free(b);
		view_drop(v);
	}
}

/* --- annotations ------------------------------------------------------------------------------ */

static void good_annotations_are_read(void **state)
{
	struct label labels[] = {{"evenkeel.io/max-evictions", "15/1h"},
				 {"evenkeel.io/min-runtime", "1h30m"},
				 {"evenkeel.io/weight", "2.5"}};
	struct labels all = {3, labels};
	struct quota_annotations a;
	struct quota_annotation_notes notes;

	(void)state;
	assert_int_equal(quota_annotations_read(&all, &a, &notes), 0);
	assert_near(a.weight, 2.5);
	assert_int_equal(a.min_runtime_ns, 5400 * 1000000000LL);
	assert_int_equal(a.evictions_max, 15);
	assert_int_equal(a.evictions_ns, 3600 * 1000000000LL);
	for (int i = 0; i < QUOTA_ANNOTATIONS; i++)
		assert_string_equal(notes.of[i].text, "");
	all.count = 0;
	assert_int_equal(quota_annotations_read(&all, &a, NULL), 0);
	assert_near(a.weight, 1);
	assert_int_equal(a.evictions_ns, 0);
}

static void bad_annotations_are_told_and_count_as_absent(void **state)
{
	static const struct {
		enum quota_annotation which;
		const char *text;
	} bad[] = {
		{QUOTA_WEIGHT, ""},
		{QUOTA_WEIGHT, "0"},
		{QUOTA_WEIGHT, "-1"},
		{QUOTA_WEIGHT, "two"},
		{QUOTA_WEIGHT, "1e3"},
		{QUOTA_WEIGHT, "1.2.3"},
		{QUOTA_WEIGHT, "nan"},
		{QUOTA_WEIGHT, "1000001"},
		{QUOTA_WEIGHT, "1k"},
		{QUOTA_MIN_RUNTIME, ""},
		{QUOTA_MIN_RUNTIME, "30"},
		{QUOTA_MIN_RUNTIME, "-5m"},
		{QUOTA_MIN_RUNTIME, "721h"},
		{QUOTA_MAX_EVICTIONS, "5"},
		{QUOTA_MAX_EVICTIONS, "/1h"},
		{QUOTA_MAX_EVICTIONS, "5/"},
		{QUOTA_MAX_EVICTIONS, "5/0s"},
		{QUOTA_MAX_EVICTIONS, "5/999ms"},
		{QUOTA_MAX_EVICTIONS, "5/721h"},
		{QUOTA_MAX_EVICTIONS, "5-1h"},
		{QUOTA_MAX_EVICTIONS, "-5/1h"},
		{QUOTA_MAX_EVICTIONS, "5/h"},
		{QUOTA_MAX_EVICTIONS, " 5/1h"},
		{QUOTA_MAX_EVICTIONS, "1000001/1h"},
		{QUOTA_MAX_EVICTIONS, "99999999999999999999/1h"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct label label = {quota_annotation_key(bad[i].which), bad[i].text};
		struct labels all = {1, &label};
		struct quota_annotation_notes notes;
		struct quota_annotations a;
		char *quoted = mem_printf("\"%s\" is not ", bad[i].text);

		if (quota_annotations_read(&all, &a, &notes) != 1)
			fail_msg("\"%s\" is accepted", bad[i].text);
		assert_memory_equal(notes.of[bad[i].which].text, quoted, strlen(quoted));
		assert_near(a.weight, 1);
		assert_int_equal(a.min_runtime_ns, 0);
		assert_int_equal(a.evictions_ns, 0);
		free(quoted);
	}
}

static void annotations_reach_the_book(void **state)
{
	struct quota_options o;
	struct quota_book *b;
	struct view *v;

	(void)state;
	put_quota("a", "eq", "2026-01-02T00:00:00Z",
		  "\"evenkeel.io/weight\":\"3\",\"evenkeel.io/min-runtime\":\"soon\","
		  "\"evenkeel.io/max-evictions\":\"2/10m\"",
		  "");
	v = view_of(NULL);
	quota_options_default(&o);
	b = quota_book_new(v, NULL, &o);
	assert_near(quota_book_at(b, 0)->weight, 3);
	assert_int_equal(quota_book_at(b, 0)->min_runtime_ns, 0);
	assert_int_equal(quota_book_at(b, 0)->evictions_max, 2);
	assert_int_equal(quota_book_at(b, 0)->evictions_ns, 600 * 1000000000LL);
	quota_book_free(b);
	view_drop(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quotas_are_found_and_sorted),
		cmocka_unit_test(subtracting_undoes_adding),
		cmocka_unit_test(comparisons_are_strict_and_masked),
		cmocka_unit_test(bounds_change_and_what_is_used_stays),
		cmocka_unit_test(parts_follow_the_quotas),
		cmocka_unit_test(random_pods_never_drift),
		cmocka_unit_test_setup_teardown(the_oldest_quota_of_a_namespace_counts, setup,
						teardown),
		cmocka_unit_test_setup_teardown(reserved_requests_are_used, setup, teardown),
		cmocka_unit_test_setup_teardown(the_default_is_for_namespaces_without_a_quota,
						setup, teardown),
		cmocka_unit_test_setup_teardown(status_tells_what_the_variant_counts, setup,
						teardown),
		cmocka_unit_test(good_annotations_are_read),
		cmocka_unit_test(bad_annotations_are_told_and_count_as_absent),
		cmocka_unit_test_setup_teardown(annotations_reach_the_book, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
