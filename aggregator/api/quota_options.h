/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of quotas as options of a command line give them. */
#ifndef EVENKEEL_AGGREGATOR_API_QUOTA_OPTIONS_H
#define EVENKEEL_AGGREGATOR_API_QUOTA_OPTIONS_H

#include "aggregator/policy/quota/quota.h"
#include "shared/reason.h"

/*
 * Sets what namespaces without a quota get: "cpu=2,memory=4Gi,nvidia.com/gpu=1", each as an
 * ElasticQuota would have it. Either may be NULL; with both they get nothing, or with cover_all a
 * quota with a min of 0. -EINVAL: the reason names the option; *o is then as it was.
 */
int quota_options_set_default(struct quota_options *o, const char *min, const char *max,
			      bool cover_all, struct reason *reason);
void quota_options_fini(struct quota_options *o);

#endif
