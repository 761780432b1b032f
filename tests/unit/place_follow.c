/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation that follows a changed node answers as a new one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/buf.h"
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

static void follow(void)
{
	struct view *v = place_fixture_view(&f, NULL, 0);
	struct error error;

	assert_true(place_update(f.place, v, 0));
	view_drop(v);
	if (!place_is_consistent(f.place, &error))
		fail_msg("%s", error.text);
}

#define TAINT(key, value, effect)                                                                  \
	"'taints':[{'key':'" key "','value':'" value "','effect':'" effect "'}]"

/* The pod tolerates k=v:NoSchedule. */
static void taints_are_compared_by_all_they_say(void **state)
{
	static const char *const same = TAINT("k", "v", "NoSchedule");
	static const struct {
		const char *taints, *answer;
	} rows[] = {
		{TAINT("k", "w", "NoSchedule"), "TaintToleration"},
		{TAINT("l", "v", "NoSchedule"), "TaintToleration"},
		{TAINT("k", "v", "NoExecute"), "TaintToleration"},
		{TAINT("k", "v", "PreferNoSchedule"), "fits"},
		{TAINT("k", "v", "Tomorrow"), "TaintToleration"},
		{"'taints':7", "TaintToleration"},
		{"", "fits"},
	};

	(void)state;
	place_fixture_node(&f, "a", "", same);
	place_fixture_node(&f, "b", "", "");
	place_fixture_pod(&f, "asked", "", "",
			  "'tolerations':[{'key':'k','value':'v','effect':'NoSchedule'}]");
	place_fixture_build(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		place_fixture_node(&f, "a", "", rows[i].taints);
		follow();
		if (strcmp(place_fixture_ask(f.place, "asked", "a"), rows[i].answer) != 0)
			fail_msg("row %zu: %s", i, place_fixture_ask(f.place, "asked", "a"));
		place_fixture_node(&f, "a", "", same);
		follow();
		assert_string_equal(place_fixture_ask(f.place, "asked", "a"), "fits");
	}
}

/* Namespaces that can be listed no more: the term is about the pods of all. */
static void namespaces_may_become_unknown(void **state)
{
	static const struct model_source away = {.state = SOURCE_FORBIDDEN},
					 back = {.state = SOURCE_SYNCED};

	(void)state;
	place_fixture_put(&f, OBJECT_NAMESPACE,
			  "{'metadata':{'name':'default','labels':{'team':'x'}}}");
	place_fixture_node(&f, "a", "", "");
	place_fixture_pod(&f, "web", "a", "'app':'web'", "");
	place_fixture_pod(&f, "asked", "", "",
			  "'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuring"
			  "Execution':[{'topologyKey':'kubernetes.io/hostname','labelSelector':{"
			  "'matchLabels':{'app':'web'}},'namespaceSelector':{'matchLabels':{"
			  "'team':'y'}}}]}}");
	place_fixture_build(&f);
	assert_string_equal(place_fixture_ask(f.place, "asked", "a"), "fits");
	model_set_source(f.model, OBJECT_NAMESPACE, &away);
	follow();
	assert_string_equal(place_fixture_ask(f.place, "asked", "a"), "InterPodAntiAffinity");
	model_set_source(f.model, OBJECT_NAMESPACE, &back);
	follow();
	assert_string_equal(place_fixture_ask(f.place, "asked", "a"), "fits");
}

/* What a pod asks for is larger after a resize, and the view says both. */
static void resized_pods_take_what_they_have_now(void **state)
{
	static const char pod[] =
		"{'metadata':{'name':'web','namespace':'default'},'spec':{'nodeName':'a',"
		"'containers':[{'name':'c','resources':{'requests':{'cpu':'%s'}}}]},'status':{"
		"'phase':'Running','containerStatuses':[{'name':'c','allocatedResources':{'cpu':"
		"'%s'},'resources':{'requests':{'cpu':'%s'}}}]}}";
	static const char *const sizes[][2] = {
		{"1", "1"}, {"3", "1"}, {"1", "3"}, {"3500m", "3500m"}, {"1", "1"}};
	char json[512];

	(void)state;
	place_fixture_node(&f, "a", "", "");
	place_fixture_pod(&f, "asked", "", "",
			  "'containers':[{'name':'c','resources':{'requests':{'cpu':'2'}}}]");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		bool large = strcmp(sizes[i][0], "1") != 0 || strcmp(sizes[i][1], "1") != 0;

		snprintf(json, sizeof(json), pod, sizes[i][0], sizes[i][1], sizes[i][1]);
		place_fixture_put(&f, OBJECT_POD, json);
		if (i)
			follow();
		else
			place_fixture_build(&f);
		if (strcmp(place_fixture_ask(f.place, "asked", "a"),
			   large ? "NodeResourcesFit" : "fits") != 0)
			fail_msg("row %zu", i);
	}
}

/* Kinds of resources, more and more of them, of which node "a" has the first twenty. */
static void any_number_of_resources_is_counted(void **state)
{
	struct buf asks = BUF_INIT, has = BUF_INIT;

	(void)state;
	for (int count = 1; count <= 21; count++) {
		char *node, *spec;

		buf_printf(&asks, "%s'example.com/r%d':'1'", count > 1 ? "," : "", count);
		if (count <= 20)
			buf_printf(&has, ",'example.com/r%d':'1'", count);
		node = mem_printf("{'metadata':{'name':'a'},'status':{'allocatable':{'cpu':'4',"
				  "'memory':'8Gi','pods':'110'%s},'conditions':[{'type':'Ready',"
				  "'status':'True'}]}}",
				  has.data);
		spec = mem_printf("'containers':[{'name':'c','resources':{'requests':{%s}}}]",
				  asks.data);
		place_fixture_put(&f, OBJECT_NODE, node);
		place_fixture_pod(&f, "asked", "", "", spec);
		if (count == 1)
			place_fixture_build(&f);
		else
			follow();
		assert_string_equal(place_fixture_ask(f.place, "asked", "a"),
				    count <= 20 ? "fits" : "NodeResourcesFit");
		free(node);
		free(spec);
	}
	buf_fini(&asks);
	buf_fini(&has);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(taints_are_compared_by_all_they_say, setup,
						teardown),
		cmocka_unit_test_setup_teardown(namespaces_may_become_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(any_number_of_resources_is_counted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(resized_pods_take_what_they_have_now, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
