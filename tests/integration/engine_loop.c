/* SPDX-License-Identifier: Apache-2.0 */
/* The informer and the publisher in a loop, against a scripted API server: when there is a view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/engine_publisher.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_peer.h"
#include "tests/process.h"
#include "tests/usage_fixture.h"

#define PODS "/api/v1/pods?"

static const struct usage_limits limits = {.nodes_max = 9, .pods_per_node_max = 9};
static const struct option_list no_files;

static struct scene {
	struct kube_peer *peer;
	char *folder, *kubeconfig;
	uv_loop_t loop;
	struct counters counters;
	struct publisher_config publication;
	struct api_context api;
	struct informer *informer;
	struct publisher *publisher;
	size_t published;
	bool note; /* frames at the end of the next publication */
} s;

static void apply_frame(uint64_t sequence)
{
	static const uint8_t run[FRAME_RUN_LEN] = {1};
	int64_t now_ns = clock_wall_ns();
	struct interval *i = usage_fixture_new(&(struct usage_fixture){
		.sequence = sequence, .end_ns = now_ns, .seconds = 5, .seed = 1});
	struct usage_answer answer = {0};

	usage_apply(s.publication.usage, "n1", run, NULL, i, now_ns, &answer);
	assert_int_equal(answer.verdict, USAGE_APPLIED);
	interval_free(i);
}

static void on_published(void *ctx, int64_t now_ns)
{
	(void)ctx;
	(void)now_ns;
	s.published++;
	if (!s.note)
		return;
	s.note = false;
	apply_frame(2);
	publisher_note_frames(s.publisher, 1, false);
}

static int setup(void **state)
{
	(void)state;
	s = (struct scene){.peer = kube_peer_new(), .folder = folder_make()};
	s.kubeconfig = mem_printf("%s/kubeconfig", s.folder);
	kube_peer_write_config(s.peer, s.kubeconfig);
	uv_loop_init(&s.loop);
	s.publication = (struct publisher_config){.loop = &s.loop,
						  .usage = usage_new(&limits),
						  .join = join_new(),
						  .views = view_slot_new(),
						  .reservations = reservations_new(),
						  .informer = &s.informer,
						  .counters = &s.counters,
						  .published = on_published};
	s.api = (struct api_context){.views = s.publication.views,
				     .counters = &s.counters,
				     .now_ns = clock_wall_ns};
	assert_int_equal(publisher_open(&s.publisher, &s.publication), 0);
	return 0;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static int teardown(void **state)
{
	(void)state;
	informer_stop(s.informer);
	uv_walk(&s.loop, close_handle, NULL);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&s.loop), 0);
	informer_free(s.informer);
	publisher_free(s.publisher);
	join_free(s.publication.join);
	usage_free(s.publication.usage);
	view_slot_free(s.publication.views);
	reservations_free(s.publication.reservations);
	kube_peer_free(s.peer);
	free(s.kubeconfig);
	folder_remove(s.folder);
	return 0;
}

static void follow(void)
{
	const struct informer_config config = {.snapshots = &no_files,
					       .kubeconfig = s.kubeconfig,
					       .loop = &s.loop,
					       .publisher = s.publisher,
					       .reservations = s.publication.reservations,
					       .api = &s.api};
	struct error why = {""};

	if (informer_open(&s.informer, &config, &why))
		fail_msg("%s", why.text);
}

/* Whether the loop waits, having done what woke it. */
static bool is_at_rest(void *ctx)
{
	struct pollfd p = {.fd = uv_backend_fd(&s.loop), .events = POLLIN};

	(void)ctx;
	uv_run(&s.loop, UV_RUN_NOWAIT);
	return !poll(&p, 1, 0);
}

/* The list of pods comes late. */
static void pods_are_listed(void **state)
{
	static const char list[] =
		"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
		"\"100\"},\"items\":[{\"metadata\":{\"namespace\":\"a\",\"name\":\"p\",\"uid\":"
		"\"u\"},\"spec\":{\"containers\":[]},\"status\":{}}]}";

	(void)state;
	kube_peer_script(s.peer, PODS, &(struct peer_answer){.then = PEER_HOLD});
	follow();
	assert_string_equal(informer_mode(s.informer), "kubeconfig");
	assert_false(informer_runs_programs(s.informer));
	assert_non_null(strstr(informer_from(s.informer), kube_peer_url(s.peer)));
	assert_true(kube_peer_await_held(s.peer, PODS));
	assert_false(informer_lists_pods(s.informer));
	kube_peer_send(s.peer, PODS, list);
	kube_peer_end(s.peer, PODS);
	while (!informer_pod(s.informer, "a", "p", "u"))
		uv_run(&s.loop, UV_RUN_ONCE);
	while (!informer_lists_pods(s.informer))
		uv_run(&s.loop, UV_RUN_ONCE);
	/* Changes are published without frames, in a second at most instead of 10 s. */
	assert_true(s.published || uv_backend_timeout(&s.loop) <= 1001);
	while (informer_dirty(s.informer))
		uv_run(&s.loop, UV_RUN_ONCE);
	while (!s.published)
		uv_run(&s.loop, UV_RUN_ONCE);
	assert_true(await(is_at_rest, NULL, 20));
}

/* A change during a publication causes another one. */
static void a_change_during_a_publication(void **state)
{
	struct view *v;

	(void)state;
	apply_frame(1);
	s.note = true;
	publisher_note_frames(s.publisher, 1, false);
	assert_int_equal(uv_backend_timeout(&s.loop), 0); /* it has begun */
	while (!s.published)
		uv_run(&s.loop, UV_RUN_ONCE);
	assert_int_equal(s.published, 1);
	assert_true(usage_dirty(s.publication.usage));
	/* It follows in a second at most, instead of 10 s. */
	assert_in_range(uv_backend_timeout(&s.loop), 0, 1001);
	while (s.published < 2)
		uv_run(&s.loop, UV_RUN_ONCE);
	assert_false(usage_dirty(s.publication.usage));
	v = view_slot_take(s.publication.views);
	assert_int_equal(v->node_count, 1);
	view_drop(v);
}

static uv_async_t has_read;

static void on_read(uv_async_t *read)
{
	*(bool *)read->data = true;
}

static void want(void *ctx, uint64_t ticket)
{
	publisher_want(ctx, ticket);
}

/* The thread of a reader; without its request the next publication comes after 10 s. */
static void *read_newest(void *told)
{
	*(bool *)told = view_slot_refresh(s.publication.views, clock_mono_ns() + 5 * NS_PER_SEC);
	uv_async_send(&has_read);
	return NULL;
}

/* Readers get the newest state, with or without another publication. */
static void readers_are_answered(void **state)
{
	(void)state;
	uv_async_init(&s.loop, &has_read, on_read);
	view_slot_on_refresh(s.publication.views, want, s.publisher);
	apply_frame(1);
	publisher_publish(s.publisher);
	for (size_t frames = 1; frames <= 2; frames++) {
		bool done = false, told = false;
		pthread_t reader;

		if (frames == 2)
			apply_frame(frames);
		has_read.data = &done;
		assert_int_equal(pthread_create(&reader, NULL, read_newest, &told), 0);
		while (!done)
			uv_run(&s.loop, UV_RUN_ONCE);
		pthread_join(reader, NULL);
		assert_true(told);
		assert_true(s.published >= frames);
		assert_false(usage_dirty(s.publication.usage));
	}
	assert_int_equal(counter_get(&s.counters.views_published), s.published);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(pods_are_listed),
		TEST(a_change_during_a_publication),
		TEST(readers_are_answered),
	};

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
