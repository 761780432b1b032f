/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of two aggregators the actuator takes a wave that both have planned, or that of one after the other
 * is gone; else it waits and tells why.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/edge.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_peer.h"

struct scene {
	struct kube_peer *peer;
	struct kube_config config;
	struct edge edge;
	int64_t now_ns;
};

static int setup(void **state)
{
	static const atomic_bool stopping;
	static struct scene s;
	struct error why = {""};

	s = (struct scene){.peer = kube_peer_new(), .now_ns = NS_PER_SEC};
	s.config.server = mem_strdup(kube_peer_url(s.peer));
	if (edge_open(&s.edge, &s.config, &stopping, &why))
		fail_msg("%s", why.text);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	edge_close(&s->edge);
	kube_config_fini(&s->config);
	kube_peer_free(s->peer);
	return 0;
}

/* Reads a plan for an offer, of which the aggregator tells that of the other one. */
static void read_plan(struct scene *s, const char *peer)
{
	const struct act_state idle = {.drain_count = 0};
	char *body =
		mem_printf("{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"DrainPlan\","
			   "\"id\":\"00c0ffee00c0ffee\",%s\"planned\":\"2026-01-01T12:00:00Z\","
			   "\"viewVersion\":1,\"variant\":\"corrected\",\"ownerShare\":0.25,"
			   "\"throttled\":{\"nodes\":{\"limit\":10},\"drains\":{\"limit\":10}},"
			   "\"wave\":null,\"items\":[]}",
			   peer);

	edge_end_step(&s->edge);
	kube_peer_script(s->peer, EDGE_GROUP "/drains", &(struct peer_answer){.body = body});
	s->now_ns += 3600 * NS_PER_SEC;
	edge_read_plan(&s->edge, &idle, s->now_ns);
	free(body);
}

static void plans_are_taken_together_or_alone(void **state)
{
	static const struct {
		const char *peer, *refusal; /* "": it is taken */
	} cases[] = {
		{"", ""},
		{"\"peer\":{\"plan\":\"same\",\"seconds\":0,\"id\":\"00c0ffee00c0ffee\"},", ""},
		{"\"peer\":{\"plan\":\"other\",\"seconds\":0,\"id\":\"1\"},",
		 "the other aggregator has planned another wave"},
		{"\"peer\":{\"plan\":\"other\",\"seconds\":3600,\"id\":\"1\"},",
		 "the other aggregator has planned another wave"},
		{"\"peer\":{\"plan\":\"unknown\",\"seconds\":29,\"id\":\"1\"},",
		 "the other aggregator tells no plan: it counts as gone after 30 s"},
		{"\"peer\":{\"plan\":\"unknown\",\"seconds\":30,\"id\":\"1\"},", ""},
		{"\"peer\":{\"plan\":\"unknown\",\"seconds\":30},", ""},
		{"\"peer\":{\"plan\":\"unknown\"},",
		 "the other aggregator tells no plan: it counts as gone after 30 s"},
		{"\"peer\":7,", "the other aggregator tells no plan: it counts as gone after 30 s"},
	};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_plan(s, cases[i].peer);
		assert_string_equal(s->edge.plan.refusal, cases[i].refusal);
		if (*cases[i].refusal) {
			assert_null(s->edge.plan.offer);
			/* Whoever asked for a drain learns it. */
			assert_string_equal(edge_why_not(&s->edge, "n1"), cases[i].refusal);
		} else {
			assert_non_null(s->edge.plan.offer);
			assert_string_equal(s->edge.plan.id, "00c0ffee00c0ffee");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(plans_are_taken_together_or_alone, setup, teardown),
	};

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
