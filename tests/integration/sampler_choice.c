/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tier is taken: liars are caught by the self-test, what a tier that goes by processes cannot
 * know is no lie, the best that works is chosen, and whoever is refused hears why.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler_tier.h"
#include "tests/tier_world.h"

/* --- liars ----------------------------------------------------------------------------------- */

enum lie {
	LIE_NO_CPU,
	LIE_CPU_ZERO,
	LIE_MEMORY_MORE,
	LIE_NO_MEMORY,
	LIE_MEMORY_LIMIT,
	LIE_NO_QUOTA,
	LIE_PERIODS_ZERO,
	LIE_THROTTLED_MORE,
	LIE_NOT_MET,
	LIE_EMPTY,
	LIES,
};

static const struct {
	const char *reason; /* what the self-test says of it */
	enum { ABOUT_CPU, ABOUT_MEMORY, ABOUT_THROTTLE } about;
} lies[LIES] = {
	[LIE_NO_CPU] = {"no CPU", ABOUT_CPU},
	[LIE_CPU_ZERO] = {"CPU ns 0,", ABOUT_CPU},
	[LIE_MEMORY_MORE] = {"memory bytes", ABOUT_MEMORY},
	[LIE_NO_MEMORY] = {"no memory", ABOUT_MEMORY},
	[LIE_MEMORY_LIMIT] = {"memory limit", ABOUT_MEMORY},
	[LIE_NO_QUOTA] = {"CPU quota ns -1, but", ABOUT_THROTTLE},
	[LIE_PERIODS_ZERO] = {"CPU periods 0,", ABOUT_THROTTLE},
	[LIE_THROTTLED_MORE] = {"throttled ns", ABOUT_THROTTLE},
	[LIE_NOT_MET] = {"did not meet", ABOUT_CPU},
	[LIE_EMPTY] = {"met no cgroup", ABOUT_CPU},
};

static enum lie lie; /* the ops have no argument of ours */

static void tell_lie(struct cgroup *cgroup, struct pass_result *result)
{
	struct reading *r = &cgroup->reading;

	switch (lie) {
	case LIE_NO_CPU:
		r->have &= ~(uint32_t)HAVE_CPU;
		break;
	case LIE_CPU_ZERO:
		r->cpu_ns = 0;
		break;
	case LIE_MEMORY_MORE:
		r->mem_bytes += 4096;
		break;
	case LIE_NO_MEMORY:
		r->have &= ~(uint32_t)HAVE_MEMORY;
		break;
	case LIE_MEMORY_LIMIT:
		r->mem_limit_bytes = 1;
		break;
	case LIE_NO_QUOTA:
		r->cpu_quota_ns = LIMIT_NONE;
		break;
	case LIE_PERIODS_ZERO:
		r->periods = 0;
		break;
	case LIE_THROTTLED_MORE:
		r->throttled_ns += 1000000;
		break;
	case LIE_NOT_MET:
		cgroup->seen_pass--;
		break;
	case LIE_EMPTY:
		result->records = 0;
		break;
	case LIES:
		break;
	}
}

static int lying_pass(void *state, struct topology *t, enum pass_kind kind, uint64_t pass,
		      struct pass_result *result, struct error *reason)
{
	int err = sampler_files_ops.pass(state, t, kind, pass, result, reason);

	for (size_t i = 0; i < topology_count(t); i++)
		tell_lie(topology_at(t, i), result);
	return err;
}

static bool can_be_told(const struct cgroupfs *fs, enum lie which)
{
	switch (lies[which].about) {
	case ABOUT_CPU:
		return fs->cpu_from >= 0;
	case ABOUT_MEMORY:
		return fs->memory_from >= 0;
	case ABOUT_THROTTLE:
		return fs->throttle_from >= 0;
	}
	return false;
}

static void test_liars_are_rejected(void **state)
{
	struct tier_world *w = tier_world_need(state);
	struct sampler_ops liar = sampler_files_ops;
	const struct sampler_ops *const both[] = {&liar, &sampler_files_ops};

	tier_world_make_stopped(w, "child");
	tier_world_scan(w);
	liar.tier = TIER_T0;
	liar.pass = lying_pass;
	for (lie = 0; lie < LIES; lie++) {
		struct error error = {""};
		struct sampler *s = NULL;

		if (!can_be_told(&w->fs, lie))
			continue;
		assert_int_equal(sampler_choose_ops(&s, both, 1, &w->fs, w->topology, &error),
				 -EBADMSG);
		assert_null(s);
		if (!strstr(error.text, lies[lie].reason) || !strstr(error.text, "tier T0"))
			fail_msg("lie %d: %s", lie, error.text);
		assert_int_equal(sampler_choose_ops(&s, both, 2, &w->fs, w->topology, &error), 0);
		assert_int_equal(sampler_tier(s), TIER_T3);
		sampler_close(s);
	}
}

/* --- tiers that go by processes --------------------------------------------------------------- */

static const char *left_out; /* what the next pass does not meet */

static int forgetful_pass(void *state, struct topology *t, enum pass_kind kind, uint64_t pass,
			  struct pass_result *result, struct error *reason)
{
	int err = sampler_files_ops.pass(state, t, kind, pass, result, reason);

	for (size_t i = 0; i < topology_count(t); i++) {
		if (strcmp(topology_at(t, i)->path, left_out) == 0)
			topology_at(t, i)->seen_pass = 0;
	}
	return err;
}

static void test_only_empty_cgroups_may_be_left_out(void **state)
{
	static const struct {
		const char *left_out;
		int err;
		bool by_processes;
	} cases[] = {
		{"/none", 0, false}, {"/empty", -EBADMSG, false}, {"/full", -EBADMSG, false},
		{"/none", 0, true},  {"/empty", 0, true},	  {"/full", -EBADMSG, true},
	};
	struct tier_world *w = tier_world_need(state);
	struct sampler_ops forgetful = sampler_files_ops;
	const struct sampler_ops *const one[] = {&forgetful};
	struct cgroup_child child = {.hold_bytes = MIB, .cache_bytes = MIB};
	unsigned int all = cgroup_fixture_all(w->fixture);
	pid_t pid;

	cgroup_fixture_make(w->fixture, all, "full");
	cgroup_fixture_make(w->fixture, all, "empty");
	cgroup_fixture_stop(cgroup_fixture_spawn(w->fixture, "full", &child));
	pid = cgroup_fixture_spawn(w->fixture, "empty", &child);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	tier_world_scan(w);
	forgetful.tier = TIER_T2;
	forgetful.pass = forgetful_pass;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = {""};
		struct sampler *s = NULL;
		int err;

		forgetful.by_processes = cases[i].by_processes;
		left_out = cases[i].left_out;
		err = sampler_choose_ops(&s, one, 1, &w->fs, w->topology, &error);
		if (err != cases[i].err)
			fail_msg("case %zu: %d %s", i, err, error.text);
		sampler_close(s);
	}
}

/* --- the best -------------------------------------------------------------------------------- */

static int refuse(void **state, const struct sampler_ops *ops, const struct cgroupfs *fs,
		  struct error *reason)
{
	(void)state, (void)ops, (void)fs;
	error_set(reason, "not on this machine");
	return -ENOSYS;
}

/* On three tiers, told by who refuses to open and who lies. */
static void test_first_that_works_is_chosen(void **state)
{
	static const struct {
		bool refuses[3], lies[3];
		int chosen; /* index, or -errno */
	} cases[] = {
		{{false, false, false}, {false, false, false}, 0},
		{{true, false, false}, {false, false, false}, 1},
		{{false, false, false}, {true, false, false}, 1},
		{{true, false, false}, {false, true, false}, 2},
		{{true, true, true}, {false, false, false}, -ENOSYS},
		{{true, true, false}, {false, false, true}, -EBADMSG},
	};
	struct tier_world *w = tier_world_need(state);

	tier_world_make_stopped(w, "child");
	tier_world_scan(w);
	lie = LIE_EMPTY;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sampler_ops ops[3];
		const struct sampler_ops *const list[] = {&ops[0], &ops[1], &ops[2]};
		struct error error = {""};
		struct sampler *s = NULL;
		int err;

		for (int k = 0; k < 3; k++) {
			ops[k] = sampler_files_ops;
			ops[k].tier = (enum sampler_tier)k;
			ops[k].open = cases[i].refuses[k] ? refuse : ops[k].open;
			ops[k].pass = cases[i].lies[k] ? lying_pass : ops[k].pass;
		}
		err = sampler_choose_ops(&s, list, 3, &w->fs, w->topology, &error);
		assert_int_equal(err ? err : (int)sampler_tier(s), cases[i].chosen);
		if (err)
			assert_non_null(strstr(error.text, "sampling tier T2: "));
		sampler_close(s);
	}
}

/* On the whole machine, busy as it is. */
static void test_best_tier_is_chosen(void **state)
{
	struct tier_world *w = tier_world_need(state);
	const struct cgroupfs *fs = cgroup_fixture_fs(w->fixture);
	struct error error = {""};
	int best = TIER_T0;

	tier_world_make_stopped(w, "child");
	assert_int_equal(cgroupfs_scan(fs, w->topology, &error), 0);
	while (sampler_open_ops(&w->sampler, sampler_all_ops[best], fs, &error))
		assert_true(++best < SAMPLER_TIERS);
	sampler_close(w->sampler);
	w->sampler = NULL;
	if (sampler_choose(&w->sampler, -1, fs, w->topology, &error))
		fail_msg("%s", error.text);
	assert_int_equal(sampler_tier(w->sampler), best);
	tier_world_pass(w, PASS_SLOW);
	assert_int_equal(tier_world_at(w, cgroup_fixture_path(w->fixture, "child"))->seen_pass,
			 w->pass);
	sampler_close(w->sampler);
	assert_int_equal(sampler_choose(&w->sampler, TIER_T3, fs, w->topology, &error), 0);
	assert_int_equal(sampler_tier(w->sampler), TIER_T3);
}

/* --- refusals -------------------------------------------------------------------------------- */

/* In the child: 0 when opening failed as it must. */
static int open_without_capabilities(struct tier_world *w)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct error error = {""};
	struct sampler *s;
	int err;

	if (syscall(SYS_capset, &header, none))
		return 2;
	err = sampler_open_ops(&s, sampler_all_ops[w->tier], &w->fs, &error);
	if (err == -EPERM && strstr(error.text, "CAP_BPF and CAP_PERFMON missing"))
		return 0;
	fprintf(stderr, "opening without capabilities: %d %s\n", err, error.text);
	return 1;
}

static void test_missing_capability_is_named(void **state)
{
	struct tier_world *w = tier_world_need(state);
	int status;
	pid_t pid;

	tier_world_open(w); /* else the kernel lacks more than the capability */
	pid = fork();
	if (pid == 0)
		_exit(open_without_capabilities(w));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* In the grandchild, which is process 1 of its own pid namespace: 0 when T2 is refused for it. */
static int choose_in_namespace(struct tier_world *w)
{
	static const char words[] = "can be seen from this pid namespace";
	struct error error = {""};
	struct sampler *s;
	int err = sampler_choose(&s, TIER_T2, &w->fs, w->topology, &error);

	if (err == -ENOTSUP && strstr(error.text, words))
		return 0;
	fprintf(stderr, "T2 in a pid namespace: %d %s\n", err, error.text);
	return 1;
}

/* The namespace's process 1 is in the cgroup of the test, so a pass meets that much. */
static void test_private_pid_namespace_is_noticed(void **state)
{
	struct tier_world *w = tier_world_need(state);
	struct cgroup_child child = {.hold_bytes = MIB};
	unsigned int all = cgroup_fixture_all(w->fixture);
	const struct cgroupfs *fs = cgroup_fixture_fs(w->fixture);
	int status;
	pid_t pid;

	cgroup_fixture_make(w->fixture, all, "child");
	cgroup_fixture_stop(cgroup_fixture_spawn(w->fixture, "child", &child));
	tier_world_open(w);
	assert_int_equal(cgroupfs_scan(fs, w->topology, NULL), 0);
	pid = fork();
	if (pid == 0) {
		cgroupfs_close(&w->fs);
		w->fs = *fs;
		if (unshare(CLONE_NEWPID))
			_exit(2);
		pid = fork();
		if (pid == 0)
			_exit(choose_in_namespace(w));
		_exit(pid > 0 && waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- what changes meanwhile ------------------------------------------------------------------- */

static struct cgroup_fixture *restless; /* its "brief" is another one by the time of a pass */

static int late_pass(void *state, struct topology *t, enum pass_kind kind, uint64_t pass,
		     struct pass_result *result, struct error *reason)
{
	unsigned int all = cgroup_fixture_all(restless);

	cgroup_fixture_remove(restless, all, "brief");
	cgroup_fixture_make(restless, all, "brief");
	return sampler_files_ops.pass(state, t, kind, pass, result, reason);
}

/* As a unit that is restarted while the agent starts. */
static void test_path_made_again_proves_nothing(void **state)
{
	struct tier_world *w = tier_world_need(state);
	struct sampler_ops late = sampler_files_ops;
	const struct sampler_ops *const one[] = {&late};
	struct cgroup_child child = {.hold_bytes = MIB};
	struct error error = {""};
	struct sampler *s = NULL;
	int err;
	pid_t pid;

	cgroup_fixture_make(w->fixture, cgroup_fixture_all(w->fixture), "brief");
	pid = cgroup_fixture_spawn(w->fixture, "brief", &child);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	tier_world_scan(w);
	restless = w->fixture;
	late.pass = late_pass;
	err = sampler_choose_ops(&s, one, 1, &w->fs, w->topology, &error);
	if (err)
		print_error("%s\n", error.text);
	assert_int_equal(err, 0);
	sampler_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TIER_TEST(test_liars_are_rejected, T3),
		TIER_TEST(test_only_empty_cgroups_may_be_left_out, T3),
		TIER_TEST(test_first_that_works_is_chosen, T3),
		TIER_TEST(test_best_tier_is_chosen, T3),
		TIER_TESTS_BPF(test_missing_capability_is_named),
		TIER_TEST(test_path_made_again_proves_nothing, T3),
		TIER_TEST(test_private_pid_namespace_is_noticed, T2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
