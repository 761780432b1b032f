/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small stories of drains on a real control plane: by what evenkeel says, and by the commands that
 * it prints, which sh carries out with kubectl. Nodes have 4 CPUs; those that are to stay are
 * annotated.
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
#include "shared/mem.h"
#include "tests/kube_drain_commands.h"
#include "tests/kube_drain_world.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

#define SECONDS	  120
#define NAMESPACE "stories"
#define HOSTNAME  "kubernetes.io/hostname"
#define CANDIDATE "evenkeel.io/drain-candidate"

#define text_at	  kube_drain_text
#define number_at kube_drain_number

static struct kube_testbed *bed;

struct story {
	struct kube_drain_world world;
	struct kube_drain_look look; /* the last */
	struct buf said;
	size_t least_ready; /* pods of workloads, at any look */
};

/* --- the cluster ----------------------------------------------------------------------------- */

static void make_node(const char *name, bool stays)
{
	char *body = mem_printf(
		"{\"metadata\":{\"name\":\"%s\",\"labels\":{\"" HOSTNAME
		"\":\"%s\"},\"annotations\":{"
		"\"cluster-autoscaler.kubernetes.io/scale-down-disabled\":\"%s\"}},"
		"\"status\":{\"allocatable\":{\"cpu\":\"4\",\"memory\":\"16Gi\",\"pods\":\"110\"},"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
		name, name, stays ? "true" : "false");

	control_plane_must(bed->plane, "POST", "/api/v1/nodes", body);
	free(body);
}

#define CONTAINERS                                                                                 \
	"\"containers\":[{\"name\":\"c\",\"image\":\"none\","                                      \
	"\"resources\":{\"requests\":{\"cpu\":\"500m\",\"memory\":\"1Gi\"}}}]"

static const struct {
	const char *resource, *kind, *spec;
} kinds[] = {
	[KUBE_DRAIN_DEPLOYMENT] = {"deployments", "Deployment", ""},
	/* kubectl rollout status refuses it. */
	[KUBE_DRAIN_STATEFUL_SET] = {"statefulsets", "StatefulSet",
				     "\"serviceName\":\"none\",\"updateStrategy\":{\"type\":"
				     "\"OnDelete\"},"},
};

/* more: members of its pods' spec, or "". */
static void make_kind(struct story *s, enum kube_drain_kind kind, const char *name, size_t replicas,
		      int grace_s, const char *more)
{
	struct kube_drain_workload *of = &s->world.workloads[s->world.workload_count++];
	char *path = mem_printf("/apis/apps/v1/namespaces/" NAMESPACE "/%s", kinds[kind].resource);
	char *body = mem_printf(
		"{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"},"
		"\"spec\":{%s\"replicas\":%zu,\"selector\":{\"matchLabels\":{\"app\":\"%s\"}},"
		"\"template\":{\"metadata\":{\"labels\":{\"app\":\"%s\"}},\"spec\":{"
		"\"terminationGracePeriodSeconds\":%d," CONTAINERS "%s%s}}}}",
		kinds[kind].kind, name, kinds[kind].spec, replicas, name, name, grace_s,
		*more ? "," : "", more);

	snprintf(of->name, sizeof(of->name), "%s", name);
	of->kind = kind;
	of->replicas = replicas;
	control_plane_must(bed->plane, "POST", path, body);
	free(path);
	free(body);
}

static void make_workload(struct story *s, const char *name, size_t replicas, const char *more)
{
	make_kind(s, KUBE_DRAIN_DEPLOYMENT, name, replicas, 0, more);
}

static void count_ready(void *ctx, const struct kube_drain_look *look)
{
	struct story *s = ctx;
	const cJSON *pod;
	size_t ready = 0;

	cJSON_ArrayForEach (pod, json_at(look->pods, "items")) {
		ready += *kube_drain_pod_app(pod) && !json_at(pod, "metadata.deletionTimestamp") &&
			 strcmp(text_at(pod, "status.phase"), "Running") == 0;
	}
	s->least_ready = ready < s->least_ready ? ready : s->least_ready;
}

static bool all_run(void *ctx)
{
	struct story *s = ctx;

	s->least_ready = SIZE_MAX;
	kube_drain_look_fini(&s->look);
	if (!kube_drain_world_look(&s->world, &s->look) ||
	    !kube_drain_world_is_settled(&s->world, &s->look))
		return false;
	count_ready(s, &s->look);
	return s->least_ready == s->look.bound;
}

static void await_pods(struct story *s)
{
	if (!await(all_run, s, SECONDS))
		fail_msg("%zu pods are bound, %zu are not", s->look.bound, s->look.unbound);
}

static int begin(void **state)
{
	static struct story story;

	story = (struct story){.world = {.bed = bed, .namespace = NAMESPACE}};
	*state = &story;
	return 0;
}

static int end(void **state)
{
	struct story *s = *state;

	if (bed->aggregators[0].pid)
		kube_testbed_kill_aggregator(bed, 0);
	s->world.keeps_grace = false;
	kube_drain_world_clear(&s->world);
	kube_drain_look_fini(&s->look);
	buf_fini(&s->said);
	return 0;
}

/* more: an option and its value, or NULL. */
static void start(struct story *s, const char *option, const char *value)
{
	const char *const options[] = {"--plan-interval",
				       "1s",
				       "--scale-down-unneeded-time",
				       "0s",
				       "--extra-capacity-min-rate",
				       "0",
				       option,
				       value,
				       NULL};

	await_pods(s);
	kube_testbed_start_aggregator_with(bed, 0, bed->plane->admin, options);
}

/* --- what evenkeel says, and does ------------------------------------------------------------ */

/* evenkeel drain with a word or two; its exit status. */
static int ask(struct story *s, const char *word, const char *other)
{
	const char *const words[] = {"drain", word, word ? other : NULL, NULL};

	return kube_drain_cli(&s->world, words, &s->said);
}

static void expect_said(const struct story *s, const char *text)
{
	if (!strstr(s->said.data, text))
		fail_msg("\"%s\" is not in:\n%s", text, s->said.data);
}

static void run(struct story *s, const char *text)
{
	const struct kube_drain_script script = {&s->world, text, count_ready, s, NULL};

	kube_drain_look_fini(&s->look);
	kube_drain_run(&script, &s->look);
}

/* evenkeel drain -o FORM | sh -e, of a plan of what there is. */
static void follow(struct story *s, const char *form)
{
	struct buf script = BUF_INIT;

	cJSON_Delete(kube_drain_await_plan(&s->world, &s->look));
	ask(s, "-o", form);
	buf_add_str(&script, s->said.data);
	run(s, script.data);
	buf_fini(&script);
}

static int count_wave(struct story *s)
{
	cJSON *plan = kube_drain_await_plan(&s->world, &s->look);
	int nodes = cJSON_GetArraySize(json_at(plan, "wave.nodes"));

	cJSON_Delete(plan);
	return nodes;
}

struct number {
	const char *path; /* in GET /v1/drain */
	double value, seen;
};

static bool is_number(void *ctx)
{
	struct number *n = ctx;
	cJSON *plan = kube_testbed_get(bed, 0, "/v1/drain");

	n->seen = number_at(plan, n->path);
	cJSON_Delete(plan);
	return n->seen == n->value;
}

static void await_number(const char *path, double value)
{
	struct number n = {path, value, 0};

	if (!await(is_number, &n, SECONDS))
		fail_msg("%s is %g, not %g", path, n.seen, value);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void test_replacement_without_a_node_stops_waves(void **state)
{
	struct story *s = *state;

	make_node("a", true);
	make_node("b", true);
	make_node("c", false);
	make_node("d", false);
	make_workload(s, "pinned", 1, "\"nodeSelector\":{\"" HOSTNAME "\":\"a\"}");
	make_workload(s, "nowhere", 1, "\"nodeSelector\":{\"" HOSTNAME "\":\"none\"}");
	start(s, NULL, NULL);
	assert_int_equal(s->look.unbound, 1);
	assert_int_equal(count_wave(s), 2);

	run(s, "kubectl drain a\n");
	assert_int_equal(s->look.unbound, 2);
	await_number("owed.waiting", 1);
	ask(s, NULL, NULL);
	assert_int_equal(strncmp(s->said.data, "No more nodes are drained: pod stories/pinned-",
				 strlen("No more nodes are drained: pod stories/pinned-")),
			 0);
	ask(s, "-o", "commands");
	assert_string_equal(s->said.data, "");

	run(s, "kubectl uncordon a\n");
	await_number("owed.waiting", 0);
	assert_int_equal(count_wave(s), 2);
	follow(s, "commands");
	assert_int_equal(s->look.unbound, 1);
}

static size_t count_tainted(void)
{
	struct kube_drain_world w = {.bed = bed};
	cJSON *nodes = kube_drain_world_get(&w, "/api/v1/nodes");
	const cJSON *node, *taint;
	size_t tainted = 0;

	cJSON_ArrayForEach (node, json_at(nodes, "items")) {
		cJSON_ArrayForEach (taint, json_at(node, "spec.taints")) {
			tainted += strcmp(text_at(taint, "key"), CANDIDATE) == 0;
		}
	}
	cJSON_Delete(nodes);
	return tainted;
}

static size_t count_on(const struct story *s, const char *node)
{
	const cJSON *pod;
	size_t count = 0;

	cJSON_ArrayForEach (pod, json_at(s->look.pods, "items")) {
		count += strcmp(text_at(pod, "spec.nodeName"), node) == 0;
	}
	return count;
}

static bool has_no_taints(void *ctx)
{
	ask(ctx, "-o", "soft-taints");
	return !((const struct story *)ctx)->said.len;
}

static void test_candidates_take_no_pods(void **state)
{
	struct story *s = *state;

	make_node("a", true);
	make_node("b", false);
	make_node("c", false);
	start(s, NULL, NULL);
	follow(s, "soft-taints");
	assert_int_equal(count_tainted(), 2);
	assert_true(await(has_no_taints, s, SECONDS));
	make_workload(s, "web", 5, "");
	await_pods(s);
	assert_int_equal(count_on(s, "a"), 5);

	follow(s, "commands");
	follow(s, "soft-taints");
	assert_int_equal(count_tainted(), 0);
}

static void test_drained_nodes_use_up_no_limit(void **state)
{
	struct story *s = *state;

	make_node("a", true);
	make_node("b", false);
	make_node("c", false);
	make_node("d", false);
	make_node("e", false);
	start(s, "--max-scale-down-parallelism", "2");
	assert_int_equal(count_wave(s), 2);
	follow(s, "commands");
	await_number("verdicts.drained", 2);
	assert_int_equal(count_wave(s), 2);

	run(s, "kubectl annotate node d evenkeel.io/draining=by-hand\n");
	await_number("verdicts.inDeletion", 1);
	assert_int_equal(count_wave(s), 1);
	run(s, "kubectl annotate node d evenkeel.io/draining-\n");
	await_number("verdicts.inDeletion", 0);
	follow(s, "commands");
	await_number("verdicts.drained", 4);
	assert_int_equal(count_wave(s), 0);
	assert_int_equal(ask(s, "b", NULL), 0);
	expect_said(s, "drained");
	assert_int_equal(ask(s, "a", NULL), 3);
}

static size_t count_text(const struct story *s, const char *text)
{
	size_t count = 0;

	for (const char *at = s->said.data; (at = strstr(at, text)); at += strlen(text))
		count++;
	return count;
}

static void make_budget(const char *app)
{
	const char *api = bed->plane->version->budgets;
	char *path = mem_printf("/apis/%s/namespaces/" NAMESPACE "/poddisruptionbudgets", api);
	char *body =
		mem_printf("{\"apiVersion\":\"%s\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{"
			   "\"name\":\"%s\"},\"spec\":{\"maxUnavailable\":1,\"selector\":{"
			   "\"matchLabels\":{\"app\":\"%s\"}}}}",
			   api, app, app);

	control_plane_must(bed->plane, "POST", path, body);
	free(path);
	free(body);
}

/* Pods are ready as long as their grace lasts: a StatefulSet counts them then, too. */
static void leave_in_steps(struct story *s, enum kube_drain_kind kind, bool budget)
{
	make_node("a", false);
	make_kind(s, kind, "trio", 3, 6, "");
	if (budget)
		make_budget("trio");
	await_pods(s);
	make_node("b", true);
	start(s, NULL, NULL);
	s->world.keeps_grace = true;
	assert_int_equal(count_wave(s), 1);
	ask(s, "-o", "commands");
	assert_int_equal(count_text(s, "\nevict trio-"), 2);
	assert_int_equal(count_text(s, "kubectl drain a "), 1);
	follow(s, "commands");
	assert_int_equal(count_on(s, "b"), 3);
	assert_int_equal(s->least_ready, 2);
}

static void test_replicas_of_one_node_leave_in_steps(void **state)
{
	leave_in_steps(*state, KUBE_DRAIN_DEPLOYMENT, false);
}

static void test_those_of_a_stateful_set_as_well(void **state)
{
	leave_in_steps(*state, KUBE_DRAIN_STATEFUL_SET, false);
}

static void test_and_those_with_a_budget(void **state)
{
	leave_in_steps(*state, KUBE_DRAIN_STATEFUL_SET, true);
}

static const char bare[] =
	"{\"metadata\":{\"name\":\"bare\",\"annotations\":{"
	"\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"true\"}},\"spec\":{"
	"\"nodeName\":\"a\",\"terminationGracePeriodSeconds\":0," CONTAINERS "}}";

static void test_bare_pods_are_deleted_by_force(void **state)
{
	struct story *s = *state;

	make_node("a", false);
	make_node("b", true);
	control_plane_must(bed->plane, "POST", "/api/v1/namespaces/" NAMESPACE "/pods", bare);
	start(s, NULL, NULL);
	assert_int_equal(count_wave(s), 1);
	ask(s, NULL, NULL);
	expect_said(s, "deleted, not moved");
	follow(s, "commands");
	expect_said(s, " --force\n");
	assert_int_equal(count_on(s, "a"), 0);
	await_number("verdicts.drained", 1);
}

#define OF_ONE_CPU                                                                                 \
	"\"initContainers\":[{\"name\":\"i\",\"image\":\"none\",\"resources\":{\"requests\":{"     \
	"\"cpu\":\"1\"}}}]"
#define CRITICAL                                                                                   \
	OF_ONE_CPU ",\"priorityClassName\":\"system-cluster-critical\",\"affinity\":{"             \
		   "\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"        \
		   "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"" HOSTNAME            \
		   "\",\"operator\":\"In\",\"values\":[\"a\",\"b\",\"c\"]}]}]}}}"
#define PREFERS_B                                                                                  \
	"\"affinity\":{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{"   \
	"\"weight\":100,\"preference\":{\"matchExpressions\":[{\"key\":\"" HOSTNAME                \
	"\",\"operator\":\"In\",\"values\":[\"b\"]}]}}]}}"

/*
 * The critical pod could go to b, which has room for it, and to c, which is full. The others prefer
 * b, and are there before it, as its old one takes its time. To preempt one pod on c is then
 * cheaper than two on b. The plan places the others on d, the emptiest.
 */
static void test_no_pod_is_preempted_on_a_node_that_stays(void **state)
{
	struct story *s = *state;

	make_node("a", false);
	make_kind(s, KUBE_DRAIN_STATEFUL_SET, "vital", 1, 6, CRITICAL);
	make_workload(s, "first", 1, PREFERS_B);
	make_workload(s, "second", 1, PREFERS_B);
	await_pods(s);
	make_node("b", true);
	make_node("c", true);
	make_node("d", true);
	make_workload(s, "on-b", 6, "\"nodeSelector\":{\"" HOSTNAME "\":\"b\"}");
	make_workload(s, "on-c", 4, OF_ONE_CPU ",\"nodeSelector\":{\"" HOSTNAME "\":\"c\"}");
	make_workload(s, "on-d", 4, "\"nodeSelector\":{\"" HOSTNAME "\":\"d\"}");
	start(s, NULL, NULL);
	s->world.keeps_grace = true;
	follow(s, "commands");
	assert_int_equal(s->look.unbound, 0);
	assert_int_equal(count_on(s, "c"), 4);
	ask(s, "a", "--explain");
	expect_said(s, "NotRobust");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_replacement_without_a_node_stops_waves, begin,
						end),
		cmocka_unit_test_setup_teardown(test_candidates_take_no_pods, begin, end),
		cmocka_unit_test_setup_teardown(test_drained_nodes_use_up_no_limit, begin, end),
		cmocka_unit_test_setup_teardown(test_replicas_of_one_node_leave_in_steps, begin,
						end),
		cmocka_unit_test_setup_teardown(test_those_of_a_stateful_set_as_well, begin, end),
		cmocka_unit_test_setup_teardown(test_and_those_with_a_budget, begin, end),
		cmocka_unit_test_setup_teardown(test_bare_pods_are_deleted_by_force, begin, end),
		cmocka_unit_test_setup_teardown(test_no_pod_is_preempted_on_a_node_that_stays,
						begin, end),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	control_plane_must(bed->plane, "POST", "/api/v1/namespaces",
			   "{\"metadata\":{\"name\":\"" NAMESPACE "\"}}");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	return failed != 0;
}
