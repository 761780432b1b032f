/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregator and the command as people start them, over TLS: who gets an answer, what the
 * others are told, and what the log does not say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/file.h"
#include "shared/mem.h"
#include "tests/access_scene.h"
#include "tests/process.h"

enum { TIMEOUT_S = 30, WORDS_MAX = 24 };

struct world {
	struct access_scene *scene; /* its files; its server is not started */
	pid_t pid;
	int port;
	char *log, *server, *ca, *token, *wrong_token, *client, *client_key;
};

static struct world *w;

/* Words of the aggregator besides those that every one has; ends with NULL. */
static pid_t start(const char *const *more)
{
	char *listen = mem_printf("127.0.0.1:%d", w->port),
	     *ingest = mem_printf("ipc://%s/ingest", w->scene->folder),
	     *program = mem_strdup(program_path("evenkeel-aggregator"));
	char *argv[WORDS_MAX] = {program, (char *)"--listen", listen, (char *)"--ingest", ingest};
	pid_t pid;

	for (size_t n = 5; *more; more++)
		argv[n++] = (char *)*more;
	pid = process_start(w->log, argv);
	free(listen);
	free(ingest);
	free(program);
	return pid;
}

/* `evenkeel` with words that end with NULL: its exit status, and what it says. */
static int evenkeel(struct buf *out, struct buf *err, const char *const *words)
{
	char *argv[WORDS_MAX] = {mem_strdup(program_path("evenkeel"))};
	size_t n = 1;
	int status;

	buf_clear(out);
	buf_clear(err);
	for (; *words; words++)
		argv[n++] = (char *)*words;
	status = process_run(argv, out, err);
	buf_add_str(out, "");
	buf_add_str(err, "");
	free(argv[0]);
	return status;
}

/* What `version` tells of a server that lets the caller in; without an answer its version is "-". */
#define ANSWER "server  " EVENKEEL_VERSION

static bool is_up(void *ctx)
{
	struct buf out = BUF_INIT, err = BUF_INIT;
	const char *const words[] = {"version", "--server",	w->server, "--ca-file",
				     w->ca,	"--token-file", w->token,  NULL};
	bool up = evenkeel(&out, &err, words) == 0 && strstr(out.data, ANSWER);

	(void)ctx;
	buf_fini(&out);
	buf_fini(&err);
	return up;
}

static int open_world(void **state)
{
	(void)state;
	w = mem_zalloc(1, sizeof(*w));
	w->scene = access_scene_new();
	w->port = free_port();
	w->log = mem_printf("%s/log", w->scene->folder);
	w->server = mem_printf("https://127.0.0.1:%d", w->port);
	w->ca = access_scene_write(w->scene, "authority.crt", w->scene->authority.certificate);
	w->token = access_scene_write(w->scene, "token", ACCESS_TOKEN ",me\n");
	w->wrong_token = access_scene_write(w->scene, "wrong-token", ACCESS_OTHER_TOKEN "\n");
	w->client = access_scene_write(w->scene, "me.crt", w->scene->client.certificate);
	w->client_key = access_scene_write(w->scene, "me.key", w->scene->client.key);
	{
		const char *const more[] = {"--verbose",	   "--tls-cert",
					    w->scene->certificate, "--tls-key",
					    w->scene->key,	   "--tls-client-ca",
					    w->scene->client_ca,   "--token-file",
					    w->scene->tokens,	   NULL};

		w->pid = start(more);
	}
	return w->pid > 0 && await(is_up, NULL, TIMEOUT_S) ? 0 : -1;
}

static int close_world(void **state)
{
	(void)state;
	if (w->pid > 0)
		process_stop(w->pid, SIGKILL);
	access_scene_free(w->scene);
	free(w->log);
	free(w->server);
	free(w->ca);
	free(w->token);
	free(w->wrong_token);
	free(w->client);
	free(w->client_key);
	free(w);
	return 0;
}

/* --- the command ------------------------------------------------------------------------------ */

struct saying {
	const char *words[12];
	int status;
	const char *out, *err; /* NULL: nothing of interest */
};

static void expect(const struct saying *cases, size_t count)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	for (size_t i = 0; i < count; i++) {
		int status = evenkeel(&out, &err, cases[i].words);

		if (status != cases[i].status ||
		    (cases[i].out && !strstr(out.data, cases[i].out)) ||
		    (cases[i].err && !strstr(err.data, cases[i].err)))
			fail_msg("case %zu: %d\n%s\n%s", i, status, out.data, err.data);
		assert_null(strstr(err.data, ACCESS_TOKEN));
		assert_null(strstr(err.data, ACCESS_OTHER_TOKEN));
	}
	buf_fini(&out);
	buf_fini(&err);
}

#define EXPECT(cases) expect(cases, sizeof(cases) / sizeof((cases)[0]))

static void test_who_gets_an_answer(void **state)
{
	char *renamed = mem_printf("https://localhost:%d", w->port);
	const struct saying cases[] = {
		{{"version", "--server", w->server, "--ca-file", w->ca, "--token-file", w->token},
		 0,
		 ANSWER,
		 NULL},
		{{"version", "--server", w->server, "--ca-file", w->ca, "--client-cert", w->client,
		  "--client-key", w->client_key},
		 0,
		 ANSWER,
		 NULL},
		{{"version", "--server", renamed, "--ca-file", w->ca, "--token-file", w->token,
		  "--tls-server-name", "evenkeel.example"},
		 0,
		 ANSWER,
		 NULL},
		{{"nodes", "--server", w->server, "--ca-file", w->ca},
		 1,
		 NULL,
		 "does not let us in: send a bearer token, or a client certificate; give "
		 "--token-file or EVENKEEL_TOKEN"},
		{{"nodes", "--server", w->server, "--ca-file", w->ca, "--token-file",
		  w->wrong_token},
		 1,
		 NULL,
		 "the token is not known; is the token still good"},
		{{"nodes", "--server", w->server},
		 1,
		 NULL,
		 "give the one that signed it with --ca-file"},
		{{"nodes", "--server", w->server, "--ca-file", w->client},
		 1,
		 NULL,
		 "its certificate is not signed by"},
		{{"nodes", "--server", renamed, "--ca-file", w->ca, "--tls-server-name", "other"},
		 1,
		 NULL,
		 "its certificate is for another name"},
		{{"nodes", "--server", w->server, "--client-cert", w->client},
		 2,
		 NULL,
		 "--client-cert and --client-key: give both"},
		{{"nodes", "--server", w->server, "--ca-file", "/nowhere"},
		 2,
		 NULL,
		 "--ca-file: /nowhere: No such file"},
		{{"nodes", "--server", "http://192.0.2.1:2020", "--token-file", w->token},
		 2,
		 NULL,
		 "the token would travel in clear"},
		{{"nodes", "--server", renamed + 8}, 1, NULL, "does it want TLS?"},
	};

	(void)state;
	EXPECT(cases);
	free(renamed);
}

static void test_environment(void **state)
{
	const struct saying good[] = {
		{{"version", "--server", w->server, "--ca-file", w->ca}, 0, ANSWER, NULL}};
	const struct saying bad[] = {{{"nodes", "--server", w->server, "--ca-file", w->ca},
				      1,
				      NULL,
				      "the token is not known"}};

	(void)state;
	setenv("EVENKEEL_TOKEN", ACCESS_TOKEN, 1);
	EXPECT(good);
	setenv("EVENKEEL_TOKEN", ACCESS_OTHER_TOKEN, 1);
	EXPECT(bad);
	unsetenv("EVENKEEL_TOKEN");
}

static void test_doctor(void **state)
{
	const struct saying cases[] = {
		{{"doctor", "--server", w->server, "--ca-file", w->ca, "--token-file", w->token},
		 3,
		 "ok    access: over HTTPS, with a token or a client certificate",
		 NULL},
		{{"doctor", "--server", w->server, "--ca-file", w->ca},
		 3,
		 "It is there, and knows who may ask",
		 NULL},
		{{"doctor", "--server", w->server},
		 3,
		 "Somebody answers, who may not be the one that was meant",
		 NULL},
	};

	(void)state;
	EXPECT(cases);
}

/* A server whose certificate has ended is told from one that somebody else signed. */
static void test_ended_certificate(void **state)
{
	const struct tls_wish wish = {.name = "server",
				      .address = "127.0.0.1",
				      .issuer = &w->scene->authority,
				      .ended = true};
	struct tls_identity ended;
	struct tls_server *server;
	char *url;

	(void)state;
	tls_identity_make(&ended, &wish);
	server = tls_server_start(&ended, NULL);
	url = mem_printf("https://127.0.0.1:%d", tls_server_port(server));
	{
		const struct saying cases[] = {{{"nodes", "--server", url, "--ca-file", w->ca},
						1,
						NULL,
						"its certificate has ended"}};

		EXPECT(cases);
	}
	free(url);
	tls_server_stop(server);
	tls_identity_fini(&ended);
}

/* --- the aggregator --------------------------------------------------------------------------- */

static bool has_logged(void *text)
{
	struct buf log = BUF_INIT;
	bool found = !file_read(w->log, 16 << 20, &log, NULL) && strstr(log.data, text);

	buf_fini(&log);
	return found;
}

static void test_hangup_reads_files_again(void **state)
{
	const struct saying then[] = {{{"version", "--server", w->server, "--ca-file", w->ca,
					"--token-file", w->wrong_token},
				       0,
				       ANSWER,
				       NULL}};

	(void)state;
	free(access_scene_write(w->scene, "tokens", ACCESS_OTHER_TOKEN ",other\n"));
	kill(w->pid, SIGHUP);
	assert_true(await(has_logged, (char *)"read the tokens again", TIMEOUT_S));
	EXPECT(then);
}

/* After all that was tried above, right and wrong. */
static void test_no_secret_is_logged(void **state)
{
	struct buf log = BUF_INIT;
	static const char *const secrets[] = {ACCESS_TOKEN, ACCESS_OTHER_TOKEN, "PRIVATE KEY",
					      "Bearer good", "Bearer other"};

	(void)state;
	assert_true(has_logged((char *)"refused a request from 127.0.0.1"));
	assert_int_equal(file_read(w->log, 16 << 20, &log, NULL), 0);
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		assert_null(strstr(log.data, secrets[i]));
	buf_fini(&log);
}

static void test_bad_options_stop_the_start(void **state)
{
	static const struct {
		const char *const more[6];
		int status;
		const char *says;
	} cases[] = {
		{{"--tls-cert", "x", NULL}, 2, "--tls-cert and --tls-key: give both"},
		{{"--token-review", "--standalone", NULL},
		 2,
		 "--token-review asks the Kubernetes API"},
		{{"--token-review", NULL}, 1, "--token-review: this is no pod: give --kubeconfig"},
		{{"--token-file", "/nowhere", NULL}, 1, "--token-file: /nowhere: No such file"},
		{{"--listen", ":0", "--token-file", "TOKENS", NULL},
		 1,
		 "tokens would travel in clear"},
	};

	(void)state;
	process_stop(w->pid, SIGTERM);
	w->pid = 0;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *more[8] = {NULL};
		int status;

		for (size_t n = 0; cases[i].more[n]; n++)
			more[n] = strcmp(cases[i].more[n], "TOKENS") == 0 ? w->scene->tokens
									  : cases[i].more[n];
		status = process_stop(start(more), 0);
		if (status != cases[i].status || !has_logged((char *)cases[i].says))
			fail_msg("case %zu: %d, without \"%s\"", i, status, cases[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_gets_an_answer),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_doctor),
		cmocka_unit_test(test_ended_certificate),
		cmocka_unit_test(test_hangup_reads_files_again),
		cmocka_unit_test(test_no_secret_is_logged),
		cmocka_unit_test(test_bad_options_stop_the_start),
	};
	int failed;

	unsetenv("EVENKEEL_TOKEN");
	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	failed = cmocka_run_group_tests(tests, open_world, close_world);
	curl_global_cleanup();
	return failed;
}
