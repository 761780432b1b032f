/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record of a real aggregator that a fleet reports to: commands on it answer, byte for byte, what the
 * aggregator answered at that moment, also after it was killed in the middle of a write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/clock.h"
#include "shared/document.h"
#include "shared/mem.h"
#include "tests/fleet/cluster.h"
#include "tests/fleet/dump.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"

enum { NODES = 20, MOMENTS = 3, ROUTES = 5, TIMEOUT_S = 60, ARGS = 16 };

static const struct cluster_config config = {
	.nodes = NODES, .pods_per_node = 10, .containers = 1, .seed = 11};

/* A command that shows the answer of a path unchanged, with -o json. */
static const struct {
	const char *path, *command[3];
} routes[ROUTES] = {
	{"/v1/nodes", {"nodes"}}, {"/v1/pods", {"pods", "-A"}}, {"/v1/quotas", {"quota"}},
	{"/v1/drain", {"drain"}}, {"/v1/slack", {"slack"}},
};

struct answer {
	char time[40];
	struct buf text; /* owned */
};

struct scene {
	struct stack *stack;
	char *dump_path, *record;
	struct answer answers[MOMENTS][ROUTES];
	double views; /* published, when it was last looked */
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct cluster *cluster = cluster_new(&config);
	struct error error;
	int rc;

	s->stack = stack_new();
	s->dump_path = mem_printf("%s/dump.json", s->stack->folder);
	s->record = mem_printf("%s/record", s->stack->folder);
	rc = dump_write(cluster, s->dump_path, &error);
	cluster_free(cluster);
	*state = s;
	return rc;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (int m = 0; m < MOMENTS; m++)
		for (int k = 0; k < ROUTES; k++)
			buf_fini(&s->answers[m][k].text);
	free(s->dump_path);
	free(s->record);
	stack_free(s->stack, 0);
	free(s);
	return 0;
}

static double published(const struct scene *s)
{
	return stack_metric(s->stack, 0, "evenkeel_views_published_total");
}

/* Another view than the last one that was looked at, of nodes that are all measured. */
static bool is_news(void *ctx)
{
	struct scene *s = ctx;

	return published(s) > s->views &&
	       stack_metric(s->stack, 0, "evenkeel_nodes{state=\"fresh\"}") == NODES;
}

/* Of the view and the plan that answers are made of. */
struct sources {
	double views;
	char planned[40]; /* "": the answer tells of no plan */
};

static struct sources look(const struct scene *s, const char *url, struct buf *text)
{
	struct sources found = {.views = published(s)};
	const char *planned;

	buf_clear(text);
	assert_int_equal(http_get(url, text), 200);
	planned = strstr(text->data, "\"planned\":");
	if (planned)
		snprintf(found.planned, sizeof(found.planned), "%.*s", (int)strcspn(planned, ","),
			 planned);
	return found;
}

static bool is_same(struct sources a, struct sources b)
{
	return a.views == b.views && strcmp(a.planned, b.planned) == 0;
}

/*
 * An answer whose millisecond, which is all it tells of its time, is of one view and plan alone: an
 * answer two milliseconds before it has the same, and one after it.
 */
static void ask(struct scene *s, const char *path, struct answer *a)
{
	char *url = mem_printf("http://127.0.0.1:%d%s", s->stack->aggregators[0].http_port, path);
	struct sources before, now, after;
	struct buf other = BUF_INIT;
	const char *time;
	int64_t looked_ns;

	do {
		before = look(s, url, &other);
		looked_ns = clock_mono_ns();
		while (clock_mono_ns() < looked_ns + 2 * NS_PER_MS)
			;
		now = look(s, url, &a->text);
		after = look(s, url, &other);
	} while (!is_same(before, now) || !is_same(now, after) || published(s) != now.views);
	s->views = now.views;
	buf_fini(&other);
	time = strstr(a->text.data, "\"time\":\"");
	assert_non_null(time);
	snprintf(a->time, sizeof(a->time), "%.*s", (int)strcspn(time + 8, "\""), time + 8);
	free(url);
}

/* Runs evenkeel replay; the words end with NULL. */
static int replay(const struct scene *s, const char *const *words, struct buf *out, struct buf *err)
{
	char *argv[ARGS] = {(char *)program_path("evenkeel"), (char *)"replay", s->record};

	for (int i = 0; words[i]; i++)
		argv[i + 3] = (char *)words[i];
	return process_run(argv, out, err);
}

static void compare(const struct scene *s)
{
	for (int m = 0; m < MOMENTS; m++) {
		for (int k = 0; k < ROUTES; k++) {
			const struct answer *a = &s->answers[m][k];
			const char *words[] = {"--at",
					       a->time,
					       "--",
					       routes[k].command[0],
					       "-o",
					       "json",
					       routes[k].command[1],
					       NULL};
			struct buf out = BUF_INIT, err = BUF_INIT;
			size_t same = 0;

			assert_int_equal(replay(s, words, &out, &err), 0);
			while (same < out.len && out.data[same] == a->text.data[same])
				same++;
			if (same < out.len || out.len != a->text.len)
				fail_msg("%s at %s: %.200s, replayed: %.200s", routes[k].path,
					 a->time, a->text.data + same, out.data + same);
			buf_fini(&out);
			buf_fini(&err);
		}
	}
}

#define WORDS(...) ((const char *[]){__VA_ARGS__, NULL})

/* Several moments: JSON has no titles. */
static void compare_several(const struct scene *s)
{
	const struct answer *a = &s->answers[0][0], *b = &s->answers[MOMENTS - 1][0];
	struct buf out = BUF_INIT, err = BUF_INIT, want = BUF_INIT;

	assert_int_equal(
		replay(s, WORDS("--at", a->time, "--at", b->time, "-o", "json", "--", "nodes"),
		       &out, &err),
		0);
	buf_printf(&want, "%s%s", a->text.data, b->text.data);
	assert_int_equal(out.len, want.len);
	assert_memory_equal(out.data, want.data, want.len);
	buf_fini(&out);
	buf_fini(&err);
	buf_fini(&want);
}

/* The answer, or half of it, of evenkeel replay -- whatif. */
static cJSON *foresee(const struct scene *s, const char *const *words)
{
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *doc;

	if (replay(s, words, &out, &err))
		fail_msg("%s", err.data);
	doc = cJSON_Parse(out.data);
	assert_non_null(doc);
	buf_fini(&out);
	buf_fini(&err);
	return doc;
}

/* A change of a recorded moment: the cluster before it is the recorded one. */
static void change(const struct scene *s)
{
	for (int m = 0; m < MOMENTS; m++) {
		const struct answer *a = &s->answers[m][0];
		cJSON *live = cJSON_Parse(a->text.data), *doc;
		const char *node = document_text(document_first(live, "items"), "name");

		doc = foresee(s, WORDS("--at", a->time, "--", "whatif", "--remove", node, "-o",
				       "json", "--", "nodes"));
		if (!cJSON_Compare(document_at(doc, "before"), live, true))
			fail_msg("%.300s before the change: %.300s", a->text.data,
				 cJSON_Print(document_at(doc, "before")));
		assert_int_equal(cJSON_GetArraySize(
					 document_at(document_first(doc, "after"), "answer.items")),
				 NODES - 1);
		cJSON_Delete(doc);
		doc = foresee(s, WORDS("--at", a->time, "--", "whatif", "--cordon", node, "-o",
				       "json"));
		assert_true(document_number(document_first(doc, "items"), "nodes") == NODES);
		cJSON_Delete(doc);
		doc = foresee(s, WORDS("--at", a->time, "--", "whatif", "--add", node, "-o", "json",
				       "--", "drain"));
		assert_int_equal(cJSON_GetArraySize(
					 document_at(document_first(doc, "after"), "answer.items")),
				 NODES + 1);
		cJSON_Delete(doc);
		cJSON_Delete(live);
	}
}

static void start(struct scene *s)
{
	static const char *more[] = {"--plan-interval", "1s", "--record", NULL, NULL};

	more[3] = s->record;
	s->stack->aggregators[0].snapshot_path = s->dump_path;
	s->stack->aggregators[0].more = more;
	stack_start_aggregator(s->stack, 0);
}

/* Two would write one record. */
static void refuse_another(const struct scene *s)
{
	char *ingest = mem_printf("tcp://127.0.0.1:%d", free_port());
	char *argv[] = {(char *)program_path("evenkeel-aggregator"),
			(char *)"--listen",
			(char *)"127.0.0.1:0",
			(char *)"--ingest",
			ingest,
			(char *)"--key-file",
			s->stack->key_path,
			(char *)"--record",
			s->record,
			NULL};
	struct buf out = BUF_INIT;

	assert_int_equal(process_run(argv, &out, &out), 1);
	buf_add_str(&out, "");
	if (!strstr(out.data, "another aggregator records there"))
		fail_msg("%s", out.data);
	buf_fini(&out);
	free(ingest);
}

static cJSON *measure(const struct scene *s)
{
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *doc;

	assert_int_equal(replay(s, (const char *[]){"-o", "json", NULL}, &out, &err), 0);
	doc = cJSON_Parse(out.data);
	assert_non_null(doc);
	buf_fini(&out);
	buf_fini(&err);
	return doc;
}

static double number(const cJSON *doc, const char *name)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItem(doc, name));
}

static void test_replay_is_live(void **state)
{
	static const char *const options[] = {"--nodes",    "20", "--pods-per-node", "10",
					      "--seed",	    "11", "--containers",    "1",
					      "--interval", "1s", "--pod-life",	     "8s",
					      NULL};
	struct scene *s = *state;
	pid_t fleet;
	cJSON *doc;

	start(s);
	refuse_another(s);
	fleet = fleet_start(s->stack, options);
	for (int m = 0; m < MOMENTS; m++) {
		for (int k = 0; k < ROUTES; k++) {
			assert_true(await(is_news, s, TIMEOUT_S));
			ask(s, routes[k].path, &s->answers[m][k]);
		}
	}
	/* The last views are written by then. */
	assert_true(await(is_news, s, TIMEOUT_S));
	assert_true(await(is_news, s, TIMEOUT_S));
	stack_kill_aggregator(s->stack, 0);
	compare(s);
	compare_several(s);
	change(s);
	doc = measure(s);
	assert_true(number(doc, "gaps") == 0 && number(doc, "views") >= 2 * MOMENTS);
	assert_true(number(doc, "intervals") >= NODES);
	cJSON_Delete(doc);

	/* It goes on in the same directory, behind a gap. */
	start(s);
	s->views = 0;
	assert_true(await(is_news, s, TIMEOUT_S));
	assert_true(await(is_news, s, TIMEOUT_S));
	ask(s, routes[0].path, &s->answers[0][0]);
	assert_true(await(is_news, s, TIMEOUT_S));
	assert_true(await(is_news, s, TIMEOUT_S));
	cJSON_Delete(fleet_stop(s->stack, fleet));
	assert_int_equal(process_stop(s->stack->aggregators[0].pid, SIGTERM), 0);
	s->stack->aggregators[0].pid = 0;
	compare(s);
	doc = measure(s);
	assert_true(number(doc, "gaps") == 1 && number(doc, "segments") == 2);
	cJSON_Delete(doc);
}

/* --- what cannot be -------------------------------------------------------------------------- */

static void expect(const struct scene *s, const char *const *words, int status, const char *says)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	assert_int_equal(replay(s, words, &out, &err), status);
	if (!err.data || !strstr(err.data, says))
		fail_msg("\"%s\" does not say \"%s\"", err.data ? err.data : "", says);
	buf_fini(&out);
	buf_fini(&err);
}

static void test_refusals(void **state)
{
	struct scene *s = *state;
	char *record = s->record;

	expect(s, WORDS("--at", "2020-01-01T00:00:00Z", "--", "nodes"), 4, "the record begins at");
	expect(s, WORDS("--at", "2100-01-01T00:00:00Z", "--", "nodes"), 4, "the record ends at");
	expect(s, WORDS("--at", "noon", "--", "nodes"), 2, "--at: \"noon\"");
	expect(s, WORDS("--from", "2100-01-01T00:00:00Z", "--", "nodes"), 2, "go together");
	expect(s,
	       WORDS("--at", "2026-01-31T12:00:00Z", "--at", "2026-01-31T11:00:00Z", "--", "nodes"),
	       2,
	       "--at 2026-01-31T11:00:00Z: times must ascend; the --at before it is "
	       "2026-01-31T12:00:00Z");
	expect(s, WORDS("--at", s->answers[1][0].time), 2, "name a command");
	expect(s, WORDS("--policy", "now"), 2, "name a moment");
	expect(s, WORDS("--policy", "now", "--at", s->answers[1][0].time, "--", "nodes"), 2,
	       "do not go together");
	expect(s, WORDS("--at", s->answers[1][0].time, "--", "doctor", "--watch"), 2, "do not go");
	expect(s, WORDS("--at", s->answers[1][0].time, "--", "replay", "x"), 2,
	       "cannot be run within another");
	expect(s, WORDS("--limit", "1", "--at", s->answers[1][0].time, "--", "nodes"), 2,
	       "--limit is for COMMAND: give it behind --, as in -- nodes --limit");
	expect(s,
	       WORDS("--at", s->answers[1][0].time, "--", "whatif", "--cordon", "x", "-A", "--",
		     "pods"),
	       2, "--all-namespaces is for COMMAND");
	expect(s,
	       WORDS("--at", s->answers[1][0].time, "--", "whatif", "--cordon", "x", "--", "replay",
		     "y"),
	       2, "cannot be run within another");
	expect(s, WORDS("--at", s->answers[1][0].time, "--", "nodes", "--server", "x"), 2,
	       "COMMAND: it answers from what replay reads");
	expect(s,
	       WORDS("--at", s->answers[1][0].time, "--", "whatif", "--cordon", "x", "--snapshot",
		     "y"),
	       2, "COMMAND: it answers from what replay reads");
	s->record = s->stack->folder;
	expect(s, WORDS("--at", s->answers[1][0].time, "--", "nodes"), 1, "there is no record");
	s->record = record;
}

static void test_no_view(void **state)
{
	const struct scene *s = *state;
	char *dir = mem_printf("%s/cut", s->stack->folder);
	char *path = mem_printf("%s/evenkeel-record.0000000000000000001.gz", dir);
	char *argv[] = {(char *)program_path("evenkeel"), (char *)"replay", dir, NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	FILE *f;

	assert_int_equal(mkdir(dir, 0700), 0);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs("\1\2", f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(process_run(argv, &out, &err), 0);
	if (!strstr(out.data, "No view is recorded; size of the segments: 2."))
		fail_msg("%s", out.data);
	buf_fini(&out);
	buf_fini(&err);
	free(path);
	free(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replay_is_live),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_no_view),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
