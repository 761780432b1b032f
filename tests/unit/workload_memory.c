/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/state/workload_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "shared/clock.h"

#define NOW (1800000000LL * NS_PER_SEC)
#define DAY (86400 * NS_PER_SEC)

static void keys_are_the_names_that_people_use(void **state)
{
	static const struct {
		const char *kind, *name, *hash, *key;
	} cases[] = {
		{"ReplicaSet", "web-5d4f8c7b9", "5d4f8c7b9", "shop/Deployment/web"},
		{"ReplicaSet", "web-5d4f8c7b9", "other", "shop/ReplicaSet/web-5d4f8c7b9"},
		{"ReplicaSet", "web-5d4f8c7b9", NULL, "shop/ReplicaSet/web-5d4f8c7b9"},
		{"ReplicaSet", "plain", "plain", "shop/ReplicaSet/plain"},
		{"Job", "report-29012345", NULL, "shop/CronJob/report"},
		{"ReplicaSet", "-5d4f8c7b9", "5d4f8c7b9", "shop/ReplicaSet/-5d4f8c7b9"},
		{"Job", "report-29012345x", NULL, "shop/Job/report-29012345x"},
		{"Job", "report-42", NULL, "shop/Job/report-42"},
		{"Job", "import-2024x", NULL, "shop/Job/import-2024x"},
		{"StatefulSet", "db-12345678", NULL, "shop/StatefulSet/db-12345678"},
		{"", "", NULL, ""},
	};
	char key[WORKLOAD_KEY_MAX + 1], long_name[WORKLOAD_KEY_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct owner_ref owner = {cases[i].kind, cases[i].name, "uid"};

		workload_key("shop", &owner, cases[i].hash, key);
		assert_string_equal(key, cases[i].key);
	}
	memset(long_name, 'x', WORKLOAD_KEY_MAX);
	long_name[WORKLOAD_KEY_MAX] = '\0';
	workload_key("shop", &(struct owner_ref){"Pod", long_name, ""}, NULL, key);
	assert_string_equal(key, "");
}

static void note(struct workload_memory *m, const char *key, double cpu, uint32_t pods,
		 int64_t seen_ns)
{
	workload_memory_note(m,
			     &(struct workload_use){key, cpu, 2 * cpu, 1000 * cpu, seen_ns, pods});
}

/* Owners of one workload that are noted together count by their pods; later ones replace them. */
static void later_notes_replace_earlier_ones(void **state)
{
	struct workload_memory *m = workload_memory_new();
	struct workload_table *first, *second;

	(void)state;
	note(m, "a/Deployment/web", 100, 3, NOW);
	note(m, "a/Deployment/web", 500, 1, NOW);
	note(m, "a/Deployment/db", 7, 1, NOW);
	first = workload_memory_table(m, NOW);
	note(m, "a/Deployment/web", 900, 1, NOW + 1);
	second = workload_memory_table(m, NOW + 1);
	workload_memory_free(m);
	assert_int_equal(first->count, 2);
	assert_string_equal(first->of[0].key, "a/Deployment/db");
	assert_true(workload_table_find(first, "a/Deployment/web")->cpu_milli == 200);
	assert_true(workload_table_find(first, "a/Deployment/web")->cpu_p95_milli == 400);
	assert_true(workload_table_find(second, "a/Deployment/web")->cpu_milli == 900);
	assert_true(workload_table_find(second, "a/Deployment/db")->working_set_bytes == 7000);
	assert_null(workload_table_find(second, "a/Deployment/we"));
	assert_null(workload_table_find(NULL, "a/Deployment/web"));
	assert_null(workload_table_hold(NULL));
	workload_table_drop(first);
	workload_table_drop(second);
}

static void the_oldest_are_forgotten(void **state)
{
	struct workload_memory *m = workload_memory_new();
	struct workload_table *t;
	char key[32];

	(void)state;
	for (int i = 0; i < WORKLOADS_MAX + 10; i++) {
		snprintf(key, sizeof(key), "ns/Job/%06d", i);
		note(m, key, 1, 1, NOW + i);
	}
	t = workload_memory_table(m, NOW + DAY);
	assert_int_equal(t->count, WORKLOADS_MAX);
	assert_string_equal(t->of[0].key, "ns/Job/000010");
	workload_table_drop(t);
	t = workload_memory_table(m, NOW + WORKLOAD_DAYS * DAY + 15);
	assert_string_equal(t->of[0].key, "ns/Job/000015");
	workload_table_drop(t);
	t = workload_memory_table(m, NOW + 2 * WORKLOAD_DAYS * DAY);
	assert_int_equal(t->count, 0);
	assert_null(workload_table_find(t, "ns/Job/000015"));
	workload_table_drop(t);
	/* Whatever their order; of those that were seen together the last by name go. */
	for (int i = 0; i < WORKLOADS_MAX + 10; i++) {
		snprintf(key, sizeof(key), "ns/Job/%06d", i);
		note(m, key, 1, 1, NOW + (WORKLOADS_MAX + 10 - i) / 2);
	}
	t = workload_memory_table(m, NOW + DAY);
	assert_int_equal(t->count, WORKLOADS_MAX);
	snprintf(key, sizeof(key), "ns/Job/%06d", WORKLOADS_MAX - 1);
	assert_string_equal(t->of[WORKLOADS_MAX - 1].key, key);
	workload_table_drop(t);
	workload_memory_free(m);
}

static void what_a_fast_clock_saw_is_forgotten_too(void **state)
{
	struct workload_memory *m = workload_memory_new();
	struct workload_table *t;

	(void)state;
	note(m, "a/Deployment/web", 1, 1, NOW + 1000 * DAY);
	for (int days = 0; days <= WORKLOAD_DAYS + 1; days += WORKLOAD_DAYS + 1) {
		t = workload_memory_table(m, NOW + days * DAY);
		assert_int_equal(t->count, days == 0);
		workload_table_drop(t);
	}
	workload_memory_free(m);
}

static void what_was_written_is_read(void **state)
{
	struct workload_memory *m = workload_memory_new(), *other = workload_memory_new();
	struct workload_table *t, *back;
	struct buf text = BUF_INIT, again = BUF_INIT;
	struct error why = {""};

	(void)state;
	note(m, "a/Deployment/\"web\"", 100.25, 3, NOW);
	note(m, "b/CronJob/x", 0, 1, NOW - DAY);
	t = workload_memory_table(m, NOW);
	workload_table_write(t, &text);
	assert_int_equal(workload_memory_read(other, text.data, text.len, &why), 0);
	back = workload_memory_table(other, NOW);
	workload_table_write(back, &again);
	assert_int_equal(text.len, again.len);
	assert_memory_equal(text.data, again.data, text.len);
	assert_true(workload_table_find(back, "a/Deployment/\"web\"")->cpu_milli == 100.25);
	workload_table_drop(t);
	workload_table_drop(back);
	workload_memory_free(m);
	workload_memory_free(other);
	buf_fini(&text);
	buf_fini(&again);
}

static void what_is_wrong_is_refused_as_a_whole(void **state)
{
#define GOOD                                                                                       \
	"{\"key\":\"a/b/c\",\"cpuMillicores\":1,\"cpuP95Millicores\":2,\"workingSetBytes\":3,"     \
	"\"seen\":1800000000}"
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "workloads: must be a list"},
		{"[]", "workloads: must be a list"},
		{"{\"workloads\":{}}", "workloads: must be a list"},
		{"{\"workloads\":[" GOOD ",1]}", "workloads[1]: "},
		{"{\"workloads\":[" GOOD ",{\"key\":\"x\"}]}", "workloads[1]: "},
		{"{\"workloads\":[{\"key\":\"\",\"cpuMillicores\":1,\"cpuP95Millicores\":2,"
		 "\"workingSetBytes\":3,\"seen\":4}]}",
		 "workloads[0]: "},
		{"{\"workloads\":[{\"key\":\"x\",\"cpuMillicores\":-1,\"cpuP95Millicores\":2,"
		 "\"workingSetBytes\":3,\"seen\":4}]}",
		 "workloads[0]: "},
		{"{\"workloads\":[{\"key\":\"x\",\"cpuMillicores\":1e300,\"cpuP95Millicores\":2,"
		 "\"workingSetBytes\":3,\"seen\":4}]}",
		 "workloads[0]: "},
		{"{\"workloads\":[{\"key\":\"x\",\"cpuMillicores\":1,\"cpuP95Millicores\":2,"
		 "\"workingSetBytes\":3,\"seen\":1e15}]}",
		 "workloads[0]: "},
		{"{\"workloads\":[{\"key\":\"x\",\"cpuMillicores\":1,\"cpuP95Millicores\":\"2\","
		 "\"workingSetBytes\":3,\"seen\":4}]}",
		 "workloads[0]: "},
		{"{\"workloads\":[{\"key\":\"x\",\"cpuMillicores\":1,\"cpuP95Millicores\":2,"
		 "\"workingSetBytes\":-3,\"seen\":4}]}",
		 "workloads[0]: "},
		{"{\"workloads\":[{\"key\":\"x\",\"cpuMillicores\":1,\"cpuP95Millicores\":2,"
		 "\"workingSetBytes\":3}]}",
		 "workloads[0]: "},
		{"{\"workloads\":[{\"key\":\"x\",\"cpuMillicores\":1,\"cpuP95Millicores\":2,"
		 "\"workingSetBytes\":3,\"seen\":1e10}]}",
		 "workloads[0]: "},
		{"{\"workloads\":[{\"key\":\"\xff\",\"cpuMillicores\":1,\"cpuP95Millicores\":2,"
		 "\"workingSetBytes\":3,\"seen\":4}]}",
		 "workloads[0]: "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct workload_memory *m = workload_memory_new();
		struct workload_table *t;
		struct error why = {""};

		assert_true(workload_memory_read(m, cases[i].text, strlen(cases[i].text), &why) <
			    0);
		assert_memory_equal(why.text, cases[i].why, strlen(cases[i].why));
		t = workload_memory_table(m, NOW);
		assert_int_equal(t->count, 0);
		workload_table_drop(t);
		workload_memory_free(m);
	}
}

/* As many as are kept, and a key as long as it may be. */
static void lists_are_bounded(void **state)
{
	static const char rest[] = "\",\"cpuMillicores\":1,\"cpuP95Millicores\":2,"
				   "\"workingSetBytes\":3,\"seen\":1800000000}";

	(void)state;
	for (int more = 0; more < 4; more++) {
		struct workload_memory *m = workload_memory_new();
		struct buf text = BUF_INIT;
		struct error why = {""};

		buf_printf(&text, "{\"workloads\":[{\"key\":\"%0*d%s",
			   WORKLOAD_KEY_MAX + (more & 1), 0, rest);
		for (int i = 1; i < WORKLOADS_MAX + more / 2; i++)
			buf_printf(&text, ",{\"key\":\"%d%s", i, rest);
		buf_add_str(&text, "]}");
		assert_int_equal(workload_memory_read(m, text.data, text.len, &why) != 0,
				 more != 0);
		buf_fini(&text);
		workload_memory_free(m);
	}
}

static void no_table_is_written_as_an_empty_list(void **state)
{
	struct buf out = BUF_INIT;

	(void)state;
	workload_table_write(NULL, &out);
	assert_string_equal(out.data, "{\"workloads\":[]}");
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_the_names_that_people_use),
		cmocka_unit_test(later_notes_replace_earlier_ones),
		cmocka_unit_test(the_oldest_are_forgotten),
		cmocka_unit_test(what_a_fast_clock_saw_is_forgotten_too),
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(what_is_wrong_is_refused_as_a_whole),
		cmocka_unit_test(lists_are_bounded),
		cmocka_unit_test(no_table_is_written_as_an_empty_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
