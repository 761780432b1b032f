/* SPDX-License-Identifier: Apache-2.0 */
/* Victims in groups that do no work below a minimum: who falls with them counts, and goes, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/preempt_fixture.h"
#include "tests/view_fixture.h"

static struct preempt_fixture f;
static struct preempt_plan plan;

static int setup(void **unused)
{
	(void)unused;
	preempt_fixture_init(&f, QUOTA_CORRECTED);
	plan = (struct preempt_plan){0};
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	preempt_plan_fini(&plan);
	preempt_fixture_fini(&f);
	return 0;
}

static void put_node(const char *name, int cpus)
{
	char *json = mem_printf("{'metadata':{'name':'%s'},'status':{'allocatable':{'cpu':'%d',"
				"'memory':'8Gi','pods':'20'}}}",
				name, cpus);

	place_fixture_put(&f.cluster, OBJECT_NODE, json);
	free(json);
}

static void put_group(const char *name, int min)
{
	char *json =
		mem_printf("{'metadata':{'name':'%s','namespace':'a'},'spec':{'minMember':%d}}",
			   name, min);

	place_fixture_put(&f.cluster, OBJECT_COSCHEDULING_GROUP, json);
	free(json);
}

/* The younger the higher the number at the end of its name. group: "" none. */
static void put_pod_of(const char *name, const char *node, int cpu_milli, const char *group,
		       int priority)
{
	char *text = mem_printf("{'pod':'%s','namespace':'a','uid':'%s','node':'%s','start':%d,"
				"'request':{'cpu':%d},'priority':%d,'labels':{"
				"'scheduling.x-k8s.io/pod-group':'%s'}}",
				name, name, node, name[strlen(name) - 1] - '0', cpu_milli, priority,
				group);
	cJSON *flat = preempt_fixture_parse(text), *pod = preempt_fixture_pod(flat);

	preempt_fixture_put(&f, OBJECT_POD, pod);
	cJSON_Delete(flat);
	cJSON_Delete(pod);
	free(text);
}

static void put_pod(const char *name, const char *node, int cpu_milli, const char *group)
{
	put_pod_of(name, node, cpu_milli, group, 0);
}

static struct kube_pod *make_self(int cpu_milli)
{
	char *text = mem_printf("{'pod':'self','namespace':'b','uid':'self','priority':10,"
				"'request':{'cpu':%d}}",
				cpu_milli);
	cJSON *flat = preempt_fixture_parse(text);
	struct kube_pod *pod = preempt_fixture_record(flat);

	cJSON_Delete(flat);
	free(text);
	return pod;
}

static void add_names(const struct preempt_candidate *c, struct buf *out)
{
	buf_printf(out, "%s", c->node ? c->node : "-");
	for (size_t i = 0; i < c->victim_count; i++)
		buf_printf(out, " %s", c->victims[i].pod->object.name);
}

/* "NODE VICTIM VICTIM", "-" without a node. */
static void expect(int cpu_milli, const char *text)
{
	struct kube_pod *pod = make_self(cpu_milli);
	struct preempt_ask ask = {.pod = pod, .now_ns = VIEW_FIXTURE_NOW_NS};
	struct buf b = BUF_INIT;

	preempt_fixture_build(&f, true);
	preempt_make_plan(f.index, f.place, f.book, &f.options, &ask, &plan);
	add_names(&plan.chosen, &b);
	if (strcmp(b.data, text) != 0)
		fail_msg("%s: %s\n%s%s", preempt_verdict_name(plan.verdict), b.data,
			 plan.narration.data, plan.unblock.len ? plan.unblock.data : "");
	buf_fini(&b);
	object_drop(&pod->object);
}

static void assert_told(const char *text)
{
	if (!strstr(plan.narration.data, text))
		fail_msg("%s\nis not in\n%s", text, plan.narration.data);
}

/* One suffices for the room, but the others do no work without it. */
static void who_falls_is_a_victim(void **unused)
{
	(void)unused;
	put_node("n1", 2);
	put_node("n2", 2);
	put_group("train", 3);
	put_pod("a1", "n1", 2000, "train");
	put_pod("a2", "n2", 1000, "train");
	put_pod("a3", "n2", 1000, "train");
	expect(2000, "n1 a3 a2 a1");
	assert_told("Victim a/a1 on n1 (cpu 2.0; priority 0, runs for 59m59s); falls with its "
		    "group: group a/train needs 3, would have 2.");
	assert_told("Those on other nodes fall with their groups.");
	assert_true(plan.several);
}

static void one_that_can_be_spared_goes_alone(void **unused)
{
	(void)unused;
	put_node("n1", 2);
	put_node("n2", 2);
	put_group("train", 2);
	put_pod("a1", "n1", 2000, "train");
	put_pod("a2", "n2", 1000, "train");
	put_pod("a3", "n2", 1000, "train");
	expect(2000, "n1 a1");
	assert_null(strstr(plan.narration.data, "group"));
}

/* Below its minimum it does no work anyway. */
static void a_group_below_its_minimum_does_not_fall(void **unused)
{
	(void)unused;
	put_node("n1", 2);
	put_node("n2", 2);
	put_group("train", 4);
	put_pod("a1", "n1", 2000, "train");
	put_pod("a2", "n2", 1000, "train");
	put_pod("a3", "n2", 1000, "train");
	expect(2000, "n1 a1");
}

/* Without the object nobody tells a minimum. */
static void a_group_that_nobody_knows_does_not_fall(void **unused)
{
	(void)unused;
	put_node("n1", 2);
	put_node("n2", 2);
	put_pod("a1", "n1", 2000, "train");
	put_pod("a2", "n2", 2000, "train");
	expect(2000, "n2 a2");
}

/* Pods of a part of a workload, by replica: each is a group of its own. */
static void parts_and_replicas_are_groups_of_their_own(void **unused)
{
	static const struct {
		const char *part, *replica; /* of a2; a1 is of "w" and "0" */
		int min;
		const char *victims, *told;
	} rows[] = {
		{"w", "0", 2, "n1 a1 a2", "group a/train/w/0 needs 2, would have 1"},
		{"w", "1", 2, "n1 a1", "n1"},
		{"v", "0", 2, "n1 a1", "n1"},
		{"w", "0", 1, "n1 a1", "n1"},
		{"w", "0", 0, "n1 a1", "n1"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *workload =
			mem_printf("{'metadata':{'name':'train','namespace':'a'},'spec':{"
				   "'podGroups':[{'name':'v','policy':{'gang':{'minCount':"
				   "9}}},{'name':'w','policy':{'gang':{'minCount':%d}}}]}}",
				   rows[i].min);

		put_node("n1", 2);
		put_node("n2", 1);
		place_fixture_put(&f.cluster, OBJECT_WORKLOAD, workload);
		free(workload);
		for (int k = 1; k <= 2; k++) {
			char *pod = mem_printf(
				"{'metadata':{'name':'a%d','namespace':'a','uid':'a%d'},'spec':{"
				"'nodeName':'n%d','workloadRef':{'name':'train','podGroup':'%s',"
				"'podGroupReplicaKey':'%s'},'containers':[{'name':'c','resources':{"
				"'requests':{'cpu':'%d'}}}]},'status':{'phase':'Running'}}",
				k, k, k, k == 1 ? "w" : rows[i].part,
				k == 1 ? "0" : rows[i].replica, 3 - k);

			place_fixture_put(&f.cluster, OBJECT_POD, pod);
			free(pod);
		}
		expect(2000, rows[i].victims);
		assert_told(rows[i].told);
		teardown(unused);
		setup(unused);
	}
}

/* Pods that end, and that ended, are no members any more: the other two are below the minimum. */
static void pods_that_end_are_no_members(void **unused)
{
	static const char *const ends[] = {
		"'metadata':{'name':'a3','namespace':'a','uid':'a3','labels':{"
		"'scheduling.x-k8s.io/"
		"pod-group':'train'}},'spec':{'nodeName':'n2','containers':[]},"
		"'status':{'phase':'Failed'}",
		"'metadata':{'name':'a3','namespace':'a','uid':'a3','deletionTimestamp':"
		"'2026-01-31T11:59:00Z','labels':{'scheduling.x-k8s.io/"
		"pod-group':'train'}},'spec':{"
		"'nodeName':'n2','containers':[]},'status':{'phase':'Running'}"};

	for (size_t i = 0; i < 2; i++) {
		char *json = mem_printf("{%s}", ends[i]);

		put_node("n1", 2);
		put_node("n2", 1);
		put_group("train", 3);
		put_pod("a1", "n1", 2000, "train");
		put_pod("a2", "n2", 1000, "train");
		place_fixture_put(&f.cluster, OBJECT_POD, json);
		expect(2000, "n1 a1");
		free(json);
		teardown(unused);
		setup(unused);
	}
}

/* a1 is the younger of its node, and alone would be taken first. */
static void a_set_without_the_group_is_cheaper(void **unused)
{
	(void)unused;
	put_node("n1", 4);
	put_node("n2", 2);
	put_group("train", 2);
	put_pod("a3", "n1", 2000, "train");
	put_pod("b1", "n1", 2000, "");
	put_pod("a2", "n2", 2000, "train");
	expect(2000, "n1 b1");
}

/* All of the group and b0 would do; so does b0 with the one that can be spared. */
static void a_group_is_spared_but_for_what_it_can_spare(void **unused)
{
	(void)unused;
	put_node("n1", 3);
	put_group("train", 2);
	put_pod("a1", "n1", 500, "train");
	put_pod("a2", "n1", 500, "train");
	put_pod("a3", "n1", 500, "train");
	put_pod("b0", "n1", 1500, "");
	expect(2000, "n1 a3 b0");
}

static void one_that_must_stay_keeps_its_group(void **unused)
{
	(void)unused;
	put_node("n1", 2);
	put_node("n2", 2);
	put_group("train", 2);
	put_pod("a1", "n1", 2000, "train");
	put_pod_of("a2", "n2", 2000, "train", 20);
	expect(2000, "-");
	assert_int_equal(plan.refused[PREEMPT_GROUP], 1);
	assert_int_equal(plan.refused[PREEMPT_PRIORITY], 1);
	assert_non_null(strstr(plan.unblock.data, "1 pod of groups that would fall below their "
						  "minimum with pods that stay"));
}

/* An extender can name no victim of another node. Each answer is for its node alone: of "spare" one may go. */
static void an_extender_is_told_whole_groups_of_a_node(void **unused)
{
	static const char *const uids[] = {"a1"};
	const struct preempt_offer offers[] = {
		{"n1", uids, 1}, {"n3", uids, 1}, {"n4", uids, 1}, {"n5", uids, 1}};
	struct kube_pod *pod = make_self(2000);
	struct preempt_ask ask = {.pod = pod, .now_ns = VIEW_FIXTURE_NOW_NS};
	struct preempt_answer answer;
	struct buf b = BUF_INIT;

	(void)unused;
	put_node("n1", 2);
	put_node("n2", 2);
	put_node("n3", 2);
	put_node("n4", 2);
	put_node("n5", 3);
	put_group("spare", 2);
	put_group("wide", 2);
	put_group("near", 2);
	put_pod("a1", "n1", 2000, "wide");
	put_pod("a2", "n2", 2000, "wide");
	put_pod("a3", "n3", 1900, "near");
	put_pod("a4", "n3", 100, "near");
	put_pod("a5", "n4", 2000, "spare");
	put_pod("a6", "n5", 2000, "spare");
	put_pod_of("a7", "n5", 1000, "spare", 20);
	preempt_fixture_build(&f, true);
	preempt_for_extender(f.index, f.place, f.book, &f.options, &ask, offers, 4, &answer);
	for (size_t i = 0; i < answer.count; i++)
		add_names(&answer.of[i], &b);
	assert_string_equal(b.data, "n3 a3 a4n4 a5n5 a6");
	buf_fini(&b);
	preempt_answer_fini(&answer);
	object_drop(&pod->object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_falls_is_a_victim, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_can_be_spared_goes_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(a_group_below_its_minimum_does_not_fall, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_group_that_nobody_knows_does_not_fall, setup,
						teardown),
		cmocka_unit_test_setup_teardown(parts_and_replicas_are_groups_of_their_own, setup,
						teardown),
		cmocka_unit_test_setup_teardown(pods_that_end_are_no_members, setup, teardown),
		cmocka_unit_test_setup_teardown(a_set_without_the_group_is_cheaper, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_group_is_spared_but_for_what_it_can_spare, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_that_must_stay_keeps_its_group, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_extender_is_told_whole_groups_of_a_node, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
