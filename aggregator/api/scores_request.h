/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /v1/scores, read and checked. */
#pragma once

#include <cjson/cJSON.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/api/score_job.h"

/* --- arguments of the score plugins as JSON gives them, by upstream's names (scores_args.c) */

enum { SCORES_FIELD_MAX = 256 };

struct scores_args {
	struct score_args values; /* names point into the JSON */
	struct power_model *models; /* owned; names point into the JSON */
};

/*
 * Reads {ARGUMENT: VALUE, ..} of one plugin and checks the ranges:
 *
 *   TargetLoadPacking           targetUtilization, defaultRequestsMultiplier, defaultRequests {cpu}; useLimits is ours
 *                               and not for upstream
 *   LoadVariationRiskBalancing  safeVarianceMargin, safeVarianceSensitivity
 *   LowRiskOverCommitment       smoothingWindowSize, riskLimitWeights {cpu, memory}
 *   Peaks                       nodePowerModel {NODE: {k0, k1, k2}}, also NodePowerModel as upstream spells it
 *   NodeResourcesAllocatable    resources [{name: cpu|memory, weight}], mode Least|Most
 *   LimitAware                  resources [{name: cpu|memory|ephemeral-storage|hugepages-SIZE|DOMAIN/NAME, weight}];
 *                               ours and not for upstream: unlimited allocatable or {cpu, memory,
 *                               ephemeral-storage}: QUANTITY, init count|ignore, normalization MinMax|Quantiles
 *
 * Trimaran's watcherAddress and metricProvider {type, address, token, insecureSkipVerify} are read
 * for upstream only, and have no effect: measurements come from the agents.
 *
 * 0, or -EINVAL: field is the path below the plugin ("resources[0].weight", "" the object itself).
 */
int scores_args_parse(struct scores_args *args, enum score_plugin_id plugin,
		      enum score_variant variant, const cJSON *object, char field[SCORES_FIELD_MAX],
		      struct error *error);
void scores_args_fini(struct scores_args *args);

/* --- the body */

struct scores_request {
	cJSON *tree; /* owned; what strings point into */
	struct pod_spec pod; /* empty when there was none */
	struct pod_sums sums; /* of it, where LimitAware is asked about more than CPU and memory */
	const char *pod_uid; /* "" in a manifest */
	const char *owner_uid; /* of the pod's controller; "" where it names none */
	char workload[WORKLOAD_KEY_MAX + 1]; /* workload_key() of it */
	const cJSON *nodes; /* list of names in the view, or NULL: all */
	struct score_blend blend;
	struct scores_args args;
	bool explain;
	bool fits; /* tell whether the pod fits, also without explain */
};

/*
 * {pod?, nodes?: [NAME..], plugins?: [PLUGIN..], variant?, blend?: {PLUGIN: WEIGHT..}, explain?:
 * BOOL, fits?: BOOL,
 *  args?: {PLUGIN: {ARGUMENT: VALUE..}}}
 *
 * pod: see pod_spec.h; also its metadata.uid and ownerReferences are read: the uid of its
 * controller. plugins: default the members of blend, else what extender_options_blend() says
 * (extender may be NULL). Weights default to 1. Arguments: see above. Everything unknown is
 * refused. 0, or -EINVAL: field is the path of what is wrong ("" the body itself), nothing is left
 * to free.
 */
int scores_request_parse(const char *body, size_t len, const struct extender_options *extender,
			 struct scores_request *rq, char field[SCORES_FIELD_MAX],
			 struct error *error);
void scores_request_fini(struct scores_request *rq);
