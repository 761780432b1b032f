/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two requests on the caller's thread: authentication.k8s.io/v1 TokenReview, then
 * authorization.k8s.io/v1 SubjectAccessReview. An answer that is not understood admits nobody.
 * Each of TOKEN_REVIEWS_AT_ONCE callers has a session with a handle that keeps its connection.
 *
 * While the API server does not answer, each review takes its whole timeout, and later ones wait.
 * So after a failure reviews fail at once with the same reason for a second. A token that the API
 * server rejects as malformed is unknown: strangers cannot cause such a pause.
 *
 * The token goes into the body of a request to the API server and nowhere else; bodies are wiped.
 *
 * A demanded audience must be among those of the answer: an API server without audiences names
 * none, and the token may be meant for it alone then.
 */
#include "aggregator/edge/kube/token_review.h"

#include <assert.h>
#include <curl/curl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/session.h"
#include "aggregator/model/object_json.h"
#include "shared/clock.h"
#include "shared/document.h"
#include "shared/jsonw.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/utf8.h"

/* --- bodies ----------------------------------------------------------------------------------- */

static void begin(struct jsonw *w, struct buf *out, const char *version, const char *kind)
{
	jsonw_begin(w, out);
	jsonw_key_string(w, "apiVersion", version);
	jsonw_key_string(w, "kind", kind);
	jsonw_key_object(w, "spec");
}

static void end(struct jsonw *w)
{
	jsonw_object_close(w);
	jsonw_object_close(w);
}

/* --- TokenReview ------------------------------------------------------------------------------ */

static bool has_audience(const cJSON *status, const char *audience)
{
	const cJSON *item;

	if (!audience)
		return true;
	cJSON_ArrayForEach (item, object_json_find(status, "audiences"))
		if (cJSON_IsString(item) && strcmp(item->valuestring, audience) == 0)
			return true;
	return false;
}

static bool is_text_list(const cJSON *list)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, list)
		if (!cJSON_IsString(item))
			return false;
	return !list || cJSON_IsArray(list) || cJSON_IsNull(list);
}

/* Members passed on to a SubjectAccessReview have its types. */
static bool is_user(const cJSON *user)
{
	const char *name = document_text(user, "username");
	const cJSON *uid = object_json_find(user, "uid"), *extra = object_json_find(user, "extra"),
		    *item;

	if (!name || !*name || !is_text_list(object_json_find(user, "groups")))
		return false;
	if ((uid && !cJSON_IsString(uid)) || (extra && !cJSON_IsObject(extra)))
		return false;
	cJSON_ArrayForEach (item, extra)
		if (!is_text_list(item))
			return false;
	return true;
}

const char *token_review_extra(const cJSON *user, const char *name)
{
	return cJSON_GetStringValue(
		cJSON_GetArrayItem(object_json_find(document_at(user, "extra"), name), 0));
}

static cJSON *refuse(struct access_answer *a, enum access_verdict verdict, const char *why)
{
	a->verdict = verdict;
	error_set(&a->error, "%s", why);
	return NULL;
}

/* Names come from outside, for logs and answers. */
static void set_user(struct access_answer *a, const char *name)
{
	snprintf(a->user, sizeof(a->user), "%s", name);
	utf8_replace_controls(a->user, '?');
}

cJSON *token_review_read(const char *text, size_t len, const char *audience,
			 struct access_answer *a)
{
	cJSON *json = cJSON_ParseWithLength(text, len), *user;
	cJSON *status = cJSON_GetObjectItemCaseSensitive(json, "status");

	if (!cJSON_IsObject(status)) {
		cJSON_Delete(json);
		return refuse(a, ACCESS_UNANSWERED,
			      "the Kubernetes API answers a TokenReview without a status");
	}
	if (!document_is_true(status, "authenticated") || !has_audience(status, audience)) {
		cJSON_Delete(json);
		return refuse(a, ACCESS_UNKNOWN, "the Kubernetes API does not know the token");
	}
	user = cJSON_DetachItemFromObjectCaseSensitive(status, "user");
	cJSON_Delete(json);
	if (!is_user(user)) {
		cJSON_Delete(user);
		return refuse(a, ACCESS_UNANSWERED,
			      "the Kubernetes API names a user that cannot be one");
	}
	set_user(a, document_text(user, "username"));
	return user;
}

/* --- SubjectAccessReview ---------------------------------------------------------------------- */

static void write_texts(struct jsonw *w, const char *key, const cJSON *list)
{
	const cJSON *item;

	jsonw_key_array(w, key);
	cJSON_ArrayForEach (item, list)
		jsonw_string(w, item->valuestring);
	jsonw_array_close(w);
}

static void write_attributes(struct jsonw *w, const struct access_request *q)
{
	jsonw_key_object(w, q->group ? "resourceAttributes" : "nonResourceAttributes");
	jsonw_key_string(w, "verb", q->verb);
	if (q->group) {
		jsonw_key_string(w, "group", q->group);
		jsonw_key_string(w, "version", q->version);
		jsonw_key_string(w, "resource", q->resource);
		jsonw_key_text(w, "namespace", q->namespace);
		jsonw_key_text(w, "name", q->name);
		jsonw_key_text(w, "subresource", q->subresource);
	} else {
		jsonw_key_string(w, "path", q->path);
	}
	jsonw_object_close(w);
}

void access_review_write(struct buf *out, const cJSON *user, const struct access_request *q)
{
	const char *uid = document_text(user, "uid");
	const cJSON *item;
	struct jsonw w;

	begin(&w, out, "authorization.k8s.io/v1", "SubjectAccessReview");
	jsonw_key_string(&w, "user", document_text(user, "username"));
	if (uid)
		jsonw_key_string(&w, "uid", uid);
	write_texts(&w, "groups", object_json_find(user, "groups"));
	jsonw_key_object(&w, "extra");
	cJSON_ArrayForEach (item, object_json_find(user, "extra"))
		write_texts(&w, item->string, item);
	jsonw_object_close(&w);
	write_attributes(&w, q);
	end(&w);
}

void access_review_read(const char *text, size_t len, struct access_answer *a)
{
	cJSON *json = cJSON_ParseWithLength(text, len);
	const cJSON *status = object_json_find(json, "status"),
		    *allowed = object_json_find(status, "allowed");

	if (!cJSON_IsBool(allowed))
		refuse(a, ACCESS_UNANSWERED,
		       "the Kubernetes API answers a SubjectAccessReview without a verdict");
	else if (!cJSON_IsTrue(allowed) || document_is_true(status, "denied"))
		refuse(a, ACCESS_DENIED, "no role allows it");
	else
		a->verdict = ACCESS_ALLOWED;
	cJSON_Delete(json);
}

#define TIMEOUT_MS 5000L
#define PAUSE_NS   NS_PER_SEC

#define TOKEN_REVIEWS  "/apis/authentication.k8s.io/v1/tokenreviews"
#define ACCESS_REVIEWS "/apis/authorization.k8s.io/v1/subjectaccessreviews"

enum { ANSWER_MAX = 256 << 10 };

struct line {
	struct token_review_client *client;
	struct kube_call call;
	bool taken; /* under the lock of the client */
};

struct token_review_client {
	char *audience; /* fixed after start; NULL: the API server */
	struct line lines[TOKEN_REVIEWS_AT_ONCE]; /* each its taker's */
	atomic_bool stopping;

	pthread_mutex_t lock;
	/* under lock */
	int64_t pause_until_ns; /* 0: the last review was answered */
	struct error failure; /* of the last unanswered review */
};

/* --- requests --------------------------------------------------------------------------------- */

/* The HTTP status; 0: no answer. */
static long post(struct line *l, const char *path, struct buf *body, struct error *why)
{
	long status = kube_call_send(&l->call, KUBE_POST, path, body, why);

	sodium_memzero(body->data, body->len);
	buf_fini(body);
	return status;
}

/* NULL: *a has the verdict. */
static cJSON *identify(struct line *l, const char *token, struct access_answer *a)
{
	const char *audience = l->client->audience;
	struct buf body = BUF_INIT;
	long status;
	struct jsonw w;

	a->verdict = ACCESS_UNANSWERED;
	begin(&w, &body, "authentication.k8s.io/v1", "TokenReview");
	jsonw_key_string(&w, "token", token);
	if (audience) {
		jsonw_key_array(&w, "audiences");
		jsonw_string(&w, audience);
		jsonw_array_close(&w);
	}
	end(&w);
	status = post(l, TOKEN_REVIEWS, &body, &a->error);
	/* The request is as bad as the token in it: this is no outage. */
	if (status == 400 || status == 413 || status == 422)
		a->verdict = ACCESS_UNKNOWN;
	if (!kube_call_succeeds(status))
		return NULL;
	return token_review_read(l->call.answer.data, l->call.answer.len, audience, a);
}

/* The user of a question that has it. */
static cJSON *take_user(const char *json, struct access_answer *a)
{
	cJSON *user = cJSON_Parse(json);

	assert(is_user(user)); /* front_proxy_user() wrote it */
	set_user(a, document_text(user, "username"));
	return user;
}

static void ask(struct line *l, const struct access_question *q, struct access_answer *a)
{
	struct buf body = BUF_INIT;
	cJSON *user = q->token ? identify(l, q->token, a) : take_user(q->user, a);

	if (!user)
		return;
	a->verdict = ACCESS_UNANSWERED;
	access_review_write(&body, user, q->request);
	cJSON_Delete(user);
	if (kube_call_succeeds(post(l, ACCESS_REVIEWS, &body, &a->error)))
		access_review_read(l->call.answer.data, l->call.answer.len, a);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* NULL: not now; *a has the reason. */
static struct line *take_line(struct token_review_client *r, struct access_answer *a)
{
	struct line *l = NULL;

	*a = (struct access_answer){.verdict = ACCESS_UNANSWERED};
	pthread_mutex_lock(&r->lock);
	if (r->pause_until_ns && clock_mono_ns() < r->pause_until_ns) {
		a->error = r->failure;
	} else {
		for (size_t i = 0; i < TOKEN_REVIEWS_AT_ONCE && !l; i++)
			l = r->lines[i].taken ? NULL : &r->lines[i];
		assert(l); /* more callers than TOKEN_REVIEWS_AT_ONCE */
		l->taken = true;
	}
	pthread_mutex_unlock(&r->lock);
	return l;
}

static void give_line(struct token_review_client *r, struct line *l, const struct access_answer *a)
{
	bool failed = a->verdict == ACCESS_UNANSWERED, news;

	pthread_mutex_lock(&r->lock);
	l->taken = false;
	news = failed && !r->pause_until_ns;
	r->pause_until_ns = failed ? clock_mono_ns() + PAUSE_NS : 0;
	if (failed)
		r->failure = a->error;
	pthread_mutex_unlock(&r->lock);
	if (news && !atomic_load(&r->stopping))
		log_warn("requests cannot be reviewed: %s", a->error.text);
}

void token_review_client_ask(void *client, const struct access_question *q, struct access_answer *a)
{
	struct token_review_client *r = client;
	struct line *l = take_line(r, a);

	if (!l)
		return;
	ask(l, q, a);
	give_line(r, l, a);
}

cJSON *token_review_client_identify(struct token_review_client *r, const char *token,
				    struct access_answer *a)
{
	cJSON *user = NULL;
	struct line *l = take_line(r, a);

	if (!l)
		return NULL;
	user = identify(l, token, a);
	if (user)
		a->verdict = ACCESS_ALLOWED;
	give_line(r, l, a);
	return user;
}

/* --- life ------------------------------------------------------------------------------------- */

int token_review_client_new(struct token_review_client **out, const struct kube_config *config,
			    const char *audience, struct error *error)
{
	struct token_review_client *r = mem_zalloc(1, sizeof(*r));
	int rc = 0;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	pthread_mutex_init(&r->lock, NULL);
	r->audience = audience ? mem_strdup(audience) : NULL;
	for (size_t i = 0; i < TOKEN_REVIEWS_AT_ONCE && !rc; i++) {
		r->lines[i] = (struct line){
			.client = r,
			.call = {.answer_max = ANSWER_MAX,
				 .stopping = &r->stopping,
				 .hint = "bind the ClusterRole system:auth-delegator to "
					 "the aggregator's ServiceAccount"}};
		rc = kube_call_open(&r->lines[i].call, config, TIMEOUT_MS, error);
	}
	if (rc)
		token_review_client_free(r);
	else
		*out = r;
	return rc;
}

void token_review_client_stop(struct token_review_client *r)
{
	if (r)
		atomic_store(&r->stopping, true);
}

void token_review_client_free(struct token_review_client *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < TOKEN_REVIEWS_AT_ONCE; i++)
		kube_call_close(&r->lines[i].call);
	pthread_mutex_destroy(&r->lock);
	free(r->audience);
	free(r);
}
