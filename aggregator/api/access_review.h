/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the owner of a bearer token may make a request, asked of somebody who knows and may take
 * long to say.
 */
#ifndef EVENKEEL_AGGREGATOR_API_ACCESS_REVIEW_H
#define EVENKEEL_AGGREGATOR_API_ACCESS_REVIEW_H

#include "shared/error.h"

enum access_verdict {
	ACCESS_ALLOWED,
	ACCESS_UNKNOWN, /* the token is nobody's */
	ACCESS_DENIED, /* its owner may not */
	ACCESS_UNANSWERED, /* who knows could not be asked */
};

enum { ACCESS_USER_LEN = 128 };

struct access_answer {
	enum access_verdict verdict;
	char user[ACCESS_USER_LEN]; /* whose the token is, cut; "" where that is not known */
	struct error error; /* of anything but ACCESS_ALLOWED; never the token */
};

struct review_client {
	void *ctx;
	/*
	 * Any thread, at_once of them at a time. verb: "get", "post", ..; path begins with "/". All
	 * texts are borrowed.
	 */
	void (*ask)(void *ctx, const char *token, const char *verb, const char *path,
		    struct access_answer *a);
	unsigned int at_once;
};

#endif
