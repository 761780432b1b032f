/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that ask about other pods and about volumes, by tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/consistent.h"
#include "tests/model_fixture.h"
#include "tests/place_fixture.h"

static struct place_fixture f;

static int setup(void **state)
{
	(void)state;
	place_fixture_init(&f);
	/* a and b in zone 1, c in zone 2, d in none. */
	place_fixture_node(&f, "a", "'zone':'1'", "");
	place_fixture_node(&f, "b", "'zone':'1'", "");
	place_fixture_node(&f, "c", "'zone':'2'", "");
	place_fixture_node(&f, "d", "", "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	place_fixture_fini(&f);
	return 0;
}

/* What the pod says, and on which of a, b, c, d it fits: "ab-d". */
struct row {
	const char *labels, *spec, *fits;
};

static void check_rows(const struct row *rows, size_t count, const char *filter)
{
	static const char *const nodes[] = {"a", "b", "c", "d"};

	for (size_t i = 0; i < count; i++) {
		struct error error;

		place_fixture_pod(&f, "asked", "", rows[i].labels, rows[i].spec);
		place_fixture_build(&f);
		for (int n = 0; n < 4; n++) {
			const char *want = rows[i].fits[n] == '-' ? filter : "fits";
			const char *got = place_fixture_ask(f.place, "asked", nodes[n]);

			if (strcmp(got, want) != 0)
				fail_msg("row %zu on %s: %s and not %s", i, nodes[n], got, want);
		}
		if (!place_is_consistent(f.place, &error))
			fail_msg("row %zu: %s", i, error.text);
	}
}

#define CHECK(rows, filter) check_rows(rows, sizeof(rows) / sizeof((rows)[0]), filter)

#define REQUIRED      "requiredDuringSchedulingIgnoredDuringExecution"
#define ANTI(terms)   "'affinity':{'podAntiAffinity':{'" REQUIRED "':[" terms "]}}"
#define WITH(terms)   "'affinity':{'podAffinity':{'" REQUIRED "':[" terms "]}}"
#define TERM(key, by) "{'topologyKey':'" key "','labelSelector':{'matchLabels':{" by "}}}"
#define MORE(key, by, more)                                                                        \
	"{'topologyKey':'" key "','labelSelector':{'matchLabels':{" by "}}," more "}"
#define HOST  "kubernetes.io/hostname"
#define WEB   "'app':'web'"
#define CACHE "'app':'cache'"

static void pods_keep_away_from_those_they_name(void **state)
{
	static const struct row rows[] = {
		{"", ANTI(TERM(HOST, WEB)), "-bcd"},
		{"", ANTI(TERM("zone", WEB)), "--cd"},
		{"", ANTI(TERM("zone", "'app':'none'")), "abcd"},
		/* A key that nothing has holds nothing apart. */
		{"", ANTI(TERM("rack", WEB)), "abcd"},
		{"", ANTI("{'topologyKey':'zone'}"), "abcd"},
		{"", ANTI("{'topologyKey':'zone','labelSelector':{}}"), "---d"},
		{"",
		 ANTI("{'topologyKey':'zone','labelSelector':{'matchExpressions':["
		      "{'key':'app','operator':'NotIn','values':['web']}]}}"),
		 "ab-d"},
		/* Any of the terms. */
		{"", ANTI(TERM(HOST, WEB) "," TERM("zone", CACHE)), "-b-d"},
		{"", ANTI(MORE("zone", WEB, "'namespaces':['other']")), "abcd"},
		{"", ANTI(MORE("zone", WEB, "'namespaces':['other','default']")), "--cd"},
		{"", ANTI(MORE("zone", WEB, "'namespaceSelector':{}")), "--cd"},
		{"", ANTI(MORE("zone", WEB, "'namespaceSelector':{'matchLabels':{'team':'x'}}")),
		 "--cd"},
		{"", ANTI(MORE("zone", WEB, "'namespaceSelector':{'matchLabels':{'team':'y'}}")),
		 "abcd"},
		{"'v':'2'", ANTI(MORE("zone", WEB, "'matchLabelKeys':['v']")), "abcd"},
		{"'v':'1'", ANTI(MORE("zone", WEB, "'matchLabelKeys':['v']")), "--cd"},
		{"'u':'1'", ANTI(MORE("zone", WEB, "'matchLabelKeys':['v']")), "--cd"},
		{"'v':'1'", ANTI(MORE("zone", WEB, "'mismatchLabelKeys':['v']")), "abcd"},
		{"'v':'2'", ANTI(MORE("zone", WEB, "'mismatchLabelKeys':['v']")), "--cd"},
	};

	(void)state;
	place_fixture_put(&f, OBJECT_NAMESPACE,
			  "{'metadata':{'name':'default','labels':{'team':'x'}}}");
	place_fixture_pod(&f, "web", "a", WEB ",'v':'1'", "");
	place_fixture_pod(&f, "cache", "c", CACHE, "");
	CHECK(rows, "InterPodAntiAffinity");
}

static void pods_that_are_there_keep_others_away(void **state)
{
	static const struct row rows[] = {
		{WEB, "", "--cd"},
		{CACHE, "", "abcd"},
		/* Both ways at once. */
		{WEB, ANTI(TERM(HOST, CACHE)), "---d"},
	};

	(void)state;
	place_fixture_pod(&f, "shy", "a", "", ANTI(TERM("zone", WEB)));
	place_fixture_pod(&f, "cache", "c", CACHE, "");
	CHECK(rows, "InterPodAntiAffinity");
}

/* Of a term that nobody can read it is feared that it means everybody. */
static void a_term_that_cannot_be_read_keeps_all_away(void **state)
{
	static const struct row rows[] = {{CACHE, "", "--cd"}};

	(void)state;
	place_fixture_pod(&f, "odd", "a", "",
			  ANTI("{'topologyKey':'zone','labelSelector':{'matchExpressions':["
			       "{'key':'app','operator':'Like','values':['web']}]}}"));
	CHECK(rows, "InterPodAntiAffinity");
}

static void pods_go_where_those_are_they_name(void **state)
{
	static const struct row rows[] = {
		{"", WITH(TERM("zone", WEB)), "ab--"},
		{"", WITH(TERM(HOST, WEB)), "a---"},
		/* All terms; pods count only where they match all of them. */
		{"", WITH(TERM("zone", WEB) "," TERM("zone", CACHE)), "----"},
		{"", WITH(TERM("zone", WEB) "," TERM(HOST, WEB)), "a---"},
		{"", WITH(TERM("zone", WEB) "," TERM("zone", "'tier':'1'")), "ab--"},
		{"", WITH(TERM("zone", "'app':'none'")), "----"},
		/* The first of its kind goes where the key is. */
		{"'app':'none'", WITH(TERM("zone", "'app':'none'")), "abc-"},
		{"'app':'none'",
		 WITH(TERM("zone", "'app':'none'") "," TERM("rack", "'app':'none'")), "----"},
		{"'app':'none'", WITH(TERM("zone", "'app':'none'") "," TERM("zone", WEB)), "----"},
		/* Who is not the first goes to the others. */
		{CACHE, WITH(TERM("zone", CACHE)), "--c-"},
		{"", WITH("{'topologyKey':'zone'}"), "----"},
	};

	(void)state;
	place_fixture_pod(&f, "web", "a", WEB ",'tier':'1'", "");
	place_fixture_pod(&f, "cache", "c", CACHE, "");
	CHECK(rows, "InterPodAffinity");
}

#define SPREAD(members) "'topologySpreadConstraints':[" members "]"
#define HARD(skew, key, more)                                                                      \
	"{'maxSkew':" #skew ",'topologyKey':'" key "','whenUnsatisfiable':'DoNotSchedule',"        \
	"'labelSelector':{'matchLabels':{" WEB "}}" more "}"

static void pods_are_spread(void **state)
{
	static const struct row rows[] = {
		/* Zone 1 has two, zone 2 none. */
		{WEB, SPREAD(HARD(1, "zone", "")), "--c-"},
		{WEB, SPREAD(HARD(2, "zone", "")), "--c-"},
		{WEB, SPREAD(HARD(3, "zone", "")), "abc-"},
		/* One that does not count itself. */
		{"", SPREAD(HARD(2, "zone", "")), "abc-"},
		{"", SPREAD(HARD(1, "zone", "")), "--c-"},
		/* a has two, b, c and d have none. */
		{WEB, SPREAD(HARD(1, HOST, "")), "-bcd"},
		{WEB, SPREAD(HARD(1, "rack", "")), "----"},
		/* Three domains wanted, two there: the least counts as none. */
		{WEB, SPREAD(HARD(1, "zone", ",'minDomains':3")), "--c-"},
		/* Nodes that it may not use are no domains: only zone 1 is left. */
		{WEB, "'nodeSelector':{'zone':'1'}," SPREAD(HARD(1, "zone", "")), "ab??"},
		{WEB,
		 "'nodeSelector':{'zone':'1'}," SPREAD(
			 HARD(1, "zone", ",'nodeAffinityPolicy':'Ignore'")),
		 "--??"},
		{WEB, "'nodeSelector':{'zone':'1'}," SPREAD(HARD(1, "zone", ",'minDomains':2")),
		 "--??"},
		{WEB ",'v':'9'", SPREAD(HARD(1, "zone", ",'matchLabelKeys':['v']")), "abc-"},
		/* Both must hold. */
		{WEB, SPREAD(HARD(3, "zone", "") "," HARD(1, HOST, "")), "-bc-"},
		{WEB,
		 SPREAD("{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':'ScheduleAnyway',"
			"'labelSelector':{'matchLabels':{" WEB "}}}"),
		 "abcd"},
		{WEB,
		 SPREAD("{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':'DoNotSchedule'}"),
		 "abc-"},
	};

	(void)state;
	place_fixture_pod(&f, "web1", "a", WEB, "");
	place_fixture_pod(&f, "web2", "a", WEB, "");
	/* One in deletion counts no more, nor does another namespace's. */
	place_fixture_put(&f, OBJECT_POD,
			  "{'metadata':{'namespace':'default','name':'late','labels':{" WEB
			  "},'deletionTimestamp':'2026-01-01T00:00:00Z'},'spec':{'nodeName':'c','"
			  "containers':[{'name':'c'}]}}");
	place_fixture_put(&f, OBJECT_POD,
			  "{'metadata':{'namespace':'other','name':'web','labels':{" WEB
			  "}},'spec':{'nodeName':'c','containers':[{'name':'c'}]}}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static const char *const nodes[] = {"a", "b", "c", "d"};

		place_fixture_pod(&f, "asked", "", rows[i].labels, rows[i].spec);
		place_fixture_build(&f);
		for (int n = 0; n < 4; n++) {
			const char *got = place_fixture_ask(f.place, "asked", nodes[n]);
			char mark = rows[i].fits[n];
			const char *want = mark == '?'	 ? "NodeAffinity"
					   : mark == '-' ? "PodTopologySpread"
							 : "fits";

			if (strcmp(got, want) != 0)
				fail_msg("row %zu on %s: %s and not %s", i, nodes[n], got, want);
		}
	}
}

/* Zone 1 has twenty, zone 2 nineteen: more than a count has room for at first. */
static void many_pods_are_spread(void **state)
{
	static const struct row rows[] = {
		{WEB, SPREAD(HARD(1, "zone", "")), "--c-"},
		{WEB, SPREAD(HARD(2, "zone", "")), "abc-"},
	};
	char name[16];

	(void)state;
	for (int i = 0; i < 39; i++) {
		snprintf(name, sizeof(name), "web-%d", i);
		place_fixture_pod(&f, name, i % 2 ? "c" : "a", WEB, "");
	}
	CHECK(rows, "PodTopologySpread");
}

static void tainted_nodes_are_domains_unless_taints_are_honored(void **state)
{
	(void)state;
	place_fixture_node(&f, "c", "'zone':'2'", "'taints':[{'key':'k','effect':'NoSchedule'}]");
	place_fixture_pod(&f, "web1", "a", WEB, "");
	place_fixture_pod(&f, "asked", "", WEB, SPREAD(HARD(1, "zone", "")));
	place_fixture_build(&f);
	assert_string_equal(place_fixture_ask(f.place, "asked", "a"), "PodTopologySpread");
	place_fixture_pod(&f, "asked", "", WEB,
			  SPREAD(HARD(1, "zone", ",'nodeTaintsPolicy':'Honor'")));
	place_fixture_build(&f);
	assert_string_equal(place_fixture_ask(f.place, "asked", "a"), "fits");
	assert_string_equal(place_fixture_ask(f.place, "asked", "c"), "TaintToleration");
}

/* --- volumes */

#define CLAIM(name) "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'" name "'}}]"

static void put_claim(const char *name, const char *spec, const char *status)
{
	char json[512];

	snprintf(json, sizeof(json),
		 "{'metadata':{'namespace':'default','name':'%s'},'spec':{%s},'status':{%s}}", name,
		 spec, status);
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME_CLAIM, json);
}

static void volumes_bind_pods_to_places(void **state)
{
	static const struct row rows[] = {
		{"", CLAIM("local"), "--c-"},
		/* d has no zone at all, and so no wrong one. */
		{"", CLAIM("zonal"), "ab-d"},
		{"", CLAIM("beta"), "ab-d"},
		{"", CLAIM("anywhere"), "abcd"},
		{"", CLAIM("later"), "--c-"},
		{"", CLAIM("no-such-claim"), "----"},
		{"", CLAIM("lost"), "----"},
		{"", CLAIM("dangling"), "----"},
		{"", CLAIM("immediate"), "----"},
		{"", CLAIM("mine"), "----"},
	};

	(void)state;
	place_fixture_node(&f, "a", "'zone':'1','topology.kubernetes.io/zone':'1'", "");
	place_fixture_node(&f, "b", "'zone':'1','topology.kubernetes.io/zone':'1b'", "");
	place_fixture_node(&f, "c", "'zone':'2','topology.kubernetes.io/zone':'2'", "");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME,
			  "{'metadata':{'name':'pv-local'},'spec':{'nodeAffinity':{'required':{"
			  "'nodeSelectorTerms':[{'matchExpressions':[{'key':'" HOST
			  "','operator':'In','values':['c']}]}]}}}}");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME,
			  "{'metadata':{'name':'pv-zonal','labels':{'topology.kubernetes.io/zone':"
			  "'1__1b'}},'spec':{}}");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME,
			  "{'metadata':{'name':'pv-beta','labels':{"
			  "'failure-domain.beta.kubernetes.io/zone':'1__1b'}},'spec':{}}");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME, "{'metadata':{'name':'pv'},'spec':{}}");
	place_fixture_put(&f, OBJECT_STORAGE_CLASS,
			  "{'metadata':{'name':'wait'},'provisioner':'p','volumeBindingMode':"
			  "'WaitForFirstConsumer','allowedTopologies':[{'matchLabelExpressions':[{"
			  "'key':'zone','values':['2','3']}]}]}");
	place_fixture_put(&f, OBJECT_STORAGE_CLASS,
			  "{'metadata':{'name':'now'},'provisioner':'p'}");
	put_claim("local", "'volumeName':'pv-local'", "");
	put_claim("zonal", "'volumeName':'pv-zonal'", "");
	put_claim("beta", "'volumeName':'pv-beta'", "");
	put_claim("anywhere", "'volumeName':'pv'", "");
	put_claim("dangling", "'volumeName':'gone'", "");
	put_claim("lost", "'volumeName':'pv'", "'phase':'Lost'");
	put_claim("later", "'storageClassName':'wait'", "");
	put_claim("immediate", "'storageClassName':'now'", "");
	put_claim("mine", "'volumeName':'pv','accessModes':['ReadWriteOncePod']", "");
	place_fixture_pod(&f, "user", "b", "", CLAIM("mine"));
	CHECK(rows, "VolumeBinding");
}

#define CLAIMS(a, b)                                                                               \
	"'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'" a                          \
	"'}},{'name':'w','persistentVolumeClaim':{'claimName':'" b "'}}]"

static void put_attached(const char *name, const char *driver)
{
	char json[256];

	snprintf(json, sizeof(json),
		 "{'metadata':{'name':'pv-%s'},'spec':{'csi':{'driver':'%s','volumeHandle':'h'}}}",
		 name, driver);
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME, json);
	snprintf(json, sizeof(json), "'volumeName':'pv-%s'", name);
	put_claim(name, json, "");
}

/*
 * Node a takes two volumes of the driver and has one, which two pods use; b takes none, c any
 * number; of d nothing is known.
 */
static void drivers_attach_so_many_volumes(void **state)
{
	static const struct row rows[] = {
		{"", CLAIM("one"), "a-cd"},	    {"", CLAIM("two"), "a-cd"},
		{"", CLAIM("later"), "a-cd"},	    {"", CLAIMS("one", "two"), "a-cd"},
		{"", CLAIMS("two", "two"), "a-cd"}, {"", CLAIMS("two", "later"), "--cd"},
		{"", CLAIM("foreign"), "abcd"},	    {"", CLAIM("plain"), "abcd"},
	};
	struct error error;

	(void)state;
	place_fixture_put(&f, OBJECT_CSI_NODE,
			  "{'metadata':{'name':'a'},'spec':{'drivers':[{'name':'other'},{'name':"
			  "'csi','allocatable':{'count':2}}]}}");
	place_fixture_put(&f, OBJECT_CSI_NODE,
			  "{'metadata':{'name':'b'},'spec':{'drivers':[{'name':'csi','allocatable':"
			  "{'count':0}}]}}");
	place_fixture_put(&f, OBJECT_CSI_NODE,
			  "{'metadata':{'name':'c'},'spec':{'drivers':[{'name':'csi'}]}}");
	place_fixture_put(&f, OBJECT_STORAGE_CLASS,
			  "{'metadata':{'name':'wait'},'provisioner':'csi','volumeBindingMode':"
			  "'WaitForFirstConsumer'}");
	put_attached("one", "csi");
	put_attached("two", "csi");
	put_attached("foreign", "other");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME, "{'metadata':{'name':'pv'},'spec':{}}");
	put_claim("plain", "'volumeName':'pv'", "");
	put_claim("later", "'storageClassName':'wait'", "");
	place_fixture_pod(&f, "first", "a", "", CLAIM("one"));
	place_fixture_pod(&f, "second", "a", "", CLAIMS("one", "foreign"));
	CHECK(rows, "NodeVolumeLimits");
	place_fixture_pod(&f, "asked", "", "", CLAIMS("two", "later"));
	place_fixture_build(&f);
	place_explain(f.place, place_find_pod(f.place, "default", "asked"), 0, &error);
	assert_string_equal(error.text,
			    "NodeVolumeLimits: driver csi: 1 of at most 2 volumes are in "
			    "use on the node");
}

/* A claim that cannot be used by a new pod still takes its place while a pod has it. */
static void claims_that_are_going_count(void **state)
{
	static const struct row rows[] = {{"", CLAIM("two"), "-bcd"}};

	(void)state;
	place_fixture_put(&f, OBJECT_CSI_NODE,
			  "{'metadata':{'name':'a'},'spec':{'drivers':[{'name':'csi','allocatable':"
			  "{'count':1}}]}}");
	put_attached("one", "csi");
	put_attached("two", "csi");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME_CLAIM,
			  "{'metadata':{'namespace':'default','name':'one','deletionTimestamp':"
			  "'2026-01-01T00:00:00Z'},'spec':{'volumeName':'pv-one'}}");
	place_fixture_pod(&f, "first", "a", "", CLAIM("one"));
	CHECK(rows, "NodeVolumeLimits");
}

#define NEED(size) "'resources':{'requests':{'storage':'" size "'}}"
#define ONCE	   "'accessModes':['ReadWriteOnce']"

static void put_class(const char *name, const char *provisioner, const char *mode)
{
	char json[256];

	snprintf(json, sizeof(json),
		 "{'metadata':{'name':'%s'},'provisioner':'%s','volumeBindingMode':'%s'}", name,
		 provisioner, mode);
	place_fixture_put(&f, OBJECT_STORAGE_CLASS, json);
}

/* Of class "none"; host: "" for one that can be used anywhere. */
static void put_volume(const char *name, const char *host, const char *size, const char *more)
{
	char json[768], reach[256] = "";

	if (*host)
		snprintf(reach, sizeof(reach),
			 ",'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':"
			 "[{'key':'" HOST "','operator':'In','values':['%s']}]}]}}",
			 host);
	snprintf(json, sizeof(json),
		 "{'metadata':{'name':'%s','labels':{'disk':'%s'}},'spec':{'storageClassName':"
		 "'none'," ONCE ",'capacity':{'storage':'%s'}%s%s},'status':{'phase':'Available'}}",
		 name, name, size, reach, more);
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME, json);
}

static void put_local_volumes(void)
{
	put_class("none", "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
	put_volume("small-b", "b", "1Gi", "");
	put_volume("large-c", "c", "5Gi", "");
	put_volume("theirs", "d", "9Gi", ",'claimRef':{'namespace':'default','name':'reserved'}");
	put_volume("raw", "a", "9Gi", ",'volumeMode':'Block'");
	put_volume("released", "a", "9Gi", "");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME,
			  "{'metadata':{'name':'released'},'spec':{'storageClassName':'none'," ONCE
			  ",'capacity':{'storage':'9Gi'}},'status':{'phase':'Released'}}");
}

static void a_claim_that_waits_needs_a_volume_that_suits_or_one_that_can_be_made(void **state)
{
	static const struct row rows[] = {
		{"", CLAIM("little"), "-bc-"},	  {"", CLAIM("much"), "--c-"},
		{"", CLAIM("too-much"), "----"},  {"", CLAIM("reserved"), "---d"},
		{"", CLAIM("raw"), "a---"},	  {"", CLAIM("labelled"), "--c-"},
		{"", CLAIM("many"), "----"},	  {"", CLAIM("made"), "abcd"},
		{"", CLAIM("chosen"), "-b--"},	  {"", CLAIM("no-class"), "----"},
		{"", CLAIM("strange"), "----"},	  {"", CLAIM("early"), "----"},
		{"", CLAIM("annotated"), "-bc-"}, {"", CLAIM("done"), "--c-"},
	};

	(void)state;
	put_local_volumes();
	put_class("made", "csi.example.com", "WaitForFirstConsumer");
	/* None of these is a volume that suits anybody. */
	put_volume("going", "a", "9Gi", "");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME,
			  "{'metadata':{'name':'going','deletionTimestamp':'2026-01-01T00:00:00Z'},"
			  "'spec':{'storageClassName':'none'," ONCE ",'capacity':{'storage':"
			  "'9Gi'}},'status':{'phase':'Available'}}");
	put_volume("sized", "a", "nine", "");
	put_volume("reached", "", "9Gi", ",'nodeAffinity':{'required':{'nodeSelectorTerms':7}}");
	put_volume("other-s", "a", "9Gi",
		   ",'claimRef':{'namespace':'default','name':'little','uid':'another'}");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME,
			  "{'metadata':{'name':'marked','labels':7},'spec':{'storageClassName':"
			  "'none'," ONCE ",'capacity':{'storage':'9Gi'}},'status':{'phase':"
			  "'Available'}}");
	put_claim("little", "'storageClassName':'none'," ONCE "," NEED("1Gi"), "");
	put_claim("much", "'storageClassName':'none'," ONCE "," NEED("2Gi"), "");
	put_claim("too-much", "'storageClassName':'none'," ONCE "," NEED("6Gi"), "");
	put_claim("reserved", "'storageClassName':'none'," ONCE "," NEED("1Gi"), "");
	put_claim("raw", "'storageClassName':'none','volumeMode':'Block'," ONCE, "");
	put_claim("labelled",
		  "'storageClassName':'none','selector':{'matchLabels':{'disk':'large-c'}}," ONCE,
		  "");
	put_claim("many", "'storageClassName':'none','accessModes':['ReadWriteMany']", "");
	put_claim("made", "'storageClassName':'made'", "");
	put_claim("no-class", NEED("1Gi"), "");
	put_claim("strange", "'storageClassName':'unheard of'", "");
	put_claim("early", "'storageClassName':'none','volumeName':'large-c'", "'phase':'Pending'");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME_CLAIM,
			  "{'metadata':{'namespace':'default','name':'chosen','annotations':{"
			  "'volume.kubernetes.io/selected-node':'b'}},'spec':{'storageClassName':"
			  "'made'}}");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME_CLAIM,
			  "{'metadata':{'namespace':'default','name':'annotated','annotations':{"
			  "'volume.beta.kubernetes.io/storage-class':'none'}},'spec':{" ONCE "}}");
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME_CLAIM,
			  "{'metadata':{'namespace':'default','name':'done','annotations':{"
			  "'pv.kubernetes.io/bind-completed':'yes'}},'spec':{'volumeName':"
			  "'large-c'},'status':{'phase':'Pending'}}");
	CHECK(rows, "VolumeBinding");
}

static void volumes_nobody_can_judge_refuse(void **state)
{
	static const struct model_source away = {.state = SOURCE_FORBIDDEN};
	static const struct row rows[] = {
		{"", CLAIM("searching"), "----"}, {"", CLAIM("bound"), "----"},
		{"", CLAIM("strange"), "----"},	  {"", CLAIM("many"), "----"},
		{"", CLAIM("numbered"), "----"},  {"", CLAIM("selecting"), "----"},
		{"", CLAIM("listed"), "----"},	  {"", CLAIM("termed"), "----"},
	};

	(void)state;
	place_fixture_put(&f, OBJECT_STORAGE_CLASS,
			  "{'metadata':{'name':'listed'},'provisioner':'p','volumeBindingMode':"
			  "'WaitForFirstConsumer','allowedTopologies':7}");
	place_fixture_put(&f, OBJECT_STORAGE_CLASS,
			  "{'metadata':{'name':'termed'},'provisioner':'p','volumeBindingMode':"
			  "'WaitForFirstConsumer','allowedTopologies':[{'moon':1}]}");
	put_claim("numbered", "'storageClassName':'made','accessModes':[7]", "");
	put_claim("selecting", "'storageClassName':'made','selector':{'moon':1}", "");
	put_claim("listed", "'storageClassName':'listed'", "");
	put_claim("termed", "'storageClassName':'termed'", "");
	put_class("none", "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
	put_class("made", "csi.example.com", "WaitForFirstConsumer");
	put_claim("searching", "'storageClassName':'none'", "");
	put_claim("bound", "'volumeName':'pv'", "'phase':'Bound'");
	put_claim("strange", "'storageClassName':'made'," NEED("much"), "");
	put_claim("many", "'storageClassName':'made','accessModes':['Tomorrow']", "");
	model_set_source(f.model, OBJECT_PERSISTENT_VOLUME, &away);
	CHECK(rows, "Unknown");
}

static void the_smallest_volume_is_taken_and_nobody_else_gets_it(void **state)
{
	struct place *p;
	place_mark m;

	(void)state;
	put_local_volumes();
	put_volume("large-b", "b", "5Gi", "");
	put_claim("one", "'storageClassName':'none'," ONCE "," NEED("1Gi"), "");
	put_claim("two", "'storageClassName':'none'," ONCE "," NEED("1Gi"), "");
	put_claim("three", "'storageClassName':'none'," ONCE "," NEED("1Gi"), "");
	place_fixture_pod(&f, "one", "", "", CLAIM("one"));
	place_fixture_pod(&f, "mate", "", "", CLAIM("one"));
	place_fixture_pod(&f, "two", "", "", CLAIM("two"));
	place_fixture_pod(&f, "three", "", "", CLAIM("three"));
	p = place_fixture_build(&f);
	m = place_fork(p);
	place_put(p, place_find_pod(p, "default", "one"), place_find_node(p, "b"));
	assert_string_equal(place_fixture_ask(p, "mate", "b"), "fits");
	assert_string_equal(place_fixture_ask(p, "mate", "c"), "VolumeBinding");
	assert_string_equal(place_fixture_ask(p, "two", "b"), "fits");
	place_put(p, place_find_pod(p, "default", "two"), place_find_node(p, "b"));
	assert_string_equal(place_fixture_ask(p, "three", "b"), "VolumeBinding");
	assert_string_equal(place_fixture_ask(p, "three", "c"), "fits");
	/* Who goes leaves the claim bound. */
	place_take(p, place_find_pod(p, "default", "two"));
	assert_string_equal(place_fixture_ask(p, "three", "b"), "VolumeBinding");
	assert_string_equal(place_fixture_ask(p, "two", "c"), "VolumeBinding");
	place_revert(p, m);
	assert_string_equal(place_fixture_ask(p, "three", "b"), "fits");
	assert_string_equal(place_fixture_ask(p, "mate", "c"), "fits");
}

static void a_volume_that_is_made_stays_where_its_first_pod_went(void **state)
{
	struct place *p;

	(void)state;
	put_class("made", "csi.example.com", "WaitForFirstConsumer");
	put_claim("made", "'storageClassName':'made'", "");
	place_fixture_pod(&f, "first", "", "", CLAIM("made"));
	place_fixture_pod(&f, "second", "", "", CLAIM("made"));
	p = place_fixture_build(&f);
	place_put(p, place_find_pod(p, "default", "first"), place_find_node(p, "c"));
	assert_string_equal(place_fixture_ask(p, "second", "c"), "fits");
	assert_string_equal(place_fixture_ask(p, "second", "a"), "VolumeBinding");
	place_revert(p, 0);
	assert_string_equal(place_fixture_ask(p, "second", "a"), "fits");
}

/*
 * What a plan kept, and nothing can revert any more, is undone by the next view, as a new core of
 * it would have it.
 */
static void a_claim_that_a_plan_bound_waits_again_in_the_next_view(void **state)
{
	struct place *p;
	struct view *v;

	(void)state;
	put_local_volumes();
	put_class("made", "csi.example.com", "WaitForFirstConsumer");
	put_claim("made", "'storageClassName':'made'", "");
	put_claim("little", "'storageClassName':'none'," ONCE "," NEED("1Gi"), "");
	place_fixture_pod(&f, "first", "", "", CLAIM("made"));
	place_fixture_pod(&f, "second", "", "", CLAIM("made"));
	place_fixture_pod(&f, "local", "", "", CLAIM("little"));
	p = place_fixture_build(&f);
	place_put(p, place_find_pod(p, "default", "first"), place_find_node(p, "c"));
	place_put(p, place_find_pod(p, "default", "local"), place_find_node(p, "b"));
	assert_string_equal(place_fixture_ask(p, "second", "a"), "VolumeBinding");
	place_fixture_pod(&f, "third", "", "", CLAIM("little"));
	v = place_fixture_view(&f, NULL, 0);
	place_update(p, v, 0);
	view_drop(v);
	assert_string_equal(place_fixture_ask(p, "second", "a"), "fits");
	assert_string_equal(place_fixture_ask(p, "first", "b"), "fits");
	assert_string_equal(place_fixture_ask(p, "local", "c"), "fits");
	assert_string_equal(place_fixture_ask(p, "third", "b"), "fits");
}

static void a_claim_for_one_pod_is_taken_also_on_a_node_that_nobody_knows(void **state)
{
	struct place *p;

	(void)state;
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME, "{'metadata':{'name':'pv'},'spec':{}}");
	put_claim("mine", "'volumeName':'pv','accessModes':['ReadWriteOncePod']", "");
	place_fixture_pod(&f, "user", "zz-unheard-of", "", CLAIM("mine"));
	place_fixture_pod(&f, "asked", "", "", CLAIM("mine"));
	p = place_fixture_build(&f);
	assert_string_equal(place_fixture_ask(p, "asked", "a"), "VolumeBinding");
}

static void a_claim_for_one_pod_is_free_when_that_pod_goes(void **state)
{
	struct place *p;

	(void)state;
	place_fixture_put(&f, OBJECT_PERSISTENT_VOLUME, "{'metadata':{'name':'pv'},'spec':{}}");
	put_claim("mine", "'volumeName':'pv','accessModes':['ReadWriteOncePod']", "");
	place_fixture_pod(&f, "user", "b", "", CLAIM("mine"));
	place_fixture_pod(&f, "asked", "", "", CLAIM("mine"));
	p = place_fixture_build(&f);
	place_take(p, place_find_pod(p, "default", "user"));
	assert_string_equal(place_fixture_ask(p, "asked", "a"), "fits");
	place_revert(p, 0);
	assert_string_equal(place_fixture_ask(p, "asked", "a"), "VolumeBinding");
}

/* --- what changes keep */

static void a_removed_node_is_still_a_domain_until_it_is_reverted(void **state)
{
	struct place *p;
	place_mark m;

	(void)state;
	place_fixture_pod(&f, "web1", "a", WEB, "");
	place_fixture_pod(&f, "asked", "", WEB, SPREAD(HARD(1, "zone", "")));
	p = place_fixture_build(&f);
	assert_string_equal(place_fixture_ask(p, "asked", "b"), "PodTopologySpread");
	m = place_fork(p);
	place_remove_node(p, place_find_node(p, "c"));
	assert_string_equal(place_fixture_ask(p, "asked", "c"), "NodeGone");
	assert_string_equal(place_fixture_ask(p, "asked", "b"), "PodTopologySpread");
	place_revert(p, m);
	assert_string_equal(place_fixture_ask(p, "asked", "c"), "fits");
}

static void a_daemon_set_s_pod_is_for_its_own_node(void **state)
{
	struct place *p;

	(void)state;
	model_put(f.model, model_fixture_pod(&(struct model_fixture_pod){
				   .name = "agent", .node = "a", .owner_kind = "DaemonSet"}));
	p = place_fixture_build(&f);
	place_take(p, place_find_pod(p, "default", "agent"));
	assert_string_equal(place_fixture_ask(p, "agent", "a"), "fits");
	assert_string_equal(place_fixture_ask(p, "agent", "b"), "NodeAffinity");
}

/* Whatever comes later is counted as if it had been there from the start. */
static void a_pod_that_is_added_meets_those_that_are_there(void **state)
{
	struct kube_pod *record = place_fixture_record("extra", "", CACHE, ANTI(TERM("zone", WEB)));
	struct place *p;
	struct error error;
	place_pod extra;

	(void)state;
	place_fixture_pod(&f, "web", "a", WEB, "");
	place_fixture_pod(&f, "asked", "", WEB, "");
	p = place_fixture_build(&f);
	extra = place_add_pod(p, record);
	object_drop(&record->object);
	assert_int_equal(place_check(p, extra, place_find_node(p, "b")), PLACE_ANTI_AFFINITY);
	place_put(p, extra, place_find_node(p, "c"));
	assert_string_equal(place_fixture_ask(p, "asked", "c"), "InterPodAntiAffinity");
	assert_true(place_is_consistent(p, &error));
	place_revert(p, 0);
	assert_string_equal(place_fixture_ask(p, "asked", "c"), "fits");
	assert_string_equal(place_pod_record(p, extra)->object.name, "extra");
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(pods_keep_away_from_those_they_name),
		test(pods_that_are_there_keep_others_away),
		test(a_term_that_cannot_be_read_keeps_all_away),
		test(pods_go_where_those_are_they_name),
		test(pods_are_spread),
		test(many_pods_are_spread),
		test(tainted_nodes_are_domains_unless_taints_are_honored),
		test(drivers_attach_so_many_volumes),
		test(claims_that_are_going_count),
		test(volumes_bind_pods_to_places),
		test(a_claim_that_waits_needs_a_volume_that_suits_or_one_that_can_be_made),
		test(volumes_nobody_can_judge_refuse),
		test(the_smallest_volume_is_taken_and_nobody_else_gets_it),
		test(a_volume_that_is_made_stays_where_its_first_pod_went),
		test(a_claim_that_a_plan_bound_waits_again_in_the_next_view),
		test(a_claim_for_one_pod_is_taken_also_on_a_node_that_nobody_knows),
		test(a_claim_for_one_pod_is_free_when_that_pod_goes),
		test(a_removed_node_is_still_a_domain_until_it_is_reverted),
		test(a_daemon_set_s_pod_is_for_its_own_node),
		test(a_pod_that_is_added_meets_those_that_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
