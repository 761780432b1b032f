/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server for real: on a port of the loopback, with well-behaved, slow and hostile clients.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "aggregator/edge/http/http.h"
#include "shared/mem.h"
#include "tests/http_plain.h"
#include "tests/http_raw.h"
#include "tests/http_scene.h"
#include "tests/view_fixture.h"

enum { MIB = 1 << 20 };

/* A large answer: more than the sockets' buffers hold. */
static void publish_large_view(struct scene *s)
{
	enum { NODES = 20000 };
	struct node_stats *node_stats = mem_zalloc(NODES, sizeof(*node_stats));
	char(*names)[16] = mem_zalloc(NODES, sizeof(*names));

	for (int i = 0; i < NODES; i++) {
		snprintf(names[i], sizeof(names[i]), "node-%05d", i);
		node_stats[i] = view_fixture_node(names[i], VIEW_FIXTURE_NOW_NS, 900, i % 4000, 10);
	}
	view_slot_publish(s->ctx.views, view_fixture_of(node_stats, NODES));
	free(names);
	free(node_stats);
}

/* --- clients ---------------------------------------------------------------------------------- */

/*
 * A header's value in the answer, up to the end of its line; NULL when it is not there. The caller
 * frees it.
 */
static char *header_of(const struct answer *a, const char *name)
{
	char *line = mem_printf("\n%s: ", name);
	const char *at = a->headers.data ? strcasestr(a->headers.data, line) : NULL;
	size_t len = strlen(line);

	free(line);
	return at ? mem_strndup(at + len, strcspn(at + len, "\r\n")) : NULL;
}

/* --- well-behaved clients --------------------------------------------------------------------- */

static void test_answers(void **state)
{
	static const struct {
		const char *target;
		long status;
	} cases[] = {
		{"/healthz", 200},
		{"/readyz", 200},
		{"/metrics", 200},
		{"/watcher", 200},
		{"/watcher/health", 200},
		{"//watcher", 200},
		{"/watcher?host", 200},
		{"/watcher?host=", 200},
		{"/watcher?host=al%70ha", 200},
		{"/watcher?host=nobody", 404},
		{"/v1/nodes", 200},
		{"/v1/nodes/al%70ha", 200},
		{"/v1/nodes?limit=1&sort=%6eame", 200},
		{"/v1/nodes?limit", 200},
		{"/v1/nodes?", 200},
		{"/v1/nodes?limit=1&", 200},
		{"/v1/nodes?limit=x", 400},
		{"/v1/nodes?bad", 400},
		{"/v1/nodes?LIMIT=1", 400},
		{"/v1/pods", 200},
		{"/v1/scores", 405},
		{"/nothing", 404},
		{"/%00", 404},
		{"/v1/nodes/..%2f..", 404},
		{"/v1/nodes/%00", 404},
		{"/v1/nodes%00", 404},
	};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		long status = get_status(s, cases[i].target);

		if (status != cases[i].status)
			fail_msg("%s: %ld", cases[i].target, status);
	}
	assert_true(counter_get(&s->counters.http_requests[2]) == 16);
	assert_true(counter_get(&s->counters.http_requests[4]) == 10);
}

static void test_headers(void **state)
{
	struct answer a;
	CURL *curl = new_request(*state, "/v1/pods", &a);
	char *type, *allow;

	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "DELETE");
	run_request(curl, &a);
	type = header_of(&a, "Content-Type");
	allow = header_of(&a, "Allow");
	assert_int_equal(a.status, 405);
	assert_string_equal(type, "application/json");
	assert_string_equal(allow, "GET, HEAD");
	free(type);
	free(allow);
	forget(&a);

	curl = new_request(*state, "/watcher/health", &a);
	run_request(curl, &a);
	assert_null(header_of(&a, "Content-Type"));
	assert_int_equal(a.body.len, 0);
	forget(&a);
}

static void test_head(void **state)
{
	struct answer get, head;
	char *length_of_get, *length_of_head;

	run_request(new_request(*state, "/v1/nodes", &get), &get);
	CURL *curl = new_request(*state, "/v1/nodes", &head);

	curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
	run_request(curl, &head);
	length_of_get = header_of(&get, "Content-Length");
	length_of_head = header_of(&head, "Content-Length");
	assert_int_equal(head.status, 200);
	assert_int_equal(head.body.len, 0);
	assert_string_equal(length_of_head, length_of_get);
	free(length_of_get);
	free(length_of_head);
	forget(&get);
	forget(&head);
}

static long get_if_none_match(const struct scene *s, const char *tags, struct answer *a)
{
	char *line = mem_printf("If-None-Match: %s", tags);
	struct curl_slist *headers = curl_slist_append(NULL, line);
	CURL *curl = new_request(s, "/v1/nodes", a);

	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	run_request(curl, a);
	curl_slist_free_all(headers);
	free(line);
	return a->status;
}

static void test_etag(void **state)
{
	struct scene *s = *state;
	struct answer a;
	char *tag, *again, *list;

	run_request(new_request(s, "/v1/nodes", &a), &a);
	tag = header_of(&a, "ETag");
	assert_non_null(tag);
	forget(&a);
	assert_int_equal(get_if_none_match(s, tag, &a), 304);
	again = header_of(&a, "ETag");
	assert_string_equal(again, tag);
	assert_int_equal(a.body.len, 0);
	forget(&a);
	list = mem_printf("\"x\", %s", tag);
	assert_int_equal(get_if_none_match(s, list, &a), 304);
	forget(&a);
	assert_int_equal(get_if_none_match(s, "*", &a), 304);
	forget(&a);
	assert_int_equal(get_if_none_match(s, "W/\"0\"", &a), 200);
	forget(&a);
	view_slot_publish(s->ctx.views, view_fixture_of(NULL, 0));
	assert_int_equal(get_if_none_match(s, tag, &a), 200);
	forget(&a);
	free(tag);
	free(again);
	free(list);
}

static void test_keep_alive(void **state)
{
	struct buf got = BUF_INIT;
	int fd = raw_connect(*state);

	for (int i = 0; i < 3; i++) {
		assert_true(raw_say(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
		assert_true(raw_read(fd, "\r\n\r\nok\n", &got));
		assert_memory_equal(got.data, "HTTP/1.1 200", 12);
	}
	/* Two requests in one packet are two answers, in order. */
	assert_true(raw_say(
		fd, "GET /watcher/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
		    "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
	assert_false(raw_read(fd, NULL, &got));
	assert_memory_equal(got.data, "HTTP/1.1 200", 12);
	assert_string_equal(got.data + got.len - 7, "\r\n\r\nok\n");
	close(fd);
	buf_fini(&got);
}

/* Clients that keep a connection find another server after the next answer. */
static void test_leaving(void **state)
{
	struct scene *s = *state;
	struct buf got = BUF_INIT;
	int fd = raw_connect(s);

	assert_true(raw_say(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
	assert_true(raw_read(fd, "\r\n\r\nok\n", &got));
	counter_set(&s->ctx.counters->leaving, 1);
	assert_true(raw_say(fd, "GET /watcher HTTP/1.1\r\nHost: localhost\r\n\r\n"));
	assert_false(raw_read(fd, NULL, &got));
	assert_memory_equal(got.data, "HTTP/1.1 200", 12);
	assert_non_null(strstr(got.data, "Connection: close"));
	counter_set(&s->ctx.counters->leaving, 0);
	close(fd);
	buf_fini(&got);
}

/* The library would neither answer those that do not fit its buffer nor close the connection. */
static void test_many_parameters(void **state)
{
	static const char few[] = "unknown parameter", many[] = "too many parameters";
	static const struct {
		int count, length; /* of each */
		const char *told;
	} cases[] = {
		{64, 3, few},	 {65, 3, many},	 {240, 3, many},  {301, 3, many},
		{3000, 3, many}, {16, 800, few}, {16, 970, many}, {64, 220, many},
	};
	struct buf got = BUF_INIT;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf request = BUF_INIT;
		int fd = raw_connect(*state);

		buf_add_str(&request, "GET /v1/nodes?");
		for (int k = 0; k < cases[i].count; k++)
			buf_printf(&request, "%sa=%0*d", k ? "&" : "", cases[i].length - 2, 0);
		buf_add_str(&request, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
		assert_true(raw_send(fd, request.data, request.len));
		assert_true(raw_read(fd, cases[i].told, &got));
		assert_memory_equal(got.data, "HTTP/1.1 400", 12);
		close(fd);
		buf_fini(&request);
	}
	buf_fini(&got);
}

static void test_many_at_once(void **state)
{
	enum { CLIENTS = 200 };
	struct answer answers[CLIENTS];
	CURL *requests[CLIENTS];
	CURLM *multi = curl_multi_init();
	int running = 1;

	for (int i = 0; i < CLIENTS; i++) {
		requests[i] = new_request(*state, i % 2 ? "/v1/pods" : "/watcher", &answers[i]);
		curl_multi_add_handle(multi, requests[i]);
	}
	while (running) {
		assert_int_equal(curl_multi_perform(multi, &running), CURLM_OK);
		if (running)
			assert_int_equal(curl_multi_poll(multi, NULL, 0, 1000, NULL), CURLM_OK);
	}
	for (int i = 0; i < CLIENTS; i++) {
		curl_easy_getinfo(requests[i], CURLINFO_RESPONSE_CODE, &answers[i].status);
		assert_int_equal(answers[i].status, 200);
		assert_int_equal(answers[i].body.len, answers[i % 2].body.len);
		curl_multi_remove_handle(multi, requests[i]);
		curl_easy_cleanup(requests[i]);
	}
	for (int i = 0; i < CLIENTS; i++)
		forget(&answers[i]);
	curl_multi_cleanup(multi);
}

/* --- bodies ----------------------------------------------------------------------------------- */

static long post(const struct scene *s, const char *target, size_t len, const char *header)
{
	struct curl_slist *headers =
		curl_slist_append(curl_slist_append(NULL, "Content-Type: application/json"),
				  header);
	struct answer a;
	CURL *curl = new_request(s, target, &a);
	char *body = mem_alloc(len + 1);

	memset(body, 'x', len);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	run_request(curl, &a);
	curl_slist_free_all(headers);
	forget(&a);
	free(body);
	return a.status;
}

static void test_body_limit(void **state)
{
	static const struct {
		size_t len;
		long status;
	} cases[] = {
		{0, 200}, {1, 200}, {MIB, 200}, {MIB + 1, 413}, {8 * MIB, 413},
	};
	/* With and without asking first; of a length told and not told. */
	static const char *const headers[] = {"Expect: 100-continue",
					      "Expect:", "Transfer-Encoding: chunked"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t h = 0; h < sizeof(headers) / sizeof(headers[0]); h++)
			assert_int_equal(post(*state, "/watcher", cases[i].len, headers[h]),
					 cases[i].status);
	assert_alive(*state);
}

static void test_absurd_lengths(void **state)
{
	struct buf got = BUF_INIT;
	int fd = raw_connect(*state);

	assert_true(raw_say(
		fd,
		"POST /v1/scores HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		"Content-Length: 1099511627776\r\n\r\n{"));
	assert_true(raw_read(fd, "tooLarge", &got));
	assert_memory_equal(got.data, "HTTP/1.1 413", 12);
	close(fd);

	/* A body without an end is not read for ever. */
	fd = raw_connect(*state);
	assert_true(raw_say(
		fd,
		"POST /v1/scores HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		"Transfer-Encoding: chunked\r\n\r\n"));
	char *chunk = mem_alloc(MIB);

	memset(chunk, 'x', MIB);
	for (int i = 0; i < 64; i++)
		if (!raw_say(fd, "100000\r\n") || !raw_send(fd, chunk, MIB) || !raw_say(fd, "\r\n"))
			break;
	assert_false(raw_read(fd, NULL, &got));
	close(fd);
	free(chunk);
	buf_fini(&got);
	assert_alive(*state);
}

/* --- slow and hostile clients ----------------------------------------------------------------- */

static void test_slow_clients(void **state)
{
	enum { CLIENTS = 100 };
	struct scene *s = *state;
	struct buf got = BUF_INIT;
	int fds[CLIENTS];

	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = raw_connect(s);
		assert_true(
			raw_say(fds[i], i % 2 ? "GET /heal"
					      : "POST /watcher/health HTTP/1.1\r\nHost: "
						"localhost\r\nContent-Type: application/json\r\n"
						"Content-Length: 10\r\n\r\nhalf"));
	}
	assert_alive(s);
	for (int i = 0; i < CLIENTS; i++) {
		assert_true(raw_say(fds[i],
				    i % 2 ? "thz HTTP/1.1\r\nHost: localhost\r\n\r\n" : "-and-a"));
		assert_true(raw_read(fds[i], "\r\n\r\n", &got));
		assert_memory_equal(got.data, "HTTP/1.1 200", 12);
		close(fds[i]);
	}
	buf_fini(&got);
}

/* Clients that ask for much and read nothing: not beyond the bound of unread answers. */
static void test_slow_readers(void **state)
{
	enum { CLIENTS = 15 };
	struct scene *s = *state;
	struct buf got = BUF_INIT;
	size_t first = 0;
	int fds[CLIENTS];

	publish_large_view(s);
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = raw_connect(s);
		assert_true(raw_say(fds[i], "GET /watcher HTTP/1.1\r\nHost: localhost\r\n"
					    "Connection: close\r\n\r\n"));
	}
	assert_alive(s);
	for (int i = 0; i < CLIENTS; i += 7) {
		raw_read(fds[i], NULL, &got);
		assert_true(got.len > 4 * MIB);
		assert_string_equal(got.data + got.len - 4, "}}}}");
		assert_true(first == 0 || got.len == first);
		first = got.len;
	}
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	buf_fini(&got);
	assert_alive(s);
}

/*
 * Unread answers are bounded: beyond the bound clients are told to come back, and later they are
 * served.
 */
static void test_unread_answers_are_bounded(void **state)
{
	enum { CLIENTS = 60 };
	struct scene *s = *state;
	struct buf got = BUF_INIT;
	int fds[CLIENTS], refused = 0;

	publish_large_view(s);
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = raw_connect(s);
		assert_true(raw_say(fds[i], "GET /watcher HTTP/1.1\r\nHost: localhost\r\n\r\n"));
	}
	for (int i = 0; i < CLIENTS; i++) {
		char start[13] = "";

		assert_int_equal(recv(fds[i], start, 12, MSG_WAITALL), 12);
		refused += strcmp(start, "HTTP/1.1 503") == 0;
	}
	assert_in_range(refused, 1, CLIENTS - 1);
	assert_alive(s);
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	while (get_status(s, "/watcher") != 200)
		usleep(1000);
	buf_fini(&got);
}

static void test_malformed_requests(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
#define CASE(text) {text, sizeof(text) - 1}
		CASE("\r\n\r\n\r\n\r\n"),
		CASE("GET\r\n\r\n"),
		CASE("GET / HTTP/9.9\r\n\r\n"),
		CASE("GET / HTTP/1.1\r\n\r\n"),
		CASE("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
		CASE("\0\0\0\0\0\0\0\0\0\0\r\n\r\n"),
		CASE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		CASE("GET /watcher?%zz=%%%&&&==&host=%f HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		CASE("GET /v1/nodes?limit=%00&%00=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		CASE("POST /v1/scores HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
		     "application/json\r\nContent-Length: -1\r\n\r\n"),
		CASE("POST /v1/scores HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
		     "application/json\r\nContent-Length: 1x\r\n\r\n"),
		CASE("POST /v1/scores HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
		     "application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "zz\r\n"),
		CASE("POST /v1/scores HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
		     "application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "ffffffffffffffff\r\nx"),
		CASE("GET /healthz HTTP/1.1\r\nno colon\r\n\r\n"),
#undef CASE
	};
	struct scene *s = *state;
	struct buf got = BUF_INIT;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct timeval timeout = {.tv_usec = 100000};
		int fd = raw_connect(s);

		/*
		 * Some of these may become something yet, so there may be neither an answer nor an
		 * end.
		 */
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
		raw_send(fd, cases[i].bytes, cases[i].len);
		raw_read(fd, NULL, &got);
		/*
		 * Odd escapes may still be a good query; what is no HTTP gets 4xx, 505 or nothing.
		 */
		if (got.len && strncmp(got.data, "HTTP/1.1 4", 10) != 0 &&
		    strncmp(got.data, "HTTP/1.1 200", 12) != 0 &&
		    strncmp(got.data, "HTTP/1.1 505", 12) != 0)
			fail_msg("case %zu: %.40s", i, got.data);
		close(fd);
		assert_alive(s);
	}
	buf_fini(&got);
}

/* Headers and request lines beyond the connection's memory. */
static void test_long_headers(void **state)
{
	static const char *const starts[] = {"GET /", "GET /healthz?",
					     "GET /healthz HTTP/1.1\r\nX: "};
	struct scene *s = *state;
	struct buf got = BUF_INIT;
	char *filler = mem_alloc(MIB);

	memset(filler, 'x', MIB);
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		int fd = raw_connect(s);

		raw_say(fd, starts[i]);
		raw_send(fd, filler, MIB);
		raw_read(fd, NULL, &got);
		if (got.len)
			assert_memory_equal(got.data, "HTTP/1.1 4", 10);
		close(fd);
		assert_alive(s);
	}
	free(filler);
	buf_fini(&got);
}

/* --- life ------------------------------------------------------------------------------------- */

static void test_stop_with_clients(void **state)
{
	static const char *const said[] = {
		"", "GET /watch",
		("POST /watcher HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
		 "application/json\r\nContent-Length: 9\r\n\r\nhal"),
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /watcher HTTP/1.1\r\nHost: localhost\r\n\r\n"};
	enum { KINDS = 5, CLIENTS = 4 * KINDS };
	struct scene *s = *state;
	struct buf got = BUF_INIT;
	int fds[CLIENTS];

	publish_large_view(s);
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = raw_connect(s);
		assert_true(raw_say(fds[i], said[i % KINDS]));
	}
	assert_alive(s);
	http_stop(s->server);
	s->server = NULL;
	for (int i = 0; i < CLIENTS; i++) {
		assert_false(raw_read(fds[i], NULL, &got));
		close(fds[i]);
	}
	buf_fini(&got);
}

static void test_address_in_use(void **state)
{
	struct scene *s = *state;
	struct http_server *second = NULL;
	struct error error;

	assert_int_equal(http_plain_start(&second, http_address(s->server), &s->ctx, &error),
			 -EADDRINUSE);
	assert_null(second);
	assert_non_null(strstr(error.text, http_address(s->server)));
	assert_non_null(strstr(error.text, "choose another port"));
	assert_alive(s);
}

static void test_bad_addresses(void **state)
{
	static const struct {
		const char *listen;
		int rc;
	} cases[] = {
		{"", -EINVAL},
		{"2020", -EINVAL},
		{"127.0.0.1", -EINVAL},
		{"127.0.0.1:", -EINVAL},
		{"127.0.0.1:x", -EINVAL},
		{"127.0.0.1:-1", -EINVAL},
		{"127.0.0.1:123456", -EINVAL},
		{"127.0.0.1:65536", -EINVAL},
		{"::1:2020", -EINVAL},
		{"[::1:2020", -EINVAL},
		{"[:2020", -EINVAL},
		{"300.1.1.1:2020", -EINVAL},
		{"http://127.0.0.1:2020", -EINVAL},
		{"192.0.2.1:0", -EADDRNOTAVAIL},
	};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http_server *server = NULL;
		struct error error = {""};
		int rc = http_plain_start(&server, cases[i].listen, &s->ctx, &error);

		if (rc != cases[i].rc)
			fail_msg("%s: %d %s", cases[i].listen, rc, error.text);
		assert_null(server);
		assert_non_null(strstr(error.text, "cannot listen on "));
		assert_non_null(strstr(error.text, cases[i].listen));
	}
}

static void test_good_addresses(void **state)
{
	static const struct {
		const char *listen;
		const char *start;
	} cases[] = {
		{"127.0.0.1:0", "127.0.0.1:"}, {"localhost:0", ""},	  {":0", "["},
		{"[::1]:0", "[::1]:"},	       {"0.0.0.0:0", "0.0.0.0:"},
	};
	struct scene *s = *state;
	int six = socket(AF_INET6, SOCK_STREAM, 0);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene other = *s;
		struct error error = {""};
		const struct http_config config = {.listen = cases[i].listen,
						   .ctx = &s->ctx,
						   .insecure_open = true};
		int rc = http_start_with(&other.server, &config, &error);

		if (rc && six < 0 && strchr(cases[i].listen, '['))
			continue;
		if (rc)
			fail_msg("%s", error.text);
		if (six >= 0)
			assert_memory_equal(http_address(other.server), cases[i].start,
					    strlen(cases[i].start));
		assert_null(strstr(http_address(other.server), ":0\0"));
		if (cases[i].start[0] != '[' || strcmp(cases[i].start, "[") == 0) {
			int fd = raw_connect(&other);

			close(fd);
		}
		assert_alive(&other);
		http_stop(other.server);
	}
	if (six >= 0)
		close(six);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_answers),
		TEST(test_headers),
		TEST(test_head),
		TEST(test_etag),
		TEST(test_keep_alive),
		TEST(test_leaving),
		TEST(test_many_parameters),
		TEST(test_many_at_once),
		TEST(test_body_limit),
		TEST(test_absurd_lengths),
		TEST(test_slow_clients),
		TEST(test_slow_readers),
		TEST(test_unread_answers_are_bounded),
		TEST(test_malformed_requests),
		TEST(test_long_headers),
		TEST(test_stop_with_clients),
		TEST(test_address_in_use),
		TEST(test_bad_addresses),
		TEST(test_good_addresses),
	};
	int failed;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
