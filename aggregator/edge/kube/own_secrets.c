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
 * Secrets are created by POST: of several aggregators that start at once the first one's Secret
 * counts, and the others read it. One that exists is kept, and never overwritten if it is not
 * understood. The only change of one is a renewed certificate (authority.h), with the resource version that
 * was read, and only where the Secret has ca.key: a certificate of another authority is renewed by
 * whoever made it.
 *
 * The files are what the rest of the program reads, as without this: the HTTP server looks at them
 * every ten seconds, and the enroller is told.
 *
 * What fails leaves the files as they are and is tried again. A reason is logged once.
 */
#include "aggregator/edge/kube/own_secrets.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "aggregator/edge/kube/authority.h"
#include "aggregator/edge/kube/kube_writer.h"
#include "shared/clock.h"
#include "shared/enrolment.h"
#include "shared/file.h"
#include "shared/keyring.h"
#include "shared/log.h"
#include "shared/mem.h"

#define SERVICE	   "evenkeel-aggregator"
#define LABEL	   "\"app.kubernetes.io/part-of\":\"evenkeel\""
#define EVERY_NS   (60 * NS_PER_SEC)
#define PATIENCE_S 30
#define TIMEOUT_MS 5000L

enum { ANSWER_MAX = 2 << 20, NAME_LEN = 32, FILE_MOST = 1 << 20 };

struct own_secrets {
	/* fixed after start */
	struct own_secrets_config config;
	struct kube_config kube;
	void (*changed)(void *ctx);
	void *ctx;
	bool started;

	struct kube_writer writer;

	/* the thread's; before it starts the opener's */
	struct kube_call *call;
	bool news; /* files changed */
	struct error logged; /* the last failure */
};

static const cJSON *at(const cJSON *json, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(json, name);
}

static void wipe(char *data, size_t len)
{
	if (data)
		sodium_memzero(data, len);
	free(data);
}

/* --- requests --------------------------------------------------------------------------------- */

static int code_of(long status)
{
	switch (status) {
	case 200:
	case 201:
		return 0;
	case 403:
		return -EACCES;
	case 404:
		return -ENOENT;
	case 409:
		return -EEXIST;
	default:
		return status == 401 || status == 429 || status >= 500 ? -EAGAIN : -EINVAL;
	}
}

/*
 * *answer is the object, which the caller deletes. -EACCES, -ENOENT, -EEXIST (also a conflict),
 * -EAGAIN (no answer now) or -EINVAL with the reason.
 */
static int request(struct own_secrets *s, enum kube_method method, const char *path,
		   const struct buf *body, cJSON **answer, struct error *error)
{
	struct kube_call *c = s->call;
	long status = kube_call_send(c, method, path, body, error);
	const char *message;
	cJSON *json;
	int rc;

	if (status == 401) {
		kube_session_unauthorized(c->session);
		status = kube_call_send(c, method, path, body, error);
	}
	if (!status)
		return -EAGAIN;
	json = cJSON_ParseWithLength(c->answer.data, c->answer.len);
	sodium_memzero(c->answer.data, c->answer.len);
	rc = code_of(status);
	if (!rc && json) {
		*answer = json;
		return 0;
	}
	message = cJSON_GetStringValue(at(json, "message"));
	error_set(error, "%s: the API server answers %ld: %.300s", path, status,
		  message ? message : "no object");
	cJSON_Delete(json);
	return rc ? rc : -EINVAL;
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
	wipe(text, strlen(text));
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
	wipe(text, size);
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
	error_prefix(error,
		     "Secret %s/%s cannot be used; correct it, or delete it, and a new one is made",
		     s->config.namespace, k->name);
	return -EINVAL;
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

	cJSON_ArrayForEach (member, data) {
		size_t len = 0;
		char *key = decode(member, &len);
		bool good = key && len == KEY_LEN && !sodium_is_zero((uint8_t *)key, len) &&
			    is_file_name(member->string);

		if (good && (!newest || strcmp(member->string, newest->string) > 0)) {
			newest = member;
			memcpy(last->secret, key, KEY_LEN);
		}
		wipe(key, len);
		if (!good) {
			error_set(error, "%s is no key, which is %d random bytes", member->string,
				  KEY_LEN);
			return -EINVAL;
		}
	}
	if (newest)
		return 0;
	error_set(error, "it has no key");
	return -EINVAL;
}

/* Removes keys that the Secret has no more. */
static void remove_others(struct own_secrets *s, const cJSON *data)
{
	DIR *folder = opendir(s->config.enrolment);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (is_file_name(entry->d_name) && !at(data, entry->d_name)) {
			s->news = true;
			unlinkat(dirfd(folder), entry->d_name, 0);
		}
	if (folder)
		closedir(folder);
}

/* Of checked keys. */
static int write_keys(struct own_secrets *s, const cJSON *data, struct error *error)
{
	const cJSON *member;
	int rc = 0;

	if (mkdir(s->config.enrolment, 0700) && errno != EEXIST) {
		error_set(error, "%s: %s", s->config.enrolment, strerror(errno));
		return -EIO;
	}
	cJSON_ArrayForEach (member, data) {
		char *path = mem_printf("%s/%s", s->config.enrolment, member->string);
		size_t len = 0;
		char *key = decode(member, &len);

		if (!rc)
			rc = write_file(s, path, key, len, error);
		wipe(key, len);
		free(path);
	}
	if (!rc)
		remove_others(s, data);
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
	if (!rc && check_keys(at(secret, "data"), &last, error))
		rc = blame(s, &enrolment, error);
	if (!rc)
		rc = write_keys(s, at(secret, "data"), error);
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

static void read_set(const cJSON *secret, struct authority_set *set)
{
	const cJSON *data = at(secret, "data");
	size_t len;

	authority_fini(set);
	set->certificate = decode(at(data, "tls.crt"), &len);
	set->key = decode(at(data, "tls.key"), &len);
	set->ca_certificate = decode(at(data, "ca.crt"), &len);
	set->ca_key = decode(at(data, "ca.key"), &len);
}

/* The Secret, made if it is missing, renewed if that is due. */
static int find_tls(struct own_secrets *s, cJSON **secret, struct authority_set *set,
		    struct error *error)
{
	cJSON *data, *renewed = NULL;
	const char *version;
	int rc = get(s, &tls, secret, error);

	if (rc == -ENOENT) {
		data = make_certificate(s, set, error);
		rc = data ? create(s, &tls, data, secret, error) : -EINVAL;
	}
	if (rc)
		return rc;
	read_set(*secret, set);
	if (authority_check(set, error))
		return blame(s, &tls, error);
	if (!authority_is_due(set, clock_wall_ns() / NS_PER_SEC))
		return 0;
	data = make_certificate(s, set, error);
	if (!data)
		return blame(s, &tls, error);
	version = cJSON_GetStringValue(at(at(*secret, "metadata"), "resourceVersion"));
	rc = put(s, &tls, data, version ? version : "", &renewed, error);
	if (!rc) {
		cJSON_Delete(*secret);
		*secret = renewed;
	}
	return rc;
}

/* --- API services ----------------------------------------------------------------------------- */

/* bundle: in base64, as the Secret has it. */
static int set_bundle(struct own_secrets *s, const char *path, const char *bundle,
		      struct error *error)
{
	cJSON *service = NULL, *changed = NULL;
	const char *label, *is;
	struct buf body = BUF_INIT;
	int rc = request(s, KUBE_GET, path, NULL, &service, error);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	label = cJSON_GetStringValue(
		at(at(at(service, "metadata"), "labels"), "app.kubernetes.io/part-of"));
	is = cJSON_GetStringValue(at(at(service, "spec"), "caBundle"));
	if (label && strcmp(label, "evenkeel") == 0 && (!is || strcmp(is, bundle) != 0)) {
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
		"/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io",
	};
	struct authority_set set = {0};
	cJSON *secret = NULL;
	const char *bundle;
	int rc = find_tls(s, &secret, &set, error);

	if (!rc && s->config.authority)
		rc = write_file(s, s->config.authority, set.ca_certificate,
				strlen(set.ca_certificate), error);
	if (!rc)
		rc = write_file(s, s->config.key, set.key, strlen(set.key), error);
	if (!rc)
		rc = write_file(s, s->config.certificate, set.certificate, strlen(set.certificate),
				error);
	bundle = cJSON_GetStringValue(at(at(secret, "data"), "ca.crt"));
	for (size_t i = 0; i < sizeof(api_services) / sizeof(api_services[0]) && !rc; i++)
		rc = set_bundle(s, api_services[i], bundle, error);
	authority_fini(&set);
	cJSON_Delete(secret);
	return rc;
}

/* --- life ------------------------------------------------------------------------------------- */

static int sync_all(struct own_secrets *s, struct error *error)
{
	int rc = s->config.enrolment ? sync_enrolment(s, error) : 0;

	if (!rc && s->config.certificate)
		rc = sync_tls(s, error);
	if (rc == -EACCES)
		error_prefix(error, "a right is missing, see secrets.yaml and clusterrole.yaml in "
				    "packaging/kubernetes/core");
	return rc;
}

/* Whether an earlier start wrote them all. */
static bool has_files(const struct own_secrets_config *c)
{
	return (!c->enrolment || access(c->enrolment, R_OK) == 0) &&
	       (!c->certificate || access(c->certificate, R_OK) == 0);
}

static int sync_first(struct own_secrets *s, struct error *error)
{
	const struct timespec pause = {.tv_sec = 1};
	int rc = sync_all(s, error);

	for (int i = 0; rc == -EAGAIN && i < PATIENCE_S && !has_files(&s->config); i++) {
		if (i == 0)
			log_warn("waiting for the API server: %s", error->text);
		nanosleep(&pause, NULL);
		rc = sync_all(s, error);
	}
	return rc;
}

/* An outage ends by itself. */
static void log_failure(int rc, const struct error *why)
{
	if (rc == -EAGAIN)
		log_warn("keeping the files of the own secrets: %s", why->text);
	else
		log_error("keeping the files of the own secrets: %s", why->text);
}

int own_secrets_open(struct own_secrets **out, const struct kube_config *kube,
		     const struct own_secrets_config *config, struct error *error)
{
	static const atomic_bool never;
	struct kube_call call = {.answer_max = ANSWER_MAX, .stopping = &never};
	struct own_secrets *s = mem_zalloc(1, sizeof(*s));
	int rc;

	s->config = *config;
	kube_config_copy(&s->kube, kube);
	s->call = &call;
	rc = kube_call_open(&call, kube, TIMEOUT_MS, error);
	if (!rc) {
		rc = sync_first(s, error);
		kube_call_close(&call);
	}
	if (rc && has_files(config)) {
		log_failure(rc, error);
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

	s->call = &s->writer.call;
	s->call->answer_max = ANSWER_MAX;
	while (kube_writer_wait(&s->writer, EVERY_NS)) {
		struct error why = {""};
		int rc;

		s->news = false;
		rc = sync_all(s, &why);
		if (rc && strcmp(why.text, s->logged.text) != 0 && !kube_writer_stops(&s->writer))
			log_failure(rc, &why);
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
	s->started = rc == 0;
	return rc;
}

void own_secrets_close(struct own_secrets *s)
{
	if (!s)
		return;
	if (s->started)
		kube_writer_stop(&s->writer);
	kube_config_fini(&s->kube);
	free(s);
}
