/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubeconfig is three lists by name (clusters, users, contexts) and the name of the current
 * context:
 *
 *	current-context: dev
 *	contexts: [{name: dev, context: {cluster: c, user: u, namespace: n}}]
 *	clusters: [{name: c, cluster: {server: "https://10.96.0.1:443",
 *	                               certificate-authority-data: BASE64}}]
 *	users:    [{name: u, user: {token: T}}]
 *
 * Only the entries of the chosen context are read, so another, unfinished entry does no harm. Two
 * tables map members to strings. Unknown members are ignored, except for those that make another
 * user of the request (impersonation, passwords, auth-provider), which are refused. The exclusions
 * are kubectl's; besides, an exec plugin is the only credential of its user. A token file wins
 * over a token, as in kubectl. Of several files the first with a current-context, and with an entry
 * of a name, decides; empty files are ignored.
 */
#include "aggregator/edge/kube/config.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/yaml_doc.h"
#include "shared/file.h"
#include "shared/mem.h"

enum { EXEC_LIST_MAX = 256, SHOWN_LEN = 66, ANCHORS_MAX = 100 };

/* Of one file. */
struct reader {
	struct yaml_doc yaml;
	const char *folder;
	struct kube_config *config; /* as read so far, of all files */
	struct reader *first; /* the files of the configuration .. */
	size_t count; /* .. */
};

/* --- strings ---------------------------------------------------------------------------------- */

enum form { PLAIN, PATH, PEM };

struct member {
	const char *key;
	size_t offset; /* of a char * of struct kube_config */
	enum form form;
};

#define MEMBER(name) offsetof(struct kube_config, name)

static const struct member cluster_members[] = {
	{"server", MEMBER(server), PLAIN},
	{"certificate-authority", MEMBER(ca_file), PATH},
	{"certificate-authority-data", MEMBER(ca_data), PEM},
	{"tls-server-name", MEMBER(tls_server_name), PLAIN},
	{"proxy-url", MEMBER(proxy_url), PLAIN},
	{NULL, 0, PLAIN},
};
static const struct member user_members[] = {
	{"token", MEMBER(token), PLAIN},
	{"tokenFile", MEMBER(token_file), PATH},
	{"client-certificate", MEMBER(client_certificate_file), PATH},
	{"client-certificate-data", MEMBER(client_certificate_data), PEM},
	{"client-key", MEMBER(client_key_file), PATH},
	{"client-key-data", MEMBER(client_key_data), PEM},
	{NULL, 0, PLAIN},
};

static char *resolve(const struct reader *r, const char *path)
{
	return path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", r->folder, path);
}

static const yaml_node_t *find_scalar(struct reader *r, const yaml_node_t *map, const char *key)
{
	return yaml_doc_find(&r->yaml, map, key, YAML_SCALAR_NODE);
}

/* The decoded text, or NULL with a failure. */
static char *decode(struct reader *r, const yaml_node_t *at, const char *key, const char *text)
{
	size_t room = strlen(text) / 4 * 3 + 3, len = 0;
	char *pem = mem_zalloc(room + 1, 1);
	int rc = sodium_base642bin((unsigned char *)pem, room, text, strlen(text), " \t\r\n", &len,
				   NULL, sodium_base64_VARIANT_ORIGINAL);

	if (rc == 0 && strlen(pem) == len && strstr(pem, "-----BEGIN "))
		return pem;
	yaml_doc_fail(&r->yaml, at, "%s: %s", key,
		      rc ? "broken base64" : "decodes to something that is not PEM");
	kube_bytes_wipe(pem, room);
	return NULL;
}

static void take_members(struct reader *r, const yaml_node_t *map, const struct member *members)
{
	for (const struct member *m = members; m->key; m++) {
		char **to = (char **)((char *)r->config + m->offset);
		const char *text = yaml_doc_text(&r->yaml, map, m->key);

		if (!text)
			continue;
		if (m->form == PATH)
			*to = resolve(r, text);
		else if (m->form == PEM)
			*to = decode(r, find_scalar(r, map, m->key), m->key, text);
		else
			*to = mem_strdup(text);
	}
}

/* At most one of the two is allowed. */
static void check_one(struct reader *r, const yaml_node_t *at, const char *file, const char *data,
		      const char *key)
{
	if (file && data)
		yaml_doc_fail(&r->yaml, at, "%s and %s-data: give one of them", key, key);
}

/* --- cluster ---------------------------------------------------------------------------------- */

static void check_server(struct reader *r, const yaml_node_t *cluster)
{
	const yaml_node_t *at;
	struct kube_url url = {0};
	struct error why;
	char *server = r->config->server;

	at = find_scalar(r, cluster, "server");
	if (!server || !at) {
		yaml_doc_fail(&r->yaml, cluster, "the cluster has no server");
		return;
	}
	if (kube_url_parse(&url, server, &why))
		yaml_doc_fail(&r->yaml, at, "server: %s", why.text);
	kube_url_fini(&url);
	for (size_t len = strlen(server); len && server[len - 1] == '/'; len--)
		server[len - 1] = '\0';
}

static void check_proxy(struct reader *r, const yaml_node_t *cluster)
{
	const yaml_node_t *at = find_scalar(r, cluster, "proxy-url");
	struct error why;

	if (at && r->config->proxy_url && kube_url_check_proxy(r->config->proxy_url, &why))
		yaml_doc_fail(&r->yaml, at, "proxy-url: %s", why.text);
}

static void check_tls_name(struct reader *r, const yaml_node_t *cluster)
{
	const yaml_node_t *at = find_scalar(r, cluster, "tls-server-name");
	char *host;

	if (!at || !r->config->tls_server_name)
		return;
	host = kube_url_host(r->config->tls_server_name);
	if (!host)
		yaml_doc_fail(&r->yaml, at, "tls-server-name: not a host name");
	free(host);
}

static void take_cluster(struct reader *r, const yaml_node_t *cluster)
{
	struct kube_config *c = r->config;

	take_members(r, cluster, cluster_members);
	c->insecure_skip_tls_verify = yaml_doc_flag(&r->yaml, cluster, "insecure-skip-tls-verify");
	check_server(r, cluster);
	check_tls_name(r, cluster);
	check_proxy(r, cluster);
	check_one(r, cluster, c->ca_file, c->ca_data, "certificate-authority");
	if (c->insecure_skip_tls_verify && (c->ca_file || c->ca_data))
		yaml_doc_fail(&r->yaml, cluster,
			      "insecure-skip-tls-verify: there is a certificate authority to "
			      "verify with; give one of them");
}

/* --- user ------------------------------------------------------------------------------------- */

static void refuse_members(struct reader *r, const yaml_node_t *user)
{
	static const char no_password[] = "passwords are gone from Kubernetes 1.19 on; use a "
					  "token, a client certificate or exec";
	static const struct {
		const char *key;
		yaml_node_type_t type;
		const char *why;
	} refused[] = {
		{"username", YAML_SCALAR_NODE, no_password},
		{"password", YAML_SCALAR_NODE, no_password},
		{"auth-provider", YAML_MAPPING_NODE,
		 "gone from Kubernetes 1.26 on; use exec with the plugin of your provider"},
		{"as", YAML_SCALAR_NODE, "acting as another user is not supported"},
		{"as-uid", YAML_SCALAR_NODE, "acting as another user is not supported"},
		{"as-groups", YAML_SEQUENCE_NODE, "acting as another group is not supported"},
		{"as-user-extra", YAML_MAPPING_NODE, "acting as another user is not supported"},
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const yaml_node_t *at =
			yaml_doc_find(&r->yaml, user, refused[i].key, refused[i].type);

		if (at && (at->type != YAML_SCALAR_NODE || at->data.scalar.length))
			yaml_doc_fail(&r->yaml, at, "%s: %s", refused[i].key, refused[i].why);
	}
}

/* Certificate and key: each as a file or inline, both or none. */
static void check_pair(struct reader *r, const yaml_node_t *user)
{
	const struct kube_config *c = r->config;

	check_one(r, user, c->client_certificate_file, c->client_certificate_data,
		  "client-certificate");
	check_one(r, user, c->client_key_file, c->client_key_data, "client-key");
	if (!(c->client_certificate_file || c->client_certificate_data) !=
	    !(c->client_key_file || c->client_key_data))
		yaml_doc_fail(&r->yaml, user, "client-certificate and client-key: one is missing");
}

/* "NAME=VALUE" of an item {name, value}, or NULL with a failure. */
static char *env_text(struct reader *r, const yaml_node_t *item)
{
	const char *name = yaml_doc_text(&r->yaml, item, "name");
	const char *value = yaml_doc_text(&r->yaml, item, "value");

	if (name && !strchr(name, '='))
		return mem_printf("%s=%s", name, value ? value : "");
	yaml_doc_fail(&r->yaml, item, "env: no name, or one with =");
	return NULL;
}

static char *arg_text(struct reader *r, const yaml_node_t *item)
{
	(void)r;
	return mem_strdup((const char *)item->data.scalar.value);
}

/* The items of a list of exec, NULL-terminated. */
static char **take_list(struct reader *r, const yaml_node_t *exec, const char *key,
			yaml_node_type_t type,
			char *(*text)(struct reader *r, const yaml_node_t *item))
{
	const yaml_node_t *list = yaml_doc_find(&r->yaml, exec, key, YAML_SEQUENCE_NODE);
	char **all = mem_zalloc(EXEC_LIST_MAX + 1, sizeof(*all));
	const yaml_node_t *item;

	for (size_t i = 0; (item = yaml_doc_item(&r->yaml, list, i, type)); i++) {
		if (i == EXEC_LIST_MAX)
			yaml_doc_fail(&r->yaml, item, "%s: more than %d", key, EXEC_LIST_MAX);
		else
			all[i] = text(r, item);
	}
	return all;
}

static void check_exec(struct reader *r, const yaml_node_t *exec)
{
	const struct kube_config *c = r->config;
	const char *mode = yaml_doc_text(&r->yaml, exec, "interactiveMode");
	const char *version = yaml_doc_text(&r->yaml, exec, "apiVersion");

	if (!version || (strcmp(version, "client.authentication.k8s.io/v1") != 0 &&
			 strcmp(version, "client.authentication.k8s.io/v1beta1") != 0))
		yaml_doc_fail(&r->yaml, exec,
			      "exec: apiVersion must be client.authentication.k8s.io/v1 or "
			      "client.authentication.k8s.io/v1beta1");
	if (!c->exec_command)
		yaml_doc_fail(&r->yaml, exec, "exec: no command");
	if (mode && strcmp(mode, "Always") == 0)
		yaml_doc_fail(&r->yaml, exec,
			      "exec: interactiveMode Always needs a person at a terminal, and "
			      "there is none");
	if (mode && strcmp(mode, "Always") != 0 && strcmp(mode, "Never") != 0 &&
	    strcmp(mode, "IfAvailable") != 0)
		yaml_doc_fail(&r->yaml, exec, "exec: interactiveMode must be Never or IfAvailable");
	if (c->token || c->token_file || c->client_certificate_file || c->client_certificate_data)
		yaml_doc_fail(&r->yaml, exec,
			      "exec: the user has another credential as well; give one of them");
}

static void check_token(struct reader *r, const yaml_node_t *user)
{
	struct kube_config *c = r->config;
	struct error why;
	char *checked;

	if (!c->token)
		return;
	if (token_take(c->token, strlen(c->token), &checked, &why)) {
		yaml_doc_fail(&r->yaml, find_scalar(r, user, "token"), "token: %s", why.text);
		return;
	}
	kube_text_wipe(c->token);
	c->token = checked;
	if (c->token_file) {
		kube_text_wipe(c->token);
		c->token = NULL;
	}
}

static void take_user(struct reader *r, const yaml_node_t *user)
{
	const yaml_node_t *exec;

	refuse_members(r, user);
	take_members(r, user, user_members);
	check_token(r, user);
	check_pair(r, user);
	exec = yaml_doc_find(&r->yaml, user, "exec", YAML_MAPPING_NODE);
	if (exec) {
		struct kube_config *c = r->config;
		const char *command = yaml_doc_text(&r->yaml, exec, "command");
		const char *version = yaml_doc_text(&r->yaml, exec, "apiVersion");
		const char *hint = yaml_doc_text(&r->yaml, exec, "installHint");

		/*
		 * A command with a slash is relative to the file; one without is looked for in
		 * PATH.
		 */
		if (command)
			c->exec_command =
				strchr(command, '/') ? resolve(r, command) : mem_strdup(command);
		c->exec_api_version = version ? mem_strdup(version) : NULL;
		c->exec_install_hint = hint ? mem_strdup(hint) : NULL;
		c->exec_args = take_list(r, exec, "args", YAML_SCALAR_NODE, arg_text);
		c->exec_env = take_list(r, exec, "env", YAML_MAPPING_NODE, env_text);
		c->exec_provide_cluster_info = yaml_doc_flag(&r->yaml, exec, "provideClusterInfo");
		check_exec(r, exec);
	}
}

/* --- names ------------------------------------------------------------------------------------ */

/* list[name == name] of this file; NULL: there is no such entry. */
static const yaml_node_t *find_here(struct reader *r, const char *list, const char *name)
{
	struct yaml_doc *y = &r->yaml;
	const yaml_node_t *entries = yaml_doc_find(y, yaml_doc_root(y), list, YAML_SEQUENCE_NODE);
	const yaml_node_t *found = NULL, *entry;
	char shown[SHOWN_LEN];

	for (size_t i = 0; (entry = yaml_doc_item(y, entries, i, YAML_MAPPING_NODE)); i++) {
		const char *called = yaml_doc_text(y, entry, "name");

		if (!called || strcmp(called, name) != 0)
			continue;
		if (found)
			yaml_doc_fail(y, entry, "%s: a second entry named \"%s\"", list,
				      kube_text_line(name, shown, sizeof(shown)));
		found = entry;
	}
	return found;
}

/*
 * list[name == name].member of the first file that has it, which becomes *r; a failure at `at` of
 * the former *r if there is none.
 */
static const yaml_node_t *find_entry(struct reader **r, const char *list, const char *member,
				     const char *name, const yaml_node_t *at)
{
	char shown[SHOWN_LEN];

	for (size_t i = 0; i < (*r)->count; i++) {
		struct reader *in = &(*r)->first[i];
		const yaml_node_t *found = find_here(in, list, name);

		if (found) {
			*r = in;
			return yaml_doc_find(&in->yaml, found, member, YAML_MAPPING_NODE);
		}
	}
	yaml_doc_fail(&(*r)->yaml, at, "%s \"%s\" is not in %s", member,
		      kube_text_line(name, shown, sizeof(shown)), list);
	return NULL;
}

/* The place of the current context, of the first file that has one, which becomes *r; or NULL. */
static const yaml_node_t *find_current(struct reader **r)
{
	for (size_t i = 0; i < (*r)->count; i++) {
		struct reader *in = &(*r)->first[i];
		const yaml_node_t *at =
			find_scalar(in, yaml_doc_root(&in->yaml), "current-context");

		if (at && at->data.scalar.length) {
			*r = in;
			return at;
		}
	}
	return NULL;
}

static void take_context(struct reader *r, const yaml_node_t *context)
{
	struct yaml_doc *y = &r->yaml;
	const char *cluster = yaml_doc_text(y, context, "cluster");
	const char *user = yaml_doc_text(y, context, "user");
	const char *namespace = yaml_doc_text(y, context, "namespace");
	const yaml_node_t *found;
	struct reader *in = r;

	if (!cluster) {
		yaml_doc_fail(y, context, "the context names no cluster");
		return;
	}
	r->config->namespace = namespace ? mem_strdup(namespace) : NULL;
	found = find_entry(&in, "clusters", "cluster", cluster, find_scalar(r, context, "cluster"));
	if (found)
		take_cluster(in, found);
	else
		yaml_doc_fail(y, context, "the cluster of the context is empty");
	if (!user)
		return;
	in = r;
	found = find_entry(&in, "users", "user", user, find_scalar(r, context, "user"));
	if (found)
		take_user(in, found);
}

/* All files are loaded, and none is empty. */
static int take_files(struct kube_config *c, struct reader *r, const char *context,
		      struct error *error)
{
	const yaml_node_t *at = yaml_doc_root(&r->yaml), *found;
	struct reader *in = r, *asks;
	bool failed = false;

	if (!context) {
		at = find_current(&in);
		context = at ? yaml_doc_scalar(at) : NULL;
	}
	asks = in;
	found = context ? find_entry(&in, "contexts", "context", context, at) : NULL;
	if (found)
		take_context(in, found);
	else if (context)
		yaml_doc_fail(&asks->yaml, at, "the context is empty");
	for (size_t i = 0; i < r->count; i++)
		failed |= r[i].yaml.failed;
	if (failed) {
		kube_config_fini(r->config);
		return -EINVAL;
	}
	if (!context)
		return error_fail(error, -ENODATA, "%s: there is no current-context", r->yaml.name);
	r->config->source = mem_strdup(in->yaml.name);
	*c = *r->config;
	return 0;
}

int kubeconfig_parse(struct kube_config *c, const struct kubeconfig_file *files, size_t count,
		     const char *context, struct error *error)
{
	struct kube_config config = {0};
	struct reader r[KUBECONFIG_FILES_MAX];
	const yaml_node_t *root;
	size_t loaded = 0;
	int rc = 0;

	assert(count && count <= KUBECONFIG_FILES_MAX);
	for (size_t i = 0; i < count && !rc; i++) {
		r[loaded] = (struct reader){
			.yaml = {.anchors_max = ANCHORS_MAX, .name = files[i].name, .error = error},
			.folder = files[i].folder,
			.config = &config,
			.first = r,
		};
		rc = yaml_doc_load(&r[loaded].yaml, files[i].text, files[i].len);
		if (rc)
			break;
		root = yaml_doc_root(&r[loaded++].yaml);
		if (root && root->type != YAML_MAPPING_NODE) {
			rc = error_fail(error, -EINVAL, "%s: not a kubeconfig: no mapping",
					files[i].name);
		} else if (!root) {
			yaml_doc_fini(&r[--loaded].yaml);
		}
	}
	for (size_t i = 0; i < loaded; i++)
		r[i].count = loaded;
	if (!rc && loaded) {
		rc = take_files(c, r, context, error);
	} else if (!rc) {
		rc = error_fail(error, -ENODATA, "%s: is empty", files[0].name);
	}
	while (loaded)
		yaml_doc_fini(&r[--loaded].yaml);
	return rc;
}

/* --- a file ----------------------------------------------------------------------------------- */

/* The folder of path, absolute if possible. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *here, *folder;

	if (path[0] == '/')
		return mem_strndup(path, slash == path ? 1 : (size_t)(slash - path));
	here = getcwd(NULL, 0);
	folder = mem_printf("%s/%.*s", here ? here : ".", slash ? (int)(slash - path) : 1,
			    slash ? path : ".");
	free(here);
	return folder;
}

/* The files that are there, of paths that any of these characters divides. */
static int read_files(struct kube_config *c, const char *paths, const char *dividers,
		      const char *context, struct error *error)
{
	struct kubeconfig_file files[KUBECONFIG_FILES_MAX];
	struct secret secrets[KUBECONFIG_FILES_MAX];
	char *list = mem_strdup(paths), *rest = NULL;
	size_t count = 0;
	int rc = -ENOENT;

	for (char *path = strtok_r(list, dividers, &rest); path && (!rc || rc == -ENOENT);
	     path = strtok_r(NULL, dividers, &rest)) {
		if (count == KUBECONFIG_FILES_MAX) {
			rc = error_fail(error, -EINVAL, "more than %d kubeconfig files",
					KUBECONFIG_FILES_MAX);
			break;
		}
		rc = secret_read(&secrets[count], path, KUBE_FILE_MAX, false, error);
		if (rc)
			continue;
		files[count] = (struct kubeconfig_file){path, folder_of(path), secrets[count].text,
							secrets[count].len};
		count++;
	}
	if (rc == -ENOENT && count)
		rc = 0;
	else if (rc == -ENOENT && (*dividers || !*paths))
		error_set(error, "%s: no such file", paths);
	if (!rc)
		rc = kubeconfig_parse(c, files, count, context, error);
	while (count--) {
		secret_free(&secrets[count]);
		free((char *)files[count].folder);
	}
	free(list);
	return rc;
}

int kube_config_read(struct kube_config *c, const char *path, const char *context,
		     struct error *error)
{
	return read_files(c, path, "", context, error);
}

int kube_config_read_list(struct kube_config *c, const char *paths, const char *context,
			  struct error *error)
{
	return read_files(c, paths, ":", context, error);
}
