/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel act against a real aggregator, with the test in the place of the actuator: what is
 * printed while a request is followed, how Ctrl-C pauses, and the exit status.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

#define SNAPSHOT "tests/docs/snapshot.json"

enum { TIMEOUT_S = 30, WORDS_MAX = 16 };

static struct stack *stack;
static char *url, *out_path;

static int setup(void **state)
{
	static const char *more[] = {"--state-dir", NULL, NULL};

	(void)state;
	stack = stack_new();
	more[1] = mem_printf("%s/state", stack->folder);
	out_path = mem_printf("%s/out", stack->folder);
	stack->aggregators[0].snapshot_path = SNAPSHOT;
	stack->aggregators[0].more = more;
	stack_start_aggregator(stack, 0);
	url = mem_printf("http://127.0.0.1:%d", stack->aggregators[0].http_port);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free((char *)stack->aggregators[0].more[1]);
	stack_free(stack, 0);
	free(url);
	free(out_path);
	return 0;
}

/* --- the command ------------------------------------------------------------------------------ */

/* words: "act drain a --yes"; the list and the copy are the caller's to free. */
static char **split(const char *words, char **copy)
{
	char **argv = mem_zalloc(WORDS_MAX, sizeof(*argv)), *save;
	size_t n = 0;

	*copy = mem_strdup(words);
	argv[n++] = (char *)program_path("evenkeel");
	for (char *w = strtok_r(*copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	assert_true(n < WORDS_MAX);
	return argv;
}

static pid_t start(const char *words)
{
	char *copy, **argv = split(words, &copy);
	pid_t pid;

	unlink(out_path);
	pid = process_start(out_path, argv);
	free(argv);
	free(copy);
	return pid;
}

static int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *output(void)
{
	FILE *file = fopen(out_path, "r");
	char *text = mem_zalloc(1, 1 << 16);

	assert_non_null(file);
	assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
	fclose(file);
	return text;
}

static void expect_output(const char *expected)
{
	char *text = output();

	assert_string_equal(text, expected);
	free(text);
}

static int run(const char *words, struct buf *out, struct buf *err)
{
	char *copy, **argv = split(words, &copy);
	int code;

	buf_clear(out);
	buf_clear(err);
	code = process_run(argv, out, err);
	buf_add_str(out, "");
	buf_add_str(err, "");
	free(argv);
	free(copy);
	return code;
}

/* --- the actuator ----------------------------------------------------------------------------- */

static long put(const char *quoted)
{
	char *body = mem_strdup(quoted), *to = mem_printf("%s/v1/act", url);
	CURL *curl = curl_easy_init();
	FILE *nowhere = fopen("/dev/null", "w");
	long status = 0;

	for (char *c = body; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	curl_easy_setopt(curl, CURLOPT_URL, to);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "PUT");
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http_json_headers());
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, nowhere);
	if (curl_easy_perform(curl) == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	fclose(nowhere);
	free(body);
	free(to);
	return status;
}

struct wanted {
	const char *action;
	char id[32];
};

static bool is_asked(void *ctx)
{
	struct wanted *w = ctx;
	cJSON *act = stack_get(stack, 0, "/v1/act");
	const cJSON *r;
	bool found = false;

	cJSON_ArrayForEach (r, json_at(act, "requests")) {
		if (strcmp(json_at(r, "action")->valuestring, w->action) != 0 ||
		    strcmp(json_at(r, "state")->valuestring, "waiting") != 0)
			continue;
		snprintf(w->id, sizeof(w->id), "%s", json_at(r, "id")->valuestring);
		found = true;
	}
	cJSON_Delete(act);
	return found;
}

/* The id of the request that waits. */
static struct wanted await_request(const char *action)
{
	struct wanted w = {.action = action};

	if (!await(is_asked, &w, TIMEOUT_S))
		fail_msg("nobody asks for %s", action);
	return w;
}

static void report(const struct wanted *w, const char *state, const char *nodes)
{
	char *body = mem_printf("{'holder':'pod-1','transitions':2,'acts':['drain'],'requests':[{"
				"'id':'%s',%s}],'nodes':[%s]}",
				w->id, state, nodes);

	assert_int_equal(put(body), 200);
	free(body);
}

static bool is_written(void *text)
{
	struct stat info;
	/* The command may have opened the file and written nothing yet. */
	char *now = stat(out_path, &info) == 0 && info.st_size > 0 ? output() : NULL;
	bool found = now && strstr(now, text);

	free(now);
	return found;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_what_cannot_be(void **state)
{
	static const struct {
		const char *words;
		int code;
		const char *err;
	} cases[] = {
		{"act", 2, "say drain, status, history, pause, resume or undo"},
		{"act fly", 2, "say drain, status, history, pause, resume or undo"},
		{"act drain", 2, "name the nodes"},
		{"act undo", 2, "name the nodes"},
		{"act pause node-0000", 2, "only drain and undo take nodes"},
		{"act drain node-0000", 2, "give --yes to drain, or --dry-run"},
		{"act drain node-0000 --yes -w", 2, "--watch goes with act status and act history"},
		{"act history -o csv", 2, "-o csv and -o name go with lists"},
		{"act resume --dry-run", 2, "--dry-run goes with act drain and act undo"},
		{"act drain node-0000 nobody --yes", 4, "nodes[1]: there is no node \"nobody\""},
		{"act undo nobody", 4, "nodes[0]: there is no node \"nobody\""},
		{"act status", 4, "no actuator has reported"},
	};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	unsetenv("EVENKEEL_SERVER");
	assert_int_equal(run("act history --snapshot " SNAPSHOT, &out, &err), 2);
	assert_non_null(strstr(err.data, "act needs a server"));
	setenv("EVENKEEL_SERVER", url, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (run(cases[i].words, &out, &err) != cases[i].code ||
		    !strstr(err.data, cases[i].err))
			fail_msg("%s: %s", cases[i].words, err.data);
	assert_int_equal(run("act history", &out, &err), 0);
	buf_fini(&out);
	buf_fini(&err);
}

static void test_a_drain_is_followed(void **state)
{
	pid_t pid = start("act drain node-0000 node-0001 --yes");
	struct wanted w = await_request("drain");

	(void)state;
	assert_true(await(is_written, (char *)"node-0001: waiting\n", TIMEOUT_S));
	report(&w, "'state':'taken'",
	       "{'name':'node-0000','phase':'evicting','moved':1,'of':3,'message':'waits'}");
	assert_true(await(is_written, (char *)"1 of 3", TIMEOUT_S));
	report(&w, "'state':'done','reasons':['took 12 s']",
	       "{'name':'node-0000','phase':'drained','moved':3,'of':3},"
	       "{'name':'node-0001','phase':'drained','moved':0,'of':0}");
	assert_int_equal(end_of(pid), 0);
	expect_output("node-0000: waiting\n"
		      "node-0001: waiting\n"
		      "node-0000: evicting, 1 of 3 pods moved: waits\n"
		      "node-0001: taken\n"
		      "node-0000: drained, 3 of 3 pods moved\n"
		      "node-0001: drained, 0 of 0 pods moved\n"
		      "took 12 s\n");
}

static void test_a_refusal_has_its_reasons(void **state)
{
	pid_t pid = start("act drain node-0002 --yes");
	struct wanted w = await_request("drain");

	(void)state;
	assert_true(await(is_written, (char *)"node-0002: waiting\n", TIMEOUT_S));
	report(&w, "'state':'refused','reasons':['no wave has it','it is cordoned']", "");
	assert_int_equal(end_of(pid), 3);
	expect_output("node-0002: waiting\n"
		      "node-0002: refused\n"
		      "evenkeel: refused: no wave has it; it is cordoned\n");
}

static void test_a_node_that_is_rolled_back(void **state)
{
	pid_t pid = start("act drain node-0002 --yes");
	struct wanted w = await_request("drain");

	(void)state;
	report(&w, "'state':'done'",
	       "{'name':'node-0002','phase':'rolledBack','message':'node-0001 is hot'}");
	assert_int_equal(end_of(pid), 3);
	assert_true(is_written((char *)"evenkeel: node-0002 is rolled back: node-0001 is hot\n"));
	/* To be rolled back is what undo asks for. */
	pid = start("act undo node-0002");
	w = await_request("undo");
	report(&w, "'state':'done'", "{'name':'node-0002','phase':'rolledBack'}");
	assert_int_equal(end_of(pid), 0);
}

static void test_json_is_the_last_answer(void **state)
{
	pid_t pid = start("act pause -o json");
	struct wanted w = await_request("pause");
	char *text;
	cJSON *act;

	(void)state;
	report(&w, "'state':'done'", "");
	assert_int_equal(end_of(pid), 0);
	text = output();
	act = cJSON_ParseWithOpts(text, NULL, true);
	assert_string_equal(json_at(act, "kind")->valuestring, "Act");
	assert_string_equal(json_at(act, "actuator.holder")->valuestring, "pod-1");
	cJSON_Delete(act);
	free(text);
}

static void test_a_pause_says_when_it_is_done(void **state)
{
	pid_t pid = start("act pause");
	struct wanted w = await_request("pause");

	(void)state;
	report(&w, "'state':'done'", "");
	assert_int_equal(end_of(pid), 0);
	expect_output("pause: done\n");
}

/* The restarted aggregator knows the waves, and no request of before. */
static void test_a_restart(void **state)
{
	static const char wave[] =
		"{\"kind\":\"WaveReport\",\"plan\":\"w-1\",\"begin\":\"2026-01-31T12:00:00Z\","
		"\"end\":"
		"\"2026-01-31T12:02:05Z\",\"outcome\":\"stopped\",\"nodes\":[{\"name\":\"node-"
		"0000\","
		"\"outcome\":\"drained\"},{\"name\":\"node-0001\",\"outcome\":\"rolledBack\"}],"
		"\"evictions\":12,\"refused\":0,\"violations\":[\"node-0002: 1.8 > 1.5 cores\"]}";
	struct buf out = BUF_INIT, err = BUF_INIT;
	char *target = mem_printf("%s/v1/drain/history", url);
	pid_t pid;

	(void)state;
	assert_int_equal(http_post(target, wave, &out), 200);
	pid = start("act resume");
	await_request("resume");
	assert_int_equal(process_stop(stack->aggregators[0].pid, SIGTERM), 0);
	stack->aggregators[0].pid = 0;
	stack_start_aggregator(stack, 0);
	assert_int_equal(end_of(pid), 1);
	assert_true(is_written((char *)"the request is gone: the aggregator began anew"));
	assert_int_equal(run("act history", &out, &err), 0);
	assert_non_null(strstr(out.data, "w-1   stopped  node-0000; node-0001         12        0  "
					 "2m05s  -       node-0002: 1.8 > 1.5 cores\n"));
	buf_fini(&out);
	buf_fini(&err);
	free(target);
}

/* --- on a terminal ---------------------------------------------------------------------------- */

struct terminal {
	int fd;
	pid_t pid;
	struct buf text;
};

static struct terminal open_terminal(const char *words, unsigned short columns)
{
	struct winsize size = {.ws_row = 24, .ws_col = columns};
	char *copy, **argv = split(words, &copy);
	struct terminal t = {.text = BUF_INIT};

	t.pid = forkpty(&t.fd, NULL, NULL, &size);
	assert_true(t.pid >= 0);
	if (t.pid == 0) {
		setenv("TERM", "xterm", 1);
		execv(argv[0], argv);
		_exit(127);
	}
	free(argv);
	free(copy);
	return t;
}

/* Reads until the text is there. */
static void await_text(struct terminal *t, const char *text)
{
	int64_t end_ns = clock_mono_ns() + (int64_t)(scaled_s(TIMEOUT_S) * NS_PER_SEC);
	char bytes[4096];

	buf_add_str(&t->text, "");
	while (!strstr(t->text.data, text)) {
		struct pollfd p = {.fd = t->fd, .events = POLLIN};
		ssize_t got = 0;

		if (clock_mono_ns() > end_ns)
			fail_msg("\"%s\" is not written: %s", text, t->text.data);
		if (poll(&p, 1, 100) > 0)
			got = read(t->fd, bytes, sizeof(bytes));
		if (got < 0)
			fail_msg("\"%s\" is not written: %s", text, t->text.data);
		buf_add(&t->text, bytes, (size_t)got);
		buf_add_str(&t->text, "");
	}
}

static int close_terminal(struct terminal *t)
{
	int code = end_of(t->pid);

	close(t->fd);
	buf_fini(&t->text);
	return code;
}

static void test_a_bar_for_each_node_and_a_pause(void **state)
{
	struct terminal t = open_terminal("act drain node-0000 node-0001", 60);
	struct wanted w;

	(void)state;
	await_text(&t, "Evict the pods of node-0000, node-0001? [y/N] ");
	assert_int_equal(write(t.fd, "y\n", 2), 2);
	w = await_request("drain");
	await_text(&t, "node-0001  [--------------------]  0/0  waiting");
	report(&w, "'state':'taken'",
	       "{'name':'node-0001','phase':'evicting','moved':5,'of':10,'message':'waits for the "
	       "budget shop/web, which allows none'}");
	/* In place, and within 60 columns. */
	await_text(&t, "\033[2A\033[J");
	await_text(&t, "node-0001  [##########----------]  5/10  evicting  waits f");
	assert_null(strstr(t.text.data, "which allows none"));
	kill(t.pid, SIGINT);
	await_text(&t, "the actuator is asked to pause");
	w = await_request("pause");
	report(&w, "'state':'done'", "");
	assert_int_equal(close_terminal(&t), 1);
}

static void test_without_a_yes_nothing_is_asked(void **state)
{
	struct terminal t = open_terminal("act drain node-0000", 80);
	cJSON *before = stack_get(stack, 0, "/v1/act"), *after;

	(void)state;
	await_text(&t, "[y/N] ");
	assert_int_equal(write(t.fd, "\n", 1), 1);
	await_text(&t, "nothing is asked of the actuator");
	assert_int_equal(close_terminal(&t), 3);
	after = stack_get(stack, 0, "/v1/act");
	assert_int_equal(cJSON_GetArraySize(json_at(after, "requests")),
			 cJSON_GetArraySize(json_at(before, "requests")));
	cJSON_Delete(before);
	cJSON_Delete(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_cannot_be),
		cmocka_unit_test(test_a_drain_is_followed),
		cmocka_unit_test(test_a_refusal_has_its_reasons),
		cmocka_unit_test(test_a_node_that_is_rolled_back),
		cmocka_unit_test(test_json_is_the_last_answer),
		cmocka_unit_test(test_a_pause_says_when_it_is_done),
		cmocka_unit_test(test_a_bar_for_each_node_and_a_pause),
		cmocka_unit_test(test_without_a_yes_nothing_is_asked),
		cmocka_unit_test(test_a_restart),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
