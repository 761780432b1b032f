/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The script that makes the Secrets of an installation: what it makes, that it makes it once, and a
 * key that is exchanged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/enrolment.h"
#include "shared/keyring.h"
#include "shared/mem.h"
#include "tests/keys.h"
#include "tests/manifests.h"
#include "tests/process.h"
#include "tests/stack.h"

static cJSON *make_secrets(const char *folder, const char *option)
{
	char *argv[] = {(char *)"packaging/kubernetes/secrets", (char *)(option ? option : folder),
			(char *)(option ? folder : NULL), NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *objects;

	if (process_run(argv, &out, &err))
		fail_msg("%s", err.data ? err.data : "no word");
	objects = manifests_parse("secrets", out.data);
	buf_fini(&out);
	buf_fini(&err);
	return objects;
}

static void write_key(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite("0123456789abcdef0123456789abcdef", 1, KEY_LEN, file), KEY_LEN);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

/* The script's certificates are what they should be, as openssl judges. */
static void verify(const char *folder, const char *name, const char *purpose)
{
	char *authority = mem_printf("%s/ca.crt", folder),
	     *file = mem_printf("%s/%s.crt", folder, name);
	char *argv[] = {(char *)"/usr/bin/openssl",
			(char *)"verify",
			(char *)"-CAfile",
			authority,
			(char *)"-purpose",
			(char *)purpose,
			file,
			NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;

	if (process_run(argv, &out, &err))
		fail_msg("%s: %s", name, err.data ? err.data : "no word");
	buf_fini(&out);
	buf_fini(&err);
	free(authority);
	free(file);
}

/* The public key is that of the private one. */
static void check_enrolment(const cJSON *made, const char *folder)
{
	const cJSON *map = manifests_find(made, "ConfigMap", "evenkeel-enrolment");
	char *path = mem_printf("%s/enrolment", folder);
	uint8_t public_key[ENROLMENT_PUBLIC_LEN];
	char text[ENROLMENT_PUBLIC_TEXT_LEN + 1];
	struct keyring keys = {0};
	struct error error;

	assert_non_null(manifests_find(made, "Secret", "evenkeel-enrolment"));
	assert_int_equal(keys_load(&keys, path, &error), 0);
	enrolment_public_key(keyring_sealing(&keys), public_key);
	enrolment_public_write(public_key, text);
	assert_string_equal(
		cJSON_GetObjectItem(json_at(map, "data"), "aggregator.pub")->valuestring, text);
	free(path);
}

static void test_secrets(void **state)
{
	static const char *const files[] = {"tls.crt", "tls.key", "ca.crt"};
	char *base = folder_make(), *folder = mem_printf("%s/made", base);
	cJSON *made = make_secrets(folder, NULL), *again = make_secrets(folder, NULL);
	const cJSON *tls = json_at(manifests_find(made, "Secret", "evenkeel-tls"), "data"),
		    *keys = json_at(manifests_find(made, "Secret", "evenkeel-key"), "data");

	(void)state;
	assert_true(cJSON_Compare(made, again, true));
	for (size_t i = 0; i < 3; i++)
		assert_true(cJSON_IsString(cJSON_GetObjectItemCaseSensitive(tls, files[i])));
	assert_int_equal(cJSON_GetArraySize(keys), 1);
	assert_int_equal(strlen(keys->child->valuestring), 44); /* 32 bytes */
	check_enrolment(made, folder);
	verify(folder, "tls", "sslserver");
	verify(folder, "client", "sslclient");
	cJSON_Delete(made);
	cJSON_Delete(again);
	free(folder);
	folder_remove(base);
}

/* The old key stays beside the new one, which seals: it is the last by name. */
static void test_new_key(void **state)
{
	char *folder = folder_make(), *keys = mem_printf("%s/key", folder),
	     *old = mem_printf("%s/20250101-000000", keys);
	struct keyring before = {0}, after = {0};
	struct error error = {""};
	cJSON *made;

	(void)state;
	assert_int_equal(mkdir(keys, 0700), 0);
	write_key(old);
	assert_int_equal(keys_load(&before, keys, &error), 0);
	made = make_secrets(folder, "--new-key");
	assert_int_equal(keys_load(&after, keys, &error), 0);
	assert_int_equal(after.count, 2);
	assert_non_null(keyring_find(&after, keyring_sealing(&before)->id));
	assert_null(keyring_find(&before, keyring_sealing(&after)->id));
	assert_int_equal(cJSON_GetArraySize(
				 json_at(manifests_find(made, "Secret", "evenkeel-key"), "data")),
			 2);
	cJSON_Delete(made);
	free(keys);
	free(old);
	folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_new_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
