/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregator's own authority: what it issues, as openssl judges it, when it is due, and what
 * becomes of an authority that ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aggregator/edge/kube/authority.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/process.h"

#define DAY_S	(24 * 3600LL)
#define SERVICE "evenkeel-aggregator"
#define OPENSSL "/usr/bin/openssl"

static char *folder;

static void put(const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", folder, name);
	struct error error;

	if (file_replace(path, 0600, text, strlen(text), &error))
		fail_msg("%s", error.text);
	free(path);
}

/* Runs openssl in the folder; its exit status, with what it prints in *out. */
static int openssl(const char *words, struct buf *out)
{
	char *line = mem_printf("cd %s && exec " OPENSSL " %s 2>&1", folder, words);
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", line, NULL};
	int status;

	buf_clear(out);
	status = process_run(argv, out, NULL);
	buf_add_str(out, "");
	free(line);
	return status;
}

static void issue(struct authority_set *set, int64_t at_s)
{
	struct error error;

	if (authority_issue(set, SERVICE, "evenkeel", at_s, &error) || authority_check(set, &error))
		fail_msg("%s", error.text);
	put("ca.crt", set->ca_certificate);
	put("ca.key", set->ca_key);
	put("tls.crt", set->certificate);
}

static void test_certificate(void **state)
{
	static const char *const names[] = {
		"-verify_hostname " SERVICE,
		"-verify_hostname " SERVICE ".evenkeel",
		"-verify_hostname " SERVICE ".evenkeel.svc",
		"-verify_hostname " SERVICE ".evenkeel.svc.cluster.local",
		"-verify_hostname localhost",
		"-verify_ip 127.0.0.1",
		"-verify_ip ::1",
	};
	struct authority_set set = {0};
	struct buf out = BUF_INIT;

	(void)state;
	issue(&set, time(NULL));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *words = mem_printf(
			"verify -x509_strict -CAfile ca.crt -purpose sslserver %s tls.crt",
			names[i]);

		if (openssl(words, &out))
			fail_msg("%s: %s", names[i], out.data);
		free(words);
	}
	assert_int_not_equal(
		openssl("verify -CAfile ca.crt -verify_hostname other.example tls.crt", &out), 0);
	assert_int_not_equal(openssl("verify -CAfile ca.crt -purpose sslclient tls.crt", &out), 0);
	buf_fini(&out);
	authority_fini(&set);
}

/* By the command of packaging/docs/install-kubernetes.md. */
static void test_client_certificate(void **state)
{
	struct authority_set set = {0};
	struct buf out = BUF_INIT;

	(void)state;
	issue(&set, time(NULL));
	if (openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 "
		    "-CA ca.crt -CAkey ca.key -subj /CN=kube-scheduler "
		    "-addext basicConstraints=critical,CA:FALSE -addext "
		    "extendedKeyUsage=clientAuth "
		    "-keyout client.key -out client.crt",
		    &out) ||
	    openssl("verify -x509_strict -CAfile ca.crt -purpose sslclient client.crt", &out))
		fail_msg("%s", out.data);
	buf_fini(&out);
	authority_fini(&set);
}

static void test_due(void **state)
{
	int64_t now_s = time(NULL);
	struct authority_set set = {0};
	char *authority, *certificate;

	(void)state;
	issue(&set, now_s);
	assert_false(authority_is_due(&set, now_s));
	assert_false(authority_is_due(&set, now_s + 334 * DAY_S));
	assert_true(authority_is_due(&set, now_s + 336 * DAY_S));
	/* The authority is kept. */
	authority = mem_strdup(set.ca_certificate);
	certificate = mem_strdup(set.certificate);
	issue(&set, now_s + 336 * DAY_S);
	assert_string_equal(set.ca_certificate, authority);
	assert_string_not_equal(set.certificate, certificate);
	assert_false(authority_is_due(&set, now_s + 336 * DAY_S));
	/* Another's certificate is never due. */
	free(set.ca_key);
	set.ca_key = NULL;
	assert_false(authority_is_due(&set, now_s + 10000 * DAY_S));
	free(authority);
	free(certificate);
	authority_fini(&set);
}

/* Certificates of the former authority, such as clients', stay valid. */
static void test_authority_in_its_last_year(void **state)
{
	int64_t then_s = time(NULL) - 9 * 365 * DAY_S - DAY_S;
	struct authority_set set = {0};
	struct buf out = BUF_INIT;
	char *former;

	(void)state;
	issue(&set, then_s);
	former = mem_strdup(set.ca_certificate);
	assert_int_equal(
		openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
			"-days 30 -CA ca.crt -CAkey ca.key -subj /CN=client -keyout "
			"client.key -out client.crt",
			&out),
		0);
	issue(&set, time(NULL));
	assert_string_not_equal(set.ca_certificate, former);
	assert_non_null(strstr(set.ca_certificate, former));
	if (openssl("verify -CAfile ca.crt tls.crt client.crt", &out))
		fail_msg("%s", out.data);
	free(former);
	buf_fini(&out);
	authority_fini(&set);
}

static void set_text(char **text, const char *to)
{
	free(*text);
	*text = to ? mem_strdup(to) : NULL;
}

static void test_garbled(void **state)
{
	struct authority_set set = {0}, other = {0};
	struct error error;
	char *key;

	(void)state;
	issue(&other, time(NULL));
	issue(&set, time(NULL));
	key = mem_strdup(set.key);
	set_text(&set.key, other.key);
	assert_int_not_equal(authority_check(&set, &error), 0);
	set_text(&set.key, NULL);
	assert_int_not_equal(authority_check(&set, &error), 0);
	set_text(&set.key, key);
	assert_int_equal(authority_check(&set, &error), 0);
	set_text(&set.ca_certificate, "none");
	assert_int_not_equal(authority_check(&set, &error), 0);
	assert_string_equal(error.text, "ca.crt has no certificate");
	assert_int_not_equal(authority_issue(&set, SERVICE, "evenkeel", time(NULL), &error), 0);
	set_text(&set.ca_certificate, NULL);
	assert_int_not_equal(authority_check(&set, &error), 0);
	set_text(&set.certificate, "none");
	assert_int_not_equal(authority_check(&set, &error), 0);
	free(key);
	authority_fini(&set);
	authority_fini(&other);
}

/* Neither another authority's key nor a certificate that is no authority issues anything. */
static void test_foreign_key(void **state)
{
	struct authority_set set = {0}, other = {0};
	struct error error;
	char *certificate;

	(void)state;
	issue(&other, time(NULL));
	issue(&set, time(NULL));
	certificate = mem_strdup(set.certificate);
	set_text(&set.ca_key, other.ca_key);
	/* The certificate itself can be used. */
	assert_int_equal(authority_check(&set, &error), 0);
	assert_int_not_equal(authority_issue(&set, SERVICE, "evenkeel", time(NULL), &error), 0);
	assert_string_equal(error.text, "ca.key does not sign for ca.crt: The certificate and the "
					"given key do not match.");
	assert_string_equal(set.certificate, certificate);
	set_text(&set.ca_certificate, set.certificate);
	set_text(&set.ca_key, set.key);
	assert_int_not_equal(authority_issue(&set, SERVICE, "evenkeel", time(NULL), &error), 0);
	assert_string_equal(set.certificate, certificate);
	free(certificate);
	authority_fini(&set);
	authority_fini(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_certificate),
		cmocka_unit_test(test_client_certificate),
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_authority_in_its_last_year),
		cmocka_unit_test(test_garbled),
		cmocka_unit_test(test_foreign_key),
	};
	int failed;

	folder = folder_make();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	folder_remove(folder);
	return failed;
}
