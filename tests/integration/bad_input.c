/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person gets wrong when starting a daemon: one clear line, the right exit status, nothing
 * left behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/process.h"

enum { ARGS_MAX = 10 };

struct bad_start {
	const char *program;
	const char *args[ARGS_MAX];
	int status;
	const char *says[3]; /* parts of the one line on stderr */
};

struct fixture {
	char *folder;
	char *key; /* good */
	char *open_key; /* readable by others */
	char *short_key;
	char *url; /* an ipc address in the folder */
};

static void write_file(const char *path, size_t len, mode_t mode)
{
	static const char bytes[64] = "not all of them are zero";
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	fchmod(fd, mode);
	close(fd);
}

static int setup(void **state)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));

	f->folder = folder_make();
	f->key = mem_printf("%s/key", f->folder);
	f->open_key = mem_printf("%s/open-key", f->folder);
	f->short_key = mem_printf("%s/short-key", f->folder);
	f->url = mem_printf("ipc://%s/ingest", f->folder);
	write_file(f->key, 32, 0600);
	write_file(f->open_key, 32, 0644);
	write_file(f->short_key, 31, 0600);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	free(f->key);
	free(f->open_key);
	free(f->short_key);
	free(f->url);
	folder_remove(f->folder);
	free(f);
	return 0;
}

/* Runs it; it must end by itself with that status and exactly one line that holds all parts. */
static void expect_refusal(const struct bad_start *c)
{
	char *path = mem_strdup(program_path(c->program));
	char *argv[ARGS_MAX + 2] = {path};
	struct buf out = BUF_INIT, err = BUF_INIT;
	int status;

	for (int i = 0; i < ARGS_MAX && c->args[i]; i++)
		argv[i + 1] = (char *)c->args[i];
	status = process_run(argv, &out, &err);
	if (status != c->status)
		print_error("%s %s: %s\n", c->program, c->args[0], err.data);
	assert_int_equal(status, c->status);
	assert_non_null(err.data);
	for (int i = 0; i < 3 && c->says[i]; i++) {
		if (!strstr(err.data, c->says[i]))
			print_error("\"%s\" is not in: %s", c->says[i], err.data);
		assert_non_null(strstr(err.data, c->says[i]));
	}
	assert_ptr_equal(strchr(err.data, '\n'), err.data + err.len - 1);
	buf_fini(&out);
	buf_fini(&err);
	free(path);
}

static void test_usage_errors(void **state)
{
	static const struct bad_start cases[] = {
		{"evenkeel-agent", {"--agregator", "x"}, 2, {"--agregator", "--aggregator"}},
		{"evenkeel-agent", {"--interval", "200ms"}, 2, {"--interval", "200ms", "1s"}},
		{"evenkeel-agent", {"--rate", "0"}, 2, {"--rate", "0"}},
		{"evenkeel-agent", {"--rate", "ten"}, 2, {"--rate", "ten"}},
		{"evenkeel-agent", {"--tier", "T9"}, 2, {"--tier", "T9", "T3"}},
		{"evenkeel-agent", {"--node-name", "a b"}, 2, {"--node-name", "a b"}},
		{"evenkeel-agent", {"--node-name", ""}, 2, {"--node-name", "letters"}},
		{"evenkeel-agent", {"--rate"}, 2, {"--rate", "HZ"}},
		{"evenkeel-agent", {"--rate", "100"}, 2, {"--rate", "100", "20"}},
		{"evenkeel-agent", {"--interval", "5"}, 2, {"--interval", "unit"}},
		{"evenkeel-agent", {"--interval", "5parsec"}, 2, {"5parsec", "5s"}},
		{"evenkeel-agent", {"--cpu-budget", "0"}, 2, {"--cpu-budget", "0.1"}},
		{"evenkeel-agent", {"--once", "-o", "xml"}, 2, {"--output", "xml", "json"}},
		{"evenkeel-agent", {"--config", "/nonexistent.yaml"}, 2, {"/nonexistent.yaml"}},
		{"evenkeel-agent", {"--key-file", ""}, 2, {"--key-file", "32", "directory"}},
		{"evenkeel-agent", {"--cgroup-root", ""}, 2, {"--cgroup-root", "/sys/fs/cgroup"}},
		{"evenkeel-agent", {"--aggregator", ""}, 2, {"--aggregator", "tcp://HOST:PORT"}},
		{"evenkeel-agent", {"surplus"}, 2, {"surplus"}},
		{"evenkeel-aggregator",
		 {"--enrolment-key", "/nonexistent/key"},
		 2,
		 {"--enrolment-key", "--join-token-file", "--enrol-service-account"}},
		{"evenkeel-aggregator",
		 {"--watcher-stddev", "rough"},
		 2,
		 {"--watcher-stddev", "rough"}},
		{"evenkeel-aggregator",
		 {"--config", "/nonexistent.yaml"},
		 2,
		 {"/nonexistent.yaml"}},
		{"evenkeel", {"nods"}, 2, {"nods", "nodes"}},
		{"evenkeel", {"nodes", "-o", "xml"}, 2, {"xml", "json"}},
	};

	char long_name[300] = "";
	const struct bad_start too_long = {
		"evenkeel-agent", {"--node-name", long_name}, 2, {"--node-name", "253"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_refusal(&cases[i]);
	memset(long_name, 'a', sizeof(long_name) - 1);
	expect_refusal(&too_long);
}

static void test_unusable_keys(void **state)
{
	const struct fixture *f = *state;
	const struct bad_start cases[] = {
		{"evenkeel-agent", {"--key-file", "/nonexistent"}, 1, {"/nonexistent"}},
		{"evenkeel-agent", {"--key-file", f->open_key}, 1, {f->open_key, "chmod"}},
		{"evenkeel-agent", {"--key-file", f->short_key}, 1, {f->short_key, "32"}},
		{"evenkeel-agent", {"--aggregator", "tcp://127.0.0.1:1"}, 1, {"--key-file"}},
		{"evenkeel-agent", {"--aggregator", "http://x"}, 1, {"http://x", "tcp://"}},
		{"evenkeel-aggregator", {"--key-file", f->open_key}, 1, {f->open_key, "chmod"}},
		{"evenkeel-aggregator", {"--ingest", "tcp://127.0.0.1:1"}, 1, {"--key-file"}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_refusal(&cases[i]);
}

static void test_port_in_use(void **state)
{
	const struct fixture *f = *state;
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *listen_on, *ingest;

	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	listen_on = mem_printf("127.0.0.1:%d", ntohs(address.sin_port));
	ingest = mem_printf("tcp://%s", listen_on);
	{
		const struct bad_start cases[] = {
			{"evenkeel-aggregator",
			 {"--listen", listen_on, "--ingest", f->url},
			 1,
			 {listen_on, "another port"}},
			{"evenkeel-aggregator",
			 {"--ingest", ingest, "--listen", "127.0.0.1:0", "--key-file", f->key},
			 1,
			 {listen_on, "another port"}},
		};

		expect_refusal(&cases[0]);
		expect_refusal(&cases[1]);
	}
	free(listen_on);
	free(ingest);
	close(fd);
}

/* Each refusal names the line of the file. */
static void test_bad_configuration(void **state)
{
	static const struct {
		const char *text, *says[2];
	} files[] = {
		{"rate: [1]\n", {":1:7: rate", "plain value"}},
		{"rate: 5\nspeed: 3\n", {":2:1: unknown option", "speed"}},
		{"rate: fast\n", {"--rate: \"fast\"", ":1)"}},
		{"- rate\n", {":1:1: expected", "name: value"}},
	};
	const struct fixture *f = *state;
	char *path = mem_printf("%s/agent.yaml", f->folder);

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const struct bad_start c = {"evenkeel-agent",
					    {"--config", path},
					    2,
					    {path, files[i].says[0], files[i].says[1]}};
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(files[i].text, file);
		assert_int_equal(fclose(file), 0);
		expect_refusal(&c);
	}
	free(path);
}

static void test_bad_addresses(void **state)
{
	static const struct bad_start cases[] = {
		{"evenkeel-agent", {"--aggregator", "10.0.0.7:2021"}, 1, {"10.0.0.7", "tcp://"}},
		{"evenkeel-agent", {"--aggregator", "tcp://box"}, 1, {"tcp://box", "PORT"}},
		{"evenkeel-agent", {"--aggregator", "tcp://box:99999"}, 1, {"99999", "65535"}},
		{"evenkeel-agent", {"--aggregator", "ipc://run/x"}, 1, {"ipc://run/x", "absolute"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_refusal(&cases[i]);
}

static void test_no_cgroups(void **state)
{
	const struct fixture *f = *state;
	const struct bad_start c = {"evenkeel-agent",
				    {"--cgroup-root", f->folder, "--aggregator", f->url},
				    1,
				    {f->folder, "cgroup"}};

	expect_refusal(&c);
}

static void test_server_unreachable(void **state)
{
	const struct bad_start c = {
		"evenkeel", {"--server", "http://127.0.0.1:1", "nodes"}, 1, {"http://127.0.0.1:1"}};

	(void)state;
	expect_refusal(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usage_errors),
		cmocka_unit_test_setup_teardown(test_unusable_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_port_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_configuration, setup, teardown),
		cmocka_unit_test(test_bad_addresses),
		cmocka_unit_test_setup_teardown(test_no_cgroups, setup, teardown),
		cmocka_unit_test(test_server_unreachable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
