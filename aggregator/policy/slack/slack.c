/* SPDX-License-Identifier: Apache-2.0 */
/* Options with their bounds, and the result of a step. */
#include "aggregator/policy/slack/slack.h"

#include <errno.h>
#include <stdlib.h>

#include "aggregator/policy/slack/slack_internal.h"

#define SECOND 1000000000LL
#define DAY    (24 * 3600 * SECOND)

void slack_options_default(struct slack_options *o)
{
	*o = (struct slack_options){
		.rate_ppm = SLACK_PPM / 10,
		.base = SLACK_BASE_REQUESTED,
		.granularity = 5,
		.unneeded_ns = 600 * SECOND,
		.node_start_ns = 180 * SECOND,
		.arrivals_keep_ns = 14 * DAY,
		.cpu_share = 0.85,
		.mem_share = 0.90,
		.class_max = 5000,
		.placeholders_max = 50000,
		.displace_max = 20000,
	};
}

static bool is_share(double share)
{
	return share > 0 && share <= 1;
}

int slack_options_check(const struct slack_options *o, struct error *error)
{
	if (slack_rate_check(o->rate_ppm, error))
		return -EINVAL;
	if (o->granularity < 1 || o->granularity > SLACK_GRANULARITY_MAX)
		error_set(error, "a slack granularity of %u is not in 1..%d", o->granularity,
			  SLACK_GRANULARITY_MAX);
	else if (o->unneeded_ns < 0)
		error_set(error, "the time after which slack is unneeded is negative");
	else if (o->from_arrivals && (o->node_start_ns < SECOND || o->node_start_ns > DAY))
		error_set(error, "the time that a node needs to start is not in 1s..24h");
	else if (o->from_arrivals && o->arrivals_keep_ns < DAY)
		error_set(error, "arrivals are kept for less than a day");
	else if (!is_share(o->cpu_share) || !is_share(o->mem_share))
		error_set(error, "the shares of CPU and memory that may be used are not in (0, 1]");
	else
		return 0;
	return -EINVAL;
}

const char *slack_cause_name(enum slack_cause c)
{
	static const char *const names[SLACK_CAUSES] = {
		[SLACK_PUSHED_OUT] = "PushedOut", [SLACK_NODE_LEFT] = "NodeLeft",
		[SLACK_SURPLUS] = "Surplus",	  [SLACK_CLASS_LEFT] = "ClassLeft",
		[SLACK_DISPLACED] = "Displaced",  [SLACK_PLACED] = "Placed",
	};

	return names[c];
}

void slack_result_fini(struct slack_result *r)
{
	for (size_t i = 0; i < r->class_count; i++)
		object_drop((struct object *)&r->classes[i].record->object);
	for (size_t i = 0; i < r->issue_count; i++) {
		free(r->issues[i].who);
		free(r->issues[i].text);
	}
	for (size_t i = 0; i < r->name_count; i++)
		free(r->names[i]);
	free(r->classes);
	free(r->moves);
	free(r->placed);
	free(r->demand);
	free(r->issues);
	free(r->names);
	slack_basis_free(r->basis);
	buf_fini(&r->narration);
	view_drop(r->view);
	*r = (struct slack_result){0};
}
