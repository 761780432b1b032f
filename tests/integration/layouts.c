/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trees that kubelets and runtimes make, as real cgroups below the test's own, with a child
 * that uses CPU in one of them: found with the right identity, accounted once, with what the kernel
 * itself says they used. On whatever hierarchies the machine has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/account.h"
#include "agent/sampler_tier.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/tier_world.h"

#define POD_UID	   "9e205513-0d2d-4959-95d2-c8daca5427d0"
#define SLICE_UID  "9e205513_0d2d_4959_95d2_c8daca5427d0"
#define STATIC_UID "d0a1b2c3e4f5061728394a5b6c7d8e9f"
#define ID	   "7bfdd4f7d3d328cac65b956cdfcb0bc299a0b66d869e86bb93d1e56aab025647"
#define OUTER_ID   "58de67ee8a2144b8c908972ac9b871f80c980f99ed75e4273f4090940a2e6e19"

#define SYSTEMD_POD                                                                                \
	"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" SLICE_UID ".slice"
#define CGROUPFS_POD "kubepods/burstable/pod" POD_UID
#define KIND_POD                                                                                   \
	"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"                   \
	"kubelet-kubepods-burstable-pod" SLICE_UID ".slice"

enum { MADE_MAX = 32 };

/* What a child shall use in one go: enough to be seen, and more than one tick's worth. */
#define BUSY_NS 80000000ULL

struct world {
	enum sampler_tier tier;
	struct error why_not; /* why there is nothing to test here */
	struct cgroup_fixture *fixture;
	struct cgroupfs fs; /* the fixture's own part of the hierarchies */
	struct topology *topology;
	struct sampler *sampler;
	struct machine_files *machine_files;
	struct account *account;
	uint64_t pass, sequence;
	bool rescan;
	char *made[MADE_MAX]; /* cgroups, in their order; owned */
	size_t made_count;
};

static int setup(void **state)
{
	struct world *w = mem_zalloc(1, sizeof(*w));
	struct error error = {""};

	w->tier = *(const enum sampler_tier *)*state;
	*state = w;
	w->fixture = cgroup_fixture_new("layouts", &w->why_not);
	if (!w->fixture)
		return 0;
	cgroup_fixture_open_below(w->fixture, &w->fs);
	w->topology = topology_new();
	w->account = account_new();
	w->rescan = true;
	if (machine_open(&w->machine_files, &error))
		fail_msg("%s", error.text);
	if (sampler_open_ops(&w->sampler, sampler_all_ops[w->tier], &w->fs, &w->why_not) &&
	    w->tier == TIER_T3)
		fail_msg("%s", w->why_not.text);
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	if (w->fixture) {
		sampler_close(w->sampler);
		machine_close(w->machine_files);
		account_free(w->account);
		topology_free(w->topology);
		cgroupfs_close(&w->fs);
		cgroup_fixture_free(w->fixture);
	}
	for (size_t i = 0; i < w->made_count; i++)
		free(w->made[i]);
	free(w);
	return 0;
}

static struct world *world_or_skip(void **state)
{
	struct world *w = *state;

	if (!w->sampler) {
		printf("SKIP: %s\n", w->why_not.text);
		skip();
	}
	return w;
}

/* --- cgroups ---------------------------------------------------------------------------------- */

/* The first len bytes of a path. */
static void note_made(struct world *w, const char *path, size_t len)
{
	for (size_t i = 0; i < w->made_count; i++) {
		if (strncmp(w->made[i], path, len) == 0 && !w->made[i][len])
			return;
	}
	assert_true(w->made_count < MADE_MAX);
	w->made[w->made_count++] = mem_strndup(path, len);
}

static void make_tree(struct world *w, const char *path)
{
	cgroup_fixture_make_tree(w->fixture, path);
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		note_made(w, path, (size_t)(slash - path));
	note_made(w, path, strlen(path));
	w->rescan = true;
}

/* Removes all that was made, what is below first, with a look after each. */
static void remove_all(struct world *w, void (*look)(struct world *w))
{
	while (w->made_count > 0) {
		char *path = w->made[--w->made_count];

		cgroup_fixture_remove(w->fixture, cgroup_fixture_all(w->fixture), path);
		free(path);
		if (look)
			look(w);
	}
}

static uint64_t kernel_cpu_ns(const struct world *w, const char *path)
{
	bool v1 = w->fs.cpu_from == HIERARCHY_CPUACCT;
	char text[1024];

	if (!cgroup_fixture_read(w->fixture, w->fs.cpu_from, path,
				 v1 ? "cpuacct.usage" : "cpu.stat", text, sizeof(text)))
		fail_msg("cannot read the CPU time of %s", path);
	return v1 ? strtoull(text, NULL, 10)
		  : strtoull(strstr(text, "usage_usec ") + strlen("usage_usec "), NULL, 10) * 1000;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
}

/*
 * Ends the child of a cgroup and leaves it for the fixture to reap, so that its number stays its
 * own. Returns once the cgroup's CPU time stands still: the way out of the kernel is on its account
 * too.
 */
static void end_child(const struct world *w, const char *path, pid_t pid)
{
	uint64_t last_ns;
	siginfo_t info;

	assert_int_equal(kill(pid, SIGKILL), 0);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) && errno == EINTR)
		continue;
	do {
		last_ns = kernel_cpu_ns(w, path);
		nap();
	} while (kernel_cpu_ns(w, path) != last_ns);
}

/* --- sampling --------------------------------------------------------------------------------- */

/* As the agent's loop does it; a tier that does not see new cgroups by itself is told. */
static void tick(struct world *w, enum pass_kind kind)
{
	struct removal removals[64];
	struct pass_result result;
	struct error error = {""};
	struct machine machine;
	uint64_t lost = 0;
	size_t count;

	if (sampler_topology_changed(w->sampler) || w->rescan) {
		if (cgroupfs_scan(&w->fs, w->topology, &error))
			fail_msg("%s", error.text);
	}
	do {
		count = sampler_take_removals(w->sampler, removals, 64, &lost);
		account_remove(w->account, removals, count, clock_mono_ns());
	} while (count == 64);
	if (sampler_pass(w->sampler, w->topology, kind, ++w->pass, &result, &error) ||
	    machine_read(w->machine_files, &machine, &error))
		fail_msg("%s", error.text);
	w->rescan = result.unknown || result.missing;
	account_tick(w->account, w->topology, &machine, clock_mono_ns(), kind == PASS_SLOW);
}

static void tick_fast(struct world *w)
{
	tick(w, PASS_FAST);
}

static struct interval *publish(struct world *w)
{
	const struct account_self self = {.tier = w->tier};
	struct interval *interval =
		account_publish(w->account, ++w->sequence, 0, NS_PER_SEC, &self);

	assert_non_null(interval);
	return interval;
}

/* A child in the cgroup uses CPU until it used enough and is over, with a look now and then. */
static void run_child(struct world *w, const char *path, void (*look)(struct world *w))
{
	const struct cgroup_child child = {.spin = true, .hold_bytes = 1024 * 1024};
	pid_t pid = cgroup_fixture_spawn(w->fixture, path, &child);
	uint64_t before_ns = kernel_cpu_ns(w, path);

	while (kernel_cpu_ns(w, path) < before_ns + BUSY_NS) {
		nap();
		if (look)
			look(w);
	}
	end_child(w, path, pid);
}

/* The same with ticks; what the kernel says it used. */
static uint64_t use_cpu(struct world *w, const char *path)
{
	run_child(w, path, tick_fast);
	tick(w, PASS_FAST);
	tick(w, PASS_SLOW);
	return kernel_cpu_ns(w, path);
}

/* --- what was published ----------------------------------------------------------------------- */

static double total_ns(const struct usage *usage)
{
	return (double)usage->cpu_milli.mean * (double)usage->cpu_milli.weight * 1e6;
}

/* The CPU time of all entries of this kind, and how many there are; none may be negative. */
static double sum_ns(const struct interval *interval, enum entity_kind kind, int *count)
{
	double sum = 0;

	*count = 0;
	for (size_t i = 0; i < interval->entry_count; i++) {
		const struct usage *usage = &interval->entries[i].usage;

		assert_true(!(usage->cpu_milli.min < 0) && !(usage->cpu_milli.mean < 0));
		if (interval->entries[i].entity->kind != kind)
			continue;
		sum += total_ns(usage);
		++*count;
	}
	return sum;
}

/* Statistics travel as floats, v2's own file has microseconds. */
static void assert_same_ns(const char *what, double got_ns, uint64_t want_ns)
{
	if (fabs(got_ns - (double)want_ns) > 2000 + 1e-5 * (double)want_ns)
		fail_msg("%s: %.0f ns, but the kernel says %" PRIu64, what, got_ns, want_ns);
}

static const struct entry *find_entry(const struct interval *interval, const char *path)
{
	for (size_t i = 0; i < interval->entry_count; i++) {
		if (strcmp(interval->entries[i].entity->name, path) == 0)
			return &interval->entries[i];
	}
	fail_msg("%s was not published", path);
	return NULL;
}

/* --- layouts ---------------------------------------------------------------------------------- */

static const struct layout {
	const char *what;
	const char *pod; /* paths */
	const char *container;
	const char *busy; /* where the child is */
	enum qos_class qos;
	enum container_runtime runtime;
	bool idle; /* the container, as the child is not below it */
	const char *uid; /* NULL: POD_UID */
} layouts[] = {
	{.what = "systemd driver",
	 .pod = SYSTEMD_POD,
	 .container = SYSTEMD_POD "/cri-containerd-" ID ".scope",
	 .qos = QOS_BURSTABLE,
	 .runtime = RUNTIME_CONTAINERD},
	{.what = "systemd driver, guaranteed",
	 .pod = "kubepods.slice/kubepods-pod" SLICE_UID ".slice",
	 .container = "kubepods.slice/kubepods-pod" SLICE_UID ".slice/docker-" ID ".scope",
	 .qos = QOS_GUARANTEED,
	 .runtime = RUNTIME_DOCKER},
	{.what = "cgroupfs driver",
	 .pod = CGROUPFS_POD,
	 .container = CGROUPFS_POD "/" ID,
	 .qos = QOS_BURSTABLE},
	{.what = "cgroupfs driver, guaranteed, static pod",
	 .pod = "kubepods/pod" STATIC_UID,
	 .container = "kubepods/pod" STATIC_UID "/" ID,
	 .qos = QOS_GUARANTEED,
	 .uid = STATIC_UID},
	{.what = "container with systemd inside",
	 .pod = SYSTEMD_POD,
	 .container = SYSTEMD_POD "/cri-containerd-" ID ".scope",
	 .busy = SYSTEMD_POD "/cri-containerd-" ID ".scope/system.slice/app.service",
	 .qos = QOS_BURSTABLE,
	 .runtime = RUNTIME_CONTAINERD},
	{.what = "container with a container inside",
	 .pod = CGROUPFS_POD,
	 .container = CGROUPFS_POD "/" ID,
	 .busy = CGROUPFS_POD "/" ID "/docker/" OUTER_ID,
	 .qos = QOS_BURSTABLE},
	{.what = "CRI-O's own sub-cgroup",
	 .pod = SYSTEMD_POD,
	 .container = SYSTEMD_POD "/crio-" ID ".scope",
	 .busy = SYSTEMD_POD "/crio-" ID ".scope/container",
	 .qos = QOS_BURSTABLE,
	 .runtime = RUNTIME_CRIO},
	{.what = "CRI-O's monitor",
	 .pod = SYSTEMD_POD,
	 .container = SYSTEMD_POD "/crio-" ID ".scope",
	 .busy = SYSTEMD_POD "/crio-conmon-" ID ".scope",
	 .qos = QOS_BURSTABLE,
	 .runtime = RUNTIME_CRIO,
	 .idle = true},
	{.what = "a cgroup root of its own",
	 .pod = "custom/root/kubepods/besteffort/pod" POD_UID,
	 .container = "custom/root/kubepods/besteffort/pod" POD_UID "/" ID,
	 .qos = QOS_BEST_EFFORT},
	{.what = "kind",
	 .pod = KIND_POD,
	 .container = KIND_POD "/cri-containerd-" ID ".scope",
	 .qos = QOS_BURSTABLE,
	 .runtime = RUNTIME_CONTAINERD},
	{.what = "kind in docker",
	 .pod = "system.slice/docker-" OUTER_ID ".scope/" KIND_POD,
	 .container =
		 "system.slice/docker-" OUTER_ID ".scope/" KIND_POD "/cri-containerd-" ID ".scope",
	 .qos = QOS_BURSTABLE,
	 .runtime = RUNTIME_CONTAINERD},
	{.what = "kind in docker, cgroupfs driver",
	 .pod = "docker/" OUTER_ID "/kubelet/" CGROUPFS_POD,
	 .container = "docker/" OUTER_ID "/kubelet/" CGROUPFS_POD "/" ID,
	 .qos = QOS_BURSTABLE},
	{.what = "kubelet with systemd driver, runtime with cgroupfs driver",
	 .pod = SYSTEMD_POD,
	 .container = "system.slice/containerd.service/kubepods-burstable-pod" SLICE_UID
		      ".slice:cri-containerd:" ID,
	 .qos = QOS_BURSTABLE,
	 .runtime = RUNTIME_CONTAINERD},
	{.what = "the same, in kind, with a container inside",
	 .pod = "system.slice/docker-" OUTER_ID ".scope/" KIND_POD,
	 .container =
		 "system.slice/docker-" OUTER_ID
		 ".scope/system.slice/containerd.service/kubelet-kubepods-burstable-pod" SLICE_UID
		 ".slice:cri-containerd:" ID,
	 .busy = "system.slice/docker-" OUTER_ID
		 ".scope/system.slice/containerd.service/kubelet-kubepods-burstable-pod" SLICE_UID
		 ".slice:cri-containerd:" ID "/docker/" OUTER_ID,
	 .qos = QOS_BURSTABLE,
	 .runtime = RUNTIME_CONTAINERD},
};

static void check_pod(const struct layout *l, const struct interval *interval, uint64_t used_ns)
{
	const struct entry *pod = find_entry(interval, l->pod);
	int count;

	assert_int_equal(pod->entity->kind, ENTITY_POD);
	assert_int_equal(pod->entity->qos, l->qos);
	assert_string_equal(pod->entity->pod_uid, l->uid ? l->uid : POD_UID);
	assert_string_equal(pod->entity->container_id, "");
	assert_true(pod->usage.have & USAGE_CPU);
	assert_same_ns(l->what, sum_ns(interval, ENTITY_POD, &count), used_ns);
	assert_int_equal(count, 1);
}

static void check_container(const struct layout *l, const struct interval *interval,
			    uint64_t used_ns)
{
	const struct entry *container = find_entry(interval, l->container);
	int count;

	assert_int_equal(container->entity->kind, ENTITY_CONTAINER);
	assert_int_equal(container->entity->parent, find_entry(interval, l->pod)->ref);
	assert_int_equal(container->entity->qos, l->qos);
	assert_int_equal(container->entity->runtime, l->runtime);
	assert_string_equal(container->entity->pod_uid, l->uid ? l->uid : POD_UID);
	assert_string_equal(container->entity->container_id, ID);
	assert_true(container->usage.have & USAGE_CPU);
	assert_same_ns(l->what, sum_ns(interval, ENTITY_CONTAINER, &count), l->idle ? 0 : used_ns);
	assert_int_equal(count, 1);
}

/* The pod has it too, and the child has some. */
static void check_memory(const struct layout *l, const struct interval *interval)
{
	const struct usage *pod = &find_entry(interval, l->pod)->usage;
	const struct usage *container = &find_entry(interval, l->container)->usage;

	if (!(container->have & USAGE_MEMORY))
		return;
	assert_true(pod->have & USAGE_MEMORY);
	if (!l->idle)
		assert_true(container->mem_bytes.max > 0);
	if (pod->mem_bytes.mean < container->mem_bytes.mean)
		fail_msg("%s: the pod has %.0f bytes, its container %.0f", l->what,
			 (double)pod->mem_bytes.mean, (double)container->mem_bytes.mean);
}

static void test_layouts(void **state)
{
	struct world *w = world_or_skip(state);

	tick(w, PASS_SLOW);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		const struct layout *l = &layouts[i];
		const char *busy = l->busy ? l->busy : l->container;
		struct interval *interval;
		uint64_t used_ns;

		make_tree(w, l->pod);
		make_tree(w, l->container);
		make_tree(w, busy);
		used_ns = use_cpu(w, busy);
		interval = publish(w);
		check_pod(l, interval, used_ns);
		check_container(l, interval, used_ns);
		check_memory(l, interval);
		interval_free(interval);
		remove_all(w, NULL);
		tick(w, PASS_FAST);
		tick(w, PASS_FAST);
		assert_int_equal(topology_count(w->topology), 1);
		interval_free(publish(w));
	}
}

/* The counters of own tasks, of which removals tell, are those of the v2 tree. */
static void keep_unified_only(struct world *w)
{
	struct tier_world view = {.fs = w->fs};
	struct error error = {""};

	if (w->fs.root_fd[HIERARCHY_UNIFIED] < 0) {
		printf("SKIP: no v2 tree here\n");
		skip();
	}
	sampler_close(w->sampler);
	w->sampler = NULL;
	tier_world_keep_unified_only(&view);
	w->fs = view.fs;
	if (sampler_open_ops(&w->sampler, sampler_all_ops[w->tier], &w->fs, &error))
		fail_msg("%s", error.text);
}

/* All is used and removed between two ticks. */
static void test_last_moments(void **state)
{
	struct world *w = world_or_skip(state);

	keep_unified_only(w);
	tick(w, PASS_SLOW);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		const struct layout *l = &layouts[i];
		const char *busy = l->busy ? l->busy : l->container;
		struct interval *interval;
		uint64_t used_ns;

		make_tree(w, l->pod);
		make_tree(w, l->container);
		make_tree(w, busy);
		tick(w, PASS_FAST);
		tick(w, PASS_FAST);
		run_child(w, busy, NULL);
		used_ns = kernel_cpu_ns(w, busy);
		remove_all(w, NULL);
		tick(w, PASS_FAST);
		interval = publish(w);
		check_pod(l, interval, used_ns);
		check_container(l, interval, used_ns);
		interval_free(interval);
		tick(w, PASS_SLOW);
		interval_free(publish(w));
	}
}

/* --- another kubelet -------------------------------------------------------------------------- */

/*
 * The root of all pods goes away and another one comes, as when a kubelet starts anew with another
 * driver: what each tree used is accounted once, whether we looked while there was none or not.
 */
static const struct restart {
	const char *what;
	const char *pod[2], *container[2]; /* before, after */
	void (*look)(struct world *w); /* while one after the other goes; NULL: not at all */
} restarts[] = {
	{"another driver",
	 {SYSTEMD_POD, CGROUPFS_POD},
	 {SYSTEMD_POD "/cri-containerd-" ID ".scope", CGROUPFS_POD "/" ID},
	 tick_fast},
	{"another driver, unseen",
	 {CGROUPFS_POD, SYSTEMD_POD},
	 {CGROUPFS_POD "/" ID, SYSTEMD_POD "/cri-containerd-" ID ".scope"},
	 NULL},
	{"the same driver",
	 {CGROUPFS_POD, CGROUPFS_POD},
	 {CGROUPFS_POD "/" ID, CGROUPFS_POD "/" ID},
	 tick_fast},
	{"the same driver, unseen",
	 {SYSTEMD_POD, SYSTEMD_POD},
	 {SYSTEMD_POD "/cri-containerd-" ID ".scope", SYSTEMD_POD "/cri-containerd-" ID ".scope"},
	 NULL},
};

static void check_life(const struct restart *r, int life, const struct interval *interval,
		       uint64_t used_ns)
{
	const struct entry *pod = find_entry(interval, r->pod[life]);
	int pods, containers;

	assert_string_equal(pod->entity->pod_uid, POD_UID);
	assert_same_ns(r->what, sum_ns(interval, ENTITY_POD, &pods), used_ns);
	assert_same_ns(r->what, sum_ns(interval, ENTITY_CONTAINER, &containers), used_ns);
	/* The former life may be there for the last time, with nothing used any more. */
	assert_in_range(pods, 1, life + 1);
	assert_in_range(containers, 1, life + 1);
	find_entry(interval, r->container[life]);
	assert_true(total_ns(&interval->node.usage) >= 0);
}

static void restart(struct world *w, const struct restart *r)
{
	for (int life = 0; life < 2; life++) {
		struct interval *interval;
		uint64_t used_ns;

		make_tree(w, r->container[life]);
		used_ns = use_cpu(w, r->container[life]);
		interval = publish(w);
		check_life(r, life, interval, used_ns);
		interval_free(interval);
		remove_all(w, r->look);
	}
}

static void test_restarts(void **state)
{
	struct world *w = world_or_skip(state);

	tick(w, PASS_SLOW);
	for (size_t i = 0; i < sizeof(restarts) / sizeof(restarts[0]); i++) {
		restart(w, &restarts[i]);
		tick(w, PASS_SLOW);
		tick(w, PASS_SLOW);
		assert_int_equal(topology_count(w->topology), 1);
		interval_free(publish(w));
	}
}

/* --- start ------------------------------------------------------------------------------------ */

static enum sampler_tier tiers[] = {TIER_T1, TIER_T3};

#define ON_TIERS(test)                                                                             \
	{#test " T1", test, setup, teardown, &tiers[0]},                                           \
	{                                                                                          \
#test " T3", test, setup, teardown, &tiers[1]                                      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_TIERS(test_layouts),
		ON_TIERS(test_restarts),
		{"test_last_moments T1", test_last_moments, setup, teardown, &tiers[0]},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
