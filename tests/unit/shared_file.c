/* SPDX-License-Identifier: Apache-2.0 */
/* Files that people name: read whole, refused by name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shared/file.h"

static void write_file(char path[32], const char *text, size_t len)
{
	int fd;

	snprintf(path, 32, "/tmp/evenkeel-file-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

static void test_bytes_are_appended_and_terminated(void **state)
{
	static const char text[] = "a\0b\n";
	struct buf got = BUF_INIT;
	struct error error;
	char path[32];

	(void)state;
	write_file(path, text, 4);
	buf_add_str(&got, "x");
	assert_int_equal(file_read(path, 4, &got, &error), 0);
	assert_int_equal(got.len, 5);
	assert_memory_equal(got.data, "xa\0b\n", 6);
	unlink(path);
	buf_fini(&got);
}

static void test_an_empty_file_is_empty_text(void **state)
{
	struct buf got = BUF_INIT;
	struct error error;

	(void)state;
	assert_int_equal(file_read("/dev/null", 0, &got, &error), 0);
	assert_string_equal(got.data, "");
	buf_fini(&got);
}

static void test_refusals_name_the_file(void **state)
{
	struct buf got = BUF_INIT;
	struct error error;
	char path[32];

	(void)state;
	assert_int_equal(file_read("/nowhere/f.json", 9, &got, &error), -EINVAL);
	assert_string_equal(error.text, "/nowhere/f.json: No such file or directory");
	assert_int_equal(file_read("", 9, &got, &error), -EINVAL);
	assert_string_equal(error.text, "the name of a file to read is empty");
	assert_int_equal(file_read("/tmp", 9, &got, &error), -EINVAL);
	assert_string_equal(error.text, "/tmp: Is a directory");
	write_file(path, "12345", 5);
	assert_int_equal(file_read(path, 4, &got, &error), -EINVAL);
	assert_non_null(strstr(error.text, path));
	assert_non_null(strstr(error.text, "is larger than"));
	unlink(path);
	buf_fini(&got);
}

static void test_standard_input_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(file_name("-"), "standard input");
	assert_string_equal(file_name("a-"), "a-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_are_appended_and_terminated),
		cmocka_unit_test(test_an_empty_file_is_empty_text),
		cmocka_unit_test(test_refusals_name_the_file),
		cmocka_unit_test(test_standard_input_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
