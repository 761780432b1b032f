/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the matrix of kernels expects of each: the tiers it must carry, and what only a machine of
 * one's own may be asked to do. That the tiers' values equal the kernel's files is the business of
 * tests/integration/sampler.c, which runs on every kernel of the matrix too.
 *
 * EVENKEEL_TIERS names the tiers that the kernel must carry, best first ("T1 T2 T3").
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler.h"
#include "agent/sampler_tier.h"
#include "tests/tier_world.h"
#include "tests/vm/machine.h"

/* On the whole machine, busy as it is. */
static void test_best_tier_is_chosen(void **state)
{
	const char *tiers = getenv("EVENKEEL_TIERS");
	struct tier_world *w = tier_world_need(state);
	const struct cgroupfs *fs = cgroup_fixture_fs(w->fixture);
	struct error error = {""};

	tier_world_make_stopped(w, "child");
	assert_int_equal(cgroupfs_scan(fs, w->topology, &error), 0);
	if (sampler_choose(&w->sampler, -1, fs, w->topology, &error))
		fail_msg("%s", error.text);
	print_message("chosen: %s\n", sampler_tier_name(sampler_tier(w->sampler)));
	if (tiers)
		assert_memory_equal(sampler_tier_name(sampler_tier(w->sampler)), tiers, 2);
}

/*
 * Where they must, so that no other test passes by skipping it; and where they cannot, with a
 * reason.
 */
static void test_tier_opens_as_expected(void **state)
{
	const char *tiers = getenv("EVENKEEL_TIERS");
	struct tier_world *w = tier_world_need(state);
	const char *name = sampler_tier_name(w->tier);
	struct error error = {""};
	int err;

	if (!tiers) {
		print_message("SKIP: EVENKEEL_TIERS does not say what to expect\n");
		skip();
		return;
	}
	tier_world_make_stopped(w, "child");
	tier_world_scan(w);
	err = sampler_open_ops(&w->sampler, sampler_all_ops[w->tier], &w->fs, &error);
	if (strstr(tiers, name) && err)
		fail_msg("%s: %s", name, error.text);
	if (strstr(tiers, name))
		return;
	print_message("%s: %s\n", name, error.text);
	assert_true(err < 0);
	assert_true(strlen(error.text) > 0);
}

static void set_generations(bool on)
{
	int fd = open("/sys/kernel/mm/lru_gen/enabled", O_WRONLY | O_CLOEXEC);
	bool written = false;

	if (fd >= 0) {
		written = write(fd, on ? "y" : "n", 1) == 1;
		close(fd);
	}
	if (!written)
		fail_msg("cannot switch the generations: %s", strerror(errno));
}

/*
 * Between lists and generations the file pages move, but their number stays what memory.stat says.
 */
static void test_generations_are_switched(void **state)
{
	struct tier_world *w = tier_world_need(state);
	struct tier_facts facts;

	if (!in_virtual_machine()) {
		print_message("SKIP: changes how the machine reclaims memory: in a virtual machine "
			      "only\n");
		skip();
	}
	if (access("/sys/kernel/mm/lru_gen/enabled", W_OK)) {
		print_message("SKIP: this kernel has no multi-generational LRU\n");
		skip();
	}
	tier_world_make_stopped(w, "child");
	tier_world_open(w);
	for (int i = 0; i < 3; i++) {
		set_generations(i % 2 == 0);
		facts = tier_world_expect_equal(w, "child");
		assert_true(facts.of[FACT_INACTIVE] >= 8 * MIB);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate_setup_teardown(test_best_tier_is_chosen, tier_world_setup,
							 tier_world_teardown,
							 &tier_world_tiers[TIER_T3]),
		TIER_TESTS(test_tier_opens_as_expected),
		TIER_TESTS_BPF(test_generations_are_switched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
