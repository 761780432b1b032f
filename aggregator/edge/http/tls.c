/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set holds the credentials of handshakes and the authorities of clients, as read at one time. A
 * connection holds its set until it ends, so a reload cuts none. Clients are checked against the
 * newest set: a client whose authority was removed is refused with its next request.
 *
 * Files may be replaced one after the other, and a certificate may meet the former key for a
 * moment: such a pair is refused as a whole and read again later. Changes are found by content: a
 * mounted Secret changes times and links in its own ways.
 *
 * The authority of the API server's front proxy comes from the Kubernetes API, maybe after a
 * connection of the proxy. So with a front proxy the handshake requests a certificate of any
 * authority from every client, and names none.
 *
 * The library takes one certificate for its life. It begins a session before it reports the
 * connection; there, before the first byte of the handshake, the session gets the newest
 * credentials.
 */
#include "aggregator/edge/http/tls.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "shared/refs.h"

#define PROXY_CA "requestheader-client-ca-file"

enum { FILE_MOST = 1 << 20, CHAIN_MOST = 8, DIGEST_LEN = 32 };

struct tls_set {
	atomic_uint users;
	uint64_t number; /* of all sets, from 1 */
	gnutls_certificate_credentials_t credentials;
	bool asks; /* clients for a certificate .. */
	bool names_authorities; /* .. of one of those named */
	gnutls_x509_trust_list_t clients, proxies; /* NULL: none */
	int64_t ends_s;
	uint8_t digest[DIGEST_LEN]; /* of the files */
};

struct tls {
	struct tls_files files;
	uint64_t made; /* sets so far; the reloading thread's */
	pthread_mutex_t lock;
	/* under lock */
	struct tls_set *newest;
	char *proxy_ca; /* owned; NULL: none yet */
};

/* --- sets ------------------------------------------------------------------------------------- */

void tls_set_drop(struct tls_set *set)
{
	if (!set || !refs_drop(&set->users))
		return;
	if (set->credentials)
		gnutls_certificate_free_credentials(set->credentials);
	if (set->clients)
		gnutls_x509_trust_list_deinit(set->clients, 1);
	if (set->proxies)
		gnutls_x509_trust_list_deinit(set->proxies, 1);
	free(set);
}

struct tls_set *tls_hold(struct tls *t)
{
	struct tls_set *set;

	pthread_mutex_lock(&t->lock);
	set = t->newest;
	refs_hold(&set->users);
	pthread_mutex_unlock(&t->lock);
	return set;
}

void tls_set_begin(struct tls_set *set, gnutls_session_t session)
{
	gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, set->credentials);
	if (set->asks)
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
	if (!set->names_authorities)
		gnutls_certificate_send_x509_rdn_sequence(session, 1);
}

/* --- from files to a set ---------------------------------------------------------------------- */

struct texts {
	struct buf certificate, client_ca, proxy_ca;
	struct secret key;
};

static int read_files(const struct tls_files *files, struct texts *x, struct error *error)
{
	int rc = file_read(files->certificate, FILE_MOST, &x->certificate, error);

	if (rc)
		return error_at(error, rc, "--tls-cert");
	rc = secret_read(&x->key, files->key, FILE_MOST, true, error);
	if (rc)
		return error_at(error, rc, "--tls-key");
	if (files->client_ca)
		rc = file_read(files->client_ca, FILE_MOST, &x->client_ca, error);
	return rc ? error_at(error, rc, "--tls-client-ca") : 0;
}

static void add_digest(crypto_generichash_state *state, const char *text, uint64_t len)
{
	crypto_generichash_update(state, (const uint8_t *)&len, sizeof(len));
	if (len)
		crypto_generichash_update(state, (const uint8_t *)text, len);
}

static void digest_of(const struct texts *x, uint8_t digest[DIGEST_LEN])
{
	crypto_generichash_state state;

	crypto_generichash_init(&state, NULL, 0, DIGEST_LEN);
	add_digest(&state, x->certificate.data, x->certificate.len);
	add_digest(&state, x->key.text, x->key.len);
	add_digest(&state, x->client_ca.data, x->client_ca.len);
	add_digest(&state, x->proxy_ca.data, x->proxy_ca.len);
	crypto_generichash_final(&state, digest, DIGEST_LEN);
}

static gnutls_datum_t datum(char *text, size_t len)
{
	return (gnutls_datum_t){(unsigned char *)text, (unsigned int)len};
}

static int take_pair(struct tls_set *set, const struct tls_files *files, const struct texts *x,
		     struct error *error)
{
	gnutls_datum_t certificate = datum(x->certificate.data, x->certificate.len);
	gnutls_datum_t key = datum(x->key.text, x->key.len), leaf;
	gnutls_x509_crt_t crt;
	int rc = gnutls_certificate_set_x509_key_mem(set->credentials, &certificate, &key,
						     GNUTLS_X509_FMT_PEM);

	if (rc < 0)
		return error_fail(error, -EINVAL, "--tls-cert %s and --tls-key %s: %s",
				  files->certificate, files->key, gnutls_strerror(rc));
	if (gnutls_certificate_get_crt_raw(set->credentials, 0, 0, &leaf) < 0 ||
	    gnutls_x509_crt_init(&crt) < 0)
		mem_exhausted();
	if (gnutls_x509_crt_import(crt, &leaf, GNUTLS_X509_FMT_DER) == 0)
		set->ends_s = gnutls_x509_crt_get_expiration_time(crt);
	gnutls_x509_crt_deinit(crt);
	return 0;
}

/* For the check of client certificates, and for a handshake that names them, unless NULL. */
static int take_authorities(gnutls_x509_trust_list_t *list,
			    gnutls_certificate_credentials_t handshake, const struct buf *pem,
			    const char *from, struct error *error)
{
	gnutls_datum_t text = datum(pem->data, pem->len);
	int count;

	if (gnutls_x509_trust_list_init(list, 0) < 0)
		mem_exhausted();
	count = gnutls_x509_trust_list_add_trust_mem(*list, &text, NULL, GNUTLS_X509_FMT_PEM, 0, 0);
	if (count > 0 && handshake)
		count = gnutls_certificate_set_x509_trust_mem(handshake, &text,
							      GNUTLS_X509_FMT_PEM);
	if (count > 0)
		return 0;
	return error_fail(error, -EINVAL, "%s: %s", from,
			  count ? gnutls_strerror(count) : "no certificate in it");
}

static int make_set(struct tls_set **out, const struct tls_files *files, const struct texts *x,
		    struct error *error)
{
	struct tls_set *set = mem_zalloc(1, sizeof(*set));
	int rc;

	set->users = 1;
	digest_of(x, set->digest);
	if (gnutls_certificate_allocate_credentials(&set->credentials) < 0)
		mem_exhausted();
	rc = take_pair(set, files, x, error);
	set->asks = files->client_ca || files->front_proxy;
	set->names_authorities = !files->front_proxy;
	if (!rc && files->client_ca) {
		rc = take_authorities(&set->clients,
				      set->names_authorities ? set->credentials : NULL,
				      &x->client_ca, files->client_ca, error);
		if (rc)
			error_prefix(error, "--tls-client-ca");
	}
	if (!rc && x->proxy_ca.len)
		rc = take_authorities(&set->proxies, NULL, &x->proxy_ca, PROXY_CA, error);
	if (rc)
		tls_set_drop(set);
	else
		*out = set;
	return rc;
}

/* --- life ------------------------------------------------------------------------------------- */

int tls_open(struct tls **out, const struct tls_files *files, struct error *error)
{
	struct tls *t = mem_zalloc(1, sizeof(*t));
	int rc;

	t->files = *files;
	pthread_mutex_init(&t->lock, NULL);
	rc = tls_reload(t, error);
	if (rc < 0) {
		tls_close(t);
		return rc;
	}
	*out = t;
	return 0;
}

void tls_close(struct tls *t)
{
	if (!t)
		return;
	tls_set_drop(t->newest);
	free(t->proxy_ca);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

int tls_set_proxy_ca(struct tls *t, const char *pem, struct error *error)
{
	struct buf text = BUF_INIT;
	gnutls_x509_trust_list_t list;
	int rc;

	buf_add_str(&text, pem);
	rc = take_authorities(&list, NULL, &text, PROXY_CA, error);
	gnutls_x509_trust_list_deinit(list, 1);
	buf_fini(&text);
	if (rc)
		return rc;
	pthread_mutex_lock(&t->lock);
	free(t->proxy_ca);
	t->proxy_ca = mem_strdup(pem);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

int tls_reload(struct tls *t, struct error *error)
{
	struct texts x = {BUF_INIT, BUF_INIT, BUF_INIT, {0}};
	struct tls_set *fresh = NULL, *old = t->newest;
	uint8_t digest[DIGEST_LEN];
	int rc = read_files(&t->files, &x, error);

	pthread_mutex_lock(&t->lock);
	buf_add_str(&x.proxy_ca, t->proxy_ca ? t->proxy_ca : "");
	pthread_mutex_unlock(&t->lock);
	if (!rc)
		digest_of(&x, digest);
	if (!rc && (!old || memcmp(old->digest, digest, DIGEST_LEN) != 0))
		rc = make_set(&fresh, &t->files, &x, error);
	secret_free(&x.key);
	buf_fini(&x.certificate);
	buf_fini(&x.client_ca);
	buf_fini(&x.proxy_ca);
	if (!fresh)
		return rc;
	fresh->number = ++t->made;
	pthread_mutex_lock(&t->lock);
	t->newest = fresh;
	pthread_mutex_unlock(&t->lock);
	tls_set_drop(old);
	return 1;
}

int64_t tls_ends_s(struct tls *t)
{
	struct tls_set *set = tls_hold(t);
	int64_t ends_s = set->ends_s;

	tls_set_drop(set);
	return ends_s;
}

/* --- clients ---------------------------------------------------------------------------------- */

/* How many certificates the client showed; the caller gives them up. */
static unsigned int take_chain(gnutls_session_t session, gnutls_x509_crt_t chain[CHAIN_MOST])
{
	unsigned int count = 0, taken = 0;
	const gnutls_datum_t *raw = gnutls_certificate_get_peers(session, &count);

	for (; raw && taken < count && taken < CHAIN_MOST; taken++) {
		if (gnutls_x509_crt_init(&chain[taken]) < 0)
			mem_exhausted();
		if (gnutls_x509_crt_import(chain[taken], &raw[taken], GNUTLS_X509_FMT_DER) < 0) {
			gnutls_x509_crt_deinit(chain[taken]);
			break;
		}
	}
	return taken;
}

static const char *fault_of(unsigned int status)
{
	static const struct {
		unsigned int flag;
		const char *text;
	} faults[] = {
		{GNUTLS_CERT_EXPIRED, "has ended"},
		{GNUTLS_CERT_NOT_ACTIVATED, "is not valid yet"},
		{GNUTLS_CERT_SIGNER_NOT_FOUND, "is not signed by an authority of --tls-client-ca"},
		{GNUTLS_CERT_SIGNATURE_FAILURE, "is not signed by an authority of --tls-client-ca"},
		{GNUTLS_CERT_PURPOSE_MISMATCH, "is not for clients (extended key usage)"},
		{GNUTLS_CERT_INSECURE_ALGORITHM, "is signed by an algorithm that is not secure"},
		{GNUTLS_CERT_REVOKED, "was revoked"},
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (status & faults[i].flag)
			return faults[i].text;
	return "cannot be verified";
}

/* 0, or why the certificate does not hold against the authorities, as bits for fault_of(). */
static unsigned int verify(gnutls_x509_trust_list_t authorities, gnutls_x509_crt_t *chain,
			   unsigned int count)
{
	gnutls_typed_vdata_st purpose = {GNUTLS_DT_KEY_PURPOSE_OID,
					 (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT, 0};
	unsigned int status = GNUTLS_CERT_INVALID;
	int rc = gnutls_x509_trust_list_verify_crt2(authorities, chain, count, &purpose, 1, 0,
						    &status, NULL);

	return rc ? GNUTLS_CERT_INVALID : status;
}

static void check_chain(const struct tls_set *set, gnutls_x509_crt_t *chain, unsigned int count,
			struct tls_client *client)
{
	unsigned int status = set->clients ? verify(set->clients, chain, count) : 0;
	int64_t first_s = INT64_MAX;

	/* The first expiry of the chain: the client is checked again then. */
	for (unsigned int i = 0; i < count; i++) {
		int64_t ends_s = gnutls_x509_crt_get_expiration_time(chain[i]);

		first_s = ends_s < first_s ? ends_s : first_s;
	}
	client->ends_s = first_s;
	if (set->clients) {
		client->state = status ? AUTH_CERTIFICATE_BAD : AUTH_CERTIFICATE_GOOD;
		snprintf(client->fault, sizeof(client->fault), "%s", fault_of(status));
	}
	client->proxy = set->proxies && verify(set->proxies, chain, count) == 0;
	if (client->proxy) {
		size_t len = TLS_NAME_LEN;

		/* A name with a NUL in it is none. */
		if (gnutls_x509_crt_get_dn_by_oid(chain[0], GNUTLS_OID_X520_COMMON_NAME, 0, 0,
						  client->name, &len) < 0 ||
		    strnlen(client->name, TLS_NAME_LEN) != len)
			client->name[0] = '\0';
	}
}

void tls_client_check(struct tls *t, gnutls_session_t session, int64_t now_s,
		      struct tls_client *client)
{
	gnutls_x509_crt_t chain[CHAIN_MOST];
	struct tls_set *set = tls_hold(t);
	unsigned int count;

	if (client->by != set->number ||
	    ((client->state == AUTH_CERTIFICATE_GOOD || client->proxy) &&
	     client->ends_s <= now_s)) {
		*client = (struct tls_client){.by = set->number};
		count = set->asks ? take_chain(session, chain) : 0;
		if (count)
			check_chain(set, chain, count, client);
		for (unsigned int i = 0; i < count; i++)
			gnutls_x509_crt_deinit(chain[i]);
	}
	tls_set_drop(set);
}
