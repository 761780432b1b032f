/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations of an ElasticQuota beyond min and max. Pure. */
#pragma once

#include <stdint.h>

#include "aggregator/model/labels.h"
#include "shared/error.h"

enum quota_annotation {
	QUOTA_WEIGHT, /* evenkeel.io/weight: "2", "0.5"; above 0, to 1000000 */
	QUOTA_MIN_RUNTIME, /* evenkeel.io/min-runtime: "30m", "1h30m"; to 30 days */
	QUOTA_MAX_EVICTIONS, /* evenkeel.io/max-evictions: "5/1h"; 0 to 1000000, in 1s to 30 days */
	QUOTA_ANNOTATIONS
};

const char *quota_annotation_key(enum quota_annotation a); /* "evenkeel.io/weight" */

struct quota_annotations {
	double weight; /* 1 */
	int64_t min_runtime_ns; /* 0 */
	uint32_t evictions_max; /* 0, and */
	int64_t evictions_ns; /* 0: no bound */
};

/* The error of each annotation; "" for none. */
struct quota_annotation_notes {
	struct error of[QUOTA_ANNOTATIONS];
};

/* Annotations with errors count as absent. Returns how many these are; notes may be NULL. */
unsigned int quota_annotations_read(const struct labels *annotations, struct quota_annotations *out,
				    struct quota_annotation_notes *notes);
