/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slack targets and CapacityBuffers. Cases of kind *_seed give what the formulas of the proposal
 * come to as they are written; they are held against what the corrected ones make of the same
 * cluster: what was meant, and never less than nothing.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/buffer_replicas.h"
#include "aggregator/policy/slack/slack_target.h"
#include "shared/arith.h"
#include "shared/mem.h"
#include "tests/conformance/values.h"

#define MIB (1024.0 * 1024)

enum { NODES_MAX = 64, SHAPES_MAX = 16 };

struct example {
	struct slack_target_input in;
	struct slack_amount nodes[NODES_MAX], shapes[SHAPES_MAX], sum;
};

/* [millicores, MiB] */
static bool read_pair(const cJSON *pair, struct slack_amount *out, struct error *error)
{
	const cJSON *cpu = cJSON_GetArrayItem(pair, 0), *mem = cJSON_GetArrayItem(pair, 1);

	if (!cJSON_IsNumber(cpu) || !cJSON_IsNumber(mem) || cJSON_GetArraySize(pair) != 2) {
		values_fail(error, "a pair of numbers is missing");
		return false;
	}
	*out = (struct slack_amount){(int64_t)cpu->valuedouble,
				     (int64_t)ceil(mem->valuedouble * MIB)};
	return true;
}

static bool read_pairs(const cJSON *list, struct slack_amount *of, size_t room, size_t *count,
		       struct error *error)
{
	const cJSON *item;

	*count = 0;
	cJSON_ArrayForEach (item, list) {
		if (*count == room || !read_pair(item, &of[(*count)++], error))
			return false;
	}
	return true;
}

static bool read_nodes(const cJSON *list, struct example *e, struct error *error)
{
	static const char *const keys[] = {"count", "cpu_m", "mem_mi", NULL};
	const cJSON *item;

	cJSON_ArrayForEach (item, list) {
		int64_t count, cpu, mem;
		struct slack_amount node;

		if (!values_only(item, keys, error) || !values_int(item, "count", &count, error) ||
		    !values_int(item, "cpu_m", &cpu, error) ||
		    !values_int(item, "mem_mi", &mem, error))
			return false;
		node = (struct slack_amount){cpu, mem * (int64_t)MIB};
		slack_amount_add(&e->sum, &node, count);
		while (count-- > 0 && e->in.node_count < NODES_MAX)
			e->nodes[e->in.node_count++] = node;
	}
	return true;
}

static bool read_example(const cJSON *c, struct example *e, struct error *error)
{
	static const char *const keys[] = {"name", "kind",   "nodes", "extra", "granularity",
					   "rate", "shapes", "want",  NULL};
	int64_t granularity, rate_ppm;
	double rate;
	char *text;
	int err;

	*e = (struct example){.in = {.nodes = e->nodes, .shapes = e->shapes}};
	if (!values_only(c, keys, error) || !read_nodes(values_get(c, "nodes"), e, error) ||
	    !values_int(c, "granularity", &granularity, error) ||
	    !read_pairs(values_get(c, "shapes"), e->shapes, SHAPES_MAX, &e->in.shape_count, error))
		return false;
	e->in.granularity = (uint32_t)granularity;
	if (values_get(c, "extra"))
		return read_pair(values_get(c, "extra"), &e->in.extra, error);
	if (!values_number(c, "rate", &rate, error))
		return false;
	text = mem_printf("%g", rate);
	err = slack_rate_parse(text, &rate_ppm, error);
	free(text);
	e->in.extra = slack_extra(&e->sum, rate_ppm);
	return !err;
}

/* Memory to a byte a unit, since the vectors have fractions of one. */
static bool same_amount(const cJSON *want, const struct slack_amount *got, int64_t units,
			const char *what, struct error *error)
{
	struct slack_amount expected;

	if (!want)
		return true;
	if (!read_pair(want, &expected, error))
		return false;
	if (expected.cpu_milli == got->cpu_milli &&
	    llabs(expected.mem_bytes - got->mem_bytes) <= units)
		return true;
	values_fail(error, "%s is %" PRId64 "m, %" PRId64 " bytes", what, got->cpu_milli,
		    got->mem_bytes);
	return false;
}

static bool same_cover(const cJSON *want, const struct slack_target *t, struct error *error)
{
	if (!want)
		return true;
	if ((size_t)cJSON_GetArraySize(want) != t->cover_count) {
		values_fail(error, "%zu members cover the shapes", t->cover_count);
		return false;
	}
	for (size_t i = 0; i < t->cover_count; i++)
		if (!same_amount(cJSON_GetArrayItem(want, (int)i), &t->cover[i], 0, "a member",
				 error))
			return false;
	return true;
}

/* All that is wanted of a target, but what only the literal formulas come to. */
static struct slack_amount total_of(const struct slack_target *t)
{
	struct slack_amount total = {0, 0};

	for (size_t i = 0; i < t->cover_count; i++)
		slack_amount_add(&total, &t->cover[i], 1);
	slack_amount_add(&total, &t->unit, t->unit_count);
	return total;
}

static bool same_target(const cJSON *want, const struct slack_target *t, struct error *error)
{
	struct slack_amount total = total_of(t);

	return same_amount(values_get(want, "unit"), &t->unit, 1, "the unit", error) &&
	       same_cover(values_get(want, "big"), t, error) &&
	       same_amount(values_get(want, "remaining"), &t->remaining, 0, "what remains",
			   error) &&
	       values_same_int(want, "count", t->unit_count, error) &&
	       same_amount(values_get(want, "total"), &total, t->unit_count, "the total", error);
}

enum outcome run_slack_target(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"unit", "big", "remaining", "count", "total", NULL};
	const cJSON *want = values_get(c, "want");
	struct slack_target t;
	struct example e;
	bool same;

	if (!values_only(want, keys, error) || !read_example(c, &e, error))
		return FAILED;
	slack_target_make(&e.in, &t);
	same = same_target(want, &t, error);
	slack_target_fini(&t);
	return same ? PASSED : FAILED;
}

/* Literally: as many units as the cluster holds. What was meant is the rate. */
enum outcome run_slack_v1_seed(const cJSON *c, struct error *error)
{
	const cJSON *want = values_get(c, "want");
	struct slack_target t;
	struct example e;
	int64_t literal;
	bool same;

	if (!read_example(c, &e, error))
		return FAILED;
	slack_target_make(&e.in, &t);
	literal = (int64_t)e.in.node_count * e.in.granularity;
	same = same_amount(values_get(want, "unit"), &t.unit, 1, "the unit", error) &&
	       values_same_int(want, "count", literal, error) &&
	       values_same_int(want, "total_cpu_m", literal * t.unit.cpu_milli, error) &&
	       values_same_int(want, "intended_cpu_m", total_of(&t).cpu_milli, error);
	slack_target_fini(&t);
	return same ? PASSED : FAILED;
}

/*
 * Literally: the pod with the most CPU and the pod with the most memory are subtracted, be they
 * one. What remains is nothing, and not less.
 */
enum outcome run_slack_v2_seed(const cJSON *c, struct error *error)
{
	struct slack_amount by_cpu = {0, 0}, by_mem = {0, 0}, literal;
	const cJSON *want = values_get(values_get(c, "want"), "remaining");
	struct slack_target t;
	struct example e;
	bool same;

	if (!read_example(c, &e, error))
		return FAILED;
	slack_target_make(&e.in, &t);
	for (size_t i = 0; i < e.in.shape_count; i++) {
		by_cpu = e.shapes[i].cpu_milli > by_cpu.cpu_milli ? e.shapes[i] : by_cpu;
		by_mem = e.shapes[i].mem_bytes > by_mem.mem_bytes ? e.shapes[i] : by_mem;
	}
	literal = e.in.extra;
	slack_amount_add(&literal, &by_cpu, -1);
	slack_amount_add(&literal, &by_mem, -1);
	same = same_amount(want, &literal, 0, "what remains literally", error);
	if (same && (t.remaining.cpu_milli < 0 || t.remaining.mem_bytes < 0 || t.cover_count != 1))
		same = values_fail(error, "less than nothing remains") == PASSED;
	slack_target_fini(&t);
	return same ? PASSED : FAILED;
}

enum outcome run_slack_slots(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"name", "kind", "free", "shape", "want", NULL};
	struct slack_amount free[NODES_MAX], shape;
	int64_t slots = 0;
	size_t count;

	if (!values_only(c, keys, error) ||
	    !read_pairs(values_get(c, "free"), free, NODES_MAX, &count, error) ||
	    !read_pair(values_get(c, "shape"), &shape, error))
		return FAILED;
	for (size_t i = 0; i < count; i++)
		slots = add_saturating(slots, slack_slots(&free[i], &shape));
	return values_same_int(c, "want", slots, error) ? PASSED : FAILED;
}

/* --- CapacityBuffers */

/* {cpu_m, mem, gpu}: what is not whole counts as one. */
static void read_resources(const cJSON *json, struct resources *out)
{
	const cJSON *item;

	*out = RESOURCES_NONE;
	cJSON_ArrayForEach (item, json) {
		const char *name = strcmp(item->string, "cpu_m") == 0 ? "cpu"
				   : strcmp(item->string, "mem") == 0 ? "memory"
								      : item->string;

		resources_set_named(out, name, (int64_t)ceil(item->valuedouble));
	}
}

static bool read_count(const cJSON *c, const char *key, int32_t *out)
{
	const cJSON *number = values_get(c, key);

	*out = cJSON_IsNumber(number) ? (int32_t)number->valuedouble : 0;
	return number != NULL;
}

static enum outcome check_refusal(const cJSON *c, const struct error *refused, struct error *error)
{
	const char *message = cJSON_GetStringValue(values_get(c, "want_message"));
	const char *told = message ? strstr(message, ": ") : NULL;

	if (!cJSON_IsTrue(values_get(c, "want_error")))
		return values_fail(error, "refused: %s", refused->text);
	if (told && strcmp(told + 2, refused->text) != 0)
		return values_fail(error, "refused by \"%s\"", refused->text);
	return PASSED;
}

enum outcome run_buffer_replicas(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {
		"from",	  "name",	  "replicas",	   "percentage", "scalable_replicas",
		"limits", "pod_requests", "want_replicas", "want_error", "want_message",
		NULL};
	struct buffer_spec b = {.has_limits = values_get(c, "limits") != NULL};
	struct error refused = {""};
	enum outcome outcome;
	int32_t got;

	if (!values_only(c, keys, error))
		return FAILED;
	b.has_replicas = read_count(c, "replicas", &b.replicas);
	b.has_percentage = read_count(c, "percentage", &b.percentage);
	b.has_scalable = read_count(c, "scalable_replicas", &b.scalable_replicas);
	read_resources(values_get(c, "limits"), &b.limits);
	read_resources(values_get(c, "pod_requests"), &b.requests);
	if (buffer_replicas(&b, &got, &refused))
		outcome = check_refusal(c, &refused, error);
	else if (cJSON_IsTrue(values_get(c, "want_error")))
		outcome = values_fail(error, "%d, and not refused", got);
	else
		outcome = values_same_int(c, "want_replicas", got, error) ? PASSED : FAILED;
	resources_fini(&b.limits);
	resources_fini(&b.requests);
	return outcome;
}
