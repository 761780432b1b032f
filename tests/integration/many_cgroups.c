/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ten thousand cgroups on the v2 tree that come and go three times: each is listed, none is left
 * over, and the memory for them does not grow from one time to the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler.h"
#include "agent/sampling.h"
#include "bpf/record.h"
#include "shared/clock.h"
#include "tests/cgroup_fixture.h"
#include "tests/sanitized.h"

enum { PARENTS = 10, CHILDREN = 1000, ALL = PARENTS * CHILDREN, ROUNDS = 3 };

#define MIB (1024. * 1024)

struct scene {
	struct cgroup_fixture *cgroups;
	struct sampling *sampling;
	bool pods; /* of somebody else: then nothing else is listed */
};

static double resident_mib(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	malloc_trim(0);
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %llu", &pages), 1);
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / MIB;
}

static void name_child(char *sub, size_t size, int parent, int child)
{
	snprintf(sub, size, child < 0 ? "p%d.slice" : "p%d.slice/c%d.service", parent, child);
}

static void change_all(struct scene *s,
		       void (*change)(struct cgroup_fixture *, unsigned int, const char *),
		       bool children_first)
{
	char sub[64];

	for (int p = 0; p < PARENTS; p++) {
		name_child(sub, sizeof(sub), p, -1);
		if (!children_first)
			change(s->cgroups, 1U << HIERARCHY_UNIFIED, sub);
		for (int c = 0; c < CHILDREN; c++) {
			name_child(sub, sizeof(sub), p, c);
			change(s->cgroups, 1U << HIERARCHY_UNIFIED, sub);
		}
		name_child(sub, sizeof(sub), p, -1);
		if (children_first)
			change(s->cgroups, 1U << HIERARCHY_UNIFIED, sub);
	}
}

static double tick(struct scene *s)
{
	struct error error = {""};
	int64_t begin = clock_mono_ns();

	if (sampling_tick(s->sampling, 0, &error))
		fail_msg("%s", error.text);
	return (double)(clock_mono_ns() - begin) / NS_PER_MS;
}

/* How many of ours the next interval has. */
static size_t count_ours(struct scene *s, uint32_t *overflow)
{
	const char *base = cgroup_fixture_path(s->cgroups, NULL) + 1;
	struct interval *i = sampling_take(s->sampling, 1, NS_PER_SEC, 2 * NS_PER_SEC);
	size_t count = 0;

	assert_non_null(i);
	for (size_t n = 0; n < i->entry_count; n++) {
		const struct entity *e = i->entries[n].entity;

		s->pods |= e->kind == ENTITY_POD;
		count += !strncmp(e->name, base, strlen(base)) && strstr(e->name, ".service");
	}
	*overflow = i->node.overflow;
	interval_free(i);
	return count;
}

static double come_and_go(struct scene *s)
{
	size_t before = sampling_cgroups(s->sampling), ours;
	double found_ms, known_ms, gone_ms, mib;
	uint32_t overflow;

	change_all(s, cgroup_fixture_make, false);
	found_ms = tick(s);
	known_ms = tick(s);
	assert_true(sampling_cgroups(s->sampling) >= ALL + PARENTS);
	mib = resident_mib();
	ours = count_ours(s, &overflow);
	assert_int_equal(overflow, 0);
	assert_true(ours == ALL || s->pods);

	change_all(s, cgroup_fixture_remove, true);
	gone_ms = tick(s);
	/* Others may make cgroups meanwhile, but not thousands. */
	assert_true(sampling_cgroups(s->sampling) < before + ALL / 2);
	count_ours(s, &overflow);
	/*
	 * The kernel's buffer holds fewer removed ones than these, and the rest does not go
	 * unnoticed.
	 */
	assert_in_range(overflow, ALL + PARENTS - REMOVALS_MAX, ALL + PARENTS);
	tick(s);
	assert_int_equal(count_ours(s, &overflow), 0);
	assert_int_equal(overflow, 0);
	print_message(
		"%d more cgroups: tick that finds them %.1f ms, that knows them %.1f ms, that "
		"misses them %.1f ms; %.1f MiB resident\n",
		ALL, found_ms, known_ms, gone_ms, mib);
	return mib;
}

static void run(struct scene *s)
{
	struct sampling_config config = {
		.cgroup_root = cgroup_fixture_fs(s->cgroups)->mount[HIERARCHY_UNIFIED],
		.rate_hz = 10,
		.tier = -1,
		.cpu_budget_percent = 100,
	};
	struct error error = {""};
	double start_mib, first_mib, mib = 0;

	if (sampling_open(&s->sampling, &config, &error))
		fail_msg("%s", error.text);
	if (sampling_tier(s->sampling) == TIER_T3) {
		print_message("SKIP: without BPF it takes 10 s to find them\n");
		skip();
	}
	start_mib = resident_mib();
	print_message("%.1f MiB resident at the beginning\n", start_mib);
	first_mib = come_and_go(s);
	for (int n = 1; n < ROUNDS; n++)
		mib = come_and_go(s);
	if (!SANITIZED) {
		assert_true(first_mib - start_mib <= 40);
		assert_true(mib - first_mib <= 2);
	}
	sampling_close(s->sampling);
	s->sampling = NULL;
}

static int setup(void **state)
{
	static struct scene scene;
	struct error error = {""};

	scene = (struct scene){.cgroups = cgroup_fixture_new("many", &error)};
	if (!scene.cgroups)
		print_message("SKIP: %s\n", error.text);
	*state = &scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	sampling_close(s->sampling);
	cgroup_fixture_free(s->cgroups);
	return 0;
}

static void test_ten_thousand(void **state)
{
	struct scene *s = *state;

	if (!s->cgroups || cgroup_fixture_fs(s->cgroups)->root_fd[HIERARCHY_UNIFIED] < 0) {
		print_message("SKIP: no v2 tree to make them in\n");
		skip();
	}
	run(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ten_thousand, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
