/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that are slow, large, or too many: they are cut or refused, and others are served
 * meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/access_scene.h"
#include "tests/process.h"
#include "tests/view_fixture.h"

enum { TIMEOUT_S = 30, MIB = 1 << 20 };

#define SHORT_NS (NS_PER_SEC)

static int setup(void **state)
{
	*state = access_scene_new();
	return 0;
}

static int teardown(void **state)
{
	access_scene_free(*state);
	return 0;
}

static void start(struct access_scene *s, bool tls, struct http_timeouts timeouts)
{
	struct http_config config;

	access_scene_configure(s, &config);
	if (!tls)
		config.tls = (struct tls_files){0};
	config.timeouts = timeouts;
	access_scene_start(s, &config);
}

static int raw_connect(const struct access_scene *s)
{
	const char *address = http_address(s->http);
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10)),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	struct timeval timeouts = {.tv_sec = TIMEOUT_S};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeouts, sizeof(timeouts));
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static bool is_served(void *ctx)
{
	return access_scene_status(ctx, &(struct access_client){.path = "/v1/nodes",
								.token = ACCESS_TOKEN}) == 200;
}

/* On a busy machine a good client may be too slow as well, once. */
static void assert_served(struct access_scene *s)
{
	assert_true(await(is_served, s, TIMEOUT_S));
}

static bool is_counted(void *ctx)
{
	const struct access_scene *s = ctx;

	return counter_get(&s->counters.access.refused[ACCESS_REFUSAL_SLOW]) > 0;
}

/* --- slow ------------------------------------------------------------------------------------- */

struct trickle {
	int fd;
	const char *text; /* said first, and then its last byte for ever */
};

/* Never silent for long, and never done. True: it was cut. */
static bool say_one_more(void *ctx)
{
	struct trickle *t = ctx;
	struct pollfd end = {.fd = t->fd, .events = POLLIN};
	char byte;

	if (send(t->fd, t->text + strlen(t->text) - 1, 1, MSG_NOSIGNAL) != 1)
		return true;
	return poll(&end, 1, 0) == 1 && recv(t->fd, &byte, 1, 0) <= 0;
}

static void expect_cut(struct access_scene *s, const char *text)
{
	struct trickle t = {raw_connect(s), text};

	assert_int_equal(send(t.fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
	assert_served(s);
	assert_true(await(say_one_more, &t, TIMEOUT_S));
	close(t.fd);
	assert_true(await(is_counted, s, TIMEOUT_S));
}

static void test_slow_headers_are_cut(void **state)
{
	start(*state, false, (struct http_timeouts){.headers_ns = SHORT_NS});
	expect_cut(*state, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: x");
}

static void test_slow_handshakes_are_cut(void **state)
{
	start(*state, true, (struct http_timeouts){.headers_ns = SHORT_NS});
	/* A record of 16129 bytes begins. */
	expect_cut(*state, "\x16\x03\x01\x3f\x01\x01");
}

static void test_slow_bodies_are_cut(void **state)
{
	start(*state, false, (struct http_timeouts){.body_ns = SHORT_NS});
	expect_cut(*state, "POST /extender/filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
			   "application/json\r\nAuthorization: Bearer " ACCESS_TOKEN
			   "\r\nContent-Length: 1000000\r\n\r\n{");
}

/* More than the sockets' buffers hold. */
static void publish_large_view(struct access_scene *s)
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

/* Asks, and reads nothing until it is cut. */
static void expect_reader_cut(struct access_scene *s, const char *path,
			      struct http_timeouts timeouts)
{
	char *request = mem_printf(
		"GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " ACCESS_TOKEN
		"\r\n\r\n",
		path);
	char chunk[4096];
	size_t got = 0;
	ssize_t len;
	int fd;

	publish_large_view(s);
	start(s, false, timeouts);
	fd = raw_connect(s);
	assert_true(send(fd, request, strlen(request), MSG_NOSIGNAL) > 0);
	free(request);
	assert_true(await(is_counted, s, TIMEOUT_S));
	while ((len = recv(fd, chunk, sizeof(chunk), 0)) > 0)
		got += (size_t)len;
	assert_in_range(got, 1, 8 * MIB);
	close(fd);
	assert_served(s);
}

static void test_slow_readers_are_cut(void **state)
{
	expect_reader_cut(*state, "/watcher", (struct http_timeouts){.answer_ns = SHORT_NS});
}

/* There are few streams at a time: nobody may keep one by reading a byte now and then. */
static void test_slow_readers_of_streams_are_cut(void **state)
{
	expect_reader_cut(*state, "/v1/snapshot", (struct http_timeouts){.stream_ns = SHORT_NS});
}

/* Who asks now and then is not slow: the time is of a step, not of a connection. */
static void test_quick_clients_stay(void **state)
{
	struct access_scene *s = *state;
	struct access_client client = {.path = "/healthz", .curl = curl_easy_init()};
	int64_t until_ns;

	start(s, false,
	      (struct http_timeouts){.headers_ns = 3 * NS_PER_SEC,
				     .body_ns = 3 * NS_PER_SEC,
				     .answer_ns = 3 * NS_PER_SEC});
	assert_int_equal(access_scene_status(s, &client), 200);
	until_ns = clock_mono_ns() + 4 * NS_PER_SEC;
	while (clock_mono_ns() < until_ns) {
		long connections = 0;

		assert_int_equal(access_scene_status(s, &client), 200);
		curl_easy_getinfo(client.curl, CURLINFO_NUM_CONNECTS, &connections);
		assert_int_equal(connections, 0);
	}
	assert_false(is_counted(s));
	curl_easy_cleanup(client.curl);
}

/* --- large ------------------------------------------------------------------------------------ */

static void expect_refusal(struct access_scene *s, const char *headers, const char *status)
{
	char *request = mem_printf("POST /v1/scores HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
				   "application/json\r\n%s\r\n",
				   headers);
	char got[13] = "";
	int fd = raw_connect(s);

	assert_true(send(fd, request, strlen(request), MSG_NOSIGNAL) > 0);
	assert_int_equal(recv(fd, got, 12, MSG_WAITALL), 12);
	assert_string_equal(got, status);
	close(fd);
	free(request);
}

/*
 * Whom nobody knows is refused before a byte of the body is read, however large it is said to be.
 */
static void test_large_requests(void **state)
{
	struct access_scene *s = *state;
	char *header = mem_alloc(64 << 10);

	start(s, false, (struct http_timeouts){0});
	expect_refusal(s, "Content-Length: 1099511627776\r\n", "HTTP/1.1 401");
	expect_refusal(s, "Expect: 100-continue\r\nContent-Length: 100\r\n", "HTTP/1.1 401");
	expect_refusal(s, "Transfer-Encoding: chunked\r\n", "HTTP/1.1 401");
	expect_refusal(s,
		       "Authorization: Bearer " ACCESS_TOKEN
		       "\r\nContent-Length: 1099511627776\r\n",
		       "HTTP/1.1 413");
	snprintf(header, 64 << 10, "Authorization: Bearer %0*d\r\n", 60 << 10, 1);
	expect_refusal(s, header, "HTTP/1.1 431");
	assert_int_equal(counter_get(&s->counters.access.refused[ACCESS_REFUSAL_TOO_LARGE]), 1);
	assert_served(s);
	free(header);
}

/* --- unclear ---------------------------------------------------------------------------------- */

/* Everything up to the end of the connection, which must be the server's doing. */
static void read_to_end(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t got;

	while ((got = recv(fd, text + len, size - 1 - len, 0)) > 0)
		len += (size_t)got;
	assert_int_equal(got, 0);
	text[len] = '\0';
}

/*
 * What a proxy before us may read otherwise is refused, and nothing behind it is taken for a
 * request.
 */
static void test_unclear_requests(void **state)
{
	static const char *const headers[] = {
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
		"Content-Length: 5\r\nContent-Length: 0\r\n",
		"Content-Length: 5\r\nContent-Length: 5\r\n",
		"Content-Length: 5\r\nTransfer-Encoding : chunked\r\n",
		"Content-Length: 5\r\nTransfer-Encoding:\r\n chunked\r\n",
		"Content-Length:\r\n 5\r\n",
		"Transfer-Encoding: identity\r\n",
		"Transfer-Encoding: gzip, chunked\r\n",
		"Content-Length: 5\r\nHost: other\r\n",
		("Content-Length: 5\r\nAuthorization: Bearer " ACCESS_OTHER_TOKEN "\r\n"),
		"Content-Length: abc\r\n",
		"Content-Length: -5\r\n",
		"Content-Length: +5\r\n",
		"Content-Length: 0x5\r\n",
		"Content-Length: 5, 5\r\n",
		"Content-Length:\r\n",
		"Content-Length: 18446744073709551616\r\n",
		"Expect: 100-continue\r\nContent-Length: 5;\r\n",
	};
	struct access_scene *s = *state;
	char text[4096];

	start(s, false, (struct http_timeouts){0});
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		char *request =
			mem_printf("POST /v1/fit HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
				   "application/json\r\nAuthorization: "
				   "Bearer " ACCESS_TOKEN "\r\n%s\r\n0\r\n\r\n"
				   "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
				   headers[i]);
		int fd = raw_connect(s);

		assert_true(send(fd, request, strlen(request), MSG_NOSIGNAL) > 0);
		read_to_end(fd, text, sizeof(text));
		/* One answer, which is ours. */
		if (strncmp(text, "HTTP/1.1 400", 12) != 0 || strstr(text + 1, "HTTP/1.1") ||
		    !strstr(text, "\"code\":\"badRequest\""))
			fail_msg("%s: %s", headers[i], text);
		close(fd);
		free(request);
	}
	assert_served(s);
}

/* --- many ------------------------------------------------------------------------------------- */

static void test_rates_are_of_clients(void **state)
{
	const struct access_client greedy = {.path = "/v1/nodes", .token = ACCESS_TOKEN},
				   modest = {.path = "/v1/nodes",
					     .token = ACCESS_TOKEN,
					     .from = "127.0.0.2"};
	struct access_scene *s = *state;
	struct http_config config;
	struct access_reply r;
	int served = 0;

	access_scene_configure(s, &config);
	config.tls = (struct tls_files){0};
	config.auth.requests_per_second = 0.01;
	access_scene_start(s, &config);
	while (access_scene_status(s, &greedy) == 200)
		served++;
	assert_int_equal(served, 10);
	access_scene_ask(s, &greedy, &r);
	assert_int_equal(r.status, 429);
	assert_non_null(strstr(r.headers.data, "Retry-After: "));
	assert_in_range(strtol(strstr(r.headers.data, "Retry-After: ") + 13, NULL, 10), 50, 100);
	assert_non_null(strstr(r.body.data, "\"code\":\"tooManyRequests\""));
	access_reply_fini(&r);
	/* Neither others nor health are kept from it; and a stranger is not told from a friend. */
	assert_int_equal(access_scene_status(s, &modest), 200);
	assert_int_equal(access_scene_status(s, &(struct access_client){.path = "/healthz"}), 200);
	assert_int_equal(access_scene_status(s, &(struct access_client){.path = "/v1/nodes"}), 429);
	assert_int_equal(counter_get(&s->counters.access.refused[ACCESS_REFUSAL_RATE]), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_slow_headers_are_cut),
		TEST(test_slow_handshakes_are_cut),
		TEST(test_slow_bodies_are_cut),
		TEST(test_slow_readers_are_cut),
		TEST(test_slow_readers_of_streams_are_cut),
		TEST(test_unclear_requests),
		TEST(test_quick_clients_stay),
		TEST(test_large_requests),
		TEST(test_rates_are_of_clients),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
