/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token review client: asks the Kubernetes API for the owner of a bearer token (TokenReview),
 * and whether that user may make a request (SubjectAccessReview).
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "aggregator/api/access_review.h"
#include "aggregator/edge/kube/config.h"
#include "shared/buf.h"

enum { TOKEN_REVIEWS_AT_ONCE = 2 };

struct token_review_client;

/* config is copied; audience: of the tokens, NULL: the API server. -errno with the reason. */
int token_review_client_new(struct token_review_client **r, const struct kube_config *config,
			    const char *audience, struct error *error);
/* Cuts running requests and sends no more. NULL is allowed, as below. */
void token_review_client_stop(struct token_review_client *r);
void token_review_client_free(struct token_review_client *r); /* after the last request */
/* The `ask` of a struct review_client, whose ctx is the token_review_client. */
void token_review_client_ask(void *client, const struct access_question *q,
			     struct access_answer *a);

/*
 * The user alone, as token_review_read() gives it; NULL with the verdict. At most
 * TOKEN_REVIEWS_AT_ONCE callers, as above.
 */
cJSON *token_review_client_identify(struct token_review_client *r, const char *token,
				    struct access_answer *a);

/* --- bodies, exported for tests --------------------------------------------------------------- */

/*
 * The user of a TokenReview's status ({username, uid, groups, extra}), which the caller deletes;
 * NULL with the verdict: ACCESS_UNKNOWN: nobody's token, or of another audience;
 * ACCESS_UNANSWERED: not understood.
 */
cJSON *token_review_read(const char *text, size_t len, const char *audience,
			 struct access_answer *a);
void access_review_write(struct buf *out, const cJSON *user, const struct access_request *q);
/*
 * The first text of a user's extra of that name ("authentication.kubernetes.io/node-name"), borrowed;
 * NULL: none.
 */
const char *token_review_extra(const cJSON *user, const char *name);
/* The verdict of a SubjectAccessReview; a->user stays. */
void access_review_read(const char *text, size_t len, struct access_answer *a);
