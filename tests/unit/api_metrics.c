/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/cluster_fixture.h"
#include "tests/view_fixture.h"

static struct api_fixture f;

static bool has_line(const char *line)
{
	char *framed = mem_printf("\n%s\n", line);
	bool found = strstr(f.response.body.data, framed) != NULL;

	free(framed);
	return found;
}

static bool has_text(const char *text)
{
	return strstr(f.response.body.data, text) != NULL;
}

/* --- the format, as its specification words it ------------------------------------------------ */

/* The end of a metric or label name at p, or p. */
static const char *skip_name(const char *p)
{
	if (!isalpha((unsigned char)*p) && *p != '_')
		return p;
	while (isalnum((unsigned char)*p) || *p == '_')
		p++;
	return p;
}

/* {name="value",..} at p; NULL when it is not well formed. */
static const char *skip_labels(const char *p)
{
	if (*p != '{')
		return p;
	do {
		const char *end = skip_name(++p);

		if (end == p || end[0] != '=' || end[1] != '"')
			return NULL;
		for (p = end + 2; *p != '"'; p++) {
			if (*p == '\0' || *p == '\n')
				return NULL;
			if (*p == '\\' && !strchr("\\\"n", *++p))
				return NULL;
		}
		p++;
	} while (*p == ',');
	return *p == '}' ? p + 1 : NULL;
}

/* "# HELP name text" or "# TYPE name type": the name goes to family. */
static void check_comment(const char *line, char *family, size_t size, bool *typed)
{
	const char *name = line + strlen("# HELP ");
	const char *end = skip_name(name);

	assert_true(end > name && *end == ' ' && end[1]);
	if (strncmp(line, "# HELP ", 7) == 0) {
		snprintf(family, size, "%.*s", (int)(end - name), name);
		*typed = false;
		return;
	}
	assert_memory_equal(line, "# TYPE ", 7);
	assert_int_equal(strlen(family), end - name);
	assert_memory_equal(family, name, end - name);
	assert_true(strcmp(end + 1, "gauge") == 0 || strcmp(end + 1, "counter") == 0);
	assert_int_equal(strcmp(end + 1, "counter") == 0,
			 strcmp(family + strlen(family) - 6, "_total") == 0);
	*typed = true;
}

static void check_sample(const char *line, const char *family)
{
	const char *end = skip_name(line);
	char *rest;

	assert_int_equal(strlen(family), end - line);
	assert_memory_equal(family, line, end - line);
	end = skip_labels(end);
	assert_non_null(end);
	assert_int_equal(*end, ' ');
	strtod(end + 1, &rest);
	assert_true(rest > end + 1 && *rest == '\0');
}

/*
 * Each line parses, each sample follows its family's HELP and TYPE, no family or sample appears
 * twice.
 */
static void check_format(const char *text)
{
	char *copy = mem_strdup(text), *save, family[128] = "";
	bool typed = false;

	assert_true(text[strlen(text) - 1] == '\n');
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *framed = mem_printf("\n%.*s%c", (int)(strrchr(line, ' ') - line), line, ' ');
		const char *first = strstr(text, framed);

		if (line[0] != '#')
			assert_true(!first || !strstr(first + 1, framed));
		free(framed);
		assert_true(!strncmp(line, "# ", 2) || !strncmp(line, "evenkeel_", 9) ||
			    !strncmp(line, "process_", 8));
		if (line[0] == '#') {
			check_comment(line, family, sizeof(family), &typed);
			continue;
		}
		assert_true(typed);
		check_sample(line, family);
	}
	free(copy);
}

static void test_format(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	assert_string_equal(f.response.content_type, "text/plain; version=0.0.4; charset=utf-8");
	check_format(f.response.body.data);
	view_slot_publish(f.ctx.views, view_fixture_of(NULL, 0));
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	check_format(f.response.body.data);
}

static void test_labels_are_escaped(void **state)
{
	const struct node_stats stats =
		view_fixture_node("a\"b\\c\nd", VIEW_FIXTURE_NOW_NS, 900, 1000, 10);

	(void)state;
	view_slot_publish(f.ctx.views, view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	check_format(f.response.body.data);
	assert_true(has_line("evenkeel_node_cpu_capacity_cores{node=\"a\\\"b\\\\c\\nd\"} 4"));
}

static void test_values(void **state)
{
	static const char *const lines[] = {
		"evenkeel_frames_total{result=\"applied\"} 12",
		"evenkeel_frames_total{result=\"forged\"} 0",
		"evenkeel_frames_received_bytes_total 4096",
		"evenkeel_ingest_connections 6",
		"evenkeel_ingest_refused_total 2",
		"evenkeel_ingest_closed_total{reason=\"room\"} 9",
		"evenkeel_ingest_closed_total{reason=\"noHello\"} 0",
		"evenkeel_http_requests_total{code=\"2xx\"} 3",
		"evenkeel_views_published_total 5",
		"evenkeel_nodes{state=\"fresh\"} 2",
		"evenkeel_nodes{state=\"late\"} 1",
		"evenkeel_nodes{state=\"expired\"} 1",
		"evenkeel_nodes{state=\"none\"} 1",
		"evenkeel_node_sample_age_seconds{node=\"alpha\"} 2",
		"evenkeel_node_sample_age_seconds{node=\"gone\"} 400",
		"evenkeel_node_cpu_capacity_cores{node=\"bravo\"} 4",
		"evenkeel_node_memory_capacity_bytes{node=\"alpha\"} 8589934592",
		"evenkeel_node_cpu_latest_cores{node=\"alpha\"} 1.1",
		"evenkeel_node_memory_latest_bytes{node=\"alpha\"} 2147483648",
		"evenkeel_node_working_set_bytes{node=\"alpha\"} 1073741824",
		"evenkeel_node_workloads{node=\"alpha\"} 3",
		"evenkeel_node_agent_cpu_cores{node=\"alpha\"} 0.0045",
		"evenkeel_node_sampler_rate_hertz{node=\"alpha\"} 10",
		"evenkeel_node_sampler_pass_seconds{node=\"alpha\"} 0.00008525",
		"evenkeel_node_sampler_missed_ticks_total{node=\"alpha\"} 17",
		"evenkeel_node_memory_available_bytes{node=\"alpha\"} 6442450944",
		"evenkeel_node_swap_bytes{node=\"alpha\"} 134217728",
		"evenkeel_node_pids{node=\"alpha\"} 321",
		"evenkeel_node_cpu_seconds_total{node=\"alpha\",mode=\"user\"} 7",
		"evenkeel_node_cpu_seconds_total{node=\"alpha\",mode=\"system\"} 2.0025",
		"evenkeel_node_cpu_seconds_total{node=\"alpha\",mode=\"iowait\"} 1.205",
		"evenkeel_node_cpu_seconds_total{node=\"alpha\",mode=\"steal\"} 0.4",
		"evenkeel_node_contention_seconds_total{node=\"alpha\",resource=\"cpu\"} 1.25",
		"evenkeel_node_stalled_seconds_total{node=\"alpha\",resource=\"cpu\"} 0.3125",
		"evenkeel_node_stalled_ratio{node=\"alpha\",resource=\"cpu\"} 0.03125",
		"evenkeel_node_sampler_info{node=\"alpha\",tier=\"T1\"} 1",
		"evenkeel_node_cpu_usage_cores{node=\"alpha\",window=\"5m\",stat=\"mean\"} 1",
		"evenkeel_node_cpu_usage_cores{node=\"alpha\",window=\"15m\",stat=\"stddev\"} 0.3",
		"evenkeel_node_cpu_usage_cores{node=\"bravo\",window=\"5m\",stat=\"p95\"} 2.8",
		"evenkeel_node_cpu_usage_cores{node=\"bravo\",window=\"5m\",stat=\"max\"} 3.6",
		"evenkeel_node_contention_ratio{node=\"alpha\",resource=\"cpu\"} 0.125",
		"evenkeel_quarantined_values_total{reason=\"counterReset\"} 7",
		"evenkeel_quarantined_values_total{reason=\"notANumber\"} 0",
		"evenkeel_node_quarantined_values_total{node=\"alpha\"} 0",
		"evenkeel_node_quarantined_values_total{node=\"gone\"} 0",
	};

	(void)state;
	counter_add(&f.counters.frames[FRAME_RESULT_applied], 12);
	counter_add(&f.counters.frame_bytes, 4096);
	counter_set(&f.counters.ingest.connections, 6);
	counter_add(&f.counters.ingest.refused, 2);
	counter_add(&f.counters.ingest.closed[INGEST_CLOSING_ROOM], 9);
	counter_add(&f.counters.http_requests[2], 3);
	counter_add(&f.counters.views_published, 5);
	counter_add(&f.counters.quarantined[QUARANTINE_counterReset], 7);
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!has_line(lines[i]))
			fail_msg("no line %s", lines[i]);
	assert_true(has_text("\nevenkeel_node_memory_usage_bytes{node=\"alpha\",window=\"5m\","
			     "stat=\"mean\"} 2147483648\n"));
	assert_true(has_text("\nevenkeel_build_info{version=\"" EVENKEEL_VERSION "\"} 1\n"));
}

/* What is not known has no series: neither a 0 nor a NaN. */
static void test_unknown_is_absent(void **state)
{
	static const char *const absent[] = {
		"{node=\"mute\"",
		"cores{node=\"gone\"",
		"bytes{node=\"gone\"",
		"info{node=\"gone\"",
		"ticks_total{node=\"gone\"",
		"seconds_total{node=\"gone\"",
		"skew_seconds{",
		"swap_bytes{node=\"bravo\"",
		"pids{node=\"bravo\"",
		"resource=\"memory\"",
		"nan",
		"null",
	};

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (has_text(absent[i]))
			fail_msg("%s is there", absent[i]);
}

/*
 * A node whose agent tells nothing of its machine, and whose kernel has no PSI, has no such
 * counters.
 */
static void test_counters_of_the_unknown(void **state)
{
	struct node_stats stats = view_fixture_node("old", VIEW_FIXTURE_NOW_NS, 900, 1000, 10);

	(void)state;
	stats.machine.known = false;
	stats.totals.pressure_have = USAGE_STALL_MEMORY;
	view_slot_publish(f.ctx.views, view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	assert_false(has_text("evenkeel_node_cpu_seconds_total{"));
	assert_false(has_text("evenkeel_node_memory_available_bytes{"));
	assert_false(has_text("evenkeel_node_contention_seconds_total{"));
	assert_false(has_text("stalled_seconds_total{node=\"old\",resource=\"cpu\"}"));
	assert_true(has_line("evenkeel_node_stalled_seconds_total{node=\"old\","
			     "resource=\"memory\"} 0"));
	assert_true(has_line("evenkeel_node_sampler_missed_ticks_total{node=\"old\"} 17"));
}

/* The age is that of what is known; what says why stays when nothing is known any more. */
static void test_bad_values_and_clocks(void **state)
{
	struct node_stats stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS, 900, 1000, 10);

	(void)state;
	stats.aside_ns = 400 * NS_PER_SEC;
	stats.quarantine.count = 33;
	stats.clock_known = true;
	stats.clock_ahead_ns = -7200 * NS_PER_SEC;
	view_slot_publish(f.ctx.views, view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	assert_true(has_line("evenkeel_node_sample_age_seconds{node=\"n\"} 400"));
	assert_true(has_line("evenkeel_nodes{state=\"expired\"} 1"));
	assert_true(has_line("evenkeel_node_quarantined_values_total{node=\"n\"} 33"));
	assert_true(has_line("evenkeel_node_clock_skew_seconds{node=\"n\"} -7200"));
	assert_false(has_text("evenkeel_node_cpu_latest_cores{"));
}

/* The number of series per node is a constant; nothing grows with the pods. */
static void test_cardinality(void **state)
{
	size_t lines = 0;

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	for (const char *p = f.response.body.data; (p = strstr(p, "{node=\"alpha\"")); p++)
		lines++;
	assert_in_range(lines, 35, 48);
	assert_false(has_text("podaaaa"));
	assert_false(has_text("ssh.service"));
}

static void test_cluster(void **state)
{
	static const char *const lines[] = {
		"evenkeel_kube_state{resource=\"nodes\",state=\"synced\"} 1",
		"evenkeel_kube_state{resource=\"poddisruptionbudgets\",state=\"forbidden\"} 1",
		"evenkeel_kube_state{resource=\"elasticquotas\",state=\"absent\"} 1",
		"evenkeel_kube_state{resource=\"replicasets\",state=\"stale\"} 1",
		"evenkeel_kube_objects{resource=\"nodes\"} 3",
		"evenkeel_kube_objects{resource=\"pods\"} 7",
		"evenkeel_kube_relists_total{resource=\"replicasets\"} 3",
		"evenkeel_kube_watch_errors_total{resource=\"replicasets\"} 2",
		"evenkeel_kube_skipped_objects_total{resource=\"replicasets\"} 1",
		"evenkeel_kube_event_age_seconds{resource=\"replicasets\"} 41",
		"evenkeel_kube_state_seconds{resource=\"replicasets\"} 40",
		"# TYPE evenkeel_kube_relists_total counter",
		"# TYPE evenkeel_kube_objects gauge",
		"evenkeel_node_cpu_allocatable_cores{node=\"alpha\"} 3.8",
		"evenkeel_node_memory_allocatable_bytes{node=\"lima\"} 7516192768",
		"evenkeel_node_cpu_requests_cores{node=\"alpha\"} 1.725",
		"evenkeel_node_memory_requests_bytes{node=\"alpha\"} 2784354560",
		"evenkeel_node_cpu_limits_cores{node=\"bravo\"} 1",
		"evenkeel_node_memory_limits_bytes{node=\"bravo\"} 1073741824",
		"evenkeel_node_cpu_kernel_limits_cores{node=\"alpha\"} 2.13",
		"evenkeel_node_memory_kernel_limits_bytes{node=\"alpha\"} 2247483392",
		"evenkeel_node_limit_ratio{node=\"lima\",resource=\"cpu\",by=\"declared\"} 0",

		"evenkeel_node_unlimited_containers{node=\"alpha\",resource=\"memory\"} 1",
		"evenkeel_node_pods{node=\"alpha\"} 3",
		"evenkeel_pods{state=\"measured\"} 3",
		"evenkeel_pods{state=\"unmeasured\"} 2",
		"evenkeel_pods{state=\"pending\"} 1",
		"evenkeel_pods{state=\"unknown_to_api\"} 1",
		"evenkeel_pod_limit_mismatches{resource=\"cpu\"} 1",
		"evenkeel_pod_limit_mismatches{resource=\"memory\"} 0",
	};
	/*
	 * What has no event has no age; what is unknown to the API or to its agent has no such
	 * series.
	 */
	static const char *const absent[] = {
		"evenkeel_kube_event_age_seconds{resource=\"elasticquotas\"",
		"evenkeel_node_cpu_requests_cores{node=\"stray\"",
		"evenkeel_node_cpu_requests_cores{node=\"ghost\"",
		"evenkeel_node_cpu_kernel_limits_cores{node=\"lima\"",
		"evenkeel_node_limit_ratio{node=\"lima\",resource=\"cpu\",by=\"kernel\"",
		"web-1",
	};
	size_t series = 0;

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	assert_false(has_text("evenkeel_kube_"));
	assert_false(has_text("evenkeel_node_cpu_requests_cores"));
	view_slot_publish(f.ctx.views, cluster_fixture_new());
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	check_format(f.response.body.data);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!has_line(lines[i]))
			fail_msg("no line %s", lines[i]);
	assert_true(
		has_text("_limit_ratio{node=\"bravo\",resource=\"cpu\",by=\"declared\"} 0.26315"));
	assert_true(
		has_text("_limit_ratio{node=\"alpha\",resource=\"cpu\",by=\"kernel\"} 0.56052"));
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (has_text(absent[i]))
			fail_msg("%s is there", absent[i]);
	for (const char *p = f.response.body.data; (p = strstr(p, "{node=\"alpha\"")); p++)
		series++;
	assert_in_range(series, 50, 60);
}

#define TEST(name) API_FIXTURE_TEST(name, &f)

/* Of the database there is nothing without one, and no age of a save before the first. */
static void test_store(void **state)
{
	static const char *const lines[] = {
		"evenkeel_store_alarm 1",
		"evenkeel_store_saves_total 3",
		"evenkeel_store_failures_total 2",
		"evenkeel_store_last_save_age_seconds 90",
		"evenkeel_store_last_save_seconds 0.25",
		"evenkeel_store_load_seconds 0.5",
		"evenkeel_store_loaded_nodes 5",
		"evenkeel_store_bytes 4096",
		"evenkeel_store_set_aside 1",
		"evenkeel_store_lost_intervals_total 4",
		"# TYPE evenkeel_store_alarm gauge",
		"# TYPE evenkeel_store_saves_total counter",
	};
	struct store_counters *c = &f.counters.store;

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	assert_false(has_text("evenkeel_store_"));
	counter_set(&c->enabled, 1);
	counter_set(&c->alarm, 1);
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	assert_true(has_line("evenkeel_store_saves_total 0"));
	assert_false(has_text("\nevenkeel_store_last_save_age_seconds "));
	assert_false(has_text("\nevenkeel_store_last_save_seconds "));
	counter_set(&c->saves, 3);
	counter_set(&c->failures, 2);
	counter_set(&c->saved_ns, (uint64_t)(VIEW_FIXTURE_NOW_NS - 90 * NS_PER_SEC));
	counter_set(&c->save_took_ns, 250 * NS_PER_MS);
	counter_set(&c->load_took_ns, 500 * NS_PER_MS);
	counter_set(&c->loaded, 5);
	counter_set(&c->bytes, 4096);
	counter_set(&c->aside, 1);
	counter_set(&c->lost_intervals, 4);
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!has_line(lines[i]))
			fail_msg("no line \"%s\"", lines[i]);
	assert_int_equal(api_fixture_get(&f, "/healthz"), 200);
	assert_string_equal(f.response.body.data, "ok\n");
	assert_int_equal(api_fixture_get(&f, "/readyz"), 200);
	assert_non_null(strstr(f.response.body.data, "store: nothing is being saved"));
	counter_set(&c->alarm, 0);
	assert_int_equal(api_fixture_get(&f, "/readyz"), 200);
	assert_string_equal(f.response.body.data, "ok\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_format),
		TEST(test_labels_are_escaped),
		TEST(test_values),
		TEST(test_unknown_is_absent),
		TEST(test_counters_of_the_unknown),
		TEST(test_bad_values_and_clocks),
		TEST(test_cardinality),
		TEST(test_cluster),
		TEST(test_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
