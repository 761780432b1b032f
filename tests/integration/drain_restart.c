/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node that is unneeded is so since then also after a restart of the aggregator, as long as it
 * has a state directory, and what was decided is still told; a snapshot has both, too; and what is
 * wrong with the options stops the start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/drain_scene.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { TIMEOUT_S = 60, SINCE_LEN = 40 };

struct scene {
	char *folder, *dump, *state, *log, *ingest, *listen, *url;
	pid_t pid; /* 0: it does not run */
	char since[SINCE_LEN]; /* of bravo, in the last answer */
};

static struct scene s;

static int setup(void **state)
{
	FILE *f;

	(void)state;
	s = (struct scene){.folder = folder_make()};
	s.dump = mem_printf("%s/dump.yaml", s.folder);
	s.state = mem_printf("%s/state", s.folder);
	s.log = mem_printf("%s/log", s.folder);
	s.ingest = mem_printf("ipc://%s/ingest", s.folder);
	s.listen = mem_printf("127.0.0.1:%d", free_port());
	s.url = mem_printf("http://%s/v1/drain?node=bravo", s.listen);
	f = fopen(s.dump, "w");
	assert_non_null(f);
	fputs(drain_scene_dump, f);
	assert_int_equal(fclose(f), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (s.pid > 0)
		process_stop(s.pid, SIGKILL);
	free(s.dump);
	free(s.state);
	free(s.log);
	free(s.ingest);
	free(s.listen);
	free(s.url);
	folder_remove(s.folder);
	return 0;
}

static void start(const char *more)
{
	char *argv[] = {(char *)program_path("evenkeel-aggregator"),
			(char *)"--snapshot",
			s.dump,
			(char *)"--state-dir",
			s.state,
			(char *)"--listen",
			s.listen,
			(char *)"--ingest",
			s.ingest,
			(char *)"--plan-interval=1s",
			(char *)more,
			NULL};

	s.pid = process_start(s.log, argv);
	assert_true(s.pid > 0);
}

static bool has_since(void *ctx)
{
	cJSON *plan = http_get_json(s.url);
	const cJSON *item = cJSON_GetArrayItem(json_at(plan, "items"), 0);
	const char *since = cJSON_GetStringValue(json_at(item, "since"));

	(void)ctx;
	snprintf(s.since, sizeof(s.since), "%s", since ? since : "");
	cJSON_Delete(plan);
	return since != NULL;
}

static void await_since(void)
{
	if (!await(has_since, NULL, TIMEOUT_S))
		fail_msg("bravo is not told to be unneeded");
}

static void stop(void)
{
	assert_int_equal(process_stop(s.pid, SIGTERM), 0);
	s.pid = 0;
}

static void test_timers_survive(void **state)
{
	char first[SINCE_LEN];

	(void)state;
	start(NULL);
	await_since();
	memcpy(first, s.since, sizeof(first));
	stop();
	start(NULL);
	await_since();
	assert_string_equal(s.since, first);
	stop();
	/* Who does not believe what was saved begins anew, and that is not the same millisecond. */
	start("--node-deletion-candidate-ttl=0s");
	await_since();
	assert_string_not_equal(s.since, first);
	stop();
}

/* The command's words about the history, asked of a server or of a snapshot. */
static char *ask_history(const char *place, const char *where)
{
	char *argv[] = {(char *)program_path("evenkeel"),
			(char *)"drain",
			(char *)"--history",
			(char *)"-o",
			(char *)"json",
			(char *)place,
			(char *)where,
			NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *json;
	char *items;

	assert_int_equal(process_run(argv, &out, &err), 0);
	json = cJSON_ParseWithLength(out.data, out.len);
	assert_string_equal(cJSON_GetStringValue(json_at(json, "kind")), "DrainHistory");
	items = cJSON_PrintUnformatted(json_at(json, "items"));
	cJSON_Delete(json);
	buf_fini(&out);
	buf_fini(&err);
	return items;
}

/* Nothing is decided anew by a restart, and so the history is the same. */
static void test_history_survives(void **state)
{
	char *server = mem_printf("http://%s", s.listen), *before, *after, *rows;
	struct buf out = BUF_INIT, err = BUF_INIT;
	char *argv[] = {(char *)program_path("evenkeel"),
			(char *)"drain",
			(char *)"--history",
			(char *)"bravo",
			(char *)"--server",
			server,
			NULL};

	(void)state;
	start(NULL);
	await_since();
	before = ask_history("--server", server);
	assert_non_null(strstr(before, "\"event\":\"unneeded\",\"node\":\"bravo\","
				       "\"reason\":\"NotUnneededLongEnough\""));
	assert_non_null(strstr(before, "\"event\":\"inDeletion\",\"node\":\"echo\","
				       "\"reason\":\"CurrentlyBeingDeleted\""));
	stop();
	start(NULL);
	await_since();
	after = ask_history("--server", server);
	assert_string_equal(after, before);
	assert_int_equal(process_run(argv, &out, &err), 0);
	buf_add_str(&out, "");
	rows = out.data;
	assert_non_null(strstr(rows, "AGE  EVENT     NODE   REASON                 WHY\n"));
	assert_non_null(strstr(rows, "  unneeded  bravo  NotUnneededLongEnough  it has been "
				     "unneeded for 0 s, and must be for more than 600 s\n"));
	assert_null(strstr(rows, "echo"));
	stop();
	free(before);
	free(after);
	free(server);
	buf_fini(&out);
	buf_fini(&err);
}

static void test_snapshot_has_them(void **state)
{
	char *url = mem_printf("http://%s/v1/snapshot", s.listen);
	char *path = mem_printf("%s/snapshot.json", s.folder);
	char *server = mem_printf("http://%s", s.listen), *live, *saved;
	struct buf body = BUF_INIT, out = BUF_INIT, err = BUF_INIT;
	char *argv[] = {(char *)program_path("evenkeel"),
			(char *)"drain",
			(char *)"bravo",
			(char *)"-o",
			(char *)"json",
			(char *)"--snapshot",
			path,
			NULL};
	const cJSON *item;
	cJSON *json;
	FILE *f;

	(void)state;
	start(NULL);
	await_since();
	assert_int_equal(http_get(url, &body), 200);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(body.data, 1, body.len, f), body.len);
	fclose(f);
	argv[0] = (char *)program_path("evenkeel");
	assert_int_equal(process_run(argv, &out, &err), 3); /* not long enough */
	json = cJSON_ParseWithLength(out.data, out.len);
	item = cJSON_GetArrayItem(json_at(json, "items"), 0);
	assert_string_equal(cJSON_GetStringValue(json_at(item, "since")), s.since);
	cJSON_Delete(json);
	live = ask_history("--server", server);
	saved = ask_history("--snapshot", path);
	assert_string_equal(saved, live);
	stop();
	free(server);
	free(live);
	free(saved);
	buf_fini(&body);
	buf_fini(&out);
	buf_fini(&err);
	free(url);
	free(path);
}

static void test_bad_options_stop_the_start(void **state)
{
	static const struct {
		const char *option, *want;
	} cases[] = {
		{"--max-drain-parallelism=0", "1 to 100000 are allowed"},
		{"--drain-group=name=a,min=3,max=2", "group \"a\": min 3 must be 0 to max"},
		{"--drain-budget=nodes=1,schedule=@daily", "a schedule needs a duration"},
	};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = {(char *)program_path("evenkeel-aggregator"), (char *)"--snapshot",
				s.dump, (char *)cases[i].option, NULL};

		buf_clear(&err);
		assert_int_equal(process_run(argv, &out, &err), 2);
		buf_add_str(&err, "");
		if (!strstr(err.data, cases[i].want))
			fail_msg("%s is not in: %s", cases[i].want, err.data);
	}
	buf_fini(&out);
	buf_fini(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_timers_survive, setup, teardown),
		cmocka_unit_test_setup_teardown(test_history_survives, setup, teardown),
		cmocka_unit_test_setup_teardown(test_snapshot_has_them, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_options_stop_the_start, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
