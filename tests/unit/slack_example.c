/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proposal's own example beside ours, and the worked example: three nodes of 4000m, n1 and n2
 * in zone z1 with 1000m and 1400m free, n3 in z2 with 3000m; class z of 500m, one in a zone, of
 * which two are wanted, and class a of 500m, of which four are. What is told is compared as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/slack_fixture.h"

static struct slack_fixture f;

static void expect(const char *where, const char *narration)
{
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), where);
	assert_string_equal(f.result.narration.data, narration);
}

static void a_placeholder_makes_way_before_a_node_is_asked_for(void **state)
{
	(void)state;
	slack_fixture_init(&f);
	slack_fixture_node(&f, "n1", "z1", "4", "16Gi", "");
	slack_fixture_node(&f, "n2", "z1", "4", "16Gi", "");
	slack_fixture_node(&f, "n3", "z2", "4", "16Gi", "");
	slack_fixture_pod(&f, "one", "n1", "3", "0", "");
	slack_fixture_pod(&f, "two", "n2", "2600m", "0", "");
	slack_fixture_pod(&f, "three", "n3", "1", "0", "");
	slack_fixture_workload(&f, "a", "4", 0, "500m", "0", "");
	slack_fixture_workload(
		&f, "z", "2", 0, "500m", "0",
		"'affinity':{'podAntiAffinity':{"
		"'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'zone',"
		"'labelSelector':{'matchLabels':{'app':'z'}}}]}},");
	expect("n1: a z; n2: a a; n3: a z;",
	       "3 nodes give 12000m and 49152 MiB, of which 6600m and 0 MiB are requested; slack "
	       "shall be 0m and 0 MiB, 0 % of what is requested\n"
	       "shop/ReplicaSet/z is placed: n1, n3\n"
	       "shop/ReplicaSet/a is placed: n1, n2 (2), n3\n"
	       "shop/ReplicaSet/a (500m and 0 MiB): 4 of 4 placed, 10 could start by requests, 7.4 "
	       "% fragmented\n"
	       "shop/ReplicaSet/z (500m and 0 MiB): 2 of 2 placed, 2 could start by requests, 7.4 "
	       "% fragmented\n");
	slack_fixture_pod(&f, "late", "n1", "700m", "0", "");
	expect("n1:; n2: a z; n3: a a a z;",
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
	expect("n1:; n2: a z; n3: a a a z;",
	       "3 nodes give 12000m and 49152 MiB, of which 7300m and 0 MiB are requested; slack "
	       "shall be 0m and 0 MiB, 0 % of what is requested\n"
	       "shop/ReplicaSet/a (500m and 0 MiB): 4 of 4 placed, 8 could start by requests, 14.8 "
	       "% fragmented\n"
	       "shop/ReplicaSet/z (500m and 0 MiB): 2 of 2 placed, 2 could start by requests, 14.8 "
	       "% fragmented\n");
	slack_fixture_fini(&f);
}

/*
 * Ten nodes of 4000m and 16 GiB, and a rate of 10 %. The proposal cuts an average node into 5
 * units, and takes 5 of them for each node: all that there is, whatever the rate. Here the rate
 * says how much, and the nodes of which size.
 */
static void ten_percent_of_40000m_are_4000m(void **state)
{
	static const struct slack_amount all = {40000, 160LL << 30};
	const struct slack_class *unit;
	struct slack_amount proposed = {0, 0}, ours = {0, 0};
	int nodes = 10, granularity = 5;
	char name[16];

	(void)state;
	slack_fixture_init(&f);
	for (int n = 0; n < nodes; n++) {
		snprintf(name, sizeof(name), "n%d", n);
		slack_fixture_node(&f, name, "z", "4", "16Gi", "");
	}
	f.options.rate_ppm = 100000;
	f.options.base = SLACK_BASE_ALLOCATABLE;
	f.options.granularity = (uint32_t)granularity;
	slack_fixture_step(&f);
	unit = slack_fixture_class(&f, "unit");
	assert_int_equal(unit->shape.cpu_milli, 4000 / granularity);
	slack_amount_add(&proposed, &unit->shape, (int64_t)nodes * granularity);
	slack_amount_add(&ours, &unit->shape, unit->placed);
	print_message("as proposed %lldm, here %lldm of %lldm\n", (long long)proposed.cpu_milli,
		      (long long)ours.cpu_milli, (long long)all.cpu_milli);
	assert_int_equal(f.result.allocatable.cpu_milli, all.cpu_milli);
	assert_int_equal(f.result.allocatable.mem_bytes, all.mem_bytes);
	assert_int_equal(proposed.cpu_milli, 40000);
	assert_int_equal(f.result.extra.cpu_milli, 4000);
	assert_int_equal(unit->wanted, 5);
	assert_int_equal(ours.cpu_milli, 4000);
	/* To a byte a unit. */
	assert_in_range(ours.mem_bytes, (16LL << 30) - 5, 16LL << 30);
	slack_fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_placeholder_makes_way_before_a_node_is_asked_for),
		cmocka_unit_test(ten_percent_of_40000m_are_4000m),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
