/* SPDX-License-Identifier: Apache-2.0 */
/* Which process is the agent's, and how often it waited, in folders made like /proc; its status file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/liveness.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/process.h"

#define SELF  70
#define OURS  "0::/kubepods/pod1/a\n"
#define AGENT "evenkeel-agent\n"

struct fake {
	int pid;
	const char *comm, *cgroup;
};

static void write_file(const char *folder, const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", folder, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	free(path);
}

static void add(const char *proc, const struct fake *fake)
{
	char *folder = mem_printf("%s/%d", proc, fake->pid);

	assert_int_equal(mkdir(folder, 0700), 0);
	write_file(folder, "comm", fake->comm);
	write_file(folder, "cgroup", fake->cgroup);
	free(folder);
}

static void test_find(void **state)
{
	static const struct {
		const char *name;
		struct fake processes[4]; /* besides ourselves */
		int found;
	} cases[] = {
		{"a container", {{1, AGENT, OURS}}, 1},
		{"the first, whatever its control groups", {{1, AGENT, "0::/\n"}}, 1},
		{"the first, not another probe", {{1, AGENT, OURS}, {71, AGENT, OURS}}, 1},
		{"the host's processes", {{1, "init\n", "0::/\n"}, {55, AGENT, OURS}}, 55},
		{"of another pod",
		 {{1, "init\n", "0::/\n"}, {55, AGENT, OURS}, {56, AGENT, "0::/kubepods/pod2/a\n"}},
		 55},
		{"another program",
		 {{1, "init\n", "0::/\n"}, {55, "evenkeel-agents\n", OURS}},
		 -ENOENT},
		{"nobody", {{1, "init\n", OURS}}, -ENOENT},
		{"two", {{54, AGENT, OURS}, {55, AGENT, OURS}}, -ENOTUNIQ},
	};
	static const struct fake self = {SELF, AGENT, OURS};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *proc = folder_make();
		struct error error = {""};
		pid_t found = -1;
		int rc;

		add(proc, &self);
		for (const struct fake *p = cases[i].processes; p->pid; p++)
			add(proc, p);
		rc = liveness_find(proc, SELF, &found, &error);
		print_message("          %s: %d %s\n", cases[i].name, rc, error.text);
		assert_int_equal(rc ? rc : found, cases[i].found);
		assert_int_equal(rc != 0, error.text[0] != '\0');
		folder_remove(proc);
	}
}

/* Where nothing tells of processes, that is said, and not that there is no agent. */
static void test_no_proc(void **state)
{
	struct error error;
	pid_t found;

	(void)state;
	assert_int_equal(liveness_find("/nonexistent", SELF, &found, &error), -ENOENT);
	assert_non_null(strstr(error.text, "is it mounted?"));
}

static void test_waits(void **state)
{
	static const struct {
		const char *status;
		int rc;
		uint64_t waits;
	} cases[] = {
		{"Name:\tevenkeel-agent\nvoluntary_ctxt_switches:\t18446744073709551615\n"
		 "nonvoluntary_ctxt_switches:\t7\n",
		 0, UINT64_MAX},
		{"Name:\tx\nvoluntary_ctxt_switches:\t0\n", 0, 0},
		{"Name:\tx\nnonvoluntary_ctxt_switches:\t7\n", -EINVAL, 0},
	};
	static const struct fake self = {SELF, AGENT, OURS};
	char *proc = folder_make(), *folder = mem_printf("%s/%d", proc, SELF);
	struct error error;
	uint64_t waits = 1;

	(void)state;
	add(proc, &self);
	assert_int_equal(liveness_count_waits(proc, SELF, &waits, &error), -ENOENT);
	assert_non_null(strstr(error.text, "process 70, has ended"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_file(folder, "status", cases[i].status);
		assert_int_equal(liveness_count_waits(proc, SELF, &waits, &error), cases[i].rc);
		if (!cases[i].rc)
			assert_true(waits == cases[i].waits);
	}
	folder_remove(proc);
	free(folder);
}

/* A longer status before leaves nothing behind, and terminals get no control characters. */
static void test_status_file(void **state)
{
	char *folder = folder_make(), *path = mem_printf("%s/status", folder);
	const struct error statuses[] = {{"a long reason"}, {"\033[2Jno"}, {""}};
	static const char *const texts[] = {"a long reason", "?[2Jno", ""};
	struct buf text = BUF_INIT;
	struct error error;
	int fd = liveness_open(path, &error);

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < 3; i++) {
		liveness_write(fd, &statuses[i]);
		buf_clear(&text);
		assert_int_equal(file_read(path, 4096, &text, &error), 0);
		assert_string_equal(text.data, texts[i]);
	}
	close(fd);
	/* An agent that starts has nothing to tell yet. */
	fd = liveness_open(path, &error);
	buf_clear(&text);
	assert_int_equal(file_read(path, 4096, &text, &error), 0);
	assert_int_equal(text.len, 0);
	close(fd);
	assert_int_equal(liveness_open(folder, &error), -EISDIR);
	assert_non_null(strstr(error.text, "--status-file: cannot write "));
	buf_fini(&text);
	free(path);
	folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_no_proc),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_status_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
