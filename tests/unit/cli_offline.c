/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the command line answered from files, in one process; the client's credentials; and
 * arguments of plugins as --plugin takes them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/answer.h"
#include "shared/mem.h"
#include "tests/process.h"

static const char dump[] =
	"{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"kind\":\"Node\",\"apiVersion\":"
	"\"v1\","
	"\"metadata\":{\"name\":\"n "
	"1/a\"},\"status\":{\"capacity\":{\"cpu\":\"4\",\"memory\":\"8Gi\"}}},"
	"{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n2\"}}]}";

struct scene {
	char *folder, *file;
	struct client *client;
};

static struct scene scene;

/* In the scene's folder; its path, to be freed. */
static char *put_file(const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", scene.folder, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	return path;
}

static int setup(void **state)
{
	struct option_list files = {&scene.file, 1};
	struct error error = {""};
	struct offline *offline;

	(void)state;
	scene.folder = folder_make();
	scene.file = put_file("dump.json", dump);
	if (offline_open(&offline, &files, NULL, &error)) {
		print_error("%s\n", error.text);
		return -1;
	}
	assert_false(offline_has_usage(offline));
	assert_int_equal(offline_notes(offline)->skipped, 0);
	assert_string_equal(offline_name(offline), scene.file);
	scene.client = client_new_offline(offline);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	client_free(scene.client);
	folder_remove(scene.folder);
	free(scene.file);
	return 0;
}

static void test_requests(void **state)
{
	static const struct {
		const char *path;
		int rc;
		const char *want; /* in the answer, or the reason */
	} cases[] = {
		{"/v1/nodes", 0, "\"name\":\"n 1/a\""},
		{"/v1/nodes?limit=1", 0, "\"continue\""},
		{"/v1/nodes/n%201%2Fa", 0, "\"kind\":\"Node\""},
		{"/v1/nodes/n%201%2fa", 0, "\"kind\":\"Node\""},
		{"/v1/nodes?node=n%201%2Fa&limit=5", 0, "\"name\":\"n 1/a\""},
		{"/v1/nodes?limit", 0, "\"items\":["},
		{"/v1/nodes?%6cimit=1", 0, "\"continue\""},
		{"/v1/snapshot", 0, "\"kind\":\"Snapshot\""},
		{"/metrics", 0, "evenkeel_build_info"},
		{"/v1/nodes/nobody", -ENOENT, "\"nobody\""},
		{"/v1/nodes?limit=x", -EIO,
		 "limit: limit \"x\" is not a whole number from 1 to 5000"},
		{"/v1/nodes?labelSelector=a%20b", -EBADRQC, "labelSelector: "},
		{"/v1/nodes?bad=1", -EIO, "bad: unknown parameter \"bad\""},
		{"/v1/nodes?a%zz=1", -EIO, "a%zz: unknown parameter \"a%zz\""},
		{"/nothing", -ENOENT, "there is nothing at /nothing"},
	};
	struct buf body = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = {""};
		int rc = client_get(scene.client, cases[i].path, &body, &error);

		assert_int_equal(rc, cases[i].rc);
		if (!strstr(rc ? error.text : body.data, cases[i].want))
			fail_msg("%s: %s", cases[i].path, rc ? error.text : body.data);
	}
	assert_true(client_body_age(scene.client) == 0);
	buf_fini(&body);
}

static void test_posts(void **state)
{
	struct error error = {""};
	struct buf body = BUF_INIT;

	(void)state;
	assert_int_equal(client_post(scene.client, "/v1/scores", cJSON_Parse("{}"), &body, &error),
			 0);
	assert_non_null(strstr(body.data, "\"kind\":\"ScoreList\""));
	assert_int_equal(client_post(scene.client, "/v1/scores", cJSON_Parse("{\"nodes\":[\"x\"]}"),
				     &body, &error),
			 -ENOENT);
	assert_memory_equal(error.text, "nodes[0]: ", 10);
	assert_int_equal(client_post(scene.client, "/v1/scores",
				     cJSON_Parse("{\"plugins\":[\"x\"]}"), &body, &error),
			 -EBADRQC);
	assert_memory_equal(error.text, "plugins[0]: ", 12);
	/* What is in a file of a pod is not how the program was called. */
	assert_int_equal(client_post(scene.client, "/v1/scores",
				     cJSON_Parse("{\"pod\":{\"spec\":7}}"), &body, &error),
			 -EIO);
	assert_memory_equal(error.text, "pod", 3);
	buf_fini(&body);
}

/* What is in the files decides, and nothing else: two openings answer in the same bytes. */
static void test_same_bytes(void **state)
{
	struct buf first = BUF_INIT, second = BUF_INIT;
	struct error error;

	(void)state;
	assert_int_equal(client_get(scene.client, "/v1/snapshot", &first, &error), 0);
	teardown(state);
	assert_int_equal(setup(state), 0);
	assert_int_equal(client_get(scene.client, "/v1/snapshot", &second, &error), 0);
	assert_string_equal(first.data, second.data);
	assert_non_null(strstr(first.data, "\"time\":\"1970-01-01T00:00:00Z\""));
	buf_fini(&first);
	buf_fini(&second);
}

/* Of the scene: its file is readable, and its first word could be a token. */
static void test_access(void **state)
{
#define PAIR  "--client-cert and --client-key: give both, or neither"
#define PLAIN "http://192.0.2.1"
#define CLEAR                                                                                      \
	PLAIN " is not https, and the token would travel in clear; --allow-plain-tokens where "    \
	      "something else encrypts"
#define ASCII "EVENKEEL_TOKEN: the token is no printable ASCII"
	const char *file = scene.file;
	char *blank = put_file("blank", " \n"), *odd = put_file("odd", "\ta\x7f b");
	char *good = put_file("good", " one,t\xc3\xb6o\n");
	char *no_token = mem_printf("--token-file: %s: there is no token in it", blank);
	char *no_ascii = mem_printf("--token-file: %s: the token is no printable ASCII", odd);
	const struct {
		const char *server;
		struct client_access access;
		const char *want; /* "": it is good */
	} cases[] = {
		{"https://192.0.2.1", {.token = "t~!"}, ""},
		{PLAIN, {.token = "t"}, CLEAR},
		{PLAIN, {.token_file = file}, CLEAR},
		{PLAIN, {.token = "t", .plain_tokens = true}, ""},
		{PLAIN, {.ca_file = file}, ""},
		{"http://127.0.0.1", {.token_file = file}, ""},
		{"https://192.0.2.1", {.token = "a b"}, ASCII},
		{"https://192.0.2.1", {.token = "a\x7f"}, ASCII},
		{"https://192.0.2.1", {.certificate = file}, PAIR},
		{"https://192.0.2.1", {.key = file}, PAIR},
		{"https://192.0.2.1", {.certificate = file, .key = file}, ""},
		{"https://192.0.2.1",
		 {.certificate = file, .key = "/nowhere"},
		 "--client-key: /nowhere: No such file or directory"},
		{"https://192.0.2.1",
		 {.token_file = "/nowhere"},
		 "--token-file: /nowhere: No such file or directory"},
		{"https://192.0.2.1", {.token_file = good}, ""},
		{"https://192.0.2.1", {.token_file = blank}, no_token},
		{"https://192.0.2.1", {.token_file = odd}, no_ascii},
		{"https://192.0.2.1", {.server_name = "name"}, ""},
		{"https://192.0.2.1",
		 {.server_name = "a b"},
		 "--tls-server-name: \"a b\" is not a host name"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = {""};
		struct client *c;
		int rc;

		assert_int_equal(client_new(&c, cases[i].server, 1, NULL, &error), 0);
		rc = client_set_access(c, &cases[i].access, &error);
		assert_string_equal(error.text, cases[i].want);
		assert_true(*cases[i].want ? rc < 0 : rc == 0);
		client_free(c);
	}
	free(blank);
	free(odd);
	free(good);
	free(no_token);
	free(no_ascii);
}

static int add_plugins(char **items, size_t count, cJSON *request, struct error *error)
{
	const struct option_list plugins = {items, count};

	return plugin_option_add(&plugins, request, error);
}

static void test_plugin_arguments(void **state)
{
	static const struct {
		char *items[3];
		const char *want;
	} cases[] = {
		{{NULL}, "{}"},
		{{"A", "B"}, "{\"plugins\":[\"A\",\"B\"]}"},
		{{"A:x=50,y=1.5", "B", "C:z=true"},
		 "{\"plugins\":[\"A\",\"B\",\"C\"],\"args\":{\"A\":{\"x\":50,\"y\":1.5},\"C\":{"
		 "\"z\":true}}}"},
		{{"A:cpu=500m,mode=Most,a=\"5\""},
		 "{\"plugins\":[\"A\"],\"args\":{\"A\":{\"cpu\":\"500m\",\"mode\":\"Most\",\"a\":"
		 "\"5\"}}}"},
		{{"A:d.cpu=1,d.mem=2Gi,d.e.f=g=h"},
		 "{\"plugins\":[\"A\"],\"args\":{\"A\":{\"d\":{\"cpu\":1,\"mem\":\"2Gi\",\"e\":{"
		 "\"f\":"
		 "\"g=h\"}}}}}"},
		{{"A:{\"a\":[1,{\"b\":2}]}"},
		 "{\"plugins\":[\"A\"],\"args\":{\"A\":{\"a\":[1,{\"b\":2}]}}}"},
		{{"A:{mode: Most, resources: [{name: cpu, weight: 1}]}"},
		 "{\"plugins\":[\"A\"],\"args\":{\"A\":{\"mode\":\"Most\",\"resources\":[{\"name\":"
		 "\"cpu\","
		 "\"weight\":1}]}}}"},
		{{"A:{}"}, "{\"plugins\":[\"A\"],\"args\":{\"A\":{}}}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = {""};
		cJSON *request = cJSON_CreateObject();
		size_t count = 0;
		char *got;

		while (count < 3 && cases[i].items[count])
			count++;
		if (add_plugins((char **)cases[i].items, count, request, &error))
			fail_msg("%s", error.text);
		got = cJSON_PrintUnformatted(request);
		assert_string_equal(got, cases[i].want);
		free(got);
		cJSON_Delete(request);
	}
}

#define FORM " is not of the form NAME, NAME:ARGUMENT=VALUE,.. or NAME:{..}"

static void test_bad_plugin_arguments(void **state)
{
	static const struct {
		char *item;
		const char *want;
	} cases[] = {
		{"", "--plugin: \"\"" FORM},
		{":x=1", "--plugin: \":x=1\"" FORM},
		{"A:", "--plugin: \"A:\"" FORM},
		{"A:x", "--plugin: \"A:x\"" FORM},
		{"A:x=", "--plugin: \"A:x=\"" FORM},
		{"A:=1", "--plugin: \"A:=1\"" FORM},
		{"A:x=1,", "--plugin: \"A:x=1,\"" FORM},
		{"A:x.=1", "--plugin: \"A:x.=1\"" FORM},
		{"A:x=1,x.y=2", "--plugin: \"A:x=1,x.y=2\"" FORM},
		{"A:x=1,x=2", "--plugin: x is given twice in \"A:x=1,x=2\""},
		{"A:x=[1", "--plugin: \"[1\": did not find expected ',' or ']'"},
		{"A:x=.inf", "--plugin: \".inf\": JSON has no infinite numbers"},
		{"A:x=null", "--plugin: \"null\": it is not one value"},
		{"A:{a: 1", "--plugin: \"{a: 1\": did not find expected ',' or '}'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *item = cases[i].item;
		struct error error = {""};
		cJSON *request = cJSON_CreateObject();

		assert_int_equal(add_plugins(&item, 1, request, &error), -EINVAL);
		assert_string_equal(error.text, cases[i].want);
		cJSON_Delete(request);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_posts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_access, setup, teardown),
		cmocka_unit_test(test_plugin_arguments),
		cmocka_unit_test(test_bad_plugin_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
