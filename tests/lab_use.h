/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod of the lab really uses. Annotations say it:
 *
 *	lab.evenkeel.io/cpu: 800m          mean
 *	lab.evenkeel.io/cpu-sigma: 200m    standard deviation; a tenth of the mean, all of it when bursty
 *	lab.evenkeel.io/memory: 300Mi
 *	lab.evenkeel.io/pattern: bursty    steady, bursty or daily
 *	lab.evenkeel.io/load-after: 30s    uses 1m before
 *
 * A pod without them uses 20 to 80 % of its requests, and 50m and 64Mi where it has none, by its
 * uid. Pure.
 */
#pragma once

#include <stdint.h>

#include <cjson/cJSON.h>

#include "tests/fleet/pattern.h"

enum lab_pattern { LAB_STEADY, LAB_BURSTY, LAB_DAILY, LAB_PATTERNS };

struct lab_use {
	double cpu_milli, sigma_milli, mem_bytes;
	int64_t cpu_limit_milli, mem_limit_bytes; /* 0: none; its CPU use ends at the limit */
	enum lab_pattern pattern;
	int64_t load_after_ns;
	uint64_t seed; /* of the phase of its pattern */
};

/* Of a Pod as the API has it. What an annotation says that cannot be read does not count. */
struct lab_use lab_use_of(const cJSON *pod);
/* Once it has its load; the mean over whole periods is cpu_milli. */
struct pattern lab_use_pattern(const struct lab_use *use);
uint64_t lab_hash(const char *text);
