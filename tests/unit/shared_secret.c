/* SPDX-License-Identifier: Apache-2.0 */
/* Files that others must not read: read whole, refused by name and reason. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "shared/file.h"

static char folder[32], path[48];

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/evenkeel-secret-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/secret", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void write_file(const char *text, size_t len, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

static void expect_refusal(const char *of, size_t most, int rc, const char *says)
{
	struct secret s = {0};
	struct error error;

	assert_int_equal(secret_read(&s, of, most, true, &error), rc);
	assert_null(s.text);
	if (strncmp(error.text, of, strlen(of)) != 0 || !strstr(error.text, says))
		fail_msg("%s", error.text);
}

static void test_bytes_are_read_whole(void **state)
{
	static const mode_t modes[] = {0400, 0600, 0440, 0660};
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct secret s;

		write_file("a\0b\n", 4, modes[i]);
		assert_int_equal(secret_read(&s, path, 4, true, &error), 0);
		assert_int_equal(s.len, 4);
		assert_memory_equal(s.text, "a\0b\n", 5);
		secret_free(&s);
		assert_null(s.text);
		unlink(path);
	}
}

static void test_others_may_not_have_it(void **state)
{
	struct secret s;
	struct error error;

	(void)state;
	write_file("a", 1, 0604);
	expect_refusal(path, 9, -EPERM, "others may read or write it (mode 0604)");
	chmod(path, 0602);
	expect_refusal(path, 9, -EPERM, "others may read or write it (mode 0602)");
	assert_int_equal(secret_read(&s, path, 9, false, &error), 0);
	secret_free(&s);
}

static void test_what_is_no_such_file(void **state)
{
	(void)state;
	expect_refusal(path, 9, -ENOENT, "No such file");
	expect_refusal(folder, 9, -EINVAL, "not a regular file");
	write_file("0123456789", 10, 0600);
	expect_refusal(path, 9, -EINVAL, "larger than");
	unlink(path);
	/* Nobody writes into it: it is not waited for. */
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_refusal(path, 9, -EINVAL, "not a regular file");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bytes_are_read_whole),
		TEST(test_others_may_not_have_it),
		TEST(test_what_is_no_such_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
