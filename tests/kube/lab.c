/* SPDX-License-Identifier: Apache-2.0 */
/* `make lab` as a person has it: it starts, answers, follows pods as they come, and leaves nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <curl/curl.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/kube_version.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { NODES = 5, START_S = 120, MEASURED_S = 60 };

/* What it printed, and where it says things are. */
struct lab_run {
	char *folder, *log, *programs;
	pid_t pid;
	struct buf said;
	char kubeconfig[256], url[64];
};

static void read_log(struct lab_run *r)
{
	FILE *f = fopen(r->log, "re");
	char chunk[4096];
	size_t got;

	buf_clear(&r->said);
	while (f && (got = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&r->said, chunk, got);
	if (f)
		fclose(f);
}

static bool has_started(void *ctx)
{
	struct lab_run *r = ctx;
	const char *at;

	read_log(r);
	at = r->said.data ? strstr(r->said.data, "kubeconfig: ") : NULL;
	return at && strstr(at, "Stop: Ctrl-C") &&
	       sscanf(at, "kubeconfig: %255s aggregator: %63s", r->kubeconfig, r->url) == 2;
}

/* kubectl with words that end with NULL; its answer replaces *out. */
static void kubectl(const struct lab_run *r, const char *const *words, struct buf *out)
{
	char *argv[16] = {mem_printf("%s/kubectl", r->programs), (char *)"--kubeconfig",
			  (char *)r->kubeconfig};
	size_t n = 3;

	for (; *words; words++)
		argv[n++] = (char *)*words;
	buf_clear(out);
	assert_int_equal(process_run(argv, out, out), 0);
	free(argv[0]);
}

static size_t count_of(const char *text, const char *what)
{
	size_t count = 0;

	for (const char *at = text; at && (at = strstr(at, what)) != NULL; at++)
		count++;
	return count;
}

/* --- a pod comes, uses what it says, and goes ------------------------------------------------- */

#define POD                                                                                        \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"mine\",\"annotations\":" \
	"{\"lab.evenkeel.io/cpu\":\"700m\",\"lab.evenkeel.io/cpu-sigma\":\"1m\"}},\"spec\":"       \
	"{\"containers\":[{\"name\":\"c\",\"image\":\"c\"}]}}"

/* Millicores; -1: not measured yet. */
static double measured(const struct lab_run *r)
{
	char *url = mem_printf("%s/v1/pods?namespace=default", r->url);
	cJSON *list = http_get_json(url);
	const cJSON *mean = json_at(json_item(list, "mine"), "usage.cpuMillicores.latest.value");
	double value = mean ? mean->valuedouble : -1;

	cJSON_Delete(list);
	free(url);
	return value;
}

static bool is_measured(void *ctx)
{
	return measured(ctx) > 0;
}

static void follow_pod(struct lab_run *r)
{
	char *path = mem_printf("%s/pod.json", r->folder);
	FILE *f = fopen(path, "we");
	struct buf out = BUF_INIT;

	assert_non_null(f);
	fputs(POD, f);
	fclose(f);
	kubectl(r, (const char *const[]){"create", "-f", path, NULL}, &out);
	kubectl(r,
		(const char *const[]){"wait", "--timeout=60s", "--for=condition=Ready", "pod/mine",
				      NULL},
		&out);
	assert_true(await(is_measured, r, MEASURED_S));
	print_message("          a pod of 700m uses %.0fm\n", measured(r));
	assert_true(measured(r) > 690 && measured(r) < 710);
	kubectl(r, (const char *const[]){"delete", "pod", "mine", NULL}, &out);
	buf_fini(&out);
	free(path);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Processes whose command line names the folder. */
static size_t left_behind(const char *folder)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(proc);
	while ((entry = readdir(proc)) != NULL) {
		char *path = mem_printf("/proc/%s/cmdline", entry->d_name), line[4096];
		FILE *f = isdigit((unsigned char)*entry->d_name) ? fopen(path, "re") : NULL;
		size_t len = f ? fread(line, 1, sizeof(line), f) : 0;

		count += len && memmem(line, len, folder, strlen(folder)) != NULL;
		if (f)
			fclose(f);
		free(path);
	}
	closedir(proc);
	return count;
}

static void start_lab(struct lab_run *r)
{
	const char *built = getenv("TB");
	char *program = mem_printf("%s/lab", built ? built : "build/tests");
	char *argv[] = {program, NULL}, nodes[8];

	snprintf(nodes, sizeof(nodes), "%d", NODES);
	setenv("NODES", nodes, 1);
	unsetenv("DURATION");
	r->log = mem_printf("%s/lab.log", r->folder);
	r->pid = process_start(r->log, argv);
	free(program);
	if (!await(has_started, r, START_S))
		fail_msg("no lab: %s", r->said.data ? r->said.data : "");
}

static void test_lab(void **state)
{
	struct lab_run r = {.folder = folder_make(), .programs = kube_version_programs()};
	struct buf out = BUF_INIT;
	char *lab_folder;

	(void)state;
	start_lab(&r);
	kubectl(&r, (const char *const[]){"get", "nodes", "--no-headers", NULL}, &out);
	assert_int_equal(count_of(out.data, " Ready "), NODES);
	assert_int_equal(count_of(r.said.data, "\n$ "), 5);
	follow_pod(&r);
	lab_folder =
		mem_printf("%.*s", (int)(strrchr(r.kubeconfig, '/') - r.kubeconfig), r.kubeconfig);
	assert_true(left_behind(lab_folder) > 3);
	assert_int_equal(process_stop(r.pid, SIGINT), 0);
	assert_int_equal(left_behind(lab_folder), 0);
	assert_int_not_equal(access(lab_folder, F_OK), 0);
	free(lab_folder);
	free(r.programs);
	free(r.log);
	folder_remove(r.folder);
	buf_fini(&r.said);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_lab)};
	char *programs = kube_version_programs();
	char *kwok = mem_printf("%s/kwok", programs);
	bool here = access(kwok, X_OK) == 0;

	free(kwok);
	free(programs);
	if (!here) {
		printf("SKIP: no kwok here: tests/kube/build 1.37 makes it\n");
		return 0;
	}
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
