/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent in a pod: a cgroup namespace of its own, in which it sees only what is below its
 * container, and the node's tree mounted at another place. Each view gives what belongs to it, with
 * the values the kernel has.
 *
 *	ROOT/kubepods/burstable/podA/AGENT		the namespace's root, where the "agent" is
 *	                                  /inner	a child that used CPU
 *	              besteffort/podB/OTHER		a child that used CPU and holds memory
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler_tier.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/cgroup_level.h"
#include "tests/process.h"

#define AGENT_UID "9e205513-0d2d-4959-95d2-c8daca5427d0"
#define AGENT_ID  "7bfdd4f7d3d328cac65b956cdfcb0bc299a0b66d869e86bb93d1e56aab025647"
#define OTHER_UID "c2316f6d-fcb7-4de5-9941-596bfa4eaadc"
#define OTHER_ID  "fb66738c0d85433350df37123ca7eabe496bd16bd4d16b65fa06c5ad20dd99b9"
#define AGENT	  "kubepods/burstable/pod" AGENT_UID "/" AGENT_ID
#define INNER	  AGENT "/inner"
#define OTHER	  "kubepods/besteffort/pod" OTHER_UID "/" OTHER_ID

#define BUSY_NS 30000000ULL
#define HELD	((size_t)4 << 20)

/* How the part of the test inside the namespace ends. */
enum { INSIDE_OK, INSIDE_FAILED, INSIDE_NOT_ALLOWED };

struct scene {
	struct cgroup_fixture *fixture;
	char *folder; /* where to mount */
	bool bpf; /* T1 works on this machine */
};

/* --- inside the namespace --------------------------------------------------------------------- */

static bool fail_inside(const char *view, const char *what, const char *text)
{
	fprintf(stderr, "%s view: %s: %s\n", view, what, text);
	return false;
}

static bool mount_at(const char *source, const char *folder, const char *name, const char *type,
		     unsigned long flags, const char *options)
{
	char *path = mem_printf("%s/%s", folder, name);
	bool ok = (mkdir(path, 0755) == 0 || errno == EEXIST) &&
		  mount(source, path, type, flags, options) == 0;

	if (!ok)
		fail_inside("no", path, strerror(errno));
	free(path);
	return ok;
}

/*
 * Mounts what a container runtime would: the namespace's own part of every hierarchy the machine
 * has.
 */
static bool mount_own(const struct scene *s)
{
	const struct cgroupfs *fs = cgroup_fixture_fs(s->fixture);
	char *folder = mem_printf("%s/own", s->folder);
	bool ok = true;

	for (int h = 0; h < HIERARCHIES && ok; h++) {
		const char *name = fs->mount[h] ? strrchr(fs->mount[h], '/') + 1 : NULL;
		bool v2 = h == HIERARCHY_UNIFIED;

		/* A v1 hierarchy is named by its controllers; those mounted together come twice. */
		if (name)
			ok = mount_at("cgroup", folder, name, v2 ? "cgroup2" : "cgroup", 0,
				      v2 ? NULL : name);
	}
	free(folder);
	return ok;
}

static bool mount_all(const struct scene *s)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", s->folder, "tmpfs", 0, NULL))
		return fail_inside("no", s->folder, strerror(errno));
	return mount_at("/sys/fs/cgroup", s->folder, "node", NULL, MS_BIND | MS_REC, NULL) &&
	       mount_at("none", s->folder, "own", "tmpfs", 0, NULL) && mount_own(s);
}

/* A cgroup that a view must have, or must not have. */
struct sight {
	const char *path; /* in this view; NULL: not to be seen */
	const char *sub; /* in the fixture */
	enum cgroup_level level;
	uint64_t memory_before; /* UINT64_MAX: no memory controller there */
};

static uint64_t kernel_number(const struct scene *s, int h, const char *sub, const char *file,
			      const char *key)
{
	char text[1024];
	const char *at = text;

	if (!cgroup_fixture_read(s->fixture, h, sub, file, text, sizeof(text)))
		return UINT64_MAX;
	if (key)
		at = strstr(text, key) + strlen(key);
	return strtoull(at, NULL, 10);
}

static uint64_t kernel_cpu_us(const struct scene *s, const char *sub)
{
	const struct cgroupfs *fs = cgroup_fixture_fs(s->fixture);

	if (fs->cpu_from == HIERARCHY_CPUACCT)
		return kernel_number(s, fs->cpu_from, sub, "cpuacct.usage", NULL) / 1000;
	return kernel_number(s, fs->cpu_from, sub, "cpu.stat", "usage_usec ");
}

static uint64_t kernel_memory(const struct scene *s, const char *sub)
{
	int h = cgroup_fixture_fs(s->fixture)->memory_from;

	if (h < 0)
		return UINT64_MAX;
	return kernel_number(s, h, sub,
			     h == HIERARCHY_MEMORY ? "memory.usage_in_bytes" : "memory.current",
			     NULL);
}

static struct cgroup *find_path(struct topology *t, const char *path)
{
	for (size_t i = 0; i < topology_count(t); i++) {
		if (strcmp(topology_at(t, i)->path, path) == 0)
			return topology_at(t, i);
	}
	return NULL;
}

/*
 * The children are stopped, so their CPU time is what the kernel says now. Memory may still move by
 * what the kernel keeps in stock for each CPU, so it lies between what was said before and after
 * the pass.
 */
static bool check_values(const struct scene *s, const char *view, const struct reading *r,
			 const struct sight *sight)
{
	uint64_t cpu_us = kernel_cpu_us(s, sight->sub);
	uint64_t before = sight->memory_before, after = kernel_memory(s, sight->sub);
	uint64_t low = before < after ? before : after, high = before < after ? after : before;

	if (!(r->have & HAVE_CPU) || r->cpu_ns / 1000 != cpu_us) {
		fprintf(stderr, "CPU %" PRIu64 " ns, but the kernel says %" PRIu64 " us\n",
			r->cpu_ns, cpu_us);
		return fail_inside(view, sight->path, "another CPU time");
	}
	if (high == UINT64_MAX ||
	    ((r->have & HAVE_MEMORY) && r->mem_bytes >= low && r->mem_bytes <= high))
		return true;
	fprintf(stderr, "memory %" PRIu64 ", but the kernel says %" PRIu64 " to %" PRIu64 "\n",
		r->mem_bytes, low, high);
	return fail_inside(view, sight->path, "another memory usage");
}

static bool check_sight(const struct scene *s, const char *view, struct topology *t, uint64_t pass,
			const struct sight *sight)
{
	const struct cgroup *c;

	if (!sight->path) {
		for (size_t i = 0; i < topology_count(t); i++) {
			if (strstr(topology_at(t, i)->path, sight->sub))
				return fail_inside(view, sight->sub, "is seen");
		}
		return true;
	}
	c = find_path(t, sight->path);
	if (!c || c->seen_pass != pass)
		return fail_inside(view, sight->path, c ? "was not met" : "is not there");
	if (c->identity.level != sight->level)
		return fail_inside(view, sight->path, cgroup_level_name(c->identity.level));
	return check_values(s, view, &c->reading, sight);
}

static bool check_tier(const struct scene *s, const char *view, enum sampler_tier tier,
		       const struct cgroupfs *fs, struct topology *t, struct sight *sights)
{
	static uint64_t pass;
	struct pass_result result;
	struct error error = {""};
	struct sampler *sampler;
	bool ok = true;

	if (sampler_open_ops(&sampler, sampler_all_ops[tier], fs, &error))
		return fail_inside(view, sampler_tier_name(tier), error.text);
	for (struct sight *sight = sights; sight->sub; sight++)
		sight->memory_before = kernel_memory(s, sight->sub);
	if (sampler_pass(sampler, t, PASS_SLOW, ++pass, &result, &error))
		ok = fail_inside(view, sampler_tier_name(tier), error.text);
	for (; ok && sights->sub; sights++)
		ok = check_sight(s, view, t, pass, sights);
	sampler_close(sampler);
	return ok;
}

static bool check_view(const struct scene *s, const char *view, struct sight *sights)
{
	char *root = mem_printf("%s/%s", s->folder, view);
	struct topology *t = topology_new();
	struct error error = {""};
	struct sampler *chosen;
	struct cgroupfs fs;
	bool ok = true;

	if (cgroupfs_open(&fs, root, NULL, &error) || cgroupfs_scan(&fs, t, &error))
		return fail_inside(view, root, error.text);
	for (int h = 0; h < HIERARCHIES; h++) {
		if (!fs.mount[h] != !cgroup_fixture_fs(s->fixture)->mount[h])
			return fail_inside(view, root, "not all hierarchies were found");
	}
	ok = (!s->bpf || check_tier(s, view, TIER_T1, &fs, t, sights)) &&
	     check_tier(s, view, TIER_T3, &fs, t, sights);
	if (ok && sampler_choose(&chosen, -1, &fs, t, &error))
		ok = fail_inside(view, "no tier", error.text);
	else if (ok)
		sampler_close(chosen);
	cgroupfs_close(&fs);
	topology_free(t);
	free(root);
	return ok;
}

/* Never returns into the test: what it checks it says by its exit status. */
static void live_inside(const struct scene *s)
{
	char *inner = mem_strdup(cgroup_fixture_path(s->fixture, INNER));
	char *other = mem_strdup(cgroup_fixture_path(s->fixture, OTHER));
	struct sight node[] = {
		{.path = inner, .sub = INNER, .level = LEVEL_CONTAINER_SUB},
		{.path = other, .sub = OTHER, .level = LEVEL_CONTAINER},
		{.sub = NULL},
	};
	struct sight own[] = {
		{.path = "/inner", .sub = INNER, .level = LEVEL_NONE},
		{.sub = OTHER_ID},
		{.sub = "kubepods"},
		{.sub = NULL},
	};

	for (int h = 0; h < HIERARCHIES; h++) {
		if (cgroup_fixture_fs(s->fixture)->mount[h] &&
		    !cgroup_fixture_write(s->fixture, h, AGENT, "cgroup.procs", "0"))
			_exit(INSIDE_FAILED);
	}
	if (unshare(CLONE_NEWCGROUP | CLONE_NEWNS))
		_exit(INSIDE_NOT_ALLOWED);
	if (!mount_all(s) || !check_view(s, "node", node) || !check_view(s, "own", own))
		_exit(INSIDE_FAILED);
	_exit(INSIDE_OK);
}

/* --- outside ---------------------------------------------------------------------------------- */

static bool is_bpf_there(const struct cgroupfs *fs)
{
	struct error error = {""};
	struct sampler *sampler;

	if (sampler_open_ops(&sampler, sampler_all_ops[TIER_T1], fs, &error)) {
		printf("SKIP: T1: %s\n", error.text);
		return false;
	}
	sampler_close(sampler);
	return true;
}

static void spawn_and_stop(const struct scene *s, const char *sub, size_t hold_bytes)
{
	const struct cgroup_child child = {.hold_bytes = hold_bytes, .spin = true};
	pid_t pid = cgroup_fixture_spawn(s->fixture, sub, &child);

	while (kernel_cpu_us(s, sub) < BUSY_NS / 1000)
		nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
	cgroup_fixture_stop(pid);
}

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct error error = {""};

	*state = s;
	s->fixture = cgroup_fixture_new("namespace", &error);
	if (!s->fixture) {
		printf("SKIP: %s\n", error.text);
		return 0;
	}
	s->folder = folder_make();
	s->bpf = is_bpf_there(cgroup_fixture_fs(s->fixture));
	cgroup_fixture_make_tree(s->fixture, OTHER);
	/* No controllers for what is in the agent's container: processes are in it. */
	cgroup_fixture_make_tree(s->fixture, AGENT);
	cgroup_fixture_make(s->fixture, cgroup_fixture_all(s->fixture), INNER);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->fixture) {
		cgroup_fixture_free(s->fixture);
		folder_remove(s->folder);
	}
	free(s);
	return 0;
}

static void test_private_namespace(void **state)
{
	const struct scene *s = *state;
	int status;
	pid_t pid;

	if (!s->fixture)
		skip();
	spawn_and_stop(s, INNER, 0);
	spawn_and_stop(s, OTHER, HELD);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		live_inside(s);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == INSIDE_NOT_ALLOWED) {
		printf("SKIP: namespaces cannot be made here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), INSIDE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_private_namespace, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
