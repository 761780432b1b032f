/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest credential of a configuration: read again as it ages, and when the server doubts it.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_CREDENTIAL_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_SESSION_CREDENTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/edge/kube/config.h"
#include "aggregator/edge/kube/exec_credential.h"
#include "aggregator/edge/kube/session_tls.h"
#include "shared/reason.h"

/* Of a plugin's credential. Times are the caller's clock. */
struct session_exec {
	struct exec_credential credential;
	bool there;
	int64_t since_ns;
	int64_t refresh_ns, ends_ns; /* INT64_MAX: it does not end */
	int64_t retry_ns; /* after a failure; until then its reason stands */
	struct reason failure;
};

struct session_credential {
	const struct kube_config *config; /* borrowed */
	int64_t exec_limit_ns; /* a plugin's time */
	char *token; /* of the configuration or its file; owned; NULL: none */
	struct session_tls tls;
	struct session_exec exec;
	bool read; /* the files, at least once */
	int64_t read_ns;
	bool doubted; /* by the server */
	bool failing; /* to read the files again; said in the log */
};

/* Reads the files. -EACCES or -EINVAL with the reason; give up with fini in any case. */
int session_credential_init(struct session_credential *c, const struct kube_config *config,
			    struct reason *reason);
void session_credential_fini(struct session_credential *c);

/* Makes token and certificates those to use now. -EACCES with the reason when there are none. */
int session_credential_refresh(struct session_credential *c, int64_t now_ns, struct reason *reason);
/* NULL: none. Borrowed, until the next refresh. */
const char *session_credential_token(const struct session_credential *c);

#endif
