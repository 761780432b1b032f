/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance runner itself: it must fail on what is wrong, and on what it did not run. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/process.h"

#define RIGHT                                                                                      \
	"{\"path\": \"/kubepods/burstable/pod11111111-2222-3333-4444-555555555555\", \"expect\": " \
	"{\"level\": \"pod\", \"podUID\": \"11111111-2222-3333-4444-555555555555\", "              \
	"\"containerID\": null, \"qos\": \"burstable\", \"runtime\": null}}"
#define WRONG                                                                                      \
	"{\"path\": \"/kubepods/burstable/pod11111111-2222-3333-4444-555555555556\", \"expect\": " \
	"{\"level\": \"pod\", \"podUID\": \"11111111-2222-3333-4444-555555555556\", "              \
	"\"containerID\": null, \"qos\": \"guaranteed\", \"runtime\": null}}"

static int setup(void **state)
{
	*state = folder_make();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	folder_remove(*state);
	return 0;
}

/* Runs the file of this name and content, or, without content, the folder as it is. */
static int run(const char *folder, const char *name, const char *content, struct buf *out)
{
	char *file = mem_printf("%s/%s", folder, name);
	char *runner = mem_printf("%s/conformance", getenv("TB") ? getenv("TB") : "build/tests");
	char *argv[] = {runner, content ? file : (char *)folder, NULL};
	int status;

	if (content) {
		int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, content, strlen(content)), strlen(content));
		close(fd);
	}
	status = process_run(argv, out, NULL);
	free(runner);
	free(file);
	return status;
}

static void test_verdicts(void **state)
{
	static const struct {
		const char *name, *content;
		int status;
		const char *says; /* somewhere in the output */
		const char *last; /* the last line */
	} cases[] = {
		{"cgroup_paths.json", "{\"cases\": [" RIGHT "]}", 0, "",
		 "1 passed, 0 failed, 0 skipped\n"},
		{"cgroup_paths.json", "{\"cases\": [" RIGHT "," WRONG "]}", 1,
		 "/cgroup_paths.json: /kubepods/burstable/"
		 "pod11111111-2222-3333-4444-555555555556: ",
		 "1 passed, 1 failed, 0 skipped\n"},
		{"cgroup_paths.json", "{\"cases\": []}", 1, "", "0 passed, 0 failed, 0 skipped\n"},
		{"cgroup_paths.json", "{\"cases\": [", 1, "is not JSON",
		 "0 passed, 1 failed, 0 skipped\n"},
		{"cgroup_paths.json", "{\"cases\": [{\"path\": \"/\"}]}", 1, "FAIL",
		 "0 passed, 1 failed, 0 skipped\n"},
		{"load_watcher.json", "{\"cases\": [{\"kind\": \"divine\", \"name\": \"x\"}]}", 1,
		 "x: unknown kind of case", "0 passed, 1 failed, 0 skipped\n"},
		{"astrology.json", "{\"cases\": [" RIGHT "]}", 1, "nobody knows this schema",
		 "0 passed, 1 failed, 0 skipped\n"},
		{"anchors.json", "{\"cases\": [{\"name\": \"a\"}]}", 0, "SKIP",
		 "0 passed, 0 failed, 1 skipped\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = BUF_INIT;
		int status = run(*state, cases[i].name, cases[i].content, &out);

		if (status != cases[i].status || !strstr(out.data, cases[i].says))
			print_error("%s: %s", cases[i].content, out.data);
		assert_int_equal(status, cases[i].status);
		assert_non_null(strstr(out.data, cases[i].says));
		assert_true(out.len >= strlen(cases[i].last));
		assert_string_equal(out.data + out.len - strlen(cases[i].last), cases[i].last);
		buf_fini(&out);
	}
}

static void test_nothing_to_run(void **state)
{
	struct buf out = BUF_INIT;

	assert_int_equal(run(*state, "", NULL, &out), 1);
	assert_string_equal(out.data, "0 passed, 0 failed, 0 skipped\n");
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_verdicts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_to_run, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
