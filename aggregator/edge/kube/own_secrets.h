/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregator's own Secrets: creates them if a namespace lacks them, and copies their members to
 * files.
 */
#pragma once

#include "aggregator/edge/kube/config.h"
#include "shared/error.h"

struct own_secrets_config {
	const char *namespace; /* borrowed, as all here */
	/* Files of the Secret evenkeel-tls; certificate and key NULL: not needed. */
	const char *certificate, *key;
	const char *authority; /* NULL: not needed */
	/* Folder of the keys in the Secret evenkeel-enrolment; NULL: not needed. */
	const char *enrolment;
};

struct own_secrets;

/*
 * Creates what is missing and writes the files, on the caller's thread, within 30 s. SIGTERM ends the
 * process meanwhile. If an earlier start wrote the files, a failure is logged, and they stay. 0, or
 * -errno with the reason. kube is copied.
 */
int own_secrets_open(struct own_secrets **s, const struct kube_config *kube,
		     const struct own_secrets_config *config, struct error *error);
/*
 * Starts a thread that does so once a minute, and renews the certificate. changed: called on that
 * thread after files changed.
 */
int own_secrets_start(struct own_secrets *s, void (*changed)(void *ctx), void *ctx,
		      struct error *error);
void own_secrets_close(struct own_secrets *s); /* cuts a running request; NULL is allowed */
