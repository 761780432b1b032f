/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "aggregator/policy/quota/lint.h"
#include "shared/buf.h"
#include "tests/quota_fixture.h"

/* "severity kind namespace/name field code: sentence", a line each. */
static void lint(const char *items, const struct quota_options *o, struct buf *out)
{
	struct view *v = quota_fixture_view(items);
	struct quota_book *b = quota_book_new(v, NULL, o);
	struct quota_findings found;

	quota_lint(v, b, o, &found);
	buf_clear(out);
	buf_add_str(out, "");
	for (size_t i = 0; i < found.count; i++) {
		const struct quota_finding *f = &found.of[i];

		buf_printf(out, "%s %s %s/%s [%s] %s: %s\n",
			   quota_severity_name(quota_lint_kind(f->code)->severity), f->kind,
			   f->namespace, f->name, f->field, quota_lint_kind(f->code)->code,
			   f->text);
	}
	quota_findings_fini(&found);
	quota_book_free(b);
	view_drop(v);
}

static void expect(const char *items, const struct quota_options *o, const char *text)
{
	struct buf out = BUF_INIT;

	lint(items, o, &out);
	assert_string_equal(out.data, text);
	buf_fini(&out);
}

#define NODES                                                                                      \
	"- {apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {pods: 110, "   \
	"cpu: 8, "                                                                                 \
	"memory: "                                                                                 \
	"32Gi, example.com/gpu: 2}, conditions: [{type: Ready, status: \"True\"}]}}\n"             \
	"- {apiVersion: v1, kind: Node, metadata: {name: b}, spec: {unschedulable: true}, "        \
	"status: "                                                                                 \
	"{allocatable: {cpu: 4, memory: 16Gi}, conditions: [{type: Ready, status: \"True\"}]}}\n"
#define QUOTA(namespace, name, rest)                                                               \
	"- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: "              \
	"{namespace: " namespace ", name: " name "}, " rest "}\n"
#define DATED(namespace, name, date, rest)                                                         \
	"- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: "              \
	"{namespace: " namespace ", name: " name ", creationTimestamp: \"" date "\"}, " rest "}\n"
#define HARD(namespace, name, rest)                                                                \
	"- {apiVersion: v1, kind: ResourceQuota, metadata: {namespace: " namespace ", name: " name \
										   "}, spec: "     \
										   "{" rest "}}\n"
#define POD(namespace, name, requests)                                                             \
	"- {apiVersion: v1, kind: Pod, metadata: {namespace: " namespace ", name: " name           \
									 "}, spec: "               \
									 "{nodeName: a, "          \
									 "containers: [{name: c, " \
									 "resources: {requests: "  \
									 "{" requests              \
									 "}}}]}, status: "         \
									 "{phase: Running}}\n"

static const struct {
	const char *items, *found;
} corrected[] = {
	/* What is right has nothing to be told, equal bounds and sums included. */
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 4, memory: 8Gi}, max: {cpu: 4, memory: 8Gi}}")
		 QUOTA("y", "q",
		       "spec: {min: {cpu: 4000m, memory: 1Gi}, max: {cpu: 12, memory: 1Gi}}"),
	 ""},
	/* What others are guaranteed and it is not, named or not. */
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 4, memory: 8Gi}, max: {cpu: 4, memory: 8Gi}}")
		 QUOTA("y", "q", "spec: {min: {memory: 1Gi}, max: {memory: 1Gi}}")
			 QUOTA("z", "q",
			       "spec: {min: {cpu: 0, memory: 1Gi}, max: {cpu: 2, memory: 1Gi}}"),
	 "info ElasticQuota y/q [spec.min.cpu] notGuaranteed: min guarantees no cpu: all that its "
	 "pods request is borrowed of the 4.0 that others are guaranteed\n"
	 "info ElasticQuota z/q [spec.min.cpu] notGuaranteed: min guarantees no cpu: all of max "
	 "2.0 is borrowed from those who have it guaranteed\n"},
	/* A bound that is not there is infinite, and not lower. */
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 4}}"), ""},
	{NODES QUOTA("x", "q",
		     "spec: {min: {cpu: 5, memory: 1Gi}, max: {cpu: 4500m, memory: 1Gi}}"),
	 "error ElasticQuota x/q [spec.min.cpu] minOverMax: cpu: min 5.0 is above max 4.5, and "
	 "what "
	 "is above max is never had\n"},
	{NODES QUOTA("x", "q", "spec: {max: {cpu: 0}}"),
	 "warning ElasticQuota x/q [spec.max.cpu] zeroMax: max of cpu is 0: no pod that requests "
	 "any "
	 "starts\n"},
	{NODES QUOTA("x", "q", "spec: {}"), "warning ElasticQuota x/q [spec] noBounds: neither min "
					    "nor max names a resource: nothing is "
					    "guaranteed, and nothing bounded\n"},
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 1, example.com/gpu: 1}, max: {cpu: 2}}"),
	 "warning ElasticQuota x/q [spec.max.example.com/gpu] notBounded: min guarantees 1 of "
	 "example.com/gpu and max does not name it: any amount more may be borrowed\n"},
	/* What no pod requests, and 0, bound nothing, and nothing that is not counted is compared. */
	{NODES QUOTA("x", "q", "spec: {min: {services: 1, example.com/gpu: 0}, max: {cpu: 2}}"),
	 "warning ElasticQuota x/q [spec.min.services] notRequested: no pod requests \"services\", "
	 "so it bounds and guarantees nothing; a ResourceQuota can bound it\n"},
	{NODES QUOTA("x", "q", "spec: {max: {services: 0}}"),
	 "warning ElasticQuota x/q [spec.max.services] notRequested: no pod requests \"services\", "
	 "so it bounds and guarantees nothing; a ResourceQuota can bound it\n"},
	{NODES QUOTA("x", "q", "spec: {max: {services: 4, cpu: 1}}")
		 HARD("x", "rq", "hard: {services: 3, memory: 1Gi}"),
	 "warning ElasticQuota x/q [spec.max.services] notRequested: no pod requests \"services\", "
	 "so it bounds and guarantees nothing; a ResourceQuota can bound it\n"},
	{NODES QUOTA("x", "q", "spec: {max: {cpu: 7}}")
		 HARD("x", "scoped", "hard: {cpu: 1}, scopeSelector: {matchExpressions: []}"),
	 ""},
	/* It matters only where somebody else has it guaranteed. */
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 1}, max: {cpu: 2, memory: 1Gi}}"), ""},
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 1}, max: {cpu: 2, memory: 1Gi}}")
		 QUOTA("y", "q", "spec: {min: {memory: 2Gi}, max: {memory: 2Gi}}"),
	 "info ElasticQuota x/q [spec.min.memory] notGuaranteed: min guarantees no memory: all of "
	 "max "
	 "1Gi is borrowed from those who have it guaranteed\n"
	 "info ElasticQuota y/q [spec.min.cpu] notGuaranteed: min guarantees no cpu: all that its "
	 "pods request is borrowed of the 1.0 that others are guaranteed\n"},
	{NODES QUOTA("x", "q", "spec: {max: {example.com/gpuu: 2}}"),
	 "warning ElasticQuota x/q [spec.max.example.com/gpuu] noSuchResource: no node of the "
	 "cluster "
	 "has any example.com/gpuu\n"},
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 1, example.com/gpuu: 2}}"),
	 "warning ElasticQuota x/q [spec.min.example.com/gpuu] noSuchResource: no node of the "
	 "cluster has any example.com/gpuu\n"},
	/* Nothing is known of nodes: nor of what they lack. */
	{QUOTA("x", "q", "spec: {min: {cpu: 400}, max: {cpu: 400, example.com/gpuu: 2}}"), ""},
	{NODES QUOTA("x", "q", "spec: {max: {requests.cpu: 2, services: 3, pods: 4}}"),
	 "warning ElasticQuota x/q [spec.max.requests.cpu] notRequested: no pod requests "
	 "\"requests.cpu\", so it bounds and guarantees nothing: an ElasticQuota names what a "
	 "ResourceQuota calls requests.cpu just cpu\n"
	 "warning ElasticQuota x/q [spec.max.services] notRequested: no pod requests \"services\", "
	 "so "
	 "it bounds and guarantees nothing; a ResourceQuota can bound it\n"},
	/* Two in one namespace: age, then the name, whatever the order in the file. */
	{NODES DATED("x", "a", "2026-01-02T00:00:00Z", "spec: {min: {cpu: 1}}")
		 DATED("x", "b", "2026-01-01T00:00:00Z", "spec: {min: {cpu: 1}}"),
	 "error ElasticQuota x/a [] duplicate: does not count: x/b is there, too, and is older\n"},
	{NODES QUOTA("x", "b", "spec: {min: {cpu: 1}}") QUOTA("x", "a", "spec: {min: {cpu: 1}}"),
	 "error ElasticQuota x/b [] duplicate: does not count: x/a is there, too, and is the first "
	 "by "
	 "name of equally old ones\n"},
	{NODES QUOTA("x", "a", "spec: {min: {cpu: 1}}")
		 DATED("x", "b", "2026-01-01T00:00:00Z", "spec: {min: {cpu: 1}}"),
	 "error ElasticQuota x/a [] duplicate: does not count: x/b is there, too, and is older\n"},
	/* Of all together only those that count: 7 + 5 is 12, the 100 are not in it. */
	{NODES QUOTA("x", "a", "spec: {min: {cpu: 7}}") QUOTA("y", "a", "spec: {min: {cpu: 6}}"),
	 "error Cluster / [] sumMinOverCapacity: cpu: 13.0 is guaranteed by all quotas together "
	 "and "
	 "12.0 allocatable on all nodes: 1.0 too much\n"},
	{NODES QUOTA("x", "a", "spec: {min: {cpu: 7}}") QUOTA("y", "a", "spec: {min: {cpu: 2}}"),
	 "warning Cluster / [] sumMinOverReady: cpu: 9.0 is guaranteed by all quotas together "
	 "and "
	 "8.0 allocatable on nodes that are ready and not cordoned: 1.0 too much\n"},
	/* All of it is not too much. */
	{NODES QUOTA("x", "a", "spec: {min: {cpu: 8}}") QUOTA("y", "a", "spec: {min: {cpu: 4}}"),
	 "warning Cluster / [] sumMinOverReady: cpu: 12.0 is guaranteed by all quotas together and "
	 "8.0 allocatable on nodes that are ready and not cordoned: 4.0 too much\n"},
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 5}, max: {cpu: 7}}")
		 HARD("x", "rq", "hard: {cpu: 7}"),
	 ""},
	/* The smallest of the namespace's hard bounds; one with scopes is for some pods only. */
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 5}, max: {cpu: 7}}")
		 HARD("x", "rq", "hard: {requests.cpu: 6, limits.cpu: 1}")
			 HARD("x", "scoped", "hard: {cpu: 1}, scopes: [BestEffort]")
				 HARD("y", "rq", "hard: {cpu: 1}"),
	 "warning ElasticQuota x/q [spec.max.cpu] maxOverHard: cpu: max 7.0 is above hard 6.0 of "
	 "ResourceQuota rq, which no pod gets past\n"},
	{NODES QUOTA("x", "q", "spec: {min: {memory: 5Gi}}") HARD("x", "rq", "hard: {memory: 4Gi}"),
	 "error ElasticQuota x/q [spec.min.memory] minOverHard: memory: min 5Gi is above hard 4Gi "
	 "of "
	 "ResourceQuota rq, which no pod gets past\n"},
	/* Refused when it was read, and told all the same. */
	{NODES QUOTA("x", "q", "spec: {min: {cpu: \"-1\"}}"),
	 "error ElasticQuota x/q [] unreadable: is left out: spec.min.cpu: must not be negative\n"},
	/* Each of them. */
	{NODES QUOTA("x", "q", "spec: {min: {cpu: \"-1\"}}") QUOTA("y", "q", "spec: {max: 3}"),
	 "error ElasticQuota x/q [] unreadable: is left out: spec.min.cpu: must not be negative\n"
	 "error ElasticQuota y/q [] unreadable: is left out: spec.max: must be an object\n"},
	{NODES QUOTA("x", "q", "spec: {min: {cpu: many}}"),
	 "error ElasticQuota x/q [] unreadable: is left out: spec.min.cpu: \"many\" is not a "
	 "quantity: a number like "
	 "250m, "
	 "1.5Gi or 12e6 is expected\n"},
	/* Only of what the quota names, only of active pods. */
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 1}}") POD("x", "p", "memory: 1Gi")
		 POD("x", "r", "cpu: 1") POD("y", "s", ""),
	 "warning ElasticQuota x/q [] noRequests: 1 of 2 pods request no cpu: what they use of "
	 "it "
	 "is in no quota\n"},
	{NODES QUOTA("x", "q", "spec: {max: {cpu: 1}}") POD("x", "p", "memory: 1Gi"),
	 "warning ElasticQuota x/q [] noRequests: 1 of 1 pods request no cpu: what they use of "
	 "it "
	 "is in no quota\n"},
	{NODES QUOTA("x", "q", "spec: {min: {pods: 5}}") POD("y", "p", "cpu: 1"), ""},
	{NODES QUOTA("x", "q", "spec: {min: {cpu: 1}}") "- {apiVersion: v1, kind: Pod, metadata: "
							"{namespace: x, name: pending}, spec: "
							"{containers: [{name: c}]}}\n",
	 "warning ElasticQuota x/q [] noRequests: 1 of 1 pods request no cpu: what they use of "
	 "it "
	 "is in no quota\n"},
};

static void test_corrected(void **state)
{
	struct quota_options o;

	(void)state;
	quota_options_default(&o);
	for (size_t i = 0; i < sizeof(corrected) / sizeof(corrected[0]); i++)
		expect(corrected[i].items, &o, corrected[i].found);
}

static void test_upstream(void **state)
{
	struct quota_options o;

	(void)state;
	quota_options_default(&o);
	o.variant = QUOTA_UPSTREAM;
	expect(NODES QUOTA("x", "q", "spec: {max: {cpu: 2, pods: 4}}"), &o,
	       "error Cluster / [] nothingGuaranteed: cpu: no quota guarantees any, so that "
	       "upstream refuses every pod with a quota that requests some\n"
	       "error Cluster / [] nothingGuaranteed: memory: no quota guarantees any, so "
	       "that "
	       "upstream refuses every pod with a quota that requests some\n"
	       "error ElasticQuota x/q [spec.max.memory] unnamedIsZero: max does not name memory, "
	       "which upstream reads as 0: no pod that requests any memory starts\n"
	       "warning ElasticQuota x/q [spec.max.pods] notRequested: no pod requests \"pods\", "
	       "so "
	       "it bounds and guarantees nothing; a ResourceQuota can bound it\n");
}

/* Without max nothing is 0 by silence, and a resource that upstream counts is never unbounded. */
static void test_upstream_of_min_alone(void **state)
{
	struct quota_options o;

	(void)state;
	quota_options_default(&o);
	o.variant = QUOTA_UPSTREAM;
	expect(NODES QUOTA("x", "q", "spec: {min: {cpu: 1, memory: 1Gi}}"), &o, "");
	expect(NODES QUOTA("x", "q",
			   "spec: {min: {cpu: 1, memory: 1Gi, example.com/gpu: 1}, max: {cpu: 1, "
			   "memory: 1Gi}}"),
	       &o,
	       "warning ElasticQuota x/q [spec.max.example.com/gpu] notBounded: min guarantees 1 "
	       "of example.com/gpu and max does not name it: any amount more may be borrowed\n");
	expect(NODES, &o, "");
}

static void test_annotations(void **state)
{
	static const char items[] =
		"- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: "
		"{namespace: x, name: q, annotations: {evenkeel.io/weight: none, "
		"evenkeel.io/min-runtime: 5m}}, spec: {min: {cpu: 1}}}\n";
	struct buf out = BUF_INIT;
	struct quota_options o;

	(void)state;
	quota_options_default(&o);
	lint(items, &o, &out);
	assert_non_null(strstr(out.data,
			       "error ElasticQuota x/q "
			       "[metadata.annotations[evenkeel.io/weight]] badAnnotation: "
			       "evenkeel.io/weight: \"none\" is not a number"));
	assert_null(strstr(out.data, "min-runtime"));
	buf_fini(&out);
}

/* What namespaces without a quota get is guaranteed like everything else. */
static void test_default_quota_is_in_the_sum(void **state)
{
	struct quota_options o;

	(void)state;
	quota_options_default(&o);
	o.has_default = true;
	resources_set(&o.default_min, RESOURCE_CPU, 5000);
	expect(NODES "- {apiVersion: v1, kind: Namespace, metadata: {name: y}}\n" QUOTA(
		       "x", "q", "spec: {min: {cpu: 8}}"),
	       &o,
	       "error Cluster / [] sumMinOverCapacity: cpu: 13.0 is guaranteed by all quotas "
	       "together and 12.0 allocatable on all nodes: 1.0 too much\n");
}

/* Of 12 CPUs 8 are guaranteed to x, and 2 that y uses are its own. */
static void test_held_without_quota(void **state)
{
	struct quota_options o;

	(void)state;
	quota_options_default(&o);
#define TWO_QUOTAS                                                                                 \
	NODES QUOTA("x", "q", "spec: {min: {cpu: 5}}") QUOTA("y", "q", "spec: {min: {cpu: 3}}")    \
		POD("x", "p", "cpu: 1") POD("y", "p", "cpu: 2")
	expect(TWO_QUOTAS POD("free", "p", "cpu: 5"), &o, "");
	expect(TWO_QUOTAS POD("free", "p", "cpu: 4500m") POD("other", "p", "cpu: 1"), &o,
	       "warning ElasticQuota x/q [spec.min.cpu] heldWithoutQuota: cpu: min 5.0 of x cannot "
	       "be "
	       "met: pods without a quota hold 5.5 of 12.0, and preemption does not take them\n");
	o.has_default = true;
	expect(TWO_QUOTAS POD("free", "p", "cpu: 4500m") POD("other", "p", "cpu: 1"), &o, "");
}

/* Outsiders decide how many there are. */
static void test_bounded(void **state)
{
	struct buf items = BUF_INIT;
	struct quota_findings found;
	struct quota_options o;
	struct quota_book *b;
	struct view *v;

	(void)state;
	quota_options_default(&o);
	for (int i = 0; i < QUOTA_FINDINGS_MAX + 7; i++) {
		char name[24];

		snprintf(name, sizeof(name), "n%05d", i);
		buf_add_str(&items, quota_fixture_quota(name, "q", "cpu: 2", "cpu: 1"));
	}
	v = quota_fixture_view(items.data);
	b = quota_book_new(v, NULL, &o);
	quota_lint(v, b, &o, &found);
	assert_int_equal(found.count, QUOTA_FINDINGS_MAX);
	assert_int_equal(found.dropped, 7);
	assert_int_equal(found.by_severity[QUOTA_LINT_ERROR], QUOTA_FINDINGS_MAX + 7);
	quota_findings_fini(&found);
	quota_book_free(b);
	view_drop(v);
	buf_fini(&items);
}

/* Codes are what scripts go by: each is there once, and says how such a quota works. */
static void test_codes(void **state)
{
	(void)state;
	for (int i = 0; i < QUOTA_LINT_CODES; i++) {
		assert_true(*quota_lint_kind((enum quota_lint_code)i)->behaviour);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(quota_lint_kind((enum quota_lint_code)i)->code,
						quota_lint_kind((enum quota_lint_code)k)->code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corrected),
		cmocka_unit_test(test_upstream),
		cmocka_unit_test(test_upstream_of_min_alone),
		cmocka_unit_test(test_annotations),
		cmocka_unit_test(test_held_without_quota),
		cmocka_unit_test(test_default_quota_is_in_the_sum),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
