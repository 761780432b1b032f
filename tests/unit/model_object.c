/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind but pods: what is read of it, what is kept, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object.h"
#include "shared/mem.h"
#include "tests/object_same.h"

#define SEC 1000000000LL

static struct object *read_object(enum object_kind kind, const char *text)
{
	cJSON *tree = object_json_of(text);
	char field[OBJECT_FIELD_MAX];
	struct error error;
	struct object *o;
	const char *what;

	if (!tree)
		fail_msg("the test's own JSON is broken: %s", text);
	if (object_read(kind, tree, &o, field, &error))
		fail_msg("%s: %s: %s", text, field, error.text);
	cJSON_Delete(tree);
	what = object_check_written(o);
	if (what)
		fail_msg("%s: %s", text, what);
	return o;
}

/* The text with ' for ". */
static void check_text(const struct object *o, const char *expect)
{
	char quoted[4096];
	size_t i;

	assert_true(strlen(expect) < sizeof(quoted));
	for (i = 0; expect[i]; i++)
		quoted[i] = expect[i] == '\'' ? '"' : expect[i];
	quoted[i] = '\0';
	assert_string_equal(o->text, quoted);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *version, *kind;
		int expect; /* -1: not kept */
	} cases[] = {
		{"v1", "Node", OBJECT_NODE},
		{"v1", "Pod", OBJECT_POD},
		{"apps/v1", "ReplicaSet", OBJECT_REPLICA_SET},
		{"apps/v1beta2", "DaemonSet", OBJECT_DAEMON_SET},
		{"policy/v1beta1", "PodDisruptionBudget", OBJECT_POD_DISRUPTION_BUDGET},
		{"policy/v1", "PodDisruptionBudget", OBJECT_POD_DISRUPTION_BUDGET},
		{"scheduling.x-k8s.io/v1alpha1", "ElasticQuota", OBJECT_ELASTIC_QUOTA},
		{"scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", OBJECT_ELASTIC_QUOTA},
		{"scheduling.k8s.io/v1beta1", "PodGroup", OBJECT_POD_GROUP},
		{"scheduling.k8s.io/v1alpha3", "PodGroup", OBJECT_POD_GROUP},
		{"scheduling.k8s.io/v1alpha1", "Workload", OBJECT_WORKLOAD},
		{"scheduling.x-k8s.io/v1alpha1", "PodGroup", OBJECT_COSCHEDULING_GROUP},
		{"scheduling.sigs.k8s.io/v1alpha1", "PodGroup", OBJECT_COSCHEDULING_GROUP},
		{"batch/v1", "Job", OBJECT_JOB},
		{"v1", "ElasticQuota", -1},
		{"apps/v1", "Pod", -1},
		{"v1", "ReplicaSet", -1},
		{"app/v1", "ReplicaSet", -1},
		{"appsx/v1", "ReplicaSet", -1},
		{"v1", "pod", -1},
		{"v1", "Secret", -1},
		{"", "", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum object_kind kind;
		int err = object_kind_find(cases[i].version, cases[i].kind, &kind);

		assert_int_equal(err, cases[i].expect < 0 ? -ENOENT : 0);
		assert_true(err || (int)kind == cases[i].expect);
	}
	for (unsigned int k = 0; k < OBJECT_KINDS; k++) {
		enum object_kind kind = (enum object_kind)k, found;

		assert_int_equal(object_kind_find(object_kind_version(kind), object_kind_name(kind),
						  &found),
				 0);
		assert_int_equal(found, kind);
	}
	assert_string_equal(object_kind_resource(OBJECT_STORAGE_CLASS), "storageclasses");
	assert_int_equal(object_kind_resource_len(OBJECT_STORAGE_CLASS), strlen("storageclasses"));
	assert_string_equal(object_kind_resource(OBJECT_COSCHEDULING_GROUP),
			    "podgroups.scheduling.x-k8s.io");
	assert_int_equal(object_kind_resource_len(OBJECT_COSCHEDULING_GROUP), strlen("podgroups"));
	assert_false(object_kind_namespaced(OBJECT_NODE));
	assert_true(object_kind_namespaced(OBJECT_POD));
}

static void test_node(void **state)
{
	struct object *o = read_object(
		OBJECT_NODE,
		"{'kind':'Node','apiVersion':'v1','spec':{'podCIDR':'10.0.0.0/24',"
		"'unschedulable':true,'taints':[{'value':'x','effect':'NoSchedule','key':'k'}],"
		"'providerID':'aws:///i'},'metadata':{'name':'n1','uid':'u1','managedFields':[],"
		"'resourceVersion':'7','labels':{'zone':'a','arch':'x'},"
		"'annotations':{'csi.volume.kubernetes.io/nodeid':'n','evenkeel.io/a':'1',"
		"'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'},"
		"'creationTimestamp':'2026-01-31T12:00:00Z','deletionTimestamp':null},"
		"'status':{'images':[{}],'capacity':{'cpu':'4','memory':'8Gi','pods':'110',"
		"'x.io/gpu':'2'},'allocatable':{'cpu':'3920m','memory':8589934592},"
		"'conditions':[{'type':'MemoryPressure','status':'False','message':'m',"
		"'lastHeartbeatTime':'2026-01-31T12:00:05Z','lastTransitionTime':"
		"'2026-01-31T12:00:00Z'},{'type':'Ready','status':'True'}],"
		"'nodeInfo':{'kernelVersion':'6'}}}");
	const struct kube_node *n = (const struct kube_node *)o;
	int64_t amount;

	(void)state;
	assert_string_equal(o->name, "n1");
	assert_string_equal(o->namespace, "");
	assert_string_equal(o->uid, "u1");
	assert_string_equal(labels_find(&n->labels, "zone"), "a");
	assert_true(n->ready && n->unschedulable);
	assert_true(n->created_ns == 1769860800 * SEC && n->deletion_ns == 0);
	assert_int_equal(n->allocatable.of[RESOURCE_CPU], 3920);
	assert_int_equal(n->allocatable.of[RESOURCE_MEMORY], 8589934592);
	assert_false(resources_has(&n->allocatable, RESOURCE_PODS));
	assert_true(resources_find(&n->capacity, "x.io/gpu", &amount) && amount == 2);
	check_text(
		o,
		"{'apiVersion':'v1','kind':'Node','metadata':{'annotations':{"
		"'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true','evenkeel.io/"
		"a':'1'},"
		"'creationTimestamp':'2026-01-31T12:00:00Z','labels':{'arch':'x','zone':'a'},"
		"'name':'n1','uid':'u1'},'spec':{'providerID':'aws:///i','taints':[{'effect':"
		"'NoSchedule','key':'k','value':'x'}],'unschedulable':true},'status':{"
		"'allocatable':{'cpu':'3920m','memory':8589934592},'capacity':{'cpu':'4','memory':"
		"'8Gi','pods':'110','x.io/gpu':'2'},'conditions':[{'lastTransitionTime':"
		"'2026-01-31T12:00:00Z','status':'False','type':'MemoryPressure'},{'status':'True',"
		"'type':'Ready'}]}}");
	object_drop(o);
}

static void test_marks_of_a_node(void **state)
{
	struct object *o = read_object(
		OBJECT_NODE,
		"{'metadata':{'name':'n','annotations':{'x':'1','karpenter.sh/"
		"do-not-disrupt':'true',"
		"'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'}},'spec':{'taints':["
		"{'key':'a','effect':'NoSchedule'},5,{'value':'x'},{'key':'b','value':'7','effect':"
		"'NoExecute','timeAdded':'t'},{'key':'a','value':'second'}]}}");
	const struct kube_node *n = (const struct kube_node *)o;

	(void)state;
	assert_int_equal(n->annotations.count, 2);
	assert_string_equal(labels_find(&n->annotations, "karpenter.sh/do-not-disrupt"), "true");
	/* Who must judge all of them reads the text. */
	assert_int_equal(n->taints.count, 3);
	assert_string_equal(taints_find(&n->taints, "a")->value, "");
	assert_string_equal(taints_find(&n->taints, "a")->effect, "NoSchedule");
	assert_string_equal(taints_find(&n->taints, "b")->value, "7");
	assert_null(taints_find(&n->taints, "c"));
	object_drop(o);
	o = read_object(OBJECT_NODE, "{'metadata':{'name':'n'},'spec':{'taints':'x'}}");
	assert_int_equal(((const struct kube_node *)o)->taints.count, 0);
	object_drop(o);
}

static void test_node_is_not_ready(void **state)
{
	static const char *const nodes[] = {
		"{'metadata':{'name':'n'}}",
		"{'metadata':{'name':'n'},'status':{'conditions':[]}}",
		"{'metadata':{'name':'n'},'status':{'conditions':{'type':'Ready'}}}",
		"{'metadata':{'name':'n'},'status':{'conditions':[5,{'type':'Ready'}]}}",
		"{'metadata':{'name':'n'},'status':{'conditions':[{'status':'True'}]}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		struct object *o = read_object(OBJECT_NODE, nodes[i]);

		assert_false(((struct kube_node *)o)->ready);
		object_drop(o);
	}
}

static void test_heartbeats_change_nothing(void **state)
{
	static const char before[] = "{'metadata':{'resourceVersion':'1','name':'n'},'status':{"
				     "'conditions':[{'type':'Ready','lastHeartbeatTime':'a'}]}}";
	static const char after[] = "{'status':{'conditions':[{'lastHeartbeatTime':'b','type':"
				    "'Ready'}]},'metadata':{'name':'n','resourceVersion':'2'}}";
	struct object *a = read_object(OBJECT_NODE, before);
	struct object *b = read_object(OBJECT_NODE, after);
	const char *what;

	(void)state;
	assert_true(object_same(a, b, &what));
	object_drop(a);
	object_drop(b);
}

static void test_workloads(void **state)
{
	static const struct {
		const char *text;
		enum object_kind kind;
		int32_t replicas;
	} cases[] = {
		{"{'metadata':{'name':'w'},'spec':{'replicas':7}}", OBJECT_REPLICA_SET, 7},
		{"{'metadata':{'name':'w'},'spec':{'replicas':0}}", OBJECT_REPLICA_SET, 0},
		{"{'metadata':{'name':'w'},'spec':{'selector':{}}}", OBJECT_STATEFUL_SET, 1},
		{"{'metadata':{'name':'w'}}", OBJECT_REPLICATION_CONTROLLER, 1},
		{"{'metadata':{'name':'w'},'spec':{'parallelism':3}}", OBJECT_JOB, 3},
		{"{'metadata':{'name':'w'},'spec':{}}", OBJECT_JOB, 1},
		{"{'metadata':{'name':'w'},'spec':{},'status':{'desiredNumberScheduled':5}}",
		 OBJECT_DAEMON_SET, 5},
		{"{'metadata':{'name':'w'},'spec':{},'status':{}}", OBJECT_DAEMON_SET, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct object *o = read_object(cases[i].kind, cases[i].text);

		if (((struct kube_workload *)o)->replicas != cases[i].replicas)
			fail_msg("%s: %d", cases[i].text, ((struct kube_workload *)o)->replicas);
		object_drop(o);
	}
}

static void test_what_workloads_have(void **state)
{
	static const struct {
		enum object_kind kind;
		const char *text;
		int32_t present, current_revision, completions, succeeded;
	} cases[] = {
		{OBJECT_REPLICA_SET, "{'metadata':{'name':'w'},'status':{'replicas':3}}", 3, 0, -1,
		 0},
		{OBJECT_STATEFUL_SET,
		 "{'metadata':{'name':'w'},'status':{'replicas':3,'currentReplicas':1}}", 3, 1, -1,
		 0},
		{OBJECT_DAEMON_SET,
		 "{'metadata':{'name':'w'},'status':{'currentNumberScheduled':4,'replicas':9}}", 4,
		 0, -1, 0},
		{OBJECT_JOB,
		 "{'metadata':{'name':'w'},'spec':{'completions':5},'status':{'active':2,"
		 "'succeeded':1}}",
		 2, 0, 5, 1},
		{OBJECT_JOB, "{'metadata':{'name':'w'}}", 0, 0, -1, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct object *o = read_object(cases[i].kind, cases[i].text);
		const struct kube_workload *w = (const struct kube_workload *)o;

		assert_int_equal(w->present, cases[i].present);
		assert_int_equal(w->current_revision, cases[i].current_revision);
		assert_int_equal(w->completions, cases[i].completions);
		assert_int_equal(w->succeeded, cases[i].succeeded);
		object_drop(o);
	}
}

static void test_evictions_by_a_budget(void **state)
{
	static const struct {
		const char *text;
		bool stale, frees;
	} cases[] = {
		{"{'metadata':{'name':'b','generation':3},'spec':{},'status':{"
		 "'observedGeneration':2}}",
		 true, false},
		{"{'metadata':{'name':'b','generation':3},'spec':{'unhealthyPodEvictionPolicy':"
		 "'AlwaysAllow'},'status':{'observedGeneration':3}}",
		 false, true},
		{"{'metadata':{'name':'b','generation':3},'spec':{'unhealthyPodEvictionPolicy':"
		 "'IfHealthyBudget'},'status':{}}",
		 false, false},
		{"{'metadata':{'name':'b'}}", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct object *o = read_object(OBJECT_POD_DISRUPTION_BUDGET, cases[i].text);
		const struct kube_pdb *b = (const struct kube_pdb *)o;

		assert_int_equal(b->stale, cases[i].stale);
		assert_int_equal(b->frees_unhealthy, cases[i].frees);
		object_drop(o);
	}
}

static void test_owner_of_a_workload(void **state)
{
	struct object *o = read_object(
		OBJECT_REPLICA_SET,
		"{'metadata':{'name':'web-1','namespace':'shop','uid':'u','ownerReferences':["
		"{'kind':'X','name':'other','uid':'1'},{'apiVersion':'apps/v1','kind':'Deployment',"
		"'name':'web','uid':'2','controller':true,'blockOwnerDeletion':true}],"
		"'annotations':{'deployment.kubernetes.io/revision':'1','evenkeel.io/slack':'2'}},"
		"'spec':{'replicas':2,'template':{'spec':{}}},'status':{'replicas':2,'observed':1}"
		"}");
	const struct kube_workload *w = (const struct kube_workload *)o;

	(void)state;
	assert_string_equal(o->namespace, "shop");
	assert_string_equal(w->owner.kind, "Deployment");
	assert_string_equal(w->owner.name, "web");
	assert_string_equal(w->owner.uid, "2");
	assert_int_equal(w->annotations.count, 2);
	check_text(o, "{'apiVersion':'apps/v1','kind':'ReplicaSet','metadata':{'annotations':{"
		      "'deployment.kubernetes.io/revision':'1','evenkeel.io/"
		      "slack':'2'},'name':'web-1','namespace':'shop',"
		      "'ownerReferences':[{'kind':'X','name':'other','uid':'1'},{'apiVersion':"
		      "'apps/v1','controller':true,'kind':'Deployment','name':'web','uid':'2'}],"
		      "'uid':'u'},'spec':{'replicas':2},'status':{'replicas':2}}");
	object_drop(o);
	o = read_object(OBJECT_JOB, "{'metadata':{'name':'j','ownerReferences':[{'kind':'X'}]}}");
	assert_string_equal(((struct kube_workload *)o)->owner.kind, "");
	object_drop(o);
}

/* Only where it asks for slack: by its own annotation, or by its template's. */
static void test_template_of_a_workload(void **state)
{
	static const struct {
		const char *metadata, *template, *kept;
	} cases[] = {
		{"'annotations':{'evenkeel.io/slack':'2'},", "",
		 ",'template':{'spec':{'nodeSelector':{'a':'b'}}}"},
		{"", "'metadata':{'annotations':{'evenkeel.io/slack':'2','x':'y'}},",
		 ",'template':{'metadata':{'annotations':{'evenkeel.io/slack':'2'}},'spec':{"
		 "'nodeSelector':{'a':'b'}}}"},
		{"'annotations':{'evenkeel.io/other':'2'},", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *json = mem_printf("{'metadata':{%s'name':'db'},'spec':{'replicas':0,"
					"'template':{%s'spec':{'nodeSelector':{'a':'b'},"
					"'hostname':'h'}}}}",
					cases[i].metadata, cases[i].template);
		char *want = mem_printf("\"spec\":{\"replicas\":0%s}}", cases[i].kept);
		struct object *o = read_object(OBJECT_STATEFUL_SET, json);

		for (char *at = want; *at; at++)
			*at = *at == '\'' ? '"' : *at;
		if (!strstr(o->text, want))
			fail_msg("%s\n%s", o->text, want);
		object_drop(o);
		free(json);
		free(want);
	}
}

static void test_priority_class(void **state)
{
	struct object *o =
		read_object(OBJECT_PRIORITY_CLASS,
			    "{'metadata':{'name':'low'},'value':-10,'globalDefault':true,"
			    "'preemptionPolicy':'Never','description':'d'}");
	const struct kube_priority_class *c = (const struct kube_priority_class *)o;

	(void)state;
	assert_true(c->value == -10 && c->global_default && !c->preempts);
	check_text(o, "{'apiVersion':'scheduling.k8s.io/v1','kind':'PriorityClass',"
		      "'globalDefault':true,'metadata':{'name':'low'},'preemptionPolicy':'Never',"
		      "'value':-10}");
	object_drop(o);
	o = read_object(OBJECT_PRIORITY_CLASS, "{'metadata':{'name':'x'}}");
	c = (const struct kube_priority_class *)o;
	assert_true(c->value == 0 && !c->global_default && c->preempts);
	object_drop(o);
}

static void test_elastic_quota(void **state)
{
	struct object *o =
		read_object(OBJECT_ELASTIC_QUOTA,
			    "{'apiVersion':'scheduling.sigs.k8s.io/v1alpha1','kind':'ElasticQuota',"
			    "'metadata':{'name':'q','namespace':'a','creationTimestamp':"
			    "'1970-01-01T00:00:01.5Z','annotations':{'x':'1',"
			    "'quota.scheduling.koordinator.sh/shared-weight':'2'}},"
			    "'spec':{'max':{'cpu':'2','x.io/gpu':0}},'status':{'used':{}}}");
	const struct kube_quota *q = (const struct kube_quota *)o;
	int64_t amount;

	(void)state;
	assert_true(q->has_max && !q->has_min);
	assert_true(q->created_ns == SEC + SEC / 2);
	assert_int_equal(q->max.of[RESOURCE_CPU], 2000);
	assert_true(resources_find(&q->max, "x.io/gpu", &amount) && amount == 0);
	assert_false(resources_has(&q->max, RESOURCE_MEMORY));
	assert_int_equal(q->annotations.count, 1);
	/* The group it came from is what is written. */
	assert_non_null(strstr(o->text, "scheduling.sigs.k8s.io/v1alpha1"));
	object_drop(o);
	o = read_object(OBJECT_ELASTIC_QUOTA, "{'metadata':{'name':'q'},'spec':{'min':{}}}");
	q = (const struct kube_quota *)o;
	assert_true(!q->has_max && q->has_min && q->min.has == 0);
	object_drop(o);
}

static void test_resource_quota(void **state)
{
	struct object *o = read_object(
		OBJECT_RESOURCE_QUOTA,
		"{'metadata':{'name':'q'},'spec':{'hard':{'requests.cpu':'1500m','cpu':'2',"
		"'memory':'1Gi','requests.memory':'2Gi','limits.cpu':'500m','pods':'7',"
		"'requests.x.io/gpu':'3','requests.storage':'5Gi','count/jobs.batch':'2'},"
		"'scopes':['NotTerminating']}}");
	const struct kube_quota *q = (const struct kube_quota *)o;
	int64_t amount;

	(void)state;
	assert_true(q->has_max && !q->has_min);
	assert_int_equal(q->max.of[RESOURCE_CPU], 1500);
	assert_int_equal(q->max.of[RESOURCE_MEMORY], 1 << 30);
	assert_int_equal(q->max.of[RESOURCE_PODS], 7);
	assert_true(resources_find(&q->max, "limits.cpu", &amount) && amount == 500);
	assert_true(resources_find(&q->max, "x.io/gpu", &amount) && amount == 3);
	assert_true(resources_find(&q->max, "requests.storage", &amount) && amount == 5LL << 30);
	assert_true(resources_find(&q->max, "count/jobs.batch", &amount) && amount == 2);
	assert_false(resources_find(&q->max, "requests.cpu", &amount));
	assert_non_null(strstr(o->text, "NotTerminating"));
	object_drop(o);
}

static const struct kube_pdb *budget(struct object *o)
{
	return (const struct kube_pdb *)o;
}

static void test_budget(void **state)
{
	static const struct labels none;
	struct object *o = read_object(
		OBJECT_POD_DISRUPTION_BUDGET,
		"{'apiVersion':'policy/v1','metadata':{'name':'b','namespace':'a','generation':3},"
		"'spec':{'minAvailable':'50%','selector':{'matchExpressions':[{'key':'x','operator'"
		":"
		"'DoesNotExist'}]},'unhealthyPodEvictionPolicy':'AlwaysAllow','new':1},"
		"'status':{'disruptionsAllowed':1,'expectedPods':4,'currentHealthy':3,"
		"'desiredHealthy':2,'observedGeneration':3,'conditions':[]}}");

	(void)state;
	assert_true(selector_matches(budget(o)->selector, &none));
	assert_int_equal(budget(o)->disruptions_allowed, 1);
	assert_int_equal(budget(o)->expected_pods, 4);
	assert_int_equal(budget(o)->current_healthy, 3);
	assert_int_equal(budget(o)->desired_healthy, 2);
	check_text(o, "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{"
		      "'generation':3,'name':'b','namespace':'a'},'spec':{'minAvailable':'50%',"
		      "'new':1,'selector':{'matchExpressions':[{'key':'x','operator':"
		      "'DoesNotExist'}]},'unhealthyPodEvictionPolicy':'AlwaysAllow'},'status':{"
		      "'currentHealthy':3,'desiredHealthy':2,'disruptionsAllowed':1,"
		      "'expectedPods':4,'observedGeneration':3}}");
	object_drop(o);
}

static void test_empty_selectors_of_budgets(void **state)
{
	static const struct {
		const char *text;
		bool selects;
	} cases[] = {
		{"{'metadata':{'name':'b'},'spec':{'selector':{}}}", true},
		{"{'apiVersion':'policy/v1','metadata':{'name':'b'},'spec':{'selector':{}}}", true},
		{"{'apiVersion':'policy/v1beta1','metadata':{'name':'b'},'spec':{'selector':{}}}",
		 false},
		{"{'apiVersion':'policy/v1beta1','metadata':{'name':'b'},'spec':{'selector':{"
		 "'matchLabels':{}}}}",
		 false},
		{"{'apiVersion':'policy/v1beta1','metadata':{'name':'b'},'spec':{'selector':{"
		 "'matchLabels':{'a':'b'}}}}",
		 true},
		{"{'metadata':{'name':'b'},'spec':{'selector':null}}", false},
		{"{'metadata':{'name':'b'},'spec':{}}", false},
		{"{'metadata':{'name':'b'}}", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct object *o = read_object(OBJECT_POD_DISRUPTION_BUDGET, cases[i].text);

		if ((budget(o)->selector != NULL) != cases[i].selects)
			fail_msg("%s", cases[i].text);
		object_drop(o);
	}
}

static void test_plain_kinds(void **state)
{
	static const struct {
		enum object_kind kind;
		const char *text, *expect;
	} cases[] = {
		{OBJECT_NAMESPACE,
		 "{'metadata':{'name':'a','namespace':'x','labels':{'t':'1'}},'spec':{'finalizers':"
		 "['k']},'status':{'phase':'Active'}}",
		 "{'apiVersion':'v1','kind':'Namespace','metadata':{'labels':{'t':'1'},'name':'a',"
		 "'namespace':'x'},'status':{'phase':'Active'}}"},
		{OBJECT_PERSISTENT_VOLUME,
		 "{'metadata':{'name':'v'},'spec':{'capacity':{'storage':'1Gi'},'csi':{'driver':'d'"
		 ","
		 "'volumeHandle':'h'},'claimRef':{'kind':'P','name':'c','namespace':'a','uid':'u'},"
		 "'nodeAffinity':{'required':{'nodeSelectorTerms':[]}},'accessModes':['RWO'],"
		 "'storageClassName':'s'},'status':{'phase':'Bound'}}",
		 "{'apiVersion':'v1','kind':'PersistentVolume','metadata':{'name':'v'},'spec':{"
		 "'accessModes':['RWO'],'capacity':{'storage':'1Gi'},'claimRef':{'name':'c',"
		 "'namespace':'a','uid':'u'},'csi':{'driver':'d'},'nodeAffinity':{'required':{"
		 "'nodeSelectorTerms':[]}},'storageClassName':'s'},'status':{'phase':'Bound'}}"},
		{OBJECT_PERSISTENT_VOLUME_CLAIM,
		 "{'metadata':{'name':'c','annotations':{'volume.kubernetes.io/"
		 "selected-node':'n'}},"
		 "'spec':{'volumeName':'v','accessModes':['RWO'],'dataSource':{}},'status':{"
		 "'phase':'Bound','conditions':[]}}",
		 "{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'annotations':{"
		 "'volume.kubernetes.io/selected-node':'n'},'name':'c'},'spec':{'accessModes':["
		 "'RWO'],'volumeName':'v'},'status':{'phase':'Bound'}}"},
		{OBJECT_STORAGE_CLASS,
		 "{'metadata':{'name':'s'},'volumeBindingMode':'WaitForFirstConsumer','provisioner'"
		 ":"
		 "'p','parameters':{'a':'b'},'allowedTopologies':[{'z':1.5,'a':1e3,'m':-0.0}]}",
		 "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','allowedTopologies':[{"
		 "'a':1000,'m':0,'z':1.5}],'metadata':{'name':'s'},'provisioner':'p',"
		 "'volumeBindingMode':'WaitForFirstConsumer'}"},
		{OBJECT_CSI_NODE,
		 "{'metadata':{'name':'n'},'spec':{'drivers':[{'name':'d','nodeID':'i',"
		 "'topologyKeys':['z'],'allocatable':{'count':3}}]}}",
		 "{'apiVersion':'storage.k8s.io/v1','kind':'CSINode','metadata':{'name':'n'},"
		 "'spec':{'drivers':[{'allocatable':{'count':3},'name':'d'}]}}"},
		/* Members of a later version stay, since they may decide. */
		{OBJECT_RESOURCE_SLICE,
		 "{'metadata':{'name':'s'},'spec':{'driver':'d','devices':[{'name':'0','capacity':{"
		 "'memory':{}},'later':1,'attributes':{'a':{'int':1}}}],'sharedCounters':[{}]}}",
		 "{'apiVersion':'resource.k8s.io/"
		 "v1','kind':'ResourceSlice','metadata':{'name':'s'},"
		 "'spec':{'devices':[{'attributes':{'a':{'int':1}},'later':1,'name':'0'}],"
		 "'driver':'d'}}"},
		{OBJECT_DEVICE_CLASS,
		 "{'metadata':{'name':'c'},'spec':{'config':[{}],'selectors':[],'later':1}}",
		 "{'apiVersion':'resource.k8s.io/v1','kind':'DeviceClass','metadata':{'name':'c'},"
		 "'spec':{'later':1,'selectors':[]}}"},
		{OBJECT_RESOURCE_CLAIM_TEMPLATE,
		 "{'metadata':{'name':'t'},'spec':{'metadata':{},'spec':{'devices':{'config':[],"
		 "'requests':[{'name':'r'}]}}}}",
		 "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaimTemplate','metadata':{"
		 "'name':'t'},'spec':{'spec':{'devices':{'requests':[{'name':'r'}]}}}}"},
		{OBJECT_RESOURCE_CLAIM,
		 "{'metadata':{'name':'c'},'spec':{'devices':{'requests':[]}},'status':{'devices':["
		 "{}],'allocation':{'devices':{'config':[],'results':[{'request':'r','driver':'d',"
		 "'pool':'p','device':'0'}]}},'reservedFor':[{'name':'p','uid':'u'}]}}",
		 "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaim','metadata':{'name':'c'"
		 "},'spec':{'devices':{'requests':[]}},'status':{'allocation':{'devices':{"
		 "'results':[{'device':'0','driver':'d','pool':'p'}]}},'reservedFor':[{'uid':'u'}]}"
		 "}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct object *o = read_object(cases[i].kind, cases[i].text);

		assert_string_equal(o->name[1] ? "" : "one letter", "one letter");
		check_text(o, cases[i].expect);
		object_drop(o);
	}
}

static void test_limits_of_drivers(void **state)
{
	struct object *o = read_object(
		OBJECT_CSI_NODE,
		"{'metadata':{'name':'n'},'spec':{'drivers':[{'name':'none'},{'name':'some',"
		"'allocatable':{'count':25}},{'name':'zero','allocatable':{'count':0}},7]}}");
	const struct kube_csi_node *n = (const struct kube_csi_node *)o;

	(void)state;
	assert_int_equal(n->count, 2);
	assert_string_equal(n->of[0].driver, "some");
	assert_int_equal(n->of[0].volumes, 25);
	assert_string_equal(n->of[1].driver, "zero");
	assert_int_equal(n->of[1].volumes, 0);
	object_drop(o);
	o = read_object(OBJECT_CSI_NODE, "{'metadata':{'name':'n'}}");
	assert_int_equal(((const struct kube_csi_node *)o)->count, 0);
	object_drop(o);
}

static void test_canonical_text(void **state)
{
	struct object *o = read_object(
		OBJECT_NODE,
		"{'metadata':{'name':'n'},'spec':{'taints':[null,true,false,'\\u0001\\\\\\n\u00e4',"
		"[[]],{},{'z':null,'y':{'q':null},'b':2,'a':1,'b':3,'c':null,'c':4},"
		"9007199254740992,-5,0.1,1e400,{'inf':1e400},1e300,18446744073709551616]}}");

	(void)state;
	check_text(o, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n'},'spec':{'taints':["
		      "null,true,false,'\\u0001\\\\\\u000a\u00e4',[[]],{},{'a':1,'b':2,'y':{}},"
		      "9007199254740992,-5,0.1,null,{},1e+300,1.8446744073709552e+19]}}");
	object_drop(o);
}

static void test_the_first_of_equal_names_counts(void **state)
{
	struct object *o =
		read_object(OBJECT_NODE,
			    "{'metadata':{'name':'n','name':'m','labels':{'a':null,'a':'1','b':'2',"
			    "'b':'3'}},'status':{'capacity':{'cpu':null,'cpu':1,'x':2,'x':3},"
			    "'capacity':{}},'spec':{'unschedulable':true,'unschedulable':false}}");
	const struct kube_node *n = (const struct kube_node *)o;
	int64_t amount;

	(void)state;
	assert_true(n->unschedulable && !resources_has(&n->capacity, RESOURCE_CPU));
	assert_true(resources_find(&n->capacity, "x", &amount) && amount == 2);
	assert_int_equal(n->labels.count, 1);
	check_text(o, "{'apiVersion':'v1','kind':'Node','metadata':{'labels':{'b':'2'},'name':'n'},"
		      "'spec':{'unschedulable':true},'status':{'capacity':{'x':2}}}");
	object_drop(o);
}

/* A hundred members, more than are sorted by insertion. */
static void test_many_members_are_sorted(void **state)
{
	struct buf in = BUF_INIT, expect = BUF_INIT;
	struct object *o;

	(void)state;
	buf_add_str(&in, "{'metadata':{'name':'n'},'spec':{'taints':[{");
	buf_add_str(&expect, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n'},"
			     "'spec':{'taints':[{");
	for (unsigned int i = 0; i < 100; i++) {
		/* 37 has no factor in common with 100: every number once. */
		buf_printf(&in, "%s'k%02u':%u", i ? "," : "", i * 37 % 100, i * 37 % 100);
		buf_printf(&expect, "%s'k%02u':%u", i ? "," : "", i, i);
	}
	buf_add_str(&in, "}]}}");
	buf_add_str(&expect, "}]}}");
	o = read_object(OBJECT_NODE, in.data);
	check_text(o, expect.data);
	object_drop(o);
	buf_fini(&in);
	buf_fini(&expect);
}

static void test_a_long_path_is_cut(void **state)
{
	struct buf in = BUF_INIT;
	char field[OBJECT_FIELD_MAX];
	struct object *o;
	cJSON *tree;

	(void)state;
	buf_add_str(&in, "{'metadata':{'name':'n'},'status':{'capacity':{'");
	for (int i = 0; i < 500; i++)
		buf_add_char(&in, 'k');
	buf_add_str(&in, "':'x'}}}");
	tree = object_json_of(in.data);
	assert_int_equal(object_read(OBJECT_NODE, tree, &o, field, NULL), -EINVAL);
	assert_int_equal(strlen(field), OBJECT_FIELD_MAX - 1);
	cJSON_Delete(tree);
	buf_fini(&in);
}

static void test_order_and_users(void **state)
{
	struct object *a = read_object(OBJECT_JOB, "{'metadata':{'name':'z','namespace':'a'}}");
	struct object *b = read_object(OBJECT_JOB, "{'metadata':{'name':'a','namespace':'b'}}");
	struct object *c = read_object(OBJECT_JOB, "{'metadata':{'name':'b','namespace':'b'}}");

	(void)state;
	assert_true(object_compare(a, b) < 0 && object_compare(b, a) > 0);
	assert_true(object_compare(b, c) < 0 && object_compare(c, c) == 0);
	assert_ptr_equal(object_hold(c), c);
	object_drop(c);
	assert_string_equal(c->name, "b");
	object_drop(c);
	object_drop(b);
	object_drop(a);
	object_drop(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_node),
		cmocka_unit_test(test_marks_of_a_node),
		cmocka_unit_test(test_node_is_not_ready),
		cmocka_unit_test(test_heartbeats_change_nothing),
		cmocka_unit_test(test_workloads),
		cmocka_unit_test(test_what_workloads_have),
		cmocka_unit_test(test_evictions_by_a_budget),
		cmocka_unit_test(test_owner_of_a_workload),
		cmocka_unit_test(test_template_of_a_workload),
		cmocka_unit_test(test_priority_class),
		cmocka_unit_test(test_elastic_quota),
		cmocka_unit_test(test_resource_quota),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_empty_selectors_of_budgets),
		cmocka_unit_test(test_plain_kinds),
		cmocka_unit_test(test_limits_of_drivers),
		cmocka_unit_test(test_canonical_text),
		cmocka_unit_test(test_the_first_of_equal_names_counts),
		cmocka_unit_test(test_many_members_are_sorted),
		cmocka_unit_test(test_a_long_path_is_cut),
		cmocka_unit_test(test_order_and_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
