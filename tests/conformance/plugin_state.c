/* SPDX-License-Identifier: Apache-2.0 */
/* Cases about what surrounds a score: defaulting of arguments, the account of recent pods. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/recent_pods.h"
#include "aggregator/policy/score/score.h"
#include "shared/mem.h"
#include "tests/conformance/values.h"

/* One argument by the key a case gives it; or NULL. */
static const struct score_number *find_number(enum score_plugin_id plugin, const char *key)
{
	size_t i = 0;

	if (strcmp(key, "defaultRequests.cpu_m") == 0)
		key = "defaultRequests.cpu";
	while (i < SCORE_NUMBERS &&
	       (score_numbers[i].plugin != plugin || strcmp(score_numbers[i].name, key) != 0))
		i++;
	return i < SCORE_NUMBERS ? &score_numbers[i] : NULL;
}

/* Where a Trimaran plugin gets its metrics from; here they come from the agents. */
struct provider {
	const char *watcher_address; /* NULL: none, the plugin asks the provider itself */
	const char *type; /* NULL or "": not given */
	bool has_insecure_skip_verify, insecure_skip_verify;
};

/* What a case is about: plugin SCORE_PLUGINS is "any". */
struct config {
	enum score_plugin_id plugin;
	struct score_args args;
	struct provider provider;
};

static double number_of(const cJSON *item)
{
	return cJSON_IsString(item) ? strtod(item->valuestring, NULL) : item->valuedouble;
}

static bool set_provider(struct provider *p, const cJSON *item)
{
	if (strcmp(item->string, "watcherAddress") == 0)
		p->watcher_address = cJSON_GetStringValue(item);
	else if (strcmp(item->string, "metricProvider.type") == 0)
		p->type = cJSON_GetStringValue(item);
	else if (strcmp(item->string, "metricProvider.insecureSkipVerify") == 0)
		*p = (struct provider){p->watcher_address, p->type, true, cJSON_IsTrue(item)};
	else
		return strcmp(item->string, "metricProvider.address") == 0 ||
		       strcmp(item->string, "metricProvider.token") == 0;
	return true;
}

static bool set_value(struct config *c, const cJSON *item, const char *key, struct error *error)
{
	const struct score_number *number = find_number(c->plugin, key);

	if (number)
		score_number_set(number, &c->args, number_of(item));
	else if (!set_provider(&c->provider, item))
		return values_fail(error, "unknown argument \"%s\"", key) == PASSED;
	return true;
}

static bool same_provider(const struct provider *p, const cJSON *item, struct error *error)
{
	const char *want = cJSON_GetStringValue(item), *got = NULL;

	if (strcmp(item->string, "metricProvider.insecureSkipVerify") == 0)
		return cJSON_IsTrue(item) ==
		       (p->has_insecure_skip_verify && p->insecure_skip_verify);
	if (strcmp(item->string, "watcherAddress") == 0)
		got = p->watcher_address;
	else if (strcmp(item->string, "metricProvider.type") == 0)
		got = p->type;
	if (want && got && strcmp(want, got) == 0)
		return true;
	values_fail(error, "%s is %s", item->string, got ? got : "not known");
	return false;
}

static bool same_value(struct config *c, const cJSON *item, const char *key, struct error *error)
{
	const struct score_number *number = find_number(c->plugin, key);
	double got = number ? score_number_get(number, &c->args) : 0;

	if (!number)
		return same_provider(&c->provider, item, error);
	if (got == number_of(item))
		return true;
	values_fail(error, "%s is %g, expected %g", key, got, number_of(item));
	return false;
}

typedef bool on_value(struct config *c, const cJSON *item, const char *key, struct error *error);

/* Every value of the object; those of an object within by "outer.inner". */
static bool each_value(struct config *c, const cJSON *object, on_value *each, struct error *error)
{
	for (const cJSON *item = object ? object->child : NULL; item; item = item->next) {
		if (!cJSON_IsObject(item)) {
			if (!each(c, item, item->string, error))
				return false;
			continue;
		}
		for (const cJSON *inner = item->child; inner; inner = inner->next) {
			char *key = mem_printf("%s.%s", item->string, inner->string);
			bool ok = each(c, inner, key, error);

			free(key);
			if (!ok)
				return false;
		}
	}
	return true;
}

/* KubernetesMetricsServer where neither is given; Prometheus is not verified unless asked for. */
static void default_provider(struct provider *p)
{
	bool given = p->type && p->type[0];

	if (!p->watcher_address && !given)
		p->type = "KubernetesMetricsServer";
	if (given && strcmp(p->type, "Prometheus") == 0 && !p->has_insecure_skip_verify)
		p->has_insecure_skip_verify = p->insecure_skip_verify = true;
}

enum outcome run_defaults(const cJSON *c, struct error *error)
{
	const cJSON *input = values_get(c, "input"), *expect = values_get(c, "expect");
	const char *name = cJSON_GetStringValue(values_get(input, "plugin"));
	struct config config = {.plugin = SCORE_PLUGINS};
	const char *field;

	if (!name || !cJSON_IsObject(expect) || !expect->child)
		return values_fail(error, "a case must name a plugin and expect arguments");
	if (strcmp(name, "any") != 0 && score_plugin_find(name, &config.plugin))
		return values_fail(error, "unknown plugin \"%s\"", name);
	score_args_default(&config.args, SCORE_UPSTREAM);
	if (!each_value(&config, values_get(input, "args"), set_value, error))
		return FAILED;
	if (score_args_check(&config.args, config.plugin, SCORE_UPSTREAM, &field, error))
		return FAILED;
	default_provider(&config.provider);
	return each_value(&config, expect, same_value, error) ? PASSED : FAILED;
}

/* Ages become times before now = 0; the oldest stand first, pods assigned now last. */
static size_t read_placements(const cJSON *input, int64_t **out, struct error *error)
{
	const cJSON *ages = values_get(input, "ages_s");
	int64_t assigned = 0;
	size_t count = 0;

	if (!cJSON_IsArray(ages) || !values_int(input, "assigned_now", &assigned, error) ||
	    assigned < 0 || assigned > 1000) {
		values_fail(error, "a case must have ages_s and assigned_now");
		return 0;
	}
	*out = mem_zalloc((size_t)cJSON_GetArraySize(ages) + (size_t)assigned + 1, sizeof(**out));
	for (const cJSON *age = ages->child; age; age = age->next)
		(*out)[count++] = cJSON_IsNull(age) ? INT64_MIN : -(int64_t)age->valuedouble;
	return count + (size_t)assigned;
}

/* Upstream forgets none where all are old, so they stay until the next pod lands on the node. */
static size_t expired(const int64_t *placed_s, size_t count)
{
	size_t old = 0;

	while (old < count && !recent_pod_counts(placed_s[old], 0))
		old++;
	return old < count ? old : 0;
}

enum outcome run_recent_cache_cleanup(const cJSON *c, struct error *error)
{
	const cJSON *kept = values_get(values_get(c, "expect"), "kept");
	int64_t *placed = NULL;
	size_t count = read_placements(values_get(c, "input"), &placed, error), next, wanted;
	bool same;

	if (!placed)
		return FAILED;
	next = expired(placed, count);
	free(placed);
	if (!cJSON_IsArray(kept))
		return values_fail(error, "a case must expect what is kept");
	wanted = (size_t)cJSON_GetArraySize(kept);
	same = wanted == count - next;
	for (const cJSON *item = kept->child; same && item; item = item->next)
		same = item->valuedouble == (double)next++;
	return same ? PASSED
		    : values_fail(error, "keeps the newest %zu, expected %zu", count - next,
				  wanted);
}
