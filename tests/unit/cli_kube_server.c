/* SPDX-License-Identifier: Apache-2.0 */
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

#include "aggregator/cli/kube_server.h"
#include "shared/mem.h"
#include "tests/process.h"

static char *home; /* with .kube/config of the cluster "home" */
static char *other; /* a file of the cluster "other" */

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void write_config(const char *path, const char *cluster)
{
	char *text = mem_printf(
		"current-context: a\ncontexts: [{name: a, context: {cluster: c}}, {name: b, "
		"context: {cluster: d}}]\nclusters: [{name: c, cluster: {server: \"https://%s\"}}, "
		"{name: d, cluster: {server: \"https://%s.b\"}}]\n",
		cluster, cluster);

	write_text(path, text);
	free(text);
}

static int open_home(void **state)
{
	char *folder, *path;

	(void)state;
	home = folder_make();
	folder = mem_printf("%s/.kube", home);
	path = mem_printf("%s/config", folder);
	other = mem_printf("%s/other", home);
	assert_int_equal(mkdir(folder, 0700), 0);
	write_config(path, "home");
	write_config(other, "other");
	free(folder);
	free(path);
	return 0;
}

static int close_home(void **state)
{
	(void)state;
	folder_remove(home);
	free(other);
	return 0;
}

static void set(const char *name, const char *value)
{
	if (value)
		assert_int_equal(setenv(name, value, 1), 0);
	else
		assert_int_equal(unsetenv(name), 0);
}

struct place {
	struct cli_options options;
	const char *server; /* EVENKEEL_SERVER */
	const char *token; /* EVENKEEL_TOKEN */
	const char *listed; /* KUBECONFIG */
	const char *home; /* HOME */
	int found;
	const char *cluster; /* its server, or the error */
	const char *hint; /* NULL: any */
};

static void check(size_t i, const struct place *p)
{
	struct kube_config config = {0};
	struct error why = {""}, hint;
	int found;
	const char *got;

	set("EVENKEEL_SERVER", p->server);
	set("EVENKEEL_TOKEN", p->token);
	set("KUBECONFIG", p->listed);
	set("HOME", p->home);
	found = kube_server_find(&p->options, &config, &hint, &why);
	got = found > 0 ? config.server : found < 0 ? why.text : "";
	if (found != p->found || strcmp(got, p->cluster) != 0)
		fail_msg("case %zu: %d, %s", i, found, got);
	if (p->hint && strcmp(hint.text, p->hint) != 0)
		fail_msg("case %zu: hint %s", i, hint.text);
	kube_config_fini(&config);
}

static void test_order(void **state)
{
	char *missing = mem_printf("%s/missing", home), *both = mem_printf("%s:%s", missing, other);
	char *empty = mem_printf("%s/empty", home), *unset = mem_printf("%s/unset", home);
	char *listed = mem_printf("%s:%s:%s", empty, unset, other);
	char *names = mem_printf("; the kubeconfig %s names this server; --server "
				 "http://127.0.0.1:2020 asks a local aggregator",
				 other);
	char *absent = mem_printf(" (no kubeconfig: %s does not exist)", missing);
	const struct place cases[] = {
		{.cluster = "", .hint = ""},
		{.home = home, .found = 1, .cluster = "https://home"},
		{.home = home,
		 .listed = other,
		 .found = 1,
		 .cluster = "https://other",
		 .hint = names},
		{.home = home, .listed = both, .found = 1, .cluster = "https://other"},
		{.home = home, .listed = missing, .cluster = "", .hint = absent},
		{.home = home, .listed = "", .found = 1, .cluster = "https://home"},
		{.home = missing, .cluster = ""},
		/* Files that name no cluster count as none, also beside others. */
		{.listed = empty, .cluster = "", .hint = ""},
		{.listed = unset, .cluster = ""},
		{.listed = listed, .home = home, .found = 1, .cluster = "https://other"},
		/* EVENKEEL_SERVER goes before a default kubeconfig. */
		{.options = {.server = (char *)"http://x"},
		 .server = "http://x",
		 .home = home,
		 .cluster = ""},
		{.token = "t", .home = home, .cluster = ""},
		/* --kubeconfig and --context go before EVENKEEL_SERVER. */
		{.options = {.server = (char *)"http://x", .kubeconfig = other},
		 .server = "http://x",
		 .found = 1,
		 .cluster = "https://other",
		 .hint = ""},
		{.options = {.server = (char *)"http://x", .context = (char *)"b"},
		 .server = "http://x",
		 .home = home,
		 .found = 1,
		 .cluster = "https://home.b"},
		/* Options of an aggregator itself. */
		{.options = {.server = (char *)"http://y", .kubeconfig = other},
		 .server = "http://x",
		 .cluster = ""},
		{.options = {.server = (char *)"http://y"}, .home = home, .cluster = ""},
		{.options = {.access = {.token_file = "t"}}, .home = home, .cluster = ""},
		{.options = {.access = {.ca_file = "c"}}, .home = home, .cluster = ""},
	};

	(void)state;
	write_text(empty, "");
	write_text(unset, "current-context: \"\"\n");
	unsetenv("KUBERNETES_SERVICE_HOST");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(i, &cases[i]);
	free(missing);
	free(both);
	free(empty);
	free(unset);
	free(listed);
	free(names);
	free(absent);
}

static void test_failures(void **state)
{
	char *missing = mem_printf("%s/missing", home);
	char *says = mem_printf("%s: No such file or directory", missing);
	char *context = mem_printf("without --server the cluster of the kubeconfig answers: "
				   "%s/.kube/broken:1:18: context \"a\" is not in contexts",
				   home);
	char *broken = mem_printf("%s/.kube/broken", home);
	const struct place cases[] = {
		{.options = {.kubeconfig = missing}, .found = -ENOENT, .cluster = says},
		{.listed = broken, .found = -EINVAL, .cluster = context},
		{.options = {.context = (char *)"a"},
		 .found = -ENOENT,
		 .cluster = "no kubeconfig to take the context a from",
		 .hint = ""},
		{.options = {.context = (char *)"a"},
		 .listed = missing,
		 .found = -ENOENT,
		 .cluster = "no kubeconfig to take the context a from"},
	};

	(void)state;
	write_text(broken, "current-context: a\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check(i, &cases[i]);
	free(missing);
	free(says);
	free(context);
	free(broken);
}

static void test_explanations(void **state)
{
	static const struct {
		const char *method, *path, *answer;
		long status;
		int rc;
		const char *says;
	} cases[] = {
		{"GET", "/apis/evenkeel.io/v1/nodes?limit=5", "{\"message\":\"alice may not\"}",
		 403, -EACCES,
		 "alice may not: a role bound to this user needs the rule {apiGroups: "
		 "[evenkeel.io], resources: [nodes], verbs: [list]}; the ClusterRole evenkeel-view "
		 "has it"},
		{"GET", "/apis/evenkeel.io/v1/namespaces/shop/pods/a/history", "{}", 403, -EACCES,
		 ": a role bound to this user needs the rule {apiGroups: [evenkeel.io], resources: "
		 "[pods/history], verbs: [get]}; the ClusterRole evenkeel-view has it"},
		{"POST", "/apis/evenkeel.io/v1/scores", "{}", 403, -EACCES,
		 ": a role bound to this user needs the rule {apiGroups: [evenkeel.io], resources: "
		 "[scores], verbs: [create]}; the ClusterRole evenkeel-view has it"},
		{"POST", "/apis/evenkeel.io/v1/acts/requests", "{}", 403, -EACCES,
		 ": a role bound to this user needs the rule {apiGroups: [evenkeel.io], resources: "
		 "[acts], verbs: [create]}; the ClusterRole evenkeel-operator has it"},
		{"GET", "/apis/evenkeel.io/v1/nodes", "{\"message\":\"Unauthorized\"}", 401,
		 -EACCES,
		 "https://k does not accept the credentials of the kubeconfig: Unauthorized"},
		{"GET", "/apis/evenkeel.io/v1/nodes", "404 page not found", 404, -EHOSTUNREACH,
		 "evenkeel is not installed in this cluster, or its APIService is not available: "
		 "https://k answers HTTP 404; kubectl get apiservice v1.evenkeel.io tells why"},
		{"GET", "/apis/evenkeel.io/v1/nodes", "", 503, -EHOSTUNREACH,
		 "evenkeel is not installed in this cluster, or its APIService is not available: "
		 "https://k answers HTTP 503; kubectl get apiservice v1.evenkeel.io tells why"},
		{"GET", "/apis/evenkeel.io/v1/nodes", "{\"message\":\"oh\"}", 500, -EIO,
		 "https://k answers HTTP 500 to /apis/evenkeel.io/v1/nodes: oh"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cJSON *answer = cJSON_Parse(cases[i].answer);
		struct error why = {""};

		assert_int_equal(kube_server_explain("https://k", cases[i].method, cases[i].path,
						     cases[i].status, answer, &why),
				 cases[i].rc);
		assert_string_equal(why.text, cases[i].says);
		cJSON_Delete(answer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_explanations),
	};

	return cmocka_run_group_tests(tests, open_home, close_home);
}
