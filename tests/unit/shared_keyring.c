/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/keyring.h"
#include "shared/mem.h"
#include "tests/keys.h"
#include "tests/process.h"

/* BLAKE2b-256 of bytes 0..31 begins so. */
static const uint8_t id_of_counting[KEY_ID_LEN] = {0xcb, 0x2f, 0x51, 0x60, 0xfc, 0x1f, 0x7e, 0x05};

struct scene {
	char *dir;
	struct keyring ring;
	struct error why;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	s->dir = folder_make();
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	folder_remove(s->dir);
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

static int load_path(struct scene *s, const char *path)
{
	s->why.text[0] = '\0';
	return keys_load(&s->ring, path, &s->why);
}

static int load(struct scene *s, const char *name)
{
	char *path = mem_printf("%s%s%s", s->dir, name[0] ? "/" : "", name);
	int rc;

	rc = load_path(s, path);
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

/* A volume without contents, say; anybody could seal with it. */
static void test_key_of_zeros(void **state)
{
	struct scene *s = *state;
	char *path = mem_printf("%s/zeros", s->dir);

	for (int last = 0; last < 2; last++) {
		FILE *f = fopen(path, "w");

		for (int i = 1; i < KEY_LEN; i++)
			fputc(0, f);
		fputc(last, f);
		fclose(f);
		assert_int_equal(chmod(path, 0400), 0);
		assert_int_equal(load(s, "zeros"), last ? 0 : -EINVAL);
		assert_true(last || strstr(s->why.text, "zeros: all zero bytes"));
		assert_int_equal(unlink(path), 0);
	}
	free(path);
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

static struct keyring_place *open_place(struct scene *s, const char *name)
{
	char *path = mem_printf("%s%s%s", s->dir, name[0] ? "/" : "", name);
	struct keyring_place *place;

	assert_int_equal(keyring_open(&place, path, &s->why), 0);
	free(path);
	return place;
}

static void assert_first_byte(struct scene *s, const struct keyring_place *place, uint8_t first)
{
	assert_int_equal(keyring_read(&s->ring, place, &s->why), 0);
	assert_int_equal(s->ring.count, 1);
	assert_int_equal(s->ring.keys[0].secret[0], first);
}

static void exchange(struct scene *s, const char *from, const char *to)
{
	char *old = mem_printf("%s/%s", s->dir, from), *new = mem_printf("%s/%s", s->dir, to);

	assert_int_equal(rename(old, new), 0);
	free(old);
	free(new);
}

static void put_link(struct scene *s, const char *name, const char *target)
{
	char *path = mem_printf("%s/%s", s->dir, name);

	assert_int_equal(symlink(target, path), 0);
	free(path);
}

static void put_folder(struct scene *s, const char *name)
{
	char *path = mem_printf("%s/%s", s->dir, name);

	assert_int_equal(mkdir(path, 0700), 0);
	free(path);
}

/* However it comes: written over, another file in its place, none, and one again. */
static void test_file_is_exchanged(void **state)
{
	struct scene *s = *state;
	struct keyring_place *place;

	put_key(s, "key", 32, 1, 0600);
	place = open_place(s, "key");
	assert_first_byte(s, place, 1);
	put_key(s, "key", 32, 2, 0600);
	assert_first_byte(s, place, 2);
	put_key(s, "new", 32, 3, 0600);
	exchange(s, "new", "key");
	assert_first_byte(s, place, 3);
	exchange(s, "key", "old");
	assert_int_equal(keyring_read(&s->ring, place, &s->why), -ENOENT);
	assert_non_null(strstr(s->why.text, s->dir));
	assert_int_equal(s->ring.keys[0].secret[0], 3);
	put_key(s, "key", 32, 4, 0600);
	assert_first_byte(s, place, 4);
	keyring_close(place);
}

/*
 * As the volume of a Secret does it: key -> ..data/key, ..data -> ..1, and then another ..data is
 * renamed into place. Found through the volume and through the file in it.
 */
static void test_secret_is_exchanged(void **state)
{
	static const char *const names[] = {"volume", "volume/key"};
	struct scene *s = *state;
	struct keyring_place *places[2];

	put_folder(s, "volume");
	put_folder(s, "volume/..1");
	put_folder(s, "volume/..2");
	put_key(s, "volume/..1/key", 32, 1, 0400);
	put_key(s, "volume/..2/key", 32, 2, 0400);
	put_link(s, "volume/..data", "..1");
	put_link(s, "volume/key", "..data/key");
	for (int i = 0; i < 2; i++) {
		places[i] = open_place(s, names[i]);
		assert_first_byte(s, places[i], 1);
	}
	put_link(s, "volume/..tmp", "..2");
	exchange(s, "volume/..tmp", "volume/..data");
	for (int i = 0; i < 2; i++) {
		assert_first_byte(s, places[i], 2);
		keyring_close(places[i]);
	}
}

/* A folder may be exchanged as a whole. */
static void test_folder_is_exchanged(void **state)
{
	struct scene *s = *state;
	struct keyring_place *place;

	put_folder(s, "keys");
	put_folder(s, "fresh");
	put_key(s, "keys/a", 32, 1, 0400);
	put_key(s, "fresh/b", 32, 2, 0400);
	place = open_place(s, "keys");
	assert_first_byte(s, place, 1);
	exchange(s, "keys", "old");
	exchange(s, "fresh", "keys");
	assert_first_byte(s, place, 2);
	keyring_close(place);
}

static void test_forms_of_paths(void **state)
{
	static const struct {
		const char *folder; /* to be in; below the scene's */
		const char *path;
		int rc;
	} cases[] = {
		{"", "keys/a.", 0},
		{"", "./keys/a.", 0},
		{"", "keys", 0},
		{"", "keys/", 0},
		{"", "keys//", 0},
		{"", "keys/.", 0},
		{"keys", ".", 0},
		{"keys", "./", 0},
		{"keys", "a.", 0},
		{"keys", "../keys", 0},
		{"keys/..empty", "..", 0},
		{"keys/..empty", "../", 0},
		{"keys/..empty", "../a.", 0},
		{"", "", -ENOENT},
		{"", "nokeys/a.", -ENOENT},
		{"", "keys/b", -ENOENT},
		{"", "keys/a./b", -EACCES},
		{"", "keys/a./", 0},
		{"", "/", -EINVAL},
	};
	struct scene *s = *state;
	int home = open(".", O_PATH | O_CLOEXEC);

	put_folder(s, "keys");
	put_folder(s, "keys/..empty");
	put_key(s, "keys/a.", 32, 7, 0400);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *folder = mem_printf("%s/%s", s->dir, cases[i].folder);
		int rc;

		assert_int_equal(chdir(folder), 0);
		rc = load_path(s, cases[i].path);
		assert_int_equal(fchdir(home), 0);
		free(folder);
		if (rc != cases[i].rc)
			fail_msg("\"%s\": %d, %s", cases[i].path, rc, s->why.text);
		if (!rc)
			assert_int_equal(s->ring.keys[0].secret[0], 7);
	}
	close(home);
}

enum { NOBODY = 65534 };

/* As nobody: 0 when all is as it must be. */
static int read_as_nobody(struct scene *s, const struct keyring_place *own,
			  const struct keyring_place *foreign)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	if (load(s, "closed/keys/own") != -EACCES)
		return 2;
	if (load(s, "unlisted/own") || s->ring.keys[0].secret[0] != 3)
		return 3;
	if (keyring_read(&s->ring, own, &s->why) || s->ring.keys[0].secret[0] != 1)
		return 4;
	if (keyring_read(&s->ring, foreign, &s->why) != -EACCES || s->ring.keys[0].secret[0] != 1)
		return 5;
	return strstr(s->why.text, "belongs to user 0 (mode 0400)") &&
			       strstr(s->why.text, "runs as user 65534")
		       ? 0
		       : 6;
}

/*
 * Below a folder only root may walk into, and in folders that may be walked through but not listed.
 */
static void put_guarded_keys(struct scene *s)
{
	static const char *const folders[] = {"", "/closed/keys", "/unlisted"};
	static const char *const own[] = {"/closed/keys/own", "/unlisted/own"};

	put_folder(s, "closed");
	put_folder(s, "closed/keys");
	put_folder(s, "unlisted");
	put_key(s, "closed/keys/own", 32, 1, 0400);
	put_key(s, "closed/keys/foreign", 32, 2, 0400);
	put_key(s, "unlisted/own", 32, 3, 0400);
	for (int i = 0; i < 3; i++) {
		char *path = mem_printf("%s%s", s->dir, folders[i]);

		assert_int_equal(chmod(path, 0711), 0);
		free(path);
	}
	for (int i = 0; i < 2; i++) {
		char *path = mem_printf("%s%s", s->dir, own[i]);

		assert_int_equal(chown(path, NOBODY, NOBODY), 0);
		free(path);
	}
}

/* What was opened as root is read again without root's rights, as far as it may be read itself. */
static void test_rights_are_gone(void **state)
{
	struct scene *s = *state;
	struct keyring_place *own, *foreign;
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		print_message("SKIP: only root can become another user\n");
		skip();
	}
	put_guarded_keys(s);
	own = open_place(s, "closed/keys/own");
	foreign = open_place(s, "closed/keys/foreign");
	pid = fork();
	if (pid == 0)
		_exit(read_as_nobody(s, own, foreign));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	keyring_close(own);
	keyring_close(foreign);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_key_of_zeros, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_is_exchanged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_secret_is_exchanged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_folder_is_exchanged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forms_of_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rights_are_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
