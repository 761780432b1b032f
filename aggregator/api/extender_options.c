/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/extender.h"
#include "aggregator/api/score_job.h"
#include "shared/mem.h"

enum { WEIGHT_MOST = 1000000 };

void extender_options_default(struct extender_options *o)
{
	struct score_args args;

	score_args_default(&args, SCORE_CORRECTED);
	*o = (struct extender_options){.limits = {.z = NODE_LIMITS_Z},
				       .default_pod_cpu_milli = args.default_requests_cpu_milli,
				       .oom_cost = args.oom_cost};
}

void extender_options_args(const struct extender_options *o, enum score_variant variant,
			   struct score_args *args)
{
	score_args_default(args, variant);
	if (!o || variant != SCORE_CORRECTED)
		return;
	args->default_requests_cpu_milli = o->default_pod_cpu_milli;
	args->oom_cost = o->oom_cost;
	if (o->unlimited_is_allocatable)
		score_args_unlimited_allocatable(args);
}

static int parse_weight(char *item, double weights[SCORE_PLUGINS], struct reason *reason)
{
	char *equals = strchr(item, '='), *end;
	enum score_plugin_id plugin;
	double weight;

	if (equals)
		*equals = '\0';
	if (score_plugin_find(item, &plugin)) {
		reason_set(reason, "there is no plugin \"%.64s\"; there are %s", item,
			   score_plugin_names());
		return -EINVAL;
	}
	weight = equals ? strtod(equals + 1, &end) : 1;
	if (equals && (end == equals + 1 || *end || !(weight > 0 && weight <= WEIGHT_MOST))) {
		reason_set(reason, "the weight \"%.32s\" of %s is no number above 0 and at most %d",
			   equals + 1, item, WEIGHT_MOST);
		return -EINVAL;
	}
	if (weights[plugin] > 0) {
		reason_set(reason, "%s is named twice", item);
		return -EINVAL;
	}
	weights[plugin] = weight;
	return 0;
}

int extender_options_parse_blend(struct extender_options *o, const char *text,
				 struct reason *reason)
{
	double weights[SCORE_PLUGINS] = {0};
	char *copy = mem_strdup(text), *rest = copy, *item;
	int rc = 0;

	while (!rc && *text && (item = strsep(&rest, ",")) != NULL)
		rc = parse_weight(item, weights, reason);
	if (!rc)
		memcpy(o->weights, weights, sizeof(weights));
	free(copy);
	return rc;
}

void extender_options_mix(const struct extender_options *o, enum score_variant variant,
			  struct score_mix *mix, struct score_args *args)
{
	*mix = (struct score_mix){.variant = variant};
	for (int id = 0; o && variant == SCORE_CORRECTED && id < SCORE_PLUGINS; id++) {
		if (o->weights[id] <= 0)
			continue;
		mix->plugins[mix->count] = (enum score_plugin_id)id;
		mix->weights[mix->count++] = o->weights[id];
	}
	if (mix->count)
		return;
	score_mix_default(mix, variant);
	if (variant == SCORE_CORRECTED)
		args->safe_variance_margin = SCORE_BLEND_MARGIN;
}
