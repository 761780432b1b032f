/* SPDX-License-Identifier: Apache-2.0 */
/* The web page: what is served, compressed or not, and that it is small and names no other server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "aggregator/api/page.h"
#include "tests/api_fixture.h"

enum { PAGE_MOST = 70 << 10 };

static struct api_fixture f;

static void test_files(void **state)
{
	char target[128];
	size_t sum = 0;

	(void)state;
	for (const struct page_file *p = page_files; p->path; p++) {
		snprintf(target, sizeof(target), "/page/%s", p->path);
		f.accept_encoding = NULL;
		assert_int_equal(api_fixture_get(&f, target), 200);
		assert_int_equal(f.response.body.len, p->len);
		assert_false(f.response.gzip);
		f.accept_encoding = "gzip";
		assert_int_equal(api_fixture_get(&f, target), 200);
		assert_true(f.response.gzip);
		assert_memory_equal(f.response.body.data, "\x1f\x8b", 2);
		assert_string_equal(f.response.content_type, p->content_type);
		assert_non_null(strstr(f.response.policy, "default-src 'self'"));
		assert_true(f.response.etag != 0);
		sum += p->gzip_len;
	}
	assert_true(sum > 0 && sum <= PAGE_MOST);
}

static void test_root(void **state)
{
	(void)state;
	f.accept_encoding = NULL;
	assert_int_equal(api_fixture_get(&f, "/"), 200);
	assert_string_equal(f.response.content_type, "text/html; charset=utf-8");
	assert_non_null(strstr(f.response.body.data, "/page/main.js"));
	assert_int_equal(api_fixture_send(&f, "HEAD", "/", ""), 200);
	assert_int_equal(api_fixture_send(&f, "POST", "/", ""), 405);
	assert_int_equal(api_access_class("/"), API_ACCESS_PUBLIC);
	assert_int_equal(api_access_class("/page/main.js"), API_ACCESS_PUBLIC);
	assert_int_equal(api_access_class("/v1/fleet"), API_ACCESS_GUARDED);
	assert_int_equal(api_access_class("/v1/doctor"), API_ACCESS_GUARDED);
}

static void test_unknown(void **state)
{
	static const char *const targets[] = {"/page",	      "/page/",
					      "/page/x.js",   "/page/../main.js",
					      "/page/vendor", "/index.html"};

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		assert_int_equal(api_fixture_get(&f, targets[i]), 404);
		assert_null(f.response.policy);
	}
}

/* Scripts and styles stand in files, as the policy allows no others. */
static void test_needs_nothing_else(void **state)
{
	static const char *const forbidden[] = {"https://",	 "http://", "<script>",
						"<style",	 "eval(",   "innerHTML =",
						"document.write"};
	char target[128];

	(void)state;
	f.accept_encoding = NULL;
	for (const struct page_file *p = page_files; p->path; p++) {
		if (strncmp(p->path, "vendor/", 7) == 0 || strcmp(p->path, "icon.svg") == 0)
			continue;
		snprintf(target, sizeof(target), "/page/%s", p->path);
		assert_int_equal(api_fixture_get(&f, target), 200);
		for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
			assert_null(strstr(f.response.body.data, forbidden[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_FIXTURE_TEST(test_files, &f),
		API_FIXTURE_TEST(test_root, &f),
		API_FIXTURE_TEST(test_unknown, &f),
		API_FIXTURE_TEST(test_needs_nothing_else, &f),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
