/* SPDX-License-Identifier: Apache-2.0 */
/* Command line options of the policies: of the extender, of quotas, of slack. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/policy/node_limits.h"
#include "aggregator/policy/quota/quota.h"
#include "aggregator/policy/score/score.h"
#include "aggregator/policy/slack/slack.h"
#include "shared/options.h"
#include "shared/error.h"

/* --- what the extender refuses beside what the kube-scheduler has checked, and how it ranks */

struct score_blend;

struct extender_options {
	struct node_limits limits;
	/* The blend of prioritize, by plugin; weights of 0: not in it. All 0: the default blend. */
	double weights[SCORE_PLUGINS];
	/* Defaults of questions: see struct score_args. */
	int64_t default_pod_cpu_milli;
	bool unlimited_is_allocatable;
	double oom_cost;
};

/*
 * "TargetLoadPacking=3,LimitAware=1", or "" for the default blend. -EINVAL with the reason, and *o
 * is as it was.
 */
int extender_options_parse_blend(struct extender_options *o, const char *text, struct error *error);
/* The arguments of a question that states none; of another variant, or without options, its own. */
void extender_options_args(const struct extender_options *o, enum score_variant variant,
			   struct score_args *args);
/*
 * How nodes are ranked, by arguments that extender_options_args() gave, where a question does not
 * say: in the corrected variant by the weights of the options (NULL: none), else by the default
 * blend (score_plugin_weight()).
 */
void extender_options_blend(const struct extender_options *o, enum score_variant variant,
			    struct score_blend *blend, struct score_args *args);

/* --- rules of quotas */

/*
 * Sets what namespaces without a quota get: "cpu=2,memory=4Gi,nvidia.com/gpu=1", each as an
 * ElasticQuota would have it. Either may be NULL; with both they get nothing, or with cover_all a
 * quota with a min of 0. -EINVAL: the reason names the option; *o is then as it was.
 */
int quota_options_set_default(struct quota_options *o, const char *min, const char *max,
			      bool cover_all, struct error *error);
void quota_options_fini(struct quota_options *o);

/* --- slack: one table for the aggregator and for the command line */

/* As they were given; 0 and NULL: not given. */
struct slack_option_values {
	char *rate, *base;
	int64_t granularity, unneeded_ns, node_start_ns;
	bool from_arrivals;
	double cpu_share, mem_share;
};

/*
 * Rows for a table of options; at(member) is the offset of that member of the struct above in the
 * caller's, when: words that stand before each help.
 */
#define SLACK_OPTION_SPECS(at, when)                                                               \
	TEXT_OPTION("extra-capacity-min-rate", at(rate), "RATE", NULL,                             \
		    when "Least slack, as a share of --extra-capacity-base: 0.1 or 10%. Default: " \
			 "0.1; 0 keeps only what workloads ask for."),                             \
		TEXT_OPTION("extra-capacity-base", at(base), "requested|allocatable", NULL,        \
			    when "Base of the rate: requests of pods (the default), or "           \
				 "allocatable of nodes."),                                         \
		RANGE_OPTION(OPTION_INTEGER, "slack-granularity", at(granularity), "N", NULL, 1,   \
			     SLACK_GRANULARITY_MAX,                                                \
			     when "Units of slack for an average node. Default: 5."),              \
		RANGE_OPTION(OPTION_DURATION, "slack-unneeded-time", at(unneeded_ns), "DURATION",  \
			     NULL, 1e9, 86400e9,                                                   \
			     when "Time of lower demand before slack is lowered. Default: 10m."),  \
		FLAG_OPTION("slack-from-arrivals", 0, at(from_arrivals),                           \
			    when "Instead of the rate: the 95th percentile of the requests that "  \
				 "arrive while a node starts, after a day of observation."),       \
		RANGE_OPTION(OPTION_DURATION, "slack-node-start-time", at(node_start_ns),          \
			     "DURATION", NULL, 1e9, 86400e9,                                       \
			     when "Time that a new node needs to start. Default: 3m."),            \
		RANGE_OPTION(                                                                      \
			OPTION_NUMBER, "slack-use-cap-cpu", at(cpu_share), "SHARE", NULL, 0.01, 1, \
			when                                                                       \
			"Cap of a node's real CPU use, for slots by real use. Default: 0.85."),    \
		RANGE_OPTION(OPTION_NUMBER, "slack-use-cap-memory", at(mem_share), "SHARE", NULL,  \
			     0.01, 1, when "Cap of its working set. Default: 0.90.")

/* The given options over the defaults. -EINVAL: the error names the option. */
int slack_options_read(const struct slack_option_values *given, struct slack_options *o,
		       struct error *error);
/*
 * The first option that was given and is not what the environment says, which a daemon may have
 * been started with, too; NULL: none.
 */
const char *slack_options_given(const struct slack_option_values *v);
