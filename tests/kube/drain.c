/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a drain plan true? In thirty random clusters the first wave of GET /v1/drain is carried out on a real control plane, as it says: its nodes are cordoned, and
 * exactly its pods are evicted, all of them at once but for those of budgets that make them wait for each other. The API server asks the budgets, real controllers make the
 * pods anew, and a real scheduler binds them, where it likes.
 *
 *     plan --> cordon --> evict --> | settled: every pod is bound, or the scheduler has judged that it cannot be
 *                                   | and at every look: no budget has fewer healthy pods than it desires
 *
 * Of a wave that is called robust every pod must be bound again, outside of the wave, while no other pod had to go for it. Of any wave no eviction may be refused: the plan
 * has counted what budgets allow. And a plan forgets no pod of its nodes. What becomes of waves that are not robust is told.
 *
 * The aggregator is started for each cluster, when that is settled, with other options; for some it hears what nodes really use, and so plans under the cap of real use.
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
#include "tests/kube_drain_world.h"
#include "tests/kube_testbed.h"
#include "tests/kube_usage.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { SEED = 1, CLUSTERS = 30 };
/* Of so many clusters in a hundred the wave must be robust and move pods, or the test shows little. */
enum { ROBUST_PERCENT = 60 };
/* Controllers and the scheduler, on a machine that may be busy with other tests. */
#define SECONDS 180

#define text_at kube_drain_text

static struct kube_testbed *bed;

/* What became of one cluster's wave. */
struct result {
	uint64_t seed;
	size_t nodes, pods, budgets; /* of the cluster */
	bool capped, robust;
	size_t wave_nodes, moved; /* of the plan */
	size_t evicted, bound, refused;
	size_t waiting; /* not evicted: a budget never allowed it */
	size_t violated; /* looks at which a budget had too few */
	size_t displaced; /* pods that were not of the wave, and are gone or elsewhere */
	double seconds;
	char *told; /* owned; NULL: nothing */
};

/* A pod of the wave. */
struct leaver {
	const char *name, *uid, *budget; /* borrowed: of the plan and of the first look; "" */
	bool evicted;
};

struct story {
	struct kube_drain_world world;
	cJSON *plan; /* owned */
	struct kube_drain_look before, now;
	struct leaver *leavers; /* owned */
	struct result result;
};

static double number_at(const cJSON *json, const char *path)
{
	const cJSON *number = json_at(json, path);

	return cJSON_IsNumber(number) ? number->valuedouble : 0;
}

static size_t count_of(const cJSON *json, const char *path)
{
	return (size_t)cJSON_GetArraySize(json_at(json, path));
}

/* --- the plan -------------------------------------------------------------------------------- */

/* A cluster of its own for each combination would be too many: they follow from the seed. */
static void start_aggregator(const struct story *s)
{
	static const char *const utilizations[] = {"0.95", "0.5", "0.7"},
				 *const shares[] = {"1", "0.25", "1", "0.5"},
				 *const slacks[] = {"0", "0", "0.1"};
	uint64_t seed = s->world.seed;
	const char *const options[] = {"--plan-every",
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
	size_t count = 0;
	const cJSON *node, *pod;

	cJSON_ArrayForEach(node, json_at(nodes, "items"))
	{
		const char *name = text_at(node, "metadata.name");
		double cpu = 1000 * strtod(text_at(node, "status.allocatable.cpu"), NULL);

		cJSON_ArrayForEach(pod, json_at(s->before.pods, "items"))
		{
			if (strcmp(text_at(pod, "spec.nodeName"), name) == 0)
				break;
		}
		if (!pod)
			continue;
		cpu *= 0.05 + 0.01 * (double)place_world_draw(&s->world.dice, 60);
		loads[count++] = (struct kube_load){name, text_at(pod, "metadata.uid"), cpu,
						    cpu / 10, (double)(200 << 20)};
	}
	kube_usage_send_loads(&usage, loads, count, url, bed->key_path);
	cJSON_Delete(nodes);
	free(url);
}

/* Nodes that are heard of. */
static size_t count_fresh(void)
{
	cJSON *nodes = kube_testbed_items(bed, 0, "/v1/nodes");
	size_t fresh = 0;
	const cJSON *node;

	cJSON_ArrayForEach(node, nodes)
	{
		fresh += strcmp(text_at(node, "source.state"), "fresh") == 0;
	}
	cJSON_Delete(nodes);
	return fresh;
}

/* Version of a view that has all of the cluster; 0: there is none yet. */
static double whole_view(const struct story *s)
{
	cJSON *status = kube_testbed_get(bed, 0, "/v1/status");
	double version = number_at(status, "view.version");
	const cJSON *r;

	if (s->result.capped && !count_fresh())
		version = 0;
	if (number_at(status, "view.nodes") != (double)s->world.node_count)
		version = 0;
	cJSON_ArrayForEach(r, json_at(status, "kubernetes.resources"))
	{
		const char *state = text_at(r, "state");

		if (strcmp(state, "synced") != 0 && strcmp(state, "absent") != 0)
			version = 0;
	}
	cJSON_Delete(status);
	return version;
}

struct planning {
	struct story *story;
	double version; /* of the view that is planned for, or a later one */
};

/* How long nodes are unneeded is known with the second plan. */
static bool waits_for_time(const cJSON *plan)
{
	const cJSON *node, *reason;

	cJSON_ArrayForEach(node, json_at(plan, "items"))
	{
		cJSON_ArrayForEach(reason, json_at(node, "reasons"))
		{
			if (strcmp(text_at(reason, "code"), "NotUnneededLongEnough") == 0)
				return true;
		}
	}
	return false;
}

static bool is_planned(void *ctx)
{
	struct planning *p = ctx;
	struct story *s = p->story;

	if (!p->version)
		p->version = whole_view(s);
	cJSON_Delete(s->plan);
	s->plan = p->version ? kube_testbed_get(bed, 0, "/v1/drain?explain=true") : NULL;
	return s->plan && number_at(s->plan, "viewVersion") >= p->version &&
	       !waits_for_time(s->plan);
}

static void ask_plan(struct story *s)
{
	struct planning p = {.story = s};
	bool planned;

	start_aggregator(s);
	if (s->result.capped)
		send_use(s);
	planned = await(is_planned, &p, SECONDS);
	kube_testbed_kill_aggregator(bed, 0);
	if (!planned)
		fail_msg("seed %llu: there is no plan", (unsigned long long)s->world.seed);
	if (s->result.capped)
		assert_string_equal(text_at(s->plan, "useCap"), "on");
}

/* --- the wave's pods ------------------------------------------------------------------------- */

static const cJSON *find_pod(const struct kube_drain_look *l, const char *name)
{
	const cJSON *pod;

	cJSON_ArrayForEach(pod, json_at(l->pods, "items"))
	{
		if (strcmp(text_at(pod, "metadata.name"), name) == 0)
			return pod;
	}
	return NULL;
}

static bool is_in_wave(const struct story *s, const char *node)
{
	const cJSON *n;

	cJSON_ArrayForEach(n, json_at(s->plan, "wave.nodes"))
	{
		if (strcmp(text_at(n, "name"), node) == 0)
			return true;
	}
	return false;
}

/* The budget whose pods wait for each other, or "". */
static const char *slow_budget_of(const struct story *s, const cJSON *pod)
{
	const cJSON *cost;

	cJSON_ArrayForEach(cost, json_at(s->plan, "wave.disruptions"))
	{
		const char *name = text_at(cost, "name");

		if (cJSON_IsTrue(json_at(cost, "oneAfterTheOther")) &&
		    (strcmp(name, kube_drain_pod_app(pod)) == 0 ||
		     (strcmp(name, "tier") == 0 &&
		      strcmp(text_at(pod, "metadata.labels.tier"), "x") == 0)))
			return name;
	}
	return "";
}

static void read_leavers(struct story *s)
{
	size_t count = 0, on_nodes = 0;
	const cJSON *node, *move, *pod;

	s->leavers = mem_zalloc((size_t)number_at(s->plan, "wave.pods") + 1, sizeof(*s->leavers));
	cJSON_ArrayForEach(node, json_at(s->plan, "wave.nodes"))
	{
		cJSON_ArrayForEach(move, json_at(node, "moves"))
		{
			if (cJSON_IsTrue(json_at(move, "placeholder")))
				continue;
			pod = find_pod(&s->before, text_at(move, "name"));
			assert_non_null(pod);
			assert_string_equal(text_at(pod, "spec.nodeName"), text_at(node, "name"));
			s->leavers[count++] = (struct leaver){.name = text_at(pod, "metadata.name"),
							      .uid = text_at(pod, "metadata.uid"),
							      .budget = slow_budget_of(s, pod)};
		}
	}
	cJSON_ArrayForEach(pod, json_at(s->before.pods, "items"))
	{
		on_nodes +=
			*kube_drain_pod_app(pod) && is_in_wave(s, text_at(pod, "spec.nodeName"));
	}
	assert_int_equal(count, on_nodes);
	s->result.moved = count;
}

/* --- carrying it out ------------------------------------------------------------------------- */

static void cordon(struct story *s)
{
	const cJSON *node;

	cJSON_ArrayForEach(node, json_at(s->plan, "wave.nodes"))
	{
		char *path = mem_printf("/api/v1/nodes/%s", text_at(node, "name"));

		control_plane_must(bed->plane, "PATCH", path,
				   "{\"spec\":{\"unschedulable\":true}}");
		free(path);
	}
}

static const cJSON *find_budget(const cJSON *budgets, const char *name)
{
	const cJSON *b;

	cJSON_ArrayForEach(b, json_at(budgets, "items"))
	{
		if (strcmp(text_at(b, "metadata.name"), name) == 0)
			return b;
	}
	return NULL;
}

/* The API server may find that a budget's status changes under its hands: that is no answer, and it is asked again. */
static void evict(struct story *s, struct leaver *l)
{
	char *path =
		mem_printf("/api/v1/namespaces/%s/pods/%s/eviction", s->world.namespace, l->name);
	char *body = mem_printf("{\"apiVersion\":\"policy/v1beta1\",\"kind\":\"Eviction\","
				"\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"}}",
				l->name, s->world.namespace);
	struct buf answer = BUF_INIT;
	long status = control_plane_send(bed->plane, "POST", path, body, &answer);

	if (status == 201) {
		l->evicted = true;
		s->result.evicted++;
	} else if (status == 429) {
		s->result.refused++;
		print_message("          pod %s is refused: %s\n", l->name, answer.data);
	} else if (status != 504) {
		fail_msg("eviction of %s: %ld: %s", l->name, status,
			 answer.data ? answer.data : "");
	}
	buf_fini(&answer);
	free(path);
	free(body);
}

/* A budget that makes its pods wait takes them as soon as its status says so, and the others are asked at once. */
static void evict_all(struct story *s)
{
	for (size_t i = 0; i < s->result.moved; i++) {
		struct leaver *l = &s->leavers[i];
		cJSON *budgets = NULL;

		if (l->evicted)
			continue;
		if (*l->budget)
			budgets = kube_drain_world_budgets(&s->world);
		if (!budgets ||
		    number_at(find_budget(budgets, l->budget), "status.disruptionsAllowed") > 0)
			evict(s, l);
		cJSON_Delete(budgets);
	}
}

static void check_budgets(struct story *s, const cJSON *budgets)
{
	const cJSON *b;

	cJSON_ArrayForEach(b, json_at(budgets, "items"))
	{
		if (number_at(b, "status.currentHealthy") >= number_at(b, "status.desiredHealthy"))
			continue;
		s->result.violated++;
		print_message("          budget %s has %g healthy pods of %g\n",
			      text_at(b, "metadata.name"), number_at(b, "status.currentHealthy"),
			      number_at(b, "status.desiredHealthy"));
	}
}

/* Nothing more will happen: everything is bound, or those that are not keep the rest from going. */
static bool is_over(void *ctx)
{
	struct story *s = ctx;
	bool over;
	cJSON *budgets;

	if (s->result.refused <= s->result.moved)
		evict_all(s);
	kube_drain_look_fini(&s->now);
	if (!kube_drain_world_look(&s->world, &s->now))
		return false;
	budgets = kube_drain_world_budgets(&s->world);
	check_budgets(s, budgets);
	over = kube_drain_world_is_settled(&s->world, &s->now) &&
	       (s->result.evicted == s->result.moved ||
		(s->now.unbound && kube_drain_world_budgets_are_true(budgets, &s->now)));
	cJSON_Delete(budgets);
	return over;
}

/* --- what became of it ----------------------------------------------------------------------- */

static const char *judgement(const cJSON *pod)
{
	const cJSON *condition;

	cJSON_ArrayForEach(condition, json_at(pod, "status.conditions"))
	{
		if (strcmp(text_at(condition, "type"), "PodScheduled") == 0)
			return text_at(condition, "message");
	}
	return "";
}

static bool is_leaver(const struct story *s, const char *uid)
{
	for (size_t i = 0; i < s->result.moved; i++)
		if (strcmp(s->leavers[i].uid, uid) == 0)
			return true;
	return false;
}

/* Who is not of the wave stays where it is. */
static void count_displaced(struct story *s)
{
	const cJSON *pod;

	cJSON_ArrayForEach(pod, json_at(s->before.pods, "items"))
	{
		const char *uid = text_at(pod, "metadata.uid");
		const cJSON *same = find_pod(&s->now, text_at(pod, "metadata.name"));

		if (!is_leaver(s, uid) &&
		    (!same || strcmp(text_at(same, "metadata.uid"), uid) != 0))
			s->result.displaced++;
	}
}

/* As JSON; for whoever looks into a wave that was robust, and did not hold. */
static void show_all(struct story *s)
{
	char *text = cJSON_PrintUnformatted(json_at(s->plan, "wave"));
	const cJSON *pod;

	print_message("            wave %s\n", text);
	cJSON_free(text);
	cJSON_ArrayForEach(pod, json_at(s->now.pods, "items"))
	{
		if (*text_at(pod, "spec.nodeName"))
			continue;
		text = cJSON_PrintUnformatted(json_at(pod, "spec"));
		print_message("            pod %s %s\n", text_at(pod, "metadata.name"), text);
		cJSON_free(text);
	}
}

static void judge(struct story *s)
{
	struct result *r = &s->result;
	struct buf told = BUF_INIT;
	const cJSON *pod;

	r->waiting = r->moved - r->evicted;
	r->bound = r->evicted - (s->now.unbound < r->evicted ? s->now.unbound : r->evicted);
	count_displaced(s);
	cJSON_ArrayForEach(pod, json_at(s->now.pods, "items"))
	{
		const char *node = text_at(pod, "spec.nodeName");

		if (!*node)
			buf_printf(&told, "\n        pod %s: %s", text_at(pod, "metadata.name"),
				   judgement(pod));
		else if (*kube_drain_pod_app(pod) && is_in_wave(s, node) && !r->waiting)
			fail_msg("pod %s is on %s", text_at(pod, "metadata.name"), node);
	}
	r->told = told.data;
}

static void tell(struct story *s)
{
	struct result *r = &s->result;

	read_leavers(s);
	cordon(s);
	check_budgets(s, NULL);
	if (!await(is_over, s, SECONDS))
		fail_msg("seed %llu: %zu of %zu pods are evicted, %zu are not bound",
			 (unsigned long long)r->seed, r->evicted, r->moved, s->now.unbound);
	judge(s);
	if (r->robust && (r->bound < r->moved || r->displaced))
		show_all(s);
}

static void story_fini(struct story *s)
{
	kube_drain_look_fini(&s->before);
	kube_drain_look_fini(&s->now);
	cJSON_Delete(s->plan);
	free(s->leavers);
}

static struct result try_cluster(uint64_t seed)
{
	int64_t start_ns = clock_mono_ns();
	struct story s = {.result = {.seed = seed, .capped = seed % 4 == 0}};
	struct result *r = &s.result;
	cJSON *budgets;

	kube_drain_world_make(&s.world, bed, seed);
	assert_true(kube_drain_world_look(&s.world, &s.before));
	print_message("          made %.1f s\n", (double)(clock_mono_ns() - start_ns) / 1e9);
	ask_plan(&s);
	print_message("          planned %.1f s\n", (double)(clock_mono_ns() - start_ns) / 1e9);
	r->nodes = s.world.node_count;
	r->pods = s.before.bound;
	r->budgets = s.world.budget_count;
	r->wave_nodes = count_of(s.plan, "wave.nodes");
	r->robust = cJSON_IsTrue(json_at(s.plan, "wave.robust"));
	tell(&s);
	print_message("          drained %.1f s\n", (double)(clock_mono_ns() - start_ns) / 1e9);
	budgets = kube_drain_world_budgets(&s.world);
	assert_int_equal(count_of(budgets, "items"), r->budgets);
	cJSON_Delete(budgets);
	kube_drain_world_clear(&s.world);
	r->seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
	print_message("          cleared %.1f s\n", r->seconds);
	story_fini(&s);
	return s.result;
}

/* --- all of them ----------------------------------------------------------------------------- */

static void print_row(const struct result *r)
{
	print_message("    %6llu %6zu %5zu %8zu %4s %6zu %7zu %7s %6zu %8zu %9zu %6.1f%s\n",
		      (unsigned long long)r->seed, r->nodes, r->pods, r->budgets,
		      r->capped ? "on" : "off", r->wave_nodes, r->evicted,
		      !r->wave_nodes ? "-"
		      : r->robust    ? "yes"
				     : "no",
		      r->bound, r->refused, r->displaced, r->seconds, r->told ? r->told : "");
}

static uint64_t number_of(const char *variable, uint64_t usual)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 0) : usual;
}

static void test_waves_hold(void **state)
{
	uint64_t first = number_of("EVENKEEL_SEED", SEED),
		 count = number_of("EVENKEEL_CLUSTERS", CLUSTERS);
	struct result *of = mem_zalloc(count + 1, sizeof(*of));
	size_t robust = 0, moved = 0, broken = 0;

	(void)state;
	for (uint64_t i = 0; i < count; i++) {
		of[i] = try_cluster(first + i);
		print_row(&of[i]);
	}
	print_message("    %6s %6s %5s %8s %4s %6s %7s %7s %6s %8s %9s %6s\n", "seed", "nodes",
		      "pods", "budgets", "cap", "wave", "evicted", "robust", "bound", "refusals",
		      "displaced", "s");
	for (uint64_t i = 0; i < count; i++) {
		const struct result *r = &of[i];
		bool held = r->bound == r->moved && !r->displaced;

		print_row(r);
		robust += r->robust && r->moved;
		moved += r->robust ? r->evicted : 0;
		broken += (r->robust && !held) || r->refused || r->violated;
		free(r->told);
	}
	print_message("    %zu robust waves of %zu clusters moved %zu pods\n", robust,
		      (size_t)count, moved);
	free(of);
	assert_int_equal(broken, 0);
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
