/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd does the serving on a thread of its own; GnuTLS makes the certificates, on the
 * elliptic curve that is made fastest.
 */
#include "tests/tls_server.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shared/buf.h"
#include "shared/mem.h"

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, gnutls_strerror(rc));
	abort();
}

/* --- certificates ----------------------------------------------------------------------------- */

static char *take_text(gnutls_datum_t *text)
{
	char *copy = mem_strndup((const char *)text->data, text->size);

	gnutls_free(text->data);
	return copy;
}

static void set_names(gnutls_x509_crt_t crt, const struct tls_wish *wish)
{
	struct in_addr address;

	must(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, wish->name,
					   (unsigned int)strlen(wish->name)),
	     "common name");
	if (wish->dns)
		must(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, wish->dns,
							  (unsigned int)strlen(wish->dns),
							  GNUTLS_FSAN_APPEND),
		     "DNS name");
	if (wish->address && inet_pton(AF_INET, wish->address, &address) == 1)
		must(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, &address,
							  sizeof(address), GNUTLS_FSAN_APPEND),
		     "address");
}

static void sign(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key,
		 const struct tls_identity *issuer)
{
	gnutls_datum_t text;
	gnutls_x509_privkey_t issuer_key;
	gnutls_x509_crt_t issuer_crt;

	if (!issuer) {
		must(gnutls_x509_crt_set_ca_status(crt, 1), "authority");
		must(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), "sign");
		return;
	}
	must(gnutls_x509_privkey_init(&issuer_key), "key");
	must(gnutls_x509_crt_init(&issuer_crt), "certificate");
	text = (gnutls_datum_t){(unsigned char *)issuer->key, (unsigned int)strlen(issuer->key)};
	must(gnutls_x509_privkey_import(issuer_key, &text, GNUTLS_X509_FMT_PEM), "issuer's key");
	text = (gnutls_datum_t){(unsigned char *)issuer->certificate,
				(unsigned int)strlen(issuer->certificate)};
	must(gnutls_x509_crt_import(issuer_crt, &text, GNUTLS_X509_FMT_PEM), "issuer");
	must(gnutls_x509_crt_sign2(crt, issuer_crt, issuer_key, GNUTLS_DIG_SHA256, 0), "sign");
	gnutls_x509_crt_deinit(issuer_crt);
	gnutls_x509_privkey_deinit(issuer_key);
}

void tls_identity_make(struct tls_identity *id, const struct tls_wish *wish)
{
	static unsigned char serial;
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	gnutls_datum_t text;
	time_t now = time(NULL);

	must(gnutls_x509_privkey_init(&key), "key");
	must(gnutls_x509_crt_init(&crt), "certificate");
	must(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
					  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
	     "key");
	must(gnutls_x509_crt_set_version(crt, 3), "version");
	serial++;
	must(gnutls_x509_crt_set_serial(crt, &serial, sizeof(serial)), "serial");
	must(gnutls_x509_crt_set_activation_time(crt, now - 7200), "time");
	must(gnutls_x509_crt_set_expiration_time(crt,
						 wish->ended ? now - 3600 : now + 7 * 24 * 3600),
	     "time");
	must(gnutls_x509_crt_set_key(crt, key), "key");
	set_names(crt, wish);
	sign(crt, key, wish->issuer);
	must(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &text), "certificate");
	id->certificate = take_text(&text);
	must(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN,
					       &text),
	     "key");
	id->key = take_text(&text);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(key);
}

void tls_identity_fini(struct tls_identity *id)
{
	free(id->certificate);
	free(id->key);
	*id = (struct tls_identity){0};
}

/* --- server ----------------------------------------------------------------------------------- */

struct tls_server {
	struct MHD_Daemon *daemon;
	int port;
	char *client_ca; /* NULL: clients are not asked for a certificate */
	pthread_mutex_t lock;
	/* under lock */
	struct tls_request seen;
	char *token, *client; /* demanded; NULL: any */
	const struct tls_answer *script;
	size_t script_count;
	char *(*reply)(const char *body); /* NULL: by the rules */
};

static void replace(char **text, const char *with)
{
	free(*text);
	*text = mem_strdup(with ? with : "");
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static void see_tls(struct tls_server *s, gnutls_session_t session)
{
	char name[256] = "";
	size_t len = sizeof(name) - 1;
	unsigned int type, status = 1, count;
	const gnutls_datum_t *chain;
	gnutls_x509_crt_t crt;

	if (gnutls_server_name_get(session, name, &len, &type, 0) == 0)
		replace(&s->seen.sni, name);
	chain = s->client_ca ? gnutls_certificate_get_peers(session, &count) : NULL;
	if (!chain || gnutls_certificate_verify_peers2(session, &status) || status)
		return;
	must(gnutls_x509_crt_init(&crt), "client");
	must(gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER), "client");
	len = sizeof(name);
	must(gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &len),
	     "client");
	replace(&s->seen.client, name);
	gnutls_x509_crt_deinit(crt);
}

static void see(struct tls_server *s, struct MHD_Connection *c, const char *method, const char *url,
		const struct buf *body)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	s->seen.requests++;
	replace(&s->seen.method, method);
	replace(&s->seen.path, url);
	replace(&s->seen.body, body->data);
	replace(&s->seen.host, header(c, "Host"));
	replace(&s->seen.authorization, header(c, "Authorization"));
	replace(&s->seen.accept, header(c, "Accept"));
	replace(&s->seen.sni, "");
	replace(&s->seen.client, "");
	if (info && info->tls_session)
		see_tls(s, info->tls_session);
}

static bool is_welcome(const struct tls_server *s)
{
	char *wanted = mem_printf("Bearer %s", s->token ? s->token : "");
	bool knows = !s->token || strcmp(s->seen.authorization, wanted) == 0;

	free(wanted);
	return knows && (!s->client || strcmp(s->seen.client, s->client) == 0);
}

static const struct tls_answer *answer_to(const struct tls_server *s)
{
	static const struct tls_answer yes = {"", MHD_HTTP_OK, "{}"},
				       no = {"", MHD_HTTP_UNAUTHORIZED, "{\"code\":401}"};

	char *request = mem_printf("%s %s", s->seen.method, s->seen.path);
	const struct tls_answer *a = NULL;

	for (size_t i = 0; i < s->script_count && !a; i++)
		if (strstr(request, s->script[i].path))
			a = &s->script[i];
	free(request);
	return a ? a : is_welcome(s) ? &yes : &no;
}

/* Called for the headers, for each part of the body and at its end, with the body as *state. */
static enum MHD_Result answer(void *context, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *data_size, void **state)
{
	struct tls_server *s = context;
	struct buf *body = *state;
	struct MHD_Response *response;
	const struct tls_answer *a;
	char *(*reply)(const char *body);
	enum MHD_Result rc;
	char *text;

	(void)version;
	if (!body) {
		*state = mem_zalloc(1, sizeof(*body));
		return MHD_YES;
	}
	if (*data_size) {
		buf_add(body, data, *data_size);
		*data_size = 0;
		return MHD_YES;
	}
	pthread_mutex_lock(&s->lock);
	see(s, c, method, url, body);
	a = answer_to(s);
	reply = s->reply;
	pthread_mutex_unlock(&s->lock);
	text = reply ? reply(body->data) : mem_strdup(a->body);
	response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	rc = MHD_queue_response(c, reply ? MHD_HTTP_OK : a->status, response);
	MHD_destroy_response(response);
	return rc;
}

static void release_body(void *context, struct MHD_Connection *c, void **state,
			 enum MHD_RequestTerminationCode code)
{
	struct buf *body = *state;

	(void)context;
	(void)c;
	(void)code;
	if (body)
		buf_fini(body);
	free(body);
}

static void count_connection(void *context, struct MHD_Connection *c, void **state,
			     enum MHD_ConnectionNotificationCode code)
{
	struct tls_server *s = context;

	(void)c;
	(void)state;
	pthread_mutex_lock(&s->lock);
	s->seen.connections += code == MHD_CONNECTION_NOTIFY_STARTED;
	pthread_mutex_unlock(&s->lock);
}

struct tls_server *tls_server_start(const struct tls_identity *id, const char *client_ca)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct tls_server *s = mem_zalloc(1, sizeof(*s));
	struct MHD_OptionItem options[4] = {{MHD_OPTION_END, 0, NULL}};
	size_t n = 0;

	pthread_mutex_init(&s->lock, NULL);
	s->client_ca = client_ca ? mem_strdup(client_ca) : NULL;
	if (id) {
		options[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, id->key};
		options[n++] =
			(struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, id->certificate};
	}
	if (client_ca)
		options[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, s->client_ca};
	options[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
	s->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | (id ? MHD_USE_TLS : 0), 0,
				     NULL, NULL, answer, s, MHD_OPTION_SOCK_ADDR, &loopback,
				     MHD_OPTION_NOTIFY_CONNECTION, count_connection, s,
				     MHD_OPTION_NOTIFY_COMPLETED, release_body, s, MHD_OPTION_ARRAY,
				     options, MHD_OPTION_END);
	if (!s->daemon) {
		fprintf(stderr, "no HTTPS server on the loopback\n");
		abort();
	}
	s->port = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
	return s;
}

void tls_server_stop(struct tls_server *s)
{
	if (!s)
		return;
	MHD_stop_daemon(s->daemon);
	tls_request_fini(&s->seen);
	free(s->token);
	free(s->client);
	free(s->client_ca);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int tls_server_port(const struct tls_server *s)
{
	return s->port;
}

void tls_server_demand(struct tls_server *s, const char *token, const char *client)
{
	pthread_mutex_lock(&s->lock);
	free(s->token);
	free(s->client);
	s->token = token ? mem_strdup(token) : NULL;
	s->client = client ? mem_strdup(client) : NULL;
	pthread_mutex_unlock(&s->lock);
}

void tls_server_script(struct tls_server *s, const struct tls_answer *answers, size_t count)
{
	pthread_mutex_lock(&s->lock);
	s->script = answers;
	s->script_count = count;
	pthread_mutex_unlock(&s->lock);
}

void tls_server_reply(struct tls_server *s, char *(*reply)(const char *body))
{
	pthread_mutex_lock(&s->lock);
	s->reply = reply;
	pthread_mutex_unlock(&s->lock);
}

void tls_server_seen(struct tls_server *s, struct tls_request *r)
{
	pthread_mutex_lock(&s->lock);
	*r = s->seen;
	r->method = mem_strdup(s->seen.method ? s->seen.method : "");
	r->body = mem_strdup(s->seen.body ? s->seen.body : "");
	r->path = mem_strdup(s->seen.path ? s->seen.path : "");
	r->host = mem_strdup(s->seen.host ? s->seen.host : "");
	r->authorization = mem_strdup(s->seen.authorization ? s->seen.authorization : "");
	r->accept = mem_strdup(s->seen.accept ? s->seen.accept : "");
	r->sni = mem_strdup(s->seen.sni ? s->seen.sni : "");
	r->client = mem_strdup(s->seen.client ? s->seen.client : "");
	pthread_mutex_unlock(&s->lock);
}

void tls_request_fini(struct tls_request *r)
{
	free(r->method);
	free(r->body);
	free(r->path);
	free(r->host);
	free(r->authorization);
	free(r->accept);
	free(r->sni);
	free(r->client);
	*r = (struct tls_request){0};
}
