/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that take long hold up nobody else's, are bounded in number, and do not keep the server
 * from stopping.
 */
#include "tests/http_scene.h"

#include "aggregator/planner/place_cache.h"
#include "tests/cluster_fixture.h"
#include "tests/process.h"

enum { FITS_MOST = 256 };

/* Questions that wait for the placement cores, both of which somebody else has. */
struct fits {
	struct view *view;
	struct place *cores[PLACE_CACHE_MAX];
	CURLM *multi;
	int running;
	size_t count;
	struct answer answers[FITS_MOST];
	CURL *requests[FITS_MOST];
};

static void begin_fits(struct scene *s, struct fits *f, size_t count)
{
	*f = (struct fits){.view = cluster_fixture_new(), .multi = curl_multi_init()};
	s->ctx.places = place_cache_new();
	view_slot_publish(s->ctx.views, view_hold(f->view));
	for (size_t i = 0; i < PLACE_CACHE_MAX; i++)
		f->cores[i] = place_cache_take(s->ctx.places, f->view, VIEW_FIXTURE_NOW_NS);
	for (f->count = 0; f->count < count; f->count++) {
		CURL *curl = new_request(s, "/v1/fit", &f->answers[f->count]);

		curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http_json_headers());
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS,
				 "{\"pod\":{\"spec\":{\"containers\":[{\"name\":\"c\"}]}}}");
		curl_multi_add_handle(f->multi, curl);
		f->requests[f->count] = curl;
	}
}

static void turn_fits(struct fits *f)
{
	assert_int_equal(curl_multi_perform(f->multi, &f->running), CURLM_OK);
	if (f->running)
		assert_int_equal(curl_multi_poll(f->multi, NULL, 0, 1000, NULL), CURLM_OK);
}

static void give_cores(struct scene *s, struct fits *f)
{
	for (size_t i = 0; i < PLACE_CACHE_MAX; i++)
		place_cache_give(s->ctx.places, f->cores[i]);
}

/* How many were answered so; every one was. */
static size_t end_fits(struct scene *s, struct fits *f, long status)
{
	size_t answered = 0;

	while (f->running)
		turn_fits(f);
	for (size_t i = 0; i < f->count; i++) {
		curl_easy_getinfo(f->requests[i], CURLINFO_RESPONSE_CODE, &f->answers[i].status);
		answered += f->answers[i].status == status;
		curl_multi_remove_handle(f->multi, f->requests[i]);
		curl_easy_cleanup(f->requests[i]);
		forget(&f->answers[i]);
	}
	curl_multi_cleanup(f->multi);
	view_drop(f->view);
	place_cache_free(s->ctx.places);
	s->ctx.places = NULL;
	return answered;
}

/* Many more of them than there are threads, and nobody else waits. */
static void test_long_requests_hold_up_nobody(void **state)
{
	struct scene *s = *state;
	struct fits f;

	begin_fits(s, &f, 40);
	turn_fits(&f);
	for (int i = 0; i < 50; i++) {
		assert_alive(s);
		assert_int_equal(get_status(s, "/v1/nodes"), 200);
		assert_int_equal(curl_multi_perform(f.multi, &f.running), CURLM_OK);
	}
	assert_int_equal(f.running, 40);
	give_cores(s, &f);
	assert_int_equal(end_fits(s, &f, 200), 40);
}

static void test_long_requests_are_bounded(void **state)
{
	struct scene *s = *state;
	struct fits f;

	begin_fits(s, &f, FITS_MOST);
	do
		turn_fits(&f);
	while (f.running > FITS_MOST / 2); /* refused at once, the others wait */
	give_cores(s, &f);
	assert_in_range(end_fits(s, &f, 503), FITS_MOST / 2, FITS_MOST - 1);
	assert_alive(s);
}

/* Those that have not begun are refused, those that have are answered. */
static void test_stop_with_long_requests(void **state)
{
	struct scene *s = *state;
	struct fits f;

	begin_fits(s, &f, 40);
	for (int i = 0; i < 10; i++) {
		assert_alive(s);
		assert_int_equal(curl_multi_perform(f.multi, &f.running), CURLM_OK);
	}
	give_cores(s, &f);
	http_stop(s->server);
	s->server = NULL;
	end_fits(s, &f, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_long_requests_hold_up_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_requests_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop_with_long_requests, setup, teardown),
	};
	int failed;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
