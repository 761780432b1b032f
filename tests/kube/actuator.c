/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel-actuator carries out the waves of random clusters on a real control plane, one after the
 * other until nothing may be drained any more. It reaches the aggregator through the API server, as
 * in a pod. The test acts as kubelets do, feeds use for some clusters, and observes budgets.
 *
 * Every pod must be bound in the end, no budget may have fewer healthy pods than it desires, no
 * eviction may be refused, and each node is either drained (empty, cordoned, tainted) or as it was.
 * A node may be rolled back before any eviction, where the checker refuses what the planner says.
 * Where plans need not be robust, pods may stay without a node; their nodes are rolled back.
 *
 * Two actuators run, of which one acts. In some clusters it is killed while it evicts, and its
 * successor goes on. In the last test a destination becomes hot, and the wave stops.
 *
 * EVENKEEL_SEED is the first seed, and EVENKEEL_CLUSTERS how many clusters there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/mark.h"
#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_actuator.h"
#include "tests/kube_behind.h"
#include "tests/kube_drain_world.h"
#include "tests/kube_usage.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { SEED = 1, CLUSTERS = 4 };
/* Of one cluster, on a machine that may be busy with other tests. */
#define SECONDS	 480
#define QUIET_NS (15 * NS_PER_SEC)
#define FEED_NS	 (5 * NS_PER_SEC)

#define text_at kube_drain_text

static struct kube_testbed *bed;
static struct kube_behind behind;
static struct kube_actuator actuators;

struct story {
	struct kube_drain_world world;
	struct kube_drain_look now;
	bool capped, robust; /* robust: of all waves */
	size_t kills; /* of actuators, still to come */
	struct kube_load loads[KUBE_DRAIN_NODES_MAX];
	size_t load_count;
	struct kube_usage usage;
	int64_t fed_ns, quiet_ns; /* monotonic; quiet_ns: since when nothing happens, or 0 */
	cJSON *nodes; /* owned: names of loads */
	size_t violated;
};

struct result {
	uint64_t seed;
	size_t nodes, pods, budgets, drained, rolled_back, evicted, refused, unbound, violated,
		kills, doubted;
	bool capped, robust;
	double seconds;
};

/* --- use -------------------------------------------------------------------------------------- */

/* The first pod of a node uses all that the node does. */
static void draw_loads(struct story *s)
{
	const cJSON *node, *pod;

	s->nodes = kube_drain_world_get(&s->world, "/api/v1/nodes");
	cJSON_ArrayForEach (node, json_at(s->nodes, "items")) {
		double cpu = 1000 * strtod(text_at(node, "status.allocatable.cpu"), NULL);
		const char *name = text_at(node, "metadata.name");

		cJSON_ArrayForEach (pod, json_at(s->now.pods, "items")) {
			if (strcmp(text_at(pod, "spec.nodeName"), name) == 0)
				break;
		}
		if (!pod)
			continue;
		cpu *= 0.05 + 0.01 * (double)place_world_draw(&s->world.dice, 40);
		s->loads[s->load_count++] = (struct kube_load){
			.node = name,
			.pod_uid = mem_strdup(text_at(pod, "metadata.uid")),
			.cpu_milli = cpu,
			.sigma_milli = cpu / 10,
			.mem_bytes = (double)(200 << 20),
		};
	}
}

static void feed(struct story *s)
{
	char *url;

	if (!s->capped || clock_mono_ns() - s->fed_ns < FEED_NS)
		return;
	url = mem_printf("tcp://127.0.0.1:%d", bed->aggregators[0].ingest_port);
	kube_usage_send_loads(&s->usage, s->loads, s->load_count, url, bed->key_path);
	s->fed_ns = clock_mono_ns();
	free(url);
}

/* --- the programs ----------------------------------------------------------------------------- */

static void start_aggregator(struct story *s)
{
	static const char *const utilizations[] = {"0.95", "0.6"}, *const shares[] = {"1", "0.5"};
	uint64_t seed = s->world.seed;
	const char *const options[] = {"--plan-interval",
				       "1s",
				       "--scale-down-unneeded-time",
				       "0s",
				       "--scale-down-utilization-threshold",
				       utilizations[seed % 2],
				       "--drain-owner-share",
				       shares[seed / 2 % 2],
				       s->robust ? NULL : "--drain-not-robust",
				       NULL};

	kube_behind_start(&behind, bed->plane->admin, options);
}

/* Both, so that the one that acts is among them, in the middle of evictions. */
static void kill_actuators(struct story *s)
{
	kube_actuator_stop(&actuators, SIGKILL);
	for (size_t i = 0; i < KUBE_ACTUATORS; i++)
		kube_actuator_start(&actuators, i);
	s->kills--;
}

static size_t count_lines(const char *text, const char *word)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, word)); at++)
		count++;
	return count;
}

/* --- until nothing happens -------------------------------------------------------------------- */

static enum mark_phase phase_of(const cJSON *node)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
		json_at(node, "metadata.annotations"), MARK_ANNOTATION));
	struct mark mark = {.phase = MARK_NONE};

	if (text)
		mark_read(text, &mark);
	assert_int_not_equal(mark.phase, MARK_GARBLED);
	return mark.phase;
}

/* A wave is left that an actuator would claim. */
static bool has_wave(const cJSON *nodes)
{
	struct buf answer = BUF_INIT;
	long status =
		control_plane_send(bed->plane, "GET", "/apis/evenkeel.io/v1/drains", NULL, &answer);
	cJSON *plan = cJSON_Parse(answer.data ? answer.data : "");
	bool any = status != 200 || !json_at(plan, "planned");
	const cJSON *planned, *node;

	cJSON_ArrayForEach (planned, json_at(plan, "wave.nodes")) {
		cJSON_ArrayForEach (node, json_at(nodes, "items")) {
			if (strcmp(text_at(node, "metadata.name"), text_at(planned, "name")) == 0)
				any |= phase_of(node) == MARK_NONE;
		}
	}
	cJSON_Delete(plan);
	buf_fini(&answer);
	return any;
}

static bool is_quiet(struct story *s)
{
	cJSON *nodes = kube_drain_world_get(&s->world, "/api/v1/nodes");
	bool quiet = nodes && !s->now.leaving, evicts = false;
	const cJSON *node;

	cJSON_ArrayForEach (node, json_at(nodes, "items")) {
		quiet &= !mark_is_active(phase_of(node));
		evicts |= phase_of(node) == MARK_EVICTING;
	}
	if (evicts && s->kills && place_world_chance(&s->world.dice, 20))
		kill_actuators(s);
	quiet = quiet && !has_wave(nodes);
	cJSON_Delete(nodes);
	return quiet;
}

static bool is_over(void *ctx)
{
	struct story *s = ctx;
	cJSON *budgets;

	feed(s);
	kube_drain_look_fini(&s->now);
	if (!kube_drain_world_look(&s->world, &s->now))
		return false;
	budgets = kube_drain_world_budgets(&s->world);
	s->violated += kube_drain_world_violations(budgets);
	cJSON_Delete(budgets);
	if (!is_quiet(s))
		s->quiet_ns = 0;
	else if (!s->quiet_ns)
		s->quiet_ns = clock_mono_ns();
	return s->quiet_ns && clock_mono_ns() - s->quiet_ns > QUIET_NS;
}

/* --- what became of it ------------------------------------------------------------------------ */

static size_t count_pods_on(const struct story *s, const char *node)
{
	size_t count = 0;
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(s->now.pods, "items"))
		count += *kube_drain_pod_app(pod) &&
			 strcmp(text_at(pod, "spec.nodeName"), node) == 0;
	return count;
}

static bool has_taint(const cJSON *node)
{
	const cJSON *taint;

	cJSON_ArrayForEach (taint, json_at(node, "spec.taints")) {
		if (strcmp(text_at(taint, "key"), MARK_TAINT) == 0)
			return true;
	}
	return false;
}

/* Drained nodes are empty, and all others are as they were. */
static void judge_nodes(struct story *s, struct result *r)
{
	cJSON *nodes = kube_drain_world_get(&s->world, "/api/v1/nodes");
	const cJSON *node;

	cJSON_ArrayForEach (node, json_at(nodes, "items")) {
		const char *name = text_at(node, "metadata.name");
		enum mark_phase phase = phase_of(node);
		bool drained = phase == MARK_DRAINED;

		r->drained += drained;
		r->rolled_back += phase == MARK_ROLLED_BACK;
		if (has_taint(node) != drained ||
		    (bool)cJSON_IsTrue(json_at(node, "spec.unschedulable")) != drained)
			fail_msg("seed %llu: node %s is %s, and tainted %d",
				 (unsigned long long)r->seed, name, mark_phase_name(phase),
				 has_taint(node));
		if (drained && count_pods_on(s, name))
			fail_msg("seed %llu: drained node %s has pods", (unsigned long long)r->seed,
				 name);
	}
	cJSON_Delete(nodes);
}

static bool is_bad(const struct result *r)
{
	return r->refused || r->violated ||
	       (r->robust && (r->unbound || r->rolled_back > r->doubted));
}

static void judge(struct story *s, struct result *r)
{
	char *log = kube_actuator_read_log(&actuators);

	judge_nodes(s, r);
	r->refused = count_lines(log, "not done (HTTP 429");
	r->evicted = count_lines(log, " is evicted, and expected") - r->refused;
	r->doubted = count_lines(log, "planner and checker did not agree");
	r->unbound = s->now.unbound;
	r->violated = s->violated;
	if (is_bad(r) || getenv("EVENKEEL_SHOW"))
		fputs(log, stdout);
	free(log);
}

static void end(struct story *s)
{
	kube_actuator_stop(&actuators, SIGTERM);
	kube_testbed_kill_aggregator(bed, 0);
	control_plane_send(bed->plane, "DELETE",
			   "/apis/coordination.k8s.io/v1/namespaces/evenkeel/leases/"
			   "evenkeel-actuator",
			   NULL, NULL);
	kube_drain_world_clear(&s->world);
	kube_drain_look_fini(&s->now);
	for (size_t i = 0; i < s->load_count; i++)
		free((char *)s->loads[i].pod_uid);
	cJSON_Delete(s->nodes);
}

static void open_story(struct story *s, uint64_t seed)
{
	char *log = mem_printf("actuator-%llu", (unsigned long long)seed);

	kube_actuator_name_log(&actuators, log);
	free(log);
	kube_drain_world_make(&s->world, bed, seed);
	assert_true(kube_drain_world_look(&s->world, &s->now));
	start_aggregator(s);
	if (s->capped)
		draw_loads(s);
	feed(s);
	kube_behind_await(&behind, "v1.evenkeel.io");
	for (size_t i = 0; i < KUBE_ACTUATORS; i++)
		kube_actuator_start(&actuators, i);
}

static struct result try_cluster(uint64_t seed)
{
	int64_t start_ns = clock_mono_ns();
	struct story s = {.capped = seed % 4 == 0, .robust = seed % 5 != 3, .kills = seed % 3};
	struct result r = {.seed = seed, .capped = s.capped, .robust = s.robust, .kills = s.kills};

	open_story(&s, seed);
	r.nodes = s.world.node_count;
	r.pods = s.now.bound;
	r.budgets = s.world.budget_count;
	if (!control_plane_await(bed->plane, is_over, &s, SECONDS))
		fail_msg("seed %llu: waves do not end: %s", (unsigned long long)seed,
			 kube_actuator_read_log(&actuators));
	r.kills -= s.kills;
	judge(&s, &r);
	end(&s);
	r.seconds = (double)(clock_mono_ns() - start_ns) / NS_PER_SEC;
	return r;
}

static uint64_t number_of(const char *variable, uint64_t usual)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 0) : usual;
}

static void test_waves(void **state)
{
	uint64_t first = number_of("EVENKEEL_SEED", SEED),
		 count = number_of("EVENKEEL_CLUSTERS", CLUSTERS);
	size_t bad = 0, drained = 0, evicted = 0;

	(void)state;
	for (uint64_t i = 0; i < count; i++) {
		struct result r = try_cluster(first + i);

		print_message(
			"    seed %llu: %zu nodes, %zu pods, %zu budgets, cap %s, robust %s: "
			"%zu nodes drained, %zu rolled back (%zu unproven), %zu pods evicted, %zu "
			"refused, %zu unbound, %zu violations, %zu kills, %.0f s\n",
			(unsigned long long)r.seed, r.nodes, r.pods, r.budgets,
			r.capped ? "on" : "off", r.robust ? "yes" : "no", r.drained, r.rolled_back,
			r.doubted, r.evicted, r.refused, r.unbound, r.violated, r.kills, r.seconds);
		bad += is_bad(&r);
		drained += r.drained;
		evicted += r.evicted;
	}
	assert_int_equal(bad, 0);
	assert_true(drained && evicted);
}

/* --- a hot destination ------------------------------------------------------------------------ */

/* Beyond the seeds of the clusters: the namespace of a seed stays. */
enum { HOT_SEED = 1006, HOT_SEEDS = 8, RULES_SEED = 1002 };

static char hot[64]; /* the node */

/* Or nothing may be drained any more. */
static bool has_evicted(void *ctx)
{
	struct story *s = ctx;
	bool over = is_over(s);
	char *log = kube_actuator_read_log(&actuators);
	const char *at;

	at = strstr(log, " is evicted, and expected on ");
	if (at)
		sscanf(at, " is evicted, and expected on %63s", hot);
	free(log);
	return at || over;
}

/* Nobody runs pods: the wave waits for a replacement meanwhile. */
static bool has_stopped(void *ctx)
{
	struct story *s = ctx;
	char *says = mem_printf("is rolled back: destination %s: CPU ", hot);
	bool stopped;

	feed(s);
	stopped = kube_actuator_says(&actuators, says);
	free(says);
	return stopped;
}

/* Two intervals of 5 s, as agents make them, bring it above the cap for 10 s. */
static void test_hot_destination(void **state)
{
	struct story s = {0};
	struct result r = {.seed = HOT_SEED};
	int64_t hot_ns;

	(void)state;
	for (int i = 0; !*hot; i++) {
		if (i)
			end(&s);
		assert_true(i < HOT_SEEDS);
		s = (struct story){.capped = true, .robust = true};
		open_story(&s, HOT_SEED + (uint64_t)i);
		assert_true(control_plane_await(bed->plane, has_evicted, &s, SECONDS));
	}
	for (size_t i = 0; i < s.load_count; i++)
		if (strcmp(s.loads[i].node, hot) == 0)
			s.loads[i].cpu_milli = 8000;
	hot_ns = clock_mono_ns();
	if (!control_plane_await(bed->plane, has_stopped, &s, 90))
		fail_msg("the wave goes on: %s", kube_actuator_read_log(&actuators));
	print_message("    the wave stopped %.0f s after %s became hot\n",
		      (double)(clock_mono_ns() - hot_ns) / NS_PER_SEC, hot);
	assert_true(control_plane_await(bed->plane, is_over, &s, SECONDS));
	judge_nodes(&s, &r);
	assert_true(r.rolled_back);
	end(&s);
}

/* --- rights ----------------------------------------------------------------------------------- */

static const struct kube_actuator_rule needed[] = {
	{"namespaces/evenkeel/roles/evenkeel-actuator", "get", "leases",
	 "the lease is refused (403)"},
	{"clusterroles/evenkeel-actuator", "get", "drains", "no plan yet: GET"},
	{"clusterroles/evenkeel-actuator", "list", "nodes",
	 "no step is possible: GET /api/v1/nodes: "},
	{"namespaces/default/roles/evenkeel-actuator-events", "create", "events",
	 "no Events are written (HTTP 403)"},
	{"clusterroles/evenkeel-actuator", "list", "pods",
	 "no step is possible: GET /api/v1/pods: "},
	{"clusterroles/evenkeel-actuator", "create", "pods/eviction",
	 "cannot create resource \"pods/eviction\""},
	{"clusterroles/evenkeel-actuator", "update", "acts/report",
	 "the aggregator takes no reports (HTTP 403)"},
	{"clusterroles/evenkeel-actuator", "create", "drains/history",
	 "the report of a wave is not kept (HTTP 403)"},
};

static void go_on(void *ctx)
{
	is_over(ctx);
}

static void test_each_rule_is_needed(void **state)
{
	struct story s = {.robust = true};

	(void)state;
	open_story(&s, RULES_SEED);
	kube_actuator_expect_rules(&actuators, needed, sizeof(needed) / sizeof(needed[0]),
				   KUBE_ACTUATORS, go_on, &s);
	end(&s);
}

/* A pod that no node takes is tried again a second after something happened. */
static const char impatient[] = "podInitialBackoffSeconds: 1\n"
				"podMaxBackoffSeconds: 1\n";

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waves),
		cmocka_unit_test(test_hot_destination),
		cmocka_unit_test(test_each_rule_is_needed),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	control_plane_start_scheduler(bed->plane, impatient);
	kube_behind_install(&behind, bed);
	kube_actuator_install(&actuators, bed, "drain", NULL);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_actuator_fini(&actuators);
	kube_testbed_free(bed, failed != 0);
	kube_behind_fini(&behind);
	return failed != 0;
}
