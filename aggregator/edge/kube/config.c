/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration is a set of strings that tables copy, wipe and fill. It comes from a kubeconfig
 * (kubeconfig.c), or from the kubelet: two variables and a folder of three files. The token of a
 * pod is a path, not read here: it changes about every hour.
 *
 * libcurl's parser reads the addresses, as libcurl uses them. An address may hold a password, so
 * reasons name the fault, never all of the address.
 */
#include "aggregator/edge/kube/config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "shared/array.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "shared/utf8.h"

#define POD_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

enum { NAMESPACE_MAX = 253 };

/* --- copies ----------------------------------------------------------------------------------- */

#define MEMBER(name) offsetof(struct kube_config, name)

static const size_t texts[] = {
	MEMBER(server),
	MEMBER(ca_file),
	MEMBER(ca_data),
	MEMBER(tls_server_name),
	MEMBER(proxy_url),
	MEMBER(token),
	MEMBER(token_file),
	MEMBER(client_certificate_file),
	MEMBER(client_certificate_data),
	MEMBER(client_key_file),
	MEMBER(client_key_data),
	MEMBER(exec_command),
	MEMBER(exec_api_version),
	MEMBER(exec_install_hint),
	MEMBER(namespace),
	MEMBER(source),
};
static const size_t lists[] = {MEMBER(exec_args), MEMBER(exec_env)};

enum { TEXTS = sizeof(texts) / sizeof(texts[0]), LISTS = sizeof(lists) / sizeof(lists[0]) };

static char **text_at(struct kube_config *c, size_t offset)
{
	return (char **)((char *)c + offset);
}

static char ***list_at(struct kube_config *c, size_t offset)
{
	return (char ***)((char *)c + offset);
}

static char **copy_list(char **from)
{
	size_t count = 0;
	char **to = NULL;

	if (!from)
		return NULL;
	for (; *from; from++)
		ARRAY_ADD(to, count) = mem_strdup(*from);
	ARRAY_ADD(to, count) = NULL;
	return to;
}

void kube_config_copy(struct kube_config *to, const struct kube_config *from)
{
	*to = *from;
	for (size_t i = 0; i < TEXTS; i++) {
		char **text = text_at(to, texts[i]);

		*text = *text ? mem_strdup(*text) : NULL;
	}
	for (size_t i = 0; i < LISTS; i++) {
		char ***list = list_at(to, lists[i]);

		*list = copy_list(*list);
	}
}

void kube_config_fini(struct kube_config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < TEXTS; i++)
		kube_text_wipe(*text_at(c, texts[i]));
	for (size_t i = 0; i < LISTS; i++) {
		char **list = *list_at(c, lists[i]);

		for (char **text = list; text && *text; text++)
			kube_text_wipe(*text);
		free(list);
	}
	*c = (struct kube_config){0};
}

/* --- a pod ------------------------------------------------------------------------------------ */

static int check_readable(const char *path, const char *what, struct error *error)
{
	if (access(path, R_OK) == 0)
		return 0;
	return error_fail(error, -EINVAL, "in-cluster: no %s of the service account at %s: %s",
			  what, path, strerror(errno));
}

/* A pod without the file does not know its namespace. */
static int read_namespace(struct kube_config *c, const char *dir, struct error *error)
{
	char *path = mem_printf("%s/namespace", dir);
	struct secret file;
	int rc = secret_read(&file, path, NAMESPACE_MAX, false, error);

	free(path);
	if (rc)
		return error_at(error, -EINVAL, "in-cluster");
	file.text[strcspn(file.text, " \t\r\n")] = '\0';
	c->namespace = file.text;
	return 0;
}

static int set_server(struct kube_config *c, const char *host, const char *port,
		      struct error *error)
{
	char *bracketed = kube_url_host(host);
	struct kube_url url = {0};
	int rc = -EINVAL;

	if (bracketed) {
		c->server = mem_printf("https://%s:%s", bracketed, port);
		rc = kube_url_parse(&url, c->server, error);
	} else {
		error_set(error, "not a host name or an address");
	}
	if (rc == 0 && url.path[0])
		rc = error_fail(error, -EINVAL, "has more than host and port");
	if (rc)
		error_prefix(error, "in-cluster: KUBERNETES_SERVICE_HOST and _PORT");
	kube_url_fini(&url);
	free(bracketed);
	return rc;
}

int kube_config_in_cluster(struct kube_config *c, const char *dir, struct error *error)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	struct kube_config found = {0};
	int rc;

	if (!host || !host[0] || !port || !port[0])
		return error_fail(error, -ENOENT,
				  "not in a pod: KUBERNETES_SERVICE_HOST and _PORT are not set");
	dir = dir ? dir : POD_FOLDER;
	found.source = mem_strdup("in-cluster");
	found.token_file = mem_printf("%s/token", dir);
	found.ca_file = mem_printf("%s/ca.crt", dir);
	rc = set_server(&found, host, port, error);
	if (rc == 0)
		rc = check_readable(found.token_file, "token", error);
	if (rc == 0)
		rc = check_readable(found.ca_file, "certificate authority", error);
	if (rc == 0)
		rc = read_namespace(&found, dir, error);
	if (rc)
		kube_config_fini(&found);
	else
		*c = found;
	return rc;
}

int kube_config_find(struct kube_config *c, const char *kubeconfig, const char *context,
		     struct error *error)
{
	int rc = kubeconfig ? kube_config_read(c, kubeconfig, context, error)
			    : kube_config_in_cluster(c, NULL, error);

	if (rc == -ENOENT && !kubeconfig)
		return error_fail(error, -ENOENT, "this is no pod: give --kubeconfig");
	return rc ? -EINVAL : 0;
}

/* --- addresses -------------------------------------------------------------------------------- */

static CURLU *parse(const char *text, const char *example, struct error *error)
{
	CURLU *url = curl_url();
	CURLUcode code;

	if (!url)
		mem_exhausted();
	code = curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME);
	if (code == CURLUE_OK && strstr(text, "://"))
		return url;
	error_set(error, "not an address such as %s (%s)", example,
		  code == CURLUE_OK ? "no scheme" : curl_url_strerror(code));
	curl_url_cleanup(url);
	return NULL;
}

/* Owned; NULL: no such part. */
static char *part(CURLU *url, CURLUPart which)
{
	char *text = NULL, *copy;

	if (curl_url_get(url, which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return NULL;
	copy = mem_strdup(text);
	curl_free(text);
	return copy;
}

static bool has(CURLU *url, CURLUPart which)
{
	char *text = NULL;
	bool there = curl_url_get(url, which, &text, 0) == CURLUE_OK;

	curl_free(text);
	return there;
}

static bool is_scheme(CURLU *url, const char *name)
{
	char *scheme = part(url, CURLUPART_SCHEME);
	bool same = scheme && strcasecmp(scheme, name) == 0;

	free(scheme);
	return same;
}

static int take(struct kube_url *u, CURLU *url, struct error *error)
{
	struct in_addr address;

	if (!is_scheme(url, "https") && !is_scheme(url, "http"))
		return error_fail(error, -EINVAL, "only https and http are possible");
	if (has(url, CURLUPART_USER) || has(url, CURLUPART_PASSWORD) || has(url, CURLUPART_QUERY) ||
	    has(url, CURLUPART_FRAGMENT))
		return error_fail(error, -EINVAL, "has more than host, port and path");
	u->tls = is_scheme(url, "https");
	u->host = part(url, CURLUPART_HOST);
	u->port = part(url, CURLUPART_PORT);
	u->path = part(url, CURLUPART_PATH);
	if (!u->host || !u->port || !u->path || has(url, CURLUPART_ZONEID))
		return error_fail(error, -EINVAL, "has no host that can be used");
	for (size_t len = strlen(u->path); len && u->path[len - 1] == '/'; len--)
		u->path[len - 1] = '\0';
	u->loopback = strcasecmp(u->host, "localhost") == 0 || strcmp(u->host, "[::1]") == 0 ||
		      (inet_pton(AF_INET, u->host, &address) == 1 &&
		       ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET);
	return 0;
}

int kube_url_parse(struct kube_url *u, const char *text, struct error *error)
{
	struct kube_url parsed = {0};
	CURLU *url = parse(text, "https://10.96.0.1:443", error);
	int rc;

	if (!url)
		return -EINVAL;
	rc = take(&parsed, url, error);
	curl_url_cleanup(url);
	if (rc)
		kube_url_fini(&parsed);
	else
		*u = parsed;
	return rc;
}

void kube_url_fini(struct kube_url *u)
{
	free(u->host);
	free(u->port);
	free(u->path);
	*u = (struct kube_url){0};
}

char *kube_url_host(const char *name)
{
	bool is_v6 = strchr(name, ':') && name[0] != '[';
	char *host = mem_printf("%s%s%s", is_v6 ? "[" : "", name, is_v6 ? "]" : "");
	char *text = mem_printf("https://%s:443", host);
	struct kube_url url = {0};
	bool whole = kube_url_parse(&url, text, NULL) == 0 && strcasecmp(url.host, host) == 0;

	kube_url_fini(&url);
	free(text);
	if (whole)
		return host;
	free(host);
	return NULL;
}

int kube_url_check_proxy(const char *text, struct error *error)
{
	CURLU *url = parse(text, "http://proxy.example:3128", error);
	bool known;

	if (!url)
		return -EINVAL;
	known = is_scheme(url, "http") || is_scheme(url, "https") || is_scheme(url, "socks5") ||
		is_scheme(url, "socks5h");
	curl_url_cleanup(url);
	if (known)
		return 0;
	return error_fail(error, -EINVAL, "only http, https and socks5 are possible");
}

/* --- texts of credentials --------------------------------------------------------------------- */

const char *kube_text_line(const char *text, char *out, size_t size)
{
	size_t most = size - 3;

	assert(size >= 3);
	if (!text)
		text = "";
	snprintf(out, size, "%.*s%s", (int)most, text, strlen(text) > most ? ".." : "");
	utf8_replace_controls(out, ' ');
	return out;
}

void kube_bytes_wipe(char *bytes, size_t len)
{
	if (bytes)
		sodium_memzero(bytes, len);
	free(bytes);
}

void kube_text_wipe(char *text)
{
	kube_bytes_wipe(text, text ? strlen(text) : 0);
}

/* --- tokens ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int token_take(const char *text, size_t len, char **token, struct error *error)
{
	while (len && is_blank(text[len - 1]))
		len--;
	for (; len && is_blank(*text); text++)
		len--;
	if (len == 0)
		return error_fail(error, -EINVAL, "the token is empty");
	if (len > TOKEN_MAX)
		return error_fail(error, -EINVAL, "the token is longer than %d KiB",
				  TOKEN_MAX / 1024);
	for (size_t i = 0; i < len; i++) {
		if (text[i] > ' ' && text[i] < 0x7f)
			continue;
		return error_fail(error, -EINVAL, "byte %zu of the token is no printable ASCII",
				  i + 1);
	}
	*token = mem_strndup(text, len);
	return 0;
}

int token_read(const char *path, char **token, struct error *error)
{
	struct secret file;
	/* Room for line ends; token_take() refuses longer ones. */
	int rc = secret_read(&file, path, TOKEN_MAX + 64, false, error);

	if (rc)
		return rc;
	rc = token_take(file.text, file.len, token, error);
	if (rc)
		error_prefix(error, "%s", path);
	secret_free(&file);
	return rc;
}
