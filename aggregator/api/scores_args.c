/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers are read by the rows of score_tables.h, other arguments by the functions of the table
 * below. A function returns what is wrong, and where below the argument; names it does not know are
 * wrong. An argument given twice takes the last value, as JSON readers do.
 */
#include "aggregator/api/scores_request.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/array.h"
#include "shared/mem.h"
#include "shared/quantity.h"

struct reader {
	struct scores_args *args;
	enum score_plugin_id plugin;
	enum score_variant variant;
	char *field; /* what follows the argument's name */
};

/* Each returns NULL or what is wrong with the value. */
typedef const char *read_arg(const struct reader *r, const cJSON *value);

static const char *at(const struct reader *r, const char *why, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static const char *at(const struct reader *r, const char *why, const char *format, ...)
{
	MEM_FORMAT(r->field, SCORES_FIELD_MAX, format);
	return why;
}

static const char *read_number(const cJSON *value, double *out)
{
	if (!cJSON_IsNumber(value))
		return "must be a number";
	*out = value->valuedouble;
	return NULL;
}

static bool is_whole(double number)
{
	return number == trunc(number) && fabs(number) <= 0x1p53;
}

static const char *read_text(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return !strchr("+-.0123456789iInN", text[0]) || end == text || *end
		       ? "must be a number, as text or not"
		       : NULL;
}

static bool find_resource(const char *name, enum score_resource *resource)
{
	*resource = strcmp(name, "cpu") == 0 ? SCORE_CPU : SCORE_MEMORY;
	return *resource == SCORE_CPU || strcmp(name, "memory") == 0;
}

/* --- TargetLoadPacking ------------------------------------------------------------------------ */

/* A list without cpu means 0 upstream. */
static const char *arg_default_requests(const struct reader *r, const cJSON *value)
{
	const cJSON *cpu = cJSON_GetObjectItemCaseSensitive(value, "cpu");
	int64_t *out = &r->args->values.default_requests_cpu_milli;

	if (!cJSON_IsObject(value))
		return "must be an object such as {\"cpu\": \"1\"}";
	if (!cpu) {
		if (r->variant == SCORE_UPSTREAM)
			*out = 0;
		return NULL;
	}
	if (object_json_quantity(cpu, quantity_parse_milli, out, NULL))
		return "cpu must be a quantity such as \"500m\", not negative";
	return NULL;
}

static const char *arg_use_limits(const struct reader *r, const cJSON *value)
{
	if (r->variant == SCORE_UPSTREAM)
		return "is not an argument of variant upstream, which always takes limits first";
	if (!cJSON_IsBool(value))
		return "must be true or false";
	r->args->values.use_limits = cJSON_IsTrue(value);
	return NULL;
}

/* --- LowRiskOverCommitment -------------------------------------------------------------------- */

/* Other resources have no effect upstream. */
static const char *arg_risk_weights(const struct reader *r, const cJSON *value)
{
	if (!cJSON_IsObject(value))
		return "must be an object such as {\"cpu\": 0.5, \"memory\": 0.5}";
	for (const cJSON *item = value->child; item; item = item->next) {
		enum score_resource resource;
		const char *why;
		double weight;

		if (!find_resource(item->string, &resource)) {
			if (r->variant == SCORE_UPSTREAM)
				continue;
			return at(r, "is neither cpu nor memory", ".%.64s", item->string);
		}
		why = read_number(item, &weight);
		if (why)
			return at(r, why, ".%s", item->string);
		r->args->values.risk_limit_weights[resource] = weight;
	}
	return NULL;
}

/* --- Peaks ------------------------------------------------------------------------------------ */

static const char *read_model(const struct reader *r, const cJSON *object,
			      struct power_model *model)
{
	static const char *const names[] = {"k0", "k1", "k2"};
	double *const members[] = {&model->k0, &model->k1, &model->k2};

	*model = (struct power_model){object->string, 0, 0, 0};
	if (!cJSON_IsObject(object))
		return at(r, "must be an object {k0, k1, k2}", ".%.128s", object->string);
	for (const cJSON *item = object->child; item; item = item->next) {
		size_t i = 0;

		while (i < 3 && strcasecmp(item->string, names[i]) != 0)
			i++;
		if (i == 3)
			return at(r, "is none of k0, k1, k2", ".%.128s.%.64s", object->string,
				  item->string);
		if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
			return at(r, "must be a finite number", ".%.128s.%.64s", object->string,
				  item->string);
		*members[i] = item->valuedouble;
	}
	return NULL;
}

static const char *arg_power_model(const struct reader *r, const cJSON *value)
{
	struct scores_args *args = r->args;
	size_t count = 0;

	if (!cJSON_IsObject(value))
		return "must be an object of nodes and their models";
	free(args->models);
	args->models = mem_zalloc((size_t)cJSON_GetArraySize(value) + 1, sizeof(*args->models));
	args->values.power_models = args->models;
	args->values.power_model_count = 0;
	for (const cJSON *item = value->child; item; item = item->next) {
		const char *why = read_model(r, item, &args->models[count++]);

		if (why)
			return why;
	}
	array_sort(args->models, count, sizeof(*args->models), array_compare_text);
	for (size_t i = 1; i < count; i++)
		if (strcmp(args->models[i - 1].node, args->models[i].node) == 0)
			return at(r, "is there twice", ".%.128s", args->models[i].node);
	args->values.power_model_count = count;
	return NULL;
}

/* --- NodeResourcesAllocatable and LimitAware -------------------------------------------------- */

/* Its weight, 0 so far; NULL for a resource that the plugin does not know, or one too many. */
static int64_t *weight_of(const struct reader *r, const char *name, const char **why)
{
	struct score_args *args = &r->args->values;
	bool limits = r->plugin == PLUGIN_LIMIT_AWARE;
	enum score_resource resource;

	if (find_resource(name, &resource))
		return limits ? &args->limit_weights[resource]
			      : &args->allocatable_weights[resource];
	*why = limits ? "must be cpu, memory, ephemeral-storage, hugepages-SIZE or an extended "
			"resource such as example.com/gpu"
		      : "must be cpu or memory: no other resource is known here";
	if (!limits || !resource_is_limited(name))
		return NULL;
	for (size_t i = 0; i < args->limit_other_count; i++)
		if (strcmp(args->limit_others[i].name, name) == 0)
			return &args->limit_others[i].weight;
	*why = "is one resource too many beyond cpu and memory";
	if (args->limit_other_count == SCORE_OTHERS_MAX)
		return NULL;
	args->limit_others[args->limit_other_count].name = name;
	return &args->limit_others[args->limit_other_count++].weight;
}

static const char *read_resource(const struct reader *r, const cJSON *item, size_t i)
{
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, "name");
	const cJSON *weight = cJSON_GetObjectItemCaseSensitive(item, "weight");
	const char *why = "must be the name of a resource";
	int64_t *out = NULL;

	if (!cJSON_IsObject(item))
		return at(r, "must be an object {name, weight}", "[%zu]", i);
	for (const cJSON *member = item->child; member; member = member->next)
		if (member != name && member != weight)
			return at(r, "is neither name nor weight", "[%zu].%.64s", i,
				  member->string);
	if (cJSON_IsString(name))
		out = weight_of(r, name->valuestring, &why);
	if (!out)
		return at(r, why, "[%zu].name", i);
	if (*out)
		return at(r, "is there twice", "[%zu].name", i);
	if (!cJSON_IsNumber(weight) || !is_whole(weight->valuedouble) || weight->valuedouble <= 0)
		return at(r, "must be a whole number above 0", "[%zu].weight", i);
	*out = (int64_t)weight->valuedouble;
	return NULL;
}

static const char *arg_resources(const struct reader *r, const cJSON *value)
{
	struct score_args *out = &r->args->values;
	size_t i = 0;

	if (!cJSON_IsArray(value) || !value->child)
		return "must be a list of at least one {name, weight}";
	if (r->plugin == PLUGIN_LIMIT_AWARE) {
		memset(out->limit_weights, 0, sizeof(out->limit_weights));
		memset(out->limit_others, 0, sizeof(out->limit_others));
		out->limit_other_count = 0;
	} else {
		memset(out->allocatable_weights, 0, sizeof(out->allocatable_weights));
	}
	for (const cJSON *item = value->child; item; item = item->next) {
		const char *why = read_resource(r, item, i++);

		if (why)
			return why;
	}
	return NULL;
}

/* Whether the value is one of the two texts; *second: the latter. */
static bool is_either(const cJSON *value, const char *one, const char *other, bool *second)
{
	const char *text = cJSON_GetStringValue(value);

	*second = text && strcmp(text, other) == 0;
	return *second || (text && strcmp(text, one) == 0);
}

static const char *arg_mode(const struct reader *r, const cJSON *value)
{
	bool most;

	if (!is_either(value, "Least", "Most", &most))
		return "must be Least or Most";
	r->args->values.allocatable_mode = most ? ALLOCATABLE_MOST : ALLOCATABLE_LEAST;
	return NULL;
}

static int64_t *unlimited_of(struct score_args *args, const char *name)
{
	enum score_resource resource;

	if (strcmp(name, resource_name(RESOURCE_EPHEMERAL_STORAGE)) == 0)
		return &args->unlimited_storage;
	return find_resource(name, &resource) ? &args->unlimited[resource] : NULL;
}

static const char *arg_unlimited(const struct reader *r, const cJSON *value)
{
	if (r->variant == SCORE_UPSTREAM)
		return "is not an argument of variant upstream, where no limit counts as nothing";
	if (cJSON_IsString(value) && strcmp(value->valuestring, "allocatable") == 0) {
		score_args_unlimited_allocatable(&r->args->values);
		return NULL;
	}
	if (!cJSON_IsObject(value))
		return "must be \"allocatable\", or an object such as "
		       "{\"cpu\": \"2\", \"memory\": \"4Gi\"}";
	for (const cJSON *item = value->child; item; item = item->next) {
		bool cpu = strcmp(item->string, "cpu") == 0;
		int64_t amount, *out = unlimited_of(&r->args->values, item->string);

		if (!out)
			return at(r, "is none of cpu, memory, ephemeral-storage", ".%.64s",
				  item->string);
		if (object_json_quantity(item, cpu ? quantity_parse_milli : quantity_parse_units,
					 &amount, NULL) ||
		    amount <= 0)
			return at(r, "must be a quantity above 0", ".%s", item->string);
		*out = amount;
	}
	return NULL;
}

static const char *arg_init(const struct reader *r, const cJSON *value)
{
	if (r->variant == SCORE_UPSTREAM)
		return "is not an argument of variant upstream, which always counts them";
	return is_either(value, "count", "ignore", &r->args->values.init_ignored)
		       ? NULL
		       : "must be count or ignore";
}

static const char *arg_normalization(const struct reader *r, const cJSON *value)
{
	if (r->variant == SCORE_UPSTREAM)
		return "is not an argument of variant upstream, which always takes the extremes";
	return is_either(value, "MinMax", "Quantiles", &r->args->values.quantiles)
		       ? NULL
		       : "must be MinMax or Quantiles";
}

/* --- where Trimaran gets its metrics ---------------------------------------------------------- */

static const char NOT_OURS[] =
	"has no effect, since measurements come from the agents (variant upstream overlooks it)";

static const char *arg_watcher_address(const struct reader *r, const cJSON *value)
{
	if (r->variant != SCORE_UPSTREAM)
		return NOT_OURS;
	return cJSON_IsString(value) ? NULL : "must be a string";
}

static const char *arg_metric_provider(const struct reader *r, const cJSON *value)
{
	static const char *const members[] = {"type", "address", "token", NULL};
	static const char *const types[] = {"KubernetesMetricsServer", "Prometheus", "SignalFx", "",
					    NULL};
	const char *type;

	if (r->variant != SCORE_UPSTREAM)
		return NOT_OURS;
	if (!cJSON_IsObject(value))
		return "must be an object";
	for (const cJSON *item = value->child; item; item = item->next) {
		bool flag = strcmp(item->string, "insecureSkipVerify") == 0;

		if (!flag && !array_has_text(members, item->string))
			return at(r, "is not a member of it", ".%.64s", item->string);
		if (flag ? !cJSON_IsBool(item) : !cJSON_IsString(item))
			return at(r, flag ? "must be true or false" : "must be a string", ".%s",
				  item->string);
	}
	type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(value, "type"));
	if (type && !array_has_text(types, type))
		return at(r, "must be KubernetesMetricsServer, Prometheus or SignalFx", ".type");
	return NULL;
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct arg {
	enum score_plugin_id plugin;
	const char *name;
	read_arg *read;
} table[] = {
	{PLUGIN_TARGET_LOAD_PACKING, "defaultRequests", arg_default_requests},
	{PLUGIN_TARGET_LOAD_PACKING, "useLimits", arg_use_limits},
	{PLUGIN_TARGET_LOAD_PACKING, "watcherAddress", arg_watcher_address},
	{PLUGIN_TARGET_LOAD_PACKING, "metricProvider", arg_metric_provider},
	{PLUGIN_LOAD_VARIATION_RISK_BALANCING, "watcherAddress", arg_watcher_address},
	{PLUGIN_LOAD_VARIATION_RISK_BALANCING, "metricProvider", arg_metric_provider},
	{PLUGIN_LOW_RISK_OVER_COMMITMENT, "riskLimitWeights", arg_risk_weights},
	{PLUGIN_LOW_RISK_OVER_COMMITMENT, "watcherAddress", arg_watcher_address},
	{PLUGIN_LOW_RISK_OVER_COMMITMENT, "metricProvider", arg_metric_provider},
	{PLUGIN_PEAKS, "nodePowerModel", arg_power_model},
	{PLUGIN_PEAKS, "NodePowerModel", arg_power_model},
	{PLUGIN_PEAKS, "watcherAddress", arg_watcher_address},
	{PLUGIN_PEAKS, "WatcherAddress", arg_watcher_address},
	{PLUGIN_ALLOCATABLE, "resources", arg_resources},
	{PLUGIN_ALLOCATABLE, "mode", arg_mode},
	{PLUGIN_LIMIT_AWARE, "resources", arg_resources},
	{PLUGIN_LIMIT_AWARE, "unlimited", arg_unlimited},
	{PLUGIN_LIMIT_AWARE, "init", arg_init},
	{PLUGIN_LIMIT_AWARE, "normalization", arg_normalization},
};

/* Arguments of score_numbers[] that stand by themselves; those with a dot are members of others. */
static const char *read_number_row(const struct reader *r, const char *name, const cJSON *value)
{
	for (const struct score_number *n = score_numbers; n < score_numbers + SCORE_NUMBERS; n++) {
		const char *why;
		double number;

		if (n->plugin != r->plugin || strchr(n->name, '.') || strcmp(n->name, name) != 0)
			continue;
		if (n->type == SCORE_TEXT && cJSON_IsString(value))
			why = read_text(value->valuestring, &number);
		else
			why = read_number(value, &number);
		if ((n->type == SCORE_WHOLE || n->type == SCORE_PERCENT) &&
		    (why || !is_whole(number)))
			why = n->type == SCORE_PERCENT ? "must be a whole number of percent"
						       : "must be a whole number";
		if (!why)
			score_number_set(n, &r->args->values, number);
		return why;
	}
	return "is not an argument of it";
}

static const struct arg *find(enum score_plugin_id plugin, const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].plugin == plugin && strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

int scores_args_parse(struct scores_args *args, enum score_plugin_id plugin,
		      enum score_variant variant, const cJSON *object, char field[SCORES_FIELD_MAX],
		      struct error *error)
{
	char below[SCORES_FIELD_MAX] = "";
	struct reader r = {args, plugin, variant, below};
	const char *name;

	field[0] = '\0';
	if (!cJSON_IsObject(object))
		return error_fail(error, -EINVAL, "must be an object of arguments");
	for (const cJSON *item = object->child; item; item = item->next) {
		const struct arg *arg = find(plugin, item->string);
		const char *why =
			arg ? arg->read(&r, item) : read_number_row(&r, item->string, item);

		if (!why)
			continue;
		snprintf(field, SCORES_FIELD_MAX, "%.64s%.160s", item->string, below);
		return error_fail(error, -EINVAL, "%s", why);
	}
	if (!score_args_check(&args->values, plugin, variant, &name, error))
		return 0;
	snprintf(field, SCORES_FIELD_MAX, "%s", name);
	return -EINVAL;
}

void scores_args_fini(struct scores_args *args)
{
	free(args->models);
	args->models = NULL;
	args->values.power_models = NULL;
	args->values.power_model_count = 0;
}
