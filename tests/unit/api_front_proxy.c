/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/front_proxy.h"
#include "shared/mem.h"

#define CA    "\"requestheader-client-ca-file\":\"PEM\""
#define USERS ",\"requestheader-username-headers\":\"[\\\"X-Remote-User\\\",\\\"X-Other-User\\\"]\""
#define REST                                                                                       \
	",\"requestheader-group-headers\":\"[\\\"X-Remote-Group\\\"]\","                           \
	"\"requestheader-uid-headers\":\"[\\\"X-Remote-Uid\\\"]\","                                \
	"\"requestheader-extra-headers-prefix\":\"[\\\"X-Remote-Extra-\\\"]\""

static struct front_proxy *read_map(const char *data)
{
	char text[1024];
	struct front_proxy *p;
	struct error why = {""};

	snprintf(text, sizeof(text), "{\"kind\":\"ConfigMap\",\"data\":{%s}}", data);
	if (front_proxy_read(&p, text, strlen(text), &why))
		fail_msg("%s", why.text);
	return p;
}

static void test_names(void **state)
{
	struct front_proxy *p =
		read_map(CA ",\"requestheader-allowed-names\":\"[\\\"a\\\",\\\"b\\\"]\"");

	(void)state;
	assert_string_equal(p->client_ca, "PEM");
	assert_true(front_proxy_allows(p, "a"));
	assert_true(front_proxy_allows(p, "b"));
	assert_false(front_proxy_allows(p, "A"));
	assert_false(front_proxy_allows(p, ""));
	front_proxy_free(p);
	/* An empty list, or none, allows every name. */
	p = read_map(CA ",\"requestheader-allowed-names\":\"[]\"");
	assert_true(front_proxy_allows(p, ""));
	front_proxy_free(p);
	p = read_map(CA);
	assert_true(front_proxy_allows(p, "c"));
	front_proxy_free(p);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text;
		int rc;
		const char *says;
	} cases[] = {
		{"", -EINVAL, "the answer is no ConfigMap"},
		{"[]", -EINVAL, "the answer is no ConfigMap"},
		{"{}", -ENOENT,
		 "the API server has no front proxy (--requestheader-client-ca-file)"},
		{"{\"data\":{\"requestheader-client-ca-file\":\"\"}}", -ENOENT,
		 "the API server has no front proxy (--requestheader-client-ca-file)"},
		{"{\"data\":{" CA ",\"requestheader-allowed-names\":\"a\"}}", -EINVAL,
		 "requestheader-allowed-names is not a JSON list of at most 64 names"},
		{"{\"data\":{" CA ",\"requestheader-group-headers\":\"[1]\"}}", -EINVAL,
		 "requestheader-group-headers is not a JSON list of at most 64 names"},
		{"{\"data\":{" CA ",\"requestheader-extra-headers-prefix\":\"[\\\"\\\"]\"}}",
		 -EINVAL,
		 "requestheader-extra-headers-prefix is not a JSON list of at most 64 names"},
	};
	char *large = mem_printf("{\"data\":{\"requestheader-client-ca-file\":\"%0262145d\"}}", 0);
	struct front_proxy *none = NULL;
	struct error error = {""};

	(void)state;
	assert_int_equal(front_proxy_read(&none, large, strlen(large), &error), -EINVAL);
	assert_string_equal(error.text, "requestheader-client-ca-file is larger than 262144 bytes");
	free(large);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct front_proxy *p = NULL;
		struct error why = {""};

		assert_int_equal(front_proxy_read(&p, cases[i].text, strlen(cases[i].text), &why),
				 cases[i].rc);
		assert_string_equal(why.text, cases[i].says);
		assert_null(p);
	}
}

static void test_users(void **state)
{
	static const struct {
		struct front_proxy_header headers[6];
		const char *user; /* NULL: none */
	} cases[] = {
		{{{"Host", "x"}}, NULL},
		{{{"X-Remote-User", ""}}, NULL},
		{{{"X-Remote-Group", "system:masters"}}, NULL},
		{{{"x-remote-user", "alice"}},
		 "{\"username\":\"alice\",\"groups\":[\"system:authenticated\"],\"extra\":{}}"},
		{{{"X-Other-User", "bob"}, {"X-Remote-User", "alice"}, {"X-Remote-User", "eve"}},
		 "{\"username\":\"alice\",\"groups\":[\"system:authenticated\"],\"extra\":{}}"},
		{{{"X-Remote-User", "a"},
		  {"X-Remote-Group", "g"},
		  {"X-REMOTE-GROUP", "h"},
		  {"X-Remote-Uid", "7"},
		  {"X-Remote-Extra-Scopes%2fRead", "1"},
		  {"X-Remote-Extra-scopes%2FREAD", "2"}},
		 "{\"username\":\"a\",\"uid\":\"7\",\"groups\":[\"g\",\"h\",\"system:"
		 "authenticated\"],\"extra\":{"
		 "\"scopes/read\":[\"1\",\"2\"]}}"},
		{{{"X-Remote-User", "system:anonymous"},
		  {"X-Remote-Group", "system:unauthenticated"}},
		 "{\"username\":\"system:anonymous\",\"groups\":[\"system:unauthenticated\"],"
		 "\"extra\":{}}"},
		{{{"X-Remote-User", "a"}, {"X-Remote-Group", "system:authenticated"}},
		 "{\"username\":\"a\",\"groups\":[\"system:authenticated\"],\"extra\":{}}"},
		{{{"X-Remote-User", "a"},
		  {"X-Remote-Extra-%00", "n"},
		  {"X-Remote-Extra-%", "p"},
		  {"X-Remote-Extra-A%4", "q"},
		  {"X-Remote-Extra-A%0a", "r"},
		  {"X-Remote-Extra-B%20", "s"}},
		 "{\"username\":\"a\",\"groups\":[\"system:authenticated\"],\"extra\":{\"%00\":["
		 "\"n\"],\"%\":[\"p\"],"
		 "\"a%4\":[\"q\"],\"a\\n\":[\"r\"],\"b \":[\"s\"]}}"},
		{{{"X-Remote-User", "a"}, {"X-Remote-Group", "system:unauthenticated"}},
		 "{\"username\":\"a\",\"groups\":[\"system:unauthenticated\"],\"extra\":{}}"},
	};
	struct front_proxy *p = read_map(CA USERS REST);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t count = 0;
		char *user;

		while (count < 6 && cases[i].headers[count].name)
			count++;
		user = front_proxy_user(p, cases[i].headers, count);
		if (!user != !cases[i].user || (user && strcmp(user, cases[i].user) != 0))
			fail_msg("case %zu: %s", i, user ? user : "none");
		free(user);
	}
	front_proxy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
