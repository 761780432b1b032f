/* SPDX-License-Identifier: Apache-2.0 */
/* Each filter by a table: one pending pod, asked on one node of a small cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/place_fixture.h"

static struct place_fixture f;

static int setup(void **state)
{
	(void)state;
	place_fixture_init(&f);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	place_fixture_fini(&f);
	return 0;
}

/*
 * What the pod's spec says, and the first filter that refuses it on each of the nodes a, b and c.
 */
struct row {
	const char *labels, *spec, *a, *b, *c;
};

#define FITS	    "fits"
#define ON(a, b, c) (a), (b), (c)

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *want[] = {rows[i].a, rows[i].b, rows[i].c};
		static const char *const nodes[] = {"a", "b", "c"};
		struct error error;

		place_fixture_pod(&f, "asked", "", rows[i].labels, rows[i].spec);
		place_fixture_build(&f);
		for (int n = 0; n < 3; n++) {
			const char *got = place_fixture_ask(f.place, "asked", nodes[n]);

			if (strcmp(got, want[n]) != 0)
				fail_msg("row %zu on %s: %s and not %s", i, nodes[n], got, want[n]);
		}
		assert_true(place_is_consistent(f.place, &error));
	}
}

#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

/* a and b in zone 1, c in zone 2. */
static void put_nodes(void)
{
	place_fixture_node(&f, "a", "'zone':'1','size':'5','odd':'x'", "");
	place_fixture_node(&f, "b", "'zone':'1','size':'12'", "");
	place_fixture_node(&f, "c", "'zone':'2','size':'-3'", "");
}

/* --- amounts */

#define ASK(amounts)                                                                               \
	"'containers':[{'name':'c','resources':{'requests':{" amounts "},'limits':{" amounts "}}}" \
	"]"
#define FIT "NodeResourcesFit"

static void amounts_must_be_free(void **state)
{
	static const struct row rows[] = {
		{"", ASK("'cpu':'4'"), ON(FITS, FIT, FIT)},
		{"", ASK("'cpu':'4001m'"), ON(FIT, FIT, FIT)},
		{"", ASK("'cpu':'3900m'"), ON(FITS, FITS, FIT)},
		{"", ASK("'cpu':'3901m'"), ON(FITS, FIT, FIT)},
		{"", ASK("'memory':'8Gi'"), ON(FITS, FIT, FIT)},
		{"", ASK("'memory':'8193Mi'"), ON(FIT, FIT, FIT)},
		/*
		 * Whoever asks for nothing finds room on a node that is given away twice, as long
		 * as it takes pods.
		 */
		{"", ASK(""), ON(FITS, FITS, FIT)},
		{"", ASK("'ephemeral-storage':'1'"), ON(FIT, FIT, FIT)},
		{"", ASK("'example.com/x':'2'"), ON(FIT, FITS, FIT)},
		{"", ASK("'example.com/x':'3'"), ON(FIT, FIT, FIT)},
		{"", ASK("'example.com/y':'1'"), ON(FIT, FIT, FIT)},
		{"", ASK("'example.com/x':'0'"), ON(FITS, FITS, FIT)},
		{"", "'overhead':{'cpu':'3900m'}", ON(FITS, FIT, FIT)},
	};

	(void)state;
	put_nodes();
	place_fixture_put(&f, OBJECT_NODE,
			  "{'metadata':{'name':'b'},'status':{'allocatable':{'cpu':'4',"
			  "'memory':'8Gi','pods':'110','example.com/x':'3'}}}");
	place_fixture_put(&f, OBJECT_NODE,
			  "{'metadata':{'name':'c'},'status':{'allocatable':{'cpu':'4',"
			  "'memory':'8Gi','pods':'1'}}}");
	place_fixture_pod(&f, "has", "b", "", ASK("'cpu':'100m','memory':'1','example.com/x':'1'"));
	place_fixture_pod(&f, "alone", "c", "", "");
	CHECK(rows);
}

static void a_node_given_away_twice_takes_what_asks_for_nothing(void **state)
{
	static const struct row rows[] = {
		{"", ASK(""), ON(FITS, FITS, FITS)},
		{"", ASK("'memory':'1'"), ON(FITS, FITS, FITS)},
		{"", ASK("'cpu':'1m'"), ON(FIT, FITS, FITS)},
	};

	(void)state;
	put_nodes();
	place_fixture_pod(&f, "huge", "a", "", ASK("'cpu':'10'"));
	CHECK(rows);
}

static void pods_that_ended_take_nothing(void **state)
{
	static const struct row rows[] = {{"", ASK("'cpu':'4'"), ON(FITS, FITS, FITS)}};

	(void)state;
	put_nodes();
	place_fixture_put(&f, OBJECT_POD,
			  "{'metadata':{'namespace':'default','name':'done'},'spec':{'nodeName':'a'"
			  "," ASK("'cpu':'4'") "},'status':{'phase':'Succeeded'}}");
	CHECK(rows);
	assert_int_equal(place_find_pod(f.place, "default", "done"), PLACE_NONE);
}

/* --- taints */

#define TAINT		  "TaintToleration"
#define TOLERATE(members) "'tolerations':[{" members "}]"

static void taints_must_be_tolerated(void **state)
{
	static const struct row rows[] = {
		{"", "", ON(TAINT, TAINT, FITS)},
		{"", TOLERATE("'key':'k','value':'v'"), ON(FITS, TAINT, FITS)},
		{"", TOLERATE("'key':'k','operator':'Equal','value':'v'"), ON(FITS, TAINT, FITS)},
		{"", TOLERATE("'key':'k','value':'w'"), ON(TAINT, TAINT, FITS)},
		{"", TOLERATE("'key':'k'"), ON(TAINT, TAINT, FITS)},
		{"", TOLERATE("'key':'k','operator':'Exists'"), ON(FITS, TAINT, FITS)},
		{"", TOLERATE("'key':'k','operator':'Exists','effect':'NoSchedule'"),
		 ON(FITS, TAINT, FITS)},
		{"", TOLERATE("'key':'k','operator':'Exists','effect':'NoExecute'"),
		 ON(TAINT, TAINT, FITS)},
		{"", TOLERATE("'operator':'Exists'"), ON(FITS, FITS, FITS)},
		{"", TOLERATE("'operator':'Exists','effect':'NoExecute'"), ON(TAINT, TAINT, FITS)},
		/* Both of b's. */
		{"",
		 "'tolerations':[{'key':'k','operator':'Exists'},"
		 "{'key':'gpu','operator':'Exists','tolerationSeconds':3}]",
		 ON(FITS, FITS, FITS)},
		{"", TOLERATE("'key':'k','operator':'Gt','value':'1'"), ON(TAINT, TAINT, FITS)},
		{"", TOLERATE("'key':'k','operator':'Gt','value':'01'"),
		 ON(TAINT, TAINT, "Unknown")},
		{"", TOLERATE("'key':'k','operator':'Ge','value':'1'"),
		 ON(TAINT, TAINT, "Unknown")},
		{"", TOLERATE("'key':'k','value':'v','tomorrow':1"), ON(TAINT, TAINT, "Unknown")},
		{"", TOLERATE("'value':'v'"), ON(TAINT, TAINT, "Unknown")},
	};

	(void)state;
	place_fixture_node(&f, "a", "", "'taints':[{'key':'k','value':'v','effect':'NoSchedule'}]");
	place_fixture_node(&f, "b", "",
			   "'taints':[{'key':'k','value':'v','effect':'NoSchedule'},"
			   "{'key':'gpu','effect':'NoExecute'}]");
	place_fixture_node(&f, "c", "", "'taints':[{'key':'z','effect':'PreferNoSchedule'}]");
	CHECK(rows);
}

/* A taint with a number, one with no number as Kubernetes reads it, and one below zero. */
static void numbers_of_taints_are_compared(void **state)
{
#define COMPARE(op, value) TOLERATE("'key':'k','operator':'" op "','value':'" value "'")
	static const struct row rows[] = {
		{"", COMPARE("Gt", "49"), ON(FITS, TAINT, TAINT)},
		{"", COMPARE("Gt", "50"), ON(TAINT, TAINT, TAINT)},
		{"", COMPARE("Lt", "51"), ON(FITS, TAINT, FITS)},
		{"", COMPARE("Lt", "50"), ON(TAINT, TAINT, FITS)},
		{"", COMPARE("Gt", "-4"), ON(FITS, TAINT, FITS)},
		{"", COMPARE("Lt", "-9223372036854775808"), ON(TAINT, TAINT, TAINT)},
		{"", COMPARE("Lt", "9223372036854775808"), ON(TAINT, TAINT, TAINT)},
		{"", COMPARE("Gt", "-0"), ON(TAINT, TAINT, TAINT)},
		{"", TOLERATE("'key':'k','operator':'Lt','value':'51','effect':'NoExecute'"),
		 ON(TAINT, TAINT, TAINT)},
	};
#undef COMPARE

	(void)state;
	place_fixture_node(&f, "a", "",
			   "'taints':[{'key':'k','value':'50','effect':'NoSchedule'}]");
	place_fixture_node(&f, "b", "",
			   "'taints':[{'key':'k','value':'050','effect':'NoSchedule'}]");
	place_fixture_node(&f, "c", "",
			   "'taints':[{'key':'k','value':'-3','effect':'NoSchedule'}]");
	CHECK(rows);
}

/* --- features and conditions of nodes */

#define FEATURE "NodeDeclaredFeatures"
#define RULES(action)                                                                              \
	"'containers':[{'name':'c','restartPolicyRules':[{'action':'Restart'},{'action':'" action  \
	"'}]}]"

static void put_status(const char *node, const char *status)
{
	char json[400];

	snprintf(json, sizeof(json),
		 "{'metadata':{'name':'%s'},'status':{'allocatable':{'cpu':'4','memory':'8Gi',"
		 "'pods':'110'}%s}}",
		 node, status);
	place_fixture_put(&f, OBJECT_NODE, json);
}

static void needed_features_are_declared(void **state)
{
	static const struct row rows[] = {
		{"", RULES("Restart"), ON(FITS, FITS, FITS)},
		{"", RULES("RestartAllContainers"), ON(FITS, FITS, FEATURE)},
		{"", "'hostNetwork':true,'hostUsers':false", ON(FEATURE, FITS, FEATURE)},
		{"", "'hostNetwork':true,'hostUsers':true", ON(FITS, FITS, FITS)},
		{"", "'hostNetwork':true", ON(FITS, FITS, FITS)},
		{"", "'hostUsers':false", ON(FITS, FITS, FITS)},
		{"",
		 "'initContainers':[{'name':'i','volumeMounts':[{'name':'v'},{'name':'w',"
		 "'bindMountOptions':['noexec']}]}]",
		 ON(FEATURE, FEATURE, FEATURE)},
		{"", "'initContainers':[{'name':'i','volumeMounts':[{'bindMountOptions':[]}]}]",
		 ON(FITS, FITS, FITS)},
		/* The same rules for nodes, but another need. */
		{"", "'nodeSelector':{}", ON(FITS, FITS, FITS)},
	};

	(void)state;
	put_status("a", ",'declaredFeatures':['Other','RestartAllContainersOnContainerExits']");
	put_status("b", ",'declaredFeatures':['RestartAllContainersOnContainerExits',"
			"'UserNamespacesHostNetworkSupport']");
	put_status("c", ",'declaredFeatures':['Other',7]");
	CHECK(rows);
}

/* A node that declares a feature later takes the pod: the next view is followed. */
static void a_feature_that_is_declared_later_counts(void **state)
{
	struct view *next;

	(void)state;
	put_status("a", "");
	place_fixture_pod(&f, "asked", "", "", RULES("RestartAllContainers"));
	place_fixture_build(&f);
	assert_string_equal(place_fixture_ask(f.place, "asked", "a"), FEATURE);
	put_status("a", ",'declaredFeatures':['RestartAllContainersOnContainerExits']");
	next = place_fixture_view(&f, NULL, 0);
	assert_true(place_update(f.place, next, 0));
	view_drop(next);
	assert_string_equal(place_fixture_ask(f.place, "asked", "a"), FITS);
}

static void nodes_that_are_about_to_change_take_no_pods(void **state)
{
	static const struct row rows[] = {
		{"", "", ON(FITS, FITS, "NodeGone")},
		{"", TOLERATE("'operator':'Exists'"), ON(FITS, FITS, "NodeGone")},
	};
	struct place_options planner;
	struct error error;
	struct place *place;
	struct view *v;

	(void)state;
	put_status("a", ",'conditions':[{'type':'Ready','status':'True'},{'type':"
			"'MaintenancePlanned','status':'True'}]");
	put_status("b", ",'conditions':[{'type':'Drained','status':'False'},{'type':"
			"'DrainInProgress','status':'Unknown'}]");
	put_status("c", ",'conditions':[{'type':'DrainInProgress','status':'True'}]");
	CHECK(rows);
	place_explain(f.place, place_find_pod(f.place, "default", "asked"), 2, &error);
	assert_string_equal(error.text, "NodeGone: node c has the condition DrainInProgress");
	v = place_fixture_view(&f, NULL, 0);
	place_options_default(&planner);
	planner.plans = true;
	place = place_new(v, &planner);
	assert_true(place_is_gone(place, 0));
	assert_false(place_is_gone(place, 1));
	assert_true(place_is_gone(place, 2));
	place_free(place);
	view_drop(v);
}

static void cordoned_nodes_are_for_those_that_tolerate_it(void **state)
{
	static const struct row rows[] = {
		{"", "", ON("NodeUnschedulable", FITS, FITS)},
		{"", TOLERATE("'key':'node.kubernetes.io/unschedulable','operator':'Exists'"),
		 ON(FITS, FITS, FITS)},
		{"",
		 TOLERATE("'key':'node.kubernetes.io/unschedulable','operator':'Exists',"
			  "'effect':'NoExecute'"),
		 ON("NodeUnschedulable", FITS, FITS)},
	};

	(void)state;
	put_nodes();
	place_fixture_node(&f, "a", "", "'unschedulable':true");
	CHECK(rows);
}

/* --- node affinity */

#define AFFINITY "NodeAffinity"
#define REQUIRE(terms)                                                                             \
	"'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"           \
	"'nodeSelectorTerms':[" terms "]}}}"
#define EXPR(key, op, values)                                                                      \
	"{'matchExpressions':[{'key':'" key "','operator':'" op "','values':[" values "]}]}"
#define FIELD(op, values)                                                                          \
	"{'matchFields':[{'key':'metadata.name','operator':'" op "','values':[" values "]}]}"

#define NAME_63 "123456789-123456789-123456789-123456789-123456789-123456789-123"

static void labels_must_match(void **state)
{
	static const struct row rows[] = {
		{"", "'nodeSelector':{'zone':'1'}", ON(FITS, FITS, AFFINITY)},
		{"", "'nodeSelector':{'zone':'1','odd':'x'}", ON(FITS, AFFINITY, AFFINITY)},
		{"", "'nodeSelector':{'kubernetes.io/hostname':'b'}", ON(AFFINITY, FITS, AFFINITY)},
		{"", REQUIRE(EXPR("zone", "In", "'2','3'")), ON(AFFINITY, AFFINITY, FITS)},
		{"", REQUIRE(EXPR("zone", "NotIn", "'2'")), ON(FITS, FITS, AFFINITY)},
		{"", REQUIRE(EXPR("odd", "NotIn", "'x'")), ON(AFFINITY, FITS, FITS)},
		{"", REQUIRE(EXPR("odd", "Exists", "")), ON(FITS, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("odd", "DoesNotExist", "")), ON(AFFINITY, FITS, FITS)},
		{"", REQUIRE(EXPR("size", "Gt", "'5'")), ON(AFFINITY, FITS, AFFINITY)},
		{"", REQUIRE(EXPR("size", "Lt", "'5'")), ON(AFFINITY, AFFINITY, FITS)},
		{"", REQUIRE(EXPR("odd", "Gt", "'0'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("nothing", "Lt", "'9'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		/* Terms are alternatives, expressions are not. */
		{"", REQUIRE(EXPR("zone", "In", "'2'") "," EXPR("odd", "Exists", "")),
		 ON(FITS, AFFINITY, FITS)},
		{"",
		 REQUIRE("{'matchExpressions':[{'key':'zone','operator':'In','values':['1']},"
			 "{'key':'odd','operator':'DoesNotExist'}]}"),
		 ON(AFFINITY, FITS, AFFINITY)},
		{"", REQUIRE(FIELD("In", "'c'")), ON(AFFINITY, AFFINITY, FITS)},
		{"", REQUIRE(FIELD("NotIn", "'c'")), ON(FITS, FITS, AFFINITY)},
		/* What asks for nothing matches nothing. */
		{"", REQUIRE("{}"), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(""), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE("{}," EXPR("zone", "In", "'2'")), ON(AFFINITY, AFFINITY, FITS)},
		/* Both must hold. */
		{"", "'nodeSelector':{'zone':'1'}," REQUIRE(EXPR("odd", "DoesNotExist", "")),
		 ON(AFFINITY, FITS, AFFINITY)},
		{"", REQUIRE(EXPR("zone", "Like", "'1'")), ON("Unknown", "Unknown", "Unknown")},
		/* No label can be so: the whole term matches nothing, and another may. */
		{"", REQUIRE(EXPR("size", "Gt", "'five'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("size", "Gt", "'-1'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("zone", "In", "'1','a b'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("zone", "NotIn", "'.'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("odd", "NotIn", "''")), ON(FITS, FITS, FITS)},
		{"", REQUIRE(EXPR("size", "Gt", "'-1'") "," EXPR("zone", "In", "'2'")),
		 ON(AFFINITY, AFFINITY, FITS)},
		{"", REQUIRE(EXPR("size", "Gt", "'1','2'")), ON("Unknown", "Unknown", "Unknown")},
		{"", REQUIRE(EXPR("zone", "In", "")), ON("Unknown", "Unknown", "Unknown")},
		{"", "'nodeSelector':{'zone':1}", ON("Unknown", "Unknown", "Unknown")},
		{"", "'affinity':{'moonAffinity':{}}", ON("Unknown", "Unknown", "Unknown")},
		{"", "'affinity':{'moonAffinity':null}", ON(FITS, FITS, FITS)},
		/* A name may be 63 characters long. */
		{"", REQUIRE(EXPR("zone", "NotIn", "'" NAME_63 "'")), ON(FITS, FITS, FITS)},
		{"", REQUIRE(EXPR("zone", "NotIn", "'" NAME_63 "4'")),
		 ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("zone", "NotIn", "'A-Z.9_a'")), ON(FITS, FITS, FITS)},
		{"", REQUIRE(EXPR("zone", "NotIn", "'a-'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("zone", "NotIn", "'a/b'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("zone", "NotIn", "'{a}'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("zone", "NotIn", "'@'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("zone", "NotIn", "'['")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("size", "Lt", "'+'")), ON(AFFINITY, AFFINITY, AFFINITY)},
		{"", REQUIRE(EXPR("size", "Lt", "'6'")), ON(FITS, AFFINITY, FITS)},
		{"",
		 "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':"
		 "[{'weight':1}]}}",
		 ON(FITS, FITS, FITS)},
	};

	(void)state;
	put_nodes();
	CHECK(rows);
}

/* --- what nobody here can judge */

#define PORTS(list) "'containers':[{'name':'c','ports':[" list "]}]"
#define PORT	    "NodePorts"

static void the_field_that_cannot_be_judged_is_named(void **state)
{
	static const struct {
		const char *spec, *named;
	} rows[] = {
		{"'resourceClaims':[{'name':'gpu'}]", "spec.resourceClaims"},
		{"'schedulingGates':[{'name':'wait'}]", "spec.schedulingGates"},
		{TOLERATE("'key':'k','operator':'Like'"), "spec.tolerations[0].operator"},
		{TOLERATE("'key':'k','operator':'Lt'"), "spec.tolerations[0].value"},
		{REQUIRE(EXPR("zone", "Like", "'1'")),
		 "nodeSelectorTerms[0]: matchExpressions[0]: operator"},
		{"'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone',"
		 "'whenUnsatisfiable':'Maybe'}]",
		 "spec.topologySpreadConstraints[0].whenUnsatisfiable"},
		{"'volumes':[{'name':'v','rbd':{'image':'i'}}]", "spec.volumes[0].rbd"},
		{"'volumes':7", "spec.volumes: must be a list"},
		{"'schedulingGates':7", "spec.schedulingGates"},
		{"'tolerations':7", "spec.tolerations: must be a list"},
		{REQUIRE("{'matchExpressions':7}"), "matchExpressions: must be a list"},
		{REQUIRE("{'matchExpressions':[{'key':'zone','operator':'Exists','more':1}]}"),
		 "nodeSelectorTerms[0]: matchExpressions[0]: more"},
		{REQUIRE("{'matchFields':[{'key':'metadata.name','operator':'In','values':["
			 "'a','b']}]}"),
		 "matchFields[0]: values: must be one in matchFields"},
		{PORTS("{'hostPort':'80'}"), ".ports: hostPort must be from 1 to 65535"},
		{PORTS("{'hostPort':-1}"), ".ports: hostPort must be from 1 to 65535"},
		{PORTS("{'hostPort':65536}"), ".ports: hostPort must be from 1 to 65535"},
		{PORTS("{'hostPort':80.5}"), ".ports: hostPort must be from 1 to 65535"},
		{PORTS("{'hostPort':80,'protocol':'tcp'}"), "protocol must be TCP, UDP or SCTP"},
		{PORTS("{'hostPort':80,'protocol':7}"), "protocol must be TCP, UDP or SCTP"},
		{PORTS("{'hostPort':80,'hostIP':7}"), "hostIP must be a string"},
	};

	(void)state;
	put_nodes();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error error = {""};

		place_fixture_pod(&f, "asked", "", "", rows[i].spec);
		place_fixture_build(&f);
		if (place_explain(f.place, place_find_pod(f.place, "default", "asked"), 0,
				  &error) != PLACE_UNKNOWN ||
		    !strstr(error.text, rows[i].named))
			fail_msg("%s does not name %s", error.text, rows[i].named);
	}
}

/* --- ports */

static void ports_of_the_host_are_taken_once(void **state)
{
	static const struct row rows[] = {
		{"", PORTS("{'hostPort':80}"), ON(PORT, PORT, FITS)},
		{"", PORTS("{'hostPort':80,'protocol':'UDP'}"), ON(FITS, FITS, FITS)},
		{"", PORTS("{'hostPort':80,'protocol':'SCTP'}"), ON(FITS, FITS, FITS)},
		{"", PORTS("{'hostPort':80,'protocol':''}"), ON(PORT, PORT, FITS)},
		{"", PORTS("{'hostPort':65535}"), ON(FITS, FITS, FITS)},
		{"", PORTS("{'hostPort':81}"), ON(FITS, FITS, FITS)},
		{"", PORTS("{'hostPort':80,'hostIP':'10.0.0.1'}"), ON(PORT, PORT, FITS)},
		{"", PORTS("{'hostPort':80,'hostIP':'10.0.0.2'}"), ON(PORT, FITS, FITS)},
		{"", PORTS("{'hostPort':80,'hostIP':'0.0.0.0'}"), ON(PORT, PORT, FITS)},
		{"", PORTS("{'containerPort':80}"), ON(FITS, FITS, FITS)},
		{"", "'initContainers':[{'name':'i','ports':[{'hostPort':80}]}]",
		 ON(FITS, FITS, FITS)},
		{"",
		 "'initContainers':[{'name':'i','restartPolicy':'Always','ports':[{'hostPort':80}]}"
		 "]",
		 ON(PORT, PORT, FITS)},
	};

	(void)state;
	put_nodes();
	place_fixture_pod(&f, "any", "a", "", PORTS("{'hostPort':80,'protocol':'TCP'}"));
	place_fixture_pod(&f, "one", "b", "", PORTS("{'hostPort':80,'hostIP':'10.0.0.1'}"));
	CHECK(rows);
}

static void nodes_that_are_no_more_are_no_destination(void **state)
{
	static const struct row rows[] = {{"", "", ON("NodeGone", "NodeGone", FITS)}};

	(void)state;
	place_fixture_put(&f, OBJECT_NODE,
			  "{'metadata':{'name':'a','deletionTimestamp':'2026-01-01T00:00:00Z'},"
			  "'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':'110'}}}");
	place_fixture_pod(&f, "orphan", "b", "", "");
	place_fixture_node(&f, "c", "", "");
	CHECK(rows);
}

static void a_node_drained_by_other_means_is_no_destination(void **state)
{
	static const struct row rows[] = {{"", "", ON("NodeGone", FITS, "NodeGone")}};
	static const char *const nodes[][2] = {{"a", "true"}, {"b", "false"}, {"c", ""}};

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		char *json = mem_printf("{'metadata':{'name':'%s','annotations':{"
					"'evenkeel.io/draining':'%s'}},'status':{'allocatable':{"
					"'cpu':'4','memory':'8Gi','pods':'110'}}}",
					nodes[i][0], nodes[i][1]);

		place_fixture_put(&f, OBJECT_NODE, json);
		free(json);
	}
	CHECK(rows);
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(amounts_must_be_free),
		test(a_node_given_away_twice_takes_what_asks_for_nothing),
		test(pods_that_ended_take_nothing),
		test(taints_must_be_tolerated),
		test(numbers_of_taints_are_compared),
		test(needed_features_are_declared),
		test(a_feature_that_is_declared_later_counts),
		test(nodes_that_are_about_to_change_take_no_pods),
		test(cordoned_nodes_are_for_those_that_tolerate_it),
		test(labels_must_match),
		test(the_field_that_cannot_be_judged_is_named),
		test(ports_of_the_host_are_taken_once),
		test(nodes_that_are_no_more_are_no_destination),
		test(a_node_drained_by_other_means_is_no_destination),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
