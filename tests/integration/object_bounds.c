/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods made to fill the aggregator's memory: they are not kept, and metrics, status and doctor tell
 * of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/sanitized.h"
#include "tests/stack.h"

enum {
	PODS = 300,
	TOLERATIONS = 3000,
	ANNOTATION = 200 << 10,
	STATUSES = 8000,
	RESIDENT_MAX_MIB = 100
};

static void write_pod(FILE *f, int pod)
{
	fprintf(f,
		",{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"large-%d\","
		"\"namespace\":\"shop\"},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":"
		"\"c\"}],\"tolerations\":[",
		pod);
	for (int i = 0; i < TOLERATIONS; i++)
		fprintf(f, "%s{\"key\":\"%d-%d\"}", i ? "," : "", pod, i);
	fputs("]}}", f);
}

static void write_annotated(FILE *f, const char *name, int len)
{
	fprintf(f,
		",{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
		"\"namespace\":\"shop\",\"annotations\":{\"evenkeel.io/x\":\"%0*d\"}},\"spec\":{"
		"\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\"}]}}",
		name, len, 0);
}

static void write_status(FILE *f, const char *name, int statuses)
{
	fprintf(f,
		",{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
		"\"namespace\":\"shop\"},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":"
		"\"c\"}]},\"status\":{\"phase\":\"Running\",\"containerStatuses\":[",
		name);
	for (int i = 0; i < statuses; i++)
		fprintf(f, "%s{\"name\":\"c%d\",\"containerID\":\"containerd://%064x\"}",
			i ? "," : "", i, (unsigned int)i);
	fputs("]}}", f);
}

static void write_dump(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\","
	      "\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"},\"status\":{\"allocatable\":{"
	      "\"cpu\":\"4\",\"memory\":\"16Gi\",\"pods\":\"110\"}}}",
	      f);
	for (int i = 0; i < PODS; i++)
		write_pod(f, i);
	write_annotated(f, "plain", 1);
	write_status(f, "stated", 1);
	write_status(f, "overstated", STATUSES);
	write_annotated(f, "annotated", ANNOTATION);
	fputs("]}", f);
	assert_int_equal(fclose(f), 0);
}

static double resident_mib(pid_t pid)
{
	char *path = mem_printf("/proc/%d/statm", (int)pid);
	FILE *f = fopen(path, "r");
	unsigned long all = 0, resident = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &all, &resident), 2);
	fclose(f);
	free(path);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static void expect_named(const struct stack *s)
{
	char *server = mem_printf("http://127.0.0.1:%d", s->aggregators[0].http_port);
	char *argv[] = {(char *)program_path("evenkeel"), (char *)"doctor", (char *)"--server",
			server, NULL};
	struct buf out = BUF_INIT;

	process_run(argv, &out, NULL);
	assert_non_null(strstr(out.data, "302 could not be read"));
	assert_non_null(strstr(out.data, "shop/annotated"));
	assert_non_null(strstr(out.data, "metadata.annotations.evenkeel.io/x"));
	free(server);
	buf_fini(&out);
}

static void large_objects_are_not_kept(void **state)
{
	struct stack *s = stack_new();
	char *dump = mem_printf("%s/dump.json", s->folder);
	cJSON *pods;

	(void)state;
	write_dump(dump);
	s->aggregators[0].snapshot_path = dump;
	stack_start_aggregator(s, 0);
	assert_true(stack_metric(s, 0, "evenkeel_kube_skipped_objects_total{resource=\"pods\"}") ==
		    PODS + 2);
	if (!SANITIZED)
		assert_true(resident_mib(s->aggregators[0].pid) < RESIDENT_MAX_MIB);
	pods = stack_get(s, 0, "/v1/pods");
	assert_int_equal(cJSON_GetArraySize(json_at(pods, "items")), 2);
	assert_non_null(json_item(pods, "plain"));
	assert_non_null(json_item(pods, "stated"));
	cJSON_Delete(pods);
	expect_named(s);
	free(dump);
	stack_free(s, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_objects_are_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
