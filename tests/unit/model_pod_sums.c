/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/model/object.h"
#include "aggregator/model/pod_sums.h"
#include "shared/buf.h"

/* Cases write JSON with ' for ". */
static cJSON *json(const char *text)
{
	char copy[4096];
	cJSON *tree;
	size_t len = strlen(text);

	assert_true(len < sizeof(copy));
	for (size_t i = 0; i <= len; i++)
		copy[i] = text[i] == '\'' ? '"' : text[i];
	tree = cJSON_Parse(copy);
	if (!tree)
		fail_msg("the test's own JSON is broken: %s", text);
	return tree;
}

static int read_sums(const char *pod, enum pod_sums_rule rule, struct pod_sums *out, char *field,
		     struct error *reason)
{
	cJSON *tree = json(pod);
	int err = pod_sums_read(cJSON_GetObjectItem(tree, "spec"),
				cJSON_GetObjectItem(tree, "status"), rule, out, field, reason);

	cJSON_Delete(tree);
	return err;
}

/* "cpu=1 memory=2 x=3 | cpu=4, unlimited 1 2": requests, limits, containers without a limit. */
static void describe(const struct pod_sums *s, struct buf *out)
{
	const char *name;
	int64_t amount;

	for (size_t at = 0; resources_next(&s->requests, &at, &name, &amount);)
		buf_printf(out, "%s=%lld ", name, (long long)amount);
	buf_add_str(out, "|");
	for (size_t at = 0; resources_next(&s->limits, &at, &name, &amount);)
		buf_printf(out, " %s=%lld", name, (long long)amount);
	buf_printf(out, ", unlimited %u %u", s->unlimited_cpu, s->unlimited_mem);
}

static void check(const char *pod, enum pod_sums_rule rule, const char *expect)
{
	struct buf got = BUF_INIT;
	char field[OBJECT_FIELD_MAX];
	struct pod_sums sums;
	struct error reason = {""};

	if (read_sums(pod, rule, &sums, field, &reason))
		fail_msg("%s: %s: %s", pod, field, reason.text);
	describe(&sums, &got);
	assert_string_equal(got.data, expect);
	pod_sums_fini(&sums);
	buf_fini(&got);
}

static int64_t amount_of(const struct resources *r, const char *name)
{
	int64_t amount = 0;

	resources_find(r, name, &amount);
	return amount;
}

/* Without init containers: what a pod is limited to once it runs. */
static void test_limits_while_it_runs(void **state)
{
	static const char pod[] =
		"{'spec':{'containers':[{'resources':{'limits':{'cpu':'1','x.io/gpu':1}}},"
		"{'resources':{'requests':{'ephemeral-storage':7}}}],'initContainers':[{"
		"'resources':{'limits':{'cpu':'3','x.io/gpu':2,'ephemeral-storage':50}}},{"
		"'restartPolicy':'Always','resources':{'limits':{'cpu':'500m',"
		"'ephemeral-storage':20}}}],'overhead':{'cpu':'10m'}}}";
	char field[OBJECT_FIELD_MAX];
	struct error reason = {""};
	struct pod_sums sums, plain;

	(void)state;
	assert_int_equal(read_sums(pod, POD_SUMS_SCHEDULER, &sums, field, &reason), 0);
	assert_int_equal(amount_of(&sums.limits, "cpu"), 3010);
	assert_int_equal(amount_of(&sums.limits, "x.io/gpu"), 2);
	assert_int_equal(amount_of(&sums.limits, "ephemeral-storage"), 50);
	assert_non_null(sums.running);
	assert_int_equal(amount_of(sums.running, "cpu"), 1510);
	assert_int_equal(amount_of(sums.running, "x.io/gpu"), 1);
	assert_int_equal(amount_of(sums.running, "ephemeral-storage"), 20);
	assert_int_equal(sums.unlimited_storage, 2);
	assert_int_equal(sums.unlimited_storage_requests, 7);
	assert_int_equal(read_sums("{'spec':{'containers':[{}],'initContainers':[{}]}}",
				   POD_SUMS_SCHEDULER, &plain, field, &reason),
			 0);
	assert_null(plain.running);
	assert_false(pod_sums_equal(&sums, &plain));
	assert_true(pod_sums_equal(&sums, &sums));
	pod_sums_fini(&sums);
	pod_sums_fini(&plain);
}

static void test_limits_and_unlimited(void **state)
{
	static const char pod[] =
		"{'spec':{'containers':[{'resources':{'limits':{'cpu':'1','x.io/gpu':2}}},"
		"{'resources':{'requests':{'cpu':'500m'},'limits':{'memory':'1Gi','cpu':0}}},{}],"
		"'initContainers':[{'restartPolicy':'Always','resources':{'limits':{'memory':10,"
		"'cpu':'250m'}}},{'resources':{'requests':{'memory':'2Gi'}}}],"
		"'overhead':{'cpu':'10m','memory':5,'x.io/gpu':1,'other':7}}}";

	(void)state;
	/* Requests that are absent are the limits; overhead lifts the limits that there are. */
	check(pod, POD_SUMS_SCHEDULER,
	      "cpu=1760 memory=2147483663 other=7 x.io/gpu=3 | cpu=1260 memory=1073741839 "
	      "x.io/gpu=3, unlimited 2 2");
	check(pod, POD_SUMS_QUOTA_UPSTREAM,
	      "cpu=1510 memory=2147483653 other=7 x.io/gpu=3 | cpu=1010 memory=1073741829 "
	      "x.io/gpu=3, unlimited 2 2");
	check(pod, POD_SUMS_STATUS_UPSTREAM,
	      "cpu=1500 memory=2147483648 x.io/gpu=2 | cpu=1000 memory=1073741824 x.io/gpu=2, "
	      "unlimited 2 2");
}

static void test_a_limit_of_zero_is_none(void **state)
{
	(void)state;
	check("{'spec':{'containers':[{'resources':{'limits':{'cpu':0,'memory':'0'}}}],"
	      "'overhead':{'cpu':1,'memory':1}}}",
	      POD_SUMS_SCHEDULER, "cpu=1000 memory=1 | cpu=0 memory=0, unlimited 1 1");
}

static void test_order_of_sidecars(void **state)
{
	(void)state;
	/* 1 + 5 before the second sidecar starts; a plain one after both has 1 + 2 + 2. */
	check("{'spec':{'containers':[{'resources':{'requests':{'cpu':1}}}],'initContainers':["
	      "{'restartPolicy':'Always','resources':{'requests':{'cpu':1}}},"
	      "{'resources':{'requests':{'cpu':5}}},"
	      "{'restartPolicy':'Always','resources':{'requests':{'cpu':2}}},"
	      "{'restartPolicy':'Never','resources':{'requests':{'cpu':2}}}]}}",
	      POD_SUMS_SCHEDULER, "cpu=6000 |, unlimited 3 3");
	/* The same with the large one last: it has both sidecars beside it. */
	check("{'spec':{'containers':[{'resources':{'requests':{'cpu':1}}}],'initContainers':["
	      "{'restartPolicy':'Always','resources':{'requests':{'cpu':1}}},"
	      "{'restartPolicy':'Always','resources':{'requests':{'cpu':2}}},"
	      "{'resources':{'requests':{'cpu':5}}}]}}",
	      POD_SUMS_SCHEDULER, "cpu=8000 |, unlimited 3 3");
}

static void test_pod_level(void **state)
{
	(void)state;
	/* Only CPU, memory and huge pages may be said of the pod; its overhead comes on top. */
	check("{'spec':{'containers':[{'resources':{'requests':{'cpu':1,'memory':7,'x':2,"
	      "'hugepages-2Mi':4}}}],'overhead':{'cpu':1},"
	      "'resources':{'requests':{'cpu':3,'x':9,'hugepages-2Mi':8,'pods':4,"
	      "'ephemeral-storage':1},'limits':{'memory':9}}}}",
	      POD_SUMS_SCHEDULER,
	      "cpu=4000 memory=7 hugepages-2Mi=8 x=2 | memory=9, unlimited 1 0");
	/* A limit is the request where no container, sidecar or init container has one. */
	check("{'spec':{'containers':[{}],'resources':{'limits':{'cpu':3,'memory':5}},"
	      "'initContainers':[{'resources':{'requests':{'memory':2}}}]}}",
	      POD_SUMS_SCHEDULER, "cpu=3000 memory=2 | cpu=3000 memory=5, unlimited 0 0");
	check("{'spec':{'containers':[{}],'resources':{'limits':{'cpu':3,'memory':5}},"
	      "'initContainers':[{'restartPolicy':'Always','resources':{'requests':{'memory':2}}"
	      "}]}}",
	      POD_SUMS_SCHEDULER, "cpu=3000 memory=2 | cpu=3000 memory=5, unlimited 0 0");
	check("{'spec':{'containers':[{}],'resources':{'requests':{'cpu':3}}}}",
	      POD_SUMS_QUOTA_UPSTREAM, "|, unlimited 1 1");
}

/* One container that wants 4 CPUs of at most 8, and a status. */
#define RESIZED(status)                                                                            \
	"{'spec':{'containers':[{'name':'b','resources':{'requests':{'cpu':1}}},"                  \
	"{'name':'a','resources':{'requests':{'cpu':4},'limits':{'cpu':8}}}]},'status':{" status   \
	"}}"

#define OF_A(members) "'containerStatuses':[{'name':'a'," members "},{'name':'b'}]"

static void test_resize_in_place(void **state)
{
	static const struct {
		const char *pod, *expect;
	} cases[] = {
		{RESIZED(""), "cpu=5000 | cpu=8000, unlimited 1 2"},
		/* Granted and running with less than it wants: what it wants is reserved. */
		{RESIZED(OF_A("'allocatedResources':{'cpu':2},'resources':{'requests':{'cpu':2},"
			      "'limits':{'cpu':3}}")),
		 "cpu=5000 | cpu=8000, unlimited 1 2"},
		/* It wants less, and still has more. */
		{RESIZED(OF_A("'allocatedResources':{'cpu':4},'resources':{'requests':{'cpu':6},"
			      "'limits':{'cpu':9}}")),
		 "cpu=7000 | cpu=9000, unlimited 1 2"},
		{RESIZED(OF_A("'allocatedResources':{'cpu':7,'memory':1},'resources':{}")),
		 "cpu=8000 memory=1 | cpu=8000, unlimited 1 2"},
		/* Before 1.33 there was only what is granted. */
		{RESIZED(OF_A("'allocatedResources':{'cpu':7}")),
		 "cpu=8000 | cpu=8000, unlimited 1 2"},
		/* Infeasible: what it wants does not count. */
		{RESIZED(OF_A("'allocatedResources':{'cpu':2},'resources':{'requests':{'cpu':3},"
			      "'limits':{'cpu':5}}") ",'conditions':[{'type':'Ready'},{'type':"
						     "'PodResizePending','reason':'Infeasible'}]"),
		 "cpu=4000 | cpu=5000, unlimited 1 2"},
		{RESIZED(OF_A("'allocatedResources':{'cpu':2}") ",'resize':'Infeasible'"),
		 "cpu=3000 | cpu=8000, unlimited 1 2"},
		/* Deferred: it does. A condition says more than the old member. */
		{RESIZED(OF_A("'allocatedResources':{'cpu':2},'resources':{'requests':{'cpu'"
			      ":3}}") ","
				      "'resize':'Infeasible','conditions':[{'type':'"
				      "PodResizePending','reason':"
				      "'Deferred'}]"),
		 "cpu=5000 | cpu=8000, unlimited 1 2"},
		/* A status without any resources says nothing, even then. */
		{RESIZED(OF_A("'restartCount':1") ",'resize':'Infeasible'"),
		 "cpu=5000 | cpu=8000, unlimited 1 2"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(cases[i].pod, POD_SUMS_SCHEDULER, cases[i].expect);
	check(cases[2].pod, POD_SUMS_QUOTA_UPSTREAM, "cpu=5000 | cpu=8000, unlimited 1 2");
}

/* Amounts of devices are added, before resources of the whole pod replace the sum. */
static void test_claims_of_node_resources(void **state)
{
#define CLAIMED "'nodeAllocatableResourceClaimStatuses':["
	static const struct {
		const char *pod, *expect;
	} cases[] = {
		{RESIZED(CLAIMED
			 "{'resourceClaimName':'c','containers':['a','b'],'mapping':[{'name':"
			 "'cpu','quantity':'2'},{'name':'memory','quantity':'1Ki'}]}]"),
		 "cpu=7000 memory=1024 | cpu=10000, unlimited 1 2"},
		{RESIZED(CLAIMED "{'containers':['a','b'],'overhead':[{'name':'cpu','perPod':'1',"
				 "'perContainer':'100m'}]},{'overhead':[{'name':'cpu',"
				 "'perPod':'1','perContainer':'1'}]}]"),
		 "cpu=7200 | cpu=10200, unlimited 1 2"},
		{RESIZED(CLAIMED "{'resourceClaimName':'c'}]"),
		 "cpu=5000 | cpu=8000, unlimited 1 2"},
		{"{'spec':{'containers':[{}],'resources':{'requests':{'cpu':8}}},'status':{" CLAIMED
		 "{'mapping':[{'name':'cpu','quantity':'2'},{'name':'memory','quantity':1}]}]}}",
		 "cpu=8000 memory=1 |, unlimited 1 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(cases[i].pod, POD_SUMS_SCHEDULER, cases[i].expect);
}

static void test_resize_of_init_containers(void **state)
{
	(void)state;
	/* Of a sidecar it counts, of a plain one it does not. */
	check("{'spec':{'containers':[{'name':'a'}],'initContainers':["
	      "{'name':'s','restartPolicy':'Always','resources':{'requests':{'cpu':1}}},"
	      "{'name':'i','resources':{'requests':{'cpu':1}}}]},"
	      "'status':{'initContainerStatuses':[{'name':'s','resources':{'requests':{'cpu':3}}},"
	      "{'name':'i','resources':{'requests':{'cpu':9}}}]}}",
	      POD_SUMS_SCHEDULER, "cpu=4000 |, unlimited 2 2");
}

static void test_resize_of_the_pod(void **state)
{
	(void)state;
	check("{'spec':{'containers':[{}],'resources':{'requests':{'cpu':2}}},"
	      "'status':{'allocatedResources':{'cpu':3},'resources':{'requests':{'cpu':5}}}}",
	      POD_SUMS_SCHEDULER, "cpu=5000 |, unlimited 1 1");
	check("{'spec':{'containers':[{}],'resources':{'requests':{'cpu':8}}},'status':{'resize':"
	      "'Infeasible','allocatedResources':{'cpu':3},'resources':{'requests':{'cpu':5}}}}",
	      POD_SUMS_SCHEDULER, "cpu=5000 |, unlimited 1 1");
	/* A pod without resources of its own has none to be resized. */
	check("{'spec':{'containers':[{'resources':{'requests':{'cpu':2}}}]},"
	      "'status':{'allocatedResources':{'cpu':3},'resources':{'requests':{'cpu':5}}}}",
	      POD_SUMS_SCHEDULER, "cpu=2000 |, unlimited 1 1");
}

static void test_sums_saturate(void **state)
{
	(void)state;
	check("{'spec':{'containers':[{'resources':{'limits':{'cpu':'9e30','memory':'8Ei','x':"
	      "9e18}}},{'resources':{'limits':{'cpu':1,'memory':'8Ei','x':9e18}}}],"
	      "'overhead':{'memory':1}}}",
	      POD_SUMS_SCHEDULER,
	      "cpu=9223372036854775807 memory=9223372036854775807 x=9223372036854775807 | "
	      "cpu=9223372036854775807 memory=9223372036854775807 x=9223372036854775807, "
	      "unlimited 0 0");
}

static void test_what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *pod, *field, *why;
	} cases[] = {
		{"{'spec':{'containers':{}}}", "spec.containers", "must be a list"},
		{"{'spec':{'containers':[{},7]}}", "spec.containers[1]", "must be an object"},
		{"{'spec':{'containers':[{'resources':[]}]}}", "spec.containers[0].resources",
		 "must be an object"},
		{"{'spec':{'containers':[{'resources':{'requests':{'cpu':'1x'}}}]}}",
		 "spec.containers[0].resources.requests.cpu", "\"1x\" is not a quantity"},
		{"{'spec':{'initContainers':[{},{'resources':{'limits':{'a.b/c':-1}}}]}}",
		 "spec.initContainers[1].resources.limits.a.b/c", "must not be negative"},
		{"{'spec':{'initContainers':[{'restartPolicy':1}]}}",
		 "spec.initContainers[0].restartPolicy", "must be a string"},
		{"{'spec':{'overhead':{'cpu':[]}}}", "spec.overhead.cpu", "must be a quantity"},
		{"{'spec':{'resources':{'limits':7}}}", "spec.resources.limits",
		 "must be an object"},
		{RESIZED(OF_A("'resources':{'requests':{'cpu':'-5m'}}")),
		 "status.containerStatuses[0].resources.requests.cpu", "must not be negative"},
		{RESIZED(CLAIMED "{},{'mapping':[{'name':'cpu','quantity':'-1'}]}]"),
		 "status.nodeAllocatableResourceClaimStatuses[1].mapping[0].quantity.cpu",
		 "must not be negative"},
		{RESIZED("'containerStatuses':7"), "status.containerStatuses", "must be a list"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char field[OBJECT_FIELD_MAX];
		struct pod_sums sums;
		struct error error = {""};

		assert_int_equal(read_sums(cases[i].pod, POD_SUMS_SCHEDULER, &sums, field, &error),
				 -EINVAL);
		assert_string_equal(field, cases[i].field);
		assert_non_null(strstr(error.text, cases[i].why));
	}
}

/* `containers` containers, each with `names` names of its own. */
static int read_many(unsigned int containers, unsigned int names)
{
	cJSON *spec = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(spec, "containers");
	char field[OBJECT_FIELD_MAX], name[32];
	struct pod_sums sums;
	struct error error = {""};
	int err;

	for (unsigned int c = 0; c < containers; c++) {
		cJSON *container = cJSON_CreateObject();
		cJSON *requests =
			cJSON_AddObjectToObject(cJSON_AddObjectToObject(container, "resources"),
						"requests");

		cJSON_AddItemToArray(list, container);
		for (unsigned int i = 0; i < names; i++) {
			snprintf(name, sizeof(name), "x%u-%u", c, i);
			cJSON_AddNumberToObject(requests, name, 1);
		}
	}
	err = pod_sums_read(spec, NULL, POD_SUMS_SCHEDULER, &sums, field, &error);
	if (!err)
		pod_sums_fini(&sums);
	cJSON_Delete(spec);
	return err;
}

static void test_names_are_bounded(void **state)
{
	(void)state;
	assert_int_equal(read_many(1, 256), 0);
	assert_int_equal(read_many(1, 257), -EINVAL);
	assert_int_equal(read_many(4, 64), 0);
	assert_int_equal(read_many(4, 65), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits_while_it_runs),
		cmocka_unit_test(test_limits_and_unlimited),
		cmocka_unit_test(test_a_limit_of_zero_is_none),
		cmocka_unit_test(test_order_of_sidecars),
		cmocka_unit_test(test_pod_level),
		cmocka_unit_test(test_resize_in_place),
		cmocka_unit_test(test_claims_of_node_resources),
		cmocka_unit_test(test_resize_of_init_containers),
		cmocka_unit_test(test_resize_of_the_pod),
		cmocka_unit_test(test_sums_saturate),
		cmocka_unit_test(test_what_is_wrong_is_named),
		cmocka_unit_test(test_names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
