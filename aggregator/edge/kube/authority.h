/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregator's own certificate authority: makes and renews the certificate of the HTTP API. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/error.h"

/* PEM texts, owned; NULL: none. */
struct authority_set {
	char *ca_certificate; /* the newest authority first, then those before it */
	char *ca_key; /* of the newest; NULL: the authority is somebody else's */
	char *certificate, *key;
};

/*
 * Makes a certificate for a Service ("evenkeel-aggregator" in a namespace) and the loopback, valid
 * for a year from now_s (Unix time). First makes the authority if the set has none, or its last year
 * has begun. -EINVAL with the reason: ca.crt and ca.key sign nothing that clients of ca.crt accept.
 * Then the set is unchanged.
 */
int authority_issue(struct authority_set *set, const char *service, const char *namespace,
		    int64_t now_s, struct error *error);
/* -EINVAL with the reason: certificate and key are no pair, or there is no authority. */
int authority_check(const struct authority_set *set, struct error *error);
/* Whether the certificate is the set's own and in its last month. For a checked set. */
bool authority_is_due(const struct authority_set *set, int64_t now_s);
void authority_fini(struct authority_set *set); /* wipes keys, leaves zeroes */
