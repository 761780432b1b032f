/* SPDX-License-Identifier: Apache-2.0 */
/* Who is admitted, and the sentence they get, in both variants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/quota/quota.h"
#include "shared/mem.h"
#include "tests/quota_fixture.h"

#define GI (1LL << 30)

enum { QUOTAS_MAX = 4, NOMINATED_MAX = 3, PAIRS_MAX = 4 };

/* A list of amounts as a table can have it. */
struct pair {
	const char *name;
	int64_t amount;
};

struct row {
	const char *namespace;
	struct pair min[PAIRS_MAX], max[PAIRS_MAX], used[PAIRS_MAX];
	bool no_min, no_max;
	uint32_t pods;
};

struct waiting {
	const char *namespace, *uid;
	int32_t priority;
	struct pair asks[PAIRS_MAX];
};

struct scene {
	const char *what;
	struct row quotas[QUOTAS_MAX];
	struct waiting nominated[NOMINATED_MAX];
	const char *namespace;
	int32_t priority;
	struct pair asks[PAIRS_MAX], reserved[PAIRS_MAX];
	enum quota_admission corrected, upstream;
	const char *why; /* corrected; NULL: any */
};

static const struct scene scenes[] = {
	{
		.what = "equal to max and to the sum of mins is not over",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 2000}},
			    .max = {{"cpu", 2000}},
			    .used = {{"cpu", 1000}},
			    .pods = 1}},
		.namespace = "a",
		.asks = {{"cpu", 1000}},
		.corrected = QUOTA_ADMITTED,
		.upstream = QUOTA_ADMITTED,
		.why = "within max of quota a/eq and the sum of all min",
	},
	{
		.what = "over max by a little",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 9000}},
			    .max = {{"cpu", 4500}},
			    .used = {{"cpu", 4000}},
			    .pods = 1}},
		.namespace = "a",
		.asks = {{"cpu", 501}},
		.corrected = QUOTA_OVER_MAX,
		.upstream = QUOTA_OVER_MAX,
		.why = "cpu: 4.0 used + 0.501 asked is over max 4.5 of quota a/eq: wait for 0.001 "
		       "to be "
		       "freed, or raise max",
	},
	{
		.what = "bytes are told exactly",
		.quotas = {{.namespace = "a",
			    .min = {{"memory", 9 * GI}},
			    .max = {{"memory", 4 * GI}},
			    .used = {{"memory", 3 * GI}}}},
		.namespace = "a",
		.asks = {{"memory", GI + 1}},
		.corrected = QUOTA_OVER_MAX,
		.upstream = QUOTA_OVER_MAX,
		.why = "memory: 3Gi used + 1073741825 asked is over max 4Gi of quota a/eq: wait "
		       "for 1 to "
		       "be freed, or raise max",
	},
	{
		.what = "alone it asks for more than max",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 9000}},
			    .max = {{"cpu", 2000}},
			    .used = {{"cpu", 500}}}},
		.namespace = "a",
		.asks = {{"cpu", 2250}},
		.corrected = QUOTA_NEVER,
		.upstream = QUOTA_OVER_MAX,
		.why = "cpu: 2.25 asked is alone over max 2.0 of quota a/eq: waiting does not "
		       "help; ask for "
		       "less, or raise max",
	},
	{
		.what = "what max does not name is not bounded",
		.quotas = {{.namespace = "a",
			    .min = {{"nvidia.com/gpu", 4}},
			    .max = {{"nvidia.com/gpu", 5}},
			    .used = {{NULL, 0}}}},
		.namespace = "a",
		.asks = {{"cpu", 100}, {"nvidia.com/gpu", 1}},
		.corrected = QUOTA_ADMITTED,
		.upstream = QUOTA_OVER_MAX,
	},
	{
		.what = "a GPU that nobody guarantees holds up nobody",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 1000}},
			    .max = {{"cpu", 1000}},
			    .used = {{"nvidia.com/gpu", 1}}},
			   {.namespace = "b",
			    .min = {{"cpu", 1000}},
			    .max = {{"cpu", 1000}},
			    .used = {{NULL, 0}}}},
		.namespace = "b",
		.asks = {{"cpu", 100}},
		.corrected = QUOTA_ADMITTED,
		.upstream = QUOTA_OVER_SUM,
	},
	{
		.what = "only a max: nothing is guaranteed, so nothing gates",
		.quotas = {{"a", .no_min = true, .max = {{"cpu", 4000}}}},
		.namespace = "a",
		.asks = {{"cpu", 1000}},
		.corrected = QUOTA_ADMITTED,
		.upstream = QUOTA_OVER_SUM,
	},
	{
		.what = "only a max beside a min: it borrows of that",
		.quotas = {{"a", .no_min = true, .max = {{"cpu", 4000}}, .used = {{"cpu", 1500}}},
			   {.namespace = "b",
			    .min = {{"cpu", 2000}},
			    .max = {{"cpu", 4000}},
			    .used = {{NULL, 0}}}},
		.namespace = "a",
		.asks = {{"cpu", 1000}},
		.corrected = QUOTA_OVER_SUM,
		.upstream = QUOTA_OVER_SUM,
		.why = "cpu: 1.5 used by all quotas + 1.0 asked is over 2.0, the sum of their min: "
		       "wait for "
		       "0.5 to be freed, or raise a min; quota a/eq would borrow",
	},
	{
		.what = "a quota that does not name CPU borrows all that it uses of it",
		.quotas = {{.namespace = "a",
			    .min = {{"memory", 1}},
			    .max = {{"memory", 9}},
			    .used = {{"cpu", 5000}}},
			   {.namespace = "b",
			    .min = {{"cpu", 2000}},
			    .max = {{"cpu", 4000}},
			    .used = {{NULL, 0}}}},
		.namespace = "b",
		.asks = {{"cpu", 2000}},
		.corrected = QUOTA_OVER_SUM,
		.upstream = QUOTA_OVER_SUM,
		.why = "cpu: 5.0 used by all quotas + 2.0 asked is over 2.0, the sum of their min: "
		       "wait for 5.0 to be freed, by itself or by preempting those who borrow, as "
		       "quota b/eq is within its min",
	},
	{
		.what = "a pod of a quota that does not name CPU would borrow it",
		.quotas = {{.namespace = "a",
			    .min = {{"memory", 9}},
			    .max = {{"memory", 9}},
			    .used = {{"cpu", 1000}}},
			   {.namespace = "b",
			    .min = {{"cpu", 2000}},
			    .max = {{"cpu", 4000}},
			    .used = {{NULL, 0}}}},
		.namespace = "a",
		.asks = {{"cpu", 1500}, {"memory", 1}},
		.corrected = QUOTA_OVER_SUM,
		.upstream = QUOTA_OVER_MAX,
		.why = "cpu: 1.0 used by all quotas + 1.5 asked is over 2.0, the sum of their min: "
		       "wait for 0.5 to be freed, or raise a min; quota a/eq would borrow",
	},
	{
		.what = "within its min, and others borrow it",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 2000}},
			    .max = {{"cpu", 4000}},
			    .used = {{"cpu", 3500}}},
			   {.namespace = "b",
			    .min = {{"cpu", 2000}},
			    .max = {{"cpu", 4000}},
			    .used = {{NULL, 0}}}},
		.namespace = "b",
		.asks = {{"cpu", 1000}},
		.corrected = QUOTA_OVER_SUM,
		.upstream = QUOTA_OVER_SUM,
		.why = "cpu: 3.5 used by all quotas + 1.0 asked is over 4.0, the sum of their min: "
		       "wait for "
		       "0.5 to be freed, by itself or by preempting those who borrow, as quota "
		       "b/eq is "
		       "within its min",
	},
	{
		.what = "over in memory already, and asks for none",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 2000}, {"memory", 4}},
			    .max = {{"cpu", 2000}, {"memory", 4}},
			    .used = {{"memory", 5}}}},
		.namespace = "a",
		.asks = {{"cpu", 1000}},
		.corrected = QUOTA_ADMITTED,
		.upstream = QUOTA_OVER_MAX,
	},
	{
		.what = "pods are counted where a quota names them",
		.quotas = {{"a", .no_min = true, .max = {{"pods", 3}}, .pods = 3}},
		.namespace = "a",
		.asks = {{"cpu", 1}},
		.corrected = QUOTA_OVER_MAX,
		.upstream = QUOTA_OVER_MAX, /* of CPU, which max does not name */
		.why = "pods: 3 used + 1 asked is over max 3 of quota a/eq: wait for 1 to be "
		       "freed, or raise "
		       "max",
	},
	{
		.what = "a namespace without a quota",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 1}},
			    .max = {{"cpu", 1}},
			    .used = {{NULL, 0}}}},
		.namespace = "b",
		.asks = {{"cpu", 1000000}},
		.corrected = QUOTA_NO_QUOTA,
		.upstream = QUOTA_NO_QUOTA,
		.why = "namespace b has no quota",
	},
	{
		.what = "critical pods are not held up",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 1}},
			    .max = {{"cpu", 1}},
			    .used = {{NULL, 0}}}},
		.namespace = "a",
		.priority = 2000000000,
		.asks = {{"cpu", 1000}},
		.corrected = QUOTA_CRITICAL,
		.upstream = QUOTA_OVER_MAX,
		.why = "priority 2000000000 is critical: not held up by quota a/eq",
	},
	{
		.what = "nominated with the same priority counts against max",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 9000}},
			    .max = {{"cpu", 4000}},
			    .used = {{"cpu", 2000}}}},
		.nominated = {{"a", "n", 0, {{"cpu", 1500}}}},
		.namespace = "a",
		.asks = {{"cpu", 1000}},
		.corrected = QUOTA_OVER_MAX,
		.upstream = QUOTA_OVER_MAX,
		.why = "cpu: 2.0 used + 1.5 nominated + 1.0 asked is over max 4.0 of quota a/eq: "
		       "wait for "
		       "0.5 to be freed, or raise max",
	},
	{
		.what = "nominated itself it does not count twice",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 9000}},
			    .max = {{"cpu", 4000}},
			    .used = {{"cpu", 2000}}}},
		.nominated = {{"a", "asking", 0, {{"cpu", 1500}}}},
		.namespace = "a",
		.asks = {{"cpu", 1500}},
		.corrected = QUOTA_ADMITTED,
		.upstream = QUOTA_ADMITTED,
	},
	{
		.what = "nominated of another quota within its min counts for the sum",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 2000}},
			    .max = {{"cpu", 9000}},
			    .used = {{"cpu", 2000}}},
			   {.namespace = "b",
			    .min = {{"cpu", 2000}},
			    .max = {{"cpu", 9000}},
			    .used = {{NULL, 0}}}},
		.nominated = {{"b", "n", -5, {{"cpu", 1500}}}},
		.namespace = "a",
		.asks = {{"cpu", 1000}},
		.corrected = QUOTA_OVER_SUM,
		.upstream = QUOTA_OVER_SUM,
		.why = "cpu: 2.0 used by all quotas + 1.5 nominated + 1.0 asked is over 4.0, the "
		       "sum of their "
		       "min: wait for 0.5 to be freed, or raise a min; quota a/eq would borrow",
	},
	{
		.what = "what was reserved for the pod when it was asked about before",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 4000}},
			    .max = {{"cpu", 4000}},
			    .used = {{"cpu", 4000}},
			    .pods = 4}},
		.namespace = "a",
		.asks = {{"cpu", 1000}},
		.reserved = {{"cpu", 1000}},
		.corrected = QUOTA_ADMITTED,
		.upstream = QUOTA_ADMITTED,
	},
	{
		.what = "that reservation is no part of what is told as used",
		.quotas = {{.namespace = "a",
			    .min = {{"cpu", 9000}},
			    .max = {{"cpu", 4000}},
			    .used = {{"cpu", 4000}},
			    .pods = 4}},
		.namespace = "a",
		.asks = {{"cpu", 1500}},
		.reserved = {{"cpu", 1000}},
		.corrected = QUOTA_OVER_MAX,
		.upstream = QUOTA_OVER_MAX,
		.why = "cpu: 3.0 used + 1.5 asked is over max 4.0 of quota a/eq: wait for 0.5 to "
		       "be freed, or "
		       "raise max",
	},
	{
		.what = "no bound is so high that a sum passes it by wrapping around",
		.quotas = {{.namespace = "a",
			    .min = {{"memory", INT64_MAX}},
			    .max = {{"memory", INT64_MAX}},
			    .used = {{"memory", INT64_MAX}}},
			   {.namespace = "b",
			    .min = {{"memory", INT64_MAX}},
			    .max = {{"memory", 5}},
			    .used = {{"memory", 5}}}},
		.namespace = "a",
		.asks = {{"memory", INT64_MAX}},
		.corrected = QUOTA_ADMITTED,
		.upstream = QUOTA_ADMITTED,
	},
};

static void fill(struct resources *r, const struct pair *pairs)
{
	*r = RESOURCES_NONE;
	for (int i = 0; i < PAIRS_MAX && pairs[i].name; i++)
		resources_set_named(r, pairs[i].name, pairs[i].amount);
}

static struct quota_book *make_book(const struct row *rows, enum quota_variant variant)
{
	struct quota quotas[QUOTAS_MAX];
	struct quota_options o;
	struct quota_book *b;
	size_t count = 0;

	for (; count < QUOTAS_MAX && rows[count].namespace; count++) {
		const struct row *r = &rows[count];
		struct quota *q = &quotas[count];

		*q = (struct quota){.namespace = r->namespace,
				    .name = "eq",
				    .has_min = !r->no_min,
				    .has_max = !r->no_max,
				    .used_pods = r->pods};
		fill(&q->min, r->min);
		fill(&q->max, r->max);
		fill(&q->used, r->used);
	}
	quota_options_default(&o);
	o.variant = variant;
	b = quota_fixture_book(quotas, count, &o);
	for (size_t i = 0; i < count; i++) {
		resources_fini(&quotas[i].min);
		resources_fini(&quotas[i].max);
		resources_fini(&quotas[i].used);
	}
	return b;
}

static void ask(const struct scene *s, enum quota_variant variant, struct quota_verdict *v)
{
	struct quota_book *b = make_book(s->quotas, variant);
	struct quota_nominated nominated[NOMINATED_MAX];
	struct resources lists[NOMINATED_MAX + 2], *asks = &lists[NOMINATED_MAX],
						   *reserved = asks + 1;
	struct quota_ask a = {"asking", s->namespace, s->priority, asks, NULL, false, nominated, 0};

	memset(lists, 0, sizeof(lists));
	for (; a.nominated_count < NOMINATED_MAX && s->nominated[a.nominated_count].uid;
	     a.nominated_count++) {
		const struct waiting *w = &s->nominated[a.nominated_count];

		fill(&lists[a.nominated_count], w->asks);
		nominated[a.nominated_count] =
			(struct quota_nominated){w->uid, w->namespace, w->priority,
						 &lists[a.nominated_count]};
	}
	fill(asks, s->asks);
	fill(reserved, s->reserved);
	if (s->reserved[0].name)
		a.reserved = reserved;
	quota_admit(b, &a, v);
	v->resource = NULL; /* was borrowed */
	for (int i = 0; i < NOMINATED_MAX + 2; i++)
		resources_fini(&lists[i]);
	quota_book_free(b);
}

static void check(const struct scene *s, enum quota_variant variant, enum quota_admission wanted)
{
	struct quota_verdict v;

	ask(s, variant, &v);
	if (v.reason != wanted)
		fail_msg("%s (%s): %s: %s", s->what, quota_variant_name(variant),
			 quota_admission_name(v.reason), v.error.text);
	assert_int_equal(v.admitted, wanted <= QUOTA_CRITICAL);
	if (s->why && variant == QUOTA_CORRECTED)
		assert_string_equal(v.error.text, s->why);
}

static void every_scene_has_its_gate_and_sentence(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		check(&scenes[i], QUOTA_CORRECTED, scenes[i].corrected);
		check(&scenes[i], QUOTA_UPSTREAM, scenes[i].upstream);
	}
}

/* More resources than fit beside the stack: the last of them decides. */
static void many_resources_are_all_compared(void **state)
{
	struct row rows[QUOTAS_MAX] = {{.namespace = "a",
					.min = {{"x-099", 9}},
					.max = {{"x-099", 1}},
					.used = {{"x-099", 1}},
					.pods = 1}};
	struct quota_book *b = make_book(rows, QUOTA_CORRECTED);
	struct resources asks = RESOURCES_NONE;
	struct quota_ask a = {"asking", "a", 0, &asks, NULL, false, NULL, 0};
	struct quota_verdict v;
	char name[16];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "x-%03d", i);
		resources_set_named(&asks, name, 1);
	}
	quota_admit(b, &a, &v);
	assert_int_equal(v.reason, QUOTA_OVER_MAX);
	assert_string_equal(v.resource, "x-099");
	assert_int_equal(v.used, 1);
	assert_int_equal(v.asked, 1);
	assert_int_equal(v.nominated, 0);
	assert_int_equal(v.bound, 1);
	resources_fini(&asks);
	quota_book_free(b);
}

static void a_default_quota_is_for_every_other_namespace(void **state)
{
	struct resources asks = RESOURCES_NONE;
	struct quota_ask a = {"asking", "new", 0, &asks, NULL, false, NULL, 0};
	struct quota_options o;
	struct quota_verdict v;
	struct quota_book *b;

	(void)state;
	quota_options_default(&o);
	o.has_default = true;
	resources_set(&o.default_max, RESOURCE_CPU, 1000);
	resources_set(&asks, RESOURCE_CPU, 600);
	b = quota_fixture_book(NULL, 0, &o);
	quota_admit(b, &a, &v);
	assert_int_equal(v.reason, QUOTA_ADMITTED);
	quota_book_add(b, "new", &asks);
	quota_admit(b, &a, &v);
	assert_string_equal(
		v.error.text,
		"cpu: 0.6 used + 0.6 asked is over max 1.0 of quota new (the default one): "
		"wait for 0.2 to be freed, or raise max");
	a.namespace = "other";
	quota_admit(b, &a, &v);
	assert_int_equal(v.reason, QUOTA_ADMITTED);
	quota_book_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_scene_has_its_gate_and_sentence),
		cmocka_unit_test(many_resources_are_all_compared),
		cmocka_unit_test(a_default_quota_is_for_every_other_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
