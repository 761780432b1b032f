/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of the Lease against a scripted API server, and requests that only its holder makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/actuator_scene.h"
#include "tests/process.h"

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))
#define FENCE_NS  (6 * NS_PER_SEC)
#define LEASE(holder, transitions, annotations)                                                    \
	"{\"metadata\":{\"resourceVersion\":\"4\",\"annotations\":{" annotations "}},\"spec\":{"   \
	"\"holderIdentity\":\"" holder "\",\"renewTime\":\"x\",\"leaseTransitions\":" transitions  \
	"}}"
#define PAUSED "\"evenkeel.io/paused\":\"true\""

enum { ROUNDS = 3 };

/* The answer to the GET of a round, and to what is written then. */
struct round {
	int status;
	const char *body;
	const char *method; /* NULL: nothing is written */
	int write_status;
	const char *write_body;
	bool renewed; /* a request may begin until 6 s after it */
	bool held, paused;
	int64_t transitions;
};

/* Of a Lease of its own. */
static const struct story {
	const char *name;
	struct round rounds[ROUNDS];
} stories[] = {
	{"a",
	 {{200, LEASE("me", "3", ""), "PATCH ", 200, LEASE("me", "3", ""), true, true, false, 3},
	  {500, "{}", NULL, 0, NULL, false, true, false, 3},
	  {200, LEASE("me", "3", ""), "PATCH ", 200, LEASE("me", "3", PAUSED), true, true, true,
	   3}}},
	{"b",
	 {{200, LEASE("me", "3", ""), "PATCH ", 200, LEASE("me", "3", ""), true, true, false, 3},
	  {200, LEASE("other", "4", ""), NULL, 0, NULL, false, false, false, 4},
	  {404, "{}", "POST ", 201, "{}", false, false, false, 4}}},
	{"c",
	 {{404, "{}", "POST ", 409, "{}", false, false, false, 0},
	  {200, LEASE("", "0", PAUSED), NULL, 0, NULL, false, false, true, 0},
	  {200, "{}", NULL, 0, NULL, false, false, true, 0}}},
	{"d",
	 {{200, LEASE("me", "3", ""), "PATCH ", 200, LEASE("me", "3", ""), true, true, false, 3},
	  {200, LEASE("me", "3", ""), "PATCH ", 409, "{}", false, true, false, 3},
	  {200, LEASE("me", "3", ""), "PATCH ", 200, "{}", false, true, false, 3}}},
	{"e",
	 {{200, LEASE("me", "3", ""), "PATCH ", 422, LEASE("me", "3", ""), false, false, false, 0},
	  {403, LEASE("me", "3", ""), NULL, 0, NULL, false, false, false, 0},
	  {410, LEASE("me", "3", ""), NULL, 0, NULL, false, false, false, 0}}},
};

enum { STORIES = COUNT(stories) };

struct told {
	struct lease *lease;
	char *path, *patch; /* of its object: of a GET, and of a renewal */
	struct lease_state state;
	size_t renewals; /* that were sent */
	int64_t asked_ns; /* before the last round */
};

static struct told told[STORIES];

static void start(struct actuator_scene *s, struct told *t, const struct story *story)
{
	const struct lease_options options = {"ns", story->name, "me", &s->config};
	struct error why;

	t->path = mem_printf("/apis/coordination.k8s.io/v1/namespaces/ns/leases/%s", story->name);
	t->patch = mem_printf("PATCH %s", t->path);
	kube_peer_script(s->peer, t->path,
			 &(struct peer_answer){.status = story->rounds[0].status,
					       .then = PEER_HOLD});
	if (lease_start(&t->lease, &options, &why))
		fail_msg("%s", why.text);
}

static void stop(struct told *t)
{
	lease_stop(t->lease);
	free(t->path);
	free(t->patch);
	*t = (struct told){.lease = NULL};
}

/* The GET of the next round is held: what the last round found is known. */
static void expect(struct actuator_scene *s, struct told *t, const struct round *r)
{
	int64_t until_ns = t->state.until_ns;

	assert_true(kube_peer_await_held(s->peer, t->path));
	lease_get(t->lease, &t->state);
	assert_int_equal(t->state.held, r->held);
	assert_int_equal(t->state.paused, r->paused);
	assert_int_equal(t->state.transitions, r->transitions);
	if (r->renewed)
		assert_true(t->state.until_ns >= t->asked_ns + FENCE_NS &&
			    t->state.until_ns <= clock_mono_ns() + FENCE_NS);
	else
		assert_int_equal(t->state.until_ns, r->held ? until_ns : 0);
	t->renewals += r->method && strcmp(r->method, "PATCH ") == 0;
	assert_int_equal(kube_peer_count(s->peer, t->patch), t->renewals);
	if (t->renewals) {
		char *body = kube_peer_body(s->peer, t->patch, t->renewals - 1);

		assert_non_null(strstr(body, "\"holderIdentity\":\"me\""));
		free(body);
	}
}

/* next: the status of the GET of the next round. */
static void play(struct actuator_scene *s, struct told *t, const struct round *r, int next)
{
	if (r->method)
		actuator_scene_answer(s, strcmp(r->method, "PATCH ") == 0 ? t->patch : "POST ",
				      r->write_status, r->write_body);
	kube_peer_script(s->peer, t->path,
			 &(struct peer_answer){.status = next, .then = PEER_HOLD});
	t->asked_ns = clock_mono_ns();
	kube_peer_send(s->peer, t->path, r->body);
	kube_peer_end(s->peer, t->path);
}

static bool is_sent(struct actuator_scene *s, struct told *t, int64_t transitions)
{
	size_t before = kube_peer_count(s->peer, "POST /x");
	const struct buf body = {"{}", 2, 3};
	const char *answer;
	long status;

	s->edge.lease = t->lease;
	s->edge.transitions = transitions;
	status = edge_send(&s->edge, KUBE_POST, "/x", &body, &answer);
	assert_int_equal(kube_peer_count(s->peer, "POST /x") - before, status == 201);
	assert_true(status == 201 || strcmp(answer, "the lease was not renewed") == 0);
	assert_int_equal(status, status ? 201 : 0);
	edge_end_step(&s->edge);
	return status == 201;
}

static bool is_over(void *until_ns)
{
	return clock_mono_ns() >= *(const int64_t *)until_ns;
}

/* Writes are refused once the Lease is lost, of another transition, or 6 s old. */
static void expect_fences(struct actuator_scene *s, struct told *held, struct told *lost)
{
	bool sent = is_sent(s, held, 3);

	if (clock_mono_ns() < held->state.until_ns)
		assert_true(sent);
	assert_false(is_sent(s, held, 4));
	assert_false(is_sent(s, held, 2));
	assert_int_equal(lost->state.transitions, 4);
	assert_false(is_sent(s, lost, 4));
	assert_true(await(is_over, &held->state.until_ns, 60));
	assert_false(is_sent(s, held, 3));
	s->edge.lease = NULL;
}

static void leases_are_taken_and_lost(void **state)
{
	struct actuator_scene *s = *state;

	for (size_t i = 0; i < STORIES; i++)
		start(s, &told[i], &stories[i]);
	for (size_t r = 0; r < ROUNDS; r++)
		for (size_t i = 0; i < STORIES; i++) {
			const struct round *rounds = stories[i].rounds;

			if (r)
				expect(s, &told[i], &rounds[r - 1]);
			else
				assert_true(kube_peer_await_held(s->peer, told[i].path));
			play(s, &told[i], &rounds[r], r + 1 < ROUNDS ? rounds[r + 1].status : 200);
		}
	for (size_t i = 0; i < STORIES; i++)
		expect(s, &told[i], &stories[i].rounds[ROUNDS - 1]);
	expect_fences(s, &told[0], &told[1]);
	for (size_t i = 0; i < STORIES; i++)
		stop(&told[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(leases_are_taken_and_lost, actuator_scene_setup,
						actuator_scene_teardown),
	};

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
