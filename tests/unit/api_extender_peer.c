/* SPDX-License-Identifier: Apache-2.0 */
/* When another aggregator is told of a pod: after what is decided about it, and before the answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/state/join.h"
#include "aggregator/state/reservations.h"
#include "shared/clock.h"
#include "tests/api_fixture.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

#define ASK(members)                                                                               \
	"{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"shop\"" members                    \
	"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\""   \
	"}}}]}},\"NodeNames\":[\"alpha\",\"bravo\"]}"
#define POD ASK(",\"uid\":\"u\"")

static struct api_fixture f;
static struct extender_options options;
static struct reservations_peer peer;
static char told[256];

/* Notes what is reserved for the pod by then: "u[alpha] ". */
static void note(struct reservations_peer *p, const char *uid)
{
	const struct reservation *e = reservations_hold(f.ctx.reservations, uid);
	size_t len = strlen(told);

	assert_ptr_equal(p, &peer);
	snprintf(told + len, sizeof(told) - len, "%s[%s] ", uid, e ? e->node : "gone");
	reservation_drop(e);
}

/* alpha uses less than bravo. */
static struct view *make_view(enum source_state pods)
{
	const int64_t end_ns = VIEW_FIXTURE_NOW_NS - NS_PER_SEC;
	struct node_stats stats[] = {view_fixture_node("alpha", end_ns, 3600, 100, 10),
				     view_fixture_node("bravo", end_ns, 3600, 2000, 10)};
	struct node_stats *of[] = {node_stats_new(&stats[0]), node_stats_new(&stats[1])};
	const struct model_source source = {.state = pods};
	struct model *m = model_new();
	struct join *j = join_new();
	struct view *v;

	model_put(m, model_fixture_node("alpha", 5, 9));
	model_put(m, model_fixture_node("bravo", 5, 9));
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	model_set_source(m, OBJECT_POD, &source);
	v = join_view(j, of, 2, model_cluster(m), VIEW_FIXTURE_NOW_NS);
	node_stats_drop(of[0]);
	node_stats_drop(of[1]);
	join_free(j);
	model_free(m);
	return v;
}

static int setup(void **state)
{
	(void)state;
	api_fixture_open(&f, make_view(SOURCE_SYNCED));
	api_fixture_extender(&options);
	f.ctx.reservations = reservations_new();
	f.ctx.extender = &options;
	peer.tell = note;
	told[0] = '\0';
	reservations_set_peer(f.ctx.reservations, &peer);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	reservations_free(f.ctx.reservations);
	api_fixture_close(&f);
	return 0;
}

static void ask(const char *verb, const char *body, int status)
{
	char path[64];

	snprintf(path, sizeof(path), "/extender/%s", verb);
	assert_int_equal(api_fixture_send(&f, "POST", path, body), status);
}

static void a_pod_is_told_as_it_is_decided(void **state)
{
	(void)state;
	ask("filter", POD, 200);
	assert_string_equal(told, "u[] ");
	ask("prioritize", POD, 200);
	assert_string_equal(told, "u[] u[alpha] ");
	options.limits.use_cap[SCORE_CPU] = 0.01;
	ask("filter", POD, 200);
	assert_string_equal(told, "u[] u[alpha] u[gone] ");
}

static void a_pod_about_which_nothing_is_decided_is_not_told(void **state)
{
	(void)state;
	ask("filter", ASK(""), 200); /* without a uid */
	ask("prioritize", ASK(""), 200);
	view_slot_publish(f.ctx.views, make_view(SOURCE_LISTING));
	ask("filter", POD, 503);
	assert_string_equal(told, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_pod_is_told_as_it_is_decided),
		T(a_pod_about_which_nothing_is_decided_is_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
