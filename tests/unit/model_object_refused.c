/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that are refused: the field and the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "aggregator/model/object.h"
#include "tests/object_same.h"

struct refusal {
	enum object_kind kind;
	const char *text, *field, *why;
};

static void expect_refused(const struct refusal *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		cJSON *tree = object_json_of(cases[i].text);
		char field[OBJECT_FIELD_MAX];
		struct object *o = NULL;
		struct error error = {""};

		if (!object_read(cases[i].kind, tree, &o, field, &error))
			fail_msg("%s is read", cases[i].text);
		assert_null(o);
		assert_string_equal(field, cases[i].field);
		if (!strstr(error.text, cases[i].why))
			fail_msg("%s: %s", cases[i].text, error.text);
		assert_int_equal(object_read(cases[i].kind, tree, &o, field, NULL), -EINVAL);
		cJSON_Delete(tree);
	}
}

static void test_refused_nodes(void **state)
{
	static const struct refusal cases[] = {
		{OBJECT_NODE, "[]", "", "must be an object"},
		{OBJECT_NODE, "{}", "metadata.name", "is required"},
		{OBJECT_NODE, "{'metadata':[]}", "metadata", "must be an object"},
		{OBJECT_NODE, "{'metadata':{'name':''}}", "metadata.name", "is required"},
		{OBJECT_NODE, "{'metadata':{'name':7}}", "metadata.name", "must be a string"},
		{OBJECT_NODE, "{'metadata':{'name':'n','uid':7}}", "metadata.uid",
		 "must be a string"},
		{OBJECT_NODE, "{'kind':'Pod','metadata':{'name':'n'}}", "kind",
		 "must be Node, and not \"Pod\""},
		{OBJECT_NODE, "{'apiVersion':'apps/v1','metadata':{'name':'n'}}", "apiVersion",
		 "must be of the group of v1, and not \"apps/v1\""},
		{OBJECT_NODE, "{'apiVersion':1}", "apiVersion", "must be a string"},
		{OBJECT_NODE, "{'metadata':{'name':'n','labels':{'a':1}}}", "metadata.labels",
		 "\"a\" must be a string"},
		{OBJECT_NODE, "{'metadata':{'name':'n','creationTimestamp':'yesterday'}}",
		 "metadata.creationTimestamp", "\"yesterday\" is not a time"},
		{OBJECT_NODE, "{'metadata':{'name':'n'},'spec':5}", "spec", "must be an object"},
		{OBJECT_NODE, "{'metadata':{'name':'n'},'spec':{'unschedulable':'x'}}",
		 "spec.unschedulable", "must be true or false"},
		{OBJECT_NODE, "{'metadata':{'name':'n'},'status':{'capacity':{'cpu':'-4'}}}",
		 "status.capacity.cpu", "must not be negative"},
		{OBJECT_NODE, "{'metadata':{'name':'n'},'status':{'allocatable':{'x/y':'4 Gi'}}}",
		 "status.allocatable.x/y", "is not a quantity"},
		{OBJECT_NODE, "{'metadata':{'name':'n'},'status':1}", "status",
		 "must be an object"},
	};

	(void)state;
	expect_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_refused_workloads(void **state)
{
	static const struct refusal cases[] = {
		{OBJECT_REPLICA_SET, "{'metadata':{'name':'n'},'spec':{'replicas':1.5}}",
		 "spec.replicas", "must be a whole number"},
		{OBJECT_REPLICA_SET, "{'metadata':{'name':'n'},'spec':{'replicas':3e9}}",
		 "spec.replicas", "must be a whole number"},
		{OBJECT_REPLICA_SET,
		 "{'metadata':{'name':'n','ownerReferences':[{},{'controller':"
		 "true,'kind':[]}]}}",
		 "metadata.ownerReferences[1].kind", "must be a string"},
		{OBJECT_POD,
		 "{'metadata':{'name':'n','ownerReferences':[{'controller':true,'apiVersion':1}]},'"
		 "spec':{'containers':[]}}",
		 "metadata.ownerReferences[0].apiVersion", "must be a string"},
		{OBJECT_REPLICA_SET,
		 "{'metadata':{'name':'n','ownerReferences':[{'controller':true,'name':1}]}}",
		 "metadata.ownerReferences[0].name", "must be a string"},
		{OBJECT_REPLICA_SET, "{'metadata':{'name':'n'},'spec':{'replicas':-3e9}}",
		 "spec.replicas", "must be a whole number"},
		{OBJECT_REPLICA_SET, "{'metadata':{'name':'n'},'status':1}", "status",
		 "must be an object"},
		{OBJECT_REPLICA_SET, "{'metadata':{'name':'n'},'status':{'replicas':'1'}}",
		 "status.replicas", "must be a whole number"},
		{OBJECT_STATEFUL_SET, "{'metadata':{'name':'n'},'status':{'currentReplicas':'1'}}",
		 "status.currentReplicas", "must be a whole number"},
		{OBJECT_JOB, "{'metadata':{'name':'n'},'status':{'succeeded':'1'}}",
		 "status.succeeded", "must be a whole number"},
		{OBJECT_POD_GROUP, "{'metadata':{'name':'n'},'spec':{'schedulingPolicy':1}}",
		 "spec.schedulingPolicy", "must be an object"},
		{OBJECT_POD_GROUP,
		 "{'metadata':{'name':'n'},'spec':{'schedulingPolicy':{'gang':1}}}",
		 "spec.schedulingPolicy.gang", "must be an object"},
		{OBJECT_WORKLOAD, "{'metadata':{'name':'n'},'spec':{'podGroups':{}}}",
		 "spec.podGroups", "must be a list"},
		{OBJECT_WORKLOAD, "{'metadata':{'name':'n'},'spec':{'podGroups':[{'name':1}]}}",
		 "spec.podGroups[0].name", "must be a string"},
		{OBJECT_WORKLOAD,
		 "{'metadata':{'name':'n'},'spec':{'podGroups':[{},{'policy':1}]}}",
		 "spec.podGroups[1].policy", "must be an object"},
		{OBJECT_WORKLOAD,
		 "{'metadata':{'name':'n'},'spec':{'podGroups':[{'policy':{'gang':{'minCount':'1'}}"
		 "}]}}",
		 "spec.podGroups[0].policy.gang.minCount", "must be a whole number"},
	};

	(void)state;
	expect_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_refused_others(void **state)
{
	static const struct refusal cases[] = {
		{OBJECT_PRIORITY_CLASS, "{'metadata':{'name':'n'},'value':'7'}", "value",
		 "must be a whole number"},
		{OBJECT_POD_DISRUPTION_BUDGET,
		 "{'metadata':{'name':'n'},'spec':{'selector':{'matchLabels':{'a':[]}}}}",
		 "spec.selector", "matchLabels: \"a\" must be a string"},
		{OBJECT_POD_DISRUPTION_BUDGET,
		 "{'metadata':{'name':'n'},'status':{'disruptionsAllowed':null,'expectedPods':1e99}"
		 "}",
		 "status.expectedPods", "must be a whole number"},
		{OBJECT_ELASTIC_QUOTA, "{'metadata':{'name':'n'},'spec':{'min':{'cpu':'-1'}}}",
		 "spec.min.cpu", "must not be negative"},
		{OBJECT_PRIORITY_CLASS, "{'metadata':{'name':'n'},'globalDefault':1}",
		 "globalDefault", "must be true or false"},
		{OBJECT_PRIORITY_CLASS, "{'metadata':{'name':'n'},'preemptionPolicy':1}",
		 "preemptionPolicy", "must be a string"},
		{OBJECT_CSI_NODE, "{'metadata':{'name':'n'},'spec':{'drivers':{}}}", "spec.drivers",
		 "must be a list"},
		{OBJECT_CSI_NODE, "{'metadata':{'name':'n'},'spec':{'drivers':[{'name':1}]}}",
		 "spec.drivers[0].name", "must be a string"},
		{OBJECT_CSI_NODE,
		 "{'metadata':{'name':'n'},'spec':{'drivers':[{'allocatable':1}]}}",
		 "spec.drivers[0].allocatable", "must be an object"},
		{OBJECT_CSI_NODE,
		 "{'metadata':{'name':'n'},'spec':{'drivers':[{'allocatable':{'count':'1'}}]}}",
		 "spec.drivers[0].allocatable.count", "must be a whole number"},
		{OBJECT_POD_DISRUPTION_BUDGET, "{'metadata':{'name':'n'},'status':1}", "status",
		 "must be an object"},
		{OBJECT_POD_DISRUPTION_BUDGET,
		 "{'metadata':{'name':'n'},'spec':{'unhealthyPodEvictionPolicy':1}}",
		 "spec.unhealthyPodEvictionPolicy", "must be a string"},
		{OBJECT_POD_DISRUPTION_BUDGET,
		 "{'metadata':{'name':'n'},'status':{'observedGeneration':'1'}}",
		 "status.observedGeneration", "must be a whole number"},
		{OBJECT_POD_DISRUPTION_BUDGET,
		 "{'metadata':{'name':'n'},'status':{'disruptionsAllowed':'1'}}",
		 "status.disruptionsAllowed", "must be a whole number"},
		{OBJECT_POD_DISRUPTION_BUDGET,
		 "{'metadata':{'name':'n'},'status':{'currentHealthy':'1'}}",
		 "status.currentHealthy", "must be a whole number"},
		{OBJECT_RESOURCE_QUOTA, "{'metadata':{'name':'n'},'spec':{'hard':[]}}", "spec.hard",
		 "must be an object"},
	};

	(void)state;
	expect_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_nodes),
		cmocka_unit_test(test_refused_workloads),
		cmocka_unit_test(test_refused_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
