/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregator's own Secrets against an API server that answers as scripted; tests/kube/install has
 * a real one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/edge/kube/own_secrets.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/kube_scene.h"

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))
#define SECRET	  "/secrets/evenkeel-enrolment"
#define SECRETS	  "/secrets"
#define MAP	  "/configmaps/evenkeel-enrolment"
/* 32 bytes, and the public key of that private one. */
#define KEY	     "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
#define NEWER	     "YTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
#define PUBLIC	     "\"aggregator.pub\":\"BHJj6wHSfUp/man7mpqQO41B7D82/sFRH/cHwff7m14=\""
#define NEWER_PUBLIC "\"aggregator.pub\":\"qtJt0/GxWOyZdJtbmiGyq0HCA8iz6rZGl2i2Nt5Coxs=\""
#define BODY(data)   "{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{" data "}}"

enum { ANSWERS = 4 };

struct scenario {
	const char *name;
	struct tls_answer answers[ANSWERS]; /* the first that matches */
	int rc;
	const char *reason; /* a part of it; NULL: none */
	const char *method, *path; /* of the last request */
};

static const struct scenario scenarios[] = {
	{"a key that is there is kept, its public key is published",
	 {{SECRET, 200, BODY("\"1\":\"" KEY "\"")}, {MAP, 201, "{}"}},
	 0,
	 NULL,
	 "PATCH",
	 MAP},
	{"another aggregator's key counts: it is read after the conflict",
	 {{SECRET, 404, "{}"}, {SECRETS, 409, "{\"message\":\"exists\"}"}},
	 -ENOENT,
	 "answers 404",
	 "GET",
	 SECRET},
	{"no key", {{SECRET, 200, BODY("")}}, -EINVAL, "it has no key", "GET", SECRET},
	{"a short key",
	 {{SECRET, 200, BODY("\"1\":\"" KEY "\",\"2\":\"bm9uZQ==\"")}},
	 -EINVAL,
	 "ns/evenkeel-enrolment cannot be used; correct it, or delete it, and a new one is made: 2",
	 "GET",
	 SECRET},
	{"no base64", {{SECRET, 200, BODY("\"1\":\"*\"")}}, -EINVAL, "1 is no key", "GET", SECRET},
	{"no text", {{SECRET, 200, BODY("\"1\":[1]")}}, -EINVAL, "1 is no key", "GET", SECRET},
	{"a name that leads out of the folder",
	 {{SECRET, 200, BODY("\"../1\":\"" KEY "\"")}},
	 -EINVAL,
	 "../1 is no key",
	 "GET",
	 SECRET},
	{"a missing right",
	 {{SECRET, 403, "{\"message\":\"no role\"}"}},
	 -EACCES,
	 "a right is missing, see secrets.yaml",
	 "GET",
	 SECRET},
	{"no JSON", {{SECRET, 200, "none"}}, -EINVAL, "no object", "GET", SECRET},
};

static int open_with(struct kube_scene *s, struct own_secrets **o)
{
	char *folder = kube_scene_path(s, "enrolment");
	const struct own_secrets_config config = {.namespace = "ns", .enrolment = folder};
	int rc = own_secrets_open(o, &s->config, &config, &s->why);

	free(folder);
	return rc;
}

static void play(struct kube_scene *s, const struct scenario *scenario)
{
	char *path = kube_scene_path(s, "enrolment/1");
	struct own_secrets *o = NULL;

	print_message("          %s\n", scenario->name);
	tls_server_script(s->https, scenario->answers, ANSWERS);
	s->why = (struct error){""};
	assert_int_equal(open_with(s, &o), scenario->rc);
	if (scenario->reason)
		kube_scene_assert_says(s, scenario->reason);
	tls_request_fini(&s->seen);
	tls_server_seen(s->https, &s->seen);
	assert_string_equal(s->seen.method, scenario->method);
	assert_non_null(strstr(s->seen.path, scenario->path));
	/* What is wrong writes nothing. */
	assert_int_equal(access(path, R_OK) == 0, scenario->rc == 0);
	own_secrets_close(o);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	free(path);
}

static void test_scenarios(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, NULL, NULL);
	for (size_t i = 0; i < COUNT(scenarios); i++)
		play(s, &scenarios[i]);
}

/* Keys that the Secret has no more go, and the last one by name is published. */
static void test_exchanged_key(void **state)
{
	static const struct tls_answer two[ANSWERS] = {
		{SECRET, 200, BODY("\"2\":\"" NEWER "\",\"1\":\"" KEY "\"")},
		{MAP, 200, "{}"},
	};
	static const struct tls_answer one[ANSWERS] = {
		{SECRET, 200, BODY("\"2\":\"" NEWER "\"")},
		{MAP, 200, "{}"},
	};
	struct kube_scene *s = *state;
	struct own_secrets *o;
	char *key;

	kube_scene_serve(s, NULL, NULL);
	tls_server_script(s->https, two, ANSWERS);
	assert_int_equal(open_with(s, &o), 0);
	own_secrets_close(o);
	tls_server_seen(s->https, &s->seen);
	assert_string_equal(s->seen.method, "PATCH");
	assert_non_null(strstr(s->seen.body, NEWER_PUBLIC));
	key = kube_scene_read(s, "enrolment/1");
	assert_memory_equal(key, "12345678901234567890123456789012", 32);
	free(key);
	tls_server_script(s->https, one, ANSWERS);
	assert_int_equal(open_with(s, &o), 0);
	own_secrets_close(o);
	key = kube_scene_read(s, "enrolment/1");
	assert_string_equal(key, "");
	free(key);
	key = kube_scene_read(s, "enrolment/2");
	assert_memory_equal(key, "a2345678901234567890123456789012", 32);
	free(key);
}

/* A container that starts again while the API server is away goes on with its files. */
static void test_files_of_an_earlier_start(void **state)
{
	static const struct tls_answer there[ANSWERS] = {
		{SECRET, 200, BODY("\"1\":\"" KEY "\"")},
		{MAP, 200, "{}"},
	};
	static const struct tls_answer away[ANSWERS] = {{"/", 503, "{}"}};
	struct kube_scene *s = *state;
	struct own_secrets *o;
	char *key;

	kube_scene_serve(s, NULL, NULL);
	tls_server_script(s->https, there, ANSWERS);
	assert_int_equal(open_with(s, &o), 0);
	own_secrets_close(o);
	tls_server_seen(s->https, &s->seen);
	assert_non_null(strstr(s->seen.body, PUBLIC));
	tls_server_script(s->https, away, ANSWERS);
	assert_int_equal(open_with(s, &o), 0);
	own_secrets_close(o);
	key = kube_scene_read(s, "enrolment/1");
	assert_memory_equal(key, "12345678901234567890123456789012", 32);
	free(key);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kube_scene_setup, kube_scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_scenarios),
		TEST(test_exchanged_key),
		TEST(test_files_of_an_earlier_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
