/* SPDX-License-Identifier: Apache-2.0 */
/* A node whose pods hold devices goes if their claims can be allocated elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/drain/drain.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/place_fixture.h"
#include "tests/view_fixture.h"

static struct place_fixture f;

/* A node with one device. */
static void put_node(const char *name)
{
	char *node = mem_printf("{'metadata':{'name':'%s'},'status':{'allocatable':{'cpu':'4',"
				"'memory':'8Gi','pods':'110'},'conditions':[{'type':'Ready',"
				"'status':'True'}]}}",
				name);
	char *slice = mem_printf("{'metadata':{'name':'%s'},'spec':{'driver':'gpu.io','nodeName':"
				 "'%s','pool':{'name':'%s','resourceSliceCount':1},'devices':["
				 "{'name':'0'}]}}",
				 name, name, name);

	place_fixture_put(&f, OBJECT_NODE, node);
	place_fixture_put(&f, OBJECT_RESOURCE_SLICE, slice);
	free(node);
	free(slice);
}

/* entry: what its spec.resourceClaims says of its claim "c", "" none. */
static void put_pod(const char *name, const char *node, int cpu_milli, const char *entry)
{
	char *json = mem_printf(
		"{'metadata':{'namespace':'default','name':'%s','uid':'uid-%s','ownerReferences':["
		"{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'web','uid':'rs-web',"
		"'controller':true}]},'spec':{'nodeName':'%s','containers':[{'name':'c',"
		"'resources':{'requests':{'cpu':'%dm'}}}]%s%s%s},'status':{'phase':'Running',"
		"'conditions':[{'type':'Ready','status':'True'}]}}",
		name, name, node, cpu_milli, *entry ? ",'resourceClaims':[{'name':'c'," : "", entry,
		*entry ? "}]" : "");

	place_fixture_put(&f, OBJECT_POD, json);
	free(json);
}

/* Made for the pod of that name (NULL: for none), and allocated on the node. */
static void put_claim(const char *name, const char *pod, const char *node)
{
	char *owner = pod ? mem_printf(",'ownerReferences':[{'kind':'Pod','name':'%s','uid':"
				       "'uid-%s','controller':true}]",
				       pod, pod)
			  : mem_strdup("");
	char *json = mem_printf("{'metadata':{'namespace':'default','name':'%s'%s},'spec':{"
				"'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':"
				"'gpu'}}]}},'status':{'allocation':{'devices':{'results':[{"
				"'driver':'gpu.io','pool':'%s','device':'0'}]},'nodeSelector':{"
				"'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name',"
				"'operator':'In','values':['%s']}]}]}}}}",
				name, owner, node, node);

	place_fixture_put(&f, OBJECT_RESOURCE_CLAIM, json);
	free(json);
	free(owner);
}

static int setup(void **state)
{
	(void)state;
	place_fixture_init(&f);
	put_node("a");
	put_node("b");
	place_fixture_put(&f, OBJECT_REPLICA_SET,
			  "{'metadata':{'namespace':'default','name':'web','uid':'rs-web'},'spec':{"
			  "'replicas':2},'status':{'replicas':2}}");
	place_fixture_put(&f, OBJECT_DEVICE_CLASS, "{'metadata':{'name':'gpu'},'spec':{}}");
	place_fixture_put(
		&f, OBJECT_RESOURCE_CLAIM_TEMPLATE,
		"{'metadata':{'namespace':'default','name':'t'},'spec':{'spec':{'devices':"
		"{'requests':[{'name':'r','exactly':{'deviceClassName':'gpu'}}]}}}}");
	put_pod("busy-1", "b", 3000, "");
	put_pod("web-1", "a", 100, "'resourceClaimTemplateName':'t'");
	put_claim("made", "web-1", "a");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	place_fixture_fini(&f);
	return 0;
}

/* The first reason of node a after 20 minutes, or where its first pod goes; the caller frees it. */
static char *plan(void)
{
	struct drain_state *state = drain_state_new();
	struct drain_plan *plan = NULL;
	struct drain_config config;
	const struct drain_plan_node *n;
	char *text;

	drain_config_default(&config);
	config.rules.owner_share = 1;
	for (int64_t minutes = 0; minutes <= 20; minutes += 20) {
		int64_t now_ns = VIEW_FIXTURE_NOW_NS + minutes * 60 * NS_PER_SEC;
		struct view *v = place_fixture_view(&f, NULL, 0);
		struct place_options o;

		place_options_default(&o);
		o.now_ns = now_ns;
		place_free(f.place);
		f.place = place_new(v, &o);
		drain_plan_free(plan);
		plan = drain_step(
			state, &(struct drain_input){.place = f.place, .view = v, .now_ns = now_ns},
			&config);
		view_drop(v);
	}
	n = drain_plan_find(plan, "a");
	text = n->reason_count ? mem_printf("%s: %s", drain_reason_name(n->reasons[0].code),
					    n->reasons[0].text)
			       : mem_strdup(plan->narration);
	drain_plan_free(plan);
	drain_state_free(state);
	return text;
}

static void assert_plan(const char *part)
{
	char *text = plan();

	if (!strstr(text, part))
		fail_msg("%s\nlacks: %s", text, part);
	free(text);
}

static void claims_of_templates_are_made_anew(void **state)
{
	(void)state;
	assert_plan("a goes, and of it default/web-1 to b.\n");
	put_claim("other", NULL, "b");
	assert_plan("NoPlaceToMovePods: ");
	assert_plan("DynamicResources");
}

/* Pods that leave together take it along; a pod that is not in the simulation keeps it. */
static void shared_claims_stay_while_they_are_used(void **state)
{
	(void)state;
	put_claim("made", NULL, "a");
	put_pod("web-1", "a", 100, "'resourceClaimName':'made'");
	put_pod("web-2", "a", 100, "'resourceClaimName':'made'");
	assert_plan("a goes, and of it default/web-1 to b, default/web-2 to b.\n");
	place_fixture_put(
		&f, OBJECT_RESOURCE_CLAIM,
		"{'metadata':{'namespace':'default','name':'made'},'status':{'allocation':{"
		"'devices':{'results':[{'driver':'gpu.io','pool':'a','device':'0'}]},"
		"'nodeSelector':{'nodeSelectorTerms':[{'matchFields':[{'key':"
		"'metadata.name','operator':'In','values':['a']}]}]}},'reservedFor':["
		"{'uid':'1'},{'uid':'2'},{'uid':'3'}]}}");
	assert_plan("NoPlaceToMovePods: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(claims_of_templates_are_made_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(shared_claims_stay_while_they_are_used, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
