/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server on a port of the loopback over a fixture's view, and curl as its client. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <curl/curl.h>
#include <stdlib.h>

#include "aggregator/edge/http/http.h"
#include "shared/mem.h"
#include "tests/http_plain.h"
#include "tests/view_fixture.h"

struct scene {
	struct api_context ctx;
	struct counters counters;
	struct http_server *server;
};

static inline int64_t fixed_now(void)
{
	return VIEW_FIXTURE_NOW_NS;
}

static inline int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct error error;

	s->ctx = (struct api_context){
		.views = view_slot_new(),
		.counters = &s->counters,
		.now_ns = fixed_now,
		.watcher_smoothed = 1,
	};
	view_slot_publish(s->ctx.views, view_fixture_new());
	if (http_plain_start(&s->server, "127.0.0.1:0", &s->ctx, &error)) {
		print_error("%s\n", error.text);
		return -1;
	}
	*state = s;
	return 0;
}

static inline int teardown(void **state)
{
	struct scene *s = *state;

	http_stop(s->server);
	view_slot_free(s->ctx.views);
	free(s);
	return 0;
}

/* What curl got. */
struct answer {
	long status;
	struct buf headers, body;
};

static inline size_t on_data(char *data, size_t size, size_t count, void *to)
{
	buf_add(to, data, size * count);
	return size * count;
}

static inline CURL *new_request(const struct scene *s, const char *target, struct answer *a)
{
	CURL *curl = curl_easy_init();
	char *url = mem_printf("http://%s%s", http_address(s->server), target);

	*a = (struct answer){0};
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &a->body);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_data);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, &a->headers);
	free(url);
	return curl;
}

static inline void run_request(CURL *curl, struct answer *a)
{
	assert_int_equal(curl_easy_perform(curl), CURLE_OK);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &a->status);
	curl_easy_cleanup(curl);
}

static inline void forget(struct answer *a)
{
	buf_fini(&a->headers);
	buf_fini(&a->body);
}

static inline long get_status(const struct scene *s, const char *target)
{
	struct answer a;
	CURL *curl = new_request(s, target, &a);

	run_request(curl, &a);
	forget(&a);
	return a.status;
}

/* The server as others see it: it answers. */
static inline void assert_alive(const struct scene *s)
{
	assert_int_equal(get_status(s, "/healthz"), 200);
}
