/* SPDX-License-Identifier: Apache-2.0 */
/* From readings of pressure and CPU time to the cause in an interval. */
#include "agent/account.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "shared/mem.h"
#include "tests/account_world.h"

#define MS    WORLD_MS
#define WAITS WORLD_POD(1)
#define HOG   WORLD_POD(2)
#define OTHER WORLD_POD(3)

static const char *const tree[] = {WAITS WORLD_CONTAINER(1), HOG WORLD_CONTAINER(2),
				   OTHER WORLD_CONTAINER(3), NULL};

/* How the pods share one second, in milliseconds of a tick of 100. */
struct second {
	int hog_ms, other_ms; /* CPU time in a tick in which the hog runs */
	int waits_ms, full_ms; /* PSI of the pod that waits, in such a tick */
	int throttled_ms; /* in the whole second */
};

static void press(struct world *w, const char *path, int some_ms, int full_ms)
{
	struct reading *r = world_reading(w, path);

	r->have |= HAVE_PSI | HAVE_PSI_CPU_FULL | HAVE_THROTTLE;
	r->psi_cpu_ns += (uint64_t)(some_ms * MS);
	r->psi_cpu_full_ns += (uint64_t)(full_ms * MS);
}

/* The hog runs in the first half of each second, the other pod always. */
static void run(struct world *w, const struct second *s, int seconds)
{
	for (int tick = 0; tick < seconds * 10; tick++) {
		bool on = tick % 10 < 5;

		world_use(w, WAITS, 40 * MS);
		world_use(w, HOG, on ? (uint64_t)(s->hog_ms * MS) : 0);
		world_use(w, OTHER, (uint64_t)(s->other_ms * MS));
		press(w, WAITS, on ? s->waits_ms : 0, on ? s->full_ms : 0);
		press(w, HOG, 0, 0);
		press(w, OTHER, 0, 0);
		if (tick % 10 == 9)
			world_reading(w, WAITS)->throttled_ns += (uint64_t)(s->throttled_ms * MS);
		world_tick(w, 100 * MS, tick % 10 == 9);
	}
}

static void expect(struct world *w, const char *cause)
{
	struct interval *i = world_publish(w);
	const struct entry *waits = world_entry(i, WAITS);

	assert_int_equal(waits->cause.ref, cause ? world_entry(i, cause)->ref : 0);
	assert_true(cause ? waits->cause.share > 0.8F : waits->cause.share == 0);
	assert_int_equal(world_entry(i, HOG)->cause.ref, 0);
	interval_free(i);
}

static void begin(struct world *w)
{
	uint64_t ids[CULPRIT_WATCHED];

	world_start(w, tree);
	run(w, &(struct second){0}, 1);
	assert_int_equal(account_watched(w->account, ids), 0);
}

static void test_the_hog_is_named(void **state)
{
	const struct second s = {.hog_ms = 300, .other_ms = 100, .waits_ms = 60, .full_ms = 55};
	struct world *w = *state;
	uint64_t ids[CULPRIT_WATCHED];

	begin(w);
	run(w, &s, 10);
	assert_int_equal(account_watched(w->account, ids), 1);
	assert_true(ids[0] == world_id(w, WAITS));
	expect(w, HOG);
}

static void test_throttling_names_nobody(void **state)
{
	const struct second s = {
		.hog_ms = 300, .other_ms = 100, .waits_ms = 60, .full_ms = 55, .throttled_ms = 200};
	struct world *w = *state;

	begin(w);
	run(w, &s, 20);
	expect(w, NULL);
}

static void test_waiting_for_its_own_tasks_names_nobody(void **state)
{
	const struct second s = {.hog_ms = 300, .other_ms = 100, .waits_ms = 60, .full_ms = 10};
	struct world *w = *state;

	begin(w);
	run(w, &s, 10);
	expect(w, NULL);
}

static void bind(struct world *w, const char *path, const char *cpus)
{
	for (size_t i = 0; i < topology_count(w->topology); i++) {
		struct cgroup *c = topology_at(w->topology, i);

		if (!strcmp(c->path, path))
			c->cpus = mem_strdup(cpus);
	}
}

/* A pod that runs on other CPUs in step with the waiting is not its cause. */
static void test_pods_on_other_cpus_are_not_named(void **state)
{
	const struct second s = {.hog_ms = 300, .other_ms = 2, .waits_ms = 60, .full_ms = 55};
	struct world *w = *state;

	begin(w);
	bind(w, tree[0], "4-5\n");
	bind(w, tree[1], "2-3\n");
	run(w, &s, 15);
	expect(w, NULL);
}

/* The same if it waited before, and so was known first. */
static void test_a_known_pod_on_other_cpus_is_not_named(void **state)
{
	const struct second s = {.hog_ms = 300, .other_ms = 2, .waits_ms = 60, .full_ms = 55};
	struct world *w = *state;

	world_start(w, tree);
	bind(w, tree[0], "4-5\n");
	bind(w, tree[1], "6-7\n");
	for (int tick = 0; tick < 20; tick++) {
		world_use(w, HOG, 10 * MS);
		press(w, WAITS, 0, 0);
		press(w, HOG, 60, 55);
		world_tick(w, 100 * MS, tick % 10 == 9);
	}
	run(w, &s, 15);
	expect(w, NULL);
}

static void test_watching_ends_with_the_waiting(void **state)
{
	const struct second s = {.hog_ms = 300, .other_ms = 100, .waits_ms = 60, .full_ms = 55};
	struct world *w = *state;
	uint64_t ids[CULPRIT_WATCHED];

	begin(w);
	run(w, &s, 10);
	run(w, &(struct second){.hog_ms = 300, .other_ms = 100}, 30);
	assert_int_equal(account_watched(w->account, ids), 0);
	expect(w, NULL);
}

static void all_wait(struct world *w, const char *const *pods, size_t count, int seconds)
{
	for (int tick = 0; tick < seconds * 10; tick++) {
		for (size_t i = 0; i < count; i++) {
			world_use(w, pods[i], 20 * MS);
			press(w, pods[i], 60, 55);
		}
		world_tick(w, 100 * MS, tick % 10 == 9);
	}
}

/* Of ten pods that wait eight are watched; the place of one that ends is another's. */
static void test_watched_pods_that_end(void **state)
{
	static const char *pods[] = {WORLD_POD(0), WORLD_POD(1), WORLD_POD(2), WORLD_POD(3),
				     WORLD_POD(4), WORLD_POD(5), WORLD_POD(6), WORLD_POD(7),
				     WORLD_POD(8), WORLD_POD(9), NULL};
	struct world *w = *state;
	uint64_t ids[CULPRIT_PODS];
	size_t left = 10;

	world_start(w, pods);
	all_wait(w, pods, left, 3);
	assert_int_equal(account_watched(w->account, ids), CULPRIT_WATCHED);
	for (; left > 8; left--) {
		size_t gone = 0;

		while (world_id(w, pods[gone]) != ids[2])
			gone++;
		world_rmdir(w, pods[gone]);
		world_scan(w);
		pods[gone] = pods[left - 1];
		all_wait(w, pods, left - 1, 3);
		assert_int_equal(account_watched(w->account, ids), CULPRIT_WATCHED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_the_hog_is_named),
		WORLD_TEST(test_throttling_names_nobody),
		WORLD_TEST(test_waiting_for_its_own_tasks_names_nobody),
		WORLD_TEST(test_pods_on_other_cpus_are_not_named),
		WORLD_TEST(test_a_known_pod_on_other_cpus_is_not_named),
		WORLD_TEST(test_watching_ends_with_the_waiting),
		WORLD_TEST(test_watched_pods_that_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
