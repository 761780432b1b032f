/* SPDX-License-Identifier: Apache-2.0 */
/*
 * {"kind": "Status", "code": 410, "reason": "Expired", "message": "..", "details":
 * {"retryAfterSeconds": 1, "causes": [..]}}
 *
 * A version newer than the server's is a 504 Timeout with a cause of its own; before 1.19 only the
 * message says so.
 */
#include "aggregator/edge/kube/retry.h"

#include <stdio.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/clock.h"
#include "shared/utf8.h"

#define RETRY_AFTER_MAX_S 300.0

static const char too_large_cause[] = "ResourceVersionTooLarge";
static const char too_large_message[] = "Too large resource version";

void kube_status_set(struct kube_status *s, int code, const char *message)
{
	*s = (struct kube_status){.code = code};
	s->version_unavailable = code == 410;
	snprintf(s->message, sizeof(s->message), "%s", message);
	/* The server's text as one log line. */
	utf8_replace_controls(s->message, ' ');
}

void kube_status_retry_after(struct kube_status *s, double seconds)
{
	int64_t wait_ns;

	if (!(seconds > 0))
		return;
	wait_ns =
		(int64_t)((seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * NS_PER_SEC);
	if (wait_ns > s->retry_after_ns)
		s->retry_after_ns = wait_ns;
}

static bool is_too_large(const cJSON *json, const cJSON *details)
{
	const cJSON *cause = object_json_first(object_json_find(details, "causes"));

	for (; cause; cause = cause->next)
		if (object_json_is(cause, "reason", too_large_cause))
			return true;
	return strncmp(object_json_text(json, "message"), too_large_message,
		       sizeof(too_large_message) - 1) == 0;
}

void kube_status_read(struct kube_status *s, const cJSON *json)
{
	const cJSON *details = cJSON_GetObjectItemCaseSensitive(json, "details");
	const cJSON *code = cJSON_GetObjectItemCaseSensitive(json, "code");
	const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(details, "retryAfterSeconds");
	const char *message = object_json_text(json, "message");
	const char *reason = object_json_text(json, "reason");
	int64_t retry_after_ns = s->retry_after_ns;
	int number = s->code;

	if (cJSON_IsNumber(code) && code->valueint >= 300 && code->valueint < 600)
		number = code->valueint;
	else if (strcmp(reason, "Expired") == 0 || strcmp(reason, "Gone") == 0)
		number = 410;
	kube_status_set(s, number, message[0] ? message : reason);
	s->retry_after_ns = retry_after_ns;
	s->version_unavailable |= is_too_large(json, details);
	if (cJSON_IsNumber(seconds))
		kube_status_retry_after(s, seconds->valuedouble);
}

void kube_status_parse(struct kube_status *s, int code, const char *body, size_t len)
{
	cJSON *json = len ? cJSON_ParseWithLength(body, len) : NULL;

	kube_status_set(s, code, "");
	if (json && object_json_is(json, "kind", "Status"))
		kube_status_read(s, json);
	/* The HTTP status counts: a Status inside may be of a proxied request. */
	s->code = code;
	cJSON_Delete(json);
}

/* The time to reset begins at the end of a wait. */
int64_t backoff_next(struct backoff *b, const struct backoff_limits *limits, double random,
		     int64_t now_ns)
{
	int64_t wait_ns;

	if (!b->base_ns || now_ns - b->until_ns >= limits->reset_ns)
		b->base_ns = limits->first_ns;
	else if (b->base_ns < limits->most_ns / 2)
		b->base_ns *= 2;
	else
		b->base_ns = limits->most_ns;
	wait_ns = b->base_ns + (int64_t)(random * (double)b->base_ns);
	b->until_ns = now_ns + wait_ns;
	return wait_ns;
}
