/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/config.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void addresses_are_taken_apart(void **state)
{
	static const struct {
		const char *text;
		bool tls, loopback;
		const char *host, *port, *path;
	} rows[] = {
		{"https://h", true, false, "h", "443", ""},
		{"http://h/", false, false, "h", "80", ""},
		{"HTTPS://h:6443/a/b//", true, false, "h", "6443", "/a/b"},
		{"https://[fd00::1]:6443", true, false, "[fd00::1]", "6443", ""},
		{"https://[::1]", true, true, "[::1]", "443", ""},
		{"http://127.9.9.9:1", false, true, "127.9.9.9", "1", ""},
		{"http://localhost:1", false, true, "localhost", "1", ""},
		{"http://127.0.0.1.example", false, false, "127.0.0.1.example", "80", ""},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct kube_url u = {0};

		assert_int_equal(kube_url_parse(&u, rows[i].text, NULL), 0);
		assert_int_equal(u.tls, rows[i].tls);
		assert_int_equal(u.loopback, rows[i].loopback);
		assert_string_equal(u.host, rows[i].host);
		assert_string_equal(u.port, rows[i].port);
		assert_string_equal(u.path, rows[i].path);
		kube_url_fini(&u);
	}
}

static void bad_addresses_are_refused(void **state)
{
	static const char *const rows[] = {
		"",
		"h",
		"h:6443",
		"https://",
		"https://h:99999",
		"https://:1",
		"file:///etc/x",
		"https://u@h",
		"https://h#f",
		"https://a b",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct kube_url u = {0};
		struct error error = {""};

		if (kube_url_parse(&u, rows[i], &error) != -EINVAL)
			fail_msg("taken: %s", rows[i]);
		assert_true(error.text[0]);
		assert_null(u.host);
	}
}

static void assert_host(const char *name, const char *host)
{
	char *got = kube_url_host(name);

	if (host)
		assert_string_equal(got, host);
	else
		assert_null(got);
	free(got);
}

static void hosts_are_bracketed_where_needed(void **state)
{
	(void)state;
	assert_host("kubernetes.default", "kubernetes.default");
	assert_host("10.96.0.1", "10.96.0.1");
	assert_host("fd00::1", "[fd00::1]");
	assert_host("[fd00::1]", "[fd00::1]");
	assert_host("", NULL);
	assert_host("a/b", NULL);
	assert_host("a:1", NULL);
	assert_host("u@h", NULL);
	assert_host("h?q", NULL);
}

static void proxies_are_checked(void **state)
{
	struct error error;

	(void)state;
	assert_int_equal(kube_url_check_proxy("http://u:secret@p:3128", &error), 0);
	assert_int_equal(kube_url_check_proxy("https://p", &error), 0);
	assert_int_equal(kube_url_check_proxy("socks5://p", &error), 0);
	assert_int_equal(kube_url_check_proxy("socks5h://p", &error), 0);
	assert_int_equal(kube_url_check_proxy("ftp://u:secret@p", &error), -EINVAL);
	assert_string_equal(error.text, "only http, https and socks5 are possible");
	assert_int_equal(kube_url_check_proxy("u:secret@p", &error), -EINVAL);
	assert_non_null(strstr(error.text, "not an address such as http://proxy.example:3128"));
	assert_null(strstr(error.text, "secret"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_taken_apart),
		cmocka_unit_test(bad_addresses_are_refused),
		cmocka_unit_test(hosts_are_bracketed_where_needed),
		cmocka_unit_test(proxies_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
