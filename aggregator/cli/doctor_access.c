/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is let in to the API, by what the server tells of it, and whether that is what anybody would
 * want.
 */
#include <math.h>
#include <stdio.h>

#include "aggregator/cli/doctor.h"
#include "aggregator/cli/document.h"
#include "shared/units.h"

#define CERTIFICATE_WARN_SECONDS (7.0 * 86400)

static bool is_true(const cJSON *access, const char *name)
{
	return cJSON_IsTrue(document_at(access, name));
}

static void examine_certificate(struct doctor *d, const cJSON *access)
{
	double left = document_number(access, "certificateEndsInSeconds");
	char text[UNITS_LEN];

	if (isnan(left) || left > CERTIFICATE_WARN_SECONDS)
		return;
	units_age(fmax(left, 0), text);
	if (left <= 0)
		doctor_add(d, DOCTOR_FAIL, "certificate",
			   "Put a new pair into the files of --tls-cert and --tls-key: it is taken "
			   "within 10s.",
			   "the server's certificate has ended");
	else
		doctor_add(d, DOCTOR_WARN, "certificate",
			   "Is it renewed by itself? A new pair in the same files is taken within "
			   "10s.",
			   "the server's certificate ends in %s", text);
}

void doctor_examine_access(struct doctor *d, const cJSON *status)
{
	const cJSON *access = document_at(status, "access");
	bool tokens = is_true(access, "tokenFile") || is_true(access, "tokenReview");
	bool certificates = is_true(access, "clientCertificates"), tls = is_true(access, "tls");

	examine_certificate(d, access);
	if (document_number(access, "reloadFailures") > 0)
		doctor_add(d, DOCTOR_WARN, "access",
			   "The aggregator's log says which; what was read before is in force.",
			   "certificates or tokens could not be read again %.0f times",
			   document_number(access, "reloadFailures"));
	if (tokens || certificates)
		doctor_add(d, DOCTOR_OK, "access", NULL, "over %s, with %s%s%s",
			   tls ? "HTTPS" : "HTTP", tokens ? "a token" : "",
			   tokens && certificates ? " or " : "",
			   certificates ? "a client certificate" : "");
	else if (is_true(access, "fromOtherMachines"))
		doctor_add(
			d, DOCTOR_WARN, "access",
			"See --tls-cert, --token-file and --token-review of the aggregator, or a "
			"NetworkPolicy.",
			"everybody who can connect may read everything and make reservations");
}
