/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of single nodes: utilization, eligibility, unremovable, planner_unneeded_limit, and their
 * order, candidate_order.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/drain/drain_eligibility.h"
#include "aggregator/policy/drain/drain_internal.h"
#include "aggregator/policy/drain/drain_timers.h"
#include "shared/mem.h"
#include "tests/conformance/drain_records.h"
#include "tests/conformance/values.h"

enum { POOLS_MAX = 16 };

/* --- utilization */

struct devices {
	struct drain_device_pool pools[POOLS_MAX];
	struct drain_devices of;
};

static int64_t allocated_of(const cJSON *pods, const char *pool)
{
	int64_t sum = 0;

	for (const cJSON *pod = pods ? pods->child : NULL; pod; pod = pod->next) {
		const cJSON *used = values_get(values_get(pod, "devices"), pool);

		sum += used ? used->valueint : 0;
	}
	return sum;
}

static const struct drain_devices *read_devices(const cJSON *c, struct devices *d)
{
	const cJSON *pools = values_get(c, "dra_pools");

	memset(d, 0, sizeof(*d));
	if (!cJSON_IsTrue(values_get(c, "dra_enabled")))
		return NULL;
	for (const cJSON *item = pools ? pools->child : NULL; item && d->of.count < POOLS_MAX;
	     item = item->next)
		d->pools[d->of.count++] = (struct drain_device_pool){
			item->string, item->valueint,
			allocated_of(values_get(c, "pods"), item->string)};
	d->of.pools = d->pools;
	d->of.incomplete = cJSON_IsTrue(values_get(c, "dra_pool_incomplete"));
	return &d->of;
}

static enum drain_gpu read_gpu(const cJSON *c)
{
	const char *config = cJSON_GetStringValue(values_get(c, "gpu_config"));

	if (!config)
		return DRAIN_GPU_DETECT;
	return strcmp(config, "extended") == 0 ? DRAIN_GPU_EXTENDED : DRAIN_GPU_NONE;
}

static bool same_share(const cJSON *c, const char *key, double got, struct error *error)
{
	const cJSON *want = values_get(c, key), *tolerance = values_get(c, "tolerance");

	if (!want || fabs(want->valuedouble - got) <=
			     (tolerance ? tolerance->valuedouble : 1e-9) * fmax(1, got))
		return true;
	values_fail(error, "%s is %.17g", key, got);
	return false;
}

static bool check_utilization(const cJSON *c, const struct drain_options *o,
			      const struct drain_records *nodes, const struct drain_records *pods,
			      struct error *error)
{
	const char *resource = cJSON_GetStringValue(values_get(c, "want_resource"));
	struct drain_utilization u;
	struct devices d;
	struct error told;
	int err = drain_utilization(o, (const struct kube_node *)nodes->of[0],
				    drain_records_pods(pods), pods->count, read_devices(c, &d),
				    read_gpu(c), DRAIN_CASE_NOW_NS, &u, &told);

	if ((err != 0) != cJSON_IsTrue(values_get(c, "want_error"))) {
		values_fail(error, "%s", err ? told.text : "an error was expected");
		return false;
	}
	if (err)
		return true;
	if (resource && strcmp(resource, u.resource) != 0) {
		values_fail(error, "the resource is %s", u.resource);
		return false;
	}
	return same_share(c, "want_utilization", u.share, error) &&
	       same_share(c, "want_cpu", u.cpu, error);
}

enum outcome run_utilization(const cJSON *c, struct error *error)
{
	struct drain_records nodes = {0}, pods = {0};
	struct drain_options o;
	bool passed = drain_case_options(c, &o, error) &&
		      drain_records_add_node(&nodes, values_get(c, "node"), error) &&
		      drain_records_add_pods(&pods, values_get(c, "pods"), error) &&
		      check_utilization(c, &o, &nodes, &pods, error);

	drain_records_fini(&nodes);
	drain_records_fini(&pods);
	return passed ? PASSED : FAILED;
}

/* --- eligibility */

static bool is_in(const cJSON *list, const char *name)
{
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
		if (cJSON_IsString(item) && strcmp(item->valuestring, name) == 0)
			return true;
	return false;
}

/* All pods sit on the node "regular". */
static bool check_eligible(const cJSON *c, const struct drain_options *o, const cJSON *json,
			   const struct kube_node *node, const struct drain_records *pods,
			   struct error *error)
{
	const char *name = node->object.name;
	const struct drain_devices devices = {
		.incomplete = cJSON_IsTrue(values_get(json, "dra_pool_incomplete"))};
	const struct drain_candidate candidate = {
		.node = node,
		.pods = drain_records_pods(pods),
		.pod_count = strcmp(name, "regular") == 0 ? pods->count : 0,
		.grouped = true,
		.devices = cJSON_IsTrue(values_get(values_get(c, "options"), "dra_enabled"))
				   ? &devices
				   : NULL,
	};
	struct drain_eligible e;

	drain_eligibility(o, &candidate, NULL, DRAIN_CASE_NOW_NS, &e);
	if ((e.reason == DRAIN_NONE) != is_in(values_get(c, "want_unneeded"), name)) {
		values_fail(error, "%s: %s", name, drain_reason_name(e.reason));
		return false;
	}
	return drain_case_same(values_get(c, "want_unremovable"), name, drain_reason_name(e.reason),
			       error);
}

enum outcome run_eligibility(const cJSON *c, struct error *error)
{
	struct drain_records nodes = {0}, pods = {0};
	const cJSON *list = values_get(c, "nodes");
	struct drain_options o;
	bool passed = drain_case_options(values_get(c, "options"), &o, error) &&
		      drain_records_add_pods(&pods, values_get(c, "pods_on_regular"), error);

	for (const cJSON *json = list ? list->child : NULL; passed && json; json = json->next)
		passed = drain_records_add_node(&nodes, json, error) &&
			 check_eligible(c, &o, json,
					(const struct kube_node *)nodes.of[nodes.count - 1], &pods,
					error);
	drain_records_fini(&nodes);
	drain_records_fini(&pods);
	return passed ? PASSED : FAILED;
}

/* --- unremovable */

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum outcome run_unremovable(const cJSON *c, struct error *error)
{
	const cJSON *nodes = values_get(c, "nodes"), *ttls = values_get(c, "ttl_ms");
	size_t count = 0, kept = 0;
	struct drain_unremovable u = {0};
	struct drain_plan_node *known;
	struct drain_options o;
	int64_t want;

	if (!cJSON_IsArray(nodes) || !values_int(c, "want_ttls", &want, error))
		return FAILED;
	known = mem_zalloc((size_t)cJSON_GetArraySize(nodes) + 1, sizeof(*known));
	for (const cJSON *item = nodes->child; item; item = item->next)
		known[count++].name = item->valuestring;
	drain_options_upstream(&o);
	qsort(known, count, sizeof(*known), compare_texts);
	for (const cJSON *item = ttls ? ttls->child : NULL; item; item = item->next)
		drain_unremovable_add(&u, item->string, &(struct drain_why){.code = DRAIN_NO_PLACE},
				      DRAIN_CASE_NOW_NS + (int64_t)item->valuedouble * 1000000);
	drain_unremovable_update(&u, &o, known, count, DRAIN_CASE_NOW_NS);
	for (const cJSON *item = ttls ? ttls->child : NULL; item; item = item->next) {
		const struct drain_failure *f = drain_unremovable_recent(&u, item->string);

		kept += f != NULL;
		if (f && f->why.code != DRAIN_NONE)
			want = -1; /* upstream forgets why */
	}
	drain_unremovable_fini(&u);
	free(known);
	return (int64_t)kept == want ? PASSED : values_fail(error, "%zu are kept", kept);
}

/* --- planner_unneeded_limit */

enum outcome run_unneeded_limit(const cJSON *c, struct error *error)
{
	int64_t before, nodes, n, unneeded_s, loop_s, want, found = 0, limit;
	bool atomic = cJSON_IsTrue(values_get(c, "atomic_group"));

	if (!values_int(c, "previously_unneeded", &before, error) ||
	    !values_int(c, "nodes", &nodes, error) ||
	    !values_int(c, "max_parallelism", &n, error) ||
	    !values_int(c, "unneeded_time_s", &unneeded_s, error) ||
	    !values_int(c, "loop_interval_s", &loop_s, error) ||
	    !values_int(c, "want_unneeded", &want, error))
		return FAILED;
	limit = drain_unneeded_limit(DRAIN_UPSTREAM, before, n, unneeded_s * 1000000000,
				     loop_s * 1000000000);
	/* Nodes of atomic groups do not count. */
	while (found < nodes && (atomic ? 0 : found) < limit)
		found++;
	return found == want ? PASSED : values_fail(error, "%lld are found", (long long)found);
}

/* --- candidate_order */

static bool read_rank(const cJSON *c, const char *key, struct drain_rank *r, struct error *error)
{
	const char *name = cJSON_GetStringValue(values_get(c, key));
	const cJSON *node = name ? values_get(values_get(conformance_file(), "nodes"), name) : NULL;
	int64_t movable, waiting;

	/* Of an unknown node pods may move. */
	*r = (struct drain_rank){.node = name, .movable = node == NULL};
	if (!name) {
		values_fail(error, "\"%s\" must be a name", key);
		return false;
	}
	r->before = is_in(values_get(c, "previous"), name);
	if (!node)
		return true;
	if (!values_int(node, "movable", &movable, error) ||
	    !values_int(node, "on_completion", &waiting, error))
		return false;
	r->movable = (size_t)movable;
	r->waiting = (size_t)waiting;
	return true;
}

/* Upstream's order leaves equals as they are: a, given last, comes first only if it is earlier. */
static enum outcome check_earlier(const cJSON *c, const struct drain_rank *a,
				  const struct drain_rank *b, struct error *error)
{
	const struct drain_rank both[] = {*b, *a};
	size_t order[2];

	drain_order(DRAIN_UPSTREAM, both, 2, order);
	if ((order[0] == 1) != cJSON_IsTrue(values_get(c, "want_a_earlier")))
		return values_fail(error, "a is%s earlier", order[0] == 1 ? "" : " not");
	return PASSED;
}

enum outcome run_order_empty_first(const cJSON *c, struct error *error)
{
	struct drain_rank a, b;

	if (!read_rank(c, "a", &a, error) || !read_rank(c, "b", &b, error))
		return FAILED;
	a.before = b.before = false;
	return check_earlier(c, &a, &b, error);
}

enum outcome run_order_previous_first(const cJSON *c, struct error *error)
{
	struct drain_rank a, b;

	if (!read_rank(c, "a", &a, error) || !read_rank(c, "b", &b, error))
		return FAILED;
	return check_earlier(c, &(struct drain_rank){.before = a.before},
			     &(struct drain_rank){.before = b.before}, error);
}

/*
 * Two processors' scores, as two of those that decide the corrected order: pods that move, and what
 * they use. There the lower one comes first.
 */
static bool read_scores(const cJSON *row, struct drain_rank *r)
{
	enum { MOST = 1000 };
	const cJSON *first = row->child, *second = first ? first->next : NULL;

	*r = (struct drain_rank){
		.movable = (size_t)(MOST - (first ? first->valueint : 0)),
		.cpu_milli = MOST - (second ? second->valueint : 0),
	};
	return !second || !second->next;
}

enum outcome run_order_scores(const cJSON *c, struct error *error)
{
	const cJSON *rows = values_get(c, "scores"), *want = values_get(c, "want_order");
	size_t count = (size_t)cJSON_GetArraySize(rows), at = 0;
	struct drain_rank *ranks = mem_zalloc(count + 1, sizeof(*ranks));
	size_t *order = mem_zalloc(count + 1, sizeof(*order));
	bool same = (size_t)cJSON_GetArraySize(want) == count;

	for (const cJSON *row = rows ? rows->child : NULL; row && same; row = row->next)
		same = read_scores(row, &ranks[at++]);
	drain_order(DRAIN_CORRECTED, ranks, count, order);
	at = 0;
	for (const cJSON *item = want ? want->child : NULL; same && item; item = item->next, at++)
		same = (size_t)item->valueint == order[at];
	free(ranks);
	free(order);
	return same ? PASSED : values_fail(error, "the order differs at %zu", at);
}
