/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/keyring.h"
#include "shared/mem.h"

/* BLAKE2b-256 of bytes 0..31 begins so. */
static const uint8_t id_of_counting[KEY_ID_LEN] = {0xcb, 0x2f, 0x51, 0x60, 0xfc, 0x1f, 0x7e, 0x05};

struct scene {
	char dir[64];
	struct keyring ring;
	struct reason why;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	snprintf(s->dir, sizeof(s->dir), "/tmp/evenkeel-test-XXXXXX");
	*state = s;
	return mkdtemp(s->dir) ? 0 : -1;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	DIR *dir = opendir(s->dir);
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		if (unlinkat(dirfd(dir), entry->d_name, 0))
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
	rmdir(s->dir);
	free(s);
	return 0;
}

/* A file of len bytes first, first + 1, .. */
static void put_key(struct scene *s, const char *name, size_t len, uint8_t first, mode_t mode)
{
	char *path = mem_printf("%s/%s", s->dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (size_t i = 0; i < len; i++)
		fputc((int)(uint8_t)(first + i), f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
	free(path);
}

static int load(struct scene *s, const char *name)
{
	char *path = mem_printf("%s%s%s", s->dir, name[0] ? "/" : "", name);
	int rc;

	s->why.text[0] = '\0';
	rc = keyring_load(&s->ring, path, &s->why);
	free(path);
	return rc;
}

static void test_one_file(void **state)
{
	struct scene *s = *state;

	put_key(s, "key", 32, 0, 0400);
	assert_int_equal(load(s, "key"), 0);
	assert_int_equal(s->ring.count, 1);
	assert_memory_equal(s->ring.keys[0].id, id_of_counting, KEY_ID_LEN);
	assert_int_equal(s->ring.keys[0].secret[31], 31);
	assert_ptr_equal(keyring_sealing(&s->ring), &s->ring.keys[0]);
	assert_ptr_equal(keyring_find(&s->ring, id_of_counting), &s->ring.keys[0]);
	keyring_wipe(&s->ring);
	assert_int_equal(s->ring.keys[0].secret[31], 0);
	assert_null(keyring_sealing(&s->ring));
	assert_null(keyring_find(&s->ring, id_of_counting));
}

/* As a Secret is mounted: visible links, a hidden one to a hidden directory. */
static void test_directory(void **state)
{
	struct scene *s = *state;
	char *link = mem_printf("%s/b", s->dir);

	put_key(s, "c", 32, 3, 0440);
	put_key(s, "a", 32, 1, 0400);
	put_key(s, ".hidden", 7, 9, 0644);
	put_key(s, ".data", 32, 2, 0400);
	assert_int_equal(symlink(".data", link), 0);
	free(link);
	assert_int_equal(load(s, ""), 0);
	assert_int_equal(s->ring.count, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(s->ring.keys[i].secret[0], i + 1);
	assert_int_equal(keyring_sealing(&s->ring)->secret[0], 3);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(keyring_find(&s->ring, s->ring.keys[i].id), &s->ring.keys[i]);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *name;
		size_t len;
		mode_t mode;
		int rc;
		const char *reason;
	} cases[] = {
		{"short", 31, 0400, -EINVAL, "31 bytes"},
		{"newline", 33, 0400, -EINVAL, "33 bytes"},
		{"empty", 0, 0400, -EINVAL, "0 bytes"},
		{"read", 32, 0404, -EPERM, "chmod"},
		{"write", 32, 0602, -EPERM, "chmod"},
	};
	struct scene *s = *state;
	char *pipe = mem_printf("%s/pipe", s->dir), *dir = mem_printf("%s/dir", s->dir);

	s->ring.count = 5;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put_key(s, cases[i].name, cases[i].len, 0, cases[i].mode);
		assert_int_equal(load(s, cases[i].name), cases[i].rc);
		assert_non_null(strstr(s->why.text, cases[i].name));
		assert_non_null(strstr(s->why.text, cases[i].reason));
	}
	assert_int_equal(load(s, "missing"), -ENOENT);
	assert_non_null(strstr(s->why.text, "missing"));
	assert_int_equal(load(s, "short/file"), -EACCES);
	assert_int_equal(mkfifo(pipe, 0400), 0);
	assert_int_equal(load(s, "pipe"), -EINVAL);
	assert_non_null(strstr(s->why.text, "not a regular file"));
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(load(s, "dir"), -EINVAL);
	assert_non_null(strstr(s->why.text, "0 keys"));
	/* One bad file spoils a directory, and is named. */
	assert_int_equal(load(s, ""), -EINVAL);
	assert_non_null(strstr(s->why.text, "dir"));
	assert_int_equal(s->ring.count, 5);
	free(pipe);
	free(dir);
}

static void test_too_many(void **state)
{
	struct scene *s = *state;
	char name[8];

	for (int i = 0; i < KEYRING_MAX; i++) {
		snprintf(name, sizeof(name), "%02d", i);
		put_key(s, name, 32, (uint8_t)i, 0400);
	}
	assert_int_equal(load(s, ""), 0);
	assert_int_equal(s->ring.count, KEYRING_MAX);
	put_key(s, "99", 32, 99, 0400);
	assert_int_equal(load(s, ""), -EINVAL);
	assert_non_null(strstr(s->why.text, "17 keys"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
