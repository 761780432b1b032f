/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs of plans, the reasons for refusing one, and the real use of destinations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "tests/actuator_scene.h"

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))
#define TAINT	  "{\"key\":\"" MARK_TAINT "\",\"effect\":\"NoSchedule\"}"

#define HEAD                                                                                       \
	"\"id\":\"00c0ffee00c0ffee\",\"viewVersion\":1,\"ownerShare\":0.25,\"throttled\":{"        \
	"\"nodes\":{\"limit\":10},\"drains\":{\"limit\":10}},"
#define CAPPED	   "\"cap\":{\"cpuShare\":0.9,\"memoryShare\":0.9,\"z\":3,\"contention\":0.2},"
#define NODE(name) "{\"name\":\"" name "\",\"uid\":\"u\",\"moves\":[],\"guests\":[]}"
#define MOVING(to)                                                                                 \
	"{\"name\":\"n1\",\"uid\":\"u\",\"moves\":[{\"namespace\":\"a\",\"name\":\"p\",\"uid\":"   \
	"\"up\"" to "}],\"guests\":[]}"
#define TO_N3 ",\"to\":\"n3\""

static void answer_plan(struct actuator_scene *s, const char *head, const char *planned,
			const char *nodes, const char *items)
{
	char *body = mem_printf("{%s\"planned\":\"2026-01-01T%sZ\",\"wave\":{\"anyOrder\":true,"
				"\"destinations\":[7],\"nodes\":[%s]},\"items\":[%s]}",
				head, planned, nodes, items);

	actuator_scene_answer(s, EDGE_GROUP "/drains", 200, body);
	free(body);
}

/* Of nodes n1 and n2; measured: the end of n3's use. */
static void answer_snapshot(struct actuator_scene *s, const char *taints, const char *measured)
{
	char *body = mem_printf(
		"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\",\"time\":"
		"\"2026-01-01T12:10:00Z\",\"sources\":[],\"list\":{\"items\":["
		"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"n1\"}},"
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n2\",\"uid\":\"u\"},\"spec\":{"
		"\"unschedulable\":true,\"taints\":[" TAINT "]}},"
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u\"},\"spec\":{"
		"\"unschedulable\":true,\"taints\":[%s]}}]},\"usage\":{\"apiVersion\":\"evenkeel."
		"io/v2\",\"nodes\":[{\"name\":\"n3\",\"end\":\"2026-01-01T%sZ\"}],\"pods\":[]},"
		"\"state\":{}}",
		taints, measured);

	actuator_scene_answer(s, EDGE_GROUP "/snapshots", 200, body);
	free(body);
}

static void read_plan(struct actuator_scene *s, const struct act_state *state)
{
	edge_end_step(&s->edge);
	s->now_ns += NS_PER_SEC;
	edge_read_plan(&s->edge, state, s->now_ns);
}

/* Nodes n1 and n2 wait for a proof, whose taints were seen at 12:10. */
static void proofs(void **state)
{
	static const struct {
		const char *head, *planned, *nodes, *items; /* of the plan; head NULL: none */
		const char *taints, *measured; /* of the snapshot; taints NULL: none */
		const char *refusal; /* a part of it; "": there is a proof */
	} cases[] = {
#define ALL NODE("n2") "," NODE("n1") "," NODE("n9")
		{HEAD, "12:10:01", ALL, "", TAINT, "12:10:00", ""},
		{HEAD CAPPED, "12:10:01", ALL, "", TAINT, "12:10:00", ""},
		{HEAD, "12:10:00", ALL, "", TAINT, "12:10:00", "no plan is newer than the taints"},
		{HEAD, "12:10:01", ALL, "", "", "12:10:00",
		 "the aggregator has not seen the taints yet"},
		{HEAD, "12:10:01", NODE("n9"), "", TAINT, "12:10:00",
		 "the planner does not know it"},
		{HEAD, "12:10:01", "",
		 "{\"name\":\"n1\",\"verdict\":\"blocked\",\"reasons\":[{\"text\":\"a budget\"}]}",
		 TAINT, "12:10:00", "blocked: a budget"},
		{HEAD, "12:10:01", "", "{\"name\":\"n1\",\"verdict\":\"later\"}", TAINT, "12:10:00",
		 "later: it is not in the wave"},
		{"", "12:10:01", ALL, "", TAINT, "12:10:00", "the plan is unreadable: viewVersion"},
		{HEAD "\"stale\":\"it is old\",", "12:10:01", ALL, "", TAINT, "12:10:00",
		 "the plan is stale: it is old"},
		{HEAD CAPPED, "12:10:01", MOVING(TO_N3), "", TAINT, "12:09:50",
		 "the checker refuses the plan: "},
		{HEAD CAPPED, "12:10:01", MOVING(TO_N3), "", TAINT, "12:09:49",
		 "destination n3 was not measured in the last 10 s"},
		{HEAD, "12:10:01", MOVING(TO_N3), "", TAINT, "12:09:49",
		 "the checker refuses the plan: "},
		{HEAD CAPPED, "12:10:01", MOVING(""), "", TAINT, "12:09:49",
		 "the checker refuses the plan: "},
		{HEAD, "12:10:01", ALL, "", NULL, NULL, "/snapshots: HTTP 404"},
		{NULL, NULL, NULL, NULL, NULL, NULL, "/drains: HTTP 404"},
	};
	struct act_drain drains[] = {{.node = "n1", .uid = "u", .mark.phase = MARK_TAINTED},
				     {.node = "n2", .uid = "u", .mark.phase = MARK_EVICTING}};
	const struct act_state waits = {.drains = drains, .drain_count = 2};

	actuator_scene_teardown(state);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct actuator_scene *s;
		const struct act_plan *plan;

		actuator_scene_setup(state);
		s = *state;
		plan = &s->edge.plan;
		answer_plan(s, HEAD, "12:00:00", ALL, "");
		answer_snapshot(s, TAINT, "12:10:00");
		read_plan(s, &waits);
		assert_string_equal(plan->refusal, "no plan is newer than the taints");
		if (cases[i].head)
			answer_plan(s, cases[i].head, cases[i].planned, cases[i].nodes,
				    cases[i].items);
		if (cases[i].taints)
			answer_snapshot(s, cases[i].taints, cases[i].measured);
		read_plan(s, &waits);
		assert_non_null(strstr(plan->refusal, cases[i].refusal));
		assert_int_equal(plan->proof != NULL, !*cases[i].refusal);
		assert_null(plan->offer);
		if (plan->proof) {
			assert_string_equal(plan->refusal, "");
			assert_int_equal(plan->proof->node_count, 2);
			assert_true(plan->any_order);
			assert_int_equal(document_at(s->edge.promise, "cap") != NULL, i == 1);
		}
		/* After a stale plan the taints are to be seen again. */
		if (strstr(cases[i].refusal, "stale")) {
			answer_plan(s, HEAD, "12:10:01", ALL, "");
			answer_snapshot(s, TAINT, "12:10:00");
			read_plan(s, &waits);
			assert_string_equal(plan->refusal, "no plan is newer than the taints");
		}
		if (i + 1 < COUNT(cases))
			actuator_scene_teardown(state);
	}
}

/* An offer is read every 10 s, and only where no drain is left. */
static void offers(void **state)
{
	struct act_drain drain = {.node = "n1", .mark.phase = MARK_EVICTING, .proven = true};
	const struct act_state idle = {.drain_count = 0},
			       busy = {.drains = &drain, .drain_count = 1};
	static const struct {
		int64_t at_ns;
		bool busy;
		size_t reads;
	} steps[] = {
		{NS_PER_SEC, false, 1},	     {11 * NS_PER_SEC - 1, false, 1},
		{11 * NS_PER_SEC, false, 2}, {60 * NS_PER_SEC, true, 2},
		{60 * NS_PER_SEC, false, 3},
	};
	struct actuator_scene *s = *state;

	for (size_t i = 0; i < COUNT(steps); i++) {
		answer_plan(s, HEAD, "12:00:00", NODE("n1"), "");
		edge_end_step(&s->edge);
		s->edge.promise = cJSON_CreateObject();
		edge_read_plan(&s->edge, steps[i].busy ? &busy : &idle, steps[i].at_ns);
		assert_int_equal(kube_peer_count(s->peer, EDGE_GROUP "/drains"), steps[i].reads);
		assert_string_equal(s->edge.plan.refusal, "");
		/* The promise of the last wave has no use. */
		assert_int_equal(s->edge.promise != NULL, steps[i].busy);
		cJSON_Delete(s->edge.promise);
		s->edge.promise = NULL;
	}
}

/* --- real use --------------------------------------------------------------------------------- */

#define USE(state, cpu, set, mem, contention)                                                      \
	"{\"source\":{\"state\":\"" state "\"},\"usage\":{\"cpuMillicores\":{\"latest\":{"         \
	"\"value\":" cpu ",\"end\":\"1970-01-01T00:00:07Z\"}},\"workingSetBytes\":{\"latest\":{"   \
	"\"value\":" set "}},\"memoryBytes\":{\"latest\":{\"value\":" mem                          \
	"}}},\"contention\":{" contention "}}"

static void assert_number(double is, double want)
{
	assert_true(isnan(want) ? isnan(is) : is == want);
}

static void uses(void **state)
{
	static const struct {
		int status; /* 0: no answer */
		const char *node;
		double cpu, mem, contention;
		int64_t end_s;
	} cases[] = {
		{200, USE("fresh", "1500", "1024", "2048", "\"cpu\":0.1,\"memory\":0.3"), 1500,
		 1024, 0.3, 7},
		{200, USE("fresh", "1500", "null", "2048", "\"cpu\":0.4,\"memory\":0.3"), 1500,
		 2048, 0.4, 7},
		{200, USE("fresh", "null", "null", "null", "\"cpu\":0.1"), NAN, NAN, 0.1, 7},
		{200, USE("stale", "1500", "1024", "2048", "\"memory\":0.3"), NAN, NAN, 0.3, 0},
		{200, USE("silent", "1500", "1024", "2048", ""), NAN, NAN, NAN, 0},
		{404, "{}", NAN, NAN, NAN, 0},
		{0, "{}", NAN, NAN, NAN, 0},
	};
	struct act_drain drain = {.node = "n1"};
	const struct act_state busy = {.drains = &drain, .drain_count = 1},
			       idle = {.drain_count = 0};
	struct actuator_scene *s = *state;

	s->edge.promise = cJSON_Parse(
		"{\"cap\":{\"contention\":0.2},\"destinations\":[{\"node\":\"n3\",\"cpuMillicores\""
		":{\"limit\":3000},\"memoryBytes\":{\"limit\":4096}},{\"node\":\"n4\"}]}");
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t before = kube_peer_count(s->peer, EDGE_GROUP "/nodes/n4");
		const struct act_use *u;

		edge_end_step(&s->edge);
		kube_peer_script(s->peer, EDGE_GROUP "/nodes/n3",
				 &(struct peer_answer){.status = cases[i].status,
						       .body = cases[i].node,
						       .then = cases[i].status ? PEER_END
									       : PEER_CUT});
		edge_read_uses(&s->edge, &busy);
		assert_int_equal(s->edge.use_count, 2);
		u = s->edge.uses;
		assert_string_equal(u->node, "n3");
		assert_number(u->cpu_milli, cases[i].cpu);
		assert_number(u->mem_bytes, cases[i].mem);
		assert_number(u->contention, cases[i].contention);
		assert_true(u->end_ns == cases[i].end_s * NS_PER_SEC);
		assert_number(u->cpu_cap_milli, 3000);
		assert_number(u->mem_cap_bytes, 4096);
		assert_number(u->contention_cap, 0.2);
		/* After a failed read the remaining nodes are not read. */
		assert_number(u[1].cpu_milli, NAN);
		assert_int_equal(kube_peer_count(s->peer, EDGE_GROUP "/nodes/n4") - before,
				 cases[i].status != 0);
	}
	edge_end_step(&s->edge);
	edge_read_uses(&s->edge, &idle);
	assert_int_equal(s->edge.use_count, 0);
	cJSON_DeleteItemFromObject(s->edge.promise, "cap");
	edge_read_uses(&s->edge, &busy);
	assert_int_equal(s->edge.use_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, actuator_scene_setup, actuator_scene_teardown)
		TEST(proofs),
		TEST(offers),
		TEST(uses),
	};

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
