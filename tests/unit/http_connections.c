/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on the connections of a client, and timeouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "aggregator/edge/http/connections.h"

enum { OF_CLIENT = 2 };

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
static struct connection *begin(struct connections *cs, const char *from, int fd, int64_t due_ns)
{
	struct sockaddr_storage at = address_of(from);

	return connections_begin(cs, (const struct sockaddr *)&at, fd, due_ns);
}

static struct connection *come(struct connections *cs, const char *from)
{
	return begin(cs, from, -1, INT64_MAX);
}

static void test_limit_of_clients(void **state)
{
	struct connections *cs = connections_new(OF_CLIENT);
	struct connection *c[4];

	(void)state;
	assert_non_null(c[0] = come(cs, "192.0.2.1"));
	/* The same client, as a socket of both families reports it. */
	assert_non_null(c[1] = come(cs, "::ffff:192.0.2.1"));
	assert_null(come(cs, "192.0.2.1"));
	assert_int_equal(connections_count(cs), OF_CLIENT);
	assert_non_null(c[2] = come(cs, "2001:db8::1"));
	connections_end(cs, c[0]);
	assert_non_null(c[0] = come(cs, "192.0.2.1"));
	assert_null(come(cs, "192.0.2.1"));
	assert_non_null(c[3] = come(cs, "2001:db8::2"));
	assert_null(come(cs, "2001:db8::3"));
	for (size_t i = 0; i < 4; i++)
		connections_end(cs, c[i]);
	assert_int_equal(connections_count(cs), 0);
	connections_free(cs);
}

/* An overdue connection is shut down once. */
static void test_cut(void **state)
{
	struct connections *cs = connections_new(OF_CLIENT);
	struct connection *first, *second;
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	first = begin(cs, "192.0.2.1", ends[0], 10);
	second = begin(cs, "192.0.2.2", -1, 20);
	assert_int_equal(connections_cut(cs, 9), 0);
	assert_int_equal(connections_cut(cs, 10), 1);
	assert_int_equal(read(ends[1], &byte, 1), 0);
	assert_int_equal(connections_cut(cs, 11), 0);
	connection_expect(second, INT64_MAX);
	assert_int_equal(connections_cut(cs, 30), 0);
	connections_end(cs, first);
	connections_end(cs, second);
	connections_free(cs);
	close(ends[0]);
	close(ends[1]);
}

/* The handshakes of a client: one that ends or is done makes room for another, one too many cuts the oldest. */
static void test_handshakes(void **state)
{
	enum { MOST = HANDSHAKES_OF_CLIENT };
	struct connections *cs = connections_new(MOST + 4);
	struct connection *c[MOST + 2], *other = come(cs, "192.0.2.2");
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	for (int i = 0; i < MOST + 2; i++)
		c[i] = begin(cs, "192.0.2.1", i == 2 ? ends[0] : -1, INT64_MAX);
	for (int i = 0; i < MOST; i++)
		assert_false(connections_shake(cs, c[i]));
	connections_end(cs, c[0]);
	assert_false(connections_shake(cs, c[MOST]));
	connections_shaken(cs, c[1]);
	assert_false(connections_shake(cs, c[MOST + 1]));
	assert_false(connections_shake(cs, other));
	connections_shaken(cs, c[MOST]);
	assert_false(connections_shake(cs, c[1]));
	assert_true(connections_shake(cs, c[MOST]));
	assert_int_equal(read(ends[1], &byte, 1), 0);
	for (int i = 1; i < MOST + 2; i++)
		connections_end(cs, c[i]);
	connections_end(cs, other);
	assert_int_equal(connections_count(cs), 0);
	connections_free(cs);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit_of_clients),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_handshakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
