/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that people give for a snapshot and for measurements: what is read of them, what is left
 * out, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/model/model.h"
#include "shared/clock.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

/* --- what a load watcher answers -------------------------------------------------------------- */

#define TWO_NODES                                                                                  \
	"{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":["                                     \
	"{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"node-1\"},\"status\":{" \
	"\"capacity\":{\"cpu\":\"4\",\"memory\":\"8Gi\"}}},"                                       \
	"{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"node-2\"},\"status\":{" \
	"\"capacity\":{\"cpu\":\"8\",\"memory\":\"16Gi\"}}}]}"

#define ENVELOPE(data)                                                                             \
	"{\"timestamp\":1769860800,\"window\":{\"duration\":\"15m\",\"start\":1769859890,\"end\":" \
	"1769860790},\"source\":\"S\",\"data\":" data "}"

struct loaded {
	struct snapshot *snapshot;
	struct error reason;
	struct view *view;
	int64_t now_ns;
	int rc;
};

/* Of the two nodes; freed by unload(). */
static struct loaded load(const char *dump, const char *usage)
{
	struct loaded l = {.snapshot = snapshot_new()};

	l.rc = snapshot_add(l.snapshot, "a.json", dump, strlen(dump), &l.reason);
	if (!l.rc && usage)
		l.rc = snapshot_add_usage(l.snapshot, "u.json", usage, strlen(usage), &l.reason);
	if (!l.rc)
		l.rc = snapshot_view(l.snapshot, &l.view, &l.now_ns, &l.reason);
	return l;
}

static void unload(struct loaded *l)
{
	view_drop(l->view);
	snapshot_free(l->snapshot);
}

static void check_note(const struct loaded *l, const char *want, size_t skipped)
{
	const struct snapshot_notes *notes = snapshot_notes(l->snapshot);

	assert_string_equal(notes->text.data ? notes->text.data : "", want);
	assert_int_equal(notes->skipped, skipped);
}

/* load-watcher's own form; a node that nobody knows is left out, and said. */
static void test_load_watcher(void **state)
{
	static const char usage[] = ENVELOPE(
		"{\"NodeMetricsMap\":{\"node-2\":{\"metrics\":[{\"name\":\"c\",\"type\":\"CPU\","
		"\"operator\":\"AVG\",\"rollup\":\"15m\",\"value\":50},{\"type\":\"CPU\","
		"\"operator\":"
		"\"STD\",\"rollup\":\"15m\",\"value\":2.5},{\"type\":\"Memory\",\"operator\":"
		"\"AVG\","
		"\"value\":25},{\"type\":\"Memory\",\"operator\":\"STD\",\"value\":0},{\"type\":"
		"\"Energy\",\"operator\":\"AVG\",\"value\":9}],\"tags\":{},\"metadata\":{"
		"\"dataCenter\":"
		"\"\"}},\"10.0.0.1:9100\":{\"metrics\":[]}}}");
	struct loaded l = load(TWO_NODES, usage);
	const struct window_set *set;
	const struct node_stats *p;

	(void)state;
	assert_int_equal(l.rc, 0);
	check_note(&l, "u.json: skipped node 10.0.0.1:9100: the snapshot has no such Node\n", 1);
	assert_true(l.now_ns == NOW);
	p = view_fixture_stats(l.view, "node-2");
	set = &p->usage.windows[WINDOW_15M];
	assert_true(p->end_ns == NOW - 10 * NS_PER_SEC);
	assert_true(set->cpu_milli.mean == 4000 && set->cpu_milli.stddev == 200);
	assert_true(set->mem_bytes.mean == 4294967296.0 && set->mem_bytes.stddev == 0);
	assert_true(isnan(set->cpu_milli.min) && isnan(set->cpu_milli.max));
	assert_false(set->cpu_milli.percentiles);
	assert_true(window_is_covered(set, WINDOW_15M));
	assert_false(p->usage.windows[WINDOW_5M].cpu_milli.known);
	assert_false(set->working_set_bytes.known);
	p = view_fixture_stats(l.view, "node-1");
	assert_int_equal(node_stats_freshness(p, l.now_ns), NEVER);
	unload(&l);
}

/* The example of KEP-61 to the letter, which closes the second node early. */
static void test_kep_form(void **state)
{
	static const char usage[] =
		"{\"timestamp\":1556987522,\"window\":{\"duration\":\"15m\",\"start\":1556984522,"
		"\"end\":"
		"1556985422},\"source\":\"InfluxDB\",\"data\":{\"node-1\":{\"metrics\":[{\"name\":"
		"\"host.cpu.utilisation\",\"type\":\"cpu\",\"rollup\":\"AVG\",\"value\":20},{"
		"\"name\":"
		"\"host.memory.utilisation\",\"type\":\"memory\",\"rollup\":\"STD\",\"value\":5}],"
		"\"tags\":{},\"metadata\":{\"dataCenter\":\"data-center-1\",\"pool\":\"critical-"
		"apps\"}},"
		"\"node-2\":{\"metrics\":[{\"name\":\"host.cpu.utilisation\",\"type\":\"cpu\","
		"\"rollup\":"
		"\"AVG\",\"value\":20},{\"name\":\"host.memory.utilisation\",\"type\":\"memory\","
		"\"rollup\":\"STD\",\"value\":5}]},\"metadata\":{\"dataCenter\":\"data-center-2\","
		"\"pool\":"
		"\"light-apps\"},\"tags\":{}}}";
	struct loaded l = load(TWO_NODES, usage);
	const struct window_set *set;

	(void)state;
	assert_int_equal(l.rc, 0);
	check_note(&l, "u.json: of 2 nodes no deviation is told: taken as 0\n", 0);
	/* Its window ended 35 minutes before its time; what counts is the window. */
	assert_true(l.now_ns == 1556985422 * NS_PER_SEC);
	assert_int_equal(node_stats_freshness(view_fixture_stats(l.view, "node-1"), l.now_ns),
			 FRESH);
	set = &view_fixture_stats(l.view, "node-1")->usage.windows[WINDOW_15M];
	assert_true(set->cpu_milli.mean == 800 && set->cpu_milli.stddev == 0);
	assert_false(set->mem_bytes.known);
	set = &view_fixture_stats(l.view, "node-2")->usage.windows[WINDOW_15M];
	assert_true(set->cpu_milli.mean == 1600);
	unload(&l);
}

/* The metrics server's values: the newest, which upstream takes for the mean. */
static void test_latest_is_the_mean(void **state)
{
	static const char usage[] = ENVELOPE(
		"{\"NodeMetricsMap\":{\"node-1\":{\"metrics\":[{\"type\":\"CPU\",\"operator\":"
		"\"Latest\","
		"\"value\":10},{\"type\":\"Memory\",\"operator\":\"Latest\",\"value\":20}]}}}");
	struct loaded l = load(TWO_NODES, usage);
	const struct node_stats *p;

	(void)state;
	assert_int_equal(l.rc, 0);
	assert_true(l.view->cluster->sources[OBJECT_NODE].changed_ns == NOW);
	p = view_fixture_stats(l.view, "node-1");
	assert_true(p->usage.latest.cpu_milli.known);
	assert_true(p->usage.latest.cpu_milli.value == 400);
	assert_true(p->usage.windows[WINDOW_15M].cpu_milli.mean == 400);
	unload(&l);
}

/* What /watcher tells beside KEP-61 of a node's window; numbers that cannot be are ignored. */
static void test_members_of_its_own(void **state)
{
	static const struct {
		const char *members;
		int start_s, end_s, samples; /* before NOW */
	} rows[] = {
		{"\"ageSeconds\":5", 910, 5, 0},	{"\"ageSeconds\":-1", 910, 10, 0},
		{"\"ageSeconds\":1e12", 910, 10, 0},	{"\"ageSeconds\":920", 1820, 920, 0},
		{"\"windowSeconds\":60", 70, 10, 0},	{"\"windowSeconds\":0", 910, 10, 0},
		{"\"windowSeconds\":1e12", 910, 10, 0}, {"\"samples\":7", 910, 10, 7},
		{"\"samples\":-1", 910, 10, 0},		{"\"samples\":1e16", 910, 10, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char usage[512];
		struct loaded l;
		const struct window_stats *w;

		snprintf(usage, sizeof(usage),
			 ENVELOPE("{\"NodeMetricsMap\":{\"node-1\":{\"metrics\":[{\"type\":"
				  "\"CPU\",\"operator\":\"AVG\",\"value\":1}],%s}}}"),
			 rows[i].members);
		l = load(TWO_NODES, usage);
		if (l.rc)
			fail_msg("%s", l.reason.text);
		w = &view_fixture_stats(l.view, "node-1")->usage.windows[WINDOW_15M].cpu_milli;
		assert_true(w->start_ns == NOW - rows[i].start_s * NS_PER_SEC);
		assert_true(w->end_ns == NOW - rows[i].end_s * NS_PER_SEC);
		assert_int_equal(w->samples, rows[i].samples);
		unload(&l);
	}
}

/* Without an operator a value is the newest; operators that are not known are ignored. */
static void test_operators(void **state)
{
	static const char usage[] = ENVELOPE(
		"{\"NodeMetricsMap\":{\"node-1\":{\"metrics\":[{\"type\":\"CPU\",\"operator\":"
		"\"MAX\",\"value\":9},{\"type\":\"CPU\",\"value\":3},{\"type\":\"Memory\","
		"\"rollup\":\"15m\",\"value\":25}]}}}");
	struct loaded l = load(TWO_NODES, usage);
	const struct window_set *set;

	(void)state;
	assert_int_equal(l.rc, 0);
	set = &view_fixture_stats(l.view, "node-1")->usage.windows[WINDOW_15M];
	assert_true(set->cpu_milli.mean == 120);
	assert_true(set->mem_bytes.mean == 2147483648.0);
	unload(&l);
}

/* A window that contradicts itself is left out and named; all else of the node counts. */
static void test_impossible_use(void **state)
{
	static const char usage[] =
		"{\"kind\":\"Usage\",\"apiVersion\":\"evenkeel.io/"
		"v2\",\"nodes\":[{\"name\":\"node-2\","
		"\"end\":\"2026-01-31T12:00:00Z\",\"source\":{\"tier\":\"T1\",\"rateHz\":10,"
		"\"runId\":\"000102030405060708090a0b0c0d0e0f\",\"missedTicks\":0,"
		"\"overflowCgroups\":0,\"agentCpuMillicores\":1.5,\"passMicroseconds\":1,"
		"\"asideNanoseconds\":0},\"capacity\":{\"cpuMillicores\":4000,\"memoryBytes\":1024}"
		","
		"\"totals\":{\"missedTicks\":0,\"cpuNanoseconds\":{\"user\":1,\"system\":2,"
		"\"iowait\":3,\"steal\":4},\"pressureNanoseconds\":{\"cpu\":5}},\"usage\":{"
		"\"cpuMillicores\":{\"latest\":{\"value\":3,\"end\":\"2026-01-31T12:00:00Z\"},"
		"\"windows\":{\"5m\":{\"start\":\"2026-01-31T11:55:00Z\",\"end\":"
		"\"2026-01-31T12:00:00Z\",\"samples\":9,\"mean\":1,\"stddev\":2,\"p50\":1,"
		"\"p95\":1e30,\"p99\":4,\"min\":0,\"max\":5}}}}}]}";
	struct loaded l = load(TWO_NODES, usage);
	const struct node_stats *p;

	(void)state;
	if (l.rc)
		fail_msg("%s", l.reason.text);
	check_note(&l,
		   "u.json: left out nodes[0] (node-2).usage.cpuMillicores.windows.5m: a "
		   "percentile is not between min and max\n",
		   1);
	p = view_fixture_stats(l.view, "node-2");
	assert_false(p->usage.windows[WINDOW_5M].cpu_milli.known);
	assert_true(p->usage.latest.cpu_milli.known);
	unload(&l);
}

/* --- what is skipped, and what is refused ----------------------------------------------------- */

#define OBJECT(kind, version, more)                                                                \
	"{\"kind\":\"" kind "\",\"apiVersion\":\"" version "\",\"metadata\":{" more "}}"
#define LIST(items) "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[" items "]}"
#define NODE_N	    OBJECT("Node", "v1", "\"name\":\"n\"")

static void test_skips_what_cannot_be_read(void **state)
{
	static const char dump[] = LIST(
		NODE_N
		"," OBJECT("Service", "v1",
			   "\"name\":\"s\"") ",{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
					     "\"metadata\":{\"name\":\"p\",\"namespace\":"
					     "\"d\"},\"spec\":{\"containers\":[{\"resources\":{"
					     "\"requests\":{\"cpu\":\"x\"}}}]}}," NODE_N);
	struct loaded l = load(dump, NULL);

	(void)state;
	assert_int_equal(l.rc, 0);
	check_note(&l,
		   "a.json: skipped Pod d/p: spec.containers[0].resources.requests.cpu: \"x\" is "
		   "not a "
		   "quantity: a number like 250m, 1.5Gi or 12e6 is expected\n",
		   1);
	assert_int_equal(l.view->node_count, 1);
	assert_int_equal(l.view->cluster->sources[OBJECT_POD].skipped, 1);
	assert_int_equal(l.view->cluster->sources[OBJECT_POD].state, SOURCE_SNAPSHOT);
	assert_int_equal(l.view->cluster->sources[OBJECT_NAMESPACE].state, SOURCE_NONE);
	unload(&l);
}

/* What is no object costs nothing but itself, and its place is its name. */
static void test_skips_items_that_are_no_objects(void **state)
{
	static const char any[] = LIST("3," NODE_N ",null,{\"metadata\":{}}");
	static const char typed[] = "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"items\":["
				    "{\"metadata\":{\"name\":\"n\"}},[7]]}";
	struct loaded l = load(any, NULL);

	(void)state;
	assert_int_equal(l.rc, 0);
	check_note(&l,
		   "a.json: skipped items[0]: must be an object of Kubernetes\n"
		   "a.json: skipped items[2]: must be an object of Kubernetes\n"
		   "a.json: skipped items[3]: nothing says of what kind this object is\n",
		   3);
	assert_int_equal(l.view->node_count, 1);
	unload(&l);
	l = load(typed, NULL);
	assert_int_equal(l.rc, 0);
	check_note(&l, "a.json: skipped items[1]: must be an object of Kubernetes\n", 1);
	assert_int_equal(l.view->node_count, 1);
	assert_int_equal(l.view->cluster->sources[OBJECT_NODE].skipped, 1);
	assert_string_equal(l.view->cluster->sources[OBJECT_NODE].skipped_last,
			    "items[1]: must be an object of Kubernetes");
	unload(&l);
}

static void test_first_of_two_counts(void **state)
{
	static const char dump[] =
		LIST(NODE_N "," OBJECT("Node", "v1", "\"name\":\"n\",\"labels\":{\"a\":\"b\"}"));
	struct loaded l = load(dump, NULL);

	(void)state;
	assert_int_equal(l.rc, 0);
	check_note(&l, "a.json: skipped Node n: it is there twice, and the first counts\n", 1);
	assert_int_equal(l.view->nodes[0]->model->node->labels.count, 0);
	unload(&l);
}

static void test_names_only_the_first(void **state)
{
	struct buf dump = BUF_INIT;
	struct loaded l;
	size_t lines = 0;

	(void)state;
	buf_add_str(&dump, "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[");
	for (int i = 0; i < 50; i++)
		buf_printf(&dump,
			   "%s{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":7}}",
			   i ? "," : "");
	buf_add_str(&dump, "]}");
	l = load(dump.data, NULL);
	assert_int_equal(l.rc, 0);
	assert_int_equal(snapshot_notes(l.snapshot)->skipped, 50);
	for (const char *p = snapshot_notes(l.snapshot)->text.data; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, SNAPSHOT_NOTES_MAX);
	unload(&l);
	buf_fini(&dump);
}

#define SNAPSHOT(time, list, usage, more)                                                          \
	"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\",\"time\":" time                  \
	",\"list\":" list ",\"usage\":" usage "," more "}"
#define TIME  "\"2026-01-31T12:00:00Z\""
#define EMPTY LIST("")
#define USAGE "{\"nodes\":[],\"pods\":[]}"
#define STATE "\"state\":{}"
#define LONG  "AKindWhoseNameIsFartherThanAnybodyWouldRead"

static const struct {
	const char *text, *want;
} refusals[] = {
	{"", "a.json: there is nothing in it"},
	{" \n", "a.json: there is nothing in it"},
	{"---\n---\n", "a.json: there is nothing in it"},
	{"hello", "a.json:1: must be a JSON object"},
	{"[1]", "a.json:1: must be a JSON object"},
	{"{\"a\":1}", "a.json:1: this has no kind: give what kubectl prints with -o json or -o "
		      "yaml, or what GET /v1/snapshot does"},
	{"{\"error\":{\"message\":\"too many\"}}",
	 "a.json:1: this is an aggregator's error: too many"},
	{ENVELOPE("{}"),
	 "a.json:1: this is an answer of /watcher, which only the command evenkeel takes, "
	 "as --usage; a snapshot is the cluster's objects"},
	{"\n{\"kind\":\"Usage\",\"apiVersion\":\"evenkeel.io/v1\"}",
	 "a.json:2: this is a Usage object, which only the command evenkeel takes, as "
	 "--usage; a snapshot is the cluster's objects"},
	{"{\"kind\":\"NodeList\",\"apiVersion\":\"evenkeel.io/v1\",\"items\":[]}",
	 "a.json:1: this is a NodeList of evenkeel's API, which has no more than was asked "
	 "for; "
	 "take GET /v1/snapshot"},
	{LIST(OBJECT("Service", "v1", "")), "nothing of what evenkeel looks at is in the "
					    "snapshot, only objects of other kinds: "
					    "Service"},
	{LIST(OBJECT("Service", "v1", "") "," OBJECT("ConfigMap", "v1", "") "," OBJECT(
		 "Service", "v1", "") "," OBJECT(LONG LONG LONG, "v1", "") "," OBJECT("Event", "v1",
										      "")),
	 "nothing of what evenkeel looks at is in the snapshot, only objects of other kinds: "
	 "Service, ConfigMap, Event"},
	{EMPTY, "nothing of what evenkeel looks at is in the snapshot"},
	{EMPTY "\n---", "nothing of what evenkeel looks at is in the snapshot"},
	{"{\"kind\":\"List\",\"apiVersion\":\"v1\",\n\"items\":[\n{\"kind\":\"Node\"},\n{"
	 "\"kind\":}]}",
	 "a.json:4: not JSON: \"}]}\" cannot stand here"},
	{"{\"kind\":\"List\",\"items\":[{}", "a.json:1: not JSON: it ends within the value that "
					     "begins here"},
	{"{\"kind\":\"List\",\"items\":{}}", "a.json:1: must be a JSON list"},
	{"---\n---\n{\"kind\":\"List\",\"items\":{}}", "a.json:3: must be a JSON list"},
	{"{\"kind\":\"List\",\"items\":[" NODE_N " " NODE_N "]}",
	 "a.json:1: not JSON: a , is missing"},
	{"{kind: List", "a.json:1: not JSON: a member has no name"},
	{"a: b\n  c: d", "a.json:2: mapping values are not allowed in this context"},
	{SNAPSHOT("7", EMPTY, USAGE, STATE),
	 "a.json:1: time: must be a time such as 2026-01-31T12:00:00Z"},
	{SNAPSHOT(TIME, EMPTY, USAGE, STATE) NODE_N,
	 "a.json:1: a Snapshot was given, which holds everything; give it alone"},
	{NODE_N SNAPSHOT(TIME, EMPTY, USAGE, STATE),
	 "a.json:1: a Snapshot holds everything; give it alone"},
	{SNAPSHOT(TIME, EMPTY, USAGE, "\"state\":{\"timers\":1}"),
	 "a.json:1: state.timers: is unknown here; take a newer evenkeel"},
	{SNAPSHOT(TIME, EMPTY, USAGE, "\"state\":7"), "a.json:1: state: must be an object"},
	{SNAPSHOT(TIME, EMPTY, USAGE, "\"statt\":{}"),
	 "a.json:1: statt: is no member of a Snapshot"},
	{"{\"apiVersion\":\"evenkeel.io/v2\",\"kind\":\"Snapshot\"}",
	 "a.json:1: a Snapshot of evenkeel.io/v2; this is evenkeel.io/v1"},
	{SNAPSHOT("\"1969-12-31T23:59:59Z\"", EMPTY, USAGE, STATE),
	 "a.json:1: time: must be a time such as 2026-01-31T12:00:00Z"},
	{"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\",\"list\":{},\"usage\":{}," STATE
	 "}",
	 "a.json:1: time: must be a time such as 2026-01-31T12:00:00Z"},
	{SNAPSHOT(TIME, EMPTY, USAGE, STATE ",\"items\":[]"),
	 "a.json:1: items: is no member of a Snapshot"},
	{SNAPSHOT(TIME, EMPTY, USAGE, STATE ",\"data\":{}"),
	 "a.json:1: data: is no member of a Snapshot"},
	{SNAPSHOT(TIME, EMPTY, USAGE, STATE ",\"error\":{}"),
	 "a.json:1: error: is no member of a Snapshot"},
	{SNAPSHOT(TIME, EMPTY, USAGE, "\"state\":{\"demand\":7}"),
	 "a.json:1: state.demand: must be a list"},
	{SNAPSHOT(TIME, EMPTY, USAGE, STATE ",\"sources\":7"), "a.json:1: sources: must be a list"},
	{SNAPSHOT(TIME, EMPTY, USAGE,
		  STATE ",\"sources\":[{\"kind\":\"Pod\",\"state\":\"synced\",\"changed\":\"x\"}]"),
	 "a.json:1: sources[0].changed: must be a time"},
	{"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\",\"usage\":{}}",
	 "a.json:1: list: is missing in this Snapshot"},
	{"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\",\"list\":{}}",
	 "a.json:1: usage: is missing in this Snapshot"},
	{SNAPSHOT(TIME, LIST(OBJECT("Service", "v1", "")), USAGE, STATE),
	 "a.json:1: a Snapshot holds no Service (v1)"},
	{SNAPSHOT(TIME, "{\"kind\":\"List\"}", USAGE, STATE), "a.json:1: list.items: is missing"},
	{SNAPSHOT(TIME, "{}", USAGE, STATE), "a.json:1: list.kind: must be List"},
	{SNAPSHOT(TIME, EMPTY, "{\"more\":1}", STATE),
	 "a.json:1: usage.more: is no member of a Usage object"},
	{SNAPSHOT(TIME, EMPTY, "{\"nodes\":[{}]}", STATE),
	 "a.json:1: usage.nodes[0].name: is missing"},
	{SNAPSHOT(TIME, EMPTY, "{\"pods\":[{\"node\":\"n\",\"name\":7}]}", STATE),
	 "a.json:1: usage.pods[0].name: must be a text"},
	{SNAPSHOT(TIME, EMPTY, USAGE, STATE ",\"sources\":[{\"kind\":\"X\"}]"),
	 "a.json:1: sources[0].kind: there is no such kind as \"X\""},
	{SNAPSHOT(TIME, EMPTY, USAGE, STATE ",\"sources\":[{\"kind\":\"Pod\",\"state\":\"fine\"}]"),
	 "a.json:1: sources[0].state: there is no such state as \"fine\""},
};

static void test_refuses_dumps(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct loaded l = load(refusals[i].text, NULL);

		if (!l.rc)
			fail_msg("is read: %s", refusals[i].text);
		assert_string_equal(l.reason.text, refusals[i].want);
		unload(&l);
	}
}

/* Sources alone, as a record has them; odd counts of skipped objects are none. */
static void test_sources(void **state)
{
#define POD_SOURCE(more) "[{\"kind\":\"Pod\",\"state\":\"synced\",\"changed\":" TIME more "}]"
	static const struct {
		const char *text;
		int skipped; /* -1: refused */
	} rows[] = {
		{POD_SOURCE(",\"skipped\":7"), 7},    {POD_SOURCE(",\"skipped\":-1"), 0},
		{POD_SOURCE(",\"skipped\":1e15"), 0}, {POD_SOURCE(",\"skipped\":\"7\""), 0},
		{"[{\"kind\":\"X\"}]", -1},	      {"[", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model *m = model_new();
		struct error error;
		int rc = snapshot_set_sources(m, rows[i].text, strlen(rows[i].text), &error);

		assert_int_equal(rc, rows[i].skipped < 0 ? -EINVAL : 0);
		if (!rc) {
			struct cluster *c = model_cluster(m);

			assert_int_equal(c->sources[OBJECT_POD].skipped, rows[i].skipped);
			cluster_drop(c);
		}
		model_free(m);
	}
}

#define METRIC(type, value)                                                                        \
	ENVELOPE("{\"NodeMetricsMap\":{\"n\":{\"metrics\":[{\"type\":" type                        \
		 ",\"operator\":\"AVG\","                                                          \
		 "\"value\":" value "}]}}}")

static const struct {
	const char *text, *want;
} refused_measurements[] = {
	{"", "u.json: there is nothing in it"},
	{"{}", "u.json:1: data: must be an object: this is neither a Usage object nor an answer "
	       "of /watcher"},
	{"{\"error\":{\"message\":\"no agent has reported yet\"}}",
	 "u.json:1: this is an aggregator's error: no agent has reported yet"},
	{EMPTY, "u.json:1: this is a List; --usage takes a Usage object, or an answer of "
		"/watcher"},
	{SNAPSHOT(TIME, EMPTY, USAGE, STATE), "u.json:1: this is a Snapshot; --usage takes "
					      "a Usage object, or an answer of /watcher; "
					      "give it as the snapshot"},
	{"{\"kind\":\"NodeMetricsList\",\"items\":[]}",
	 "u.json:1: this is a NodeMetricsList; --usage takes a Usage object, or an answer "
	 "of "
	 "/watcher"},
	{"{\"kind\":\"Usage\",\"apiVersion\":\"v9\"}",
	 "u.json:1: apiVersion: must be evenkeel.io/v2, not \"v9\""},
	{"{\"kind\":\"Usage\"} 7", "u.json:1: there is more behind the measurements"},
	{"{\"kind\":\"Usage\",\"time\":\"soon\"}",
	 "u.json:1: time: must be a time such as 2026-01-31T12:00:00Z"},
	{"{\"kind\":\"Usage\",\"nodes\":[{\"name\":\"n\",\"end\":\"x\"}]}",
	 "u.json:1: nodes[0].end: \"x\" is not a time such as 2026-01-31T12:00:00Z"},
	{"{\"timestamp\":-1,\"data\":{\"NodeMetricsMap\":{}}}",
	 "u.json:1: timestamp: must be a time in Unix seconds"},
	{"{\"timestamp\":1,\"window\":{\"start\":1,\"end\":2,\"duration\":\"1h\"},\"data\":"
	 "{"
	 "\"NodeMetricsMap\":{}}}",
	 "u.json:1: window.duration: must be 5m, 10m or 15m"},
	{"{\"timestamp\":1,\"window\":{\"start\":2,\"end\":2,\"duration\":\"5m\"},\"data\":"
	 "{"
	 "\"NodeMetricsMap\":{}}}",
	 "u.json:1: window.end: must be after window.start"},
	{"{\"timestamp\":9.3e9,\"data\":{\"NodeMetricsMap\":{}}}",
	 "u.json:1: timestamp: must be a time in Unix seconds"},
	{"{\"timestamp\":1,\"window\":{\"start\":\"1\"},\"data\":{}}",
	 "u.json:1: window.start: must be a time in Unix seconds"},
	{"{\"timestamp\":1,\"window\":{\"start\":1},\"data\":{}}",
	 "u.json:1: window.end: must be a time in Unix seconds"},
	{"{\"timestamp\":1,\"window\":{\"start\":1,\"end\":2},\"data\":{}}",
	 "u.json:1: window.duration: must be 5m, 10m or 15m"},
	{ENVELOPE("{\"NodeMetricsMap\":{\"\":{}}}"),
	 "u.json:1: data: the name of a node must have 1 to 253 bytes"},
	{ENVELOPE("{\"n\":7}"),
	 "u.json:1: data.n: is no node with \"metrics\": neither load-watcher's form "
	 "(data.NodeMetricsMap.NODE.metrics) nor that of KEP-61 (data.NODE.metrics)"},
	{METRIC("\"CPU\"", "1e10"),
	 "u.json:1: data of \"n\": metrics[0]: the value must be a percentage, 0 or more"},
	{ENVELOPE("{\"NodeMetricsMap\":{}}"), "u.json:1: data: there is no node in it"},
	{ENVELOPE("{\"NodeMetricsMap\":null}"), "u.json:1: data: there is no node in it"},
	{ENVELOPE("{\"NodeMetricsMap\":7}"), "u.json:1: data.NodeMetricsMap: must be an object"},
	{ENVELOPE("{\"n\":{\"cpu\":7}}"),
	 "u.json:1: data.n: is no node with \"metrics\": neither load-watcher's form "
	 "(data.NodeMetricsMap.NODE.metrics) nor that of KEP-61 (data.NODE.metrics)"},
	{METRIC("7", "1"), "u.json:1: data of \"n\": metrics[0]: has no type"},
	{METRIC("\"CPU\"", "\"1\""), "u.json:1: data of \"n\": metrics[0]: the value must be a "
				     "percentage, 0 or more"},
	{METRIC("\"CPU\"", "-1"), "u.json:1: data of \"n\": metrics[0]: the value must be a "
				  "percentage, 0 or more"},
	{ENVELOPE("{\"NodeMetricsMap\":{\"n\":{\"metrics\":7}}}"),
	 "u.json:1: n: \"metrics\" must be a list"},
	{ENVELOPE("{\"NodeMetricsMap\":{\"n\":{},\"n\":{}}}"),
	 "u.json:1: n: this node stands twice"},
	{ENVELOPE("{\"NodeMetricsMap\":{\"n\":{\"window\":\"1h\"}}}"),
	 "u.json:1: n: \"window\" must be 5m, 10m, 15m or sinceStart"},
};

static void test_refuses_measurements(void **state)
{
	struct loaded l;

	(void)state;
	for (size_t i = 0; i < sizeof(refused_measurements) / sizeof(refused_measurements[0]);
	     i++) {
		l = load(TWO_NODES, refused_measurements[i].text);
		if (!l.rc)
			fail_msg("is read: %s", refused_measurements[i].text);
		assert_string_equal(l.reason.text, refused_measurements[i].want);
		unload(&l);
	}
	l = load(SNAPSHOT(TIME, EMPTY, USAGE, STATE), "{\"kind\":\"Usage\"}");
	assert_int_equal(l.rc, -EINVAL);
	assert_string_equal(l.reason.text,
			    "u.json: a Snapshot has measurements of its own; give it alone");
	unload(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_watcher),
		cmocka_unit_test(test_impossible_use),
		cmocka_unit_test(test_kep_form),
		cmocka_unit_test(test_latest_is_the_mean),
		cmocka_unit_test(test_members_of_its_own),
		cmocka_unit_test(test_operators),
		cmocka_unit_test(test_skips_what_cannot_be_read),
		cmocka_unit_test(test_skips_items_that_are_no_objects),
		cmocka_unit_test(test_first_of_two_counts),
		cmocka_unit_test(test_names_only_the_first),
		cmocka_unit_test(test_refuses_dumps),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_refuses_measurements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
