/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampling tiers against the kernel's own files, for children of which everything is known to
 * stand still: what two reads of the files around a pass agree on, the pass must say too, to the
 * last unit. Works on whatever hierarchies the machine has, v1, v2 or both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/process.h"
#include "tests/tier_world.h"

static void make_everywhere(struct tier_world *w, const char *sub)
{
	cgroup_fixture_make(w->fixture, cgroup_fixture_all(w->fixture), sub);
}

/* A cgroup with a process in it, which T2 takes. */
static pid_t make_populated(struct tier_world *w, const char *sub)
{
	struct cgroup_child child = {.hold_bytes = MIB};

	make_everywhere(w, sub);
	return cgroup_fixture_spawn(w->fixture, sub, &child);
}

/* --- values ---------------------------------------------------------------------------------- */

/* Pages of a file that lives in memory are on no list of file pages. */
static bool files_are_on_disk(void)
{
	struct statfs st;

	return !statfs("/var/tmp", &st) && st.f_type != TMPFS_MAGIC && st.f_type != RAMFS_MAGIC;
}

/* Against values that are absent or zero on both sides. */
static void expect_values(const struct tier_world *w, const struct tier_facts *f)
{
	if (w->fs.cpu_from >= 0)
		assert_true(f->of[FACT_CPU] > 0);
	if (w->fs.memory_from >= 0) {
		assert_true(f->of[FACT_MEMORY] >= 32 * MIB);
		if (files_are_on_disk())
			assert_true(f->of[FACT_INACTIVE] > 0);
		assert_int_equal(f->of[FACT_LIMIT], 64 * MIB);
		if (f->of[FACT_SWAP_LIMIT] != FACT_ABSENT)
			assert_int_equal(f->of[FACT_SWAP_LIMIT], 16 * MIB);
	}
	if (w->fs.throttle_from >= 0) {
		assert_int_equal(f->of[FACT_QUOTA], 20 * 1000 * 1000);
		assert_int_equal(f->of[FACT_PERIOD], 100 * 1000 * 1000);
		assert_true(f->of[FACT_THROTTLED_PERIODS] >= 3);
		assert_true(f->of[FACT_THROTTLED] > 0);
	}
	if (f->of[FACT_PSI_CPU] != FACT_ABSENT)
		assert_true(f->of[FACT_PSI_CPU] > 0);
}

static void test_values_equal_files(void **state)
{
	struct tier_world *w = tier_world_need(state);
	struct tier_facts f;

	tier_world_make_stopped(w, "child");
	tier_world_open(w);
	f = tier_world_expect_equal(w, "child");
	expect_values(w, &f);
}

static void test_values_equal_files_on_unified(void **state)
{
	struct tier_world *w = tier_world_need(state);
	struct tier_facts f;

	if (!tier_world_is_hybrid(w)) {
		print_message("SKIP: no v2 tree besides v1 hierarchies here\n");
		skip();
	}
	tier_world_make_stopped(w, "child");
	tier_world_keep_unified_only(w);
	tier_world_open(w);
	f = tier_world_expect_equal(w, "child");
	expect_values(w, &f);
}

static void test_ancestors_are_met(void **state)
{
	struct tier_world *w = tier_world_need(state);

	cgroup_fixture_make_tree(w->fixture, "pod/sandbox/child");
	cgroup_fixture_stop(make_populated(w, "pod/sandbox/child"));
	tier_world_open(w);
	tier_world_pass(w, PASS_SLOW);
	for (size_t i = 0; i < topology_count(w->topology); i++)
		assert_int_equal(topology_at(w->topology, i)->seen_pass, w->pass);
	if (w->fs.memory_from < 0)
		return;
	for (size_t i = 1; i < topology_count(w->topology); i++)
		assert_true(topology_at(w->topology, i)->reading.mem_bytes >= MIB);
}

static void test_oom_kills_are_counted(void **state)
{
	struct tier_world *w = tier_world_need(state);
	struct cgroup_child greedy = {.hold_bytes = 64 * MIB};
	const struct reading *r;

	if (w->fs.memory_from < 0) {
		print_message("SKIP: no memory controller\n");
		skip();
	}
	/* The survivor is older, so that the killer takes the larger one. */
	cgroup_fixture_stop(make_populated(w, "greedy"));
	tier_world_limit_memory(w, "greedy", "16777216");
	cgroup_fixture_spawn(w->fixture, "greedy", &greedy); /* returns when it is dead of it */
	tier_world_open(w);
	tier_world_pass(w, PASS_SLOW);
	r = &tier_world_at(w, "/greedy")->reading;
	assert_true(r->have & HAVE_OOM);
	assert_int_equal(r->oom_kills, 1);
	assert_int_equal(tier_world_files(w, "greedy").of[FACT_OOM], 1);
}

static void test_no_limits_are_none(void **state)
{
	struct tier_world *w = tier_world_need(state);
	const struct reading *r;

	cgroup_fixture_stop(make_populated(w, "free"));
	tier_world_open(w);
	tier_world_pass(w, PASS_SLOW);
	r = &tier_world_at(w, "/free")->reading;
	if (r->have & HAVE_CPU_LIMIT)
		assert_int_equal(r->cpu_quota_ns, LIMIT_NONE);
	if (r->have & HAVE_MEMORY_LIMIT)
		assert_int_equal(r->mem_limit_bytes, LIMIT_NONE);
	if (r->have & HAVE_MEMORY_HIGH)
		assert_int_equal(r->mem_high_bytes, LIMIT_NONE);
	if (r->have & HAVE_SWAP_LIMIT)
		assert_int_equal(r->swap_limit_bytes, LIMIT_NONE);
	if (r->have & HAVE_PIDS_LIMIT)
		assert_int_equal(r->pids_limit, LIMIT_NONE);
}

static void test_fast_pass_keeps_slow_members(void **state)
{
	struct tier_world *w = tier_world_need(state);
	struct reading slow, fast;

	tier_world_make_stopped(w, "child");
	tier_world_open(w);
	tier_world_pass(w, PASS_SLOW);
	slow = tier_world_at(w, "/child")->reading;
	tier_world_pass(w, PASS_FAST);
	fast = tier_world_at(w, "/child")->reading;
	assert_int_equal(fast.have, slow.have);
	assert_true(fast.have & (HAVE_CPU | HAVE_MEMORY));
	assert_int_equal(fast.cpu_quota_ns, slow.cpu_quota_ns);
	assert_int_equal(fast.inactive_file_bytes, slow.inactive_file_bytes);
}

/* Whether a brief pass has something to leave out: v1 tells all that is fast. */
static bool leaves_out(const struct tier_world *w)
{
	return tier_world_is_hybrid(w) && w->fs.cpu_from != HIERARCHY_UNIFIED &&
	       w->fs.memory_from != HIERARCHY_UNIFIED;
}

static void test_brief_pass_keeps_what_it_leaves_out(void **state)
{
	struct tier_world *w = tier_world_need(state);
	const uint32_t rare = HAVE_CPU_LIMIT | HAVE_THROTTLE | HAVE_PSI | HAVE_PSI_CPU_FULL |
			      HAVE_PSI_MEMORY_FULL | HAVE_PIDS | HAVE_PIDS_LIMIT;
	struct pass_result result;
	struct reading *child;
	uint32_t have;

	tier_world_make_stopped(w, "child");
	tier_world_open(w);
	tier_world_pass(w, PASS_SLOW);
	child = &tier_world_at(w, "/child")->reading;
	have = child->have;
	/* Nobody tells that again but a pass that reads it. */
	child->cpu_quota_ns = 1;
	child->psi_cpu_ns = 1;
	child->mem_limit_bytes = 1;
	result = tier_world_pass(w, PASS_BRIEF);
	assert_int_equal(result.unknown + result.missing, 0);
	assert_int_equal(child->have, have);
	if (have & HAVE_MEMORY_LIMIT)
		assert_true(child->mem_limit_bytes != 1);
	if (leaves_out(w)) {
		assert_int_equal(child->cpu_quota_ns, 1);
		assert_int_equal(child->psi_cpu_ns, 1);
	} else {
		assert_true(!(have & HAVE_CPU_LIMIT) || child->cpu_quota_ns != 1);
		assert_true(!(have & HAVE_PSI) || child->psi_cpu_ns != 1);
	}
	tier_world_pass(w, PASS_SLOW);
	assert_int_equal(child->have & rare, have & rare);
	assert_true(!(have & HAVE_CPU_LIMIT) || child->cpu_quota_ns != 1);
	assert_true(!(have & HAVE_PSI) || child->psi_cpu_ns != 1);
}

static void test_brief_pass_on_unified_is_a_slow_one(void **state)
{
	struct tier_world *w = tier_world_need(state);

	if (!tier_world_is_hybrid(w)) {
		print_message("SKIP: no v2 tree besides v1 hierarchies here\n");
		skip();
	}
	tier_world_keep_unified_only(w);
	test_brief_pass_keeps_what_it_leaves_out(state);
}

/* --- which cgroups --------------------------------------------------------------------------- */

static void test_unknown_and_missing_are_told(void **state)
{
	struct tier_world *w = tier_world_need(state);
	unsigned int all = cgroup_fixture_all(w->fixture);
	struct pass_result result;

	make_everywhere(w, "old");
	tier_world_open(w);
	result = tier_world_pass(w, PASS_FAST);
	assert_int_equal(result.records, topology_count(w->topology));
	assert_int_equal(result.unknown + result.missing + result.overflow, 0);
	make_everywhere(w, "new");
	result = tier_world_pass(w, PASS_FAST);
	assert_true(result.unknown > 0);
	assert_int_equal(result.missing, 0);
	cgroup_fixture_remove(w->fixture, all, "new");
	cgroup_fixture_remove(w->fixture, all, "old");
	result = tier_world_pass(w, PASS_FAST);
	assert_int_equal(result.unknown, 0);
	assert_true(result.missing > 0);
	tier_world_scan(w);
	result = tier_world_pass(w, PASS_SLOW);
	assert_int_equal(result.unknown + result.missing, 0);
}

/*
 * A process that was not reaped yet keeps the removed cgroup in the kernel, where walks still find
 * it.
 */
static void test_removed_cgroups_are_not_met(void **state)
{
	struct tier_world *w = tier_world_need(state);
	unsigned int all = cgroup_fixture_all(w->fixture);
	struct pass_result result;
	pid_t kept, gone;

	kept = make_populated(w, "kept");
	gone = make_populated(w, "gone");
	cgroup_fixture_stop(kept);
	assert_int_equal(kill(gone, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)gone, NULL, WEXITED | WNOWAIT), 0);
	cgroup_fixture_remove(w->fixture, all, "gone");
	tier_world_open(w);
	result = tier_world_pass(w, PASS_SLOW);
	assert_int_equal(result.records, topology_count(w->topology));
	assert_int_equal(result.unknown, 0);
}

/* What T2 does instead of telling what is missing. */
static void test_cgroups_without_processes_keep_their_reading(void **state)
{
	struct tier_world *w = tier_world_need(state);
	struct pass_result result;
	struct reading before;
	struct cgroup *child;
	uint64_t seen;
	pid_t pid;

	cgroup_fixture_stop(make_populated(w, "other"));
	pid = make_populated(w, "child");
	tier_world_open(w);
	result = tier_world_pass(w, PASS_SLOW);
	assert_int_equal(result.records, topology_count(w->topology));
	child = tier_world_at(w, "/child");
	before = child->reading;
	seen = child->seen_pass;
	assert_true(before.have & (HAVE_CPU | HAVE_MEMORY));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	result = tier_world_pass(w, PASS_SLOW);
	assert_int_equal(result.records, topology_count(w->topology) - 1);
	assert_int_equal(result.missing + result.unknown, 0);
	assert_int_equal(child->seen_pass, seen);
	assert_memory_equal(&child->reading, &before, sizeof(before));
}

/* A thread that goes to another cgroup than its process, and waits there. */
struct stray {
	const struct tier_world *w;
	pthread_barrier_t there, end;
	bool moved;
};

static void *stray(void *ctx)
{
	struct stray *s = ctx;
	char tid[32];

	snprintf(tid, sizeof(tid), "%ld", (long)syscall(SYS_gettid));
	s->moved = cgroup_fixture_write(s->w->fixture, HIERARCHY_CPU, "thread", "tasks", tid);
	pthread_barrier_wait(&s->there);
	pthread_barrier_wait(&s->end);
	return NULL;
}

/* v1 lets the threads of a process be in different cgroups. */
static void test_threads_are_looked_at_for_themselves(void **state)
{
	struct tier_world *w = tier_world_need(state);
	struct stray s = {.w = w};
	pthread_t thread;

	if (w->fs.throttle_from != HIERARCHY_CPU) {
		print_message("SKIP: no v1 cpu hierarchy here\n");
		skip();
	}
	make_everywhere(w, "thread");
	cgroup_fixture_stop(make_populated(w, "other"));
	tier_world_open(w);
	pthread_barrier_init(&s.there, NULL, 2);
	pthread_barrier_init(&s.end, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, stray, &s), 0);
	pthread_barrier_wait(&s.there);
	tier_world_pass(w, PASS_SLOW);
	pthread_barrier_wait(&s.end);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&s.there);
	pthread_barrier_destroy(&s.end);
	assert_true(s.moved);
	assert_int_equal(tier_world_at(w, "/thread")->seen_pass, w->pass);
}

/* Others on this machine make and remove cgroups too: quiet is waited for, change is not. */
static bool is_quiet(void *sampler)
{
	return !sampler_topology_changed(sampler);
}

static void test_changes_are_noticed(void **state)
{
	struct tier_world *w = tier_world_need(state);
	unsigned int one = cgroup_fixture_all(w->fixture) & -cgroup_fixture_all(w->fixture);

	tier_world_open(w);
	assert_true(await(is_quiet, w->sampler, 30));
	cgroup_fixture_make(w->fixture, one, "child");
	assert_true(sampler_topology_changed(w->sampler));
	assert_true(await(is_quiet, w->sampler, 30));
	cgroup_fixture_remove(w->fixture, one, "child");
	assert_true(sampler_topology_changed(w->sampler));
	assert_true(await(is_quiet, w->sampler, 30));
}

static void test_overflow_is_counted(void **state)
{
	static struct sampler_ops small; /* outlives the test: teardown closes */
	struct tier_world *w = tier_world_need(state);
	struct error why = {""};
	struct pass_result result;
	char name[16];

	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "child%d", i);
		cgroup_fixture_stop(make_populated(w, name));
	}
	tier_world_open(w); /* skips where the tier cannot work */
	sampler_close(w->sampler);
	w->sampler = NULL;
	small = *sampler_all_ops[w->tier];
	small.record_limit = 4;
	if (sampler_open_ops(&w->sampler, &small, &w->fs, &why))
		fail_msg("%s", why.text);
	for (int i = 0; i < 2; i++) {
		result = tier_world_pass(w, i ? PASS_SLOW : PASS_FAST);
		assert_int_equal(result.overflow, 9 - 4);
		assert_int_equal(result.records, 4);
		assert_int_equal(result.unknown, 0);
		if (w->tier != TIER_T2)
			assert_true(result.missing > 0);
	}
}

/* --- privilege ------------------------------------------------------------------------------- */

/* In the child: a pass of each kind with these capabilities and no others; 0 or -errno. */
static int pass_with_capabilities(struct tier_world *w, uint64_t capabilities)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct pass_result result;
	struct error why = {""};

	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i].effective = data[i].permitted = (uint32_t)(capabilities >> 32 * i);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capset, &header, data))
		return -errno;
	for (int kind = PASS_FAST; kind <= PASS_SLOW; kind++) {
		int err = sampler_pass(w->sampler, w->topology, (enum pass_kind)kind, ++w->pass,
				       &result, &why);

		if (err)
			return err;
		if (result.records != topology_count(w->topology))
			return -EBADMSG;
	}
	return 0;
}

static int pass_in_child(struct tier_world *w, uint64_t capabilities)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(-pass_with_capabilities(w, capabilities));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void test_passes_need_no_capability(void **state)
{
	struct tier_world *w = tier_world_need(state);
	int err;

	cgroup_fixture_stop(make_populated(w, "child"));
	tier_world_open(w);
	err = pass_in_child(w, 0);
	if (err == -EPERM) {
		print_message("this kernel forbids all of bpf() without capabilities\n");
		err = pass_in_child(w, 1ULL << CAP_BPF | 1ULL << CAP_PERFMON);
	}
	assert_int_equal(err, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TIER_TESTS(test_values_equal_files),
		TIER_TEST(test_values_equal_files_on_unified, T1),
		TIER_TEST(test_values_equal_files_on_unified, T2),
		TIER_TEST(test_values_equal_files_on_unified, T3),
		TIER_TESTS(test_ancestors_are_met),
		TIER_TESTS(test_oom_kills_are_counted),
		TIER_TESTS(test_no_limits_are_none),
		TIER_TESTS_BPF(test_fast_pass_keeps_slow_members),
		TIER_TESTS_BPF(test_brief_pass_keeps_what_it_leaves_out),
		TIER_TESTS_BPF(test_brief_pass_on_unified_is_a_slow_one),
		TIER_TEST(test_unknown_and_missing_are_told, T0),
		TIER_TEST(test_unknown_and_missing_are_told, T1),
		TIER_TESTS_BPF(test_removed_cgroups_are_not_met),
		TIER_TEST(test_cgroups_without_processes_keep_their_reading, T2),
		TIER_TEST(test_threads_are_looked_at_for_themselves, T2),
		TIER_TESTS_BPF(test_changes_are_noticed),
		TIER_TESTS_BPF(test_overflow_is_counted),
		TIER_TESTS_BPF(test_passes_need_no_capability),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
