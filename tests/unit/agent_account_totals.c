/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promise behind every mean: over any pattern of ticks, publishes, births and deaths, mean
 * times weight summed over all intervals is what the counters say was used. A seeded machine runs
 * in each way counters can be read.
 */
#include "agent/account.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/account_world.h"

/* Parents before children. All are listed but the last two, which count with what holds them. */
static const char *const plain_paths[] = {
	"/a.slice",
	"/a.slice/b.slice",
	"/a.slice/b.slice/c.service",
	"/a.slice/d.service",
	"/plain",
	"/plain/x",
	"/plain/y",
	"/plain/x/z",
	"/e.scope",
	"/e.scope/sub",
	"/a.slice/d.service/sub",
};
static const char *const pod_paths[] = {
	WORLD_POD(1),
	WORLD_POD(1) WORLD_CONTAINER(1),
	WORLD_POD(1) WORLD_CONTAINER(2),
	WORLD_POD(2),
	WORLD_POD(2) WORLD_CONTAINER(3),
	WORLD_POD(3),
	WORLD_POD(3) WORLD_CONTAINER(4),
	"/kubepods",
	"/kubepods/burstable",
	WORLD_POD(1) "/crio-conmon-x",
	WORLD_POD(2) WORLD_CONTAINER(3) "/sub",
};
static const char *const detached_paths[] = {
	WORLD_POD(1),
	WORLD_APART(1, 1),
	WORLD_APART(1, 2),
	WORLD_POD(2),
	WORLD_POD(2) WORLD_CONTAINER(3),
	WORLD_APART(2, 4),
	WORLD_POD(3),
	"/kubepods",
	"/containerd.service",
	WORLD_APART(1, 1) "/sub",
	WORLD_APART(2, 4) "/sub",
};

enum { PATHS = 11, STEPS = 3000, CALM_STEPS = 200 };

static const struct way {
	const char *name;
	const char *const *paths;
	size_t listed; /* the first so many paths */
	bool local; /* counters of own tasks */
	bool root; /* the root has one, of everything */
	bool misses; /* passes miss cgroups */
	bool removes; /* cgroups die with use that nobody has seen, and their removals are told */
} ways[] = {
	{"own tasks, plain machine", plain_paths, 9, true, false, false, false},
	{"subtrees, plain machine", plain_paths, 9, false, false, false, false},
	{"subtrees with the root, plain machine", plain_paths, 9, false, true, false, false},
	{"own tasks with misses, plain machine", plain_paths, 9, true, false, true, false},
	{"subtrees with misses, plain machine", plain_paths, 9, false, true, true, false},
	{"own tasks, Kubernetes", pod_paths, 7, true, false, false, false},
	{"subtrees, Kubernetes", pod_paths, 7, false, true, false, false},
	{"removals, plain machine", plain_paths, 9, true, false, false, true},
	{"removals with misses, plain machine", plain_paths, 9, true, false, true, true},
	{"removals, Kubernetes", pod_paths, 7, true, false, false, true},
	{"removals with misses, Kubernetes", pod_paths, 7, true, false, true, true},
	{"own tasks, detached containers", detached_paths, 7, true, false, false, false},
	{"subtrees, detached containers", detached_paths, 7, false, true, false, false},
	{"removals, detached containers", detached_paths, 7, true, false, false, true},
	{"removals with misses, detached containers", detached_paths, 7, true, false, true, true},
};

struct sim {
	const struct way *way;
	struct world *world;
	uint64_t random;
	struct {
		bool alive;
		bool unread; /* has used something that no tick has seen */
		uint64_t counter_ns;
	} cgroups[PATHS];
	bool scan_due; /* the last change came after the scan */
	struct removal removals[PATHS + 1];
	size_t removal_count;
	uint64_t everything_ns; /* by the whole machine since the first tick */
	double want[PATHS], got[PATHS]; /* millicore seconds */
	double got_node;
};

static uint64_t pick(struct sim *s, uint64_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random % below;
}

static bool is_below(const char *path, const char *above)
{
	size_t len = strlen(above);

	return !strncmp(path, above, len) && (path[len] == '/' || !path[len]);
}

/* The pod of what is a detached container, or below one; else what it is itself. */
static const char *place_of(const char *path)
{
	if (is_below(path, WORLD_APART(1, 1)) || is_below(path, WORLD_APART(1, 2)))
		return WORLD_POD(1);
	return is_below(path, WORLD_APART(2, 4)) ? WORLD_POD(2) : path;
}

/* What is below, and of a pod also its detached containers. */
static bool is_part(const char *path, const char *whole)
{
	return is_below(path, whole) || !strcmp(place_of(path), whole);
}

/* No container outlives its pod. */
static bool goes_with(const char *path, const char *gone)
{
	return is_below(path, gone) || is_below(place_of(path), gone);
}

/* Cgroup n uses CPU time; so do those that hold it. */
static void use(struct sim *s, size_t n, uint64_t ns)
{
	s->everything_ns += ns;
	for (size_t i = 0; i < PATHS; i++) {
		if (!is_part(s->way->paths[n], s->way->paths[i]))
			continue;
		if (i == n || (!s->way->local && is_below(s->way->paths[n], s->way->paths[i])))
			s->cgroups[i].counter_ns += ns;
		s->cgroups[i].unread = true;
		s->want[i] += (double)ns * 1e-6;
	}
}

/* The last of its use, and the removals of all that goes with it, children first. */
static void remove_cgroup(struct sim *s, const char *path)
{
	for (size_t len = ENTITY_NAME_MAX; len >= strlen(path); len--) {
		for (size_t i = 0; i < PATHS; i++) {
			const char *below = s->way->paths[i];

			if (strlen(below) != len || !goes_with(below, path) || !s->cgroups[i].alive)
				continue;
			use(s, i, pick(s, 300000));
			s->removals[s->removal_count++] =
				world_removal(s->world, below, s->cgroups[i].counter_ns);
		}
	}
}

/* A cgroup below n that is made, used and removed where no scan sees it. */
static void spark(struct sim *s, size_t n)
{
	uint64_t before = s->cgroups[n].counter_ns;
	bool unread = s->cgroups[n].unread;
	char path[ENTITY_NAME_MAX];

	snprintf(path, sizeof(path), "%s/spark", s->way->paths[n]);
	world_mkdir(s->world, path);
	use(s, n, pick(s, 300000));
	s->removals[s->removal_count++] =
		world_removal(s->world, path, s->cgroups[n].counter_ns - before);
	s->cgroups[n].counter_ns = before;
	s->cgroups[n].unread = unread;
	world_rmdir(s->world, path);
}

static void tell(struct sim *s)
{
	world_remove(s->world, 25 * WORLD_MS, s->removals, s->removal_count);
	s->removal_count = 0;
}

static void make(struct sim *s, const char *path)
{
	world_mkdir(s->world, path);
	world_mkdir(s->world, place_of(path));
}

static void remove_all(struct sim *s, const char *path)
{
	for (size_t i = 0; i < PATHS; i++)
		if (goes_with(s->way->paths[i], path))
			world_rmdir(s->world, s->way->paths[i]);
}

/* Births and deaths between ticks. Without removals a cgroup only dies with all its use seen. */
static void change_cgroups(struct sim *s)
{
	size_t n = pick(s, PATHS);
	const char *path = s->way->paths[n];
	bool kept = false;

	if (!s->cgroups[n].alive) {
		make(s, path);
	} else if (s->way->removes && pick(s, 2)) {
		spark(s, n);
	} else if (s->way->removes) {
		remove_cgroup(s, path);
		remove_all(s, path);
		s->scan_due = pick(s, 2);
	} else {
		for (size_t i = 0; i < PATHS; i++)
			kept |= goes_with(s->way->paths[i], path) && s->cgroups[i].unread;
		if (kept)
			return;
		remove_all(s, path);
	}
	if (!s->scan_due)
		world_scan(s->world);
	tell(s);
	for (size_t i = 0; i < PATHS; i++) {
		bool alive = false;

		for (size_t k = 0; k < s->world->path_count; k++)
			alive |= !strcmp(s->world->paths[k].path, s->way->paths[i]);
		if (alive != s->cgroups[i].alive) {
			memset(&s->cgroups[i], 0, sizeof(s->cgroups[i]));
			s->cgroups[i].alive = alive;
		}
	}
}

static void read_cgroups(struct sim *s, bool all)
{
	struct reading *root = world_reading(s->world, "/");

	for (size_t i = 0; i < PATHS; i++) {
		struct reading *r;

		if (!s->cgroups[i].alive)
			continue;
		r = world_reading(s->world, s->way->paths[i]);
		r->have = 0;
		if (!all && s->way->misses && pick(s, 4) == 0)
			continue;
		r->have = HAVE_CPU | (s->way->local ? HAVE_CPU_LOCAL : 0);
		r->cpu_ns = s->cgroups[i].counter_ns;
		s->cgroups[i].unread = false;
	}
	if (s->way->root) {
		root->have = HAVE_CPU;
		root->cpu_ns = s->everything_ns;
	}
}

/*
 * calm: everything uses a little and evenly, and every pass sees all of it. What is seen late may
 * be more than the machine could do since the last tick, and is settled later; the dead have no
 * later, so in ways with both all is little.
 */
static void step(struct sim *s, int64_t dt_ns, bool calm, bool slow)
{
	uint64_t divisor = calm ? 8 : s->way->removes && s->way->misses ? 64 : 1;
	uint64_t share = (uint64_t)dt_ns * (WORLD_CPU_MILLI / 1000) / (PATHS + 1) / divisor;

	for (size_t i = 0; i < PATHS; i++)
		if (s->cgroups[i].alive && (calm || pick(s, 3)))
			use(s, i, calm ? share : pick(s, share));
	s->everything_ns += calm ? share : pick(s, share); /* the kernel, in no cgroup */
	read_cgroups(s, calm);
	if (slow)
		s->world->machine.cpu_busy_ns = s->everything_ns;
	world_tick(s->world, dt_ns, slow);
}

static void publish(struct sim *s)
{
	struct interval *interval = world_publish(s->world);

	if (!interval)
		return;
	for (size_t e = 0; e < interval->entry_count; e++) {
		const struct entry *entry = &interval->entries[e];
		size_t i = 0;

		while (i < s->way->listed && strcmp(s->way->paths[i] + 1, entry->entity->name) != 0)
			i++;
		if (i < s->way->listed)
			s->got[i] += world_total(&entry->usage);
	}
	s->got_node += world_total(&interval->node.usage);
	interval_free(interval);
}

static void check(const struct sim *s)
{
	double want_node = (double)s->everything_ns * 1e-6;

	for (size_t i = 0; i < s->way->listed; i++)
		if (fabs(s->got[i] - s->want[i]) > 1e-6 * s->want[i])
			fail_msg("%s: %s has %.6f, used %.6f millicore seconds", s->way->name,
				 s->way->paths[i], s->got[i], s->want[i]);
	/* With misses the machine's rest holds what was not seen in time. */
	if ((!s->way->misses || s->way->root) && fabs(s->got_node - want_node) > 1e-6 * want_node)
		fail_msg("%s: the node has %.6f, used %.6f", s->way->name, s->got_node, want_node);
	assert_true(s->want[0] > 1e3);
}

/* Removals are told 25 ms after the tick before. */
static int64_t pick_dt(struct sim *s)
{
	int64_t least = s->way->removes ? 30 * WORLD_MS : WORLD_MS;

	return pick(s, 10) ? 100 * WORLD_MS : least + (int64_t)pick(s, 2500 * WORLD_MS);
}

static void run(const struct way *way, uint64_t seed)
{
	struct sim s = {.way = way, .world = world_new(), .random = seed};

	change_cgroups(&s);
	read_cgroups(&s, true);
	s.world->machine.cpu_busy_ns = 1;
	world_tick(s.world, WORLD_S, true);
	for (int n = 0; n < STEPS; n++) {
		if (s.scan_due)
			world_scan(s.world);
		s.scan_due = false;
		if (pick(&s, 6) == 0)
			change_cgroups(&s);
		step(&s, pick_dt(&s), false, pick(&s, 10) == 0);
		if (pick(&s, 20) == 0)
			publish(&s);
	}
	/* Everything unsettled finds room. */
	for (int n = 0; n < CALM_STEPS; n++) {
		step(&s, WORLD_S, true, true);
		publish(&s);
	}
	check(&s);
	world_free(s.world);
}

static void test_totals(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(ways) / sizeof(ways[0]); n++)
		for (uint64_t seed = 1; seed <= 3; seed++)
			run(&ways[n], seed * 7919 + n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
