/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What removed cgroups of the v2 tree leave behind: every tier that the kernel walks for hands out
 * their last counters, which the files said just before the removal.
 *
 * Others on this machine remove cgroups too, so each test looks for its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/record.h"
#include "tests/process.h"
#include "tests/tier_world.h"

enum { ALL_MAX = 2 * REMOVALS_MAX };

/* Everything that was handed out, in its order. */
static struct removal all[ALL_MAX];
static size_t all_count;
static uint64_t all_lost;

static void take_all(struct tier_world *w)
{
	size_t count;

	all_count = 0;
	all_lost = 0;
	do {
		count = sampler_take_removals(w->sampler, all + all_count, 64, &all_lost);
		all_count += count;
		assert_true(all_count + 64 <= ALL_MAX);
	} while (count == 64);
}

/* -1 when it is not there. */
static int find(uint64_t id)
{
	for (size_t i = 0; i < all_count; i++) {
		if (all[i].id == id)
			return (int)i;
	}
	return -1;
}

static uint64_t id_of(struct tier_world *w, const char *path)
{
	return tier_world_at(w, path)->id[HIERARCHY_UNIFIED];
}

/* The v2 tree alone, with the tier open. */
static struct tier_world *need_unified(void **state)
{
	struct tier_world *w = tier_world_need(state);

	if (w->fs.root_fd[HIERARCHY_UNIFIED] < 0) {
		print_message("SKIP: no v2 tree here\n");
		skip();
	}
	if (tier_world_is_hybrid(w))
		tier_world_keep_unified_only(w);
	return w;
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Two reads in a row that are equal: what a process leaves when it ends comes a moment later. */
struct quiet {
	const struct tier_world *w;
	const char *sub;
	struct tier_facts last;
};

static bool stands_still(void *ctx)
{
	struct quiet *q = ctx;
	struct tier_facts now = tier_world_files(q->w, q->sub);
	bool equal = now.of[FACT_CPU] == q->last.of[FACT_CPU] &&
		     now.of[FACT_THROTTLED] == q->last.of[FACT_THROTTLED] &&
		     now.of[FACT_PERIODS] == q->last.of[FACT_PERIODS];

	q->last = now;
	return equal;
}

static struct tier_facts last_words(const struct tier_world *w, const char *sub)
{
	struct quiet q = {.w = w, .sub = sub};

	assert_true(await(stands_still, &q, 10));
	return q.last;
}

struct use {
	const struct tier_world *w;
	const char *sub;
};

static bool used_enough(void *ctx)
{
	const struct use *use = ctx;
	struct tier_facts f = tier_world_files(use->w, use->sub);

	return f.of[FACT_CPU] >= 100 * 1000 * 1000 &&
	       (use->w->fs.throttle_from < 0 || f.of[FACT_THROTTLED_PERIODS] >= 3);
}

static void test_last_values_equal_files(void **state)
{
	struct tier_world *w = need_unified(state);
	struct cgroup_child spinning = {.spin = true};
	struct use use = {w, "pod/child"};
	unsigned int v2 = 1U << HIERARCHY_UNIFIED;
	const struct removal *d;
	struct tier_facts f;
	uint64_t child, pod;
	pid_t pid;
	int at;

	cgroup_fixture_make_tree(w->fixture, "pod/child");
	tier_world_limit_cpu(w, "pod/child");
	tier_world_open(w);
	child = id_of(w, "/pod/child");
	pod = id_of(w, "/pod");
	pid = cgroup_fixture_spawn(w->fixture, "pod/child", &spinning);
	assert_true(await(used_enough, &use, 30));
	end(pid);
	f = last_words(w, "pod/child");
	cgroup_fixture_remove(w->fixture, v2, "pod/child");
	cgroup_fixture_remove(w->fixture, v2, "pod");
	take_all(w);
	assert_int_equal(all_lost, 0);
	at = find(child);
	assert_true(at >= 0);
	assert_true(find(pod) > at); /* children first */
	d = &all[at];
	assert_int_equal(d->parent_id, pod);
	assert_true(d->have & HAVE_CPU);
	assert_int_equal(d->cpu_ns / 1000, f.of[FACT_CPU] / 1000);
	assert_int_equal(!!(d->have & HAVE_THROTTLE), f.of[FACT_THROTTLED] != FACT_ABSENT);
	if (!(d->have & HAVE_THROTTLE))
		return;
	assert_int_equal(d->throttled_ns / 1000, f.of[FACT_THROTTLED] / 1000);
	/* The period that the task ended in, throttled or not, may be over by then. */
	assert_in_range(d->periods, f.of[FACT_PERIODS], f.of[FACT_PERIODS] + 1);
	assert_in_range(d->throttled_periods, f.of[FACT_THROTTLED_PERIODS],
			f.of[FACT_THROTTLED_PERIODS] + 1);
}

/* A pod without tasks of its own says 0, not what its children used. */
static void test_each_is_handed_out_once(void **state)
{
	struct tier_world *w = need_unified(state);
	unsigned int v2 = 1U << HIERARCHY_UNIFIED;
	uint64_t id;

	cgroup_fixture_make(w->fixture, v2, "idle");
	tier_world_open(w);
	id = id_of(w, "/idle");
	take_all(w);
	assert_int_equal(find(id), -1);
	cgroup_fixture_remove(w->fixture, v2, "idle");
	take_all(w);
	assert_true(find(id) >= 0);
	assert_int_equal(all[find(id)].parent_id, id_of(w, "/"));
	assert_int_equal(all[find(id)].cpu_ns, 0);
	take_all(w);
	assert_int_equal(find(id), -1);
}

/* Its id is that of the directory, read while it is there. */
static uint64_t make_and_remove(struct tier_world *w, const char *name)
{
	int root = w->fs.root_fd[HIERARCHY_UNIFIED];
	struct stat st;

	assert_int_equal(mkdirat(root, name, 0755), 0);
	assert_int_equal(fstatat(root, name, &st, 0), 0);
	assert_int_equal(unlinkat(root, name, AT_REMOVEDIR), 0);
	return st.st_ino;
}

static void test_what_was_overwritten_is_counted(void **state)
{
	static uint64_t ids[REMOVALS_MAX + 100];
	struct tier_world *w = need_unified(state);
	const size_t made = REMOVALS_MAX + 100;
	size_t others, found = 0;
	int last = -1;

	tier_world_open(w);
	take_all(w);
	for (size_t i = 0; i < made; i++)
		ids[i] = make_and_remove(w, "brief");
	take_all(w);
	assert_true(all_lost >= 100);
	/* Others of the machine may remove cgroups while these are taken. */
	assert_true(all_count >= REMOVALS_MAX);
	others = all_count + all_lost - made;
	/* The newest of them, in order. */
	for (size_t i = made - 1; i < made && find(ids[i]) >= 0; i--, found++) {
		if (found)
			assert_true(find(ids[i]) < last);
		last = find(ids[i]);
	}
	assert_true(found + others >= all_count);
	assert_true(found > REMOVALS_MAX / 2);
}

/* So that a record of which a processor does not see all yet is not taken for whole. */
static void test_check_is_over_every_member(void **state)
{
	static const size_t changed[] = {
		offsetof(struct removal_record, id),
		offsetof(struct removal_record, parent_id),
		offsetof(struct removal_record, cpu_ns),
		offsetof(struct removal_record, throttled_ns),
		offsetof(struct removal_record, periods),
		offsetof(struct removal_record, throttled_periods),
		offsetof(struct removal_record, have),
	};
	const struct removal_record whole = {.id = 7, .parent_id = 1, .cpu_ns = 1000, .have = 3};
	uint64_t check = removal_check(&whole, 3);

	(void)state;
	assert_true(check != removal_check(&whole, 3 + REMOVALS_MAX));
	assert_true(removal_check(&(struct removal_record){0}, 1) != 0);
	for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
		struct removal_record torn = whole;

		((unsigned char *)&torn)[changed[i]] ^= 1;
		assert_true(check != removal_check(&torn, 3));
	}
}

/* There the counters of every cgroup hold what its removed descendants used. */
static void test_v1_has_none(void **state)
{
	struct tier_world *w = tier_world_need(state);

	if (w->fs.cpu_from == HIERARCHY_UNIFIED) {
		print_message("SKIP: no v1 cpuacct hierarchy here\n");
		skip();
	}
	tier_world_open(w);
	for (int i = 0; i < 3; i++)
		make_and_remove(w, "brief");
	take_all(w);
	assert_int_equal(all_count + all_lost, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TIER_TESTS_BPF(test_last_values_equal_files),
		TIER_TESTS_BPF(test_each_is_handed_out_once),
		TIER_TEST(test_what_was_overwritten_is_counted, T1),
		cmocka_unit_test(test_check_is_over_every_member),
		TIER_TEST(test_v1_has_none, T1),
		TIER_TEST(test_v1_has_none, T2),
		TIER_TEST(test_v1_has_none, T3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
