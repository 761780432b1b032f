/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tier samples: the best one whose values agree with the kernel's own files.
 *
 * A tier that opens may still be wrong: an address that did not resolve reads as 0, a walk may end
 * early, a private namespace may hide the cgroups. So each candidate makes slow passes, and the
 * values of a few cgroups are compared:
 *
 *     read files --> pass --> read files      lesser file value <= pass value <= greater file value
 *
 * Memory may rise and fall between two reads, therefore a cgroup has ATTEMPTS passes to agree in
 * one; values that are wrong for a reason stay wrong. The cgroups compared are leaves, where a
 * cgroup's own use and that of its subtree are the same, and such as use something, since 0 = 0
 * proves little. What a file does not offer (no controller there, cgroup removed meanwhile) is not
 * compared.
 */
#include "agent/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler_tier.h"
#include "shared/log.h"

enum { SAMPLES = 8, LEAVES_EXAMINED = 512, ATTEMPTS = 10 };

/* The agent numbers its passes from 1, so these never look like one of them. */
#define SELF_TEST_PASS (1ULL << 63)

/* One number out of one file of a cgroup. */
struct source {
	int hierarchy; /* -1: nowhere */
	const char *file;
	const char *key; /* of a "key value" line; NULL: the file is the number */
	uint64_t unit; /* of the number, in ns or bytes */
};

/* What the files said around a pass. */
struct bounds {
	bool known;
	uint64_t before, after;
};

struct sample {
	size_t index; /* in the topology */
	struct bounds cpu, memory;
	bool agreed;
};

struct self_test {
	const struct cgroupfs *fs;
	struct topology *topology;
	struct source cpu, memory;
	struct sample samples[SAMPLES];
	size_t count;
};

static void choose_sources(struct self_test *test)
{
	const struct cgroupfs *fs = test->fs;

	test->cpu = (struct source){fs->cpu_from, "cpu.stat", "usage_usec ", 1000};
	if (fs->cpu_from == HIERARCHY_CPUACCT)
		test->cpu = (struct source){fs->cpu_from, "cpuacct.usage", NULL, 1};
	test->memory = (struct source){fs->memory_from, "memory.current", NULL, 1};
	if (fs->memory_from == HIERARCHY_MEMORY)
		test->memory.file = "memory.usage_in_bytes";
}

/* False when the cgroup has no such number (any more). */
static bool read_source(const struct cgroupfs *fs, const struct source *source, const char *path,
			uint64_t *value)
{
	char name[ENTITY_NAME_MAX + 64], text[512];
	const char *number = text;
	ssize_t n;
	int fd;

	if (source->hierarchy < 0)
		return false;
	snprintf(name, sizeof(name), ".%s/%s", path, source->file);
	fd = openat(fs->root_fd[source->hierarchy], name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (source->key) {
		number = strstr(text, source->key);
		if (!number)
			return false;
		number += strlen(source->key);
	}
	*value = strtoull(number, NULL, 10) * source->unit;
	return true;
}

/* Leaves that use something; where nothing does, the first leaf. */
static void pick_samples(struct self_test *test)
{
	struct topology *t = test->topology;
	size_t leaves = 0, first = 0;

	for (size_t i = 0; i < topology_count(t) && test->count < SAMPLES; i++) {
		const struct cgroup *cgroup = topology_at(t, i);
		uint64_t cpu = 0, memory = 0;

		if (cgroup->children)
			continue;
		if (++leaves == 1)
			first = i;
		if (leaves > LEAVES_EXAMINED)
			break;
		read_source(test->fs, &test->cpu, cgroup->path, &cpu);
		read_source(test->fs, &test->memory, cgroup->path, &memory);
		if (cpu || memory)
			test->samples[test->count++] = (struct sample){.index = i};
	}
	if (!test->count && leaves)
		test->samples[test->count++] = (struct sample){.index = first};
}

static void read_before(const struct self_test *test, struct sample *sample)
{
	const char *path = topology_at(test->topology, sample->index)->path;

	sample->cpu.known = read_source(test->fs, &test->cpu, path, &sample->cpu.before);
	sample->memory.known = read_source(test->fs, &test->memory, path, &sample->memory.before);
}

static void read_after(const struct self_test *test, struct sample *sample)
{
	const char *path = topology_at(test->topology, sample->index)->path;

	if (!read_source(test->fs, &test->cpu, path, &sample->cpu.after))
		sample->cpu.known = false;
	if (!read_source(test->fs, &test->memory, path, &sample->memory.after))
		sample->memory.known = false;
}

/* have: whether the tier gave a value. The reason is set when they disagree. */
static bool agrees(const struct bounds *bounds, bool have, uint64_t value, const char *what,
		   struct reason *reason)
{
	uint64_t low = bounds->before < bounds->after ? bounds->before : bounds->after;
	uint64_t high = bounds->before < bounds->after ? bounds->after : bounds->before;

	if (!bounds->known || (have && value >= low && value <= high))
		return true;
	if (have)
		reason_set(reason,
			   "%s %" PRIu64 ", but the kernel's file says %" PRIu64 " to %" PRIu64,
			   what, value, low, high);
	else
		reason_set(reason, "no %s, but the kernel's file says %" PRIu64, what, low);
	return false;
}

static bool sample_agrees(const struct self_test *test, const struct sample *sample, uint64_t pass,
			  struct reason *reason)
{
	const struct cgroup *cgroup = topology_at(test->topology, sample->index);
	const struct reading *r = &cgroup->reading;
	bool agreed = false;

	/* The root's files tell of the whole machine, by other means than all the others. */
	if (strcmp(cgroup->path, "/") == 0 || (!sample->cpu.known && !sample->memory.known))
		return true;
	if (cgroup->seen_pass != pass)
		reason_set(reason, "the pass did not meet it");
	else
		agreed = agrees(&sample->cpu, r->have & HAVE_CPU,
				r->cpu_ns - r->cpu_ns % test->cpu.unit, "CPU ns", reason) &&
			 agrees(&sample->memory, r->have & HAVE_MEMORY, r->mem_bytes,
				"memory bytes", reason);
	if (!agreed)
		reason_prefix(reason, "self-test: %s", cgroup->path);
	return agreed;
}

/* One pass, compared where nothing agreed yet: 0 when all have, -EBADMSG, or the pass's error. */
static int attempt(struct self_test *test, struct sampler *sampler, uint64_t pass,
		   struct reason *reason)
{
	struct pass_result result;
	int err;

	for (size_t i = 0; i < test->count; i++)
		read_before(test, &test->samples[i]);
	err = sampler_pass(sampler, test->topology, PASS_SLOW, pass, &result, reason);
	if (err)
		return err;
	if (!result.records) {
		reason_set(reason, "self-test: a pass met no cgroup");
		return -EBADMSG;
	}
	for (size_t i = 0; i < test->count; i++) {
		struct sample *sample = &test->samples[i];

		if (sample->agreed)
			continue;
		read_after(test, sample);
		sample->agreed = sample_agrees(test, sample, pass, reason);
		if (!sample->agreed)
			err = -EBADMSG;
	}
	return err;
}

static int self_test(struct sampler *sampler, const struct cgroupfs *fs, struct topology *t,
		     struct reason *reason)
{
	struct self_test test = {.fs = fs, .topology = t};
	int err = -EBADMSG;

	choose_sources(&test);
	pick_samples(&test);
	for (uint64_t i = 0; i < ATTEMPTS && err == -EBADMSG; i++)
		err = attempt(&test, sampler, SELF_TEST_PASS + i, reason);
	return err;
}

static int open_tested(struct sampler **s, const struct sampler_ops *ops, const struct cgroupfs *fs,
		       struct topology *t, struct reason *reason)
{
	struct sampler *candidate;
	int err = sampler_open_ops(&candidate, ops, fs, reason);

	if (err)
		return err;
	err = self_test(candidate, fs, t, reason);
	if (err)
		sampler_close(candidate);
	else
		*s = candidate;
	return err;
}

int sampler_choose_ops(struct sampler **s, const struct sampler_ops *const *ops, size_t count,
		       const struct cgroupfs *fs, struct topology *t, struct reason *reason)
{
	int err = -ENOSYS;

	for (size_t i = 0; i < count; i++) {
		const char *tier = sampler_tier_name(ops[i]->tier);
		struct reason why = {""};

		err = open_tested(s, ops[i], fs, t, &why);
		if (!err) {
			log_info("sampling by tier %s", tier);
			return 0;
		}
		if (i + 1 < count)
			log_warn("sampling tier %s cannot be used: %s", tier, why.text);
		reason_set(reason, "sampling tier %s: %s", tier, why.text);
	}
	return err;
}

int sampler_choose(struct sampler **s, int only, const struct cgroupfs *fs, struct topology *t,
		   struct reason *reason)
{
	static const struct sampler_ops *const all[] = {&sampler_bpf_ops, &sampler_files_ops};
	enum { COUNT = sizeof(all) / sizeof(all[0]) };

	if (only < 0)
		return sampler_choose_ops(s, all, COUNT, fs, t, reason);
	for (size_t i = 0; i < COUNT; i++) {
		if ((int)all[i]->tier == only)
			return sampler_choose_ops(s, &all[i], 1, fs, t, reason);
	}
	reason_set(reason, "this agent has no tier %s", sampler_tier_name((enum sampler_tier)only));
	return -ENOSYS;
}
