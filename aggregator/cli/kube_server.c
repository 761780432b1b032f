/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers come from the first of:
 *
 *	--server, or an option of it (--token-file, --ca-file, --client-cert, --tls-server-name)
 *	--kubeconfig, --context		https://SERVER/apis/evenkeel.io/v1/..
 *	EVENKEEL_SERVER			or EVENKEEL_TOKEN
 *	KUBECONFIG, ~/.kube/config	as the second
 *	the cluster of this pod		likewise, by its ServiceAccount
 *	this machine			http://127.0.0.1:2020
 *
 * A default kubeconfig without a current context, or an empty one, counts as none.
 */
#include "aggregator/cli/kube_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api_group.h"
#include "shared/document.h"
#include "shared/mem.h"

static bool has_value(const char *text)
{
	return text && *text;
}

bool kube_server_is_given(const struct cli_options *o)
{
	const char *environment = getenv("EVENKEEL_SERVER");

	return o->server && !(environment && strcmp(environment, o->server) == 0);
}

static int take_default(struct kube_config *config, const char *context, struct error *error)
{
	const char *listed = getenv("KUBECONFIG"), *home = getenv("HOME");
	int rc = -ENOENT;
	char *own;

	if (has_value(listed))
		return kube_config_read_list(config, listed, context, error);
	if (has_value(home)) {
		own = mem_printf("%s/.kube/config", home);
		rc = kube_config_read(config, own, context, error);
		free(own);
	}
	return rc == -ENOENT && !context ? kube_config_in_cluster(config, NULL, error) : rc;
}

/* rc: of take_default(). */
static void set_hint(const struct kube_config *config, int rc, struct error *hint)
{
	const char *listed = getenv("KUBECONFIG");

	if (!rc && strcmp(config->source, "in-cluster") != 0)
		error_set(hint,
			  "; the kubeconfig %s names this server; --server " CLI_LOCAL_SERVER
			  " asks a local aggregator",
			  config->source);
	else if (rc == -ENOENT && has_value(listed))
		error_set(hint, " (no kubeconfig: %s does not exist)", listed);
}

int kube_server_find(const struct cli_options *o, struct kube_config *config, struct error *hint,
		     struct error *error)
{
	const struct client_access *a = &o->access;
	bool asked = o->kubeconfig || o->context;
	/* By an option that only means an aggregator itself. */
	bool direct = kube_server_is_given(o) || a->token_file || a->ca_file || a->certificate ||
		      a->server_name;
	int rc;

	*hint = (struct error){""};
	if (direct || (!asked && (o->server || has_value(getenv("EVENKEEL_TOKEN")))))
		return 0;
	rc = o->kubeconfig ? kube_config_read(config, o->kubeconfig, o->context, error)
			   : take_default(config, o->context, error);
	if (rc == -ENOENT && !o->kubeconfig && o->context)
		error_set(error, "no kubeconfig to take the context %s from", o->context);
	if (!asked)
		set_hint(config, rc, hint);
	if ((rc == -ENOENT || rc == -ENODATA) && !asked)
		return 0;
	if (rc && !asked)
		error_prefix(error, "without --server the cluster of the kubeconfig answers");
	return rc ? rc : 1;
}

/* --- failures --------------------------------------------------------------------------------- */

static int explain_forbidden(const char *method, const char *path, const cJSON *answer,
			     struct error *error)
{
	char *plain = mem_strndup(path, strcspn(path, "?"));
	char rule[ACCESS_RULE_LEN];
	struct access_request q;

	api_access_request(method, plain, &q);
	api_access_rule(&q, rule);
	error_set(error,
		  "%s: a role bound to this user needs the rule %s; the ClusterRole evenkeel-%s "
		  "has it",
		  document_text_or(answer, "message", ""), rule,
		  api_access_acts(method, plain) ? "operator" : "view");
	free(plain);
	return -EACCES;
}

int kube_server_explain(const char *server, const char *method, const char *path, long status,
			const cJSON *answer, struct error *error)
{
	if (status == 403)
		return explain_forbidden(method, path, answer, error);
	if (status == 401)
		return error_fail(error, -EACCES,
				  "%s does not accept the credentials of the kubeconfig: %s",
				  server, document_text_or(answer, "message", ""));
	if (status == 404 || status == 503)
		return error_fail(
			error, -EHOSTUNREACH,
			"evenkeel is not installed in this cluster, or its APIService is not "
			"available: %s answers HTTP %ld; kubectl get apiservice %s.%s tells why",
			server, status, API_GROUP_VERSION, API_GROUP);
	return error_fail(error, -EIO, "%s answers HTTP %ld to %s: %s", server, status, path,
			  document_text_or(answer, "message", ""));
}
