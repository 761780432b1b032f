/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are read again once a minute, and at once after a 401. Unreadable files leave the former
 * credential in use, with a log line: it may be valid for long. After a 401 they are an error.
 *
 * The credential of an exec plugin is kept until a minute before its expiry (half its life if that
 * is shorter). The plugin runs on the caller's thread for at most exec_limit_ns: no request is
 * possible without it. While the former credential is valid a failing plugin does no harm. After a
 * failure the plugin rests for EXEC_PAUSE, so that ten waiting requests do not run it ten times.
 * The expiry is wall time, converted to the caller's clock on arrival.
 */
#include "aggregator/edge/kube/session_credential.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/edge/kube/config.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/log.h"
#include "shared/mem.h"

#define FILE_AGE_NS   (60 * NS_PER_SEC)
#define EXEC_EARLY_NS (60 * NS_PER_SEC)
#define EXEC_PAUSE_NS (10 * NS_PER_SEC)
#define EXEC_LIMIT_NS (30 * NS_PER_SEC)

#define EXEC_INFO "KUBERNETES_EXEC_INFO"

enum { SHOWN_LEN = 130 };

/* --- files ------------------------------------------------------------------------------------ */

/* The text of a file or, without one, of data; *text NULL: neither. The caller wipes it. */
static int load_pem(const char *file, const char *data, const char *what, char **text,
		    struct error *error)
{
	struct secret pem;
	int rc;

	*text = !file && data ? mem_strdup(data) : NULL;
	if (!file)
		return 0;
	rc = secret_read(&pem, file, KUBE_FILE_MAX, false, error);
	if (rc == 0 && strlen(pem.text) != pem.len) {
		error_set(error, "%s: is not PEM", file);
		secret_free(&pem);
		rc = -EINVAL;
	}
	if (rc)
		error_prefix(error, "%s", what);
	else
		*text = pem.text;
	return rc;
}

static int load_ca(const struct kube_config *config, char **ca, struct error *error)
{
	return load_pem(config->ca_file, config->ca_data, "certificate authority", ca, error);
}

static int read_certificates(struct session_credential *c, struct error *error)
{
	const struct kube_config *config = c->config;
	const struct exec_credential *exec = &c->exec.credential;
	char *ca = NULL, *certificate = NULL, *key = NULL;
	int rc = load_ca(config, &ca, error);

	if (rc == 0)
		rc = load_pem(config->client_certificate_file,
			      exec->certificate ? exec->certificate
						: config->client_certificate_data,
			      "client certificate", &certificate, error);
	if (rc == 0)
		rc = load_pem(config->client_key_file,
			      exec->key ? exec->key : config->client_key_data, "client key", &key,
			      error);
	if (rc == 0 && !certificate != !key)
		rc = error_fail(error, -EINVAL, "client certificate and key: one is missing");
	if (rc == 0)
		rc = session_tls_put(&c->tls, ca, certificate, key, error);
	kube_text_wipe(ca);
	kube_text_wipe(certificate);
	kube_text_wipe(key);
	return rc;
}

static int read_token(struct session_credential *c, struct error *error)
{
	const struct kube_config *config = c->config;
	char *token;
	int rc;

	if (config->token_file)
		rc = token_read(config->token_file, &token, error);
	else if (config->token)
		rc = token_take(config->token, strlen(config->token), &token, error);
	else
		return 0;
	if (rc)
		return error_at(error, rc, "token");
	kube_text_wipe(c->token);
	c->token = token;
	return 0;
}

/* The token even if the certificates fail: each is replaced at its own time. */
static int read_files(struct session_credential *c, struct error *error)
{
	int rc = read_token(c, error);

	return rc ? rc : read_certificates(c, error);
}

/* --- exec plugin ------------------------------------------------------------------------------ */

static bool same_name(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return len == strcspn(b, "=") && memcmp(a, b, len) == 0;
}

static bool is_among(const char *variable, char **list)
{
	for (; list && *list; list++) {
		if (same_name(variable, *list))
			return true;
	}
	return false;
}

/*
 * The environment, overridden by the configuration's, overridden by info. The caller frees the
 * array, not its strings.
 */
static char **make_environment(const struct kube_config *config, char *info)
{
	size_t count = 0;
	char **all = NULL;

	for (char **e = environ; *e; e++)
		if (!is_among(*e, config->exec_env) && !same_name(*e, info))
			ARRAY_ADD(all, count) = *e;
	for (char **e = config->exec_env; e && *e; e++)
		if (!same_name(*e, info))
			ARRAY_ADD(all, count) = *e;
	ARRAY_ADD(all, count) = info;
	ARRAY_ADD(all, count) = NULL;
	return all;
}

static char **make_arguments(const struct kube_config *config)
{
	size_t count = 0;
	char **all = NULL;

	ARRAY_ADD(all, count) = config->exec_command;
	for (char **a = config->exec_args; a && *a; a++)
		ARRAY_ADD(all, count) = *a;
	ARRAY_ADD(all, count) = NULL;
	return all;
}

/* Runs the plugin and parses its output. */
static int ask_plugin(struct session_credential *c, struct exec_credential *got,
		      struct error *error)
{
	const struct kube_config *config = c->config;
	char *ca = NULL, *info, *text, **arguments, **environment, *out = NULL;
	char hint[SHOWN_LEN];
	size_t len = 0;
	int rc = load_ca(config, &ca, error);

	if (rc)
		return rc;
	text = exec_credential_info(config, ca);
	info = mem_printf("%s=%s", EXEC_INFO, text);
	arguments = make_arguments(config);
	environment = make_environment(config, info);
	rc = exec_run(arguments, environment,
		      config->exec_limit_ns ? config->exec_limit_ns : EXEC_LIMIT_NS, &out, &len,
		      error);
	if (rc == -ENOENT && config->exec_install_hint)
		error_set(error, "is not installed: %s",
			  kube_text_line(config->exec_install_hint, hint, sizeof(hint)));
	if (rc == 0) {
		rc = exec_credential_parse(got, config->exec_api_version, out, len, error);
		if (rc)
			error_prefix(error, "printed what is no credential");
	}
	kube_bytes_wipe(out, len);
	free(environment);
	free(arguments);
	free(info);
	free(text);
	kube_text_wipe(ca);
	return rc;
}

/* Replaces the former credential, unless the new one has expired or its certificate is unusable. */
static int take_credential(struct session_credential *c, struct exec_credential *got,
			   int64_t now_ns, struct error *error)
{
	struct session_exec *e = &c->exec;
	struct exec_credential former = e->credential;
	int64_t life_ns = got->expires ? got->expires_ns - clock_wall_ns() : INT64_MAX;
	int rc;

	if (life_ns <= 0)
		return error_fail(error, -EINVAL, "its credential ended %lld s ago",
				  (long long)(-life_ns / NS_PER_SEC));
	e->credential = *got;
	rc = read_certificates(c, error);
	if (rc) {
		e->credential = former;
		return rc;
	}
	*got = former;
	e->there = true;
	e->since_ns = now_ns;
	e->ends_ns = e->refresh_ns = INT64_MAX;
	if (life_ns < INT64_MAX - now_ns) {
		e->ends_ns = now_ns + life_ns;
		e->refresh_ns =
			e->ends_ns - (life_ns < 2 * EXEC_EARLY_NS ? life_ns / 2 : EXEC_EARLY_NS);
	}
	return 0;
}

static int run_plugin(struct session_credential *c, int64_t now_ns, struct error *error)
{
	struct exec_credential got = {0};
	int64_t start_ns = clock_mono_ns();
	char command[SHOWN_LEN];
	int rc = ask_plugin(c, &got, error);

	if (rc == 0)
		rc = take_credential(c, &got, now_ns, error);
	exec_credential_fini(&got);
	if (rc) {
		error_prefix(error, "exec plugin %s",
			     kube_text_line(c->config->exec_command, command, sizeof(command)));
		c->exec.failure = *error;
		c->exec.retry_ns = now_ns + (clock_mono_ns() - start_ns) + EXEC_PAUSE_NS;
	}
	return rc;
}

static int refresh_exec(struct session_credential *c, int64_t now_ns, struct error *error)
{
	struct session_exec *e = &c->exec;
	bool usable;

	if (e->there && now_ns - e->since_ns < EXEC_PAUSE_NS)
		c->rejected = false;
	usable = e->there && !c->rejected && now_ns < e->ends_ns;
	if (usable && now_ns < e->refresh_ns)
		return 0;
	if (now_ns < e->retry_ns) {
		*error = e->failure;
		return usable ? 0 : -EACCES;
	}
	if (run_plugin(c, now_ns, error) == 0)
		return 0;
	if (!usable)
		return -EACCES;
	log_warn("kubernetes: %s; its former credential is good for %lld s", error->text,
		 (long long)((e->ends_ns - now_ns) / NS_PER_SEC));
	return 0;
}

/* --- both ------------------------------------------------------------------------------------- */

int session_credential_init(struct session_credential *c, const struct kube_config *config,
			    struct error *error)
{
	*c = (struct session_credential){.config = config};
	session_tls_init(&c->tls);
	c->exec.retry_ns = INT64_MIN;
	return read_files(c, error) ? -EACCES : 0;
}

void session_credential_fini(struct session_credential *c)
{
	kube_text_wipe(c->token);
	exec_credential_fini(&c->exec.credential);
	session_tls_fini(&c->tls);
}

static int refresh_files(struct session_credential *c, int64_t now_ns, struct error *error)
{
	if (c->read && !c->rejected && now_ns - c->read_ns < FILE_AGE_NS)
		return 0;
	if (read_files(c, error) == 0) {
		c->read = true;
		c->read_ns = now_ns;
		c->failing = false;
		return 0;
	}
	if (c->rejected)
		return -EACCES;
	if (!c->failing)
		log_warn("kubernetes: %s; what was read before stays in use", error->text);
	c->failing = true;
	return 0;
}

int session_credential_refresh(struct session_credential *c, int64_t now_ns, struct error *error)
{
	struct error why;
	int rc = c->config->exec_command ? refresh_exec(c, now_ns, &why) : 0;

	if (rc == 0)
		rc = refresh_files(c, now_ns, &why);
	if (rc == 0)
		c->rejected = false;
	else
		error_set(error, "%s", why.text);
	return rc;
}
