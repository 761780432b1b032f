/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of pods: what tells their minimum, and how a pod names its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "aggregator/model/object.h"
#include "shared/mem.h"
#include "tests/object_same.h"

/* JSON with ' for ". */
static struct object *read_object(enum object_kind kind, const char *json)
{
	char field[OBJECT_FIELD_MAX], *text = mem_strdup(json);
	struct error error = {""};
	struct object *o;
	cJSON *tree;

	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	tree = cJSON_Parse(text);
	if (object_read(kind, tree, &o, field, &error))
		fail_msg("%s: %s", field, error.text);
	cJSON_Delete(tree);
	free(text);
	return o;
}

/* "PART=MIN PART=MIN", and what is written is read alike. */
static void assert_group(enum object_kind kind, const char *json, const char *want)
{
	struct object *o = read_object(kind, json);
	const struct kube_gang *g = (const struct kube_gang *)o;
	const char *wrong = object_check_written(o);
	struct buf b = BUF_INIT;

	if (wrong)
		fail_msg("%s is another when read again: %s", json, wrong);
	buf_add_str(&b, "");
	for (size_t i = 0; i < g->count; i++)
		buf_printf(&b, "%s%s=%d", i ? " " : "", g->of[i].part, g->of[i].pods);
	assert_string_equal(b.data ? b.data : "", want);
	buf_fini(&b);
	object_drop(o);
}

static void test_groups_and_their_minimum(void **state)
{
	(void)state;
	/* As kube-apiserver 1.37 writes it. */
	assert_group(OBJECT_POD_GROUP,
		     "{'apiVersion':'scheduling.k8s.io/v1alpha3','kind':'PodGroup','metadata':{"
		     "'name':'g','namespace':'a'},'spec':{'disruptionMode':{'single':{}},"
		     "'schedulingPolicy':{'gang':{'minCount':4}}},'status':{}}",
		     "=4");
	assert_group(OBJECT_POD_GROUP,
		     "{'metadata':{'name':'g'},'spec':{'schedulingPolicy':{'basic':{}}}}", "=0");
	assert_group(OBJECT_POD_GROUP, "{'metadata':{'name':'g'}}", "=0");
	assert_group(OBJECT_COSCHEDULING_GROUP,
		     "{'apiVersion':'scheduling.x-k8s.io/v1alpha1','kind':'PodGroup','metadata':{"
		     "'name':'g'},'spec':{'minMember':3,'scheduleTimeoutSeconds':10}}",
		     "=3");
	/* As kube-apiserver 1.35 writes it; later ones have other members. */
	assert_group(OBJECT_WORKLOAD,
		     "{'apiVersion':'scheduling.k8s.io/v1alpha1','kind':'Workload','metadata':{"
		     "'name':'w'},'spec':{'podGroups':[{'name':'driver','policy':{'basic':{}}},"
		     "{'name':'workers','policy':{'gang':{'minCount':8}}}]}}",
		     "driver=0 workers=8");
	assert_group(OBJECT_WORKLOAD,
		     "{'apiVersion':'scheduling.k8s.io/v1beta1','kind':'Workload','metadata':{"
		     "'name':'w'},'spec':{'podGroupTemplates':[{'name':'t'}]}}",
		     "");
}

static void assert_gang(const char *metadata, const char *spec, enum object_kind kind,
			const char *want)
{
	char *json = mem_printf("{'metadata':{'name':'p'%s},'spec':{'containers':[]%s}}", metadata,
				spec);
	struct object *o = read_object(OBJECT_POD, json);
	const struct pod_gang *g = &((const struct kube_pod *)o)->template->gang;
	const char *wrong = object_check_written(o);
	char *got = mem_printf("%s|%s|%s", g->name, g->part, g->replica);

	if (wrong)
		fail_msg("%s is another when read again: %s", json, wrong);
	assert_string_equal(got, want);
	assert_true(!*g->name || g->kind == kind);
	free(got);
	free(json);
	object_drop(o);
}

static void test_a_pod_names_its_group(void **state)
{
	(void)state;
	assert_gang("", ",'schedulingGroup':{'podGroupName':'g'}", OBJECT_POD_GROUP, "g||");
	assert_gang("", ",'workloadRef':{'name':'w','podGroup':'workers','podGroupReplicaKey':'0'}",
		    OBJECT_WORKLOAD, "w|workers|0");
	assert_gang(",'labels':{'scheduling.x-k8s.io/pod-group':'g'}", "",
		    OBJECT_COSCHEDULING_GROUP, "g||");
	assert_gang(",'labels':{'pod-group.scheduling.sigs.k8s.io':'g'}", "",
		    OBJECT_COSCHEDULING_GROUP, "g||");
	/* The field is what kube-scheduler goes by. */
	assert_gang(",'labels':{'scheduling.x-k8s.io/pod-group':'other'}",
		    ",'schedulingGroup':{'podGroupName':'g'}", OBJECT_POD_GROUP, "g||");
	assert_gang("", ",'schedulingGroup':{'podGroupName':7}", OBJECT_POD_GROUP, "||");
	assert_gang("", "", OBJECT_POD_GROUP, "||");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_and_their_minimum),
		cmocka_unit_test(test_a_pod_names_its_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
