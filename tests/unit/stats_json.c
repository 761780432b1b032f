/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stats written and read again are the same stats; whatever else is read is refused by the name of
 * its field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "aggregator/state/stats_json.h"
#include "shared/mem.h"
#include "tests/stats_equal.h"
#include "tests/usage_fixture.h"
#include "tests/usage_story.h"
#include "tests/view_fixture.h"

enum { ITEMS_MAX = 64 };

/* The items of some stats, as text. */
struct items {
	size_t node_count, pod_count;
	char *nodes[ITEMS_MAX], *pods[ITEMS_MAX];
};

static char *take_text(struct buf *b)
{
	return buf_take(b, NULL);
}

static void write_stats(struct items *items, const struct node_stats *p)
{
	struct buf out = BUF_INIT;
	struct jsonw w;

	jsonw_init(&w, &out);
	stats_json_write_node(p, &w);
	items->nodes[items->node_count++] = take_text(&out);
	for (size_t i = 0; i < p->pod_count; i++) {
		jsonw_init(&w, &out);
		stats_json_write_pod(p, &p->pods[i], &w);
		items->pods[items->pod_count++] = take_text(&out);
	}
}

static void free_items(struct items *items)
{
	for (size_t i = 0; i < items->node_count; i++)
		free(items->nodes[i]);
	for (size_t i = 0; i < items->pod_count; i++)
		free(items->pods[i]);
}

static cJSON *parse(const char *text)
{
	cJSON *json = cJSON_ParseWithOpts(text, NULL, true);

	if (!json)
		fail_msg("not JSON: %s", text);
	return json;
}

/* Reads the items, the last first if `backwards`, pods before nodes; the stats are the caller's. */
static struct node_stats **read_items(const struct items *items, bool backwards, size_t *count)
{
	struct stats_json_set *s = stats_json_set_new();
	char field[JSON_IO_FIELD_MAX] = "";
	struct error reason = {""};
	struct node_stats **node_stats;

	for (size_t k = 0; k < items->pod_count; k++) {
		size_t i = backwards ? items->pod_count - 1 - k : k;

		if (stats_json_add_pod(s, parse(items->pods[i]), field, &reason))
			fail_msg("%s: %s: %s", items->pods[i], field, reason.text);
	}
	for (size_t k = 0; k < items->node_count; k++) {
		size_t i = backwards ? items->node_count - 1 - k : k;

		if (stats_json_add_node(s, parse(items->nodes[i]), field, &reason))
			fail_msg("%s: %s: %s", items->nodes[i], field, reason.text);
	}
	if (stats_json_set_stats(s, &node_stats, count, &reason))
		fail_msg("%s", reason.text);
	stats_json_set_free(s);
	return node_stats;
}

static void drop_stats(struct node_stats **node_stats, size_t count)
{
	for (size_t i = 0; i < count; i++)
		node_stats_drop(node_stats[i]);
	free(node_stats);
}

static void check_round_trip(const struct view *v)
{
	struct items items = {0}, again = {0};
	struct node_stats **node_stats;
	size_t count;

	for (size_t i = 0; i < v->node_count; i++)
		write_stats(&items, v->nodes[i]->stats);
	for (int backwards = 0; backwards < 2; backwards++) {
		node_stats = read_items(&items, backwards, &count);
		assert_int_equal(count, v->node_count);
		for (size_t i = 0; i < count; i++)
			stats_equal_check(v->nodes[i]->stats, node_stats[i]);
		again = (struct items){0};
		for (size_t i = 0; i < count; i++)
			write_stats(&again, node_stats[i]);
		for (size_t i = 0; i < items.node_count; i++)
			assert_string_equal(items.nodes[i], again.nodes[i]);
		for (size_t i = 0; i < items.pod_count; i++)
			assert_string_equal(items.pods[i], again.pods[i]);
		free_items(&again);
		drop_stats(node_stats, count);
	}
	free_items(&items);
}

static void test_stats_by_hand(void **state)
{
	struct view *v = view_fixture_new();

	(void)state;
	check_round_trip(v);
	view_drop(v);
}

/*
 * Numbers with all their digits: hours of use as agents tell it, with peaks, on a node that starts,
 * goes on and stays away.
 */
static void test_stats_as_measured(void **state)
{
	struct usage_state *u = usage_new(&(struct usage_limits){4, 64});
	struct view *v;

	(void)state;
	for (uint64_t k = 1; k <= 130; k++) {
		const struct usage_fixture f = {.sequence = k,
						.end_ns = T0 + (int64_t)k * 30 * SEC + 123456789,
						.seconds = 30,
						.pods = 4,
						.containers = 2,
						.identities = k == 1,
						.seed = (uint32_t)k};
		struct interval *i = usage_fixture_new(&f);
		struct usage_answer answer;

		usage_apply(u, "measured", story_run('a'), NULL, i, f.end_ns + 1000, &answer);
		if (k == 1 && answer.verdict == USAGE_NEED_FULL)
			usage_apply(u, "measured", story_run('a'), NULL, i, f.end_ns + 2000,
				    &answer);
		assert_int_equal(answer.verdict, USAGE_APPLIED);
		if (k == 1 || k == 7 || k == 130) {
			v = usage_view(u, f.end_ns);
			check_round_trip(v);
			view_drop(v);
		}
		interval_free(i);
	}
	usage_free(u);
}

/* What no double and no reader of JSON holds, and what an agent did not tell. */
static void test_extremes(void **state)
{
	struct node_stats p = view_fixture_node("x", VIEW_FIXTURE_NOW_NS + 1, 900, 1, 1);
	struct pod_stats waiting[] = {{.name = "a", .cause = {0.75F, 2}},
				      {.name = "b", .cause = {0.5F, CAUSE_SYSTEM}},
				      {.name = "c"}};
	struct view *v;

	(void)state;
	p.totals.cpu.user_ns = UINT64_MAX;
	p.totals.cpu.system_ns = (1ULL << 53) + 1;
	p.pass_ns = 1ULL << 50;
	p.clock_known = true;
	p.clock_ahead_ns = -(1LL << 50) - 1;
	p.aside_ns = 12345;
	p.overflow = UINT32_MAX;
	p.quarantine = (struct node_quarantine){3, VIEW_FIXTURE_NOW_NS - 7, QUARANTINE_negative,
						"memory \"-1\" of a\\b\n"};
	p.usage.latest.pids = (struct latest){.value = 1e-38F, .age_seconds = 65535, .known = true};
	p.usage.windows[0].cpu_milli.mean = 0.1;
	p.usage.windows[0].cpu_milli.p95 = 5e-324;
	p.usage.windows[0].cpu_milli.max = 1.7976931348623157e308;
	p.usage.windows[0].mem_bytes.stddev = -0.0;
	p.usage.windows[1].mem_bytes.min = NAN;
	v = view_fixture_of(&p, 1);
	check_round_trip(v);
	view_drop(v);
	p = view_fixture_node("x", VIEW_FIXTURE_NOW_NS, 900, 1, 1);
	for (int i = 0; i < 3; i++)
		waiting[i].usage.counts.seconds = 1;
	p.pods = waiting;
	p.pod_count = 3;
	v = view_fixture_of(&p, 1);
	check_round_trip(v);
	view_drop(v);
	p = (struct node_stats){.name = "foreign", .foreign = true, .end_ns = 5};
	v = view_fixture_of(&p, 1);
	check_round_trip(v);
	view_drop(v);
}

/* --- what is refused -------------------------------------------------------------------------- */

static const char node_text[] =
	"{\"name\":\"n\",\"end\":\"2026-01-31T12:00:00Z\",\"source\":{\"tier\":\"T1\",\"rateHz\":"
	"10,"
	"\"runId\":\"000102030405060708090a0b0c0d0e0f\",\"missedTicks\":0,\"overflowCgroups\":0,"
	"\"agentCpuMillicores\":1.5,\"passMicroseconds\":1,\"asideNanoseconds\":0},"
	"\"capacity\":{\"cpuMillicores\":4000,\"memoryBytes\":1024},"
	"\"totals\":{\"missedTicks\":0,\"cpuNanoseconds\":{\"user\":1,\"system\":2,\"iowait\":3,"
	"\"steal\":4},\"pressureNanoseconds\":{\"cpu\":5}},"
	"\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":3,\"end\":\"2026-01-31T12:00:00Z\"},"
	"\"windows\":{\"5m\":{\"start\":\"2026-01-31T11:55:00Z\",\"end\":\"2026-01-31T12:00:00Z\","
	"\"samples\":9,\"mean\":1,\"stddev\":2,\"p50\":1,\"p95\":3,\"p99\":4,\"min\":0,\"max\":5}}}"
	"},"
	"\"contention\":{\"cpu\":0.5,\"memory\":null,\"cpuStalledRatio\":null,"
	"\"memoryStalledRatio\":null,\"throttledRatio\":null,\"throttledSeconds\":2.5,"
	"\"oomKills\":null,\"seconds\":300}}";

static const char pod_text[] =
	"{\"node\":\"n\",\"end\":\"2026-01-31T12:00:00Z\",\"name\":\"p\",\"uid\":\"u\",\"kind\":"
	"\"Pod\",\"qosClass\":\"Burstable\",\"kernelLimits\":{\"cpuMillicores\":null,\"pids\":9},"
	"\"usage\":{\"pids\":{\"latest\":{\"value\":7,\"end\":\"2026-01-31T11:59:30Z\"}}},"
	"\"containers\":[{\"name\":\"c\",\"runtime\":\"cri-o\",\"usage\":{},\"contention\":{"
	"\"cpu\":0.5,\"memory\":null,\"cpuStalledRatio\":null,\"memoryStalledRatio\":null},"
	"\"throttledSeconds\":0.25}]}";

struct bad {
	const char *from, *to; /* of the text */
	const char *field, *reason;
};

/* A copy of text with the first `from` replaced. */
static char *replace(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);

	if (!at)
		fail_msg("%s is not in it", from);
	return mem_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void check_refused(const struct bad *cases, size_t count, const char *text, bool pod)
{
	for (size_t i = 0; i < count; i++) {
		struct stats_json_set *s = stats_json_set_new();
		char *changed = replace(text, cases[i].from, cases[i].to);
		char field[JSON_IO_FIELD_MAX] = "";
		struct error reason = {""};
		int rc = pod ? stats_json_add_pod(s, parse(changed), field, &reason)
			     : stats_json_add_node(s, parse(changed), field, &reason);

		if (!rc)
			fail_msg("%s is read", changed);
		assert_string_equal(field, cases[i].field);
		assert_string_equal(reason.text, cases[i].reason);
		free(changed);
		stats_json_set_free(s);
	}
}

static void test_refuses_nodes(void **state)
{
	static const struct bad cases[] = {
		{"\"name\":\"n\",", "", "name", "is missing"},
		{"\"name\":\"n\"", "\"name\":7", "name", "must be a text"},
		{"\"name\":\"n\"", "\"name\":\"\"", "name", "must be a text"},
		{"\"end\":\"2026-01-31T12:00:00Z\"", "\"end\":\"yesterday\"", "end",
		 "\"yesterday\" is not a time such as 2026-01-31T12:00:00Z"},
		{"\"end\":\"2026-01-31T12:00:00Z\"", "\"end\":\"1969-12-31T12:00:00Z\"", "end",
		 "\"1969-12-31T12:00:00Z\" is not a time such as 2026-01-31T12:00:00Z"},
		{"\"T1\"", "\"T9\"", "source.tier", "\"T9\" is none of those there are"},
		{"\"rateHz\":10", "\"rateHz\":\"10\"", "source.rateHz", "must be a number"},
		{"\"rateHz\":10", "\"rateHz\":1e39", "source.rateHz", "is too large"},
		{"\"rateHz\":10", "\"rateHz\":null", "source.rateHz", "must be a number"},
		{"0e0f", "0e0g", "source.runId", "must be 32 hexadecimal digits"},
		{"0e0f", "0e", "source.runId", "must be 32 hexadecimal digits"},
		{"\"missedTicks\":0", "\"missedTicks\":1.5", "source.missedTicks",
		 "must be a whole number"},
		{"\"missedTicks\":0", "\"missedTicks\":-1", "source.missedTicks",
		 "must be from 0 to 4294967295"},
		{"\"user\":1", "\"user\":1e17", "totals.cpuNanoseconds.user",
		 "must be a string of digits: it is beyond 2^53"},
		{"\"user\":1", "\"user\":\"1x\"", "totals.cpuNanoseconds.user",
		 "must be a whole number"},
		{"\"user\":1", "\"user\":\"18446744073709551616\"", "totals.cpuNanoseconds.user",
		 "must be a whole number"},
		{"\"passMicroseconds\":1", "\"passMicroseconds\":-1", "source.passMicroseconds",
		 "is out of range"},
		{"\"passMicroseconds\":1", "\"passMicroseconds\":1e16", "source.passMicroseconds",
		 "is out of range"},
		{"\"rateHz\"", "\"rate\"", "source.rateHz", "is missing"},
		{"\"rateHz\":10", "\"rateHz\":10,\"rateHz\":10", "source.rateHz",
		 "is unknown here, or stands twice"},
		{"{\"name\"", "{\"more\":1,\"name\"", "more", "is unknown here, or stands twice"},
		{"\"memoryBytes\":1024", "\"memoryBytes\":-1", "capacity.memoryBytes",
		 "must be from 0 to 9007199254740992"},
		{"\"system\":2,", "", "totals.cpuNanoseconds.system", "is missing"},
		{"\"pressureNanoseconds\":{\"cpu\":5}", "\"pressureNanoseconds\":{\"io\":5}",
		 "totals.pressureNanoseconds.io", "is unknown here, or stands twice"},
		{"12:00:00Z\"},", "12:00:01Z\"},", "usage.cpuMillicores.latest.end",
		 "must be that of the stats, or at most 65535 s before"},
		{"12:00:00Z\"},", "11:59:59Z\",\"x\":1},", "usage.cpuMillicores.latest.x",
		 "is unknown here, or stands twice"},
		{"\"2026-01-31T12:00:00Z\"},", "\"2026-01-30T12:00:00Z\"},",
		 "usage.cpuMillicores.latest.end",
		 "must be that of the stats, or at most 65535 s before"},
		{"\"5m\"", "\"6m\"", "usage.cpuMillicores.windows.6m",
		 "is unknown here, or stands twice"},
		{"\"p95\":3,", "", "usage.cpuMillicores.windows.5m.p95", "is missing"},
		{"\"mean\":1", "\"mean\":1e999", "usage.cpuMillicores.windows.5m.mean",
		 "must be a number"},
		{"\"max\":5", "\"max\":true", "usage.cpuMillicores.windows.5m.max",
		 "must be a number"},
		{"\"windows\":{", "\"windows\":[],\"x\":{", "usage.cpuMillicores.windows",
		 "must be an object"},
		{"\"memory\":null,", "", "contention.memory", "is missing"},
		{"\"oomKills\":null", "\"oomKills\":true", "contention.oomKills",
		 "must be a whole number"},
		{"\"seconds\":300", "\"seconds\":300,\"windows\":{\"5m\":{}}",
		 "contention.windows.5m", "is unknown here, or stands twice"},
	};
	struct stats_json_set *s = stats_json_set_new();
	char field[JSON_IO_FIELD_MAX] = "";
	struct error reason = {""};

	(void)state;
	assert_int_equal(stats_json_add_node(s, parse(node_text), field, &reason), 0);
	assert_int_equal(stats_json_add_node(s, parse("[1]"), field, &reason), -EINVAL);
	assert_string_equal(field, "");
	assert_string_equal(reason.text, "must be an object");
	stats_json_set_free(s);
	check_refused(cases, sizeof(cases) / sizeof(cases[0]), node_text, false);
}

/* The object is there, without what contradicts itself. */
static void test_impossible_windows_are_left_out(void **state)
{
	static const struct bad cases[] = {
		{"\"min\":0", "\"min\":0", "", ""},
		{"\"min\":0,", "", "", ""},
		{"\"min\":0", "\"min\":1.9", "", ""}, /* of a mean of 1: rounding */
		{"\"min\":0,\"max\":5", "\"min\":50,\"max\":5", "", "min is above max"},
		{"\"mean\":1", "\"mean\":7", "", "the mean is not between min and max"},
		{"\"mean\":1", "\"mean\":-2", "", "the mean is not between min and max"},
		{"\"p95\":3", "\"p95\":1e30", "", "a percentile is not between min and max"},
		{"\"p50\":1", "\"p50\":-1e30", "", "a percentile is not between min and max"},
		{"\"p99\":4", "\"p99\":7", "", "a percentile is not between min and max"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stats_json_set *s = stats_json_set_new();
		char *changed = replace(node_text, cases[i].from, cases[i].to);
		char *want = mem_printf("%s%s",
					*cases[i].reason ? "usage.cpuMillicores.windows.5m: " : "",
					cases[i].reason);
		char field[JSON_IO_FIELD_MAX] = "";
		struct error reason = {""};
		struct node_stats **node_stats;
		size_t count = 0;

		assert_int_equal(stats_json_add_node(s, parse(changed), field, &reason), 0);
		assert_string_equal(reason.text, want);
		assert_int_equal(stats_json_set_stats(s, &node_stats, &count, &reason), 0);
		assert_int_equal(count, 1);
		assert_int_equal(node_stats[0]->usage.windows[0].cpu_milli.known,
				 !*cases[i].reason);
		assert_true(node_stats[0]->usage.latest.cpu_milli.known);
		drop_stats(node_stats, count);
		stats_json_set_free(s);
		free(changed);
		free(want);
	}
}

static void test_refuses_pods(void **state)
{
	static const struct bad cases[] = {
		{"\"node\":\"n\",", "", "node", "is missing"},
		{"\"kind\":\"Pod\",", "", "kind", "is missing"},
		{"\"Pod\"", "\"Job\"", "kind", "\"Job\" is none of those there are"},
		{"\"u\"", "\"0123456789012345678901234567890123456789\"", "uid",
		 "is longer than 36 bytes"},
		{"\"pids\":9", "\"pids\":-2", "kernelLimits.pids",
		 "must be from 0 to 9223372036854775807"},
		{"\"usage\":{\"pids\":", "\"usage\":{\"memoryBytes\":", "usage.memoryBytes.windows",
		 "is missing"},
		{"\"usage\":{\"pids\":", "\"use\":{\"pids\":", "usage", "is missing"},
		{"\"name\":\"c\",", "", "containers[0].name", "is missing"},
		{"cri-o", "lxc", "containers[0].runtime", "\"lxc\" is none of those there are"},
		{"\"contention\":{\"cpu\":0.5", "\"contention\":{\"cpu\":\"a\"",
		 "containers[0].contention.cpu", "must be a number"},
		{"\"containers\":[", "\"containers\":[1,", "containers[0]", "must be an object"},
		{"\"containers\":[", "\"containers\":7,\"x\":[", "containers", "must be a list"},
		{"\"kind\"",
		 "\"hourlyPeaks\":{\"end\":\"2026-01-31T12:30:00Z\",\"cpuMillicores\":[],"
		 "\"workingSetBytes\":[]},\"kind\"",
		 "hourlyPeaks.end", "is not the end of an hour"},
		{"\"kind\"",
		 "\"hourlyPeaks\":{\"end\":\"2026-01-31T12:00:00Z\",\"cpuMillicores\":[1],"
		 "\"workingSetBytes\":[]},\"kind\"",
		 "hourlyPeaks.cpuMillicores", "must be a list of 24 numbers"},
	};

	(void)state;
	check_refused(cases, sizeof(cases) / sizeof(cases[0]), pod_text, true);
}

static void check_set(const char *node, const char *pod, const char *want)
{
	struct stats_json_set *s = stats_json_set_new();
	char field[JSON_IO_FIELD_MAX] = "";
	struct error reason = {""};
	struct node_stats **node_stats;
	size_t count;

	assert_int_equal(stats_json_add_pod(s, parse(pod), field, &reason), 0);
	assert_int_equal(stats_json_add_node(s, parse(node_text), field, &reason), 0);
	if (node)
		assert_int_equal(stats_json_add_node(s, parse(node), field, &reason), 0);
	assert_int_equal(stats_json_set_stats(s, &node_stats, &count, &reason), -EINVAL);
	assert_string_equal(reason.text, want);
	stats_json_set_free(s);
}

static void test_refuses_what_does_not_fit_together(void **state)
{
	char *other = replace(pod_text, "\"n\"", "\"m\""),
	     *later = replace(pod_text, "12:00:00Z", "12:00:01Z");

	(void)state;
	check_set(node_text, pod_text, "the node \"n\" stands twice");
	check_set(NULL, other, "the pod \"p\" is of a node \"m\", which is not there");
	check_set(NULL, later, "the pod \"p\" has another end than its node \"n\"");
	free(other);
	free(later);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stats_by_hand),
		cmocka_unit_test(test_stats_as_measured),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_refuses_nodes),
		cmocka_unit_test(test_impossible_windows_are_left_out),
		cmocka_unit_test(test_refuses_pods),
		cmocka_unit_test(test_refuses_what_does_not_fit_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
