/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where does it lead to do as evenkeel says? Random clusters with slack are drained down to the end
 * on a real control plane, by the commands that evenkeel prints, as people would run them:
 *
 *     slack -o balloons | kubectl apply -f -       again whenever it prints something else
 *     drain -o soft-taints | sh
 *     drain -o commands | sh -e                    until there is no wave any more
 *
 * After each wave
 *
 *   pending    no pod is without a node, nor any balloon more than at first; so every wave is
 *              robust
 *   slack      balloons hold the target, but for one unit at most, and no more is wanted than one
 *              unit over it
 *   moved      no pod left a node that does not go; and none that came for one that was evicted is
 *              evicted again, but where evenkeel said so
 *   budgets    at no look any had fewer healthy pods than it desires
 *
 * In every other cluster the drained nodes are removed, in the others they stay cordoned. In two of
 * three the size of a unit follows the nodes at once.
 *
 * EVENKEEL_SEED is the first seed, and EVENKEEL_CLUSTERS how many there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/buf.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_drain_commands.h"
#include "tests/kube_drain_world.h"
#include "tests/kube_testbed.h"
#include "tests/kube_truth.h"
#include "tests/stack.h"

enum { SEED = 1, CLUSTERS = 6, WAVES_MAX = 40 };

#define text_at	  kube_drain_text
#define number_at kube_drain_number

static struct kube_testbed *bed;

struct result {
	uint64_t seed;
	size_t nodes, pods, balloons; /* at first */
	size_t waves, drained, moved, again; /* again: moved a second time */
	size_t refused; /* evictions that kubectl drain tried again, as a budget's status came late */
	/* What may not be. */
	size_t pending, displaced, unsaid, slack_off, violated;
	double slack_missing; /* units that were missing at most; below 0: more was held */
	double seconds;
};

struct story {
	struct kube_drain_world world;
	struct kube_drain_look first, before; /* before any wave; before the one at hand */
	struct buf balloons; /* as they were applied last */
	struct result result;
};

/* --- evenkeel -------------------------------------------------------------------------------- */

static void start_aggregator(const struct story *s)
{
	static const char *const shares[] = {"1", "0.5", "0.25"};
	static const char *const delays[] = {"1s", "10m", "1s"};
	static const char *const rates[] = {"0.1", "0.2", "0.3"};
	uint64_t seed = s->world.seed;
	const char *const options[] = {"--plan-interval",
				       "1s",
				       "--scale-down-unneeded-time",
				       "0s",
				       "--scale-down-utilization-threshold",
				       "0.95",
				       "--extra-capacity-min-rate",
				       rates[seed / 3 % 3],
				       "--slack-unneeded-time",
				       delays[seed % 3],
				       "--drain-owner-share",
				       shares[seed / 2 % 3],
				       NULL};

	kube_testbed_start_aggregator_with(bed, 0, bed->plane->admin, options);
}

static void say(const struct story *s, const char *command, const char *form, struct buf *out)
{
	const char *const words[] = {command, "-o", form, NULL};

	kube_drain_cli(&s->world, words, out);
}

static void see_budgets(void *ctx, const struct kube_drain_look *look)
{
	struct story *s = ctx;
	cJSON *budgets = kube_drain_world_budgets(&s->world);

	(void)look;
	s->result.violated += kube_drain_world_violations(budgets);
	cJSON_Delete(budgets);
}

static void run(struct story *s, const struct buf *text, struct kube_drain_look *out)
{
	struct buf said = BUF_INIT;
	const struct kube_drain_script script = {&s->world, text->data, see_budgets, s, &said};

	kube_drain_run(&script, out);
	for (const char *at = said.data; (at = strstr(at, "will retry")); at++)
		s->result.refused++;
	buf_fini(&said);
}

/* --- slack ----------------------------------------------------------------------------------- */

/* The plan that comes of it; the caller deletes it. */
static cJSON *apply_balloons(struct story *s)
{
	cJSON *plan = kube_drain_await_plan(&s->world, &s->before);
	struct buf yaml = BUF_INIT, script = BUF_INIT;

	say(s, "slack", "balloons", &yaml);
	if (s->balloons.data && strcmp(s->balloons.data, yaml.data) == 0) {
		buf_fini(&yaml);
		return plan;
	}
	cJSON_Delete(plan);
	buf_printf(&script, "kubectl apply -f - <<'END'\n%s\nEND\n", yaml.data);
	s->world.has_balloons = true;
	kube_drain_look_fini(&s->before);
	run(s, &script, &s->before);
	buf_fini(&script);
	buf_fini(&s->balloons);
	s->balloons = yaml;
	return kube_drain_await_plan(&s->world, &s->before);
}

/* What balloons on nodes hold, of "cpu" in thousandths or "memory". */
static double held_by_balloons(const struct kube_drain_look *l, const char *resource)
{
	char *path = mem_printf("resources.requests.%s", resource);
	const cJSON *pod;
	double held = 0;

	cJSON_ArrayForEach (pod, json_at(l->pods, "items")) {
		if (kube_drain_is_balloon(pod) && *text_at(pod, "spec.nodeName"))
			held += kube_truth_amount(
				resource, text_at(json_at(pod, "spec.containers")->child, path));
	}
	free(path);
	return held;
}

/* Units that are missing, of the resource that lacks the most. */
static double missing_units(const struct story *s, const cJSON *slack)
{
	static const char *const resources[][2] = {{"cpu", "cpuMillicores"},
						   {"memory", "memoryBytes"}};
	double missed = -1e9;

	for (size_t i = 0; i < 2; i++) {
		char *extra = mem_printf("target.extra.%s", resources[i][1]),
		     *unit = mem_printf("target.unit.%s", resources[i][1]);
		double missing =
			(number_at(slack, extra) - held_by_balloons(&s->before, resources[i][0])) /
			number_at(slack, unit);

		missed = fmax(missing, missed);
		free(extra);
		free(unit);
	}
	return missed;
}

/* Where the cluster has no room for all slack at first, that may be missing later as well. */
static void check_slack(struct story *s)
{
	cJSON *slack = kube_testbed_get(bed, 0, "/v1/slack");
	struct result *r = &s->result;
	double missing = missing_units(s, slack);
	const cJSON *class;
	double may = fmax(1, (double)s->first.waiting);
	bool off = missing > may || number_at(slack, "total.unplaced") > may;

	cJSON_ArrayForEach (class, json_at(slack, "items")) {
		off |= number_at(class, "wanted") > number_at(class, "target") + 1;
	}
	if (off) {
		char *text = cJSON_PrintUnformatted(slack);

		fprintf(stderr, "          seed %llu, wave %zu: %.2f units are missing: %s\n",
			(unsigned long long)r->seed, r->waves, missing, text);
		cJSON_free(text);
	}
	r->slack_off += off;
	r->slack_missing = fmax(missing, r->slack_missing);
	cJSON_Delete(slack);
}

/* --- a wave ---------------------------------------------------------------------------------- */

static bool has_pod(const struct kube_drain_look *l, const char *uid)
{
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(l->pods, "items")) {
		if (strcmp(text_at(pod, "metadata.uid"), uid) == 0)
			return true;
	}
	return false;
}

static bool goes(const cJSON *plan, const char *node)
{
	const cJSON *n;

	cJSON_ArrayForEach (n, json_at(plan, "wave.nodes")) {
		if (strcmp(text_at(n, "name"), node) == 0)
			return true;
	}
	return false;
}

/* How young the pod is, which the plan says of those that may have moved lately. */
static bool says_age(const cJSON *plan, const char *pod)
{
	const cJSON *node, *move;

	cJSON_ArrayForEach (node, json_at(plan, "wave.nodes")) {
		cJSON_ArrayForEach (move, json_at(node, "moves")) {
			if (strcmp(text_at(move, "name"), pod) == 0)
				return json_at(move, "ageSeconds");
		}
	}
	return false;
}

static void count_move(struct story *s, const cJSON *plan, const cJSON *pod)
{
	struct result *r = &s->result;
	const char *name = text_at(pod, "metadata.name"), *node = text_at(pod, "spec.nodeName");

	if (!goes(plan, node)) {
		r->displaced++;
		print_message("          seed %llu, wave %zu: pod %s left %s, which stays\n",
			      (unsigned long long)r->seed, r->waves, name, node);
		return;
	}
	r->moved++;
	if (has_pod(&s->first, text_at(pod, "metadata.uid")))
		return;
	r->again++;
	r->unsaid += !says_age(plan, name);
}

/* Pods of workloads that are gone. */
static void count_moves(struct story *s, const cJSON *plan, const struct kube_drain_look *after)
{
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(s->before.pods, "items")) {
		if (*kube_drain_pod_app(pod) && !has_pod(after, text_at(pod, "metadata.uid")))
			count_move(s, plan, pod);
	}
}

/* With what the scheduler said of it, and the wave. */
static void tell_pending(const struct story *s, const cJSON *plan)
{
	char *wave = cJSON_PrintUnformatted(json_at(plan, "wave"));
	const cJSON *pod, *condition;

	fprintf(stderr, "          seed %llu, wave %zu: %s\n", (unsigned long long)s->result.seed,
		s->result.waves, wave);
	cJSON_ArrayForEach (pod, json_at(s->before.pods, "items")) {
		cJSON_ArrayForEach (condition, json_at(pod, "status.conditions")) {
			if (!*text_at(pod, "spec.nodeName"))
				fprintf(stderr, "          pod %s: %s\n",
					text_at(pod, "metadata.name"),
					text_at(condition, "message"));
		}
	}
	cJSON_free(wave);
}

static void check_drained(const struct story *s, const cJSON *plan)
{
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(s->before.pods, "items")) {
		const char *node = text_at(pod, "spec.nodeName");

		if ((*kube_drain_pod_app(pod) || kube_drain_is_balloon(pod)) && goes(plan, node))
			fail_msg("seed %llu: pod %s is on %s", (unsigned long long)s->result.seed,
				 text_at(pod, "metadata.name"), node);
	}
}

/* With what daemons have there, which nobody ends for a minute. */
static void remove_node(const struct story *s, const char *name)
{
	char *node = mem_printf("/api/v1/nodes/%s", name);
	char *pods = mem_printf("/api/v1/namespaces/%s/pods?gracePeriodSeconds=0&fieldSelector="
				"spec.nodeName%%3D%s",
				s->world.namespace, name);

	control_plane_must(bed->plane, "DELETE", node, NULL);
	control_plane_must(bed->plane, "DELETE", pods, NULL);
	free(node);
	free(pods);
}

/* The plan is the one of which evenkeel printed the commands, or the next like it. */
static void carry_out(struct story *s, const cJSON *plan)
{
	struct buf script = BUF_INIT, commands = BUF_INIT;
	struct kube_drain_look after;
	struct result *r = &s->result;
	const cJSON *node;

	r->waves++;
	say(s, "drain", "soft-taints", &script);
	say(s, "drain", "commands", &commands);
	buf_add_str(&script, commands.data);
	run(s, &script, &after);
	count_moves(s, plan, &after);
	kube_drain_look_fini(&s->before);
	s->before = after;
	check_drained(s, plan);
	r->drained += (size_t)cJSON_GetArraySize(json_at(plan, "wave.nodes"));
	if (after.unbound > s->first.waiting) {
		tell_pending(s, plan);
		r->pending += after.unbound - s->first.waiting;
	}
	cJSON_ArrayForEach (node, json_at(plan, "wave.nodes")) {
		if (s->world.seed % 2)
			remove_node(s, text_at(node, "name"));
	}
	buf_fini(&commands);
	buf_fini(&script);
}

static void drain_down(struct story *s)
{
	cJSON *plan = apply_balloons(s);

	kube_drain_look_fini(&s->first);
	assert_true(kube_drain_world_look(&s->world, &s->first));
	s->result.balloons = s->before.balloons;
	check_slack(s);
	while (cJSON_GetArraySize(json_at(plan, "wave.nodes"))) {
		assert_true(s->result.waves < WAVES_MAX);
		carry_out(s, plan);
		cJSON_Delete(plan);
		plan = apply_balloons(s);
		check_slack(s);
	}
	cJSON_Delete(plan);
}

static struct result try_cluster(uint64_t seed)
{
	int64_t start_ns = clock_mono_ns();
	struct story s = {.result = {.seed = seed, .slack_missing = -1e9}};
	struct result *r = &s.result;

	kube_drain_world_make(&s.world, bed, seed);
	assert_true(kube_drain_world_look(&s.world, &s.before));
	r->nodes = s.world.node_count;
	r->pods = s.before.bound;
	start_aggregator(&s);
	drain_down(&s);
	kube_testbed_kill_aggregator(bed, 0);
	kube_drain_world_clear(&s.world);
	r->seconds = (double)(clock_mono_ns() - start_ns) / NS_PER_SEC;
	kube_drain_look_fini(&s.first);
	kube_drain_look_fini(&s.before);
	buf_fini(&s.balloons);
	return s.result;
}

/* --- all of them ----------------------------------------------------------------------------- */

static void print_head(void)
{
	print_message("    %6s %5s %5s %8s %5s %7s %5s %5s %7s %9s %7s %5s %7s %8s %5s\n", "seed",
		      "nodes", "pods", "balloons", "waves", "drained", "moved", "again", "pending",
		      "displaced", "missing", "slack", "refused", "violated", "s");
}

static void print_row(const struct result *r)
{
	print_message("    %6llu %5zu %5zu %8zu %5zu %7zu %5zu %5zu %7zu %9zu %7.2f %5s %7zu %8zu "
		      "%5.1f\n",
		      (unsigned long long)r->seed, r->nodes, r->pods, r->balloons, r->waves,
		      r->drained, r->moved, r->again, r->pending, r->displaced, r->slack_missing,
		      r->slack_off ? "off" : "held", r->refused, r->violated, r->seconds);
}

static uint64_t number_of(const char *variable, uint64_t usual)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 0) : usual;
}

static void test_clusters_are_drained_down(void **state)
{
	uint64_t first = number_of("EVENKEEL_SEED", SEED),
		 count = number_of("EVENKEEL_CLUSTERS", CLUSTERS);
	struct result *of = mem_zalloc(count + 1, sizeof(*of));
	size_t waves = 0, drained = 0, moved = 0, broken = 0;

	(void)state;
	for (uint64_t i = 0; i < count; i++) {
		of[i] = try_cluster(first + i);
		print_head();
		print_row(&of[i]);
	}
	print_head();
	for (uint64_t i = 0; i < count; i++) {
		const struct result *r = &of[i];

		print_row(r);
		waves += r->waves;
		drained += r->drained;
		moved += r->moved;
		broken += r->pending || r->displaced || r->unsaid || r->slack_off || r->violated;
	}
	print_message("    %zu waves drained %zu nodes of %zu clusters and moved %zu pods\n", waves,
		      drained, (size_t)count, moved);
	free(of);
	assert_true(drained && moved);
	assert_int_equal(broken, 0);
}

/* Whom no node takes is asked again a second after something happened, and not up to ten. */
static const char impatient[] = "podInitialBackoffSeconds: 1\n"
				"podMaxBackoffSeconds: 1\n";

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clusters_are_drained_down),
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
