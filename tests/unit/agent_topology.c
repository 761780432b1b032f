/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/topology.h"

#define V2 HIERARCHY_UNIFIED

struct added {
	const char *path;
	uint64_t id[HIERARCHIES];
};

static int setup(void **state)
{
	*state = topology_new();
	return 0;
}

static int teardown(void **state)
{
	topology_free(*state);
	return 0;
}

static void add(struct topology *t, enum hierarchy h, const char *path, uint64_t id)
{
	assert_int_equal(topology_add(t, h, path, id), 0);
}

/* One whole rescan, hierarchy by hierarchy, in this order of hierarchies. */
static bool rescan(struct topology *t, const struct added *list, size_t count, bool backwards)
{
	uint64_t before = topology_generation(t);
	bool changed;

	topology_begin(t);
	for (int i = 0; i < HIERARCHIES; i++) {
		int h = backwards ? HIERARCHIES - 1 - i : i;

		for (size_t k = 0; k < count; k++) {
			if (list[k].id[h])
				add(t, (enum hierarchy)h, list[k].path, list[k].id[h]);
		}
	}
	changed = topology_commit(t);
	assert_int_equal(topology_generation(t) != before, changed);
	return changed;
}

static struct cgroup *at_path(struct topology *t, const char *path)
{
	for (size_t i = 0; i < topology_count(t); i++) {
		if (strcmp(topology_at(t, i)->path, path) == 0)
			return topology_at(t, i);
	}
	return NULL;
}

static void test_empty(void **state)
{
	struct topology *t = *state;

	assert_int_equal(topology_count(t), 0);
	assert_int_equal(topology_find(t, V2, 1, 0), CGROUP_NONE);
	topology_begin(t);
	assert_false(topology_commit(t));
	assert_int_equal(topology_generation(t), 0);
	assert_int_equal(topology_count(t), 0);
	assert_int_equal(topology_overflow(t), 0);
	assert_false(topology_has_pods(t));
}

/*
 * Whatever order directories are read in, rows come by path, and every subtree is one piece behind
 * its root.
 */
static void test_order_and_parents(void **state)
{
	static const struct {
		const char *path;
		int parent;
		uint32_t children;
	} want[] = {
		{"/", CGROUP_NONE, 4}, {"/a", 0, 2},	 {"/a/\x01", 1, 0},
		{"/a/b", 1, 1},	       {"/a/b/c", 3, 0}, {"/a\x01", 0, 0},
		{"/a-b", 0, 1},	       {"/a-b/c", 6, 0}, {"/\xff", 0, 0},
	};
	static const struct added list[] = {
		{"/", {1}},	 {"/\xff", {2}}, {"/a-b", {3}},	  {"/a", {4}},	    {"/a\x01", {5}},
		{"/a-b/c", {6}}, {"/a/b", {7}},	 {"/a/b/c", {8}}, {"/a/\x01", {9}},
	};
	struct topology *t = *state;

	assert_true(rescan(t, list, sizeof(list) / sizeof(list[0]), false));
	assert_int_equal(topology_count(t), sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < topology_count(t); i++) {
		assert_string_equal(topology_at(t, i)->path, want[i].path);
		assert_int_equal(topology_at(t, i)->parent, want[i].parent);
		assert_int_equal(topology_at(t, i)->children, want[i].children);
	}
}

/*
 * The same tree through three v1 hierarchies and a v2 one beside them, in either order, is one
 * table.
 */
static void test_hierarchies_join(void **state)
{
	static const struct added list[] = {
		{"/", {1, 1, 1, 1}},
		{"/kubepods", {0, 20, 30, 40}},
		{"/kubepods/x", {0, 21, 0, 41}},
		{"/init.scope", {9, 0, 0, 0}},
	};
	struct topology *t = *state;

	assert_true(rescan(t, list, 4, false));
	assert_false(rescan(t, list, 4, true));
	assert_int_equal(topology_count(t), 4);
	for (size_t i = 0; i < 4; i++)
		assert_memory_equal(at_path(t, list[i].path)->id, list[i].id, sizeof(list[i].id));
}

static void test_find(void **state)
{
	static const struct added list[] = {{"/", {1, 0, 0, 1}},
					    {"/a", {50, 0, 0, 7}},
					    {"/b", {7, 0, 0, 0}},
					    {"/c", {3, 0, 0, 50}}};
	static const struct {
		uint64_t id;
		enum hierarchy h;
		int index;
	} cases[] = {
		{1, V2, 0},
		{50, V2, 1},
		{7, V2, 2},
		{3, V2, 3},
		{1, HIERARCHY_MEMORY, 0},
		{7, HIERARCHY_MEMORY, 1},
		{50, HIERARCHY_MEMORY, 3},
		{3, HIERARCHY_MEMORY, CGROUP_NONE},
		{1, HIERARCHY_CPU, CGROUP_NONE},
		{51, V2, CGROUP_NONE},
		{UINT64_MAX, V2, CGROUP_NONE},
		/* 0 says "not in that hierarchy" and is nobody's id. */
		{0, HIERARCHY_MEMORY, CGROUP_NONE},
		{0, HIERARCHY_CPU, CGROUP_NONE},
	};
	static const int hints[] = {0, 1, 2, 3, 4, 16384, CGROUP_NONE, INT32_MIN, INT32_MAX};
	struct topology *t = *state;

	rescan(t, list, 4, false);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t k = 0; k < sizeof(hints) / sizeof(hints[0]); k++)
			assert_int_equal(topology_find(t, cases[i].h, cases[i].id, hints[k]),
					 cases[i].index);
	}
}

/*
 * How the ids of one path may develop, and whether that is another life whose counters begin at 0.
 */
static void test_lives(void **state)
{
	static const struct {
		const char *what;
		uint64_t before[HIERARCHIES], after[HIERARCHIES];
		bool same, older, changed;
	} cases[] = {
		{"nothing happened", {0, 2, 3, 4}, {0, 2, 3, 4}, true, true, false},
		{"cpu comes after memory", {0, 0, 0, 4}, {0, 2, 3, 4}, true, true, true},
		{"cpu goes before memory", {0, 2, 3, 4}, {0, 0, 0, 4}, true, true, true},
		{"v2: recreated", {2, 0, 0, 0}, {9, 0, 0, 0}, false, false, true},
		{"v1: recreated", {0, 2, 3, 4}, {0, 7, 8, 9}, false, false, true},
		{"recreated, memory first", {0, 2, 3, 4}, {0, 0, 0, 9}, false, false, true},
		{"memory gone, then cpu alone", {0, 0, 0, 4}, {0, 2, 3, 0}, false, false, true},
		{"recreated in one hierarchy", {0, 2, 3, 4}, {0, 2, 3, 9}, false, true, true},
		{"recreated during the rescan", {0, 2, 3, 4}, {0, 7, 8, 4}, false, true, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct topology *t = topology_new();
		struct added list[] = {{"/", {1, 1, 1, 1}}, {"/x", {0}}};
		uint64_t serial;
		bool changed;

		memcpy(list[1].id, cases[i].before, sizeof(list[1].id));
		rescan(t, list, 2, false);
		serial = topology_at(t, 1)->serial;
		topology_at(t, 1)->reading = (struct reading){.have = HAVE_CPU, .cpu_ns = 5};
		topology_at(t, 1)->seen_pass = 3;

		memcpy(list[1].id, cases[i].after, sizeof(list[1].id));
		changed = rescan(t, list, 2, true);
		if (changed != cases[i].changed || topology_at(t, 1)->at_start != cases[i].older ||
		    (topology_at(t, 1)->serial == serial) != cases[i].same)
			fail_msg("%s: changed %d, at_start %d, serial %d -> %d", cases[i].what,
				 changed, topology_at(t, 1)->at_start, (int)serial,
				 (int)topology_at(t, 1)->serial);
		assert_int_equal(topology_at(t, 1)->reading.cpu_ns, cases[i].same ? 5 : 0);
		assert_int_equal(topology_at(t, 1)->reading.have, cases[i].same ? HAVE_CPU : 0);
		assert_int_equal(topology_at(t, 1)->seen_pass, cases[i].same ? 3 : 0);
		assert_int_equal(topology_at(t, 0)->serial, 1);
		topology_free(t);
	}
}

/* Rows move when others come and go; serials, readings and identities move along. */
static void test_rows_move(void **state)
{
	static const struct added first[] = {{"/", {1}}, {"/b", {2}}, {"/b/c", {3}}, {"/z", {4}}};
	static const struct added second[] = {
		{"/", {1}}, {"/a", {5}}, {"/b", {6}}, {"/b/c", {7}}, {"/z", {4}}};
	struct topology *t = *state;
	uint64_t b, c, z;

	rescan(t, first, 4, false);
	b = at_path(t, "/b")->serial;
	c = at_path(t, "/b/c")->serial;
	z = at_path(t, "/z")->serial;
	at_path(t, "/z")->reading.cpu_ns = 42;

	assert_true(rescan(t, second, 5, false));
	assert_int_equal(at_path(t, "/z")->serial, z);
	assert_int_equal(at_path(t, "/z")->reading.cpu_ns, 42);
	assert_int_equal(topology_find(t, V2, 4, 3), 4);
	/* "/b" was removed and made again, and with it all below. */
	assert_true(at_path(t, "/b")->serial > z && at_path(t, "/b")->serial != b);
	assert_true(at_path(t, "/b/c")->serial > z && at_path(t, "/b/c")->serial != c);
	assert_false(at_path(t, "/b/c")->at_start);
	assert_int_equal(topology_find(t, V2, 3, 2), CGROUP_NONE);

	assert_true(rescan(t, second, 4, false));
	assert_null(at_path(t, "/z"));
	assert_int_equal(at_path(t, "/b")->children, 1);
	assert_int_equal(at_path(t, "/")->children, 2);
}

/*
 * v1 cgroups can be renamed: another name is another workload, but what its counter holds was
 * counted before.
 */
static void test_rename(void **state)
{
	static const struct added before[] = {{"/", {0, 1}}, {"/old", {0, 2}}};
	static const struct added after[] = {{"/", {0, 1}}, {"/new", {0, 2}}};
	struct topology *t = *state;

	rescan(t, before, 2, false);
	at_path(t, "/old")->reading.cpu_ns = 9;
	assert_true(rescan(t, after, 2, false));
	assert_int_equal(at_path(t, "/new")->serial, 3);
	assert_int_equal(at_path(t, "/new")->reading.cpu_ns, 0);
	assert_true(at_path(t, "/new")->at_start);
}

static void test_refused(void **state)
{
	char too_long[ENTITY_NAME_MAX + 2], longest[ENTITY_NAME_MAX + 1];
	struct topology *t = *state;

	memset(too_long, 'x', sizeof(too_long));
	too_long[0] = '/';
	too_long[sizeof(too_long) - 1] = '\0';
	memcpy(longest, too_long, sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';

	topology_begin(t);
	assert_int_equal(topology_add(t, V2, "/a", 2), -EINVAL);
	add(t, V2, "/", 1);
	assert_int_equal(topology_add(t, V2, "", 2), -EINVAL);
	assert_int_equal(topology_add(t, V2, "a", 2), -EINVAL);
	assert_int_equal(topology_add(t, V2, "/a", 0), -EINVAL);
	assert_int_equal(topology_add(t, V2, "/a/b", 2), -EINVAL);
	add(t, V2, "/a", 2);
	assert_int_equal(topology_add(t, V2, "/a/", 3), -EINVAL);
	assert_int_equal(topology_add(t, V2, "/a//b", 3), -EINVAL);
	assert_int_equal(topology_add(t, V2, "//", 3), -EINVAL);
	assert_int_equal(topology_overflow(t), 0);
	add(t, V2, longest, 4);
	assert_int_equal(topology_add(t, V2, too_long, 5), -EINVAL);
	assert_int_equal(topology_overflow(t), 1);
	topology_commit(t);
	assert_int_equal(topology_count(t), 3);
}

/* The newest id counts where a directory was met twice in one rescan. */
static void test_met_twice(void **state)
{
	struct topology *t = *state;

	topology_begin(t);
	add(t, V2, "/", 1);
	add(t, V2, "/a", 2);
	add(t, V2, "/a", 3);
	topology_commit(t);
	assert_int_equal(topology_count(t), 2);
	assert_int_equal(topology_find(t, V2, 3, 0), 1);
	assert_int_equal(topology_find(t, V2, 2, 0), CGROUP_NONE);
}

/* A rescan that failed half way leaves the table alone. */
static void test_abandoned(void **state)
{
	static const struct added list[] = {{"/", {1}}, {"/a", {2}}};
	struct topology *t = *state;

	rescan(t, list, 2, false);
	topology_begin(t);
	add(t, V2, "/", 1);
	add(t, V2, "/abandoned", 3);
	assert_int_equal(topology_count(t), 2);
	assert_false(rescan(t, list, 2, false));
	assert_null(at_path(t, "/abandoned"));
}

static void add_many(struct topology *t, enum hierarchy h, uint32_t from, uint32_t to,
		     uint32_t *refused)
{
	char path[32];

	for (uint32_t i = from; i < to; i++) {
		int err;

		snprintf(path, sizeof(path), "/%u", i);
		err = topology_add(t, h, path, i + 2);
		assert_true(err == 0 || err == -ENOSPC);
		*refused += err == -ENOSPC;
	}
}

static void test_overflow(void **state)
{
	struct topology *t = *state;
	uint32_t refused = 0;

	topology_begin(t);
	add(t, V2, "/", 1);
	add_many(t, V2, 0, CGROUPS_MAX + 10, &refused);
	assert_int_equal(refused, 11);
	/*
	 * Joining what is there already needs no room; the same paths refused again are the same
	 * cgroups.
	 */
	add_many(t, HIERARCHY_MEMORY, 0, CGROUPS_MAX + 5, &refused);
	assert_int_equal(refused, 17);
	topology_commit(t);
	assert_int_equal(topology_count(t), CGROUPS_MAX);
	assert_int_equal(topology_overflow(t), 11);
	assert_int_equal(topology_find(t, V2, CGROUPS_MAX, 0),
			 topology_find(t, HIERARCHY_MEMORY, CGROUPS_MAX, 0));

	/* Some went, so others that were there all the time fit now: their counters are not new. */
	refused = 0;
	topology_begin(t);
	add(t, V2, "/", 1);
	add_many(t, V2, 100, CGROUPS_MAX + 10, &refused);
	topology_commit(t);
	assert_int_equal(refused + topology_overflow(t), 0);
	assert_true(at_path(t, "/16390")->at_start);

	/* From a complete rescan on a new cgroup is a new one again. */
	topology_begin(t);
	add(t, V2, "/", 1);
	add_many(t, V2, 100, CGROUPS_MAX + 11, &refused);
	topology_commit(t);
	assert_false(at_path(t, "/16394")->at_start);
}

static void test_pods(void **state)
{
	static const struct added list[] = {
		{"/", {1}},
		{"/kubepods", {2}},
		{"/kubepods/besteffort", {3}},
		{"/kubepods/besteffort/pod0d3c5a1e-6b1f-4b5e-9d2a-1c2b3a4d5e6f", {4}},
	};
	struct topology *t = *state;

	rescan(t, list, 3, false);
	assert_false(topology_has_pods(t));
	rescan(t, list, 4, false);
	assert_true(topology_has_pods(t));
	assert_int_equal(topology_at(t, 3)->identity.level, LEVEL_POD);
	assert_string_equal(topology_at(t, 3)->identity.pod_uid,
			    "0d3c5a1e-6b1f-4b5e-9d2a-1c2b3a4d5e6f");
	rescan(t, list, 4, true);
	assert_int_equal(topology_at(t, 3)->identity.level, LEVEL_POD);
	rescan(t, list, 3, false);
	assert_false(topology_has_pods(t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order_and_parents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hierarchies_join, setup, teardown),
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test(test_lives),
		cmocka_unit_test_setup_teardown(test_rows_move, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rename, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_met_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abandoned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overflow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pods, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
