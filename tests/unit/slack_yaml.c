/* SPDX-License-Identifier: Apache-2.0 */
/* Slack as objects for kubectl: read again, they say what the result says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/slack/slack.h"
#include "shared/mem.h"
#include "shared/yaml_json.h"
#include "tests/slack_fixture.h"

static struct slack_fixture f;

static int setup(void **state)
{
	(void)state;
	slack_fixture_init(&f);
	slack_fixture_node(&f, "n1", "a", "4", "16Gi", "");
	slack_fixture_pod(&f, "p1", "n1", "2", "8Gi", "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	slack_fixture_fini(&f);
	return 0;
}

static void expect_yaml(enum slack_yaml kind, const char *yaml)
{
	struct slack_yaml_options o;
	struct buf out = BUF_INIT;

	slack_yaml_options_default(&o);
	o.kind = kind;
	slack_fixture_step(&f);
	slack_yaml_write(&f.result, &o, &out);
	assert_string_equal(out.data, yaml);
	buf_fini(&out);
}

static void units_are_balloons(void **state)
{
	(void)state;
	f.options.rate_ppm = 500000;
	expect_yaml(SLACK_YAML_BALLOONS, "---\n"
					 "apiVersion: v1\n"
					 "kind: Namespace\n"
					 "metadata:\n"
					 "  name: evenkeel\n"
					 "  labels:\n"
					 "    app.kubernetes.io/part-of: evenkeel\n"
					 "---\n"
					 "apiVersion: scheduling.k8s.io/v1\n"
					 "kind: PriorityClass\n"
					 "metadata:\n"
					 "  name: evenkeel-slack\n"
					 "  labels:\n"
					 "    app.kubernetes.io/part-of: evenkeel\n"
					 "value: -10\n"
					 "preemptionPolicy: Never\n"
					 "description: \"Placeholders for pods to come: whoever "
					 "needs the room preempts them.\"\n"
					 "---\n"
					 "apiVersion: apps/v1\n"
					 "kind: Deployment\n"
					 "metadata:\n"
					 "  name: evenkeel-slack-unit\n"
					 "  namespace: evenkeel\n"
					 "  labels:\n"
					 "    app.kubernetes.io/part-of: evenkeel\n"
					 "spec:\n"
					 "  replicas: 2\n"
					 "  strategy:\n"
					 "    type: Recreate\n"
					 "  selector:\n"
					 "    matchLabels:\n"
					 "      evenkeel.io/slack-class: evenkeel-slack-unit\n"
					 "  template:\n"
					 "    metadata:\n"
					 "      labels:\n"
					 "        evenkeel.io/slack-class: evenkeel-slack-unit\n"
					 "    spec:\n"
					 "      containers:\n"
					 "      - name: placeholder\n"
					 "        image: \"registry.k8s.io/pause:3.9\"\n"
					 "        resources:\n"
					 "          requests:\n"
					 "            cpu: \"800m\"\n"
					 "            memory: \"3435973836\"\n"
					 "      priorityClassName: evenkeel-slack\n"
					 "      terminationGracePeriodSeconds: 0\n"
					 "      automountServiceAccountToken: false\n");
}

static void units_are_buffers_of_a_template(void **state)
{
	(void)state;
	f.options.rate_ppm = 500000;
	expect_yaml(SLACK_YAML_BUFFERS, "---\n"
					"apiVersion: v1\n"
					"kind: Namespace\n"
					"metadata:\n"
					"  name: evenkeel\n"
					"  labels:\n"
					"    app.kubernetes.io/part-of: evenkeel\n"
					"---\n"
					"apiVersion: v1\n"
					"kind: PodTemplate\n"
					"metadata:\n"
					"  name: evenkeel-slack-unit\n"
					"  namespace: evenkeel\n"
					"  labels:\n"
					"    app.kubernetes.io/part-of: evenkeel\n"
					"template:\n"
					"  metadata: {}\n"
					"  spec:\n"
					"    containers:\n"
					"    - name: placeholder\n"
					"      image: \"registry.k8s.io/pause:3.9\"\n"
					"      resources:\n"
					"        requests:\n"
					"          cpu: \"800m\"\n"
					"          memory: \"3435973836\"\n"
					"---\n"
					"apiVersion: autoscaling.x-k8s.io/v1beta1\n"
					"kind: CapacityBuffer\n"
					"metadata:\n"
					"  name: evenkeel-slack-unit\n"
					"  namespace: evenkeel\n"
					"  labels:\n"
					"    app.kubernetes.io/part-of: evenkeel\n"
					"spec:\n"
					"  podTemplateRef:\n"
					"    name: evenkeel-slack-unit\n"
					"  replicas: 2\n");
}

static void workloads_are_buffers_by_reference(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "web", "2", 0, "100m", "1Mi", "");
	expect_yaml(SLACK_YAML_BUFFERS, "---\n"
					"apiVersion: autoscaling.x-k8s.io/v1beta1\n"
					"kind: CapacityBuffer\n"
					"metadata:\n"
					"  name: evenkeel-slack-replicaset-web\n"
					"  namespace: shop\n"
					"  labels:\n"
					"    app.kubernetes.io/part-of: evenkeel\n"
					"spec:\n"
					"  scalableRef:\n"
					"    apiGroup: apps\n"
					"    kind: ReplicaSet\n"
					"    name: web\n"
					"  replicas: 2\n");
}

#define REQUIRED "'requiredDuringSchedulingIgnoredDuringExecution'"

/* Against the workload's pods, and against each other, but never with its labels. */
static void balloons_keep_apart_like_their_workload(void **state)
{
	(void)state;
	slack_fixture_workload(
		&f, "Web.1", "1", 0, "100m", "1Mi",
		"'affinity':{'podAntiAffinity':{" REQUIRED ":[{'topologyKey':"
		"'kubernetes.io/hostname','labelSelector':{'matchLabels':{'app':'Web.1'}}}]}},"
		"'nodeSelector':{'zone':'a','true':'0644'},"
		"'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone',"
		"'whenUnsatisfiable':'ScheduleAnyway','labelSelector':{'matchLabels':{'app':"
		"'Web.1'}}}],");
	expect_yaml(
		SLACK_YAML_BALLOONS,
		"---\n"
		"apiVersion: scheduling.k8s.io/v1\n"
		"kind: PriorityClass\n"
		"metadata:\n"
		"  name: evenkeel-slack\n"
		"  labels:\n"
		"    app.kubernetes.io/part-of: evenkeel\n"
		"value: -10\n"
		"preemptionPolicy: Never\n"
		"description: \"Placeholders for pods to come: whoever needs the room preempts "
		"them.\"\n"
		"---\n"
		"apiVersion: apps/v1\n"
		"kind: Deployment\n"
		"metadata:\n"
		"  name: evenkeel-slack-replicaset-web-1-f3302a6e\n"
		"  namespace: shop\n"
		"  labels:\n"
		"    app.kubernetes.io/part-of: evenkeel\n"
		"spec:\n"
		"  replicas: 1\n"
		"  strategy:\n"
		"    type: Recreate\n"
		"  selector:\n"
		"    matchLabels:\n"
		"      evenkeel.io/slack-class: evenkeel-slack-replicaset-web-1-f3302a6e\n"
		"  template:\n"
		"    metadata:\n"
		"      labels:\n"
		"        evenkeel.io/slack-class: evenkeel-slack-replicaset-web-1-f3302a6e\n"
		"    spec:\n"
		"      affinity:\n"
		"        podAntiAffinity:\n"
		"          requiredDuringSchedulingIgnoredDuringExecution:\n"
		"          - labelSelector:\n"
		"              matchLabels:\n"
		"                app: Web.1\n"
		"            topologyKey: kubernetes.io/hostname\n"
		"          - labelSelector:\n"
		"              matchLabels:\n"
		"                evenkeel.io/slack-class: "
		"evenkeel-slack-replicaset-web-1-f3302a6e\n"
		"            topologyKey: kubernetes.io/hostname\n"
		"      nodeSelector:\n"
		"        \"true\": \"0644\"\n"
		"        zone: a\n"
		"      topologySpreadConstraints:\n"
		"      - maxSkew: 1\n"
		"        topologyKey: zone\n"
		"        whenUnsatisfiable: ScheduleAnyway\n"
		"        labelSelector:\n"
		"          matchLabels:\n"
		"            evenkeel.io/slack-class: evenkeel-slack-replicaset-web-1-f3302a6e\n"
		"      containers:\n"
		"      - name: placeholder\n"
		"        image: \"registry.k8s.io/pause:3.9\"\n"
		"        resources:\n"
		"          requests:\n"
		"            cpu: \"100m\"\n"
		"            memory: \"1048576\"\n"
		"      priorityClassName: evenkeel-slack\n"
		"      terminationGracePeriodSeconds: 0\n"
		"      automountServiceAccountToken: false\n");
}

/* Whatever is written can be read as YAML, and says how many. */
static void what_is_written_can_be_read(void **state)
{
	static const struct yaml_json_limits limits = {64, 1 << 20};
	struct buf yaml = BUF_INIT, json = BUF_INIT;
	struct slack_yaml_options o;
	size_t documents;
	const char *at;

	(void)state;
	slack_yaml_options_default(&o);
	o.image = "example.com/pause:\"1\" #x: y";
	f.options.rate_ppm = 500000;
	slack_fixture_workload(&f,
			       "a-name-that-is-longer-than-any-label-of-a-domain-may-be-1234567890",
			       "3", 0, "100m", "1Mi",
			       "'tolerations':[{'key':'yes: no','operator':'Exists'}],");
	slack_fixture_step(&f);
	slack_yaml_write(&f.result, &o, &yaml);
	assert_int_equal(
		yaml_json_convert("y", yaml.data, yaml.len, &limits, &json, &documents, NULL), 0);
	assert_int_equal(documents, 4);
	assert_non_null(strstr(json.data, "\"key\":\"yes: no\""));
	assert_non_null(strstr(json.data, "\"image\":\"example.com/pause:\\\"1\\\" #x: y\""));
	assert_non_null(strstr(json.data, "\"replicas\":3"));
	at = strstr(json.data, "\"name\":\"evenkeel-slack-replicaset-a-name");
	assert_non_null(at);
	assert_int_equal(strcspn(at + 8, "\""), 63);
	buf_fini(&yaml);
	buf_fini(&json);
}

/* What each class of the yaml says, by key: the name, what it asks for, and whom it refers to. */
static void kinds_and_resources_have_their_place(void **state)
{
	static const struct {
		const char *kind, *name, *requests;
		enum slack_yaml as;
		const char *has, *lacks;
	} rows[] = {
		{"ReplicationController", "old", "'cpu':'100m'", SLACK_YAML_BUFFERS,
		 "scalableRef:\n    apiGroup: \"\"\n    kind: ReplicationController\n    name: "
		 "old\n",
		 "podTemplateRef"},
		{"StatefulSet", "db", "'cpu':'100m'", SLACK_YAML_BUFFERS,
		 "scalableRef:\n    apiGroup: apps\n    kind: StatefulSet\n    name: db\n",
		 "podTemplateRef"},
		{"CloneSet", "c", "'cpu':'100m'", SLACK_YAML_BUFFERS,
		 "podTemplateRef:\n    name: evenkeel-slack-cloneset-c\n", "scalableRef"},
		/* Only what cannot be overcommitted has limits. */
		{"ReplicaSet", "web", "'ephemeral-storage':'1Gi','memory':'1Mi'",
		 SLACK_YAML_BALLOONS,
		 "requests:\n            memory: \"1048576\"\n"
		 "            ephemeral-storage: \"1073741824\"\n",
		 "limits:"},
		{"ReplicaSet", "gpu", "'example.com/gpu':'2','example.com/nic':'1'",
		 SLACK_YAML_BALLOONS,
		 "          limits:\n            example.com/gpu: \"2\"\n"
		 "            example.com/nic: \"1\"\n",
		 "cpu:"},
		/* A name ends with a letter or a digit. */
		{"ReplicaSet", "w-", "'cpu':'100m'", SLACK_YAML_BALLOONS,
		 "name: evenkeel-slack-replicaset-w\n", "replicaset-w-"},
		{"ReplicaSet", "w..", "'cpu':'100m'", SLACK_YAML_BALLOONS,
		 "name: evenkeel-slack-replicaset-w-", "w--"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *pod = mem_printf(
			"{'metadata':{'name':'p','namespace':'shop','annotations':{"
			"'evenkeel.io/slack':'1'},'ownerReferences':[{'kind':'%s','name':'%s',"
			"'uid':'u','controller':true}]},'spec':{'nodeName':'n1','containers':[{"
			"'name':'c','resources':{'requests':{%s},'limits':{%s}}}]}}",
			rows[i].kind, rows[i].name, rows[i].requests, rows[i].requests);
		struct slack_yaml_options o;
		struct buf out = BUF_INIT;

		slack_fixture_fini(&f);
		slack_fixture_init(&f);
		place_fixture_put(
			&f.world, OBJECT_NODE,
			"{'metadata':{'name':'n1'},'status':{'allocatable':{'cpu':'4',"
			"'memory':'16Gi','pods':'110','example.com/gpu':'8',"
			"'example.com/nic':'8','ephemeral-storage':'90Gi'},'conditions':[{"
			"'type':'Ready','status':'True'}]}}");
		place_fixture_put(&f.world, OBJECT_POD, pod);
		free(pod);
		slack_yaml_options_default(&o);
		o.kind = rows[i].as;
		slack_fixture_step(&f);
		slack_yaml_write(&f.result, &o, &out);
		if (!out.data || !strstr(out.data, rows[i].has) || strstr(out.data, rows[i].lacks))
			fail_msg("row %zu: %s", i, out.data);
		buf_fini(&out);
	}
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(units_are_balloons),
		test(units_are_buffers_of_a_template),
		test(workloads_are_buffers_by_reference),
		test(balloons_keep_apart_like_their_workload),
		test(what_is_written_can_be_read),
		test(kinds_and_resources_have_their_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
