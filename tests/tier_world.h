/* SPDX-License-Identifier: Apache-2.0 */
/* A sampling tier over cgroups of a test's own, and what the kernel's files say of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler_tier.h"
#include "tests/cgroup_fixture.h"

#define MIB (1024LL * 1024)

struct tier_world {
	enum sampler_tier tier;
	struct cgroup_fixture *fixture;
	struct cgroupfs fs; /* whose roots are the fixture's cgroup */
	struct topology *topology;
	struct sampler *sampler; /* NULL until opened */
	uint64_t pass;
};

/* A cmocka test whose state is a world of its own, with a tier to open. */
extern enum sampler_tier tier_world_tiers[SAMPLER_TIERS];
#define TIER_TEST(name, of)                                                                        \
	{                                                                                          \
#name " of " #of, name, tier_world_setup, tier_world_teardown,                     \
			&tier_world_tiers[TIER_##of]                                               \
	}
#define TIER_TESTS_BPF(name) TIER_TEST(name, T0), TIER_TEST(name, T1), TIER_TEST(name, T2)
#define TIER_TESTS(name)     TIER_TESTS_BPF(name), TIER_TEST(name, T3)
int tier_world_setup(void **state);
int tier_world_teardown(void **state);
/* The test's world; skips the test where no cgroups can be made. */
struct tier_world *tier_world_need(void **state);

/*
 * Whether there is a v2 tree besides v1 hierarchies. T0, which needs it alone, has it so from the
 * start.
 */
bool tier_world_is_hybrid(const struct tier_world *w);
/* Forgets the v1 hierarchies, so that the v2 tree is sampled alone. */
void tier_world_keep_unified_only(struct tier_world *w);
/*
 * Scans and opens the tier; skips the test where the machine cannot carry it, fails it where it
 * should.
 */
void tier_world_open(struct tier_world *w);
void tier_world_scan(struct tier_world *w);
/* One pass that must not fail. */
struct pass_result tier_world_pass(struct tier_world *w, enum pass_kind kind);
/* The cgroup at this path of the topology; fails the test when it is not there. */
struct cgroup *tier_world_at(struct tier_world *w, const char *path);

/*
 * Limits of the cgroup, where there is such a control: 20 ms in 100 ms with a burst of 5 ms; bytes.
 */
void tier_world_limit_cpu(struct tier_world *w, const char *sub);
void tier_world_limit_memory(struct tier_world *w, const char *sub, const char *bytes);
/*
 * A child in SUB with memory, file pages and CPU time, which ran into its quota a few times,
 * stopped.
 */
void tier_world_make_stopped(struct tier_world *w, const char *sub);

/* What the files and a tier tell, each with a name and a value in ns or bytes. */
enum tier_fact {
	FACT_CPU,
	FACT_QUOTA,
	FACT_PERIOD,
	FACT_BURST,
	FACT_PERIODS,
	FACT_THROTTLED_PERIODS,
	FACT_THROTTLED,
	FACT_MEMORY,
	FACT_LIMIT,
	FACT_HIGH,
	FACT_SWAP,
	FACT_SWAP_LIMIT,
	FACT_OOM,
	FACT_PIDS,
	FACT_PIDS_LIMIT,
	FACT_PSI_CPU,
	FACT_PSI_CPU_FULL,
	FACT_PSI_MEMORY,
	FACT_PSI_MEMORY_FULL,
	FACT_INACTIVE, /* last: the kernel brings this file up to date only now and then */
	FACTS,
};

enum { FACT_ABSENT = -100 }; /* no such file, or the reading does not have it */

struct tier_facts {
	int64_t of[FACTS];
};

struct tier_facts tier_world_files(const struct tier_world *w, const char *sub);
/*
 * Passes until the files of SUB stand still around one; then that pass must agree with them.
 * Returns the facts.
 */
struct tier_facts tier_world_expect_equal(struct tier_world *w, const char *sub);
