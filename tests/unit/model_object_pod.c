/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods: what becomes their template, what their record, and that both are written so that they read
 * back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "aggregator/model/declared_features.h"
#include "aggregator/model/object.h"
#include "aggregator/model/pod_sums.h"
#include "tests/object_same.h"

#define SEC 1000000000LL

static struct kube_pod *read_pod(const char *text)
{
	cJSON *tree = object_json_of(text);
	char field[OBJECT_FIELD_MAX];
	struct error error;
	struct object *o;
	const char *what;

	if (!tree)
		fail_msg("the test's own JSON is broken: %s", text);
	if (object_read(OBJECT_POD, tree, &o, field, &error))
		fail_msg("%s: %s: %s", text, field, error.text);
	cJSON_Delete(tree);
	what = object_check_written(o);
	if (what)
		fail_msg("%s: %s", text, what);
	return (struct kube_pod *)o;
}

static void check_quoted(const char *got, const char *expect)
{
	char quoted[8192];
	size_t i;

	assert_true(strlen(expect) < sizeof(quoted));
	for (i = 0; expect[i]; i++)
		quoted[i] = expect[i] == '\'' ? '"' : expect[i];
	quoted[i] = '\0';
	assert_string_equal(got, quoted);
}

static void check_written(const struct kube_pod *p, const char *expect)
{
	struct buf out = BUF_INIT;

	object_write(&p->object, &out);
	check_quoted(out.data, expect);
	buf_fini(&out);
}

static const char WHOLE[] =
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'web-1','namespace':'shop','uid':'u1',"
	"'generateName':'web-','resourceVersion':'9','managedFields':[{}],"
	"'creationTimestamp':'2026-01-31T12:00:00Z','labels':{'pod-template-hash':'h','app':'web'},"
	"'annotations':{'prometheus.io/scrape':'true','cni.io/ip':'10.0.0.7',"
	"'cluster-autoscaler.kubernetes.io/safe-to-evict':'true','karpenter.sh/do-not-disrupt':'1',"
	"'descheduler.alpha.kubernetes.io/evict':'true','evenkeel.io/x':''},"
	"'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'web','uid':'o1',"
	"'controller':true,'blockOwnerDeletion':true}]},"
	"'spec':{'nodeName':'n1','serviceAccountName':'default','dnsPolicy':'ClusterFirst',"
	"'containers':[{'name':'c','image':'i','env':[{'name':'A','value':'b'}],"
	"'ports':[{'containerPort':80,'protocol':'TCP'},{'name':'h','containerPort':81,"
	"'hostPort':8081,'protocol':'UDP'},{'hostPort':0}],'resources':{'requests':{'cpu':'100m'},"
	"'limits':{'memory':'1Gi','cpu':0.25}},'volumeMounts':[{'name':'kube-api-access-x8z2p'}]},"
	"{'name':'d','ports':[{'containerPort':9}]}],"
	"'initContainers':[{'name':'s','restartPolicy':'Always','image':'j'}],"
	"'nodeSelector':{'z':'1','a':'2'},'priority':100,'priorityClassName':'high',"
	"'tolerations':[{'operator':'Exists','key':'k','new':1}],'schedulerName':'default-"
	"scheduler',"
	"'topologySpreadConstraints':[{'maxSkew':1}],'terminationGracePeriodSeconds':30,"
	"'restartPolicy':'Always','overhead':{'cpu':'5m'},'preemptionPolicy':'Never',"
	"'volumes':[{'name':'kube-api-access-x8z2p','projected':{'sources':[]}},"
	"{'name':'cfg','configMap':{'name':'c'}},{'name':'sec','secret':{}},"
	"{'name':'info','downwardAPI':{}},{'emptyDir':{},'name':'tmp'},"
	"{'name':'data','persistentVolumeClaim':{'claimName':'data'}},{'name':'only'}]},"
	"'status':{'phase':'Running','qosClass':'Burstable','podIP':'10.0.0.7','startTime':"
	"'2026-01-31T12:00:02Z','conditions':[{'type':'Initialized','status':'True'},"
	"{'type':'PodScheduled','status':'True','lastTransitionTime':'2026-01-31T12:00:01Z'},"
	"{'type':'Ready','status':'True','lastTransitionTime':'2026-01-31T12:00:09Z'}],"
	"'initContainerStatuses':[{'name':'s','restartCount':1,'containerID':"
	"'containerd://fedcba9876543210aaaa'}],"
	"'containerStatuses':[{'name':'c','containerID':'cri-o://0123456789abcdefbbbb',"
	"'restartCount':2,'allocatedResources':{'cpu':'100m'},"
	"'resources':{'requests':{'cpu':'100m'},'limits':{'memory':'1Gi'}}},"
	"{'name':'d','restartCount':4}]}}";

#define WHOLE_METADATA                                                                             \
	"'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'true',"                  \
	"'descheduler.alpha.kubernetes.io/evict':'true','evenkeel.io/x':'',"                       \
	"'karpenter.sh/do-not-disrupt':'1'},'labels':{'app':'web','pod-template-hash':'h'},"       \
	"'ownerReferences':[{'apiVersion':'apps/v1','controller':true,'kind':'ReplicaSet',"        \
	"'name':'web','uid':'o1'}]"

#define WHOLE_SPEC                                                                                 \
	"'containers':[{'name':'c','ports':[{'hostPort':8081,'protocol':'UDP'}],'resources':{"     \
	"'limits':{'cpu':0.25,'memory':'1Gi'},'requests':{'cpu':'100m'}}},{'name':'d'}],"          \
	"'initContainers':[{'name':'s','restartPolicy':'Always'}],'nodeSelector':{'a':'2',"        \
	"'z':'1'},'overhead':{'cpu':'5m'},'preemptionPolicy':'Never','priority':100,"              \
	"'priorityClassName':'high','restartPolicy':'Always','schedulerName':"                     \
	"'default-scheduler','terminationGracePeriodSeconds':30,'tolerations':[{'key':'k',"        \
	"'new':1,'operator':'Exists'}],'topologySpreadConstraints':[{'maxSkew':1}],'volumes':["    \
	"{'emptyDir':{},'name':'tmp'},{'name':'data','persistentVolumeClaim':{'claimName':"        \
	"'data'}}]"

static void test_template(void **state)
{
	struct kube_pod *p = read_pod(WHOLE);
	const struct pod_template *t = p->template;

	(void)state;
	check_quoted(t->text, "{'metadata':{" WHOLE_METADATA "},'spec':{" WHOLE_SPEC "}}");
	assert_int_equal(t->text_len, strlen(t->text));
	assert_int_equal(t->text[t->spec_at], '{');
	assert_int_equal(memcmp(t->text + t->spec_at - 7, "\"spec\":", 7), 0);
	assert_string_equal(labels_find(&t->labels, "app"), "web");
	assert_int_equal(t->annotations.count, 4);
	assert_string_equal(t->owner.kind, "ReplicaSet");
	assert_string_equal(t->owner.uid, "o1");
	assert_int_equal(t->spec.container_count, 2);
	assert_true(t->spec.init[0].sidecar);
	assert_int_equal(t->sums.requests.of[RESOURCE_CPU], 105);
	assert_int_equal(t->sums.requests.of[RESOURCE_MEMORY], 1 << 30);
	assert_int_equal(t->sums.limits.of[RESOURCE_CPU], 255);
	assert_int_equal(t->sums.unlimited_cpu, 2);
	assert_int_equal(t->sums.unlimited_mem, 2);
	assert_int_equal(t->priority, 100);
	assert_string_equal(t->priority_class, "high");
	assert_false(t->mirror);
	object_drop(&p->object);
}

static void test_record(void **state)
{
	struct kube_pod *p = read_pod(WHOLE);
	char name[CONTAINER_NAME_MAX + 1];

	(void)state;
	assert_string_equal(p->object.name, "web-1");
	assert_string_equal(p->object.namespace, "shop");
	assert_string_equal(p->object.uid, "u1");
	assert_null(p->object.text);
	assert_string_equal(p->node, "n1");
	assert_string_equal(p->nominated_node, "");
	assert_string_equal(p->qos, "Burstable");
	assert_null(p->resized);
	assert_null(p->resized_text);
	assert_true(p->created_ns == 1769860800 * SEC && p->deletion_ns == 0);
	assert_true(p->scheduled_ns == 1769860801 * SEC && p->unschedulable_ns == 0);
	assert_true(p->started_ns == 1769860802 * SEC && p->disruption_ns == 0);
	assert_int_equal(p->restarts, 7);
	assert_true(p->phase == POD_RUNNING && p->ready && p->resize == POD_RESIZE_NONE);
	assert_true(kube_pod_is_active(p));
	assert_ptr_equal(kube_pod_requests(p), &p->template->sums.requests);
	assert_ptr_equal(kube_pod_limits(p), &p->template->sums.limits);
	check_written(p,
		      "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'web-1','namespace':"
		      "'shop','uid':'u1','creationTimestamp':'2026-01-31T12:00:00Z'," WHOLE_METADATA
		      "},'spec':{'nodeName':'n1'," WHOLE_SPEC "},'status':{"
		      "'phase':'Running','qosClass':'Burstable','startTime':"
		      "'2026-01-31T12:00:02Z','conditions':[{'type':'PodScheduled','status':"
		      "'True','lastTransitionTime':'2026-01-31T12:00:01Z'},{'type':'Ready',"
		      "'status':'True'}],'containerStatuses':[{'containerID':'0123456789abcdef',"
		      "'name':'c','restartCount':7},{'containerID':'fedcba9876543210','name':"
		      "'s'}]}}");
	assert_true(kube_pod_find_container(p, "0123456789abcdefbbbb", name));
	assert_string_equal(name, "c");
	assert_true(kube_pod_find_container(p, "fedcba9876543210aaaa", name));
	assert_string_equal(name, "s");
	assert_false(kube_pod_find_container(p, "0123456789abcde", name));
	assert_false(kube_pod_find_container(p, "", name));
	object_drop(&p->object);
}

static void test_the_least_pod(void **state)
{
	struct kube_pod *p = read_pod("{'metadata':{'name':'p'},'spec':{'containers':[]}}");

	(void)state;
	check_quoted(p->template->text, "{'metadata':{},'spec':{'containers':[]}}");
	assert_string_equal(p->object.namespace, "");
	assert_string_equal(p->node, "");
	assert_string_equal(p->qos, "");
	assert_int_equal(p->phase, POD_PENDING);
	assert_string_equal(p->template->owner.kind, "");
	check_written(p, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'spec':{"
			 "'containers':[]},'status':{'phase':'Pending','conditions':[{'type':"
			 "'Ready','status':'False'}]}}");
	object_drop(&p->object);
}

/* Two pods of one owner, with everything that the API makes their own. */
static void test_pods_of_one_owner_have_one_template(void **state)
{
	struct kube_pod *a = read_pod(
		"{'metadata':{'name':'a','uid':'1','namespace':'x','labels':{'app':'w'},"
		"'annotations':{'cni.io/ip':'1'}},'spec':{'nodeName':'n1','hostname':'a',"
		"'containers':[{'name':'c','volumeMounts':[{'name':'kube-api-access-1'}]}],"
		"'volumes':[{'name':'kube-api-access-1','projected':{}}]}}");
	struct kube_pod *b = read_pod(
		"{'spec':{'volumes':[{'name':'kube-api-access-2','projected':{}}],'containers':[{"
		"'volumeMounts':[{'name':'kube-api-access-2'}],'name':'c'}]},'metadata':{"
		"'labels':{'app':'w'},'name':'b'},'status':{'phase':'Failed'}}");
	struct kube_pod *c = read_pod("{'metadata':{'name':'c','labels':{'app':'v'}},'spec':{"
				      "'containers':[{'name':'c'}]}}");

	(void)state;
	assert_string_equal(a->template->text, b->template->text);
	assert_true(a->template->hash == b->template->hash);
	assert_true(a->template->hash != c->template->hash);
	assert_false(kube_pod_is_active(b));
	/* What a table of pods does with the second. */
	pod_template_drop(b->template);
	b->template = pod_template_hold(a->template);
	object_drop(&a->object);
	assert_string_equal(labels_find(&b->template->labels, "app"), "w");
	assert_null(object_check_written(&b->object));
	object_drop(&b->object);
	object_drop(&c->object);
}

#define DAEMON(node, terms)                                                                        \
	"{'metadata':{'name':'d','ownerReferences':[{'kind':'DaemonSet','name':'d','uid':'u',"     \
	"'controller':true}]},'spec':{'nodeName':'" node "','containers':[],'affinity':{"          \
	"'podAffinity':{'a':1},'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{" \
	"'nodeSelectorTerms':[" terms "]}}}}}"

#define BOUND(node) "'matchFields':[{'key':'metadata.name','operator':'In','values':['" node "']}]"

static void test_daemon_pods_are_alike(void **state)
{
	static const struct {
		const char *pod, *affinity;
	} cases[] = {
		/* The term is the controller's. */
		{DAEMON("n1", "{" BOUND("n1") "}"), "'nodeAffinity':{},"},
		{DAEMON("n2", "{" BOUND("n2") "}"), "'nodeAffinity':{},"},
		/* Terms of the set: each had it put in. */
		{DAEMON("n1", "{'matchExpressions':[{'key':'a'}]," BOUND(
				      "n1") "},"
					    "{'matchExpressions':[{'key':'b'}]," BOUND("n1") "}"),
		 "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
		 "'nodeSelectorTerms':[{'matchExpressions':[{'key':'a'}]},{'matchExpressions':["
		 "{'key':'b'}]}]}},"},
		/* Bound elsewhere, and not yet on its node: both matter. */
		{DAEMON("n1", "{" BOUND("n2") "}"),
		 "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
		 "'nodeSelectorTerms':[{" BOUND("n2") "}]}},"},
		{DAEMON("", "{" BOUND("n1") "}"),
		 "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
		 "'nodeSelectorTerms':[{" BOUND("n1") "}]}},"},
		{DAEMON("n1",
			"{'matchFields':[{'key':'metadata.uid','operator':'In','values':['n1']}]}"),
		 "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
		 "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.uid','operator':'In','"
		 "values':['n1']}]}]}},"},
		{DAEMON("n1", "{'matchFields':[{'key':'metadata.name','operator':'NotIn','values':["
			      "'n1']}]}"),
		 "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
		 "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'NotIn','"
		 "values':['n1']}]}]}},"},
		{DAEMON("n1", "{'matchFields':[{'key':'metadata.name','operator':'In','values':['"
			      "n1','n2']}]}"),
		 "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
		 "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','"
		 "values':['n1','n2']}]}]}},"},
		/* One term of two is not the controller's work. */
		{DAEMON("n1", "{" BOUND("n1") "},{'matchExpressions':[{'key':'b'}]}"),
		 "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
		 "'nodeSelectorTerms':[{" BOUND("n1") "},{'matchExpressions':[{'key':'b'}]}]}},"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kube_pod *p = read_pod(cases[i].pod);
		struct buf expect = BUF_INIT;

		buf_printf(&expect,
			   "{'metadata':{'ownerReferences':[{'controller':true,'kind':"
			   "'DaemonSet','name':'d','uid':'u'}]},'spec':{'affinity':{%s"
			   "'podAffinity':{'a':1}},'containers':[]}}",
			   cases[i].affinity);
		check_quoted(p->template->text, expect.data);
		buf_fini(&expect);
		object_drop(&p->object);
	}
}

static void test_only_daemons_are_unbound(void **state)
{
	struct kube_pod *p = read_pod("{'metadata':{'name':'p'},'spec':{'nodeName':'n1',"
				      "'containers':[],'affinity':{'nodeAffinity':{"
				      "'requiredDuringSchedulingIgnoredDuringExecution':{"
				      "'nodeSelectorTerms':[{" BOUND("n1") "}]}}}}}");

	(void)state;
	assert_non_null(strstr(p->template->text, "metadata.name"));
	object_drop(&p->object);
}

#define STATUS(members)                                                                            \
	"{'metadata':{'name':'p','creationTimestamp':'1970-01-01T00:00:05Z'},'spec':{"             \
	"'containers':[{'name':'c','resources':{'requests':{'cpu':4}}}]},'status':{" members "}}"

static void test_conditions(void **state)
{
	struct kube_pod *p = read_pod(
		STATUS("'nominatedNodeName':'n9','qosClass':'New','phase':'Odd','conditions':[5,{},"
		       "{'type':'PodScheduled','status':'False','lastTransitionTime':"
		       "'1970-01-01T00:00:07.000000001Z','reason':'Unschedulable'},"
		       "{'type':'DisruptionTarget','status':'True'},"
		       "{'type':'Ready','status':'Unknown'}]"));

	(void)state;
	assert_string_equal(p->nominated_node, "n9");
	assert_string_equal(p->qos, "New");
	assert_int_equal(p->phase, POD_UNKNOWN);
	assert_string_equal(pod_phase_name((enum pod_phase)p->phase), "Unknown");
	assert_true(p->scheduled_ns == 0 && p->unschedulable_ns == 7 * SEC + 1);
	/* Without a time it counts from the creation. */
	assert_true(p->disruption_ns == 5 * SEC && !p->ready);
	object_drop(&p->object);
	p = read_pod("{'metadata':{'name':'p'},'spec':{'containers':[]},'status':{'conditions':[{"
		     "'type':'PodScheduled','status':'True'},{'type':'DisruptionTarget','status':"
		     "'False'}]}}");
	assert_true(p->scheduled_ns == 1 && p->disruption_ns == 0);
	object_drop(&p->object);
}

#define GRANTED(amount, members)                                                                   \
	STATUS("'containerStatuses':[{'name':'c','restartCount':3,'lastState':{},"                 \
	       "'allocatedResources':{'cpu':" amount "},'resources':{'requests':{'cpu':" amount    \
	       "}}}]" members)

static void test_resizes(void **state)
{
	static const struct {
		const char *pod;
		uint8_t resize;
		int64_t cpu_milli; /* 0: as the template */
	} cases[] = {
		{GRANTED("4", ""), POD_RESIZE_NONE, 0},
		{GRANTED("2", ",'conditions':[{'type':'PodResizeInProgress','status':'True'}]"),
		 POD_RESIZE_IN_PROGRESS, 0},
		{GRANTED("6", ",'conditions':[{'type':'PodResizeInProgress','status':'True'}]"),
		 POD_RESIZE_IN_PROGRESS, 6000},
		{GRANTED("2", ",'conditions':[{'type':'PodResizePending','status':'True','reason':"
			      "'Deferred'},{'type':'PodResizeInProgress','status':'True'}]"),
		 POD_RESIZE_DEFERRED, 0},
		{GRANTED("2", ",'conditions':[{'type':'PodResizePending','status':'True','reason':"
			      "'Infeasible'}]"),
		 POD_RESIZE_INFEASIBLE, 2000},
		{GRANTED("2", ",'resize':'Infeasible'"), POD_RESIZE_INFEASIBLE, 2000},
		{GRANTED("2", ",'resize':'Deferred'"), POD_RESIZE_DEFERRED, 0},
		{GRANTED("2", ",'resize':'Proposed'"), POD_RESIZE_PROPOSED, 0},
		{GRANTED("9", ",'resize':'InProgress'"), POD_RESIZE_IN_PROGRESS, 9000},
		{GRANTED("9", ",'resize':''"), POD_RESIZE_NONE, 9000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kube_pod *p = read_pod(cases[i].pod);

		assert_int_equal(p->resize, cases[i].resize);
		assert_int_equal(p->restarts, 3);
		assert_int_equal(p->template->sums.requests.of[RESOURCE_CPU], 4000);
		assert_int_equal(p->resized != NULL, cases[i].cpu_milli != 0);
		if (p->resized)
			assert_int_equal(kube_pod_requests(p)->of[RESOURCE_CPU],
					 cases[i].cpu_milli);
		object_drop(&p->object);
	}
}

static void test_text_of_a_resize(void **state)
{
	struct kube_pod *p = read_pod(GRANTED("9", ",'hostIP':'h'"));

	(void)state;
	check_quoted(p->resized_text,
		     "{'containerStatuses':[{'allocatedResources':{'cpu':9},'name':'c',"
		     "'resources':{'requests':{'cpu':9}},'restartCount':3}]}");
	object_drop(&p->object);
}

static void test_mirror(void **state)
{
	struct kube_pod *p =
		read_pod("{'metadata':{'name':'p','annotations':{"
			 "'kubernetes.io/config.mirror':'x','kubernetes.io/config.hash':"
			 "'h','kubernetes.io/other':'y'}},'spec':{'containers':[]}}");

	(void)state;
	assert_true(p->template->mirror);
	assert_string_equal(labels_find(&p->template->annotations, "kubernetes.io/config.hash"),
			    "h");
	assert_null(labels_find(&p->template->annotations, "kubernetes.io/other"));
	object_drop(&p->object);
}

static void test_restarts_are_bounded(void **state)
{
	struct kube_pod *p = read_pod(
		STATUS("'containerStatuses':[{'restartCount':2147483647},{'restartCount':-5},"
		       "{'restartCount':2147483647},{'restartCount':2147483647}]"));

	(void)state;
	assert_int_equal(p->restarts, INT32_MAX);
	object_drop(&p->object);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *field, *why;
	} cases[] = {
		{"{'metadata':{'name':'p'}}", "spec", "is required"},
		{"{'metadata':{'name':'p'},'spec':{}}", "spec.containers", "is required"},
		{"{'metadata':{'name':'p'},'spec':{'containers':null}}", "spec.containers",
		 "is required"},
		{"{'metadata':{'name':'p'},'spec':[]}", "spec", "must be an object"},
		{"{'metadata':{'name':'p'},'spec':{'containers':{}}}", "spec.containers",
		 "must be a list"},
		{"{'metadata':{'name':'p'},'spec':{'containers':[],'nodeName':5}}", "spec.nodeName",
		 "must be a string"},
		{"{'metadata':{'name':'p'},'spec':{'containers':[],'priority':'5'}}",
		 "spec.priority", "must be a whole number"},
		{"{'metadata':{'name':'p'},'spec':{'containers':[],'priorityClassName':5}}",
		 "spec.priorityClassName", "must be a string"},
		{"{'metadata':{'name':'p'},'spec':{'containers':[{'resources':{'requests':{"
		 "'cpu':'-1'}}}]}}",
		 "spec.containers[0].resources.requests.cpu", "must not be negative"},
		{"{'metadata':{'name':'p'},'spec':{'containers':[{},{'resources':{'limits':{"
		 "'x/y':[]}}}]}}",
		 "spec.containers[1].resources.limits.x/y", "must be a quantity"},
		{"{'metadata':{'name':'p','annotations':{'evenkeel.io/a':{}}},'spec':{"
		 "'containers':[]}}",
		 "metadata.annotations", "\"evenkeel.io/a\" must be a string"},
		{"{'metadata':{'name':'p','ownerReferences':{}},'spec':{'containers':[]}}",
		 "metadata.ownerReferences", "must be a list"},
		{STATUS("'phase':7"), "status.phase", "must be a string"},
		{STATUS("'startTime':'x'"), "status.startTime", "is not a time"},
		{STATUS("'conditions':{}"), "status.conditions", "must be a list"},
		{STATUS("'conditions':[{},{},{'type':'PodScheduled','status':'True',"
			"'lastTransitionTime':'x'},{}]"),
		 "status.conditions[2].lastTransitionTime", "is not a time"},
		{STATUS("'containerStatuses':[{},{'restartCount':'x'}]"),
		 "status.containerStatuses[1].restartCount", "must be a whole number"},
		{GRANTED("'z'", ""), "status.containerStatuses[0].allocatedResources.cpu",
		 "is not a quantity"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cJSON *tree = object_json_of(cases[i].text);
		char field[OBJECT_FIELD_MAX] = "";
		struct object *o = NULL;
		struct error error = {""};

		assert_int_equal(object_read(OBJECT_POD, tree, &o, field, &error), -EINVAL);
		assert_null(o);
		assert_string_equal(field, cases[i].field);
		if (!strstr(error.text, cases[i].why))
			fail_msg("%s: %s", cases[i].text, error.text);
		cJSON_Delete(tree);
	}
}

/* What nobody knows never fails. */
/* What decides whether the pod may leave its node. */
static void test_leaving(void **state)
{
	struct kube_pod *p = read_pod(
		"{'metadata':{'name':'p','ownerReferences':[{'apiVersion':'apps/v1','kind':'X',"
		"'name':'o','uid':'u','controller':true}]},'spec':{'containers':[],"
		"'restartPolicy':'OnFailure','terminationGracePeriodSeconds':0,'volumes':[{'name':"
		"'host','hostPath':{'path':'/'}},{'name':'empty','emptyDir':{}},{'name':'mem',"
		"'emptyDir':{'medium':'Memory'}},{'name':'claim','persistentVolumeClaim':{"
		"'claimName':'c'}},{'name':'config','configMap':{}}]}}");
	const struct pod_template *t = p->template;

	(void)state;
	assert_string_equal(t->owner_api, "apps/v1");
	assert_int_equal(t->restart, POD_RESTART_ON_FAILURE);
	assert_int_equal(t->grace_sec, 0);
	assert_int_equal(t->local_volumes.count, 2);
	assert_string_equal(labels_find(&t->local_volumes, "host"), "hostPath");
	assert_string_equal(labels_find(&t->local_volumes, "empty"), "emptyDir");
	object_drop(&p->object);
	p = read_pod("{'metadata':{'name':'p'},'spec':{'containers':[],'restartPolicy':5,"
		     "'terminationGracePeriodSeconds':'x','volumes':null}}");
	t = p->template;
	assert_string_equal(t->owner_api, "");
	assert_int_equal(t->restart, POD_RESTART_ALWAYS);
	assert_int_equal(t->grace_sec, -1);
	assert_int_equal(t->local_volumes.count, 0);
	object_drop(&p->object);
}

static void test_odd_members_are_kept_as_they_are(void **state)
{
	struct kube_pod *p = read_pod("{'metadata':{'name':'p','finalizers':5},'spec':{"
				      "'containers':[{'ports':7,'name':5}],'volumes':'x',"
				      "'tolerations':5,'affinity':[],'newThing':{}},'other':[]}");

	(void)state;
	/* What nobody can read as volumes may hold data. */
	assert_int_equal(p->template->local_volumes.count, 1);
	check_quoted(p->template->text, "{'metadata':{},'spec':{'affinity':[],'containers':[{"
					"'name':5,'ports':7}],'tolerations':5,'volumes':'x'}}");
	object_drop(&p->object);
}

/* As deep as the parser goes, in a part that is kept. */
static void test_depth(void **state)
{
	struct buf in = BUF_INIT;
	struct kube_pod *p;

	(void)state;
	buf_add_str(&in, "{'metadata':{'name':'p'},'spec':{'containers':[],'affinity':");
	for (int i = 0; i < 450; i++)
		buf_add_str(&in, "{'b':[");
	for (int i = 0; i < 450; i++)
		buf_add_str(&in, "]}");
	buf_add_str(&in, "}}");
	p = read_pod(in.data);
	assert_int_equal(p->template->text_len, strlen("{'metadata':{},'spec':{'affinity':,"
						       "'containers':[]}}") +
							450 * 8);
	object_drop(&p->object);
	buf_fini(&in);
}

static void test_features_have_names(void **state)
{
	static const char *const names[] = {"RestartAllContainersOnContainerExits",
					    "UserNamespacesHostNetworkSupport",
					    "VolumeBindMountOptions"};
	cJSON *declared = cJSON_CreateArray();

	(void)state;
	for (int i = 2; i >= 0; i--) {
		cJSON_AddItemToArray(declared, cJSON_CreateString(names[i]));
		/* The first of all that are in the set. */
		assert_string_equal(declared_features_name(declared_features_of_node(declared)),
				    names[i]);
	}
	cJSON_Delete(declared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_template),
		cmocka_unit_test(test_features_have_names),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_the_least_pod),
		cmocka_unit_test(test_pods_of_one_owner_have_one_template),
		cmocka_unit_test(test_daemon_pods_are_alike),
		cmocka_unit_test(test_only_daemons_are_unbound),
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_resizes),
		cmocka_unit_test(test_text_of_a_resize),
		cmocka_unit_test(test_mirror),
		cmocka_unit_test(test_restarts_are_bounded),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_odd_members_are_kept_as_they_are),
		cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
