/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies over moments that are made by hand: nodes a and b have 3 allocatable CPUs; what each uses is
 * given. Some moments have a node c, which uses 100 millicores.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/replay_policies.h"
#include "aggregator/model/model.h"
#include "aggregator/state/join.h"
#include "aggregator/state/record.h"
#include "shared/clock.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "tests/model_fixture.h"
#include "tests/process.h"
#include "tests/view_fixture.h"

/* Nothing waits or is killed there. */
static struct node_stats *use_of(const char *node, int64_t now_ns, double milli)
{
	struct node_stats made = view_fixture_node(node, now_ns - 2 * NS_PER_SEC, 3600, milli, 10);

	for (int w = 0; w < WINDOWS; w++)
		made.usage.windows[w].counts = (struct window_counts){0};
	return node_stats_new(&made);
}

static struct object *node(const char *name)
{
	char *json =
		mem_printf("{\"metadata\":{\"name\":\"%s\"},\"status\":{"
			   "\"capacity\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"110\"},"
			   "\"allocatable\":{\"cpu\":\"3\",\"memory\":\"7Gi\",\"pods\":\"110\"},"
			   "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
			   name);
	struct object *o = model_fixture_object(OBJECT_NODE, json);

	free(json);
	return o;
}

/* node: "a", or "-a" for a pod that has ended there. */
static void put_pod(struct model *m, const char *name, const char *node)
{
	bool ended = node[0] == '-';

	model_put(m, model_fixture_pod(
			     &(struct model_fixture_pod){.name = name,
							 .node = node + ended,
							 .phase = ended ? "Succeeded" : "Running",
							 .owner_kind = "ReplicaSet",
							 .owner_name = "web",
							 .owner_uid = "uid-web",
							 .cpu = "500m",
							 .memory = "100Mi"}));
}

/* Seconds after the fixture's moment; with a pod on each node of the list, up to NULL. Only a pod makes c. */
static struct offline_moment moment(int seconds, double a_milli, double b_milli,
				    const char *const *nodes)
{
	int64_t now_ns = VIEW_FIXTURE_NOW_NS + seconds * NS_PER_SEC;
	struct node_stats *stats[] = {use_of("a", now_ns, a_milli), use_of("b", now_ns, b_milli),
				      use_of("c", now_ns, 100)};
	struct offline_moment m = {.at_ns = now_ns};
	struct model *model = model_new();
	struct join *join = join_new();
	char name[16];
	size_t count = 2;

	for (int k = 0; k < OBJECT_KINDS; k++)
		model_fixture_sync(model, (enum object_kind)k);
	model_put(model, node("a"));
	model_put(model, node("b"));
	model_put(model, model_fixture_workload(OBJECT_REPLICA_SET, "default", "web", NULL, NULL));
	for (int i = 0; nodes[i]; i++) {
		if (count == 2 && strcmp(nodes[i], "c") == 0) {
			model_put(model, node("c"));
			count = 3;
		}
		snprintf(name, sizeof(name), "web-%d", i);
		put_pod(model, name, nodes[i]);
	}
	m.view = join_view(join, stats, count, model_cluster(model), now_ns);
	buf_add_str(&m.state, "{}");
	join_free(join);
	model_free(model);
	node_stats_drop(stats[0]);
	node_stats_drop(stats[1]);
	node_stats_drop(stats[2]);
	return m;
}

/* Lets the policies, up to NULL, go over the moments, which it ends; what they did. */
static cJSON *run(const char *const *texts, struct offline_moment *moments, size_t count)
{
	struct cli_options options = {.output = OUTPUT_JSON};
	struct cli cli = {.options = &options};
	struct option_list list = {.items = (char **)texts};
	struct policies all;
	struct error error = {""};
	cJSON *doc;

	while (texts[list.count])
		list.count++;
	assert_int_equal(policies_read(&all, &list, &error), 0);
	for (size_t i = 0; i < count; i++)
		if (policies_step(&all, i ? &moments[i - 1] : NULL, &moments[i], &error))
			fail_msg("%s", error.text);
	policies_show(&all, &cli);
	doc = cJSON_Parse(cli.out.data);
	assert_non_null(doc);
	for (size_t i = 0; i < count; i++)
		offline_moment_fini(&moments[i]);
	policies_fini(&all);
	buf_fini(&cli.out);
	return doc;
}

static int result(const cJSON *doc, int policy, const char *name)
{
	const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItem(doc, "items"), policy);

	return (int)cJSON_GetNumberValue(cJSON_GetObjectItem(item, name));
}

#define NODES(...) ((const char *[]){__VA_ARGS__})

/* In the record the pod went to b, which became hot; and another one, too late to be judged. */
static void test_placements(void **unused)
{
	static const char *const texts[] = {"calm:blend=LoadVariationRiskBalancing=1",
					    "packed:blend=TargetLoadPacking=1", NULL};
	struct offline_moment moments[] = {
		moment(0, 100, 500, NODES(NULL)),
		moment(10, 100, 500, NODES("b", NULL)),
		moment(299, 100, 2600, NODES("b", NULL)),
		moment(310, 100, 2600, NODES("b", NULL)),
		moment(620, 100, 2600, NODES("b", "b", NULL)),
	};
	cJSON *doc = run(texts, moments, 5);

	(void)unused;
	for (int p = 0; p < 2; p++) {
		assert_int_equal(result(doc, p, "placed"), 2);
		assert_int_equal(result(doc, p, "judged"), 1);
		assert_int_equal(result(doc, p, "hotWas"), 1);
	}
	assert_int_equal(result(doc, 0, "hot"), 0);
	assert_int_equal(result(doc, 1, "hot"), 1);
	cJSON_Delete(doc);
}

static void test_an_ended_pod_is_not_judged(void **unused)
{
	static const char *const texts[] = {"now", NULL};
	struct offline_moment moments[] = {
		moment(0, 100, 500, NODES(NULL)),
		moment(10, 100, 500, NODES("b", NULL)),
		moment(310, 100, 2600, NODES("-b", NULL)),
	};
	cJSON *doc = run(texts, moments, 3);

	(void)unused;
	assert_int_equal(result(doc, 0, "placed"), 1);
	assert_int_equal(result(doc, 0, "judged"), 0);
	cJSON_Delete(doc);
}

/* The node a is drained at once, or after ten minutes; b is too full then. */
static void test_waves(void **unused)
{
	static const char *const texts[] = {
		"soon:scale-down-unneeded-time=30s;assume-unneeded-for=1m;extra-capacity-min-rate="
		"0",
		"usual:assume-unneeded-for=1m;extra-capacity-min-rate=0", NULL};
	struct offline_moment moments[] = {
		moment(0, 100, 1000, NODES("a", "b", "b", "b", "b", NULL)),
		moment(60, 100, 1000, NODES("a", "b", "b", "b", "b", NULL)),
		moment(120, 100, 2600, NODES("a", "b", "b", "b", "b", NULL)),
		moment(180, 100, 2600, NODES("a", "b", "b", "b", "b", NULL)),
	};
	cJSON *doc = run(texts, moments, 4);

	(void)unused;
	assert_int_equal(result(doc, 0, "waves"), 1);
	assert_int_equal(result(doc, 0, "drained"), 1);
	assert_int_equal(result(doc, 0, "evictions"), 1);
	assert_int_equal(result(doc, 0, "overCap"), 1);
	assert_int_equal(result(doc, 1, "drained"), 0);
	assert_int_equal(result(doc, 1, "overCap"), 0);
	cJSON_Delete(doc);
}

/* Then a is full, and c is drained to b as well, which is over the cap once more. */
static void test_destination_of_two_waves(void **unused)
{
	static const char *const texts[] = {
		"soon:scale-down-unneeded-time=30s;assume-unneeded-for=1m;extra-capacity-min-rate="
		"0",
		NULL};
	struct offline_moment moments[] = {
		moment(0, 100, 1000, NODES("a", "b", "b", "b", "b", NULL)),
		moment(60, 100, 2600, NODES("a", "b", "b", "b", "b", NULL)),
		moment(120, 2600, 1000,
		       NODES("a", "b", "b", "b", "b", "a", "a", "a", "a", "a", "c", NULL)),
		moment(180, 2600, 2600,
		       NODES("a", "b", "b", "b", "b", "a", "a", "a", "a", "a", "c", NULL)),
	};
	cJSON *doc = run(texts, moments, 4);

	(void)unused;
	assert_int_equal(result(doc, 0, "waves"), 2);
	assert_int_equal(result(doc, 0, "evictions"), 2);
	assert_int_equal(result(doc, 0, "overCap"), 1);
	cJSON_Delete(doc);
}

static void test_refusals(void **unused)
{
	static const struct {
		const char *texts[2], *says;
	} rows[] = {
		{{"x:drain"}, "must be OPTION=VALUE"},
		{{":drain-z=1"}, "needs a name"},
		{{"drain-cpu-cap=0.5"},
		 "--policy drain-cpu-cap=0.5: the form is NAME:OPTION=VALUE;.."},
		{{"a,b"}, "--policy a,b: the form is"},
		{{"a;b:drain-cpu-cap=0.5"}, "the form is"},
		{{"x:drain-cpu-cap=0.5", "x"}, "--policy x: another one has this name"},
		{{"x:foo=1"}, "--policy x: unknown option --foo"},
		{{"x:blend=Nope=1"}, "--policy x: there is no plugin \"Nope\""},
	};
	struct offline_moment m = moment(0, 100, 1000, NODES("a", NULL));

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct option_list list = {(char **)rows[i].texts, 1 + !!rows[i].texts[1]};
		struct policies all;
		struct error error = {""};

		if (!policies_read(&all, &list, &error))
			assert_int_not_equal(policies_step(&all, NULL, &m, &error), 0);
		if (!strstr(error.text, rows[i].says))
			fail_msg("%s: \"%s\"", rows[i].texts[0], error.text);
		policies_fini(&all);
	}
	offline_moment_fini(&m);
}

/* A segment that stands for itself: a view of a node, and with_pod of a pod on it. */
static void write_segment(const char *dir, int64_t at_ns, bool with_pod)
{
	char *path = mem_printf("%s/" RECORD_PREFIX "%019lld" RECORD_SUFFIX, dir, (long long)at_ns);
	struct model *m = model_new();
	struct buf out = BUF_INIT;
	struct cluster *c;
	struct jsonw w;
	size_t begun = record_begin(&out, RECORD_BEGIN);
	FILE *f = fopen(path, "we");

	buf_add_char(&out, RECORD_VERSION);
	buf_add(&out, "\0\0\0\0\0\0\0", 8);
	record_end(&out, begun);
	begun = record_begin(&out, RECORD_STATE);
	buf_add_str(&out, "{}");
	record_end(&out, begun);
	record_end(&out, record_begin(&out, RECORD_BASE_END));
	for (int k = 0; k < OBJECT_KINDS; k++)
		model_fixture_sync(m, (enum object_kind)k);
	model_put(m, node("a"));
	if (with_pod)
		put_pod(m, "web-0", "a");
	c = model_cluster(m);
	record_changes(&out, NULL, c);
	begun = record_begin(&out, RECORD_SOURCES);
	jsonw_init(&w, &out);
	snapshot_write_sources(&w, c);
	record_end(&out, begun);
	record_number(&out, RECORD_GATHERED, (uint64_t)at_ns, 8);
	record_number(&out, RECORD_VIEW, (uint64_t)at_ns, 8);
	assert_non_null(f);
	assert_int_equal(fwrite(out.data, out.len, 1, f), 1);
	assert_int_equal(fclose(f), 0);
	cluster_drop(c);
	model_free(m);
	buf_fini(&out);
	free(path);
}

/* evenkeel replay goes on behind moments without a record; a pod that was bound then is not placed. */
static void test_gap(void **unused)
{
	char *times[] = {(char *)"2027-01-15T07:59:59Z", (char *)"2027-01-15T08:00:00Z",
			 (char *)"2027-01-15T08:00:30Z", (char *)"2027-01-15T08:01:00Z"};
	char *policy = (char *)"now", *dir = folder_make();
	struct cli_options options = {.output = OUTPUT_JSON,
				      .at = {times, 4},
				      .policies = {&policy, 1}};
	struct cli cli = {.options = &options, .operands = &dir, .operand_count = 1};
	cJSON *doc;

	(void)unused;
	write_segment(dir, 1800000000 * NS_PER_SEC, false);
	write_segment(dir, 1800000060 * NS_PER_SEC, true);
	if (command_replay.run(&cli) != CLI_STALE ||
	    !strstr(cli.reason.text, "2 of 4 moments are not in the record; the first: ") ||
	    !strstr(cli.reason.text, "the record begins at 2027-01-15T08:00:00"))
		fail_msg("%s", cli.reason.text);
	buf_add_str(&cli.out, "");
	doc = cJSON_Parse(cli.out.data);
	assert_non_null(doc);
	assert_int_equal(result(doc, 0, "placed") + result(doc, 0, "unplaced"), 0);
	cJSON_Delete(doc);
	buf_clear(&cli.out);
	options.at.count = 1;
	assert_int_equal(command_replay.run(&cli), CLI_STALE);
	assert_int_equal(cli.out.len, 0);
	buf_fini(&cli.out);
	folder_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placements),
		cmocka_unit_test(test_an_ended_pod_is_not_judged),
		cmocka_unit_test(test_waves),
		cmocka_unit_test(test_destination_of_two_waves),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
