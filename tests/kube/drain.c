/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a drain plan true? In thirty random clusters the first wave of GET /v1/drain is carried out on
 * a real control plane, as it says: its nodes are cordoned, and exactly its pods are evicted, all
 * of them at once but for those of budgets that make them wait for each other. The API server asks
 * the budgets, real controllers make the pods anew, and a real scheduler binds them, where it
 * likes.
 *
 *     plan --> cordon --> evict --> | settled: every pod is bound, or the scheduler has judged
 *                                   | that it cannot be
 *                                   | and at every look: no budget has fewer healthy pods than it desires
 *
 * Of a wave that is called robust every pod must be bound again, outside of the wave, while no
 * other pod had to go for it. Of any wave no eviction may be refused: the plan has counted what
 * budgets allow. And a plan forgets no pod of its nodes. What becomes of waves that are not robust
 * is told.
 *
 * The aggregator is started for each cluster, when that is settled, with other options; for some it
 * hears what nodes really use, and so plans under the cap of real use.
 *
 * EVENKEEL_SEED is the first seed, and EVENKEEL_CLUSTERS how many there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_drain_commands.h"
#include "tests/kube_drain_wave.h"
#include "tests/kube_drain_world.h"
#include "tests/kube_testbed.h"
#include "tests/kube_usage.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { SEED = 1, CLUSTERS = 12, ALL_CLUSTERS = 30 };
/*
 * Of so many clusters in a hundred the wave must be robust and move pods, or the test shows little;
 * of a few that may be otherwise.
 */
enum { ROBUST_PERCENT = 60 };
/* Controllers and the scheduler, on a machine that may be busy with other tests. */
#define SECONDS 180

#define text_at	  kube_drain_text
#define number_at kube_drain_number

static struct kube_testbed *bed;

/* What became of one cluster's wave. */
struct result {
	uint64_t seed;
	size_t nodes, pods, budgets; /* of the cluster */
	bool capped, robust, any_order;
	size_t wave_nodes, moved; /* of the plan */
	size_t evicted, bound; /* bound: evicted, and there again */
	/* evictions that no budget had room for, or that needed room of another's */
	size_t refused;
	size_t violated, displaced; /* tests/kube_drain_wave.h */
	double seconds;
	char *told; /* owned; of pods without a node, or NULL */
};

struct story {
	struct kube_drain_world world;
	struct kube_drain_look before;
	size_t heard; /* nodes whose use the aggregator was told */
	cJSON *plan; /* owned */
	struct kube_drain_wave wave;
	struct result result;
};

/* --- the plan -------------------------------------------------------------------------------- */

/* A cluster of its own for each combination would be too many: they follow from the seed. */
static void start_aggregator(const struct story *s)
{
	static const char *const utilizations[] = {"0.95", "0.6", "0.95"},
				 *const shares[] = {"1", "1", "0.5", "0.25"},
				 *const slacks[] = {"0", "0", "0.1"};
	uint64_t seed = s->world.seed;
	const char *const options[] = {"--plan-interval",
				       "1s",
				       "--scale-down-unneeded-time",
				       "0s",
				       "--scale-down-utilization-threshold",
				       utilizations[seed % 3],
				       "--drain-owner-share",
				       shares[seed / 3 % 4],
				       "--extra-capacity-min-rate",
				       slacks[seed / 5 % 3],
				       NULL};

	kube_testbed_start_aggregator_with(bed, 0, bed->plane->admin, options);
}

/* What a node's first pod uses is all that it uses. */
static void send_use(struct story *s)
{
	struct kube_load loads[KUBE_DRAIN_NODES_MAX];
	struct kube_usage usage = {0};
	cJSON *nodes = kube_drain_world_get(&s->world, "/api/v1/nodes");
	char *url = mem_printf("tcp://127.0.0.1:%d", bed->aggregators[0].ingest_port);
	const cJSON *node, *pod;

	cJSON_ArrayForEach (node, json_at(nodes, "items")) {
		const char *name = text_at(node, "metadata.name");
		double cpu = 1000 * strtod(text_at(node, "status.allocatable.cpu"), NULL);

		cJSON_ArrayForEach (pod, json_at(s->before.pods, "items")) {
			if (strcmp(text_at(pod, "spec.nodeName"), name) == 0)
				break;
		}
		if (!pod)
			continue;
		cpu *= 0.05 + 0.01 * (double)place_world_draw(&s->world.dice, 40);
		loads[s->heard++] = (struct kube_load){
			.node = name,
			.pod_uid = text_at(pod, "metadata.uid"),
			.cpu_milli = cpu,
			.sigma_milli = cpu / 10,
			.mem_bytes = (double)(200 << 20),
		};
	}
	kube_usage_send_loads(&usage, loads, s->heard, url, bed->key_path);
	cJSON_Delete(nodes);
	free(url);
}

/* Nodes that are heard of. */
static size_t count_fresh(void)
{
	cJSON *nodes = kube_testbed_items(bed, 0, "/v1/nodes");
	size_t fresh = 0;
	const cJSON *node;

	cJSON_ArrayForEach (node, nodes) {
		fresh += strcmp(text_at(node, "source.state"), "fresh") == 0;
	}
	cJSON_Delete(nodes);
	return fresh;
}

static bool is_heard(void *ctx)
{
	return count_fresh() == ((const struct story *)ctx)->heard;
}

static void ask_plan(struct story *s)
{
	start_aggregator(s);
	if (s->result.capped)
		send_use(s);
	if (!await(is_heard, s, SECONDS))
		fail_msg("seed %llu: the aggregator does not tell of use",
			 (unsigned long long)s->world.seed);
	s->plan = kube_drain_await_plan(&s->world, &s->before);
	kube_testbed_kill_aggregator(bed, 0);
	if (s->result.capped)
		assert_string_equal(text_at(s->plan, "useCap"), "on");
}

/* --- what became of it ----------------------------------------------------------------------- */

static const char *judgement(const cJSON *pod)
{
	const cJSON *condition;

	cJSON_ArrayForEach (condition, json_at(pod, "status.conditions")) {
		if (strcmp(text_at(condition, "type"), "PodScheduled") == 0)
			return text_at(condition, "message");
	}
	return "";
}

/* Who is not bound, and why. A pod that went may not be back on a node of the wave. */
static void judge_pods(struct story *s)
{
	const struct kube_drain_wave *w = &s->wave;
	struct buf told = BUF_INIT;
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(w->now.pods, "items")) {
		const char *name = text_at(pod, "metadata.name"),
			   *node = text_at(pod, "spec.nodeName");

		if (!*node)
			buf_printf(&told, "\n           pod %s: %s", name, judgement(pod));
		else if (*kube_drain_pod_app(pod) && w->evicted == w->moved &&
			 kube_drain_wave_has_node(w, node))
			fail_msg("pod %s is on %s", name, node);
	}
	s->result.told = told.data;
}

static bool has_held(const struct result *r)
{
	return r->bound == r->moved && !r->displaced;
}

/* As JSON, for whoever looks into a wave that was called robust, and did not hold. */
static void show(const struct story *s)
{
	char *text = cJSON_PrintUnformatted(s->wave.plan);
	const cJSON *pod;

	print_message("            wave %s\n", text);
	cJSON_free(text);
	cJSON_ArrayForEach (pod, json_at(s->wave.now.pods, "items")) {
		if (*text_at(pod, "spec.nodeName"))
			continue;
		text = cJSON_PrintUnformatted(json_at(pod, "spec"));
		print_message("            pod %s %s\n", text_at(pod, "metadata.name"), text);
		cJSON_free(text);
	}
}

static void judge(struct story *s)
{
	const struct kube_drain_wave *w = &s->wave;
	struct result *r = &s->result;

	r->moved = w->moved;
	r->evicted = w->evicted;
	r->bound = w->evicted - (w->now.unbound < w->evicted ? w->now.unbound : w->evicted);
	r->refused = w->refused + w->overdrawn;
	r->violated = w->violated;
	r->displaced = kube_drain_wave_displaced(w);
	judge_pods(s);
	if (r->robust && !has_held(r))
		show(s);
}

static struct result try_cluster(uint64_t seed)
{
	int64_t start_ns = clock_mono_ns();
	struct story s = {.result = {.seed = seed, .capped = seed % 4 == 0}};
	struct result *r = &s.result;
	const cJSON *wave;

	kube_drain_world_make(&s.world, bed, seed);
	assert_true(kube_drain_world_look(&s.world, &s.before));
	ask_plan(&s);
	wave = json_at(s.plan, "wave");
	r->nodes = s.world.node_count;
	r->pods = s.before.bound;
	r->budgets = s.world.budget_count;
	r->wave_nodes = (size_t)cJSON_GetArraySize(json_at(wave, "nodes"));
	r->robust = cJSON_IsTrue(json_at(wave, "robust"));
	r->any_order = cJSON_IsTrue(json_at(wave, "anyOrder"));
	kube_drain_wave_init(&s.wave, &s.world, wave, &s.before);
	kube_drain_wave_carry_out(&s.wave);
	judge(&s);
	kube_drain_world_clear(&s.world);
	r->seconds = (double)(clock_mono_ns() - start_ns) / NS_PER_SEC;
	kube_drain_wave_fini(&s.wave);
	kube_drain_look_fini(&s.before);
	cJSON_Delete(s.plan);
	return s.result;
}

/* --- all of them ----------------------------------------------------------------------------- */

static void print_row(const struct result *r)
{
	print_message("    %6llu %5zu %5zu %7zu %4s %5zu %7zu %6s %5zu %7zu %8zu %9zu %5.1f%s\n",
		      (unsigned long long)r->seed, r->nodes, r->pods, r->budgets,
		      r->capped ? "on" : "off", r->wave_nodes, r->evicted,
		      !r->wave_nodes ? "-"
		      : r->robust    ? "yes"
				     : "no",
		      r->bound, r->refused, r->violated, r->displaced, r->seconds,
		      r->told ? r->told : "");
}

static void print_head(void)
{
	print_message("    %6s %5s %5s %7s %4s %5s %7s %6s %5s %7s %8s %9s %5s\n", "seed", "nodes",
		      "pods", "budgets", "cap", "wave", "evicted", "robust", "bound", "refused",
		      "violated", "displaced", "s");
}

static uint64_t number_of(const char *variable, uint64_t usual)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 0) : usual;
}

static void test_waves_hold(void **state)
{
	uint64_t first = number_of("EVENKEEL_SEED", SEED),
		 count = number_of("EVENKEEL_CLUSTERS", getenv("CI_ALL") ? ALL_CLUSTERS : CLUSTERS);
	struct result *of = mem_zalloc(count + 1, sizeof(*of));
	size_t robust = 0, moved = 0, broken = 0, proven = 0;

	(void)state;
	for (uint64_t i = 0; i < count; i++) {
		of[i] = try_cluster(first + i);
		print_message("          cluster %zu of %zu: %.1f s\n", (size_t)i + 1,
			      (size_t)count, of[i].seconds);
	}
	print_head();
	for (uint64_t i = 0; i < count; i++) {
		const struct result *r = &of[i];

		print_row(r);
		robust += r->robust && r->moved;
		proven += r->any_order && r->moved;
		assert_true(r->robust || !r->any_order);
		moved += r->robust ? r->evicted : 0;
		broken += (r->robust && !has_held(r)) || r->refused || r->violated;
		free(r->told);
	}
	print_message("    %zu robust waves of %zu clusters moved %zu pods; of %zu it is proven\n",
		      robust, (size_t)count, moved, proven);
	free(of);
	assert_int_equal(broken, 0);
	if (count >= CLUSTERS)
		assert_true(robust * 100 >= count * ROBUST_PERCENT);
}

/* Whom no node takes is asked again a second after something happened, and not up to ten. */
static const char impatient[] = "podInitialBackoffSeconds: 1\n"
				"podMaxBackoffSeconds: 1\n";

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waves_hold),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	control_plane_start_scheduler(bed->plane, impatient);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	return failed != 0;
}
