/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/exec_credential.h"
#include "shared/mem.h"

#define V1 "client.authentication.k8s.io/v1"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int parse_answer(struct exec_credential *cred, const char *status, struct error *error)
{
	char *text = mem_printf("{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
				"\",\"status\":{%s}}",
				status);
	int rc = exec_credential_parse(cred, V1, text, strlen(text), error);

	free(text);
	return rc;
}

static void ends_of_credentials_are_read(void **state)
{
	static const struct {
		const char *time;
		int64_t unix_ms; /* -1: refused */
	} rows[] = {
		{"2026-01-31T12:00:00Z", 1769860800000},
		{"2026-01-31T12:00:00.999Z", 1769860800999},
		{"2026-01-31T14:00:00+02:00", 1769860800000},
		{"2026-01-31T06:30:00-05:30", 1769860800000},
		{"2026-01-31t12:00:00z", 1769860800000},
		{"1970-01-01T00:00:00Z", 0},
		{"", -1},
		{"2026-01-31", -1},
		{"2026-01-31T12:00:00", -1},
		{"2026-13-31T12:00:00Z", -1},
		{"2026-00-31T12:00:00Z", -1},
		{"2026-01-00T12:00:00Z", -1},
		{"2026-01-31T24:00:00Z", -1},
		{"2026-01-31T12:60:00Z", -1},
		{"2026-01-31T12:00:00+2", -1},
		{"2026-01-31T12:00:00ZZ", -1},
		{"9999-01-31T12:00:00Z", -1},
		{"1769860800", -1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *status =
			mem_printf("\"token\":\"t\",\"expirationTimestamp\":\"%s\"", rows[i].time);
		struct exec_credential cred = {0};
		struct error error = {""};
		int rc = parse_answer(&cred, status, &error);

		if (rc != (rows[i].unix_ms < 0 ? -EINVAL : 0))
			fail_msg("%s: %d", rows[i].time, rc);
		if (rc)
			assert_string_equal(error.text, "expirationTimestamp is not a time");
		else
			assert_int_equal(cred.expires_ns, rows[i].unix_ms * 1000000);
		exec_credential_fini(&cred);
		free(status);
	}
}

static void answers_are_read(void **state)
{
	struct exec_credential cred;
	struct error error;

	(void)state;
	assert_int_equal(parse_answer(&cred,
				      "\"token\":\"t\\n\",\"expirationTimestamp\":null,"
				      "\"clientCertificateData\":\"-----BEGIN C\","
				      "\"clientKeyData\":\"-----BEGIN K\",\"more\":[]",
				      &error),
			 0);
	assert_string_equal(cred.token, "t");
	assert_string_equal(cred.certificate, "-----BEGIN C");
	assert_string_equal(cred.key, "-----BEGIN K");
	assert_false(cred.expires);
	exec_credential_fini(&cred);
	assert_null(cred.token);
}

static void bad_answers_are_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "not a JSON object"},
		{"[]", "not a JSON object"},
		{"{\"kind\":\"ExecCredential\"", "not a JSON object"},
		{"{\"kind\":\"Pod\"}", "not an ExecCredential"},
		{"{\"kind\":\"ExecCredential\"}", "another apiVersion than " V1},
		{"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "beta1\"}",
		 "another apiVersion than " V1},
		{"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"}", "no status"},
		{"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":null}",
		 "no status"},
	};
	static const struct {
		const char *status, *says;
	} statuses[] = {
		{"", "neither a token nor a certificate"},
		{"\"token\":1", "neither a token nor a certificate"},
		{"\"token\":\"\\u0001\"", "byte 1 of the token is no printable ASCII"},
		{"\"clientKeyData\":\"-----BEGIN K\"",
		 "clientKeyData without clientCertificateData"},
		{"\"token\":\"t\",\"clientCertificateData\":\"-----BEGIN C\"",
		 "clientCertificateData without clientKeyData"},
		{"\"clientCertificateData\":\"C\",\"clientKeyData\":\"-----BEGIN K\"",
		 "clientCertificateData or clientKeyData is not PEM"},
		{"\"token\":\"t\",\"expirationTimestamp\":1769860800",
		 "expirationTimestamp is not a time"},
	};
	struct exec_credential cred = {0};
	struct error error;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(exec_credential_parse(&cred, V1, rows[i].text,
						       strlen(rows[i].text), &error),
				 -EINVAL);
		assert_string_equal(error.text, rows[i].says);
	}
	for (size_t i = 0; i < COUNT(statuses); i++) {
		assert_int_equal(parse_answer(&cred, statuses[i].status, &error), -EINVAL);
		assert_string_equal(error.text, statuses[i].says);
	}
	assert_null(cred.token);
}

static void a_plugin_is_told_of_the_cluster_when_asked(void **state)
{
	static char version[] = V1, server[] = "https://h", proxy[] = "http://p";
	struct kube_config c = {.exec_api_version = version, .server = server, .proxy_url = proxy};
	char *info = exec_credential_info(&c, "PEM");

	(void)state;
	assert_string_equal(info, "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\","
				  "\"spec\":{\"interactive\":false}}");
	free(info);
	c.exec_provide_cluster_info = true;
	info = exec_credential_info(&c, "PEM");
	assert_string_equal(info, "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\","
				  "\"spec\":{\"cluster\":{\"server\":\"https://h\","
				  "\"certificate-authority-data\":\"UEVN\","
				  "\"proxy-url\":\"http://p\"},\"interactive\":false}}");
	free(info);
	c.insecure_skip_tls_verify = true;
	info = exec_credential_info(&c, NULL);
	assert_non_null(strstr(info, "\"insecure-skip-tls-verify\":true"));
	assert_null(strstr(info, "certificate-authority-data"));
	free(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_of_credentials_are_read),
		cmocka_unit_test(answers_are_read),
		cmocka_unit_test(bad_answers_are_refused),
		cmocka_unit_test(a_plugin_is_told_of_the_cluster_when_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
