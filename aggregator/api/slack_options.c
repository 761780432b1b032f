/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/api/slack_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int read_base(const char *text, enum slack_base *base, struct reason *reason)
{
	if (strcmp(text, "requested") == 0)
		*base = SLACK_BASE_REQUESTED;
	else if (strcmp(text, "allocatable") == 0)
		*base = SLACK_BASE_ALLOCATABLE;
	else {
		reason_set(reason,
			   "--extra-capacity-base: \"%.64s\" is neither requested nor allocatable",
			   text);
		return -EINVAL;
	}
	return 0;
}

int slack_options_read(const struct slack_option_values *given, struct slack_options *o,
		       struct reason *reason)
{
	slack_options_default(o);
	if (given->rate && slack_rate_parse(given->rate, &o->rate_ppm, reason)) {
		reason_prefix(reason, "--extra-capacity-min-rate");
		return -EINVAL;
	}
	if (given->base && read_base(given->base, &o->base, reason))
		return -EINVAL;
	if (given->granularity)
		o->granularity = (uint32_t)given->granularity;
	if (given->unneeded_ns)
		o->unneeded_ns = given->unneeded_ns;
	if (given->node_start_ns)
		o->node_start_ns = given->node_start_ns;
	o->from_arrivals = given->from_arrivals;
	if (given->cpu_share > 0)
		o->cpu_share = given->cpu_share;
	if (given->mem_share > 0)
		o->mem_share = given->mem_share;
	return 0;
}

const char *slack_options_given(const struct slack_option_values *v)
{
	const struct {
		bool given;
		const char *option, *variable;
	} all[] = {
		{v->rate, "--extra-capacity-min-rate", "EVENKEEL_EXTRA_CAPACITY_MIN_RATE"},
		{v->base, "--extra-capacity-base", "EVENKEEL_EXTRA_CAPACITY_BASE"},
		{v->granularity, "--slack-granularity", "EVENKEEL_SLACK_GRANULARITY"},
		{v->unneeded_ns, "--slack-unneeded-time", "EVENKEEL_SLACK_UNNEEDED_TIME"},
		{v->from_arrivals, "--slack-from-arrivals", "EVENKEEL_SLACK_FROM_ARRIVALS"},
		{v->node_start_ns, "--slack-node-start-time", "EVENKEEL_SLACK_NODE_START_TIME"},
		{v->cpu_share > 0, "--slack-use-cap-cpu", "EVENKEEL_SLACK_USE_CAP_CPU"},
		{v->mem_share > 0, "--slack-use-cap-memory", "EVENKEEL_SLACK_USE_CAP_MEMORY"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].given && !getenv(all[i].variable))
			return all[i].option;
	return NULL;
}
