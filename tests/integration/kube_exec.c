/* SPDX-License-Identifier: Apache-2.0 */
/* Exec plugins: scripts that give credentials, and scripts that do anything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aggregator/edge/kube/exec_credential.h"
#include "shared/mem.h"
#include "tests/kube_scene.h"
#include "tests/process.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, kube_scene_setup, kube_scene_teardown)

#define V1 "client.authentication.k8s.io/v1"
#define ANSWER(status)                                                                             \
	"{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":{" status "}}"

/*
 * A script that notes each of its runs in the file runs, and then does what body says, in its
 * folder.
 */
static void install_plugin(struct kube_scene *s, const char *body)
{
	char *script = mem_printf("#!/bin/sh\ncd '%s'\necho run >> runs\n%s\n", s->folder, body);

	kube_scene_write(s, "plugin", script);
	free(script);
	if (!s->config.exec_command) {
		s->config.exec_command = kube_scene_path(s, "plugin");
		s->config.exec_api_version = mem_strdup(V1);
	}
	assert_int_equal(chmod(s->config.exec_command, 0700), 0);
}

static size_t count_runs(const struct kube_scene *s)
{
	char *text = kube_scene_read(s, "runs");
	size_t len = strlen(text);

	free(text);
	return len / strlen("run\n");
}

static void a_plugin_gives_a_token(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, NULL);
	install_plugin(s, "echo '" ANSWER("\"token\":\"from-plugin\"") "'");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(count_runs(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.authorization, "Bearer from-plugin");
	/* It told no end, so it is not asked again until the server refuses. */
	s->now_ns += 86400 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_int_equal(count_runs(s), 1);
	kube_session_unauthorized(s->session);
	assert_int_equal(kube_scene_get(s), 200);
	assert_int_equal(count_runs(s), 2);
	/* The newest is what it would give anyway. */
	kube_session_unauthorized(s->session);
	s->now_ns += 9 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_int_equal(count_runs(s), 2);
	kube_session_unauthorized(s->session);
	s->now_ns += 1 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_int_equal(count_runs(s), 3);
}

static void a_plugin_runs_again_before_its_credential_ends(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, NULL);
	install_plugin(s,
		       "end=$(date -u -d '+1000 seconds' +%Y-%m-%dT%H:%M:%SZ)\n"
		       "printf '" ANSWER("\"token\":\"t\",\"expirationTimestamp\":\"%s\"") "' "
											   "$end");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	s->now_ns += 900 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_int_equal(count_runs(s), 1);
	s->now_ns += 40 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_int_equal(count_runs(s), 2);
	/* One that fails does no harm before the end, and rests after each failure. */
	install_plugin(s, "exit 1");
	s->now_ns += 941 * SECOND;
	assert_int_equal(kube_scene_get(s), 200);
	assert_int_equal(kube_scene_get(s), 200);
	assert_int_equal(count_runs(s), 3);
	s->now_ns += 60 * SECOND;
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(s, "/plugin: failed with exit status 1");
	assert_int_equal(count_runs(s), 4);
	assert_int_equal(kube_scene_get(s), 0);
	assert_int_equal(count_runs(s), 4);
}

static void a_plugin_gives_a_certificate(void **state)
{
	struct kube_scene *s = *state;

	kube_scene_serve(s, &s->server, s->ca.certificate);
	kube_scene_write_client(s, &s->bob);
	install_plugin(s, "crt=$(awk '{printf \"%s\\\\n\", $0}' client.crt)\n"
			  "key=$(awk '{printf \"%s\\\\n\", $0}' client.key)\n"
			  "cat <<END\n" ANSWER("\"clientCertificateData\":\"$crt\","
					       "\"clientKeyData\":\"$key\"") "\nEND");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	assert_string_equal(s->seen.client, "bob");
	assert_string_equal(s->seen.authorization, "");
	/* Another's key: not a credential. */
	kube_session_unauthorized(s->session);
	kube_scene_write(s, "client.key", s->alice.key);
	s->now_ns += 10 * SECOND;
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(s, "/plugin: client certificate and key: ");
}

static void a_plugin_is_told_what_it_needs(void **state)
{
	static char *arguments[] = {"get token", "$(reboot)", NULL};
	static char *variables[] = {"WHO=alice", "HOME=/elsewhere", "KUBERNETES_EXEC_INFO=x", NULL};
	struct kube_scene *s = *state;
	char *text;

	kube_scene_serve(s, &s->server, NULL);
	install_plugin(s, "echo \"$#|$1|$2|$WHO|$HOME\" > told\n"
			  "echo \"$KUBERNETES_EXEC_INFO\" > info\n"
			  "read -r line && echo \"$line\" >> told\n"
			  "tr '\\0' '\\n' < /proc/$$/environ |"
			  " grep -cE '^(HOME|KUBERNETES_EXEC_INFO)=' >> told\n"
			  "echo '" ANSWER("\"token\":\"t\"") "'");
	s->config.exec_args = arguments;
	s->config.exec_env = variables;
	s->config.exec_provide_cluster_info = true;
	s->config.tls_server_name = mem_strdup("kubernetes.example");
	assert_int_equal(kube_scene_open(s), 0);
	s->config.exec_args = s->config.exec_env = NULL;
	setenv("KUBERNETES_EXEC_INFO", "of this process", 1);
	assert_int_equal(kube_scene_get(s), 200);
	unsetenv("KUBERNETES_EXEC_INFO");
	text = kube_scene_read(s, "told");
	assert_string_equal(text, "2|get token|$(reboot)|alice|/elsewhere\n2\n");
	free(text);
	text = kube_scene_read(s, "info");
	assert_non_null(strstr(text, "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\","
				     "\"spec\":{\"cluster\":{\"server\":\"https://127.0.0.1:"));
	assert_non_null(strstr(text, "\"tls-server-name\":\"kubernetes.example\","
				     "\"certificate-authority-data\":\"LS0tLS1CRUdJTi"));
	assert_non_null(strstr(text, "},\"interactive\":false}}\n"));
	free(text);
}

/* Sockets and memory with keys in it are none of its business. */
static void a_plugin_inherits_no_descriptor(void **state)
{
	struct kube_scene *s = *state;

	s->config.server = mem_strdup("https://127.0.0.1:1");
	install_plugin(s, "[ -e /proc/$$/fd/77 ] && exit 7\nexit 8");
	assert_int_equal(dup2(STDERR_FILENO, 77), 77);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 0);
	close(77);
	kube_scene_assert_says(s, "/plugin: failed with exit status 8");
}

static void bad_plugins_are_named_with_what_they_said(void **state)
{
	static const struct {
		const char *body, *says;
	} rows[] = {
		{"echo first >&2; echo 'no login: run aws sso login' >&2; exit 3",
		 "/plugin: failed with exit status 3: no login: run aws sso login"},
		/* The last line of more than 4096 bytes, which begins before the 4096th. */
		{"yes x | head -n 2044 >&2; echo 'no login: run it' >&2; exit 3",
		 "/plugin: failed with exit status 3: no login: run it"},
		{"kill -9 $$", "/plugin: was ended by signal 9"},
		{"echo hello", "/plugin: printed what is no credential: not a JSON object"},
		{"exit 0", "/plugin: printed what is no credential: not a JSON object"},
		{"echo '{}'", "/plugin: printed what is no credential: not an ExecCredential"},
		{"echo '" ANSWER("") "'",
		 "/plugin: printed what is no credential: neither a token nor a certificate"},
		{"echo '" ANSWER("\"token\":\"a b\"") "'",
		 "/plugin: printed what is no credential: byte 2 of the token is no printable "
		 "ASCII"},
		{"end=$(date -u -d '-100 seconds' +%Y-%m-%dT%H:%M:%SZ)\n"
		 "printf '" ANSWER("\"token\":\"t\",\"expirationTimestamp\":\"%s\"") "' $end",
		 "/plugin: its credential ended 10"},
		{"yes", "/plugin: printed more than 256 KiB and was killed"},
	};
	struct kube_scene *s = *state;

	s->config.server = mem_strdup("https://127.0.0.1:1");
	install_plugin(s, "");
	assert_int_equal(kube_scene_open(s), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		install_plugin(s, rows[i].body);
		s->now_ns += 1000 * SECOND;
		assert_int_equal(kube_scene_get(s), 0);
		kube_scene_assert_says(s, "exec plugin /");
		kube_scene_assert_says(s, rows[i].says);
	}
}

#define KILLED "did not end within 1s and was killed"

/* As the session runs it, but for a shorter time. */
static void assert_hangs(struct kube_scene *s, const char *body, const char *says)
{
	struct error error;
	int runs = 0;
	char *out;
	size_t len;

	install_plugin(s, body);
	/* A busy machine may need a second to start a shell, which says nothing then. */
	do
		assert_int_equal(exec_run((char *[]){s->config.exec_command, NULL}, environ, SECOND,
					  &out, &len, &error),
				 -ETIMEDOUT);
	while (strcmp(error.text, says) != 0 && strcmp(error.text, KILLED) == 0 && ++runs < 20);
	assert_string_equal(error.text, says);
}

static void hanging_plugins_are_killed(void **state)
{
	assert_hangs(*state, "yes >&2", KILLED ": y");
	assert_hangs(*state, "exec >&- 2>&-; exec sleep 1000", KILLED);
}

static void a_missing_plugin_is_told_with_its_hint(void **state)
{
	struct kube_scene *s = *state;

	s->config.server = mem_strdup("https://127.0.0.1:1");
	s->config.exec_command = mem_strdup("evenkeel-no-such-plugin");
	s->config.exec_api_version = mem_strdup(V1);
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(
		s, "exec plugin evenkeel-no-such-plugin: cannot be run: No such file or "
		   "directory");
	s->config.exec_install_hint = mem_strdup("get it\nfrom the shop");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 0);
	kube_scene_assert_says(
		s, "exec plugin evenkeel-no-such-plugin: is not installed: get it from the "
		   "shop");
}

static bool is_gone(void *context)
{
	char path[64], stat[512] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", *(const int *)context);
	f = fopen(path, "r");
	if (!f)
		return true;
	(void)!fread(stat, 1, sizeof(stat) - 1, f);
	fclose(f);
	return strstr(stat, ") Z ") != NULL;
}

static int read_pid(const struct kube_scene *s)
{
	char *text = kube_scene_read(s, "pid");
	int pid = (int)strtol(text, NULL, 10);

	free(text);
	return pid;
}

/* A hanging plugin is killed with what it started. */
static void a_hanging_plugin_leaves_nothing_behind(void **state)
{
	struct kube_scene *s = *state;
	int pid;

	assert_hangs(s, "sleep 1000 & echo $! > pid; mv pid pid2; mv pid2 pid; wait", KILLED);
	pid = read_pid(s);
	/* On a machine that needs a second to start a shell there is nothing to look for. */
	if (pid > 0)
		assert_true(await(is_gone, &pid, 10));
}

/* What a plugin leaves running, with its stdout still open, does not keep anybody waiting. */
static void a_plugin_may_leave_a_helper(void **state)
{
	struct kube_scene *s = *state;
	int pid;

	kube_scene_serve(s, &s->server, NULL);
	install_plugin(s, "sleep 1000 & echo $! > pid; echo '" ANSWER("\"token\":\"t\"") "'");
	assert_int_equal(kube_scene_open(s), 0);
	assert_int_equal(kube_scene_get(s), 200);
	pid = read_pid(s);
	assert_true(pid > 0);
	assert_false(is_gone(&pid));
	kill(pid, SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plugin_gives_a_token),
		TEST(a_plugin_runs_again_before_its_credential_ends),
		TEST(a_plugin_gives_a_certificate),
		TEST(a_plugin_is_told_what_it_needs),
		TEST(a_plugin_inherits_no_descriptor),
		TEST(bad_plugins_are_named_with_what_they_said),
		TEST(hanging_plugins_are_killed),
		TEST(a_missing_plugin_is_told_with_its_hint),
		TEST(a_hanging_plugin_leaves_nothing_behind),
		TEST(a_plugin_may_leave_a_helper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
