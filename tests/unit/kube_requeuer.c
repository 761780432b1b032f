/* SPDX-License-Identifier: Apache-2.0 */
/* What the requeuer sends; against a real API server it is tested in tests/kube. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aggregator/api/waiting_pods.h"
#include "aggregator/edge/kube/requeuer.h"
#include "tests/view_fixture.h"

static void test_names_of_claims(void **state)
{
	static const struct {
		const char *claim;
		size_t namespace;
	} cases[] = {
		{"evenkeel/nudge", 8}, {"a/b-1.c", 1}, {"", 0},	   {"evenkeel", 0}, {"/nudge", 0},
		{"evenkeel/", 0},      {"a/b/c", 0},   {"a/B", 0}, {"a/../b", 0},   {"a/b?x", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(requeuer_claim_namespace(cases[i].claim), cases[i].namespace);
}

static void check(struct buf *path, const char *want_path, struct buf *body, const char *want)
{
	buf_add_str(path, "");
	buf_add_str(body, "");
	assert_string_equal(path->data, want_path);
	assert_string_equal(body->data, want);
	buf_fini(path);
	buf_fini(body);
}

static void test_annotation(void **state)
{
	struct buf path = BUF_INIT, body = BUF_INIT;

	(void)state;
	requeuer_request("evenkeel/nudge", VIEW_FIXTURE_NOW_NS + 250000000, &path, &body);
	check(&path,
	      "/api/v1/namespaces/evenkeel/persistentvolumeclaims/nudge?fieldManager=evenkeel",
	      &body,
	      "{\"metadata\":{\"annotations\":{\"evenkeel.io/nudged\":"
	      "\"2026-01-31T12:00:00.250Z\"}}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_claims),
		cmocka_unit_test(test_annotation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
