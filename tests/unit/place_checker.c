/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker by itself: each row is a pod, the pods that are there, and what each of three nodes
 * must say, worked out by hand from the documentation of the kube-scheduler.
 *
 * Nodes: n0 and n1 in zone a, n2 in zone b, n3 without labels. Each has 2 CPUs, 4Gi and room for 3
 * pods. n1 has the taint team=a:NoSchedule, n2 is cordoned and has gen=5.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/place_checker.h"

enum { NODES = 4, PODS_MAX = 4, OTHERS_MAX = 4 };

static const char *const node_texts[NODES] = {
	"{'metadata':{'name':'n0','labels':{'kubernetes.io/hostname':'n0','topology.kubernetes.io/"
	"zone':'a'}},'status':{'allocatable':{'cpu':'2','memory':'4Gi','pods':'3'}}}",
	"{'metadata':{'name':'n1','labels':{'kubernetes.io/hostname':'n1','topology.kubernetes.io/"
	"zone':'a'}},'spec':{'taints':[{'key':'team','value':'a','effect':'NoSchedule'},{'key':'p',"
	"'effect':'PreferNoSchedule'}]},'status':{'allocatable':{'cpu':'2','memory':'4Gi','pods':"
	"'3'}}}",
	"{'metadata':{'name':'n2','labels':{'kubernetes.io/hostname':'n2','topology.kubernetes.io/"
	"zone':'b','gen':'5'}},'spec':{'unschedulable':true},'status':{'allocatable':{'cpu':'2',"
	"'memory':'4Gi','pods':'3'}}}",
	"{'metadata':{'name':'n3'},'status':{'allocatable':{'cpu':'2','memory':'4Gi','pods':'3'}}}",
};

/* A pod that goes everywhere but for what a test says. */
#define OPEN "'tolerations':[{'operator':'Exists'}]"
#define WEB  "'metadata':{'namespace':'d','labels':{'app':'web'}}"

struct row {
	const char *what;
	const char *pod;
	const char *there[PODS_MAX - 1];
	int where[PODS_MAX - 1];
	enum place_filter expected[NODES];
	const char *others[OTHERS_MAX];
};

/* Short, for the tables. */
#define OK     PLACE_FITS
#define FIT    PLACE_FIT
#define TAINT  PLACE_TAINTS
#define NODE   PLACE_NODE_AFFINITY
#define CORDON PLACE_UNSCHEDULABLE
#define ANTI   PLACE_ANTI_AFFINITY
#define AFF    PLACE_AFFINITY
#define SPREAD PLACE_SPREAD
#define PORT   PLACE_HOST_PORTS
#define VOLUME PLACE_VOLUMES

#define CPU(amount) "'containers':[{'resources':{'requests':{'cpu':'" amount "'}}}]"
#define NODE_TERMS(terms)                                                                          \
	"'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"           \
	"'nodeSelectorTerms':[" terms "]}}}"
#define EXPRESSION(key, op, values)                                                                \
	"{'matchExpressions':[{'key':'" key "','operator':'" op "','values':[" values "]}]}"
#define POD_TERM(kind, key, app, more)                                                             \
	"'affinity':{'" kind "':{'requiredDuringSchedulingIgnoredDuringExecution':[{"              \
	"'topologyKey':'" key "','labelSelector':{'matchLabels':{'app':'" app "'}}" more "}]}}"
#define ZONE_KEY "topology.kubernetes.io/zone"
#define SPREAD_ON(key, more)                                                                       \
	"'topologySpreadConstraints':[{'topologyKey':'" key                                        \
	"','maxSkew':1,'whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{"       \
	"'app':'web'}}" more "}]"
#define PORTS(more) "'containers':[{'ports':[{'hostPort':80" more "}]}]"
#define CLAIM	    "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c'}}]"

static const struct row rows[] = {
	{"resources: just enough",
	 "{'spec':{" CPU("1500m") "," OPEN "}}",
	 {"{'spec':{" CPU("500m") "}}", "{'spec':{" CPU("501m") "}}"},
	 {0, 1},
	 {OK, FIT, OK, OK},
	 {0}},
	{"resources: an ended pod counts for nothing",
	 "{'spec':{" CPU("2") "," OPEN "}}",
	 {"{'spec':{" CPU("2") "},'status':{'phase':'Succeeded'}}"},
	 {0},
	 {OK, OK, OK, OK},
	 {0}},
	{"resources: an init container beside the sidecar before it, not the one after it",
	 "{'spec':{" OPEN ",'initContainers':[{'restartPolicy':'Always','resources':{'requests':{"
	 "'cpu':'1'}}},{'resources':{'requests':{'cpu':'1'}}},{'restartPolicy':'Always','resources'"
	 ":{'requests':{'cpu':'250m'}}}]}}",
	 {"{'spec':{" CPU("1m") "}}"},
	 {0},
	 {FIT, OK, OK, OK},
	 {0}},
	{"resources: overhead, and a limit without a request",
	 "{'spec':{" OPEN ",'overhead':{'cpu':'1'},'containers':[{'resources':{'limits':{'cpu':'1'}"
	 "}}]}}",
	 {"{'spec':{" CPU("1m") "}}"},
	 {0},
	 {FIT, OK, OK, OK},
	 {0}},
	{"resources: of what a node has none, only 0 is enough",
	 "{'spec':{" OPEN ",'containers':[{'resources':{'requests':{'a.b/c':'1'}}}]}}",
	 {0},
	 {0},
	 {FIT, FIT, FIT, FIT},
	 {0}},
	{"resources: three pods are all",
	 "{'spec':{" OPEN "}}",
	 {"{}", "{}", "{}"},
	 {0, 0, 0},
	 {FIT, OK, OK, OK},
	 {0}},
	{"taints: nothing is tolerated", "{'spec':{}}", {0}, {0}, {OK, TAINT, CORDON, OK}, {0}},
	{"taints: an equal value",
	 "{'spec':{'tolerations':[{'key':'team','value':'a'}]}}",
	 {0},
	 {0},
	 {OK, OK, CORDON, OK},
	 {0}},
	{"taints: another value, another effect",
	 "{'spec':{'tolerations':[{'key':'team','value':'b'},{'key':'team','operator':'Exists',"
	 "'effect':'NoExecute'}]}}",
	 {0},
	 {0},
	 {OK, TAINT, CORDON, OK},
	 {0}},
	{"cordon: its taint is tolerated",
	 "{'spec':{'tolerations':[{'key':'node.kubernetes.io/unschedulable','operator':'Exists'}]}"
	 "}",
	 {0},
	 {0},
	 {OK, TAINT, OK, OK},
	 {0}},
	{"node affinity: In, or Gt",
	 "{'spec':{" OPEN
	 "," NODE_TERMS(EXPRESSION("kubernetes.io/hostname", "In",
				   "'n0','n9'") "," EXPRESSION("gen", "Gt", "'4'")) "}}",
	 {0},
	 {0},
	 {OK, NODE, OK, NODE},
	 {0}},
	{"node affinity: Gt is not equal, Lt needs the label",
	 "{'spec':{" OPEN
	 "," NODE_TERMS(EXPRESSION("gen", "Gt", "'5'") "," EXPRESSION("gen", "Lt", "'5'")) "}}",
	 {0},
	 {0},
	 {NODE, NODE, NODE, NODE},
	 {0}},
	{"node affinity: NotIn holds without the label",
	 "{'spec':{" OPEN "," NODE_TERMS(EXPRESSION(ZONE_KEY, "NotIn", "'a'")) "}}",
	 {0},
	 {0},
	 {NODE, NODE, OK, OK},
	 {0}},
	{"node affinity: an empty term matches nothing; the name is a field",
	 "{'spec':{" OPEN "," NODE_TERMS("{},{'matchFields':[{'key':'metadata.name','operator':'In'"
					 ",'values':['n3']}]}") "}}",
	 {0},
	 {0},
	 {NODE, NODE, NODE, OK},
	 {0}},
	{"anti-affinity: the pod's own, by zone; a node without one is nowhere",
	 "{'metadata':{'namespace':'d'},'spec':{" OPEN
	 "," POD_TERM("podAntiAffinity", ZONE_KEY, "web", "") "}}",
	 {"{" WEB "}"},
	 {0},
	 {ANTI, ANTI, OK, OK},
	 {0}},
	{"anti-affinity: of the one who is there",
	 "{" WEB ",'spec':{" OPEN "}}",
	 {"{'metadata':{'namespace':'d'},'spec':{" POD_TERM(
		 "podAntiAffinity", "kubernetes.io/hostname", "web", "") "}}"},
	 {1},
	 {OK, ANTI, OK, OK},
	 {0}},
	{"anti-affinity: another namespace is not meant",
	 "{'metadata':{'namespace':'e'},'spec':{" OPEN
	 "," POD_TERM("podAntiAffinity", ZONE_KEY, "web", "") "}}",
	 {"{" WEB "}"},
	 {0},
	 {OK, OK, OK, OK},
	 {0}},
	{"anti-affinity: but it is where a selector of namespaces says so",
	 "{'metadata':{'namespace':'e'},'spec':{" OPEN
	 "," POD_TERM("podAntiAffinity", ZONE_KEY, "web",
		      ",'namespaceSelector':{'matchLabels':{'t':'1'}}") "}}",
	 {"{" WEB "}"},
	 {0},
	 {ANTI, ANTI, OK, OK},
	 {"{'kind':'Namespace','metadata':{'name':'d','labels':{'t':'1'}}}"}},
	{"affinity: to one that is there",
	 "{'metadata':{'namespace':'d'},'spec':{" OPEN
	 "," POD_TERM("podAffinity", ZONE_KEY, "web", "") "}}",
	 {"{" WEB "}"},
	 {0},
	 {OK, OK, AFF, AFF},
	 {0}},
	{"affinity: the first of its kind, where the label is",
	 "{" WEB ",'spec':{" OPEN "," POD_TERM("podAffinity", ZONE_KEY, "web", "") "}}",
	 {0},
	 {0},
	 {OK, OK, OK, AFF},
	 {0}},
	{"affinity: the second of its kind",
	 "{" WEB ",'spec':{" OPEN "," POD_TERM("podAffinity", ZONE_KEY, "web", "") "}}",
	 {"{" WEB "}"},
	 {2},
	 {AFF, AFF, OK, AFF},
	 {0}},
	{"affinity: one on a node without the label is nobody",
	 "{" WEB ",'spec':{" OPEN "," POD_TERM("podAffinity", ZONE_KEY, "web", "") "}}",
	 {"{" WEB "}"},
	 {3},
	 {OK, OK, OK, AFF},
	 {0}},
	{"spread: one ahead is the most; without the label is nowhere",
	 "{" WEB ",'spec':{" OPEN "," SPREAD_ON(ZONE_KEY, "") "}}",
	 {"{" WEB "}"},
	 {0},
	 {SPREAD, SPREAD, OK, SPREAD},
	 {0}},
	{"spread: those who leave, and other namespaces, do not count",
	 "{" WEB ",'spec':{" OPEN "," SPREAD_ON(ZONE_KEY, "") "}}",
	 {"{'metadata':{'namespace':'d','labels':{'app':'web'},'deletionTimestamp':'t'}}",
	  "{'metadata':{'namespace':'e','labels':{'app':'web'}}}"},
	 {0, 0},
	 {OK, OK, OK, SPREAD},
	 {0}},
	{"spread: too few domains make the least 0",
	 "{" WEB ",'spec':{" OPEN "," SPREAD_ON(ZONE_KEY, ",'minDomains':3") "}}",
	 {"{" WEB "}", "{" WEB "}"},
	 {0, 2},
	 {SPREAD, SPREAD, SPREAD, SPREAD},
	 {0}},
	{"spread: a node the pod does not want is no domain",
	 "{" WEB ",'spec':{" OPEN
	 ",'nodeSelector':{'topology.kubernetes.io/zone':'a'}," SPREAD_ON(ZONE_KEY, "") "}}",
	 {"{" WEB "}"},
	 {0},
	 {OK, OK, NODE, NODE},
	 {0}},
	{"spread: unless the policy ignores it",
	 "{" WEB ",'spec':{" OPEN ",'nodeSelector':{'topology.kubernetes.io/zone':'a'}," SPREAD_ON(
		 ZONE_KEY, ",'nodeAffinityPolicy':'Ignore'") "}}",
	 {"{" WEB "}"},
	 {0},
	 {SPREAD, SPREAD, NODE, NODE},
	 {0}},
	{"spread: a tainted node is a domain",
	 "{" WEB ",'spec':{" SPREAD_ON("kubernetes.io/hostname", "") "}}",
	 {"{" WEB "}"},
	 {0},
	 {SPREAD, TAINT, CORDON, SPREAD},
	 {0}},
	{"spread: unless the policy honours taints; cordons are none",
	 "{" WEB
	 ",'spec':{" SPREAD_ON("kubernetes.io/hostname", ",'nodeTaintsPolicy':'Honor'") "}}",
	 {"{" WEB "}", "{" WEB "}"},
	 {0, 2},
	 {OK, TAINT, CORDON, SPREAD},
	 {0}},
	{"ports: all addresses overlap, protocols do not",
	 "{'spec':{" OPEN "," PORTS("") "}}",
	 {"{'spec':{" PORTS(",'hostIP':'10.0.0.1'") "}}",
	  "{'spec':{" PORTS(",'protocol':'UDP'") "}}"},
	 {0, 1},
	 {PORT, OK, OK, OK},
	 {0}},
	{"ports: two addresses do not",
	 "{'spec':{" OPEN "," PORTS(",'hostIP':'10.0.0.2'") "}}",
	 {"{'spec':{" PORTS(",'hostIP':'10.0.0.1'") "}}"},
	 {0},
	 {OK, OK, OK, OK},
	 {0}},
	{"ports: a sidecar keeps them, another init container does not",
	 "{'spec':{" OPEN "," PORTS("") "}}",
	 {"{'spec':{'initContainers':[{'restartPolicy':'Always','ports':[{'hostPort':80}]}]}}",
	  "{'spec':{'initContainers':[{'ports':[{'hostPort':80}]}]}}"},
	 {0, 1},
	 {PORT, OK, OK, OK},
	 {0}},
	{"volumes: no claim",
	 "{" WEB ",'spec':{" OPEN "," CLAIM "}}",
	 {0},
	 {0},
	 {VOLUME, VOLUME, VOLUME, VOLUME},
	 {0}},
	{"volumes: bound, by affinity",
	 "{" WEB ",'spec':{" OPEN "," CLAIM "}}",
	 {0},
	 {0},
	 {OK, OK, VOLUME, VOLUME},
	 {"{'kind':'PersistentVolumeClaim','metadata':{'name':'c','namespace':'d'},'spec':{"
	  "'volumeName':'v'}}",
	  "{'kind':'PersistentVolume','metadata':{'name':'v'},'spec':{'nodeAffinity':{'required':{"
	  "'nodeSelectorTerms':[" EXPRESSION(ZONE_KEY, "In", "'a'") "]}}}}"}},
	{"volumes: bound, by labels; where no node has a zone it has any",
	 "{" WEB ",'spec':{" OPEN "," CLAIM "}}",
	 {0},
	 {0},
	 {VOLUME, VOLUME, OK, OK},
	 {"{'kind':'PersistentVolumeClaim','metadata':{'name':'c','namespace':'d'},'spec':{"
	  "'volumeName':'v'}}",
	  "{'kind':'PersistentVolume','metadata':{'name':'v','labels':{'failure-domain.beta."
	  "kubernetes.io/zone':'b__c'}},'spec':{}}"}},
	{"volumes: unbound, and nobody waits",
	 "{" WEB ",'spec':{" OPEN "," CLAIM "}}",
	 {0},
	 {0},
	 {VOLUME, VOLUME, VOLUME, VOLUME},
	 {"{'kind':'PersistentVolumeClaim','metadata':{'name':'c','namespace':'d'},'spec':{"
	  "'storageClassName':'s'}}",
	  "{'kind':'StorageClass','metadata':{'name':'s'},'provisioner':'x'}"}},
	{"volumes: provisioned where the class reaches",
	 "{" WEB ",'spec':{" OPEN "," CLAIM "}}",
	 {0},
	 {0},
	 {VOLUME, VOLUME, OK, VOLUME},
	 {"{'kind':'PersistentVolumeClaim','metadata':{'name':'c','namespace':'d'},'spec':{"
	  "'storageClassName':'s'}}",
	  "{'kind':'StorageClass','metadata':{'name':'s'},'provisioner':'x','volumeBindingMode':"
	  "'WaitForFirstConsumer','allowedTopologies':[{'matchLabelExpressions':[{'key':'" ZONE_KEY
	  "','values':['b']}]}]}"}},
	{"volumes: local ones that are large enough",
	 "{" WEB ",'spec':{" OPEN "," CLAIM "}}",
	 {0},
	 {0},
	 {VOLUME, VOLUME, OK, VOLUME},
	 {"{'kind':'PersistentVolumeClaim','metadata':{'name':'c','namespace':'d'},'spec':{"
	  "'storageClassName':'s','accessModes':['ReadWriteOnce'],'resources':{'requests':{"
	  "'storage':'2Gi'}}}}",
	  "{'kind':'StorageClass','metadata':{'name':'s'},'provisioner':'kubernetes.io/"
	  "no-provisioner','volumeBindingMode':'WaitForFirstConsumer'}",
	  "{'kind':'PersistentVolume','metadata':{'name':'v'},'spec':{'storageClassName':'s',"
	  "'accessModes':['ReadWriteOnce'],'capacity':{'storage':'2Gi'},'nodeAffinity':{'required':"
	  "{'nodeSelectorTerms':[" EXPRESSION(ZONE_KEY, "In",
					      "'b'") "]}}},"
						     "'status':{'phase':'Available'}}",
	  "{'kind':'PersistentVolume','metadata':{'name':'w'},'spec':{'storageClassName':'s',"
	  "'accessModes':['ReadWriteOnce'],'capacity':{'storage':'1Gi'}},'status':{'phase':'"
	  "Available'}}"}},
	{"volumes: one pod of all",
	 "{" WEB ",'spec':{" OPEN "," CLAIM "}}",
	 {"{" WEB ",'spec':{" CLAIM "}}"},
	 {0},
	 {VOLUME, VOLUME, VOLUME, VOLUME},
	 {"{'kind':'PersistentVolumeClaim','metadata':{'name':'c','namespace':'d'},'spec':{"
	  "'volumeName':'v','accessModes':['ReadWriteOncePod']}}",
	  "{'kind':'PersistentVolume','metadata':{'name':'v'},'spec':{}}"}},
	{"unknown: claims of devices",
	 "{'spec':{" OPEN ",'resourceClaims':[{'name':'x'}]}}",
	 {0},
	 {0},
	 {PLACE_UNKNOWN, PLACE_UNKNOWN, PLACE_UNKNOWN, PLACE_UNKNOWN},
	 {0}},
	{"unknown: an operator of tomorrow",
	 "{'spec':{'tolerations':[{'key':'team','operator':'Like','value':'a'}]}}",
	 {0},
	 {0},
	 {PLACE_UNKNOWN, TAINT, CORDON, PLACE_UNKNOWN},
	 {0}},
};

/* Rows are written with apostrophes. */
static cJSON *parse(const char *text)
{
	char copy[1024];
	cJSON *json;
	size_t len = strlen(text);

	assert_true(len < sizeof(copy));
	for (size_t i = 0; i <= len; i++)
		copy[i] = (char)(text[i] == '\'' ? '"' : text[i]);
	json = cJSON_Parse(copy);
	if (!json)
		fail_msg("no JSON: %s", copy);
	return json;
}

struct scene {
	cJSON *nodes[NODES], *pods[PODS_MAX], *others[OTHERS_MAX];
	int where[PODS_MAX];
	bool removed[NODES];
	struct verify_world c;
};

static void open_scene(struct scene *s, const struct row *r)
{
	size_t pods = 1, others = 0;

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < NODES; i++)
		s->nodes[i] = parse(node_texts[i]);
	s->pods[0] = parse(r->pod);
	s->where[0] = VERIFY_NOWHERE;
	for (; pods < PODS_MAX && r->there[pods - 1]; pods++) {
		s->pods[pods] = parse(r->there[pods - 1]);
		s->where[pods] = r->where[pods - 1];
	}
	for (; others < OTHERS_MAX && r->others[others]; others++)
		s->others[others] = parse(r->others[others]);
	s->c = (struct verify_world){NODES,
				     pods,
				     others,
				     (const cJSON **)s->nodes,
				     (const cJSON **)s->pods,
				     (const cJSON **)s->others,
				     s->where,
				     s->removed,
				     NULL,
				     NULL};
}

static void close_scene(struct scene *s)
{
	for (size_t i = 0; i < NODES; i++)
		cJSON_Delete(s->nodes[i]);
	for (size_t i = 0; i < s->c.pod_count; i++)
		cJSON_Delete(s->pods[i]);
	for (size_t i = 0; i < s->c.other_count; i++)
		cJSON_Delete(s->others[i]);
}

static void each_filter_says_what_the_documentation_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scene s;

		open_scene(&s, &rows[i]);
		for (size_t node = 0; node < NODES; node++) {
			struct place_verdict v = place_checker_ask(&s.c, 0, node);

			if (v.filter != rows[i].expected[node])
				fail_msg("%s: n%zu says %d (%s), not %d", rows[i].what, node,
					 v.filter, v.error.text, rows[i].expected[node]);
			assert_int_equal(*v.error.text == '\0', v.filter == PLACE_FITS);
		}
		close_scene(&s);
	}
}

static void a_removed_node_refuses_but_is_still_a_domain(void **state)
{
	static const struct row row = {
		.pod = "{" WEB ",'spec':{" OPEN "," SPREAD_ON(ZONE_KEY, "") "}}",
		.there = {"{" WEB "}"},
		.where = {0},
	};
	struct scene s;

	(void)state;
	open_scene(&s, &row);
	s.removed[2] = true;
	assert_int_equal(place_checker_ask(&s.c, 0, 2).filter, PLACE_GONE);
	assert_int_equal(place_checker_ask(&s.c, 0, 0).filter, PLACE_SPREAD);
	close_scene(&s);
}

static void what_was_placed_is_legal_or_names_who_is_not(void **state)
{
	static const struct row row = {
		.pod = "{" WEB ",'spec':{" CPU("1") "}}",
		.there = {"{'metadata':{'name':'big','namespace':'d'},'spec':{" CPU("1500m") "}}"},
		.where = {0},
	};
	const bool marked[] = {true, false};
	struct error why = {""};
	struct scene s;

	(void)state;
	open_scene(&s, &row);
	assert_true(place_checker_is_legal(&s.c, NULL, &why));
	s.where[0] = 0;
	assert_false(place_checker_is_legal(&s.c, NULL, &why));
	assert_non_null(strstr(why.text, "on n0"));
	assert_non_null(strstr(why.text, "cpu: 1000 requested, 1500 of 2000 are taken"));
	s.where[0] = 3;
	assert_true(place_checker_is_legal(&s.c, marked, &why));
	s.where[0] = 1; /* tainted */
	assert_false(place_checker_is_legal(&s.c, marked, &why));
	close_scene(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_filter_says_what_the_documentation_says),
		cmocka_unit_test(a_removed_node_refuses_but_is_still_a_domain),
		cmocka_unit_test(what_was_placed_is_legal_or_names_who_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
