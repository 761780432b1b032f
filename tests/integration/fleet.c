/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fleet of simulated agents against a real aggregator: every node is heard, every pod's windows
 * are what its pattern says by closed form, every frame is accounted for at both ends, and the dump
 * tells of the pods that were measured. The fleet is stopped before anything is compared, so that
 * nothing moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shared/clock.h"
#include "shared/hash.h"
#include "shared/mem.h"
#include "shared/quantity.h"
#include "tests/fleet/cluster.h"
#include "tests/fleet/launch.h"
#include "tests/process.h"

enum { NODES = 50, PODS_PER_NODE = 12, INTERVALS = 4, TIMEOUT_S = 60 };

/* The longest a sample is: an interval of less than 150 ms is one. */
#define SAMPLE_S 0.15

static const struct cluster_config config = {
	.nodes = NODES, .pods_per_node = PODS_PER_NODE, .containers = 2, .seed = 7};

/* A pod of the made-up cluster, and what the aggregator says of it. */
struct known {
	const cJSON *told; /* of scene.pods; NULL: nothing */
	bool dumped;
	char uid[POD_UID_LEN + 1];
	UT_hash_handle hh; /* by uid */
};

struct scene {
	struct stack *stack;
	struct cluster *cluster;
	char *dump_path;
	cJSON *report, *pods, *nodes, *dump;
	struct known *known; /* as many as the cluster has pods, in their order */
	struct known *by_uid; /* the same */
};

static const char *const results[] = {"applied",   "part",	"duplicate",   "too_old",
				      "need_full", "refused",	"rival",       "malformed",
				      "version",   "oversized", "unknown_key", "forged"};

static double frames(const struct scene *s, const char *result)
{
	char sample[80];

	snprintf(sample, sizeof(sample), "evenkeel_frames_total{result=\"%s\"}", result);
	return stack_metric(s->stack, 0, sample);
}

static double number(const cJSON *json, const char *path)
{
	const cJSON *value = json_at(json, path);

	if (!cJSON_IsNumber(value))
		fail_msg("no number \"%s\"", path);
	return cJSON_GetNumberValue(value);
}

static const char *string(const cJSON *json, const char *path)
{
	const char *value = cJSON_GetStringValue(json_at(json, path));

	if (!value)
		fail_msg("no string \"%s\"", path);
	return value;
}

/* --- the scene -------------------------------------------------------------------------------- */

static struct known *find_known(const struct scene *s, const char *uid)
{
	struct known *k;

	HASH_FIND_STR(s->by_uid, uid, k);
	return k;
}

static void learn_cluster(struct scene *s)
{
	s->known = mem_zalloc(s->cluster->pod_count, sizeof(*s->known));
	for (size_t i = 0; i < s->cluster->pod_count; i++) {
		struct known *k = &s->known[i];

		cluster_pod_uid(s->cluster, i, 0, k->uid);
		HASH_ADD_STR(s->by_uid, uid, k);
	}
}

static bool has_heard_enough(void *ctx)
{
	return frames(ctx, "applied") >= (double)NODES * INTERVALS;
}

/*
 * A view that has all nodes with their pods; which interval its windows end with does not matter.
 */
static bool has_published_all(void *ctx)
{
	struct scene *s = ctx;
	size_t placed = 0;

	for (size_t i = 0; i < s->cluster->pod_count; i++)
		placed += s->cluster->pods[i].node >= 0;
	cJSON_Delete(s->nodes);
	cJSON_Delete(s->pods);
	s->nodes = stack_get(s->stack, 0, "/v1/nodes");
	s->pods = stack_get(s->stack, 0, "/v1/pods?limit=5000");
	return cJSON_GetArraySize(json_at(s->nodes, "items")) == NODES &&
	       cJSON_GetArraySize(json_at(s->pods, "items")) == (int)placed;
}

static cJSON *read_json(const char *path)
{
	FILE *file = fopen(path, "re");
	struct buf text = BUF_INIT;
	char chunk[4096];
	size_t got;
	cJSON *json;

	while (file && (got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		buf_add(&text, chunk, got);
	if (file)
		fclose(file);
	json = text.data ? cJSON_Parse(text.data) : NULL;
	buf_fini(&text);
	return json;
}

static void match(struct scene *s)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, json_at(s->pods, "items")) {
		struct known *k = find_known(s, string(item, "uid"));

		assert_non_null(k);
		assert_null(k->told);
		k->told = item;
	}
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	char nodes[8], pods[8];
	const char *options[] = {"--nodes",    nodes, "--pods-per-node", pods,
				 "--seed",     "7",   "--containers",	 "2",
				 "--interval", "1s",  "--dump",		 NULL,
				 NULL};
	pid_t fleet;
	bool heard;

	*state = s;
	s->stack = stack_new();
	s->cluster = cluster_new(&config);
	s->dump_path = mem_printf("%s/dump.json", s->stack->folder);
	learn_cluster(s);
	snprintf(nodes, sizeof(nodes), "%d", NODES);
	snprintf(pods, sizeof(pods), "%d", PODS_PER_NODE);
	options[11] = s->dump_path;
	stack_start_aggregator(s->stack, 0);
	fleet = fleet_start(s->stack, options);
	heard = await(has_heard_enough, s, TIMEOUT_S);
	s->report = fleet_stop(s->stack, fleet);
	if (!heard || !s->report || !await(has_published_all, s, TIMEOUT_S)) {
		fleet_print_log(s->stack);
		stack_free(s->stack, 1);
		return -1;
	}
	s->dump = read_json(s->dump_path);
	match(s);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	HASH_CLEAR(hh, s->by_uid);
	free(s->known);
	cJSON_Delete(s->report);
	cJSON_Delete(s->pods);
	cJSON_Delete(s->nodes);
	cJSON_Delete(s->dump);
	free(s->dump_path);
	cluster_free(s->cluster);
	stack_free(s->stack, 0);
	free(s);
	return 0;
}

/* --- what is measured ------------------------------------------------------------------------- */

static void test_every_node_is_heard(void **state)
{
	const struct scene *s = *state;
	char name[CLUSTER_NAME_MAX];

	assert_int_equal(cJSON_GetArraySize(json_at(s->nodes, "items")), NODES);
	for (uint32_t i = 0; i < NODES; i++) {
		const cJSON *node;

		cluster_node_name(i, name);
		node = json_item(s->nodes, name);
		assert_non_null(node);
		assert_true(number(node, "capacity.cpuMillicores") ==
			    (double)s->cluster->nodes[i].cpu_milli);
		assert_true(number(node, "capacity.memoryBytes") ==
			    (double)s->cluster->nodes[i].mem_bytes);
	}
}

static int64_t time_of(const cJSON *json, const char *path)
{
	struct tm tm = {0};
	const char *rest = strptime(string(json, path), "%Y-%m-%dT%H:%M:%S", &tm);

	assert_non_null(rest);
	return timegm(&tm) * NS_PER_SEC + (int64_t)(strtod(rest, NULL) * 1e9);
}

/* Near by a share of what the pattern can vary by, and a little for times in whole milliseconds. */
static void check_near(const char *what, double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%s: %.3f, by the pattern %.3f +- %.3f", what, got, want, tolerance);
}

/*
 * Samples that an edge falls into are between low and high: each takes at most a quarter of height
 * squared from the variance, for the time of a sample.
 */
static void check_deviation(const struct pattern *p, int64_t begin, int64_t end, double got)
{
	double seconds = (double)(end - begin) / 1e9, height = pattern_peak_milli(p);
	double edges = 2 * (seconds * 1e9 / (double)p->period_ns + 1);
	double want = pattern_stddev_milli(p, begin, end);
	double least = want * want - edges / 4 * SAMPLE_S / seconds * height * height;

	check_near("deviation", got, want, fmax(0.03 * height, want - sqrt(fmax(least, 0))) + 0.01);
}

static void check_cpu(const struct pattern *p, int64_t begin, const cJSON *window)
{
	int64_t end = time_of(window, "end");
	double height = pattern_peak_milli(p);

	check_near("mean", number(window, "mean"), pattern_used_milli(p, begin, end),
		   0.01 * height + 0.01);
	check_deviation(p, begin, end, number(window, "stddev"));
	assert_true(number(window, "max") <= height * 1.00001 + 0.001);
}

static void check_memory(const struct pattern *p, int64_t begin, const cJSON *window)
{
	struct pattern_memory memory;

	pattern_get_memory(p, begin, time_of(window, "end"), &memory);
	check_near("working set", number(window, "mean"), memory.set_mean,
		   1e-3 * pattern_peak_working_set(p) + 1);
}

/*
 * When the first interval of a node began, which is in all windows of its first minutes. What a
 * pod's own window says is the same rounded down to sixteenths of a second.
 */
static int64_t begin_of(const struct scene *s, const char *node)
{
	return time_of(json_item(s->nodes, node), "usage.cpuMillicores.windows.5m.start");
}

static void test_pods_use_what_their_patterns_say(void **state)
{
	const struct scene *s = *state;
	int kinds[PATTERNS] = {0};

	for (size_t i = 0; i < s->cluster->pod_count; i++) {
		const struct known *k = &s->known[i];
		const struct cluster_pod *p = &s->cluster->pods[i];
		const cJSON *usage = json_at(k->told, "usage");
		int64_t begin;

		assert_int_equal(k->told != NULL, p->node >= 0);
		if (!k->told)
			continue;
		begin = begin_of(s, string(k->told, "node"));
		check_memory(&p->pattern, begin, json_at(usage, "workingSetBytes.windows.5m"));
		/* On crowded nodes pods may get less than they want. */
		if (s->cluster->nodes[p->node].crowded)
			continue;
		check_cpu(&p->pattern, begin, json_at(usage, "cpuMillicores.windows.5m"));
		kinds[cluster_workload(s->cluster, p)->pattern]++;
	}
	for (int kind = 0; kind < PATTERNS; kind++)
		assert_true(kinds[kind] > 0);
}

/* Mean CPU of all that runs there, and working set, by their patterns. */
static void add_up(const struct scene *s, const struct cluster_node *n, int64_t begin, int64_t end,
		   double *milli, double *bytes)
{
	struct pattern_memory memory;

	*milli = pattern_used_milli(&n->system, begin, end);
	*bytes = n->system.mem_bytes;
	for (size_t i = 0; i < n->pods; i++) {
		size_t pod = s->cluster->by_node[n->first + i];
		const struct pattern *p = &s->cluster->pods[pod].pattern;

		pattern_get_memory(p, begin, end, &memory);
		*milli += pattern_used_milli(p, begin, end);
		*bytes += memory.set_mean;
	}
}

static void test_nodes_use_what_their_pods_do(void **state)
{
	const struct scene *s = *state;
	char name[CLUSTER_NAME_MAX];

	for (uint32_t i = 0; i < NODES; i++) {
		const struct cluster_node *n = &s->cluster->nodes[i];
		const cJSON *usage, *window;
		double milli, bytes;

		cluster_node_name(i, name);
		usage = json_at(json_item(s->nodes, name), "usage");
		window = json_at(usage, "cpuMillicores.windows.5m");
		add_up(s, n, time_of(window, "start"), time_of(window, "end"), &milli, &bytes);
		if (!n->crowded)
			check_near(name, number(window, "mean"), milli, 0.01 * milli + 1);
		check_near(name, number(usage, "memoryBytes.windows.5m.mean"), bytes,
			   0.001 * bytes);
	}
}

/* --- what was sent ---------------------------------------------------------------------------- */

static void test_every_frame_is_accounted_for(void **state)
{
	const struct scene *s = *state;
	double made = number(s->report, "intervals.made"), arrived = 0;
	double sent = number(s->report, "frames.sent"),
	       timeouts = number(s->report, "frames.timeouts");

	assert_true(number(s->report, "heard") == NODES);
	assert_true(number(s->report, "intervals.refused") == 0);
	assert_true(number(s->report, "intervals.skipped") == 0);
	assert_true(number(s->report, "intervals.unanswered") == 0);
	assert_true(number(s->report, "intervals.acked") == made);
	assert_true(frames(s, "applied") == made);
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		arrived += frames(s, results[i]);
	/*
	 * What a machine under load answered late was sent again, and may have been lost with its
	 * connection.
	 */
	assert_true(arrived <= sent);
	assert_true(arrived + timeouts >= sent);
	assert_true(frames(s, "applied") + frames(s, "duplicate") == arrived);
	if (arrived == sent)
		assert_true(number(s->report, "frames.bytes") ==
			    stack_metric(s->stack, 0, "evenkeel_frames_received_bytes_total"));
}

static void test_nothing_is_put_aside_as_impossible(void **state)
{
	static const char *const reasons[] = {"notANumber",   "negative",     "aboveCapacity",
					      "counterReset", "inconsistent", "aboveKernelLimit"};
	const struct scene *s = *state;
	char sample[80];

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		snprintf(sample, sizeof(sample), "evenkeel_quarantined_values_total{reason=\"%s\"}",
			 reasons[i]);
		assert_true(stack_metric(s->stack, 0, sample) == 0);
	}
}

/* --- what is dumped --------------------------------------------------------------------------- */

static int64_t amount(const cJSON *list, const char *key, bool milli)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(list, key));
	int64_t value = 0;
	struct error error;

	if (text && (milli ? quantity_parse_milli(text, &value, &error)
			   : quantity_parse_units(text, &value, &error)))
		fail_msg("%s", error.text);
	return value;
}

/* The sum over containers of a limit; 0 where one has none. */
static int64_t sum_limits(const cJSON *pod, const char *key, bool milli)
{
	const cJSON *container;
	int64_t sum = 0;

	cJSON_ArrayForEach (container, json_at(pod, "spec.containers")) {
		int64_t one = amount(json_at(container, "resources.limits"), key, milli);

		if (!one)
			return 0;
		sum += one;
	}
	return sum;
}

static void check_limit(const cJSON *told, const char *path, int64_t want)
{
	const cJSON *limit = json_at(told, path);

	if (want)
		assert_true(cJSON_GetNumberValue(limit) == (double)want);
	else
		assert_true(cJSON_IsNull(limit));
}

static void check_dumped_pod(const struct scene *s, const cJSON *pod)
{
	struct known *k = find_known(s, string(pod, "metadata.uid"));
	const cJSON *node = json_at(pod, "spec.nodeName");

	assert_non_null(k);
	assert_false(k->dumped);
	k->dumped = true;
	assert_int_equal(k->told != NULL, node != NULL);
	if (!k->told)
		return;
	assert_string_equal(string(k->told, "node"), cJSON_GetStringValue(node));
	assert_string_equal(string(k->told, "qosClass"), string(pod, "status.qosClass"));
	check_limit(k->told, "kernelLimits.cpuMillicores", sum_limits(pod, "cpu", true));
	check_limit(k->told, "kernelLimits.memoryBytes", sum_limits(pod, "memory", false));
	assert_int_equal(cJSON_GetArraySize(json_at(k->told, "containers")),
			 cJSON_GetArraySize(json_at(pod, "spec.containers")));
}

static void test_the_dump_has_the_pods_that_are_measured(void **state)
{
	const struct scene *s = *state;
	const cJSON *item;
	size_t pods = 0, nodes = 0;

	assert_non_null(s->dump);
	assert_string_equal(string(s->dump, "kind"), "List");
	cJSON_ArrayForEach (item, json_at(s->dump, "items")) {
		const char *kind = string(item, "kind");

		if (!strcmp(kind, "Pod")) {
			check_dumped_pod(s, item);
			pods++;
		} else if (!strcmp(kind, "Node")) {
			assert_non_null(json_item(s->nodes, string(item, "metadata.name")));
			nodes++;
		}
	}
	assert_int_equal(pods, s->cluster->pod_count);
	assert_int_equal(nodes, NODES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_node_is_heard),
		cmocka_unit_test(test_pods_use_what_their_patterns_say),
		cmocka_unit_test(test_nodes_use_what_their_pods_do),
		cmocka_unit_test(test_every_frame_is_accounted_for),
		cmocka_unit_test(test_nothing_is_put_aside_as_impossible),
		cmocka_unit_test(test_the_dump_has_the_pods_that_are_measured),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
