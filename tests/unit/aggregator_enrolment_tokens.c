/* SPDX-License-Identifier: Apache-2.0 */
/* Files of join tokens: which node each token enrols, and lines that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "aggregator/state/enrolment_tokens.h"

static const uint8_t key[ENROLMENT_TOKEN_KEY_LEN] = {1};

static const char file[] = "# of the cluster\n"
			   "\n"
			   "0123456789abcdef node-1 web-*\n"
			   "  fedcba9876543210\tdb-[0-9]  \r\n"
			   "0123456789abcdef node-2";

static void test_who_enrols(void **state)
{
	static const struct {
		const char *token, *node;
		enum enrolment_token_verdict want;
	} cases[] = {
		{"0123456789abcdef", "node-1", TOKEN_ENROLS},
		{"0123456789abcdef", "web-17", TOKEN_ENROLS},
		{"0123456789abcdef", "node-2", TOKEN_ENROLS},
		{"0123456789abcdef", "node-10", TOKEN_OF_OTHER_NODES},
		{"0123456789abcdef", "db-1", TOKEN_OF_OTHER_NODES},
		{"fedcba9876543210", "db-1", TOKEN_ENROLS},
		{"fedcba9876543210", "db-10", TOKEN_OF_OTHER_NODES},
		{"fedcba987654321", "db-1", TOKEN_UNKNOWN},
		{"", "node-1", TOKEN_UNKNOWN},
		{"# of the cluster", "node-1", TOKEN_UNKNOWN},
	};
	struct enrolment_tokens *t;
	struct error error;

	(void)state;
	assert_true(sodium_init() >= 0);
	assert_int_equal(enrolment_tokens_parse(&t, key, file, strlen(file), &error), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			enrolment_tokens_check(t,
					       (struct span){(const uint8_t *)cases[i].token,
							     strlen(cases[i].token)},
					       cases[i].node),
			cases[i].want);
	enrolment_tokens_free(t);
}

static void test_refused_lines(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"0123456789abcde node-1\n", "line 1: the token is shorter than 16"},
		{"#\n0123456789abcdef\n", "line 2: no node names follow the token"},
		{"0123456789abcdef   \t\n", "line 1: no node names follow the token"},
	};
	struct enrolment_tokens *t = NULL;
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(enrolment_tokens_parse(&t, key, cases[i].text,
							strlen(cases[i].text), &error),
				 -EINVAL);
		assert_null(t);
		assert_non_null(strstr(error.text, cases[i].want));
		assert_null(strstr(error.text, "0123456789"));
	}
}

static void test_json_web_tokens(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		bool want;
	} cases[] = {
#define TEXT(text) text, sizeof(text) - 1
		{TEXT("eyJ-_0.aGk.c2ln"), true},
		{TEXT("a.b.c"), true},
		{TEXT(""), false},
		{TEXT("\0"), false},
		{TEXT(".."), false},
		{TEXT("a.b."), false},
		{TEXT(".b.c"), false},
		{TEXT("a..c"), false},
		{TEXT("a.b"), false},
		{TEXT("a.b.c.d"), false},
		{TEXT("a.b.c\0"), false},
		{TEXT("a.b.c=="), false},
		{TEXT("a.b.\xc3\xa4"), false},
		{TEXT("a.b c.d"), false},
#undef TEXT
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct span token = {(const uint8_t *)cases[i].text, cases[i].len};

		if (enrolment_token_is_jwt(token) != cases[i].want)
			fail_msg("case %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_enrols),
		cmocka_unit_test(test_refused_lines),
		cmocka_unit_test(test_json_web_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
