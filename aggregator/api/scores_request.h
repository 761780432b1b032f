/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /v1/scores, read and checked. */
#ifndef EVENKEEL_AGGREGATOR_API_SCORES_REQUEST_H
#define EVENKEEL_AGGREGATOR_API_SCORES_REQUEST_H

#include <cjson/cJSON.h>

#include "aggregator/api/extender.h"
#include "aggregator/api/score_job.h"
#include "aggregator/api/scores_args.h"

struct scores_request {
	cJSON *tree; /* owned; what strings point into */
	struct pod_spec pod; /* empty when there was none */
	struct pod_sums sums; /* of it, where LimitAware is asked about more than CPU and memory */
	const char *pod_uid; /* "" in a manifest */
	const char *owner_uid; /* of the pod's controller; "" where it names none */
	char workload[WORKLOAD_KEY_MAX + 1]; /* workload_key() of it */
	const cJSON *nodes; /* list of names in the view, or NULL: all */
	struct score_mix mix;
	struct scores_args args;
	bool explain;
	bool fits; /* tell whether the pod fits, also without explain */
};

/*
 * {pod?, nodes?: [NAME..], plugins?: [PLUGIN..], variant?, blend?: {PLUGIN: WEIGHT..}, explain?:
 * BOOL, fits?: BOOL,
 *  args?: {PLUGIN: {ARGUMENT: VALUE..}}}
 *
 * pod: see pod_json.h; also its metadata.uid and ownerReferences are read: the uid of its
 * controller. plugins: default the members of blend, else what extender_options_mix() says
 * (extender may be NULL). Weights default to 1. Arguments: scores_args.h. Everything unknown is
 * refused. 0, or -EINVAL: field is the path of what is wrong ("" the body itself), nothing is left
 * to free.
 */
int scores_request_parse(const char *body, size_t len, const struct extender_options *extender,
			 struct scores_request *rq, char field[SCORES_FIELD_MAX],
			 struct reason *reason);
void scores_request_fini(struct scores_request *rq);

#endif
