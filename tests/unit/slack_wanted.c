/* SPDX-License-Identifier: Apache-2.0 */
/* Which object of a workload speaks for it, and what is taken from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/slack_fixture.h"

static struct slack_fixture f;

static int setup(void **state)
{
	(void)state;
	slack_fixture_init(&f);
	slack_fixture_node(&f, "n1", "a", "16", "64Gi", "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	slack_fixture_fini(&f);
	return 0;
}

static const struct slack_class *find_class(const char *key)
{
	for (size_t i = 0; i < f.result.class_count; i++)
		if (strcmp(f.result.classes[i].key, key) == 0)
			return &f.result.classes[i];
	return NULL;
}

#define OWNER(kind, name, uid)                                                                     \
	"'ownerReferences':[{'kind':'" kind "','name':'" name "','uid':'" uid                      \
	"','controller':true}]"

struct controller {
	const char *name, *revision;
	int replicas;
};

/* A ReplicaSet of Deployment "web" that asks for 100 %, with pods of so many millicores. */
static void put_replica_set(const struct controller *c, int cpu_milli)
{
	char *json = mem_printf(
		"{'metadata':{'name':'%s','namespace':'shop','uid':'uid-%s',"
		"'annotations':{%s'evenkeel.io/slack':'100%%'}," OWNER(
			"Deployment", "web",
			"uid-web") "},'spec':{'replicas':%d,'template':{'spec':{'containers':[{"
				   "'name':'c','resources':{'requests':{'cpu':'%dm'}}}]}}}}",
		c->name, c->name, c->revision, c->replicas, cpu_milli);

	place_fixture_put(&f.world, OBJECT_REPLICA_SET, json);
	free(json);
}

#define REVISION(n) "'deployment.kubernetes.io/revision':'" n "',"

/* Either order of names; the replicas of both count. */
static void the_current_controller_is_the_newest(void **state)
{
	static const struct {
		struct controller newest, other;
	} rows[] = {
		{{"a", REVISION("10"), 0}, {"bb", REVISION("9"), 2}},
		{{"b", REVISION("10"), 0}, {"a", REVISION("9"), 2}},
		{{"a", REVISION("1"), 0}, {"b", "", 2}},
		{{"a", REVISION("7"), 1}, {"bb", REVISION("7"), 0}},
		{{"b", REVISION("7"), 1}, {"a", REVISION("7"), 0}},
		{{"web-10", "", 1}, {"web-9", "", 2}},
		{{"b", "", 1}, {"a", "", 1}},
		{{"ab", "", 1}, {"b", "", 1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct slack_class *c;

		put_replica_set(&rows[i].newest, 100);
		put_replica_set(&rows[i].other, 200);
		f.options.unneeded_ns = 0;
		slack_fixture_step(&f);
		c = find_class("shop/Deployment/web");
		if (!c || c->shape.cpu_milli != 100 ||
		    (int)c->target != rows[i].newest.replicas + rows[i].other.replicas)
			fail_msg("row %zu: %s", i, f.result.narration.data);
		place_fixture_remove(&f.world, OBJECT_REPLICA_SET, "shop", rows[i].newest.name);
		place_fixture_remove(&f.world, OBJECT_REPLICA_SET, "shop", rows[i].other.name);
	}
}

/* A Job of CronJob "tick" that asks for so much. */
static void put_job(const char *name, const char *slack, int parallelism, const char *status,
		    int cpu_milli)
{
	char *json = mem_printf(
		"{'metadata':{'name':'%s','namespace':'shop','uid':'uid-%s',"
		"'annotations':{'evenkeel.io/slack':'%s'}," OWNER(
			"CronJob", "tick",
			"uid-tick") "},'spec':{'parallelism':%d,'template':{'spec':{'containers':[{"
				    "'name':'c','resources':{'requests':{'cpu':'%dm'}}}]}}},"
				    "'status':{%s}}",
		name, name, slack, parallelism, cpu_milli, status);

	place_fixture_put(&f.world, OBJECT_JOB, json);
	free(json);
}

/* Its parallelism alone: those that ran before want nothing any more. */
static void the_newest_job_speaks_for_a_cron_job(void **state)
{
	(void)state;
	put_job("tick-28", "100%", 4, "", 100);
	put_job("tick-29", "100%", 3, "", 200);
	slack_fixture_step(&f);
	assert_int_equal(slack_fixture_class(&f, "shop/CronJob/tick")->target, 3);
	assert_int_equal(slack_fixture_class(&f, "shop/CronJob/tick")->shape.cpu_milli, 200);
}

/* A pod of Deployment "web" by ReplicaSet "web-1". */
static void put_pod(const char *name, const char *uid, const char *created, const char *more,
		    int cpu_milli)
{
	char *json = mem_printf("{'metadata':{'name':'%s','namespace':'shop','creationTimestamp':"
				"'%s','ownerReferences':[{'kind':'ReplicaSet','name':'web-1',"
				"'uid':'%s','controller':true}]},'spec':{'nodeName':'n1',"
				"'containers':[{'name':'c','resources':{'requests':{'cpu':'%dm'}}}"
				"]}%s}",
				name, created, uid, cpu_milli, more);

	place_fixture_put(&f.world, OBJECT_POD, json);
	free(json);
}

/* Of the current controller, then by age, then by name; pods that ended are no pattern. */
static void the_newest_pod_of_the_current_controller_is_the_pattern(void **state)
{
	const struct controller now = {"web-1", REVISION("2"), 1},
				before = {"web-0", REVISION("1"), 0};

	(void)state;
	put_replica_set(&now, 100);
	put_replica_set(&before, 100);
	put_pod("old", "uid-web-1", "2026-01-01T00:00:00Z", "", 200);
	put_pod("young", "uid-web-1", "2026-01-02T00:00:00Z", "", 300);
	put_pod("younger", "uid-web-0", "2026-01-03T00:00:00Z", "", 400);
	put_pod("z", "uid-web-1", "2026-01-02T00:00:00Z", "", 500);
	put_pod("done", "uid-web-1", "2026-01-04T00:00:00Z", ",'status':{'phase':'Succeeded'}",
		600);
	slack_fixture_step(&f);
	assert_int_equal(slack_fixture_class(&f, "shop/Deployment/web")->shape.cpu_milli, 300);
}

/* The template of the object counts until a pod of it runs, and says how much by its own annotation. */
static void put_template(const char *asks, const char *of_template, const char *spec)
{
	char *json = mem_printf("{'metadata':{'name':'db','namespace':'shop','uid':'uid-db',"
				"'annotations':{%s}},'spec':{'replicas':2,'template':{'metadata':{"
				"'annotations':{%s}},'spec':%s}}}",
				asks, of_template, spec);

	place_fixture_put(&f.world, OBJECT_STATEFUL_SET, json);
	free(json);
}

#define SLACK(n) "'evenkeel.io/slack':'" n "'"
#define PODS	 "{'containers':[{'name':'c','resources':{'requests':{'cpu':'100m'}}}]}"

static void what_the_two_annotations_say_is_compared(void **state)
{
	static const struct {
		const char *controller, *template, *spec;
		int target; /* -1: no class */
		const char *says; /* NULL: no issue */
	} rows[] = {
		{SLACK("2"), SLACK("100%"), PODS, 2, NULL},
		{"", SLACK("3"), PODS, 3, NULL},
		{"", "'evenkeel.io/slack':7", PODS, -1, NULL},
		{SLACK("3"), SLACK("2"), PODS, 3,
		 "the controller says \"3\", the pod's template \"2\""},
		{SLACK("shared"), SLACK("0"), PODS, 0,
		 "the controller says \"shared\", the pod's template \"0\"; the larger counts"},
		{SLACK("1"), "",
		 "{'containers':[{'name':'c','resources':{'requests':{'cpu':'x'}}}]}", -1,
		 "its pods cannot be read: "},
		{SLACK("shared"), "", "7", -1, "its pods cannot be read: spec: must be an object"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct slack_class *c;

		slack_fixture_fini(&f);
		setup(NULL);
		put_template(rows[i].controller, rows[i].template, rows[i].spec);
		slack_fixture_step(&f);
		c = find_class("shop/StatefulSet/db");
		if ((c ? (int)c->target : -1) != rows[i].target ||
		    f.result.issue_count != (rows[i].says ? 1 : 0) ||
		    (rows[i].says && !strstr(f.result.issues[0].text, rows[i].says)))
			fail_msg("row %zu: %s", i, f.result.narration.data);
	}
}

/* Of a controller with that name that is no more: its uid is another. */
static void a_controller_of_another_uid_is_not_the_workload_s(void **state)
{
	(void)state;
	slack_fixture_pod(&f, "p", "n1", "100m", "1Gi",
			  ",'annotations':{" SLACK("1") "}," OWNER("Deployment", "web",
								   "uid-before"));
	put_replica_set(&(const struct controller){"web-1", "", 5}, 200);
	slack_fixture_step(&f);
	assert_int_equal(slack_fixture_class(&f, "shop/Deployment/web")->shape.cpu_milli, 200);
}

/* Pods that ended, of nodes, and placeholders that wait are no workload that may come. */
static void the_largest_pod_to_come_is_one_that_runs_or_waits(void **state)
{
	static const struct {
		const char *metadata, *more;
		int64_t unit_milli; /* of 1600, the part of a node, at most the largest pod */
	} rows[] = {
		{"", "", 900},
		{"", ",'status':{'phase':'Succeeded'}", 100},
		{"," OWNER("DaemonSet", "d", "u"), "", 100},
		{",'annotations':{'kubernetes.io/config.mirror':'x'}", "", 100},
		{",'labels':{'evenkeel.io/slack-class':'evenkeel-slack-unit'}",
		 ",'status':{'phase':'Pending'}", 900},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *json = mem_printf("{'metadata':{'name':'p','namespace':'shop'%s},'spec':{"
					"'containers':[{'name':'c','resources':{'requests':{"
					"'cpu':'900m','memory':'8Gi'}}}]}%s}",
					rows[i].metadata, rows[i].more);

		slack_fixture_fini(&f);
		setup(NULL);
		f.options.rate_ppm = 500000;
		for (int k = 0; k < 4; k++) {
			char name[] = {'s', (char)('0' + k), '\0'};

			slack_fixture_pod(&f, name, "n1", "100m", "1Gi", "");
		}
		place_fixture_put(&f.world, OBJECT_POD, json);
		slack_fixture_step(&f);
		if (f.result.unit.cpu_milli != rows[i].unit_milli)
			fail_msg("row %zu: %lld", i, (long long)f.result.unit.cpu_milli);
		free(json);
	}
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(the_current_controller_is_the_newest),
		test(the_newest_job_speaks_for_a_cron_job),
		test(the_newest_pod_of_the_current_controller_is_the_pattern),
		test(what_the_two_annotations_say_is_compared),
		test(a_controller_of_another_uid_is_not_the_workload_s),
		test(the_largest_pod_to_come_is_one_that_runs_or_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
