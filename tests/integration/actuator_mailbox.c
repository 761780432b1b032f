/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of people, as the actuator takes them and tells what became of them, and its reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/mailbox.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "tests/actuator_scene.h"

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))
#define REPORT	  "PUT /apis/evenkeel.io/v1/acts/current/report"
#define HISTORY	  "POST /apis/evenkeel.io/v1/drains/current/history"
#define LEASE	  "PATCH /apis/coordination.k8s.io/v1/namespaces/ns/leases/l"
#define MINUTE_NS (60 * NS_PER_SEC)

static char *acts[] = {(char *)"drain", NULL};
static struct mailbox box;

static int setup(void **state)
{
	actuator_scene_setup(state);
	mailbox_init(&box, "ns", "l", acts, "me");
	return 0;
}

static int teardown(void **state)
{
	mailbox_fini(&box);
	return actuator_scene_teardown(state);
}

/* A report, whose answer has the status and lists the requests. */
static void exchange(struct actuator_scene *s, const struct act_state *state, int status,
		     const char *requests)
{
	static const struct reclaim_state none = {.last_ns = 0};
	char *body = mem_printf("{\"requests\":[%s]}", requests);

	actuator_scene_answer(s, REPORT, status, body);
	mailbox_exchange(&box, &s->edge, state, &none, false, s->now_ns);
	free(body);
}

/* "taken", "done", or "refused: REASON; REASON" of the first request in the newest report. */
static char *first_request(struct actuator_scene *s)
{
	char *body = kube_peer_body(s->peer, REPORT, kube_peer_count(s->peer, REPORT) - 1);
	cJSON *json = cJSON_Parse(body);
	const cJSON *request = document_first(json, "requests");
	struct buf text = BUF_INIT;

	buf_add_str(&text, document_text_or(request, "state", "none"));
	for (const cJSON *r = document_first(request, "reasons"); r; r = r->next)
		buf_printf(&text, "%s%s", r->prev->next ? "; " : ": ", r->valuestring);
	cJSON_Delete(json);
	free(body);
	return text.data;
}

/* --- what becomes of a request ---------------------------------------------------------------- */

#define DRAIN "{\"id\":\"r\",\"state\":\"waiting\",\"action\":\"drain\",\"nodes\":[\"n1\"]}"
#define TRY                                                                                        \
	"{\"id\":\"r\",\"state\":\"waiting\",\"action\":\"drain\",\"nodes\":[\"n1\"],"             \
	"\"dryRun\":true}"
#define UNDO "{\"id\":\"r\",\"state\":\"taken\",\"action\":\"undo\",\"nodes\":[\"n1\"]}"

enum { PLAN = 1, OFFER = 2, LEFT = 4, ENDED = 8, UNDONE = 16, OF_OTHERS = 32, REASON = 64 };

static const struct {
	const char *request;
	struct act_node node; /* name NULL: it is not read */
	bool since; /* its phase began after the request */
	int more;
	int64_t after_ns;
	const char *end;
} end_cases[] = {
#define IS(is_phase, ...)                                                                          \
	{                                                                                          \
		.name = "n1", .mark.phase = MARK_##is_phase, __VA_ARGS__                           \
	}
	{DRAIN, IS(DRAINED, .cordoned = true), false, 0, 0, "done"},
	{DRAIN, IS(DRAINED), true, 0, 0, "done"},
	{DRAIN, IS(DRAINED), false, 0, 0, "taken"},
	{DRAIN, IS(CLAIMED), false, PLAN, 2 * MINUTE_NS, "taken"},
	{DRAIN, IS(VERIFIED), true, PLAN, 2 * MINUTE_NS, "taken"},
	{DRAIN, IS(ROLLED_BACK), true, 0, 0, "refused: n1: it was rolled back"},
	{DRAIN, IS(ROLLED_BACK), true, REASON, 0, "refused: n1: a pod stays"},
	{DRAIN, IS(ROLLED_BACK), false, REASON, 0, "taken"},
	{DRAIN, IS(NONE, .foreign = "it is mine"), false, 0, 0, "refused: n1: it is mine"},
	{DRAIN, IS(NONE), false, PLAN, MINUTE_NS, "taken"},
	{DRAIN, IS(NONE), false, 0, MINUTE_NS + 1, "taken"},
	{DRAIN, IS(NONE), false, PLAN, MINUTE_NS + 1, "refused: n1: the planner does not know it"},
	{DRAIN, IS(NONE), false, PLAN | LEFT, MINUTE_NS + 1, "refused: n1: it rests"},
	{DRAIN, IS(NONE), false, OFFER, 0, "taken"},
	{DRAIN, {.name = NULL}, false, 0, MINUTE_NS, "taken"},
	{DRAIN, {.name = NULL}, false, 0, MINUTE_NS + 1, "refused: n1: it is gone"},
	{DRAIN, {.name = NULL}, false, ENDED, MINUTE_NS + 1, "done"},
	{DRAIN, {.name = NULL}, false, ENDED | UNDONE, MINUTE_NS + 1, "refused: n1: it is gone"},
	{DRAIN, {.name = NULL}, false, ENDED | OF_OTHERS, MINUTE_NS + 1, "refused: n1: it is gone"},
	{DRAIN, IS(NONE), false, PLAN | LEFT | OF_OTHERS, MINUTE_NS + 1,
	 "refused: n1: the planner does not know it"},
	{TRY, IS(NONE), false, OFFER, 0, "done"},
	{TRY, IS(NONE), false, OFFER | OF_OTHERS, 0, "taken"},
	{TRY, IS(NONE), false, 0, 0, "taken"},
	{UNDO, IS(NONE), false, 0, 0, "done"},
	{UNDO, IS(ROLLED_BACK), false, 0, 0, "done"},
	{UNDO, IS(NONE, .tainted = true), false, 0, 0, "taken"},
	{UNDO, IS(EVICTING), false, 0, 0, "taken"},
	{UNDO, IS(DRAINED), false, 0, 0, "taken"},
	{UNDO, {.name = NULL}, false, 0, MINUTE_NS, "taken"},
	{UNDO, {.name = NULL}, false, 0, MINUTE_NS + 1, "done"},
};

static void ends_of_requests(void **state)
{
	teardown(state);
	for (size_t i = 0; i < COUNT(end_cases); i++) {
		const int more = end_cases[i].more;
		const char *of = more & OF_OTHERS ? "n7" : "n1";
		struct act_ended ended = {.node = (char *)of, .drained = !(more & UNDONE)};
		struct act_left left = {.node = (char *)of, .why = {"it rests"}};
		struct act_state act = {.left = &left,
					.left_count = more & LEFT ? 1 : 0,
					.wave = {.ended = &ended,
						 .ended_count = more & ENDED ? 1 : 0}};
		struct actuator_scene *s;
		char *end;

		setup(state);
		s = *state;
		if (more & REASON)
			error_set(&act.wave.reason, "a pod stays");
		exchange(s, &act, 200, end_cases[i].request);
		assert_int_equal(box.count, 1);
		s->now_ns += end_cases[i].after_ns;
		if (end_cases[i].node.name) {
			s->edge.nodes = mem_zalloc(1, sizeof(struct act_node));
			s->edge.nodes[0] = end_cases[i].node;
			s->edge.nodes[0].mark.since_ns = end_cases[i].since ? INT64_MAX : 0;
			s->edge.cluster.node_count = 1;
		}
		if (more & PLAN)
			s->edge.plan_doc = edge_parse(&s->edge, "{}", 2);
		if (more & OFFER) {
			s->edge.offer.nodes = mem_zalloc(1, sizeof(*s->edge.offer.nodes));
			s->edge.offer.nodes[0].name = of;
			s->edge.offer.node_count = 1;
		}
		exchange(s, &act, 200, "");
		end = first_request(s);
		assert_string_equal(end, end_cases[i].end);
		free(end);
		if (i + 1 < COUNT(end_cases))
			teardown(state);
	}
}

/* A request of several nodes ends when each of them has. */
static void requests_of_several_nodes(void **state)
{
	static const struct act_state idle = {.drain_count = 0};
	struct actuator_scene *s = *state;
	struct edge_named *named;
	size_t count;
	char *end;

	exchange(s, &idle, 200,
		 "{\"id\":\"r\",\"state\":\"waiting\",\"action\":\"drain\",\"nodes\":[\"n1\","
		 "\"n2\"]},{\"id\":\"t\",\"state\":\"waiting\",\"action\":\"undo\",\"nodes\":["
		 "\"n3\",7],\"dryRun\":true},{\"id\":\"u\",\"state\":\"taken\",\"action\":\"undo\","
		 "\"nodes\":[\"n4\"]}");
	named = mailbox_nodes(&box, &count);
	assert_int_equal(count, 5);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(named[i].node,
				    ((const char *[]){"n1", "n2", "n3", "", "n4"})[i]);
		assert_int_equal(named[i].drain, i < 2);
		assert_int_equal(named[i].undo, i == 4);
	}
	free(named);
	for (int step = 0; step < 2; step++) {
		edge_end_step(&s->edge);
		s->edge.nodes = mem_zalloc(2, sizeof(struct act_node));
		s->edge.nodes[0] = (struct act_node){.name = "n1", .foreign = "it is mine"};
		s->edge.nodes[1] =
			(struct act_node){.name = "n2", .foreign = step ? "so is it" : NULL};
		s->edge.cluster.node_count = 2;
		exchange(s, &idle, 200, "");
		end = first_request(s);
		assert_string_equal(end, step ? "refused: n1: it is mine; n2: so is it"
					      : "taken: n1: it is mine");
		free(end);
	}
	/* The nodes of open requests alone. */
	free(mailbox_nodes(&box, &count));
	assert_int_equal(count, 3);
}

static void requests_that_are_not_taken(void **state)
{
	static const struct act_state idle = {.drain_count = 0};
	static const struct {
		int status;
		const char *requests;
		size_t count; /* of the mailbox then */
	} cases[] = {
		{503, DRAIN, 0},
		{200, "{\"state\":\"waiting\",\"action\":\"drain\",\"nodes\":[\"n1\"]}", 0},
		{200, "{\"id\":\"1\",\"state\":\"done\",\"action\":\"drain\"}", 0},
		{200, "{\"id\":\"1\",\"state\":\"refused\",\"action\":\"drain\"}", 0},
		{200, "{\"id\":\"1\",\"state\":\"waiting\",\"action\":\"reboot\"}", 0},
		{200, "{\"id\":\"1\",\"state\":\"waiting\"},7", 0},
		{200, DRAIN, 1},
		{200, DRAIN "," DRAIN, 1},
		{200, "{\"id\":\"2\",\"state\":\"taken\",\"action\":\"undo\",\"nodes\":[\"n\"]}",
		 2},
	};
	struct actuator_scene *s = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		exchange(s, &idle, cases[i].status, cases[i].requests);
		assert_int_equal(box.count, cases[i].count);
		assert_int_equal(box.told, cases[i].status != 200);
	}
}

/* Requests of a lost Lease are another's: the next report names none, and open ones are taken anew. */
static void a_lost_lease_forgets(void **state)
{
	static const struct act_state idle = {.drain_count = 0};
	struct actuator_scene *s = *state;
	char *first;
	size_t count;

	actuator_scene_answer(s, LEASE, 200, "{}");
	exchange(s, &idle, 200, UNDO ",{\"id\":\"p\",\"state\":\"waiting\",\"action\":\"pause\"}");
	assert_int_equal(box.count, 2);
	mailbox_forget(&box);
	assert_null(mailbox_nodes(&box, &count));
	assert_int_equal(count, 0);
	exchange(s, &idle, 200, UNDO);
	first = first_request(s);
	assert_string_equal(first, "none");
	free(first);
	free(mailbox_nodes(&box, &count));
	assert_int_equal(count, 1);
}

static void pauses(void **state)
{
	static const struct act_state idle = {.drain_count = 0};
	static const struct {
		const char *action, *body;
		int status;
		const char *end;
	} cases[] = {
		{"pause", "\"true\"", 200, "done"},
		{"resume", "null", 200, "done"},
		{"pause", "\"true\"", 403, "refused: said"},
		{"resume", "null", 409, "refused: said"},
	};
	struct actuator_scene *s = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *request =
			mem_printf("{\"id\":\"p%zu\",\"state\":\"waiting\",\"action\":\"%s\"}", i,
				   cases[i].action);
		char *body =
			mem_printf("{\"metadata\":{\"annotations\":{\"evenkeel.io/paused\":%s}}}",
				   cases[i].body);
		char *end;

		mailbox_fini(&box);
		mailbox_init(&box, "ns", "l", acts, "me");
		actuator_scene_answer(s, LEASE, cases[i].status, "{\"message\":\"said\"}");
		exchange(s, &idle, 200, request);
		actuator_scene_expect_body(s, LEASE, body);
		exchange(s, &idle, 200, "");
		end = first_request(s);
		assert_string_equal(end, cases[i].end);
		free(end);
		free(body);
		free(request);
	}
	assert_int_equal(kube_peer_count(s->peer, LEASE), COUNT(cases));
}

/* The newest 64 ends are told until the aggregator took a report with them. */
static void ends_are_bounded(void **state)
{
	static const struct act_state idle = {.drain_count = 0};
	struct actuator_scene *s = *state;
	struct buf requests = BUF_INIT;
	char *body;

	for (int i = 0; i < 66; i++) {
		actuator_scene_answer(s, LEASE, 200, "{}");
		buf_printf(&requests,
			   "%s{\"id\":\"p%d\",\"state\":\"waiting\",\"action\":\"pause\"}",
			   i ? "," : "", i);
	}
	exchange(s, &idle, 200, requests.data);
	assert_int_equal(box.count, 66);
	exchange(s, &idle, 500, "");
	assert_int_equal(box.count, 66);
	exchange(s, &idle, 200, "");
	assert_int_equal(box.count, 64);
	assert_string_equal(document_text(box.requests[0].json, "id"), "p2");
	body = kube_peer_body(s->peer, REPORT, 2);
	assert_non_null(strstr(body, "{\"id\":\"p0\",\"state\":\"done\",\"reasons\":[]}"));
	free(body);
	buf_fini(&requests);
}

/* --- reports ---------------------------------------------------------------------------------- */

static void reports(void **state)
{
	struct act_move moves[] = {{.replaced = true}, {.replaced = false}};
	struct act_drain drains[] = {
		{.node = (char *)"n1",
		 .mark = {.phase = MARK_EVICTING, .plan = "p", .since_ns = NS_PER_SEC},
		 .moves = moves,
		 .move_count = 2},
		{.node = (char *)"n2", .mark.phase = MARK_GARBLED},
	};
	const struct act_state busy = {.drains = drains, .drain_count = 2};
	static const struct reclaim_state none = {.last_ns = 0};
	struct actuator_scene *s = *state;

	s->edge.transitions = 7;
	s->edge.promise = cJSON_Parse(
		"{\"destinations\":[{\"node\":\"n3\",\"cpuMillicores\":{\"after\":2500},"
		"\"memoryBytes\":{\"after\":4096}}]}");
	s->edge.uses = mem_zalloc(1, sizeof(*s->edge.uses));
	s->edge.uses[0] = (struct act_use){.node = "n3",
					   .cpu_milli = 1500,
					   .cpu_cap_milli = 3000,
					   .mem_bytes = 1024,
					   .contention = 0.25};
	s->edge.use_count = 1;
	mailbox_exchange(&box, &s->edge, &busy, &none, true, s->now_ns);
	actuator_scene_expect_body(
		s, REPORT,
		"{\"holder\":\"me\",\"transitions\":7,\"version\":\"" EVENKEEL_VERSION
		"\",\"paused\":true,\"dryRun\":false,\"acts\":[\"drain\"],\"requests\":[],"
		"\"nodes\":[{\"name\":\"n1\",\"plan\":\"p\",\"phase\":\"evicting\",\"moved\":1,"
		"\"of\":2,\"since\":\"1970-01-01T00:00:01Z\"}],\"destinations\":[{\"node\":\"n3\","
		"\"cpuPromised\":2.5,\"cpuMeasured\":1.5,\"memoryPromised\":4096,"
		"\"memoryMeasured\":1024,\"cpuCap\":3,\"contention\":0.25}],\"rescues\":[]}");
}

static void reports_of_waves(void **state)
{
#define WAVE(outcome, reason, nodes, moves, drained, violations)                                   \
	"{\"kind\":\"WaveReport\",\"plan\":\"p\",\"begin\":\"1970-01-01T00:00:01Z\",\"end\":"      \
	"\"1970-01-01T00:00:09Z\",\"outcome\":\"" outcome "\"," reason "\"nodes\":[" nodes         \
	"],\"promised\":{\"nodes\":2,\"pods\":" moves "},\"achieved\":{\"nodes\":" drained         \
	",\"pods\":4},\"violations\":[" violations "],\"evictions\":4,\"refused\":3}"
#define ENDED(name, outcome)                                                                       \
	"{\"name\":\"" name "\",\"outcome\":\"" outcome "\",\"evictions\":2,\"seconds\":5}"
	static const struct {
		size_t drained; /* of two nodes */
		bool hot;
		const char *reason, *body;
	} cases[] = {
		{2, false, "",
		 WAVE("drained", "", ENDED("n1", "drained") "," ENDED("n2", "drained"), "6", "2",
		      "")},
		{1, false, "why",
		 WAVE("rolledBack", "\"reason\":\"why\",",
		      ENDED("n1", "drained") "," ENDED("n2", "rolledBack"), "6", "1", "")},
		{1, true, "hot",
		 WAVE("stopped", "\"reason\":\"hot\",",
		      ENDED("n1", "drained") "," ENDED("n2", "rolledBack"), "6", "1", "\"hot\"")},
	};
	struct actuator_scene *s = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct act_ended ended[] = {
			{(char *)"n1", true, 3, 2, 5},
			{(char *)"n2", cases[i].drained == 2, 3, 2, 5},
		};
		struct act_wave wave = {.plan = "p",
					.begin_ns = NS_PER_SEC,
					.end_ns = 9 * NS_PER_SEC,
					.evictions = 4,
					.refused = 3,
					.drained = cases[i].drained,
					.ended_count = 2,
					.ended = ended,
					.destination_hot = cases[i].hot};

		error_set(&wave.reason, "%s", cases[i].reason);
		mailbox_report_wave(&s->edge, &wave);
		actuator_scene_expect_body(s, HISTORY, cases[i].body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(ends_of_requests),
		TEST(requests_of_several_nodes),
		TEST(requests_that_are_not_taken),
		TEST(a_lost_lease_forgets),
		TEST(pauses),
		TEST(ends_are_bounded),
		TEST(reports),
		TEST(reports_of_waves),
	};

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
