/* SPDX-License-Identifier: Apache-2.0 */
/* The informer with a cluster in files, and without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/engine_informer.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/process.h"

static void test_files(void **state)
{
	static const char text[] = "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"kind\":"
				   "\"Pod\",\"metadata\":"
				   "{\"namespace\":\"a\",\"name\":\"p\",\"uid\":\"u\"},\"spec\":{"
				   "\"containers\":[]}}]}";
	char *folder = folder_make(), *path = mem_printf("%s/pods.json", folder);
	struct option_list files = {&path, 1};
	const struct informer_config config = {.snapshots = &files};
	struct error why = {""};
	struct informer *f;
	struct cluster *cluster;

	(void)state;
	assert_int_equal(file_replace(path, 0600, text, strlen(text), &why), 0);
	if (informer_open(&f, &config, &why))
		fail_msg("%s", why.text);
	assert_string_equal(informer_mode(f), "snapshot");
	assert_string_equal(informer_from(f), "the snapshot");
	assert_false(informer_runs_programs(f));
	assert_false(informer_catch_up(f, 1));
	/* Enrolment reviews tokens of pods that an API lists, and of no file. */
	assert_false(informer_lists_pods(f));
	assert_non_null(informer_pod(f, "a", "p", "u"));
	assert_null(informer_pod(f, "a", "p", "v"));
	assert_null(informer_pod(f, "a", "q", "u"));
	assert_true(informer_dirty(f));
	cluster = informer_cluster(f);
	assert_non_null(cluster);
	assert_false(informer_dirty(f));
	cluster_drop(cluster);
	informer_stop(f);
	informer_free(f);
	free(path);
	folder_remove(folder);
}

static void test_no_api(void **state)
{
	struct option_list files = {NULL, 0};
	const struct informer_config config = {.snapshots = &files, .standalone = true};
	struct error why = {""};
	struct informer *f;

	(void)state;
	assert_int_equal(informer_open(&f, &config, &why), 0);
	assert_null(f);
	assert_null(informer_mode(f));
	assert_null(informer_from(f));
	assert_null(informer_cluster(f));
	assert_null(informer_pod(f, "a", "p", "u"));
	assert_false(informer_dirty(f));
	assert_false(informer_runs_programs(f));
	assert_false(informer_catch_up(f, 1));
	assert_false(informer_lists_pods(f));
	informer_stop(f);
	informer_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_no_api),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
