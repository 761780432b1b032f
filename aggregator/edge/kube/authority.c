/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys are ECDSA on P-256, digests SHA-256. A certificate is valid for a year, and due in its last
 * month. An authority is valid for ten years and signs until its last year. Then its successor stands
 * before it in ca.crt: certificates of the former authority, such as clients', stay valid. A client
 * whose ca.crt is older needs the new one.
 */
#include "aggregator/edge/kube/authority.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/config.h"
#include "shared/mem.h"

#define DAY_S	   (24 * 3600LL)
#define YEAR_S	   (365 * DAY_S)
#define DUE_S	   (30 * DAY_S)
#define BACKDATE_S 3600 /* for clients whose clocks are late */

enum { SERIAL_LEN = 16, KEY_ID_MAX = 64, AUTHORITY_YEARS = 10 };

/* A certificate with its key; NULL: not made. */
struct pair {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
};

static void pair_fini(struct pair *p)
{
	gnutls_x509_crt_deinit(p->crt);
	gnutls_x509_privkey_deinit(p->key);
}

static void pair_init(struct pair *p)
{
	if (gnutls_x509_crt_init(&p->crt) < 0 || gnutls_x509_privkey_init(&p->key) < 0)
		mem_exhausted();
}

static gnutls_datum_t datum(const char *text)
{
	return (gnutls_datum_t){(unsigned char *)text, text ? (unsigned int)strlen(text) : 0};
}

static char *take_text(gnutls_datum_t *out)
{
	char *text = mem_strndup((char *)out->data, out->size);

	sodium_memzero(out->data, out->size);
	gnutls_free(out->data);
	return text;
}

/* --- making ----------------------------------------------------------------------------------- */

/* Sets the members that every certificate has; negative errors of GnuTLS, as below. */
static int begin(struct pair *p, const char *name, int64_t now_s, int64_t life_s)
{
	unsigned char serial[SERIAL_LEN], id[KEY_ID_MAX];
	size_t len = sizeof(id);
	const char *unused;
	int rc = gnutls_x509_privkey_generate2(p->key, GNUTLS_PK_ECDSA,
					       GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0,
					       NULL, 0);

	randombytes_buf(serial, sizeof(serial));
	serial[0] &= 0x7f; /* a positive number */
	if (rc < 0 || (rc = gnutls_x509_crt_set_version(p->crt, 3)) < 0 ||
	    (rc = gnutls_x509_crt_set_serial(p->crt, serial, sizeof(serial))) < 0 ||
	    (rc = gnutls_x509_crt_set_activation_time(p->crt, (time_t)(now_s - BACKDATE_S))) < 0 ||
	    (rc = gnutls_x509_crt_set_expiration_time(p->crt, (time_t)(now_s + life_s))) < 0 ||
	    (rc = gnutls_x509_crt_set_dn(p->crt, name, &unused)) < 0 ||
	    (rc = gnutls_x509_crt_set_key(p->crt, p->key)) < 0 ||
	    (rc = gnutls_x509_crt_get_key_id(p->crt, GNUTLS_KEYID_USE_SHA256, id, &len)) < 0)
		return rc;
	return gnutls_x509_crt_set_subject_key_id(p->crt, id, len);
}

static int make_authority(struct pair *ca, int64_t now_s)
{
	int rc = begin(ca, "CN=evenkeel", now_s, AUTHORITY_YEARS * YEAR_S);

	if (rc < 0 || (rc = gnutls_x509_crt_set_basic_constraints(ca->crt, 1, 0)) < 0 ||
	    (rc = gnutls_x509_crt_set_key_usage(ca->crt, GNUTLS_KEY_KEY_CERT_SIGN |
								 GNUTLS_KEY_CRL_SIGN)) < 0)
		return rc;
	return gnutls_x509_crt_sign2(ca->crt, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0);
}

/* "a", "a.b", "a.b.svc", "a.b.svc.cluster.local", and the loopback. */
static int add_names(gnutls_x509_crt_t crt, const char *service, const char *namespace)
{
	static const unsigned char v4[4] = {127, 0, 0, 1}, v6[16] = {[15] = 1};
	char *full = mem_printf("%s.%s.svc.cluster.local", service, namespace);
	const size_t ends[] = {strlen(service), strlen(service) + 1 + strlen(namespace),
			       strlen(service) + 1 + strlen(namespace) + 4, strlen(full)};
	int rc = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, "localhost", 9,
						      GNUTLS_FSAN_SET);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]) && rc >= 0; i++)
		rc = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, full,
							  (unsigned int)ends[i],
							  GNUTLS_FSAN_APPEND);
	free(full);
	if (rc < 0 || (rc = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, v4, 4,
								 GNUTLS_FSAN_APPEND)) < 0)
		return rc;
	return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, v6, 16,
						    GNUTLS_FSAN_APPEND);
}

static int make_certificate(struct pair *p, const struct pair *ca, const char *service,
			    const char *namespace, int64_t now_s)
{
	unsigned char id[KEY_ID_MAX];
	size_t len = sizeof(id);
	char *name = mem_printf("CN=%s", service);
	int rc = begin(p, name, now_s, YEAR_S);

	free(name);
	if (rc < 0 || (rc = add_names(p->crt, service, namespace)) < 0 ||
	    (rc = gnutls_x509_crt_set_basic_constraints(p->crt, 0, -1)) < 0 ||
	    (rc = gnutls_x509_crt_set_key_usage(p->crt, GNUTLS_KEY_DIGITAL_SIGNATURE)) < 0 ||
	    (rc = gnutls_x509_crt_set_key_purpose_oid(p->crt, GNUTLS_KP_TLS_WWW_SERVER, 0)) < 0 ||
	    (rc = gnutls_x509_crt_get_subject_key_id(ca->crt, id, &len, NULL)) < 0 ||
	    (rc = gnutls_x509_crt_set_authority_key_id(p->crt, id, len)) < 0)
		return rc;
	return gnutls_x509_crt_sign2(p->crt, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0);
}

/* Into the two texts, which are replaced; `after` follows the certificate. */
static int write_pair(const struct pair *p, const char *after, char **certificate, char **key)
{
	gnutls_datum_t out[2] = {{NULL, 0}, {NULL, 0}};
	int rc = gnutls_x509_crt_export2(p->crt, GNUTLS_X509_FMT_PEM, &out[0]);
	char *text;

	if (rc >= 0)
		rc = gnutls_x509_privkey_export2(p->key, GNUTLS_X509_FMT_PEM, &out[1]);
	if (rc < 0) {
		gnutls_free(out[0].data);
		return rc;
	}
	text = mem_printf("%.*s%s", (int)out[0].size, (char *)out[0].data, after ? after : "");
	gnutls_free(out[0].data);
	free(*certificate);
	*certificate = text;
	kube_text_wipe(*key);
	*key = take_text(&out[1]);
	return 0;
}

/* --- sets ------------------------------------------------------------------------------------- */

/* The first authority of the text, whose certificates its clients accept. */
static int read_authority(struct pair *ca, const struct authority_set *set)
{
	gnutls_datum_t crt = datum(set->ca_certificate), key = datum(set->ca_key);
	unsigned char ids[2][KEY_ID_MAX];
	size_t len = sizeof(ids[0]);
	int rc = gnutls_x509_crt_import(ca->crt, &crt, GNUTLS_X509_FMT_PEM);

	if (rc < 0 || (rc = gnutls_x509_privkey_import(ca->key, &key, GNUTLS_X509_FMT_PEM)) < 0 ||
	    (rc = gnutls_x509_crt_get_key_id(ca->crt, 0, ids[0], &len)) < 0 ||
	    (rc = gnutls_x509_privkey_get_key_id(ca->key, 0, ids[1], &len)) < 0)
		return rc;
	if (memcmp(ids[0], ids[1], len) != 0)
		return GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
	return gnutls_x509_crt_get_ca_status(ca->crt, NULL) == 1 ? 0 : GNUTLS_E_CERTIFICATE_ERROR;
}

int authority_issue(struct authority_set *set, const char *service, const char *namespace,
		    int64_t now_s, struct error *error)
{
	struct pair ca, made;
	bool fresh = !set->ca_key;
	int rc = 0;

	pair_init(&ca);
	pair_init(&made);
	if (!fresh)
		rc = read_authority(&ca, set);
	if (rc >= 0 && !fresh &&
	    gnutls_x509_crt_get_expiration_time(ca.crt) < (time_t)(now_s + YEAR_S)) {
		fresh = true;
		pair_fini(&ca);
		pair_init(&ca);
	}
	if (rc >= 0 && fresh)
		rc = make_authority(&ca, now_s);
	if (rc >= 0)
		rc = make_certificate(&made, &ca, service, namespace, now_s);
	if (rc >= 0)
		rc = write_pair(&made, NULL, &set->certificate, &set->key);
	if (rc >= 0 && fresh)
		rc = write_pair(&ca, set->ca_certificate, &set->ca_certificate, &set->ca_key);
	pair_fini(&ca);
	pair_fini(&made);
	if (rc >= 0)
		return 0;
	return error_fail(error, -EINVAL, "ca.key does not sign for ca.crt: %s",
			  gnutls_strerror(rc));
}

int authority_check(const struct authority_set *set, struct error *error)
{
	gnutls_datum_t crt = datum(set->certificate), key = datum(set->key),
		       ca = datum(set->ca_certificate);
	gnutls_certificate_credentials_t credentials;
	int rc;

	if (gnutls_certificate_allocate_credentials(&credentials) < 0)
		mem_exhausted();
	rc = crt.data && key.data ? gnutls_certificate_set_x509_key_mem(credentials, &crt, &key,
									GNUTLS_X509_FMT_PEM)
				  : GNUTLS_E_NO_CERTIFICATE_FOUND;
	if (rc < 0) {
		error_set(error, "tls.crt and tls.key are no pair: %s", gnutls_strerror(rc));
	} else if (!ca.data || gnutls_certificate_set_x509_trust_mem(credentials, &ca,
								     GNUTLS_X509_FMT_PEM) <= 0) {
		rc = -EINVAL;
		error_set(error, "ca.crt has no certificate");
	}
	gnutls_certificate_free_credentials(credentials);
	return rc < 0 ? -EINVAL : 0;
}

bool authority_is_due(const struct authority_set *set, int64_t now_s)
{
	gnutls_datum_t text = datum(set->certificate);
	gnutls_x509_crt_t crt;
	bool due;

	if (!set->ca_key)
		return false;
	if (gnutls_x509_crt_init(&crt) < 0)
		mem_exhausted();
	due = gnutls_x509_crt_import(crt, &text, GNUTLS_X509_FMT_PEM) == 0 &&
	      gnutls_x509_crt_get_expiration_time(crt) < (time_t)(now_s + DUE_S);
	gnutls_x509_crt_deinit(crt);
	return due;
}

void authority_fini(struct authority_set *set)
{
	kube_text_wipe(set->ca_key);
	kube_text_wipe(set->key);
	free(set->ca_certificate);
	free(set->certificate);
	*set = (struct authority_set){0};
}
