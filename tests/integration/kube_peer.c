/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes edge against a scripted API server: what it hands over for one kind is written
 * down line by line and compared. Waits of the edge are a millisecond here, and every wait of a
 * test is for a condition.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_edge_scene.h"
#include "tests/kube_peer.h"
#include "tests/process.h"

static bool is_synced(struct edge_scene *s, const void *what)
{
	const struct edge_expected *e = what;

	return s->sources[e->kind].state == SOURCE_SYNCED;
}

static bool has_watch_errors(struct edge_scene *s, const void *what)
{
	const struct edge_expected *e = what;

	return s->sources[e->kind].watch_errors > 0;
}

static void script(struct edge_scene *s, const char *part, struct peer_answer a)
{
	kube_peer_script(s->peer, part, &a);
}

#define NODES "/api/v1/nodes?"
#define LIST  "/api/v1/nodes?limit"
#define WATCH "/api/v1/nodes?watch"
#define NODE(n, rv)                                                                                \
	"{\"metadata\":{\"name\":\"" n "\",\"uid\":\"u-" n "\",\"resourceVersion\":\"" rv "\"}}"
#define NODE_LIST(rv, ...)                                                                         \
	"{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv     \
	"\"},\"items\":[" __VA_ARGS__ "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(rv)                                                                               \
	EVENT("BOOKMARK", "{\"kind\":\"Node\",\"metadata\":{\"resourceVersion\":\"" rv "\"}}")
#define STATUS(code, message) "{\"kind\":\"Status\",\"code\":" #code ",\"message\":\"" message "\"}"

/* Nodes a and b are listed, as of version 10, and watched. */
static void start_with_two_nodes(struct edge_scene *s)
{
	script(s, LIST,
	       (struct peer_answer){.body = NODE_LIST("10", NODE("a", "3") "," NODE("b", "4"))});
	edge_scene_start(s);
	edge_assert_story(s, OBJECT_NODE, "listing\nbegin\nput /a\nput /b\nend\nsynced\n");
	assert_true(kube_peer_await_held(s->peer, WATCH));
}

static void every_kind_is_listed_and_watched(void **state)
{
	struct edge_scene *s = *state;

	edge_scene_start(s);
	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		char *watch = mem_printf("/%s/%.*s?", object_kind_version((enum object_kind)kind),
					 object_kind_resource_len((enum object_kind)kind),
					 object_kind_resource((enum object_kind)kind));

		edge_assert_story(s, (enum object_kind)kind, "listing\nbegin\nend\nsynced\n");
		edge_assert_path(s, watch, 0, "resourceVersion=0");
		edge_assert_path(s, watch, 1, "watch=1");
		edge_assert_path(s, watch, 1, "resourceVersion=100");
		assert_string_equal(s->sources[kind].api_version,
				    object_kind_version((enum object_kind)kind));
		free(watch);
	}
	edge_assert_path(s, "/pods?", 0, "fieldSelector=status.phase%21%3DSucceeded%2C");
	edge_assert_path(s, "/pods?", 1, "fieldSelector=status.phase%21%3DSucceeded%2C");
}

static void list_is_read_in_chunks_of_every_size(void **state)
{
	struct edge_scene *s = *state;

	for (size_t chunk = 1; chunk < 300; chunk = chunk * 5 + 2)
		for (int gzip = 0; gzip < 2; gzip++) {
			script(s, LIST,
			       (struct peer_answer){
				       .body = NODE_LIST("10", NODE("a", "3") "," NODE("b", "4")),
				       .chunk = chunk,
				       .gzip = gzip});
			edge_scene_start(s);
			edge_assert_story(s, OBJECT_NODE,
					  "listing\nbegin\nput /a\nput /b\nend\nsynced\n");
			kube_stop(s->kube);
			s->kube = NULL;
			memset(s->sources, 0, sizeof(s->sources));
		}
}

static bool has_events(struct edge_scene *s, const void *what)
{
	return s->sources[OBJECT_NODE].events == *(const uint64_t *)what;
}

static void events_are_handed_over_as_they_come(void **state)
{
	struct edge_scene *s = *state;

	start_with_two_nodes(s);
	kube_peer_send(s->peer, WATCH, EVENT("ADDED", NODE("c", "11")) "{\"type\":\"MODI");
	edge_assert_story(s, OBJECT_NODE, "put /c\n");
	kube_peer_send(s->peer, WATCH, "FIED\",\"object\":" NODE("a", "12") "}");
	kube_peer_send(s->peer, WATCH, "\n" EVENT("DELETED", NODE("b", "13")) BOOKMARK("20"));
	edge_assert_story(s, OBJECT_NODE, "put /a\nremove /b\n");
	kube_peer_end(s->peer, WATCH);
	/* A watch that ends as agreed goes on where the bookmark was, and nobody is told. */
	edge_assert_path(s, WATCH, 1, "resourceVersion=20&");
	assert_true(kube_peer_await_held(s->peer, WATCH));
	kube_peer_send(s->peer, WATCH, EVENT("ADDED", NODE("d", "21")));
	edge_assert_story(s, OBJECT_NODE, "put /d\n");
	assert_true(edge_scene_await(s, has_events, &(uint64_t){5}));
	assert_int_equal(kube_peer_count(s->peer, LIST), 1);
}

static void half_a_line_is_told_again(void **state)
{
	struct edge_scene *s = *state;

	start_with_two_nodes(s);
	kube_peer_send(s->peer, WATCH, EVENT("ADDED", NODE("c", "11")) "{\"type\":\"ADDED\",\"obj");
	edge_assert_story(s, OBJECT_NODE, "put /c\n");
	kube_peer_cut(s->peer, WATCH);
	edge_assert_path(s, WATCH, 1, "resourceVersion=11&");
	assert_true(kube_peer_await_held(s->peer, WATCH));
	kube_peer_send(s->peer, WATCH, EVENT("ADDED", NODE("d", "12")));
	edge_assert_story(s, OBJECT_NODE, "put /d\n");
	assert_int_equal(kube_peer_count(s->peer, LIST), 1);
	assert_true(edge_scene_await(s, has_watch_errors,
				     &(struct edge_expected){.kind = OBJECT_NODE}));
}

static void list_that_is_cut_is_begun_again(void **state)
{
	struct edge_scene *s = *state;

	script(s, LIST,
	       (struct peer_answer){.body = NODE_LIST("10", NODE("a", "3") ",{\"meta"),
				    .then = PEER_CUT,
				    .chunk = 50});
	script(s, LIST, (struct peer_answer){.body = NODE_LIST("11", NODE("b", "3"))});
	edge_scene_start(s);
	edge_assert_story(s, OBJECT_NODE,
			  "listing\nbegin\nput /a\nlisting\nbegin\nput /b\nend\nsynced\n");
}

static void what_is_no_list_empties_nothing(void **state)
{
	struct edge_scene *s = *state;

	start_with_two_nodes(s);
	script(s, NODES, (struct peer_answer){.body = "{\"items\":[]}"});
	script(s, NODES, (struct peer_answer){.body = "{\"kind\":\"PodList\",\"items\":[]}"});
	script(s, NODES, (struct peer_answer){.body = "<html>", .headers = "X: y\r\n"});
	script(s, NODES, (struct peer_answer){.body = "{\"kind\":\"NodeList\",\"items\":[]}"});
	script(s, NODES, (struct peer_answer){.body = NODE_LIST("30", NODE("c", "29"))});
	kube_peer_send(s->peer, WATCH, EVENT("ERROR", STATUS(410, "too old")));
	edge_assert_story(
		s, OBJECT_NODE,
		"stale\nbegin\nstale\nbegin\nstale\nbegin\nstale\nbegin\nstale\nbegin\nput "
		"/c\nend\n"
		"synced\n");
	assert_int_equal(s->sources[OBJECT_NODE].relists, 1);
}

static void expired_watch_is_listed_anew(void **state)
{
	struct edge_scene *s = *state;

	start_with_two_nodes(s);
	script(s, NODES, (struct peer_answer){.status = 410, .body = STATUS(410, "too old")});
	script(s, NODES, (struct peer_answer){.body = NODE_LIST("30", NODE("c", "29"))});
	kube_peer_send(s->peer, WATCH,
		       EVENT("ADDED", NODE("x", "14")) EVENT("ERROR", STATUS(410, "too old"))
			       EVENT("ADDED", NODE("never", "15")));
	edge_assert_story(s, OBJECT_NODE, "put /x\nstale\nbegin\nput /c\nend\nsynced\n");
	edge_assert_path(s, NODES, 2, "?resourceVersion=14");
	edge_assert_path(s, NODES, 3, "limit=500&resourceVersion=");
	edge_assert_path(s, NODES, 4, "resourceVersion=30&timeout");
}

static void expired_page_makes_one_list_of_all(void **state)
{
	struct edge_scene *s = *state;

	script(s, LIST,
	       (struct peer_answer){
		       .body = "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"10\","
			       "\"continue\":\"to/ken\"},\"items\":[" NODE("a", "3") "]}"});
	script(s, "continue=to%2Fken", (struct peer_answer){.status = 410});
	script(s, "/api/v1/nodes?resourceVersion=0",
	       (struct peer_answer){.body = NODE_LIST("12", NODE("b", "3"))});
	edge_scene_start(s);
	edge_assert_story(s, OBJECT_NODE, "listing\nbegin\nput /a\nbegin\nput /b\nend\nsynced\n");
	edge_assert_path(s, WATCH, 0, "resourceVersion=12&");
}

static void pages_are_one_list(void **state)
{
	struct edge_scene *s = *state;

	script(s, LIST,
	       (struct peer_answer){
		       .body = "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"10\","
			       "\"continue\":\"more\"},\"items\":[" NODE("a", "3") "]}"});
	script(s, "continue=more", (struct peer_answer){.body = NODE_LIST("10", NODE("b", "3"))});
	edge_scene_start(s);
	edge_assert_story(s, OBJECT_NODE, "listing\nbegin\nput /a\nput /b\nend\nsynced\n");
	edge_assert_path(s, WATCH, 0, "resourceVersion=10&");
}

static void server_that_is_gone_is_watched_again_without_a_list(void **state)
{
	struct edge_scene *s = *state;

	start_with_two_nodes(s);
	kube_peer_send(s->peer, WATCH, EVENT("ADDED", NODE("c", "11")));
	edge_assert_story(s, OBJECT_NODE, "put /c\n");
	kube_peer_refuse(s->peer, true);
	edge_assert_message(s, OBJECT_NODE, "cannot be reached");
	assert_int_equal(s->sources[OBJECT_NODE].state, SOURCE_STALE);
	kube_peer_refuse(s->peer, false);
	assert_true(edge_scene_await(s, is_synced, &(struct edge_expected){.kind = OBJECT_NODE}));
	edge_forget_story(s, OBJECT_NODE);
	assert_true(kube_peer_await_held(s->peer, WATCH));
	edge_assert_path(s, WATCH, 1, "resourceVersion=11&");
	kube_peer_send(s->peer, WATCH, EVENT("ADDED", NODE("d", "12")));
	edge_assert_story(s, OBJECT_NODE, "put /d\n");
	assert_int_equal(kube_peer_count(s->peer, LIST), 1);
}

static void busy_server_is_watched_again_without_a_list(void **state)
{
	struct edge_scene *s = *state;

	start_with_two_nodes(s);
	script(s, WATCH, (struct peer_answer){.status = 429, .body = STATUS(429, "slow down")});
	script(s, WATCH, (struct peer_answer){.status = 503, .body = "<html>"});
	kube_peer_end(s->peer, WATCH);
	edge_assert_story(s, OBJECT_NODE, "stale\nstale\nsynced\n");
	kube_peer_send(s->peer, WATCH, EVENT("ERROR", STATUS(429, "slow down")));
	edge_assert_story(s, OBJECT_NODE, "stale\nsynced\n");
	kube_peer_send(s->peer, WATCH, EVENT("ERROR", STATUS(500, "etcd")));
	edge_assert_story(s, OBJECT_NODE, "stale\nsynced\n");
	assert_int_equal(kube_peer_count(s->peer, LIST), 1);
	edge_assert_path(s, WATCH, 5, "resourceVersion=10&");
}

static void retry_after_is_honoured(void **state)
{
	struct edge_scene *s = *state;
	int64_t begin_ns;

	start_with_two_nodes(s);
	script(s, WATCH, (struct peer_answer){.status = 429, .headers = "Retry-After: 1\r\n"});
	begin_ns = clock_mono_ns();
	kube_peer_end(s->peer, WATCH);
	assert_true(kube_peer_await(s->peer, WATCH, 3));
	assert_true(clock_mono_ns() - begin_ns >= NS_PER_SEC);
}

static void token_is_read_again_when_it_is_refused(void **state)
{
	struct edge_scene *s = *state;
	char *folder = folder_make();
	char *headers;
	FILE *file;

	s->config.token_file = mem_printf("%s/token", folder);
	file = fopen(s->config.token_file, "w");
	fputs("one\n", file);
	fclose(file);
	kube_peer_require_token(s->peer, "one");
	start_with_two_nodes(s);
	/* All watch, so that nodes are the first to meet the new token. */
	assert_true(kube_peer_await(s->peer, "watch=1", OBJECT_KINDS));
	file = fopen(s->config.token_file, "w");
	fputs("two\n", file);
	fclose(file);
	kube_peer_require_token(s->peer, "two");
	kube_peer_end(s->peer, WATCH);
	assert_true(kube_peer_await_held(s->peer, WATCH));
	kube_peer_send(s->peer, WATCH, EVENT("ADDED", NODE("c", "11")));
	edge_assert_story(s, OBJECT_NODE, "put /c\n");
	headers = kube_peer_headers(s->peer, WATCH, 1);
	assert_non_null(strstr(headers, "Authorization: Bearer one\r\n"));
	free(headers);
	headers = kube_peer_headers(s->peer, WATCH, 2);
	assert_non_null(strstr(headers, "Authorization: Bearer two\r\n"));
	free(headers);
	assert_int_equal(kube_peer_count(s->peer, LIST), 1);
	folder_remove(folder);
}

static void refused_token_is_told_until_there_is_a_good_one(void **state)
{
	struct edge_scene *s = *state;

	start_with_two_nodes(s);
	kube_peer_require_token(s->peer, "another");
	kube_peer_end(s->peer, WATCH);
	edge_assert_message(s, OBJECT_NODE, "the API answers 401: who?");
	kube_peer_require_token(s->peer, NULL);
	edge_assert_story(s, OBJECT_NODE, "stale\nsynced\n");
}

static void forbidden_kind_is_told_and_comes_back(void **state)
{
	struct edge_scene *s = *state;

	for (int i = 0; i < 3; i++)
		script(s, "poddisruptionbudgets?",
		       (struct peer_answer){.status = 403, .body = STATUS(403, "no list for you")});
	edge_scene_start(s);
	edge_assert_story(s, OBJECT_POD_DISRUPTION_BUDGET,
			  "listing\nforbidden\nbegin\nend\nsynced\n");
	assert_true(kube_peer_await(s->peer, "poddisruptionbudgets?", 5));
	edge_assert_story(s, OBJECT_NODE, "listing\nbegin\nend\nsynced\n");
}

static void missing_resource_is_looked_for_and_found(void **state)
{
	struct edge_scene *s = *state;

	kube_peer_lack(s->peer, "scheduling.x-k8s.io");
	edge_scene_start(s);
	edge_assert_story(s, OBJECT_ELASTIC_QUOTA, "listing\nabsent\n");
	edge_assert_story(s, OBJECT_NODE, "listing\nbegin\nend\nsynced\n");
	assert_int_equal(kube_peer_count(s->peer, "elasticquotas"), 0);
	assert_true(kube_peer_await(s->peer, "/apis", 20));
	kube_peer_lack(s->peer, NULL);
	edge_assert_story(s, OBJECT_ELASTIC_QUOTA, "listing\nbegin\nend\nsynced\n");
	/* And gone again: the watch ends, and neither it nor discovery knows the resource. */
	assert_true(kube_peer_await_held(s->peer, "elasticquotas"));
	kube_peer_lack(s->peer, "scheduling.x-k8s.io");
	kube_peer_end(s->peer, "elasticquotas");
	edge_assert_story(s, OBJECT_ELASTIC_QUOTA, "stale\nclear\nabsent\n");
}

static void discovery_that_fails_is_repeated(void **state)
{
	struct edge_scene *s = *state;

	script(s, "/apis", (struct peer_answer){.status = 403, .body = STATUS(403, "no")});
	script(s, "/apis", (struct peer_answer){.status = 503});
	script(s, "/apis", (struct peer_answer){.body = "{}"});
	script(s, "/apis", (struct peer_answer){.then = PEER_CUT});
	edge_scene_start(s);
	edge_assert_story(s, OBJECT_NODE,
			  "listing\nforbidden\nforbidden\nforbidden\nforbidden\nbegin\nend\n"
			  "synced\n");
}

static void objects_that_cannot_be_read_are_passed_over(void **state)
{
	struct edge_scene *s = *state;

	script(s, LIST,
	       (struct peer_answer){
		       .body = NODE_LIST("10", NODE("a", "3") ",{\"metadata\":7},3,{\"a\":}," NODE(
						       "b", "4"))});
	edge_scene_start(s);
	edge_assert_story(s, OBJECT_NODE, "listing\nbegin\nput /a\nput /b\nend\nsynced\n");
	assert_true(kube_peer_await_held(s->peer, WATCH));
	kube_peer_send(s->peer, WATCH,
		       "nonsense\n{\"type\":\"ADDED\"}\n" EVENT("UNHEARD", NODE("x", "10"))
			       EVENT("DELETED", "{}") EVENT("MODIFIED", NODE("a", "11")));
	edge_assert_story(s, OBJECT_NODE, "put /a\n");
	edge_assert_skipped(s, OBJECT_NODE, "that was deleted");
	assert_int_equal(s->sources[OBJECT_NODE].skipped, 7);
	assert_int_equal(s->sources[OBJECT_NODE].state, SOURCE_SYNCED);
}

static void huge_object_is_refused_alone(void **state)
{
	struct edge_scene *s = *state;
	struct buf body = BUF_INIT;

	buf_add_str(&body,
		    "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":"
		    "[" NODE("a", "3") ",{\"metadata\":{\"name\":\"huge\",\"x\":\"");
	memset(buf_reserve(&body, 9 << 20), 'x', 9 << 20);
	body.len += 9 << 20;
	buf_add_str(&body, "\"}}," NODE("b", "4") "]}");
	script(s, LIST, (struct peer_answer){.body = body.data});
	edge_scene_start(s);
	edge_assert_story(s, OBJECT_NODE, "listing\nbegin\nput /a\nput /b\nend\nsynced\n");
	edge_assert_skipped(s, OBJECT_NODE, "8 MiB or more");
	assert_int_equal(s->sources[OBJECT_NODE].too_large, 1);
	assert_true(s->sources[OBJECT_NODE].bytes > 9 << 20);
	buf_fini(&body);
}

static void list_that_falls_silent_is_given_up(void **state)
{
	struct edge_scene *s = *state;

	s->timing.list_silence_s = 1;
	script(s, LIST,
	       (struct peer_answer){.body = NODE_LIST("10", NODE("a", "3") ",{\"meta"),
				    .chunk = 110,
				    .then = PEER_HOLD});
	edge_scene_start(s);
	edge_assert_story(s, OBJECT_NODE, "listing\nbegin\nput /a\nlisting\nbegin\nend\nsynced\n");
}

static void watch_that_nobody_ends_is_cut(void **state)
{
	struct edge_scene *s = *state;

	s->timing.watch_least_s = s->timing.watch_most_s = 1;
	s->timing.watch_grace_ns = 1;
	start_with_two_nodes(s);
	assert_true(kube_peer_await(s->peer, WATCH, 3));
	edge_assert_path(s, WATCH, 1, "timeoutSeconds=1");
	assert_int_equal(kube_peer_count(s->peer, LIST), 1);
}

enum { LOOKS_STILL = 4 };

struct stillness {
	struct edge_scene *scene;
	uint64_t ticket; /* of the newest flush */
	int looks; /* since it was answered */
};

/* The thread answers no flush: it waits for room. */
static bool stands_still(void *ctx)
{
	struct stillness *still = ctx;

	if (kube_flushed(still->scene->kube) >= still->ticket) {
		kube_flush(still->scene->kube, ++still->ticket);
		still->looks = 0;
	}
	return ++still->looks > LOOKS_STILL;
}

enum { NODES_MANY = 512 * 100 };

/* A list of more than the queue holds, and nobody takes any of it until the thread stands still. */
static void start_and_fall_behind(struct edge_scene *s)
{
	struct stillness still = {.scene = s};
	struct buf body = BUF_INIT;

	buf_add_str(&body,
		    "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[");
	for (int i = 0; i < NODES_MANY; i++)
		buf_printf(&body, "%s{\"metadata\":{\"name\":\"n%d\"}}", i ? "," : "", i);
	buf_add_str(&body, "]}");
	script(s, LIST, (struct peer_answer){.body = body.data});
	edge_scene_start(s);
	assert_true(await(stands_still, &still, EDGE_AWAIT_SECONDS));
	buf_fini(&body);
}

static void loop_that_is_behind_is_waited_for(void **state)
{
	struct edge_scene *s = *state;
	size_t taken = 0;
	struct kube_batch *b;
	bool ended = false;

	start_and_fall_behind(s);
	while (!ended) {
		b = kube_take(s->kube);
		for (size_t i = 0; b && i < b->count; i++)
			if (b->changes[i].kind == OBJECT_NODE) {
				taken += b->changes[i].type == KUBE_PUT;
				ended |= b->changes[i].type == KUBE_REPLACE_END;
			}
		kube_batch_free(b);
	}
	assert_int_equal(taken, NODES_MANY);
}

static void assert_stops_at_once(struct edge_scene *s)
{
	int64_t begin_ns = clock_mono_ns();

	kube_stop(s->kube);
	s->kube = NULL;
	assert_true(clock_mono_ns() - begin_ns < NS_PER_SEC);
}

static void stops_while_the_loop_is_behind(void **state)
{
	struct edge_scene *s = *state;

	start_and_fall_behind(s);
	assert_stops_at_once(s);
}

/* All there is to wait for is a minute away or more. */
static void stops_when_nothing_happens(void **state)
{
	struct edge_scene *s = *state;

	s->timing = *kube_timing_usual();
	edge_scene_start(s);
	assert_true(kube_peer_await(s->peer, "watch=1", OBJECT_KINDS));
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		edge_assert_story(s, (enum object_kind)kind, "listing\nbegin\nend\nsynced\n");
	assert_stops_at_once(s);
}

static void stops_within_a_second_whatever_it_does(void **state)
{
	static const char *const states[] = {"/apis", "/api/v1", LIST, WATCH};
	struct edge_scene *s = *state;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		size_t seen = kube_peer_count(s->peer, states[i]);

		/* The answer never comes. */
		script(s, states[i], (struct peer_answer){.body = "{", .then = PEER_HOLD});
		edge_scene_start(s);
		assert_true(kube_peer_await(s->peer, states[i], seen + 1));
		assert_stops_at_once(s);
	}
	/* Nor does it wait for a pause to end. */
	s->timing = *kube_timing_usual();
	kube_peer_refuse(s->peer, true);
	edge_scene_start(s);
	edge_assert_message(s, OBJECT_NODE, "cannot be reached");
	assert_stops_at_once(s);
	kube_peer_refuse(s->peer, false);
}

static void api_that_is_not_there_yet_is_waited_for(void **state)
{
	struct edge_scene *s = *state;

	kube_peer_refuse(s->peer, true);
	edge_scene_start(s);
	edge_assert_message(s, OBJECT_POD, "cannot be reached");
	assert_int_equal(s->sources[OBJECT_POD].state, SOURCE_LISTING);
	kube_peer_refuse(s->peer, false);
	edge_assert_story(s, OBJECT_POD, "listing\nlisting\nbegin\nend\nsynced\n");
}

#define SCENE(test) cmocka_unit_test_setup_teardown(test, edge_scene_setup, edge_scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE(every_kind_is_listed_and_watched),
		SCENE(list_is_read_in_chunks_of_every_size),
		SCENE(events_are_handed_over_as_they_come),
		SCENE(half_a_line_is_told_again),
		SCENE(list_that_is_cut_is_begun_again),
		SCENE(what_is_no_list_empties_nothing),
		SCENE(expired_watch_is_listed_anew),
		SCENE(expired_page_makes_one_list_of_all),
		SCENE(pages_are_one_list),
		SCENE(server_that_is_gone_is_watched_again_without_a_list),
		SCENE(busy_server_is_watched_again_without_a_list),
		SCENE(retry_after_is_honoured),
		SCENE(token_is_read_again_when_it_is_refused),
		SCENE(refused_token_is_told_until_there_is_a_good_one),
		SCENE(forbidden_kind_is_told_and_comes_back),
		SCENE(missing_resource_is_looked_for_and_found),
		SCENE(discovery_that_fails_is_repeated),
		SCENE(objects_that_cannot_be_read_are_passed_over),
		SCENE(huge_object_is_refused_alone),
		SCENE(list_that_falls_silent_is_given_up),
		SCENE(watch_that_nobody_ends_is_cut),
		SCENE(loop_that_is_behind_is_waited_for),
		SCENE(stops_within_a_second_whatever_it_does),
		SCENE(stops_while_the_loop_is_behind),
		SCENE(stops_when_nothing_happens),
		SCENE(api_that_is_not_there_yet_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
