/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "shared/endpoint.h"

/* 107 bytes of path are the most a socket address holds. */
#define PATH_50	 "/1234567890123456789012345678901234567890123456789"
#define PATH_107 PATH_50 PATH_50 "/123456"

static const struct {
	const char *url;
	int rc;
	enum endpoint_kind kind;
	const char *host;
	uint16_t port;
	const char *reason; /* part of it */
} parse_cases[] = {
	{"tcp://127.0.0.1:2021", 0, ENDPOINT_TCP, "127.0.0.1", 2021, NULL},
	{"tcp://aggregator.evenkeel.svc:1", 0, ENDPOINT_TCP, "aggregator.evenkeel.svc", 1, NULL},
	{"tcp://[fd00::1]:65535", 0, ENDPOINT_TCP, "fd00::1", 65535, NULL},
	{"tcp://*:2021", 0, ENDPOINT_TCP, "*", 2021, NULL},
	{"ipc:///run/evenkeel/ingest", 0, ENDPOINT_IPC, "", 0, NULL},
	{"ipc://" PATH_107, 0, ENDPOINT_IPC, "", 0, NULL},
	{"ipc://" PATH_107 "x", -EINVAL, 0, NULL, 0, "at most 107 bytes"},
	{"ipc://run/evenkeel", -EINVAL, 0, NULL, 0, "absolute path"},
	{"ipc:///", -EINVAL, 0, NULL, 0, "absolute path"},
	/* Port 0 would abort the process in nanomsg. */
	{"tcp://127.0.0.1:0", -EINVAL, 0, NULL, 0, "from 1 to 65535"},
	{"tcp://127.0.0.1:65536", -EINVAL, 0, NULL, 0, "from 1 to 65535"},
	{"tcp://127.0.0.1:-1", -EINVAL, 0, NULL, 0, "from 1 to 65535"},
	{"tcp://127.0.0.1:", -EINVAL, 0, NULL, 0, "from 1 to 65535"},
	{"tcp://127.0.0.1:000002021", -EINVAL, 0, NULL, 0, "from 1 to 65535"},
	{"tcp://127.0.0.1", -EINVAL, 0, NULL, 0, "tcp://HOST:PORT"},
	{"tcp://:2021", -EINVAL, 0, NULL, 0, "tcp://HOST:PORT"},
	{"tcp://fd00::1:2021", -EINVAL, 0, NULL, 0, "[ADDRESS]"},
	{"tcp://[127.0.0.1]:2021", -EINVAL, 0, NULL, 0, "[ADDRESS]"},
	{"tcp://[]:2021", -EINVAL, 0, NULL, 0, "[ADDRESS]"},
	{"tcp://eth0;127.0.0.1:2021", -EINVAL, 0, NULL, 0, "tcp://HOST:PORT"},
	{"tcp://a b:2021", -EINVAL, 0, NULL, 0, "tcp://HOST:PORT"},
	{"http://127.0.0.1:2021", -EINVAL, 0, NULL, 0, "expected tcp://"},
	{"inproc://a", -EINVAL, 0, NULL, 0, "expected tcp://"},
	{"", -EINVAL, 0, NULL, 0, "expected tcp://"},
	{"tcp://" PATH_50 PATH_50 PATH_50 ":1", -EINVAL, 0, NULL, 0, "at most 128 bytes"},
};

static void test_parse(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(parse_cases) / sizeof(parse_cases[0]); i++) {
		const char *url = parse_cases[i].url;
		struct endpoint e = {.port = 42};
		struct error error = {""};

		print_message("%s\n", url);
		assert_int_equal(endpoint_parse(&e, url, &error), parse_cases[i].rc);
		if (parse_cases[i].rc) {
			assert_non_null(strstr(error.text, parse_cases[i].reason));
			assert_int_equal(e.port, 42);
			continue;
		}
		assert_int_equal(e.kind, parse_cases[i].kind);
		assert_string_equal(e.url, url);
		assert_string_equal(e.host, parse_cases[i].host);
		assert_int_equal(e.port, parse_cases[i].port);
		assert_string_equal(e.path, e.kind == ENDPOINT_IPC ? url + 6 : "");
	}
}

static void test_ipv4_only(void **state)
{
	struct endpoint e;

	(void)state;
	assert_int_equal(endpoint_parse(&e, "tcp://127.0.0.1:1", NULL), 0);
	assert_true(endpoint_ipv4_only(&e));
	assert_int_equal(endpoint_parse(&e, "tcp://[::1]:1", NULL), 0);
	assert_false(endpoint_ipv4_only(&e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_ipv4_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
