/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits that the kernel enforces on pods and containers, against its own files: nested quotas,
 * nested memory limits and protection, CPUs of a shared pool and exclusive ones. A CPU for each, so
 * on two CPUs at least.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/process.h"
#include "tests/stack.h"

#define PINNED	 "kubepods/pod00000000-0000-0000-0000-000000000001"
#define POOLED	 "kubepods/burstable/pod00000000-0000-0000-0000-000000000002"
#define ONE	 "/1111111111111111111111111111111111111111111111111111111111111111"
#define TWO	 "/2222222222222222222222222222222222222222222222222222222222222222"
#define MIB	 1048576
#define NO_LIMIT 1e15

struct scene {
	struct cgroup_fixture *cgroups;
	bool v2; /* memory and CPUs */
};

static const char *const all[] = {PINNED ONE, PINNED TWO, POOLED ONE};

static int from(const struct scene *s, const char *file)
{
	const struct cgroupfs *fs = cgroup_fixture_fs(s->cgroups);

	return strncmp(file, "cpuset", 6) == 0 ? fs->cpuset_from
	       : strncmp(file, "cpu", 3) == 0  ? fs->throttle_from
					       : fs->memory_from;
}

static void put(const struct scene *s, const char *sub, const char *file, const char *text)
{
	if (!cgroup_fixture_write(s->cgroups, from(s, file), sub, file, text))
		fail_msg("cannot write %s to %s of %s", text, file, sub ? sub : "the root");
}

static bool get(const struct scene *s, const char *sub, const char *file, char *text, size_t size)
{
	return cgroup_fixture_read(s->cgroups, from(s, file), sub, file, text, size);
}

static void put_quota(const struct scene *s, const char *sub, int milli)
{
	char text[64];

	snprintf(text, sizeof(text), s->v2 ? "%d 100000" : "%d", milli * 100);
	put(s, sub, s->v2 ? "cpu.max" : "cpu.cfs_quota_us", text);
}

static void put_bytes(const struct scene *s, const char *sub, const char *file, long long bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", bytes);
	put(s, sub, file, text);
}

/* On v1 a cpuset has neither CPUs nor memory nodes before it is given some. */
static void put_cpus(const struct scene *s, const char *sub, const char *cpus)
{
	if (!s->v2)
		put(s, sub, "cpuset.mems", "0");
	put(s, sub, "cpuset.cpus", cpus);
}

static void make_cpusets(const struct scene *s)
{
	static const char *const subs[] = {NULL,   "kubepods", "kubepods/burstable", PINNED,
					   POOLED, PINNED ONE, PINNED TWO,	     POOLED ONE};
	char cpus[256] = "";

	snprintf(cpus, sizeof(cpus), "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
	for (size_t i = 0; i < sizeof(subs) / sizeof(subs[0]); i++) {
		if (!s->v2)
			cgroup_fixture_make(s->cgroups, 1U << MOUNT_CPUSET, subs[i]);
		put_cpus(s, subs[i], cpus);
	}
	put_cpus(s, PINNED TWO, "1");
	put_cpus(s, POOLED ONE, "0");
}

static void protect(const struct scene *s)
{
	static const char *const above[] = {NULL, "kubepods", "kubepods/burstable"};

	if (!s->v2)
		return;
	for (size_t i = 0; i < 3; i++)
		put_bytes(s, above[i], "memory.min", 256 * MIB);
	put_bytes(s, POOLED, "memory.min", 8 * MIB);
	put_bytes(s, POOLED ONE, "memory.low", 32 * MIB);
	put_bytes(s, PINNED, "memory.low", 24 * MIB);
	put(s, PINNED TWO, "memory.min", "max");
}

static void make(struct scene *s)
{
	const char *limit = s->v2 ? "memory.max" : "memory.limit_in_bytes";

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		cgroup_fixture_make_tree(s->cgroups, all[i]);
	make_cpusets(s);
	put_quota(s, POOLED, 600);
	/* v1 refuses a quota above the parent's; with pod-level limits a container has none. */
	if (s->v2)
		put_quota(s, POOLED ONE, 800);
	put_bytes(s, POOLED, limit, 64 * MIB);
	put_bytes(s, POOLED ONE, limit, 128 * MIB);
	put_bytes(s, PINNED TWO, limit, 96 * MIB);
	protect(s);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		cgroup_fixture_spawn(s->cgroups, all[i],
				     &(struct cgroup_child){.hold_bytes = 16 * MIB});
}

static int setup(void **state)
{
	static struct scene scene;
	const struct cgroupfs *fs;
	struct error why = {""};

	*state = &scene;
	scene = (struct scene){.cgroups = cgroup_fixture_new("limits", &why)};
	if (!scene.cgroups) {
		print_message("SKIP: %s\n", why.text);
		return 0;
	}
	fs = cgroup_fixture_fs(scene.cgroups);
	scene.v2 = fs->cpuset_from == HIERARCHY_UNIFIED;
	if (fs->cpuset_from >= 0 && fs->throttle_from >= 0 && fs->memory_from >= 0 &&
	    sysconf(_SC_NPROCESSORS_ONLN) > 1) {
		make(&scene);
		return 0;
	}
	print_message("SKIP: no two CPUs, or no controllers of CPU, CPUs and memory\n");
	cgroup_fixture_free(scene.cgroups);
	scene.cgroups = NULL;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	cgroup_fixture_free(s->cgroups);
	return 0;
}

/* --- the kernel's own words ------------------------------------------------------------------- */

static double quota_of(const struct scene *s, const char *sub)
{
	double quota, period;
	char text[64];

	if (s->v2)
		return get(s, sub, "cpu.max", text, sizeof(text)) &&
				       sscanf(text, "%lf %lf", &quota, &period) == 2
			       ? quota * 1000 / period
			       : NO_LIMIT;
	assert_true(get(s, sub, "cpu.cfs_quota_us", text, sizeof(text)));
	quota = strtod(text, NULL);
	assert_true(get(s, sub, "cpu.cfs_period_us", text, sizeof(text)));
	return quota < 0 ? NO_LIMIT : quota * 1000 / strtod(text, NULL);
}

/* Of each of its CPUs; the lists here have no commas. */
static double cpus_of(const struct scene *s, const char *sub)
{
	int first, last, found;
	char text[64];

	assert_true(get(s, sub, s->v2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus", text,
			sizeof(text)));
	found = sscanf(text, "%d-%d", &first, &last);
	assert_true(found > 0);
	last = found == 1 ? first : last;
	return last - first + 1 < sysconf(_SC_NPROCESSORS_ONLN) ? (last - first + 1) * 1000.0
								: NO_LIMIT;
}

static double memory_of(const struct scene *s, const char *sub)
{
	char text[64];

	assert_true(
		get(s, sub, s->v2 ? "memory.max" : "memory.limit_in_bytes", text, sizeof(text)));
	return strncmp(text, "max", 3) == 0 ? NO_LIMIT : strtod(text, NULL);
}

/* The least along the path, of what holds a cgroup below the fixture's own. */
static double least(const struct scene *s, const char *sub,
		    double (*of)(const struct scene *, const char *))
{
	double value = NO_LIMIT;
	char path[256];

	snprintf(path, sizeof(path), "%s", sub);
	for (char *slash = path; slash; slash = strrchr(path, '/')) {
		double here;

		if (slash != path)
			*slash = '\0';
		here = of(s, path);
		value = here < value ? here : value;
	}
	return value < 1e14 ? value : NO_LIMIT;
}

/* --- the agent's ------------------------------------------------------------------------------ */

static cJSON *sample(const char *tier)
{
	char *program = mem_strdup(program_path("evenkeel-agent"));
	char *argv[] = {program, "--once", "-o",	 "json", "--interval",
			"1s",	 "--tier", (char *)tier, NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;
	cJSON *json;

	if (!tier)
		argv[6] = NULL;
	if (process_run(argv, &out, &err))
		fail_msg("%s", err.data ? err.data : "no word");
	json = cJSON_Parse(out.data);
	assert_non_null(json);
	buf_fini(&out);
	buf_fini(&err);
	free(program);
	return json;
}

static double said(const struct scene *s, const cJSON *json, const char *sub, const char *what)
{
	const cJSON *item = json_item(json, cgroup_fixture_path(s->cgroups, sub) + 1);
	const cJSON *value;

	if (!item)
		fail_msg("no %s", sub);
	value = json_at(item, what);
	return cJSON_IsNumber(value) ? value->valuedouble : cJSON_IsNull(value) ? NO_LIMIT : 0;
}

static void check(const struct scene *s, const cJSON *json, const char *sub)
{
	double quota = least(s, sub, quota_of), cpus = least(s, sub, cpus_of);
	double cpu = said(s, json, sub, "kernelLimits.cpuMillicores");
	double memory = said(s, json, sub, "kernelLimits.memoryBytes");

	print_message("%s: CPU %.6g of %.6g by quota and %.6g by CPUs, memory %.9g, "
		      "in use %.9g, protected %.9g\n",
		      sub, cpu, quota, cpus, memory, said(s, json, sub, "usage.memoryBytes.last"),
		      said(s, json, sub, "usage.memoryProtectedBytes.last"));
	assert_true(cpu == (quota < cpus ? quota : cpus));
	assert_true(memory == least(s, sub, memory_of));
}

static void check_exclusive(const struct scene *s, const cJSON *json)
{
	static const char what[] = "kernelLimits.exclusiveCpuMillicores";

	assert_true(said(s, json, PINNED TWO, what) == 1000);
	assert_true(said(s, json, PINNED, what) == 1000);
	/* The sandbox and the container in the shared pool. */
	assert_true(said(s, json, PINNED ONE, what) == 0);
	assert_true(said(s, json, POOLED ONE, what) == 0);
	/* No quota holds the pod, and its container has one CPU. */
	assert_true(quota_of(s, PINNED) == NO_LIMIT);
	assert_true(said(s, json, PINNED, "kernelLimits.cpuMillicores") == 1000);
}

static void check_protected(const struct scene *s, const cJSON *json)
{
	static const char what[] = "usage.memoryProtectedBytes.last";

	if (!s->v2)
		return;
	assert_true(said(s, json, POOLED, what) == 8 * MIB);
	assert_true(said(s, json, POOLED ONE, what) == 8 * MIB);
	assert_true(said(s, json, PINNED, what) == 24 * MIB);
	/* All that is in use. A pass later the kernel may have returned pages charged in advance. */
	assert_true(said(s, json, PINNED TWO, what) <=
		    said(s, json, PINNED TWO, "usage.memoryBytes.last") + MIB);
	assert_true(said(s, json, PINNED TWO, what) >= 16 * MIB);
}

static void test_limits(void **state)
{
	const struct scene *s = *state;
	static const char *const tiers[] = {NULL, "T3"};

	if (!s->cgroups)
		skip();
	for (size_t t = 0; t < 2; t++) {
		cJSON *json = sample(tiers[t]);

		print_message("tier %s\n", json_at(json, "node.source.tier")->valuestring);
		check(s, json, PINNED ONE);
		check(s, json, PINNED TWO);
		check(s, json, POOLED);
		check(s, json, POOLED ONE);
		check_exclusive(s, json);
		check_protected(s, json);
		cJSON_Delete(json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
