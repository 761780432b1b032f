/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of what one pod may ask for; hypothetical pods leave nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/place/place_internal.h"
#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/model_fixture.h"
#include "tests/place_fixture.h"

enum { QUESTIONS = 3000 };

static struct place_fixture f;

static int setup(void **state)
{
	(void)state;
	place_fixture_init(&f);
	place_fixture_node(&f, "a", "'zone':'1'", "");
	place_fixture_node(&f, "b", "'zone':'1'", "");
	place_fixture_node(&f, "c", "'zone':'2'", "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	place_fixture_fini(&f);
	return 0;
}

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

/* That many of the text, in which %d is the number of each, with commas between. */
static char *repeat(const char *format, int count)
{
	const char *number = strstr(format, "%d");
	struct buf b = BUF_INIT;

	for (int i = 0; i < count; i++) {
		buf_add_str(&b, i ? "," : "");
		buf_printf(&b, "%.*s%d%s", (int)(number - format), format, i, number + 2);
	}
	return buf_take(&b, NULL);
}

/* --- bounds */

struct bound {
	const char *before, *item, *after; /* of the spec */
	int most;
	const char *reason; /* of one more */
};

static const struct bound bounds[] = {
	{"'affinity':{'podAntiAffinity':{'" REQUIRED "':[",
	 "{'topologyKey':'zone','labelSelector':{'matchLabels':{'app':'x%d'}}}", "]}}", 64,
	 "spec.affinity.podAntiAffinity." REQUIRED ": more than 64 terms are not judged"},
	{"'affinity':{'podAffinity':{'" REQUIRED "':[",
	 "{'topologyKey':'zone','labelSelector':{'matchExpressions':[{'key':'x%d','operator':"
	 "'DoesNotExist'}]}}",
	 "]}}", 64, "spec.affinity.podAffinity." REQUIRED ": more than 64 terms are not judged"},
	{"'topologySpreadConstraints':[",
	 "{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':'DoNotSchedule',"
	 "'labelSelector':{'matchLabels':{'app':'x%d'}}}",
	 "]", 64, "spec.topologySpreadConstraints: more than 64 constraints are not judged"},
	/* The topology key, the label's key and the operator are values as well. */
	{"'affinity':{'podAntiAffinity':{'" REQUIRED "':[{'topologyKey':'zone','labelSelector':{"
	 "'matchExpressions':[{'key':'app','operator':'In','values':[",
	 "'x%d'", "]}]}}]}}", 2045,
	 "spec.affinity.podAntiAffinity." REQUIRED ": more than 2048 values are not judged"},
	{"'affinity':{'nodeAffinity':{'" REQUIRED "':{'nodeSelectorTerms':[{'matchExpressions':["
	 "{'key':'zone','operator':'NotIn','values':[",
	 "'x%d'", "]}]}]}}}", 2046,
	 "spec.affinity.nodeAffinity.required: more than 2048 values are not judged"},
};

static void ask(struct place *p, const char *spec, const char *node, enum place_filter want,
		const char *reason)
{
	struct kube_pod *record = place_fixture_record("asked", "", "", spec);
	place_pod pod = place_add_pod(p, record);
	struct error error = {""};

	object_drop(&record->object);
	assert_int_equal(place_check(p, pod, place_find_node(p, node)), want);
	assert_int_equal(place_explain(p, pod, place_find_node(p, node), &error), want);
	if (!reason)
		return;
	assert_memory_equal(error.text, "Unknown: ", 9);
	assert_string_equal(error.text + 9, reason);
}

static char *spec_of(const struct bound *b, int count)
{
	char *items = repeat(b->item, count);
	char *spec = mem_printf("%s%s%s", b->before, items, b->after);

	free(items);
	return spec;
}

static void what_is_too_long_is_not_judged_and_the_reason_says_so(void **state)
{
	struct error error;

	(void)state;
	place_fixture_pod(&f, "there", "a", "'app':'there'", "");
	place_fixture_build(&f);
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		char *most = spec_of(&bounds[i], bounds[i].most);
		char *more = spec_of(&bounds[i], bounds[i].most + 1);

		ask(f.place, most, "a", PLACE_FITS, NULL);
		ask(f.place, more, "a", PLACE_UNKNOWN, bounds[i].reason);
		if (!place_is_consistent(f.place, &error))
			fail_msg("bound %zu: %s", i, error.text);
		free(most);
		free(more);
	}
}

static void more_claims_than_are_judged_refuse(void **state)
{
	char *volumes = repeat("{'persistentVolumeClaim':{'claimName':'x%d'}}", 65);
	char *spec = mem_printf("'volumes':[%s]", volumes);
	struct place_class *c;

	(void)state;
	place_fixture_build(&f);
	ask(f.place, spec, "a", PLACE_VOLUMES, NULL);
	c = f.place->classes.of[f.place->classes.count - 1];
	assert_int_equal(c->claims.count, PLACE_TERMS_MAX);
	assert_string_equal(c->unknown, "spec.volumes: more than 64 claims are not judged");
	free(volumes);
	free(spec);
}

/* Who it would have nobody beside is not known, and so it is everybody, where the terms say. */
static void who_has_too_many_terms_is_feared_by_all(void **state)
{
	const struct bound zones = bounds[0];
	char *spec = spec_of(&zones, zones.most + 1);

	(void)state;
	place_fixture_pod(&f, "feared", "a", "", spec);
	place_fixture_build(&f);
	ask(f.place, "", "a", PLACE_ANTI_AFFINITY, NULL);
	ask(f.place, "", "b", PLACE_ANTI_AFFINITY, NULL);
	ask(f.place, "", "c", PLACE_FITS, NULL);
	assert_int_equal(f.place->classes.of[0]->carried.count, 1);
	free(spec);
}

/* --- many questions */

struct sizes {
	uint32_t pods, classes, counters, keys, claims, dims, label_keys, node_classes, links;
	unsigned int groups, rules, eligibles, namespaces;
	bool selects_namespaces;
};

static struct sizes measure(const struct place *p)
{
	struct sizes s;

	memset(&s, 0, sizeof(s));
	s.pods = p->pods.count - p->free_pods.count;
	s.classes = p->classes.count;
	s.counters = p->counters.count;
	s.keys = p->keys.count;
	s.claims = p->claim_of.count;
	s.dims = p->dims;
	s.label_keys = p->label_keys.count;
	s.node_classes = p->node_class_count;
	s.groups = HASH_COUNT(p->groups);
	s.rules = HASH_COUNT(p->rules);
	s.eligibles = HASH_COUNT(p->eligibles);
	s.namespaces = HASH_COUNT(p->namespaces);
	s.selects_namespaces = p->selects_namespaces;
	for (uint32_t i = 0; i < p->classes.count; i++)
		s.links += p->classes.of[i]->counted.count + p->classes.of[i]->feared.count;
	return s;
}

/* All of it is new to the core, and some of it means pods that are there. */
static char *question(int i)
{
	return mem_printf(
		"{'metadata':{'namespace':'ns-%d','name':'asked','labels':{'app':'web','q':'%d'}},"
		"'spec':{'nodeSelector':{'label-%d':'x'},'volumes':[{'name':'v',"
		"'persistentVolumeClaim':{'claimName':'claim-%d'}}],'affinity':{"
		"'podAffinity':{'" REQUIRED "':[{'topologyKey':'key-%d','labelSelector':{"
		"'matchLabels':{'q':'%d'}}}]},'podAntiAffinity':{'" REQUIRED
		"':[{'topologyKey':'zone','namespaces':['default','other-%d'],'labelSelector':{"
		"'matchExpressions':[{'key':'app','operator':'NotIn','values':['%d']}]}},"
		"{'topologyKey':'key-%d','namespaceSelector':{},'labelSelector':{}}]}},"
		"'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone',"
		"'whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{'app':'web'}}}"
		"],"
		"'containers':[{'name':'c','resources':{'requests':{"
		"'x.io/%d':'1','y.io/%d':'1'}}}]}}",
		i, i, i, i, i, i, i, i, i, i, i);
}

static void ask_question(struct place *p, int i)
{
	char *json = question(i);
	struct object *record;

	for (char *c = strchr(json, '\''); c; c = strchr(c, '\''))
		*c = '"';
	record = model_fixture_object(OBJECT_POD, json);
	place_put(p, place_add_pod(p, (const struct kube_pod *)record), (place_node)i % 3);
	object_drop(record);
	free(json);
}

static void nothing_is_left_of_questions(void **state)
{
	static const char of_web[] =
		"'affinity':{'podAntiAffinity':{'" REQUIRED
		"':[{'topologyKey':'zone','labelSelector':{'matchLabels':{'app':'web'}}}]}}";
	struct sizes before;
	struct error why;
	struct view *v;

	(void)state;
	place_fixture_pod(&f, "web", "a", "'app':'web'", of_web);
	place_fixture_pod(&f, "other", "c", "'app':'other'", "");
	place_fixture_pod(&f, "waiting", "", "'app':'web'", of_web);
	place_fixture_build(&f);
	before = measure(f.place);
	v = place_fixture_view(&f, NULL, 0);
	for (int i = 0; i < QUESTIONS; i++) {
		struct sizes after;

		ask_question(f.place, i);
		if (i % 500 == 0 && !place_is_consistent(f.place, &why))
			fail_msg("asked %d: %s", i, why.text);
		place_update(f.place, v, 0);
		after = measure(f.place);
		assert_memory_equal(&before, &after, sizeof(before));
	}
	assert_true(place_is_consistent(f.place, &why));
	assert_string_equal(place_fixture_ask(f.place, "waiting", "b"), "InterPodAntiAffinity");
	assert_string_equal(place_fixture_ask(f.place, "waiting", "c"), "fits");
	view_drop(v);
}

/* A resource that no node has refuses everywhere: a row for each of them would tell no more. */
static void resources_that_nobody_has_take_one_row(void **state)
{
	uint32_t dims;

	(void)state;
	place_fixture_build(&f);
	dims = f.place->dims;
	for (int i = 0; i < 3; i++)
		ask_question(f.place, i);
	assert_int_equal(f.place->dims, dims + 3);
	assert_int_equal(place_check(f.place, f.place->added.of[2], 0), PLACE_FIT);
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(what_is_too_long_is_not_judged_and_the_reason_says_so),
		test(more_claims_than_are_judged_refuse),
		test(who_has_too_many_terms_is_feared_by_all),
		test(nothing_is_left_of_questions),
		test(resources_that_nobody_has_take_one_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
