/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the actuator and its reports: what is taken, what is refused by which member, and what is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/act_box.h"
#include "aggregator/planner/drain_log.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "shared/message.h"
#include "tests/api_fixture.h"
#include "tests/view_fixture.h"

#define text(path)   api_fixture_text(&f, path)
#define number(path) api_fixture_number(&f, path)

static struct api_fixture f;
static int64_t now;

static int64_t now_ns(void)
{
	return now;
}

static int setup(void **state)
{
	(void)state;
	api_fixture_open(&f, view_fixture_new());
	now = VIEW_FIXTURE_NOW_NS;
	f.ctx.now_ns = now_ns;
	f.ctx.decisions = drain_log_new();
	f.ctx.acts = act_box_new(f.ctx.decisions);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	act_box_free(f.ctx.acts);
	drain_log_free(f.ctx.decisions);
	api_fixture_close(&f);
	return 0;
}

/* With " in place of '. */
static int send(const char *method, const char *target, const char *quoted)
{
	char *body = mem_strdup(quoted);
	int status;

	for (char *c = body; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	status = api_fixture_send(&f, method, target, body);
	free(body);
	return status;
}

static int ask(const char *body)
{
	return send("POST", "/v1/act/requests", body);
}

static int report(const char *body)
{
	return send("PUT", "/v1/act", body);
}

/* --- bodies */

struct body {
	const char *body;
	int status;
	const char *field; /* that is wrong */
};

static void check_bodies(const char *method, const char *target, const struct body *of,
			 size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int status = send(method, target, of[i].body);

		if (status != of[i].status ||
		    strcmp(http_fixture_error_field(&f), of[i].field) != 0)
			fail_msg("%s: %d, %s", of[i].body, status, f.response.body.data);
	}
}

static void test_requests(void **state)
{
	static const struct body bodies[] = {
		{"{'action':'drain','nodes':['alpha','bravo']}", 202, ""},
		{"{'action':'undo','nodes':['alpha'],'dryRun':true}", 202, ""},
		{"{'action':'pause'}", 202, ""},
		{"{'action':'resume'}", 202, ""},
		{"", 400, ""},
		{"[]", 400, ""},
		{"{'action':'drain','nodes':['alpha']} x", 400, ""},
		{"{}", 400, "action"},
		{"{'action':'delete'}", 400, "action"},
		{"{'action':7}", 400, "action"},
		{"{'action':'pause','action':'resume'}", 400, "action"},
		{"{'action':'pause','force':true}", 400, "force"},
		{"{'action':'pause','nodes':['alpha']}", 400, "nodes"},
		{"{'action':'resume','dryRun':true}", 400, "dryRun"},
		{"{'action':'drain'}", 400, "nodes"},
		{"{'action':'drain','nodes':[]}", 400, "nodes"},
		{"{'action':'drain','nodes':'alpha'}", 400, "nodes"},
		{"{'action':'drain','nodes':['alpha',7]}", 400, "nodes"},
		{"{'action':'drain','nodes':['alpha'],'dryRun':'yes'}", 400, "dryRun"},
		{"{'action':'drain','nodes':['alpha','nobody']}", 404, "nodes[1]"},
		{"{'action':'undo','nodes':['']}", 404, "nodes[0]"},
	};

	(void)state;
	check_bodies("POST", "/v1/act/requests", bodies, sizeof(bodies) / sizeof(bodies[0]));
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "requests")), 4);
	assert_string_equal(text("requests.0.action"), "drain");
	assert_string_equal(text("requests.0.nodes.1"), "bravo");
	assert_string_equal(text("requests.0.state"), "waiting");
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "requests.1.dryRun")));
}

static void test_a_request_names_100_nodes_at_most(void **state)
{
	struct buf body = BUF_INIT;

	(void)state;
	buf_add_str(&body, "{'action':'drain','nodes':['alpha'");
	for (int i = 0; i < 99; i++)
		buf_add_str(&body, ",'alpha'");
	assert_int_equal(ask(body.data), 400); /* the text is cut */
	buf_add_str(&body, "]}");
	assert_int_equal(ask(body.data), 202);
	body.len -= 2;
	buf_add_str(&body, ",'alpha']}");
	assert_int_equal(ask(body.data), 400);
	assert_string_equal(http_fixture_error_field(&f), "nodes");
	buf_fini(&body);
}

static void test_reports(void **state)
{
	static const struct body bodies[] = {
		{"{'holder':'one','transitions':0}", 200, ""},
		{"{'holder':'one','transitions':3,'version':'1','paused':true,'dryRun':false,"
		 "'acts':['drain'],'requests':[{'id':'x','state':'taken','reasons':[]}],'nodes':[{"
		 "'name':'a','plan':'p','phase':'evicting','moved':3,'of':9,'message':'m','since':"
		 "'2026-01-31T12:00:00Z'}],'destinations':[{'node':'b','cpuPromised':1.2,"
		 "'cpuMeasured':null,'memoryPromised':5e9,'memoryMeasured':0,'cpuCap':1.5,"
		 "'contention':0.02}],'rescues':[{'namespace':'shop','name':'web-1','node':'b',"
		 "'evicted':1,'victims':2}]}",
		 200, ""},
		{"{'holder':'one','transitions':3,'rescues':[{'namespace':'shop','name':'web'}]}",
		 400, "rescues[0].node"},
		{"{'holder':'one'}", 400, "transitions"},
		{"{'transitions':1}", 400, "holder"},
		{"{'holder':'one','transitions':1.5}", 400, "transitions"},
		{"{'holder':'one','transitions':-1}", 400, "transitions"},
		{"{'holder':'one','transitions':1e999}", 400, "transitions"},
		{"{'holder':'one','transitions':1e16}", 400, "transitions"},
		{"{'holder':'o\\nne','transitions':3}", 400, "holder"},
		{"{'holder':'one','transitions':3,'nodes':{}}", 400, "nodes"},
		{"{'holder':'one','transitions':3,'nodes':[7]}", 400, "nodes"},
		{"{'holder':'one','transitions':3,'nodes':[{'phase':'drained'}]}", 400,
		 "nodes[0].name"},
		{"{'holder':'one','transitions':3,'nodes':[{'name':'a','phase':'drained'},{'name':"
		 "'b','phase':'gone'}]}",
		 400, "nodes[1].phase"},
		{"{'holder':'one','transitions':3,'nodes':[{'name':'a','phase':'drained','of':'9'}]"
		 "}",
		 400, "nodes[0].of"},
		{"{'holder':'one','transitions':3,'nodes':[{'name':'a','phase':'drained','since':"
		 "'now'}]}",
		 400, "nodes[0].since"},
		{"{'holder':'one','transitions':3,'nodes':[{'name':'a','phase':'drained','x':1}]}",
		 400, "nodes[0].x"},
		{"{'holder':'one','transitions':3,'destinations':[{'node':'b','cpuCap':-1}]}", 400,
		 "destinations[0].cpuCap"},
		{"{'holder':'one','transitions':3,'destinations':[{'node':7}]}", 400,
		 "destinations[0].node"},
		{"{'holder':'one','transitions':3,'rescues':[{'namespace':'shop','name':'web','"
		 "node'"
		 ":{}}]}",
		 400, "rescues[0].node"},
		{"{'holder':'one','transitions':3,'requests':[{'id':'x','state':'waiting'}]}", 400,
		 "requests[0].state"},
	};

	(void)state;
	check_bodies("PUT", "/v1/act", bodies, sizeof(bodies) / sizeof(bodies[0]));
	now += 2500 * NS_PER_MS;
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_string_equal(text("actuator.nodes.0.phase"), "evicting");
	assert_true(number("actuator.destinations.0.memoryPromised") == 5e9);
	assert_true(number("actuator.rescues.0.victims") == 2);
	assert_true(number("reportedAgoSeconds") == 2.5);
	assert_null(api_fixture_at(f.json, "actuator.requests"));
}

static void test_wave_reports(void **state)
{
#define WAVE                                                                                       \
	"'kind':'WaveReport','plan':'p','begin':'2026-01-31T12:00:00Z','end':"                     \
	"'2026-01-31T12:01:00Z','outcome':'stopped'"
#define FIGURES_8(a) "'" a "0':1,'" a "1':1,'" a "2':1,'" a "3':1,'" a "4':1,'" a "5':1,'" a "6':1,"
#define FIGURES_31   FIGURES_8("a") FIGURES_8("b") FIGURES_8("c") FIGURES_8("d") "'x':1,'y':1,'v':1,"
	static const struct body bodies[] = {
		{"{" WAVE ",'promised':{" FIGURES_31 "'w':1}}", 200, ""},
		{"{" WAVE ",'reason':'b is hot','nodes':[{'name':'a','outcome':'drained',"
		 "'evictions':7,'seconds':3.5},{'name':'b','outcome':'rolledBack'}],'evictions':7,"
		 "'refused':1,'promised':{'nodes':2},'achieved':1,'violations':['2 > 1']}",
		 200, ""},
		{"{" WAVE ",'kind':'WaveReport'}", 400, "kind"},
		{"{" WAVE ",'promised':{'nodes':'2'}}", 400, "promised"},
		{"{" WAVE ",'achieved':'all'}", 400, "achieved"},
		{"{" WAVE ",'violations':[1]}", 400, "violations"},
		{"{" WAVE ",'promised':{'\\n':2}}", 400, "promised"},
		{"{" WAVE ",'promised':{" FIGURES_31 "'w':1,'z':1}}", 400, "promised"},
		{"{" WAVE ",'nodes':[{'name':'a'}]}", 400, "nodes[0].outcome"},
		{"{" WAVE ",'surplus':1}", 400, "surplus"},
		{"{'kind':'WaveReport','plan':'p','begin':'x','end':'x','outcome':'drained'}", 400,
		 "begin"},
		{"{'kind':'Wave'}", 400, "kind"},
	};
	struct buf large = BUF_INIT;
	struct drain_rows rows;

	(void)state;
	check_bodies("POST", "/v1/drain/history", bodies, sizeof(bodies) / sizeof(bodies[0]));
	buf_add_str(&large, "{" WAVE ",'violations':['0'");
	for (int i = 0; i < 2000; i++)
		buf_add_str(&large, ",'01234567890123456789012345678901234567'");
	buf_add_str(&large, "]}");
	assert_int_equal(send("POST", "/v1/drain/history", large.data), 413);
	buf_fini(&large);

	assert_int_equal(api_fixture_get(&f, "/v1/drain/history?event=waveReport"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 2);
	assert_string_equal(text("items.0.text"),
			    "wave p stopped: b is hot; 1 of 2 nodes drained, 7 "
			    "evictions, 1 refused");
	assert_string_equal(text("items.1.text"),
			    "wave p stopped; 0 of 0 nodes drained, 0 evictions, 0 refused");
	assert_string_equal(text("items.0.reason"), "stopped");
	/* That of the large report, too. */
	assert_int_equal(counter_get(&f.ctx.counters->waves.ended[WAVE_STOPPED]), 3);
	assert_int_equal(counter_get(&f.ctx.counters->waves.evictions), 7);
	assert_int_equal(counter_get(&f.ctx.counters->waves.refused), 1);
	assert_int_equal(counter_get(&f.ctx.counters->waves.rolled_back), 1);
	assert_string_equal(text("items.0.report.violations.0"), "2 > 1");
	assert_int_equal(api_fixture_get(&f, "/v1/drain/history?event=gone"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 0);

	/* As the database keeps it, over a restart. */
	drain_log_read(f.ctx.decisions, 0, &rows);
	drain_log_free(f.ctx.decisions);
	f.ctx.decisions = drain_log_new();
	drain_log_restore(f.ctx.decisions, rows.of, rows.count, 2);
	free(rows.of);
	assert_int_equal(api_fixture_get(&f, "/v1/drain/history?limit=1"), 200);
	assert_true(number("items.0.report.nodes.0.seconds") == 3.5);
}

/* 300 nodes of some 60 bytes are kept, 3000 are left out. */
static void test_large_wave_reports(void **state)
{
	static const int sizes[] = {300, 3000};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct buf body = BUF_INIT;
		const cJSON *nodes;

		buf_add_str(&body, "{" WAVE ",'evictions':4,'nodes':[");
		for (int k = 0; k < sizes[i]; k++)
			buf_printf(&body, "%s{'name':'node-%d','outcome':'drained','seconds':3}",
				   k ? "," : "", k);
		buf_add_str(&body, "]}");
		assert_int_equal(send("POST", "/v1/drain/history", body.data), 200);
		buf_fini(&body);
		assert_int_equal(api_fixture_get(&f, "/v1/drain/history?limit=1"), 200);
		nodes = api_fixture_at(f.json, "items.0.report.nodes");
		assert_int_equal(cJSON_GetArraySize(nodes), i ? 0 : 300);
		assert_true(number("items.0.report.evictions") == 4);
		assert_string_equal(text("items.0.text"),
				    i ? "wave p stopped; 3000 of 3000 nodes drained, 4 evictions, "
					"0 refused; its nodes are left out"
				      : "wave p stopped; 300 of 300 nodes drained, 4 evictions, "
					"0 refused");
	}
}

/* --- what becomes of requests */

static void test_the_actuator_says_what_became_of_a_request(void **state)
{
	char body[256], id[ACT_ID_LEN];

	(void)state;
	assert_int_equal(ask("{'action':'drain','nodes':['alpha']}"), 202);
	snprintf(id, sizeof(id), "%s", text("id"));
	snprintf(body, sizeof(body),
		 "{'holder':'one','transitions':1,'requests':[{'id':'%s','state':'taken'},{'id':"
		 "'0000000000000000','state':'done'}]}",
		 id);
	assert_int_equal(report(body), 200);
	assert_string_equal(text("requests.0.state"), "taken");
	/* A taken one has all the time it needs. */
	now += 3600 * NS_PER_SEC;
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_string_equal(text("requests.0.state"), "taken");
	snprintf(body, sizeof(body),
		 "{'holder':'one','transitions':1,'requests':[{'id':'%s','state':'refused',"
		 "'reasons':['a','b']}]}",
		 id);
	assert_int_equal(report(body), 200);
	assert_string_equal(text("requests.0.state"), "refused");
	assert_string_equal(text("requests.0.reasons.1"), "b");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "requests")), 1);
}

static void test_an_answer_to_a_report_hands_requests_out(void **state)
{
	(void)state;
	assert_int_equal(ask("{'action':'pause'}"), 202);
	assert_int_equal(report("{'holder':'one','transitions':1}"), 200);
	assert_string_equal(text("requests.0.state"), "taken");
	now += ACT_WAIT_NS + 1;
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_string_equal(text("requests.0.state"), "taken");
}

static void test_a_request_that_nobody_takes_is_refused(void **state)
{
	uint64_t before;

	(void)state;
	assert_int_equal(ask("{'action':'pause'}"), 202);
	now += ACT_WAIT_NS;
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_string_equal(text("requests.0.state"), "waiting");
	before = f.response.etag;
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_int_equal(f.response.etag, before);
	now++;
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_string_equal(text("requests.0.state"), "refused");
	assert_string_equal(text("requests.0.reasons.0"), "no actuator has asked");
	assert_int_not_equal(f.response.etag, before);
}

static void test_sixteen_wait_and_64_are_remembered(void **state)
{
	char first[ACT_ID_LEN] = "", id[ACT_ID_LEN] = "";

	(void)state;
	for (int i = 0; i < ACT_OPEN_MOST; i++) {
		assert_int_equal(ask("{'action':'pause'}"), 202);
		assert_true(strcmp(id, text("id")) < 0); /* the clock stands */
		snprintf(id, sizeof(id), "%s", text("id"));
		if (!i)
			memcpy(first, id, sizeof(first));
	}
	assert_int_equal(ask("{'action':'pause'}"), 429);
	for (int round = 0; round < 4; round++) {
		now += ACT_WAIT_NS + 1;
		for (int i = 0; i < ACT_OPEN_MOST; i++)
			assert_int_equal(ask("{'action':'resume'}"), 202);
	}
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "requests")), ACT_REQUESTS_MOST);
	assert_string_equal(text("requests.0.action"), "resume");
	assert_string_not_equal(text("requests.0.id"), first);
}

/* With 64 taken requests the oldest makes room, so a crowd of them locks nobody out. */
static void test_taken_requests_make_room_at_last(void **state)
{
	(void)state;
	for (int i = 0; i < ACT_REQUESTS_MOST + 1; i++) {
		char body[160];

		assert_int_equal(ask("{'action':'undo','nodes':['alpha']}"), 202);
		snprintf(
			body, sizeof(body),
			"{'holder':'one','transitions':1,'requests':[{'id':'%s','state':'taken'}]}",
			text("id"));
		assert_int_equal(report(body), 200);
	}
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "requests")), ACT_REQUESTS_MOST);
}

/* An actuator that lost its Lease may still send. */
static void test_an_older_holder_does_not_speak_for_the_newer(void **state)
{
	(void)state;
	assert_int_equal(report("{'holder':'two','transitions':5}"), 200);
	assert_int_equal(report("{'holder':'one','transitions':4}"), 409);
	assert_string_equal(api_fixture_error(&f), "conflict");
	assert_int_equal(report("{'holder':'two','transitions':5,'paused':true}"), 200);
	/* The Lease may have been made anew. */
	now += ACT_NEWER_NS;
	assert_int_equal(report("{'holder':'three','transitions':0}"), 200);
	assert_string_equal(text("actuator.holder"), "three");
}

static void test_a_snapshot_has_no_actuator(void **state)
{
	struct act_box *acts = f.ctx.acts;
	struct drain_log *decisions = f.ctx.decisions;

	(void)state;
	f.ctx.acts = NULL;
	f.ctx.decisions = NULL;
	assert_int_equal(ask("{'action':'pause'}"), 400);
	assert_int_equal(report("{'holder':'one','transitions':1}"), 400);
	assert_int_equal(send("POST", "/v1/drain/history", "{" WAVE "}"), 400);
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_true(cJSON_IsNull(api_fixture_at(f.json, "actuator")));
	f.ctx.acts = acts;
	f.ctx.decisions = decisions;
}

/* --- two aggregators */

/* All that one has, as on a new connection. */
static void tell_all(struct act_box *from, struct act_box *to)
{
	struct buf body = BUF_INIT;
	struct error why = {""};
	struct act_told at = {0};

	while (act_box_tell(from, &at, now, &body)) {
		if (act_box_hear(to, &body, now, &why))
			fail_msg("%s", why.text);
		buf_clear(&body);
	}
	buf_fini(&body);
}

static void expect_request(struct act_box *acts, const char *state, const char *reason)
{
	f.ctx.acts = acts;
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "requests")), 1);
	assert_string_equal(text("requests.0.action"), "drain");
	assert_string_equal(text("requests.0.nodes.0"), "alpha");
	assert_string_equal(text("requests.0.state"), state);
	if (reason)
		assert_string_equal(text("requests.0.reasons.0"), reason);
}

static void report_to(struct act_box *acts, const char *body)
{
	f.ctx.acts = acts;
	assert_int_equal(report(body), 200);
}

static void test_two_aggregators_tell_each_other(void **state)
{
	struct act_box *one = f.ctx.acts, *other = act_box_new(NULL);
	char body[256];

	(void)state;
	assert_int_equal(ask("{'action':'drain','nodes':['alpha']}"), 202);
	snprintf(body, sizeof(body),
		 "{'holder':'two','transitions':2,'requests':[{'id':'%s','state':'refused',"
		 "'reasons':['a']}]}",
		 text("id"));
	tell_all(one, other);
	expect_request(other, "waiting", NULL);
	report_to(other, "{'holder':'one','transitions':1}");
	expect_request(other, "taken", NULL);
	/* An aggregator that was cut off gives up alone. */
	now += ACT_WAIT_NS + 1;
	expect_request(one, "refused", "no actuator has asked");
	tell_all(one, other);
	expect_request(other, "taken", NULL);
	tell_all(other, one);
	expect_request(one, "taken", NULL);
	assert_string_equal(text("actuator.holder"), "one");
	assert_true(number("reportedAgoSeconds") == 60);
	/* The actuator reports to the other one again. */
	now += NS_PER_SEC;
	report_to(one, body);
	tell_all(other, one);
	tell_all(one, other);
	for (int i = 0; i < 2; i++) {
		expect_request(i ? one : other, "refused", "a");
		assert_string_equal(text("actuator.holder"), "two");
	}
	act_box_free(other);
	f.ctx.acts = one;
}

/* However late the other one hears of it. */
static void test_a_request_ends_a_minute_after_it_was_asked(void **state)
{
	struct act_box *one = f.ctx.acts, *late = act_box_new(NULL), *later = act_box_new(NULL);

	(void)state;
	assert_int_equal(ask("{'action':'drain','nodes':['alpha']}"), 202);
	now += ACT_WAIT_NS;
	tell_all(one, late);
	expect_request(late, "waiting", NULL);
	now++;
	expect_request(late, "refused", "no actuator has asked");
	tell_all(one, later);
	f.ctx.acts = later;
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "requests")), 0);
	act_box_free(late);
	act_box_free(later);
	f.ctx.acts = one;
}

/* An aggregator that comes back with older requests than the 64 of the other one. */
static void test_older_requests_push_no_newer_ones_out(void **state)
{
	struct act_box *one = f.ctx.acts, *other = act_box_new(NULL);
	char oldest[ACT_ID_LEN], body[128];

	(void)state;
	assert_int_equal(ask("{'action':'pause'}"), 202);
	snprintf(body, sizeof(body),
		 "{'holder':'one','transitions':1,'requests':[{'id':'%s','state':'done'}]}",
		 text("id"));
	report_to(one, body);
	f.ctx.acts = other;
	for (int i = 0; i < ACT_REQUESTS_MOST; i++) {
		now += ACT_WAIT_NS + 1;
		assert_int_equal(ask("{'action':'resume'}"), 202);
		if (!i)
			snprintf(oldest, sizeof(oldest), "%s", text("id"));
	}
	tell_all(one, other);
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_string_equal(text("requests.0.id"), oldest);
	tell_all(other, one);
	f.ctx.acts = one;
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	/* Of the other one those that wait: what it gave up is not told. */
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "requests")), 2);
	assert_string_equal(text("requests.0.action"), "pause");
	assert_string_equal(text("requests.1.action"), "resume");
	act_box_free(other);
}

static void test_reports_of_waves_are_told_once(void **state)
{
	struct drain_log *logs[] = {f.ctx.decisions, drain_log_new()};
	struct act_box *one = f.ctx.acts, *other = act_box_new(logs[1]);
	const int64_t reported_ns = now;

	(void)state;
	assert_int_equal(send("POST", "/v1/drain/history",
			      "{" WAVE ",'nodes':[{'name':'\u00e9','outcome':'drained'}]}"),
			 200);
	assert_int_equal(send("POST", "/v1/drain/history", "{" WAVE ",'evictions':7}"), 200);
	now += NS_PER_SEC;
	f.ctx.decisions = logs[1];
	assert_int_equal(send("POST", "/v1/drain/history", "{" WAVE ",'evictions':8}"), 200);
	for (int i = 0; i < 2; i++) {
		tell_all(one, other);
		tell_all(other, one);
	}
	for (int i = 0; i < 2; i++) {
		f.ctx.decisions = logs[i];
		assert_int_equal(api_fixture_get(&f, "/v1/drain/history"), 200);
		assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items")), 3);
		assert_true(number("items.0.report.evictions") == 8);
		assert_true(document_time(api_fixture_at(f.json, "items.1"), "time") * NS_PER_SEC ==
			    reported_ns);
		assert_string_equal(text("items.1.reason"), "stopped");
		assert_string_equal(text("items.1.text"), "wave p stopped; 0 of 0 nodes drained, 7 "
							  "evictions, 0 refused");
		assert_string_equal(text("items.2.report.nodes.0.name"), "\u00e9");
	}
	f.ctx.decisions = logs[0];
	act_box_free(other);
	drain_log_free(logs[1]);
}

/* The database is read after the other aggregator was told of the waves since the start. */
static void test_saved_waves_are_told(void **state)
{
	const struct drain_row of = {.event = DRAIN_WAVE_REPORT,
				     .reason = "stopped",
				     .node = "",
				     .text = "a wave\n{\"kind\":\"WaveReport\"}"};
	struct drain_row *saved = drain_row_new(&of);
	struct act_told at = {0};
	struct buf body = BUF_INIT;

	(void)state;
	assert_int_equal(send("POST", "/v1/drain/history", "{" WAVE "}"), 200);
	assert_true(act_box_tell(f.ctx.acts, &at, now, &body));
	assert_false(act_box_tell(f.ctx.acts, &at, now, &body));
	drain_log_restore(f.ctx.decisions, &saved, 1, 1);
	buf_clear(&body);
	assert_true(act_box_tell(f.ctx.acts, &at, now, &body));
	assert_non_null(memmem(body.data, body.len, "a wave", 6));
	buf_fini(&body);
}

/* More of them wait than one aggregator lets in. */
static void test_64_told_requests_are_remembered(void **state)
{
	(void)state;
	for (int i = 0; i < ACT_REQUESTS_MOST + 2; i++) {
		struct buf body = BUF_INIT;
		struct error why = {""};
		size_t mark = message_open(&body, 11);

		buf_printf(&body,
			   "{\"id\":\"%02d\",\"action\":\"pause\",\"nodes\":[],\"dryRun\":false,"
			   "\"at\":"
			   "\"2026-01-31T12:00:00Z\",\"state\":\"waiting\",\"reasons\":[]}",
			   i);
		message_close(&body, mark);
		assert_int_equal(act_box_hear(f.ctx.acts, &body, now, &why), 0);
		buf_fini(&body);
	}
	assert_int_equal(api_fixture_get(&f, "/v1/act"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "requests")), ACT_REQUESTS_MOST);
	assert_string_equal(text("requests.0.id"), "02");
}

static void test_what_is_no_request_changes_nothing(void **state)
{
#define TOLD(more)                                                                                 \
	"{\"id\":\"1\",\"action\":\"pause\",\"nodes\":[],\"dryRun\":false,\"at\":\"2026-01-31T12:" \
	"00:00Z\","                                                                                \
	"\"state\":\"done\",\"reasons\":[]" more "}"
	static const struct {
		int field;
		const char *text;
		bool good;
	} cases[] = {
		{11, TOLD(""), true},
		{11, TOLD(",\"user\":\"u\""), true},
		{11, TOLD(",\"more\":1"), false},
		{11, TOLD(",\"state\":\"done\""), false},
		{11, "{\"id\":\"1\"}", false},
		{11, "[]", false},
		{11, "x", false},
		{12, "{\"holder\":\"a\",\"transitions\":1}", true},
		{12, "{\"holder\":\"a\"}", false},
		{12, TOLD(""), false},
		{14, "a wave", false},
		{14, "a wave\n{}", false},
		{14, "a wave\n" TOLD(""), false},
		{14,
		 "\xff\n{\"kind\":\"WaveReport\",\"plan\":\"p\",\"begin\":\"2026-01-31T12:00:00Z\","
		 "\"end\":\"2026-01-31T12:01:00Z\",\"outcome\":\"stopped\"}",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct act_box *box = act_box_new(NULL);
		struct buf body = BUF_INIT, out = BUF_INIT;
		struct error why = {""};
		struct jsonw w;
		size_t mark = message_open(&body, (unsigned int)cases[i].field);

		buf_add_str(&body, cases[i].text);
		message_close(&body, mark);
		if ((act_box_hear(box, &body, now, &why) == 0) != cases[i].good)
			fail_msg("%s: %s", cases[i].text, why.text);
		jsonw_begin(&w, &out);
		act_box_write(box, now, &w);
		jsonw_object_close(&w);
		assert_int_equal(strcmp(out.data, "{\"actuator\":null,\"requests\":[]}") != 0,
				 cases[i].good);
		buf_fini(&body);
		buf_fini(&out);
		act_box_free(box);
	}
}

/* --- who may */

static void test_reading_is_not_acting(void **state)
{
	static const struct {
		const char *method, *path;
		bool acts;
	} cases[] = {
		{"GET", "/v1/act", false},
		{"HEAD", "/v1/act", false},
		{"PUT", "/v1/act", true},
		{"PUT", "//v1/act", true},
		{"POST", "/v1/act/requests", true},
		{"GET", "/v1/drain/history", false},
		{"POST", "/v1/drain/history", true},
		{"POST", "/v1/scores", false},
		{"PUT", "/apis/evenkeel.io/v1/acts/current/report", true},
		{"PUT", "/apis/evenkeel.io/v1/acts", true},
		{"GET", "/apis/evenkeel.io/v1/acts", false},
		{"POST", "/apis/evenkeel.io/v1/acts/requests", true},
		{"POST", "/apis/evenkeel.io/v1/drains/x/history", true},
		{"POST", "/apis/evenkeel.io/v1/drains/history", true},
		{"POST", "/apis/evenkeel.io/v1/quotas/reclaim/reservations", true},
		{"GET", "/apis/evenkeel.io/v1/quotas/reclaim", false},
		{"POST", "/apis/evenkeel.io/v1/quotas/preempt", false},
		{"GET", "/nowhere", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (api_access_acts(cases[i].method, cases[i].path) != cases[i].acts)
			fail_msg("%s %s", cases[i].method, cases[i].path);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_requests),
		TEST(test_a_request_names_100_nodes_at_most),
		TEST(test_reports),
		TEST(test_wave_reports),
		TEST(test_large_wave_reports),
		TEST(test_the_actuator_says_what_became_of_a_request),
		TEST(test_an_answer_to_a_report_hands_requests_out),
		TEST(test_a_request_that_nobody_takes_is_refused),
		TEST(test_sixteen_wait_and_64_are_remembered),
		TEST(test_taken_requests_make_room_at_last),
		TEST(test_an_older_holder_does_not_speak_for_the_newer),
		TEST(test_a_snapshot_has_no_actuator),
		TEST(test_two_aggregators_tell_each_other),
		TEST(test_a_request_ends_a_minute_after_it_was_asked),
		TEST(test_older_requests_push_no_newer_ones_out),
		TEST(test_reports_of_waves_are_told_once),
		TEST(test_saved_waves_are_told),
		TEST(test_64_told_requests_are_remembered),
		TEST(test_what_is_no_request_changes_nothing),
		TEST(test_reading_is_not_acting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
