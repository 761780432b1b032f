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
#include <unistd.h>

#include "aggregator/edge/kube/config.h"
#include "shared/buf.h"
#include "shared/mem.h"
#include "tests/process.h"

#define PEM_TEXT "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
#define PEM_BASE64                                                                                 \
	"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
#define V1 "client.authentication.k8s.io/v1"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int parse(struct kube_config *c, const char *text, const char *context, struct error *why)
{
	const struct kubeconfig_file file = {"file", "/etc/kube", text, strlen(text)};

	return kubeconfig_parse(c, &file, 1, context, why);
}

static void parse_good(struct kube_config *c, const char *text, const char *context)
{
	struct error why = {""};

	if (parse(c, text, context, &why))
		fail_msg("%s\n%s", why.text, text);
}

/* As kubectl merges: the first file decides about each name, and paths are of their own file. */
static void test_several_files(void **state)
{
	static const char first[] = "contexts: [{name: a, context: {cluster: c, user: u}}]\n"
				    "users: [{name: u, user: {tokenFile: t}}]\n",
			  second[] = "current-context: a\n"
				     "contexts: [{name: a, context: {cluster: x}},"
				     " {name: b, context: {cluster: c, user: v}}]\n"
				     "clusters: [{name: c, cluster: {server: \"https://c\","
				     " certificate-authority: ca}}]\n"
				     "users: [{name: u, user: {token: other}}]\n";
	const struct kubeconfig_file files[] = {{"1", "/one", first, strlen(first)},
						{"2", "/two", second, strlen(second)}};
	const struct kubeconfig_file with_empty[] = {
		{"0", "/", "", 0}, {"0", "/", "# nothing\n", 10}, files[0], files[1]};
	struct kube_config c = {0};
	struct error why = {""};

	(void)state;
	assert_int_equal(kubeconfig_parse(&c, files, 2, NULL, &why), 0);
	assert_string_equal(c.server, "https://c");
	assert_string_equal(c.ca_file, "/two/ca");
	assert_string_equal(c.token_file, "/one/t");
	assert_null(c.token);
	assert_string_equal(c.source, "1");
	kube_config_fini(&c);
	assert_int_equal(kubeconfig_parse(&c, with_empty, 4, NULL, &why), 0);
	assert_string_equal(c.source, "1");
	kube_config_fini(&c);
	assert_int_equal(kubeconfig_parse(&c, with_empty, 2, NULL, &why), -ENODATA);
	assert_string_equal(why.text, "0: is empty");
	assert_int_equal(kubeconfig_parse(&c, files, 2, "b", &why), -EINVAL);
	assert_string_equal(why.text, "2:2:84: user \"v\" is not in users");
	assert_int_equal(kubeconfig_parse(&c, files, 2, "z", &why), -EINVAL);
	assert_string_equal(why.text, "1:1:1: context \"z\" is not in contexts");
	assert_int_equal(kubeconfig_parse(&c, files, 1, NULL, &why), -ENODATA);
	assert_string_equal(why.text, "1: there is no current-context");
}

/* No fault of a file, but the file names no cluster. */
static void test_no_current_context(void **state)
{
	static const char *const cases[][2] = {
		{"", "file: is empty"},
		{"# nothing\n", "file: is empty"},
		{"a: 1\n", "file: there is no current-context"},
		{"current-context: ''\n", "file: there is no current-context"},
	};
	struct kube_config c = {0};
	struct error why = {""};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(parse(&c, cases[i][0], NULL, &why), -ENODATA);
		assert_string_equal(why.text, cases[i][1]);
	}
}

/* KUBECONFIG may name files that are not there, but not only such. */
static void test_list_of_files(void **state)
{
	char *folder = folder_make(), *path = mem_printf("%s/config", folder);
	char *paths = mem_printf("/nowhere/a:%s:/nowhere/b", path);
	struct buf many = BUF_INIT;
	struct kube_config c = {0};
	struct error why = {""};
	FILE *file = fopen(path, "w");

	(void)state;
	assert_non_null(file);
	assert_true(fputs("current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
			  "clusters: [{name: c, cluster: {server: \"https://c\"}}]\n",
			  file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(kube_config_read_list(&c, paths, NULL, &why), 0);
	assert_string_equal(c.source, path);
	kube_config_fini(&c);
	assert_int_equal(kube_config_read_list(&c, "/nowhere/a:/nowhere/b", NULL, &why), -ENOENT);
	assert_string_equal(why.text, "/nowhere/a:/nowhere/b: no such file");
	assert_int_equal(kube_config_read_list(&c, "", NULL, &why), -ENOENT);
	for (size_t i = 0; i < KUBECONFIG_FILES_MAX + 1; i++)
		buf_printf(&many, "%s%s", i ? ":" : "", path);
	assert_int_equal(kube_config_read_list(&c, many.data, NULL, &why), -EINVAL);
	assert_string_equal(why.text, "more than 16 kubeconfig files");
	buf_fini(&many);
	folder_remove(folder);
	free(path);
	free(paths);
}

static void assert_refused(const char *text, const char *says)
{
	static const struct kube_config untouched;
	struct kube_config c = {0};
	struct error why = {""};

	assert_int_equal(parse(&c, text, NULL, &why), -EINVAL);
	if (strcmp(why.text, says) != 0)
		fail_msg("said: %s\nnot:  %s\nof:\n%s", why.text, says, text);
	assert_memory_equal(&c, &untouched, sizeof(c));
}

/*
 * A kubeconfig whose cluster and user have these members, each in a line of its own: lines 5 and 7,
 * from column 10 on.
 */
static char *wrap(const char *cluster, const char *user)
{
	return mem_printf("current-context: a\n"
			  "contexts: [{name: a, context: {cluster: b, user: c}}]\n"
			  "clusters:\n"
			  "- name: b\n"
			  "  cluster: {%s}\n"
			  "users:\n"
			  "- {user: {%s}, name: c}\n",
			  cluster, user);
}

#define SERVER "server: 'https://h:6443'"

/* --- good files ------------------------------------------------------------------------------- */

static const char full[] =
	"apiVersion: v1\n"
	"kind: Config\n"
	"preferences: {colors: true}\n"
	"clusters:\n"
	"- name: other\n"
	"  cluster: {server: nonsense}\n"
	"- cluster:\n"
	"    certificate-authority-data: " PEM_BASE64 "\n"
	"    server: https://10.96.0.1:443/\n"
	"    tls-server-name: kubernetes\n"
	"    proxy-url: socks5://proxy.example:1080\n"
	"    extensions: [{name: x, extension: {a: [1, 2]}}]\n"
	"  name: dev\n"
	"- {name: plain, cluster: {server: 'http://127.0.0.1:8001', insecure-skip-tls-verify: "
	"true}}\n"
	"contexts:\n"
	"- name: dev-alice\n"
	"  context: {cluster: dev, user: alice, namespace: shop}\n"
	"- name: dev-files\n"
	"  context: {cluster: dev, user: files}\n"
	"- name: nobody\n"
	"  context: {cluster: plain, user: ''}\n"
	"current-context: dev-alice\n"
	"users:\n"
	"- name: alice\n"
	"  user:\n"
	"    client-certificate-data: " PEM_BASE64 "\n"
	"    client-key-data: " PEM_BASE64 "\n"
	"    username: ''\n"
	"    token: null\n"
	"- name: files\n"
	"  user: {tokenFile: token, client-certificate: c/crt, client-key: /abs/key, token: old}\n"
	"- name: broken\n"
	"  user: {token: [not, a, token]}\n"
	"things-of-tomorrow: []\n";

static void reads_the_current_context(void **state)
{
	struct kube_config c, copy;

	(void)state;
	parse_good(&c, full, NULL);
	kube_config_copy(&copy, &c);
	kube_config_fini(&c);
	assert_string_equal(copy.server, "https://10.96.0.1:443");
	assert_string_equal(copy.ca_data, PEM_TEXT);
	assert_null(copy.ca_file);
	assert_string_equal(copy.tls_server_name, "kubernetes");
	assert_string_equal(copy.proxy_url, "socks5://proxy.example:1080");
	assert_string_equal(copy.namespace, "shop");
	assert_string_equal(copy.client_certificate_data, PEM_TEXT);
	assert_string_equal(copy.client_key_data, PEM_TEXT);
	assert_null(copy.token);
	assert_null(copy.exec_command);
	assert_false(copy.insecure_skip_tls_verify);
	assert_string_equal(copy.source, "file");
	kube_config_fini(&copy);
	assert_null(copy.server);
	kube_config_fini(&copy);
	kube_config_fini(NULL);
}

static void reads_another_context(void **state)
{
	struct kube_config c;

	(void)state;
	parse_good(&c, full, "dev-files");
	assert_string_equal(c.token_file, "/etc/kube/token");
	assert_null(c.token);
	assert_string_equal(c.client_certificate_file, "/etc/kube/c/crt");
	assert_string_equal(c.client_key_file, "/abs/key");
	assert_null(c.namespace);
	kube_config_fini(&c);

	parse_good(&c, full, "nobody");
	assert_string_equal(c.server, "http://127.0.0.1:8001");
	assert_true(c.insecure_skip_tls_verify);
	assert_null(c.token_file);
	kube_config_fini(&c);
}

static void reads_json(void **state)
{
	struct kube_config c;

	(void)state;
	parse_good(&c,
		   "{\"current-context\": \"a\", \"users\": [{\"name\": \"c\", \"user\": "
		   "{\"token\": \"secret\"}}],\n\t\"clusters\": [{\"name\": \"b\", \"cluster\": "
		   "{\"server\": \"https:\\/\\/[fd00::1]:6443\"}}],\n\"contexts\": [{\"name\": "
		   "\"a\", \"context\": {\"cluster\": \"b\", \"user\": \"c\"}}]}",
		   NULL);
	assert_string_equal(c.server, "https://[fd00::1]:6443");
	assert_string_equal(c.token, "secret");
	kube_config_fini(&c);
}

static void reads_an_exec_plugin(void **state)
{
	char *text =
		wrap(SERVER, "exec: {apiVersion: " V1 ", command: ./bin/login, args: [a, '', 12], "
			     "env: [{name: A, value: b=c}, {name: E}], installHint: get it, "
			     "interactiveMode: IfAvailable, provideClusterInfo: true}");
	struct kube_config c, copy;

	(void)state;
	parse_good(&c, text, NULL);
	kube_config_copy(&copy, &c);
	kube_config_fini(&c);
	assert_string_equal(copy.exec_api_version, V1);
	assert_string_equal(copy.exec_command, "/etc/kube/./bin/login");
	assert_string_equal(copy.exec_args[0], "a");
	assert_string_equal(copy.exec_args[1], "");
	assert_string_equal(copy.exec_args[2], "12");
	assert_null(copy.exec_args[3]);
	assert_string_equal(copy.exec_env[0], "A=b=c");
	assert_string_equal(copy.exec_env[1], "E=");
	assert_null(copy.exec_env[2]);
	assert_string_equal(copy.exec_install_hint, "get it");
	assert_true(copy.exec_provide_cluster_info);
	kube_config_fini(&copy);
	free(text);
}

static void a_plain_command_is_left_to_path(void **state)
{
	char *text = wrap(SERVER, "exec: {apiVersion: " V1 "beta1, command: aws}");
	struct kube_config c;

	(void)state;
	parse_good(&c, text, NULL);
	assert_string_equal(c.exec_api_version, V1 "beta1");
	assert_string_equal(c.exec_command, "aws");
	assert_false(c.exec_provide_cluster_info);
	kube_config_fini(&c);
	free(text);
}

/* An alias is the same again, also where it leads round in circles. */
static void reads_aliases(void **state)
{
	struct kube_config c;

	(void)state;
	parse_good(
		&c,
		"current-context: &n a\ncontexts: [{name: *n, context: {cluster: *n, user: *n}}]\n"
		"clusters: [{name: *n, cluster: &c {server: 'https://h', extensions: *c}}]\n"
		"users: [{name: *n, user: {token: *n}}]\n",
		NULL);
	assert_string_equal(c.server, "https://h");
	assert_string_equal(c.token, "a");
	kube_config_fini(&c);
}

/* --- bad files -------------------------------------------------------------------------------- */

static void bad_files_are_refused_with_their_place(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"[]", "file: not a kubeconfig: no mapping"},
		{"a: [1,\nb: }", "file:2:4: did not find expected node content"},
		{"a: \xff", "file: byte 4: invalid leading UTF-8 octet"},
		{"a: *b\n", "file:1:4: found undefined alias"},
		{"a: 1\n--- \nb: 2\n", "file:2:1: a second document; there may be only one"},
		{"current-context: a\n", "file:1:18: context \"a\" is not in contexts"},
		{"current-context: \"a\\nb\"\n", "file:1:18: context \"a b\" is not in contexts"},
		{"current-context: [a]\n",
		 "file:1:18: current-context: expected a plain value here"},
		{"current-context: a\ncontexts: {a: b}\n",
		 "file:2:11: contexts: expected a list here"},
		{"current-context: a\ncontexts: [a]\n",
		 "file:2:12: item: expected \"name: value\" lines here"},
		{"current-context: a\ncurrent-context: a\n",
		 "file:2:1: current-context is given twice"},
		{"<<: {current-context: a}\n", "file:1:1: merge keys (<<) are not supported"},
		{"current-context: a\ncontexts: [{name: a}]\n", "file:1:18: the context is empty"},
		{"current-context: a\ncontexts: [{name: a, context: {user: c}}]\n",
		 "file:2:31: the context names no cluster"},
		{"current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n",
		 "file:2:41: cluster \"c\" is not in clusters"},
		{"current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
		 "clusters: [{name: c}]\n",
		 "file:2:31: the cluster of the context is empty"},
		{"current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
		 "clusters: [{name: c, cluster: {" SERVER "}}, {name: c}]\n",
		 "file:3:60: clusters: a second entry named \"c\""},
		{"current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
		 "clusters: [{name: c, cluster: {" SERVER "}}]\n",
		 "file:2:50: user \"u\" is not in users"},
		{"current-context: \"a\\0b\"\n",
		 "file:1:18: current-context: a value with a zero byte"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_refused(rows[i].text, rows[i].says);
}

#define GIVE_ONE "give one of them"
#define PASSWORD                                                                                   \
	"passwords are gone from Kubernetes 1.19 on; use a token, a client certificate or exec"
#define NO_URL "not an address such as https://10.96.0.1:443 (no scheme)"

static void bad_clusters_are_refused(void **state)
{
	static const struct {
		const char *cluster, *says;
	} rows[] = {
		{"x: y", "file:5:12: the cluster has no server"},
		{"server: ''", "file:5:12: the cluster has no server"},
		{"server: 'ftp://h'", "file:5:21: server: only https and http are possible"},
		{"server: 'https://u:p@h'", "file:5:21: server: has more than host, port and path"},
		{"server: 'https://h/?a=b'",
		 "file:5:21: server: has more than host, port and path"},
		{SERVER ", tls-server-name: a/b", "file:5:56: tls-server-name: not a host name"},
		{SERVER ", tls-server-name: 'a:1'", "file:5:56: tls-server-name: not a host name"},
		{SERVER ", proxy-url: 'ftp://p'",
		 "file:5:50: proxy-url: only http, https and socks5 are possible"},
		{SERVER ", insecure-skip-tls-verify: maybe",
		 "file:5:65: insecure-skip-tls-verify: expected true or false"},
		{SERVER ", certificate-authority: a, certificate-authority-data: " PEM_BASE64,
		 "file:5:12: certificate-authority and certificate-authority-data: " GIVE_ONE},
		{SERVER ", certificate-authority: a, insecure-skip-tls-verify: true",
		 "file:5:12: insecure-skip-tls-verify: there is a certificate authority to verify "
		 "with; " GIVE_ONE},
		{SERVER ", certificate-authority-data: '!!!!'",
		 "file:5:67: certificate-authority-data: broken base64"},
		{SERVER ", certificate-authority-data: LS0",
		 "file:5:67: certificate-authority-data: broken base64"},
		{SERVER ", certificate-authority-data: AAAA",
		 "file:5:67: certificate-authority-data: decodes to something that is not PEM"},
		{SERVER ", " SERVER, "file:5:39: server is given twice"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *text = wrap(rows[i].cluster, "");

		assert_refused(text, rows[i].says);
		free(text);
	}
}

static void bad_users_are_refused(void **state)
{
	static const struct {
		const char *user, *says;
	} rows[] = {
		{"username: bob", "file:7:21: username: " PASSWORD},
		{"password: secret", "file:7:21: password: " PASSWORD},
		{"auth-provider: {name: oidc}",
		 "file:7:26: auth-provider: gone from Kubernetes 1.26 on; use exec with the plugin "
		 "of your provider"},
		{"as: root", "file:7:15: as: acting as another user is not supported"},
		{"as-groups: [a]",
		 "file:7:22: as-groups: acting as another group is not supported"},
		{"token: 'a b'", "file:7:18: token: byte 2 of the token is no printable ASCII"},
		{"token: ' '", "file:7:18: token: the token is empty"},
		{"token: {a: b}", "file:7:18: token: expected a plain value here"},
		{"client-key: k", "file:7:10: client-certificate and client-key: one is missing"},
		{"client-certificate: k",
		 "file:7:10: client-certificate and client-key: one is missing"},
		{"client-certificate: k, client-certificate-data: " PEM_BASE64,
		 "file:7:10: client-certificate and client-certificate-data: " GIVE_ONE},
		{"client-key: k, client-key-data: " PEM_BASE64,
		 "file:7:10: client-key and client-key-data: " GIVE_ONE},
		{"exec: {command: a}", "file:7:17: exec: apiVersion must be " V1 " or " V1 "beta1"},
		{"exec: {apiVersion: " V1 "alpha1, command: a}",
		 "file:7:17: exec: apiVersion must be " V1 " or " V1 "beta1"},
		{"exec: {apiVersion: " V1 "}", "file:7:17: exec: no command"},
		{"exec: {apiVersion: " V1 ", command: a, interactiveMode: Always}",
		 "file:7:17: exec: interactiveMode Always needs a person at a terminal, and there "
		 "is none"},
		{"exec: {apiVersion: " V1 ", command: a, interactiveMode: Often}",
		 "file:7:17: exec: interactiveMode must be Never or IfAvailable"},
		{"exec: {apiVersion: " V1 ", command: a}, token: secret",
		 "file:7:17: exec: the user has another credential as well; " GIVE_ONE},
		{"exec: {apiVersion: " V1 ", command: a, env: [{value: b}]}",
		 "file:7:81: env: no name, or one with ="},
		{"exec: {apiVersion: " V1 ", command: a, env: [{name: a=b}]}",
		 "file:7:81: env: no name, or one with ="},
		{"exec: {apiVersion: " V1 ", command: a, args: [[b]]}",
		 "file:7:82: item: expected a plain value here"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *text = wrap(SERVER, rows[i].user);

		assert_refused(text, rows[i].says);
		free(text);
	}
}

static void repeat(struct buf *b, const char *text, size_t times)
{
	for (size_t i = 0; i < times; i++)
		buf_add_str(b, text);
}

static void what_would_be_expensive_is_refused(void **state)
{
	struct buf b = BUF_INIT;

	(void)state;
	repeat(&b, "[", 100000);
	assert_refused(b.data, "file:1:65: nested deeper than 64 levels");
	buf_clear(&b);
	buf_add_str(&b, "[");
	repeat(&b, "a,", 200000);
	buf_add_str(&b, "]");
	assert_refused(b.data, "file:1:199996: more than 100000 values");
	buf_clear(&b);
	for (size_t i = 0; i < 1000; i++)
		buf_printf(&b, "k%zu: &a%zu x\n", i, i);
	assert_refused(b.data, "file:101:7: more than 100 anchors");
	buf_fini(&b);
}

/* --- files ------------------------------------------------------------------------------------ */

struct scene {
	char *folder;
	struct kube_config config;
	struct error why;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	s->folder = folder_make();
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	kube_config_fini(&s->config);
	folder_remove(s->folder);
	free(s);
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("KUBERNETES_SERVICE_PORT");
	return 0;
}

static char *file_at(const struct scene *s, const char *name)
{
	return mem_printf("%s/%s", s->folder, name);
}

static void write_file(const struct scene *s, const char *name, const char *text)
{
	char *path = file_at(s, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	free(path);
}

static void remove_file(const struct scene *s, const char *name)
{
	char *path = file_at(s, name);

	assert_int_equal(unlink(path), 0);
	free(path);
}

static int read_config(struct scene *s, const char *name)
{
	char *path = file_at(s, name);
	int rc;

	kube_config_fini(&s->config);
	rc = kube_config_read(&s->config, path, NULL, &s->why);
	free(path);
	return rc;
}

static void assert_says(const struct scene *s, const char *text)
{
	if (!strstr(s->why.text, text))
		fail_msg("\"%s\" is not in: %s", text, s->why.text);
}

static void paths_are_relative_to_the_file(void **state)
{
	struct scene *s = *state;
	char *text = wrap(SERVER ", certificate-authority: ca.crt", "tokenFile: ../token");
	char *ca = file_at(s, "ca.crt"), *token = file_at(s, "../token"), *here = getcwd(NULL, 0);

	write_file(s, "config", text);
	assert_int_equal(read_config(s, "config"), 0);
	assert_string_equal(s->config.ca_file, ca);
	assert_string_equal(s->config.token_file, token);
	/* A relative name of the file makes no relative paths. */
	kube_config_fini(&s->config);
	assert_int_equal(chdir(s->folder), 0);
	assert_int_equal(kube_config_read(&s->config, "config", NULL, &s->why), 0);
	assert_int_equal(chdir(here), 0);
	assert_int_equal(s->config.ca_file[0], '/');
	assert_non_null(strstr(s->config.ca_file, "/./ca.crt"));
	free(here);
	free(token);
	free(ca);
	free(text);
}

static void files_that_cannot_be_read_are_named(void **state)
{
	struct scene *s = *state;
	char *pipe_path = file_at(s, "pipe"), *large = mem_alloc(KUBE_FILE_MAX + 2);

	assert_int_equal(read_config(s, "missing"), -ENOENT);
	assert_says(s, "/missing: No such file or directory");
	assert_int_equal(read_config(s, "."), -EINVAL);
	assert_says(s, "/.: not a regular file");
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	assert_int_equal(read_config(s, "pipe"), -EINVAL);
	assert_says(s, "/pipe: not a regular file");
	memset(large, '#', KUBE_FILE_MAX + 1);
	large[KUBE_FILE_MAX + 1] = '\0';
	write_file(s, "large", large);
	assert_int_equal(read_config(s, "large"), -EINVAL);
	assert_says(s, "/large: larger than 1024 KiB");
	write_file(s, "large", large + 1);
	assert_int_equal(read_config(s, "large"), -ENODATA);
	assert_says(s, "/large: is empty");
	free(large);
	free(pipe_path);
}

/* --- pods ------------------------------------------------------------------------------------- */

static int find_pod(struct scene *s)
{
	kube_config_fini(&s->config);
	return kube_config_in_cluster(&s->config, s->folder, &s->why);
}

static void set_address(const char *host, const char *port)
{
	setenv("KUBERNETES_SERVICE_HOST", host, 1);
	setenv("KUBERNETES_SERVICE_PORT", port, 1);
}

static void a_pod_finds_its_cluster(void **state)
{
	struct scene *s = *state;
	char *token = file_at(s, "token"), *ca = file_at(s, "ca.crt");

	write_file(s, "token", "secret");
	write_file(s, "ca.crt", PEM_TEXT);
	write_file(s, "namespace", "shop\n");
	assert_int_equal(find_pod(s), -ENOENT);
	assert_says(s, "not in a pod");
	set_address("10.96.0.1", "443");
	assert_int_equal(find_pod(s), 0);
	assert_string_equal(s->config.server, "https://10.96.0.1:443");
	assert_string_equal(s->config.token_file, token);
	assert_string_equal(s->config.ca_file, ca);
	assert_string_equal(s->config.namespace, "shop");
	assert_string_equal(s->config.source, "in-cluster");
	set_address("fd00::1", "6443");
	assert_int_equal(find_pod(s), 0);
	assert_string_equal(s->config.server, "https://[fd00::1]:6443");
	free(ca);
	free(token);
}

static void a_pod_tells_what_is_missing(void **state)
{
	struct scene *s = *state;

	set_address("10.96.0.1", "443");
	assert_int_equal(find_pod(s), -EINVAL);
	assert_says(s, "in-cluster: no token of the service account at /");
	assert_says(s, "/token: No such file or directory");
	write_file(s, "token", "secret");
	assert_int_equal(find_pod(s), -EINVAL);
	assert_says(s, "in-cluster: no certificate authority of the service account at /");
	write_file(s, "ca.crt", PEM_TEXT);
	assert_int_equal(find_pod(s), -EINVAL);
	assert_says(s, "/namespace: No such file or directory");
	write_file(s, "namespace", "shop");
	assert_int_equal(find_pod(s), 0);
	set_address("10.96.0.1", "https");
	assert_int_equal(find_pod(s), -EINVAL);
	assert_says(s, "in-cluster: KUBERNETES_SERVICE_HOST and _PORT: ");
	set_address("a/b", "443");
	assert_int_equal(find_pod(s), -EINVAL);
	assert_says(s, "_PORT: not a host name or an address");
	set_address("10.96.0.1", "");
	assert_int_equal(find_pod(s), -ENOENT);
	remove_file(s, "token");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_current_context),
		cmocka_unit_test(reads_another_context),
		cmocka_unit_test(reads_json),
		cmocka_unit_test(reads_an_exec_plugin),
		cmocka_unit_test(a_plain_command_is_left_to_path),
		cmocka_unit_test(reads_aliases),
		cmocka_unit_test(bad_files_are_refused_with_their_place),
		cmocka_unit_test(bad_clusters_are_refused),
		cmocka_unit_test(bad_users_are_refused),
		cmocka_unit_test(test_several_files),
		cmocka_unit_test(test_no_current_context),
		cmocka_unit_test(test_list_of_files),
		cmocka_unit_test(what_would_be_expensive_is_refused),
		cmocka_unit_test_setup_teardown(paths_are_relative_to_the_file, setup, teardown),
		cmocka_unit_test_setup_teardown(files_that_cannot_be_read_are_named, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_pod_finds_its_cluster, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pod_tells_what_is_missing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
