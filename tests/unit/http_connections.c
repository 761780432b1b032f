/* SPDX-License-Identifier: Apache-2.0 */
/* Places for connections: for all, for each client, and until when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "aggregator/edge/http/connections.h"

enum { MOST = 4, OF_CLIENT = 2 };

static struct sockaddr_storage address_of(const char *text)
{
	struct sockaddr_storage at = {0};

	if (inet_pton(AF_INET, text, &((struct sockaddr_in *)&at)->sin_addr) == 1)
		at.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&at)->sin6_addr) == 1)
		at.ss_family = AF_INET6;
	assert_true(at.ss_family != 0);
	return at;
}

/* One more of that client, or NULL. */
static struct connection *come(struct connections *cs, const char *from)
{
	struct sockaddr_storage at = address_of(from);
	struct connection *c = connections_reserve(cs);

	if (!c || connections_admit(cs, c, (const struct sockaddr *)&at))
		return c;
	connections_end(cs, c);
	return NULL;
}

/* A place is taken before anything is known of who will have it, and given back at any stage. */
static void test_places(void **state)
{
	struct connections *cs = connections_new(MOST, MOST);
	struct connection *c[MOST];

	(void)state;
	assert_int_equal(connections_most(cs), MOST);
	for (int i = 0; i < MOST; i++)
		assert_non_null(c[i] = connections_reserve(cs));
	assert_null(connections_reserve(cs));
	assert_int_equal(connections_count(cs), MOST);
	connections_end(cs, c[0]);
	assert_non_null(c[0] = come(cs, "192.0.2.1"));
	assert_null(come(cs, "192.0.2.1"));
	connections_begin(cs, c[1], -1, INT64_MAX);
	for (int i = 0; i < MOST; i++)
		connections_end(cs, c[i]);
	assert_int_equal(connections_count(cs), 0);
	connections_free(cs);
}

static void test_places_of_clients(void **state)
{
	struct connections *cs = connections_new(MOST, OF_CLIENT);
	struct connection *c[MOST];

	(void)state;
	assert_non_null(c[0] = come(cs, "192.0.2.1"));
	/* The same client, as a socket of both families tells of it. */
	assert_non_null(c[1] = come(cs, "::ffff:192.0.2.1"));
	assert_null(come(cs, "192.0.2.1"));
	assert_int_equal(connections_count(cs), OF_CLIENT);
	assert_non_null(c[2] = come(cs, "2001:db8::1"));
	connections_end(cs, c[0]);
	assert_non_null(c[0] = come(cs, "192.0.2.1"));
	assert_null(come(cs, "192.0.2.1"));
	assert_non_null(c[3] = come(cs, "2001:db8::2"));
	for (int i = 0; i < MOST; i++)
		connections_end(cs, c[i]);
	assert_int_equal(connections_count(cs), 0);
	connections_free(cs);
}

/* Who is overdue is cut, once; who has not begun is nobody yet. */
static void test_cut(void **state)
{
	struct connections *cs = connections_new(MOST, OF_CLIENT);
	struct connection *c[] = {come(cs, "192.0.2.1"), come(cs, "192.0.2.2"),
				  connections_reserve(cs)};
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	connections_begin(cs, c[0], ends[0], 10);
	connections_begin(cs, c[1], -1, 20);
	assert_int_equal(connections_cut(cs, 9), 0);
	assert_int_equal(connections_cut(cs, 10), 1);
	assert_int_equal(read(ends[1], &byte, 1), 0);
	assert_int_equal(connections_cut(cs, 11), 0);
	connection_expect(c[1], INT64_MAX);
	assert_int_equal(connections_cut(cs, 30), 0);
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		connections_end(cs, c[i]);
	connections_free(cs);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_places_of_clients),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
