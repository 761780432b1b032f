/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worked example: three nodes of 4000m, n1 and n2 in zone z1 with 1000m and 1400m free, n3 in z2 with 3000m; class z of 500m, one in a zone,
 * of which two are wanted, and class a of 500m, of which four are. What is told is compared as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/slack/slack.h"
#include "shared/mem.h"
#include "tests/place_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

static struct place_fixture f;

static void put_node(const char *name, const char *zone)
{
	char *json = mem_printf(
		"{'metadata':{'name':'%s','labels':{'zone':'%s'}},'status':{'allocatable':{"
		"'cpu':'4','memory':'16Gi','pods':'110'},'conditions':[{'type':'Ready',"
		"'status':'True'}]}}",
		name, zone);

	place_fixture_put(&f, OBJECT_NODE, json);
	free(json);
}

static void put_pod(const char *name, const char *node, const char *cpu)
{
	char *json = mem_printf("{'metadata':{'name':'%s','namespace':'shop'},'spec':{"
				"'nodeName':'%s','containers':[{'name':'c','resources':{"
				"'requests':{'cpu':'%s'}}}]}}",
				name, node, cpu);

	place_fixture_put(&f, OBJECT_POD, json);
	free(json);
}

/* A ReplicaSet without pods, whose template is known. */
static void put_workload(const char *name, const char *slack, const char *affinity)
{
	char *json = mem_printf(
		"{'metadata':{'name':'%s','namespace':'shop','uid':'uid-%s','annotations':{"
		"'evenkeel.io/slack':'%s'}},'spec':{'replicas':0,'template':{'metadata':{'labels':{"
		"'app':'%s'}},'spec':{%s'containers':[{'name':'c','resources':{'requests':{"
		"'cpu':'500m'}}}]}}}}",
		name, name, slack, name, affinity);

	place_fixture_put(&f, OBJECT_REPLICA_SET, json);
	free(json);
}

/* "n1: a z; n2:;" of all nodes. */
static void expect_where(const struct slack_result *r, const char *where)
{
	struct buf text = BUF_INIT;

	for (place_node n = 0; n < r->nodes; n++) {
		size_t count;
		const struct slack_placed *at = slack_on_node(r, n, &count);

		buf_printf(&text, "%s%s:", n ? " " : "", r->view->nodes[n]->name);
		for (size_t i = 0; i < count; i++)
			buf_printf(&text, " %s", strrchr(r->classes[at[i].class].key, '/') + 1);
		buf_add_char(&text, ';');
	}
	assert_string_equal(text.data, where);
	buf_fini(&text);
}

static void expect(struct slack_state *s, const struct slack_options *o, const char *where,
		   const char *narration)
{
	struct view *v = place_fixture_view(&f, NULL, 0);
	struct slack_result result;
	struct place_options po;
	struct place *p;

	place_options_default(&po);
	po.now_ns = NOW;
	p = place_new(v, &po);
	assert_int_equal(slack_step(s, p, v, NOW, o, &result, NULL), 0);
	assert_string_equal(result.narration.data, narration);
	expect_where(&result, where);
	assert_true(place_is_consistent(p, NULL));
	slack_result_fini(&result);
	place_free(p);
	view_drop(v);
}

static void a_placeholder_makes_way_before_a_node_is_asked_for(void **state)
{
	struct slack_state *s = slack_state_new();
	struct slack_options o;

	(void)state;
	slack_options_default(&o);
	o.rate_ppm = 0;
	place_fixture_init(&f);
	put_node("n1", "z1");
	put_node("n2", "z1");
	put_node("n3", "z2");
	put_pod("one", "n1", "3");
	put_pod("two", "n2", "2600m");
	put_pod("three", "n3", "1");
	put_workload("a", "4", "");
	put_workload("z", "2",
		     "'affinity':{'podAntiAffinity':{"
		     "'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'zone',"
		     "'labelSelector':{'matchLabels':{'app':'z'}}}]}},");
	expect(s, &o, "n1: a z; n2: a a; n3: a z;",
	       "3 nodes give 12000m and 49152 MiB, of which 6600m and 0 MiB are requested; slack "
	       "shall be 0m and 0 MiB, 0 % of what is requested\n"
	       "shop/ReplicaSet/z is placed: n1, n3\n"
	       "shop/ReplicaSet/a is placed: n1, n2 (2), n3\n"
	       "shop/ReplicaSet/a (500m and 0 MiB): 4 of 4 placed, 10 could start by requests, 7.4 "
	       "% fragmented\n"
	       "shop/ReplicaSet/z (500m and 0 MiB): 2 of 2 placed, 2 could start by requests, 7.4 "
	       "% fragmented\n");
	put_pod("late", "n1", "700m");
	expect(s, &o, "n1:; n2: a z; n3: a a a z;",
	       "3 nodes give 12000m and 49152 MiB, of which 7300m and 0 MiB are requested; slack "
	       "shall be 0m and 0 MiB, 0 % of what is requested\n"
	       "shop/ReplicaSet/a is pushed out (NodeResourcesFit): n1\n"
	       "shop/ReplicaSet/z is pushed out (NodeResourcesFit): n1\n"
	       "shop/ReplicaSet/z is placed: n2\n"
	       "shop/ReplicaSet/a makes way for shop/ReplicaSet/z: from n2 to n3\n"
	       "shop/ReplicaSet/a is placed: n3\n"
	       "shop/ReplicaSet/a (500m and 0 MiB): 4 of 4 placed, 8 could start by requests, 14.8 "
	       "% fragmented\n"
	       "shop/ReplicaSet/z (500m and 0 MiB): 2 of 2 placed, 2 could start by requests, 14.8 "
	       "% fragmented\n");
	/* Nothing happens to what stands. */
	expect(s, &o, "n1:; n2: a z; n3: a a a z;",
	       "3 nodes give 12000m and 49152 MiB, of which 7300m and 0 MiB are requested; slack "
	       "shall be 0m and 0 MiB, 0 % of what is requested\n"
	       "shop/ReplicaSet/a (500m and 0 MiB): 4 of 4 placed, 8 could start by requests, 14.8 "
	       "% fragmented\n"
	       "shop/ReplicaSet/z (500m and 0 MiB): 2 of 2 placed, 2 could start by requests, 14.8 "
	       "% fragmented\n");
	slack_state_free(s);
	place_fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_placeholder_makes_way_before_a_node_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
