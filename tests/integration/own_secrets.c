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

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregator/edge/kube/authority.h"
#include "aggregator/edge/kube/own_secrets.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/kube_scene.h"
#include "tests/process.h"

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))
#define SECRET	  "/secrets/evenkeel-enrolment"
#define SECRETS	  "/secrets"
#define MAP	  "/configmaps/evenkeel-enrolment"
/* 32 bytes, and the public key of that private one. */
#define KEY	     "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
#define NEWER	     "YTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
#define PUBLIC	     "\"aggregator.pub\":\"BHJj6wHSfUp/man7mpqQO41B7D82/sFRH/cHwff7m14=\""
#define NEWER_PUBLIC "\"aggregator.pub\":\"qtJt0/GxWOyZdJtbmiGyq0HCA8iz6rZGl2i2Nt5Coxs=\""
#define FOUR(n)                                                                                    \
	"\"" #n "a\":\"" KEY "\",\"" #n "b\":\"" KEY "\",\"" #n "c\":\"" KEY "\",\"" #n            \
	"d\":\"" KEY "\""
#define BODY(data) "{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{" data "}}"

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
	{"no key", {{SECRET, 200, BODY("")}}, -EINVAL, "it has 0 keys; 1 to 16", "GET", SECRET},
	{"more keys than the enroller reads",
	 {{SECRET, 200, BODY(FOUR(1) "," FOUR(2) "," FOUR(3) "," FOUR(4) ",\"5\":\"" KEY "\"")}},
	 -EINVAL,
	 "it has 17 keys; 1 to 16",
	 "GET",
	 SECRET},
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
	*strrchr(path, '/') = '\0';
	if (access(path, F_OK) == 0)
		folder_remove(mem_strdup(path));
	free(path);
}

static void test_scenarios(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, NULL, NULL);
	for (size_t i = 0; i < COUNT(scenarios); i++)
		play(s, &scenarios[i]);
}

/* A new Secret has a key of 32 bytes. The answer ends the attempt. */
static void test_new_key(void **state)
{
	static const struct tls_answer answers[ANSWERS] = {
		{SECRET, 404, "{}"},
		{SECRETS, 422, "{\"message\":\"no\"}"},
	};
	struct kube_scene *s = *state;
	struct own_secrets *o;
	unsigned char key[33];
	char text[45] = "";
	size_t len;

	kube_scene_serve(s, NULL, NULL);
	tls_server_script(s->https, answers, ANSWERS);
	assert_int_equal(open_with(s, &o), -EINVAL);
	tls_server_seen(s->https, &s->seen);
	assert_string_equal(s->seen.method, "POST");
	assert_int_equal(sscanf(strstr(s->seen.body, "\"data\":"),
				"\"data\":{\"%*[^\"]\":\"%44[^\"]\"}", text),
			 1);
	assert_int_equal(sodium_base642bin(key, sizeof(key), text, strlen(text), NULL, &len, NULL,
					   sodium_base64_VARIANT_ORIGINAL),
			 0);
	assert_int_equal(len, 32);
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

static ino_t inode_of(const struct kube_scene *s)
{
	char *path = kube_scene_path(s, "enrolment/1");
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	free(path);
	return st.st_ino;
}

/* Files are replaced where their contents differ. */
static void test_files_that_stay(void **state)
{
	static const struct {
		const char *secret;
		bool stays;
		const char *key;
	} cases[] = {
		{BODY("\"1\":\"" KEY "\""), false, "12345678901234567890123456789012"},
		{BODY("\"1\":\"" KEY "\""), true, "12345678901234567890123456789012"},
		{BODY("\"1\":\"" NEWER "\""), false, "a2345678901234567890123456789012"},
	};
	struct kube_scene *s = *state;
	ino_t before = 0;

	kube_scene_serve(s, NULL, NULL);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct tls_answer answers[] = {{SECRET, 200, cases[i].secret},
						     {MAP, 200, "{}"}};
		struct own_secrets *o;
		char *key;

		tls_server_script(s->https, answers, COUNT(answers));
		assert_int_equal(open_with(s, &o), 0);
		own_secrets_close(o);
		assert_int_equal(inode_of(s) == before, cases[i].stays);
		before = inode_of(s);
		key = kube_scene_read(s, "enrolment/1");
		assert_memory_equal(key, cases[i].key, 32);
		free(key);
	}
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

/* A folder that was there has other files, perhaps the only copy of a key: none is removed. */
static void test_foreign_folder(void **state)
{
	static const struct tls_answer there[ANSWERS] = {
		{SECRET, 200, BODY("\"1\":\"" KEY "\"")},
		{MAP, 200, "{}"},
	};
	struct kube_scene *s = *state;
	char *folder = kube_scene_path(s, "enrolment"), *text;
	struct own_secrets *o;

	kube_scene_serve(s, NULL, NULL);
	tls_server_script(s->https, there, ANSWERS);
	assert_int_equal(mkdir(folder, 0700), 0);
	kube_scene_write(s, "enrolment/mine", "a key of the user's");
	assert_int_equal(open_with(s, &o), -EEXIST);
	kube_scene_assert_says(s, "give --enrolment-key a new or an empty folder");
	text = kube_scene_read(s, "enrolment/mine");
	assert_string_equal(text, "a key of the user's");
	free(text);
	text = kube_scene_read(s, "enrolment/1");
	assert_string_equal(text, "");
	free(text);
	/* An empty folder is taken. */
	text = mem_printf("%s/mine", folder);
	assert_int_equal(unlink(text), 0);
	assert_int_equal(open_with(s, &o), 0);
	own_secrets_close(o);
	free(text);
	free(folder);
}

/* --- the certificate -------------------------------------------------------------------------- */

#define PATH  "/api/v1/namespaces/ns/secrets/evenkeel-tls"
#define DAY_S (24 * 3600LL)

static void add_member(struct buf *body, const char *name, const char *text)
{
	size_t size = sodium_base64_ENCODED_LEN(strlen(text), sodium_base64_VARIANT_ORIGINAL);
	char *base64 = mem_alloc(size);

	sodium_bin2base64(base64, size, (const unsigned char *)text, strlen(text),
			  sodium_base64_VARIANT_ORIGINAL);
	buf_printf(body, "%s\"%s\":\"%s\"", body->len ? "," : "", name, base64);
	free(base64);
}

/* The Secret's object, which the caller frees; ca_key NULL: it has none. */
static char *make_secret(const struct authority_set *set, const char *ca_key)
{
	struct buf data = BUF_INIT;
	char *body;

	add_member(&data, "tls.crt", set->certificate);
	add_member(&data, "tls.key", set->key);
	add_member(&data, "ca.crt", set->ca_certificate);
	if (ca_key)
		add_member(&data, "ca.key", ca_key);
	body = mem_printf(BODY("%s"), data.data);
	buf_fini(&data);
	return body;
}

/* A certificate that is `days` old. */
static void make_set(struct authority_set *set, int days)
{
	struct error why;

	if (authority_issue(set, "evenkeel-aggregator", "ns",
			    clock_wall_ns() / NS_PER_SEC - days * DAY_S, &why))
		fail_msg("%s", why.text);
}

struct tls_case {
	const char *name;
	int age_days;
	enum { NO_CA_KEY, OWN_CA_KEY, FOREIGN_CA_KEY } ca_key;
	unsigned int patch; /* the answer to a renewal; 0: there is none */
	const char *reason; /* a part of what is logged; NULL: no failure */
};

static const struct tls_case tls_cases[] = {
	{"a certificate of somebody else is kept, even in its last month", 340, NO_CA_KEY, 0, NULL},
	{"a new certificate is kept", 1, OWN_CA_KEY, 0, NULL},
	{"a certificate in its last month is renewed", 340, OWN_CA_KEY, 200, NULL},
	{"another aggregator was first: no failure", 340, OWN_CA_KEY, 409, NULL},
	{"a key of another authority shows at once", 1, FOREIGN_CA_KEY, 0, "does not sign"},
	{"a key of another authority renews nothing", 340, FOREIGN_CA_KEY, 0, "does not sign"},
};

/* keys: with the Secret of enrolment, too. */
static int open_tls(struct kube_scene *s, struct own_secrets **o, bool keys)
{
	char *paths[] = {kube_scene_path(s, "tls.crt"), kube_scene_path(s, "tls.key"),
			 kube_scene_path(s, "own-ca.crt"), kube_scene_path(s, "enrolment")};
	const struct own_secrets_config config = {.namespace = "ns",
						  .certificate = paths[0],
						  .key = paths[1],
						  .authority = paths[2],
						  .enrolment = keys ? paths[3] : NULL};
	int rc = own_secrets_open(o, &s->config, &config, &s->why);

	for (size_t i = 0; i < COUNT(paths); i++)
		free(paths[i]);
	return rc;
}

/* What it logs, which the caller frees. */
static char *open_logged(struct kube_scene *s, struct own_secrets **o)
{
	struct stderr_log caught;
	char *log;
	int rc;

	stderr_log_begin(&caught);
	rc = open_tls(s, o, false);
	log = stderr_log_end(&caught);
	assert_int_equal(rc, 0);
	return log;
}

static void play_tls(struct kube_scene *s, const struct tls_case *c)
{
	struct authority_set set = {0}, other = {0};
	struct own_secrets *o;
	unsigned int requests;
	char *body, *file, *log;

	print_message("          %s\n", c->name);
	make_set(&set, c->age_days);
	make_set(&other, 1);
	body = make_secret(&set, c->ca_key == NO_CA_KEY	   ? NULL
				 : c->ca_key == OWN_CA_KEY ? set.ca_key
							   : other.ca_key);
	const struct tls_answer answers[ANSWERS] = {
		{"PATCH " PATH, c->patch, body},
		{"GET " PATH, 200, body},
		{"/apiservices/", 404, "{}"},
	};

	tls_server_script(s->https, answers, ANSWERS);
	log = open_logged(s, &o);
	own_secrets_close(o);
	file = kube_scene_read(s, "tls.crt");
	assert_string_equal(file, set.certificate);
	free(file);
	requests = s->seen.requests;
	tls_request_fini(&s->seen);
	tls_server_seen(s->https, &s->seen);
	/* The Secret, three APIServices, and what changes it. */
	assert_int_equal(s->seen.requests - requests, c->patch ? 5 : 4);
	print_message("%s", log);
	assert_int_equal(strstr(log, "keeping the files") != NULL, c->reason != NULL);
	assert_true(!c->reason || strstr(log, c->reason));
	free(log);
	free(body);
	authority_fini(&set);
	authority_fini(&other);
}

static void test_certificates(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, NULL, NULL);
	for (size_t i = 0; i < COUNT(tls_cases); i++)
		play_tls(s, &tls_cases[i]);
}

/* A garbled Secret of enrolment stops no renewal, and both reasons are told. */
static void test_failures_of_both(void **state)
{
	struct authority_set set = {0};
	struct kube_scene *s = *state;
	struct own_secrets *o;
	char *body, *file;

	make_set(&set, 340);
	body = make_secret(&set, set.ca_key);
	const struct tls_answer answers[] = {
		{SECRET, 200, BODY("")},
		{"PATCH " PATH, 422, "{\"message\":\"not so\"}"},
		{"GET " PATH, 200, body},
		{"/apiservices/", 404, "{}"},
	};

	kube_scene_serve(s, NULL, NULL);
	tls_server_script(s->https, answers, COUNT(answers));
	assert_int_equal(open_tls(s, &o, true), -EINVAL);
	kube_scene_assert_says(s, "it has 0 keys");
	kube_scene_assert_says(s, "; and: ");
	kube_scene_assert_says(s, "not so");
	file = kube_scene_read(s, "tls.crt");
	assert_string_equal(file, set.certificate);
	free(file);
	free(body);
	authority_fini(&set);
}

/* --- a server without a word ------------------------------------------------------------------ */

/* Accepts connections and answers nothing; the port is the configuration's. The caller closes it. */
static int listen_silently(struct kube_scene *s)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	s->config.source = mem_strdup("the test");
	s->config.server = mem_printf("http://127.0.0.1:%d", ntohs(address.sin_port));
	return fd;
}

static void test_silent_server(void **state)
{
	struct kube_scene *s = *state;
	int fd = listen_silently(s);
	int64_t began_ns = clock_mono_ns(), took_ns;
	struct own_secrets *o;

	assert_int_equal(open_with(s, &o), -EAGAIN);
	took_ns = clock_mono_ns() - began_ns;
	assert_in_range(took_ns / NS_PER_SEC, 29, 32);
	close(fd);
}

static void test_signal_ends_the_wait(void **state)
{
	struct kube_scene *s = *state;
	int fd = listen_silently(s), status;
	struct pollfd request = {fd, POLLIN, 0};
	struct own_secrets *o;
	pid_t child = fork();

	if (child == 0) {
		/* As the first process of a container, which this signal does not end by itself. */
		signal(SIGTERM, SIG_IGN);
		open_with(s, &o);
		_exit(0);
	}
	assert_int_equal(poll(&request, 1, 20000), 1);
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kube_scene_setup, kube_scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_scenarios),
		TEST(test_new_key),
		TEST(test_exchanged_key),
		TEST(test_files_that_stay),
		TEST(test_files_of_an_earlier_start),
		TEST(test_foreign_folder),
		TEST(test_certificates),
		TEST(test_failures_of_both),
		TEST(test_silent_server),
		TEST(test_signal_ends_the_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
