/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever an API server answers to reviews: nobody is let in without "authenticated": true and a
 * name, or without "allowed": true; and what is sent on of a user is JSON again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/token_review.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void send_on(const cJSON *user)
{
	struct buf body = BUF_INIT;
	cJSON *json;

	access_review_write(&body, user,
			    &(struct access_request){.verb = "get", .path = "/v1/nodes"});
	json = cJSON_ParseWithLength(body.data, body.len);
	assert(json);
	cJSON_Delete(json);
	buf_fini(&body);
}

static void review_token(const char *text, size_t len, const char *audience)
{
	struct access_answer a = {.verdict = ACCESS_UNANSWERED};
	cJSON *user = token_review_read(text, len, audience, &a);

	if (user) {
		assert(a.user[0]);
		for (const char *c = a.user; *c; c++)
			assert((unsigned char)*c >= ' ' && *c != 0x7f);
		send_on(user);
		cJSON_Delete(user);
		return;
	}
	assert(a.verdict == ACCESS_UNKNOWN || a.verdict == ACCESS_UNANSWERED);
	assert(a.error.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct access_answer a = {.verdict = ACCESS_UNANSWERED};
	const char *text = (const char *)data;

	review_token(text, size, NULL);
	review_token(text, size, "evenkeel");
	access_review_read(text, size, &a);
	assert(a.verdict != ACCESS_UNKNOWN);
	assert(a.verdict == ACCESS_ALLOWED || a.error.text[0]);
	return 0;
}
