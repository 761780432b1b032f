/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	object				members			files
 *	Secret evenkeel-tls		tls.crt, tls.key	--tls-cert, --tls-key
 *					ca.crt, ca.key		--tls-client-ca, none
 *	Secret evenkeel-enrolment	NAME: 32 bytes, ..	--enrolment-key/NAME
 *	ConfigMap evenkeel-enrolment	aggregator.pub		the public key of the last of these, for
 *							agents
 *	APIServices of evenkeel		spec.caBundle		the ca.crt above
 *
 * Secrets are created by POST. If several aggregators start at once, the first POST succeeds, and the
 * others read its Secret. An existing Secret changes in one way: an aggregator that has ca.key renews
 * the certificate (authority.h) of the resource version that it read. The next round reads the result.
 *
 * The folder of keys has the hidden file MARK: the program removes keys only from its own folder.
 *
 * After a failure the files stay as they are, and the next round tries again. A reason is logged once.
 */
#include "aggregator/edge/kube/own_secrets.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "aggregator/edge/kube/authority.h"
#include "aggregator/edge/kube/config.h"
#include "aggregator/edge/kube/kube_writer.h"
#include "shared/arith.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "shared/enrolment.h"
#include "shared/file.h"
#include "shared/keyring.h"
#include "shared/log.h"
#include "shared/mem.h"

#define SERVICE	   "evenkeel-aggregator"
#define LABEL	   "\"app.kubernetes.io/part-of\":\"evenkeel\""
#define MARK	   ".own-secrets"
#define KEEPING	   "keeping the files of the own secrets: "
#define EVERY_NS   (60 * NS_PER_SEC)
#define FIRST_NS   (30 * NS_PER_SEC)
#define TIMEOUT_MS 5000

enum { ANSWER_MAX = 2 << 20, NAME_LEN = 32, FILE_MOST = 1 << 20 };

struct own_secrets {
	/* fixed after start */
	struct own_secrets_config config;
	char *mark; /* the path of MARK; owned */
	struct kube_config kube;
	void (*changed)(void *ctx);
	void *ctx;

	struct kube_writer writer;

	/* the thread's, and the call of the writer; before it starts the opener's */
	int64_t deadline_ns; /* monotonic, of requests */
	bool news; /* files changed */
	struct error logged; /* the last failure */
};

/* A member whose name may have dots. */
static const cJSON *member_of(const cJSON *json, const char *path, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(document_at(json, path), name);
}

/* --- requests --------------------------------------------------------------------------------- */

static int code_of(long status)
{
	if (kube_call_succeeds(status))
		return 0;
	if (status == 403)
		return -EACCES;
	if (status == 404)
		return -ENOENT;
	if (status == 409)
		return -EEXIST;
	return status == 401 || status == 429 || status >= 500 ? -EAGAIN : -EINVAL;
}

/*
 * *answer is the object, which the caller deletes. -EACCES, -ENOENT, -EEXIST (also a conflict),
 * -EAGAIN (no answer now) or -EINVAL with the reason.
 */
static int request(struct own_secrets *s, enum kube_method method, const char *path,
		   const struct buf *body, cJSON **answer, struct error *error)
{
	struct kube_call *c = &s->writer.call;
	int64_t left_ms = int_min((s->deadline_ns - clock_mono_ns()) / NS_PER_MS, TIMEOUT_MS);
	cJSON *json;
	long status;
	int rc;

	curl_easy_setopt(c->handle, CURLOPT_TIMEOUT_MS, (long)int_max(left_ms, 1));
	status = kube_call_send(c, method, path, body, error);
	if (!status)
		return -EAGAIN;
	json = cJSON_ParseWithLength(c->answer.data, c->answer.len);
	sodium_memzero(c->answer.data, c->answer.len);
	rc = code_of(status);
	if (!rc && json) {
		*answer = json;
		return 0;
	}
	error_set(error, "%s: the API server answers %ld: %.300s", path, status,
		  document_text_or(json, "message", "no object"));
	if (rc == -EACCES)
		error_prefix(error, "a right is missing, see secrets.yaml and clusterrole.yaml in "
				    "packaging/kubernetes/core");
	cJSON_Delete(json);
	return rc ? rc : -EINVAL;
}

/* Of two results: both reasons; -EAGAIN if nothing else failed. */
static int both(int rc, struct error *error, int other, const struct error *why)
{
	if (!other)
		return rc;
	if (rc)
		error_prefix(error, "%s; and", why->text);
	else
		*error = *why;
	return !rc || rc == -EAGAIN ? other : rc;
}

/* A Secret of the namespace, and its type. */
struct kind {
	const char *name, *type;
};

static const struct kind tls = {"evenkeel-tls", "kubernetes.io/tls"};
static const struct kind enrolment = {"evenkeel-enrolment", "Opaque"};

/* The path of a Secret; "": of all. The caller frees it. */
static char *path_of(const struct own_secrets *s, const char *name)
{
	return mem_printf("/api/v1/namespaces/%s/secrets%s%s", s->config.namespace,
			  *name ? "/" : "", name);
}

static int get(struct own_secrets *s, const struct kind *k, cJSON **answer, struct error *error)
{
	char *path = path_of(s, k->name);
	int rc = request(s, KUBE_GET, path, NULL, answer, error);

	free(path);
	return rc;
}

/* Creates the Secret with that data, or changes that version of it. Takes data. */
static int put(struct own_secrets *s, const struct kind *k, cJSON *data, const char *version,
	       cJSON **answer, struct error *error)
{
	char *path = path_of(s, version ? k->name : ""), *text = cJSON_PrintUnformatted(data);
	struct buf body = BUF_INIT;
	int rc;

	buf_printf(&body,
		   "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"type\":\"%s\",\"metadata\":{"
		   "\"name\":\"%s\",\"labels\":{" LABEL "}%s%s%s},\"data\":%s}",
		   k->type, k->name, version ? ",\"resourceVersion\":\"" : "",
		   version ? version : "", version ? "\"" : "", text);
	rc = request(s, version ? KUBE_MERGE : KUBE_POST, path, &body, answer, error);
	if (!rc)
		log_info("%s Secret %s/%s", version ? "changed" : "created", s->config.namespace,
			 k->name);
	sodium_memzero(body.data, body.len);
	buf_fini(&body);
	kube_bytes_wipe(text, strlen(text));
	free(path);
	cJSON_Delete(data);
	return rc;
}

/* Creates what is missing; another aggregator's counts if it was first. Takes data. */
static int create(struct own_secrets *s, const struct kind *k, cJSON *data, cJSON **answer,
		  struct error *error)
{
	int rc = put(s, k, data, NULL, answer, error);

	return rc == -EEXIST ? get(s, k, answer, error) : rc;
}

/* Adds a member of a Secret. */
static void add(cJSON *data, const char *name, const void *bytes, size_t len)
{
	size_t size = sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_ORIGINAL);
	char *text = mem_alloc(size);

	sodium_bin2base64(text, size, bytes, len, sodium_base64_VARIANT_ORIGINAL);
	cJSON_AddStringToObject(data, name, text);
	kube_bytes_wipe(text, size);
}

/* --- files ------------------------------------------------------------------------------------ */

static int write_file(struct own_secrets *s, const char *path, const void *data, size_t len,
		      struct error *error)
{
	struct secret old = {0};
	struct error ignored;
	bool same = !secret_read(&old, path, FILE_MOST, false, &ignored) && old.len == len &&
		    memcmp(old.text, data, len) == 0;

	secret_free(&old);
	if (same)
		return 0;
	s->news = true;
	return file_replace(path, 0600, data, len, error);
}

/* --- members ---------------------------------------------------------------------------------- */

/* A member's bytes and a NUL, which the caller wipes and frees; NULL: there is none, or no base64. */
static char *decode(const cJSON *member, size_t *len)
{
	const char *text = cJSON_GetStringValue(member);
	size_t size = text ? strlen(text) : 0;
	char *data = text ? mem_zalloc(1, size + 1) : NULL;

	if (!text || sodium_base642bin((unsigned char *)data, size, text, size, NULL, len, NULL,
				       sodium_base64_VARIANT_ORIGINAL) == 0)
		return data;
	free(data);
	return NULL;
}

/* The reason of a Secret that is not understood. */
static int blame(const struct own_secrets *s, const struct kind *k, struct error *error)
{
	return error_at(
		error, -EINVAL,
		"Secret %s/%s cannot be used; correct it, or delete it, and a new one is made",
		s->config.namespace, k->name);
}

/* --- the key of enrolments -------------------------------------------------------------------- */

/* Named by the time, as the last by name is the one whose public key agents get. */
static cJSON *make_key(void)
{
	cJSON *data = cJSON_CreateObject();
	uint8_t key[KEY_LEN];
	time_t now = time(NULL);
	char name[NAME_LEN];
	struct tm tm;

	randombytes_buf(key, sizeof(key));
	strftime(name, sizeof(name), "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
	add(data, name, key, sizeof(key));
	sodium_memzero(key, sizeof(key));
	return data;
}

/* Names are those of files, hidden ones excluded. */
static bool is_file_name(const char *name)
{
	return name[0] != '.' && !strchr(name, '/');
}

/* *last: the last by name. */
static int check_keys(const cJSON *data, struct key *last, struct error *error)
{
	const cJSON *member, *newest = NULL;
	int count = cJSON_GetArraySize(data);

	cJSON_ArrayForEach (member, data) {
		size_t len = 0;
		char *key = decode(member, &len);
		bool good = key && len == KEY_LEN && !sodium_is_zero((uint8_t *)key, len) &&
			    is_file_name(member->string);

		if (good && (!newest || strcmp(member->string, newest->string) > 0)) {
			newest = member;
			memcpy(last->secret, key, KEY_LEN);
		}
		kube_bytes_wipe(key, len);
		if (!good)
			return error_fail(error, -EINVAL, "%s is no key, which is %d random bytes",
					  member->string, KEY_LEN);
	}
	if (count >= 1 && count <= KEYRING_MAX)
		return 0;
	return error_fail(error, -EINVAL, "it has %d keys; 1 to %d are possible", count,
			  KEYRING_MAX);
}

/* Makes the folder, or takes an empty one. */
static int open_folder(const struct own_secrets *s, struct error *error)
{
	const char *folder = s->config.enrolment;
	int rc;

	if (access(s->mark, F_OK) == 0)
		return 0;
	rmdir(folder);
	rc = mkdir(folder, 0700) ? -errno : file_replace(s->mark, 0600, "", 0, error);
	if (rc)
		error_set(error, "%s: %s: give --enrolment-key a new or an empty folder", folder,
			  strerror(-rc));
	return rc;
}

/* Of checked keys. */
static int write_keys(struct own_secrets *s, const cJSON *data, struct error *error)
{
	const cJSON *member;
	int rc = open_folder(s, error);

	cJSON_ArrayForEach (member, data) {
		char *path = mem_printf("%s/%s", s->config.enrolment, member->string);
		size_t len = 0;
		char *key = decode(member, &len);

		if (!rc)
			rc = write_file(s, path, key, len, error);
		kube_bytes_wipe(key, len);
		free(path);
	}
	if (!rc) {
		DIR *folder = opendir(s->config.enrolment);
		struct dirent *entry;

		/* Removes keys that the Secret has no more. */
		while (folder && (entry = readdir(folder)))
			if (is_file_name(entry->d_name) && !member_of(data, "", entry->d_name)) {
				s->news = true;
				unlinkat(dirfd(folder), entry->d_name, 0);
			}
		if (folder)
			closedir(folder);
	}
	return rc;
}

/* The public key, for agents: applied, which creates it, and changes nothing where it is the same. */
static int publish(struct own_secrets *s, const struct key *key, struct error *error)
{
	uint8_t bytes[ENROLMENT_PUBLIC_LEN];
	char text[ENROLMENT_PUBLIC_TEXT_LEN + 1];
	char *path =
		mem_printf("/api/v1/namespaces/%s/configmaps/%s?fieldManager=evenkeel&force=true",
			   s->config.namespace, enrolment.name);
	struct buf body = BUF_INIT;
	cJSON *answer = NULL;
	int rc;

	enrolment_public_key(key, bytes);
	enrolment_public_write(bytes, text);
	buf_printf(&body,
		   "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\","
		   "\"labels\":{" LABEL "}},\"data\":{\"aggregator.pub\":\"%s\"}}",
		   enrolment.name, text);
	rc = request(s, KUBE_APPLY, path, &body, &answer, error);
	cJSON_Delete(answer);
	buf_fini(&body);
	free(path);
	return rc;
}

static int sync_enrolment(struct own_secrets *s, struct error *error)
{
	struct key last = {0};
	cJSON *secret = NULL;
	int rc = get(s, &enrolment, &secret, error);

	if (rc == -ENOENT)
		rc = create(s, &enrolment, make_key(), &secret, error);
	if (!rc && check_keys(document_at(secret, "data"), &last, error))
		rc = blame(s, &enrolment, error);
	if (!rc)
		rc = write_keys(s, document_at(secret, "data"), error);
	if (!rc)
		rc = publish(s, &last, error);
	sodium_memzero(&last, sizeof(last));
	cJSON_Delete(secret);
	return rc;
}

/* --- the certificate -------------------------------------------------------------------------- */

/* A new certificate as the data of the Secret; NULL with the reason. */
static cJSON *make_certificate(struct own_secrets *s, struct authority_set *set,
			       struct error *error)
{
	cJSON *data = NULL;

	if (authority_issue(set, SERVICE, s->config.namespace, clock_wall_ns() / NS_PER_SEC, error))
		return NULL;
	data = cJSON_CreateObject();
	add(data, "tls.crt", set->certificate, strlen(set->certificate));
	add(data, "tls.key", set->key, strlen(set->key));
	add(data, "ca.crt", set->ca_certificate, strlen(set->ca_certificate));
	add(data, "ca.key", set->ca_key, strlen(set->ca_key));
	return data;
}

/* The Secret, made if it is missing, and its checked members. */
static int find_tls(struct own_secrets *s, cJSON **secret, struct authority_set *set,
		    struct error *error)
{
	cJSON *data;
	int rc = get(s, &tls, secret, error);
	size_t len;

	if (rc == -ENOENT) {
		data = make_certificate(s, set, error);
		rc = data ? create(s, &tls, data, secret, error) : -EINVAL;
	}
	if (rc)
		return rc;
	authority_fini(set);
	set->certificate = decode(member_of(*secret, "data", "tls.crt"), &len);
	set->key = decode(member_of(*secret, "data", "tls.key"), &len);
	set->ca_certificate = decode(member_of(*secret, "data", "ca.crt"), &len);
	set->ca_key = decode(member_of(*secret, "data", "ca.key"), &len);
	return authority_check(set, error) ? blame(s, &tls, error) : 0;
}

static int renew(struct own_secrets *s, const cJSON *secret, struct authority_set *set,
		 struct error *error)
{
	bool due = authority_is_due(set, clock_wall_ns() / NS_PER_SEC);
	/* Each time: a wrong ca.key shows long before the last month. */
	cJSON *renewed = NULL, *data = set->ca_key ? make_certificate(s, set, error) : NULL;
	int rc = set->ca_key && !data ? -EINVAL : 0;

	if (rc)
		error_prefix(error, "Secret %s/%s: correct or remove ca.key, which renews nothing",
			     s->config.namespace, tls.name);
	else if (due)
		rc = put(s, &tls, data, document_text_or(secret, "metadata.resourceVersion", ""),
			 &renewed, error);
	else
		cJSON_Delete(data);
	cJSON_Delete(renewed);
	/* A conflict: another aggregator has renewed it. */
	return rc == -EEXIST ? 0 : rc;
}

/* --- API services ----------------------------------------------------------------------------- */

/* bundle: in base64, as the Secret has it. */
static int set_bundle(struct own_secrets *s, const char *path, const char *bundle,
		      struct error *error)
{
	cJSON *service = NULL, *changed = NULL;
	struct buf body = BUF_INIT;
	int rc = request(s, KUBE_GET, path, NULL, &service, error);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	if (document_is(member_of(service, "metadata.labels", "app.kubernetes.io/part-of"), "",
			"evenkeel") &&
	    !document_is(service, "spec.caBundle", bundle)) {
		buf_printf(&body,
			   "{\"spec\":{\"caBundle\":\"%s\",\"insecureSkipTLSVerify\":false}}",
			   bundle);
		rc = request(s, KUBE_MERGE, path, &body, &changed, error);
		if (!rc)
			log_info("set the caBundle of %s", path);
	}
	cJSON_Delete(service);
	cJSON_Delete(changed);
	buf_fini(&body);
	return rc;
}

static int sync_tls(struct own_secrets *s, struct error *error)
{
	static const char *const api_services[] = {
		"/apis/apiregistration.k8s.io/v1/apiservices/v1.evenkeel.io",
		"/apis/apiregistration.k8s.io/v1/apiservices/v1.metrics.k8s.io",
		"/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io",
	};
	struct authority_set set = {0};
	struct error why = {""};
	cJSON *secret = NULL;
	const char *bundle;
	int rc = find_tls(s, &secret, &set, error), renewal = 0;

	if (!rc && s->config.authority)
		rc = write_file(s, s->config.authority, set.ca_certificate,
				strlen(set.ca_certificate), error);
	if (!rc)
		rc = write_file(s, s->config.key, set.key, strlen(set.key), error);
	if (!rc)
		rc = write_file(s, s->config.certificate, set.certificate, strlen(set.certificate),
				error);
	if (!rc)
		renewal = renew(s, secret, &set, &why);
	bundle = cJSON_GetStringValue(member_of(secret, "data", "ca.crt"));
	for (size_t i = 0; i < sizeof(api_services) / sizeof(api_services[0]) && !rc; i++)
		rc = set_bundle(s, api_services[i], bundle, error);
	authority_fini(&set);
	cJSON_Delete(secret);
	return both(rc, error, renewal, &why);
}

/* --- life ------------------------------------------------------------------------------------- */

static int sync_all(struct own_secrets *s, struct error *error)
{
	struct error why = {""};
	int keys = s->config.enrolment ? sync_enrolment(s, &why) : 0;

	return both(s->config.certificate ? sync_tls(s, error) : 0, error, keys, &why);
}

/* Whether an earlier start wrote them all. */
static bool has_files(const struct own_secrets *s)
{
	return (!s->config.enrolment || access(s->mark, R_OK) == 0) &&
	       (!s->config.certificate || access(s->config.certificate, R_OK) == 0);
}

/* The first process of a container has no default action of SIGTERM. Later the loop handles it. */
static void on_signal(int number)
{
	_exit(128 + number);
}

static int sync_first(struct own_secrets *s, struct error *error)
{
	int rc;

	signal(SIGTERM, on_signal);
	s->deadline_ns = clock_mono_ns() + FIRST_NS;
	for (bool warned = false; (rc = sync_all(s, error)) == -EAGAIN; warned = true) {
		if (has_files(s) || clock_mono_ns() > s->deadline_ns)
			break;
		if (!warned)
			log_warn("waiting for the API server: %s", error->text);
		sleep(1);
	}
	s->deadline_ns = INT64_MAX;
	return rc;
}

int own_secrets_open(struct own_secrets **out, const struct kube_config *kube,
		     const struct own_secrets_config *config, struct error *error)
{
	struct own_secrets *s = mem_zalloc(1, sizeof(*s));
	int rc;

	s->config = *config;
	s->mark = mem_printf("%s/" MARK, config->enrolment ? config->enrolment : "");
	kube_config_copy(&s->kube, kube);
	s->writer.call = (struct kube_call){.answer_max = ANSWER_MAX,
					    .stopping = &s->writer.thread.stopping};
	rc = kube_call_open(&s->writer.call, kube, TIMEOUT_MS, error);
	if (!rc) {
		rc = sync_first(s, error);
		kube_call_close(&s->writer.call);
	}
	if (rc && has_files(s)) {
		log_error(KEEPING "%s", error->text);
		rc = 0;
	}
	if (rc) {
		error_prefix(error, "--own-secrets");
		own_secrets_close(s);
	} else {
		*out = s;
	}
	return rc;
}

static void *run(void *arg)
{
	struct own_secrets *s = arg;

	s->writer.call.answer_max = ANSWER_MAX;
	while (kube_writer_wait(&s->writer, EVERY_NS)) {
		struct error why = {""};
		int rc;

		s->news = false;
		rc = sync_all(s, &why);
		if (rc && strcmp(why.text, s->logged.text) != 0 && !kube_writer_stops(&s->writer))
			log_error(KEEPING "%s", why.text);
		s->logged = why;
		if (s->news)
			s->changed(s->ctx);
	}
	return NULL;
}

int own_secrets_start(struct own_secrets *s, void (*changed)(void *ctx), void *ctx,
		      struct error *error)
{
	int rc;

	s->changed = changed;
	s->ctx = ctx;
	rc = kube_writer_start(&s->writer, &s->kube, "the own secrets are not read", run, s, error);
	if (rc)
		kube_writer_stop(&s->writer);
	return rc;
}

void own_secrets_close(struct own_secrets *s)
{
	if (!s)
		return;
	if (s->writer.thread.started)
		kube_writer_stop(&s->writer);
	kube_config_fini(&s->kube);
	free(s->mark);
	free(s);
}
