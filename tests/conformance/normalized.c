/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of the plugins that compare nodes: limits, allocatable resources, and Peaks' normalisation
 * by itself.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/scores_request.h"
#include "aggregator/policy/score/plugin.h"
#include "shared/mem.h"
#include "tests/conformance/values.h"
#include "tests/score_fixture.h"

/* --- Peaks ------------------------------------------------------------------------------------ */

enum outcome run_peaks_normalize(const cJSON *c, struct error *error)
{
	const struct score_query q = {.variant = SCORE_UPSTREAM};
	const cJSON *raw = values_get(values_get(c, "input"), "raw");
	const cJSON *want = values_get(values_get(c, "expect"), "scores"), *item;
	struct score_scale scale = {0};
	int i = 0;

	if (!cJSON_IsArray(raw) || !cJSON_IsArray(want) || !raw->child ||
	    cJSON_GetArraySize(raw) != cJSON_GetArraySize(want))
		return values_fail(error, "a case must have as many raw values as scores");
	cJSON_ArrayForEach (item, raw)
		score_scale_add(&scale, item->valuedouble);
	cJSON_ArrayForEach (item, raw) {
		struct score_result r = {.raw = item->valuedouble};

		peaks_normalize(&q, &scale, &r);
		if ((double)r.score != cJSON_GetArrayItem(want, i++)->valuedouble)
			return values_fail(error, "score %d is %lld", i - 1, (long long)r.score);
	}
	return PASSED;
}

/* --- shared ----------------------------------------------------------------------------------- */

static int64_t *member_of(const char *name, int64_t *cpu, int64_t *mem)
{
	if (name && strcmp(name, "cpu") == 0)
		return cpu;
	return name && strcmp(name, "memory") == 0 ? mem : NULL;
}

static bool read_weights(const cJSON *args, int64_t weights[SCORE_RESOURCES], struct error *error)
{
	const cJSON *list = values_get(args, "resources"), *item;

	memset(weights, 0, SCORE_RESOURCES * sizeof(*weights));
	cJSON_ArrayForEach (item, list) {
		int64_t *weight = member_of(cJSON_GetStringValue(values_get(item, "name")),
					    &weights[SCORE_CPU], &weights[SCORE_MEMORY]);

		if (!weight || !values_int(item, "weight", weight, error)) {
			values_fail(error, "a resource must be cpu or memory, with a weight");
			return false;
		}
	}
	return true;
}

static struct score_node plain_node(const char *name)
{
	return (struct score_node){
		.name = name,
		.fallback = FALLBACK_WINDOW_15M,
		.measured = true,
		.cpu = {true, 0, 0},
		.mem = {true, 0, 0},
		.contention = NAN,
		.load = {.requests_known = true, .limits_known = true},
	};
}

/* --- NodeResourcesAllocatable ----------------------------------------------------------------- */

static bool score_allocatable(enum score_variant variant, const struct score_args *args,
			      const struct score_node *nodes, size_t count, const cJSON *want,
			      struct error *error)
{
	const struct pod_spec pod = {0};
	const struct score_query q = {.variant = variant, .args = args, .pod = &pod};
	struct score_scale scale;

	if (!cJSON_IsArray(want) || (size_t)cJSON_GetArraySize(want) != count) {
		values_fail(error, "a case must expect a score for each node");
		return false;
	}
	score_fixture_scale(&q, PLUGIN_ALLOCATABLE, nodes, count, &scale);
	for (size_t i = 0; i < count; i++) {
		struct score_result r;

		score_node_by(&q, PLUGIN_ALLOCATABLE, &scale, &nodes[i], SCORE_TERMS, &r);
		if ((double)r.score != cJSON_GetArrayItem(want, (int)i)->valuedouble) {
			values_fail(error, "%s: %s gets %lld", score_variant_name(variant),
				    nodes[i].name, (long long)r.score);
			return false;
		}
	}
	return true;
}

enum outcome run_allocatable(const cJSON *c, struct error *error)
{
	const cJSON *list = values_get(c, "nodes"), *args = values_get(c, "args"), *item;
	const cJSON *better = values_get(values_get(c, "want_better"), "scores");
	const char *mode = cJSON_GetStringValue(values_get(args, "mode"));
	struct score_node *nodes;
	struct score_args values;
	size_t count = 0;
	bool ok;

	score_args_default(&values, SCORE_UPSTREAM);
	if (!mode || !read_weights(args, values.allocatable_weights, error))
		return values_fail(error, "a case must have resources and a mode");
	values.allocatable_mode = strcmp(mode, "Most") == 0 ? ALLOCATABLE_MOST : ALLOCATABLE_LEAST;
	nodes = mem_zalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof(*nodes));
	ok = true;
	cJSON_ArrayForEach (item, list) {
		struct score_node *n = &nodes[count++];

		*n = plain_node(cJSON_GetStringValue(values_get(item, "name")));
		ok = ok && values_int(item, "cpu_m", &n->cpu_allocatable_milli, error) &&
		     values_int(item, "mem_b", &n->mem_allocatable_bytes, error);
	}
	ok = ok && score_allocatable(SCORE_UPSTREAM, &values, nodes, count,
				     values_get(values_get(c, "expect"), "scores"), error);
	ok = ok &&
	     (!better || score_allocatable(SCORE_CORRECTED, &values, nodes, count, better, error));
	free(nodes);
	return ok ? PASSED : FAILED;
}

/* The arguments as a request gives them must be refused at that place, in every variant. */
enum outcome run_allocatable_error(const cJSON *c, struct error *error)
{
	static const char *const variants[] = {"upstream", "corrected"};
	const char *at = cJSON_GetStringValue(values_get(values_get(c, "expect"), "error_at"));
	char *args = cJSON_PrintUnformatted(values_get(c, "args"));
	enum outcome outcome = at && args ? PASSED : values_fail(error, "a case must have args");

	for (size_t i = 0; outcome == PASSED && i < 2; i++) {
		char *body = mem_printf("{\"variant\":\"%s\",\"args\":{"
					"\"NodeResourcesAllocatable\":%s}}",
					variants[i], args);
		char *want = mem_printf("args.NodeResourcesAllocatable.%s", at);
		char field[SCORES_FIELD_MAX] = "";
		struct scores_request rq;

		if (!scores_request_parse(body, strlen(body), NULL, &rq, field, error)) {
			scores_request_fini(&rq);
			outcome = values_fail(error, "%s accepts it", variants[i]);
		} else if (strcmp(field, want) != 0) {
			outcome = values_fail(error, "%s refuses %s", variants[i], field);
		}
		free(body);
		free(want);
	}
	cJSON_free(args);
	return outcome;
}

/* --- LimitAware ------------------------------------------------------------------------------- */

struct limit_case {
	struct scores_args args;
	struct container_spec container;
	struct pod_spec pod;
	struct pod_sums all;
	struct score_node *nodes; /* owned */
	struct score_other *others; /* owned: as many as args names for each node */
	size_t count;
};

/* As {"cpu": 1000, "x/gpu": 2} gives them, and 0 where it does not. */
static bool read_limit_amounts(const cJSON *object, const struct score_args *args, int64_t *cpu,
			       int64_t *mem, int64_t others[SCORE_OTHERS_MAX], struct error *error)
{
	*cpu = *mem = 0;
	memset(others, 0, SCORE_OTHERS_MAX * sizeof(*others));
	for (const cJSON *item = object ? object->child : NULL; item; item = item->next) {
		int64_t *member = member_of(item->string, cpu, mem);

		for (size_t i = 0; !member && i < args->limit_other_count; i++)
			if (strcmp(args->limit_others[i].name, item->string) == 0)
				member = &others[i];
		if (!member && resource_is_limited(item->string))
			continue;
		if (!member) {
			values_fail(error, "unknown resource \"%s\"", item->string);
			return false;
		}
		if (!values_int(object, item->string, member, error))
			return false;
	}
	return true;
}

static void limit_sums(struct pod_load *load, int64_t limits)
{
	load->limits = load->limits_running = load->limits_trimaran = load->limits_containers =
		limits;
}

static bool read_limit_node(const cJSON *item, struct limit_case *lc, size_t at,
			    struct error *error)
{
	static const char *const keys[] = {"name", "allocatable", "limits", NULL};
	const struct score_args *args = &lc->args.values;
	struct score_other *others = &lc->others[at * SCORE_OTHERS_MAX];
	int64_t there[SCORE_OTHERS_MAX], limits[SCORE_OTHERS_MAX], cpu, mem;
	struct score_node *n = &lc->nodes[at];

	*n = plain_node(cJSON_GetStringValue(values_get(item, "name")));
	if (!n->name || !values_only(item, keys, error) ||
	    !read_limit_amounts(values_get(item, "allocatable"), args, &n->cpu_allocatable_milli,
				&n->mem_allocatable_bytes, there, error) ||
	    !read_limit_amounts(values_get(item, "limits"), args, &cpu, &mem, limits, error))
		return false;
	limit_sums(&n->load.of[SCORE_CPU], cpu);
	limit_sums(&n->load.of[SCORE_MEMORY], mem);
	for (size_t i = 0; i < args->limit_other_count; i++) {
		others[i].allocatable = there[i];
		limit_sums(&others[i].load, limits[i]);
	}
	n->others = others;
	/* What the case does not ask about must not keep the node out. */
	if (!n->cpu_allocatable_milli)
		n->cpu_allocatable_milli = 1;
	if (!n->mem_allocatable_bytes)
		n->mem_allocatable_bytes = 1;
	return true;
}

static bool read_limit_case(const cJSON *c, struct limit_case *out, struct error *error)
{
	const cJSON *list = values_get(c, "nodes"), *item;
	const struct score_args *args = &out->args.values;
	size_t nodes = (size_t)cJSON_GetArraySize(list);
	struct resource_list *limits = &out->container.limits;
	int64_t others[SCORE_OTHERS_MAX];
	char field[SCORES_FIELD_MAX];

	score_args_default(&out->args.values, SCORE_UPSTREAM);
	out->pod = (struct pod_spec){.container_count = 1, .containers = &out->container};
	*limits = (struct resource_list){.has_cpu = true, .has_mem = true};
	if (scores_args_parse(&out->args, PLUGIN_LIMIT_AWARE, SCORE_CORRECTED,
			      values_get(c, "args"), field, error) ||
	    !read_limit_amounts(values_get(c, "pod_limit"), args, &limits->cpu_milli,
				&limits->mem_bytes, others, error))
		return false;
	for (size_t i = 0; i < args->limit_other_count; i++)
		resources_set_named(&out->all.limits, args->limit_others[i].name, others[i]);
	out->nodes = mem_zalloc(nodes + 1, sizeof(*out->nodes));
	out->others = mem_zalloc(nodes + 1, SCORE_OTHERS_MAX * sizeof(*out->others));
	cJSON_ArrayForEach (item, list) {
		if (!read_limit_node(item, out, out->count++, error))
			return false;
	}
	return true;
}

static double term_of(const struct score_result *r, const char *name)
{
	for (size_t i = 0; i < r->term_count; i++)
		if (strcmp(r->terms[i].name, name) == 0)
			return r->terms[i].value;
	return NAN;
}

static bool check_limit_node(const cJSON *expect, const char *node, const struct score_result *r,
			     struct error *error)
{
	return values_same(values_get(expect, "raw_exact"), node, r->raw, error) &&
	       values_same_int(values_get(expect, "raw_int64_trunc"), node, (int64_t)r->raw,
			       error) &&
	       values_same(values_get(expect, "ratio_before"), node,
			   term_of(r, "cpuLimitRatioBefore"), error) &&
	       values_same(values_get(expect, "ratio_after"), node, term_of(r, "cpuLimitRatio"),
			   error) &&
	       values_same_int(values_get(expect, "scores"), node, r->score, error);
}

static bool score_limit_case(enum score_variant variant, const struct limit_case *lc,
			     const cJSON *expect, struct error *error)
{
	/* The last two tell of another plugin, whose inputs a case does not have. */
	static const char *const keys[] = {
		"raw_exact",   "scores",    "raw_int64_trunc",	    "ratio_before",
		"ratio_after", "placement", "request_ratio_before", "least_allocated_would_pick",
		NULL};
	const struct score_query q = {
		.variant = variant, .args = &lc->args.values, .pod = &lc->pod, .all = &lc->all};
	const char *placement = cJSON_GetStringValue(values_get(expect, "placement"));
	struct score_scale scale;

	if (!values_get(expect, "scores") || !values_only(expect, keys, error)) {
		values_fail(error, "a case must expect scores");
		return false;
	}
	score_fixture_scale(&q, PLUGIN_LIMIT_AWARE, lc->nodes, lc->count, &scale);
	for (size_t i = 0; i < lc->count; i++) {
		struct score_result r;

		score_node_by(&q, PLUGIN_LIMIT_AWARE, &scale, &lc->nodes[i], SCORE_TERMS, &r);
		if (!check_limit_node(expect, lc->nodes[i].name, &r, error)) {
			error_prefix(error, "%s, %s", score_variant_name(variant),
				     lc->nodes[i].name);
			return false;
		}
		if (placement && (strcmp(placement, lc->nodes[i].name) == 0) != (r.score == 100)) {
			values_fail(error, "%s gets %lld", lc->nodes[i].name, (long long)r.score);
			return false;
		}
	}
	return true;
}

enum outcome run_limit_aware(const cJSON *c, struct error *error)
{
	const cJSON *better = values_get(c, "want_better");
	struct limit_case lc = {.nodes = NULL};
	bool ok =
		read_limit_case(c, &lc, error) &&
		score_limit_case(SCORE_UPSTREAM, &lc, values_get(c, "expect"), error) &&
		(!cJSON_IsObject(better) || score_limit_case(SCORE_CORRECTED, &lc, better, error));

	free(lc.nodes);
	free(lc.others);
	pod_sums_fini(&lc.all);
	return ok ? PASSED : FAILED;
}
