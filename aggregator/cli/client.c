/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's easy interface with one handle, so that paging and --watch reuse the connection.
 * Redirects are not followed and only HTTP is spoken. A loopback server is asked directly even
 * where a proxy is configured. An answer is held in memory whole; BODY_MAX bounds it. What is kept
 * for the next time is bounded by KEPT_MAX over all paths.
 *
 * Behind an API server, paths of /v1 are resources of evenkeel.io (aggregator/api/api_group.h), and
 * a session of the Kubernetes edge sets address, TLS and credentials of each request.
 */
#include "aggregator/cli/client.h"

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/api/api_group.h"
#include "aggregator/cli/cli.h"
#include "aggregator/cli/kube_server.h"
#include "aggregator/edge/kube/session.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "shared/file.h"
#include "shared/mem.h"

#define BODY_MAX       ((size_t)1 << 30)
#define KEPT_MAX       ((size_t)32 << 20)
#define TOKEN_FILE_MAX ((size_t)1 << 20)

/* An answer with its tag. */
struct kept {
	struct kept *next;
	char *path, *tag; /* owned */
	struct buf body;
	int64_t received_ns; /* monotonic */
};

struct client {
	struct offline *offline; /* owned; NULL: there is a server, and all below is for it */
	CURL *curl; /* owned */
	struct kube_session *session; /* owned; NULL: the server is an aggregator itself */
	char *server; /* owned; without a trailing slash; the files' names */
	/*
	 * owned; what URLs begin with: the same, unless its certificate is for another name; NULL
	 * offline
	 */
	char *base;
	struct curl_slist *connect_to; /* owned; where that really is, if so */
	char *timeout; /* owned; in words */
	char *hint; /* owned; for reasons of no answer; may be NULL */
	const volatile sig_atomic_t *stop;
	struct client_access access;
	bool keeps;
	struct kept *kept; /* owned; a list, the oldest first: one for each page of a list */
	size_t kept_bytes;
	int64_t received_ns; /* monotonic; of the newest body */
	struct buf *body; /* of the request under way; borrowed */
	bool too_large;
	char error[CURL_ERROR_SIZE];
};

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
	struct client *c = context;

	if (c->body->len + size * count > BODY_MAX) {
		c->too_large = true;
		return 0;
	}
	buf_add(c->body, data, size * count);
	return size * count;
}

static int check_stop(void *context, curl_off_t a, curl_off_t b, curl_off_t d, curl_off_t e)
{
	struct client *c = context;

	(void)a;
	(void)b;
	(void)d;
	(void)e;
	return c->stop && *c->stop;
}

static bool is_loopback(const char *server)
{
	struct kube_url url = {0};
	bool loopback = kube_url_parse(&url, server, NULL) == 0 && url.loopback;

	kube_url_fini(&url);
	return loopback;
}

static struct client *make(char *server, int64_t timeout_ns, const volatile sig_atomic_t *stop)
{
	long timeout_ms = (long)((timeout_ns + NS_PER_MS - 1) / NS_PER_MS);
	struct client *c = mem_zalloc(1, sizeof(*c));

	c->server = server;
	c->timeout = mem_printf("%.3gs", (double)timeout_ns / NS_PER_SEC);
	c->stop = stop;
	c->curl = curl_easy_init();
	if (!c->curl)
		mem_exhausted();
	curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->error);
	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c->curl, CURLOPT_USERAGENT, "evenkeel/" EVENKEEL_VERSION);
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(c->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c->curl, CURLOPT_XFERINFOFUNCTION, check_stop);
	curl_easy_setopt(c->curl, CURLOPT_XFERINFODATA, c);
	return c;
}

int client_new(struct client **out, const char *server, int64_t timeout_ns,
	       const volatile sig_atomic_t *stop, struct error *reason)
{
	const char *scheme = strstr(server, "://");
	char *full;

	if (!server[0] ||
	    (scheme && strncmp(server, "http://", 7) != 0 && strncmp(server, "https://", 8) != 0))
		return error_fail(reason, -EINVAL,
				  "--server: \"%s\" is not a URL such as http://127.0.0.1:2020",
				  server);
	full = mem_printf("%s%s", scheme ? "" : "http://", server);
	for (size_t len = strlen(full); full[len - 1] == '/'; len--)
		full[len - 1] = '\0';
	*out = make(full, timeout_ns, stop);
	(*out)->base = mem_strdup(full);
	if (is_loopback(full))
		curl_easy_setopt((*out)->curl, CURLOPT_NOPROXY, "*");
	return 0;
}

int client_new_cluster(struct client **out, const struct kube_config *config, int64_t timeout_ns,
		       const volatile sig_atomic_t *stop, struct error *reason)
{
	struct kube_session *session;
	int rc = kube_session_new(&session, config, reason);

	if (rc)
		return rc;
	*out = make(mem_strdup(kube_session_server(session)), timeout_ns, stop);
	(*out)->session = session;
	return 0;
}

/* --- access ----------------------------------------------------------------------------------- */

static bool is_printable(const char *token)
{
	while (*token > ' ' && *token < 0x7f)
		token++;
	return !*token;
}

static int check_access(const struct client *c, const struct client_access *a, struct error *reason)
{
	bool tls = strncmp(c->server, "https://", 8) == 0;
	const char *const files[][2] = {{"--ca-file", a->ca_file},
					{"--client-cert", a->certificate},
					{"--client-key", a->key}};

	if (!a->certificate != !a->key)
		return error_fail(reason, -EINVAL,
				  "--client-cert and --client-key: give both, or neither");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (!files[i][1] || access(files[i][1], R_OK) == 0)
			continue;
		return error_fail(reason, -EINVAL, "%s: %s: %s", files[i][0], files[i][1],
				  strerror(errno));
	}
	if (a->token && !is_printable(a->token))
		return error_fail(reason, -EINVAL,
				  "EVENKEEL_TOKEN: the token is no printable ASCII");
	if ((!a->token && !a->token_file) || tls || a->plain_tokens || is_loopback(c->server))
		return 0;
	return error_fail(reason, -EINVAL,
			  "%s is not https, and the token would travel in clear; "
			  "--allow-plain-tokens where something else encrypts",
			  c->server);
}

/*
 * The first word of the file, up to a comma: the first line of what the server's own --token-file
 * may hold.
 */
static int take_token(const char *path, struct buf *text, struct error *reason)
{
	int rc = file_read(path, TOKEN_FILE_MAX, text, reason);
	size_t from, len;

	if (rc)
		return error_at(reason, rc, "--token-file");
	from = strspn(text->data, " \t\r\n");
	len = strcspn(text->data + from, " ,\t\r\n");
	if (!len)
		return error_fail(reason, -EINVAL, "--token-file: %s: there is no token in it",
				  path);
	memmove(text->data, text->data + from, len);
	text->data[len] = '\0';
	if (!is_printable(text->data))
		return error_fail(reason, -EINVAL,
				  "--token-file: %s: the token is no printable ASCII", path);
	return 0;
}

static void set_token(struct client *c, const char *token)
{
	curl_easy_setopt(c->curl, CURLOPT_XOAUTH2_BEARER, token);
	curl_easy_setopt(c->curl, CURLOPT_HTTPAUTH,
			 (long)(token ? CURLAUTH_BEARER : CURLAUTH_BASIC));
}

/* A token in a file is exchanged by others, and a watch takes hours. */
static int refresh_token(struct client *c, struct error *reason)
{
	struct buf text = BUF_INIT;
	int rc;

	if (!c->access.token_file)
		return 0;
	rc = take_token(c->access.token_file, &text, reason);
	if (!rc)
		set_token(c, text.data);
	if (text.data)
		sodium_memzero(text.data, text.cap);
	buf_fini(&text);
	return rc;
}

/*
 * Asks for the name, and connects where the server is: what kubectl port-forward brings here has
 * its Service's name.
 */
static int rename_server(struct client *c, const char *name, struct error *reason)
{
	CURLU *url = curl_url();
	char *host = NULL, *port = NULL, *full = NULL, *line;

	if (!url)
		mem_exhausted();
	if (curl_url_set(url, CURLUPART_URL, c->server, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
	    curl_url_set(url, CURLUPART_HOST, name, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_URL, &full, 0) == CURLUE_OK) {
		free(c->base);
		c->base = mem_strdup(full);
		if (c->base[0] && c->base[strlen(c->base) - 1] == '/')
			c->base[strlen(c->base) - 1] = '\0';
		line = mem_printf("::%s:%s", host, port);
		c->connect_to = curl_slist_append(NULL, line);
		free(line);
		curl_easy_setopt(c->curl, CURLOPT_CONNECT_TO, c->connect_to);
	}
	curl_free(host);
	curl_free(port);
	curl_free(full);
	curl_url_cleanup(url);
	if (c->connect_to)
		return 0;
	return error_fail(reason, -EINVAL, "--tls-server-name: \"%s\" is not a host name", name);
}

int client_set_access(struct client *c, const struct client_access *access, struct error *reason)
{
	int rc = check_access(c, access, reason);

	if (!rc && access->server_name)
		rc = rename_server(c, access->server_name, reason);
	if (rc)
		return rc;
	c->access = *access;
	if (access->ca_file) {
		curl_easy_setopt(c->curl, CURLOPT_CAINFO, access->ca_file);
		curl_easy_setopt(c->curl, CURLOPT_CAPATH, NULL);
	}
	curl_easy_setopt(c->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(c->curl, CURLOPT_SSLCERT, access->certificate);
	curl_easy_setopt(c->curl, CURLOPT_SSLKEY, access->key);
	if (access->token)
		set_token(c, access->token);
	return refresh_token(c, reason);
}

struct client *client_new_offline(struct offline *o)
{
	struct client *c = mem_zalloc(1, sizeof(*c));

	c->offline = o;
	c->server = mem_strdup(offline_name(o));
	return c;
}

/* The link to what is kept of path, or the list's end. */
static struct kept **find_kept(struct client *c, const char *path)
{
	struct kept **at = &c->kept;

	while (*at && strcmp((*at)->path, path) != 0)
		at = &(*at)->next;
	return at;
}

static void forget(struct client *c, struct kept **at)
{
	struct kept *k = *at;

	*at = k->next;
	c->kept_bytes -= k->body.len;
	buf_fini(&k->body);
	free(k->path);
	free(k->tag);
	free(k);
}

void client_free(struct client *c)
{
	if (!c)
		return;
	while (c->kept)
		forget(c, &c->kept);
	offline_close(c->offline);
	curl_easy_cleanup(c->curl);
	kube_session_free(c->session);
	curl_slist_free_all(c->connect_to);
	free(c->base);
	free(c->server);
	free(c->timeout);
	free(c->hint);
	free(c);
}

void client_set_hint(struct client *c, const char *hint)
{
	free(c->hint);
	c->hint = mem_strdup(hint);
}

bool client_is_cluster(const struct client *c)
{
	return c->session;
}

const char *client_server(const struct client *c)
{
	return c->server;
}

/* The server's certificate is not believed. */
static int explain_certificate(const struct client *c, struct error *reason)
{
	const char *what = "is for another name; say which with --tls-server-name";
	long status = 0;

	curl_easy_getinfo(c->curl, CURLINFO_SSL_VERIFYRESULT, &status);
	if (status & GNUTLS_CERT_EXPIRED)
		what = "has ended; it needs a new one";
	else if (status & GNUTLS_CERT_NOT_ACTIVATED)
		what = "is not valid yet; are both clocks right?";
	else if (status && c->access.ca_file)
		return error_fail(reason, -EKEYREJECTED,
				  "%s: its certificate is not signed by %s (--ca-file)", c->server,
				  c->access.ca_file);
	else if (status)
		what = "is not signed by an authority of this system; give the one that signed it "
		       "with --ca-file";
	return error_fail(reason, -EKEYREJECTED, "%s: its certificate %s", c->server, what);
}

/* What was heard is not what the other side speaks. */
static const char *other_scheme(const struct client *c, CURLcode code)
{
	bool tls = strncmp(c->server, "https://", 8) == 0;

	if (tls && code == CURLE_SSL_CONNECT_ERROR)
		return "; does it speak TLS? Without, it is http://";
	if (!tls && (code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
		     code == CURLE_UNSUPPORTED_PROTOCOL))
		return "; does it want TLS? With it, it is https://";
	return "";
}

/* No answer at all. */
static int explain_failure(const struct client *c, CURLcode code, struct error *reason)
{
	const char *what = c->error[0] ? c->error : curl_easy_strerror(code);
	long number = 0;

	curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &number);
	if (code == CURLE_COULDNT_CONNECT && number)
		what = strerror((int)number);
	if (c->session && code != CURLE_ABORTED_BY_CALLBACK && code != CURLE_OPERATION_TIMEDOUT &&
	    code != CURLE_WRITE_ERROR) {
		kube_session_explain(c->session, c->curl, code, c->error, reason);
		return code == CURLE_PEER_FAILED_VERIFICATION ? -EKEYREJECTED : -EHOSTUNREACH;
	}
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		return explain_certificate(c, reason);
	case CURLE_SSL_CACERT_BADFILE:
		return error_fail(reason, -EKEYREJECTED,
				  "--ca-file: %s: there is no certificate in it",
				  c->access.ca_file ? c->access.ca_file : "the system's");
	case CURLE_SSL_CERTPROBLEM:
		return error_fail(reason, -EKEYREJECTED, "--client-cert and --client-key: %s",
				  what);
	case CURLE_ABORTED_BY_CALLBACK:
		return error_fail(reason, -EINTR, "interrupted");
	case CURLE_OPERATION_TIMEDOUT:
		return error_fail(reason, -ETIMEDOUT, "no answer from %s within %s; see --timeout",
				  c->server, c->timeout);
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return error_fail(reason, -EHOSTUNREACH,
				  "cannot reach %s (%s); start evenkeel-aggregator there, or name "
				  "another with --server or EVENKEEL_SERVER",
				  c->server, what);
	case CURLE_WRITE_ERROR:
		if (c->too_large)
			return error_fail(reason, -EIO, "%s answers with more than 1 GiB",
					  c->server);
		break;
	case CURLE_URL_MALFORMAT:
		return error_fail(reason, -EIO,
				  "--server: \"%s\" is not a URL such as http://127.0.0.1:2020",
				  c->server);
	default:
		break;
	}
	/* A server that ends breaks connections first. */
	return error_fail(reason,
			  code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
					  code == CURLE_SEND_ERROR
				  ? -EHOSTUNREACH
				  : -EIO,
			  "%s: %s%s", c->server, what, other_scheme(c, code));
}

/*
 * Whether the field of a request is what an option of the command line says, and not the pod of a
 * file: "args.Peaks.x".
 */
static bool is_of_option(const char *field)
{
	static const char *const names[] = {"labelSelector", "plugins",	  "args", "variant",
					    "blend",	     "namespace", "pdb"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		if (strncmp(field, names[i], len) == 0 &&
		    (!field[len] || field[len] == '.' || field[len] == '['))
			return true;
	}
	return false;
}

/*
 * {"error": {"code", "message", "field"}}, or something that is not an aggregator. A node that the
 * request names and the server does not know is "not there", wherever it was named.
 */
static int explain_status(const struct client *c, const char *method, const char *path, long status,
			  struct error *reason)
{
	cJSON *doc = cJSON_ParseWithLength(c->body->data, c->body->len);
	const char *message = document_text(doc, "error.message"),
		   *name = document_text_or(doc, "error.field", "");
	int rc = -EIO;

	if (c->session && !document_at(doc, "error")) {
		rc = kube_server_explain(c->server, method, path, status, doc, reason);
		cJSON_Delete(doc);
		return rc;
	}
	if (status == 503 && document_is(doc, "error.code", "noData"))
		rc = -ENODATA;
	else if (message && (status == 404 || strncmp(name, "nodes[", 6) == 0))
		rc = -ENOENT;
	else if (message && status == 400 && is_of_option(name))
		rc = -EBADRQC;
	else if (status == 401 || status == 403)
		rc = -EACCES;
	if (message && c->offline)
		error_set(reason, "%s%s%s", name, name[0] ? ": " : "", message);
	else if (message && status == 401)
		error_set(reason, "%s does not let us in: %s; %s", c->server, message,
			  c->access.token || c->access.token_file
				  ? "is the token still good, and meant for this server?"
				  : "give --token-file or EVENKEEL_TOKEN (in Kubernetes, what "
				    "kubectl create token prints), or --client-cert");
	else if (message)
		error_set(reason, "%s%s%s (says %s)", name, name[0] ? ": " : "", message,
			  c->server);
	else if (status == 401 || status == 403)
		error_set(reason, "%s%s denies access (HTTP %ld)", c->server, path, status);
	else
		error_set(reason, "%s%s answers HTTP %ld; is that an evenkeel-aggregator?",
			  c->server, path, status);
	cJSON_Delete(doc);
	return rc;
}

/* A request under way. */
struct asked {
	const char *path; /* of /v1 */
	const char *json; /* the body of a POST; NULL: a GET */
	const struct kept *k; /* the cached answer to this GET; NULL: none */
};

static const char *method_of(const struct asked *a)
{
	return a->json ? "POST" : "GET";
}

/* Headers of the request; the caller frees the list. */
static struct curl_slist *headers_of(const struct client *c, const struct asked *a)
{
	struct curl_slist *headers;
	char *line = NULL;

	if (a->json)
		line = mem_strdup("Content-Type: application/json");
	else if (a->k)
		line = mem_printf("If-None-Match: %s", a->k->tag);
	if (c->session)
		headers = kube_session_headers(c->session, line);
	else
		headers = line ? curl_slist_append(NULL, line) : NULL;
	if (line && a->json)
		headers = curl_slist_append(headers, "Expect:");
	if (line && !headers)
		mem_exhausted();
	free(line);
	return headers;
}

/* 0, or -errno with the reason. */
static int set_address(struct client *c, const struct asked *a, struct error *reason)
{
	char *path, *url;
	int rc;

	if (!c->session) {
		rc = refresh_token(c, reason);
		url = mem_printf("%s%s", c->base, a->path);
		curl_easy_setopt(c->curl, CURLOPT_URL, url);
		free(url);
		return rc;
	}
	path = api_group_remote_path(a->path);
	if (!path)
		return error_fail(reason, -EIO, "%s: evenkeel.io has no resource for %s", c->server,
				  a->path);
	rc = kube_session_prepare(c->session, c->curl, path, clock_mono_ns(), reason);
	free(path);
	return rc;
}

/* The HTTP status in *status, with the body; else -errno with the reason. */
static int send_request(struct client *c, const struct asked *a, struct buf *body, long *status,
			struct error *reason)
{
	struct curl_slist *headers;
	CURLcode code;
	int rc;

	buf_clear(body);
	buf_add_str(body, "");
	c->body = body;
	if (c->offline) {
		*status = offline_request(c->offline, method_of(a), a->path, a->json ? a->json : "",
					  body);
		return 0;
	}
	rc = set_address(c, a, reason);
	if (rc)
		return rc;
	c->too_large = false;
	c->error[0] = '\0';
	headers = headers_of(c, a);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
	if (a->json) {
		curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, a->json);
	} else {
		curl_easy_setopt(c->curl, CURLOPT_HTTPGET, 1L);
	}
	code = curl_easy_perform(c->curl);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(headers);
	if (code != CURLE_OK) {
		rc = explain_failure(c, code, reason);
		if (c->hint && (rc == -EHOSTUNREACH || rc == -ETIMEDOUT)) {
			const struct error said = *reason;

			error_set(reason, "%s%s", said.text, c->hint);
		}
		return rc;
	}
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, status);
	return 0;
}

/* After a 304, *body gets the cached answer. */
static int perform(struct client *c, const struct asked *a, struct buf *body, struct error *reason)
{
	long status = 0;
	int rc = send_request(c, a, body, &status, reason);

	/* During a long watch a credential may expire: one retry with a new one. */
	if (!rc && status == 401 && c->session) {
		kube_session_unauthorized(c->session);
		rc = send_request(c, a, body, &status, reason);
	}
	if (rc)
		return rc;
	if (status == 304 && a->k) {
		buf_add(body, a->k->body.data, a->k->body.len);
		c->received_ns = a->k->received_ns;
		return 0;
	}
	if (status / 100 != 2) {
		char *path = c->session ? api_group_remote_path(a->path) : mem_strdup(a->path);

		rc = explain_status(c, method_of(a), path, status, reason);
		free(path);
		return rc;
	}
	c->received_ns = clock_mono_ns();
	return 0;
}

void client_keep(struct client *c)
{
	c->keeps = true;
}

double client_body_age(const struct client *c)
{
	if (c->offline)
		return 0;
	return (double)(clock_mono_ns() - c->received_ns) / NS_PER_SEC;
}

/* The answer that was just received, if it has a tag. What was kept first makes room. */
static void keep(struct client *c, const char *path, const struct buf *body)
{
	struct curl_header *tag;
	struct kept *k;

	if (!c->keeps || body->len > KEPT_MAX ||
	    curl_easy_header(c->curl, "ETag", 0, CURLH_HEADER, -1, &tag) != CURLHE_OK)
		return;
	while (c->kept && c->kept_bytes + body->len > KEPT_MAX)
		forget(c, &c->kept);
	k = mem_zalloc(1, sizeof(*k));
	k->path = mem_strdup(path);
	k->tag = mem_strdup(tag->value);
	buf_add(&k->body, body->data, body->len);
	k->received_ns = c->received_ns;
	c->kept_bytes += body->len;
	*find_kept(c, path) = k;
}

int client_get(struct client *c, const char *path, struct buf *body, struct error *reason)
{
	struct kept **at = find_kept(c, path), *k = *at;
	const struct asked asked = {.path = path, .k = k};
	int rc = perform(c, &asked, body, reason);

	if (rc || (k && c->received_ns == k->received_ns))
		return rc;
	if (k)
		forget(c, at);
	keep(c, path, body);
	return 0;
}

int client_post(struct client *c, const char *path, cJSON *request, struct buf *body,
		struct error *reason)
{
	char *json = cJSON_PrintUnformatted(request);
	const struct asked asked = {.path = path, .json = json};
	int rc = perform(c, &asked, body, reason);

	free(json);
	cJSON_Delete(request);
	return rc;
}

int client_ask(struct client *c, const char *path, cJSON *request, cJSON **doc,
	       struct error *reason)
{
	struct buf body = BUF_INIT;
	int rc = request ? client_post(c, path, request, &body, reason)
			 : client_get(c, path, &body, reason);

	if (!rc)
		*doc = cJSON_ParseWithLength(body.data, body.len);
	buf_fini(&body);
	return rc;
}

void client_escape(const char *text, struct buf *out)
{
	char *escaped = curl_easy_escape(NULL, text, 0);

	if (!escaped)
		mem_exhausted();
	buf_add_str(out, escaped);
	curl_free(escaped);
}

void client_add_parameter(struct buf *path, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(path, "%c%s=", strchr(path->data, '?') ? '&' : '?', name);
	client_escape(value, path);
}

int client_exit(int rc)
{
	if (!rc)
		return CLI_OK;
	if (rc == -EBADRQC)
		return CLI_USAGE;
	return rc == -ENOENT || rc == -ENODATA ? CLI_STALE : CLI_ERROR;
}
