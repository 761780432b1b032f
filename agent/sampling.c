/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tick:
 *
 *	[rescan] --> sampler pass --> cpusets, if the pass was slow --> pressure of pods that wait
 *	--> account tick
 *
 * A rescan of the directories follows every sign of new or removed cgroups, and RESCAN_NS without a
 * sign. The schedule chooses the kind of pass. The governor sets the rate of ticks by their cost.
 *
 * What can fail:
 *
 *	pass	The tier is closed and a lower one opened; the tick fails if none opens. A lack of
 *		descriptors or memory, and a failure of the lowest tier, changes no tier: the tick
 *		counts as missed, and the next one has the CPU time since, as it is a counter.
 *	rescan	The topology stays, and is read again after RETRY_NS; removals wait in the kernel.
 *	/proc	The machine's last values stay.
 *
 * Each failure is logged when it begins, and when it has not recurred for TROUBLE_OVER_NS.
 */
#include "agent/sampling.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "agent/account.h"
#include "agent/cgroup_text.h"
#include "agent/cgroupfs.h"
#include "agent/cpusets.h"
#include "agent/governor.h"
#include "agent/machine.h"
#include "agent/sampler.h"
#include "agent/schedule.h"
#include "agent/topology.h"
#include "shared/arith.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/mem.h"

#define RESCAN_NS	(10 * NS_PER_SEC)
#define RETRY_NS	NS_PER_SEC
#define TROUBLE_OVER_NS (60 * NS_PER_SEC)

/* A failure that the agent survives. */
struct trouble {
	bool logged;
	int64_t last_ns; /* the last occurrence */
};

/* The duration of the passes of an interval. */
struct pass_times {
	uint64_t passes, sum_ns;
};

struct sampling {
	struct sampling_config config; /* fixed after open, as are the two below */
	struct cgroupfs fs;
	struct machine_files *machine_files;

	struct topology *topology;
	struct sampler *sampler;
	struct account *account;
	struct machine machine;
	struct governor governor;
	uint64_t pass; /* of sampler passes */
	struct pass_schedule passes;
	int64_t rescan_due_ns;
	int64_t rescan_hold_ns; /* no rescan before, after a failed one */
	bool rescan; /* the last pass and the topology differ, or the tree changed */
	struct trouble pass_trouble, scan_trouble, machine_trouble;
	/* Differences that a rescan cannot resolve: long paths, cgroups beyond the tables. */
	uint32_t unplaced_unknown, unplaced_missing;
	uint64_t lost_removals; /* since the last interval */

	/* of the current interval */
	struct pass_times fast, slow;
	uint64_t missed_ticks;
	uint32_t overflow;
	int64_t cpu_start_ns; /* the process's CPU time when it began */
};

/* --- troubles --------------------------------------------------------------------------------- */

static void log_trouble(struct trouble *t, int64_t mono_ns, const char *going_on,
			const struct error *why)
{
	if (!t->logged)
		log_warn("%s; %s", why->text, going_on);
	t->logged = true;
	t->last_ns = mono_ns;
}

static void log_over(struct trouble *t, int64_t mono_ns, const char *what)
{
	if (!t->logged || mono_ns - t->last_ns < TROUBLE_OVER_NS)
		return;
	log_info("%s again without a failure for %lld s", what, TROUBLE_OVER_NS / NS_PER_SEC);
	t->logged = false;
}

/* --- tiers and rate ---------------------------------------------------------------------------- */

static void start_governor(struct sampling *s)
{
	int most_hz = sampler_tier(s->sampler) == TIER_T3 ? 1 : s->config.rate_hz;

	governor_start(&s->governor, s->config.cpu_budget_percent, most_hz,
		       (int)(s->machine.cpu_capacity_milli / 1000), clock_mono_ns(),
		       clock_process_cpu_ns());
}

/* Replaces the failed tier by the best lower one. */
static int step_down(struct sampling *s, struct error *error)
{
	enum sampler_tier failed = sampler_tier(s->sampler);
	int rc;

	sampler_close(s->sampler);
	s->sampler = NULL;
	log_warn("sampling tier %s failed (%s): going on with a lower one",
		 sampler_tier_name(failed), error->text);
	rc = sampler_choose_below(&s->sampler, failed, &s->fs, s->topology, error);
	if (!rc)
		start_governor(s);
	return rc;
}

int64_t sampling_period_ns(const struct sampling *s)
{
	return NS_PER_SEC / s->governor.rate_hz;
}

/* --- one tick --------------------------------------------------------------------------------- */

static int scan(struct sampling *s, int64_t mono_ns, struct error *error)
{
	int rc = cgroupfs_scan(&s->fs, s->topology, error);
	/* A tier that reports changes leaves little to find, such as a renamed cgroup. */
	bool reports = s->sampler && sampler_tells_changes(s->sampler);

	s->rescan_due_ns = mono_ns + (reports ? 6 : 1) * RESCAN_NS;
	return rc;
}

/* Scans if that is due. True: the topology is new; false also after a failure. */
static bool rescan(struct sampling *s, int64_t mono_ns)
{
	struct error why;

	s->rescan |= sampler_topology_changed(s->sampler);
	if ((!s->rescan && mono_ns < s->rescan_due_ns) || mono_ns < s->rescan_hold_ns)
		return false;
	if (scan(s, mono_ns, &why)) {
		log_trouble(&s->scan_trouble, mono_ns,
			    "going on with the cgroups known before, new ones are not seen", &why);
		s->rescan = true;
		s->rescan_hold_ns = mono_ns + RETRY_NS;
		return false;
	}
	log_over(&s->scan_trouble, mono_ns, "the cgroups are listed");
	s->rescan = false;
	return true;
}

/* scanned: the topology is new, so another rescan would resolve no difference. */
static int pass(struct sampling *s, enum pass_kind kind, bool scanned, struct error *error)
{
	struct pass_times *times = kind == PASS_FAST ? &s->fast : &s->slow;
	struct pass_result result;
	int64_t begin = clock_mono_ns();
	int rc = sampler_pass(s->sampler, s->topology, kind, ++s->pass, &result, error);

	if (rc)
		return rc;
	times->passes++;
	times->sum_ns += (uint64_t)(clock_mono_ns() - begin);
	s->overflow = (uint32_t)int_max(s->overflow,
					int_max(result.overflow, topology_overflow(s->topology)));
	if (scanned) {
		s->unplaced_unknown = result.unknown;
		s->unplaced_missing = result.missing;
	}
	s->rescan |= result.unknown > s->unplaced_unknown || result.missing > s->unplaced_missing;
	return 0;
}

/* A pass of the best tier that works. -EAGAIN: none in this tick. */
static int pass_or_step_down(struct sampling *s, enum pass_kind kind, bool scanned, int64_t mono_ns,
			     struct error *error)
{
	int rc = pass(s, kind, scanned, error);
	/* A lower tier would fail, too. */
	bool shortage = rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM;

	if (rc && !shortage && sampler_tier(s->sampler) != TIER_T3) {
		rc = step_down(s, error);
		if (rc)
			return rc;
		rc = pass(s, kind, scanned, error);
	}
	if (rc) {
		log_trouble(&s->pass_trouble, mono_ns,
			    "nothing is sampled meanwhile, and CPU time counted later", error);
		return -EAGAIN;
	}
	log_over(&s->pass_trouble, mono_ns, "sampling");
	return 0;
}

/* After the rescan: the account still has the tracks. */
static void take_removals(struct sampling *s)
{
	struct removal removals[64];
	size_t count;

	do {
		count = sampler_take_removals(s->sampler, removals, 64, &s->lost_removals);
		account_remove(s->account, removals, count, clock_mono_ns());
	} while (count == 64);
}

static void read_machine(struct sampling *s, int64_t mono_ns)
{
	struct error why;

	s->machine.stale = machine_read(s->machine_files, &s->machine, &why) != 0;
	if (s->machine.stale)
		log_trouble(&s->machine_trouble, mono_ns,
			    "going on with what the whole machine used before", &why);
	else
		log_over(&s->machine_trouble, mono_ns, "the whole machine's use is read");
}

/* The kernel updates what a pass reads every two seconds; reading the file updates it at once. */
static void read_waiting(struct sampling *s)
{
	uint64_t ids[CULPRIT_WATCHED];
	size_t count = account_watched(s->account, ids);
	char text[256];

	for (size_t i = 0; i < count; i++) {
		int at = topology_find(s->topology, HIERARCHY_UNIFIED, ids[i], 0);
		struct cgroup *c = at < 0 ? NULL : topology_at(s->topology, (size_t)at);

		if (!c)
			continue;
		cgroupfs_read(&s->fs, HIERARCHY_UNIFIED, c->path, "cpu.pressure", text,
			      sizeof(text));
		cgroup_text_pressure(text, "some", &c->reading.psi_cpu_ns);
		cgroup_text_pressure(text, "full", &c->reading.psi_cpu_full_ns);
	}
}

/* *plain: a fast pass without a rescan. */
static int sample(struct sampling *s, bool *plain, struct error *error)
{
	int64_t now = clock_mono_ns(), read_ns;
	bool scanned = rescan(s, now);
	enum pass_kind kind = pass_schedule_choose(&s->passes, now, sampling_period_ns(s), scanned);
	bool slow = kind != PASS_FAST;
	int rc;

	*plain = !slow && !scanned;
	/*
	 * After a failed scan the topology still has removed cgroups: removals wait for the next.
	 */
	if (now >= s->rescan_hold_ns)
		take_removals(s);
	rc = pass_or_step_down(s, kind, scanned, now, error);
	read_ns = clock_mono_ns(); /* reading the files below takes long on a busy machine */
	if (rc == -EAGAIN) {
		s->missed_ticks++;
		return 0;
	}
	if (rc)
		return rc;
	pass_schedule_note(&s->passes, kind, now);
	if (slow) {
		read_machine(s, now);
		cpusets_read(&s->fs, s->topology, (uint64_t)(now / NS_PER_SEC));
	}
	read_waiting(s);
	account_tick(s->account, s->topology, &s->machine, read_ns, slow);
	return 0;
}

static void govern(struct sampling *s, bool plain, int64_t tick_cpu_ns)
{
	const struct governor_tick tick = {
		.mono_ns = clock_mono_ns(),
		.process_cpu_ns = clock_process_cpu_ns(),
		.tick_cpu_ns = tick_cpu_ns,
		.fast = plain,
	};
	struct error said;

	if (governor_tick(&s->governor, &tick, &said))
		log_info("%s", said.text);
}

int sampling_tick(struct sampling *s, uint64_t missed, struct error *error)
{
	int64_t begin = clock_thread_cpu_ns();
	bool plain;
	int rc;

	s->missed_ticks += missed;
	rc = sample(s, &plain, error);
	if (!rc)
		govern(s, plain, clock_thread_cpu_ns() - begin);
	return rc;
}

int sampling_try(void *sampling, struct error *error)
{
	struct sampling *s = sampling;
	struct pass_result result;

	return sampler_pass(s->sampler, s->topology, PASS_SLOW, ++s->pass, &result, error);
}

struct interval *sampling_take(struct sampling *s, uint64_t sequence, int64_t start_ns,
			       int64_t end_ns)
{
	int64_t cpu = clock_process_cpu_ns();
	/* Of fast passes; at 1 Hz all are slow. */
	const struct pass_times *times = s->fast.passes ? &s->fast : &s->slow;
	struct account_self self = {
		.tier = sampler_tier(s->sampler),
		.missed_ticks = (uint32_t)s->missed_ticks,
		.overflow = s->overflow + (uint32_t)s->lost_removals,
		.pass_ns = times->passes ? times->sum_ns / times->passes : 0,
		.agent_cpu_ns = (uint64_t)(cpu - s->cpu_start_ns),
	};
	struct interval *interval = account_publish(s->account, sequence, start_ns, end_ns, &self);

	if (!interval)
		return NULL;
	s->fast = s->slow = (struct pass_times){0};
	s->missed_ticks = s->overflow = s->lost_removals = 0;
	s->cpu_start_ns = cpu;
	pass_schedule_set_interval(&s->passes, end_ns - start_ns);
	return interval;
}

enum sampler_tier sampling_tier(const struct sampling *s)
{
	return sampler_tier(s->sampler);
}

size_t sampling_cgroups(const struct sampling *s)
{
	return topology_count(s->topology);
}

int sampling_open(struct sampling **out, const struct sampling_config *config, struct error *error)
{
	struct sampling *s = mem_zalloc(1, sizeof(*s));
	bool plain;
	int rc;

	s->config = *config;
	for (int h = 0; h < MOUNTS; h++)
		s->fs.root_fd[h] = -1;
	s->topology = topology_new();
	s->account = account_new();
	s->cpu_start_ns = clock_process_cpu_ns();
	rc = machine_open(&s->machine_files, error);
	if (!rc)
		rc = machine_read(s->machine_files, &s->machine, error);
	if (!rc)
		rc = cgroupfs_open(&s->fs, config->cgroup_root, NULL, error);
	if (!rc)
		rc = scan(s, clock_mono_ns(), error);
	if (!rc)
		rc = sampler_choose(&s->sampler, config->tier, &s->fs, s->topology, error);
	if (!rc) {
		start_governor(s);
		rc = sample(s, &plain, error);
	}
	if (rc)
		sampling_close(s);
	else
		*out = s;
	return rc;
}

void sampling_close(struct sampling *s)
{
	if (!s)
		return;
	sampler_close(s->sampler);
	cgroupfs_close(&s->fs);
	machine_close(s->machine_files);
	account_free(s->account);
	topology_free(s->topology);
	free(s);
}
