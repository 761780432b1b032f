/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregator's memory holds keys and tokens: other processes of its user cannot read it, and no
 * core file has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/process.h"

enum { USER = 65534 };

static bool is_ready(void *url)
{
	struct buf body = BUF_INIT;
	long status = http_get(url, &body);

	buf_fini(&body);
	return status == 200;
}

/* As another process of that user; the errno. */
static int try_to_read(pid_t pid)
{
	char *path = mem_printf("/proc/%d/maps", (int)pid);
	int status, fd;
	pid_t child = fork();

	if (child == 0) {
		if (setgid(USER) || setuid(USER))
			_exit(255);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		_exit(fd < 0 ? errno : 0);
	}
	free(path);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static char *limits_of(pid_t pid)
{
	char *path = mem_printf("/proc/%d/limits", (int)pid);
	char *argv[] = {(char *)"/bin/cat", path, NULL};
	struct buf text = BUF_INIT;

	assert_int_equal(process_run(argv, &text, NULL), 0);
	free(path);
	return buf_take(&text, NULL);
}

static void test_memory_is_unreadable(void **state)
{
	char *folder = folder_make(), *log = mem_printf("%s/log", folder), *limits;
	char *ingest = mem_printf("ipc://%s/ingest", folder);
	char *listen = mem_printf("127.0.0.1:%d", free_port());
	char *url = mem_printf("http://%s/healthz", listen);
	char *program = realpath(program_path("evenkeel-aggregator"), NULL);
	char *argv[] = {(char *)"/usr/bin/setpriv",
			(char *)"--reuid=65534",
			(char *)"--regid=65534",
			(char *)"--clear-groups",
			program,
			(char *)"--standalone",
			(char *)"--listen",
			listen,
			(char *)"--ingest",
			ingest,
			NULL};
	pid_t pid;

	(void)state;
	if (geteuid() != 0 || access(argv[0], X_OK)) {
		print_message("SKIP: takes root and setpriv\n");
		skip();
	}
	assert_int_equal(chown(folder, USER, USER), 0);
	pid = process_start(log, argv);
	assert_true(pid > 0);
	assert_true(await(is_ready, url, 20));
	assert_int_equal(try_to_read(pid), EACCES);
	limits = limits_of(pid);
	assert_non_null(strstr(limits, "Max core file size        0                    0 "));
	assert_int_equal(process_stop(pid, SIGTERM), 0);
	free(limits);
	free(program);
	free(url);
	free(listen);
	free(ingest);
	free(log);
	folder_remove(folder);
}

/* Of the whole service: what forks before it sets its own limits, too. */
static void test_the_unit_forbids_core_files(void **state)
{
	char *argv[] = {(char *)"/bin/cat", (char *)"packaging/debian/evenkeel-aggregator.service",
			NULL};
	struct buf text = BUF_INIT;

	(void)state;
	assert_int_equal(process_run(argv, &text, NULL), 0);
	buf_add_char(&text, '\0');
	assert_non_null(strstr(text.data, "\nLimitCORE=0\n"));
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_unreadable),
		cmocka_unit_test(test_the_unit_forbids_core_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
