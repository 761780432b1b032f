/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a user may make a request, asked of somebody who knows and may take long to say. The user
 * is the owner of a bearer token, or one that the Kubernetes API server's front proxy names.
 */
#pragma once

#include "shared/error.h"

enum access_verdict {
	ACCESS_ALLOWED,
	ACCESS_UNKNOWN, /* the token is nobody's */
	ACCESS_DENIED, /* its owner may not */
	ACCESS_UNANSWERED, /* who knows could not be asked */
};

enum {
	ACCESS_USER_LEN = 128,
	ACCESS_VERB_LEN = 16,
	ACCESS_RESOURCE_LEN = 64,
	ACCESS_NAME_LEN = 254,
	ACCESS_RULE_LEN = 256,
};

struct access_answer {
	enum access_verdict verdict;
	char user[ACCESS_USER_LEN]; /* whose the token is, cut; "" where that is not known */
	struct error error; /* of anything but ACCESS_ALLOWED; never the token */
};

/* A request as RBAC sees it: of a path, or of a resource of an API group. */
struct access_request {
	const char *path; /* begins with one "/"; borrowed */
	const char *group, *version; /* static; NULL: no resource, and all below but verb is "" */
	char verb[ACCESS_VERB_LEN]; /* "get", "post", ..; of a resource "list", "create", .. */
	char resource[ACCESS_RESOURCE_LEN];
	char namespace[ACCESS_RESOURCE_LEN]; /* "": all, or none */
	char name[ACCESS_NAME_LEN]; /* "": all */
	char subresource[ACCESS_RESOURCE_LEN]; /* "history" of nodes/NAME/history; "": none */
};

/* All texts are borrowed. */
struct access_question {
	const char *token; /* NULL: the user is known already */
	const char *user; /* that one as JSON: {username, uid, groups, extra} of a UserInfo */
	const struct access_request *request;
};

struct review_client {
	void *ctx;
	/* Any thread, at_once of them at a time. */
	void (*ask)(void *ctx, const struct access_question *q, struct access_answer *a);
	unsigned int at_once;
};
