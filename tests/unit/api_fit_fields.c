/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pod fields one by one, contradictory, missing or of tomorrow: the API refuses the request and
 * names the field, or every node refuses the pod and the reason names it. None of them fits
 * anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aggregator/model/model.h"
#include "aggregator/state/join.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

#define text(path) api_fixture_text(&f, path)

static struct api_fixture f;

static int setup(void **state)
{
	struct model *m = model_new();
	struct join *j = join_new();

	(void)state;
	model_put(m, model_fixture_object(
			     OBJECT_NODE,
			     "{\"metadata\":{\"name\":\"alpha\",\"labels\":{\"zone\":\"1\"}},"
			     "\"status\":{\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\","
			     "\"pods\":\"10\"}}}"));
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	api_fixture_open(&f, join_view(j, NULL, 0, model_cluster(m), VIEW_FIXTURE_NOW_NS));
	join_free(j);
	model_free(m);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	api_fixture_close(&f);
	return 0;
}

static int post(const char *pod)
{
	char *body = mem_printf("{\"pod\":%s}", pod);
	int status;

	for (char *at = body; *at; at++)
		if (*at == '\'')
			*at = '"';
	status = api_fixture_send(&f, "POST", "/v1/fit", body);
	free(body);
	return status;
}

#define C	   "'containers':[{'name':'c'}]"
#define SPEC(more) "{'spec':{" C "," more "}}"
#define META(more) "{'metadata':{" more "},'spec':{" C "}}"
#define ASKS(what) "{'spec':{'containers':[{'name':'c','resources':{'requests':{" what "}}}]}}"
#define PORT(what) "{'spec':{'containers':[{'name':'c','ports':[{" what "}]}]}}"
#define REQUIRED   "requiredDuringSchedulingIgnoredDuringExecution"
#define NODES(terms)                                                                               \
	SPEC("'affinity':{'nodeAffinity':{'" REQUIRED "':{'nodeSelectorTerms':" terms "}}}")
#define EXPR(what)   NODES("[{'matchExpressions':[{" what "}]}]")
#define ANTI(what)   SPEC("'affinity':{'podAntiAffinity':{'" REQUIRED "':[{" what "}]}}")
#define WITH(what)   SPEC("'affinity':{'podAffinity':{'" REQUIRED "':[{" what "}]}}")
#define SPREAD(what) SPEC("'topologySpreadConstraints':[{" what "}]")
#define HARD	     "'whenUnsatisfiable':'DoNotSchedule'"
#define TOL(what)    SPEC("'tolerations':[{" what "}]")
#define WEB	     "'labelSelector':{'matchLabels':{'app':'web'}}"

static const struct row {
	const char *pod;
	const char *field; /* of the error, or in the reason */
} rows[] = {
	/* metadata */
	{META("'labels':[]"), "pod.metadata.labels"},
	{META("'labels':{'app':1}"), "pod.metadata.labels"},
	{META("'namespace':7"), "pod.metadata.namespace"},
	{META("'name':''"), "pod.metadata.name"},
	{META("'uid':1"), "pod.metadata.uid"},
	{META("'ownerReferences':{}"), "pod.metadata.ownerReferences"},
	/* containers and amounts */
	{"{'spec':{}}", "pod.spec.containers"},
	{"{'spec':{'containers':{}}}", "pod.spec.containers"},
	{"{'spec':{'containers':[1]}}", "pod.spec.containers[0]"},
	{ASKS("'cpu':'-1'"), "pod.spec.containers[0].resources.requests.cpu"},
	{ASKS("'cpu':-1"), "pod.spec.containers[0].resources.requests.cpu"},
	{ASKS("'memory':'-1Gi'"), "pod.spec.containers[0].resources.requests.memory"},
	{ASKS("'memory':'1Gb'"), "pod.spec.containers[0].resources.requests.memory"},
	{ASKS("'ephemeral-storage':'-1'"), "requests.ephemeral-storage"},
	{ASKS("'example.com/gpu':'many'"), "requests.example.com/gpu"},
	{ASKS("'example.com/gpu':-1"), "requests.example.com/gpu"},
	{ASKS("'cpu':true"), "requests.cpu"},
	{ASKS("'cpu':{}"), "requests.cpu"},
	{"{'spec':{'containers':[{'resources':{'requests':[]}}]}}", "resources.requests"},
	{"{'spec':{'containers':[{'resources':7}]}}", "containers[0].resources"},
	{SPEC("'initContainers':7"), "pod.spec.initContainers"},
	{SPEC("'initContainers':[{'resources':{'requests':{'cpu':'x'}}}]"),
	 "pod.spec.initContainers[0].resources.requests.cpu"},
	{SPEC("'overhead':{'cpu':'-5m'}"), "pod.spec.overhead.cpu"},
	{SPEC("'overhead':[]"), "pod.spec.overhead"},
	{SPEC("'resources':{'requests':{'cpu':'x'}}"), "pod.spec.resources.requests.cpu"},
	/* nodes */
	{SPEC("'nodeSelector':[]"), "nodeSelector"},
	{SPEC("'nodeSelector':{'zone':1}"), "nodeSelector"},
	{SPEC("'affinity':[]"), "affinity"},
	{SPEC("'affinity':{'moonAffinity':{}}"), "spec.affinity.moonAffinity"},
	{SPEC("'affinity':{'nodeAffinity':7}"), "spec.affinity.nodeAffinity"},
	{SPEC("'affinity':{'nodeAffinity':{'" REQUIRED "':[]}}"), "spec.affinity.nodeAffinity"},
	{SPEC("'affinity':{'nodeAffinity':{'" REQUIRED "':{}}}"), "required node affinity"},
	{NODES("{}"), "nodeSelectorTerms"},
	{NODES("[7]"), "nodeSelectorTerms[0]"},
	{NODES("[{'matchStars':[]}]"), "matchStars"},
	{EXPR("'operator':'Exists'"), "key"},
	{EXPR("'key':'','operator':'Exists'"), "key"},
	{EXPR("'key':'zone'"), "operator"},
	{EXPR("'key':'zone','operator':'Like','values':['1']"), "operator"},
	{EXPR("'key':'zone','operator':'In'"), "values"},
	{EXPR("'key':'zone','operator':'In','values':'1'"), "values"},
	{EXPR("'key':'zone','operator':'NotIn','values':[1]"), "values"},
	{EXPR("'key':'zone','operator':'Exists','values':['1']"), "values"},
	{EXPR("'key':'zone','operator':'Gt','values':['0','1']"), "values"},
	{EXPR("'key':'zone','operator':'Lt','values':['2.5']"), "values"},
	{NODES("[{'matchFields':[{'key':'spec.x','operator':'In','values':['1']}]}]"),
	 "matchFields[0]"},
	{NODES("[{'matchFields':[{'key':'metadata.name','operator':'Exists'}]}]"),
	 "matchFields[0]"},
	/* tolerations */
	{SPEC("'tolerations':{}"), "tolerations"},
	{SPEC("'tolerations':[1]"), "tolerations[0]"},
	{TOL("'key':'team','operator':'Like'"), "tolerations[0].operator"},
	{TOL("'key':'team','operator':7"), "tolerations[0].operator"},
	{TOL("'key':7,'operator':'Exists'"), "tolerations[0].key"},
	{TOL("'key':'team','value':7"), "tolerations[0].value"},
	{TOL("'key':'team','effect':'Never','operator':'Exists'"), "tolerations[0].effect"},
	{TOL("'key':'team','effect':1,'operator':'Exists'"), "tolerations[0].effect"},
	{TOL("'operator':'Equal','value':'a'"), "tolerations[0].key"},
	{TOL("'key':'team','mood':'good'"), "tolerations[0].mood"},
	/* affinity to pods */
	{SPEC("'affinity':{'podAffinity':[]}"), "podAffinity"},
	{SPEC("'affinity':{'podAntiAffinity':{'" REQUIRED "':{}}}"), "podAntiAffinity"},
	{SPEC("'affinity':{'podAntiAffinity':{'" REQUIRED "':[7]}}"), "podAntiAffinity"},
	{SPEC("'affinity':{'podAntiAffinity':{'strictly':[]}}"), "podAntiAffinity.strictly"},
	{ANTI(WEB), "topologyKey"},
	{ANTI(WEB ",'topologyKey':''"), "topologyKey"},
	{ANTI(WEB ",'topologyKey':7"), "topologyKey"},
	{ANTI("'topologyKey':'zone','labelSelector':7"), "labelSelector"},
	{ANTI("'topologyKey':'zone','labelSelector':{'matchExpressions':[{'key':'app','operator':"
	      "'Like'}]}"),
	 "labelSelector"},
	{ANTI("'topologyKey':'zone','labelSelector':{'matchLabels':{'app':1}}"), "labelSelector"},
	{ANTI("'topologyKey':'zone','labelSelector':{'matchStars':{}}"), "labelSelector"},
	{ANTI(WEB ",'topologyKey':'zone','namespaces':'one'"), "namespaces"},
	{ANTI(WEB ",'topologyKey':'zone','namespaces':[1]"), "namespaces"},
	{ANTI(WEB ",'topologyKey':'zone','namespaceSelector':[]"), "namespaceSelector"},
	{ANTI(WEB ",'topologyKey':'zone','matchLabelKeys':'app'"), "matchLabelKeys"},
	{ANTI(WEB ",'topologyKey':'zone','mismatchLabelKeys':[1]"), "mismatchLabelKeys"},
	{ANTI(WEB ",'topologyKey':'zone','mood':'good'"), "mood"},
	{WITH(WEB), "topologyKey"},
	{WITH("'topologyKey':'zone','labelSelector':{'matchExpressions':[{'key':'app'}]}"),
	 "labelSelector"},
	/* spread */
	{SPEC("'topologySpreadConstraints':{}"), "topologySpreadConstraints"},
	{SPEC("'topologySpreadConstraints':[7]"), "topologySpreadConstraints[0]"},
	{SPREAD("'maxSkew':1,'topologyKey':'zone'," WEB), "whenUnsatisfiable"},
	{SPREAD("'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':'Maybe'," WEB),
	 "whenUnsatisfiable"},
	{SPREAD("'topologyKey':'zone'," HARD "," WEB), "maxSkew"},
	{SPREAD("'maxSkew':0,'topologyKey':'zone'," HARD "," WEB), "maxSkew"},
	{SPREAD("'maxSkew':-1,'topologyKey':'zone'," HARD "," WEB), "maxSkew"},
	{SPREAD("'maxSkew':1.5,'topologyKey':'zone'," HARD "," WEB), "maxSkew"},
	{SPREAD("'maxSkew':'1','topologyKey':'zone'," HARD "," WEB), "maxSkew"},
	{SPREAD("'maxSkew':1," HARD "," WEB), "topologyKey"},
	{SPREAD("'maxSkew':1,'topologyKey':''," HARD "," WEB), "topologyKey"},
	{SPREAD("'maxSkew':1,'topologyKey':'zone','minDomains':0," HARD "," WEB), "minDomains"},
	{SPREAD("'maxSkew':1,'topologyKey':'zone','nodeAffinityPolicy':'Maybe'," HARD "," WEB),
	 "nodeAffinityPolicy"},
	{SPREAD("'maxSkew':1,'topologyKey':'zone','nodeTaintsPolicy':1," HARD "," WEB),
	 "nodeTaintsPolicy"},
	{SPREAD("'maxSkew':1,'topologyKey':'zone','mood':'good'," HARD "," WEB), "mood"},
	{SPREAD("'maxSkew':1,'topologyKey':'zone'," HARD ",'labelSelector':[]"), "labelSelector"},
	{SPREAD("'maxSkew':1,'topologyKey':'zone'," HARD ",'matchLabelKeys':{}," WEB),
	 "matchLabelKeys"},
	/* ports */
	{PORT("'hostPort':-1"), "pod.spec.containers[0].ports[0].hostPort"},
	{PORT("'hostPort':65536"), "pod.spec.containers[0].ports[0].hostPort"},
	{PORT("'hostPort':80.5"), "pod.spec.containers[0].ports[0].hostPort"},
	{PORT("'hostPort':'80'"), "pod.spec.containers[0].ports[0].hostPort"},
	{PORT("'hostPort':80},{'hostPort':true"), "pod.spec.containers[0].ports[1].hostPort"},
	{SPEC("'initContainers':[{'name':'i'},{'name':'j','ports':[{'hostPort':-1}]}]"),
	 "pod.spec.initContainers[1].ports[0].hostPort"},
	{PORT("'hostPort':80,'protocol':7"), "pod.spec.containers[0].ports[0].protocol"},
	{PORT("'hostPort':80,'protocol':'CARRIER-PIGEON'"), "ports[0].protocol"},
	{PORT("'hostPort':80,'protocol':'ICMP'"), "ports[0].protocol"},
	{PORT("'hostPort':80,'hostIP':7"), "pod.spec.containers[0].ports[0].hostIP"},
	{"{'spec':{'containers':[{'name':'c','ports':{}}]}}", "ports"},
	{"{'spec':{'containers':[{'name':'c','ports':[7]}]}}", "ports"},
	/* volumes */
	{SPEC("'volumes':{}"), "spec.volumes"},
	{SPEC("'volumes':[7]"), "spec.volumes[0]"},
	{SPEC("'volumes':[{'name':'v','persistentVolumeClaim':{}}]"), "claimName"},
	{SPEC("'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':7}}]"), "claimName"},
	{SPEC("'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':''}}]"), "claimName"},
	{SPEC("'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{}}}]"),
	 "spec.volumes[0].ephemeral"},
	{SPEC("'volumes':[{'name':'v','rbd':{'image':'i'}}]"), "spec.volumes[0].rbd"},
	/* what nobody here can judge */
	{SPEC("'resourceClaims':[{'name':'gpu'}]"), "spec.resourceClaims"},
	{SPEC("'resourceClaims':7"), "spec.resourceClaims"},
	{SPEC("'schedulingGates':[{'name':'wait'}]"), "spec.schedulingGates"},
	{SPEC("'schedulingGates':{}"), "spec.schedulingGates"},
	{"{'spec':{'containers':[{'name':'c'},{'name':'d','resources':{'claims':[{'name':'gpu'}]}}]"
	 "}}",
	 "pod.spec.containers[1].resources.claims[0]"},
	{SPEC("'resourceClaims':[],'resources':{'claims':[{'name':'gpu'}]}"),
	 "pod.spec.resources.claims[0]"},
	{"{'spec':{'containers':[{'name':'c','resources':{'claims':{}}}]}}",
	 "pod.spec.containers[0].resources.claims"},
	/* what a manifest says of the node */
	{SPEC("'hostNetwork':'yes'"), "pod.spec.hostNetwork"},
	{SPEC("'hostNetwork':1"), "pod.spec.hostNetwork"},
	{SPEC("'nodeName':'alpha'"), "pod.spec.nodeName"},
	{SPEC("'nodeName':7"), "pod.spec.nodeName"},
	{"{'metadata':{'uid':''},'spec':{'nodeName':'bravo'," C "}}", "pod.spec.nodeName"},
};

static bool is_refused(const struct row *r)
{
	int status = post(r->pod);

	if (status == 400)
		return strstr(http_fixture_error_field(&f), r->field) != NULL;
	return status == 200 && cJSON_IsFalse(api_fixture_at(f.json, "items.0.fits")) &&
	       strstr(text("items.0.reason"), r->field);
}

static void what_cannot_be_judged_refuses_and_is_named(void **state)
{
	size_t wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (is_refused(&rows[i]))
			continue;
		wrong++;
		print_error("%s\n  should name %s: %s\n", rows[i].pod, rows[i].field,
			    f.response.body.data);
	}
	assert_int_equal(wrong, 0);
}

/* The same fields as they should be, absent or null: none of these refuses. */
static void what_is_well_fits(void **state)
{
	static const char *const pods[] = {
		"{'spec':{" C "}}",
		SPEC("'affinity':null,'tolerations':null,'volumes':null,'nodeSelector':null"),
		SPEC("'topologySpreadConstraints':null,'overhead':null,'initContainers':null"),
		SPEC("'resourceClaims':[],'schedulingGates':null,'priority':7,'os':{'name':'linux'"
		     "}"),
		SPEC("'affinity':{'nodeAffinity':null,'podAffinity':null,'podAntiAffinity':{}}"),
		EXPR("'key':'zone','operator':'In','values':['1']"),
		EXPR("'key':'disk','operator':'DoesNotExist','values':[]"),
		SPEC("'hostNetwork':null,'spec2':null,'nodeName':''"),
		SPEC("'hostNetwork':true,'resources':{'claims':[]}"),
		"{'metadata':{'uid':'u'},'spec':{'nodeName':'bravo'," C "}}",
		TOL("'operator':'Exists'"),
		TOL("'key':'team','value':'a','effect':'NoExecute','tolerationSeconds':5"),
		ANTI(WEB ",'topologyKey':'zone','namespaces':null,'namespaceSelector':{}"),
		SPREAD("'maxSkew':1,'topologyKey':'zone'," HARD "," WEB ",'minDomains':null"),
		SPREAD("'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':'ScheduleAnyway'"),
		PORT("'containerPort':80,'hostPort':0"),
		PORT("'containerPort':80,'hostPort':8080,'protocol':'SCTP','hostIP':'10.0.0.1'"),
		SPEC("'volumes':[{'name':'v','emptyDir':{}},{'name':'w','configMap':{'name':'m'}}"
		     "]"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
		assert_int_equal(post(pods[i]), 200);
		if (!cJSON_IsTrue(api_fixture_at(f.json, "items.0.fits")))
			fail_msg("%s: %s", pods[i], text("items.0.reason"));
	}
}

/* The pod fits, and the answer says which members of its spec it does not take into account. */
static void unknown_members_are_warnings(void **state)
{
	static const struct {
		const char *pod, *want[2];
	} pods[] = {
		{SPEC("'hostnameOverride':'h','evictionResponders':[],'spec3':null"), {NULL}},
		{SPEC("'spec2':{},'spec3':7"),
		 {"pod.spec.spec2: not a member in Kubernetes up to 1.37, ignored",
		  "pod.spec.spec3: not a member in Kubernetes up to 1.37, ignored"}},
		{SPEC("'schedulingGroup':{'podGroupName':'gang'}"),
		 {"pod.spec.schedulingGroup: size and topology of the group are not judged"}},
		{SPEC("'tolerations':[{'key':'size','operator':'Gt','value':'3'}]"),
		 {"pod.spec.tolerations: Gt and Lt need the feature gate "
		  "TaintTolerationComparisonOperators"}},
		{SPEC("'tolerations':[{'key':'a'},{'key':'size','operator':'Lt','value':'3'}]"),
		 {"pod.spec.tolerations: Gt and Lt need the feature gate "
		  "TaintTolerationComparisonOperators"}},
		{SPEC("'workloadRef':{'name':'gang'}"),
		 {"pod.spec.workloadRef: size and topology of the group are not judged"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
		assert_int_equal(post(pods[i].pod), 200);
		assert_true(cJSON_IsTrue(api_fixture_at(f.json, "items.0.fits")));
		assert_string_equal(text("warnings.0"), pods[i].want[0] ? pods[i].want[0] : "");
		assert_string_equal(text("warnings.1"), pods[i].want[1] ? pods[i].want[1] : "");
	}
}

/* A known member that no rule here judges keeps the verdict Unknown, whatever else is unknown. */
static void unjudged_members_stay_unknown(void **state)
{
	(void)state;
	assert_int_equal(post(SPEC("'resourceClaims':[{'name':'gpu'}],'spec2':{}")), 200);
	assert_string_equal(text("items.0.filter"), "Unknown");
	assert_non_null(strstr(text("items.0.reason"), "spec.resourceClaims"));
	assert_non_null(strstr(text("warnings.0"), "pod.spec.spec2"));
}

static void many_warnings_are_counted(void **state)
{
	struct buf pod = BUF_INIT;

	(void)state;
	buf_add_str(&pod, "{'spec':{'containers':[{'name':'c'}]");
	for (int i = 0; i < 100; i++)
		buf_printf(&pod, ",'unknown%d':1", i);
	buf_add_str(&pod, "}}");
	assert_int_equal(post(pod.data), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "warnings")), 33);
	assert_string_equal(text("warnings.32"), "68 more warnings");
	buf_fini(&pod);
}

/* Scores say the same of the pod's members, also where they do not tell whether it fits. */
static void scores_warn_as_well(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_send(&f, "POST", "/v1/scores",
					  "{\"pod\":{\"spec\":{\"containers\":[],\"spec2\":1}}}"),
			 200);
	assert_non_null(strstr(text("warnings.0"), "pod.spec.spec2"));
	assert_int_equal(api_fixture_send(&f, "POST", "/v1/scores", "{}"), 200);
	assert_null(api_fixture_at(f.json, "warnings"));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(api_fixture_send(&f, "POST",
						  i ? "/v1/quotas/preempt" : "/v1/quotas/admit",
						  "{\"pod\":{\"spec\":{\"containers\":[{\"name\":"
						  "\"c\"}],\"spec2\":1}}}"),
				 200);
		assert_non_null(strstr(text("warnings.0"), "pod.spec.spec2"));
	}
}

/* A manifest need not say that ports of the node's network are the node's. */
static void ports_of_the_host_network_are_the_hosts(void **state)
{
	(void)state;
	assert_int_equal(post("{'spec':{'hostNetwork':true,'containers':[{'name':'c','ports':[{"
			      "'containerPort':70000}]}]}}"),
			 200);
	assert_non_null(strstr(text("items.0.reason"), "hostPort"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_judged_refuses_and_is_named),
		cmocka_unit_test(what_is_well_fits),
		cmocka_unit_test(unknown_members_are_warnings),
		cmocka_unit_test(many_warnings_are_counted),
		cmocka_unit_test(unjudged_members_stay_unknown),
		cmocka_unit_test(scores_warn_as_well),
		cmocka_unit_test(ports_of_the_host_network_are_the_hosts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
