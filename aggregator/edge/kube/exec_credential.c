/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
 *	 "status": {"expirationTimestamp": "2026-01-31T12:00:00Z", "token": T,
 *	            "clientCertificateData": PEM, "clientKeyData": PEM}}
 *
 * A plugin writes this to stdout. It reads the same object with a spec in place of the status from
 * the variable KUBERNETES_EXEC_INFO; the interface is described at
 * kubernetes.io/docs/reference/config-api/client-authentication.v1.
 */
#include "aggregator/edge/kube/exec_credential.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/config_file.h"
#include "aggregator/edge/kube/token.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

/* --- answer ----------------------------------------------------------------------------------- */

static int refuse(struct reason *reason, const char *text)
{
	reason_set(reason, "%s", text);
	return -EINVAL;
}

static char *text_of(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsString(item) && item->valuestring[0] ? item->valuestring : NULL;
}

static int take_pair(struct exec_credential *cred, const char *certificate, const char *key,
		     struct reason *reason)
{
	if (!certificate && !key)
		return 0;
	if (!certificate || !key)
		return refuse(reason, certificate ? "clientCertificateData without clientKeyData"
						  : "clientKeyData without clientCertificateData");
	if (!strstr(certificate, "-----BEGIN ") || !strstr(key, "-----BEGIN "))
		return refuse(reason, "clientCertificateData or clientKeyData is not PEM");
	cred->certificate = mem_strdup(certificate);
	cred->key = mem_strdup(key);
	return 0;
}

static int take_status(struct exec_credential *cred, const cJSON *status, struct reason *reason)
{
	const cJSON *time = cJSON_GetObjectItemCaseSensitive(status, "expirationTimestamp");
	const char *token = text_of(status, "token");
	int rc = take_pair(cred, text_of(status, "clientCertificateData"),
			   text_of(status, "clientKeyData"), reason);

	if (rc == 0 && token)
		rc = token_take(token, strlen(token), &cred->token, reason);
	if (rc)
		return rc;
	if (!cred->token && !cred->certificate)
		return refuse(reason, "neither a token nor a certificate");
	if (!time || cJSON_IsNull(time))
		return 0;
	if (!cJSON_IsString(time) || timefmt_parse(time->valuestring, &cred->expires_ns, NULL))
		return refuse(reason, "expirationTimestamp is not a time");
	cred->expires = true;
	return 0;
}

static int take_object(struct exec_credential *cred, const char *api_version, const cJSON *doc,
		       struct reason *reason)
{
	const cJSON *status = cJSON_GetObjectItemCaseSensitive(doc, "status");
	const char *kind = text_of(doc, "kind"), *version = text_of(doc, "apiVersion");

	if (!kind || strcmp(kind, "ExecCredential") != 0)
		return refuse(reason, "not an ExecCredential");
	if (!version || strcmp(version, api_version) != 0) {
		reason_set(reason, "another apiVersion than %s", api_version);
		return -EINVAL;
	}
	if (!cJSON_IsObject(status))
		return refuse(reason, "no status");
	return take_status(cred, status, reason);
}

/* Every string of the document, since all of them came from the plugin. */
static void wipe(cJSON *item)
{
	for (; item; item = item->next) {
		if (item->valuestring)
			sodium_memzero(item->valuestring, strlen(item->valuestring));
		wipe(item->child);
	}
}

int exec_credential_parse(struct exec_credential *cred, const char *api_version, const char *json,
			  size_t len, struct reason *reason)
{
	struct exec_credential parsed = {0};
	cJSON *doc = cJSON_ParseWithLength(json, len);
	int rc;

	if (!cJSON_IsObject(doc)) {
		wipe(doc);
		cJSON_Delete(doc);
		return refuse(reason, "not a JSON object");
	}
	rc = take_object(&parsed, api_version, doc, reason);
	wipe(doc);
	cJSON_Delete(doc);
	if (rc)
		exec_credential_fini(&parsed);
	else
		*cred = parsed;
	return rc;
}

void exec_credential_fini(struct exec_credential *cred)
{
	kube_text_wipe(cred->token);
	kube_text_wipe(cred->certificate);
	kube_text_wipe(cred->key);
	*cred = (struct exec_credential){0};
}

/* --- question --------------------------------------------------------------------------------- */

static void write_ca(struct jsonw *w, const char *ca)
{
	size_t room = sodium_base64_encoded_len(strlen(ca), sodium_base64_VARIANT_ORIGINAL);
	char *text = mem_alloc(room);

	sodium_bin2base64(text, room, (const unsigned char *)ca, strlen(ca),
			  sodium_base64_VARIANT_ORIGINAL);
	jsonw_key_string(w, "certificate-authority-data", text);
	free(text);
}

static void write_cluster(struct jsonw *w, const struct kube_config *c, const char *ca)
{
	jsonw_key(w, "cluster");
	jsonw_object_open(w);
	jsonw_key_string(w, "server", c->server);
	if (c->tls_server_name)
		jsonw_key_string(w, "tls-server-name", c->tls_server_name);
	if (c->insecure_skip_tls_verify)
		jsonw_key_bool(w, "insecure-skip-tls-verify", true);
	if (ca)
		write_ca(w, ca);
	if (c->proxy_url)
		jsonw_key_string(w, "proxy-url", c->proxy_url);
	jsonw_object_close(w);
}

char *exec_credential_info(const struct kube_config *c, const char *ca)
{
	struct buf out = BUF_INIT;
	struct jsonw w;

	jsonw_init(&w, &out);
	jsonw_object_open(&w);
	jsonw_key_string(&w, "apiVersion", c->exec_api_version);
	jsonw_key_string(&w, "kind", "ExecCredential");
	jsonw_key(&w, "spec");
	jsonw_object_open(&w);
	if (c->exec_provide_cluster_info)
		write_cluster(&w, c, ca);
	jsonw_key_bool(&w, "interactive", false);
	jsonw_object_close(&w);
	jsonw_object_close(&w);
	return buf_take(&out, NULL);
}
