/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debian's own Prometheus scrapes an aggregator under a small fleet: it reads every line, evaluates
 * every rule, and has an answer to every question of the dashboard. promtool finds nothing to say
 * of metrics and rules, and the rules fire when they should.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/fleet/load.h"
#include "tests/process.h"

#define RULES	  "packaging/monitoring/rules.yaml"
#define DASHBOARD "packaging/monitoring/dashboard.json"
#define RUNBOOK	  "packaging/docs/alerts.md"
#define PLAYED	  "packaging/monitoring/rules_test.yaml"

enum { NODES = 30, TIMEOUT_S = 90 };

struct scene {
	struct stack *stack;
	pid_t fleet, prometheus;
	char *dump, *url, *peer; /* owned */
	const char *more[3]; /* options of the aggregator */
	cJSON *rules; /* the last answer of /api/v1/rules */
	struct buf metrics; /* one scrape, as text */
};

/* --- the scene -------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static char *read_text(const char *path)
{
	char *argv[] = {(char *)"/bin/cat", (char *)path, NULL};
	struct buf text = BUF_INIT;

	assert_int_equal(process_run(argv, &text, NULL), 0);
	return buf_take(&text, NULL);
}

static void write_dump(struct scene *s)
{
	const char *folder = getenv("TB");
	char *fleet = mem_printf("%s/fleet", folder ? folder : "build/tests");
	char nodes[] = "30";
	char *argv[] = {fleet, (char *)"--nodes", nodes, (char *)"--dump", NULL, NULL};

	s->dump = mem_printf("%s/cluster.json", s->stack->folder);
	argv[4] = s->dump;
	assert_int_equal(process_run(argv, NULL, NULL), 0);
	free(fleet);
}

static void start_prometheus(struct scene *s)
{
	int port = free_port();
	char here[4096];
	char *config = mem_printf("%s/prometheus.yml", s->stack->folder);
	char *log = mem_printf("%s/prometheus.log", s->stack->folder), *text;
	char *argv[] = {(char *)"/usr/bin/prometheus", mem_printf("--config.file=%s", config),
			mem_printf("--storage.tsdb.path=%s/tsdb", s->stack->folder),
			mem_printf("--web.listen-address=127.0.0.1:%d", port), NULL};

	assert_non_null(getcwd(here, sizeof(here)));
	text = mem_printf("global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
			  "rule_files: [%s/" RULES "]\n"
			  "scrape_configs:\n"
			  "  - job_name: evenkeel\n"
			  "    static_configs: [{targets: ['127.0.0.1:%d']}]\n",
			  here, s->stack->aggregators[0].http_port);
	write_file(config, text);
	s->url = mem_printf("http://127.0.0.1:%d", port);
	s->prometheus = process_start(log, argv);
	assert_true(s->prometheus > 0);
	for (int i = 1; argv[i]; i++)
		free(argv[i]);
	free(config);
	free(log);
	free(text);
}

static int setup(void **state)
{
	static const char *const options[] = {"--nodes", "30", "--interval", "1s", NULL};
	struct scene *s = mem_zalloc(1, sizeof(*s));

	*state = s;
	s->stack = stack_new();
	write_dump(s);
	s->stack->aggregators[0].snapshot_path = s->dump;
	/* The address of the other aggregator is its own, so it is alone. */
	s->stack->aggregators[0].ingest_port = free_port();
	s->peer = mem_printf("tcp://127.0.0.1:%d", s->stack->aggregators[0].ingest_port);
	s->more[0] = "--peer";
	s->more[1] = s->peer;
	s->stack->aggregators[0].more = s->more;
	stack_start_aggregator(s->stack, 0);
	s->fleet = fleet_start(s->stack, options);
	start_prometheus(s);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	process_stop(s->prometheus, SIGTERM);
	cJSON_Delete(fleet_stop(s->stack, s->fleet));
	stack_free(s->stack, 0);
	cJSON_Delete(s->rules);
	buf_fini(&s->metrics);
	free(s->dump);
	free(s->url);
	free(s->peer);
	free(s);
	return 0;
}

/* --- questions -------------------------------------------------------------------------------- */

/* What an expression is now; NULL: Prometheus does not answer or refuses it. */
static cJSON *query(const struct scene *s, const char *expression)
{
	char *escaped = curl_easy_escape(NULL, expression, 0);
	char *url = mem_printf("%s/api/v1/query?query=%s", s->url, escaped);
	cJSON *answer = http_get_json(url);

	curl_free(escaped);
	free(url);
	return answer;
}

static size_t samples_of(const struct scene *s, const char *expression)
{
	cJSON *answer = query(s, expression);
	int count = cJSON_GetArraySize(json_at(answer, "data.result"));

	cJSON_Delete(answer);
	return (size_t)count;
}

static bool all_nodes_are_told(void *ctx)
{
	return samples_of(ctx, "evenkeel_nodes{state=\"fresh\"} == 30 and on (job, instance) "
			       "up{job=\"evenkeel\"} == 1") == 1;
}

static bool means_are_told(void *ctx)
{
	return samples_of(ctx, "evenkeel_node_cpu_usage_cores{window=\"5m\",stat=\"mean\"}") ==
	       NODES;
}

static void test_nodes_are_scraped(void **state)
{
	assert_true(await(all_nodes_are_told, *state, TIMEOUT_S));
	assert_true(await(means_are_told, *state, TIMEOUT_S));
}

/* --- rules ------------------------------------------------------------------------------------ */

/* Calls back for every rule; how many there are. */
static size_t walk_rules(const struct scene *s, bool (*good)(const cJSON *rule), size_t *bad)
{
	const cJSON *group, *rule;
	size_t count = 0;

	cJSON_ArrayForEach (group, json_at(s->rules, "data.groups")) {
		cJSON_ArrayForEach (rule, json_at(group, "rules")) {
			count++;
			*bad += !good(rule);
		}
	}
	return count;
}

static bool is_healthy(const cJSON *rule)
{
	const char *health = cJSON_GetStringValue(json_at(rule, "health"));

	return health && !strcmp(health, "ok");
}

static bool rules_are_healthy(void *ctx)
{
	struct scene *s = ctx;
	char *url = mem_printf("%s/api/v1/rules", s->url);
	size_t bad = 0;

	cJSON_Delete(s->rules);
	s->rules = http_get_json(url);
	free(url);
	return walk_rules(s, is_healthy, &bad) > 20 && !bad;
}

static bool risks_are_recorded(void *ctx)
{
	return samples_of(ctx, "evenkeel:node_cpu_risk:ratio") == NODES;
}

static void test_rules_are_evaluated(void **state)
{
	assert_true(await(rules_are_healthy, *state, TIMEOUT_S));
	assert_true(await(risks_are_recorded, *state, TIMEOUT_S));
}

static void expect_promtool(const char *command)
{
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)command, NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	int status = process_run(argv, &out, &err);

	if (status)
		fail_msg("%s: %s%s", command, out.data ? out.data : "", err.data ? err.data : "");
	buf_fini(&out);
	buf_fini(&err);
}

static void test_promtool_finds_nothing(void **state)
{
	struct scene *s = *state;
	char *url = mem_printf("http://127.0.0.1:%d/metrics", s->stack->aggregators[0].http_port);
	char *path = mem_printf("%s/metrics", s->stack->folder);
	char *command = mem_printf("promtool check metrics < %s", path);

	assert_int_equal(http_get(url, &s->metrics), 200);
	write_file(path, s->metrics.data);
	expect_promtool(command);
	expect_promtool("promtool check rules " RULES);
	expect_promtool("cd packaging/monitoring && promtool test rules rules_test.yaml");
	free(url);
	free(path);
	free(command);
}

/* Its own part of the runbook, and a cause that is played in the tests of the rules. */
static bool is_told_and_played(const cJSON *rule)
{
	const char *name = cJSON_GetStringValue(json_at(rule, "name")),
		   *url = cJSON_GetStringValue(json_at(rule, "annotations.runbook_url"));
	char *runbook = read_text(RUNBOOK), *played = read_text(PLAYED);
	char *heading = mem_printf("\n## %s\n", name), *test = mem_printf("alertname: %s\n", name);
	bool is_alert = strcmp(cJSON_GetStringValue(json_at(rule, "type")), "alerting") == 0;
	const char *anchor = url ? strstr(url, "/alerts.md#") : NULL;
	bool good = !is_alert || (anchor && strcasecmp(strchr(anchor, '#') + 1, name) == 0 &&
				  strstr(runbook, heading) && strstr(played, test));

	if (!good)
		print_message("%s: its runbook or its test is missing\n", name);
	free(runbook);
	free(played);
	free(heading);
	free(test);
	return good;
}

static void test_every_alert_has_a_runbook(void **state)
{
	size_t bad = 0;

	assert_true(walk_rules(*state, is_told_and_played, &bad) > 20);
	assert_int_equal(bad, 0);
}

/* --- what rules and dashboard ask for --------------------------------------------------------- */

/* Told only where there is TLS, and where there is a database; tests of these look at the names. */
static bool is_told_elsewhere(const char *name)
{
	return strstr(name, "evenkeel_http_certificate") == name ||
	       strstr(name, "evenkeel_http_reload") == name ||
	       strstr(name, "evenkeel_store_") == name;
}

/* Every name of a metric in a text is one that a scrape has. */
static size_t check_names(const struct scene *s, const char *text)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, "evenkeel_")); count++) {
		char name[128], *line;
		size_t len = 0;

		while (islower((unsigned char)at[len]) || isdigit((unsigned char)at[len]) ||
		       at[len] == '_')
			len++;
		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		line = mem_printf("# TYPE %s ", name);
		if (!strstr(s->metrics.data, line) && !is_told_elsewhere(name))
			fail_msg("there is no metric %s", name);
		free(line);
		at += len;
	}
	return count;
}

static void test_names_are_those_of_a_scrape(void **state)
{
	struct scene *s = *state;
	char *rules = read_text(RULES), *dashboard = read_text(DASHBOARD);

	assert_true(check_names(s, rules) > 20);
	assert_true(check_names(s, dashboard) > 20);
	free(rules);
	free(dashboard);
}

/* With the variable that people choose a job by set to ours. */
static char *expression_of(const cJSON *target)
{
	const char *text = cJSON_GetStringValue(json_at(target, "expr"));
	struct buf out = BUF_INIT;
	const char *variable;

	assert_non_null(text);
	for (; (variable = strstr(text, "$job")); text = variable + strlen("$job")) {
		buf_add(&out, text, (size_t)(variable - text));
		buf_add_str(&out, "evenkeel");
	}
	buf_add_str(&out, text);
	return buf_take(&out, NULL);
}

/* Some ask for what need not be there: what waits, what broke. */
static bool may_be_empty(const char *expression)
{
	return strstr(expression, "> 0") || strstr(expression, "evenkeel_extender_seconds_total");
}

struct question {
	const struct scene *scene;
	const char *expression;
};

static bool is_answered(void *ctx)
{
	const struct question *question = ctx;

	return samples_of(question->scene, question->expression) > 0;
}

/* The rules of a group are evaluated one after another: a scrape may come between two of them. */
static void check_target(const struct scene *s, const cJSON *panel, const cJSON *target)
{
	char *expression = expression_of(target);
	const char *title = cJSON_GetStringValue(json_at(panel, "title"));
	struct question question = {s, expression};
	cJSON *answer = query(s, expression);

	if (!answer)
		fail_msg("%s: Prometheus refuses %s", title, expression);
	if (!may_be_empty(expression) && !await(is_answered, &question, TIMEOUT_S))
		fail_msg("%s: nothing is there for %s", title, expression);
	cJSON_Delete(answer);
	free(expression);
}

static bool rates_are_there(void *ctx)
{
	return samples_of(ctx, "rate(evenkeel_frames_total[5m])") > 0 &&
	       samples_of(ctx, "evenkeel_drain_wave_nodes") > 0;
}

static void test_every_panel_has_something_to_show(void **state)
{
	char *text = read_text(DASHBOARD);
	cJSON *dashboard = cJSON_Parse(text);
	const cJSON *panel, *target;
	size_t targets = 0;

	assert_true(await(rates_are_there, *state, TIMEOUT_S));
	cJSON_ArrayForEach (panel, json_at(dashboard, "panels")) {
		cJSON_ArrayForEach (target, json_at(panel, "targets")) {
			check_target(*state, panel, target);
			targets++;
		}
	}
	assert_true(targets > 20);
	cJSON_Delete(dashboard);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes_are_scraped),
		cmocka_unit_test(test_rules_are_evaluated),
		cmocka_unit_test(test_promtool_finds_nothing),
		cmocka_unit_test(test_every_alert_has_a_runbook),
		cmocka_unit_test(test_names_are_those_of_a_scrape),
		cmocka_unit_test(test_every_panel_has_something_to_show),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
