/* SPDX-License-Identifier: Apache-2.0 */
/*
 * authentication.k8s.io/v1 TokenReview and authorization.k8s.io/v1 SubjectAccessReview, as far as
 * they decide. Whatever cannot be understood lets nobody in.
 *
 * Where an audience is demanded, it must be among those that the answer names: an API server that
 * knows no audiences names none, and a token may be meant for it alone then.
 */
#include <stdio.h>
#include <string.h>

#include "aggregator/edge/kube/token_review.h"
#include "shared/jsonw.h"

static const cJSON *at(const cJSON *json, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(json, name);
}

static void begin(struct jsonw *w, struct buf *out, const char *version, const char *kind)
{
	jsonw_init(w, out);
	jsonw_object_open(w);
	jsonw_key_string(w, "apiVersion", version);
	jsonw_key_string(w, "kind", kind);
	jsonw_key(w, "spec");
	jsonw_object_open(w);
}

static void end(struct jsonw *w)
{
	jsonw_object_close(w);
	jsonw_object_close(w);
}

void token_review_write(struct buf *out, const char *token, const char *audience)
{
	struct jsonw w;

	begin(&w, out, "authentication.k8s.io/v1", "TokenReview");
	jsonw_key_string(&w, "token", token);
	if (audience) {
		jsonw_key(&w, "audiences");
		jsonw_array_open(&w);
		jsonw_string(&w, audience);
		jsonw_array_close(&w);
	}
	end(&w);
}

/* --- TokenReview ------------------------------------------------------------------------------ */

static bool has_audience(const cJSON *status, const char *audience)
{
	const cJSON *item;

	if (!audience)
		return true;
	cJSON_ArrayForEach(item, at(status, "audiences")) if (cJSON_IsString(item) &&
							      strcmp(item->valuestring, audience) ==
								      0) return true;
	return false;
}

static bool is_text_list(const cJSON *list)
{
	const cJSON *item;

	if (!list || cJSON_IsNull(list))
		return true;
	if (!cJSON_IsArray(list))
		return false;
	cJSON_ArrayForEach(item, list) if (!cJSON_IsString(item)) return false;
	return true;
}

/* What is sent on in a SubjectAccessReview is of the types that it has there. */
static bool is_user(const cJSON *user)
{
	const char *name = cJSON_GetStringValue(at(user, "username"));
	const cJSON *uid = at(user, "uid"), *extra = at(user, "extra"), *item;

	if (!name || !*name || !is_text_list(at(user, "groups")))
		return false;
	if (uid && !cJSON_IsString(uid) && !cJSON_IsNull(uid))
		return false;
	if (extra && !cJSON_IsObject(extra) && !cJSON_IsNull(extra))
		return false;
	cJSON_ArrayForEach(item, extra) if (!is_text_list(item)) return false;
	return true;
}

static cJSON *refuse(struct access_answer *a, enum access_verdict verdict, const char *why)
{
	a->verdict = verdict;
	reason_set(&a->why, "%s", why);
	return NULL;
}

/* Names come from outside, and go into logs and answers. */
static void set_user(struct access_answer *a, const char *name)
{
	size_t len = 0;

	for (; len < sizeof(a->user) - 1 && name[len]; len++)
		a->user[len] =
			(unsigned char)name[len] < ' ' || name[len] == 0x7f ? '?' : name[len];
	a->user[len] = '\0';
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
	if (!cJSON_IsTrue(at(status, "authenticated")) || !has_audience(status, audience)) {
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
	set_user(a, cJSON_GetStringValue(at(user, "username")));
	return user;
}

/* --- SubjectAccessReview ---------------------------------------------------------------------- */

static void write_texts(struct jsonw *w, const char *key, const cJSON *list)
{
	const cJSON *item;

	jsonw_key(w, key);
	jsonw_array_open(w);
	cJSON_ArrayForEach(item, list) jsonw_string(w, item->valuestring);
	jsonw_array_close(w);
}

void access_review_write(struct buf *out, const cJSON *user, const char *verb, const char *path)
{
	const char *uid = cJSON_GetStringValue(at(user, "uid"));
	const cJSON *item;
	struct jsonw w;

	begin(&w, out, "authorization.k8s.io/v1", "SubjectAccessReview");
	jsonw_key_string(&w, "user", cJSON_GetStringValue(at(user, "username")));
	if (uid)
		jsonw_key_string(&w, "uid", uid);
	write_texts(&w, "groups", at(user, "groups"));
	jsonw_key(&w, "extra");
	jsonw_object_open(&w);
	cJSON_ArrayForEach(item, at(user, "extra")) write_texts(&w, item->string, item);
	jsonw_object_close(&w);
	jsonw_key(&w, "nonResourceAttributes");
	jsonw_object_open(&w);
	jsonw_key_string(&w, "path", path);
	jsonw_key_string(&w, "verb", verb);
	jsonw_object_close(&w);
	end(&w);
}

void access_review_read(const char *text, size_t len, struct access_answer *a)
{
	cJSON *json = cJSON_ParseWithLength(text, len);
	const cJSON *status = at(json, "status"), *allowed = at(status, "allowed");

	if (!cJSON_IsBool(allowed))
		refuse(a, ACCESS_UNANSWERED,
		       "the Kubernetes API answers a SubjectAccessReview without a verdict");
	else if (!cJSON_IsTrue(allowed) || cJSON_IsTrue(at(status, "denied")))
		refuse(a, ACCESS_DENIED, "no role allows it");
	else
		a->verdict = ACCESS_ALLOWED;
	cJSON_Delete(json);
}
