/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab_use.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/duration.h"
#include "shared/quantity.h"
#include "tests/stack.h"

#define DAY_NS	  (24 * 3600 * NS_PER_SEC)
#define UNUSED_MB (64.0 * (1 << 20))

enum { UNUSED_MILLI = 50 };

/* FNV-1a, its bits spread by the finalizer of MurmurHash3. */
uint64_t lab_hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3ULL;
	h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
	h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
	return h ^ (h >> 33);
}

static const char *annotation(const cJSON *pod, const char *name)
{
	const cJSON *all = json_at(pod, "metadata.annotations");

	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(all, name));
}

static void read_milli(const char *text, double *value)
{
	struct error error;
	int64_t milli;

	if (text && quantity_parse_milli(text, &milli, &error) == 0)
		*value = (double)milli;
}

static void read_bytes(const char *text, double *value)
{
	struct error error;
	int64_t bytes;

	if (text && quantity_parse_units(text, &bytes, &error) == 0)
		*value = (double)bytes;
}

/* The sum of "requests" or "limits" over its containers; a limit that one lacks is none of the pod. */
static void add_resources(const cJSON *pod, const char *which, double *cpu_milli, double *mem_bytes,
			  bool *all_cpu, bool *all_mem)
{
	const cJSON *container;

	*all_cpu = *all_mem = true;
	cJSON_ArrayForEach (container, json_at(pod, "spec.containers")) {
		const cJSON *amounts =
			cJSON_GetObjectItemCaseSensitive(json_at(container, "resources"), which);
		double cpu = 0, memory = 0;

		read_milli(cJSON_GetStringValue(json_at(amounts, "cpu")), &cpu);
		read_bytes(cJSON_GetStringValue(json_at(amounts, "memory")), &memory);
		*cpu_milli += cpu;
		*mem_bytes += memory;
		*all_cpu = *all_cpu && cpu > 0;
		*all_mem = *all_mem && memory > 0;
	}
}

static void set_limits(struct lab_use *use, const cJSON *pod)
{
	double cpu_milli = 0, mem_bytes = 0;
	bool all_cpu, all_mem;

	add_resources(pod, "limits", &cpu_milli, &mem_bytes, &all_cpu, &all_mem);
	use->cpu_limit_milli = all_cpu ? (int64_t)cpu_milli : 0;
	use->mem_limit_bytes = all_mem ? (int64_t)mem_bytes : 0;
}

static enum lab_pattern pattern_of(const cJSON *pod)
{
	static const char *const names[LAB_PATTERNS] = {"steady", "bursty", "daily"};
	const char *name = annotation(pod, "lab.evenkeel.io/pattern");

	for (int i = 0; name && i < LAB_PATTERNS; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return LAB_STEADY;
}

struct lab_use lab_use_of(const cJSON *pod)
{
	const char *uid = cJSON_GetStringValue(json_at(pod, "metadata.uid"));
	const char *after = annotation(pod, "lab.evenkeel.io/load-after");
	struct lab_use use = {.pattern = pattern_of(pod), .seed = lab_hash(uid ? uid : "")};
	double share = 0.2 + 0.6 * (double)(use.seed >> 11) / (double)(1ULL << 53);
	bool all_cpu, all_mem;
	struct error error;
	int64_t ns;

	add_resources(pod, "requests", &use.cpu_milli, &use.mem_bytes, &all_cpu, &all_mem);
	set_limits(&use, pod);
	use.cpu_milli = use.cpu_milli > 0 ? use.cpu_milli * share : UNUSED_MILLI;
	use.mem_bytes = use.mem_bytes > 0 ? use.mem_bytes * share : UNUSED_MB;
	read_milli(annotation(pod, "lab.evenkeel.io/cpu"), &use.cpu_milli);
	read_bytes(annotation(pod, "lab.evenkeel.io/memory"), &use.mem_bytes);
	use.sigma_milli = use.cpu_milli * (use.pattern == LAB_BURSTY ? 1 : 0.1);
	read_milli(annotation(pod, "lab.evenkeel.io/cpu-sigma"), &use.sigma_milli);
	if (after && duration_parse(after, &ns, &error) == 0)
		use.load_after_ns = ns;
	return use;
}

/*
 * Two values: evenly often mean - sigma and mean + sigma where that is possible, else 0 and, for a
 * share p of the time, h. Its mean is p h and its variance p (1 - p) h^2, so p = 1 / (1 + (sigma /
 * mean)^2).
 */
static void set_levels(struct pattern *p, double mean, double sigma)
{
	double ratio = mean > 0 ? sigma / mean : 0, share = 0.5;

	p->low_milli = mean - sigma;
	p->high_milli = mean + sigma;
	if (ratio > 1) {
		share = 1 / (1 + ratio * ratio);
		p->low_milli = 0;
		p->high_milli = mean / share;
	}
	p->on_ns = (int64_t)llround(share * (double)p->period_ns);
}

struct pattern lab_use_pattern(const struct lab_use *use)
{
	struct pattern p = {.mem_bytes = use->mem_bytes,
			    .limit_milli = (double)use->cpu_limit_milli};

	if (use->pattern == LAB_DAILY) {
		p.smooth = true;
		p.period_ns = DAY_NS;
		p.low_milli = use->cpu_milli * 0.4;
		p.high_milli = use->cpu_milli * 1.6;
		if (p.limit_milli > 0)
			p.high_milli = fmin(p.high_milli, p.limit_milli);
		return p;
	}
	p.period_ns = (use->pattern == LAB_BURSTY ? 10 : 3) * NS_PER_SEC;
	p.period_ns += (int64_t)(use->seed % (uint64_t)p.period_ns);
	p.phase_ns = (int64_t)((use->seed >> 20) % (uint64_t)p.period_ns);
	set_levels(&p, use->cpu_milli, use->sigma_milli);
	return p;
}
