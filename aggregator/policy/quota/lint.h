/* SPDX-License-Identifier: Apache-2.0 */
/* Errors and surprising settings in the elastic quotas of a cluster, with the numbers. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/quota/quota.h"

/* X(name, code, severity, behaviour): every kind of finding, and how such a quota still works. */
#define QUOTA_LINTS(X)                                                                             \
	X(UNREADABLE, "unreadable", ERROR, "the object is left out, as if it were not there")      \
	X(MIN_OVER_MAX, "minOverMax", ERROR,                                                       \
	  "max decides who starts, min who is guaranteed: what is above max cannot be used")       \
	X(DUPLICATE, "duplicate", ERROR,                                                           \
	  "the oldest counts, of equally old ones the first by name")                              \
	X(SUM_OVER_CAPACITY, "sumMinOverCapacity", ERROR,                                          \
	  "every min counts as its part of what there is; in variant upstream pods wait for a "    \
	  "node")                                                                                  \
	X(MIN_OVER_HARD, "minOverHard", ERROR,                                                     \
	  "the ResourceQuota refuses the pods before any quota of evenkeel is asked")              \
	X(BAD_ANNOTATION, "badAnnotation", ERROR, "the annotation is as if it were not there")     \
	X(NOTHING_GUARANTEED, "nothingGuaranteed", ERROR,                                          \
	  "upstream: the sum of all min is 0, so that every pod with a quota is refused")          \
	X(UNNAMED_IS_ZERO, "unnamedIsZero", ERROR,                                                 \
	  "upstream: what max does not name counts as 0 for cpu, memory and ephemeral-storage")    \
	X(HELD_WITHOUT_QUOTA, "heldWithoutQuota", WARNING,                                         \
	  "preemption for a quota never takes pods of namespaces without one: "                    \
	  "--quota-cover-all gives these a quota")                                                 \
	X(SUM_OVER_READY, "sumMinOverReady", WARNING,                                              \
	  "as sumMinOverCapacity, until nodes are ready and uncordoned again")                     \
	X(MAX_OVER_HARD, "maxOverHard", WARNING,                                                   \
	  "the ResourceQuota refuses the pods before max is reached")                              \
	X(NO_SUCH_RESOURCE, "noSuchResource", WARNING, "it counts like any other resource")        \
	X(NOT_REQUESTED, "notRequested", WARNING, "no pod requests it, and so it bounds nothing")  \
	X(ZERO_MAX, "zeroMax", WARNING, "no pod that requests any of it starts")                   \
	X(NO_BOUNDS, "noBounds", WARNING, "nothing is guaranteed and nothing bounded")             \
	X(NOT_BOUNDED, "notBounded", WARNING, "more than min may be borrowed without bound")       \
	X(NO_REQUESTS, "noRequests", WARNING, "such pods count as nothing, and are never refused") \
	X(NOT_GUARANTEED, "notGuaranteed", INFO,                                                   \
	  "all of it is borrowed, and may be taken back by those it is guaranteed to")

enum quota_severity { QUOTA_LINT_ERROR, QUOTA_LINT_WARNING, QUOTA_LINT_INFO, QUOTA_SEVERITIES };

enum quota_lint_code {
#define X(name, code, severity, behaviour) QUOTA_LINT_CODE_##name,
	QUOTA_LINTS(X)
#undef X
		QUOTA_LINT_CODES
};

struct quota_lint_kind {
	const char *code, *behaviour; /* "minOverMax" */
	enum quota_severity severity;
};

const struct quota_lint_kind *quota_lint_kind(enum quota_lint_code c);
const char *quota_severity_name(enum quota_severity s); /* "error", "warning", "info" */

struct quota_finding {
	enum quota_lint_code code;
	/* "ElasticQuota"; "Cluster" with neither namespace nor name: of all quotas together. */
	const char *kind;
	char *namespace, *name; /* owned; "" */
	char *field; /* owned: "spec.min.cpu"; "" where it is the object as a whole */
	char *resource; /* owned; "" where it is about none, and the numbers have no meaning */
	int64_t value, bound; /* the number at fault and its bound, in the unit of the resource */
	char *text; /* owned */
};

/* Sorted: all quotas together first, then by namespace, name, severity and field. */
struct quota_findings {
	size_t count;
	struct quota_finding *of; /* owned */
	size_t by_severity[QUOTA_SEVERITIES]; /* how many, including dropped ones */
	size_t dropped; /* found beyond QUOTA_FINDINGS_MAX */
};

enum { QUOTA_FINDINGS_MAX = 10000 };

/* Checks the quotas of the view, and the guarantees of its book, with default quotas. */
void quota_lint(const struct view *v, const struct quota_book *b, const struct quota_options *o,
		struct quota_findings *out);
void quota_findings_fini(struct quota_findings *f);
