/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What slack remembers, written and read: placeholders stay where they were in another process, and
 * nothing that is not as it should be gets in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "aggregator/planner/slack_memory.h"
#include "shared/mem.h"
#include "tests/slack_fixture.h"
#include "tests/view_fixture.h"

#define MINUTE_NS 60000000000LL

static struct slack_fixture f;

static int open_fixture(void **state)
{
	(void)state;
	slack_fixture_init(&f);
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	slack_fixture_fini(&f);
	return 0;
}

static char *memory_of(struct slack_state *s)
{
	struct buf text = BUF_INIT;

	slack_memory_write(s, &text);
	return buf_take(&text, NULL);
}

/* As another process would: the state is gone, what was written of it is read. */
static void restart(void)
{
	char *before = memory_of(f.state), *after;
	struct error why = {""};

	slack_state_free(f.state);
	f.state = slack_state_new();
	if (slack_memory_read(f.state, before, strlen(before), &why))
		fail_msg("%s: %s", why.text, before);
	after = memory_of(f.state);
	assert_string_equal(after, before);
	free(before);
	free(after);
}

static void make_cluster(void)
{
	slack_fixture_node(&f, "n1", "z1", "4", "16Gi", "");
	slack_fixture_node(&f, "n2", "z1", "4", "16Gi", "");
	slack_fixture_pod(&f, "one", "n2", "1", "4Gi", "");
	f.options.rate_ppm = 100000;
}

/* n2 is the fuller one at first, and n1 afterwards: who begins anew goes there. */
static void test_placements_stay(void **state)
{
	(void)state;
	make_cluster();
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: unit;");
	slack_fixture_pod(&f, "two", "n1", "2", "8Gi", "");
	restart();
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: unit;");
	assert_int_equal(f.result.move_count, 0);
	slack_state_free(f.state);
	f.state = slack_state_new();
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: unit; n2:;");
}

/* Less would do, and had done so for six minutes: after a restart four more are enough. */
static void test_timeout_goes_on(void **state)
{
	const struct slack_class *unit;

	(void)state;
	make_cluster();
	f.options.rate_ppm = 900000;
	slack_fixture_step(&f);
	unit = slack_fixture_class(&f, "unit");
	assert_int_equal(unit->wanted, 2);
	f.options.rate_ppm = 100000;
	slack_fixture_step(&f);
	f.now_ns += 6 * MINUTE_NS;
	slack_fixture_step(&f);
	restart();
	f.now_ns += 3 * MINUTE_NS;
	slack_fixture_step(&f);
	unit = slack_fixture_class(&f, "unit");
	assert_int_equal(unit->wanted, 2);
	assert_int_equal(unit->target, 1);
	f.now_ns += MINUTE_NS;
	slack_fixture_step(&f);
	assert_int_equal(slack_fixture_class(&f, "unit")->wanted, 1);
}

static void test_arrivals_are_kept(void **state)
{
	struct slack_arrivals *a;

	(void)state;
	make_cluster();
	f.options.from_arrivals = true;
	slack_fixture_step(&f);
	a = slack_state_arrivals(f.state);
	slack_arrivals_begin(a, f.now_ns + 10 * MINUTE_NS);
	for (int i = 0; i < 3; i++)
		slack_arrivals_add(a, f.now_ns + i * MINUTE_NS,
				   &(struct slack_amount){500, 1LL << 40});
	slack_arrivals_end(a, f.now_ns + 10 * MINUTE_NS);
	assert_true(a->count > 0);
	restart();
	a = slack_state_arrivals(f.state);
	assert_true(a->started);
	assert_int_equal(a->of[0].shape.mem_bytes, 1LL << 40);
	assert_int_equal(slack_arrivals_spans(a, f.now_ns + 60 * MINUTE_NS), 19);
}

/* Whatever pods ask for, what was written can be read; what is beyond reason is left out. */
static void test_absurd_pods(void **state)
{
	struct slack_arrivals *a;

	(void)state;
	make_cluster();
	f.options.from_arrivals = true;
	slack_fixture_step(&f);
	a = slack_state_arrivals(f.state);
	slack_arrivals_begin(a, f.now_ns + 10 * MINUTE_NS);
	slack_arrivals_add(a, f.now_ns, &(struct slack_amount){1, INT64_MAX});
	slack_arrivals_add(a, f.now_ns, &(struct slack_amount){2, 1LL << 52});
	slack_arrivals_add(a, f.now_ns, &(struct slack_amount){-3, 0});
	slack_arrivals_add(a, f.now_ns, &(struct slack_amount){0, 7});
	slack_arrivals_add(a, f.now_ns, &(struct slack_amount){3, -1});
	slack_arrivals_add(a, f.now_ns, &(struct slack_amount){INT64_MAX, 1});
	slack_arrivals_add(a, f.now_ns, &(struct slack_amount){1LL << 53, 1});
	slack_arrivals_add(a, f.now_ns, &(struct slack_amount){4, 1LL << 53});
	slack_arrivals_end(a, f.now_ns + 10 * MINUTE_NS);
	for (size_t i = 0; i < a->count; i++)
		a->of[i].count = a->of[i].shape.cpu_milli == 2 ? 1000 : UINT32_MAX;
	{
		char *text = memory_of(f.state);
		struct slack_state *s = slack_state_new();

		assert_int_equal(slack_memory_read(s, text, strlen(text), NULL), 0);
		assert_int_equal(slack_state_arrivals(s)->count, 2);
		assert_int_equal(slack_state_arrivals(s)->of[0].shape.mem_bytes, 7);
		assert_int_equal(slack_state_arrivals(s)->of[1].shape.mem_bytes, 1LL << 52);
		slack_state_free(s);
		free(text);
	}
}

#define CLASS(more) "{'classes':[{'class':'unit','wanted':1," more "}]}"
#define NODES(list) CLASS("'nodes':[" list "]")
#define ARRIVALS(more)                                                                             \
	"{'classes':[],'arrivals':{'spanNanoseconds':180000000000,'keepNanoseconds':9,"            \
	"'firstSpan':1,'seen':'2026-01-31T12:00:00Z'," more "}}"
#define ITEM(span, memory, count)                                                                  \
	"{'span':" span ",'cpuMillicores':1,'memoryBytes':" memory ",'count':" count "}"

struct refusal {
	const char *json, *why;
};

static void expect_refused(const struct refusal *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct slack_state *s = slack_state_new();
		char *json = mem_strdup(cases[i].json), *after;
		struct error why = {""};

		for (char *c = json; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		assert_int_equal(slack_memory_read(s, json, strlen(json), &why), -EINVAL);
		assert_string_equal(why.text, cases[i].why);
		after = memory_of(s);
		assert_string_equal(after, "{\"classes\":[]}");
		slack_state_free(s);
		free(after);
		free(json);
	}
}

static void test_refused_classes(void **state)
{
	static const struct refusal cases[] = {
		{"", "must be an object of JSON in UTF-8"},
		{"[]", "must be an object of JSON in UTF-8"},
		{"{'\xff':1}", "must be an object of JSON in UTF-8"},
		{"{'classes':{}}", "classes: must be a list"},
		{"{'classes':[7]}", "classes[0].class: must be a name"},
		{"{'classes':[{'class':''}]}", "classes[0].class: must be a name"},
		{"{'classes':[{'class':'a'}]}",
		 "classes[0].wanted: must be a whole number of 0 to 50000"},
		{"{'classes':[{'class':'a','wanted':50001}]}",
		 "classes[0].wanted: must be a whole number of 0 to 50000"},
		{"{'classes':[{'class':'a','wanted':1.5}]}",
		 "classes[0].wanted: must be a whole number of 0 to 50000"},
		{CLASS("'nodes':7"), "classes[0].nodes: must be a list"},
		{CLASS("'lowerSince':'soon','nodes':[]"),
		 "classes[0].lowerSince: must be a time such as 2026-01-31T12:00:00Z"},
		{CLASS("'lowerSince':'2026-01-31T12:00:00Z','nodes':[]"),
		 "classes[0].lowerTarget: must be a whole number of 0 to 50000"},
		{NODES("{'node':'n1'}"),
		 "classes[0].nodes[0].count: must be a whole number of 0 to 50000"},
		{NODES("{'node':'n1','count':40000},{'node':'n2','count':10001}"),
		 "classes[0].nodes[1].count: must be a whole number of 0 to 10000"},
		{NODES("{'node':'n2','count':1},{'node':'n1','count':1}"),
		 "classes[0].nodes[1].node: \"n1\" is out of order"},
		{NODES("{'node':'n1','count':1},{'node':'n1','count':1}"),
		 "classes[0].nodes[1].node: \"n1\" is out of order"},
		{"{'classes':[{'class':'b','wanted':0,'nodes':[]},{'class':'a'}]}",
		 "classes[1].class: \"a\" is out of order"},
		{CLASS("'cpuMillicores':-1,'nodes':[]"),
		 "classes[0].cpuMillicores: must be a whole number of 0 to 9007199254740992"},
		{CLASS("'cpuMillicores':1,'memoryBytes':-1,'nodes':[]"),
		 "classes[0].memoryBytes: must be a whole number of 0 to 9007199254740992"},
		{CLASS("'cpuMillicores':1,'memoryBytes':1,'shapeSince':'soon','nodes':[]"),
		 "classes[0].shapeSince: must be a time such as 2026-01-31T12:00:00Z"},
		{CLASS("'lowerSince':'1969-12-31T23:59:59Z','nodes':[]"),
		 "classes[0].lowerSince: must be a time such as 2026-01-31T12:00:00Z"},
		{NODES("{'count':1}"), "classes[0].nodes[0].node: must be a name"},
	};

	(void)state;
	expect_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_refused_arrivals(void **state)
{
	static const struct refusal cases[] = {
		{"{'classes':[],'arrivals':{'spanNanoseconds':5}}",
		 "arrivals.keepNanoseconds: must be a whole number of 0 to 9007199254740992"},
		{"{'classes':[],'arrivals':{'spanNanoseconds':5,'keepNanoseconds':9,"
		 "'firstSpan':1,'seen':'2026-01-31T12:00:00Z'}}",
		 "arrivals.spanNanoseconds: is less than a second"},
		{"{'classes':[],'arrivals':{'spanNanoseconds':-1}}",
		 "arrivals.spanNanoseconds: must be a whole number of 0 to 86400000000000"},
		{"{'classes':[],'arrivals':{'spanNanoseconds':1000000000,'keepNanoseconds':9,"
		 "'firstSpan':'1'}}",
		 "arrivals.firstSpan: must be a whole number of 0 to 9007199254740992"},
		{"{'classes':[],'arrivals':{'spanNanoseconds':1000000000,'keepNanoseconds':9,"
		 "'firstSpan':1}}",
		 "arrivals.seen: must be a time such as 2026-01-31T12:00:00Z"},
		{ARRIVALS("'items':[{'span':-1}]"),
		 "arrivals.items[0].span: must be a whole number of 0 to 9007199254740992"},
		{ARRIVALS("'items':[{'span':1,'cpuMillicores':-1}]"),
		 "arrivals.items[0].cpuMillicores: must be a whole number of 0 to "
		 "9007199254740992"},
		{ARRIVALS("'items':[" ITEM("1", "-1", "1") "]"),
		 "arrivals.items[0].memoryBytes: must be a whole number of 0 to 9007199254740992"},
		{ARRIVALS("'items':[{'span':1,'cpuMillicores':9007199254740992,'memoryBytes':1,'"
			  "count':1000000}]"),
		 "arrivals.items[0]: no cluster has that much"},
		{ARRIVALS("'items':[" ITEM("2", "1", "1") "," ITEM("1", "2", "1") "]"),
		 "arrivals.items[1]: is out of order"},
		{ARRIVALS("'items':[{'span':1,'cpuMillicores':2,'memoryBytes':1,'count':1}," ITEM(
			 "1", "2", "1") "]"),
		 "arrivals.items[1]: is out of order"},
		{ARRIVALS("'items':[" ITEM("1", "2", "1") "," ITEM("1", "1", "1") "]"),
		 "arrivals.items[1]: is out of order"},
		{ARRIVALS("'items':7"), "arrivals.items: must be a list of 65536 at most"},
		{ARRIVALS("'items':[" ITEM("1", "1", "-1") "]"),
		 "arrivals.items[0].count: must be a whole number of 0 to 1000000"},
		{ARRIVALS("'items':[" ITEM("1", "1", "1") "," ITEM("1", "1", "1") "]"),
		 "arrivals.items[1]: is out of order"},
		{ARRIVALS("'items':[" ITEM("1", "9007199254740992", "1000000") "]"),
		 "arrivals.items[0]: no cluster has that much"},
	};

	(void)state;
	expect_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
	const struct CMUnitTest tests[] = {
		TEST(test_placements_stay),
		TEST(test_timeout_goes_on),
		TEST(test_arrivals_are_kept),
		TEST(test_absurd_pods),
		cmocka_unit_test(test_refused_classes),
		cmocka_unit_test(test_refused_arrivals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
