/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/api/policy_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/score_job.h"
#include "aggregator/model/object_json.h"
#include "shared/mem.h"
#include "shared/quantity.h"

/* --- the extender */

enum { WEIGHT_MOST = 1000000 };

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

static int parse_weight(char *item, double weights[SCORE_PLUGINS], struct error *error)
{
	char *equals = strchr(item, '='), *end;
	enum score_plugin_id plugin;
	double weight;

	if (equals)
		*equals = '\0';
	if (score_plugin_find(item, &plugin))
		return error_fail(error, -EINVAL, "there is no plugin \"%.64s\"; there are %s",
				  item, score_plugin_names());
	weight = equals ? strtod(equals + 1, &end) : 1;
	if (equals && (end == equals + 1 || *end || !(weight > 0 && weight <= WEIGHT_MOST)))
		return error_fail(error, -EINVAL,
				  "the weight \"%.32s\" of %s is no number above 0 and at most %d",
				  equals + 1, item, WEIGHT_MOST);
	if (weights[plugin] > 0)
		return error_fail(error, -EINVAL, "%s is named twice", item);
	weights[plugin] = weight;
	return 0;
}

int extender_options_parse_blend(struct extender_options *o, const char *text, struct error *error)
{
	double weights[SCORE_PLUGINS] = {0};
	char *copy = mem_strdup(text), *rest = copy, *item;
	int rc = 0;

	while (!rc && *text && (item = strsep(&rest, ",")) != NULL)
		rc = parse_weight(item, weights, error);
	if (!rc)
		memcpy(o->weights, weights, sizeof(weights));
	free(copy);
	return rc;
}

void extender_options_blend(const struct extender_options *o, enum score_variant variant,
			    struct score_blend *blend, struct score_args *args)
{
	*blend = (struct score_blend){.variant = variant};
	for (int id = 0; o && variant == SCORE_CORRECTED && id < SCORE_PLUGINS; id++) {
		if (o->weights[id] <= 0)
			continue;
		blend->plugins[blend->count] = (enum score_plugin_id)id;
		blend->weights[blend->count++] = o->weights[id];
	}
	if (blend->count)
		return;
	score_blend_default(blend, variant);
	if (variant == SCORE_CORRECTED)
		args->safe_variance_margin = SCORE_BLEND_MARGIN;
}

/* --- quotas */

/* One "cpu=2"; text is cut where its name ends. */
static int read_amount(char *text, struct resources *out, struct error *error)
{
	char *equals = strchr(text, '=');
	int64_t amount, other;
	int err;

	if (!equals || equals == text)
		return error_fail(error, -EINVAL, "\"%.100s\" is not of the form RESOURCE=QUANTITY",
				  text);
	*equals = '\0';
	err = strcmp(text, "cpu") == 0 ? quantity_parse_milli(equals + 1, &amount, error)
				       : quantity_parse_units(equals + 1, &amount, error);
	if (err)
		return error_at(error, err, "%.100s", text);
	if (amount < 0)
		return error_fail(error, -EINVAL, "%.100s must not be negative", text);
	if (resources_find(out, text, &other))
		return error_fail(error, -EINVAL, "%.100s is given twice", text);
	resources_set_named(out, text, amount);
	return 0;
}

static int read_list(const char *option, const char *list, struct resources *out,
		     struct error *error)
{
	char *text = mem_strdup(list ? list : ""), *next = text, *part;
	size_t count = 0;
	int rc = 0;

	*out = RESOURCES_NONE;
	while (list && !rc && (part = strsep(&next, ","))) {
		if (++count > OBJECT_RESOURCES_MAX)
			rc = error_fail(error, -EINVAL, "names more than %d resources",
					OBJECT_RESOURCES_MAX);
		else
			rc = read_amount(part, out, error);
	}
	if (rc) {
		error_prefix(error, "%s", option);
		resources_fini(out);
		*out = RESOURCES_NONE;
	}
	free(text);
	return rc;
}

int quota_options_set_default(struct quota_options *o, const char *min, const char *max,
			      bool cover_all, struct error *error)
{
	struct resources low, high;

	if (read_list("--quota-default-min", min, &low, error))
		return -EINVAL;
	if (read_list("--quota-default-max", max, &high, error)) {
		resources_fini(&low);
		return -EINVAL;
	}
	quota_options_fini(o);
	o->has_default = min || max || cover_all;
	o->default_min = low;
	o->default_max = high;
	return 0;
}

void quota_options_fini(struct quota_options *o)
{
	resources_fini(&o->default_min);
	resources_fini(&o->default_max);
	o->has_default = false;
	o->default_min = o->default_max = RESOURCES_NONE;
}

/* --- slack */

static int read_base(const char *text, enum slack_base *base, struct error *error)
{
	if (strcmp(text, "requested") == 0)
		*base = SLACK_BASE_REQUESTED;
	else if (strcmp(text, "allocatable") == 0)
		*base = SLACK_BASE_ALLOCATABLE;
	else
		return error_fail(
			error, -EINVAL,
			"--extra-capacity-base: \"%.64s\" is neither requested nor allocatable",
			text);
	return 0;
}

int slack_options_read(const struct slack_option_values *given, struct slack_options *o,
		       struct error *error)
{
	slack_options_default(o);
	if (given->rate && slack_rate_parse(given->rate, &o->rate_ppm, error))
		return error_at(error, -EINVAL, "--extra-capacity-min-rate");
	if (given->base && read_base(given->base, &o->base, error))
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
