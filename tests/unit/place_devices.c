/* SPDX-License-Identifier: Apache-2.0 */
/* Resource claims of whole devices, by tables: selectors, slices, claims, and their simulation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/place/device_selector.h"
#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/model_fixture.h"
#include "tests/place_fixture.h"

/* --- a cluster */

static struct place_fixture f;

#define DRIVER	     "device.driver == \\\"gpu.io\\\""
#define MODEL(model) "device.attributes[\\\"gpu.io\\\"].model == \\\"" model "\\\""
#define CEL(text)    "{'cel':{'expression':'" text "'}}"

static void put_class(const char *name, const char *spec)
{
	char *json = mem_printf("{'metadata':{'name':'%s'},'spec':{%s}}", name, spec);

	place_fixture_put(&f, OBJECT_DEVICE_CLASS, json);
	free(json);
}

/* where: "'nodeName':'a'"; pool: its generation and number of slices. */
static void put_slice(const char *name, const char *where, const char *pool, const char *devices)
{
	char *json = mem_printf("{'metadata':{'name':'%s'},'spec':{'driver':'gpu.io',%s,"
				"'pool':{'name':'%.4s',%s},'devices':[%s]}}",
				name, where, name, pool, devices);

	place_fixture_put(&f, OBJECT_RESOURCE_SLICE, json);
	free(json);
}

static void put_object(enum object_kind kind, const char *name, const char *spec, const char *more)
{
	char *json = mem_printf("{'metadata':{'namespace':'default','name':'%s'%s},'spec':%s}",
				name, more, spec);

	place_fixture_put(&f, kind, json);
	free(json);
}

#define ONE_SLICE     "'generation':1,'resourceSliceCount':1"
#define DEVICE(name)  "{'name':'" name "','attributes':{'model':{'string':'x'}}}"
#define LARGE(name)   "{'name':'" name "','attributes':{'model':{'string':'y'}}}"
#define EXACTLY(more) "'exactly':{'deviceClassName':'gpu'" more "}"
#define REQUEST(more) "{'name':'r'," EXACTLY(more) "}"
#define DEVICES(list) "{'devices':{'requests':[" list "]}}"

static void put_template(const char *name, const char *requests)
{
	char *spec = mem_printf("{'spec':{'devices':{'requests':[%s]}}}", requests);

	put_object(OBJECT_RESOURCE_CLAIM_TEMPLATE, name, spec, "");
	free(spec);
}

/* A claim of one device, with this status. */
static void put_claim(const char *name, const char *metadata, const char *status)
{
	char *spec = mem_printf(DEVICES(REQUEST("")) ",'status':{%s}", status);

	put_object(OBJECT_RESOURCE_CLAIM, name, spec, metadata);
	free(spec);
}

#define RESULT(pool, device) "{'driver':'gpu.io','pool':'" pool "','device':'" device "'}"
#define ALLOCATED(node, results)                                                                   \
	"'allocation':{'devices':{'results':[" results "]},'nodeSelector':{'nodeSelectorTerms':["  \
	"{'matchFields':[{'key':'metadata.name','operator':'In','values':['" node "']}]}]}}"
#define RESERVED(pod) ",'reservedFor':[{'resource':'pods','name':'" pod "','uid':'uid-" pod "'}]"
#define OWNED(pod)                                                                                 \
	",'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'" pod "','uid':'uid-" pod     \
	"','controller':true}]"

#define NAMED(claim)   "'resourceClaims':[{'name':'c','resourceClaimName':'" claim "'}]"
#define MADE(template) "'resourceClaims':[{'name':'c','resourceClaimTemplateName':'" template "'}]"

/* Node a has two devices, b a device and a large one, c one, and d none. */
static int setup(void **state)
{
	(void)state;
	place_fixture_init(&f);
	place_fixture_node(&f, "a", "'zone':'1'", "");
	place_fixture_node(&f, "b", "'zone':'1'", "");
	place_fixture_node(&f, "c", "'zone':'2'", "");
	place_fixture_node(&f, "d", "", "");
	put_class("gpu", "'selectors':[" CEL(DRIVER) "]");
	put_slice("on-a", "'nodeName':'a'", ONE_SLICE, DEVICE("0") "," DEVICE("1"));
	put_slice("on-b", "'nodeName':'b'", ONE_SLICE, DEVICE("0") "," LARGE("1"));
	put_slice("on-c", "'nodeName':'c'", ONE_SLICE, DEVICE("0"));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	place_fixture_fini(&f);
	return 0;
}

/* "abu-": fits on a and b, unknown on c, refused on d. */
static void check(const char *what, const char *want)
{
	static const char *const nodes[] = {"a", "b", "c", "d"};
	struct error error;

	for (int n = 0; n < 4; n++) {
		const char *got = place_fixture_ask(f.place, "asked", nodes[n]);
		const char *need = want[n] == '-'   ? "DynamicResources"
				   : want[n] == 'u' ? "Unknown"
						    : "fits";

		if (strcmp(got, need) == 0)
			continue;
		place_explain(f.place, place_find_pod(f.place, "default", "asked"), (place_node)n,
			      &error);
		fail_msg("%s on %s: %s and not %s", what, nodes[n], error.text, need);
	}
	if (!place_is_consistent(f.place, &error))
		fail_msg("%s: %s", what, error.text);
}

static void check_template(const char *requests, const char *want)
{
	put_template("t", requests);
	place_fixture_pod(&f, "asked", "", "", MADE("t"));
	place_fixture_build(&f);
	check(requests, want);
}

static void follow(void)
{
	struct view *v = place_fixture_view(&f, NULL, 0);

	assert_true(place_update(f.place, v, 0));
	view_drop(v);
}

static void check_claim(const char *name, const char *want)
{
	char *spec = mem_printf("'resourceClaims':[{'name':'c','resourceClaimName':'%s'}]", name);

	place_fixture_pod(&f, "asked", "", "", spec);
	place_fixture_build(&f);
	check(name, want);
	free(spec);
}

static void check_reason(const char *node, const char *want)
{
	struct error error;

	place_explain(f.place, place_find_pod(f.place, "default", "asked"),
		      place_find_node(f.place, node), &error);
	assert_string_equal(error.text, want);
}

/* --- requests */

static void devices_are_counted_by_class_and_selector(void **state)
{
	static const struct {
		const char *requests, *fits;
	} rows[] = {
		{REQUEST(""), "abc-"},
		{REQUEST(",'allocationMode':'ExactCount','count':2"), "ab--"},
		{REQUEST(",'count':3"), "----"},
		{REQUEST(",'count':33"), "----"},
		{REQUEST(",'count':9223372036854775807"), "----"},
		{REQUEST(",'count':1e300") "," REQUEST(",'count':1e300"), "----"},
		{REQUEST(",'allocationMode':'All'"), "abc-"},
		{REQUEST(",'allocationMode':'Some'"), "uuuu"},
		{REQUEST(",'selectors':[" CEL(MODEL("y")) "]"), "-b--"},
		{REQUEST(",'selectors':[" CEL(MODEL("x")) "],'count':2"), "a---"},
		{REQUEST(",'selectors':[" CEL(MODEL("x")) "," CEL(MODEL("y")) "]"), "----"},
		{REQUEST(",'selectors':[" CEL("device.attributes[\\\"gpu.io\\\"].rack == 1") "]"),
		 "uuuu"},
		{REQUEST(",'selectors':[" CEL("true") "]"), "uuuu"},
		/* No device is for two requests. */
		{REQUEST("") "," REQUEST(""), "ab--"},
		{REQUEST("") "," REQUEST(",'selectors':[" CEL(MODEL("y")) "]"), "-b--"},
		{REQUEST(",'count':2") "," REQUEST(",'selectors':[" CEL(MODEL("y")) "]"), "----"},
		{REQUEST(",'allocationMode':'All'") "," REQUEST(""), "----"},
		{REQUEST(",'allocationMode':'All','selectors':[" CEL(MODEL("y")) "]"), "-b--"},
		{REQUEST(",'allocationMode':'All','selectors':[" CEL(MODEL("y")) "]") "," REQUEST(
			 ""),
		 "-b--"},
		/* A certain refusal comes before what is not judged. */
		{REQUEST(",'adminAccess':true") ",{'name':'r','exactly':{'deviceClassName':"
						"'none'}}",
		 "----"},
		{"{'name':'r','exactly':{'deviceClassName':'none'}}," REQUEST(
			 ",'adminAccess':true"),
		 "----"},
		{REQUEST(",'count':17") "," REQUEST(",'count':17"), "----"},
		/* The first request leaves the only large device to the second. */
		{REQUEST(",'selectors':[" CEL(DRIVER) "]") "," REQUEST(
			 ",'selectors':[" CEL(MODEL("x")) "]"),
		 "ab--"},
		{REQUEST(",'tolerations':[]"), "abc-"},
		{REQUEST(",'adminAccess':true"), "uuuu"},
		{REQUEST(",'capacity':{'requests':{'memory':'1Gi'}}"), "uuuu"},
		{"{'name':'r','firstAvailable':[{'name':'s','deviceClassName':'gpu'}]}", "uuuu"},
		{"{'name':'r','deviceClassName':'gpu'}", "uuuu"},
		{"{'name':'r','exactly':{'deviceClassName':'none'}}", "----"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_template(rows[i].requests, rows[i].fits);
}

/* On node d. */
static void put_devices(const char *slice, int count)
{
	struct buf devices = BUF_INIT;

	for (int k = 0; k < count; k++)
		buf_printf(&devices, "%s{'name':'%d'}", k ? "," : "", k);
	put_slice(slice, "'nodeName':'d'", ONE_SLICE, devices.data);
	buf_fini(&devices);
}

/* A claim may have 32 devices; 33 of one request, or of several, are more than is judged. */
static void more_devices_than_a_claim_may_have_are_unknown(void **state)
{
	static const struct {
		int devices;
		const char *requests, *fits;
	} rows[] = {
		{32, REQUEST(",'allocationMode':'All'"), "abcd"},
		{33, REQUEST(",'allocationMode':'All'"), "abcu"},
		{33, REQUEST(",'count':32"), "---d"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_devices("on-d", rows[i].devices);
		check_template(rows[i].requests, rows[i].fits);
	}
	/* Nor may a pod have more than 128 of several claims. */
	put_template("t", REQUEST(",'count':8"));
	for (int claims = 16; claims <= 17; claims++) {
		struct buf spec = BUF_INIT;

		for (int k = 0; k < claims; k++)
			buf_printf(&spec, "%s{'name':'c%d','resourceClaimTemplateName':'t'}",
				   k ? "," : "'resourceClaims':[", k);
		buf_add_str(&spec, "]");
		put_devices("on-d", 128);
		place_fixture_pod(&f, "asked", "", "", spec.data);
		place_fixture_build(&f);
		check("claims of eight", claims == 16 ? "---d" : "---u");
		buf_fini(&spec);
	}
	check_reason("d", "Unknown: resource claim template default/t: more than 128 devices of a "
			  "pod are not judged");
}

static void reasons_name_claim_and_expression(void **state)
{
	(void)state;
	check_template(REQUEST(",'selectors':[" CEL("true || false") "]"), "uuuu");
	check_reason("a", "Unknown: resource claim template default/t: request r: the selector "
			  "\"true || false\" is not evaluated");
	check_template(REQUEST(",'count':2"), "ab--");
	check_reason("c", "DynamicResources: resource claim template default/t: request r: "
			  "2 devices requested, 1 of 1 that suit it are free");
	check_claim("absent", "----");
	check_reason("a", "DynamicResources: resource claim default/absent is not there");
}

/* --- slices */

static void slices_serve_nodes_in_generations(void **state)
{
	static const struct {
		const char *where, *pool, *devices, *fits;
	} rows[] = {
		{"'nodeName':'d'", ONE_SLICE, DEVICE("0"), "---d"},
		{"'allNodes':true", ONE_SLICE, DEVICE("0"), "abcd"},
		{"'nodeSelector':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone',"
		 "'operator':'In','values':['1']}]}]}",
		 ONE_SLICE, DEVICE("0"), "ab--"},
		{"'perDeviceNodeSelection':true", ONE_SLICE, "{'name':'0','nodeName':'a'}", "uuuu"},
		{"'nodeName':'d'", "'generation':1,'resourceSliceCount':2", DEVICE("0"), "---u"},
		{"'nodeName':'d'", "'generation':1", DEVICE("0"), "---u"},
		{"'nodeName':'d'", "'generation':'1','resourceSliceCount':1", DEVICE("0"), "---d"},
		{"'nodeName':'d','skipNodeOperations':['x']", ONE_SLICE, DEVICE("0"), "---u"},
		{"'nodeName':'d'", ONE_SLICE,
		 "{'name':'0','taints':[{'key':'k','effect':'NoSchedule'}]}", "---u"},
		{"'nodeName':'d'", ONE_SLICE, "{'name':'0','taints':[{'key':'k','effect':'None'}]}",
		 "---d"},
		{"'nodeName':'d'", ONE_SLICE, "{'name':'0','capacity':{'memory':{'value':'1'}}}",
		 "---d"},
		{"'nodeName':'d'", ONE_SLICE, "{'name':'0','consumesCounters':[{}]}", "---u"},
		{"'nodeName':'d'", ONE_SLICE, "{'name':'0','allowMultipleAllocations':true}",
		 "---u"},
		{"'nodeName':'d'", ONE_SLICE, "{'name':'0','basic':{}}", "---u"},
		{"'nodeName':'d'", ONE_SLICE, "{'name':'0'},{'name':'0'}", "---u"},
		/* A sure device is enough. */
		{"'nodeName':'d'", ONE_SLICE, "{'name':'0','basic':{}},{'name':'1'}", "---d"},
	};

	(void)state;
	place_fixture_remove(&f, OBJECT_RESOURCE_SLICE, "", "on-a");
	place_fixture_remove(&f, OBJECT_RESOURCE_SLICE, "", "on-b");
	place_fixture_remove(&f, OBJECT_RESOURCE_SLICE, "", "on-c");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_slice("pool", rows[i].where, rows[i].pool, rows[i].devices);
		check_template(REQUEST(""), rows[i].fits);
	}
	/* A shared device may be for both. */
	put_slice("pool", "'nodeName':'d'", ONE_SLICE,
		  "{'name':'0','allowMultipleAllocations':true}");
	check_template(REQUEST("") "," REQUEST(""), "---u");
	/* All devices are not known while a pool is incomplete. */
	put_slice("pool", "'nodeName':'d'", "'generation':1,'resourceSliceCount':2", DEVICE("0"));
	check_template(REQUEST(",'allocationMode':'All'"), "uuuu");
}

static void only_the_newest_generation_counts(void **state)
{
	(void)state;
	put_slice("on-a-new", "'nodeName':'a'", "'generation':2,'resourceSliceCount':1",
		  DEVICE("2"));
	check_template(REQUEST(",'count':2"), "-b--");
	check_template(REQUEST(""), "abc-");
	put_slice("on-a-new", "'nodeName':'a'", "'generation':2,'resourceSliceCount':2",
		  DEVICE("2"));
	check_template(REQUEST(""), "ubc-");
	put_slice("on-a-newer", "'nodeName':'a'", "'generation':2,'resourceSliceCount':2",
		  DEVICE("3"));
	check_template(REQUEST(",'count':2"), "ab--");
	put_slice("on-a-newest", "'nodeName':'a'",
		  "'generation':9223372036854775807,'resourceSliceCount':1", DEVICE("4"));
	check_template(REQUEST(",'count':2"), "-b--");
	place_fixture_remove(&f, OBJECT_RESOURCE_SLICE, "", "on-a-newest");
	/* A pool of several nodes is being replaced. */
	put_slice("more", "'allNodes':true", "'generation':1,'resourceSliceCount':1", DEVICE("0"));
	check_template(REQUEST(""), "abcd");
	put_slice("more-new", "'nodeName':'d'", "'generation':2,'resourceSliceCount':1",
		  DEVICE("0"));
	check_template(REQUEST(""), "abcu");
}

static void a_rule_may_taint_any_device(void **state)
{
	(void)state;
	put_object(OBJECT_DEVICE_TAINT_RULE, "rule", "{'taint':{'effect':'NoSchedule'}}", "");
	check_template(REQUEST(""), "uuu-");
	place_fixture_remove(&f, OBJECT_DEVICE_TAINT_RULE, "", "rule");
	check_template(REQUEST(""), "abc-");
}

static void hidden_rules_may_taint_any_device(void **state)
{
	static const struct {
		enum source_state state;
		const char *fits;
	} rows[] = {
		{SOURCE_LISTING, "uuu-"}, {SOURCE_ABSENT, "abc-"},  {SOURCE_FORBIDDEN, "uuu-"},
		{SOURCE_NONE, "abc-"},	  {SOURCE_LISTING, "uuu-"}, {SOURCE_SYNCED, "abc-"},
	};

	(void)state;
	check_template(REQUEST(""), "abc-");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct model_source source = {.state = rows[i].state};

		model_set_source(f.model, OBJECT_DEVICE_TAINT_RULE, &source);
		follow();
		check("the state of the rules", rows[i].fits);
	}
}

static void classes_decide(void **state)
{
	static const struct {
		const char *spec, *fits;
	} rows[] = {
		{"", "abc-"},
		{"'selectors':[" CEL("device.driver == \\\"net.io\\\"") "]", "----"},
		{"'selectors':[" CEL(MODEL("y")) "]", "-b--"},
		{"'selectors':[" CEL("1 == 1") "]", "uuuu"},
		{"'config':[{'opaque':{'driver':'gpu.io'}}],'extendedResourceName':'gpu.io/gpu'",
		 "abc-"},
		{"'tomorrow':1", "uuuu"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_class("gpu", rows[i].spec);
		check_template(REQUEST(""), rows[i].fits);
	}
}

/* --- claims */

static void claims_hold_their_devices(void **state)
{
	(void)state;
	put_claim("first", "", ALLOCATED("a", RESULT("on-a", "0")));
	check_template(REQUEST(",'count':2"), "-b--");
	check_template(REQUEST(",'allocationMode':'All'"), "-bc-");
	put_claim("second", "", ALLOCATED("a", RESULT("on-a", "1")));
	check_template(REQUEST(""), "-bc-");
	put_claim("second", "",
		  ALLOCATED("a", "{'driver':'gpu.io','pool':'on-a','device':'1',"
				 "'adminAccess':true}"));
	check_template(REQUEST(""), "abc-");
	check_claim("first", "a---");
	check_claim("second", "a---");
	put_claim("second", "", "");
	check_claim("second", "abc-");
	put_claim("second", ",'deletionTimestamp':'2026-01-01T00:00:00Z'", "");
	check_claim("second", "----");
	put_claim("second", "", "'allocation':{'devices':{'results':[" RESULT("gone", "0") "]}}");
	check_claim("second", "abcd");
	put_claim("second", "",
		  "'allocation':{'nodeSelector':{'nodeSelectorTerms':[{'matchFields':[{'key':"
		  "'metadata.name','operator':'Like','values':['a']}]}]}}");
	check_claim("second", "uuuu");
}

static void claims_have_a_limit_of_pods(void **state)
{
	struct buf b = BUF_INIT;

	(void)state;
	buf_add_str(&b, ALLOCATED("a", RESULT("on-a", "0")) ",'reservedFor':[");
	for (int i = 0; i < 256; i++)
		buf_printf(&b, "%s{'resource':'pods','uid':'%d'}", i ? "," : "", i);
	buf_add_char(&b, ']');
	put_claim("full", "", b.data);
	buf_fini(&b);
	check_claim("full", "----");
	check_reason("a", "DynamicResources: resource claim default/full is in use by 256 pods, "
			  "the most that may share it");
	put_object(OBJECT_RESOURCE_CLAIM, "odd",
		   "{'devices':{'requests':[" REQUEST("") "],'constraints':[{}]}}", "");
	check_claim("odd", "uuuu");
	put_claim("full", "", "");
	check_claim("full", "abc-");
	place_fixture_pod(&f, "asked", "", "",
			  "'resourceClaims':[{'name':'c','resourceClaimName':'full'},"
			  "{'name':'d','resourceClaimName':'full'}]");
	place_fixture_build(&f);
	check("named twice", "ab--");
}

static void kinds_that_are_not_known_are_unknown(void **state)
{
	static const enum object_kind kinds[] = {OBJECT_RESOURCE_CLAIM_TEMPLATE,
						 OBJECT_RESOURCE_SLICE, OBJECT_DEVICE_CLASS};
	static const struct model_source absent = {.state = SOURCE_ABSENT};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		model_set_source(f.model, kinds[i], &absent);
		check_template(REQUEST(""), "uuuu");
		model_fixture_sync(f.model, kinds[i]);
	}
	check_template(REQUEST(""), "abc-");
	place_fixture_pod(&f, "asked", "", "", "'resourceClaims':[{'name':'c'}]");
	place_fixture_build(&f);
	check("no name", "uuuu");
}

/* --- extended resources */

static void classes_stand_in_for_extended_resources(void **state)
{
#define ASKS(name)                                                                                 \
	"'containers':[{'name':'c','resources':{'requests':{'" name "':'1'},'limits':{'" name      \
	"':'1'}}}]"
	static const struct {
		const char *spec, *on_d, *on_e;
		bool holds; /* d, were it empty */
	} rows[] = {
		{ASKS("gpu.io/gpu"), "Unknown", "fits", true},
		{ASKS("deviceclass.resource.kubernetes.io/gpu"), "Unknown", "Unknown", true},
		{ASKS("gpu.io/other"), "NodeResourcesFit", "NodeResourcesFit", false},
		{ASKS("gpu.io/gpu") ",'nodeSelector':{'zone':'9'}", "NodeAffinity", "NodeAffinity",
		 true},
	};

	(void)state;
	put_class("gpu", "'extendedResourceName':'gpu.io/gpu'");
	place_fixture_put(&f, OBJECT_NODE,
			  "{'metadata':{'name':'e'},'status':{'allocatable':{'cpu':'4','memory':"
			  "'8Gi','pods':'110','gpu.io/gpu':'1'}}}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		place_fixture_pod(&f, "asked", "", "", rows[i].spec);
		place_fixture_build(&f);
		assert_string_equal(place_fixture_ask(f.place, "asked", "d"), rows[i].on_d);
		assert_string_equal(place_fixture_ask(f.place, "asked", "e"), rows[i].on_e);
		assert_int_equal(place_could_hold(f.place,
						  place_find_pod(f.place, "default", "asked"), 3),
				 rows[i].holds);
	}
	place_fixture_pod(&f, "asked", "", "", ASKS("gpu.io/gpu"));
	place_fixture_build(&f);
	check_reason("d", "Unknown: gpu.io/gpu: a device class stands in for it, which is not "
			  "judged");
}

/* --- the simulation */

static place_pod pod(const char *name)
{
	return place_find_pod(f.place, "default", name);
}

/* A sure device that made a pod fit is not left to the next pod. */
static void sure_devices_are_allocated_first(void **state)
{
	(void)state;
	put_slice("pool", "'nodeName':'d'", ONE_SLICE, "{'name':'0','basic':{}}," DEVICE("1"));
	put_template("t", REQUEST(""));
	place_fixture_pod(&f, "first", "", "", MADE("t"));
	place_fixture_pod(&f, "asked", "", "", MADE("t"));
	place_fixture_build(&f);
	check("a sure device", "abcd");
	place_put(f.place, pod("first"), 3);
	check("an unsure device", "abcu");
}

/* A claim that was made for a pod goes with it, and comes back with it. */
static void devices_of_a_template_move_with_the_pod(void **state)
{
	place_mark mark;

	(void)state;
	put_template("t", REQUEST(""));
	put_claim("made", OWNED("first"), ALLOCATED("c", RESULT("on-c", "0")) RESERVED("first"));
	place_fixture_pod(&f, "first", "c", "", MADE("t"));
	place_fixture_pod(&f, "asked", "", "", MADE("t"));
	place_fixture_build(&f);
	check("held by first", "ab--");
	mark = place_fork(f.place);
	place_take(f.place, pod("first"));
	check("freed", "abc-");
	place_put(f.place, pod("first"), 1);
	check("moved to b", "abc-");
	place_put(f.place, pod("asked"), 1);
	place_take(f.place, pod("asked"));
	check("put and taken", "abc-");
	place_fixture_pod(&f, "other", "", "", MADE("t"));
	place_revert(f.place, mark);
	check("reverted", "ab--");
}

/* Its own devices, although others are free, and although its template is not judged. */
static void a_pod_that_comes_back_has_its_devices(void **state)
{
	static const char *const templates[] = {"{'spec':" DEVICES(REQUEST("")) "}",
						"{'spec':{'devices':{'requests':[" REQUEST(
							"") "],'constraints':[{}]}}}"};
	place_mark mark;

	(void)state;
	put_template("any", REQUEST(""));
	put_template("large", REQUEST(",'selectors':[" CEL(MODEL("y")) "]"));
	put_claim("made", OWNED("first"), ALLOCATED("b", RESULT("on-b", "1")) RESERVED("first"));
	place_fixture_pod(&f, "asked", "", "", MADE("large"));
	place_fixture_pod(&f, "other", "", "", MADE("any"));
	for (int i = 0; i < 3; i++) {
		if (i == 2) {
			place_fixture_remove(&f, OBJECT_RESOURCE_CLAIM, "default", "made");
			put_claim("made", "",
				  ALLOCATED("b", RESULT("on-b", "1")) RESERVED("first"));
		}
		put_object(OBJECT_RESOURCE_CLAIM_TEMPLATE, "t", templates[i % 2], "");
		place_fixture_pod(&f, "first", "b", "", i < 2 ? MADE("t") : NAMED("made"));
		place_fixture_build(&f);
		check("held by first", "----");
		mark = place_fork(f.place);
		place_take(f.place, pod("first"));
		check("freed", "-b--");
		place_put(f.place, pod("first"), 1);
		check("back", "----");
		place_revert(f.place, mark);
		check("reverted", "----");
		/* Lists of the view outlive the allocations after them. */
		place_put(f.place, pod("other"), 0);
		place_take(f.place, pod("first"));
		check("freed again", "-b--");
	}
}

/* A named claim stays while a pod has it. */
static void named_claims_stay_while_used(void **state)
{
	place_mark mark, inner;

	(void)state;
	put_claim("shared", "",
		  ALLOCATED("c", RESULT("on-c", "0")) ",'reservedFor':["
						      "{'resource':'pods','uid':'uid-first'},{'"
						      "resource':'pods','uid':'uid-second'}]");
	place_fixture_pod(&f, "first", "c", "", NAMED("shared"));
	place_fixture_pod(&f, "second", "c", "", NAMED("shared"));
	place_fixture_pod(&f, "asked", "", "", NAMED("shared"));
	place_fixture_build(&f);
	check("in use", "--c-");
	mark = place_fork(f.place);
	place_take(f.place, pod("first"));
	check("in use by second", "--c-");
	inner = place_fork(f.place);
	place_take(f.place, pod("second"));
	check("used by none", "abc-");
	place_put(f.place, pod("first"), 0);
	check("allocated anew", "a---");
	place_revert(f.place, inner);
	check("second is back", "--c-");
	place_revert(f.place, mark);
	check("all are back", "--c-");
	/* A pod that is not in the simulation keeps it. */
	place_fixture_remove(&f, OBJECT_POD, "default", "second");
	place_fixture_build(&f);
	place_take(f.place, pod("first"));
	check("in use by an unknown pod", "--c-");
}

static void a_pod_that_waits_for_its_binding_is_unknown(void **state)
{
	(void)state;
	put_template("t", REQUEST(""));
	put_claim("made", OWNED("asked"), ALLOCATED("a", RESULT("on-a", "0")));
	place_fixture_pod(&f, "asked", "", "", MADE("t"));
	place_fixture_build(&f);
	check("half bound", "uuu-");
}

/* An update equals a new core. */
static void updates_follow_slices_and_claims(void **state)
{
	(void)state;
	put_template("t", REQUEST(""));
	place_fixture_pod(&f, "asked", "", "", MADE("t"));
	place_fixture_build(&f);
	check("at first", "abc-");
	put_claim("named", "", ALLOCATED("c", RESULT("on-c", "0")));
	follow();
	check("claimed", "ab--");
	put_slice("on-d", "'nodeName':'d'", ONE_SLICE, DEVICE("0"));
	follow();
	check("a new slice", "ab-d");
	/* A node without an object moves the others on. */
	place_fixture_pod(&f, "lost", "Nowhere", "", "");
	follow();
	check("another numbering", "ab-d");
	place_fixture_remove(&f, OBJECT_RESOURCE_CLAIM, "default", "named");
	follow();
	check("the claim is gone", "abcd");
	place_fixture_remove(&f, OBJECT_NODE, "", "a");
	place_fixture_node(&f, "a", "", "");
	place_fixture_remove(&f, OBJECT_RESOURCE_SLICE, "", "on-b");
	follow();
	check("a slice is gone", "a-cd");
	put_template("t", REQUEST(",'count':2"));
	follow();
	check("another template", "a---");
	put_class("gpu", "'selectors':[" CEL(MODEL("y")) "]");
	follow();
	check("another class", "----");
	place_fixture_remove(&f, OBJECT_DEVICE_CLASS, "", "gpu");
	follow();
	check("no class", "----");
}

static void hypothetical_claims_are_forgotten(void **state)
{
	struct kube_pod *record = place_fixture_record("new", "", "", MADE("t"));
	place_mark mark;

	(void)state;
	put_template("t", REQUEST(",'count':2"));
	place_fixture_pod(&f, "asked", "", "", NAMED("absent"));
	place_fixture_build(&f);
	for (int i = 0; i < 2; i++) {
		place_pod added = place_add_pod(f.place, record);

		assert_int_equal(place_check(f.place, added, 0), PLACE_FITS);
		mark = place_fork(f.place);
		place_put(f.place, added, 0);
		place_revert(f.place, mark);
		assert_int_equal(place_check(f.place, added, 2), PLACE_DEVICES);
		follow();
	}
	object_drop(&record->object);
	check("absent", "----");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(devices_are_counted_by_class_and_selector),
		TEST(reasons_name_claim_and_expression),
		TEST(more_devices_than_a_claim_may_have_are_unknown),
		TEST(slices_serve_nodes_in_generations),
		TEST(only_the_newest_generation_counts),
		TEST(a_rule_may_taint_any_device),
		TEST(hidden_rules_may_taint_any_device),
		TEST(classes_decide),
		TEST(claims_hold_their_devices),
		TEST(claims_have_a_limit_of_pods),
		TEST(kinds_that_are_not_known_are_unknown),
		TEST(classes_stand_in_for_extended_resources),
		TEST(sure_devices_are_allocated_first),
		TEST(devices_of_a_template_move_with_the_pod),
		TEST(a_pod_that_comes_back_has_its_devices),
		TEST(named_claims_stay_while_used),
		TEST(a_pod_that_waits_for_its_binding_is_unknown),
		TEST(updates_follow_slices_and_claims),
		TEST(hypothetical_claims_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
