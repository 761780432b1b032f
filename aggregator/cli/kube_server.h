/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregator behind a Kubernetes API server, reached as kubectl reaches that. */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/cli/cli.h"
#include "aggregator/edge/kube/config.h"

/* Whether --server is given on the command line, and not by the environment alone. */
bool kube_server_is_given(const struct cli_options *o);
/*
 * The cluster that the command is about; the caller frees *config. 1: that of the options or the
 * environment; 0: none, as --server, a kubeconfig and a pod are missing, or --server is given;
 * -errno with the reason. hint: what a failure to reach the server adds to its reason, or "".
 */
int kube_server_find(const struct cli_options *o, struct kube_config *config, struct error *hint,
		     struct error *error);

/*
 * Why an API server did not let a request through to the aggregator. server: for messages; answer:
 * the body as JSON, or NULL. -EACCES, -EHOSTUNREACH, -EIO with the reason.
 */
int kube_server_explain(const char *server, const char *method, const char *path, long status,
			const cJSON *answer, struct error *error);
