/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl with GnuTLS takes certificates only as files (its *_BLOB options are for other TLS
 * libraries), and reads them when it connects; by then certificate and key may have been replaced
 * one by one. So each set is checked as a whole and put into anonymous memory files, named by
 * /proc/self/fd.
 *
 * libcurl reuses a connection for the same paths. A new set has new descriptors, so other paths
 * and a connection of its own. Older sets stay open for a while, so that prepared requests can
 * still connect, and their descriptor numbers are not reused.
 */
#include "aggregator/edge/kube/session_credential.h"

#include <assert.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/file.h"
#include "shared/mem.h"

/* --- files ------------------------------------------------------------------------------------ */

/* second may be NULL. The caller closes the file, also after a failure. */
static int file_make(struct session_tls_file *f, const char *first, const char *second,
		     struct error *error)
{
	int rc = 0;

	f->fd = memfd_create("evenkeel-tls", MFD_CLOEXEC);
	if (f->fd < 0)
		rc = -errno;
	if (rc == 0)
		rc = file_write(f->fd, first, strlen(first));
	/* The first text may lack its line end. */
	if (rc == 0 && second)
		rc = file_write(f->fd, "\n", 1);
	if (rc == 0 && second)
		rc = file_write(f->fd, second, strlen(second));
	if (rc)
		return error_fail(error, -EINVAL, "cannot be kept in memory: %s", strerror(-rc));
	snprintf(f->path, sizeof(f->path), "/proc/self/fd/%d", f->fd);
	return 0;
}

/* --- checks ----------------------------------------------------------------------------------- */

static gnutls_datum_t datum(const char *text)
{
	return (gnutls_datum_t){.data = (unsigned char *)text, .size = (unsigned int)strlen(text)};
}

static int check_ca(gnutls_certificate_credentials_t x, const char *ca, struct error *error)
{
	gnutls_datum_t text = datum(ca);
	int count = gnutls_certificate_set_x509_trust_mem(x, &text, GNUTLS_X509_FMT_PEM);

	if (count > 0)
		return 0;
	return error_fail(error, -EINVAL, "certificate authority: %s",
			  count ? gnutls_strerror(count) : "no certificate in it");
}

static int check_pair(gnutls_certificate_credentials_t x, const char *certificate, const char *key,
		      struct error *error)
{
	gnutls_datum_t first = datum(certificate), second = datum(key);
	int rc = gnutls_certificate_set_x509_key_mem(x, &first, &second, GNUTLS_X509_FMT_PEM);

	if (rc >= 0)
		return 0;
	return error_fail(error, -EINVAL, "client certificate and key: %s", gnutls_strerror(rc));
}

static int check(const char *ca, const char *certificate, const char *key, struct error *error)
{
	gnutls_certificate_credentials_t x;
	int rc = 0;

	if (gnutls_certificate_allocate_credentials(&x) < 0)
		mem_exhausted();
	if (ca)
		rc = check_ca(x, ca, error);
	if (rc == 0 && certificate)
		rc = check_pair(x, certificate, key, error);
	gnutls_certificate_free_credentials(x);
	return rc;
}

/* --- sets ------------------------------------------------------------------------------------- */

static void digest_add(crypto_generichash_state *state, const char *text)
{
	/* The NUL separates texts; an absent text differs from an empty one. */
	const uint8_t there = text != NULL;

	crypto_generichash_update(state, &there, 1);
	if (text)
		crypto_generichash_update(state, (const uint8_t *)text, strlen(text) + 1);
}

static void set_close(struct session_tls_set *set)
{
	file_close(set->ca.fd);
	file_close(set->pair.fd);
}

void session_tls_init(struct session_tls *t)
{
	*t = (struct session_tls){0};
	for (size_t i = 0; i < SESSION_TLS_KEPT; i++)
		t->sets[i].ca.fd = t->sets[i].pair.fd = -1;
}

void session_tls_fini(struct session_tls *t)
{
	for (size_t i = 0; i < SESSION_TLS_KEPT; i++)
		set_close(&t->sets[i]);
}

int session_tls_put(struct session_tls *t, const char *ca, const char *certificate, const char *key,
		    struct error *error)
{
	struct session_tls_set made = {.ca.fd = -1, .pair.fd = -1};
	uint8_t digest[SESSION_TLS_DIGEST_LEN];
	crypto_generichash_state state;
	int rc;

	assert(!certificate == !key);
	crypto_generichash_init(&state, NULL, 0, sizeof(digest));
	digest_add(&state, ca);
	digest_add(&state, certificate);
	digest_add(&state, key);
	crypto_generichash_final(&state, digest, sizeof(digest));
	if (memcmp(digest, t->digest, sizeof(digest)) == 0)
		return 0;
	rc = check(ca, certificate, key, error);
	if (rc == 0 && ca)
		rc = file_make(&made.ca, ca, NULL, error);
	if (rc == 0 && certificate)
		rc = file_make(&made.pair, certificate, key, error);
	if (rc) {
		set_close(&made);
		return rc;
	}
	t->newest = (t->newest + 1) % SESSION_TLS_KEPT;
	set_close(&t->sets[t->newest]);
	t->sets[t->newest] = made;
	memcpy(t->digest, digest, sizeof(digest));
	return 0;
}
