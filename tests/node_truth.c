/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With cgroups v1 the CPU time is cpuacct's; with v2 all is in one tree. kubelet's names are those
 * of its driver cgroupfs.
 */
#include "tests/node_truth.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define V2	   "/sys/fs/cgroup"
#define V1_CPU	   V2 "/cpu"
#define V1_CPUACCT V2 "/cpuacct"
#define V1_MEMORY  V2 "/memory"

static const char *const hierarchies[] = {V1_CPUACCT, V1_MEMORY, V2};
static const char *const classes[] = {"kubepods", "kubepods/burstable", "kubepods/besteffort"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

bool node_truth_find(struct node_truth *t, const char *uid)
{
	for (size_t i = 0; i < COUNT(hierarchies) * COUNT(classes); i++) {
		char *path;
		bool found;

		snprintf(t->pod, sizeof(t->pod), "%s/pod%s", classes[i % COUNT(classes)], uid);
		path = mem_printf("%s/%s", hierarchies[i / COUNT(classes)], t->pod);
		found = access(path, F_OK) == 0;
		free(path);
		if (found)
			return true;
	}
	return false;
}

/* The number after `key` in a file of the cgroup; -1 when it is not there. */
static double read_number(const struct node_truth *t, const char *hierarchy, const char *name,
			  const char *key)
{
	char *path = mem_printf("%s/%s/%s", hierarchy, t->pod, name), text[256] = "";
	FILE *file = fopen(path, "r");
	uint64_t value;
	bool known;

	if (file) {
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
	}
	free(path);
	known = strncmp(text, key, strlen(key)) == 0 &&
		sscanf(text + strlen(key), "%" SCNu64, &value) == 1;
	return known ? (double)value : -1;
}

void node_truth_sample(struct node_truth *t)
{
	double v1 = read_number(t, V1_CPUACCT, "cpuacct.usage", ""),
	       v2 = read_number(t, V2, "cpu.stat", "usage_usec "),
	       cpu_ns = v1 >= 0 ? v1 : v2 * 1000;

	if (cpu_ns < 0 || t->count == NODE_TRUTH_SAMPLES)
		return;
	t->samples[t->count].unix_ns = clock_wall_ns();
	t->samples[t->count++].cpu_ns = cpu_ns;
}

/* The first sample not before that time; count when there is none. */
static size_t first_from(const struct node_truth *t, int64_t unix_ns)
{
	size_t i = 0;

	while (i < t->count && t->samples[i].unix_ns < unix_ns)
		i++;
	return i;
}

struct node_truth_range node_truth_cpu_milli(const struct node_truth *t, int64_t start_ns,
					     int64_t end_ns)
{
	size_t start = first_from(t, start_ns), end = first_from(t, end_ns);
	double milli_per_ns = 1000 / (double)(end_ns - start_ns);

	if (start + 1 >= end || end == t->count)
		return (struct node_truth_range){NAN, NAN};
	return (struct node_truth_range){
		.low = (t->samples[end - 1].cpu_ns - t->samples[start].cpu_ns) * milli_per_ns,
		.high = (t->samples[end].cpu_ns - (start ? t->samples[start - 1].cpu_ns : 0)) *
			milli_per_ns,
	};
}

/* "QUOTA PERIOD" of cpu.max; NaN where there is no quota. */
static double v2_cpu_milli(const struct node_truth *t)
{
	double quota = read_number(t, V2, "cpu.max", ""), period;
	char key[32];

	snprintf(key, sizeof(key), "%.0f ", quota);
	period = read_number(t, V2, "cpu.max", key);
	return period > 0 ? quota * 1000 / period : NAN;
}

static double v1_cpu_milli(const struct node_truth *t)
{
	double quota = read_number(t, V1_CPU, "cpu.cfs_quota_us", ""),
	       period = read_number(t, V1_CPU, "cpu.cfs_period_us", "");

	return period > 0 ? quota * 1000 / period : NAN;
}

struct node_truth_bounds node_truth_bounds(const struct node_truth *t)
{
	double shares = read_number(t, V1_CPU, "cpu.shares", "");
	bool v1 = shares >= 0;

	return (struct node_truth_bounds){
		.shares = shares,
		.weight = read_number(t, V2, "cpu.weight", ""),
		.cpu_milli = v1 ? v1_cpu_milli(t) : v2_cpu_milli(t),
		.mem_bytes = v1 ? read_number(t, V1_MEMORY, "memory.limit_in_bytes", "")
				: read_number(t, V2, "memory.max", ""),
	};
}

double node_truth_weight(int shares)
{
	int weight = (shares - 2) * 9999 / 262142 + 1;

	return weight;
}

static bool holds_pod(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool found = false;

	while (folder && (entry = readdir(folder)))
		found = found || strncmp(entry->d_name, "pod", 3) == 0;
	if (folder)
		closedir(folder);
	return found;
}

bool node_truth_any_pod(void)
{
	bool found = false;

	for (size_t i = 0; i < COUNT(hierarchies) * COUNT(classes); i++) {
		char *path = mem_printf("%s/%s", hierarchies[i / COUNT(classes)],
					classes[i % COUNT(classes)]);

		found = found || holds_pod(path);
		free(path);
	}
	return found;
}
