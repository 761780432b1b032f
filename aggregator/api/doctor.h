/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What evenkeel doctor and /v1/doctor find: checks of a Status object, each with a verdict and,
 * where one helps, an advice.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "shared/jsonw.h"

enum doctor_verdict { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor_check {
	enum doctor_verdict verdict;
	const char *what; /* borrowed: a word */
	char *detail, *advice; /* owned; advice NULL: none needed */
};

/* {0} holds nothing. */
struct doctor {
	size_t count;
	struct doctor_check *checks; /* owned */
};

void doctor_fini(struct doctor *d);
/* what is borrowed, advice copied (NULL: none); the rest is the detail. */
void doctor_add(struct doctor *d, enum doctor_verdict verdict, const char *what, const char *advice,
		const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Checks all that the answer of /v1/status tells. */
void doctor_examine(struct doctor *d, const cJSON *status);
/*
 * The same where files answer instead of a server: only what they hold. no_usage says why nothing
 * is measured, or is NULL.
 */
void doctor_examine_snapshot(struct doctor *d, const cJSON *status, const char *no_usage);
/* How it fares with the API, resource by resource; a part of doctor_examine(). */
void doctor_examine_kubernetes(struct doctor *d, const cJSON *status);
/* The worst of all. */
enum doctor_verdict doctor_verdict_of(const struct doctor *d);

/* "verdict":V,"checks":[{"verdict","what","detail","advice"}] */
void doctor_write(const struct doctor *d, struct jsonw *w);

extern const char *const doctor_verdicts[]; /* by enum doctor_verdict: "ok", "warn", "fail" */
