/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of slack, step by step in virtual time, in a cluster that keeps what is applied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/actuator/slack.h"
#include "shared/clock.h"

enum { MOST = 8 };

static struct {
	struct slack_state state;
	struct act_options act;
	struct slack_rules rules;
	struct slack_input input;
	struct slack_object wanted[MOST];
	struct slack_object existing[MOST];
	enum act_result result;
	const char *answer;
	int applied, removed;
	struct buf told;
} w;

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.rules.act = &w.act;
	w.input.wanted.of = w.wanted;
	w.input.existing.of = w.existing;
	w.input.now_ns = 1000 * NS_PER_SEC;
	w.answer = "";
	buf_init(&w.told);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	act_slack_state_fini(&w.state);
	buf_fini(&w.told);
	return 0;
}

static struct slack_object *want(const char *namespace, const char *title, int64_t replicas,
				 const char *text)
{
	struct slack_object *o = &w.wanted[w.input.wanted.count++];

	*o = (struct slack_object){
		.namespace = namespace, .title = title, .text = text, .replicas = replicas};
	return o;
}

static struct slack_object *have(const char *namespace, const char *title, int64_t replicas,
				 bool ours)
{
	struct slack_object *o = &w.existing[w.input.existing.count++];

	*o = (struct slack_object){.namespace = namespace,
				   .title = title,
				   .uid = "u",
				   .replicas = replicas,
				   .ours = ours};
	return o;
}

/* What the API server does with an action that succeeds. */
static void happen(const struct slack_object *a)
{
	size_t i = 0, k = 0;

	while (i < w.input.existing.count && strcmp(w.existing[i].title, a->title) != 0)
		i++;
	if (a->uid) {
		w.existing[i] = w.existing[--w.input.existing.count];
		return;
	}
	while (w.wanted[k].text != a->text)
		k++;
	if (i == w.input.existing.count)
		have(a->namespace, w.wanted[k].title, 0, true);
	w.existing[i].replicas = w.wanted[k].replicas;
}

static void step(int seconds)
{
	struct slack_output out = {0};
	struct error told;

	w.input.now_ns += seconds * NS_PER_SEC;
	act_slack_step(&w.state, &w.rules, &w.input, &out);
	if (out.narration.len)
		buf_add_str(&w.told, out.narration.data);
	for (size_t i = 0; i < out.action_count; i++) {
		w.applied += !out.actions[i]->uid;
		w.removed += out.actions[i]->uid != NULL;
		act_slack_result(&w.state, out.actions[i], w.result, w.answer, &told);
		if (w.result == ACT_DONE && !w.rules.dry_run)
			happen(out.actions[i]);
		if (*told.text)
			buf_printf(&w.told, "%s\n", told.text);
	}
	free(out.actions);
	buf_fini(&out.narration);
}

static void expect(const char *told, int applied, int removed)
{
	assert_string_equal(w.told.len ? w.told.data : "", told);
	assert_int_equal(w.applied, applied);
	assert_int_equal(w.removed, removed);
	buf_clear(&w.told);
	w.applied = w.removed = 0;
}

static void test_objects_follow_their_classes(void **state)
{
	(void)state;
	want("shop", "Deployment shop/web", 4, "4");
	step(0);
	expect("Deployment shop/web gets 4 replicas\n", 1, 0);
	step(15);
	expect("", 0, 0);
	w.wanted[0].replicas = 6;
	w.wanted[0].text = "6";
	step(15); /* within the minute */
	expect("", 0, 0);
	step(29);
	expect("", 0, 0);
	step(1);
	expect("Deployment shop/web gets 6 replicas\n", 1, 0);
	w.input.wanted.count = 0;
	step(59);
	expect("", 0, 0);
	step(1);
	expect("Deployment shop/web is removed: no class wants it\n", 0, 1);
	step(300);
	expect("", 0, 0);
	assert_int_equal(w.state.count, 0);
}

/* By a hand, or with the object. */
static void test_a_change_by_others_is_mended(void **state)
{
	(void)state;
	want("shop", "Deployment shop/web", 4, "4");
	step(0);
	w.existing[0].replicas = 0;
	step(59);
	step(1);
	expect("Deployment shop/web gets 4 replicas\nDeployment shop/web gets 4 replicas\n", 2, 0);
	w.input.existing.count = 0;
	step(60);
	expect("Deployment shop/web gets 4 replicas\n", 1, 0);
}

/* A successor does not know what was applied: once more. */
static void test_a_successor_applies_once(void **state)
{
	(void)state;
	have("shop", "Deployment shop/web", 4, true);
	have("shop", "Deployment shop/gone", 1, true);
	want("shop", "Deployment shop/web", 4, "4");
	step(0);
	expect("Deployment shop/gone is removed: no class wants it\nDeployment shop/web gets 4 "
	       "replicas\n",
	       1, 1);
	step(60);
	expect("", 0, 0);
}

static void test_a_foreign_object_is_left_alone(void **state)
{
	(void)state;
	have("shop", "Deployment shop/web", 1, false);
	have("shop", "Deployment shop/other", 1, false);
	want("shop", "Deployment shop/web", 4, "4");
	step(0);
	expect("Deployment shop/web is left alone: it is there, and not applied by the field "
	       "manager "
	       "evenkeel\n",
	       0, 0);
	step(60);
	expect("", 0, 0);
	w.input.existing.count = 0;
	step(60);
	expect("Deployment shop/web gets 4 replicas\n", 1, 0);
}

/* Told once, and tried again each minute. */
static void test_a_refusal_is_told_once(void **state)
{
	(void)state;
	want("shop", "Deployment shop/web", 4, "4");
	w.result = ACT_GONE;
	w.answer = "conflict with hpa";
	step(0);
	expect("Deployment shop/web gets 4 replicas\nDeployment shop/web is not applied: conflict "
	       "with "
	       "hpa\n",
	       1, 0);
	step(30);
	expect("", 0, 0);
	step(30);
	expect("Deployment shop/web gets 4 replicas\n", 1, 0);
	w.result = ACT_DONE;
	step(60);
	expect("Deployment shop/web gets 4 replicas\n", 1, 0);
}

static void test_shared_objects_stay(void **state)
{
	struct slack_object *class;

	(void)state;
	class = want("", "PriorityClass /evenkeel-slack", -1, "class");
	class->shared = true;
	step(0);
	expect("", 1, 0);
	w.existing[0].ours = false;
	step(60);
	expect("", 0, 0);
}

static void test_bounds(void **state)
{
	static const char *const allowed[] = {"shop"};

	(void)state;
	w.act.namespaces = allowed;
	w.act.namespace_count = 1;
	want("lab", "Deployment lab/a", 1, "a");
	want("shop", "Deployment shop/b", 2, "b");
	have("lab", "Deployment lab/c", 1, true);
	w.input.paused = true;
	step(0);
	expect("", 0, 0);
	w.input.paused = false;
	step(1);
	expect("Deployment lab/a is left alone: evenkeel leaves its namespace alone\nDeployment "
	       "shop/b "
	       "gets 2 replicas\n",
	       1, 0);
}

static void test_a_dry_run_tries_once(void **state)
{
	(void)state;
	w.rules.dry_run = true;
	want("shop", "Deployment shop/web", 4, "4");
	for (int i = 0; i < 20; i++)
		step(60);
	expect("Deployment shop/web gets 4 replicas\n", 1, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_objects_follow_their_classes),
		T(test_a_change_by_others_is_mended),
		T(test_a_successor_applies_once),
		T(test_a_foreign_object_is_left_alone),
		T(test_a_refusal_is_told_once),
		T(test_shared_objects_stay),
		T(test_bounds),
		T(test_a_dry_run_tries_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
