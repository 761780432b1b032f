/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files are the same for all tiers: a BPF program would have to know both forms of
 * cpumask_var_t. A list changes when kubelet gives or takes exclusive CPUs, so a late reading is
 * the only loss; a file that is missing or unreadable counts as no list.
 */
#include "agent/cpusets.h"

#include <stdlib.h>
#include <string.h>

#include "agent/cgroup_text.h"
#include "shared/mem.h"

enum {
	READ_PASSES = 30, /* rounds from one reading of a list to the next: 10 us each */
	TEXT_SIZE = 4096,
	/* Users of a CPU are indices of tracks, below CGROUPS_MAX. */
	CPU_UNUSED = 0,
	CPU_SHARED = CGROUPS_MAX,
	CPU_COUNTED = 1 << 15,
};

/* --- reading ---------------------------------------------------------------------------------- */

static void read_list(const struct cgroupfs *fs, struct cgroup *c, const char *file)
{
	char text[TEXT_SIZE];

	if (cgroupfs_read(fs, fs->cpuset_from, c->path, file, text, TEXT_SIZE) == TEXT_SIZE - 1)
		text[0] = '\0'; /* longer: the CPUs are not known */
	if (c->cpus && strcmp(c->cpus, text) == 0)
		return;
	free(c->cpus);
	c->cpus = mem_strdup(text);
}

void cpusets_read(const struct cgroupfs *fs, struct topology *t, uint64_t round)
{
	bool v2 = fs->cpuset_from == HIERARCHY_UNIFIED;

	if (fs->cpuset_from < 0)
		return;
	for (size_t i = 1; i < topology_count(t); i++) {
		struct cgroup *c = topology_at(t, i);

		if (!c->cpus || c->serial % READ_PASSES == round % READ_PASSES)
			read_list(fs, c, v2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus");
	}
}

int64_t cpusets_limit(const char *cpus, int64_t capacity_milli)
{
	unsigned int first, last;
	int64_t milli = 0;

	if (!cpus)
		return LIMIT_UNKNOWN;
	while (cgroup_text_cpus(&cpus, &first, &last))
		milli += ((int64_t)last - first + 1) * 1000;
	if (!milli || (*cpus && *cpus != '\n'))
		return LIMIT_UNKNOWN;
	return milli < capacity_milli ? milli : LIMIT_NONE;
}

/* --- exclusive CPUs --------------------------------------------------------------------------- */

/* One container with fewer CPUs than the machine's; pod: its track, or CPU_SHARED without one. */
struct bound {
	const struct cgroup *cgroup;
	struct track *track;
	uint16_t pod;
};

static bool find_bound(const struct account_table *table, struct topology *t, size_t i,
		       struct bound *out)
{
	const struct cgroup *c = topology_at(t, i);
	int up = c->parent;

	if (c->identity.level != LEVEL_CONTAINER || table->tracks[i].cpus_milli < 0)
		return false;
	while (up > 0 && topology_at(t, (size_t)up)->identity.level != LEVEL_POD)
		up = table->tracks[up].parent;
	*out = (struct bound){c, &table->tracks[i], up > 0 ? (uint16_t)up : CPU_SHARED};
	return true;
}

static void note_users(const struct bound *b, uint16_t *users)
{
	const char *cpus = b->cgroup->cpus;
	unsigned int first, last;

	while (cgroup_text_cpus(&cpus, &first, &last))
		for (unsigned int cpu = first; cpu <= last; cpu++)
			users[cpu] = users[cpu] == CPU_UNUSED || users[cpu] == b->pod ? b->pod
										      : CPU_SHARED;
}

static bool is_exclusive(const struct bound *b, const uint16_t *users)
{
	const char *cpus = b->cgroup->cpus;
	unsigned int first, last;
	bool alone = b->pod != CPU_SHARED && b->cgroup->identity.qos == QOS_GUARANTEED &&
		     b->track->effective.cpu_milli == b->track->cpus_milli;

	while (alone && cgroup_text_cpus(&cpus, &first, &last))
		for (unsigned int cpu = first; cpu <= last; cpu++)
			alone &= (users[cpu] & ~CPU_COUNTED) == b->pod;
	return alone;
}

/* Containers of one pod may share its CPUs, which count once for the pod. */
static void give(const struct bound *b, struct track *pod, uint16_t *users)
{
	const char *cpus = b->cgroup->cpus;
	unsigned int first, last;

	b->track->effective.cpu_exclusive_milli = b->track->cpus_milli;
	if (pod->effective.cpu_exclusive_milli < 0)
		pod->effective.cpu_exclusive_milli = 0;
	while (cgroup_text_cpus(&cpus, &first, &last))
		for (unsigned int cpu = first; cpu <= last; cpu++) {
			if (!(users[cpu] & CPU_COUNTED))
				pod->effective.cpu_exclusive_milli += 1000;
			users[cpu] |= CPU_COUNTED;
		}
}

/* A subtree follows its root without a gap. */
static void bound_pod(struct account_table *table, struct topology *t, size_t pod)
{
	int64_t sum = table->tracks[pod].effective.cpu_exclusive_milli;

	for (size_t i = pod + 1; i < table->count && topology_at(t, i)->parent >= (int)pod; i++) {
		const struct kernel_limits *l = &table->tracks[i].effective;

		if (topology_at(t, i)->identity.level == LEVEL_CONTAINER && l->cpu_milli > 0 &&
		    l->cpu_exclusive_milli <= 0)
			sum += l->cpu_milli;
	}
	table->tracks[pod].effective.cpu_milli = sum;
}

void cpusets_share(struct account_table *table, struct topology *t)
{
	uint16_t *users = NULL;
	struct bound b;

	for (size_t i = 1; i < table->count; i++) {
		if (!find_bound(table, t, i, &b))
			continue;
		users = users ? users : mem_zalloc(CPUS_MAX, sizeof(*users));
		note_users(&b, users);
	}
	for (size_t i = 1; users && i < table->count; i++)
		if (find_bound(table, t, i, &b) && is_exclusive(&b, users))
			give(&b, &table->tracks[b.pod], users);
	for (size_t i = 1; users && i < table->count; i++)
		if (topology_at(t, i)->identity.level == LEVEL_POD &&
		    table->tracks[i].effective.cpu_exclusive_milli > 0 &&
		    table->tracks[i].effective.cpu_milli == LIMIT_NONE)
			bound_pod(table, t, i);
	free(users);
}
