/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of drains: what the planner is told by them, what is refused and how, and that people are
 * told all reasons there are.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/drain_settings.h"
#include "shared/file.h"
#include "shared/mem.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MINUTE_NS    60000000000LL

static const struct option_spec specs[] = {DRAIN_SETTINGS_OPTIONS(0), {0}};
static const struct option_program program = {.name = "prog", .specs = specs};

enum { ARGS_MAX = 6 };

/* args end with a NULL. */
static int parse(const char *const *args, struct drain_settings *s, struct drain_setup *setup,
		 struct error *error)
{
	char *argv[ARGS_MAX + 2] = {(char *)"prog"};
	int argc = 1, rc;

	for (; args[argc - 1]; argc++)
		argv[argc] = (char *)args[argc - 1];
	*s = (struct drain_settings){0};
	rc = options_parse(&program, s, argc, argv, NULL, error);
	return rc ? rc : drain_setup_init(setup, s, error);
}

static void close_all(struct drain_settings *s, struct drain_setup *setup)
{
	drain_setup_fini(setup);
	drain_settings_fini(s);
}

static void assert_same_rules(const struct drain_options *a, const struct drain_options *b)
{
	assert_int_equal(a->variant, b->variant);
	assert_true(a->utilization == b->utilization && a->gpu_utilization == b->gpu_utilization);
	assert_int_equal(a->drain_unready, b->drain_unready);
	assert_int_equal(a->ignore_daemon_sets, b->ignore_daemon_sets);
	assert_int_equal(a->ignore_mirror, b->ignore_mirror);
	assert_int_equal(a->skip_system, b->skip_system);
	assert_int_equal(a->skip_local_storage, b->skip_local_storage);
	assert_int_equal(a->skip_custom_controllers, b->skip_custom_controllers);
	assert_true(a->system_timeout_ns == b->system_timeout_ns);
	assert_int_equal(a->min_replicas, b->min_replicas);
	assert_true(a->unneeded_ns == b->unneeded_ns && a->unready_ns == b->unready_ns);
	assert_true(a->recheck_ns == b->recheck_ns && a->eviction_ttl_ns == b->eviction_ttl_ns);
	assert_true(a->simulation_ns == b->simulation_ns);
	assert_int_equal(a->simulation_min_nodes, b->simulation_min_nodes);
	assert_int_equal(a->max_parallelism, b->max_parallelism);
	assert_int_equal(a->max_drain_parallelism, b->max_drain_parallelism);
	assert_true(a->owner_share == b->owner_share);
}

static void assert_same_cap(const struct place_cap *a, const struct place_cap *b)
{
	assert_int_equal(a->on, b->on);
	assert_true(a->cpu_share == b->cpu_share && a->mem_share == b->mem_share);
	assert_true(a->z == b->z && a->contention == b->contention);
}

/* No option at all is what the planner comes with. */
static void test_defaults(void **state)
{
	const char *const none[] = {NULL};
	struct drain_setup setup, usual;
	struct drain_settings s;
	struct error error = {""};

	(void)state;
	drain_setup_default(&usual);
	assert_int_equal(parse(none, &s, &setup, &error), 0);
	assert_same_rules(&setup.config.rules, &usual.config.rules);
	assert_same_cap(&setup.places.cap, &usual.places.cap);
	assert_int_equal(setup.config.order, usual.config.order);
	assert_int_equal(setup.config.robust_orders, usual.config.robust_orders);
	assert_int_equal(setup.config.cluster_min.nodes, -1);
	assert_true(setup.candidate_ttl_ns == usual.candidate_ttl_ns);
	close_all(&s, &setup);
	drain_setup_fini(&usual);
}

/* Of cluster-autoscaler's variant, too, unless somebody says otherwise. */
static void test_upstream(void **state)
{
	const char *const plain[] = {"--drain-variant=upstream", NULL};
	const char *const more[] = {"--drain-variant=upstream", "--max-drain-parallelism=3",
				    "--scale-down-simulation-timeout=2s",
				    "--drain-destinations=fullest", NULL};
	struct drain_setup setup;
	struct drain_settings s;
	struct error error = {""};

	(void)state;
	assert_int_equal(parse(plain, &s, &setup, &error), 0);
	assert_int_equal(setup.config.rules.variant, DRAIN_UPSTREAM);
	assert_int_equal(setup.config.rules.max_drain_parallelism, 1);
	assert_true(setup.config.rules.simulation_ns == MINUTE_NS / 2);
	assert_int_equal(setup.config.order, PLACE_CYCLIC);
	close_all(&s, &setup);
	assert_int_equal(parse(more, &s, &setup, &error), 0);
	assert_int_equal(setup.config.rules.max_drain_parallelism, 3);
	assert_true(setup.config.rules.simulation_ns == MINUTE_NS / 30);
	assert_int_equal(setup.config.order, PLACE_FULLEST_FIRST);
	close_all(&s, &setup);
}

static void test_parallelism(void **state)
{
	static const struct {
		const char *args[3];
		uint32_t want;
	} cases[] = {
		{{NULL}, 10},
		{{"--max-empty-bulk-delete=4", NULL}, 4},
		{{"--max-scale-down-parallelism=7", "--max-empty-bulk-delete=4", NULL}, 7},
	};
	struct drain_setup setup;
	struct drain_settings s;
	struct error error = {""};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(parse(cases[i].args, &s, &setup, &error), 0);
		assert_int_equal(setup.config.rules.max_parallelism, cases[i].want);
		close_all(&s, &setup);
	}
}

static void test_records(void **state)
{
	static const char budget[] = "--drain-budget=nodes=10%,schedule=0 9,12 * * mon,fri,"
				     "duration=8h,reasons=Empty,Drifted";
	const char *const args[] = {
		"--drain-group=name=a,min=2,max=5,atomic",
		"--drain-group=atomic=false,name=b c",
		"--drain-group=atomic=true,name=d,max=999999999",
		budget,
		"--drain-budget=nodes=3",
		"--drain-cluster-min=cpu=1500m,memory=4Gi",
		"--drain-group-label=pool",
		NULL,
	};
	const struct drain_window *w;
	struct drain_setup setup;
	struct drain_settings s;
	struct error error = {""};

	(void)state;
	assert_int_equal(parse(args, &s, &setup, &error), 0);
	drain_settings_fini(&s); /* what is kept is a copy */
	assert_int_equal(setup.config.group_count, 3);
	assert_string_equal(setup.config.groups[0].name, "a");
	assert_int_equal(setup.config.groups[0].min, 2);
	assert_int_equal(setup.config.groups[0].max, 5);
	assert_true(setup.config.groups[0].atomic);
	assert_string_equal(setup.config.groups[1].name, "b c");
	assert_int_equal(setup.config.groups[1].max, -1);
	assert_false(setup.config.groups[1].atomic);
	assert_int_equal(setup.config.groups[2].max, 999999999);
	assert_true(setup.config.groups[2].atomic);
	assert_int_equal(setup.config.window_count, 2);
	w = &setup.config.windows[0];
	assert_string_equal(w->nodes, "10%");
	assert_string_equal(w->schedule, "0 9,12 * * mon,fri");
	assert_int_equal(w->duration_sec, 8 * 3600);
	assert_int_equal(w->reason_count, 2);
	assert_string_equal(w->reasons[1], "Drifted");
	assert_null(setup.config.windows[1].schedule);
	assert_int_equal(setup.config.windows[1].duration_sec, -1);
	assert_int_equal(setup.config.cluster_min.nodes, -1);
	assert_int_equal(setup.config.cluster_min.cpu_milli, 1500);
	assert_true(setup.config.cluster_min.mem_bytes == 4LL << 30);
	assert_int_equal(setup.config.group_label_count, 1);
	assert_string_equal(setup.config.group_labels[0], "pool");
	drain_setup_fini(&setup);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *args[3], *want;
	} cases[] = {
		{{"--drain-group", "nme=a", NULL},
		 "--drain-group \"nme=a\": \"nme\" is none of name, min, max, atomic"},
		{{"--drain-group", "name=a,mni=3", NULL},
		 "--drain-group \"name=a,mni=3\": \"mni\" is none of name, min, max, atomic"},
		{{"--drain-group", "", NULL},
		 "--drain-group \"\": \"\" is none of name, min, max, atomic"},
		{{"--drain-group", "atomic,a", NULL},
		 "--drain-group \"atomic,a\": \"a\" is none of name, min, max, atomic"},
		{{"--drain-group", "min=3", NULL},
		 "--drain-group \"min=3\": there must be a \"name\""},
		{{"--drain-group", "name=a,name=b", NULL},
		 "--drain-group \"name=a,name=b\": given twice is \"name\""},
		{{"--drain-group", "name=a,min=-1", NULL},
		 "--drain-group \"name=a,min=-1\": min \"-1\" is not a number from 0 to 999999999"},
		{{"--drain-group", "name=a,min=1000000000", NULL},
		 "--drain-group \"name=a,min=1000000000\": min \"1000000000\" is not a number from "
		 "0 "
		 "to 999999999"},
		{{"--drain-group", "name=a,max=3x", NULL},
		 "--drain-group \"name=a,max=3x\": max \"3x\" is not a number from 0 to 999999999"},
		{{"--drain-group", "name=a,min=4,max=3", NULL},
		 "--drain-group: group \"a\": min 4 must be 0 to max"},
		{{"--drain-group", "name=a,atomic=maybe", NULL},
		 "--drain-group \"name=a,atomic=maybe\": atomic is true or false, not \"maybe\""},
		{{"--drain-group=name=a", "--drain-group=name=a", NULL},
		 "--drain-group: group \"a\" is there twice"},
		{{"--drain-budget", "duration=1h", NULL},
		 "--drain-budget \"duration=1h\": there must be a number of \"nodes\""},
		{{"--drain-budget", "node=1", NULL},
		 "--drain-budget \"node=1\": \"node\" is none of nodes, schedule, duration, "
		 "reasons"},
		{{"--drain-budget", "nodes=1,duration=x", NULL},
		 "--drain-budget \"nodes=1,duration=x\": \"x\" is not a duration such as "
		 "300ms, 5s, 1m30s or 2h"},
		{{"--drain-budget", "nodes=ten", NULL},
		 "--drain-budget \"nodes=ten\": \"ten\" must be a number of nodes, or 0% to 100%"},
		{{"--drain-budget", "nodes=1,schedule=@daily", NULL},
		 "--drain-budget \"nodes=1,schedule=@daily\": a schedule needs a duration"},
		{{"--drain-budget", "nodes=1,duration=1h", NULL},
		 "--drain-budget \"nodes=1,duration=1h\": a duration needs a schedule"},
		{{"--drain-budget", "nodes=1,reasons=Empty,Old", NULL},
		 "--drain-budget \"nodes=1,reasons=Empty,Old\": reasons are Empty, Underutilized "
		 "and Drifted, not \"Old\""},
		{{"--drain-cluster-min", "disk=3", NULL},
		 "--drain-cluster-min \"disk=3\": \"disk\" is none of nodes, cpu, memory"},
		{{"--drain-cluster-min", "cpu=-3", NULL},
		 "--drain-cluster-min \"cpu=-3\": what must remain cannot be negative"},
		{{"--drain-cluster-min", "cpu=-1m", NULL},
		 "--drain-cluster-min \"cpu=-1m\": what must remain cannot be negative"},
		{{"--drain-cluster-min", "memory=-1", NULL},
		 "--drain-cluster-min \"memory=-1\": what must remain cannot be negative"},
		{{"--drain-cluster-min", "cpu=x,memory=1", NULL},
		 "--drain-cluster-min \"cpu=x,memory=1\": \"x\" is not a quantity: a number like "
		 "250m, "
		 "1.5Gi or 12e6 is expected"},
		{{"--scale-down-utilization-threshold", "1.1", NULL},
		 "--scale-down-utilization-threshold: \"1.1\" is too large; 0 to 1 are allowed"},
		{{"--max-drain-parallelism", "0", NULL},
		 "--max-drain-parallelism: \"0\" is too small; 1 to 100000 are allowed"},
		{{"--scale-down-unready-time", "1000h", NULL},
		 "--scale-down-unready-time: \"1000h\" is too long; 0 to 168h are allowed"},
	};
	struct drain_setup setup;
	struct drain_settings s;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error error = {""};

		assert_int_equal(parse(cases[i].args, &s, &setup, &error), -EINVAL);
		assert_string_equal(error.text, cases[i].want);
		drain_settings_fini(&s);
	}
}

static void test_differences(void **state)
{
	const char *const none[] = {NULL};
	static const struct {
		const char *arg, *name;
	} cases[] = {
		{"--drain-cluster-min=", NULL},
		{"--scale-down-unneeded-time=10m", NULL},
		{"--scale-down-unneeded-time=11m", "scale-down-unneeded-time"},
		{"--no-skip-nodes-with-local-storage", "skip-nodes-with-local-storage"},
		{"--drain-z=3", "drain-z"},
		{"--drain-variant=upstream", "drain-variant"},
		{"--drain-group=name=a", "drain-group"},
		{"--drain-group-label=pool", "drain-group-label"},
		{"--drain-cluster-min=nodes=3", "drain-cluster-min"},
		{"--max-drain-parallelism=10", "max-drain-parallelism"},
	};
	struct drain_settings usual, s;
	struct drain_setup setup;
	struct error error = {""};

	(void)state;
	assert_int_equal(parse(none, &usual, &setup, &error), 0);
	drain_setup_fini(&setup);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const args[] = {cases[i].arg, NULL};
		const char *name;

		assert_int_equal(parse(args, &s, &setup, &error), 0);
		name = drain_settings_differ(&usual, &s);
		assert_string_equal(name ? name : "", cases[i].name ? cases[i].name : "");
		close_all(&s, &setup);
	}
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const args[] = {cases[i].arg, NULL};
		struct drain_settings other;

		assert_int_equal(parse(args, &s, &setup, &error), 0);
		drain_setup_fini(&setup);
		assert_int_equal(parse(args, &other, &setup, &error), 0);
		assert_null(drain_settings_differ(&s, &other));
		close_all(&other, &setup);
		assert_int_equal(parse((const char *const[]){"--drain-group=name=b",
							     "--drain-group-label=p",
							     "--drain-cluster-min=nodes=4", NULL},
				       &other, &setup, &error),
				 0);
		assert_non_null(drain_settings_differ(&s, &other));
		close_all(&other, &setup);
		drain_settings_fini(&s);
	}
	setenv("EVENKEEL_DRAIN_Z", "4", 1);
	assert_int_equal(drain_settings_from_environment(&s, &error), 0);
	unsetenv("EVENKEEL_DRAIN_Z");
	assert_string_equal(drain_settings_differ(&usual, &s), "drain-z");
	drain_settings_fini(&s);
	drain_settings_fini(&usual);
}

/* Each reason has a row in the manual, with what would change it, and no row has another reason. */
static void test_manual_has_all_reasons(void **state)
{
	static const char page[] = "packaging/docs/drain.md";
	struct buf text = BUF_INIT;
	struct error error = {""};
	const char *table, *end;
	size_t lines = 0;

	(void)state;
	assert_int_equal(file_read(page, 1 << 20, &text, &error), 0);
	table = strstr(text.data, "| Reason | Meaning | What would change it |\n");
	assert_non_null(table);
	end = strstr(table, "\n\n");
	for (int r = DRAIN_NONE + 1; r < DRAIN_REASONS; r++) {
		char *begin = mem_printf("\n| `%s` | ", drain_reason_name(r));
		char *rest = mem_printf(" | %s |\n", drain_reason_unblock(r));
		const char *at = strstr(table, begin);
		const char *unblock = at ? strstr(at + strlen(begin), rest) : NULL;

		if (!at || at > end || unblock != strstr(at + strlen(begin), " | "))
			fail_msg("%s has no row:%s..%s", page, begin, rest);
		free(begin);
		free(rest);
	}
	for (const char *at = table; (at = strstr(at + 1, "\n| `")) && at < end; at++)
		lines++;
	assert_int_equal(lines, DRAIN_REASONS - 1);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_upstream),
		cmocka_unit_test(test_parallelism),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_manual_has_all_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
