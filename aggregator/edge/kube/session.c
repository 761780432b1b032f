/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session is an address and a credential; prepare() puts both into a libcurl handle. Connections
 * belong to the handle, or to its multi handle.
 *
 * tls-server-name: libcurl takes the name for SNI and verification from the URL. So the URL has
 * that name, CURLOPT_CONNECT_TO leads the connection or the proxy's tunnel to the true address,
 * and the Host header names the true address, as in kubectl.
 *
 * Keepalive probes detect a vanished peer on an idle watch, and TCP_USER_TIMEOUT after something
 * was sent: within PEER_TIMEOUT. TLS sessions are not resumed: a resumed one keeps its client
 * certificate.
 */
#include "aggregator/edge/kube/session.h"

#include <assert.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "aggregator/edge/kube/config.h"
#include "aggregator/edge/kube/session_credential.h"
#include "shared/clock.h"
#include "shared/mem.h"

enum {
	CONNECT_TIMEOUT_MS = 30000,
	PEER_TIMEOUT_MS = 30000,
	KEEPALIVE_IDLE_S = 10,
	KEEPALIVE_INTERVAL_S = 5,
};

struct kube_session {
	struct kube_config config;
	struct kube_url url;
	char *base; /* of request URLs: scheme, name to verify, port, path */
	char *proxy; /* NULL: that of the environment */
	struct curl_slist *headers, *connect_to; /* NULL: none */
	struct session_credential credential;
};

/* --- address ---------------------------------------------------------------------------------- */

static struct curl_slist *list_of(struct curl_slist *list, char *line)
{
	struct curl_slist *longer = curl_slist_append(list, line);

	if (!longer)
		mem_exhausted();
	free(line);
	return longer;
}

static int check_clear_text(const struct kube_session *s, struct error *error)
{
	const struct kube_config *c = &s->config;

	if (s->url.tls || !(c->token || c->token_file || c->exec_command))
		return 0;
	if (s->url.loopback && !c->proxy_url)
		return 0;
	return error_fail(error, -EINVAL,
			  "server: %s is not https, and a token would travel in clear", c->server);
}

static int set_address(struct kube_session *s, struct error *error)
{
	const struct kube_url *u = &s->url;
	char *name;

	name = s->config.tls_server_name && u->tls ? kube_url_host(s->config.tls_server_name)
						   : mem_strdup(u->host);
	if (!name)
		return error_fail(error, -EINVAL, "tls-server-name: not a host name");
	s->base = mem_printf("%s://%s:%s%s", u->tls ? "https" : "http", name, u->port, u->path);
	/* managedFields are up to 60 % of a pod; API servers that do not know KEP-5958 send them. */
	s->headers =
		list_of(NULL, mem_strdup("Accept: application/json;drop=metadata.managedFields, "
					 "application/json"));
	if (s->config.tls_server_name && u->tls) {
		s->headers = list_of(s->headers, mem_printf("Host: %s:%s", u->host, u->port));
		s->connect_to =
			list_of(NULL, mem_printf("%s:%s:%s:%s", name, u->port, u->host, u->port));
	}
	free(name);
	return 0;
}

/* kubectl lets a socks5 proxy resolve names: libcurl's socks5h. */
static int set_proxy(struct kube_session *s, struct error *error)
{
	const char *proxy = s->config.proxy_url;
	int rc;

	if (!proxy)
		return 0;
	rc = kube_url_check_proxy(proxy, error);
	if (rc)
		return error_at(error, rc, "proxy-url");
	s->proxy = strncasecmp(proxy, "socks5://", 9) == 0 ? mem_printf("socks5h://%s", proxy + 9)
							   : mem_strdup(proxy);
	return 0;
}

int kube_session_new(struct kube_session **out, const struct kube_config *config,
		     struct error *error)
{
	struct kube_session *s = mem_zalloc(1, sizeof(*s));
	struct error why;
	int rc;

	kube_config_copy(&s->config, config);
	rc = session_credential_init(&s->credential, &s->config, &why);
	if (rc == 0) {
		rc = kube_url_parse(&s->url, s->config.server ? s->config.server : "", &why);
		if (rc)
			error_prefix(&why, "server");
	}
	if (rc == 0)
		rc = check_clear_text(s, &why);
	if (rc == 0)
		rc = set_address(s, &why);
	if (rc == 0)
		rc = set_proxy(s, &why);
	if (rc) {
		error_set(error, "%s: %s", config->source ? config->source : "kubernetes",
			  why.text);
		kube_session_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void kube_session_free(struct kube_session *s)
{
	if (!s)
		return;
	session_credential_fini(&s->credential);
	curl_slist_free_all(s->headers);
	curl_slist_free_all(s->connect_to);
	kube_text_wipe(s->proxy);
	free(s->base);
	kube_url_fini(&s->url);
	kube_config_fini(&s->config);
	free(s);
}

/* --- handles ---------------------------------------------------------------------------------- */

static int set_user_timeout(void *context, curl_socket_t fd, curlsocktype purpose)
{
	unsigned int timeout_ms = PEER_TIMEOUT_MS;

	(void)context;
	(void)purpose;
	/* A failure leaves the keepalive probes. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
	return CURL_SOCKOPT_OK;
}

static void set_connection(const struct kube_session *s, CURL *h)
{
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, s->url.tls ? "https" : "http");
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(h, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
	curl_easy_setopt(h, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
	curl_easy_setopt(h, CURLOPT_SOCKOPTFUNCTION, set_user_timeout);
	curl_easy_setopt(h, CURLOPT_CONNECT_TO, s->connect_to);
	curl_easy_setopt(h, CURLOPT_PROXY, s->proxy);
	/*
	 * The environment's proxy is not for this machine; the proxy of the file is for every
	 * address.
	 */
	curl_easy_setopt(h, CURLOPT_NOPROXY, s->proxy ? "" : s->url.loopback ? "*" : NULL);
	curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static const char *path_of(const struct session_tls_file *f)
{
	return f->fd >= 0 ? f->path : NULL;
}

static void set_tls(const struct kube_session *s, CURL *h)
{
	const curl_version_info_data *system = curl_version_info(CURLVERSION_NOW);
	const struct session_tls *tls = &s->credential.tls;
	const char *ca = path_of(&tls->sets[tls->newest].ca);
	const char *pair = path_of(&tls->sets[tls->newest].pair);
	bool verify = !s->config.insecure_skip_tls_verify;

	curl_easy_setopt(h, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(h, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
	curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
	curl_easy_setopt(h, CURLOPT_SSLCERT, pair);
	curl_easy_setopt(h, CURLOPT_SSLKEY, pair);
	/* The given one, without the system's folder. */
	curl_easy_setopt(h, CURLOPT_CAINFO, ca ? ca : system->cainfo);
	curl_easy_setopt(h, CURLOPT_CAPATH, ca ? NULL : system->capath);
}

int kube_session_prepare(struct kube_session *s, CURL *handle, const char *path, int64_t now_ns,
			 struct error *error)
{
	const struct session_credential *c = &s->credential;
	const char *token;
	char *url;
	int rc;

	assert(path[0] == '/');
	rc = session_credential_refresh(&s->credential, now_ns, error);
	if (rc)
		return rc;
	url = mem_printf("%s%s", s->base, path);
	curl_easy_setopt(handle, CURLOPT_URL, url);
	free(url);
	curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(handle, CURLOPT_HTTPGET, 1L);
	curl_easy_setopt(handle, CURLOPT_HTTPHEADER, s->headers);
	curl_easy_setopt(handle, CURLOPT_USERAGENT, "evenkeel/" EVENKEEL_VERSION);
	set_connection(s, handle);
	set_tls(s, handle);
	token = c->exec.credential.token ? c->exec.credential.token : c->token;
	curl_easy_setopt(handle, CURLOPT_XOAUTH2_BEARER, token);
	curl_easy_setopt(handle, CURLOPT_HTTPAUTH,
			 (long)(token ? CURLAUTH_BEARER : CURLAUTH_BASIC));
	return 0;
}

void kube_session_unauthorized(struct kube_session *s)
{
	s->credential.rejected = true;
}

const char *kube_session_server(const struct kube_session *s)
{
	return s->config.server;
}

/* --- failures --------------------------------------------------------------------------------- */

/* The authority for the server's certificate. */
static const char *authority(const struct kube_session *s)
{
	if (s->config.ca_file)
		return s->config.ca_file;
	return s->config.ca_data ? "the certificate-authority-data given"
				 : "the certificate authorities of this system";
}

static void explain_certificate(const struct kube_session *s, CURL *handle, struct error *error)
{
	long status = 0;

	curl_easy_getinfo(handle, CURLINFO_SSL_VERIFYRESULT, &status);
	if (status & GNUTLS_CERT_EXPIRED)
		error_set(error, "the server's certificate has ended");
	else if (status & GNUTLS_CERT_NOT_ACTIVATED)
		error_set(error, "the server's certificate is not valid yet");
	else if (status)
		error_set(error, "the server's certificate is not signed by %s", authority(s));
	else
		error_set(error, "the server's certificate is not for %s; see tls-server-name",
			  s->config.tls_server_name ? s->config.tls_server_name : s->url.host);
}

void kube_session_explain(const struct kube_session *s, CURL *handle, CURLcode code,
			  const char *detail, struct error *error)
{
	long number = 0;

	curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &number);
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		explain_certificate(s, handle, error);
	else if (code == CURLE_COULDNT_CONNECT && number)
		error_set(error, "%scannot be reached: %s", s->proxy ? "its proxy-url " : "",
			  strerror((int)number));
	else if (detail && detail[0])
		error_set(error, "%s", detail);
	else
		error_set(error, "%s", curl_easy_strerror(code));
	error_prefix(error, "%s", s->config.server);
}

/* --- requests on the thread of the caller ----------------------------------------------------- */

static const struct {
	const char *request; /* NULL: libcurl's default: POST with a body, GET without */
	const char *content_type;
} methods[KUBE_METHODS] = {
	[KUBE_APPLY] = {"PATCH", "Content-Type: application/apply-patch+yaml"},
	[KUBE_MERGE] = {"PATCH", "Content-Type: application/merge-patch+json"},
	[KUBE_POST] = {NULL, "Content-Type: application/json"},
	[KUBE_REPLACE] = {"PUT", "Content-Type: application/json"},
	[KUBE_DELETE] = {"DELETE", "Content-Type: application/json"},
};

struct curl_slist *kube_session_headers(const struct kube_session *s, const char *more)
{
	struct curl_slist *list = NULL;

	for (const struct curl_slist *h = s->headers; h; h = h->next)
		list = list_of(list, mem_strdup(h->data));
	return more ? list_of(list, mem_strdup(more)) : list;
}

static size_t on_data(char *data, size_t size, size_t count, void *ctx)
{
	struct kube_call *c = ctx;

	if (c->answer.len < c->answer_max)
		buf_add(&c->answer, data, size * count);
	return size * count;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct kube_call *call = ctx;

	(void)a, (void)b, (void)c, (void)d;
	return atomic_load(call->stopping);
}

int kube_call_open(struct kube_call *c, const struct kube_config *config, long timeout_ms,
		   struct error *error)
{
	int rc = kube_session_new(&c->session, config, error);

	if (rc)
		return rc;
	c->handle = curl_easy_init();
	if (!c->handle)
		mem_exhausted();
	curl_easy_setopt(c->handle, CURLOPT_ERRORBUFFER, c->detail);
	curl_easy_setopt(c->handle, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(c->handle, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(c->handle, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(c->handle, CURLOPT_XFERINFODATA, c);
	curl_easy_setopt(c->handle, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c->handle, CURLOPT_TIMEOUT_MS, timeout_ms);
	return 0;
}

void kube_call_close(struct kube_call *c)
{
	curl_easy_cleanup(c->handle);
	kube_session_free(c->session);
	buf_fini(&c->answer);
}

static long send_once(struct kube_call *c, enum kube_method method, const char *path,
		      const struct buf *body, struct error *error)
{
	struct curl_slist *headers = NULL;
	long status = 0;
	CURLcode code;

	buf_clear(&c->answer);
	c->detail[0] = '\0';
	if (kube_session_prepare(c->session, c->handle, path, clock_mono_ns(), error))
		return 0;
	curl_easy_setopt(c->handle, CURLOPT_CUSTOMREQUEST, methods[method].request);
	if (body) {
		headers = kube_session_headers(c->session, methods[method].content_type);
		curl_easy_setopt(c->handle, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(c->handle, CURLOPT_POST, 1L);
		curl_easy_setopt(c->handle, CURLOPT_POSTFIELDS, body->data);
		curl_easy_setopt(c->handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
	}
	code = curl_easy_perform(c->handle);
	curl_slist_free_all(headers);
	buf_add_str(&c->answer, "");
	if (code == CURLE_OK)
		curl_easy_getinfo(c->handle, CURLINFO_RESPONSE_CODE, &status);
	else
		kube_session_explain(c->session, c->handle, code, c->detail, error);
	return status;
}

bool kube_call_succeeds(long status)
{
	return status == 200 || status == 201;
}

long kube_call_send(struct kube_call *c, enum kube_method method, const char *path,
		    const struct buf *body, struct error *error)
{
	long status = send_once(c, method, path, body, error);

	if (status == 401) {
		kube_session_unauthorized(c->session);
		status = send_once(c, method, path, body, error);
	}
	if (status && !kube_call_succeeds(status))
		error_set(error, "%s answers %ld to %s%s%s", kube_session_server(c->session),
			  status, path, status == 403 && c->hint ? "; " : "",
			  status == 403 && c->hint ? c->hint : "");
	return status;
}
