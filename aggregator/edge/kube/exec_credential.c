/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
 *	 "status": {"expirationTimestamp": "2026-01-31T12:00:00Z", "token": T,
 *	            "clientCertificateData": PEM, "clientKeyData": PEM}}
 *
 * A plugin writes this to stdout. The variable KUBERNETES_EXEC_INFO has the same object with a
 * spec in place of the status; see kubernetes.io/docs/reference/config-api/client-
 * authentication.v1.
 *
 * posix_spawn() is safe in a threaded process: none of its code runs between fork and exec. The
 * child gets default signals and three descriptors. Its exit is polled every SLICE_MS beside its
 * pipes: a grandchild may hold the pipes after the exit, and the child may close them and stay.
 * After the exit the content of the pipes counts.
 */
#include "aggregator/edge/kube/exec_credential.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregator/edge/kube/config.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

/* --- answer ----------------------------------------------------------------------------------- */

static char *text_of(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsString(item) && item->valuestring[0] ? item->valuestring : NULL;
}

static int take_pair(struct exec_credential *cred, const char *certificate, const char *key,
		     struct error *reason)
{
	if (!certificate && !key)
		return 0;
	if (!certificate || !key)
		return error_fail(reason, -EINVAL, "%s",
				  certificate ? "clientCertificateData without clientKeyData"
					      : "clientKeyData without clientCertificateData");
	if (!strstr(certificate, "-----BEGIN ") || !strstr(key, "-----BEGIN "))
		return error_fail(reason, -EINVAL,
				  "clientCertificateData or clientKeyData is not PEM");
	cred->certificate = mem_strdup(certificate);
	cred->key = mem_strdup(key);
	return 0;
}

static int take_status(struct exec_credential *cred, const cJSON *status, struct error *reason)
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
		return error_fail(reason, -EINVAL, "neither a token nor a certificate");
	if (!time || cJSON_IsNull(time))
		return 0;
	if (!cJSON_IsString(time) || timefmt_parse(time->valuestring, &cred->expires_ns, NULL))
		return error_fail(reason, -EINVAL, "expirationTimestamp is not a time");
	cred->expires = true;
	return 0;
}

static int take_object(struct exec_credential *cred, const char *api_version, const cJSON *doc,
		       struct error *reason)
{
	const cJSON *status = cJSON_GetObjectItemCaseSensitive(doc, "status");
	const char *kind = text_of(doc, "kind"), *version = text_of(doc, "apiVersion");

	if (!kind || strcmp(kind, "ExecCredential") != 0)
		return error_fail(reason, -EINVAL, "not an ExecCredential");
	if (!version || strcmp(version, api_version) != 0)
		return error_fail(reason, -EINVAL, "another apiVersion than %s", api_version);
	if (!cJSON_IsObject(status))
		return error_fail(reason, -EINVAL, "no status");
	return take_status(cred, status, reason);
}

/* Every string of the document came from the plugin. */
static void wipe(cJSON *item)
{
	for (; item; item = item->next) {
		if (item->valuestring)
			sodium_memzero(item->valuestring, strlen(item->valuestring));
		wipe(item->child);
	}
}

int exec_credential_parse(struct exec_credential *cred, const char *api_version, const char *json,
			  size_t len, struct error *reason)
{
	struct exec_credential parsed = {0};
	cJSON *doc = cJSON_ParseWithLength(json, len);
	int rc;

	if (!cJSON_IsObject(doc)) {
		wipe(doc);
		cJSON_Delete(doc);
		return error_fail(reason, -EINVAL, "not a JSON object");
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

static void write_cluster(struct jsonw *w, const struct kube_config *c, const char *ca)
{
	jsonw_key_object(w, "cluster");
	jsonw_key_string(w, "server", c->server);
	jsonw_key_text(w, "tls-server-name", c->tls_server_name);
	jsonw_key_true(w, "insecure-skip-tls-verify", c->insecure_skip_tls_verify);
	if (ca) {
		size_t room = sodium_base64_encoded_len(strlen(ca), sodium_base64_VARIANT_ORIGINAL);
		char *text = mem_alloc(room);

		sodium_bin2base64(text, room, (const unsigned char *)ca, strlen(ca),
				  sodium_base64_VARIANT_ORIGINAL);
		jsonw_key_string(w, "certificate-authority-data", text);
		free(text);
	}
	jsonw_key_text(w, "proxy-url", c->proxy_url);
	jsonw_object_close(w);
}

char *exec_credential_info(const struct kube_config *c, const char *ca)
{
	struct buf out = BUF_INIT;
	struct jsonw w;

	jsonw_begin(&w, &out);
	jsonw_key_string(&w, "apiVersion", c->exec_api_version);
	jsonw_key_string(&w, "kind", "ExecCredential");
	jsonw_key_object(&w, "spec");
	if (c->exec_provide_cluster_info)
		write_cluster(&w, c, ca);
	jsonw_key_bool(&w, "interactive", false);
	jsonw_object_close(&w);
	jsonw_object_close(&w);
	return buf_take(&out, NULL);
}

enum { SLICE_MS = 20, STDERR_MAX = 4096, SHOWN_LEN = 200 };

/* An output of the child. */
struct stream {
	int fd; /* -1: ended */
	/* owned; room + 2 bytes that are never moved, so no copy of a secret stays */
	char *data;
	size_t len, room;
	bool newest; /* overflow drops the oldest bytes; else it is an error */
	bool overflown;
};

struct child {
	pid_t pid;
	struct stream out, err;
	bool ended;
	int status;
};

/* --- start ------------------------------------------------------------------------------------ */

/* 0 or errno. */
static int spawn(pid_t *pid, char *const argv[], char *const envp[], int out, int err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	if (rc == 0)
		rc = posix_spawnp(pid, argv[0], &actions, &attributes, argv, envp);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static int start(struct child *c, char *const argv[], char *const envp[], struct error *reason)
{
	int out[2] = {-1, -1}, err[2] = {-1, -1}, rc;

	rc = pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)
		     ? errno
		     : spawn(&c->pid, argv, envp, out[1], err[1]);
	file_close(out[1]);
	file_close(err[1]);
	if (rc) {
		file_close(out[0]);
		file_close(err[0]);
		return error_fail(reason, rc == ENOENT ? -ENOENT : -EACCES, "cannot be run: %s",
				  strerror(rc));
	}
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	c->out = (struct stream){.fd = out[0],
				 .data = mem_alloc(EXEC_OUTPUT_MAX + 2),
				 .room = EXEC_OUTPUT_MAX};
	c->err = (struct stream){.fd = err[0],
				 .data = mem_alloc(STDERR_MAX + 2),
				 .room = STDERR_MAX,
				 .newest = true};
	return 0;
}

/* --- outputs ---------------------------------------------------------------------------------- */

static void stream_close(struct stream *s)
{
	file_close(s->fd);
	s->fd = -1;
}

static void stream_make_room(struct stream *s)
{
	size_t kept = s->room / 2;

	if (s->len <= s->room)
		return;
	if (!s->newest) {
		s->overflown = true;
		return;
	}
	memmove(s->data, s->data + s->len - kept, kept);
	s->len = kept;
}

/* Reads what is there. */
static void stream_read(struct stream *s)
{
	while (s->fd >= 0 && !s->overflown) {
		ssize_t got = read(s->fd, s->data + s->len, s->room + 1 - s->len);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			stream_close(s);
			return;
		}
		s->len += (size_t)got;
		stream_make_room(s);
	}
}

static void stream_fini(struct stream *s)
{
	stream_close(s);
	kube_bytes_wipe(s->data, s->len);
}

/* --- end -------------------------------------------------------------------------------------- */

static void reap(struct child *c, int flags)
{
	while (!c->ended) {
		pid_t got = waitpid(c->pid, &c->status, flags);

		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			return;
		/* Reaped elsewhere: the status is not known. */
		if (got < 0)
			c->status = -1;
		c->ended = true;
	}
}

/* Until exit, timeout, or too much output. */
static void await_end(struct child *c, int64_t limit_ns)
{
	int64_t until_ns = clock_mono_ns() + limit_ns;

	while (!c->ended && !c->out.overflown && clock_mono_ns() < until_ns) {
		struct pollfd fds[2] = {{.fd = c->out.fd, .events = POLLIN},
					{.fd = c->err.fd, .events = POLLIN}};

		poll(fds, 2, SLICE_MS);
		/* Exit first, then pipes: its last output is read then. */
		reap(c, WNOHANG);
		stream_read(&c->out);
		stream_read(&c->err);
	}
}

/* The last line of stderr as printable text, or "". */
static const char *last_words(struct stream *err, char out[SHOWN_LEN])
{
	const char *end;

	while (err->len && (unsigned char)err->data[err->len - 1] <= ' ')
		err->len--;
	err->data[err->len] = '\0';
	end = memrchr(err->data, '\n', err->len);
	return kube_text_line(end ? end + 1 : err->data, out, SHOWN_LEN);
}

/* The verdict without the quote. */
static int judge_end(const struct child *c, int64_t limit_ns, struct error *reason)
{
	if (c->out.overflown)
		return error_fail(reason, -EIO, "printed more than %d KiB and was killed",
				  EXEC_OUTPUT_MAX / 1024);
	if (!c->ended)
		return error_fail(reason, -ETIMEDOUT, "did not end within %.3gs and was killed",
				  (double)limit_ns / NS_PER_SEC);
	if (WIFSIGNALED(c->status))
		error_set(reason, "was ended by signal %d", WTERMSIG(c->status));
	else if (WEXITSTATUS(c->status))
		error_set(reason, "failed with exit status %d", WEXITSTATUS(c->status));
	else
		return 0;
	return -EIO;
}

int exec_run(char *const argv[], char *const envp[], int64_t limit_ns, char **out, size_t *len,
	     struct error *reason)
{
	struct child c = {0};
	int rc = start(&c, argv, envp, reason);
	struct error how;
	char words[SHOWN_LEN];

	if (rc)
		return rc;
	await_end(&c, limit_ns);
	rc = judge_end(&c, limit_ns, &how);
	last_words(&c.err, words);
	if (rc)
		error_set(reason, "%s%s%s", how.text, words[0] ? ": " : "", words);
	if (!c.ended) {
		kill(-c.pid, SIGKILL);
		reap(&c, 0);
	}
	if (rc == 0) {
		c.out.data[c.out.len] = '\0';
		*out = c.out.data;
		*len = c.out.len;
		c.out.data = NULL;
	}
	stream_fini(&c.out);
	stream_fini(&c.err);
	return rc;
}
