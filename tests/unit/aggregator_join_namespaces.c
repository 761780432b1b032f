/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/near.h"
#include "tests/sanitized.h"
#include "tests/view_fixture.h"

/* The start of a bucket. */
#define NOW (VIEW_FIXTURE_NOW_NS / (30 * NS_PER_SEC) * 30 * NS_PER_SEC)

enum { NODES = 8, SPACES = 6, PODS = 240, EVENTS = RANDOM_CASES(100000), PUBLISH_EVERY = 50 };

static struct model *model;
static struct join *join;
static struct node_stats *node_stats[NODES]; /* sorted; NULL: the node is not heard */
static int64_t now_ns;

static int setup(void **state)
{
	(void)state;
	model = model_new();
	join = join_new();
	now_ns = NOW;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	join_free(join);
	model_free(model);
	for (int i = 0; i < NODES; i++) {
		node_stats_drop(node_stats[i]);
		node_stats[i] = NULL;
	}
	return 0;
}

static struct view *publish(void)
{
	struct node_stats *heard[NODES];
	size_t count = 0;

	for (int i = 0; i < NODES; i++)
		if (node_stats[i])
			heard[count++] = node_stats[i];
	return join_view(join, heard, count, model_cluster(model), now_ns);
}

/* node < 0: pending. requests: members of a JSON object. */
static void put_pod(const char *namespace, const char *name, int node, const char *phase,
		    const char *requests)
{
	char *place = node < 0 ? mem_strdup("") : mem_printf("\"nodeName\":\"n%d\",", node);
	char *json =
		mem_printf("{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\"},"
			   "\"spec\":{%s\"containers\":[{\"name\":\"c\",\"resources\":"
			   "{\"requests\":{%s}}}]},\"status\":{\"phase\":\"%s\"}}",
			   namespace, name, name, place, requests, phase);

	model_put(model, model_fixture_object(OBJECT_POD, json));
	free(json);
	free(place);
}

/* One pod, and what it used as of end_ns. */
static struct pod_stats measured(const char *uid, int64_t end_ns, double seconds, double cpu)
{
	struct pod_stats p = join_fixture_pod(uid, uid, end_ns, seconds, cpu, 1000 * cpu);

	if (seconds > 0)
		p.usage.latest.cpu_milli = (struct latest){(float)cpu, 0, true};
	return p;
}

static void hear(int node, const struct pod_stats *pods, size_t count)
{
	char name[16];

	snprintf(name, sizeof(name), "n%d", node);
	node_stats_drop(node_stats[node]);
	node_stats[node] = join_fixture_stats(name, now_ns, pods, count);
}

/* --- counted anew ----------------------------------------------------------------------------- */

struct recount {
	uint32_t bound_pods, pending_pods, pods;
	struct resources bound, pending;
	double cpu, working_set;
	bool there;
};

static void recount_pod(struct recount *r, const struct kube_pod *p, bool pending)
{
	r->there = true;
	if (!kube_pod_is_active(p))
		return;
	*(pending ? &r->pending_pods : &r->bound_pods) += 1;
	resources_add(pending ? &r->pending : &r->bound, kube_pod_requests(p));
}

static void recount_use(struct recount *r, const struct view_pod *p)
{
	const struct pod_usage *u = p->use ? &p->use->usage : NULL;

	if (!u || !u->cpu_milli[WINDOW_5M].samples || !kube_pod_is_active(p->pod))
		return;
	r->pods++;
	r->cpu += (double)u->cpu_milli[WINDOW_5M].mean;
	r->working_set += (double)u->working_set_bytes[WINDOW_5M].mean;
}

static void recount(const struct view *v, const char *namespace, struct recount *r)
{
	const struct object_table *pending = v->cluster->tables[OBJECT_POD];

	for (size_t i = 0; i < pending->count; i++)
		if (strcmp(pending->of[i]->namespace, namespace) == 0)
			recount_pod(r, (const struct kube_pod *)pending->of[i], true);
	for (size_t i = 0; i < v->node_count; i++) {
		const struct view_node *n = v->nodes[i];

		for (size_t k = 0; k < n->pod_count; k++) {
			if (!n->pods[k].pod ||
			    strcmp(n->pods[k].pod->object.namespace, namespace) != 0)
				continue;
			recount_pod(r, n->pods[k].pod, false);
			recount_use(r, &n->pods[k]);
		}
	}
}

static void check_space(const struct view *v, const char *namespace)
{
	const struct namespace_sums *got = view_namespace(v, namespace);
	struct recount want = {0};

	recount(v, namespace, &want);
	assert_int_equal(got != NULL, want.there);
	if (got) {
		assert_int_equal(got->bound_pods, want.bound_pods);
		assert_int_equal(got->pending_pods, want.pending_pods);
		assert_true(resources_equal(&got->bound, &want.bound));
		assert_true(resources_equal(&got->pending, &want.pending));
		assert_int_equal(got->use.pods, want.pods);
		assert_near(got->use.cpu_mean_milli, want.cpu);
		assert_near(got->use.working_set_bytes, want.working_set);
	}
	resources_fini(&want.bound);
	resources_fini(&want.pending);
}

static void check(const struct view *v)
{
	char namespace[16];

	for (int s = 0; s < SPACES; s++) {
		snprintf(namespace, sizeof(namespace), "s%d", s);
		check_space(v, namespace);
	}
	for (size_t i = 1; v->namespaces && i < v->namespaces->count; i++)
		assert_true(strcmp(v->namespaces->of[i - 1].name, v->namespaces->of[i].name) < 0);
}

/* --- a long random life ----------------------------------------------------------------------- */

static uint64_t seed;

static unsigned int pick(unsigned int below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned int)(seed >> 33) % below;
}

/* A pod comes, is changed in place (resized, ended), moves, or goes. */
static void random_event(void)
{
	static const char *const requests[] = {
		"",
		"\"cpu\":\"100m\"",
		"\"cpu\":\"1\",\"memory\":\"1Gi\"",
		"\"cpu\":\"250m\",\"memory\":\"300Mi\",\"ephemeral-storage\":\"1Gi\"",
		"\"nvidia.com/gpu\":\"2\",\"cpu\":\"0\"",
		"\"a.example/x\":\"1\",\"nvidia.com/gpu\":\"1\",\"memory\":\"7\"",
		"\"memory\":\"9223372036854775807\"",
	};
	static const char *const phases[] = {"Running", "Running", "Pending", "Failed",
					     "Succeeded"};
	unsigned int pod = pick(PODS);
	char namespace[16], name[16];

	snprintf(namespace, sizeof(namespace), "s%u", pod % SPACES);
	snprintf(name, sizeof(name), "p%u", pod);
	if (pick(4) == 0)
		model_remove(model, OBJECT_POD, namespace, name);
	else
		put_pod(namespace, name, (int)pick(NODES + 2) - 2, phases[pick(5)],
			requests[pick(sizeof(requests) / sizeof(requests[0]) - (pod % 40 != 0))]);
}

static void random_stats(void)
{
	int node = (int)pick(NODES);
	struct pod_stats pods[20];
	char uids[20][16];
	size_t count = 0;

	if (pick(8) == 0) {
		node_stats_drop(node_stats[node]);
		node_stats[node] = NULL;
		return;
	}
	/* Of 10 numbers each: sorted by name, and nobody is there twice. */
	for (unsigned int i = 0; i < 20; i++) {
		static const double seconds[] = {0, 60, 900};

		snprintf(uids[count], sizeof(uids[count]), "p%u", 100 + 7 * i + pick(7));
		pods[count] = measured(uids[count], now_ns, seconds[pick(3)], pick(4000));
		count += pick(3) > 0;
	}
	hear(node, pods, count);
}

static void sums_never_drift_from_a_recount(void **state)
{
	(void)state;
	seed = 42;
	for (int i = 0; i < EVENTS; i++) {
		struct view *v;

		random_event();
		if (i % PUBLISH_EVERY)
			continue;
		random_stats();
		v = publish();
		check(v);
		view_drop(v);
	}
}

static void nothing_is_left_when_all_pods_are_gone(void **state)
{
	struct view *v;

	(void)state;
	seed = 7;
	for (int i = 0; i < 2000; i++)
		random_event();
	view_drop(publish());
	for (int i = 0; i < PODS; i++) {
		char namespace[16], name[16];

		snprintf(namespace, sizeof(namespace), "s%d", i % SPACES);
		snprintf(name, sizeof(name), "p%d", i);
		model_remove(model, OBJECT_POD, namespace, name);
	}
	v = publish();
	assert_null(v->namespaces);
	assert_null(view_namespace(v, "s1"));
	view_drop(v);
}

/* --- single rules ----------------------------------------------------------------------------- */

static void a_table_is_shared_until_something_changes(void **state)
{
	struct view *first, *second, *third;

	(void)state;
	put_pod("a", "p", 0, "Running", "\"cpu\":\"1\"");
	first = publish();
	second = publish();
	put_pod("a", "q", -1, "Pending", "\"cpu\":\"2\"");
	third = publish();
	assert_ptr_equal(first->namespaces, second->namespaces);
	assert_ptr_not_equal(first->namespaces, third->namespaces);
	assert_int_equal(view_namespace(first, "a")->pending_pods, 0);
	assert_int_equal(view_namespace(third, "a")->pending.of[RESOURCE_CPU], 2000);
	view_drop(first);
	view_drop(second);
	view_drop(third);
}

/* A resource that no pod names any more is absent, not 0. */
static void keys_go_with_the_last_pod_that_names_them(void **state)
{
	struct view *v;

	(void)state;
	put_pod("a", "p", 0, "Running", "\"cpu\":\"1\",\"nvidia.com/gpu\":\"1\"");
	put_pod("a", "q", 0, "Running", "\"memory\":\"1\"");
	view_drop(publish());
	model_remove(model, OBJECT_POD, "a", "p");
	v = publish();
	assert_int_equal(view_namespace(v, "a")->bound.has, 1 << RESOURCE_MEMORY);
	assert_int_equal(view_namespace(v, "a")->bound.extended_count, 0);
	view_drop(v);
}

/* More than 64 bits together, and back again. */
static void sums_are_cut_but_not_lost(void **state)
{
	static const char huge[] = "\"memory\":\"9223372036854775807\"";
	struct view *v;

	(void)state;
	put_pod("a", "p", 0, "Running", huge);
	put_pod("a", "q", 0, "Running", huge);
	put_pod("a", "r", 0, "Running", "\"memory\":\"5\"");
	v = publish();
	assert_int_equal(view_namespace(v, "a")->bound.of[RESOURCE_MEMORY], INT64_MAX);
	view_drop(v);
	model_remove(model, OBJECT_POD, "a", "p");
	model_remove(model, OBJECT_POD, "a", "q");
	v = publish();
	assert_int_equal(view_namespace(v, "a")->bound.of[RESOURCE_MEMORY], 5);
	view_drop(v);
}

static void nodes_not_heard_for_long_do_not_count(void **state)
{
	struct pod_stats pod;
	struct view *v;

	(void)state;
	put_pod("a", "p", 0, "Running", "\"cpu\":\"1\"");
	pod = measured("p", now_ns, 900, 500);
	hear(0, &pod, 1);
	v = publish();
	assert_int_equal(view_namespace(v, "a")->use.pods, 1);
	assert_near(view_namespace(v, "a")->use.cpu_mean_milli, 500);
	view_drop(v);
	now_ns += EXPIRED_NS + 31 * NS_PER_SEC;
	v = publish();
	assert_int_equal(view_namespace(v, "a")->use.pods, 0);
	assert_int_equal(view_namespace(v, "a")->bound_pods, 1);
	view_drop(v);
}

/* --- percentiles ------------------------------------------------------------------------------ */

/* The pods of two nodes, each at that CPU from now on. */
static void use(double first, double second)
{
	struct pod_stats pods[2] = {measured("p", now_ns, 900, first),
				    measured("q", now_ns, 900, second)};

	hear(0, &pods[0], 1);
	hear(1, &pods[1], 1);
}

static const struct namespace_use *use_now(struct view **v)
{
	view_drop(*v);
	*v = publish();
	return &view_namespace(*v, "a")->use;
}

/* Each bucket's mean is of both pods together: 10 + 20 + .. for one, less for the other. */
static void percentiles_are_of_the_sums_of_all_pods(void **state)
{
	struct view *v = NULL;

	(void)state;
	put_pod("a", "p", 0, "Running", "\"cpu\":\"1\"");
	put_pod("a", "q", 1, "Running", "\"cpu\":\"1\"");
	for (int i = 0; i < 9; i++, now_ns += 30 * NS_PER_SEC) {
		use(100 * i, 1000);
		assert_true(isnan(use_now(&v)->cpu_p50_milli));
	}
	for (int i = 9; i < 40; i++, now_ns += 30 * NS_PER_SEC) {
		use(100 * i, 1000);
		use_now(&v);
	}
	/* The last 30 buckets are those of 10 to 39. */
	assert_near(use_now(&v)->cpu_p50_milli, 1000 + 2400);
	assert_near(use_now(&v)->cpu_p95_milli, 1000 + 3800);
	view_drop(v);
}

/* In one bucket 10 s at 600 and 20 s at 300 in all: 400. */
static void a_bucket_is_the_mean_over_its_time(void **state)
{
	struct view *v = NULL;

	(void)state;
	put_pod("a", "p", 0, "Running", "\"cpu\":\"1\"");
	put_pod("a", "q", 1, "Running", "\"cpu\":\"1\"");
	for (int i = 0; i < 12; i++) {
		use(400, 200);
		use_now(&v);
		now_ns += 10 * NS_PER_SEC;
		use(100, 200);
		use_now(&v);
		now_ns += 20 * NS_PER_SEC;
	}
	assert_near(use_now(&v)->cpu_p50_milli, 400);
	assert_near(use_now(&v)->cpu_p95_milli, 400);
	view_drop(v);
}

/* The pod is seen for 10 s of each bucket only. */
static void buckets_hardly_measured_are_not_known(void **state)
{
	struct view *v = NULL;

	(void)state;
	put_pod("a", "p", 0, "Running", "\"cpu\":\"1\"");
	put_pod("a", "q", 1, "Running", "\"cpu\":\"1\"");
	for (int i = 0; i < 20; i++) {
		use(400, 200);
		use_now(&v);
		now_ns += 10 * NS_PER_SEC;
		hear(0, NULL, 0);
		hear(1, NULL, 0);
		use_now(&v);
		now_ns += 20 * NS_PER_SEC;
	}
	assert_true(isnan(use_now(&v)->cpu_p50_milli));
	view_drop(v);
}

/*
 * Nobody published for an hour, so nothing is known of it; then the clock goes back, and what is
 * heard counts at once.
 */
static void leaps_of_the_clock_make_up_nothing(void **state)
{
	struct view *v = NULL;

	(void)state;
	put_pod("a", "p", 0, "Running", "\"cpu\":\"1\"");
	put_pod("a", "q", 1, "Running", "\"cpu\":\"1\"");
	for (int i = 0; i < 12; i++, now_ns += 30 * NS_PER_SEC) {
		use(400, 200);
		use_now(&v);
	}
	assert_near(use_now(&v)->cpu_p50_milli, 600);
	now_ns += 3600 * NS_PER_SEC;
	use(100, 200);
	assert_true(isnan(use_now(&v)->cpu_p50_milli));
	now_ns -= 1800 * NS_PER_SEC;
	use(100, 300);
	assert_near(use_now(&v)->cpu_mean_milli, 400);
	for (int i = 0; i < 12; i++, now_ns += 30 * NS_PER_SEC) {
		use(100, 300);
		use_now(&v);
	}
	assert_near(use_now(&v)->cpu_p95_milli, 400);
	view_drop(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sums_never_drift_from_a_recount, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_left_when_all_pods_are_gone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_table_is_shared_until_something_changes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(keys_go_with_the_last_pod_that_names_them, setup,
						teardown),
		cmocka_unit_test_setup_teardown(sums_are_cut_but_not_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(nodes_not_heard_for_long_do_not_count, setup,
						teardown),
		cmocka_unit_test_setup_teardown(percentiles_are_of_the_sums_of_all_pods, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_bucket_is_the_mean_over_its_time, setup,
						teardown),
		cmocka_unit_test_setup_teardown(buckets_hardly_measured_are_not_known, setup,
						teardown),
		cmocka_unit_test_setup_teardown(leaps_of_the_clock_make_up_nothing, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
